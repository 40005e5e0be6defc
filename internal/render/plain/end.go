package plain

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/result"
)

// perStream is the most streams of a direction that get a line of their own.
const perStream = 8

// textWidth is where long notices are wrapped.
const textWidth = 96

// End prints the end block of a concluded run: the sentence, the numbers, the notices,
// the next step. It works without any event before (after a live view) and prints once.
func (r *Renderer) End(run *result.Run) {
	if r.ended {
		return
	}
	r.ended = true
	r.flush()
	if r.begun {
		r.out.line("")
	}
	if run.Summary != "" {
		code := bold
		if run.Err != nil {
			code = bold + ";" + red
		}
		r.out.line(r.out.paint(code, screen.Clean(run.Summary)))
	}
	if totals := totals(run); len(totals) > 0 {
		r.out.line("")
		for i, l := range totals {
			if i == 0 {
				l = r.out.paint(dim, l)
			}
			r.out.line(l)
		}
	}
	facts := facts(run, r.begun, r.window)
	if len(facts) > 0 {
		r.out.line("")
		for _, l := range facts {
			r.out.line("  " + screen.Clean(l))
		}
	}
	r.notices(run)
	if run.Next != nil {
		r.out.line("")
		r.out.line("next: " + r.out.paint(bold, screen.Clean(run.Next.Command)) + "  # " + screen.Clean(run.Next.Why))
	}
}

func (r *Renderer) notices(run *result.Run) {
	if len(run.Notices) > 0 {
		r.out.line("")
	}
	for _, n := range run.Notices {
		mark := "note"
		if n.Level == result.Warn {
			mark = "warning"
		}
		lines := screen.Wrap(fmt.Sprintf("%s: %s", screen.Clean(n.Code), screen.Clean(n.Text)), textWidth)
		for i, l := range lines {
			if i > 0 {
				r.out.line("         " + l)
				continue
			}
			head := screen.Left(mark, 8)
			if n.Level == result.Warn {
				head = r.out.paint(yellow, head)
			}
			r.out.line(head + " " + l)
		}
		if n.Fix != "" {
			r.out.line("         fix: " + screen.Clean(n.Fix))
		}
	}
}

// totals is the table of both ends' counts: per stream up to eight, their spread beyond,
// and the sum.
func totals(run *result.Run) []string {
	if !run.Finished() && len(run.Rows) == 0 {
		return nil
	}
	udp := run.Test.Transport == "udp"
	t := table{left: map[int]bool{0: true, 1: true}}
	head := []string{"direction", "stream", "sent", "", "received", ""}
	if udp {
		head = append(head, "lost", "share", "jitter")
	} else {
		head = append(head, "retrans", "RTT min/mean/max", "cwnd max")
	}
	t.add(head...)
	for _, s := range run.Sums {
		from, to := conclude.Label(run, s.Direction)
		label := screen.Clean(from + " → " + to)
		var streams []*result.Stream
		for i := range run.Streams {
			if run.Streams[i].Direction == s.Direction {
				streams = append(streams, &run.Streams[i])
			}
		}
		if n := len(streams); n > 1 && n <= perStream && run.Finished() {
			for _, x := range streams {
				name := fmt.Sprintf("%d", x.ID)
				if x.Ended != nil {
					name += " died"
				}
				t.add(append([]string{label, name}, counts(x.Sender, x.Receiver, udp, senderTCP(run, x))...)...)
			}
		}
		name := "all"
		if len(streams) > 1 {
			name = fmt.Sprintf("sum of %d", len(streams))
		}
		snd, rcv := s.Sender, s.Receiver
		if !run.Finished() { // it broke off: what the intervals add up to
			name = "so far"
			snd, rcv = conclude.SoFar(run, s.Direction, s.Direction.Sender()), conclude.SoFar(run, s.Direction, s.Direction.Receiver())
		}
		t.add(append([]string{label, name}, counts(snd, rcv, udp, mergeTCP(run, streams))...)...)
	}
	lines := t.lines()
	for _, s := range run.Sums {
		if l := spread(run, s); l != "" {
			lines = append(lines, l)
		}
	}
	return lines
}

