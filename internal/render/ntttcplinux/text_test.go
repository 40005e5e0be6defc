package ntttcplinux_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/render/ntttcplinux"
	"github.com/fullbore-net/fullbore/result"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

// sample is a finished run of the given end, without milestones: two ports, a sender
// thread for each.
func sample(end result.End) *result.Run {
	r := &result.Run{
		End: end, Protocol: "ntttcp", Started: noon,
		Test:   result.Test{Transport: "tcp", Direction: "up", Duration: 2, Streams: 2, Target: "192.0.2.2"},
		NTTTCP: &result.NTTTCP{Dialect: "linux", Ports: 2, Threads: 1, Connections: 1, BasePort: 5001},
	}
	for i := range 2 {
		r.Streams = append(r.Streams, result.Stream{
			ID: i + 1, Direction: result.Up,
			Local: result.Addr{Host: "192.0.2.1", Port: 40000 + i}, Remote: result.Addr{Host: "192.0.2.2", Port: 5001 + i},
			Sender: &result.Total{End: 2, Bytes: int64(1+i) * 1e9}, Receiver: &result.Total{End: 2, Bytes: int64(1+i) * 999e6},
		})
		if end == result.Server {
			s := &r.Streams[i]
			s.Local, s.Remote = s.Remote, s.Local
		}
	}
	return r
}

func row(end result.End, i int, bytes int64) result.Interval {
	return result.Interval{
		End: end, Index: i, Start: float64(i) / 2, Stop: float64(i+1) / 2,
		Sums: []result.IntervalSum{{Direction: result.Up, Bytes: bytes}},
	}
}

