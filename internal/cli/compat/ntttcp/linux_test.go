package ntttcp_test

import (
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/cli/compat/ntttcp"
	"github.com/fullbore-net/fullbore/internal/plan"
)

// ours are the addresses of the tests' machine.
var ours = []string{"0.0.0.0", "::", "127.0.0.1", "::1", "10.0.0.5", "192.0.2.9", "myhost.example"}

func world() ntttcp.World {
	return ntttcp.World{
		CPUs: 4, SoftFiles: 20000, HardFiles: 20000,
		Local: func(host string) bool {
			for _, h := range ours {
				if h == host {
					return true
				}
			}
			return false
		},
	}
}

// words splits a line at blanks, except within single quotes.
func words(line string) []string {
	var args []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			args = append(args, part)
			continue
		}
		args = append(args, strings.Fields(part)...)
	}
	return args
}

func parse(w ntttcp.World, line string) (*ntttcp.Invocation, *ntttcp.Exit) {
	return ntttcp.Parse("ntttcp", words(line), w)
}

func mustParse(t *testing.T, line string) *ntttcp.Invocation {
	t.Helper()
	inv, exit := parse(world(), line)
	if inv == nil {
		t.Fatalf("%s: exit %d\n%s%s", line, exit.Code, exit.Stdout, exit.Stderr)
	}
	if err := inv.Plan.Validate(); err != nil {
		t.Errorf("%s: %v", line, err)
	}
	return inv
}

func ptr[T any](v T) *T { return &v }

// linuxSender is the plan of "-s 10.0.0.9", before change.
func linuxSender(change func(*plan.Plan)) plan.Plan {
	p := plan.Plan{
		Protocol: "ntttcp", Transport: plan.TCP, Direction: plan.Up, Host: "10.0.0.9", Port: 5001, Family: 4, Streams: 64,
		Duration: time.Minute, Interval: 500 * time.Millisecond, BlockSize: 128 << 10,
		NTTTCP: &plan.NTTTCP{Dialect: plan.NTTTCPLinux, Role: plan.NTTTCPSender, Ports: 16, Threads: 4, Connections: 1},
	}
	change(&p)
	return p
}

func linuxReceiver(change func(*plan.Plan)) plan.Plan {
	p := linuxSender(func(p *plan.Plan) {
		p.Host, p.Streams, p.BlockSize = "", 16, 64<<10
		p.NTTTCP.Role, p.NTTTCP.Threads = plan.NTTTCPReceiver, 1
	})
	change(&p)
	return p
}

func shape(p *plan.Plan, ports, threads, conns int) {
	p.NTTTCP.Ports, p.NTTTCP.Threads, p.NTTTCP.Connections = ports, threads, conns
	p.Streams = ports * threads * conns
}

