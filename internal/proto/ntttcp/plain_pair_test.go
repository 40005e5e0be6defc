package ntttcp

import (
	"fmt"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// TestPlainPairs: with the extension off at either end, or at both, a fullbore is a real tool to the
// other one, in each way to begin and over both transports: the test runs, each end has its own
// figures and no other, and nothing is said of the other.
func TestPlainPairs(t *testing.T) {
	for _, off := range []string{"sender", "receiver", "both"} {
		for _, begin := range []string{"linux", "linux, no sync", "windows", "windows, no sync", "windows, calls"} {
			for _, transport := range []plan.Transport{plan.TCP, plan.UDP} {
				t.Run(fmt.Sprintf("off at %s, %s, %s", off, begin, transport), func(t *testing.T) {
					t.Parallel()
					plainPair(t, off, begin, transport)
				})
			}
		}
	}
}

func plainPair(t *testing.T, off, begin string, transport plan.Transport) {
	s := Config{Host: "127.0.0.1", Ports: 2, Threads: 1, Transport: transport, Duration: 3 * time.Second, Bitrate: 40e6, BlockSize: 1000}
	r := Config{Ports: 2, Transport: transport, Duration: 3 * time.Second, OneOff: true}
	switch begin {
	case "linux, no sync":
		s.NoSync = true
	case "windows":
		s.Windows = true
	case "windows, no sync":
		s.Windows, s.NoSync = true, true
	case "windows, calls":
		s.Windows, s.Blocks, s.Duration = true, 500, time.Hour
		r.Duration, r.Follow = 0, true
	}
	if off != "receiver" {
		s.Extension = "off"
	}
	if off != "sender" {
		r.Extension = "off"
	}
	f := serve(t, r, nil)
	x := send(t, s, dialFrom("", f.at))
	if got := x.wait(t); got != "" {
		t.Errorf("the sender ends with %q: %+v", got, x.rec.run().Err)
	}
	theirs, ours := f.finished(t, 0), x.rec.run()
	if theirs.Err != nil {
		t.Errorf("the receiver ends with %+v", theirs.Err)
	}
	for end, run := range map[result.End]*result.Run{result.Client: ours, result.Server: theirs} {
		if run.Wire.Extension || len(run.Streams) != 2 || bytesOf(run, end) == 0 || bytesOf(run, end.Other()) != 0 {
			t.Errorf("%s: extension %v, %d streams, %d bytes of its own and %d of the other end's", end, run.Wire.Extension, len(run.Streams), bytesOf(run, end), bytesOf(run, end.Other()))
		}
		for _, one := range run.Streams {
			if one.UDP != nil && one.UDP.Loss != nil {
				t.Errorf("%s: a loss of %+v that nobody can know", end, one.UDP.Loss)
			}
		}
		for _, n := range run.Notices {
			switch n.Code {
			case "extension-fallback", "results-missing", "version-differs", "icmp-refused":
				t.Errorf("%s says %+v", end, n)
			}
		}
		checkRows(t, run, end)
	}
	if sent, came := bytesOf(ours, result.Client), bytesOf(theirs, result.Server); begin == "windows, calls" && transport == plan.TCP && (sent != came || sent != 2*500*1000) {
		t.Errorf("%d bytes sent, %d came", sent, came)
	}
}
