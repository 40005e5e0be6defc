package oshost

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recordedWindows is what the calls on a Windows host return: WMI's rows, the driver's
// keywords, the power plan. The files were made by hand from the values that Microsoft
// documents; Wine has none of these classes.
type recordedWindows struct {
	Interface string              `json:"interface"`
	GUID      string              `json:"guid"`
	WMI       map[string][]wmiRow `json:"wmi"`
	Keywords  map[string]string   `json:"keywords"`
	Largest   map[string]string   `json:"largest"`
	Power     struct {
		Scheme  string `json:"scheme"`
		Mode    string `json:"mode"`
		Least   *int   `json:"least"`
		Battery *bool  `json:"battery"`
	} `json:"power"`
}

// inventory does with them what take does.
func (r recordedWindows) inventory() *Inventory {
	inv := &Inventory{}
	n := NIC{}
	n.Name = r.Interface
	pick := func(from map[string]string) func(string) *int {
		return func(k string) *int { return keywordNumber(from[k]) }
	}
	ndisFacts(&n, pick(r.Keywords), pick(r.Largest))
	s := winSettings(r.WMI)
	s.nic(&n, r.GUID)
	s.tcp(&inv.TCP)
	inv.Offloads = s.global()
	inv.CPU.power(r.Power.Scheme, r.Power.Mode, r.Power.Least, r.Power.Battery)
	inv.NICs = []NIC{n}
	return inv
}

