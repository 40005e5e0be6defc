package recipes

import (
	"encoding/json"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// run runs a command of this program in the space to its end.
func (s *Space) run(t *testing.T, words ...string) lab.Result {
	t.Helper()
	out, err := s.Run(t.Context(), append([]string{program}, words...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestProfileVia: Azure's procedure towards an NTTTCP receiver that takes one test after the other.
func TestProfileVia(t *testing.T) {
	t.Parallel()
	s := space(t)
	recv := s.begin(t, plan.NTTTCPReceiver, own(), linux("-r -H"))
	recv.ready(t, s, false)
	out := s.run(t, "test", Own, "--via", "ntttcp", "--profile", "vm", "-t", "1", "--pause", "10ms", "--json")
	if out.Code != 0 || !strings.Contains(out.Stderr, "fullbore serve, or ntttcp -r -H") || !strings.Contains(out.Stderr, "Traffic") {
		t.Fatalf("exit %d: %s%s", out.Code, out.Stderr, out.Stdout)
	}
	var rep result.Report
	if err := json.Unmarshal([]byte(out.Stdout), &rep); err != nil {
		t.Fatal(err)
	}
	if rep.Profile != "vm" || len(rep.Stages) != 2 || len(rep.Runs) != 2 || rep.Err != nil {
		t.Fatalf("profile %q, %d stages, %d runs, error %v", rep.Profile, len(rep.Stages), len(rep.Runs), rep.Err)
	}
	for i, want := range []struct {
		label   string
		streams int
	}{{"check", 1}, {"record", 2 * runtime.NumCPU()}} {
		r := rep.Runs[i]
		if r.Label != want.label || rep.Stages[i].Name != want.label || rep.Stages[i].Run == nil || *rep.Stages[i].Run != i {
			t.Errorf("run %d is %q, its stage %+v", i, r.Label, rep.Stages[i])
		}
		if r.Protocol != plan.ProtocolNTTTCP || len(r.Streams) != want.streams || len(r.Sums) != 1 {
			t.Errorf("%s: %s, %d streams, %d sums, want %d streams", r.Label, r.Protocol, len(r.Streams), len(r.Sums), want.streams)
			continue
		}
		sum := r.Sums[0]
		if sum.Sender == nil || sum.Receiver == nil || sum.Receiver.Bytes <= 0 || sum.Receiver.Bytes > sum.Sender.Bytes {
			t.Errorf("%s: sent %+v, received %+v", r.Label, sum.Sender, sum.Receiver)
			continue
		}
		// The receiver's own output has the same number.
		if line := "total bytes\t:" + strconv.FormatInt(sum.Receiver.Bytes, 10) + "\n"; !strings.Contains(recv.Stdout(), line) {
			t.Errorf("%s: the receiver does not say %q: %s", r.Label, line, recv.Stdout())
		}
	}
	if err := recv.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	recv.wait(t)
}

// TestVia: the page's line for a receiver of the Windows dialect.
func TestVia(t *testing.T) {
	t.Parallel()
	s := space(t)
	recv := s.begin(t, plan.NTTTCPReceiver, own(), windows("-r -m 8,*,10.0.0.5 -t 1"))
	recv.ready(t, s, false)
	out := s.run(t, "test", Own, "--via", "ntttcp-windows", "-P", "8", "-t", "1", "--json")
	end := recv.wait(t)
	var run result.Run
	if err := json.Unmarshal([]byte(out.Stdout), &run); err != nil || out.Code != 0 || end.Exit != 0 {
		t.Fatalf("%v, exit %d: %s\n%v", err, out.Code, out.Stderr, end)
	}
	got, err := end.Totals()
	if err != nil || len(run.Sums) != 1 || run.Sums[0].Receiver == nil || got.Streams != 8 || len(run.Streams) != 8 || !same(got.Bytes, float64(run.Sums[0].Receiver.Bytes)) {
		t.Errorf("%v: %+v\n%+v\n%v", err, got, run.Sums, end)
	}
}
