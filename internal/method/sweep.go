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
	"github.com/fullbore-net/fullbore/internal/stats"
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
// the plan held fixed. It goes further while the rate still grows, and between the neighbours of
// the best afterwards.
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

// extensions is how often a sweep that did not reach its knee goes further.
const (
	extensions       = 2
	windowExtensions = 4
)

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
	if s.Axis == Window && len(s.Settings) == 0 {
		if step, need := s.prepare(history); need {
			return step, true
		}
	}
	settings := s.settings(history)
	base := map[int64]int{}
	if step, more := s.wave(history, settings, 0, base); more {
		return step, true
	}
	if s.Fixed {
		return Step{}, false
	}
	most := extensions
	if s.Axis == Window { // what was taken for the bottleneck may have been held by windows itself
		most = windowExtensions
	}
	for wave := 1; wave <= most; wave++ {
		next, grow := s.further(s.pointsOf(history, settings, base), settings)
		if !grow {
			break
		}
		settings = append(settings, next)
		if step, more := s.wave(history, []int64{next}, wave, base); more {
			return step, true
		}
	}
	if s.Axis == Window && len(s.Settings) == 0 { // shares of the product lie close enough
		return Step{}, false
	}
	return s.wave(history, s.between(s.pointsOf(history, settings, base), settings), most+1, base)
}

// prepare are the steps before a window scan: round trip and bottleneck.
func (s Sweep) prepare(history []Done) (Step, bool) {
	if !slices.ContainsFunc(history, func(d Done) bool { return d.Step.Name == idleName }) {
		return IdleStep(time.Second), true
	}
	name := s.name("bottleneck")
	if s.Rate > 0 || slices.ContainsFunc(history, func(d Done) bool { return d.Step.Name == name }) {
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
			if s.count(history, x) > base[x]+round || s.Auto && round >= LeastRounds && s.settled(history, x, round) || s.useless(history, settings, x, round) {
				continue
			}
			step := s.step(x)
			step.Round = round + 1
			return step, true
		}
	}
	for _, x := range settings {
		base[x] += s.Rounds
	}
	return Step{}, false
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

// further is the setting beyond the last one, or below the first, where the best lies there.
func (s Sweep) further(p []KneePoint, settings []int64) (next int64, grow bool) {
	a := Knee(p)
	if len(settings) == 0 || a.Best == 0 {
		return 0, false
	}
	low, high := slices.Min(settings), slices.Max(settings)
	switch {
	case !a.Reached && 2*high <= s.Most:
		return 2 * high, true
	case int64(a.Best) == low && low > 1 && s.Axis == Streams:
		return low / 2, true
	}
	return 0, false
}

