package link_test

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/lab/link"
)

// arrival is one packet given out by a wire.
type arrival struct {
	N   int
	Due time.Duration
}

// drain takes all that arrives by now.
func drain(w *link.Wire[int], now time.Duration) (out []arrival) {
	for {
		n, due, _, ok := w.Pop(now)
		if !ok {
			return out
		}
		out = append(out, arrival{n, due})
	}
}

const never = time.Duration(math.MaxInt64)

// TestWireOrder gives small cases that can be checked by hand.
func TestWireOrder(t *testing.T) {
	at := func(due time.Duration) link.Decision { return link.Decision{Arrival: due} }
	behind := func(due time.Duration, n int) link.Decision {
		return link.Decision{Arrival: due, Held: true, Behind: n, Latest: due + 100}
	}
	tests := []struct {
		name string
		in   []link.Decision
		want []arrival
	}{
		{"as added", []link.Decision{at(1), at(2), at(2), at(3)}, []arrival{{0, 1}, {1, 2}, {2, 2}, {3, 3}}},
		{"by time", []link.Decision{at(9), at(4), at(6), at(5), at(4)}, []arrival{{1, 4}, {4, 4}, {3, 5}, {2, 6}, {0, 9}}},
		{"held back by time", []link.Decision{{Arrival: 7, Held: true}, at(2), at(6), at(8)}, []arrival{{1, 2}, {2, 6}, {0, 7}, {3, 8}}},
		{
			"held back until two have passed",
			[]link.Decision{at(1), behind(2, 2), at(3), at(4), at(5)},
			[]arrival{{0, 1}, {2, 3}, {3, 4}, {1, 4}, {4, 5}},
		},
		{
			"those that come at the same moment come behind it",
			[]link.Decision{behind(1, 1), at(1), at(1), at(1)},
			[]arrival{{1, 1}, {0, 1}, {2, 1}, {3, 1}},
		},
		{
			"the held do not pass the held",
			[]link.Decision{behind(1, 1), behind(2, 1), at(3), at(4)},
			[]arrival{{2, 3}, {0, 3}, {1, 3}, {3, 4}},
		},
		{
			"neither do the spared, nor what is held by time",
			[]link.Decision{behind(1, 1), {Arrival: 2, Spared: true}, {Arrival: 3, Held: true}, at(4)},
			[]arrival{{1, 2}, {2, 3}, {3, 4}, {0, 4}},
		},
		{"nobody comes", []link.Decision{at(1), behind(2, 1), behind(3, 2)}, []arrival{{0, 1}, {1, 102}, {2, 103}}},
		{"who comes too late does not count", []link.Decision{behind(2, 1), at(500)}, []arrival{{0, 102}, {1, 500}}},
		{"not before its own time", []link.Decision{behind(9, 1), at(4), at(8), at(10)}, []arrival{{1, 4}, {2, 8}, {0, 9}, {3, 10}}},
		{"a copy is right behind", []link.Decision{{Arrival: 1, Twice: true}, at(1), {Arrival: 0, Twice: true}}, []arrival{{2, 0}, {2, 0}, {0, 1}, {0, 1}, {1, 1}}},
		{
			"also of what was held back",
			[]link.Decision{{Arrival: 1, Twice: true, Held: true, Behind: 1, Latest: 9}, at(2), at(2)},
			[]arrival{{1, 2}, {0, 2}, {0, 2}, {2, 2}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var w link.Wire[int]
			for i, d := range tt.in {
				w.Add(i, d)
			}
			if w.Len() != len(tt.in) {
				t.Errorf("%d on the wire, want %d", w.Len(), len(tt.in))
			}
			if diff := gocmp.Diff(tt.want, drain(&w, never)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, ok := w.Next(); ok || w.Len() != 0 {
				t.Error("not empty")
			}
		})
	}
}

// TestWireAgain tells the first of two copies from the second.
func TestWireAgain(t *testing.T) {
	var w link.Wire[int]
	w.Add(7, link.Decision{Arrival: 5, Twice: true})
	if _, _, _, ok := w.Pop(4); ok {
		t.Error("arrived early")
	}
	for _, want := range []bool{true, false} {
		if n, due, again, ok := w.Pop(5); n != 7 || due != 5 || again != want || !ok {
			t.Errorf("%d at %d, again %v, %v; want again %v", n, due, again, ok, want)
		}
	}
}

// expected computes the order of arrival from all decisions at once.
func expected(ds []link.Decision) []arrival {
	type key struct {
		due  time.Duration
		n    int // orders equals: the packet that it came with
		held int // behind that one
	}
	type one struct {
		arrival
		key
		copies int
	}
	var all []one
	for i, d := range ds {
		if d.Drop != link.Delivered {
			continue
		}
		o := one{arrival{i, d.Arrival}, key{d.Arrival, i, 0}, 1}
		if d.Twice {
			o.copies = 2
		}
		if d.Behind > 0 {
			o.Due = d.Latest
			o.key = key{d.Latest, math.MaxInt, i}
			left := d.Behind
			for j := i + 1; j < len(ds); j++ {
				if ds[j].Drop != link.Delivered || ds[j].Held || ds[j].Spared {
					continue
				}
				if left--; left > 0 {
					continue
				}
				if due := max(d.Arrival, ds[j].Arrival); due <= d.Latest {
					o.Due = due
					o.key = key{due, j, i + 1}
				}
				break
			}
		}
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b one) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.n, b.n), cmp.Compare(a.held, b.held))
	})
	var out []arrival
	for _, o := range all {
		for range o.copies {
			out = append(out, o.arrival)
		}
	}
	return out
}

