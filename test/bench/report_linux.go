package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// report prints rows as they are measured and keeps them for the table.
type report struct {
	o       options
	tools   toolset
	lines   []line
	figures []figure
	paces   []pace
	begun   time.Time
	ended   time.Time
}

func (r *report) begin(o options, t toolset) {
	r.o, r.tools, r.begun = o, t, time.Now()
	fmt.Println("programs:", t.list())
	fmt.Println("machine: ", machine())
}

func machine() string {
	var u unix.Utsname
	release := ""
	if unix.Uname(&u) == nil {
		release = unix.ByteSliceToString(u.Release[:])
	}
	model := "unknown processor"
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range bytes.Lines(data) {
			if k, v, ok := strings.Cut(string(line), ":"); ok && strings.TrimSpace(k) == "model name" {
				model = strings.TrimSpace(v)
				break
			}
		}
	}
	return fmt.Sprintf("Linux %s, %d × %s", release, runtime.NumCPU(), model)
}

func (r *report) add(l line) {
	r.lines = append(r.lines, l)
	if l.note != "" {
		fmt.Printf("%-4s %-14s %s: not measured: %s\n", l.net, l.id, l.title, l.note)
		return
	}
	fmt.Printf("%-4s %-14s %s: %.2f (%.2f–%.2f)%s; %.3f against %.3f CPU-s/GB; %.1f against %.1f Gbit/s%s; others %.0f %%\n",
		l.net, l.id, l.title, l.ratio, l.low, l.high, l.verdict(), l.oursGB, l.peerGB, l.oursGbit, l.peerGbit, l.datagrams(), 100*l.foreign)
}

// datagrams adds what only UDP rows have.
func (l line) datagrams() string {
	if !l.load.udp {
		return ""
	}
	s := fmt.Sprintf("; not read %.2g against %.2g %%", 100*l.oursDropped, 100*l.peerDropped)
	if l.load.size > 0 {
		s += fmt.Sprintf("; %.3g against %.3g Mpps", l.mpps(l.oursGbit), l.mpps(l.peerGbit))
	}
	return s + l.uncut("; ")
}

func (l line) mpps(gbit float64) float64 { return gbit * 1e3 / 8 / float64(l.load.size) }

// uncut says whose super-packets reached the receiver whole. On a NIC they are cut, and a
// datagram costs more than here.
func (l line) uncut(before string) string {
	var who []string
	for _, side := range []struct {
		name string
		n    float64
	}{{"fullbore", l.oursPacket}, {"peer", l.peerPacket}} {
		if side.n > 1.5 {
			who = append(who, fmt.Sprintf("%s %.0f a packet", side.name, side.n))
		}
	}
	if who == nil {
		return ""
	}
	return before + "never cut: " + strings.Join(who, ", ")
}

func (l line) verdict() string {
	switch {
	case l.gate == 0:
		return ""
	case !l.kept():
		return fmt.Sprintf(" rate MISSED: %.2f of %g Gbit/s", l.oursGbit, l.load.gbit())
	case l.ratio >= l.goal:
		return fmt.Sprintf(" goal %.2f reached", l.goal)
	case l.ratio >= l.gate:
		return fmt.Sprintf(" gate %.2f passed", l.gate)
	}
	return fmt.Sprintf(" gate %.2f MISSED", l.gate)
}

func (r *report) addFigures(fs []figure) {
	for _, f := range fs {
		r.figures = append(r.figures, f)
		fmt.Printf("     %-14s %s: %s\n", f.id, f.title, f.text())
	}
}

func (f figure) text() string {
	if f.note != "" {
		return "not measured: " + f.note
	}
	value := strings.TrimSpace(fmt.Sprintf("%.3g %s", f.value, f.unit))
	if f.gate == 0 {
		return value
	}
	word, bound := "MISSED", "≤"
	if f.passed() {
		word = "passed"
	}
	if f.unfit != "" {
		word = "machine unfit: " + oneLine(f.unfit)
	}
	if f.atLeast {
		bound = "≥"
	}
	return value + fmt.Sprintf(" (%s %g: %s)", bound, f.gate, word)
}

func (r *report) end(t time.Time) { r.ended = t }

// code is 1 when a row that must reach its gate did not. Gates are of loopback; over
// veth they are shown.
func (r *report) code() int {
	for _, l := range r.lines {
		if l.must && l.net == "lo" && !l.passed() {
			return 1
		}
	}
	for _, p := range r.paces {
		if p.net == "lo" && !p.passed() {
			return 1
		}
	}
	for _, f := range r.figures {
		if f.must && !f.passed() {
			return 1
		}
	}
	return 0
}

