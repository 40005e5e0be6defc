package osnet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// What comes between bind and connect is handed back, each source's in order: the
// stream's own apart from everybody else's.
func TestConnectBesideHandsBackWhatItCaught(t *testing.T) {
	type end struct{ listen, host string }
	ends := []end{{"0.0.0.0:0", "127.0.0.1"}, {"0.0.0.0:0", "127.0.0.3"}, {"127.0.0.1:0", "127.0.0.1"}}
	if Capabilities().IPv6 {
		ends = append(ends, end{"[::]:0", "127.0.0.1"}, end{"[::]:0", "::1"}, end{"[::1]:0", "::1"})
	}
	for _, e := range ends {
		t.Run(e.listen+" "+e.host, func(t *testing.T) {
			p := wildcard(t, e.listen)
			own, x, y := dialUDP(t, p, e.host), dialUDP(t, p, e.host), dialUDP(t, p, e.host)
			say(t, own, "greeting")
			b := make([]byte, 2000)
			_, from, to, _, err := p.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			local := netip.AddrPortFrom(to, p.LocalAddr().Port())
			c, stray, notices, err := connectBeside(context.Background(), local, from, Options{}, func() {
				say(t, x, "x1")
				say(t, own, "early 1")
				say(t, y, "y1")
				say(t, own, "")
				say(t, x, "x2")
			})
			if err != nil || len(notices) > 0 {
				t.Fatal(notices, err)
			}
			defer c.Close()
			if err := c.Net().SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if got := c.Local(); got.Host != e.host || got.Port != int(local.Port()) || ownAddr(own) != addrPort(c.Remote().Host, uint16(c.Remote().Port)) {
				t.Errorf("a stream %v to %v, want %v to %v", c.Local(), c.Remote(), local, from)
			}
			early := c.Early()
			if got := fmt.Sprintf("%q", early); got != `["early 1" ""]` {
				t.Errorf("early %s", got)
			}
			if len(c.Early()) != 0 {
				t.Error("early datagrams are handed out twice")
			}
			var got []string
			for _, s := range stray {
				got = append(got, fmt.Sprint(s.From, " ", string(s.Data)))
			}
			if want := []string{ownAddr(x).String() + " x1", ownAddr(y).String() + " y1", ownAddr(x).String() + " x2"}; !slices.Equal(got, want) {
				t.Errorf("stray %q, want %q", got, want)
			}
			// From now on each has its own.
			say(t, own, "data")
			say(t, x, "x3")
			hear(t, c, "data")
			if n, from, _, _, err := p.Read(b); err != nil || from != ownAddr(x) || string(b[:n]) != "x3" {
				t.Errorf("the server's socket: %q from %v, %v", b[:n], from, err)
			}
			say(t, c, "answer")
			hear(t, own, "answer")
			say(t, c, "answer 2")
			hear(t, own, "answer 2")
		})
	}
}

