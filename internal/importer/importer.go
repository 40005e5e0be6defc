// Package importer reads documents of other programs, and fullbore's own, into runs: it
// recognises what a file is and hands it to the decoder of that form.
//
// A decoded run says where it comes from (result.Imported). Figures of the file that the model
// has no place for are kept there by name, as they stand; those of a text, which are rounded, are
// kept as amounts that round to every figure shown.
package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/fullbore-net/fullbore/internal/render/iperf3json"
	"github.com/fullbore-net/fullbore/result"
)

// The formats, as result.Imported.Format has them.
const (
	Iperf3JSON    = "iperf3-json"
	Iperf3Stream  = "iperf3-stream"
	Iperf3Text    = "iperf3-text"
	NTTTCPXML     = "ntttcp-xml"
	NTTTCPJSON    = "ntttcp-json"
	NTTTCPText    = "ntttcp-text"
	WindowsXML    = "ntttcp-windows-xml"
	WindowsText   = "ntttcp-windows-text"
	Fullbore      = "fullbore"         // a run or report, --json
	FullboreEvent = "fullbore-stream"  // --json-stream
	FullboreKept  = "fullbore-history" // fullbore export
)

// ErrUnknown means that a file is of no known format, or holds no test.
var ErrUnknown = errors.New("it is no result that fullbore knows (iperf3: text, -J, --json-stream; NTTTCP: text, XML, JSON; fullbore: --json, --json-stream, export)")

// Document is one thing that a file holds.
type Document struct {
	Format string
	Run    *result.Run    // or
	Report *result.Report // of fullbore's own
	// Kept is an entry of a history, as fullbore export writes it; Run or Report are in it.
	Kept json.RawMessage
}

// most is how large a file may be.
const most = 512 << 20

