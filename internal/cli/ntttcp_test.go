package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	compat "github.com/fullbore-net/fullbore/internal/cli/compat/ntttcp"
	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

func TestCRLFWriter(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	w := &crlfWriter{w: &out}
	for _, s := range []string{"a\nb\n", "", "c\r\nd", "\n"} {
		if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
			t.Errorf("Write(%q) = %d, %v", s, n, err)
		}
	}
	if want := "a\r\nb\r\nc\r\nd\r\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// ntttcpOf is a run of the drop-in for a command line, printing into out and errs.
func ntttcpOf(t *testing.T, line string, out, errs *strings.Builder) *ntttcpRun {
	t.Helper()
	e := &env{Std: Std{
		Out: out, Err: errs, Getenv: func(string) string { return "" },
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local) },
	}}
	inv, exit := compat.Parse("ntttcp", strings.Fields(line), compat.World{CPUs: 8})
	if exit != nil {
		t.Fatalf("%s: %+v", line, exit)
	}
	return &ntttcpRun{
		env: e, inv: inv, out: inv.Output, windows: inv.Output.Dialect == plan.NTTTCPWindows, stdout: out,
		host: &result.Host{Name: "averylonghostname.example", SystemInfo: "Linux x"},
	}
}

// TestNTTTCPExits: what a test ended with, by the moment, becomes the exit code.
func TestNTTTCPExits(t *testing.T) {
	t.Parallel()
	interrupted := &result.Error{Code: "interrupted", Interrupted: true}
	for _, c := range []struct {
		err            *result.Error
		began          bool
		linux, windows int
	}{
		{nil, true, 0, 0},
		{interrupted, true, 0, 130},
		{interrupted, false, 1, 130},
		{&result.Error{Code: "connect"}, false, 24, 4},
		{&result.Error{Code: "ports-refused"}, false, 24, 4},
		{&result.Error{Code: "busy"}, false, 24, 5},
		{&result.Error{Code: "refused"}, false, 24, 5},
		{&result.Error{Code: "no-answer"}, false, 24, 6},
		{&result.Error{Code: "peer-vanished"}, true, 6, 6},
		{&result.Error{Code: "sender-interrupted", Remote: true}, true, 0, 0},
		{&result.Error{Code: "plan"}, false, 255, 3},
	} {
		for dialect, want := range map[string]int{"-s 127.0.0.1": c.linux, "--dialect windows -s -m 1,*,127.0.0.1 -t 1": c.windows} {
			var out, errs strings.Builder
			if got := ntttcpOf(t, dialect, &out, &errs).exitCode(c.err, c.began); got != want {
				t.Errorf("%s: %+v (began %v): exit %d, want %d", dialect, c.err, c.began, got, want)
			}
		}
	}
}

// TestNTTTCPWords: the original's lines on stdout, ours on stderr; ours alone where it has none.
func TestNTTTCPWords(t *testing.T) {
	t.Parallel()
	const ours = "our words"
	for _, c := range []struct {
		name, line, code string
		agreed, began    bool
		stdout, stderr   string
	}{
		{"no receiver", "-s 192.0.2.9", "connect", false, false, "ERR : failed to connect to receiver: 192.0.2.9:5000 on socket: 3. errno = 111\n03:04:05 ERR : sender: failed to create sync socket\n", ours},
		{"no receiver, no sync", "-s 192.0.2.9 -N", "connect", false, false, "ERR : our words\n", ""},
		{"name", "-s no.host", "resolve", false, false, "ERR : cannot get address info for receiver\n", ours},
		{"source address", "-s 192.0.2.9 -a 192.0.2.7", "address", false, false, "ERR : failed to get interface name by address [192.0.2.7]\n", ours},
		{"source port", "-s 192.0.2.9 -f 40000", "address", true, false, "ERR : our words\n", ""},
		{"busy", "-s 192.0.2.9", "busy", false, false, "ERR : receiver is busy with an existing test running\n03:04:05 ERR : sender: receiver is busy with another test\n", ours},
		{"refused time", "-s 192.0.2.9", "refused", false, false, "ERR : sender: failed to negotiate test cycle time with receiver\n", ours},
		{"refused start", "-s 192.0.2.9", "refused", true, false, "ERR : receiver is not ready to run test with this sender\n", ours},
		{"silent", "-s 192.0.2.9", "no-answer", false, false, "ERR : sender: failed to query receiver state\n", ours},
		{"silent at the start", "-s 192.0.2.9", "no-answer", true, false, "ERR : sender: failed to sync with receiver to start test\n", ours},
		{"in the test", "-s 192.0.2.9", "peer-closed", true, true, "ERR : our words\n", ""},
		{"receiver", "-r", "peer-vanished", true, true, "ERR : our words\n", ""},
		{"windows", "--dialect windows -s -m 1,*,192.0.2.9 -t 1", "connect", false, false, "ERROR: main failed: our words\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out, errs strings.Builder
			n := ntttcpOf(t, c.line, &out, &errs)
			v := n.newTest()
			if c.agreed {
				v.Event(result.Event{Kind: result.KindConnected, Head: &result.Run{Test: result.Test{Duration: 60}, NTTTCP: n.facts()}})
			}
			if c.began {
				v.Event(result.Event{Kind: result.KindStart, Head: &result.Run{Test: result.Test{Duration: 60}, NTTTCP: n.facts()}})
			}
			v.Event(result.Event{Kind: result.KindError, End: n.end(), Err: &result.Error{Code: c.code, Text: ours, Errno: 111}})
			v.Close()
			if !strings.Contains(out.String(), c.stdout) {
				t.Errorf("stdout lacks %q:\n%s", c.stdout, out.String())
			}
			if strings.Contains(errs.String(), ours) != (c.stderr != "") {
				t.Errorf("stderr: %q", errs.String())
			}
		})
	}
}