// Streams are opened while many sources send: every datagram comes out exactly once, at
// its own stream or at the server's socket.
func TestConnectBesideUnderTraffic(t *testing.T) {
	const sources, streams, each = 6, 4, 400
	p := wildcard(t, "0.0.0.0:0")
	port := p.LocalAddr().Port()
	type place struct{ server, stray, early, own int }
	var mu sync.Mutex
	seen := make([][each]int, sources)
	where := make([]place, sources)
	// The credit bounds what is under way to less than any socket's buffer holds, so that
	// nothing may get lost. Whoever accounts for a datagram gives one back.
	credit := make(chan struct{}, 64)
	var under sync.WaitGroup
	account := func(b []byte, at func(*place)) (source int) {
		mu.Lock()
		defer mu.Unlock()
		source = int(binary.BigEndian.Uint32(b))
		seen[source][binary.BigEndian.Uint32(b[4:])]++
		at(&where[source])
		<-credit
		under.Done()
		return source
	}
	clients := make([]*Conn, sources)
	number := map[netip.AddrPort]int{}
	for i := range clients {
		clients[i] = dialUDP(t, p, "127.0.0.1")
		number[ownAddr(clients[i])] = i
	}
	var conns []*Conn
	var readers sync.WaitGroup
	read := func(c *Conn, source int) {
		defer readers.Done()
		b := make([]byte, 100)
		for {
			n, err := c.Net().Read(b)
			if err != nil {
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error(err)
				}
				return
			}
			if got := account(b[:n], func(w *place) { w.own++ }); got != source {
				t.Errorf("a datagram of source %d came to the stream of %d", got, source)
			}
		}
	}
	// The server: opens a stream for each of the first sources at its first datagram.
	readers.Add(1)
	go func() {
		defer readers.Done()
		b := make([]byte, 100)
		opened := map[netip.AddrPort]bool{}
		for {
			n, from, to, _, err := p.Read(b)
			if err != nil {
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error(err)
				}
				return
			}
			source := account(b[:n], func(w *place) { w.server++ })
			if number[from] != source {
				t.Errorf("source %d is %v", source, from)
			}
			if source >= streams || opened[from] {
				continue
			}
			opened[from] = true
			c, stray, _, err := ConnectBeside(context.Background(), netip.AddrPortFrom(to, port), from, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			for _, s := range stray {
				if got := account(s.Data, func(w *place) { w.stray++ }); number[s.From] != got || got == source {
					t.Errorf("stray of source %d from %v at the stream of %d", got, s.From, source)
				}
			}
			for _, d := range c.Early() {
				if got := account(d, func(w *place) { w.early++ }); got != source {
					t.Errorf("early datagram of source %d at the stream of %d", got, source)
				}
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			readers.Add(1)
			go read(c, source)
		}
	}()
	var senders sync.WaitGroup
	for i, c := range clients {
		under.Add(each)
		senders.Go(func() {
			b := make([]byte, 8)
			binary.BigEndian.PutUint32(b, uint32(i))
			for k := range each {
				binary.BigEndian.PutUint32(b[4:], uint32(k))
				credit <- struct{}{}
				if _, err := c.Net().Write(b); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all := make(chan struct{})
	go func() {
		senders.Wait()
		under.Wait()
		close(all)
	}()
	select {
	case <-all:
	case <-time.After(time.Minute):
		t.Error("datagrams are missing after a minute")
	}
	_ = p.SetReadDeadline(time.Now())
	mu.Lock()
	for _, c := range conns {
		_ = c.Net().SetReadDeadline(time.Now())
	}
	mu.Unlock()
	readers.Wait()
	for _, c := range conns {
		_ = c.Close()
	}
	for i := range seen {
		for k, n := range seen[i] {
			if n != 1 {
				t.Errorf("datagram %d of source %d came %d times", k, i, n)
			}
		}
		if w := where[i]; i >= streams && (w.own > 0 || w.early > 0) || i < streams && w.own+w.early == 0 {
			t.Errorf("source %d: %+v", i, w)
		}
	}
	t.Logf("%+v", where)
}

func TestConnectBesideErrors(t *testing.T) {
	p := wildcard(t, "127.0.0.1:0")
	port := p.LocalAddr().Port()
	_, _, _, err := ConnectBeside(context.Background(), addrPort("127.0.0.1", port), addrPort("fd00::1", 9), Options{})
	var re *ResolveError
	if !errors.As(err, &re) {
		t.Errorf("two families: %v", err)
	}
	_, _, _, err = ConnectBeside(context.Background(), addrPort("192.0.2.1", port), addrPort("127.0.0.1", 9), Options{})
	var ae *AddrError
	if !errors.As(err, &ae) || ae.Reason != ForeignAddress {
		t.Errorf("a foreign address: %v", err)
	}
	// A socket that was not made by ListenUDP does not share its port.
	other := dialUDP(t, p, "127.0.0.1")
	_, _, _, err = ConnectBeside(context.Background(), ownAddr(other), addrPort("127.0.0.1", 9), Options{})
	if !errors.As(err, &ae) || ae.Reason != PortTaken {
		t.Errorf("a port that is not shared: %v", err)
	}
	c, stray, _, err := ConnectBeside(context.Background(), netip.AddrPortFrom(netip.Addr{}, port), addrPort("127.0.0.1", 9), Options{})
	if err != nil || len(stray) > 0 {
		t.Fatal(stray, err)
	}
	if got := c.Local(); got.Host != "127.0.0.1" || got.Port != int(port) {
		t.Errorf("local address left open: %v", got)
	}
	_ = c.Close()
}
