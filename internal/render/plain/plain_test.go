package plain_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/conclude/sample"
	"github.com/fullbore-net/fullbore/internal/render/plain"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/result"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func stop(e result.Error) func(*result.Finish, **result.Error) {
	return func(_ *result.Finish, err **result.Error) { *err = &e }
}

// cases cover each layout; more kinds of sentences are in package conclude's goldens.
func cases() map[string]sample.Test {
	out := map[string]sample.Test{}
	add := func(name string, t sample.Test, change func(*sample.Test)) {
		if change != nil {
			change(&t)
		}
		out[name] = t
	}
	interrupt := stop(result.Error{Code: "interrupted", Text: "interrupted by signal Interrupt(2)", Interrupted: true})
	add("up", sample.New(), func(t *sample.Test) { t.LossShare = 3e-6 })
	add("down-foreign", sample.Foreign("3.12"), func(t *sample.Test) { t.Direction = "down" })
	add("both-4-streams", sample.New(), func(t *sample.Test) {
		t.Direction, t.Streams, t.Rates, t.Back, t.LossShare = "both", 4, sample.Flat(9.4e9, 3), sample.Flat(88e6, 3), 1e-6
	})
	add("64-streams", sample.New(), func(t *sample.Test) { t.Streams, t.Rates = 64, sample.Flat(9.4e9, 2) })
	add("warm-up", sample.New(), func(t *sample.Test) { t.Omit, t.Rates, t.Step = 2, sample.Flat(50e6, 6), 0.25 })
	add("udp", sample.New(), func(t *sample.Test) {
		t.UDP, t.Rates, t.LossShare = true, sample.Flat(100e6, 3), 0.0004
		t.Tune = func(head *result.Run, _ *[]result.Event) { head.Test.Bitrate = 100e6 }
	})
	add("udp-4-streams-lossy", sample.NewUDP(), func(t *sample.Test) {
		t.Streams, t.Bitrate, t.LossShare, t.Rates = 4, 25e6, 0.01, sample.Flat(99e6, 3)
		t.Account = func(_ result.Direction, u *result.UDPStream) {
			drops, network := u.Loss.Lost-2, int64(2)
			u.Received.SocketDrops, u.Loss.Socket, u.Loss.Network, u.Loss.Tail = &drops, &drops, &network, 1
			u.Received.Reordered, u.Received.MaxExtent, u.Received.Duplicates, u.Received.Foreign = 5, 12, 3, 1
			u.Received.Periods = &result.LossPeriods{Runs: 20, Longest: 9, MeanLength: 3.25}
		}
	})
	add("udp-foreign", sample.ForeignUDP("3.12"), func(t *sample.Test) { t.Rates, t.LossShare = sample.Flat(100e6, 2), 0.002 })
	add("udp-down-foreign", sample.ForeignUDP("3.12"), func(t *sample.Test) { t.Direction, t.Rates = "down", sample.Flat(100e6, 2) })
	add("udp-both", sample.NewUDP(), func(t *sample.Test) {
		t.Direction, t.Rates = "both", sample.Flat(100e6, 2)
		t.Tune = func(head *result.Run, _ *[]result.Event) { head.Test.Path.Uncut = true }
	})
	add("udp-sender-short", sample.NewUDP(), func(t *sample.Test) {
		t.Bitrate, t.Rates = 200e6, sample.Flat(100e6, 2)
		t.Account = func(_ result.Direction, u *result.UDPStream) {
			u.Sent.Unsent, u.Sent.Refused, u.Sent.Stalls, u.Sent.LargestBurst = 5000, 12, 7, 90
		}
	})
	add("window-asked-for", sample.New(), func(t *sample.Test) {
		t.Rates = sample.Flat(941e6, 2)
		t.Tune = func(head *result.Run, extra *[]result.Event) {
			head.Test.Window, head.Test.Congestion = 8<<20, "reno"
			for i := range head.Streams {
				head.Streams[i].Buffers.RequestedBytes = 8 << 20
			}
			*extra = append(*extra, result.Event{Kind: result.KindNotice, Notice: &result.Notice{
				Code: "window-clamped", End: result.Client, Level: result.Warn,
				Text: "asked for a window of 8.00 MiB, got 4.00 MiB: net.core.wmem_max is 4194304", Fix: "sysctl -w net.core.wmem_max=8388608",
			}})
		}
	})
	add("said-by-both", sample.New(), func(t *sample.Test) {
		t.Rates = t.Rates[:2]
		t.Tune = func(_ *result.Run, extra *[]result.Event) {
			for _, e := range []result.End{result.Client, result.Server} {
				*extra = append(*extra, result.Event{Kind: result.KindNotice, End: e, Notice: &result.Notice{
					Code: "discard-unavailable", End: e, Level: result.Info, Text: "payload is copied out of the kernel",
				}})
			}
		}
	})
	add("known-machines", sample.New(), func(t *sample.Test) {
		speed := int64(1e9)
		t.Rates = sample.Flat(941e6, 2)
		t.Client = result.Host{
			Name: "web1", Tool: &result.Tool{Name: "fullbore", Version: "0.1.0"}, OS: "linux", Release: "6.1.0", Cores: 1, Virtual: "kvm",
			NIC: &result.NIC{Name: "eth0", SpeedBPS: &speed, MTU: 1500, Duplex: "half"},
		}
		t.Server.Name = "db2"
	})
	add("interrupted", sample.Foreign("3.21"), func(t *sample.Test) { t.Rates, t.NoPeer, t.Finishing = t.Rates[:3], true, interrupt })
	add("peer-lost", sample.New(), func(t *sample.Test) {
		t.Rates, t.Broken = t.Rates[:2], true
		t.Finishing = stop(result.Error{Code: "peer-closed", Text: "the server closed the control connection", Remote: true})
	})
	add("never-started", sample.New(), func(t *sample.Test) {
		t.Rates, t.Broken = nil, true
		t.Finishing = stop(result.Error{Code: "busy", Text: "the server is busy running a test", Remote: true})
	})
	add("nothing-arrived", sample.New(), func(t *sample.Test) { t.Rates, t.Sent = []float64{0, 0}, []float64{312000, 0} })
	add("nothing-known-of-tcp", sample.New(), func(t *sample.Test) {
		t.Rates = t.Rates[:2]
		t.Finishing = func(f *result.Finish, _ **result.Error) {
			for i := range f.Streams {
				f.Streams[i].TCP, f.Streams[i].RemoteTCP, f.Streams[i].Sender.Retransmits = nil, nil, nil
			}
			f.CPU = result.CPUs{}
		}
	})
	add("server-recorded", sample.New(), func(t *sample.Test) { t.Recorder, t.Rates = result.Server, t.Rates[:2] })
	return out
}

