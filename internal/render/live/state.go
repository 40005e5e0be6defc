package live

import (
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/result"
)

// phase is how far the test got.
type phase int

const (
	connecting phase = iota
	agreed
	running
	collecting // sent and received, both ends' totals are being exchanged or were
	broken
)

// state is what the view shows, folded from the events. Its size does not grow with
// the length of the run.
type state struct {
	phase   phase
	head    result.Run // without rows
	ways    [2]way     // up, down; those in use have streams
	cpu     [2]load    // client, server
	notices []result.Notice
	hidden  int // notices that were dropped
	err     *result.Error
	path    string // segment size and path MTU, once a kernel told

	elapsed float64   // s of the whole test at the last row of this end, warm-up included
	at      time.Time // when that row (or the start) came
	warming bool      // the last row was warm-up
	bytes   int64     // counted at this end so far, all directions
}

// way is one direction.
type way struct {
	used           bool
	from, to       string
	sent, received track
	retrans, burst *int64 // all so far, in the last row
	lost, packets  *int64 // UDP, all so far
	losing         bool   // some were lost in the last row
	jitter         *float64
	pdv            *float64  // p99 of the receiver's worst stream in its last row, s
	rtt, cwnd      int64     // of the sender's streams: mean µs, sum of bytes; 0 = unknown
	streams        []float64 // bit/s of each stream in the last row of the best-placed end
	byReceiver     bool      // streams is the receiver's
}

// track is one end's rate over time.
type track struct {
	known       bool
	now         float64
	history     history
	bytes       int64 // counted
	seconds     float64
	least, most float64
	countedAny  bool
}

// load is one end's use of its machine in its last row.
type load struct {
	process *float64 // % of a core
	core    int      // the fullest
	busy    float64  // its share, 0..1
	softirq float64
	cores   int // 0 = not told
	steal   float64
}

// noticesKept bounds the list; the end block has them all.
const noticesKept = 20

// event folds one event in.
func (s *state) event(e result.Event, now time.Time) {
	switch e.Kind {
	case result.KindConnected, result.KindStart:
		if e.Head != nil {
			s.header(e, now)
		}
	case result.KindHost:
		s.head.Hosts.Set(e.End, e.Host)
		s.labels()
	case result.KindInterval:
		s.interval(e.Interval, now)
	case result.KindNotice:
		if slices.ContainsFunc(s.notices, func(n result.Notice) bool { return n.Code == e.Notice.Code && n.Text == e.Notice.Text }) {
			return // both ends say it, or one says it again
		}
		s.notices = append(s.notices, *e.Notice)
		if extra := len(s.notices) - noticesKept; extra > 0 {
			s.notices = slices.Delete(s.notices, 0, extra)
			s.hidden += extra
		}
	case result.KindFinish:
		s.phase = collecting
	case result.KindError:
		s.phase, s.err = broken, e.Err
	}
}

func (s *state) header(e result.Event, now time.Time) {
	client, server := s.head.Hosts.Client, s.head.Hosts.Server
	s.head = *e.Head
	s.head.Rows, s.head.Notices = nil, nil
	if s.head.Hosts.Client == nil {
		s.head.Hosts.Client = client
	}
	if s.head.Hosts.Server == nil {
		s.head.Hosts.Server = server
	}
	s.phase = agreed
	if e.Kind == result.KindStart {
		s.phase, s.at = running, now
		s.warming = s.head.Test.Omit > 0
	}
	dir := s.head.Test.Direction
	s.ways[0].used = dir != string(result.Down)
	s.ways[1].used = dir == string(result.Down) || dir == "both"
	s.labels()
}

func (s *state) labels() {
	for i, d := range []result.Direction{result.Up, result.Down} {
		s.ways[i].from, s.ways[i].to = conclude.Label(&s.head, d)
	}
}

func index(d result.Direction) int {
	if d == result.Down {
		return 1
	}
	return 0
}

func (s *state) interval(row *result.Interval, now time.Time) {
	if row.End == s.head.End {
		s.elapsed, s.at, s.warming = row.Stop, now, row.Omitted
		if !row.Omitted {
			s.elapsed += s.head.Test.Omit
		}
	}
	for _, sum := range row.Sums {
		w := &s.ways[index(sum.Direction)]
		t := &w.received
		if sum.Sender {
			t = &w.sent
		}
		t.add(sum, row.Omitted, row.Partial)
		if row.End == s.head.End && !row.Omitted {
			s.bytes += sum.Bytes
		}
		switch {
		case sum.Sender && sum.Retransmits != nil:
			w.burst = sum.Retransmits
			if !row.Omitted {
				w.retrans = plus(w.retrans, sum.Retransmits)
			}
		case !sum.Sender && sum.Lost != nil:
			w.jitter, w.losing = sum.Jitter, *sum.Lost > 0
			if !row.Omitted {
				w.lost, w.packets = plus(w.lost, sum.Lost), plus(w.packets, sum.Packets)
			}
		}
	}
	s.streams(row)
	s.host(row)
}

