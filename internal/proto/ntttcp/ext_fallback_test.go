package ntttcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/result"
)

// impostor says that it is a fullbore, by its state or by token, and does on the first connection what pretend does; on the
// others it is a plain receiver of one test of a second.
type impostor struct {
	sync, data net.Listener
	token      byte
	pretend    func(nc net.Conn)
	wg         sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
	heard []byte // on the plain connections
	bytes int64
}

func newImpostor(t *testing.T, token byte, pretend func(nc net.Conn)) *impostor {
	p := &impostor{token: token, pretend: pretend}
	listen := func(handle func(int, net.Conn)) net.Listener {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		p.wg.Go(func() {
			for i := 0; ; i++ {
				nc, err := ln.Accept()
				if err != nil {
					return
				}
				p.mu.Lock()
				p.conns = append(p.conns, nc)
				p.mu.Unlock()
				p.wg.Go(func() {
					defer nc.Close()
					handle(i, nc)
				})
			}
		})
		return ln
	}
	p.data = listen(func(_ int, nc net.Conn) {
		n, _ := io.Copy(io.Discard, nc)
		p.mu.Lock()
		p.bytes += n
		p.mu.Unlock()
	})
	p.sync = listen(func(i int, nc net.Conn) {
		if p.token != 0 {
			p.swap(nc)
			return
		}
		p.converse(i, nc)
	})
	t.Cleanup(func() {
		p.sync.Close()
		p.data.Close()
		p.mu.Lock()
		for _, nc := range p.conns {
			nc.Close()
		}
		p.mu.Unlock()
		p.wg.Wait()
	})
	return p
}

// converse is the sync port.
func (p *impostor) converse(i int, nc net.Conn) {
	for j := 0; ; j++ {
		w, err := readWord(nc)
		if err != nil {
			return
		}
		if i > 0 {
			p.mu.Lock()
			p.heard = w.Append(p.heard)
			p.mu.Unlock()
		}
		switch j {
		case 0:
			_, _ = nc.Write(StateFullbore.Append(nil))
			if i == 0 {
				p.pretend(nc)
				return
			}
		case 1:
			_, _ = nc.Write(w.Append(nil))
		case 2:
			_, _ = nc.Write(WordStart.Append(nil))
		}
	}
}

// swap is a token port.
func (p *impostor) swap(nc net.Conn) {
	var b [1]byte
	if _, err := io.ReadFull(nc, b[:]); err != nil {
		return
	}
	p.mu.Lock()
	p.heard = append(p.heard, b[0])
	p.mu.Unlock()
	_, _ = nc.Write([]byte{p.token})
	p.pretend(nc)
}

func (p *impostor) at(port int) netip.AddrPort {
	if port == DefaultPort-1 || port >= DefaultPort+TokenOffset {
		return netip.MustParseAddrPort(p.sync.Addr().String())
	}
	return netip.MustParseAddrPort(p.data.Addr().String())
}

