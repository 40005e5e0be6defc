package conclude

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// Codes of the notices about UDP.
const (
	SenderLimited    = "sender-limited" // a limit too
	LossAtSocket     = "loss-at-socket"
	LossUnknownOwner = "loss-unknown-owner"
	JitterClimbs     = "jitter-climbs"
	OffloadUncut     = "offload-uncut"
	PacingCoarse     = "pacing-coarse"
	StampsUser       = "stamps-user"
	TailUncounted    = "tail-uncounted"
)

// ReceiveSocket is the limit of a UDP direction whose receiving program was too slow.
const ReceiveSocket = "receive-socket"

// Thresholds of UDP.
const (
	// lossMatters: more than this is a limit, less a footnote (spec recipes §4).
	lossMatters = 0.001
	// climbFactor and climbLeast: delay variation climbs when its median over the last quarter is
	// more than twice the first quarter's and more than 1 ms.
	climbFactor = 2.0
	climbLeast  = 0.001
	// coarseLate: a sender whose bursts were later than this, 1 in 100, did not hold its pace.
	coarseLate = 0.001
	// offeredDiffers: from this loss on a sentence names the offered rate beside the delivered
	// one. Without loss they differ by the edges of the time only.
	offeredDiffers = 0.005
)

func isUDP(run *result.Run) bool { return run.Test.Transport == "udp" }

// lossOf is what is known of a direction's loss: the account of both ends; else the totals
// that a plain iperf3 gives, against what was sent where that is known; else the intervals of
// a run that broke off. nil = nothing is known. The bounds are those of all streams.
func lossOf(run *result.Run, d *direction) *result.UDPLoss {
	var out result.UDPLoss
	switch {
	case d.sum.UDP != nil && d.sum.UDP.Loss != nil:
		out = *d.sum.UDP.Loss
	case d.sum.Receiver != nil && d.sum.Receiver.Packets != nil && d.sum.Receiver.Lost != nil:
		r := d.sum.Receiver
		out = result.UDPLoss{Sent: *r.Packets, Lost: max(*r.Lost, 0), Attribution: "unknown"}
		if s := d.sum.Sender; s != nil && s.Packets != nil && run.Test.Omit == 0 && *s.Packets > out.Sent {
			out.Tail = *s.Packets - out.Sent // no gap shows them
			out.Lost, out.Sent = out.Lost+out.Tail, *s.Packets
		}
	default:
		t := SoFar(run, d.dir, d.dir.Receiver())
		if t == nil || t.Packets == nil || t.Lost == nil {
			return nil
		}
		out = result.UDPLoss{Sent: *t.Packets, Lost: max(*t.Lost, 0), Attribution: "unknown"}
	}
	out.Lost = min(out.Lost, out.Sent)
	out.Ratio = 0
	if out.Sent > 0 {
		out.Ratio = float64(out.Lost) / float64(out.Sent)
	}
	out.Low, out.High = lossBounds(out.Lost, out.Sent)
	return &out
}

// target is the rate that a direction's senders were held to, all streams, bit/s; 0 = none.
func target(run *result.Run, d *direction) int64 {
	rate := run.Test.Bitrate * int64(max(len(d.streams), 1))
	if run.Test.Steered {
		rate = 0
	}
	caps := []int64{run.Test.MaxRate}
	if l := run.Test.ServerLimit; l != nil {
		caps = append(caps, l.BitrateBPS)
	}
	for _, c := range caps {
		if c > 0 && (rate == 0 || c < rate) {
			rate = c
		}
	}
	return rate
}

// offered is the rate that the senders of a direction reached; false when it is not known or
// the run was too short to tell.
func offered(run *result.Run, d *direction) (float64, bool) {
	t := d.sum.Sender
	if t == nil {
		t = SoFar(run, d.dir, d.dir.Sender())
	}
	if t == nil || t.Seconds() < 0.9*shortestJudged { // the edges weigh too much
		return 0, false
	}
	return t.Rate(), true
}

