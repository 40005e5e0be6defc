package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/fullbore-net/fullbore/internal/diagnose"
	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/result"
)

// again judges the kept plays of diagnoses (see keep) by the rules of this tree. What a play measured stays
// true when a rule changes, so a play of an earlier program counts with what is said of it now; the table
// says how many are of that kind. A scenario without kept plays keeps its entry.
func (s *state) again(files []file, folder string, known map[string]*entry) error {
	for _, f := range files {
		if len(f.scenario.Expect.Diagnosis) == 0 {
			continue
		}
		kept, err := filepath.Glob(filepath.Join(folder, f.key+"-[0-9].json.gz"))
		if err != nil {
			return err
		}
		if len(kept) == 0 {
			continue
		}
		slices.Sort(kept)
		e := s.of(f)
		if old := known[f.key]; old != nil {
			e.Unfit, e.Cannot, e.Voids, e.Seconds, e.Bytes, e.Date = old.Unfit, old.Cannot, old.Voids, old.Seconds, old.Bytes, old.Date
		}
		e.Right, e.Wrong, e.Again, e.Said, e.Reasons = 0, 0, 0, nil, nil
		for _, name := range kept {
			doc, err := rejudged(name)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			faults, err := faultsOf(f.scenario, doc)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if len(faults) == 0 {
				e.Right++
			} else {
				e.Wrong++
				e.Reasons = append(e.Reasons, faults...)
			}
			e.Again++
			e.Said = append(e.Said, said(f.scenario, string(doc)))
		}
	}
	return nil
}

// rejudged is what the rules of this tree say of a kept document, as a document.
func rejudged(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	rep, err := result.ReadReport(f)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"verdicts": diagnose.Judge(diagnose.History(rep), rep.Facts)})
}

// faultsOf holds a document against what a scenario says must be said.
func faultsOf(s *lab.Scenario, doc []byte) ([]string, error) {
	var v any
	if err := json.Unmarshal(doc, &v); err != nil {
		return nil, err
	}
	return lab.JudgeDiagnosis(s.Expect.Diagnosis, v), nil
}
