package traffic

import "sync/atomic"

// counter is one flow's count. Only the flow's worker writes it, with plain atomic
// stores; the sampler reads. It fills a pair of cache lines by itself (the adjacent
// line is prefetched on x86), since a line that another core writes costs 4–5 times
// as much to add to.
type counter struct {
	bytes   atomic.Int64 // moved since Start, never reset
	last    atomic.Int64 // ns since t0 of the last byte
	stopped atomic.Int64 // ns since t0 when the worker left the flow; 0 = still on it
	_       [128 - 3*8]byte
}

// add counts n bytes moved at time at (ns since t0). The worker is the only caller.
func (c *counter) add(n int, at int64) {
	c.bytes.Store(c.bytes.Load() + int64(n))
	c.last.Store(at)
}
