package cli

import (
	"time"

	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/result"
)

// ntttcpSamples cuts the measured time into parts of which each has a result (-sam of the Windows
// dialect). It gets the events of one test, on the goroutine that makes the rows, so that the
// counters of this machine are read at the parts' bounds.
type ntttcpSamples struct {
	length float64 // s
	end    result.End
	totals *oshost.Totals

	span  func() *result.HostTotal // of the part that runs; nil = none does
	start float64
	parts []ntttcpPart
	part  map[int]*ntttcpSample // by stream
	stop  float64
}

// ntttcpSample is one stream's part of a sample.
type ntttcpSample struct {
	result.Total
	calls *int64 // nil = they were not counted
}

// ntttcpPart is one sample.
type ntttcpPart struct {
	streams map[int]*ntttcpSample
	machine *result.HostTotal
}

func newNTTTCPSamples(length time.Duration, end result.End, o oshost.TotalsOptions) *ntttcpSamples {
	return &ntttcpSamples{length: length.Seconds(), end: end, totals: oshost.NewTotals(o)}
}

// Event implements result.Sink.
func (s *ntttcpSamples) Event(e result.Event) {
	switch e.Kind {
	case result.KindStart:
		if e.Head.Test.Omit == 0 {
			s.begin()
		}
	case result.KindMilestone:
		if e.Milestone.Code == result.MilestoneWarmedUp {
			s.begin()
		}
	case result.KindInterval:
		if iv := e.Interval; iv.End == s.end && !iv.Omitted {
			s.row(iv)
		}
	case result.KindFinish:
		if len(s.part) > 0 {
			s.rest()
		}
	}
}

func (s *ntttcpSamples) begin() { s.span = s.totals.Begin() }

func (s *ntttcpSamples) row(iv *result.Interval) {
	if s.part == nil {
		s.part, s.start = map[int]*ntttcpSample{}, iv.Start
		if s.span == nil {
			s.begin()
		}
	}
	for _, one := range iv.Streams {
		t := s.part[one.ID]
		if t == nil {
			t = &ntttcpSample{Total: result.Total{Start: one.Start}}
			s.part[one.ID] = t
		}
		t.End = one.Stop
		t.Bytes += one.Bytes
		t.Packets = added(t.Packets, one.Packets)
		t.Retransmits = added(t.Retransmits, one.Retransmits)
		switch {
		case one.IO != nil:
			t.calls = added(t.calls, &one.IO.Completions)
		case one.Packets != nil: // each was a call
			t.calls = added(t.calls, one.Packets)
		}
	}
	if s.stop = iv.Stop; iv.Stop-s.start >= s.length-0.001 {
		s.close()
		s.begin()
	}
}

func added(a, b *int64) *int64 {
	if b == nil {
		return a
	}
	n := *b
	if a != nil {
		n += *a
	}
	return &n
}

// close ends the part that runs.
func (s *ntttcpSamples) close() {
	s.parts = append(s.parts, ntttcpPart{s.part, s.span()})
	s.part, s.span = nil, nil
}

// crumb is the share of a part below which what is left at the end belongs to the part before it:
// the measured time ends some milliseconds after its last whole part.
const crumb = 0.1

// rest ends the last part.
func (s *ntttcpSamples) rest() {
	if len(s.parts) == 0 || s.stop-s.start >= crumb*s.length {
		s.close()
		return
	}
	last := s.parts[len(s.parts)-1].streams
	for id, t := range s.part {
		if was := last[id]; was != nil {
			t.Start = was.Start
			t.Bytes += was.Bytes
			t.Packets, t.Retransmits = added(was.Packets, t.Packets), added(was.Retransmits, t.Retransmits)
			t.calls = added(was.calls, t.calls)
		}
		last[id] = t
	}
}

// runs are the parts of run, each a run of its own.
func (s *ntttcpSamples) runs(run *result.Run) []*result.Run {
	var out []*result.Run
	for _, p := range s.parts {
		one := *run
		one.Rows, one.Machines, one.Streams = nil, &result.HostTotals{}, nil
		if s.end == result.Client {
			one.Machines.Client = p.machine
		} else {
			one.Machines.Server = p.machine
		}
		for _, v := range run.Streams {
			t := p.streams[v.ID]
			if t == nil {
				t = &ntttcpSample{}
			}
			v.Sender, v.Receiver, v.IO = nil, nil, nil
			if s.end == result.Client {
				v.Sender = &t.Total
			} else {
				v.Receiver = &t.Total
			}
			if t.calls != nil {
				v.IO = &result.IOCount{Completions: *t.calls}
			}
			one.Streams = append(one.Streams, v)
		}
		out = append(out, &one)
	}
	return out
}

// Close gives the counters back.
func (s *ntttcpSamples) Close() { s.totals.Close() }
