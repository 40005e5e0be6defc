package units_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/units"
	"pgregory.net/rapid"
)

func TestParseRate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want int64
	}{
		{"100M", 100e6},
		{"1.5Gbit/s", 1500e6},
		{"941 Mbit/s", 941e6},
		{"10Gbps", 10e9},
		{"10gbps", 10e9},
		{"64k", 64000},
		{"9600", 9600},
		{"9600 bit/s", 9600},
		{"9600 bits/sec", 9600},
		{"12.5MB/s", 100e6},
		{"12.5MBps", 100e6},
		{"1 KiB/s", 8192},
		{"1Gibit/s", 1 << 30},
		{"1Ki", 1024},
		{"10M/s", 10e6},
		{"10Mb/s", 10e6},

		{"", -1},
		{"fast", -1},
		{"10MB", -1}, // an amount
		{"10Q", -1},
		{"10MBPS", -1}, // bits or bytes?
		{"10ps", -1},
		{"-1M", -1},
		{"0.1", -1},
		{"95%", -1},
		{"10Mbit/h", -1},
		{"10M 5", -1},
		{"1e40", -1},
	}
	for _, tt := range tests {
		got, err := units.ParseRate(tt.in)
		check(t, "ParseRate", tt.in, int64(got), err, tt.want)
	}
}

func TestParseSize(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want int64
	}{
		{"1500", 1500},
		{"1500B", 1500},
		{"1500 bytes", 1500},
		{"128K", 131072},
		{"128k", 131072},
		{"128KiB", 131072},
		{"128Ki", 131072},
		{"128kB", 128000},
		{"1.25 MB", 1250000},
		{"4G", 4 << 30},
		{"1T", 1 << 40},

		{"", -1},
		{"128Kb", -1},
		{"4mbit", -1},
		{"10Q", -1},
		{"10%", -1},
		{"-1", -1},
		{"1KB/s", -1},
		{"0.5", -1},
	}
	for _, tt := range tests {
		got, err := units.ParseSize(tt.in)
		check(t, "ParseSize", tt.in, int64(got), err, tt.want)
	}
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want int64
	}{
		{"10", 10e9},
		{"0", 0},
		{"0.5", 5e8},
		{"28ms", 28e6},
		{"28 ms", 28e6},
		{"1.5s", 15e8},
		{"350us", 350e3},
		{"350µs", 350e3},
		{"350μs", 350e3},
		{"7ns", 7},
		{"2min", 120e9},
		{"1h30m", 5400e9},
		{"1h 30 min", 5400e9},
		{"1m0.5s", 605e8},
		{"1d", 86400e9},

		{"", -1},
		{"ms", -1},
		{"10x", -1},
		{"10M", -1},
		{"-5s", -1},
		{"5s-1s", -1},
		{"1h30", -1},
		{"5 5", -1},
		{"0.1ns", -1},
		{"1e20d", -1},
	}
	for _, tt := range tests {
		got, err := units.ParseDuration(tt.in)
		check(t, "ParseDuration", tt.in, int64(got), err, tt.want)
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	tests := []struct{ got, want string }{
		{units.BitRate(941e6).String(), "941 Mbit/s"},
		{units.BitRate(9.41e9).String(), "9.41 Gbit/s"},
		{units.BitRate(1048576).String(), "1.05 Mbit/s"},
		{units.BitRate(18724571).String(), "18.7 Mbit/s"},
		{units.BitRate(0).String(), "0 bit/s"},
		{units.BitRate(999).String(), "999 bit/s"},
		{units.BitRate(999_600).String(), "1.00 Mbit/s"},
		{units.BitRate(5e15).String(), "5000 Tbit/s"},
		{units.BitRate(1e9).Exact(), "1G"},
		{units.BitRate(1500e3).Exact(), "1500K"},
		{units.BitRate(1048576).Exact(), "1048576"},
		{units.BitRate(0).Exact(), "0"},
		{units.ByteSize(1250000).String(), "1.25 MB"},
		{units.ByteSize(1250000).IEC(), "1.19 MiB"},
		{units.ByteSize(700000).String(), "700 kB"},
		{units.ByteSize(131072).IEC(), "128 KiB"},
		{units.ByteSize(512).IEC(), "512 B"},
		{units.ByteSize(1023).IEC(), "1.00 KiB"},
		{units.ByteSize(1250000).Exact(), "1250000"},
		{units.ByteSize(131072).Exact(), "128K"},
		{units.FormatDuration(28 * time.Millisecond), "28 ms"},
		{units.FormatDuration(1500 * time.Millisecond), "1.5 s"},
		{units.FormatDuration(28123 * time.Microsecond), "28.1 ms"},
		{units.FormatDuration(350 * time.Microsecond), "350 µs"},
		{units.FormatDuration(999_900), "1 ms"},
		{units.FormatDuration(300 * time.Second), "300 s"},
		{units.FormatDuration(24 * time.Hour), "86400 s"},
		{units.FormatDuration(0), "0 s"},
		{units.FormatDuration(-28 * time.Millisecond), "-28 ms"},
		{units.FormatDuration(math.MinInt64), "-9223372037 s"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

// TestExactRoundTrip: what Exact prints, both dialects read back as the same value.
func TestExactRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64Min(0).Draw(t, "v")
		if unit := rapid.SampledFrom([]int64{1, 1000, 1024, 1e6, 1 << 20, 1e12, 1 << 40}).Draw(t, "unit"); v <= math.MaxInt64/unit {
			v *= unit
		}
		rate, size := units.BitRate(v), units.ByteSize(v)
		for name, parse := range map[string]func(string) (units.BitRate, error){"ours": units.ParseRate, "iperf3": units.ParseIperf3Rate} {
			if got, err := parse(rate.Exact()); err != nil || got != rate {
				t.Fatalf("%s: %d printed as %q, read as %d, %v", name, rate, rate.Exact(), got, err)
			}
		}
		for name, parse := range map[string]func(string) (units.ByteSize, error){"ours": units.ParseSize, "iperf3": units.ParseIperf3Size} {
			if got, err := parse(size.Exact()); err != nil || got != size {
				t.Fatalf("%s: %d printed as %q, read as %d, %v", name, size, size.Exact(), got, err)
			}
		}
		if got, err := units.ParseDuration(time.Duration(v).String()); err != nil || got != time.Duration(v) {
			t.Fatalf("%v read as %v, %v", time.Duration(v), got, err)
		}
	})
}

