package iperf3

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// rawPeer is one side of a conversation played by hand.
type rawPeer struct {
	t      testing.TB
	nc     net.Conn
	cookie Cookie
	udp    bool // streams are UDP's
	frozen bool // a server that reads no payload
}

func dialRaw(t testing.TB, ts *testServer) *rawPeer {
	t.Helper()
	nc, err := net.Dial("tcp", ts.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(20 * time.Second))
	return &rawPeer{t: t, nc: nc, cookie: NewCookie()}
}

func (p *rawPeer) write(b ...byte) {
	p.t.Helper()
	if _, err := p.nc.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

func (p *rawPeer) read(n int) []byte {
	p.t.Helper()
	b := make([]byte, n)
	if k, err := io.ReadFull(p.nc, b); err != nil {
		p.t.Fatalf("%d of %d bytes: %v (%x)", k, n, err, b[:k])
	}
	return b
}

// rest reads to the end.
func (p *rawPeer) rest() []byte {
	p.t.Helper()
	b, err := io.ReadAll(p.nc)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		p.t.Fatal(err)
	}
	return b
}

func (p *rawPeer) want(states ...State) {
	p.t.Helper()
	got := p.read(len(states))
	for i, s := range states {
		if State(got[i]) != s {
			p.t.Fatalf("got %x, want %v", got, states)
		}
	}
}

// greet sends the cookie and reads 0x09.
func (p *rawPeer) greet() {
	p.t.Helper()
	p.write(p.cookie[:]...)
	p.want(StateParamExchange)
}

func (p *rawPeer) document(doc string) {
	p.t.Helper()
	p.write(AppendDocument(nil, []byte(doc))...)
}

// stream opens a data connection to the same server.
func (p *rawPeer) stream() net.Conn {
	p.t.Helper()
	if p.udp {
		return p.greetUDP(udpGreeting)
	}
	nc, err := net.Dial("tcp", p.nc.RemoteAddr().String())
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := nc.Write(p.cookie[:]); err != nil {
		p.t.Fatal(err)
	}
	return nc
}

const emptyResults = `{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,"sender_has_retransmits":1,"streams":[]}`

// errBody is the complete SERVER_ERROR for a code.
func errBody(code, errno int32) []byte { return AppendError(nil, WireError{code, errno}) }

// serves checks that a normal client gets its test now.
func serves(t testing.TB, ts *testServer) {
	t.Helper()
	c := ts.client(plan.Plan{Bytes: 1 << 20})
	run, err := runClient(t, c)
	if err != nil {
		t.Fatalf("a normal client: %v", err)
	}
	if s := run.Streams[0]; s.Sender.Bytes != 1<<20 || s.Receiver.Bytes != 1<<20 {
		t.Fatalf("a normal client: %+v → %+v", s.Sender, s.Receiver)
	}
}

