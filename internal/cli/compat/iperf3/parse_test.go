package iperf3_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fullbore-net/fullbore/internal/cli/compat/iperf3"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/google/go-cmp/cmp"
)

// files are what the tests' world holds.
var files = sync.OnceValue(func() fstest.MapFS {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	elliptic, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	der := func(b []byte, err error) []byte {
		if err != nil {
			panic(err)
		}
		return b
	}
	file := func(kind string, der []byte) *fstest.MapFile {
		return &fstest.MapFile{Data: pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})}
	}
	return fstest.MapFS{
		"pub.pem":   file("PUBLIC KEY", der(x509.MarshalPKIXPublicKey(&key.PublicKey))),
		"pub1.pem":  file("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&key.PublicKey)),
		"priv.pem":  file("PRIVATE KEY", der(x509.MarshalPKCS8PrivateKey(key))),
		"priv1.pem": file("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)),
		"ec.pem":    file("PUBLIC KEY", der(x509.MarshalPKIXPublicKey(&elliptic.PublicKey))),
		"junk.pem":  {Data: []byte("hello\n")},
		"users.csv": {Data: []byte("mario,00\n")},
		"data.bin":  {Data: make([]byte, 3000)},
		"empty.bin": {},
	}
})

func world(t *testing.T) iperf3.World {
	t.Helper()
	fsys := files()
	return iperf3.World{
		Password: func(user string) (string, bool) { return "secret of " + user, true },
		ReadFile: func(name string) ([]byte, error) { return fs.ReadFile(fsys, name) },
		Stat:     func(name string) (fs.FileInfo, error) { return fs.Stat(fsys, name) },
		Build:    "1.2.3",
		System:   func() string { return "Linux testhost 6.1.0-example #1 SMP PREEMPT_DYNAMIC x86_64" },
		Features: []iperf3.Feature{
			iperf3.FeatureGSRO, iperf3.FeatureAffinity, iperf3.FeatureFlowLabel, iperf3.FeatureCongestion,
			iperf3.FeatureZeroCopy, iperf3.FeaturePacing, iperf3.FeatureAuth, iperf3.FeatureBindDev,
			iperf3.FeatureDontFragment, iperf3.FeatureThreads,
		},
	}
}

// parse splits line at blanks, except for words in single quotes.
func parse(t *testing.T, w iperf3.World, line string) (*iperf3.Invocation, *iperf3.Exit) {
	t.Helper()
	return iperf3.Parse("iperf3", words(line), w)
}

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

func mustParse(t *testing.T, line string) *iperf3.Invocation {
	t.Helper()
	inv, exit := parse(t, world(t), line)
	if inv == nil {
		t.Fatalf("%s: %+v", line, exit)
	}
	return inv
}

