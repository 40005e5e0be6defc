package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// roundsFlag is --rounds: a number, or auto. The zero value: not asked for.
type roundsFlag struct {
	n    int
	auto bool
}

// mostRounds bounds --rounds: nobody means more, and a slip of the finger costs hours.
const mostRounds = 1000

func (f *roundsFlag) Set(s string) error {
	if s == "auto" {
		*f = roundsFlag{auto: true}
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > mostRounds {
		return fmt.Errorf("%q: a number from 1 to %d, or auto", s, mostRounds)
	}
	*f = roundsFlag{n: n}
	return nil
}
func (f *roundsFlag) Type() string { return "N|auto" }
func (f *roundsFlag) String() string {
	switch {
	case f.auto:
		return "auto"
	case f.n == 0:
		return ""
	}
	return strconv.Itoa(f.n)
}

// asked reports that there are several rounds.
func (f *roundsFlag) asked() bool { return f.auto || f.n > 1 }

// words says how many rounds there are: "5 rounds".
func (f *roundsFlag) words() string {
	if f.auto {
		return fmt.Sprintf("%d to %d rounds", method.LeastRounds, method.MostRounds)
	}
	return counted(f.n, "round")
}

// most is how many there are at most.
func (f *roundsFlag) most() int {
	if f.auto {
		return method.MostRounds
	}
	return max(f.n, 1)
}

const roundsHelp = "measure so many times and take the median; auto: 3 to 10, until the figures settle"

// inRounds makes a job that is played several times of one that is played once: the document's own
// figures are those of the round whose main figure is the median, and all are in rounds.
func (job *methodJob) inRounds(f *roundsFlag) error {
	if f.auto && job.figure == "" {
		return usagef("--rounds auto: %s has no single figure to settle; give a number", job.kind)
	}
	once := *job
	again := method.Again{Method: once.method, Rounds: f.n, Auto: f.auto, Pause: method.RoundsPause}
	again.Figure = func(round []method.Done) (float64, bool) {
		if v := once.figuresOf(&result.Report{}, round)[once.figure]; v != nil {
			return *v, true
		}
		return 0, false
	}
	job.method, job.times = again, f.most()
	job.head += ", " + f.words()
	job.volume += " Each round moves that much."
	job.fill = func(rep *result.Report, history []method.Done) { once.fillRounds(rep, again, history, f.auto) }
	job.measured = medians
	job.final = func(v *stageView, rep *result.Report) {
		printRounds(v.e.Out, v.paint, rep.Rounds)
		if once.final != nil {
			fmt.Fprintln(v.e.Out)
			once.final(v, rep)
		}
	}
	return nil
}

// figuresOf fills sub with one round and reads its figures.
func (job *methodJob) figuresOf(sub *result.Report, round []method.Done) map[string]*float64 {
	sub.Runs, sub.Stages, sub.Verdicts, sub.Items, sub.Notices = []*result.Run{}, nil, []result.Verdict{}, []result.Item{}, []result.Notice{}
	addStages(sub, round)
	job.fill(sub, round)
	if job.measured == nil {
		return nil
	}
	return job.measured(sub)
}

func (job *methodJob) fillRounds(rep *result.Report, again method.Again, history []method.Done, auto bool) {
	rounds, open := again.Split(history)
	if open && len(rounds) > 1 { // the last one has no answer
		rounds = rounds[:len(rounds)-1]
	}
	var subs []*result.Report
	values := map[string][]*float64{}
	for i, round := range rounds {
		sub := *rep
		for name, v := range job.figuresOf(&sub, round) {
			for len(values[name]) < i {
				values[name] = append(values[name], nil)
			}
			values[name] = append(values[name], v)
		}
		subs = append(subs, &sub)
	}
	if len(subs) == 0 {
		return
	}
	typical := subs[typicalRound(values[job.figure], len(subs))]
	whole := *rep
	*rep = *typical
	rep.Runs, rep.Stages, rep.Err = whole.Runs, whole.Stages, whole.Err
	rep.Notices = append(slices.Clone(whole.Notices), typical.Notices...)
	rep.Rounds = nil
	for _, name := range figureOrder(values, job.figure) {
		r := method.RoundsOf("", name, "", job.figures[name].unit, values[name], nil)
		r.Settled = method.Settled(auto && name == job.figure, &r)
		rep.Rounds = append(rep.Rounds, r)
		if name == job.figure && r.Median != nil {
			rep.Summary = strings.TrimSuffix(rep.Summary, ".") + fmt.Sprintf("; median of %s: %s.", counted(len(subs), "round"), roundsText(&r))
		}
		if r.Settled != nil && !*r.Settled {
			rep.Notices = append(rep.Notices, unsettled(len(subs)))
		}
	}
}

// unsettled says that the figures of --rounds auto did not settle.
func unsettled(rounds int) result.Notice {
	return result.Notice{
		Code: "rounds-unsettled", End: result.Client, Level: result.Warn,
		Text: fmt.Sprintf("the figures had not settled after %s: the interval is still wider than 2.5 %% of the median either way", counted(rounds, "round")),
	}
}

// typicalRound is the one whose value is the median, of two the lower.
func typicalRound(values []*float64, n int) int {
	var known []int
	for i, v := range values {
		if v != nil {
			known = append(known, i)
		}
	}
	if len(known) == 0 {
		return n - 1
	}
	slices.SortStableFunc(known, func(a, b int) int {
		switch {
		case *values[a] < *values[b]:
			return -1
		case *values[a] > *values[b]:
			return 1
		}
		return 0
	})
	return known[(len(known)-1)/2]
}

// figureOrder is the main figure, then the others by name.
func figureOrder(values map[string][]*float64, main string) []string {
	names := slices.Sorted(maps.Keys(values))
	if i := slices.Index(names, main); i > 0 {
		names = append([]string{main}, slices.Delete(names, i, i+1)...)
	}
	return names
}

// medians are the figures that --expect judges.
func medians(rep *result.Report) map[string]*float64 {
	out := map[string]*float64{}
	for _, r := range rep.Rounds {
		out[r.Figure] = r.Median
	}
	return out
}

// roundsText is a median with what belongs to it: "941 Mbit/s (938 Mbit/s … 942 Mbit/s)".
func roundsText(r *result.Rounds) string {
	if r.Median == nil {
		return "not known"
	}
	p := func(v *float64) string { return unitText(r.Unit, *v) }
	text := p(r.Median)
	if *r.Min != *r.Max {
		text += fmt.Sprintf(" (%s … %s)", p(r.Min), p(r.Max))
	}
	return text
}

// unitText prints a figure in its unit.
func unitText(unit string, v float64) string {
	switch unit {
	case "bit/s":
		if v < 0 {
			return "-" + units.BitRate(0.5-v).String()
		}
		return units.BitRate(v + 0.5).String()
	case "ratio":
		return strconv.FormatFloat(100*v, 'g', 3, 64) + " %"
	case "s":
		return millisText(v)
	case "bytes":
		return units.ByteSize(v).IEC()
	case "":
		return strconv.FormatFloat(v, 'g', 5, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64) + " " + unit
}

// printRounds is the table of rounds: a line for each, and the median with its range and interval.
// Rounds that stand out are marked.
func printRounds(w io.Writer, paint func(code, s string) string, rs []result.Rounds) {
	const most = 4 // columns
	if len(rs) == 0 {
		return
	}
	rs = rs[:min(len(rs), most)]
	const width = 15
	head, rounds := "  "+screen.Left("round", 8), 0
	for _, r := range rs {
		name := r.Figure
		if r.Of != "" {
			name = r.Of
			if r.Figure != "goodput" {
				name += " " + r.Figure
			}
		}
		head += screen.Right(screen.Cut(name, width), width) + "  "
		rounds = max(rounds, len(r.Values))
	}
	line := func(first string, cell func(*result.Rounds) string) {
		text := "  " + screen.Left(first, 8)
		for i := range rs {
			text += cell(&rs[i])
		}
		fmt.Fprintln(w, strings.TrimRight(text, " "))
	}
	fmt.Fprintln(w, paint("2", strings.TrimRight(head, " ")))
	marks := false
	for i := range rounds {
		line(fmt.Sprintf("%5d", i+1), func(r *result.Rounds) string {
			if i >= len(r.Values) || r.Values[i] == nil {
				return screen.Right("–", width) + "  "
			}
			mark := "  "
			if slices.Contains(r.Marked, i+1) {
				mark, marks = " *", true
			}
			return screen.Right(unitText(r.Unit, *r.Values[i]), width) + mark
		})
	}
	of := func(v func(*result.Rounds) *float64) func(*result.Rounds) string {
		return func(r *result.Rounds) string {
			if v(r) == nil {
				return screen.Right("–", width) + "  "
			}
			return screen.Right(unitText(r.Unit, *v(r)), width) + "  "
		}
	}
	line("median", of(func(r *result.Rounds) *float64 { return r.Median }))
	line("least", of(func(r *result.Rounds) *float64 { return r.Min }))
	line("most", of(func(r *result.Rounds) *float64 { return r.Max }))
	if slices.ContainsFunc(rs, func(r result.Rounds) bool { return r.CoV != nil }) {
		line("CoV", func(r *result.Rounds) string { // standard deviation over mean
			if r.CoV == nil {
				return screen.Right("–", width) + "  "
			}
			return screen.Right(strconv.FormatFloat(100**r.CoV, 'f', 2, 64)+" %", width) + "  "
		})
	}
	for i := range rs {
		if r := &rs[i]; r.Low != nil {
			fmt.Fprintf(w, "  %s: %.1f %% confidence interval of the median %s … %s\n", strings.TrimSpace(r.Of+" "+r.Figure), 100**r.Level, unitText(r.Unit, *r.Low), unitText(r.Unit, *r.High))
		}
	}
	if marks {
		fmt.Fprintln(w, "  * far from the others (robust z above 3.5); it counts all the same")
	}
}

// counted is a number with its word: "1 round", "5 rounds".
func counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// beginRound is begin with a heading for each round.
func (v *stageView) beginRound(headings bool) func(method.Step) {
	last := 0
	return func(s method.Step) {
		if headings && v.shows && s.Round != last {
			fmt.Fprintln(v.e.Out, v.paint("2", fmt.Sprintf("round %d", s.Round)))
			last = s.Round
		}
		v.begin(s)
	}
}

// enoughRounds reports that further rounds would tell nothing new.
func enoughRounds(values []*float64) bool {
	var known []float64
	for _, v := range values {
		if v != nil {
			known = append(known, *v)
		}
	}
	enough, _ := method.EnoughRounds(known)
	return enough
}
