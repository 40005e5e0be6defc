package iperf3

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/proto/probe"
	"github.com/fullbore-net/fullbore/result"
)

// A steered test (M-CAP): every 50 ms the receiver's counts and the round trip of a probe decide
// the sender's rate. Where the server receives, its counts come with the answers to probes; where
// it sends, the client counts and frames 0x49 carry the rate.

// Feedback is what was heard since the one before.
type Feedback struct {
	Received, Lost int64         // datagrams
	Delay          time.Duration // of the last round trip, above the least of the test
}

// Steering decides the rate, payload bit/s of all streams. It is used by one goroutine.
type Steering interface {
	Next(f Feedback) int64
	// Idle is what is sent while nothing is heard; it also starts over from there.
	Idle() int64
}

// The watch-dogs of M-CAP.
const (
	steerQuiet = time.Second     // without feedback: as little as possible is sent
	steerDead  = 3 * time.Second // the test ends
)

type steerer struct {
	r *clientRun
	s Steering

	mu    sync.Mutex
	got   probe.Arrivals // the server's, the newest
	told  time.Time      // when it came; zero = never
	trip  int64          // ns, the newest
	least int64          // the least so far
}

// plainSteer fits a steered plan to a server that cannot be steered with: what is left is a short
// test at the plan's rate.
func (r *clientRun) plainSteer() {
	if r.p.Steer == nil {
		return
	}
	if r.hello.Has(ext.FeatureSteer) && r.hello.Has(ext.FeatureProbe) && r.extendedUDP() && r.hello.Has(ext.FeatureClient) && r.c.Steering != nil {
		r.steerer = &steerer{r: r, s: r.c.Steering(r.p.BlockSize, r.addr.Addr().Is6() && !r.addr.Addr().Is4In6(), *r.p.Steer)}
		return
	}
	r.p.Steer, r.p.Probe, r.p.Duration, r.p.Endless = nil, nil, plan.SteerPlain, false
	r.head.Test.Duration, r.head.Test.Steered = r.p.Duration.Seconds(), false
}

// firstRate is per stream.
func (r *clientRun) firstRate() int64 {
	if r.steerer == nil {
		return r.p.Bitrate
	}
	return perFlow(r.steerer.s.Idle(), r.p.Streams)
}

func perFlow(bps int64, streams int) int64 { return max(bps/int64(max(streams, 1)), 1) }

// startSteering steers until stop is called, which waits for it. The context ends with the test's,
// or when nothing was heard for too long.
func (r *clientRun) startSteering(ctx context.Context) (steered context.Context, stop func()) {
	if r.steerer == nil {
		return ctx, func() {}
	}
	steered, cancel := context.WithCancelCause(ctx)
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() { // ends with quit or ctx
		defer close(ended)
		r.steerer.run(steered, quit, cancel)
	}()
	return steered, func() {
		close(quit)
		<-ended
		cancel(nil)
	}
}

// answer takes an answer to a probe.
func (x *steerer) answer(trip int64, a probe.Arrivals, told bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.trip = trip
	if x.least == 0 || trip < x.least {
		x.least = trip
	}
	if told && a.Passed >= x.got.Passed {
		x.got, x.told = a, time.Now()
	}
}

// hear is what the receiver has counted, and when that was known; the last round trip's delay.
func (x *steerer) hear(now time.Time) (got probe.Arrivals, at time.Time, delay time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delay = time.Duration(x.trip - x.least)
	if x.r.p.Sends(result.Client) {
		return x.got, x.told, delay
	}
	a, _ := x.r.eng.Arrivals()
	return probe.Arrivals(a), now, delay
}

// run steers.
func (x *steerer) run(ctx context.Context, quit <-chan struct{}, end context.CancelCauseFunc) {
	tick := time.NewTicker(plan.SteerEvery)
	defer tick.Stop()
	sends := x.r.p.Sends(result.Client)
	var last probe.Arrivals
	var seen time.Time // of the newest feedback that was used
	began, quiet := time.Now(), false
	alive := began
	for {
		select {
		case <-quit:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		got, at, delay := x.hear(now)
		if got.Passed > last.Passed || sends && at.After(seen) {
			alive, quiet = now, false
		}
		switch silence := now.Sub(alive); {
		case silence >= steerDead:
			end(&result.Error{
				Code: "steering-silent", Remote: true,
				Text: fmt.Sprintf("nothing was heard from the other end for %v: the steered test ends", steerDead),
			})
			return
		case silence >= steerQuiet && !quiet:
			quiet = true
			x.r.out.notice(result.Notice{
				Code: "steering-silent", Level: result.Warn,
				Text: fmt.Sprintf("nothing was heard from the other end for %v, so the sender went back to a trickle", steerQuiet),
			})
			x.apply(x.s.Idle(), sends)
			continue
		}
		if sends && !at.After(seen) || quiet {
			if !sends {
				x.apply(x.s.Idle(), sends) // a server that hears nothing ends the test
			}
			continue
		}
		lost := (got.Passed - got.Distinct) - (last.Passed - last.Distinct)
		f := Feedback{Received: got.Distinct - last.Distinct, Lost: max(lost, 0), Delay: delay}
		last, seen = got, at
		x.apply(x.s.Next(f), sends)
	}
}

// apply puts a rate into force at the end that sends.
func (x *steerer) apply(bps int64, sends bool) {
	each := perFlow(bps, x.r.p.Streams)
	if sends {
		x.r.eng.Steer(each)
		return
	}
	_ = x.r.sendFrame(ext.ClientFrame{Steer: &ext.Steer{BPS: each, Watch: true}}) // a broken connection shows where it is read
}
