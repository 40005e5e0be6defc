package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/iperf3"
	"github.com/fullbore-net/fullbore/result"
)

// datagramCase is one combination of what a UDP test can be.
type datagramCase struct {
	direction plan.Direction
	streams   int
	family    int
	size      int // 0 = the default
	wide      bool
}

func (c datagramCase) String() string {
	s := fmt.Sprintf("%s P%d IPv%d", c.direction, c.streams, c.family)
	if c.size > 0 {
		s += fmt.Sprintf(" l%d", c.size)
	}
	if c.wide {
		s += " wide"
	}
	return s
}

// rate is a few hundred datagrams a second for each stream: eight of them on a busy
// machine must not lose any. Large ones are as many as 2 Mbit/s are.
func (c datagramCase) rate() int64 {
	if c.size == 0 || c.size > 500 {
		return 2_000_000
	}
	return int64(c.size) * 8 * 400
}

func (c datagramCase) host() string {
	if c.family == 6 {
		return "::1"
	}
	return "127.0.0.1"
}

func datagramCases() (all []datagramCase) {
	for _, direction := range []plan.Direction{plan.Up, plan.Down, plan.Both} {
		for _, streams := range []int{1, 8} {
			for _, family := range []int{4, 6} {
				for _, size := range []int{16, 200, 1400, 0} {
					for _, wide := range []bool{false, true} {
						all = append(all, datagramCase{direction, streams, family, size, wide})
					}
				}
			}
		}
	}
	return all
}

// atOnce runs a test of each case, several at a time: they wait most of the time.
func atOnce(t *testing.T, cases []datagramCase, test func(*testing.T, datagramCase)) {
	t.Helper()
	todo := make(chan datagramCase)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { // ends when there is nothing to do
			for c := range todo {
				t.Run(c.String(), func(t *testing.T) { test(t, c) })
			}
		})
	}
	for _, c := range cases {
		todo <- c
	}
	close(todo)
	wg.Wait()
}

// way is what one direction of a UDP test moved: what the sender counted, and the receiver.
type way struct{ Sent, SentBytes, Received, ReceivedBytes, Lost int64 }

// ways sums up a run's streams by direction.
func ways(t *testing.T, run *result.Run) map[result.Direction]way {
	t.Helper()
	sums := map[result.Direction]way{}
	for i, s := range run.Streams {
		if s.Sender == nil || s.Receiver == nil || s.Sender.Packets == nil || s.Receiver.Packets == nil || s.Receiver.Lost == nil {
			t.Errorf("stream %d: sender %+v, receiver %+v", i, s.Sender, s.Receiver)
			continue
		}
		w := sums[s.Direction]
		w.Sent += *s.Sender.Packets
		w.SentBytes += s.Sender.Bytes
		w.Received += *s.Receiver.Packets
		w.ReceivedBytes += s.Receiver.Bytes
		w.Lost += *s.Receiver.Lost
		sums[s.Direction] = w
	}
	return sums
}

// moved checks that every stream of a run did.
func moved(t *testing.T, run *result.Run) {
	t.Helper()
	for i, s := range run.Streams {
		if s.Sender == nil || s.Receiver == nil || s.Sender.Bytes == 0 || s.Receiver.Bytes == 0 {
			t.Errorf("stream %d: sender %+v, receiver %+v", i, s.Sender, s.Receiver)
		}
	}
}

// machineDrops counts what the kernel dropped before any socket saw it, whose queues are
// those of all namespaces, so that somebody else's flood costs our datagrams; and what
// sockets dropped because their reader was not let run for so long.
func machineDrops() (n uint64) {
	b, _ := os.ReadFile("/proc/net/softnet_stat")
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 {
			d, _ := strconv.ParseUint(f[1], 16, 64)
			n += d
		}
	}
	b, _ = os.ReadFile("/proc/net/snmp6")
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "Udp6RcvbufErrors" {
			d, _ := strconv.ParseUint(f[1], 10, 64)
			n += d
		}
	}
	b, _ = os.ReadFile("/proc/net/snmp")
	var names []string
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		switch i := slices.Index(names, "RcvbufErrors"); {
		case len(f) == 0 || f[0] != "Udp:":
		case names == nil:
			names = f
		case i > 0 && i < len(f):
			d, _ := strconv.ParseUint(f[i], 10, 64)
			n += d
		}
	}
	return n
}

