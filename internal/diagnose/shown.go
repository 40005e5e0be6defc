package diagnose

import (
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/result"
)

// What a table of stages shows is read here, so that it says of a stage what the rules say of it.

// RateOf is the payload rate of a direction of a stage, bit/s, as the verdicts have it: what a
// program read faster than its interface took it in came before, and is not counted (a receiver may
// catch up with what waited behind a hole when the warm-up ended).
func RateOf(d *method.Done, dir result.Direction) float64 { return flowOf(d, dir).rate }

// Delay is what a load costs: how much longer than on the empty path small packets beside it took,
// typically (above), else TCP's mean round trip at its sender; s.
func Delay(run *result.Run, dir result.Direction) (s float64, above, known bool) {
	if _, rise := probesBeside(run, dir); rise != nil {
		return rise.P50, true, true
	}
	for i := range run.Streams {
		if s := &run.Streams[i]; s.Direction == dir && s.TCP != nil && s.TCP.MeanRTT > 0 && run.End == dir.Sender() {
			return float64(s.TCP.MeanRTT) / 1e6, false, true
		}
	}
	return 0, false, false
}

// probesBeside are the probes that ran beside a load, and how much longer than the fastest of them they
// took in a direction; nil = there were none, or nobody told.
func probesBeside(run *result.Run, dir result.Direction) (probes *result.Probes, rise *result.Quantiles) {
	for i := range run.Probes {
		p := &run.Probes[i]
		way := p.Up
		if dir == result.Down {
			way = p.Down
		}
		if p.Kind == "udp-echo" && way != nil && way.PDV != nil {
			probes, rise = p, way.PDV
		}
	}
	return probes, rise
}
