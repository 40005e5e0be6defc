package pacing

import (
	"math"
	"math/rand/v2"
	"testing"
)

// regular makes bursts of n at exactly the rate, each late by what late says.
func regular(s Schedule, bursts int, late func(i int) int64) (out []Arrival) {
	for i := range bursts {
		at := int64(1e9) + int64(math.Round(s.TimeOf(int64(i)*s.Planned)))
		if late != nil {
			at += late(i)
		}
		for k := range s.Planned {
			out = append(out, Arrival{At: at + 1000*k, Sent: at - 5000, Seq: 1 + int64(i)*s.Planned + k, Count: 1})
		}
	}
	return out
}

func TestLook(t *testing.T) {
	single := Schedule{Rate: 11_200_000, Size: 1400, Planned: 1} // each 1 ms
	triple := Schedule{Rate: 500_000_000, Size: 1400, Planned: 3}
	ms := int64(1e6)
	for _, c := range []struct {
		name             string
		s                Schedule
		in               []Arrival
		apart            []Span
		rateError        float64
		median, most     int64
		outside, missing int64
		excess, bursts   int
	}{
		{name: "exact", s: single, in: regular(single, 1000, nil), median: 1, most: 1, outside: 1, bursts: 1000},
		{name: "exact bursts", s: triple, in: regular(triple, 1000, nil), median: 3, most: 3, outside: 3, bursts: 1000},
		{
			name: "each late by a while", s: single, in: regular(single, 1000, func(i int) int64 { return int64(i%7) * 50_000 }),
			median: 1, most: 1, outside: 1, bursts: 1000, rateError: -float64(999%7) * 50_000 / 999e6,
		},
		{
			name: "one stall of 20 ms and all at once", s: single, median: 1, most: 20, outside: 20, excess: 1, bursts: 981,
			in: regular(single, 1000, func(i int) int64 {
				if i < 500 || i >= 520 {
					return 0
				}
				return int64(520-i)*ms - 900_000
			}),
		},
		{
			name: "the same, told", s: single, median: 1, most: 20, outside: 1, bursts: 981,
			apart: []Span{{1500 * ms, 1520 * ms}},
			in: regular(single, 1000, func(i int) int64 {
				if i < 500 || i >= 520 {
					return 0
				}
				return int64(520-i)*ms - 900_000
			}),
		},
		{
			name: "two next to each other are one more than planned", s: single, median: 1, most: 2, outside: 2, bursts: 999,
			in: regular(single, 1000, func(i int) int64 {
				if i == 500 {
					return 600_000
				}
				return 0
			}),
		},
		{
			name: "too slow by 0.2 %", s: Schedule{Rate: 11_200_000, Size: 1400}, median: 1, most: 1, outside: 1, bursts: 1000,
			in: regular(Schedule{Rate: 11_177_600, Size: 1400, Planned: 1}, 1000, nil), rateError: -0.002,
		},
		{
			name: "super-packets", s: Schedule{Rate: 1_000_000_000, Size: 1448, Planned: 44}, median: 44, most: 44, outside: 44, bursts: 3,
			in: []Arrival{
				{At: 1000, Seq: 1, Count: 44},
				{At: 1000 + 44*11584, Seq: 45, Count: 44},
				{At: 1000 + 88*11584, Seq: 89, Count: 44},
			},
		},
		{
			name: "one missing", s: single, median: 1, most: 1, outside: 1, bursts: 999, missing: 1,
			in: append(regular(single, 1000, nil)[:400:400], regular(single, 1000, nil)[401:]...),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			rand.Shuffle(len(c.in), func(i, j int) { c.in[i], c.in[j] = c.in[j], c.in[i] })
			r, ok := Look(c.in, c.s, c.apart)
			if !ok {
				t.Fatal("no report")
			}
			if math.Abs(r.RateError-c.rateError) > 1e-7 {
				t.Errorf("rate error %v, want %v", r.RateError, c.rateError)
			}
			if r.Median != c.median || r.Largest != c.most || r.Outside != c.outside || r.Excess != c.excess || r.Bursts != c.bursts || r.Missing != c.missing {
				t.Errorf("%+v; want median %d, largest %d, outside %d, excess %d of %d, missing %d",
					r, c.median, c.most, c.outside, c.excess, c.bursts, c.missing)
			}
		})
	}
}

func TestLookTimes(t *testing.T) {
	s := Schedule{Rate: 11_200_000, Size: 1400, Planned: 1}
	r, ok := Look(regular(s, 101, func(i int) int64 { return int64(i) * 100 }), s, nil)
	if !ok || r.Delivery == nil || r.Schedule == nil {
		t.Fatalf("%+v", r)
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"delivery, least", r.Delivery.Least, 5e-6},
		{"delivery, most", r.Delivery.Most, 5e-6},
		{"lateness, least", r.Schedule.Least, 0},
		{"lateness, half", r.Schedule.P50, 5e-6},
		{"lateness, 99 %", r.Schedule.P99, 9.9e-6},
		{"lateness, most", r.Schedule.Most, 10e-6},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}

// With the sender's word of its least lateness the beginning is known, also from the
// middle on, and lateness is no longer relative.
func TestBegins(t *testing.T) {
	s := Schedule{Rate: 11_200_000, Size: 1400, Planned: 1}
	in := regular(s, 101, func(i int) int64 { return 30_000 + int64(i)*100 })[10:] // sent 5 µs before
	s.Begun = Begins(in, s, 26e-6)
	if want := int64(1e9); s.Begun != want {
		t.Fatalf("begins at %d, want %d", s.Begun, want)
	}
	r, ok := Look(in, s, nil)
	if !ok || math.Abs(r.Schedule.Least-31e-6) > 1e-9 || math.Abs(r.Schedule.Most-40e-6) > 1e-9 {
		t.Errorf("%+v; want lateness 31 … 40 µs", r.Schedule)
	}
}

func TestLookNeedsTwoBursts(t *testing.T) {
	s := Schedule{Rate: 11_200_000, Size: 1400, Planned: 1}
	for _, in := range [][]Arrival{nil, regular(s, 1, nil)} {
		if r, ok := Look(in, s, nil); ok {
			t.Errorf("%d arrivals: %+v", len(in), r)
		}
	}
}
