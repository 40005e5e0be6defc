package method

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Framework is the TCP throughput test of RFC 6349 (M-6349): path MTU, baseline round trip,
// bottleneck bandwidth, then single and multiple connections up, down and both ways.
type Framework struct {
	BB      [2]float64    // bottleneck bandwidth on layer 1, up and down, bit/s; 0 = it is measured
	Window  int64         // bytes of each connection; 0 = auto-tuning
	Streams int           // of the tests with several connections; 0 = as many as the window needs, else 4
	Time    time.Duration // of each test
	Omit    time.Duration // of each, for slow start, not counted
	Quick   bool          // towards an iperf3 the path MTU is TCP's
	Tags    int           // VLAN tags of each frame on the bottleneck
}

// frameworkTests are the transfers, in order.
var frameworkTests = []struct {
	name  string
	multi bool
	dir   plan.Direction
}{
	{"single-up", false, plan.Up},
	{"single-down", false, plan.Down},
	{"single-both", false, plan.Both},
	{"multi-up", true, plan.Up},
	{"multi-down", true, plan.Down},
	{"multi-both", true, plan.Both},
}

// upAndDown are the directions in the order of Framework.BB.
var upAndDown = []result.Direction{result.Up, result.Down}

// Next implements Method.
func (f Framework) Next(history []Done) (Step, bool) {
	if n := len(history); n == 0 || isMTUStep(&history[n-1]) {
		plain := n > 0 && history[0].Run != nil && (history[0].Run.Wire == nil || !history[0].Run.Wire.Extension)
		if !(plain && f.Quick) {
			if s, more := (MTURuns{}).Next(history); more {
				return s, true
			}
		}
		if n > 0 && history[0].Run == nil {
			return Step{}, false
		}
		return Step{
			Name: "rtt", Title: "round trip, empty path", Why: "the baseline", Plan: plan.Plan{
				Transport: plan.UDP, Direction: plan.Up, Streams: 1, BlockSize: loadSize, Duration: 3 * time.Second, RateSet: true,
				Bitrate: int64(loadSize * 8 * time.Second / loadSpacing),
				Probe:   &plan.Probe{Idle: true, Spacing: loadSpacing, Size: loadSize, Profile: "idle"},
			},
		}, true
	}
	if last := &history[len(history)-1]; last.Step.Name != "rtt" && broke(last) {
		return Step{}, false // what keeps one transfer from its end keeps the next
	}
	for i, d := range upAndDown {
		if f.BB[i] > 0 {
			continue
		}
		rate := findDone(history, "rate-"+string(d))
		if rate == nil {
			return Step{
				Name: "rate-" + string(d), Title: "4 connections " + string(d), Why: "about how fast is it?",
				Plan: plan.Plan{Transport: plan.TCP, Direction: plan.Direction(d), Streams: 4, Duration: 2 * time.Second, Omit: time.Second},
			}, true
		}
		if g, ok := Goodput(rate.Run, d); ok && findDone(history, "bb-"+string(d)) == nil {
			return Step{
				Name: "bb-" + string(d), Title: "datagrams above that, " + string(d), Why: "the bottleneck's bandwidth, without TCP",
				Plan: plan.Plan{Transport: plan.UDP, Direction: plan.Direction(d), Streams: 1, Duration: 2 * time.Second, RateSet: true, Bitrate: int64(1.2 * g)},
			}, true
		}
	}
	for _, t := range frameworkTests {
		if findDone(history, t.name) != nil {
			continue
		}
		p := plan.Plan{Transport: plan.TCP, Direction: t.dir, Streams: 1, Duration: f.Time, Omit: f.Omit, Window: f.Window}
		if t.multi {
			p.Streams = f.streams(history)
		}
		title := fmt.Sprintf("%d connections %s", p.Streams, t.dir)
		if p.Streams == 1 {
			title = "1 connection " + string(t.dir)
		}
		return Step{Name: t.name, Title: strings.Replace(title, " both", " both ways", 1), Why: "transfer time, efficiency, buffer delay", Plan: p}, true
	}
	return Step{}, false
}

// Steps are those that are always made, for a look ahead.
func (f Framework) Steps() (out []Step) {
	var history []Done
	for range 20 {
		s, more := f.Next(history)
		if !more {
			return out
		}
		out = append(out, s)
		run := &result.Run{Wire: &result.Wire{Extension: true}}
		for _, d := range upAndDown {
			g := 1e9
			run.Sums = append(run.Sums, result.Sum{Direction: d, Goodput: &g})
		}
		history = append(history, Done{Step: s, Run: run})
	}
	return out
}

