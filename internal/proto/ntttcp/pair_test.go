package ntttcp

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// TestPairs runs our sender against our receiver in every way of agreeing.
func TestPairs(t *testing.T) {
	second := time.Second
	for _, c := range []struct {
		name             string
		sender, receiver Config
		streams          int
		cooled           bool
	}{
		{name: "tcp", sender: Config{Ports: 2, Threads: 2, Conns: 2, Duration: second}, receiver: Config{Ports: 2, Duration: second}, streams: 8},
		{name: "udp", sender: Config{Ports: 1, Threads: 2, Duration: second, Transport: "udp", BlockSize: 1400, Bitrate: 20e6}, receiver: Config{Transport: "udp", Duration: second}, streams: 2},
		{name: "tcp, no sync", sender: Config{Ports: 2, Threads: 1, Duration: second, NoSync: true}, receiver: Config{Ports: 2, Duration: second, NoSync: true}, streams: 2},
		{name: "udp, no sync", sender: Config{Ports: 1, Threads: 1, Duration: second, NoSync: true, Transport: "udp", BlockSize: 1000, Bitrate: 20e6}, receiver: Config{Transport: "udp", Duration: second, NoSync: true}, streams: 1},
		{name: "a receiver that follows", sender: Config{Ports: 1, Threads: 2, Duration: 2 * second}, receiver: Config{Follow: true}, streams: 2},
		{name: "follows without sync", sender: Config{Ports: 1, Threads: 2, Duration: second, NoSync: true}, receiver: Config{Follow: true}, streams: 2},
		{name: "follows udp without sync", sender: Config{Ports: 1, Threads: 1, Duration: second, NoSync: true, Transport: "udp", BlockSize: 1000, Bitrate: 20e6}, receiver: Config{Follow: true, Transport: "udp"}, streams: 1},
		{
			name:   "warm-up and cool-down",
			sender: Config{Ports: 1, Threads: 1, Warmup: second, Duration: second, Cooldown: second}, receiver: Config{Warmup: second, Duration: second, Cooldown: second},
			streams: 1, cooled: true,
		},
		{
			name:   "udp with warm-up and cool-down",
			sender: Config{Ports: 1, Threads: 1, Warmup: second, Duration: second, Cooldown: second, Transport: "udp", BlockSize: 1000, Bitrate: 20e6}, receiver: Config{Warmup: second, Duration: second, Transport: "udp"},
			streams: 1, cooled: true,
		},
		{name: "a time that is a command", sender: Config{Ports: 1, Threads: 1, Duration: second}, receiver: Config{Duration: second}, streams: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.receiver.OneOff = true
			f := serve(t, c.receiver, nil)
			c.sender.Host = "127.0.0.1"
			s := send(t, c.sender, dialFrom("", f.at))
			if got := s.wait(t); got != "" {
				t.Errorf("the sender ends with %q", got)
			}
			theirs := f.finished(t, 0)
			if theirs.Err != nil {
				t.Errorf("the receiver ends with %+v", theirs.Err)
			}
			ours := s.rec.run()
			checkRows(t, ours, result.Client)
			checkRows(t, theirs, result.Server)
			if len(ours.Streams) != c.streams || len(theirs.Streams) != c.streams {
				t.Errorf("%d and %d streams, want %d", len(ours.Streams), len(theirs.Streams), c.streams)
			}
			if bytesOf(ours, result.Client) == 0 || bytesOf(theirs, result.Server) == 0 {
				t.Error("no bytes")
			}
			for _, rec := range []*recorder{s.rec, f.tests()[0]} {
				for code, want := range map[string]int{
					result.MilestoneMeasured: 1, result.MilestoneCycleOver: 1, result.MilestoneInterrupt: 0, result.MilestoneNoResult: 0,
					result.MilestoneCooling: count(c.cooled), result.MilestoneWarmedUp: count(c.sender.Warmup > 0),
				} {
					if got := rec.told(code); got != want {
						t.Errorf("%q is told %d times, want %d", code, got, want)
					}
				}
			}
			if err := <-f.served; err != nil {
				t.Errorf("the receiver returns %v", err)
			} else {
				f.served <- nil
			}
		})
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestInterruptEndless: -t 0 ends with an interrupt, which the receiver hears of.
func TestInterruptEndless(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Duration: 2 * time.Second, Exclusive: true}, nil)
	s := send(t, Config{Host: "127.0.0.1", Ports: 1, Threads: 1, Endless: true}, dialFrom("", f.at))
	until(t, "two rows", func() bool { return len(s.rec.run().Rows) >= 2 })
	s.stop(errInterrupt)
	if got := s.wait(t); got != "interrupted" {
		t.Errorf("the sender ends with %q", got)
	}
	run := f.finished(t, 0)
	if run.Err == nil || run.Err.Code != "sender-interrupted" {
		t.Errorf("the receiver ends with %+v", run.Err)
	}
	if s.rec.told(result.MilestonePeerDone) != 1 || s.rec.told(result.MilestoneInterrupt) != 1 || f.tests()[0].told(result.MilestonePeerLeft) != 1 {
		t.Error("not told at both ends")
	}
	if bytesOf(run, result.Server) == 0 || bytesOf(s.rec.run(), result.Client) == 0 {
		t.Error("the partial result is lost")
	}
}

