package traffic

import (
	"testing"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// messageStep returns one message of a flow that the test drives itself, against an engine.
func messageStep(tb testing.TB, transport plan.Transport, mode MessageMode, send bool) func() {
	a, b := pairs(tb, 1)
	if transport == plan.UDP {
		closeAll(a)
		closeAll(b)
		a, b = udpPairs(tb, 1)
	}
	cfg := Config{
		End: result.Client, Transport: transport, BlockSize: 100, Message: mode, Fill: 'A', TimeCalls: true,
		OnMessage: func(int, Message) {}, Verify: true,
	}
	e := parked(tb, cfg, flowsOf(a, result.Up, send))
	e.alignClock()
	m := e.movers[0].(*messenger)
	switch {
	case mode == Jitter && send && transport == plan.TCP:
		swallow(b)
		tb.Cleanup(func() { closeAll(b) })
	case mode == Jitter && send:
		tb.Cleanup(func() { closeAll(b) })
	default:
		start(tb, cfg, flowsOf(b, result.Up, !send))
	}
	if send {
		return func() {
			if mode == RoundTrip && !m.clear() || !m.message(e.now()) {
				tb.Fatal("the flow ended")
			}
		}
	}
	return func() {
		for {
			came, more := m.take(false)
			if !more || came && mode == RoundTrip && !m.reply() {
				tb.Fatal("the flow ended")
			}
			if came {
				return
			}
		}
	}
}

var messagePaths = []struct {
	name      string
	transport plan.Transport
	mode      MessageMode
	send      bool
}{
	{"round trip, ask, tcp", plan.TCP, RoundTrip, true},
	{"round trip, answer, tcp", plan.TCP, RoundTrip, false},
	{"round trip, ask, udp", plan.UDP, RoundTrip, true},
	{"round trip, answer, udp", plan.UDP, RoundTrip, false},
	{"jitter, send, tcp", plan.TCP, Jitter, true},
	{"jitter, receive, tcp", plan.TCP, Jitter, false},
	{"jitter, send, udp", plan.UDP, Jitter, true},
}

func TestMessagesDoNotAllocate(t *testing.T) {
	for _, c := range messagePaths {
		t.Run(c.name, func(t *testing.T) {
			do := messageStep(t, c.transport, c.mode, c.send)
			for range 20 {
				do()
			}
			if n := testing.AllocsPerRun(200, do); n != 0 {
				t.Errorf("%v allocations a message", n)
			}
		})
	}
}

func BenchmarkMessages(b *testing.B) {
	for _, c := range messagePaths {
		b.Run(c.name, func(b *testing.B) {
			do := messageStep(b, c.transport, c.mode, c.send)
			b.ReportAllocs()
			for b.Loop() {
				do()
			}
		})
	}
}
