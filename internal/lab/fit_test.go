package lab

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLatenessLimit(t *testing.T) {
	for rtt, want := range map[time.Duration]time.Duration{
		0: time.Millisecond, 5 * time.Millisecond: time.Millisecond, 28 * time.Millisecond: time.Millisecond,
		80 * time.Millisecond: 2400 * time.Microsecond, time.Second: 30 * time.Millisecond,
	} {
		if got := LatenessLimit(rtt); got != want {
			t.Errorf("at %v: %v, want %v", rtt, got, want)
		}
	}
}

func TestVoid(t *testing.T) {
	report := func(rtt, up, down time.Duration, steal float64) *LinkReport {
		r := &LinkReport{RTT: rtt, Steal: steal}
		r.Directions[0].Late.Packets, r.Directions[1].Late.Packets = 100, 100
		r.Directions[0].Late.P99, r.Directions[1].Late.P99 = up, down
		return r
	}
	const ms = time.Millisecond
	tests := []struct {
		name string
		rep  *LinkReport
		want []string
	}{
		{"fit to the limits", report(28*ms, ms, ms, 0.05), nil},
		{"late one way", report(28*ms, 1001*time.Microsecond, ms, 0), []string{"lateness up p99 1.001ms > 1ms"}},
		{"late the other way", report(28*ms, 0, 5*ms, 0), []string{"lateness down p99 5ms > 1ms"}},
		{"a long path tolerates more", report(100*ms, 3*ms, 3*ms, 0), nil},
		{"one of few packets late", func() *LinkReport {
			r := report(28*ms, 0, 5*ms, 0)
			r.Directions[1].Late.Packets, r.Directions[1].Late.P50 = 99, ms
			return r
		}(), nil},
		{"most of few packets late", func() *LinkReport {
			r := report(28*ms, 0, 5*ms, 0)
			r.Directions[1].Late.Packets, r.Directions[1].Late.P50 = 99, 2*ms
			return r
		}(), []string{"lateness down p50 2ms > 1ms"}},
		{"stolen", report(28*ms, 0, 0, 0.0501), []string{"steal 5.0 % > 5 %"}},
		{"times unknown", func() *LinkReport {
			r := report(28*ms, 0, 0, 0)
			r.Directions[0].Unstamped, r.Directions[0].Link.In.Packets = 1, 100
			r.Directions[1].Unstamped, r.Directions[1].Link.In.Packets = 2, 199
			return r
		}(), []string{"down: 2 of 199 packets came at an unknown time"}},
		{"all of it", report(100*ms, 4*ms, 4*ms, 0.5), []string{
			"lateness up p99 4ms > 3ms", "lateness down p99 4ms > 3ms", "steal 50.0 % > 5 %",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.rep.Void()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
