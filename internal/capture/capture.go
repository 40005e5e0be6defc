// Package capture reads what a third point recorded (pcap and pcapng files, as tcpdump, Wireshark
// and mirror ports make them) and counts the flows that it is asked for: payload, what passed
// twice, what never did. It is pure: bytes in, counts out; its memory does not grow with the file.
//
// Formats: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng; link types of tcpdump.org/linktypes:
// Ethernet with VLAN tags, raw IP, Linux cooked (SLL, SLL2), BSD loopback.
package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
)

// Protocols of a Flow, by IP's numbers.
const (
	TCP = 6
	UDP = 17
)

// Flow is one direction of a connection or of a pair of UDP ports.
type Flow struct {
	Proto    uint8
	Src, Dst netip.AddrPort
}

// Counts is what passed of a flow. Sizes are those that the headers tell, so that a capture that
// kept only the first bytes of each packet is as good as a whole one.
type Counts struct {
	Packets int64 // with payload
	Payload int64 // bytes
	Unique  int64 // bytes of TCP's stream that passed at least once; of UDP all
	Again   int64 // TCP segments that brought nothing new
	Missing int64 // bytes of TCP's stream below the highest one that never passed
	seq     tracker
}

// Summary is what a file holds.
type Summary struct {
	Packets int64 // in the file
	Unread  int64 // of them not understood: no IP, later fragments, cut within the headers, unknown link types
	Cut     bool  // the file ends within a packet
	Flows   map[Flow]*Counts
}

// maxBlock bounds a packet or block: larger ones are no captures but damage.
const maxBlock = 16 << 20

// ErrFormat says that a file is no capture.
var ErrFormat = errors.New("neither pcap nor pcapng")

// Read counts the flows of want in a capture. A file that ends within a packet is counted up to
// there.
func Read(r io.Reader, want []Flow) (*Summary, error) {
	s := &Summary{Flows: map[Flow]*Counts{}}
	for _, f := range want {
		s.Flows[f] = &Counts{}
	}
	in := bufio.NewReaderSize(r, 1<<16)
	head, err := in.Peek(4)
	if err != nil {
		return nil, ErrFormat
	}
	switch {
	case binary.BigEndian.Uint32(head) == blockSection:
		err = s.next(in)
	default:
		err = s.classic(in)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		s.Cut, err = true, nil
	}
	if err != nil {
		return nil, err
	}
	for _, c := range s.Flows {
		c.Missing = c.seq.missing()
	}
	return s, nil
}

// classic reads the older format.
func (s *Summary) classic(in *bufio.Reader) error {
	var h [24]byte
	if _, err := io.ReadFull(in, h[:]); err != nil {
		return ErrFormat
	}
	var order binary.ByteOrder
	switch binary.LittleEndian.Uint32(h[:]) {
	case 0xa1b2c3d4, 0xa1b23c4d:
		order = binary.LittleEndian
	case 0xd4c3b2a1, 0x4d3cb2a1:
		order = binary.BigEndian
	default:
		return ErrFormat
	}
	link := order.Uint32(h[20:]) & 0x0fffffff // the upper bits tell of check sums
	var rec [16]byte
	buf := make([]byte, 0, 1<<16)
	for {
		if _, err := io.ReadFull(in, rec[:]); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		n := order.Uint32(rec[8:])
		if n > maxBlock {
			return fmt.Errorf("packet %d: %d bytes: the file is damaged", s.Packets+1, n)
		}
		var err error
		if buf, err = fill(in, buf, int(n)); err != nil {
			return err
		}
		s.packet(link, buf)
	}
}

// fill reads n bytes; an end within them is io.ErrUnexpectedEOF.
func fill(in io.Reader, buf []byte, n int) ([]byte, error) {
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	_, err := io.ReadFull(in, buf)
	if errors.Is(err, io.EOF) && n > 0 {
		err = io.ErrUnexpectedEOF
	}
	return buf, err
}

// The blocks of pcapng that matter.
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockOld       = 2
	blockSimple    = 3
	blockEnhanced  = 6
)

// next reads the newer format.
func (s *Summary) next(in *bufio.Reader) error {
	var order binary.ByteOrder = binary.LittleEndian
	var links []uint32
	var buf []byte
	for {
		var h [8]byte
		if _, err := io.ReadFull(in, h[:]); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		kind := order.Uint32(h[:])
		if binary.BigEndian.Uint32(h[:]) == blockSection { // the same both ways round
			magic, err := in.Peek(4)
			if err != nil {
				return io.ErrUnexpectedEOF
			}
			switch binary.LittleEndian.Uint32(magic) {
			case 0x1a2b3c4d:
				order = binary.LittleEndian
			case 0x4d3c2b1a:
				order = binary.BigEndian
			default:
				return ErrFormat
			}
			kind, links = blockSection, nil // interfaces are the section's
		}
		length := order.Uint32(h[4:])
		if length < 12 || length%4 != 0 || length > maxBlock {
			return fmt.Errorf("block after packet %d: length %d: the file is damaged", s.Packets, length)
		}
		var err error
		if buf, err = fill(in, buf, int(length)-8); err != nil {
			return err
		}
		body := buf[:len(buf)-4] // the length stands at the end once more
		switch kind {
		case blockInterface:
			if len(body) < 8 {
				return fmt.Errorf("interface block: %d bytes: the file is damaged", len(body))
			}
			links = append(links, uint32(order.Uint16(body)))
		case blockEnhanced:
			s.block(order, links, body, 20, 12, func() uint32 { return order.Uint32(body) })
		case blockOld:
			s.block(order, links, body, 20, 12, func() uint32 { return uint32(order.Uint16(body)) })
		case blockSimple:
			s.simple(order, links, body)
		}
	}
}

// block takes a packet out of a block: its interface first, its captured length at `at`, its bytes
// from `from` on.
func (s *Summary) block(order binary.ByteOrder, links []uint32, body []byte, from, at int, iface func() uint32) {
	if len(body) < from {
		s.Packets++
		s.Unread++
		return
	}
	i, n := iface(), int(order.Uint32(body[at:]))
	if int64(i) >= int64(len(links)) || n < 0 || n > len(body)-from {
		s.Packets++
		s.Unread++
		return
	}
	s.packet(links[i], body[from:from+n])
}

func (s *Summary) simple(order binary.ByteOrder, links []uint32, body []byte) {
	if len(body) < 4 || len(links) == 0 {
		s.Packets++
		s.Unread++
		return
	}
	n := min(int(order.Uint32(body)), len(body)-4)
	s.packet(links[0], body[4:4+max(n, 0)])
}

// packet counts one.
func (s *Summary) packet(link uint32, data []byte) {
	s.Packets++
	f, payload, seq, syn, ok := decode(link, data)
	if !ok {
		s.Unread++
		return
	}
	c := s.Flows[f]
	if c == nil || payload <= 0 {
		if c != nil && f.Proto == TCP && syn {
			c.seq.begin(seq + 1)
		}
		return
	}
	c.Packets++
	c.Payload += int64(payload)
	if f.Proto == UDP {
		c.Unique += int64(payload)
		return
	}
	if syn {
		seq++ // the SYN takes a number of its own
	}
	fresh := c.seq.take(seq, payload)
	c.Unique += fresh
	if fresh == 0 {
		c.Again++
	}
}
