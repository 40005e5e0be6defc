package probe

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

const ms = time.Millisecond

// path carries a Prober's datagrams to a Responder and back, in the time of a bubble. Each
// way says for the n-th datagram on it (from 1) after which times copies of it arrive; none
// = it is lost.
type path struct {
	up, down func(n int) []time.Duration
	offset   int64   // server's clock less the client's at the start, ns
	skew     float64 // by how much faster it runs
	from     netip.AddrPort
	send     func(n int) error // what the n-th Send says; nil = nothing
	kernel   bool

	r       *Responder
	base    time.Time
	mu      sync.Mutex
	sent    int
	replied int
	inbox   chan arrival
	quit    chan struct{}
	wg      sync.WaitGroup
}

type arrival struct {
	b   []byte
	at  int64
	err error
}

func steady(d time.Duration) func(int) []time.Duration {
	return func(int) []time.Duration { return []time.Duration{d} }
}

func newPath() *path {
	p := &path{
		up: steady(10 * ms), down: steady(10 * ms), from: peer, kernel: true,
		r: NewResponder(), base: time.Now(), inbox: make(chan arrival, 1<<16), quit: make(chan struct{}),
	}
	p.r.Add(Test{ID: testID, Nonce: testNonce, Peer: peer.Addr()})
	return p
}

// now is the client's clock; the server's follows from it.
func (p *path) now() int64 { return int64(time.Since(p.base)) + int64(time.Hour) }

func (p *path) serverNow() int64 {
	t := p.now()
	return t + p.offset + int64(math.Round(p.skew*float64(t-int64(time.Hour))))
}

func (p *path) Send(b []byte) error {
	p.mu.Lock()
	p.sent++
	n := p.sent
	p.mu.Unlock()
	if p.send != nil {
		if err := p.send(n); err != nil {
			return err
		}
	}
	b = slices.Clone(b)
	for _, d := range p.up(n) {
		p.wg.Go(func() {
			time.Sleep(d)
			p.arrive(b)
		})
	}
	return nil
}

// arrive is the server's end.
func (p *path) arrive(b []byte) {
	at := p.serverNow()
	out := p.r.Answer(nil, b, p.from, Arrival{Received: at, Now: at, Kernel: p.kernel})
	if out == nil {
		return
	}
	p.mu.Lock()
	p.replied++
	n := p.replied
	p.mu.Unlock()
	for _, d := range p.down(n) {
		p.wg.Go(func() {
			time.Sleep(d)
			p.inbox <- arrival{b: out, at: p.now()}
		})
	}
}

func (p *path) Receive(b []byte) (int, int64, bool, error) {
	select {
	case a := <-p.inbox:
		return copy(b, a.b), a.at, p.kernel, a.err
	case <-p.quit:
		return 0, 0, false, ErrClosed
	}
}

func (p *path) Close() error {
	close(p.quit)
	return nil
}

// probeOver runs a Prober over p and returns it with its figures; c holds what differs
// from the voice profile over 10 s.
func probeOver(t *testing.T, p *path, change func(*Config)) (*Prober, *result.Probes, Counts) {
	t.Helper()
	c := Config{
		Conn: p, Test: testID, Nonce: testNonce, Profile: "voice", Spacing: 20 * ms, Size: 64, Duration: 10 * time.Second, Now: p.now,
	}
	if change != nil {
		change(&c)
	}
	pr, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := pr.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.wg.Wait()
	counts := p.r.Counts(testID)
	return pr, pr.Result(&counts), counts
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within {
		t.Errorf("%s: %v, want %v ± %v", what, got, want, within)
	}
}

// counts are the figures of Probes that are exact.
type exact struct{ sent, answered, up, down int64 }

func exactOf(t *testing.T, p *result.Probes) exact {
	t.Helper()
	if p.LostUp == nil || p.LostDown == nil {
		t.Fatalf("losses unknown: %+v", p)
	}
	return exact{p.Sent, p.Answered, *p.LostUp, *p.LostDown}
}

func TestProberQuietPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPath()
		p.up, p.down, p.offset = steady(10*ms), steady(6*ms), int64(3*time.Hour)
		began := time.Now()
		_, r, _ := probeOver(t, p, nil)
		if got := exactOf(t, r); got != (exact{500, 500, 0, 0}) {
			t.Errorf("counts %+v", got)
		}
		if d := time.Since(began); d > 10100*ms {
			t.Errorf("it took %v", d)
		}
		if r.WakeUp == nil || r.WakeUp.N != 500 || r.WakeUp.Max > 1e-3 {
			t.Errorf("late by %+v", r.WakeUp)
		}
		near(t, "round trip", r.RoundTrip.P50, 0.016, 0.00016)
		near(t, "jitter up", r.Up.Jitter.Max, 0, 1e-9)
		if r.Kind != "udp-echo" || r.Profile != "voice" || r.Spacing != 0.02 || r.Size != 64 || r.Stamps != "kernel" || len(r.Histogram) != 1 {
			t.Errorf("%+v", r)
		}
		// The path is not symmetric: each delay is off by 2 ms, and within its bound.
		if r.Clock == nil || r.Clock.Source != "exchange" || !r.Clock.Causal {
			t.Fatalf("clock %+v", r.Clock)
		}
		near(t, "bound", r.Clock.BoundS, 0.008, 0.0001)
		near(t, "offset", r.Clock.OffsetS, 3*3600, r.Clock.BoundS)
		near(t, "delay up", r.Up.Delay.P50, 0.010, *r.Up.BoundS)
		near(t, "delay down", r.Down.Delay.P50, 0.006, *r.Down.BoundS)
		near(t, "both delays", r.Up.Delay.P50+r.Down.Delay.P50, 0.016, 1e-6)
	})
}

// A budget ends the probing before its time, and that is said.
func TestProberBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPath()
		p.up, p.down = steady(10*ms), steady(6*ms)
		pr, r, counts := probeOver(t, p, func(c *Config) { c.Most = 100*2*64 + 127 })
		if r.Sent != 100 || r.Answered != 100 {
			t.Errorf("%d sent, %d answered", r.Sent, r.Answered)
		}
		if n := pr.Notices(&counts); len(n) != 1 || n[0].Code != "budget-used" {
			t.Errorf("%+v", n)
		}
	})
}

// Clocks that drift apart: the skew is found, and one-way delays do not grow with it.
func TestProberSkew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPath()
		p.offset, p.skew = -int64(90*time.Minute), 80e-6
		p.up = func(n int) []time.Duration { return []time.Duration{5*ms + time.Duration(n*n%7)*100*time.Microsecond} }
		p.down = func(n int) []time.Duration {
			return []time.Duration{5*ms + time.Duration(n*n*n%5)*100*time.Microsecond}
		}
		_, r, _ := probeOver(t, p, func(c *Config) { c.Duration = 60 * time.Second })
		if r.Clock == nil || r.Clock.SkewPPM == nil {
			t.Fatalf("clock %+v", r.Clock)
		}
		near(t, "skew", *r.Clock.SkewPPM, 80, 2)
		near(t, "offset", r.Clock.OffsetS, -5400+60*80e-6/2, r.Clock.BoundS+60*80e-6)
		near(t, "delay up, least", r.Up.Delay.Min, 0.005, *r.Up.BoundS)
		near(t, "delay up, most", r.Up.Delay.Max, 0.0054, *r.Up.BoundS)
		near(t, "delay down, most", r.Down.Delay.Max, 0.0054, *r.Down.BoundS)
		near(t, "variation up", r.Up.PDV.Max, 0.0004, 0.00003)
		near(t, "variation down", r.Down.PDV.Max, 0.0004, 0.00003)
	})
}

// Both ends on one clock: delays are exact, and no asymmetry is hidden.
func TestProberSameHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPath()
		p.up, p.down = steady(10*ms), steady(2*ms)
		_, r, _ := probeOver(t, p, func(c *Config) { c.SameHost = true })
		if r.Clock == nil || r.Clock.Source != "same-host" || r.Clock.OffsetS != 0 || !r.Clock.Causal {
			t.Fatalf("clock %+v", r.Clock)
		}
		near(t, "delay up", r.Up.Delay.P99, 0.010, 1e-9)
		near(t, "delay down", r.Down.Delay.P99, 0.002, 1e-9)
	})
}

