package svg

// Thin returns at most about most points that look like all of them: of each span its least
// and its largest value, the first and the last. Gaps stay gaps.
func Thin(ps []Point, most int) []Point {
	if most < 8 || len(ps) <= most {
		return ps
	}
	spans := most / 2
	out := make([]Point, 0, most+2)
	for i := range spans {
		part := ps[i*len(ps)/spans : (i+1)*len(ps)/spans]
		if len(part) == 0 {
			continue
		}
		lo, hi := -1, -1
		for k, p := range part {
			if !finite(p.Y) {
				continue
			}
			if lo < 0 || p.Y < part[lo].Y {
				lo = k
			}
			if hi < 0 || p.Y >= part[hi].Y {
				hi = k
			}
		}
		first, second := min(lo, hi), max(lo, hi)
		switch {
		case lo < 0:
			out = append(out, part[0])
		case first == second:
			out = append(out, part[first])
		default:
			out = append(out, part[first], part[second])
		}
	}
	if first := ps[0]; out[0].X > first.X {
		out = append([]Point{first}, out...)
	}
	if last := ps[len(ps)-1]; out[len(out)-1].X < last.X {
		out = append(out, last)
	}
	for i := 1; i < len(out); i++ { // levels go on to the next that was kept
		if finite(out[i-1].Y) {
			out[i-1].To = out[i].X
		}
	}
	return out
}

// ThinSum is Thin for counts: neighbours are added up, so that their total stays.
func ThinSum(ps []Point, most int) []Point {
	if most < 1 || len(ps) <= most {
		return ps
	}
	out := make([]Point, 0, most)
	for i := range most {
		part := ps[i*len(ps)/most : (i+1)*len(ps)/most]
		sum := Point{X: part[0].X, To: part[len(part)-1].To}
		for _, p := range part {
			if finite(p.Y) {
				sum.Y += p.Y
			}
		}
		out = append(out, sum)
	}
	return out
}

// CDF makes the steps of a distribution function out of counts in classes: from each class's
// upper bound on, the share of all that lies below it.
func CDF(upper []float64, counts []int64) []Point {
	total := int64(0)
	for _, n := range counts {
		total += n
	}
	if total == 0 || len(upper) != len(counts) {
		return nil
	}
	out := make([]Point, 0, len(upper))
	sum := int64(0)
	for i, n := range counts {
		sum += n
		p := Point{X: upper[i], To: upper[i], Y: float64(sum) / float64(total)}
		if i+1 < len(upper) {
			p.To = upper[i+1]
		}
		out = append(out, p)
	}
	return out
}
