// Package iperf3json prints runs as iperf3's -J and --json-stream do, byte for byte,
// and reads such documents back into runs.
//
// Document and Stream print; Decode, DecodeAll and DecodeStream read. The layout is
// cJSON's, the order and the arithmetic are iperf3's (package iperf3view), for the
// releases 3.21 and 3.12. Two things differ on purpose: no name occurs twice in an
// object, and text is always valid UTF-8.
package iperf3json

import (
	"strings"

	"github.com/fullbore-net/fullbore/internal/render/cjson"
	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/result"
)

// Options choose the layout. The zero value is release 3.21.
type Options struct {
	Release iperf3view.Release
	// End is the end that prints, for runs that broke off before they could say.
	End result.End
	// SystemInfo is uname's line of this host, for runs that do not have it.
	SystemInfo string
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

// Document prints r as iperf3 -J does after a test, with the closing newline.
func Document(r *result.Run, o Options) []byte {
	return append(cjson.AppendPretty(nil, document(o.fill(r), o.Release)), '\n')
}

func document(r *result.Run, rel iperf3view.Release) *cjson.Object {
	rows := cjson.Array{}
	for i := range r.Rows {
		if iperf3view.Visible(r, &r.Rows[i]) {
			rows = append(rows, interval(r, &r.Rows[i], rel))
		}
	}
	doc := (&cjson.Object{}).Add("start", start(r, rel)).Add("intervals", rows).Add("end", end(r, rel))
	if r.Err != nil {
		doc.Add("error", iperf3view.ErrorText(r.Err, r.End, rel))
	}
	if r.Test.Title != "" {
		doc.Add("title", r.Test.Title)
	}
	if r.Test.ExtraData != "" {
		doc.Add("extra_data", r.Test.ExtraData)
	}
	if key, v := serverOutput(r); key != "" {
		doc.Add(key, v)
	}
	return doc
}

// serverOutput is what --get-server-output brought, "" when nothing did.
func serverOutput(r *result.Run) (key string, value any) {
	if r.Wire == nil {
		return "", nil
	}
	if len(r.Wire.ServerJSON) > 0 {
		if v, err := cjson.Parse(r.Wire.ServerJSON); err == nil {
			return "server_output_json", v
		}
	}
	if r.Wire.ServerText != nil {
		return "server_output_text", *r.Wire.ServerText
	}
	return "", nil
}

// start is the "start" object: what is known when the test begins, less when it never
// did. The two ends order it differently.
func start(r *result.Run, rel iperf3view.Release) *cjson.Object {
	stage := iperf3view.StageOf(r)
	o := (&cjson.Object{}).Add("connected", connected(r)).
		Add("version", iperf3view.Version(r, rel)).
		Add("system_info", iperf3view.SystemInfo(r))
	if stage == iperf3view.Nothing {
		return o
	}
	if r.End == result.Server {
		if stage < iperf3view.Streams { // refused: iperf3 got no further than reading the rate
			if r.Test.Bitrate > 0 {
				o.Add("target_bitrate", r.Test.Bitrate)
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
		o.Add("test_start", testStart(r, rel))
	}
	return o
}

// connected lists the streams: client's sending ones first, as they were made.
func connected(r *result.Run) cjson.Array {
	a := cjson.Array{}
	for _, s := range r.Streams {
		a = append(a, (&cjson.Object{}).
			Add("socket", s.Socket).
			Add("local_host", s.Local.Host).Add("local_port", s.Local.Port).
			Add("remote_host", s.Remote.Host).Add("remote_port", s.Remote.Port))
	}
	return a
}

// common is the part between the greeting and the buffers, the same at both ends but
// for the peer's address.
func common(o *cjson.Object, r *result.Run, rel iperf3view.Release) {
	t := (&cjson.Object{}).
		Add("time", iperf3view.StartTime(r)).
		Add("timesecs", r.Started.Unix())
	if !rel.Old() {
		t.Add("timemillisecs", r.Started.UnixMilli())
	}
	o.Add("timestamp", t)
	if r.End == result.Server {
		addr(o, "accepted_connection", r.Wire.AcceptedFrom)
	} else {
		addr(o, "connecting_to", r.Wire.ConnectingTo)
	}
	o.Add("cookie", r.Wire.Cookie)
	if r.Test.Transport == "tcp" {
		if r.Test.MSS != 0 {
			o.Add("tcp_mss", r.Test.MSS)
		} else {
			o.Add("tcp_mss_default", iperf3view.ControlMSS(r))
		}
	}
	o.Add("target_bitrate", r.Test.Bitrate)
	if !rel.Old() {
		o.Add("fq_rate", r.Test.FQRate)
	}
}

func addr(o *cjson.Object, key string, a *result.Addr) {
	if a != nil {
		o.Add(key, (&cjson.Object{}).Add("host", a.Host).Add("port", a.Port))
	}
}

func buffers(o *cjson.Object, r *result.Run) {
	o.Add("sock_bufsize", r.Test.Window).
		Add("sndbuf_actual", r.Wire.SndbufActual).
		Add("rcvbuf_actual", r.Wire.RcvbufActual)
}

func testStart(r *result.Run, rel iperf3view.Release) *cjson.Object {
	t := &r.Test
	o := (&cjson.Object{}).
		Add("protocol", strings.ToUpper(t.Transport)).
		Add("num_streams", t.Streams).
		Add("blksize", t.BlockSize).
		Add("omit", t.Omit).
		Add("duration", t.Duration).
		Add("bytes", t.Bytes).
		Add("blocks", t.Blocks).
		Add("reverse", flag(t.Direction == "down")).
		Add("tos", t.TOS).
		Add("target_bitrate", t.Bitrate)
	if !rel.Old() {
		o.Add("bidir", flag(iperf3view.Bidirectional(r))).
			Add("fqrate", t.FQRate).
			Add("interval", t.Interval).
			Add("gso", flag(t.GSO)).
			Add("gro", flag(t.GRO))
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
