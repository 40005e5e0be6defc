package iperf3

import (
	"context"
	"encoding/binary"
	"io"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/proto/probe"
	"github.com/fullbore-net/fullbore/result"
)

// A ramped test (M-RPM): all connections are opened before it begins, and begin to send one after the
// other, while new connections with a request of one byte are timed beside them. What is on the
// load's own connections cannot be asked: their bytes have no frames, as iperf3's have not. Their round
// trips are those of the sending kernel.

// Ramping decides how many streams send. It is used by one goroutine.
type Ramping interface {
	// Next hears of a finished interval, fills in PerMinute and Saturated, and tells how many streams
	// of each direction send from now on, and whether the test has told enough.
	Next(iv *result.RampInterval) (open int, over bool)
}

// Foreign probes: at most 5 % of 1.2 Mbit/s, and never more than so many at once, each waiting for its
// answer.
const (
	foreignSpacing = 100 * time.Millisecond
	foreignAtOnce  = 8
)

// ramper gathers intervals, and asks a Ramping after each.
type ramper struct {
	r      *clientRun
	s      Ramping
	enough chan struct{} // closed by run: the test may end
	wake   chan struct{} // an interval is ready

	mu       sync.Mutex // guards what follows
	now      result.RampInterval
	ready    []result.RampInterval
	all      []result.RampInterval
	open     int
	sent     int64
	answered int64
	connects *probe.Connects
}

func newRamper(r *clientRun) *ramper {
	if r.p.Ramp == nil || r.c.Ramping == nil {
		return nil
	}
	return &ramper{
		r: r, s: r.c.Ramping(*r.p.Ramp, r.p.Streams), enough: make(chan struct{}), wake: make(chan struct{}, 1), open: r.p.Ramp.First,
		connects: probe.NewConnects(),
	}
}

// over is closed when the test may end; nil, which never is, without a ramp.
func (x *ramper) over() <-chan struct{} {
	if x == nil {
		return nil
	}
	return x.enough
}

// Event implements result.Sink: rows of both ends. It does not block.
func (x *ramper) Event(ev result.Event) {
	iv := ev.Interval
	if ev.Kind != result.KindInterval || iv == nil || iv.Omitted || iv.Partial {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range iv.Streams {
		if s := &iv.Streams[i]; s.Sender && s.Bytes > 0 && s.TCP != nil && s.TCP.RTT > 0 {
			x.now.Trips = append(x.now.Trips, float64(s.TCP.RTT)/1e6)
		}
	}
	if ev.End != result.Client { // ours end an interval
		return
	}
	for _, s := range iv.Sums {
		x.now.BPS += s.BPS
	}
	x.now.Stop, x.now.Open = iv.Stop, x.open
	x.ready = append(x.ready, x.now)
	x.now = result.RampInterval{}
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// start begins the ramp and what is measured beside it; stop ends both and waits for them. It may be
// called on nil.
func (x *ramper) start(ctx context.Context) (stop func()) {
	if x == nil {
		return func() {}
	}
	r := x.r
	if r.p.Sends(result.Server) && !r.hello.Has(ext.FeatureRamp) {
		r.out.notice(result.Notice{
			Code: "ramp-at-once", Level: result.Info,
			Text: "the other end sends on all of its connections from the start: only a fullbore server lets them begin one after the other",
		})
	}
	ctx, cancel := context.WithCancel(ctx)
	var both sync.WaitGroup
	both.Go(func() { x.run(ctx) }) // ends with ctx
	if r.hello.Has(ext.FeatureRamp) && r.hello.Has(ext.FeaturePing) && r.hello.Has(ext.FeatureIndex) {
		both.Go(func() { x.probe(ctx) }) // ends with ctx
	}
	return func() {
		cancel()
		both.Wait()
	}
}

func (x *ramper) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-x.wake:
		}
		x.mu.Lock()
		ready := x.ready
		x.ready = nil
		x.mu.Unlock()
		for _, iv := range ready {
			x.step(iv)
		}
	}
}

// step asks what follows an interval, and does it.
func (x *ramper) step(iv result.RampInterval) {
	open, over := x.s.Next(&iv)
	x.mu.Lock()
	x.all = append(x.all, iv)
	more := open > x.open
	x.open = max(x.open, open)
	x.mu.Unlock()
	if more {
		r := x.r
		if r.p.Sends(result.Client) {
			r.eng.Open(open)
		}
		if r.p.Sends(result.Server) && r.hello.Has(ext.FeatureRamp) {
			_ = r.sendFrame(ext.ClientFrame{Open: open}) // a broken connection shows where it is read
		}
	}
	if over {
		select {
		case <-x.enough:
		default:
			close(x.enough)
		}
	}
}

// probe times new connections until ctx ends.
func (x *ramper) probe(ctx context.Context) {
	tick := time.NewTicker(foreignSpacing)
	defer tick.Stop()
	slots := make(chan struct{}, foreignAtOnce)
	var under sync.WaitGroup
	defer under.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		select {
		case slots <- struct{}{}:
		default: // those under way take so long that this is what they tell
			continue
		}
		under.Go(func() { // ends with its answer, its deadline or ctx
			x.ask(ctx)
			<-slots
		})
	}
}

// ask opens a connection, asks for one byte over it, and notes how long both took. One that ctx cut off
// is none.
func (x *ramper) ask(ctx context.Context) {
	r := x.r
	o := r.streamOptions(0)
	o.NoDelay, o.LocalPort, o.Window, o.FQRate = true, 0, 0, 0 // those are the streams'
	began := time.Now()
	conn, _, err := osnet.Dial(ctx, "tcp", r.addr, o)
	if err != nil {
		x.failed(ctx)
		return
	}
	connected := time.Now()
	defer conn.Close() //nolint:errcheck // nothing is lost with it
	nc := conn.Net()
	_ = nc.SetDeadline(connected.Add(r.to.Answer))
	defer context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })()
	request := binary.BigEndian.AppendUint32(append([]byte{}, r.cookie[:]...), PingIndex)
	request = append(binary.BigEndian.AppendUint32(request, 1), 'f')
	var answer [1]byte
	asked := time.Now()
	_, err = nc.Write(request)
	if err == nil {
		_, err = io.ReadFull(nc, answer[:])
	}
	answered := time.Now()
	if err != nil || answer[0] != 'f' {
		x.failed(ctx)
		return
	}
	x.connects.Add(connected.Sub(began))
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sent++
	x.answered++
	x.now.Connects = append(x.now.Connects, connected.Sub(began).Seconds())
	x.now.Requests = append(x.now.Requests, answered.Sub(asked).Seconds())
}

// failed notes a probe that did not come about.
func (x *ramper) failed(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	x.mu.Lock()
	x.sent++
	x.mu.Unlock()
}

// emit hands on the figures. It may be called on nil.
func (x *ramper) emit() {
	if x == nil {
		return
	}
	x.mu.Lock()
	out := &result.Probes{
		Kind: "rpm", Profile: foreignSpacing.String(), Spacing: foreignSpacing.Seconds(), Size: 1, Sent: x.sent, Answered: x.answered,
		Ramp: append([]result.RampInterval{}, x.all...),
	}
	x.mu.Unlock()
	if c := x.connects.Result(""); c != nil {
		out.Connect, out.Stamps = c.Connect, c.Stamps
	}
	x.r.reportProbes(out)
}