// readFrame reads a frame and returns its document.
func readFrame(r io.Reader) (ext.Frame, []byte, error) {
	var head [ext.HeaderSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	doc := make([]byte, int(head[1])<<24|int(head[2])<<16|int(head[3])<<8|int(head[4]))
	_, err := io.ReadFull(r, doc)
	return ext.Frame(head[0]), doc, err
}

// pretences are what something that is no fullbore may do with a hello.
func pretences() map[string]func(net.Conn) {
	return map[string]func(net.Conn){
		"is silent":       func(nc net.Conn) { _, _ = io.Copy(io.Discard, nc) },
		"hangs up":        func(net.Conn) {},
		"answers words":   func(nc net.Conn) { _, _ = io.Copy(nc, nc) },
		"answers garbage": func(nc net.Conn) { _, _, _ = readFrame(nc); _, _ = nc.Write(bytes.Repeat([]byte("HTTP/1.1 400"), 50)) },
		"answers a word": func(nc net.Conn) {
			_, _, _ = readFrame(nc)
			_, _ = nc.Write(Word(60).Append(nil))
			_, _ = io.Copy(io.Discard, nc)
		},
		"says nonsense": func(nc net.Conn) {
			_, _, _ = readFrame(nc)
			_, _ = nc.Write(ext.Append(nil, ext.FrameHello, []byte(`{"v":"one"}`)))
			_, _ = io.Copy(io.Discard, nc)
		},
		"says half a hello": func(nc net.Conn) {
			_, _, _ = readFrame(nc)
			_, _ = nc.Write(ext.Append(nil, ext.FrameHello, []byte(`{"v":1}`))[:8])
			_, _ = io.Copy(io.Discard, nc)
		},
		"says too much": func(nc net.Conn) {
			_, _, _ = readFrame(nc)
			_, _ = nc.Write([]byte{0x46, 0xff, 0xff, 0xff, 0xff})
			_, _ = io.Copy(io.Discard, nc)
		},
		"says another frame": func(nc net.Conn) {
			_, _, _ = readFrame(nc)
			_, _ = nc.Write(ext.Append(nil, ext.FrameEvent, []byte(`{}`)))
			_, _ = io.Copy(io.Discard, nc)
		},
	}
}

// TestFallBack: a receiver that only looks like a fullbore is served as a real one, on another
// connection, where it hears nothing of the extension.
func TestFallBack(t *testing.T) {
	for name, pretend := range pretences() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newImpostor(t, 0, pretend)
			c := Config{Host: "127.0.0.1", Ports: 1, Threads: 1, Duration: time.Second, Interval: beat / 4, Bitrate: 80e6}
			to := quick()
			to.Hello = 200 * time.Millisecond
			s := sendAs(t, &Sender{Config: c, Timeouts: to, second: beat, dial: dialFrom("", p.at)})
			if got := s.wait(t); got != "" {
				t.Errorf("ends with %q: %+v", got, s.rec.run().Err)
			}
			checkFellBack(t, s)
			want := WordStart.Append(Word(1).Append(WordState.Append(nil)))
			p.mu.Lock()
			defer p.mu.Unlock()
			if diff := cmp.Diff(want, p.heard); diff != "" {
				t.Errorf("the plain connection heard % x", p.heard)
			}
		})
	}
}

func checkFellBack(t *testing.T, s *sending) {
	t.Helper()
	run := s.rec.run()
	if s.rec.notice("extension-fallback") == nil || run.Wire.Extension || s.rec.notice("results-missing") != nil {
		t.Errorf("linked %v, notices %+v", run.Wire.Extension, run.Notices)
	}
	if bytesOf(run, result.Client) == 0 || run.Streams[0].Receiver != nil {
		t.Errorf("%+v", run.Streams)
	}
}

// TestFallBackTokens: the same in the Windows dialect, where the test goes on with its connections.
func TestFallBackTokens(t *testing.T) {
	for name, pretend := range pretences() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newImpostor(t, TokenFullbore, pretend)
			c := Config{Host: "127.0.0.1", Ports: 2, Threads: 1, Duration: time.Second, Interval: beat / 4, Windows: true, WaitTimeout: 10 * time.Second, Bitrate: 80e6}
			to := quick()
			to.Hello = 200 * time.Millisecond
			s := sendAs(t, &Sender{Config: c, Timeouts: to, second: beat, dial: dialFrom("", p.at)})
			if got := s.wait(t); got != "" {
				t.Errorf("ends with %q: %+v", got, s.rec.run().Err)
			}
			checkFellBack(t, s)
		})
	}
}

// rawSender is a sender of words and frames.
type rawSender struct {
	t  *testing.T
	nc net.Conn
	wg sync.WaitGroup
}

// joinRaw says X and, where hello is not "", hello, and returns when it is answered.
func joinRaw(t *testing.T, f *fixture, hello string) *rawSender {
	t.Helper()
	r := &rawSender{t: t, nc: visitor(t, f)}
	say(t, r.nc, WordState)
	hear(t, r.nc, StateFullbore)
	if hello != "" {
		r.frame(ext.FrameHello, hello)
		r.hello()
	}
	return r
}

func (r *rawSender) frame(f ext.Frame, doc string) {
	r.t.Helper()
	if _, err := r.nc.Write(ext.Append(nil, f, []byte(doc))); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rawSender) hello() {
	r.t.Helper()
	f, doc, err := readFrame(r.nc)
	var h ext.ServerHello
	if err != nil || f != ext.FrameHello || json.Unmarshal(doc, &h) != nil || h.V != ext.Version || len(h.Test) != 16 || h.Clock.Mono <= 0 {
		r.t.Fatalf("%v %s %v", f, doc, err)
	}
}

