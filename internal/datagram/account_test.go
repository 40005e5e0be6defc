package datagram

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func arrive(a *Account, seq ...uint64) {
	for _, s := range seq {
		a.Arrive(s)
	}
}

// The table of spec protocol §8.1, made with hand-made datagrams against 3.12 and 3.21.
func TestCompatTable(t *testing.T) {
	for _, c := range []struct {
		seq           []uint64
		packets, lost int64
		outOfOrder    int64
		distinct      int64
	}{
		{[]uint64{1, 2, 5, 6}, 6, 2, 0, 4},
		{[]uint64{1, 3, 2, 4}, 4, 0, 1, 4},
		{[]uint64{1, 2, 2, 3}, 3, 0, 1, 3},
		{[]uint64{3, 4}, 4, 2, 0, 2},
		{[]uint64{1, 2, 1}, 2, 0, 1, 2},
	} {
		for _, wide := range []bool{false, true} {
			a := New(wide)
			arrive(a, c.seq...)
			got := a.Counts()
			if got.Highest != c.packets || got.CompatLost != c.lost || got.CompatOutOfOrder != c.outOfOrder || got.First != c.distinct {
				t.Errorf("wide %v, %v: %+v", wide, c.seq, got)
			}
		}
	}
}

// A duplicate of a datagram takes back a loss in iperf3's arithmetic, but never below 0;
// ours stays right.
func TestDuplicateHidesLossOnlyInCompat(t *testing.T) {
	a := New(true)
	arrive(a, 1, 3, 3, 3, 3)
	want := Counts{First: 2, Duplicates: 3, Highest: 3, CompatLost: 0, CompatOutOfOrder: 3}
	if diff := cmp.Diff(want, a.Counts()); diff != "" {
		t.Error(diff)
	}
	if l := Loss(3, a.Counts()); l.Lost != 1 {
		t.Errorf("lost %d, want 1", l.Lost)
	}
}

// F03: 1, then 0xFFFFFFCE … 0xFFFFFFFF, then 0 … 49.
func TestWrapF03(t *testing.T) {
	a := New(false)
	arrive(a, 1)
	for s := uint64(0xFFFFFFCE); s <= 0xFFFFFFFF; s++ {
		arrive(a, s)
	}
	before := a.Counts()
	if want := (Counts{First: 51, Highest: 0xFFFFFFFF, CompatLost: 0xFFFFFFCE - 2}); before != want {
		t.Errorf("before the wrap: %+v, want %+v", before, want)
	}
	for s := range uint64(50) {
		if got := a.Arrive(s); got != First {
			t.Fatalf("%d after the wrap is %v", s, got)
		}
	}
	d := a.Counts().Since(before)
	if d.First != 50 || d.CompatLost != 0 || d.CompatOutOfOrder != 0 || d.Reordered != 0 || d.Highest != 1<<32+49 {
		t.Errorf("after the wrap: %+v", d)
	}
	if l := Loss(50, d); l.Lost != 0 || l.Tail != 0 {
		t.Errorf("loss after the wrap: %+v", l)
	}
}

// Streams that begin just below a boundary and run over it, with a loss, a duplicate and
// a swap on each side.
func TestBoundaries(t *testing.T) {
	for _, edge := range []uint64{1 << 31, 1 << 32, 3 << 31, 1 << 33, 1 << 40} {
		for _, wide := range []bool{false, true} {
			first := edge - 200
			a := NewAt(wide, first)
			put := func(s uint64) Arrival {
				if !wide {
					s &= 0xFFFFFFFF
				}
				return a.Arrive(s)
			}
			n := int64(0)
			for s := first; s < edge+200; s++ {
				switch s - first {
				case 100, 300: // lost
				case 150, 350: // swapped with the one before
				default:
					n++
					if got := put(s); got != First {
						t.Fatalf("edge %#x wide %v: %#x is %v", edge, wide, s, got)
					}
				}
				if d := s - first; d == 151 || d == 351 {
					n++
					if got := put(s - 1); got != Reordered {
						t.Fatalf("%#x is %v", s-1, got)
					}
					if got := put(s - 1); got != Duplicate {
						t.Fatalf("%#x again is %v", s-1, got)
					}
				}
			}
			got := a.Counts()
			want := Counts{
				First: n, Duplicates: 2, Reordered: 2, MaxExtent: 1, Highest: int64(edge + 199), Base: int64(first - 1),
				CompatLost: 0, CompatOutOfOrder: 4,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("edge %#x wide %v: %s", edge, wide, diff)
			}
			if l := Loss(400, got); l.Lost != 2 || l.Tail != 0 {
				t.Errorf("edge %#x wide %v: %+v", edge, wide, l)
			}
			if p := a.Periods(400); p == nil || p.Runs != 2 || p.Longest != 1 {
				t.Errorf("edge %#x wide %v: %+v", edge, wide, p)
			}
		}
	}
}

