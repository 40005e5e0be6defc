package interop

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/iperf3"
	"github.com/fullbore-net/fullbore/internal/proto/ntttcp"
	"github.com/fullbore-net/fullbore/internal/runner"
	"github.com/fullbore-net/fullbore/result"
)

// house is what `fullbore serve` is: an iperf3 server and an NTTTCP receiver with one policy.
type house struct {
	iperf3 netip.AddrPort
	base   int // NTTTCP's first data port

	mu   sync.Mutex
	runs []*events
}

func (h *house) all() []*result.Run {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []*result.Run
	for _, e := range h.runs {
		out = append(out, e.run())
	}
	return out
}

// serveAll opens a house.
func serveAll(t *testing.T, s plan.Serve) *house {
	t.Helper()
	const ports = 4
	h := &house{}
	s.Listen = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}
	r := &runner.Runner{Version: "test", Log: slog.New(slog.DiscardHandler), Slots: s.Slots()}
	var k *runner.NTTTCPSockets
	at := s
	for try := 0; ; try++ {
		h.base = 12000 + (os.Getpid()*37+try*211)%8000
		at.NTTTCP = &plan.Plan{
			Protocol: plan.ProtocolNTTTCP, Port: h.base, Interval: time.Second,
			NTTTCP: &plan.NTTTCP{Dialect: plan.NTTTCPLinux, Role: plan.NTTTCPReceiver, Ports: ports, Public: true},
		}
		at.Listen = []netip.AddrPort{netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(h.base))}
		var notices []result.Notice
		var err error
		if k, notices, err = r.ListenNTTTCP(t.Context(), at); err == nil && len(notices) == 0 {
			break
		}
		if err == nil {
			k.Close()
		}
		if try == 50 {
			t.Fatal("no free ports")
		}
	}
	newTest := func(result.Addr) runner.Hooks {
		e := &events{}
		h.mu.Lock()
		h.runs = append(h.runs, e)
		h.mu.Unlock()
		return runner.Hooks{Sink: e}
	}
	ln, packets := listen(t, netip.MustParseAddr("127.0.0.1"), osnet.Options{})
	_ = packets.Close()
	h.iperf3 = netip.MustParseAddrPort(ln.Addr().String())
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.ServeNTTTCP(ctx, at, k, newTest) }) // ends with ctx
	wg.Go(func() { _ = r.Serve(ctx, s, []net.Listener{ln}, newTest) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return h
}

// TestServeBoth: senders and clients of both protocols at one server, which keeps to one policy.
func TestServeBoth(t *testing.T) {
	t.Run("many at once", func(t *testing.T) {
		h := serveAll(t, plan.Serve{})
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				c := &iperf3.Client{Plan: plan.Plan{Host: "127.0.0.1", Port: int(h.iperf3.Port()), Bytes: 1 << 20}}
				if err := c.Run(t.Context(), &events{}); err != nil {
					t.Errorf("iperf3 client %d: %v", i, err)
				}
			})
			wg.Go(func() {
				s := &ntttcp.Sender{Config: ntttcp.Config{Host: "127.0.0.1", Port: h.base, Ports: 2, Threads: 1, Windows: true, Blocks: 100, BlockSize: 10_000, Duration: time.Hour, WaitTimeout: time.Minute, BindHost: fmt.Sprintf("127.0.8.%d", i+1)}}
				if err := s.Run(t.Context(), &events{}); err != nil {
					t.Errorf("sender %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		poll(t, "all runs", func() bool {
			n := 0
			for _, r := range h.all() {
				if len(r.Streams) > 0 && (r.Streams[0].Receiver != nil) {
					n++
				}
			}
			return n == 8
		})
		bytes := map[string]int64{}
		for _, r := range h.all() {
			for _, s := range r.Streams {
				bytes[r.Protocol] += s.Receiver.Bytes
			}
		}
		if bytes["ntttcp"] != 8_000_000 || bytes["iperf3"] < 4<<20 {
			t.Errorf("bytes by protocol: %v", bytes)
		}
	})
	t.Run("one at a time", func(t *testing.T) {
		h := serveAll(t, plan.Serve{Exclusive: true})
		ctx, stop := context.WithCancelCause(t.Context())
		long := make(chan error, 1)
		go func() {
			long <- (&ntttcp.Sender{Config: ntttcp.Config{Host: "127.0.0.1", Port: h.base, Ports: 1, Threads: 1, Endless: true, Bitrate: 1e6, BlockSize: 1000}}).Run(ctx, &events{})
		}()
		poll(t, "its start", func() bool { runs := h.all(); return len(runs) == 1 && len(runs[0].Streams) == 1 })
		client := func() string {
			err := (&iperf3.Client{Plan: plan.Plan{Host: "127.0.0.1", Port: int(h.iperf3.Port()), Bytes: 1 << 16}}).Run(t.Context(), &events{})
			return codeOf(err)
		}
		if got := client(); got != "busy" {
			t.Errorf("while an NTTTCP test runs an iperf3 client ends with %q", got)
		}
		stop(&result.Error{Code: "interrupted", Interrupted: true, Text: "interrupted"})
		<-long
		poll(t, "the free server", func() bool { return client() == "" })
	})
}

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	if e, ok := err.(*result.Error); ok {
		return e.Code
	}
	return err.Error()
}

