package conclude

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// sentence is the closing sentence of one run: rate, direction, how sure, what limited.
func sentence(run *result.Run, dirs []*direction) string {
	if text := probesSentence(run); text != "" {
		return text
	}
	var known []*direction
	for _, d := range dirs {
		if d.head.Basis != None {
			known = append(known, d)
		}
	}
	if len(known) == 0 {
		return noMeasurement(run)
	}
	body := figures(run, known)
	if sure := confidence(run, known); sure != "" {
		body += " (" + sure + ")"
	}
	for _, d := range known {
		if clause := lossClause(d); clause != "" {
			if len(known) > 1 {
				clause = "to " + d.to + " " + clause
			}
			body += "; " + clause
		}
	}
	for _, clause := range limits(run, known) {
		body += "; " + clause
	}
	return prologue(run, known) + body + "."
}

// noMeasurement is the sentence of a run without any figure.
func noMeasurement(run *result.Run) string {
	switch {
	case run.Err == nil:
		return "Nothing was measured."
	case run.Err.Interrupted && !run.Err.Remote:
		return "Interrupted before anything was measured."
	}
	return "Nothing was measured: " + strings.TrimSuffix(run.Err.Text, ".") + "."
}

// prologue says first that the run did not end as planned.
func prologue(run *result.Run, dirs []*direction) string {
	if run.Err == nil {
		return ""
	}
	var measured float64
	for _, d := range dirs {
		measured = max(measured, d.head.Seconds)
	}
	if run.Err.Interrupted && !run.Err.Remote {
		return fmt.Sprintf("Interrupted after %s: ", seconds(measured))
	}
	return fmt.Sprintf("Broke off after %s (%s): ", seconds(measured), strings.TrimSuffix(run.Err.Text, "."))
}

// figures names each direction with its rate.
func figures(run *result.Run, dirs []*direction) string {
	over := " over " + transport(run)
	if len(dirs) == 1 {
		d := dirs[0]
		if run.Err == nil { // else the prologue said it
			over = " in " + seconds(d.head.Seconds) + over
		}
		return arrow(d) + figure(d) + over + though(d)
	}
	a, b := dirs[0], dirs[1]
	over += " each"
	if run.Err == nil {
		over = " for " + seconds(max(a.head.Seconds, b.head.Seconds)) + over
	}
	return arrow(a) + figure(a) + though(a) + ", " + arrow(b) + figure(b) + though(b) + ", at the same time" + over
}

func arrow(d *direction) string { return d.from + " → " + d.to + ": " }

// figure says what a direction carried and by whose count.
func figure(d *direction) string {
	switch {
	case d.nothing():
		return "nothing arrived"
	case d.head.Bytes == 0:
		return "nothing was sent"
	case !d.head.Basis.Arrived():
		return rate(d.head.BPS) + " sent (how much arrived is not known)"
	}
	if d.loss != nil { // of UDP what was offered and what was delivered are two things
		text := rate(d.head.BPS) + " delivered"
		if d.sum.Sender != nil && d.loss.Ratio > offeredDiffers {
			text += " of " + rate(d.sum.Sender.Rate()) + " offered"
		}
		return text
	}
	return rate(d.head.BPS) + " received"
}

// though contrasts nothing received with what was sent.
func though(d *direction) string {
	if d.nothing() {
		return ", though " + size(d.sent) + " were sent"
	}
	return ""
}

func transport(run *result.Run) string {
	name := strings.ToUpper(run.Test.Transport)
	if name == "" {
		name = "TCP"
	}
	if run.Test.MPTCP {
		name = "MPTCP"
	}
	if run.Test.Transport == "udp" {
		return name
	}
	if n := run.Test.Streams; n > 1 {
		return fmt.Sprintf("%d %s streams", n, name)
	}
	return "one " + name + " stream"
}

