package method

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// world is a made-up path.
type world struct {
	rate   float64 // bit/s for all streams together
	flow   float64 // and for each, 0 = none
	rtt    float64 // s
	own    float64 // window that the system's tuning comes to, bytes
	worse  int     // from so many streams on, each more costs 2 %
	cpuAt  int     // from so many streams on a core is full
	little int     // writes below so many bytes halve the rate
}

func (w world) run(s Step) *result.Run {
	if s.Name == idleName {
		return &result.Run{End: result.Client, Probes: []result.Probes{{Kind: "udp-echo", RoundTrip: &result.Quantiles{N: 100, Min: w.rtt, P50: w.rtt}}}}
	}
	n := float64(max(s.Plan.Streams, 1))
	window := w.own
	if s.Plan.Window > 0 {
		window = float64(s.Plan.Window)
	}
	each := window * 8 / w.rtt
	if w.flow > 0 {
		each = min(each, w.flow)
	}
	bps := min(n*each, w.rate)
	if w.worse > 0 && n > float64(w.worse) {
		bps *= math.Pow(0.98, n-float64(w.worse))
	}
	if s.Plan.BlockSize > 0 && s.Plan.BlockSize < w.little {
		bps /= 2
	}
	r := made(result.Direction(s.Plan.Direction), bps)
	if w.cpuAt > 0 && int(n) >= w.cpuAt {
		r.Rows = []result.Interval{{End: result.Client, Stop: 1, Host: &result.HostSample{Cores: []result.CoreShare{{Idle: 0.3}, {Idle: 0.01}}}}}
	}
	return r
}

func names(history []Done) (out []string) {
	for _, d := range history {
		out = append(out, d.Step.Name)
	}
	return out
}

func TestSweepStreams(t *testing.T) {
	w := world{rate: 75e6, flow: 10e6, rtt: 0.01, own: 1e9}
	s := Sweep{Axis: Streams, Direction: result.Up, Settings: []int64{1, 2, 4}, Rounds: 3, Seed: 7}
	history := play(s, 200, w.run)
	a := s.Answer(history)
	// 1, 2, 4, then 8 and 16 while it grows, then what lies between: 6 and 12 beside 8; then 7, below 8.
	if a.Recommended != 8 || a.Carries != 75e6 || !a.Knee.Reached {
		t.Errorf("%+v", a)
	}
	count := map[string]int{}
	for _, n := range names(history) {
		count[n]++
	}
	want := map[string]int{"up-streams-1": 3, "up-streams-2": 3, "up-streams-4": 3, "up-streams-8": 9, "up-streams-16": 3, "up-streams-6": 3, "up-streams-12": 3, "up-streams-7": 3}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Error(diff)
	}
	for round := range 3 { // each setting once a round
		seen := map[string]bool{}
		for _, d := range history[3*round : 3*round+3] {
			seen[d.Step.Name] = true
		}
		if len(seen) != 3 {
			t.Errorf("round %d: %v", round, seen)
		}
	}
}

// The case of the recipes: 12 was best between 8 and 16, and 64 below 16.
func TestSweepFindsTheBestBetweenNeighbours(t *testing.T) {
	w := world{rate: 117e6, flow: 10e6, rtt: 0.01, own: 1e9, worse: 12}
	s := Sweep{Axis: Streams, Direction: result.Up, Rounds: 1}
	a := s.Answer(play(s, 200, w.run))
	if a.Knee.Best != 12 || a.Recommended != 12 {
		t.Errorf("best %v, recommended %d", a.Knee.Best, a.Recommended)
	}
}

