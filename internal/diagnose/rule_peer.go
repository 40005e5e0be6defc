package diagnose

import (
	"fmt"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// oneThread is the share of one core, of a peer's program, that is one thread's all.
var oneThread = [2]float64{90, 108}

// oldPeer: the program at the other end is no fullbore and serves all streams with one
// thread, as iperf3 before 3.16 does, and that thread was full; or it says its release.
func oldPeer(c *Case) []result.Verdict {
	run := c.first()
	if run == nil || c.extended() || run.Wire == nil {
		return nil
	}
	release := ""
	if run.End == result.Client && run.Hosts.Server != nil && run.Hosts.Server.Tool != nil {
		release = run.Hosts.Server.Tool.Version
	} else if run.End == result.Client {
		release = strings.TrimPrefix(run.Wire.PeerVersion, "iperf ")
	}
	var major, minor int
	if n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor); n == 2 && major == 3 && minor < 16 {
		v := draft(OldPeer, Possible, nil)
		v.Note, v.Host = true, result.Server
		say(&v, "%s runs iperf3 %s, which serves all streams of a test with one thread", c.host(result.Server), release)
		return []result.Verdict{c.oldText(v, nil)}
	}
	for _, l := range c.legs() {
		one, m := l.one(), l.many()
		if one == nil || m == nil || !one.usable() || !m.usable() || m.rate >= (1+moved)*one.rate || m.run == nil {
			continue
		}
		cpu := m.run.CPU.Of(result.Server)
		if cpu == nil || cpu.Total < oneThread[0] || cpu.Total > oneThread[1] || m.streams < 2 {
			continue
		}
		v := draft(OldPeer, Likely, nil, one, m)
		v.Note, v.Host = true, result.Server
		put(&v, "cpu", cpu.Total/100, "ratio")
		say(&v, "%s; the program on %s used %.0f %% of one core for all of them, and %s", streamsText(m), c.host(result.Server), cpu.Total, "no more than for one")
		return []result.Verdict{c.oldText(v, m)}
	}
	return nil
}

func (c *Case) oldText(v result.Verdict, m *flow) result.Verdict {
	v.Summary = fmt.Sprintf("The program on %s serves all streams with one thread: several streams share one core of it.", c.host(result.Server))
	if m != nil {
		v.Summary = fmt.Sprintf("The program on %s serves all streams with one thread, and that is full: the figure is the tool's, not the path's.", c.host(result.Server))
	}
	advise(&v, fmt.Sprintf("on %s: fullbore serve, or iperf3 3.16 and later", c.host(result.Server)))
	return v
}

// selfStage is the stage that measures this machine alone, over loopback (M-SELF).
const selfStage = "self"

// selfTimes is how many times the measured rate the tool must reach by itself.
const selfTimes = 1.3

// SelfWorth is from which rate on it is worth to ask what this machine reaches by itself,
// bit/s: below it every machine that runs this program does.
const SelfWorth = 2e9

// SelfStep is the stage that asks what this machine carries by itself, over loopback, with as
// many streams as were fastest; false where that tells nothing: far below what any machine does,
// over loopback, or when the diagnosis could not go on. Whoever drives it gives it a server of
// this machine in place of HOST.
func SelfStep(history []method.Done, facts *result.Facts, each time.Duration) (method.Step, bool) {
	c := NewCase(history, facts)
	var best *flow
	for _, l := range c.legs() {
		if b := l.best(); b != nil && (best == nil || b.rate > best.rate) {
			best = b
		}
	}
	if best == nil || best.rate < SelfWorth || c.loopback() || Ended(history) != nil {
		return method.Step{}, false
	}
	return method.Step{
		Name: selfStage, Title: "this machine alone", Why: "what the tool reaches here without a path: near that the figure may be its own",
		Plan: plan.Plan{
			Direction: plan.Direction(result.Up), Streams: best.streams, Duration: each, Omit: 300 * time.Millisecond, Interval: rowLength,
			Send: plan.SendCheapest, Receive: plan.Discard, RemoteDiscard: true,
		},
	}, true
}

// toolLimit: what this machine carries by itself, over loopback, is hardly more than was
// measured (M-SELF): the figure may be the tool's, not the path's.
func toolLimit(c *Case) []result.Verdict {
	var self float64
	for _, d := range c.History {
		if d.Step.Name == selfStage && d.Run != nil {
			self = max(self, conclude.HeadlineOf(d.Run, result.Up).BPS)
		}
	}
	best, dir := 0.0, result.Up
	for _, l := range c.legs() {
		for _, f := range l.plain() {
			if f.rate > best {
				best, dir = f.rate, l.dir
			}
		}
	}
	if self <= 0 || best <= 0 || self >= selfTimes*best {
		return nil
	}
	v := draft(ToolLimit, Likely, nil)
	v.Note, v.Host, v.Stages = true, result.Client, []string{selfStage}
	put(&v, "self", self, "bit/s")
	put(&v, "rate", best, "bit/s")
	say(&v, "this machine carries %s to itself over loopback; measured %s: %s of it (the tool's limit is near from 77 %% on, M-SELF)", rate(self), rate(best), percent(best/self))
	advise(&v, "a faster machine, or several at once, before the path is blamed", c.again(dir, "-P 4"))
	v.Summary = fmt.Sprintf("The measuring machine is near its own limit: it reaches %s by itself, %s were measured.", rate(self), rate(best))
	return []result.Verdict{v}
}
