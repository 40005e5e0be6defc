package suite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// Judge holds what runs are judged by besides themselves.
type Judge struct {
	Method Method
	Host   string // as the user typed it, with a port of its own, for commands
	Again  string // words that fix the suite, for commands: "--suite line.yaml"; "" = link and profile
	File   string // the suite file that set the demands; "" = they are M-ACCEPT's
	// LinkFrom is where the link's speed comes from: LinkGiven, LinkSuite, LinkInterface; "" = not known.
	LinkFrom string
	// Self is what this machine alone moves, bit/s; nil = not measured.
	Self *float64
	// Facts are settings of this host.
	Facts *result.Facts

	history  []method.Done
	parallel parallel
	runs     map[string]*result.Run // by the step's name
	at       map[string]int         // index in the report
	cuts     map[string]bool        // steps that a budget ended before their time
	medians  map[string]float64     // throughput by item id and direction
}

// Fill judges: it sets items, acceptance and summary of a report whose runs and stages are there.
// Earlier steps are in the history, too.
func (j *Judge) Fill(rep *result.Report, history []method.Done) {
	j.history, j.runs, j.at, j.medians = usual(history), map[string]*result.Run{}, map[string]int{}, map[string]float64{}
	j.cuts = map[string]bool{}
	j.parallel, j.Method = j.Method.parallel(history), j.Method.resolved(history)
	for i := range history {
		d := &history[i]
		j.runs[d.Step.Name] = d.Run
		j.cuts[d.Step.Name] = method.Cut(*d)
		if at := slices.Index(rep.Runs, d.Run); d.Run != nil && at >= 0 {
			j.at[d.Step.Name] = at
		}
	}
	items := []result.Item{}
	for _, it := range j.Method.Suite.Items {
		if it.Kind == Precheck {
			items = append(items, j.precheck(it))
			continue
		}
		for _, d := range it.Directions {
			items = append(items, j.item(it, d))
		}
	}
	rep.Items = append(items, rep.Items...)
	rep.Acceptance = j.acceptance(rep)
	j.record(rep.Acceptance)
	paths, _ := j.searched()
	rep.Paths = paths.Paths
	rep.Unseen = unseen(rep.Items)
	j.swapped(rep, history)
	rep.Summary = j.summary(rep)
}

// names are the steps of an item in a direction, in order of their rounds, a repetition in the
// place of what it repeats.
func (j *Judge) names(it Item, d result.Direction) (out []string) {
	prefix := stepName(it, d)
	if it.Kind == TCPBoth {
		prefix = stepName(it, "")
	}
	for r := 1; r <= j.made(it, prefix); r++ {
		name := fmt.Sprintf("%s-%d", prefix, r)
		if run, ok := j.runs[name+"-again"]; ok && run != nil && run.Err == nil {
			name += "-again"
		}
		out = append(out, name)
	}
	return out
}

// made is how many rounds of an item there are; those that must be there count in any case.
func (j *Judge) made(it Item, prefix string) int {
	n := it.least()
	for r := n + 1; r <= it.most(); r++ {
		if _, ok := j.runs[fmt.Sprintf("%s-%d", prefix, r)]; ok {
			n = r
		}
	}
	return n
}

// settling is what became of rounds that go on until the throughput settles: open when the
// acceptance ended before, restless when there are as many as there can be and it did not.
func (j *Judge) settling(it Item, d result.Direction, names []string) (open, restless bool) {
	if !it.Auto {
		return false, false
	}
	var x []float64
	for _, n := range names {
		if r := throughputIn(j.history, n, d); r.known {
			x = append(x, r.value)
		}
	}
	enough, settled := method.EnoughRounds(x)
	return !enough && len(names) < it.most(), !settled && len(names) >= it.most()
}

