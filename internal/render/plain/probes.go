package plain

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

// probes prints a line of progress: the figures so far. The final ones, which carry their
// histogram, are for the end block.
func (r *Renderer) probes(e result.Event) {
	p := e.Probes
	if p.Histogram != nil || p.Kind == "tcp-connect" || !r.begun || r.over || !noLoad(&r.head) {
		return
	}
	if !r.columns {
		r.columns = true
		r.out.line("")
		r.out.line(r.out.paint(dim, progress("until", "answered", "p50", "p99", "most", "lost up", "lost down")))
	}
	q := []string{screen.Unknown, screen.Unknown, screen.Unknown}
	if t := p.RoundTrip; t != nil {
		q = []string{conclude.Time(t.P50), conclude.Time(t.P99), conclude.Time(t.Max)}
	}
	r.out.line(progress(fmt.Sprintf("%.1f s", e.T), whole(p.Answered), q[0], q[1], q[2], optional(p.LostUp, whole), optional(p.LostDown, whole)))
}

func progress(cells ...string) string {
	var b strings.Builder
	for i, c := range cells {
		width := 10
		if i == 0 {
			width = 8
		}
		b.WriteString(screen.Right(c, width))
	}
	return b.String()
}

// noLoad reports that a run that has begun has no streams: it was made for its probes.
func noLoad(run *result.Run) bool { return run.Test.ProbeOnly && len(run.Streams) == 0 }

// noTotals reports that a run's streams, if there are any, were not made to carry payload:
// there is nothing to tell of them but what its probes tell.
func noTotals(run *result.Run) bool {
	return len(run.Probes) > 0 && (len(run.Streams) == 0 || run.Test.ProbeOnly && run.Test.Transport != "udp")
}

// probeTitle is the first line of a run without a load.
func probeTitle(run *result.Run) string {
	text := fmt.Sprintf("%s ⇄ %s, delay of small messages over %s", conclude.EndName(run, result.Client), conclude.EndName(run, result.Server), strings.ToUpper(run.Test.Transport))
	if run.Test.Duration > 0 {
		text += ", " + duration(run.Test.Duration)
	}
	return screen.Clean(text)
}

// probeTables prints what the probes of a run measured.
func (r *Renderer) probeTables(run *result.Run) {
	for i := range run.Probes {
		p := &run.Probes[i]
		t := table{left: map[int]bool{0: true}}
		t.add(probeHead(p), "n", "least", "p50", "p95", "p99", "p99.9", "most", "mean")
		t.times("round trip", p.RoundTrip)
		t.times("connect", p.Connect)
		for _, w := range []struct {
			name string
			way  *result.OneWay
		}{{"up", p.Up}, {"down", p.Down}} {
			if w.way != nil {
				t.times(w.name+" delay", w.way.Delay)
				t.times(w.name+" variation (PDV)", w.way.PDV)
				t.times(w.name+" change (IPDV)", w.way.IPDV)
			}
		}
		if len(t.rows) > 1 {
			r.out.line("")
			for i, l := range t.lines() {
				if i == 0 {
					l = r.out.paint(dim, l)
				}
				r.out.line(screen.Clean(l))
			}
		}
		facts := probeFacts(run, p)
		if len(facts) > 0 {
			r.out.line("")
		}
		for _, f := range facts {
			r.out.prose("  "+screen.Left(f.name, 9), "", screen.Clean(f.text))
		}
	}
}

// times adds a distribution; none where it is unknown.
func (t *table) times(name string, q *result.Quantiles) {
	if q == nil {
		return
	}
	cells := []string{name, whole(q.N)}
	for _, v := range []float64{q.Min, q.P50, q.P95, q.P99, q.P999, q.Max, q.Mean} {
		cells = append(cells, conclude.Time(v))
	}
	t.add(cells...)
}

// probeHead names a kind of probes.
func probeHead(p *result.Probes) string {
	switch p.Kind {
	case "udp-echo":
		return fmt.Sprintf("%d bytes each %s", p.Size, duration(p.Spacing))
	case "udp-test":
		return fmt.Sprintf("%d bytes each %s, unanswered", p.Size, duration(p.Spacing))
	case "tcp-rr":
		return conclude.Bytes(p.Size) + " there and back"
	case "tcp-connect":
		return "TCP handshakes"
	case "udp-mtu":
		return "packets of several sizes"
	}
	return p.Kind
}

