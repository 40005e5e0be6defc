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
