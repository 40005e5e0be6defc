package traffic

import (
	"bytes"
	"fmt"
)

// CorruptError ends a flow of which a received byte was not Config.Fill (Config.Verify).
type CorruptError struct {
	At        int64 // how many bytes the flow had counted before it
	Got, Want byte
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("traffic: received data is corrupted: byte %d is 0x%02x instead of 0x%02x", e.At, e.Got, e.Want)
}

// corrupt looks through received payload; the flow has received before bytes without it.
func (s *stream) corrupt(p []byte, before int64) error {
	want := s.e.cfg.Fill
	if bytes.Count(p, s.e.letter[:]) == len(p) { // much faster than any loop
		return nil
	}
	for i, b := range p {
		if b != want {
			return &CorruptError{At: before + int64(i), Got: b, Want: want}
		}
	}
	return nil
}

// verified looks through the len(p) bytes of a stream that were just counted, and ends the
// flow when one is not payload.
func (s *stream) verified(p []byte) bool {
	if !s.e.cfg.Verify {
		return true
	}
	err := s.corrupt(p, s.ctr.bytes.Load()-int64(len(p)))
	if err != nil {
		s.end(err)
	}
	return err == nil
}
