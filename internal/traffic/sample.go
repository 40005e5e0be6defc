package traffic

import (
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/result"
)

// Up to detailFlows flows every row carries every flow's whole TCP_INFO, and the totals
// every flow's summary. Beyond, they carry those of the slowFlows slowest: ten thousand
// readings a second would be the larger part of this program's memory.
const (
	detailFlows = 128
	slowFlows   = 16
)

// kernel is what the sampler keeps of a TCP_INFO reading: the counters of which it
// takes differences. −1 = not reported.
type kernel struct {
	ok                        bool
	retrans                   int64
	reord, busy, rwnd, sndbuf int64
}

// reading is one look at a flow's kernel state. info is nil when only the counters
// were read, or nothing is known.
type reading struct {
	k              kernel
	cwnd, wnd, rtt int64
	info           *result.TCPInfo
}

func (e *Engine) thin() bool { return len(e.streams) > detailFlows }

// slowest returns the indices of the slowFlows flows with the fewest bytes.
func slowest(n int, bytes func(int) int64) []int {
	slow := make([]int, 0, slowFlows)
	for i := range n {
		at := len(slow)
		for at > 0 && bytes(slow[at-1]) > bytes(i) {
			at--
		}
		if at == slowFlows {
			continue
		}
		if len(slow) < slowFlows {
			slow = append(slow, 0)
		}
		copy(slow[at+1:], slow[at:])
		slow[at] = i
	}
	return slow
}

// readKernel reads TCP_INFO, whole or only the counters.
func (s *stream) readKernel(whole bool) reading {
	if s.e.udp() {
		return reading{}
	}
	if !whole {
		var b osnet.TCPBrief
		if s.Conn.Brief(&b) != nil {
			return reading{}
		}
		return reading{
			k:    kernel{ok: true, retrans: b.Retransmits, reord: b.ReordSeen, busy: b.BusyUS, rwnd: b.RwndUS, sndbuf: b.SndbUS},
			cwnd: b.Cwnd, wnd: b.SndWnd, rtt: b.RTT,
		}
	}
	i, err := s.Conn.TCPInfo()
	if err != nil {
		return reading{}
	}
	return reading{
		k: kernel{
			ok: true, retrans: i.Retransmits, reord: known(i.ReordSeen), busy: known(i.BusyUS),
			rwnd: known(i.RwndLimitedUS), sndbuf: known(i.SndbufLimUS),
		},
		cwnd: i.Cwnd, wnd: known(i.SndWnd), rtt: i.RTT, info: &i,
	}
}

func known(p *int64) int64 {
	if p == nil {
		return -1
	}
	return *p
}

// sample reads one flow now; a stopped one keeps the reading of its end.
func (e *Engine) sample(s *stream) (mark, reading) {
	if e.udp() {
		return s.udpSample(e.now()), reading{}
	}
	m := mark{bytes: s.ctr.bytes.Load(), at: e.now()}
	var r reading
	if s.last != nil {
		r = *s.last
	} else {
		r = s.readKernel(!e.thin())
	}
	m.k = r.k
	return m, r
}

// sampleAll reads every flow, each with its own time.
func (e *Engine) sampleAll() ([]mark, []reading) {
	marks, reads := make([]mark, len(e.streams)), make([]reading, len(e.streams))
	for i, s := range e.streams {
		marks[i], reads[i] = e.sample(s)
	}
	return marks, reads
}

// keepLast takes the last reading of one direction, now that it stopped; a second one
// only replaces it when again is set (after Drain).
func (e *Engine) keepLast(send, again bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.started.Load() || e.final != nil {
		return
	}
	for _, s := range e.streams {
		if s.Send == send && (s.last == nil || again) {
			r := s.readKernel(!e.thin())
			s.last = &r
		}
	}
}

// summary gathers the extremes over the measured rows.
type summary struct {
	n                      int64
	maxCwnd, maxWnd        int64
	maxRTT, minRTT, sumRTT int64
}

func (m *summary) add(r reading) {
	if !r.k.ok {
		return
	}
	if m.n == 0 {
		m.maxWnd, m.minRTT = r.wnd, r.rtt
	}
	m.n++
	m.maxCwnd = max(m.maxCwnd, r.cwnd)
	m.maxWnd = max(m.maxWnd, r.wnd)
	m.maxRTT = max(m.maxRTT, r.rtt)
	m.minRTT = min(m.minRTT, r.rtt)
	m.sumRTT += r.rtt
}

// result returns the summary over s seconds from base to the last reading.
func (m *summary) result(base kernel, last reading, s float64) *result.TCPSummary {
	if m.n == 0 || !last.k.ok {
		return nil
	}
	out := &result.TCPSummary{
		MaxCwnd: m.maxCwnd, MaxSndWnd: m.maxWnd, MaxRTT: m.maxRTT, MinRTT: m.minRTT, MeanRTT: m.sumRTT / m.n,
	}
	if last.info != nil {
		out.Last = *last.info
	} else {
		out.Last = result.TCPInfo{Cwnd: last.cwnd, RTT: last.rtt, Retransmits: last.k.retrans}
	}
	if last.k.reord >= 0 {
		out.Reorder = last.k.reord - max(0, base.reord)
	}
	if !base.ok || s <= 0 {
		return out
	}
	share := func(a, b int64) *float64 {
		if a < 0 || b < 0 {
			return nil
		}
		v := min(1, max(0, float64(b-a)/1e6/s))
		return &v
	}
	out.BusyShare = share(base.busy, last.k.busy)
	out.RwndShare = share(base.rwnd, last.k.rwnd)
	out.SndbufShare = share(base.sndbuf, last.k.sndbuf)
	return out
}
