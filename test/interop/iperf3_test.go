// Package interop lets the real programs talk to ours.
package interop

import (
	"bytes"
	"context"
	"encoding/json"
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
	"sync/atomic"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/iperf3"
	"github.com/fullbore-net/fullbore/result"
)

// iperf3Path finds the real program. Where the tests are CI's, its absence is a failure.
func iperf3Path(t testing.TB) string {
	t.Helper()
	p := os.Getenv("FULLBORE_IPERF3")
	if p == "" {
		p, _ = exec.LookPath("iperf3")
	}
	if p == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("iperf3 is not installed, and CI must have it (test/peers.sh)")
		}
		t.Skip("iperf3 is not installed: nothing real to talk to (test/peers.sh installs it)")
	}
	return p
}

// events records what a run emits.
type events struct {
	mu  sync.Mutex
	all []result.Event
}

func (e *events) Event(ev result.Event) {
	e.mu.Lock()
	e.all = append(e.all, ev)
	e.mu.Unlock()
}

func (e *events) run() *result.Run {
	e.mu.Lock()
	defer e.mu.Unlock()
	return result.Fold(e.all)
}

// server is one of ours on a free port.
type server struct {
	addr netip.AddrPort
	mu   sync.Mutex
	runs []*events
}

func (s *server) run(i int) *result.Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i >= len(s.runs) {
		return nil
	}
	return s.runs[i].run()
}

func startServer(t testing.TB, policy plan.Serve, output func(*result.Run) (string, []byte)) *server {
	t.Helper()
	host := "127.0.0.1"
	if policy.Family == 6 {
		host = "::1"
	}
	ln, packets := listen(t, netip.MustParseAddr(host), osnet.Options{Family: policy.Family})
	out := &server{addr: ln.Addr().(*net.TCPAddr).AddrPort()}
	s := &iperf3.Server{
		Packets: []*osnet.PacketConn{packets},
		Policy:  policy, Tool: result.Tool{Name: "fullbore", Version: "test"}, Log: slog.New(slog.DiscardHandler),
		NewTest: func(result.Addr) iperf3.TestHooks {
			e := &events{}
			out.mu.Lock()
			out.runs = append(out.runs, e)
			out.mu.Unlock()
			return iperf3.TestHooks{Sink: e, Output: output}
		},
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, []net.Listener{ln}) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return out
}

// listen opens a free port for TCP and UDP. One that was just found free may still be held
// by a child that was forked in between and has not begun its program.
func listen(t testing.TB, host netip.Addr, o osnet.Options) (net.Listener, *osnet.PacketConn) {
	t.Helper()
	for try := 0; ; try++ {
		addr := netip.AddrPortFrom(host, uint16(freePort(t)))
		ln, err := osnet.Listen(t.Context(), "tcp", addr, o)
		if err == nil {
			var u *net.UDPConn
			if u, _, err = osnet.ListenUDP(t.Context(), addr, o); err == nil {
				packets, err := osnet.NewPacketConn(u)
				if err != nil {
					t.Fatal(err)
				}
				return ln, packets
			}
			_ = ln.Close()
		}
		if try == 10 {
			t.Fatal(err)
		}
	}
}

// real runs the real program and returns its exit code and outputs.
func real(t testing.TB, args ...string) (code int, stdout, stderr []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, iperf3Path(t), args...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("iperf3 %s did not end:\n%s%s", strings.Join(args, " "), o.Bytes(), e.Bytes())
	}
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), o.Bytes(), e.Bytes()
}

// document is the part of iperf3's JSON that is compared.
type document struct {
	Error string `json:"error"`
	Start struct {
		TestStart struct {
			Streams int `json:"num_streams"`
		} `json:"test_start"`
	} `json:"start"`
	End struct {
		Streams []struct {
			Sender   half `json:"sender"`
			Receiver half `json:"receiver"`
			UDP      half `json:"udp"`
		} `json:"streams"`
		Sent         half  `json:"sum_sent"`
		Received     half  `json:"sum_received"`
		SentDown     *half `json:"sum_sent_bidir_reverse"`
		ReceivedDown *half `json:"sum_received_bidir_reverse"`
	} `json:"end"`
	ServerText *string         `json:"server_output_text"`
	ServerJSON json.RawMessage `json:"server_output_json"`
}

type half struct {
	Bytes       int64 `json:"bytes"`
	Retransmits int64 `json:"retransmits"`
	Packets     int64 `json:"packets"`
	Lost        int64 `json:"lost_packets"`
	Sender      bool  `json:"sender"`
}

