package conclude

import (
	"fmt"

	"github.com/fullbore-net/fullbore/result"
)

// Bounds are the most delay variation (s) and the largest loss ratio of a grade.
type Bounds struct {
	Variation float64
	Loss      float64
}

func (b Bounds) hold(variation, loss float64) bool { return variation <= b.Variation && loss <= b.Loss }

// Profile is a use of a path with its bounds: "good" within the first, "usable" within the
// second, else "poor".
type Profile struct {
	Name         string
	Good, Usable Bounds
}

// Profiles are the grades that a run gets unless others are asked for. The second bounds are
// those of Cisco's enterprise QoS design guides for voice and interactive video (30 ms, 1 %);
// 10 ms and 0.1 to 0.5 % are the practitioners' rules of spec recipes §4.
func Profiles() []Profile {
	return []Profile{
		{Name: "voice", Good: Bounds{0.010, 0.005}, Usable: Bounds{0.030, 0.01}},
		{Name: "video", Good: Bounds{0.010, 0.001}, Usable: Bounds{0.030, 0.01}},
	}
}

// The values of a Grade.
const (
	good   = "good"
	usable = "usable"
	poor   = "poor"
)

// grades judges one direction by delay variation (p99; RFC 3550's mean jitter where the
// receiver tells no more) and loss; nil when one of them is not known.
func grades(d *direction, profiles []Profile) []result.Grade {
	if d.loss == nil || d.loss.Sent == 0 || !d.head.Basis.Arrived() {
		return nil
	}
	variation, basis, ok := variationOf(d.sum)
	if !ok {
		return nil
	}
	var out []result.Grade
	for _, p := range profiles {
		g := result.Grade{Name: p.Name, Grade: poor, Variation: variation, Basis: basis, Loss: d.loss.Ratio}
		switch {
		case p.Good.hold(variation, d.loss.Ratio):
			g.Grade = good
		case p.Usable.hold(variation, d.loss.Ratio):
			g.Grade = usable
		}
		out = append(out, g)
	}
	return out
}

// variationOf is the figure by which a direction is graded, s, and what it is.
func variationOf(s *result.Sum) (v float64, basis string, ok bool) {
	switch {
	case s.UDP != nil && s.UDP.Received != nil && s.UDP.Received.PDV != nil:
		return s.UDP.Received.PDV.P99, "pdv-p99", true
	case s.Receiver != nil && s.Receiver.Jitter != nil:
		return *s.Receiver.Jitter, "jitter", true
	}
	return 0, "", false
}

// GradeText says a grade with its reasons: "voice good (PDV p99 0.08 ms, loss 0 %)".
func GradeText(gs []result.Grade) string {
	text := ""
	for i, g := range gs {
		if i > 0 {
			text += ", "
		}
		text += g.Name + " " + g.Grade
	}
	if len(gs) == 0 {
		return ""
	}
	what := "PDV p99"
	if gs[0].Basis == "jitter" {
		what = "jitter"
	}
	return text + fmt.Sprintf(" (%s %.3g ms, loss %s)", what, gs[0].Variation*1000, percent(gs[0].Loss))
}
