package ntttcp

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// TestTallyAddsUp: whatever comes from whomever and whenever, the counted rows are the totals.
func TestTallyAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rec := newRecorder()
		s := schedule{warmup: time.Duration(rapid.IntRange(0, 3).Draw(t, "warm")) * time.Millisecond}
		y := newTally(s, 2*time.Millisecond, 0, rec, nil)
		y.Start()
		var want int64
		var wg sync.WaitGroup
		for port := range 2 {
			sizes := rapid.SliceOfN(rapid.IntRange(2, 1400), 0, 60).Draw(t, "sizes")
			for _, n := range sizes {
				want += int64(n)
			}
			wg.Go(func() {
				for i, n := range sizes {
					y.add(datagramFlow{port, netip.AddrPortFrom(netip.IPv6Loopback(), uint16(i%5+1))}, result.Addr{}, n)
				}
			})
		}
		wg.Wait()
		total := y.Finish()
		var counted, all int64
		for _, f := range total.Flows {
			counted += f.Total.Bytes
			all += f.Total.Bytes + f.OmittedBytes
		}
		var rows int64
		last := 0.0
		for _, e := range rec.all() {
			iv := e.Interval
			if iv.Omitted {
				continue
			}
			if iv.Start < last-1e-9 {
				t.Fatalf("a row begins at %v, the one before ended at %v", iv.Start, last)
			}
			last = iv.Stop
			for _, s := range iv.Streams {
				rows += s.Bytes
			}
		}
		if rows != counted || all != want {
			t.Fatalf("rows have %d, totals %d; came %d, counted with the warm-up %d", rows, counted, want, all)
		}
		if again := y.Finish(); again.Elapsed != total.Elapsed {
			t.Fatal("a second Finish says something else")
		}
	})
}

// TestTallyNudges: what a finished sender still says is no payload.
func TestTallyNudges(t *testing.T) {
	y := newTally(schedule{}, time.Second, 0, nil, nil)
	y.Start()
	f := datagramFlow{0, netip.MustParseAddrPort("127.0.0.1:9")}
	y.add(f, result.Addr{}, 1000)
	y.add(f, result.Addr{}, 1)
	small := datagramFlow{0, netip.MustParseAddrPort("127.0.0.1:10")}
	y.add(small, result.Addr{}, 1) // a sender of single bytes
	y.add(small, result.Addr{}, 1)
	var total traffic.Totals = y.Finish()
	if len(total.Flows) != 2 || total.Flows[0].Total.Bytes != 1000 || total.Flows[1].Total.Bytes != 2 || *total.Flows[1].Total.Packets != 2 {
		t.Errorf("%+v", total.Flows)
	}
	y.add(f, result.Addr{}, 1000)
	if again := y.Finish(); again.Flows[0].Total.Bytes != 1000 {
		t.Error("it counts after its end")
	}
}
