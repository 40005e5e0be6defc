package ntttcp

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// mixture is a sender of a kind and what its receiver's run should say. Each sends a number of bytes
// of its own, so that a run is recognised by them.
type mixture struct {
	Config
	kind string // as in wantRun
}

// mixtures are all kinds of senders: how they synchronise, over both transports.
func mixtures() []mixture {
	tcp := Config{Ports: 2, BlockSize: 1000, NoDelay: true}
	udp := Config{Ports: 2, BlockSize: 500, Transport: plan.UDP}
	with := func(c Config, change func(*Config)) Config {
		change(&c)
		return c
	}
	linux := func(c *Config) { c.Threads, c.Endless, c.Bitrate = 2, true, 4e6 }
	windows := func(c *Config) { c.Threads, c.Windows, c.Duration = 1, true, time.Hour }
	unsynced := func(c *Config) { c.NoSync = true }
	return []mixture{
		{with(tcp, linux), "linux"},
		{with(tcp, windows), "windows"},
		{with(with(tcp, linux), unsynced), "none"},
		{with(udp, linux), "linux"},
		{with(with(udp, windows), func(c *Config) { c.Bitrate = 4e6 }), "windows"},
		{with(with(udp, linux), unsynced), "none"},
		{with(with(tcp, windows), unsynced), "none"},
	}
}

// TestMixedSenders: 20 senders at 20 addresses and four at one, of all kinds, at once: each has a
// run of its own, with the bytes that it says it sent.
func TestMixedSenders(t *testing.T) {
	t.Parallel()
	if !loopbackNet(t) {
		t.Skip("this system has one loopback address only: senders at several need others")
	}
	for _, extension := range []string{"off", ""} {
		t.Run("extension "+extension, func(t *testing.T) { mixedSenders(t, extension) })
	}
}

// dialFrom is dialFrom to the ports of either transport.
func (f *fixture) dialFrom(local string) dialer {
	streams, datagrams := dialFrom(local, f.at), dialFrom(local, func(port int) netip.AddrPort { return f.lns.Packets[port-DefaultPort].LocalAddr() })
	return func(ctx context.Context, network string, to netip.AddrPort, o osnet.Options) (*osnet.Conn, []result.Notice, error) {
		if network == "udp" {
			return datagrams(ctx, network, to, o)
		}
		return streams(ctx, network, to, o)
	}
}

// used counts the streams that carried something: a thread may leave all of the blocks to others.
func used(run *result.Run, e result.End) (n int) {
	for _, s := range run.Streams {
		total := s.Receiver
		if e == result.Client {
			total = s.Sender
		}
		if total != nil && total.Bytes > 0 {
			n++
		}
	}
	return n
}

func mixedSenders(t *testing.T, extension string) {
	f := serveBoth(t, Config{Ports: 2, Follow: true}, true, true, func(r *Receiver) { r.Timeouts.Settle = 100 * time.Millisecond })
	var senders []*sending
	var kinds []string
	all := mixtures()
	start := func(i int, local string, m mixture) {
		m.Host, m.Extension = "127.0.0.1", extension
		if m.Windows {
			m.Blocks = int64(40 + i)
		}
		senders = append(senders, send(t, m.Config, f.dialFrom(local)))
		kinds = append(kinds, m.kind)
	}
	for i := range 20 {
		start(i, fmt.Sprintf("127.0.7.%d", i+1), all[i%len(all)])
	}
	for i, k := range []int{0, 1, 2, 3} { // two that synchronise, a token for each thread, and none at all
		start(20+i, "127.0.7.21", all[k])
	}
	// The endless ones stop when everybody has seen something.
	until(t, "all to run", func() bool {
		runs := f.tests()
		if len(runs) < len(senders) {
			return false
		}
		for _, s := range senders {
			if !s.rec.moved() && !s.rec.has(result.KindFinish) {
				return false
			}
		}
		for _, r := range runs {
			if !r.moved() && !r.has(result.KindFinish) {
				return false
			}
		}
		return true
	})
	want := map[string]int{}
	for i, s := range senders {
		s.stop(errInterrupt)
		if got := s.wait(t); got != "" && got != "interrupted" {
			t.Errorf("sender %d ends with %q", i, got)
		}
	}
	for i, s := range senders {
		run := s.rec.run()
		key := fmt.Sprintf("%s %s %s %d streams", run.Streams[0].Local.Host, kinds[i], run.Test.Transport, used(run, result.Client))
		want[fmt.Sprintf("%s %d bytes", key, bytesOf(run, result.Client))]++
	}
	got := map[string]int{}
	for i := range senders {
		run := f.finished(t, i)
		checkRows(t, run, result.Server)
		kind := run.NTTTCP.Dialect
		if run.NTTTCP.NoSync {
			kind = "none"
		}
		got[fmt.Sprintf("%s %s %s %d streams %d bytes", run.Streams[0].Remote.Host, kind, run.Test.Transport, used(run, result.Server), bytesOf(run, result.Server))]++
	}
	for k, n := range want {
		if got[k] != n {
			t.Errorf("%s: %d runs, want %d", k, got[k], n)
		}
	}
	for k, n := range got {
		if want[k] != n {
			t.Errorf("got %s: %d", k, n)
		}
	}
}
