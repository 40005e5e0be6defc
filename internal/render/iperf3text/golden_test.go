package iperf3text_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/render/goldentest"
	"github.com/fullbore-net/fullbore/internal/render/iperf3text"
	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/result"
)

// rateRE finds a rate with its padding: it follows from amounts and times that a text
// has only in rounded form.
var rateRE = regexp.MustCompile(`( +)[\d.]+ ([KMGT]?)((?:bit|Byte)s/sec)`)

// sumRE finds a sum's row: it adds up what the text has only in rounded form.
var sumRE = regexp.MustCompile(`(?m)^.*\[SUM\].* sec .*$`)

// withoutRates masks the rates of text, keeping the unit when it is fixed by -f, and
// the numbers of sums.
func withoutRates(text string, fixed bool) string {
	text = sumRE.ReplaceAllStringFunc(text, goldentest.Mask)
	return rateRE.ReplaceAllStringFunc(text, func(s string) string {
		m := rateRE.FindStringSubmatch(s)
		if !fixed {
			m[2] = ""
		}
		return "  <rate> " + m[2] + m[3]
	})
}

// elsewhere are recordings of lines that are not a renderer's.
func elsewhere(name string) bool {
	name, _, _ = strings.Cut(name, ".")
	switch name {
	case "version", "auth_nopassword_notty": // the command line's
		return true
	case "debug1": // the conversation, printed raw
		return true
	case "logfile": // see TestRawLines
		return true
	}
	return false
}

// cliErrors are error streams with lines that the command line prints.
func cliErrors(name string) bool {
	name, _, _ = strings.Cut(name, ".")
	switch name {
	case "err_port_in_use", "err_server_port_in_use_probe", "err_port_in_use_json": // "exiting"
		return true
	case "pidfile_running", "auth_nopassword_notty", "tcp_json_V", "udp_l_over_mss":
		return true
	case "sctp": // the words of an errno are the protocol's
		return true
	}
	return false
}

// formats are the cases with -f.
var formats = map[string]byte{
	"f_lower_k.client": 'k', "f_lower_m.client": 'm', "f_lower_g.client": 'g', "f_lower_t.client": 't',
	"f_upper_k.client": 'K', "f_upper_m.client": 'M', "f_upper_g.client": 'G', "f_upper_t.client": 'T',
	"server_i_f.server": 'K',
}

// TestGoldens reads every recorded text output of both releases into a run (amounts
// and times as rounded there), replays it through the renderer, and compares all but
// the rates byte for byte.
func TestGoldens(t *testing.T) {
	t.Parallel()
	dev := goldentest.ReadDeviations(t)
	stderrs := map[string]string{}
	var texts []goldentest.Golden
	for _, g := range goldentest.Iperf3(t, "*.txt") {
		if name, ok := strings.CutSuffix(g.Name, ".stderr"); ok {
			stderrs[g.Release+"/"+name] = string(g.Data)
		} else if !elsewhere(g.Name) {
			texts = append(texts, g)
		}
	}
	if len(texts) < 200 {
		t.Errorf("only %d texts", len(texts))
	}
	for _, g := range texts {
		id := g.Release + "/" + g.Name
		stderr := stderrs[id]
		delete(stderrs, id)
		got, gotErr := render(t, g, stderr)
		want := withoutStamps(string(g.Data))
		fixed := formats[g.Name] != 0
		want, got = dev.Apply(g, withoutRates(want, fixed), withoutRates(withoutStamps(got), fixed))
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
			t.Errorf("%s (-recorded +printed):\n%s", g.ID(), diff)
		}
		if stderr != "" && !cliErrors(g.Name) {
			eg := goldentest.Golden{Release: g.Release, Name: g.Name + ".stderr"}
			want, got := dev.Apply(eg, stderr, gotErr)
			if want != got {
				t.Errorf("%s.stderr: %q, recorded %q", g.ID(), got, want)
			}
		}
	}
	// Errors of ends that printed nothing else.
	for id, stderr := range stderrs {
		release, name, _ := strings.Cut(id, "/")
		if cliErrors(name) {
			continue
		}
		g := goldentest.Golden{Release: release, Name: name + ".stderr"}
		got, gotErr := render(t, goldentest.Golden{Release: release, Name: name}, stderr)
		want, have := dev.Apply(g, stderr, gotErr)
		if want != have || got != "" {
			t.Errorf("%s.stderr: %q, recorded %q; and %q", id, have, want, got)
		}
	}
	dev.CheckUsed(t, false)
}

var stampRE = regexp.MustCompile(`(?m)^((?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d )?\d\d:\d\d:\d\d(?: \d{4})? )`)

func withoutStamps(s string) string { return stampRE.ReplaceAllString(s, "<stamp> ") }

// render reads g and prints it again.
func render(t *testing.T, g goldentest.Golden, stderr string) (stdout, errors string) {
	t.Helper()
	end := result.Client
	if g.Server() {
		end = result.Server
	}
	var out, errs strings.Builder
	for _, rec := range readText(t, string(g.Data), stderr, end) {
		if strings.HasPrefix(g.Name, "title.client") {
			rec.run.Test.Title = "mytest"
		}
		r := iperf3text.New(&out, options(g, rec, end, &errs))
		if rec.banner > 0 {
			r.Listening(5201, rec.banner)
		}
		for _, e := range result.Unfold(rec.run) {
			r.Event(e)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	return out.String(), errs.String()
}

func options(g goldentest.Golden, rec recording, end result.End, errs *strings.Builder) iperf3text.Options {
	o := iperf3text.Options{
		Release: iperf3view.Release(g.Release), Verbose: rec.verbose, Err: errs, End: end,
		SystemInfo: rec.system, Format: formats[g.Name],
		Now: func() time.Time { return time.Date(2026, 11, 30, 7, 2, 18, 0, time.UTC) },
	}
	switch {
	case strings.HasPrefix(g.Name, "timestamps_fmt"):
		o.Timestamps = "%H:%M:%S "
	case strings.HasPrefix(g.Name, "timestamps"):
		o.Timestamps = "%c "
	}
	return o
}