// counts are the cells of one line of the totals.
func counts(snd, rcv *result.Total, udp bool, tcp *result.TCPSummary) []string {
	cells := []string{
		optional(snd, func(t result.Total) string { return size(t.Bytes) }), optional(snd, func(t result.Total) string { return rate(t.Rate()) }),
		optional(rcv, func(t result.Total) string { return size(t.Bytes) }), optional(rcv, func(t result.Total) string { return rate(t.Rate()) }),
	}
	if udp {
		var lost *int64
		var jitter *float64
		part := screen.Unknown
		if rcv != nil {
			lost, jitter = rcv.Lost, rcv.Jitter
			if lost != nil && rcv.Packets != nil {
				part = share(*lost, *rcv.Packets)
			}
		}
		return append(cells, optional(lost, whole), part, optional(jitter, func(s float64) string { return number(s*1000) + " ms" }))
	}
	var retrans *int64
	if snd != nil {
		retrans = snd.Retransmits
	}
	rtt, cwnd := screen.Unknown, screen.Unknown
	if tcp != nil && tcp.MeanRTT > 0 {
		rtt = fmt.Sprintf("%s/%s/%s ms", number(float64(tcp.MinRTT)/1000), number(float64(tcp.MeanRTT)/1000), number(float64(tcp.MaxRTT)/1000))
	}
	if tcp != nil && tcp.MaxCwnd > 0 {
		cwnd = iec(tcp.MaxCwnd)
	}
	return append(cells, optional(retrans, whole), rtt, cwnd)
}

// senderTCP is the kernel's view of a stream at its sending end, nil when unknown.
func senderTCP(run *result.Run, s *result.Stream) *result.TCPSummary {
	if run.End == s.Direction.Sender() {
		return s.TCP
	}
	return s.RemoteTCP
}

// mergeTCP takes the extremes over the streams and the mean of their means; nil unless all
// are known.
func mergeTCP(run *result.Run, streams []*result.Stream) *result.TCPSummary {
	var out result.TCPSummary
	for i, s := range streams {
		t := senderTCP(run, s)
		if t == nil {
			return nil
		}
		if i == 0 {
			out = *t
			continue
		}
		out.MinRTT, out.MaxRTT = min(out.MinRTT, t.MinRTT), max(out.MaxRTT, t.MaxRTT)
		out.MeanRTT += t.MeanRTT
		out.MaxCwnd = max(out.MaxCwnd, t.MaxCwnd)
	}
	if len(streams) == 0 {
		return nil
	}
	out.MeanRTT /= int64(len(streams))
	return &out
}

// spread says how evenly many streams shared: the receiver's rates, else the sender's.
func spread(run *result.Run, s result.Sum) string {
	var rates []float64
	who := "received"
	for _, received := range []bool{true, false} {
		rates = rates[:0]
		for _, x := range run.Streams {
			t := x.Receiver
			if !received {
				t, who = x.Sender, "sent"
			}
			if x.Direction == s.Direction && t != nil {
				rates = append(rates, t.Rate())
			}
		}
		if len(rates) > 0 {
			break
		}
	}
	if len(rates) <= 1 {
		return ""
	}
	q, _ := stats.Quantiles(rates, 0, 0.5, 1)
	from, to := conclude.Label(run, s.Direction)
	text := fmt.Sprintf("%s → %s  each stream %s min %s, median %s, max %s", from, to, who, rate(q[0]), rate(q[1]), rate(q[2]))
	if s.Fair != nil {
		text += fmt.Sprintf(", Jain's index %.3f", *s.Fair)
	}
	return screen.Clean(text)
}

// facts are the lines below the totals. What the header above them said (window is its
// line about buffers) is not repeated.
func facts(run *result.Run, header bool, window string) []string {
	var out []string
	add := func(name, text string) {
		if text != "" {
			out = append(out, screen.Left(name, 8)+text)
		}
	}
	if !header && run.Finished() {
		add("ends", strings.Join(ends(run), "; "))
	}
	add("path", pathFacts(run))
	if text := windowText(run); text != window {
		add("window", text)
	}
	add("in use", inUse(run))
	for _, s := range run.Sums {
		if s.Shares == nil {
			continue
		}
		name := ""
		if len(run.Sums) > 1 {
			name = conclude.EndName(run, s.Direction.Sender()) + " "
		}
		add("sender", fmt.Sprintf("%shad nothing to send %.0f %%, waited for the receiver's window %.0f %%, for its send buffer %.0f %%, for the network %.0f %% of the time",
			name, 100*s.Shares.Idle, 100*s.Shares.Window, 100*s.Shares.Buffer, 100*s.Shares.Network))
	}
	add("CPU", cpuFacts(run))
	if run.Finished() || len(run.Rows) > 0 {
		add("method", methodFacts(run))
	}
	add("flags", strings.Join(run.Flags, ", "))
	return out
}

