package lab

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestJudgeDiagnosis(t *testing.T) {
	var doc any
	if err := json.Unmarshal([]byte(`{"verdicts":[
		{"code":"receive-window","certainty":"likely","direction":"both","reach_bps":96e6,"evidence":["16 streams: 96 Mbit/s"],
		 "values":[{"name":"rtt","value":0.0281,"unit":"s"},{"name":"needed","value":350000,"unit":"bytes"}]},
		{"code":"standing-queue","certainty":"proven","note":true,"evidence":[]}]}`), &doc); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, want string }{
		{`{code: receive-window}`, ""},
		{`{code: receive-window, certainty: likely, direction: up, values: [rtt == 0.028 ± 0.001, needed >= 300000, reach == 96M ± 1%], evidence: [16 streams]}`, ""},
		{`{code: receive-window, certainty: proven}`, "certainty likely, wanted proven"},
		{`{code: receive-window, values: [rtt == 0.020 ± 0.001]}`, "found 0.0281"},
		{`{code: receive-window, values: [bucket > 0]}`, "there is no bucket"},
		{`{code: receive-window, evidence: [64 streams]}`, `has "64 streams"`},
		{`{code: standing-queue}`, "wanted standing-queue (first), it says receive-window likely both, standing-queue proven (note)"},
		{`{code: standing-queue, rank: any}`, ""},
		{`{code: standing-queue, rank: cause}`, "wanted standing-queue (cause)"},
		{`{code: receive-window, rank: none}`, "must not be said"},
		{`{code: loss-random, rank: none}`, ""},
	} {
		s, err := ParseScenario("x", []byte("name: x\ntopology: pair\ncc: cubic\nclient: fullbore diagnose self\nexpect:\n  exit: 0\n  diagnosis:\n    - "+c.text+"\n"))
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		got := strings.Join(JudgeDiagnosis(s.Expect.Diagnosis, doc), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
	if got := JudgeDiagnosis([]DiagnosisExpect{{Code: "x"}}, map[string]any{}); len(got) != 1 {
		t.Errorf("a document without verdicts: %v", got)
	}
	for _, bad := range []string{`{rank: first}`, `{code: x, rank: last}`, `{code: x, certainty: sure}`, `{code: x, values: [rtt]}`, `{code: x, more: 1}`} {
		if _, err := ParseScenario("x", []byte("name: x\ntopology: pair\ncc: cubic\nclient: fullbore diagnose self\nexpect:\n  exit: 0\n  diagnosis:\n    - "+bad+"\n")); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
