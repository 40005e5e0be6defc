package iperf3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// How a peer can end.
var deaths = []struct {
	name string
	die  func(p *rawPeer)
}{
	{"closes", func(p *rawPeer) { p.nc.Close() }},
	{"resets", func(p *rawPeer) { p.nc.(*net.TCPConn).SetLinger(0); p.nc.Close() }},
	{"freezes", func(p *rawPeer) { io.Copy(io.Discard, p.nc) }}, // ends when the other end gives up
}

// serverPhase plays a server up to a phase; false = the client went away before.
type serverPhase struct {
	name   string
	flowed bool // data was under way: there must be partial totals
	good   bool // the client has all it needs: no error
	play   func(p *rawPeer, stream func() net.Conn) bool
}

// serverPhases are every point at which a server can vanish.
func serverPhases() []serverPhase {
	hello := func(p *rawPeer) bool { _, ok := p.get(CookieSize); return ok }
	params := func(p *rawPeer, stream func() net.Conn) bool {
		if !hello(p) {
			return false
		}
		p.nc.Write([]byte{9})
		_, ok := p.getDocument()
		return ok
	}
	create := func(p *rawPeer, stream func() net.Conn) bool {
		ok := params(p, stream)
		p.nc.Write([]byte{10})
		return ok
	}
	streams := func(p *rawPeer, stream func() net.Conn) bool {
		return create(p, stream) && stream() != nil && stream() != nil
	}
	running := func(p *rawPeer, stream func() net.Conn) bool {
		if !create(p, stream) {
			return false
		}
		for range 2 {
			c := stream()
			if c == nil {
				return false
			}
			if !p.frozen {
				go io.Copy(io.Discard, c)
			}
		}
		p.nc.Write([]byte{1, 2})
		return true
	}
	ended := func(p *rawPeer, stream func() net.Conn) bool {
		if !running(p, stream) {
			return false
		}
		b, ok := p.get(1)
		return ok && State(b[0]) == StateTestEnd
	}
	results := func(p *rawPeer, stream func() net.Conn) bool {
		if !ended(p, stream) {
			return false
		}
		p.nc.Write([]byte{13})
		_, ok := p.getDocument()
		return ok
	}
	doc := AppendDocument(nil, []byte(emptyResults))
	return []serverPhase{
		{name: "before its first word", play: func(p *rawPeer, _ func() net.Conn) bool { return hello(p) }},
		{name: "after the parameters", play: params},
		{name: "after CREATE_STREAMS", play: create},
		{name: "after the first stream", play: func(p *rawPeer, s func() net.Conn) bool { return create(p, s) && s() != nil }},
		{name: "after all streams", play: streams},
		{name: "after TEST_START", play: func(p *rawPeer, s func() net.Conn) bool {
			ok := streams(p, s)
			p.nc.Write([]byte{1})
			return ok
		}},
		{name: "in the data phase", flowed: true, play: running},
		{name: "after TEST_END", flowed: true, play: ended},
		{name: "after EXCHANGE_RESULTS", flowed: true, play: func(p *rawPeer, s func() net.Conn) bool {
			ok := ended(p, s)
			p.nc.Write([]byte{13})
			return ok
		}},
		{name: "after the client's results", flowed: true, play: results},
		{name: "in the middle of its results", flowed: true, play: func(p *rawPeer, s func() net.Conn) bool {
			ok := results(p, s)
			p.nc.Write(doc[:40])
			return ok
		}},
		{name: "after its results", flowed: true, play: func(p *rawPeer, s func() net.Conn) bool {
			ok := results(p, s)
			p.nc.Write(doc)
			return ok
		}},
		{name: "after DISPLAY_RESULTS", flowed: true, good: true, play: func(p *rawPeer, s func() net.Conn) bool {
			ok := results(p, s)
			p.nc.Write(append(bytes.Clone(doc), 14))
			return ok
		}},
	}
}

// TestServerVanishes: whatever the phase and the manner, the client ends by itself, says
// why, and keeps what was measured.
func TestServerVanishes(t *testing.T) {
	for _, tr := range []plan.Transport{plan.TCP, plan.UDP} {
		t.Run(string(tr), func(t *testing.T) {
			t.Parallel()
			serverVanishes(t, tr)
		})
	}
}