// senderShort reports whether the senders of a direction offered less than they should (M-UDP),
// and how much of the target was reached.
func senderShort(run *result.Run, d *direction) (short bool, share float64) {
	want := target(run, d)
	got, known := offered(run, d)
	if want <= 0 || !known {
		return false, 1
	}
	return SenderShort(run, d.sum, got, float64(want)), got / float64(want)
}

// SenderShort reports that a sender that offered a rate did not reach the one that it should (M-UDP); both in
// payload bit/s. What a steady one gave up, since it was late, left gaps, but what it did send left at the
// rate: of that steadyReached suffices, unless it was to make up for what was late.
func SenderShort(run *result.Run, s *result.Sum, offered, target float64) bool {
	if run.Test.Steady && run.Test.CatchUp == 0 {
		return offered < steadyReached*target || offered+givenUp(run, s) < nearlyAll*target
	}
	return offered < nearlyAll*target
}

// givenUp is what the sender of a direction gave up because it was late, payload bit/s; 0 = nothing, or it
// does not tell.
func givenUp(run *result.Run, s *result.Sum) float64 {
	if s.Sender == nil || s.Sender.Seconds() <= 0 || s.UDP == nil || s.UDP.Sent == nil {
		return 0
	}
	return float64(s.UDP.Sent.Unsent*int64(run.Test.BlockSize)) * 8 / s.Sender.Seconds()
}

// notSent is what the sending end gave up or was refused.
func notSent(d *direction) (unsent, refused int64) {
	if u := d.sum.UDP; u != nil && u.Sent != nil {
		return u.Sent.Unsent, u.Sent.Refused
	}
	return 0, 0
}

// udpLimit is M-LIMIT's counterpart for UDP, first match: the sender did not offer the rate;
// the receiving host dropped what had arrived; packets were lost; the set rate was reached.
func udpLimit(run *result.Run, d *direction) verdict {
	busy := verdict{}
	if d.head.Seconds >= shortestJudged {
		busy = cpu(run, d)
	}
	if short, _ := senderShort(run, d); short {
		if busy.code == CPUSender {
			return busy
		}
		got, _ := offered(run, d)
		return verdict{code: SenderLimited, text: fmt.Sprintf("the sender was the limit: it offered %s of the %s that were asked for", rate(got), rate(float64(target(run, d))))}
	}
	if l := d.loss; l != nil && l.Ratio > lossMatters {
		switch {
		case l.Socket != nil && *l.Socket > 0 && (busy.code == CPUReceiver || l.Network == nil || 2**l.Network <= l.Lost || d.coalesced()):
			if busy.code == CPUReceiver {
				return busy
			}
			return verdict{code: ReceiveSocket, text: "the receiving program was the limit: its socket was full", host: d.dir.Receiver()}
		case l.Attribution == "unknown" || l.Attribution == "":
			return verdict{code: Unknown} // the sentence says what is not known of the loss
		}
		return verdict{code: Loss}
	}
	if v := setRate(run, d); v.code != "" {
		return v
	}
	if busy.code != "" {
		return busy
	}
	return unknown("")
}

// coalesced reports whether a drop at the receiver's socket may be many datagrams.
func (d *direction) coalesced() bool {
	return d.sum.UDP != nil && d.sum.UDP.Received != nil && d.sum.UDP.Received.Coalesced
}

// lossClause says how many were lost, how sure that is, and who lost them.
func lossClause(d *direction) string {
	if d.loss == nil || d.loss.Sent == 0 {
		return ""
	}
	return lossText(d.loss) + ownerText(d)
}

// LossText is a loss with the bound of its ratio: "0 of 4 877 000 lost (≤ 6.2e-7 at 95 %)".
func LossText(l *result.UDPLoss) string { return lossText(l) }

