package conclude

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

// Thresholds of the notices.
const (
	// ShortSeconds: below it slow start weighs (spec recipes §4).
	ShortSeconds = 30.0
	// plateau: a row counts as past slow start from this share of the later rate on.
	plateau = 0.9
	// restlessCoV: variation after the first quarter from which a run too short for
	// MSER-5 is called unsteady; Wi-Fi in good order stays below it.
	restlessCoV = 0.2
	// gapShare: sent and received totals that differ less need no explanation.
	gapShare = 0.01
	// Steal time (M-CPU).
	stealNote = 0.01
	stealFlag = 0.05
	// A core is hot at 95 %; a host, when it has one in a fifth of the intervals (M-CPU).
	hotCore  = 0.95
	hotShare = 0.2
	// foreignCores: CPU used by others from which a hot core is not (only) ours.
	foreignCores = 0.5
	// stallSeconds is the shortest silence that is reported.
	stallSeconds = 0.5
	// nearlyAll: a UDP sender that achieved less of its rate was the limit itself (M-UDP).
	nearlyAll = 0.99
	// steadyReached is that of a steady sender that gave up the rest.
	steadyReached = 0.95
)

func (c *conclusion) notices() {
	for _, d := range c.dirs {
		c.arrival(d)
		c.gap(d)
		c.stall(d)
		c.steadiness(d)
		if isUDP(c.run) {
			c.udpNotices(d)
		}
	}
	for _, n := range Before(c.run) {
		c.once(n)
	}
	if c.run.Test.Path.Uncut {
		c.once(result.Notice{
			Code: OffloadUncut, End: c.run.End, Level: result.Info,
			Text: "super-packets reached the receiver whole (no network card cut them): rate and CPU cost are better than a path with a card allows; --offload off shows the cost of one packet at a time",
		})
	}
	c.short()
	c.versions()
	c.foreign()
	for _, e := range []result.End{result.Client, result.Server} {
		c.host(e)
	}
}

// arrival reports payload that was sent and of which nothing came through (F10), and a
// receiver's count that is missing.
func (c *conclusion) arrival(d *direction) {
	switch {
	case d.nothing():
		n := result.Notice{
			Code: NothingArrived, End: d.dir.Receiver(), Level: result.Warn,
			Text: fmt.Sprintf("%s wrote %s, but %s received nothing although the control connection works: small packets pass and full ones seem to vanish (path MTU, firewall)", d.from, size(d.sent), d.to),
		}
		switch {
		case !isUDP(c.run):
			n.Fix = again(c.run, "-M", "1200")
		case c.run.Test.BlockSize > 1200:
			n.Fix = again(c.run, "-l", "1200")
		}
		c.notice(n)
	case d.head.Basis == Sent || d.head.Basis == SentSoFar:
		c.flag(FlagCounter)
		c.notice(result.Notice{
			Code: NoReceiverCount, End: d.dir.Receiver(), Level: result.Warn,
			Text: fmt.Sprintf("how much reached %s is not known: its count never came, so the figure is what %s wrote", d.to, d.from),
		})
	}
}

// gap explains why the two ends' totals differ (F16, F17).
func (c *conclusion) gap(d *direction) {
	snd, rcv := d.sum.Sender, d.sum.Receiver
	if snd == nil || rcv == nil || c.run.Test.Transport == "udp" || rcv.Bytes == 0 {
		return
	}
	more := snd.Bytes - rcv.Bytes
	switch {
	case float64(more) > gapShare*float64(snd.Bytes):
		c.notice(result.Notice{
			Code: SentNotReceived, End: d.dir.Sender(), Level: result.Info,
			Text: fmt.Sprintf("%s wrote %s (%s) more than %s read in time: it lay in the send buffer or was on its way when the test ended, it was not lost; the receiver's figure counts",
				d.from, size(more), percent(float64(more)/float64(snd.Bytes)), d.to),
		})
	case more < 0 && c.run.Test.Omit > 0:
		c.notice(result.Notice{
			Code: ReceivedMore, End: d.dir.Receiver(), Level: result.Info,
			Text: fmt.Sprintf("%s read %s more than %s wrote in the measured time: data of the warm-up that arrived after it", d.to, size(-more), d.from),
		})
	case more < 0:
		c.notice(result.Notice{
			Code: ReceivedMore, End: d.dir.Receiver(), Level: result.Warn,
			Text: fmt.Sprintf("%s counted %s more than %s says it wrote: the two ends did not count the same time", d.to, size(-more), d.from),
		})
	}
}

