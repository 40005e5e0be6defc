package method

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// M-2544: the parts of RFC 2544 (and 9004) that two hosts can do.

// FrameSizes are RFC 2544's for Ethernet, with the frame check sequence.
func FrameSizes() []int { return []int{64, 128, 256, 512, 1024, 1280, 1518} }

// FramePayload is the UDP payload of a frame; false where none fits.
func FramePayload(frame int, ipv6 bool) (int, bool) {
	h := units.UDPHeaders(ipv6, 0)
	p := frame - (h.Bytes(0, units.L3) + etherOverhead)
	return p, p >= plan.MinUDPBlock
}

const (
	etherOverhead = 14 + 4     // header and frame check sequence
	wireOverhead  = 7 + 1 + 12 // preamble, start of frame, gap
)

// FrameRate is how many frames a second a link carries at most.
func FrameRate(bps float64, frame int) float64 {
	return bps / float64((frame+wireOverhead)*8)
}

// BackToBack is RFC 9004's result of one frame size.
type BackToBack struct {
	Bursts              []float64 // frames: the longest burst without loss of each repeat
	Mean, Min, Max, Dev float64   // frames
	Implied, Corrected  float64   // buffer time, s
	Endless             bool      // bursts of the longest time were not lost either: the buffer is not the limit
	Host                bool      // the receiving socket dropped of a burst: the buffer may be its own
}

// BackToBackOf makes the figures of the repeats. most is the greatest frame rate of the link,
// throughput the measured one, frames/s.
func BackToBackOf(bursts []float64, most, throughput float64) (b BackToBack, ok bool) {
	mean, ok := stats.Mean(bursts)
	if !ok || most <= 0 {
		return b, false
	}
	b = BackToBack{Bursts: bursts, Mean: mean, Min: bursts[0], Max: bursts[0]}
	b.Dev, _ = stats.StdDev(bursts)
	for _, x := range bursts {
		b.Min, b.Max = math.Min(b.Min, x), math.Max(b.Max, x)
	}
	b.Implied = mean / most
	b.Corrected = b.Implied * (most - throughput) / most
	return b, true
}

// RFC2544 plays the tests for each frame size in one direction after the other: throughput (M-NDR),
// then, at each size, the loss curve from the greatest load down, back-to-back bursts, delay at
// the throughput, and recovery from an overload.
type RFC2544 struct {
	Sizes      []int // of frames
	IPv6       bool
	Directions []plan.Direction
	Link       float64 // bit/s on the wire: what loads are shares of
	Quick      bool    // shorter everything
	Parts      []string
	Verify     int // repeats of a lossy trial of the throughput search, as in RatePreset
	UDP        plan.Plan
}

// The parts of M-2544.
const (
	PartThroughput = "throughput"
	PartLoss       = "loss"
	PartBursts     = "back-to-back"
	PartLatency    = "latency"
	PartRecovery   = "recovery"
)

// RFC2544Parts are all of them, in the order in which they are done.
func RFC2544Parts() []string {
	return []string{PartThroughput, PartLoss, PartBursts, PartLatency, PartRecovery}
}

// timesOf are the lengths of the parts.
type timesOf struct {
	preset            string
	loss, latency     time.Duration
	overload, recover time.Duration
	residue, calm     time.Duration
	step              float64 // of the loss curve
	bursts            int     // repeats
	burstMost         time.Duration
}

func (r RFC2544) times() timesOf {
	if r.Quick {
		return timesOf{
			preset: "quick", loss: time.Second, latency: 2 * time.Second, overload: 2 * time.Second, recover: 2 * time.Second,
			residue: 200 * time.Millisecond, calm: 500 * time.Millisecond, step: 0.1, bursts: 3, burstMost: 500 * time.Millisecond,
		}
	}
	return timesOf{
		preset: "rfc2544", loss: 60 * time.Second, latency: 120 * time.Second, overload: 60 * time.Second, recover: 60 * time.Second,
		residue: 2 * time.Second, calm: 5 * time.Second, step: 0.1, bursts: 50, burstMost: 2 * time.Second,
	}
}

// Does reports that a part was asked for.
func (r RFC2544) Does(part string) bool {
	for _, p := range r.Parts {
		if p == part {
			return true
		}
	}
	return len(r.Parts) == 0
}

// most is the greatest payload rate of a frame size.
func (r RFC2544) most(frame int) float64 {
	p, _ := FramePayload(frame, r.IPv6)
	return FrameRate(r.Link, frame) * float64(p) * 8
}

