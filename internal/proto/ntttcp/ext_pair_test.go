package ntttcp

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// machine makes a Machine that counts cores, to tell whose figures they are.
func machine(cores int) Machine {
	return func() func() *result.HostTotal {
		return func() *result.HostTotal { return &result.HostTotal{Cores: cores, Seconds: 1} }
	}
}

// linkedPair runs a sender and a receiver that tell each other who they are, and returns both runs.
func linkedPair(t *testing.T, sender, receiver Config) (ours, theirs *result.Run, s *sending, f *fixture) {
	t.Helper()
	receiver.OneOff = true
	f = serve(t, receiver, func(r *Receiver) {
		r.Tool = result.Tool{Name: "fullbore", Version: "2"}
		r.Facts = &result.Host{Name: "secret", OS: "linux", Cores: 2}
		inner := r.NewTest
		r.NewTest = func(a result.Addr) TestHooks {
			h := inner(a)
			h.Machine = machine(20)
			return h
		}
	})
	sender.Host, sender.Interval = "127.0.0.1", beat/4
	if sender.Bitrate == 0 && sender.Blocks == 0 { // many of these run at once
		sender.Bitrate = 80e6
	}
	s = sendAs(t, &Sender{
		Config: sender, Timeouts: quick(), second: beat, dial: dialFrom("", f.at), Machine: machine(10),
		Tool: result.Tool{Name: "fullbore", Version: "1"}, Facts: &result.Host{Name: "sender", OS: "windows"},
	})
	if got := s.wait(t); got != "" {
		t.Errorf("the sender ends with %q: %+v", got, s.rec.run().Err)
	}
	theirs = f.finished(t, 0)
	if theirs.Err != nil {
		t.Errorf("the receiver ends with %+v", theirs.Err)
	}
	return s.rec.run(), theirs, s, f
}

// TestBothEnds: between two fullbores each end's run has the figures of both.
func TestBothEnds(t *testing.T) {
	udp := func(c Config) Config {
		c.Transport, c.BlockSize, c.Bitrate = "udp", 1000, 8e6
		return c
	}
	win := func(c Config) Config {
		c.Windows, c.Threads, c.Conns = true, 1, 1
		return c
	}
	tcp := Config{Ports: 3, Threads: 2, Conns: 2, Duration: time.Second}
	warm := Config{Ports: 1, Threads: 2, Warmup: time.Second, Duration: time.Second, Cooldown: time.Second}
	for name, c := range map[string]struct {
		sender, receiver Config
		streams          int
	}{
		"linux, tcp":                {tcp, Config{Ports: 3, Duration: time.Second}, 12},
		"linux, udp":                {udp(tcp), udp(Config{Ports: 3, Duration: time.Second}), 12},
		"linux, tcp, warm-up":       {warm, Config{Follow: true}, 2},
		"linux, udp, warm-up":       {udp(warm), udp(Config{Follow: true}), 2},
		"windows, tcp":              {win(tcp), Config{Ports: 3, Duration: time.Second}, 3},
		"windows, udp":              {win(udp(tcp)), udp(Config{Ports: 3, Duration: time.Second}), 3},
		"windows, tcp, warm-up":     {win(warm), Config{Follow: true}, 1},
		"windows, udp, warm-up":     {win(udp(warm)), udp(Config{Follow: true}), 1},
		"windows, tcp, until told":  {win(Config{Ports: 2, Duration: time.Second}), Config{Ports: 2, Duration: time.Hour}, 2},
		"windows, counted":          {win(Config{Ports: 2, Blocks: 100, Duration: time.Hour, BlockSize: 4096}), Config{Ports: 2, Follow: true}, 2},
		"windows, expected threads": {win(Config{Ports: 2, Duration: time.Second}), Config{Ports: 2, Duration: time.Second, Expect: 2}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, theirs, s, f := linkedPair(t, c.sender, c.receiver)
			checkLinked(t, ours, theirs, c.streams)
			if c.sender.Transport == "udp" {
				checkDatagrams(t, ours, theirs)
			}
			if c.sender.Blocks > 0 && bytesOf(ours, result.Server) != int64(c.streams)*c.sender.Blocks*int64(c.sender.BlockSize) {
				t.Errorf("%d bytes arrived", bytesOf(ours, result.Server))
			}
			if c.sender.Warmup > 0 && ours.Test.Omit != theirs.Test.Omit {
				t.Errorf("warm-ups of %v and %v s", ours.Test.Omit, theirs.Test.Omit)
			}
			for _, rec := range []*recorder{s.rec, f.tests()[0]} {
				for _, code := range []string{"results-missing", "extension-fallback", "streams-unpaired", "overlap"} {
					if n := rec.notice(code); n != nil {
						t.Errorf("%+v", n)
					}
				}
				if n := rec.notice("version-differs"); n == nil {
					t.Error("the other end's release is not told")
				}
			}
		})
	}
}

