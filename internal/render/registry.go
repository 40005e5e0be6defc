// Package render is the list of the forms in which a run can be printed.
package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/fullbore-net/fullbore/internal/render/csv"
	"github.com/fullbore-net/fullbore/internal/render/html"
	"github.com/fullbore-net/fullbore/internal/render/iperf3json"
	"github.com/fullbore-net/fullbore/internal/render/iperf3text"
	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/internal/render/json"
	"github.com/fullbore-net/fullbore/internal/render/jsonstream"
	"github.com/fullbore-net/fullbore/internal/render/ntttcplinux"
	"github.com/fullbore-net/fullbore/internal/render/ntttcpwin"
	"github.com/fullbore-net/fullbore/internal/render/plain"
	"github.com/fullbore-net/fullbore/result"
)

// View prints one run: it takes the events as they happen and, in Close, what can only
// be said of the whole. Close returns the first error of writing.
type View interface {
	result.Sink
	Close() error
}

// Output is a form of output.
type Output struct {
	Name string // as in an option or a file name
	Doc  string // one line
	Live bool   // prints while the run goes on, not only at its end
	New  func(w io.Writer, o Options) View
}

// Options are what the forms can be told. Each uses what means something to it.
type Options struct {
	Err     io.Writer          // iperf3: error and warning lines; nil drops them
	Color   bool               // plain
	Verbose bool               // iperf3, ntttcp: -V
	Release iperf3view.Release // iperf3, iperf3-json, iperf3-stream; "" = the newest
}

// Outputs is the list. The live view of a terminal is not in it: it reads keys, so it
// is more than a way to print.
var Outputs = []Output{
	{"plain", "lines of text for people and logs", true, func(w io.Writer, o Options) View {
		return &folded{sink: plain.New(w, plain.Options{Color: o.Color}), end: func(s result.Sink, r *result.Run) error {
			p := s.(*plain.Renderer)
			p.End(r)
			return p.Err()
		}}
	}},
	{"json", "one document (docs/schema/run-1.json)", false, func(w io.Writer, _ Options) View {
		return &folded{end: func(_ result.Sink, r *result.Run) error { return json.Write(w, r) }}
	}},
	{"json-stream", "events, one JSON object a line", true, func(w io.Writer, _ Options) View {
		return &folded{sink: jsonstream.New(w), end: func(s result.Sink, _ *result.Run) error {
			return s.(*jsonstream.Renderer).Err()
		}}
	}},
	{"csv", "a table of intervals and totals (docs/csv.md)", true, func(w io.Writer, _ Options) View {
		return &folded{sink: csv.New(w), end: func(s result.Sink, r *result.Run) error {
			c := s.(*csv.Writer)
			c.Finish(r)
			return c.Err()
		}}
	}},
	{"html", "one page with plots", false, func(w io.Writer, _ Options) View {
		return &folded{end: func(_ result.Sink, r *result.Run) error { return html.Write(w, r) }}
	}},
	{"iperf3", "what iperf3 prints", true, func(w io.Writer, o Options) View {
		return iperf3text.New(w, iperf3text.Options{Release: o.Release, Verbose: o.Verbose, Err: o.Err})
	}},
	{"iperf3-json", "the document of iperf3 -J", false, func(w io.Writer, o Options) View {
		return &folded{end: func(_ result.Sink, r *result.Run) error {
			_, err := w.Write(iperf3json.Document(r, iperf3json.Options{Release: o.Release}))
			return err
		}}
	}},
	{"iperf3-stream", "the events of iperf3 --json-stream", true, func(w io.Writer, o Options) View {
		return iperf3json.NewStream(w, iperf3json.Options{Release: o.Release})
	}},
	{"ntttcp", "what ntttcp-for-linux prints", true, func(w io.Writer, o Options) View {
		return ntttcplinux.New(w, ntttcplinux.Options{Verbose: o.Verbose, Err: o.Err})
	}},
	{"ntttcp-xml", "the document of ntttcp-for-linux -x", false, func(w io.Writer, o Options) View {
		return &folded{end: func(_ result.Sink, r *result.Run) error {
			return ntttcplinux.WriteXML(w, r, ntttcplinux.Options{Verbose: o.Verbose})
		}}
	}},
	{"ntttcp-json", "the document of ntttcp-for-linux -j", false, func(w io.Writer, o Options) View {
		return &folded{end: func(_ result.Sink, r *result.Run) error {
			return ntttcplinux.WriteJSON(w, r, ntttcplinux.Options{Verbose: o.Verbose})
		}}
	}},
	{"ntttcp-windows", "what NTTTCP for Windows prints", true, func(w io.Writer, o Options) View {
		return ntttcpwin.New(w, ntttcpwin.Options{Verbose: o.Verbose, Err: o.Err})
	}},
	{"ntttcp-windows-xml", "the document of NTTTCP for Windows -xml", false, func(w io.Writer, o Options) View {
		return &folded{end: func(_ result.Sink, r *result.Run) error {
			return ntttcpwin.WriteXML(w, r, ntttcpwin.Options{Verbose: o.Verbose})
		}}
	}},
}

// Find returns the output with that name. The error names those that exist.
func Find(name string) (Output, error) {
	names := make([]string, len(Outputs))
	for i, o := range Outputs {
		if o.Name == name {
			return o, nil
		}
		names[i] = o.Name
	}
	return Output{}, fmt.Errorf("no output %q; there are %s", name, strings.Join(names, ", "))
}

// Print prints a run that is over, in the given form.
func Print(w io.Writer, name string, r *result.Run, o Options) error {
	out, err := Find(name)
	if err != nil {
		return err
	}
	v := out.New(w, o)
	for _, e := range result.Unfold(r) {
		v.Event(e)
	}
	return v.Close()
}

// folded is a View of a renderer that needs the whole run at its end. sink is nil when
// it has nothing to print before.
type folded struct {
	sink result.Sink
	end  func(result.Sink, *result.Run) error
	fold result.Folder
}

// Event implements result.Sink.
func (f *folded) Event(e result.Event) {
	f.fold.Event(e)
	if f.sink != nil {
		f.sink.Event(e)
	}
}

// Close implements View.
func (f *folded) Close() error { return f.end(f.sink, f.fold.Run()) }
