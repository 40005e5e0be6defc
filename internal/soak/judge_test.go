package soak

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/delay"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// made is a book of seconds of one direction with the rates that bps gives.
func made(seconds int, bps func(t int) float64) *Book {
	b := NewBook(head(plan.Plan{Direction: plan.Down}, float64(seconds)))
	for t := range seconds {
		b.Add(Line{Second: &Second{Direction: result.Down, T: int64(t), Cover: 1, Bytes: int64(bps(t) / 8), Basis: ByReceiver}})
	}
	return b
}

func noisy(share float64) func(bps float64) float64 {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
	return func(bps float64) float64 { return bps * (1 + share*r.NormFloat64()) }
}

// A credit that is used up after 40 minutes: the moment, the ratio, the payload before it.
func TestLateLimit(t *testing.T) {
	n := noisy(0.02)
	b := made(7200, func(t int) float64 {
		if t >= 2417 {
			return n(300e6)
		}
		return n(1e9)
	})
	s := b.Result()
	l := s.Ways[0].Late
	if l == nil || math.Abs(l.At-2417) > 2 || math.Abs(l.Ratio-0.3) > 0.01 || !l.Stays || !l.Alarm || l.Cause != "" {
		t.Fatalf("%+v", l)
	}
	if want := 2417 * 1e9 / 8; math.Abs(float64(l.Bytes)-want) > 0.01*want {
		t.Errorf("%d bytes before it, want %.0f", l.Bytes, want)
	}
	notices := b.Notices(s)
	if len(notices) != 1 || notices[0].Code != "late-rate-limit" || !strings.Contains(notices[0].Text, "30 %") {
		t.Errorf("%+v", notices)
	}
	if text := b.Summary(s, b.Judge(s)); !strings.Contains(text, "down fell to 30 % after 40m17s") {
		t.Error(text)
	}
}

func TestLateLimitCauses(t *testing.T) {
	p := func(v int) *int { return &v }
	c := func(v int64) *int64 { return &v }
	f := func(v float64) *float64 { return &v }
	for cause, m := range map[string][2]Machine{
		"clock":   {{MHz: p(3400)}, {MHz: p(1800)}},
		"thermal": {{Throttles: c(5)}, {Throttles: c(5)}},
		"quota":   {{Throttled: f(0)}, {Throttled: f(0.4)}},
		"":        {{MHz: p(3400)}, {MHz: p(3390)}},
	} {
		b := made(1200, func(t int) float64 {
			if t >= 600 {
				return 0.5e9
			}
			return 1e9
		})
		for t := 10; t <= 1200; t += 10 {
			x := m[0]
			if t > 600 {
				x = m[1]
				if cause == "thermal" {
					x.Throttles = c(int64(t))
				}
			}
			x.T = float64(t)
			b.Add(Line{Machine: &x})
		}
		if l := b.Result().Ways[0].Late; l == nil || l.Cause != cause {
			t.Errorf("%q: %+v", cause, l)
		}
	}
}

// Of a soak of minutes a limit is named as well, from half a minute on either side on; and steady noise is none.
func TestLateLimitSoon(t *testing.T) {
	n := noisy(0.03)
	limit := func(at int) *result.SoakShift {
		return made(100, func(t int) float64 {
			if t >= at {
				return n(9.6e6)
			}
			return n(38.5e6)
		}).Result().Ways[0].Late
	}
	for _, at := range []int{40, 66} {
		if l := limit(at); l == nil || math.Abs(l.At-float64(at)) > 2 || math.Abs(l.Ratio-0.25) > 0.01 {
			t.Errorf("after %d s: %+v", at, l)
		}
	}
	if l := limit(90); l != nil {
		t.Errorf("of ten seconds: %+v", l)
	}
	for range 50 {
		if w := made(100, func(int) float64 { return n(1e9) }).Result().Ways[0]; w.Late != nil {
			t.Errorf("of noise: %+v", w.Late)
		}
	}
}

// What comes back is a shift that does not stay, and no late limit.
func TestShiftBack(t *testing.T) {
	n := noisy(0.02)
	s := made(3600, func(t int) float64 {
		if t >= 1000 && t < 1600 {
			return n(600e6)
		}
		return n(1e9)
	}).Result()
	w := s.Ways[0]
	if len(w.Shifts) != 2 || w.Shifts[0].Stays || w.Late != nil {
		t.Fatalf("%+v, late %+v", w.Shifts, w.Late)
	}
	if math.Abs(w.Shifts[0].At-1000) > 2 || math.Abs(w.Shifts[1].At-1600) > 2 {
		t.Errorf("%+v", w.Shifts)
	}
}

