package suite_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/suite"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// world makes up the runs of an acceptance of a link of 100 Mbit/s, 10 ms; each test plants a fault.
type world struct {
	rate  float64 // payload bit/s of TCP, either way
	again int64   // segments sent again in a run
	plant func(name string, d result.Direction, run *result.Run)
	paths []result.PathMTU // what single packets show; nil = 1500 each way
}

const span = 3.0 // seconds of a run

func (w world) run(s method.Step) *result.Run {
	run := &result.Run{
		End: result.Client, Label: s.Name, Wire: &result.Wire{Extension: true},
		Test: result.Test{Transport: string(s.Plan.Transport), Direction: string(s.Plan.Direction), Streams: max(s.Plan.Streams, 1), BlockSize: s.Plan.BlockSize, Omit: s.Plan.Omit.Seconds()},
	}
	if run.Test.Transport == "" {
		run.Test.Transport = "tcp"
	}
	for _, e := range []result.End{result.Client, result.Server} {
		run.Hosts.Set(e, &result.Host{Name: string(e) + "-host", OS: "linux", NIC: &result.NIC{Name: "eth0", MTU: 1500}})
	}
	if p := s.Plan.Probe; p != nil && p.MTU {
		run.Probes = []result.Probes{{Kind: "udp-mtu", Sent: 20, Answered: 14, MTU: w.paths}}
		if w.paths == nil {
			run.Probes[0].MTU = []result.PathMTU{path(result.Up, 1500, "link"), path(result.Down, 1500, "link")}
		}
		return run
	} else if p != nil {
		trip := 0.010
		if !p.Idle {
			trip = 0.018
		}
		zero := int64(0)
		run.Probes = []result.Probes{{
			Kind: "udp-echo", Sent: 3000, Answered: 3000, Size: 64, LostUp: &zero, LostDown: &zero,
			RoundTrip: &result.Quantiles{N: 3000, Min: 0.010, P50: trip, P95: trip + 0.001, P99: trip + 0.002, Max: 0.1},
		}}
		if p.Idle {
			return run
		}
	}
	for _, d := range []result.Direction{result.Up, result.Down} {
		if s.Plan.Direction != "both" && string(s.Plan.Direction) != string(d) {
			continue
		}
		if run.Test.Transport == "udp" {
			w.datagrams(run, d, float64(s.Plan.Bitrate))
		} else {
			w.stream(run, d)
		}
		if w.plant != nil {
			w.plant(s.Name, d, run)
		}
	}
	return run
}

// path is what single packets show of a direction; how says what bounds it.
func path(d result.Direction, mtu int, how string) result.PathMTU {
	hole := how == "hole"
	p := result.PathMTU{Direction: d, MTU: &mtu, Exact: how != "unsure", AtLink: how == "link", BlackHole: &hole, Method: "probe"}
	if how == "told" {
		p.Told = &mtu
	}
	return p
}

func (w world) stream(run *result.Run, d result.Direction) {
	bytes := int64(w.rate / 8 * span)
	again, pmtu := w.again, int64(1500)
	t := &result.TCPSummary{MaxCwnd: 200e3, Last: result.TCPInfo{MSS: 1448, PMTU: pmtu}}
	st := result.Stream{
		Direction: d, Local: result.Addr{Host: "192.0.2.1", Port: 1000 + len(run.Streams)}, Remote: result.Addr{Host: "192.0.2.2", Port: 5201},
		Sender: &result.Total{End: span, Bytes: bytes + 100e3, Retransmits: &again}, Receiver: &result.Total{End: span, Bytes: bytes},
	}
	if d == result.Up {
		st.TCP = t
	} else {
		st.RemoteTCP = t
	}
	run.Streams = append(run.Streams, st)
	good := w.rate
	run.Sums = append(run.Sums, result.Sum{Direction: d, Sender: st.Sender, Receiver: st.Receiver, Goodput: &good, Peak: &good})
	w.rows(run, d, bytes, float64(bytes)/1448, 66)
}

