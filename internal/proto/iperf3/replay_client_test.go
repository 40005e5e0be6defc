package iperf3

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
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
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

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
			var to Timeouts
			if strings.HasSuffix(r.name, "auth-c3.21-s3.12") || strings.HasSuffix(r.name, "c3.21-s3.1-bidir") { // the server will wait in vain
				to = short()
			}
			ts := startServer(t, &Server{Policy: pol, Timeouts: to, Now: func() time.Time { return now }})
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
	udp  map[string]*net.UDPConn // of a UDP recording
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
				c.pushUDP()
				for n, s := range streams { // all that the real one had sent
					c.push(s, n, totals[n]-CookieSize)
				}
			}
			if _, err := nc.Write(e.bytes()); err != nil && !errors.Is(err, net.ErrClosed) {
				ended = true
			}
		case e.Ev == "open" && c.udp != nil && strings.HasPrefix(e.Conn, "udp") && !ended:
			c.greetUDP(e.Conn)
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
