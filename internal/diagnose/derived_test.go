package diagnose_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/result"
)

// derived are recordings of what no lab on one machine makes: two machines that are not alike, a
// hypervisor that takes time, a link of known speed. Each is the recording of a live scenario with
// the hosts of recorded trees (testdata/facts), or one counter of the kernel, put in place of the
// lab's; its scenario is marked "replayed" and plays it by `fullbore diagnose --replay`. With
// -update they are made anew.
var derived = []struct {
	name, base string
	change     func(t *testing.T, rep *result.Report)
}{
	{"diagnose-facts-unlike", "diagnose-clean-50m-20ms", func(t *testing.T, rep *result.Report) {
		own, other := machine(t, "server-25g", "db1"), machine(t, "vm-e1000", "app7")
		other.Tool.Version = "0.0.9"
		frames(own, 9000)
		between(rep, own, other)
	}},
	{"diagnose-facts-alike", "diagnose-clean-50m-20ms", func(t *testing.T, rep *result.Report) {
		between(rep, machine(t, "server-25g", "db1"), machine(t, "server-25g", "db2"))
	}},
	{"diagnose-facts-server-told", "diagnose-quick-clean", func(t *testing.T, rep *result.Report) {
		between(rep, machine(t, "server-25g", "db1"), machine(t, "server-neglected", "db2"))
	}},
	{"diagnose-facts-link-full", "diagnose-facts-desktop", func(t *testing.T, rep *result.Report) {
		own, other := machine(t, "desktop-100m", "desk1"), machine(t, "desktop-100m", "desk2")
		for _, h := range []*result.Host{own, other} {
			h.NIC.Duplex, h.Settings.Duplex, h.Settings.MaxBPS = "full", "full", h.NIC.SpeedBPS
		}
		between(rep, own, other)
	}},
	{"diagnose-facts-hypervisor", "diagnose-address-nat", func(t *testing.T, rep *result.Report) {
		between(rep, machine(t, "vm-e1000", "app7"), machine(t, "vm-e1000", "app8"))
	}},
	{"diagnose-facts-stolen", "diagnose-quick-clean", func(t *testing.T, rep *result.Report) {
		between(rep, machine(t, "vm-e1000", "app7"), machine(t, "server-25g", "db1"))
		rows(rep, result.Client, func(h *result.HostSample) {
			if len(h.Cores) > 0 {
				core := &h.Cores[0]
				core.Steal, core.Idle = 0.12, max(core.Idle-0.12, 0)
				h.StealMax = core.Steal
			}
		})
	}},
	{"diagnose-facts-backlog", "diagnose-quick-clean", func(t *testing.T, rep *result.Report) {
		between(rep, machine(t, "server-25g", "db1"), machine(t, "server-25g", "db2"))
		rows(rep, result.Server, func(h *result.HostSample) {
			h.Softnet = &result.Softnet{Processed: 900, Dropped: 3, Squeezed: 9}
		})
	}},
	{"diagnose-facts-controls", "diagnose-clean-100m-5ms", func(_ *testing.T, rep *result.Report) {
		for _, run := range rep.Runs {
			if run.Test.Direction != string(result.Down) {
				continue
			}
			for i := range run.Streams {
				if s := run.Streams[i].RemoteTCP; s != nil {
					s.Congestion = "bbr"
				}
			}
		}
	}},
	// A real iperf3 3.12; on the lab's two cores its one thread never had one for itself.
	{"diagnose-facts-old-peer", "diagnose-plain-iperf3-clean", func(_ *testing.T, rep *result.Report) {
		for _, run := range rep.Runs {
			if c := run.CPU.Of(result.Server); c != nil && run.Test.Streams > 1 {
				c.Total, c.System = 99, 99-c.User
			}
		}
	}},
	{"diagnose-facts-tool-limit", "diagnose-clean-200m-10ms", func(t *testing.T, rep *result.Report) {
		for _, s := range rep.Stages {
			if s.Name != "up-1" || s.Run == nil {
				continue
			}
			at := len(rep.Runs)
			rep.Runs = append(rep.Runs, rep.Runs[*s.Run]) // over loopback it would carry no more than this
			rep.Stages = append(rep.Stages, result.Stage{Name: "self", Title: "this machine alone", Why: "what the tool reaches here without a path", Run: &at})
			return
		}
		t.Fatal("no up-1")
	}},
}

// machine is a recorded host under a name.
func machine(t *testing.T, tree, name string) *result.Host {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "facts", tree+".json"))
	if err != nil {
		t.Fatal(err)
	}
	inv := &oshost.Inventory{}
	if err := json.Unmarshal(data, inv); err != nil {
		t.Fatal(err)
	}
	h := inv.Host
	h.SystemInfo = strings.ReplaceAll(h.SystemInfo, " "+h.Name+" ", " "+name+" ")
	h.Name, h.Tool, h.Settings = name, &result.Tool{Name: "fullbore", Version: "0.1.0"}, oshost.Settings(inv)
	frames(&h, 1500) // the lab's packets
	return &h
}

// frames sets the MTU of a host's interface.
func frames(h *result.Host, mtu int) { h.NIC.MTU, h.Settings.MTU = mtu, mtu }

// between puts two hosts in place of those that a diagnosis was made on.
func between(rep *result.Report, own, other *result.Host) {
	rep.Facts = own.Settings
	rep.Facts.Recorded = true
	seen := *own
	seen.Settings = nil // the diagnosing end's are the report's facts
	for _, run := range rep.Runs {
		run.Hosts = result.Hosts{Client: &seen, Server: other}
	}
}

// rows changes what the kernel of an end counted while something was sent.
func rows(rep *result.Report, e result.End, change func(*result.HostSample)) {
	for _, run := range rep.Runs {
		for i := range run.Rows {
			if r := &run.Rows[i]; r.End == e && r.Host != nil {
				change(r.Host)
			}
		}
	}
}

// derivation makes a derived recording from its base.
func derivation(t *testing.T, i int) *result.Report {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "runs", derived[i].base+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	rep, err := result.ReadReport(f)
	if err != nil {
		t.Fatal(err)
	}
	derived[i].change(t, rep)
	return rep
}

// derive writes the derived recordings.
func derive(t *testing.T) {
	for i, d := range derived {
		pack(t, d.name, derivation(t, i))
	}
}

// TestDerived: the derived recordings are what the table makes of their bases.
func TestDerived(t *testing.T) {
	if *update {
		derive(t)
	}
	for i, d := range derived {
		t.Run(d.name, func(t *testing.T) {
			want, err := json.Marshal(derivation(t, i))
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(load(t, filepath.Join("testdata", "runs", d.name+".json.gz")))
			if err != nil {
				t.Fatal(err)
			}
			if string(want) != string(got) {
				t.Errorf("make it anew with -update: -want +got:\n%s", cmp.Diff(string(want), string(got)))
			}
		})
	}
}
