package iperf3

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// tcpRecordings are the recordings whose test is TCP.
func tcpRecordings(t testing.TB) []recording {
	var out []recording
	for _, r := range recordings(t) {
		if !strings.Contains(r.Meta.ClientArgs, " -u") {
			out = append(out, r)
		}
	}
	if len(out) < 58 {
		t.Fatalf("%d TCP recordings", len(out))
	}
	return out
}

// has reports whether a direction of the control connection carries a state.
func (r recording) has(t testing.TB, dir string, s State) bool {
	_, ms := r.messages(t, dir)
	for _, m := range ms {
		if m.State == s {
			return true
		}
	}
	return false
}

func (r recording) params(t testing.TB) Params {
	_, up := r.messages(t, "C>S")
	p, err := DecodeParams(up[0].Doc)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// reported is the error body a recorded server sent, nil = none.
func (r recording) reported(t testing.TB) *WireError {
	_, ms := r.messages(t, "S>C")
	for _, m := range ms {
		if m.Err != nil {
			return m.Err
		}
	}
	return nil
}

// streamNames are the data connections: those that sent the test's cookie.
func (r recording) streamNames(t testing.TB) []string {
	cookie, _ := r.messages(t, "C>S")
	var out []string
	for _, e := range r.events {
		if e.Ev == "data" && e.Dir == "C>S" && e.Off == 0 && e.Conn != "tcp0" && bytes.HasPrefix(e.bytes(), cookie[:]) {
			out = append(out, e.Conn)
		}
	}
	return out
}

// results returns the results document of a direction, nil = it was not sent.
func (r recording) results(t testing.TB, dir string) *Results {
	_, ms := r.messages(t, dir)
	docs := 0
	for _, m := range ms {
		if m.State != 0 {
			continue
		}
		if docs++; dir == "C>S" && docs == 1 {
			continue
		}
		res, err := DecodeResults(m.Doc)
		if err != nil {
			t.Fatal(err)
		}
		return &res
	}
	return nil
}

// scriptedServer plays the server's side of a recording to whoever connects: every
// recorded chunk when the client has said what it had said before it.
type scriptedServer struct {
	t       *testing.T
	r       recording
	ln      net.Listener
	running chan struct{} // closed when the data phase begins
	stop    atomic.Bool
	wg      sync.WaitGroup
	udp     *udpServer // of a UDP recording
}

func newScriptedServer(t *testing.T, r recording) *scriptedServer {
	ln, err := net.Listen("tcp", freeAddr(t, netip.MustParseAddr("127.0.0.1")).String())
	if err != nil {
		t.Fatal(err)
	}
	return &scriptedServer{t: t, r: r, ln: ln, running: make(chan struct{})}
}

// play runs the whole conversation. Its goroutines end with the connections.
func (s *scriptedServer) play() error {
	nc, err := s.ln.Accept()
	if err != nil {
		return err
	}
	var conns []net.Conn
	defer func() {
		s.stop.Store(true)
		s.ln.Close()
		nc.Close()
		for _, c := range conns {
			c.Close()
		}
		s.wg.Wait()
	}()
	nc.SetDeadline(time.Now().Add(20 * time.Second))
	streams := map[string]bool{}
	for _, n := range s.r.streamNames(s.t) {
		streams[n] = true
	}
	rejected := map[string]bool{}
	for _, e := range s.r.events {
		if e.Ev == "data" && e.Dir == "S>C" && streams[e.Conn] && e.Hex == "ff" {
			rejected[e.Conn] = true
		}
	}
	var cookie Cookie
	var up decoderOf // the client's messages as recorded
	flows := 0
	sends := s.r.params(s.t).Reverse || s.r.params(s.t).Bidirectional
	for i, e := range s.r.events {
		switch {
		case e.Conn == "tcp0" && e.Ev == "data" && e.Dir == "C>S":
			for _, m := range up.feed(e.bytes()) {
				if err := s.expect(nc, m, &cookie); err != nil {
					return fmt.Errorf("event %d: %w", i, err)
				}
			}
		case e.Conn == "tcp0" && e.Ev == "data" && e.Dir == "S>C":
			if _, err := nc.Write(e.bytes()); err != nil {
				return fmt.Errorf("event %d: %w", i, err)
			}
			if b := e.bytes(); b[len(b)-1] == byte(StateTestRunning) && e.Len <= 2 {
				close(s.running)
				if s.udp != nil && sends {
					s.udp.send()
				}
			}
		case e.Conn == "tcp0" && (e.Ev == "fin" || e.Ev == "reset") && e.Dir == "S>C":
			return nil
		case e.Ev == "open" && s.udp != nil && strings.HasPrefix(e.Conn, "udp"):
			if flows++; s.udp.wait(flows) != nil {
				return fmt.Errorf("event %d: %s did not come", i, e.Conn)
			}
		case e.Ev == "open" && streams[e.Conn]:
			c, err := s.ln.Accept()
			if err != nil {
				return err
			}
			conns = append(conns, c)
			var got Cookie
			c.SetDeadline(time.Now().Add(20 * time.Second))
			if _, err := io.ReadFull(c, got[:]); err != nil || got != cookie {
				return fmt.Errorf("stream cookie %q, want %q (%v)", got[:], cookie[:], err)
			}
			if rejected[e.Conn] {
				c.Write([]byte{0xff})
				c.Close()
				continue
			}
			s.wg.Add(1)
			go s.stream(c, sends)
		}
	}
	return nil
}

// stream moves payload both ways until the test ends.
func (s *scriptedServer) stream(c net.Conn, send bool) {
	defer s.wg.Done()
	if !send {
		io.Copy(io.Discard, c)
		return
	}
	<-s.running
	buf := make([]byte, 16<<10)
	for !s.stop.Load() {
		c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		if _, err := c.Write(buf); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
}

// expect reads from the client what the recorded one sent, in kind.
func (s *scriptedServer) expect(nc net.Conn, m message, cookie *Cookie) error {
	switch {
	case m.State == cookieMessage:
		_, err := io.ReadFull(nc, cookie[:])
		return err
	case m.State == 0:
		var head [4]byte
		if _, err := io.ReadFull(nc, head[:]); err != nil {
			return fmt.Errorf("document: %w", err)
		}
		n := binary.BigEndian.Uint32(head[:])
		if n > MaxParams {
			return fmt.Errorf("document of %d bytes", n)
		}
		_, err := io.ReadFull(nc, make([]byte, n))
		return err
	}
	var b [1]byte
	if _, err := io.ReadFull(nc, b[:]); err != nil {
		if m.State == StateDone { // after an error: not every client says it, and we need not wait
			return nil
		}
		return fmt.Errorf("%v: %w", m.State, err)
	}
	if State(b[0]) == StateTestEnd || State(b[0]) == StateClientTerminate {
		s.stop.Store(true)
	}
	if State(b[0]) != m.State {
		return fmt.Errorf("the client sent %v, recorded was %v", State(b[0]), m.State)
	}
	return nil
}

// cookieMessage stands for the cookie among the messages of decoderOf.
const cookieMessage State = 99

// decoderOf takes a client's recorded bytes apart as they come.
type decoderOf struct {
	buf    []byte
	cookie bool
}

func (d *decoderOf) feed(b []byte) []message {
	d.buf = append(d.buf, b...)
	var out []message
	if !d.cookie && len(d.buf) >= CookieSize {
		d.cookie = true
		d.buf = d.buf[CookieSize:]
		out = append(out, message{State: cookieMessage})
	}
	for d.cookie {
		m, n, err := decodeMessage(d.buf, limits{MaxResults, MaxFrame}, false, false)
		if err != nil || n == 0 {
			break
		}
		out = append(out, m)
		d.buf = d.buf[n:]
	}
	return out
}

// TestClientAgainstRecordedServers plays every recorded server to our client.
func TestClientAgainstRecordedServers(t *testing.T) {
	pub, err := os.ReadFile("testdata/transcripts/auth-keys/throwaway-test-public.pem")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range tcpRecordings(t) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			p := r.params(t).Plan()
			if p.Transport == plan.SCTP {
				_, err := runClient(t, &Client{Plan: plan.Plan{Host: "127.0.0.1", Transport: plan.SCTP}})
				wantError(t, err, codeStreamListen, "unsupported")
				return
			}
			p.Host = "127.0.0.1"
			p.Affinity = nil
			p.Extension = "off"
			p.Bitrate, p.Burst, p.FQRate = 0, 0, 0 // the script does not mind how fast
			if !p.Endless {
				p.Duration = 30 * time.Millisecond
			}
			if strings.HasSuffix(r.name, "s3.1-bidir") {
				p.Duration = 300 * time.Millisecond // so that the rejection is seen
			}
			if p.Omit > 0 {
				p.Omit = 20 * time.Millisecond
			}
			p.Endless = false
			ends := r.has(t, "C>S", StateTestEnd)
			if !ends {
				p.Duration, p.Bytes, p.Blocks = time.Minute, 0, 0
			}
			if strings.Contains(r.Meta.ClientArgs, "--username") {
				p.Auth = &plan.Auth{Username: "mario", Password: "rossi", PublicKey: pub}
			}
			srv := newScriptedServer(t, r)
			p.Port = srv.ln.Addr().(*net.TCPAddr).Port
			played := make(chan error, 1)
			go func() { played <- srv.play() }()

			rec := newRecorder()
			c := &Client{Plan: p, Tool: result.Tool{Name: "fullbore", Version: "test"}}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if r.has(t, "C>S", StateClientTerminate) {
				rec.on = func(e result.Event) {
					if e.Kind == result.KindStart {
						go cancel(&result.Error{Code: "interrupted", Interrupted: true, Signal: "Interrupt(2)", Text: "interrupted", Number: codeClientTerm})
					}
				}
			}
			err := c.Run(ctx, rec)
			serr := <-played
			run := rec.run()
			switch told := r.reported(t); {
			case r.has(t, "C>S", StateClientTerminate):
				wantError(t, err, codeClientTerm, "interrupted")
				if !run.Finished() {
					t.Error("no partial totals")
				}
			case r.has(t, "S>C", StateServerTerminate):
				wantError(t, err, codeServerTerm, "server-terminated")
				if !run.Finished() {
					t.Error("no partial totals")
				}
			case r.has(t, "S>C", StateDisplayResults) && (told == nil || ends):
				if err != nil || serr != nil {
					t.Fatalf("client: %v; script: %v", err, serr)
				}
				compareRemote(t, run, *r.results(t, "S>C"))
			case told != nil:
				var e *result.Error
				if !errors.As(err, &e) || e.Number != int(told.Code) || !e.Remote || !e.Reported {
					t.Errorf("error %+v, the server said %+v", e, told)
				}
			case strings.Contains(r.name, "bidir"): // 3.1 rejects the streams it does not know
				var e *result.Error
				if !errors.As(err, &e) || e.Number != codeStreamClose && e.Number != codeCtrlClose {
					t.Errorf("error %+v", e)
				}
				if !strings.Contains(err.Error(), "before 3.7") {
					t.Errorf("not explained: %v", err)
				}
			default: // closed without a word
				var e *result.Error
				if !errors.As(err, &e) || e.Number != codeCtrlClose || !e.Remote {
					t.Errorf("error %+v", e)
				}
			}
		})
	}
}

