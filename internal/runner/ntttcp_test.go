package runner

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// ntttcpReceiver is a listener's plan at free ports of loopback, as many as n.Ports says.
func ntttcpReceiver(t *testing.T, n plan.NTTTCP) plan.Serve {
	t.Helper()
	n.Role, n.Threads, n.Connections = plan.NTTTCPReceiver, 1, 1
	own := plan.Plan{Protocol: plan.ProtocolNTTTCP, Transport: plan.TCP, Port: freePorts(t, n.Ports+1), Duration: time.Second, NTTTCP: &n}.Filled()
	return plan.Serve{
		Listen: []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(own.Port))},
		OneOff: true, Exclusive: true, Interval: plan.NTTTCPInterval, NTTTCP: &own,
	}
}

var portSlot atomic.Int64

// freePorts is a base port with n free ones from it on, the one below it, and as many 1000 above.
func freePorts(t *testing.T, n int) int {
	t.Helper()
	for range 100 { // below the ports that the system hands out
		base := 21000 + (os.Getpid()*53+int(portSlot.Add(1))*60)%8000
		if free(base-1, n+1) && free(base+1000, n) {
			return base
		}
	}
	t.Fatal("no free ports")
	return 0
}

func free(first, n int) bool {
	for p := first; p < first+n; p++ {
		at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(p)).String()
		ln, err := net.Listen("tcp", at)
		if err != nil {
			return false
		}
		_ = ln.Close()
		pc, err := net.ListenPacket("udp", at)
		if err != nil {
			return false
		}
		_ = pc.Close()
	}
	return true
}

