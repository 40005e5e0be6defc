package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// figureKind is how a figure's bound is read and a figure is printed.
type figureKind struct {
	parse func(string) (float64, error)
	print func(float64) string
	unit  string // as in result.Value; "" = a plain number
}

// The kinds of figures: bit/s, shares of 1, seconds, plain numbers.
var (
	rateKind = figureKind{
		parse: func(s string) (float64, error) {
			r, err := units.ParseRate(s)
			return float64(r), err
		},
		print: func(v float64) string { return units.BitRate(v).String() },
		unit:  "bit/s",
	}
	shareKind  = figureKind{parse: parseShare, print: func(v float64) string { return strconv.FormatFloat(100*v, 'g', 3, 64) + " %" }, unit: "ratio"}
	timeKind   = figureKind{parse: parseSeconds, print: millisText, unit: "s"}
	packetKind = figureKind{parse: numberKind.parse, print: numberKind.print, unit: "bytes"}
	numberKind = figureKind{
		parse: func(s string) (float64, error) { return strconv.ParseFloat(strings.TrimSpace(s), 64) },
		print: func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) },
	}
)

// threshold is one term of an --expect: a figure compared with a bound.
type threshold struct {
	figure string // its word
	op     string
	bound  float64 // bit/s, share, seconds
	text   string  // as typed
}

// figures are what can be expected of a direction: how the bound is read, where the figure
// comes from, how it is printed.
var figures = map[string]struct {
	name  string // in sentences
	udp   bool
	parse func(string) (float64, error)
	of    func(run *result.Run, s *result.Sum) (float64, bool)
	print func(float64) string
}{
	"rate": {
		name:  "the receiver's rate",
		parse: rateKind.parse,
		of: func(_ *result.Run, s *result.Sum) (float64, bool) {
			if s.Goodput == nil {
				return 0, false
			}
			return *s.Goodput, true
		},
		print: rateKind.print,
	},
	"loss": {
		name: "the loss", udp: true, parse: parseShare,
		of: func(run *result.Run, s *result.Sum) (float64, bool) {
			l := conclude.LossOf(run, s.Direction)
			if l == nil || l.Sent == 0 {
				return 0, false
			}
			return l.Ratio, true
		},
		print: func(v float64) string { return strconv.FormatFloat(100*v, 'g', 3, 64) + " % lost" },
	},
	"jitter": {
		name: "the jitter", udp: true, parse: parseSeconds,
		of: func(_ *result.Run, s *result.Sum) (float64, bool) {
			switch {
			case s.UDP != nil && s.UDP.Received != nil && s.UDP.Received.Jitter != nil:
				return s.UDP.Received.Jitter.Mean, true
			case s.Receiver != nil && s.Receiver.Jitter != nil:
				return *s.Receiver.Jitter, true
			}
			return 0, false
		},
		print: func(v float64) string { return millisText(v) + " of jitter" },
	},
	"pdv": {
		name: "the delay variation", udp: true, parse: parseSeconds,
		of: func(_ *result.Run, s *result.Sum) (float64, bool) {
			if s.UDP == nil || s.UDP.Received == nil || s.UDP.Received.PDV == nil {
				return 0, false
			}
			return s.UDP.Received.PDV.P99, true
		},
		print: func(v float64) string { return millisText(v) + " of delay variation (p99)" },
	},
}

func millisText(s float64) string { return strconv.FormatFloat(1000*s, 'g', 3, 64) + " ms" }

// parseSeconds reads a time with its unit: 5 alone would be 5 s, and ms are what people mean.
func parseSeconds(s string) (float64, error) {
	if s = strings.TrimSpace(s); s != "" && strings.ContainsRune("0123456789.", rune(s[len(s)-1])) {
		return 0, fmt.Errorf("%q has no unit: write %[1]sms", s)
	}
	d, err := units.ParseDuration(s)
	return d.Seconds(), err
}

// parseShare reads 0.1% or a fraction such as 1e-6.
func parseShare(s string) (float64, error) {
	text, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, fmt.Errorf("%q is no share: write 0.1%% or 0.001", s)
	}
	return v, nil
}

// parseThresholds reads the terms of an --expect, separated by commas: ">= 5 Gbit/s",
// "rate >= 950M, loss <= 0.1%, jitter <= 5ms, pdv <= 10ms". Without a word the rate is meant.
func parseThresholds(s string, udp bool) ([]threshold, error) {
	var out []threshold
	for term := range strings.SplitSeq(s, ",") {
		t, err := parseThreshold(strings.TrimSpace(term))
		if err != nil {
			return nil, err
		}
		if figures[t.figure].udp && !udp {
			return nil, usagef("--expect %q: %s is known of UDP tests only (-u)", term, t.figure)
		}
		out = append(out, t)
	}
	return out, nil
}

func parseThreshold(s string) (threshold, error) {
	hints := []string{"for example: --expect '>= 5 Gbit/s'", "of UDP also: --expect '>= 950M, loss <= 0.1%, jitter <= 5ms, pdv <= 10ms'"}
	kinds := map[string]figureKind{}
	for word, f := range figures {
		kinds[word] = figureKind{parse: f.parse, print: f.print}
	}
	return parseTerm(s, kinds, "rate", hints)
}