func TestLinuxSender(t *testing.T) {
	t.Parallel()
	tests := []struct {
		line   string
		change func(*plan.Plan)
		notes  []string // a part of each line on stderr
	}{
		{"-s10.0.0.9", func(*plan.Plan) {}, nil},
		{"-s 10.0.0.9 -P 8 -n 2 -l 3", func(p *plan.Plan) { shape(p, 8, 2, 3) }, nil},
		{"-us 10.0.0.9 -b 1400", func(p *plan.Plan) { p.Transport, p.BlockSize = plan.UDP, 1400 }, nil},
		{"-s 10.0.0.9 -u", func(p *plan.Plan) { p.Transport, p.BlockSize = plan.UDP, 65507 }, []string{"-u without -b: datagrams of 65507 bytes"}},
		{"-s -P 2 -n 1", func(p *plan.Plan) { p.Host = "127.0.0.1"; shape(p, 2, 1, 1) }, nil},
		{"-s -6", func(p *plan.Plan) { p.Host, p.Family = "::1", 6 }, nil},
		{"-s 2001:db8::9 -6 -u -b 1k", func(p *plan.Plan) { p.Host, p.Family, p.Transport, p.BlockSize = "2001:db8::9", 6, plan.UDP, 1024 }, nil},
		{"-s 10.0.0.9 -a 10.0.0.5", func(p *plan.Plan) { p.BindHost = "10.0.0.5" }, nil},
		{"-s 10.0.0.9 -p 6001 -W 2 -t 10 -C 3", func(p *plan.Plan) {
			p.Port, p.Omit, p.Duration, p.NTTTCP.CoolDown = 6001, 2*time.Second, 10*time.Second, 3*time.Second
		}, nil},
		{"-s 10.0.0.9 -t 0", func(p *plan.Plan) { p.Duration, p.Endless = 0, true }, nil},
		{"-s 10.0.0.9 -t abc", func(p *plan.Plan) { p.Duration, p.Endless = 0, true }, []string{"-t 'abc' is read as 0"}},
		{"-s 10.0.0.9 -f", func(p *plan.Plan) { p.ClientPort = 25001 }, nil},
		{"-s 10.0.0.9 -f30000", func(p *plan.Plan) { p.ClientPort = 30000 }, nil},
		{"-f 30000 -s 10.0.0.9", func(p *plan.Plan) { p.ClientPort = 30000 }, nil},
		{"-s 10.0.0.9 -f 80", func(p *plan.Plan) { p.ClientPort = 25001 }, []string{"-f 80 is too low"}},
		{"-s 10.0.0.9 -f 65500", func(*plan.Plan) {}, []string{"no room for 64 connections"}},
		{"-s 10.0.0.9 -B 200M", func(p *plan.Plan) { p.NTTTCP.Rate = 200e6 }, nil},
		{"-s 10.0.0.9 --fq-rate-limit 1.5G", func(p *plan.Plan) { p.NTTTCP.FQRate = 15e8 }, nil},
		{"-s 10.0.0.9 --fq 1G -B 1G", func(p *plan.Plan) { p.NTTTCP.Rate = 1e9 }, nil},
		{"-s 10.0.0.9 -b 1.5M --no-delay", func(p *plan.Plan) { p.BlockSize, p.NoDelay = 1572864, true }, nil},
		{"-s 10.0.0.9 -NV -Q", func(p *plan.Plan) { p.NTTTCP.NoSync = true }, nil},
		{"-s 10.0.0.9 -L", func(p *plan.Plan) { p.NTTTCP.Last = true }, nil},
		{"-s 10.0.0.9 -L -N", func(p *plan.Plan) { p.NTTTCP.NoSync = true }, []string{"-M and -L mean nothing with -N"}},
		{"-s 10.0.0.9 -e -H", func(*plan.Plan) {}, []string{"-e is ignored", "-H is ignored"}},
		{"-s 10.0.0.9 -p 70000", func(p *plan.Plan) { p.Port = 4464 }, []string{"-p 70000 means port 4464"}},
		{"-s -m 8,*,10.0.0.9", func(p *plan.Plan) {
			shape(p, 8, 1, 1)
			p.NTTTCP.Mappings = []plan.NTTTCPMapping{{Threads: 8, Host: "10.0.0.9"}}
		}, nil},
		{"-s -n 2 -m 8,*,10.0.0.9", func(p *plan.Plan) { // the later one wins
			shape(p, 8, 1, 1)
			p.NTTTCP.Mappings = []plan.NTTTCPMapping{{Threads: 8, Host: "10.0.0.9"}}
		}, nil},
		{"-s -m 8,*,10.0.0.9 -n 2 -P 4", func(p *plan.Plan) {
			shape(p, 4, 2, 1)
			p.NTTTCP.Mappings = []plan.NTTTCPMapping{{Threads: 8, Host: "10.0.0.9"}}
		}, nil},
		{"-s 10.0.0.9 -m 2", func(p *plan.Plan) {
			shape(p, 2, 1, 1)
			p.NTTTCP.Mappings = []plan.NTTTCPMapping{{Threads: 2, Host: "10.0.0.9"}}
		}, nil},
		{"-s -m 1,3,10.0.0.9", func(p *plan.Plan) {
			shape(p, 1, 1, 1)
			p.Affinity = []int{3}
			p.NTTTCP.Mappings = []plan.NTTTCPMapping{{Threads: 1, CPU: ptr(3), Host: "10.0.0.9"}}
		}, nil},
		{"-s 10.0.0.9 -m 2,9,10.0.0.7", func(p *plan.Plan) { // no such CPU: the rest is ignored
			shape(p, 2, 1, 1)
			p.NTTTCP.Mappings = []plan.NTTTCPMapping{{Threads: 2, Host: "10.0.0.9"}}
		}, nil},
		{"-s 10.0.0.9 -m 0,1,10.0.0.7", func(*plan.Plan) {}, nil},
		{"-s -m 2,*,contoso", func(p *plan.Plan) {
			shape(p, 2, 1, 1)
			p.Host = "contoso"
			p.NTTTCP.Mappings = []plan.NTTTCPMapping{{Threads: 2, Host: "contoso"}}
		}, []string{"'contoso' is looked up as a name"}},
		{"-s 10.0.0.9 stray 'two words'", func(*plan.Plan) {}, []string{"ignored, as the original does: 'stray' 'two words'"}},
		{"-s 10.0.0.9 -- -P 2", func(*plan.Plan) {}, []string{"ignored, as the original does: '-P' '2'"}},
		{"-s -m 2,*,10.0.0.9 2,*,10.0.0.8", func(p *plan.Plan) {
			shape(p, 2, 1, 1)
			p.NTTTCP.Mappings = []plan.NTTTCPMapping{{Threads: 2, Host: "10.0.0.9"}}
		}, []string{"'2,*,10.0.0.8' is ignored: one mapping"}},

		// Clamps.
		{"-s 10.0.0.9 -P 0", func(p *plan.Plan) { shape(p, 1, 4, 1) }, nil},
		{"-s 10.0.0.9 -P junk", func(p *plan.Plan) { shape(p, 1, 4, 1) }, []string{"-P 'junk' is read as 0"}},
		{"-s 10.0.0.9 -P -1", func(p *plan.Plan) { shape(p, 512, 4, 1) }, nil},
		{"-s 10.0.0.9 -P 600 -n 1", func(p *plan.Plan) { shape(p, 512, 1, 1) }, nil},
		{"-s 10.0.0.9 -P 1 -n 0 -l 0", func(p *plan.Plan) { shape(p, 1, 1, 1) }, nil},
		{"-s 10.0.0.9 -P 1 -n 1 -l 2000", func(p *plan.Plan) { shape(p, 1, 1, 1000) }, nil},
		{"-s 10.0.0.9 -t -5 -W -1 -C -1", func(*plan.Plan) {}, nil},
		{"-s 10.0.0.9 -u -b 100K", func(p *plan.Plan) { p.Transport, p.BlockSize = plan.UDP, 65507 }, nil},
	}
	for _, tt := range tests {
		inv := mustParse(t, tt.line)
		want := linuxSender(tt.change)
		want.Options = words(tt.line)
		if diff := cmp.Diff(want, inv.Plan); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, diff)
		}
		if inv.Serve != nil {
			t.Errorf("%s: a sender that listens", tt.line)
		}
		checkNotes(t, tt.line, inv.Stderr, tt.notes)
	}
}

