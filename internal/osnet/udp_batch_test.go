package osnet

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"
)

// receiverWays are what a system may be able to do, this one's own first.
func receiverWays() map[string]Caps {
	can := Capabilities()
	ways := map[string]Caps{"all": can}
	off := can
	off.Batch = false
	ways["one by one"] = off
	off = can
	off.Coalesce = false
	ways["not joined"] = off
	off.Batch = false
	ways["plain"] = off
	return ways
}

// packet is one received datagram.
type packet struct {
	from netip.AddrPort
	to   netip.Addr
	at   int64
	data string
	cut  bool
}

// take receives until there are n.
func take(t *testing.T, r *PacketReceiver, n int) []packet {
	t.Helper()
	var out []packet
	for len(out) < n {
		got, err := r.Receive()
		if err != nil || got < 1 {
			t.Fatalf("%d of %d are there: %d, %v", len(out), n, got, err)
		}
		for i := range got {
			data, from, cut := r.Message(i)
			to, at := r.Local(i)
			out = append(out, packet{from, to, at, string(data), cut})
		}
	}
	return out
}

func TestPacketReceiver(t *testing.T) {
	const size = 100
	texts := []string{"a", "", string(bytes.Repeat([]byte{'b'}, size-1)), string(bytes.Repeat([]byte{'c'}, size)), string(bytes.Repeat([]byte{'d'}, size+1)), string(bytes.Repeat([]byte{'e'}, 5*size)), "f"}
	type ends struct {
		listen string
		hosts  []string
	}
	all := []ends{{"0.0.0.0:0", []string{"127.0.0.1"}}}
	if Capabilities().IPv6 {
		all = append(all, ends{"[::]:0", []string{"::1", "127.0.0.1"}}, ends{"[::1]:0", []string{"::1"}})
	}
	for name, can := range receiverWays() {
		for _, e := range all {
			t.Run(name+" "+e.listen, func(t *testing.T) {
				p := wildcard(t, e.listen)
				r, err := newPacketReceiver(p, size, 4, can)
				if err != nil {
					t.Fatal(err)
				}
				before := time.Now().Add(-time.Second).UnixNano()
				for _, host := range e.hosts {
					a, b := dialUDP(t, p, host), dialUDP(t, p, host)
					for _, text := range texts {
						say(t, a, text)
						say(t, b, text)
					}
					got := map[netip.AddrPort][]packet{}
					for _, k := range take(t, r, 2*len(texts)) {
						got[k.from] = append(got[k.from], k)
					}
					for _, c := range []*Conn{a, b} {
						its := got[ownAddr(c)]
						if len(its) != len(texts) {
							t.Fatalf("%d datagrams of %v, want %d: %v", len(its), ownAddr(c), len(texts), got)
						}
						for i, k := range its {
							want := texts[i][:min(size, len(texts[i]))]
							if k.data != want || k.cut != (len(texts[i]) > size) {
								t.Errorf("datagram %d of %d bytes came as %d, cut: %v", i, len(texts[i]), len(k.data), k.cut)
							}
							if p.info && k.to != netip.MustParseAddr(host) {
								t.Errorf("sent to %v, told %v", host, k.to)
							}
							if p.stamps != (k.at != 0) || k.at != 0 && (k.at < before || k.at > time.Now().Add(time.Second).UnixNano()) {
								t.Errorf("stamp %d (told: %v)", k.at, p.stamps)
							}
						}
					}
				}
			})
		}
	}
}