func loadWindows(t *testing.T, name string) recordedWindows {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "windows", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var r recordedWindows
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func ptr[T any](v T) *T { return &v }

func TestWindowsServer(t *testing.T) {
	got := loadWindows(t, "server-2022").inventory()
	both := FamilyCoalescing{On: ptr(true), Works: ptr(false), Reason: "NDISCompatibility"}
	want := &Inventory{
		TCP:      TCP{AutotuningLevel: "normal", AutotuningBy: "local", ScalingHeuristics: ptr(false)},
		CPU:      CPU{Governor: "high performance", MinState: ptr(100), OnBattery: ptr(false)},
		Offloads: &GlobalOffloads{RSS: ptr(true), RSC: ptr(true), Tasks: ptr(true)},
	}
	n := NIC{Channels: &Pair{Now: 8, Max: 16}, RSSQueues: ptr(8), RSC: &Coalescing{IPv4: both, IPv6: both}}
	n.Name, n.Queues = "SLOT 3 Port 1", ptr(8)
	n.Offloads = map[string]Offload{
		TSO: {On: true}, TSO6: {On: true}, LRO: {On: true}, RSS: {On: true},
		TxChecksum: {On: true}, RxChecksum: {On: true}, UDPSegment: {On: true},
	}
	want.NICs = []NIC{n}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A laptop whose level a group policy sets, whose card has neither RSC nor RSS, and whose
// send offload was switched off for one family.
func TestWindowsLaptop(t *testing.T) {
	got := loadWindows(t, "laptop-11").inventory()
	want := &Inventory{
		TCP:      TCP{AutotuningLevel: "restricted", AutotuningBy: "policy", ScalingHeuristics: ptr(true)},
		CPU:      CPU{Governor: "balanced", Preference: "best power efficiency", MinState: ptr(5), OnBattery: ptr(true)},
		Offloads: &GlobalOffloads{RSS: ptr(true), RSC: ptr(true), Tasks: ptr(true)},
	}
	n := NIC{RSSQueues: ptr(1)}
	n.Name, n.Queues = "Ethernet", ptr(1)
	n.Offloads = map[string]Offload{
		TSO: {}, TSO6: {On: true}, LRO: {Fixed: true}, RSS: {Fixed: true}, TxChecksum: {}, RxChecksum: {On: true},
	}
	want.NICs = []NIC{n}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Without WMI (or with Wine's, which answers every class with nothing) the registry is what
// is known, and nothing is said not to exist.
func TestWindowsWithoutWMI(t *testing.T) {
	for name, wmi := range map[string]map[string][]wmiRow{
		"none": nil,
		"Wine": {wmiTCP: {}, wmiOffload: {}, wmiRSS: {}, wmiRSC: {}, wmiLSO: {}},
	} {
		t.Run(name, func(t *testing.T) {
			r := loadWindows(t, "server-2022")
			r.WMI = wmi
			got := r.inventory()
			if diff := cmp.Diff(TCP{}, got.TCP); diff != "" || got.Offloads != nil {
				t.Errorf("%s%+v", diff, got.Offloads)
			}
			n := got.NICs[0]
			if !n.Offloads[LRO].On || !n.Offloads[RSS].On || n.Offloads[RSS].Fixed || n.RSC != nil || *n.Queues != 8 || *n.Channels != (Pair{8, 16}) {
				t.Errorf("%+v", n)
			}
			r.Keywords = nil
			if n := r.inventory().NICs[0]; len(n.Offloads) != 0 || n.Queues != nil || n.RSSQueues != nil || n.Channels != nil {
				t.Errorf("nothing is known, yet %+v", n)
			}
		})
	}
}

func TestWindowsQueues(t *testing.T) {
	for _, c := range []struct {
		name         string
		rss          Offload
		queues, cpus *int64
		want         *int // queues
		used         int
	}{
		{"all on CPUs of their own", Offload{On: true}, ptr(int64(8)), ptr(int64(16)), ptr(8), 8},
		{"more queues than CPUs may serve", Offload{On: true}, ptr(int64(8)), ptr(int64(2)), ptr(8), 2},
		{"off", Offload{}, ptr(int64(8)), ptr(int64(8)), ptr(1), 1},
		{"on, number not told", Offload{On: true}, nil, nil, nil, 0},
		{"on, number nonsense", Offload{On: true}, ptr(int64(1 << 40)), nil, nil, 0},
	} {
		n := NIC{Offloads: map[string]Offload{RSS: c.rss}}
		n.countQueues(c.queues, c.cpus)
		switch {
		case c.want == nil && (n.Queues != nil || n.RSSQueues != nil):
			t.Errorf("%s: made up %v", c.name, *n.Queues)
		case c.want != nil && (n.Queues == nil || *n.Queues != *c.want || *n.RSSQueues != c.used):
			t.Errorf("%s: %+v", c.name, n)
		}
	}
	n := NIC{}
	n.countQueues(ptr(int64(4)), nil)
	if n.Queues != nil {
		t.Error("whether RSS is on is not known, yet there are queues")
	}
}

func TestPowerPlan(t *testing.T) {
	for _, c := range []struct{ scheme, mode, plan, preference string }{
		{"{381B4222-F694-41F0-9685-FF5BB260DF2E}", "", "balanced", ""},
		{"381b4222-f694-41f0-9685-ff5bb260df2e", "ded574b5-45a0-4f42-8737-46345c09c238", "balanced", "best performance"},
		{"8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c", "961cc777-2547-4f9d-8174-7d86181b8a7a", "high performance", ""}, // modes apply to the balanced plan only
		{"e9a42b02-d5df-448d-aa00-03f14749eb61", "", "ultimate performance", ""},
		{"12345678-0000-0000-0000-000000000000", "", "custom", ""},
		{"", "", "", ""},
	} {
		var got CPU
		got.power(c.scheme, c.mode, nil, nil)
		if got.Governor != c.plan || got.Preference != c.preference {
			t.Errorf("%s %s: %+v", c.scheme, c.mode, got)
		}
	}
}

// Values that no release documents are not given a meaning.
func TestWindowsOddValues(t *testing.T) {
	s := winSettings{
		wmiTCP: {{"SettingName": {Text: "Internet"}, "AutoTuningLevelLocal": {Number: ptr(int64(9))}}},
		wmiRSC: {{
			"Name": {Text: "Ethernet"}, "IPv4Enabled": {Number: ptr(int64(1))}, "IPv4OperationalState": {Number: ptr(int64(0))}, "IPv4FailureReason": {Number: ptr(int64(99))},
		}},
	}
	var tcp TCP
	s.tcp(&tcp)
	if tcp.AutotuningLevel != "" || tcp.AutotuningBy != "" {
		t.Errorf("%+v", tcp)
	}
	n := NIC{}
	n.Name = "Ethernet"
	s.nic(&n, "")
	want := &Coalescing{IPv4: FamilyCoalescing{On: ptr(true), Works: ptr(false), Reason: "Unknown"}}
	if diff := cmp.Diff(want, n.RSC); diff != "" {
		t.Error(diff)
	}
}

// What the recorded hosts answer is what is asked for, and no more.
func TestWindowsAsksForWhatItReads(t *testing.T) {
	asked := map[string]map[string]bool{}
	for _, q := range winClasses {
		asked[q.class] = map[string]bool{}
		for _, p := range q.props {
			asked[q.class][p] = true
		}
	}
	used := map[string]bool{}
	for _, host := range []string{"server-2022", "laptop-11"} {
		for class, rows := range loadWindows(t, host).WMI {
			for _, r := range rows {
				for name := range r {
					if !asked[class][name] {
						t.Errorf("%s: %s.%s is not asked for", host, class, name)
					}
					used[class+"."+name] = true
				}
			}
		}
	}
	for class, props := range asked {
		for p := range props {
			if !used[class+"."+p] {
				t.Errorf("%s.%s is in no recorded host", class, p)
			}
		}
	}
}
