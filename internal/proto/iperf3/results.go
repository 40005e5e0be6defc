package iperf3

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/proto/probe"
	"github.com/fullbore-net/fullbore/result"
)

// Results is what each end tells the other after the test (spec §10).
type Results struct {
	CPU           result.CPU // percent of one core; Congestion is congestion_used
	HasRetransmit int        // sender_has_retransmits: −1 receives only, 1 sends and can count, 0 sends and cannot
	ServerText    *string
	ServerJSON    json.RawMessage
	Streams       []StreamResult
	Ext           *ResultsExt // key "fullbore"
}

// StreamResult is one stream's entry.
type StreamResult struct {
	ID             int
	Bytes          int64
	Retransmits    int64 // −1 = not known
	Jitter         float64
	Errors         int64 // lost datagrams, the omitted ones included
	OmittedErrors  int64
	Packets        int64
	OmittedPackets int64
	Start, End     float64
	HasOmitted     bool // the omitted_* pair was there (3.14 and later)
	HasTimes       bool // start_time and end_time were there (3.2 and later)
}

// ResultsExt is what a fullbore adds for another.
type ResultsExt struct {
	Streams []StreamExt         `json:"streams,omitempty"`
	Path    *result.DataPath    `json:"path,omitempty"`
	Usage   *result.ProcessCost `json:"process,omitempty"`
	Dropped int64               `json:"events_dropped,omitempty"` // frames that were not sent for lack of room
	Probes  *probe.Counts       `json:"probes,omitempty"`         // what the server saw of the test's probes
	Swap    *ext.Swapped        `json:"swap,omitempty"`           // how the test went that the server played as the client
}

// StreamExt is one end's kernel view of a stream.
type StreamExt struct {
	ID         int                `json:"id"`
	TCP        *result.TCPSummary `json:"tcp,omitempty"`
	UDP        *result.UDPStream  `json:"udp,omitempty"` // its own half: Sent or Received
	OutOfOrder *int64             `json:"out_of_order,omitempty"`
}

// Encode writes r in the key order of 3.21: all keys, pairs complete, −1 as −1.
func (r Results) Encode() []byte {
	w := newWriter()
	w.num("cpu_util_total", r.CPU.Total)
	w.num("cpu_util_user", r.CPU.User)
	w.num("cpu_util_system", r.CPU.System)
	w.int("sender_has_retransmits", int64(r.HasRetransmit))
	w.strSet("congestion_used", r.CPU.Congestion)
	if r.ServerJSON != nil {
		w.raw("server_output_json", r.ServerJSON)
	}
	if r.ServerText != nil {
		w.str("server_output_text", *r.ServerText)
	}
	w.key("streams")
	w.b = append(w.b, '[')
	for i, s := range r.Streams {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.b = s.appendTo(w.b)
	}
	w.b = append(w.b, ']')
	if r.Ext != nil {
		doc, err := json.Marshal(r.Ext)
		if err == nil { // an infinite float in a TCP summary must not cost the exchange
			w.raw("fullbore", doc)
		}
	}
	return w.done()
}

func (s StreamResult) appendTo(b []byte) []byte {
	w := writer{b: append(b, '{'), first: true}
	w.int("id", int64(s.ID))
	w.int("bytes", s.Bytes)
	w.int("retransmits", s.Retransmits)
	w.num("jitter", s.Jitter)
	w.int("errors", s.Errors)
	w.int("omitted_errors", s.OmittedErrors)
	w.int("packets", s.Packets)
	w.int("omitted_packets", s.OmittedPackets)
	w.int("start_time", 0)
	w.num("end_time", s.End)
	return w.done()
}

// missingError names a key that results must have.
type missingError struct{ key, got string }

func (e *missingError) Error() string {
	return fmt.Sprintf("results: %s is %s instead of what it must be", e.key, e.got)
}

// DecodeResults reads a results document of any release and of either end; what is
// required is what iperf3 requires (spec §10.3). Entries with unknown ids are the
// caller's to refuse.
func DecodeResults(doc []byte) (Results, error) {
	var r Results
	obj, err := decodeObject(doc)
	if err != nil {
		if errors.Is(err, errNotObject) {
			return r, &missingError{"the document", "no object"}
		}
		return r, fmt.Errorf("results: %w", err)
	}
	for _, f := range []struct {
		key string
		to  *float64
	}{{"cpu_util_total", &r.CPU.Total}, {"cpu_util_user", &r.CPU.User}, {"cpu_util_system", &r.CPU.System}} {
		v, ok := obj.float(f.key)
		if !ok {
			return r, &missingError{f.key, obj.kind(f.key).String()}
		}
		*f.to = v
	}
	has, ok := obj.int64("sender_has_retransmits")
	if !ok {
		return r, &missingError{"sender_has_retransmits", obj.kind("sender_has_retransmits").String()}
	}
	r.HasRetransmit = int(max(-1, min(1, has)))
	r.CPU.Congestion, _ = obj.string("congestion_used")
	if s, ok := obj.string("server_output_text"); ok {
		r.ServerText = &s
	}
	if k := obj.kind("server_output_json"); k == kindObject {
		r.ServerJSON = obj["server_output_json"]
	}
	if raw := obj["fullbore"]; kindOf(raw) == kindObject {
		var x ResultsExt
		if json.Unmarshal(raw, &x) == nil {
			r.Ext = &x
		}
	}
	r.Streams, err = decodeStreams(obj)
	return r, err
}