// between are the settings halfway from the best to its neighbours, with the best itself, so that
// they are compared at the same time; none where the curve is flat from its beginning.
func (s Sweep) between(p []KneePoint, settings []int64) []int64 {
	a := Knee(p)
	if len(p) < 3 || a.Best == 0 || a.Cheapest == p[0].X {
		return nil
	}
	x := slices.Clone(settings)
	x = slices.DeleteFunc(x, func(v int64) bool { return v == 0 })
	slices.Sort(x)
	at := slices.Index(x, int64(a.Best))
	if at < 0 {
		return nil
	}
	var out []int64
	middle := func(a, b int64) {
		m := (a + b) / 2
		if s.Axis != Streams {
			m = m / 1024 * 1024
		}
		if m > a && m < b {
			out = append(out, m)
		}
	}
	if at > 0 {
		middle(x[at-1], x[at])
	}
	if at+1 < len(x) {
		middle(x[at], x[at+1])
	}
	if len(out) > 0 {
		out = append(out, x[at])
		slices.Sort(out)
	}
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

// Points are the settings that were measured, ascending; the system's own window is the last, with
// X = 0.
func (s Sweep) Points(history []Done) (out []KneePoint) {
	s = s.filled()
	var settings []int64
	for i := range history {
		if x, mine := s.setting(&history[i]); mine && !slices.Contains(settings, x) {
			settings = append(settings, x)
		}
	}
	slices.SortFunc(settings, func(a, b int64) int {
		if (a == 0) != (b == 0) {
			return cmp.Compare(b, a)
		}
		return cmp.Compare(a, b)
	})
	rtt := BaseRTT(history)
	for _, x := range settings {
		rates := s.rates(history, x)
		a, ok := Rounds(rates)
		if !ok || a.Median <= 0 {
			continue
		}
		p := KneePoint{X: float64(x), Y: a.Median, Spread: a.Spread(), Values: rates, Retransmits: -1, HotCore: -1, CPU: -1, BufferDelay: -1}
		s.costs(history, x, rtt, &p)
		if s.Axis == Window && x > 0 && rtt > 0 {
			p.Predicted = float64(bdp.WindowRate(units.ByteSize(x), rtt)) * float64(max(s.Base.Streams, 1))
			if most := s.bottleneck(history); most > 0 {
				p.Predicted = min(p.Predicted, most)
			}
		}
		out = append(out, p)
	}
	return out
}

// costs fills in what a setting's rounds took besides their rate.
func (s Sweep) costs(history []Done, x int64, rtt time.Duration, p *KneePoint) {
	var again, hot, cpu, delay []float64
	for i := range history {
		d := &history[i]
		if v, mine := s.setting(d); !mine || v != x || d.Run == nil || d.Err != nil {
			continue
		}
		if r, ok := RetransmitRatio(d.Run, s.Direction); ok {
			again = append(again, r)
		}
		if h, ok := HotCore(d.Run); ok {
			hot = append(hot, h)
		}
		if c, ok := processCores(d.Run); ok {
			cpu = append(cpu, c)
		}
		if sum := d.Run.Sum(s.Direction); sum != nil && sum.Peak != nil {
			p.Peak = max(p.Peak, *sum.Peak)
		}
		if m, ok := meanRTT(d.Run, s.Direction); ok && rtt > 0 {
			delay = append(delay, m/rtt.Seconds()-1)
		}
		for k := range d.Run.Streams {
			if b := d.Run.Streams[k].Buffers; b != nil {
				p.Granted = max(p.Granted, b.SndUsable, b.RcvUsable)
			}
		}
	}
	for _, f := range []struct {
		to   *float64
		from []float64
	}{{&p.Retransmits, again}, {&p.HotCore, hot}, {&p.CPU, cpu}, {&p.BufferDelay, delay}} {
		if m, ok := stats.Median(f.from); ok {
			*f.to = m
		}
	}
}

// HotCore is how busy the busiest core of either end was, 0..1, mean over the counted intervals.
func HotCore(run *result.Run) (hot float64, known bool) {
	for _, e := range []result.End{result.Client, result.Server} {
		sum, span := 0.0, 0.0
		for i := range run.Rows {
			r := &run.Rows[i]
			if r.End != e || r.Omitted || r.Host == nil || len(r.Host.Cores) == 0 {
				continue
			}
			busiest := 0.0
			for _, c := range r.Host.Cores {
				busiest = max(busiest, 1-c.Idle-c.IOWait)
			}
			sum, span = sum+busiest*(r.Stop-r.Start), span+r.Stop-r.Start
		}
		if span > 0 {
			hot, known = max(hot, sum/span), true
		}
	}
	return hot, known
}

// processCores is the processor time that the programs of both ends took, in cores.
func processCores(run *result.Run) (cores float64, known bool) {
	for _, e := range []result.End{result.Client, result.Server} {
		if c := run.CPU.Of(e); c != nil && c.Total > 0 {
			cores, known = cores+c.Total/100, true
		}
	}
	return cores, known
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

// Possible are the steps of the first wave, for an announcement: a refinement may follow. What
// depends on the path's product stands with the setting 0.
func (s Sweep) Possible() (out []Step) {
	s = s.filled()
	if s.Axis == Window && len(s.Settings) == 0 {
		out = append(out, IdleStep(time.Second))
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
