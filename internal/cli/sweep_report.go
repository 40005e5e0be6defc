package cli

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/bdp"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// fillSweep makes the report of a sweep: the curve, both knees of each part, what to take, and the
// lines that allow it.
func fillSweep(rep *result.Report, m sweepMethod, history []method.Done) {
	sw := &result.Sweep{Parts: []result.SweepPart{}}
	if rtt := method.BaseRTT(history); rtt > 0 {
		s := rtt.Seconds()
		sw.RTT = &s
	}
	var said []string
	window := int64(-1) // that streams had in the end; -1 = the system's own
	streams := int64(1)
	for _, s := range m.parts(history) {
		a := s.Answer(history)
		if !a.Known {
			continue
		}
		series := s.Series
		if series == "" {
			series = string(s.Axis)
		}
		rep.Curve = append(rep.Curve, curveOf(&s, series, a.Points)...)
		k := a.Knee
		sw.Parts = append(sw.Parts, result.SweepPart{
			Series: series, Axis: string(s.Axis), Direction: string(s.Direction), Knee: k.Knee, Marginal: k.Marginal,
			Best: k.Best, Cheapest: k.Cheapest, Recommended: float64(a.Recommended), Reached: k.Reached, HostKnee: k.Rejected, D: k.D,
		})
		carries := a.Carries
		sw.Carries = &carries
		streams = int64(max(s.Base.Streams, 1))
		switch s.Axis {
		case method.Streams:
			sw.Streams, streams = int(a.Recommended), a.Recommended
			if s.Base.Window > 0 {
				window = s.Base.Window
			}
		case method.Window:
			sw.Window, window = a.Recommended, a.Recommended
			if a.Recommended == 0 {
				window = -1
			}
		case method.Length:
			sw.Length = a.Recommended
		}
		said = append(said, partText(&s, &a))
		if !k.Reached && s.Axis != method.Length && len(a.Points) > 1 && !s.Fixed {
			rep.Notices = append(rep.Notices, result.Notice{
				Code: "knee-not-reached", End: result.Client, Level: result.Warn,
				Text: fmt.Sprintf("the rate was still growing at %s: the knee lies beyond", settingText(s.Axis, lastSetting(a.Points))),
			})
		}
	}
	if len(sw.Parts) == 0 {
		return
	}
	rep.Sweep = sw
	sw.Needs = neededWindow(sw, streams, window)
	if sw.Needs > 0 && needsLines(sw) {
		sw.Linux = bdp.ForLinux(units.ByteSize(sw.Needs)).Lines
		sw.Windows = bdp.ForWindows(units.ByteSize(sw.Needs)).Netsh[1:]
	}
	rep.Summary = strings.Join(said, " ")
}

// neededWindow is what one stream must be allowed: the window that it had, else twice what is on the
// way at what it carries.
func neededWindow(sw *result.Sweep, streams, window int64) int64 {
	if window > 0 {
		return window
	}
	if sw.RTT == nil || sw.Carries == nil || streams < 1 {
		return 0
	}
	return int64(2 * *sw.Carries / 8 * *sw.RTT / float64(streams))
}

// defaultAsk is what a program may ask for on Linux unless somebody raised it (net.core.rmem_max).
const defaultAsk = 212992

// needsLines reports that systems as they come do not allow the window that is needed: one that is
// asked for is bounded differently from the system's own.
func needsLines(sw *result.Sweep) bool {
	if sw.Window > 0 {
		return sw.Window > defaultAsk
	}
	return !bdp.ForLinux(units.ByteSize(sw.Needs)).ByDefault
}

func lastSetting(ps []method.KneePoint) (x float64) {
	for _, p := range ps {
		x = max(x, p.X)
	}
	return x
}

