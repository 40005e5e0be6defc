//go:build !windows

// The trees hold symbolic links and names with colons (PCI addresses), which Windows has not.

package oshost

import (
	"context"
	"encoding/json"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden inventories anew")

// unpack lays a host out below a new folder: in the archive each "-- name --" line begins
// a file, "-- name -> target --" is a symbolic link.
func unpack(t *testing.T, archive string) string {
	t.Helper()
	data, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	parts := regexp.MustCompile(`(?m)^-- (.*) --\n`).FindAllSubmatchIndex(data, -1)
	for i, at := range parts {
		end := len(data)
		if i+1 < len(parts) {
			end = parts[i+1][0]
		}
		name, target, isLink := strings.Cut(string(data[at[2]:at[3]]), " -> ")
		p := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(p), 0o755)
		if err == nil && isLink {
			err = os.Symlink(target, p)
		} else if err == nil {
			err = os.WriteFile(p, data[at[1]:end], 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// recordedPeers are the peers the inventories are taken towards; none = the default route.
var recordedPeers = map[string]netip.Addr{"server-25g": netip.MustParseAddr("192.0.2.9")}

// Each recorded host has its inventory beside it; the doctor's rules are tested on those.
func TestRecorded(t *testing.T) {
	archives, err := filepath.Glob("testdata/hosts/*.txtar")
	if err != nil || len(archives) < 5 {
		t.Fatalf("%d recorded hosts, %v", len(archives), err)
	}
	for _, archive := range archives {
		name := strings.TrimSuffix(filepath.Base(archive), ".txtar")
		t.Run(name, func(t *testing.T) {
			inv, err := Recorded(context.Background(), unpack(t, archive), recordedPeers[name])
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(inv, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(archive, ".txtar") + ".json"
			if *update {
				if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimSpace(string(want)), string(got)); diff != "" {
				t.Error(diff)
			}
			var back Inventory
			if err := json.Unmarshal(want, &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(inv, &back); diff != "" {
				t.Errorf("the JSON form loses something: %s", diff)
			}
		})
	}
}

// The route to a peer decides, not the default route.
func TestRecordedPeer(t *testing.T) {
	dir := unpack(t, "testdata/hosts/server-25g.txtar")
	inv, err := Recorded(context.Background(), dir, netip.MustParseAddr("192.0.2.9"))
	if err != nil {
		t.Fatal(err)
	}
	if inv.NICs[0].Name != "ens1f0" || inv.Peer != "192.0.2.9" {
		t.Errorf("interface to 192.0.2.9: %s", inv.NICs[0].Name)
	}
	if got := (tree{dir}).defaultInterface(); got != "eno1" {
		t.Errorf("default route: %s, want eno1, which has the lesser metric", got)
	}
}

// What a server tells is what the doctor sees, but for what it does not look at for a test: services
// and what keeps the clock.
func TestBrief(t *testing.T) {
	dir := unpack(t, "testdata/hosts/server-25g.txtar")
	peer := netip.MustParseAddr("192.0.2.9")
	inv, err := Recorded(context.Background(), dir, peer)
	if err != nil {
		t.Fatal(err)
	}
	k, err := loadKernel(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := collector{tree: tree{dir}, kernel: k}
	got := c.brief(context.Background(), peer)
	want := Settings(inv)
	want.Recorded, want.ClockSynced = false, nil
	if diff := cmp.Diff(want, Settings(got)); diff != "" {
		t.Error(diff)
	}
	if got.Host.NIC == nil || got.Host.NIC.Name != "ens1f0" || got.Host.Name != "db1" {
		t.Errorf("%+v", got.Host)
	}
}

func TestRecordedRefusesOtherFolders(t *testing.T) {
	if inv, err := Recorded(context.Background(), t.TempDir(), netip.Addr{}); err == nil {
		t.Errorf("an empty folder gave %+v", inv)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kernel.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Recorded(context.Background(), dir, netip.Addr{}); err == nil {
		t.Error("broken kernel.json was taken")
	}
}

// A cancelled collection says that it is incomplete.
func TestInventoryCancelled(t *testing.T) {
	dir := unpack(t, "testdata/hosts/server-25g.txtar")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	inv, err := Recorded(ctx, dir, netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	if len(inv.NICs) != 0 || !strings.Contains(strings.Join(inv.Missing, "\n"), "canceled") {
		t.Errorf("NICs %v, missing %v", inv.NICs, inv.Missing)
	}
}

func TestVirtual(t *testing.T) {
	const flagged = "flags\t: fpu hypervisor\n"
	const bare = "flags\t: fpu\n"
	for _, c := range []struct {
		name    string
		files   map[string]string
		cpuinfo string
		want    string
	}{
		{"nothing known", nil, "", ""},
		{"bare metal", map[string]string{"sys/class/dmi/id/sys_vendor": "Dell Inc.\n"}, bare, "none"},
		{"QEMU", map[string]string{"sys/class/dmi/id/sys_vendor": "QEMU\n"}, flagged, "kvm"},
		{"Hyper-V", map[string]string{"sys/class/dmi/id/sys_vendor": "Microsoft Corporation\n", "sys/class/dmi/id/product_name": "Virtual Machine\n"}, flagged, "hyperv"},
		{"a Surface is not Hyper-V", map[string]string{"sys/class/dmi/id/sys_vendor": "Microsoft Corporation\n", "sys/class/dmi/id/product_name": "Surface Pro\n"}, bare, "none"},
		{"EC2 instance", map[string]string{"sys/class/dmi/id/sys_vendor": "Amazon EC2\n"}, flagged, "ec2"},
		{"EC2 bare metal", map[string]string{"sys/class/dmi/id/sys_vendor": "Amazon EC2\n"}, bare, "none"},
		{"EC2 Graviton has no CPU flag", map[string]string{"sys/class/dmi/id/sys_vendor": "Amazon EC2\n"}, "", "ec2"},
		{"Xen", map[string]string{"sys/hypervisor/type": "xen\n"}, flagged, "xen"},
		{"WSL", map[string]string{"proc/sys/kernel/osrelease": "5.15.90.1-microsoft-standard-WSL2\n"}, flagged, "wsl"},
		{"micro VM without DMI", map[string]string{"sys/bus/virtio/devices/virtio0/status": "7\n"}, flagged, "kvm"},
		{"flag alone", nil, flagged, "unknown hypervisor"},
		{"device tree", map[string]string{"proc/device-tree/hypervisor/compatible": "linux,kvm\x00"}, "", "linux,kvm"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.files {
				p := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := (&collector{tree: tree{dir}}).virtual([]byte(c.cpuinfo)); got != c.want {
				t.Errorf("virtual = %q, want %q", got, c.want)
			}
		})
	}
}

func TestSmallParsers(t *testing.T) {
	for mask, want := range map[string][]int{
		"0": nil, "00000000,00000000": nil, "f": {0, 1, 2, 3}, "00000001,80000000": {31, 32}, "zz": nil,
	} {
		if got := maskBits(mask); !cmp.Equal(got, want) {
			t.Errorf("maskBits(%q) = %v, want %v", mask, got, want)
		}
	}
	for list, want := range map[string]int{"0": 1, "0-3": 4, "0-3,8,10-11\n": 7, "": 0, "3-1": 0, "x": 0} {
		if got := countCPUs(list); got != want {
			t.Errorf("countCPUs(%q) = %d, want %d", list, got, want)
		}
	}
	for _, c := range []struct {
		speed, width string
		want         int64
	}{
		{"2.5 GT/s PCIe", "1", 2_000_000_000},
		{"8.0 GT/s PCIe", "8", 63_015_384_615},
		{"16.0 GT/s PCIe", "16", 252_061_538_461},
	} {
		if got := pcieRate(c.speed, c.width); got == nil || *got != c.want {
			t.Errorf("pcieRate(%s, %s) = %v, want %d", c.speed, c.width, got, c.want)
		}
	}
	if got := pcieRate("Unknown", "0"); got != nil {
		t.Errorf("an unknown link carries %d", *got)
	}
	if got := fastest([]uint32{1<<5 | 1<<12 | 1<<31}); got != 25000 {
		t.Errorf("fastest of 1, 10 and 25 Gbit/s = %d", got)
	}
	if got := fastest([]uint32{1<<6 | 1<<7}); got != 0 {
		t.Errorf("autonegotiation and twisted pair are no speeds: %d", got)
	}
}

func TestPCIIDs(t *testing.T) {
	const ids = "# comment\n1af4  Red Hat, Inc.\n\t1041  Virtio 1.0 network device\n8086  Intel Corporation\n\t0001  One\n\t\t8086 0002  A board\n\t1234  Wanted Controller\n9999  Next\n\t1234  Not this\nC 02  Network controller\n"
	for id, want := range map[string]string{"8086:1234": "Intel Corporation Wanted Controller", "8086:ffff": "", "7777:0001": "", "9999:1234": "Next Not this"} {
		v, d, _ := strings.Cut(id, ":")
		if got := lookupPCI(strings.NewReader(ids), v, d); got != want {
			t.Errorf("%s = %q, want %q", id, got, want)
		}
	}
}
