package html

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/render/svg"
	"github.com/fullbore-net/fullbore/result"
)

// What the searches for rates and the tests by standards found, as tables.

// mostAcross is how many findings of one name stand side by side; more are rows.
const mostAcross = 4

// findingTables are the figures of findings: those of one name beside each other, a line a figure; frame sizes a line
// each with the figures that matter.
func findingTables(rep *result.Report) (out []table) {
	if len(rep.Findings) == 0 {
		return nil
	}
	if strings.HasPrefix(rep.Findings[0].Name, "frame-") {
		return []table{frameTable(rep.Findings)}
	}
	var names []string
	for i := range rep.Findings {
		if n := rep.Findings[i].Name; !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	for i, name := range names {
		var same []*result.Finding
		for k := range rep.Findings {
			if f := &rep.Findings[k]; f.Name == name && len(same) < mostAcross {
				same = append(same, f)
			}
		}
		out = append(out, figuresTable(fmt.Sprintf("found-%d", i+1), name, same))
	}
	return out
}

// figuresTable has a line for each figure and a column for each finding.
func figuresTable(id, name string, found []*result.Finding) table {
	t := table{ID: id, Heading: "Found: " + spoken(clean(name)), Head: []string{"figure"}}
	var figures []string
	flags := []string{"flags"}
	for _, f := range found {
		t.Head = append(t.Head, clean(f.Direction))
		for _, v := range f.Values {
			if !slices.Contains(figures, v.Name) {
				figures = append(figures, v.Name)
			}
		}
		flags = append(flags, orDash(strings.Join(cleaned(f.Flags), ", ")))
	}
	for _, name := range figures {
		row := []string{words(name)}
		for _, f := range found {
			row = append(row, foundText(f, name))
		}
		t.Rows = append(t.Rows, row)
	}
	t.Rows = append(t.Rows, flags)
	return t
}

// words makes a stable name readable.
func words(name string) string { return clean(strings.ReplaceAll(name, "_", " ")) }

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// foundText is a figure of a finding for people; "–" = it has none of that name.
func foundText(f *result.Finding, name string) string {
	for _, v := range f.Values {
		if v.Name != name {
			continue
		}
		switch v.Unit {
		case "bit/s", "ratio", "s":
			return amount(v.Unit, v.Value)
		}
		text := strconv.FormatFloat(v.Value, 'g', 4, 64)
		if whole := math.Round(v.Value); math.Abs(whole) < 1e15 && (whole == v.Value || math.Abs(whole) >= 1000) {
			text = conclude.Grouped(int64(whole))
		}
		return strings.TrimSpace(text + " " + clean(v.Unit))
	}
	return "–"
}

// frameTable is of RFC 2544: a line for each frame size and direction.
func frameTable(found []result.Finding) table {
	figures := []string{"throughput_frames", "throughput_l1", "throughput_share", "burst_mean", "corrected_buffer_time", "round_trip_mean", "round_trip_p99", "recovery"}
	t := table{ID: "frames", Heading: "By frame size", Head: []string{"frame"}, Text: "The loss at each load and further figures are in the document. Rates are those of layer 1: frames with preamble and gap."}
	for _, name := range figures {
		t.Head = append(t.Head, words(name))
	}
	t.Head = append(t.Head, "flags")
	for i := range found {
		f := &found[i]
		row := []string{clean(strings.TrimPrefix(f.Name, "frame-")) + " bytes " + clean(f.Direction)}
		for _, name := range figures {
			row = append(row, foundText(f, name))
		}
		t.Rows = append(t.Rows, append(row, orDash(strings.Join(cleaned(f.Flags), ", "))))
	}
	return t
}

// frameworkTables are the transfers of RFC 6349.
func frameworkTables(rep *result.Report) []table {
	a := rep.TCPFramework
	if a == nil {
		return nil
	}
	t := table{
		ID: "transfers", Heading: "Transfers (RFC 6349)",
		Head: []string{"test", "connections", "goodput", "ideal", "with this window", "time ratio", "efficiency", "buffer delay", "result"},
	}
	shown := func(v *float64, format string) string {
		if v == nil {
			return "–"
		}
		return fmt.Sprintf(format, *v)
	}
	for i := range a.Tests {
		x := &a.Tests[i]
		word := "–"
		if i < len(rep.Items) {
			word = clean(rep.Items[i].Result)
		}
		t.Rows = append(t.Rows, []string{
			clean(x.Name), strconv.Itoa(x.Connections), rateOr(x.Goodput), rateOr(x.Ideal), rateOr(x.Reference), shown(x.Ratio, "%.3f"),
			shown(x.Efficiency, "%.2f %%"), shown(x.BufferDelay, "%.0f %%"), word,
		})
	}
	var says []string
	for i, d := range []string{"Up", "Down"} {
		b := a.BB[i]
		if b == nil {
			says = append(says, d+": the bottleneck is not known.")
			continue
		}
		text := fmt.Sprintf("%s: bottleneck %s on layer 1 (%s), MTU %d", d, svg.BitRate.Format(b.BPS), clean(b.Source), a.MTU[i])
		if a.RTT != nil {
			text += fmt.Sprintf(", bandwidth-delay product %s", svg.Bytes.Format(*a.RTT*b.BPS/8))
		}
		says = append(says, text+".")
	}
	if a.RTT != nil {
		says = append(says, "Baseline round trip: "+conclude.Time(*a.RTT)+".")
	}
	t.Text = strings.Join(says, " ")
	if len(t.Rows) == 0 {
		return nil
	}
	return []table{t}
}

// activationTables are the steps of Y.1564, a table a phase; why one did not pass stands with the services above.
func activationTables(rep *result.Report) (out []table) {
	a := rep.Activation
	if a == nil {
		return nil
	}
	varies := "FDV"
	if a.MEF {
		varies = "IFDV"
	}
	heads := map[int]string{1: "Phase 1: each service alone", 2: "Phase 2: all services together"}
	for phase := 1; phase <= 2; phase++ {
		t := table{ID: fmt.Sprintf("phase-%d", phase), Heading: heads[phase], Head: []string{"service, step, way", "offered", "received", "FLR", "FTD", varies, "availability", "result"}}
		for i := range a.Steps {
			s := &a.Steps[i]
			if s.Phase != phase {
				continue
			}
			v := s.FDV
			if a.MEF {
				v = s.IFDV
			}
			t.Rows = append(t.Rows, []string{
				clean(fmt.Sprintf("%s %s %s", s.Service, s.Step, s.Way)), svg.BitRate.Format(s.Offered), rateOr(s.IR), percent(s.FLR, "%.3g %%"), timeOr(s.FTD), timeOr(v),
				percent(s.Avail, "%.4g %%"), clean(s.Conformed),
			})
		}
		if len(t.Rows) > 0 {
			out = append(out, t)
		}
	}
	if n := len(out); n > 0 {
		text := map[string]string{"one-way": "FTD is one-way.", "half-round-trip": "FTD is half of a round trip.", "": "FTD is not known: nothing answers probes."}[a.Basis]
		if a.Floor != nil {
			text += fmt.Sprintf(" Time stamps are made in software; the senders kept to their times within %s (99.9 %%).", conclude.Time(*a.Floor))
		}
		out[n-1].Text = "Rates are information rates: Ethernet frames with check. " + text
	}
	return out
}

func timeOr(v *float64) string {
	if v == nil {
		return "–"
	}
	return conclude.Time(*v)
}

// nextTodo is the command worth typing next.
func nextTodo(rep *result.Report) []adviceGroup {
	if rep.Next == nil {
		return nil
	}
	return []adviceGroup{{Lines: []adviceLine{{Text: clean(rep.Next.Why), Commands: []string{clean(rep.Next.Command)}}}}}
}