func isLost(list ...int) func(int) bool { return func(n int) bool { return slices.Contains(list, n) } }

func losing(lost func(int) bool, d time.Duration) func(int) []time.Duration {
	return func(n int) []time.Duration {
		if lost(n) {
			return nil
		}
		return []time.Duration{d}
	}
}

// Losses are split by way, exactly with the other end's counts; without them up to the
// newest answer.
func TestProberLoss(t *testing.T) {
	for name, c := range map[string]struct {
		up, down func(int) bool
		want     exact // with the counts
		told     exact // without
	}{
		"none":       {isLost(), isLost(), exact{500, 500, 0, 0}, exact{500, 500, 0, 0}},
		"up":         {isLost(1, 2, 30, 400), isLost(), exact{500, 496, 4, 0}, exact{500, 496, 4, 0}},
		"down":       {isLost(), isLost(7, 8, 9), exact{500, 497, 0, 3}, exact{500, 497, 0, 3}},
		"both":       {isLost(10, 20, 30), isLost(1, 100), exact{500, 495, 3, 2}, exact{500, 495, 3, 2}},
		"tail up":    {isLost(498, 499, 500), isLost(), exact{500, 497, 3, 0}, exact{500, 497, 0, 0}},
		"tail":       {isLost(499), isLost(499), exact{500, 498, 1, 1}, exact{500, 498, 0, 0}},
		"all up":     {func(int) bool { return true }, isLost(), exact{500, 0, 500, 0}, exact{500, 0, 0, 0}},
		"all down":   {isLost(), func(int) bool { return true }, exact{500, 0, 0, 500}, exact{500, 0, 0, 0}},
		"each third": {func(n int) bool { return n%3 == 0 }, func(n int) bool { return n%2 == 0 }, exact{500, 167, 166, 167}, exact{500, 167, 166, 166}},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPath()
			p.up, p.down = losing(c.up, 10*ms), losing(c.down, 10*ms)
			pr, r, _ := probeOver(t, p, nil)
			if got := exactOf(t, r); got != c.want {
				t.Errorf("%s: %+v, want %+v", name, got, c.want)
			}
			if got := exactOf(t, pr.Result(nil)); got != c.told {
				t.Errorf("%s: without the counts %+v, want %+v", name, got, c.told)
			}
			if (r.RoundTrip == nil) != (c.want.answered == 0) || (r.Clock == nil) != (c.want.answered == 0) {
				t.Errorf("%s: %+v", name, r)
			}
		})
	}
}

// Copies and disorder on either way: nothing counts twice, nothing is lost, and jitter
// does not take them for variation.
func TestProberDuplicatesAndReordering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPath()
		p.up = func(n int) []time.Duration {
			switch {
			case n%10 == 0:
				return []time.Duration{10 * ms, 11 * ms, 300 * ms} // copies
			case n%25 == 1:
				return []time.Duration{55 * ms} // overtaken by two
			}
			return []time.Duration{10 * ms}
		}
		p.down = func(n int) []time.Duration {
			if n%7 == 0 {
				return []time.Duration{10 * ms, 12 * ms}
			}
			return []time.Duration{10 * ms}
		}
		pr, r, c := probeOver(t, p, nil)
		if got := exactOf(t, r); got != (exact{500, 500, 0, 0}) {
			t.Errorf("counts %+v", got)
		}
		if want := (Counts{Received: 500, Answered: 500, Duplicates: 100}); c != want {
			t.Errorf("the server counted %+v, want %+v", c, want)
		}
		if pr.f.duplicates != 71 || pr.foreign != 0 || pr.f.late != 0 {
			t.Errorf("%d answers twice, %d foreign, %d late", pr.f.duplicates, pr.foreign, pr.f.late)
		}
		near(t, "slowest", r.RoundTrip.Max, 0.065, 1e-4)
		near(t, "variation up", r.Up.PDV.Max, 0.045, 1e-4)
		near(t, "jitter up", r.Up.Jitter.Max, 0, 1e-6)
		near(t, "variation down", r.Down.PDV.Max, 0, 1e-6)
	})
}