func (r *report) markdown() string {
	var b strings.Builder
	p := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	placed := "each end bound to one core"
	if r.o.unpinned {
		placed = "both ends placed by the scheduler"
	}
	p("# Benchmarks")
	p("")
	p("Written by `make bench` on %s. %s. Programs: %s.", r.begun.UTC().Format("2006-01-02"), machine(), r.tools.list())
	p("It needs root, for namespaces; peers are found on PATH or by `IPERF3 IPERF NUTTCP NTTTCP ETHR`. Some rows only:")
	p("`go run ./test/bench -rows '^(U|P1|P2|pace|free)' -nets lo`.")
	p("")
	p("Whole programs, in turn (A B A B …), %g s a run, %s, in network namespaces of", r.o.seconds, placed)
	p("their own, cubic. CPU-s/GB: user and system time of both processes plus the kernel's packet threads, per")
	p("10⁹ bytes of payload that arrived, by the receiving interface's counters. Ratio: median of the pairs' ratios,")
	p("peer ÷ fullbore; above 1 fullbore costs less; lowest and highest pair in brackets. No run was dropped. *Others*:")
	p("share of the machine that everything else used meanwhile (median). Rates depend on what else ran; compare")
	p("ratios. Rows in bold must reach their gate over loopback.")
	if slices.ContainsFunc(r.lines, func(l line) bool { return strings.HasPrefix(l.id, "NT") }) {
		p("")
		p("Rows NT…: 64 streams to 64 ports (`-P 64 -n 1`), and four threads to each of 16 ports (ntttcp's default). A run in which")
		p("ntttcp-for-linux never ended has no figure: it was repeated, and the row says so. Its receiver, and ours, copy.")
	}
	p("")
	p("UDP counts what the receiving program read: the interface's bytes, less the share that the kernel's UDP counters")
	p("have as dropped at the socket (*not read*). Rows of a rate: fullbore ÷ peer. *Never cut*: one packet at the")
	p("receiver's interface held so many datagrams, as links without hardware pass super-packets on; a NIC cuts them.")
	for _, net := range splitNets(r.o.nets) {
		p("")
		p("## Over %s", map[string]string{"lo": "loopback", "veth": "a veth pair"}[net])
		p("")
		p("| row | what | fullbore | peer | ratio | gate | goal | fullbore CPU-s/GB | peer CPU-s/GB | fullbore Gbit/s | peer Gbit/s | peak MiB | others |")
		p("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
		for _, l := range r.lines {
			if l.net == net && !l.load.udp {
				p("%s", l.markdown())
			}
		}
		r.markdownUDP(net, p)
		r.markdownPace(net, p)
	}
	if len(r.figures) > 0 {
		p("")
		p("## Scale, memory, start, lateness, loss-free rate")
		p("")
		p("| row | what | figure |")
		p("|---|---|---|")
		for _, f := range r.figures {
			p("| %s | %s | %s |", bold(f.id, f.must), f.title, f.text())
		}
	}
	p("")
	p("Took %s.", r.ended.Sub(r.begun).Round(time.Second))
	return b.String()
}

func bold(s string, yes bool) string {
	if yes {
		return "**" + s + "**"
	}
	return s
}

func (l line) markdown() string {
	gate, goal := "–", "–"
	if l.gate > 0 {
		gate, goal = fmt.Sprintf("%g", l.gate), fmt.Sprintf("%g", l.goal)
	}
	if l.note != "" {
		return fmt.Sprintf("| %s | %s | %s | %s | not measured: %s | %s | %s | | | | | | |",
			bold(l.id, l.must), l.title, l.ours.name, l.peers(), oneLine(l.note), gate, goal)
	}
	ratio := fmt.Sprintf("%.2f (%.2f–%.2f)", l.ratio, l.low, l.high)
	ratio += l.missed()
	if l.load.udp {
		packets := "–"
		if l.load.size > 0 {
			packets = fmt.Sprintf("%.3g / %.3g", l.mpps(l.oursGbit), l.mpps(l.peerGbit))
		}
		return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %.3f / %.3f | %.2f / %.2f | %s | %.2g / %.2g %% | %s | %.0f %% |",
			bold(l.id, l.must), l.title, l.ours.name, l.peers(), ratio, gate, goal, l.oursGB, l.peerGB, l.oursGbit, l.peerGbit,
			packets, 100*l.oursDropped, 100*l.peerDropped, l.uncut(""), 100*l.foreign)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %.3f | %.3f | %.1f | %.1f | %.1f / %.1f | %.0f %% |",
		bold(l.id, l.must), l.title, l.ours.name, l.peer.name, ratio, gate, goal,
		l.oursGB, l.peerGB, l.oursGbit, l.peerGbit, float64(l.oursPeak)/mib, float64(l.peerPeak)/mib, 100*l.foreign)
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return strings.ReplaceAll(s[:min(len(s), 200)], "|", "/")
}

// peers names the ways that the peer was run.
func (l line) peers() string {
	s := l.peer.name
	for _, c := range l.more {
		s += " or " + c.name
	}
	return s
}

func (l line) missed() string {
	switch {
	case l.gate > 0 && l.ratio < l.gate:
		return " below the gate"
	case !l.kept():
		return " below the rate"
	}
	return ""
}

// markdownUDP is the table of one network's UDP rows.
func (r *report) markdownUDP(net string, p func(string, ...any)) {
	head := false
	for _, l := range r.lines {
		if l.net != net || !l.load.udp {
			continue
		}
		if !head {
			head = true
			p("")
			p("UDP; pairs of figures are fullbore / peer:")
			p("")
			p("| row | what | fullbore | peer | ratio | gate | goal | CPU-s/GB | Gbit/s | Mpps | not read | never cut | others |")
			p("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
		}
		p("%s", l.markdown())
	}
}
