// Package ntttcplinux prints a run as ntttcp-for-linux does: its console lines, live from
// the events of the run, its -O log, and its XML and JSON documents, for the layouts of
// the releases 1.4.3, 1.4.0 (both programs of that number) and 1.3.4.
//
// Result values follow a colon without a blank and the tabs are the original's, because
// scripts look for them. Every line is one Write, so that a pipe sees the last ruler too.
// What this host cannot tell (the original reads /proc) has no line on the console; in the
// documents, which have a fixed shape, it is 0 like everything that the original does not
// measure.
//
// What is ours stands behind the closing ruler, each line beginning with "fullbore: ".
package ntttcplinux

import (
	"io"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// Options choose what is printed and how. The zero value is release 1.4.3, no extras.
type Options struct {
	Release  Release
	Settings Settings
	Verbose  bool // -V
	Quiet    bool // -Q: no real-time lines
	// NoThreads leaves out the rows of threads, which come with Verbose.
	NoThreads bool
	// Terminal: standard output is one that understands escapes, so each real-time line
	// overwrites the one before. 1.4.0-tag and 1.3.4 always write escapes.
	Terminal bool
	// Again: the process has printed its banner and settings already, in an earlier test.
	Again bool
	// Now is the clock for the lines that the run has no time for; nil takes the time of
	// the last milestone, else the run's start, which is what a replay wants. Zone is where clocks are read; nil
	// = local.
	Now  func() time.Time
	Zone *time.Location
	// Log gets every line with a time (-O), but those of the argument checks: they come
	// before KindPrepared; nil = none.
	Log io.Writer
	// Err gets a line for each warning; nil drops them.
	Err io.Writer
	// ErrorLines says what is printed about an error; nil takes the lines of its text.
	ErrorLines func(*result.Error) []string
	// End is the end that prints, for what comes before the run says so.
	End result.End
}

// Renderer implements result.Sink. It is not safe for concurrent use.
type Renderer struct {
	w io.Writer
	o Options

	head result.Folder // all events but intervals
	run  *result.Run

	told     map[string]bool // codes of milestones that came
	last     time.Time       // of the latest milestone
	held     []string        // 1.3.4 tells the end of the cycle after the totals
	counting bool            // a row of the measured time came
	bannered bool
	set      bool // the settings have been printed
	logging  bool // the arguments are checked
	finished bool

	err error
}

// New returns a Renderer that writes to w. Call Close when the run is over.
func New(w io.Writer, o Options) *Renderer {
	r := &Renderer{w: w, o: o, told: map[string]bool{}, bannered: o.Again, set: o.Again, logging: o.Again}
	r.fold()
	return r
}

// Banner prints the name of the program, once; it comes by itself before the first line.
func (r *Renderer) Banner() {
	if r.bannered {
		return
	}
	r.bannered = true
	r.plain("NTTTCP for Linux " + r.o.Release.String() + "\n" + ruler)
}

// Event implements result.Sink.
func (r *Renderer) Event(e result.Event) {
	r.Banner()
	r.logging = r.logging || e.Kind != result.KindMilestone
	if e.Kind == result.KindInterval {
		r.interval(e.Interval)
		return
	}
	r.head.Event(e)
	switch e.Kind {
	case result.KindPrepared:
		r.fold()
		r.settings()
	case result.KindMilestone:
		r.milestone(e.Milestone, e.End)
	case result.KindNotice:
		r.notice(e.Notice)
	case result.KindFinish:
		r.fold()
		r.finish()
	case result.KindError:
		r.fold()
		r.failure(e.Err)
	case result.KindConnected, result.KindStart:
		r.fold()
	}
}

// Close prints what was held back. It returns the first error of writing.
func (r *Renderer) Close() error {
	r.Banner()
	r.release()
	if r.finished && !r.told[result.MilestoneNoResult] {
		r.derive(result.MilestoneCycleOver)
	}
	return r.err
}

func (r *Renderer) fold() {
	r.run = r.head.Run()
	if r.run.End == "" {
		r.run.End = r.o.End
	}
	if r.run.End == "" {
		r.run.End = result.Client
	}
}

func (r *Renderer) settings() {
	if r.set || !r.o.Verbose {
		return
	}
	r.set = true
	r.plain(r.o.Settings.block(r.run, &r.o))
}

// interval prints the real-time line: of the warm-up and the measured time, not of the
// rest that the end of the test cut short.
func (r *Renderer) interval(iv *result.Interval) {
	if iv.End != r.run.End {
		return
	}
	if n := ntttcp(r.run); !n.NoSync {
		r.derive(result.MilestoneStarted)
	}
	switch {
	case iv.Omitted && (r.counting || r.told[result.MilestoneMeasured]):
		return // cool-down
	case iv.Omitted:
		r.told["warm-up"] = true
	default:
		if r.told["warm-up"] {
			r.derive(result.MilestoneWarmedUp)
		}
		r.counting = true
	}
	if r.o.Quiet || iv.Partial {
		return
	}
	text := "Real-time throughput: " + rateText(rowRate(iv))
	if r.o.Terminal || !r.o.Release.since(R140) {
		r.plain("\x1b[2K" + text + "\r")
	} else {
		r.plain(text + "\n")
	}
}

// derive tells a milestone that the run did not.
func (r *Renderer) derive(code string) {
	if !r.told[code] {
		r.milestone(&result.Milestone{Code: code}, r.run.End)
	}
}

// milestone prints what m says.
func (r *Renderer) milestone(m *result.Milestone, end result.End) {
	if m.End != "" {
		end = m.End
	}
	if end != "" && end != r.run.End {
		return
	}
	r.told[m.Code] = true
	at := m.Time
	if at.IsZero() {
		at = r.now()
	}
	r.last = at
	level, text := r.words(m)
	if text == "" || level == debug && !r.o.Verbose {
		return
	}
	line := r.stamped(at, level, text)
	if m.Code == result.MilestoneCycleOver && !r.cycleFirst() && !r.finished {
		r.held = append(r.held, line)
		return
	}
	r.write(line)
}

// cycleFirst reports whether the end of the cycle is told before the totals.
func (r *Renderer) cycleFirst() bool { return r.o.Release.since(R140Tag) }

// release tells what was held back.
func (r *Renderer) release() {
	for _, l := range r.held {
		r.write(l)
	}
	r.held = nil
}

// failure prints why the run broke off.
func (r *Renderer) failure(e *result.Error) {
	lines := strings.Split(strings.TrimSuffix(e.Text, "\n"), "\n")
	switch {
	case r.o.ErrorLines != nil:
		lines = r.o.ErrorLines(e)
	case e.Interrupted:
		r.derive(result.MilestoneInterrupt)
		return
	}
	for _, l := range lines {
		r.line(failed, clean(l))
	}
}

// notice tells a warning beside the output; what is only worth knowing would be noise in
// the output of a drop-in.
func (r *Renderer) notice(n *result.Notice) {
	if r.o.Err == nil || n.Level != result.Warn {
		return
	}
	if _, err := io.WriteString(r.o.Err, "ntttcp: warning: "+clean(n.Text)+"\n"); err != nil && r.err == nil {
		r.err = err
	}
}

// finish prints the totals.
func (r *Renderer) finish() {
	f := figuresOf(r.run)
	if r.finished || !f.known {
		return
	}
	if !r.told[result.MilestoneNoResult] {
		r.derive(result.MilestoneMeasured)
		if r.cycleFirst() {
			r.derive(result.MilestoneCycleOver)
		}
	}
	r.finished = true
	for _, l := range f.totals(&r.o) {
		r.line(info, l)
	}
	r.plain(ruler)
	r.release()
	for _, l := range f.ours() {
		r.plain("fullbore: " + l + "\n")
	}
}

// line prints text with the time of now.
func (r *Renderer) line(level, text string) { r.write(r.stamped(r.now(), level, text)) }

func (r *Renderer) stamped(at time.Time, level, text string) string {
	zone := r.o.Zone
	switch {
	case zone != nil:
	case at.Year() <= 1: // a text that was read in has no date, and its hours are as they stood there
		zone = time.UTC
	default:
		zone = time.Local
	}
	return at.In(zone).Format("15:04:05") + " " + level + ": " + text + "\n"
}

func (r *Renderer) now() time.Time {
	switch {
	case r.o.Now != nil:
		return r.o.Now()
	case !r.last.IsZero():
		return r.last
	}
	return r.run.Started
}

// write prints a line with a time: on the console and in the log.
func (r *Renderer) write(s string) {
	r.plain(s)
	if r.o.Log == nil || !r.logging {
		return
	}
	if _, err := io.WriteString(r.o.Log, s); err != nil && r.err == nil {
		r.err = err
	}
}

func (r *Renderer) plain(s string) {
	if _, err := io.WriteString(r.w, s); err != nil && r.err == nil {
		r.err = err
	}
}

// clean makes text of other programs safe to print: no control characters but the tab,
// and valid UTF-8.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '\t' || c >= ' ' && c != 0x7f && (c < 0x80 || c > 0x9f) {
			return c
		}
		return '\uFFFD'
	}, s)
}
