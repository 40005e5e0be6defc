package ntttcp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/cli/compat/ntttcp"
	"github.com/fullbore-net/fullbore/internal/plan"
)

// brief is a plan in one line: dialect, role, transport, host, first port, connections,
// seconds (0 = until stopped, n = by count).
func brief(inv *ntttcp.Invocation) string {
	p := inv.Plan
	time := fmt.Sprint(p.Duration.Seconds())
	if p.NTTTCP.Buffers > 0 {
		time = fmt.Sprintf("%d calls", p.NTTTCP.Buffers)
	}
	return fmt.Sprintf("%s %s %s %q %d x%d %s", p.NTTTCP.Dialect, p.NTTTCP.Role, p.Transport, p.Host, p.Port, p.Streams, time)
}

// TestRecipes: the commands of the articles (spec/recipes.md §1, docs/from-ntttcp.md), in
// the dialect that their number stands for, or in both. 10.0.0.5 is this machine,
// 10.0.0.9 another.
func TestRecipes(t *testing.T) {
	t.Parallel()
	const (
		pinned  = "the second field puts all of it on CPU 0"
		asLinux = "ntttcp.exe refuses this line; it is read as one of NTTTCP for Linux"
		upperP  = "-P is -p here: the first data port is 8; for 8 streams give -m 8,*,"
		allOwn  = "10.0.0.9 is not an address of this machine: listening on all of its own"
		udp     = "-u without -b: datagrams of 65507 bytes"
	)
	type notes []string
	tests := []struct {
		recipe, dialect, line, want string
		notes                       notes
	}{
		{"N1", "linux", "-r", `linux receiver tcp "" 5001 x16 60`, nil},
		{"N1", "linux", "-s", `linux sender tcp "127.0.0.1" 5001 x64 60`, nil},
		{"N1", "windows", "-r", `linux receiver tcp "" 5001 x16 60`, notes{asLinux}},
		{"N1", "windows", "-s", `linux sender tcp "127.0.0.1" 5001 x64 60`, notes{asLinux}},
		{"N2", "linux", "-r 10.0.0.5", `linux receiver tcp "10.0.0.5" 5001 x16 60`, nil},
		{"N2", "linux", "-s 10.0.0.9", `linux sender tcp "10.0.0.9" 5001 x64 60`, nil},
		{"N2", "windows", "-r 10.0.0.5", `linux receiver tcp "10.0.0.5" 5001 x16 60`, notes{asLinux}},
		{"N2", "windows", "-s 10.0.0.9 -P 8 -t 30", `linux sender tcp "10.0.0.9" 5001 x32 30`, notes{asLinux}},
		{"N3", "linux", "-r -m 1,0,10.0.0.5 -P 8 -t 60", `linux receiver tcp "10.0.0.5" 5001 x8 60`, notes{pinned}},
		{"N3", "linux", "-s -m 1,0,10.0.0.9 -P 8 -t 60", `linux sender tcp "10.0.0.9" 5001 x8 60`, notes{pinned}},
		{"N4", "linux", "-r -u -m 1,0,10.0.0.5 -P 4 -t 30", `linux receiver udp "10.0.0.5" 5001 x4 30`, notes{pinned}},
		{"N4", "linux", "-s -u -m 1,0,10.0.0.9 -P 4 -t 30", `linux sender udp "10.0.0.9" 5001 x4 30`, notes{pinned, udp}},
		{"N5", "windows", "-r -m 1,0,10.0.0.5 -t 30", `windows receiver tcp "10.0.0.5" 5001 x1 30`, nil},
		{"N5", "linux", "-s -m 1,0,10.0.0.9 -t 30", `linux sender tcp "10.0.0.9" 5001 x1 30`, nil},
		{"N6", "windows", "-r -m 1,0,10.0.0.5 -P 8 -t 30", `windows receiver tcp "10.0.0.5" 8 x1 30`, notes{upperP + "10.0.0.5; Linux senders with -P 8 are served too, at ports 5001 to 5008"}},
		{"N6", "linux", "-s -m 1,0,10.0.0.9 -P 8 -t 30", `linux sender tcp "10.0.0.9" 5001 x8 30`, notes{pinned}},
		{"N7", "windows", "-r -u -m 1,0,10.0.0.5 -P 8 -t 30", `windows receiver udp "10.0.0.5" 8 x1 30`, notes{upperP}},
		{"N7", "linux", "-s -u -m 1,0,10.0.0.9 -P 8 -t 30", `linux sender udp "10.0.0.9" 5001 x8 30`, notes{pinned, udp}},
		{"N8", "linux", "-r -m 4,*,10.0.0.5 -t 300", `linux receiver tcp "10.0.0.5" 5001 x4 300`, nil},
		{"N8", "linux", "-s -m 4,*,10.0.0.9 -t 300", `linux sender tcp "10.0.0.9" 5001 x4 300`, nil},
		{"N8", "windows", "-r -m 4,*,10.0.0.5 -t 300", `windows receiver tcp "10.0.0.5" 5001 x4 300`, nil},
		{"N8", "windows", "-s -m 4,*,10.0.0.9 -t 300", `windows sender tcp "10.0.0.9" 5001 x4 300`, nil},
		{"N8, trial", "linux", "-r -m 4,*,10.0.0.5 -P 1 -t 10", `linux receiver tcp "10.0.0.5" 5001 x1 10`, nil},
		{"N8, trial", "windows", "-r -m 4,*,10.0.0.5 -P 1 -t 10", `windows receiver tcp "10.0.0.5" 1 x4 10`, notes{"-P is -p here: the first data port is 1; for 1 streams give -m 1,*,10.0.0.5"}},
		{"N8, trial", "windows", "-s -m 4,*,10.0.0.9 -P 1 -t 10", `windows sender tcp "10.0.0.9" 1 x4 10`, notes{"-P is -p here"}},
		{"N9", "windows", "-r -m 4,*,10.0.0.9 -t 300", `windows receiver tcp "" 5001 x4 300`, notes{allOwn}},
		{"N9", "linux", "-r -m 4,*,10.0.0.9 -t 300", `linux receiver tcp "" 5001 x4 300`, notes{allOwn}},
		{"N10", "windows", "-s -m 4,*,10.0.0.9 -ns -t 300", `windows sender tcp "10.0.0.9" 5001 x4 300`, nil},
		{"N10", "linux", "-r -m 4,*,10.0.0.5 -N", `linux receiver tcp "10.0.0.5" 5001 x4 60`, nil},
		{"N11", "linux", "-s -m 4,*,10.0.0.9 -rb 1M -sb 1M -t 9", `linux sender tcp "10.0.0.9" 5001 x4 9`, notes{"SO_RCVBUF is 1048576 bytes", "SO_SNDBUF is 1048576 bytes"}},
		{"N11", "windows", "-s -m 4,*,10.0.0.9 -rb 1M -sb 1M -t 9", `windows sender tcp "10.0.0.9" 5001 x4 9`, nil},
		{"N11", "linux", "-s -m 4,*,10.0.0.9 -l 64K", `linux sender tcp "10.0.0.9" 5001 x4 60`, notes{"here it is -b: 65536 bytes per call"}},
		{"N11", "windows", "-s -m 4,*,10.0.0.9 -l 64K", `windows sender tcp "10.0.0.9" 5001 x4 20480 calls`, nil},
		{"N11", "linux", "-s 10.0.0.9 -xml result.xml", `linux sender tcp "10.0.0.9" 5001 x64 60`, notes{"the XML result goes to result.xml"}},
		{"N11", "windows", "-s -m 4,*,10.0.0.9 -xml result.xml -t 9", `windows sender tcp "10.0.0.9" 5001 x4 9`, nil},
		{"N11", "linux", "-s 10.0.0.9 -m 1", `linux sender tcp "10.0.0.9" 5001 x1 60`, nil},
		{"N11", "windows", "-s -m 4,*,10.0.0.9 -m 1 -t 9", `windows sender tcp "10.0.0.9" 5001 x4 9`, notes{"a line of throughput each second"}},
		{"N11", "linux", "-s 10.0.0.9 -sync", `linux sender tcp "10.0.0.9" 5001 x64 60`, notes{"synchronising is the default"}},
		{"N11", "windows", "-s -m 4,*,10.0.0.9 -sync -t 9", `windows sender tcp "10.0.0.9" 5001 x4 9`, notes{"synchronising is the default"}},
		{"N11", "linux", "-s 10.0.0.9 -W 2", `linux sender tcp "10.0.0.9" 5001 x64 60`, nil},
		{"N11", "windows", "-s -m 4,*,10.0.0.9 -W 2 -t 9", `windows sender tcp "10.0.0.9" 5001 x4 9`, notes{"socket buffers of 2 times"}},
		{"N11", "windows", "-s -m 4,*,10.0.0.9 -W 4 -t 9", `windows sender tcp "10.0.0.9" 5001 x4 9`, notes{"socket buffers of 4 times"}},
		{"seed", "windows", "-r -P 8 -t 30", `linux receiver tcp "" 5001 x8 30`, notes{asLinux}},
		{"seed", "windows", "-s 10.0.0.9 -u", `linux sender udp "10.0.0.9" 5001 x64 60`, notes{asLinux, udp}},
		{"seed", "windows", "-r -m 8 -N", `linux receiver tcp "" 5001 x8 60`, notes{asLinux}},
		{"Microsoft", "windows", "-r -m 4,*,10.0.0.5 -a 6 -rb 2M -t 15", `windows receiver tcp "10.0.0.5" 5001 x4 15`, notes{"-a: calls that overlap"}},
		{"Microsoft", "linux", "-r -m 4,*,10.0.0.5 -a 6 -rb 2M -t 15", `linux receiver tcp "10.0.0.5" 5001 x4 15`, notes{"-a without an address", "SO_RCVBUF is 2097152 bytes"}},
		{"Azure", "windows", "-r -t 10 -P 1", `linux receiver tcp "" 5001 x1 10`, notes{asLinux}},
		{"Azure", "windows", "-s10.0.0.9 -t 10 -n 1 -P 1", `linux sender tcp "10.0.0.9" 5001 x1 10`, notes{asLinux}},
		{"Azure", "windows", "-s –m 8,*,10.0.0.9 -t 300", `windows sender tcp "10.0.0.9" 5001 x8 300`, notes{"–m: read as -m"}},
		{"Azure", "linux", "-s –m 8,*,10.0.0.9 —no-delay −t 300", `linux sender tcp "10.0.0.9" 5001 x8 300`, notes{"–m: read as -m", "—no-delay: read as --no-delay", "−t: read as -t"}},
		{"Azure in PowerShell", "windows", "-s -m 8 * 10.0.0.9 -t 300", `windows sender tcp "10.0.0.9" 5001 x8 300`, notes{"-m 8 * 10.0.0.9: read as 8,*,10.0.0.9"}},
		{"Azure in PowerShell", "windows", "-s -m 8 * 10.0.0.9 2 0 10.0.0.5 -t 300", `windows sender tcp "10.0.0.9" 5001 x10 300`, notes{"read as 8,*,10.0.0.9 2,0,10.0.0.5", "the second field puts all of it on CPU 0"}},
		{"Hold", "windows", "-r -m 4,*,10.0.0.5 -H", `linux receiver tcp "10.0.0.5" 5001 x4 60`, notes{asLinux}},
	}
	seen := map[string]bool{}
	for _, tt := range tests {
		inv := mustParse(t, "--dialect "+tt.dialect+" "+tt.line)
		if got := brief(inv); got != tt.want {
			t.Errorf("%s %s %s: %s, want %s", tt.recipe, tt.dialect, tt.line, got, tt.want)
		}
		if inv.Lines != "" && !strings.Contains(tt.line, "-u") {
			t.Errorf("%s %s: %q", tt.recipe, tt.line, inv.Lines)
		}
		checkNotes(t, tt.line, inv.Stderr, tt.notes)
		seen[tt.recipe] = true
	}
	for i := 1; i <= 11; i++ {
		if !seen[fmt.Sprintf("N%d", i)] {
			t.Errorf("recipe N%d is missing", i)
		}
	}
	// What a word does beyond that.
	both := func(line string) *plan.NTTTCP { return mustParse(t, line).Plan.NTTTCP }
	if n := both("--dialect windows -s -m 4,*,10.0.0.9 -W 2 -t 9"); n.WindowMultiple != 2 || n.WSA {
		t.Errorf("-W 2: %+v", n)
	}
	if inv := mustParse(t, "--dialect linux -s 10.0.0.9 -W 2"); inv.Plan.Omit.Seconds() != 2 || inv.Plan.NTTTCP.WindowMultiple != 0 {
		t.Errorf("-W 2 is warm-up on Linux: %+v", inv.Plan)
	}
	if n := both("--dialect windows -r -m 1,0,10.0.0.5 -P 8 -t 30"); n.LinuxPorts != 8 {
		t.Errorf("-P 8 on a Windows receiver: %+v", n)
	}
	if inv := mustParse(t, "--dialect windows -s -m 4,*,10.0.0.9 -m 1 -t 9"); !inv.Output.Realtime || inv.Plan.Interval.Seconds() != 1 {
		t.Errorf("-m 1: %+v", inv.Output)
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		argv0, line string
		windows     bool
		want        plan.NTTTCPDialect
		rest        string
	}{
		{"ntttcp", "-r", false, plan.NTTTCPLinux, "-r"},
		{"/usr/bin/ntttcp", "-r", false, plan.NTTTCPLinux, "-r"},
		{"ntttcp", "-r", true, plan.NTTTCPWindows, "-r"},
		{`C:\tools\NTttcp.EXE`, "-r", false, plan.NTTTCPWindows, "-r"},
		{"ntttcps", "-m x", false, plan.NTTTCPWindows, "-m x"},
		{"./ntttcpr", "-m x", false, plan.NTTTCPWindows, "-m x"},
		{"ntttcpr.exe", "-m x", false, plan.NTTTCPWindows, "-m x"},
		{"ntttcp", "--dialect windows -r", false, plan.NTTTCPWindows, "-r"},
		{"ntttcp", "--dialect=Windows -r", false, plan.NTTTCPWindows, "-r"},
		{"ntttcps.exe", "--dialect linux -r", true, plan.NTTTCPLinux, "-r"},
		{"ntttcp", "-r --dialect windows", false, plan.NTTTCPLinux, "-r --dialect windows"},
	} {
		d, rest, ok := ntttcp.Choose(c.argv0, words(c.line), c.windows)
		if !ok || d != c.want || strings.Join(rest, " ") != c.rest {
			t.Errorf("%s %s: %v %q %v", c.argv0, c.line, d, rest, ok)
		}
	}
	for _, line := range []string{"--dialect", "--dialect mac -r", "--dialect="} {
		if _, exit := parse(world(), line); exit == nil || exit.Code != 23 || exit.Stderr != "ntttcp: --dialect: give linux or windows\n" {
			t.Errorf("%s: %+v", line, exit)
		}
	}
	// The role of the name: the last word wins.
	for argv0, want := range map[string]plan.NTTTCPRole{
		"ntttcps": plan.NTTTCPSender, `D:\NTTTCPS.exe`: plan.NTTTCPSender, "ntttcpr": plan.NTTTCPReceiver, "ntttcp.exe": plan.NTTTCPReceiver,
	} {
		inv, exit := ntttcp.Parse(argv0, words("-m 1,*,10.0.0.5 -t 1"), world())
		if exit != nil || inv.Plan.NTTTCP.Role != want {
			t.Errorf("%s: %+v %+v", argv0, inv, exit)
		}
	}
	inv, exit := ntttcp.Parse("ntttcps", words("-r -m 1,*,10.0.0.5"), world())
	if exit != nil || inv.Plan.NTTTCP.Sends() {
		t.Errorf("ntttcps -r: %+v %+v", inv, exit)
	}
	// Read as Linux's, the name still says the role.
	inv, exit = ntttcp.Parse("ntttcps", words("-P 8 -t 5"), world())
	if exit != nil || !inv.Plan.NTTTCP.Sends() || inv.Plan.NTTTCP.Dialect != plan.NTTTCPLinux {
		t.Errorf("ntttcps -P 8: %+v %+v", inv, exit)
	}
}

