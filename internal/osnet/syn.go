package osnet

import (
	"encoding/binary"
	"fmt"

	"github.com/fullbore-net/fullbore/result"
)

// SavedSYN returns the options of the SYN that opened this accepted connection, as they arrived,
// so that they can be compared with what the client sent; nil where the system kept none (it was
// dialled, or the system cannot). The kernel gives it out once.
func (c *Conn) SavedSYN() (*result.SYN, error) {
	var syn *result.SYN
	err := c.control(func(fd uintptr) error {
		var room [256]byte
		n, err := savedSYN(fd, room[:])
		if err == nil {
			syn = decodeSYN(room[:n])
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("osnet: saved SYN: %w", err)
	}
	return syn, nil
}

// decodeSYN reads the options of a SYN from its IP and TCP headers (RFC 9293 §3.1); nil = it is
// none. IPv6 extension headers, which no SYN of ours carries, are not looked through.
func decodeSYN(b []byte) *result.SYN {
	at := 0
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		at = int(b[0]&15) * 4
	case len(b) >= 40 && b[0]>>4 == 6:
		at = 40
	default:
		return nil
	}
	if at < 20 || len(b) < at+20 {
		return nil
	}
	tcp := b[at:]
	end := int(tcp[12]>>4) * 4
	if end < 20 || end > len(tcp) {
		return nil
	}
	out := &result.SYN{}
	for o := tcp[20:end]; len(o) > 0; {
		if o[0] == 0 { // end of options
			break
		}
		if o[0] == 1 { // padding
			o = o[1:]
			continue
		}
		if len(o) < 2 || o[1] < 2 || int(o[1]) > len(o) {
			break
		}
		switch value := o[2:o[1]]; {
		case o[0] == 2 && len(value) == 2:
			out.MSS = int(binary.BigEndian.Uint16(value))
		case o[0] == 3 && len(value) == 1:
			out.WindowScale = true
		case o[0] == 4:
			out.SACK = true
		case o[0] == 8:
			out.Timestamps = true
		}
		o = o[o[1]:]
	}
	return out
}
