package sample

import (
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// SoakOfADay is the report of a soak of 24 h: 86,400 seconds of each direction, with 300 outages, a second
// in a thousand that was not measured, and a fall to four fifths after 50,000 s.
func SoakOfADay() *result.Report {
	const day, outages, fall = 86400, 300, 50000
	s := &result.Soak{
		Asked: day, Length: day, Tests: 3, Restarts: 2, Gaps: []result.SoakGap{},
		Machine: &result.SoakMachine{
			CPU: ptr(31.0), MaxCelsius: ptr(67.0), MinMHz: ptr(1800), MaxMHz: ptr(3600), Throttles: ptr(int64(2)),
			FirstMemory: ptr(int64(31e6)), LastMemory: ptr(int64(32e6)), Growth: ptr(0.032),
		},
	}
	for k := range outages {
		s.Outages = append(s.Outages, result.Outage{Direction: "both", Start: 100 + 250*float64(k), Length: 1.5 + float64(k%7), Stalled: 2 + float64(k%7), Basis: "reach", Why: "silent"})
	}
	for _, d := range []result.Direction{result.Up, result.Down} {
		w := result.SoakWay{
			Direction: d, Basis: "receiver", Levels: []result.SoakLevel{{Share: 1, Reference: 941e6}}, Step: 1,
			Figures: result.SoakFigures{
				Direction: d, Measured: 86000, Median: ptr(941e6), P1: ptr(3e6), P5: ptr(930e6), Min: ptr(0.0), Max: ptr(949e6),
				Availability: ptr(0.9871), Outages: outages, Retransmits: ptr(int64(12345)),
			},
			Trend:  &result.SoakTrend{Slope: -0.004, P: 0.3, Block: 432, N: 200},
			Shifts: []result.SoakShift{{At: fall, Before: 1, After: 0.8, Ratio: 0.8, Stays: true}},
			Rates:  make([]*float64, day),
		}
		for i := range w.Rates {
			v := 941e6 + float64((i*7919)%9001)*1e3
			switch {
			case i%1000 == 999:
				continue // not measured
			case i%250 < 3:
				v = 0
			case i >= fall:
				v *= 0.8
			}
			w.Rates[i] = &v
		}
		s.Ways = append(s.Ways, w)
	}
	for h := range 24 {
		x := result.SoakHour{Start: float64(h) * 3600, CPU: ptr(30.0), Busiest: ptr(0.7), Memory: ptr(int64(31e6)), MinMHz: ptr(2400), MaxCelsius: ptr(61.0)}
		if h == 14 {
			x.MinMHz, x.MaxCelsius, x.Throttles = ptr(1800), ptr(67.0), ptr(int64(2))
		}
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