// TestRealClient: Debian's iperf3 as client against our server; exit codes are 0 and
// both ends report the same bytes for every stream.
func TestRealClient(t *testing.T) {
	iperf3Path(t)
	for _, args := range []string{
		"", "-R", "--bidir", "-P 4", "-P 32", "-P 128", "-P 4 -R", "-P 4 --bidir", "-P 128 -R", "-O 1 -t 1", "-O 1 -t 1 -R", "-n 1M", "-n 5M -P 4", "-k 50",
		"-n 1M -R", "-b 20M", "-b 5M -R", "-b 4M/4", "-w 128K", "-w 128K -R", "-M 1000", "-M 1000 -R", "-N", "-C reno", "-C reno -R", "-S 0x20", "-S 0x20 -R",
		"-Z", "-Z -R", "-l 16K", "-l 1", "--repeating-payload", "-i 0.2", "--fq-rate 50M", "-T title --extra-data x",
	} {
		t.Run("c "+args, func(t *testing.T) {
			t.Parallel() // what is compared are counts; the second that each takes passes for several at once
			srv := startServer(t, plan.Serve{}, nil)
			realClient(t, srv, "127.0.0.1", args)
		})
	}
	t.Run("IPv6", func(t *testing.T) {
		srv := startServer(t, plan.Serve{Family: 6}, nil)
		realClient(t, srv, "::1", "-6")
		realClient(t, srv, "::1", "-R")
	})
}

func realClient(t *testing.T, srv *server, host, args string) {
	t.Helper()
	a := append([]string{"-c", host, "-p", strconv.Itoa(int(srv.addr.Port())), "-J"}, strings.Fields(args)...)
	if !strings.Contains(args, "-t") && !strings.Contains(args, "-n") && !strings.Contains(args, "-k") {
		a = append(a, "-t", "1")
	}
	code, stdout, stderr := real(t, a...)
	var doc document
	if err := json.Unmarshal(stdout, &doc); err != nil {
		t.Fatalf("%v\n%s", err, stdout)
	}
	if code != 0 || doc.Error != "" {
		t.Fatalf("exit %d, error %q\n%s", code, doc.Error, stderr)
	}
	srv.mu.Lock()
	run := srv.runs[len(srv.runs)-1].run()
	srv.mu.Unlock()
	if run.Err != nil || len(run.Streams) != len(doc.End.Streams) {
		t.Fatalf("server: %v, %d streams; client %d", run.Err, len(run.Streams), len(doc.End.Streams))
	}
	for i, s := range run.Streams {
		c := doc.End.Streams[i]
		if s.Sender == nil || s.Receiver == nil || s.Sender.Bytes != c.Sender.Bytes || s.Receiver.Bytes != c.Receiver.Bytes {
			t.Errorf("stream %d: client says %d → %d, server %+v → %+v", i, c.Sender.Bytes, c.Receiver.Bytes, s.Sender, s.Receiver)
		}
		if c.Sender.Bytes == 0 || c.Receiver.Bytes == 0 && !strings.Contains(args, "-P 128") {
			t.Errorf("stream %d: nothing moved", i)
		}
		if got := (s.Direction == result.Up); got != c.Sender.Sender {
			t.Errorf("stream %d: direction %s, client says sender=%v", i, s.Direction, c.Sender.Sender)
		}
	}
}

// realServer starts a real server for one test and returns its port and a function that
// waits for its end.
func realServer(t testing.TB, args ...string) (port int, wait func() (int, []byte)) {
	t.Helper()
	s := spawn(t, iperf3Path(t), append([]string{"-s", "-1"}, args...)...)
	return s.port, func() (int, []byte) {
		<-s.ended
		return s.cmd.ProcessState.ExitCode(), s.out.Bytes()
	}
}

// program is a real server process.
type program struct {
	port  int
	cmd   *exec.Cmd
	out   *bytes.Buffer
	ended chan struct{}
}

// spawn starts a server program on a free port; it is gone when the test is over.
func spawn(t testing.TB, path string, args ...string) *program {
	t.Helper()
	for range 10 { // somebody may take the port between the look and the start
		ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
		p := &program{port: freePort(t), out: &bytes.Buffer{}, ended: make(chan struct{})}
		p.cmd = exec.CommandContext(ctx, path, append(args, "-p", strconv.Itoa(p.port))...)
		p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
		if err := p.cmd.Start(); err != nil {
			cancel()
			t.Fatal(err)
		}
		go func() {
			_ = p.cmd.Wait()
			close(p.ended)
		}()
		if listens(p.cmd.Process.Pid, p.port, p.ended) {
			t.Cleanup(func() {
				cancel()
				<-p.ended
			})
			return p
		}
		cancel()
		<-p.ended
	}
	t.Fatalf("%s would not start", path)
	return nil
}

