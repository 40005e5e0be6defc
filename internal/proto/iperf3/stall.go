package iperf3

import (
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/traffic"
)

// stall watches whether the peer still acknowledges what is sent. A frozen receiver
// keeps its window shut and its kernel alive, so nothing but the lack of progress
// shows it (field case F25).
type stall struct {
	conns  []*osnet.Conn
	after  time.Duration // 0 = never stuck
	every  time.Duration
	ticker *time.Ticker
	mark   int64
	since  time.Time
}

func sendersOf(flows []traffic.Flow) []*osnet.Conn {
	var out []*osnet.Conn
	for _, f := range flows {
		if f.Send {
			out = append(out, f.Conn)
		}
	}
	return out
}

// newStall watches conns, often enough to notice after within its sixteenth.
func newStall(conns []*osnet.Conn, after time.Duration) *stall {
	s := &stall{conns: conns, after: after, mark: -1, since: time.Now()}
	if after > 0 && len(conns) > 0 {
		s.every = min(max(after/16, 10*time.Millisecond), 5*time.Second)
		s.ticker = time.NewTicker(s.every)
	}
	return s
}

func (s *stall) tick() <-chan time.Time {
	if s.ticker == nil {
		return nil
	}
	return s.ticker.C
}

func (s *stall) stop() {
	if s.ticker != nil {
		s.ticker.Stop()
	}
}

// stuck reports that data waited to be acknowledged and none was, for the whole time.
func (s *stall) stuck() bool {
	var mark int64
	waiting := false
	for _, c := range s.conns {
		queue, err := c.SendQueue()
		if err != nil {
			continue // closed, or a system that does not tell
		}
		waiting = waiting || queue > 0
		mark += int64(queue)
		if info, err := c.TCPInfo(); err == nil && info.BytesAcked != nil {
			mark += *info.BytesAcked << 20 // so that a change of the queue cannot hide it
		}
	}
	now := time.Now()
	if !waiting || mark != s.mark {
		s.mark, s.since = mark, now
		return false
	}
	return now.Sub(s.since) >= s.after-s.every
}
