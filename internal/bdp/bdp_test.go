package bdp_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/bdp"
	"github.com/fullbore-net/fullbore/internal/units"
)

const (
	mega = units.MbitPerSec
	giga = units.GbitPerSec
	ms   = time.Millisecond
)

// The numbers of recipes §3 and methods §2, to the digit they are given with.
func TestGoldenProduct(t *testing.T) {
	for _, c := range []struct {
		rate units.BitRate
		rtt  time.Duration
		want units.ByteSize
	}{
		{200 * mega, 28 * ms, 700_000},
		{giga, 10 * ms, 1_250_000},
		{10 * giga, 10 * ms, 12_500_000},
		{10 * giga, 15 * ms, 18_750_000},
		{giga, 20 * ms, 2_500_000},
		{10 * giga, 100 * ms, 125_000_000},
		{903 * mega, 15 * ms, 1_693_125}, // the "1.69 MB" that is not the window of 10 Gbit/s
	} {
		if got := bdp.Product(c.rate, c.rtt); got != c.want {
			t.Errorf("%v × %v = %d, want %d", c.rate, c.rtt, got, c.want)
		}
	}
	if got := bdp.For(200*mega, 28*ms).Twice; got != 1_400_000 {
		t.Errorf("2 × BDP = %d, want 1400000", got)
	}
}

func TestGoldenWindowRate(t *testing.T) {
	for _, c := range []struct {
		window units.ByteSize
		rtt    time.Duration
		mbit   float64
		digits float64 // tolerance: half of the last digit given
	}{
		{64_000, ms, 512, 0},
		{65_536, ms, 524.288, 0},
		{65_536, 50 * ms, 10.486, 0.0005},
		{65_536, 28 * ms, 18.725, 0.0005},
		{2 * units.MiB, 15 * ms, 1118.5, 0.05},
		{16_000, 5 * ms, 25.6, 0},
		{65_535, 25 * ms, 20.97, 0.005},
	} {
		got := float64(bdp.WindowRate(c.window, c.rtt)) / 1e6
		if math.Abs(got-c.mbit) > c.digits {
			t.Errorf("%d B in %v: %v Mbit/s, want %v", c.window, c.rtt, got, c.mbit)
		}
	}
}

func TestGoldenLayers(t *testing.T) {
	udp := bdp.UDP(4)
	for _, c := range []struct {
		layer bdp.Layer
		mbit  float64
		tol   float64
	}{
		{bdp.L7, 1000, 1e-9},
		{bdp.L3, 1020.0, 0.05},
		{bdp.L2, 1032.86, 0.005},
		{bdp.L1, 1047.14, 0.005},
	} {
		if got := udp.Convert(1000, 1400, bdp.L7, c.layer); math.Abs(got-c.mbit) > c.tol {
			t.Errorf("1000 Mbit/s of 1400 bytes on %v: %v, want %v", c.layer, got, c.mbit)
		}
	}
	for payload, mbit := range map[int]float64{1400: 954.98, 1472: 957.09} {
		if got := udp.Greatest(giga, payload) / 1e6; math.Abs(got-mbit) > 0.005 {
			t.Errorf("greatest l7 of payload %d: %v, want %v", payload, got, mbit)
		}
	}
	if got := bdp.Packets(5*mega, 200); got != 3125 {
		t.Errorf("5 Mbit/s of 200 bytes: %v packets/s, want 3125", got)
	}
}

func TestGoldenAverages(t *testing.T) {
	mib := float64(34_243) / 300.005
	if math.Abs(mib-114.141) > 0.0005 {
		t.Errorf("%v MiB/s, want 114.141", mib)
	}
	for _, c := range []struct {
		bytes int64
		d     time.Duration
		mbit  float64
		tol   float64
	}{
		{34_243 << 20, 300_005 * ms, 957.5, 0.05},
		{12_770_607_104, 14_440 * ms, 7_080, 5},
		{28_704_768, 60 * time.Second, 3.83, 0.005},
		{25_073_568, 60 * time.Second, 3.34, 0.005},
	} {
		if got := bdp.Average(c.bytes, c.d) / 1e6; math.Abs(got-c.mbit) > c.tol {
			t.Errorf("%d bytes in %v: %v Mbit/s, want %v", c.bytes, c.d, got, c.mbit)
		}
	}
	if got := 100 * bdp.Missing(28_704_768, 25_073_568); math.Abs(got-12.65) > 0.005 {
		t.Errorf("%v %% never arrived, want 12.65", got)
	}
}