// checkLinked: both runs hold the same streams, totals, machines and rows.
func checkLinked(t *testing.T, ours, theirs *result.Run, streams int) {
	t.Helper()
	for _, run := range []*result.Run{ours, theirs} {
		for _, n := range run.Notices {
			if n.Code == "overlap" { // a token's sender says hello when its own test has begun
				t.Errorf("a test alone: %s", n.Text)
			}
		}
	}
	if len(ours.Streams) != streams || len(theirs.Streams) != streams {
		t.Fatalf("%d and %d streams, want %d", len(ours.Streams), len(theirs.Streams), streams)
	}
	for i := range ours.Streams {
		a, b := ours.Streams[i], theirs.Streams[i]
		if a.ID != i+1 || b.ID != i+1 || a.Local.Port != b.Remote.Port || a.Remote.Port != b.Local.Port {
			t.Errorf("stream %d: %d %v → %v here, %d %v ← %v there", i, a.ID, a.Local, a.Remote, b.ID, b.Local, b.Remote)
		}
		if diff := cmp.Diff(a.Sender, b.Sender); diff != "" || a.Sender == nil {
			t.Errorf("stream %d, sender: %s", a.ID, diff)
		}
		if diff := cmp.Diff(a.Receiver, b.Receiver); diff != "" || a.Receiver == nil {
			t.Errorf("stream %d, receiver: %s", a.ID, diff)
		}
		if diff := cmp.Diff(a.TCP, b.RemoteTCP); diff != "" {
			t.Errorf("stream %d, kernel of the sender: %s", a.ID, diff)
		}
		if diff := cmp.Diff(a.RemoteTCP, b.TCP); diff != "" {
			t.Errorf("stream %d, kernel of the receiver: %s", a.ID, diff)
		}
	}
	for name, run := range map[string]*result.Run{"sender": ours, "receiver": theirs} {
		checkRows(t, run, run.End)
		if m := run.Machines; m == nil || m.Client == nil || m.Server == nil || m.Client.Cores != 10 || m.Server.Cores != 20 {
			t.Errorf("%s: machines %+v", name, run.Machines)
		}
		if diff := cmp.Diff(ours.CPU, run.CPU); diff != "" || run.CPU.Client == nil || run.CPU.Server == nil && ours.Test.Transport == "tcp" {
			t.Errorf("%s: CPU %+v %s", name, run.CPU, diff)
		}
		if h := run.Hosts; h.Client == nil || h.Server == nil || h.Client.OS != "windows" || h.Server.OS != "linux" {
			t.Errorf("%s: hosts %+v", name, run.Hosts)
		}
		if w := run.Wire; !w.Extension || w.PeerVersion != map[string]string{"sender": "2", "receiver": "1"}[name] {
			t.Errorf("%s: wire %+v", name, run.Wire)
		}
		for _, e := range []result.End{result.Client, result.Server} {
			if len(run.Intervals(e)) == 0 {
				t.Errorf("%s: no rows of the %s", name, e)
			}
		}
	}
	if ours.Hosts.Server.Name != "" || theirs.Hosts.Client.Name != "sender" {
		t.Errorf("a stranger learns %+v; the receiver learns %+v", ours.Hosts.Server, theirs.Hosts.Client)
	}
}

// checkDatagrams: the loss is what was sent less what arrived, at both ends the same.
func checkDatagrams(t *testing.T, ours, theirs *result.Run) {
	t.Helper()
	for i := range ours.Streams {
		a, b := ours.Streams[i].UDP, theirs.Streams[i].UDP
		if a == nil || a.Loss == nil || b == nil || b.Loss == nil {
			t.Errorf("stream %d: %+v, %+v", i+1, a, b)
			continue
		}
		if diff := cmp.Diff(a.Loss, b.Loss); diff != "" {
			t.Errorf("stream %d: %s", i+1, diff)
		}
		if l := a.Loss; l.Sent == 0 || l.Sent < *ours.Streams[i].Sender.Packets || l.Lost < 0 || l.Lost > l.Sent/2 {
			t.Errorf("stream %d: %+v", i+1, l)
		}
	}
}

