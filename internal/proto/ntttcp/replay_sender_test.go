package ntttcp

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// senderExpectations: the codes of our senders' errors against each recorded receiver, in the
// order of the recorded senders.
var senderExpectations = map[string][]string{
	"01-default-sync-tcp":            {""},
	"02-multi-client-2":              {"", ""},
	"03-nosync-tcp":                  {""},
	"04-sync-udp":                    {""},
	"05-nosync-udp":                  {""},
	"06-receiver-busy":               {"", "busy"},
	"07-sender-ctrl-c":               {"interrupted"},
	"08-receiver-ctrl-c":             {""},
	"09-sender-killed":               {"interrupted"}, // the nearest that a test can do to its own process
	"10-sender-shorter":              {""},
	"11-receiver-shorter":            {""},
	"12-warmup-cooldown":             {""},
	"13-continuous-sender":           {"interrupted"},
	"14-hold-two-tests":              {"", ""},
	"15-multi-client-interrupt":      {"peer-closed", "interrupted"},
	"16-multi-client-warmup":         {"", ""},
	"17-fewer-sender-ports":          {""},
	"18-more-sender-ports":           {"ports-refused"},
	"19-nosync-sender-sync-receiver": {""},
	"20-sync-sender-nosync-receiver": {"connect"},
	"21-L-without-M":                 {"refused"},
	"22-time-69-is-E":                {"interrupted"},
	"23-time-76-is-L":                {"interrupted"},
	"24-time-82-is-R":                {"interrupted"},
	"25-time-88-is-X":                {"interrupted"},
	"26-subconnections":              {""},
	"27-tcp-ipv6":                    {""},
	"28-v134-both":                   {""},
	"29-v140-sender-v143-receiver":   {""},
	"30-v134-sender-v143-receiver":   {""},
}

// TestSenderReplays plays each recorded receiver against our senders.
func TestSenderReplays(t *testing.T) {
	for _, rec := range recordings(t) {
		t.Run(rec.name, func(t *testing.T) {
			t.Parallel()
			want, ok := senderExpectations[rec.name]
			if !ok {
				t.Fatal("no expectation")
			}
			p := newPuppet(t, rec)
			for i, command := range rec.meta.Senders {
				c, sender := configOf(t, command)
				if !sender {
					t.Fatalf("%s is no sender", command)
				}
				p.awaitTurn(t, i)
				s := send(t, c, dialFrom("", p.at))
				p.senders = append(p.senders, s)
			}
			if cut := p.interrupts(); cut != nil {
				until(t, "data of all", func() bool {
					for _, s := range p.senders {
						if !s.rec.moved() {
							return false
						}
					}
					return true
				})
				for _, i := range cut {
					p.senders[i].stop(errInterrupt)
				}
			}
			for i, s := range p.senders {
				if got := s.wait(t); got != want[i] {
					t.Errorf("sender %d ends with %q, want %q", i, got, want[i])
				}
				run := s.rec.run()
				if run.Protocol != protocol {
					continue // it never got as far
				}
				checkRows(t, run, result.Client)
				if moved := bytesOf(run, result.Client) > 0; moved != s.rec.has(result.KindStart) {
					t.Errorf("sender %d: started %v, moved %v", i, s.rec.has(result.KindStart), moved)
				}
			}
			p.check(t)
		})
	}
}

// puppet is a recorded receiver: it answers as the original did, by value, and ends when that did.
type puppet struct {
	rec     recording
	c       Config
	sync    net.Listener
	data    []net.Listener
	packets []*net.UDPConn
	senders []*sending

	mu      sync.Mutex
	wg      sync.WaitGroup
	heard   [][]Word // per sync connection, in the order of their coming
	answers [][]Word
	waiting []net.Conn
	conns   []net.Conn
	running time.Time
	bytes   int64
	over    bool
	state   Word
	last    Word // that it ever replied
	agreed  Word
}

func newPuppet(t *testing.T, rec recording) *puppet {
	c, _ := configOf(t, rec.meta.Receiver)
	p := &puppet{rec: rec, c: c, state: StateIdle}
	host := "127.0.0.1:0"
	if c.Family == 6 {
		host = "[::1]:0"
	}
	listen := func() net.Listener {
		ln, err := net.Listen("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		p.wg.Go(func() { p.accept(ln, ln == p.sync) })
		return ln
	}
	p.mu.Lock()
	if !c.NoSync {
		ln, err := net.Listen("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		p.sync = ln
		p.wg.Go(func() { p.accept(ln, true) })
	}
	for range max(c.Ports, 1) {
		if c.Transport == "udp" {
			u, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(host)))
			if err != nil {
				t.Fatal(err)
			}
			p.packets = append(p.packets, u)
			p.wg.Go(func() { p.swallow(u) })
			continue
		}
		p.data = append(p.data, listen())
	}
	p.mu.Unlock()
	t.Cleanup(func() {
		p.end()
		if p.sync != nil {
			p.sync.Close()
		}
		for _, ln := range p.data {
			ln.Close()
		}
		for _, u := range p.packets {
			u.Close()
		}
		p.wg.Wait()
	})
	return p
}

func (p *puppet) at(port int) netip.AddrPort {
	i := port - DefaultPort
	switch {
	case i < 0 && p.sync != nil:
		return netip.MustParseAddrPort(p.sync.Addr().String())
	case i >= 0 && i < len(p.data):
		return netip.MustParseAddrPort(p.data[i].Addr().String())
	case i >= 0 && i < len(p.packets):
		return netip.MustParseAddrPort(p.packets[i].LocalAddr().String())
	}
	return netip.AddrPort{}
}

