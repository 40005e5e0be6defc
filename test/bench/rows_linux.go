package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"
)

// row compares one command of ours with one of a peer.
type row struct {
	id      string
	title   string
	streams int
	ours    command
	peer    command
	gate    float64 // 0 = only reported
	goal    float64
	must    bool
	// Of UDP rows.
	load load
	by   measured
	// more are further ways to run the peer: the one that costs least counts.
	more []command
}

// measured is what a row compares.
type measured int

const (
	cost measured = iota // CPU-s/GB, peer ÷ ours
	rate                 // what arrived in the program in a second, ours ÷ peer
)

// tcpRow is a row of TCP.
func tcpRow(id, title string, streams int, ours, peer command, gate, goal float64, must bool) row {
	return row{id: id, title: title, streams: streams, ours: ours, peer: peer, gate: gate, goal: goal, must: must}
}

// rows are the targets of the TCP engine and what is only reported, then those of UDP. A gate must, or
// should, be reached; a goal is aimed at.
func rows() []row {
	z, skip := "-Z", "--skip-rx-copy"
	out := []row{
		tcpRow("T1", "1 stream, both copy", 1, ours("iperf3 (copy)"), iperf3("iperf3"), 1.05, 1.2, false),
		tcpRow("T2", "1 stream, zero-copy send against defaults", 1, ours("iperf3 -Z", z), iperf3("iperf3"), 1.3, 1.5, true),
		tcpRow("T3", "1 stream, -Z against -Z", 1, ours("iperf3 -Z", z), iperf3("iperf3 -Z", z), 1.0, 1.15, false),
		tcpRow("T4", "1 stream, received data discarded", 1, ours("iperf3 --skip-rx-copy", skip), iperf3("iperf3 --skip-rx-copy", skip), 1.1, 1.5, false),
		tcpRow("T4z", "same, peer with -Z", 1, ours("iperf3 --skip-rx-copy", skip), iperf3("iperf3 -Z --skip-rx-copy", z, skip), 1.1, 1.5, false),
		tcpRow("T7a", "1 stream, both copy, against ethr 128 KiB", 1, ours("iperf3 (copy)"), ethr("ethr -l 128KB", "-l", "128KB"), 1.5, 2, true),
		tcpRow("T7b", "same, ethr's default", 1, ours("iperf3 (copy)"), ethr("ethr"), 3, 4, true),
		tcpRow("N1", "1 stream, native defaults against iperf3's", 1, native(), iperf3("iperf3"), 1.9, 2.3, true),
	}
	gates := map[string][3]float64{"T5": {1.15, 1.2, 1.3}, "T6": {1, 1, 1}, "T6z": {1, 1, 1}, "T6s": {1, 1, 1}}
	goals := map[string][3]float64{"T5": {1.4, 1.5, 1.8}, "T6": {1.1, 1.1, 1.1}, "T6z": {1.15, 1.15, 1.15}, "T6s": {1.15, 1.15, 1.15}}
	for i, n := range []int{4, 16, 64} {
		add := func(id, title string, a, b command, must bool) {
			out = append(out, tcpRow(fmt.Sprintf("%s/%d", id, n), fmt.Sprintf("%d streams, %s", n, title), n, a, b, gates[id][i], goals[id][i], must))
		}
		add("T5", "zero-copy send against defaults", ours("iperf3 -Z", z), iperf3("iperf3"), true)
		add("T6", "both copy", ours("iperf3 (copy)"), iperf3("iperf3"), false)
		add("T6z", "-Z against -Z", ours("iperf3 -Z", z), iperf3("iperf3 -Z", z), false)
		add("T6s", "received data discarded", ours("iperf3 --skip-rx-copy", skip), iperf3("iperf3 --skip-rx-copy", skip), false)
		out = append(out, tcpRow(fmt.Sprintf("N1/%d", n), fmt.Sprintf("%d streams, native defaults against iperf3's", n), n, native(), iperf3("iperf3"), 0, 0, false))
	}
	for _, n := range []int{1, 4, 16, 64} {
		for _, p := range []command{iperf2(), nuttcp(), ntttcp(), ethr("ethr")} {
			out = append(out, tcpRow(fmt.Sprintf("P-%s/%d", p.tool, n), fmt.Sprintf("%s, native defaults against %s's", streams(n), p.tool), n, native(), p, 0, 0, false))
		}
	}
	out = append(out, ntttcpRows()...)
	return append(out, udpRows()...)
}