// lossless runs a test that says what was lost. It may lose nothing, unless the machine
// dropped traffic meanwhile: then it is run again.
func lossless(t *testing.T, test func() (lost string)) {
	t.Helper()
	for try := 1; ; try++ {
		before := machineDrops()
		lost := test()
		if lost == "" {
			return
		}
		if dropped := machineDrops() - before; dropped > 0 && try < 5 {
			t.Logf("%s, but the machine dropped %d packets: again", lost, dropped)
			continue
		}
		t.Error(lost)
		return
	}
}

// told is what a document says of a direction.
func told(sent, received half) way {
	return way{sent.Packets, sent.Bytes, received.Packets, received.Bytes, received.Lost}
}

// TestRealUDPClient: Debian's iperf3 as client, every combination: it ends well, every
// stream moves, nothing is lost, and both ends say the same numbers.
func TestRealUDPClient(t *testing.T) {
	iperf3Path(t)
	atOnce(t, datagramCases(), func(t *testing.T, c datagramCase) {
		lossless(t, func() string { return realUDPClient(t, c) })
	})
}

func realUDPClient(t *testing.T, c datagramCase) (lost string) {
	srv := startServer(t, plan.Serve{Family: c.family}, nil)
	args := []string{"-c", c.host(), "-p", strconv.Itoa(int(srv.addr.Port())), "-u", "-J", "-t", "1", "-P", strconv.Itoa(c.streams), "-b", strconv.FormatInt(c.rate(), 10)}
	if c.size > 0 {
		args = append(args, "-l", strconv.Itoa(c.size))
	}
	if c.wide {
		args = append(args, "--udp-counters-64bit")
	}
	switch c.direction {
	case plan.Down:
		args = append(args, "-R")
	case plan.Both:
		args = append(args, "--bidir")
	}
	doc := realDatagrams(t, args...)
	run := srv.run(0)
	if run == nil || run.Err != nil || !run.Finished() {
		t.Fatalf("server: %+v", run)
	}
	if run.Test.Counters64 != c.wide || c.size > 0 && run.Test.BlockSize != c.size {
		t.Errorf("the server was asked for %d bytes, wide %v", run.Test.BlockSize, run.Test.Counters64)
	}
	for i, s := range run.Streams {
		if got := doc.End.Streams[i].UDP.Bytes; got != s.Sender.Bytes {
			t.Errorf("stream %d: the client says %d bytes were sent, the server %d", i, got, s.Sender.Bytes)
		}
	}
	moved(t, run)
	return compareWays(t, doc, ways(t, run), c)
}

// realDatagrams runs a real client that must end well.
func realDatagrams(t *testing.T, args ...string) document {
	t.Helper()
	code, stdout, stderr := real(t, args...)
	var doc document
	if err := json.Unmarshal(stdout, &doc); err != nil {
		t.Fatalf("%v\n%s", err, stdout)
	}
	if code != 0 || doc.Error != "" || len(doc.End.Streams) == 0 {
		t.Fatalf("exit %d, error %q\n%s", code, doc.Error, stderr)
	}
	return doc
}

// compareWays compares a real client's document with our server's account. What a client
// sends is all there. A client that receives does not read on after its time is over, so
// what our server sent last is in nobody's count of what arrived.
func compareWays(t *testing.T, doc document, got map[result.Direction]way, c datagramCase) (lost string) {
	t.Helper()
	want := map[result.Direction]way{}
	first := result.Up
	if c.direction == plan.Down {
		first = result.Down
	}
	want[first] = told(doc.End.Sent, doc.End.Received)
	if c.direction == plan.Both {
		if doc.End.SentDown == nil || doc.End.ReceivedDown == nil {
			t.Fatal("the client's document has no sums of the reverse direction")
		}
		want[result.Down] = told(*doc.End.SentDown, *doc.End.ReceivedDown)
	}
	if len(got) != len(want) {
		t.Errorf("%d directions at the server, %d at the client", len(got), len(want))
	}
	for d, w := range want {
		if got[d] != w {
			t.Errorf("%s: the client says %+v, the server %+v", d, w, got[d])
		}
		if w.Lost != 0 || d == result.Up && w.Received != w.Sent {
			lost = fmt.Sprintf("%s: %+v: something was lost", d, w)
		}
	}
	return lost
}

