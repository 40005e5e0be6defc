package method

import (
	"slices"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

// Parameters of M-RPM (draft-ietf-ippm-responsiveness-09).
const (
	rpmAverage   = 4    // MAD: intervals that a moving average is over
	rpmTrim      = 0.95 // TMP
	rpmTolerance = 0.05 // SDT: of the current value
)

// TrimmedMean is TM(x): the mean of the values at or below their 95th percentile; false = there are
// none.
func TrimmedMean(x []float64) (float64, bool) {
	limit, ok := stats.Quantile(x, rpmTrim)
	if !ok {
		return 0, false
	}
	var kept []float64
	for _, v := range x {
		if v <= limit {
			kept = append(kept, v)
		}
	}
	return stats.Mean(kept)
}

// trimmedBuckets is TrimmedMean of a histogram, each value in the middle of its class.
func trimmedBuckets(b []result.Bucket) (float64, bool) {
	all := int64(0)
	for _, c := range b {
		all += c.Count
	}
	left, sum, n := int64(rpmTrim*float64(all)+0.5), 0.0, int64(0)
	for _, c := range b { // ascending
		take := min(c.Count, left-n)
		if take <= 0 {
			break
		}
		sum += float64(take) * (c.From + c.To) / 2
		n += take
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}

// ForeignRPM is round trips per minute of probes on connections of their own: the mean of how long
// connecting, a handshake of TLS (per round trip; 0 = none) and a request took, s.
func ForeignRPM(connect, tls, request float64) float64 {
	if tls > 0 {
		return 60 / ((connect + tls + request) / 3)
	}
	return 60 / ((connect + request) / 2)
}

// LoadedRPM is that of requests within the load's connections.
func LoadedRPM(self float64) float64 { return 60 / self }

// Saturated reports that a moving average over four intervals has settled: the standard deviation
// of the last four averages is below 5 % of the last one. known is false with fewer than four.
func Saturated(values []float64) (settled, known bool) {
	var moving []float64
	for i := range values {
		from := max(0, i-rpmAverage+1)
		m, _ := stats.Mean(values[from : i+1])
		moving = append(moving, m)
	}
	if len(moving) < rpmAverage {
		return false, false
	}
	last := moving[len(moving)-rpmAverage:]
	sd := populationSD(last)
	return sd < rpmTolerance*last[rpmAverage-1], true
}

func populationSD(x []float64) float64 {
	lo, hi := slices.Min(x), slices.Max(x)
	if lo == hi {
		return 0
	}
	sd, _ := stats.StdDev(x)
	return sd
}

// Confidence is that of M-RPM, from the intervals of goodput and of round trips.
func Confidence(goodput, trips []float64) string {
	a, known := Saturated(goodput)
	if !known {
		return "low"
	}
	if b, known := Saturated(trips); !a || known && !b {
		return "medium"
	}
	return "high"
}

// rpmOf is a direction's responsiveness, by the last four intervals of a ramp. Foreign are new
// connections with a request of one byte where the other end answers those, else the probes beside the
// load; self is what the sender's kernel measured on the load's own connections. nil = neither is known.
func rpmOf(run *result.Run, d result.Direction, p *result.Probes) *result.RPM {
	out := &result.RPM{Kind: "rpm-raw"}
	ramp := rampOf(run)
	last := ramp[max(0, len(ramp)-rpmAverage):]
	if out.Foreign = foreignOf(last); out.Foreign != nil {
		out.ForeignBy = "tcp-connect"
	} else if p != nil {
		if tm, ok := trimmedBuckets(p.Histogram); ok && tm > 0 {
			v := ForeignRPM(tm, 0, tm)
			out.Foreign, out.ForeignBy = &v, "udp-echo"
		}
	}
	rates, trips, each := intervals(run, d)
	if len(ramp) > 0 {
		each = each[max(0, len(each)-rpmAverage):]
	}
	if out.Self = selfOf(slices.Concat(each...)); out.Self != nil {
		out.SelfBy = "tcp-info"
	}
	v := responsiveness(out.Foreign, out.Self)
	if v == nil {
		return nil
	}
	out.Value = *v
	out.Class = conclude.Responsive(out.Value)
	out.Confidence = Confidence(rates, trips)
	if n := len(ramp); n > 0 {
		out.Streams, out.Intervals = ramp[n-1].Open, n
		out.Confidence = rampConfidence(ramp)
	}
	return out
}

// rampOf are the intervals of a ramped run; nil = it was not ramped.
func rampOf(run *result.Run) []result.RampInterval {
	if p := probesOf(run, "rpm"); p != nil {
		return p.Ramp
	}
	return nil
}

// rampConfidence is Confidence of a ramp: its responsiveness counts from where the rate settled.
func rampConfidence(ramp []result.RampInterval) string {
	var rates, values []float64
	for i := range ramp {
		rates = append(rates, ramp[i].BPS)
		if ramp[i].Saturated && ramp[i].PerMinute != nil {
			values = append(values, *ramp[i].PerMinute)
		}
	}
	switch _, known := Saturated(rates); {
	case !known:
		return "low"
	case !ramp[len(ramp)-1].Saturated:
		return "medium"
	}
	if settled, known := Saturated(values); !known || !settled {
		return "medium"
	}
	return "high"
}

// intervals are a direction's goodput, bit/s, its sending streams' mean round trip, s, and those round
// trips, in each counted interval, as far as they are known.
func intervals(run *result.Run, d result.Direction) (rates, trips []float64, each [][]float64) {
	for i := range run.Rows {
		row := &run.Rows[i]
		if row.Omitted || row.Partial {
			continue
		}
		for _, s := range row.Sums {
			if s.Direction == d && !s.Sender {
				rates = append(rates, s.BPS)
			}
		}
		var of []float64
		for _, s := range row.Streams {
			if s.Sender && row.End == d.Sender() && s.TCP != nil && s.TCP.RTT > 0 && s.Bytes > 0 {
				of = append(of, float64(s.TCP.RTT)/1e6)
			}
		}
		if mean, ok := stats.Mean(of); ok {
			trips, each = append(trips, mean), append(each, of)
		}
	}
	if len(rates) == 0 { // the receiver does not tell while it runs
		for i := range run.Rows {
			for _, s := range run.Rows[i].Sums {
				if s.Direction == d && s.Sender && !run.Rows[i].Omitted && !run.Rows[i].Partial {
					rates = append(rates, s.BPS)
				}
			}
		}
	}
	return rates, trips, each
}
