// Package diagnose names what limits a path, from everything that was measured on it.
//
// It is pure: a Case (host facts, and the runs of each stage) in, ranked verdicts out; and
// a Case in, the next stage out (Planner). It sends nothing and reads no clock, so a stored
// case is judged again in milliseconds.
//
// Each verdict has a certainty. "proven": an intervention moved the number as the verdict
// says it must. "likely": the evidence of both ends, or of the one that can know, points
// one way. "possible": it does not contradict. A path on which nothing is wrong gets
// path-full (or link-full) and no cause.
//
// A new verdict is a file with a rule, its code in the list below, a line in rules, a text
// in package explain, and scenarios that must and must not trigger it.
package diagnose

import (
	"cmp"
	"math"
	"slices"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/result"
)

// The certainties.
const (
	Proven   = "proven"
	Likely   = "likely"
	Possible = "possible"
)

// Codes of the verdicts: causes.
const (
	LinkFull      = "link-full"
	PathFull      = "path-full"
	ReceiveWindow = "receive-window"
	SendBuffer    = "send-buffer"
	Autotuning    = "autotuning-limit"
	ScalingLost   = "window-scaling-stripped"
	SenderCPU     = "sender-cpu"
	ReceiverCPU   = "receiver-cpu"
	LossRandom    = "loss-random"
	LossBursty    = "loss-bursty"
	ShallowBuffer = "shallow-buffer"
	Policer       = "policer"
	Shaper        = "shaper"
	PerFlow       = "per-flow-limit"
	RateLimited   = "rate-limited"
	Application   = "application"
	MTUHole       = "mtu-hole"
	Firewall      = "firewall"
	Outage        = "outage"
	Reordering    = "reordering"
	Competing     = "competing-traffic"
	ControlUnfit  = "congestion-control-unfit"
	ClassStarved  = "class-starved"
	ECMP          = "ecmp-imbalance"
	Inconclusive  = "inconclusive"
)

// Codes of the verdicts: notes.
const (
	StandingQueue  = "standing-queue"
	Asymmetric     = "asymmetric"
	SmallMTU       = "small-mtu"
	Fragmentation  = "fragmentation"
	SocketLoss     = "receive-socket-loss"
	LinkSlow       = "link-negotiated-low"
	HalfDuplex     = "half-duplex"
	SingleQueue    = "single-queue"
	Steal          = "stolen-time"
	Wireless       = "wireless"
	SameMachine    = "same-machine"
	Forwarder      = "forwarding-host"
	BothWays       = "both-ways-shortfall"
	LAGCollision   = "lag-collision"
	SharedMedium   = "shared-medium"
	TCPSplit       = "tcp-split"
	OptionsAltered = "tcp-options-altered"

	LoadedDelay    = "latency-under-load"
	Unsteady       = "unsteady"
	ToolLimit      = "tool-limit"
	OldPeer        = "old-peer"
	Translated     = "address-translated"
	MTUDiffers     = "mtu-differs"
	SpeedDiffers   = "speed-differs"
	CoresDiffer    = "cores-differ"
	VersionsDiffer = "versions-differ"
	ControlDiffers = "congestion-differs"
	OffloadOff     = "offload-off"
	BacklogDropped = "backlog-dropped"
	SmallRing      = "small-ring"
	Distance       = "numa-distance"
	TableFull      = "conntrack-full"
	SlowClock      = "slow-clock"
	EmulatedCard   = "emulated-card"
	SameHypervisor = "same-hypervisor"
)

// rule looks at a case and says what it sees: nothing, or some verdicts.
type rule struct {
	code  string // of the verdict that it mostly makes; for the tests
	look  func(*Case) []result.Verdict
	needs needs
}

// needs is what a rule is about, and so where it is asked: Case.asked.
type needs int

const (
	nothing needs = iota // it is about the ends, or looks for itself
	wire                 // it is about what lies between two machines, or about their being two
)

// rules is the whole list, in the order in which causes are ranked when nothing else
// decides: what stops traffic at all, then the hosts, then the settings, then the path.
var rules = []rule{
	{Firewall, firewall, nothing},
	{MTUHole, mtuHole, nothing},
	{Outage, outage, nothing},
	{SenderCPU, cpu, nothing},
	{RateLimited, setRate, nothing},
	{Application, application, nothing},
	{ScalingLost, scalingLost, nothing},
	{ReceiveWindow, receiveWindow, nothing},
	{SendBuffer, sendBuffer, nothing},
	{Reordering, reordering, nothing},
	{LossRandom, loss, wire},
	{ControlUnfit, controlUnfit, nothing},
	{Policer, police, nothing},
	{ClassStarved, classStarved, wire},
	{ECMP, ecmp, wire},
	{PerFlow, perFlow, nothing},
	{PerFlow, bundle, wire},
	{Competing, competing, wire},
	{ShallowBuffer, shallow, nothing},
	{PathFull, full, nothing},
	{StandingQueue, standingQueue, wire},
	{Asymmetric, asymmetric, wire},
	{BothWays, bothWays, wire},
	{LAGCollision, collision, nothing},
	{TCPSplit, tcpSplit, wire},
	{OptionsAltered, optionsAltered, nothing},
	{Firewall, udpBlocked, nothing},
	{SocketLoss, socketLoss, nothing},
	{SmallMTU, smallMTU, wire},
	{Fragmentation, fragmentation, wire},
	{LinkSlow, linkFacts, wire},
	{SingleQueue, hostFacts, wire},
	{Steal, stolen, nothing},
	{SameMachine, sameMachine, wire},
	{Unsteady, unsteady, nothing},
	{Forwarder, deviceUnderTest, wire},
	{SameHypervisor, sameHypervisor, wire},
	{OldPeer, oldPeer, nothing},
	{ToolLimit, toolLimit, wire},
	{BacklogDropped, backlog, nothing},
	{OffloadOff, hostNotes, wire},
	{Translated, differ, wire},
	{LoadedDelay, underLoad, wire},
}

