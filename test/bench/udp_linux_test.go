package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/result"
	"github.com/fullbore-net/fullbore/test/pacing"
)

func TestUDPCommands(t *testing.T) {
	p := params{host: "192.0.2.1", seconds: 2, streams: 1}
	paced, full := load{true, 1448, 5e9}, load{udp: true}
	for _, c := range []struct {
		c       command
		l       load
		server  []string
		wants   []string
		serving string
	}{
		{nativeUDP("x", "--pacing", "frugal"), paced, []string{"serve"}, []string{"-u", "-b 5000000000", "-l 1448", "--pacing frugal", "--up", "--json"}, "fullbore"},
		{nativeUDP("x"), full, []string{"serve"}, []string{"-u", "-b 0"}, "fullbore"},
		{nativeTo("x", iperf3UDP("iperf3")), full, []string{"-s", "-1"}, []string{"test 192.0.2.1", "-b 0"}, "iperf3"},
		{iperf3UDP("x", "--gsro"), paced, []string{"-s", "-1"}, []string{"-c 192.0.2.1", "--gsro", "-u", "-b 5000000000", "-l 1448", "-t 2"}, "iperf3"},
		{iperf2UDP(), full, []string{"-s", "-u"}, []string{"-u", "-b 100G"}, "iperf"},
		{nuttcpUDP(), full, []string{"-1"}, []string{"-u", "-Ru", "-t"}, "nuttcp"},
		{nuttcpUDP(), paced, []string{"-1"}, []string{"-R5000000K", "-l1448"}, "nuttcp"},
	} {
		p.load = c.l
		server, client := c.c.server(7000, p), strings.Join(c.c.client(7000, p), " ")
		for _, w := range c.server {
			if !slices.Contains(server, w) {
				t.Errorf("server %v: no %s", server, w)
			}
		}
		for _, w := range c.wants {
			if !strings.Contains(client+" ", w+" ") {
				t.Errorf("client %q: no %s", client, w)
			}
		}
		if c.c.serving() != c.serving {
			t.Errorf("%s serves, want %s", c.c.serving(), c.serving)
		}
	}
}

// A load without a size leaves it to the program.
func TestDefaultDatagram(t *testing.T) {
	if f := (load{udp: true, rate: 1000}).flags("0"); slices.Contains(f, "-l") {
		t.Errorf("%v", f)
	}
}

func TestCount(t *testing.T) {
	const size, per = 1448, 45
	message := int64(frameUDP + size*per)
	for _, c := range []struct {
		name      string
		c         counters
		l         load
		bytes     int64
		dropped   float64
		perPacket float64
	}{
		{"TCP", counters{bytes: 10 * (frame + 1000), packets: 10}, load{}, 10_000, 0, 0},
		{"datagrams", counters{bytes: 100 * (frameUDP + size), packets: 100, read: 100}, load{true, size, 0}, 100 * size, 0, 1},
		{"super-packets, a quarter unread", counters{bytes: 100 * message, packets: 100, read: 75, unread: 25}, load{true, size, 0}, 75 * size * per, 0.25, per},
		{"super-packets cut at the socket", counters{bytes: 100 * message, packets: 100, read: 2250, unread: 2250}, load{true, size, 0}, 50 * size * per, 0.5, per},
		{"a default datagram", counters{bytes: 10 * (frameUDP + 9000), packets: 10, read: 10}, load{udp: true}, 90_000, 0, 0},
		{"nothing", counters{}, load{udp: true}, 0, 0, 0},
	} {
		var r outcome
		r.count(c.c, c.l)
		if r.bytes != c.bytes || r.dropped != c.dropped || r.perPacket != c.perPacket {
			t.Errorf("%s: %d bytes, %v dropped, %v a packet; want %d, %v, %v", c.name, r.bytes, r.dropped, r.perPacket, c.bytes, c.dropped, c.perPacket)
		}
	}
}

