package method_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/method"
)

func TestClassifyGolden(t *testing.T) {
	// Spec methods §6: duration sum 21 s, exceed ratio 0.5.
	for _, c := range []struct {
		goodLong, badLong, goodShort, badShort float64
		want                                   method.LoadClass
	}{
		{11, 0, 0, 0, method.LoadLower},
		{0, 11, 0, 0, method.LoadUpper},
		{10, 10, 0, 0, method.LoadOpen},
		{10, 0, 0, 0, method.LoadOpen},
		{0, 0, 3, 5, method.LoadOpen},
	} {
		if got := method.Classify(c.goodLong, c.badLong, c.goodShort, c.badShort, 21, 0.5); got != c.want {
			t.Errorf("Classify(%v) = %v, want %v", c, got, c.want)
		}
	}
	// Exceed ratio 0: any bad trial, long or short, makes an upper bound, and the whole sum
	// of good long ones a lower bound.
	for _, c := range []struct {
		goodLong, badLong, goodShort, badShort float64
		want                                   method.LoadClass
	}{
		{20, 1, 0, 0, method.LoadUpper},
		{20, 0, 50, 1, method.LoadUpper},
		{20, 0, 50, 0, method.LoadOpen},
		{21, 0, 0, 0, method.LoadLower},
	} {
		if got := method.Classify(c.goodLong, c.badLong, c.goodShort, c.badShort, 21, 0); got != c.want {
			t.Errorf("exceed 0: Classify(%v) = %v, want %v", c, got, c.want)
		}
	}
}

// A decided load stays decided whatever trials follow within the sum.
func TestClassifyIsFinal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sum := rapid.Float64Range(1, 60).Draw(t, "sum")
		exceed := rapid.SampledFrom([]float64{0, 0.1, 0.5, 0.9}).Draw(t, "exceed")
		var good, bad float64
		first := method.LoadOpen
		for good+bad < sum {
			d := math.Min(rapid.Float64Range(0.1, 5).Draw(t, "d"), sum-good-bad)
			if rapid.Bool().Draw(t, "good") {
				good += d
			} else {
				bad += d
			}
			got := method.Classify(good, bad, 0, 0, sum, exceed)
			if first != method.LoadOpen && got != first && math.Abs(good+bad-sum) > 1e-6 {
				t.Fatalf("was %v, became %v at good %v bad %v of %v", first, got, good, bad, sum)
			}
			if first == method.LoadOpen {
				first = got
			}
			if sum-good-bad < 1e-9 {
				break
			}
		}
		if first == method.LoadOpen && method.Classify(good+1e-6, bad, 0, 0, sum, exceed) == method.LoadOpen {
			t.Fatalf("undecided after the whole sum: good %v, bad %v of %v", good, bad, sum)
		}
	})
}

// simPath answers trials.
type simPath struct {
	rate   float64 // what gets through, bit/s of payload
	loss   float64 // of each datagram, besides
	noise  float64 // share of trials that lose a burst whatever the rate
	sender float64 // the sender's own limit; 0 = none
	socket float64 // the receiver drops above it; 0 = never
	rng    *rand.Rand
}

const simDatagram = 1472 * 8 // bits

func (s *simPath) trial(a method.Ask) method.Trial {
	t := method.Trial{Load: a.Load, Seconds: a.Seconds, Warm: a.Warm, Offered: a.Load}
	if s.sender > 0 && a.Load > s.sender {
		t.Offered, t.Short = s.sender, s.sender < 0.99*a.Load
	}
	t.Sent = max(int64(t.Offered*a.Seconds/simDatagram), 1)
	through := math.Min(t.Offered, s.rate)
	if s.socket > 0 {
		through = math.Min(through, s.socket)
	}
	t.Lost = min(int64(math.Ceil((t.Offered-through)*a.Seconds/simDatagram)), t.Sent)
	if s.loss > 0 { // Poisson by normal approximation above 30, else one by one
		mean := s.loss * float64(t.Sent)
		if mean > 30 {
			t.Lost += int64(math.Max(0, mean+math.Sqrt(mean)*s.rng.NormFloat64()))
		} else {
			for p := s.rng.Float64(); p > math.Exp(-mean); p *= s.rng.Float64() { // Knuth
				t.Lost++
			}
		}
	}
	if s.noise > 0 && s.rng.Float64() < s.noise {
		t.Lost += 20
	}
	t.Lost = min(t.Lost, t.Sent)
	t.Path = t.Lost
	if s.socket > 0 && t.Offered > s.socket && s.socket < s.rate {
		t.Path = 0
	}
	t.Received = float64(t.Sent-t.Lost) * simDatagram / a.Seconds
	return t
}

