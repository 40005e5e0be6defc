// Package store is the history: every run that was kept, with what a list needs to know of it
// and the whole document.
//
// Store is the interface, implemented by store/sqlite and held to its promises by
// store/storetest. Record, Describe and the document's coding are the same for each.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// Errors that callers branch on.
var (
	// ErrNotFound means that there is no such run.
	ErrNotFound = errors.New("no such run")
	// ErrAmbiguous means that a prefix fits several runs.
	ErrAmbiguous = errors.New("several runs begin like this")
	// ErrNewer means that a newer release of this program wrote the store.
	ErrNewer = errors.New("the history was written by a newer release of fullbore")
	// ErrUnwritable means that the store's place takes no writes; it may still be read.
	ErrUnwritable = errors.New("the history cannot be written")
	// ErrExists means that a run of that ID is there already.
	ErrExists = errors.New("this run is there already")
)

// Store keeps runs. Its methods may be called by several goroutines, and several processes
// may have the same store open. What a method has returned without error survives the
// death of the process.
type Store interface {
	// Add keeps one entry, whole or not at all; ErrExists when its ID is there.
	Add(ctx context.Context, e *Entry) error
	// List returns the records that fit f, oldest first.
	List(ctx context.Context, f Filter) ([]Record, error)
	// Find returns the whole ID for an ID, the beginning of one (also of one of the runs of a
	// report; at least four letters), "last", or "last~N" for the N-th before it.
	Find(ctx context.Context, word string) (string, error)
	// Get returns the entry with that whole ID.
	Get(ctx context.Context, id string) (*Entry, error)
	// Note replaces the remark on a run.
	Note(ctx context.Context, id, text string) error
	// Tag adds and removes words.
	Tag(ctx context.Context, id string, add, remove []string) error
	// Prune removes runs; see Bounds.
	Prune(ctx context.Context, b Bounds) (Pruned, error)
	// Size tells how many runs there are and how many bytes they take.
	Size(ctx context.Context) (Size, error)
	Close() error
}

// Record is what a list knows of a kept document.
type Record struct {
	ID      string    `json:"id"`      // ULID of the run or report
	Started time.Time `json:"started"` // UTC, ms
	Kind    string    `json:"kind"`    // command that made it: "test", "delay", "diagnose", …
	Host    string    `json:"host"`    // the other end as the user named it
	Label   string    `json:"label,omitempty"`
	Note    string    `json:"note,omitempty"`
	Tags    []string  `json:"tags,omitempty"` // sorted

	Protocol  string `json:"protocol"`  // "iperf3", "ntttcp"
	Transport string `json:"transport"` // "tcp", "udp"
	Direction string `json:"direction"` // "up", "down", "both", or "up+down" for one after the other
	Streams   int    `json:"streams"`   // per direction; the most of several runs

	// Figures are what the document says in short; the first is the one that a history draws.
	Figures []result.Value `json:"figures"`
	Verdict string         `json:"verdict,omitempty"` // code of the first
	Outcome string         `json:"outcome"`           // "done", "pass", "fail", "inconclusive", or the code of the error
	Summary string         `json:"summary,omitempty"`

	Settings string   `json:"settings"`        // hash; package alike
	Facts    string   `json:"facts"`           // hash; package alike
	Hops     string   `json:"hops,omitempty"`  // addresses, nearest first, between blanks
	Source   string   `json:"source"`          // "fullbore", or the format that it was imported from
	Tool     string   `json:"tool,omitempty"`  // program and release that measured
	Bytes    int64    `json:"bytes,omitempty"` // that it takes in the store
	Runs     []string `json:"runs,omitempty"`  // IDs of the report's runs
}

// Headline is the first figure, nil when there is none.
func (r *Record) Headline() *result.Value {
	if len(r.Figures) == 0 {
		return nil
	}
	return &r.Figures[0]
}

// Entry is a record with its document: a run or a report, never both.
type Entry struct {
	Record Record
	Run    *result.Run
	Report *result.Report
	// Original is the file that it was imported from, byte for byte; nil = it was not imported.
	Original []byte
}

// Document is the run or report.
func (e *Entry) Document() any {
	if e.Report != nil {
		return e.Report
	}
	return e.Run
}

// AllRuns are the runs of the document.
func (e *Entry) AllRuns() []*result.Run {
	switch {
	case e.Report != nil:
		return e.Report.Runs
	case e.Run != nil:
		return []*result.Run{e.Run}
	}
	return nil
}

// Filter chooses records. A zero field fits all.
type Filter struct {
	Host, Label, Kind string
	Tags              []string // all of them
	Settings          string   // hash
	Since, Until      time.Time
	Limit             int // the newest so many
}

// Bounds say what Prune removes. Runs with the tag Keep are never removed, and do not count.
type Bounds struct {
	Before  time.Time // older ones go; zero = no such bound
	Keep    int       // the newest so many stay; 0 = no such bound
	MaxSize int64     // the oldest go until documents take no more bytes; 0 = no such bound
	DryRun  bool      // only count
}

// KeepTag protects a run from Prune and from the automatic bound.
const KeepTag = "keep"

// Pruned is what Prune removed.
type Pruned struct {
	Runs  int
	Bytes int64
}

// Size is how much is kept.
type Size struct {
	Runs      int   // records
	Bytes     int64 // of the records and documents
	Protected int64 // of them with the tag Keep
	FileBytes int64 // of the store's files
}

// DefaultMax is the bound that is kept to by itself: when the documents take more, the oldest
// go until they take nine tenths of it.
const DefaultMax = 256 << 20