// heap is what lives on it, bytes.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A steady path of a day passes, whatever its noise; and what is kept of it takes no more memory in the
// evening than in the morning, or the program would fail its own rule.
func TestSteadyDay(t *testing.T) {
	n := noisy(0.02)
	b := NewBook(head(plan.Plan{Direction: plan.Down}, 86400))
	varied := PDVPart{N: 1000, Min: 1e-5, P50: 1e-4, P95: 2e-4, P99: 3e-4, P999: 4e-4, Max: 5e-4}
	rss, mhz, busy := int64(31e6), 3400, 0.4
	morning := int64(0)
	for at := range 86400 {
		s := Second{Direction: result.Down, T: int64(at), Cover: 1, Bytes: int64(n(940e6) / 8), Basis: ByReceiver}
		if at%60 == 0 {
			s.PDV = &varied
		}
		b.Add(Line{Second: &s})
		if at%10 == 9 {
			b.Add(Line{Machine: &Machine{T: float64(at + 1), Memory: &rss, MHz: &mhz, CPU: &busy, Busiest: &busy}})
		}
		if at == 8640 {
			morning = heap()
		}
	}
	if grown := heap() - morning; grown > 512<<10 {
		t.Errorf("%d kB more from the first tenth of the day to its end", grown>>10)
	}
	s := b.Result()
	for i, h := range s.Hours {
		if p := h.Ways[0].PDV; p == nil || math.Abs(*p-3e-4) > 1e-5 || h.Ways[0].Median == nil || math.Abs(*h.Ways[0].Median-940e6) > 4e6 {
			t.Errorf("hour %d: %+v", i, h.Ways[0])
		}
	}
	w := s.Ways[0]
	if len(w.Shifts) != 0 || w.Late != nil || w.Period != nil || len(s.Hours) != 24 || len(w.Rates) != 86400 || w.Step != 1 {
		t.Errorf("shifts %+v, late %+v, period %+v, %d hours, %d values each %v s", w.Shifts, w.Late, w.Period, len(s.Hours), len(w.Rates), w.Step)
	}
	for _, i := range b.Judge(s) {
		if i.Result != result.Pass {
			t.Errorf("%+v", i)
		}
	}
	if m := *w.Figures.Median; math.Abs(m-940e6) > 2e6 {
		t.Errorf("median %v", m)
	}
}

func TestTrend(t *testing.T) {
	n := noisy(0.01)
	b := made(86400, func(t int) float64 { return n(1e9 * (1 - 0.05*float64(t)/86400)) })
	s := b.Result()
	tr := s.Ways[0].Trend
	if tr == nil || math.Abs(tr.Slope+0.0513) > 0.003 || tr.P > 0.001 || tr.Low > tr.Slope || tr.High < tr.Slope { // of the median, 0.975e9
		t.Fatalf("%+v", tr)
	}
	if !slices.ContainsFunc(b.Judge(s), func(i result.Item) bool { return i.ID == "trend" && i.Result == result.Fail }) {
		t.Errorf("%+v", b.Judge(s))
	}
	// A slope of that size a day within ten minutes is nothing.
	short := made(600, func(t int) float64 { return 1e9 * (1 - 0.05*float64(t)/86400) })
	if slices.ContainsFunc(short.Judge(short.Result()), func(i result.Item) bool { return i.Result == result.Fail }) {
		t.Errorf("%+v", short.Judge(short.Result()))
	}
}

func TestPattern(t *testing.T) {
	n := noisy(0.02)
	b := made(7200, func(t int) float64 {
		if t%300 < 20 {
			return n(400e6)
		}
		return n(1e9)
	})
	s := b.Result()
	if p := s.Ways[0].Period; p == nil || p.Period != 300 {
		t.Fatalf("%+v", p)
	}
	if notices := b.Notices(s); !slices.ContainsFunc(notices, func(n result.Notice) bool { return n.Code == "periodic-rate" }) {
		t.Errorf("%+v", notices)
	}
}