// ntttcpRows compare the drop-in with ntttcp-for-linux, in the shapes that its users run: 64 ports
// of one thread, and its default of 16 ports of four. The receiver copies in all of them.
func ntttcpRows() (out []row) {
	const n = 64
	for i, shape := range []struct {
		title   string
		perPort int
	}{{"64 × 1 streams", 1}, {"16 × 4 streams", 4}} {
		peer := ntttcpLike("ntttcp", "ntttcp", nil, shape.perPort)
		id := []string{"", "d"}[i]
		out = append(out,
			tcpRow("NT"+strconv.Itoa(i+1), "ntttcp, "+shape.title+", both copy", n, oursNTTTCP(shape.perPort), peer, 1, 1.1, true),
			tcpRow("NT3"+id, "ntttcp, "+shape.title+", zero-copy send against its send", n, viaNTTTCP(shape.perPort), peer, 1.2, 1.4, true))
	}
	return out
}

func streams(n int) string {
	if n == 1 {
		return "1 stream"
	}
	return fmt.Sprintf("%d streams", n)
}

// line is a measured row.
type line struct {
	row
	net                string
	pairs              int
	ratio, low, high   float64
	oursGB, peerGB     float64
	oursGbit, peerGbit float64
	oursPeak, peerPeak int64 // the larger end's, at most
	foreign            float64
	note               string // why it was not measured

	// Of UDP rows: shares that arrived and were dropped at the socket; datagrams that one
	// packet held at the receiver's interface.
	oursDropped, peerDropped float64
	oursPacket, peerPacket   float64
}

// row measures r in pairs.
func (b *runner) row(r row) line {
	l := line{row: r, net: b.net.name}
	if why := b.tools.missing(r.peer); why != "" {
		l.note = why
		return l
	}
	n := b.o.pairs
	if r.gate == 0 {
		n = min(n, 3) // only to be looked at
	}
	if r.gate > 0 && r.gate < 1.2 {
		n = max(n, 9)
	}
	var ratios, foreign []float64
	var all [2]sample
	hung := b.hung
	for range n {
		a, err := b.run(r.ours, r.streams, r.load)
		var p outcome
		if err == nil {
			p, err = b.better(r)
		}
		if err != nil {
			l.note = err.Error()
			return l
		}
		ratio := p.perGB() / a.perGB()
		if r.by == rate {
			ratio = a.gbit() / p.gbit()
		}
		ratios, foreign = append(ratios, ratio), append(foreign, a.foreign, p.foreign)
		all[0].add(a)
		all[1].add(p)
	}
	if hung = b.hung - hung; hung > 0 {
		l.title += fmt.Sprintf(" (%d runs in which %s hung were repeated)", hung, r.peer.tool)
	}
	l.pairs = n
	l.ratio, l.low, l.high = median(ratios), slices.Min(ratios), slices.Max(ratios)
	l.oursGB, l.peerGB = median(all[0].perGB), median(all[1].perGB)
	l.oursGbit, l.peerGbit = median(all[0].gbit), median(all[1].gbit)
	l.oursPeak, l.peerPeak = all[0].peak, all[1].peak
	l.oursDropped, l.peerDropped = median(all[0].dropped), median(all[1].dropped)
	l.oursPacket, l.peerPacket = median(all[0].packet), median(all[1].packet)
	l.foreign = median(foreign)
	return l
}

// better runs the peer in each way that it can be run here and returns the run that cost
// least.
func (b *runner) better(r row) (best outcome, err error) {
	for i, c := range append([]command{r.peer}, r.more...) {
		if i > 0 && b.tools.missing(c) != "" {
			continue
		}
		p, err := b.run(c, r.streams, r.load)
		if err != nil {
			return outcome{}, err
		}
		if i == 0 || p.perGB() < best.perGB() {
			best = p
		}
	}
	return best, nil
}

// sample are the runs of one side.
type sample struct {
	perGB, gbit, dropped, packet []float64
	peak                         int64
}

func (s *sample) add(r outcome) {
	s.perGB, s.gbit = append(s.perGB, r.perGB()), append(s.gbit, r.gbit())
	s.dropped, s.packet = append(s.dropped, r.dropped), append(s.packet, r.perPacket)
	s.peak = max(s.peak, r.peakClient, r.peakSrv)
}