// TestRawParameters: what a server answers to odd parameter messages (spec §5, §6).
func TestRawParameters(t *testing.T) {
	ts := startServer(t, &Server{})
	ok := []byte{byte(StateCreateStreams)}
	long := func(n int) string {
		head := `{"tcp":true,"title":"`
		return head + strings.Repeat("x", n-len(head)-2) + `"}`
	}
	refusedParams := errBody(codeRecvParams, 0)
	for name, tc := range map[string]struct {
		raw  []byte // after 0x09; nil = doc
		doc  string
		want []byte
	}{
		"nothing but defaults":    {doc: `{}`, want: ok},
		"upper case":              {doc: `{"TCP":true,"Time":1,"PARALLEL":1}`, want: ok},
		"unknown key with object": {doc: `{"tcp":true,"x":{"y":[1,{"z":null}]}}`, want: ok},
		"bytes behind the value":  {doc: `{"tcp":true} and more`, want: ok},
		"numbers in any notation": {doc: `{"tcp":true,"time":1e0,"len":1.31072e5,"num":0.0}`, want: ok},
		"4096 bytes":              {doc: long(4096), want: ok},
		"8192 bytes":              {doc: long(8192), want: ok},
		"8193 bytes":              {doc: long(8193), want: refusedParams},
		"9156 bytes":              {doc: long(9156), want: refusedParams},
		"length 0":                {raw: []byte{0, 0, 0, 0}, want: refusedParams},
		"length ff ff ff ff":      {raw: []byte{0xff, 0xff, 0xff, 0xff}, want: refusedParams},
		"length 7f ff ff ff":      {raw: append([]byte{0x7f, 0xff, 0xff, 0xff}, make([]byte, 1000)...), want: refusedParams},
		"array":                   {doc: `[1,2]`, want: refusedParams},
		"number":                  {doc: `7`, want: refusedParams},
		"4000 brackets":           {doc: strings.Repeat("[", 4000), want: refusedParams},
		"5000 openings":           {doc: strings.Repeat(`{"a":`, 1600), want: refusedParams},
		"not JSON":                {doc: `hello`, want: refusedParams},
		"object for a string":     {doc: `{"congestion":{"a":1}}`, want: refusedParams},
		"number for a string":     {doc: `{"title":5,"extra_data":[1]}`, want: refusedParams},
		"string for a number":     {doc: `{"len":"x"}`, want: refusedParams},
		"len 2000000":             {doc: `{"len":2000000}`, want: errBody(codeBlockSize, 0)},
		"len -1":                  {doc: `{"len":-1}`, want: errBody(codeBlockSize, 0)},
		"len 0":                   {doc: `{"len":0}`, want: errBody(codeBlockSize, 0)},
		"parallel 129":            {doc: `{"parallel":129}`, want: errBody(codeNumStreams, 0)},
		"parallel 0":              {doc: `{"parallel":0}`, want: errBody(codeNumStreams, 0)},
		"time -1":                 {doc: `{"time":-1}`, want: errBody(codeDuration, 0)},
		"time 90000":              {doc: `{"time":90000}`, want: errBody(codeDuration, 0)},
		"omit 601":                {doc: `{"omit":601}`, want: errBody(codeOmit, 0)},
		"TOS 300":                 {doc: `{"TOS":300}`, want: errBody(codeTOS, 0)},
		"burst 0":                 {doc: `{"burst":0}`, want: errBody(codeBurst, 0)},
		"MSS 40000":               {doc: `{"MSS":40000}`, want: errBody(codeMSS, 0)},
		"udp len 8":               {doc: `{"udp":true,"len":8}`, want: errBody(codeUDPBlockSize, 0)},
		"a false flag is a flag":  {doc: `{"sctp":false}`, want: errBody(codeStreamListen, linuxEPROTONOSUPPORT)},
		"sctp":                    {doc: `{"sctp":true}`, want: errBody(codeStreamListen, linuxEPROTONOSUPPORT)},
		"nonsense hello":          {doc: `{"fullbore":{"v":-1,"streams":"x"}}`, want: ok},
	} {
		t.Run(name, func(t *testing.T) {
			p := dialRaw(t, ts)
			p.greet()
			if tc.raw != nil {
				p.write(tc.raw...)
			} else {
				p.document(tc.doc)
			}
			got := p.read(1)
			if !bytes.Equal(tc.want, ok) {
				got = append(got, p.rest()...)
			}
			if !bytes.Equal(got, tc.want) {
				t.Errorf("got %x, want %x", got, tc.want)
			}
		})
	}
	serves(t, ts)
}

// A client may send cookie and parameters in one piece, or byte by byte (spec §2, §16.15).
func TestRawChunks(t *testing.T) {
	ts := startServer(t, &Server{})
	p := dialRaw(t, ts)
	p.write(append(p.cookie[:], AppendDocument(nil, []byte(`{"tcp":true}`))...)...)
	p.want(StateParamExchange, StateCreateStreams)

	p = dialRaw(t, ts)
	all := append(p.cookie[:], AppendDocument(nil, []byte(`{"tcp":true}`))...)
	for _, b := range all {
		p.write(b)
	}
	p.want(StateParamExchange, StateCreateStreams)
}

