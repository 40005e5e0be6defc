package method

import (
	"fmt"
	"math"
	"time"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// M-8337: would this path carry a TCP rate R at a round trip T, by the loss of datagrams paced at
// R (RFC 8337)? The round trip itself is not needed.

// SPRT is the sequential test of a loss ratio: losses as rare as P0 pass, as often as P1 fail,
// each with errors of Alpha and Beta.
type SPRT struct {
	P0, P1      float64
	Alpha, Beta float64
}

// modelRuns are N = 3·W² and p1 = 4·p0 of RFC 8337 §7.2.
const (
	modelN     = 3
	modelWorse = 4
	modelError = 0.05
)

// ModelWindow is W: how many packets of payload bytes a rate needs at a round trip.
func ModelWindow(bps float64, rtt time.Duration, payload int) int64 {
	return int64(math.Ceil(bps * rtt.Seconds() / float64(payload*8)))
}

// ModelTest is the sequential test for a window of w packets.
func ModelTest(w int64) SPRT {
	n := modelN * float64(w) * float64(w)
	return SPRT{P0: 1 / n, P1: math.Min(modelWorse/n, 0.999), Alpha: modelError, Beta: modelError}
}

// RunLength is the target run length N: packets between losses.
func RunLength(w int64) float64 { return modelN * float64(w) * float64(w) }

// Lines are the slope and the intercepts of the test: it passes at or below s·n − h1 losses of n
// packets and fails at or above s·n + h2.
func (t SPRT) Lines() (s, h1, h2 float64) {
	k := math.Log(t.P1 * (1 - t.P0) / (t.P0 * (1 - t.P1)))
	s = math.Log((1-t.P0)/(1-t.P1)) / k
	h1 = math.Log((1-t.Alpha)/t.Beta) / k
	h2 = math.Log((1-t.Beta)/t.Alpha) / k
	return s, h1, h2
}

// Decide is the test's word after n packets with so many losses: result.Pass, result.Fail, or
// result.Inconclusive while it is to go on.
func (t SPRT) Decide(n, losses int64) string {
	s, h1, h2 := t.Lines()
	switch {
	case float64(losses) <= s*float64(n)-h1:
		return result.Pass
	case float64(losses) >= s*float64(n)+h2:
		return result.Fail
	}
	return result.Inconclusive
}

// PassAfter is how many packets a run without loss needs to pass, as if it had lost so many.
func (t SPRT) PassAfter(losses int64) int64 {
	s, h1, _ := t.Lines()
	return int64(math.Ceil((float64(losses) + h1) / s))
}

// ModelGreatest is the greatest rate that would pass with the loss that was seen: losses of n
// packets; 0 = none.
func ModelGreatest(n, losses int64, rtt time.Duration, payload int) float64 {
	low, high := int64(0), int64(1)
	passes := func(w int64) bool { return ModelTest(w).Decide(n, losses) == result.Pass }
	for passes(high) && high < 1<<40 {
		low, high = high, high*2
	}
	if low == 0 {
		// The smallest windows' tests pass late: look a little further up.
		for w := int64(1); w <= 8 && low == 0; w++ {
			if passes(w) {
				low, high = w, w*2
			}
		}
		if low == 0 {
			return 0
		}
	}
	for high-low > 1 {
		if mid := low + (high-low)/2; passes(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return float64(low) * float64(payload) * 8 / rtt.Seconds()
}

// Model plays M-8337: a paced stream at the rate, in parts, each as long as the test would need to
// pass if nothing more were lost; then bursts of the window at the sender's line rate.
type Model struct {
	Rate       float64       // payload bit/s
	RTT        time.Duration // for which the path is judged
	Directions []plan.Direction
	Limit      time.Duration // of each test; 0 = 60 s
	Bursts     bool          // the second test, too
	UDP        plan.Plan     // what every step has; BlockSize must be set
}

// The parts of a test.
const (
	modelLimit = 60 * time.Second
	modelPart  = 3 * time.Second // the longest part; within it each row of the receiver may end the test
	modelLeast = 500 * time.Millisecond
	modelLate  = 3 // parts that a busy sender may spoil
)

func (m Model) limit() time.Duration {
	if m.Limit > 0 {
		return m.Limit
	}
	return modelLimit
}

// Window is W.
func (m Model) Window() int64 { return ModelWindow(m.Rate, m.RTT, m.UDP.BlockSize) }

// ModelPart is what one test of a direction came to.
type ModelPart struct {
	Direction plan.Direction
	Bursts    bool
	Packets   int64
	Lost      int64 // that are not surely a host's own
	Host      int64 // dropped at the receiver's socket; they are left out
	Seconds   float64
	Late      int    // parts in which the sender did not reach the rate; they do not count
	Unclear   int    // parts whose losses may be the receiver's, merged as they were; they do not count
	Short     bool   // there were so many of them that the test was given up
	Result    string // pass, fail, inconclusive
	Greatest  float64
}

// part sums up the steps of one test of a direction.
func (m Model) part(history []Done, d plan.Direction, bursts bool) ModelPart {
	p := ModelPart{Direction: d, Bursts: bursts, Result: result.Inconclusive}
	test := ModelTest(m.Window())
	for i := range history {
		x := &history[i]
		if x.Run == nil || x.Step.Plan.Direction != d || (x.Step.Plan.Burst > 0) != bursts {
			continue
		}
		l := conclude.LossOf(x.Run, result.Direction(d))
		if l == nil || l.Sent == 0 {
			continue
		}
		host := int64(0)
		if l.Socket != nil {
			host = min(*l.Socket, l.Lost)
		}
		late := false
		if s := x.Run.Sum(result.Direction(d)); s != nil && s.Sender != nil {
			p.Seconds += s.Sender.Seconds() // of the parts
			late = shortOf(x.Run, result.Direction(d), m.Rate)
		}
		if late { // less was asked of the path than it should carry: no evidence
			p.Late++
			continue
		}
		if unclear(x, result.Direction(d)) {
			p.Unclear++
			continue
		}
		p.Host += host
		for _, f := range feedbacks(x.Run, result.Direction(d), l, host) {
			p.Packets, p.Lost = p.Packets+f.packets, p.Lost+f.lost
			if p.Result = test.Decide(p.Packets, p.Lost); p.Result != result.Inconclusive {
				p.Seconds -= f.rest // what came after the decision is not part of the test
				break
			}
		}
	}
	if p.Packets > 0 {
		p.Greatest = ModelGreatest(p.Packets, p.Lost, m.RTT, m.UDP.BlockSize)
	}
	p.Short = p.Result == result.Inconclusive && p.Late >= modelLate
	return p
}

// feedback is what the receiver told at one moment: how many datagrams more had been sent, and
// of them lost; rest is how much of the part's time was left then, s.
type feedback struct {
	packets, lost int64
	rest          float64
}

// feedbacks are the moments of a part: the receiver's rows, and what came to light after the last of
// them. Where the rows are not what the end's count says (datagrams came late, a host dropped some
// of them), the part is one.
func feedbacks(run *result.Run, d result.Direction, l *result.UDPLoss, host int64) []feedback {
	whole := []feedback{{packets: l.Sent - host, lost: l.Lost - host}}
	length := 0.0
	if s := run.Sum(d); s != nil && s.Sender != nil {
		length = s.Sender.Seconds()
	}
	if host > 0 || length <= 0 {
		return whole
	}
	var out []feedback
	left := feedback{packets: l.Sent, lost: l.Lost}
	for i := range run.Rows {
		row := &run.Rows[i]
		if row.End != d.Receiver() || row.Omitted {
			continue
		}
		for _, s := range row.Sums {
			if s.Direction != d || s.Sender || s.Packets == nil || s.Lost == nil {
				continue
			}
			if *s.Packets < 0 || *s.Lost < 0 {
				return whole
			}
			left.packets, left.lost = left.packets-*s.Packets, left.lost-*s.Lost
			out = append(out, feedback{packets: *s.Packets, lost: *s.Lost, rest: max(length-s.Stop, 0)})
		}
	}
	if left.packets < 0 || left.lost < 0 || left.lost > left.packets {
		return whole
	}
	return append(out, left)
}

// MaxModelBurst is the largest window that one burst can be.
const MaxModelBurst = plan.MaxBurst

// Next implements Method.
func (m Model) Next(history []Done) (Step, bool) {
	if n := len(history); n > 0 && !usable(history[n-1]) {
		return Step{}, false
	}
	for _, d := range m.Directions {
		if s, more := m.next(history, d, false); more {
			return s, true
		}
		if m.Bursts && m.Window() <= MaxModelBurst && m.part(history, d, false).Result == result.Pass {
			if s, more := m.next(history, d, true); more {
				return s, true
			}
		}
	}
	return Step{}, false
}

// next is the next part of a test of a direction, false when it is decided or its time is over.
func (m Model) next(history []Done, d plan.Direction, bursts bool) (Step, bool) {
	done := m.part(history, d, bursts)
	if done.Result != result.Inconclusive || done.Short {
		return Step{}, false
	}
	left := m.limit() - time.Duration(done.Seconds*float64(time.Second))
	need := ModelTest(m.Window()).PassAfter(done.Lost) - done.Packets
	length := time.Duration(float64(need) * float64(m.UDP.BlockSize*8) / m.Rate * 1.01 * float64(time.Second))
	length = min(max(length, modelLeast), modelPart, left).Round(time.Millisecond)
	if left < modelLeast {
		return Step{}, false
	}
	p := m.UDP
	p.Transport, p.Direction, p.Streams, p.RateSet = plan.UDP, d, 1, true
	p.Bitrate, p.Duration, p.Interval = int64(m.Rate), length, plan.MinInterval // each row is a feedback
	if done.Unclear > 0 {
		p.Offload = plan.OffloadOff // who dropped is to be clear from now on
	}
	k := 1
	for _, x := range history {
		if x.Step.Plan.Direction == d && (x.Step.Plan.Burst > 0) == bursts {
			k++
		}
	}
	s := Step{
		Name: fmt.Sprintf("%s-paced-%d", d, k), Title: fmt.Sprintf("UDP %s, paced at %s", d, mbits(m.Rate)),
		Why:    "are losses as rare as TCP would need?",
		Volume: int64(m.Rate / 8 * length.Seconds()),
	}
	if bursts {
		p.Burst = int(m.Window())
		s.Name, s.Title = fmt.Sprintf("%s-bursts-%d", d, k), fmt.Sprintf("UDP %s, bursts of %d", d, p.Burst)
		s.Why = "does the queue take a whole window at once?"
	}
	p.Steady = !bursts // and what was late is not made up: on a path of just this rate it would queue
	s.Plan = p
	return s, true
}

// Answer is what came of each test that was made.
func (m Model) Answer(history []Done) (out []ModelPart) {
	for _, d := range m.Directions {
		for _, bursts := range []bool{false, true} {
			if p := m.part(history, d, bursts); p.Packets > 0 || p.Late > 0 || p.Unclear > 0 {
				out = append(out, p)
			}
		}
	}
	return out
}

// Possible are the steps for whoever wants to know before.
func (m Model) Possible() (out []Step) {
	for _, d := range m.Directions {
		if s, ok := m.next(nil, d, false); ok {
			out = append(out, s)
		}
		if m.Bursts && m.Window() <= MaxModelBurst {
			if s, ok := m.next(nil, d, true); ok {
				out = append(out, s)
			}
		}
	}
	return out
}
