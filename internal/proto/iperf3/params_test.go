package iperf3

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fullbore-net/fullbore/internal/plan"
)

var ignorePresence = cmpopts.IgnoreUnexported(Params{})

// Our encoder gives back byte for byte what the 3.21 clients sent.
func TestEncodeAs321(t *testing.T) {
	n := 0
	for _, r := range recordings(t) {
		if r.Meta.Client != "3.21" {
			continue
		}
		n++
		_, up := r.messages(t, "C>S")
		p, err := DecodeParams(up[0].Doc)
		if err != nil || len(p.Notes) > 0 {
			t.Errorf("%s: %v, %v", r.name, err, p.Notes)
		}
		if got := string(p.Encode()); got != string(up[0].Doc) {
			t.Errorf("%s:\n got %s\nwant %s", r.name, got, up[0].Doc)
		}
	}
	if n < 20 {
		t.Errorf("only %d recordings of 3.21 clients", n)
	}
}

// What a plan becomes on the wire is what iperf3 3.21 sends for the same options.
func TestParamsOfPlan(t *testing.T) {
	one := 1
	for name, tc := range map[string]struct {
		plan plan.Plan
		file string
	}{
		"tcp":     {plan.Plan{Duration: time.Second, Bitrate: 5e6}, "3.21/tcp"},
		"omit":    {plan.Plan{Duration: time.Second, Omit: time.Second, Bitrate: 5e6}, "3.21/tcp-omit1"},
		"reverse": {plan.Plan{Duration: time.Second, Direction: plan.Down, Bitrate: 5e6}, "3.21/tcp-reverse"},
		"both":    {plan.Plan{Duration: time.Second, Direction: plan.Both, Streams: 2, Bitrate: 2e6}, "3.21/bidir-P2"},
		"bytes":   {plan.Plan{Bytes: 1 << 20, Bitrate: 20e6, Streams: 2}, "3.21/bytes"},
		"blocks":  {plan.Plan{Blocks: 10, Bitrate: 20e6}, "3.21/blocks"},
		"mptcp":   {plan.Plan{Duration: time.Second, MPTCP: true, Bitrate: 2e6}, "3.21/mptcp"},
		"sctp":    {plan.Plan{Duration: time.Second, Transport: plan.SCTP, BlockSize: 65536, Bitrate: 2e6}, "3.21/sctp"},
		"output":  {plan.Plan{Duration: time.Second, Bitrate: 5e6, GetServerOutput: true}, "3.21/get-server-output"},
		"all options": {plan.Plan{
			Duration: time.Second, Bitrate: 4e6, Burst: 2, MSS: 1400, NoDelay: true, Window: 64 << 10, TOS: 0x20, Title: "mytitle",
			ExtraData: "xyz", Congestion: "cubic", FQRate: 10e6, Repeating: true, Send: plan.SendZeroCopy, Streams: 2,
			RemoteAffinity: &one, RemoteDiscard: true, GetServerOutput: true, BlockSize: 16 << 10,
		}, "3.21/all-options"},
		"udp": {plan.Plan{
			Duration: time.Second, Transport: plan.UDP, Bitrate: 2e6, BlockSize: 1200, Counters64: true, DontFragment: true,
			TOS: 184, GSRO: true, Repeating: true,
		}, "3.21/udp-options"},
	} {
		r := loadRecording(t, "testdata/transcripts/"+tc.file+".jsonl")
		_, up := r.messages(t, "C>S")
		got := string(ParamsOf(tc.plan.Filled(), "3.21").Encode())
		if got != string(up[0].Doc) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, up[0].Doc)
		}
	}
}

