// Package iperf3json prints runs as iperf3's -J and --json-stream do, byte for byte,
// and reads such documents back into runs.
//
// Document and Stream print; Decode, DecodeAll and DecodeStream read. The layout is
// cJSON's, the order and the arithmetic are iperf3's (package iperf3view), for the
// releases 3.21 and 3.12. Two things differ on purpose: no name occurs twice in an
// object, and text is always valid UTF-8.
package iperf3json

import (
	"encoding/json"
	"strings"

	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/result"
)

// timeFormat is RFC 1123's form with the zone that most platforms print.
const timeFormat = "Mon, 02 Jan 2006 15:04:05 GMT"

// Options choose the layout. The zero value is release 3.21.
type Options struct {
	Release iperf3view.Release
	// End is the end that prints, for runs that broke off before they could say.
	End result.End
	// SystemInfo is uname's line of this host, for runs that do not have it.
	SystemInfo string
	// ErrorText is the text of "error"; nil takes the run's own words. The protocol's
	// table knows the wording of each release.
	ErrorText func(e *result.Error, end result.End, release string) string
	// Full makes a Stream end with the whole document (--json-stream-full-output).
	Full bool
}

// fill puts into r what a run that broke off early lacks.
func (o Options) fill(r *result.Run) *result.Run {
	if r.End != "" && (o.SystemInfo == "" || iperf3view.SystemInfo(r) != "") {
		return r
	}
	c := *r
	if c.End == "" {
		c.End = o.End
	}
	if c.End == "" {
		c.End = result.Client
	}
	if iperf3view.SystemInfo(&c) == "" {
		h := result.Host{}
		if known := c.Hosts.Of(c.End); known != nil {
			h = *known
		}
		h.SystemInfo = o.SystemInfo
		c.Hosts.Set(c.End, &h)
	}
	return &c
}

func (o Options) errorText(r *result.Run) string {
	if o.ErrorText != nil {
		return o.ErrorText(r.Err, r.End, o.Release.String())
	}
	return iperf3view.ErrorText(r.Err, r.End, o.Release)
}

// Document prints r as iperf3 -J does after a test, with the closing newline.
func Document(r *result.Run, o Options) []byte {
	return append(pretty(nil, document(o.fill(r), o)), '\n')
}

func document(r *result.Run, o Options) *object {
	rel := o.Release
	rows := array{}
	for i := range r.Rows {
		if iperf3view.Visible(r, &r.Rows[i]) {
			rows = append(rows, interval(r, &r.Rows[i], rel))
		}
	}
	doc := (&object{}).add("start", start(r, rel)).add("intervals", rows).add("end", end(r, rel))
	if r.Err != nil {
		doc.add("error", o.errorText(r))
	}
	if r.Test.Title != "" {
		doc.add("title", r.Test.Title)
	}
	if r.Test.ExtraData != "" {
		doc.add("extra_data", r.Test.ExtraData)
	}
	if key, v := serverOutput(r); key != "" {
		doc.add(key, v)
	}
	return doc
}

// serverOutput is what --get-server-output brought, "" when nothing did.
func serverOutput(r *result.Run) (key string, value any) {
	if r.Wire == nil {
		return "", nil
	}
	if len(r.Wire.ServerJSON) > 0 {
		if v, err := parse(r.Wire.ServerJSON); err == nil {
			return "server_output_json", v
		}
	}
	if r.Wire.ServerText != nil {
		return "server_output_text", *r.Wire.ServerText
	}
	return "", nil
}

// ServerOutput prints raw, the document of a server, as iperf3's client shows it in
// text mode. It returns raw itself when that is no JSON.
func ServerOutput(raw json.RawMessage) []byte {
	v, err := parse(raw)
	if err != nil {
		return raw
	}
	return pretty(nil, v)
}

// start is the "start" object: what is known when the test begins, less when it never
// did. The two ends order it differently.
func start(r *result.Run, rel iperf3view.Release) *object {
	stage := iperf3view.StageOf(r)
	o := (&object{}).add("connected", connected(r)).
		add("version", iperf3view.Version(r, rel)).
		add("system_info", iperf3view.SystemInfo(r))
	if stage == iperf3view.Nothing {
		return o
	}
	if r.End == result.Server {
		if stage < iperf3view.Streams { // refused: iperf3 got no further than reading the rate
			if r.Test.Bitrate > 0 {
				o.add("target_bitrate", r.Test.Bitrate)
			}
			return o
		}
		if !iperf3view.Datagrams(r) {
			buffers(o, r)
		}
	}
	common(o, r, rel)
	if stage >= iperf3view.Streams && (r.End != result.Server || iperf3view.Datagrams(r)) {
		buffers(o, r)
	}
	if stage == iperf3view.Started {
		o.add("test_start", testStart(r, rel))
	}
	return o
}

// connected lists the streams: client's sending ones first, as they were made.
func connected(r *result.Run) array {
	a := array{}
	for _, s := range r.Streams {
		a = append(a, (&object{}).
			add("socket", s.Socket).
			add("local_host", s.Local.Host).add("local_port", s.Local.Port).
			add("remote_host", s.Remote.Host).add("remote_port", s.Remote.Port))
	}
	return a
}

// common is the part between the greeting and the buffers, the same at both ends but
// for the peer's address.
func common(o *object, r *result.Run, rel iperf3view.Release) {
	t := (&object{}).
		add("time", r.Started.UTC().Format(timeFormat)).
		add("timesecs", r.Started.Unix())
	if !rel.Old() {
		t.add("timemillisecs", r.Started.UnixMilli())
	}
	o.add("timestamp", t)
	if r.End == result.Server {
		addr(o, "accepted_connection", r.Wire.AcceptedFrom)
	} else {
		addr(o, "connecting_to", r.Wire.ConnectingTo)
	}
	o.add("cookie", r.Wire.Cookie)
	if r.Test.Transport == "tcp" {
		if r.Test.MSS != 0 {
			o.add("tcp_mss", r.Test.MSS)
		} else {
			o.add("tcp_mss_default", iperf3view.ControlMSS(r))
		}
	}
	o.add("target_bitrate", r.Test.Bitrate)
	if !rel.Old() {
		o.add("fq_rate", r.Test.FQRate)
	}
}

func addr(o *object, key string, a *result.Addr) {
	if a != nil {
		o.add(key, (&object{}).add("host", a.Host).add("port", a.Port))
	}
}

func buffers(o *object, r *result.Run) {
	o.add("sock_bufsize", r.Test.Window).
		add("sndbuf_actual", r.Wire.SndbufActual).
		add("rcvbuf_actual", r.Wire.RcvbufActual)
}

func testStart(r *result.Run, rel iperf3view.Release) *object {
	t := &r.Test
	o := (&object{}).
		add("protocol", strings.ToUpper(t.Transport)).
		add("num_streams", t.Streams).
		add("blksize", t.BlockSize).
		add("omit", t.Omit).
		add("duration", t.Duration).
		add("bytes", t.Bytes).
		add("blocks", t.Blocks).
		add("reverse", flag(t.Direction == "down")).
		add("tos", t.TOS).
		add("target_bitrate", t.Bitrate)
	if !rel.Old() {
		o.add("bidir", flag(iperf3view.Bidirectional(r))).
			add("fqrate", t.FQRate).
			add("interval", t.Interval).
			add("gso", flag(t.GSO)).
			add("gro", flag(t.GRO))
	}
	return o
}

// flag is a boolean in the form that test_start has.
func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
