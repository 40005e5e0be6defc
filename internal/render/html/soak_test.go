package html_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/render/html"
	"github.com/fullbore-net/fullbore/internal/render/json"
	"github.com/fullbore-net/fullbore/result"
)

// aDay is the document of a soak of 24 h: 86,400 intervals of each direction, read from its JSON.
func aDay(t testing.TB) *result.Report {
	t.Helper()
	p := func(v float64) *float64 { return &v }
	s := &result.Soak{Asked: 86400, Length: 86400, Tests: 3, Restarts: 2, Gaps: []result.SoakGap{}, Machine: &result.SoakMachine{CPU: p(31)}}
	for k := range 300 {
		s.Outages = append(s.Outages, result.Outage{Direction: "both", Start: 100 + 250*float64(k), Length: 1.5 + float64(k%7), Stalled: 2 + float64(k%7), Basis: "reach", Why: "silent"})
	}
	for _, d := range []result.Direction{result.Up, result.Down} {
		w := result.SoakWay{
			Direction: d, Basis: "receiver", Levels: []result.SoakLevel{{Share: 1, Reference: 941e6}}, Step: 1,
			Figures: result.SoakFigures{Direction: d, Measured: 86000, Median: p(941e6), P1: p(3e6), P5: p(930e6), Min: p(0), Max: p(949e6), Availability: p(0.9871), Outages: 300},
			Trend:   &result.SoakTrend{Slope: -0.004, P: 0.3, Block: 432, N: 200},
			Shifts:  []result.SoakShift{{At: 50000, Before: 1, After: 0.8, Ratio: 0.8, Stays: true}},
			Rates:   make([]*float64, 86400),
		}
		for i := range w.Rates {
			v := 941e6 + float64((i*7919)%9001)*1e3
			switch {
			case i%1000 == 999:
				continue // not measured
			case i%250 < 3:
				v = 0
			case i >= 50000:
				v *= 0.8
			}
			w.Rates[i] = &v
		}
		s.Ways = append(s.Ways, w)
	}
	for h := range 24 {
		x := result.SoakHour{Start: float64(h) * 3600, CPU: p(30), MaxCelsius: p(61)}
		for i := range s.Ways {
			x.Ways = append(x.Ways, s.Ways[i].Figures)
		}
		s.Hours = append(s.Hours, x)
	}
	rep := &result.Report{
		Schema: result.Schema, Kind: "soak", Tool: result.Tool{Name: "fullbore", Version: "1"}, Started: time.Unix(1_800_000_000, 0), Inputs: []string{"192.0.2.2"},
		Runs: []*result.Run{}, Verdicts: []result.Verdict{}, Notices: []result.Notice{}, Summary: "In 24h0m0s: a day.", Soak: s,
		Items: []result.Item{{ID: "outages", Result: result.Fail, Reasons: []string{"300 outages"}}},
	}
	var doc bytes.Buffer
	if err := json.WriteReport(&doc, rep); err != nil {
		t.Fatal(err)
	}
	rep, err := result.ReadReport(&doc)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// TestSoakOfADay: the page of 86,400 intervals is below 2 MB and still shows what was bad. (How long
// it takes is BenchmarkSoakOfADay's to say: 2 s are allowed, some hundredths are needed.)
func TestSoakOfADay(t *testing.T) {
	rep := aDay(t)
	began := time.Now()
	text := page(t, rep)
	t.Logf("%d bytes in %v", len(text), time.Since(began))
	if len(text) >= 2_000_000 {
		t.Errorf("the page has %d bytes", len(text))
	}
	sound(t, "soak", text)
	for _, want := range []string{"Soak of the path to 192.0.2.2", "Steadiness down", "98.710 %", "level -20 % after 13h53m20s", "Hour by hour", "100 more are in the document.", "the path did not answer"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if n := strings.Count(text, "<tr>"); n > 500 {
		t.Errorf("%d rows of tables", n)
	}
}

func BenchmarkSoakOfADay(b *testing.B) {
	rep := aDay(b)
	for b.Loop() {
		var out bytes.Buffer
		if err := html.WriteReport(&out, rep); err != nil {
			b.Fatal(err)
		}
	}
}