func TestClientPlan(t *testing.T) {
	t.Parallel()
	cpu := func(n int) *int { return &n }
	tests := []struct {
		line string
		want plan.Plan
	}{
		{"", plan.Plan{}},
		{"-p 5301", plan.Plan{Port: 5301}},
		{"-p 5301 --port=5302", plan.Plan{Port: 5302}},
		{"-i 0.5", plan.Plan{Interval: 500 * time.Millisecond}},
		{"-i 0", plan.Plan{OneRow: true}},
		{"-i 0 -i 1", plan.Plan{Interval: time.Second}},
		{"'-i 1'", plan.Plan{Interval: time.Second}}, // one argv element
		{"'-w 2M'", plan.Plan{Window: 2 << 20, StrictWindow: true}},
		{"-uR -P2 --time=1 --bitr 1M -i0", plan.Plan{
			Transport: plan.UDP, Offload: plan.OffloadOff, Direction: plan.Down, Streams: 2, Duration: time.Second, Bitrate: 1e6, RateSet: true, OneRow: true,
		}},
		{"-u", plan.Plan{Transport: plan.UDP, Offload: plan.OffloadOff, Bitrate: 1 << 20}},
		{"-u -b 0", plan.Plan{Transport: plan.UDP, Offload: plan.OffloadOff, RateSet: true}},
		{"-b 100M", plan.Plan{Bitrate: 100e6, RateSet: true}},
		{"--bandwidth 1.5M/10", plan.Plan{Bitrate: 1500000, RateSet: true, Burst: 10}},
		{"-b 10M/s", plan.Plan{Bitrate: 10e6, RateSet: true}},
		{"-b 10Mbps", plan.Plan{Bitrate: 10e6, RateSet: true}},
		{"-t 0", plan.Plan{Endless: true}},
		{"-t 0.5", plan.Plan{Duration: 500 * time.Millisecond}},
		{"-t 5.0 -O 5.0", plan.Plan{Duration: 5 * time.Second, Omit: 5 * time.Second}},
		{"-t 86400 -O 600", plan.Plan{Duration: 24 * time.Hour, Omit: 10 * time.Minute}},
		{"-t 0 -t 3", plan.Plan{Duration: 3 * time.Second}},
		{"-n 1G", plan.Plan{Bytes: 1 << 30}},
		{"-k 1K", plan.Plan{Blocks: 1024}},
		{"-n 0 -k 0 -t 1", plan.Plan{Duration: time.Second}},
		{"-l 1K", plan.Plan{BlockSize: 1024}},
		{"-l 1M", plan.Plan{BlockSize: 1 << 20}},
		{"-u -l 65507", plan.Plan{Transport: plan.UDP, Offload: plan.OffloadOff, Bitrate: 1 << 20, BlockSize: 65507}},
		{"-l 16 -u", plan.Plan{Transport: plan.UDP, Offload: plan.OffloadOff, Bitrate: 1 << 20, BlockSize: 16}},
		{"-P 128", plan.Plan{Streams: 128}},
		{"-P 8.0", plan.Plan{Streams: 8}},
		{"-R", plan.Plan{Direction: plan.Down}},
		{"--bidir", plan.Plan{Direction: plan.Both}},
		{"-w 512M", plan.Plan{Window: 512 << 20, StrictWindow: true}},
		{"-B 192.0.2.1%eth1", plan.Plan{BindHost: "192.0.2.1", BindDev: "eth1"}},
		{"-B fe80::1%eth1", plan.Plan{BindHost: "fe80::1%eth1"}},
		{"--bind-dev eth0 --cport 4000", plan.Plan{BindDev: "eth0", ClientPort: 4000}},
		{"-M 1200 -N", plan.Plan{MSS: 1200, NoDelay: true}},
		{"-M 0", plan.Plan{}},
		{"-4", plan.Plan{Family: 4}},
		{"-4 -6", plan.Plan{Family: 6}},
		{"--dscp ef", plan.Plan{TOS: 184}},
		{"--dscp EF", plan.Plan{TOS: 184}},
		{"--dscp 46", plan.Plan{TOS: 184}},
		{"--dscp 0x2e", plan.Plan{TOS: 184}},
		{"-S 184", plan.Plan{TOS: 184}},
		{"-S 0270", plan.Plan{TOS: 184}},
		{"-S 0xb8 --dscp lowdelay", plan.Plan{TOS: 16}},
		{"-L 0xfffff", plan.Plan{FlowLabel: 0xfffff}},
		{"-C bbr", plan.Plan{Congestion: "bbr"}},
		{"--linux-congestion reno", plan.Plan{Congestion: "reno"}},
		{"-Z", plan.Plan{Send: plan.SendZeroCopy, RemoteZeroCopy: true}},
		{"--skip-rx-copy", plan.Plan{Receive: plan.Discard, RemoteDiscard: true}},
		{"-A 2", plan.Plan{Affinity: []int{2}}},
		{"-A 0,1", plan.Plan{Affinity: []int{0}, RemoteAffinity: cpu(1)}},
		{"-A 0-2+7,0x10", plan.Plan{Affinity: []int{0, 1, 2, 7}, RemoteAffinity: cpu(16)}},
		{"-A 0,1 -A 3", plan.Plan{Affinity: []int{3}}},
		{"-T mytest --extra-data '{\"a\":1}'", plan.Plan{Title: "mytest", ExtraData: `{"a":1}`}},
		{"--get-server-output --repeating-payload --udp-counters-64bit --dont-fragment --gsro", plan.Plan{
			GetServerOutput: true, Repeating: true, Counters64: true, DontFragment: true, GSRO: true,
		}},
		{"-F data.bin", plan.Plan{File: "data.bin", Bytes: 3000}},
		{"-F data.bin -t 2", plan.Plan{File: "data.bin", Duration: 2 * time.Second}},
		{"-F data.bin -n 1K", plan.Plan{File: "data.bin", Bytes: 1024}},
		{"-F missing.bin", plan.Plan{File: "missing.bin", Duration: plan.DefaultDuration}},
		{"-F empty.bin", plan.Plan{File: "empty.bin", Duration: plan.DefaultDuration}},
		{"--fq-rate 1G --pacing-timer 1K --connect-timeout 500", plan.Plan{
			FQRate: 1e9, PacingTimer: 1024, ConnectTimeout: 500 * time.Millisecond,
		}},
		{"-R --rcv-timeout 1500 --snd-timeout 0", plan.Plan{Direction: plan.Down, ReceiveTimeout: 1500 * time.Millisecond}},
		{"--rcv-timeout 100 --bidir", plan.Plan{Direction: plan.Both, ReceiveTimeout: 100 * time.Millisecond}},
		{"--snd-timeout 2000", plan.Plan{SendTimeout: 2 * time.Second}},
		{"--cntl-ka", plan.Plan{Keepalive: &plan.Keepalive{}}},
		{"--cntl-ka=20/3/2", plan.Plan{Keepalive: &plan.Keepalive{Idle: 20 * time.Second, Interval: 3 * time.Second, Count: 2}}},
		{"--cntl-ka=/3/2", plan.Plan{Keepalive: &plan.Keepalive{Interval: 3 * time.Second, Count: 2}}},
		{"--cntl-ka=5", plan.Plan{Keepalive: &plan.Keepalive{Idle: 5 * time.Second}}},
		{"-m", plan.Plan{Transport: plan.TCP, MPTCP: true}},
		{"-u -m", plan.Plan{Transport: plan.TCP, MPTCP: true}},
		{"--sctp --nstreams 5 -X lo", plan.Plan{Transport: plan.SCTP}},
		{"--nstreams 5", plan.Plan{}}, // never a bitrate
		{"-u --sctp", plan.Plan{Transport: plan.SCTP}},
		{"stray words", plan.Plan{}},
		{"-- -P 4", plan.Plan{}},
	}
	for _, tt := range tests {
		inv := mustParse(t, "-c 192.0.2.2 "+tt.line)
		tt.want.Host = "192.0.2.2"
		tt.want.Options = words("-c 192.0.2.2 " + tt.line)
		if inv.Serve != nil || inv.Plan == nil {
			t.Errorf("%s: not a client", tt.line)
			continue
		}
		if diff := cmp.Diff(tt.want, *inv.Plan); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, diff)
		}
		if err := inv.Plan.Validate(); err != nil {
			t.Errorf("%s: %v", tt.line, err)
		}
	}
}

