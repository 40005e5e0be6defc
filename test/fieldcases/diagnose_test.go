//go:build linux

package fieldcases

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/result"
)

// diagnose starts a diagnosis on the near end.
func (b *bench) diagnose(args ...string) *lab.Process {
	b.Helper()
	return b.startCmd(b.net.Near, lab.Command{Args: append([]string{program, "diagnose", b.addr, "-p", port, "--no-store"}, args...)})
}

// report waits for a diagnosis with --json and reads it.
func (b *bench) report(p *lab.Process, code int) *result.Report {
	b.Helper()
	got, err := p.Wait(b.ctx(2 * time.Minute))
	b.check(err)
	if got != code {
		b.Errorf("exit %d, want %d: %s", got, code, p.Stderr())
	}
	rep := &result.Report{}
	if err := json.Unmarshal([]byte(p.Stdout()), rep); err != nil {
		b.Fatalf("no document: %v\n%s%s", err, p.Stdout(), p.Stderr())
	}
	return rep
}

// F10: packets above 1300 bytes do not get through and nobody says so: the diagnosis does.
func TestBlackHoleDiagnosis(t *testing.T) {
	t.Parallel()
	b := routed(t)
	b.check(b.net.Router.SetMTU(lab.RouterFar, 1300))
	b.check(b.net.Router.NFT(b.ctx(time.Minute), `table inet t { chain o { type filter hook output priority 0; icmp type destination-unreachable drop; icmpv6 type packet-too-big drop; }; }`))
	b.serve()
	rep := b.report(b.diagnose("--up", "--quick", "--json"), 0)
	v := rep.Verdicts[0]
	if v.Code != "mtu-hole" {
		t.Fatalf("the first verdict is %s: %s", v.Code, rep.Summary)
	}
	b.says(rep.Summary, "do not get through and nobody says so", "path MTU")
	for _, x := range v.Values {
		if x.Name == "mtu" && (x.Value > 1300 || x.Value < 1040) {
			t.Errorf("largest packet that came through: %v bytes", x.Value)
		}
	}
}

// A server that dies in the middle of a stage (F28): what was measured is there, one sentence says
// what happened, exit code 6.
func TestDiagnosisServerKilled(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve()
	p := b.diagnose("--json", "--max-rate", "20M")
	b.until("the first stream runs", func() bool { return srvRows(srv) >= 4 || ended(p) })
	b.check(srv.Signal(os.Kill))
	rep := b.report(p, 6)
	if rep.Err == nil || len(rep.Stages) < 2 {
		t.Fatalf("error %v, %d stages", rep.Err, len(rep.Stages))
	}
	b.says(rep.Err.Text, "went away")
}

// Ctrl-C in any stage: the partial report, exit code 130.
func TestDiagnosisInterrupted(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve()
	p := b.diagnose("--max-rate", "20M")
	b.until("the first stream runs", func() bool { return srvRows(srv) >= 4 || ended(p) })
	b.check(p.Signal(os.Interrupt))
	code, err := p.Wait(b.ctx(time.Minute))
	b.check(err)
	if code != 130 {
		t.Errorf("exit %d\n%s%s", code, p.Stdout(), p.Stderr())
	}
	b.says(p.Stdout(), "the empty path", "interrupted by signal", "what I could not see")
}

// A server that is busy with somebody else's test: said at once, exit code 5.
func TestDiagnosisBusy(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("iperf3"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("iperf3 is not installed here (CI installs it)")
	}
	b := pair(t)
	srv := b.startCmd(b.net.Far, lab.Command{Args: []string{"iperf3", "-s", "-p", port, "--forceflush"}})
	b.until("the server listens", func() bool {
		ok, err := b.net.Far.Listening()
		b.check(err)
		return ok || ended(srv)
	})
	b.startCmd(b.net.Near, lab.Command{Args: []string{"iperf3", "-c", b.addr, "-p", port, "-b", "1M", "-t", "60"}})
	b.until("the other's test runs", func() bool { return srvRows(srv) >= 1 || ended(srv) })
	p := b.diagnose("--quick")
	code, err := p.Wait(b.ctx(time.Minute))
	b.check(err)
	if code != 5 {
		t.Errorf("exit %d\n%s%s", code, p.Stdout(), p.Stderr())
	}
	b.says(p.Stderr(), "busy with another test")
	b.says(p.Stdout(), "Nothing was measured")
}