func decodeStreams(obj object) ([]StreamResult, error) {
	raw := obj["streams"]
	if kindOf(raw) != kindArray {
		return nil, &missingError{"streams", obj.kind("streams").String()}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil { // the bracket
		return nil, fmt.Errorf("results: streams: %w", err)
	}
	var out []StreamResult
	var item json.RawMessage // one for all: a test of thousands of streams must not cost their number in garbage
	entry := object{}
	for dec.More() {
		if len(out) == maxEntries {
			return nil, errors.New("results: streams: too many entries")
		}
		if err := dec.Decode(&item); err != nil {
			return nil, fmt.Errorf("results: streams: %w", err)
		}
		clear(entry)
		if !scanNumbers(item, entry) {
			var err error
			if entry, err = decodeObject(item); err != nil {
				return nil, fmt.Errorf("results: stream entry %d: %w", len(out)+1, err)
			}
		}
		s, err := decodeStream(entry)
		if err != nil {
			return nil, fmt.Errorf("results: stream entry %d: %w", len(out)+1, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// maxEntries is more streams than any test has; an entry beyond is a lie that costs memory.
const maxEntries = 2 * plan.MaxStreamsExt

// streamKeys are the keys of an entry, so that a map of them costs no copies.
var streamKeys = map[string]string{
	"id": "id", "bytes": "bytes", "retransmits": "retransmits", "jitter": "jitter", "errors": "errors",
	"omitted_errors": "omitted_errors", "packets": "packets", "omitted_packets": "omitted_packets",
	"start_time": "start_time", "end_time": "end_time",
}

// scanNumbers reads into obj an object that has nothing but numbers, as an entry of
// every known release is, and nothing unusual in its keys. It reports false for any
// other, which decodeObject must read; obj is then of no use. The values are parts of
// data.
func scanNumbers(data []byte, obj object) bool {
	rest := bytes.TrimSpace(data)
	if len(rest) < 2 || rest[0] != '{' || rest[len(rest)-1] != '}' {
		return false
	}
	rest = rest[1 : len(rest)-1]
	for more := true; more; {
		var pair []byte
		pair, rest, more = bytes.Cut(rest, []byte{','})
		name, value, ok := bytes.Cut(pair, []byte{':'})
		name, value = bytes.TrimSpace(name), bytes.TrimSpace(value)
		if !ok || len(name) < 2 || name[0] != '"' || name[len(name)-1] != '"' {
			return false
		}
		key, known := streamKeys[string(name[1:len(name)-1])]
		if !known || len(value) == 0 || kindOf(value) != kindNumber {
			return false
		}
		if _, twice := obj[key]; !twice {
			obj[key] = value
		}
	}
	return true
}

func decodeStream(obj object) (StreamResult, error) {
	var s StreamResult
	var id int64
	for _, f := range []struct {
		key string
		to  *int64
	}{{"id", &id}, {"bytes", &s.Bytes}, {"retransmits", &s.Retransmits}, {"errors", &s.Errors}, {"packets", &s.Packets}} {
		v, ok := obj.int64(f.key)
		if !ok {
			return s, &missingError{f.key, obj.kind(f.key).String()}
		}
		*f.to = v
	}
	s.ID = int(min(max(id, -1), 1<<30))
	var ok bool
	if s.Jitter, ok = obj.float("jitter"); !ok {
		return s, &missingError{"jitter", obj.kind("jitter").String()}
	}
	var okErrors, okPackets bool
	s.OmittedErrors, okErrors = obj.int64("omitted_errors")
	s.OmittedPackets, okPackets = obj.int64("omitted_packets")
	if okErrors != okPackets {
		return s, &missingError{"the pair omitted_errors, omitted_packets", "half there"}
	}
	s.HasOmitted = okErrors
	start, okStart := obj.float("start_time")
	end, okEnd := obj.float("end_time")
	s.Start, s.End, s.HasTimes = start, end, okStart && okEnd
	return s, nil
}
