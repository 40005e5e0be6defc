package oshost

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/result"
)

// missed collects what is told as missing.
func missed(to *[]string) func(string, error) {
	return func(what string, err error) { *to = append(*to, what+": "+err.Error()) }
}

func TestCPUSince(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, c := range []struct {
		name string
		a, b *cpuTicks
		want *result.CPUTime
	}{
		{
			"Linux ticks of 10 ms",
			&cpuTicks{1, 2, 3, 4, 5, 6, 7, 8, 10 * time.Millisecond},
			&cpuTicks{11, 22, 33, 44, 55, 66, 77, 88, 10 * time.Millisecond},
			&result.CPUTime{User: 100 * ms, Nice: 200 * ms, System: 300 * ms, Idle: 400 * ms, IOWait: 500 * ms, IRQ: 600 * ms, SoftIRQ: 700 * ms, Steal: 800 * ms},
		},
		{
			"what steps back counts nothing",
			&cpuTicks{idle: 100, iowait: 100, user: 7, unit: 1},
			&cpuTicks{idle: 99, iowait: 0, user: 9, unit: 1},
			&result.CPUTime{User: 2},
		},
		{
			// kernel + user − idle grew by 3 + 20 − 10 ms = 13, of which DPCs and interrupts claim more
			// than the kernel's 3 − (−7) allow: the sum of what is not idle stays 13.
			"Windows: system time is what others leave",
			&cpuTicks{unit: 1},
			&cpuTicks{user: 10, system: -4, softirq: 5, irq: 2, idle: 30, unit: 1},
			&result.CPUTime{User: 10, System: 0, SoftIRQ: 1, IRQ: 2, Idle: 30},
		},
		{
			"and takes from both when one is not enough",
			&cpuTicks{unit: 1},
			&cpuTicks{user: 10, system: -6, softirq: 5, irq: 2, idle: 30, unit: 1},
			&result.CPUTime{User: 10, IRQ: 1, Idle: 30},
		},
		{
			"never below nothing",
			&cpuTicks{unit: 1},
			&cpuTicks{user: 10, system: -60, softirq: 5, irq: 2, idle: 30, unit: 1},
			&result.CPUTime{User: 10, Idle: 30},
		},
		{
			// 256 CPUs up for three years: their idle time alone is more ns than 63 bits hold.
			"long up",
			&cpuTicks{idle: 256 * 100 * 3 * 365 * 86400, unit: 10 * time.Millisecond},
			&cpuTicks{idle: 256*100*3*365*86400 + 256*100, unit: 10 * time.Millisecond},
			&result.CPUTime{Idle: 256e9},
		},
		{"no first reading", nil, &cpuTicks{}, nil},
		{"no last reading", &cpuTicks{}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, cpuSince(c.a, c.b)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCounterSince(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b counter
		want int64
		ok   bool
	}{
		{"grows", counter{5, 64}, counter{7, 64}, 2, true},
		{"beyond 32 bits", counter{1<<40 - 1, 64}, counter{1<<40 + 1, 64}, 2, true},
		{"began anew", counter{5, 64}, counter{4, 64}, 0, false},
		{"wrapped", counter{math.MaxUint32, 32}, counter{1, 32}, 2, true},
		{"wrapped, and far", counter{10, 32}, counter{9, 32}, math.MaxUint32, true},
		{"said to be narrow, but is not", counter{1 << 33, 32}, counter{9, 32}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := c.b.since(c.a)
			if got != c.want || ok != c.ok {
				t.Errorf("got %d, %v; want %d, %v", got, ok, c.want, c.ok)
			}
		})
	}
}

func TestInterruptsSince(t *testing.T) {
	one := func(n uint64) []vectorCount { return []vectorCount{{"24", 0, n}} }
	for _, c := range []struct {
		name    string
		a, b    []vectorCount
		want    int64
		missing bool
	}{
		{"grows", one(10), one(15), 5, false},
		{"wraps at 32 bits", one(math.MaxUint32 - 4), one(5), 10, false},
		{"freed and requested anew", one(1000), one(7), 7, true},
		{"the sum of all has 64 bits", one(1 << 40), one(1<<40 + 3), 3, false},
		{"a new vector", one(10), []vectorCount{{"24", 0, 11}, {"25", 0, 4}, {"24", 1, 2}}, 7, false},
		{"a vector is gone", []vectorCount{{"24", 0, 10}, {"25", 0, 99}}, one(11), 1, false},
		{"a CPU came in between", []vectorCount{{"24", 0, 10}, {"24", 2, 20}}, []vectorCount{{"24", 0, 10}, {"24", 1, 5}, {"24", 2, 21}}, 6, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var missing []string
			got := interruptsSince(c.a, c.b, missed(&missing))
			if got == nil || *got != c.want || (missing != nil) != c.missing {
				t.Errorf("got %v, want %d; missing %v", got, c.want, missing)
			}
		})
	}
	if got := interruptsSince(nil, one(1), nil); got != nil {
		t.Errorf("unknown before, yet %d", *got)
	}
}