// An answer that comes after the wait is lost, and one after Run is not waited for.
func TestProberLateAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPath()
		p.down = func(n int) []time.Duration {
			if n >= 498 {
				return []time.Duration{5 * time.Second}
			}
			return []time.Duration{10 * ms}
		}
		began := time.Now()
		pr, r, _ := probeOver(t, p, nil)
		if got := exactOf(t, r); got != (exact{500, 497, 0, 3}) {
			t.Errorf("counts %+v", got)
		}
		_ = pr
		if d := time.Since(began); d < 10200*ms-20*ms {
			t.Errorf("it waited only until %v", d)
		}
	})
}

// A path that holds everything for a while and lets it go at once: the other end's limit
// shows as such, not as loss.
func TestProberLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPath()
		began := time.Now()
		p.up = func(int) []time.Duration {
			at := time.Since(began)
			if at < time.Second {
				return []time.Duration{time.Second - at}
			}
			return []time.Duration{ms}
		}
		pr, r, c := probeOver(t, p, func(c *Config) { c.Spacing, c.Duration = ms, 3*time.Second })
		if c.Limited < 800 || c.Received != 3000 || c.Answered+c.Limited != 3000 {
			t.Fatalf("the server counted %+v", c)
		}
		if got := exactOf(t, r); got != (exact{3000, c.Answered, 0, 0}) {
			t.Errorf("counts %+v", got)
		}
		if ns := pr.Notices(&c); len(ns) != 1 || ns[0].Code != "probes-limited" {
			t.Errorf("notices %+v", ns)
		}
		if got := exactOf(t, pr.Result(nil)); got.up != 0 || got.down != 0 {
			t.Errorf("without the counts %+v", got)
		}
	})
}

// This host's own lateness and refusals are not the path's loss, and are told.
func TestProberOwnTroubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPath()
		p.send = func(n int) error {
			switch {
			case n == 100:
				time.Sleep(500 * ms) // the host stands still
			case n == 200, n == 201:
				return errors.New("no buffer space available")
			}
			return nil
		}
		pr, r, _ := probeOver(t, p, nil)
		if pr.skipped != 24 || pr.refused != 2 {
			t.Errorf("left out %d, refused %d", pr.skipped, pr.refused)
		}
		if got := exactOf(t, r); got != (exact{500 - 24 - 2, 500 - 24 - 2, 0, 0}) {
			t.Errorf("counts %+v", got)
		}
		if ns := pr.Notices(nil); len(ns) != 2 || ns[0].Code != "sender-limited" || ns[1].Code != "sender-limited" {
			t.Errorf("notices %+v", ns)
		}
	})
}

// Words of the other host about earlier datagrams do not end it, and cost no request.
func TestProberRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPath()
		p.send = func(n int) error {
			if n == 50 {
				p.inbox <- arrival{err: ErrRefused}
				return ErrRefused
			}
			return nil
		}
		pr, r, _ := probeOver(t, p, nil)
		if got := exactOf(t, r); got != (exact{500, 500, 0, 0}) {
			t.Errorf("counts %+v", got)
		}
		if ns := pr.Notices(nil); pr.icmp != 2 || len(ns) != 1 || ns[0].Code != "icmp-refused" {
			t.Errorf("%d refusals, notices %+v", pr.icmp, ns)
		}
	})
}

// Datagrams of strangers count nowhere.
func TestProberStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPath()
		p.send = func(n int) error {
			forged := make([]byte, HeaderSize)
			PutAnswer(forged, Answer{Seq: uint32(n), Count: 9999, Received: 1, Sent: 2}, NewSigner(Nonce{}))
			p.inbox <- arrival{b: forged, at: p.now()}
			p.inbox <- arrival{b: []byte("hello"), at: p.now()}
			// Of our own key, but nothing that was asked.
			own := make([]byte, HeaderSize)
			PutAnswer(own, Answer{Seq: 40000, Count: 40000}, NewSigner(testNonce))
			p.inbox <- arrival{b: own, at: p.now()}
			return nil
		}
		pr, r, _ := probeOver(t, p, nil)
		if got := exactOf(t, r); got != (exact{500, 500, 0, 0}) {
			t.Errorf("counts %+v", got)
		}
		near(t, "round trip", r.RoundTrip.Max, 0.020, 1e-6)
		if pr.foreign != 1000 || pr.f.late != 500 {
			t.Errorf("%d foreign, %d late", pr.foreign, pr.f.late)
		}
	})
}