// TestRawStates: unexpected words of a client (spec §3, §4).
func TestRawStates(t *testing.T) {
	ts := startServer(t, &Server{})
	begin := func(t *testing.T) (*rawPeer, net.Conn) {
		p := dialRaw(t, ts)
		p.greet()
		p.document(`{"tcp":true,"time":0,"num":0}`)
		p.want(StateCreateStreams)
		s := p.stream()
		p.want(StateTestStart, StateTestRunning)
		return p, s
	}
	for name, tc := range map[string]struct {
		say  []byte
		want []byte
	}{
		"unknown byte":                  {[]byte{99}, errBody(codeMessage, 0)},
		"busy is no client's word":      {[]byte{0xff}, errBody(codeMessage, 0)},
		"CREATE_STREAMS":                {[]byte{10}, errBody(codeMessage, 0)},
		"a document":                    {AppendDocument(nil, []byte(`{}`)), errBody(codeMessage, 0)},
		"goodbye":                       {[]byte{16}, nil},
		"terminate":                     {[]byte{12}, nil},
		"frame to one who did not ask":  {append(AppendFrame(nil, FrameClient, []byte(`{"stop":{}}`)), 99), errBody(codeMessage, 0)},
		"TEST_START is ignored":         {[]byte{1, 1, 99}, errBody(codeMessage, 0)},
		"unknown frame is skipped":      {append(AppendFrame(nil, 0x4f, []byte(`x`)), 99), errBody(codeMessage, 0)},
		"a frame without end":           {[]byte{0x49, 0xff, 0xff, 0xff, 0xff}, errBody(codeRecvMessage, 0)},
		"results that are none":         {append([]byte{4}, AppendDocument(nil, []byte(`[]`))...), append([]byte{13}, errBody(codeRecvResults, 0)...)},
		"results without streams":       {append([]byte{4}, AppendDocument(nil, []byte(`{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":1,"sender_has_retransmits":1}`))...), append([]byte{13}, errBody(codeRecvResults, 0)...)},
		"results of a stream not there": {append([]byte{4}, AppendDocument(nil, []byte(strings.Replace(emptyResults, `[]`, `[{"id":2,"bytes":1,"retransmits":0,"jitter":0,"errors":0,"packets":0}]`, 1)))...), append([]byte{13}, errBody(codeStreamID, 0)...)},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := begin(t)
			p.write(tc.say...)
			if got := p.rest(); !bytes.Equal(got, tc.want) {
				t.Errorf("got %x, want %x", got, tc.want)
			}
		})
	}
	for name, doc := range map[string]string{
		"no entries": emptyResults,
		"one entry with unknown keys and fractions": strings.Replace(emptyResults, `[]`,
			`[{"id":1,"bytes":1e3,"retransmits":18446744073709551615,"jitter":0.5,"errors":0,"packets":0,"new":{}}],"fullbore":{"streams":[]}`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			p, s := begin(t)
			s.Write(make([]byte, 1000))
			p.write(4)
			p.want(StateExchangeResults)
			p.document(doc)
			n := binary.BigEndian.Uint32(p.read(4))
			res, err := DecodeResults(p.read(int(n)))
			if err != nil || len(res.Streams) != 1 || res.Streams[0].ID != 1 || res.Ext != nil {
				t.Errorf("%+v %v", res, err)
			}
			p.want(StateDisplayResults)
			p.write(16)
			if rest := p.rest(); len(rest) > 0 {
				t.Errorf("after the end came %x", rest)
			}
		})
	}
	serves(t, ts)
}

// A stream with a wrong cookie gets one byte, and the right one is still awaited
// (spec §7.2); one more than wanted likewise.
func TestRawStreams(t *testing.T) {
	ts := startServer(t, &Server{Policy: plan.Serve{Exclusive: true}})
	p := dialRaw(t, ts)
	p.greet()
	p.document(`{"tcp":true,"parallel":2}`)
	p.want(StateCreateStreams)
	p.stream()
	q := dialRaw(t, ts)
	q.write(q.cookie[:]...)
	if got := q.rest(); !bytes.Equal(got, []byte{0xff}) {
		t.Errorf("wrong cookie: got %x", got)
	}
	p.stream()
	p.want(StateTestStart, StateTestRunning)
	s := p.stream()
	if got, _ := io.ReadAll(s); !bytes.Equal(got, []byte{0xff}) {
		t.Errorf("a third of two streams: got %x", got)
	}
	p.write(12)
	p.rest()
	serves(t, ts)
}

