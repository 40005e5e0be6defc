package iperf3

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/datagram"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// wantDatagrams checks what must hold of every UDP stream, whatever was lost.
func wantDatagrams(t *testing.T, run *result.Run, fullbore bool) {
	t.Helper()
	for _, s := range run.Streams {
		if s.Sender == nil || s.Receiver == nil || s.Sender.Packets == nil || s.Receiver.Packets == nil {
			t.Fatalf("stream %d: %+v → %+v", s.ID, s.Sender, s.Receiver)
		}
		if s.UDP == nil || s.UDP.Loss == nil {
			t.Fatalf("stream %d: no account: %+v", s.ID, s.UDP)
		}
		l, rec := s.UDP.Loss, s.UDP.Received
		if *s.Sender.Packets < 1 || l.Sent != *s.Sender.Packets-value(s.Receiver.OmittedPackets) || l.Lost < 0 || l.Ratio < 0 || l.Ratio > 1 {
			t.Errorf("stream %d: loss %+v of %d", s.ID, l, *s.Sender.Packets)
		}
		if rec != nil {
			if rec.Packets+l.Lost != l.Sent {
				t.Errorf("stream %d: %d received + %d lost of %d", s.ID, rec.Packets, l.Lost, l.Sent)
			}
			// A loaded machine may lose at the socket; nothing else loses here.
			if l.Lost > 0 && (l.Socket == nil || *l.Socket == 0) {
				t.Errorf("stream %d: %d of %d lost: %+v", s.ID, l.Lost, l.Sent, l)
			}
			// What is foreign are answers to greetings that a busy machine made the client repeat.
			if rec.Duplicates != 0 || rec.Reordered != 0 {
				t.Errorf("stream %d: %+v", s.ID, rec)
			}
			if got := *s.Receiver.Packets - value(s.Receiver.OmittedPackets); got != l.Sent {
				t.Errorf("stream %d: the receiver's total says %d of %d", s.ID, got, l.Sent)
			}
			if got := *s.Receiver.Lost - value(s.Receiver.OmittedLost); got != l.Lost {
				t.Errorf("stream %d: the receiver's total says %d lost, the account %d", s.ID, got, l.Lost)
			}
		}
		if fullbore && (s.UDP.Sent == nil || rec == nil) {
			t.Errorf("stream %d: half an account: %+v", s.ID, s.UDP)
		}
	}
}

// TestUDPPairs: our two ends, plain and extended, with sockets of their own and with one.
func TestUDPPairs(t *testing.T) {
	for _, oneSocket := range []bool{false, true} {
		for _, ext := range []string{"", "off"} {
			for _, dir := range []plan.Direction{plan.Up, plan.Down, plan.Both} {
				for _, streams := range []int{1, 8} {
					t.Run(fmt.Sprintf("one socket %v ext %q %s P%d", oneSocket, ext, dir, streams), func(t *testing.T) {
						t.Parallel()
						ts := startServer(t, &Server{OneSocket: oneSocket})
						run, err := runClient(t, ts.client(plan.Plan{
							Transport: plan.UDP, Direction: dir, Streams: streams, BlockSize: 1000, Bitrate: 2e6, Extension: ext,
							Blocks: 60 * int64(streams), DontFragment: ext == "",
						}))
						if err != nil {
							t.Fatal(err)
						}
						want := streams
						if dir == plan.Both {
							want *= 2
						}
						if len(run.Streams) != want {
							t.Fatalf("%d streams", len(run.Streams))
						}
						wantDatagrams(t, run, ext == "")
						srv := ts.run(0)
						if srv.Err != nil {
							t.Fatal(srv.Err)
						}
						wantDatagrams(t, srv, ext == "")
						for i, s := range run.Streams {
							o := srv.Streams[i]
							if o.ID != s.ID || o.Remote != s.Local || *o.Sender.Packets != *s.Sender.Packets {
								t.Errorf("stream %d: the ends disagree: %+v, %+v", s.ID, s.Sender, o.Sender)
							}
							if ext == "" && (o.UDP.Loss.Lost != s.UDP.Loss.Lost || o.UDP.Received.Packets != s.UDP.Received.Packets) {
								t.Errorf("stream %d: the ends disagree: %+v, %+v", s.ID, s.UDP.Loss, o.UDP.Loss)
							}
						}
						if oneSocket && ext == "" && !hasNotice(srv, "option-refused") {
							t.Error("nothing is said about the option that one socket cannot have")
						}
					})
				}
			}
		}
	}
}

