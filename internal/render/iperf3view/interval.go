package iperf3view

import "github.com/fullbore-net/fullbore/result"

// Row is one line of an interval report: a stream's or a sum's.
type Row struct {
	Socket    int // 0 for a sum
	Direction result.Direction
	Sender    bool // this end sends
	Omitted   bool

	// Start and End are seconds since the test (or the omit period) began. iperf3
	// prints the distance, so a start just before the omit period's end is positive.
	Start, End float64
	Seconds    float64 // length, in single precision as iperf3 keeps it
	Bytes      int64
	Rate       float64 // bytes per second

	Retransmits *int64          // nil = not shown
	TCP         *result.TCPInfo // nil = not shown; never in a sum
	UDP         *Datagram       // nil unless the run uses datagrams
}

// Datagram holds what a UDP row adds. A sender's row has only Packets.
type Datagram struct {
	Packets, Lost int64
	Jitter        float64 // s
	LostPercent   float64
	OutOfOrder    int64
}

// Block is one interval report.
type Block struct {
	Streams []Row // creation order
	Sums    []Row // one per direction, Up first
}

// Visible reports whether iperf3 would print row iv of head at all: its own rows,
// without the omitted ones when the whole test is one row, and without a short,
// empty row at the end (src/iperf_api.c, iperf_print_intermediate: under a tenth of
// the interval and no byte in any stream).
func Visible(head *result.Run, iv *result.Interval) bool {
	if iv.End != "" && iv.End != head.End {
		return false
	}
	if len(iv.Streams) == 0 {
		return false
	}
	if head.Test.Interval == 0 && iv.Omitted {
		return false
	}
	for _, s := range iv.Streams {
		if s.Bytes > 0 || Secs(Micros(s.Stop)-Micros(s.Start)) >= head.Test.Interval*0.10 {
			return true
		}
	}
	return false
}

// Interval computes the report of iv.
func Interval(head *result.Run, iv *result.Interval) Block {
	var b Block
	for i := range iv.Streams {
		b.Streams = append(b.Streams, streamRow(head, iv, &iv.Streams[i]))
	}
	if len(b.Streams) == 0 {
		return b
	}
	for _, d := range Directions(head) {
		b.Sums = append(b.Sums, sumRow(head, b.Streams, d))
	}
	return b
}

func streamRow(head *result.Run, iv *result.Interval, s *result.StreamInterval) Row {
	start, stop := Micros(s.Start), Micros(s.Stop)
	r := Row{
		Socket: s.Socket, Direction: direction(head.End, s.Sender), Sender: s.Sender, Omitted: iv.Omitted,
		Start: Secs(abs(start)), End: Secs(abs(stop)), Seconds: float64(float32(Secs(stop - start))),
		Bytes: s.Bytes,
	}
	r.Rate = rate(r.Bytes, r.Seconds)
	switch {
	case Datagrams(head):
		r.UDP = &Datagram{Packets: val(s.Packets)}
		if !s.Sender {
			r.UDP.Lost, r.UDP.OutOfOrder = val(s.Lost), val(s.OutOfOrder)
			if s.Jitter != nil {
				r.UDP.Jitter = *s.Jitter
			}
			r.UDP.LostPercent = percent(r.UDP.Lost, r.UDP.Packets)
		}
	case s.Sender && s.TCP != nil:
		n := val(s.Retransmits)
		r.Retransmits, r.TCP = &n, s.TCP
	}
	return r
}

// sumRow adds up one direction. The times are those of the first stream of all, even
// of the other direction, as in iperf3.
func sumRow(head *result.Run, rows []Row, d result.Direction) Row {
	first := rows[0]
	sum := Row{
		Direction: d, Sender: Sends(head, d), Omitted: first.Omitted,
		Start: first.Start, End: first.End, Seconds: first.Seconds,
	}
	if Datagrams(head) {
		sum.UDP = &Datagram{}
	}
	n := 0
	for _, r := range rows {
		if r.Direction != d {
			continue
		}
		n++
		sum.Bytes += r.Bytes
		if r.Retransmits != nil {
			total := val(sum.Retransmits) + *r.Retransmits
			sum.Retransmits = &total
		}
		if r.UDP != nil {
			sum.UDP.Packets += r.UDP.Packets
			sum.UDP.Lost += r.UDP.Lost
			sum.UDP.OutOfOrder += r.UDP.OutOfOrder
			sum.UDP.Jitter += r.UDP.Jitter
		}
	}
	if sum.UDP != nil && !sum.Sender {
		if n > 0 {
			sum.UDP.Jitter /= float64(n)
		}
		sum.UDP.LostPercent = percent(sum.UDP.Lost, sum.UDP.Packets)
	}
	sum.Rate = rate(sum.Bytes, sum.Seconds)
	return sum
}

// direction is the way a stream flows on which end e sends or does not.
func direction(e result.End, sender bool) result.Direction {
	if sender == (e == result.Server) {
		return result.Down
	}
	return result.Up
}

func abs(v int64) int64 {
	if v < 0 {
		return -v
	}
	return v
}

// val is the value of an optional count, 0 when unknown: iperf3 has no "unknown".
func val(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}

// percent is lost of total in percent, 0 of nothing.
func percent(lost, total int64) float64 {
	if total <= 0 {
		return 0
	}
	return 100 * float64(lost) / float64(total)
}
