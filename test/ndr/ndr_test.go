package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// Every case that a seed draws is a scenario, and none is like another.
func TestDraw(t *testing.T) {
	seen := map[string]bool{}
	for _, kind := range kinds() {
		for seed := range uint64(20) {
			c, err := draw(kind, seed+1)
			if err != nil {
				t.Fatal(err)
			}
			again, _ := draw(kind, seed+1)
			text := c.scenario()
			if text != again.scenario() || seen[text] {
				t.Errorf("%s, seed %d: drawn twice, or not twice the same", kind, seed+1)
			}
			seen[text] = true
			file := filepath.Join(t.TempDir(), "x.scenario")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := lab.LoadScenario(file)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if got := strings.Join(s.Client, " "); !strings.Contains(got, "udpmax") {
				t.Errorf("client: %s", got)
			}
			if least, most := c.truth(); !(least > 0 && most > least && most < 1.03*least) && kind != kindHost {
				t.Errorf("%s, seed %d: truth %v … %v", kind, seed+1, least, most)
			}
			if least, _ := c.truth(); kind != kindHost && float64(c.most) < 1.1*least || kind == kindHost && float64(c.most) > 0.9*least {
				t.Errorf("%s, seed %d: the greatest load %d does not fit the truth %v", kind, seed+1, c.most, least)
			}
		}
	}
	if _, err := draw("lnk", 1); err == nil {
		t.Error("a kind that is none")
	}
}

// What an answer is judged to be.
func TestFault(t *testing.T) {
	link := pathCase{kind: kindLink, seed: 1, rate: 50e6, queue: 25_000, size: 1372} // 49 Mbit/s of payload, and 0.2 of the queue
	host := pathCase{kind: kindHost, seed: 1, rate: 400e6, size: 600, most: 150e6}
	limited := []string{"host_limited"}
	for name, c := range map[string]struct {
		row  row
		want string
	}{
		"inside":             {row{pathCase: link, load: 48.6e6, lower: 48.6e6, upper: 49.4e6, width: 0.016}, ""},
		"in the queue":       {row{pathCase: link, load: 49.15e6, lower: 49.15e6, upper: 49.9e6, width: 0.015}, ""},
		"above":              {row{pathCase: link, load: 49.5e6, lower: 49.5e6, upper: 50e6, width: 0.01}, "above the truth"},
		"below":              {row{pathCase: link, load: 48e6, lower: 48e6, upper: 48.5e6, width: 0.01}, "below the truth"},
		"too wide":           {row{pathCase: link, load: 48e6, lower: 48e6, upper: 50e6, width: 0.04}, "apart"},
		"pauses":             {row{pathCase: link, load: 49.4e6, lower: 46e6, upper: 49.9e6}, "paused"},
		"paused a little":    {row{pathCase: link, load: 48.9e6, lower: 48.2e6, upper: 49.4e6, width: 0.024}, ""},
		"one bound":          {row{pathCase: link, load: 48e6, lower: 48e6}, "no two bounds"},
		"flagged":            {row{pathCase: link, load: 48.6e6, lower: 48.6e6, upper: 49.4e6, flags: []string{"irregular"}}, "flagged irregular"},
		"a host in its way":  {row{pathCase: link, load: 48.6e6, lower: 48.6e6, upper: 49.4e6, flags: limited}, "taken for a host's"},
		"told apart":         {row{pathCase: host, flags: limited}, ""},
		"host taken as path": {row{pathCase: host, load: 20e6, lower: 20e6, upper: 21e6}, "taken for the path's"},
	} {
		got := c.row.fault()
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestPage(t *testing.T) {
	r := row{pathCase: pathCase{kind: kindLink, seed: 3, rate: 50e6, queue: 25_000, size: 1372}}
	r.read(`{"findings": [{"name": "loss-free-rate", "direction": "up", "values": [{"name": "lower", "value": 48.6e6, "unit": "bit/s"},
		{"name": "load", "value": 48.7e6, "unit": "bit/s"}, {"name": "upper", "value": 49.4e6, "unit": "bit/s"}, {"name": "width", "value": 0.0162, "unit": "ratio"}, {"name": "trials", "value": 19, "unit": ""},
		{"name": "time", "value": 26.4, "unit": "s"}], "summary": "Up."}]}`)
	bad := row{pathCase: r.pathCase}
	bad.read("nothing")
	rows := []row{r, bad, {pathCase: r.pathCase, unfit: true}}
	got := page(rows, 90*time.Second, "Here.")
	for _, want := range []string{
		"| link | 3 | 49.00 … 49.20 | 48.60 | 49.40 | 1.62 % | 0.21 % | yes | 19 | 26 | 0 |", "**no**: one finding was expected", "| unfit |",
		"Here. **1 of 2 searches are right; 1 could not be played; the longest took 26 s, all together 1m30s.**",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if misses(rows) != 1 {
		t.Errorf("%d misses", misses(rows))
	}
}
