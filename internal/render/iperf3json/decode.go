package iperf3json

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/render/cjson"
	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/result"
)

// ErrNoDocument means that the input holds no document of iperf3.
var ErrNoDocument = errors.New("no iperf3 document found")

// Decode reads one document as iperf3 (any release since 3.1) prints it with -J. The
// words that some runs print before it (-V, -d) are skipped.
//
// A document knows less than the run did: of the other end only totals, of a UDP
// receiver with several streams only sums. What it does not say stays nil. The last
// interval that iperf3 prints a second time after losing its peer is dropped. An error
// means that the input is no such document; the run is then nil.
func Decode(data []byte) (*result.Run, error) {
	runs, err := DecodeAll(data)
	if err != nil {
		return nil, err
	}
	if len(runs) > 1 {
		return nil, fmt.Errorf("iperf3 json: %d documents where one was expected", len(runs))
	}
	return runs[0], nil
}

// DecodeAll reads documents that stand one after the other, as a server with -J writes
// them. Lines between them that do not begin a document are skipped.
func DecodeAll(data []byte) ([]*result.Run, error) {
	var runs []*result.Run
	for {
		data = skipToDocument(data)
		if len(data) == 0 {
			break
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		v, err := cjson.Next(dec)
		if err != nil {
			return nil, fmt.Errorf("iperf3 json: document %d: %w", len(runs)+1, err)
		}
		data = data[dec.InputOffset():]
		run, err := decodeDocument(v)
		if err != nil {
			return nil, fmt.Errorf("iperf3 json: document %d: %w", len(runs)+1, err)
		}
		runs = append(runs, run)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("iperf3 json: %w", ErrNoDocument)
	}
	return runs, nil
}

// skipToDocument cuts whole lines from data until one begins with a brace.
func skipToDocument(data []byte) []byte {
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		if bytes.HasPrefix(bytes.TrimLeft(line, " \t\r"), []byte("{")) {
			return data
		}
		data = rest
	}
	return nil
}

// DecodeStream reads the events of one test as iperf3 --json-stream prints them. What
// follows the "end" event (the document of --json-stream-full-output, the next test)
// is left in rest.
func DecodeStream(data []byte) (run *result.Run, rest []byte, err error) {
	start, intervals, end := &cjson.Object{}, cjson.Array{}, &cjson.Object{}
	doc := &cjson.Object{}
	seen := false
	for n := 1; len(data) > 0; n++ {
		line, after, _ := bytes.Cut(data, []byte("\n"))
		data = after
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		v, err := cjson.Parse(line)
		if err != nil {
			return nil, nil, fmt.Errorf("iperf3 json: line %d: %w", n, err)
		}
		o, _ := v.(*cjson.Object)
		name, ok := o.Get("event").(string)
		if !ok {
			return nil, nil, fmt.Errorf("iperf3 json: line %d: no event", n)
		}
		seen = true
		switch value := o.Get("data"); name {
		case "start":
			start, _ = value.(*cjson.Object)
		case "interval":
			intervals = append(intervals, value)
		case "end":
			end, _ = value.(*cjson.Object)
			rest = data
			data = nil
		default:
			doc.Add(name, value)
		}
	}
	if !seen {
		return nil, nil, fmt.Errorf("iperf3 json: %w", ErrNoDocument)
	}
	doc.Add("start", start).Add("intervals", intervals).Add("end", end)
	run, err = decodeDocument(doc)
	if err != nil {
		return nil, nil, fmt.Errorf("iperf3 json: %w", err)
	}
	return run, rest, nil
}

// decoder turns one document into a run.
type decoder struct {
	doc, start, test, end *cjson.Object
	run                   *result.Run
	// ids and directions by socket number
	streams map[int]*result.Stream
	err     error // the first value of a wrong kind
}

