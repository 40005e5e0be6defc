package iperf3

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// greetUDP opens a UDP stream to the same server with any greeting.
func (p *rawPeer) greetUDP(b []byte) *net.UDPConn {
	p.t.Helper()
	u := p.dialUDP("")
	if got := exchangeUDP(p.t, u, b); string(got) != "6789" {
		p.t.Fatalf("greeting %x was answered %x", b, got)
	}
	return u
}

// dialUDP makes a socket towards the same server; from = "" is any address.
func (p *rawPeer) dialUDP(from string) *net.UDPConn {
	p.t.Helper()
	return dialUDP(p.t, p.nc.RemoteAddr().String(), from)
}

func dialUDP(t testing.TB, to, from string) *net.UDPConn {
	t.Helper()
	var local *net.UDPAddr
	if from != "" {
		local = net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 0))
	}
	u, err := net.DialUDP("udp", local, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(to)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	return u
}

// exchangeUDP sends b and returns what comes back.
func exchangeUDP(t testing.TB, u *net.UDPConn, b []byte) []byte {
	t.Helper()
	if _, err := u.Write(b); err != nil {
		t.Fatal(err)
	}
	u.SetReadDeadline(time.Now().Add(20 * time.Second))
	got := make([]byte, 64<<10)
	n, err := u.Read(got)
	if err != nil {
		t.Fatalf("%x got no answer: %v", b, err)
	}
	return got[:n]
}

// silentUDP checks that nothing has come on a socket. The caller makes sure that whatever
// could come had come: an answer to something sent later to the same server is there.
func silentUDP(t testing.TB, u *net.UDPConn) {
	t.Helper()
	u.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	got := make([]byte, 64<<10)
	if n, err := u.Read(got); err == nil {
		t.Errorf("a stranger got an answer of %d bytes: %x", n, got[:n])
	}
}

// mutely makes a scripted server answer no greeting by itself.
func mutely(f *udpFlows) { f.reply = nil }

// withCause is a context of the test that can be cancelled with a cause.
func withCause(t testing.TB) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return ctx, cancel
}

// udpFlows is the UDP side of a scripted server.
type udpFlows struct {
	u *net.UDPConn

	mu    sync.Mutex
	known map[netip.AddrPort]int
	heard [][]byte            // what was not a data datagram, in order
	mute  func(b []byte) bool // true = do not answer this greeting
	fresh chan *scriptedFlow  // newly opened
	flows []*scriptedFlow
	reply []byte
}

// scriptedFlow is one stream at a scripted server. Read blocks until it is closed.
type scriptedFlow struct {
	net.Conn // one half of a pipe: for its deadline and end
	u        *net.UDPConn
	peer     netip.AddrPort
}

func newUDPFlows(t *testing.T, addr net.Addr, set ...func(*udpFlows)) *udpFlows {
	t.Helper()
	u, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr.(*net.TCPAddr).AddrPort()))
	if err != nil {
		t.Fatal(err)
	}
	f := &udpFlows{u: u, known: map[netip.AddrPort]int{}, fresh: make(chan *scriptedFlow, 128), reply: udpAnswer}
	for _, change := range set {
		change(f)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.read()
	}()
	t.Cleanup(func() {
		u.Close()
		<-done
		for _, x := range f.flows {
			x.Close()
		}
	})
	return f
}

func (f *udpFlows) read() {
	buf := make([]byte, 64<<10)
	for {
		n, from, err := f.u.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		f.mu.Lock()
		_, known := f.known[from]
		if n <= provenSize {
			f.heard = append(f.heard, append([]byte{}, buf[:n]...))
		}
		if !known && (f.mute == nil || !f.mute(buf[:n])) {
			f.known[from] = len(f.known)
			a, _ := net.Pipe()
			x := &scriptedFlow{Conn: a, u: f.u, peer: from}
			f.flows = append(f.flows, x)
			if f.reply != nil {
				f.u.WriteToUDPAddrPort(f.reply, from)
			}
			f.fresh <- x
		}
		f.mu.Unlock()
	}
}

// accept returns the next stream, nil when none came.
func (f *udpFlows) accept(within time.Duration) net.Conn {
	select {
	case x := <-f.fresh:
		return x
	case <-time.After(within):
		return nil
	}
}

// send puts a datagram on a flow.
func (x *scriptedFlow) send(b []byte) { _, _ = x.u.WriteToUDPAddrPort(b, x.peer) }