func isMTUStep(d *Done) bool {
	return slices.Contains([]string{mtuSYN, mtuProbe, mtuSize, mtuTold}, d.Step.Name)
}

func findDone(history []Done, name string) *Done {
	for i := range history {
		if history[i].Step.Name == name {
			return &history[i]
		}
	}
	return nil
}

// streams is how many connections fill the path together.
func (f Framework) streams(history []Done) int {
	if f.Streams > 0 {
		return f.Streams
	}
	a := f.base(history)
	if f.Window > 0 && a.RTT != nil {
		n := int64(1)
		for _, b := range a.BB {
			if b != nil {
				n = max(n, ConnectionsNeeded(MinWindow(*a.RTT, b.BPS), f.Window))
			}
		}
		return int(min(max(n, 2), plan.MaxStreams))
	}
	return 4
}

// base reads what comes before the transfers.
func (f Framework) base(history []Done) *result.TCPFramework {
	out := &result.TCPFramework{Window: f.Window, Tests: []result.TCPTest{}, FullLength: f.Time >= 30*time.Second, Tolerance: goodRatio, MTU: [2]int{1500, 1500}}
	n := 0
	for n < len(history) && isMTUStep(&history[n]) {
		n++
	}
	if n > 0 && history[0].Run != nil {
		for _, s := range history[0].Run.Streams {
			if s.TCP != nil && s.TCP.Last.PMTU > 0 {
				out.MTU = [2]int{int(s.TCP.Last.PMTU), int(s.TCP.Last.PMTU)}
			}
		}
	}
	for _, p := range (MTURuns{}).Answer(history[:n]).Paths {
		if p.MTU != nil && p.Direction == result.Up {
			out.MTU[0] = *p.MTU
		} else if p.MTU != nil {
			out.MTU[1] = *p.MTU
		}
	}
	if d := findDone(history, "rtt"); d != nil && d.Run != nil {
		if p := probesOf(d.Run, "udp-echo"); p != nil && p.RoundTrip != nil {
			least := p.RoundTrip.Min
			out.RTT, out.Probes = &least, p.RoundTrip.N
		} else {
			for i := range d.Run.Probes {
				if m := d.Run.Probes[i].TCPMinRTT; m != nil && *m > 0 {
					out.RTT, out.ByTCP = m, true
				}
			}
		}
	}
	for i, d := range upAndDown {
		if f.BB[i] > 0 {
			out.BB[i] = &result.Rated{BPS: f.BB[i], Source: "given"}
		} else if bps := measuredBB(history, d, out.MTU[i], f.Tags); bps > 0 {
			out.BB[i] = &result.Rated{BPS: bps, Source: "measured"}
		}
	}
	return out
}

// measuredBB is the bottleneck's bandwidth on layer 1: of datagrams that arrived while more were
// sent than pass, or of TCP where that was more (the receiver dropped datagrams). 0 = not known.
func measuredBB(history []Done, d result.Direction, mtu, tags int) (bps float64) {
	if b := findDone(history, "bb-"+string(d)); b != nil && b.Run != nil {
		for _, l := range b.Run.Layers {
			if l.Direction == d { // of frames without tags
				bps = l.L1 * float64(mtu+frameOverhead+4*tags) / float64(mtu+frameOverhead)
			}
		}
	}
	if r := findDone(history, "rate-"+string(d)); r != nil && r.Run != nil {
		if g, ok := Goodput(r.Run, d); ok {
			share := wireShare(r.Run, d) * float64(mtu+frameOverhead+4*tags) / float64(mtu)
			bps = max(bps, g*share)
		}
	}
	return bps
}

// Answer reads a history.
func (f Framework) Answer(history []Done) *result.TCPFramework {
	out := f.base(history)
	for _, t := range frameworkTests {
		d := findDone(history, t.name)
		if d == nil || d.Run == nil {
			continue
		}
		for i := range d.Run.Sums {
			out.Tests = append(out.Tests, f.test(out, d.Run, t.name, d.Run.Sums[i].Direction, t.dir == plan.Both))
		}
	}
	return out
}

