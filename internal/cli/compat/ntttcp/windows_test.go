package ntttcp_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/cli/compat/ntttcp"
	"github.com/fullbore-net/fullbore/internal/plan"
)

// onWindows is the tests' machine as a Windows one.
func onWindows() ntttcp.World {
	w := world()
	w.Windows, w.Admin = true, true
	return w
}

// windowsPlan is the plan of "-s -m 2,*,10.0.0.9 -t 10", before change.
func windowsPlan(change func(*plan.Plan)) plan.Plan {
	p := plan.Plan{
		Protocol: "ntttcp", Transport: plan.TCP, Direction: plan.Up, Host: "10.0.0.9", Port: 5001, Family: 4, Streams: 2,
		Duration: 10 * time.Second, Interval: time.Second, BlockSize: 64 << 10,
		NTTTCP: &plan.NTTTCP{
			Dialect: plan.NTTTCPWindows, Role: plan.NTTTCPSender, Ports: 2, Threads: 1, Connections: 1,
			Mappings: []plan.NTTTCPMapping{{Threads: 2, Host: "10.0.0.9"}},
		},
	}
	change(&p)
	return p
}

func counted(p *plan.Plan, buffers int64, limit time.Duration) {
	p.Duration, p.NTTTCP.Buffers, p.NTTTCP.TimeLimit = 0, buffers, limit
}

