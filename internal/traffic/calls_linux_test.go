package traffic

import (
	"fmt"
	"math"
	"testing"
)

// A datagram is a call, whichever way it goes; one that is timed goes alone.
func TestCallsAreDatagrams(t *testing.T) {
	for _, c := range []struct {
		flows  int
		rate   int64
		blocks int64
		udp    UDPConfig
	}{
		{1, 11_200_000, 50, UDPConfig{}},
		{1, 0, 200, UDPConfig{}},
		{1, 0, 200, UDPConfig{Bare: true}},
		{20, 0, 200, UDPConfig{}},
	} {
		for _, cfg := range []Config{{}, {CountCalls: true}, {TimeCalls: true}} {
			t.Run(fmt.Sprint(c.flows, c.rate, c.udp.Bare, cfg.CountCalls, cfg.TimeCalls), func(t *testing.T) {
				sent, got, _, _ := udpTest(t, c.flows, Config{
					BlockSize: 1400, Bitrate: c.rate, Blocks: c.blocks, UDP: c.udp, CountCalls: cfg.CountCalls, TimeCalls: cfg.TimeCalls,
				}, Config{Limited: true, UDP: UDPConfig{Bare: c.udp.Bare}})
				for i, f := range sent.Flows {
					r := got.Flows[i]
					checkCalls(t, cfg, f, sent.Elapsed)
					checkCalls(t, cfg, r, math.Inf(1)) // the kernel's stamps end the time, not the reads
					if f.IO == nil {
						continue
					}
					if f.IO.Completions != *f.Total.Packets || r.IO.Completions != *r.Total.Packets {
						t.Errorf("flow %d: %d calls for %d datagrams, and %d for %d", i, f.IO.Completions, *f.Total.Packets, r.IO.Completions, *r.Total.Packets)
					}
				}
				if batch := sent.Path.Batch; cfg.TimeCalls && batch != "plain" || !cfg.TimeCalls && c.rate == 0 && c.flows == 1 && batch != "gso" {
					t.Errorf("datagrams left as %q", batch)
				}
			})
		}
	}
}