func TestPacketsAndTCPBeganAnew(t *testing.T) {
	var missing []string
	a := &packetCounters{name: "eth0", sent: counter{10, 64}, received: counter{10, 64}}
	if got := packetsSince(a, &packetCounters{name: "eth0", sent: counter{20, 64}, received: counter{9, 64}}, missed(&missing)); got != nil {
		t.Errorf("the interface was made anew, yet %+v", got)
	}
	if got := tcpSince(&[len(tcpNames)]counter{{5, 64}, {6, 64}}, &[len(tcpNames)]counter{{6, 64}, {5, 64}}, missed(&missing)); got != nil {
		t.Errorf("TCP's counters went back, yet %+v", got)
	}
	want := []string{"packets of eth0: a counter began anew", "TCP counters: TCPLostRetransmit: a counter began anew"}
	if diff := cmp.Diff(want, missing); diff != "" {
		t.Error(diff)
	}
}

// coreRow makes a row of class 8.
func coreRow(idle, kernel, user, dpc, irq uint64, interrupts uint32) []byte {
	var b []byte
	for _, v := range []uint64{idle, kernel, user, dpc, irq} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = binary.LittleEndian.AppendUint32(b, interrupts)
	return append(b, 0xaa, 0xbb, 0xcc, 0xdd) // padding
}

// Windows' own formula: 100 × (kernel + user − idle)/time, the mean over the CPUs.
func TestCoreRows(t *testing.T) {
	const s = 10_000_000 // 1 s in 100 ns
	a, va := decodeCoreRows(append(coreRow(50*s, 60*s, 7*s, 1*s, 2*s, 100), coreRow(70*s, 71*s, 3*s, 0, 0, math.MaxUint32)...))
	b, vb := decodeCoreRows(append(coreRow(58*s, 70*s, 8*s, 1.5*s, 2.25*s, 150), coreRow(78*s, 80*s, 3.5*s, 0.25*s, 0, 9)...))
	got := cpuSince(a, b)
	want := &result.CPUTime{User: 1.5e9, System: 2e9, Idle: 16e9, IRQ: 0.25e9, SoftIRQ: 0.75e9}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	h := &result.HostTotal{Cores: 2, CPU: got}
	if busy := h.BusyPercent(10); math.Abs(busy-100*(19+1.5-16)/10/2) > 1e-9 {
		t.Errorf("busy %v %%", busy)
	}
	if n := interruptsSince(va, vb, nil); n == nil || *n != 50+10 {
		t.Errorf("interrupts: %v", n)
	}
	if _, v := decodeCoreRows(coreRow(1, 2, 3, 0, 0, 0)); v != nil {
		t.Errorf("a system that counts no interrupts is said to have had %v", v)
	}
	if c, v := decodeCoreRows(coreRow(1, 2, 3, 0, 0, 5)[:47]); c.idle != 0 || v != nil {
		t.Errorf("half a row: %+v, %v", c, v)
	}
}

func TestDPCs(t *testing.T) {
	row := func(switches, dpcs uint32) []byte {
		b := binary.LittleEndian.AppendUint32(nil, switches)
		b = binary.LittleEndian.AppendUint32(b, dpcs)
		return append(b, make([]byte, 16)...)
	}
	a := decodeSwitchCounts(append(row(math.MaxUint32, 1000), row(5, math.MaxUint32-1)...))
	b := decodeSwitchCounts(append(row(7, 1500), row(90, 8)...))
	if got := dpcsSince(a, b, time.Second); got == nil || *got != 500+10 {
		t.Errorf("DPCs: %v", got)
	}
	for _, c := range []struct {
		name string
		a, b []switchCounts
	}{
		{"a CPU more", a, append(b, switchCounts{1, 1})},
		{"none", nil, nil},
		{"counts that stay 0", []switchCounts{{4, 0}}, []switchCounts{{5, 0}}},
		{"backwards", []switchCounts{{4, 10}}, []switchCounts{{5, 9}}},
		{"too many switches", []switchCounts{{0, 10}}, []switchCounts{{6_000_000, 11}}},
	} {
		if got := dpcsSince(c.a, c.b, time.Second); got != nil {
			t.Errorf("%s: %d", c.name, *got)
		}
	}
	// Wine fills the rows at random.
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		a := []switchCounts{{r.Uint32(), r.Uint32()}}
		b := []switchCounts{{r.Uint32(), r.Uint32()}}
		if got := dpcsSince(a, b, 100*time.Microsecond); got != nil {
			t.Errorf("random bytes %v, %v pass as %d DPCs", a, b, *got)
		}
	}
}