// confidence is what speaks for or against taking the figure for the path's: one run,
// the spread of its intervals, and the doubts that have a notice.
func confidence(run *result.Run, dirs []*direction) string {
	if !someArrived(dirs) {
		return ""
	}
	parts := []string{"one run"}
	for _, f := range []struct{ code, word string }{{ShortRun, "short"}, {Unsteady, "unsteady"}, {Stalled, "with silences"}, {CompetingLoad, "on a busy host"}, {Steal, "on a virtual machine that was held up"}} {
		if warned(run, f.code) {
			parts = append(parts, f.word)
		}
	}
	out := strings.Join(parts, ", ")
	for _, d := range dirs {
		if len(d.rates) < 2 || d.head.Bytes == 0 {
			continue
		}
		lo, hi := minmax(d.rates)
		whose := ""
		if d.rowsEnd == d.dir.Sender() && d.head.Basis.Arrived() {
			whose = "sent in "
		}
		to := ""
		if len(dirs) > 1 {
			to = " to " + d.to
		}
		out += fmt.Sprintf("; %s%s intervals%s %s", whose, seconds(d.step()), to, Span(lo, hi))
	}
	return out
}

// warned reports whether a notice speaks against the figure. Being short always does, the
// rest only as a warning.
func warned(run *result.Run, code string) bool {
	for _, n := range run.Notices {
		if n.Code == code && (code == ShortRun || n.Level == result.Warn) {
			return true
		}
	}
	return false
}

func someArrived(dirs []*direction) bool {
	for _, d := range dirs {
		if d.head.Bytes > 0 {
			return true
		}
	}
	return false
}

// limits are the clauses about what limited. A run that broke off gets only those that
// are certain.
func limits(run *result.Run, dirs []*direction) []string {
	var out []string
	for _, d := range dirs {
		v := d.verdict
		if v.text == "" || run.Err != nil && v.code == Unknown {
			continue
		}
		text := v.text
		if len(dirs) > 1 {
			text = fmt.Sprintf("to %s %s", d.to, v.text)
		}
		out = append(out, text)
	}
	if len(out) == 2 && dirs[0].verdict.text == dirs[1].verdict.text {
		if dirs[0].verdict.code == Unknown {
			return []string{dirs[0].verdict.text + " either way"}
		}
		return []string{dirs[0].verdict.text + " both ways"}
	}
	return out
}

// Together is the one sentence over runs that were made one after the other, such as
// up and then down: each run's figure, what held it back, then what they share.
func Together(runs []*result.Run) string {
	var parts []string
	for _, run := range runs {
		for _, s := range run.Sums {
			d := look(run, s.Direction)
			if isUDP(run) {
				d.loss = lossOf(run, d)
			}
			if d.head.Basis == None {
				continue
			}
			text := arrow(d) + figure(d) + though(d)
			if d.loss != nil {
				text += ", " + lossText(d.loss)
			}
			if s.Limit != "" && s.Limit != Unknown {
				text += " (" + limitWord(s.Limit) + ")"
			}
			parts = append(parts, text)
		}
		if run.Err != nil {
			parts = append(parts, strings.TrimSuffix(run.Err.Text, "."))
		}
	}
	if len(parts) == 0 {
		return "Nothing was measured."
	}
	return strings.Join(parts, "; ") + "."
}

// limitWord is a limit in a few words, for lists.
func limitWord(code string) string {
	if w, ok := limitWords[code]; ok {
		return w
	}
	return code
}

var limitWords = map[string]string{
	CPUSender:     "limited by the sender's CPU",
	CPUReceiver:   "limited by the receiver's CPU",
	Application:   "limited by the sending program",
	SetRate:       "at the set rate",
	ReceiveWindow: "limited by the receiver's window",
	SendBuffer:    "limited by the send buffer",
	Loss:          "limited by loss",
	PathCapacity:  "the path is full",
	SenderLimited: "limited by the sender",
	ReceiveSocket: "limited by the receiving program",
}

// LimitWord says a Sum.Limit in a few words: "limited by loss". Unknown codes and "unknown" give "".
func LimitWord(code string) string { return limitWords[code] }
