package runner

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// TestPublicPorts: a public receiver does with its data ports; what else another program has is said.
func TestPublicPorts(t *testing.T) {
	for _, c := range []struct {
		name  string
		taken int // relative to the first data port
		want  string
		fails bool
	}{
		{"all free", 0, "", false},
		{"the sync port", -1, "senders of the Linux dialect that synchronise are not served", false},
		{"a token port", plan.NTTTCPTokenOffset, "senders of the Windows dialect that synchronise are not served", false},
		{"a data port", 1, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := freeBase(t)
			if c.taken != 0 {
				ln, err := net.Listen("tcp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(base+c.taken)).String())
				if err != nil {
					t.Fatal(err)
				}
				defer ln.Close()
			}
			s := plan.Serve{
				Listen: []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(base))},
				NTTTCP: &plan.Plan{Protocol: plan.ProtocolNTTTCP, Port: base, NTTTCP: &plan.NTTTCP{Role: plan.NTTTCPReceiver, Ports: 2, Public: true}},
			}
			k, notices, err := (&Runner{}).ListenNTTTCP(t.Context(), s)
			if k != nil {
				defer k.Close()
			}
			if (err != nil) != c.fails {
				t.Fatalf("%v", err)
			}
			var said []string
			for _, n := range notices {
				said = append(said, n.Text)
			}
			if all := strings.Join(said, "\n"); (c.want == "") != (all == "") || !strings.Contains(all, c.want) {
				t.Errorf("says %q, want %q", all, c.want)
			}
		})
	}
}

// freeBase finds a base of which all ports are free.
func freeBase(t *testing.T) int {
	t.Helper()
next:
	for base := 21000; base < 60000; base += 37 {
		for _, p := range []int{base - 1, base, base + 1, base + 1000, base + 1001} {
			ln, err := net.Listen("tcp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(p)).String())
			if err != nil {
				continue next
			}
			ln.Close()
			pc, err := net.ListenPacket("udp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(p)).String())
			if err != nil {
				continue next
			}
			pc.Close()
		}
		return base
	}
	t.Fatal("no free ports")
	return 0
}
