package iperf3

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/datagram"
	"github.com/fullbore-net/fullbore/result"
)

// udpRecordings are the recordings whose test is UDP.
func udpRecordings(t testing.TB) []recording {
	var out []recording
	for _, r := range recordings(t) {
		if strings.Contains(r.Meta.ClientArgs, " -u") {
			out = append(out, r)
		}
	}
	if len(out) < 17 {
		t.Fatalf("%d UDP recordings", len(out))
	}
	return out
}

// datagrams is how many a flow carried in a direction, without greeting and answer.
func (r recording) datagrams(conn, dir string) int64 {
	for _, e := range r.events {
		if e.Ev == "summary" && e.Conn == conn {
			return max(0, e.Datagrams[dir]-1)
		}
	}
	return 0
}

// first is the first datagram of a flow in a direction: greeting or answer.
func (r recording) first(t testing.TB, conn, dir string) []byte {
	for _, e := range r.events {
		if e.Ev == "dgram" && e.Conn == conn && e.Dir == dir && e.N == 1 {
			return e.bytes()
		}
	}
	t.Fatalf("%s: %s has no first datagram %s", r.name, conn, dir)
	return nil
}

// payload makes the n-th datagram of a plain test.
func payload(size int, wide bool, n uint64) []byte {
	b := make([]byte, size)
	datagram.PutHeader(b, wide, n, int64(n)*int64(time.Millisecond))
	return b
}

// udpServer plays the UDP side of a recorded server: it answers greetings, counts what
// comes, and sends on the flows that the recorded one sent on.
type udpServer struct {
	t    *testing.T
	r    recording
	u    *net.UDPConn
	size int
	wide bool
	stop chan struct{}
	wg   sync.WaitGroup

	mu    sync.Mutex
	flows map[netip.AddrPort]string
	order []netip.AddrPort
	sent  map[string]int64
	got   map[string]int64
	fault string
}

func newUDPServer(t *testing.T, r recording, addr net.Addr) *udpServer {
	t.Helper()
	u, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr.(*net.TCPAddr).AddrPort()))
	if err != nil {
		t.Fatal(err)
	}
	p := r.params(t)
	s := &udpServer{
		t: t, r: r, u: u, size: int(p.Len), wide: p.Counters64, stop: make(chan struct{}),
		flows: map[netip.AddrPort]string{}, sent: map[string]int64{}, got: map[string]int64{},
	}
	s.wg.Go(s.read)
	return s
}

func (s *udpServer) read() {
	buf := make([]byte, 64<<10)
	for {
		n, from, err := s.u.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		s.mu.Lock()
		name, known := s.flows[from]
		if !known {
			name = fmt.Sprintf("udp%d", len(s.order))
			s.flows[from] = name
			s.order = append(s.order, from)
			if string(buf[:n]) != "9876" {
				s.fault = fmt.Sprintf("greeting %x", buf[:n])
			}
			_, _ = s.u.WriteToUDPAddrPort(s.r.first(s.t, name, "S>C"), from)
		} else if n == s.size {
			s.got[name]++
		}
		s.mu.Unlock()
	}
}

// wait returns when n flows were opened.
func (s *udpServer) wait(n int) error {
	deadline := time.Now().Add(20 * time.Second)
	for {
		s.mu.Lock()
		have := len(s.order)
		s.mu.Unlock()
		if have >= n {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d flows of %d", have, n)
		}
		time.Sleep(time.Millisecond)
	}
}

// flow sends what the recorded server sent, a few at a time so that no buffer overflows,
// until it is told to stop.
func (s *udpServer) send() {
	s.mu.Lock()
	order := append([]netip.AddrPort{}, s.order...)
	s.mu.Unlock()
	s.wg.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for n := uint64(1); ; n++ {
			select {
			case <-tick.C:
			case <-s.stop:
				return
			}
			for i, to := range order {
				name := fmt.Sprintf("udp%d", i)
				if int64(n) > s.r.datagrams(name, "S>C") {
					continue
				}
				if _, err := s.u.WriteToUDPAddrPort(payload(s.size, s.wide, n), to); err == nil {
					s.mu.Lock()
					s.sent[name]++
					s.mu.Unlock()
				}
			}
		}
	})
}

func (s *udpServer) close() {
	close(s.stop)
	s.u.Close()
	s.wg.Wait()
}

