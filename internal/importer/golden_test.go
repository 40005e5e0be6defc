package importer_test

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/importer"
	"github.com/fullbore-net/fullbore/internal/render/goldentest"
	"github.com/fullbore-net/fullbore/internal/render/iperf3json"
	"github.com/fullbore-net/fullbore/internal/render/iperf3text"
	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/internal/render/json"
	"github.com/fullbore-net/fullbore/internal/render/jsonstream"
	"github.com/fullbore-net/fullbore/internal/render/ntttcpwin"
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

// What NTTTCP's text says of the test itself has the model's own fields, too.
func TestNTTTCPSettings(t *testing.T) {
	t.Parallel()
	for name, check := range map[string]func(*result.Run) bool{
		"14-bandwidth-limit.sender":                 func(r *result.Run) bool { return r.Test.Bitrate*int64(r.Test.Streams) == 200e6 },
		"15-fq-rate-limit.sender":                   func(r *result.Run) bool { return r.Test.FQRate*int64(r.Test.Streams) == 200e6 && r.Test.Bitrate == 0 },
		"08-multi-client.receiver":                  func(r *result.Run) bool { return r.NTTTCP.MultiClient && !r.NTTTCP.LastClient },
		"08-multi-client.sender2":                   func(r *result.Run) bool { return r.NTTTCP.LastClient && !r.NTTTCP.MultiClient },
		"04-tcp-verbose-xml-json-counters.sender":   func(r *result.Run) bool { return r.Machines.Client.Packets.Interface == "lo" },
		"04-tcp-verbose-xml-json-counters.receiver": func(r *result.Run) bool { return r.Test.Bitrate == 0 && r.Test.FQRate == 0 && !r.Test.NoDelay },
	} {
		found := false
		for _, g := range goldentest.NTTTCP(t, name+".txt") {
			docs, err := importer.Decode(name, g.Data)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			found = true
			if !check(docs[0].Run) {
				t.Errorf("%s: %+v, %+v, %+v", name, docs[0].Run.Test, docs[0].Run.NTTTCP, docs[0].Run.Machines)
			}
		}
		if !found {
			t.Errorf("%s: no recording", name)
		}
	}
}

