package traffic

import (
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// TestBegan: what waits in the socket at Start came in time that counts.
func TestBegan(t *testing.T) {
	for name, ago := range map[string]time.Duration{"before": 10 * time.Second, "at Start": 0, "to come": -10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			near, far := pairs(t, 1)
			cfg := Config{End: result.Server, Transport: plan.TCP, BlockSize: 1 << 10}
			if ago != 0 {
				cfg.Began = time.Now().Add(-ago)
			}
			e, err := New(cfg, flowsOf(far, result.Up, false))
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			if _, err := near[0].Net().Write(make([]byte, 5000)); err != nil {
				t.Fatal(err)
			}
			closeAll(near)
			e.Start()
			if why, err := e.Wait(t.Context()); why != PeerClosed || err != nil {
				t.Fatalf("ended for %v, %v", why, err)
			}
			got := e.Finish()
			f := got.Flows[0].Total
			if f.Bytes != 5000 || f.Start != 0 {
				t.Errorf("%+v", f)
			}
			if past := f.End >= 10; past != (ago > 0) {
				t.Errorf("the test took %v s", f.End)
			}
		})
	}
}
