package method

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

// KneePoint is one setting of a sweep with its median and what it cost.
type KneePoint struct {
	X           float64 // streams, window; positive
	Y           float64 // median, bit/s
	Spread      float64 // of the rounds: (max − min) / median
	Retransmits float64 // ratio; 0 also when not known
	HotCore     float64 // busiest core or worker, 0..1; 0 also when not known
}

// KneeAnswer is M-KNEE's.
type KneeAnswer struct {
	Knee     float64   // Kneedle's; 0 = none
	Marginal float64   // the least x after which a doubling gains nothing; 0 = none
	Best     float64   // x of the largest y
	Cheapest float64   // least x within 3 % of the best
	Reached  bool      // y no longer grew by 5 % at the last x
	Rejected string    // why the knee is the host's and not the path's; "" = it is not
	D        []float64 // Kneedle's differences, for the curve
}

// Constants of M-KNEE.
const (
	kneeSensitivity = 1.0  // S
	kneeGain        = 0.05 // per doubling
	kneeCheap       = 0.03
	kneeRetransmits = 0.01
	kneeHotCore     = 0.95
)

// Knee finds the knee of a curve, ordered by x. Fewer than three points have none.
func Knee(points []KneePoint) KneeAnswer {
	p := slices.Clone(points)
	slices.SortFunc(p, func(a, b KneePoint) int { return cmp.Compare(a.X, b.X) })
	var a KneeAnswer
	if len(p) == 0 {
		return a
	}
	best := slices.MaxFunc(p, func(x, y KneePoint) int { return cmp.Compare(x.Y, y.Y) })
	a.Best = best.X
	for _, q := range p {
		if q.Y >= (1-kneeCheap)*best.Y {
			a.Cheapest = q.X
			break
		}
	}
	if len(p) < 2 {
		return a
	}
	last := len(p) - 1
	a.Reached = gain(p[last-1], p[last]) < kneeGain
	a.Marginal = marginal(p)
	a.Knee, a.D = kneedle(p)
	a.Rejected = hostKnee(p, a.Knee)
	return a
}

// gain is what y grew by from a to b, per doubling of x.
func gain(a, b KneePoint) float64 {
	doublings := math.Log2(b.X / a.X)
	if a.Y <= 0 || doublings <= 0 {
		return 0
	}
	return math.Pow(b.Y/a.Y, 1/doublings) - 1
}

// marginal is the least x after which no doubling gains 5 %, or twice the rounds' spread.
func marginal(p []KneePoint) float64 {
	x := 0.0
	for i := len(p) - 2; i >= 0; i-- {
		g := gain(p[i], p[i+1])
		if g >= kneeGain || p[i].Spread > 0 && g >= 2*p[i].Spread {
			break
		}
		x = p[i].X
	}
	return x
}

// kneedle is Satopää, Albrecht, Irwin and Raghavan 2011, on log2 x.
func kneedle(p []KneePoint) (knee float64, d []float64) {
	if len(p) < 3 {
		return 0, nil
	}
	lowX, highX := math.Log2(p[0].X), math.Log2(p[len(p)-1].X)
	lowY, highY := p[0].Y, p[0].Y
	for _, q := range p {
		lowY, highY = math.Min(lowY, q.Y), math.Max(highY, q.Y)
	}
	if highX <= lowX || highY <= lowY {
		return 0, nil
	}
	for _, q := range p {
		d = append(d, (q.Y-lowY)/(highY-lowY)-(math.Log2(q.X)-lowX)/(highX-lowX))
	}
	threshold := kneeSensitivity / float64(len(p)-1) // mean step of the normalised x
	for i := 1; i < len(p)-1; i++ {
		if d[i] <= d[i-1] || d[i] < d[i+1] {
			continue // no local maximum
		}
		for j := i + 1; j < len(p); j++ {
			if d[j] > d[i] {
				break // a higher maximum comes
			}
			if d[j] < d[i]-threshold {
				return p[i].X, d
			}
		}
	}
	return 0, d
}