func TestWindowsSender(t *testing.T) {
	t.Parallel()
	tests := []struct {
		line   string // behind "-s -m 2,*,10.0.0.9"
		change func(*plan.Plan)
		notes  []string
	}{
		{"-t 10", func(*plan.Plan) {}, nil},
		{"-T 10 -S -V", func(*plan.Plan) {}, nil},
		{"", func(p *plan.Plan) { counted(p, 20480, 3*time.Hour) }, nil},
		{"-n 1K", func(p *plan.Plan) { counted(p, 1024, 3*time.Hour) }, nil},
		{"-N 100", func(p *plan.Plan) { counted(p, 100, 3*time.Hour) }, nil},
		{"-n 5 -t 20", func(p *plan.Plan) { counted(p, 5, 20*time.Second) }, nil},
		{"-t 20 -n 5", func(p *plan.Plan) { counted(p, 5, 20*time.Second) }, nil},
		{"-n 5 -t 1k", func(p *plan.Plan) { counted(p, 5, 1024*time.Second) }, nil},
		{"-n 5 -t 20 -wu 1", func(p *plan.Plan) { counted(p, 5, 20*time.Second) }, []string{"-wu and -cd have no effect with -n"}},
		{"-t 10 -wu 2 -cd 3", func(p *plan.Plan) { p.Omit, p.NTTTCP.CoolDown = 2*time.Second, 3*time.Second }, nil},
		{"-t 10 -l 1M", func(p *plan.Plan) { p.BlockSize = 1 << 20 }, nil},
		{"-t 10 -l 4G", func(p *plan.Plan) { p.BlockSize = 4 }, []string{"-l '4G' is read as 4"}},
		{"-t 10 -u", func(p *plan.Plan) { p.Transport, p.BlockSize = plan.UDP, 128 }, nil},
		{"-l 1400 -t 10 -u", func(p *plan.Plan) { p.Transport, p.BlockSize = plan.UDP, 1400 }, nil},
		{"-t 10 -p 6001", func(p *plan.Plan) { p.Port = 6001 }, nil},
		{"-t 10 -p 6001x", func(p *plan.Plan) { p.Port = 6001 }, []string{"-p '6001x' is read as 6001"}},
		{"-t 10 -P 8", func(p *plan.Plan) { p.Port = 8 }, []string{"-P is -p here: the first data port is 8; for 8 streams give -m 8,*,10.0.0.9"}},
		{"-t 10 -sp -ns", func(p *plan.Plan) { p.NTTTCP.PortSync, p.NTTTCP.NoSync = true, true }, nil},
		{"-t 10 -to 1500", func(p *plan.Plan) { p.NTTTCP.WaitTimeout = 1500 * time.Millisecond }, nil},
		{"-t 10 -to 0", func(p *plan.Plan) { p.NTTTCP.NoTimeout = true }, nil},
		{"-t 10 -rb 1M -sb 0", func(p *plan.Plan) {
			p.NTTTCP.ReceiveSocketBuffer, p.NTTTCP.SendSocketBuffer = ptr(int64(1<<20)), ptr(int64(0))
		}, nil},
		{"-t 10 -rb -1 -sb -1", func(*plan.Plan) {}, nil},
		{"-t 10 -a", func(p *plan.Plan) { p.NTTTCP.Outstanding = 2 }, []string{"-a: calls that overlap"}},
		{"-t 10 -a 6", func(p *plan.Plan) { p.NTTTCP.Outstanding = 6 }, []string{"-a: calls that overlap"}},
		{"-t 10 -a 2 -w", func(p *plan.Plan) { p.NTTTCP.Outstanding, p.NTTTCP.WSA = 2, true }, []string{"-w is about Windows", "-a: calls"}},
		{"-t 10 -a -x", func(p *plan.Plan) { p.NTTTCP.Outstanding, p.NTTTCP.TransmitPackets = 2, 1 }, []string{"-x is about", "-a: calls"}},
		{"-t 10 -a -x 4 -icp 0", func(p *plan.Plan) {
			p.NTTTCP.Outstanding, p.NTTTCP.TransmitPackets, p.NTTTCP.ActiveThreads = 2, 4, ptr(0)
		}, []string{"-x is about", "-icp is about", "-a: calls"}},
		{"-t 10 -a 100 -icp -1", func(p *plan.Plan) { p.NTTTCP.Outstanding, p.NTTTCP.ActiveThreads = 100, ptr(-1) }, []string{"-icp is about", "-a: calls"}},
		{"-t 10 -ndl -6", func(p *plan.Plan) { p.NoDelay, p.Family = true, 6 }, nil},
		{"-t 10 -ndl -u", func(p *plan.Plan) { p.Transport, p.BlockSize = plan.UDP, 128 }, []string{"-ndl has no effect on UDP"}},
		{"-t 10 -u -uc", func(p *plan.Plan) { p.Transport, p.BlockSize, p.NTTTCP.Unconnected = plan.UDP, 128, true }, nil},
		{"-t 10 -u -l 256K -uso 1400", func(p *plan.Plan) { p.Transport, p.BlockSize, p.NTTTCP.SegmentSize = plan.UDP, 256<<10, 1400 }, nil},
		{"-t 10 -nic 10.0.0.5", func(p *plan.Plan) { p.BindHost = "10.0.0.5" }, nil},
		{"-t 10 -na 1", func(p *plan.Plan) { p.NTTTCP.NUMANode = ptr(1) }, []string{"-na is about Windows"}},
		{"-t 10 -qos 1", func(p *plan.Plan) { p.NTTTCP.QOS, p.TOS = ptr(1), 0x20 }, nil},
		{"-t 10 -qos 3", func(p *plan.Plan) { p.NTTTCP.QOS, p.TOS = ptr(3), 0xa0 }, nil},
		{"-t 10 -d -rt", func(p *plan.Plan) { p.NTTTCP.Verify, p.NTTTCP.RoundTrip, p.NTTTCP.Latency = true, true, true }, nil},
		{"-t 10 -lm -jm", func(p *plan.Plan) { p.NTTTCP.Latency, p.NTTTCP.Jitter = true, true }, nil},
		{"-t 10 -thr 1000", func(p *plan.Plan) { p.Bitrate = 1024 * 8000 }, nil},
		{"-t 10 -thr 0 -brn 3", func(p *plan.Plan) { p.NTTTCP.CPUBurn = 3 }, nil},
		{"-t 10 -es -cfi -nsb -hpt", func(p *plan.Plan) { p.NTTTCP.EStats = true }, []string{"-es is about", "-cfi is about"}},
		{"-t 10 -sam 2 -xml", func(p *plan.Plan) { p.NTTTCP.Sample = 2 * time.Second }, nil},
		{"-sam 2 -t 10", func(p *plan.Plan) { p.NTTTCP.Sample = 2 * time.Second }, []string{"-sam without -xml"}},
		{"-wa -t 10", func(p *plan.Plan) { p.NTTTCP.WaitAll = true }, nil},

		// Words of others.
		{"-t 10 -sync", func(*plan.Plan) {}, []string{"-sync: synchronising is the default"}},
		{"-t 10 -W 2", func(p *plan.Plan) { p.NTTTCP.WindowMultiple = 2 }, []string{"-W 2: socket buffers of 2 times the autotuning maximum"}},
		{"-W 1.5 -t 10", func(p *plan.Plan) { p.NTTTCP.WindowMultiple = 1.5 }, []string{"-W 1.5: socket buffers of 1.5 times"}},
		{"-t 10 -m 1", func(*plan.Plan) {}, []string{"-m 1: a line of throughput each second"}},
		{"-N -t 10", func(p *plan.Plan) { p.NTTTCP.NoSync = true }, []string{"-N, a word of the Linux dialect"}},
		{"-t 10 -N", func(p *plan.Plan) { p.NTTTCP.NoSync = true }, []string{"-N, a word of the Linux dialect"}},
		{"-t 0", func(p *plan.Plan) { p.Duration, p.Endless = 0, true }, []string{"-t 0, as in the Linux dialect: until Ctrl-C"}},
		{"-t 10 -m 3,2,10.0.0.8", func(p *plan.Plan) {
			p.Streams, p.NTTTCP.Ports = 5, 5
			p.NTTTCP.Mappings = append(p.NTTTCP.Mappings, plan.NTTTCPMapping{Threads: 3, CPU: ptr(2), Host: "10.0.0.8"})
		}, []string{"-m is given more than once", "-m 3,2,10.0.0.8: the second field puts all of it on CPU 2"}},
	}
	for _, tt := range tests {
		line := "--dialect windows -s -m 2,*,10.0.0.9 " + tt.line
		inv := mustParse(t, line)
		want := windowsPlan(tt.change)
		want.Options = words(line)
		if diff := cmp.Diff(want, inv.Plan); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, diff)
		}
		if inv.Serve != nil || !strings.HasPrefix(inv.Stdout(), "Copyright Version 5.40\n") {
			t.Errorf("%s: %+v", tt.line, inv)
		}
		checkNotes(t, tt.line, inv.Stderr, tt.notes)
	}
	inv, exit := parse(onWindows(), "-s -m 1,*,contoso 2,3,10.0.0.8 -a 2 -w -icp 1 -x -t 1")
	if exit == nil || !strings.Contains(exit.Stdout, "no support for WSA APIs and TransmitPackets") {
		t.Errorf("-w -x: %+v", inv)
	}
	// Several receivers; on Windows itself nothing is without effect, and -a n empties SO_SNDBUF.
	inv, exit = parse(onWindows(), "-s -m 1,*,contoso 2,3,10.0.0.8 -a 2 -w -icp 1 -es -cfi -na 0 -hv -t 1")
	if exit != nil || inv.Plan.Streams != 3 || inv.Plan.Host != "contoso" || *inv.Plan.NTTTCP.SendSocketBuffer != 0 || !inv.Plan.NTTTCP.HyperV || inv.Plan.Family != 0 {
		t.Errorf("several: %+v %+v", inv, exit)
	}
	checkNotes(t, "several", inv.Stderr, []string{"-m 2,3,10.0.0.8: the second field"})
	if inv, _ := parse(onWindows(), "-s -m 1,*,h -sb 1M -a 2"); *inv.Plan.NTTTCP.SendSocketBuffer != 1<<20 {
		t.Error("-sb before -a n")
	}
}

