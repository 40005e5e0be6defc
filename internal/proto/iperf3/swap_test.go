package iperf3

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/result"
)

// swapPlan is a test whose roles are exchanged.
func swapPlan(d plan.Direction) plan.Plan {
	return plan.Plan{Direction: d, Streams: 2, Duration: 300 * time.Millisecond, Interval: 100 * time.Millisecond, Bitrate: 20e6, Swap: &plan.Swap{}}
}

// TestRolesExchanged: the run is that of this end's server, whole; so is what the other end, the
// client, records of it.
func TestRolesExchanged(t *testing.T) {
	for d, streams := range map[plan.Direction]int{plan.Up: 2, plan.Down: 2, plan.Both: 4} {
		t.Run(string(d), func(t *testing.T) {
			ts := startServer(t, &Server{
				Policy: plan.Serve{Interval: 100 * time.Millisecond, Exclusive: true},
				Facts:  &result.Host{Name: "far", OS: "linux", Cores: 2},
				Host:   func() *result.HostSample { return &result.HostSample{StealMax: 0.25} },
			})
			c := ts.client(swapPlan(d))
			c.Facts = &result.Host{Name: "near", OS: "linux", Cores: 4}
			c.Host = func() *result.HostSample { return &result.HostSample{StealMax: 0.5} }
			run, err := runClient(t, c)
			if err != nil {
				t.Fatal(err)
			}
			if run.End != result.Server || !run.Finished() || run.Err != nil || run.Test.Direction != string(d) || !run.Wire.Extension || len(run.Streams) != streams {
				t.Fatalf("end %q, error %+v, test %+v, wire %+v, %d streams", run.End, run.Err, run.Test, run.Wire, len(run.Streams))
			}
			if near, far := run.Hosts.Server, run.Hosts.Client; near == nil || near.Name != "near" || far == nil || far.Cores != 2 || far.Name != "" {
				t.Errorf("hosts: server %+v, client %+v (of whom a stranger learns little)", near, far)
			}
			far := ts.run(0)
			if far.End != result.Client || far.Err != nil || len(far.Streams) != streams || far.Hosts.Server == nil || far.Hosts.Server.Name != "near" {
				t.Fatalf("there: end %q, error %+v, %d streams, hosts %+v", far.End, far.Err, len(far.Streams), far.Hosts)
			}
			for i, s := range run.Streams {
				o := far.Streams[i]
				if s.ID != o.ID || s.Direction != o.Direction || s.Local != o.Remote || s.Sender.Bytes != o.Sender.Bytes || s.Receiver.Bytes != o.Receiver.Bytes || s.Receiver.Bytes == 0 {
					t.Errorf("stream %d: %+v → %+v here, %+v → %+v there", s.ID, s.Sender, s.Receiver, o.Sender, o.Receiver)
				}
			}
			for e, steal := range map[result.End]float64{result.Server: 0.5, result.Client: 0.25} {
				rows := run.Intervals(e)
				if len(rows) == 0 || rows[0].Host == nil || rows[0].Host.StealMax != steal {
					t.Errorf("%d rows of the %s, the first %+v", len(rows), e, rows)
				}
			}
			serves(t, ts)
		})
	}
}

// TestSwapUnavailable: a server that does not play along is left before anything flows.
func TestSwapUnavailable(t *testing.T) {
	for name, s := range map[string]*Server{
		"told not to":          {Policy: plan.Serve{NoSwap: true}},
		"no extension":         {Policy: plan.Serve{Extension: "off"}},
		"holds to an average":  {Policy: plan.Serve{RateLimit: 1e12}},
		"in iperf3's own ways": {Plain: true},
	} {
		t.Run(name, func(t *testing.T) {
			ts := startServer(t, s)
			run, err := runClient(t, ts.client(swapPlan(plan.Up)))
			wantError(t, err, codeMessage, "swap-unavailable")
			if run.Finished() || run.Err == nil {
				t.Errorf("data flowed, or the run tells no error: %+v", run.Err)
			}
			serves(t, ts)
		})
	}
}

// TestSwapKeepsToPolicy: the played test is one like any other to the server's policy.
func TestSwapKeepsToPolicy(t *testing.T) {
	for name, tc := range map[string]struct {
		policy plan.Serve
		number int
		code   string
	}{
		"time":    {plan.Serve{MaxDuration: 100 * time.Millisecond}, codeMaxDuration, "limit"},
		"streams": {plan.Serve{MaxStreams: 1}, codeNumStreams, "limit"},
		"rate":    {plan.Serve{MaxRate: 30e6}, codeTotalRate, "limit"},
		"busy":    {plan.Serve{Exclusive: true}, codeAccessDenied, "busy"},
	} {
		t.Run(name, func(t *testing.T) {
			ts := startServer(t, &Server{Policy: tc.policy})
			if name == "busy" {
				defer holder(t, ts, plan.Plan{})()
			}
			run, err := runClient(t, ts.client(swapPlan(plan.Up)))
			wantError(t, err, tc.number, tc.code)
			if run.Finished() {
				t.Error("data flowed")
			}
		})
	}
}