// live prints a test the way it happens: events first, the concluded run at the end.
func live(test sample.Test, o plain.Options) (string, *result.Run) {
	var b bytes.Buffer
	r := plain.New(&b, o)
	events := test.Events()
	for _, e := range events {
		r.Event(e)
	}
	run := result.Fold(events)
	before := len(run.Notices)
	conclude.Conclude(run)
	for i := range run.Notices[before:] {
		r.Event(result.Event{Kind: result.KindNotice, End: run.End, Notice: &run.Notices[before+i]})
	}
	r.End(run)
	return b.String(), run
}

func TestGolden(t *testing.T) {
	for name, test := range cases() {
		t.Run(name, func(t *testing.T) {
			got, _ := live(test, plain.Options{})
			golden(t, name, got)
		})
	}
}

func TestColor(t *testing.T) {
	got, _ := live(cases()["window-asked-for"], plain.Options{Color: true})
	golden(t, "color", strings.ReplaceAll(got, "\x1b", "ESC"))
	mono, _ := live(cases()["window-asked-for"], plain.Options{})
	if strings.Contains(mono, "\x1b") {
		t.Error("colour without being told")
	}
}

// A stored run prints as it did live, but for notices: live they come when they happen.
func TestReplay(t *testing.T) {
	for name, test := range cases() {
		want, run := live(test, plain.Options{})
		var b bytes.Buffer
		if err := plain.Write(&b, run, plain.Options{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(withoutInline(want), withoutInline(b.String())); diff != "" {
			t.Errorf("%s: -live +replayed:\n%s", name, diff)
		}
	}
}

func withoutInline(s string) string {
	var out []string
	for l := range strings.SplitSeq(s, "\n") {
		if !strings.HasPrefix(l, "! ") {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

// On a terminal prose is wrapped; numbers in columns stay as they are.
func TestWidth(t *testing.T) {
	text, run := live(cases()["both-4-streams"], plain.Options{Width: 80})
	golden(t, "width-80", text)
	flat, _ := live(cases()["both-4-streams"], plain.Options{})
	if a, b := strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(flat), " "); a != b {
		t.Errorf("wrapping changed words:\n%s", cmp.Diff(b, a))
	}
	var b bytes.Buffer
	plain.New(&b, plain.Options{Width: 80}).End(run)
	for l := range strings.SplitSeq(b.String(), "\n") {
		if screen.Width(l) > 80 && !strings.Contains(l, "fix: ") {
			t.Errorf("%d columns: %q", screen.Width(l), l)
		}
	}
}

// After a live view there was no header: the end block alone tells who the ends are.
func TestEndAlone(t *testing.T) {
	_, run := live(cases()["known-machines"], plain.Options{})
	var b bytes.Buffer
	r := plain.New(&b, plain.Options{})
	r.End(run)
	r.End(run)
	golden(t, "end-alone", b.String())
}

// TestStableWidths: all interval lines of a run are equally long, whatever comes.
func TestStableWidths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		test := sample.New()
		test.Direction = rapid.SampledFrom([]string{"up", "down", "both"}).Draw(t, "direction")
		test.UDP = rapid.Bool().Draw(t, "udp")
		test.Extended = rapid.Bool().Draw(t, "extended")
		test.Streams = rapid.IntRange(1, 3).Draw(t, "streams")
		test.Rates = rapid.SliceOfN(rapid.Float64Range(0, 9.9e11), 1, 12).Draw(t, "rates")
		test.RTT = rapid.Int64Range(0, 3e6).Draw(t, "rtt")
		test.MSS = 1448
		test.LossShare = rapid.Float64Range(0, 1e-3).Draw(t, "loss")
		text, _ := live(test, plain.Options{})
		width := 0
		rows := 0
		for l := range strings.SplitSeq(text, "\n") {
			if !strings.Contains(l, " → ") || !strings.HasSuffix(l, "%") || strings.Contains(l, "Jain") {
				continue
			}
			rows++
			if width == 0 {
				width = screen.Width(l)
			}
			if screen.Width(l) != width {
				t.Fatalf("%d and %d columns:\n%s", width, screen.Width(l), text)
			}
		}
		want := len(test.Rates)
		if test.Direction == "both" {
			want *= 2
		}
		if rows != want {
			t.Fatalf("%d rows of %d:\n%s", rows, want, text)
		}
	})
}

// Foreign words cannot reach the terminal as control sequences.
func TestHostile(t *testing.T) {
	test := sample.New()
	evil := "x\x1b]0;pwn\x07\n\u202e"
	test.Client.Name, test.Server.Name = evil, "other"+evil
	test.Server.Tool = &result.Tool{Name: evil, Version: evil}
	test.Server.OS, test.CC = evil, evil
	test.Tune = func(head *result.Run, extra *[]result.Event) {
		head.Test.Target, head.Test.File, head.Test.Congestion = evil, evil, evil
		*extra = append(*extra, result.Event{Kind: result.KindNotice, Notice: &result.Notice{Code: evil, Level: result.Warn, Text: evil, Fix: evil}})
	}
	test.Finishing = stop(result.Error{Code: evil, Text: evil, Remote: true})
	text, run := live(test, plain.Options{})
	var b bytes.Buffer
	if err := plain.Table(&b, []*result.Run{run}, plain.Options{}); err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexAny(text+b.String(), "\x1b\x07\u202e"); i >= 0 {
		t.Errorf("control characters came through: %q", (text + b.String())[max(0, i-40):i+10])
	}
}

// lines counts writes: each must be one whole line.
type lines struct {
	t    *testing.T
	left int // writes before the writer fails; −1 = never
	n    int
}

var errFull = errors.New("disk full")

func (l *lines) Write(p []byte) (int, error) {
	if l.left == 0 {
		return 0, errFull
	}
	l.left--
	l.n++
	if bytes.Count(p, []byte("\n")) != 1 || p[len(p)-1] != '\n' {
		l.t.Errorf("not one line: %q", p)
	}
	return len(p), nil
}

func TestWholeLines(t *testing.T) {
	_, run := live(cases()["both-4-streams"], plain.Options{})
	w := &lines{t: t, left: -1}
	if err := plain.Write(w, run, plain.Options{Color: true}); err != nil || w.n < 20 {
		t.Errorf("%d lines, %v", w.n, err)
	}
	w = &lines{t: t, left: 3}
	if err := plain.Write(w, run, plain.Options{}); !errors.Is(err, errFull) || w.n != 3 {
		t.Errorf("after a failure: %d lines, %v", w.n, err)
	}
}

// An interval line appears as soon as both ends' rows are there, whichever is first, and
// without a fullbore at the other end at once.
func TestPairing(t *testing.T) {
	rows := func(s string) int { return strings.Count(s, " %\n") }
	play := func(test sample.Test, order func([]result.Event) []result.Event) []int {
		var b bytes.Buffer
		r := plain.New(&b, plain.Options{})
		var out []int
		for _, e := range order(test.Events()) {
			before := rows(b.String())
			r.Event(e)
			if e.Kind == result.KindInterval {
				out = append(out, rows(b.String())-before)
			}
		}
		return out
	}
	same := func(e []result.Event) []result.Event { return e }
	swapped := func(e []result.Event) []result.Event {
		for i := 2; i+1 < len(e) && e[i].Kind == result.KindInterval; i += 2 {
			e[i], e[i+1] = e[i+1], e[i]
		}
		return e
	}
	dropSecond := func(e []result.Event) []result.Event { return append(e[:5:5], e[6:]...) } // the peer's row 1
	test := sample.New()
	test.Rates = test.Rates[:3]
	foreign := sample.Foreign("3.12")
	foreign.Rates = foreign.Rates[:3]
	for _, c := range []struct {
		name  string
		test  sample.Test
		order func([]result.Event) []result.Event
		want  []int
	}{
		{"local first", test, same, []int{0, 1, 0, 1, 0, 1}},
		{"remote first", test, swapped, []int{0, 1, 0, 1, 0, 1}},
		{"remote missing", test, dropSecond, []int{0, 1, 0, 1, 1}},
		{"foreign", foreign, same, []int{1, 1, 1}},
	} {
		if diff := cmp.Diff(c.want, play(c.test, c.order)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.name, diff)
		}
	}
}