// A flat stretch whose best is chance: 5.5 streams fill the path, and 16 read highest. The answer is the
// least that fills it, whichever of the others had luck.
func TestSweepFindsTheLeastOnAPlateau(t *testing.T) {
	for _, lucky := range []int{8, 12, 16} {
		w := world{rate: 55e6, flow: 10e6, rtt: 0.01, own: 1e9}
		s := Sweep{Axis: Streams, Direction: result.Up, Rounds: 1}
		history := play(s, 200, func(st Step) *result.Run {
			r := w.run(st)
			if st.Plan.Streams == lucky {
				return made(result.Up, 55e6*1.015)
			}
			return r
		})
		a := s.Answer(history)
		if a.Recommended != 6 {
			t.Errorf("%d read highest: %d recommended after %v", lucky, a.Recommended, names(history))
		}
		if n := len(history); n > 5+s.Follows() {
			t.Errorf("%d steps, %d were announced and %d more", n, 5, s.Follows())
		}
	}
}

// Whatever the path, no sweep measures more settings than it said before.
func TestSweepKeepsToItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := world{
			rate: rapid.Float64Range(1e6, 1e10).Draw(t, "rate"), rtt: rapid.Float64Range(1e-4, 0.3).Draw(t, "rtt"),
			own: rapid.Float64Range(2e4, 1e8).Draw(t, "own"), worse: rapid.IntRange(0, 40).Draw(t, "worse"),
		}
		w.flow = w.rate / rapid.Float64Range(0.5, 100).Draw(t, "flows")
		noise := rapid.Float64Range(0, 0.2).Draw(t, "noise")
		s := Sweep{Axis: rapid.SampledFrom([]Axis{Streams, Window, Length}).Draw(t, "axis"), Direction: result.Up, Rounds: rapid.IntRange(1, 2).Draw(t, "rounds")}
		if s.Axis == Streams && rapid.Bool().Draw(t, "from above") {
			n := rapid.Int64Range(2, 64).Draw(t, "from")
			s.Settings = []int64{n, 2 * n}
		}
		k := 0
		history := play(s, 400, func(st Step) *result.Run {
			k++
			r := w.run(st)
			for i := range r.Sums {
				bps := *r.Sums[i].Goodput * (1 + noise*math.Sin(float64(k*k)))
				r.Sums[i].Goodput = &bps
			}
			return r
		})
		first, steps := 0, 0
		for _, p := range s.Possible() {
			if p.Name != idleName && !strings.HasSuffix(p.Name, "bottleneck") {
				first++
			}
		}
		for i := range history {
			if _, mine := s.setting(&history[i]); mine {
				steps++
			}
		}
		if most := (first + s.Follows()) * s.Rounds; steps > most {
			t.Fatalf("%d steps, at most %d were announced: %v", steps, most, names(history))
		}
	})
}

// Begun far above what the path needs, it goes down for as long as less does as well.
func TestSweepFromFarAbove(t *testing.T) {
	w := world{rate: 40e6, flow: 50e6, rtt: 0.01, own: 1e9}
	s := Sweep{Axis: Streams, Direction: result.Up, Settings: []int64{16, 32, 64}, Rounds: 1}
	history := play(s, 200, w.run)
	if a := s.Answer(history); a.Recommended != 1 || len(history) != 3+4 {
		t.Errorf("%d recommended after %v", a.Recommended, names(history))
	}
}

// A setting that is measured again in a later wave has as many rounds there as it needs, not all that
// --rounds auto allows.
func TestSweepAutoRefines(t *testing.T) {
	w := world{rate: 55e6, flow: 10e6, rtt: 0.01, own: 1e9}
	s := Sweep{Axis: Streams, Direction: result.Up, Auto: true}
	history := play(s, 400, w.run)
	count := map[int64]int{}
	for i := range history {
		x, _ := s.setting(&history[i])
		count[x]++
	}
	// 8 is best and cheapest; 6 and 12 beside it; then 6 is the cheapest, and 5 lies below.
	want := map[int64]int{1: 3, 2: 3, 4: 3, 8: 6, 16: 3, 6: 6, 12: 3, 5: 3}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Error(diff)
	}
	if a := s.Answer(history); a.Recommended != 6 {
		t.Errorf("%+v", a)
	}
}