// begin opens a data connection, floods it, and starts.
func (r *rawSender) begin(f *fixture) {
	r.t.Helper()
	say(r.t, r.nc, 1)
	hear(r.t, r.nc, 1)
	nc, err := net.Dial("tcp", f.lns.Data[0].Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	r.frame(ext.FrameClient, fmt.Sprintf(`{"streams":[[%d,%d]]}`, nc.LocalAddr().(*net.TCPAddr).Port, nc.RemoteAddr().(*net.TCPAddr).Port))
	say(r.t, r.nc, WordStart)
	hear(r.t, r.nc, WordStart)
	r.wg.Go(func() { _, _ = io.Copy(nc, endless{}) }) // ends when either end closes
	r.t.Cleanup(func() {
		nc.Close()
		r.wg.Wait()
	})
}

const plainHello = `{"v":1,"version":"x","features":[],"streams":1,"time_s":1}`

// TestHostileHellos: what is no hello ends the connection without an answer, and the next sender is
// served.
func TestHostileHellos(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Duration: time.Second, Exclusive: true}, nil)
	for name, b := range map[string][]byte{
		"no JSON":            ext.Append(nil, ext.FrameHello, []byte(`{"v":`)),
		"no version":         ext.Append(nil, ext.FrameHello, []byte(`{}`)),
		"negative times":     ext.Append(nil, ext.FrameHello, []byte(`{"v":1,"time_s":-1}`)),
		"too long a time":    ext.Append(nil, ext.FrameHello, []byte(`{"v":1,"time_s":1e12}`)),
		"too long":           append([]byte{0x46, 0, 0, 0x20, 1, '{'}, bytes.Repeat([]byte{' '}, 100)...),
		"a hello, then junk": append(ext.Append(nil, ext.FrameHello, []byte(plainHello)), "GET / HTTP/1.1\r\n\r\n"...),
	} {
		r := joinRaw(t, f, "")
		if _, err := r.nc.Write(b); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r.nc)
		if name != "a hello, then junk" && len(got) > 0 || isTimeout(err) {
			t.Errorf("%s: answered with %q, %v", name, got, err)
		}
	}
	if n := len(f.tests()); n != 0 {
		t.Errorf("%d tests began", n)
	}
	s := send(t, Config{Host: "127.0.0.1", Ports: 1, Threads: 1, Duration: time.Second, Bitrate: 80e6}, dialFrom("", f.at))
	if got := s.wait(t); got != "" {
		t.Errorf("the next sender ends with %q", got)
	}
}

// TestHostileFrames: whatever a sender says in a test, that runs to its end with what this end
// counted.
func TestHostileFrames(t *testing.T) {
	for name, c := range map[string]struct {
		say     func(r *rawSender)
		missing bool
	}{
		"nothing":              {func(r *rawSender) { r.nc.Close() }, true},
		"a length without end": {func(r *rawSender) { _, _ = r.nc.Write([]byte{0x49, 0xff, 0xff, 0xff, 0xff}) }, true},
		"half a frame":         {func(r *rawSender) { _, _ = r.nc.Write([]byte{0x49, 0, 0, 1, 0, '{'}); r.nc.Close() }, true},
		"no message":           {func(r *rawSender) { _, _ = r.nc.Write([]byte("XXXX")) }, true},
		"nonsense results":     {func(r *rawSender) { r.frame(ext.FrameResults, `{"streams":[{"id":1,"total":{"bytes":-1}}]}`) }, true},
		"results of streams that are none": {func(r *rawSender) {
			r.frame(ext.FrameResults, `{"streams":[{"id":7,"total":{"bytes":1}}]}`)
		}, false},
		"frames that are none": {func(r *rawSender) {
			r.frame(0x4f, `x`)
			r.frame(ext.FrameEvent, `{"event":{"kind":"notice","notice":{"code":"bad"}}}`) // a receiver's
			r.frame(ext.FrameQueue, `{}`)
			r.frame(ext.FrameHello, plainHello)
			r.frame(ext.FrameClient, `[]`)
			r.frame(ext.FrameClient, `{"event":{"kind":"finish","finish":{}}}`)
			r.frame(ext.FrameClient, `{"event":{"kind":"error","error":{"code":"bad"}}}`)
			r.frame(ext.FrameResults, `{}`)
			r.frame(ext.FrameResults, `{"error":{"code":"late"}}`)
		}, false},
		"a flood": {func(r *rawSender) {
			one := ext.Append(nil, ext.FrameClient, []byte(`{"event":{"kind":"interval","interval":{}}}`))
			for range 20 {
				_, _ = r.nc.Write(bytes.Repeat(one, 100))
			}
			r.frame(ext.FrameResults, `{}`)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, Config{Duration: time.Second, OneOff: true}, nil)
			r := joinRaw(t, f, plainHello)
			r.begin(f)
			c.say(r)
			run := f.finished(t, 0)
			if run.Err != nil || bytesOf(run, result.Server) == 0 || len(run.Streams) != 1 || run.Streams[0].Sender != nil {
				t.Errorf("%+v, %+v", run.Err, run.Streams)
			}
			if got := f.tests()[0].notice("results-missing") != nil; got != c.missing {
				t.Errorf("results-missing: %v", got)
			}
			if f.tests()[0].notice("bad") != nil {
				t.Error("a frame of the wrong end is taken")
			}
			if n := len(run.Intervals(result.Client)); n > 200 {
				t.Errorf("%d rows of a flood are kept", n)
			}
		})
	}
}

