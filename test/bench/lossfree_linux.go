package main

import (
	"fmt"
	"sort"
)

// steps are the rates tried for the highest that loses nothing, Gbit/s.
var steps = []float64{0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60}

// lossFreeMost is the share of datagrams that may be lost, in the median of lossFreeRuns
// runs of one step.
const (
	lossFreeMost = 0.001
	lossFreeRuns = 3
)

// lossFree searches, for each program that is here, the highest step at which its
// receiver loses nothing, with datagrams of 1448 bytes and those that it takes by itself.
// The figure is what was received then: a sender that falls short of the step is no loss.
func lossFree(b *runner) []figure {
	var out []figure
	for _, size := range []int{mtuSize, 0} {
		for _, c := range []command{
			nativeUDP("fullbore test -u"), nativeUDP("fullbore test -u --offload off", "--offload", "off"),
			iperf3UDP("iperf3 -u"), iperf3UDP("iperf3 -u --gsro", "--gsro"), iperf2UDP(), nuttcpUDP(),
		} {
			if b.tools.missing(c) == "" {
				out = append(out, b.lossFree(c, size))
			}
		}
	}
	return out
}

func (b *runner) lossFree(c command, size int) figure {
	what := fmt.Sprintf("%d bytes", size)
	if size == 0 {
		what = "default datagram"
	}
	f := figure{id: "free", title: fmt.Sprintf("loss-free received rate, %s, %s", what, c.name), unit: "Gbit/s"}
	got := map[int]float64{}
	var failed error
	// The first step that loses, by bisection: a step above one that loses is taken to lose.
	first := sort.Search(len(steps), func(i int) bool {
		if failed != nil {
			return true
		}
		var lost, gbit []float64
		for range lossFreeRuns {
			r, err := b.run(c, 1, load{udp: true, size: size, rate: int64(steps[i] * 1e9)})
			if err != nil {
				failed = err
				return true
			}
			lost, gbit = append(lost, r.dropped), append(gbit, r.gbit())
		}
		got[i] = median(gbit)
		return median(lost) > lossFreeMost
	})
	switch {
	case failed != nil:
		f.note = failed.Error()
	case first == 0:
		f.title += fmt.Sprintf(" (loses more than %g %% at %g)", 100*lossFreeMost, steps[0])
	case first == len(steps):
		f.value = got[first-1]
		f.title += fmt.Sprintf(" (offered %g, the highest step)", steps[first-1])
	default:
		f.value = got[first-1]
		f.title += fmt.Sprintf(" (offered %g; loses at %g)", steps[first-1], steps[first])
	}
	return f
}
