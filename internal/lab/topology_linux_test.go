package lab_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/internal/lab/forward"
)

// exchange sends a message over TCP from one end to the other and returns the client's
// congestion control, as `ss` shows it.
func exchange(t *testing.T, from, to *lab.Namespace, address string) {
	t.Helper()
	var ln net.Listener
	err := to.Do(func() (err error) {
		ln, err = net.Listen("tcp", net.JoinHostPort(address, "0"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	got := make(chan string, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			got <- err.Error()
			return
		}
		defer c.Close()
		b, err := io.ReadAll(c)
		got <- fmt.Sprint(string(b), err)
	}()
	var c net.Conn
	err = from.Do(func() (err error) {
		c, err = net.Dial("tcp", ln.Addr().String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Error(err)
	}
	if cc := congestionOf(t, c); cc != "reno" {
		t.Errorf("to %s: congestion control %q, want reno", address, cc)
	}
	c.Close()
	if g := <-got; g != "hello<nil>" {
		t.Errorf("to %s: received %q", address, g)
	}
}

func congestionOf(t *testing.T, c net.Conn) string {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var name string
	if err := raw.Control(func(fd uintptr) { name, err = getCongestion(int(fd)) }); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestTopologies(t *testing.T) {
	needNamespaces(t)
	wire := forward.Config{MTU: 1500}
	tests := []struct {
		name      string
		make      func() (*lab.Network, error)
		near, far []string
	}{
		{
			"pair", func() (*lab.Network, error) { return lab.NewPair("reno") },
			[]string{lab.NearIPv4, lab.NearIPv6},
			[]string{lab.FarIPv4, lab.FarIPv6},
		},
		{
			"routed", func() (*lab.Network, error) { return lab.NewRouted("reno") },
			[]string{lab.RoutedNearIPv4, lab.RoutedNearIPv6},
			[]string{lab.RoutedFarIPv4, lab.RoutedFarIPv6},
		},
		{"link", func() (*lab.Network, error) {
			return lab.NewLink(lab.LinkOptions{Config: wire, CC: "reno", Command: linkCommand(t)})
		}, []string{lab.NearIPv4, lab.NearIPv6}, []string{lab.FarIPv4, lab.FarIPv6}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := network(t)(tt.make())
			for i := range tt.near {
				exchange(t, n.Near, n.Far, tt.far[i])
				exchange(t, n.Far, n.Near, tt.near[i])
			}
		})
	}
}

// TestCutAndRestore: a device that comes back has its addresses, routes and
// congestion control again.
func TestCutAndRestore(t *testing.T) {
	needNamespaces(t)
	n := network(t)(lab.NewPair("reno"))
	if err := n.Far.SetDown(lab.PairFar); err != nil {
		t.Fatal(err)
	}
	before, err := n.Near.DeviceStats(lab.PairNear)
	if err != nil {
		t.Fatal(err)
	}
	near, _ := udpPair(t, n)
	_, _ = near.Write([]byte("x")) // the kernel may say that the cable is cut, or not
	if after, err := n.Near.DeviceStats(lab.PairNear); err != nil || after.TxPackets != before.TxPackets {
		t.Errorf("a packet went into a cut cable: before %+v, after %+v, %v", before, after, err)
	}
	if err := n.Far.SetUp(lab.PairFar); err != nil {
		t.Fatal(err)
	}
	exchange(t, n.Near, n.Far, lab.FarIPv4)
	if err := n.Near.AddAddress(lab.PairNear, "10.77.0.11/24"); err != nil {
		t.Fatal(err)
	}
	exchange(t, n.Far, n.Near, "10.77.0.11")
}

func TestSettings(t *testing.T) {
	needNamespaces(t)
	n := network(t)(lab.NewPair(""))
	if err := n.Near.SetSysctl("net.ipv4.tcp_rmem", "4096 65536 1000000"); err != nil {
		t.Error(err)
	}
	if got, err := n.Near.Sysctl("net.ipv4.tcp_rmem"); got != "4096 65536 1000000" || err != nil {
		t.Errorf("tcp_rmem %q, %v", got, err)
	}
	if got, err := n.Far.Sysctl("net.ipv4.tcp_rmem"); got == "4096 65536 1000000" || err != nil {
		t.Errorf("the other end's tcp_rmem %q, %v", got, err)
	}
	for name, value := range map[string]string{
		"net.ipv4.nosuch":   "1",
		"net.ipv4.tcp_rmem": "lots",
	} {
		if err := n.Near.SetSysctl(name, value); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s = %q: %v", name, value, err)
		}
	}
	if err := n.Near.SetSysctl("net/ipv4/conf/va/forwarding", "1"); err != nil {
		t.Error(err)
	}
	if err := n.Near.AddAddress("va", "10.77.0.300/24"); err == nil {
		t.Error("an impossible address was taken")
	}
	if err := n.Near.SetUp("nosuch"); err == nil || !strings.Contains(err.Error(), "device nosuch") {
		t.Errorf("a device that is not there: %v", err)
	}
	if _, err := lab.NewPair("nosuch"); err == nil || !strings.Contains(err.Error(), "reno") {
		t.Errorf("unknown congestion control: %v", err)
	}
	if _, err := lab.NewLink(lab.LinkOptions{Config: forward.Config{MTU: 1500}, Command: []string{"x"}}); err == nil {
		t.Error("a link without a fixed congestion control was made")
	}
}
