package traffic

import (
	"math"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// axis is the sampler's place on the time axis. ns since t0.
type axis struct {
	measured bool  // the omitted part is over
	origin   int64 // of the present part's axis: 0, or the end of the omitted part
	nextRow  int64
	index    int // of the next row
}

// begin takes the first sample: zero counters at t0.
func (e *Engine) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.usage.base = readUsage()
	e.ax = axis{measured: e.cfg.Omit <= 0, nextRow: math.MaxInt64}
	if e.cfg.Interval > 0 {
		e.ax.nextRow = int64(e.cfg.Interval)
	}
	for _, s := range e.streams {
		s.prev = mark{k: s.readKernel(false).k}
		if e.udp() {
			s.prev = s.udpSample(0)
			// What the socket dropped before the start is missing in this test's count too.
			s.prev.u.drops = min(s.prev.u.drops, 0)
		}
		s.base = s.prev
	}
	e.measured.Store(e.ax.measured)
	if e.ax.measured {
		e.arm()
	}
}

// arm puts the byte and block rules in force, counted from the base marks.
func (e *Engine) arm() {
	var received int64
	for _, s := range e.streams {
		if !s.Send {
			received += s.base.bytes
		}
	}
	switch {
	case e.cfg.Bytes > 0:
		e.q.arm(e.cfg.Bytes, false)
		e.receiveTarget.Store(received + e.cfg.Bytes)
	case e.cfg.BlocksEach: // streams count theirs
	case e.cfg.Blocks > 0:
		e.q.arm(e.cfg.Blocks, true)
		e.receiveTarget.Store(received + e.cfg.Blocks*int64(e.cfg.BlockSize))
	}
}

// clock is the sampling goroutine. It wakes at the row boundaries, the end of the
// omitted part, the end of the duration, and to look for silence; all computed from
// t0, so a late wake-up makes one longer row and never a wrong rate. It ends when
// halt is closed.
func (e *Engine) clock() {
	defer close(e.clockDone)
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		next := e.tick(e.now())
		e.publish()
		wait := time.Duration(math.MaxInt64)
		if next != math.MaxInt64 {
			wait = time.Duration(next - e.now())
		}
		t.Reset(wait)
		select {
		case <-t.C:
		case <-e.halt:
			return
		}
	}
}

// tick does what is due at now and returns when to be called next.
func (e *Engine) tick(now int64) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ax.measured && now >= int64(e.cfg.Omit) {
		e.endOmit()
		now = e.now()
	}
	end := int64(math.MaxInt64)
	if e.ax.measured && e.cfg.Duration > 0 {
		end = e.ax.origin + int64(e.cfg.Duration)
		if now >= end {
			e.fire(Duration)
			e.kick(true)
			end = math.MaxInt64
		}
	}
	if now >= e.ax.nextRow {
		if e.udp() && e.stopRecv.Load() && e.stopSend.Load() {
			e.ax.nextRow = math.MaxInt64 // the tail has no rows
		} else {
			e.boundary(now)
		}
	}
	next := min(e.ax.nextRow, end, e.silence(now))
	if !e.ax.measured {
		next = min(next, int64(e.cfg.Omit))
	}
	return next
}

// boundary emits the row that ends now, unless the end of the duration or of the
// omitted part is at hand: then that closes the row.
func (e *Engine) boundary(now int64) {
	step := int64(e.cfg.Interval)
	limit := int64(math.MaxInt64)
	switch {
	case !e.ax.measured:
		limit = int64(e.cfg.Omit)
	case e.cfg.Duration > 0:
		limit = e.ax.origin + int64(e.cfg.Duration)
	}
	due := e.ax.nextRow
	if due < limit-step/100 || due > limit+step/100 {
		marks, reads := e.sampleAll()
		e.row(marks, reads, false)
	}
	e.ax.nextRow += step * ((now-e.ax.nextRow)/step + 1)
}

// endOmit closes the omitted part and makes its last sample the base of all totals.
func (e *Engine) endOmit() {
	if e.cfg.Bytes > 0 || e.cfg.Blocks > 0 {
		e.q.hold.Store(true) // until arm: only blocks under way are sent past the sample
	}
	e.measured.Store(true)
	var marks []mark
	var reads []reading
	if e.udp() {
		marks, reads = e.markDatagrams()
	} else {
		marks, reads = e.sampleAll()
	}
	if e.cfg.Interval > 0 {
		e.row(marks, reads, false)
	}
	e.ax.measured = true
	e.ax.origin = marks[0].at
	for i, s := range e.streams {
		s.prev, s.base = marks[i], marks[i]
		if s.tx != nil && s.tx.ownsLate && e.cfg.Interval == 0 {
			s.tx.late.takeRow(false)
		}
		s.carry = 0
	}
	if e.cfg.Interval > 0 {
		e.ax.nextRow = e.ax.origin + int64(e.cfg.Interval)
	}
	e.usage.base = readUsage()
	e.arm()
}