// TestRealUDPServer: our client in every combination against Debian's iperf3.
func TestRealUDPServer(t *testing.T) {
	iperf3Path(t)
	atOnce(t, datagramCases(), func(t *testing.T, c datagramCase) {
		lossless(t, func() string { return realUDPServer(t, c) })
	})
}

func realUDPServer(t *testing.T, c datagramCase) (lost string) {
	port, wait := realServer(t, "-J")
	p := plan.Plan{
		Host: c.host(), Port: port, Family: c.family, Transport: plan.UDP, Direction: c.direction, Streams: c.streams,
		BlockSize: c.size, Bitrate: c.rate(), RateSet: true, Duration: time.Second, Counters64: c.wide,
	}
	ev := &events{}
	cl := &iperf3.Client{Plan: p, Tool: result.Tool{Name: "fullbore", Version: "test"}, Plain: c.size != 0}
	if err := cl.Run(t.Context(), ev); err != nil {
		t.Fatal(err)
	}
	code, out := wait()
	var doc document
	if err := json.Unmarshal(out, &doc); err != nil || code != 0 || doc.Error != "" {
		t.Fatalf("server: exit %d, %v\n%s", code, err, out)
	}
	run := ev.run()
	moved(t, run)
	got := ways(t, run)
	// A real server's document has its own half only: what it received, or sent.
	up, down := doc.End.Received, doc.End.Sent
	if c.direction == plan.Both {
		if doc.End.SentDown == nil {
			t.Fatal("the server's document has no sums of the reverse direction")
		}
		down = *doc.End.SentDown
	}
	if c.direction != plan.Down {
		w := got[result.Up]
		if w.Received != up.Packets || w.ReceivedBytes != up.Bytes || up.Lost != w.Lost {
			t.Errorf("up: the server says %+v, we say %+v", up, w)
		}
		if w.Lost != 0 {
			lost = fmt.Sprintf("up: %+v: something was lost", w)
		}
		// It does not read on after the end: what was on its way then is told to be missing.
		missing := w.Sent - w.Received
		if told := uncounted(run); missing != told || missing > w.Sent/10+int64(c.streams) {
			t.Errorf("up: %+v: %d are missing, %d are told", w, missing, told)
		}
	}
	if c.direction != plan.Up {
		w := got[result.Down]
		if w.Sent != down.Packets || w.SentBytes != down.Bytes || w.Received != w.Sent {
			t.Errorf("down: the server says %+v, we say %+v", down, w)
		}
		if w.Lost != 0 {
			lost = fmt.Sprintf("down: %+v: something was lost", w)
		}
	}
	if len(doc.End.Streams) != len(run.Streams) {
		t.Errorf("%d streams at the server, %d here", len(doc.End.Streams), len(run.Streams))
	}
	return lost
}

// uncounted is what a run says that a receiver never counted.
func uncounted(run *result.Run) (n int64) {
	for _, s := range run.Streams {
		if s.UDP != nil && s.UDP.Loss != nil && s.Direction == result.Up {
			n += s.UDP.Loss.Tail
		}
	}
	return n
}

// TestRealUDPCounts: tests that end at a count, both roles.
func TestRealUDPCounts(t *testing.T) {
	iperf3Path(t)
	t.Run("client", func(t *testing.T) {
		for _, args := range []string{"-k 20", "-k 20 -P 4", "-n 20K", "-k 20 -R"} {
			srv := startServer(t, plan.Serve{}, nil)
			words := append([]string{"-c", "127.0.0.1", "-p", strconv.Itoa(int(srv.addr.Port())), "-u", "-J", "-l", "1000", "-b", "1M"}, strings.Fields(args)...)
			doc := realDatagrams(t, words...)
			run := srv.run(0)
			d := result.Up
			if strings.Contains(args, "-R") {
				d = result.Down
			}
			if w := ways(t, run)[d]; w != told(doc.End.Sent, doc.End.Received) || w.Received < 20 || w.Lost != 0 {
				t.Errorf("%s: the client says %+v and %+v, the server %+v", args, doc.End.Sent, doc.End.Received, w)
			}
		}
	})
	t.Run("server", func(t *testing.T) {
		for _, p := range []plan.Plan{{Blocks: 20}, {Blocks: 20, Streams: 4}, {Bytes: 20000}, {Blocks: 20, Direction: plan.Down}} {
			port, wait := realServer(t)
			p.Host, p.Port, p.Transport, p.BlockSize, p.Bitrate = "127.0.0.1", port, plan.UDP, 1000, 1_000_000
			ev := &events{}
			cl := &iperf3.Client{Plan: p}
			if err := cl.Run(t.Context(), ev); err != nil {
				t.Fatal(err)
			}
			if code, out := wait(); code != 0 {
				t.Errorf("server: exit %d\n%s", code, out)
			}
			d := result.Up
			if p.Direction == plan.Down {
				d = result.Down
			}
			w := ways(t, ev.run())[d]
			if d == result.Up && w.Sent != 20 || w.Received+uncounted(ev.run()) != w.Sent || w.Lost != 0 {
				t.Errorf("%+v: %+v", p, w)
			}
		}
	})
}