func TestCounters(t *testing.T) {
	snmp := []byte("Ip: Forwarding\nIp: 1\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdp: 100 3 20 7 19\nUdpLite: InDatagrams\nUdpLite: 5\n")
	read, unread, err := udpCounters(snmp)
	if err != nil || read != 100 || unread != 23 {
		t.Errorf("read %d, unread %d, %v; want 100, 23: InErrors holds RcvbufErrors", read, unread, err)
	}
	if _, _, err := udpCounters([]byte("Ip: 1\n")); err == nil {
		t.Error("no UDP counters are no error")
	}
	dev := []byte("Inter-| Receive\n face |bytes\n    lo: 500 5 0 0 0 0 0 0 500 5 0 0 0 0 0 0\n    vb: 7000 70 0 0\n")
	if bytes, packets, err := interfaceCounters(dev, "vb"); err != nil || bytes != 7000 || packets != 70 {
		t.Errorf("%d bytes, %d packets, %v", bytes, packets, err)
	}
	if _, _, err := interfaceCounters(dev, "eth0"); err == nil {
		t.Error("an absent interface is no error")
	}
}

// A paced row passes only at its rate, or at what the peer had of it.
func TestKept(t *testing.T) {
	l := line{row: row{gate: 2, load: load{true, 1448, 10e9}}, ratio: 3}
	for _, c := range []struct {
		ours, peer float64
		want       bool
	}{{9.9, 9.9, true}, {9.7, 9.9, false}, {9.7, 9.6, true}, {5, 4.9, true}} {
		l.oursGbit, l.peerGbit = c.ours, c.peer
		if l.passed() != c.want {
			t.Errorf("%v Gbit/s against %v: passed %v", c.ours, c.peer, l.passed())
		}
	}
	l.ratio, l.oursGbit, l.peerGbit = 1.9, 10, 10
	if l.passed() {
		t.Error("passed below the gate")
	}
}

func TestVoid(t *testing.T) {
	for _, c := range []struct {
		m    pacing.Machine
		want string
	}{
		{pacing.Machine{Late: pacing.Late{P99: 0.0009, Most: 0.09}, Steal: 0.05}, ""},
		{pacing.Machine{Late: pacing.Late{P99: 0.0011}}, "a sleeping thread was late by 1.1 ms (p99)"},
		{pacing.Machine{Late: pacing.Late{Most: 0.15}}, "a sleeping thread was late by 150 ms (most)"},
		{pacing.Machine{Steal: 0.06}, "steal 6.0 %"},
	} {
		if got := (&seen{machine: c.m}).void(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.m, got, c.want)
		}
	}
}

