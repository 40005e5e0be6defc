package suite

import (
	"fmt"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// What the ends' own windows let through (M-6349): a connection that is held by them says nothing of the link.

const (
	windowNear = 0.85 // how much of what its windows let through a rate must be to be held by them
	queueNear  = 1.2  // times the empty path's round trip; beyond it a queue stands, so the path is full
)

// senderTCP is what the kernel of a stream's sender told; nil = nothing.
func senderTCP(run *result.Run, s *result.Stream) *result.TCPSummary {
	if run.End == s.Direction.Sender() {
		return s.TCP
	}
	return s.RemoteTCP
}

// windows is what the largest windows that receivers announced in a run let through on the empty path's
// round trip, bit/s, and their sum, bytes; false = not known.
func (j *Judge) windows(run *result.Run, d result.Direction) (rate float64, sum int64, known bool) {
	rtt := j.rtt()
	if run == nil || rtt <= 0 {
		return 0, 0, false
	}
	for i := range run.Streams {
		s := &run.Streams[i]
		if s.Direction != d {
			continue
		}
		t := senderTCP(run, s)
		if t == nil || t.MaxSndWnd <= 0 {
			return 0, 0, false
		}
		sum += t.MaxSndWnd
	}
	return float64(sum) * 8 / rtt, sum, sum > 0
}

// ownWindow is what the receiver's own window let through in each round of one stream: its limit is that of
// the lesser of link and window. false = the window was not what held it, at least once.
func (j *Judge) ownWindow(it Item, d result.Direction) (rate float64, size int64, held bool) {
	if it.Kind != TCPSingle {
		return 0, 0, false
	}
	for _, n := range j.names(it, d) {
		run := j.runs[n]
		if run == nil || run.Sum(d) == nil || run.Sum(d).Limit != conclude.ReceiveWindow {
			return 0, 0, false
		}
		w, sum, known := j.windows(run, d)
		if !known {
			return 0, 0, false
		}
		rate, size = max(rate, w), max(size, sum)
	}
	return rate, size, rate > 0
}

// queued reports that the mean round trip of a run was longer than the empty path's: a full path makes a
// send buffer run full, too. Unknown counts as queued.
func (j *Judge) queued(run *result.Run, d result.Direction) bool {
	rtt := j.rtt()
	for i := range run.Streams {
		s := &run.Streams[i]
		if s.Direction != d {
			continue
		}
		t := senderTCP(run, s)
		if t == nil || t.MeanRTT <= 0 || rtt <= 0 || float64(t.MeanRTT)/1e6 > queueNear*rtt {
			return true
		}
	}
	return false
}

// heldByWindow tells of several streams that windows or a send buffer of the ends held: less than the link, and about
// as much as those let through. (Of one stream the demand itself is held to its window.)
func (j *Judge) heldByWindow(it Item, d result.Direction, names []string) (doubt, bool) {
	for _, n := range names {
		run := j.runs[n]
		if run == nil || run.Sum(d) == nil {
			continue
		}
		switch run.Sum(d).Limit {
		case conclude.SendBuffer:
			if !j.queued(run, d) {
				return doubt{text: "the send buffer of " + run.EndName(d.Sender()) + " was the limit", rates: true}, true
			}
		case conclude.ReceiveWindow:
			w, sum, known := j.windows(run, d)
			got := throughput(run, d)
			if it.Kind != TCPSingle && known && got.known && w < j.Method.Ideal() && got.value >= windowNear*w {
				return doubt{text: fmt.Sprintf("the receivers' own windows (%s in all) let no more through", units.ByteSize(sum).IEC()), rates: true}, true
			}
		}
	}
	return doubt{}, false
}
