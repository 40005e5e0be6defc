package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/internal/units"
)

// Assertion is one sentence about a JSON document:
//
//	PATH OP VALUE [± TOLERANCE]
//	PATH exists | PATH missing
//
// PATH is keys joined by dots with indices in brackets: sums[0].receiver.bytes. [*]
// stands for every element; then all must satisfy the assertion, and there must be
// one. OP is ==, !=, <, <=, >, >= or contains (of texts). VALUE is a number, which may
// have a unit or prefix of package units' rates (190M, 1.5 Gbit/s), or true, false,
// null, or a "quoted text". TOLERANCE, with == only, is a number likewise or a
// percentage of VALUE; +- may be written for ±.
type Assertion struct {
	text      string
	path      Path
	op        string
	value     any // nil, bool, string, float64
	tolerance float64
}

// Path is a place in a JSON document, or several.
type Path []step

// step is a key, an index, or every element.
type step struct {
	key   string
	index int
	every bool
	isKey bool
}

const (
	opExists   = "exists"
	opMissing  = "missing"
	opContains = "contains"
)

// ParseAssertion reads one assertion.
func ParseAssertion(text string) (*Assertion, error) {
	a := &Assertion{text: strings.TrimSpace(text)}
	first, rest, _ := strings.Cut(a.text, " ")
	var err error
	if a.path, err = ParsePath(first); err != nil {
		return nil, fmt.Errorf("assertion %q: %w", a.text, err)
	}
	op, value, _ := strings.Cut(strings.TrimSpace(rest), " ")
	a.op, value = op, strings.TrimSpace(value)
	switch op {
	case opExists, opMissing:
		if value != "" {
			return nil, fmt.Errorf("assertion %q: %q takes no value", a.text, op)
		}
		return a, nil
	case "==", "!=", "<", "<=", ">", ">=", opContains:
	case "":
		return nil, fmt.Errorf("assertion %q: no operator after the path", a.text)
	default:
		return nil, fmt.Errorf("assertion %q: unknown operator %q; there are: == != < <= > >= contains exists missing", a.text, op)
	}
	if err := a.parseOperand(value); err != nil {
		return nil, fmt.Errorf("assertion %q: %w", a.text, err)
	}
	return a, nil
}

func (a *Assertion) parseOperand(text string) error {
	text = strings.ReplaceAll(text, "+-", "±")
	value, tolerance, hasTolerance := strings.Cut(text, "±")
	if strings.HasPrefix(text, `"`) {
		value, tolerance, hasTolerance = text, "", false
	}
	v, err := parseOperandValue(strings.TrimSpace(value))
	if err != nil {
		return err
	}
	a.value = v
	_, number := v.(float64)
	_, isText := v.(string)
	if a.op == opContains && !isText {
		return fmt.Errorf("contains needs a quoted text")
	}
	if strings.ContainsAny(a.op, "<>") && !number {
		return fmt.Errorf("%s needs a number", a.op)
	}
	if !hasTolerance {
		return nil
	}
	if a.op != "==" || !number {
		return errors.New("a tolerance needs == and a number")
	}
	tolerance = strings.TrimSpace(tolerance)
	percent, relative := strings.CutSuffix(tolerance, "%")
	t, err := parseNumber(strings.TrimSpace(percent))
	if err != nil {
		return fmt.Errorf("tolerance: %w", err)
	}
	if t < 0 {
		return fmt.Errorf("tolerance %q is negative", tolerance)
	}
	if relative {
		t = math.Abs(v.(float64)) * t / 100
	}
	a.tolerance = t
	return nil
}

func parseOperandValue(text string) (any, error) {
	switch {
	case text == "":
		return nil, errors.New("no value")
	case text == "null":
		return nil, nil
	case text == "true":
		return true, nil
	case text == "false":
		return false, nil
	case strings.HasPrefix(text, `"`):
		var s string
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return nil, fmt.Errorf("bad text %s: %w", text, err)
		}
		return s, nil
	}
	return parseNumber(text)
}

// parseNumber reads a number, or a rate with a unit.
func parseNumber(text string) (float64, error) {
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return 0, fmt.Errorf("%q is not a number", text)
		}
		return v, nil
	}
	rate, err := units.ParseRate(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no number, rate, true, false, null or \"text\"", text)
	}
	return float64(rate), nil
}

