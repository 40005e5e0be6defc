package diagnose_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/conclude/sample"
	"github.com/fullbore-net/fullbore/internal/diagnose"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// spread gives the streams of a made-up stage rates, least round trips (µs) and ports of their own.
func spread(d method.Done, first int, rates []float64, trips []int64) method.Done {
	for i := range d.Run.Streams {
		s := &d.Run.Streams[i]
		s.Local.Port = first + i
		for _, t := range []*result.Total{s.Sender, s.Receiver} {
			t.Bytes = int64(rates[i%len(rates)] / 8 * t.Seconds())
		}
		for _, t := range []*result.TCPSummary{s.TCP, s.RemoteTCP} {
			if t != nil && trips != nil {
				v := trips[i%len(trips)]
				t.Last.MinRTT = &v
			}
		}
	}
	return d
}

func several(name string, n int, sum float64) method.Done {
	return stage(name, with(func(t *sample.Test) { t.Streams, t.Rates, t.RTT, t.IdleRTT = n, sample.Flat(sum, 10), 10500, 10100 }))
}

// twoWays is a path with ways of 50 and 10 Mbit/s.
func twoWays() []method.Done {
	return []method.Done{
		idleStage(0.01), spread(several("up-1", 1, 48e6), 40000, []float64{48e6}, nil),
		spread(several("up-4", 4, 57e6), 40000, []float64{24e6, 23e6, 9.6e6, 1e6}, nil),
		spread(several("up-ports", 16, 57e6), 40000, []float64{6e6, 1.2e6}, nil),
	}
}

func TestWays(t *testing.T) {
	history := twoWays()
	if v := find(diagnose.Judge(history, nil), diagnose.ECMP); v != nil {
		t.Errorf("without a stream alone it says %s", v.Summary)
	}
	slow, fast := spread(several("up-port-40001", 1, 9.6e6), 40001, []float64{9.6e6}, nil), spread(several("up-port-40000", 1, 48e6), 40000, []float64{48e6}, nil)
	vs := diagnose.Judge(append(slices.Clone(history), slow, fast), nil)
	v := find(vs, diagnose.ECMP)
	if v == nil || vs[0].Code != diagnose.ECMP || v.Certainty != diagnose.Proven || v.Note || value(v, "slow") > 1e7 || value(v, "fast") < 4e7 || value(v, "ports_slow") != 8 || value(v, "ports") != 16 {
		t.Fatalf("%+v", vs)
	}
	if find(vs, diagnose.PerFlow) != nil {
		t.Error("and it calls it a limit per flow")
	}
	// The same rate alone: they only competed.
	same := spread(several("up-port-40001", 1, 48e6), 40001, []float64{47e6}, nil)
	if v := find(diagnose.Judge(append(slices.Clone(history), same, fast), nil), diagnose.ECMP); v != nil {
		t.Errorf("ways that are alike: %s", v.Summary)
	}
}

// A way that is longer is seen by the round trip, and is no cause where the rate is the same.
func TestWaysLonger(t *testing.T) {
	history := []method.Done{
		idleStage(0.01), spread(several("up-1", 1, 48e6), 40000, []float64{48e6}, []int64{10100}),
		spread(several("up-16", 16, 96e6), 40000, []float64{6e6}, []int64{10100, 40200, 10150, 40100}),
		spread(several("up-port-40001", 1, 48e6), 40001, []float64{48e6}, []int64{40100}),
		spread(several("up-port-40000", 1, 48e6), 40000, []float64{48e6}, []int64{10100}),
	}
	v := find(diagnose.Judge(history, nil), diagnose.ECMP)
	if v == nil || !v.Note || value(v, "rtt_slow") < 0.04 || value(v, "rtt_fast") > 0.011 || value(v, "ports_slow") != 8 {
		t.Fatalf("%+v", v)
	}
}