// parseTerm reads a term over the figures of kinds; without a word first is meant.
func parseTerm(s string, kinds map[string]figureKind, first string, hints []string) (threshold, error) {
	t := threshold{text: s, figure: first}
	at := strings.IndexAny(s, "<>")
	if at > 0 {
		t.figure = strings.ToLower(strings.TrimSpace(s[:at]))
	}
	f, known := kinds[t.figure]
	switch {
	case at < 0:
		return t, &UsageError{Msg: fmt.Sprintf("--expect %q: begin with >=, >, <= or <", s), Hints: hints}
	case !known:
		words := slices.Sorted(maps.Keys(kinds))
		if i := slices.Index(words, first); i > 0 { // the first one first
			words = slices.Insert(slices.Delete(words, i, i+1), 0, first)
		}
		return t, &UsageError{Msg: fmt.Sprintf("--expect %q: %q is not %s", s, t.figure, orList(words)), Hints: hints}
	}
	rest := s[at:]
	t.op = rest[:1]
	if strings.HasPrefix(rest[1:], "=") {
		t.op = rest[:2]
	}
	bound, err := f.parse(strings.TrimSpace(rest[len(t.op):]))
	if err != nil {
		return t, usagef("--expect: %v", err)
	}
	t.bound = bound
	return t, nil
}

// orList is "a, b or c".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// met reports whether a figure satisfies the comparison.
func (t threshold) met(v float64) bool {
	switch t.op {
	case ">=":
		return v >= t.bound
	case ">":
		return v > t.bound
	case "<=":
		return v <= t.bound
	}
	return v < t.bound
}

// check compares one direction; a figure that is not known is inconclusive.
func (t threshold) check(run *result.Run, s *result.Sum) result.Item {
	f := figures[t.figure]
	item := result.Item{ID: "expect", Result: result.Pass}
	v, known := f.of(run, s)
	switch {
	case !known:
		item.Result = result.Inconclusive
		item.Reasons = []string{fmt.Sprintf("expected %s: %s %s → %s is not known", t.text, f.name, s.From, s.To)}
	case t.met(v):
		item.Reasons = []string{fmt.Sprintf("expected %s, measured %s %s → %s", t.text, f.print(v), s.From, s.To)}
	default:
		item.Result = result.Fail
		item.Reasons = []string{fmt.Sprintf("missed: expected %s, measured %s %s → %s", t.text, f.print(v), s.From, s.To)}
	}
	return item
}

// checkAll compares every direction with every threshold. What came of it goes to stderr
// where it is not a pass, and into the report.
func checkAll(ts []threshold, e *env, run *result.Run, out *output) error {
	worst := exitOK
	for i := range run.Sums {
		for _, t := range ts {
			item := t.check(run, &run.Sums[i])
			switch item.Result {
			case result.Inconclusive:
				worst = max(worst, exitInconclusive)
			case result.Fail:
				worst = max(worst, exitMissed)
			}
			if item.Result != result.Pass {
				fmt.Fprintf(e.Err, "fullbore: %s\n", item.Reasons[0])
			}
			if out != nil {
				out.items = append(out.items, item)
			}
		}
	}
	if worst == exitOK {
		return nil
	}
	return &codeError{code: worst}
}

// parseProfile reads a --grade: NAME=VARIATION/LOSS, good within and else poor, or two pairs
// for good and usable: voice=10ms/0.5%,30ms/1%.
func parseProfile(s string) (conclude.Profile, error) {
	fail := func(why string) (conclude.Profile, error) {
		return conclude.Profile{}, &UsageError{Msg: fmt.Sprintf("--grade %q: %s", s, why), Hints: []string{
			"for example: --grade voice=30ms/1%   good within, else poor", "or: --grade voice=10ms/0.5%,30ms/1%   good within the first, usable within the second",
		}}
	}
	name, rest, ok := strings.Cut(s, "=")
	if name = strings.TrimSpace(name); !ok || name == "" {
		return fail("want NAME=VARIATION/LOSS")
	}
	p := conclude.Profile{Name: name}
	pairs := strings.Split(rest, ",")
	if len(pairs) > 2 {
		return fail("at most two pairs: good and usable")
	}
	for i, pair := range pairs {
		variation, loss, ok := strings.Cut(pair, "/")
		if !ok {
			return fail("want VARIATION/LOSS, e.g. 30ms/1%")
		}
		d, err := parseSeconds(variation)
		if err != nil {
			return fail(err.Error())
		}
		share, err := parseShare(loss)
		if err != nil {
			return fail(err.Error())
		}
		b := conclude.Bounds{Variation: d, Loss: share}
		if i == 0 {
			p.Good = b
		}
		p.Usable = b
	}
	if p.Usable.Variation < p.Good.Variation || p.Usable.Loss < p.Good.Loss {
		return fail("the second pair must be the wider one")
	}
	return p, nil
}

// gradeProfiles are the default grades with those of --grade in place of their namesakes.
func gradeProfiles(words []string) ([]conclude.Profile, error) {
	out := conclude.Profiles()
	for _, w := range words {
		p, err := parseProfile(w)
		if err != nil {
			return nil, err
		}
		replaced := false
		for i := range out {
			if out[i].Name == p.Name {
				out[i], replaced = p, true
			}
		}
		if !replaced {
			out = append(out, p)
		}
	}
	return out, nil
}
