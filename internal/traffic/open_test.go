package traffic

import (
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Flows whose turn has not come send nothing; Open lets them begin, in order, and none stops.
func TestOpen(t *testing.T) {
	for _, n := range []int{3, manyFlows} {
		t.Run(workerName(n), func(t *testing.T) {
			a, b := pairs(t, n)
			tx := start(t, Config{End: result.Client, Interval: time.Second, Open: 1}, flowsOf(a, result.Up, true))
			rx := start(t, Config{End: result.Server, Interval: time.Second}, flowsOf(b, result.Up, false))
			begun := func() (n int) {
				for _, f := range rx.Snapshot().Flows {
					if f.Total.Bytes == 0 {
						break
					}
					n++
				}
				return n
			}
			poll(t, "traffic of the first flow", func() bool { return begun() == 1 })
			first := rx.Snapshot().Flows[0].Total.Bytes
			poll(t, "more of it", func() bool { return rx.Snapshot().Flows[0].Total.Bytes > first+10<<20 })
			for i, f := range rx.Snapshot().Flows[1:] {
				if f.Total.Bytes != 0 {
					t.Errorf("flow %d has begun", i+2)
				}
			}
			tx.Open(2)
			poll(t, "traffic of the second", func() bool { return begun() >= 2 })
			tx.Open(1) // none stops
			tx.Open(n)
			poll(t, "traffic of all", func() bool { return begun() == n })
			within(t, 5*time.Second, "Close", func() { tx.Close(); rx.Close() })
		})
	}
	if err := validate(Config{Transport: plan.UDP, BlockSize: 100, Open: 1}, nil); err == nil {
		t.Error("datagrams are not opened")
	}
}
