package alike_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/alike"
	"github.com/fullbore-net/fullbore/result"
)

func run() *result.Run {
	speed := int64(1e10)
	r := &result.Run{
		ID: "A", Protocol: "iperf3", End: result.Client, Started: time.Unix(1e9, 0),
		Test:  result.Test{Transport: "tcp", Direction: "up", Streams: 4, Duration: 10, BlockSize: 131072, Target: "a", Port: 5201, Interval: 1},
		Hops:  []result.Hop{{TTL: 1, Addr: "192.0.2.1"}, {TTL: 2}},
		Label: "one",
	}
	r.Hosts.Client = &result.Host{Name: "h", OS: "linux", Release: "6.1", Cores: 8, NIC: &result.NIC{Name: "eth0", Driver: "ixgbe", SpeedBPS: &speed, MTU: 1500}}
	r.CPU.Client = &result.CPU{Total: 12, Congestion: "cubic"}
	return r
}

// What tells runs apart and what does not.
func TestHashes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		change          func(*result.Run)
		settings, facts bool // differ
	}{
		{"another moment, label, port, id", func(r *result.Run) {
			r.ID, r.Label, r.Started, r.Test.Port, r.Test.Target, r.Test.Interval = "B", "two", time.Unix(2e9, 0), 5202, "b", 2
			mhz := 3000
			r.Hosts.Client.MHz, r.CPU.Client.Total = &mhz, 99
		}, false, false},
		{"streams", func(r *result.Run) { r.Test.Streams = 8 }, true, false},
		{"length", func(r *result.Run) { r.Test.Duration = 30 }, true, false},
		{"direction", func(r *result.Run) { r.Test.Direction = "down" }, true, false},
		{"congestion asked for", func(r *result.Run) { r.Test.Congestion = "bbr" }, true, false},
		{"congestion used", func(r *result.Run) { r.CPU.Client.Congestion = "bbr" }, false, true},
		{"driver", func(r *result.Run) { r.Hosts.Client.NIC.Driver = "igb" }, false, true},
		{"kernel", func(r *result.Run) { r.Hosts.Client.Release = "6.2" }, false, true},
		{"hops", func(r *result.Run) { r.Hops = nil }, false, false},
	} {
		a, b := run(), run()
		c.change(b)
		if got := alike.Settings(a) != alike.Settings(b); got != c.settings {
			t.Errorf("%s: settings differ: %v, want %v", c.name, got, c.settings)
		}
		if got := alike.Facts(a) != alike.Facts(b); got != c.facts {
			t.Errorf("%s: facts differ: %v, want %v", c.name, got, c.facts)
		}
	}
	if alike.Settings(nil) != "" || alike.Facts(&result.Run{}) != "" {
		t.Error("a hash of nothing")
	}
	// Stored hashes are compared with those of later releases: a change of the list is a
	// decision, with a word in docs/history.md.
	if got := alike.Settings(run()) + " " + alike.Facts(run()); got != "2c52232f4901 d72f3a608d68" {
		t.Errorf("hashes of the sample: %s", got)
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	a, b := run(), run()
	b.Hosts.Client.NIC.Driver = "igb"
	b.Hosts.Server = &result.Host{OS: "windows"}
	want := []alike.Change{{"client driver", "ixgbe", "igb"}, {"server system", "", "windows"}}
	if diff := cmp.Diff(want, alike.Changes(alike.FactsOf(a), alike.FactsOf(b))); diff != "" {
		t.Error(diff)
	}
	b.Hops = []result.Hop{{TTL: 1, Addr: "192.0.2.9"}, {TTL: 2}}
	if diff := cmp.Diff([]alike.Change{{"hops", "192.0.2.1 ?", "192.0.2.9 ?"}}, alike.Changes(alike.HopsOf(a), alike.HopsOf(b))); diff != "" {
		t.Error(diff)
	}
	if got := alike.Changes(alike.SettingsOf(a), alike.SettingsOf(run())); got != nil {
		t.Errorf("the same: %v", got)
	}
}