// TestWireAgainstModel: however often the wire is looked at while packets are offered,
// they arrive in the order that all decisions together give.
func TestWireAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := link.Config{
			Seed: rapid.Uint64().Draw(t, "seed"), Loss: 0.1, Delay: time.Duration(rapid.IntRange(0, 20).Draw(t, "delay")) * ms,
			Faults: link.Faults{
				Jitter:    link.Jitter{Most: time.Duration(rapid.IntRange(0, 30).Draw(t, "jitter")) * ms, KeepOrder: rapid.Bool().Draw(t, "keep order")},
				Reorder:   link.Reorder{Share: rapid.SampledFrom([]float64{0, 0.1, 0.9}).Draw(t, "reorder")},
				Duplicate: 0.2,
			},
		}
		if rapid.Bool().Draw(t, "by time") {
			cfg.Reorder.Time = 7 * ms
		} else {
			cfg.Reorder.Packets = rapid.IntRange(1, 20).Draw(t, "by packets")
		}
		l, err := link.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var w link.Wire[int]
		var ds []link.Decision
		var got []arrival
		now := time.Duration(0)
		for i := range rapid.IntRange(1, 200).Draw(t, "packets") {
			now += time.Duration(rapid.Int64Range(0, int64(40*ms)).Draw(t, "gap"))
			if rapid.Bool().Draw(t, "look") {
				// What arrives at now may still be overtaken by what is offered now.
				got = append(got, drain(&w, now-1)...)
			}
			d := l.Enqueue(now, 1000)
			ds = append(ds, d)
			if d.Drop == link.Delivered {
				w.Add(i, d)
			}
			if next, ok := w.Next(); ok != (w.Len() > 0) || ok && len(got) > 0 && next < got[len(got)-1].Due {
				t.Fatalf("next arrival %v, %v", next, ok)
			}
		}
		got = append(got, drain(&w, never)...)
		if diff := gocmp.Diff(expected(ds), got); diff != "" {
			t.Fatalf("arrivals (-want +got):\n%s", diff)
		}
	})
}

// TestReorderExact: with constant spacing and nothing else, exactly what was held back
// is reordered by RFC 4737, each by as many packets as asked.
func TestReorderExact(t *testing.T) {
	const packets, by = 20_000, 3
	l := mustNew(t, link.Config{Seed: 21, Delay: 5 * ms, Faults: link.Faults{Reorder: link.Reorder{Share: 0.01, Packets: by}}})
	var w link.Wire[int]
	var order []int
	for i := range packets {
		now := time.Duration(i) * ms
		d := l.Enqueue(now, 100)
		w.Add(i, d)
		for _, a := range drain(&w, now) {
			order = append(order, a.N)
		}
	}
	for _, a := range drain(&w, never) {
		order = append(order, a.N)
	}
	reordered, next := int64(0), 0
	for at, n := range order {
		if n >= next {
			next = n + 1
			continue
		}
		reordered++
		passed := 0 // greater numbers that arrived before
		for _, m := range order[max(0, at-100):at] {
			if m > n {
				passed++
			}
		}
		// Another one that is held back at the same time may be released in between.
		if passed < by || passed > 2*by {
			t.Errorf("packet %d was passed by %d, want %d", n, passed, by)
		}
	}
	if want := l.Stats().Reordered.Packets; reordered != want || want < 150 || len(order) != packets {
		t.Errorf("%d of %d reordered, held back %d", reordered, len(order), want)
	}
}

// TestWireNoAllocation guards the forwarder's per-packet path with every fault on.
func TestWireNoAllocation(t *testing.T) {
	l := mustNew(t, link.Config{BitsPerSecond: 120e6, QueuePackets: 100, Loss: 0.1, Delay: 3 * ms, Faults: link.Faults{
		Jitter: link.Jitter{Most: 4 * ms}, Reorder: link.Reorder{Share: 0.1, Packets: 5}, Duplicate: 0.1,
		Bursts: link.Bursts{GoodToBad: 0.01, BadToGood: 0.2},
	}})
	var w link.Wire[int]
	var now time.Duration
	step := func() {
		now += 90 * us
		if d := l.Enqueue(now, 1500); d.Drop == link.Delivered {
			w.Add(1, d)
		}
		for {
			if _, _, _, ok := w.Pop(now); !ok {
				return
			}
		}
	}
	for range 2000 {
		step()
	}
	if got := testing.AllocsPerRun(10_000, step); got != 0 {
		t.Errorf("%v allocations a packet", got)
	}
}

func BenchmarkWire(b *testing.B) {
	for name, j := range map[string]link.Jitter{"in order": {}, "jitter": {Most: 4 * ms}} {
		b.Run(name, func(b *testing.B) {
			l := mustNew(b, link.Config{BitsPerSecond: 500e6, QueueBytes: 5e6, Delay: 40 * ms, Faults: link.Faults{Jitter: j}})
			var w link.Wire[int]
			var now time.Duration
			for b.Loop() {
				now += 25 * us
				w.Add(1, l.Enqueue(now, 1500))
				for {
					if _, _, _, ok := w.Pop(now); !ok {
						break
					}
				}
			}
		})
	}
}
