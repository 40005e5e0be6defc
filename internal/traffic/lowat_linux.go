package traffic

import "github.com/fullbore-net/fullbore/internal/osnet"

// lowat steers a fast flow's low-water mark. A high mark saves the receiver most of its
// wake-ups, but holds back the count of as many bytes; so it is only up while that is
// little time, and never in a run that must end with the last byte.
type lowat struct {
	fd    int
	off   bool
	high  bool
	up    float64 // bytes/s from which the mark goes up; at half of it, it comes down
	bytes int64   // at the last look
	at    int64
}

const (
	lowatBytes = 512 << 10
	// A thread's flow holds back 1 ms of data at most, one of several on an epoll worker
	// 10 ms: a mark that only the sum of the flows could pay for would never go up.
	threadLowatUp = lowatBytes / 0.001
	laneLowatUp   = lowatBytes / 0.01
	// lowatLanes bounds the flows of a worker that have marks: with more, what is held
	// back adds up, and nothing is gained.
	lowatLanes = 256
)

// mustSeeAll reports that every byte must be counted as soon as it is there.
func (e *Engine) mustSeeAll() bool { return e.cfg.Limited || e.cap > 0 || e.cfg.CountCalls }

// adjust looks at the flow's rate since the last look, if that was least ns ago, and
// moves the mark. Lowering it makes the kernel report data that lies below the old one.
func (l *lowat) adjust(bytes, now, least int64) {
	span := now - l.at
	if l.off || span < least {
		return
	}
	rate := float64(bytes-l.bytes) / seconds(span)
	l.bytes, l.at = bytes, now
	switch {
	case !l.high && rate > l.up:
		l.set(lowatBytes)
	case l.high && rate < l.up/2:
		l.set(1)
	}
}

func (l *lowat) set(n int) {
	if high := n > 1; high != l.high {
		l.high = high
		if osnet.SetRcvLowat(l.fd, n) != nil {
			l.off, l.high = true, false
		}
	}
}