// TestUDPCounts: -k and -n mean what they say (field case F19), with every size of header.
func TestUDPCounts(t *testing.T) {
	ts := startServer(t, &Server{})
	for _, ext := range []string{"", "off"} {
		for _, size := range []int{16, 31, 32, 1400} {
			run, err := runClient(t, ts.client(plan.Plan{Transport: plan.UDP, Blocks: 10, BlockSize: size, Bitrate: 10e6, Extension: ext}))
			if err != nil {
				t.Fatal(err)
			}
			wantDatagrams(t, run, ext == "")
			if s := run.Streams[0]; *s.Sender.Packets != 10 || s.Sender.Bytes != int64(10*size) || s.UDP.Loss.Lost == 0 && s.Receiver.Bytes != s.Sender.Bytes {
				t.Errorf("ext %q size %d: %+v → %+v", ext, size, s.Sender, s.Receiver)
			}
		}
		run, err := runClient(t, ts.client(plan.Plan{
			Transport: plan.UDP, Direction: plan.Down, Streams: 5, Bytes: 500_000, BlockSize: 1000, Bitrate: 20e6, Extension: ext,
		}))
		if err != nil {
			t.Fatal(err)
		}
		wantDatagrams(t, run, ext == "")
		if sum := run.Sum(result.Down); sum.Receiver.Bytes < 500_000 && sum.UDP.Loss.Lost == 0 {
			t.Errorf("ext %q: received %d", ext, sum.Receiver.Bytes)
		}
	}
}

// TestUDPOmit: what the omit period lost does not spoil the measured part (field case F01).
func TestUDPOmit(t *testing.T) {
	for _, dir := range []plan.Direction{plan.Up, plan.Down} {
		for _, ext := range []string{"", "off"} {
			t.Run(string(dir)+ext, func(t *testing.T) {
				t.Parallel()
				ts := startServer(t, &Server{})
				p := plan.Plan{
					Transport: plan.UDP, Direction: dir, BlockSize: 500, Bitrate: 2e6, Extension: ext,
					Duration: 300 * time.Millisecond, Omit: 300 * time.Millisecond,
				}
				if ext == "off" {
					p.Omit = time.Second
				}
				run, err := runClient(t, ts.client(p))
				if err != nil {
					t.Fatal(err)
				}
				wantDatagrams(t, run, ext == "")
				s := run.Streams[0]
				if value(s.Receiver.OmittedPackets) < 1 || value(s.Sender.OmittedPackets) < 1 || *s.Receiver.Packets <= *s.Receiver.OmittedPackets {
					t.Errorf("%+v → %+v", s.Sender, s.Receiver)
				}
			})
		}
	}
}

// TestUDPNothingArrives: the sender's count tells (field case F02): 100 % is 100 %.
func TestUDPNothingArrives(t *testing.T) {
	for _, claim := range []struct {
		name string
		doc  string // the server's results
		lost int64  // of those sent; −1 all
	}{
		{"nothing", `[{"id":1,"bytes":0,"retransmits":-1,"jitter":0,"errors":0,"packets":0}]`, -1},
		{"a part", `[{"id":1,"bytes":0,"retransmits":-1,"jitter":0,"errors":1,"packets":5,"omitted_packets":0,"omitted_errors":0}]`, 6},
	} {
		t.Run(claim.name, func(t *testing.T) {
			p := scriptServerOf(t, plan.UDP, func(p *rawPeer, stream func() net.Conn) {
				p.get(CookieSize)
				p.nc.Write([]byte{9})
				p.getDocument()
				p.nc.Write([]byte{10})
				stream()
				p.nc.Write([]byte{1, 2})
				p.get(1)
				p.nc.Write([]byte{13})
				p.getDocument()
				p.nc.Write(append(AppendDocument(nil, []byte(strings.Replace(emptyResults, "[]", claim.doc, 1))), 14))
				p.get(1)
			})
			p.Bytes, p.Blocks, p.BlockSize = 0, 10, 1000
			run, err := runClient(t, &Client{Plan: p})
			if err != nil {
				t.Fatal(err)
			}
			s := run.Streams[0]
			l := s.UDP.Loss
			if claim.lost < 0 {
				if l.Lost != 10 || l.Ratio != 1 || *s.Receiver.Packets != 10 || *s.Receiver.Lost != 10 {
					t.Errorf("nothing arrived: %+v, %+v", l, s.Receiver)
				}
			} else if l.Lost != claim.lost || l.Tail != 5 || l.Attribution != datagram.Bounded || *s.Receiver.Packets != 5 || *s.Receiver.Lost != 1 {
				t.Errorf("%+v, %+v", l, s.Receiver)
			}
			if !hasNotice(run, "tail-uncounted") {
				t.Error("the tail is not told")
			}
		})
	}
}

