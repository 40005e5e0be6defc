package iperf3

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
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
	err     error
}

func newScriptedServer(t *testing.T, r recording) *scriptedServer {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
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
			}
		case e.Conn == "tcp0" && (e.Ev == "fin" || e.Ev == "reset") && e.Dir == "S>C":
			return nil
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
			c := &Client{Plan: p, Tool: result.Tool{Name: "fullbore", Version: "test"}, Timeouts: short()}
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
				wantError(t, err, codeStreamClose, "streams-closed")
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

// testKey is the throw-away key of the recordings.
func testKey(t testing.TB) (*rsa.PrivateKey, []byte) {
	t.Helper()
	data, err := os.ReadFile("testdata/transcripts/auth-keys/throwaway-test-key.json")
	if err != nil {
		t.Fatal(err)
	}
	var h map[string]string
	if err := json.Unmarshal(data, &h); err != nil {
		t.Fatal(err)
	}
	n := func(k string) *big.Int {
		v, ok := new(big.Int).SetString(h[k], 16)
		if !ok {
			t.Fatal(k)
		}
		return v
	}
	key := &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: n("n"), E: int(n("e").Int64())}, D: n("d"), Primes: []*big.Int{n("p"), n("q")}}
	key.Precompute()
	return key, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
}

const usersFile = "testdata/transcripts/auth-keys/users.csv"

// policyOf makes of a recorded server's command line what it allows.
func policyOf(t testing.TB, r recording) (plan.Serve, time.Time) {
	pol := plan.Serve{Exclusive: true}
	now := time.Now()
	args := r.Meta.ServerArgs
	switch {
	case strings.Contains(args, "--rsa-private-key-path"):
		key, pemKey := testKey(t)
		pol.PrivateKey, pol.UsersFile, pol.PKCS1 = pemKey, usersFile, strings.Contains(args, "pkcs1") || strings.HasPrefix(r.Meta.Server, "3.12")
		if tok := r.params(t).AuthToken; tok != "" {
			if opened, err := openToken(key, tok, true); err == nil {
				now = opened.at
			}
		}
	case strings.Contains(args, "--server-bitrate-limit 10M"):
		pol.RateLimit = 10e6
	case strings.Contains(args, "--server-max-duration 2"):
		pol.MaxDuration = 2 * time.Second
	case strings.Contains(args, "--rcv-timeout"):
		pol.ReceiveTimeout = 150 * time.Millisecond
	}
	return pol, now
}

// TestServerAgainstRecordedClients plays every recorded client to our server.
func TestServerAgainstRecordedClients(t *testing.T) {
	for _, r := range tcpRecordings(t) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			pol, now := policyOf(t, r)
			ts := startServer(t, &Server{Policy: pol, Timeouts: short(), Now: func() time.Time { return now }})
			c := &scriptedClient{t: t, r: r, ts: ts}
			c.play()
			run := ts.run(0)
			args := r.Meta.ServerArgs
			switch {
			case strings.HasSuffix(r.name, "auth-c3.21-s3.12"): // 3.12 does not know the padding; ours does, and waits for streams
				if run.Err == nil || run.Err.Code != "no-streams" {
					t.Errorf("error %+v", run.Err)
				}
			case strings.Contains(args, "--rsa-private-key-path") && !strings.HasSuffix(r.name, "auth-ok") && !strings.HasSuffix(r.name, "s3.21-pkcs1"):
				c.wantFailure(run, codeAuth, 0)
			case strings.Contains(args, "--server-bitrate-limit"):
				c.wantFailure(run, codeTotalRate, 0)
			case strings.Contains(args, "--server-max-duration"):
				c.wantFailure(run, codeMaxDuration, 0)
			case strings.Contains(r.name, "sctp"):
				c.wantFailure(run, codeStreamListen, linuxEPROTONOSUPPORT)
			case strings.Contains(args, "--rcv-timeout"):
				c.wantFailure(run, codeNoMsg, 0)
				if !run.Finished() {
					t.Error("no partial totals")
				}
			case r.has(t, "C>S", StateClientTerminate):
				if run.Err == nil || run.Err.Number != codeClientTerm || !run.Err.Remote || !run.Finished() {
					t.Errorf("error %+v, finished %v", run.Err, run.Finished())
				}
			case r.Meta.ServerSignal != "":
				if run.Err == nil || !run.Err.Interrupted || !run.Finished() {
					t.Errorf("error %+v, finished %v", run.Err, run.Finished())
				}
			default:
				if run.Err != nil {
					t.Fatal(run.Err)
				}
				c.wantResults(run)
			}
		})
	}
}

// scriptedClient plays a recorded client.
type scriptedClient struct {
	t    *testing.T
	r    recording
	ts   *testServer
	got  []message // from the server
	buf  []byte
	nc   net.Conn
	wg   sync.WaitGroup
	sent map[string]int64
}

