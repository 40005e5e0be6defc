package oshost

import (
	"context"
	"net/netip"
	"testing"

	"github.com/fullbore-net/fullbore/result"
)

// What every Windows (and Wine) must tell.
func TestLive(t *testing.T) {
	h := Facts(context.Background(), netip.MustParseAddr("127.0.0.1"))
	if h.OS != "windows" || h.Release == "" || h.Cores < 1 || h.Memory == nil || h.CPUModel == "" {
		t.Errorf("facts: %+v", h)
	}
	s := NewSampler(SamplerOptions{})
	defer s.Close()
	var got *result.HostSample
	for got == nil || len(got.Cores) == 0 { // until the counters have stepped
		got = s.Sample()
	}
	if got.Process == nil || got.Process.Total < 0 || got.NIC != nil || got.Softnet != nil {
		t.Errorf("sample: %+v", got)
	}
	for _, c := range got.Cores {
		if sum := c.User + c.System + c.SoftIRQ + c.IRQ + c.Steal + c.IOWait + c.Idle; sum < 0.999 || sum > 1.001 {
			t.Errorf("shares of core %d add up to %v", c.CPU, sum)
		}
	}
	if len(s.Missing()) == 0 {
		t.Error("softnet does not exist here, and nothing says so")
	}
	inv := Take(context.Background(), netip.Addr{})
	if inv.TCP.ReadMem != nil || inv.Host.OS != "windows" {
		t.Errorf("inventory: %+v", inv)
	}
	for _, n := range inv.NICs {
		if n.Name == "" || n.MTU <= 0 {
			t.Errorf("interface: %+v", n)
		}
	}
}