// TestManySenders: 20 addresses and 4 senders at one, at once, each a run of its own.
func TestManySenders(t *testing.T) {
	t.Parallel()
	if !loopbackNet(t) {
		t.Skip("this system has one loopback address only: senders at several need others")
	}
	f := serve(t, Config{Ports: 2, Follow: true}, nil)
	var senders []*sending
	want := map[string]int{}
	for i := range 24 {
		local := fmt.Sprintf("127.0.9.%d", min(i, 20)+1)
		threads := i%3 + 1
		want[fmt.Sprintf("%s/%d", local, 2*threads)]++
		c := Config{Host: "127.0.0.1", Ports: 2, Threads: threads, Endless: true, Bitrate: 5e6, BlockSize: 8 << 10}
		senders = append(senders, send(t, c, dialFrom(local, f.at)))
	}
	// Until everybody has seen something; then all stop.
	until(t, "all to run at once", func() bool {
		runs := f.tests()
		if len(runs) < len(senders) {
			return false
		}
		for _, s := range senders {
			runs = append(runs, s.rec)
		}
		for _, r := range runs {
			if !r.moved() {
				return false
			}
		}
		return true
	})
	for _, s := range senders {
		s.stop(errInterrupt)
	}
	got := map[string]int{}
	for i, s := range senders {
		if got := s.wait(t); got != "interrupted" {
			t.Errorf("sender %d ends with %q", i, got)
		}
		run := f.finished(t, i)
		if run.Err == nil || run.Err.Code != "sender-interrupted" {
			t.Errorf("run %d ends with %+v", i, run.Err)
		}
		checkRows(t, run, result.Server)
		got[fmt.Sprintf("%s/%d", run.Streams[0].Remote.Host, len(run.Streams))]++
	}
	for k, n := range want {
		if got[k] != n {
			t.Errorf("%s: %d runs, want %d (all: %v)", k, got[k], n, got)
		}
	}
}

func loopbackNet(t *testing.T) bool {
	ln, err := net.Listen("tcp", "127.0.9.1:0")
	if err != nil {
		return false
	}
	ln.Close()
	return true
}

// visitor is a raw connection to the sync port.
func visitor(t *testing.T, f *fixture) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", f.lns.Sync.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = nc.SetReadDeadline(time.Now().Add(15 * time.Second))
	t.Cleanup(func() { nc.Close() })
	return nc
}

func say(t *testing.T, nc net.Conn, words ...Word) {
	t.Helper()
	for _, w := range words {
		if _, err := nc.Write(w.Append(nil)); err != nil {
			t.Fatal(err)
		}
	}
}

func hear(t *testing.T, nc net.Conn, want ...Word) {
	t.Helper()
	for _, w := range want {
		got, err := readWord(nc)
		if err != nil || got != w {
			t.Fatalf("heard %v (%v), want %v", got, err, w)
		}
	}
}

