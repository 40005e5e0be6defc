// Package json prints a Run or a Report as one indented JSON document
// (docs/schema/run-1.json).
package json

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/fullbore-net/fullbore/result"
)

// Write prints run and a newline, with one Write. Text that is not UTF-8 becomes
// U+FFFD; <, > and & stay as they are. Nothing is written when run cannot be encoded.
func Write(w io.Writer, run *result.Run) error { return write(w, "run", run) }

// WriteReport is Write for the document of several runs.
func WriteReport(w io.Writer, rep *result.Report) error { return write(w, "report", rep) }

func write(w io.Writer, what string, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode the %s: %w", what, err)
	}
	_, err := w.Write(b.Bytes())
	return err
}
