package method

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

func steps(names ...string) (out []Step) {
	for _, n := range names {
		out = append(out, Step{Name: n, Plan: plan.Plan{Duration: time.Second}})
	}
	return out
}

// Each step is played once in each round, in the order of the seed.
func TestRepeatInterleaves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "steps")
		r := Repeat{Rounds: rapid.IntRange(1, 9).Draw(t, "rounds"), Seed: rapid.Uint64().Draw(t, "seed"), Pause: RoundsPause}
		for i := range n {
			r.Steps = append(r.Steps, steps(fmt.Sprint("s", i))...)
		}
		history := play(r, 100, func(Step) *result.Run { return made(result.Up, 1e6) })
		if len(history) != n*r.Rounds {
			t.Fatalf("%d steps", len(history))
		}
		for round := range r.Rounds {
			for k, i := range Order(r.Seed, round, n) {
				s := history[round*n+k].Step
				if s.Name != r.Steps[i].Name || s.Round != round+1 {
					t.Fatalf("round %d: %s of round %d, want %s", round+1, s.Name, s.Round, r.Steps[i].Name)
				}
				if first := round == 0 && k == 0; (s.Pause == 0) != first {
					t.Fatalf("pause %v", s.Pause)
				}
			}
		}
		var possible, done []string
		for _, s := range r.Possible() {
			possible = append(possible, s.Name)
		}
		for _, d := range history {
			done = append(done, d.Step.Name)
		}
		if !cmp.Equal(possible, done) {
			t.Fatalf("possible %v, done %v", possible, done)
		}
	})
}

func TestRepeatAuto(t *testing.T) {
	rates := map[string][]float64{ // by round
		"steady":  {100, 100.2, 99.9, 0, 0, 0},
		"settles": {100, 103, 97, 100, 101, 100, 100, 100, 100}, // six to eight: 97 … 103; nine: the second to the eighth
		"never":   {1, 9, 2, 8, 3, 7, 4, 6, 5, 9, 0},
	}
	r := Repeat{Auto: true, Seed: 3, Steps: steps("steady", "settles", "never")}
	history := play(r, 100, func(s Step) *result.Run { return made(result.Up, rates[s.Name][s.Round-1]) })
	count := map[string]int{}
	for _, d := range history {
		count[d.Step.Name]++
	}
	if want := (map[string]int{"steady": 3, "settles": 9, "never": 10}); !cmp.Equal(count, want) {
		t.Errorf("%v, want %v", count, want)
	}
}

// Whoever cannot begin is not asked again and again.
func TestRepeatEndsWhereNothingBegins(t *testing.T) {
	r := Repeat{Rounds: 5, Steps: steps("up", "down")}
	refused := Done{Step: r.Steps[0], Err: &result.Error{Code: "connect", Text: "refused"}}
	if s, more := r.Next([]Done{refused}); more {
		t.Errorf("went on with %s", s.Name)
	}
	broke := Done{Step: r.Steps[0], Run: made(result.Up, 1e6), Err: &result.Error{Code: "peer-closed", Text: "gone"}}
	broke.Step.Round = 1
	if _, more := r.Next([]Done{broke}); !more {
		t.Error("a round that broke off ended the others")
	}
}

// twoSteps is a method of two steps, the second only after a fast first.
type twoSteps struct{}

func (twoSteps) Next(history []Done) (Step, bool) {
	switch {
	case len(history) == 0:
		return Step{Name: "first"}, true
	case len(history) == 1:
		if v, _ := total(history[0].Run); v > 50 {
			return Step{Name: "second"}, true
		}
	}
	return Step{}, false
}

func TestAgain(t *testing.T) {
	a := Again{Method: twoSteps{}, Rounds: 4, Pause: time.Second}
	history := play(a, 100, func(s Step) *result.Run { return made(result.Up, []float64{100, 10, 100, 100}[s.Round-1]) })
	var got []string
	for _, d := range history {
		got = append(got, fmt.Sprint(d.Step.Round, d.Step.Name, d.Step.Pause))
	}
	want := []string{"1first0s", "1second0s", "2first1s", "3first1s", "3second0s", "4first1s", "4second0s"}
	if !cmp.Equal(got, want) {
		t.Errorf("%v", got)
	}
	rounds, open := a.Split(history)
	if len(rounds) != 4 || open || len(rounds[1]) != 1 {
		t.Errorf("%d rounds, open %v", len(rounds), open)
	}
	if rounds, open := a.Split(history[:4+1-1]); len(rounds) != 3 || !open {
		t.Errorf("within the third: %d rounds, open %v", len(rounds), open)
	}

	a = Again{Method: twoSteps{}, Auto: true, Figure: func(r []Done) (float64, bool) { return total(r[0].Run) }}
	history = play(a, 100, func(Step) *result.Run { return made(result.Up, 100) })
	if rounds, _ := a.Split(history); len(rounds) != LeastRounds {
		t.Errorf("steady: %d rounds", len(rounds))
	}
	history = play(a, 100, func(s Step) *result.Run { return made(result.Up, float64(60+100*(s.Round%2))) })
	if rounds, _ := a.Split(history); len(rounds) != MostRounds {
		t.Errorf("never steady: %d rounds", len(rounds))
	}
}

func TestRoundsOf(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	r := RoundsOf("up", "goodput", result.Up, "bit/s", []*float64{v(941), v(939), nil, v(940), v(702), v(942)}, []int{0, 1, 2, 3, 4, 5})
	if *r.Median != 940 || *r.Min != 702 || *r.Max != 942 || r.Low != nil || !slices.Equal(r.Marked, []int{5}) {
		t.Errorf("%+v", r)
	}
	six := RoundsOf("up", "goodput", result.Up, "bit/s", []*float64{v(1), v(2), v(3), v(4), v(5), v(6)}, nil)
	if six.Low == nil || *six.Low != 1 || *six.High != 6 || *six.Level < 0.95 {
		t.Errorf("%+v", six)
	}
	if none := RoundsOf("up", "goodput", result.Up, "bit/s", []*float64{nil}, nil); none.Median != nil || none.CoV != nil {
		t.Errorf("%+v", none)
	}
	if s := Settled(true, &six); s == nil || *s {
		t.Error("1 … 6 has not settled")
	}
	if Settled(false, &six) != nil {
		t.Error("a given number of rounds is not asked to settle")
	}
}
