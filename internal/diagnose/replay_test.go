package diagnose_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/diagnose"
	"github.com/fullbore-net/fullbore/internal/explain"
	"github.com/fullbore-net/fullbore/result"
)

var (
	update = flag.Bool("update", false, "rewrite the golden file of verdicts")
	record = flag.String("record", "", "folder of documents of diagnose --json to keep, compacted, under testdata/runs")
)

// loaded keeps what was read: nothing that judges changes it. Tests here do not run in
// parallel.
var loaded = map[string]*result.Report{}

// load reads a recorded diagnosis.
func load(t *testing.T, file string) *result.Report {
	t.Helper()
	if rep := loaded[file]; rep != nil {
		return rep
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	rep, err := result.ReadReport(f)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	loaded[file] = rep
	return rep
}

// keep writes compacted copies of fresh documents.
func keep(t *testing.T, folder string) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing to record in %s: %v", folder, err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		rep := &result.Report{}
		if err := json.Unmarshal(data, rep); err != nil || len(rep.Stages) == 0 {
			t.Logf("%s is no diagnosis: left out (%v)", f, err)
			continue
		}
		before := verdicts(rep)
		diagnose.Compact(rep)
		if after := verdicts(rep); after != before {
			t.Errorf("%s: compacting changes the verdicts:\n%s\n%s", f, before, after)
		}
		rep.Verdicts, rep.Unseen, rep.Summary, rep.Items = nil, nil, "", nil
		pack(t, strings.TrimSuffix(filepath.Base(f), ".json"), rep)
	}
}

// pack writes a recording.
func pack(t *testing.T, name string, rep *result.Report) {
	t.Helper()
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err := json.NewEncoder(z).Encode(rep); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("testdata", "runs", name+".json.gz"), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// verdicts spells what a report's history comes to, one line each.
func verdicts(rep *result.Report) string {
	var b strings.Builder
	for _, v := range diagnose.Judge(diagnose.History(rep), rep.Facts) {
		kind := "cause"
		if v.Note {
			kind = "note"
		}
		fmt.Fprintf(&b, "%s %s %s %s %s:", kind, v.Code, v.Certainty, v.Direction, v.Host)
		for _, x := range v.Values {
			fmt.Fprintf(&b, " %s=%.4g%s", x.Name, x.Value, x.Unit)
		}
		if v.Reach != nil {
			fmt.Fprintf(&b, " reach=%.4g", *v.Reach)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func recorded(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/runs/*.json.gz")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d recorded runs: %v", len(files), err)
	}
	return files
}

// TestReplay judges every recorded diagnosis of the lab's scenarios: the verdicts, their
// certainty and their figures are those of the golden file, in milliseconds.
func TestReplay(t *testing.T) {
	if *record != "" {
		keep(t, *record)
	}
	if *update {
		derive(t)
	}
	var b strings.Builder
	var spent time.Duration
	for _, f := range recorded(t) {
		rep := load(t, f)
		began := time.Now()
		text := verdicts(rep)
		spent += time.Since(began)
		fmt.Fprintf(&b, "== %s\n%s", strings.TrimSuffix(filepath.Base(f), ".json.gz"), text)
	}
	t.Logf("judged in %v", spent)
	const golden = "testdata/verdicts.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestVerdictsAreWellFormed holds whatever is said, of whole histories and of their
// beginnings: one sentence, figures without NaN, known codes, a cause or inconclusive.
func TestVerdictsAreWellFormed(t *testing.T) {
	codes := diagnose.Codes()
	for _, f := range recorded(t) {
		rep := load(t, f)
		whole := diagnose.History(rep)
		for n := 1; n <= len(whole); n++ {
			vs := diagnose.Judge(whole[:n], rep.Facts)
			causes := 0
			for _, v := range vs {
				if !v.Note {
					causes++
				}
				if !slices.Contains(codes, v.Code) {
					t.Errorf("%s: code %q is not in Codes", f, v.Code)
				}
				if !slices.Contains([]string{diagnose.Proven, diagnose.Likely, diagnose.Possible}, v.Certainty) {
					t.Errorf("%s: certainty %q", f, v.Certainty)
				}
				all := v.Summary + strings.Join(v.Evidence, " ") + strings.Join(v.Advice, " ")
				for _, bad := range []string{"NaN", "Inf", "%!", "\n"} {
					if strings.Contains(all, bad) {
						t.Errorf("%s, %d stages: %q in %s", f, n, bad, all)
					}
				}
				if !strings.HasSuffix(v.Summary, ".") || len(v.Evidence) == 0 {
					t.Errorf("%s: %s: %q with %d lines of evidence", f, v.Code, v.Summary, len(v.Evidence))
				}
				if v.Certainty == diagnose.Proven && !v.Note && !strings.Contains(all, "changed:") && v.Code != diagnose.ScalingLost {
					t.Errorf("%s: %s is called proven, and nothing was changed", f, v.Code)
				}
			}
			if causes == 0 {
				t.Errorf("%s, %d stages: neither a cause nor inconclusive", f, n)
			}
		}
	}
}

// TestCleanPathsHaveNoCause: where nothing is wrong, nothing is said to be.
func TestCleanPathsHaveNoCause(t *testing.T) {
	n := 0
	for _, f := range recorded(t) {
		if !strings.Contains(f, "clean") && !strings.Contains(f, "asymmetric") {
			continue
		}
		n++
		rep := load(t, f)
		whole := diagnose.History(rep)
		for k := 1; k <= len(whole); k++ {
			for _, v := range diagnose.Judge(whole[:k], rep.Facts) {
				if !v.Note && v.Code != diagnose.PathFull && v.Code != diagnose.LinkFull && v.Code != diagnose.Inconclusive {
					t.Errorf("%s after %d stages: %s", f, k, v.Summary)
				}
			}
		}
	}
	if n < 3 {
		t.Errorf("only %d clean paths were recorded", n)
	}
}

// TestEveryCodeIsExplained: `fullbore explain` knows every verdict, and explains none that
// does not exist.
func TestEveryCodeIsExplained(t *testing.T) {
	for _, code := range diagnose.Codes() {
		ok := false
		for _, topic := range explain.Lookup(code) {
			ok = ok || topic.Kind == explain.Verdict || topic.Kind == explain.Limit
		}
		if !ok {
			t.Errorf("verdict %q has no topic", code)
		}
	}
	for _, topic := range explain.All() {
		if topic.Kind == explain.Verdict && !slices.Contains(diagnose.Codes(), topic.Word) {
			t.Errorf("%q is explained, but no verdict", topic.Word)
		}
	}
}