// hostKnee says why the knee is not the path's.
func hostKnee(p []KneePoint, knee float64) string {
	for _, q := range p {
		if q.X != knee || knee == 0 {
			continue
		}
		switch {
		case q.HotCore >= kneeHotCore:
			return fmt.Sprintf("a core was %.0f %% busy there: the knee is the host's", 100*q.HotCore)
		case q.Retransmits > kneeRetransmits:
			return fmt.Sprintf("%.1f %% were retransmitted there", 100*q.Retransmits)
		}
	}
	return ""
}

// StreamSweep is M-KNEE over the number of streams.
type StreamSweep struct {
	Direction result.Direction
	Streams   []int // settings; nil = 1, 2, 4, 8, 16
	Rounds    int   // 0 = 3
	Each      time.Duration
	Omit      time.Duration
	Pause     time.Duration
	Seed      uint64
	Most      int // never more streams; 0 = 128
}

// extensions is how often a sweep that did not reach its knee goes further.
const extensions = 2

func (s StreamSweep) filled() StreamSweep {
	if s.Streams == nil {
		s.Streams = []int{1, 2, 4, 8, 16}
	}
	if s.Rounds == 0 {
		s.Rounds = LeastRounds
	}
	if s.Each == 0 {
		s.Each = 10 * time.Second
	}
	if s.Most == 0 {
		s.Most = plan.MaxStreams
	}
	return s
}

// Next plays each setting once a round, in random order, and extends the sweep twice at
// most while it still grows.
func (s StreamSweep) Next(history []Done) (Step, bool) {
	s = s.filled()
	settings := slices.Clone(s.Streams)
	for range extensions + 1 {
		for round := range s.Rounds {
			for _, i := range Order(s.Seed, round, len(settings)) {
				if n := settings[i]; s.count(history, n) <= round {
					return s.step(n), true
				}
			}
		}
		a := Knee(s.points(history, settings))
		next := 2 * slices.Max(settings)
		if a.Reached || next > s.Most {
			break
		}
		settings = append(settings, next)
	}
	return Step{}, false
}

func (s StreamSweep) count(history []Done, streams int) (n int) {
	for _, d := range history {
		if d.Step.Plan.Streams == streams {
			n++
		}
	}
	return n
}

func (s StreamSweep) step(n int) Step {
	word := "streams"
	if n == 1 {
		word = "stream"
	}
	return Step{
		Name: fmt.Sprintf("%s-%d", s.Direction, n), Title: fmt.Sprintf("%d %s %s", n, word, s.Direction), Pause: s.Pause, Why: "does the sum still grow?",
		Plan: plan.Plan{Direction: plan.Direction(s.Direction), Streams: n, Duration: s.Each, Omit: s.Omit},
	}
}

func (s StreamSweep) points(history []Done, settings []int) []KneePoint {
	var out []KneePoint
	for _, n := range settings {
		var rates, again []float64
		for _, d := range history {
			if d.Step.Plan.Streams != n {
				continue
			}
			if g, ok := total(d.Run); ok {
				rates = append(rates, g)
				if r, ok := RetransmitRatio(d.Run, s.Direction); ok {
					again = append(again, r)
				}
			}
		}
		a, ok := Rounds(rates)
		if !ok || a.Median <= 0 {
			continue
		}
		p := KneePoint{X: float64(n), Y: a.Median, Spread: (a.Max - a.Min) / a.Median}
		p.Retransmits, _ = stats.Median(again)
		out = append(out, p)
	}
	return out
}

// Answer judges what was measured so far.
func (s StreamSweep) Answer(history []Done) (KneeAnswer, []KneePoint) {
	var settings []int
	for _, d := range history {
		if !slices.Contains(settings, d.Step.Plan.Streams) {
			settings = append(settings, d.Step.Plan.Streams)
		}
	}
	slices.Sort(settings)
	p := s.filled().points(history, settings)
	return Knee(p), p
}