func (w world) datagrams(run *result.Run, d result.Direction, bps float64) {
	size := int64(run.Test.BlockSize)
	n := int64(bps / 8 * span / float64(size))
	zero := int64(0)
	sent, got := &result.UDPSent{Packets: n, Bytes: n * size}, &result.UDPReceived{Packets: n, Bytes: n * size, Highest: n, PDV: &result.Quantiles{N: n, P50: 0.0001, P99: 0.0005}}
	u := &result.UDPStream{Sent: sent, Received: got, Loss: &result.UDPLoss{Sent: n, Network: &zero, Socket: &zero, Attribution: "exact"}}
	st := result.Stream{Direction: d, UDP: u, Sender: &result.Total{End: span, Bytes: n * size, Packets: &n}, Receiver: &result.Total{End: span, Bytes: n * size, Packets: &n, Lost: &zero}}
	st.Local, st.Remote = result.Addr{Host: "192.0.2.1", Port: 1000}, result.Addr{Host: "192.0.2.2", Port: 5201}
	run.Streams = append(run.Streams, st)
	run.Sums = append(run.Sums, result.Sum{Direction: d, Sender: st.Sender, Receiver: st.Receiver, UDP: u})
	w.rows(run, d, n*size, float64(n), 42)
}

// rows are one interval of each end, with an interface that counts the test and nothing else.
func (w world) rows(run *result.Run, d result.Direction, bytes int64, packets float64, header float64) {
	for _, e := range []result.End{d.Sender(), d.Receiver()} {
		nic := &result.NICDelta{Name: "eth0"}
		wire, count := bytes+int64(packets*header), int64(packets)
		if e == d.Sender() {
			nic.TxBytes, nic.TxPackets = wire, count
		} else {
			nic.RxBytes, nic.RxPackets = wire, count
		}
		run.Rows = append(run.Rows, result.Interval{
			End: e, Stop: span, Host: &result.HostSample{NIC: nic, Cores: []result.CoreShare{{Idle: 0.9, System: 0.1}}},
			Sums: []result.IntervalSum{{Direction: d, Sender: e == d.Sender(), Stop: span, Bytes: bytes}},
		})
	}
}

// judged plays a suite in a world.
func judged(t *testing.T, s suite.Suite, w world) *result.Report {
	t.Helper()
	m := suite.Method{Suite: s, Path: suite.Path{Family: 4, MTU: 1500}}
	var history []method.Done
	for range 200 {
		step, more := m.Next(history)
		if !more {
			break
		}
		history = append(history, method.Done{Step: step, Run: w.run(step)})
	}
	rep := &result.Report{Kind: "accept"}
	for i := range history {
		at := i
		rep.Runs = append(rep.Runs, history[i].Run)
		rep.Stages = append(rep.Stages, result.Stage{Name: history[i].Step.Name, Run: &at})
	}
	self := 8e9
	j := &suite.Judge{Method: m, Host: "192.0.2.2", Self: &self, Facts: &result.Facts{OS: "linux", TCPRead: &[3]int64{4096, 131072, 6 << 20}, TCPWrite: &[3]int64{4096, 16384, 4 << 20}}}
	j.Fill(rep, history)
	return rep
}

// segments makes TCP's smaller.
func segments(mss int64) func(string, result.Direction, *result.Run) {
	return func(_ string, _ result.Direction, run *result.Run) {
		for i := range run.Streams {
			for _, t := range []*result.TCPSummary{run.Streams[i].TCP, run.Streams[i].RemoteTCP} {
				if t != nil {
					t.Last.MSS = mss
				}
			}
		}
	}
}

// without A7, whose search is package method's; each step is as long as the runs of a world.
func trial() suite.Suite {
	s := openTrial()
	s.Override(8, 0, "")
	return s
}