// TestUDPNoAnswer: a server that answers no datagram, or whose port is closed (field case F08).
func TestUDPNoAnswer(t *testing.T) {
	silent := scriptServerOf(t, plan.TCP, func(p *rawPeer, _ func() net.Conn) { createThen(p) })
	silent.Transport, silent.Bytes = plan.UDP, 0
	mute, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: silent.Port})
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	for _, dir := range []plan.Direction{plan.Up, plan.Down} {
		p := silent
		if dir == plan.Down { // the first server serves one client
			p = scriptServerOf(t, plan.TCP, func(p *rawPeer, _ func() net.Conn) { createThen(p) })
			p.Transport, p.Bytes, p.Direction = plan.UDP, 0, dir
			also, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: p.Port})
			if err != nil {
				t.Fatal(err)
			}
			defer also.Close()
		}
		_, err = runClient(t, &Client{Plan: p, Timeouts: short()})
		wantError(t, err, codeStreamConnect, "udp-no-answer")
		if want := fmt.Sprintf("no UDP answer from port %d", p.Port); !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "TCP works: a firewall?") {
			t.Errorf("%v", err)
		}
	}
	closed := scriptServerOf(t, plan.TCP, func(p *rawPeer, _ func() net.Conn) { createThen(p) })
	closed.Transport, closed.Bytes = plan.UDP, 0
	_, err = runClient(t, &Client{Plan: closed, Timeouts: short()})
	wantError(t, err, codeStreamConnect, "udp-refused")
	if !strings.Contains(err.Error(), "ICMP") {
		t.Errorf("%v", err)
	}
}

// createThen plays a server up to CREATE_STREAMS and waits for the client's end.
func createThen(p *rawPeer) {
	p.get(CookieSize)
	p.nc.Write([]byte{9})
	p.getDocument()
	p.nc.Write([]byte{10})
	p.get(1)
}

// TestUDPAnswers: every form of answer is taken, and in reverse data may overtake it
// (spec §7.3).
func TestUDPAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		dir   plan.Direction
		reply []byte
		data  bool // comes before the answer
	}{
		"new":              {plan.Up, []byte("6789"), false},
		"new, big-endian":  {plan.Up, []byte("9876"), false},
		"old":              {plan.Up, []byte{0xb1, 0x68, 0xde, 0x3a}, false},
		"old, big-endian":  {plan.Down, []byte{0x3a, 0xde, 0x68, 0xb1}, false},
		"data first":       {plan.Down, nil, true},
		"TEST_START alone": {plan.Down, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			const n = 20
			p := scriptServerOf(t, plan.UDP, func(p *rawPeer, stream func() net.Conn) {
				p.get(CookieSize)
				p.nc.Write([]byte{9})
				p.getDocument()
				p.nc.Write([]byte{10})
				c := stream().(*scriptedFlow)
				next := uint64(1)
				send := func() {
					c.send(payload(1000, false, next))
					next++
				}
				if tc.reply != nil {
					c.send(tc.reply)
				}
				if tc.data {
					send()
				}
				p.nc.Write([]byte{1, 2})
				if tc.dir == plan.Down {
					for next <= n {
						send()
					}
				}
				p.get(1)
				p.nc.Write([]byte{13})
				p.getDocument()
				doc := `[{"id":1,"bytes":20000,"retransmits":-1,"jitter":0,"errors":0,"packets":20}]`
				p.nc.Write(append(AppendDocument(nil, []byte(strings.Replace(emptyResults, "[]", doc, 1))), 14))
				p.get(1)
			}, mutely)
			p.Direction, p.BlockSize, p.Bytes, p.Duration, p.Bitrate = tc.dir, 1000, 0, 200*time.Millisecond, 1e6
			run, err := runClient(t, &Client{Plan: p})
			if err != nil {
				t.Fatal(err)
			}
			if s := run.Streams[0]; tc.dir == plan.Down && (s.UDP.Received.Packets != n || s.UDP.Loss.Lost != 0 || *s.Receiver.Packets != n || *s.Receiver.Lost != 0) {
				t.Errorf("%+v, %+v, %+v", s.UDP.Received, s.UDP.Loss, s.Receiver)
			}
		})
	}
}

