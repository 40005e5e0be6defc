package iperf3json

import (
	"io"

	"github.com/fullbore-net/fullbore/internal/render/cjson"
	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/result"
)

// Stream prints a run while it goes on, as iperf3 --json-stream does: one event a
// line, each written with a single Write. It is not safe for concurrent use.
//
// The order is start, interval…, error, server_output_…, end. The last three are
// printed by Close, when it is known whether an error follows the totals.
type Stream struct {
	w    io.Writer
	o    Options
	head result.Folder // all events but the intervals: those are not kept
	run  *result.Run   // what head says
	all  *result.Folder
	err  error
}

// NewStream returns a Stream that writes to w.
func NewStream(w io.Writer, o Options) *Stream {
	s := &Stream{w: w, o: o}
	s.run = o.fill(s.head.Run())
	if o.Full {
		s.all = &result.Folder{}
	}
	return s
}

// Event implements result.Sink.
func (s *Stream) Event(e result.Event) {
	if s.all != nil {
		s.all.Event(e)
	}
	if e.Kind == result.KindInterval {
		if iperf3view.Visible(s.run, e.Interval) {
			s.line("interval", interval(s.run, e.Interval, s.o.Release))
		}
		return
	}
	s.head.Event(e)
	s.run = s.o.fill(s.head.Run())
	if e.Kind == result.KindStart && iperf3view.StageOf(s.run) == iperf3view.Started {
		s.line("start", start(s.run, s.o.Release))
	}
}

// Close prints the end. It returns the first error of writing. The Stream is done
// after it.
func (s *Stream) Close() error {
	r := s.run
	if r.Err != nil {
		s.line("error", iperf3view.ErrorText(r.Err, r.End, s.o.Release))
	}
	if key, v := serverOutput(r); key != "" {
		s.line(key, v)
	}
	s.line("end", end(r, s.o.Release))
	if s.all != nil {
		s.write(Document(s.all.Run(), s.o))
	}
	return s.err
}

func (s *Stream) line(name string, data any) {
	o := (&cjson.Object{}).Add("event", name).Add("data", data)
	s.write(append(cjson.AppendCompact(nil, o), '\n'))
}

func (s *Stream) write(b []byte) {
	if s.err != nil {
		return
	}
	_, s.err = s.w.Write(b)
}