// play plays a whole search.
func (s *simPath) play(tb interface {
	Fatalf(string, ...any)
}, search method.RateSearch,
) ([]method.Trial, []method.RateAnswer) {
	var trials []method.Trial
	for {
		a, more := search.Next(trials)
		if !more {
			return trials, search.Answers(trials)
		}
		if a.Load > search.Max || a.Load <= 0 || a.Seconds <= 0 {
			tb.Fatalf("asked for %v bit/s for %v s with a maximum of %v", a.Load, a.Seconds, search.Max)
		}
		trials = append(trials, s.trial(a))
		if len(trials) > 2000 {
			tb.Fatalf("the search does not end")
		}
	}
}

func preset(t *testing.T, name string) method.RatePreset {
	t.Helper()
	p, ok := method.RatePresetOf(name)
	if !ok {
		t.Fatalf("no preset %s", name)
	}
	for _, g := range p.Goals {
		if err := g.Validate(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return p
}

func TestSearchFindsAHardRate(t *testing.T) {
	for _, name := range []string{"quick", "default", "csit", "rfc2544"} {
		for seed := range uint64(10) {
			rng := rand.New(rand.NewPCG(seed, 1))
			rate := 10e6 + rng.Float64()*980e6
			path := &simPath{rate: rate, rng: rng}
			trials, answers := path.play(t, method.RateSearch{RatePreset: preset(t, name), Max: 1e9})
			for _, a := range answers {
				want := rate
				if a.Goal.Loss > 0 {
					want = rate / (1 - a.Goal.Loss)
				}
				// A rate's last datagram may or may not be lost.
				if a.Lower > want*1.0005 || a.Upper < want*0.9995 || a.Irregular || a.HostLimited != 0 || a.Width > a.Goal.Width {
					t.Errorf("%s, seed %d: rate %.4g: lower %.4g, upper %.4g, width %.3f (irregular %v, host %v)", name, seed, want, a.Lower, a.Upper, a.Width, a.Irregular, a.HostLimited)
				}
				if a.Conditional > a.Lower || a.Conditional < a.Lower*(1-a.Goal.Loss)-1 {
					t.Errorf("%s, seed %d: conditional %.4g of lower %.4g", name, seed, a.Conditional, a.Lower)
				}
				if a.Goal.Loss == 0 && (a.Lost != 0 || a.High <= 0 || a.High > 0.01) {
					t.Errorf("%s: at the lower bound %d of %d lost, ≤ %v", name, a.Lost, a.Sent, a.High)
				}
			}
			if name == "quick" && len(trials) > 40 {
				t.Errorf("quick took %d trials", len(trials))
			}
		}
	}
}

func TestSearchStopsAtTheMaximum(t *testing.T) {
	path := &simPath{rate: 2e9, rng: rand.New(rand.NewPCG(1, 1))}
	trials, answers := path.play(t, method.RateSearch{RatePreset: preset(t, "quick"), Max: 1e9})
	a := answers[0]
	if !a.AtMax || a.Lower != 1e9 || a.Upper != 0 || a.Irregular || len(trials) > 5 {
		t.Errorf("got %+v after %d trials", a, len(trials))
	}
}

func TestSearchTellsTheHostsLimitApart(t *testing.T) {
	for _, c := range []struct {
		name   string
		path   simPath
		sender bool
		at     float64
	}{
		{"sender", simPath{rate: 2e9, sender: 300e6}, true, 300e6},
		{"receiver's socket", simPath{rate: 2e9, socket: 420e6}, false, 420e6},
	} {
		for _, name := range []string{"quick", "default"} {
			c.path.rng = rand.New(rand.NewPCG(3, 1))
			_, answers := c.path.play(t, method.RateSearch{RatePreset: preset(t, name), Max: 1e9})
			a := answers[0]
			if a.HostLimited == 0 || a.Sender != c.sender || a.HostLimited < c.at*0.98 || a.HostLimited > c.at*1.04 || a.Irregular {
				t.Errorf("%s, %s: %+v", c.name, name, a)
			}
			if a.Lower > c.at*1.02 || a.Lower < c.at*0.95 {
				t.Errorf("%s, %s: lower %.4g, want about %.4g", c.name, name, a.Lower, c.at)
			}
		}
	}
	// A slow sender above a slower path: the path is what is found.
	path := &simPath{rate: 100e6, sender: 300e6, rng: rand.New(rand.NewPCG(4, 1))}
	_, answers := path.play(t, method.RateSearch{RatePreset: preset(t, "quick"), Max: 1e9})
	if a := answers[0]; a.HostLimited != 0 || a.Lower > 100.05e6 || a.Upper < 99.95e6 {
		t.Errorf("path below the sender: %+v", a)
	}
}

// A sender that is held up now and then is no limit.
func TestSearchBearsABusySender(t *testing.T) {
	named := 0
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 8))
		path := &simPath{rate: 500e6, rng: rng}
		search := method.RateSearch{RatePreset: preset(t, "quick"), Max: 1e9}
		var trials []method.Trial
		for {
			a, more := search.Next(trials)
			if !more {
				break
			}
			x := path.trial(a)
			x.Short = rng.Float64() < 0.1
			trials = append(trials, x)
		}
		a := search.Answers(trials)[0]
		if a.Lower > 500.3e6 || a.Lower < 480e6 || a.Irregular {
			t.Errorf("seed %d: %+v", seed, a)
		}
		if a.HostLimited != 0 {
			named++
		}
	}
	if named > 1 {
		t.Errorf("%d of 10 searches name the host", named)
	}
}