func lossText(l *result.UDPLoss) string {
	text := fmt.Sprintf("%s of %s lost", grouped(l.Lost), grouped(l.Sent))
	switch {
	case l.Sent == 0:
		return text
	case l.Lost == 0:
		return text + fmt.Sprintf(" (≤ %s at 95 %%)", ratio(l.High))
	}
	return text + fmt.Sprintf(" (%s; %s at 95 %%)", ratio(l.Ratio), ratioSpan(l.Low, l.High))
}

// ownerText names who lost them, as far as that is known; it never blames the network for
// what a socket dropped.
func ownerText(d *direction) string {
	l := d.loss
	switch {
	case l.Lost == 0:
		return ""
	case l.Attribution == "unknown" || l.Attribution == "":
		return ", on the way or at " + d.to
	}
	var parts []string
	if l.Socket != nil && *l.Socket > 0 {
		n := grouped(min(*l.Socket, l.Lost))
		if d.coalesced() {
			n = "at least " + n
		}
		parts = append(parts, "the receiver's socket dropped "+n)
	}
	host := int64(0)
	for _, n := range []*int64{l.Softnet, l.NIC} {
		if n != nil {
			host += *n
		}
	}
	if host > 0 {
		parts = append(parts, fmt.Sprintf("%s itself up to %s more", d.to, grouped(host)))
	}
	if len(parts) == 0 {
		if l.Attribution == "exact" || l.Network == nil {
			return ", all on the way"
		}
		return ", the network at most " + grouped(*l.Network)
	}
	if l.Network == nil { // one count is up to 64 datagrams: the rest may be all the socket's
		return ": " + strings.Join(parts, ", ") + ", how many the network lost is not known"
	}
	return ": " + strings.Join(parts, ", ") + ", the network at most " + grouped(*l.Network)
}

// udpNotices are those that a finished UDP direction asks for.
func (c *conclusion) udpNotices(d *direction) {
	c.senderNotice(d)
	c.lossNotices(d)
	c.climb(d)
	u := d.sum.UDP
	if u == nil {
		return
	}
	if s := u.Sent; s != nil && s.PlannedBurst > 0 && (s.LargestBurst > 2*s.PlannedBurst+1 || s.Late != nil && s.Late.P99 > coarseLate) {
		var how []string
		if s.LargestBurst > s.PlannedBurst {
			how = append(how, fmt.Sprintf("sent up to %s datagrams back to back (planned: %s)", grouped(s.LargestBurst), grouped(s.PlannedBurst)))
		}
		if s.Late != nil && s.Late.P99 > coarseLate {
			how = append(how, fmt.Sprintf("was more than %s late with 1 burst in 100", seconds(s.Late.P99)))
		}
		c.once(result.Notice{Code: PacingCoarse, End: d.dir.Sender(), Level: result.Info, Text: d.from + " " + strings.Join(how, " and ") + ": loss and jitter are partly the sender's doing"})
	}
	if r := u.Received; r != nil && r.Stamps == "user" {
		c.once(result.Notice{
			Code: StampsUser, End: d.dir.Receiver(), Level: result.Info,
			Text: fmt.Sprintf("arrivals at %s were timed by the program, not by the kernel: its waiting for a core is part of jitter and delay variation", d.to),
		})
	}
}

// once adds a notice unless the run has one of that code and end: the engine may have said it.
func (c *conclusion) once(n result.Notice) {
	if !slices.ContainsFunc(c.run.Notices, func(o result.Notice) bool { return o.Code == n.Code && o.End == n.End }) {
		c.notice(n)
	}
}