func TestPlanOfParams(t *testing.T) {
	zero := plan.Plan{Protocol: "iperf3", Transport: plan.TCP, Direction: plan.Up, Streams: 1, Duration: 10 * time.Second, BlockSize: 131072}
	with := func(f func(*plan.Plan)) plan.Plan { p := zero; f(&p); return p }
	for doc, want := range map[string]plan.Plan{
		`{}`:                                  zero,
		`{"tcp":true,"client_version":"3.1"}`: zero,
		`{"TCP":true,"TIME":3,"Len":5}`:       with(func(p *plan.Plan) { p.Duration = 3 * time.Second; p.BlockSize = 5 }),
		// Presence counts, also of a false (spec §6).
		`{"udp":false}`:                         with(func(p *plan.Plan) { p.Transport = plan.UDP }),
		`{"tcp":true,"udp":true}`:               with(func(p *plan.Plan) { p.Transport = plan.UDP }),
		`{"tcp":true,"sctp":true,"udp":true}`:   with(func(p *plan.Plan) { p.Transport = plan.SCTP }),
		`{"reverse":false,"nodelay":false}`:     with(func(p *plan.Plan) { p.Direction = plan.Down; p.NoDelay = true }),
		`{"reverse":true,"bidirectional":true}`: with(func(p *plan.Plan) { p.Direction = plan.Both }),
		`{"get_server_output":0}`:               with(func(p *plan.Plan) { p.GetServerOutput = true }),
		`{"zerocopy":0}`:                        zero,
		`{"zerocopy":1,"skip_rx_copy":1}`:       with(func(p *plan.Plan) { p.Send = plan.SendZeroCopy; p.Receive = plan.Discard }),
		// Numbers in any notation (spec §5).
		`{"time":3.9,"bandwidth":1e6,"len":4.096e3}`: with(func(p *plan.Plan) { p.Duration = 3 * time.Second; p.Bitrate = 1e6; p.BlockSize = 4096 }),
		// The first of equal keys wins.
		`{"time":3,"time":4}`: with(func(p *plan.Plan) { p.Duration = 3 * time.Second }),
		// No time with a byte count: no time rule (spec §16.11).
		`{"num":5}`:           with(func(p *plan.Plan) { p.Bytes = 5; p.Duration = 0; p.Endless = true }),
		`{"time":0}`:          with(func(p *plan.Plan) { p.Duration = 0; p.Endless = true }),
		`{"time":7,"num":5}`:  with(func(p *plan.Plan) { p.Bytes = 5; p.Duration = 7 * time.Second }),
		`{"blockcount":5} {}`: with(func(p *plan.Plan) { p.Blocks = 5; p.Duration = 0; p.Endless = true }),
		`{"title":null}`:      zero,
		"\ufeff{\"x\":[{\"y\":{}}],\"parallel\":4}trailing": with(func(p *plan.Plan) { p.Streams = 4 }),
		`{"fullbore":{"v":1,"version":"1.0","features":["index"],"streams":300,"time_s":1.5,"omit_s":0.25},"parallel":128,"time":2,"omit":1}`: with(func(p *plan.Plan) {
			p.Streams, p.Duration, p.Omit = 300, 1500*time.Millisecond, 250*time.Millisecond
		}),
		`{"fullbore":{"v":"x"}}`: zero,
	} {
		p, err := DecodeParams([]byte(doc))
		if err != nil || len(p.Notes) > 0 {
			t.Errorf("%s: %v %v", doc, err, p.Notes)
			continue
		}
		if diff := cmp.Diff(want, p.Plan()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", doc, diff)
		}
	}
}

func TestParamsOfWrongKind(t *testing.T) {
	for doc, want := range map[string]string{
		`{"congestion":{"a":1}}`:       `parameter "congestion" is an object instead of a string`,
		`{"title":5,"extra_data":[1]}`: `parameter "title" is a number instead of a string; parameter "extra_data" is an array instead of a string`,
		`{"len":"x"}`:                  `parameter "len" is a string instead of a number`,
		`{"udp":1}`:                    `parameter "udp" is a number instead of a boolean`,
		`{"fullbore":3}`:               `parameter "fullbore" is a number instead of an object`,
		`[1,2]`:                        `the parameters are another kind of document instead of an object`,
		`7`:                            `the parameters are another kind of document instead of an object`,
	} {
		p, err := DecodeParams([]byte(doc))
		if err != nil {
			t.Errorf("%s: %v", doc, err)
		}
		var notes []string
		for _, n := range p.Notes {
			notes = append(notes, n.String())
		}
		if got := strings.Join(notes, "; "); got != want {
			t.Errorf("%s:\n got %s\nwant %s", doc, got, want)
		}
		if diff := cmp.Diff(DefaultParams(), p, ignorePresence, cmpopts.IgnoreFields(Params{}, "Notes")); diff != "" {
			t.Errorf("%s: a key of the wrong kind had an effect (-want +got)\n%s", doc, diff)
		}
	}
	for _, doc := range []string{``, `{`, `{"a":`, strings.Repeat("[", 4000), strings.Repeat(`{"a":`, 5000), `{"title":"\ud800\u00"}`, "\xff"} {
		if p, err := DecodeParams([]byte(doc)); err == nil && len(p.Notes) == 0 {
			t.Errorf("%.20q: accepted", doc)
		}
	}
}

