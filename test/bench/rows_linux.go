package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
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
}

// rows are the targets of the TCP engine, then what is only reported. A gate must, or
// should, be reached; a goal is aimed at.
func rows() []row {
	z, skip := "-Z", "--skip-rx-copy"
	out := []row{
		{"T1", "1 stream, both copy", 1, ours("iperf3 (copy)"), iperf3("iperf3"), 1.05, 1.2, false},
		{"T2", "1 stream, zero-copy send against defaults", 1, ours("iperf3 -Z", z), iperf3("iperf3"), 1.3, 1.5, true},
		{"T3", "1 stream, -Z against -Z", 1, ours("iperf3 -Z", z), iperf3("iperf3 -Z", z), 1.0, 1.15, false},
		{"T4", "1 stream, received data discarded", 1, ours("iperf3 --skip-rx-copy", skip), iperf3("iperf3 --skip-rx-copy", skip), 1.1, 1.5, false},
		{"T4z", "same, peer with -Z", 1, ours("iperf3 --skip-rx-copy", skip), iperf3("iperf3 -Z --skip-rx-copy", z, skip), 1.1, 1.5, false},
		{"T7a", "1 stream, both copy, against ethr 128 KiB", 1, ours("iperf3 (copy)"), ethr("ethr -l 128KB", "-l", "128KB"), 1.5, 2, true},
		{"T7b", "same, ethr's default", 1, ours("iperf3 (copy)"), ethr("ethr"), 3, 4, true},
		{"N1", "1 stream, native defaults against iperf3's", 1, native(), iperf3("iperf3"), 1.9, 2.3, true},
	}
	gates := map[string][3]float64{"T5": {1.15, 1.2, 1.3}, "T6": {1, 1, 1}, "T6z": {1, 1, 1}, "T6s": {1, 1, 1}}
	goals := map[string][3]float64{"T5": {1.4, 1.5, 1.8}, "T6": {1.1, 1.1, 1.1}, "T6z": {1.15, 1.15, 1.15}, "T6s": {1.15, 1.15, 1.15}}
	for i, n := range []int{4, 16, 64} {
		add := func(id, title string, a, b command, must bool) {
			out = append(out, row{fmt.Sprintf("%s/%d", id, n), fmt.Sprintf("%d streams, %s", n, title), n, a, b, gates[id][i], goals[id][i], must})
		}
		add("T5", "zero-copy send against defaults", ours("iperf3 -Z", z), iperf3("iperf3"), true)
		add("T6", "both copy", ours("iperf3 (copy)"), iperf3("iperf3"), false)
		add("T6z", "-Z against -Z", ours("iperf3 -Z", z), iperf3("iperf3 -Z", z), false)
		add("T6s", "received data discarded", ours("iperf3 --skip-rx-copy", skip), iperf3("iperf3 --skip-rx-copy", skip), false)
		out = append(out, row{fmt.Sprintf("N1/%d", n), fmt.Sprintf("%d streams, native defaults against iperf3's", n), n, native(), iperf3("iperf3"), 0, 0, false})
	}
	for _, n := range []int{1, 4, 16, 64} {
		for _, p := range []command{iperf2(), nuttcp(), ntttcp(), ethr("ethr")} {
			out = append(out, row{fmt.Sprintf("P-%s/%d", p.tool, n), fmt.Sprintf("%s, native defaults against %s's", streams(n), p.tool), n, native(), p, 0, 0, false})
		}
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
	var ratios, oursGB, peerGB, oursGbit, peerGbit, foreign []float64
	for range n {
		a, err := b.run(r.ours, r.streams)
		var p outcome
		if err == nil {
			p, err = b.run(r.peer, r.streams)
		}
		if err != nil {
			l.note = err.Error()
			return l
		}
		ratios = append(ratios, p.perGB()/a.perGB())
		oursGB, peerGB = append(oursGB, a.perGB()), append(peerGB, p.perGB())
		oursGbit, peerGbit = append(oursGbit, a.gbit()), append(peerGbit, p.gbit())
		foreign = append(foreign, a.foreign, p.foreign)
		l.oursPeak = max(l.oursPeak, a.peakClient, a.peakSrv)
		l.peerPeak = max(l.peerPeak, p.peakClient, p.peakSrv)
	}
	l.pairs = n
	l.ratio, l.low, l.high = median(ratios), slices.Min(ratios), slices.Max(ratios)
	l.oursGB, l.peerGB = median(oursGB), median(peerGB)
	l.oursGbit, l.peerGbit = median(oursGbit), median(peerGbit)
	l.foreign = median(foreign)
	return l
}

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
}

func (f figure) passed() bool {
	if f.note != "" {
		return false
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
	one, err := b.run(native(), 1)
	values := make([][]float64, len(out))
	for range 5 {
		if err != nil {
			break
		}
		var many outcome
		if many, err = b.run(native(), n); err != nil {
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
			r, err := b.run(ours("iperf3 (copy)"), c.n)
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