// TestSwapKeepsToBudgets: what the asking end may spend holds for the end that plays.
func TestSwapKeepsToBudgets(t *testing.T) {
	ts := startServer(t, &Server{})
	p := swapPlan(plan.Up)
	p.Bitrate, p.Duration, p.MaxBytes = 0, 30*time.Second, 1<<20
	run, err := runClient(t, ts.client(p))
	if err != nil {
		t.Fatal(err)
	}
	if n := run.Sum(result.Up).Sender.Bytes; n == 0 || n > 1<<20 {
		t.Errorf("%d bytes of 1 MiB", n)
	}
	for _, d := range []plan.Direction{plan.Up, plan.Down} {
		p := swapPlan(d)
		p.Bitrate, p.Duration, p.MaxRate = 0, 500*time.Millisecond, 8e6
		run, err := runClient(t, ts.client(p))
		if err != nil {
			t.Fatal(err)
		}
		if s := run.Sum(result.Direction(d)).Sender; s.Bytes == 0 || s.Rate() > 12e6 {
			t.Errorf("%s: %.0f bit/s of 8 Mbit/s", d, s.Rate())
		}
	}
}

// askSwap asks for a test with exchanged roles at a port of this host; the server has begun to play.
func (p *rawPeer) askSwap(port int) (token string) {
	p.t.Helper()
	token = NewCookie().String()
	p.greet()
	p.document(fmt.Sprintf(`{"tcp":true,"time":1,"len":1000,"fullbore":{"v":1,"version":"x","features":["swap"],"swap":{"port":%d,"token":%q}}}`, port, token))
	p.want(FrameHello)
	var h ext.ServerHello
	if err := json.Unmarshal(p.read(int(binary.BigEndian.Uint32(p.read(4)))), &h); err != nil {
		p.t.Fatal(err)
	}
	if !slices.Contains(h.Features, ext.FeatureSwap) {
		p.t.Fatalf("features %v", h.Features)
	}
	p.want(StateCreateStreams, StateTestStart, StateTestRunning)
	return token
}

// swapWhy ends the conversation in good order and returns what the server says of the played test.
func (p *rawPeer) swapWhy() string {
	p.t.Helper()
	p.want(StateExchangeResults)
	p.document(emptyResults)
	res, err := DecodeResults(p.read(int(binary.BigEndian.Uint32(p.read(4)))))
	if err != nil {
		p.t.Fatal(err)
	}
	p.want(StateDisplayResults)
	p.write(byte(StateDone))
	if res.Ext == nil || res.Ext.Swap == nil || len(res.Streams) != 0 {
		p.t.Fatalf("results %+v", res)
	}
	return res.Ext.Swap.Why
}

// A port where nobody listens.
func TestSwapRefused(t *testing.T) {
	ts := startServer(t, &Server{Policy: plan.Serve{Exclusive: true}})
	p := dialRaw(t, ts)
	p.askSwap(int(freeAddr(t, netip.MustParseAddr("127.0.0.1")).Port()))
	if why := p.swapWhy(); why != ext.SwapRefused {
		t.Errorf("why %q", why)
	}
	if run := ts.run(0); run.Err == nil || run.Err.Code != "connect" || run.End != result.Client {
		t.Errorf("the server records %+v of the %s", run.Err, run.End)
	}
	serves(t, ts)
}