// silence applies ReceiveTimeout and returns when to look again.
func (e *Engine) silence(now int64) int64 {
	if e.cfg.ReceiveTimeout <= 0 || e.stopRecv.Load() {
		return math.MaxInt64
	}
	var n int64
	readers := false
	last := int64(0)
	for _, s := range e.streams {
		if !s.Send {
			readers = true
			n += s.ctr.bytes.Load()
			last = max(last, s.ctr.last.Load())
		}
	}
	if !readers {
		return math.MaxInt64
	}
	due := last + int64(e.cfg.ReceiveTimeout)
	if now >= due {
		e.fire(ReceiveTimeout)
		return math.MaxInt64
	}
	return due
}

// row makes the interval from the previous marks to these and makes these the previous.
func (e *Engine) row(marks []mark, reads []reading, last bool) {
	iv := &result.Interval{End: e.cfg.End, Index: e.ax.index, Omitted: !e.ax.measured}
	iv.Streams = make([]result.StreamInterval, len(marks))
	retrans := make([]int64, len(marks)) // one allocation for all
	iv.Start, iv.Stop = math.Inf(1), 0
	for i, s := range e.streams {
		m, p := &marks[i], &s.prev
		origin := int64(0)
		if e.ax.measured {
			origin = s.base.at
			s.sum.add(reads[i])
		}
		si := &iv.Streams[i]
		*si = result.StreamInterval{
			ID: s.ID, Socket: s.Socket, Sender: s.Send,
			Start: seconds(p.at - origin), Stop: seconds(m.at - origin),
			Bytes: m.bytes - p.bytes, TCP: reads[i].info,
		}
		if s.Send && m.k.ok && p.k.ok {
			retrans[i] = max(0, m.k.retrans-p.k.retrans)
			si.Retransmits = &retrans[i]
		}
		if m.u != nil {
			e.udpRow(s, m, p, si)
		}
		if s.calls != nil {
			n := s.calls.all()
			si.IO = &result.IOCount{Completions: n - s.called}
			s.called = n
		}
		iv.Start, iv.Stop = min(iv.Start, si.Start), max(iv.Stop, si.Stop)
		s.prev = *m
	}
	switch {
	case e.udp():
		e.udpDetails(iv.Streams)
	case e.thin():
		e.detailSlowest(iv.Streams)
	}
	iv.Sums = sums(e.streams, iv.Streams)
	iv.Partial = last && e.cfg.Interval > 0 && iv.Stop-iv.Start < 0.99*e.cfg.Interval.Seconds()
	e.ax.index++
	e.rows = append(e.rows, iv)
}

// detailSlowest puts the whole TCP_INFO into the rows of the slowest flows.
func (e *Engine) detailSlowest(rows []result.StreamInterval) {
	for _, i := range slowest(len(rows), func(i int) int64 { return rows[i].Bytes }) {
		rows[i].TCP = e.streams[i].readKernel(true).info
	}
}

// publish emits the rows made since the last call, without holding the lock: the
// sink may look at Snapshot. Only the clock goroutine calls it, and Finish after that
// has ended, so rows keep their order.
func (e *Engine) publish() {
	e.mu.Lock()
	rows := e.rows
	e.rows = nil
	e.mu.Unlock()
	for _, n := range e.u.takeNotices() {
		e.emit(result.Event{Kind: result.KindNotice, Notice: &n})
	}
	for _, iv := range rows {
		if e.cfg.Host != nil {
			iv.Host = e.cfg.Host()
		}
		e.emit(result.Event{Kind: result.KindInterval, Interval: iv})
	}
}

// sums adds up each direction over the time of its first stream; the others' times
// differ by what it takes to read the counters.
func sums(streams []*stream, rows []result.StreamInterval) []result.IntervalSum {
	var out []result.IntervalSum
	for _, d := range []result.Direction{result.Up, result.Down} {
		var sum *result.IntervalSum
		known := true
		var retrans int64
		for i, s := range streams {
			if s.Direction != d {
				continue
			}
			if sum == nil {
				sum = &result.IntervalSum{Direction: d, Sender: s.Send, Start: rows[i].Start, Stop: rows[i].Stop}
			}
			sum.Bytes += rows[i].Bytes
			if rows[i].Retransmits == nil {
				known = false
			} else {
				retrans += *rows[i].Retransmits
			}
		}
		if sum == nil {
			continue
		}
		sum.BPS = result.Rate(sum.Bytes, sum.Stop-sum.Start)
		sumDatagrams(sum, streams, rows)
		if sum.Sender && known {
			sum.Retransmits = &retrans
		}
		out = append(out, *sum)
	}
	return out
}
