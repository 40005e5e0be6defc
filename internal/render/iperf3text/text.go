// Package iperf3text prints a run as iperf3 does in its normal, line by line output,
// live from the events of the run, for the layouts of the releases 3.21 and 3.12.
//
// Every line is written with one Write as soon as it is known: unlike iperf3 there is
// no buffering in pipes. Where iperf3 prints something twice, or a zero for a figure
// that nobody measured, see spec iperf3-cli §5 and testdata/deviations for what is kept.
package iperf3text

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/result"
)

// Options choose what is printed and how. The zero value is release 3.21, adaptive
// units, no extras; errors and warnings are dropped.
type Options struct {
	Release iperf3view.Release
	// Format is the letter of -f (k m g t K M G T), 0 = adaptive.
	Format byte
	// Verbose is -V.
	Verbose bool
	// Length says that -l was given: only a datagram size that follows from the path is
	// announced.
	Length bool
	// Timestamps is the strftime format that goes before each line, "" = none. Now is
	// the clock and zone for it; nil = the system's.
	Timestamps string
	Now        func() time.Time
	// Err gets the lines about errors and warnings; nil drops them.
	Err io.Writer
	// Raw gets the lines that iperf3 writes past title, timestamps and log file
	// ("Control connection MSS"); nil = the same as everything else.
	Raw io.Writer
	// ErrorLines says what is printed about an error, without "iperf3: "; nil takes the
	// run's own words (iperf3view.ErrorLines).
	ErrorLines func(e *result.Error, end result.End, release string) []string
	// End is the end that prints, for runs that broke off before they could say.
	End result.End
	// SystemInfo is uname's line of this host, for runs that do not have it.
	SystemInfo string
}

// Renderer implements result.Sink. It is not safe for concurrent use.
type Renderer struct {
	w io.Writer
	o Options

	head result.Folder // all events but the intervals
	run  *result.Run   // what head says

	introduced, connected, opened, begun bool // parts that have been printed
	headed                               bool // the interval table has its header
	omitOver                             bool // the end of the omit period has been told
	closed                               bool
	broken                               bool // the totals are only this end's

	err error
}

// New returns a Renderer that writes to w. Call Close when the run is over: the
// closing report waits until it is known whether an error follows the totals.
func New(w io.Writer, o Options) *Renderer {
	r := &Renderer{w: w, o: o}
	if r.o.Format == 0 {
		r.o.Format = 'a'
	}
	r.fold()
	return r
}

// Text is what a Renderer prints of r: the server's part of --get-server-output.
func Text(r *result.Run, o Options) string {
	var b strings.Builder
	o.Err, o.Raw = nil, nil
	t := New(&b, o)
	t.Introduced() // that is part of the banner
	for _, e := range result.Unfold(r) {
		t.Event(e)
	}
	_ = t.Close() // a Builder takes everything
	return b.String()
}

// Introduce prints version and system, which -V shows at the start of the program;
// without a call they come with the first event.
func (r *Renderer) Introduce() {
	if r.introduced {
		return
	}
	r.introduced = true
	if r.o.Verbose {
		r.printf("%s\n", iperf3view.Version(r.run, r.o.Release))
		r.printf("%s\n", r.systemInfo())
	}
}

// Introduced says that the program has introduced itself already, in an earlier test.
func (r *Renderer) Introduced() { r.introduced = true }

// Listening prints the banner of a server that waits for its n-th test.
func (r *Renderer) Listening(port, n int) {
	r.Introduce()
	const line = "-----------------------------------------------------------\n"
	r.printf(line)
	r.printf("Server listening on %d (test #%d)\n", port, n)
	r.printf(line)
}

// Event implements result.Sink.
func (r *Renderer) Event(e result.Event) {
	if e.Kind == result.KindInterval {
		r.interval(e.Interval)
		return
	}
	r.head.Event(e)
	r.fold()
	switch e.Kind {
	case result.KindConnected:
		r.connect()
	case result.KindStart:
		r.connect()
		r.open()
		r.begin()
	case result.KindNotice:
		r.notice(e.Notice)
	case result.KindError:
		r.conclude()
	}
}

// Close prints what was held back. It returns the first error of writing.
func (r *Renderer) Close() error {
	r.conclude()
	return r.err
}

// fold takes over what the events so far say.
func (r *Renderer) fold() {
	r.run = r.head.Run()
	if r.run.End == "" {
		r.run.End = r.o.End
	}
	if r.run.End == "" {
		r.run.End = result.Client
	}
}

func (r *Renderer) server() bool { return r.run.End == result.Server }

func (r *Renderer) systemInfo() string {
	if s := iperf3view.SystemInfo(r.run); s != "" {
		return s
	}
	return r.o.SystemInfo
}