// checkNotes: stderr has as many lines as want, each with its part.
func checkNotes(t *testing.T, line, stderr string, want []string) {
	t.Helper()
	if got := strings.Count(stderr, "\n"); got != len(want) {
		t.Errorf("%s: stderr %q, want %d lines", line, stderr, len(want))
		return
	}
	for _, w := range want {
		if !strings.Contains(stderr, w) {
			t.Errorf("%s: stderr %q, want %q", line, stderr, w)
		}
	}
	for l := range strings.Lines(stderr) {
		if !strings.HasPrefix(l, "ntttcp: ") {
			t.Errorf("%s: stderr %q", line, l)
		}
	}
}

func TestLinuxReceiver(t *testing.T) {
	t.Parallel()
	listen := func(s string) []netip.AddrPort { return []netip.AddrPort{netip.MustParseAddrPort(s)} }
	tests := []struct {
		line   string
		change func(*plan.Plan)
		listen string
		serve  func(*plan.Serve)
		notes  []string
	}{
		{"", func(*plan.Plan) {}, "0.0.0.0:5001", nil, nil},
		{"-r", func(*plan.Plan) {}, "0.0.0.0:5001", nil, nil},
		{"-r 10.0.0.5 -P 2 -n 9 -l 9", func(p *plan.Plan) { p.Host, p.NTTTCP.Ports, p.Streams = "10.0.0.5", 2, 2 }, "10.0.0.5:5001", nil, nil},
		{"-r -6 -p 6001", func(p *plan.Plan) { p.Family, p.Port = 6, 6001 }, "[::]:6001", nil, nil},
		{"-r ::1 -6", func(p *plan.Plan) { p.Family, p.Host = 6, "::1" }, "[::1]:5001", nil, nil},
		{"-r -u -b 100K", func(p *plan.Plan) { p.Transport, p.BlockSize = plan.UDP, 102400 }, "0.0.0.0:5001", nil, nil},
		{"-r -H", func(*plan.Plan) {}, "0.0.0.0:5001", func(s *plan.Serve) { s.OneOff = false }, nil},
		{"-r -M -e", func(p *plan.Plan) { p.NTTTCP.MultiClient, p.NTTTCP.Epoll = true, true }, "0.0.0.0:5001", nil, nil},
		{"-r -M -N", func(p *plan.Plan) { p.NTTTCP.NoSync = true }, "0.0.0.0:5001", nil, []string{"-M and -L mean nothing with -N"}},
		{"-r -N -t 5 -W 1", func(p *plan.Plan) { p.NTTTCP.NoSync, p.Duration, p.Omit = true, 5*time.Second, time.Second }, "0.0.0.0:5001", nil, nil},
		{"-r -f -B 1G --fq-rate-limit 1G", func(*plan.Plan) {}, "0.0.0.0:5001", nil, []string{"-f is ignored: it is the sender's", "-B is ignored", "--fq-rate-limit is ignored"}},
		{"-r 203.0.113.7", func(*plan.Plan) {}, "0.0.0.0:5001", nil, []string{"203.0.113.7 is not an address of this machine: listening on all of its own"}},
		{"-r 2001:db8::7 -6", func(p *plan.Plan) { p.Family = 6 }, "[::]:5001", nil, []string{"2001:db8::7 is not an address of this machine"}},
		{"-r -P 1 -p 1 -N", func(p *plan.Plan) { p.Port, p.NTTTCP.Ports, p.Streams, p.NTTTCP.NoSync = 1, 1, 1, true }, "0.0.0.0:1", nil, nil},
	}
	for _, tt := range tests {
		inv := mustParse(t, tt.line)
		want := linuxReceiver(tt.change)
		want.Options = append([]string(nil), words(tt.line)...)
		if diff := cmp.Diff(want, inv.Plan); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, diff)
		}
		serve := plan.Serve{Listen: listen(tt.listen), Family: want.Family, OneOff: true, Exclusive: true, Interval: want.Interval, NTTTCP: &want}
		if tt.serve != nil {
			tt.serve(&serve)
		}
		if inv.Serve == nil {
			t.Errorf("%s: no listener", tt.line)
			continue
		}
		if diff := cmp.Diff(serve, *inv.Serve, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
			t.Errorf("%s: listener (-want +got):\n%s", tt.line, diff)
		}
		if err := inv.Serve.Validate(); err != nil {
			t.Errorf("%s: %v", tt.line, err)
		}
		checkNotes(t, tt.line, inv.Stderr, tt.notes)
	}
	inv := mustParse(t, "-r myhost.example")
	if inv.ListenHosts[0] != "myhost.example" || inv.Plan.Host != "myhost.example" {
		t.Errorf("a name: %+v", inv)
	}
	w := world()
	w.Local = nil // not known: left to the run
	if inv, exit := parse(w, "-r 203.0.113.7"); exit != nil || inv.Plan.Host != "203.0.113.7" || inv.Stderr != "" {
		t.Errorf("unknown addresses: %+v %+v", inv, exit)
	}
}