// senderNotice tells that less was offered than asked for (M-UDP).
func (c *conclusion) senderNotice(d *direction) {
	short, share := senderShort(c.run, d)
	unsent, refused := notSent(d)
	if !short && unsent+refused == 0 {
		return
	}
	if short || refused > 0 || !c.run.Test.Steady {
		c.flag(FlagSenderLimited)
	}
	var why []string
	if unsent > 0 {
		why = append(why, grouped(unsent)+" datagrams were given up because it was late")
	}
	if refused > 0 {
		why = append(why, grouped(refused)+" were refused by its kernel")
	}
	level := result.Info
	text := d.from + " did not send all that was due: " + strings.Join(why, ", ")
	if short {
		level = result.Warn
		got, _ := offered(c.run, d)
		text = fmt.Sprintf("%s offered %s, %s of the %s that were asked for", d.from, rate(got), percent(share), rate(float64(target(c.run, d))))
		if len(why) > 0 {
			text += " (" + strings.Join(why, ", ") + ")"
		}
		text += ": nothing is said about the path above that"
	}
	c.once(result.Notice{Code: SenderLimited, End: d.dir.Sender(), Level: level, Text: text})
}

// lossNotices say where packets were lost when it was at the receiving host, or that this is
// not known.
func (c *conclusion) lossNotices(d *direction) {
	l := d.loss
	if l == nil || l.Lost == 0 || !c.run.Finished() { // what broke off has no account yet
		return
	}
	level := result.Info
	if l.Ratio > lossMatters {
		level = result.Warn
	}
	switch {
	case l.Socket != nil && *l.Socket > 0:
		c.flag(FlagLocalDrops)
		n := "dropped " + grouped(min(*l.Socket, l.Lost)) + " datagrams"
		if d.coalesced() {
			n = "dropped " + grouped(*l.Socket) + " times (each 1 to 64 datagrams, since the kernel merges them)"
		}
		text := fmt.Sprintf("the program's socket on %s was full and %s that had arrived there", d.to, n)
		if l.Network != nil {
			text += ", the network at most " + grouped(*l.Network)
		}
		note := result.Notice{Code: LossAtSocket, End: d.dir.Receiver(), Level: result.Warn, Text: text + "; a larger buffer there (-w, net.core.rmem_max) or a lower rate"}
		if c.run.Err == nil {
			note.Fix = lowerRate(c.run, d, 0.8)
		}
		c.once(note)
	case l.Attribution == "unknown" || l.Attribution == "":
		c.once(result.Notice{
			Code: LossUnknownOwner, End: d.dir.Receiver(), Level: level,
			Text: fmt.Sprintf("%s datagrams are missing and %s does not tell what its own host dropped: the loss may be the network's or that host's", grouped(l.Lost), d.to),
		})
	}
	if d.sum.UDP == nil || d.sum.UDP.Loss == nil {
		if s := d.sum.Sender; s == nil || s.Packets == nil || c.run.Test.Omit > 0 {
			c.once(result.Notice{
				Code: TailUncounted, End: d.dir.Receiver(), Level: result.Info,
				Text: fmt.Sprintf("the count of %s shows gaps only: what was lost after the last datagram that arrived is not in it", d.to),
			})
		}
	}
}

// climb reports delay variation that grew through the run.
func (c *conclusion) climb(d *direction) {
	u := d.sum.UDP
	if u == nil || u.Received == nil || u.Received.Climb == nil || *u.Received.Climb <= climbFactor {
		return
	}
	last, ok := lastQuarter(c.run, d)
	if !ok && u.Received.PDV != nil { // a quarter of the values lie at the end
		last, ok = u.Received.PDV.P95, true
	}
	if !ok || last <= climbLeast {
		return
	}
	c.once(result.Notice{
		Code: JitterClimbs, End: d.dir.Receiver(), Level: result.Warn,
		Text: fmt.Sprintf("%s → %s: the delay variation grew through the run (%.1f times the first quarter's, to %s): a queue on the path filled all the while", d.from, d.to, *u.Received.Climb, seconds(last)),
		Fix:  lowerRate(c.run, d, 0.8),
	})
}