// TestQuietAndOff: no live rows to an end that wants none; nothing at all where one is plain.
func TestQuietAndOff(t *testing.T) {
	for _, c := range []struct {
		sender, receiver string
		ours, theirs     bool // has rows of the other end
		linked           bool
	}{
		{"quiet", "", false, true, true},
		{"", "quiet", true, false, true},
		{"quiet", "quiet", false, false, true},
		{"", "off", false, false, false},
		{"off", "", false, false, false},
	} {
		for _, windows := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s-%s-%v", c.sender, c.receiver, windows), func(t *testing.T) {
				t.Parallel()
				ours, theirs, s, f := linkedPair(t,
					Config{Ports: 1, Threads: 1, Duration: time.Second, Windows: windows, Extension: c.sender},
					Config{Duration: time.Second, Extension: c.receiver})
				for run, rows := range map[*result.Run]bool{ours: c.ours, theirs: c.theirs} {
					if got := len(run.Intervals(run.End.Other())) > 0; got != rows {
						t.Errorf("%s: rows of the other end: %v", run.End, got)
					}
					st := run.Streams[0]
					if got := st.Sender != nil && st.Receiver != nil; got != c.linked || run.Wire.Extension != c.linked {
						t.Errorf("%s: both ends' totals: %v", run.End, got)
					}
				}
				for _, rec := range []*recorder{s.rec, f.tests()[0]} {
					if rec.notice("extension-fallback") != nil || rec.notice("results-missing") != nil {
						t.Errorf("%+v", rec.run().Notices)
					}
				}
			})
		}
	}
}

// TestTimesDiffer: what the ends measure is compared at both.
func TestTimesDiffer(t *testing.T) {
	for _, windows := range []bool{false, true} {
		t.Run(fmt.Sprint(windows), func(t *testing.T) {
			t.Parallel()
			_, _, s, f := linkedPair(t,
				Config{Ports: 1, Threads: 1, Warmup: time.Second, Duration: time.Second, Windows: windows},
				Config{Duration: 2 * time.Second})
			for _, rec := range []*recorder{s.rec, f.tests()[0]} {
				n := rec.notice("times-differ")
				if n == nil || !contains(n.Text, "1 s after a warm-up of 1 s") || !contains(n.Text, "2 s after a warm-up of 0 s") {
					t.Errorf("%+v", n)
				}
			}
		})
	}
}

// TestInterruptLinked: whoever is stopped, both have what was measured so far, of both ends.
func TestInterruptLinked(t *testing.T) {
	for _, windows := range []bool{false, true} {
		for _, who := range []string{"sender", "receiver"} {
			for _, transport := range []string{"tcp", "udp"} {
				t.Run(fmt.Sprintf("%s-%v-%s", who, windows, transport), func(t *testing.T) {
					t.Parallel()
					c := Config{Ports: 1, Threads: 1, Duration: time.Hour, Windows: windows, Bitrate: 80e6}
					r := Config{Duration: time.Hour, OneOff: true}
					if transport == "udp" {
						c.Transport, c.BlockSize, c.Bitrate, r.Transport = "udp", 1000, 1e6, "udp"
					}
					f := serve(t, r, nil)
					c.Host = "127.0.0.1"
					s := send(t, c, dialFrom("", f.at))
					until(t, "rows of both ends", func() bool {
						run := s.rec.run()
						return len(run.Intervals(result.Client)) > 1 && len(run.Intervals(result.Server)) > 1
					})
					ends := map[string]string{"sender": "interrupted", "receiver": "sender-interrupted"}
					if who == "sender" {
						s.stop(errInterrupt)
					} else {
						f.stop(errInterrupt)
						ends = map[string]string{"sender": "peer-closed", "receiver": "interrupted"}
					}
					if got := s.wait(t); got != ends["sender"] {
						t.Errorf("the sender ends with %q", got)
					}
					theirs := f.finished(t, 0)
					if theirs.Err == nil || theirs.Err.Code != ends["receiver"] {
						t.Errorf("the receiver ends with %+v", theirs.Err)
					}
					for _, run := range []*result.Run{s.rec.run(), theirs} {
						if bytesOf(run, result.Client) == 0 || bytesOf(run, result.Server) == 0 {
							t.Errorf("the %s has %+v", run.End, run.Streams)
						}
					}
				})
			}
		}
	}
}

