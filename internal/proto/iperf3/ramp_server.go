package iperf3

import (
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
)

// The server's part in a ramped test (docs/wire-extension.md §6, §11).

// ramped reports that this client says when the streams begin.
func (t *session) ramped() bool {
	return t.hello.Has(ext.FeatureRamp) && t.hello.Open > 0 && t.plan.Transport == plan.TCP
}

// pingsBeside answers round trips over TCP while the streams of a ramped test carry their load, until
// stop is called, which waits for them.
func (t *session) pingsBeside() (stop func()) {
	if !t.ramped() {
		return func() {}
	}
	t.s.mu.Lock()
	t.s.creating[t] = struct{}{} // its connections find it again
	t.s.mu.Unlock()
	done := make(chan struct{})
	go func() { // ends with endPings
		defer close(done)
		t.servePings()
	}()
	return func() {
		t.refuseStreams()
		t.endPings()
		<-done
	}
}

// endPings ends the connections for round trips and turns further ones away. It may be called more than
// once.
func (t *session) endPings() { t.noPingsOnce.Do(func() { close(t.noPings) }) }