func render(t *testing.T, r *result.Run, o ntttcplinux.Options) string {
	t.Helper()
	var b strings.Builder
	o.Zone = time.UTC
	w := ntttcplinux.New(&b, o)
	for _, e := range result.Unfold(r) {
		w.Event(e)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	return b.String()
}

const line = "---------------------------------------------------------\n"

// TestDerived: a run that does not tell its milestones is told by its other events, and
// the other end's numbers stand behind the ruler.
func TestDerived(t *testing.T) {
	t.Parallel()
	r := sample(result.Client)
	warm, last, cool := row(result.Client, 0, 1e8), row(result.Client, 3, 7), row(result.Client, 4, 1e8)
	warm.Omitted, last.Partial, cool.Omitted = true, true, true
	r.Rows = []result.Interval{warm, row(result.Server, 0, 5e8), row(result.Client, 1, 5e8), row(result.Client, 2, 62500), last, cool}
	got := render(t, r, ntttcplinux.Options{Verbose: true, Quiet: false, Again: true})
	want := `12:00:00 INFO: Network activity progressing...
Real-time throughput: 1.60Gbps
12:00:00 INFO: Test warmup completed.
Real-time throughput: 8.00Gbps
Real-time throughput: 1000.00Kbps
12:00:00 INFO: Test run completed.
12:00:00 INFO: Test cycle finished.
12:00:00 INFO: 	Thread	Time(s)	Throughput
12:00:00 INFO: 	======	=======	==========
12:00:00 INFO: 	0	 2.00	 4.00Gbps
12:00:00 INFO: 	1	 2.00	 8.00Gbps
12:00:00 INFO: 2 connections tested
12:00:00 INFO: #####  Totals:  #####
12:00:00 INFO: test duration	:2.00 seconds
12:00:00 INFO: total bytes	:3000000000
12:00:00 INFO: 	 throughput	:12.00Gbps
` + line + "fullbore: receiver: 2997000000 bytes in 2.00 seconds, 11.99Gbps\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// No-sync does not say that it progresses; a receiver's threads are its ports.
	s := sample(result.Server)
	s.NTTTCP.NoSync, s.NTTTCP.Ports = true, 3
	s.Streams = s.Streams[1:]
	s.Streams[0].Sender = nil
	s.Rows = []result.Interval{row(result.Server, 0, 0)}
	got = render(t, s, ntttcplinux.Options{Verbose: true, Again: true, Terminal: true})
	if !strings.HasPrefix(got, "\x1b[2KReal-time throughput: 0.00bps\r12:00:00 INFO: Test run completed.\n") {
		t.Errorf("%q", got)
	}
	if !strings.Contains(got, "INFO: \t0\t 2.00\t 0.00bps\n12:00:00 INFO: \t1\t 2.00\t 7.99Gbps\n12:00:00 INFO: \t2\t 2.00\t 0.00bps\n") ||
		strings.Contains(got, "tested") || strings.Contains(got, "fullbore") {
		t.Errorf("%s", got)
	}
}

// TestOurs: with a fullbore on the other side its machine and the datagrams are told.
func TestOurs(t *testing.T) {
	t.Parallel()
	r := sample(result.Client)
	r.Machines = &result.HostTotals{Server: &result.HostTotal{
		Cores: 4, MHz: ptr(2000.0), Process: ptr(int64(1e9)), CPU: &result.CPUTime{User: 4e9, Idle: 4e9}, TCP: &result.TCPCounters{RetransSegs: 3},
	}}
	tail := func(r *result.Run) string {
		_, after, _ := strings.Cut(render(t, r, ntttcplinux.Options{Again: true}), line)
		return after
	}
	if got, want := tail(r), "fullbore: receiver: 2997000000 bytes in 2.00 seconds, 11.99Gbps, cpu busy 50.00%, cycles/byte 2.67, retrans segs 3\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r = sample(result.Server)
	r.Test.Transport = "udp"
	for i := range r.Streams {
		r.Streams[i].Sender.Packets, r.Streams[i].Receiver.Packets = ptr(int64(1000)), ptr(int64(990-10*i))
	}
	if got, want := tail(r), "fullbore: sender: 3000000000 bytes in 2.00 seconds, 12.00Gbps\nfullbore: datagrams: 2000 sent, 1970 received, 30 lost (1.5%)\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestOldOrder: 1.3.4 tells the end of the cycle after the totals, and knows fewer lines.
func TestOldOrder(t *testing.T) {
	t.Parallel()
	r := sample(result.Client)
	r.Machines = &result.HostTotals{Client: &result.HostTotal{TCP: &result.TCPCounters{RetransSegs: 3}}}
	for i, code := range []string{result.MilestoneConnected, result.MilestoneStarted, result.MilestoneMeasured, result.MilestoneCycleOver} {
		r.Milestones = append(r.Milestones, result.Milestone{End: result.Client, Code: code, Stage: "run", Count: 2, Time: noon.Add(time.Duration(i) * time.Second)})
	}
	got := render(t, r, ntttcplinux.Options{Release: ntttcplinux.R134, Again: true})
	if strings.Contains(got, "created") || strings.Contains(got, "retrans") || !strings.Contains(got, line+"12:00:03 INFO: Test cycle finished.\n") {
		t.Errorf("%s", got)
	}
	r.Milestones = r.Milestones[:3] // it never came
	if got := render(t, r, ntttcplinux.Options{Release: ntttcplinux.R134, Again: true}); strings.Count(got, "Test cycle finished.") != 1 || !strings.HasSuffix(got, "Test cycle finished.\n") {
		t.Errorf("%s", got)
	}
	got = render(t, r, ntttcplinux.Options{Again: true})
	if !strings.Contains(got, "2 connections created in 0 microseconds\n") || !strings.Contains(got, "retrans segs\t:3\n") {
		t.Errorf("%s", got)
	}
}

// TestFailures: errors are lines of the console, warnings stand beside it.
func TestFailures(t *testing.T) {
	t.Parallel()
	r := &result.Run{End: result.Client, Started: noon, NTTTCP: &result.NTTTCP{}, Err: &result.Error{Code: "busy", Text: "one\ntwo\x1b[31m"}}
	r.Notices = []result.Notice{{Level: result.Warn, Text: "clamped\x07"}, {Level: result.Info, Text: "noise"}}
	var errs strings.Builder
	o := ntttcplinux.Options{Err: &errs}
	if got, want := render(t, r, o), "NTTTCP for Linux 1.4.3\n"+line+"12:00:00 ERR : one\n12:00:00 ERR : two\uFFFD[31m\n"; got != want {
		t.Errorf("%q", got)
	}
	if errs.String() != "ntttcp: warning: clamped\uFFFD\n" {
		t.Errorf("%q", errs.String())
	}
	o.ErrorLines = func(e *result.Error) []string { return []string{"as the original: " + e.Code} }
	if got := render(t, r, o); !strings.HasSuffix(got, "12:00:00 ERR : as the original: busy\n") {
		t.Errorf("%q", got)
	}
	r.Err = &result.Error{Interrupted: true, Text: "stopped"}
	if got := render(t, r, ntttcplinux.Options{}); !strings.HasSuffix(got, "12:00:00 INFO: Interrupted by Ctrl+C\n") {
		t.Errorf("%q", got)
	}
	r.Milestones = []result.Milestone{{End: result.Client, Code: result.MilestoneInterrupt, Stage: "run", Time: noon}}
	if got := render(t, r, ntttcplinux.Options{}); strings.Count(got, "Interrupted") != 1 {
		t.Errorf("%q", got)
	}
}

// TestSettings: lines of -V that no recording has.
func TestSettings(t *testing.T) {
	t.Parallel()
	r := sample(result.Client)
	r.Test.Transport, r.Test.Duration, r.Test.Omit, r.Test.BlockSize = "udp", 0, 3, 1400
	r.Test.Bitrate, r.NTTTCP.Cooldown, r.NTTTCP.NoSync = 1e6, 2, true
	r.Milestones = []result.Milestone{{
		End: result.Client, Code: result.MilestoneConnection, Stage: "run", Time: noon, Socket: 4,
		Local: &result.Addr{Port: 0}, Remote: &result.Addr{Host: "192.0.2.2", Port: 5001},
	}}
	o := ntttcplinux.Options{Verbose: true, Quiet: true}
	o.Settings = ntttcplinux.Settings{Daemon: true, LogFile: "f.log", Hold: true, Epoll: true}
	got := render(t, r, o)
	want := "NTTTCP for Linux 1.4.3\n" + line + `*** sender role
*** run as daemon
*** no sender/receiver synch
connections:			 2 X 1 X 1
cpu affinity:			 *
server address:			 192.0.2.2
client address:			 0.0.0.0
domain:				 IPv4
protocol:			 UDP
server port starting at:	 5001
sender socket buffer (bytes):	 1400
bandwidth limit (bits/sec):	 2000000
tcp nodelay:	 no
test warm-up (sec):		 3
test duration (sec):		 continuous
test cool-down (sec):		 2
show system tcp retransmit:	 no
capture console output to::	 f.log
quiet mode:			 enabled
verbose mode:			 enabled
` + line + "12:00:00 DBG : Running UDP stream: local:0 [socket:4] --> 192.0.2.2:5001\n"
	if diff := cmp.Diff(want, got[:min(len(want), len(got))]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLog: the log lacks banner, rulers, real-time lines and what the argument checks said.
func TestLog(t *testing.T) {
	t.Parallel()
	r := sample(result.Client)
	r.Rows = []result.Interval{row(result.Client, 0, 1e8)}
	r.Milestones = []result.Milestone{
		{End: result.Client, Code: result.MilestoneLine, Stage: "before", Text: "clamped", Time: noon},
		{End: result.Client, Code: result.MilestoneThreads, Stage: "run", Count: 2, Time: noon},
	}
	var log strings.Builder
	got := render(t, r, ntttcplinux.Options{Log: &log, Verbose: true, NoThreads: true})
	if !strings.HasPrefix(got, "NTTTCP for Linux 1.4.3\n"+line+"12:00:00 INFO: clamped\n*** sender role\n") || strings.Contains(got, "Thread\t") {
		t.Errorf("%s", got)
	}
	if s := log.String(); !strings.HasPrefix(s, "12:00:00 INFO: 2 threads created\n12:00:00 INFO: Network activity") ||
		strings.Contains(s, "---") || strings.Contains(s, "Real") || !strings.HasSuffix(s, ":12.00Gbps\n") {
		t.Errorf("%s", s)
	}
}

// TestHostileRun: a stored run may say anything; it takes neither memory nor the program.
func TestHostileRun(t *testing.T) {
	t.Parallel()
	for _, end := range []result.End{result.Client, result.Server} {
		for _, n := range []int{-5, 0, 1 << 40} {
			r := sample(end)
			r.NTTTCP.Ports, r.NTTTCP.Threads, r.NTTTCP.Connections, r.NTTTCP.BasePort = n, n, n, n
			r.Streams[0].Thread, r.Streams[1].Sender.End = &n, -3
			for _, o := range []ntttcplinux.Options{{Verbose: true}, {Verbose: true, Release: ntttcplinux.R134}} {
				if got := render(t, r, o); strings.Count(got, "\n") > 60 {
					t.Errorf("%d lines", strings.Count(got, "\n"))
				}
				var b strings.Builder
				if err := errors.Join(ntttcplinux.WriteXML(&b, r, o), ntttcplinux.WriteJSON(&b, r, o)); err != nil || b.Len() > 20000 {
					t.Errorf("%v, %d bytes", err, b.Len())
				}
			}
		}
	}
}

func TestReleases(t *testing.T) {
	t.Parallel()
	for name, printed := range map[string]string{"": "1.4.3", "1.4.3": "1.4.3", "1.4.0": "1.4.0", "1.4.0-tag": "1.4.0", "1.3.4": "1.3.4"} {
		r, err := ntttcplinux.ParseRelease(name)
		if err != nil || r.String() != printed {
			t.Errorf("%q: %v %v", name, r, err)
		}
	}
	if _, err := ntttcplinux.ParseRelease("1.5"); err == nil || !strings.Contains(err.Error(), "1.4.0-tag") {
		t.Errorf("%v", err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestFullDisk(t *testing.T) {
	t.Parallel()
	r := sample(result.Client)
	for name, o := range map[string]ntttcplinux.Options{"console": {}, "log": {Log: full{}}} {
		var out strings.Builder
		w := ntttcplinux.New(&out, o)
		if name == "console" {
			w = ntttcplinux.New(full{}, o)
		}
		for _, e := range result.Unfold(r) {
			w.Event(e)
		}
		if err := w.Close(); err == nil || err.Error() != "no space" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := errors.Join(ntttcplinux.WriteXML(full{}, r, ntttcplinux.Options{}), ntttcplinux.WriteJSON(full{}, r, ntttcplinux.Options{})); err == nil {
		t.Error("a full disk went unnoticed")
	}
}