// The sender's word is read from its document and held against the stamps: a burst too
// large counts, unless the row of a stall has it.
func TestOurPace(t *testing.T) {
	const zero, gap = int64(1e12), int64(1e6) // 1000 a second
	l := load{true, 1400, 11_200_000}
	var arrivals []pacing.Arrival
	for i := range int64(1000) {
		at := zero + 500_000 + i*gap
		switch i {
		case 150, 151, 152, 650, 651, 652: // three at once
			at += (i/10*10+2-i)*gap + i%10*1000
		}
		arrivals = append(arrivals, pacing.Arrival{At: at + 4000, Sent: at, Seq: i + 1, Count: 1})
	}
	doc := func(lateMost float64) []byte {
		at := zero
		run := result.Run{Zero: &at, Streams: []result.Stream{{UDP: &result.UDPStream{Sent: &result.UDPSent{
			Packets: 1000, PlannedBurst: 1, LargestBurst: 3, Late: &result.Quantiles{Max: lateMost},
		}}}}}
		data, err := json.Marshal(run)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	r := outcome{clientOut: doc(0.002), seen: &seen{arrivals: arrivals}}
	p, err := r.ourPace(l)
	if err != nil {
		t.Fatal(err)
	}
	if p.report.Largest != 3 || p.report.Outside != 3 || p.report.Excess != 2 || p.sent.LargestBurst != 3 {
		t.Errorf("%+v", p.report)
	}
	if s := p.report.Schedule; s == nil || s.Least < 3.9e-6 || s.Least > 4.1e-6 {
		t.Errorf("lateness by the stamps %+v, want from 4 µs on", s)
	}
	for _, broken := range []string{"", "{}", `{"streams":[{}]}`} {
		r.clientOut = []byte(broken)
		if _, err := r.ourPace(l); err == nil {
			t.Errorf("%q is no error", broken)
		}
	}
}

func TestStalls(t *testing.T) {
	zero := int64(5e9)
	row := func(from, to, late float64, sender bool) result.StreamInterval {
		return result.StreamInterval{Sender: sender, Start: from, Stop: to, UDP: &result.UDPInterval{Late: &result.Quantiles{Max: late}}}
	}
	run := result.Run{Zero: &zero}
	for _, s := range []result.StreamInterval{row(0, 0.1, 0.0009, true), row(0.1, 0.2, 0.0011, true), row(0.2, 0.3, 0.5, false), {Sender: true}} {
		run.Rows = append(run.Rows, result.Interval{End: result.Client, Streams: []result.StreamInterval{s}})
	}
	want := []pacing.Span{{From: 5_100_000_000 - stallMargin, To: 5_200_000_000 + stallMargin}}
	if d := cmp.Diff(want, stalls(&run)); d != "" {
		t.Errorf("stalls (-want +got):\n%s", d)
	}
}

func TestPaceTakesTheWorst(t *testing.T) {
	var p pace
	sent := func(largest, stalls int64) *result.UDPSent {
		return &result.UDPSent{PlannedBurst: 1, LargestBurst: largest, Stalls: stalls}
	}
	p.take(ourPace{pacing.Report{RateError: -0.0002, Largest: 2, Outside: 2}, sent(2, 1)}, &pacing.Report{RateError: 0.01, Largest: 9, Median: 4})
	p.take(ourPace{pacing.Report{RateError: 0.0001, Largest: 5, Outside: 1}, sent(5, 2)}, nil)
	if p.rateError != -0.0002 || p.largest != 5 || p.outside != 2 || p.told != 5 || p.stalls != 3 || p.peerError != 0.01 || p.peerMost != 9 || p.peerUsual != 4 {
		t.Errorf("%+v", p)
	}
	if !p.passed() {
		t.Error("missed")
	}
	for name, bad := range map[string]pace{
		"rate": {rateError: -0.0011}, "a burst": {excess: 1}, "not measured": {note: "x"},
	} {
		if bad.passed() {
			t.Errorf("%s: passed", name)
		}
	}
	if unfit := (pace{rateError: 1, unfit: "steal"}); !unfit.passed() || !strings.HasPrefix(unfit.verdict(), "machine unfit: steal") {
		t.Errorf("unfit: %s", unfit.verdict())
	}
}

func TestReportUDP(t *testing.T) {
	good := line{
		row: row{id: "U1", title: "x", must: true, gate: 8, goal: 12, by: rate, load: load{true, 1448, 0}, ours: command{name: "a"}, peer: command{name: "b"}, more: []command{{name: "c"}}},
		net: "lo", ratio: 9, low: 8, high: 10, oursGbit: 50, peerGbit: 5, oursDropped: 0.1, oursPacket: 45, peerPacket: 1,
	}
	r := report{o: options{nets: "lo", seconds: 1}, lines: []line{good}}
	r.paces = []pace{{net: "lo", name: "10 Mbit/s", planned: 1, rounds: 3}, {net: "lo", name: "1 Mbit/s", note: "no\nway"}}
	r.figures = []figure{{id: "P1", title: "late", value: 900, unit: "µs", gate: 500, unfit: "steal 9 %"}}
	if r.code() != 1 {
		t.Error("a pace that was not measured passes")
	}
	r.paces = r.paces[:1]
	if r.code() != 0 {
		t.Error("all passed, and yet")
	}
	r.paces = append(r.paces, pace{net: "lo", name: "1 Mbit/s", note: "no\nway"})
	doc := r.markdown()
	for _, want := range []string{
		"| **U1** | x | a | b or c | 9.00 (8.00–10.00) | 8 | 12 |", "| 4.32 / 0.432 |", "never cut: fullbore 45 a packet",
		"| 10 Mbit/s | passed | +0.0000 % | 1 |", "| 1 Mbit/s | not measured: no way |", "900 µs (≤ 500: machine unfit: steal 9 %)",
	} {
		if !strings.Contains(doc, want) {
			t.Errorf("no %q in\n%s", want, doc)
		}
	}
	if strings.Contains(doc, "peak MiB | others |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n| **U1**") {
		t.Error("a UDP row is in TCP's table")
	}
}
