package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// The table that was committed before is a record of plays, too. Where a scenario's own file is as it was
// then, its row may stand for those that have not been played again, under the commit of the program that it
// names.

var (
	reRow     = regexp.MustCompile(`^\| \[.*\]\(\.\./(\S+)\.scenario\) \| (.*) \|$`)
	reHead    = regexp.MustCompile(`^Commit ([0-9a-f]{7,})\. `)
	reProgram = regexp.MustCompile(`^([0-9a-f]{7,})?(?:, )?(judged again)?$`)
)

// record adds the rows of a table that was written before, as entries that count where nothing newer is known.
// unchanged reports that files are as they were at a commit. A row with a wrong answer, or without enough
// plays, is left out.
func (s *state) record(name string, files []file, unchanged func(commit string, files ...string) bool) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	head := ""
	rows := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if m := reHead.FindStringSubmatch(line); m != nil {
			head = m[1]
		}
		if m := reRow.FindStringSubmatch(line); m != nil {
			rows[filepath.Base(m[1])] = strings.Split(m[2], " | ")
		}
	}
	if head == "" {
		return fmt.Errorf("%s: it does not say of which commit it is", name)
	}
	s.recorded = map[string]*entry{}
	for _, f := range files {
		e := recordedEntry(rows[f.key])
		if e == nil || e.rounds() < wanted || e.Wrong+e.Unfit > 0 {
			continue
		}
		e.Name = f.scenario.Name
		if len(f.scenario.Expect.Diagnosis) > 0 {
			code, _ := expected(f.scenario)
			for range e.Right {
				e.Said = append(e.Said, code) // none was wrong
			}
		}
		if e.earlier == "" {
			e.earlier = head
		}
		if unchanged(e.earlier, f.files()...) {
			s.recorded[f.key] = e
		}
	}
	return nil
}

// recordedEntry reads a row's cells behind the first; nil = it was not played, or is no row of ours.
func recordedEntry(cells []string) *entry {
	if len(cells) != 9 {
		return nil
	}
	var n [5]int // right, wrong, unfit, void, s
	for i := range n {
		v, err := strconv.Atoi(strings.TrimSpace(cells[2+i]))
		if err != nil {
			return nil
		}
		n[i] = v
	}
	m := reProgram.FindStringSubmatch(strings.TrimSpace(cells[8]))
	if m == nil {
		return nil
	}
	e := &entry{Right: n[0], Wrong: n[1], Unfit: n[2], Voids: n[3], Date: strings.TrimSpace(cells[7]), earlier: m[1]}
	e.Seconds = float64(n[4] * e.rounds())
	if m[2] != "" {
		e.Again = e.Right
	}
	return e
}

// files are those that a scenario consists of.
func (f file) files() []string {
	if f.scenario.Facts == "" {
		return []string{f.path}
	}
	return []string{f.path, f.scenario.Facts}
}

// unchangedSince asks git.
func unchangedSince(commit string, files ...string) bool {
	return exec.Command("git", append([]string{"diff", "--quiet", commit, "--"}, files...)...).Run() == nil
}
