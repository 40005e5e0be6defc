package diagnose

import (
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/result"
)

// beside is a single stream of ten seconds beside others on its sender's interface, bit/s.
func beside(name string, bps, others float64, at time.Duration) flow {
	run := &result.Run{Test: result.Test{Transport: "tcp"}, Started: time.Unix(0, 0).Add(at), End: result.Client}
	zero := int64(0)
	for i := range 10 {
		bytes := int64(bps / 8)
		packets := bps / 8 / segment
		run.Rows = append(run.Rows, result.Interval{
			End: result.Client, Start: float64(i), Stop: float64(i + 1),
			Sums: []result.IntervalSum{{Direction: result.Up, Bytes: bytes, BPS: bps, Retransmits: &zero, Start: float64(i), Stop: float64(i + 1)}},
			Host: &result.HostSample{NIC: &result.NICDelta{Name: "eth0", TxBytes: int64(packets*(segment+66) + others/8)}},
		})
	}
	return flow{name: name, run: run, dir: result.Up, streams: 1, rate: bps, arrived: true, ratioKnown: true, mss: segment, rttMin: 0.01, rttMean: 0.01, load: [2]float64{-1, -1}}
}

func TestCompetingLater(t *testing.T) {
	for _, k := range []struct {
		name        string
		rate, other float64 // later; rate 0 = it was not repeated
		certainty   string
		says        string
	}{
		{"not repeated", 0, 0, Likely, "not this test's"},
		{"gone, and the stream took its place", 97e6, 0, Proven, "1.6 times as much"},
		{"gone, and nothing is faster", 58e6, 0, Possible, "all the same"},
		{"still there", 57e6, 41e6, Likely, "still there"},
	} {
		t.Run(k.name, func(t *testing.T) {
			c := &Case{}
			flows := []flow{beside("up-1", 60e6, 40e6, time.Second)}
			if k.rate > 0 {
				flows = append(flows, beside("up-again", k.rate, k.other, 21*time.Second))
			}
			c.Up, c.Down = leg{dir: result.Up, case_: c, flows: flows}, leg{dir: result.Down, case_: c}
			c.History = []method.Done{{Step: method.Step{Name: "up-1"}, Run: flows[0].run}}
			vs := competing(c)
			if len(vs) != 1 || vs[0].Certainty != k.certainty || !strings.Contains(strings.Join(vs[0].Evidence, "\n"), k.says) {
				t.Fatalf("%+v", vs)
			}
			s := Planner{Budget: Default()}.again(c, &c.Up)
			if s == nil || s.Pause < later || s.Name != "up-again" {
				t.Errorf("others are there, and it is not repeated: %+v", s)
			}
		})
	}
	c := &Case{}
	c.Up, c.Down = leg{dir: result.Up, case_: c, flows: []flow{beside("up-1", 96e6, 0, time.Second)}}, leg{dir: result.Down, case_: c}
	if s := (Planner{Budget: Default()}).again(c, &c.Up); s != nil {
		t.Errorf("nothing disturbs, and it is repeated: %+v", s)
	}
}