func TestSearchBearsNoise(t *testing.T) {
	// One trial in five loses something for reasons of its own; half may.
	for seed := range uint64(10) {
		path := &simPath{rate: 500e6, noise: 0.2, rng: rand.New(rand.NewPCG(seed, 2))}
		_, answers := path.play(t, method.RateSearch{RatePreset: preset(t, "csit"), Max: 1e9})
		a := answers[0]
		if a.Lower < 450e6 || a.Lower > 500.3e6 || a.Irregular {
			t.Errorf("seed %d: lower %.4g, upper %.4g, %d trials, irregular %v", seed, a.Lower, a.Upper, a.Trials, a.Irregular)
		}
		if b := answers[1]; b.Lower < a.Lower*0.999 {
			t.Errorf("seed %d: the looser goal found less: %.4g < %.4g", seed, b.Lower, a.Lower)
		}
	}
}

func TestSearchOfALossyPath(t *testing.T) {
	// 1 in 1000 is lost at every rate: there is no loss-free rate worth the name, but one
	// within 0.5 %.
	path := &simPath{rate: 500e6, loss: 1e-3, rng: rand.New(rand.NewPCG(5, 2))}
	p := preset(t, "csit")
	p.Limit = 2 * time.Hour
	_, answers := path.play(t, method.RateSearch{RatePreset: p, Max: 1e9})
	// With half of the trials granted, 693 datagrams a second get through whole: 8 Mbit/s.
	if a := answers[0]; a.Lower < 4e6 || a.Lower > 14e6 {
		t.Errorf("goal 0: lower %.4g", a.Lower)
	}
	if a := answers[1]; a.Lower < 490e6 || a.Lower > 503e6 {
		t.Errorf("goal 0.005: lower %.4g", a.Lower)
	}
}

