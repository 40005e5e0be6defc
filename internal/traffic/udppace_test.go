package traffic

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// sim drives a schedule with made-up time: each wait ends late by what late says, a
// datagram costs cost ns to send. It returns when each burst began and how large it was.
type sim struct {
	p          *bursts
	now        int64
	late       func(wait int64) int64
	cost       int64
	at, size   []int64
	sent       int64
	latestLate int64
}

func (s *sim) until(end int64) {
	for {
		n, wait := s.p.allow(s.now)
		if n == 0 {
			if s.now+wait >= end {
				s.now = end
				return
			}
			s.now += wait
			if s.late != nil {
				s.now += s.late(wait)
			}
			continue
		}
		if s.now >= end {
			return
		}
		if l := s.p.takeLate(); l >= 0 {
			s.latestLate = l
		}
		s.at, s.size = append(s.at, s.now), append(s.size, n)
		s.sent += n
		s.p.took(n)
		s.now += n * s.cost
	}
}

func schedule(rate int64, size int) *bursts {
	return &bursts{size: int64(size), quantum: quantum, full: 1, slots: 1, late: -1, giveUp: giveUp}
}

// With timers that are exact the number of datagrams is what the rate makes of the time,
// to the half datagram, and no burst is another than the planned one.
func TestBurstsAreExact(t *testing.T) {
	for _, c := range []struct {
		name    string
		rate    int64 // bit/s
		size    int
		quantum int64
		seconds int64
		planned int64
	}{
		{"1 Mbit/s", 1_000_000, 1400, quantum, 10, 1},
		{"10 Mbit/s", 10_000_000, 1400, quantum, 10, 1},
		{"100 Mbit/s", 100_000_000, 1400, quantum, 10, 1},
		{"500 Mbit/s", 500_000_000, 1400, quantum, 2, 3},
		{"1 Gbit/s", 1_000_000_000, 1448, quantum, 1, 5},
		{"1 Gbit/s, frugal", 1_000_000_000, 1448, quantumFrugal, 1, 44},
		{"10 Gbit/s, precise", 10_000_000_000, 1448, 0, 1, 1},
		{"1000 small ones a second", 512_000, 64, quantum, 10, 1},
		{"1 a second", 8 * 1000, 1000, quantum, 100, 1},
		{"one in 100 s", 80, 1000, quantum, 1000, 1},
		{"1 bit/s", 1, 16, quantum, 10_000, 1},
		{"a rate no machine has", 1 << 50, 65507, quantum, 0, 107422},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := schedule(c.rate, c.size)
			p.quantum = c.quantum
			const t0 = int64(12345)
			p.set(c.rate, t0)
			if p.planned != c.planned {
				t.Errorf("planned burst %d, want %d", p.planned, c.planned)
			}
			s := &sim{p: p, now: t0}
			s.until(t0 + c.seconds*int64(time.Second))
			want := float64(c.rate) * float64(c.seconds) / 8 / float64(c.size)
			slack := float64(c.planned)/2 + 1e-9
			if p.timeOf(p.planned) > phaseSpan {
				slack = 1 // a slow flow does not wait for half of its gap
			}
			if d := math.Abs(float64(s.sent) - want); d > slack {
				t.Errorf("sent %d, want %.2f ± %v", s.sent, want, slack)
			}
			for _, n := range s.size {
				if n != c.planned {
					t.Fatalf("a burst of %d, want %d", n, c.planned)
				}
			}
			if p.unsent != 0 {
				t.Errorf("%d unsent", p.unsent)
			}
		})
	}
}

// However late each wake-up is (below the limit for giving up), nothing drifts: what was
// sent is what was due, but for what a catch-up in progress still owes.
func TestBurstsNeverDrift(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(1_000, 40_000_000_000).Draw(t, "rate")
		size := rapid.IntRange(16, 65507).Draw(t, "size")
		burst := rapid.Int64Range(0, 20).Draw(t, "burst")
		anchored := rapid.Bool().Draw(t, "anchored")
		p := schedule(rate, size)
		p.burst, p.anchored = burst, anchored
		start := rapid.Int64Range(0, 1<<40).Draw(t, "start")
		p.set(rate, start)
		gap := p.timeOf(p.planned)
		s := &sim{p: p, now: start}
		s.late = func(wait int64) int64 { return rapid.Int64Range(0, max(gap/8, 1)).Draw(t, "late") }
		s.until(start + 100*gap)
		due := float64(s.now-start) * float64(rate) / 8e9 / float64(size)
		if d := float64(s.sent) - due; d > float64(p.planned)+0.001 || d < -2*float64(p.planned) {
			t.Fatalf("sent %d where %.2f were due and a burst is %d", s.sent, due, p.planned)
		}
		if p.unsent != 0 {
			t.Fatalf("%d unsent", p.unsent)
		}
	})
}