func TestClientHost(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, host, dev string }{
		{"h", "h", ""},
		{"h%eth0", "h", "eth0"},
		{"h%eth0%x", "h", "eth0"},
		{"h%", "h%", ""},
		{"%eth0", "%eth0", ""},
		{"192.0.2.2%eth0", "192.0.2.2", "eth0"},
		{"2001:db8::2%eth0", "2001:db8::2", "eth0"},
		{"fe80::2%eth0", "fe80::2%eth0", ""},
		{"FEBF::2%7", "FEBF::2%7", ""},
	}
	for _, tt := range tests {
		inv, exit := iperf3.Parse("iperf3", []string{"-c", tt.in}, world(t))
		if exit != nil || inv.Plan.Host != tt.host || inv.Plan.BindDev != tt.dev {
			t.Errorf("%q: %+v %+v, want %q on %q", tt.in, inv, exit, tt.host, tt.dev)
		}
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	any6 := []netip.AddrPort{netip.MustParseAddrPort("[::]:5201")}
	tests := []struct {
		line string
		want plan.Serve
	}{
		{"", plan.Serve{Listen: any6}},
		{"-p 5301 -4", plan.Serve{Listen: []netip.AddrPort{netip.MustParseAddrPort("0.0.0.0:5301")}, Family: 4}},
		{"-6", plan.Serve{Listen: any6, Family: 6}},
		{"-B 192.0.2.2%eth0", plan.Serve{Listen: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.2:5201")}, BindDev: "eth0"}},
		{"-B fe80::2%eth0", plan.Serve{Listen: []netip.AddrPort{netip.MustParseAddrPort("[fe80::2%eth0]:5201")}}},
		{"-B name -p 7", plan.Serve{Listen: []netip.AddrPort{netip.MustParseAddrPort("[::]:7")}}},
		{"-1 --idle-timeout 3", plan.Serve{Listen: any6, OneOff: true, IdleTimeout: 3 * time.Second}},
		{"-i 0", plan.Serve{Listen: any6, OneRow: true}},
		{"-i 5 -J", plan.Serve{Listen: any6, Interval: 5 * time.Second, JSONOutput: true}},
		{"--server-bitrate-limit 50M", plan.Serve{Listen: any6, RateLimit: 50e6}},
		{"--server-bitrate-limit 50M/1.5", plan.Serve{Listen: any6, RateLimit: 50e6, RateLimitWindow: 1500 * time.Millisecond}},
		{"--server-bitrate-limit 50M/0", plan.Serve{Listen: any6, RateLimit: 50e6}},
		{"--server-max-duration 5", plan.Serve{Listen: any6, MaxDuration: 5 * time.Second}},
		{"-A 0 -F recv.bin -m", plan.Serve{Listen: any6, Affinity: []int{0}, File: "recv.bin", MPTCP: true}},
		{"--rcv-timeout 1500 --snd-timeout 100 --cntl-ka", plan.Serve{
			Listen: any6, ReceiveTimeout: 1500 * time.Millisecond, SendTimeout: 100 * time.Millisecond, Keepalive: &plan.Keepalive{},
		}},
		{"--cport 5000", plan.Serve{Listen: any6}}, // iperf3 does not check its role
		{"--rsa-private-key-path priv.pem --authorized-users-path users.csv --time-skew-threshold 60 --use-pkcs1-padding", plan.Serve{
			Listen: any6, PrivateKey: files()["priv.pem"].Data, UsersFile: "users.csv", TimeSkew: time.Minute, PKCS1: true,
		}},
		{"--rsa-private-key-path priv1.pem --authorized-users-path users.csv", plan.Serve{
			Listen: any6, PrivateKey: files()["priv1.pem"].Data, UsersFile: "users.csv",
		}},
	}
	for _, tt := range tests {
		inv := mustParse(t, "-s "+tt.line)
		tt.want.Exclusive = true
		if inv.Plan != nil || inv.Serve == nil {
			t.Errorf("%s: not a server", tt.line)
			continue
		}
		if diff := cmp.Diff(tt.want, *inv.Serve, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, diff)
		}
		if want := ""; strings.Contains(tt.line, "-B name") {
			want = "name"
			if inv.ListenHost != want {
				t.Errorf("%s: host %q, want %q", tt.line, inv.ListenHost, want)
			}
		} else if inv.ListenHost != want {
			t.Errorf("%s: host %q to resolve", tt.line, inv.ListenHost)
		}
	}
	if inv := mustParse(t, "-s -D -I p.pid"); !inv.Daemon || inv.Pidfile != "p.pid" {
		t.Errorf("-D -I: %+v", inv)
	}
}

func TestOutput(t *testing.T) {
	t.Parallel()
	tests := []struct {
		line string
		want iperf3.Output
	}{
		{"", iperf3.Output{}},
		{"-J", iperf3.Output{JSON: true}},
		{"--json-stream", iperf3.Output{JSON: true, JSONStream: true}},
		{"--json-stream --json-stream-full-output", iperf3.Output{JSON: true, JSONStream: true, FullOutput: true}},
		{"--json-stream-full-output", iperf3.Output{FullOutput: true}},
		{"-f mbits", iperf3.Output{Format: 'm'}},
		{"-fT", iperf3.Output{Format: 'T'}},
		{"-V --forceflush --logfile x.log", iperf3.Output{Verbose: true, Logfile: "x.log"}},
		{"-d", iperf3.Output{Debug: 4}},
		{"--debug", iperf3.Output{Debug: 4}},
		{"--debug=1", iperf3.Output{Debug: 1}},
		{"--debug=0", iperf3.Output{Debug: 1}},
		{"--debug=9", iperf3.Output{Debug: 4}},
		{"--timestamps", iperf3.Output{Timestamps: "%c "}},
		{"'--timestamps=%H:%M '", iperf3.Output{Timestamps: "%H:%M "}},
		{"--timestamps %H", iperf3.Output{Timestamps: "%c "}},
	}
	for _, tt := range tests {
		inv := mustParse(t, "-c h "+tt.line)
		tt.want.Release = iperf3.R321
		if tt.want.Format == 0 {
			tt.want.Format = 'a'
		}
		if diff := cmp.Diff(tt.want, inv.Output); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, diff)
		}
	}
}