// item judges one item in one direction.
func (j *Judge) item(it Item, d result.Direction) result.Item {
	out := result.Item{ID: stepName(it, d), Title: titles[it.Kind], Direction: string(d), Result: result.Pass}
	if it.Kind == LossFree {
		return j.lossFree(it, d, out)
	}
	names := j.names(it, d)
	broke := ""
	for _, n := range names {
		run, there := j.runs[n]
		if at, ok := j.at[n]; ok && begun(run) {
			out.From = append(out.From, at)
		}
		switch {
		case !there:
			broke = "it was not measured: the acceptance ended before"
		case !begun(run):
			broke = "it could not begin: " + j.errOf(n)
		case run.Err != nil:
			broke = "it broke off: " + strings.TrimSuffix(run.Err.Text, ".")
		case j.cuts[n]:
			broke = cutBy(run)
		}
	}
	open, restless := j.settling(it, d, names)
	if open && broke == "" {
		broke = "the acceptance ended before its rounds had settled"
	}
	if broke != "" && len(out.From) == 0 {
		out.Result, out.Reasons = result.Inconclusive, []string{sentence(broke)}
		return out
	}
	out.Flags = j.flags(names)
	if restless && !slices.Contains(out.Flags, conclude.FlagUnsteady) {
		out.Flags = append(out.Flags, conclude.FlagUnsteady)
		slices.Sort(out.Flags)
	}
	for _, n := range names {
		out.Checks = append(out.Checks, crossChecks(j.runs[n], n, it, d)...)
	}
	checks := out.Checks
	if it.Kind == TCPBoth { // the other way's acknowledgements come this way
		for _, n := range names {
			checks = append(slices.Clone(checks), crossChecks(j.runs[n], n, it, other(d))...)
		}
	}
	doubts := j.doubts(it, d, names, checks)
	for _, dm := range it.Demands {
		of := doubts
		if dm.Figure == "loss_loaded" {
			of = j.loadDoubts(d)
		}
		c := j.criterion(it, d, dm, names, of)
		out.Criteria = append(out.Criteria, c)
		out.Result = worse(out.Result, c.Result)
		out.Reasons = append(out.Reasons, c.Reason)
	}
	for _, c := range out.Checks {
		switch {
		case c.Result == result.Fail:
			out.Result = worse(out.Result, result.Inconclusive)
			out.Reasons = append(out.Reasons, c.Text)
		case c.Check == "foreign-traffic" && c.Result != result.Pass:
			out.Reasons = append(out.Reasons, c.Text)
		}
	}
	for _, why := range []string{broke, j.shorter(it, names)} {
		if why != "" {
			out.Result = worse(out.Result, result.Inconclusive)
			out.Reasons = append(out.Reasons, sentence(why))
		}
	}
	return out
}

// cutBy says what ended a run before its time.
func cutBy(run *result.Run) string {
	switch l := run.Test.ServerLimit; {
	case l != nil && l.MaxDuration > 0:
		return fmt.Sprintf("the server ended it after %s, the longest that it allows", units.FormatDuration(seconds(l.MaxDuration)))
	case run.Test.MaxBytes > 0:
		return "the budget (--max-bytes) ended it before its time"
	}
	return "it ended before its time"
}

// begun reports that something of a run was measured.
func begun(run *result.Run) bool {
	return run != nil && (run.Err == nil || len(run.Streams) > 0 || len(run.Probes) > 0)
}

// errOf is why a step could not begin.
func (j *Judge) errOf(name string) string {
	for i := range j.history {
		if d := &j.history[i]; d.Step.Name == name && d.Err != nil {
			return strings.TrimSuffix(d.Err.Text, ".")
		}
	}
	return "the reason is not known"
}

// worse is the worse of two results; "" is none.
func worse(a, b string) string {
	rank := func(s string) int {
		return slices.Index([]string{"", result.Pass, result.Inconclusive, result.Fail}, s)
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}

func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
}