// connect prints who talks to whom, once parameters have been offered.
func (r *Renderer) connect() {
	if r.connected || iperf3view.StageOf(r.run) < iperf3view.Parameters {
		return
	}
	w, t := r.run.Wire, &r.run.Test
	if r.server() && w.AcceptedFrom == nil {
		return // refused before iperf3 would say anything
	}
	r.connected = true
	r.Introduce()
	if r.o.Verbose {
		if !r.server() {
			r.raw("Control connection MSS %d\n", w.ControlMSS)
			if iperf3view.Datagrams(r.run) && !r.o.Length && t.BlockSize == w.ControlMSS {
				r.raw("Setting UDP block size to %d\n", t.BlockSize)
			}
		}
		r.printf("Time: %s\n", iperf3view.StartTime(r.run))
	}
	switch {
	case r.server():
		r.printf("Accepted connection from %s, port %d\n", w.AcceptedFrom.Host, w.AcceptedFrom.Port)
	case w.ConnectingTo != nil:
		r.printf("Connecting to host %s, port %d\n", w.ConnectingTo.Host, w.ConnectingTo.Port)
		if t.Direction == "down" {
			r.printf("Reverse mode, remote host %s is sending\n", w.ConnectingTo.Host)
		}
	}
	if !r.o.Verbose {
		return
	}
	r.printf("      Cookie: %s\n", w.Cookie)
	if t.Transport == "tcp" {
		if t.MSS != 0 {
			r.printf("      TCP MSS: %d\n", t.MSS)
		} else {
			r.printf("      TCP MSS: %d (default)\n", iperf3view.ControlMSS(r.run))
		}
	}
	if t.Bitrate > 0 {
		r.printf("      Target Bitrate: %d\n", t.Bitrate)
	}
}

// open prints a line per data connection.
func (r *Renderer) open() {
	if r.opened || len(r.run.Streams) == 0 {
		return
	}
	r.opened = true
	for _, s := range r.run.Streams {
		r.printf("[%3d] local %s port %d connected to %s port %d\n",
			s.Socket, s.Local.Host, s.Local.Port, s.Remote.Host, s.Remote.Port)
	}
}

// begin says what the test will do.
func (r *Renderer) begin() {
	if r.begun || iperf3view.StageOf(r.run) < iperf3view.Started {
		return
	}
	r.begun = true
	if !r.o.Verbose {
		return
	}
	t := &r.run.Test
	limit := fmt.Sprintf("%v second test", t.Duration)
	switch {
	case t.Bytes > 0:
		limit = fmt.Sprintf("%d bytes to send", t.Bytes)
	case t.Blocks > 0:
		limit = fmt.Sprintf("%d blocks to send", t.Blocks)
	}
	r.printf("Starting Test: protocol: %s, %d streams, %d byte blocks, omitting %v seconds, %s, tos %d\n",
		strings.ToUpper(t.Transport), t.Streams, t.BlockSize, t.Omit, limit, t.TOS)
}

// RateExceeded is the code of a server's notice that a test ran faster than the
// server's limit, which ends it; iperf3 prints it like an error.
const RateExceeded = "rate-limit-exceeded"

// notice prints what the reader of the numbers must know, as iperf3 prints its
// warnings. What is only worth knowing would be noise in the output of a drop-in.
func (r *Renderer) notice(n *result.Notice) {
	switch {
	case n.Code == RateExceeded:
		r.complain("%siperf3: %s\n", r.timestamp(), clean(n.Text))
	case n.Level == result.Warn:
		r.complain("warning: %s\n", clean(n.Text))
	}
}

// conclude prints the closing report, the error or the farewell.
func (r *Renderer) conclude() {
	if r.closed {
		return
	}
	r.closed = true
	// iperf3 keeps the totals of a test that broke off to itself (field case F28).
	r.broken = !r.server() && r.headed && r.run.Finished() && !iperf3view.Complete(r.run)
	if r.broken || iperf3view.Complete(r.run) {
		r.summary()
	}
	if e := r.run.Err; e != nil {
		lines := iperf3view.ErrorLines(e, r.run.End, r.o.Release)
		if r.o.ErrorLines != nil {
			lines = r.o.ErrorLines(e, r.run.End, r.o.Release.String())
		}
		for _, l := range lines {
			r.complain("%siperf3: %s\n", r.timestamp(), clean(l))
		}
		return
	}
	if r.server() || !r.run.Finished() {
		return
	}
	r.serverOutput()
	r.printf("\n")
	r.printf("iperf Done.\n")
}

// printf writes to the main output, after timestamp and title.
func (r *Renderer) printf(format string, args ...any) {
	prefix := r.timestamp()
	if r.run.Test.Title != "" && !r.server() {
		prefix += r.run.Test.Title + ":  "
	}
	r.write(r.w, prefix+fmt.Sprintf(format, args...))
}

// raw writes past timestamp, title and log file.
func (r *Renderer) raw(format string, args ...any) {
	w := r.o.Raw
	if w == nil {
		w = r.w
	}
	r.write(w, fmt.Sprintf(format, args...))
}

func (r *Renderer) complain(format string, args ...any) {
	if r.o.Err != nil {
		r.write(r.o.Err, fmt.Sprintf(format, args...))
	}
}

func (r *Renderer) write(w io.Writer, s string) {
	if _, err := io.WriteString(w, s); err != nil && r.err == nil {
		r.err = err
	}
}

// timestamp is what goes before a line.
func (r *Renderer) timestamp() string {
	if r.o.Timestamps == "" {
		return ""
	}
	now := time.Now
	if r.o.Now != nil {
		now = r.o.Now
	}
	return Timestamp(r.o.Timestamps, now())
}

// Timestamp formats t as C's strftime does in the C locale: what --timestamps puts
// before a line.
func Timestamp(format string, t time.Time) string { return strftime(format, t) }

// clean makes text of the other end safe to print: no control characters but line
// break and tab, and valid UTF-8.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' || c >= ' ' && c != 0x7f && (c < 0x80 || c > 0x9f) {
			return c
		}
		return '\uFFFD'
	}, s)
}
