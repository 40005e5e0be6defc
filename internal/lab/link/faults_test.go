package link_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/lab/link"
)

// send offers packets of 1000 bytes, one each ms from 0 on, and returns what becomes of
// them.
func send(t testing.TB, cfg link.Config, packets int) ([]link.Decision, link.Stats) {
	t.Helper()
	l := mustNew(t, cfg)
	out := make([]link.Decision, packets)
	for i := range out {
		out[i] = l.Enqueue(time.Duration(i)*ms, 1000)
	}
	return out, l.Stats()
}

// which returns the numbers of the decisions for which f holds.
func which(ds []link.Decision, f func(link.Decision) bool) (at []int) {
	for i, d := range ds {
		if f(d) {
			at = append(at, i)
		}
	}
	return at
}

func is(d link.Drop) func(link.Decision) bool {
	return func(got link.Decision) bool { return got.Drop == d }
}

func held(d link.Decision) bool  { return d.Held }
func twice(d link.Decision) bool { return d.Twice }

// TestFaultCounts pins the random streams: a change of generator, of seed use or of a
// threshold would change every recorded scenario.
func TestFaultCounts(t *testing.T) {
	tests := []struct {
		name  string
		cfg   link.Faults
		which func(link.Decision) bool
		first []int
		total int
		stats func(link.Stats) link.Count
	}{
		{
			"reorder",
			link.Faults{Reorder: link.Reorder{Share: 0.01, Packets: 3}},
			held,
			[]int{71, 195, 228, 448, 483},
			111, func(s link.Stats) link.Count { return s.Reordered },
		},
		{
			"duplicate",
			link.Faults{Duplicate: 0.01},
			twice,
			[]int{212, 270, 320, 392, 463},
			100, func(s link.Stats) link.Count { return s.Duplicated },
		},
		{
			"bursts",
			link.Faults{Bursts: link.Bursts{GoodToBad: 0.005, BadToGood: 0.3}},
			is(link.DropBurst),
			[]int{75, 76, 224, 225, 226},
			164, func(s link.Stats) link.Count { return s.Burst },
		},
		{
			"outage",
			link.Faults{Outage: link.Outage{At: 2 * time.Second, For: 3 * ms}},
			is(link.DropOutage),
			[]int{2000, 2001, 2002},
			3, func(s link.Stats) link.Count { return s.Outage },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ds, s := send(t, link.Config{Faults: tt.cfg, Seed: 42}, 10_000)
			at := which(ds, tt.which)
			if diff := cmp.Diff(tt.first, at[:min(5, len(at))]); diff != "" || len(at) != tt.total {
				t.Errorf("%d, want %d; the first (-want +got):\n%s", len(at), tt.total, diff)
			}
			want := link.Count{Packets: int64(len(at)), Bytes: int64(len(at)) * 1000}
			if got := tt.stats(s); got != want {
				t.Errorf("counted %+v, want %+v", got, want)
			}
			again, _ := send(t, link.Config{Faults: tt.cfg, Seed: 42, Delay: ms, BitsPerSecond: 1e12}, 10_000)
			if !slices.Equal(at, which(again, tt.which)) {
				t.Error("rate and delay changed whom it meets")
			}
			if tt.name == "outage" {
				return
			}
			if other, _ := send(t, link.Config{Faults: tt.cfg, Seed: 43}, 10_000); slices.Equal(at, which(other, tt.which)) {
				t.Error("another seed decides the same")
			}
		})
	}
}

// TestFaultsApart: whatever else is configured, each fault decides the same about each
// packet.
func TestFaultsApart(t *testing.T) {
	const packets = 1200
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		jitter := link.Jitter{Least: ms, Most: 5 * ms}
		all := link.Config{Seed: seed, Loss: 0.02, Faults: link.Faults{
			Jitter: jitter, Reorder: link.Reorder{Share: 0.05, Packets: 2}, Duplicate: 0.05,
			Bursts: link.Bursts{GoodToBad: 0.01, BadToGood: 0.2}, Outage: link.Outage{At: time.Second, For: 100 * ms},
		}}
		together, s := send(t, all, packets)
		alone := func(f link.Faults, loss float64) []link.Decision {
			ds, _ := send(t, link.Config{Seed: seed, Loss: loss, Faults: f}, packets)
			return ds
		}
		loss := alone(link.Faults{}, all.Loss)
		reorder := alone(link.Faults{Reorder: all.Reorder}, 0)
		copies := alone(link.Faults{Duplicate: all.Duplicate}, 0)
		bursts := alone(link.Faults{Bursts: all.Bursts}, 0)
		jittered := alone(link.Faults{Jitter: jitter}, 0)
		for i, d := range together {
			want := link.Delivered
			switch {
			case i >= 1000 && i < 1100:
				want = link.DropOutage
			case bursts[i].Drop == link.DropBurst:
				want = link.DropBurst
			case loss[i].Drop == link.DropLoss:
				want = link.DropLoss
			}
			if d.Drop != want {
				rt.Fatalf("packet %d: %v, want %v", i, d.Drop, want)
			}
			if d.Drop == link.Delivered && (d.Held != reorder[i].Held || d.Twice != copies[i].Twice || d.Arrival != jittered[i].Arrival) {
				rt.Fatalf("packet %d: %+v; alone: %+v, %+v, %+v", i, d, reorder[i], copies[i], jittered[i])
			}
		}
		if sum := s.Delivered.Packets + s.Queue.Packets + s.Loss.Packets + s.Burst.Packets + s.Outage.Packets + s.Hole.Packets; sum != packets ||
			s.Duplicated.Packets != int64(len(which(together, twice))) || s.Reordered.Packets != int64(len(which(together, held))) {
			rt.Fatalf("counts do not add up: %+v", s)
		}
	})
}