// In fast motion: three wraps of the 32-bit counter, one datagram in 2^20 of each.
func TestLongRun(t *testing.T) {
	a := newAccount(false, 1, 64) // each jump empties the window: a small one is as good
	a.Arrive(1)
	const step = 1 << 20
	n := int64(1)
	for s := uint64(step); s < 3<<32; s += step {
		if got := a.Arrive(s & 0xFFFFFFFF); got != First {
			t.Fatalf("%#x is %v", s, got)
		}
		n++
	}
	c := a.Counts()
	if want := int64(3<<32 - step); c.First != n || c.Highest != want || c.CompatLost != want-n || c.CompatOutOfOrder != 0 {
		t.Errorf("%+v", c)
	}
	p := a.Periods(c.Highest)
	if p.Runs != n-1 || p.Longest != step-1 {
		t.Errorf("%+v", p)
	}
}

// One datagram far ahead is noise; two are an outage.
func TestFarJump(t *testing.T) {
	a := New(true)
	arrive(a, 1, 2)
	if got := a.Arrive(1 << 25); got != Foreign {
		t.Fatalf("far ahead alone is %v", got)
	}
	arrive(a, 3, 4)
	if c := a.Counts(); c != (Counts{First: 4, Highest: 4, Foreign: 1}) {
		t.Errorf("after noise: %+v", c)
	}
	if got := a.Arrive(1<<25 + 1); got != First {
		t.Fatalf("its neighbour is %v", got)
	}
	if c := a.Counts(); c != (Counts{First: 6, Highest: 1<<25 + 1, CompatLost: 1<<25 - 5}) {
		t.Errorf("confirmed: %+v", c)
	}
	// In the other order the first one is reordered.
	b := New(true)
	arrive(b, 1, 1<<25+1)
	if got := b.Arrive(1 << 25); got != Reordered {
		t.Errorf("the one below is %v", got)
	}
	if c := b.Counts(); c != (Counts{First: 3, Highest: 1<<25 + 1, CompatLost: 1<<25 - 2, Reordered: 1, MaxExtent: 1, CompatOutOfOrder: 1}) {
		t.Errorf("reordered: %+v", c)
	}
	for _, s := range []uint64{0, 1<<63 + 5, 1<<63 + 6, ^uint64(0), 1 << 60, 1<<60 + 1} {
		if got := b.Arrive(s); got != Foreign {
			t.Errorf("%#x is %v", s, got)
		}
	}
}

// Numbers of the measured time only, in pattern and extent.
func TestMark(t *testing.T) {
	a := New(true)
	arrive(a, 1, 4, 3, 6) // 2 and 5 are missing
	before := a.Counts()
	if before.MaxExtent != 1 {
		t.Errorf("extent %d", before.MaxExtent)
	}
	a.Mark()
	if p := a.Periods(0); p != nil {
		t.Errorf("pattern at the mark: %+v", p)
	}
	arrive(a, 5, 8, 9)
	p := a.Periods(4)
	if p == nil || p.Runs != 2 || p.Longest != 1 || p.GoodToBad != 0.5 || p.BadToGood != 1 {
		t.Errorf("pattern since: %+v", p)
	}
	d := a.Counts().Since(before)
	if d.First != 3 || d.Base != 6 || d.Highest != 9 {
		t.Errorf("counts since: %+v", d)
	}
}

func TestSnapshot(t *testing.T) {
	a := New(true)
	arrive(a, 1, 2)
	if c := a.Snapshot(); c.First != 0 {
		t.Errorf("not yet published: %+v", c)
	}
	a.Publish()
	if c := a.Snapshot(); c.First != 2 {
		t.Errorf("published: %+v", c)
	}
}

