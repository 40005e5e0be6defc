package iperf3text_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/render/goldentest"
	"github.com/fullbore-net/fullbore/internal/render/iperf3json"
	"github.com/fullbore-net/fullbore/internal/render/iperf3text"
	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/result"
)

// twins are recordings of the same test with -J and without: other runs, so only the
// layout can be compared.
var twins = []struct {
	json, text string
	verbose    bool
}{
	{"tcp_json.client", "tcp_V.client", true},
	{"tcp_json.server", "tcp_V.server", true},
	{"tcp_R_json.client", "tcp_R.client", false},
	{"tcp_R_json.server", "tcp_R.server", false},
	{"tcp_bidir_json.client", "tcp_bidir_V.client", true},
	{"tcp_bidir_json.server", "tcp_bidir_V.server", true},
	{"tcp_title_extra_json.client", "title.client", false},
	{"tcp_title_extra_json.server", "title.server", false},
	{"tcp_F_json.client", "tcp_F.client", false},
	{"w_json.client", "auth_ok.client", false},
	{"gso_json_clientJ_servertext.client", "get_server_output.client", false},
	{"gso_json_clientJ_serverJ.client", "gso_clienttext_serverJ.client", false},
	{"sigint_client_json.client", "sigint_client.client", false},
	{"sigint_client_json.server", "sigint_client.server", false},
	{"sigterm_server_json.client", "sigint_server.client", false},
	{"sigterm_server_json.server", "sigint_server.server", false},
	{"sigkill_server_json.client", "sigkill_server.client", false},
	{"busy_json.client", "busy.client", false},
	{"limit_upfront_json.client", "limit_upfront.client", false},
	{"limit_upfront_json.server", "limit_upfront.server", false},
	{"auth_bad_json.client", "auth_bad.client", false},
	{"server_idle_sigterm_json.server", "server_idle_sigint.server", false},
	{"udp_json.client", "udp.client", false},
	{"udp_json.server", "udp.server", false},
}

func TestTwins(t *testing.T) {
	t.Parallel()
	dev := goldentest.ReadDeviations(t)
	for _, twin := range twins {
		for _, rel := range iperf3view.Releases {
			doc := goldentest.One(t, string(rel), twin.json+".json")
			var want goldentest.Golden
			if twin.text == "busy.client" { // which prints nothing
				want = goldentest.Golden{Release: string(rel), Name: twin.text}
			} else {
				want = goldentest.One(t, string(rel), twin.text+".txt")
			}
			run, err := iperf3json.Decode(doc.Data)
			if err != nil {
				t.Fatal(doc.ID(), err)
			}
			if twin.json == "tcp_title_extra_json.client" {
				run.Test.Title = "mytest"
			}
			if twin.json == "w_json.client" {
				run.Test.Interval = 0 // a 3.12 document does not say
			}
			var out bytes.Buffer
			r := iperf3text.New(&out, iperf3text.Options{Release: rel, Verbose: twin.verbose})
			if want.Server() {
				r = iperf3text.New(&out, iperf3text.Options{Release: rel, Verbose: twin.verbose, End: result.Server, SystemInfo: run.Hosts.Server.SystemInfo})
				r.Listening(5201, 1)
			}
			for _, e := range result.Unfold(run) {
				r.Event(e)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			text, got := dev.Apply(want, string(want.Data), out.String())
			text, got = dev.Apply(doc, text, got)
			if diff := cmp.Diff(strings.Split(goldentest.Layout(text), "\n"), strings.Split(goldentest.Layout(got), "\n")); diff != "" {
				t.Errorf("%s as %s (-recorded +printed):\n%s", doc.ID(), want.ID(), diff)
			}
		}
	}
}

// TestServerText: what a server hands to its client is what it prints, without banner.
func TestServerText(t *testing.T) {
	t.Parallel()
	for _, rel := range iperf3view.Releases {
		doc := goldentest.One(t, string(rel), "tcp_P3_json.server.json")
		run, err := iperf3json.Decode(doc.Data)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		o := iperf3text.Options{Release: rel, Verbose: true}
		r := iperf3text.New(&out, o)
		r.Listening(5201, 1)
		banner := out.Len()
		for _, e := range result.Unfold(run) {
			r.Event(e)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		want := out.String()[banner:]
		if diff := cmp.Diff(want, iperf3text.Text(run, o)); diff != "" {
			t.Error(diff)
		}
		if !strings.Contains(want, "\n[SUM] (sender statistics not available)\n") || !strings.HasPrefix(want, "Time: ") {
			t.Error(want)
		}
	}
}

// TestRawLines: two lines go past the log file, as they do in iperf3.
func TestRawLines(t *testing.T) {
	t.Parallel()
	for _, rel := range iperf3view.Releases {
		want := goldentest.One(t, string(rel), "logfile.cl.log.contents.txt")
		stdout := goldentest.One(t, string(rel), "logfile.client.txt")
		recs := readText(t, string(want.Data), "", result.Client)
		run := recs[0].run
		var log, raw bytes.Buffer
		r := iperf3text.New(&log, iperf3text.Options{Release: rel, Verbose: true, Raw: &raw})
		for _, e := range result.Unfold(run) {
			r.Event(e)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(withoutRates(string(want.Data), false), withoutRates(log.String(), false)); diff != "" {
			t.Errorf("%s log:\n%s", rel, diff)
		}
		if raw.String() != string(stdout.Data) {
			t.Errorf("%s: stdout %q, recorded %q", rel, raw.String(), stdout.Data)
		}
	}
}