// What is no server at all gets a cookie and nothing else.
func TestSwapToAStranger(t *testing.T) {
	ts := startServer(t, &Server{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	got := make(chan string, 1)
	go func() { // ends with the connection
		nc, err := ln.Accept()
		if err != nil {
			got <- err.Error()
			return
		}
		defer nc.Close()
		_ = nc.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = io.WriteString(nc, "HTTP/1.0 400 Bad Request\r\n\r\n")
		b, _ := io.ReadAll(nc)
		got <- string(b)
	}()
	p := dialRaw(t, ts)
	token := p.askSwap(ln.Addr().(*net.TCPAddr).Port)
	if why := p.swapWhy(); why != ext.SwapStranger {
		t.Errorf("why %q", why)
	}
	if b := <-got; b != token+"\x00" {
		t.Errorf("it was sent %q", b)
	}
}

// Other servers at the client's address, which know nothing of the conversation, are not made to run
// a test: neither an iperf3, nor another fullbore, nor the very server that is asked.
func TestSwapToAnotherServer(t *testing.T) {
	ts := startServer(t, &Server{})
	for name, other := range map[string]*testServer{
		"iperf3":   startServer(t, &Server{Policy: plan.Serve{Extension: "off"}}),
		"fullbore": startServer(t, &Server{}),
		"itself":   ts,
	} {
		p := dialRaw(t, ts)
		p.askSwap(int(other.addr.Port()))
		if why := p.swapWhy(); why != ext.SwapStranger {
			t.Errorf("%s: why %q", name, why)
		}
		if other == ts {
			continue
		}
		if run := other.run(0); run.Err == nil || run.Err.Code != "client-terminated" || run.Finished() {
			t.Errorf("%s: there it ended with %+v", name, run.Err)
		}
	}
	serves(t, ts)
}

// TestSwapMalformed: what a server does not do.
func TestSwapMalformed(t *testing.T) {
	ts := startServer(t, &Server{})
	token := NewCookie().String()
	swap := func(port int, token string) string { return fmt.Sprintf(`{"port":%d,"token":%q}`, port, token) }
	for name, doc := range map[string]string{
		"a port of services":  `{"tcp":true,"time":1,"fullbore":{"v":1,"features":["swap"],"swap":` + swap(80, token) + `}}`,
		"no port":             `{"tcp":true,"time":1,"fullbore":{"v":1,"features":["swap"],"swap":` + swap(0, token) + `}}`,
		"beyond all ports":    `{"tcp":true,"time":1,"fullbore":{"v":1,"features":["swap"],"swap":` + swap(65536, token) + `}}`,
		"a token too short":   `{"tcp":true,"time":1,"fullbore":{"v":1,"features":["swap"],"swap":` + swap(5000, token[1:]) + `}}`,
		"words for a token":   `{"tcp":true,"time":1,"fullbore":{"v":1,"features":["swap"],"swap":` + swap(5000, "GET / HTTP/1.0 and as long as it is.") + `}}`,
		"a negative budget":   `{"tcp":true,"time":1,"fullbore":{"v":1,"features":["swap"],"swap":{"port":5000,"max_bytes":-1,"token":"` + token + `"}}}`,
		"UDP":                 `{"udp":true,"time":1,"len":1000,"fullbore":{"v":1,"features":["swap"],"swap":` + swap(5000, token) + `}}`,
		"no end":              `{"tcp":true,"time":0,"fullbore":{"v":1,"features":["swap"],"swap":` + swap(5000, token) + `}}`,
		"probes and no other": `{"tcp":true,"time":1,"fullbore":{"v":1,"features":["swap","ping"],"probe_only":true,"swap":` + swap(5000, token) + `}}`,
	} {
		p := dialRaw(t, ts)
		p.greet()
		p.document(doc)
		if got := string(p.rest()); got != string(errBody(codeRecvParams, 0)) {
			t.Errorf("%s: answered %q", name, got)
		}
	}
	serves(t, ts)
}

// TestSwapAskerGone: when the conversation ends, so does what is played for it.
func TestSwapAskerGone(t *testing.T) {
	ts := startServer(t, &Server{Policy: plan.Serve{Exclusive: true}})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	p := dialRaw(t, ts)
	token := p.askSwap(ln.Addr().(*net.TCPAddr).Port)
	nc, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(20 * time.Second))
	cookie := make([]byte, CookieSize)
	if _, err := io.ReadFull(nc, cookie); err != nil || string(cookie) != token+"\x00" {
		t.Fatalf("cookie %q, %v", cookie, err)
	}
	p.nc.Close()
	if b, err := io.ReadAll(nc); len(b) != 0 || isNetTimeout(err) {
		t.Errorf("%q, %v", b, err)
	}
	eventually(t, "the slot is still taken", func() bool { return !ts.Slots.Full() })
	if run := ts.run(0); run.Err == nil || run.Err.Code != "peer-closed" {
		t.Errorf("the server records %+v", run.Err)
	}
	serves(t, ts)
}

// running starts a long test with exchanged roles and returns when it has begun.
func running(t *testing.T, ts *testServer) (stop context.CancelFunc, ended <-chan error, rec *recorder) {
	t.Helper()
	p := swapPlan(plan.Up)
	p.Duration = time.Minute
	rec = newRecorder()
	started := make(chan struct{})
	rec.on = func(e result.Event) {
		if e.Kind == result.KindStart {
			close(started)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	done := make(chan error, 1)
	go func() { done <- ts.client(p).Run(ctx, rec) }() // ends with ctx; its end is awaited by the caller
	select {
	case <-started:
	case err := <-done:
		t.Fatalf("it did not begin: %v", err)
	}
	return cancel, done, rec
}

func TestSwapInterrupted(t *testing.T) {
	ts := startServer(t, &Server{})
	stop, ended, rec := running(t, ts)
	stop()
	wantError(t, <-ended, codeClientTerm, "interrupted")
	if run := rec.run(); run.Err == nil || run.End != result.Server {
		t.Errorf("the run's error is %+v, its end %q", run.Err, run.End)
	}
	eventually(t, "the other end goes on", func() bool { return ts.run(0).Err != nil })
	serves(t, ts)
}

func TestSwapServerStopped(t *testing.T) {
	ts := startServer(t, &Server{})
	_, ended, rec := running(t, ts)
	_ = ts.close()
	wantError(t, <-ended, codeServerTerm, "server-terminated")
	if run := rec.run(); run.Err == nil {
		t.Error("the run tells no error")
	}
}

// TestSwapAdmitsOneAlone: the server that a client opens answers nobody but the end that it asked,
// not even by a byte.
func TestSwapAdmitsOneAlone(t *testing.T) {
	port := int(freeAddr(t, netip.MustParseAddr("127.0.0.1")).Port())
	got := make(chan string, 1)
	ts := startServer(t, &Server{NewTest: func(result.Addr) TestHooks {
		nc, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port))) // before the server itself
		if err != nil {
			got <- err.Error()
			return TestHooks{}
		}
		go func() { // ends with the connection
			defer nc.Close()
			_ = nc.SetDeadline(time.Now().Add(20 * time.Second))
			c := NewCookie()
			_, _ = nc.Write(c[:])
			b, err := io.ReadAll(nc)
			if isNetTimeout(err) {
				b = []byte("it was left waiting")
			}
			got <- string(b)
		}()
		return TestHooks{}
	}})
	p := swapPlan(plan.Up)
	p.Swap.Port = port
	run, err := runClient(t, ts.client(p))
	if err != nil || !run.Finished() || run.Streams[0].Local.Port != port {
		t.Fatalf("%v, %+v", err, run.Streams)
	}
	if b := <-got; b != "" {
		t.Errorf("the stranger was answered %q", b)
	}
}