// TestSecondTest: whoever has the results finds the receiver ready for the next.
func TestSecondTest(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Duration: time.Second, Exclusive: true}, nil)
	for i := range 3 {
		s := send(t, Config{Host: "127.0.0.1", Ports: 1, Threads: 1, Duration: time.Second, Bitrate: 80e6}, dialFrom("", f.at))
		if got := s.wait(t); got != "" {
			t.Fatalf("sender %d ends with %q", i, got)
		}
		if run := s.rec.run(); run.Streams[0].Receiver == nil {
			t.Errorf("sender %d has no figures of the receiver: %+v", i, run.Notices)
		}
	}
}

// TestOverlapTold: a sender hears that it has the receiver not for itself.
func TestOverlapTold(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Follow: true}, nil)
	first := send(t, Config{Host: "127.0.0.1", Ports: 1, Threads: 1, Endless: true, Bitrate: 8e6}, dialFrom("", f.at))
	until(t, "the first test", func() bool { return len(f.tests()) == 1 && f.tests()[0].moved() })
	second := send(t, Config{Host: "127.0.0.1", Ports: 1, Threads: 1, Duration: time.Second, Bitrate: 8e6}, dialFrom("", f.at))
	if got := second.wait(t); got != "" {
		t.Errorf("the second ends with %q", got)
	}
	first.stop(errInterrupt)
	first.wait(t)
	if n := second.rec.notice("overlap"); n == nil || n.End != result.Server || !contains(n.Text, "1 other test") {
		t.Errorf("%+v", n)
	}
	if n := first.rec.notice("overlap"); n != nil && contains(n.Text, "the receiver runs") {
		t.Errorf("the first hears %+v", n)
	}
}

// TestLimits: what a receiver does not take is refused by its word, not by broken connections.
func TestLimits(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Duration: time.Second, MaxStreams: 2}, nil)
	s := send(t, Config{Host: "127.0.0.1", Ports: 1, Threads: 3, Duration: time.Second}, dialFrom("", f.at))
	if got := s.wait(t); got != "limit" {
		t.Errorf("ends with %q", got)
	}
	if e := s.rec.run().Err; e == nil || !e.Remote || !contains(e.Text, "takes 2 connections") {
		t.Errorf("%+v", e)
	}
}

