package soak

import (
	"math"

	"github.com/fullbore-net/fullbore/result"
)

// MaxMinutes is how many minutes of a direction are kept, the last ones of longer soaks: 14 days.
const MaxMinutes = 14 * 24 * 60

// minutes are a direction's seconds minute by minute. The last two are open, since of the one before
// the last a second may still come; of those before only what a row says is kept.
type minutes struct {
	first int64 // number of the minute of the first row
	open  [2]figures
	rows  []minute // those of open included
}

// minute is one that is over. NaN and −1 = not known.
type minute struct {
	median, min, max, pdv, measured  float64
	bytes, packets, lost, retransmit int64
}

// newMinutes has the room for a soak of so many seconds from the beginning, as newSeries.
func newMinutes(asked float64) minutes {
	n := int(min(max(asked, 0)/60+3, MaxMinutes+1))
	return minutes{rows: room(n, minute{measured: 1})}
}

// at is the minute of second t, for what is added to it; nil when it is no longer kept open, or was never kept.
func (m *minutes) at(t int64) *figures {
	i := t / 60
	if len(m.rows) == 0 {
		m.first = i
		m.begin()
	}
	if i-m.last() > MaxMinutes { // all that is kept is older than what would be
		m.close(2)
		m.rows, m.first = m.rows[:0], i
		m.begin()
	}
	for m.last() < i {
		m.close(1)
		m.begin()
	}
	switch m.last() - i {
	case 0:
		return &m.open[1]
	case 1:
		if len(m.rows) > 1 {
			return &m.open[0]
		}
	}
	return nil
}

// last is the number of the last minute.
func (m *minutes) last() int64 { return m.first + int64(len(m.rows)) - 1 }

func (m *minutes) begin() {
	if len(m.rows) == MaxMinutes {
		copy(m.rows, m.rows[1:])
		m.rows = m.rows[:MaxMinutes-1]
		m.first++
	}
	m.rows = append(m.rows, minute{})
}

// close writes the rows of the oldest n open minutes and makes place for as many.
func (m *minutes) close(n int) {
	for range n {
		if len(m.rows) > 1 {
			m.rows[len(m.rows)-2] = m.open[0].minute()
		}
		m.open[0], m.open[1] = m.open[1], figures{}
	}
}

// minute is what a row says of f.
func (f *figures) minute() minute {
	known := func(v *int64) int64 {
		if v == nil {
			return -1
		}
		return *v
	}
	out := minute{
		median: math.NaN(), min: math.NaN(), max: math.NaN(), pdv: math.NaN(), measured: f.measured,
		bytes: f.bytes, packets: known(f.packets), lost: known(f.lost), retransmit: known(f.retransmits),
	}
	if r := f.rates(); r.N() > 0 {
		out.median, _ = r.Quantile(0.5)
		out.min, out.max = r.min, r.max
	}
	if f.pdv != nil {
		if q := f.pdv.Quantiles(); q != nil {
			out.pdv = q.P99
		}
	}
	return out
}

// result are the rows; nil when there are none.
func (m *minutes) result() *result.SoakMinutes {
	n := len(m.rows)
	if n == 0 {
		return nil
	}
	out := &result.SoakMinutes{Start: float64(m.first) * 60}
	counted, lossy, resent, varied := false, false, false, false
	for i := range m.rows {
		r := m.rows[i]
		if back := n - 1 - i; back < 2 {
			r = m.open[1-back].minute()
		}
		out.Measured = append(out.Measured, round(r.measured, 1e3))
		out.Bytes = append(out.Bytes, r.bytes)
		out.Median, out.Min, out.Max = append(out.Median, rate(r.median)), append(out.Min, rate(r.min)), append(out.Max, rate(r.max))
		out.Packets, counted = append(out.Packets, total(r.packets)), counted || r.packets >= 0
		out.Lost, lossy = append(out.Lost, total(r.lost)), lossy || r.lost >= 0
		out.Retransmits, resent = append(out.Retransmits, total(r.retransmit)), resent || r.retransmit >= 0
		out.PDV, varied = append(out.PDV, unless(r.pdv)), varied || !math.IsNaN(r.pdv)
	}
	if !counted {
		out.Packets = nil
	}
	if !lossy {
		out.Lost = nil
	}
	if !resent {
		out.Retransmits = nil
	}
	if !varied {
		out.PDV = nil
	}
	return out
}

// rate, total and unless are nil for what is not known.
func rate(v float64) *float64 { return unless(math.Round(v)) }

func unless(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}

func total(v int64) *int64 {
	if v < 0 {
		return nil
	}
	return &v
}