// TestJitter: each packet's extra delay is even between the bounds, in 40 classes.
func TestJitter(t *testing.T) {
	const packets, classes = 200_000, 40
	j := link.Jitter{Least: ms, Most: 5*ms - 1}
	ds, _ := send(t, link.Config{Seed: 9, Delay: 7 * ms, Faults: link.Faults{Jitter: j}}, packets)
	var count [classes]float64
	overtaken := 0
	for i, d := range ds {
		extra := d.Arrival - d.Departure - 7*ms
		if extra < j.Least || extra > j.Most {
			t.Fatalf("packet %d: %v", i, extra)
		}
		count[(extra-j.Least)*classes/(j.Most-j.Least+1)]++
		if i > 0 && d.Arrival < ds[i-1].Arrival {
			overtaken++
		}
	}
	const want = packets / classes
	for c, n := range count {
		if math.Abs(n-want) > 5*math.Sqrt(want) {
			t.Errorf("class %d: %v packets, want %d", c, n, want)
		}
	}
	// Two neighbours at 1 ms cross when their draws from 4 ms differ by more: (3/4)²/2.
	if share := float64(overtaken) / packets; math.Abs(share-9.0/32) > 0.005 {
		t.Errorf("%.3f of the packets overtake the one before, want 0.281", share)
	}

	j.KeepOrder = true
	kept, _ := send(t, link.Config{Seed: 9, Delay: 7 * ms, Faults: link.Faults{Jitter: j}}, packets)
	last := time.Duration(0)
	for i, d := range kept {
		if want := max(last, ds[i].Arrival); d.Arrival != want {
			t.Fatalf("packet %d arrives at %v, want %v: its own time, or that of the one before", i, d.Arrival, want)
		}
		last = d.Arrival
	}
	// A fixed extra delay is no jitter.
	fixed, _ := send(t, link.Config{Faults: link.Faults{Jitter: link.Jitter{Least: ms, Most: ms}}}, 10)
	for i, d := range fixed {
		if d.Arrival != d.Departure+ms {
			t.Errorf("packet %d: %+v", i, d)
		}
	}
}

// TestBursts: runs are as long, and as often, as the two probabilities say.
func TestBursts(t *testing.T) {
	const packets = 100_000
	for _, b := range []link.Bursts{{0.001, 0.3}, {0.05, 0.5}, {0.2, 1}, {1, 0.25}, {1, 1}, {0.3, 0}} {
		ds, s := send(t, link.Config{Seed: 5, Faults: link.Faults{Bursts: b}}, packets)
		good, bad, toBad, toGood := 0.0, 0.0, 0.0, 0.0
		was := false
		for _, d := range ds {
			is := d.Drop == link.DropBurst
			switch {
			case was && is:
				bad++
			case was:
				bad++
				toGood++
			case is:
				good++
				toBad++
			default:
				good++
			}
			was = is
		}
		within := func(what string, n, of, p float64) {
			if math.Abs(n-of*p) > 5*math.Sqrt(of*p*(1-p)) {
				t.Errorf("%+v: %s %v of %v, want %v", b, what, n, of, p)
			}
		}
		within("from good to bad", toBad, good, b.GoodToBad)
		within("from bad to good", toGood, bad, b.BadToGood)
		if s.Burst.Packets+s.Delivered.Packets != packets {
			t.Errorf("counts do not add up: %+v", s)
		}
	}
}