func TestStub(t *testing.T) {
	test := sample.New()
	test.Rates = test.Rates[:1]
	events := test.Events()
	var scrap []result.Event
	for _, e := range events {
		if e.Kind == result.KindInterval {
			row := *e.Interval
			row.Index, row.Start, row.Stop, row.Partial = 1, 1, 1.09, true
			e.Interval = &row
			scrap = append(scrap, e)
		}
	}
	var b bytes.Buffer
	r := plain.New(&b, plain.Options{})
	for _, e := range append(events[:4:4], scrap...) {
		r.Event(e)
	}
	if strings.Contains(b.String(), "1.0-1.1") || !strings.Contains(b.String(), "0.0-1.0") {
		t.Errorf("a scrap of 90 ms has a rate:\n%s", b.String())
	}
}

func TestTable(t *testing.T) {
	var runs []*result.Run
	add := func(host string, test sample.Test, change func(*sample.Test)) {
		test.Tune = func(head *result.Run, _ *[]result.Event) { head.Test.Target = host }
		if change != nil {
			change(&test)
		}
		_, run := live(test, plain.Options{})
		runs = append(runs, run)
	}
	add("db2", sample.New(), func(t *sample.Test) { t.LossShare = 1e-5 })
	add("db2", sample.New(), func(t *sample.Test) { t.Direction, t.Rates = "down", sample.Flat(87e6, 10) })
	add("far.example.net", sample.New(), func(t *sample.Test) {
		t.Direction, t.Rates, t.Back, t.RTT, t.Window, t.RwndLim = "both", sample.Flat(10.4e6, 10), sample.Flat(10.4e6, 10), 50000, 65536, 0.9
	})
	add("gone", sample.New(), func(t *sample.Test) {
		t.Rates, t.Broken, t.Finishing = nil, true, stop(result.Error{Code: "connect", Text: "connect to gone:5201: connection refused"})
	})
	add("old", sample.Foreign("3.12"), func(t *sample.Test) {
		t.Rates, t.NoPeer, t.Finishing = t.Rates[:2], true, stop(result.Error{Code: "interrupted", Text: "interrupted by signal Interrupt(2)", Interrupted: true})
	})
	var b bytes.Buffer
	if err := plain.Table(&b, runs, plain.Options{}); err != nil {
		t.Fatal(err)
	}
	golden(t, "table", b.String())
	b.Reset()
	all := runs
	runs = nil
	add("db2", sample.NewUDP(), func(t *sample.Test) { t.LossShare = 0.002 })
	add("db2", sample.NewUDP(), func(t *sample.Test) { t.Direction = "down" })
	add("old", sample.ForeignUDP("3.12"), nil)
	if err := plain.Table(&b, runs, plain.Options{}); err != nil {
		t.Fatal(err)
	}
	golden(t, "table-udp", b.String())
	b.Reset()
	runs = all
	if err := plain.Table(&b, nil, plain.Options{}); err != nil || !strings.Contains(b.String(), "No host was measured.") {
		t.Errorf("%v: %q", err, b.String())
	}
	if err := plain.Table(&lines{t: t, left: 1}, runs, plain.Options{}); !errors.Is(err, errFull) {
		t.Errorf("writer's error lost: %v", err)
	}
}
