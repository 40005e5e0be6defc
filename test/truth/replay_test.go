package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// recordings are diagnoses of the lab's scenarios, one of each.
const recordings = "../../internal/diagnose/testdata/runs"

// TestReplay holds the recorded run of every scenario with a diagnosis against what the
// scenario says must be said: design §8, the tier of milliseconds.
func TestReplay(t *testing.T) {
	files, err := filepath.Glob("../../testdata/scenarios/*.scenario")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	played := map[string]bool{}
	for _, f := range files {
		s, err := lab.LoadScenario(f)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Expect.Diagnosis) == 0 {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(f), ".scenario")
		played[name] = true
		t.Run(name, func(t *testing.T) {
			doc, err := rejudged(filepath.Join(recordings, name+".json.gz"))
			if err != nil {
				t.Fatal(err)
			}
			faults, err := faultsOf(s, doc)
			if err != nil {
				t.Fatal(err)
			}
			if why, known := knownWrong[name]; known {
				if len(faults) == 0 {
					t.Errorf("is right now: take it out of knownWrong (%s)", why)
				}
				t.Logf("known to be wrong (%s): %q", why, faults)
				return
			}
			for _, fault := range faults {
				t.Error(fault)
			}
		})
	}
	kept, err := filepath.Glob(filepath.Join(recordings, "*.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range kept {
		if name := strings.TrimSuffix(filepath.Base(f), ".json.gz"); !played[name] {
			t.Errorf("%s is recorded, and there is no scenario of that name", name)
		}
	}
	if len(played) < 60 {
		t.Errorf("only %d scenarios of diagnoses", len(played))
	}
	for name := range knownWrong {
		if !played[name] {
			t.Errorf("knownWrong has %s, which is no scenario", name)
		}
	}
}