// The scan comes where streams were unequal, not on a clean path; the single streams come from a
// port of each kind, and in a deep diagnosis from all.
func TestPlannerScansPorts(t *testing.T) {
	next := func(p diagnose.Planner, history []method.Done) []string {
		var out []string
		history = slices.Clone(history)
		for range 60 {
			s, more := p.Next(history)
			if !more {
				break
			}
			out = append(out, s.Name)
			d := method.Done{Step: s, Err: &result.Error{Code: "failed"}}
			if port, is := strings.CutPrefix(s.Name, "up-port-"); is && s.Plan.ClientPort == 0 {
				t.Errorf("%s is not from port %s", s.Name, port)
			}
			history = append(history, d)
		}
		return out
	}
	p := diagnose.Planner{Budget: diagnose.Default(), Directions: []result.Direction{result.Up}}
	ports := func(names []string) (n int) {
		for _, name := range names {
			if strings.HasPrefix(name, "up-port-") {
				n++
			}
		}
		return n
	}
	history := twoWays()
	if names := next(p, history[:3]); !slices.Contains(names, "up-ports") {
		t.Errorf("unequal streams, and no scan: %v", names)
	}
	if names := next(p, history); ports(names) != 2 {
		t.Errorf("%v", names)
	}
	deep := p
	deep.Budget = diagnose.Deep()
	if names := next(deep, history); ports(names) != 16 {
		t.Errorf("deep: %v", names)
	}
	clean := []method.Done{history[0], history[1], spread(several("up-4", 4, 48e6), 40000, []float64{13e6, 10e6, 12e6, 13e6}, nil)}
	if names := next(p, clean); slices.Contains(names, "up-ports") || ports(names) > 0 {
		t.Errorf("a clean path: %v", names)
	}
	quick := p
	quick.Budget = diagnose.Quick()
	if names := next(quick, history[:3]); slices.Contains(names, "up-ports") {
		t.Errorf("quick: %v", names)
	}
}

// A port that is taken does not end a diagnosis; an address that this host does not have does.
func TestPlannerPortTaken(t *testing.T) {
	p := diagnose.Planner{Budget: diagnose.Default(), Directions: []result.Direction{result.Up}}
	taken := method.Done{Step: method.Step{Name: "up-port-40001", Plan: plan.Plan{ClientPort: 40001}}, Err: &result.Error{Code: "address"}}
	if _, more := p.Next(append(twoWays(), taken)); !more {
		t.Error("it gives up")
	}
}

func TestBundle(t *testing.T) {
	history := []method.Done{
		idleStage(0.01), spread(several("up-1", 1, 29e6), 40000, []float64{29e6}, nil),
		spread(several("up-4", 4, 57.6e6), 40000, []float64{14.4e6}, nil), spread(several("up-16", 16, 57.2e6), 40000, []float64{3.6e6}, nil),
	}
	v := find(diagnose.Judge(history, nil), diagnose.PerFlow)
	if v == nil || value(v, "ways") != 2 || v.Certainty != diagnose.Likely {
		t.Fatalf("%+v", v)
	}
	history[2] = spread(several("up-4", 4, 44e6), 40000, []float64{11e6}, nil)
	history[3] = spread(several("up-16", 16, 44e6), 40000, []float64{2.75e6}, nil)
	if v := find(diagnose.Judge(history, nil), diagnose.PerFlow); v != nil {
		t.Errorf("one and a half ways: %s", v.Summary)
	}
}

// both is a stage of both directions.
func both(name string, streams int, up, down float64) method.Done {
	return stage(name, with(func(t *sample.Test) {
		t.Direction, t.Streams, t.Rates, t.Back, t.RTT, t.IdleRTT = "both", streams, sample.Flat(up, 10), sample.Flat(down, 10), 10500, 10100
	}))
}

func TestBothWays(t *testing.T) {
	down := stage("down-1", with(func(t *sample.Test) {
		t.Direction, t.Rates, t.RTT, t.IdleRTT = "down", sample.Flat(19e6, 10), 10500, 10100
	}))
	begin := []method.Done{idleStage(0.01), several("up-1", 1, 19e6), down, both("both-4", 4, 10e6, 9e6)}
	for _, c := range []struct {
		name  string
		pairs [][2]float64
		want  string
	}{
		{"a bundle", [][2]float64{{10e6, 9e6}, {19e6, 18.6e6}}, diagnose.LAGCollision},
		{"one medium", [][2]float64{{10e6, 9e6}, {9e6, 10e6}}, diagnose.SharedMedium},
		{"one look is none", [][2]float64{{10e6, 9e6}}, ""},
		{"neither", [][2]float64{{19e6, 19e6}, {19e6, 18e6}}, ""},
	} {
		history := slices.Clone(begin)
		for i, p := range c.pairs {
			history = append(history, both([]string{"both-ports-1", "both-ports-2"}[i], 1, p[0], p[1]))
		}
		vs := diagnose.Judge(history, nil)
		for _, code := range []string{diagnose.LAGCollision, diagnose.SharedMedium} {
			if v := find(vs, code); (v != nil) != (code == c.want) || v != nil && (!v.Note || v.Certainty != diagnose.Proven) {
				t.Errorf("%s: %s: %+v", c.name, code, v)
			}
		}
	}
}