// stall reports silences: whole rows without a byte between rows with some, or after them.
func (c *conclusion) stall(d *direction) {
	if !d.telling(c.run) {
		return
	}
	var from, to, longest, total float64
	count, seen := 0, false
	var start float64
	running := false
	closeRun := func(end float64) {
		if running && end-start >= stallSeconds {
			count++
			total += end - start
			if end-start > longest {
				longest, from, to = end-start, start, end
			}
		}
		running = false
	}
	for _, s := range d.rows {
		switch {
		case s.Bytes > 0:
			closeRun(s.Start)
			seen = true
		case seen && !running:
			running, start = true, s.Start
		}
	}
	if len(d.rows) > 0 {
		closeRun(d.rows[len(d.rows)-1].Stop)
	}
	if count == 0 {
		return
	}
	what := "nothing arrived at " + d.to
	if d.rowsEnd == d.dir.Sender() {
		what = d.from + " could send nothing"
	}
	text := fmt.Sprintf("%s from %.1f to %.1f s", what, from, to)
	if count > 1 {
		text = fmt.Sprintf("%s %d times, %s in all, longest from %.1f to %.1f s", what, count, seconds(total), from, to)
	}
	c.notice(result.Notice{Code: Stalled, End: d.rowsEnd, Level: result.Warn, Text: text})
}

// steadiness is M-STEADY on the intervals: MSER-5 where there are enough of them, else
// the variation after the first quarter. Both need variation that matters: noise of a
// per cent around a constant is steady whatever the order of its samples.
func (c *conclusion) steadiness(d *direction) {
	x := d.rates
	if len(x) < 4 || d.head.Bytes == 0 || !d.telling(c.run) {
		return
	}
	later := x[(len(x)+3)/4:]
	cov, ok := stats.CoV(later)
	if !ok || cov < stats.SettledCoV {
		return
	}
	unsteady := cov > restlessCoV
	if s, ok := stats.MSER5(x); ok {
		unsteady = s.Unsteady
	}
	if !unsteady {
		return
	}
	c.flag(FlagUnsteady)
	d.unsteady = true
	lo, hi := minmax(x)
	how := "kept changing"
	if t, ok := stats.EndTrend(x); ok {
		switch {
		case t.Rising():
			how = "was still rising"
		case t.Z < -1.645 && t.Rise <= -0.05:
			how = "kept falling"
		}
	}
	c.notice(result.Notice{
		Code: Unsteady, End: d.rowsEnd, Level: result.Warn,
		Text: fmt.Sprintf("%s → %s: the rate %s (%s intervals %s, varying by %s), so its mean describes no lasting state of the path",
			d.from, d.to, how, seconds(d.step()), Span(lo, hi), percent(cov)),
		Fix: again(c.run, "-t", longer(d.head.Seconds)),
	})
}

