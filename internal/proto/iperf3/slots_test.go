package iperf3

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// TestSharedSlots: a test of another protocol keeps an exclusive server busy, and lets who waits
// in on its end.
func TestSharedSlots(t *testing.T) {
	for _, queue := range []bool{false, true} {
		policy := plan.Serve{Exclusive: true, Queue: queue}
		slots := policy.Slots()
		if _, _, ok := slots.Take(); !ok {
			t.Fatal("no slot")
		}
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := &Server{Policy: policy, Slots: slots}
		ctx, stop := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, []net.Listener{ln}) }()
		p := plan.Plan{Host: "127.0.0.1", Port: ln.Addr().(*net.TCPAddr).Port, Bytes: 1 << 16, Queue: queue}
		over := make(chan error, 1)
		go func() { over <- (&Client{Plan: p}).Run(ctx, &slotEvents{}) }()
		if queue {
			for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
				s.mu.Lock()
				n := len(s.queue)
				s.mu.Unlock()
				if n == 1 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("it does not wait")
				}
			}
			slots.Release()
		}
		err = <-over
		var e *result.Error
		if busy := errors.As(err, &e) && e.Code == "busy"; busy == queue || queue && err != nil {
			t.Errorf("queue %v: %v", queue, err)
		}
		stop()
		<-served
	}
}

type slotEvents struct{}

func (slotEvents) Event(result.Event) {}