// A reflector whose times make no sense costs its delays, not the counts.
func TestProberOddTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFigures(false, nil)
		for i, a := range []Answer{
			{Received: 10, Sent: 5},                          // sent before it came
			{Received: 0, Sent: int64(time.Hour)},            // took longer than the whole
			{Received: math.MinInt64, Sent: math.MaxInt64},   // overflows
			{Received: int64(ms), Sent: int64(ms) + 1000000}, // fine
		} {
			a.Seq = uint32(i + 1)
			f.add(a, 0, int64(10*ms), true)
		}
		if f.answered != 4 || f.odd != 3 || f.trips.N() != 1 {
			t.Errorf("answered %d, odd %d, round trips %d", f.answered, f.odd, f.trips.N())
		}
	})
}

// Behind another address than the control connection's: the token is echoed by itself,
// and what it cost is not loss.
func TestProberProvesItsAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPath()
		p.from = addrPort("198.51.100.7:7")
		p.up, p.down = steady(5*ms), steady(5*ms) // one request goes before the proof
		_, r, c := probeOver(t, p, nil)
		if got := exactOf(t, r); got != (exact{499, 499, 0, 0}) || c.Received != 499 {
			t.Errorf("counts %+v, the server's %+v", got, c)
		}
	})
}

// What was measured before an interruption stays, and it ends at once.
func TestProberInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPath()
		pr, err := New(Config{Conn: p, Test: testID, Nonce: testNonce, Spacing: 20 * ms, Size: 64, Now: p.now})
		if err != nil {
			t.Fatal(err)
		}
		cause := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3010*ms, func() { cancel(cause) })
		began := time.Now()
		if err := pr.Run(ctx); !errors.Is(err, cause) {
			t.Errorf("error %v", err)
		}
		if d := time.Since(began); d != 3010*ms {
			t.Errorf("it ended after %v", d)
		}
		if r := pr.Result(nil); r.Sent != 151 || r.Answered != 150 || r.RoundTrip == nil {
			t.Errorf("%+v", r)
		}
		p.wg.Wait()
	})
}

// Stop ends the requests; what is on its way is waited for.
func TestProberStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPath()
		p.down = losing(isLost(10), 150*ms)
		pr, err := New(Config{Conn: p, Test: testID, Nonce: testNonce, Spacing: 20 * ms, Size: 64, Now: p.now})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(1010*ms, pr.Stop)
		if err := pr.Run(t.Context()); err != nil {
			t.Error(err)
		}
		pr.Stop() // once more does nothing
		p.wg.Wait()
		c := p.r.Counts(testID)
		if got := exactOf(t, pr.Result(&c)); got != (exact{51, 50, 0, 1}) {
			t.Errorf("counts %+v", got)
		}
	})
}

func TestProberReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPath()
		var seen []*result.Probes
		_, _, _ = probeOver(t, p, func(c *Config) {
			c.Duration = 4500 * ms
			c.Report = func(r *result.Probes) { seen = append(seen, r) }
		})
		if len(seen) != 4 {
			t.Fatalf("%d reports", len(seen))
		}
		for i, r := range seen {
			if want := int64(50 * (i + 1)); r.Sent < want-1 || r.Sent > want+1 || r.Answered < r.Sent-2 || r.RoundTrip == nil || r.Up.PDV == nil || r.Histogram != nil || *r.LostUp != 0 {
				t.Errorf("report %d: %+v", i, r)
			}
		}
	})
}

func TestNewRefuses(t *testing.T) {
	good := Config{Conn: newPath(), Spacing: ms, Size: HeaderSize, Now: func() int64 { return 0 }}
	for name, spoil := range map[string]func(*Config){
		"spacing": func(c *Config) { c.Spacing = ms - 1 }, "size": func(c *Config) { c.Size-- },
		"conn": func(c *Config) { c.Conn = nil }, "clock": func(c *Config) { c.Now = nil },
	} {
		c := good
		spoil(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
}