// TestClientAgainstRecordedUDPServers plays every recorded UDP server to our client.
func TestClientAgainstRecordedUDPServers(t *testing.T) {
	for _, r := range udpRecordings(t) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			p := r.params(t).Plan()
			p.Host, p.Affinity, p.Extension = "127.0.0.1", nil, "off"
			p.Duration = 200 * time.Millisecond
			if p.Omit > 0 {
				p.Omit = 50 * time.Millisecond
			}
			srv := newScriptedServer(t, r)
			srv.udp = newUDPServer(t, r, srv.ln.Addr())
			defer srv.udp.close()
			p.Port = srv.ln.Addr().(*net.TCPAddr).Port
			played := make(chan error, 1)
			go func() { played <- srv.play() }()
			run, err := runClient(t, &Client{Plan: p, Plain: true})
			if serr := <-played; err != nil || serr != nil {
				t.Fatalf("client: %v; script: %v", err, serr)
			}
			told := *r.results(t, "S>C")
			compareRemote(t, run, told)
			srv.udp.mu.Lock()
			defer srv.udp.mu.Unlock()
			if srv.udp.fault != "" {
				t.Error(srv.udp.fault)
			}
			for i, s := range run.Streams {
				name := fmt.Sprintf("udp%d", i)
				w := told.Streams[i]
				if s.UDP == nil {
					t.Fatalf("stream %d has no UDP part", s.ID)
				}
				if s.Direction == result.Down {
					if *s.Sender.Packets != w.Packets {
						t.Errorf("stream %d: %d packets sent, told %d", s.ID, *s.Sender.Packets, w.Packets)
					}
					if rec := s.UDP.Received; rec == nil || rec.Packets < 1 || rec.Packets > srv.udp.sent[name] {
						t.Errorf("stream %d: received %+v of %d", s.ID, rec, srv.udp.sent[name])
					} else if l := s.UDP.Loss; l == nil || l.Lost+rec.Packets != l.Sent {
						t.Errorf("stream %d: loss %+v, received %d", s.ID, l, rec.Packets)
					}
					continue
				}
				if s.UDP.Sent == nil || *s.Sender.Packets < 1 || srv.udp.got[name] != *s.Sender.Packets {
					t.Errorf("stream %d: %d sent, %d arrived", s.ID, *s.Sender.Packets, srv.udp.got[name])
				}
				if *s.Receiver.Packets != w.Packets || *s.Receiver.Lost != w.Errors || *s.Receiver.Jitter != w.Jitter {
					t.Errorf("stream %d: receiver %+v, told %+v", s.ID, s.Receiver, w)
				}
			}
		})
	}
}

// TestServerAgainstRecordedUDPClients plays every recorded UDP client to our server, with
// the datagrams that it sent.
func TestServerAgainstRecordedUDPClients(t *testing.T) {
	for _, r := range udpRecordings(t) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			ts := startServer(t, &Server{})
			c := &scriptedClient{t: t, r: r, ts: ts, udp: map[string]*net.UDPConn{}}
			c.play()
			run := ts.run(0)
			if run.Err != nil {
				t.Fatal(run.Err)
			}
			var states []State
			for _, m := range c.got {
				states = append(states, m.State)
			}
			want := fmt.Sprint([]State{StateParamExchange, StateCreateStreams, StateTestStart, StateTestRunning, StateExchangeResults, 0, StateDisplayResults})
			if got := fmt.Sprint(states); got != want {
				t.Fatalf("the server sent %s, want %s", got, want)
			}
			res, err := DecodeResults(c.got[5].Doc)
			if err != nil {
				t.Fatal(err)
			}
			theirs, recorded := r.results(t, "C>S"), r.results(t, "S>C")
			if res.HasRetransmit != recorded.HasRetransmit {
				t.Errorf("sender_has_retransmits %d, recorded %d", res.HasRetransmit, recorded.HasRetransmit)
			}
			sends := slices.ContainsFunc(run.Streams, func(s result.Stream) bool { return s.Direction == result.Down })
			for i, s := range run.Streams {
				name := fmt.Sprintf("udp%d", i)
				got, rec := res.Streams[i], theirs.Streams[i]
				if s.Direction == result.Down {
					if got.Jitter != rec.Jitter || got.Errors != rec.Errors {
						t.Errorf("stream %d: %+v does not echo %+v", s.ID, got, rec)
					}
					if got.Packets < 1 || s.UDP == nil || s.UDP.Sent == nil || s.UDP.Sent.Packets != got.Packets-got.OmittedPackets {
						t.Errorf("stream %d: told %+v, sent %+v", s.ID, got, s.UDP)
					}
					continue
				}
				n := r.datagrams(name, "C>S")
				if got.Packets != n || got.Errors != 0 || rec.Packets != n {
					t.Errorf("stream %d: %d datagrams were sent, the server tells %+v", s.ID, n, got)
				}
				// Every datagram counts for loss; bytes are of the measured time alone. A server
				// that sends as well starts when the client has been told, so that some may
				// be there before it.
				var early, late int64
				if s.UDP != nil && s.UDP.Received != nil {
					early, late = s.UDP.Received.Early, s.UDP.Received.Tail
				}
				if early != 0 && !sends {
					t.Errorf("stream %d: %d datagrams came before the start of a server that only receives", s.ID, early)
				}
				if r.params(t).Omit == 0 && got.Bytes != (n-early-late)*r.params(t).Len {
					t.Errorf("stream %d: %d bytes of %d datagrams, %d of them early, %d late", s.ID, got.Bytes, n, early, late)
				}
				if l := s.UDP.Loss; l == nil || l.Lost != 0 || l.Sent != n-got.OmittedPackets {
					t.Errorf("stream %d: loss %+v", s.ID, l)
				}
			}
		})
	}
}

