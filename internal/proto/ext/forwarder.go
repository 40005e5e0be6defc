package ext

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// Forwarder sends this end's events to the other without ever making the test
// wait: one row may be pending, a newer one takes its place, and what was replaced is
// counted. Its goroutine ends with Stop, Abort or the connection. A nil Forwarder sends nothing.
type Forwarder struct {
	frame  Frame // FrameEvent or FrameClient
	send   func([]byte) error
	now    func() time.Time
	wake   chan struct{}
	quit   chan struct{}
	ended  chan struct{}
	once   sync.Once
	mu     sync.Mutex
	row    *result.Event  // the pending row
	urgent []result.Event // notices and facts, which are few and never replaced
	drop   int64
}

// Pace of frames: at most framesPerSecond, a few of them at once.
const (
	framesPerSecond = 10
	frameBurst      = 4
	maxUrgent       = 64
)

// NewForwarder starts sending through send, which must be safe beside other writers,
// and which breaks the connection when it fails: half a frame may be on its way.
func NewForwarder(frame Frame, send func([]byte) error) *Forwarder {
	f := &Forwarder{frame: frame, send: send, now: time.Now, wake: make(chan struct{}, 1), quit: make(chan struct{}), ended: make(chan struct{})}
	go f.run()
	return f
}

// Event implements result.Sink. It never blocks. Heads and the end are not sent: the
// protocol's own conversation tells them.
func (f *Forwarder) Event(ev result.Event) {
	if f == nil {
		return
	}
	f.mu.Lock()
	switch ev.Kind {
	case result.KindInterval:
		if f.row != nil {
			f.drop++
		}
		f.row = &ev
	case result.KindNotice, result.KindHost:
		if len(f.urgent) < maxUrgent {
			f.urgent = append(f.urgent, ev)
		} else {
			f.drop++
		}
	default:
		f.mu.Unlock()
		return
	}
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Dropped is how many events were not sent.
func (f *Forwarder) Dropped() int64 {
	if f == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.drop
}

// pop takes the next event; false = none.
func (f *Forwarder) pop() (result.Event, int64, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case len(f.urgent) > 0:
		ev := f.urgent[0]
		f.urgent = f.urgent[1:]
		return ev, f.drop, true
	case f.row != nil:
		ev := *f.row
		f.row = nil
		return ev, f.drop, true
	}
	return result.Event{}, 0, false
}

func (f *Forwarder) run() {
	defer close(f.ended)
	tokens, last := float64(frameBurst), f.now()
	for {
		select {
		case <-f.wake:
		case <-f.quit:
			f.flush()
			return
		}
		for {
			now := f.now()
			tokens = min(frameBurst, tokens+now.Sub(last).Seconds()*framesPerSecond)
			last = now
			if tokens < 1 {
				t := time.NewTimer(time.Duration((1 - tokens) / framesPerSecond * float64(time.Second)))
				select {
				case <-t.C:
					continue
				case <-f.quit:
					t.Stop()
					f.flush()
					return
				}
			}
			ev, dropped, ok := f.pop()
			if !ok {
				break
			}
			tokens--
			if !f.write(ev, dropped) {
				return
			}
		}
	}
}

// flush sends what is pending, without pacing: the last row belongs to the result.
func (f *Forwarder) flush() {
	for {
		ev, dropped, ok := f.pop()
		if !ok || !f.write(ev, dropped) {
			return
		}
	}
}

// write sends one event; false = the connection is broken.
func (f *Forwarder) write(ev result.Event, dropped int64) bool {
	ev = ForWire(ev)
	var doc []byte
	var err error
	if f.frame == FrameClient {
		doc, err = json.Marshal(ClientFrame{Event: &ev, Dropped: dropped})
	} else {
		doc, err = json.Marshal(EventFrame{Event: &ev, Dropped: dropped})
	}
	if err != nil || len(doc) > MaxFrame {
		f.mu.Lock()
		f.drop++
		f.mu.Unlock()
		return true
	}
	return f.send(Append(nil, f.frame, doc)) == nil
}

// Stop sends what is pending and waits: no frame follows. It may be called more than
// once.
func (f *Forwarder) Stop() {
	if f == nil {
		return
	}
	f.once.Do(func() { close(f.quit) })
	<-f.ended
}

// Abort drops what is pending and ends a write that is under way after grace with
// breakWrite: the peer may not be reading. It may be called more than once.
func (f *Forwarder) Abort(grace time.Duration, breakWrite func()) {
	if f == nil {
		return
	}
	f.mu.Lock()
	f.row, f.urgent = nil, nil
	f.mu.Unlock()
	f.once.Do(func() { close(f.quit) })
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-f.ended:
	case <-t.C:
		breakWrite()
		<-f.ended
	}
}
