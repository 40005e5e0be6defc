package html

import (
	"math"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/explain"
	"github.com/fullbore-net/fullbore/internal/render/svg"
	"github.com/fullbore-net/fullbore/result"
)

// verdictView is a verdict as the page shows it.
type verdictView struct {
	Code, Certainty, Summary, Meaning string
	Direction, Host                   string
	Evidence                          []string
	Changes                           []change
	Values                            []tile
	Stages                            []stageRef
}

// change is an intervention and what came of it.
type change struct{ What, Then string }

type stageRef struct {
	Number int
	Title  string
}

// adviceGroup is what is to be done in one place.
type adviceGroup struct {
	Where string
	Lines []adviceLine
}

// adviceLine is words and the commands in them.
type adviceLine struct {
	Text     string
	Commands []string
}

func (p *page) judgement(rep *result.Report) {
	for i := range rep.Verdicts {
		v := viewOf(rep, &rep.Verdicts[i])
		if rep.Verdicts[i].Note {
			p.Notes = append(p.Notes, v)
		} else {
			p.Causes = append(p.Causes, v)
		}
	}
	if len(p.Causes) > 0 {
		p.First = &p.Causes[0]
	}
	p.Advice = advice(rep.Verdicts)
	p.Reach = reach(rep)
}

func viewOf(rep *result.Report, v *result.Verdict) verdictView {
	out := verdictView{Code: clean(v.Code), Certainty: clean(v.Certainty), Summary: clean(v.Summary), Direction: directionWord(v.Direction)}
	for _, t := range explain.Lookup(v.Code) {
		if t.Kind == explain.Verdict || t.Kind == explain.Limit && out.Meaning == "" {
			out.Meaning = t.Text
		}
	}
	if v.Host != "" && len(rep.Runs) > 0 {
		out.Host = endName(rep, v.Host)
	}
	for _, e := range v.Evidence {
		e = clean(e)
		way := ""
		for _, d := range []string{"up: ", "down: "} {
			if rest, ok := strings.CutPrefix(e, d); ok && strings.HasPrefix(rest, "changed: ") {
				way, e = d, rest
			}
		}
		rest, ok := strings.CutPrefix(e, "changed: ")
		if !ok {
			out.Evidence = append(out.Evidence, e)
			continue
		}
		what, then, split := strings.Cut(rest, ": ")
		if !split {
			what, then = rest, ""
		}
		out.Changes = append(out.Changes, change{way + what, then})
	}
	for _, x := range v.Values {
		out.Values = append(out.Values, tile{Name: valueName(clean(x.Name)), Value: valueText(x)})
	}
	for _, name := range v.Stages {
		for i, s := range rep.Stages {
			if s.Name == name {
				out.Stages = append(out.Stages, stageRef{i + 1, clean(s.Title)})
			}
		}
	}
	return out
}

func directionWord(d string) string {
	switch d {
	case "both":
		return "both ways"
	case "":
		return ""
	}
	return clean(d)
}

// valueNames says figures in words; others keep their name.
var valueNames = map[string]string{
	"rate": "payload rate", "rate_l3": "rate with IP headers", "rtt": "round trip, empty path", "window": "on the way at most", "needed": "window needed",
	"setting": "setting now", "queue": "queueing delay, p99", "queue_typical": "queueing delay, typical", "queue_bytes": "queue, p99", "bucket": "policer's bucket",
	"loss": "loss", "loss_low": "loss, at least", "loss_high": "loss, at most", "bucket_most": "bucket, at most", "burst": "mean run of losses", "mtu": "largest packet", "mtu_bad": "smallest lost packet",
	"load": "busiest worker", "core": "core", "busy": "core busy", "softirq": "in softirq", "throttled": "held by a quota", "sender_load": "sender's busiest worker",
	"receiver_load": "receiver's busiest worker", "at": "began at", "length": "lasted", "interface": "interface's MTU", "efficiency": "TCP efficiency",
}

func valueName(name string) string {
	if n := valueNames[name]; n != "" {
		return n
	}
	return strings.ReplaceAll(name, "_", " ")
}

func valueText(x result.Value) string {
	switch x.Unit {
	case "bit/s":
		return svg.BitRate.Format(x.Value)
	case "bytes":
		if math.Abs(x.Value) < 10240 {
			return svg.Plain.Format(math.Round(x.Value)) + " bytes"
		}
		return svg.Bytes.Format(x.Value)
	case "s":
		return conclude.Time(x.Value)
	case "ratio":
		if x.Value != 0 && math.Abs(x.Value) < 1e-4 {
			return svg.Plain.Format(x.Value*1e6) + " ppm"
		}
		return svg.Share.Format(x.Value)
	case "":
		return svg.Plain.Format(x.Value)
	}
	return svg.Plain.Format(x.Value) + " " + clean(x.Unit)
}