// openTrial is trial without a number of streams: the knee is looked for.
func openTrial() suite.Suite {
	s := suite.Default(suite.Metro, 100*units.MbitPerSec)
	s, err := s.Only([]string{"A1", "A2", "A3", "A4", "A5", "A6"})
	if err != nil {
		panic(err)
	}
	for i := range s.Items {
		s.Items[i].Time = span * time.Second
	}
	return s
}

func find(t *testing.T, rep *result.Report, id string) result.Item {
	t.Helper()
	for _, i := range rep.Items {
		if i.ID == id {
			return i
		}
	}
	t.Fatalf("there is no item %s", id)
	return result.Item{}
}

func TestCleanLinkPasses(t *testing.T) {
	rep := judged(t, openTrial(), world{rate: 93e6})
	for _, i := range rep.Items {
		if i.Result != result.Pass {
			t.Errorf("%s: %s %q", i.ID, i.Result, i.Reasons)
		}
		for _, c := range i.Checks {
			if c.Result == result.Fail || c.Result == result.Inconclusive {
				t.Errorf("%s: %s: %s", i.ID, c.Check, c.Text)
			}
		}
	}
	if len(rep.Items) != 13 || suite.Total(rep) != result.Pass || !strings.HasPrefix(rep.Summary, "ACCEPTED: the link of 100 Mbit/s to server-host passes all 13 items.") {
		t.Errorf("%d items, %s, %q", len(rep.Items), suite.Total(rep), rep.Summary)
	}
	a := rep.Acceptance
	if a.Alarm == nil || *a.Alarm != 83.7e6 || a.Streams == nil || *a.Streams != 1 || a.RTT == nil || *a.RTT != 0.010 || a.Rounds != 3 {
		t.Errorf("%+v", a)
	}
	text := fmt.Sprint(a.Todo)
	for _, want := range []string{"fullbore test 192.0.2.2 -P 8 -t 30 --quiet --expect '>= 83700K'", "fullbore accept 192.0.2.2 --link 100M --profile metro"} {
		if !strings.Contains(text, want) {
			t.Errorf("no advice %q in %s", want, text)
		}
	}
	if a.Parallel == nil || *a.Parallel != 8 || a.ParallelFrom != "default" || !strings.Contains(a.Findings[0], "have 8, since no knee was found: up 1 stream carried as much as more did (93.0 Mbit/s)") {
		t.Errorf("streams: %+v, %q", a.ParallelFrom, a.Findings)
	}
	if len(rep.Paths) != 2 || *rep.Paths[1].MTU != 1500 {
		t.Errorf("path MTU: %+v", rep.Paths)
	}
	if c := find(t, rep, "A2-up").Criteria[0]; len(c.Rounds) != 3 || *c.Value != 93e6 {
		t.Errorf("raw rounds: %+v", c)
	}
}

