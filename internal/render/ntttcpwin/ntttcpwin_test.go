package ntttcpwin_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/render/ntttcpwin"
	"github.com/fullbore-net/fullbore/result"
)

func ptr[T any](v T) *T { return &v }

var noon = time.Date(2026, 3, 5, 12, 4, 9, 0, time.UTC)

// composed is the run of testdata/composed.*: two threads of a sender, 10 s, 8 CPUs of
// 3408 MHz. The two files are the layout of 5.40, with the threads' own figures as 5.39
// has them, filled with numbers that follow from each other.
func composed() *result.Run {
	real := 10.002417
	busy := int64(0.06482 * 8 * real * 1e9)
	r := &result.Run{
		End: result.Client, Protocol: "ntttcp", Started: noon,
		Test:   result.Test{Transport: "tcp", Direction: "up", Duration: 10, BlockSize: 65536, Streams: 2},
		NTTTCP: &result.NTTTCP{Dialect: "windows", Ports: 2, Threads: 1, Connections: 1, BasePort: 5001},
		Machines: &result.HostTotals{Client: &result.HostTotal{
			Seconds: real, Cores: 8, CoresAfter: 8, MHz: ptr(3408.0), Interrupts: ptr(int64(212733)), DPCs: ptr(int64(98412)),
			CPU:     &result.CPUTime{System: busy, Idle: int64(8*real*1e9) - busy},
			Packets: &result.PacketCount{Sent: 8052107, Received: 402611, Retransmitted: 118},
		}},
	}
	r.Hosts.Set(result.Client, &result.Host{Name: "client1.example.net"})
	for i, buffers := range []int64{89792, 89408} {
		r.Streams = append(r.Streams, result.Stream{
			ID: i + 1, Direction: result.Up, Thread: ptr(i),
			Local: result.Addr{Host: "192.0.2.1", Port: 49152 + i}, Remote: result.Addr{Host: "192.0.2.2", Port: 5001 + i},
			Sender: &result.Total{End: 10.001 + float64(i)/1000, Bytes: buffers * 65536},
			IO:     &result.IOCount{Completions: buffers},
		})
	}
	return r
}