func TestWindowsReceiver(t *testing.T) {
	t.Parallel()
	tests := []struct {
		line   string
		listen string
		host   string
		linux  int
		notes  []string
	}{
		{"-r -m 2,*,10.0.0.5 -t 10", "10.0.0.5:5001", "10.0.0.5", 0, nil},
		{"-m 2,*,0.0.0.0 -t 10", "0.0.0.0:5001", "", 0, nil},
		{"-r -m 1,*,::1 -6 -p 7000", "[::1]:7000", "::1", 0, nil},
		{"-r -m 2,*,10.0.0.5 1,*,192.0.2.9 -t 10", "10.0.0.5:5001 192.0.2.9:5003", "10.0.0.5", 0, nil},
		{"-r -m 2,*,203.0.113.7 -t 10", "0.0.0.0:5001", "", 0, []string{"203.0.113.7 is not an address of this machine: listening on all of its own"}},
		{"-r -m 2,*,myhost.example -t 10", "0.0.0.0:5001", "myhost.example", 0, nil},
		{"-r -m 1,*,10.0.0.5 -P 8 -t 10", "10.0.0.5:8", "10.0.0.5", 8, []string{"first data port is 8; for 8 streams give -m 8,*,10.0.0.5; Linux senders with -P 8 are served too, at ports 5001 to 5008; ports below 1024 may need privilege"}},
		{"-r -m 1,*,10.0.0.5 -P 900", "10.0.0.5:900", "10.0.0.5", 512, []string{"first data port is 900"}},
		{"-r -m 1,*,10.0.0.5 -P 6001", "10.0.0.5:6001", "10.0.0.5", 0, []string{"first data port is 6001"}},
		{"-r -m 1,*,10.0.0.5 -p 8", "10.0.0.5:8", "10.0.0.5", 0, nil},
		{"-r -m 1,*,10.0.0.5 -jm -t 1", "10.0.0.5:5001", "10.0.0.5", 0, []string{"-jm without a file"}},
		{"-r -m 1,*,10.0.0.5 -jm a.csv -t 1 -qos 4", "10.0.0.5:5001", "10.0.0.5", 0, nil},
		{"-r -m 1,*,10.0.0.5 -u -uro -t 1", "10.0.0.5:5001", "10.0.0.5", 0, nil},
	}
	for _, tt := range tests {
		inv := mustParse(t, "--dialect=windows "+tt.line)
		var listen []netip.AddrPort
		for _, s := range strings.Fields(tt.listen) {
			listen = append(listen, netip.MustParseAddrPort(s))
		}
		if inv.Serve == nil {
			t.Errorf("%s: no listener", tt.line)
			continue
		}
		if diff := cmp.Diff(listen, inv.Serve.Listen, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", tt.line, diff)
		}
		n := inv.Plan.NTTTCP
		if inv.Plan.Host != tt.host || n.Mappings[0].Host != tt.host || n.LinuxPorts != tt.linux || n.Role != plan.NTTTCPReceiver || inv.Plan.TOS != 0 {
			t.Errorf("%s: %+v, %+v", tt.line, inv.Plan, n)
		}
		if err := inv.Serve.Validate(); err != nil || !inv.Serve.OneOff || !inv.Serve.Exclusive {
			t.Errorf("%s: %v", tt.line, err)
		}
		if (inv.ListenHosts[0] == "myhost.example") != (tt.host == "myhost.example") {
			t.Errorf("%s: names %v", tt.line, inv.ListenHosts)
		}
		checkNotes(t, tt.line, inv.Stderr, tt.notes)
	}
}

