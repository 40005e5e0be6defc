package oshost

import (
	"strconv"
	"strings"
)

// What Windows' settings mean, apart from the calls that fetch them: it is tested on every
// system.

// wmiValue is a property: a number (also for booleans), or a text. wmiRow is an
// instance's properties by name; what is null is absent.
type wmiValue struct {
	Number *int64 `json:"number,omitempty"`
	Text   string `json:"text,omitempty"`
}

type wmiRow map[string]wmiValue

func (r wmiRow) number(name string) *int64 { return r[name].Number }

// flag returns nil when the property is absent.
func (r wmiRow) flag(name string) *bool {
	n := r.number(name)
	if n == nil {
		return nil
	}
	on := *n != 0
	return &on
}

func (r wmiRow) is(name, text string) bool { return strings.EqualFold(r[name].Text, text) }

// winSettings is what WMI answered, by class; a class that is absent was not answered. An
// adapter class lists only the adapters that have the feature.
type winSettings map[string][]wmiRow

const (
	wmiTCP     = "MSFT_NetTCPSetting"
	wmiOffload = "MSFT_NetOffloadGlobalSetting"
	wmiRSS     = "MSFT_NetAdapterRssSettingData"
	wmiRSC     = "MSFT_NetAdapterRscSettingData"
	wmiLSO     = "MSFT_NetAdapterLsoSettingData"
)

// wmiQuery asks for some properties of all instances of a class.
type wmiQuery struct {
	class string
	props []string
}

// winClasses are the classes of root\StandardCimv2 and the properties that are read.
var winClasses = []wmiQuery{
	{wmiTCP, []string{"SettingName", "AutoTuningLevelLocal", "AutoTuningLevelGroupPolicy", "AutoTuningLevelEffective", "ScalingHeuristics"}},
	{wmiOffload, []string{"ReceiveSideScaling", "ReceiveSegmentCoalescing", "TaskOffload"}},
	{wmiRSS, []string{"Name", "InstanceID", "Enabled", "NumberOfReceiveQueues", "MaxProcessors"}},
	{wmiRSC, []string{"Name", "InstanceID", "IPv4Enabled", "IPv4OperationalState", "IPv4FailureReason", "IPv6Enabled", "IPv6OperationalState", "IPv6FailureReason"}},
	{wmiLSO, []string{"Name", "InstanceID", "IPv4Enabled", "IPv6Enabled"}},
}

// tuningLevels are AutoTuningLevelLocal's and …GroupPolicy's values, in netsh's words.
var tuningLevels = []string{"disabled", "highlyrestricted", "restricted", "normal", "experimental"}

// tcp fills what is known of TCP: the level of the template that connections beyond the
// machine room use, whoever set it.
func (s winSettings) tcp(t *TCP) {
	r := s.template("Internet")
	if r == nil {
		return
	}
	level, by := r.number("AutoTuningLevelLocal"), "local"
	if source := r.number("AutoTuningLevelEffective"); source != nil && *source == 1 {
		level, by = r.number("AutoTuningLevelGroupPolicy"), "policy"
	}
	if level != nil && *level >= 0 && *level < int64(len(tuningLevels)) {
		t.AutotuningLevel, t.AutotuningBy = tuningLevels[*level], by
	}
	t.ScalingHeuristics = r.flag("ScalingHeuristics")
}

// template returns the settings of that name, nil when there are none.
func (s winSettings) template(name string) wmiRow {
	for _, r := range s[wmiTCP] {
		if r.is("SettingName", name) {
			return r
		}
	}
	return nil
}

// global is nil when it was not answered.
func (s winSettings) global() *GlobalOffloads {
	if len(s[wmiOffload]) == 0 {
		return nil
	}
	r := s[wmiOffload][0]
	return &GlobalOffloads{RSS: r.flag("ReceiveSideScaling"), RSC: r.flag("ReceiveSegmentCoalescing"), Tasks: r.flag("TaskOffload")}
}

// adapter finds the row of an interface, by its GUID or its name. A nil row that is known
// means that the adapter has no such feature. Wine answers with nothing where Windows says
// that there is no such class; but the global switches are on every Windows.
func (s winSettings) adapter(class, guid, name string) (row wmiRow, known bool) {
	rows, answered := s[class]
	known = answered && len(s[wmiOffload]) > 0
	for _, r := range rows {
		if guid != "" && strings.Contains(strings.ToUpper(r["InstanceID"].Text), strings.ToUpper(guid)) || name != "" && r.is("Name", name) {
			return r, true
		}
	}
	return nil, known
}