func TestSearchKeepsItsTime(t *testing.T) {
	p := preset(t, "default")
	p.Limit = 25 * time.Second
	path := &simPath{rate: 333e6, rng: rand.New(rand.NewPCG(6, 2))}
	search := method.RateSearch{RatePreset: p, Max: 1e9}
	_, answers := path.play(t, search)
	a := answers[0]
	if !a.Irregular || a.Seconds > 25 || a.Upper == 0 || a.Upper < 330e6 {
		t.Errorf("got %+v", a)
	}
	var slow []method.Trial // each conversation takes five times its trial
	for {
		ask, more := search.Next(slow)
		if !more {
			break
		}
		x := path.trial(ask)
		x.Took = 5 * x.Seconds
		slow = append(slow, x)
	}
	took := 0.0
	for _, x := range slow {
		took += x.Took
	}
	if a := search.Answers(slow)[0]; !a.Irregular || a.Seconds > 25+10 || a.Seconds < took || len(slow) < 2 {
		t.Errorf("%d slow trials of %g s: %+v", len(slow), took, a)
	}
}

func TestSearchPausesAfterLoss(t *testing.T) {
	search := method.RateSearch{RatePreset: preset(t, "default"), Max: 1e9}
	lossy := method.Trial{Load: 1e9, Seconds: 1, Offered: 1e9, Received: 5e8, Sent: 100, Lost: 50, Path: 50, Warm: true}
	if a, _ := search.Next([]method.Trial{lossy}); a.Pause != 7*time.Second || a.Load != 1e9 {
		t.Errorf("after a lossy trial: %+v", a)
	}
	lossy.Lost, lossy.Path = 0, 0
	if a, _ := search.Next([]method.Trial{lossy}); a.Pause != 0 {
		t.Errorf("after a clean trial: %+v", a)
	}
}

func TestInconsistencyIsCounted(t *testing.T) {
	search := method.RateSearch{RatePreset: preset(t, "csit"), Max: 1e9}
	good := func(load float64) method.Trial {
		return method.Trial{Load: load, Seconds: 1, Offered: load, Received: load, Sent: 1000}
	}
	bad := good(1e9)
	bad.Received, bad.Lost, bad.Path = 6e8, 400, 400
	answers := search.Answers([]method.Trial{good(1e9), bad, bad, good(6e8)})
	if answers[0].Inconsistent != 0 {
		t.Errorf("consistent trials: %+v", answers[0])
	}
	// Now the guess at 600 Mbit/s is lossy, and then a trial at 1 Gbit/s is not.
	low := bad
	low.Received = 5e8
	answers = search.Answers([]method.Trial{good(1e9), good(1e9), low})
	if answers[0].Inconsistent != 0 { // all of them at one load
		t.Errorf("one load: %+v", answers[0])
	}
}

// A sender that pauses and does not make it up proves less than it was asked for: the lower bound
// is what it sent, so that the bounds hold the truth.
func TestPausingSender(t *testing.T) {
	const carried = 70e6
	p, _ := method.RatePresetOf("quick")
	search := method.RateSearch{RatePreset: p, Max: 150e6}
	var trials []method.Trial
	for {
		ask, more := search.Next(trials)
		if !more {
			break
		}
		x := method.Trial{Load: ask.Load, Seconds: ask.Seconds, Warm: ask.Warm, Offered: 0.98 * ask.Load, Sent: 10_000, Received: 0.98 * ask.Load}
		if ask.Load > carried {
			x.Received = 0.98 * carried
			x.Lost = int64(10_000 * (1 - carried/ask.Load))
			x.Path = x.Lost
		}
		trials = append(trials, x)
	}
	a := search.Answers(trials)[0]
	if a.Irregular || a.HostLimited != 0 || math.Abs(a.Lower-0.98*a.Load) > 1 || a.Conditional > a.Lower {
		t.Fatalf("%+v", a)
	}
	if a.Lower > carried || a.Upper < carried || a.Load > carried || a.Width > 0.02+0.021 {
		t.Errorf("%.2f … %.2f Mbit/s, asked %.2f", a.Lower/1e6, a.Upper/1e6, a.Load/1e6)
	}
}

