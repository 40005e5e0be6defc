package browser

import (
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// aDay is a soak of 24 h: 86,400 seconds of each direction, with outages, a second without a
// figure now and then, and a fall to four fifths late in the day.
func aDay() *result.Report {
	p := func(v float64) *float64 { return &v }
	const day = 86400
	s := &result.Soak{Asked: day, Length: day, Tests: 3, Restarts: 2, Gaps: []result.SoakGap{}, Machine: &result.SoakMachine{CPU: p(31)}}
	for k := range 300 {
		s.Outages = append(s.Outages, result.Outage{Direction: "both", Start: 100 + 250*float64(k), Length: 1.5 + float64(k%7), Stalled: 2 + float64(k%7), Basis: "reach", Why: "silent"})
	}
	for _, d := range []result.Direction{result.Up, result.Down} {
		f := result.SoakFigures{
			Direction: d, Measured: 86000, Median: p(941e6), P1: p(3e6), P5: p(930e6), Min: p(0), Max: p(949e6),
			Availability: p(0.9871), Outages: 300, Retransmits: new(int64),
		}
		w := result.SoakWay{
			Direction: d, Basis: "receiver", Levels: []result.SoakLevel{{Share: 1, Reference: 941e6}}, Step: 1, Figures: f,
			Trend:  &result.SoakTrend{Slope: -0.004, P: 0.3, Block: 432, N: 200},
			Shifts: []result.SoakShift{{At: 50000, Before: 1, After: 0.8, Ratio: 0.8, Stays: true}},
			Rates:  make([]*float64, day),
		}
		for i := range w.Rates {
			v := 941e6 + float64((i*7919)%9001)*1e3
			switch {
			case i%1000 == 999:
				continue
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
	return &result.Report{
		Schema: result.Schema, Kind: "soak", Tool: result.Tool{Name: "fullbore", Version: "1"}, Started: time.Unix(1_800_000_000, 0), Inputs: []string{"192.0.2.2"},
		Runs: []*result.Run{}, Verdicts: []result.Verdict{}, Notices: []result.Notice{}, Summary: "In 24h0m0s: up 941 Mbit/s typical, 300 outages.", Soak: s,
		Items: []result.Item{{ID: "outages", Result: result.Fail, Reasons: []string{"300 outages"}}},
	}
}