func TestMemoryGrowth(t *testing.T) {
	for grows, want := range map[bool]string{false: result.Pass, true: result.Fail} {
		b := made(3600, func(int) float64 { return 1e9 })
		for i := range 360 {
			m := int64(40 << 20)
			if grows {
				m += int64(i) * (20 << 20) / 360
			}
			b.Add(Line{Machine: &Machine{T: float64(10 * (i + 1)), Memory: &m}})
		}
		got := ""
		for _, i := range b.Judge(b.Result()) {
			if i.ID == "memory" {
				got = i.Result
			}
		}
		if got != want {
			t.Errorf("growth %v: %q", grows, got)
		}
	}
}

// Longer than a day and an hour the series is thinned, and the hours stay.
func TestSeriesIsBounded(t *testing.T) {
	b := NewBook(head(plan.Plan{Direction: plan.Down}, 400000))
	for t := 0; t < 400000; t += 2 {
		b.Add(Line{Second: &Second{Direction: result.Down, T: int64(t), Cover: 1, Bytes: 125e6, Basis: ByReceiver}})
		b.Add(Line{Second: &Second{Direction: result.Down, T: int64(t + 1), Cover: 1, Bytes: 125e6, Basis: ByReceiver}})
	}
	s := b.Result()
	w := s.Ways[0]
	if len(w.Minutes.Bytes) != 400000/60+1 || w.Minutes.Bytes[6000] != 60*125e6 {
		t.Errorf("%d minutes", len(w.Minutes.Bytes))
	}
	if len(w.Rates) > MaxSeries || w.Step != 8 || *w.Rates[len(w.Rates)-1] != 1e9 || len(s.Hours) != 112 || *w.Figures.Min != 1e9 {
		t.Errorf("%d values each %v s, %d hours", len(w.Rates), w.Step, len(s.Hours))
	}
}

// Every second is in its minute, in any order within two minutes, and the minutes of a direction add up to its
// whole; of what was not measured nothing is made up.
func TestMinutes(t *testing.T) {
	b := NewBook(head(plan.Plan{Direction: plan.Down}, 1000))
	lost, sent := int64(1), int64(100)
	second := func(at int64, mbit float64) {
		b.Add(Line{Second: &Second{
			Direction: result.Down, T: at, Cover: 1, Bytes: int64(mbit * 1e6 / 8), Basis: ByReceiver, Packets: &sent, Lost: &lost,
			PDV: &PDVPart{N: 10, Min: 1e-3, P50: 1e-3, P95: 1e-3, P99: 1e-3, P999: 1e-3, Max: 1e-3},
		}})
	}
	for at := int64(61); at < 180; at++ { // minute 1 with 59 seconds, minute 2 without its first
		if at != 120 {
			second(at, float64(at))
		}
	}
	second(120, 500)                                                                           // late
	second(400, 40)                                                                            // minutes 3 to 5 are a gap
	b.Add(Line{Total: &Total{T: 401, Direction: result.Down, Lost: &lost}})                    // what only the end told
	b.Add(Line{Second: &Second{Direction: result.Down, T: 401, Cover: 0.2, Bytes: 125e6 / 5}}) // too short for a rate
	w := b.Result().Ways[0]
	m := w.Minutes
	if m == nil || m.Start != 60 || len(m.Bytes) != 6 {
		t.Fatalf("%+v", m)
	}
	bytes, measured, losses := int64(0), 0.0, int64(0)
	for i := range m.Bytes {
		bytes, measured = bytes+m.Bytes[i], measured+m.Measured[i]
		if m.Lost[i] != nil {
			losses += *m.Lost[i]
		}
	}
	if f := w.Figures; bytes != f.Bytes || math.Abs(measured-f.Measured) > 1e-6 || losses != *f.Lost {
		t.Errorf("the minutes have %d bytes, %v s, %d lost; the whole %+v", bytes, measured, losses, f)
	}
	for i, want := range []struct{ median, min, max, measured float64 }{{90e6, 61e6, 119e6, 59}, {150e6, 121e6, 500e6, 60}, {}, {}, {}, {40e6, 40e6, 40e6, 1.2}} {
		got := [4]float64{value(m.Median[i]), value(m.Min[i]), value(m.Max[i]), m.Measured[i]}
		for k, w := range [4]float64{want.median, want.min, want.max, want.measured} {
			if math.Abs(got[k]-w) > 0.004*w {
				t.Errorf("minute %d: %v, want %v", i, got, want)
			}
		}
		if known := want.measured > 0; (m.PDV[i] != nil) != known || (m.Packets[i] != nil) != known {
			t.Errorf("minute %d: variation %v, packets %v", i, m.PDV[i], m.Packets[i])
		}
	}
	if m.Retransmits != nil {
		t.Errorf("retransmits %v of UDP", m.Retransmits)
	}
}