// TestUDPGreetingsRepeated: extended greetings are repeated until they are answered, and
// answered as often as they come; the server's ready answers those that were not.
func TestUDPGreetingsRepeated(t *testing.T) {
	const nonce = "00112233445566aa"
	ignored := map[string]int{}
	var flows *udpFlows
	p := scriptServerOf(t, plan.UDP, func(p *rawPeer, stream func() net.Conn) {
		p.get(CookieSize)
		p.nc.Write([]byte{9})
		p.getDocument()
		p.nc.Write(append(AppendFrame(nil, FrameHello, []byte(`{"v":1,"version":"test","features":["udp","token"],"nonce":"`+nonce+`"}`)), 10))
		for range 3 { // of four: the last is never answered
			if stream() == nil {
				t.Error("a stream did not come")
			}
		}
		p.nc.Write(AppendFrame(nil, FrameReady, []byte(`{"ready":true}`)))
		p.nc.Write([]byte{1, 2})
		p.get(1)
	}, func(f *udpFlows) {
		flows = f
		f.mute = func(b []byte) bool {
			g, ok := decodeGreeting(b)
			if !ok || g.index == 3 {
				return true
			}
			ignored[string(b)]++
			return ignored[string(b)] <= 2
		}
	})
	p.Streams, p.Extension, p.Bytes, p.Duration, p.BlockSize, p.Bitrate = 4, "", 0, 100*time.Millisecond, 1000, 1e6
	_, err := runClient(t, &Client{Plan: p, Timeouts: short()})
	if err == nil || !strings.Contains(err.Error(), "server") { // the script ends without results
		t.Errorf("%v", err)
	}
	flows.mu.Lock()
	defer flows.mu.Unlock()
	seen := map[uint32]int{}
	for _, b := range flows.heard {
		if g, ok := decodeGreeting(b); ok {
			seen[g.index]++
		}
	}
	for i := range uint32(3) {
		if seen[i] < 3 {
			t.Errorf("greeting %d came %d times", i, seen[i])
		}
	}
	if b, err := hex.DecodeString(nonce); err != nil || nonceOf(true, [8]byte(b), 1000) != 0x00112233445566aa {
		t.Error("the nonce is not what its digits say")
	}
}

// TestUDPDefaultLength: native datagrams fill a packet of the path, plain ones have the
// control connection's segment size; a size that does not fit is an error with DF, else told.
func TestUDPDefaultLength(t *testing.T) {
	ts := startServer(t, &Server{})
	p := plan.Plan{Transport: plan.UDP, Blocks: 2, Bitrate: 100e6}
	native, err := runClient(t, ts.client(p))
	if err != nil {
		t.Fatal(err)
	}
	c := ts.client(p)
	c.Plain = true
	plain, err := runClient(t, c)
	if err != nil {
		t.Fatal(err)
	}
	if n := native.Test.BlockSize; n < 1000 || n > plan.MaxUDPBlock || !native.Test.DF {
		t.Errorf("native: %d bytes, DF %v", n, native.Test.DF)
	}
	if n := plain.Test.BlockSize; n != plain.Wire.ControlMSS || plain.Test.DF {
		t.Errorf("plain: %d bytes, the MSS is %d", n, plain.Wire.ControlMSS)
	}
}

