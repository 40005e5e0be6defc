package method

import (
	"cmp"
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/internal/bdp"
	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// Points are the settings that were measured, ascending; the system's own window is the last, with
// X = 0.
func (s Sweep) Points(history []Done) (out []KneePoint) {
	s = s.filled()
	var settings []int64
	for i := range history {
		if x, mine := s.setting(&history[i]); mine && !slices.Contains(settings, x) {
			settings = append(settings, x)
		}
	}
	slices.SortFunc(settings, func(a, b int64) int {
		if (a == 0) != (b == 0) {
			return cmp.Compare(b, a)
		}
		return cmp.Compare(a, b)
	})
	rtt := BaseRTT(history)
	for _, x := range settings {
		rates := s.rates(history, x)
		a, ok := Rounds(rates)
		if !ok || a.Median <= 0 {
			continue
		}
		p := KneePoint{X: float64(x), Y: a.Median, Spread: a.Spread(), Values: rates, Retransmits: -1, HotCore: -1, CPU: -1, BufferDelay: -1}
		s.costs(history, x, rtt, &p)
		if s.Axis == Window && x > 0 && rtt > 0 {
			p.Predicted = float64(bdp.WindowRate(units.ByteSize(x), rtt)) * float64(max(s.Base.Streams, 1))
			if most := s.bottleneck(history); most > 0 {
				p.Predicted = min(p.Predicted, most)
			}
		}
		out = append(out, p)
	}
	return out
}

// costs fills in what a setting's rounds took besides their rate.
func (s Sweep) costs(history []Done, x int64, rtt time.Duration, p *KneePoint) {
	var again, hot, cpu, delay []float64
	for i := range history {
		d := &history[i]
		if v, mine := s.setting(d); !mine || v != x || d.Run == nil || d.Err != nil {
			continue
		}
		if r, ok := RetransmitRatio(d.Run, s.Direction); ok {
			again = append(again, r)
		}
		if h, ok := HotCore(d.Run); ok {
			hot = append(hot, h)
		}
		if c, ok := processCores(d.Run); ok {
			cpu = append(cpu, c)
		}
		p.Foreign = p.Foreign || slices.ContainsFunc(d.Run.Notices, func(n result.Notice) bool { return n.Code == conclude.CompetingLoad })
		if sum := d.Run.Sum(s.Direction); sum != nil && sum.Peak != nil {
			p.Peak = max(p.Peak, *sum.Peak)
		}
		if m, ok := meanRTT(d.Run, s.Direction); ok && rtt > 0 {
			delay = append(delay, m/rtt.Seconds()-1)
		}
		for k := range d.Run.Streams {
			if b := d.Run.Streams[k].Buffers; b != nil {
				p.Granted = max(p.Granted, b.SndUsable, b.RcvUsable)
			}
		}
	}
	for _, f := range []struct {
		to   *float64
		from []float64
	}{{&p.Retransmits, again}, {&p.HotCore, hot}, {&p.CPU, cpu}, {&p.BufferDelay, delay}} {
		if m, ok := stats.Median(f.from); ok {
			*f.to = m
		}
	}
}

// HotCore is how busy the busiest core of either end was, 0..1, mean over the counted intervals.
func HotCore(run *result.Run) (hot float64, known bool) {
	for _, e := range []result.End{result.Client, result.Server} {
		sum, span := 0.0, 0.0
		for i := range run.Rows {
			r := &run.Rows[i]
			if r.End != e || r.Omitted || r.Host == nil || len(r.Host.Cores) == 0 {
				continue
			}
			busiest := 0.0
			for _, c := range r.Host.Cores {
				busiest = max(busiest, 1-c.Idle-c.IOWait)
			}
			sum, span = sum+busiest*(r.Stop-r.Start), span+r.Stop-r.Start
		}
		if span > 0 {
			hot, known = max(hot, sum/span), true
		}
	}
	return hot, known
}

// processCores is the processor time that the programs of both ends took, in cores.
func processCores(run *result.Run) (cores float64, known bool) {
	for _, e := range []result.End{result.Client, result.Server} {
		if c := run.CPU.Of(e); c != nil && c.Total > 0 {
			cores, known = cores+c.Total/100, true
		}
	}
	return cores, known
}
