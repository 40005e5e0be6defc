package method

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/bdp"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// Axis is what a sweep varies.
type Axis string

// The axes.
const (
	Streams Axis = "streams" // M-KNEE
	Window  Axis = "window"  // M-WSCAN; setting 0 is the system's own tuning
	Length  Axis = "length"  // bytes of one write
)

// Sweep plays one setting after the other: all of them once a round, in random order, the rest of
// the plan held fixed. It goes further while the rate still grows, and afterwards between the
// neighbours of the best and below the cheapest setting that does as well.
type Sweep struct {
	Axis      Axis
	Series    string // begins the steps' names where one axis comes twice; "" = Axis
	Direction result.Direction
	Base      plan.Plan // what is held fixed
	Settings  []int64   // nil = the axis's own
	Fractions []float64 // windows as shares of the bandwidth-delay product; nil = M-WSCAN's
	Rounds    int       // 0 = LeastRounds
	Auto      bool      // rounds until the figures settle
	Fixed     bool      // only these settings: no extension, no refinement
	Most      int64     // never more than this; 0 = the axis's own bound
	Seed      uint64
	Pause     time.Duration
	// Rate is the bottleneck, payload bit/s, for windows; 0 = it is measured first.
	Rate float64
}

// bottleneckStreams measure what the path carries where nobody said it.
const bottleneckStreams = 8

// Constants of M-WSCAN: two following windows whose rates differ by less than scanFlat, at more than
// scanFull of what the path carries, make larger ones needless.
const (
	scanFlat = 0.02
	scanFull = 0.95
)

// idleSpacing and idleSize are of the probes on the empty path.
const (
	idleSpacing = 10 * time.Millisecond
	idleSize    = 64
	idleName    = "idle"
)

func (s Sweep) filled() Sweep {
	if s.Series == "" {
		s.Series = string(s.Axis)
	}
	if s.Rounds == 0 {
		s.Rounds = LeastRounds
	}
	if s.Auto {
		s.Rounds = MostRounds
	}
	if s.Base.Duration == 0 && s.Base.Bytes == 0 {
		s.Base.Duration = 10 * time.Second
	}
	if s.Most == 0 {
		s.Most = map[Axis]int64{Streams: plan.MaxStreams, Window: plan.MaxWindow, Length: plan.MaxBlockSize}[s.Axis]
	}
	return s
}

// IdleStep is the look at the empty path: small datagrams for d.
func IdleStep(d time.Duration) Step {
	return Step{
		Name: idleName, Title: "empty path", Why: "the round trip without load",
		Volume: int64(2 * idleSize * d / idleSpacing),
		Plan: plan.Plan{
			Transport: plan.UDP, Direction: plan.Up, Streams: 1, BlockSize: idleSize, RateSet: true,
			Bitrate: int64(idleSize * 8 / idleSpacing.Seconds()), Duration: d,
			Probe: &plan.Probe{Spacing: idleSpacing, Size: idleSize, Profile: idleName, Idle: true},
		},
	}
}