// freePort returns a port that was free for TCP and UDP a moment ago. It is none that the
// system gives out by itself, so that nobody gets it in between.
func freePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 12000 + (os.Getpid()*101+int(portsTried.Add(1)))%18000
		addr := fmt.Sprintf(":%d", port)
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		pc, err := net.ListenPacket("udp", addr)
		_ = ln.Close()
		if err != nil {
			continue
		}
		_ = pc.Close()
		return port
	}
	t.Fatal("no free port")
	return 0
}

var portsTried atomic.Int64

// listens waits until a process listens on port, without connecting: that would be the
// server's one test.
func listens(pid, port int, ended <-chan struct{}) bool {
	want := fmt.Sprintf(":%04X", port)
	for range 2000 {
		for _, f := range []string{"/proc/net/tcp6", "/proc/net/tcp"} {
			b, _ := os.ReadFile(f)
			for _, line := range strings.Split(string(b), "\n") {
				if f := strings.Fields(line); len(f) > 9 && strings.HasSuffix(f[1], want) && f[3] == "0A" && holds(pid, f[9]) {
					return true
				}
			}
		}
		select {
		case <-ended:
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return false
}

// holds reports whether a process has the socket with this inode open: the port may be
// another test's.
func holds(pid int, inode string) bool {
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && to == "socket:["+inode+"]" {
			return true
		}
	}
	return false
}

// TestRealServer: our client against Debian's iperf3 as server.
func TestRealServer(t *testing.T) {
	iperf3Path(t)
	sec := time.Second
	for name, p := range map[string]plan.Plan{
		"plain":       {Duration: sec},
		"off":         {Duration: sec, Extension: "off"},
		"reverse":     {Duration: sec, Direction: plan.Down},
		"both":        {Duration: sec, Direction: plan.Both},
		"P4":          {Duration: sec, Streams: 4},
		"P4 both":     {Duration: sec, Streams: 4, Direction: plan.Both},
		"P32":         {Duration: sec, Streams: 32},
		"P128":        {Duration: sec, Streams: 128},
		"P128 down":   {Duration: sec, Streams: 128, Direction: plan.Down},
		"omit":        {Duration: sec, Omit: sec},
		"omit down":   {Duration: sec, Omit: sec, Direction: plan.Down},
		"half second": {Duration: 500 * time.Millisecond, Omit: 300 * time.Millisecond},
		"bytes":       {Bytes: 10 << 20},
		"bytes P4":    {Bytes: 10 << 20, Streams: 4},
		"blocks":      {Blocks: 50},
		"bytes down":  {Bytes: 10 << 20, Direction: plan.Down},
		"rate":        {Duration: sec, Bitrate: 20e6},
		"rate down":   {Duration: sec, Bitrate: 20e6, Direction: plan.Down},
		"window":      {Duration: sec, Window: 128 << 10},
		"mss":         {Duration: sec, MSS: 1000},
		"no delay":    {Duration: sec, NoDelay: true},
		"reno":        {Duration: sec, Congestion: "reno"},
		"tos":         {Duration: sec, TOS: 0x20},
		"zero copy":   {Duration: sec, Send: plan.SendZeroCopy, RemoteZeroCopy: true, Direction: plan.Both},
		"discard":     {Duration: sec, Receive: plan.Discard, RemoteDiscard: true, Direction: plan.Down},
	} {
		t.Run("s "+name, func(t *testing.T) {
			t.Parallel()
			port, wait := realServer(t, "-J")
			p.Host, p.Port = "127.0.0.1", port
			ev := &events{}
			c := &iperf3.Client{Plan: p, Tool: result.Tool{Name: "fullbore", Version: "test"}}
			if err := c.Run(t.Context(), ev); err != nil {
				t.Fatal(err)
			}
			code, out := wait()
			var doc document
			if err := json.Unmarshal(out, &doc); err != nil || code != 0 || doc.Error != "" {
				t.Fatalf("server: exit %d, %v\n%s", code, err, out)
			}
			run := ev.run()
			for i, s := range run.Streams {
				if i >= len(doc.End.Streams) {
					t.Fatalf("server saw %d streams", len(doc.End.Streams))
				}
				o := doc.End.Streams[i]
				if s.Sender == nil || s.Receiver == nil {
					t.Fatalf("stream %d: sender %+v, receiver %+v", i, s.Sender, s.Receiver)
				}
				ours, theirs := s.Receiver.Bytes, o.Receiver.Bytes // a real server's document has its own half only
				if s.Direction == result.Down {
					ours, theirs = s.Sender.Bytes, o.Sender.Bytes
				}
				if ours != theirs {
					t.Errorf("stream %d: we were told %d bytes, the server printed %d", i, ours, theirs)
				}
				if p.Bytes+p.Blocks > 0 && s.Direction == result.Up && s.Sender.Bytes != s.Receiver.Bytes {
					t.Errorf("stream %d: sent %d, arrived %d", i, s.Sender.Bytes, s.Receiver.Bytes)
				}
			}
		})
	}
}