func serverVanishes(t *testing.T, tr plan.Transport) {
	for _, ph := range serverPhases() {
		for _, d := range deaths {
			for _, dir := range []plan.Direction{plan.Up, plan.Down} {
				t.Run(ph.name+" "+d.name+" "+string(dir), func(t *testing.T) {
					t.Parallel()
					p := scriptServerOf(t, tr, func(p *rawPeer, stream func() net.Conn) {
						p.frozen = d.name == "freezes" && ph.name == "in the data phase"
						if !ph.play(p, stream) {
							t.Error("the client left before the phase")
						}
						d.die(p)
					})
					p.Streams, p.Direction, p.Bytes = 2, dir, 0
					p.Duration = 50 * time.Millisecond
					if ph.name == "in the data phase" {
						p.Duration = time.Minute
						p.ReceiveTimeout = time.Second        // how long a frozen peer may last
						if tr == plan.UDP && dir == plan.Up { // nothing is acknowledged: the test runs to its end
							p.Duration = 300 * time.Millisecond
						}
					}
					if tr == plan.UDP {
						p.BlockSize, p.Bitrate = 1000, 1e6
					}
					run, err := runClient(t, &Client{Plan: p, Timeouts: short()})
					if ph.good {
						if err != nil || !run.Finished() {
							t.Fatalf("%v", err)
						}
						return
					}
					var e *result.Error
					if !errors.As(err, &e) || e.Text == "" || e.Code == "" || e.Number == 0 || e.Code == "failed" {
						t.Fatalf("error %+v", e)
					}
					if run.Err == nil || run.Err.Text != e.Text {
						t.Errorf("the run says %v", run.Err)
					}
					if run.Finished() != ph.flowed {
						t.Errorf("totals: %v", run.Finished())
					}
					t.Logf("%s: %s", e.Code, e.Text)
				})
			}
		}
	}
}

// clientPhase plays a client up to a phase against our server.
type clientPhase struct {
	name   string
	params string
	test   bool // a test began: the server's run says why it ended
	flowed bool
	good   bool
	play   func(p *rawPeer, params string)
}

func clientPhases() []clientPhase {
	params := func(p *rawPeer, doc string) {
		p.greet()
		p.document(doc)
		p.want(StateCreateStreams)
	}
	streams := func(p *rawPeer, doc string) {
		params(p, doc)
		p.stream()
		p.stream()
		p.want(StateTestStart, StateTestRunning)
	}
	ended := func(p *rawPeer, doc string) {
		streams(p, doc)
		p.write(4)
		p.want(StateExchangeResults)
	}
	results := func(p *rawPeer, doc string) {
		ended(p, doc)
		p.document(emptyResults)
	}
	const up, down, both = `{"tcp":true,"parallel":2,"time":60}`, `{"tcp":true,"parallel":2,"time":60,"reverse":true}`, `{"tcp":true,"parallel":1,"time":60,"bidirectional":true}`
	return []clientPhase{
		{name: "before the cookie", play: func(*rawPeer, string) {}},
		{name: "in the cookie", play: func(p *rawPeer, _ string) { p.write(p.cookie[:20]...) }},
		{name: "after the cookie", play: func(p *rawPeer, _ string) { p.greet() }},
		{name: "in the length", play: func(p *rawPeer, _ string) { p.greet(); p.write(0, 0) }},
		{name: "in the parameters", play: func(p *rawPeer, _ string) { p.greet(); p.write(append([]byte{0, 0, 1, 0}, `{"tcp":tr`...)...) }},
		{name: "after the parameters", params: up, test: true, play: params},
		{name: "after one stream", params: up, test: true, play: func(p *rawPeer, doc string) { params(p, doc); p.stream() }},
		{name: "in the data phase up", params: up, test: true, flowed: true, play: streams},
		{name: "in the data phase down", params: down, test: true, flowed: true, play: streams},
		{name: "in the data phase both", params: both, test: true, flowed: true, play: streams},
		{name: "after TEST_END", params: up, test: true, flowed: true, play: ended},
		{name: "after TEST_END down", params: down, test: true, flowed: true, play: ended},
		{name: "in its results", params: up, test: true, flowed: true, play: func(p *rawPeer, doc string) {
			ended(p, doc)
			p.write(append([]byte{0, 0, 1, 0}, emptyResults...)...)
		}},
		{name: "after its results", params: up, test: true, flowed: true, good: true, play: func(p *rawPeer, doc string) { results(p, doc); p.read(1) }},
		{name: "without goodbye", params: up, test: true, flowed: true, good: true, play: func(p *rawPeer, doc string) {
			results(p, doc)
			p.getDocument()
			p.want(StateDisplayResults)
		}},
	}
}

