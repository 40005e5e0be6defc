package method

import (
	"slices"
)

// A sweep goes on where its first settings do not answer: beyond the last one while the rate still
// grows there, below the first one while that one does as well as the best, and then between what
// has been measured, so that what it recommends is the least that fills the path.

// refinements is how often a sweep looks between settings that it has measured: the first time
// beside the best (12 between 8 and 16) and below the cheapest one that does as well, then only
// below that one. Settings that were doubled are so known to an eighth.
const refinements = 2

// nearEnough: a gap below the cheapest setting of at most this share of it is not halved again.
const nearEnough = 1.0 / 8

// refined is how many settings the refinements measure at most: two beside the best, one below the
// cheapest, and both of these again, at the same time; then one more below the cheapest, and that
// again.
const refined = 5 + 2*(refinements-1)

// extensions is how often the sweep goes beyond its last setting (M-KNEE: twice at most). A window
// scan may do so four times: what it took for the bottleneck may have been held by windows itself.
func (s Sweep) extensions() int {
	if s.Axis == Window {
		return 4
	}
	return 2
}

// Follows is how many settings may follow those of Possible, at most: with the rounds of each, and
// their length, the bound of what a sweep costs besides.
func (s Sweep) Follows() int {
	s = s.filled()
	if s.Fixed {
		return 0
	}
	n := s.extensions()
	if s.Axis == Streams {
		for low := slices.Min(append(s.settings(nil), s.Most)); low > 1; low /= 2 {
			n++
		}
	}
	if s.Axis == Window && len(s.Settings) == 0 {
		return n
	}
	return n + refined
}

// further is the setting beyond the last one where the rate still grew there (and up allows it), or
// below the first where that one does as well as the best already; 0 = there is none.
func (s Sweep) further(p []KneePoint, settings []int64, up bool) (next int64, above bool) {
	a := Knee(p)
	if len(settings) == 0 || a.Best == 0 {
		return 0, false
	}
	low, high := slices.Min(settings), slices.Max(settings)
	switch {
	case up && !a.Reached && 2*high <= s.Most:
		return 2 * high, true
	case s.Axis == Streams && low > 1 && int64(a.Cheapest) == low:
		return low / 2, false
	}
	return 0, false
}

// between are settings halfway from the best to its neighbours (in the first turn), and from the
// cheapest that does as well as the best to the one below it. The best may owe its place to chance:
// on a flat stretch of the curve any of the settings can read highest, and then it is the cheapest
// whose surroundings matter. Best and cheapest are measured again with them, so that they are compared
// at the same time. nil = there is nothing to be found: where the least setting does as well,
// nothing lies below it.
func (s Sweep) between(p []KneePoint, turn int) []int64 {
	a := Knee(p)
	if len(p) < 3 || a.Best == 0 || a.Cheapest == p[0].X {
		return nil
	}
	at := func(x float64) int { return slices.IndexFunc(p, func(q KneePoint) bool { return q.X == x }) }
	var out []int64
	halve := func(i int, least float64) { // between the points i−1 and i, where they lie further apart than least
		from, to := int64(p[i-1].X), int64(p[i].X)
		m := (from + to) / 2
		if s.Axis != Streams {
			m = m / 1024 * 1024
		}
		if m > from && m < to && float64(to-from) > least {
			out = append(out, m)
		}
	}
	best, cheapest := at(a.Best), at(a.Cheapest)
	if turn == 0 {
		halve(best, 0)
		if best+1 < len(p) {
			halve(best+1, 0)
		}
		halve(cheapest, 0)
	} else {
		halve(cheapest, nearEnough*a.Cheapest)
	}
	if len(out) == 0 {
		return nil
	}
	if turn == 0 {
		out = append(out, int64(a.Best))
	}
	out = append(out, int64(a.Cheapest))
	slices.Sort(out)
	return slices.Compact(out)
}
