package iperf3

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// The tests here need a second loopback address, which only Linux has by itself.
const elsewhere = "127.0.0.9"

// TestStreamsFromElsewhere: streams of a fullbore client may leave from another address
// than its control connection, and prove it; plain ones may not (design §5 "Who may").
func TestStreamsFromElsewhere(t *testing.T) {
	for _, tr := range []plan.Transport{plan.TCP, plan.UDP} {
		for _, dir := range []plan.Direction{plan.Up, plan.Down, plan.Both} {
			t.Run(fmt.Sprintf("%s %s", tr, dir), func(t *testing.T) {
				t.Parallel()
				ts := startServer(t, &Server{Timeouts: short()})
				c := ts.client(plan.Plan{Transport: tr, Direction: dir, Streams: 3, Duration: 200 * time.Millisecond, Bitrate: 1e6, BlockSize: 1000})
				c.streamsFrom = elsewhere
				run, err := runClient(t, c)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range ts.run(0).Streams {
					if s.Remote.Host != elsewhere || s.Receiver.Bytes == 0 {
						t.Errorf("%+v", s)
					}
				}
				if tr == plan.UDP {
					wantDatagrams(t, run, true)
				}
			})
			t.Run(fmt.Sprintf("plain %s %s", tr, dir), func(t *testing.T) {
				t.Parallel()
				ts := startServer(t, &Server{Timeouts: short()})
				c := ts.client(plan.Plan{Transport: tr, Direction: dir, Duration: 200 * time.Millisecond, Extension: "off"})
				c.streamsFrom, c.Timeouts = elsewhere, short()
				if _, err := runClient(t, c); err == nil {
					t.Error("served")
				}
			})
		}
	}
}

// TestChallenge: a greeting from another address is answered by less than it sent, and
// opens a stream only with the token that went to that address.
func TestChallenge(t *testing.T) {
	ts := startServer(t, &Server{})
	p := dialRaw(t, ts)
	p.greet()
	p.document(`{"udp":true,"len":1000,"time":60,"fullbore":{"v":1,"version":"x","features":["udp","token"]}}`)
	for State(p.read(1)[0]) != StateCreateStreams {
		p.getDocument()
	}
	g := greeting{cookie: p.cookie}
	to := ts.addr.String()
	u, v := dialUDP(t, to, elsewhere), dialUDP(t, to, elsewhere)
	challenge := exchangeUDP(t, u, g.append(nil))
	mine := decodeChallenge(challenge)
	if mine == nil || len(challenge) > extendedSize {
		t.Fatalf("the challenge is %x", challenge)
	}
	if again := exchangeUDP(t, u, g.append(nil)); !bytes.Equal(again, challenge) {
		t.Errorf("another challenge the second time: %x", again)
	}
	theirs := decodeChallenge(exchangeUDP(t, v, g.append(nil)))
	if theirs == nil || *theirs == *mine {
		t.Fatal("one token for two sockets")
	}
	stolen := g
	stolen.token = mine
	v.Write(stolen.append(nil))
	stolen.token = &proof{}
	v.Write(stolen.append(nil))
	u.Write(udpGreeting)
	g.token = mine
	if got := exchangeUDP(t, u, g.append(nil)); string(got) != "6789" {
		t.Fatalf("the proof was answered %x", got)
	}
	silentUDP(t, v)
	p.want(FrameReady)
	p.getDocument()
	p.want(StateTestStart, StateTestRunning)
	p.write(byte(StateClientTerminate))
}

// TestForeignUDP: other addresses never open a plain stream and get no answer, and an
// address that is not allowed is nobody.
func TestForeignUDP(t *testing.T) {
	ts := startServer(t, &Server{Policy: plan.Serve{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}})
	p := plainUDP(t, ts, "")
	to := ts.addr.String()
	var strangers []*net.UDPConn
	for _, b := range [][]byte{udpGreeting, {}, make([]byte, 1000), greeting{cookie: p.cookie}.append(nil)} {
		u := dialUDP(t, to, elsewhere)
		u.Write(b)
		strangers = append(strangers, u)
	}
	s := p.stream()
	p.want(StateTestStart, StateTestRunning)
	for _, u := range strangers {
		silentUDP(t, u)
	}
	// What is sent to the stream's own address from elsewhere is nobody's either.
	u := dialUDP(t, to, elsewhere)
	for n := range uint64(20) {
		u.Write(payload(1000, false, n+1))
	}
	p.put(ts, s.(*net.UDPConn), 2, 1, 2)
	if got := p.end(sent(2)).Streams[0]; got.Packets != 2 || got.Errors != 0 || got.Bytes != 2000 {
		t.Errorf("%+v", got)
	}
}

// TestForeignTCP: without the proof a stream from another address comes to nothing.
func TestForeignTCP(t *testing.T) {
	ts := startServer(t, &Server{Timeouts: short()})
	p := dialRaw(t, ts)
	p.greet()
	p.document(`{"tcp":true,"time":60,"fullbore":{"v":1,"version":"x","features":["index","token"]}}`)
	for State(p.read(1)[0]) != StateCreateStreams {
		p.getDocument()
	}
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(elsewhere)}}
	nc, err := d.DialContext(t.Context(), "tcp", ts.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(20 * time.Second))
	nc.Write(append(p.cookie[:], 0, 0, 0, 0))
	p.want(FrameReady)
	if doc, _ := p.getDocument(); string(doc) != `{"prove":[0]}` {
		t.Errorf("frame %s", doc)
	}
	var challenge [challengeSize]byte
	if _, err := io.ReadFull(nc, challenge[:]); err != nil || decodeChallenge(challenge[:]) == nil {
		t.Fatalf("%x %v", challenge, err)
	}
	nc.Write(make([]byte, tokenSize))
	if b, _ := io.ReadAll(nc); len(b) > 0 {
		t.Errorf("after a wrong token came %x", b)
	}
	own, err := net.Dial("tcp", ts.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	own.Write(append(p.cookie[:], 0, 0, 0, 0))
	p.want(FrameReady)
	p.getDocument()
	p.want(StateTestStart, StateTestRunning)
}