// What the sender's system did not cut, or the receiver's has joined, comes out as single
// datagrams, whoever else sends in between.
func TestPacketReceiverJoined(t *testing.T) {
	can := Capabilities()
	if !can.Segment { // then nothing comes joined, and TestPacketReceiver has seen it all
		return
	}
	for name, can := range receiverWays() {
		t.Run(name, func(t *testing.T) {
			p := wildcard(t, "127.0.0.1:0")
			r, err := newPacketReceiver(p, 100, 3, can)
			if err != nil {
				t.Fatal(err)
			}
			a, b := dialUDP(t, p, "127.0.0.1"), dialUDP(t, p, "127.0.0.1")
			if err := a.SetSegment(10); err != nil {
				t.Fatal(err)
			}
			var whole string
			for i := range 33 {
				whole += fmt.Sprintf("%09d,", i)
			}
			whole += "end" // shorter than the others
			for range 4 {
				say(t, a, whole)
				say(t, b, "between")
			}
			r.Release() // of what was never taken
			var joined, between string
			for _, k := range take(t, r, 4*35) {
				switch k.from {
				case ownAddr(a):
					if len(k.data) > 10 {
						t.Fatalf("%d bytes in one datagram", len(k.data))
					}
					joined += k.data
				case ownAddr(b):
					between += k.data
				}
			}
			want := ""
			for range 4 {
				want += whole
			}
			if n, bytes := r.Joined(); can.Coalesce && (n != 34 || bytes != len(whole)) || !r.coalesce && n != 0 || r.Batched() != can.Batch {
				t.Errorf("joined %d datagrams of %d bytes, batched: %v", n, bytes, r.Batched())
			}
			if joined != want || between != "betweenbetweenbetweenbetween" {
				t.Errorf("%q, %q", joined, between)
			}
		})
	}
}

func TestPacketReceiverEnds(t *testing.T) {
	for name, can := range receiverWays() {
		t.Run(name, func(t *testing.T) {
			p := wildcard(t, "127.0.0.1:0")
			r, err := newPacketReceiver(p, 100, 4, can)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.SetReadDeadline(time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			if n, err := r.Receive(); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("after the deadline: %d, %v", n, err)
			}
			if err := p.SetReadDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
			say(t, dialUDP(t, p, "127.0.0.1"), "hello")
			if k := take(t, r, 1); k[0].data != "hello" {
				t.Fatalf("%+v", k)
			}
			r.Release()
			r.Release()
			if err := p.SetReadDeadline(time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			if n, err := r.Receive(); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || can.Batch && r.buf != nil {
				t.Fatalf("after the deadline and Release: %d, %v, memory %d", n, err, len(r.buf))
			}
			_ = p.SetReadDeadline(time.Time{})
			say(t, dialUDP(t, p, "127.0.0.1"), "")
			say(t, dialUDP(t, p, "127.0.0.1"), "again")
			if k := take(t, r, 2); k[0].data != "" || k[1].data != "again" {
				t.Fatalf("%+v", k)
			}
			r.Release()
			ended := make(chan error, 2)
			go func() {
				_, err := r.Receive()
				ended <- err
				_, err = r.Receive()
				ended <- err
			}()
			// Whether it waits already or not: a deadline ends it, and so does Close.
			if err := p.SetReadDeadline(time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("a deadline while it waits: %v", err)
			}
			_ = p.SetReadDeadline(time.Time{})
			_ = p.Close()
			if err := <-ended; !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("Close while it waits: %v", err)
			}
			if n, err := r.Receive(); n != 0 || !errors.Is(err, net.ErrClosed) {
				t.Errorf("after Close: %d, %v", n, err)
			}
		})
	}
}

func TestPacketReceiverRefuses(t *testing.T) {
	p := wildcard(t, "127.0.0.1:0")
	for _, c := range []struct{ size, batch int }{{-1, 1}, {65536, 1}, {100, 0}, {100, 1025}} {
		if r, err := NewPacketReceiver(p, c.size, c.batch); err == nil || r != nil {
			t.Errorf("%+v is possible", c)
		}
	}
	for _, c := range []struct{ size, batch int }{{0, 1}, {65535, 2}, {1, 1024}} {
		if _, err := NewPacketReceiver(p, c.size, c.batch); err != nil {
			t.Error(err)
		}
	}
}

func TestPacketReceiverAllocates(t *testing.T) {
	p := wildcard(t, "127.0.0.1:0")
	for name, can := range receiverWays() {
		r, err := newPacketReceiver(p, 1000, 16, can)
		if err != nil {
			t.Fatal(err)
		}
		a, b := dialUDP(t, p, "127.0.0.1"), dialUDP(t, p, "127.0.0.1")
		data := make([]byte, 100)
		sum := 0
		if got := testing.AllocsPerRun(50, func() {
			for range 4 {
				_, _ = a.Net().Write(data)
				_, _ = b.Net().Write(data)
			}
			for n := 0; n < 8; {
				k, err := r.Receive()
				if err != nil {
					t.Fatal(err)
				}
				n += k
				for i := range k {
					d, _, _ := r.Message(i)
					_, at := r.Local(i)
					sum += len(d) + int(at&1)
				}
			}
		}); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}