// Windows that were named have the system's own as their last row, and the empty path's round trip.
func TestSweepNamedWindows(t *testing.T) {
	w := world{rate: 189e6, rtt: 0.028, own: 65536}
	s := Sweep{Axis: Window, Direction: result.Up, Rounds: 1, Settings: []int64{64 << 10, 256 << 10, 1 << 20}}
	history := play(s, 200, w.run)
	if n := names(history); n[0] != idleName || !slices.Contains(n, "up-window-auto") || slices.Contains(n, "up-window-bottleneck") {
		t.Errorf("%v", n)
	}
	a := s.Answer(history)
	if last := a.Points[len(a.Points)-1]; last.X != 0 {
		t.Errorf("the last row is %+v", last)
	}
	if first := a.Points[0]; math.Abs(first.Predicted-18.725e6) > 0.001e6 {
		t.Errorf("64 KiB allow %v", first.Predicted)
	}
	// 640 KiB, between 256 KiB and the MiB, carry 187 of 189 Mbit/s; 448 KiB, below that, 131
	if a.Recommended < 600<<10 || a.Recommended > 768<<10 {
		t.Errorf("recommended %d of %v", a.Recommended, names(history))
	}
}

// A full core is a host's limit only where nothing else ran there.
func TestSweepBesideOtherPrograms(t *testing.T) {
	for _, c := range []struct {
		foreign bool
		want    string
	}{{false, "this knee is a host's"}, {true, "cannot be told"}} {
		w := world{rate: 40e6, flow: 10e6, rtt: 0.01, own: 1e9, cpuAt: 4}
		s := Sweep{Axis: Streams, Direction: result.Up, Rounds: 1, Fixed: true}
		a := s.Answer(play(s, 200, func(st Step) *result.Run {
			r := w.run(st)
			if c.foreign {
				r.Notices = []result.Notice{{Code: conclude.CompetingLoad, End: result.Client}}
			}
			return r
		}))
		if !strings.Contains(a.Knee.Rejected, c.want) || a.Knee.At != 4 {
			t.Errorf("other programs %v: at %v %q", c.foreign, a.Knee.At, a.Knee.Rejected)
		}
	}
	p := curve([]float64{1, 2, 4, 8}, []float64{40, 40, 40, 40}) // no knee by Kneedle: the marginal one is judged
	p[0].HotCore = 0.99
	if a := Knee(p); a.At != 1 || !strings.Contains(a.Rejected, "a host's") {
		t.Errorf("%+v", a)
	}
	p[0].HotCore, p[0].Retransmits = 0.3, 0.02
	if a := Knee(p); !strings.Contains(a.Rejected, "2.0 % were sent again") || strings.Contains(a.Rejected, "host") {
		t.Errorf("%+v", a)
	}
}

// Begun above the best, it looks below.
func TestSweepFromAbove(t *testing.T) {
	w := world{rate: 40e6, flow: 10e6, rtt: 0.01, own: 1e9, worse: 4}
	s := Sweep{Axis: Streams, Direction: result.Up, Settings: []int64{16, 32, 64}, Rounds: 1}
	history := play(s, 200, w.run)
	if a := s.Answer(history); a.Knee.Best > 8 || !slices.Contains(names(history), "up-streams-4") {
		t.Errorf("best %v of %v", a.Knee.Best, names(history))
	}
}

func TestSweepTellsTheHostsKnee(t *testing.T) {
	w := world{rate: 40e6, flow: 10e6, rtt: 0.01, own: 1e9, cpuAt: 4}
	s := Sweep{Axis: Streams, Direction: result.Up, Rounds: 1, Fixed: true}
	a := s.Answer(play(s, 200, w.run))
	if a.Knee.Knee != 4 || a.Knee.Rejected == "" {
		t.Errorf("%+v", a.Knee)
	}
	if p := a.Points[0]; p.HotCore != -1 || p.CPU != -1 || p.Retransmits != 0 {
		t.Errorf("what is not known: %+v", p)
	}
}

