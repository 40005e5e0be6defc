package conclude_test

import (
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/conclude/sample"
	"github.com/fullbore-net/fullbore/result"
)

// A clock that falls under load is told, with both figures; one that holds, one of an idle
// processor, and one that was read too seldom are not.
func TestClock(t *testing.T) {
	const busy, idle = "5/70/20/5", "5/20/5/70"
	for _, c := range []struct {
		name   string
		cores  string
		clocks []int // by row; 0 = not read
		said   string
	}{
		{"falls", busy, []int{3400, 3400, 3300, 0, 2900, 2600, 2500, 2500, 2400}, "3400 MHz when this began and at 2450 MHz"},
		{"holds", busy, []int{3400, 3400, 3300, 0, 3400, 3300, 3300, 3400, 3300}, ""},
		{"rises", busy, []int{1200, 2400, 3400, 3400, 3400}, ""},
		{"falls since nothing is to do", idle, []int{3400, 3000, 2000, 1200, 800, 800}, ""},
		{"read twice", busy, []int{3400, 0, 0, 0, 1200}, ""},
		{"three readings", busy, []int{3400, 0, 3000, 0, 2000}, "3400 MHz when this began and at 2000 MHz"},
	} {
		t.Run(c.name, func(t *testing.T) {
			test := sample.New()
			test.Rates = sample.Flat(1e9, len(c.clocks))
			test.Hosts = func(e result.End, row int) *result.HostSample {
				h := sample.Cores(90, c.cores)
				if e == result.Server && c.clocks[row] > 0 {
					h.MHz = &c.clocks[row]
				}
				return h
			}
			run := test.Run()
			conclude.Conclude(run)
			said := ""
			for _, n := range run.Notices {
				if n.Code != conclude.ClockFell {
					continue
				}
				if said = n.Text; n.End != result.Server || n.Level != result.Warn {
					t.Errorf("%+v", n)
				}
			}
			if (said != "") != (c.said != "") || !strings.Contains(said, c.said) {
				t.Errorf("%q", said)
			}
		})
	}
}
