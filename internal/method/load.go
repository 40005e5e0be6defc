package method

import (
	"net/netip"
	"time"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

// Load compares the delay of the empty path with that of the full one (M-DELAY, M-RPM): a stream of
// small probes before, beside a load in each direction and both, and after.
type Load struct {
	Idle     time.Duration // before and after
	Time     time.Duration // of each load, at most
	Streams  int           // of each direction, at most
	First    int           // that begin at once; 0 = 1
	Interval time.Duration // of the ramp; 0 = 1 s
	// Directions are those to be loaded: up, down, both; nil = all three.
	Directions []plan.Direction
}

// loadSpacing and loadSize are those of M-DELAY's probe stream.
const (
	loadSpacing = 20 * time.Millisecond
	loadSize    = 64
)

// Steps are all it does.
func (l Load) Steps() []Step {
	dirs := l.Directions
	if dirs == nil {
		dirs = []plan.Direction{plan.Up, plan.Down, plan.Both}
	}
	idle := func(name, title, why string) Step {
		return Step{Name: name, Title: title, Why: why, Plan: plan.Plan{
			Transport: plan.UDP, Direction: plan.Up, Streams: 1, BlockSize: loadSize, Duration: l.Idle, RateSet: true,
			Bitrate: int64(loadSize * 8 * time.Second / loadSpacing),
			Probe:   &plan.Probe{Idle: true, Spacing: loadSpacing, Size: loadSize, Profile: name},
		}}
	}
	steps := []Step{idle("idle", "small packets, empty path", "the delay to compare with")}
	for _, d := range dirs {
		title, why := "full "+string(d), "how long do small packets wait now?"
		if d == plan.Both {
			title = "full both ways"
		}
		steps = append(steps, Step{Name: string(d), Title: title, Why: why, Plan: plan.Plan{
			Transport: plan.TCP, Direction: d, Streams: l.Streams, Duration: l.Time,
			Interval: l.Interval, Ramp: &plan.Ramp{First: min(l.First, l.Streams)},
			Probe: &plan.Probe{Spacing: loadSpacing, Size: loadSize, Profile: "beside"},
		}})
	}
	return append(steps, idle("after", "small packets, empty again", "does it come back?"))
}

// Next implements Method.
func (l Load) Next(history []Done) (Step, bool) {
	steps := l.Steps()
	if n := len(history); n > 0 && history[0].Run == nil {
		return Step{}, false
	}
	if len(history) >= len(steps) {
		return Step{}, false
	}
	s := steps[len(history)]
	if s.Name == "after" {
		s.Pause = time.Second // the queue drains
	}
	return s, true
}

// Answer reads a history.
func (l Load) Answer(history []Done) *result.Load {
	out := &result.Load{Source: "probe", Ways: []result.LoadedWay{}}
	for i := range history {
		d := &history[i]
		if d.Run == nil {
			continue
		}
		switch d.Step.Name {
		case "idle", "after":
			readIdle(out, d)
		default:
			readLoaded(out, d)
		}
	}
	for i := range out.Ways {
		if wait := out.Ways[i].Wait(); wait != nil && (out.Worst == nil || *wait > *out.Worst) {
			out.Worst = wait
		}
	}
	if out.Worst != nil {
		out.Grade = conclude.BloatGrade(*out.Worst)
	}
	return out
}

// readIdle takes the empty path.
func readIdle(out *result.Load, d *Done) {
	p := probesOf(d.Run, "udp-echo")
	if d.Step.Name == "after" {
		if p != nil {
			out.After = p.RoundTrip
		}
		return
	}
	switch {
	case p != nil && p.RoundTrip != nil:
		out.Idle = p.RoundTrip
		least := p.RoundTrip.Min
		out.IdleMin = &least
	default:
		out.Source = "tcp-info"
		for i := range d.Run.Probes {
			if m := d.Run.Probes[i].TCPMinRTT; m != nil && *m > 0 {
				out.IdleMin = m
			}
		}
	}
}

// readLoaded takes a run with a load, each of its directions.
func readLoaded(out *result.Load, d *Done) {
	p := probesOf(d.Run, "udp-echo")
	for i := range d.Run.Sums {
		dir := d.Run.Sums[i].Direction
		w := result.LoadedWay{Load: d.Step.Name, Direction: dir}
		if g, ok := Goodput(d.Run, dir); ok {
			w.Rate = &g
		}
		if p != nil && p.RoundTrip != nil && p.Answered >= leastAnswers {
			w.RoundTrip = p.RoundTrip
			w.Rise = riseOf(out, p, dir, len(d.Run.Sums) == 1)
		} else if out.Source == "tcp-info" && out.IdleMin != nil {
			_, trips, _ := intervals(d.Run, dir)
			w.Rise = above(trips, *out.IdleMin)
		}
		w.RPM = rpmOf(d.Run, dir, p)
		if w.Rise != nil {
			q := max(w.Rise.P99, 0)
			w.Queue, w.Grade = &q, conclude.BloatGrade(*w.Wait())
			if w.Rate != nil {
				b := q * *w.Rate * wireShare(d.Run, dir) / 8
				w.QueueBytes = &b
			}
		}
		out.Ways = append(out.Ways, w)
	}
}

// leastAnswers is how many answers a 95th percentile needs.
const leastAnswers = 50

// riseOf is how much longer small packets took one way than on the empty path. Their variation
// (PDV) tells it above the least of the loaded run; where one direction alone was full, what that
// least lies above the empty path's is the queue that never emptied.
func riseOf(out *result.Load, p *result.Probes, dir result.Direction, alone bool) *result.Quantiles {
	way := p.Up
	if dir == result.Down {
		way = p.Down
	}
	if way == nil || way.PDV == nil {
		return nil
	}
	q := *way.PDV
	if alone && out.IdleMin != nil {
		base := max(p.RoundTrip.Min-*out.IdleMin, 0)
		for _, v := range []*float64{&q.Min, &q.Mean, &q.P50, &q.P95, &q.P99, &q.P999, &q.Max} {
			*v += base
		}
	}
	return &q
}

// above sums up values less a base; nil = there are none.
func above(x []float64, base float64) *result.Quantiles {
	v, ok := stats.Quantiles(x, 0, 0.5, 0.95, 0.99, 0.999, 1)
	if !ok {
		return nil
	}
	mean, _ := stats.Mean(x)
	return &result.Quantiles{
		N: int64(len(x)), Min: v[0] - base, Mean: mean - base, P50: v[1] - base, P95: v[2] - base, P99: v[3] - base, P999: v[4] - base, Max: v[5] - base,
	}
}

// wireShare is bytes of IP packets for each byte of payload.
func wireShare(run *result.Run, dir result.Direction) float64 {
	for i := range run.Streams {
		s := &run.Streams[i]
		if s.Direction != dir {
			continue
		}
		for _, t := range []*result.TCPSummary{s.TCP, s.RemoteTCP} {
			if t != nil && t.Last.MSS > 0 {
				return (float64(t.Last.MSS) + ipTCP(s, t.Last.Timestamps)) / float64(t.Last.MSS)
			}
		}
	}
	return 1
}

// ipTCP is what the headers of IP and TCP take of a stream's packets, bytes.
func ipTCP(s *result.Stream, timestamps bool) float64 {
	n := 40.0
	if a, err := netip.ParseAddr(s.Remote.Host); err == nil && a.Unmap().Is6() {
		n = 60
	}
	if timestamps {
		n += timestampOption
	}
	return n
}

func probesOf(run *result.Run, kind string) *result.Probes {
	for i := range run.Probes {
		if run.Probes[i].Kind == kind {
			return &run.Probes[i]
		}
	}
	return nil
}

var _ Method = Load{}
