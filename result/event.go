package result

import "time"

// Kind names an event.
type Kind string

// The kinds, in the order of a normal run.
const (
	KindPrepared  Kind = "prepared"  // what this end will do, before a peer is there: Run.Test, NTTTCP
	KindConnected Kind = "connected" // control connection is up and parameters are agreed: Run.Test, Wire, Hosts
	KindStart     Kind = "start"     // all streams exist: Run.Streams filled
	KindHost      Kind = "host"      // facts about one end arrived
	KindInterval  Kind = "interval"
	KindNotice    Kind = "notice"
	KindProbes    Kind = "probes" // a probe stream's figures; replaces earlier ones of its kind and profile
	KindFinish    Kind = "finish" // totals known; last but for an error or notices
	KindError     Kind = "error"  // the run broke off; no finish need follow

	// KindMilestone is a moment that outputs tell in words; at any time.
	KindMilestone Kind = "milestone"

	// KindConclusion is what looking at the whole run adds to it; the last event.
	KindConclusion Kind = "conclusion"
)

// Event is one fact about a running test. A live view, the JSON stream and the
// stored Run are all folds of the same sequence, so they cannot disagree.
type Event struct {
	Kind Kind    `json:"kind"`
	End  End     `json:"end,omitempty"` // whose fact it is
	Seq  int64   `json:"seq"`           // per end, from 1
	T    float64 `json:"t_s"`           // that end's own monotonic clock, s since its test began

	// Head carries everything known so far (Prepared, Connected, Start): all of Run but its lists of rows and notices.
	Head     *Run      `json:"head,omitempty"`
	Interval *Interval `json:"interval,omitempty"`
	Host     *Host     `json:"host,omitempty"`
	Notice   *Notice   `json:"notice,omitempty"`
	Probes   *Probes   `json:"probes,omitempty"`
	Finish   *Finish   `json:"finish,omitempty"`
	Err      *Error    `json:"error,omitempty"`

	Milestone  *Milestone  `json:"milestone,omitempty"` // of KindMilestone
	Conclusion *Conclusion `json:"conclusion,omitempty"`
}

// Finish is the end of a test: the merged totals of both ends.
type Finish struct {
	Streams []Stream     `json:"streams"` // complete replacement of Run.Streams
	CPU     CPUs         `json:"cpu"`
	Wire    *Wire        `json:"wire,omitempty"`
	Path    *DataPath    `json:"path,omitempty"`
	Usage   *ProcessCost `json:"process,omitempty"`
	Elapsed float64      `json:"elapsed_s"`
	// Machines replaces Run.Machines when it is not nil.
	Machines *HostTotals `json:"host_totals,omitempty"`

	Zero *int64 `json:"zero_mono_ns,omitempty"` // see Run.Zero
}

// Conclusion carries the fields of Run that follow from all of its others.
type Conclusion struct {
	Summary string           `json:"summary"`          // Run.Summary
	Flags   []string         `json:"flags,omitempty"`  // Run.Flags
	Limits  []DirectionLimit `json:"limits,omitempty"` // of Run.Sums
	Next    *Step            `json:"next,omitempty"`   // Run.Next
	Layers  []LayerRate      `json:"layers,omitempty"` // Run.Layers
}

// DirectionLimit is what a conclusion adds to the Sum of one direction.
type DirectionLimit struct {
	Direction Direction `json:"direction"`             // of the Sum
	Limit     string    `json:"limit,omitempty"`       // Sum.Limit
	Shares    *Shares   `json:"sender_time,omitempty"` // Sum.Shares
	Loss      *UDPLoss  `json:"loss,omitempty"`        // Sum.UDP.Loss, with its bounds and owners
	Grades    []Grade   `json:"grades,omitempty"`      // Sum.Grades
}

// Sink takes the events of a run, one after the other. Event must not block for
// long: it is called by the goroutine that samples.
type Sink interface {
	Event(Event)
}

// SinkFunc makes a Sink of a function.
type SinkFunc func(Event)

// Event implements Sink.
func (f SinkFunc) Event(e Event) { f(e) }

// Tee hands every event to each of the sinks in order. Nil sinks are skipped.
func Tee(sinks ...Sink) Sink {
	return SinkFunc(func(e Event) {
		for _, s := range sinks {
			if s != nil {
				s.Event(e)
			}
		}
	})
}

// Now returns the wall clock in the form Run.Started has.
func Now(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
