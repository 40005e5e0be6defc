package html

import (
	"fmt"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/render/svg"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// loadTables are the delays of the empty path and of each direction while it was full.
func loadTables(rep *result.Report) []table {
	l := rep.Load
	if l == nil {
		return nil
	}
	t := table{ID: "load", Heading: "Empty and full", Head: []string{"path", "rate", "longer, p50", "p95", "p99", "queue", "round trip, p50", "p99", "round trips a minute", "grade"}}
	trip := func(name string, q *result.Quantiles) {
		if q != nil {
			t.Rows = append(t.Rows, []string{name, "–", "–", "–", "–", "–", conclude.Time(q.P50), conclude.Time(q.P99), "–", "–"})
		}
	}
	trip("empty, before", l.Idle)
	for i := range l.Ways {
		t.Rows = append(t.Rows, loadRow(&l.Ways[i]))
	}
	trip("empty, after", l.After)
	if l.Source == "tcp-info" {
		t.Text = "The other end answers no probes: told is how much longer TCP's own round trips took, by the sender's kernel."
	}
	return []table{t}
}

// loadRow is a direction of a loaded path.
func loadRow(w *result.LoadedWay) []string {
	row := []string{"full " + clean(w.Load) + ", " + clean(string(w.Direction)), "–", "–", "–", "–", "–", "–", "–", "–", "–"}
	if w.Rate != nil {
		row[1] = svg.BitRate.Format(*w.Rate)
	}
	if r := w.Rise; r != nil {
		row[2], row[3], row[4] = "+"+conclude.Time(r.P50), "+"+conclude.Time(r.P95), "+"+conclude.Time(r.P99)
	}
	if w.QueueBytes != nil {
		row[5] = units.ByteSize(*w.QueueBytes).String()
	}
	if q := w.RoundTrip; q != nil {
		row[6], row[7] = conclude.Time(q.P50), conclude.Time(q.P99)
	}
	if r := w.RPM; r != nil {
		row[8] = fmt.Sprintf("%.0f (%s, confidence %s)", r.Value, clean(r.Class), clean(r.Confidence))
	}
	if w.Grade != "" {
		row[9] = clean(w.Grade)
	}
	return row
}

// loadTiles are the figures of the answer.
func loadTiles(l *result.Load) (out []tile) {
	if l.Worst != nil {
		out = append(out, tile{"grade", clean(l.Grade), conclude.Time(*l.Worst) + " longer when full (p95)"})
	}
	switch {
	case l.Idle != nil:
		out = append(out, tile{"round trip, empty path", conclude.Time(l.Idle.P50), "median"})
	case l.IdleMin != nil:
		out = append(out, tile{"round trip, empty path", conclude.Time(*l.IdleMin), "least that TCP saw"})
	}
	for i := range l.Ways {
		if w := &l.Ways[i]; w.RPM != nil && w.Load == string(w.Direction) {
			out = append(out, tile{"round trips a minute " + string(w.Direction), fmt.Sprintf("%.0f", w.RPM.Value), clean(w.RPM.Class)})
		}
	}
	return out
}

// pathTables are the directions of a search for the largest packet.
func pathTables(rep *result.Report) []table {
	if rep.Kind != "mtu" || len(rep.Paths) == 0 {
		return nil
	}
	t := table{ID: "mtu", Heading: "Each direction", Head: []string{"direction", "what passes", "packets tried", "TCP's segments", "MSS on the way"}}
	for i := range rep.Paths {
		p := &rep.Paths[i]
		segment, clamp := "–", "–"
		if p.Segment != nil {
			segment = fmt.Sprintf("at most %d bytes", *p.Segment)
		}
		if p.Announced != nil && p.Seen != nil {
			clamp = fmt.Sprintf("rewritten from %d to %d", *p.Announced, *p.Seen)
		}
		t.Rows = append(t.Rows, []string{clean(string(p.Direction)), clean(conclude.MTUText(p)), fmt.Sprint(len(p.Trials)), segment, clamp})
	}
	return []table{t}
}

// pathTiles are the figures of the answer.
func pathTiles(paths []result.PathMTU) (out []tile) {
	for i := range paths {
		p := &paths[i]
		value, note := "–", "nothing passed"
		if p.MTU != nil {
			value, note = fmt.Sprintf("%d bytes", *p.MTU), "whole IP packets"
		}
		if p.BlackHole != nil && *p.BlackHole {
			note = "larger ones vanish"
		}
		out = append(out, tile{"largest packet " + clean(string(p.Direction)), value, note})
	}
	return out
}
