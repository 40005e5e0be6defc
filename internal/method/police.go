package method

import (
	"fmt"
	"math"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// PolicePhase is what one rate of M-POLICE's probe showed. Times in seconds from its
// start, rates in bit/s of payload.
type PolicePhase struct {
	Offered   float64 // r
	Received  float64 // R, of the last half
	Early     float64 // received rate of the first interval that was whole
	FirstLoss float64 // t: when the first datagram was lost; negative: none was
	Before    float64 // bytes received until then; 0 = what was offered
	Loss      float64 // ratio in the last half
	Late      float64 // r of the last half; 0 = Offered
	Rise      float64 // q: delay above the least of the run, p95, s
	Span      float64 // how long it was
}

// bucket is how much more than the rate went through before the first loss, bytes. What
// came through counts, not what was meant to be sent: a sender is not always punctual.
func (p PolicePhase) bucket() float64 {
	if p.Before > 0 {
		return max(p.Before-p.Received*p.FirstLoss/8, 0)
	}
	return (p.Offered - p.Received) * p.FirstLoss / 8
}

// PoliceAnswer is M-POLICE's.
type PoliceAnswer struct {
	Verdict string  // Policer, Shaper, Capacity, Nothing, or Unclear
	Rate    float64 // bit/s of payload that it lets through
	Bucket  float64 // policer: bytes, mean of both phases; a lower bound after a short silence
	Queue   float64 // shaper, capacity: bytes of the queue before it
	Why     string  // what spoke against the others, or why it is unclear
}

// The verdicts of M-POLICE.
const (
	Policer  = "policer"
	Shaper   = "shaper"
	Capacity = "capacity"
	Nothing  = "none"
	Unclear  = "unclear"
)

// Constants of M-POLICE.
const (
	policeSame    = 0.03     // |R1−R2|/R1
	policeLoss    = 0.05     // steady loss against 1 − R/r
	policeBuckets = 0.25     // B1 against B2
	policeRise    = 0.005    // s
	policeFall    = 0.10     // of the received rate, from the first phase to the plateau
	policeBurst   = 64 << 10 // bytes: below it there was no initial burst
)

// JudgePolice tells policer, shaper and plain capacity apart by two phases, the second
// faster than the first; rtt is the idle path's, s.
func JudgePolice(a, b PolicePhase, rtt float64) PoliceAnswer {
	if a.Received <= 0 || b.Received <= 0 {
		return PoliceAnswer{Verdict: Unclear, Why: "nothing was received"}
	}
	if a.FirstLoss < 0 && b.FirstLoss < 0 && a.Received >= 0.98*a.Offered && b.Received >= 0.98*b.Offered {
		return PoliceAnswer{Verdict: Nothing, Rate: b.Received, Why: fmt.Sprintf("nothing was lost at %s", units.BitRate(b.Offered))}
	}
	out := PoliceAnswer{Rate: (a.Received + b.Received) / 2}
	if d := math.Abs(a.Received-b.Received) / a.Received; d > policeSame {
		out.Verdict, out.Why = Unclear, fmt.Sprintf("the received rates differ by %.0f %%", 100*d)
		return out
	}
	rise := math.Max(a.Rise, b.Rise)
	low := math.Max(policeRise, rtt/4)
	steady := true
	for _, p := range []PolicePhase{a, b} {
		offered := p.Offered
		if p.Late > 0 {
			offered = p.Late
		}
		steady = steady && math.Abs(p.Loss-(1-p.Received/offered)) <= policeLoss
	}
	bucketA, bucketB := a.bucket(), b.bucket()
	alike := math.Abs(bucketA-bucketB) <= policeBuckets*math.Max(bucketA, bucketB) || math.Max(bucketA, bucketB) < policeBurst
	fell := a.Early >= (1+policeFall)*a.Received || b.Early >= (1+policeFall)*b.Received
	burst := math.Max(bucketA, bucketB)
	queue := rise * out.Rate / 8
	switch {
	case rise <= low && steady && alike && a.FirstLoss >= 0 && b.FirstLoss >= 0 && burst >= policeBurst:
		out.Verdict, out.Bucket = Policer, (bucketA+bucketB)/2
		out.Why = fmt.Sprintf("the delay rose by %.1f ms only", 1000*rise)
	case rise > low && fell:
		out.Verdict, out.Queue = Shaper, queue
		out.Why = fmt.Sprintf("the rate fell to a plateau while the delay rose by %.1f ms", 1000*rise)
	case rise > low, burst < policeBurst:
		out.Verdict, out.Queue = Capacity, queue
		out.Why = "the rate was the same from the start"
	default:
		out.Verdict = Unclear
		out.Why = fmt.Sprintf("buckets of %.0f and %.0f bytes, delay rise %.1f ms", bucketA, bucketB, 1000*rise)
	}
	return out
}

// Police is M-POLICE's probe: two rates of UDP with silences before them.
type Police struct {
	Direction result.Direction
	Rate      float64       // suspected, payload bit/s
	Factors   [2]float64    // of it; zero = 1.5 and 2
	Silence   time.Duration // 0 = 10 s
	Each      time.Duration // 0 = 20 s
	BlockSize int           // of a datagram; 0 = what fills the path's packet
}

func (p Police) filled() Police {
	if p.Factors == [2]float64{} {
		p.Factors = [2]float64{1.5, 2}
	}
	if p.Silence == 0 {
		p.Silence = 10 * time.Second
	}
	if p.Each == 0 {
		p.Each = 20 * time.Second
	}
	return p
}

// policeInterval is the length of a row: fine enough to see when the bucket was empty.
const policeInterval = 100 * time.Millisecond

// Next plays the two phases.
func (p Police) Next(history []Done) (Step, bool) {
	p = p.filled()
	if len(history) >= 2 || len(history) > 0 && history[len(history)-1].Run == nil {
		return Step{}, false
	}
	r := p.Factors[len(history)] * p.Rate
	return Step{
		Name: fmt.Sprintf("%s-police-%d", p.Direction, len(history)+1), Title: fmt.Sprintf("UDP %s at %s after silence", p.Direction, units.BitRate(r)), Pause: p.Silence,
		Why:    "a policer lets a burst through and then drops, without delay",
		Volume: int64(r / 8 * p.Each.Seconds()),
		Plan: plan.Plan{
			Transport: plan.UDP, Direction: plan.Direction(p.Direction), Streams: 1, Bitrate: int64(r), RateSet: true, Duration: p.Each, Interval: policeInterval,
			BlockSize: p.BlockSize,
		},
	}, true
}

// Answer judges the two phases; rtt in seconds.
func (p Police) Answer(history []Done, rtt float64) (PoliceAnswer, bool) {
	if len(history) < 2 {
		return PoliceAnswer{}, false
	}
	a, okA := PhaseOf(history[0].Run, p.Direction)
	b, okB := PhaseOf(history[1].Run, p.Direction)
	if !okA || !okB {
		return PoliceAnswer{}, false
	}
	return JudgePolice(a, b, rtt), true
}

// PhaseOf reads a UDP run of M-POLICE by its receiver's intervals; false when it does not
// have them.
func PhaseOf(run *result.Run, d result.Direction) (PolicePhase, bool) {
	if run == nil || run.Sum(d) == nil || run.Sum(d).Sender == nil {
		return PolicePhase{}, false
	}
	p := PolicePhase{Offered: run.Sum(d).Sender.Rate(), FirstLoss: -1}
	type row struct {
		start, stop, bps, lost, packets float64
	}
	var rows []row
	for i := range run.Rows {
		r := &run.Rows[i]
		if r.End != d.Receiver() || r.Partial {
			continue
		}
		for _, s := range r.Sums {
			if s.Direction != d || s.Stop <= s.Start || run.Test.Duration > 0 && s.Stop > run.Test.Duration {
				continue // what comes later is the wait for the last datagrams
			}
			x := row{start: s.Start, stop: s.Stop, bps: s.BPS}
			if s.Lost != nil {
				x.lost = float64(*s.Lost)
			}
			if s.Packets != nil {
				x.packets = float64(*s.Packets)
			}
			rows = append(rows, x)
		}
	}
	if len(rows) < 4 {
		return PolicePhase{}, false
	}
	p.Span = rows[len(rows)-1].stop
	var received, lost, offered, time, before float64
	for i, r := range rows {
		if p.FirstLoss < 0 && r.lost > 0 {
			p.FirstLoss = firstLossIn(r.start, r.stop, r.lost, p.Offered, float64(run.Test.BlockSize), rows[len(rows)-1].bps)
			p.Before = before + r.bps/8*(p.FirstLoss-r.start)
		}
		before += r.bps / 8 * (r.stop - r.start)
		if i >= len(rows)/2 {
			received += r.bps * (r.stop - r.start)
			lost += r.lost
			offered += r.packets
			time += r.stop - r.start
		}
	}
	p.Received, p.Early = received/time, rows[0].bps
	if len(rows) > 1 {
		p.Early = math.Max(p.Early, rows[1].bps)
	}
	if offered > 0 {
		p.Loss = lost / offered
		p.Late = offered * float64(run.Test.BlockSize) * 8 / time
	}
	// The spec takes the median of the first second away. A queue that one and a half times
	// the rate fills within it would then have no depth; delay variation is from the least
	// delay of the flow anyway, and that is the first datagram's. The rows' own variation
	// is from the least of their last second and does not show what stands.
	for _, st := range run.Streams {
		if st.Direction == d && st.UDP != nil && st.UDP.Received != nil && st.UDP.Received.PDV != nil {
			p.Rise = st.UDP.Received.PDV.P95
		}
	}
	return p, true
}

// firstLossIn places the first loss within its row: from there to its end what is more
// than the plateau was lost.
func firstLossIn(start, stop, lost, offered, block, plateau float64) float64 {
	excess := (offered - plateau) / 8 / math.Max(block, 1) // datagrams lost a second
	if excess <= 0 {
		return start
	}
	return math.Max(start, stop-lost/excess)
}