func file(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func render(t *testing.T, r *result.Run, o ntttcpwin.Options) string {
	t.Helper()
	var b strings.Builder
	o.Zone = time.UTC
	w := ntttcpwin.New(&b, o)
	for _, e := range result.Unfold(r) {
		w.Event(e)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	return b.String()
}

func document(t *testing.T, r *result.Run, o ntttcpwin.Options) string {
	t.Helper()
	var b strings.Builder
	if err := ntttcpwin.WriteXML(&b, r, o); err != nil {
		t.Error(err)
	}
	return b.String()
}

func same(t *testing.T, what, want, got string) {
	t.Helper()
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestComposed(t *testing.T) {
	t.Parallel()
	text, doc := file(t, "composed.txt"), file(t, "composed.xml")
	same(t, "tables", text, render(t, composed(), ntttcpwin.Options{}))
	same(t, "document", doc, document(t, composed(), ntttcpwin.Options{}))

	crlf := ntttcpwin.Options{CRLF: true}
	same(t, "tables on Windows", strings.ReplaceAll(text, "\n", "\r\n"), render(t, composed(), crlf))
	same(t, "document on Windows", strings.ReplaceAll(doc, "\n", "\r\n"), document(t, composed(), crlf))

	// -xml leaves the console with its first two lines; -hpt leaves the threads out.
	if got, want := render(t, composed(), ntttcpwin.Options{XML: true}), "Copyright Version 5.40\nNetwork activity progressing...\n"; got != want {
		t.Errorf("%q", got)
	}
	bare := ntttcpwin.Options{NoThreads: true}
	same(t, "tables without threads", text[:55]+text[strings.Index(text, "\n\n#####"):], render(t, composed(), bare))
	if got := document(t, composed(), bare); strings.Contains(got, "<thread ") || !strings.Contains(got, "<total_bytes ") {
		t.Errorf("%s", got)
	}
}

// TestLatency: the tables and elements of -lm, and of -rt, whose XML takes the two calls of
// a round trip as one.
func TestLatency(t *testing.T) {
	t.Parallel()
	r := composed()
	for i := range r.Streams {
		io := r.Streams[i].IO
		io.Latency = &result.CallLatency{Sum: 108730 * io.Completions, Min: 13900 - int64(i), Max: 9406800}
	}
	o := ntttcpwin.Options{Settings: ntttcpwin.Settings{Latency: true}}
	got := render(t, r, o)
	for _, want := range []string{
		`Network activity progressing...

                                               Latency(ns)
Thread  Time(s) Throughput(KB/s) Avg B / Compl        Avg        Min        Max
======  ======= ================ ============= ========== ========== ==========
     0   10.001       574611.339     65536.000     108730      13900    9406800
     1   10.002       572096.781     65536.000     108730      13899    9406800
`, `
    11200.000000      10.002       1458.507         1119.729

Latency(ns)
       Avg        Min        Max
========== ========== ==========
    108730      13899    9406800


Throughput(Buffers/s)`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no\n%s\nin\n%s", want, got)
		}
	}
	const avg, avg2 = `<avg_latency metric="ns">108730</avg_latency>`, `<avg_latency metric="ns">217460</avg_latency>`
	if doc := document(t, r, o); strings.Count(doc, avg) != 3 || strings.Count(doc, `<min_latency metric="ns">13899</`) != 2 ||
		!strings.Contains(doc, "<latency_measurement>True<") {
		t.Errorf("%s", doc)
	}
	o.Settings = ntttcpwin.Settings{RoundTrip: true}
	if doc := document(t, r, o); strings.Count(doc, avg2) != 3 {
		t.Errorf("%s", doc)
	}
	if got := render(t, r, o); !strings.Contains(got, "    108730      13899    9406800\n") {
		t.Errorf("%s", got)
	}
}

// TestUnknown: figures that this host cannot tell are 0, also those divided by them.
func TestUnknown(t *testing.T) {
	t.Parallel()
	r := composed()
	r.Machines, r.End = nil, result.Server
	for i := range r.Streams {
		s := &r.Streams[i]
		s.Receiver, s.Sender, s.IO = s.Sender, nil, nil
	}
	got := render(t, r, ntttcpwin.Options{})
	for _, want := range []string{
		"     0   10.001       574611.339         0.000\n",
		"    11200.000000      10.002          0.000         1119.776\n",
		"            17916.417       0.000    179200.000\n",
		"        0.000         0.000           0.000          0.000\n",
		"           0                0           0      0      0.000\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "NOTE") {
		t.Errorf("what is not known is no error:\n%s", got)
	}
	if doc := document(t, r, ntttcpwin.Options{}); !strings.HasPrefix(doc, `<ntttcpr computername="" version="5.40">`) || !strings.Contains(doc, "<num_processors>0<") {
		t.Errorf("%s", doc)
	}
}

// TestNegativeCPU: a test that was too short for the CPU's clock says so, also with -xml.
func TestNegativeCPU(t *testing.T) {
	t.Parallel()
	r := composed()
	r.Machines.Client.CPU = &result.CPUTime{System: -5, Idle: 100}
	for _, o := range []ntttcpwin.Options{{}, {XML: true}} {
		if got := render(t, r, o); !strings.Contains(got, "\n\n\nNOTE::Avg CPU% drops below 0%") || !strings.HasSuffix(got, ".\n\n") {
			t.Errorf("%q", got)
		}
	}
}

// TestVerbose: the settings, then times before every message.
func TestVerbose(t *testing.T) {
	t.Parallel()
	r := composed()
	for i, m := range []result.Milestone{
		{Code: result.MilestoneThreads, Count: 2},
		{Code: result.MilestoneListening, Local: &result.Addr{Port: 5001}},
		{Code: result.MilestoneConnection, Local: &result.Addr{Port: 49152}, Remote: &result.Addr{Host: "192.0.2.2", Port: 5001}},
		{Code: result.MilestoneSync},
		{Code: result.MilestoneConnected, Count: 2},
		{Code: result.MilestoneStarted},
		{Code: result.MilestoneWarmedUp},
		{Code: result.MilestoneMeasured},
		{Code: result.MilestoneCooling},
		{Code: result.MilestoneLine, Severity: "debug", Text: "speed 3408"},
		{Code: result.MilestoneLine, Severity: "info", Text: "hint"},
		{Code: result.MilestoneLine, Severity: "error", Text: "connect failed"},
		{Code: result.MilestoneThreadDone, Count: 1},
		{Code: result.MilestoneCycleOver},
		{Code: result.MilestoneInterrupt},
		{Code: result.MilestonePeerDone}, // has no words here
		{Code: result.MilestoneClosed, End: result.Server},
	} {
		m.Stage, m.Time = "run", noon.Add(time.Duration(i)*time.Second)
		if m.End == "" {
			m.End = result.Client
		}
		r.Milestones = append(r.Milestones, m)
	}
	o := ntttcpwin.Options{Verbose: true, XML: true}
	o.Settings.Mappings = []ntttcpwin.Mapping{{Threads: 1, CPU: -1, Host: "192.0.2.2"}, {Threads: 1, CPU: 3, Host: "192.0.2.3"}}
	got := render(t, r, o)
	head, tail, ok := strings.Cut(got, "mapping[0]: 1,*,192.0.2.2\nmapping[1]: 1,3,192.0.2.3\n")
	if !ok || !strings.HasPrefix(head, "Copyright Version 5.40\nbuffers_length: 65536\nnum_buffers_to_send: 9223372036854775807\nsend_socket_buff: -1\n") ||
		!strings.Contains(head, "\nsend_flag: 1\nudp_flag: 0\n") || !strings.Contains(head, "\nrun_time: 10000\n") || strings.Count(head, "\n") != 41 {
		t.Errorf("%d lines\n%s", strings.Count(head, "\n"), got)
	}
	same(t, "messages", `3/5/2026 12:4:9 2 threads created
3/5/2026 12:4:10 listening on port 5001
3/5/2026 12:4:11 connection established on port 49152, peer 192.0.2.2:5001
3/5/2026 12:4:12 token exchanged on port ?, peer ?
3/5/2026 12:4:13 all 2 threads ready
3/5/2026 12:4:14 Network activity progressing...
3/5/2026 12:4:15 warmup over, start recording
3/5/2026 12:4:16 stop recording
3/5/2026 12:4:17 cooldown started
3/5/2026 12:4:18 speed 3408
3/5/2026 12:4:19 hint
3/5/2026 12:4:20 ERROR: connect failed
3/5/2026 12:4:21 thread 1 done
3/5/2026 12:4:22 test finished
3/5/2026 12:4:23 interrupted
`, tail)

	// Without -v only what matters.
	got = render(t, r, ntttcpwin.Options{XML: true})
	if want := "Copyright Version 5.40\nNetwork activity progressing...\nhint\nERROR: connect failed\n"; got != want {
		t.Errorf("%q", got)
	}
}

// TestEStats: what -es read stands within the threads.
func TestEStats(t *testing.T) {
	t.Parallel()
	r := composed()
	r.Streams[1].EStats = []result.EStats{{Moment: "Measurement_Begin", Structures: []result.EStatsStructure{
		{Name: "TCP_ESTATS_SND_CONG_ROS_v0", Properties: []result.EStatsProperty{{Name: "LimCwnd", Value: "4294901760"}}},
	}}, {Moment: "Measurement_End"}}
	const want = `>65536.000</avg_bytes_per_compl>
		<estats type="Measurement_Begin">
			<structure name="TCP_ESTATS_SND_CONG_ROS_v0">
				<property name="LimCwnd" value="4294901760"/>
			</structure>
		</estats>
		<estats type="Measurement_End">
		</estats>
	</thread>
	<total_bytes`
	if doc := document(t, r, ntttcpwin.Options{}); !strings.Contains(doc, want) {
		t.Errorf("%s", doc)
	}
}

// TestRealtime: a line for each whole interval of the measured time of this end.
func TestRealtime(t *testing.T) {
	t.Parallel()
	r := composed()
	for i, end := range []result.End{result.Client, result.Client, result.Server, result.Client} {
		r.Rows = append(r.Rows, result.Interval{
			End: end, Index: i, Start: float64(i), Stop: float64(i + 1), Omitted: i == 0, Partial: i == 3,
			Sums: []result.IntervalSum{{Direction: result.Up, Bytes: int64(100+i) << 20}},
		})
	}
	const head = "Copyright Version 5.40\nNetwork activity progressing...\n"
	if got, want := render(t, r, ntttcpwin.Options{Realtime: true, XML: true}), head+"Real-time throughput(MB/s): 101.000\n"; got != want {
		t.Errorf("%q", got)
	}
	if got := render(t, r, ntttcpwin.Options{XML: true}); got != head {
		t.Errorf("%q", got)
	}
}

func TestParameters(t *testing.T) {
	t.Parallel()
	r := composed()
	r.Test.Transport, r.Test.BlockSize, r.Test.Omit = "udp", 0, 1.5
	r.NTTTCP.NoSync, r.NTTTCP.Cooldown = true, 2
	o := ntttcpwin.Options{Settings: ntttcpwin.Settings{
		SendBuffer: ptr(int64(0)), Async: 4, SenderName: "a<b>&c", SyncPort: true, CompletionPorts: true, MaxActive: 3,
		ReceiveCoalesces: true, SegmentOffload: 1400, Timeout: ptr(int64(0)), BufferCount: 20480,
	}}
	contains := func(doc string, elements ...string) {
		t.Helper()
		for _, e := range elements {
			if !strings.Contains(doc, e) {
				t.Errorf("no %s in\n%s", e, doc)
			}
		}
	}
	contains(document(t, r, o), "<send_socket_buff>0<", "<recv_socket_buff>-1<", "<port>5001<", "<sync_port>True<", "<no_sync>True<",
		"<wait_timeout_milliseconds>0<", "<async>True<", "<udp>True<", "<warmup_time>1500<", "<cooldown_time>2000<", "<bind_sender>True<",
		"<sender_name>a&lt;b&gt;&amp;c<", "<max_active_threads>3<", "<udp_uso_size>1400<", "<udp_receive_coalescing>1<",
		"<bufferCount>20480<", "<bufferLen>128<", "<io>4<")
	r.End = result.Server
	contains(document(t, r, o), "<port>5004<")
}

// TestSamples: -sam's document holds one for each sample; xmllint reads both forms.
func TestSamples(t *testing.T) {
	t.Parallel()
	hostile := composed()
	hostile.Hosts.Client.Name = "a&b<\"c\x01"
	var b bytes.Buffer
	if err := ntttcpwin.WriteSamples(&b, []*result.Run{composed(), hostile}, ntttcpwin.Options{CRLF: true}); err != nil {
		t.Fatal(err)
	}
	docs := map[string]string{"samples": b.String(), "one": document(t, hostile, ntttcpwin.Options{})}
	for name, doc := range docs {
		n := 0
		for d := xml.NewDecoder(strings.NewReader(doc)); ; {
			tok, err := d.Token()
			if err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "ntttcps" {
				n++
			}
		}
		if want := map[string]int{"samples": 2, "one": 1}[name]; n != want {
			t.Errorf("%s: %d documents, want %d", name, n, want)
		}
	}
	lint, err := exec.LookPath("xmllint")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("xmllint is missing: test/peers.sh installs it")
		}
		t.Skip("xmllint is not installed (test/peers.sh installs it); encoding/xml has read the documents")
	}
	for name, doc := range docs {
		cmd := exec.Command(lint, "--noout", "-")
		cmd.Stdin = strings.NewReader(doc)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestOurs: with a fullbore on the other side its numbers stand behind the tables.
func TestOurs(t *testing.T) {
	t.Parallel()
	r := composed()
	r.Test.Transport = "udp"
	for i := range r.Streams {
		s := &r.Streams[i]
		s.Receiver = &result.Total{End: 10, Bytes: 512 << 20, Packets: ptr(int64(900))}
		s.Sender.Packets = ptr(int64(1000))
	}
	got := render(t, r, ntttcpwin.Options{})
	if want := "\nfullbore: receiver: 1024.000000 MB in 10.000 s, 102.400 MB/s\nfullbore: datagrams: 2000 sent, 1800 received, 200 lost (10%)\n"; !strings.HasSuffix(got, want) {
		t.Errorf("%s", got)
	}
	if got := render(t, r, ntttcpwin.Options{XML: true}); strings.Contains(got, "fullbore") {
		t.Errorf("%s", got)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	r := &result.Run{End: result.Client, Started: noon, NTTTCP: &result.NTTTCP{}, Err: &result.Error{Code: "refused", Text: "one\ntwo\x1b"}}
	r.Notices = []result.Notice{{Level: result.Warn, Text: "clamped"}, {Level: result.Info, Text: "noise"}}
	var errs strings.Builder
	o := ntttcpwin.Options{Err: &errs}
	if got, want := render(t, r, o), "Copyright Version 5.40\nERROR: one\nERROR: two\uFFFD\n"; got != want || errs.String() != "ntttcp: warning: clamped\n" {
		t.Errorf("%q %q", got, errs.String())
	}
	o.ErrorLines = func(e *result.Error) []string { return []string{"connect failed: " + e.Code} }
	if got := render(t, r, o); !strings.HasSuffix(got, "\nERROR: connect failed: refused\n") {
		t.Errorf("%q", got)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestFullDisk(t *testing.T) {
	t.Parallel()
	w := ntttcpwin.New(full{}, ntttcpwin.Options{})
	for _, e := range result.Unfold(composed()) {
		w.Event(e)
	}
	for _, err := range []error{
		w.Close(), ntttcpwin.WriteXML(full{}, composed(), ntttcpwin.Options{}),
		ntttcpwin.WriteSamples(full{}, nil, ntttcpwin.Options{}),
	} {
		if err == nil || err.Error() != "no space" {
			t.Errorf("%v", err)
		}
	}
}
