package iperf3

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// finishUp ends the session, whatever happened: totals and reason to those who listen,
// the slot to the next, last words to the client, one line to the log.
func (t *session) finishUp(ctx context.Context, err error) {
	defer t.closeAll()
	switch {
	case errors.Is(err, errBusy):
		t.s.release(t)
		t.s.visitors.note(t.peer, "busy", "wanted", t.plan.Streams)
		t.lastWords([]byte{0xff})
		return
	case errors.Is(err, errMalformed):
		t.s.release(t)
		t.lastWords(AppendError(nil, WireError{Code: codeRecvParams}))
		return
	}
	var e *result.Error
	if err != nil {
		e = t.asError(ctx, err)
		if !t.opened && (e.Remote || ctx.Err() != nil) { // it left the queue: nothing began
			t.s.release(t)
			t.s.visitors.note(t.peer, "left the queue", "why", e.Text)
			t.lastWords(t.parting(ctx, e))
			return
		}
		if !t.opened {
			t.open()
			t.announceRefused()
		}
		t.frames.Abort(abortGrace, t.ctl.breakWrite)
		t.stopEngine(false)
		if t.flowed {
			t.emitFinish()
		}
	} else if t.byStop != "" { // both ends have the results; the client did not want more
		e = &result.Error{Code: "client-terminated", Remote: true, Number: codeClientTerm, Text: "the client stopped the test: " + t.byStop}
	}
	if e != nil {
		t.out.Event(result.Event{Kind: result.KindError, Err: e})
	}
	t.out.close()
	if t.hooks.Done != nil {
		t.hooks.Done()
	}
	var words []byte
	if err != nil {
		words = t.parting(ctx, e)
	}
	t.s.release(t)
	t.s.consume(t, e)
	t.logTest(e)
	t.lastWords(words)
}

// abortGrace is how long a frame under way may take when a test breaks off.
const abortGrace = 100 * time.Millisecond

// parting is what the client is told when the test breaks off; nil = it is gone.
func (t *session) parting(ctx context.Context, e *result.Error) []byte {
	switch {
	case ctx.Err() != nil:
		return []byte{byte(StateServerTerminate)}
	case e.Number == codeCtrlClose, e.Number == codeClientTerm:
		return nil
	}
	var b []byte
	if e.Code == "limit" && !t.greeted.Load() {
		b, _ = t.answerHello() // its limits say more than the code (field case F53)
	}
	return AppendError(b, WireError{Code: int32(e.Number), Errno: int32(e.Errno)})
}

// lastWords says b, if anything, and closes the connection so that it can be read.
func (t *session) lastWords(b []byte) {
	if len(b) == 0 || t.ctl.send(b, t.s.to.Linger) != nil {
		t.ctl.close()
		return
	}
	t.ctl.linger(t.s.to.Linger)
}

// closeAll frees everything; nothing is left open when it returns.
func (t *session) closeAll() {
	t.frames.Abort(abortGrace, t.ctl.breakWrite)
	t.refuseStreams()
	t.endPings()
	t.endProbes()
	t.udp.end() // before its sockets are closed
	for _, s := range t.streams {
		_ = s.conn.Close()
	}
	if t.eng != nil {
		t.eng.Close()
	}
	if t.file != nil {
		_ = t.file.Close()
	}
	t.ctl.close()
}

// asError makes every error one that a Run can hold.
func (t *session) asError(ctx context.Context, err error) *result.Error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		e := &result.Error{Code: "server-terminated", Number: codeServerTerm, Text: "this server was stopped"}
		if cause := asResult(err); cause != nil {
			*e = *cause
			if e.Number == 0 {
				e.Number = codeServerTerm
			}
		}
		return e
	}
	if e := asResult(err); e != nil {
		return e
	}
	return &result.Error{Code: "failed", Text: err.Error(), Errno: errno(err), Number: codeInitTest}
}

// consume ends a one-off server with its test. A client whose login failed was none
// (releases before 3.21, spec §12), nor was one that never got as far as a test.
func (s *Server) consume(t *session, e *result.Error) {
	if !s.Policy.OneOff {
		return
	}
	s.mu.Lock()
	if !t.consumed && e != nil && e.Code != "auth" && !e.Remote && !s.used {
		t.consumed, s.used = true, true // refused for its wishes: the one test is over
	}
	s.mu.Unlock()
	if t.consumed {
		s.cancel(errServed)
	}
}

func isNetTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &ne) && ne.Timeout()
}

// rateWatch measures the average rate of a test over a sliding window.
type rateWatch struct {
	eng     *traffic.Engine
	limit   int64 // bit/s
	window  time.Duration
	ticker  *time.Ticker
	samples []rateSample // one per tick, the window and one more
}

type rateSample struct {
	at    time.Time
	bytes int64
}

// newRateWatch starts watching eng; limit 0 = never exceeded.
func newRateWatch(eng *traffic.Engine, limit int64, window time.Duration) *rateWatch {
	w := &rateWatch{eng: eng, limit: limit, window: window}
	if limit > 0 {
		w.ticker = time.NewTicker(max(window/5, 20*time.Millisecond))
		w.samples = []rateSample{{at: time.Now()}}
	}
	return w
}

func (w *rateWatch) tick() <-chan time.Time {
	if w.ticker == nil {
		return nil
	}
	return w.ticker.C
}

func (w *rateWatch) stop() {
	if w.ticker != nil {
		w.ticker.Stop()
	}
}

// exceeded returns the rate when it is above the limit over a whole window, else 0.
func (w *rateWatch) exceeded() int64 {
	var bytes int64
	for _, f := range w.eng.Snapshot().Flows {
		bytes += f.Total.Bytes + f.OmittedBytes
	}
	now := rateSample{time.Now(), bytes}
	w.samples = append(w.samples, now)
	for len(w.samples) > 2 && now.at.Sub(w.samples[1].at) >= w.window {
		w.samples = w.samples[1:]
	}
	first := w.samples[0]
	d := now.at.Sub(first.at)
	if d < w.window*9/10 {
		return 0
	}
	bps := int64(float64(now.bytes-first.bytes) * 8 / d.Seconds())
	if bps <= w.limit {
		return 0
	}
	return bps
}