// -cfi: 100 × (1 − idle cycles/(time × MHz × 10⁶)).
func TestIdleCycles(t *testing.T) {
	idle := idleCycles{3_000_000_000, 2000}.since(idleCycles{1_000_000_000, 2000})
	if idle != 1e9 {
		t.Errorf("2·10⁹ cycles at 2 GHz last %d ns", idle)
	}
	ticks := result.CPUTime{User: 100, System: 200, SoftIRQ: 80, IRQ: 20, Idle: 9_999_999}
	got := withIdle(ticks, idle, 4e9)
	want := result.CPUTime{User: 0.75e9, System: 1.5e9, SoftIRQ: 0.6e9, IRQ: 0.15e9, Idle: 1e9}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	h := &result.HostTotal{Cores: 2, CPU: &got}
	if busy := h.BusyPercent(2); math.Abs(busy-75) > 1e-9 {
		t.Errorf("busy %v %%", busy)
	}
	if got := withIdle(result.CPUTime{Idle: 5}, 9e9, 4e9); got != (result.CPUTime{Idle: 4e9}) {
		t.Errorf("more idle than there was time: %+v", got)
	}
	if got := withIdle(result.CPUTime{Idle: 5}, 1e9, 4e9); got != (result.CPUTime{Idle: 1e9, System: 3e9}) {
		t.Errorf("ticks saw nothing, cycles did: %+v", got)
	}
	if got := (idleCycles{1, 2000}).since(idleCycles{2, 2000}); got != 0 {
		t.Errorf("cycles went back: %d", got)
	}
}

// The structures' layout, by their fields' places in tcpmib.h and udpmib.h.
func TestStatistics(t *testing.T) {
	words := func(n int) []byte {
		var b []byte
		for i := range n {
			b = binary.LittleEndian.AppendUint32(b, uint32(100+i))
		}
		return b
	}
	c32 := func(n uint64) counter { return counter{n, 32} }
	if got, want := decodeTCPStats((*[tcpStatsSize]byte)(words(15))), (packetCounters{failed: c32(106), received: c32(109), sent: c32(110), retransmitted: c32(111)}); got != want {
		t.Errorf("MIB_TCPSTATS: %+v", got)
	}
	if got, want := decodeUDPStats((*[udpStatsSize]byte)(words(5))), (packetCounters{received: c32(100), failed: c32(102), sent: c32(103)}); got != want {
		t.Errorf("MIB_UDPSTATS: %+v", got)
	}
	two := words(18)
	binary.LittleEndian.PutUint64(two[40:], 5e9)
	binary.LittleEndian.PutUint64(two[48:], 6e9)
	if got, want := decodeTCPStats2((*[tcpStats2Size]byte)(two)), (packetCounters{failed: c32(106), received: counter{5e9, 64}, sent: counter{6e9, 64}, retransmitted: c32(114)}); got != want {
		t.Errorf("MIB_TCPSTATS2: %+v", got)
	}
	two = words(8)
	binary.LittleEndian.PutUint64(two[0:], 5e9)
	binary.LittleEndian.PutUint64(two[16:], 6e9)
	if got, want := decodeUDPStats2((*[udpStats2Size]byte)(two)), (packetCounters{failed: c32(103), received: counter{5e9, 64}, sent: counter{6e9, 64}}); got != want {
		t.Errorf("MIB_UDPSTATS2: %+v", got)
	}
}

// On every system: two readings around work tell of this process, and nothing is negative.
func TestTotalsLive(t *testing.T) {
	tot := NewTotals(TotalsOptions{Retransmits: true, Stack: true})
	defer tot.Close()
	end := tot.Begin()
	var got *result.HostTotal
	for x := 1; ; x++ { // until the coarsest clock has stepped
		if x%100_000 == 0 {
			if got = end(); got.Process != nil && *got.Process > 0 && got.Seconds > 0 {
				break
			}
		}
	}
	if got.Cores < 1 || got.Cores != got.CoresAfter {
		t.Errorf("cores: %d, %d", got.Cores, got.CoresAfter)
	}
	known := runtime.GOOS == "linux" || runtime.GOOS == "windows"
	if (got.CPU != nil) != known || (got.TCP != nil) != known || (got.Packets != nil) != known {
		t.Errorf("on %s: %+v; missing %q", runtime.GOOS, got, tot.Missing())
	}
	if c := got.CPU; c != nil && min(c.User, c.Nice, c.System, c.Idle, c.IOWait, c.IRQ, c.SoftIRQ, c.Steal) < 0 {
		t.Errorf("negative time: %+v", c)
	}
	if len(tot.Missing()) == 0 && runtime.GOOS != "windows" { // DPCs on Linux; elsewhere most
		t.Error("nothing is missing")
	}
}
