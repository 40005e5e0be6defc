package iperf3

import (
	"net"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/proto/probe"
)

// Another address than the control connection's (any of 127/8 is this host's) is sent 24
// bytes, and answered once it has echoed what they hold.
func TestProbesFromElsewhere(t *testing.T) {
	ts := startServer(t, &Server{})
	p := dialRaw(t, ts)
	id, nonce := p.probeHello("udp", 5)
	p.want(StateTestStart, StateTestRunning)
	u, err := net.DialUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)}, net.UDPAddrFromAddrPort(ts.addr))
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	_ = u.SetDeadline(time.Now().Add(20 * time.Second))
	s := probe.NewSigner(nonce)
	b := make([]byte, 64)
	ask := func(seq uint32) []byte {
		t.Helper()
		probe.PutRequest(b, probe.Request{Test: id, Seq: seq}, s)
		if _, err := u.Write(b); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 2000)
		n, err := u.Read(got)
		if err != nil {
			t.Fatal(err)
		}
		return got[:n]
	}
	got := ask(1)
	token, seq, ok := probe.ParseChallenge(got, s)
	if !ok || seq != 1 || len(got) != probe.ChallengeSize {
		t.Fatalf("challenge %x", got)
	}
	proof := make([]byte, probe.HeaderSize)
	probe.PutProof(proof, id, token, s)
	if _, err := u.Write(proof); err != nil {
		t.Fatal(err)
	}
	got = ask(2)
	if a, ok := probe.ParseAnswer(got, s); !ok || a.Seq != 2 || a.Count != 1 {
		t.Errorf("answer %x", got)
	}
	if c := p.endProbes(); c == nil || *c != (probe.Counts{Received: 1, Answered: 1}) {
		t.Errorf("the results say %+v", c)
	}
}
