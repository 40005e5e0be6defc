package importer_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/importer"
	"github.com/fullbore-net/fullbore/internal/render/goldentest"
	"github.com/fullbore-net/fullbore/internal/render/iperf3json"
	"github.com/fullbore-net/fullbore/internal/render/iperf3text"
	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/result"
)

// noResults are recordings that hold no result of a test, with the reason.
var noResults = map[string]string{
	"version":               "prints the release",
	"debug1":                "the conversation, printed raw",
	"auth_nopassword_notty": "prints the usage",
	"errors":                "a table of errors, not an output",
	"pidfile_running":       "the command line's complaint",
}

func skipped(g goldentest.Golden) bool {
	name, _, _ := strings.Cut(g.Name, ".")
	return noResults[name] != ""
}

var reNumber = regexp.MustCompile(`\d+(?:\.\d+)?(?:e[+-]\d+)?`)

// missing are the numbers of want that got does not have as often.
func missing(want, got string) []string {
	have := map[string]int{}
	for _, n := range reNumber.FindAllString(got, -1) {
		have[n]++
	}
	var out []string
	for _, n := range reNumber.FindAllString(want, -1) {
		if have[n]--; have[n] < 0 {
			out = append(out, n)
		}
	}
	return out
}

// Every document of iperf3 is recognised, and shown again has every number of it.
func TestIperf3Documents(t *testing.T) {
	t.Parallel()
	dev := goldentest.ReadDeviations(t)
	count := 0
	for _, g := range append(goldentest.Iperf3(t, "*.json"), goldentest.Iperf3(t, "*.jsonl")...) {
		if skipped(g) {
			continue
		}
		count++
		docs, err := importer.Decode("dir/"+g.Name, g.Data)
		if err != nil {
			t.Errorf("%s: %v", g.ID(), err)
			continue
		}
		format := importer.Iperf3JSON
		if g.Ext == "jsonl" {
			format = importer.Iperf3Stream
		}
		o := iperf3json.Options{Release: iperf3view.Release(g.Release)}
		var shown bytes.Buffer
		for _, d := range docs {
			if d.Format != format || d.Run.Imported.Format != format || d.Run.Imported.File != g.Name {
				t.Errorf("%s: format %s, %+v", g.ID(), d.Format, d.Run.Imported)
			}
			if format == importer.Iperf3JSON {
				shown.Write(iperf3json.Document(d.Run, o))
				continue
			}
			o.Full = strings.HasPrefix(g.Name, "json_stream_full")
			s := iperf3json.NewStream(&shown, o)
			for _, e := range result.Unfold(d.Run) {
				s.Event(e)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		want, got := dev.Apply(g, string(g.Data), shown.String())
		if lost := missing(want, got); lost != nil {
			t.Errorf("%s: lost %v", g.ID(), lost)
		}
	}
	if count < 60 {
		t.Errorf("only %d documents", count)
	}
}

// formats are the cases with -f.
var formats = map[string]byte{
	"f_lower_k.client": 'k', "f_lower_m.client": 'm', "f_lower_g.client": 'g', "f_lower_t.client": 't',
	"f_upper_k.client": 'K', "f_upper_m.client": 'M', "f_upper_g.client": 'G', "f_upper_t.client": 'T',
	"server_i_f.server": 'K',
}

var reStamp = regexp.MustCompile(`(?m)^((?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d )?\d\d:\d\d:\d\d(?: \d{4})? )`)

// Every text of iperf3 is recognised, and shown again is the same to the last digit: amounts and
// rates, which were rounded each by itself, are found so that they agree with all of them.
func TestIperf3Texts(t *testing.T) {
	t.Parallel()
	dev := goldentest.ReadDeviations(t)
	count := 0
	for _, g := range goldentest.Iperf3(t, "*.txt") {
		if skipped(g) || strings.HasSuffix(g.Name, ".stderr") {
			continue
		}
		count++
		want := reStamp.ReplaceAllString(string(g.Data), "")
		docs, err := importer.Decode(g.Name, g.Data)
		if err != nil {
			if strings.Contains(want, "sec ") || strings.Contains(want, "connected to") {
				t.Errorf("%s: %v", g.ID(), err)
			}
			continue
		}
		var shown strings.Builder
		for i, d := range docs {
			if d.Format != importer.Iperf3Text || !d.Run.Imported.Rounded {
				t.Errorf("%s: format %s", g.ID(), d.Format)
			}
			o := iperf3text.Options{Release: iperf3view.Release(g.Release), Format: formats[g.Name], Verbose: d.Run.Wire.Version != "", SystemInfo: iperf3view.SystemInfo(d.Run)}
			r := iperf3text.New(&shown, o)
			if strings.Contains(want, "Server listening on") {
				if i > 0 {
					r.Introduced()
				}
				r.Listening(5201, i+1)
			}
			for _, e := range result.Unfold(d.Run) {
				r.Event(e)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		have := shown.String()
		if strings.HasPrefix(g.Name, "logfile") { // written past the log file
			have = strings.Replace(have, "Control connection MSS 1448\n", "", 1)
		}
		want, got := dev.Apply(g, figuresOnly(want), figuresOnly(have))
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
			t.Errorf("%s (-recorded +shown):\n%s", g.ID(), diff)
		}
	}
	if count < 180 {
		t.Errorf("only %d texts", count)
	}
}

// figuresOnly leaves out what is no figure of a test: a server's banner and rulers.
func figuresOnly(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "-----") || strings.HasPrefix(line, "Server listening on") || strings.TrimSpace(line) == "" || line == "iperf Done.\n" { // that stands on the error stream which is missing
			continue
		}
		out = append(out, line)
	}
	return strings.Join(out, "")
}

// Every error text is recognised, and its words are kept.
func TestIperf3Errors(t *testing.T) {
	t.Parallel()
	for _, g := range goldentest.Iperf3(t, "*.stderr.txt") {
		if skipped(g) || !strings.Contains(strings.ReplaceAll(string(g.Data), "iperf3: exiting", ""), "iperf3: ") {
			continue
		}
		docs, err := importer.Decode(g.Name, g.Data)
		if err != nil {
			t.Errorf("%s: %v", g.ID(), err)
			continue
		}
		if docs[0].Run.Err == nil || !strings.Contains(string(g.Data), docs[0].Run.Err.Text) {
			t.Errorf("%s: %+v", g.ID(), docs[0].Run.Err)
		}
	}
}

// Every output of NTTTCP is recognised; every number of it stands in the run, as it was written, and
// the figures that the model has agree with them.
func TestNTTTCP(t *testing.T) {
	t.Parallel()
	count := 0
	for _, g := range goldentest.NTTTCP(t, "*.*") {
		if g.Ext == "md" {
			continue
		}
		format := map[string]string{"xml": importer.NTTTCPXML, "json": importer.NTTTCPJSON, "txt": importer.NTTTCPText, "log": importer.NTTTCPText}[g.Ext]
		docs, err := importer.Decode(g.Name+"."+g.Ext, g.Data)
		if err != nil {
			if strings.Contains(string(g.Data), "throughput") {
				t.Errorf("%s: %v", g.ID(), err)
			} else {
				t.Logf("%s: no result: %v", g.ID(), err)
			}
			continue
		}
		count++
		var kept strings.Builder
		for _, d := range docs {
			if d.Format != format {
				t.Errorf("%s: format %s", g.ID(), d.Format)
			}
			for _, f := range d.Run.Imported.Figures {
				fmt.Fprintln(&kept, f.Name, f.Value)
			}
			for _, h := range []*result.Host{d.Run.Hosts.Client, d.Run.Hosts.Server} {
				if h != nil {
					fmt.Fprintln(&kept, h.SystemInfo, h.Tool.Version)
				}
			}
			plausible(t, g.ID(), d.Run)
		}
		if lost := missing(ofNTTTCP(string(g.Data)), kept.String()); lost != nil {
			t.Errorf("%s: lost %v", g.ID(), lost)
		}
	}
	if count < 60 {
		t.Errorf("only %d outputs", count)
	}
}

// ofNTTTCP leaves out of an output what is no figure: clocks before lines, rulers, banners.
func ofNTTTCP(s string) string {
	s = strings.NewReplacer("\x1b[2K", "", "\r", "\n").Replace(s)
	s = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d `).ReplaceAllString(s, "")
	s = regexp.MustCompile(`</\w+>|use_ipv6`).ReplaceAllString(s, "")
	return regexp.MustCompile(`(?m)^(\*\*\* .*|DBG : .*|.*\.xml|.*\.json)$`).ReplaceAllString(s, "")
}

// plausible compares the rate of the run's sum with the one that the output shows.
func plausible(t *testing.T, id string, r *result.Run) {
	t.Helper()
	var shown float64
	for _, f := range r.Imported.Figures {
		switch {
		case f.Name == "throughput mbps":
			fmt.Sscanf(f.Value, "%f", &shown)
			shown *= 1e6
		case f.Name == "throughput":
			var unit string
			fmt.Sscanf(f.Value, "%f%s", &shown, &unit)
			shown *= map[string]float64{"Gbps": 1e9, "Mbps": 1e6, "Kbps": 1e3, "bps": 1}[unit]
		}
	}
	if shown == 0 {
		return
	}
	if len(r.Sums) != 1 {
		t.Errorf("%s: %d sums", id, len(r.Sums))
		return
	}
	total := r.Sums[0].Receiver
	if r.End == result.Client {
		total = r.Sums[0].Sender
	}
	if total == nil || total.Rate() < shown*0.99 || total.Rate() > shown*1.06 { // 1.3.4's "mbps" is of 2^20
		t.Errorf("%s: rate %+v, the output says %g", id, total, shown)
	}
}