// model is what Account does, the slow and obvious way.
type model struct {
	window int64
	seen   map[int64]bool
	order  []int64 // distinct arrivals in their order
	high   int64
	taken  int64 // late ones that count for missing ones
	c      Counts
}

func (m *model) arrive(s int64) Arrival {
	if s > m.high {
		m.c.CompatLost += s - m.high - 1
	} else {
		m.c.CompatOutOfOrder++
		m.c.CompatLost = max(0, m.c.CompatLost-1)
		if m.high-s >= m.window {
			m.c.Late++
			// Those that left the window unseen.
			missing := m.high - m.window
			for q := range m.seen {
				if q <= m.high-m.window {
					missing--
				}
			}
			if missing > m.taken {
				m.taken++
				m.order = append(m.order, -1)
				m.c.First++
			}
			return Late
		}
		if m.seen[s] {
			m.c.Duplicates++
			return Duplicate
		}
	}
	kind := First
	if s < m.high {
		kind = Reordered
		m.c.Reordered++
		for j, o := range m.order {
			if o > s {
				m.c.MaxExtent = max(m.c.MaxExtent, int64(len(m.order)-j))
				break
			}
		}
	}
	m.seen[s] = true
	m.order = append(m.order, s)
	m.c.First++
	m.high = max(m.high, s)
	m.c.Highest = m.high
	return kind
}

type runs struct {
	Runs, Longest, Missing                      int64
	goodGood, goodBad, badGood, badBad          int64
	MeanLength, Conditional, GoodToBad, BadGood float64
}

func (m *model) pattern(sent int64) runs {
	var r runs
	run := int64(0)
	last := max(sent, m.high)
	for q := int64(1); q <= last; q++ {
		ok := m.seen[q]
		if ok {
			run = 0
		} else {
			if run == 0 {
				r.Runs++
			}
			run++
			r.Missing++
			r.Longest = max(r.Longest, run)
		}
		if q > 1 {
			before := m.seen[q-1]
			switch {
			case before && ok:
				r.goodGood++
			case before:
				r.goodBad++
			case ok:
				r.badGood++
			default:
				r.badBad++
			}
		}
	}
	return r
}

// TestAgainstModel: any mixture of loss, duplicates, reordering and outages counts as
// in the model, through a window of 64 that is slid over many times.
func TestAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.SampledFrom([]int{64, 128, 512}).Draw(t, "window")
		wide := rapid.Bool().Draw(t, "wide")
		a := newAccount(wide, 1, window)
		m := &model{window: int64(window), seen: map[int64]bool{}}
		n := rapid.IntRange(1, 600).Draw(t, "n")
		next := int64(0)
		for range n {
			var s int64
			switch rapid.IntRange(0, 19).Draw(t, "what") {
			case 0, 1, 2: // loss
				next += rapid.Int64Range(2, 5).Draw(t, "gap")
				s = next
			case 3: // an outage
				next += rapid.Int64Range(1, int64(3*window)).Draw(t, "outage")
				s = next
			case 4, 5, 6, 7: // one from before
				s = max(1, next-rapid.Int64Range(0, 20).Draw(t, "back"))
				next = max(next, s)
			case 8: // one from long before
				s = max(1, next-rapid.Int64Range(0, int64(2*window)).Draw(t, "far back"))
				next = max(next, s)
			default:
				next++
				s = next
			}
			got, want := a.Arrive(uint64(s)), m.arrive(s)
			if got != want {
				t.Fatalf("%d is %v, want %v", s, got, want)
			}
			if diff := cmp.Diff(m.c, a.Counts()); diff != "" {
				t.Fatalf("after %d: %s", s, diff)
			}
		}
		sent := m.high + rapid.SampledFrom([]int64{0, 0, 1, 7, 1000}).Draw(t, "tail")
		got, want := a.Periods(sent), m.pattern(sent)
		if (got == nil) != (want.Missing == 0) {
			t.Fatalf("pattern %+v, missing %d", got, want.Missing)
		}
		if got != nil {
			share := func(a, b int64) float64 {
				if a+b == 0 {
					return 0
				}
				return float64(a) / float64(a+b)
			}
			near := func(what string, got, want float64) {
				if d := got - want; d > 1e-12 || d < -1e-12 {
					t.Fatalf("%s = %v, want %v", what, got, want)
				}
			}
			if got.Runs != want.Runs || got.Longest != want.Longest {
				t.Fatalf("runs %+v, want %+v", got, want)
			}
			near("mean length", got.MeanLength, float64(want.Missing)/float64(want.Runs))
			near("good to bad", got.GoodToBad, share(want.goodBad, want.goodGood))
			near("bad to good", got.BadToGood, share(want.badGood, want.badBad))
			near("conditional", got.Conditional, share(want.badBad, want.badGood))
		}
		l := Loss(sent, a.Counts())
		if l.Lost < 0 || l.Lost > sent || l.Ratio < 0 || l.Ratio > 1 || l.Low > l.Ratio || l.High < l.Ratio || l.Tail < 0 || l.Tail > l.Lost {
			t.Fatalf("loss %+v", l)
		}
		if c := a.Counts(); c.First+l.Lost != sent {
			t.Fatalf("%d received + %d lost of %d", c.First, l.Lost, sent)
		}
	})
}

