package delay

import "slices"

// lowerHull returns the lower convex hull of points in ascending time (Andrew 1979): the
// best delays, with the line between neighbours below all other points.
func lowerHull(points []point) []point {
	var h []point
	for _, p := range points {
		// Of several at one time only the least.
		if n := len(h); n > 0 && h[n-1].time == p.time {
			if p.d >= h[n-1].d {
				continue
			}
			h = h[:n-1]
		}
		for len(h) >= 2 && !leftTurn(h[len(h)-2], h[len(h)-1], p) {
			h = h[:len(h)-1]
		}
		h = append(h, p)
	}
	return h
}

// leftTurn reports whether b lies below the line from a to c.
func leftTurn(a, b, c point) bool {
	return float64(b.d-a.d)*float64(c.time-a.time) < float64(c.d-a.d)*float64(b.time-a.time)
}

// slopeBelow returns the slope of the line that lies below all points and is nearest to
// them in the sum, which is the hull's edge over their mean time (Moon, Skelly and
// Towsley 1999; Zhang, Liu and Xia 2002): the drift of the clocks, however much the
// network adds. points is sorted. ok is false with fewer than two times.
func slopeBelow(points []point, meanTime float64) (slope float64, ok bool) {
	slices.SortStableFunc(points, func(a, b point) int {
		switch {
		case a.time < b.time:
			return -1
		case a.time > b.time:
			return 1
		}
		return 0
	})
	h := lowerHull(points)
	if len(h) < 2 {
		return 0, false
	}
	i := 1
	for i < len(h)-1 && float64(h[i].time) < meanTime {
		i++
	}
	return float64(h[i].d-h[i-1].d) / float64(h[i].time-h[i-1].time), true
}