// TestRemarks: what is said before a run that goes on.
func TestRemarks(t *testing.T) {
	t.Parallel()
	tests := []struct{ line, stdout, stderr string }{
		{"-P 4 -t 30 -i 1", "", ""},
		{"-P 0", "", "iperf3: -P 0 means one stream\n"},
		{"--no-fq-socket-pacing", "Warning:  --no-fq-socket-pacing is deprecated\n", ""},
		{"--no-fq-socket-pacing -J", "", "Warning:  --no-fq-socket-pacing is deprecated\n"},
		{"-J -f m -V -d", "", "warning: Report format (-f) flag ignored with JSON output (-J)\n" +
			"warning: Verbose output (-v) may interfere with JSON output (-J)\n" +
			"warning: Debug output (-d) may interfere with JSON output (-J)\n"},
		{"--nstreams 5", "", "iperf3: --nstreams is about SCTP: no effect here\n"},
		{"-X lo -u", "", "iperf3: -X is about SCTP: no effect here\n"},
		{"--nstreams 5 --sctp", "", ""},
		{"--username u --rsa-public-key-path pub.pem --use-pkcs1-padding", "", "iperf3: --use-pkcs1-padding: the old padding can be attacked; only for servers up to 3.16\n"},
	}
	for _, tt := range tests {
		inv := mustParse(t, "-c h "+tt.line)
		if inv.Stdout != tt.stdout || inv.Stderr != tt.stderr {
			t.Errorf("%s: stdout %q, stderr %q; want %q, %q", tt.line, inv.Stdout, inv.Stderr, tt.stdout, tt.stderr)
		}
	}
}