// greetUDP opens a recorded flow.
func (c *scriptedClient) greetUDP(name string) {
	c.t.Helper()
	u, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(c.ts.addr))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { u.Close() })
	c.udp[name] = u
	if _, err := u.Write(c.r.first(c.t, name, "C>S")); err != nil {
		c.t.Fatal(err)
	}
	b := make([]byte, 100)
	u.SetReadDeadline(time.Now().Add(20 * time.Second))
	n, err := u.Read(b)
	if err != nil || string(b[:n]) != "6789" {
		c.t.Fatalf("%s was answered %x (%v)", name, b[:n], err)
	}
}

// pushUDP sends what the recorded client had sent by the test's end, in step with what
// the server has read, so that no buffer overflows.
func (c *scriptedClient) pushUDP() {
	p := c.r.params(c.t)
	for name, u := range c.udp {
		if c.r.datagrams(name, "S>C") > 0 { // the server is under way
			if _, err := u.Read(make([]byte, 64<<10)); err != nil {
				c.t.Errorf("%s: no data: %v", name, err)
			}
		}
		n := c.r.datagrams(name, "C>S")
		for i := int64(1); i <= n; i++ {
			if _, err := u.Write(payload(int(p.Len), p.Counters64, uint64(i))); err != nil {
				c.t.Errorf("%s: %v", name, err)
				return
			}
			if i%32 == 0 || i == n {
				eventually(c.t, "the datagrams were not read", func() bool { return c.ts.counted(name) >= i })
			}
		}
	}
}

// counted is how many datagrams the running test of ts has counted on its i-th stream.
func (ts *testServer) counted(name string) int64 {
	var i int
	fmt.Sscanf(name, "udp%d", &i)
	ts.Server.mu.Lock()
	defer ts.Server.mu.Unlock()
	for t := range ts.running {
		eng := t.steerable.Load()
		if eng == nil {
			return 0
		}
		if f := eng.Snapshot().Flows; i < len(f) && f[i].Total.Packets != nil {
			return *f[i].Total.Packets
		}
	}
	return 0
}

func FuzzGreeting(f *testing.F) {
	g := greeting{cookie: NewCookie(), index: 7}
	f.Add(g.append(nil))
	g.token = &proof{1, 2, 3}
	f.Add(g.append(nil))
	f.Add([]byte("9876"))
	f.Add(binary.BigEndian.AppendUint32(nil, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, ok := decodeGreeting(b)
		if ok && string(g.append(nil)) != string(b) {
			t.Errorf("%x comes back as %x", b, g.append(nil))
		}
		if ok && (isGreeting(b) || isAnswer(b)) {
			t.Errorf("%x is two things", b)
		}
		if c := decodeChallenge(b); c != nil && string(c.challenge()) != string(b) {
			t.Errorf("%x comes back as %x", b, c.challenge())
		}
	})
}