// Whatever a path answers, the search ends, keeps its bounds in order, and asks the same again.
func TestSearchAlwaysEnds(t *testing.T) {
	presets := method.RatePresets()
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(presets).Draw(t, "preset")
		search := method.RateSearch{RatePreset: p, Max: rapid.Float64Range(100e3, 10e9).Draw(t, "max")}
		path := &simPath{
			rate: search.Max * rapid.Float64Range(0.001, 1.5).Draw(t, "rate"), loss: rapid.SampledFrom([]float64{0, 0, 1e-5, 0.3}).Draw(t, "loss"),
			noise: rapid.SampledFrom([]float64{0, 0.2, 0.6}).Draw(t, "noise"), rng: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 9)),
		}
		if rapid.Bool().Draw(t, "limited") {
			path.sender = search.Max * rapid.Float64Range(0.01, 1).Draw(t, "sender")
		}
		trials, answers := path.play(t, search)
		if _, more := search.Next(trials); more {
			t.Fatalf("it goes on")
		}
		var took float64
		for _, x := range trials {
			took += x.Seconds
		}
		for _, a := range answers {
			switch {
			case a.Upper != 0 && a.Lower >= a.Upper:
				t.Fatalf("lower %v, upper %v", a.Lower, a.Upper)
			case a.Lower > search.Max || a.Upper > search.Max:
				t.Fatalf("above the maximum: %+v", a)
			case !a.Irregular && !a.AtMax && a.Lower > 1e6 && (a.Upper-a.Load)/a.Upper > a.Goal.Width:
				t.Fatalf("wide: %+v", a)
			case a.Seconds < took-1e-6:
				t.Fatalf("took %v s, says %v", took, a.Seconds)
			case a.Lower == 0 && !a.Irregular && a.Upper > 64e3:
				t.Fatalf("gave up at %v", a.Upper)
			}
		}
	})
}

// Loss verification: a lossy trial that a repeat does not confirm does not count, one that all repeats confirm
// does, and each repeat takes its time.
func TestSearchVerifiesLoss(t *testing.T) {
	const carried = 400e6
	play := func(verify int) (method.RateAnswer, []method.Trial) {
		p := preset(t, "quick")
		p.Verify = verify
		search, rng := method.RateSearch{RatePreset: p, Max: 1e9}, rand.New(rand.NewPCG(11, 1))
		path := &simPath{rate: carried, rng: rng}
		var trials []method.Trial
		for {
			a, more := search.Next(trials)
			if !more {
				return search.Answers(trials)[0], trials
			}
			x := path.trial(a)
			if x.Lost == 0 && rng.Float64() < 0.2 { // something passing by
				x.Lost, x.Path = 3, 3
			}
			if trials = append(trials, x); len(trials) > 500 {
				t.Fatal("it does not end")
			}
		}
	}
	without, _ := play(0)
	with, trials := play(3)
	if with.Lower < 0.97*carried || with.Lower > carried*1.001 || with.Forgiven == 0 || with.Irregular {
		t.Errorf("with verification: %+v", with)
	}
	if without.Forgiven != 0 || without.Lower >= with.Lower {
		t.Errorf("without it the passing losses should hold the search down: %.4g, with it %.4g", without.Lower, with.Lower)
	}
	if n := with.Trials + with.Forgiven; n >= len(trials) {
		t.Errorf("%d trials count, %d are forgiven, of %d: confirmed ones were repeated, too", with.Trials, with.Forgiven, len(trials))
	}
}
