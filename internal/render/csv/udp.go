package csv

import (
	"strconv"

	"github.com/fullbore-net/fullbore/result"
)

func (r row) udpInterval(u *result.UDPInterval) {
	if u == nil {
		return
	}
	if u.PDV != nil { // a receiver's row
		r.count("duplicates", &u.Duplicates)
		r.variation(u.PDV)
	}
	if u.Late != nil { // a paced sender's
		r.time("late_p99_s", u.Late.P99)
		r.count("unsent", &u.Unsent)
		r.count("refused", &u.Refused)
	}
}

func (r row) udpSent(s *result.UDPSent) {
	if s == nil {
		return
	}
	r.count("unsent", &s.Unsent)
	r.count("refused", &s.Refused)
	r.count("largest_burst", &s.LargestBurst)
	if s.Late != nil {
		r.time("late_p99_s", s.Late.P99)
	}
}

func (r row) udpReceived(u *result.UDPReceived, l *result.UDPLoss) {
	if u != nil {
		r.count("distinct", &u.Packets)
		r.count("duplicates", &u.Duplicates)
		r.variation(u.PDV)
	}
	if l != nil {
		r.count("lost_of_sent", &l.Lost)
		r.share("loss_ratio", l.Ratio)
		r.share("loss_low_95", l.Low)
		r.share("loss_high_95", l.High)
		r.count("lost_socket", l.Socket)
		r.count("lost_network", l.Network)
		r.set("attribution", l.Attribution)
	}
}

func (r row) variation(q *result.Quantiles) {
	if q == nil {
		return
	}
	r.time("pdv_p50_s", q.P50)
	r.time("pdv_p99_s", q.P99)
	r.time("pdv_max_s", q.Max)
}

func (r row) time(column string, s float64) { r.set(column, strconv.FormatFloat(s, 'f', 9, 64)) }

// share prints a ratio plainly: the bounds of a loss may be far below a millionth.
func (r row) share(column string, v float64) {
	r.set(column, strconv.FormatFloat(v, 'f', -1, 64))
}