func TestLinuxOutput(t *testing.T) {
	t.Parallel()
	base := ntttcp.Output{Dialect: plan.NTTTCPLinux, Realtime: true, Tables: true}
	tests := []struct {
		line   string
		change func(*ntttcp.Output)
	}{
		{"", func(*ntttcp.Output) {}},
		{"-Q", func(o *ntttcp.Output) { o.Realtime = false }},
		{"-V", func(o *ntttcp.Output) { o.Verbose, o.Threads = true, true }},
		{"-O -x -j", func(o *ntttcp.Output) {
			o.Log, o.XML, o.JSON = "ntttcp-for-linux-log.log", "ntttcp-for-linux-log.xml", "ntttcp-for-linux-log.json"
		}},
		{"-Oa.log -x b.xml -j c.json", func(o *ntttcp.Output) { o.Log, o.XML, o.JSON = "a.log", "b.xml", "c.json" }},
		{"-x '' -V", func(o *ntttcp.Output) { o.XML, o.Verbose, o.Threads = "ntttcp-for-linux-log.xml", true, true }},
		{"--show-tcp --show-nic-packets eth0 --show-dev-interrupts=mlx4", func(o *ntttcp.Output) {
			o.TCPRetransmits, o.Interface, o.Interrupts = true, "eth0", "mlx4"
		}},
		{"--show-nic-packets -V --show-dev-interrupts -Q", func(*ntttcp.Output) {}}, // swallowed, then dropped
	}
	for _, tt := range tests {
		want := base
		tt.change(&want)
		inv := mustParse(t, "-r "+tt.line)
		if diff := cmp.Diff(want, inv.Output); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, diff)
		}
	}
	if inv := mustParse(t, "-r -D"); !inv.Daemon {
		t.Error("-D: no daemon")
	}
}

