// Package jsonstream prints the events of a run as they happen, one JSON object a
// line (docs/schema/run-1.json, "Event").
package jsonstream

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		r.err = fmt.Errorf("encode the event %q: %w", e.Kind, err)
		return
	}
	_, r.err = r.w.Write(line.Bytes())
}

// Err returns the first error of encoding or writing; nothing is written after one.
func (r *Renderer) Err() error { return r.err }
