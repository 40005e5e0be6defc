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
	a := &result.Acceptance{
		Suite: s.Name, Class: string(s.Class), Link: int64(s.Link), Contract: s.Contract, Trial: s.Quick,
		Rounds: s.rounds(), Seed: s.Seed, MTU: m.MTU(), Ideal: m.Ideal(), Self: j.Self, Facts: j.Facts,
		Findings: []string{}, Todo: []result.AdviceAt{},
	}
	if rep.Acceptance != nil { // judged again: what others put in stays
		a.Settings, a.Capture, a.Swapped = rep.Acceptance.Settings, rep.Acceptance.Capture, rep.Acceptance.Swapped
	}
	if rtt := j.rtt(); rtt > 0 {
		a.RTT = &rtt
	}
	j.findings(a, rep)
	j.todo(a, rep)
	return a
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
	for _, d := range both() {
		many, ok := j.median(TCPMulti, d)
		if !ok {
			continue
		}
		from, to := j.endName(d.Sender()), j.endName(d.Receiver())
		say("%s → %s: TCP carries %s, %s of what it can on a link of %s.", from, to, spell("bit/s", many), shareText(many/ideal), j.Method.Suite.Link)
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
		say("The empty path's round trip is %s; a window of %s fills the link.", conclude.Time(*a.RTT), units.ByteSize(bdp.Product(j.Method.Suite.Link, seconds(*a.RTT))).IEC())
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
				return ": it is held by " + conclude.LimitWord(s.Limit)
			}
		}
	}
	return ""
}

// Alarm and pool: shares of what was measured.
const alarmShare = 0.9

func (j *Judge) todo(a *result.Acceptance, rep *result.Report) {
	add := func(x result.AdviceAt) { a.Todo = append(a.Todo, x) }
	host := j.Host
	if host == "" {
		host = j.endName(result.Server)
	}
	if a.RTT != nil {
		for _, e := range []result.End{result.Client, result.Server} {
			add(j.settings(e, *a.RTT))
		}
	}
	j.pool(a, add)
	least, known := math.Inf(1), false
	for _, d := range both() {
		if v, ok := j.median(TCPMulti, d); ok {
			least, known = min(least, v), true
		}
	}
	link := j.Method.Suite.Link.Exact()
	if known && j.loopback() {
		known = false // nobody watches a loopback
	}
	if known {
		alarm := math.Floor(alarmShare*least/1e5) * 1e5
		a.Alarm = &alarm
		streams := j.Method.Suite.find(TCPMulti).Streams
		rate := units.BitRate(alarm).Exact()
		add(result.AdviceAt{
			Where: "later", Text: fmt.Sprintf("Alarm below %s: nine tenths of the slower way's median with %d streams. Once a day, at a quiet hour, with the exit code as the alarm (cron mails what it prints):", spell("bit/s", alarm), streams),
			Commands: []string{fmt.Sprintf("17 3 * * *  fullbore test %s -P %d -t 30 --quiet --expect '>= %s'", host, streams, rate)},
		})
		add(result.AdviceAt{
			Where: "later", Text: "Each week a trial of all items, each quarter and after every change the whole acceptance; keep both reports beside this one.",
			Commands: []string{
				fmt.Sprintf("fullbore accept %s --link %s --profile %s --quick --json > week.json", host, link, j.Method.Suite.Class),
				fmt.Sprintf("fullbore accept %s --link %s --profile %s --report acceptance.html", host, link, j.Method.Suite.Class),
			},
		})
	}
	if slices.ContainsFunc(rep.Items, func(i result.Item) bool { return i.Result == result.Fail }) {
		add(result.AdviceAt{Where: j.endName(result.Client), Text: "What holds the link back, and on whose side, a diagnosis proves:", Commands: []string{"fullbore diagnose " + host + " --report diagnosis.html"}})
	}
}

// settings are the window that an end needs for this link, and whether its system gives it.
func (j *Judge) settings(e result.End, rtt float64) result.AdviceAt {
	window := 2 * bdp.Product(j.Method.Suite.Link, seconds(rtt))
	at := result.AdviceAt{Where: j.endName(e)}
	need := fmt.Sprintf("A connection that fills this link needs windows of %s (twice the product of rate and round trip). ", window.IEC())
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
	if f := j.Facts; e == result.Client && f != nil && f.TCPRead != nil && f.TCPWrite != nil {
		if f.TCPRead[2] >= int64(l.TCPMax) && f.TCPWrite[2] >= min(int64(l.TCPMax), 4<<20) {
			at.Text = need + fmt.Sprintf("This host's limits allow that (tcp_rmem %d, tcp_wmem %d).", f.TCPRead[2], f.TCPWrite[2])
			return at
		}
		at.Text = need + fmt.Sprintf("This host's limits are lower (tcp_rmem %d, tcp_wmem %d):", f.TCPRead[2], f.TCPWrite[2])
		at.Commands = l.Lines
		return at
	}
	if l.ByDefault {
		at.Text = need + "Linux' defaults allow that; whether that end kept them is not known from here (fullbore doctor there tells)."
		return at
	}
	at.Text = need + "More than Linux' defaults allow; that end's own limits are not known from here (fullbore doctor there tells):"
	at.Commands = l.Lines
	return at
}

// pool is how many connections an application needs.
func (j *Judge) pool(a *result.Acceptance, add func(result.AdviceAt)) {
	n := 0
	for _, d := range both() {
		one, ok1 := j.median(TCPSingle, d)
		many, ok2 := j.median(TCPMulti, d)
		if ok1 && ok2 {
			n = max(n, int(math.Ceil(many*0.97/one)))
		}
	}
	if n == 0 {
		return
	}
	n = max(n, 1)
	a.Streams = &n
	text := "One connection fills the link: an application needs no pool."
	if n > 1 {
		text = fmt.Sprintf("An application needs a pool of %d connections to fill the link: that many single ones add up to what several carried.", n)
	}
	add(result.AdviceAt{Where: "application", Text: text})
}

// History makes the steps of a stored report those of a method again, for judging or going on.
func History(rep *result.Report) (out []method.Done) {
	for _, s := range rep.Stages {
		d := method.Done{Step: method.Step{Name: s.Name, Title: s.Title, Why: s.Why, Pause: seconds(s.Pause)}, Err: s.Err}
		if s.Run != nil && *s.Run >= 0 && *s.Run < len(rep.Runs) {
			d.Run = rep.Runs[*s.Run]
			t := &d.Run.Test
			d.Step.Plan = plan.Plan{ // what a search reads its trials by
				Transport: plan.Transport(t.Transport), Direction: plan.Direction(t.Direction), Streams: t.Streams,
				Bitrate: t.Bitrate, Duration: seconds(t.Duration), Omit: seconds(t.Omit),
			}
		}
		out = append(out, d)
	}
	return out
}

// Kept are the steps of a history that need not be made again: those that came to their end.
func Kept(history []method.Done) (out []method.Done) {
	for _, d := range history {
		if d.Run != nil && d.Run.Err == nil && d.Err == nil {
			out = append(out, d)
		}
	}
	return out
}
