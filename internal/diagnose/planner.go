package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/bdp"
	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// Budget is how long a diagnosis may take, and how long its parts are.
type Budget struct {
	Name   string
	Total  time.Duration
	Idle   time.Duration // probes on the empty path
	Single time.Duration // measured part of one stream
	Short  time.Duration // of an intervention
	Omit   time.Duration // warm-up
	Police time.Duration // of one rate of M-POLICE, and
	Quiet  time.Duration // the silence before it
	Above  bool          // UDP may go above what TCP was seen to reach
}

// The budgets. Their totals are bounds: most paths need less.
func Quick() Budget {
	return Budget{Name: "quick", Total: 15 * time.Second, Idle: time.Second, Single: 2500 * time.Millisecond, Short: 1500 * time.Millisecond, Omit: 500 * time.Millisecond}
}

// Default is the budget of a minute.
func Default() Budget {
	return Budget{
		Name: "default", Total: time.Minute, Idle: 2 * time.Second, Single: 4 * time.Second, Short: 2 * time.Second, Omit: time.Second,
		Police: 6 * time.Second, Quiet: 2 * time.Second,
	}
}

// Deep is the budget of five minutes.
func Deep() Budget {
	return Budget{
		Name: "deep", Total: 5 * time.Minute, Idle: 5 * time.Second, Single: 20 * time.Second, Short: 6 * time.Second, Omit: 2 * time.Second,
		Police: 20 * time.Second, Quiet: 10 * time.Second, Above: true,
	}
}

// Planner is M-DIAG as a method: cheap facts first, each next stage chosen by what is still
// possible.
type Planner struct {
	Budget     Budget
	Facts      *result.Facts
	Directions []result.Direction // nil = both, up first
	// Congestion is the algorithm that all streams use; "" = the systems' own.
	Congestion string
	Most       int // streams at most; 0 = 64
	// SendOnly: the peer receives and tells nothing (NTTTCP). There is no way down, nothing
	// answers probes, and what arrived of UDP is not known here.
	SendOnly bool
}

// stage makes a step of a direction.
func (p Planner) stage(d result.Direction, what, title, why string, each time.Duration, change func(*plan.Plan)) *method.Step {
	s := &method.Step{
		Name: string(d) + "-" + what, Title: title + " " + string(d), Why: why,
		Plan: plan.Plan{
			Direction: plan.Direction(d), Streams: 1, Duration: each, Omit: p.Budget.Omit, Interval: rowLength, Congestion: p.Congestion,
			Send: plan.SendCheapest, Receive: plan.Discard, RemoteDiscard: true,
			Probe: &plan.Probe{Spacing: probeSpacing, Size: probeSize, Profile: "beside"},
		},
	}
	if p.SendOnly {
		s.Plan.Probe = nil
	}
	if change != nil {
		change(&s.Plan)
	}
	return s
}

const (
	rowLength    = 200 * time.Millisecond
	probeSpacing = 10 * time.Millisecond
	probeSize    = 64 // bytes of payload
)

// Next implements method.Method. A stage that no longer fits into the budget is left out;
// what would come after it is tried.
func (p Planner) Next(history []method.Done) (method.Step, bool) {
	spent := time.Duration(0)
	names := map[string]bool{}
	for _, d := range history {
		spent += d.Step.Length()
		names[d.Step.Name] = true
		if ends(d.Err) {
			return method.Step{}, false
		}
	}
	c := NewCase(history, p.Facts)
	if p.Budget.Name == "quick" && p.decided(c) {
		return method.Step{}, false
	}
	for _, s := range p.candidates(c) {
		if s == nil || names[s.Name] || !p.can(s) {
			continue
		}
		if s.Plan.Omit > 0 {
			s.Plan.Omit = min(max(s.Plan.Omit, seconds(slowStart*c.Idle.rtt)), 4*p.Budget.Omit)
		}
		if spent+s.Length() > p.Budget.Total {
			continue
		}
		if c.Idle.rtt >= longTrip && s.Plan.Transport != plan.UDP && s.Plan.BlockSize == 0 {
			s.Plan.BlockSize = copiedBlock
		}
		return *s, true
	}
	return method.Step{}, false
}

// can reports that the peer can take part in a stage.
func (p Planner) can(s *method.Step) bool {
	pl := &s.Plan
	return !p.SendOnly || pl.Direction == plan.Up && pl.Transport != plan.UDP && pl.Probe == nil && pl.MSS == 0 && pl.Congestion == p.Congestion
}