func ends(run *result.Run) []string {
	var out []string
	for _, e := range []result.End{result.Client, result.Server} {
		if p := programOf(run, e); p != "" {
			out = append(out, conclude.EndName(run, e)+" "+p)
		}
	}
	return out
}

// pathFacts shows segment size, path MTU, round trip and congestion control. A sending
// socket of the recording end knows them best, then the peer's, then a receiving one.
func pathFacts(run *result.Run) string {
	var best *result.TCPSummary
	sends := false
	for i := range run.Streams {
		s := &run.Streams[i]
		if t := senderTCP(run, s); t != nil {
			best, sends = t, true
			break
		}
		if best == nil {
			best = s.TCP
		}
	}
	if best == nil {
		if run.Wire != nil && run.Wire.ControlMSS > 0 && run.Finished() && run.Test.Transport != "udp" {
			return fmt.Sprintf("MSS %d (of the control connection)", run.Wire.ControlMSS)
		}
		return ""
	}
	rtt, least := best.MeanRTT, best.Last.MinRTT
	if !sends {
		rtt, least = 0, nil
	}
	text := pathText(best.Last.MSS, best.Last.PMTU, rtt, least)
	if cc := congestion(run); cc != "" {
		text += ", " + cc
	}
	if !sends {
		text += "; round trips under load: only the sender knows"
	}
	return text
}

// inUse is the window that the senders worked with: the least of what they allowed
// themselves and what the receiver offered, per stream.
func inUse(run *result.Run) string {
	var cwnd, offered int64
	n := 0
	for i := range run.Streams {
		if t := senderTCP(run, &run.Streams[i]); t != nil && t.MaxCwnd > 0 {
			cwnd, offered = max(cwnd, t.MaxCwnd), max(offered, t.MaxSndWnd)
			n++
		}
	}
	if n == 0 {
		return ""
	}
	each := ""
	if n > 1 {
		each = " per stream"
	}
	if offered <= 0 {
		return fmt.Sprintf("up to %s%s (congestion window; what the receiver offered is not known)", iec(cwnd), each)
	}
	return fmt.Sprintf("up to %s%s (congestion window up to %s, the receiver offered up to %s)", iec(min(cwnd, offered)), each, iec(cwnd), iec(offered))
}

// congestion names the algorithm of each sending end.
func congestion(run *result.Run) string {
	names := map[result.End]string{}
	for i := range run.Streams {
		s := &run.Streams[i]
		e := s.Direction.Sender()
		if t := senderTCP(run, s); t != nil && t.Congestion != "" {
			names[e] = t.Congestion
		} else if c := run.CPU.Of(e); c != nil && c.Congestion != "" && names[e] == "" {
			names[e] = c.Congestion
		}
	}
	c, s := names[result.Client], names[result.Server]
	switch {
	case c == "" || s == "" || c == s:
		return max(c, s)
	}
	return fmt.Sprintf("%s at %s, %s at %s", c, conclude.EndName(run, result.Client), s, conclude.EndName(run, result.Server))
}

func cpuFacts(run *result.Run) string {
	var parts []string
	for _, e := range []result.End{result.Client, result.Server} {
		c := run.CPU.Of(e)
		if c == nil {
			if run.Finished() {
				parts = append(parts, conclude.EndName(run, e)+" not known")
			}
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %.1f %% of a core (user %.1f, system %.1f)", conclude.EndName(run, e), c.Total, c.User, c.System))
	}
	text := strings.Join(parts, "; ")
	if u := run.Usage; u != nil && u.SecPerGB != nil {
		text += fmt.Sprintf("; this end %.2f CPU-s/GB", *u.SecPerGB)
	}
	return text
}

// methodFacts names how bytes were moved at the recording end: a CPU figure means nothing
// without it.
func methodFacts(run *result.Run) string {
	p := run.Test.Path
	var parts []string
	for _, f := range []struct{ what, how string }{{"sent by", p.Tx}, {"received by", p.Rx}, {"pacing", p.Pacing}} {
		if f.how != "" && f.how != "none" {
			parts = append(parts, f.what+" "+f.how)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + " at this end"
}
