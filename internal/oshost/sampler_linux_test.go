package oshost

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fullbore-net/fullbore/result"
)

// write puts files below dir, over those that are there (the same inode stays open in
// the sampler, as the kernel's does).
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// nicStats makes the counter files of eth0 from values in the order of nicFiles.
func nicStats(values ...int64) map[string]string {
	out := map[string]string{}
	for i, f := range nicFiles {
		out["sys/class/net/eth0/statistics/"+f] = fmt.Sprintf("%d\n", values[i])
	}
	return out
}

// stepClock is a clock that tests move by hand.
type stepClock struct{ t time.Time }

func (c *stepClock) now() time.Time { return c.t }

const softnetLine = "%08x %08x %08x 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000\n"

// begin is a host with two cores, a quota by cgroup v2 and two threads.
func begin(t *testing.T) (dir string, s *Sampler, clock *stepClock) {
	t.Helper()
	dir = t.TempDir()
	write(t, dir, nicStats(1000, 2000, 10, 20, 0, 0, 0, 0, 5))
	write(t, dir, map[string]string{
		"proc/stat": "cpu  100 0 100 1000 0 0 0 0 0 0\ncpu0 100 10 50 500 40 30 20 10 7 0\ncpu1 0 0 0 500 0 0 0 0 0 0\nintr 99 1\nctxt 5\n",
		// The first CPU's counter is about to wrap at 32 bits.
		"proc/net/softnet_stat":            fmt.Sprintf(softnetLine+softnetLine, uint32(math.MaxUint32-9), 0, 1, 100, 2, 3),
		"proc/self/task/7/schedstat":       "1000000000 500000000 10\n",
		"proc/self/task/8/schedstat":       "0 0 0\n",
		"proc/self/cgroup":                 "0::/app\n",
		"sys/fs/cgroup/cgroup.controllers": "cpu\n",
		"sys/fs/cgroup/app/cpu.max":        "50000 100000\n",
		"sys/fs/cgroup/app/cpu.stat":       "usage_usec 1\nnr_periods 10\nnr_throttled 2\nthrottled_usec 1000000\n",
	})
	clock = &stepClock{time.Unix(0, 0)}
	s = NewSampler(SamplerOptions{Root: dir, Interface: "eth0", Now: clock.now})
	t.Cleanup(s.Close)
	return dir, s, clock
}

func TestSample(t *testing.T) {
	dir, s, clock := begin(t)
	if m := s.Missing(); m != nil {
		t.Fatalf("missing: %v", m)
	}
	write(t, dir, nicStats(1_001_000, 502_000, 110, 70, 1, 2, 3, 4, 6))
	write(t, dir, map[string]string{
		// Core 0: user 20 of which 5 nice, system 10, idle 30, iowait steps back by 3 (kernels do that), irq 5, softirq 25, steal 10.
		"proc/stat":                  "cpu  100 0 100 1000 0 0 0 0 0 0\ncpu0 115 15 60 530 37 35 45 20 9 0\ncpu1 0 0 0 600 0 0 0 0 0 0\nintr 99 1\n",
		"proc/net/softnet_stat":      fmt.Sprintf(softnetLine+softnetLine, 10, 0, 1, 200, 3, 8),
		"proc/self/task/7/schedstat": "1600000000 800000000 20\n",
		"proc/self/task/8/schedstat": "100000000 0 5\n",
		"proc/self/task/9/schedstat": "300000000 100000000 5\n", // new in this interval
		"sys/fs/cgroup/app/cpu.stat": "usage_usec 1\nnr_periods 20\nnr_throttled 7\nthrottled_usec 1250000\n",
	})
	clock.t = clock.t.Add(time.Second)
	got := s.Sample()
	load, throttled := 0.9, 0.25
	want := &result.HostSample{
		Cores: []result.CoreShare{
			{CPU: 0, User: 0.2, System: 0.1, SoftIRQ: 0.25, IRQ: 0.05, Steal: 0.1, IOWait: 0, Idle: 0.3},
			{CPU: 1, Idle: 1},
		},
		NIC: &result.NICDelta{
			Name: "eth0", RxBytes: 1_000_000, TxBytes: 500_000, RxPackets: 100, TxPackets: 50,
			RxErrors: 1, TxErrors: 2, RxDropped: 3, TxDropped: 4, RxMissed: 1,
		},
		Softnet:  &result.Softnet{Processed: 20 + 100, Dropped: 1, Squeezed: 5},
		StealMax: 0.1, WorkerLoad: &load, Throttled: &throttled,
	}
	ignoreProcess := cmpopts.IgnoreFields(result.HostSample{}, "Process")
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12), ignoreProcess); diff != "" {
		t.Error(diff)
	}
	if got.Process == nil || got.Process.Total != got.Process.User+got.Process.System {
		t.Errorf("process: %+v", got.Process)
	}
	for _, c := range got.Cores {
		if sum := c.User + c.System + c.SoftIRQ + c.IRQ + c.Steal + c.IOWait + c.Idle; math.Abs(sum-1) > 1e-12 {
			t.Errorf("shares of core %d add up to %v", c.CPU, sum)
		}
	}
}

