package suite_test

import (
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/result"
)

// held makes up TCP runs of some steps with a limit by the counters, a rate, and what the kernels told of it.
func held(prefix, limit string, bps float64, window, meanRTT int64) func(string, result.Direction, *result.Run) {
	return func(name string, d result.Direction, run *result.Run) {
		if !strings.HasPrefix(name, prefix) || run.Test.Transport != "tcp" {
			return
		}
		for i := range run.Sums {
			if run.Sums[i].Direction == d {
				run.Sums[i].Goodput, run.Sums[i].Peak, run.Sums[i].Limit = &bps, &bps, limit
			}
		}
		for i := range run.Streams {
			for _, t := range []*result.TCPSummary{run.Streams[i].TCP, run.Streams[i].RemoteTCP} {
				if t != nil {
					t.MaxSndWnd, t.MeanRTT = window, meanRTT
				}
			}
		}
	}
}

// The demand of one stream is a share of the lesser of link and window; several that the ends themselves hold
// back decide nothing.
func TestWindows(t *testing.T) {
	for _, c := range []struct {
		name         string
		item         string
		plant        func(string, result.Direction, *result.Run)
		result, says string
	}{
		// 31 250 bytes in 10 ms are 25 Mbit/s
		{"a window holds one stream", "A1-up", held("A1-", "receive-window", 24e6, 31250, 10000), result.Pass, "22.5 Mbit/s (90 % of what the receiver's own window of 30.5 KiB lets through, 25.0 Mbit/s)"},
		{"less than it lets through", "A1-up", held("A1-", "receive-window", 20e6, 31250, 10000), result.Fail, "misses at least 22.5 Mbit/s"},
		{"something else holds it", "A1-up", held("A1-", "loss", 24e6, 31250, 10000), result.Fail, "misses at least 84.7 Mbit/s"},
		{"a window larger than the link", "A1-up", held("A1-", "receive-window", 60e6, 125000, 16000), result.Fail, "misses at least 84.7 Mbit/s"},
		{"windows hold several", "A2-down", held("A2-", "receive-window", 48e6, 62500, 10000), result.Inconclusive, "the receivers' own windows (61.0 KiB in all) let no more through"},
		{"windows do not explain it", "A2-down", held("A2-", "receive-window", 48e6, 250000, 40000), result.Fail, "misses at least 89.4 Mbit/s"},
		{"a send buffer", "A2-down", held("A2-", "send-buffer", 48e6, 250000, 10100), result.Inconclusive, "the send buffer of server-host was the limit"},
		{"a send buffer that a full path filled", "A2-down", held("A2-", "send-buffer", 48e6, 250000, 30000), result.Fail, "misses at least 89.4 Mbit/s"},
	} {
		rep := judged(t, trial(), world{rate: 93e6, plant: c.plant})
		i := find(t, rep, c.item)
		if i.Result != c.result || !strings.Contains(strings.Join(i.Reasons, "\n"), c.says) {
			t.Errorf("%s: %s %q", c.name, i.Result, i.Reasons)
		}
	}
	rep := judged(t, trial(), world{rate: 93e6, plant: held("A1-", "receive-window", 24e6, 31250, 10000)})
	if text := strings.Join(rep.Acceptance.Findings, "\n"); !strings.Contains(text, "one connection carries 24.0 Mbit/s, 25.8 % of what several do: limited by the receiver's window.") {
		t.Errorf("findings:\n%s", text)
	}
}