func (p *puppet) accept(ln net.Listener, sync bool) {
	for {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.conns = append(p.conns, nc)
		over := p.over
		p.mu.Unlock()
		if over {
			nc.Close()
			continue
		}
		if sync {
			p.wg.Go(func() { p.talk(nc) })
		} else {
			p.wg.Go(func() { p.swallow(nc) })
		}
	}
}

func (p *puppet) swallow(r io.Reader) {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		p.mu.Lock()
		p.bytes += int64(n)
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// talk dispatches by value, as the original does (linux §3.1).
func (p *puppet) talk(nc net.Conn) {
	p.mu.Lock()
	i := len(p.heard)
	p.heard, p.answers = append(p.heard, nil), append(p.answers, nil)
	p.mu.Unlock()
	for {
		w, err := readWord(nc)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.heard[i] = append(p.heard[i], w)
		a := p.answer(nc, w)
		for _, x := range a {
			p.last = x
			p.answers[i] = append(p.answers[i], x)
			_, _ = nc.Write(x.Append(nil))
		}
		p.mu.Unlock()
	}
}

// answer is what the original says to w. p.mu is held.
func (p *puppet) answer(nc net.Conn, w Word) []Word {
	own := Word(p.c.Duration / time.Second)
	switch {
	case w == WordState:
		return []Word{p.state}
	case w == WordEnd && p.state == StateRunning:
		p.state = StateFinished
		p.wg.Go(func() { // it exits
			time.Sleep(5 * time.Millisecond)
			p.end()
		})
		return []Word{StateFinished}
	case w == WordEnd:
		return []Word{p.state}
	case w == WordLast && !p.c.Multi:
		return []Word{p.last}
	case w == WordStart && p.c.Multi:
		p.waiting = append(p.waiting, nc)
		return []Word{WordWait}
	case w == WordStart, w == WordLast:
		p.start()
		for _, x := range p.waiting {
			_, _ = x.Write(WordStart.Append(nil))
		}
		if p.c.Multi {
			return []Word{WordStart, WordStart} // the bug (linux §3.4)
		}
		return []Word{WordStart}
	}
	p.agreed = agreement(own, w, p.c.Multi)
	return []Word{p.agreed}
}

// start is the start of a test. p.mu is held.
func (p *puppet) start() {
	if p.state == StateRunning {
		return
	}
	p.state, p.running = StateRunning, time.Now()
	hold := strings.Contains(p.rec.meta.Receiver, "-H")
	cycle := time.Duration(p.agreed) * beat
	if p.rec.name == "08-receiver-ctrl-c" {
		// As recorded: its connections stayed until the sender's end.
		hold = true
	}
	if cycle == 0 {
		return
	}
	p.wg.Go(func() {
		for end := time.Now().Add(cycle); time.Now().Before(end) && !p.ended(); {
			time.Sleep(5 * time.Millisecond)
		}
		p.mu.Lock()
		p.state = StateFinished
		p.mu.Unlock()
		if !hold {
			p.end()
		}
	})
}

func (p *puppet) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.over
}

// end is the exit of the process.
func (p *puppet) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	for _, nc := range p.conns {
		nc.Close()
	}
}

// awaitTurn waits until the i-th sender may come, as in the recording.
func (p *puppet) awaitTurn(t *testing.T, i int) {
	if i == 0 {
		return
	}
	until(t, "the sender before", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case p.c.Multi:
			return len(p.waiting) == i
		case strings.Contains(p.rec.meta.Receiver, "-H"):
			return p.state == StateFinished
		}
		return p.state == StateRunning && p.bytes > 0
	})
}

// interrupts lists the senders that the recording interrupts.
func (p *puppet) interrupts() []int {
	var out []int
	for _, e := range p.rec.events {
		if e.Ev == "signal" && strings.HasPrefix(e.Who, "sender") && p.rec.name != "18-more-sender-ports" {
			out = append(out, int(e.Who[len("sender")]-'1'))
		}
	}
	return out
}

// check compares what was said with the recording. Ours differs where a time is a command's
// number, and says E at the end of every run that was cut short or had a cool-down.
func (p *puppet) check(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	recorded := map[int][]Word{}
	var order []int
	for _, e := range p.rec.events {
		if e.Kind != "sync" {
			continue
		}
		if e.Ev == "open" && p.sync != nil {
			order = append(order, e.Conn)
		}
		if e.Dir == "s>r" && e.Hex != "" {
			recorded[e.Conn] = append(recorded[e.Conn], e.word())
		}
	}
	if len(order) != len(p.heard) {
		t.Fatalf("%d sync connections, recorded %d", len(p.heard), len(order))
	}
	for i, conn := range order {
		want := recorded[conn]
		for j := range want {
			if j == 1 && want[j].command() {
				want[j]++
			}
		}
		got := p.heard[i]
		// An end that is said or not by a hair's breadth of timers, in the original too.
		if n := len(got); n > 0 && got[n-1] == WordEnd {
			got = got[:n-1]
		}
		if n := len(want); n > 0 && want[n-1] == WordEnd {
			want = want[:n-1]
		}
		if len(got) != len(want) {
			t.Errorf("connection %d: said %v, recorded %v", conn, got, want)
			continue
		}
		for j := range want {
			if got[j] != want[j] {
				t.Errorf("connection %d: said %v, recorded %v", conn, got, want)
				break
			}
		}
	}
}