// TestSplitAndCoalesced: however words are cut, they are the same words.
func TestSplitAndCoalesced(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Duration: time.Second, OneOff: true}, nil)
	nc := visitor(t, f)
	for _, b := range WordState.Append(nil) {
		if _, err := nc.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // so that segments are apart; nothing depends on it
	}
	hear(t, nc, StateFullbore)
	both := append(Word(82).Append(nil), WordStart.Append(nil)...)
	if _, err := nc.Write(both); err != nil {
		t.Fatal(err)
	}
	hear(t, nc, 82, WordStart)
	say(t, nc, WordEnd)
	hear(t, nc, StateFinished)
	if run := f.finished(t, 0); run.Err == nil || run.Err.Code != "sender-interrupted" {
		t.Errorf("ends with %+v", run.Err)
	}
}

// TestStrangers: field case F62.
func TestStrangers(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Duration: time.Second, OneOff: true}, func(r *Receiver) { r.Timeouts.Header = 2 * time.Second })
	silent := visitor(t, f)
	web := visitor(t, f)
	if _, err := web.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(web); len(b) > 0 {
		t.Errorf("a web client is answered with %x", b)
	}
	half := visitor(t, f)
	_, _ = half.Write([]byte{0, 0})
	s := send(t, Config{Host: "127.0.0.1", Ports: 1, Threads: 1, Duration: time.Second}, dialFrom("", f.at))
	for name, nc := range map[string]net.Conn{"silent": silent, "half a word": half} {
		if b, _ := io.ReadAll(nc); len(b) > 0 {
			t.Errorf("%s is answered with %x", name, b)
		}
	}
	if got := s.wait(t); got != "" {
		t.Errorf("the sender ends with %q", got)
	}
	if run := f.finished(t, 0); run.Err != nil {
		t.Errorf("the run ends with %+v", run.Err)
	}
}

// TestFailedSetup: field case F59: the receiver is back at its start.
func TestFailedSetup(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Ports: 2, Duration: time.Second, OneOff: true}, nil)
	s := send(t, Config{Host: "127.0.0.1", Ports: 4, Threads: 1, Duration: time.Second}, dialFrom("", f.at))
	if got := s.wait(t); got != "ports-refused" {
		t.Errorf("the sender ends with %q", got)
	}
	e := s.rec.run().Err
	if want := "port 5003, 5004 "; e == nil || !contains(e.Text, want) || !contains(e.Text, "-P") {
		t.Errorf("says %+v", e)
	}
	s = send(t, Config{Host: "127.0.0.1", Ports: 1, Threads: 1, Duration: time.Second}, dialFrom("", f.at))
	if got := s.wait(t); got != "" {
		t.Errorf("the next sender ends with %q", got)
	}
	if run := f.finished(t, 0); run.Err != nil || len(run.Streams) != 1 {
		t.Errorf("%d streams, %+v", len(run.Streams), run.Err)
	}
	if n := len(f.tests()); n != 1 {
		t.Errorf("%d runs", n)
	}
}

func contains(s, part string) bool {
	for i := 0; i+len(part) <= len(s); i++ {
		if s[i:i+len(part)] == part {
			return true
		}
	}
	return false
}