// TestMayWrap: when 64-bit counters are asked for unasked (field case F03).
func TestMayWrap(t *testing.T) {
	for name, tc := range map[string]struct {
		p    plan.Plan
		want bool
	}{
		"a short test":           {plan.Plan{BlockSize: 16, Duration: 10 * time.Second}, false},
		"as fast as possible":    {plan.Plan{BlockSize: 1448, Duration: 120 * time.Second}, true},
		"paced":                  {plan.Plan{BlockSize: 1448, Duration: 24 * time.Hour, Bitrate: 100e6}, false},
		"paced, small":           {plan.Plan{BlockSize: 16, Duration: 24 * time.Hour, Bitrate: 100e6}, true},
		"the omitted part too":   {plan.Plan{BlockSize: 16, Duration: 60 * time.Second, Omit: 60 * time.Second}, true},
		"endless":                {plan.Plan{BlockSize: 16, Endless: true}, true},
		"endless but slow":       {plan.Plan{BlockSize: 1448, Endless: true, Bitrate: 1 << 20}, false},
		"blocks":                 {plan.Plan{BlockSize: 1448, Blocks: 1 << 31}, true},
		"bytes":                  {plan.Plan{BlockSize: 16, Bytes: 1 << 34}, false},
		"more bytes":             {plan.Plan{BlockSize: 16, Bytes: 1 << 35}, true},
		"slowed by the budget":   {plan.Plan{BlockSize: 1448, Duration: 120 * time.Second, MaxRate: 1e9}, false},
		"slowed by fq":           {plan.Plan{BlockSize: 1448, Duration: 120 * time.Second, FQRate: 1e9}, false},
		"a day at 1 G, 64 bytes": {plan.Plan{BlockSize: 64, Duration: 24 * time.Hour, Bitrate: 1e9}, true},
	} {
		if got := mayWrap(tc.p); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestUDP64Chosen: a plain server is asked, and it is said; a fullbore does it anyway.
func TestUDP64Chosen(t *testing.T) {
	for _, ext := range []string{"", "off"} {
		ts := startServer(t, &Server{})
		stop := &result.Error{Code: "interrupted", Interrupted: true, Text: "seen enough", Number: codeClientTerm}
		c := ts.client(plan.Plan{Transport: plan.UDP, BlockSize: 16, Endless: true, Extension: ext, MaxRate: 10e6})
		rec := newRecorder()
		ctx, cancel := withCause(t)
		rec.on = func(e result.Event) {
			if e.Kind == result.KindStart {
				go cancel(stop)
			}
		}
		_ = c.Run(ctx, rec)
		run := rec.run()
		if !run.Test.Counters64 || hasNotice(run, "udp-64bit-chosen") != (ext == "off") {
			t.Errorf("ext %q: 64-bit %v, notices %v", ext, run.Test.Counters64, run.Notices)
		}
		eventually(t, "the server's test did not end", func() bool { return ts.run(0).Err != nil })
		if !ts.run(0).Test.Counters64 {
			t.Errorf("ext %q: the server counts in 32 bits", ext)
		}
	}
}

// TestManyPlainUDPClients: plain clients from one address at the same time (design §5
// "Many tests at once"): each gets its own figures, or is told busy.
func TestManyPlainUDPClients(t *testing.T) {
	ts := startServer(t, &Server{})
	const clients = 60
	var wg sync.WaitGroup
	var mu sync.Mutex
	good, busy := 0, 0
	for i := range clients {
		wg.Go(func() {
			blocks := int64(5 + i%7)
			run, err := runClient(t, ts.client(plan.Plan{
				Transport: plan.UDP, Blocks: blocks, BlockSize: 200, Bitrate: 1e6, Extension: "off", Streams: 1 + i%3,
			}))
			mu.Lock()
			defer mu.Unlock()
			switch e := asResult(err); {
			case err == nil:
				good++
				sent, got := int64(0), int64(0)
				for _, s := range run.Streams {
					sent += *s.Sender.Packets
					got += *s.Receiver.Packets - *s.Receiver.Lost
				}
				if sent != blocks || got != blocks {
					t.Errorf("client %d: %d of %d datagrams sent, %d received", i, sent, blocks, got)
				}
			case e != nil && e.Code == "busy":
				busy++
			default:
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if good == 0 {
		t.Error("nobody was served")
	}
	t.Logf("%d served, %d told busy", good, busy)
}

// TestUDPThinned: of many streams some have no account; their loss follows from what
// iperf3 counts, and the tail is in it.
func TestUDPThinned(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	streams := []result.Stream{{
		ID: 1, Direction: result.Up, Sender: &result.Total{}, Receiver: &result.Total{Packets: n(95), Lost: n(5), OmittedPackets: n(10), OmittedLost: n(2)},
	}}
	own := traffic.Totals{Flows: []traffic.FlowTotal{{ID: 1, Total: *streams[0].Receiver}}}
	other := &Results{Streams: []StreamResult{{ID: 1, Packets: 100, OmittedPackets: 10, HasOmitted: true}}, Ext: &ResultsExt{}}
	correctTotals(&own, other)
	if f := own.Flows[0].Total; *f.Packets != 100 || *f.Lost != 10 {
		t.Errorf("%d packets, %d lost", *f.Packets, *f.Lost)
	}
	if notices := mergeUDP(result.Server, streams, own, other, nil); len(notices) > 0 {
		t.Errorf("%v", notices)
	}
	s := streams[0]
	if l := s.UDP.Loss; l == nil || l.Sent != 90 || l.Lost != 8 || l.Tail != 5 || *s.Receiver.Packets != 100 || *s.Receiver.Lost != 10 {
		t.Errorf("%+v, %+v", s.UDP.Loss, s.Receiver)
	}
}

// TestUDPBothFamilies: eight streams over IPv4 and eight over IPv6 at once.
func TestUDPBothFamilies(t *testing.T) {
	ts := startServerAt(t, &Server{}, netip.MustParseAddrPort("[::]:0"))
	if !ts.addr.Addr().Is6() {
		t.Skip("this system has no IPv6, so there is no second family")
	}
	var wg sync.WaitGroup
	for _, host := range []string{"127.0.0.1", "::1"} {
		for _, ext := range []string{"", "off"} {
			wg.Go(func() {
				c := ts.client(plan.Plan{Transport: plan.UDP, Direction: plan.Both, Streams: 8, BlockSize: 200, Bitrate: 200e3, Duration: 200 * time.Millisecond, Extension: ext})
				c.Plan.Host = host
				run, err := runClient(t, c)
				if err != nil {
					t.Errorf("%s: %v", host, err)
					return
				}
				wantDatagrams(t, run, ext == "")
				for _, s := range run.Streams {
					if s.Remote.Host != host || s.Local.Host != host {
						t.Errorf("stream %d: %v → %v", s.ID, s.Local, s.Remote)
					}
				}
			})
		}
	}
	wg.Wait()
}

// TestUDPForged: datagrams of a running stream's very address and port count only with
// the test's nonce and size.
func TestUDPForged(t *testing.T) {
	ts := startServer(t, &Server{})
	p := dialRaw(t, ts)
	p.greet()
	p.document(`{"udp":true,"len":1000,"time":60,"fullbore":{"v":1,"version":"x","features":["udp"]}}`)
	var hello ext.ServerHello
	for State(p.read(1)[0]) != StateCreateStreams {
		doc, _ := p.getDocument()
		if err := json.Unmarshal(doc, &hello); err != nil {
			t.Fatal(err)
		}
	}
	nonce, err := strconv.ParseUint(hello.Nonce, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	u := p.dialUDP("")
	if got := exchangeUDP(t, u, greeting{cookie: p.cookie}.append(nil)); string(got) != "6789" {
		t.Fatalf("got %x", got)
	}
	p.want(StateTestStart, StateTestRunning)
	good := func(n uint64) []byte {
		b := payload(1000, true, n)
		datagram.PutExt(b, 1, nonce)
		return b
	}
	forged := [][]byte{{}, udpGreeting, greeting{cookie: p.cookie}.append(nil), payload(1000, true, 2), payload(1000, true, 1<<40), good(2)[:999], append(good(2), 0), payload(1400, true, 3)}
	u.Write(good(1))
	for _, b := range forged {
		u.Write(b)
	}
	u.Write(good(2))
	u.Write(good(3))
	eventually(t, "the datagrams were not counted", func() bool { return ts.counted("udp0") >= 3 })
	res := p.end(sent(3))
	s := ts.run(0).Streams[0]
	if res.Streams[0].Packets != 3 || res.Streams[0].Errors != 0 || s.UDP.Received.Packets != 3 || s.UDP.Received.Foreign != int64(len(forged)) || s.UDP.Loss.Lost != 0 {
		t.Errorf("%+v, %+v", res.Streams[0], s.UDP.Received)
	}
}
