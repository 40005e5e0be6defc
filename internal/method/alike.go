package method

import (
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/internal/alike"
	"github.com/fullbore-net/fullbore/result"
)

// Differences names the facts in which the runs of two sides differ: the settings of the test,
// which make the figures incomparable, and what the hosts and the path were, which may be why they
// differ. A fact of a host that a side does not know is not compared; one that changes within a
// side is shown with all its values.
func Differences(a, b []*result.Run) []result.Difference {
	out := []result.Difference{}
	x, y := collect(a, alike.SettingsOf), collect(b, alike.SettingsOf)
	for _, name := range x.names(y) {
		from, to := x.text(name), y.text(name)
		if from == to || name == "direction" && !both(from, to) { // each direction is compared by itself
			continue
		}
		out = append(out, result.Difference{What: name, A: orNone(from), B: orNone(to), Setting: true})
	}
	met := func(r *result.Run) []alike.Fact { return append(alike.FactsOf(r), alike.HopsOf(r)...) }
	x, y = collect(a, met), collect(b, met)
	for _, name := range x.names(y) {
		from, to := x.text(name), y.text(name)
		if from == to || from == "" || to == "" {
			continue
		}
		d := result.Difference{What: name, A: from, B: to}
		if end, what, ok := strings.Cut(name, " "); ok && (end == string(result.Client) || end == string(result.Server)) {
			d.End, d.What = result.End(end), what
		}
		out = append(out, d)
	}
	return out
}

func both(a, b string) bool { return strings.Contains(a, "both") != strings.Contains(b, "both") }

func orNone(s string) string {
	if s == "" {
		return "not set"
	}
	return s
}

// facts are the values of each fact that the runs of a side have, in order of their first coming.
type facts struct {
	order  []string
	values map[string][]string
}

func collect(runs []*result.Run, of func(*result.Run) []alike.Fact) facts {
	f := facts{values: map[string][]string{}}
	for _, r := range runs {
		for _, fact := range of(r) {
			if !slices.Contains(f.order, fact.Name) {
				f.order = append(f.order, fact.Name)
			}
			if !slices.Contains(f.values[fact.Name], fact.Value) {
				f.values[fact.Name] = append(f.values[fact.Name], fact.Value)
			}
		}
	}
	return f
}

// names are those of both sides.
func (f facts) names(g facts) []string {
	out := slices.Clone(f.order)
	for _, n := range g.order {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

func (f facts) text(name string) string {
	v := slices.Clone(f.values[name])
	slices.Sort(v)
	return strings.Join(v, ", ")
}
