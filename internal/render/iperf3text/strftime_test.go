package iperf3text

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestStrftime compares with the C library.
func TestStrftime(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/strftime.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		sec, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil || len(f) != 3 {
			t.Fatal(line, err)
		}
		n++
		got := strftime(f[1], time.Unix(sec, 0).In(time.FixedZone("GMT", 0)))
		got = strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(got)
		if got != f[2] {
			t.Errorf("%d %q: %q, want %q", sec, f[1], got, f[2])
		}
	}
	if n < 100 {
		t.Errorf("only %d lines", n)
	}
	for in, want := range map[string]string{"%": "%", "%_": "%_", "a%": "a%", "%-": "%-", "%z": "+0530", "%Z": "IST"} {
		if got := strftime(in, time.Unix(0, 0).In(time.FixedZone("IST", 19800))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