// After a stall of its own a sender catches up at 1.25 times the rate, in groups, until it
// is on time again.
func TestCatchUp(t *testing.T) {
	const rate, size = 1_000_000_000, 1400
	p := schedule(rate, size)
	p.set(rate, 0)
	gap := p.timeOf(p.planned)
	s := &sim{p: p}
	s.until(int64(time.Second))
	const stall = int64(20 * time.Millisecond)
	s.now += stall
	back := s.now
	before := s.sent
	s.at, s.size = nil, nil
	// 20 ms of backlog at a quarter of the rate: 80 ms.
	s.until(back + 80*int64(time.Millisecond))
	// Never more than catchUpSpan's datagrams ahead of 1.25 times the rate.
	for i, first := 0, 0; i < len(s.at); i++ {
		for s.at[i]-s.at[first] > 5*catchUpSpan {
			first++
		}
		n, most := int64(i-first+1), (s.at[i]-s.at[first]+catchUpSpan)*5/4/gap+2
		if n > most {
			t.Fatalf("%d bursts within %d ns, want at most %d", n, s.at[i]-s.at[first], most)
		}
	}
	got := float64(s.sent-before) * size * 8 / 0.080
	if got > 1.26*rate || got < 1.24*rate {
		t.Errorf("caught up at %.3g bit/s, want 1.25e9", got)
	}
	s.until(2 * int64(time.Second))
	if want := 2.0 * rate / 8 / size; math.Abs(float64(s.sent)-want) > float64(p.planned) {
		t.Errorf("sent %d in 2 s, want %.0f", s.sent, want)
	}
	if p.unsent != 0 || s.latestLate > gap {
		t.Errorf("unsent %d, late %d ns at the end", p.unsent, s.latestLate)
	}
	if p.run != p.planned {
		t.Errorf("a run of %d datagrams, want %d", p.run, p.planned)
	}
}

// A sender that is woken late for every burst, as on a busy machine, still makes up for
// what a stall left, in groups of at most catchUpSpan's datagrams.
func TestCatchUpOnABusyMachine(t *testing.T) {
	const rate, size = 100_000_000, 1400
	p := schedule(rate, size)
	p.set(rate, 0)
	gap := p.timeOf(p.planned)
	s := &sim{p: p, late: func(int64) int64 { return 3 * gap / 2 }}
	s.now = int64(20 * time.Millisecond)
	s.until(int64(300 * time.Millisecond))
	if p.unsent != 0 || s.latestLate > stallFrom+3*gap {
		t.Errorf("unsent %d, %d ns late 280 ms after a stall of 20", p.unsent, s.latestLate)
	}
	most := int64(catchUpSpan)*5/4/gap + 2
	for i, n := 1, int64(1); i < len(s.at); i++ {
		if n++; s.at[i] != s.at[i-1] {
			n = 1
		}
		if n > most {
			t.Fatalf("%d bursts at once, want at most %d", n, most)
		}
	}
}

// A call that was held up may have sent at its very end: the next burst then keeps half a
// gap from there, as from any other. Calls that are always long slow nothing down.
func TestCallHeldUp(t *testing.T) {
	const rate, size = 100_000_000, 1400
	p := schedule(rate, size)
	p.set(rate, 0)
	gap := p.timeOf(1)
	now := int64(0)
	burst := func(took int64) (began int64) {
		t.Helper()
		n, wait := p.allow(now)
		if n == 0 {
			now += wait
			n, _ = p.allow(now)
		}
		if n != 1 {
			t.Fatalf("allowed %d after the wait", n)
		}
		began = now
		now += took
		p.took(1)
		p.ended(began, now)
		return began
	}
	const usual = 5000
	for range 100 {
		burst(usual)
	}
	// Longer than stallFrom it is a stall, which is told and made up.
	for _, held := range []int64{gap / 2, gap * 3 / 4, gap, 3 * gap, 6 * gap} {
		began := burst(held)
		sent := began + held // at the latest
		if next := burst(usual); next < sent+gap/2 {
			t.Errorf("held up for %d ns: the next burst after %d ns, want at least %d", held, next-sent, gap/2)
		}
		for range 200 {
			burst(usual)
		}
		if late := now - usual - p.timeOf(p.next-1) - p.start; late != 0 {
			t.Errorf("held up for %d ns: still %d ns late", held, late)
		}
	}
	// One that was held up for long does not hide that another is soon after.
	for between := range 20 {
		burst(8 * gap)
		for range between {
			burst(usual)
		}
		began := burst(gap)
		if next := burst(usual); next < began+gap+gap/2 {
			t.Errorf("held up %d bursts after another: the next one after %d ns, want at least %d", between+1, next-began-gap, gap/2)
		}
		for range 200 {
			burst(usual)
		}
	}
	from, at := p.next, now
	for range 1000 {
		burst(gap * 9 / 10)
	}
	if got, want := now-at, p.timeOf(p.next-from); got > want+2*gap {
		t.Errorf("calls of 0.9 gaps: %d datagrams took %d ns, want %d", p.next-from, got, want)
	}
}

