package iperf3

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// plainUDP takes a raw client to CREATE_STREAMS of a plain UDP test.
func plainUDP(t testing.TB, ts *testServer, more string) *rawPeer {
	t.Helper()
	p := dialRaw(t, ts)
	p.udp = true
	p.greet()
	p.document(`{"udp":true,"len":1000,"time":60` + more + `}`)
	p.want(StateCreateStreams)
	return p
}

// end says TEST_END with the given entries and returns the server's results.
func (p *rawPeer) end(entries string) Results {
	p.t.Helper()
	p.write(byte(StateTestEnd))
	p.want(StateExchangeResults)
	p.document(strings.Replace(emptyResults, "[]", entries, 1))
	n := binary.BigEndian.Uint32(p.read(4))
	res, err := DecodeResults(p.read(int(n)))
	if err != nil {
		p.t.Fatal(err)
	}
	p.want(StateDisplayResults)
	p.write(byte(StateDone))
	return res
}

// sent is a plain client's entry that claims n datagrams.
func sent(n int64) string {
	return fmt.Sprintf(`[{"id":1,"bytes":%d,"retransmits":-1,"jitter":0,"errors":0,"omitted_errors":0,"packets":%d,"omitted_packets":0,"start_time":0,"end_time":1}]`, n*1000, n)
}

// put sends datagrams with these numbers and returns when the server has read them: as
// many as count of it.
func (p *rawPeer) put(ts *testServer, u *net.UDPConn, highest int64, numbers ...uint64) {
	p.t.Helper()
	for _, n := range numbers {
		if _, err := u.Write(payload(1000, false, n)); err != nil {
			p.t.Fatal(err)
		}
	}
	eventually(p.t, "the datagrams were not counted", func() bool { return ts.counted("udp0") >= highest })
}

// TestUDPGreetings: any first datagram of the control connection's address opens a plain
// stream (spec §7.3), except what a plain client never begins with.
func TestUDPGreetings(t *testing.T) {
	for name, b := range map[string][]byte{
		"0 bytes": {}, "1 byte": {7}, "4 bytes": []byte("9876"), "old": {0x15, 0xcd, 0x5b, 0x07},
		"24 bytes": make([]byte, 24), "1000 bytes": make([]byte, 1000), "45 other bytes": bytes.Repeat([]byte{'x'}, 45),
	} {
		t.Run(name, func(t *testing.T) {
			ts := startServer(t, &Server{})
			p := plainUDP(t, ts, "")
			u := p.greetUDP(b)
			if u.RemoteAddr().String() != ts.addr.String() {
				t.Errorf("answered from %s", u.RemoteAddr())
			}
			p.want(StateTestStart, StateTestRunning)
			p.put(ts, u, 3, 1, 2, 3)
			if res := p.end(sent(3)); res.Streams[0].Packets != 3 || res.Streams[0].Errors != 0 || res.Streams[0].Bytes != 3000 {
				t.Errorf("%+v", res.Streams[0])
			}
		})
	}
	ts := startServer(t, &Server{})
	p := plainUDP(t, ts, "")
	var strangers []*net.UDPConn
	for _, b := range [][]byte{
		greeting{cookie: NewCookie(), index: 0}.append(nil), // nobody's
		greeting{cookie: p.cookie, index: 0}.append(nil),    // of a client without the extension
		greeting{cookie: p.cookie, index: 0, token: &proof{}}.append(nil),
		append([]byte("FBP1"), make([]byte, 60)...), append([]byte("FBR1"), make([]byte, 60)...),
	} {
		u := p.dialUDP("")
		u.Write(b)
		strangers = append(strangers, u)
	}
	p.stream() // what came before it has been seen
	p.want(StateTestStart, StateTestRunning)
	for _, u := range strangers {
		silentUDP(t, u)
	}
}