// nic corrects what the registry says is configured by what the driver made of it.
func (s winSettings) nic(n *NIC, guid string) {
	set := func(feature string, on *bool) {
		if on != nil {
			n.Offloads[feature] = Offload{On: *on}
		}
	}
	if n.Offloads == nil {
		n.Offloads = map[string]Offload{}
	}
	if r, known := s.adapter(wmiLSO, guid, n.Name); r != nil {
		set(TSO, r.flag("IPv4Enabled"))
		set(TSO6, r.flag("IPv6Enabled"))
	} else if known {
		n.Offloads[TSO], n.Offloads[TSO6] = Offload{Fixed: true}, Offload{Fixed: true}
	}
	if r, known := s.adapter(wmiRSC, guid, n.Name); r != nil {
		set(LRO, r.flag("IPv4Enabled"))
		n.RSC = &Coalescing{
			IPv4: coalescing(r, "IPv4"), IPv6: coalescing(r, "IPv6"),
		}
	} else if known {
		n.Offloads[LRO] = Offload{Fixed: true}
	}
	r, known := s.adapter(wmiRSS, guid, n.Name)
	switch {
	case r != nil:
		set(RSS, r.flag("Enabled"))
		n.countQueues(r.number("NumberOfReceiveQueues"), r.number("MaxProcessors"))
	case known:
		n.Offloads[RSS] = Offload{Fixed: true}
		n.countQueues(nil, nil)
	}
}

// countQueues puts in how many queues receive, and how many of them have a CPU of their own.
func (n *NIC) countQueues(queues, cpus *int64) {
	rss, known := n.Offloads[RSS]
	if !known {
		return
	}
	now := 1
	if rss.On {
		if queues == nil || *queues < 1 || *queues > 4096 {
			return
		}
		now = int(*queues)
	}
	used := now
	if rss.On && cpus != nil && *cpus > 0 && *cpus < int64(used) {
		used = int(*cpus)
	}
	n.Queues, n.RSSQueues = &now, &used
	if n.Channels != nil {
		n.Channels.Now, n.Channels.Max = now, max(now, n.Channels.Max)
	}
}

// failureReasons are IPv4FailureReason's values, in PowerShell's words.
var failureReasons = []string{
	"NoFailure", "NicPropertyDisabled", "WFPCompatibility", "NDISCompatibility", "ForwardingEnabled", "NetOffloadGlobalDisabled", "Capability",
}

func coalescing(r wmiRow, family string) FamilyCoalescing {
	f := FamilyCoalescing{On: r.flag(family + "Enabled"), Works: r.flag(family + "OperationalState")}
	if v := r.number(family + "FailureReason"); v != nil && *v != 0 {
		f.Reason = "Unknown"
		if *v > 0 && *v < int64(len(failureReasons)) {
			f.Reason = failureReasons[*v]
		}
	}
	return f
}

// ndisFacts reads the standardised keywords of NDIS that a driver's key holds as text
// (Microsoft, "Standardized INF keywords for network devices"): checksum values are 0 none,
// 1 send, 2 receive, 3 both. value returns a keyword, or the driver's own default of it, nil
// when the driver does not have it; largest is the largest value that it offers.
func ndisFacts(n *NIC, value, largest func(keyword string) *int) {
	n.Offloads = map[string]Offload{}
	for _, k := range []struct {
		keyword, feature string
		bit              int // 0 = any
	}{
		{"*LsoV2IPv4", TSO, 0},
		{"*LsoV2IPv6", TSO6, 0},
		{"*RscIPv4", LRO, 0},
		{"*TCPChecksumOffloadIPv4", TxChecksum, 1},
		{"*TCPChecksumOffloadIPv4", RxChecksum, 2},
		{"*UsoIPv4", UDPSegment, 0},
		{"*RSS", RSS, 0},
	} {
		if v := value(k.keyword); v != nil {
			n.Offloads[k.feature] = Offload{On: k.bit == 0 && *v != 0 || *v&k.bit != 0}
		}
	}
	if most := largest("*NumRssQueues"); most != nil && *most > 0 {
		n.Channels = &Pair{Max: *most}
	}
	wide := func(v *int) *int64 {
		if v == nil {
			return nil
		}
		w := int64(*v)
		return &w
	}
	n.countQueues(wide(value("*NumRssQueues")), wide(value("*MaxRssProcessors")))
	if n.Channels != nil && n.Channels.Now == 0 {
		n.Channels = nil // how many are in use is not known
	}
}

// powerSchemes are the stock power plans (powercfg /aliases), and powerModes the overlays over
// the balanced one: the slider "power mode" of Windows 10 and 11.
var (
	powerSchemes = map[string]string{
		"381b4222-f694-41f0-9685-ff5bb260df2e": "balanced",
		"8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c": "high performance",
		"a1841308-3541-4fab-bc81-f71556f20b4a": "power saver",
		"e9a42b02-d5df-448d-aa00-03f14749eb61": "ultimate performance",
	}
	powerModes = map[string]string{
		"ded574b5-45a0-4f42-8737-46345c09c238": "best performance",
		"3af9b8d9-7c97-431d-ad78-34a8bfea439f": "better performance",
		"961cc777-2547-4f9d-8174-7d86181b8a7a": "best power efficiency",
	}
)

// power names the active plan; one that is not a stock one is "custom".
func (c *CPU) power(scheme, mode string, least *int, battery *bool) {
	scheme = strings.ToLower(strings.Trim(scheme, "{}"))
	c.OnBattery, c.MinState = battery, least
	if scheme == "" {
		return
	}
	c.Governor = powerSchemes[scheme]
	if c.Governor == "" {
		c.Governor = "custom"
	}
	if c.Governor == "balanced" {
		c.Preference = powerModes[strings.ToLower(strings.Trim(mode, "{}"))]
	}
}

// keywordNumber reads a number that the registry holds as text.
func keywordNumber(text string) *int {
	v, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return nil
	}
	return &v
}