func value(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// Of a soak of months the last fourteen days' minutes stay, also over a gap of weeks.
func TestMinutesAreBounded(t *testing.T) {
	const day = 86400
	b := NewBook(head(plan.Plan{Direction: plan.Up}, 60*day))
	add := func(from, to int64) *result.SoakMinutes {
		for at := from; at < to; at += 60 {
			b.Add(Line{Second: &Second{Direction: result.Up, T: at, Cover: 1, Bytes: at / 60, Basis: ByReceiver}})
		}
		return b.Result().Ways[0].Minutes
	}
	m := add(0, 15*day)
	if n := len(m.Bytes); n != MaxMinutes || m.Start != day || m.Bytes[0] != day/60 || m.Bytes[n-1] != 15*day/60-1 {
		t.Errorf("%d minutes from %v s on", n, m.Start)
	}
	m = add(45*day, 45*day+600)
	if n := len(m.Bytes); n != 10 || m.Start != 45*day || m.Bytes[0] != 45*day/60 || m.Median[8] == nil {
		t.Errorf("behind a gap: %d minutes from %v s on, %v", n, m.Start, m.Bytes)
	}
}

// Packed rates say the same, and can be added to.
func TestPackedRates(t *testing.T) {
	var loose, packed Rates
	n := noisy(0.3)
	for i := range 1000 {
		v := max(n(1e9), 0)
		loose.Add(v)
		packed.Add(v)
		if i%100 == 50 {
			packed.pack()
		}
	}
	packed.pack()
	for _, q := range []float64{0, 0.01, 0.05, 0.5, 0.9, 1} {
		a, _ := loose.Quantile(q)
		if b, ok := packed.Quantile(q); !ok || a != b {
			t.Errorf("quantile %v: %v and %v", q, a, b)
		}
	}
	if a, b := loose.AtLeast(9e8), packed.AtLeast(9e8); a != b || a == 0 || a == 1 {
		t.Errorf("share: %v and %v", a, b)
	}
	var both Rates
	both.Merge(&loose)
	both.Merge(&packed)
	if both.N() != 2000 {
		t.Errorf("%d in both", both.N())
	}
}

// TestRatesQuantiles: within 0.3 % of the sorted values' own.
func TestRatesQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(1, 1e11), 1, 200).Draw(t, "x")
		cut := rapid.IntRange(0, len(x)).Draw(t, "cut")
		var a, b Rates
		for _, v := range x[:cut] {
			a.Add(v)
		}
		for _, v := range x[cut:] {
			b.Add(v)
		}
		a.Merge(&b)
		slices.Sort(x)
		for _, q := range []float64{0.01, 0.05, 0.5, 0.99, 1} {
			got, ok := a.Quantile(q)
			want := x[max(0, int(math.Ceil(q*float64(len(x))))-1)]
			if !ok || math.Abs(got-want) > 0.0055*want {
				t.Fatalf("quantile %v of %d: %v, want %v", q, len(x), got, want)
			}
		}
		if a.N() != int64(len(x)) || a.min != x[0] || a.max != x[len(x)-1] {
			t.Fatalf("n %d, min %v, max %v", a.N(), a.min, a.max)
		}
	})
	var h Rates
	for range 10 {
		h.Add(940e6)
	}
	if v, _ := h.Quantile(0.5); v != 940e6 {
		t.Errorf("the median of equal rates is %v", v)
	}
}

// Bytes and counts are conserved however slots fall on seconds.
func TestLaneConserves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var bytes, resent, wantBytes, wantResent int64
		cover, want := 0.0, 0.0
		last := int64(-1)
		l := newLane(result.Down, 0, 0, func(int) (float64, bool) { return 0, false }, func(x Line) {
			if s := x.Second; s != nil {
				if s.T <= last {
					t.Fatalf("second %d after %d", s.T, last)
				}
				last = s.T
				bytes += s.Bytes
				cover += s.Cover
				if s.Retransmits != nil {
					resent += *s.Retransmits
				}
			}
		})
		at := 0.0
		for range rapid.IntRange(1, 60).Draw(t, "slots") {
			at += rapid.SampledFrom([]float64{0, 0, 0, 0.01, 2.5}).Draw(t, "gap")
			length := rapid.Float64Range(0.01, 3).Draw(t, "length")
			n := rapid.Int64Range(0, 1e9).Draw(t, "bytes")
			k := rapid.Int64Range(0, 5).Draw(t, "resent")
			l.Add(Slot{From: at, To: at + length, Bytes: n, Retransmits: &k})
			at += length
			want += length
			wantBytes += n
			wantResent += k
		}
		l.Finish()
		if bytes != wantBytes || resent != wantResent || math.Abs(cover-want) > 1e-3 {
			t.Fatalf("%d bytes of %d, %d resent of %d, %v s of %v", bytes, wantBytes, resent, wantResent, cover, want)
		}
	})
}

