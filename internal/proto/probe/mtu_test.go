package probe

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// mtuPath joins a prober to a Responder over a path that swallows what is too long. Nothing on it
// takes time.
type mtuPath struct {
	r        *Responder
	up, down int // payload bytes that pass
	link     int // payload bytes that the server's system sends
	mu       sync.Mutex
	closed   chan struct{}
	back     chan []byte
	now      int64
}

func (c *mtuPath) clock() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += 1000
	return c.now
}

func (c *mtuPath) Send(b []byte) error {
	if len(b) > c.up {
		return nil
	}
	now := c.clock()
	out := c.r.Answer(nil, b, netip.MustParseAddrPort("192.0.2.1:4000"), Arrival{Received: now, Now: now})
	if Sized(b) && len(out) > c.link {
		out = c.r.TooLong(out, b)
	}
	if out != nil && len(out) <= c.down {
		c.back <- append([]byte{}, out...)
	}
	return nil
}

func (c *mtuPath) Receive(b []byte) (int, int64, bool, error) {
	select {
	case d := <-c.back:
		return copy(b, d), c.clock(), false, nil
	case <-c.closed:
		return 0, 0, false, ErrClosed
	}
}

func (c *mtuPath) Close() error { close(c.closed); return nil }

// halving is a search of few steps.
type halving struct{ lo, hi int }

func (s halving) Next(h []result.MTUTrial) (int, bool) {
	lo, hi := s.lo, s.hi
	for _, t := range h {
		if t.Passed {
			lo = t.Size
		} else {
			hi = t.Size
		}
	}
	return (lo + hi) / 2, hi-lo > 1
}

func TestMTUProber(t *testing.T) {
	r := NewResponder()
	r.Add(Test{ID: testID, Nonce: testNonce, Peer: netip.MustParseAddr("192.0.2.1")})
	c := &mtuPath{r: r, up: 1364, down: 1400, link: 1372, closed: make(chan struct{}), back: make(chan []byte, 64)}
	p := NewMTUProber(MTUConfig{Conn: c, Test: testID, Nonce: testNonce, Overhead: 28, Now: c.clock})
	defer p.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if ok, err := p.Reach(ctx); !ok || err != nil {
		t.Fatal(ok, err)
	}
	for _, down := range []bool{false, true} {
		h, err := p.Search(ctx, halving{1388, 1405}, down)
		if err != nil {
			t.Fatal(err)
		}
		best, tooLong := 0, 0
		for _, x := range h {
			if x.Passed {
				best = max(best, x.Size)
			}
			if x.TooLong {
				tooLong++
			}
		}
		want := map[bool]int{false: 1392, true: 1400}[down]
		if best != want || (tooLong > 0) != down {
			t.Errorf("down %v: %d, %d refused: %+v", down, best, tooLong, h)
		}
	}
	if sent, answered := p.Counts(); sent == 0 || answered == 0 || answered > sent {
		t.Errorf("%d sent, %d answered", sent, answered)
	}
	if n := p.Notices(); n != nil {
		t.Errorf("without a budget: %v", n)
	}
	p.c.Most = p.moved + 3000
	if h, err := p.Search(ctx, halving{1388, 1405}, false); err != nil || len(h) != 2 || len(p.Notices()) != 1 {
		t.Errorf("with room for two packets: %+v, %v, %v", h, err, p.Notices())
	}
}

// Large answers are few: 20 at once, then 20 a second, and never to an address that has not proved
// itself.
func TestSizedAnswersAreBounded(t *testing.T) {
	r := NewResponder()
	r.Add(Test{ID: testID, Nonce: testNonce, Peer: netip.MustParseAddr("192.0.2.1")})
	s := NewSigner(testNonce)
	ask := func(seq uint32, from string, wanted int, now int64) int {
		b := make([]byte, HeaderSize)
		PutRequest(b, Request{Test: testID, Seq: seq, Flags: FlagSized, Wanted: wanted}, s)
		return len(r.Answer(nil, b, netip.MustParseAddrPort(from), Arrival{Received: now, Now: now}))
	}
	if n := ask(1, "198.51.100.7:9", 9000, 0); n != ChallengeSize {
		t.Errorf("a stranger is sent %d bytes", n)
	}
	whole := 0
	for i := range uint32(100) {
		if n := ask(2+i, "192.0.2.1:9", 9000, 0); n == 9000 {
			whole++
		} else if n != 0 {
			t.Fatalf("%d bytes", n)
		}
	}
	if whole != sizedRate {
		t.Errorf("%d at once", whole)
	}
	total := int64(whole) * 9000
	for i := range uint32(3000) {
		total += int64(ask(1000+i, "192.0.2.1:9", 60000, int64(i+1)*100_000_000))
	}
	if total > sizedBytes {
		t.Errorf("%d bytes in a test", total)
	}
	if c := r.Remove(testID); c.Limited == 0 || c.Answered+c.Limited != c.Received {
		t.Errorf("%+v", c)
	}
}
