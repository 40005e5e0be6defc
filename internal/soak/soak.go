// Package soak is M-SOAK without sockets: the records of a load of hours or days, how they are
// kept and read again, what they add up to, and the play that begins one test after the other,
// notices that the path is out and begins again when it is back.
//
// The record is a file of JSON lines to which one write appends one line, so that whatever kills
// the program leaves a record that can be read up to its last whole line, and gone on with.
//
// Memory is bounded: a second is written when it is over; what stays is a series of at most
// MaxSeries values per direction, histograms, and a row per hour.
package soak

import (
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Version is that of the record's lines.
const Version = 1

// Line is a line of the record: exactly one of its fields is set.
type Line struct {
	Head    *Head    `json:"head,omitempty"`
	Second  *Second  `json:"s,omitempty"`
	Machine *Machine `json:"m,omitempty"`
	Outage  *Outage  `json:"outage,omitempty"`
	Gap     *Gap     `json:"gap,omitempty"`
	Test    *Test    `json:"test,omitempty"`
	Note    *Note    `json:"note,omitempty"`
	Total   *Total   `json:"total,omitempty"`
	End     *End     `json:"end,omitempty"`
}

// Head begins a record: everything that going on with it needs.
type Head struct {
	Version int           `json:"v"`
	ID      string        `json:"id"`
	Tool    result.Tool   `json:"tool"`
	Started time.Time     `json:"started"` // wall clock
	Inputs  []string      `json:"inputs"`
	Plan    plan.Plan     `json:"plan"`           // of every test, but for its length and its rate
	Self    bool          `json:"self,omitempty"` // the peer is a server of this program's own
	Asked   float64       `json:"asked_s"`
	Steps   []Step        `json:"steps"` // at least one
	Judge   Rules         `json:"rules"`
	Segment time.Duration `json:"segment,omitempty"` // longest test; 0 = the peer's kind decides
}

// Step is a part of a stepped load.
type Step struct {
	Share  float64       `json:"share"`            // of the full load
	Length time.Duration `json:"length,omitempty"` // 0 = to the end
}

// Rules are what a soak is judged by.
type Rules struct {
	Reference    float64 `json:"reference_bps,omitempty"` // of the full load; 0 = the median
	Availability float64 `json:"availability"`
	Outage       float64 `json:"outage_s"`      // longest allowed
	Slope        float64 `json:"slope_per_day"` // share of the usual rate
	Growth       float64 `json:"rss_growth"`
}

// DefaultRules are those of M-SOAK.
func DefaultRules() Rules {
	return Rules{Availability: 0.999, Outage: 5, Slope: 0.01, Growth: 0.1}
}

// Second is one second of one direction.
type Second struct {
	Direction result.Direction `json:"d"`
	T         int64            `json:"t"`           // it covers [T, T+1) s since the start
	Cover     float64          `json:"c"`           // how much of it was measured, s
	Bytes     int64            `json:"b"`           // payload
	Level     int              `json:"l,omitempty"` // index of the step
	// Slowest is the least rate of a report within it, bit/s.
	Slowest     float64  `json:"lo"`
	Packets     *int64   `json:"p,omitempty"`
	Lost        *int64   `json:"x,omitempty"`
	Retransmits *int64   `json:"r,omitempty"`
	PDV         *PDVPart `json:"v,omitempty"`
	Basis       string   `json:"by"`
}

// PDVPart sums up N values of delay variation, s.
type PDVPart struct {
	N    int64   `json:"n"`
	Min  float64 `json:"min"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// Machine is this host over the ten seconds that end at T.
type Machine struct {
	T         float64  `json:"t"`
	CPU       *float64 `json:"cpu,omitempty"`  // percent of one core
	Busiest   *float64 `json:"busy,omitempty"` // largest share of a core
	Throttled *float64 `json:"quota,omitempty"`
	Memory    *int64   `json:"rss,omitempty"`
	MHz       *int     `json:"mhz,omitempty"`
	Celsius   *float64 `json:"c,omitempty"`
	Throttles *int64   `json:"thr,omitempty"` // growing
}

// Outage is one direction's.
type Outage struct {
	Direction result.Direction `json:"d"`
	From      float64          `json:"from"`
	To        float64          `json:"to"`   // of the path; so far when Open
	Back      float64          `json:"back"` // when payload came again
	Basis     string           `json:"basis"`
	Why       string           `json:"why,omitempty"`
	Restarted bool             `json:"restarted,omitempty"`
	Open      bool             `json:"open,omitempty"` // a later line with the same From replaces it
}

// Gap is a time that was not measured.
type Gap struct {
	From float64 `json:"from"`
	To   float64 `json:"to"`
	Why  string  `json:"why"`
}

// Test is a test that ended.
type Test struct {
	From      float64 `json:"from"`
	To        float64 `json:"to"`
	Extension bool    `json:"ext"` // the peer is a fullbore
	Restart   bool    `json:"restart,omitempty"`
	Err       string  `json:"err,omitempty"`
}

// Note is a notice with its time; each code once, later ones are counted.
type Note struct {
	T      float64       `json:"t"`
	Notice result.Notice `json:"notice"`
}

// Total is what became known of a direction only when a test ended.
type Total struct {
	Direction result.Direction `json:"d"`
	T         float64          `json:"t"`
	Packets   *int64           `json:"p,omitempty"`
	Lost      *int64           `json:"x,omitempty"`
	PDV       *PDVPart         `json:"v,omitempty"`
}

// End is the end of the record, as far as it goes.
type End struct {
	T   float64       `json:"t"`
	Err *result.Error `json:"error,omitempty"`
}

// The words of Second.Basis.
const (
	ByReceiver     = "receiver"
	ByAcknowledged = "acknowledged"
	BySender       = "sender"
)