func TestLogin(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"pub.pem", "pub1.pem"} {
		inv := mustParse(t, "-c h --username mario --rsa-public-key-path "+key)
		want := &plan.Auth{Username: "mario", Password: "secret of mario", PublicKey: files()[key].Data}
		if diff := cmp.Diff(want, inv.Plan.Auth); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
	if inv := mustParse(t, "-c h --username m --rsa-public-key-path pub.pem --use-pkcs1-padding"); !inv.Plan.Auth.PKCS1 {
		t.Error("the old padding is lost")
	}
	if inv := mustParse(t, "-c h"); inv.Plan.Auth != nil {
		t.Errorf("a login that nobody asked for: %+v", inv.Plan.Auth)
	}
}

// TestFaults: what iperf3 refuses in its own words and no recording holds, and what
// it takes without a word. A want that ends in a newline is the whole of stderr before
// the usage; otherwise every part of it must occur there.
func TestFaults(t *testing.T) {
	t.Parallel()
	const param = "iperf3: parameter error - "
	tests := []struct {
		line string
		want []string
	}{
		// Numbers with junk, signs and wrong units: the option and the value are named.
		{"-c h -t 1x", []string{param + "test duration valid values are 0 to 86400 seconds\n", "-t '1x': unexpected \"x\" after the number"}},
		{"-c h -t -1", []string{param + "test duration valid values", "-t '-1': must not be negative"}},
		{"-c h -b -5M", []string{param + "invalid unit value or suffix: '-5M'\n", "-b '-5M': must not be negative"}},
		{"-c h -b 1Q", []string{param + "invalid unit value or suffix: '1Q'\n", "-b '1Q': unknown unit \"Q\""}},
		{"-c h -p 5301abc", []string{param + "port number must be between 1 and 65535 inclusive\n", "-p '5301abc': unexpected \"abc\" after the number"}},
		{"-c h -P 2.5", []string{param + "number of parallel streams invalid (minimum = 1, maximum = 128)\n", "-P '2.5': not a whole number"}},
		{"-c h -M a", []string{param + "TCP MSS invalid (minimum = 88 bytes, maximum = 32767 bytes)\n", "-M 'a': not a number"}},
		{"-c h -i -1", []string{param + "invalid report interval (min = 0.1, max = 60 seconds)\n", "-i '-1': must not be negative"}},
		{"-c h -w -1", []string{param + "socket buffer size invalid (maximum = 536870912 bytes)\n", "-w '-1': must not be negative"}},
		{"-c h -l 0", []string{param + "block size invalid (minimum = 1 bytes, maximum = 1048576 bytes)\n", "-l '0': must be positive"}},

		// Its relatives.
		{"-c h -t abc", []string{param + "test duration valid values are 0 to 86400 seconds\n", "-t 'abc': not a number"}},
		{"-c h -t=1", []string{"-t '=1': not a number"}},
		{"-c h --time=", []string{"--time '': empty"}},
		{"-c h -t inf", []string{"-t 'inf': not a number"}},
		{"-c h -O -1", []string{param + "bogus value for --omit (maximum = 600 seconds)\n", "-O '-1'"}},
		{"-c h -P -1", []string{param + "number of parallel streams invalid", "-P '-1': must not be negative"}},
		{"-c h -P x", []string{"-P 'x': not a number"}},
		{"-c h -b 0.1", []string{"-b '0.1': too small"}},
		{"-c h -b 10MQ", []string{"-b '10MQ': unknown unit \"MQ\""}},
		{"-c h -b 1M/x", []string{param + "invalid burst count (maximum = 1000)\n", "-b '1M/x'"}},
		{"-c h -b 1M/0", []string{param + "invalid burst count (maximum = 1000)\n\n"}},
		{"-c h -b 10Q/5", []string{param + "invalid unit value or suffix: '10Q'\n", "-b '10Q'"}},
		{"-c h -n -1", []string{"-n '-1': must not be negative"}},
		{"-c h -k 1.5x", []string{"-k '1.5x'"}},
		{"-c h -u -l 0", []string{param + "block size invalid (minimum = 16 bytes, maximum = 65507 bytes)\n", "-l '0': must be positive"}},
		{"-c h -l -1 -u", []string{param + "block size invalid (minimum = 16 bytes", "-l '-1': must be positive"}},
		{"-c h -i abc", []string{"-i 'abc': not a number"}},
		{"-c h --cport 1x", []string{param + "port number must be", "--cport '1x'"}},
		{"-c h -w 1Q", []string{param + "invalid unit value or suffix: '1Q'\n"}},
		{"-c h -L x", []string{param + "unable to set IPv6 flow label\n", "-L 'x': not a whole number"}},
		{"-c h -S 12abc", []string{param + "bad TOS value (must be between 0 and 255 inclusive)\n", "-S '12abc'"}},
		{"-c h --debug=x", []string{"--debug 'x': not a number"}},
		{"-c h --connect-timeout x", []string{"--connect-timeout 'x'"}},
		{"-c h --connect-timeout 1T", []string{"--connect-timeout '1T': more than a day"}},
		{"-c h --fq-rate -1", []string{"--fq-rate '-1'"}},
		{"-c h --nstreams x", []string{param + "invalid unit value or suffix: 'x'\n"}},
		{"-s --time-skew-threshold 0", []string{param + "skew threshold must be a positive number\n\n"}},
		{"-s --time-skew-threshold x", []string{param + "skew threshold must be a positive number\n", "'x'"}},
		{"-s --time-skew-threshold -1", []string{"--time-skew-threshold '-1': must not be negative"}},
		{"-s --idle-timeout 1.5", []string{"--idle-timeout '1.5': not a whole number"}},
		{"-s --server-bitrate-limit x", []string{param + "invalid unit value or suffix: 'x'\n"}},
		{"-s --server-bitrate-limit 1M/x", []string{param + "invalid time interval for calculating average data rate\n", "'1M/x'"}},
		{"-s --server-bitrate-limit 1M/-1", []string{"--server-bitrate-limit '1M/-1': must not be negative"}},
		{"-s --server-max-duration -1", []string{param + "test duration valid values", "--server-max-duration '-1'"}},
		{"-c h --cntl-ka=x", []string{"--cntl-ka 'x': not a number"}},
		{"-c h --cntl-ka=1/2/3/4", []string{"three values at most"}},
		{"-c h --cntl-ka=6/3/2", []string{param + "control connection Keepalive period should be larger than the full retry period (interval * count): \n\n"}},

		// Ranges and names are named.
		{"-c h -M 50", []string{"-M '50': give 88 to 32767 bytes"}},
		{"-c h -M -5", []string{"-M '-5': give 88 to 32767 bytes"}},
		{"-c h -M 99999", []string{param + "TCP MSS too large (maximum = 32767 bytes)\n", "-M '99999': give 88 to 32767 bytes"}},
		{"-c h -A x", []string{param + "unable to set CPU affinity: \n", "-A 'x': \"x\" is not a CPU number"}},
		{"-c h -A 0,2000", []string{"-A '0,2000': CPU 2000 does not exist; give 0 to 1024"}},
		{"-c h -A -1", []string{"CPU -1 does not exist"}},
		{"-c h -A 3-1", []string{"3-1 is an empty range"}},
		{"-c h -A 1-", []string{"\"\" is not a CPU number"}},
		{"-c h -A 0,1,2", []string{"-A '0,1,2': write a set of CPUs as 0-2 or 0+1+2"}},
		{"-c h -A 0,", []string{"\"\" is not a CPU number"}},
		{"-c h -S 0x1ff", []string{"-S '0x1ff': give -S 0 to 255", "--dscp 0 to 63", "af11", "ef"}},
		{"-c h --dscp 99", []string{"--dscp '99': give", "0 to 63", "af43"}},
		{"-c h --dscp EFX", []string{"--dscp 'EFX': give", "0 to 63", "ef"}},

		// Limits, in iperf3's words alone.
		{"-c h -w 40G", []string{param + "socket buffer size too large (maximum = 536870912 bytes)\n\n"}},
		{"-c h -l 2M", []string{param + "block size too large (maximum = 1048576 bytes)\n\n"}},
		{"-c h -u -l 2M", []string{param + "block size too large (maximum = 1048576 bytes)\n\n"}},
		{"-c h -u -l 65508", []string{param + "block size invalid (minimum = 16 bytes, maximum = 65507 bytes)\n\n"}},
		{"-c h -u -l 15", []string{param + "block size invalid (minimum = 16 bytes, maximum = 65507 bytes)\n\n"}},
		{"-c h -t 1 -n 1M -k 3", []string{param + "only one test end condition (-t, -n, -k) may be specified\n\n"}},
		{"-c h -t 0 -k 3", []string{param + "only one test end condition"}},
		{"-c h -i 0.05", []string{param + "invalid report interval (min = 0.1, max = 60 seconds)\n\n"}},

		// Roles.
		{"-c h -1", []string{param + "some option you are trying to set is server only\n\n"}},
		{"-1 -c h", []string{"server only"}},
		{"-c h --authorized-users-path users.csv", []string{"server only"}},
		{"-c h --rsa-private-key-path priv.pem", []string{"server only"}},
		{"-c h --time-skew-threshold 5", []string{"server only"}},
		{"-s -A 0,1", []string{"client only"}},
		{"-s -T x", []string{"client only"}},
		{"-s --username u", []string{"client only"}},
		{"-s -Z", []string{"client only"}},
		{"--bidir -R -c h", []string{param + "cannot be both reverse and bidirectional\n\n"}},
		{"-D", []string{param + "must either be a client (-c) or server (-s)\n\n"}},
		{"-u -F x", []string{param + "cannot transfer file using UDP\n\n"}}, // comes before the missing role
		{"-c ''", []string{param, "host"}},

		// The first fault on the line counts, and a value before the role.
		{"-P 129 -t x -c h -s", []string{param + "number of parallel streams too large (maximum = 128)\n\n"}},
		{"-P 129 --bogus", []string{"parallel streams too large"}},
		{"-s -u -l 2M", []string{"client only"}},

		// Keys.
		{"-c h --username u --rsa-public-key-path none.pem", []string{param + "you must specify a username, password, and path to a valid RSA public key\n", "none.pem"}},
		{"-c h --username u --rsa-public-key-path junk.pem", []string{"junk.pem: not a PEM file"}},
		{"-c h --username u --rsa-public-key-path priv.pem", []string{"priv.pem: not a public key"}},
		{"-c h --username u --rsa-public-key-path ec.pem", []string{"ec.pem: not an RSA key"}},
		{"-c h --rsa-public-key-path pub.pem", []string{"you must specify a username"}},
		{"-s --rsa-private-key-path priv.pem", []string{param + "you must specify a path to a valid RSA private key and a user credential file\n\n"}},
		{"-s --rsa-private-key-path pub.pem --authorized-users-path users.csv", []string{"pub.pem: not a private key"}},
		{"-s --rsa-private-key-path priv.pem --authorized-users-path none.csv", []string{param + "cannot access authorized users file\n", "none.csv"}},

		// What the C library refuses.
		{"-c h -d3", []string{"iperf3: invalid option -- '3'\n\n"}},
		{"-c h --reverse=1", []string{"iperf3: option '--reverse' doesn't allow an argument\n\n"}},
		{"-c h --parallel", []string{"iperf3: option '--parallel' requires an argument\n\n"}},
		{"-c h --json-s", []string{"iperf3: option '--json-s' is ambiguous; possibilities: '--json-stream' '--json-stream-full-output'\n\n"}},
	}
	for _, tt := range tests {
		inv, exit := parse(t, world(t), tt.line)
		if inv != nil {
			t.Errorf("%s: accepted", tt.line)
			continue
		}
		text, ok := strings.CutSuffix(exit.Stderr, "\n"+iperf3.Usage)
		if !ok || exit.Code != 1 || exit.Stdout != "" {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", tt.line, exit.Code, exit.Stdout, exit.Stderr)
		}
		for _, want := range tt.want {
			if whole, ok := strings.CutSuffix(want, "\n\n"); ok && text != whole+"\n" || !ok && !strings.Contains(text, want) {
				t.Errorf("%s: stderr %q, want %q", tt.line, text, want)
			}
		}
	}
}