// TestOutage: exactly what leaves the serialiser within the time is lost, counted from
// the first packet or from the start.
func TestOutage(t *testing.T) {
	outage := link.Outage{At: 10 * ms, For: 5 * ms}
	lost := func(outage link.Outage, rate int64) []int {
		l := mustNew(t, link.Config{BitsPerSecond: rate, Faults: link.Faults{Outage: outage}})
		l.Begin(100 * ms)
		var at []int
		for i := range 40 {
			if l.Enqueue(107*ms+time.Duration(i)*ms, 1000).Drop == link.DropOutage {
				at = append(at, i)
			}
		}
		return at
	}
	if diff := cmp.Diff([]int{10, 11, 12, 13, 14}, lost(outage, 0)); diff != "" {
		t.Errorf("from the first packet (-want +got):\n%s", diff)
	}
	// 1000 bytes at 8 Mbit/s take 1 ms: each leaves when the next comes.
	if diff := cmp.Diff([]int{9, 10, 11, 12, 13}, lost(outage, 8e6)); diff != "" {
		t.Errorf("from the first packet, by departure (-want +got):\n%s", diff)
	}
	outage.FromStart = true
	if diff := cmp.Diff([]int{3, 4, 5, 6, 7}, lost(outage, 0)); diff != "" {
		t.Errorf("from the start (-want +got):\n%s", diff)
	}
}

// TestHole: what is larger vanishes, whatever else would happen to it.
func TestHole(t *testing.T) {
	l := mustNew(t, link.Config{Loss: 1, Faults: link.Faults{Hole: 1300}})
	for size, want := range map[int]link.Drop{1300: link.DropLoss, 1301: link.DropHole, 65535: link.DropHole, 1: link.DropLoss} {
		if got := l.Enqueue(0, size).Drop; got != want {
			t.Errorf("%d bytes: %v, want %v", size, got, want)
		}
	}
	if s := l.Stats(); s.Hole != (link.Count{Packets: 2, Bytes: 1301 + 65535}) || s.Loss.Packets != 2 {
		t.Errorf("counted %+v", s)
	}
}

// TestSpared: a packet that is spared meets no fault and does not change that of others,
// but takes its share of the rate.
func TestSpared(t *testing.T) {
	cfg := link.Config{
		BitsPerSecond: 8e9, Delay: 3 * ms, Loss: 0.1, Seed: 3, // a byte takes 1 ns
		Faults: link.Faults{
			Jitter: link.Jitter{Most: 4 * ms, KeepOrder: true}, Reorder: link.Reorder{Share: 0.1, Time: 9 * ms}, Duplicate: 0.1,
			Bursts: link.Bursts{GoodToBad: 0.1, BadToGood: 0.1}, Outage: link.Outage{At: 500 * ms, For: 50 * ms}, Hole: 1200,
		},
	}
	want, _ := send(t, cfg, 1000)
	l := mustNew(t, cfg)
	for i := range want {
		now := time.Duration(i) * ms
		got := l.Enqueue(now, 1000)
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Fatalf("packet %d (-alone +among spared ones):\n%s", i, diff)
		}
		d := l.EnqueueSpared(now, 1500)
		if wantSpared := (link.Decision{Departure: now + 2500, Arrival: now + 2500 + 3*ms, Spared: true}); d != wantSpared {
			t.Fatalf("spared packet %d: %+v, want %+v", i, d, wantSpared)
		}
	}
}

func TestValidateFaults(t *testing.T) {
	_, err := link.New(link.Config{Faults: link.Faults{
		Jitter: link.Jitter{Least: 2, Most: 1}, Reorder: link.Reorder{Share: 1.5, Packets: 1001, Time: -1},
		Bursts: link.Bursts{GoodToBad: math.NaN(), BadToGood: -1}, Outage: link.Outage{At: -1}, Duplicate: 2, Hole: 65536,
	}})
	if err == nil {
		t.Fatal("accepted nonsense")
	}
	want := []string{
		"link: jitter from 2ns to 1ns is not within 0..1m0s",
		"link: reorder share 1.5 is outside 0..1",
		"link: reorder by 1001 packets is outside 0..1000",
		"link: reorder by -1ns is outside 0..1m0s",
		"link: reorder needs either a number of packets or a time",
		"link: probability of a burst NaN is outside 0..1",
		"link: probability of a burst's end -1 is outside 0..1",
		"link: duplicate 2 is outside 0..1",
		"link: outage at -1ns for 0s is negative",
		"link: hole above 65536 is outside 0..65535",
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if _, err := link.New(link.Config{Faults: link.Faults{Reorder: link.Reorder{Share: 0.1}}}); err == nil {
		t.Error("accepted a reordering by nothing")
	}
}