// TestSaidWhileWaiting: frames may come between any two words, and are answered by none.
func TestSaidWhileWaiting(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Duration: time.Second, OneOff: true}, nil)
	r := joinRaw(t, f, plainHello)
	r.frame(ext.FrameClient, `{"facts":{"name":"a\u001bb"}}`)
	r.begin(f)
	say(t, r.nc, WordState) // as a real receiver answers it
	r.frame(ext.FrameClient, `{"event":{"kind":"notice","seq":5,"t_s":1.5,"notice":{"code":"c","text":"\u0007t"}}}`)
	hear(t, r.nc, StateRunning)
	r.frame(ext.FrameResults, `{"streams":[{"id":1,"total":{"bytes":77,"end_s":1}}],"events_dropped":3}`)
	f1, doc, err := readFrame(r.nc)
	var res ext.Results
	if err != nil || f1 != ext.FrameResults || json.Unmarshal(doc, &res) != nil || len(res.Streams) != 1 || res.Streams[0].Total.Bytes == 0 {
		t.Errorf("%v %s %v", f1, doc, err)
	}
	run := f.finished(t, 0)
	if len(run.Streams) != 1 {
		t.Fatalf("%+v", run.Err)
	}
	if s := run.Streams[0]; s.Sender == nil || s.Sender.Bytes != 77 || s.Receiver.Bytes != res.Streams[0].Total.Bytes {
		t.Errorf("%+v", s)
	}
	if run.Hosts.Client == nil || run.Hosts.Client.Name != "ab" {
		t.Errorf("%+v", run.Hosts)
	}
	rec := f.tests()[0]
	if n := rec.notice("c"); n == nil || n.End != result.Client || n.Text != "t" {
		t.Errorf("%+v", n)
	}
	for _, e := range rec.all() {
		if e.Notice != nil && e.Notice.Code == "c" && (e.End != result.Client || e.Seq != 5 || e.T != 1.5) {
			t.Errorf("the other end's clock and count are %+v", e)
		}
	}
	if n := rec.notice("events-dropped"); n == nil || n.End != result.Client || !contains(n.Text, "3 of the sender's") {
		t.Errorf("%+v", n)
	}
}

// TestVeryLongTime: a real sender's time that looks like the beginning of a hello is a time.
func TestVeryLongTime(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Follow: true}, func(r *Receiver) { r.Timeouts.Header = time.Second })
	nc := visitor(t, f)
	say(t, nc, WordState)
	hear(t, nc, StateFullbore)
	say(t, nc, 0x46000105)
	hear(t, nc, 0x46000105)
	say(t, nc, WordStart)
	hear(t, nc, WordStart)
	say(t, nc, WordEnd)
	hear(t, nc, StateFinished)
	f.finished(t, 0)
}