// TestStrangers: who is no client gets at most one byte, and disturbs nobody (field
// cases F26, F30, F31).
func TestStrangers(t *testing.T) {
	ts := startServer(t, &Server{Policy: plan.Serve{OneOff: true}, Timeouts: short()})
	random := bytes.Repeat([]byte{0x9c, 0x01, 0xfe, 0x77}, 16)
	for name, b := range map[string][]byte{
		"HTTP":            []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"long HTTP":       []byte("GET /" + strings.Repeat("a", 200) + " HTTP/1.1\r\nHost: x\r\n\r\n"),
		"TLS":             append([]byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}, random...),
		"SSH":             []byte("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3 and so on and on\r\n"),
		"random":          random,
		"iperf 2":         append([]byte{0x40, 1, 0, 0x78, 0, 0, 0, 1, 0, 0, 0xce, 0x3d, 0, 0, 0, 0}, make([]byte, 60)...),
		"iperf 2 old":     append([]byte{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0x13, 0x89, 0, 0, 0, 0}, "45678901234567890123456789012345"...),
		"nothing":         nil,
		"three bytes":     []byte("abc"),
		"cookie, nothing": []byte(strings.Repeat("a", 36) + "\x00"),
	} {
		t.Run(name, func(t *testing.T) {
			p := dialRaw(t, ts)
			p.write(b...)
			p.nc.(*net.TCPConn).CloseWrite()
			if got := p.rest(); len(got) > 1 {
				t.Errorf("got %x", got)
			}
			p = dialRaw(t, ts) // the same, holding the connection open: the header's deadline ends it
			p.write(b...)
			if got := p.rest(); len(got) > 1 {
				t.Errorf("held open: got %x", got)
			}
		})
	}
	serves(t, ts) // the one test is still there
	if err := <-ts.result; err != nil {
		t.Errorf("Serve: %v", err)
	}
	ts.result <- nil
}

// TestSlowHeaders: bytes that trickle do not extend the header's time.
func TestSlowHeaders(t *testing.T) {
	ts := startServer(t, &Server{Timeouts: short()})
	for _, first := range [][]byte{nil, []byte("x"), append([]byte(strings.Repeat("a", 36)), 0, 0, 0)} {
		p := dialRaw(t, ts)
		p.write(first...)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			io.Copy(io.Discard, p.nc)
		}()
		eventually(t, "the slow connection lives on", func() bool {
			select {
			case <-ended:
				return true
			case <-time.After(20 * time.Millisecond):
				p.nc.Write([]byte{'a'})
				return false
			}
		})
	}
}

// scriptServer accepts one control connection and lets f play it; streams are accepted
// and drained. It ends when the client is gone.
func scriptServer(t *testing.T, f func(p *rawPeer, streams func() net.Conn)) plan.Plan {
	t.Helper()
	return scriptServerOf(t, plan.TCP, f)
}

// scriptServerOf is the same with streams of either transport.
func scriptServerOf(t *testing.T, tr plan.Transport, f func(p *rawPeer, streams func() net.Conn), set ...func(*udpFlows)) plan.Plan {
	t.Helper()
	ln, err := net.Listen("tcp", freeAddr(t, netip.MustParseAddr("127.0.0.1")).String())
	if err != nil {
		t.Fatal(err)
	}
	var flows *udpFlows
	if tr == plan.UDP {
		flows = newUDPFlows(t, ln.Addr(), set...)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		ln.Close()
		<-done
	})
	go func() {
		defer close(done)
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(20 * time.Second))
		var conns []net.Conn
		defer func() {
			for _, c := range conns {
				c.Close()
			}
		}()
		f(&rawPeer{t: t, nc: nc}, func() net.Conn {
			if flows != nil {
				c := flows.accept(20 * time.Second)
				if c != nil {
					conns = append(conns, c)
				}
				return c
			}
			c, err := ln.Accept()
			if err != nil {
				return nil
			}
			conns = append(conns, c)
			c.SetDeadline(time.Now().Add(20 * time.Second))
			io.ReadFull(c, make([]byte, CookieSize))
			return c
		})
	}()
	return plan.Plan{Host: "127.0.0.1", Port: ln.Addr().(*net.TCPAddr).Port, Transport: tr, Bytes: 1 << 18, Extension: "off"}
}

// get reads n bytes; false = the client is gone.
func (p *rawPeer) get(n int) ([]byte, bool) {
	b := make([]byte, n)
	_, err := io.ReadFull(p.nc, b)
	return b, err == nil
}

func (p *rawPeer) getDocument() ([]byte, bool) {
	h, ok := p.get(4)
	if !ok {
		return nil, false
	}
	return p.get(int(binary.BigEndian.Uint32(h)))
}