// The second sample counts from the first, not from the beginning.
func TestSampleCountsFromTheLast(t *testing.T) {
	dir, s, clock := begin(t)
	for i := int64(1); i <= 3; i++ {
		write(t, dir, nicStats(1000+1000*i, 2000, 10, 20, 0, 0, 0, 0, 5))
		clock.t = clock.t.Add(time.Second)
		if got := s.Sample(); got.NIC.RxBytes != 1000 || got.Cores != nil || *got.WorkerLoad != 0 || *got.Throttled != 0 {
			t.Errorf("sample %d: %+v, nic %+v", i, got, got.NIC)
		}
	}
	if got := s.Sample(); got != nil {
		t.Errorf("no time has passed, yet there is a sample: %+v", got)
	}
}

// The clock is that of the core that worked most, and read once a second at most.
func TestSampleClock(t *testing.T) {
	dir, s, clock := begin(t)
	write(t, dir, map[string]string{
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "1200000\n",
		"sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq": "3400123\n",
	})
	busy := func(i int) map[string]string {
		return map[string]string{"proc/stat": fmt.Sprintf("cpu  1 0 1 1 0 0 0 0 0 0\ncpu0 100 10 50 %d 40 30 20 10 7 0\ncpu1 %d 0 0 500 0 0 0 0 0 0\nintr 99 1\n", 500+100*i, 100*i)}
	}
	var seen []int
	for i := 1; i <= 12; i++ {
		write(t, dir, busy(i))
		clock.t = clock.t.Add(100 * time.Millisecond)
		got := s.Sample()
		switch {
		case got.MHz == nil:
			seen = append(seen, 0)
		default:
			seen = append(seen, *got.MHz)
		}
	}
	if diff := cmp.Diff([]int{3400, 0, 0, 0, 0, 0, 0, 0, 0, 3400, 0, 0}, seen); diff != "" {
		t.Error(diff)
	}
	if m := s.Missing(); m != nil {
		t.Errorf("missing: %v", m)
	}
}

// A host without cpufreq has no clock, and that is nothing to speak of.
func TestSampleNoClock(t *testing.T) {
	dir, s, clock := begin(t)
	write(t, dir, map[string]string{"proc/stat": "cpu  1 0 1 1 0 0 0 0 0 0\ncpu0 200 10 50 500 40 30 20 10 7 0\ncpu1 0 0 0 600 0 0 0 0 0 0\nintr 99 1\n"})
	clock.t = clock.t.Add(time.Second)
	if got := s.Sample(); got.MHz != nil || s.Missing() != nil {
		t.Errorf("%v, missing %v", got.MHz, s.Missing())
	}
}