// udp is the plan of a size.
func (r RFC2544) udp(frame int, d plan.Direction) plan.Plan {
	p := r.UDP
	p.BlockSize, _ = FramePayload(frame, r.IPv6)
	p.Transport, p.Direction, p.Streams, p.RateSet = plan.UDP, d, 1, true
	return p
}

func (r RFC2544) search(frame int, d plan.Direction) NDR {
	preset, _ := RatePresetOf(r.times().preset)
	preset.Verify = r.Verify
	return NDR{Preset: preset, Directions: []plan.Direction{d}, Max: r.most(frame), Told: true, UDP: r.udp(frame, d)}
}

// key begins the names of the steps of a part.
func key(frame int, d plan.Direction, part string) string {
	return fmt.Sprintf("%d-%s-%s/", frame, d, part)
}

// with are the steps of a part, their names without the key.
func with(history []Done, k string) (out []Done) {
	for _, h := range history {
		if name, ok := strings.CutPrefix(h.Step.Name, k); ok {
			h.Step.Name = name
			out = append(out, h)
		}
	}
	return out
}

// Next implements Method.
func (r RFC2544) Next(history []Done) (Step, bool) {
	if n := len(history); n > 0 && !usable(history[n-1]) {
		return Step{}, false
	}
	for _, d := range r.Directions {
		for _, frame := range r.Sizes {
			for _, part := range RFC2544Parts() {
				if !r.Does(part) && part != PartThroughput { // the others need it
					continue
				}
				k := key(frame, d, part)
				s, more := r.part(part, frame, d, history, with(history, k))
				if !more {
					continue
				}
				s.Name = k + s.Name
				s.Title = fmt.Sprintf("%d B %s", frame, s.Title)
				return s, true
			}
		}
	}
	return Step{}, false
}

// Throughput is the lower bound of M-NDR for a size, payload bit/s; 0 = none is known.
func (r RFC2544) Throughput(frame int, d plan.Direction, history []Done) RateAnswer {
	mine := with(history, key(frame, d, PartThroughput))
	for _, a := range r.search(frame, d).Answer(mine) {
		for _, g := range a.Answers {
			return g
		}
	}
	return RateAnswer{}
}

func (r RFC2544) part(part string, frame int, d plan.Direction, history, mine []Done) (Step, bool) {
	if part == PartThroughput {
		return r.search(frame, d).Next(mine)
	}
	rate := r.Throughput(frame, d, history).Lower
	if rate <= 0 {
		return Step{}, false
	}
	p := r.udp(frame, d)
	t := r.times()
	s := Step{Name: fmt.Sprint(len(mine) + 1)}
	if n := len(mine); n > 0 {
		if l := conclude.LossOf(mine[n-1].Run, result.Direction(d)); l != nil && l.Lost > 0 {
			s.Pause = t.residue + t.calm
		}
	}
	length := func(x time.Duration, bps float64) {
		p.Bitrate, p.Duration, p.Interval = int64(bps), x, max(min(x, time.Second), plan.MinInterval)
		s.Volume = int64(bps / 8 * x.Seconds())
	}
	switch part {
	case PartLoss:
		share, more := r.nextShare(d, mine)
		if n := len(mine); n > 0 && unclear(&mine[n-1], result.Direction(d)) {
			share, more = float64(mine[n-1].Step.Plan.Bitrate)/r.most(frame), true
			p.Offload = plan.OffloadOff
		}
		if !more {
			return s, false
		}
		length(t.loss, share*r.most(frame))
		// Below what the path carries, a burst after a moment without a processor would be another load.
		// Above it a queue is full anyway, and what counts is that the load is offered whole.
		found := r.Throughput(frame, d, history)
		load := share * r.most(frame)
		if p.Steady = found.Upper == 0 || load <= found.Upper; p.Steady {
			p.CatchUp = min(max(found.Lower/load-1, 0), curveCatchUp)
		}
		s.Title, s.Why = fmt.Sprintf("%s at %.0f %% of the link", d, 100*share), "how much is lost at this load?"
	case PartBursts:
		if !r.burst(&p, &s, frame, d, mine) {
			return s, false
		}
	case PartLatency:
		if len(mine) > 0 {
			return s, false
		}
		length(t.latency, rate)
		p.Probe = &plan.Probe{Spacing: 20 * time.Millisecond, Size: 64}
		s.Title, s.Why = fmt.Sprintf("%s at its throughput", d), "how long do frames take?"
	case PartRecovery:
		// The load falls while frames flow: half of the throughput goes on, what is on top of it ends. That
		// takes two tests at a time, which a plain iperf3 does not have.
		if len(mine) > 0 || !extended(history) {
			return s, false
		}
		length(t.overload+t.recover, rate/2)
		p.Interval = plan.MinInterval
		over := p
		over.Bitrate, over.Duration = int64(math.Min(1.1*rate, r.most(frame))-rate/2), t.overload
		s.With = []plan.Plan{over}
		s.Volume += int64(float64(over.Bitrate) / 8 * over.Duration.Seconds())
		s.Title, s.Why = fmt.Sprintf("%s, overloaded and then at half", d), "after 110 % of the throughput: until when is something lost at 50 %?"
	}
	s.Plan = p
	return s, true
}