// TestRelease312: limits, words and the place of the usage text in the older release.
func TestRelease312(t *testing.T) {
	t.Parallel()
	w := world(t)
	w.Release = iperf3.R312
	_, exit := parse(t, w, "-c h -O 61")
	if exit == nil || exit.Stderr != "iperf3: parameter error - bogus value for --omit\n\n" || exit.Stdout != iperf3.Help() {
		t.Errorf("-O 61: %+v", exit)
	}
	if _, exit = parse(t, w, "-c h -M 9217"); exit == nil || !strings.Contains(exit.Stderr, "(maximum = 9216 bytes)\niperf3: -M '9217': give 88 to 9216") {
		t.Errorf("-M 9217: %+v", exit)
	}
	if _, exit = parse(t, w, "-c h -M 50"); exit == nil || !strings.Contains(exit.Stderr, "maximum = 9216 bytes") {
		t.Errorf("-M 50: %+v", exit)
	}
	if inv, exit := parse(t, w, "-c h -O 60 -M 9216"); exit != nil || inv.Output.Release != iperf3.R312 {
		t.Errorf("-O 60: %+v", exit)
	}
}

func TestParseRelease(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]iperf3.Release{"": iperf3.R321, "3.21": iperf3.R321, "3.12": iperf3.R312} {
		if got, err := iperf3.ParseRelease(in); got != want || err != nil {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	if got, err := iperf3.ParseRelease("3.1"); got != iperf3.R321 || err == nil || !strings.Contains(err.Error(), "FULLBORE_IPERF3_COMPAT=3.1") {
		t.Errorf("3.1: %v, %v", got, err)
	}
}

// TestTimestamp: with --timestamps before it, a parameter error carries the time.
func TestTimestamp(t *testing.T) {
	t.Parallel()
	w := world(t)
	w.Timestamp = func(format string) string { return "<" + format + ">" }
	if _, exit := parse(t, w, "--timestamps=%H -c h -P 129"); exit == nil || !strings.HasPrefix(exit.Stderr, "<%H>iperf3: parameter error - ") {
		t.Errorf("%+v", exit)
	}
	if _, exit := parse(t, w, "-c h -P 129 --timestamps"); exit == nil || !strings.HasPrefix(exit.Stderr, "iperf3: parameter error - ") {
		t.Errorf("%+v", exit)
	}
}

func TestProgramName(t *testing.T) {
	t.Parallel()
	_, exit := iperf3.Parse("/opt/bin/iperf3", []string{"--bogus"}, world(t))
	if exit == nil || !strings.HasPrefix(exit.Stderr, "/opt/bin/iperf3: unrecognized option '--bogus'\n") {
		t.Errorf("%+v", exit)
	}
}

// TestEarlyExit: -v and -h act when they are read.
func TestEarlyExit(t *testing.T) {
	t.Parallel()
	for line, code := range map[string]int{"-h": 0, "-P 129 -h": 1, "-h -P 129": 0, "-s -c h -v": 1, "-sh": 0, "--help=x": 1, "-c h -P 0 --help": 0} {
		_, exit := parse(t, world(t), line)
		if exit == nil || exit.Code != code || code == 0 && exit.Stdout != iperf3.Help() {
			t.Errorf("%s: %+v", line, exit)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"-c\nh\n-b\n1M/10\n-A\n0-3,1", "-s\n--server-bitrate-limit\n1M/1\n--cntl-ka=1/2/3", "-c\nfe80::1%x\n--dscp\nef", "-v", "-uRP3", "-A\n0-999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		inv, exit := iperf3.Parse("iperf3", strings.Split(line, "\n"), world(t))
		switch {
		case (inv == nil) == (exit == nil):
			t.Fatalf("both or neither: %+v, %+v", inv, exit)
		case exit != nil:
			if exit.Code == 1 && exit.Stderr == "" || exit.Code == 0 && exit.Stdout == "" {
				t.Errorf("silent exit: %+v", exit)
			}
		case inv.Plan != nil:
			if err := inv.Plan.Validate(); err != nil {
				t.Errorf("a plan that cannot run: %v", err)
			}
		default:
			if err := inv.Serve.Validate(); err != nil {
				t.Errorf("settings that cannot serve: %v", err)
			}
		}
	})
}
