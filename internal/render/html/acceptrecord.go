package html

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// What a page needs besides its results before anybody signs it: the method, the conditions, the layers, the
// interfaces' own counts, and what it does not show.

type acceptPlan struct {
	ID, Title, How string
	Limits         []acceptLimit
}

type acceptLimit struct{ Text, Defined, Source string }

type acceptRate struct {
	ID, Packet, L7, L4, L3, L2, L1, Share string
}

type acceptInterface struct {
	Where, Counted, Received, Sent, Errors, Dropped string
}

// record fills in those parts of the view.
func (v *acceptView) record(rep *result.Report) {
	a := rep.Acceptance
	for _, p := range a.Plans {
		x := acceptPlan{ID: clean(p.ID), Title: clean(p.Title), How: clean(p.How)}
		for _, l := range p.Limits {
			x.Limits = append(x.Limits, acceptLimit{clean(l.Text), clean(l.Defined), clean(l.Source)})
		}
		v.Plans = append(v.Plans, x)
	}
	for _, r := range a.Rates {
		v.Rates = append(v.Rates, acceptRate{
			ID: clean(r.ID), Packet: fmt.Sprint(r.Packet),
			L7: megabits(r.Layers.L7), L4: megabits(r.Layers.L4), L3: megabits(r.Layers.L3), L2: megabits(r.Layers.L2), L1: megabits(r.Layers.L1),
			Share: fmt.Sprintf("%.1f %%", 100*r.Share),
		})
	}
	for _, t := range a.Interfaces {
		c := &t.Counters
		amount := func(bytes, packets int64) string {
			return conclude.Grouped(bytes) + " bytes in " + conclude.Grouped(packets) + " packets"
		}
		v.Interfaces = append(v.Interfaces, acceptInterface{
			Where: clean(c.Name) + " of " + nameOf(rep, t.End), Counted: conclude.Time(t.Counted),
			Received: amount(c.RxBytes, c.RxPackets), Sent: amount(c.TxBytes, c.TxPackets),
			Errors:  fmt.Sprintf("%s received, %s sent", conclude.Grouped(c.RxErrors), conclude.Grouped(c.TxErrors)),
			Dropped: fmt.Sprintf("%s received (%s of them found no place in its ring), %s sent", conclude.Grouped(c.RxDropped), conclude.Grouped(c.RxMissed), conclude.Grouped(c.TxDropped)),
		})
	}
	v.Scope = cleaned(a.Scope)
	v.Conditions = conditions(rep)
}

// megabits prints a rate so exactly that layers can be told apart.
func megabits(bps float64) string { return fmt.Sprintf("%.2f Mbit/s", bps/1e6) }

// nameOf is an end's name; its role where nothing was measured.
func nameOf(rep *result.Report, e result.End) string {
	if len(rep.Runs) == 0 {
		return "the " + string(e)
	}
	return endName(rep, e)
}

// conditions are those under which an acceptance was made.
func conditions(rep *result.Report) (out []tile) {
	a := rep.Acceptance
	add := func(name, value, note string) {
		if value != "" {
			out = append(out, tile{name, value, note})
		}
	}
	const layout = "2006-01-02 15:04:05"
	if !rep.Started.IsZero() {
		add("begun", rep.Started.UTC().Format(layout), "UTC, by this host's clock")
	}
	if a.Until != nil {
		add("ended", a.Until.UTC().Format(layout), "UTC")
	}
	n := len(rep.Stages)
	if n == 0 {
		n = len(rep.Runs)
	}
	if n > 0 {
		add("measurements", fmt.Sprint(n), "each in full below")
	}
	if a.Moved > 0 {
		add("payload moved", units.ByteSize(a.Moved).String(), "warm-ups included")
	}
	for _, r := range rep.Runs {
		if len(r.Hops) == 0 {
			continue
		}
		var way []string
		for _, h := range r.Hops {
			if h.Addr == "" {
				h.Addr = "(no answer)"
			}
			way = append(way, clean(h.Addr))
		}
		add("the way", strings.Join(way, " → "), "stations that answered, as seen from "+nameOf(rep, result.Client))
		break
	}
	if n := overlaps(rep); n > 0 {
		add("at the same time", "tests of others at the server", fmt.Sprintf("in %d measurements", n))
	}
	for _, e := range []result.End{result.Client, result.Server} {
		if t := toolOf(rep, e); t != "" {
			add("program at "+nameOf(rep, e), t, "")
		}
	}
	return out
}

// overlaps counts the runs beside which the server had others.
func overlaps(rep *result.Report) (n int) {
	for _, r := range rep.Runs {
		for _, x := range r.Notices {
			if x.Code == "overlap" {
				n++
				break
			}
		}
	}
	return n
}

// toolOf is the program of an end, as the runs tell it.
func toolOf(rep *result.Report, e result.End) string {
	for _, r := range rep.Runs {
		if h := r.Hosts.Of(e); h != nil && h.Tool != nil && h.Tool.Name != "" {
			return clean(strings.TrimSpace(h.Tool.Name + " " + h.Tool.Version))
		}
	}
	return ""
}

// linkNote says where the link's speed comes from.
func linkNote(from string) string {
	const layer = "as the line counts it, layer 1"
	switch from {
	case "suite":
		return layer + "; by the suite file"
	case "interface":
		return layer + "; that of this host's interface, since nobody said what was promised"
	}
	return layer
}
