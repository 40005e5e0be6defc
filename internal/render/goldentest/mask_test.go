package goldentest_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/render/goldentest"
)

// TestMaskKnowsAllLines: after masking no recording of a test has a digit left but in
// ids, signal names and what is constant.
func TestMaskKnowsAllLines(t *testing.T) {
	t.Parallel()
	constant := regexp.MustCompile(`^(?:<stamp> )?(?:mytest:  )?\[ *\d+\]`)
	for _, g := range goldentest.Iperf3(t, "*.txt") {
		name, _, _ := strings.Cut(g.Name, ".")
		switch {
		case strings.Contains(g.Name, "stderr"), name == "version", name == "debug1":
			continue
		case name == "auth_nopassword_notty": // the whole usage text
			continue
		}
		for line := range strings.Lines(goldentest.Mask(string(g.Data))) {
			rest := constant.ReplaceAllString(line, "")
			if strings.ContainsAny(rest, "0123456789") {
				t.Errorf("%s: %q", g.ID(), line)
			}
		}
	}
}

func TestMask(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"[  5]   0.00-1.00   sec  12.0 MBytes   101 Mbits/sec    1    328 KBytes       (omitted)", "[  5] <start>-<end-> sec  <amount>s  <rate> bits/sec  <retr>   <amount>s       (omitted)"},
		{"[SUM]   0.00-2.00   sec  23.8 MBytes  99.6 Mbits/sec    2             sender", "[SUM] <start>-<end-> sec  <amount>s  <rate> bits/sec  <retr>             sender"},
		{"[  5]   0.00-2.00   sec  23.8 MBytes  99.6 Mbits/sec    2            sender", "[  5] <start>-<end-> sec  <amount>s  <rate> bits/sec  <retr>            sender"},
		{"[ 11][RX-C] 100.00-101.00 sec  2.50 MBytes  11941 KBytes/sec                  ", "[ 11][RX-C] <start>-<end-> sec  <amount>s  <rate> Bytes/sec                  "},
		{"[  6][TX-S]   0.00-1.00   sec   612 KBytes  5.01 Mbits/sec            433  ", "[  6][TX-S] <start>-<end-> sec  <amount>s  <rate> bits/sec            <datagrams>  "},
		{"[  5]   0.00-2.01   sec  4.65 MBytes  19.4 Mbits/sec  0.040 ms  3543/6910 (1e+02%)  receiver", "[  5] <start>-<end-> sec  <amount>s  <rate> bits/sec  <jitter> ms  <lost>/<total> (<percent>%)  receiver"},
		// Wrong classes stay visible.
		{"[  5]  0.00-1.00   sec  12.0 MBytes   101 Mbits/sec  ", "[  5]  0.00-1.00   sec  <amount>s  <rate> bits/sec  "},
		{"[  5]   0.00-1.00   sec  12.00 MBytes  101 Mbits/sec  ", "[  5] <start>-<end-> sec  12.00 MBytes  101 Mbits/sec  "},
		{"      Cookie: short", "      Cookie: short"},
	} {
		if got := goldentest.Mask(c.in); got != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.in, got, c.want)
		}
	}
}

func TestDropShort(t *testing.T) {
	t.Parallel()
	const (
		row1 = "[  5]   0.00-1.00   sec  12.0 MBytes   101 Mbits/sec                  \n"
		row2 = "[  5]   1.00-2.00   sec  12.0 MBytes   101 Mbits/sec                  \n"
		rest = "[  5]   2.00-2.01   sec   256 KBytes   101 Mbits/sec                  \n"
		sum  = "[SUM]   2.00-2.01   sec   256 KBytes   101 Mbits/sec                  \n"
		line = "- - - - - - - - - - - - - - - - - - - - - - - - -\n"
		rx1  = "[  5][RX-S]   0.00-1.00   sec  12.0 MBytes   101 Mbits/sec                  \n"
		tx1  = "[  8][TX-S]   0.00-1.00   sec  12.0 MBytes   101 Mbits/sec    0    332 KBytes       \n"
		rx2  = "[  5][RX-S]   1.00-1.15   sec  12.0 MBytes   101 Mbits/sec                  \n"
		tx2  = "[  8][TX-S]   1.00-1.01   sec  12.0 MBytes   101 Mbits/sec    0    332 KBytes       \n"

		banner = "Server listening on 5201 (test #2)\n"

		last = "[  5]   0.00-2.01   sec  12.0 MBytes   101 Mbits/sec                  receiver\n"
	)
	for _, c := range []struct{ in, want string }{
		{row1 + row2 + line + last, row1 + row2 + line + last},
		{row1 + row2 + rest + line + last, row1 + row2 + line + last},
		{row1 + line + row2 + line + rest + sum + line + last, row1 + line + row2 + line + last},
		{rest + line + last, rest + line + last},
		{row1 + rest, row1},
		{rx1 + tx1 + rx2 + tx2 + line, rx1 + tx1 + line}, // the streams end at different times
		{row1 + rest + line + last + banner + row1 + line + last, row1 + line + last + banner + row1 + line + last},
	} {
		if got := goldentest.DropShort(c.in); got != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.in, got, c.want)
		}
	}
}