// facts are as much of a run as its outputs need.
func (n *ntttcpRun) facts() *result.NTTTCP {
	return &result.NTTTCP{Dialect: string(n.out.Dialect), Ports: 1, Threads: 1, Connections: 1, BasePort: 5001}
}

// TestNTTTCPInterrupted: a signal is told once, whether or not the test has told it.
func TestNTTTCPInterrupted(t *testing.T) {
	t.Parallel()
	for _, told := range []bool{false, true} {
		var out, errs strings.Builder
		v := ntttcpOf(t, "-s 192.0.2.9", &out, &errs).newTest()
		if told {
			v.Event(result.Event{Kind: result.KindMilestone, End: result.Client, Milestone: &result.Milestone{Code: result.MilestoneInterrupt}})
		}
		v.Event(result.Event{Kind: result.KindError, End: result.Client, Err: &result.Error{Code: "interrupted", Interrupted: true}})
		v.Close()
		if n := strings.Count(out.String(), "Interrupted by Ctrl+C"); n != 1 || strings.Contains(out.String(), "ERR") {
			t.Errorf("told %v: %q", told, out.String())
		}
	}
}

func TestNTTTCPPrepare(t *testing.T) {
	t.Parallel()
	var out, errs strings.Builder
	n := ntttcpOf(t, "--dialect windows -r -m 1,3,0.0.0.0 2,1,0.0.0.0 1,3,0.0.0.0 -t 1", &out, &errs)
	if err := n.prepare(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]int{{3, 1}, {3, 1}, {3, 1}}, [][]int{n.inv.Plan.Affinity, n.inv.Serve.Affinity, n.inv.Serve.NTTTCP.Affinity}); diff != "" {
		t.Errorf("CPUs of all mappings: %s", diff)
	}
	n = ntttcpOf(t, "--dialect windows -s -m 1,3,192.0.2.9 1,*,192.0.2.9 -t 1", &out, &errs)
	if err := n.prepare(); err != nil || n.inv.Plan.Affinity != nil || !strings.Contains(errs.String(), "CPUs are set where every mapping has one") {
		t.Errorf("a mapping without CPU: %v, %v, %q", n.inv.Plan.Affinity, err, errs.String())
	}
	most, err := oshost.AutotuneMax()
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	n = ntttcpOf(t, "--dialect windows -s -m 1,*,192.0.2.9 -t 1 -W 2 -rb 1M", &out, &errs)
	if err := n.prepare(); err != nil {
		t.Fatal(err)
	}
	p := n.inv.Plan.NTTTCP
	if *p.SendSocketBuffer != 2*most || *p.ReceiveSocketBuffer != 1<<20 {
		t.Errorf("-W 2 -rb 1M: %d and %d, the autotuning maximum is %d", *p.SendSocketBuffer, *p.ReceiveSocketBuffer, most)
	}
}

