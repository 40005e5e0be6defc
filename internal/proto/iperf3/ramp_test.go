package iperf3

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// scripted lets one more stream begin after each interval, and ends the test after the last.
type scripted struct {
	mu   sync.Mutex
	seen []result.RampInterval
	open int
	most int
	last int
}

func (s *scripted) Next(iv *result.RampInterval) (open int, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, *iv)
	s.open = min(s.open+1, s.most)
	return s.open, len(s.seen) >= s.last
}

func rampPlan(d plan.Direction) plan.Plan {
	return plan.Plan{
		Streams: 3, Direction: d, Duration: time.Minute, Interval: 100 * time.Millisecond, MaxRate: 200e6, Ramp: &plan.Ramp{},
		Probe: &plan.Probe{Spacing: 10 * time.Millisecond},
	}
}

// The streams of each direction begin one after the other, round trips of new connections are there,
// and the test ends long before its time.
func TestRampBetweenFullbores(t *testing.T) {
	for _, d := range []plan.Direction{plan.Up, plan.Down, plan.Both} {
		t.Run(string(d), func(t *testing.T) {
			ts := startServer(t, &Server{})
			c := ts.client(rampPlan(d))
			s := &scripted{open: 1, most: 3, last: 8}
			c.Ramping = func(ra plan.Ramp, streams int) Ramping {
				if ra.First != 1 || ra.Add != 1 || streams != 3 {
					t.Errorf("%+v of %d", ra, streams)
				}
				return s
			}
			run, err := runClient(t, c)
			if err != nil {
				t.Fatal(err)
			}
			if !run.Test.Ramped || run.Err != nil || run.Elapsed > 50 {
				t.Errorf("ramped %v, %v after %v s", run.Test.Ramped, run.Err, run.Elapsed)
			}
			i := slices.IndexFunc(run.Probes, func(p result.Probes) bool { return p.Kind == "rpm" })
			if i < 0 {
				t.Fatalf("probes %v", kindsOf(run))
			}
			p := run.Probes[i]
			if len(p.Ramp) < 8 || p.Answered < 1 || p.Sent < p.Answered || p.Connect == nil || p.Connect.Min <= 0 {
				t.Fatalf("%+v", p)
			}
			if p.Ramp[0].Open != 1 || p.Ramp[len(p.Ramp)-1].Open != 3 {
				t.Errorf("%+v", p.Ramp)
			}
			asked, moved := 0, 0
			for _, iv := range p.Ramp {
				asked += len(iv.Requests)
				if iv.BPS > 0 { // in a tenth of a second a busy machine may move nothing
					moved++
				}
			}
			if asked == 0 || moved < len(p.Ramp)/2 {
				t.Errorf("%d requests, rates in %d intervals of %d: %+v", asked, moved, len(p.Ramp), p.Ramp)
			}
			for _, want := range []result.Direction{result.Up, result.Down} {
				if d != plan.Both && string(d) != string(want) {
					continue
				}
				checkOrder(t, run, want)
			}
			if other := ts.run(0); other.Err != nil {
				t.Errorf("the server's run: %+v", other.Err)
			}
			serves(t, ts)
		})
	}
}

// checkOrder holds the first row in which each stream moved bytes against the order of the streams:
// those of a direction began in their order, and not all at once.
func checkOrder(t *testing.T, run *result.Run, d result.Direction) {
	t.Helper()
	var began []int
	for _, s := range run.Streams {
		if s.Direction != d {
			continue
		}
		first := -1
		for _, row := range run.Rows {
			if row.End != d.Sender() || first >= 0 {
				continue
			}
			for _, x := range row.Streams {
				if x.ID == s.ID && x.Sender && x.Bytes > 0 {
					first = row.Index
				}
			}
		}
		began = append(began, first)
	}
	if len(began) != 3 || !slices.IsSorted(began) || began[0] < 0 || began[2] == began[0] {
		t.Errorf("%s: the streams began in the rows %v", d, began)
	}
}

// A server that does not know how sends on all streams at once, which is said; ours here still begin
// one after the other.
func TestRampTowardsAPlainServer(t *testing.T) {
	for _, d := range []plan.Direction{plan.Up, plan.Down} {
		t.Run(string(d), func(t *testing.T) {
			ts := startServer(t, &Server{Policy: plan.Serve{Extension: "off"}})
			p := rampPlan(d)
			p.MaxRate = 0
			p.Bitrate = 20e6
			c := ts.client(p)
			c.Ramping = func(plan.Ramp, int) Ramping { return &scripted{open: 1, most: 3, last: 8} }
			run, err := runClient(t, c)
			if err != nil {
				t.Fatal(err)
			}
			said := slices.ContainsFunc(run.Notices, func(n result.Notice) bool { return n.Code == "ramp-at-once" })
			if said != (d == plan.Down) {
				t.Errorf("notices %+v", run.Notices)
			}
			i := slices.IndexFunc(run.Probes, func(p result.Probes) bool { return p.Kind == "rpm" })
			if i < 0 || len(run.Probes[i].Ramp) < 8 || run.Probes[i].Sent != 0 || run.Probes[i].Connect != nil {
				t.Fatalf("%+v", run.Probes)
			}
			if d == plan.Up {
				checkOrder(t, run, result.Up)
			}
		})
	}
}
