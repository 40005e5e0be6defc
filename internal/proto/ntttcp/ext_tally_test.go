package ntttcp

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

func flow(port int, from string) datagramFlow {
	return datagramFlow{port, netip.MustParseAddrPort(from)}
}

// TestExpected: streams have the sender's numbers, whoever comes first; those of which nothing
// came are there with nothing.
func TestExpected(t *testing.T) {
	peer := netip.MustParseAddr("10.0.0.1")
	list := [][2]int{{1001, 5001}, {1002, 5001}, {1003, 5002}}
	ports := map[int]int{5001: 0, 5002: 1}
	for name, c := range map[string]struct {
		come    []datagramFlow
		want    []int64 // datagrams per stream
		guessed int
	}{
		"in any order":          {[]datagramFlow{flow(1, "10.0.0.1:1003"), flow(0, "10.0.0.1:1001")}, []int64{1, 0, 1}, 0},
		"mapped addresses":      {[]datagramFlow{flow(0, "[::ffff:10.0.0.1]:1002")}, []int64{0, 1, 0}, 0},
		"changed ports":         {[]datagramFlow{flow(0, "10.0.0.1:7"), flow(1, "10.0.0.1:8"), flow(0, "10.0.0.1:7")}, []int64{2, 1, 0}, 2},
		"somebody else's":       {[]datagramFlow{flow(0, "10.0.0.1:1001"), flow(0, "10.0.0.1:7")}, []int64{1, 0, 0, 1}, 0},
		"another address":       {[]datagramFlow{flow(0, "10.0.0.9:1001")}, []int64{0, 0, 0, 1}, 0},
		"ours at another port":  {[]datagramFlow{flow(0, "10.0.0.1:1003")}, []int64{1, 0, 0}, 1},
		"a place that is taken": {[]datagramFlow{flow(0, "10.0.0.1:7"), flow(0, "10.0.0.1:1001"), flow(1, "10.0.0.1:1003")}, []int64{1, 1, 1}, 2},
	} {
		y := newTally(schedule{measured: time.Hour}, time.Hour, 0, nil, nil)
		y.expect(list, ports, peer)
		for _, f := range c.come {
			y.add(f, result.Addr{Host: "10.0.0.2", Port: 5001}, 100)
		}
		if diff := cmp.Diff(c.want, y.arrived()); diff != "" || y.guessed() != c.guessed {
			t.Errorf("%s: guessed %d %s", name, y.guessed(), diff)
		}
		for i, v := range y.views() {
			if v.ID != i+1 || v.Remote.Host == "" || v.Local.Port == 0 {
				t.Errorf("%s: %+v", name, v)
			}
		}
	}
}

// TestKnownBeforeItCame: a stream of the list is the test's own, however late it shows.
func TestKnownBeforeItCame(t *testing.T) {
	y := newTally(schedule{measured: time.Hour}, time.Hour, 0, nil, nil)
	f := flow(0, "10.0.0.1:1001")
	if y.has(f) {
		t.Error("known without a list")
	}
	y.expect([][2]int{{1001, 5001}}, map[int]int{5001: 0}, f.from.Addr())
	if !y.has(f) || y.has(flow(0, "10.0.0.1:1002")) || y.has(flow(0, "10.0.0.9:1001")) {
		t.Error("the list is not known")
	}
}

// TestTail: what comes after the end counts for loss only, until all has come, or it is quiet for
// long enough, and never for long.
func TestTail(t *testing.T) {
	f, late := flow(0, "10.0.0.1:1001"), flow(0, "10.0.0.1:1002")
	for name, c := range map[string]struct {
		sent []int64
		send int // datagrams after the end, one every 10 ms
		want time.Duration
		got  []int64
	}{
		"nothing under way":    {[]int64{1, 0}, 0, 0, []int64{1, 0}},
		"all comes":            {[]int64{5, 1}, 5, 50 * time.Millisecond, []int64{5, 1}},
		"some is lost":         {[]int64{9, 9}, 3, 230 * time.Millisecond, []int64{3, 1}},
		"nobody says how much": {nil, 3, 230 * time.Millisecond, []int64{3, 1}},
		"it never ends":        {[]int64{1e6, 0}, 1000, tailMost, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newTally(schedule{measured: time.Second}, time.Hour, 0, nil, nil)
				y.expect([][2]int{{1001, 5001}, {1002, 5001}}, map[int]int{5001: 0}, f.from.Addr())
				y.Start()
				y.add(f, result.Addr{}, 100)
				if reason, err := y.Wait(t.Context()); reason != traffic.Duration || err != nil {
					t.Fatal(reason, err)
				}
				total := y.Finish()
				quit := make(chan struct{})
				go func() { // ends with quit
					for i := range c.send {
						select {
						case <-time.After(10 * time.Millisecond):
						case <-quit:
							return
						}
						to := f
						if i == 1 {
							to = late
						}
						y.add(to, result.Addr{}, 100)
					}
				}()
				began := time.Now()
				y.awaitTail(c.sent, 200*time.Millisecond)
				took := time.Since(began)
				close(quit)
				if took < c.want || took > c.want+15*time.Millisecond {
					t.Errorf("took %v, want %v", took, c.want)
				}
				if diff := cmp.Diff(c.got, y.arrived()); diff != "" && c.got != nil {
					t.Error(diff)
				}
				y.add(f, result.Addr{}, 100)
				if y.wants() || c.got != nil && !cmp.Equal(c.got, y.arrived()) {
					t.Error("it counts on")
				}
				if n := total.Flows[0].Total; n.Bytes != 100 || *n.Packets != 1 {
					t.Errorf("the measured time has %+v", n)
				}
				y.Close()
			})
		})
	}
}

// TestNoTail: without a sender that tells, nothing counts after the end.
func TestNoTail(t *testing.T) {
	y := newTally(schedule{measured: time.Hour}, time.Hour, 0, nil, nil)
	y.Start()
	f := flow(0, "10.0.0.1:1001")
	y.add(f, result.Addr{}, 100)
	y.Finish()
	y.add(f, result.Addr{}, 100)
	if y.wants() || y.arrived()[0] != 1 {
		t.Errorf("%v", y.arrived())
	}
}
