package units_test

import (
	"bufio"
	"errors"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/units"
	"pgregory.net/rapid"
)

func TestParseIperf3(t *testing.T) {
	t.Parallel()
	const bad = -1
	tests := []struct {
		in         string
		rate, size int64
	}{
		{"0", 0, 0},
		{"1048576", 1048576, 1048576},
		{"10M", 10e6, 10 << 20},
		{"10m", 10e6, 10 << 20},
		{"1.5K", 1500, 1536},
		{"1.5M", 1500000, 1572864},
		{"1G", 1e9, 1 << 30},
		{"2t", 2e12, 2 << 40},
		{"1e6", 1e6, 1e6},
		{"1E3k", 1e6, 1000 << 10},
		{"0x10K", 16000, 16384},
		{"+5M", 5e6, 5 << 20},
		{".5M", 500000, 524288},
		{"5.M", 5e6, 5 << 20},
		{" 2M", 2e6, 2 << 20}, // "-w 2M" as one argv element
		{"2M ", 2e6, 2 << 20},
		{"9007199254740993", 9007199254740993, 9007199254740993}, // exact beyond 2^53
		{"9223372036854775807", math.MaxInt64, math.MaxInt64},

		// Only the letter counts, as long as the rest says bits or bytes.
		{"10Mbps", 10e6, 10 << 20},
		{"10MB", 10e6, 10 << 20},
		{"10M/s", 10e6, 10 << 20},
		{"10Mbit/s", 10e6, 10 << 20},
		{"10Mbits/sec", 10e6, 10 << 20},
		{"10MiB", 10e6, 10 << 20},
		{"10MBytes", 10e6, 10 << 20},
		{"10Mi", 10e6, 10 << 20},

		{"", bad, bad},
		{" ", bad, bad},
		{"fast", bad, bad},
		{"K", bad, bad},
		{"1Q", bad, bad},
		{"10 M", bad, bad},
		{"10x", bad, bad},
		{"10bps", bad, bad}, // iperf3 ≥ 3.20: unknown unit b
		{"10MQ", bad, bad},
		{"10M5", bad, bad},
		{"10Mbit/h", bad, bad},
		{"50%", bad, bad},
		{"-5M", bad, bad},
		{"-0.001", bad, bad},
		{"inf", bad, bad},
		{"nan", bad, bad},
		{"1e", bad, bad},
		{"1.2.3", bad, bad},
		{"--1", bad, bad},
		{"0.5", bad, bad}, // would be 0 = unlimited
		{"9223372036854775808", bad, bad},
		{"40000000T", bad, bad},
		{"1e99999999999999999999", bad, bad},
		{strings.Repeat("9", 1000), bad, bad},
	}
	for _, tt := range tests {
		rate, rateErr := units.ParseIperf3Rate(tt.in)
		size, sizeErr := units.ParseIperf3Size(tt.in)
		check(t, "ParseIperf3Rate", tt.in, int64(rate), rateErr, tt.rate)
		check(t, "ParseIperf3Size", tt.in, int64(size), sizeErr, tt.size)
	}
}

// check compares a parser's answer with want; want -1 asks for an error that names
// the value.
func check(t *testing.T, fn, in string, got int64, err error, want int64) {
	t.Helper()
	if want >= 0 {
		if err != nil || got != want {
			t.Errorf("%s(%q) = %d, %v; want %d", fn, in, got, err, want)
		}
		return
	}
	var syntax *units.SyntaxError
	if !errors.As(err, &syntax) || syntax.Value != in || !strings.Contains(err.Error(), strconv.Quote(in)) {
		t.Errorf("%s(%q) = %d, %v; want an error that names the value", fn, in, got, err)
	}
}

func TestParseWhole(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want int64
		ok   bool
	}{
		{"5201", 5201, true},
		{"-1", -1, true},
		{"5.0", 5, true},
		{" 1", 1, true},
		{"1e3", 1000, true},
		{"08", 8, true}, // decimal, whatever the leading zero
		{"5201abc", 0, false},
		{"5201x", 0, false},
		{"2.5", 0, false},
		{"a", 0, false},
		{"", 0, false},
		{"1K", 0, false},
		{"99999999999999999999", 0, false},
	}
	for _, tt := range tests {
		got, err := units.ParseWhole(tt.in)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("ParseWhole(%q) = %d, %v; want %d, ok %v", tt.in, got, err, tt.want, tt.ok)
		}
	}
}

func TestParseSeconds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want time.Duration
		ok   bool
	}{
		{"0", 0, true},
		{"10", 10 * time.Second, true},
		{"5.0", 5 * time.Second, true},
		{"0.5", 500 * time.Millisecond, true},
		{"0.0000000004", 0, false},
		{"0.0000000006", 1, true},
		{"-1", -time.Second, true},
		{"-0.0000000006", -1, true},
		{"1x", 0, false},
		{"abc", 0, false},
		{"1s", 0, false},
		{"1e30", 0, false},
	}
	for _, tt := range tests {
		got, err := units.ParseSeconds(tt.in)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("ParseSeconds(%q) = %v, %v; want %v, ok %v", tt.in, got, err, tt.want, tt.ok)
		}
	}
}