// Judge applies every rule and ranks what they say: causes before notes, what leaves the
// least of the path first. Where nothing is a cause it says inconclusive, and what would
// decide; a case without any measurement has no verdicts.
func Judge(history []method.Done, facts *result.Facts) []result.Verdict {
	c := NewCase(history, facts)
	if !c.measured() {
		return nil // what is known of this host alone is the doctor's to say
	}
	var out []result.Verdict
	order := map[string]int{}
	for i, r := range rules {
		if !c.asked(r) {
			continue
		}
		for _, v := range r.look(c) {
			if _, known := order[v.Code]; !known {
				order[v.Code] = i
			}
			out = append(out, v)
		}
	}
	out = merge(c.withoutPaths(out))
	if !slices.ContainsFunc(out, func(v result.Verdict) bool { return !v.Note }) && c.measured() {
		out = append(out, inconclusive(c))
	}
	for i := range out {
		v := &out[i]
		if v.Evidence == nil {
			v.Evidence = []string{}
		}
		if v.Advice == nil {
			v.Advice = []string{}
		}
	}
	rank(out, order)
	return out
}

// rank orders verdicts. Of causes, what is sure comes before what is not, what explains
// more of the shortfall before what explains less; a full path is none and comes last.
func rank(vs []result.Verdict, order map[string]int) {
	unsure := func(v result.Verdict) int {
		if v.Certainty == Possible {
			return 1
		}
		return 0
	}
	kind := func(v result.Verdict) int {
		switch {
		case v.Note:
			return 2
		case v.Code == PathFull || v.Code == LinkFull || v.Code == Inconclusive:
			return 1
		}
		return 0
	}
	gain := func(v result.Verdict) float64 { // how many times more it would be, in coarse steps
		if v.Measured == nil || v.Reach == nil || *v.Measured <= 0 {
			return 0
		}
		return math.Round(2 * math.Log2(*v.Reach / *v.Measured))
	}
	slices.SortStableFunc(vs, func(a, b result.Verdict) int {
		return cmp.Or(
			cmp.Compare(kind(a), kind(b)),
			cmp.Compare(unsure(a), unsure(b)),
			cmp.Compare(gain(b), gain(a)),
			cmp.Compare(order[a.Code], order[b.Code]),
		)
	})
}

// merge puts the same verdict of both directions together where their figures agree, and how
// sure they are.
func merge(vs []result.Verdict) []result.Verdict {
	var out []result.Verdict
	for _, v := range vs {
		at := slices.IndexFunc(out, func(o result.Verdict) bool {
			return o.Code == v.Code && o.Host == v.Host && o.Direction == string(result.Up) && v.Direction == string(result.Down) && o.Certainty == v.Certainty && alike(o, v)
		})
		if at < 0 {
			out = append(out, v)
			continue
		}
		o := &out[at]
		o.Direction = "both"
		o.Evidence = append(prefixed("up: ", o.Evidence), prefixed("down: ", v.Evidence)...)
		for _, a := range v.Advice {
			if !slices.Contains(o.Advice, a) {
				o.Advice = append(o.Advice, a)
			}
		}
		o.Stages = append(o.Stages, v.Stages...)
	}
	return out
}

func prefixed(with string, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = with + l
	}
	return out
}

// alike reports that two directions have about the same rate, so that one figure stands
// for both.
func alike(a, b result.Verdict) bool {
	if a.Measured == nil || b.Measured == nil {
		return a.Measured == nil && b.Measured == nil
	}
	return math.Abs(*a.Measured-*b.Measured) <= 0.05*max(*a.Measured, *b.Measured)
}

func weaker(a, b string) string {
	for _, c := range []string{Possible, Likely} {
		if a == c || b == c {
			return c
		}
	}
	return Proven
}

// Codes are all codes of verdicts, causes first.
func Codes() []string {
	return []string{
		LinkFull, PathFull, ReceiveWindow, SendBuffer, Autotuning, ScalingLost, SenderCPU, ReceiverCPU, LossRandom, LossBursty, ShallowBuffer,
		Policer, Shaper, PerFlow, RateLimited, Application, MTUHole, Firewall, Outage, Reordering, Competing, ControlUnfit, ECMP, ClassStarved, Inconclusive,
		StandingQueue, Asymmetric, SmallMTU, Fragmentation, SocketLoss, LinkSlow, HalfDuplex, SingleQueue, Steal, Wireless, SameMachine, Forwarder, BothWays, LAGCollision, SharedMedium, TCPSplit, OptionsAltered,
		LoadedDelay, Unsteady, ToolLimit, OldPeer, Translated, MTUDiffers, SpeedDiffers, CoresDiffer, VersionsDiffer, ControlDiffers,
		OffloadOff, BacklogDropped, SmallRing, Distance, TableFull, SlowClock, EmulatedCard, SameHypervisor,
	}
}
