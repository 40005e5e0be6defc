package lab_test

import (
	"encoding/binary"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/lab"
)

func getCongestion(fd int) (string, error) {
	name, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	return strings.TrimRight(name, "\x00"), err
}

// udpPair opens a socket at the near end that is connected to one at the far end.
func udpPair(t *testing.T, n *lab.Network) (near, far *net.UDPConn) {
	t.Helper()
	open := func(ns *lab.Namespace, f func() (net.Conn, error)) *net.UDPConn {
		t.Helper()
		var c net.Conn
		if err := ns.Do(func() (err error) { c, err = f(); return err }); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c.(*net.UDPConn)
	}
	far = open(n.Far, func() (net.Conn, error) {
		return net.ListenUDP("udp4", nil)
	})
	near = open(n.Near, func() (net.Conn, error) {
		address := lab.FarIPv4
		if n.Router != nil {
			address = lab.RoutedFarIPv4
		}
		return net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.ParseIP(address), Port: far.LocalAddr().(*net.UDPAddr).Port})
	})
	// Room for all that a test sends, whatever the system's limit, so that nothing is lost
	// while the test itself does not get the processor.
	raw, err := far.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var errOpt error
	if err := raw.Control(func(fd uintptr) {
		errOpt = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 128<<20)
	}); err != nil || errOpt != nil {
		t.Fatal(err, errOpt)
	}
	return near, far
}

// sendNumbered sends datagrams with numbers from 0 on and returns those that arrived.
func sendNumbered(t *testing.T, n *lab.Network, packets, size int) map[int]bool {
	t.Helper()
	near, far := udpPair(t, n)
	buf := make([]byte, size)
	for i := range packets {
		binary.BigEndian.PutUint32(buf, uint32(i))
		if _, err := near.Write(buf); err != nil {
			t.Fatal(err)
		}
	}
	// All have been sent; all that will arrive has when the link holds none.
	for {
		rep, err := n.Link.Report()
		if err != nil {
			t.Fatal(err)
		}
		if d := rep.Directions[0]; d.Link.In.Packets >= int64(packets) && d.Held.Packets == 0 {
			break
		}
	}
	raw, err := far.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	got := map[int]bool{}
	err = raw.Control(func(fd uintptr) {
		for {
			n, _, err := unix.Recvfrom(int(fd), buf, unix.MSG_DONTWAIT)
			if err == unix.EAGAIN {
				return
			}
			if err != nil || n != size {
				t.Errorf("received %d bytes, %v, want %d", n, err, size)
				return
			}
			got[int(binary.BigEndian.Uint32(buf))] = true
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}
