package traffic

import (
	"fmt"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Every way counts bare datagrams exactly.
func TestBareDatagramsAreExact(t *testing.T) {
	for _, c := range []struct {
		flows   int
		size    int
		rate    int64
		blocks  int64
		offload plan.Offload
	}{
		{1, 1400, 11_200_000, 50, ""},
		{1, 1, 16_000, 50, ""},
		{1, 1400, 0, 200, ""},
		{1, 1400, 0, 200, plan.OffloadOff},
		{1, 65507, 0, 5, ""},
		{20, 1000, 800_000, 200, ""},
		{20, 1000, 0, 200, ""},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			udp := UDPConfig{Bare: true, Offload: c.offload}
			sent, got, _, rx := udpTest(t, c.flows,
				Config{BlockSize: c.size, Bitrate: c.rate, Blocks: c.blocks, UDP: udp, Fill: 'A', Interval: 100 * time.Millisecond},
				Config{UDP: udp, Interval: 100 * time.Millisecond, Limited: true})
			var n, bytes int64
			for _, f := range got.Flows {
				n += *f.Total.Packets
				bytes += f.Total.Bytes
			}
			if m := sentPackets(sent); m != c.blocks || n != c.blocks || bytes != c.blocks*int64(c.size) {
				t.Errorf("sent %d, received %d with %d bytes; want %d", m, n, bytes, c.blocks)
			}
			checkBare(t, got, rx.rows.intervals())
		})
	}
}

// Of many flows on one worker, only the one with a corrupt datagram ends.
func TestVerifyManyDatagramFlows(t *testing.T) {
	const flows = 20
	a, b := udpPairs(t, flows)
	defer closeAll(a)
	e := start(t, Config{
		End: result.Server, Transport: plan.UDP, BlockSize: 100, Fill: 'A', Verify: true, UDP: UDPConfig{Bare: true},
	}, flowsOf(b, result.Up, false))
	for i, x := range a {
		text := "AAAA"
		if i == 7 {
			text = "AAxA"
		}
		if _, err := x.Net().Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	poll(t, "the datagrams", func() bool { return sum(e.Snapshot()) == 4*flows })
	poll(t, "the flow's end", func() bool { return e.streams[7].over.Load() })
	if _, err := a[8].Net().Write([]byte("AA")); err != nil {
		t.Fatal(err)
	}
	poll(t, "another datagram", func() bool { return sum(e.Snapshot()) == 4*flows+2 })
	for i, f := range e.totals(t).Flows {
		if i == 7 {
			corrupted(t, f.Err, 2)
		} else if f.Err != nil {
			t.Errorf("flow %d: %v", i, f.Err)
		}
	}
}
