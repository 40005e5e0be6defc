// Package jsonstream prints the events of a run as they happen, one JSON object a
// line (docs/schema/run-1.json, "Event").
package jsonstream

import (
	"encoding/json"
	"io"

	"github.com/fullbore-net/fullbore/result"
)

// Renderer implements result.Sink. It is not safe for concurrent use.
type Renderer struct {
	w   io.Writer
	err error
}

// New returns a Renderer that writes to w, each line with one Write.
func New(w io.Writer) *Renderer { return &Renderer{w: w} }

// Event implements result.Sink.
func (r *Renderer) Event(e result.Event) {
	if r.err != nil {
		return
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = r.w.Write(append(line, '\n'))
	}
	r.err = err
}

// Err returns the first error of encoding or writing; nothing is written after one.
func (r *Renderer) Err() error { return r.err }