// curveOf are the points for the document.
func curveOf(s *method.Sweep, series string, ps []method.KneePoint) (out []result.Point) {
	label := map[method.Axis]string{method.Streams: "streams", method.Window: "window (bytes)", method.Length: "bytes per write"}[s.Axis]
	known := func(v float64) *float64 {
		if v < 0 {
			return nil
		}
		return &v
	}
	for i := range ps {
		p := ps[i]
		q := result.Point{
			X: p.X, Y: p.Y, Label: label, Series: series, Direction: string(s.Direction), Setting: settingText(s.Axis, p.X), Auto: p.X == 0,
			Values: p.Values, Retransmits: known(p.Retransmits), HotCore: known(p.HotCore), CPU: known(p.CPU),
		}
		if a, ok := method.Rounds(p.Values); ok {
			q.Low, q.High = &a.Min, &a.Max
		}
		if p.Peak > 0 {
			q.Peak = &p.Peak
		}
		if i > 0 {
			if g, ok := method.Gain(ps[i-1], p); ok {
				q.Gain = &g
			}
		}
		if s.Axis == method.Window {
			if p.Predicted > 0 {
				q.Predicted = &p.Predicted
			}
			if p.Granted > 0 {
				q.Granted = &p.Granted
			}
			if p.BufferDelay > -1 && sawDelay(p) {
				q.BufferDelay = &p.BufferDelay
			}
		}
		out = append(out, q)
	}
	return out
}

// sawDelay: −1 stands for not known, and no round trip is shorter than none.
func sawDelay(p method.KneePoint) bool { return p.BufferDelay != -1 }

// settingText is a setting for people.
func settingText(axis method.Axis, x float64) string {
	switch {
	case axis == method.Streams:
		return counted(int(x), "stream")
	case axis == method.Window && x == 0:
		return "the system's own"
	}
	return units.ByteSize(x).IEC()
}

// partText is the sentence of one curve.
func partText(s *method.Sweep, a *method.SweepAnswer) string {
	rate := func(v float64) string { return units.BitRate(v + 0.5).String() }
	way := map[result.Direction]string{result.Up: "up", result.Down: "down"}[s.Direction]
	var text string
	switch s.Axis {
	case method.Streams:
		text = fmt.Sprintf("%s carry %s %s", counted(int(a.Recommended), "stream"), rate(a.Carries), way)
		if a.Recommended == 1 {
			text = fmt.Sprintf("1 stream carries %s %s", rate(a.Carries), way)
		}
		if s.Base.Window > 0 {
			text += fmt.Sprintf(" with a window of %s", units.ByteSize(s.Base.Window).IEC())
		}
		switch best := bestOf(a.Points); {
		case len(a.Points) == 1:
			text += ", the only number that was measured"
		case int64(best.X) == a.Recommended && a.Knee.Reached:
			text += ", more streams gain nothing"
		case int64(best.X) == a.Recommended:
			text += ", and it was still growing"
		default:
			text += fmt.Sprintf("; the most, %s, came with %.0f", rate(best.Y), best.X)
		}
	case method.Window:
		with := ""
		if s.Base.Streams > 1 {
			with = fmt.Sprintf(" of each of %d streams", s.Base.Streams)
		}
		text = fmt.Sprintf("a window of %s%s carries %s %s", units.ByteSize(a.Recommended).IEC(), with, rate(a.Carries), way)
		if a.Recommended == 0 {
			text = fmt.Sprintf("the system's own window%s carries %s %s, as much as any that was set", with, rate(a.Carries), way)
		} else if own := a.Points[len(a.Points)-1]; own.X == 0 {
			text += fmt.Sprintf(", the system's own %s", rate(own.Y))
		}
	default:
		text = fmt.Sprintf("writes of %s carry %s %s", units.ByteSize(a.Recommended).IEC(), rate(a.Carries), way)
		if best := bestOf(a.Points); int64(best.X) != a.Recommended {
			text += fmt.Sprintf("; the most, %s, came with %s", rate(best.Y), units.ByteSize(best.X).IEC())
		}
	}
	if a.Knee.Rejected != "" {
		text += fmt.Sprintf("; at the knee (%s) %s", settingText(s.Axis, a.Knee.At), a.Knee.Rejected)
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

func bestOf(ps []method.KneePoint) (best method.KneePoint) {
	for _, p := range ps {
		if p.Y > best.Y && p.X > 0 {
			best = p
		}
	}
	return best
}