func poll(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(40 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: did not happen", what)
		}
	}
}

// TestRealSenders: senders of ntttcp-for-linux of every kind at once, at addresses of their own and
// four at one, into one server. FULLBORE_NTTTCP names the program; without one, as in CI, where
// none can be had, the recorded sessions of internal/proto/ntttcp stand in. The program binds only
// to addresses that an interface has (ip address add 127.0.8.20/32 dev lo …).
func TestRealSenders(t *testing.T) {
	program := os.Getenv("FULLBORE_NTTTCP")
	if program == "" {
		t.Log("FULLBORE_NTTTCP names no ntttcp-for-linux: nothing to play against")
		return
	}
	h := serveAll(t, plan.Serve{})
	dir := t.TempDir()
	kinds := []struct {
		words   string
		streams int
		nosync  bool
	}{
		{"-P 4 -n 2", 8, false},
		{"-P 2 -n 1 -N", 2, true},
		{"-P 2 -n 1 -u -b 1000 -B 10M", 2, false},
		{"-P 1 -n 4 -l 2", 8, false},
	}
	want := map[string]int{}
	var wg sync.WaitGroup
	start := func(i int, local string, k int) {
		c := kinds[k]
		want[fmt.Sprintf("%s %d %v", local, c.streams, c.nosync)]++
		args := append(strings.Fields(c.words), "-s127.0.0.1", "-a", local, "-p", strconv.Itoa(h.base), "-t", "3", "-Q")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		t.Cleanup(cancel)
		wg.Go(func() {
			cmd := exec.CommandContext(ctx, program, args...)
			cmd.Dir = filepath.Join(dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%d: ntttcp %s: %v\n%s", i, strings.Join(args, " "), err, out)
			}
		})
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	senders := 4
	for _, a := range addrs {
		if p, ok := a.(*net.IPNet); ok && strings.HasPrefix(p.IP.String(), "127.0.8.") {
			start(senders, p.IP.String(), senders%len(kinds))
			senders++
		}
	}
	for i := range 4 {
		start(i, "127.0.0.1", []int{0, 3, 0, 1}[i])
	}
	wg.Wait()
	poll(t, "all runs", func() bool {
		n := 0
		for _, r := range h.all() {
			if len(r.Streams) > 0 && r.Streams[0].Receiver != nil {
				n++
			}
		}
		return n >= senders
	})
	got := map[string]int{}
	for _, r := range h.all() {
		if r.Err != nil {
			t.Errorf("%s: %+v", r.Wire.AcceptedFrom.Host, r.Err)
		}
		got[fmt.Sprintf("%s %d %v", r.Streams[0].Remote.Host, len(r.Streams), r.NTTTCP.NoSync)]++
	}
	for k, n := range want {
		if got[k] != n {
			t.Errorf("%s: %d runs, want %d; all: %v", k, got[k], n, got)
		}
	}
}