func TestParseBased(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want int64
		ok   bool
	}{
		{"184", 184, true},
		{"0xb8", 184, true},
		{"0XB8", 184, true},
		{"0270", 184, true},
		{"0", 0, true},
		{"-1", -1, true},
		{"+46", 46, true},
		{" 46", 46, true},
		{"08", 0, false},
		{"0x", 0, false},
		{"ef", 0, false},
		{"12abc", 0, false},
		{"1_000", 0, false},
		{"--1", 0, false},
		{"", 0, false},
		{"-", 0, false},
		{"99999999999999999999", 0, false},
	}
	for _, tt := range tests {
		got, err := units.ParseBased(tt.in)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("ParseBased(%q) = %d, %v; want %d, ok %v", tt.in, got, err, tt.want, tt.ok)
		}
	}
}

func TestIperf3Amount(t *testing.T) {
	t.Parallel()
	tests := []struct {
		bytes  float64
		format byte
		want   string
	}{
		{0, 'A', "0.00 Byte"},
		{0, 'a', "0.00 bit"},
		{1, 'A', "1.00 Byte"},
		{999, 'A', " 999 Byte"},
		{1023, 'A', "1023 Byte"},
		{1024, 'A', "1.00 KByte"},
		{1023 * 1024, 'A', "1023 KByte"},
		{1023.6 * 1024, 'A', "1024 KByte"},
		{125, 'a', "1.00 Kbit"},
		{124.9999, 'a', "1000 bit"},
		{131072, 'a', "1.05 Mbit"},
		{9.994 * 1024, 'A', "9.99 KByte"},
		{9.995 * 1024, 'A', "10.0 KByte"},
		{99.94 * 1024, 'A', "99.9 KByte"},
		{99.95 * 1024, 'A', " 100 KByte"},
		{110 << 20, 'A', " 110 MByte"},
		{3 << 50, 'A', "3072 TByte"},
		{12572125, 'k', "100577 Kbit"},
		{12.5e6, 'g', "0.10 Gbit"},
		{12.5e6, 't', "0.00 Tbit"},
		{12.5e6, 'K', "12207 KByte"},
		{12.5e6, 'M', "11.9 MByte"},
		{12.5e6, 'G', "0.01 GByte"},
		{12.5e6, 'T', "0.00 TByte"},
		{12.5e6, 'm', " 100 Mbit"},
		{7, 'b', "56.0 bit"},
		{7, 'B', "7.00 Byte"},
	}
	for _, tt := range tests {
		if got := units.Iperf3Amount(tt.bytes, tt.format); got != tt.want {
			t.Errorf("Iperf3Amount(%v, %q) = %q, want %q", tt.bytes, tt.format, got, tt.want)
		}
	}
}

// TestIperf3AmountGoldens reads back each amount that iperf3 printed in our
// recordings and prints it again: at its nominal value and just below the next one.
func TestIperf3AmountGoldens(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/iperf3_amounts.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := 0
	for in := bufio.NewScanner(f); in.Scan(); {
		if strings.HasPrefix(in.Text(), "#") {
			continue
		}
		format, text, _ := strings.Cut(in.Text(), "\t")
		number, unit, _ := strings.Cut(strings.TrimLeft(text, " "), " ")
		v, err := strconv.ParseFloat(number, 64)
		if err != nil {
			t.Fatalf("%q: %v", in.Text(), err)
		}
		last := 1.0 // weight of the last digit
		if i := strings.IndexByte(number, '.'); i >= 0 {
			last = math.Pow10(i + 1 - len(number))
		}
		step := 1024.0
		if strings.HasSuffix(unit, "bit") {
			step = 1000
			v, last = v/8, last/8
		}
		scale := 1.0
		if i := strings.IndexByte("KMGT", unit[0]); i >= 0 {
			scale = math.Pow(step, float64(i+1))
		}
		for _, bytes := range []float64{v * scale, (v + 0.49*last) * scale} {
			if got := units.Iperf3Amount(bytes, format[0]); got != text {
				t.Errorf("Iperf3Amount(%v, %s) = %q, want %q", bytes, format, got, text)
			}
		}
		seen++
	}
	if seen < 400 {
		t.Errorf("only %d amounts in the golden file", seen)
	}
}

// TestIperf3AmountWidth: an adaptive amount below 1000 T always fits into four
// characters, a blank and at most six of unit.
func TestIperf3AmountWidth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.Float64Range(0, 1e14).Draw(t, "bytes")
		format := rapid.SampledFrom([]byte("aA")).Draw(t, "format")
		got := units.Iperf3Amount(bytes, format)
		number, _, ok := strings.Cut(strings.TrimLeft(got, " "), " ")
		if !ok || len(number) > 4 || strings.IndexByte(got[4:], ' ') != 0 {
			t.Fatalf("Iperf3Amount(%v, %c) = %q", bytes, format, got)
		}
	})
}
