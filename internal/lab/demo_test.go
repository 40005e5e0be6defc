package lab

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDemos: five stops, each with all its words, a scenario that can be played with a
// diagnosis in it, and figures that are the scenario's own.
func TestDemos(t *testing.T) {
	all, err := Demos()
	if err != nil || len(all) != 5 {
		t.Fatalf("%d stops, error %v", len(all), err)
	}
	for _, d := range all {
		for _, text := range []string{d.Title, d.Path, d.Feels, d.Learn, d.Try} {
			if text == "" {
				t.Errorf("%s: a text is missing", d.Name)
			}
		}
		if len(d.Expect.Diagnosis) == 0 || !slices.Contains(d.Client, "diagnose") || !slices.Contains(d.Client, "--json") || !slices.Contains(d.Client, "--no-store") {
			t.Errorf("%s: the client is %q, and %d verdicts are expected", d.Name, d.Client, len(d.Expect.Diagnosis))
		}
		for _, x := range d.Truth {
			if !slices.ContainsFunc(d.Expect.Diagnosis, func(e DiagnosisExpect) bool { return e.Code == x.Code }) {
				t.Errorf("%s: %s is not expected", d.Name, x.Code)
			}
			link := d.Scenario.Path.Links[0]
			is := map[string]float64{
				"rate_l3": float64(link.BitsPerSecond),
				"rtt":     (link.Delay + d.Scenario.Path.Links[1].Delay).Seconds(),
				"queue":   float64(link.QueueBytes) * 8 / float64(max(link.BitsPerSecond, 1)),
				"mtu":     float64(link.Hole),
			}[x.Value]
			if is != x.Is {
				t.Errorf("%s: the %s is told as %v, and the scenario has %v", d.Name, x.What, x.Is, is)
			}
		}
	}
	two, err := Demos("hole", "clean")
	if err != nil || len(two) != 2 || two[0].Name != "hole" || two[1].Name != "clean" {
		t.Errorf("a choice of two: %v, error %v", two, err)
	}
	if _, err := Demos("clean", "nothing"); err == nil || !strings.Contains(err.Error(), `"nothing"; there are: clean, window`) {
		t.Errorf("an unknown stop: %v", err)
	}
	if files, _ := filepath.Glob("demo/*.scenario"); len(files) != len(all) {
		t.Errorf("%d files for %d stops", len(files), len(all))
	}
}