// nextShare is the next load of the loss curve: downward from the whole link, until two loads in a
// row lost nothing. A load at which merged datagrams were dropped is made again first.
func (r RFC2544) nextShare(d plan.Direction, mine []Done) (float64, bool) {
	share, clean := 1.0, 0
	for i := range mine {
		m := &mine[i]
		if unclear(m, result.Direction(d)) { // it is made again
			continue
		}
		if l := conclude.LossOf(m.Run, result.Direction(d)); l != nil && l.Lost == 0 {
			clean++
		} else {
			clean = 0
		}
		share -= r.times().step
	}
	return share, clean < 2 && share > 1e-6
}

// burstState is the search for the longest burst without loss of one repeat.
type burstState struct {
	done []float64 // longest bursts of finished repeats, frames
	low  float64   // of the present one
	high float64
	next float64
	over bool // a burst of the longest time lost nothing
	host bool // the receiving socket dropped of one
}

// burstNear ends a repeat: the longest burst is known to so much.
const burstNear = 0.05

func (r RFC2544) bursts(frame int, d plan.Direction, mine []Done) burstState {
	t := r.times()
	most := math.Floor(FrameRate(r.Link, frame) * t.burstMost.Seconds())
	b := burstState{high: most, next: most}
	for _, m := range mine {
		n := float64(m.Step.Plan.Blocks)
		l := conclude.LossOf(m.Run, result.Direction(d))
		if own, _ := ownDrops(m.Run, result.Direction(d)); own > 0 {
			b.host = true
		}
		if l != nil && l.Lost == 0 {
			if b.low = math.Max(b.low, n); n >= most {
				b.over = true
				b.done = append(b.done, n)
				return b
			}
		} else {
			b.high = math.Min(b.high, n)
		}
		if b.high-b.low <= math.Max(1, burstNear*b.high) {
			b.done = append(b.done, b.low)
			// The next repeat begins around what this one found.
			b.low, b.high, b.next = 0, most, math.Max(math.Round(1.1*b.low), 1)
			continue
		}
		b.next = math.Max(math.Round((b.low+b.high)/2), 1)
		if len(b.done) > 0 && b.low > 0 && b.high >= most {
			b.next = math.Min(math.Round(1.2*b.low), most)
		}
	}
	return b
}

// burst makes the next burst at the link's rate.
func (r RFC2544) burst(p *plan.Plan, s *Step, frame int, d plan.Direction, mine []Done) bool {
	b := r.bursts(frame, d, mine)
	t := r.times()
	if b.over || len(b.done) >= t.bursts || len(mine) > 40*t.bursts {
		return false
	}
	p.Blocks, p.Bitrate, p.Duration, p.OneRow, p.Interval = int64(b.next), int64(r.most(frame)), 0, true, 0
	s.Pause = t.residue
	s.Volume = p.Blocks * int64(p.BlockSize)
	s.Title, s.Why = fmt.Sprintf("%s, burst of %.0f", d, b.next), "how long a burst is taken without loss?"
	return true
}

// SizeResult is what was found for one frame size in one direction. Rates in frames/s unless said.
type SizeResult struct {
	Frame      int
	Direction  plan.Direction
	Most       float64 // the link's greatest frame rate
	Throughput float64
	Rate       RateAnswer // payload bit/s
	Loss       []LossPoint
	Bursts     *BackToBack
	Latency    *result.Quantiles // round trip of probes beside the frames, s
	Variation  *result.Quantiles // one way, of the frames themselves, above the least
	Recovery   *float64          // s from the overload's end to the last loss at half of the throughput; nil = not known
}

// LossPoint is one load of the loss curve.
type LossPoint struct {
	Share float64 // of the link
	Loss  float64 // ratio
	Own   float64 // the part of it that the receiving host's socket dropped, ratio of what was sent
	Short bool    // the sender did not reach the load: the loss is that of a lower one
}

