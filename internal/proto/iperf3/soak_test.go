package iperf3

import (
	"runtime"
	"testing"

	"github.com/fullbore-net/fullbore/result"
)

// A server keeps nothing of a test's intervals but what the test's end needs: a hundred thousand of both
// ends, 28 hours of seconds, leave its heap as it was. They are put in as the engine and the reader of
// frames do, in fast motion.
func TestServerMemoryOfALongTest(t *testing.T) {
	const rows = 100_000
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // what finalizers hold goes with the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	seen := 0
	x := &session{s: &Server{}, hooks: TestHooks{Sink: result.SinkFunc(func(result.Event) { seen++ })}}
	x.out = newEmitter(result.Server, result.SinkFunc(x.event))
	x.out.begin()
	x.out.Event(result.Event{Kind: result.KindStart, Head: &result.Run{End: result.Server, Streams: []result.Stream{{ID: 1, Direction: result.Up}, {ID: 3, Direction: result.Down}}}})
	streams := []result.StreamInterval{{ID: 1, Bytes: 1 << 20, TCP: &result.TCPInfo{RTT: 100}}, {ID: 3, Sender: true, Bytes: 1 << 20, TCP: &result.TCPInfo{RTT: 100}}}
	sums := []result.IntervalSum{{Direction: result.Up, Bytes: 1 << 20}, {Direction: result.Down, Sender: true, Bytes: 1 << 20}}
	put := func(from, to int) {
		for i := from; i < to; i++ {
			for _, end := range []result.End{result.Server, result.Client} {
				at := float64(i) // a row that is kept costs at least itself
				x.out.Event(result.Event{Kind: result.KindInterval, End: end, Interval: &result.Interval{
					End: end, Index: i, Start: at, Stop: at + 1, Host: &result.HostSample{}, Streams: streams, Sums: sums,
				}})
			}
		}
	}
	put(0, rows/100)
	before := heap()
	put(rows/100, rows)
	if grown := heap() - before; grown > 512<<10 {
		t.Errorf("%d intervals took %d bytes of the heap", rows, grown)
	}
	x.foldMu.Lock()
	run := x.folder.Run()
	x.foldMu.Unlock()
	if n := len(run.Rows); n > 4 || seen != 2*rows+1 {
		t.Errorf("%d rows kept, %d events handed on", n, seen)
	}
	if run.RowsLeft < 2*rows-4 {
		t.Errorf("%d rows are said to be left out", run.RowsLeft)
	}
}
