package lab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// DiagnosisExpect is a claim about the verdicts in the client's document, which is one of
// fullbore diagnose --json.
type DiagnosisExpect struct {
	Code string
	// Rank is "first" (default: of all verdicts), "any" (it is among them), "cause" (among
	// them, not as a note), or "none" (it is not among them).
	Rank      string
	Certainty string // at least: "possible" < "likely" < "proven"; "" = any
	Direction string // "up", "down", "both"; "" = any
	// Values are sentences about the verdict's values by name: "rate_l3 == 200M ± 2%".
	// "measured" and "reach" stand for measured_bps and reach_bps.
	Values   []*Assertion
	Evidence []string // texts that one of its lines must have
}

var certainties = []string{"possible", "likely", "proven"}

func readDiagnosis(r *reader, n ast.Node, at string) DiagnosisExpect {
	d := DiagnosisExpect{Rank: "first"}
	r.Mapping(n, at, map[string]handler{
		"code":      r.Text(&d.Code),
		"rank":      r.oneOf(&d.Rank, "first", "any", "cause", "none"),
		"certainty": r.oneOf(&d.Certainty, certainties...),
		"direction": r.oneOf(&d.Direction, "up", "down", "both"),
		"values":    r.assertions(&d.Values),
		"evidence":  r.Texts(&d.Evidence),
	})
	r.require(n, at, "code")
	return d
}

// JudgeDiagnosis returns what about a document of verdicts is not as expected: doc is what
// encoding/json makes of it.
func JudgeDiagnosis(expect []DiagnosisExpect, doc any) (reasons []string) {
	verdicts := verdictsOf(doc)
	if verdicts == nil {
		return []string{"diagnosis: the document has no verdicts"}
	}
	for i := range expect {
		if why := expect[i].judge(verdicts); why != "" {
			reasons = append(reasons, "diagnosis: "+why)
		}
	}
	return reasons
}

func verdictsOf(doc any) []map[string]any {
	object, _ := doc.(map[string]any)
	list, ok := object["verdicts"].([]any)
	if !ok {
		return nil
	}
	out := []map[string]any{}
	for _, v := range list {
		if m, ok := v.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// spoken lists verdicts for messages.
func spoken(verdicts []map[string]any) string {
	var out []string
	for _, v := range verdicts {
		text := fmt.Sprintf("%v %v", v["code"], v["certainty"])
		if d, ok := v["direction"]; ok {
			text += fmt.Sprintf(" %v", d)
		}
		if v["note"] == true {
			text += " (note)"
		}
		out = append(out, text)
	}
	if out == nil {
		return "nothing"
	}
	return strings.Join(out, ", ")
}

func (d *DiagnosisExpect) judge(verdicts []map[string]any) string {
	var found []map[string]any
	for i, v := range verdicts {
		if v["code"] != d.Code || d.Direction != "" && v["direction"] != d.Direction && v["direction"] != "both" {
			continue
		}
		if d.Rank == "first" && i > 0 || d.Rank == "cause" && v["note"] == true {
			continue
		}
		found = append(found, v)
	}
	what := strings.TrimSpace(d.Code + " " + d.Direction)
	switch {
	case d.Rank == "none" && len(found) > 0:
		return fmt.Sprintf("%s must not be said; it says %s", what, spoken(verdicts))
	case d.Rank == "none":
		return ""
	case len(found) == 0:
		return fmt.Sprintf("wanted %s (%s), it says %s", what, d.Rank, spoken(verdicts))
	}
	var why []string
	for _, v := range found {
		w := d.faults(v)
		if w == "" {
			return ""
		}
		why = append(why, w)
	}
	return what + ": " + strings.Join(why, " | ")
}

// faults is what of one verdict is not as wanted.
func (d *DiagnosisExpect) faults(v map[string]any) string {
	var out []string
	if got, _ := v["certainty"].(string); d.Certainty != "" && slices.Index(certainties, got) < slices.Index(certainties, d.Certainty) {
		out = append(out, fmt.Sprintf("certainty %s, wanted %s", got, d.Certainty))
	}
	values := map[string]any{}
	for name, key := range map[string]string{"measured": "measured_bps", "reach": "reach_bps"} {
		if x, ok := v[key]; ok {
			values[name] = x
		}
	}
	list, _ := v["values"].([]any)
	for _, x := range list {
		if m, ok := x.(map[string]any); ok {
			name, _ := m["name"].(string)
			values[name] = m["value"]
		}
	}
	for _, a := range d.Values {
		if why := a.Check(values); why != "" {
			out = append(out, why)
		}
	}
	lines := fmt.Sprint(v["evidence"])
	for _, e := range d.Evidence {
		if !strings.Contains(lines, e) {
			out = append(out, fmt.Sprintf("no line of evidence has %q", e))
		}
	}
	return strings.Join(out, "; ")
}
