// Package plain prints a run as lines of text: a header, a line per interval and
// direction with both ends' figures, and an end block with the answer first, then the
// numbers, then the next step. It is what a pipe gets, and what stays in the
// scrollback after a live view.
//
// Every line is written whole and at once. Columns keep their widths over a run.
// Unknown figures are a dash, never 0.
package plain

import (
	"fmt"
	"io"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/result"
)

// Options are how the text looks. The zero value suits a pipe: no colours, and each fact
// and notice on one line whatever its length.
type Options struct {
	Color bool // SGR colours; the caller knows whether a terminal reads them
	Width int  // wrap prose at this many columns (a terminal's); 0 = never
}

// Renderer prints one run. It is a result.Sink for one goroutine at a time (the runner
// serialises events); make a new one for each run.
type Renderer struct {
	out   printer
	head  result.Run // of the last Start or Connected; its lists of rows stay empty
	begun bool       // the header is out
	ended bool       // the end block is out
	over  bool       // Finish or Error came: notices wait for the end block

	columns bool // the column titles are out
	window  string
	lay     layout
	// Local rows wait for the other end's row of the same index until the next one is due.
	local  *result.Interval
	remote map[int]*result.Interval
}

// New returns a renderer that writes to w.
func New(w io.Writer, o Options) *Renderer {
	return &Renderer{out: newPrinter(w, o), remote: map[int]*result.Interval{}}
}

// Write prints a whole run as if it happened now.
func Write(w io.Writer, run *result.Run, o Options) error {
	r := New(w, o)
	for _, e := range result.Unfold(run) {
		r.Event(e)
	}
	r.End(run)
	return r.Err()
}

// Err returns the first error of the writer; after one nothing more is written.
func (r *Renderer) Err() error { return r.out.err }

// Event implements result.Sink. It prints the header and the interval lines; End prints
// the rest.
func (r *Renderer) Event(e result.Event) {
	switch e.Kind {
	case result.KindConnected:
		if e.Head != nil {
			r.head = *e.Head
		}
	case result.KindHost:
		r.head.Hosts.Set(e.End, e.Host)
	case result.KindStart:
		if e.Head == nil {
			return
		}
		client, server := r.head.Hosts.Client, r.head.Hosts.Server
		r.head = *e.Head
		if r.head.Hosts.Client == nil {
			r.head.Hosts.Client = client
		}
		if r.head.Hosts.Server == nil {
			r.head.Hosts.Server = server
		}
		r.header()
	case result.KindInterval:
		r.interval(e.Interval)
	case result.KindProbes:
		r.probes(e)
	case result.KindNotice:
		if r.begun && !r.over && e.Notice.Level == result.Warn {
			r.flush()
			r.out.prose("! ", yellow, screen.Clean(e.Notice.Text))
		}
	case result.KindFinish, result.KindError:
		r.flush()
		r.over = true
	}
}

// header says who measures what, and what is known before the first byte.
func (r *Renderer) header() {
	if r.begun {
		return
	}
	r.begun = true
	r.lay = newLayout(&r.head)
	if noLoad(&r.head) {
		r.lay.title = probeTitle(&r.head)
	}
	r.out.line(r.out.paint(bold, r.lay.title))
	for _, end := range []result.End{result.Client, result.Server} {
		if text := about(&r.head, end); text != "" {
			r.out.line("  " + text)
		}
	}
	if text := offers(&r.head); text != "" && !noLoad(&r.head) {
		r.out.prose("  offers  ", "", text)
	}
	if r.window = windowText(&r.head); r.window != "" {
		r.out.prose("  window  ", "", r.window)
	}
}