// Ten faults, each on the right item with the right words, and on no other.
func TestFaults(t *testing.T) {
	ptr := func(v int64) *int64 { return &v }
	udp := func(prefix string, d result.Direction, f func(u *result.UDPStream)) func(string, result.Direction, *result.Run) {
		return func(name string, way result.Direction, run *result.Run) {
			if strings.HasPrefix(name, prefix) && way == d {
				f(run.Sum(way).UDP)
			}
		}
	}
	lost := func(n int64) func(u *result.UDPStream) {
		return func(u *result.UDPStream) {
			u.Received.Packets -= n
			u.Loss.Lost, u.Loss.Network = n, ptr(n)
			u.Loss.Ratio = float64(n) / float64(u.Loss.Sent)
		}
	}
	for _, c := range []struct {
		name string
		w    world
		bad  map[string]string // item: result and words
	}{
		{"rate 10 % low", world{rate: 84e6}, map[string]string{"A1": "fail misses at least 84.7 Mbit/s", "A2": "fail misses at least 89.4 Mbit/s (95 % of what TCP can carry"}},
		{"retransmits", world{rate: 93e6, again: 2000}, map[string]string{"A2": "fail Efficiency 9"}},
		{"loss", world{rate: 93e6, plant: udp("A4", result.Up, lost(24))}, map[string]string{"A4-up": "fail the network alone lost more"}},
		{"hardly a loss", world{rate: 93e6, plant: udp("A4", result.Up, lost(3))}, map[string]string{"A4-up": "inconclusive so few packets do not prove it"}},
		{"the socket's loss", world{rate: 93e6, plant: func(name string, d result.Direction, run *result.Run) {
			if strings.HasPrefix(name, "A4-up") {
				lost(24)(run.Sum(d).UDP)
				run.Sum(d).UDP.Loss.Socket, run.Sum(d).UDP.Loss.Network = ptr(24), ptr(0)
				run.Flags = []string{"local_drops"}
			}
		}}, map[string]string{"A4-up": "inconclusive itself dropped packets"}},
		{"jitter", world{rate: 93e6, plant: udp("A5", result.Down, func(u *result.UDPStream) { u.Received.PDV.P99 = 0.004 })}, map[string]string{"A5-down": "fail Delay variation (p99) 4.00 ms misses at most 2.00 ms"}},
		{"reordering", world{rate: 93e6, plant: udp("A4", result.Down, func(u *result.UDPStream) { u.Received.Reordered = 240 })}, map[string]string{"A4-down": "fail Reordering: 240 of"}},
		{"duplicates", world{rate: 93e6, plant: udp("A4", result.Up, func(u *result.UDPStream) { u.Received.Duplicates = 7 })}, map[string]string{"A4-up": "fail Duplicates 7 misses at most 0"}},
		{"queue", world{rate: 93e6, plant: func(name string, _ result.Direction, run *result.Run) {
			if strings.HasPrefix(name, "A6-down") {
				run.Probes[0].RoundTrip.P95 = 0.170
			}
		}}, map[string]string{"A6-down": "fail Rise of the delay (p95) 160 ms"}},
		{"short packets, told", world{rate: 93e6, paths: []result.PathMTU{path(result.Up, 1400, "told"), path(result.Down, 1500, "link")}, plant: segments(1348)}, map[string]string{"A0": `fail packets of 1400 bytes up at most, not 1500: a router on the way says so (ICMP "too big": 1400)`}},
		{"a black hole", world{rate: 93e6, paths: []result.PathMTU{path(result.Up, 1500, "link"), path(result.Down, 1333, "hole")}, plant: segments(1200)}, map[string]string{"A0": "fail packets of 1333 bytes down at most, not 1500: larger ones vanish and nobody says so"}},
		{"short packets by a kernel's belief", world{rate: 93e6, paths: []result.PathMTU{}, plant: func(_ string, d result.Direction, run *result.Run) {
			for i := range run.Streams {
				if t := run.Streams[i].TCP; t != nil && d == result.Up {
					t.Last.PMTU = 1400
				}
			}
		}}, map[string]string{"A0": "fail packets of 1400 bytes up at most, not 1500 (as TCP found it)"}},
		{"a search that TCP contradicts", world{rate: 93e6, paths: []result.PathMTU{path(result.Up, 1280, "hole"), path(result.Down, 1500, "link")}, plant: func(_ string, d result.Direction, run *result.Run) {
			for i := range run.Streams {
				if t := run.Streams[i].TCP; t != nil {
					t.Last.Timestamps = true
				}
			}
		}}, map[string]string{"A0": "inconclusive but TCP moved payload in packets of 1500"}},
		{"a search that was cut short", world{rate: 93e6, paths: []result.PathMTU{path(result.Up, 1452, "unsure"), path(result.Down, 1500, "link")}}, map[string]string{"A0": "inconclusive packets of 1452 bytes up at least"}},
		{"starved receiver", world{rate: 20e6, plant: func(_ string, d result.Direction, run *result.Run) {
			if run.Test.Transport == "tcp" {
				run.Flags = []string{"receiver_cpu", "unsteady"}
			}
		}}, map[string]string{"A1": "inconclusive the processor of the receiving end", "A2": "inconclusive the processor of the receiving end"}},
		{"the user's own bound", world{rate: 84e6, plant: func(_ string, _ result.Direction, run *result.Run) {
			if run.Test.Transport == "tcp" {
				run.Test.MaxRate = 86e6
			}
		}}, map[string]string{"A1": "inconclusive was not to go above 86.0 Mbit/s in all", "A2": "inconclusive was not to go above 86.0 Mbit/s in all"}},
		{"a bound far above", world{rate: 84e6, plant: func(_ string, _ result.Direction, run *result.Run) {
			if run.Test.Transport == "tcp" {
				run.Test.MaxRate = 1e9
			}
		}}, map[string]string{"A1": "fail misses at least 84.7 Mbit/s", "A2": "fail misses at least 89.4 Mbit/s"}},
		{"foreign traffic", world{rate: 70e6, plant: func(_ string, d result.Direction, run *result.Run) {
			for i := range run.Rows {
				run.Rows[i].Host.NIC.TxBytes += 30e6 / 8 * span
				run.Rows[i].Host.NIC.RxBytes += 30e6 / 8 * span
			}
		}}, map[string]string{"A1": "inconclusive other traffic", "A2": "inconclusive eth0 of client-host"}},
		{"another interface", world{rate: 93e6, plant: func(name string, d result.Direction, run *result.Run) {
			if strings.HasPrefix(name, "A2-up") {
				for i := range run.Rows {
					run.Rows[i].Host.NIC.TxBytes /= 10
				}
			}
		}}, map[string]string{"A2-up": "inconclusive it went another way, or a counter is wrong"}},
		{"ends that do not agree", world{rate: 93e6, plant: func(name string, d result.Direction, run *result.Run) {
			if strings.HasPrefix(name, "A1-down") {
				run.Sums[0].Receiver.Bytes /= 2
			}
		}}, map[string]string{"A1-down": "inconclusive The ends do not agree"}},
		{"counts that do not add up", world{rate: 93e6, plant: udp("A4", result.Up, func(u *result.UDPStream) { u.Received.Packets += 5 })}, map[string]string{"A4-up": "inconclusive do not add up"}},
	} {
		rep := judged(t, trial(), c.w)
		for _, i := range rep.Items {
			want, bad := c.bad[i.ID]
			if !bad {
				want, bad = c.bad[strings.Split(i.ID, "-")[0]]
			}
			if !bad {
				if i.Result != result.Pass {
					t.Errorf("%s: %s is %s: %q", c.name, i.ID, i.Result, i.Reasons)
				}
				continue
			}
			verdict, words, _ := strings.Cut(want, " ")
			if i.Result != verdict || !strings.Contains(strings.Join(i.Reasons, "\n"), words) {
				t.Errorf("%s: %s is %s, want %s with %q: %q", c.name, i.ID, i.Result, verdict, words, i.Reasons)
			}
		}
	}
}