// TestLinuxHeads: the recorded command lines print what the original printed before its
// first action.
func TestLinuxHeads(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/heads.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases := strings.Split(string(data), "\n$ ")[1:]
	if len(cases) < 50 {
		t.Fatalf("only %d recordings", len(cases))
	}
	w := world()
	w.Local = nil
	for _, c := range cases {
		first, head, _ := strings.Cut(c, "\n")
		head = strings.TrimSuffix(head, "\n") + "\n"
		name, line, _ := strings.Cut(first, " ")
		inv, exit := parse(w, line)
		if exit != nil {
			t.Errorf("%s: %+v", name, exit)
			continue
		}
		if diff := cmp.Diff(head, inv.Stdout()); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, line, diff)
		}
	}
}

func TestLinuxClampLines(t *testing.T) {
	t.Parallel()
	info := func(text string) string { return "00:00:00 INFO: " + text + "\n" }
	for line, want := range map[string]string{
		"-P 0":                     info("invalid number-of-server-ports provided. use 1") + info("no role"),
		"-P -1 -r":                 info("too many number-of-server-ports. use the max value"),
		"-s 10.0.0.9 -n 30000 -P1": info("too many threads-per-server-port. use the max value"),
		"-s 10.0.0.9 -l 1001 -n1":  info("too many connections-per-thread. use the max value"),
		"-s 10.0.0.9 -n 0 -l -0":   info("invalid threads-per-server-port provided. use 1") + info("invalid connections-per-thread provided. use 1"),
		"-r -n 0 -l 0":             "",
		"-r -t -1 -W -1 -C -1": info("invalid test duration provided. use the default value") +
			info("invalid test warm-up seconds provided. use the default value") + info("invalid test cool-down seconds provided. use the default value"),
		"-r -t 0":                    info("running test in continuous mode. please monitor throughput by other tools"),
		"-r -u":                      info("the UDP send size is too big. use the max value"),
		"-r -u -b 1400":              "",
		"-r --show-nic-packets -V":   info("invalid network interface provided. ignore it"),
		"-r --show-dev-interrupts -": info("invalid interrupt device provided. ignore it"),
		"-s 10.0.0.9 -f 65500":       "00:00:00 ERR : source port is too high to provide a sufficient range of ports for your test\n",
		"-s 10.0.0.9 -B 1G --fq 1G": info("Warning! '-B' is specified and the network bandwidth may be limited") +
			info("Warning! '--fq-rate-limit' is specified and the network bandwidth may be limited") + info("ignore '--fq-rate-limit' as '-B' is specified"),
		"-s -m 1,9,10.0.0.9 -s 10.0.0.9": "00:00:00 ERR : process_mappings: cpu specified is not in allowed scope\n",
		"-s -m 1,*,10.0.0.9,x":           "00:00:00 ERR : process_mappings: unexpected parameters in mapping\n",
	} {
		if strings.HasSuffix(want, info("no role")) {
			want = info("no role specified. use receiver role") + strings.TrimSuffix(want, info("no role"))
		}
		w := world()
		w.SoftFiles = 0
		inv, exit := parse(w, line)
		if exit != nil {
			t.Errorf("%s: %+v", line, exit)
			continue
		}
		if diff := cmp.Diff(want, inv.Lines); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

// TestLinuxConflicts: the original's text, the line that follows it, the settings, and
// the exit code.
func TestLinuxConflicts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ line, text, note string }{
		{"-r -s 10.0.0.9", "both sender and receiver roles provided", ""},
		{"-r -m ''", "no mapping provided", ""},
		{"-s localhost", "invalid ipv4 address provided", "'localhost': give an IPv4 address"},
		{"-s ::1", "invalid ipv4 address provided", "for IPv6 give -6 too"},
		{"-s -m 2,*,*", "invalid ipv4 address provided", "'*'"},
		{"-s -sam 5 -t 9", "invalid ipv4 address provided", "-sam is an option of the Windows dialect: --dialect windows"},
		{"-s 10.0.0.9 -6", "invalid ipv6 address provided", "colon"},
		{"-r -a 10.0.0.5", "source interface address ('-a') is only for sender or client", ""},
		{"-s 10.0.0.9 -a here", "invalid client address", "-a 'here'"},
		{"-s 10.0.0.9 -a fe80::1%x", "invalid client address", ""},
		{"-s 10.0.0.9 -M", "multi-clients mode ('-M') is only for receiver role", ""},
		{"-r -L", "last-client ('-L') is only for sender role", ""},
		{"-L", "last-client ('-L') is only for sender role", ""},
		{"-r -u --no-delay", "--no-delay option is not applicable for UDP", ""},
		// Ours: the original takes these and then waits for ever.
		{"-r -p 0", "ports out of range: data ports 0 to 15, and -1 to synchronise", "1…65535"},
		{"-r -p junk", "ports out of range", "-p 'junk' is read as 0"},
		{"-r -p 1", "ports out of range: data ports 1 to 16, and 0 to synchronise", ""},
		{"-r -p 65530", "ports out of range: data ports 65530 to 65545, and 65529 to synchronise", ""},
		{"-r -b 0", "invalid buffer size provided ('-b')", "-b: give 1 byte to"},
		{"-s 10.0.0.9 -b junk", "invalid buffer size provided ('-b')", ""},
		{"-s 10.0.0.9 -b 4G", "invalid buffer size provided ('-b')", ""},
		{"-s 10.0.0.9 -B -5", "invalid rate provided ('-B')", "such as 200M"},
		{"-s 10.0.0.9 --fq junk", "invalid rate provided ('--fq-rate-limit')", ""},
	} {
		inv, exit := parse(world(), tt.line)
		if inv != nil {
			t.Errorf("%s: accepted", tt.line)
			continue
		}
		if exit.Code != 255 || !strings.HasPrefix(exit.Stdout, "NTTTCP for Linux 1.4.3\n------") {
			t.Errorf("%s: exit %d, stdout %q", tt.line, exit.Code, exit.Stdout)
		}
		_, after, found := strings.Cut(exit.Stdout, "00:00:00 ERR : "+tt.text)
		if !found || !strings.Contains(after, "00:00:00 ERR : main: error when verifying the args\n") ||
			!strings.HasSuffix(after, "verbose mode:\t\t\t disabled\n---------------------------------------------------------\n") {
			t.Errorf("%s: stdout %q, want %q", tt.line, exit.Stdout, tt.text)
		}
		if tt.note != "" && !strings.Contains(exit.Stderr, tt.note) {
			t.Errorf("%s: stderr %q, want %q", tt.line, exit.Stderr, tt.note)
		}
	}
	_, exit := parse(world(), "-r -s 10.0.0.9 -P 2")
	if !strings.Contains(exit.Stdout, "\n*** receiver role\n*** sender role\nconnections:\t\t\t 2 X 4 X 1\n") {
		t.Errorf("settings of both roles: %q", exit.Stdout)
	}
}