func TestWindowsOutput(t *testing.T) {
	t.Parallel()
	base := ntttcp.Output{Dialect: plan.NTTTCPWindows, Tables: true, Threads: true}
	for line, change := range map[string]func(*ntttcp.Output){
		"":             func(*ntttcp.Output) {},
		"-v":           func(o *ntttcp.Output) { o.Verbose = true },
		"-xml":         func(o *ntttcp.Output) { o.XML, o.Tables = "xml.txt", false },
		"-XML r.xml":   func(o *ntttcp.Output) { o.XML, o.Tables = "r.xml", false },
		"-hpt -nsb":    func(o *ntttcp.Output) { o.Threads, o.Unbuffered = false, true },
		"-cfi -m 1":    func(o *ntttcp.Output) { o.CPUFromIdle, o.Realtime = true, true },
		"-jm data.csv": func(o *ntttcp.Output) { o.JitterFile = "data.csv" },
	} {
		want := base
		change(&want)
		inv := mustParse(t, "--dialect windows -r -m 1,*,10.0.0.5 -t 1 "+line)
		if diff := cmp.Diff(want, inv.Output); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

// TestWindowsFaults: ERROR line, usage, the line of main, exit code 9, all on stdout.
func TestWindowsFaults(t *testing.T) {
	t.Parallel()
	const m = "-s -m 1,*,h "
	for line, want := range map[string]string{
		m + "-l":               "ProcessArgs failed: -l option",
		m + "-l 0":             "ProcessArgs failed: -l option",
		m + "-l junk":          "ProcessArgs failed: -l option",
		m + "-l 2048M":         "ProcessArgs failed: -l option",
		m + "-u -l 65508":      "ProcessArgs failed: -l option",
		m + "-n":               "ProcessArgs failed: -n option",
		m + "-n 0":             "ProcessArgs failed: -n option",
		m + "-p 0":             "ProcessArgs failed: -p option",
		m + "-p 65000":         "ProcessArgs failed: -p option",
		m + "-t":               "ProcessArgs failed: -t option",
		m + "-t -5":            "ProcessArgs failed: -t option",
		m + "-t junk":          "ProcessArgs failed: -t option",
		m + "-t 2147484":       "ProcessArgs failed: -t option",
		m + "-n 1 -t 0":        "ProcessArgs failed: -t option (with -n set)",
		m + "-wu -1":           "ProcessArgs failed: -wu option",
		m + "-cd":              "ProcessArgs failed: -cd option",
		m + "-a 0":             "ProcessArgs failed: -a option",
		m + "-x 0 -a":          "ProcessArgs failed: -x option",
		m + "-na -1":           "ProcessArgs failed: -na option",
		m + "-ps 4":            "ProcessArgs failed: -ps option",
		m + "-ps 1001":         "ProcessArgs failed: -ps option",
		m + "-sam 0 -t 1":      "ProcessArgs failed: -sam option",
		m + "-qos 6":           "ProcessArgs failed: -qos option",
		m + "-uso -1 -u":       "ProcessArgs failed: -uso option",
		m + "-sb 4096M":        "ProcessArgs failed: -sb option",
		m + "-hv":              "ProcessArgs failed: -hv option",
		m + "-nic":             "ProcessArgs failed: -nic option",
		"-s -m 0,*,h":          "ProcessMappings failed: threads in -m option",
		"-s -m x,*,h":          "ProcessMappings failed: threads in -m option",
		"-s -m 1,4,h":          "ProcessMappings failed: processor in -m option",
		"-s -m 1,-1,h":         "ProcessMappings failed: processor in -m option",
		"-s -m 1,*,h,x":        "ProcessMappings failed: wrong state in -m option",
		"-s -m 1,h -ns":        "ProcessMappings failed: wrong final state in -m option",
		"-s -m '' -ns":         "ProcessMappings failed: wrong final state in -m option",
		m + "-w":               "VerifyArgs failed: No support for WSA APIs with sync",
		m + "-w -a -x":         "VerifyArgs failed: no support for WSA APIs and TransmitPackets",
		m + "-x":               "VerifyArgs failed: no support for TransmitPackets in synchronous mode",
		"-r -m 1,*,h -x -a":    "VerifyArgs failed: no support for TransmitPackets in receive mode",
		m + "-wa -a":           "VerifyArgs failed: full read flag supported only in synchronous mode or with WSA flag",
		"-s -ns -t 10":         "VerifyArgs failed: Option: -m <mapping> is missing",
		"-r -m 1,*,h -nic h":   "VerifyArgs failed: cannot use -nic option in receive mode",
		"-r -m 1,*,h -thr 1":   "VerifyArgs failed: Throughput throttling only in send mode.",
		"-s -m 999,*,h 1,*,h":  "VerifyArgs failed: Without '-ns', fewer than 1000 threads (connections) are allowed.",
		m + "-u -es":           "VerifyArgs failed: EStats information cannot be retrieved for UDP Ports.",
		m + "-sam 1":           "VerifyArgs failed: Sampling works only with time flag (-t).",
		"-s -m 2,*,h -ps 5":    "VerifyArgs failed: Packet spacing mode is only supported for 1 thread.",
		m + "-ps 5 -a":         "VerifyArgs failed: Packet spacing mode is only supported in synchronous mode.",
		"-r -m 1,*,h -ps 5":    "VerifyArgs failed: cannot use -ps in receive mode",
		m + "-ps 5 -thr 1":     "VerifyArgs failed: Packet spacing mode and -thr are not supported",
		m + "-ps 5 -brn 1":     "VerifyArgs failed: Packet spacing mode and -brn are not supported",
		m + "-jm -l 19":        "VerifyArgs failed: Buffer size is too small for jitter measurement mode",
		m + "-a 64":            "VerifyArgs failed: Outstanding I/O count (-a) must be smaller than 64",
		m + "-rt -a":           "VerifyArgs failed: No support for async roundtrip",
		m + "-uso 1400":        "VerifyArgs failed: -uso requires -s and -u",
		m + "-u -uro":          "VerifyArgs failed: -uro requires -r and -u",
		m + "-uc":              "VerifyArgs failed: unconnected UDP requires UDP",
		m + "-u -uc -a":        "VerifyArgs failed: no support for async unconnected UDP",
		m + "-w -x -u -es -uc": "VerifyArgs failed: No support for WSA APIs with sync", // the first one
	} {
		inv, exit := parse(world(), "--dialect windows "+line)
		if inv != nil {
			t.Errorf("%s: accepted", line)
			continue
		}
		whole := "Copyright Version 5.40\nERROR: " + want + "\n" + ntttcp.WindowsHelp() + "ERROR: main failed: error in parameters\n"
		if exit.Code != 9 || exit.Stdout != whole {
			first, _, _ := strings.Cut(exit.Stdout, "\nVersion")
			t.Errorf("%s: exit %d, %q, want %q", line, exit.Code, first, want)
		}
	}
	w := onWindows()
	w.Admin = false
	if _, exit := parse(w, m+"-es"); exit == nil || !strings.Contains(exit.Stdout, "need to be admin to run -es option.") {
		t.Errorf("-es: %+v", exit)
	}
	if _, exit := parse(onWindows(), m+"-hv -u"); exit == nil || !strings.Contains(exit.Stderr, "not with -u or -nic") {
		t.Errorf("-hv -u: %+v", exit)
	}
	many := "-s -ns -m" + strings.Repeat(" 1,*,h", 1025)
	if _, exit := parse(onWindows(), many); exit == nil || !strings.Contains(exit.Stdout, "too many mappings") {
		t.Error("1025 mappings")
	}
	if _, exit := parse(onWindows(), "-s -ns -m 2147483647,*,h 1,*,h"); exit == nil || !strings.Contains(exit.Stdout, "total threads in -m option") {
		t.Errorf("2^31 threads: %+v", exit)
	}
	// Stamped once -v was read.
	w.Now = func() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) }
	if _, exit := parse(w, m+"-v -l 0"); !strings.HasPrefix(exit.Stdout, "Copyright Version 5.40\n3/4/2026 5:6:7 ERROR: ProcessArgs failed: -l option\n\nVersion 5.40\n") ||
		!strings.HasSuffix(exit.Stdout, "\n3/4/2026 5:6:7 ERROR: main failed: error in parameters\n") {
		t.Errorf("-v: %q", exit.Stdout)
	}
}