// BaseRTT is the least round trip that was seen: on the empty path, else by the kernels under
// load; 0 = none told.
func BaseRTT(history []Done) time.Duration {
	least := math.Inf(1)
	for _, d := range history {
		if d.Run == nil || d.Step.Name != idleName {
			continue
		}
		for i := range d.Run.Probes {
			p := &d.Run.Probes[i]
			switch {
			case p.RoundTrip != nil && p.RoundTrip.N > 0:
				least = min(least, p.RoundTrip.Min)
			case p.TCPMinRTT != nil:
				least = min(least, *p.TCPMinRTT)
			case p.Connect != nil && p.Connect.N > 0:
				least = min(least, p.Connect.Min)
			}
		}
	}
	if math.IsInf(least, 1) {
		for _, d := range history {
			if d.Run == nil {
				continue
			}
			for i := range d.Run.Streams {
				for _, t := range []*result.TCPSummary{d.Run.Streams[i].TCP, d.Run.Streams[i].RemoteTCP} {
					if t != nil && t.MinRTT > 0 {
						least = min(least, float64(t.MinRTT)/1e6)
					}
				}
			}
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return time.Duration(least * float64(time.Second))
}

// Next implements Method. It ends where a step could not begin.
func (s Sweep) Next(history []Done) (Step, bool) {
	if failed(history) {
		return Step{}, false
	}
	s = s.filled()
	if s.Axis == Window {
		if step, need := s.prepare(history); need {
			return step, true
		}
	}
	settings := s.settings(history)
	base := map[int64]int{} // rounds of each setting in the waves that are over
	number := 0
	play := func(some []int64) (Step, bool) {
		step, more := s.wave(history, some, number, base)
		number++
		return step, more
	}
	if step, more := play(settings); more || s.Fixed {
		return step, more
	}
	for up := 0; ; {
		next, above := s.further(s.pointsOf(history, settings, base), settings, up < s.extensions())
		if next == 0 {
			break
		}
		if above {
			up++
		}
		settings = append(settings, next)
		if step, more := play([]int64{next}); more {
			return step, true
		}
	}
	if s.Axis == Window && len(s.Settings) == 0 { // shares of the product lie close enough
		return Step{}, false
	}
	for turn := range refinements {
		some := s.between(s.pointsOf(history, settings, base), turn)
		if len(some) == 0 {
			break
		}
		if step, more := play(some); more {
			return step, true
		}
		settings = append(settings, some...)
		slices.Sort(settings)
		settings = slices.Compact(settings)
	}
	return Step{}, false
}

// prepare are the steps before a window scan: round trip and, where the windows are shares of the
// product, bottleneck.
func (s Sweep) prepare(history []Done) (Step, bool) {
	if !slices.ContainsFunc(history, func(d Done) bool { return d.Step.Name == idleName }) {
		return IdleStep(time.Second), true
	}
	name := s.name("bottleneck")
	if len(s.Settings) > 0 || s.Rate > 0 || slices.ContainsFunc(history, func(d Done) bool { return d.Step.Name == name }) {
		return Step{}, false
	}
	step := s.step(0)
	step.Name, step.Title, step.Why = name, fmt.Sprintf("%d streams %s", bottleneckStreams, s.Direction), "what the path carries"
	step.Plan.Streams, step.Plan.Window = max(bottleneckStreams, s.Base.Streams), 0
	return step, true
}

// bottleneck is the most that the path is known to carry, payload bit/s.
func (s Sweep) bottleneck(history []Done) float64 {
	most := s.Rate
	for _, d := range history {
		if d.Step.Name == s.name("bottleneck") {
			if g, ok := Goodput(d.Run, s.Direction); ok {
				most = max(most, g)
			}
		}
	}
	return most
}

// leastWindow keeps a scan off windows that hold no packet.
const leastWindow = 4096

// settings are those of the first wave.
func (s Sweep) settings(history []Done) (out []int64) {
	switch {
	case len(s.Settings) > 0:
		out = slices.Clone(s.Settings)
		if s.Axis == Window { // the system's own is always a row (M-WSCAN)
			out = append(out, 0)
		}
	case s.Axis == Streams:
		out = []int64{1, 2, 4, 8, 16}
	case s.Axis == Length:
		out = []int64{8 << 10, 32 << 10, 128 << 10, 512 << 10, 1 << 20}
	default:
		fractions := s.Fractions
		if fractions == nil {
			fractions = []float64{0.25, 0.5, 0.75, 1, 1.5, 2}
		}
		product := float64(bdp.Product(units.BitRate(s.bottleneck(history)), BaseRTT(history))) / float64(max(s.Base.Streams, 1))
		for _, f := range fractions {
			out = append(out, max(int64(f*product)/1024*1024, leastWindow))
		}
		out = append(out, 0)
	}
	out = slices.DeleteFunc(out, func(x int64) bool { return x > s.Most })
	slices.Sort(out)
	return slices.Compact(out)
}

// wave is the next step of some settings' rounds; base counts the rounds of waves before, and is
// brought up to date when there is none.
func (s Sweep) wave(history []Done, settings []int64, number int, base map[int64]int) (Step, bool) {
	for round := range s.Rounds {
		for _, i := range Order(s.Seed+uint64(number)*0x1000, round, len(settings)) { //nolint:gosec // small
			x := settings[i]
			if s.count(history, x) > base[x]+round || round >= s.played(history, x) || s.useless(history, settings, x, round) {
				continue
			}
			step := s.step(x)
			step.Round = round + 1
			return step, true
		}
	}
	for _, x := range settings {
		base[x] += s.played(history, x)
	}
	return Step{}, false
}

// played is how many rounds a wave has of a setting: with --rounds auto the fewest after which its
// figures had settled.
func (s Sweep) played(history []Done, x int64) int {
	for n := LeastRounds; s.Auto && n < s.Rounds; n++ {
		if s.settled(history, x, n) {
			return n
		}
	}
	return s.Rounds
}

// settled reports that the figures of a setting need no more rounds.
func (s Sweep) settled(history []Done, x int64, rounds int) bool {
	rates := s.rates(history, x)
	enough, _ := EnoughRounds(rates[:min(len(rates), rounds)])
	return enough
}

// useless reports that larger windows than two that fill the path were dropped (M-WSCAN's early
// end, after a first round of all).
func (s Sweep) useless(history []Done, settings []int64, x int64, round int) bool {
	if s.Axis != Window || x == 0 || round == 0 {
		return false
	}
	ideal := s.bottleneck(history)
	at := slices.Index(settings, x)
	for i := 1; i < at; i++ {
		a, b := settings[i-1], settings[i]
		if a == 0 || b == 0 {
			continue
		}
		// The first round alone decides, so that the answer stays the same afterwards.
		ra, rb := s.rates(history, a), s.rates(history, b)
		if len(ra) == 0 || len(rb) == 0 || ideal <= 0 {
			continue
		}
		if ra[0] > scanFull*ideal && rb[0] > scanFull*ideal && math.Abs(rb[0]-ra[0]) < scanFlat*rb[0] {
			return true
		}
	}
	return false
}

// pointsOf are the medians of some settings, ascending, over so many of their rounds: what was known
// when those were over, whatever has been measured since. The system's own window is not one.
func (s Sweep) pointsOf(history []Done, settings []int64, rounds map[int64]int) (out []KneePoint) {
	for _, x := range settings {
		rates := s.rates(history, x)
		a, ok := Rounds(rates[:min(len(rates), rounds[x])])
		if ok && a.Median > 0 && x > 0 {
			out = append(out, KneePoint{X: float64(x), Y: a.Median, Spread: a.Spread()})
		}
	}
	slices.SortFunc(out, func(a, b KneePoint) int { return cmp.Compare(a.X, b.X) })
	return out
}

func (s Sweep) name(what string) string {
	series := s.Series
	if series == "" {
		series = string(s.Axis)
	}
	return fmt.Sprintf("%s-%s-%s", s.Direction, series, what)
}

func (s Sweep) step(x int64) Step {
	p := s.Base
	p.Direction, p.Transport = plan.Direction(s.Direction), plan.TCP
	step := Step{Name: s.name(fmt.Sprint(x)), Pause: s.Pause}
	switch s.Axis {
	case Streams:
		p.Streams = int(x)
		step.Title, step.Why = plural(x, "stream"), "does the sum still grow?"
	case Window:
		p.Window, p.Streams = x, max(p.Streams, 1)
		step.Title, step.Why = "window "+units.ByteSize(x).IEC(), "does the rate follow the window?"
		if x == 0 {
			step.Name, step.Title, step.Why = s.name("auto"), "the system's own window", "how far does auto-tuning come?"
		}
	case Length:
		p.BlockSize, p.Streams = int(x), max(p.Streams, 1)
		step.Title, step.Why = "writes of "+units.ByteSize(x).IEC(), "does the size of a write matter?"
	}
	step.Title += " " + string(s.Direction)
	step.Plan = p
	return step
}

func plural(n int64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// setting is the one of a step of this sweep.
func (s Sweep) setting(d *Done) (x int64, mine bool) {
	word, ok := strings.CutPrefix(d.Step.Name, s.name(""))
	if !ok {
		return 0, false
	}
	if word == "auto" {
		return 0, true
	}
	if _, err := fmt.Sscanf(word, "%d", &x); err != nil || fmt.Sprint(x) != word {
		return 0, false
	}
	return x, true
}

func (s Sweep) count(history []Done, x int64) (n int) {
	for i := range history {
		if v, mine := s.setting(&history[i]); mine && v == x {
			n++
		}
	}
	return n
}

// rates are those of a setting's rounds. What broke off is no round.
func (s Sweep) rates(history []Done, x int64) (out []float64) {
	for i := range history {
		d := &history[i]
		if v, mine := s.setting(d); !mine || v != x || d.Err != nil {
			continue
		}
		if g, ok := Goodput(d.Run, s.Direction); ok {
			out = append(out, g)
		}
	}
	return out
}

// SweepAnswer is what one sweep found.
type SweepAnswer struct {
	Points      []KneePoint // ascending; the system's own window last
	Knee        KneeAnswer  // without the system's own
	Recommended int64       // least setting within 3 % of the best; of windows 0 = the system's own
	Carries     float64     // median there, bit/s
	Rate        float64     // the most that the path is known to carry
	Known       bool        // anything was measured
}

// Answer judges what was measured so far.
func (s Sweep) Answer(history []Done) SweepAnswer {
	s = s.filled()
	a := SweepAnswer{Points: s.Points(history), Rate: s.bottleneck(history)}
	var curve []KneePoint
	best := 0.0
	for _, p := range a.Points {
		best = max(best, p.Y)
		if p.X > 0 {
			curve = append(curve, p)
		}
	}
	a.Knee = Knee(curve)
	a.Rate = max(a.Rate, best)
	for _, p := range a.Points { // the system's own comes last, and wins where it does as well
		if p.Y >= (1-kneeCheap)*best && (!a.Known || p.X == 0) {
			a.Recommended, a.Carries, a.Known = int64(p.X), p.Y, true
		}
	}
	return a
}

// Possible are the steps of the first wave, for an announcement; Follows says what may come after. What
// depends on the path's product stands with the setting 0.
func (s Sweep) Possible() (out []Step) {
	s = s.filled()
	if s.Axis == Window {
		out = append(out, IdleStep(time.Second))
	}
	if s.Axis == Window && len(s.Settings) == 0 {
		if s.Rate == 0 {
			step, _ := s.prepare([]Done{{Step: IdleStep(time.Second)}})
			out = append(out, step)
		}
		fractions := s.Fractions
		if fractions == nil {
			fractions = []float64{0.25, 0.5, 0.75, 1, 1.5, 2}
		}
		for _, f := range fractions {
			step := s.step(0)
			step.Title = fmt.Sprintf("window %g × bandwidth-delay product %s", f, s.Direction)
			step.Why = "does the rate follow the window?"
			out = append(out, step)
		}
		out = append(out, s.step(0))
	} else {
		for _, x := range s.settings(nil) {
			out = append(out, s.step(x))
		}
	}
	return out
}
