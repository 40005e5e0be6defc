package doctor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/units"
)

// FuzzExamine: facts come from other people's files (doctor --facts). Whatever they
// say, the rules give complete lines and do not fall over.
func FuzzExamine(f *testing.F) {
	seeds, err := filepath.Glob(filepath.Join(hosts, "*.json"))
	if err != nil || len(seeds) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, s := range seeds {
		data, err := os.ReadFile(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, int64(10_000_000_000), int64(10*time.Millisecond), 128)
	}
	f.Add([]byte(`{"host":{"os":"windows"},"tcp":{"autotuning_level":"normal"}}`), int64(1), int64(1), 1)
	f.Fuzz(func(t *testing.T, data []byte, rate, rtt int64, streams int) {
		var inv oshost.Inventory
		if json.Unmarshal(data, &inv) != nil || rate < 0 || rtt < 0 {
			return
		}
		checks := Examine(&inv, Goal{Rate: units.BitRate(rate), RTT: time.Duration(rtt), Streams: streams})
		for _, c := range checks {
			if c.Found == "" || c.Docs == "" || strings.Contains(c.Found+c.Why+c.Fix, "%!") {
				t.Errorf("broken line: %+v", c)
			}
		}
		if Summary(checks) == "" {
			t.Error("no closing sentence")
		}
	})
}
