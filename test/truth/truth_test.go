package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// folder makes a folder of small scenarios and a program, and opens a state.
func folder(t *testing.T) (dir string, all []file, s *state) {
	t.Helper()
	dir = t.TempDir()
	write(t, filepath.Join(dir, "program"), "program 1")
	write(t, filepath.Join(dir, "host.json"), "{}")
	for name, expect := range map[string]string{
		"rate-a":          "expect: {exit: 0}",
		"diagnose-hole-b": "expect: {exit: 0, diagnosis: [{code: shaper, rank: none}, {code: mtu-hole}]}",
		"diagnose-bloat":  "facts: host.json\nserver: fullbore $FACTS\nexpect: {exit: 0, diagnosis: [{code: standing-queue, rank: any}]}",
	} {
		write(t, filepath.Join(dir, name+".scenario"), "name: "+name+"\ntopology: pair\ncc: reno\nclient: fullbore test\n"+expect+"\n")
	}
	all, err := scenarios(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, all, reopen(t, dir, all)
}

func reopen(t *testing.T, dir string, all []file) *state {
	t.Helper()
	s, err := openState(filepath.Join(dir, "state.json"), filepath.Join(dir, "program"), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if err := s.prepare(f); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// played is an outcome of one play that counted, behind a void one.
func played(verdict lab.Verdict, stdout string, reasons ...string) lab.Outcome {
	return lab.Outcome{Verdict: verdict, Reasons: reasons, Plays: []lab.Play{
		{Void: []string{"late"}},
		{Client: lab.Result{Stdout: stdout}},
	}}
}

// TestResume: what was played is known again, until the program, the scenario or its facts
// change, each for what it touches.
func TestResume(t *testing.T) {
	dir, all, s := folder(t)
	for _, f := range all {
		s.of(f).count(f.scenario, played(lab.Right, "{}"), time.Second)
	}
	if err := s.save(); err != nil {
		t.Fatal(err)
	}
	rounds := func() (out []int) {
		s := reopen(t, dir, all)
		for _, f := range all {
			out = append(out, s.of(f).rounds())
		}
		return out
	}
	same := func(what string, want ...int) {
		t.Helper()
		got := rounds()
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: rounds of %s: %d, want %d", what, all[i].key, got[i], want[i])
			}
		}
	}
	same("nothing changed", 1, 1, 1)
	write(t, filepath.Join(dir, "notes.md"), "a document")
	same("a document changed", 1, 1, 1)
	write(t, filepath.Join(dir, "host.json"), `{"a": 1}`)
	same("facts changed", 0, 1, 1)
	write(t, all[2].path, "name: other\ntopology: pair\ncc: reno\nclient: fullbore test\nexpect: {exit: 0}\n")
	same("a scenario changed", 0, 1, 0)
	write(t, filepath.Join(dir, "program"), "program 2")
	same("the program changed", 0, 0, 0)
	// An earlier program's plays count where it is named, and the table says so.
	write(t, filepath.Join(dir, "before"), "program 1")
	if _, err := openState(filepath.Join(dir, "state.json"), filepath.Join(dir, "program"), "before"); err == nil {
		t.Error("an earlier program without a commit was taken")
	}
	s, err := openState(filepath.Join(dir, "state.json"), filepath.Join(dir, "program"), "abc1234="+filepath.Join(dir, "before"))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range all {
		if err := s.prepare(f); err != nil {
			t.Fatal(err)
		}
		if want := i == 1; (s.of(f).rounds() == 1) != want { // the others changed
			t.Errorf("rounds of %s: %d", f.key, s.of(f).rounds())
		}
	}
	if text := page(all, s, "Commit x."); !strings.Contains(text, "Of them, 1 plays were made by programs of earlier commits (abc1234)") || !strings.Contains(text, " abc1234 |") {
		t.Error(text)
	}
}

// TestPage: the table has the wrong answer where it belongs, all families, and the sum.
func TestPage(t *testing.T) {
	_, all, s := folder(t)
	bloat, hole, rate := all[0], all[1], all[2]
	s.of(bloat).count(bloat.scenario, played(lab.Right, `{"verdicts": [{"code": "path-full"}, {"code": "standing-queue", "note": true}]}`), 20*time.Second)
	for range 2 {
		s.of(hole).count(hole.scenario, played(lab.Right, `{"verdicts": [{"code": "mtu-hole"}]}`), 10*time.Second)
	}
	s.of(hole).count(hole.scenario, played(lab.Wrong, `{"verdicts": [{"code": "firewall"}, {"code": "mtu-hole"}]}`, "wanted mtu-hole"), 10*time.Second)
	for range wanted {
		s.of(rate).count(rate.scenario, played(lab.Right, "not JSON"), time.Second)
	}
	text := page(all, s, "Commit x.")
	for _, want := range []string{
		"Commit x.",
		"**3 scenarios: 1 right, 1 wrong (0 of them known), 0 that the machine was not fit for, 1 not finished; 7 plays counted, 7 were void; 1m0s; 0 B over the links.**",
		"|  | expected | 1 | 2 | 3 |",
		"| 1 | firewall | | | |",
		"| 2 | mtu-hole | **1** | 2 | |",
		"| 3 | standing-queue | | | 1 |",
		"### Diagnoses: the path itself",
		"### Rates and bytes",
		"| **wrong** | mtu-hole | 2 | 1 | 0 | 3 | 10 |",
		"| not finished | standing-queue | 1 | 0 | 0 | 1 | 20 |",
		"- diagnose-hole-b: wanted mtu-hole",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// TestRecorded: a table that was written before stands for what was not played again, as long as the scenario is
// the same; what has been played again, or was wrong then, is not taken from it.
func TestRecorded(t *testing.T) {
	dir, all, s := folder(t)
	bloat, hole, rate := all[0], all[1], all[2]
	for range wanted {
		s.of(bloat).count(bloat.scenario, played(lab.Right, `{"verdicts": [{"code": "standing-queue"}]}`), 20*time.Second)
		s.of(rate).count(rate.scenario, played(lab.Right, "not JSON"), time.Second)
		s.of(hole).count(hole.scenario, played(lab.Wrong, `{"verdicts": [{"code": "firewall"}]}`, "wanted mtu-hole"), 10*time.Second)
	}
	s.of(bloat).Again = wanted
	s.of(rate).earlier = "abc1234"
	before := filepath.Join(dir, "before.md")
	write(t, before, page(all, s, "Commit def5678. Played somewhere."))

	write(t, filepath.Join(dir, "program"), "program 2")
	s = reopen(t, dir, all)
	var asked []string
	if err := s.record(before, all, func(commit string, files ...string) bool {
		asked = append(asked, fmt.Sprint(commit, len(files)))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"def56782", "abc12341"}; !slices.Equal(asked, want) {
		t.Errorf("asked of %q, want %q", asked, want)
	}
	text := page(all, s, "Commit 9999999. Played.")
	for _, want := range []string{
		"**3 scenarios: 2 right, 0 wrong (0 of them known), 0 that the machine was not fit for, 1 not finished; 6 plays counted, 6 were void; 1m0s;",
		"Of them, 3 plays of diagnoses were made by an earlier program and judged again by later rules",
		"Of them, 6 plays were made by programs of earlier commits (abc1234, def5678)",
		"| right |  | 3 | 0 | 0 | 3 | 1 | " + s.shown(rate).Date + " | abc1234 |",
		"| right | standing-queue | 3 | 0 | 0 | 3 | 20 | " + s.shown(bloat).Date + " | def5678, judged again |",
		"| not played | mtu-hole |",
		"| 1 | standing-queue | 3 |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}

	// The new table says the same of the old plays, and new ones count alone.
	write(t, before, text)
	for range wanted {
		s.of(rate).count(rate.scenario, played(lab.Right, "not JSON"), 2*time.Second)
	}
	if err := s.record(before, all, func(string, ...string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if e := s.shown(bloat); e.program() != "def5678, judged again" || e.Right != wanted {
		t.Errorf("%+v", e)
	}
	if e := s.shown(rate); e.program() != "" || e.Seconds != 6 {
		t.Errorf("%+v", e)
	}
	if err := s.record(before, all, func(string, ...string) bool { return false }); err != nil || len(s.recorded) != 0 {
		t.Errorf("scenarios that changed: %v, %v", s.recorded, err)
	}
	if s.record(filepath.Join(dir, "program"), all, nil) == nil {
		t.Error("something else was taken for a table")
	}
}

// TestUnfit: a round that the machine spoiled is neither right nor wrong.
func TestUnfit(t *testing.T) {
	_, all, s := folder(t)
	e := s.of(all[2])
	for range wanted {
		e.count(all[2].scenario, lab.Outcome{Verdict: lab.Unfit, Plays: []lab.Play{{Void: []string{"steal"}}, {Void: []string{"steal"}}}}, time.Second)
	}
	if e.verdict("rate-a") != "machine unfit" || !e.done(wanted) || e.Voids != 6 {
		t.Errorf("%s, %+v", e.verdict("rate-a"), e)
	}
	if sum(all, s).unfit != 1 {
		t.Errorf("%v", sum(all, s))
	}
}

// TestChoose: patterns, several of them, and none that fits.
func TestChoose(t *testing.T) {
	_, all, _ := folder(t)
	got, err := choose(all, "rate-*, diagnose-h*")
	if err != nil || len(got) != 2 || got[0].key != "diagnose-hole-b" || got[1].key != "rate-a" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := choose(all, "no*"); err == nil {
		t.Error("a pattern that nothing is like is taken")
	}
	if _, err := choose(all, "["); err == nil {
		t.Error("a bad pattern is taken")
	}
}

// TestFamilies: every scenario that is shipped has a family.
func TestFamilies(t *testing.T) {
	all, err := scenarios("../../testdata/scenarios")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if family(f.key) == others {
			t.Errorf("%s is in no family", f.key)
		}
	}
}