// Both cgroup versions, and a quota that an outer group sets.
func TestSampleThrottled(t *testing.T) {
	for _, c := range []struct {
		name     string
		files    map[string]string
		stat     string
		advanced string
	}{
		{
			"v1",
			map[string]string{
				"proc/self/cgroup": "3:cpu,cpuacct:/box\n2:memory:/box\n",
				"sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us":  "20000\n",
				"sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us": "100000\n",
			},
			"sys/fs/cgroup/cpu,cpuacct/box/cpu.stat", "nr_periods 9\nnr_throttled 9\nthrottled_time 400000000\n",
		},
		{
			"outer group",
			map[string]string{
				"proc/self/cgroup":                   "0::/slice/app\n",
				"sys/fs/cgroup/cgroup.controllers":   "cpu\n",
				"sys/fs/cgroup/slice/cpu.max":        "20000 100000\n",
				"sys/fs/cgroup/slice/app/cpu.max":    "max 100000\n",
				"sys/fs/cgroup/slice/app/cpu.weight": "100\n",
			},
			"sys/fs/cgroup/slice/cpu.stat", "nr_periods 9\nnr_throttled 9\nthrottled_usec 400000\n",
		},
		{
			"container that sees only its own folder",
			map[string]string{
				"proc/self/cgroup":                    "4:cpu:/docker/0123\n",
				"sys/fs/cgroup/cpu/cpu.cfs_quota_us":  "20000\n",
				"sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
			},
			"sys/fs/cgroup/cpu/cpu.stat", "nr_periods 9\nnr_throttled 9\nthrottled_time 400000000\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, c.files)
			write(t, dir, map[string]string{c.stat: "nr_periods 0\nnr_throttled 0\nthrottled_time 0\nthrottled_usec 0\n"})
			clock := &stepClock{time.Unix(0, 0)}
			s := NewSampler(SamplerOptions{Root: dir, Now: clock.now})
			defer s.Close()
			write(t, dir, map[string]string{c.stat: c.advanced})
			clock.t = clock.t.Add(500 * time.Millisecond)
			if got := s.Sample().Throttled; got == nil || math.Abs(*got-0.8) > 1e-9 {
				t.Errorf("throttled = %v, want 0.8", got)
			}
			q := (&collector{tree: tree{dir}}).quota()
			if q == nil || q.CPUs != 0.2 || *q.Throttled != 1 {
				t.Errorf("quota = %+v", q)
			}
		})
	}
}

// An empty root: everything unknown, named, and nothing is 0 that was not counted.
func TestSampleWithoutCounters(t *testing.T) {
	clock := &stepClock{time.Unix(0, 0)}
	s := NewSampler(SamplerOptions{Root: t.TempDir(), Interface: "eth7", Now: clock.now})
	defer s.Close()
	clock.t = clock.t.Add(time.Second)
	got := s.Sample()
	if got.Cores != nil || got.NIC != nil || got.Softnet != nil || got.WorkerLoad != nil || got.Throttled != nil {
		t.Errorf("something was made up: %+v", got)
	}
	missing := strings.Join(s.Missing(), "\n")
	for _, word := range []string{"proc/stat", "softnet_stat", "self/task", "eth7/statistics/rx_bytes", "cgroup"} {
		if !strings.Contains(missing, word) {
			t.Errorf("%s is not in Missing:\n%s", word, missing)
		}
	}
}

// An interface that starts again from 0 must not give negative or huge numbers.
func TestSampleResetInterface(t *testing.T) {
	dir, s, clock := begin(t)
	write(t, dir, nicStats(0, 0, 0, 0, 0, 0, 0, 0, 0))
	clock.t = clock.t.Add(time.Second)
	if got := s.Sample(); got.NIC != nil {
		t.Errorf("counters of a reset interface: %+v", got.NIC)
	}
	write(t, dir, nicStats(50, 0, 0, 0, 0, 0, 0, 0, 0))
	clock.t = clock.t.Add(time.Second)
	if got := s.Sample(); got.NIC == nil || got.NIC.RxBytes != 50 {
		t.Errorf("after the reset: %+v", got.NIC)
	}
}