// Answer reads the history.
func (r RFC2544) Answer(history []Done) (out []SizeResult) {
	for _, d := range r.Directions {
		for _, frame := range r.Sizes {
			a := r.Throughput(frame, d, history)
			if a.Trials == 0 {
				continue
			}
			payload, _ := FramePayload(frame, r.IPv6)
			x := SizeResult{Frame: frame, Direction: d, Most: FrameRate(r.Link, frame), Rate: a, Throughput: a.Lower / float64(payload*8)}
			x.Loss = r.curve(frame, result.Direction(d), with(history, key(frame, d, PartLoss)))
			b := r.bursts(frame, d, with(history, key(frame, d, PartBursts)))
			if bb, ok := BackToBackOf(b.done, x.Most, x.Throughput); ok {
				bb.Endless, bb.Host = b.over, b.host
				x.Bursts = &bb
			}
			for _, m := range with(history, key(frame, d, PartLatency)) {
				x.latency(m.Run, result.Direction(d))
			}
			if m := with(history, key(frame, d, PartRecovery)); len(m) > 0 {
				x.Recovery = recovery(&m[0], result.Direction(d))
			}
			out = append(out, x)
		}
	}
	return out
}

// curveCatchUp is by which share of a load a sender that was late goes faster, where the path carries that
// without loss.
const curveCatchUp = 0.04

// curve reads the loads of the loss curve; those that were made again count once.
func (r RFC2544) curve(frame int, d result.Direction, mine []Done) (out []LossPoint) {
	for i := range mine {
		m := &mine[i]
		l := conclude.LossOf(m.Run, d)
		if l == nil || unclear(m, d) {
			continue
		}
		p := LossPoint{Share: float64(m.Step.Plan.Bitrate) / r.most(frame), Loss: l.Ratio, Short: shortOf(m.Run, d, float64(m.Step.Plan.Bitrate))}
		if own, _ := ownDrops(m.Run, d); l.Sent > 0 {
			p.Own = float64(own) / float64(l.Sent)
		}
		out = append(out, p)
	}
	return out
}

func (x *SizeResult) latency(run *result.Run, d result.Direction) {
	if run == nil {
		return
	}
	for i := range run.Probes {
		if p := &run.Probes[i]; p.Kind == "udp-echo" && p.RoundTrip != nil {
			x.Latency = p.RoundTrip
		}
	}
	for _, s := range run.Streams {
		if s.Direction == d && s.UDP != nil && s.UDP.Received != nil && s.UDP.Received.PDV != nil {
			x.Variation = s.UDP.Received.PDV
		}
	}
}

// extended reports that the other end is a fullbore, by the first run that tells.
func extended(history []Done) bool {
	for _, h := range history {
		if h.Run != nil && h.Run.Wire != nil {
			return h.Run.Wire.Extension
		}
	}
	return false
}

// recovery is how long after the overload's end, s, something was still lost of what went on at half
// of the throughput; 0 = nothing was. nil = it is not known, or there was no overload. The two tests
// begin together but for what connecting takes, so a row that begins less than a row after the end
// may be of the overload: it counts for that.
func recovery(m *Done, d result.Direction) *float64 {
	if m.Run == nil || len(m.With) == 0 || m.With[0] == nil || m.With[0].Err != nil {
		return nil
	}
	over := m.With[0].Sum(d)
	if over == nil || over.Sender == nil || lostOf(m.Run, d)+lostOf(m.With[0], d) <= 0 {
		return nil
	}
	end := over.Sender.End
	var out *float64
	for i := range m.Run.Rows {
		row := &m.Run.Rows[i]
		if row.End != d.Receiver() {
			continue
		}
		for _, s := range row.Sums {
			if s.Direction != d || s.Sender || s.Lost == nil {
				continue
			}
			if out == nil {
				out = new(float64)
			}
			if *s.Lost > 0 && s.Start > end+plan.MinInterval.Seconds() {
				*out = s.Stop - end
			}
		}
	}
	return out
}

func lostOf(run *result.Run, d result.Direction) int64 {
	if l := conclude.LossOf(run, d); l != nil {
		return l.Lost
	}
	return 0
}

// Possible are the steps for whoever wants to know before.
func (r RFC2544) Possible() (out []Step) {
	for _, d := range r.Directions {
		for _, frame := range r.Sizes {
			for _, s := range r.search(frame, d).Possible() {
				s.Title = fmt.Sprintf("%d B %s", frame, s.Title)
				out = append(out, s)
			}
		}
	}
	return out
}
