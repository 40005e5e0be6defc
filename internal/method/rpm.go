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

// rpmOf is a direction's responsiveness: foreign, the probes beside the load; self, what the
// sender's kernel measured on the load's own connections. nil = neither is known.
func rpmOf(run *result.Run, d result.Direction, p *result.Probes) *result.RPM {
	out := &result.RPM{Kind: "rpm-raw"}
	sum, n := 0.0, 0.0
	if p != nil {
		if tm, ok := trimmedBuckets(p.Histogram); ok && tm > 0 {
			v := ForeignRPM(tm, 0, tm)
			out.Foreign = &v
			sum, n = sum+v, n+1
		}
	}
	rates, trips := intervals(run, d)
	if tm, ok := TrimmedMean(trips); ok && tm > 0 {
		v := LoadedRPM(tm)
		out.Self = &v
		sum, n = sum+v, n+1
	}
	if n == 0 {
		return nil
	}
	out.Value = sum / n
	out.Class = conclude.Responsive(out.Value)
	out.Confidence = Confidence(rates, trips)
	return out
}

// intervals are a direction's goodput, bit/s, and its streams' mean round trip, s, in each counted
// interval, as far as they are known.
func intervals(run *result.Run, d result.Direction) (rates, trips []float64) {
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
		sum, n := 0.0, 0
		for _, s := range row.Streams {
			if s.Sender && row.End == d.Sender() && s.TCP != nil && s.TCP.RTT > 0 {
				sum += float64(s.TCP.RTT) / 1e6
				n++
			}
		}
		if n > 0 {
			trips = append(trips, sum/float64(n))
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
	return rates, trips
}