// Decode reads a file. name is kept in the runs. A file may hold several tests.
func Decode(name string, data []byte) ([]Document, error) {
	if len(data) > most {
		return nil, fmt.Errorf("%s: larger than %d MB", name, most>>20)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	docs, err := decode(data)
	if err == nil && len(docs) == 0 {
		err = ErrUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, d := range docs {
		if d.Run != nil && d.Run.Imported != nil && d.Run.Imported.File == "" {
			d.Run.Imported.File = filepath.Base(name)
		}
	}
	return docs, nil
}

func decode(data []byte) ([]Document, error) {
	first := bytes.TrimLeft(data, " \t\r\n")
	switch {
	case bytes.HasPrefix(first, []byte("<")):
		return decodeXML(data)
	case bytes.HasPrefix(first, []byte("{")):
		return decodeJSON(first)
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	// Some runs print words before their document (iperf3 -J -V).
	if at := reDocument.FindStringIndex(text); at != nil && !reIperf3Row.MatchString(text[:at[0]]) {
		return decodeJSON([]byte(text[at[0]:]))
	}
	switch {
	case isNTTTCPText(text):
		return decodeNTTTCPText(text)
	case isWindowsText(text):
		return decodeWindowsText(text)
	case isIperf3Text(text):
		return decodeIperf3Text(text)
	}
	return nil, ErrUnknown
}

// reDocument finds the beginning of a JSON document at the beginning of a line.
var reDocument = regexp.MustCompile(`(?m)^\{`)

// imported marks runs.
func imported(format string, runs ...*result.Run) []Document {
	var out []Document
	for _, r := range runs {
		if r.Imported == nil {
			r.Imported = &result.Imported{}
		}
		r.Imported.Format = format
		out = append(out, Document{Format: format, Run: r})
	}
	return out
}

// decodeJSON tells the documents apart by the names at their top.
func decodeJSON(data []byte) ([]Document, error) {
	var top map[string]json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&top); err != nil {
		return nil, fmt.Errorf("json: %w", err)
	}
	has := func(names ...string) bool {
		for _, n := range names {
			if _, ok := top[n]; !ok {
				return false
			}
		}
		return true
	}
	switch {
	case has("event", "data"):
		return decodeIperf3Stream(data)
	case has("ntttcps"), has("ntttcpr"):
		return decodeNTTTCPJSON(data)
	case has("record"):
		return decodeKept(data)
	case has("kind", "seq"):
		return decodeEvents(data)
	case has("schema", "runs"):
		return decodeOurs(data)
	case has("schema", "test"):
		return decodeOurs(data)
	case has("start"):
		runs, err := iperf3json.DecodeAll(data)
		if err != nil {
			return nil, err
		}
		return imported(Iperf3JSON, runs...), nil
	}
	return nil, ErrUnknown
}

// decodeIperf3Stream reads the events of one test after the other. A whole document that follows
// (--json-stream-full-output) tells the same test again and is left out.
func decodeIperf3Stream(data []byte) ([]Document, error) {
	var out []Document
	for len(bytes.TrimSpace(data)) > 0 {
		if rest := bytes.TrimLeft(data, " \t\r\n"); !bytes.HasPrefix(rest, []byte(`{"event"`)) && len(out) > 0 {
			dec := json.NewDecoder(bytes.NewReader(rest))
			var skip json.RawMessage
			if err := dec.Decode(&skip); err != nil {
				return nil, fmt.Errorf("json: %w", err)
			}
			data = rest[dec.InputOffset():]
			continue
		}
		run, rest, err := iperf3json.DecodeStream(data)
		if err != nil {
			return nil, err
		}
		out = append(out, imported(Iperf3Stream, run)...)
		data = rest
	}
	return out, nil
}

// decodeOurs reads runs and reports of --json, one after the other.
func decodeOurs(data []byte) ([]Document, error) {
	var out []Document
	dec := json.NewDecoder(bytes.NewReader(data))
	for dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, fmt.Errorf("json: %w", err)
		}
		d, err := oneOfOurs(raw)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

func oneOfOurs(raw json.RawMessage) (Document, error) {
	var head struct {
		Schema int             `json:"schema"`
		Runs   json.RawMessage `json:"runs"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return Document{}, fmt.Errorf("json: %w", err)
	}
	if head.Schema != result.Schema {
		return Document{}, fmt.Errorf("schema %d: this release knows %d", head.Schema, result.Schema)
	}
	d := Document{Format: Fullbore}
	var err error
	if head.Runs != nil {
		d.Report = &result.Report{}
		err = json.Unmarshal(raw, d.Report)
	} else {
		d.Run = &result.Run{}
		err = json.Unmarshal(raw, d.Run)
	}
	if err != nil {
		return Document{}, fmt.Errorf("json: %w", err)
	}
	return d, nil
}

// decodeKept reads what fullbore export writes: an entry a line.
func decodeKept(data []byte) ([]Document, error) {
	var out []Document
	dec := json.NewDecoder(bytes.NewReader(data))
	for dec.More() {
		var line struct {
			Record   json.RawMessage `json:"record"`
			Document json.RawMessage `json:"document"`
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, fmt.Errorf("json: %w", err)
		}
		if err := json.Unmarshal(raw, &line); err != nil {
			return nil, fmt.Errorf("json: %w", err)
		}
		if line.Record == nil || line.Document == nil {
			return nil, fmt.Errorf("line %d: no record of a history", len(out)+1)
		}
		d, err := oneOfOurs(line.Document)
		if err != nil {
			return nil, err
		}
		d.Format, d.Kept = FullboreKept, raw
		out = append(out, d)
	}
	return out, nil
}

// decodeEvents folds the events of --json-stream: each test that begins is a run; a report at the
// end holds them all.
func decodeEvents(data []byte) ([]Document, error) {
	var out []Document
	var f *result.Folder
	flush := func() {
		if f != nil {
			if run := f.Run(); run != nil && run.Schema != 0 {
				out = append(out, Document{Format: FullboreEvent, Run: run})
			}
		}
		f = nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	for dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, fmt.Errorf("json: %w", err)
		}
		var e result.Event
		var rep struct {
			Kind   string          `json:"kind"`
			Report json.RawMessage `json:"report"`
		}
		if err := json.Unmarshal(raw, &rep); err != nil {
			return nil, fmt.Errorf("json: %w", err)
		}
		if rep.Kind == "report" {
			d, err := oneOfOurs(rep.Report)
			if err != nil {
				return nil, err
			}
			d.Format = FullboreEvent
			return []Document{d}, nil
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, fmt.Errorf("json: %w", err)
		}
		if e.Kind == result.KindConnected {
			flush()
		}
		if f == nil {
			f = &result.Folder{}
		}
		f.Event(e)
	}
	flush()
	return out, nil
}