func decodeDocument(v any) (*result.Run, error) {
	doc, ok := v.(*cjson.Object)
	if !ok {
		return nil, ErrNoDocument
	}
	d := &decoder{doc: doc, run: &result.Run{Schema: result.Schema, Protocol: "iperf3"}, streams: map[int]*result.Stream{}}
	d.start = d.object(doc, "start")
	if d.start == nil {
		return nil, ErrNoDocument
	}
	d.test = d.object(d.start, "test_start")
	d.end = d.object(doc, "end")
	d.fault()
	d.head()
	d.setup()
	d.connections()
	d.rows()
	d.totals()
	d.output()
	if d.err != nil {
		return nil, d.err
	}
	return result.Fold(result.Unfold(d.run)), nil
}

// fault reads "error" and, from it and the addresses, which end wrote the document.
func (d *decoder) fault() {
	text := d.text(d.doc, "error")
	switch {
	case d.start.Get("accepted_connection") != nil:
		d.run.End = result.Server
	case d.start.Get("connecting_to") != nil:
		d.run.End = result.Client
	case strings.HasPrefix(text, "error - "), strings.HasPrefix(text, "interrupt - "+iperf3view.ServerTerminated):
		d.run.End = result.Server // a client says its errors bare
	default:
		d.run.End = result.Client
	}
	if text == "" {
		return
	}
	e := &result.Error{Code: "iperf3", Text: text}
	if rest, ok := strings.CutPrefix(text, "interrupt - "); ok {
		e.Code, e.Interrupted = "interrupted", true
		e.Text, e.Signal, _ = strings.Cut(rest, " by signal ")
	} else {
		e.Text = strings.TrimPrefix(text, "error - ")
		switch e.Text {
		case iperf3view.ClientTerminated, iperf3view.ServerTerminated:
			e.Code, e.Remote = "peer-stopped", true
		case iperf3view.ClientClosed, "control socket has closed unexpectedly":
			e.Code, e.Remote = "peer-closed", true
		}
	}
	d.run.Err = e
}

// head reads who wrote the document, and when.
func (d *decoder) head() {
	r := d.run
	version := d.text(d.start, "version")
	_, number, _ := strings.Cut(version, " ")
	r.Tool = result.Tool{Name: "iperf3", Version: number}
	info := d.text(d.start, "system_info")
	host := &result.Host{Tool: &r.Tool, SystemInfo: info}
	if words := strings.Fields(info); len(words) >= 3 {
		host.OS, host.Name, host.Release = strings.ToLower(words[0]), words[1], words[2]
	}
	r.Hosts.Set(r.End, host)
	if t := d.object(d.start, "timestamp"); t != nil {
		const year10000 = 253402300800 // s; later times have no JSON form
		if s := d.integer(t, "timesecs"); s > 0 && s < year10000 {
			r.Started = time.Unix(s, 0).UTC()
		}
		if ms := d.integer(t, "timemillisecs"); ms > 0 && ms < 1000*year10000 {
			r.Started = time.UnixMilli(ms).UTC()
		}
	}
	w := &result.Wire{
		Version: version, Cookie: d.text(d.start, "cookie"),
		ControlMSS:   int(d.integer(d.start, "tcp_mss_default")),
		SndbufActual: int(d.integer(d.start, "sndbuf_actual")),
		RcvbufActual: int(d.integer(d.start, "rcvbuf_actual")),
		TestStarted:  d.test != nil,
	}
	w.ConnectingTo = d.addr("connecting_to")
	w.AcceptedFrom = d.addr("accepted_connection")
	r.Wire = w
}

func (d *decoder) addr(key string) *result.Addr {
	o := d.object(d.start, key)
	if o == nil {
		return nil
	}
	return &result.Addr{Host: d.text(o, "host"), Port: int(d.integer(o, "port"))}
}

