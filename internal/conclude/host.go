package conclude

import (
	"fmt"

	"github.com/fullbore-net/fullbore/result"
)

// host reads the counters of one end's machine: steal, hot cores, dropped packets. Over
// loopback both ends are one machine, whose troubles are told once.
func (c *conclusion) host(e result.End) {
	name := EndName(c.run, e)
	if loopback(c.run) {
		name = "this machine"
		if e != c.run.End {
			c.cores(e, name, false)
			return
		}
	}
	stolen, known := weighted(c.run, e, func(h *result.HostSample) *float64 { return &h.StealMax })
	if known && stolen > stealNote {
		level := result.Info
		if stolen > stealFlag {
			level = result.Warn
			c.flag(FlagSteal)
		}
		c.notice(result.Notice{
			Code: Steal, End: e, Level: level,
			Text: fmt.Sprintf("the hypervisor took %s of a core's time from %s: its figures are those of a machine that was not always running", percent(stolen), name),
		})
	}
	c.cores(e, name, true)
	c.slowed(e, name)
	c.drops(e, name)
}

// cores sets the flag of an end whose cores were full of this test, and (tell) says so when
// they were full of something else.
func (c *conclusion) cores(e result.End, name string, tell bool) {
	switch h := heat(c.run, e); h.kind {
	case oursHot:
		for _, d := range c.dirs {
			if d.dir.Sender() == e {
				c.flag(FlagSenderCPU)
			}
			if d.dir.Receiver() == e {
				c.flag(FlagReceiverCPU)
			}
		}
	case theirsHot:
		if !tell {
			return
		}
		c.notice(result.Notice{
			Code: CompetingLoad, End: e, Level: result.Warn,
			Text: fmt.Sprintf("something else on %s used %.1f cores (core %d was full in %s of the intervals): the figure may be that load's doing", name, h.others, h.core, percent(h.share)),
		})
	}
}

type heatKind int

const (
	cool heatKind = iota
	oursHot
	theirsHot
)

// heatOf is what the cores of one end say.
type heatOf struct {
	kind   heatKind
	core   int     // the one that was full most often
	share  float64 // of the intervals with a full core
	others float64 // cores used by other programs in those, mean
}

// heat finds full cores (M-CPU) and whose they are. A core's time cannot be split by
// program, so the host is judged as a whole: user and system time of all cores minus this
// program's (and the other end's, where it is the same machine) is other programs'.
// Soft interrupts count as ours, since the test is what makes them.
func heat(run *result.Run, e result.End) heatOf {
	full := map[int]int{}
	n, hot, accounted := 0, 0, 0
	var others float64
	for _, row := range run.Rows {
		if row.End != e || row.Omitted || row.Host == nil || len(row.Host.Cores) == 0 {
			continue
		}
		n++
		busiest, at, used := 0.0, 0, 0.0
		for _, core := range row.Host.Cores {
			used += core.User + core.System
			if b := 1 - core.Idle - core.IOWait; b > busiest {
				busiest, at = b, core.CPU
			}
		}
		if busiest < hotCore {
			continue
		}
		hot++
		full[at]++
		if row.Host.Process == nil {
			continue
		}
		accounted++
		rest := used - row.Host.Process.Total/100
		if p := run.CPU.Of(e.Other()); p != nil && sharedCores(run) {
			rest -= p.Total / 100
		}
		others += max(rest, 0)
	}
	if n == 0 || float64(hot) < hotShare*float64(n) {
		return heatOf{}
	}
	out := heatOf{kind: oursHot, share: float64(hot) / float64(n)}
	for core, times := range full {
		if times > full[out.core] || times == full[out.core] && core < out.core {
			out.core = core
		}
	}
	if accounted > 0 {
		out.others = others / float64(accounted)
	}
	if out.others >= foreignCores {
		out.kind = theirsHot
	}
	return out
}

// drops adds up what the receiving host lost before its sockets saw it. The counters are
// the host's, so they bound what this test lost from above.
func (c *conclusion) drops(e result.End, name string) {
	var nic, softnet int64
	for _, row := range c.run.Rows {
		if row.End != e || row.Omitted || row.Host == nil {
			continue
		}
		if d := row.Host.NIC; d != nil {
			nic += d.RxDropped + d.RxMissed
		}
		if s := row.Host.Softnet; s != nil {
			softnet += s.Dropped
		}
	}
	if nic+softnet == 0 {
		return
	}
	c.flag(FlagLocalDrops)
	c.notice(result.Notice{
		Code: LocalDrops, End: e, Level: result.Warn,
		Text: fmt.Sprintf("%s itself dropped up to %d packets before its sockets saw them (interface %d, kernel queue %d): that part of the loss is not the network's", name, nic+softnet, nic, softnet),
		Fix:  "fullbore doctor",
	})
}

// flags sets those that follow from the run's figures and from notices of others.
func (c *conclusion) flags() {
	if has(c.run, "window-clamped") {
		c.flag(FlagWindowClamped)
	}
	for _, d := range c.dirs {
		switch d.verdict.code {
		case CPUSender:
			c.flag(FlagSenderCPU)
		case CPUReceiver:
			c.flag(FlagReceiverCPU)
		}
	}
}
