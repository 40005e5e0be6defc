package ntttcp

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// callsOf puts what the Windows dialect wants of single calls into c.
func (c *Config) callsOf(n *plan.NTTTCP) {
	c.CountCalls, c.TimeCalls = true, n.Latency
	c.Verify = n.Verify && !n.Sends()
	switch {
	case n.RoundTrip:
		c.Message = traffic.RoundTrip
	case n.Jitter:
		c.Message = traffic.Jitter
	}
	c.Spacing, c.Burn = n.Spacing, n.CPUBurn*1000
	c.WaitAll = n.WaitAll && !n.Sends()
	c.Outstanding, c.EStats = n.Outstanding, n.EStats
}

// calls puts it into an engine's settings.
func (c Config) calls(cfg *traffic.Config) {
	cfg.CountCalls, cfg.TimeCalls = c.CountCalls || c.TimeCalls, c.TimeCalls
	if cfg.Transport == plan.TCP {
		cfg.Outstanding = c.Outstanding
	}
	if c.Verify {
		cfg.Verify, cfg.Fill = true, PayloadByte
	}
	cfg.Message, cfg.Spacing, cfg.Burn, cfg.WaitAll = c.Message, c.Spacing, c.Burn, c.WaitAll
	if c.Message == traffic.RoundTrip && cfg.End == result.Server {
		cfg.Fill = PayloadByte // of the answers
	}
}

// datagram does with a received one what the test wants beyond its count: it is answered, or its
// number and time are handed on.
func (r *Receiver) datagram(pc *osnet.PacketConn, f datagramFlow, s source, data []byte) {
	switch r.c.Message {
	case traffic.RoundTrip:
		local := netip.Addr{}
		if a, err := netip.ParseAddr(s.local.Host); err == nil {
			local = a
		}
		// Never longer than what came, so that nobody is sent more than was asked for.
		if n, err := pc.Write(r.answer[:min(len(r.answer), len(data))], f.from, local); err == nil {
			s.tally.addRun(f, s.local, n, 1)
			s.tally.exchanged(f)
		}
	case traffic.Jitter:
		if m, ok := traffic.ParseMessage(data); ok {
			m.At = osnet.Monotonic()
			s.tally.message(m)
		}
	}
}

// linuxDatagramByte is what a Linux sender's datagrams are full of (linux §3.6).
const linuxDatagramByte = 'B'

// verify looks at every byte of a datagram that was counted (-d). A Linux sender's have another letter
// than a Windows sender's.
func (r *Receiver) verify(y *tally, f datagramFlow, data []byte) {
	if !r.c.Verify {
		return
	}
	skip := 0
	if r.c.Message == traffic.Jitter {
		skip = min(traffic.MessageHeader, len(data))
	}
	p := data[skip:]
	if bytes.Count(p, []byte{PayloadByte}) == len(p) || bytes.Count(p, []byte{linuxDatagramByte}) == len(p) {
		return
	}
	want := byte(PayloadByte)
	if p[0] == linuxDatagramByte {
		want = linuxDatagramByte
	}
	for i, b := range p {
		if b != want {
			y.corrupt(f, int64(len(data)), &traffic.CorruptError{At: int64(skip + i), Got: b, Want: want})
			return
		}
	}
}

// corrupt notes wrong bytes of f; e.At is within the datagram of n bytes that was counted last.
func (t *tally) corrupt(f datagramFlow, n int64, e *traffic.CorruptError) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.flows[f]; s != nil && s.wrong == nil && t.stopped == 0 {
		e.At += max(0, s.bytes.Load()-n)
		s.wrong = e
	}
}

// mostEarly bounds the messages that came before it is known who wants them.
const mostEarly = 4096

// message hands m on.
func (t *tally) message(m traffic.Message) {
	t.messages.Lock()
	defer t.messages.Unlock()
	switch {
	case t.onMessage != nil:
		t.onMessage(m)
	case len(t.early) < mostEarly:
		t.early = append(t.early, m)
	}
}

// handMessages says who wants the messages, those that came already too; nil = nobody.
func (t *tally) handMessages(to func(traffic.Message)) {
	if to == nil {
		to = func(traffic.Message) {}
	}
	t.messages.Lock()
	defer t.messages.Unlock()
	for _, m := range t.early {
		to(m)
	}
	t.onMessage, t.early = to, nil
}

// countDatagrams makes the calls of a count of datagrams, each of which is one.
func (c Config) countDatagrams(t *traffic.Totals) {
	if !c.CountCalls {
		return
	}
	for i := range t.Flows {
		if f := &t.Flows[i]; f.IO == nil && f.Total.Packets != nil {
			f.IO = &result.IOCount{Completions: *f.Total.Packets}
		}
	}
}

// corrupt says which streams brought other bytes than were sent; nil = none.
func corrupt(t traffic.Totals) *result.Error {
	var first error
	n := 0
	for _, f := range t.Flows {
		var e *traffic.CorruptError
		if errors.As(f.Err, &e) {
			if n++; first == nil {
				first = e
			}
		}
	}
	if first == nil {
		return nil
	}
	return &result.Error{
		Code: "corrupt", Remote: true,
		Text: fmt.Sprintf("%d of %d connections brought wrong bytes: %v", n, len(t.Flows), first),
	}
}
