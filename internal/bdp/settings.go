package bdp

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fullbore-net/fullbore/internal/units"
)

// LinuxSettings are the limits that allow a window on Linux. Half of a socket's buffer
// is window, the rest is kept for the kernel's own bookkeeping (tcp(7),
// tcp_adv_win_scale = 1), so TCPMax is twice the window. CoreMax bounds what -w may ask
// for, before the kernel doubles it (socket(7), SO_RCVBUF), so it is the window itself.
type LinuxSettings struct {
	Window  units.ByteSize `json:"window_bytes"`
	CoreMax units.ByteSize `json:"core_max_bytes"` // net.core.rmem_max, wmem_max
	TCPMax  units.ByteSize `json:"tcp_max_bytes"`  // third number of net.ipv4.tcp_rmem, tcp_wmem
	// Lines set them until the next boot, never below the kernel's defaults. They are
	// least values: a larger one that is there already is to be kept.
	Lines []string `json:"lines"`
	// ByDefault: the defaults of tcp_rmem and tcp_wmem already allow the window, so only -w
	// needs the lines.
	ByDefault bool `json:"allowed_by_default"`
}

// Defaults of Linux: the three numbers of tcp_rmem and tcp_wmem on a machine with
// memory enough (tcp(7); the initial receive buffer is 131072 since 4.20) and the limit of
// SO_RCVBUF and SO_SNDBUF. Newer kernels have larger maxima.
const (
	tcpMin       = 4096
	tcpReadInit  = 131072
	tcpReadMost  = 6291456
	tcpSendInit  = 16384
	tcpSendMost  = 4194304
	coreMostInit = 212992
)

// maxSysctl is the largest value of these sysctls: they are C ints.
const maxSysctl = 1<<31 - 1

// ForLinux returns the settings that allow window, at most MaxWindow.
func ForLinux(window units.ByteSize) LinuxSettings {
	window = min(window, MaxWindow)
	s := LinuxSettings{Window: window, CoreMax: window, TCPMax: min(2*window, maxSysctl)}
	s.ByDefault = s.TCPMax <= tcpSendMost
	core := max(s.CoreMax, coreMostInit)
	s.Lines = []string{
		fmt.Sprintf("sysctl -w net.core.rmem_max=%d", core),
		fmt.Sprintf("sysctl -w net.core.wmem_max=%d", core),
		fmt.Sprintf("sysctl -w net.ipv4.tcp_rmem='%d %d %d'", tcpMin, tcpReadInit, max(s.TCPMax, tcpReadMost)),
		fmt.Sprintf("sysctl -w net.ipv4.tcp_wmem='%d %d %d'", tcpMin, tcpSendInit, max(s.TCPMax, tcpSendMost)),
	}
	return s
}

// WindowsLevel is a setting of Windows' receive window auto-tuning.
type WindowsLevel struct {
	Name string         // as netsh spells it
	Max  units.ByteSize // largest window it announces: 65535 shifted
}

// WindowsLevels are the levels of auto-tuning from narrow to wide, with the shift each
// allows: none, 2, 4, 8 (the default), 14. Source: Microsoft, "Performance tuning
// network adapters", table of receive window auto-tuning levels.
var WindowsLevels = []WindowsLevel{
	{"disabled", UnscaledWindow},
	{"highlyrestricted", UnscaledWindow << 2},
	{"restricted", UnscaledWindow << 4},
	{"normal", UnscaledWindow << 8},
	{"experimental", UnscaledWindow << 14},
}

// WindowsSettings are the settings that allow a window on Windows (Vista and later;
// the registry's TcpWindowSize and Tcp1323Opts are no longer read).
type WindowsSettings struct {
	Window units.ByteSize `json:"window_bytes"`
	Level  string         `json:"autotuning_level"`
	Max    units.ByteSize `json:"level_max_bytes"` // what that level allows
	// Netsh and PowerShell say the same; either will do. The PowerShell form works
	// on templates that may be changed (InternetCustom, DatacenterCustom).
	Netsh      []string `json:"netsh"`
	PowerShell []string `json:"powershell"`
}

// ForWindows returns the settings that allow window. Levels below normal are never
// advised: they save nothing.
func ForWindows(window units.ByteSize) WindowsSettings {
	level := WindowsLevels[len(WindowsLevels)-1]
	for _, l := range WindowsLevels[3:] {
		if l.Max >= window {
			level = l
			break
		}
	}
	title := map[string]string{"normal": "Normal", "experimental": "Experimental"}[level.Name]
	return WindowsSettings{
		Window: window, Level: level.Name, Max: level.Max,
		Netsh: []string{
			"netsh interface tcp show global",
			"netsh interface tcp set global autotuninglevel=" + level.Name,
		},
		PowerShell: []string{
			"Get-NetTCPSetting -SettingName Internet | Format-List AutoTuningLevelLocal,ScalingHeuristics,CongestionProvider",
			"Set-NetTCPSetting -SettingName InternetCustom -AutoTuningLevelLocal " + title,
		},
	}
}

func sortByWindow(c []Carried) {
	slices.SortFunc(c, func(a, b Carried) int { return cmp.Compare(a.Window, b.Window) })
}