// A port that is taken is told, and the server is left in good order.
func TestSwapPortTaken(t *testing.T) {
	ts := startServer(t, &Server{})
	p := swapPlan(plan.Up)
	p.Swap.Port = int(ts.addr.Port())
	_, err := runClient(t, ts.client(p))
	wantError(t, err, codeStreamListen, "port")
	serves(t, ts)
}

// Who does not ask for exchanged roles neither says a word of them nor hears one.
func TestSwapIsNotMentioned(t *testing.T) {
	r := &clientRun{c: &Client{}, p: plan.Plan{Host: "h"}.Filled()}
	if err := r.buildParams(); err != nil {
		t.Fatal(err)
	}
	if doc := string(r.params.Encode()); strings.Contains(doc, "swap") || !strings.Contains(doc, ext.FeatureExact) {
		t.Errorf("parameters %s", doc)
	}
	ts := startServer(t, &Server{})
	p := dialRaw(t, ts)
	p.greet()
	p.document(`{"tcp":true,"time":1,"fullbore":{"v":1,"version":"x","features":["events","index"]}}`)
	p.want(FrameHello)
	if doc := string(p.read(int(binary.BigEndian.Uint32(p.read(4))))); strings.Contains(doc, "swap") || !strings.Contains(doc, ext.FeatureExact) {
		t.Errorf("hello %s", doc)
	}
}

func TestSwapWhy(t *testing.T) {
	connect := func(errno int) error { return &result.Error{Code: "connect", Errno: errno} }
	for _, tc := range []struct {
		err    error
		proved bool
		want   string
	}{
		{nil, true, ""},
		{connect(linuxECONNREFUSED), false, ext.SwapRefused},
		{connect(linuxETIMEDOUT), false, ext.SwapNoAnswer},
		{connect(linuxEHOSTUNREACH), false, ext.SwapNoRoute},
		{connect(linuxENETUNREACH), false, ext.SwapNoRoute},
		{&result.Error{Code: "not-iperf3"}, false, ext.SwapStranger},
		{&result.Error{Code: "silent-peer"}, false, ext.SwapStranger},
		{&result.Error{Code: "address"}, false, ext.SwapBroke},
		{&result.Error{Code: "streams-closed"}, true, ext.SwapBroke},
	} {
		if got := swapWhy(tc.err, tc.proved); got != tc.want {
			t.Errorf("%v, %v: %q, want %q", tc.err, tc.proved, got, tc.want)
		}
	}
	for why := range swapWords {
		if !slices.Contains([]string{ext.SwapRefused, ext.SwapNoAnswer, ext.SwapNoRoute, ext.SwapStranger}, why) {
			t.Errorf("words for %q, which nobody says", why)
		}
	}
	for range 50 {
		c := NewCookie()
		if back, ok := cookieOf(c.String()); !ok || back != c {
			t.Errorf("the token %q is no cookie", c)
		}
	}
}
