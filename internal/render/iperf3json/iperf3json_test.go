package iperf3json_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/render/goldentest"
	"github.com/fullbore-net/fullbore/internal/render/iperf3json"
	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/result"
)

// strict reports what a reader that allows nothing extra would refuse: bytes that are
// no UTF-8, anything but one document, a name that occurs twice in an object.
func strict(doc []byte) error {
	if !utf8.Valid(doc) {
		return errors.New("not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(doc))
	if err := strictValue(dec); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one document")
	}
	return nil
}

func strictValue(dec *json.Decoder) error {
	t, err := dec.Token()
	if err != nil {
		return err
	}
	switch t {
	case json.Delim('['):
		for dec.More() {
			if err := strictValue(dec); err != nil {
				return err
			}
		}
	case json.Delim('{'):
		names := map[string]bool{}
		for dec.More() {
			k, err := dec.Token()
			if err != nil {
				return err
			}
			if names[k.(string)] {
				return fmt.Errorf("%q occurs twice", k)
			}
			names[k.(string)] = true
			if err := strictValue(dec); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	_, err = dec.Token()
	return err
}

func TestStrictRefuses(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{`{"a":1,"a":1}`, "{\"a\":\"\xff\"}", `{} {}`, `{"a":[{"b":1,"b":2}]}`, `{`} {
		if strict([]byte(doc)) == nil {
			t.Errorf("%q passes", doc)
		}
	}
}

// allRuns decodes every recorded document and event stream.
func allRuns(t testing.TB) map[string]*result.Run {
	t.Helper()
	runs := map[string]*result.Run{}
	for _, g := range goldentest.Iperf3(t, "*.json") {
		rs, err := iperf3json.DecodeAll(g.Data)
		if err != nil {
			t.Fatal(g.ID(), err)
		}
		for i, r := range rs {
			runs[fmt.Sprintf("%s#%d", g.ID(), i+1)] = r
		}
	}
	for _, g := range goldentest.Iperf3(t, "*.jsonl") {
		if g.Name == "errors" {
			continue
		}
		r, _, err := iperf3json.DecodeStream(g.Data)
		if err != nil {
			t.Fatal(g.ID(), err)
		}
		runs[g.ID()] = r
	}
	return runs
}

// TestLiveIsReplayed (R5): the events of a run, printed live, say the same as its
// document, and the run is the fold of its events. Both are what strict readers accept.
func TestLiveIsReplayed(t *testing.T) {
	t.Parallel()
	for id, r := range allRuns(t) {
		for _, rel := range iperf3view.Releases {
			o := iperf3json.Options{Release: rel}
			doc := iperf3json.Document(r, o)
			if err := strict(doc); err != nil {
				t.Errorf("%s: %s document: %v", id, rel, err)
			}
			if back := iperf3json.Document(result.Fold(result.Unfold(r)), o); !bytes.Equal(doc, back) {
				t.Errorf("%s: %s document of the fold differs:\n%s", id, rel, cmp.Diff(string(doc), string(back)))
			}
			live := streamed(t, r, o)
			for line := range strings.Lines(live) {
				if err := strict([]byte(line)); err != nil {
					t.Errorf("%s: %s event: %v\n%s", id, rel, err, line)
				}
			}
			fromLive, rest, err := iperf3json.DecodeStream([]byte(live))
			if err != nil || len(rest) > 0 {
				t.Errorf("%s: %s: %v, %d bytes left", id, rel, err, len(rest))
				continue
			}
			fromDoc, err := iperf3json.Decode(doc)
			if err != nil {
				t.Errorf("%s: %s: %v", id, rel, err)
				continue
			}
			if r.Wire.TestStarted { // else there is no start event
				fromDoc.Test.Title, fromDoc.Test.ExtraData = "", "" // no event has them
				if diff := cmp.Diff(fromDoc, fromLive); diff != "" {
					t.Errorf("%s: %s (-document +events):\n%s", id, rel, diff)
				}
			}
		}
	}
}

// TestDecodedRun looks at the values of one run that the byte comparison cannot see.
func TestDecodedRun(t *testing.T) {
	t.Parallel()
	r, err := iperf3json.Decode(goldentest.One(t, "3.21", "tcp_bidir_P2_json.client.json").Data)
	if err != nil {
		t.Fatal(err)
	}
	if r.End != result.Client || r.Test.Direction != "both" || r.Test.Streams != 2 || r.Test.Duration != 1 || r.Tool.Version != "3.21" {
		t.Errorf("head: %+v", r.Test)
	}
	if want := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC); r.Started.Truncate(24*time.Hour) != want {
		t.Errorf("started %v", r.Started)
	}
	var ids []int
	for _, s := range r.Streams {
		ids = append(ids, s.ID)
	}
	if diff := cmp.Diff([]int{1, 3, 4, 5}, ids); diff != "" {
		t.Error(diff)
	}
	// The receiving streams ran as long as this end says; iperf3 prints the two ends'
	// times the other way round there.
	down := r.Streams[2]
	if down.Direction != result.Down || down.Receiver.End != 1.010908 || down.Sender.End != 1.010961 {
		t.Errorf("down: %s %+v %+v", down.Direction, down.Sender, down.Receiver)
	}
	if up := r.Streams[0]; up.Direction != result.Up || up.Sender.End != 1.010908 || up.Receiver.End != 1.010961 || *up.Sender.Retransmits != 5 {
		t.Errorf("up: %s %+v %+v", up.Direction, up.Sender, up.Receiver)
	}
	if s := r.Sum(result.Down); s == nil || s.Receiver.Bytes != 5242880 || *s.Sender.Retransmits != 42 {
		t.Errorf("sum down: %+v", s)
	}
	if h := r.Hosts.Client; h.Name != "testhost" || h.OS != "linux" || h.Release != "6.1.0-example" {
		t.Errorf("host: %+v", h)
	}
	if r.CPU.Server == nil || r.CPU.Server.Congestion != "bbr" {
		t.Errorf("cpu: %+v", r.CPU.Server)
	}
}

// TestUnknownStaysUnknown: what was never exchanged is nil, however many zeros iperf3
// prints for it.
func TestUnknownStaysUnknown(t *testing.T) {
	t.Parallel()
	decode := func(release, file string) *result.Run {
		r, err := iperf3json.Decode(goldentest.One(t, release, file).Data)
		if err != nil {
			t.Fatal(file, err)
		}
		return r
	}
	r := decode("3.21", "sigint_client_json.client.json")
	if s := r.Streams[0]; s.Receiver != nil || s.Sender == nil || r.CPU.Server != nil {
		t.Errorf("interrupted client knows its server: %+v %+v", s.Receiver, r.CPU.Server)
	}
	if !r.Err.Interrupted || r.Err.Signal != "Interrupt(2)" || r.Err.Text != "the client has terminated" {
		t.Errorf("error: %+v", r.Err)
	}
	if last := r.Rows[len(r.Rows)-1]; !last.Partial || r.Rows[0].Partial {
		t.Error("the last row of an interrupted run is partial, the first is not")
	}
	r = decode("3.21", "tcp_json.server.json")
	if s := r.Streams[0]; s.Sender != nil || s.Receiver == nil || r.CPU.Client != nil || r.End != result.Server {
		t.Errorf("server knows its client: %+v %+v", s.Sender, r.CPU.Client)
	}
	r = decode("3.12", "tcp_O1_json.client.json")
	if row := r.Rows[1]; row.Start != -2.1e-05 || row.Stop != 1.000014 || !r.Rows[0].Omitted {
		t.Errorf("the row after the omit period: %v–%v", row.Start, row.Stop)
	}
	r = decode("3.21", "sigkill_server_json.client.json")
	if len(r.Rows) != 1 || r.Finished() || !r.Err.Remote {
		t.Errorf("lost server: %d rows, error %+v", len(r.Rows), r.Err)
	}
	r = decode("3.21", "limit_upfront_json.client.json")
	if r.Wire.Cookie == "" || r.Wire.TestStarted || r.Wire.ConnectingTo == nil || len(r.Streams) != 0 {
		t.Errorf("refused client: %+v", r.Wire)
	}
}

// TestErrorEntries prints the documents of the recorded command lines that failed.
func TestErrorEntries(t *testing.T) {
	t.Parallel()
	n := 0
	for _, g := range goldentest.Iperf3(t, "errors.jsonl") {
		for in := bufio.NewScanner(bytes.NewReader(g.Data)); in.Scan(); {
			var e struct{ Case, Stdout string }
			if err := json.Unmarshal(in.Bytes(), &e); err != nil {
				t.Fatal(err)
			}
			o := iperf3json.Options{Release: iperf3view.Release(g.Release)}
			var got string
			switch {
			case strings.HasPrefix(e.Stdout, `{"event"`):
				run, _, err := iperf3json.DecodeStream([]byte(e.Stdout))
				if err != nil {
					t.Fatal(e.Case, err)
				}
				got = streamed(t, run, o)
			case strings.HasPrefix(e.Stdout, "{"):
				run, err := iperf3json.Decode([]byte(e.Stdout))
				if err != nil {
					t.Fatal(e.Case, err)
				}
				got = string(iperf3json.Document(run, o))
			default:
				continue
			}
			n++
			if diff := cmp.Diff(e.Stdout, got); diff != "" {
				t.Errorf("%s %s (-recorded +printed):\n%s", g.Release, e.Case, diff)
			}
		}
	}
	if n != 9 {
		t.Errorf("%d documents", n)
	}
}

// TestEarlyFailure: a run that broke off before it knew anything still makes a whole
// document.
func TestEarlyFailure(t *testing.T) {
	t.Parallel()
	r := &result.Run{Err: &result.Error{Text: "unable to start listener for connections: Address already in use"}}
	o := iperf3json.Options{End: result.Server, SystemInfo: "Linux testhost 6.1.0-example #1 SMP PREEMPT_DYNAMIC x86_64"}
	want := string(goldentest.One(t, "3.21", "err_port_in_use_json.server.json").Data)
	if diff := cmp.Diff(want, string(iperf3json.Document(r, o))); diff != "" {
		t.Error(diff)
	}
	if r.End != "" || r.Hosts.Server != nil {
		t.Error("printing changed the run")
	}
}

// TestText (F47): whatever bytes a title, a name or the server's output hold, the
// document is valid and what was readable stays readable.
func TestText(t *testing.T) {
	t.Parallel()
	r, err := iperf3json.Decode(goldentest.One(t, "3.21", "gso_json_clientJ_servertext.client.json").Data)
	if err != nil {
		t.Fatal(err)
	}
	r.Test.Title = "bad\xff\xfetitle \"quoted\" back\\slash\nnew\ttab \x01\x7f é 漢"
	r.Test.ExtraData = "x\xc3("
	output := "line\x00\xff\n"
	r.Wire.ServerText = &output
	r.CPU.Client.Congestion = "cu\xffbic"
	for name, doc := range map[string][]byte{
		"document": iperf3json.Document(r, iperf3json.Options{}),
		"stream":   []byte(strings.Split(streamed(t, r, iperf3json.Options{}), "\n")[2]),
	} {
		if err := strict(doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var back struct {
		Title  string
		Extra  string `json:"extra_data"`
		Output string `json:"server_output_text"`
	}
	if err := json.Unmarshal(iperf3json.Document(r, iperf3json.Options{}), &back); err != nil {
		t.Fatal(err)
	}
	if want := "bad\uFFFDtitle \"quoted\" back\\slash\nnew\ttab \x01\x7f é 漢"; back.Title != want {
		t.Errorf("title %q, want %q", back.Title, want)
	}
	if back.Extra != "x\uFFFD(" || back.Output != "line\x00\uFFFD\n" {
		t.Errorf("%q %q", back.Extra, back.Output)
	}

	r.Wire.ServerJSON = json.RawMessage(`{"b":1,"a":"\ud800","b":2.5e-07,"c":[],"d":{},"e":18446744073709551615,"f":"\u0000"}`)
	doc := iperf3json.Document(r, iperf3json.Options{})
	if err := strict(doc); err != nil {
		t.Error(err)
	}
	want := "\"server_output_json\":\t{\n\t\t\"a\":\t\"\uFFFD\",\n\t\t\"b\":\t2.5e-07,\n\t\t\"c\":\t[],\n\t\t\"d\":\t{\n\t\t},\n\t\t\"e\":\t1.8446744073709552e+19,\n\t\t\"f\":\t\"\\u0000\"\n\t}"
	if !strings.Contains(string(doc), want) {
		t.Errorf("server's document:\n%s", doc[bytes.Index(doc, []byte(`"server_output`)):])
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"empty":        "",
		"text":         "iperf3: error - unable to connect\n",
		"cut":          `{"start":{"connected":[`,
		"other":        `{"result":1}`,
		"array":        "[1]\n",
		"two":          `{"start":{}}` + "\n" + `{"start":{}}`,
		"wrong kind":   `{"start":{"cookie":7}}`,
		"wrong list":   `{"start":{"connected":{"socket":5}}}`,
		"wrong number": `{"start":{"connected":[{"socket":"5"}]}}`,
		"wrong row":    `{"start":{},"intervals":[7]}`,
		"deep":         `{"start":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + "}",
	} {
		if r, err := iperf3json.Decode([]byte(in)); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	for name, in := range map[string]string{"empty": "\n\n", "no event": "{}\n", "text": "hello\n", "wrong": `{"event":"start","data":{"cookie":1}}`} {
		if r, _, err := iperf3json.DecodeStream([]byte(in)); err == nil {
			t.Errorf("stream %s: %+v", name, r)
		}
	}
}

// FuzzDecode: nothing that a file may hold crashes the reader; what it accepts can be
// replayed and printed, strictly.
func FuzzDecode(f *testing.F) {
	for _, g := range goldentest.Iperf3(f, "*.json") {
		f.Add(g.Data)
	}
	for _, g := range goldentest.Iperf3(f, "json_stream*.jsonl") {
		f.Add(g.Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		runs, err := iperf3json.DecodeAll(data)
		if err == nil && len(runs) == 0 {
			t.Fatal("no run and no error")
		}
		if run, _, err := iperf3json.DecodeStream(data); err == nil {
			runs = append(runs, run)
		}
		for _, r := range runs {
			if diff := cmp.Diff(r, result.Fold(result.Unfold(r))); diff != "" {
				t.Fatalf("not the fold of its events:\n%s", diff)
			}
			for _, rel := range iperf3view.Releases {
				o := iperf3json.Options{Release: rel, Full: true}
				if err := strict(iperf3json.Document(r, o)); err != nil {
					t.Fatalf("%v:\n%s", err, iperf3json.Document(r, o))
				}
				streamed(t, r, o)
			}
			if _, err := json.Marshal(r); err != nil {
				t.Fatal(err)
			}
		}
	})
}