// The golden path of the recipes: 200 Mbit/s × 28 ms = 700,000 bytes; 64 KiB carry 18.725 Mbit/s.
func TestSweepWindow(t *testing.T) {
	w := world{rate: 189e6, rtt: 0.028, own: 65536}
	s := Sweep{Axis: Window, Direction: result.Up, Rounds: 2, Rate: 200e6, Seed: 1}
	history := play(s, 200, w.run)
	a := s.Answer(history)
	if names(history)[0] != idleName {
		t.Errorf("the empty path is not looked at first: %v", names(history))
	}
	if want := int64(700000 / 1024 * 1024); a.Recommended != want {
		t.Errorf("recommended %d, want %d", a.Recommended, want)
	}
	last := a.Points[len(a.Points)-1]
	if last.X != 0 || math.Abs(last.Y-18.725e6) > 0.001e6 || last.Predicted != 0 {
		t.Errorf("the system's own is not last: %+v", last)
	}
	first := a.Points[0]
	if first.X != 174080 || math.Abs(first.Predicted-first.Y) > 1 || math.Abs(first.BufferDelay-(0.03/0.028-1)) > 1e-9 {
		t.Errorf("%+v", first)
	}
	if s.count(history, 1400000/1024*1024) == 0 { // the first round has them all
		t.Errorf("%v", names(history))
	}
}

// Larger windows than two that fill the path are dropped after the first round.
func TestSweepWindowEndsEarly(t *testing.T) {
	w := world{rate: 189e6, rtt: 0.028, own: 65536}
	s := Sweep{Axis: Window, Direction: result.Up, Rounds: 5, Rate: 189e6}
	history := play(s, 200, w.run)
	count := map[int64]int{}
	for i := range history {
		if x, mine := s.setting(&history[i]); mine {
			count[x]++
		}
	}
	var xs []int64
	for x := range count {
		xs = append(xs, x)
	}
	slices.Sort(xs) // 0 (the system's own), then 25, 50, 75, 100, 150, 200 %
	if len(xs) < 7 || count[xs[len(xs)-1]] != 1 || count[xs[1]] != 5 || count[0] != 5 {
		t.Errorf("%v", count)
	}
}

// Where tuning does as well, nothing is to be set.
func TestSweepWindowLeavesItToTheSystem(t *testing.T) {
	w := world{rate: 189e6, rtt: 0.028, own: 4e6}
	s := Sweep{Axis: Window, Direction: result.Down, Rounds: 1, Base: plan.Plan{Streams: 2}}
	history := play(s, 200, w.run)
	if a := s.Answer(history); a.Recommended != 0 || a.Carries != 189e6 || !a.Known {
		t.Errorf("%+v", a)
	}
	if n := names(history); n[0] != idleName || n[1] != "down-window-bottleneck" {
		t.Errorf("%v", n)
	}
	if p := history[2].Step.Plan; p.Streams != 2 || p.Direction != plan.Down {
		t.Errorf("what is held fixed was not: %+v", p)
	}
}

func TestSweepEndsWhereNothingBegins(t *testing.T) {
	s := Sweep{Axis: Streams, Direction: result.Up}
	first, _ := s.Next(nil)
	if step, more := s.Next([]Done{{Step: first, Err: &result.Error{Code: "connect"}}}); more {
		t.Errorf("went on with %s", step.Name)
	}
	if a := s.Answer(nil); a.Known || a.Recommended != 0 {
		t.Errorf("%+v", a)
	}
}

func TestSweepAuto(t *testing.T) {
	s := Sweep{Axis: Streams, Direction: result.Up, Auto: true, Fixed: true, Settings: []int64{1, 2}}
	n := 0
	history := play(s, 200, func(st Step) *result.Run {
		n++
		if st.Plan.Streams == 2 { // never settles
			return made(result.Up, 1e6*float64(1+n%7))
		}
		return made(result.Up, 10e6)
	})
	if one, two := s.count(history, 1), s.count(history, 2); one != LeastRounds || two != MostRounds {
		t.Errorf("%d and %d rounds", one, two)
	}
}