// TestWindowsUnknown: words of nobody.
func TestWindowsUnknown(t *testing.T) {
	t.Parallel()
	for line, hint := range map[string]string{
		"-s -m 1,*,h -t10":    "'-t10' is no option",
		"-s -m 1,*,h --long":  "'--long' is no option",
		"-s -m 1,*,h -tt 60":  "'-tt' is no option",
		"-s -m 1,*,h /t 60":   "",
		"-s -m 1,*,h -ns 5":   "'5' is no option",
		"-s -m 1,*,h -W 0":    "-W 0: give a multiple",
		"-s -m 1,*,h -W 9999": "-W 9999: give a multiple",
		"-s -m 1,*,h -j -lm":  "'-j' is no option of this dialect; it is one of the Linux dialect",
		"-? -x":               "'-?' is no option",
		"-h -t":               "'-h' is no option",
	} {
		_, exit := parse(world(), "--dialect windows "+line)
		if exit == nil || exit.Code != 9 || !strings.Contains(exit.Stderr, hint) {
			t.Errorf("%s: %+v, want %q", line, exit, hint)
		}
		if exit != nil && hint != "" && !strings.HasPrefix(exit.Stdout, "Copyright Version 5.40\nUnknown option(s)\nVersion 5.40\n") {
			t.Errorf("%s: %q", line, exit.Stdout[:60])
		}
	}
	_, exit := parse(onWindows(), "")
	want := "Copyright Version 5.40\n" + ntttcp.WindowsHelp() + "ERROR: main failed: error in parameters\n"
	if exit == nil || exit.Code != 9 || exit.Stdout != want || exit.Stderr != "" {
		t.Errorf("no arguments: %+v", exit)
	}
	if _, exit := parse(onWindows(), "-h"); exit == nil || exit.Code != 9 || exit.Stdout != want {
		t.Errorf("-h: %+v", exit)
	}
}

