// Package json prints a Run as one indented JSON document (docs/schema/run-1.json).
package json

import (
	"encoding/json"
	"io"

	"github.com/fullbore-net/fullbore/result"
)

// Write prints run and a newline, with one Write.
func Write(w io.Writer, run *result.Run) error {
	data, err := json.MarshalIndent(run, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}
