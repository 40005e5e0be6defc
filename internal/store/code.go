package store

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	"github.com/fullbore-net/fullbore/result"
)

// The forms of a document.
const (
	FormRun    = "run"
	FormReport = "report"
)

// mostPlain is how large a document may be when it is unpacked, so that a damaged one cannot
// take all memory. A day's soak by the second is a few hundred MB.
const mostPlain = 1 << 30

// Encode returns the form and the packed document of e.
func Encode(e *Entry) (form string, data []byte, err error) {
	form = FormRun
	if e.Report != nil {
		form = FormReport
	}
	plain, err := json.Marshal(e.Document())
	if err != nil {
		return "", nil, fmt.Errorf("store: write document: %w", err)
	}
	data, err = Pack(plain)
	return form, data, err
}

// Decode is the inverse of Encode: it fills e's document.
func Decode(e *Entry, form string, data []byte) error {
	plain, err := Unpack(data)
	if err != nil {
		return fmt.Errorf("store: document of %s: %w", e.Record.ID, err)
	}
	switch form {
	case FormRun:
		e.Run = &result.Run{}
		err = json.Unmarshal(plain, e.Run)
	case FormReport:
		e.Report = &result.Report{}
		err = json.Unmarshal(plain, e.Report)
	default:
		err = fmt.Errorf("unknown form %q", form)
	}
	if err != nil {
		return fmt.Errorf("store: document of %s: %w", e.Record.ID, err)
	}
	return nil
}

// Pack compresses.
func Pack(plain []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.DefaultCompression)
	if err == nil {
		_, err = w.Write(plain)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("store: compress: %w", err)
	}
	return b.Bytes(), nil
}

// Unpack is the inverse of Pack.
func Unpack(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(r, mostPlain+1))
	if err == nil && len(plain) > mostPlain {
		err = fmt.Errorf("larger than %d bytes", mostPlain)
	}
	return plain, err
}
