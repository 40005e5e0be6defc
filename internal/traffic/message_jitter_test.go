package traffic

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// collected are the messages of each flow.
type collected struct {
	mu   sync.Mutex
	list map[int][]Message
}

func (c *collected) add(flow int, m Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.list == nil {
		c.list = map[int][]Message{}
	}
	c.list[flow] = append(c.list[flow], m)
}

// Each flow's messages are numbered from 0 on, say when they were sent and are handed on
// when they came; on one machine that is one clock.
func TestJitter(t *testing.T) {
	for _, transport := range []plan.Transport{plan.TCP, plan.UDP} {
		for _, c := range []struct{ flows, size int }{{1, 20}, {1, 100}, {3, 3000}, {20, 128}} {
			t.Run(fmt.Sprint(transport, c), func(t *testing.T) {
				a, b := connected(t, transport, c.flows)
				var got collected
				before := osnet.Monotonic()
				cfg := Config{Transport: transport, BlockSize: c.size, Message: Jitter, Fill: 'A', Verify: true, Bitrate: int64(c.size) * 8 * 1000}
				rcfg := cfg
				rcfg.End, rcfg.OnMessage, rcfg.Bitrate = result.Server, got.add, 0
				cfg.End, cfg.Blocks = result.Client, int64(20*c.flows)
				rx, tx := start(t, rcfg, flowsOf(b, result.Up, false)), start(t, cfg, flowsOf(a, result.Up, true))
				tx.wait(t, Blocks)
				sent := tx.totals(t)
				rx.StopReceive(true)
				rec := rx.totals(t)
				after := osnet.Monotonic()
				if sum(rec) != cfg.Blocks*int64(c.size) || sum(sent) != sum(rec) {
					t.Errorf("%d bytes sent, %d received", sum(sent), sum(rec))
				}
				n := 0
				for id, list := range got.list {
					last := before
					for i, m := range list {
						n++
						if int(m.Number) != i || m.Frequency != 1e9 || m.Counter < last || m.At > after || m.Kernel && transport == plan.TCP {
							t.Fatalf("flow %d: %d: %+v, not before %d and not after %d", id, i, m, last, after)
						}
						if late := m.At - m.Counter; late < -int64(time.Millisecond) { // two clocks are set beside each other
							t.Errorf("flow %d: message %d came %d ns after it was sent", id, i, late)
						}
						last = m.Counter
					}
				}
				if int64(n) != cfg.Blocks {
					t.Errorf("%d messages, want %d", n, cfg.Blocks)
				}
				tx.Close()
			})
		}
	}
}

// The header on the wire, byte by byte, in both directions.
func TestJitterOnTheWire(t *testing.T) {
	a, b := pairs(t, 1)
	defer closeAll(b)
	before := osnet.Monotonic()
	tx := start(t, Config{End: result.Client, BlockSize: 64, Message: Jitter, Fill: 'A', Blocks: 3}, flowsOf(a, result.Up, true))
	tx.wait(t, Blocks)
	for i := range uint32(3) {
		d := make([]byte, 64)
		if _, err := io.ReadFull(b[0].Net(), d); err != nil {
			t.Fatal(err)
		}
		number, counter, frequency := binary.BigEndian.Uint32(d), int64(binary.BigEndian.Uint64(d[4:])), binary.BigEndian.Uint64(d[12:])
		if number != i || counter < before || counter > osnet.Monotonic() || frequency != 1e9 || bytes.Count(d[20:], []byte{'A'}) != 44 {
			t.Errorf("message %d: % x", i, d)
		}
		before = counter
	}
	for _, m := range []Message{{}, {Number: 7, Counter: 0x0102030405060708, Frequency: 10_000_000}} {
		d := make([]byte, MessageHeader)
		PutMessage(d, m)
		if got, ok := ParseMessage(d); ok != (m.Frequency > 0) || ok && got != m {
			t.Errorf("%+v, %v", got, ok)
		}
		if _, ok := ParseMessage(d[:19]); ok {
			t.Error("19 bytes are a header")
		}
	}
	want := []byte{0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0x98, 0x96, 0x80}
	d := make([]byte, 20)
	PutMessage(d, Message{Number: 7, Counter: 0x0102030405060708, Frequency: 10_000_000})
	if !bytes.Equal(d, want) {
		t.Errorf("% x", d)
	}
}

// Payload without a header is told apart.
func TestJitterMissing(t *testing.T) {
	for _, transport := range []plan.Transport{plan.TCP, plan.UDP} {
		a, b := connected(t, transport, 1)
		var got collected
		rx := start(t, Config{End: result.Server, Transport: transport, BlockSize: 100, Message: Jitter, OnMessage: got.add}, flowsOf(b, result.Up, false))
		for range 3 {
			if _, err := a[0].Net().Write(bytes.Repeat([]byte{'A'}, 100)); err != nil {
				t.Fatal(err)
			}
		}
		poll(t, "the messages", func() bool { return sum(rx.Snapshot()) == 300 })
		if rx.totals(t); len(got.list) != 0 {
			t.Errorf("%+v", got.list)
		}
		rx.told(t, "jitter-missing", 1)
		closeAll(a)
	}
}

func FuzzParseMessage(f *testing.F) {
	d := make([]byte, MessageHeader)
	PutMessage(d, Message{Number: 1, Counter: 2, Frequency: 3})
	f.Add(d)
	f.Add([]byte("AAAAAAAAAAAAAAAAAAAAAAAA"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, ok := ParseMessage(b)
		if !ok {
			return
		}
		d := make([]byte, MessageHeader)
		PutMessage(d, m)
		if !bytes.Equal(d, b[:MessageHeader]) {
			t.Errorf("% x is %+v is % x", b, m, d)
		}
	})
}