// TestMultiClient: seven wait, the eighth is refused, one that leaves is forgotten, and each gets
// exactly one R.
func TestMultiClient(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Multi: true, Duration: 30 * time.Second, OneOff: true}, nil)
	var waiting []net.Conn
	join := func() net.Conn {
		nc := visitor(t, f)
		say(t, nc, WordState)
		hear(t, nc, StateIdle)
		say(t, nc, 9)
		hear(t, nc, 30) // its own time, whatever is proposed
		return nc
	}
	for range maxWaiting {
		nc := join()
		say(t, nc, WordStart)
		hear(t, nc, WordWait)
		waiting = append(waiting, nc)
	}
	eighth := join()
	say(t, eighth, WordStart)
	hear(t, eighth, WordEnd)
	gone := waiting[0]
	waiting = waiting[1:]
	gone.Close()
	// Its place is free when that was noticed.
	until(t, "a free place", func() bool {
		nc := join()
		say(t, nc, WordStart)
		w, err := readWord(nc)
		if err != nil || w != WordWait {
			return false
		}
		waiting = append(waiting, nc)
		return true
	})
	data, err := net.Dial("tcp", f.lns.Data[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(data, endless{}) }() // ends when the receiver closes
	defer data.Close()
	last := join()
	say(t, last, WordLast)
	hear(t, last, WordStart)
	for _, nc := range waiting {
		hear(t, nc, WordStart)
	}
	until(t, "a row with data", func() bool {
		return len(f.tests()) > 0 && slices.ContainsFunc(f.tests()[0].run().Intervals(result.Server), func(iv result.Interval) bool {
			return slices.ContainsFunc(iv.Sums, func(s result.IntervalSum) bool { return s.Bytes > 0 })
		})
	})
	say(t, last, WordEnd) // it is interrupted
	hear(t, last, StateFinished)
	run := f.finished(t, 0)
	if run.Err == nil || run.Err.Code != "sender-interrupted" || bytesOf(run, result.Server) == 0 {
		t.Errorf("the run: %d bytes, %+v", bytesOf(run, result.Server), run.Err)
	}
	for _, nc := range append(waiting, last) {
		if b, _ := io.ReadAll(nc); len(b) > 0 {
			t.Errorf("more than one R: %x", b)
		}
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return len(b), nil
}

// TestFirstToStart: two may set up at once; the first that says R has the only slot, and nothing of
// the other is kept.
func TestFirstToStart(t *testing.T) {
	t.Parallel()
	if !loopbackNet(t) {
		t.Skip("this system has one loopback address only: senders at several need others")
	}
	f := serve(t, Config{Duration: 30 * time.Second, Exclusive: true}, nil)
	join := func(local string) (sync, data net.Conn) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}}
		dial := func(ln net.Listener) net.Conn {
			nc, err := d.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_ = nc.SetReadDeadline(time.Now().Add(15 * time.Second))
			t.Cleanup(func() { nc.Close() })
			return nc
		}
		sync = dial(f.lns.Sync)
		say(t, sync, WordState)
		hear(t, sync, StateFullbore)
		say(t, sync, 1)
		hear(t, sync, 30)
		return sync, dial(f.lns.Data[0])
	}
	first, _ := join("127.0.9.41")
	second, lost := join("127.0.9.42")
	say(t, first, WordStart)
	hear(t, first, WordStart)
	say(t, second, WordStart)
	hear(t, second, WordEnd)
	if _, err := lost.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("the refused sender's connection lives on: %v", err)
	}
	third := visitor(t, f)
	say(t, third, WordState)
	hear(t, third, StateRunning)
	say(t, first, WordEnd)
	hear(t, first, StateFinished)
	f.finished(t, 0)
	say(t, third, WordState) // it may ask again
	hear(t, third, StateFullbore)
}

// TestSenderGivesUp: no state of a receiver holds a sender.
func TestSenderGivesUp(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []Word // before it falls silent
		hangUp  bool   // instead
		want    string
	}{
		{"says nothing", nil, false, "no-answer"},
		{"agrees to nothing", []Word{StateIdle}, false, "no-answer"},
		{"does not start", []Word{StateIdle, 1}, false, "no-answer"},
		{"hangs up", []Word{StateIdle}, true, "peer-closed"},
		{"hangs up while it has us wait", []Word{StateIdle, 1, WordWait}, true, "peer-closed"},
		{"refuses the time", []Word{StateIdle, -1}, false, "refused"},
		{"refuses the start", []Word{StateIdle, 1, WordEnd}, false, "refused"},
		{"is busy", []Word{StateRunning}, false, "busy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			defer wg.Wait()
			defer ln.Close()
			wg.Go(func() {
				nc, err := ln.Accept()
				if err != nil {
					return
				}
				defer nc.Close()
				for _, a := range c.answers {
					if _, err := readWord(nc); err != nil {
						return
					}
					_, _ = nc.Write(a.Append(nil))
				}
				if !c.hangUp {
					_, _ = io.Copy(io.Discard, nc)
				}
			})
			data, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts
			if err != nil {
				t.Fatal(err)
			}
			defer data.Close()
			f := &fixture{lns: Listeners{Sync: ln, Data: []net.Listener{data}}}
			rec := newRecorder()
			s := &Sender{Config: Config{Host: "127.0.0.1", Ports: 1, Threads: 1, Duration: time.Second}, Timeouts: quick(), dial: dialFrom("", f.at)}
			s.Timeouts.Answer = 300 * time.Millisecond
			if got := code(s.Run(context.Background(), rec)); got != c.want {
				t.Errorf("ends with %q, want %q", got, c.want)
			}
			if rec.has(result.KindStart) {
				t.Error("it started")
			}
		})
	}
}

