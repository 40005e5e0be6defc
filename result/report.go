package result

import "time"

// Report is the document of a command that makes several runs: both directions of a
// test, a sweep, a diagnosis, an acceptance. What it says follows from its runs.
type Report struct {
	Schema   int       `json:"schema"`            // version of the JSON form
	Kind     string    `json:"kind"`              // "test"; later "sweep", "diagnose", "accept"
	Tool     Tool      `json:"tool"`              // the program that made the document
	Started  time.Time `json:"started"`           // wall clock of the first run, a label only; UTC
	Inputs   []string  `json:"inputs"`            // the user's words: the command's arguments
	Runs     []*Run    `json:"runs"`              // in the order in which they were made
	Curve    []Point   `json:"curve,omitempty"`   // a sweep's figures, by X
	Verdicts []Verdict `json:"verdicts"`          // ranked; empty where the command judges nothing
	Items    []Item    `json:"items"`             // what was checked, passed or not
	Notices  []Notice  `json:"notices"`           // about the whole; those about one run are in it
	Summary  string    `json:"summary,omitempty"` // one sentence
	Err      *Error    `json:"error,omitempty"`   // set when it broke off; the runs so far are kept
}

// Point is one figure of a curve.
type Point struct {
	X     float64 `json:"x"`               // what was varied, in the unit that Label says
	Y     float64 `json:"y"`               // payload bit/s
	Label string  `json:"label,omitempty"` // what X is, e.g. "streams"
}

// Item is one thing that was checked.
type Item struct {
	ID      string   `json:"id"`      // stable word, e.g. "expect"
	Result  string   `json:"result"`  // "pass", "fail", "inconclusive"
	Reasons []string `json:"reasons"` // one sentence each
}

// The results of an Item.
const (
	Pass         = "pass"
	Fail         = "fail"
	Inconclusive = "inconclusive"
)
