package traffic

import (
	"github.com/fullbore-net/fullbore/result"
)

// Finish stops whatever still runs, emits the last row and returns the totals. No
// event follows. A second call returns the same totals.
func (e *Engine) Finish() Totals {
	if !e.started {
		return Totals{Path: e.path}
	}
	e.StopSend()
	e.StopReceive(e.drain.Load())
	e.stopClock()
	t := e.finish()
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
	marks := make([]mark, len(e.streams))
	moved := false
	for i, s := range e.streams {
		m := mark{at: ends[s.Send], bytes: s.ctr.bytes.Load()}
		if s.lastTCP != nil {
			m.tcp = s.lastTCP.tcp
		}
		moved = moved || m.at > s.prev.at || m.bytes != s.prev.bytes
		if m.at < s.prev.at {
			m.at = s.prev.at
		}
		marks[i] = m
	}
	if moved && (e.ax.measured || e.cfg.Interval > 0) {
		e.row(marks, true)
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

// Snapshot returns the totals so far.
func (e *Engine) Snapshot() Totals {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.final != nil {
		return *e.final
	}
	if !e.started {
		return Totals{Path: e.path}
	}
	e.usage.end = readUsage()
	now := e.now()
	return e.totals(map[bool]int64{true: now, false: now}, false)
}

// totals makes Totals of the present counters, with the given end of each direction
// (ns since t0).
func (e *Engine) totals(ends map[bool]int64, final bool) Totals {
	t := Totals{Path: e.path, Flows: make([]FlowTotal, len(e.streams))}
	if e.mono != nil && e.ax.measured {
		zero := *e.mono + e.ax.origin
		t.Zero = &zero
	}
	var bytes int64
	for i, s := range e.streams {
		f := &t.Flows[i]
		base := s.base
		if !e.ax.measured { // the test broke off before anything counted
			base = mark{at: ends[s.Send], bytes: s.ctr.bytes.Load(), tcp: s.prev.tcp}
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
		end := s.prev.tcp
		if !final {
			end = s.tcpInfo()
		}
		if end != nil && base.tcp != nil && s.Send {
			r := max(0, end.Retransmits-base.tcp.Retransmits)
			f.Total.Retransmits = &r
		}
		sum := s.sum
		if !final || sum.n == 0 {
			sum.add(end)
		}
		f.TCP = sum.result(base.tcp, end, f.Total.End)
		bytes += f.Total.Bytes
		t.Elapsed = max(t.Elapsed, f.Total.End)
	}
	t.Usage, t.CPU = e.usage.end.since(e.usage.base, bytes)
	if t.CPU != nil {
		for _, s := range e.streams {
			if c, ok := any(s.Conn).(interface{ Congestion() (string, error) }); ok {
				if name, err := c.Congestion(); err == nil {
					t.CPU.Congestion = name
				}
			}
		}
	}
	return t
}

// summary gathers the extremes of TCP_INFO over the measured rows.
type summary struct {
	n                      int64
	maxCwnd, maxWnd        int64
	maxRTT, minRTT, sumRTT int64
}

func (m *summary) add(i *result.TCPInfo) {
	if i == nil {
		return
	}
	wnd := int64(-1)
	if i.SndWnd != nil {
		wnd = *i.SndWnd
	}
	if m.n == 0 {
		m.maxWnd, m.minRTT = wnd, i.RTT
	}
	m.n++
	m.maxCwnd = max(m.maxCwnd, i.Cwnd)
	m.maxWnd = max(m.maxWnd, wnd)
	m.maxRTT = max(m.maxRTT, i.RTT)
	m.minRTT = min(m.minRTT, i.RTT)
	m.sumRTT += i.RTT
}

// result returns the summary over the measured time of s seconds from base to end.
func (m *summary) result(base, end *result.TCPInfo, s float64) *result.TCPSummary {
	if m.n == 0 || end == nil {
		return nil
	}
	out := &result.TCPSummary{
		MaxCwnd: m.maxCwnd, MaxSndWnd: m.maxWnd, MaxRTT: m.maxRTT, MinRTT: m.minRTT,
		MeanRTT: m.sumRTT / m.n, Last: *end,
	}
	if end.ReordSeen != nil {
		out.Reorder = *end.ReordSeen
		if base != nil && base.ReordSeen != nil {
			out.Reorder -= *base.ReordSeen
		}
	}
	if base == nil || s <= 0 {
		return out
	}
	share := func(a, b *int64) *float64 {
		if a == nil || b == nil {
			return nil
		}
		v := min(1, max(0, float64(*b-*a)/1e6/s))
		return &v
	}
	out.BusyShare = share(base.BusyUS, end.BusyUS)
	out.RwndShare = share(base.RwndLimitedUS, end.RwndLimitedUS)
	out.SndbufShare = share(base.SndbufLimUS, end.SndbufLimUS)
	return out
}
