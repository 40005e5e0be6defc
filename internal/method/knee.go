package method

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// KneePoint is one setting of a sweep with its median and what it cost.
type KneePoint struct {
	X           float64 // streams, window; positive
	Y           float64 // median, bit/s
	Spread      float64 // of the rounds: (max − min) / median
	Retransmits float64 // ratio; not positive also when not known
	HotCore     float64 // busiest core or worker, 0..1; not positive also when not known
	Foreign     bool    // other programs were seen to fill the cores of an end

	// Of a sweep, besides; −1 = not known.
	Values      []float64 // of the rounds, bit/s
	Peak        float64   // best interval of all rounds, bit/s; 0 = not known
	CPU         float64   // cores' worth of time of both ends' programs
	Granted     int64     // of a window: what an end got at most, bytes; 0 = not known
	Predicted   float64   // of a window: what it allows, bit/s; 0 = not known
	BufferDelay float64   // (mean RTT − RTT) / RTT (RFC 6349)
}

// KneeAnswer is M-KNEE's.
type KneeAnswer struct {
	Knee     float64   // Kneedle's; 0 = none
	Marginal float64   // the least x after which a doubling gains nothing; 0 = none
	Best     float64   // x of the largest y
	Cheapest float64   // least x within 3 % of the best
	Reached  bool      // y no longer grew by 5 % at the last x
	At       float64   // the knee that Rejected is about: Kneedle's, else the marginal one
	Rejected string    // why the knee is not simply the path's, a clause with whose it is; "" = nothing speaks against it
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
	a.At, a.Rejected = hostKnee(p, &a)
	return a
}

// Gain is what the rate grew by from a to b, for each doubling of the setting; false where there is
// none.
func Gain(a, b KneePoint) (float64, bool) {
	if a.X <= 0 || b.X <= a.X || a.Y <= 0 {
		return 0, false
	}
	return gain(a, b), true
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

// hostKnee says what speaks against calling a knee the path's, and whose it is then: a full core is a
// host's limit, unless other programs had a part in it, which leaves it open; where much is sent
// again, losses hold the rate. It looks at Kneedle's knee, where there is none at the marginal one.
func hostKnee(p []KneePoint, a *KneeAnswer) (at float64, why string) {
	at = a.Knee
	if at == 0 {
		at = a.Marginal
	}
	i := slices.IndexFunc(p, func(q KneePoint) bool { return q.X == at })
	if i < 0 {
		return 0, ""
	}
	switch q := p[i]; {
	case q.HotCore >= kneeHotCore && q.Foreign:
		return at, fmt.Sprintf("a core was %.0f %% busy there, and other programs on that host had a part in it: whether this knee is the path's, the host's or theirs cannot be told", 100*q.HotCore)
	case q.HotCore >= kneeHotCore:
		return at, fmt.Sprintf("a core was %.0f %% busy there: this knee is a host's, not the path's", 100*q.HotCore)
	case q.Retransmits > kneeRetransmits:
		return at, fmt.Sprintf("%.1f %% were sent again there: losses make this knee, it is not what the path could carry", 100*q.Retransmits)
	}
	return 0, ""
}
