package suite

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
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

// Hash is over everything that fixes what is measured and demanded, to which host.
func (m Method) Hash(host string, port int) string {
	data, err := json.Marshal(struct {
		Suite Suite
		Host  string
		Port  int
		MTU   int
	}{m.Suite, host, port, m.MTU()})
	if err != nil {
		return "" // a Suite is plain data
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Total is the worst result of a report's items of the suite.
func Total(rep *result.Report) string {
	out := result.Pass
	for _, i := range rep.Items {
		out = worse(out, i.Result)
	}
	return out
}

// summary is the closing sentence.
func (j *Judge) summary(rep *result.Report) string {
	return closing(rep, fmt.Sprintf("the link of %s to %s", j.Method.Suite.Link, j.endName(result.Server)), j.Method.Suite.Quick)
}

// Closing is the closing sentence of a stored acceptance, to whose items others were added.
func Closing(rep *result.Report) string {
	to := ""
	if len(rep.Runs) > 0 {
		to = " to " + rep.Runs[0].EndName(result.Server)
		for _, r := range rep.Runs {
			if len(r.Streams) > 0 {
				to = " to " + r.EndName(result.Server)
				break
			}
		}
	}
	return closing(rep, fmt.Sprintf("the link of %s%s", units.BitRate(rep.Acceptance.Link), to), rep.Acceptance.Trial)
}

func closing(rep *result.Report, link string, quick bool) string {
	n := map[string][]string{}
	for _, i := range rep.Items {
		n[i.Result] = append(n[i.Result], i.ID)
	}
	trial := ""
	if quick {
		trial = " This was a trial of a few seconds an item, no record."
	}
	bad, open := n[result.Fail], n[result.Inconclusive]
	switch {
	case len(bad) > 0:
		text := fmt.Sprintf("NOT ACCEPTED: %s misses %d of %d items (%s)", link, len(bad), len(rep.Items), strings.Join(bad, ", "))
		if len(open) > 0 {
			text += fmt.Sprintf(", and %s inconclusive (%s)", areIs(len(open)), strings.Join(open, ", "))
		}
		return text + "." + trial
	case len(open) > 0:
		return fmt.Sprintf("INCONCLUSIVE: of %d items of %s %d passed and none failed, but %s inconclusive (%s).", len(rep.Items), link, len(n[result.Pass]), areIs(len(open)), strings.Join(open, ", ")) + trial
	}
	return fmt.Sprintf("ACCEPTED: %s passes all %d items.", link, len(rep.Items)) + trial
}

func areIs(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}

// acceptance is what the report carries beside its items.
func (j *Judge) acceptance(rep *result.Report) *result.Acceptance {
	m := &j.Method
	s := &m.Suite
	rounds, adaptive := s.rounds()
	a := &result.Acceptance{
		Suite: s.Name, Class: string(s.Class), Link: int64(s.Link), Contract: s.Contract, Trial: s.Quick,
		Rounds: rounds, Adaptive: adaptive, Seed: s.Seed, MTU: m.MTU(), Ideal: m.Ideal(), Self: j.Self, Facts: j.Facts,
		Findings: []string{}, Todo: []result.AdviceAt{},
	}
	if rep.Acceptance != nil { // judged again: what others put in stays
		a.Settings, a.Capture, a.Swapped = rep.Acceptance.Settings, rep.Acceptance.Capture, rep.Acceptance.Swapped
	}
	if rtt := j.rtt(); rtt > 0 {
		a.RTT = &rtt
	}
	if n := j.streams(); n > 0 {
		a.Parallel, a.ParallelFrom = &n, j.parallel.from
	}
	j.findings(a, rep)
	j.todo(a, rep)
	return a
}

// streams are those of the items that have several; 0 = there is none.
func (j *Judge) streams() int {
	for _, k := range []Kind{TCPMulti, TCPBoth, Latency} {
		if it := j.Method.Suite.find(k); it != nil {
			return it.Streams
		}
	}
	return 0
}

// median of an item's throughput in a direction; false = not known.
func (j *Judge) median(k Kind, d result.Direction) (float64, bool) {
	it := j.Method.Suite.find(k)
	if it == nil {
		return 0, false
	}
	v, ok := j.medians[it.ID+"-"+string(d)]
	return v, ok && v > 0
}

func (j *Judge) findings(a *result.Acceptance, rep *result.Report) {
	say := func(format string, args ...any) { a.Findings = append(a.Findings, fmt.Sprintf(format, args...)) }
	ideal := a.Ideal
	if j.parallel.why != "" && a.Parallel != nil {
		say("%s", j.parallel.why)
	}
	for _, d := range both() {
		many, ok := j.median(TCPMulti, d)
		if !ok {
			continue
		}
		from, to := j.endName(d.Sender()), j.endName(d.Receiver())
		if many > moreThanAll*ideal {
			say("%s → %s: TCP carries %s, more than the %s that a link of %s can: it is faster than was promised, or its speed is not counted as the line does, with all headers.", from, to, spell("bit/s", many), spell("bit/s", ideal), j.Method.Suite.Link)
		} else {
			say("%s → %s: TCP carries %s, %s of what it can on a link of %s.", from, to, spell("bit/s", many), shareText(many/ideal), j.Method.Suite.Link)
		}
		one, ok := j.median(TCPSingle, d)
		if ok && many > 1.1*one {
			say("%s → %s: one connection carries %s, %s of what several do%s.", from, to, spell("bit/s", one), shareText(one/many), j.heldBy(d))
		}
	}
	up, ok1 := j.median(TCPMulti, result.Up)
	down, ok2 := j.median(TCPMulti, result.Down)
	if ok1 && ok2 && math.Abs(up-down) > 0.2*max(up, down) {
		say("The two ways differ: %s up, %s down.", spell("bit/s", up), spell("bit/s", down))
	}
	if a.RTT != nil {
		window := bdp.Product(j.Method.Suite.Link, seconds(*a.RTT))
		text := fmt.Sprintf("a window of %s fills the link", window.IEC())
		if window <= bdp.UnscaledWindow {
			text = "any window fills the link"
		}
		say("The empty path's round trip is %s; %s.", conclude.Time(*a.RTT), text)
	}
	for _, c := range j.clamps() {
		say("%s", c)
	}
	for _, i := range rep.Items {
		for _, c := range i.Criteria {
			if c.Figure == "rise_p95" && c.Value != nil && c.Result == result.Fail {
				say("A full load %s makes small packets wait %s longer: a queue of about %s.", i.Direction, conclude.Time(*c.Value), units.ByteSize(*c.Value*ideal/8).IEC())
			}
		}
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// heldBy says what held the single stream back, by its own counters.
func (j *Judge) heldBy(d result.Direction) string {
	it := j.Method.Suite.find(TCPSingle)
	if it == nil {
		return ""
	}
	for _, n := range j.names(*it, d) {
		if run := j.runs[n]; run != nil {
			if s := run.Sum(d); s != nil && conclude.LimitWord(s.Limit) != "" && s.Limit != "unknown" {
				return ": " + conclude.LimitWord(s.Limit)
			}
		}
	}
	return ""
}

// Shares of what was measured, and of what can be.
const (
	alarmShare  = 0.9
	moreThanAll = 1.005 // of the ideal
)

func (j *Judge) todo(a *result.Acceptance, rep *result.Report) {
	add := func(x result.AdviceAt) { a.Todo = append(a.Todo, x) }
	host, again := j.words()
	if a.RTT != nil {
		for _, e := range []result.End{result.Client, result.Server} {
			add(j.settings(e, *a.RTT))
		}
	}
	j.pool(a, add)
	j.later(a, rep, host, again, add)
	if slices.ContainsFunc(rep.Items, func(i result.Item) bool { return i.Result == result.Fail }) {
		add(result.AdviceAt{Where: j.endName(result.Client), Text: "What holds the link back, and on whose side, a diagnosis proves:", Commands: []string{"fullbore diagnose " + host + " --report diagnosis.html"}})
	}
}

// later is the plan of regular tests. An alarm follows only from what passed: a disturbed figure is no
// measure of the link.
func (j *Judge) later(a *result.Acceptance, rep *result.Report, host, again string, add func(result.AdviceAt)) {
	it := j.Method.Suite.find(TCPMulti)
	if it == nil || j.loopback() {
		return // nobody watches a loopback
	}
	least, passed := math.Inf(1), true
	for _, d := range it.Directions {
		v, ok := j.median(TCPMulti, d)
		least = min(least, v)
		passed = passed && ok && slices.ContainsFunc(rep.Items, func(i result.Item) bool {
			return i.ID == stepName(*it, d) && i.Result == result.Pass
		})
	}
	if passed {
		alarm := math.Floor(alarmShare*least/1e5) * 1e5
		a.Alarm = &alarm
		way := ""
		if len(it.Directions) == 1 {
			way = " --" + string(it.Directions[0])
		}
		add(result.AdviceAt{
			Where: "later", Text: fmt.Sprintf("Alarm below %s: nine tenths of the slower way's median with %s. Once a day, at a quiet hour, with the exit code as the alarm (cron mails what it prints):", spell("bit/s", alarm), streamCount(it.Streams)),
			Commands: []string{fmt.Sprintf("17 3 * * *  fullbore test %s%s -P %d -t 30 --quiet --expect '>= %s'", host, way, it.Streams, units.BitRate(alarm).Exact())},
		})
	} else {
		add(result.AdviceAt{Where: "later", Text: fmt.Sprintf("A threshold for alarms follows once %s passes: nine tenths of the slower way's median.", it.ID)})
	}
	add(result.AdviceAt{
		Where: "later", Text: "Each week a trial of all items; each quarter, and after every change at either end or on the way, the whole acceptance. Keep the documents beside this one (fullbore history has them, too): what moved further than the rounds lie apart has changed.",
		Commands: []string{
			fmt.Sprintf("fullbore accept %s %s --quick --json > week.json", host, again),
			fmt.Sprintf("fullbore accept %s %s --report acceptance.html --json > acceptance.json", host, again),
		},
	})
}

// words are what a command names: the host as the user did, and what fixes the suite.
func (j *Judge) words() (host, again string) {
	host, again = j.Host, j.Again
	if host == "" {
		host = j.endName(result.Server)
	}
	if again == "" {
		again = fmt.Sprintf("--link %s --profile %s", j.Method.Suite.Link.Exact(), j.Method.Suite.Class)
	}
	if j.parallel.from == streamsKnee { // like is to be compared with like, and a trial does not look for it
		again += fmt.Sprintf(" -P %d", j.parallel.streams)
	}
	return host, again
}

// settings are the window that an end needs for this link, and whether its system gives it.
func (j *Judge) settings(e result.End, rtt float64) result.AdviceAt {
	window := 2 * bdp.Product(j.Method.Suite.Link, seconds(rtt))
	at := result.AdviceAt{Where: j.endName(e)}
	need := fmt.Sprintf("A connection that fills this link needs windows of %s (twice the product of rate and round trip). ", window.IEC())
	if window <= bdp.UnscaledWindow {
		at.Text = "On so short a round trip no window is too small to fill this link: there is nothing to set."
		return at
	}
	os := "linux"
	if h := j.host(e); h != nil && h.OS != "" {
		os = h.OS
	}
	if os == "windows" {
		w := bdp.ForWindows(window)
		at.Text = need + "Windows' autotuning level " + w.Level + " allows that."
		if w.Level != "normal" {
			at.Commands = w.Netsh
		}
		return at
	}
	l := bdp.ForLinux(window)
	const stay = " (until the next boot; a file in /etc/sysctl.d keeps them):"
	if f := j.factsOf(e); f != nil && f.TCPRead != nil && f.TCPWrite != nil {
		told := fmt.Sprintf("tcp_rmem %s, tcp_wmem %s at most", units.ByteSize(f.TCPRead[2]).IEC(), units.ByteSize(f.TCPWrite[2]).IEC())
		if f.TCPRead[2] >= int64(l.TCPMax) && f.TCPWrite[2] >= min(int64(l.TCPMax), 4<<20) {
			at.Text = need + "Its limits allow that (" + told + ")."
			return at
		}
		at.Text = need + "Its limits are lower (" + told + "), so they are to be raised" + stay
		at.Commands = raising(l, f)
		return at
	}
	if l.ByDefault {
		at.Text = need + "Linux' defaults allow that; whether that end kept them is not known from here (fullbore doctor there tells, and so does fullbore serve --facts full)."
		return at
	}
	at.Text = need + "That is more than Linux' defaults allow; that end's own limits are not known from here (fullbore doctor there tells, and so does fullbore serve --facts full). Where they are lower" + stay
	at.Commands = l.Lines
	return at
}

// raising are the lines that raise a limit: what is large enough already is left alone.
func raising(l bdp.LinuxSettings, f *result.Facts) (out []string) {
	enough := []bool{
		f.CoreRead != nil && *f.CoreRead >= int64(l.CoreMax), f.CoreWrite != nil && *f.CoreWrite >= int64(l.CoreMax),
		f.TCPRead[2] >= int64(l.TCPMax), f.TCPWrite[2] >= int64(l.TCPMax),
	}
	for i, line := range l.Lines {
		if !enough[i] {
			out = append(out, line)
		}
	}
	return out
}

// factsOf are an end's settings; nil where it does not tell them (a server does to whom it trusts).
func (j *Judge) factsOf(e result.End) *result.Facts {
	if e == result.Client && j.Facts != nil {
		return j.Facts
	}
	for _, d := range j.history {
		if d.Run == nil || d.Step.Name == SelfStep {
			continue
		}
		if h := d.Run.Hosts.Of(e); h != nil && h.Settings != nil {
			return h.Settings
		}
	}
	return nil
}

// pool is how many connections an application needs: by the look for the knee, else by how many single
// ones add up to what several carried.
func (j *Judge) pool(a *result.Acceptance, add func(result.AdviceAt)) {
	n := j.parallel.pool
	why := "with so many, and no fewer of those tried, the rate comes within 3 % of the best"
	if n == 0 {
		why = "that many single ones add up to what several carried"
		for _, d := range both() {
			one, ok1 := j.median(TCPSingle, d)
			many, ok2 := j.median(TCPMulti, d)
			if ok1 && ok2 {
				n = max(n, int(math.Ceil(many*0.97/one)))
			}
		}
	}
	if n == 0 {
		return
	}
	a.Streams = &n
	text := "One connection fills the link: an application needs no pool."
	if n > 1 {
		text = fmt.Sprintf("An application needs a pool of %d connections to fill the link: %s.", n, why)
	}
	add(result.AdviceAt{Where: "application", Text: text})
}

// History makes the steps of a stored report those of a method again, for judging or going on.
func History(rep *result.Report) (out []method.Done) {
	for _, s := range rep.Stages {
		d := method.Done{Step: method.Step{Name: s.Name, Title: s.Title, Why: s.Why, Pause: seconds(s.Pause), Round: s.Round}, Err: s.Err}
		if s.Run != nil && *s.Run >= 0 && *s.Run < len(rep.Runs) {
			d.Run = rep.Runs[*s.Run]
			t := &d.Run.Test
			d.Step.Plan = plan.Plan{ // what a search reads its trials by
				Transport: plan.Transport(t.Transport), Direction: plan.Direction(t.Direction), Streams: t.Streams,
				Bitrate: t.Bitrate, Duration: seconds(t.Duration), Omit: seconds(t.Omit),
			}
			if t.Transport == "udp" && !coalesced(d.Run) { // nothing was merged: a trial that is not made again
				d.Step.Plan.Offload = plan.OffloadOff
			}
		}
		out = append(out, d)
	}
	return out
}

// coalesced reports that a receiver of datagrams merged some: who lost them is then not exact.
func coalesced(run *result.Run) bool {
	return slices.ContainsFunc(run.Sums, func(s result.Sum) bool { return s.UDP != nil && s.UDP.Received != nil && s.UDP.Received.Coalesced })
}

// Kept are the steps of a history that need not be made again: those that came to their end, and were
// not cut short by a budget. A server that told of a longest test is met anew: it may take longer ones by now.
func Kept(history []method.Done) (out []method.Done) {
	for _, d := range history {
		if d.Step.Name == idleStep && allowed([]method.Done{d}) > 0 {
			continue
		}
		if d.Run != nil && d.Run.Err == nil && d.Err == nil && (d.Run.Test.ProbeOnly || !method.Cut(d)) {
			out = append(out, d)
		}
	}
	return out
}