// decided reports that each direction has a cause, or is full, beyond doubt, and that it is known
// what several streams carry (what would be reached with the cause mended): a quick diagnosis
// ends there.
func (p Planner) decided(c *Case) bool {
	vs := Judge(c.History, p.Facts)
	for _, l := range p.legs(c) {
		one := l.one()
		if one == nil || !stuck(one) && l.many() == nil && p.most() >= 4 {
			return false
		}
		if !slices.ContainsFunc(vs, func(v result.Verdict) bool {
			return !v.Note && v.Certainty == Proven && (v.Direction == string(l.dir) || v.Direction == "both")
		}) {
			return false
		}
	}
	return true
}

// On long paths, where buffers can matter, blocks are of a size that both ends copy, as an
// application's are; on short ones, where processors matter, the cheapest way is taken. It does
// not keep the sender to its send buffer: with a limit of 64 KiB, Linux 6.18 lets 130 to 250 KB be
// on the way (a super-packet may pass the limit), copied or not.
const (
	// slowStart is how many round trips a stream takes to get as fast as it will: it doubles each
	// time, from 10 packets to the largest window of autotuning in ten and more.
	slowStart   = 14
	longTrip    = 0.002 // s
	copiedBlock = 16 << 10
)

// ends reports errors after which no stage would fare better: nobody answers, or does not
// want to.
func ends(e *result.Error) bool {
	if e == nil {
		return false
	}
	switch e.Code {
	case "connect", "resolve", "address", "not-iperf3", "silent-peer", "busy", "denied", "auth", "plan":
		return true
	}
	return e.Interrupted
}

// candidates are the stages that make sense by what is known, in the order in which they
// are wanted. Those made already, and those that do not fit, are passed over.
func (p Planner) candidates(c *Case) []*method.Step {
	out := []*method.Step{p.idle()}
	if p.SendOnly {
		out = nil
	} else if len(c.History) > 0 && (c.Idle.probes == nil || c.Idle.probes.RoundTrip == nil && c.Idle.probes.TCPMinRTT == nil && c.Idle.probes.Connect == nil) {
		out = append(out, p.idleTCP()) // UDP does not come through, or nothing answers it
	}
	legs := p.legs(c)
	for _, l := range legs {
		out = append(out, p.stage(l.dir, "1", "single stream", "what one copy gets, and what its sender waits for", p.Budget.Single, nil))
	}
	// What decides comes first, direction by direction, the slower one before.
	slices.SortStableFunc(legs, func(a, b *leg) int {
		x, y := a.one(), b.one()
		switch {
		case x == nil || y == nil || x.rate == y.rate:
			return 0
		case x.rate < y.rate/(1+same):
			return -1
		case y.rate < x.rate/(1+same):
			return 1
		}
		return 0
	})
	var decide, confirm []*method.Step
	for _, l := range legs {
		a, b := p.interventions(c, l)
		decide, confirm = append(decide, a...), append(confirm, b...)
	}
	out = append(append(out, decide...), confirm...)
	if len(legs) == 2 && p.Budget.Name != "quick" {
		s := p.stage(result.Up, "", "both directions at once", "does each way keep its rate beside the other?", p.Budget.Short, func(pl *plan.Plan) { pl.Direction, pl.Streams = plan.Both, 4 })
		s.Name, s.Title = "both-4", "both directions at once"
		out = append(out, s)
	}
	return out
}

func (p Planner) legs(c *Case) []*leg {
	dirs := p.Directions
	if dirs == nil {
		dirs = []result.Direction{result.Up, result.Down}
	}
	var out []*leg
	for _, d := range dirs {
		if d == result.Down {
			out = append(out, &c.Down)
		} else {
			out = append(out, &c.Up)
		}
	}
	return out
}

func (p Planner) idle() *method.Step {
	return &method.Step{
		Name: "idle", Title: "the empty path", Why: "round trip and loss without load",
		Volume: int64(2 * 64 * p.Budget.Idle / probeSpacing),
		Plan: plan.Plan{
			Transport: plan.UDP, Direction: plan.Up, Streams: 1, BlockSize: 64, RateSet: true, Bitrate: int64(64 * 8 / probeSpacing.Seconds()), Duration: p.Budget.Idle,
			Probe: &plan.Probe{Spacing: probeSpacing, Size: probeSize, Profile: "idle", Idle: true},
		},
	}
}

