package iperf3

import (
	"context"
	"log/slog"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// descriptors is how many files this process has open; -1 where the system does not list them.
func descriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(entries)
}

// level is what a server holds when nobody is there.
type level struct {
	goroutines, descriptors int
	heap, objects           uint64
}

func levelNow() level {
	runtime.GC()
	runtime.GC() // what finalizers let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return level{runtime.NumGoroutine(), descriptors(), m.HeapAlloc, m.HeapObjects}
}

// leaver ends its client's test as soon as it has begun.
type leaver func()

func (l leaver) Event(ev result.Event) {
	if ev.Kind == result.KindStart {
		l()
	}
}

// TestLongService: a day of short tests, of clients that break off and of connections that say
// nothing leaves a server what it was: no goroutine, no descriptor and no memory for each of them.
func TestLongService(t *testing.T) {
	ts := startServer(t, &Server{Log: slog.New(slog.DiscardHandler)})
	kinds := []plan.Plan{
		{Bytes: 1000, BlockSize: 1000},
		{Bytes: 1000, BlockSize: 1000, Direction: plan.Down, Extension: "off"},
		{Bytes: 2000, BlockSize: 1000, Direction: plan.Both, Streams: 2},
		{Transport: plan.UDP, Bytes: 2000, BlockSize: 500, Bitrate: 100e6, RateSet: true},
	}
	day := func(tests int) {
		for i := range tests {
			if i%10 == 9 { // one leaves in the middle
				ctx, cancel := context.WithCancel(t.Context())
				c := ts.client(plan.Plan{Duration: time.Minute, Bitrate: 1e6, RateSet: true})
				_ = c.Run(ctx, leaver(cancel)) // that it broke off is what it was to do
				cancel()
				continue
			}
			if i%10 == 4 { // one says nothing, one nonsense
				for _, words := range []string{"", "GET / HTTP/1.1\r\n\r\n"} {
					nc, err := net.Dial("tcp", ts.addr.String())
					if err != nil {
						t.Fatal(err)
					}
					_, _ = nc.Write([]byte(words))
					_ = nc.Close()
				}
			}
			if _, err := runClient(t, ts.client(kinds[i%len(kinds)])); err != nil {
				t.Fatalf("test %d: %v", i, err)
			}
		}
		ts.mu.Lock()
		ts.runs = nil // a server keeps none
		ts.mu.Unlock()
	}
	day(20) // what is made once is made now
	before := levelNow()
	const tests = 150
	day(tests)
	// The ends of the last tests may still be on their way.
	var after level
	eventually(t, "the server did not let go of its tests", func() bool {
		ts.mu.Lock()
		ts.runs = nil
		ts.mu.Unlock()
		after = levelNow()
		return after.goroutines <= before.goroutines && after.descriptors <= before.descriptors
	})
	t.Logf("%+v, then %+v", before, after)
	// Two objects that each test left would be 300 here and 20,000 after a day; the runtime's and the
	// testing package's own move by about a hundred.
	if grown := int64(after.objects) - int64(before.objects); grown > 2*tests {
		t.Errorf("%d objects more than before %d tests: %+v, then %+v", grown, tests, before, after)
	}
	if grown := int64(after.heap) - int64(before.heap); grown > tests<<10 {
		t.Errorf("%d bytes more than before %d tests: %+v, then %+v", grown, tests, before, after)
	}
}
