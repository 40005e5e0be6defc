// Command bench compares whole programs: fullbore with each peer that it finds, run
// in turn (A B A B …) over loopback and over a veth pair, one end per core, in
// namespaces of its own. It prints its rows (see rows) and writes them as a table.
//
// The figure is CPU-seconds per GB: user and system time of both processes (wait4)
// plus that of the ksoftirqd threads (their scheduler statistics), divided by the
// payload that arrived, as the receiving interface's counters say: no program's own
// word is taken. Of UDP only what the receiving program read counts: of the interface's
// bytes the share that the kernel's UDP counters have as read. A row's ratio is the
// median of the pairs' ratios, peer ÷ fullbore; above 1 fullbore costs less. Rows of
// received rate are the other way round. No run is dropped. What everything else on the
// machine used meanwhile is measured and shown.
//
// Claims about time (the pacing table, rows P1 and P2) are proved with kernel stamps of
// every datagram at the receiving interface (test/pacing), in fit runs only: while a
// thread that only sleeps is late by at most 1 ms (p99) and never by more than 100 ms, and
// at most 5 % of the machine is stolen. Void runs are replayed, at most 5 times; never fit is said, and is no miss.
//
// Peers are found on PATH or by IPERF3, IPERF, NUTTCP, NTTTCP, ETHR (a path). It must
// be root, for the namespaces. Exit code 1 when a row that must reach its gate did not.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"time"
)

type options struct {
	fullbore string
	out      string
	rows     string
	nets     string
	pairs    int
	seconds  float64
	unpinned bool
}

func main() {
	var o options
	flag.StringVar(&o.fullbore, "fullbore", "bin/fullbore", "the program")
	flag.StringVar(&o.out, "out", "", "write the table to this file as well")
	flag.StringVar(&o.rows, "rows", "", "only rows whose name matches this expression")
	flag.StringVar(&o.nets, "nets", "lo,veth", "lo, veth or both")
	flag.IntVar(&o.pairs, "pairs", 5, "pairs a row; rows with a gate under 1.2 take at least 9")
	flag.Float64Var(&o.seconds, "time", 1, "seconds a run, at least 1")
	flag.BoolVar(&o.unpinned, "unpinned", false, "let the scheduler place both ends")
	flag.Parse()
	code, err := bench(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		code = 2
	}
	os.Exit(code)
}

func bench(o options) (code int, err error) {
	only, err := regexp.Compile(o.rows)
	if err != nil {
		return 2, err
	}
	if os.Geteuid() != 0 {
		return 2, fmt.Errorf("must be root: the runs take place in network namespaces of their own")
	}
	tools, err := findTools(o.fullbore)
	if err != nil {
		return 2, err
	}
	var rep report
	rep.begin(o, tools)
	for _, name := range splitNets(o.nets) {
		nw, err := newNetwork(name)
		if err != nil {
			return 2, err
		}
		b := &runner{o: o, net: nw, tools: tools}
		for _, r := range rows() {
			if only.MatchString(r.id) && tools.has(r) {
				rep.add(b.row(r))
			}
		}
		for _, p := range paces() {
			if only.MatchString("pace") {
				rep.addPace(b.pace(p))
			}
		}
		for _, f := range figures() {
			if only.MatchString(f.id) && (name == "lo" || f.everywhere) {
				rep.addFigures(f.run(b))
			}
		}
		if err := nw.close(); err != nil {
			return 2, err
		}
	}
	rep.end(time.Now())
	if o.out != "" {
		if err := os.WriteFile(o.out, []byte(rep.markdown()), 0o644); err != nil {
			return 2, err
		}
	}
	return rep.code(), nil
}