// A burst of many calls that fill nearly all of its time is not taken for one held up.
func TestLongBursts(t *testing.T) {
	const rate, size, calls = 40_000_000_000, 1448, 20
	p := schedule(rate, size)
	p.quantum = quantumFrugal
	p.set(rate, 0)
	each := p.timeOf(p.planned) * 9 / 10 / calls
	for now := int64(0); now < int64(time.Second); {
		n, wait := p.allow(now)
		if n == 0 {
			now += wait
			continue
		}
		began := now
		now += each
		p.took(min(n, p.planned/calls+1))
		p.ended(began, now)
	}
	if want := int64(rate / 8 / size); p.unsent != 0 || p.next < want-2*p.planned {
		t.Errorf("sent %d, gave up %d, want %d", p.next-p.unsent, p.unsent, want)
	}
}

// What is late by more than 100 ms is given up, and counted.
func TestUnsent(t *testing.T) {
	const rate, size = 11_200_000, 1400 // 1000 a second
	p := schedule(rate, size)
	p.set(rate, 0)
	s := &sim{p: p}
	s.until(int64(time.Second))
	s.now += int64(300 * time.Millisecond)
	s.until(3 * int64(time.Second))
	if s.sent+p.unsent != 3000 {
		t.Errorf("sent %d and gave up %d, want 3000 together", s.sent, p.unsent)
	}
	if p.unsent < 199 || p.unsent > 201 {
		t.Errorf("gave up %d, want 200", p.unsent)
	}
}

// A steady sender gives up what a stall kept it from sending: no burst follows, and what was lost of
// the time is counted.
func TestSteady(t *testing.T) {
	const rate, size = 60_000_000, 1200 // one each 160 µs
	p := schedule(rate, size)
	p.giveUp = steadyMost
	p.set(rate, 0)
	s := &sim{p: p}
	s.until(int64(time.Second))
	before := s.sent
	s.now += int64(10 * time.Millisecond)
	if n, _ := p.allow(s.now); n != 1 || p.takeLate() < int64(9*time.Millisecond) {
		t.Errorf("%d datagrams left at once, or the stall was not seen", n)
	}
	s.until(s.now + int64(10*time.Millisecond))
	// 10 ms hold 62.5; of the stall at most two milliseconds', 12.5, are made up.
	if got := s.sent - before; got < 62 || got > 76 {
		t.Errorf("%d datagrams in the 10 ms after a stall of 10 ms, want 62 to 76", got)
	}
	s.until(2 * int64(time.Second))
	if total := s.sent + p.unsent; total < 12499 || total > 12501 {
		t.Errorf("sent %d and gave up %d, want 12500 together", s.sent, p.unsent)
	}
	if p.unsent < 48 || p.unsent > 63 {
		t.Errorf("gave up %d of the 62 of the stall", p.unsent)
	}
}

// TestSteadyCatchesUp: one that may go a little faster makes up what a stall kept it from sending, one burst more among so
// many, and no more than that; of a stall that is too long the rest is given up.
func TestSteadyCatchesUp(t *testing.T) {
	const rate, size, spare = 60_000_000, 1200, 0.04 // one each 160 µs
	for name, c := range map[string]struct {
		stall           time.Duration
		unsent, stalled int64 // datagrams given up, at most; of the stall
	}{"short": {10 * time.Millisecond, 0, 62}, "long": {150 * time.Millisecond, 310, 937}} {
		p := schedule(rate, size)
		p.giveUp, p.spare = steadyMost, spare
		p.set(rate, 0)
		s := &sim{p: p}
		s.until(int64(time.Second))
		s.now += c.stall.Nanoseconds()
		s.until(s.now + int64(10*time.Millisecond)) // what is late by less than 2 ms
		before, from := s.sent, s.now
		s.until(from + int64(500*time.Millisecond))
		// 3125 at the rate, and a twenty-fifth of them more while some are owed.
		if more := s.sent - before - 3125; more < min(c.stalled-15, 120) || more > 126 {
			t.Errorf("%s: %d more than at the rate in half a second", name, more)
		}
		s.until(6 * int64(time.Second))
		if total := s.sent + p.unsent; total < 37499 || total > 37501 {
			t.Errorf("%s: sent %d and gave up %d, want 37500 together", name, s.sent, p.unsent)
		}
		if p.unsent > c.unsent || p.unsent < c.unsent*9/10 {
			t.Errorf("%s: gave up %d, want %d", name, p.unsent, c.unsent)
		}
		// What is owed at the end is told, too.
		s.now += int64(50 * time.Millisecond)
		s.until(s.now + int64(10*time.Millisecond))
		p.close()
		if total, due := s.sent+p.unsent, s.now/160_000; p.unsent < c.unsent*9/10+200 || total < due-20 || total > due {
			t.Errorf("%s: sent %d and gave up %d of %d that were due by the end", name, s.sent, p.unsent, due)
		}
	}
}

