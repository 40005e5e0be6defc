package forward

import (
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/lab/link"
)

// standbyAlone runs a loop's standby without a leader, as if that never got a processor.
func standbyAlone(t *testing.T, cfg Config, a, b device) *loop {
	t.Helper()
	l, err := newLoop(cfg, a.loop, b.loop, [2]*tap{})
	if err != nil {
		t.Fatal(err)
	}
	var end sync.WaitGroup
	end.Go(l.standBy)
	t.Cleanup(func() {
		l.stopped.Store(true)
		poke(l.doze)
		end.Wait()
		unix.Close(l.wake)
		unix.Close(l.doze)
	})
	return l
}

// wakeStandby does what the leader does after a round.
func (l *loop) wakeStandby() {
	for l.next.Load() != noneDue && l.dozing.Load() {
		poke(l.doze)
	}
}

// TestStandbyTakesOver: packets arrive although the leader makes no round; none early.
func TestStandbyTakesOver(t *testing.T) {
	a, b := newDevice(t), newDevice(t)
	l := standbyAlone(t, Config{MTU: 1500, Links: [2]link.Config{{Delay: 3 * time.Millisecond}}}, a, b)
	for i := range 20 {
		// The leader's last round took the packet.
		start := l.clock.now()
		a.send(t, []byte{byte(i)})
		for !l.busy.CompareAndSwap(false, true) {
		}
		if _, err := l.round(true); err != nil {
			t.Fatal(err)
		}
		l.busy.Store(false)
		l.wakeStandby()
		if got := b.receive(t); len(got) != 1 || got[0] != byte(i) {
			t.Fatalf("received %v, want %d", got, i)
		}
		if took := l.clock.now() - start; took < 3*time.Millisecond {
			t.Errorf("packet %d took %v, less than the path", i, took)
		}
		if i%5 == 4 {
			for !l.dozing.Load() { // nothing to do: it stops looking
				if err := t.Context().Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestStandbyKeepsOut: it makes no round while one is being made, nor before its time.
func TestStandbyKeepsOut(t *testing.T) {
	a, b := newDevice(t), newDevice(t)
	l := standbyAlone(t, Config{MTU: 1500}, a, b)
	for !l.busy.CompareAndSwap(false, true) {
	}
	a.send(t, []byte{1})
	if err := l.dirs[0].pull(&l.clock); err != nil {
		t.Fatal(err)
	}
	l.next.Store(int64(l.nextDue())) // due now
	l.wakeStandby()
	// It has had every opportunity once it has slept twice as long as it does before a
	// second try; what it must not have done cannot be polled for.
	nap(l.clock.now() + 4*lag)
	if got := l.dirs[0].wire.Len(); got != 1 {
		t.Errorf("%d packets wait, want the one that the round in progress holds", got)
	}
	l.busy.Store(false)
	b.receive(t)
}

// TestStandbyFails: an error that the standby meets ends the loop.
func TestStandbyFails(t *testing.T) {
	a, b := newDevice(t), newDevice(t)
	l, err := newLoop(Config{MTU: 1500}, a.loop, b.loop, [2]*tap{})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(l.wake)
	defer unix.Close(l.doze)
	ended := make(chan error, 1)
	go func() { ended <- l.run() }()
	for !l.busy.CompareAndSwap(false, true) {
	}
	l.err = unix.EBADFD
	l.busy.Store(false)
	l.want()
	if err := <-ended; err != unix.EBADFD {
		t.Errorf("ended with %v, want EBADFD", err)
	}
}
