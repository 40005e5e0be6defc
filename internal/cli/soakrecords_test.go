package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/store"
	"github.com/fullbore-net/fullbore/internal/store/storetest"
	"github.com/fullbore-net/fullbore/result"
)

// The records of soaks are bounded as the history is: the oldest go, and never one that is still written, that
// belongs to a run with the tag keep, or that is no record.
func TestSoakRecordsAreBounded(t *testing.T) {
	t.Parallel()
	history := filepath.Join(t.TempDir(), "history.db")
	e, out, errs := historian(history)
	known := e.Getenv
	e.Getenv = func(name string) string {
		if name == historyLimitVariable {
			return "8K"
		}
		return known(name)
	}
	dir := filepath.Join(filepath.Dir(history), "soak")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for name, age := range map[string]time.Duration{
		"now.jsonl": time.Minute, "one.jsonl": 24 * time.Hour, "two.jsonl": 48 * time.Hour, "three.jsonl": 72 * time.Hour, "four.jsonl": 96 * time.Hour,
		"kept.jsonl": 99 * 24 * time.Hour, "own.jsonl": 99 * 24 * time.Hour, "notes.txt": 99 * 24 * time.Hour,
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, make([]byte, 3000), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	left := func() string {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, d := range list {
			name, _, _ := strings.Cut(d.Name(), ".")
			names = append(names, name)
		}
		return strings.Join(names, " ")
	}
	rep := storetest.Report(1)
	rep.Kind, rep.Soak = "soak", &result.Soak{Record: filepath.Join(dir, "kept.jsonl")}
	if err := e.keep(t.Context(), &keepOptions{host: "self", tags: []string{store.KeepTag}}, rep); err != nil || errs.Len() > 0 {
		t.Fatal(err, errs)
	}
	e.boundRecords(t.Context(), filepath.Join(dir, "own.jsonl"))
	if diff := cmp.Diff("kept notes now one own two", left()); diff != "" || !strings.Contains(errs.String(), "the oldest 2 were removed") {
		t.Errorf("%s\n%s", diff, errs)
	}
	e.boundRecords(t.Context(), "")
	if diff := cmp.Diff("kept notes now one two", left()); diff != "" { // its soak is over
		t.Error(diff)
	}
	if files, bytes := e.soakRecords(); files != 4 || bytes != 12000 {
		t.Errorf("%d files, %d bytes", files, bytes)
	}
	b := store.Bounds{Before: now.Add(-36 * time.Hour), DryRun: true}
	for _, want := range []string{"kept notes now one two", "kept notes now one"} {
		out.Reset()
		if err := e.runPrune(t.Context(), b); err != nil || !strings.Contains(out.String(), "1 record of soaks (3.00 kB)") {
			t.Errorf("%v, %s", err, out)
		}
		if diff := cmp.Diff(want, left()); diff != "" {
			t.Error(diff)
		}
		b.DryRun = false
	}
}

// What differs from the run before in its series is marked, and a series can be asked for.
func TestHistoryMarksChanges(t *testing.T) {
	t.Parallel()
	e, out, errs := historian(filepath.Join(t.TempDir(), "history.db"))
	for n := range 6 {
		run := storetest.Run(n)
		run.Hosts.Client = &result.Host{Name: "a", Release: "6.1"}
		run.Hops = []result.Hop{{TTL: 1, Addr: "192.0.2.1"}}
		switch n {
		case 2, 3:
			run.Hosts.Client.Release = "6.2"
		case 4:
			run.Hosts.Client.Release = "6.2"
			run.Hops[0].Addr = "192.0.2.9"
		case 5:
			run.Test.Streams = 8 // another series: nothing to compare with
		}
		if err := e.keepRun(t.Context(), &keepOptions{host: "self", label: map[bool]string{true: "x"}[n == 1]}, run); err != nil || errs.Len() > 0 {
			t.Fatal(err, errs)
		}
	}
	if err := e.runHistory(t.Context(), &filterOptions{}, false, false); err != nil {
		t.Fatal(err)
	}
	var marks []string
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "01KB") {
			f := strings.Fields(line)
			marks = append(marks, map[bool]string{true: f[len(f)-1], false: "-"}[strings.HasPrefix(f[len(f)-1], "≠")])
		}
	}
	if diff := cmp.Diff("- - ≠hosts - ≠way -", strings.Join(marks, " ")); diff != "" {
		t.Errorf("%s\n%s", diff, out)
	}
	s, err := e.history(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for like, want := range map[string]string{storetest.ID(4): "0234", storetest.ID(1): "1", "last": "5"} {
		got, err := (&filterOptions{like: like}).list(t.Context(), s, time.Now())
		ids := ""
		for _, r := range got {
			ids += r.ID[len(r.ID)-1:]
		}
		if err != nil || ids != want {
			t.Errorf("like %s: %s, %v; want %s", like, ids, err, want)
		}
	}
	if got, err := (&filterOptions{like: storetest.ID(4), limit: 2}).list(t.Context(), s, time.Now()); err != nil || len(got) != 2 || got[1].ID != storetest.ID(4) {
		t.Errorf("the newest two: %v, %v", got, err)
	}
	if _, err := (&filterOptions{like: storetest.ID(4), host: "elsewhere"}).list(t.Context(), s, time.Now()); err == nil {
		t.Error("like one, to another host")
	}
}
