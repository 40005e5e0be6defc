package ntttcp

import (
	"context"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// TestWindowsPairs runs our Windows sender against our receiver.
func TestWindowsPairs(t *testing.T) {
	for _, c := range []struct {
		name             string
		sender, receiver Config
		runs, streams    int
	}{
		{"tokens", Config{Ports: 3, Duration: time.Second}, Config{Ports: 3, Duration: time.Second, Expect: 3}, 1, 3},
		{"a receiver that takes what comes", Config{Ports: 2, Duration: time.Second}, Config{Ports: 4, Follow: true}, 1, 2},
		{"no sync", Config{Ports: 2, Duration: time.Second, NoSync: true}, Config{Ports: 2, Follow: true}, 1, 2},
		{"counted", Config{Ports: 2, Blocks: 20, Duration: time.Hour, BlockSize: 4096}, Config{Ports: 2, Follow: true}, 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.receiver.OneOff = true
			f := serve(t, c.receiver, nil)
			c.sender.Windows, c.sender.Threads, c.sender.Host = true, 1, "127.0.0.1"
			s := send(t, c.sender, dialFrom("", f.at))
			if got := s.wait(t); got != "" {
				t.Errorf("the sender ends with %q: %+v", got, s.rec.run().Err)
			}
			theirs, ours := f.finished(t, 0), s.rec.run()
			if theirs.Err != nil || len(theirs.Streams) != c.streams || len(ours.Streams) != c.streams {
				t.Errorf("%d and %d streams, want %d; %+v", len(ours.Streams), len(theirs.Streams), c.streams, theirs.Err)
			}
			checkRows(t, ours, result.Client)
			checkRows(t, theirs, result.Server)
			if n := bytesOf(ours, result.Client); c.sender.Blocks > 0 && n != int64(c.streams)*c.sender.Blocks*int64(c.sender.BlockSize) {
				t.Errorf("%d bytes in %d blocks", n, c.sender.Blocks)
			}
			if a, b := bytesOf(ours, result.Client), bytesOf(theirs, result.Server); c.sender.Blocks > 0 && !c.sender.NoSync && a != b {
				t.Errorf("sent %d, received %d", a, b)
			}
			if ours.NTTTCP.Dialect != "windows" {
				t.Errorf("the sender speaks %q", ours.NTTTCP.Dialect)
			}
		})
	}
}

// winReceiver is a receiver of the Windows dialect, from the byte table: its token ports listen
// when all its data connections are there, and every thread answers its token.
type winReceiver struct {
	data  []net.Listener
	ports []netip.AddrPort // of the tokens, from then on
	mu    sync.Mutex
	wg    sync.WaitGroup
	refuse,
	hangUp bool
	got   []byte
	bytes int64
}

func newWinReceiver(t *testing.T, threads int, refuse, hangUp bool) *winReceiver {
	w := &winReceiver{refuse: refuse, hangUp: hangUp}
	for range threads {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		w.data = append(w.data, ln)
	}
	var mu sync.Mutex
	var open []net.Conn
	w.wg.Go(func() { w.serve(&mu, &open) })
	t.Cleanup(func() {
		mu.Lock()
		for _, nc := range open {
			nc.Close()
		}
		mu.Unlock()
		for _, ln := range w.data {
			ln.Close()
		}
		w.wg.Wait()
	})
	return w
}

func (w *winReceiver) serve(mu *sync.Mutex, open *[]net.Conn) {
	var conns []net.Conn
	for _, ln := range w.data {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		mu.Lock()
		*open = append(*open, nc)
		mu.Unlock()
		conns = append(conns, nc)
	}
	if w.refuse {
		return
	}
	for range w.data {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return
		}
		w.mu.Lock()
		w.ports = append(w.ports, netip.MustParseAddrPort(ln.Addr().String()))
		w.mu.Unlock()
		w.wg.Go(func() {
			nc, err := ln.Accept()
			ln.Close()
			if err != nil {
				return
			}
			defer nc.Close()
			var b [1]byte
			if _, err := io.ReadFull(nc, b[:]); err != nil {
				return
			}
			w.mu.Lock()
			w.got = append(w.got, b[0])
			w.mu.Unlock()
			if !w.hangUp {
				_, _ = nc.Write([]byte{'Y'}) // the value is nobody's business
			}
		})
	}
	for _, nc := range conns {
		w.wg.Go(func() {
			n, _ := io.Copy(io.Discard, nc)
			w.mu.Lock()
			w.bytes += n
			w.mu.Unlock()
		})
	}
}

