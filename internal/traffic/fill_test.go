package traffic

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// The digits and random bytes stay what they were.
func TestFill(t *testing.T) {
	p := make([]byte, 1000)
	(&Config{Fill: 'A', Repeating: true}).fill(p)
	if bytes.Count(p, []byte{'A'}) != 1000 {
		t.Errorf("%q", p[:20])
	}
	(&Config{Repeating: true}).fill(p)
	if !bytes.HasPrefix(p, []byte("01234567890123")) {
		t.Errorf("%q", p[:20])
	}
	(&Config{}).fill(p)
	if n := bytes.Count(p, p[:1]); n > 100 {
		t.Errorf("%d of 1000 random bytes are alike", n)
	}
}

// Every byte of a TCP stream is the byte that was asked for, whichever way it leaves.
func TestFillOnTheWire(t *testing.T) {
	for _, c := range []struct {
		flows int
		cfg   Config
	}{
		{1, Config{BlockSize: 64 << 10}},
		{1, Config{BlockSize: 64 << 10, Send: plan.SendZeroCopy}},
		{1, Config{BlockSize: 1000, Bitrate: 800_000_000}},
		{16, Config{BlockSize: 64 << 10}},
		{16, Config{BlockSize: 64 << 10, Send: plan.SendZeroCopy}},
	} {
		t.Run(fmt.Sprint(c.flows, c.cfg.BlockSize, c.cfg.Send), func(t *testing.T) {
			a, b := pairs(t, c.flows)
			defer closeAll(b)
			c.cfg.End, c.cfg.Fill, c.cfg.Blocks = result.Client, 'A', int64(8*c.flows)
			tx := start(t, c.cfg, flowsOf(a, result.Up, true))
			came := make(chan int)
			for _, p := range b {
				go func() { // ends with the engine's sockets
					n, other := 0, 0
					buf := make([]byte, 64<<10)
					for {
						k, err := p.Net().Read(buf)
						n += k
						other += k - bytes.Count(buf[:k], []byte{'A'})
						if err != nil {
							if err != io.EOF || other > 0 {
								n = -1
							}
							came <- n
							return
						}
					}
				}()
			}
			tx.wait(t, Blocks)
			if got := sum(tx.totals(t)); got != c.cfg.Blocks*int64(c.cfg.BlockSize) {
				t.Errorf("sent %d bytes", got)
			}
			tx.Close()
			all := 0
			for range b {
				n := <-came
				if n < 0 {
					t.Fatal("not all of the payload is 'A'")
				}
				all += n
			}
			if int64(all) != c.cfg.Blocks*int64(c.cfg.BlockSize) {
				t.Errorf("%d bytes came", all)
			}
		})
	}
}