// TestClientReadsErrors: every form of SERVER_ERROR that servers send (spec §11), at
// the parameters and in mid-test, and other last words.
func TestClientReadsErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		say    []byte
		number int
		errno  int
		code   string
	}{
		"whole":              {errBody(202, 93), 202, 93, "refused"},
		"without errno":      {errBody(142, 0)[:5], 142, 0, "auth"},
		"half a code":        {errBody(142, 0)[:3], 0, 0, "refused"},
		"bare":               {[]byte{0xfe}, 0, 0, "refused"},
		"twice":              {append(errBody(27, 0), errBody(27, 0)...), 27, 0, "limit"},
		"duration":           {errBody(37, 0), 37, 0, "limit"},
		"unknown code":       {errBody(9999, 0), 9999, 0, "refused"},
		"negative errno":     {errBody(101, -5), 101, 0, "refused"},
		"busy":               {[]byte{0xff}, codeAccessDenied, 0, "busy"},
		"server terminated":  {[]byte{11}, codeServerTerm, 0, "server-terminated"},
		"nothing, closed":    {nil, codeCtrlClose, 0, "refused"},
		"an unknown state":   {[]byte{99}, codeMessage, 0, "protocol"},
		"a huge frame":       {[]byte{0x47, 0x7f, 0xff, 0xff, 0xff}, codeRecvMessage, 0, "protocol"},
		"results too early":  {AppendDocument(nil, []byte(emptyResults)), codeMessage, 0, "protocol"},
		"a document of 0":    {[]byte{0, 0, 0, 0}, codeRecvMessage, 0, "protocol"},
		"IPERF_START (0x0f)": {[]byte{15}, codeMessage, 0, "protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			p := scriptServer(t, func(p *rawPeer, _ func() net.Conn) {
				p.get(CookieSize)
				p.nc.Write([]byte{9})
				p.getDocument()
				p.nc.Write(tc.say)
			})
			_, err := runClient(t, &Client{Plan: p})
			var e *result.Error
			if !errors.As(err, &e) || e.Number != tc.number || e.Errno != tc.errno || e.Code != tc.code || !e.Remote || e.Text == "" {
				t.Errorf("at the parameters: %+v", e)
			}
			if e != nil && e.Reported != (len(tc.say) > 0 && tc.say[0] == 0xfe) {
				t.Errorf("reported = %v", e.Reported)
			}
			p = scriptServer(t, func(p *rawPeer, stream func() net.Conn) {
				p.get(CookieSize)
				p.nc.Write([]byte{9})
				p.getDocument()
				p.nc.Write([]byte{10})
				stream()
				p.nc.Write([]byte{1, 2})
				p.nc.Write(tc.say)
			})
			p.Bytes, p.Duration = 0, time.Minute
			run, err := runClient(t, &Client{Plan: p})
			if !errors.As(err, &e) || e.Number != tc.number || !e.Remote {
				t.Errorf("in mid-test: %+v", e)
			}
			if run.Err == nil || !run.Finished() || run.Streams[0].Sender == nil || run.Streams[0].Receiver != nil {
				t.Errorf("in mid-test: error %v, finished %v, streams %+v", run.Err, run.Finished(), run.Streams)
			}
		})
	}
}

// TestClientNamesStrangers: what answers is named (design: iperf 2 and others).
func TestClientNamesStrangers(t *testing.T) {
	for say, want := range map[string]string{
		"SSH-2.0-OpenSSH_9.2\r\n":                  "an SSH server",
		"HTTP/1.1 400 Bad Request\r\n\r\n":         "a web server",
		"HTTP":                                     `it began with "HTTP"`,
		"\x15\x03\x01\x00\x02\x02\x16":             "a TLS server",
		"220 mail.example ESMTP\r\n":               "mail or FTP",
		"\x00\x00\x00\x02\x00\x00\x00\x1c\x00\x00": "iperf 2",
		"\x00":  "something that is not iperf3",
		"hello": `it began with "hello"`,
		"":      "said nothing",
	} {
		p := scriptServer(t, func(p *rawPeer, _ func() net.Conn) {
			p.nc.Write([]byte(say))
			io.Copy(io.Discard, p.nc)
		})
		_, err := runClient(t, &Client{Plan: p, Timeouts: short()})
		code := "not-iperf3"
		if say == "" {
			code = "silent-peer"
		}
		var e *result.Error
		if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Text, want) {
			t.Errorf("%q: %+v, want %q", say, e, want)
		}
	}
}

// TestClientConnectTimeoutCounts: a short connect timeout also bounds the wait for the
// first word (field case F27).
func TestClientConnectTimeoutCounts(t *testing.T) {
	p := scriptServer(t, func(p *rawPeer, _ func() net.Conn) { io.Copy(io.Discard, p.nc) })
	p.ConnectTimeout = 400 * time.Millisecond
	_, err := runClient(t, &Client{Plan: p})
	wantError(t, err, codeRecvMessage, "silent-peer")
	if !strings.Contains(fmt.Sprint(err), "800ms") {
		t.Errorf("not the connect timeout: %v", err)
	}
}