func (w *winReceiver) at(port int) netip.AddrPort {
	i := port - DefaultPort
	if i < TokenOffset {
		return netip.MustParseAddrPort(w.data[i].Addr().String())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if i -= TokenOffset; i < len(w.ports) {
		return w.ports[i]
	}
	return netip.AddrPort{} // not open yet: refused
}

func TestWindowsSender(t *testing.T) {
	for _, c := range []struct {
		name           string
		refuse, hangUp bool
		want           string
	}{
		{"as it should be", false, false, ""},
		{"no token ports", true, false, "no-answer"},
		{"a token connection without a token", false, true, "peer-closed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWinReceiver(t, 2, c.refuse, c.hangUp)
			rec := newRecorder()
			s := &Sender{
				Config:   Config{Host: "127.0.0.1", Ports: 2, Threads: 1, Windows: true, Blocks: 5, BlockSize: 1000, Duration: time.Minute, WaitTimeout: 10 * time.Second},
				Timeouts: quick(), second: 20 * time.Millisecond, dial: dialFrom("", w.at),
			}
			if got := code(s.Run(context.Background(), rec)); got != c.want {
				t.Errorf("ends with %q, want %q", got, c.want)
			}
			if c.want != "" {
				if rec.has(result.KindStart) {
					t.Error("it started")
				}
				return
			}
			until(t, "all data", func() bool {
				w.mu.Lock()
				defer w.mu.Unlock()
				return w.bytes == 10_000
			})
			if slices.Sort(w.got); string(w.got) != "FX" { // one asks for a fullbore
				t.Errorf("tokens %q", w.got)
			}
		})
	}
}

// TestTokensOfNobody: a token connection that ends without a token ends the set-up, and the
// receiver takes the next sender.
func TestTokensOfNobody(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Ports: 1, Duration: time.Second, OneOff: true}, nil)
	data, err := net.Dial("tcp", f.lns.Data[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	token, err := net.Dial("tcp", f.lns.Tokens[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	token.Close()
	_ = data.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := data.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("the data connection is not given up: %v", err)
	}
	s := send(t, Config{Host: "127.0.0.1", Ports: 1, Threads: 1, Windows: true, Duration: time.Second}, dialFrom("", f.at))
	if got := s.wait(t); got != "" {
		t.Errorf("the next sender ends with %q", got)
	}
	if run := f.finished(t, 0); run.Err != nil {
		t.Errorf("its run ends with %+v", run.Err)
	}
}

func TestConfigOf(t *testing.T) {
	t.Parallel()
	p := plan.Plan{
		Protocol: plan.ProtocolNTTTCP, Host: "a", Omit: time.Second, Duration: 2 * time.Second,
		NTTTCP: &plan.NTTTCP{Role: plan.NTTTCPSender, Dialect: plan.NTTTCPLinux, Ports: 2, Threads: 3, Connections: 4, CoolDown: time.Second, Rate: 24e6, Last: true},
	}
	c := ConfigOf(p)
	if c.connections() != 24 || c.cycle() != 4*time.Second || !c.Last || c.each(c.Bitrate, 24) != 1e6 || c.Validate(true) != nil {
		t.Errorf("%+v: %v", c, c.Validate(true))
	}
	p = plan.Plan{
		Protocol: plan.ProtocolNTTTCP,
		NTTTCP:   &plan.NTTTCP{Role: plan.NTTTCPSender, Dialect: plan.NTTTCPWindows, Mappings: []plan.NTTTCPMapping{{Threads: 1, Host: "a"}, {Threads: 2, Host: "b"}}, Buffers: 5},
	}
	c = ConfigOf(p)
	if !c.Windows || len(c.Hosts) != 3 || c.Hosts[2] != "b" || c.Blocks != 5 || c.test(schedule{}, 3).Blocks != 15 || c.Duration != plan.NTTTCPTimeLimit || c.Validate(true) != nil {
		t.Errorf("%+v: %v", c, c.Validate(true))
	}
	own := plan.Plan{Protocol: plan.ProtocolNTTTCP, NTTTCP: &plan.NTTTCP{Role: plan.NTTTCPReceiver, Dialect: plan.NTTTCPLinux, Ports: 2}}
	c = ReceiverConfigOf(plan.Serve{NTTTCP: &own, MaxRate: 5, MaxTests: 3})
	if !c.Follow || c.MaxRate != 5 || c.MaxTests != 3 || c.Validate(false) != nil {
		t.Errorf("%+v: %v", c, c.Validate(false))
	}
	public := own
	n := *own.NTTTCP
	n.Public, public.NTTTCP = true, &n
	if c = ReceiverConfigOf(plan.Serve{NTTTCP: &public, Exclusive: true}); !c.Follow || c.Validate(false) != nil {
		t.Errorf("%+v: %v", c, c.Validate(false))
	}
	c = ReceiverConfigOf(plan.Serve{NTTTCP: &own, OneOff: true})
	if c.Follow || c.Duration != time.Minute || c.Validate(false) != nil {
		t.Errorf("%+v: %v", c, c.Validate(false))
	}
}