func (p Planner) idleTCP() *method.Step {
	return &method.Step{
		Name: "idle-tcp", Title: "connecting", Why: "the round trip by connection set-up, since no probe is answered",
		Plan: plan.Plan{
			Direction: plan.Up, Streams: 9, NoDelay: true, BlockSize: 128, Bitrate: 128 * 8, RateSet: true, Duration: time.Second,
			Probe: &plan.Probe{Spacing: probeSpacing, Size: probeSize, Profile: "back-to-back", Idle: true, TCP: true},
		},
	}
}

// interventions are the stages for one direction: those that decide between what is still
// possible, and those that confirm.
func (p Planner) interventions(c *Case, l *leg) (decide, confirm []*method.Step) {
	one := l.one()
	if one == nil {
		return nil, nil
	}
	if stuck(one) {
		return p.unstick(l), nil
	}
	if !one.usable() {
		return nil, nil
	}
	four := p.streams(l, 4)
	_, _, cpu := one.cpuBound()
	switch {
	case cpu:
		decide = append(decide, p.copied(l), four)
	case one.windowBound() || one.bufferBound() || heldUnseen(c, l):
		decide = append(decide, four)
		decide = append(decide, p.grow(l)...)
		decide = append(decide, p.scan(c, l)...)
	case one.retransmits > 0 && lossMatters(one):
		decide = append(decide, p.half(l, one), four)
		decide = append(decide, p.afterHalf(c, l)...)
	default:
		decide = append(decide, four)
	}
	confirm = append(confirm, p.grow(l)...)
	// Whoever is fast only with several streams may meet another limit there.
	if m := l.many(); m != nil && m.retransmits > 0 && lossMatters(m) {
		confirm = append(confirm, p.half(l, m))
		confirm = append(confirm, p.afterHalf(c, l)...)
	}
	confirm = append(confirm, p.datagrams(l), p.half(l, one))
	if p.Budget.Name == "deep" {
		confirm = append(confirm, p.copied(l))
	}
	return decide, confirm
}

// streams is a stage of several streams.
func (p Planner) streams(l *leg, n int) *method.Step {
	if n > p.most() {
		return nil
	}
	return p.stage(l.dir, fmt.Sprint(n), fmt.Sprintf("%d streams", n), "does the sum grow with the streams?", p.Budget.Short, func(pl *plan.Plan) { pl.Streams = n })
}

func (p Planner) most() int {
	if p.Most == 0 {
		return 64
	}
	return p.Most
}

// grow goes on to more streams while the sum grows.
func (p Planner) grow(l *leg) (out []*method.Step) {
	before := l.one()
	for _, n := range []int{4, 16, 64} {
		f := l.find(fmt.Sprint(n))
		if f == nil {
			return append(out, p.streams(l, n))
		}
		if !f.usable() || f.rate < (1+moved)*before.rate {
			return out
		}
		before = f
	}
	return out
}

// copied repeats the single stream the way an application moves data: if that is slower,
// our own cost matters, so the processor is in the way.
func (p Planner) copied(l *leg) *method.Step {
	return p.stage(l.dir, "copy", "single stream, copied,", "does it get slower when each byte costs more?", p.Budget.Short, func(pl *plan.Plan) {
		pl.Send, pl.Receive, pl.RemoteDiscard = plan.SendCopy, plan.Copy, false
		pl.BlockSize = 16 << 10
	})
}

// half repeats a flow paced at half of its rate: retransmits that vanish were congestion,
// ones that stay are errors.
func (p Planner) half(l *leg, f *flow) *method.Step {
	each := int64(f.rate / 2 / float64(f.streams))
	if each < 64e3 {
		return nil
	}
	// As long as it takes for chance to show a few, if they stay: a slow stream sends few packets.
	length := p.Budget.Short
	if n := f.losses(); n.runs >= 1 && f.mss > 0 {
		events := n.expected(f.rate / 2 / 8 / f.mss) // a second
		length = min(max(length, seconds(2*enough/events)), 5*p.Budget.Short/2)
	}
	s := p.stage(l.dir, "half", "half the rate", "retransmits that vanish were congestion, ones that stay are errors", length, func(pl *plan.Plan) {
		pl.Streams, pl.Bitrate, pl.RateSet, pl.FQRate = f.streams, each, true, each*5/4
		pl.BlockSize = blockFor(each)
	})
	s.Volume = int64(f.rate / 16 * (length + p.Budget.Omit).Seconds())
	return s
}