// TestUDPArithmetic: what a plain client is told, with the sender's count taken into
// account (spec §8.1, field cases F02, F03).
func TestUDPArithmetic(t *testing.T) {
	wrap := []uint64{1}
	for n := uint64(0xFFFFFFCE); n <= 0xFFFFFFFF; n++ {
		wrap = append(wrap, n)
	}
	for n := range uint64(50) {
		wrap = append(wrap, n)
	}
	upTo := func(n uint64) (out []uint64) {
		for i := uint64(1); i <= n; i++ {
			out = append(out, i)
		}
		return out
	}
	for name, tc := range map[string]struct {
		numbers  []uint64
		highest  int64
		claim    int64
		packets  int64
		errors   int64
		received int64
	}{
		"a gap":                       {[]uint64{1, 2, 5, 6}, 6, 6, 6, 2, 4},
		"reordered":                   {[]uint64{1, 3, 2, 4}, 4, 4, 4, 0, 4},
		"twice":                       {[]uint64{1, 2, 2, 3}, 3, 3, 3, 0, 3},
		"the first ones are missing":  {[]uint64{3, 4}, 4, 4, 4, 2, 2},
		"an old one":                  {[]uint64{1, 2, 1}, 2, 2, 2, 0, 2},
		"the tail is missing":         {upTo(90), 90, 100, 100, 10, 90},
		"a claim of too few":          {[]uint64{1, 2, 5, 6}, 6, 3, 6, 2, 4},
		"no claim":                    {[]uint64{1, 2, 5, 6}, 6, 0, 6, 2, 4},
		"more duplicates than losses": {[]uint64{1, 3, 3, 3, 3}, 3, 3, 3, 1, 2},
		"past 2^32":                   {wrap, 1<<32 + 49, 1<<32 + 49, 1<<32 + 49, 1<<32 + 49 - 101, 101},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ts := startServer(t, &Server{})
			p := plainUDP(t, ts, "")
			u := p.greetUDP(udpGreeting)
			p.want(StateTestStart, StateTestRunning)
			p.put(ts, u, tc.highest, tc.numbers...)
			res := p.end(sent(tc.claim))
			if s := res.Streams[0]; s.Packets != tc.packets || s.Errors != tc.errors || s.Jitter < 0 || s.Jitter > 60 {
				t.Errorf("the client is told %+v", s)
			}
			s := ts.run(0).Streams[0]
			if rec := s.UDP.Received; rec == nil || rec.Packets != tc.received || rec.Foreign != 0 {
				t.Errorf("the account is %+v", rec)
			}
			if l := s.UDP.Loss; tc.claim >= tc.highest && (l == nil || l.Lost != tc.errors || l.Sent != tc.claim) {
				t.Errorf("loss %+v", l)
			}
		})
	}
}

// TestUDPNothingComes: a client whose datagrams all vanish is told so.
func TestUDPNothingComes(t *testing.T) {
	ts := startServer(t, &Server{})
	p := plainUDP(t, ts, "")
	p.stream()
	p.want(StateTestStart, StateTestRunning)
	if s := p.end(sent(50)).Streams[0]; s.Packets != 50 || s.Errors != 50 || s.Bytes != 0 {
		t.Errorf("%+v", s)
	}
	if l := ts.run(0).Streams[0].UDP.Loss; l == nil || l.Ratio != 1 {
		t.Errorf("%+v", l)
	}
}