func TestWritable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fresh, old := filepath.Join(dir, "fresh"), filepath.Join(dir, "old")
	if err := os.WriteFile(old, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{fresh: true, old: true, dir: false, filepath.Join(dir, "no", "file"): false} {
		if err := writable(name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(fresh); !errors.Is(err, os.ErrNotExist) {
		t.Error("looking left a file behind")
	}
	if data, _ := os.ReadFile(old); string(data) != "kept" {
		t.Error("looking changed a file")
	}
}

func TestArrivals(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "j.csv")
	for range 2 { // the file grows, each part with its heading
		a, err := newArrivals(name, "\r\n")
		if err != nil {
			t.Fatal(err)
		}
		a.message(traffic.Message{Number: 7, Counter: 123, Frequency: 10_000_000, At: 456})
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(name)
	want := strings.Repeat("packet_num,send_count,send_freq,recv_count,recv_freq\r\n7,123,10000000,456,1000000000\r\n", 2)
	if string(data) != want || err != nil {
		t.Errorf("%q, %v", data, err)
	}
}

// TestNTTTCPSamples: rows become parts; the crumbs of a measured time belong to the last one.
func TestNTTTCPSamples(t *testing.T) {
	t.Parallel()
	row := func(from, to float64, bytes int64) result.Event {
		return result.Event{Kind: result.KindInterval, Interval: &result.Interval{End: result.Client, Start: from, Stop: to, Streams: []result.StreamInterval{
			{ID: 1, Start: from, Stop: to, Bytes: bytes}, {ID: 2, Start: from, Stop: to, Bytes: 2 * bytes},
		}}}
	}
	for _, c := range []struct {
		name string
		rows []result.Event
		want [][2]int64
	}{
		{"whole", []result.Event{row(0, 1, 1), row(1, 2, 2), row(2, 3, 4), row(3, 4, 8)}, [][2]int64{{3, 6}, {12, 24}}},
		{"rest", []result.Event{row(0, 1, 1), row(1, 2, 2), row(2, 3, 4)}, [][2]int64{{3, 6}, {4, 8}}},
		{"crumb", []result.Event{row(0, 1, 1), row(1, 2, 2), row(2, 2.01, 4)}, [][2]int64{{7, 14}}},
		{"short", []result.Event{row(0, 0.1, 1)}, [][2]int64{{1, 2}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newNTTTCPSamples(2*time.Second, result.Client, oshost.TotalsOptions{})
			defer s.Close()
			head := &result.Run{End: result.Client, Streams: []result.Stream{{ID: 1, Direction: result.Up}, {ID: 2, Direction: result.Up}}}
			s.Event(result.Event{Kind: result.KindStart, Head: head})
			omitted := row(0, 1, 100)
			omitted.Interval.Omitted = true
			for _, e := range append([]result.Event{omitted}, c.rows...) {
				s.Event(e)
			}
			s.Event(result.Event{Kind: result.KindFinish})
			var got [][2]int64
			for _, r := range s.runs(head) {
				if r.Machines.Client == nil {
					t.Error("a part without this machine's counters")
				}
				got = append(got, [2]int64{r.Streams[0].Sender.Bytes, r.Streams[1].Sender.Bytes})
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestVia(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		word    string
		streams int
		want    string // ports × threads, or what the error says
	}{
		{"ntttcp", 1, "linux 1×1 sync"},
		{"ntttcp", 8, "linux 8×1 sync"},
		{"ntttcp", 64, "linux 16×4 sync"},
		{"ntttcp", 34, "linux 2×17 sync"},
		{"ntttcp:4", 8, "linux 4×2 sync"},
		{"ntttcp:3", 8, "not a multiple"},
		{"ntttcp:0", 8, "must be 1…512"},
		{"ntttcp-nosync", 2, "linux 2×1 no-sync"},
		{"ntttcp-windows", 3, "windows 3×1 sync"},
		{"ntttcp-windows:2", 3, "a port for each stream"},
		{"telnet", 1, "must be ntttcp"},
	} {
		o := &testOptions{viaWord: c.word}
		cmd := newTestCmd(&env{})
		err := o.useVia(cmd.Flags(), []string{"192.0.2.9"})
		var p plan.Plan
		if err == nil {
			p, err = o.via.plan(plan.Plan{Host: "192.0.2.9", Port: o.plan.Port, Streams: c.streams})
		}
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			if err := p.Validate(); err != nil {
				t.Errorf("%s, %d streams: %v", c.word, c.streams, err)
			}
			got = string(p.NTTTCP.Dialect) + " " + strconv.Itoa(p.NTTTCP.Ports) + "×" + strconv.Itoa(p.NTTTCP.Threads) + map[bool]string{true: " no-sync", false: " sync"}[p.NTTTCP.NoSync]
			if p.Port != plan.NTTTCPPort || p.Duration != plan.DefaultDuration {
				t.Errorf("%s: port %d, %v", c.word, p.Port, p.Duration)
			}
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s, %d streams: %q, want %q", c.word, c.streams, got, c.want)
		}
	}
}

func TestIsLocal(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{"127.0.0.1": true, "127.9.9.9": true, "::1": true, "0.0.0.0": true, "192.0.2.77": false, "2001:db8::77": false} {
		if got := isLocal(context.Background(), host); got != want {
			t.Errorf("%s: %v", host, got)
		}
	}
}