// In iperf3's manner nothing is given up: a long stall is made up in time.
func TestPatience(t *testing.T) {
	const rate, size = 11_200_000, 1400 // 1000 a second
	p := schedule(rate, size)
	p.patient = true
	p.set(rate, 0)
	s := &sim{p: p}
	s.until(int64(time.Second))
	s.now += int64(300 * time.Millisecond)
	s.until(1500 * int64(time.Millisecond))
	if s.sent >= 1450 { // 0.2 s at twice the rate
		t.Errorf("sent %d in 1.5 s: the stall was made up at once", s.sent)
	}
	s.until(3 * int64(time.Second))
	if s.sent < 2999 || s.sent > 3000 || p.unsent != 0 {
		t.Errorf("sent %d, gave up %d, want 3000 and 0", s.sent, p.unsent)
	}
}

// A sender that cannot keep up sends as fast as it can and gives the rest up.
func TestTooFastForTheMachine(t *testing.T) {
	const rate, size = 10_000_000_000, 1250 // a million a second
	p := schedule(rate, size)
	p.set(rate, 0)
	s := &sim{p: p, cost: 2000} // half of it is possible
	s.until(int64(time.Second))
	if s.sent < 495_000 || s.sent > 505_000 {
		t.Errorf("sent %d, want 500000", s.sent)
	}
	if total := s.sent + p.unsent; total < 895_000 || total > 1_000_000 {
		t.Errorf("sent and given up %d, want a million but for 100 ms", total)
	}
}

// A large burst is sent whole at its time, the first at once.
func TestBurstThatWasAskedFor(t *testing.T) {
	p := schedule(1_000_000, 100)
	p.burst = 1000
	p.set(1_000_000, 0)
	s := &sim{p: p}
	s.until(2 * int64(time.Second))
	// 0.8 Mbit each: at 0, 0.8 and 1.6 s (field case F06).
	if len(s.at) != 3 || s.at[0] != 0 || s.at[2] != 1_600_000_000 || s.sent != 3000 {
		t.Errorf("%d datagrams in bursts at %v, want 3000 at 0, 0.8 and 1.6 s", s.sent, s.at)
	}
}

// A rate that is changed more often than a datagram is due keeps its share all the same.
func TestSteeringDoesNotStarve(t *testing.T) {
	p := schedule(0, 1000)
	p.set(8_000, 0) // 1 a second
	s := &sim{p: p}
	for i := int64(1); i <= 200; i++ {
		s.until(i * int64(50*time.Millisecond))
		p.set(8_000+i%2, s.now)
	}
	if s.sent < 9 || s.sent > 11 {
		t.Errorf("sent %d in 10 s at one a second", s.sent)
	}
	p.set(80_000, s.now)
	was := s.sent
	s.until(s.now + int64(time.Second))
	if n := s.sent - was; n < 9 || n > 11 {
		t.Errorf("sent %d in a second at ten a second", n)
	}
	p.set(0, s.now)
	if n, wait := p.allow(s.now); n != 1 || wait != 0 {
		t.Errorf("unpaced: %d, %d", n, wait)
	}
}

// Flows of one rate do not all leave at the same instant.
func TestFlowsAreSpread(t *testing.T) {
	const n = 10
	seen := map[int64]bool{}
	for i := range int64(n) {
		p := schedule(11_200_000, 1400)
		p.slot, p.slots = i, n
		p.set(11_200_000, 0)
		_, wait := p.allow(0)
		seen[wait] = true
	}
	if len(seen) != n {
		t.Errorf("%d flows begin at %d different times", n, len(seen))
	}
}