// TestUDPStrangers: datagrams of others get no answer and change no number of a running
// test, nor do they take a stream of one that is set up.
func TestUDPStrangers(t *testing.T) {
	ts := startServer(t, &Server{})
	running := plainUDP(t, ts, "")
	u := running.greetUDP(udpGreeting)
	running.want(StateTestStart, StateTestRunning)
	running.put(ts, u, 3, 1, 2, 3)

	rnd := rand.New(rand.NewPCG(1, 2))
	var words [][]byte
	for _, n := range []int{0, 1, 4, 16, 24, 44, 45, 46, 61, 64, 1000, 1400} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		words = append(words, b)
	}
	words = append(words, udpGreeting, udpAnswer, payload(1000, false, 4),
		greeting{cookie: running.cookie, index: 0}.append(nil), // replayed from another socket
		append([]byte("FBP1"), make([]byte, 60)...), append([]byte("FBR1"), make([]byte, 60)...), append([]byte(challengeMagic), make([]byte, 16)...),
	)
	var sockets []*net.UDPConn
	before := ts.datagrams.Load()
	for _, b := range words {
		s := running.dialUDP("")
		for range 3 {
			s.Write(b)
		}
		sockets = append(sockets, s)
	}
	// While a plain test of this address waits for streams, any datagram would be one.
	eventually(t, "the strangers' datagrams were not read", func() bool {
		return ts.datagrams.Load() >= before+int64(3*len(words))
	})
	// A second test of the same address: it takes one greeting, and nothing of the strangers.
	second := plainUDP(t, ts, "")
	v := second.greetUDP(udpGreeting)
	second.want(StateTestStart, StateTestRunning)
	for _, s := range sockets {
		silentUDP(t, s)
	}
	if v.LocalAddr().String() == u.LocalAddr().String() {
		t.Fatal("one socket for both")
	}
	running.put(ts, u, 5, 4, 5)
	if s := running.end(sent(5)).Streams[0]; s.Packets != 5 || s.Errors != 0 || s.Bytes != 5000 {
		t.Errorf("%+v", s)
	}
	if rec := ts.run(0).Streams[0].UDP.Received; rec.Foreign != 0 || rec.Duplicates != 0 {
		t.Errorf("%+v", rec)
	}
	second.end(sent(0))
}

// TestUDPLateDatagrams: what a client of an ended test still sends opens no stream of the
// next one; a client that binds its port again greets in a release's words.
func TestUDPLateDatagrams(t *testing.T) {
	for _, oneSocket := range []bool{false, true} {
		ts := startServer(t, &Server{OneSocket: oneSocket})
		p := plainUDP(t, ts, "")
		u := p.greetUDP(udpGreeting)
		p.want(StateTestStart, StateTestRunning)
		p.put(ts, u, 1, 1)
		p.end(sent(1))
		p.rest()

		q := plainUDP(t, ts, `,"parallel":2`)
		u.Write(payload(1000, false, 2))
		u.Write(make([]byte, 24))
		first := q.greetUDP(udpGreeting) // what came before it has been seen
		silentUDP(t, u)
		if got := exchangeUDP(t, u, udpGreeting); string(got) != "6789" {
			t.Fatalf("a port that is bound again: %x", got)
		}
		q.want(StateTestStart, StateTestRunning)
		q.put(ts, first, 2, 1, 2)
		u.Write(payload(1000, false, 1))
		eventually(t, "the datagram was not counted", func() bool { return ts.counted("udp1") == 1 })
		entries := sent(2)
		res := q.end(strings.TrimSuffix(entries, "]") + "," + strings.Replace(sent(1), `"id":1`, `"id":3`, 1)[1:])
		if len(res.Streams) != 2 || res.Streams[0].Packets != 2 || res.Streams[1].Packets != 1 || res.Streams[1].Errors != 0 {
			t.Errorf("%+v", res.Streams)
		}
	}
}