func (j *Judge) flags(names []string) (out []string) {
	for _, n := range names {
		if run := j.runs[n]; run != nil {
			for _, f := range run.Flags {
				if !slices.Contains(out, f) {
					out = append(out, f)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// doubt is something besides the path that can have made a figure worse.
type doubt struct {
	text   string
	rates  bool // it bears on throughput
	losses bool // it bears on loss, order and efficiency
	delays bool // it bears on delay
	voids  bool // the figure says nothing, also if it is good
}

// doubts are the validity flags of an item's runs, and foreign traffic, as clauses.
func (j *Judge) doubts(it Item, d result.Direction, names []string, checks []result.Check) (out []doubt) {
	first := j.runs[names[0]]
	end := func(e result.End) string {
		if first == nil {
			return "the " + string(e)
		}
		return first.EndName(e)
	}
	for _, f := range j.flags(names) {
		switch f {
		case conclude.FlagSenderCPU:
			out = append(out, doubt{text: "the processor of the sending end (" + end(d.Sender()) + ") was the limit", rates: true, losses: true, delays: true})
		case conclude.FlagReceiverCPU:
			out = append(out, doubt{text: "the processor of the receiving end (" + end(d.Receiver()) + ") was the limit", rates: true, losses: true, delays: true})
		case conclude.FlagSteal:
			out = append(out, doubt{text: "the hypervisor took processor time from an end", rates: true, losses: true, delays: true})
		case conclude.FlagSenderLimited:
			out = append(out, doubt{text: "the sending end (" + end(d.Sender()) + ") did not reach the rate that was asked for", rates: true, losses: true, voids: it.Kind == UDPFull})
		case conclude.FlagLocalDrops:
			out = append(out, doubt{text: "the receiving end (" + end(d.Receiver()) + ") itself dropped packets", losses: true})
		case conclude.FlagWindowClamped:
			out = append(out, doubt{text: "the system granted a smaller window than was asked for", rates: true})
		}
	}
	if share, ok := j.throttled(names, d); ok {
		out = append(out, share)
	}
	if held, ok := j.capped(names); ok {
		out = append(out, held)
	}
	if held, ok := j.heldByWindow(it, d, names); ok {
		out = append(out, held)
	}
	for _, c := range checks {
		if c.Check == "foreign-traffic" && c.Result != result.Pass {
			out = append(out, doubt{text: "other traffic passed the same interface", rates: true, losses: true, delays: true})
			break
		}
	}
	return out
}

func other(d result.Direction) result.Direction {
	if d == result.Up {
		return result.Down
	}
	return result.Up
}

// loadDoubts are those of the run beside whose load small packets passed.
func (j *Judge) loadDoubts(d result.Direction) []doubt {
	it := j.Method.Suite.find(Latency)
	if it == nil || !slices.Contains(it.Directions, d) {
		return nil
	}
	names := j.names(*it, d)[:1]
	return j.doubts(*it, d, names, crossChecks(j.runs[names[0]], names[0], *it, d))
}

// capped tells of a run that its own bound (--max-rate) held: what all directions carried together
// came within a tenth of it.
func (j *Judge) capped(names []string) (doubt, bool) {
	for _, n := range names {
		run := j.runs[n]
		if run == nil || run.Test.MaxRate == 0 {
			continue
		}
		sum := 0.0
		for i := range run.Sums {
			sum += conclude.HeadlineOf(run, run.Sums[i].Direction).BPS
		}
		if sum >= 0.9*float64(run.Test.MaxRate) {
			return doubt{text: fmt.Sprintf("the test itself was not to go above %s in all", units.BitRate(run.Test.MaxRate)), rates: true}, true
		}
	}
	return doubt{}, false
}

// throttled tells of an end whose processor quota held it back.
func (j *Judge) throttled(names []string, d result.Direction) (doubt, bool) {
	for _, e := range []result.End{d.Receiver(), d.Sender()} {
		for _, n := range names {
			run := j.runs[n]
			if run == nil {
				continue
			}
			if share, ok := conclude.Throttled(run, e); ok && share > 0.05 {
				return doubt{text: fmt.Sprintf("a processor quota held %s back for %s of the time", run.EndName(e), shareText(share)), rates: true, losses: true, delays: true}, true
			}
		}
	}
	return doubt{}, false
}

func (d doubt) bears(word string) bool {
	switch word {
	case "throughput", "loss_free_rate":
		return d.rates
	case "pdv_p99", "jitter", "rise_p95":
		return d.delays
	}
	return d.losses
}

// quantile is stats.Quantile of a copy.
func quantile(x []float64, q float64) (float64, bool) { return stats.Quantile(x, q) }

// readings are the rounds' figures of a demand.
func (j *Judge) readings(it Item, d result.Direction, word string, names []string) (out []reading, how string) {
	for _, n := range names {
		run := j.runs[n]
		switch word {
		case "rise_p95":
			var r reading
			r, how = rise(j.runs[idleStep], run, d)
			out = append(out, r)
		case "loss_loaded":
			out = append(out, j.besideLoad(d))
		default:
			out = append(out, read(word, run, d))
		}
	}
	return out, how
}

// besideLoad is the loss of small packets in the latency item's first run of a direction.
func (j *Judge) besideLoad(d result.Direction) reading {
	it := j.Method.Suite.find(Latency)
	if it == nil || !slices.Contains(it.Directions, d) {
		return missing("the suite has no latency item, whose load they would pass beside")
	}
	return lossLoaded(j.runs[j.names(*it, d)[0]], d)
}

// bound is a demand's limit in the figure's unit, and what it was reckoned from.
func (j *Judge) bound(it Item, d result.Direction, dm Demand) (limit float64, basis string, known bool) {
	switch dm.Of {
	case "":
		return dm.Bound, "", true
	case "link":
		return dm.Bound * float64(j.Method.Suite.Link), fmt.Sprintf("%s of the link's %s", percent(dm.Bound), j.Method.Suite.Link), true
	case "ideal":
		ideal, what := j.Method.Ideal(), "what TCP can carry on this link"
		if rtt := j.rtt(); it.Window > 0 && rtt > 0 {
			if w := float64(it.Window) * 8 / rtt * float64(max(it.Streams, 1)); w < ideal {
				ideal, what = w, "what this window lets through"
			}
		} else if w, size, ok := j.ownWindow(it, d); ok && w < ideal {
			ideal, what = w, fmt.Sprintf("what the receiver's own window of %s lets through", units.ByteSize(size).IEC())
		}
		return dm.Bound * ideal, fmt.Sprintf("%s of %s, %s", percent(dm.Bound), what, spell("bit/s", ideal)), true
	}
	v, ok := j.medians[dm.Of+"-"+string(d)]
	return dm.Bound * v, fmt.Sprintf("%s of %s's %s", percent(dm.Bound), dm.Of, spell("bit/s", v)), ok
}

func percent(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.4g", 100*v), ".0") + " %" }

// rtt is the least round trip of the empty path, s; 0 = not known.
func (j *Judge) rtt() float64 {
	least := 0.0
	take := func(v float64) {
		if v > 0 && (least == 0 || v < least) {
			least = v
		}
	}
	if p := echo(j.runs[idleStep]); p != nil {
		take(p.RoundTrip.Min)
		return least
	}
	for _, d := range j.history {
		if d.Run == nil || d.Step.Name == SelfStep {
			continue
		}
		for _, p := range d.Run.Probes {
			if p.TCPMinRTT != nil {
				take(*p.TCPMinRTT)
			}
		}
		for _, s := range d.Run.Streams {
			if s.TCP != nil && s.TCP.Last.MinRTT != nil {
				take(float64(*s.TCP.Last.MinRTT) / 1e6)
			}
		}
	}
	return least
}

// unseen are what could not be looked at, each once: checks without a result, and figures that
// nobody told.
func unseen(items []result.Item) (out []string) {
	add := func(text string) {
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	for _, i := range items {
		for _, c := range i.Checks {
			if c.Result == "" {
				add(c.Text)
			}
		}
	}
	return out
}
