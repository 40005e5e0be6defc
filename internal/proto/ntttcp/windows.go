package ntttcp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// What two Windows programs say to each other (windows §3): one byte each way per data
// connection, on a connection of its own, whose value nobody checks.
const (
	Token = byte('X')
	// TokenOffset is how far above its data port a token port lies.
	TokenOffset = 1000
	// PayloadByte is all that data consists of; a receiver may verify it (-d).
	PayloadByte = byte(0x41)
	// linuxDatagram is that of ntttcp-for-linux in datagrams (linux §3.6).
	linuxDatagram = byte(0x42)
)

// payload is what data consists of.
func (c Config) payload() byte {
	if c.Transport == plan.UDP && !c.Windows {
		return linuxDatagram
	}
	return PayloadByte
}

// PortSize is the length of the message of a receiver with synchronised ports (-sp).
const PortSize = 4

// AppendPort appends the port that a sender is to use (windows §3.5), little-endian, against
// all other numbers here.
func AppendPort(b []byte, port uint16) []byte {
	return binary.LittleEndian.AppendUint32(b, uint32(port))
}

var errPort = errors.New("ntttcp: not a port message")

// ParsePort reads the message of AppendPort.
func ParsePort(b []byte) (uint16, error) {
	if len(b) != PortSize {
		return 0, fmt.Errorf("%w: %d bytes", errPort, len(b))
	}
	n := int32(binary.LittleEndian.Uint32(b))
	if n < 1 || n > 65535 {
		return 0, fmt.Errorf("%w: port %d", errPort, n)
	}
	return uint16(n), nil
}

// JitterSize is the length of the header that the jitter measurement (-jm) puts before each
// buffer's payload.
const JitterSize = 20

// Jitter is that header (windows §3.8).
type Jitter struct {
	Packet    uint32 // per thread, from 0
	Counter   int64  // the sender's performance counter
	Frequency int64  // its ticks per second
}

// Put writes j to the first JitterSize bytes of b.
func (j Jitter) Put(b []byte) {
	binary.BigEndian.PutUint32(b[0:], j.Packet)
	binary.BigEndian.PutUint64(b[4:], uint64(j.Counter))
	binary.BigEndian.PutUint64(b[12:], uint64(j.Frequency))
}

// ParseJitter reads the header; ok is false where b is too short or the frequency is none.
func ParseJitter(b []byte) (j Jitter, ok bool) {
	if len(b) < JitterSize {
		return j, false
	}
	j = Jitter{
		Packet:    binary.BigEndian.Uint32(b[0:]),
		Counter:   int64(binary.BigEndian.Uint64(b[4:])),
		Frequency: int64(binary.BigEndian.Uint64(b[12:])),
	}
	return j, j.Frequency > 0
}
