package ntttcp

import (
	"testing"

	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// TestWithoutParting: what a sender waits before it closes is no time of the test; a stall is.
func TestWithoutParting(t *testing.T) {
	t.Parallel()
	totals := func(elapsed float64, last ...float64) traffic.Totals {
		tt := traffic.Totals{Elapsed: elapsed}
		for _, l := range last {
			tt.Flows = append(tt.Flows, traffic.FlowTotal{LastByte: l, Total: result.Total{End: elapsed, Bytes: 1}})
		}
		return tt
	}
	for _, c := range []struct {
		name    string
		elapsed float64
		last    []float64
		want    float64
	}{
		{"half a second after the last byte", 1.5, []float64{0.9, 1}, 1},
		{"at once", 1, []float64{1, 0.5}, 1},
		{"after a stall", 12, []float64{2, 1}, 12},
		{"nothing came", 0.7, []float64{0}, 0.7},
	} {
		in := totals(c.elapsed, c.last...)
		out := withoutParting(in)
		if out.Elapsed != c.want || out.Flows[0].Total.End != c.want || in.Flows[0].Total.End != c.elapsed {
			t.Errorf("%s: %v s, its flow's end %v (was %v), want %v", c.name, out.Elapsed, out.Flows[0].Total.End, in.Flows[0].Total.End, c.want)
		}
	}
}
