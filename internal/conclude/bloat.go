package conclude

// bloatGrades are those of DSLReports' bufferbloat grades (https://www.dslreports.com/faq/17930),
// by the delay that a load adds, s; what is more than the last is F.
var bloatGrades = []struct {
	letter string
	below  float64
}{{"A+", 0.005}, {"A", 0.030}, {"B", 0.060}, {"C", 0.200}, {"D", 0.400}}

// BloatGrade grades the delay that a load adds, s.
func BloatGrade(rise float64) string {
	for _, g := range bloatGrades {
		if rise < g.below {
			return g.letter
		}
	}
	return "F"
}

// Responsive words round trips per minute by the classes of draft-ietf-ippm-responsiveness.
func Responsive(rpm float64) string {
	switch {
	case rpm < 300:
		return "poor"
	case rpm < 1000:
		return "fair"
	case rpm < 6000:
		return "good"
	}
	return "excellent"
}
