package importer_test

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/importer"
	"github.com/fullbore-net/fullbore/internal/render/goldentest"
	"github.com/fullbore-net/fullbore/internal/render/ntttcplinux"
	"github.com/fullbore-net/fullbore/internal/render/ntttcpwin"
	"github.com/fullbore-net/fullbore/result"
)

// verbatim are the figures of the recordings that no field of a run holds: they are kept as they
// stand (Imported.Figures) and nowhere else. By format and name, each with the reason. Every other
// figure comes back, to its last digit, from the run's own fields.
var verbatim = map[string]string{
	"ntttcp-text: setting.client address":                 "the address that a sender bound to; 0.0.0.0 where it bound to none",
	"ntttcp-text: setting.cpu affinity":                   "to which processor the program bound its threads: what that did to the rate is in the rate",
	"ntttcp-text: setting.client source port starting at": "the streams' own ports are in the milestones",
	"ntttcp-text: setting.show device interrupts for":     "which lines of /proc/interrupts were counted; the count itself is there",
	"ntttcp-text: setting.save output to xml file":        "a file name",
	"ntttcp-text: setting.save output to json file":       "a file name",
	"ntttcp-xml: parameters.recv_socket_buff":             "of a sender: what it would receive into, and it receives nothing",
	"ntttcp-json: parameters.recv_socket_buff":            "of a sender: what it would receive into, and it receives nothing",
	"ntttcp-json: cycles cycles/byte":                     "the document tells neither the processors nor their clock, from which it was made",
	"ntttcp-xml: cycles cycles/byte":                      "the documents of 1.3.4 and of the tag 1.4.0 tell neither the processors nor their clock, from which it was made",
	"ntttcp-windows-text: cpu %":                          "a share of all processors, whose number the tables do not tell",
	"ntttcp-windows-text: cycles cycles/byte":             "the tables tell neither the processors nor their clock, from which it was made",
}

// elsewhere are figures that a run holds, but from which the original's outputs are not made again.
var elsewhere = map[string]func(*result.Run) string{
	// A stream stands for a thread, whose connections share its figures.
	"conns_tested": func(r *result.Run) string { return fmt.Sprint(r.Test.Streams) },
}

var reIndex = regexp.MustCompile(`\[\d+\]`)

// figureName is that of a figure without its index.
func figureName(f result.Figure) string { return reIndex.ReplaceAllString(f.Name, "[]") }

// missingFigures are those of want that got does not have as often.
func missingFigures(want, got []result.Figure) (out []result.Figure) {
	have := map[result.Figure]int{}
	for _, f := range got {
		have[f]++
	}
	for _, f := range want {
		if have[f]--; have[f] < 0 {
			out = append(out, f)
		}
	}
	return out
}