// TestClientVanishes: whatever the phase and the manner, the server ends the test by
// itself, says why, keeps what was measured, and serves the next client.
func TestClientVanishes(t *testing.T) {
	for _, tr := range []plan.Transport{plan.TCP, plan.UDP} {
		t.Run(string(tr), func(t *testing.T) {
			t.Parallel()
			clientVanishes(t, tr)
		})
	}
}

func clientVanishes(t *testing.T, tr plan.Transport) {
	for _, ph := range clientPhases() {
		for _, d := range deaths {
			t.Run(ph.name+" "+d.name, func(t *testing.T) {
				t.Parallel()
				ts := startServer(t, &Server{Policy: plan.Serve{Exclusive: true, ReceiveTimeout: time.Second}, Timeouts: short()})
				p, params := dialRaw(t, ts), ph.params
				if tr == plan.UDP {
					// A frozen client that receives is given up after its time: nothing is acknowledged.
					p.udp = true
					params = strings.Replace(params, `"tcp":true`, `"udp":true,"len":1000,"bandwidth":1000000`, 1)
					params = strings.Replace(params, `"time":60`, `"time":1`, 1)
				}
				ph.play(p, params)
				d.die(p)
				if ph.test {
					run := ts.run(0)
					switch {
					case ph.good && run.Err != nil:
						t.Errorf("error %v", run.Err)
					case !ph.good && (run.Err == nil || run.Err.Text == "" || run.Err.Number == 0 || run.Err.Code == "failed"):
						t.Errorf("error %+v", run.Err)
					case run.Finished() != ph.flowed:
						t.Errorf("totals: %v", run.Finished())
					}
					if run.Err != nil {
						t.Logf("%s: %s", run.Err.Code, run.Err.Text)
					}
				}
				free(t, ts)
				serves(t, ts)
			})
		}
	}
}

// free waits until the server has a slot.
func free(t *testing.T, ts *testServer) {
	t.Helper()
	eventually(t, "the slot is still taken", func() bool {
		ts.Server.mu.Lock()
		defer ts.Server.mu.Unlock()
		return len(ts.running) == 0 && len(ts.creating) == 0
	})
}

// TestHardLimit: a client that never ends its test is given up after its time and the
// grace (spec §13), with the code that 3.21 gives.
func TestHardLimit(t *testing.T) {
	to := short()
	to.Grace = 100 * time.Millisecond
	ts := startServer(t, &Server{Timeouts: to})
	p := dialRaw(t, ts)
	p.greet()
	p.document(`{"tcp":true,"time":1,"fullbore":{"v":1,"version":"x","features":[],"time_s":0.1}}`)
	for { // hello, then CREATE_STREAMS
		if b := p.read(1); State(b[0]) == StateCreateStreams {
			break
		}
		p.getDocument()
	}
	s := p.stream()
	p.want(StateTestStart, StateTestRunning)
	go io.Copy(s, zeros{})
	if got := p.rest(); string(got) != string(errBody(codeDurationExpired, 0)) {
		t.Errorf("got %x", got)
	}
	if run := ts.run(0); run.Err == nil || run.Err.Number != codeDurationExpired || run.Streams[0].Receiver.Bytes == 0 {
		t.Errorf("%+v", run.Err)
	}
}

