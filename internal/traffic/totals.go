package traffic

import (
	"github.com/fullbore-net/fullbore/result"
)

// Finish stops whatever still runs, emits the last row and returns the totals. No
// event follows. A second call returns the same totals.
func (e *Engine) Finish() Totals {
	if !e.started.Load() {
		return Totals{Path: e.pathNow()}
	}
	e.StopSend()
	e.StopReceive(e.drain.Load())
	e.stopClock()
	t := e.finish()
	if n := e.fallbackNotice(); n != nil && !e.told.Swap(true) {
		e.emit(result.Event{Kind: result.KindNotice, Notice: n})
	}
	e.publish()
	return t
}

func (e *Engine) finish() Totals {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.final != nil {
		return *e.final
	}
	e.usage.end = readUsage()
	ends := map[bool]int64{true: e.endOf(true), false: e.endOf(false)}
	marks, reads := make([]mark, len(e.streams)), make([]reading, len(e.streams))
	moved := false
	for i, s := range e.streams {
		m := mark{at: ends[s.Send], bytes: s.ctr.bytes.Load()}
		if e.udp() {
			m = s.udpSample(ends[s.Send])
			moved = moved || m.u.more(s.prev.u)
		}
		if s.last != nil {
			m.k, reads[i] = s.last.k, *s.last
		}
		moved = moved || m.at > s.prev.at || m.bytes != s.prev.bytes
		if m.at < s.prev.at {
			m.at = s.prev.at
		}
		marks[i] = m
	}
	if moved && (e.ax.measured || e.cfg.Interval > 0) {
		e.row(marks, reads, true)
	}
	t := e.totals(ends, true)
	e.final = &t
	return t
}

// endOf decides when the measured time of one direction ended; see the package comment.
func (e *Engine) endOf(send bool) int64 {
	var stopped, last, drained int64
	all := true
	for _, s := range e.streams {
		if s.Send != send {
			continue
		}
		stopped = max(stopped, s.ctr.stopped.Load())
		last = max(last, s.ctr.last.Load())
		drained = max(drained, s.drained)
		if s.drained == 0 && s.failure() == nil {
			all = false
		}
	}
	complete := !e.silent.Load() && last > 0
	switch {
	case send && complete && e.selfEnded() && all && drained > 0 && !e.udp():
		return drained
	case send && complete && e.selfEnded():
		return last
	case !send && complete && (e.cfg.Limited || e.cfg.Sink != nil):
		return last
	}
	return stopped
}

// selfEnded reports that the senders had sent their share.
func (e *Engine) selfEnded() bool {
	select {
	case <-e.fired:
		return e.reason == Bytes || e.reason == Blocks || e.reason == FileEnd
	default:
		return false
	}
}

// pathNow is the data path as it turned out.
func (e *Engine) pathNow() result.DataPath {
	p := e.path
	if e.fastTx {
		p.Tx = e.txPath()
	}
	if e.udp() {
		e.datagramPath(&p)
	}
	return p
}

// Snapshot returns the totals so far.
func (e *Engine) Snapshot() Totals {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.final != nil {
		return *e.final
	}
	if !e.started.Load() {
		return Totals{Path: e.pathNow()}
	}
	e.usage.end = readUsage()
	now := e.now()
	return e.totals(map[bool]int64{true: now, false: now}, false)
}

// totals makes Totals of the present counters, with the given end of each direction
// (ns since t0).
func (e *Engine) totals(ends map[bool]int64, final bool) Totals {
	t := Totals{Path: e.pathNow(), Flows: make([]FlowTotal, len(e.streams))}
	if e.mono != nil && e.ax.measured {
		zero := *e.mono + e.ax.origin
		t.Zero = &zero
	}
	retrans := make([]int64, len(e.streams)) // one allocation for all
	var bytes int64
	for i, s := range e.streams {
		f := &t.Flows[i]
		base := e.baseOf(s, ends)
		f.ID, f.Send = s.ID, s.Send
		f.Total.Bytes = s.ctr.bytes.Load() - base.bytes
		f.Total.End = max(0, seconds(ends[s.Send]-base.at))
		if s.full.Load() { // it was done when it was
			f.Total.End = min(f.Total.End, seconds(s.ctr.last.Load()-base.at))
		}
		f.OmittedBytes = base.bytes
		f.Blocks = f.Total.Bytes / int64(e.cfg.BlockSize)
		if s.calls != nil && s.calls.rounds {
			f.Blocks = s.calls.parts[1].rounds.Load()
		}
		f.IO = s.calls.total()
		f.Err, f.EOF = s.failure(), s.eof.Load()
		if n := s.ctr.last.Load(); n > 0 {
			f.LastByte = seconds(n - base.at)
		}
		if s.drained > 0 {
			f.Drained = seconds(s.drained - base.at)
		}
		last := e.lastOf(s)
		if last.k.ok && base.k.ok && s.Send {
			retrans[i] = max(0, last.k.retrans-base.k.retrans)
			f.Total.Retransmits = &retrans[i]
		}
		if e.udp() {
			s.udpTotals(base, f, !e.thin(), final)
		} else if !e.thin() {
			f.TCP = s.summarise(base.k, last, f.Total.End, final)
		}
		bytes += f.Total.Bytes
		t.Elapsed = max(t.Elapsed, f.Total.End)
	}
	if e.thin() {
		for _, i := range slowest(len(t.Flows), func(i int) int64 { return t.Flows[i].Total.Bytes }) {
			if e.udp() {
				e.streams[i].udpTotals(e.baseOf(e.streams[i], ends), &t.Flows[i], true, final)
				continue
			}
			s, last := e.streams[i], e.lastOf(e.streams[i])
			last.info = s.readKernel(true).info
			t.Flows[i].TCP = s.summarise(e.baseOf(s, ends).k, last, t.Flows[i].Total.End, final)
		}
	}
	t.Usage, t.CPU = e.usage.end.since(e.usage.base, bytes)
	if t.CPU != nil {
		t.CPU.Congestion = e.congestion()
	}
	return t
}

// baseOf is the sample that the totals of s are counted from. When the test broke off
// before anything counted, that is the present.
func (e *Engine) baseOf(s *stream, ends map[bool]int64) mark {
	if e.ax.measured {
		return s.base
	}
	if e.udp() {
		return s.udpSample(ends[s.Send])
	}
	return mark{at: ends[s.Send], bytes: s.ctr.bytes.Load(), k: s.prev.k}
}

// lastOf is the reading at the end of s, or now.
func (e *Engine) lastOf(s *stream) reading {
	if s.last != nil {
		return *s.last
	}
	return s.readKernel(!e.thin())
}

// summarise makes the TCP summary of s over the measured time.
func (s *stream) summarise(base kernel, last reading, seconds float64, final bool) *result.TCPSummary {
	sum := s.sum
	if !final || sum.n == 0 {
		sum.add(last)
	}
	out := sum.result(base, last, seconds)
	if out != nil {
		out.SYN = s.syn
	}
	return out
}

// readSYNs keeps what opened the connections: the kernel gives it out once.
func (e *Engine) readSYNs() {
	if e.udp() || e.thin() {
		return
	}
	for _, s := range e.streams {
		s.syn, _ = s.Conn.SavedSYN() // without it less can be told
	}
}

// congestion is the algorithm of the last flow, "" when none is known.
func (e *Engine) congestion() string {
	for i := len(e.streams) - 1; i >= 0 && !e.udp(); i-- {
		if name, err := e.streams[i].Conn.Congestion(); err == nil {
			return name
		}
	}
	return ""
}