// busyWords is how a real client tells that the server has no time for it.
const busyWords = "the server is busy running a test"

// TestRealUDPFromOneAddress: many plain clients of one address, whose streams nothing but
// their order tells apart: each is served right, or told busy.
func TestRealUDPFromOneAddress(t *testing.T) {
	iperf3Path(t)
	for _, c := range []struct {
		clients int
		apart   time.Duration
	}{{40, 25 * time.Millisecond}, {200, 20 * time.Millisecond}} {
		t.Run(strconv.Itoa(c.clients), func(t *testing.T) {
			srv := startServer(t, plan.Serve{}, nil)
			busy := manyClients(t, srv, c.clients, func(int) { time.Sleep(c.apart) })
			t.Logf("%d of %d were told busy", busy, c.clients)
			if busy > c.clients/2 {
				t.Errorf("%d of %d were told busy", busy, c.clients)
			}
		})
	}
}

// TestRealUDPAtTheSameMoment: two plain clients of one address that start together.
func TestRealUDPAtTheSameMoment(t *testing.T) {
	iperf3Path(t)
	for range 5 {
		srv := startServer(t, plan.Serve{}, nil)
		if busy := manyClients(t, srv, 2, func(int) {}); busy != 0 {
			t.Errorf("%d of 2 were told busy", busy)
		}
	}
}

// manyClients starts real clients, pausing after each, and checks that each is served
// right or told busy; it returns how many were.
func manyClients(t *testing.T, srv *server, n int, pause func(int)) (busy int) {
	t.Helper()
	docs := make([]*document, n)
	before := machineDrops()
	var wg sync.WaitGroup
	for i := range n {
		args := []string{"-c", "127.0.0.1", "-p", strconv.Itoa(int(srv.addr.Port())), "-u", "-J", "-t", "1", "-b", "100K", "-l", "200", "-T", "n" + strconv.Itoa(i)}
		switch i % 4 {
		case 1:
			args = append(args, "-R")
		case 2:
			args = append(args, "-P", "2")
		case 3:
			args = append(args, "--bidir")
		}
		wg.Go(func() {
			code, stdout, stderr := real(t, args...)
			var doc document
			if err := json.Unmarshal(stdout, &doc); err != nil {
				t.Errorf("client %d: exit %d, %v %s", i, code, err, stderr)
				return
			}
			switch {
			case strings.Contains(doc.Error, busyWords):
				return
			case code != 0 || doc.Error != "":
				t.Errorf("client %d: exit %d, %s", i, code, doc.Error)
			}
			docs[i] = &doc
		})
		pause(i)
	}
	wg.Wait()
	seen := map[int]bool{}
	srv.mu.Lock()
	runs := slices.Clone(srv.runs)
	srv.mu.Unlock()
	for _, e := range runs {
		run := e.run()
		i, err := strconv.Atoi(strings.TrimPrefix(run.Test.Title, "n"))
		if err != nil || i >= n || docs[i] == nil {
			continue // told busy
		}
		seen[i] = true
		if run.Err != nil {
			t.Errorf("client %d: the server says %v", i, run.Err)
			continue
		}
		direction := []plan.Direction{plan.Up, plan.Down, plan.Up, plan.Both}[i%4]
		if lost := compareWays(t, *docs[i], ways(t, run), datagramCase{direction: direction}); lost != "" && machineDrops() == before {
			t.Errorf("client %d: %s", i, lost)
		}
	}
	for i, doc := range docs {
		if doc == nil {
			busy++
		} else if !seen[i] {
			t.Errorf("client %d: the server knows no such test", i)
		}
	}
	return busy
}