func TestLinuxFiles(t *testing.T) {
	t.Parallel()
	w := world()
	w.SoftFiles, w.HardFiles = 63, 4096
	const want = "00:00:00 ERR : soft limit is too small: limit is 63; but total connections will be 64 (or more on receiver)\n" +
		"00:00:00 ERR : main: error when checking resource limits\n"
	_, exit := parse(w, "-s 10.0.0.9")
	if exit == nil || exit.Code != 255 || !strings.HasSuffix(exit.Stdout, "---\n"+want) {
		t.Errorf("%+v", exit)
	}
	_, exit = parse(w, "-s 10.0.0.9 -V")
	if exit == nil || !strings.HasSuffix(exit.Stdout, "verbose mode:\t\t\t enabled\n---------------------------------------------------------\n"+
		"00:00:00 DBG : user limits for maximum number of open files: soft: 63; hard: 4096\n"+want) {
		t.Errorf("-V: %+v", exit)
	}
	for _, line := range []string{"-r", "-s 10.0.0.9 -n 3"} {
		if _, exit := parse(w, line); exit != nil {
			t.Errorf("%s: %+v", line, exit)
		}
	}
}

// TestLinuxUsage: getopt's line on stderr, the usage on stdout, exit code 23.
func TestLinuxUsage(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"-h":          "",
		"-s -h -r":    "", // before roles are checked
		"-z":          "ntttcp: invalid option -- 'z'\n",
		"-rK":         "", // an address: refused elsewhere
		"-K x":        "ntttcp: invalid option -- 'K'\n",
		"-P":          "ntttcp: option requires an argument -- 'P'\n",
		"--bogus":     "ntttcp: unrecognized option '--bogus'\n",
		"--show":      "ntttcp: option '--show' is ambiguous; possibilities: '--show-tcp-retrans' '--show-nic-packets' '--show-dev-interrupts'\n",
		"--no-delay=": "ntttcp: option '--no-delay' doesn't allow an argument\n",
		"-s -icp 0":   "ntttcp: invalid option -- 'i'\nntttcp: -icp is an option of the Windows dialect: --dialect windows\n",
		"-s -qos 1":   "ntttcp: invalid option -- 'q'\nntttcp: -qos is an option of the Windows dialect: --dialect windows\n",
		"-r name.x":   "",
	} {
		_, exit := parse(world(), line)
		switch {
		case exit == nil:
			t.Errorf("%s: accepted", line)
		case line == "-rK":
			if exit.Code != 255 {
				t.Errorf("%s: exit %d", line, exit.Code)
			}
		case line == "-r name.x":
			if exit.Code != 23 || !strings.HasSuffix(exit.Stdout, "---\n00:00:00 ERR : cannot listen on the IP address specified\n") {
				t.Errorf("%s: %+v", line, exit)
			}
		case exit.Code != 23 || exit.Stderr != want || !strings.HasSuffix(exit.Stdout, ntttcp.LinuxHelp()):
			t.Errorf("%s: exit %d, stderr %q, want %q", line, exit.Code, exit.Stderr, want)
		}
	}
	_, exit := ntttcp.Parse("/opt/ntttcp", []string{"-z"}, world())
	if !strings.HasPrefix(exit.Stderr, "/opt/ntttcp: invalid option") {
		t.Errorf("program name: %q", exit.Stderr)
	}
	// What comes before the fault has happened.
	if _, exit = parse(world(), "-m 1,9 -z"); !strings.Contains(exit.Stdout, "cpu specified is not in allowed scope\nntttcp: [") {
		t.Errorf("%q", exit.Stdout)
	}
}