func TestAdaptiveShort(t *testing.T) {
	// 5 ms: the system's window carries a quarter; with 1 MiB one stream fills it.
	w := world{rate: 400e6, rtt: 0.005, own: 65536}
	a := Adaptive{Direction: result.Up, Rounds: 1}
	history := play(a, 200, w.run)
	got := a.Answer(history)
	if got.Carries != 400e6 || !got.Known {
		t.Errorf("%+v of %v", got, names(history))
	}
	parts := a.Parts(history)
	if len(parts) < 2 || parts[0].Axis != Streams || parts[1].Axis != Window || parts[1].Base.Streams != 4 {
		t.Errorf("%d parts, %+v", len(parts), parts)
	}
}

func TestAdaptiveLong(t *testing.T) {
	w := world{rate: 200e6, rtt: 0.08, own: 65536, little: 30 << 10}
	a := Adaptive{Direction: result.Down, Rounds: 1}
	history := play(a, 200, w.run)
	got := a.Answer(history)
	if got.Window < 1900000 || got.Streams != 1 || got.Carries < 0.97*200e6 || got.Length != 32<<10 {
		t.Errorf("%+v", got)
	}
	var axes []Axis
	for _, p := range a.Parts(history) {
		axes = append(axes, p.Axis)
	}
	if !cmp.Equal(axes, []Axis{Window, Streams, Length}) {
		t.Errorf("%v", axes)
	}
}

// Whatever the path, a sweep ends, names what it measured, and says of a replayed history what it
// said before.
func TestSweepProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := world{
			rate: rapid.Float64Range(1e6, 1e10).Draw(t, "rate"), rtt: rapid.Float64Range(1e-4, 0.3).Draw(t, "rtt"),
			own: rapid.Float64Range(2e4, 1e8).Draw(t, "own"), worse: rapid.IntRange(0, 40).Draw(t, "worse"),
		}
		if rapid.Bool().Draw(t, "limited") {
			w.flow = w.rate / rapid.Float64Range(1, 30).Draw(t, "flows")
		}
		axis := rapid.SampledFrom([]Axis{Streams, Window, Length}).Draw(t, "axis")
		s := Sweep{Axis: axis, Direction: result.Up, Rounds: rapid.IntRange(1, 2).Draw(t, "rounds"), Seed: rapid.Uint64().Draw(t, "seed")}
		history := play(s, 400, w.run)
		a := s.Answer(history)
		best := 0.0
		found := false
		for _, p := range a.Points {
			best = max(best, p.Y)
			found = found || int64(p.X) == a.Recommended
		}
		if !a.Known || !found || a.Carries < 0.97*best {
			t.Fatalf("%+v", a)
		}
		for i := 0; i < len(history); i += 9 { // Next is a function of the history
			if step, more := s.Next(history[:i]); !more || step.Name != history[i].Step.Name {
				t.Fatalf("step %d was %s, is %s", i, history[i].Step.Name, step.Name)
			}
		}
	})
}

func TestSweepPossible(t *testing.T) {
	var got []string
	for _, s := range (Sweep{Axis: Window, Direction: result.Up}).Possible() {
		got = append(got, fmt.Sprint(s.Title))
	}
	if len(got) != 9 || got[0] != "empty path" || got[1] != "8 streams up" {
		t.Errorf("%q", got)
	}
	if n := len((Sweep{Axis: Streams, Direction: result.Up}).Possible()); n != 5 {
		t.Errorf("%d steps", n)
	}
	if d := (Sweep{Axis: Streams, Direction: result.Up}).Possible()[0].Plan.Duration; d != 10*time.Second {
		t.Errorf("%v", d)
	}
}
