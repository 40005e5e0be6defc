// Package conclude says what a finished (or broken-off) run means: which figure is
// the result, how sure it is, what was seen to limit it, what the reader must know
// beside it, and what to type next.
//
// It is pure: one Run in, the same Run with its conclusions out. Rules and thresholds
// are those of spec methods: M-BASE (the receiver's number is the result), M-STEADY,
// M-CPU, M-LIMIT. Where counters do not decide, it says so; it never guesses.
package conclude

import (
	"slices"

	"github.com/fullbore-net/fullbore/result"
)

// Codes of the notices that Conclude adds.
const (
	ShortRun        = "short-run"
	Unsteady        = "unsteady"
	Stalled         = "stalled"
	NothingArrived  = "nothing-arrived"
	SentNotReceived = "sent-not-received"
	ReceivedMore    = "received-more-than-sent"
	VersionDiffers  = "version-differs"
	ForeignPeer     = "foreign-peer"
	Steal           = "steal"
	CompetingLoad   = "competing-load"
	LocalDrops      = "local-drops"
	ClockFell       = "clock-fell"
	NoReceiverCount = "no-receiver-count"
)

// Validity flags of M-BASE that Conclude sets.
const (
	FlagUnsteady      = "unsteady"
	FlagSenderCPU     = "sender_cpu"
	FlagReceiverCPU   = "receiver_cpu"
	FlagSenderLimited = "sender_limited"
	FlagSteal         = "steal"
	FlagLocalDrops    = "local_drops"
	FlagWindowClamped = "window_clamped"
	FlagCounter       = "counter_missing"
)

// Conclude fills Summary, Next, Flags and Layers of run, Limit, Shares and the bounds of
// the loss of its sums, and appends notices. Doing it again changes nothing.
func Conclude(run *result.Run) { With{}.Conclude(run) }

// With are the reader's own wishes. The zero value is the default.
type With struct {
	Profiles []Profile // by which UDP is graded; nil = Profiles()
}

// Conclude is the function of that name.
func (w With) Conclude(run *result.Run) {
	c := &conclusion{run: run}
	profiles := w.Profiles
	if profiles == nil {
		profiles = Profiles()
	}
	for i := range run.Sums {
		s := &run.Sums[i]
		d := look(run, s.Direction)
		if isUDP(run) {
			d.loss = lossOf(run, d)
			if s.UDP != nil && s.UDP.Loss != nil {
				s.UDP.Loss = d.loss
			}
			s.Grades = grades(d, profiles)
		}
		d.verdict = limit(run, d)
		s.Limit, s.Shares = d.verdict.code, d.shares
		c.dirs = append(c.dirs, d)
	}
	if !madeForProbes(run) || isUDP(run) { // a test that only connects is short by intent
		c.notices()
	}
	c.flags()
	c.probeFlags()
	run.Layers = Layers(run)
	run.Summary = sentence(run, c.dirs)
	run.Next = c.next()
}

// Events draws the conclusions of run and returns them as the events that end its
// stream: the new notices, then one of KindConclusion. They carry the recording end;
// numbering them (Seq, T) is the caller's business.
func Events(run *result.Run) []result.Event { return With{}.Events(run) }

// Events is the function of that name.
func (w With) Events(run *result.Run) []result.Event {
	before := len(run.Notices)
	w.Conclude(run)
	var out []result.Event
	for i := range run.Notices[before:] {
		n := run.Notices[before+i]
		out = append(out, result.Event{Kind: result.KindNotice, End: run.End, Notice: &n})
	}
	return append(out, result.Event{Kind: result.KindConclusion, End: run.End, Conclusion: run.Conclusion()})
}

// conclusion is the work in progress on one run.
type conclusion struct {
	run  *result.Run
	dirs []*direction
}

// notice appends n unless it is there already.
func (c *conclusion) notice(n result.Notice) {
	if slices.Contains(c.run.Notices, n) {
		return
	}
	c.run.Notices = append(c.run.Notices, n)
}

// flag adds a validity flag once, keeping the list sorted.
func (c *conclusion) flag(name string) {
	if i, found := slices.BinarySearch(c.run.Flags, name); !found {
		c.run.Flags = slices.Insert(c.run.Flags, i, name)
	}
}

// has reports whether a notice of that code exists.
func has(run *result.Run, code string) bool {
	return slices.ContainsFunc(run.Notices, func(n result.Notice) bool { return n.Code == code })
}
