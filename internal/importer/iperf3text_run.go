package importer

import (
	"math"

	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/result"
)

// finish makes the run of the lines, nil when they told of no test.
func (p *iperf3Text) finish() *result.Run {
	if !p.any {
		return nil
	}
	r := p.run
	perDirection := map[result.Direction]int{}
	for i := range r.Streams {
		s := &r.Streams[i]
		if d, ok := p.side[s.Socket]; ok {
			s.Direction = d
		} else if r.Test.Direction == "down" {
			s.Direction = result.Down
		}
		perDirection[s.Direction]++
	}
	r.Test.Streams = max(len(r.Streams), 1)
	if r.Test.Direction == "both" {
		r.Test.Streams = max(perDirection[result.Up], perDirection[result.Down], len(r.Streams)/2, 1)
	}
	if len(p.rows) > 0 && r.Test.Interval > 0 {
		if d := p.rows[0].rows[0].stop - p.rows[0].rows[0].start; d < 0.75 {
			r.Test.Interval = math.Round(d*10) / 10
		}
	}
	for i, rep := range p.rows {
		r.Rows = append(r.Rows, p.interval(i, rep))
	}
	p.totals()
	return result.Fold(result.Unfold(r))
}

// slack is how far a printed time with two decimals may be from the true one, s.
const slack = 0.0049

// slack is how far the length of an interval may be off: both its ends are rounded, but 0 is exact.
func (r *textRow) slack() float64 {
	if r.start == 0 {
		return slack
	}
	return 2 * slack
}

// groupOf is what rows over one time say, with their sum where there is one.
func groupOf(rows []*textRow, sum *textRow, seconds, slack float64) group {
	g := group{nominal: seconds, slack: slack}
	for _, r := range rows {
		g.amounts, g.rates = append(g.amounts, r.bytes), append(g.rates, r.perSecond)
	}
	if sum != nil {
		g.sum, g.sumRate = &sum.bytes, &sum.perSecond
	}
	return g
}

// interval finds amounts that round to what a report shows.
func (p *iperf3Text) interval(index int, rep *textReport) result.Interval {
	r := p.run
	first := rep.rows[0]
	out := result.Interval{End: r.End, Index: index, Start: first.start, Stop: first.stop, Omitted: rep.omitted}
	amounts := map[*textRow]int64{}
	times := map[*textRow]float64{}
	for _, d := range []result.Direction{result.Up, result.Down} {
		var rows []*textRow
		var sum *textRow
		for _, row := range rep.rows {
			if row.direction == d {
				rows = append(rows, row)
			}
		}
		for _, row := range rep.sums {
			if row.direction == d {
				sum = row
			}
		}
		if len(rows) == 0 {
			continue
		}
		evenJitter(rows, sum)
		g := groupOf(rows, sum, rows[0].stop-rows[0].start, rows[0].slack())
		seconds, bytes, ok := g.solve()
		for i, row := range rows {
			amounts[row], times[row] = bytes[i], seconds
			if !ok { // each by itself: streams' own times differ by some µs
				one := groupOf(rows[i:i+1], nil, row.stop-row.start, row.slack())
				t, b, _ := one.solve()
				amounts[row], times[row] = b[0], t
			}
		}
	}
	for _, row := range rep.rows {
		st := p.stream(row.socket)
		s := result.StreamInterval{
			Socket: row.socket, Sender: iperf3view.Sends(r, row.direction), Bytes: amounts[row],
			Retransmits: row.retransmits, Packets: row.packets, Lost: row.lost, Jitter: row.jitter,
		}
		if st != nil {
			s.ID = st.ID
		}
		// The length is what solve found; the stop takes what it can of the difference, the start the rest.
		s.Start = row.start
		if off := times[row] - (row.stop - row.start); off > slack || off < -slack {
			s.Start -= off - span{-slack, slack}.clamp(off)
		}
		s.Stop = s.Start + times[row]
		if row.cwnd != nil {
			s.TCP = &result.TCPInfo{Cwnd: *row.cwnd}
			r.Wire.HasRetrans = true
		}
		out.Streams = append(out.Streams, s)
	}
	for _, d := range iperf3view.Directions(r) {
		sum := result.IntervalSum{Direction: d, Sender: iperf3view.Sends(r, d), Start: out.Start, Stop: out.Stop}
		for _, s := range out.Streams {
			if s.Sender == sum.Sender {
				sum.Bytes += s.Bytes
				sum.Retransmits = addCount(sum.Retransmits, s.Retransmits)
				sum.Packets = addCount(sum.Packets, s.Packets)
				sum.Lost = addCount(sum.Lost, s.Lost)
			}
		}
		sum.BPS = result.Rate(sum.Bytes, sum.Stop-sum.Start)
		out.Sums = append(out.Sums, sum)
	}
	out.Partial = r.Test.Interval > 0 && out.Stop-out.Start < 0.95*r.Test.Interval
	return out
}