// What one end cannot check is said and held against nobody.
func TestPlainPeer(t *testing.T) {
	w := world{rate: 93e6}
	s := trial()
	m := suite.Method{Suite: s, Path: suite.Path{Family: 4, MTU: 1500}}
	var history []method.Done
	for _, step := range m.Steps() {
		run := w.run(step)
		run.Wire, run.Probes, run.Hosts.Server = &result.Wire{}, nil, nil
		var rows []result.Interval
		for _, r := range run.Rows {
			if r.End == result.Client {
				rows = append(rows, r)
			}
		}
		run.Rows = rows
		history = append(history, method.Done{Step: step, Run: run})
	}
	rep := &result.Report{}
	for i := range history {
		rep.Runs = append(rep.Runs, history[i].Run)
	}
	(&suite.Judge{Method: m}).Fill(rep, history)
	if i := find(t, rep, "A2-up"); i.Result != result.Pass {
		t.Errorf("A2: %s %q", i.Result, i.Reasons)
	}
	if i := find(t, rep, "A6-down"); i.Result != result.Inconclusive || !strings.Contains(i.Reasons[0], "nothing answers small packets there") {
		t.Errorf("A6: %s %q", i.Result, i.Reasons)
	}
	if text := strings.Join(rep.Unseen, "\n"); !strings.Contains(text, "The other end is no fullbore") || !strings.Contains(text, "counters of 192.0.2.2 are not known") ||
		!strings.Contains(text, "Only a fullbore answers single packets of several sizes") {
		t.Errorf("unseen: %s", text)
	}
}

