package plain_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/conclude/sample"
	"github.com/fullbore-net/fullbore/internal/render/plain"
	"github.com/fullbore-net/fullbore/result"
)

// replay prints a run of probes as it happens: three reports on the way, then the end.
func replay(t *testing.T, run *result.Run) string {
	t.Helper()
	conclude.Conclude(run)
	var b bytes.Buffer
	r := plain.New(&b, plain.Options{})
	for _, e := range result.Unfold(run) {
		if e.Kind == result.KindProbes && len(run.Streams) == 0 {
			for i := range 3 {
				p := *e.Probes
				p.Histogram = nil
				p.Sent, p.Answered = int64(50*(i+1)), int64(50*(i+1)-1)
				r.Event(result.Event{Kind: result.KindProbes, End: result.Client, T: float64(i + 1), Probes: &p})
			}
		}
		r.Event(e)
	}
	r.End(run)
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestProbes(t *testing.T) {
	acausal := sample.Probes()
	acausal.Probes[0].Clock.Causal, acausal.Probes[0].Clock.OffsetS = false, -0.25
	acausal.Probes[0].Up.Delay.Min = -0.002
	same := sample.Probes()
	same.Probes[0].Clock.Source, same.Probes[0].Stamps = "same-host", "user"
	*same.Probes[0].LostUp, *same.Probes[0].LostDown, same.Probes[0].Sent = 0, 0, 497
	mute := sample.Probes()
	mute.Probes = []result.Probes{{Kind: "udp-echo", Profile: "voice", Spacing: 0.02, Size: 64, Sent: 500, Histogram: []result.Bucket{}, LostUp: mute.Probes[0].LostUp, LostDown: mute.Probes[0].LostDown}}
	plainRuns := sample.PlainProbes()
	var text strings.Builder
	for _, c := range []struct {
		name string
		run  *result.Run
	}{
		{"both ends", sample.Probes()},
		{"clocks that do not fit", acausal},
		{"one host, nothing lost", same},
		{"nobody answers", mute},
		{"TCP", sample.Pings()},
		{"plain, up", plainRuns[0]},
		{"plain, down", plainRuns[1]},
		{"plain, TCP", sample.PlainPings()},
	} {
		text.WriteString("== " + c.name + "\n" + replay(t, c.run) + "\n")
	}
	golden(t, "probes", text.String())
}

// A run with a load keeps its own lines, and has its probes' table.
func TestProbesBesideALoad(t *testing.T) {
	run := sample.New().Run()
	run.Probes = sample.Probes().Probes
	text := replay(t, run)
	if strings.Contains(text, "answered  ") || !strings.Contains(text, "Mbit/s") || !strings.Contains(text, "round trip") {
		t.Error(text)
	}
}