// TestInterrupts: ctx ends the test at either end in mid-test, with the cause as reason,
// partial totals, and a word to the other end.
func TestInterrupts(t *testing.T) {
	cause := &result.Error{Code: "interrupted", Interrupted: true, Signal: "Terminated(15)", Text: "interrupted by signal Terminated(15)", Number: codeClientTerm}
	for _, ext := range []string{"off", ""} {
		for _, dir := range []plan.Direction{plan.Up, plan.Down, plan.Both} {
			t.Run("client "+ext+string(dir), func(t *testing.T) {
				ts := startServer(t, &Server{Timeouts: short()})
				c := ts.client(plan.Plan{Duration: time.Minute, Direction: dir, Extension: ext})
				rec := newRecorder()
				ctx, cancel := context.WithCancelCause(t.Context())
				rec.on = func(e result.Event) {
					if e.Kind == result.KindStart {
						go cancel(cause)
					}
				}
				err := c.Run(ctx, rec)
				var e *result.Error
				if !errors.As(err, &e) || !e.Interrupted || e.Signal != cause.Signal {
					t.Fatalf("%+v", err)
				}
				run, srv := rec.run(), ts.run(0)
				eventually(t, "the server says no reason", func() bool { srv = ts.run(0); return srv.Err != nil })
				if srv.Err.Number != codeClientTerm || !srv.Err.Remote {
					t.Errorf("the server says %+v", srv.Err)
				}
				for i, s := range run.Streams {
					mine, theirs := own(&s, result.Client), own(&s, result.Server)
					if mine == nil || (theirs != nil) != (ext == "") {
						t.Errorf("ext %q: own %+v, other %+v", ext, mine, theirs)
					}
					if o := own(&srv.Streams[i], result.Server); o == nil {
						t.Errorf("the server has no totals of its own")
					} else if theirs != nil && o.Bytes != theirs.Bytes {
						t.Errorf("the server counted %d, told %d", o.Bytes, theirs.Bytes)
					}
				}
			})
			t.Run("server "+ext+string(dir), func(t *testing.T) {
				ts := startServer(t, &Server{Timeouts: short()})
				c := ts.client(plan.Plan{Duration: time.Minute, Direction: dir, Extension: ext})
				rec := newRecorder()
				rec.on = func(e result.Event) {
					if e.Kind == result.KindStart {
						go ts.stop(cause)
					}
				}
				err := c.Run(t.Context(), rec)
				wantError(t, err, codeServerTerm, "server-terminated")
				if run := rec.run(); !run.Finished() {
					t.Error("no partial totals")
				}
				srv := ts.run(0)
				if srv.Err == nil || !srv.Err.Interrupted || srv.Err.Remote || !srv.Finished() {
					t.Errorf("the server says %+v, finished %v", srv.Err, srv.Finished())
				}
				if err := ts.close(); !errors.Is(err, cause) {
					t.Errorf("Serve returned %v", err)
				}
			})
		}
	}
}

// TestFrozenReceiver: a client that takes nothing any more is noticed by the queue that
// stands still, within the send timeout (field case F25).
func TestFrozenReceiver(t *testing.T) {
	ts := startServer(t, &Server{Policy: plan.Serve{Exclusive: true, SendTimeout: time.Second}, Timeouts: short()})
	p := dialRaw(t, ts)
	p.greet()
	p.document(`{"tcp":true,"reverse":true,"time":60}`)
	p.want(StateCreateStreams)
	p.stream()
	p.want(StateTestStart, StateTestRunning)
	run := ts.run(0) // nobody reads
	if run.Err == nil || run.Err.Number != codeStreamWrite || !run.Finished() || run.Streams[0].Sender.Bytes == 0 {
		t.Errorf("%+v", run.Err)
	}
	if got := p.rest(); !strings.HasPrefix(string(got), string(errBody(codeStreamWrite, linuxETIMEDOUT))) {
		t.Errorf("the client was told %x", got)
	}
	free(t, ts)
	serves(t, ts)
}

// TestServerEndsWhileDraining: a server may end the test while the client still waits for
// its data to be acknowledged; the client then does not say TEST_END any more.
func TestServerEndsWhileDraining(t *testing.T) {
	p := scriptServer(t, func(p *rawPeer, stream func() net.Conn) {
		p.get(CookieSize)
		p.nc.Write([]byte{9})
		p.getDocument()
		p.nc.Write([]byte{10})
		stream() // nobody reads it
		p.nc.Write([]byte{1, 2, 13})
		if doc, ok := p.getDocument(); !ok || !strings.Contains(string(doc), `"streams"`) {
			t.Errorf("the client answered %q", doc)
		}
		p.nc.Write(append(AppendDocument(nil, []byte(emptyResults)), 14))
		if b, ok := p.get(1); !ok || State(b[0]) != StateDone {
			t.Errorf("the client said goodbye with %x", b)
		}
	})
	p.Bytes = 1 << 16 // fits into the buffers of both ends
	p.Window = 8 << 10
	run, err := runClient(t, &Client{Plan: p})
	if err != nil || !run.Finished() {
		t.Errorf("%v", err)
	}
}