// TestRoundedRoundTrip: what String prints is read back within half of its last
// digit, and prints the same again.
func TestRoundedRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := int64(math.Pow(10, rapid.Float64Range(0, 15).Draw(t, "log10")))
		near := func(got int64, text, again string, err error) {
			t.Helper()
			if err != nil || math.Abs(float64(got-v)) > 0.0051*float64(v)+1 || text != again {
				t.Fatalf("%d printed as %q, read as %d, %v, printed as %q", v, text, got, err, again)
			}
		}
		r, err := units.ParseRate(units.BitRate(v).String())
		near(int64(r), units.BitRate(v).String(), r.String(), err)
		s, err := units.ParseSize(units.ByteSize(v).String())
		near(int64(s), units.ByteSize(v).String(), s.String(), err)
		s, err = units.ParseSize(units.ByteSize(v).IEC())
		near(int64(s), units.ByteSize(v).IEC(), s.IEC(), err)
		d, err := units.ParseDuration(units.FormatDuration(time.Duration(v)))
		near(int64(d), units.FormatDuration(time.Duration(v)), units.FormatDuration(d), err)
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"10M", "1e6", "0x1p3", "0b1", "1_000", "-5", ".5", "5.", "1h30m", "941 Mbit/s", "12.5MB/s", "inf", "1e", "\x00", "５", "0x.8"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		// Accepted values are never negative, and both dialects agree on rates unless
		// binary prefixes or bytes are named, which iperf3 ignores.
		rate, err := units.ParseIperf3Rate(s)
		if err == nil {
			if rate < 0 {
				t.Errorf("ParseIperf3Rate(%q) = %d", s, rate)
			}
			ours, err := units.ParseRate(s)
			if err == nil && ours != rate && !strings.ContainsAny(s, "iB") && !strings.Contains(s, "byte") {
				t.Errorf("%q: %d bit/s in iperf3's spelling, %d in ours", s, rate, ours)
			}
		}
		if size, err := units.ParseIperf3Size(s); err == nil && size < 0 {
			t.Errorf("ParseIperf3Size(%q) = %d", s, size)
		}
		if size, err := units.ParseSize(s); err == nil && size < 0 {
			t.Errorf("ParseSize(%q) = %d", s, size)
		}
		if d, err := units.ParseDuration(s); err == nil && d < 0 {
			t.Errorf("ParseDuration(%q) = %d", s, d)
		}
		if n, err := units.ParseWhole(s); err == nil {
			if d, err := units.ParseSeconds(s); err == nil && int64(d/time.Second) != n {
				t.Errorf("%q: %d whole, %v as seconds", s, n, d)
			}
		}
	})
}
