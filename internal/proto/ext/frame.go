package ext

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Frame is the first byte of a frame; a length and a JSON document follow. No protocol that
// carries the extension has messages that begin with one of these bytes.
type Frame byte

// The frames. What lies between firstFrame and lastFrame and is not named is skipped by readers.
const (
	FrameHello   Frame = 0x46 // ServerHello; where the client speaks first also ClientHello
	FrameEvent   Frame = 0x47 // EventFrame, server to client
	FrameQueue   Frame = 0x48 // QueueFrame, server to client
	FrameClient  Frame = 0x49 // ClientFrame, client to server
	FrameReady   Frame = 0x4a // ReadyFrame, server to client
	FrameResults Frame = 0x4b // Results, both ways, where the protocol has none of its own

	firstFrame Frame = 0x46
	lastFrame  Frame = 0x4f
)

// Valid reports whether f begins a frame, known or not.
func (f Frame) Valid() bool { return f >= firstFrame && f <= lastFrame }

var frameNames = map[Frame]string{
	FrameHello: "fullbore hello", FrameEvent: "fullbore event", FrameQueue: "fullbore queue",
	FrameClient: "fullbore client", FrameReady: "fullbore streams", FrameResults: "fullbore results",
}

// String names f for a log.
func (f Frame) String() string {
	if n, ok := frameNames[f]; ok {
		return n
	}
	return fmt.Sprintf("fullbore frame %#x", byte(f))
}

// Sizes of the wire.
const (
	MaxFrame   = 256 << 10 // the longest document of a frame
	HeaderSize = 1 + LengthSize
	LengthSize = 4 // before every document, big-endian, of the document alone
)

// The faults of a length.
var (
	ErrTooLong = errors.New("message too long")
	ErrEmpty   = errors.New("empty message")
)

// Append appends a frame.
func Append(b []byte, f Frame, doc []byte) []byte { return AppendDocument(append(b, byte(f)), doc) }

// AppendDocument appends a length and a document.
func AppendDocument(b, doc []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(doc)))
	return append(b, doc...)
}

// Document takes a length and a document of at most limit bytes off b. n is how much of b they
// take; 0 = they are not whole yet. doc aliases b. The error is told by the length alone, so
// that nobody waits for what will not be taken.
func Document(b []byte, limit int) (doc []byte, n int, err error) {
	if len(b) < LengthSize {
		return nil, 0, nil
	}
	l := binary.BigEndian.Uint32(b)
	if l == 0 {
		return nil, 0, ErrEmpty
	}
	if int64(l) > int64(limit) {
		return nil, 0, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLong, l, limit)
	}
	end := LengthSize + int(l)
	if len(b) < end {
		return nil, 0, nil
	}
	return b[LengthSize:end:end], end, nil
}

// Decode takes a frame with a document of at most limit bytes off b, which begins with a valid
// Frame. n is its length; 0 = it is not whole yet. doc aliases b.
func Decode(b []byte, limit int) (f Frame, doc []byte, n int, err error) {
	doc, n, err = Document(b[1:], limit)
	if n == 0 {
		return 0, nil, 0, err
	}
	return Frame(b[0]), doc, 1 + n, nil
}