func wantError(t *testing.T, err error, number int, code string) {
	t.Helper()
	var e *result.Error
	if !errors.As(err, &e) || e.Number != number || e.Code != code || e.Text == "" {
		t.Errorf("error %+v (%v), want number %d, code %q", e, err, number, code)
	}
}

// compareRemote checks that what the server told is what the run says about it.
func compareRemote(t *testing.T, run *result.Run, told Results) {
	t.Helper()
	for i, s := range run.Streams {
		if i >= len(told.Streams) {
			break
		}
		w := told.Streams[i]
		half := s.Receiver
		if s.Direction == result.Down {
			half = s.Sender
		}
		if half == nil || half.Bytes != w.Bytes || w.HasTimes && half.End != w.End {
			t.Errorf("stream %d: %+v, told %+v", s.ID, half, w)
		}
		if s.Direction == result.Down && (half.Retransmits == nil) != (w.Retransmits < 0) {
			t.Errorf("stream %d: retransmits %v, told %d", s.ID, half.Retransmits, w.Retransmits)
		}
		if s.Direction == result.Up && half.Retransmits != nil {
			t.Errorf("stream %d: a receiver counts no retransmits, got %d", s.ID, *half.Retransmits)
		}
	}
	if run.CPU.Server == nil || run.CPU.Server.Total != told.CPU.Total || run.CPU.Server.Congestion != told.CPU.Congestion {
		t.Errorf("CPU %+v, told %+v", run.CPU.Server, told.CPU)
	}
	if w := run.Wire; (w.ServerText == nil) != (told.ServerText == nil) || w.ServerText != nil && *w.ServerText != *told.ServerText || !bytes.Equal(w.ServerJSON, told.ServerJSON) {
		t.Errorf("server output %v %s", w.ServerText, w.ServerJSON)
	}
}