// taken has a port until the test ends.
func taken(t *testing.T, port int) {
	t.Helper()
	ln, err := net.Listen("tcp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port)).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
}

// ports is what is open.
type ports struct{ Data, Packets, Tokens, Sync, PortSync, LinuxData int }

func (k *NTTTCPSockets) count() ports {
	p := ports{Data: len(k.ports.Data), Packets: len(k.ports.Packets), Tokens: len(k.ports.Tokens), LinuxData: len(k.ports.LinuxData)}
	if k.ports.Sync != nil {
		p.Sync = 1
	}
	if k.ports.PortSync != nil {
		p.PortSync = 1
	}
	return p
}

// TestListenNTTTCP: which ports a receiver needs and which it only would like to have.
func TestListenNTTTCP(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      plan.NTTTCP
		taken  int // relative to the base port; 0 = none
		want   ports
		notice bool
		err    bool
	}{
		{"linux", plan.NTTTCP{Dialect: plan.NTTTCPLinux, Ports: 2}, 0, ports{Data: 2, Packets: 2, Tokens: 2, Sync: 1}, false, false},
		{"linux without sync", plan.NTTTCP{Dialect: plan.NTTTCPLinux, Ports: 2, NoSync: true}, 0, ports{Data: 2, Packets: 2}, false, false},
		{"linux, sync port taken", plan.NTTTCP{Dialect: plan.NTTTCPLinux, Ports: 2}, -1, ports{}, false, true},
		{"linux, data port taken", plan.NTTTCP{Dialect: plan.NTTTCPLinux, Ports: 2}, 1, ports{}, false, true},
		{"linux, token port taken", plan.NTTTCP{Dialect: plan.NTTTCPLinux, Ports: 2}, 1001, ports{Data: 2, Packets: 2, Sync: 1}, true, false},
		{"windows", plan.NTTTCP{Dialect: plan.NTTTCPWindows, Ports: 2}, 0, ports{Data: 2, Packets: 2, Tokens: 2, Sync: 1}, false, false},
		{"windows, token port taken", plan.NTTTCP{Dialect: plan.NTTTCPWindows, Ports: 2}, 1001, ports{}, false, true},
		{"windows, sync port taken", plan.NTTTCP{Dialect: plan.NTTTCPWindows, Ports: 2}, -1, ports{Data: 2, Packets: 2, Tokens: 2}, true, false},
		{"windows, ports on request", plan.NTTTCP{Dialect: plan.NTTTCPWindows, Ports: 2, PortSync: true}, 0, ports{Data: 2, Packets: 2, Tokens: 2, PortSync: 1}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := ntttcpReceiver(t, c.n)
			if c.taken != 0 {
				taken(t, s.NTTTCP.Port+c.taken)
			}
			k, notices, err := (&Runner{}).ListenNTTTCP(context.Background(), s)
			var e *result.Error
			if c.err {
				if !errors.As(err, &e) || e.Code != "port" || !strings.Contains(e.Text, "is taken") {
					t.Fatalf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close()
			if diff := cmp.Diff(c.want, k.count()); diff != "" {
				t.Error(diff)
			}
			if (len(notices) > 0) != c.notice || c.notice && notices[0].Code != "port-missing" {
				t.Errorf("notices: %+v", notices)
			}
			first := s.NTTTCP.Port
			if c.n.PortSync {
				first++
			}
			for i, at := range k.Data() {
				if at.Port() != uint16(first+i) {
					t.Errorf("data port %d is %d", i, at.Port())
				}
			}
		})
	}
}

// TestNTTTCP: a sender and a receiver on loopback, both ends' runs.
func TestNTTTCP(t *testing.T) {
	s := ntttcpReceiver(t, plan.NTTTCP{Dialect: plan.NTTTCPLinux, Ports: 2})
	r := &Runner{Version: "test"}
	k, _, err := r.ListenNTTTCP(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	seen := &log{}
	served := make(chan error, 1)
	go func() {
		served <- r.ServeNTTTCP(context.Background(), s, k, func(result.Addr) Hooks { return Hooks{Sink: seen} })
	}()
	n := plan.NTTTCP{Dialect: plan.NTTTCPLinux, Role: plan.NTTTCPSender, Ports: 2, Threads: 1, Connections: 2}
	p := plan.Plan{Protocol: plan.ProtocolNTTTCP, Host: "127.0.0.1", Port: s.NTTTCP.Port, Transport: plan.TCP, Duration: time.Second, NTTTCP: &n}
	run, err := r.Run(context.Background(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	theirs := result.Fold(seen.events)
	for end, one := range map[string]*result.Run{"client": run, "server": theirs} {
		if one.Protocol != "ntttcp" || one.ID == "" || one.NTTTCP == nil || one.NTTTCP.Ports != 2 || len(one.Streams) != 4 {
			t.Errorf("%s: %s %q, %+v, %d streams", end, one.Protocol, one.ID, one.NTTTCP, len(one.Streams))
		}
		if m := one.Machines.Of(one.End); m == nil || m.Cores < 1 || m.Process == nil {
			t.Errorf("%s: counters of this machine: %+v", end, m)
		}
	}
	sum := run.Sum(result.Up)
	if sum == nil || sum.Sender == nil || sum.Receiver == nil || sum.Receiver.Bytes == 0 {
		t.Errorf("sums: %+v", sum)
	}
}

// TestNTTTCPPlans: what makes no receiver is refused, and its ports are closed.
func TestNTTTCPPlans(t *testing.T) {
	r := &Runner{}
	if _, _, err := r.ListenNTTTCP(context.Background(), plan.Serve{}); err == nil {
		t.Error("no receiver was asked for, and ports were opened")
	}
	s := ntttcpReceiver(t, plan.NTTTCP{Dialect: plan.NTTTCPLinux, Ports: 1})
	k, _, err := r.ListenNTTTCP(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	s.MaxTests = -1
	var e *result.Error
	if err := r.ServeNTTTCP(context.Background(), s, k, nil); !errors.As(err, &e) || e.Code != "plan" {
		t.Errorf("%v", err)
	}
	s.MaxTests = 0
	again, _, err := r.ListenNTTTCP(context.Background(), s)
	if err != nil {
		t.Fatalf("the ports of a refused receiver are still open: %v", err)
	}
	again.Close()
}