// kept reports that a paced row's rate was there, or as much of it as the peer had.
func (l line) kept() bool {
	return l.by == rate || l.load.rate == 0 || l.oursGbit >= min(0.98*l.load.gbit(), l.peerGbit)
}

func (l line) passed() bool { return l.note == "" && l.ratio >= l.gate && l.kept() }

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// figure is one number with a bound.
type figure struct {
	id, title string
	value     float64
	unit      string
	gate      float64
	atLeast   bool // the gate is a lower bound
	must      bool
	note      string
	unfit     string // no run was fit: the value is of unfit ones, and says nothing of the program
}

func (f figure) passed() bool {
	if f.note != "" {
		return false
	}
	if f.unfit != "" {
		return true
	}
	if f.atLeast {
		return f.value >= f.gate
	}
	return f.value <= f.gate
}

// measure makes some figures.
type measure struct {
	id         string
	everywhere bool // over each network, not only loopback
	run        func(*runner) []figure
}

func figures() []measure {
	return []measure{
		{"S1", false, manyStreams},
		{"S2", false, peakMemory},
		{"start", false, startUp},
		{"P1", false, frugal},
		{"P2", false, precise},
		{"free", false, lossFree},
	}
}

const mib = 1 << 20

// manyStreams: fairness and memory of 1,000 streams, the larger end counting. A
// stream's memory is what 999 more of them add to the process's own memory (RssAnon)
// while the traffic runs; what the peak rises by, with the exchange of a thousand
// results at the end, is reported beside it.
func manyStreams(b *runner) []figure {
	const n = 1000
	out := []figure{
		{id: "S1", title: "1,000 streams: Jain's index", gate: 0.98, atLeast: true, must: true},
		{id: "S1", title: "1,000 streams: memory per stream and end, while they run", unit: "KiB", gate: 3, must: true},
		{id: "S1", title: "same, at the peak, which is when the results are exchanged", unit: "KiB"},
	}
	one, err := b.run(native(), 1, load{})
	values := make([][]float64, len(out))
	for range 5 {
		if err != nil {
			break
		}
		var many outcome
		if many, err = b.run(native(), n, load{}); err != nil {
			break
		}
		var fair float64
		if fair, err = jain(many.clientOut); err != nil {
			break
		}
		per := func(client, server int64) float64 { return float64(max(client, server)) / (n - 1) / 1024 }
		for i, v := range []float64{fair, per(many.ownClient-one.ownClient, many.ownSrv-one.ownSrv), per(many.peakClient-one.peakClient, many.peakSrv-one.peakSrv)} {
			values[i] = append(values[i], v)
		}
	}
	for i := range out {
		if len(values[i]) > 0 {
			out[i].value = median(values[i])
			out[i].title += fmt.Sprintf(" (median of %d; %.3g–%.3g)", len(values[i]), slices.Min(values[i]), slices.Max(values[i]))
		}
	}
	if err != nil {
		for i := range out {
			out[i].note = err.Error()
		}
	}
	return out
}

// peakMemory of the drop-in, the larger end, highest of three runs.
func peakMemory(b *runner) []figure {
	var out []figure
	for _, c := range []struct {
		n    int
		gate float64
	}{{1, 12}, {64, 14}} {
		f := figure{id: "S2", title: fmt.Sprintf("peak memory, %d streams", c.n), unit: "MiB", gate: c.gate, must: true}
		for range 3 {
			r, err := b.run(ours("iperf3 (copy)"), c.n, load{})
			if err != nil {
				f.note = err.Error()
				break
			}
			f.value = max(f.value, float64(max(r.peakClient, r.peakSrv))/mib)
		}
		out = append(out, f)
	}
	return out
}

// startUp: from exec to exit of the smallest command, median of 21.
func startUp(b *runner) []figure {
	f := figure{id: "start", title: "start-up", unit: "ms", gate: 15, must: true}
	var ms []float64
	for range 21 {
		begun := time.Now()
		cmd := exec.Command(b.tools.path["fullbore"], "iperf3", "--version")
		cmd.Env = os.Environ()
		if out, err := cmd.CombinedOutput(); err != nil {
			f.note = fmt.Sprintf("%v: %s", err, out)
			return []figure{f}
		}
		ms = append(ms, time.Since(begun).Seconds()*1000)
	}
	f.value = median(ms)
	return []figure{f}
}
