package osnet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// udpPair returns two connected sockets of loopback, a to b, detached and blocking with
// a timeout that no good test reaches.
func udpPair(t *testing.T, host string) (a, b *Conn, afd, bfd int) {
	t.Helper()
	open := func(network, address string) *net.UDPConn {
		pc, err := net.ListenPacket(network, address)
		if err != nil {
			t.Fatal(err)
		}
		return pc.(*net.UDPConn)
	}
	listen := net.JoinHostPort(host, "0")
	first := open("udp", listen)
	b, _, err := Dial(context.Background(), "udp", first.LocalAddr().(*net.UDPAddr).AddrPort(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	// The receiving end is the dialled one, so it is connected; connect the other too.
	a = NewConn(connectTo(t, first, b))
	t.Cleanup(func() { _ = a.Close() })
	if afd, err = a.Detach(); err != nil {
		t.Fatal(err)
	}
	if bfd, err = b.Detach(); err != nil {
		t.Fatal(err)
	}
	for _, fd := range []int{afd, bfd} {
		if err := SetBlocking(fd, 5*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	return a, b, afd, bfd
}

// connectTo connects u to c's own address. The runtime still takes it for unconnected,
// which does not matter to a socket that is to be detached.
func connectTo(t *testing.T, u *net.UDPConn, c *Conn) net.Conn {
	t.Helper()
	to := addrPort(c.Local().Host, uint16(c.Local().Port))
	rc, err := u.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := rawControl(rc, func(fd uintptr) error {
		if to.Addr().Is4() {
			return unix.Connect(int(fd), &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
		}
		return unix.Connect(int(fd), &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()})
	}); err != nil {
		t.Fatal(err)
	}
	return u
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// collect receives until it has want datagrams and returns their first 8 bytes as
// numbers, checking each one's length.
func collect(t *testing.T, r *DatagramReceiver, size, want int) (seqs []uint64, coalesced int) {
	t.Helper()
	for len(seqs) < want {
		n, e := r.Receive()
		if e == unix.EINTR {
			continue
		}
		if e != 0 {
			t.Fatalf("after %d of %d datagrams: %v", len(seqs), want, e)
		}
		for i := range n {
			data, segment, _ := r.Message(i)
			if r.Truncated(i) {
				t.Fatalf("message %d is truncated (%d bytes, segment %d)", i, len(data), segment)
			}
			if segment == 0 {
				segment = len(data)
			} else {
				coalesced++
			}
			for len(data) > 0 {
				d := data[:min(segment, len(data))]
				if len(d) != size {
					t.Fatalf("a datagram of %d bytes, want %d", len(d), size)
				}
				seqs = append(seqs, binary.BigEndian.Uint64(d))
				data = data[len(d):]
			}
		}
	}
	return seqs, coalesced
}

func sendAll(t *testing.T, d *DatagramSender, first uint64, n int) {
	t.Helper()
	for i := range n {
		binary.BigEndian.PutUint64(d.Datagram(i), first+uint64(i))
	}
	sent, e := d.Send(n)
	if sent != n || e != 0 {
		t.Fatalf("sent %d of %d: %v", sent, n, e)
	}
}

// Every datagram that the sender wrote arrives whole, once and in order, whichever way
// it takes through the stack.
func TestDatagramsRoundTrip(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		for _, size := range []int{8, 64, 1400, 20_000} {
			for _, count := range []int{1, 3, 64, 65, 130} {
				for _, segment := range []bool{false, true} {
					for _, coalesce := range []bool{false, true} {
						if size*count > 1<<20 {
							continue // would not fit the receive buffer at once
						}
						name := fmt.Sprintf("%s/%d B/%d/segment=%v/coalesce=%v", host, size, count, segment, coalesce)
						t.Run(name, func(t *testing.T) {
							_, b, afd, bfd := udpPair(t, host)
							if _, err := b.GrowReceive(16 << 20); err != nil {
								t.Fatal(err)
							}
							d := must[*DatagramSender](t)(NewDatagramSender(afd, size, count, segment))
							r := must[*DatagramReceiver](t)(NewDatagramReceiver(bfd, size, 8, coalesce, true))
							next, merged := uint64(1), 0
							for _, n := range []int{count, (count + 1) / 2, count} {
								sendAll(t, d, next, n)
								seqs, m := collect(t, r, size, n)
								merged += m
								for i, s := range seqs {
									if s != next+uint64(i) {
										t.Fatalf("datagram %d has number %d, want %d", i, s, next+uint64(i))
									}
								}
								next += uint64(n)
							}
							if fits := maxPayload/size > 1 && count > 1; segment && d.Segmented() != (fits && Capabilities().Segment) {
								t.Errorf("segmented: %v", d.Segmented())
							}
							if !coalesce && merged > 0 || coalesce && segment && d.Segmented() && merged == 0 {
								t.Errorf("%d merged messages", merged)
							}
						})
					}
				}
			}
		}
	}
}

func TestDatagramsAllocateNothing(t *testing.T) {
	for _, offload := range []bool{false, true} {
		_, b, afd, bfd := udpPair(t, "127.0.0.1")
		if _, err := b.GrowReceive(4 << 20); err != nil {
			t.Fatal(err)
		}
		const n, size = 96, 200
		d := must[*DatagramSender](t)(NewDatagramSender(afd, size, n, offload))
		r := must[*DatagramReceiver](t)(NewDatagramReceiver(bfd, size, 8, offload, true))
		var failed syscall.Errno
		if got := testing.AllocsPerRun(50, func() {
			for i := range n {
				d.Datagram(i)[0] = byte(i)
			}
			if sent, e := d.Send(n); sent != n {
				failed = e
			}
			for left := n; left > 0; {
				m, e := r.Receive()
				if e != 0 && e != unix.EINTR {
					failed = e
					return
				}
				for i := range m {
					data, _, stamp := r.Message(i)
					if stamp == 0 || r.Truncated(i) {
						failed = unix.EBADMSG
					}
					left -= (len(data) + size - 1) / size
				}
			}
		}); got != 0 || failed != 0 {
			t.Errorf("offload %v: %v allocations, errno %v", offload, got, failed)
		}
		// The way through errors neither.
		if got := testing.AllocsPerRun(50, func() { _ = d.failed(unix.ENOBUFS) }); got != 0 {
			t.Errorf("failed: %v allocations", got)
		}
	}
	if got := testing.AllocsPerRun(50, func() { _, _ = Monotonic(), RealOffset() }); got != 0 {
		t.Errorf("clocks: %v allocations", got)
	}
}

// The kernel's stamps are on the clock that Monotonic and RealOffset convert to.
func TestStamps(t *testing.T) {
	for _, coalesce := range []bool{false, true} {
		_, _, afd, bfd := udpPair(t, "127.0.0.1")
		d := must[*DatagramSender](t)(NewDatagramSender(afd, 100, 4, coalesce))
		r := must[*DatagramReceiver](t)(NewDatagramReceiver(bfd, 100, 8, coalesce, true))
		before := Monotonic()
		sendAll(t, d, 1, 4)
		n, e := r.Receive()
		after, offset := Monotonic(), RealOffset()
		if e != 0 || n == 0 {
			t.Fatal(n, e)
		}
		for i := range n {
			_, _, stamp := r.Message(i)
			// A clock that is being slewed must not fail a test.
			if at := stamp - offset; at < before-int64(time.Second) || at > after+int64(time.Second) {
				t.Errorf("stamp %d ns, sent between %d and %d", at, before, after)
			}
		}
	}
}

func TestClocks(t *testing.T) {
	var ts unix.Timespec
	before := Monotonic()
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		t.Fatal(err)
	}
	after := Monotonic()
	// The epoch was found by bracketing: it may be off by half its width.
	const slack = int64(time.Millisecond)
	if now := ts.Nano(); now < before-slack || now > after+slack {
		t.Errorf("Monotonic says %d, %d; CLOCK_MONOTONIC in between %d", before, after, now)
	}
	if diff := time.Since(time.Unix(0, RealOffset()+Monotonic())); diff.Abs() > time.Second {
		t.Errorf("RealOffset is off by %v", diff)
	}
}

// Nobody listens: however many datagrams a call sends, the refusal is told.
func TestRefusedIsTold(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		for _, tt := range []struct {
			count   int
			segment bool
		}{{1, false}, {16, false}, {16, true}, {130, true}} {
			a, b, afd, _ := udpPair(t, host)
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			d := must[*DatagramSender](t)(NewDatagramSender(afd, 100, tt.count, tt.segment))
			told, sent := 0, 0
			for range 20 { // ICMP over loopback comes back within the call
				n, e := d.Send(tt.count)
				sent += n
				switch {
				case e == unix.ECONNREFUSED:
					told++
				case e != 0 && e != unix.EINTR:
					t.Fatalf("%s %+v: %v", host, tt, e)
				case e == 0 && n != tt.count:
					t.Fatalf("%s %+v: %d datagrams and no errno", host, tt, n)
				}
			}
			if told == 0 || d.Refused() < int64(told) || sent == 0 || d.Unreachable() != 0 {
				t.Errorf("%s %+v: told %d times, refused %d, sent %d, unreachable %d", host, tt, told, d.Refused(), sent, d.Unreachable())
			}
			if _, err := a.SocketDrops(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
				t.Error(err)
			}
		}
	}
}

// Longer datagrams than expected are seen as such, never taken for good ones.
func TestTruncated(t *testing.T) {
	for _, coalesce := range []bool{false, true} {
		_, _, afd, bfd := udpPair(t, "127.0.0.1")
		r := must[*DatagramReceiver](t)(NewDatagramReceiver(bfd, 100, 4, coalesce, false))
		for _, n := range []int{99, 100, 101, 5000, 0} {
			if _, e := Write(afd, make([]byte, n)); e != 0 {
				t.Fatal(e)
			}
			if m, e := r.Receive(); m != 1 || e != 0 {
				t.Fatal(m, e)
			}
			data, segment, stamp := r.Message(0)
			if len(data) != min(n, 100) || segment != 0 || stamp != 0 || r.Truncated(0) != (n > 100) {
				t.Errorf("coalesce %v, %d bytes: %d bytes, segment %d, stamp %d, truncated %v", coalesce, n, len(data), segment, stamp, r.Truncated(0))
			}
		}
	}
	_, b, afd, bfd := udpPair(t, "127.0.0.1")
	if !Capabilities().Segment || !Capabilities().Coalesce {
		return // a kernel before 5.0 cannot hand over a run
	}
	d := must[*DatagramSender](t)(NewDatagramSender(afd, 200, 10, true))
	r := must[*DatagramReceiver](t)(NewDatagramReceiver(bfd, 100, 4, true, false))
	sendAll(t, d, 1, 10)
	m, e := r.Receive()
	if e != 0 || m != 1 {
		t.Fatal(m, e)
	}
	if data, segment, _ := r.Message(0); segment != 200 || len(data) != 2000 || !r.Truncated(0) {
		t.Errorf("a run of longer ones: %d bytes, segment %d, truncated %v", len(data), segment, r.Truncated(0))
	}
	_ = b
}

func TestReceiveTimesOut(t *testing.T) {
	_, _, _, bfd := udpPair(t, "127.0.0.1")
	if err := SetBlocking(bfd, 10*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	r := must[*DatagramReceiver](t)(NewDatagramReceiver(bfd, 100, 4, true, true))
	n, e := r.Receive()
	for e == unix.EINTR {
		n, e = r.Receive()
	}
	if n != 0 || e != unix.EAGAIN {
		t.Errorf("%d messages, %v; want EAGAIN", n, e)
	}
}

func TestBadSizes(t *testing.T) {
	_, _, fd, _ := udpPair(t, "127.0.0.1")
	for _, tt := range []struct{ size, count int }{{0, 1}, {maxPayload6 + 1, 1}, {100, 0}, {100, maxMessages + 1}} {
		if d, err := NewDatagramSender(fd, tt.size, tt.count, true); err == nil {
			t.Errorf("sender %+v: %v", tt, d)
		}
		if tt.size == 0 {
			continue
		}
		if r, err := NewDatagramReceiver(fd, tt.size, tt.count, true, true); err == nil {
			t.Errorf("receiver %+v: %v", tt, r)
		}
	}
}

// BenchmarkDatagrams moves 64 datagrams an iteration from one socket to another, by
// each way through the stack.
func BenchmarkDatagrams(b *testing.B) {
	for _, offload := range []bool{false, true} {
		for _, size := range []int{64, 1448} {
			b.Run(fmt.Sprintf("offload=%v/%d", offload, size), func(b *testing.B) {
				const n = 64
				first, err := net.ListenPacket("udp", "127.0.0.1:0")
				if err != nil {
					b.Fatal(err)
				}
				rx := NewConn(first.(*net.UDPConn))
				defer rx.Close()
				tx, _, err := Dial(context.Background(), "udp", first.LocalAddr().(*net.UDPAddr).AddrPort(), Options{})
				if err != nil {
					b.Fatal(err)
				}
				defer tx.Close()
				var fds [2]int
				for i, c := range []*Conn{tx, rx} {
					if fds[i], err = c.Detach(); err != nil {
						b.Fatal(err)
					}
					if err := SetBlocking(fds[i], 5*time.Second); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := rx.GrowReceive(1 << 20); err != nil {
					b.Fatal(err)
				}
				d, err := NewDatagramSender(fds[0], size, n, offload)
				if err != nil {
					b.Fatal(err)
				}
				r, err := NewDatagramReceiver(fds[1], size, 8, offload, true)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(n * size))
				b.ReportAllocs()
				for b.Loop() {
					for sent := 0; sent < n; {
						m, e := d.Send(n - sent)
						if e != 0 && e != unix.EINTR {
							b.Fatal(e)
						}
						sent += m
					}
					for left := n * size; left > 0; {
						m, e := r.Receive()
						if e != 0 && e != unix.EINTR {
							b.Fatal(e)
						}
						for i := range m {
							data, _, _ := r.Message(i)
							left -= len(data)
						}
					}
				}
			})
		}
	}
}
