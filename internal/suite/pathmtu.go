package suite

import (
	"fmt"
	"slices"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// The packet size of the path: by single packets where a fullbore answers them (M-PMTU), else what the
// sending kernels believe.

// MTUPrefix begins the names of the steps of M-PMTU.
const MTUPrefix = idleStep + "-mtu-"

// nextMTU is the next step of the search for the path's packet size. To an iperf3 it would be a test
// for each size, and up only: there it is not made.
func (m Method) nextMTU(all []method.Done) (method.Step, bool) {
	it := m.Suite.find(Precheck)
	if it == nil || !answersProbes(all, idleStep) {
		return method.Step{}, false
	}
	mine := cut(all, MTUPrefix)
	if n := len(mine); n > 0 && (failed(&mine[n-1]) || !answersProbes(all, MTUPrefix+mine[0].Step.Name)) {
		return method.Step{}, false
	}
	s, more := method.MTURuns{}.Next(mine)
	s.Name, s.Title = MTUPrefix+s.Name, it.ID+" "+s.Title
	return s, more
}

// answersProbes reports that a step found a fullbore at the other end.
func answersProbes(all []method.Done, name string) bool {
	return slices.ContainsFunc(all, func(d method.Done) bool {
		return d.Step.Name == name && d.Run != nil && d.Run.Wire != nil && d.Run.Wire.Extension
	})
}

// searched is what single packets showed, and the step that they were sent in.
func (j *Judge) searched() (a method.MTUAnswer, step string) {
	mine := cut(j.history, MTUPrefix)
	if len(mine) == 0 {
		return a, ""
	}
	return method.MTURuns{}.Answer(mine), MTUPrefix + mine[len(mine)-1].Step.Name
}

// wantedMTU is the packet size that the path must carry.
func (j *Judge) wantedMTU(it Item) int {
	for _, dm := range it.Demands {
		if dm.Figure == "path_mtu" && dm.Op != "" {
			return int(dm.Bound)
		}
	}
	return j.Method.MTU()
}

// mtus hold the packets that the path carries, and the interfaces, against what is wanted.
func (j *Judge) mtus(it Item) (out []result.Check) {
	want := j.wantedMTU(it)
	a, b := j.host(result.Client), j.host(result.Server)
	if a != nil && b != nil && a.NIC != nil && b.NIC != nil && a.NIC.MTU > 0 && b.NIC.MTU > 0 && a.NIC.MTU != b.NIC.MTU {
		out = append(out, result.Check{
			Check: "interface-mtu", Result: result.Fail,
			Text: fmt.Sprintf("The ends' packet sizes differ: MTU %d at %s, %d at %s.", a.NIC.MTU, j.endName(result.Client), b.NIC.MTU, j.endName(result.Server)),
		})
	}
	answer, step := j.searched()
	believed := false
	for _, d := range both() {
		if p := pathOf(answer.Paths, d); p != nil && p.MTU != nil {
			c := searchedCheck(p, want, j.carried(d))
			c.Run = step
			out = append(out, c)
			continue
		}
		out = append(out, believedCheck(j.pathMTU(d), d, want))
		believed = true
	}
	if believed {
		out = append(out, result.Check{Check: "path-mtu", Text: j.whyBelieved(step)})
	}
	return out
}

func pathOf(paths []result.PathMTU, d result.Direction) *result.PathMTU {
	for i := range paths {
		if paths[i].Direction == d {
			return &paths[i]
		}
	}
	return nil
}

// carriedBytes is how much payload must have arrived to prove that segments of a size do.
const carriedBytes = 1 << 20

// carried is the largest packet in which TCP demonstrably moved payload in a direction, bytes; 0 = not known.
func (j *Judge) carried(d result.Direction) (most int) {
	for s, t := range j.sent(d) {
		if t.Last.MSS <= 0 || s.Receiver == nil || s.Receiver.Bytes < carriedBytes {
			continue
		}
		// The kernel's MSS is without what options take.
		most = max(most, units.TCPHeaders(j.Method.family() == 6, 0, t.Last.Timestamps).Bytes(int(t.Last.MSS), units.L3))
	}
	return most
}

// searchedCheck judges what single packets showed of a direction; carried is what TCP showed.
func searchedCheck(p *result.PathMTU, want, carried int) result.Check {
	c := result.Check{Check: "path-mtu", Result: result.Pass}
	c.Text = fmt.Sprintf("The path carries packets of %d bytes %s", *p.MTU, p.Direction)
	if *p.MTU >= want {
		c.Text += " (single packets that nobody may fragment were answered)."
		return c
	}
	if !p.Exact {
		c.Result = result.Inconclusive
		c.Text += fmt.Sprintf(" at least; whether it carries %d the search did not come to show.", want)
		return c
	}
	c.Result = result.Fail
	c.Text += fmt.Sprintf(" at most, not %d: ", want)
	switch {
	case carried > *p.MTU:
		c.Result = result.Inconclusive
		c.Text += fmt.Sprintf("but TCP moved payload in packets of %d, so single packets fare differently there, or an end was too busy to answer them.", carried)
	case p.AtLink:
		c.Text += "an end's own interface takes no larger ones."
	case p.Told != nil:
		c.Text += fmt.Sprintf("a router on the way says so (ICMP \"too big\": %d).", *p.Told)
	case p.BlackHole != nil && *p.BlackHole:
		c.Text += "larger ones vanish and nobody says so (no ICMP \"too big\"), a black hole in which connections hang."
	default:
		c.Text += "larger ones do not arrive; whether a router says so is not known."
	}
	return c
}

// believedCheck judges what a sending kernel believes.
func believedCheck(mtu int, d result.Direction, want int) result.Check {
	c := result.Check{Check: "path-mtu"}
	switch {
	case mtu == 0:
		c.Text = fmt.Sprintf("The path's packet size %s is not known: the sending end does not tell it.", d)
	case mtu < want:
		c.Result = result.Fail
		c.Text = fmt.Sprintf("The path carries packets of %d bytes %s at most, not %d (as TCP found it).", mtu, d, want)
	default:
		c.Result = result.Pass
		c.Text = fmt.Sprintf("TCP sends packets of %d bytes %s.", mtu, d)
	}
	return c
}

// whyBelieved says why no single packets tell the path's packet size.
func (j *Judge) whyBelieved(step string) string {
	const rest = "the path's packet size is what the sending system believes of it, and a black hole for larger packets would not be seen."
	if !answersProbes(j.history, idleStep) {
		return "Only a fullbore answers single packets of several sizes (M-PMTU): " + rest
	}
	for i := range j.history {
		if d := &j.history[i]; d.Step.Name == step && d.Err != nil {
			return sentence("the search by single packets (M-PMTU) broke off: "+d.Err.Text) + " So " + rest
		}
	}
	if run := j.runs[step]; run == nil || len(run.Probes) == 0 {
		return "No single packets of several sizes were sent (the acceptance ended before): " + rest
	}
	return "Single packets of several sizes (M-PMTU) were not answered in each direction: " + rest
}

// clamps are findings about segment sizes that something on the way rewrote.
func (j *Judge) clamps() (out []string) {
	a, _ := j.searched()
	for _, c := range a.Clamps {
		out = append(out, fmt.Sprintf("On the way the largest TCP segment (MSS) that %s announces is rewritten from %d to %d bytes: a clamp, which keeps TCP below a small packet size.", j.endName(c.From), c.Announced, c.Seen))
	}
	return out
}
