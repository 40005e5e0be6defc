package ntttcp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// link is the extension at one end of a connection whose other end is a fullbore too
// (docs/wire-extension.md §12): what that end has told, and this end's events to it. Whoever
// reads the connection hands it frames and says when nothing more will come. A nil link is a
// plain peer's.
type link struct {
	end     result.End // this end
	within  time.Duration
	write   func(b []byte, within time.Duration) error // whole, beside words; a failure breaks the connection
	streams int                                        // the most that the other end can tell of
	// ended is called once with the other end's results, on the reader's goroutine.
	ended func(*ext.Results)
	cut   func()                // ends the connection, and a write that is under way
	hello chan *ext.ServerHello // a sender's: the receiver's answer, nil = it makes no sense

	once sync.Once
	have chan struct{} // closed: results holds all
	lost chan struct{} // closed: nothing more will come

	mu      sync.Mutex
	out     *emitter       // where the other end's events go; nil before there is a test
	early   []result.Event // that came before
	frames  *ext.Forwarder // this end's events; nil = none are sent
	results ext.Results
	bad     error // the other end's results make no sense
	dropped int64
	gate    ext.Gate
	facts   *result.Host
	list    [][2]int // the sender's connections: its port, the receiver's
}

func newLink(end result.End, within time.Duration, write func([]byte, time.Duration) error) *link {
	return &link{end: end, within: within, write: write, have: make(chan struct{}), lost: make(chan struct{}), hello: make(chan *ext.ServerHello, 1)}
}

// features are what this end names in its hello: that it wants the other end's events.
func (c Config) features() []string {
	if c.Extension == "quiet" {
		return []string{}
	}
	return []string{ext.FeatureEvents}
}

// other is how texts call the other end.
func (l *link) other() string {
	if l.end == result.Client {
		return "the receiver"
	}
	return "the sender"
}

// closed says that the connection is read no more. It may be called more than once, and on nil.
func (l *link) closed() {
	if l != nil {
		l.once.Do(func() { close(l.lost) })
	}
}

// begin lets events pass: those of the other end to out, this end's, with tell, to the other.
func (l *link) begin(out *emitter, tell bool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	if tell {
		f := ext.FrameClient
		if l.end == result.Server {
			f = ext.FrameEvent
		}
		l.frames = ext.NewForwarder(f, func(b []byte) error { return l.write(b, l.within) })
	}
	frames, facts := l.frames, l.facts
	l.mu.Unlock()
	if facts != nil {
		out.relay(result.Event{Kind: result.KindHost, End: l.end.Other(), Host: facts})
	}
	l.relayTo(out)
	out.tee(frames)
}

// relayTo hands the other end's events to out from now on, those first that came before.
func (l *link) relayTo(out *emitter) {
	for {
		l.mu.Lock()
		early := l.early
		l.early = nil
		if len(early) == 0 {
			l.out = out
		}
		l.mu.Unlock()
		if len(early) == 0 {
			return
		}
		for _, ev := range early {
			out.relay(ev)
		}
	}
}

// mostEarlyEvents bounds what is kept of the other end's events until the test begins here.
const mostEarlyEvents = 64

// stop ends this end's events; what waits is sent. With a peer that does not read that is given
// up after a moment.
func (l *link) stop(frozen bool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	f := l.frames
	l.mu.Unlock()
	if frozen {
		f.Abort(100*time.Millisecond, l.cut)
		return
	}
	f.Stop()
}

// maxListed bounds the connections that a sender tells of: more than any has.
const maxListed = 1 << 16

// frame takes a frame of the other end, on the reader's goroutine. Those that this end does not
// know, or not here, are skipped.
func (l *link) frame(f ext.Frame, doc []byte) {
	switch {
	case f == ext.FrameResults:
		l.told(doc)
	case f == ext.FrameHello && l.end == result.Client:
		select {
		case l.hello <- ext.DecodeServerHello(doc):
		default: // one came before
		}
	case f == ext.FrameEvent && l.end == result.Client:
		var e ext.EventFrame
		if json.Unmarshal(doc, &e) == nil {
			l.event(e.Event, e.Dropped)
		}
	case f == ext.FrameClient && l.end == result.Server:
		var c ext.ClientFrame
		if json.Unmarshal(doc, &c) != nil {
			return
		}
		l.event(c.Event, c.Dropped)
		l.mu.Lock()
		if c.Facts != nil {
			l.facts = ext.PrintableHost(c.Facts)
		}
		if len(l.list)+len(c.Streams) <= maxListed {
			l.list = append(l.list, c.Streams...)
		}
		l.mu.Unlock()
	}
}

func (l *link) event(e *result.Event, dropped int64) {
	ev, ok := ext.FromWire(e, l.end.Other())
	l.mu.Lock()
	l.dropped = max(l.dropped, dropped)
	out := l.out
	switch {
	case !ok:
	case !l.gate.Pass(time.Now()), out == nil && len(l.early) >= mostEarlyEvents:
		l.dropped++
		ok = false
	case out == nil:
		l.early = append(l.early, ev)
		ok = false
	}
	l.mu.Unlock()
	if ok {
		out.relay(ev)
	}
}

// missed is how many events of the other end did not come.
func (l *link) missed() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}

// told takes in results.
func (l *link) told(doc []byte) {
	select {
	case <-l.have:
		return // they came before
	default:
	}
	l.mu.Lock()
	done, err := l.results.Add(doc, l.streams)
	if err != nil && l.bad == nil {
		l.bad = err
	}
	done = done && l.bad == nil
	l.dropped = max(l.dropped, l.results.Dropped)
	l.mu.Unlock()
	switch {
	case done:
		if close(l.have); l.ended != nil {
			l.ended(&l.results)
		}
	case err != nil:
		l.closed() // nothing more of it counts
	}
}

// say writes a document in a frame.
func (l *link) say(f ext.Frame, doc any) error {
	b, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	return l.write(ext.Append(nil, f, b), l.within)
}

// tell sends this end's results.
func (l *link) tell(r ext.Results) error {
	l.mu.Lock()
	r.Dropped = l.frames.Dropped()
	l.mu.Unlock()
	frames, err := r.Frames()
	if err != nil {
		return err
	}
	for _, b := range frames {
		if err := l.write(b, l.within); err != nil {
			return err
		}
	}
	return nil
}

var (
	errUnlinked  = errors.New("its connection was closed")
	errUntimely  = errors.New("they did not come in time")
	errUnwilling = errors.New("this end was stopped")
)

// await returns the other end's results; it waits for them as long as given, and for ctx.
func (l *link) await(ctx context.Context, within time.Duration) (*ext.Results, error) {
	timer := time.NewTimer(max(within, 0))
	defer timer.Stop()
	err := errUntimely
	select {
	case <-l.have:
	case <-l.lost: // what came before is there
		err = errUnlinked
	case <-timer.C:
	case <-ctx.Done():
		err = errUnwilling
	}
	select {
	case <-l.have:
		return &l.results, nil
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bad != nil {
		err = l.bad
	}
	return nil, err
}

// resultsOf is what this end tells about its totals. all are the datagrams of each flow from the
// first to the last, nil for TCP.
func resultsOf(t traffic.Totals, all []int64, machine *result.HostTotal, fault *result.Error) ext.Results {
	r := ext.Results{CPU: t.CPU, Machine: machine, Err: fault}
	for i, f := range t.Flows {
		s := ext.StreamResult{ID: f.ID, Total: f.Total, TCP: f.TCP, UDP: f.UDP}
		if i < len(all) {
			s.Datagrams = &all[i]
		}
		r.Streams = append(r.Streams, s)
	}
	return r
}