// play sends what the client sent, after what it had read before.
func (c *scriptedClient) play() {
	t := c.t
	nc, err := net.Dial("tcp", c.ts.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	c.nc, c.sent = nc, map[string]int64{}
	defer c.wg.Wait()
	nc.SetDeadline(time.Now().Add(20 * time.Second))
	names := map[string]bool{}
	for _, n := range c.r.streamNames(t) {
		names[n] = true
	}
	totals := map[string]int64{}
	for _, e := range c.r.events {
		if (e.Ev == "fin" || e.Ev == "reset") && e.Dir == "C>S" {
			totals[e.Conn] = e.Total
		}
	}
	streams := map[string]net.Conn{}
	defer func() {
		nc.Close()
		for _, s := range streams {
			s.Close()
		}
	}()
	var down decoderOf // the server's messages as recorded
	down.cookie = true
	ended := false
	frozen := c.r.Meta.ClientSignal != "" && strings.HasPrefix(c.r.Meta.ClientSignal, "SIGSTOP")
	for _, e := range c.r.events {
		switch {
		case e.Conn == "tcp0" && e.Ev == "data" && e.Dir == "S>C":
			if c.r.Meta.ServerSignal != "" && e.Hex == "0b" {
				c.ts.stop(&result.Error{Code: "interrupted", Interrupted: true, Signal: "Interrupt(2)", Text: "interrupted"})
			}
			for range down.feed(e.bytes()) {
				if ended = !c.read(); ended {
					break
				}
			}
		case e.Conn == "tcp0" && e.Ev == "fin" && e.Dir == "S>C":
			c.readAll()
			return
		case e.Conn == "tcp0" && e.Ev == "data" && e.Dir == "C>S" && !ended:
			if b := e.bytes(); len(b) == 1 && State(b[0]) == StateTestEnd {
				for n, s := range streams { // all that the real one had sent
					c.push(s, n, totals[n]-CookieSize)
				}
			}
			if _, err := nc.Write(e.bytes()); err != nil && !errors.Is(err, net.ErrClosed) {
				ended = true
			}
		case e.Ev == "open" && names[e.Conn] && !ended:
			s, err := net.Dial("tcp", c.ts.addr.String())
			if err != nil {
				t.Fatal(err)
			}
			streams[e.Conn] = s
			cookie, _ := c.r.messages(t, "C>S")
			s.Write(cookie[:])
			c.wg.Add(1)
			go func() {
				defer c.wg.Done()
				io.Copy(io.Discard, s)
			}()
		case e.Conn == "tcp0" && (e.Ev == "fin" || e.Ev == "reset") && e.Dir == "C>S":
			if !frozen {
				nc.(*net.TCPConn).CloseWrite()
			}
		}
	}
	c.readAll()
}

// push sends what is left of n payload bytes.
func (c *scriptedClient) push(s net.Conn, name string, n int64) {
	if n <= 0 || c.sent[name] > 0 {
		return
	}
	c.sent[name] = n
	s.SetWriteDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.CopyN(s, zeros{}, n); err != nil {
		c.t.Errorf("payload: %v", err)
	}
	conn := osnet.NewConn(s)
	eventually(c.t, "the payload was not acknowledged", func() bool {
		n, err := conn.SendQueue()
		return n == 0 || err != nil
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// read takes one message of the server; false = there is none.
func (c *scriptedClient) read() bool {
	for {
		m, n, err := decodeMessage(c.buf, limits{MaxResults, MaxFrame}, true, false)
		if err != nil {
			c.t.Fatal(err)
		}
		if n > 0 {
			m.Doc = bytes.Clone(m.Doc)
			c.got = append(c.got, m)
			c.buf = c.buf[n:]
			return m.State != StateServerError && m.State != StateAccessDenied
		}
		chunk := make([]byte, 4096)
		k, err := c.nc.Read(chunk)
		c.buf = append(c.buf, chunk[:k]...)
		if err != nil && k == 0 {
			return false
		}
	}
}

func (c *scriptedClient) readAll() {
	for c.read() {
	}
	if len(c.buf) > 0 {
		c.t.Errorf("the server left %x", c.buf)
	}
}

// wantFailure: the server said why, completely, and closed.
func (c *scriptedClient) wantFailure(run *result.Run, code, errno int32) {
	c.t.Helper()
	last := c.got[len(c.got)-1]
	if last.Err == nil || last.Err.Code != code || last.Err.Errno != errno {
		c.t.Errorf("the client was told %+v, want %d %d", last, code, errno)
	}
	if run.Err == nil || run.Err.Number != int(code) {
		c.t.Errorf("the run says %+v", run.Err)
	}
}

// wantResults: the conversation was the recorded one, and the bytes are those sent.
func (c *scriptedClient) wantResults(run *result.Run) {
	c.t.Helper()
	t := c.t
	var states []State
	for _, m := range c.got {
		states = append(states, m.State)
	}
	want := fmt.Sprint([]State{StateParamExchange, StateCreateStreams, StateTestStart, StateTestRunning, StateExchangeResults, 0, StateDisplayResults})
	if got := fmt.Sprint(states); got != want {
		t.Errorf("the server sent %s, want %s", got, want)
	}
	res, err := DecodeResults(c.got[5].Doc)
	if err != nil {
		t.Fatal(err)
	}
	if id := checkIDs(res, run.Streams); id != 0 || len(res.Streams) != len(run.Streams) {
		t.Errorf("%d streams, id %d", len(res.Streams), id)
	}
	theirs := c.r.results(t, "C>S")
	omit := c.r.params(t).Omit > 0
	names := c.r.streamNames(t)
	for i, s := range run.Streams {
		if s.Direction == result.Up && !omit && res.Streams[i].Bytes != c.sent[names[i]] {
			t.Errorf("stream %d: %d bytes were sent, the server tells %d", s.ID, c.sent[names[i]], res.Streams[i].Bytes)
		}
		other := own(&s, result.Client)
		if i < len(theirs.Streams) && (other == nil || other.Bytes != theirs.Streams[i].Bytes) {
			t.Errorf("stream %d: the client said %+v, the run has %+v", s.ID, theirs.Streams[i], other)
		}
	}
}
