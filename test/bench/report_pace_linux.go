package main

import "fmt"

func (r *report) addPace(p pace) {
	r.paces = append(r.paces, p)
	fmt.Printf("%-4s %-14s %s: %s\n", p.net, "pace", p.name, p.text())
}

func (p pace) text() string {
	if p.note != "" {
		return "not measured: " + p.note
	}
	return fmt.Sprintf("%s; rate error %+.4f %%; planned burst %d, largest %d, outside of stalls %d, too large there %d; told: largest %d, %d stalls, %d given up; iperf3: rate error %+.4f %%, bursts of %d, largest %d; sleeping thread p99 %.0f µs; %d rounds, %d void",
		p.verdict(), 100*p.rateError, p.planned, p.largest, p.outside, p.excess, p.told, p.stalls, p.unsent,
		100*p.peerError, p.peerUsual, p.peerMost, 1e6*p.machine, p.rounds, p.voids)
}

func (p pace) verdict() string {
	switch {
	case p.note != "":
		return "not measured: " + oneLine(p.note)
	case p.unfit != "":
		return "machine unfit: " + oneLine(p.unfit)
	case p.passed():
		return "passed"
	}
	return "MISSED"
}

// markdownPace is the table of one network's pacing.
func (r *report) markdownPace(net string, p func(string, ...any)) {
	head := false
	for _, l := range r.paces {
		if l.net != net {
			continue
		}
		if !head {
			head = true
			p("")
			p("Pacing, by the kernel's stamp of every datagram at the receiver's interface, default pacing, %d rounds of at least %d s,", paceRounds, paceSeconds)
			p("the worst of the fit ones. A burst are datagrams closer than half of their mean spacing. Claims: rate error ≤ %g %%; no", 100*rateErrorMost)
			p("burst beyond the planned one + %d outside the 0.1-s rows in which the sender itself reports a stall (> 1 ms late).", burstMore)
			p("Fit: a thread that only sleeps, on the sender's processor, is late by ≤ 1 ms (p99) and ≤ 100 ms, steal ≤ 5 %%. iperf3's bursts: median, largest.")
			p("")
			p("| rate | verdict | rate error | planned | largest, outside of stalls | largest in all | told: largest, stalls, given up | iperf3 rate error | iperf3 bursts | sleeping thread p99 | fit, void |")
			p("|---|---|---|---|---|---|---|---|---|---|---|")
		}
		if l.note != "" {
			p("| %s | %s | | | | | | | | | |", l.name, l.verdict())
			continue
		}
		p("| %s | %s | %+.4f %% | %d | %d | %d | %d, %d, %d | %+.4f %% | %d, %d | %.0f µs | %d, %d |",
			l.name, l.verdict(), 100*l.rateError, l.planned, l.outside, l.largest, l.told, l.stalls, l.unsent,
			100*l.peerError, l.peerUsual, l.peerMost, 1e6*l.machine, l.rounds, l.voids)
	}
}