// streams takes each stream's rate, the receiver's view before the sender's, and the
// senders' round trips and windows.
func (s *state) streams(row *result.Interval) {
	var rates [2][]float64
	var rtt, cwnd, n int64
	var pdv [2]*float64
	for _, x := range row.Streams {
		d := result.Up
		if x.Sender != (row.End == result.Client) {
			d = result.Down
		}
		rates[index(d)] = append(rates[index(d)], x.Rate())
		if x.UDP != nil && x.UDP.PDV != nil && !x.Sender {
			if p := x.UDP.PDV.P99; pdv[index(d)] == nil || p > *pdv[index(d)] {
				pdv[index(d)] = &p
			}
		}
		if x.TCP == nil {
			continue
		}
		if s.path == "" || x.Sender {
			s.path = pathText(x.TCP, x.Sender)
		}
		if x.Sender {
			rtt += x.TCP.RTT
			cwnd += x.TCP.Cwnd
			n++
		}
	}
	for i, d := range []result.Direction{result.Up, result.Down} {
		w := &s.ways[i]
		receives := row.End == d.Receiver()
		if receives {
			w.pdv = pdv[i]
		}
		if len(rates[i]) > 0 && (receives || !w.byReceiver) {
			w.streams, w.byReceiver = rates[i], receives
		}
		if row.End == d.Sender() && n > 0 {
			w.rtt, w.cwnd = rtt/n, 0
			if n == int64(max(s.head.Test.Streams, 1)) { // else the peer told of its worst only
				w.cwnd = cwnd
			}
		}
	}
}

func (s *state) host(row *result.Interval) {
	h := row.Host
	if h == nil {
		return
	}
	l := load{cores: len(h.Cores), steal: h.StealMax}
	if h.Process != nil {
		v := h.Process.Total
		l.process = &v
	}
	for _, c := range h.Cores {
		if b := 1 - c.Idle - c.IOWait; b > l.busy {
			l.busy, l.core, l.softirq = b, c.CPU, c.SoftIRQ
		}
	}
	if row.End == result.Server {
		s.cpu[1] = l
	} else {
		s.cpu[0] = l
	}
}

func (t *track) add(sum result.IntervalSum, omitted, partial bool) {
	t.known = true
	if !partial {
		t.now = sum.BPS
		t.history.add(sum.BPS)
	}
	if omitted {
		return
	}
	t.bytes += sum.Bytes
	t.seconds += sum.Stop - sum.Start
	if partial {
		return
	}
	if !t.countedAny {
		t.countedAny, t.least, t.most = true, sum.BPS, sum.BPS
	}
	t.least, t.most = min(t.least, sum.BPS), max(t.most, sum.BPS)
}

func plus(a, b *int64) *int64 {
	if b == nil {
		return a
	}
	v := *b
	if a != nil {
		v += *a
	}
	return &v
}

// clone copies what later events would change.
func (s *state) clone() state {
	c := *s
	c.notices = slices.Clone(s.notices)
	for i := range c.ways {
		c.ways[i].streams = slices.Clone(s.ways[i].streams)
		c.ways[i].sent.history.values = slices.Clone(s.ways[i].sent.history.values)
		c.ways[i].received.history.values = slices.Clone(s.ways[i].received.history.values)
	}
	return c
}

// history holds a run of any length in at most historyKept values: when it is full, pairs
// of neighbours become one.
type history struct {
	values []float64
	per    int // samples behind each value; 0 counts as 1
	sum    float64
	n      int // samples in sum, not yet a value
}

const historyKept = 1024

func (h *history) add(v float64) {
	h.per = max(h.per, 1)
	h.sum += v
	h.n++
	if h.n < h.per {
		return
	}
	h.values = append(h.values, h.sum/float64(h.n))
	h.sum, h.n = 0, 0
	if len(h.values) < historyKept {
		return
	}
	for i := range historyKept / 2 {
		h.values[i] = (h.values[2*i] + h.values[2*i+1]) / 2
	}
	h.values = h.values[:historyKept/2]
	h.per *= 2
}
