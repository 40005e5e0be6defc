package csv

import (
	"strconv"

	"github.com/fullbore-net/fullbore/result"
)

// probeColumns are those of records called probes.
var probeColumns = []Column{
	{"probe", "probes: which kind, udp-echo, udp-test, tcp-rr or tcp-connect; in records called probes only, as all columns from here on"},
	{"figure", "what the row's distribution is of: round_trip, connect, delay (one way), pdv (delay less the least), ipdv (change from one to the next) or counts (none)"},
	{"sent", "requests sent"},
	{"answered", "requests answered"},
	{"lost_up", "requests that did not reach the other end"},
	{"lost_down", "answers that did not come back"},
	{"n", "values in the distribution"},
	{"min_s", "least, in seconds"},
	{"mean_s", "mean"},
	{"p50_s", "median"},
	{"p95_s", "95th percentile"},
	{"p99_s", "99th percentile"},
	{"p99_9_s", "99.9th percentile"},
	{"max_s", "largest"},
	{"bound_s", "delay: each value is right within ± this"},
	{"rr_per_second", "tcp-rr: requests answered per second"},
}

// probes prints what the probes of run measured: a row with the counts, and a row per
// distribution.
func (w *Writer) probes(run *result.Run) {
	for i := range run.Probes {
		p := &run.Probes[i]
		r := w.probeRow(p, "counts", "")
		r.count("sent", &p.Sent)
		r.count("answered", &p.Answered)
		r.count("lost_up", p.LostUp)
		r.count("lost_down", p.LostDown)
		if p.Rate != nil {
			r.set("rr_per_second", strconv.FormatFloat(*p.Rate, 'f', 1, 64))
		}
		w.write(r)
		w.distribution(p, "round_trip", "", p.RoundTrip, nil)
		w.distribution(p, "connect", "", p.Connect, nil)
		for _, d := range []struct {
			dir result.Direction
			way *result.OneWay
		}{{result.Up, p.Up}, {result.Down, p.Down}} {
			if d.way == nil {
				continue
			}
			w.distribution(p, "delay", d.dir, d.way.Delay, d.way.BoundS)
			w.distribution(p, "pdv", d.dir, d.way.PDV, nil)
			w.distribution(p, "ipdv", d.dir, d.way.IPDV, nil)
		}
	}
}

func (w *Writer) probeRow(p *result.Probes, figure string, d result.Direction) row {
	r := w.row("probes", "", w.run.End)
	r.set("direction", string(d))
	r.set("probe", p.Kind)
	r.set("figure", figure)
	return r
}

// distribution prints q, which is nil when it is not known.
func (w *Writer) distribution(p *result.Probes, figure string, d result.Direction, q *result.Quantiles, bound *float64) {
	if q == nil {
		return
	}
	r := w.probeRow(p, figure, d)
	r.count("n", &q.N)
	for _, v := range []struct {
		column string
		value  float64
	}{
		{"min_s", q.Min}, {"mean_s", q.Mean}, {"p50_s", q.P50}, {"p95_s", q.P95}, {"p99_s", q.P99}, {"p99_9_s", q.P999}, {"max_s", q.Max},
	} {
		r.set(v.column, strconv.FormatFloat(v.value, 'f', 9, 64))
	}
	if bound != nil {
		r.set("bound_s", strconv.FormatFloat(*bound, 'f', 9, 64))
	}
	w.write(r)
}