func addCount(a, b *int64) *int64 {
	if b == nil {
		return a
	}
	n := *b
	if a != nil {
		n += *a
	}
	return &n
}

func (p *iperf3Text) stream(socket int) *result.Stream {
	for i := range p.run.Streams {
		if p.run.Streams[i].Socket == socket {
			return &p.run.Streams[i]
		}
	}
	return nil
}

// totals finds the totals. The rows of one end share one time, those of both directions too
// (iperf_print_results takes the first stream's).
func (p *iperf3Text) totals() {
	for _, label := range []string{"sender", "receiver"} {
		var rows [][]*textRow
		var groups []group
		for _, d := range []result.Direction{result.Up, result.Down} {
			if r, g := p.closing(label, d); len(r) > 0 {
				rows, groups = append(rows, r), append(groups, g)
			}
		}
		seconds, amounts := solveTogether(groups)
		for i := range rows {
			evenJitter(rows[i], p.sumOf(label, rows[i][0].direction))
		}
		for i := range rows {
			for j, row := range rows[i] {
				p.total(row, label, seconds, amounts[i][j])
			}
		}
	}
}

// sumOf is the closing report's sum of one end of one direction, nil when there is none.
func (p *iperf3Text) sumOf(label string, d result.Direction) *textRow {
	for _, row := range p.ends {
		if row.socket == 0 && row.label == label && row.direction == d {
			return row
		}
	}
	return nil
}

// evenJitter moves the jitters of rows, which are rounded, so that their mean rounds to the sum's.
func evenJitter(rows []*textRow, sum *textRow) {
	if sum == nil || sum.jitter == nil {
		return
	}
	mean := 0.0
	for _, r := range rows {
		if r.jitter == nil {
			return
		}
		mean += *r.jitter / float64(len(rows))
	}
	const half = 0.49e-6 // of the last digit shown, s
	off := span{-half, half}.clamp(*sum.jitter - mean)
	for _, r := range rows {
		j := max(*r.jitter+off, 0)
		r.jitter = &j
	}
}

// closing are the rows of one end of one direction.
func (p *iperf3Text) closing(label string, d result.Direction) ([]*textRow, group) {
	var rows []*textRow
	for _, row := range p.ends {
		if row.label == label && row.direction == d && row.socket != 0 {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return nil, group{}
	}
	return rows, groupOf(rows, p.sumOf(label, d), rows[0].stop, slack)
}

func (p *iperf3Text) total(row *textRow, label string, seconds float64, bytes int64) {
	s := p.stream(row.socket)
	if s == nil {
		return
	}
	t := &result.Total{End: seconds, Bytes: bytes, Retransmits: row.retransmits, Packets: row.packets, Lost: row.lost, Jitter: row.jitter}
	if own := iperf3view.Sends(p.run, row.direction) == (label == "sender"); own && s.Disk != nil {
		// The size, too, is rounded; the percentage says more.
		s.Disk.Transferred = bytes
		if s.Disk.Percent == 100 {
			s.Disk.Size = bytes
		} else if s.Disk.Percent > 0 {
			s.Disk.Size = int64(float64(bytes) / (float64(s.Disk.Percent) + 0.5) * 100)
		}
	}
	if label == "sender" {
		t.Lost, t.Jitter = nil, nil // iperf3 prints zeros there
		s.Sender = t
		return
	}
	if s.Receiver != nil {
		t.OutOfOrder = s.Receiver.OutOfOrder
	}
	s.Receiver = t
}
