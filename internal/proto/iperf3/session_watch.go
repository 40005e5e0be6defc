package iperf3

import (
	"context"
	"fmt"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// watch waits for the client's TEST_END and for everything that ends a test earlier.
func (t *session) watch(ctx context.Context) error {
	wctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wait := make(chan waited, 1)
	go func() { // ends with wctx at the latest
		reason, err := t.eng.Wait(wctx)
		wait <- waited{reason, err}
	}()
	still := newStall(t.acknowledged(), t.stallAfter())
	defer still.stop()
	rate := newRateWatch(t.eng, t.s.Policy.RateLimit, t.s.Policy.RateLimitWindow)
	defer rate.stop()
	steering := time.NewTicker(steerCheck)
	defer steering.Stop()
	last := lastWaits{drained: make(chan error, 1)}
	defer last.stop()
	if t.plan.Duration > 0 {
		last.hard = last.after(t.plan.Duration + t.plan.Omit + t.s.to.Grace)
	}
	for {
		select {
		case in, ok := <-t.ctl.in:
			over, err := t.word(in, ok)
			if err != nil || over {
				return err
			}
		case w := <-wait:
			if err := t.flowsEnded(wctx, w, &last); err != nil {
				return err
			}
		case <-last.sent:
			return nil
		case <-last.drained: // what the system cannot tell is not waited for
			return t.letRead(ctx)
		case <-last.dead:
			return t.idleError()
		case <-last.hard:
			return &result.Error{
				Code: "expired", Number: codeDurationExpired,
				Text: fmt.Sprintf("the client did not end the test %v after its time: given up", t.s.to.Grace),
			}
		case <-still.tick():
			if still.stuck() {
				return t.stalledError()
			}
		case <-steering.C:
			if err := t.mindSteering(); err != nil {
				return err
			}
		case <-rate.tick():
			if bps := rate.exceeded(); bps > 0 {
				return t.tooFast(bps)
			}
		case <-t.overlap:
			t.noteOverlap(t.s.beside())
		case e := <-t.failed:
			return e
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// lastWaits are the ends of a data phase for which the client is not asked. A channel that is nil
// is none of them yet.
type lastWaits struct {
	hard    <-chan time.Time // the client lets the test run on beyond all grace
	dead    <-chan time.Time // its streams are closed, and it says nothing
	sent    <-chan time.Time // it has had the time to get the last of our datagrams
	drained chan error       // it has all of the file

	timers []*time.Timer
}

func (l *lastWaits) after(d time.Duration) <-chan time.Time {
	timer := time.NewTimer(d)
	l.timers = append(l.timers, timer)
	return timer.C
}

func (l *lastWaits) stop() {
	for _, timer := range l.timers {
		timer.Stop()
	}
}

// flowsEnded takes note that nothing flows any more: it ends the test, or begins a wait. ctx is the
// data phase's.
func (t *session) flowsEnded(ctx context.Context, w waited, last *lastWaits) error {
	switch w.reason {
	case traffic.ReceiveTimeout:
		return t.idleError()
	case traffic.PeerClosed: // the client still decides when the test ends
		if long := tooLong(w.err); long != nil {
			return long
		}
		last.dead = last.after(t.plan.ReceiveTimeout)
	case traffic.FileEnd:
		// Only a sending server knows the end of its file, and of all that it may say only
		// EXCHANGE_RESULTS ends a test in good order (spec §4.1): when the client has it all.
		go func() { last.drained <- t.eng.Drain(ctx) }() // ends with ctx at the latest
	case traffic.Bytes, traffic.Blocks:
		// Our own share is sent. A client that misses some of the datagrams would count for ever.
		if t.plan.Transport == plan.UDP && t.plan.Direction == plan.Down {
			last.sent = last.after(max(restSilence, t.drainTime()))
		}
	default: // cancelled: seen elsewhere
	}
	return nil
}

// tooFast is the end of a test that moved more than the server allows.
func (t *session) tooFast(bps int64) error {
	t.out.notice(result.Notice{
		Code: "rate-limit-exceeded", Level: result.Warn,
		Text: fmt.Sprintf("Total throughput of %d bps exceeded %d bps limit", bps, t.s.Policy.RateLimit), // iperf3's words
	})
	return &result.Error{
		Code: "limit", Number: codeTotalRate,
		Text: fmt.Sprintf("ended: %d bit/s on average over %v, allowed are %d bit/s", bps, t.s.Policy.RateLimitWindow, t.s.Policy.RateLimit),
	}
}

func (t *session) stalledError() error {
	return &result.Error{
		Code: "stalled", Remote: true, Number: codeStreamWrite, Errno: linuxETIMEDOUT,
		Text: fmt.Sprintf("the client took nothing for %v: it is frozen, or the path is cut", t.stallAfter()),
	}
}

// letRead gives an iperf3 client a moment to read what its kernel holds: it stops reading
// when it is told that the test is over.
func (t *session) letRead(ctx context.Context) error {
	if t.hello != nil {
		return nil
	}
	timer := time.NewTimer(settle)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func (t *session) stallAfter() time.Duration {
	if t.plan.SendTimeout > 0 {
		return t.plan.SendTimeout
	}
	return t.plan.ReceiveTimeout
}

func (t *session) idleError() error {
	return &result.Error{
		Code: "receive-timeout", Remote: true, Number: codeNoMsg,
		Text: fmt.Sprintf("no data came from the client for %v: it is gone or frozen, or the path is cut", t.plan.ReceiveTimeout),
	}
}

// word handles a message of the data phase. over = the client ended the test.
func (t *session) word(in inbound, ok bool) (over bool, err error) {
	switch {
	case !ok:
		return false, t.closedError(errPeerClosed)
	case in.err != nil:
		return false, t.closedError(in.err)
	case in.m.State == StateTestEnd:
		return true, nil
	case in.m.State == FrameClient: // a stop; the others were dealt with on arrival
		return true, nil
	case in.m.State == StateTestStart, in.m.State.Frame():
		return false, nil
	}
	return false, t.goodbye(in.m)
}
