package diagnose

import (
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
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
		if ends(d.Err) && d.Step.Plan.ClientPort == 0 { // one port may be taken, others are not
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
		out = append(out, p.stage(l.dir, "1", "single stream", "what one copy gets, and what its sender waits for", p.Budget.Single, func(pl *plan.Plan) {
			if pl.Probe != nil {
				pl.Probe.Classes = probedClasses()
			}
		}))
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
	out = append(out, decide...)
	var both []*method.Step
	if len(legs) == 2 && p.Budget.Name != "quick" {
		both = p.bothWays(c)
	}
	if slices.ContainsFunc(legs, func(l *leg) bool { return l.spread(c) }) {
		return append(append(out, both...), confirm...) // a bundle: which member the other way takes decides more
	}
	return append(append(out, confirm...), both...)
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
		{"UDP in pieces, slow", "where packets are smaller than the ends': does a datagram that has to be cut arrive?", max(some, 2*time.Second), true},
		{"single stream, later", "where others were seen on an interface, or the rate wavered: is it still so?", some, false},
		{"small segments", "where nothing arrives: do smaller packets come through?", time.Second, true},
		{"16 streams, then one from a port of each kind", "where streams were unequal: do their source ports take different ways?", some, false},
		{"1 stream marked EF, twice the rate", "where best effort waits and EF does not: does another class take its share?", some, true},
		{"both directions at once", "does each way keep its rate beside the other?", some, true},
		{"both at once, one stream each, other ports", "where they do not: one medium for both, or one member of a bundle?", some, true},
	} {
		if s.each > 0 && !(p.SendOnly && s.probes) {
			out = append(out, method.Step{Title: s.title, Why: s.why, Plan: plan.Plan{Duration: s.each}})
		}
	}
	return out
}