// setup reads what was agreed.
func (d *decoder) setup() {
	t := &d.run.Test
	t.Transport = strings.ToLower(d.text(d.test, "protocol"))
	if t.Transport == "" {
		t.Transport = "tcp"
	}
	t.Direction = "up"
	switch {
	case d.flag(d.test, "bidir"), d.end.Get("sum_received_bidir_reverse") != nil, d.firstInterval().Get("sum_bidir_reverse") != nil:
		t.Direction = "both"
	case d.flag(d.test, "reverse"):
		t.Direction = "down"
	}
	t.Streams = int(d.integer(d.test, "num_streams"))
	t.BlockSize = int(d.integer(d.test, "blksize"))
	t.Omit = d.number(d.test, "omit")
	t.Duration = d.number(d.test, "duration")
	t.Bytes = d.integer(d.test, "bytes")
	t.Blocks = d.integer(d.test, "blocks")
	t.TOS = int(d.integer(d.test, "tos"))
	t.Bitrate = d.integer(d.start, "target_bitrate")
	t.FQRate = d.integer(d.start, "fq_rate")
	t.Interval = d.number(d.test, "interval")
	t.GSO, t.GRO = d.flag(d.test, "gso"), d.flag(d.test, "gro")
	t.MSS = int(d.integer(d.start, "tcp_mss"))
	t.Window = int(d.integer(d.start, "sock_bufsize"))
	t.Title = d.text(d.doc, "title")
	t.ExtraData = d.text(d.doc, "extra_data")
	if to := d.run.Wire.ConnectingTo; to != nil {
		t.Target, t.Port = to.Host, to.Port
	}
}

func (d *decoder) firstInterval() *cjson.Object {
	rows := d.list(d.doc, "intervals")
	if len(rows) == 0 {
		return nil
	}
	o, _ := rows[0].(*cjson.Object)
	return o
}

// output reads what the server printed.
func (d *decoder) output() {
	if s, ok := d.doc.Get("server_output_text").(string); ok {
		d.run.Wire.ServerText = &s
	}
	if v := d.doc.Get("server_output_json"); v != nil {
		d.run.Wire.ServerJSON = cjson.AppendCompact(nil, v)
	}
}

// The readers below return zero for what is absent and note the first value of a wrong
// kind. A nil object holds nothing.

func (d *decoder) wrong(key string, v any) {
	if v != nil && d.err == nil {
		d.err = fmt.Errorf("%q has a value of the wrong kind (%T)", key, v)
	}
}

func (d *decoder) object(o *cjson.Object, key string) *cjson.Object {
	v := o.Get(key)
	child, ok := v.(*cjson.Object)
	if !ok {
		d.wrong(key, v)
	}
	return child
}

func (d *decoder) list(o *cjson.Object, key string) cjson.Array {
	v := o.Get(key)
	a, ok := v.(cjson.Array)
	if !ok {
		d.wrong(key, v)
	}
	return a
}

func (d *decoder) text(o *cjson.Object, key string) string {
	v := o.Get(key)
	s, ok := v.(string)
	if !ok {
		d.wrong(key, v)
	}
	return s
}

func (d *decoder) number(o *cjson.Object, key string) float64 {
	v := o.Get(key)
	f, ok := v.(float64)
	if !ok {
		d.wrong(key, v)
	}
	return f
}

// integer cuts fractions and keeps within int64.
func (d *decoder) integer(o *cjson.Object, key string) int64 {
	f := d.number(o, key)
	switch {
	case f >= 1<<63:
		return 1<<63 - 1
	case f < -1<<63:
		return -1 << 63
	}
	return int64(f)
}

// optional is integer, nil when the key is absent.
func (d *decoder) optional(o *cjson.Object, key string) *int64 {
	if o.Get(key) == nil {
		return nil
	}
	v := d.integer(o, key)
	return &v
}

// flag reads true, or a number that is not 0.
func (d *decoder) flag(o *cjson.Object, key string) bool {
	switch v := o.Get(key).(type) {
	case bool:
		return v
	case float64:
		return v != 0
	default:
		d.wrong(key, v)
		return false
	}
}