// TestTooLongForFrames: cycles that are no words beside frames are agreed on without the extension.
func TestTooLongForFrames(t *testing.T) {
	t.Parallel()
	long := time.Duration(maxExtWord) * time.Second
	f := serve(t, Config{Duration: long}, nil)
	nc := visitor(t, f)
	say(t, nc, WordState)
	hear(t, nc, StateIdle)
	for d, want := range map[time.Duration]bool{long: false, long - 2*time.Second: true} {
		r := &senderRun{c: Config{Duration: d}.filled(true)}
		if r.offers() != want {
			t.Errorf("%v: %v", d, !want)
		}
	}
	several := &senderRun{c: Config{Duration: time.Second}.filled(true), hosts: []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("::2")}}
	if several.offers() {
		t.Error("a run of several receivers has one link")
	}
}

// TestTokenOfNobody: what sends a fullbore's token and is none is served as a real sender.
func TestTokenOfNobody(t *testing.T) {
	for name, c := range map[string]func(nc net.Conn){
		"is silent":     func(net.Conn) {},
		"hangs up":      func(nc net.Conn) { nc.Close() },
		"says garbage":  func(nc net.Conn) { _, _ = nc.Write([]byte("GET / HTTP/1.0\r\n\r\n")) },
		"says R alone":  func(nc net.Conn) { _, _ = nc.Write(WordStart.Append(nil)) },
		"says hello":    func(nc net.Conn) { _, _ = nc.Write(ext.Append(nil, ext.FrameHello, []byte(plainHello))) },
		"says nonsense": func(nc net.Conn) { _, _ = nc.Write(ext.Append(nil, ext.FrameHello, []byte(`{}`))) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, Config{Duration: 3 * time.Second, OneOff: true}, func(r *Receiver) { r.Timeouts.Header = time.Second })
			data, err := net.Dial("tcp", f.lns.Data[0].Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			token, err := net.Dial("tcp", f.lns.Tokens[0].Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_ = token.SetDeadline(time.Now().Add(10 * time.Second))
			_, _ = token.Write([]byte{TokenFullbore})
			var b [1]byte
			if _, err := io.ReadFull(token, b[:]); err != nil || b[0] != TokenFullbore {
				t.Fatalf("% x %v", b, err)
			}
			c(token)
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = io.Copy(data, endless{}) }) // ends when the receiver closes
			run := f.finished(t, 0)
			if run.Err != nil || bytesOf(run, result.Server) == 0 || run.Wire.Extension {
				t.Errorf("%+v: %+v", run.Err, run.Wire)
			}
			data.Close()
			token.Close()
			wg.Wait()
		})
	}
}

// TestFrozen: an end that greets and then tells nothing holds the other for a while only.
func TestFrozen(t *testing.T) {
	t.Run("sender", func(t *testing.T) {
		t.Parallel()
		f := serve(t, Config{Duration: time.Second, OneOff: true}, func(r *Receiver) { r.Timeouts.Answer = time.Second })
		r := joinRaw(t, f, plainHello)
		r.begin(f)
		run := f.finished(t, 0)
		if n := f.tests()[0].notice("results-missing"); n == nil || n.End != result.Client || run.Err != nil || bytesOf(run, result.Server) == 0 {
			t.Errorf("%+v, %+v", n, run.Err)
		}
	})
	t.Run("receiver", func(t *testing.T) {
		t.Parallel()
		p := newImpostor(t, 0, func(nc net.Conn) {
			_, _, _ = readFrame(nc)
			_, _ = nc.Write(ext.Append(nil, ext.FrameHello, []byte(`{"v":1,"version":"9","test":"0123456789abcdef"}`)))
			m := &mixed{r: nc}
			m.set(framed)
			for {
				it, err := m.next()
				if err != nil {
					return
				}
				if it.frame == 0 { // the time and R
					_, _ = nc.Write(it.w.Append(nil))
				}
			}
		})
		to := quick()
		to.Answer = time.Second
		c := Config{Host: "127.0.0.1", Ports: 1, Threads: 1, Duration: time.Second, Interval: beat / 4, Bitrate: 80e6}
		s := sendAs(t, &Sender{Config: c, Timeouts: to, second: beat, dial: dialFrom("", p.at)})
		if got := s.wait(t); got != "" {
			t.Errorf("ends with %q", got)
		}
		run := s.rec.run()
		if n := s.rec.notice("results-missing"); n == nil || n.End != result.Server || !run.Wire.Extension || bytesOf(run, result.Client) == 0 {
			t.Errorf("%+v, %+v", n, run.Wire)
		}
	})
}