// RFC 6349's ideal throughput.
func TestGoldenIdeal(t *testing.T) {
	for _, c := range []struct {
		name   string
		h      bdp.Headers
		link   units.BitRate
		mtu    int
		frames int64
		mbit   float64
	}{
		{"100 Mbit/s", bdp.PlainTCP(4), 100 * mega, 1500, 8_127, 94.923},
		{"1 Gbit/s", bdp.PlainTCP(4), giga, 1500, 81_274, 949.28},
		{"1 Gbit/s, timestamps", bdp.TCP(4), giga, 1500, 81_274, 941.48},
		{"10 Gbit/s", bdp.PlainTCP(4), 10 * giga, 1500, 812_743, 9_492.84},
		{"10 Gbit/s, timestamps", bdp.TCP(4), 10 * giga, 1500, 812_743, 9_414.81},
		{"10 Gbit/s, jumbo, timestamps", bdp.TCP(4), 10 * giga, 9000, 138_304, 9_900.35},
		{"100 Gbit/s, timestamps", bdp.TCP(4), 100 * giga, 1500, 8_127_438, 94_148.24},
	} {
		if got := c.h.Frames(c.link, c.mtu); got != c.frames {
			t.Errorf("%s: %d frame/s, want %d", c.name, got, c.frames)
		}
		if got := c.h.Ideal(c.link, c.mtu) / 1e6; math.Abs(got-c.mbit) > 0.005 {
			t.Errorf("%s: %v Mbit/s, want %v", c.name, got, c.mbit)
		}
	}
	// MTU − 60 for IPv6, − 72 with timestamps, and 4 bytes a tag.
	if a, b := bdp.PlainTCP(6), bdp.TCP(6); a.IP+a.Transport != 60 || b.IP+b.Transport != 72 {
		t.Errorf("IPv6 headers: %+v, %+v", a, b)
	}
	tagged := bdp.Headers{Transport: 20, IP: 20, VLANTags: 1}
	if got := tagged.Frames(giga, 1500); got != 1_000_000_000/(1542*8) {
		t.Errorf("tagged frames = %d", got)
	}
}

func TestSmallestFrame(t *testing.T) {
	// 1 + 8 + 20 + 18 = 47 bytes are padded to 64; the line is busy for 84.
	if l2, l1 := bdp.UDP(4).Bytes(1, bdp.L2), bdp.UDP(4).Bytes(1, bdp.L1); l2 != 64 || l1 != 84 {
		t.Errorf("frame of one byte: %d and %d, want 64 and 84", l2, l1)
	}
}

func TestNothingToCompute(t *testing.T) {
	for name, got := range map[string]int64{
		"product without rate":       int64(bdp.Product(0, ms)),
		"product without delay":      int64(bdp.Product(giga, 0)),
		"product of a negative":      int64(bdp.Product(-1, ms)),
		"window rate without delay":  int64(bdp.WindowRate(65535, 0)),
		"window rate without window": int64(bdp.WindowRate(0, ms)),
		"streams without window":     bdp.Streams(1, 0),
		"streams without need":       bdp.Streams(0, 1),
		"average in no time":         int64(bdp.Average(5, 0)),
		"missing of nothing":         int64(bdp.Missing(0, 0)),
	} {
		if got != 0 {
			t.Errorf("%s = %d, want 0", name, got)
		}
	}
}

func TestProductIsTheLeastThatFills(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := units.BitRate(rapid.Int64Range(1, 1e15).Draw(t, "rate"))
		rtt := time.Duration(rapid.Int64Range(1, 1e12).Draw(t, "rtt"))
		need := bdp.Product(rate, rtt)
		if bdp.WindowRate(need, rtt) < rate {
			t.Fatalf("a window of the BDP %d carries only %d of %d", need, bdp.WindowRate(need, rtt), rate)
		}
		if need > 1 && bdp.WindowRate(need-1, rtt) >= rate {
			t.Fatalf("one byte less than %d would do", need)
		}
		exact := new(big.Int).Mul(big.NewInt(int64(rate)), big.NewInt(int64(rtt)))
		exact.Add(exact, big.NewInt(8e9-1)).Quo(exact, big.NewInt(8e9))
		if exact.Int64() != int64(need) {
			t.Fatalf("BDP = %d, exactly %v", need, exact)
		}
	})
}

func TestSaturation(t *testing.T) {
	if got := bdp.Product(math.MaxInt64, math.MaxInt64); got != math.MaxInt64 {
		t.Errorf("product = %d", got)
	}
	if got := bdp.WindowRate(math.MaxInt64, 1); got != math.MaxInt64 {
		t.Errorf("window rate = %d", got)
	}
	r := bdp.For(math.MaxInt64, math.MaxInt64)
	if r.Twice < r.BDP {
		t.Errorf("2 × BDP overflowed: %d", r.Twice)
	}
}