// short reports runs under 30 s and runs that were still rising, with slow start's share.
func (c *conclusion) short() {
	if c.run.Test.Transport == "udp" || c.run.Test.Ramped {
		return // no slow start; or one on purpose, and its end was decided by the rate
	}
	var texts []string
	var measured float64
	rising, brief := false, false
	for _, d := range c.dirs {
		if d.head.Bytes == 0 {
			continue
		}
		trend, ok := stats.EndTrend(d.rates)
		up := ok && trend.Rising()
		isBrief := d.head.Seconds < ShortSeconds-0.5
		if !up && !isBrief {
			continue
		}
		rising, brief = rising || up, brief || isBrief
		measured = max(measured, d.head.Seconds)
		text := c.slowStart(d)
		if up {
			text = fmt.Sprintf("the rate was still rising at the end (by %s over the last half); %s", percent(trend.Rise), text)
		}
		if len(c.dirs) > 1 {
			text = fmt.Sprintf("%s → %s: %s", d.from, d.to, text)
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return
	}
	level := result.Info
	if rising {
		level = result.Warn
	}
	head, advice := fmt.Sprintf("%s is short", seconds(measured)), "30 s or more read closer to what the path carries"
	if !brief {
		head, advice = fmt.Sprintf("%s was too short", seconds(measured)), "a longer run reads closer to what the path carries"
	}
	n := result.Notice{
		Code: ShortRun, End: c.run.End, Level: level,
		Text: head + ": " + strings.Join(texts, "; ") + "; " + advice,
	}
	if c.run.Err == nil {
		n.Fix = again(c.run, "-t", longer(measured))
	}
	c.notice(n)
}

// slowStart says how much of the run its start took, as far as the intervals show.
func (c *conclusion) slowStart(d *direction) string {
	if o := c.run.Test.Omit; o > 0 {
		return fmt.Sprintf("a warm-up of %s was left out", seconds(o))
	}
	w, ok := warmup(d.rates)
	if d.unsteady {
		return "where slow start ended cannot be told, since the rate never settled"
	}
	if !ok {
		return "slow start's share cannot be told from so few intervals"
	}
	if w == 0 {
		return fmt.Sprintf("slow start was over within the first %s interval", seconds(d.step()))
	}
	text := fmt.Sprintf("slow start took the first %s (%s of the run)", seconds(d.rows[w-1].Stop-d.rows[0].Start),
		percent((d.rows[w-1].Stop-d.rows[0].Start)/d.head.Seconds))
	if deficit, ok := stats.WarmupDeficit(d.rates, w); ok && deficit > 0 {
		text += fmt.Sprintf(" and lowers its mean by %s", percent(deficit))
	}
	return text
}

// warmup is the number of leading intervals below the plateau: the first that reaches
// 90 % of the median of the last half ends it. ok is false under four intervals.
func warmup(x []float64) (n int, ok bool) {
	if len(x) < 4 {
		return 0, false
	}
	level, _ := stats.Median(x[len(x)/2:])
	for i, v := range x {
		if v >= plateau*level {
			return i, true
		}
	}
	return 0, false
}

// longer is the length to try next: 30 s, or twice a run that already had them.
func longer(measured float64) string {
	if measured < ShortSeconds-0.5 {
		return "30"
	}
	return fmt.Sprintf("%.0f", 2*measured)
}

// versions compares the releases where both ends run the same program.
func (c *conclusion) versions() {
	cn, cv := program(c.run, result.Client)
	sn, sv := program(c.run, result.Server)
	if cn == "" || cn != sn || cv == "" || sv == "" || cv == sv {
		return
	}
	c.notice(result.Notice{
		Code: VersionDiffers, End: c.run.End, Level: result.Info,
		Text: fmt.Sprintf("%s runs %s %s, %s runs %s %s: run the same release on both ends before comparing results", EndName(c.run, result.Client), cn, cv, EndName(c.run, result.Server), sn, sv),
	})
}

// foreign says what cannot be known because the peer is not a fullbore.
func (c *conclusion) foreign() {
	if extended(c.run) || c.run.Wire == nil || !c.run.Finished() && len(c.run.Rows) == 0 {
		return
	}
	peer := c.run.End.Other()
	sends, receives := false, false
	for _, d := range c.dirs {
		sends = sends || d.dir.Sender() == peer
		receives = receives || d.dir.Receiver() == peer
	}
	var missing []string
	if sends && c.run.Test.Transport != "udp" {
		missing = append(missing, "what its sockets waited for, its round trips and window")
	}
	if receives {
		missing = append(missing, "what it received second by second")
	}
	missing = append(missing, "its cores and interface")
	c.notice(result.Notice{
		Code: ForeignPeer, End: peer, Level: result.Info,
		Text: fmt.Sprintf("%s runs %s, which tells its totals and CPU time only; not known: %s. `fullbore serve` there would tell", EndName(c.run, peer), programText(c.run, peer), strings.Join(missing, ", ")),
	})
}

// program names the program at end e, as far as it is known.
func program(run *result.Run, e result.End) (name, version string) {
	if h := run.Hosts.Of(e); h != nil && h.Tool != nil && h.Tool.Name != "" {
		return h.Tool.Name, h.Tool.Version
	}
	if e == run.End {
		return run.Tool.Name, run.Tool.Version
	}
	if w := run.Wire; w != nil && w.PeerVersion != "" && !w.Extension {
		return "iperf3", strings.TrimPrefix(w.PeerVersion, "iperf ")
	}
	if run.Wire != nil && !run.Wire.Extension && run.Protocol == "iperf3" {
		return "iperf3", ""
	}
	return "", ""
}

// programText names it for a sentence.
func programText(run *result.Run, e result.End) string {
	name, version := program(run, e)
	switch {
	case name == "":
		return "a program that did not say its name"
	case version == "":
		return name + " (or one that speaks like it)"
	}
	return name + " " + version
}

// extended reports whether the peer is a fullbore that speaks the extension.
func extended(run *result.Run) bool { return run.Wire != nil && run.Wire.Extension }

func minmax(x []float64) (lo, hi float64) {
	lo, hi = x[0], x[0]
	for _, v := range x[1:] {
		lo, hi = min(lo, v), max(hi, v)
	}
	return lo, hi
}

// Span prints a range of rates in bit/s, the unit once where it is the same:
// "87.8 … 88.1 Mbit/s", "all 941 Mbit/s".
func Span(lo, hi float64) string {
	a, b := rate(lo), rate(hi)
	if a == b {
		return "all " + b
	}
	an, au, _ := strings.Cut(a, " ")
	if _, bu, _ := strings.Cut(b, " "); au == bu {
		return an + " … " + b
	}
	return a + " … " + b
}