// TestSenderLingers: a real receiver notices the end only by what happens on connections that
// are still open after it; the sync connection is the last.
func TestSenderLingers(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, recording{meta: recordedMeta{Receiver: "ntttcp -r x -P 1 -t 1 -H"}})
	rec := newRecorder()
	s := &Sender{Config: Config{Host: "127.0.0.1", Ports: 1, Threads: 1, Duration: time.Second, Interval: beat / 4}, Timeouts: quick(), second: beat, dial: dialFrom("", p.at)}
	s.Timeouts.Linger = 400 * time.Millisecond
	var over time.Time // the linger has begun by then, and Run has not returned
	if err := s.Run(context.Background(), sinkFunc(func(e result.Event) {
		rec.Event(e)
		if e.Kind == result.KindFinish {
			over = time.Now()
		}
	})); err != nil {
		t.Errorf("ends with %v", err)
	}
	if d := time.Since(over); d < s.Timeouts.Linger/2 {
		t.Errorf("left after %v", d)
	}
}

type sinkFunc func(result.Event)

func (f sinkFunc) Event(e result.Event) { f(e) }

// TestVanished: a sender that falls silent is missed, also when nothing tells.
func TestVanished(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Endless: true, Exclusive: true}, func(r *Receiver) { r.Timeouts.Silence = 2 * beat })
	nc := visitor(t, f)
	say(t, nc, WordState)
	hear(t, nc, StateFullbore)
	say(t, nc, 0)
	hear(t, nc, 0)
	data, err := net.Dial("tcp", f.lns.Data[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	say(t, nc, WordStart)
	hear(t, nc, WordStart)
	_, _ = data.Write(make([]byte, 1<<16))
	run := f.finished(t, 0)
	if run.Err == nil || run.Err.Code != "peer-vanished" {
		t.Errorf("ends with %+v", run.Err)
	}
	// It takes the next one.
	s := send(t, Config{Host: "127.0.0.1", Ports: 1, Threads: 1, Endless: true}, dialFrom("", f.at))
	until(t, "rows", func() bool { return len(s.rec.run().Rows) >= 1 })
	s.stop(errInterrupt)
	s.wait(t)
	f.finished(t, 1)
}

// TestNothingComes: a test that was started and has no connection ends with its cycle.
func TestNothingComes(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Duration: time.Second, OneOff: true}, nil)
	nc := visitor(t, f)
	say(t, nc, WordStart) // without a state or a time: its own holds
	hear(t, nc, WordStart)
	if run := f.finished(t, 0); run.Err == nil || run.Err.Code != "no-data" {
		t.Errorf("ends with %+v", run.Err)
	}
	if err := <-f.served; err != nil {
		t.Error(err)
	} else {
		f.served <- nil
	}
}

// TestTokens: a Windows sender, from the byte table (windows §3.2).
func TestTokens(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Ports: 2, Duration: time.Second, OneOff: true}, nil)
	const threads = 2
	var data, tokens []net.Conn
	dial := func(ln net.Listener) net.Conn {
		nc, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		return nc
	}
	for i := range threads {
		data = append(data, dial(f.lns.Data[i]))
	}
	for i := range threads {
		tokens = append(tokens, dial(f.lns.Tokens[i]))
		if _, err := tokens[i].Write([]byte{Token}); err != nil {
			t.Fatal(err)
		}
	}
	for i, nc := range tokens {
		_ = nc.SetReadDeadline(time.Now().Add(10 * time.Second))
		var b [1]byte
		if _, err := io.ReadFull(nc, b[:]); err != nil || b[0] != Token {
			t.Fatalf("token %d: %x, %v", i, b, err)
		}
		nc.Close()
	}
	for _, nc := range data {
		go func() { _, _ = io.Copy(nc, endless{}) }() // ends when the receiver closes
	}
	run := f.finished(t, 0)
	if run.Err != nil || len(run.Streams) != threads || run.NTTTCP.Dialect != "windows" {
		t.Errorf("%d streams in the way of %v: %+v", len(run.Streams), run.NTTTCP, run.Err)
	}
	checkRows(t, run, result.Server)
}