// TestPDVMerge: the 99th percentile over seconds, put together from each second's quantiles.
func TestPDVMerge(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // no secret
	var truth, merged delay.Histogram
	for range 200 {
		var one delay.Histogram
		for range 500 {
			ns := int64(1e6 * r.ExpFloat64())
			one.Add(ns)
			truth.Add(ns)
		}
		addPDV(&merged, *partOf(&one))
	}
	a, b := truth.Quantiles(), merged.Quantiles()
	if a.N != b.N || math.Abs(b.P99/a.P99-1) > 0.05 || math.Abs(b.P50/a.P50-1) > 0.15 {
		t.Errorf("merged %+v, truth %+v", b, a)
	}
}

// TestKilledAtAnyByte: whatever is left of a record is read up to its last whole line, and what
// was read before stays as it was.
func TestKilledAtAnyByte(t *testing.T) {
	var file bytes.Buffer
	h := head(plan.Plan{Direction: plan.Both}, 10)
	lines := []Line{{Head: &h}}
	for t := range 4 {
		lines = append(lines, Line{Second: &Second{Direction: result.Up, T: int64(t), Cover: 1, Bytes: 1000, Basis: ByReceiver}})
	}
	lines = append(lines, Line{Outage: &Outage{Direction: result.Up, From: 1, To: 3, Open: true}}, Line{Outage: &Outage{Direction: result.Up, From: 1, To: 3.5, Back: 4}},
		Line{Gap: &Gap{From: 4, To: 5, Why: "away"}}, Line{Test: &Test{From: 0, To: 4}}, Line{End: &End{T: 5}})
	var ends []int
	for _, l := range lines {
		data, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		file.Write(append(data, '\n'))
		ends = append(ends, file.Len())
	}
	for n := range file.Len() + 1 {
		b, whole, err := Read(bytes.NewReader(file.Bytes()[:n]))
		k := 0 // whole lines
		for k < len(ends) && ends[k] <= n {
			k++
		}
		if k == 0 {
			if err == nil {
				t.Fatalf("%d bytes: a book without a head", n)
			}
			continue
		}
		if err != nil || whole != int64(ends[k-1]) {
			t.Fatalf("%d bytes: whole %d, want %d, %v", n, whole, ends[k-1], err)
		}
		want := NewBook(h)
		for _, l := range lines[1:k] {
			want.Add(l)
		}
		x, _ := json.Marshal(b.Result())
		y, _ := json.Marshal(want.Result())
		if !bytes.Equal(x, y) {
			t.Fatalf("%d bytes: %s, want %s", n, x, y)
		}
	}
	if _, _, err := Read(strings.NewReader("{\"schema\":1}\n")); err == nil {
		t.Error("another document is a record")
	}
	broken := strings.Replace(file.String(), `"t":1,`, `"t":x,`, 1)
	if _, _, err := Read(strings.NewReader(broken)); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("a broken line in the middle: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	h, _ := json.Marshal(Line{Head: &Head{Version: Version, Steps: []Step{{Share: 1}}}})
	f.Add(append(h, "\n{\"s\":{\"d\":\"up\",\"t\":3,\"c\":1,\"b\":5,\"lo\":1,\"by\":\"receiver\"}}\n{\"m\":{\"t\":10}}\n"...))
	f.Add(append(slices.Clone(h), "\n{\"s\":{\"d\":\"up\",\"t\":-3,\"c\":1e300,\"b\":-5,\"l\":900,\"lo\":1,\"by\":\"\",\"v\":{\"n\":99}}}\n{\"outage\":{\"d\":\"x\",\"from\":9,\"to\":1}}\n"...))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, whole, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		if whole > int64(len(data)) || whole < 1 || data[whole-1] != '\n' {
			t.Fatalf("whole %d of %d", whole, len(data))
		}
		s := b.Result()
		b.Judge(s)
		b.Notices(s)
	})
}
