package traffic

import (
	"encoding/binary"
	"fmt"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// MessageMode says what whole messages are exchanged for.
type MessageMode string

// RoundTrip: the sending end waits for a message from the other before it sends the next;
// the receiving end answers each. FlowTotal.Total.Bytes and IO.Completions count both ways,
// IO.Latency is of the exchanges: at the sending end from the beginning of a message to the
// last byte of its answer, at the other from the wait for a message until its answer is in
// the kernel. A receiver takes the first messages for shorter ones when nothing follows them
// for a second. Over UDP a message that is not answered within 2 s is given up.
//
// Jitter: each message begins with its number and the time of its sender (PutMessage); the
// receiver hands that on (Config.OnMessage).
const (
	RoundTrip MessageMode = "round-trip"
	Jitter    MessageMode = "jitter"
)

// Message is what the header of a message of the jitter mode says, and when it came.
type Message struct {
	Number    uint32 // per flow, from 0
	Counter   int64  // the sender's clock
	Frequency int64  // its ticks per second
	At        int64  // when the message was here, ns of this machine's monotonic clock
	Kernel    bool   // the kernel says so, not this program
}

// MessageHeader is the length of the header of a message of the jitter mode, bytes.
const MessageHeader = 20

// mostTicks is the fastest clock that a header may name, per second.
const mostTicks = 1_000_000_000_000

// PutMessage writes the header of m to the start of b: number, counter and frequency, in
// network order (NTTTCP for Windows, src/ntttcp.c, AddPayloadToBuffer).
func PutMessage(b []byte, m Message) {
	binary.BigEndian.PutUint32(b[0:], m.Number)
	binary.BigEndian.PutUint64(b[4:], uint64(m.Counter))
	binary.BigEndian.PutUint64(b[12:], uint64(m.Frequency))
}

// ParseMessage reads the header at the start of b; ok is false where b is too short or
// holds no clock's frequency, as payload without a header.
func ParseMessage(b []byte) (m Message, ok bool) {
	if len(b) < MessageHeader {
		return m, false
	}
	m = Message{
		Number:    binary.BigEndian.Uint32(b[0:]),
		Counter:   int64(binary.BigEndian.Uint64(b[4:])),
		Frequency: int64(binary.BigEndian.Uint64(b[12:])),
	}
	return m, m.Frequency > 0 && m.Frequency <= mostTicks
}

func (c *Config) validateMessages(bad func(cond bool, field string, v any, want string)) {
	bad(c.Message != "" && c.Message != RoundTrip && c.Message != Jitter, "message", c.Message, "must be round-trip or jitter")
	bad(c.Message == Jitter && c.BlockSize < MessageHeader, "block_size", c.BlockSize, fmt.Sprintf("must be %d at least to hold number and time", MessageHeader))
	bad(c.Spacing < 0, "spacing", c.Spacing, "must not be negative")
	bad((c.Message != "" || c.Spacing > 0) && (c.Source != nil || c.Sink != nil), "file", "set", "cannot be sent in messages")
}

// messages takes the flows that exchange whole messages and returns the others. Datagrams of
// the jitter mode are received as all others are.
func (e *Engine) messages(flows []*stream) (rest []*stream, err error) {
	for i, s := range flows {
		switch {
		case e.cfg.Message == RoundTrip, e.cfg.Message == Jitter && (s.Send || !e.udp()), e.cfg.Spacing > 0 && s.Send:
		default:
			rest = append(rest, s)
			continue
		}
		m, err := newMessenger(s, i)
		if err != nil {
			return nil, err
		}
		e.movers = append(e.movers, m)
		e.path.Worker = m.link.worker()
	}
	return rest, nil
}

// message hands the header of a message on, which came at (engine time).
func (s *stream) message(data []byte, at int64, kernel bool) {
	if s.e.cfg.Message != Jitter {
		return
	}
	m, ok := ParseMessage(data)
	if !ok {
		s.e.u.later(result.Notice{
			Code: "jitter-missing", End: s.e.cfg.End, Level: result.Warn,
			Text: "messages came that do not begin with a number and a time: the sender must be told to send them too, with the same length",
		})
		return
	}
	if s.e.cfg.OnMessage != nil {
		m.At, m.Kernel = s.e.monoAt(at), kernel
		s.e.cfg.OnMessage(s.ID, m)
	}
}

// headerOf writes what a message of s begins with, sent now.
func (s *stream) headerOf(b []byte, number uint32, now int64) {
	switch e := s.e; {
	case e.cfg.Message == Jitter:
		PutMessage(b, Message{Number: number, Counter: e.monoAt(now), Frequency: 1e9})
	case e.udp() && !e.cfg.UDP.Bare:
		s.stamp(b, 0, e.monoAt(now))
	}
}

// usesMessages reports that some flow has a messenger.
func (c *Config) usesMessages() bool { return c.Message != "" || c.Spacing > 0 }

// messageRoom is how much a messenger reads at once.
func messageRoom(c *Config) int {
	if c.Transport == plan.UDP {
		return 64 << 10
	}
	return c.BlockSize
}

// alignClock puts the clock of headers beside the engine's.
func (e *Engine) alignClock() {
	if e.mono != nil {
		e.u.base = *e.mono
		return
	}
	e.u.base = osnet.Monotonic() - e.now()
}
