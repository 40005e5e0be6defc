package traffic

import (
	"github.com/fullbore-net/fullbore/result"
)

// Finish stops whatever still runs, emits the last row and returns the totals. No
// event follows. A second call returns the same totals.
func (e *Engine) Finish() Totals {
	if !e.started {
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
	complete := !e.cut.Load() && last > 0
	switch {
	case send && complete && e.selfEnded() && all && drained > 0:
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
	return p
}

// Snapshot returns the totals so far.
func (e *Engine) Snapshot() Totals {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.final != nil {
		return *e.final
	}
	if !e.started {
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
	var bytes int64
	for i, s := range e.streams {
		f := &t.Flows[i]
		base := s.base
		if !e.ax.measured { // the test broke off before anything counted
			base = mark{at: ends[s.Send], bytes: s.ctr.bytes.Load(), k: s.prev.k}
		}
		f.ID, f.Send = s.ID, s.Send
		f.Total.Bytes = s.ctr.bytes.Load() - base.bytes
		f.Total.End = max(0, seconds(ends[s.Send]-base.at))
		f.OmittedBytes = base.bytes
		f.Blocks = f.Total.Bytes / int64(e.cfg.BlockSize)
		f.Err, f.EOF = s.failure(), s.eof.Load()
		if n := s.ctr.last.Load(); n > 0 {
			f.LastByte = seconds(n - base.at)
		}
		if s.drained > 0 {
			f.Drained = seconds(s.drained - base.at)
		}
		var last reading
		if s.last != nil {
			last = *s.last
		} else {
			last = s.readKernel(!e.thin())
		}
		if last.k.ok && base.k.ok && s.Send {
			r := max(0, last.k.retrans-base.k.retrans)
			f.Total.Retransmits = &r
		}
		sum := s.sum
		if !final || sum.n == 0 {
			sum.add(last)
		}
		f.TCP = sum.result(base.k, last, f.Total.End)
		bytes += f.Total.Bytes
		t.Elapsed = max(t.Elapsed, f.Total.End)
	}
	t.Usage, t.CPU = e.usage.end.since(e.usage.base, bytes)
	if t.CPU != nil {
		for _, s := range e.streams {
			if name, err := s.Conn.Congestion(); err == nil {
				t.CPU.Congestion = name
			}
		}
	}
	return t
}