func TestWindowsSettings(t *testing.T) {
	t.Parallel()
	inv := mustParse(t, "--dialect windows -s -v -m 2,*,10.0.0.9 1,1,h -t 10 -wu 1 -to 0 -rb 1M -nic 10.0.0.5")
	want := `Copyright Version 5.40
buffers_length: 65536
num_buffers_to_send: 9223372036854775807
send_socket_buff: -1
recv_socket_buff: 1048576
port: 5001
sync_port: 0
no_sync: 0
wait_timeout_milliseconds: -1
async_flag: 0
verbose_flag: 1
wsa_flag: 0
use_ipv6_flag: 0
send_flag: 1
udp_flag: 0
udp_unconnected_flag: 0
verify_data_flag: 0
wait_all_flag: 0
run_time: 10000
warmup_time: 1000
cooldown_time: 0
dash_n_timeout: 10800000
bind_sender_flag: 1
sender_name: 10.0.0.5
max_active_threads: 3
no_delay: 0
node_affinity: -1
udp_uso_size: 0
udp_receive_coalescing: 0
tp_flag: 0
use_hvsocket_flag: 0
no_stdio_buffer: 0
throughput_Bpms: 0
cpu_burn: 0
latency_measurement: 0
use_io_compl_ports: 0
cpu_from_idle_flag: 0
get_estats: 0
qos_flag: 0
packet_period: 0
jitter_measurement: 0
mapping[0]: 2,*,10.0.0.9
mapping[1]: 1,1,h
`
	if diff := cmp.Diff(want, inv.Stdout()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	inv = mustParse(t, "--dialect windows -r -m 1,*,0.0.0.0 -v -n 7 -t 9 -icp 4 -a 3 -na 2")
	for _, line := range []string{
		"num_buffers_to_send: 7\n", "dash_n_timeout: 9000\n", "wait_timeout_milliseconds: 600000\n", "max_active_threads: 4\n", "node_affinity: 2\n",
		"run_time: 0\n", "async_flag: 1\n", "send_socket_buff: -1\n", "mapping[0]: 1,*,0.0.0.0\n",
	} {
		if !strings.Contains(inv.Settings, line) {
			t.Errorf("no %q in %q", line, inv.Settings)
		}
	}
}
