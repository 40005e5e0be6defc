package iperf3

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// frameSender sends this end's events to the other without ever making the test
// wait: one row may be pending, a newer one takes its place, and what was replaced is
// counted. Its goroutine ends with stop or with the connection.
type frameSender struct {
	state  State // FrameEvent or FrameClient
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

// newFrameSender starts sending through send, which must be safe beside other writers,
// and which breaks the connection when it fails: half a frame may be on its way.
func newFrameSender(state State, send func([]byte) error) *frameSender {
	f := &frameSender{state: state, send: send, now: time.Now, wake: make(chan struct{}, 1), quit: make(chan struct{}), ended: make(chan struct{})}
	go f.run()
	return f
}

// Event implements result.Sink. It never blocks.
func (f *frameSender) Event(ev result.Event) {
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
	default: // the head and the end are told by the conversation itself
		f.mu.Unlock()
		return
	}
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// dropped is how many events were not sent.
func (f *frameSender) dropped() int64 {
	if f == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.drop
}

// pop takes the next event; false = none.
func (f *frameSender) pop() (result.Event, int64, bool) {
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

func (f *frameSender) run() {
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
func (f *frameSender) flush() {
	for {
		ev, dropped, ok := f.pop()
		if !ok || !f.write(ev, dropped) {
			return
		}
	}
}

// write sends one event; false = the connection is broken.
func (f *frameSender) write(ev result.Event, dropped int64) bool {
	ev = forWire(ev)
	var doc []byte
	var err error
	if f.state == FrameClient {
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
	return f.send(AppendFrame(nil, f.state, doc)) == nil
}

// stop sends what is pending and waits: no frame follows. It may be called more than
// once, and on nil.
func (f *frameSender) stop() {
	if f == nil {
		return
	}
	f.once.Do(func() { close(f.quit) })
	<-f.ended
}

// abort drops what is pending and ends a write that is under way after grace: the peer
// may not be reading. It may be called on nil.
func (f *frameSender) abort(grace time.Duration, breakWrite func()) {
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