// TestUDPTurns: a second plain set-up from the same address waits for the first; when that
// takes too long it is told busy. Others need not wait.
func TestUDPTurns(t *testing.T) {
	to := short()
	to.Turn = 300 * time.Millisecond
	ts := startServer(t, &Server{Timeouts: to})
	p := plainUDP(t, ts, "")
	q := dialRaw(t, ts)
	q.greet()
	q.document(`{"udp":true,"len":1000,"time":60}`)
	if got := q.rest(); !bytes.Equal(got, []byte{0xff}) {
		t.Errorf("who waited too long got %x", got)
	}
	r := dialRaw(t, ts)
	r.udp = true
	r.greet()
	r.document(`{"udp":true,"len":1000,"time":60}`)
	// A fullbore client and a TCP client have their test meanwhile.
	run, err := runClient(t, ts.client(plan.Plan{Transport: plan.UDP, Blocks: 3, BlockSize: 1000}))
	if err != nil || *run.Streams[0].Sender.Packets != 3 {
		t.Errorf("extended: %v", err)
	}
	if t.Failed() {
		return
	}
	p.stream()
	p.want(StateTestStart, StateTestRunning)
	// Whether r was in time or not, the next one is.
	if got := r.read(1); State(got[0]) != StateCreateStreams && got[0] != 0xff {
		t.Errorf("who came third got %x", got)
	} else if State(got[0]) == StateCreateStreams {
		r.stream()
		r.want(StateTestStart, StateTestRunning)
		r.end(sent(0))
	}
	p.end(sent(0))
	s := plainUDP(t, ts, "")
	s.stream()
	s.want(StateTestStart, StateTestRunning)
	s.end(sent(0))
}

// TestUDPNotHere: a server without a UDP socket refuses, and so does one that has a file.
func TestUDPNotHere(t *testing.T) {
	ts := startServer(t, &Server{Policy: plan.Serve{File: "somewhere"}})
	p := dialRaw(t, ts)
	p.greet()
	p.document(`{"udp":true,"len":1000}`)
	if got := p.rest(); !bytes.Equal(got, errBody(codeUDPFile, 0)) {
		t.Errorf("a server with a file says %x", got)
	}
}

// TestUDPSteer: the client's new rate reaches what the server sends.
func TestUDPSteer(t *testing.T) {
	ts := startServer(t, &Server{})
	c := ts.client(plan.Plan{Transport: plan.UDP, Direction: plan.Down, BlockSize: 100, Bitrate: 8000, Blocks: 300})
	rec := newRecorder()
	ctx, _ := withCause(t)
	over := make(chan struct{})
	steered := make(chan struct{})
	go func() {
		defer close(steered)
		for tick := time.NewTicker(20 * time.Millisecond); ; { // until the test has begun, nobody hears it
			select {
			case <-tick.C:
				c.Steer(8e6)
			case <-over:
				tick.Stop()
				return
			}
		}
	}()
	err := c.Run(ctx, rec) // 300 datagrams at 10 a second would take 30 s
	close(over)
	<-steered
	if err != nil {
		t.Fatal(err)
	}
	if s := rec.run().Streams[0]; s.Sender.Seconds() > 20 {
		t.Errorf("it took %v s", s.Sender.Seconds())
	}
}

// TestUDPExtendedRepeats: a server answers a greeting as often as it comes, and no index twice.
func TestUDPExtendedRepeats(t *testing.T) {
	for _, oneSocket := range []bool{false, true} {
		ts := startServer(t, &Server{OneSocket: oneSocket})
		p := dialRaw(t, ts)
		p.greet()
		p.document(`{"udp":true,"len":1000,"time":60,"parallel":2,"fullbore":{"v":1,"version":"x","features":["udp"]}}`)
		for State(p.read(1)[0]) != StateCreateStreams { // the hello before it
			p.getDocument()
		}
		g := greeting{cookie: p.cookie, index: 1}
		u, v := p.dialUDP(""), p.dialUDP("")
		for range 5 {
			if got := exchangeUDP(t, u, g.append(nil)); string(got) != "6789" {
				t.Fatalf("got %x", got)
			}
		}
		v.Write(g.append(nil)) // the index is taken
		v.Write(greeting{cookie: p.cookie, index: 2}.append(nil))
		v.Write(udpGreeting)
		w := p.dialUDP("")
		if got := exchangeUDP(t, w, greeting{cookie: p.cookie, index: 0}.append(nil)); string(got) != "6789" {
			t.Fatalf("got %x", got)
		}
		silentUDP(t, v)
		p.want(StateTestStart, StateTestRunning)
		p.write(byte(StateClientTerminate))
		p.rest()
	}
}
