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
		r.out.prose("", code, screen.Clean(run.Summary))
	}
	r.probeTables(run)
	if noTotals(run) {
		r.rest(run)
		return
	}
	r.totals(run)
	if run.Test.ProbeOnly {
		r.rest(run)
		return
	}
	if facts := facts(run, r.begun, r.window); len(facts) > 0 {
		r.out.line("")
		for _, f := range facts {
			r.out.prose("  "+screen.Left(f.name, 8), "", screen.Clean(f.text))
		}
	}
	r.rest(run)
}

// rest is what every end block ends with.
func (r *Renderer) rest(run *result.Run) {
	r.notices(run)
	if run.Next != nil {
		r.out.line("")
		r.out.line("next: " + r.out.paint(bold, screen.Clean(run.Next.Command)))
		r.out.prose("      # ", "", screen.Clean(run.Next.Why))
	}
}

func (r *Renderer) notices(run *result.Run) {
	if len(run.Notices) > 0 {
		r.out.line("")
	}
	for i, n := range run.Notices {
		where := ""
		if twin := twin(run.Notices, i); twin >= 0 {
			if twin < i {
				continue
			}
			where = " (both ends)"
		}
		head, code := "note     ", dim
		if n.Level == result.Warn {
			head, code = "warning  ", yellow
		}
		r.out.prose(head, code, screen.Clean(n.Code)+where+": "+screen.Clean(n.Text))
		if n.Fix != "" {
			r.out.line("         fix: " + screen.Clean(n.Fix))
		}
	}
}

// twin finds the notice that says the same of the other end as number i; −1 = none.
func twin(ns []result.Notice, i int) int {
	for j, n := range ns {
		if n.Code == ns[i].Code && n.Text == ns[i].Text && n.Fix == ns[i].Fix && n.End == ns[i].End.Other() && ns[i].End != "" {
			return j
		}
	}
	return -1
}

// totals prints the table of both ends' counts, a block per direction: a line per stream
// up to eight, their spread beyond, and all together.
func (r *Renderer) totals(run *result.Run) {
	if !run.Finished() && len(run.Rows) == 0 {
		return
	}
	udp := run.Test.Transport == "udp"
	t := table{left: map[int]bool{0: true}}
	head := []string{"stream", "sent", "", "received", ""}
	if udp {
		head[1], head[3] = "offered", "delivered"
		head = append(head, udpHead...)
	} else {
		head = append(head, "retr", "RTT/max ms", "cwnd max")
	}
	t.add(head...)
	starts := map[int]result.Sum{} // the line of the table at which a direction begins
	for _, s := range run.Sums {
		starts[len(t.rows)] = s
		t.direction(run, s, udp)
	}
	for i, l := range t.lines() {
		if s, ok := starts[i]; ok {
			from, to := conclude.Label(run, s.Direction)
			r.out.line(screen.Clean(from + " → " + to))
		}
		if i == 0 {
			r.out.line("")
			l = r.out.paint(dim, l)
		}
		r.out.line(l)
	}
	for _, s := range run.Sums {
		if text := spread(run, s); text != "" {
			r.out.prose("", "", text)
		}
	}
}

// direction adds one direction's lines.
func (t *table) direction(run *result.Run, s result.Sum, udp bool) {
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
			t.add(append([]string{name}, counts(x.Sender, x.Receiver, udp, x.UDP, senderTCP(run, x))...)...)
		}
	}
	name := "all"
	if n := len(streams); n > 1 {
		name = fmt.Sprintf("all %d", n)
	}
	snd, rcv := s.Sender, s.Receiver
	if !run.Finished() { // it broke off: what the intervals add up to
		name = "so far"
		snd, rcv = conclude.SoFar(run, s.Direction, s.Direction.Sender()), conclude.SoFar(run, s.Direction, s.Direction.Receiver())
	}
	t.add(append([]string{name}, counts(snd, rcv, udp, s.UDP, mergeTCP(run, streams))...)...)
}

// counts are the cells of one line of the totals.
func counts(snd, rcv *result.Total, udp bool, u *result.UDPStream, tcp *result.TCPSummary) []string {
	if u != nil && u.Received != nil && rcv != nil { // delivered: without duplicates
		t := *rcv
		t.Bytes = u.Received.Bytes
		rcv = &t
	}
	cells := []string{
		optional(snd, func(t result.Total) string { return size(t.Bytes) }), optional(snd, func(t result.Total) string { return rate(t.Rate()) }),
		optional(rcv, func(t result.Total) string { return size(t.Bytes) }), optional(rcv, func(t result.Total) string { return rate(t.Rate()) }),
	}
	if udp {
		return append(cells, udpCounts(u, rcv)...)
	}
	var retrans *int64
	if snd != nil {
		retrans = snd.Retransmits
	}
	rtt, cwnd := screen.Unknown, screen.Unknown
	if tcp != nil && tcp.MeanRTT > 0 {
		rtt = number(float64(tcp.MeanRTT)/1000) + "/" + number(float64(tcp.MaxRTT)/1000)
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
	text := fmt.Sprintf("%s → %s: streams %s %s, median %s", from, to, who, conclude.Span(q[0], q[2]), rate(q[1]))
	if s.Fair != nil {
		text += fmt.Sprintf(", Jain's index %.3f", *s.Fair)
	}
	return screen.Clean(text)
}

// fact is a named line below the totals.
type fact struct{ name, text string }

// facts are those of a run. What the header above them said (window is its line about
// buffers) is not repeated.
func facts(run *result.Run, header bool, window string) []fact {
	var out []fact
	add := func(name, text string) {
		if text != "" {
			out = append(out, fact{name, text})
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
		add("sender", fmt.Sprintf("%sidle %.0f %%, held by the receiver's window %.0f %%, by its send buffer %.0f %%, by the network %.0f %% of the time",
			name, 100*s.Shares.Idle, 100*s.Shares.Window, 100*s.Shares.Buffer, 100*s.Shares.Network))
	}
	udpFacts(run, add)
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
		return fmt.Sprintf("up to %s%s (congestion window; the receiver's is not known)", iec(cwnd), each)
	}
	return fmt.Sprintf("up to %s%s (congestion window %s, receiver's window %s)", iec(min(cwnd, offered)), each, iec(cwnd), iec(offered))
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
	for _, f := range []struct{ what, how string }{{"sent by", p.Tx}, {"received by", p.Rx}, {"pacing", p.Pacing}, {"calls", p.Batch}} {
		if f.how != "" && f.how != "none" {
			parts = append(parts, f.what+" "+f.how)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	text := strings.Join(parts, ", ") + " at this end"
	if p.Uncut {
		text += "; super-packets were never cut on the way"
	}
	return text
}