// The program for Windows: tables and document of one run, each by itself.
func TestWindows(t *testing.T) {
	t.Parallel()
	for file, format := range map[string]string{"composed.txt": importer.WindowsText, "composed.xml": importer.WindowsXML} {
		data, err := os.ReadFile(filepath.Join(goldentest.Root(t), "internal/render/ntttcpwin/testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, crlf := range []bool{false, true} {
			if crlf {
				data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
			}
			docs, err := importer.Decode(file, data)
			if err != nil || len(docs) != 1 || docs[0].Format != format {
				t.Fatalf("%s: %v, %+v", file, err, docs)
			}
			r := docs[0].Run
			if r.End != result.Client || len(r.Streams) != 2 || r.NTTTCP.Dialect != "windows" {
				t.Errorf("%s: end %s, %d streams, %+v", file, r.End, len(r.Streams), r.NTTTCP)
			}
			var sum int64
			for i, want := range []int64{89792 * 65536, 89408 * 65536} {
				got := r.Streams[i].Sender.Bytes
				if sum += got; got < want-want/1000 || got > want+want/1000 {
					t.Errorf("%s: thread %d sent %d bytes, want about %d", file, i, got, want)
				}
			}
			if sum != 11200<<20 {
				t.Errorf("%s: %d bytes in all", file, sum)
			}
			if p := r.Machines.Client.Packets; p == nil || p.Sent != 8052107 || p.Received != 402611 || p.Retransmitted != 118 {
				t.Errorf("%s: %+v", file, p)
			}
			var kept, shown strings.Builder
			for _, f := range r.Imported.Figures {
				fmt.Fprintln(&kept, f.Name, f.Value)
			}
			text := regexp.MustCompile(`</\w+>|use_ipv6|ipv6|Copyright.*|index="\d+"|version="[^"]*"|"CLIENT1"`).ReplaceAllString(string(data), "")
			if format == importer.WindowsText {
				text = strings.ReplaceAll(strings.ReplaceAll(text, "     0   10.001", "10.001"), "     1   10.002", "10.002")
			}
			if lost := missing(text, kept.String()); lost != nil {
				t.Errorf("%s: lost %v", file, lost)
			}
			// The tables again, from the figures that were read.
			if err := ntttcpwin.WriteTables(&shown, r, ntttcpwin.Options{}); err != nil {
				t.Fatal(err)
			}
			for _, figure := range []string{"11200.000000", "1119.729", "8052107", "118", "179200.000"} {
				if !strings.Contains(shown.String(), figure) {
					t.Errorf("%s: shown again without %s:\n%s", file, figure, shown.String())
				}
			}
		}
	}
}

// Fullbore's own documents come back whole.
func TestOurs(t *testing.T) {
	t.Parallel()
	g := goldentest.One(t, "3.21", "tcp_json.client.json")
	docs, err := importer.Decode(g.Name, g.Data)
	if err != nil {
		t.Fatal(err)
	}
	run := docs[0].Run
	run.Imported = nil
	rep := &result.Report{Schema: result.Schema, Kind: "test", Runs: []*result.Run{run, run}, Inputs: []string{"x"}, Verdicts: []result.Verdict{}, Items: []result.Item{}, Notices: []result.Notice{}}
	var one, two, events bytes.Buffer
	if err := json.Write(&one, run); err != nil {
		t.Fatal(err)
	}
	if err := json.WriteReport(&two, rep); err != nil {
		t.Fatal(err)
	}
	s := jsonstream.New(&events)
	for range 2 {
		for _, e := range result.Unfold(run) {
			s.Event(e)
		}
	}
	docs, err = importer.Decode("x", one.Bytes())
	if err != nil || len(docs) != 1 || docs[0].Format != importer.Fullbore {
		t.Fatalf("a run: %v, %+v", err, docs)
	}
	if diff := cmp.Diff(run, docs[0].Run); diff != "" {
		t.Error(diff)
	}
	docs, err = importer.Decode("x", two.Bytes())
	if err != nil || len(docs) != 1 {
		t.Fatalf("a report: %v, %+v", err, docs)
	}
	if diff := cmp.Diff(rep, docs[0].Report); diff != "" {
		t.Error(diff)
	}
	docs, err = importer.Decode("x", events.Bytes())
	if err != nil || len(docs) != 2 || docs[1].Format != importer.FullboreEvent {
		t.Fatalf("events: %v, %d documents", err, len(docs))
	}
	if len(docs[1].Run.Rows) != len(run.Rows) || len(docs[1].Run.Streams) != len(run.Streams) {
		t.Errorf("of the events came %d rows, %d streams", len(docs[1].Run.Rows), len(docs[1].Run.Streams))
	}
}

// What is no result says so.
func TestForeign(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "hello\n", "{}", "{", "[]", "<html></html>", "<ntttcps", `{"schema":99,"runs":[]}`, `{"start":1}`, "\x00\x01", `{"event":"start","data":1}`,
		"<samples><x/></samples>", `{"record":{}}`,
	} {
		if docs, err := importer.Decode("x", []byte(text)); err == nil {
			t.Errorf("%q: %+v", text, docs[0])
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, g := range append(goldentest.Iperf3(f, "tcp_P3*"), goldentest.NTTTCP(f, "04*")...) {
		f.Add(g.Data)
	}
	for _, file := range []string{"composed.txt", "composed.xml"} {
		data, err := os.ReadFile(filepath.Join(goldentest.Root(f), "internal/render/ntttcpwin/testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, err := importer.Decode("x", data)
		if err != nil {
			return
		}
		for _, d := range docs {
			if d.Run == nil && d.Report == nil {
				t.Error("a document of nothing")
			}
			if _, err := stdjson.Marshal(d.Run); err != nil {
				t.Errorf("it has no JSON: %v", err)
			}
		}
	})
}

// ofNTTTCP leaves out of an output what is no figure: clocks before lines, rulers, banners.
func ofNTTTCP(s string) string {
	s = strings.NewReplacer("\x1b[2K", "", "\r", "\n").Replace(s)
	s = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d `).ReplaceAllString(s, "")
	s = regexp.MustCompile(`</\w+>|use_ipv6`).ReplaceAllString(s, "")
	return regexp.MustCompile(`(?m)^(\*\*\* .*|.*\.xml|.*\.json)$`).ReplaceAllString(s, "")
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