func TestConvertIsReversible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := bdp.Headers{Transport: 8, IP: rapid.SampledFrom([]int{20, 40}).Draw(t, "ip"), VLANTags: rapid.IntRange(0, 2).Draw(t, "tags")}
		payload := rapid.IntRange(1, 9000).Draw(t, "payload")
		from := bdp.Layer(rapid.IntRange(0, 4).Draw(t, "from"))
		to := bdp.Layer(rapid.IntRange(0, 4).Draw(t, "to"))
		there := h.Convert(1e9, payload, from, to)
		if back := h.Convert(there, payload, to, from); math.Abs(back-1e9) > 1 {
			t.Fatalf("%v → %v → %v: %v", from, to, from, back)
		}
		if to > from && there < 1e9 {
			t.Fatalf("a lower layer carries less: %v", there)
		}
	})
}

func TestReport(t *testing.T) {
	r := bdp.For(10*giga, 10*ms, 3*units.MiB, units.MiB)
	if r.BDP != 12_500_000 || r.Twice != 25_000_000 || r.MinStreams != 1 || r.RTT != 0.01 {
		t.Errorf("report: %+v", r)
	}
	want := []bdp.Carried{
		{Window: 65535, Rate: 52_428_000, Share: 0.0052428, Needed: 191},
		{Window: 212992, Rate: 170_393_600, Share: 0.01703936, Needed: 59},
		{Window: 524288, Rate: 419_430_400, Share: 0.04194304, Needed: 24},
		{Window: 1 << 20, Rate: 838_860_800, Share: 0.08388608, Needed: 12, Asked: true},
		{Window: 2 << 20, Rate: 1_677_721_600, Share: 0.16777216, Needed: 6},
		{Window: 3 << 20, Rate: 2_516_582_400, Share: 0.25165824, Needed: 4, Asked: true},
		{Window: 4 << 20, Rate: 3_355_443_200, Share: 0.33554432, Needed: 3},
		{Window: 8 << 20, Rate: 6_710_886_400, Share: 0.67108864, Needed: 2},
		{Window: 16 << 20, Rate: 13_421_772_800, Share: 1, Needed: 1},
	}
	if diff := cmp.Diff(want, r.Carried); diff != "" {
		t.Error(diff)
	}
	if got := bdp.For(400*giga, 100*ms).MinStreams; got != 5 {
		t.Errorf("400 Gbit/s × 100 ms needs %d streams, want 5 (5 GB, at most 1 GiB each)", got)
	}
}

func TestLinuxSettings(t *testing.T) {
	got := bdp.For(10*giga, 10*ms).Linux.Lines
	want := []string{
		"sysctl -w net.core.rmem_max=25000000",
		"sysctl -w net.core.wmem_max=25000000",
		"sysctl -w net.ipv4.tcp_rmem='4096 131072 50000000'",
		"sysctl -w net.ipv4.tcp_wmem='4096 16384 50000000'",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// The sysctls are C ints, and no window exceeds 1 GiB.
	huge := bdp.ForLinux(100 * units.GiB)
	if huge.CoreMax != units.GiB || huge.TCPMax != math.MaxInt32 {
		t.Errorf("huge: %+v", huge)
	}
	if got := bdp.For(10*giga, 10*ms).Linux; got.ByDefault || got.TCPMax != 50_000_000 || got.Window != 25_000_000 {
		t.Errorf("10 Gbit/s × 10 ms: %+v", got)
	}
}

// The lines of a short path must not take away what the kernel gives by itself.
func TestLinuxSettingsNeverLower(t *testing.T) {
	s := bdp.ForLinux(1000)
	want := []string{
		"sysctl -w net.core.rmem_max=212992",
		"sysctl -w net.core.wmem_max=212992",
		"sysctl -w net.ipv4.tcp_rmem='4096 131072 6291456'",
		"sysctl -w net.ipv4.tcp_wmem='4096 16384 4194304'",
	}
	if diff := cmp.Diff(want, s.Lines); diff != "" || !s.ByDefault {
		t.Errorf("by default: %v %s", s.ByDefault, diff)
	}
	if at, above := bdp.ForLinux(2_097_152), bdp.ForLinux(2_097_153); !at.ByDefault || above.ByDefault {
		t.Errorf("the defaults allow windows up to 2 MiB: %v, %v", at.ByDefault, above.ByDefault)
	}
}

func TestWindowsSettings(t *testing.T) {
	for _, c := range []struct {
		window units.ByteSize
		level  string
	}{
		{0, "normal"},
		{16_776_960, "normal"},
		{16_776_961, "experimental"},
		{10 * units.GiB, "experimental"},
	} {
		s := bdp.ForWindows(c.window)
		if s.Level != c.level {
			t.Errorf("%d: level %s, want %s", c.window, s.Level, c.level)
		}
	}
	s := bdp.ForWindows(25_000_000)
	want := []string{"netsh interface tcp show global", "netsh interface tcp set global autotuninglevel=experimental"}
	if diff := cmp.Diff(want, s.Netsh); diff != "" {
		t.Error(diff)
	}
	if got := s.PowerShell[1]; got != "Set-NetTCPSetting -SettingName InternetCustom -AutoTuningLevelLocal Experimental" {
		t.Error(got)
	}
}