// probeFacts are the lines below the table.
func probeFacts(run *result.Run, p *result.Probes) []fact {
	var out []fact
	add := func(name, text string) {
		if text != "" {
			out = append(out, fact{name, text})
		}
	}
	if p.Kind != "tcp-connect" && p.Kind != "udp-test" && p.Kind != "udp-mtu" {
		add("lost", probeLoss(p))
	}
	for i := range p.MTU {
		add("path MTU", conclude.MTUText(&p.MTU[i]))
	}
	add("jitter", probeJitter(p))
	if p.Rate != nil {
		add("rate", fmt.Sprintf("%.0f requests answered a second, one at a time", *p.Rate))
	}
	add("clocks", clockText(run, p))
	switch p.Stamps {
	case "kernel":
		add("stamps", "of the kernels at both ends"+wakeText(p))
	case "user":
		if p.Kind == "tcp-connect" {
			break
		}
		add("stamps", "of the program: what it waited for a core is in the figures"+wakeText(p))
	}
	if p.TCPRTT != nil {
		text := "TCP's, on the control connection: " + conclude.Time(*p.TCPRTT)
		if p.TCPMinRTT != nil {
			text += ", least " + conclude.Time(*p.TCPMinRTT)
		}
		add("RTT", text)
	}
	add("unknown", unknownText(run, p))
	return out
}

func probeLoss(p *result.Probes) string {
	text := fmt.Sprintf("%d sent, %d answered", p.Sent, p.Answered)
	if p.LostUp != nil && p.LostDown != nil {
		text += fmt.Sprintf("; lost %d up (%s), %d down", *p.LostUp, share(*p.LostUp, p.Sent), *p.LostDown)
		if *p.LostUp+*p.LostDown == 0 && p.Answered > 0 {
			text += fmt.Sprintf(" (each ≤ %s at 95 %%)", small(stats.RuleOfThree(p.Answered)))
		}
	}
	return text
}

func small(ratio float64) string { return fmt.Sprintf("%.2g %%", 100*ratio) }

func probeJitter(p *result.Probes) string {
	var parts []string
	for _, w := range []struct {
		name string
		way  *result.OneWay
	}{{"up", p.Up}, {"down", p.Down}} {
		if w.way != nil && w.way.Jitter != nil {
			j := w.way.Jitter
			parts = append(parts, fmt.Sprintf("%s %s at the end, mean %s, most %s", w.name, conclude.Time(j.Final), conclude.Time(j.Mean), conclude.Time(j.Max)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "; ") + " (RFC 3550)"
}

func clockText(run *result.Run, p *result.Probes) string {
	c := p.Clock
	switch {
	case c == nil:
		return ""
	case c.Source == "same-host":
		return "both ends read one clock"
	}
	text := fmt.Sprintf("%s is ahead by %.6f s ± %s", conclude.EndName(run, result.Server), c.OffsetS, conclude.Time(c.BoundS))
	if c.OffsetS < 0 {
		text = fmt.Sprintf("%s is behind by %.6f s ± %s", conclude.EndName(run, result.Server), -c.OffsetS, conclude.Time(c.BoundS))
	}
	if c.SkewPPM != nil {
		text += fmt.Sprintf(", its clock runs %+.2f ppm", *c.SkewPPM)
	}
	text += fmt.Sprintf(" (%d exchanges; each clock counts from its host's start)", c.Exchanges)
	if !c.Causal {
		text += "; a delay came out below zero: the bound is too small, one-way delays are not right"
	}
	return text
}

// unknownText says what cannot be known, and why.
func unknownText(run *result.Run, p *result.Probes) string {
	peer := conclude.EndName(run, result.Server)
	switch {
	case p.Kind == "udp-test" && p.Up == nil && p.Down == nil:
		return fmt.Sprintf("variation of each datagram, one-way delay, round trip: %s tells its jitter at the end and no more, and answers no probes", peer)
	case p.Kind == "udp-test":
		return fmt.Sprintf("one-way delay, round trip: %s answers no probes", peer)
	case p.Kind == "tcp-connect" && len(run.Streams) > 0:
		return fmt.Sprintf("request and response: %s answers none; only a test's own connections are timed", peer)
	case p.Kind == "udp-echo" && p.Clock == nil && p.RoundTrip != nil:
		return "one-way delay: too few answers to relate the clocks"
	}
	return ""
}

// wakeText is how well this host kept to the due times, and how fine its clock is.
func wakeText(p *result.Probes) string {
	if p.WakeUp == nil {
		return ""
	}
	text := fmt.Sprintf("; this host sent %s after the due times (p50; p99 %s)", conclude.Time(p.WakeUp.P50), conclude.Time(p.WakeUp.P99))
	if p.ClockStep != nil {
		text += fmt.Sprintf(", its clock steps by %s", conclude.Time(*p.ClockStep))
	}
	return text
}