// TestNeighbours: connections of others at the same address are not taken for a sender's own, which
// it has told of.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Follow: true}, nil)
	r := joinRaw(t, f, plainHello)
	say(t, r.nc, 1)
	hear(t, r.nc, 1)
	var conns []net.Conn
	for range 3 {
		nc, err := net.Dial("tcp", f.lns.Data[0].Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		conns = append(conns, nc)
	}
	mine := conns[1]
	r.frame(ext.FrameClient, fmt.Sprintf(`{"streams":[[%d,%d]]}`, mine.LocalAddr().(*net.TCPAddr).Port, mine.RemoteAddr().(*net.TCPAddr).Port))
	say(t, r.nc, WordStart)
	hear(t, r.nc, WordStart)
	if _, err := mine.Write(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	until(t, "a row with data", func() bool { return len(f.tests()) > 0 && f.tests()[0].moved() })
	say(t, r.nc, WordEnd)
	hear(t, r.nc, StateFinished)
	r.frame(ext.FrameResults, `{"error":{"code":"interrupted","interrupted":true}}`)
	run := f.finished(t, 0)
	if len(run.Streams) != 1 || run.Streams[0].Remote.Port != mine.LocalAddr().(*net.TCPAddr).Port || run.Streams[0].Receiver.Bytes != 1000 {
		t.Errorf("%+v", run.Streams)
	}
}

// TestPairUp: streams are known by their ports, and where those were changed by their order.
func TestPairUp(t *testing.T) {
	list := [][2]int{{10, 1}, {11, 1}, {12, 2}}
	for name, c := range map[string]struct {
		ports   [][2]int
		want    []int
		guessed int
	}{
		"in another order":    {[][2]int{{12, 2}, {10, 1}, {11, 1}}, []int{2, 0, 1}, 0},
		"one is missing":      {[][2]int{{12, 2}, {10, 1}}, []int{2, 0}, 0},
		"one is changed":      {[][2]int{{99, 1}, {12, 2}, {10, 1}}, []int{1, 2, 0}, 1},
		"all are changed":     {[][2]int{{99, 1}, {98, 1}, {97, 2}}, []int{0, 1, 2}, 3},
		"one more than told":  {[][2]int{{10, 1}, {11, 1}, {12, 2}, {13, 2}}, []int{0, 1, 2, 3}, 0},
		"two more, a changed": {[][2]int{{13, 2}, {10, 1}, {14, 2}, {15, 2}}, []int{1, 0, 2, 3}, 2},
		"twice the same":      {[][2]int{{10, 1}, {10, 1}}, []int{0, 1}, 1},
	} {
		got, guessed := pairUp(list, c.ports)
		if diff := cmp.Diff(c.want, got); diff != "" || guessed != c.guessed {
			t.Errorf("%s: guessed %d, %s", name, guessed, diff)
		}
	}
}

// TestLossOfRoundTrips: from counts of both ways no loss follows.
func TestLossOfRoundTrips(t *testing.T) {
	n := int64(5)
	all := traffic.Totals{Flows: []traffic.FlowTotal{{Total: result.Total{Packets: &n}}}}
	for mode, want := range map[traffic.MessageMode][]int64{"": {5}, traffic.Jitter: {5}, traffic.RoundTrip: nil} {
		r := &senderRun{c: Config{Transport: "udp", Message: mode}}
		if diff := cmp.Diff(want, r.datagrams(all)); diff != "" {
			t.Errorf("%s: %s", mode, diff)
		}
	}
}

// TestMergeUnknown: figures of streams that this end does not have change nothing, and an end that
// tells nothing of itself takes nothing away.
func TestMergeUnknown(t *testing.T) {
	f := &result.Finish{
		Streams:  []result.Stream{{ID: 1, Direction: result.Up, Sender: &result.Total{Bytes: 1}}},
		Machines: &result.HostTotals{Client: &result.HostTotal{Cores: 1}},
	}
	merge(result.Client, f, nil, &ext.Results{Streams: []ext.StreamResult{{ID: 2, Total: result.Total{Bytes: 5}}}})
	if s := f.Streams[0]; len(f.Streams) != 1 || s.Receiver != nil || s.Sender.Bytes != 1 || f.Machines.Client.Cores != 1 || f.Machines.Server != nil {
		t.Errorf("%+v", f)
	}
}

// TestCallsOfEach: each of a Windows sender's connections makes its own number of calls, over both
// transports, and none waits for another's.
func TestCallsOfEach(t *testing.T) {
	for _, transport := range []plan.Transport{plan.TCP, plan.UDP} {
		for _, rate := range []int64{0, 400e6} {
			t.Run(fmt.Sprintf("%s, %d bit/s", transport, rate), func(t *testing.T) {
				t.Parallel()
				const calls, size = 300, 1000
				f := serve(t, Config{Ports: 3, Transport: transport, Follow: true, CountCalls: true}, nil)
				s := send(t, Config{
					Host: "127.0.0.1", Windows: true, Ports: 3, Threads: 1, Transport: transport, BlockSize: size, Blocks: calls, Bitrate: rate,
					Duration: time.Hour, CountCalls: true,
				}, dialFrom("", f.at))
				if got := s.wait(t); got != "" {
					t.Fatalf("ends with %q: %+v", got, s.rec.run().Err)
				}
				for _, one := range s.rec.run().Streams {
					if one.Sender.Bytes != calls*size || one.IO == nil || one.IO.Completions != calls {
						t.Errorf("stream %d: %d bytes, %+v", one.ID, one.Sender.Bytes, one.IO)
					}
				}
				run := f.finished(t, 0)
				if n := bytesOf(run, result.Server); run.Err != nil || transport == plan.TCP && n != 3*calls*size {
					t.Errorf("the receiver: %d bytes, %+v", n, run.Err)
				}
				for _, n := range s.rec.run().Notices {
					if n.Code == "times-differ" {
						t.Errorf("it says %q", n.Text)
					}
				}
			})
		}
	}
}
