package suite

import (
	"fmt"
	"iter"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// SelfStep is the name of the step that measures this machine alone.
const SelfStep = "A0-self"

// Limits of the pre-check.
const (
	selfFactor = 1.4  // how much more than the link this machine alone must move
	idleBusy   = 0.75 // of all cores, on the empty path
	mostSkew   = 500. // ppm between the ends' clocks
)

// precheck is A0: are the ends and the way fit for what is to be measured?
func (j *Judge) precheck(it Item) result.Item {
	out := result.Item{ID: it.ID, Title: titles[it.Kind], Result: result.Pass}
	for _, d := range j.history {
		if at, ok := j.at[d.Step.Name]; ok && (d.Step.Name == idleStep || strings.HasPrefix(d.Step.Name, MTUPrefix)) {
			out.From = append(out.From, at)
		}
	}
	run := j.runs[idleStep]
	if run == nil {
		out.Result = result.Inconclusive
		out.Reasons = []string{sentence("the empty path was not measured: " + j.errOf(idleStep))}
		return out
	}
	out.Flags = j.flags([]string{idleStep})
	out.Checks = append(out.Checks, j.linkSpeeds()...)
	out.Checks = append(out.Checks, j.mtus(it)...)
	out.Checks = append(out.Checks, j.offloads()...)
	out.Checks = append(out.Checks, j.idleness(), j.clocks(run), j.selfCheck(), peerCheck(run))
	out.Checks = append(out.Checks, j.lengths()...)
	out.Checks = append(out.Checks, j.unflagged(out.Flags)...)
	for _, c := range out.Checks {
		out.Result = worse(out.Result, c.Result)
		if c.Result == result.Fail || c.Result == result.Inconclusive {
			out.Reasons = append(out.Reasons, c.Text)
		}
	}
	if out.Result == result.Pass {
		out.Reasons = []string{"Nothing speaks against measuring: " + fit(out.Checks) + "."}
	}
	return out
}

func fit(cs []result.Check) string {
	var ok []string
	for _, c := range cs {
		word := strings.ReplaceAll(c.Check, "-", " ")
		if c.Result == result.Pass && !strings.Contains(","+strings.Join(ok, ",")+",", ","+word+",") {
			ok = append(ok, word)
		}
	}
	if len(ok) == 0 {
		return "what could be looked at is told below"
	}
	return strings.Join(ok, ", ") + " are as they must be"
}

// unflagged doubts a look at the empty path that has flags (M-ACCEPT: none). That the clocks have no bound in
// common counts for no item: none rests on a delay of one way.
func (j *Judge) unflagged(flags []string) (out []result.Check) {
	for _, f := range flags {
		if f == conclude.FlagClock {
			continue
		}
		c := result.Check{Check: "flags", Result: result.Inconclusive, Text: fmt.Sprintf("The empty path's run has the validity flag %s (fullbore explain %s).", f, f)}
		if f == conclude.FlagSteal {
			c.Text = "On the empty path the hypervisor took processor time from an end: it is no host to measure with."
		}
		out = append(out, c)
	}
	return out
}

// host is what is known of an end, from the run that tells most.
func (j *Judge) host(e result.End) (h *result.Host) {
	for _, d := range j.history {
		if d.Run == nil || d.Step.Name == SelfStep {
			continue
		}
		if x := d.Run.Hosts.Of(e); x != nil && (h == nil || h.NIC == nil && x.NIC != nil) {
			h = x
		}
	}
	return h
}

func (j *Judge) endName(e result.End) string {
	for _, d := range j.history {
		if d.Run != nil && len(d.Run.Streams) > 0 && d.Step.Name != SelfStep {
			return d.Run.EndName(e)
		}
	}
	if r := j.runs[idleStep]; r != nil {
		return r.EndName(e)
	}
	return "the " + string(e)
}

func (j *Judge) loopback() bool {
	for _, d := range j.history {
		if d.Run != nil && d.Step.Name != SelfStep && conclude.Loopback(d.Run) {
			return true
		}
	}
	return false
}

func (j *Judge) linkSpeeds() (out []result.Check) {
	link := int64(j.Method.Suite.Link)
	for _, e := range []result.End{result.Client, result.Server} {
		c := result.Check{Check: "link-speed", End: e}
		h := j.host(e)
		switch {
		case h == nil || h.NIC == nil || h.NIC.SpeedBPS == nil || *h.NIC.SpeedBPS <= 0:
			c.Text = "The interface of " + j.endName(e) + " does not tell its speed."
		case *h.NIC.SpeedBPS < link:
			c.Result = result.Fail
			c.Text = fmt.Sprintf("%s of %s runs at %s, less than the link's %s.", h.NIC.Name, j.endName(e), units.BitRate(*h.NIC.SpeedBPS), j.Method.Suite.Link)
		case h.NIC.Duplex == "half":
			c.Result = result.Fail
			c.Text = fmt.Sprintf("%s of %s runs in half duplex.", h.NIC.Name, j.endName(e))
		default:
			c.Result = result.Pass
			c.Text = fmt.Sprintf("%s of %s runs at %s.", h.NIC.Name, j.endName(e), units.BitRate(*h.NIC.SpeedBPS))
		}
		out = append(out, c)
	}
	return out
}

// sent are the streams of a direction over the path and what their sender's kernel told of them.
func (j *Judge) sent(d result.Direction) iter.Seq2[*result.Stream, *result.TCPSummary] {
	return func(yield func(*result.Stream, *result.TCPSummary) bool) {
		for _, done := range j.history {
			if done.Run == nil || done.Step.Name == SelfStep {
				continue
			}
			for i := range done.Run.Streams {
				s := &done.Run.Streams[i]
				if t := senderTCP(done.Run, s); s.Direction == d && t != nil && !yield(s, t) {
					return
				}
			}
		}
	}
}

// pathMTU is the least that a sender's kernel found in a direction, bytes; 0 = not known.
func (j *Judge) pathMTU(d result.Direction) (least int) {
	for _, t := range j.sent(d) {
		if m := int(t.Last.PMTU); m > 0 && (least == 0 || m < least) {
			least = m
		}
	}
	return least
}

// offloads are those of each end that tells them; this one's always.
func (j *Judge) offloads() (out []result.Check) {
	for _, e := range []result.End{result.Client, result.Server} {
		c := result.Check{Check: "offloads", End: e}
		switch f := j.factsOf(e); {
		case f == nil && e == result.Server:
			continue // a server tells its settings only where it trusts
		case f == nil:
			c.Text = "The offloads of this host's card are not known."
		case len(f.Off) > 0:
			c.Text = fmt.Sprintf("Offloads of %s of %s are off (%s): each packet costs that host more.", f.NIC, j.endName(e), strings.Join(f.Off, ", "))
		default:
			c.Result, c.Text = result.Pass, fmt.Sprintf("No offload that matters is off at %s.", j.endName(e))
		}
		out = append(out, c)
	}
	return out
}

// idleness: nothing else uses the processors. A run of probes has no intervals; one of small
// packets has, and is next to no load.
func (j *Judge) idleness() result.Check {
	c := result.Check{Check: "idle-processors", Result: result.Pass}
	var said []string
	var run *result.Run
	if it := j.Method.Suite.find(UDPSmall); it != nil {
		for _, d := range it.Directions {
			if r := j.runs[j.names(*it, d)[0]]; r != nil && run == nil {
				run = r
			}
		}
	}
	if run == nil {
		c.Result, c.Text = "", "How busy the processors were without load is not known."
		return c
	}
	for _, e := range []result.End{result.Client, result.Server} {
		busy, n := 0.0, 0
		for _, row := range run.Rows {
			if row.End != e || row.Host == nil {
				continue
			}
			for _, core := range row.Host.Cores {
				busy += 1 - core.Idle - core.IOWait
				n++
			}
		}
		if n == 0 {
			continue
		}
		share := busy / float64(n)
		said = append(said, fmt.Sprintf("%s %s busy", run.EndName(e), shareText(share)))
		if share > idleBusy {
			c.Result = result.Inconclusive
		}
	}
	switch {
	case len(said) == 0:
		c.Result, c.Text = "", "How busy the processors were without load is not known."
	case c.Result == result.Pass:
		c.Text = "Without load the processors have room: " + strings.Join(said, ", ") + "."
	default:
		c.Text = "Something else uses the processors without any load: " + strings.Join(said, ", ") + "."
	}
	return c
}

func (j *Judge) clocks(run *result.Run) result.Check {
	c := result.Check{Check: "clocks"}
	p := echo(run)
	if p == nil || p.Clock == nil || p.Clock.SkewPPM == nil {
		c.Text = "How the ends' clocks run against each other is not known."
		return c
	}
	skew := *p.Clock.SkewPPM
	c.Result, c.Text = result.Pass, fmt.Sprintf("The ends' clocks run alike within %.1f ppm.", abs(skew))
	if abs(skew) > mostSkew {
		c.Result, c.Text = result.Inconclusive, fmt.Sprintf("The ends' clocks run %.0f ppm apart: one of them is no clock to measure with.", abs(skew))
	}
	return c
}

func abs(v float64) float64 { return max(v, -v) }

func (j *Judge) selfCheck() result.Check {
	c := result.Check{Check: "self-check", End: result.Client}
	link := float64(j.Method.Suite.Link)
	switch {
	case j.loopback():
		c.Text = "No self-check: the other end is this machine."
	case j.Self == nil:
		c.Text = "No self-check: what this machine alone can move is not known."
	case *j.Self < selfFactor*link:
		c.Result = result.Inconclusive
		c.Text = fmt.Sprintf("This machine alone moves only %s, less than %.1f times the link: it may be the limit itself.", units.BitRate(*j.Self+0.5), selfFactor)
	default:
		c.Result = result.Pass
		c.Text = fmt.Sprintf("This machine alone moves %s, %.1f times the link.", units.BitRate(*j.Self+0.5), *j.Self/link)
	}
	return c
}

// peerCheck says what the other end is.
func peerCheck(run *result.Run) result.Check {
	c := result.Check{Check: "peer", End: result.Server}
	if run.Wire != nil && run.Wire.Extension {
		c.Result, c.Text = result.Pass, "The other end is a fullbore: both ends' counters are compared."
		return c
	}
	c.Text = "The other end is no fullbore: its interface, processors and delay are not seen, and small packets are not answered there."
	return c
}