// test makes the figures of one direction of a transfer.
func (f Framework) test(a *result.TCPFramework, run *result.Run, name string, d result.Direction, both bool) result.TCPTest {
	t := result.TCPTest{Name: name, Direction: d, Both: both}
	if both {
		t.Name += "-" + string(d)
	}
	i := 0
	if d == result.Down {
		i = 1
	}
	sent, again := int64(0), int64(0)
	known := true
	for k := range run.Streams {
		s := &run.Streams[k]
		if s.Direction != d {
			continue
		}
		t.Connections++
		mine, sender := s.TCP, s.TCP
		if d.Sender() != run.End {
			sender = s.RemoteTCP
		}
		if mine != nil {
			t.Headers = int(ipTCP(s, mine.Last.Timestamps))
		}
		if sender != nil && sender.MaxSndWnd > 0 && (t.Window == 0 || sender.MaxSndWnd < t.Window) {
			t.Window = sender.MaxSndWnd
		}
		switch {
		case sender != nil && sender.Last.BytesSent != nil && sender.Last.RetransBytes != nil:
			sent += *sender.Last.BytesSent
			again += *sender.Last.RetransBytes
		case s.Sender != nil && s.Sender.Retransmits != nil && mine != nil && mine.Last.MSS > 0:
			r := *s.Sender.Retransmits * mine.Last.MSS
			sent, again = sent+s.Sender.Bytes+r, again+r
		default:
			known = false
		}
	}
	if known && sent > 0 {
		e := Efficiency(sent, again)
		t.Efficiency = &e
	}
	if f.Window > 0 && t.Window == 0 {
		t.Window = f.Window
	}
	var bytes int64
	if s := run.Sum(d); s != nil {
		if t.Goodput = s.Goodput; run.Err != nil && s.Goodput != nil && *s.Goodput == 0 {
			t.Goodput = nil // cut off in its warm-up
		}
		if s.Receiver != nil {
			bytes, t.Time = s.Receiver.Bytes, s.Receiver.Seconds()
		}
	}
	_, trips, _ := intervals(run, d)
	if len(trips) > 0 && a.RTT != nil {
		mean := 0.0
		for _, v := range trips {
			mean += v / float64(len(trips))
		}
		b := BufferDelay(mean, *a.RTT)
		t.RTT, t.BufferDelay = &mean, &b
	}
	t.Held = heldBack(run)
	f.refer(a, &t, i, bytes)
	most := goodRatio
	if both {
		most = bothRatio
	}
	t.Verdict, _, _ = judgeFramework(&t, !strings.HasPrefix(name, "multi"), most)
	return t
}

// heldShare is from which share of a bound on it was reached.
const heldShare = 0.9

// heldBack reports that all directions of a run together reached a bound that somebody set.
func heldBack(run *result.Run) bool {
	bound := run.Test.MaxRate
	if l := run.Test.ServerLimit; l != nil && l.BitrateBPS > 0 && (bound == 0 || l.BitrateBPS < bound) {
		bound = l.BitrateBPS
	}
	sum := 0.0
	for i := range run.Sums {
		if g := run.Sums[i].Goodput; g != nil {
			sum += *g
		}
	}
	return bound > 0 && sum >= heldShare*float64(bound)
}

// bothRatio is goodRatio with the other direction full, too: its acknowledgements share the way.
const bothRatio = 1.10

// refer compares a test with what the path allows, and allows with its window.
func (f Framework) refer(a *result.TCPFramework, t *result.TCPTest, i int, bytes int64) {
	if a.BB[i] == nil || t.Headers == 0 {
		return
	}
	ideal := IdealThroughput(a.BB[i].BPS, a.MTU[i], t.Headers, f.Tags)
	t.Ideal = &ideal
	reference := ideal
	if a.RTT != nil {
		w := MinWindow(*a.RTT, a.BB[i].BPS)
		t.MinWindow = &w
		if t.Window > 0 {
			t.Needed = ConnectionsNeeded(w, t.Window)
			reference = min(ideal, WindowLimit(t.Window, *a.RTT)*float64(t.Connections))
		}
	}
	t.Reference = &reference
	if bytes > 0 && t.Time > 0 && ideal > 0 {
		best := IdealTime(bytes, ideal)
		ratio := TransferRatio(t.Time, best)
		t.IdealTime, t.Ratio = &best, &ratio
		if t.Goodput != nil && *t.Goodput > 0 {
			w := reference / *t.Goodput
			t.WindowRatio = &w
		}
	}
}

// FrameworkItems judges the tests, one item each.
func FrameworkItems(a *result.TCPFramework) (out []result.Item) {
	for i := range a.Tests {
		t := &a.Tests[i]
		most := goodRatio
		if t.Both {
			most = bothRatio
		}
		text, pass, known := judgeFramework(t, !strings.HasPrefix(t.Name, "multi"), most)
		item := result.Item{ID: t.Name, Result: result.Fail, Reasons: []string{text}}
		switch {
		case !known:
			item.Result = result.Inconclusive
		case pass:
			item.Result = result.Pass
		}
		if t.Ratio != nil {
			item.Reasons[0] = fmt.Sprintf("transfer time ratio %.3f (at most %.2f): %s", *t.Ratio, most, text)
		}
		out = append(out, item)
	}
	return out
}

var _ Method = Framework{}