// ParsePath reads a path as Assertion describes it.
func ParsePath(text string) (Path, error) {
	if text == "" {
		return nil, errors.New("no path")
	}
	bad := func(why string) (Path, error) { return nil, fmt.Errorf("path %q: %s", text, why) }
	var steps Path
	rest := text
	for first := true; rest != ""; first = false {
		if rest[0] == '[' {
			inside, after, ok := strings.Cut(rest[1:], "]")
			if !ok {
				return bad("[ without ]")
			}
			s := step{every: inside == "*"}
			if !s.every {
				i, err := strconv.Atoi(inside)
				if err != nil || i < 0 {
					return bad(fmt.Sprintf("index %q is neither * nor a number from 0", inside))
				}
				s.index = i
			}
			steps, rest = append(steps, s), after
			continue
		}
		if !first {
			if rest[0] != '.' {
				return bad("a key after ] needs a dot")
			}
			rest = rest[1:]
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			return bad("an empty key")
		}
		steps, rest = append(steps, step{key: rest[:end], isKey: true}), rest[end:]
	}
	return steps, nil
}

// find returns every value at path, and the first place where there was none.
func find(doc any, path Path, at string) (values []any, missing []string) {
	if len(path) == 0 {
		return []any{doc}, nil
	}
	s, rest := path[0], path[1:]
	if s.isKey {
		at = strings.TrimPrefix(at+"."+s.key, ".")
		object, _ := doc.(map[string]any)
		v, ok := object[s.key]
		if !ok {
			return nil, []string{at}
		}
		return find(v, rest, at)
	}
	list, _ := doc.([]any)
	if !s.every {
		at = fmt.Sprintf("%s[%d]", at, s.index)
		if s.index >= len(list) {
			return nil, []string{at}
		}
		return find(list[s.index], rest, at)
	}
	if len(list) == 0 {
		return nil, []string{at + "[*]"}
	}
	for i, v := range list {
		vs, ms := find(v, rest, fmt.Sprintf("%s[%d]", at, i))
		values, missing = append(values, vs...), append(missing, ms...)
	}
	return values, missing
}

// number returns the one number at p.
func (p Path) number(doc any) (float64, error) {
	values, missing := find(doc, p, "")
	switch {
	case len(missing) > 0:
		return 0, fmt.Errorf("there is no %s", missing[0])
	case len(values) != 1:
		return 0, fmt.Errorf("%d values where one was wanted", len(values))
	}
	v, ok := values[0].(float64)
	if !ok {
		return 0, fmt.Errorf("%s is no number", show(values[0]))
	}
	return v, nil
}

// Check returns "" when the assertion holds for a document that encoding/json has
// decoded (numbers as float64), else what was found instead.
func (a *Assertion) Check(doc any) string {
	values, missing := find(doc, a.path, "")
	switch a.op {
	case opMissing:
		if len(values) > 0 {
			return fmt.Sprintf("%s: it is there: %s", a.text, show(values[0]))
		}
		return ""
	case opExists:
		if len(missing) > 0 {
			return fmt.Sprintf("%s: there is no %s", a.text, missing[0])
		}
		return ""
	}
	if len(missing) > 0 {
		return fmt.Sprintf("%s: there is no %s", a.text, missing[0])
	}
	for _, v := range values {
		if !a.holds(v) {
			return fmt.Sprintf("%s: found %s", a.text, show(v))
		}
	}
	return ""
}

func (a *Assertion) holds(v any) bool {
	switch a.op {
	case opContains:
		s, ok := v.(string)
		return ok && strings.Contains(s, a.value.(string))
	case "!=":
		return v != a.value
	case "==":
		if want, ok := a.value.(float64); ok {
			got, ok := v.(float64)
			return ok && math.Abs(got-want) <= a.tolerance
		}
		return v == a.value
	}
	got, ok := v.(float64)
	if !ok {
		return false
	}
	want := a.value.(float64)
	switch a.op {
	case "<":
		return got < want
	case "<=":
		return got <= want
	case ">":
		return got > want
	default: // ">=": the parser accepts no other
		return got >= want
	}
}

// show prints a value found, shortened.
func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	const most = 120
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}