// advice sorts the advice of all verdicts, each line once, by the place where it is to be
// followed.
func advice(vs []result.Verdict) (out []adviceGroup) {
	seen, at := map[string]bool{}, map[string]int{}
	for _, v := range vs {
		for _, a := range v.Advice {
			a = clean(a)
			if seen[a] {
				continue
			}
			seen[a] = true
			line := conclude.AdviceOf(a)
			where := ""
			if line.Where != "" {
				where = "O" + line.Where[1:] // "on HOST (Linux)" as a heading
			}
			i, known := at[where]
			if !known {
				i = len(out)
				at[where] = i
				out = append(out, adviceGroup{Where: where})
			}
			out[i].Lines = append(out[i].Lines, adviceLine{Text: line.Text, Commands: line.Commands})
		}
	}
	return out
}

// reach draws what would be carried with each limit mended.
func reach(rep *result.Report) *plot {
	b := svg.Bars{ID: "reach", Title: "Measured, and what would be reached", Unit: svg.BitRate}
	var says []string
	for _, v := range rep.Verdicts {
		if v.Note || v.Measured == nil || v.Reach == nil || *v.Reach <= *v.Measured*1.01 {
			continue
		}
		way := directionWord(v.Direction)
		if way != "" {
			way = ", " + way
		}
		code := spoken(clean(v.Code))
		b.Rows = append(b.Rows, svg.Bar{Label: "now" + way, Value: *v.Measured, Color: 6}, svg.Bar{Label: "with " + code + " mended" + way, Value: *v.Reach, Color: 1})
		says = append(says, code+way+": "+svg.BitRate.Format(*v.Measured)+" now, about "+svg.BitRate.Format(*v.Reach)+" with it mended")
	}
	if len(b.Rows) == 0 {
		return nil
	}
	b.Desc = strings.Join(says, "; ") + "."
	return &plot{ID: "reach", Text: b.Desc, Drawing: drawn(b.Draw())}
}

// selfLabel is the label of an acceptance's run over this machine's loopback.
const selfLabel = "A0-self"

// tiles are the figures that belong to the answer.
func tiles(rep *result.Report) (out []tile) {
	if rep.Soak != nil {
		return soakTiles(rep.Soak)
	}
	if rep.ConnRate != nil {
		return connTiles(rep.ConnRate)
	}
	if rep.Load != nil {
		return loadTiles(rep.Load)
	}
	if rep.Kind == "mtu" && len(rep.Paths) > 0 {
		return pathTiles(rep.Paths)
	}
	if len(rep.Verdicts) > 0 {
		if v := &rep.Verdicts[0]; v.Measured != nil {
			out = append(out, tile{"measured", svg.BitRate.Format(*v.Measured), directionWord(v.Direction)})
			if v.Reach != nil && *v.Reach > *v.Measured*1.01 {
				out = append(out, tile{"with it mended", svg.BitRate.Format(*v.Reach), "about"})
			}
		}
	}
	for _, d := range []result.Direction{result.Up, result.Down} {
		best, who := 0.0, ""
		for _, r := range rep.Runs {
			if r.Label == selfLabel {
				continue // of this machine alone, not of the path
			}
			if h := conclude.HeadlineOf(r, d); r.Sum(d) != nil && h.BPS > best {
				best, who = h.BPS, r.EndName(d.Sender())+" → "+r.EndName(d.Receiver())
			}
		}
		if best > 0 {
			out = append(out, tile{"most that was reached " + string(d), svg.BitRate.Format(best), clean(who)})
		}
	}
	if rtt, _ := emptyRTT(rep); rtt > 0 {
		out = append(out, tile{"round trip, empty path", conclude.Time(rtt), "least"})
	}
	return out
}

// emptyRTT is the least round trip of the path without load, s; 0 = not known. Where no probe
// tells it, the least that TCP saw stands for it.
func emptyRTT(rep *result.Report) (rtt float64, source string) {
	least := func(v float64, from string) {
		if v > 0 && (rtt == 0 || v < rtt) {
			rtt, source = v, from
		}
	}
	for _, r := range rep.Runs {
		for _, p := range r.Probes {
			switch {
			case p.RoundTrip != nil:
				least(p.RoundTrip.Min, "probes")
			case p.TCPMinRTT != nil:
				least(*p.TCPMinRTT, "TCP")
			case p.Connect != nil:
				least(p.Connect.Min, "connecting")
			}
		}
	}
	if rtt > 0 {
		return rtt, source
	}
	for _, r := range rep.Runs {
		for _, s := range r.Streams {
			for _, t := range []*result.TCPSummary{s.TCP, s.RemoteTCP} {
				if t != nil && t.Last.MinRTT != nil {
					least(float64(*t.Last.MinRTT)/1e6, "TCP")
				}
			}
		}
	}
	return rtt, source
}