func TestSwapped(t *testing.T) {
	here := judged(t, trial(), world{rate: 93e6})
	there := judged(t, trial(), world{rate: 92e6})
	if err := suite.Swapped(here, there); err != nil {
		t.Fatal(err)
	}
	if i := find(t, here, "swapped"); i.Result != result.Pass || len(here.Acceptance.Swapped) != 6 {
		t.Errorf("%s %q, %d compared", i.Result, i.Reasons, len(here.Acceptance.Swapped))
	}
	here, there = judged(t, trial(), world{rate: 93e6}), judged(t, trial(), world{rate: 70e6})
	if err := suite.Swapped(here, there); err != nil {
		t.Fatal(err)
	}
	if i := find(t, here, "swapped"); i.Result != result.Inconclusive || !strings.Contains(i.Reasons[0], "slower with server-host as the client. So it is server-host that differs, not the direction.") {
		t.Errorf("%s %q", i.Result, i.Reasons)
	}
	there.Acceptance.Link++
	if err := suite.Swapped(here, there); err == nil {
		t.Error("another link was compared")
	}
}

// An acceptance that ended early says of what is missing that it was not measured.
func TestUnfinished(t *testing.T) {
	s := trial()
	m := suite.Method{Suite: s, Path: suite.Path{Family: 4, MTU: 1500}}
	first, _ := m.Next(nil)
	history := []method.Done{{Step: first, Run: world{}.run(first)}}
	rep := &result.Report{Runs: []*result.Run{history[0].Run}}
	(&suite.Judge{Method: m}).Fill(rep, history)
	if i := find(t, rep, "A4-up"); i.Result != result.Inconclusive || !strings.Contains(i.Reasons[0], "not measured") {
		t.Errorf("%s %q", i.Result, i.Reasons)
	}
}

// A server that trusts its client tells its own limits, and what is to be set there follows from them.
func TestServerSettings(t *testing.T) {
	low := &result.Facts{OS: "linux", NIC: "eth1", TCPRead: &[3]int64{4096, 131072, 200000}, TCPWrite: &[3]int64{4096, 16384, 4 << 20}, Off: []string{"gro"}}
	rep := judged(t, trial(), world{rate: 93e6, plant: func(_ string, _ result.Direction, run *result.Run) {
		run.Hosts.Server.Settings = low
	}})
	text := fmt.Sprint(rep.Acceptance.Todo)
	if !strings.Contains(text, "{server-host A connection that fills this link needs windows of 244 KiB") || !strings.Contains(text, "Its limits are lower (tcp_rmem 195 KiB, tcp_wmem 4.00 MiB at most)") ||
		!strings.Contains(text, "net.ipv4.tcp_rmem='4096 131072") || strings.Contains(text, "tcp_wmem='") {
		t.Errorf("advice: %s", text)
	}
	said := false
	for _, c := range find(t, rep, "A0").Checks {
		said = said || c.Check == "offloads" && c.End == result.Server && strings.Contains(c.Text, "Offloads of eth1 of server-host are off (gro)")
	}
	if !said {
		t.Errorf("the server's offloads: %+v", find(t, rep, "A0").Checks)
	}
}