// interval takes a row of either end and prints what is complete.
func (r *Renderer) interval(row *result.Interval) {
	if !r.begun {
		r.header()
	}
	if t := r.head.Test; t.ProbeOnly && t.Transport != "udp" {
		return // streams that only connect
	}
	if stub(row, r.head.Test.Interval) {
		return
	}
	if row.End != r.head.End {
		if r.local != nil && fits(r.local, row) {
			r.print(r.local, row)
			r.local = nil
			return
		}
		if len(r.remote) < waiting {
			r.remote[row.Index] = row
		}
		return
	}
	r.flush()
	for i := range r.remote {
		if i < row.Index {
			delete(r.remote, i)
		}
	}
	switch other := r.remote[row.Index]; {
	case other != nil && fits(row, other):
		r.print(row, other)
	case r.head.Wire != nil && r.head.Wire.Extension:
		r.local = row
	default:
		r.print(row, nil)
	}
}

// stub reports whether a row is the scrap that a test's end leaves after its last full
// interval: too short for a rate to mean anything. Its bytes are in the totals.
func stub(row *result.Interval, step float64) bool {
	return row.Partial && row.Stop-row.Start < step/10
}

// waiting is the most rows of the other end that are kept for rows of ours to come.
const waiting = 64

// fits reports whether two rows of different ends are about the same time.
func fits(a, b *result.Interval) bool {
	half := (a.Stop - a.Start) / 2
	return a.Index == b.Index && a.Omitted == b.Omitted && a.Start-b.Start < half && b.Start-a.Start < half && b.Stop-a.Stop < half
}

// flush prints the row that waits for the other end's.
func (r *Renderer) flush() {
	if r.local != nil {
		r.print(r.local, nil)
		r.local = nil
	}
}

func (r *Renderer) print(local, remote *result.Interval) {
	if !r.columns {
		r.columns = true
		if text := pathOf(local, remote); text != "" {
			r.out.line("  path    " + text)
		}
		r.out.line("")
		r.out.line(r.out.paint(dim, r.lay.titles()))
	}
	for _, d := range r.lay.dirs {
		line := r.lay.row(gather(d, local, remote, &r.head))
		if local.Omitted {
			line = r.out.paint(dim, line+"  warm-up, not counted")
		}
		r.out.line(line)
	}
}

// about describes the program and the machine of one end.
func about(run *result.Run, e result.End) string {
	h := run.Hosts.Of(e)
	var parts []string
	if name := programOf(run, e); name != "" {
		parts = append(parts, name)
	}
	if h != nil {
		if os := strings.TrimSpace(h.OS + " " + h.Release); os != "" {
			parts = append(parts, os)
		}
		if h.Cores > 0 {
			parts = append(parts, count(h.Cores, "core"))
		}
		if h.Virtual != "" && h.Virtual != "none" {
			parts = append(parts, h.Virtual)
		}
		if h.NIC != nil {
			parts = append(parts, nicText(h.NIC))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return screen.Clean(fmt.Sprintf("%s  %s: %s", screen.Left(string(e), 6), conclude.EndName(run, e), strings.Join(parts, ", ")))
}

// programOf names the program at one end with its release.
func programOf(run *result.Run, e result.End) string {
	var t result.Tool
	if h := run.Hosts.Of(e); h != nil && h.Tool != nil {
		t = *h.Tool
	} else if e == run.End {
		t = run.Tool
	} else if w := run.Wire; w != nil && w.PeerVersion != "" {
		t = result.Tool{Name: "iperf3", Version: strings.TrimPrefix(w.PeerVersion, "iperf ")}
	} else if w != nil && !w.Extension {
		t = result.Tool{Name: run.Protocol, Version: "of unknown release"}
	}
	return strings.TrimSpace(t.Name + " " + t.Version)
}

func nicText(n *result.NIC) string {
	text := n.Name
	if n.SpeedBPS != nil {
		text += " " + rate(float64(*n.SpeedBPS))
	}
	if n.Duplex == "half" {
		text += " half duplex"
	}
	if n.MTU > 0 {
		text += fmt.Sprintf(" MTU %d", n.MTU)
	}
	return text
}
