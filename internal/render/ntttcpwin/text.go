// Package ntttcpwin prints a run as NTTTCP for Windows 5.40 does: the console's tables and
// the XML, with the threads' own times and rates of 5.39, which 5.40 shows as 0.
//
// Sizes and rates per second in KB and MB are powers of 1024, mbps of 1000. A figure that
// this host cannot tell is 0, as tables and document have a fixed shape.
//
// What is ours stands behind the last table, each line beginning with "fullbore: ".
package ntttcpwin

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// Version is what the program calls itself.
const Version = "5.40"

// Options choose what is printed and how. The zero value prints the tables.
type Options struct {
	Settings  Settings
	Verbose   bool // -v
	NoThreads bool // -hpt: no rows of threads, in the XML neither
	XML       bool // -xml: a document instead of the tables (WriteXML)
	CRLF      bool // lines end as on Windows
	// Realtime prints a line for each interval, which the original cannot.
	Realtime bool
	// Again: the process has introduced itself already.
	Again bool
	// Now is the clock for -v's messages that the run has no time for; nil takes the time of
	// the last milestone, else the run's start. Zone is where clocks are read; nil = local.
	Now  func() time.Time
	Zone *time.Location
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

	last       time.Time
	introduced bool
	listed     bool // the settings have been printed
	started    bool
	finished   bool

	err error
}

// New returns a Renderer that writes to w. Call Close when the run is over.
func New(w io.Writer, o Options) *Renderer {
	r := &Renderer{w: w, o: o, introduced: o.Again, listed: o.Again}
	r.fold()
	return r
}

// Event implements result.Sink.
func (r *Renderer) Event(e result.Event) {
	r.introduce()
	if e.Kind == result.KindInterval {
		if e.Interval.End == r.run.End {
			r.start()
			r.interval(e.Interval)
		}
		return
	}
	r.head.Event(e)
	switch e.Kind {
	case result.KindPrepared:
		r.fold()
		r.list()
	case result.KindConnected, result.KindStart:
		r.fold()
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
	}
}

// Close returns the first error of writing.
func (r *Renderer) Close() error {
	r.introduce()
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

func (r *Renderer) introduce() {
	if !r.introduced {
		r.introduced = true
		r.line("Copyright Version " + Version)
	}
}

func (r *Renderer) list() {
	if r.listed || !r.o.Verbose {
		return
	}
	r.listed = true
	for _, l := range r.o.Settings.list(r.run) {
		r.line(l)
	}
}

// start says that the test goes on, once.
func (r *Renderer) start() {
	if !r.started {
		r.started = true
		r.message("Network activity progressing...")
	}
}

// interval prints the rate of one report of the measured time.
func (r *Renderer) interval(iv *result.Interval) {
	if !r.o.Realtime || iv.Omitted || iv.Partial {
		return
	}
	var bytes int64
	for _, s := range iv.Sums {
		bytes += s.Bytes
	}
	r.message(fmt.Sprintf("Real-time throughput(MB/s): %.3f", result.PerSecond(bytes, iv.Stop-iv.Start)/mib))
}

func (r *Renderer) finish() {
	s := r.o.Settings.fill(r.run)
	f := figuresOf(r.run, s)
	if r.finished || !f.known {
		return
	}
	r.finished = true
	r.start()
	if !r.o.XML {
		for _, l := range f.tables(s, r.o.NoThreads) {
			r.line(l)
		}
	}
	if f.tooShort() {
		for _, l := range []string{"", "", "NOTE::Avg CPU% drops below 0%. The test was too short to measure it.", ""} {
			r.line(l)
		}
	}
	if r.o.XML {
		return
	}
	for _, l := range f.ours() {
		r.line("fullbore: " + l)
	}
}

// milestone prints what m says; but for the start, only -v shows them.
func (r *Renderer) milestone(m *result.Milestone, end result.End) {
	if m.End != "" {
		end = m.End
	}
	if end != "" && end != r.run.End {
		return
	}
	if r.last = m.Time; r.last.IsZero() {
		r.last = r.now()
	}
	switch {
	case m.Code == result.MilestoneStarted:
		r.start()
	case m.Code == result.MilestoneLine && m.Severity == "error":
		r.message("ERROR: " + clean(m.Text))
	case m.Code == result.MilestoneLine && m.Severity != "debug":
		r.message(clean(m.Text))
	case r.o.Verbose:
		if text := words(m); text != "" {
			r.message(text)
		}
	}
}

// words is what -v says of a milestone, "" = nothing.
func words(m *result.Milestone) string {
	switch m.Code {
	case result.MilestoneLine:
		return clean(m.Text)
	case result.MilestoneThreads:
		return fmt.Sprintf("%d threads created", m.Count)
	case result.MilestoneListening:
		return "listening on port " + port(m.Local)
	case result.MilestoneConnection:
		return "connection established on port " + port(m.Local) + ", peer " + addr(m.Remote)
	case result.MilestoneConnected:
		return fmt.Sprintf("all %d threads ready", m.Count)
	case result.MilestoneSync:
		return "token exchanged on port " + port(m.Local) + ", peer " + addr(m.Remote)
	case result.MilestoneWarmedUp:
		return "warmup over, start recording"
	case result.MilestoneMeasured:
		return "stop recording"
	case result.MilestoneCooling:
		return "cooldown started"
	case result.MilestoneCycleOver:
		return "test finished"
	case result.MilestoneThreadDone:
		return fmt.Sprintf("thread %d done", m.Count)
	case result.MilestoneInterrupt:
		return "interrupted"
	}
	return ""
}

func port(a *result.Addr) string {
	if a == nil {
		return "?"
	}
	return fmt.Sprint(a.Port)
}

func addr(a *result.Addr) string {
	if a == nil {
		return "?"
	}
	return fmt.Sprintf("%s:%d", clean(a.Host), a.Port)
}

// failure prints why the run broke off.
func (r *Renderer) failure(e *result.Error) {
	lines := strings.Split(strings.TrimSuffix(e.Text, "\n"), "\n")
	if r.o.ErrorLines != nil {
		lines = r.o.ErrorLines(e)
	}
	for _, l := range lines {
		r.message("ERROR: " + clean(l))
	}
}

// notice tells a warning beside the output; what is only worth knowing would be noise in
// the output of a drop-in.
func (r *Renderer) notice(n *result.Notice) {
	if r.o.Err != nil && n.Level == result.Warn {
		r.write(r.o.Err, "ntttcp: warning: "+clean(n.Text)+"\n")
	}
}

// message prints a line of the course, which -v gives a time.
func (r *Renderer) message(text string) {
	if r.o.Verbose {
		zone := r.o.Zone
		if zone == nil {
			zone = time.Local
		}
		at := r.now().In(zone)
		text = fmt.Sprintf("%d/%d/%d %d:%d:%d ", at.Month(), at.Day(), at.Year(), at.Hour(), at.Minute(), at.Second()) + text
	}
	r.line(text)
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

func (r *Renderer) line(text string) { r.write(r.w, text+newline(r.o.CRLF)) }

func (r *Renderer) write(w io.Writer, s string) {
	if _, err := io.WriteString(w, s); err != nil && r.err == nil {
		r.err = err
	}
}

func newline(crlf bool) string {
	if crlf {
		return "\r\n"
	}
	return "\n"
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
