package traffic

// Arrivals are what this end's receivers of datagrams have counted since Start, all flows
// together, the tail included. They only grow.
type Arrivals struct {
	Distinct   int64 // different datagrams
	Passed     int64 // sequence numbers up to the highest of each flow; less Distinct: missing so far
	Reordered  int64
	Duplicates int64
}

// Arrivals reads the counts; ok is false where no flow counts datagrams by number. It may be
// called by any goroutine at any time: a receiver's worker holds the same lock for one batch.
func (e *Engine) Arrivals() (a Arrivals, ok bool) {
	for _, s := range e.streams {
		u := s.rx
		if u == nil || u.bare {
			continue
		}
		u.mu.Lock()
		c := u.acc.Counts()
		u.mu.Unlock()
		a.Distinct += c.First
		a.Passed += c.Highest - c.Base
		a.Reordered += c.Reordered
		a.Duplicates += c.Duplicates
		ok = true
	}
	return a, ok
}