// lastQuarter is the median delay variation of the receiver's rows in the last quarter.
func lastQuarter(run *result.Run, d *direction) (float64, bool) {
	var medians []float64
	for _, row := range run.Rows {
		if row.End != d.dir.Receiver() || row.Omitted {
			continue
		}
		worst, seen := 0.0, false
		for _, s := range row.Streams {
			if !s.Sender && s.UDP != nil && s.UDP.PDV != nil {
				worst, seen = max(worst, s.UDP.PDV.P50), true
			}
		}
		if seen {
			medians = append(medians, worst)
		}
	}
	if len(medians) < 4 {
		return 0, false
	}
	part := slices.Clone(medians[len(medians)*3/4:])
	slices.Sort(part)
	return part[len(part)/2], true
}

// lowerRate is this run at a share of its rate.
func lowerRate(run *result.Run, d *direction, share float64) string {
	bps := d.head.BPS
	if want := target(run, d); want > 0 {
		bps = min(bps, float64(want))
	}
	return again(run, "-b", units.BitRate(max(roundRate(bps*share/float64(max(len(d.streams), 1))), 1)).Exact())
}

// udpNext is what to try after a UDP direction.
func (c *conclusion) udpNext(d *direction) *result.Step {
	switch d.verdict.code {
	case SenderLimited:
		if c.run.Test.Streams == 1 {
			if cmd := again(c.run, "-P", "4", "--total-bitrate", units.BitRate(target(c.run, d)).Exact()); cmd != "" {
				return &result.Step{Command: cmd, Why: "four senders share the rate: does one thread hold it back?"}
			}
		}
	case ReceiveSocket:
		if cmd := lowerRate(c.run, d, 0.8); cmd != "" {
			return &result.Step{Command: cmd, Why: "does the receiving host keep up with a lower rate?"}
		}
	case Loss, Unknown:
		if d.loss != nil && d.loss.Ratio > lossMatters {
			if cmd := lowerRate(c.run, d, 0.8); cmd != "" {
				return &result.Step{Command: cmd, Why: "at a lower rate: loss that vanishes was a full queue or a policer, loss that stays is errors on the line"}
			}
		}
	case SetRate:
		if want := float64(target(c.run, d)); d.loss != nil && d.loss.Lost == 0 && want > 0 {
			more := roundRate(want * 1.25)
			if speed := linkSpeed(c.run); speed > 0 && wireRate(c.run, float64(more)) > float64(speed) {
				return nil
			}
			if cmd := again(c.run, "-b", units.BitRate(more/int64(max(len(d.streams), 1))).Exact()); cmd != "" {
				return &result.Step{Command: cmd, Why: "nothing was lost at this rate: where does loss begin?"}
			}
		}
	}
	return nil
}

// ratioSpan prints a range of shares, the unit once.
func ratioSpan(low, high float64) string {
	a, b := ratio(low), ratio(high)
	if x, ok := strings.CutSuffix(a, " %"); ok && strings.HasSuffix(b, " %") {
		a = x
	}
	return a + " … " + b
}

// lossBounds are the ends of the 95 % interval of a loss ratio; with nothing lost the upper
// one is the rule of three.
func lossBounds(lost, sent int64) (low, high float64) {
	if sent <= 0 {
		return 0, 1
	}
	if lost == 0 {
		return 0, stats.RuleOfThree(sent)
	}
	low, high, _ = stats.ClopperPearson(lost, sent, 0.95)
	return low, high
}

// Grouped prints a count in groups of three digits: 4 877 000.
func Grouped(n int64) string { return grouped(n) }

func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return sign + s
}

// ratio prints a share with three digits: per cent where people think in it, else as a
// power of ten with two.
func ratio(r float64) string {
	switch {
	case r == 0:
		return "0 %"
	case r >= 0.00001:
		return strconv.FormatFloat(100*r, 'g', 3, 64) + " %"
	}
	s := strconv.FormatFloat(r, 'e', 1, 64)
	return strings.Replace(s, "e-0", "e-", 1)
}

// LossOf is what is known of the loss in direction d; nil when nothing is.
func LossOf(run *result.Run, d result.Direction) *result.UDPLoss {
	if !isUDP(run) || run.Sum(d) == nil {
		return nil
	}
	return lossOf(run, look(run, d))
}