// bare is a run as a history keeps it, without what it was read from.
func bare(t *testing.T, r *result.Run) *result.Run {
	t.Helper()
	copied := *r
	copied.Imported = nil
	data, err := stdjson.Marshal(&copied)
	if err != nil {
		t.Fatal(err)
	}
	var out result.Run
	if err := stdjson.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

// printing is what the command line of the original chose to print, as its output shows.
func printing(g goldentest.Golden, docs []importer.Document) ntttcplinux.Options {
	has := map[string]string{}
	for _, d := range docs {
		for _, f := range d.Run.Imported.Figures {
			has[f.Name] = f.Value
		}
	}
	o := ntttcplinux.Options{
		Zone: time.UTC, Verbose: has["setting.verbose mode"] == "enabled" || has["parameters.verbose"] == "True", Quiet: has["setting.quiet mode"] == "enabled",
	}
	switch {
	case strings.HasPrefix(g.Name, "30-"):
		o.Release = ntttcplinux.R134
	case strings.HasPrefix(g.Name, "31-"):
		o.Release = ntttcplinux.R140Tag
	case strings.HasPrefix(g.Name, "32-"):
		o.Release = ntttcplinux.R140
	}
	asked := func(name string) bool { return has[name] != "" && has[name] != "0" }
	_, o.Settings.ShowRetransmits = has["tcp_retransmits syn_retrans_per_sec"]
	if asked("packets_sent") {
		o.Settings.Interface = "lo"
	}
	if asked("total_interrupts") || asked("total_interrupts count") || has["avg_packets_per_interrupt packets/interrupt"] != "0.000" && has["avg_packets_per_interrupt packets/interrupt"] != "" {
		o.Settings.Interrupts = "some"
	}
	return o
}

// exported prints runs in the form that they were read from.
func exported(t *testing.T, format string, runs []*result.Run, o ntttcplinux.Options) []byte {
	t.Helper()
	var b bytes.Buffer
	for i, r := range runs {
		var err error
		switch format {
		case importer.NTTTCPXML:
			err = ntttcplinux.WriteXML(&b, r, o)
		case importer.NTTTCPJSON:
			err = ntttcplinux.WriteJSON(&b, r, o)
		case importer.NTTTCPText:
			o.Again = i > 0
			w := ntttcplinux.New(&b, o)
			for _, e := range result.Unfold(r) {
				w.Event(e)
			}
			err = w.Close()
		case importer.WindowsXML:
			err = ntttcpwin.WriteXML(&b, r, ntttcpwin.Options{})
		case importer.WindowsText:
			err = ntttcpwin.WriteTables(&b, r, ntttcpwin.Options{})
		default:
			t.Fatalf("no form for %s", format)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// Every figure of every output of NTTTCP that was recorded is read, kept, and printed again from the
// fields of the run alone: what goes in comes out, but for the figures that are listed above.
func TestFiguresAreCarried(t *testing.T) {
	t.Parallel()
	goldens := goldentest.NTTTCP(t, "[0-9]*")
	for _, name := range []string{"composed.txt", "composed.xml"} { // the form of a real one of Windows
		data, err := os.ReadFile(filepath.Join(goldentest.Root(t), "internal/render/ntttcpwin/testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		goldens = append(goldens, goldentest.Golden{Release: "ntttcp-windows", Name: strings.TrimSuffix(name, filepath.Ext(name)), Ext: filepath.Ext(name)[1:], Data: data})
	}
	used := map[string]bool{}
	count := 0
	for _, g := range goldens {
		docs, err := importer.Decode(g.Name+"."+g.Ext, g.Data)
		if err != nil {
			t.Errorf("%s: %v", g.ID(), err)
			continue
		}
		var want, got []result.Figure
		var runs []*result.Run
		for _, d := range docs {
			want = append(want, d.Run.Imported.Figures...)
			runs = append(runs, bare(t, d.Run))
		}
		printed := exported(t, docs[0].Format, runs, printing(g, docs))
		again, err := importer.Decode(g.Name, printed)
		if err != nil {
			t.Errorf("%s: printed again: %v\n%s", g.ID(), err, printed)
			continue
		}
		for _, d := range again {
			got = append(got, d.Run.Imported.Figures...)
		}
		count += len(want)
		known := func(f result.Figure) bool {
			name := figureName(f)
			if of := elsewhere[name]; of != nil {
				return slices.ContainsFunc(runs, func(r *result.Run) bool { return of(r) == f.Value })
			}
			key := docs[0].Format + ": " + name
			used[key] = used[key] || verbatim[key] != ""
			return verbatim[key] != ""
		}
		for _, f := range missingFigures(want, got) {
			if !known(f) {
				t.Errorf("%s: %q is lost", g.ID(), f)
			}
		}
		for _, f := range missingFigures(got, want) {
			if name := figureName(f); elsewhere[name] == nil && verbatim[docs[0].Format+": "+name] == "" {
				t.Errorf("%s: %q was never said", g.ID(), f)
			}
		}
	}
	for key := range verbatim {
		if !used[key] {
			t.Errorf("%s: no recording needs this row any more", key)
		}
	}
	if count < 2500 {
		t.Errorf("only %d figures", count)
	}
}

// reNoResult are the lines of recordings that tell of no test: a server's banner, warnings, the first
// line of an output that went on elsewhere.
var reNoResult = regexp.MustCompile(`^(-+|Server listening on .*|(?i)warning: .*|iperf3: exiting|Control connection MSS \d+|)$`)

// Every recording is read, or tells of no test; and a run that is kept and read back is the same.
func TestEveryGoldenIsRead(t *testing.T) {
	t.Parallel()
	root := filepath.Join(goldentest.Root(t), "testdata", "goldens")
	files := 0
	listed := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) == ".md" {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		reason := false
		for key := range noResults {
			if strings.HasPrefix(filepath.Base(path), key+".") {
				listed[key], reason = true, true
			}
		}
		docs, err := importer.Decode(name, data)
		if err != nil {
			for line := range strings.Lines(string(data)) {
				if !reason && !reNoResult.MatchString(strings.TrimSpace(line)) {
					t.Errorf("%s: %v: %q", name, err, line)
					break
				}
			}
			return nil
		}
		for _, d := range docs {
			once, err := stdjson.Marshal(d.Run)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			var again result.Run
			if err := stdjson.Unmarshal(once, &again); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if twice, err := stdjson.Marshal(&again); err != nil || !bytes.Equal(once, twice) {
				t.Errorf("%s: kept and read back it is another: %v", name, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 500 {
		t.Errorf("only %d recordings", files)
	}
	for key := range noResults {
		if !listed[key] {
			t.Errorf("%s: it is listed as no result and is not there", key)
		}
	}
}

// What Windows tells of calls and connections comes back, too: latency (-lm) and EStats (-es).
func TestWindowsLatencyAndEStats(t *testing.T) {
	t.Parallel()
	thread := 0
	run := &result.Run{
		Schema: result.Schema, End: result.Client, Protocol: "ntttcp", Test: result.Test{Transport: "tcp", Direction: "up", Streams: 1, BlockSize: 65536, Duration: 10},
		NTTTCP: &result.NTTTCP{Dialect: "windows", Ports: 1, Threads: 1, Connections: 1, BasePort: 5001},
		Streams: []result.Stream{{
			ID: 1, Direction: result.Up, Thread: &thread, Sender: &result.Total{End: 10, Bytes: 1000 * 65536},
			IO:     &result.IOCount{Completions: 1000, Latency: &result.CallLatency{Sum: 1000 * 51234, Min: 20111, Max: 9876543}},
			EStats: []result.EStats{{Moment: "Measurement_Begin", Structures: []result.EStatsStructure{{Name: "TCP_ESTATS_PATH_ROD_v0", Properties: []result.EStatsProperty{{Name: "FastRetran", Value: "7"}}}}}},
		}},
		Machines: &result.HostTotals{Client: &result.HostTotal{Seconds: 10, Cores: 4, CPU: &result.CPUTime{System: 4e9, Idle: 36e9}}},
	}
	run = result.Fold(result.Unfold(run))
	o := ntttcpwin.Options{Settings: ntttcpwin.Settings{Latency: true, EStats: true}}
	var doc, tables bytes.Buffer
	if err := ntttcpwin.WriteXML(&doc, run, o); err != nil {
		t.Fatal(err)
	}
	if err := ntttcpwin.WriteTables(&tables, run, o); err != nil {
		t.Fatal(err)
	}
	for format, data := range map[string][]byte{importer.WindowsXML: doc.Bytes(), importer.WindowsText: tables.Bytes()} {
		docs, err := importer.Decode("x", data)
		if err != nil || docs[0].Format != format {
			t.Fatalf("%s: %v\n%s", format, err, data)
		}
		s := docs[0].Run.Streams[0]
		if s.IO == nil || s.IO.Latency == nil || s.IO.Completions != 1000 || *s.IO.Latency != *run.Streams[0].IO.Latency {
			t.Errorf("%s: %+v", format, s.IO)
		}
		if format == importer.WindowsXML && (len(s.EStats) != 1 || s.EStats[0].Moment != "Measurement_Begin" || s.EStats[0].Structures[0].Properties[0].Value != "7") {
			t.Errorf("%+v", s.EStats)
		}
	}
}

// The tests of a receiver that stays (-H) are told apart; the Ctrl-C that ends it breaks off none of
// them, one in a test does.
func TestNTTTCPInterrupted(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]bool{"10-hold.receiver": {false, false}, "17-sender-ctrl-c.sender": {true}, "25-data-reset.receiver": {false}} {
		for _, g := range goldentest.NTTTCP(t, name+".txt") {
			docs, err := importer.Decode(name, g.Data)
			if err != nil {
				t.Fatal(err)
			}
			var got []bool
			for _, d := range docs {
				got = append(got, d.Run.Err != nil)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: broke off: %v, want %v", name, got, want)
			}
		}
	}
}

// What a text tells of a test's course stands in its run: what was agreed on, who connected when, and
// which reports were of the warm-up.
func TestNTTTCPCourse(t *testing.T) {
	t.Parallel()
	read := func(name string) *result.Run {
		docs, err := importer.Decode(name, goldentest.NTTTCP(t, name+".txt")[0].Data)
		if err != nil {
			t.Fatal(err)
		}
		return docs[0].Run
	}
	r := read("07-warmup-cooldown.sender")
	if r.NTTTCP.Cycle == nil || *r.NTTTCP.Cycle != 4 || r.End != result.Client {
		t.Errorf("%s, %+v", r.End, r.NTTTCP)
	}
	if len(r.Rows) != 5 || !r.Rows[1].Omitted || r.Rows[2].Omitted || r.Rows[0].Start != -1 || r.Rows[2].Start != 0 {
		t.Errorf("%+v", r.Rows)
	}
	r = read("22-fixed-source-port.sender")
	if n := r.NTTTCP; n.Ports != 2 || n.Threads != 2 || n.Connections != 2 || r.Test.Streams != 8 || len(r.Streams) != 4 {
		t.Errorf("%+v, %d streams", n, len(r.Streams))
	}
	var ports []int
	for _, m := range r.Milestones {
		if m.Code == result.MilestoneConnection {
			ports = append(ports, m.Local.Port)
		}
	}
	slices.Sort(ports)
	if !slices.Equal(ports, []int{46100, 46101, 46102, 46103, 46104, 46105, 46106, 46107}) {
		t.Errorf("%v", ports)
	}
	if at := r.Milestones[0].Time; at.Year() != 1 || at.Format(time.TimeOnly) != "07:11:32" {
		t.Errorf("%v", at)
	}
}