// TestNotReadAsLinux: what Windows' program refuses stays refused where the Linux
// reading is not a clear one.
func TestNotReadAsLinux(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"-s -m 8,*,h -tt 60", "-s -m 8,*,h -t10", "-s -ns -t 10", "-r -rb 1M", "-s -P 600", "-s 10.0.0.9 stray", "-s 10.0.0.9 -t x",
		"-s 10.0.0.9 -a 6", "-r 10.0.0.5 -L", "-s localhost -t 5", "-uN -s", "-s -m 8,*,h -a 99", "-m 0,1", "-s -m 8 * h 2", "-s -m x * h", "-s -m 8,* h 1", "-h", "-s -m 8,*,h -l 0",
	} {
		if inv, exit := parse(world(), "--dialect windows "+line); exit == nil || exit.Code != 9 {
			t.Errorf("%s: %s", line, brief(inv))
		}
	}
}

// FuzzParse: every line gives a plan that can run, or an end as one of the originals'.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"-r", "-s\n10.0.0.9\n-P\n8", "--dialect\nwindows\n-s\n-m\n4,*,10.0.0.9\n2,0,h\n-t\n10", "-uNV\n-x\n-ns\n-l\n64K", "--dialect=windows\n-r\n-m\n1,0,h\n-P\n8",
		"-m\n1,99,x,y\n-a\n6\n--fq\n1e9g", "--dialect=windows\n-W\n1e999\n-m\n1,,h", "-f\n-O\n--\nx", "-p\n-1\n-N", "--dialect=windows\n-s\n10.0.0.9\n-rb\n-1",
	} {
		f.Add(s)
	}
	codes := map[int]bool{9: true, 23: true, 255: true}
	f.Fuzz(func(t *testing.T, line string) {
		inv, exit := ntttcp.Parse("ntttcp", strings.Split(line, "\n"), world())
		if (inv == nil) == (exit == nil) {
			t.Fatalf("both or neither: %+v, %+v", inv, exit)
		}
		if exit != nil {
			if !codes[exit.Code] || exit.Stdout == "" && exit.Stderr == "" {
				t.Errorf("%+v", exit)
			}
			return
		}
		if err := inv.Plan.Validate(); err != nil {
			t.Errorf("a plan that cannot run: %v", err)
		}
		if (inv.Serve == nil) != inv.Plan.NTTTCP.Sends() {
			t.Error("a listener on the wrong side")
		}
		if inv.Serve != nil {
			if err := inv.Serve.Validate(); err != nil {
				t.Errorf("settings that cannot serve: %v", err)
			}
		}
		if inv.Stderr != "" && !strings.HasSuffix(inv.Stderr, "\n") {
			t.Errorf("stderr %q", inv.Stderr)
		}
	})
}