func TestNoAllocation(t *testing.T) {
	a := New(false)
	s := uint64(0)
	a.Arrive(1)
	a.Arrive(3) // what the first gap allocates
	got := testing.AllocsPerRun(1000, func() {
		s += 7
		for i := range uint64(5) {
			a.Arrive(s + i)
		}
		a.Arrive(s + 2)
		a.Publish()
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func FuzzArrive(f *testing.F) {
	f.Add(false, []byte{1, 2, 5, 6})
	f.Add(true, []byte{1, 3, 2, 4, 255, 0, 0})
	f.Fuzz(func(t *testing.T, wide bool, data []byte) {
		a := New(wide)
		s := uint64(0)
		n := int64(0)
		for i := 0; i < len(data); i++ {
			// Small steps, and now and then a wild one.
			switch b := data[i]; {
			case b < 200:
				s += uint64(b) - 60
			default:
				s += 1<<(b&63) + uint64(b)
			}
			a.Arrive(s)
			n++
			c := a.Counts()
			if c.CompatLost < 0 || c.First < 0 || c.Highest < 0 || c.Foreign < 0 || c.MaxExtent < 0 ||
				c.First+c.Duplicates+c.Foreign > n || c.First > c.Highest || c.First > n {
				t.Fatalf("after %d: %+v", s, c)
			}
		}
		c := a.Counts()
		l := Loss(c.Highest, c)
		if l.Lost < 0 || l.Ratio > 1 || l.Lost+c.First != c.Highest {
			t.Fatalf("%+v of %+v", l, c)
		}
		if p := a.Periods(c.Highest); p != nil && (p.Runs < 1 || p.Longest < 1 || p.MeanLength < 1) {
			t.Fatalf("%+v", p)
		}
	})
}

func BenchmarkArrive(b *testing.B) {
	b.Run("in order", func(b *testing.B) {
		a := New(false)
		for i := range b.N {
			a.Arrive(uint64(i + 1))
		}
	})
	b.Run("1 of 10 lost", func(b *testing.B) {
		a := New(false)
		s := uint64(0)
		for i := range b.N {
			s++
			if i%9 == 0 {
				s++
			}
			a.Arrive(s)
		}
	})
	b.Run("swapped", func(b *testing.B) {
		a := New(false)
		for i := range b.N {
			a.Arrive(uint64(i+1) ^ 1)
		}
	})
}

// A sampler looks while the worker counts: each look is of one moment.
func TestSnapshotMeanwhile(t *testing.T) {
	a := New(true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range uint64(2000) {
			// One of two is lost, so that after each batch the two are the same.
			a.Arrive(4*i + 2)
			a.Arrive(4*i + 4)
			a.Publish()
		}
	}()
	last := int64(0)
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		c := a.Snapshot()
		if c.First != c.CompatLost || c.First < last || c.Highest != 2*c.First {
			t.Fatalf("%+v", c)
		}
		last = c.First
	}
	if last != 4000 {
		t.Errorf("%d at the end", last)
	}
}
