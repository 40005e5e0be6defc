package iperf3

import (
	"context"
	"encoding/json"
	"time"

	"github.com/fullbore-net/fullbore/internal/proto/ext"
)

// When a client's turn comes, and what it and others are told meanwhile.

// queueBeat is how often a waiting client hears of its place.
const queueBeat = 5 * time.Second

// awaitTurn takes a slot, waiting for it in the queue when the client can.
func (t *session) awaitTurn(ctx context.Context) error {
	mayWait := t.hello.Has(ext.FeatureQueue) && t.hello.Queue
	switch t.s.admit(t, mayWait) {
	case admitted:
		t.consumed = t.s.Policy.OneOff
		return nil
	case isBusy:
		return errBusy
	}
	beat := time.NewTicker(queueBeat)
	defer beat.Stop()
	for {
		if n, est := t.s.place(t); n > 0 {
			doc, _ := json.Marshal(ext.QueueFrame{Position: n, Estimate: est})
			if err := t.ctl.send(AppendFrame(nil, FrameQueue, doc), t.s.to.Answer); err != nil {
				return t.closedError(err)
			}
		}
		select {
		case <-t.turn:
			t.consumed = t.s.Policy.OneOff
			return nil
		case <-t.shift:
		case <-beat.C:
		case in, ok := <-t.ctl.in:
			if err := t.early(in, ok); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (t *session) moved() {
	select {
	case t.shift <- struct{}{}:
	default:
	}
}

func (t *session) overlapped() {
	select {
	case t.overlap <- struct{}{}:
	default:
	}
}

// remaining is how long the test will still take; false when it has no time limit.
// The server's mutex is held.
func (t *session) remaining() (time.Duration, bool) {
	if t.plan.Duration == 0 {
		return 0, false
	}
	return max(0, t.plan.Duration+t.plan.Omit-t.s.now().Sub(t.since)), true
}
