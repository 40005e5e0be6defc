package recipes

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// TestServe plays the sender's half of each recipe against a receiver for all.
func TestServe(t *testing.T) {
	t.Parallel()
	for _, r := range All() {
		if !r.Serve {
			continue
		}
		t.Run(r.Name(), func(t *testing.T) {
			t.Parallel()
			playServe(t, space(t), r)
		})
	}
}

func playServe(t *testing.T, s *Space, r Recipe) {
	p, err := s.Start(lab.Command{Args: []string{program, "serve", "--json", "--one-off"}, Env: []string{"TZ=UTC"}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Signal(os.Kill) // it may have ended long ago
		<-p.Done()
	})
	serve := &side{Process: p, end: &End{Role: "serve"}}
	for _, port := range []int{plan.NTTTCPPort - 1, plan.NTTTCPPort + plan.NTTTCPTokenOffset + plan.NTTTCPPorts - 1, plan.DefaultPort} {
		serve.until(t, "all its ports listen", func() bool { return s.listens(t, port) })
	}
	l := r.Sender
	if r.Interrupt == "" {
		l = l.Short(shortened)
	}
	send := s.begin(t, plan.NTTTCPSender, own(), l)
	if r.Interrupt != "" {
		send.until(t, "payload flows", func() bool { return strings.Contains(send.Stdout(), "Real-time throughput: ") })
		if err := send.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	se := send.wait(t)
	got := serve.wait(t)
	var run result.Run
	if err := json.Unmarshal([]byte(got.Stdout), &run); err != nil {
		t.Fatalf("%v\n%v\n%v", err, got, se)
	}
	totals, err := se.Totals()
	switch {
	case err != nil, se.Exit != 0, got.Exit != 0, run.Protocol != plan.ProtocolNTTTCP, len(run.Sums) != 1, run.NTTTCP == nil:
		t.Fatalf("%v: protocol %s, %d sums\n%v\n%v", err, run.Protocol, len(run.Sums), got, se)
	case run.Err != nil && r.Interrupt == "":
		t.Errorf("%+v", run.Err)
	case run.NTTTCP.NoSync != r.Unsynced:
		t.Errorf("no_sync is %v", run.NTTTCP.NoSync)
	}
	sum := run.Sums[0]
	if len(run.Streams) != r.Streams || sum.Receiver == nil || sum.Receiver.Bytes <= 0 {
		t.Fatalf("%d streams, want %d, received %+v", len(run.Streams), r.Streams, sum.Receiver)
	}
	if received := float64(sum.Receiver.Bytes); !r.Warm && received > totals.Bytes+2*Rounding || r.Bytes > 0 && sum.Receiver.Bytes != r.Bytes {
		t.Errorf("received %.0f of %.0f bytes, want %d", received, totals.Bytes, r.Bytes)
	}
	if r.Unsynced {
		return
	}
	if sum.Sender == nil || !same(float64(sum.Sender.Bytes), totals.Bytes) {
		t.Errorf("the document says of the sender %+v, the sender %.0f bytes", sum.Sender, totals.Bytes)
	}
	if _, bytes, ok := se.Other(); ok && !same(bytes, float64(sum.Receiver.Bytes)) {
		t.Errorf("the sender says of the receiver %.0f bytes, the document %d", bytes, sum.Receiver.Bytes)
	}
}
