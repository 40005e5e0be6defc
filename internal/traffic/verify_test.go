package traffic

import (
	"bytes"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// corrupted checks that err is about the byte at.
func corrupted(t *testing.T, err error, at int64) {
	t.Helper()
	var c *CorruptError
	if !errors.As(err, &c) || *c != (CorruptError{At: at, Got: 'x', Want: 'A'}) {
		t.Errorf("%v, want byte %d", err, at)
	}
}

// A byte that is not payload ends its flow, on every way of receiving, and only its.
func TestVerify(t *testing.T) {
	const size, at = 300_000, 212_345
	good := bytes.Repeat([]byte{'A'}, size)
	bad := bytes.Clone(good)
	bad[at] = 'x'
	for _, c := range []struct {
		name    string
		flows   int
		receive plan.Receive
	}{{"thread", 1, ""}, {"several", 3, ""}, {"thread, discard", 1, plan.Discard}, {"epoll", 40, ""}, {"epoll, discard", 40, plan.Discard}} {
		t.Run(c.name, func(t *testing.T) {
			a, b := pairs(t, c.flows)
			e := start(t, Config{End: result.Server, Fill: 'A', Verify: true, Receive: c.receive}, flowsOf(b, result.Up, false))
			for i, x := range a {
				go func() {
					if i == 0 {
						_, _ = x.Net().Write(bad) // its other end breaks off
					} else {
						_, _ = x.Net().Write(good)
					}
					x.Close()
				}()
			}
			poll(t, "the flows' ends", func() bool {
				for _, s := range e.streams {
					if !s.over.Load() {
						return false
					}
				}
				return true
			})
			tot := e.totals(t)
			corrupted(t, tot.Flows[0].Err, at)
			for _, f := range tot.Flows[1:] {
				if f.Err != nil || !f.EOF || f.Total.Bytes != size {
					t.Errorf("flow %d: %d bytes, %v", f.ID, f.Total.Bytes, f.Err)
				}
			}
			if tot.Path.Rx != "copy" || c.receive == plan.Discard != e.noticed("discard-unavailable") {
				t.Errorf("path %+v, notices %v", tot.Path, e.notices)
			}
		})
	}
}

// What the kernel holds at the end is looked at too.
func TestVerifyDrains(t *testing.T) {
	for _, flows := range []int{1, 40} {
		a, b := pairs(t, flows)
		defer closeAll(a)
		e := start(t, Config{End: result.Server, BlockSize: 1000, Fill: 'A', Verify: true, MaxRate: 8000}, flowsOf(b, result.Up, false))
		bad := bytes.Repeat([]byte{'A'}, 50_000)
		bad[49_999] = 'x'
		if _, err := a[0].Net().Write(bad); err != nil {
			t.Fatal(err)
		}
		poll(t, "the bytes", func() bool {
			n, err := b[0].RecvQueue()
			return err == nil && int64(n)+e.streams[0].ctr.bytes.Load() >= 50_000
		})
		e.StopReceive(true)
		corrupted(t, e.totals(t).Flows[0].Err, 49_999)
	}
}

// The portable way.
func TestVerifyEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		e := start(t, Config{End: result.Server, BlockSize: 1000, Fill: 'A', Verify: true}, []Flow{{ID: 1, Direction: result.Up, Conn: osnet.NewConn(b)}})
		go func() {
			_, _ = a.Write(bytes.Repeat([]byte{'A'}, 5000))
			_, _ = a.Write([]byte("AAx"))
		}()
		synctest.Wait()
		corrupted(t, e.totals(t).Flows[0].Err, 5002)
		e.Close()
		a.Close()
	})
}

// In datagrams, of whatever length.
func TestVerifyDatagrams(t *testing.T) {
	s := newScript(t, Config{BlockSize: 100, UDP: UDPConfig{Bare: true}, Fill: 'A', Verify: true})
	s.raw(bytes.Repeat([]byte{'A'}, 100))
	s.raw(bytes.Repeat([]byte{'A'}, 1000))
	s.raw([]byte("AAAx"))
	poll(t, "the flow's end", func() bool { return s.e.streams[0].over.Load() })
	f := s.e.totals(t).Flows[0]
	corrupted(t, f.Err, 1103)
	if *f.Total.Packets != 3 {
		t.Errorf("%d datagrams", *f.Total.Packets)
	}
	synctest.Test(t, func(t *testing.T) { // the portable way
		a, b := net.Pipe()
		e := start(t, Config{
			End: result.Server, Transport: plan.UDP, BlockSize: 100, Fill: 'A', Verify: true, UDP: UDPConfig{Bare: true},
		}, []Flow{{ID: 1, Direction: result.Up, Conn: osnet.NewConn(b)}})
		go func() {
			_, _ = a.Write([]byte("AAAA"))
			_, _ = a.Write([]byte("Ax"))
		}()
		synctest.Wait()
		corrupted(t, e.totals(t).Flows[0].Err, 5)
		e.Close()
		a.Close()
	})
}

func TestVerifyNeedsALetter(t *testing.T) {
	for _, cfg := range []Config{{Verify: true}, {Verify: true, Fill: 'A', Transport: plan.UDP, BlockSize: 100}} {
		var fault *plan.FieldError
		if _, err := New(cfg, nil); !errors.As(err, &fault) {
			t.Errorf("%+v is possible: %v", cfg, err)
		}
	}
	if d := (&CorruptError{At: 7, Got: 'x', Want: 'A'}).Error(); d != "traffic: received data is corrupted: byte 7 is 0x78 instead of 0x41" {
		t.Error(d)
	}
}
