package traffic

import (
	"fmt"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
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