// TestLinuxWords: each word of the other dialect, by what it does.
func TestLinuxWords(t *testing.T) {
	t.Parallel()
	tests := []struct {
		line   string
		change func(*plan.Plan)
		note   string
	}{
		{"-sync", func(*plan.Plan) {}, "-sync, a word of the Windows dialect: synchronising is the default"},
		{"-ns", func(p *plan.Plan) { p.NTTTCP.NoSync = true }, "-ns, a word of the Windows dialect: no synchronisation, as -N"},
		{"-rb 1M", func(p *plan.Plan) { p.NTTTCP.ReceiveSocketBuffer = ptr(int64(1 << 20)) }, "-rb 1M, a word of the Windows dialect: SO_RCVBUF is 1048576 bytes"},
		{"-sb 0", func(p *plan.Plan) { p.NTTTCP.SendSocketBuffer = ptr(int64(0)) }, "SO_SNDBUF is 0 bytes"},
		{"-sb -1", func(*plan.Plan) {}, "SO_SNDBUF is left to the system"},
		{"-xml r.xml", func(*plan.Plan) {}, "-xml r.xml, a word of the Windows dialect: the XML result goes to r.xml"},
		{"-xml", func(*plan.Plan) {}, "the XML result goes to xml.txt"},
		{"-wu 3", func(p *plan.Plan) { p.Omit = 3 * time.Second }, "warm-up of 3 s"},
		{"-cd 4", func(p *plan.Plan) { p.NTTTCP.CoolDown = 4 * time.Second }, "cool-down of 4 s"},
		{"-ndl", func(p *plan.Plan) { p.NoDelay = true }, "TCP_NODELAY"},
		{"-nic 10.0.0.5", func(p *plan.Plan) { p.BindHost = "10.0.0.5" }, "source address 10.0.0.5"},
		{"-to 500", func(p *plan.Plan) { p.NTTTCP.WaitTimeout = 500 * time.Millisecond }, "limited to 500ms"},
		{"-to 0", func(p *plan.Plan) { p.NTTTCP.NoTimeout = true }, "no limit"},
		{"-thr 1000", func(p *plan.Plan) { p.Bitrate = 1024 * 8000 }, "at most 8192000 bit/s"},
		{"-v", func(*plan.Plan) {}, "verbose, as -V"},
		{"-hpt", func(*plan.Plan) {}, "no rows of single threads"},
		{"-a 6", func(*plan.Plan) {}, "-a without an address"},
		{"-a", func(*plan.Plan) {}, "-a without an address"},
		{"-l 64K", func(p *plan.Plan) { p.BlockSize = 65536 }, "-l 64K: a length is Windows' -l; here it is -b: 65536 bytes per call"},
	}
	seen := map[string]bool{"-l": true}
	for _, tt := range tests {
		line := "-s 10.0.0.9 " + tt.line
		inv := mustParse(t, line)
		want := linuxSender(tt.change)
		want.Options = words(line)
		if diff := cmp.Diff(want, inv.Plan); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, diff)
		}
		checkNotes(t, tt.line, inv.Stderr, []string{tt.note})
		seen[words(tt.line)[0]] = true
	}
	for _, w := range ntttcp.LinuxWords {
		if !seen[w.Word] || w.Does == "" || w.Else == "" {
			t.Errorf("%s: not tested, or not described", w.Word)
		}
	}
	inv := mustParse(t, "-s 10.0.0.9 -xml r.xml -hpt -V")
	if inv.Output.XML != "r.xml" || inv.Output.Threads || !inv.Output.Verbose {
		t.Errorf("output: %+v", inv.Output)
	}
	// A thread's rate is shared by its connections; -B wins.
	if p := mustParse(t, "-s 10.0.0.9 -thr 1000 -l 4").Plan; p.Bitrate != 1024*2000 {
		t.Errorf("-thr -l: %d", p.Bitrate)
	}
	if p := mustParse(t, "-s 10.0.0.9 -thr 1000 -B 1G").Plan; p.Bitrate != 0 || p.NTTTCP.Rate != 1e9 {
		t.Errorf("-thr -B: %+v", p)
	}
	// What only looks like such a word is the original's: -e -s is a bundle.
	if p := mustParse(t, "-es 10.0.0.9").Plan; p.Host != "10.0.0.9" {
		t.Errorf("-es: %+v", p)
	}
	if p := mustParse(t, "-s 10.0.0.9 -xml2 ").Plan; p.Host != "10.0.0.9" {
		t.Errorf("-xml2: %+v", p)
	}
	// As a value a word is a value.
	if inv := mustParse(t, "-r --show-dev-interrupts=-ns -P 2"); inv.Plan.NTTTCP.NoSync || inv.Plan.NTTTCP.Ports != 2 {
		t.Errorf("-ns as value: %+v", inv.Plan.NTTTCP)
	}
}