// blockFor keeps a paced sender's writes small: a large block is a burst of its own.
func blockFor(bps int64) int {
	b := int(bps / 8 / 500)
	return min(max(b, 1<<10), 32<<10)
}

// datagrams is UDP at half of what TCP reached: loss with its owner and pattern.
func (p Planner) datagrams(l *leg) *method.Step {
	b := l.best()
	if b == nil || b.rate < 128e3 || udpDead(l.case_) {
		return nil
	}
	rate := int64(b.rate / 2)
	if one := l.one(); one != nil && one.usable() && linear(l) && (!lossMatters(one) || l.lossesVanish(one) || ownQueue(l.case_, one)) {
		rate = int64(one.rate / 2) // each flow seems to be held: one of UDP would be, too
	}
	s := p.stage(l.dir, "udp", "UDP at half of TCP's rate", "loss and delay that TCP hides", max(p.Budget.Short, 2*time.Second), func(pl *plan.Plan) {
		pl.Transport, pl.Bitrate, pl.RateSet, pl.Congestion, pl.Probe = plan.UDP, rate, true, "", nil
		pl.Send, pl.Receive, pl.RemoteDiscard, pl.Omit = plan.SendCopy, plan.Copy, false, 0
	})
	s.Volume = int64(float64(rate) / 8 * s.Plan.Duration.Seconds())
	return s
}

// afterHalf is what to ask when it is known whether loss depends on the rate.
func (p Planner) afterHalf(c *Case, l *leg) (out []*method.Step) {
	f := l.find("half")
	if f == nil || !f.ratioKnown {
		return nil
	}
	of := l.lossy()
	if of == nil {
		return nil
	}
	if l.lossesStay(of) || belowItsShare(c, l) {
		out = append(out, p.datagrams(l))
		if conclude.LossBased(of.cc) && slices.Contains(c.Facts.Available, "bbr") && p.Congestion != "bbr" {
			out = append(out, p.stage(l.dir, "bbr", "single stream with BBR", "a congestion control that does not take loss for congestion", p.Budget.Short, func(pl *plan.Plan) { pl.Congestion = "bbr" }))
		}
		return out
	}
	if p.Budget.Police > 0 && unqueued(c, of) {
		out = append(out, p.police(l)...)
	}
	return out
}

// police is M-POLICE in its short form, unless Deep. It does not send above what TCP was
// seen to reach in a row of 200 ms, except in a deep diagnosis.
func (p Planner) police(l *leg) (out []*method.Step) {
	rate, peak := plateau(l)
	if rate <= 0 || l.dir == result.Up && !l.case_.extended() {
		return nil // a plain iperf3 tells no rows of what arrived: when losses began is not known
	}
	m := method.Police{Direction: l.dir, Rate: rate, Factors: [2]float64{1.5, 2}, Silence: p.Budget.Quiet, Each: p.Budget.Police}
	if !p.Budget.Above && peak < 2*rate {
		m.Factors = [2]float64{0.8 * peak / rate, peak / rate}
		if m.Factors[0] < 1.1 {
			return nil
		}
	}
	s, more := m.Next(policeHistory(l))
	if !more {
		return nil
	}
	s.Plan.RemoteDiscard = false
	return []*method.Step{&s}
}

func policeHistory(l *leg) (out []method.Done) {
	for _, d := range l.case_.History {
		if strings.HasPrefix(d.Step.Name, string(l.dir)+"-police-") {
			out = append(out, d)
		}
	}
	return out
}

// scans is how many windows the short form of M-WSCAN tries.
const scans = 3

