package iperf3

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/probe"
	"github.com/fullbore-net/fullbore/result"
)

// climb raises the rate once it has heard that something arrived.
type climb struct {
	mu       sync.Mutex
	received int64
	heard    int
}

func (c *climb) Next(f Feedback) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard++
	c.received += f.Received
	if c.received == 0 {
		return c.Idle()
	}
	return 40e6
}

func (c *climb) Idle() int64 { return 200 * 8 * 20 }

// A test that would take minutes at its first rate ends soon, since the feedback of the receiver
// reaches the sender while it runs, whichever end that is.
func TestSteeredBetweenFullbores(t *testing.T) {
	for _, d := range []plan.Direction{plan.Up, plan.Down} {
		t.Run(string(d), func(t *testing.T) {
			ts := startServer(t, &Server{})
			c := ts.client(plan.Plan{
				Transport: plan.UDP, Direction: d, BlockSize: 200, Bitrate: 200 * 8 * 20, RateSet: true, Bytes: 1 << 20,
				Steer: &plan.Steer{}, Probe: &plan.Probe{Spacing: plan.SteerEvery, Size: 128},
			})
			s := &climb{}
			c.Steering = func(block int, ipv6 bool, _ plan.Steer) Steering {
				if block != 200 || ipv6 {
					t.Errorf("datagrams of %d bytes, IPv6 %v", block, ipv6)
				}
				return s
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			rec := newRecorder()
			if err := c.Run(ctx, rec); err != nil {
				t.Fatal(err)
			}
			run := rec.run()
			if !run.Test.Steered || s.heard < 2 || s.received == 0 {
				t.Errorf("steered %v, %d times, %d datagrams told", run.Test.Steered, s.heard, s.received)
			}
			serves(t, ts)
		})
	}
}

// To a peer that cannot be steered with it is a short test at the plan's rate.
func TestSteeredWithPlainServer(t *testing.T) {
	ts := startServer(t, &Server{})
	c := ts.client(plan.Plan{
		Transport: plan.UDP, Direction: plan.Up, BlockSize: 1000, Bitrate: 800e3, RateSet: true, Duration: 20 * time.Second, Extension: "off",
		Steer: &plan.Steer{}, Probe: &plan.Probe{Spacing: plan.SteerEvery, Size: 128},
	})
	c.Steering = func(int, bool, plan.Steer) Steering { return &climb{} }
	rec := newRecorder()
	if err := c.Run(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	run := rec.run()
	if run.Test.Steered || run.Test.Duration != plan.SteerPlain.Seconds() || len(run.Probes) > 0 && run.Probes[0].Kind == "udp-echo" {
		t.Errorf("steered %v, %v s, probes %v", run.Test.Steered, run.Test.Duration, kindsOf(run))
	}
	if slices.ContainsFunc(run.Notices, func(n result.Notice) bool { return n.Code == "no-probes" }) {
		t.Error("it speaks of probes that are of no use here")
	}
}

// A server whose steering client falls silent gives the test up.
func TestServerMindsItsSteering(t *testing.T) {
	s := &session{}
	if err := s.mindSteering(); err != nil {
		t.Errorf("nobody steers: %v", err)
	}
	s.noteSteer(false)
	if s.steeredAt.Load() != 0 {
		t.Error("a frame that nobody follows up is minded")
	}
	s.noteSteer(true)
	if err := s.mindSteering(); err != nil {
		t.Errorf("just heard: %v", err)
	}
	s.steeredAt.Store(time.Now().Add(-steerDead - time.Second).UnixNano())
	if err := asResult(s.mindSteering()); err == nil || err.Code != "steering-silent" {
		t.Errorf("after silence: %v", err)
	}
}

// The round trip above the least is the delay that is fed back; old counts are not taken for news.
func TestSteererHears(t *testing.T) {
	x := &steerer{r: &clientRun{p: plan.Plan{Transport: plan.UDP, Direction: plan.Up}}}
	x.answer(5e6, probe.Arrivals{Distinct: 10, Passed: 12}, true)
	x.answer(9e6, probe.Arrivals{Distinct: 8, Passed: 8}, true)
	got, at, delay := x.hear(time.Now())
	if got.Passed != 12 || at.IsZero() || delay != 4*time.Millisecond {
		t.Errorf("%+v, %v, %v", got, at, delay)
	}
}