// DefaultParams is a document without keys.
func DefaultParams() Params { return Params{Transport: plan.TCP} }

func TestParamsCheck(t *testing.T) {
	for doc, code := range map[string]int32{
		`{}`: 0, `{"len":1048576,"parallel":128,"time":86400,"omit":600,"MSS":32767,"TOS":255,"burst":1000}`: 0,
		`{"len":0}`: codeBlockSize, `{"len":-1}`: codeBlockSize, `{"len":18446744073709551615}`: codeBlockSize, `{"len":2000000}`: codeBlockSize,
		`{"udp":true,"len":15}`: codeUDPBlockSize, `{"udp":true,"len":65508}`: codeUDPBlockSize, `{"udp":true,"len":16}`: 0, `{"udp":true}`: 0,
		`{"parallel":0}`: codeNumStreams, `{"parallel":129}`: codeNumStreams, `{"parallel":-1}`: codeNumStreams,
		`{"time":-1}`: codeDuration, `{"time":86401}`: codeDuration, `{"omit":601}`: codeOmit, `{"omit":-1}`: codeOmit,
		`{"MSS":32768}`: codeMSS, `{"TOS":256}`: codeTOS, `{"burst":0}`: codeBurst, `{"burst":1001}`: codeBurst,
		`{"flowlabel":1048576}`: codeSetFlow, `{"window":536870913}`: codeWindow, `{"server_affinity":1025}`: codeAffinity,
		`{"num":-1}`: codeRecvParams, `{"blockcount":-2}`: codeRecvParams, `{"bandwidth":-1}`: codeRecvParams, `{"fqrate":1e30}`: codeRecvParams,
		`{"gso":-1}`: codeRecvParams,
	} {
		p, err := DecodeParams([]byte(doc))
		if err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		var got int32
		if bad := p.check(plan.MaxStreams); bad != nil {
			got = bad.Code
			if bad.Text == "" {
				t.Errorf("%s: no text", doc)
			}
		}
		if got != code {
			t.Errorf("%s: code %d, want %d", doc, got, code)
		}
	}
}

func TestParseInt(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "-1": -1, "18446744073709551615": -1, "9223372036854775807": 1<<63 - 1, "9223372036854775808": -1,
		"1e+15": 1e15, "1.9": 1, "-1.9": -1, "1e400": -1, "-1e400": -1 << 63, "655360": 655360, "6.5536e5": 655360,
	} {
		if got := parseInt(s); got != want {
			t.Errorf("%s: %d, want %d", s, got, want)
		}
	}
}

func TestAppendString(t *testing.T) {
	for in, want := range map[string]string{
		`a"b\c`:         `"a\"b\\c"`,
		"\b\f\n\r\t":    `"\b\f\n\r\t"`,
		"\x01\x1f":      `"\u0001\u001f"`,
		"a/b<>&é\u2028": "\"a/b<>&é\u2028\"",
		"bad\xff\xfet":  "\"bad\ufffdt\"",
	} {
		got := string(appendString(nil, in))
		if got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
		var back string
		if err := json.Unmarshal([]byte(got), &back); err != nil {
			t.Errorf("%q: not JSON: %v", in, err)
		}
	}
}

// FuzzDecodeParams: no document crashes the decoder, the checks or the plan; what was
// decoded and encoded again decodes to the same.
func FuzzDecodeParams(f *testing.F) {
	for _, r := range recordings(f) {
		_, up := r.messages(f, "C>S")
		f.Add(up[0].Doc)
	}
	for _, s := range []string{`[1,2]`, `{"len":"x"}`, `{"title":5}`, `{"parallel":1e99}`, `{"fullbore":{"v":1,"streams":-5,"time_s":1e300}}`, `{"a":"\ud800"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		if len(doc) > MaxParams {
			return
		}
		p, err := DecodeParams(doc)
		if err != nil {
			return
		}
		if p.check(plan.MaxStreamsExt) != nil {
			return
		}
		pl := p.Plan()
		if pl.Streams < 1 || pl.BlockSize < 1 || pl.Duration < 0 || pl.Omit < 0 {
			t.Fatalf("plan %+v", pl)
		}
		again, err := DecodeParams(p.Encode())
		if err != nil {
			t.Fatalf("our own document: %v", err)
		}
		if diff := cmp.Diff(p.Encode(), again.Encode()); diff != "" {
			t.Fatalf("(-first +second)\n%s", diff)
		}
	})
}