// A core that goes offline and comes back is left out while it is not in both readings.
func TestSampleHotplug(t *testing.T) {
	dir, s, clock := begin(t)
	step := func(stat string) []int {
		write(t, dir, map[string]string{"proc/stat": stat})
		clock.t = clock.t.Add(time.Second)
		var ids []int
		for _, c := range s.Sample().Cores {
			ids = append(ids, c.CPU)
		}
		return ids
	}
	if got := step("cpu0 200 0 0 0 0 0 0 0\nintr 0\n"); !cmp.Equal(got, []int{0}) {
		t.Errorf("core 1 gone: %v", got)
	}
	if got := step("cpu0 300 0 0 0 0 0 0 0\ncpu1 0 0 0 900 0 0 0 0\ncpu2 0 0 0 9 0 0 0 0\nintr 0\n"); !cmp.Equal(got, []int{0}) {
		t.Errorf("core 1 back: %v", got)
	}
	if got := step("cpu1 0 0 0 950 0 0 0 0\ncpu2 0 0 0 59 0 0 0 0\nintr 0\n"); !cmp.Equal(got, []int{1, 2}) {
		t.Errorf("core 0 gone: %v", got)
	}
}

// A machine with many cores: its /proc/stat is longer than the first buffer.
func TestSampleManyCores(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString("cpu  1 2 3 4 5 6 7 8 9 10\n")
	for i := range 1024 {
		fmt.Fprintf(&b, "cpu%d 1000000 0 1000000 9000000 0 0 0 0 0 0\n", i)
	}
	b.WriteString("intr 0\n")
	write(t, dir, map[string]string{"proc/stat": b.String()})
	clock := &stepClock{time.Unix(0, 0)}
	s := NewSampler(SamplerOptions{Root: dir, Now: clock.now})
	defer s.Close()
	write(t, dir, map[string]string{"proc/stat": strings.ReplaceAll(b.String(), "9000000", "9000100")})
	clock.t = clock.t.Add(time.Second)
	got := s.Sample().Cores
	if len(got) != 1024 || got[1023].CPU != 1023 || got[1023].Idle != 1 {
		t.Errorf("%d cores", len(got))
	}
}