// scan is M-WSCAN in its short form: windows up to what the path needs, as far as this host
// may set them. One that is within a quarter of another tells nothing new.
func (p Planner) scan(c *Case, l *leg) []*method.Step {
	need, one := float64(neededWindow(c, l)), l.one()
	made := l.windows()
	if need == 0 || len(made) >= scans {
		return nil
	}
	// A first one that only doubles what there is fits under most limits.
	now := one.window
	if !one.windowBound() {
		now = one.onTheWay(c)
	}
	for _, w := range []float64{2 * now, need, 2 * need} {
		for _, most := range []*int64{c.Facts.CoreRead, c.Facts.CoreWrite} {
			if most != nil {
				w = min(w, float64(*most))
			}
		}
		w = min(w, plan.MaxWindow)
		if w < 4096 || w < 1.2*now || slices.ContainsFunc(made, func(f *flow) bool { return w < 1.25*float64(f.run.Test.Window) }) {
			continue
		}
		n := int64(w)
		return []*method.Step{p.stage(l.dir, fmt.Sprintf("window-%d", n), fmt.Sprintf("single stream, window %s,", units.ByteSize(n).IEC()), "does the rate follow the window?", p.Budget.Short, func(pl *plan.Plan) { pl.Window = n })}
	}
	return nil
}

// neededWindow is the bandwidth-delay product of the most that the direction is known to
// carry, bytes; 0 when the round trip is not known.
func neededWindow(c *Case, l *leg) int64 {
	b := l.best()
	if b == nil || c.Idle.rtt == 0 {
		return 0
	}
	rate := b.wire(b.rate)
	if one := l.one(); one != nil && one.usable() && b.rate < (1+moved)*one.rate {
		rate *= 2 // nothing faster was seen yet
	}
	return int64(bdp.Product(units.BitRate(rate), time.Duration(c.Idle.rtt*1e9)))
}

// unstick tries small segments where nothing comes through, and then looks for the largest
// that do.
func (p Planner) unstick(l *leg) (out []*method.Step) {
	low, high := 1000, 1448
	if f := l.find("mss-1000"); f != nil && !stuck(f) && f.usable() {
		for high-low > 16 {
			mid := (low + high) / 2
			g := l.find(fmt.Sprintf("mss-%d", mid))
			if g == nil {
				return []*method.Step{p.small(l, mid)}
			}
			if g.usable() && !stuck(g) {
				low = mid
			} else {
				high = mid
			}
		}
		return nil
	}
	return []*method.Step{p.small(l, low)}
}

func (p Planner) small(l *leg, mss int) *method.Step {
	return p.stage(l.dir, fmt.Sprintf("mss-%d", mss), fmt.Sprintf("segments of %d bytes", mss), "do smaller packets come through?", time.Second, func(pl *plan.Plan) {
		pl.MSS, pl.Omit = mss, 0
		pl.Bitrate, pl.RateSet, pl.BlockSize = 2e6, true, 4096
		pl.ReceiveTimeout = 4 * time.Second
	})
}

// Volume says about how much a diagnosis moves on a path of that rate, payload bytes in
// both directions.
func Volume(b Budget, bps float64) int64 {
	return int64(bps / 8 * b.Total.Seconds() * 0.7)
}

// Possible are the stages that may be made, in about their order, for those who want to
// know before.
func (p Planner) Possible() (out []method.Step) {
	if !p.SendOnly {
		out = append(out, *p.idle())
	}
	dirs := p.Directions
	if dirs == nil {
		dirs = []result.Direction{result.Up, result.Down}
	}
	for _, d := range dirs {
		out = append(out, *p.stage(d, "1", "single stream", "what one copy gets, and what its sender waits for", p.Budget.Single, nil))
	}
	some := p.Budget.Short
	for _, s := range []struct {
		title, why string
		each       time.Duration
		probes     bool // more than a stream of TCP up
	}{
		{"4, 16, 64 streams", "does the sum grow with the streams?", some, false},
		{"other windows", "does the rate follow the window?", some, false},
		{"half the rate", "retransmits that vanish were congestion, ones that stay are errors", some, false},
		{"UDP at half of TCP's rate", "loss and delay that TCP hides", max(some, 2*time.Second), true},
		{"BBR", "a congestion control that does not take loss for congestion", some, true},
		{"copied instead of zero-copy", "does it get slower when each byte costs more?", some, false},
		{"UDP after silence, two rates", "a policer lets a burst through and then drops, without delay", p.Budget.Police, true},
		{"small segments", "where nothing arrives: do smaller packets come through?", time.Second, true},
		{"both directions at once", "does each way keep its rate beside the other?", some, true},
	} {
		if s.each > 0 && !(p.SendOnly && s.probes) {
			out = append(out, method.Step{Title: s.title, Why: s.why, Plan: plan.Plan{Duration: s.each}})
		}
	}
	return out
}
