package iperf3

import (
	"fmt"
	"time"

	"github.com/fullbore-net/fullbore/internal/proto/probe"
	"github.com/fullbore-net/fullbore/result"
)

// The server's part in a steered test (docs/wire-extension.md §6, §11).

// counted is what of the test's datagrams has arrived here, for answers to probes.
func (t *session) counted() (probe.Arrivals, bool) {
	eng := t.steerable.Load()
	if eng == nil {
		return probe.Arrivals{}, false
	}
	a, ok := eng.Arrivals()
	return probe.Arrivals(a), ok
}

// steered notes a frame that steers; watch: they come several times a second.
func (t *session) noteSteer(watch bool) {
	if watch {
		t.steeredAt.Store(time.Now().UnixNano())
	}
}

// steerCheck is how often a server looks whether it is still steered.
const steerCheck = 200 * time.Millisecond

// mindSteering is the watch-dog: a client that steered and is not heard any more is sent as little
// as possible, and later nothing.
func (t *session) mindSteering() error {
	last := t.steeredAt.Load()
	if last == 0 {
		return nil
	}
	silence := time.Since(time.Unix(0, last))
	switch {
	case silence >= steerDead:
		return &result.Error{
			Code: "steering-silent", Remote: true, Number: codeNoMsg,
			Text: fmt.Sprintf("the client, which steered, was not heard for %v: given up", steerDead),
		}
	case silence < steerQuiet:
		t.quiet = false
	case !t.quiet:
		t.quiet = true
		t.eng.Steer(trickle(t.plan.BlockSize))
		t.out.notice(result.Notice{
			Code: "steering-silent", Level: result.Warn,
			Text: fmt.Sprintf("the client, which steers, was not heard for %v: only a trickle is sent", steerQuiet),
		})
	}
	return nil
}

// trickle is the lowest row of M-CAP's table: a datagram each 50 ms, payload bit/s.
func trickle(block int) int64 { return int64(block) * 8 * 20 }