// The running machine: loopback traffic that we make must appear in the counters.
func TestSampleLive(t *testing.T) {
	s := NewSampler(SamplerOptions{Interface: "lo"})
	defer s.Close()
	if m := s.Missing(); m != nil {
		t.Errorf("this machine lacks %v", m)
	}
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pc.Close() }()
	const packets = 50
	buf := make([]byte, 1000)
	for range packets {
		if _, err := pc.WriteTo(buf, pc.LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	var got *result.HostSample
	for got == nil { // until a millisecond has passed
		got = s.Sample()
	}
	if got.NIC == nil || got.NIC.TxPackets < packets || got.NIC.TxBytes < packets*1028 {
		t.Errorf("lo: %+v", got.NIC)
	}
	if got.WorkerLoad == nil || *got.WorkerLoad < 0 || *got.WorkerLoad > 1 {
		t.Errorf("worker load: %v", got.WorkerLoad)
	}
}

func TestInterfaceToSelf(t *testing.T) {
	for _, a := range []string{"127.0.0.1", "::ffff:127.0.0.1"} {
		if name, err := InterfaceTo(netip.MustParseAddr(a)); err != nil || name != "lo" {
			t.Errorf("interface to %s: %q, %v", a, name, err)
		}
	}
	if h := Facts(context.Background(), netip.MustParseAddr("127.0.0.1")); h.NIC == nil || h.NIC.Name != "lo" || h.NIC.SpeedBPS != nil || h.Cores == 0 || h.SystemInfo == "" {
		t.Errorf("facts towards ourselves: %+v, nic %+v", h, h.NIC)
	}
}

func TestAutotuneMax(t *testing.T) {
	got, err := AutotuneMax()
	if err != nil || got < 1<<16 {
		t.Errorf("autotune max = %d, %v", got, err)
	}
}

// Ten samples a second must cost next to nothing: BenchmarkSample says how much.
func BenchmarkSample(b *testing.B) {
	now := time.Now()
	s := NewSampler(SamplerOptions{Interface: "lo", Now: func() time.Time { now = now.Add(time.Second); return now }})
	defer s.Close()
	b.ReportAllocs()
	for b.Loop() {
		if s.Sample() == nil {
			b.Fatal("no sample")
		}
	}
}

// The sampler keeps no descriptor of a thread that ended, and closes all at the end.
func TestSampleThreadsComeAndGo(t *testing.T) {
	dir, s, clock := begin(t)
	step := func(files map[string]string) float64 {
		write(t, dir, files)
		clock.t = clock.t.Add(time.Second)
		return *s.Sample().WorkerLoad
	}
	if got := step(map[string]string{"proc/self/task/9/schedstat": "250000000 0 1\n"}); got != 0.25 {
		t.Errorf("load with a new thread = %v, want 0.25", got)
	}
	if err := os.RemoveAll(filepath.Join(dir, "proc/self/task/9")); err != nil {
		t.Fatal(err)
	}
	if got := step(nil); got != 0 {
		t.Errorf("load after the busy thread ended = %v, want 0", got)
	}
	if n := len(s.src.threads); n != 2 {
		t.Errorf("%d thread files are open, want 2", n)
	}
	many := map[string]string{}
	for i := 100; i < 100+maxThreadFiles+10; i++ {
		many[fmt.Sprintf("proc/self/task/%d/schedstat", i)] = "500000000 0 1\n"
	}
	if got := step(many); got != 0.5 {
		t.Errorf("load of many threads = %v, want 0.5", got)
	}
	if n := len(s.src.threads); n != maxThreadFiles {
		t.Errorf("%d thread files are open, want %d", n, maxThreadFiles)
	}
	if n := len(s.last.threads); n != maxThreadFiles+12 {
		t.Errorf("%d threads were read, want all %d", n, maxThreadFiles+12)
	}
}

func TestSamplerClosesItsFiles(t *testing.T) {
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	before := open()
	for range 20 {
		s := NewSampler(SamplerOptions{Interface: "lo"})
		s.Close()
	}
	if after := open(); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// A sample must stay cheap: it is taken while the engine runs.
func TestSampleAllocations(t *testing.T) {
	now := time.Now()
	s := NewSampler(SamplerOptions{Interface: "lo", Now: func() time.Time { now = now.Add(time.Second); return now }})
	defer s.Close()
	if n := testing.AllocsPerRun(100, func() { s.Sample() }); n > 20 {
		t.Errorf("%v allocations per sample, want at most 20", n)
	}
}

// The running machine towards itself: what every Linux must tell without privileges.
func TestTakeLive(t *testing.T) {
	inv := Take(context.Background(), netip.MustParseAddr("127.0.0.1"))
	if len(inv.NICs) != 1 || inv.NICs[0].Name != "lo" || inv.NICs[0].Kind != KindLoopback || inv.NICs[0].SpeedBPS != nil {
		t.Errorf("interfaces: %+v", inv.NICs)
	}
	if inv.Recorded || inv.Peer != "127.0.0.1" || inv.Host.NIC == nil {
		t.Errorf("inventory: %+v", inv)
	}
	if inv.TCP.ReadMem == nil || inv.TCP.Congestion == "" || inv.Files == nil || inv.Clock == nil || inv.Clock.Synced == nil || inv.Services == nil {
		t.Errorf("TCP %+v, files %v, clock %+v, services %v; missing: %v", inv.TCP, inv.Files, inv.Clock, inv.Services, inv.Missing)
	}
	for _, scoped := range []string{"fe80::1%lo", "fe80::1%1"} {
		if name, err := InterfaceTo(netip.MustParseAddr(scoped)); err != nil || name != "lo" {
			t.Errorf("interface to %s: %q, %v", scoped, name, err)
		}
	}
	if gone, err := InterfaceTo(netip.MustParseAddr("fe80::1%nosuchif")); err == nil {
		t.Errorf("a scope that does not exist leads to %q", gone)
	}
}
