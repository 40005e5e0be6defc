package iperf3text

import (
	"fmt"

	"github.com/fullbore-net/fullbore/internal/render/cjson"
	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

const separator = "- - - - - - - - - - - - - - - - - - - - - - - - -\n"

// header is the head of a table; tail names the columns after the rate.
func (r *Renderer) header(tail string) {
	id := "[ ID]"
	if iperf3view.Bidirectional(r.run) {
		id += "[Role]"
	}
	r.printf("%s Interval           Transfer     Bitrate%s\n", id, tail)
}

// The columns after the rate.
const (
	headPlain     = ""
	headRetrans   = "         Retr"
	headCwnd      = "         Retr  Cwnd"
	headLoss      = "         Jitter    Lost/Total Datagrams"
	headDatagrams = "         Total Datagrams"
)

// row formats what all rows begin with: id (0 = a sum), role, times, amount, rate.
func (r *Renderer) row(socket int, d result.Direction, start, end float64, bytes int64, rate float64) string {
	id := "[SUM]"
	if socket != 0 {
		id = fmt.Sprintf("[%3d]", socket)
	}
	return fmt.Sprintf("%s%s %6.2f-%-6.2f sec  %ss  %ss/sec", id, r.role(d), start, end,
		units.Iperf3Amount(float64(bytes), 'A'), units.Iperf3Amount(rate, r.o.Format))
}

// role is the tag of a bidirectional run's rows.
func (r *Renderer) role(d result.Direction) string {
	if !iperf3view.Bidirectional(r.run) {
		return ""
	}
	who := 'C'
	if r.server() {
		who = 'S'
	}
	if iperf3view.Sends(r.run, d) {
		return fmt.Sprintf("[TX-%c]", who)
	}
	return fmt.Sprintf("[RX-%c]", who)
}

// interval prints a report's rows: each direction's streams, then their sum.
func (r *Renderer) interval(iv *result.Interval) {
	if iv.End != "" && iv.End != r.run.End {
		return
	}
	if r.run.Test.Interval == 0 && !r.omitOver && (iv.Omitted || r.run.Test.Omit > 0) {
		r.omitOver = true
		if r.o.Verbose {
			r.printf("Finished omit period, starting real test\n")
		}
	}
	if !iperf3view.Visible(r.run, iv) {
		return
	}
	b := iperf3view.Interval(r.run, iv)
	many := r.run.Test.Streams > 1
	switch {
	case !r.headed:
		r.headed = true
		r.header(intervalHead(r.run, &b))
	case many:
		r.printf(separator)
	}
	for i := range b.Sums {
		d := b.Sums[i].Direction
		for j := range b.Streams {
			if b.Streams[j].Direction == d {
				r.intervalRow(&b.Streams[j])
			}
		}
		if many {
			r.intervalRow(&b.Sums[i])
		}
	}
}

func intervalHead(run *result.Run, b *iperf3view.Block) string {
	if iperf3view.Datagrams(run) {
		if !iperf3view.Bidirectional(run) && b.Sums[0].Sender {
			return headDatagrams
		}
		return headLoss
	}
	for i := range b.Streams {
		if b.Streams[i].Retransmits != nil {
			return headCwnd
		}
	}
	return headPlain
}

func (r *Renderer) intervalRow(row *iperf3view.Row) {
	line := r.row(row.Socket, row.Direction, row.Start, row.End, row.Bytes, row.Rate)
	label := ""
	if row.Omitted {
		label = "(omitted)"
	}
	switch u := row.UDP; {
	case u != nil && row.Sender:
		gap := ""
		if iperf3view.Bidirectional(r.run) {
			gap = "          "
		}
		line += fmt.Sprintf(" %s %d  %s", gap, u.Packets, label)
	case u != nil:
		line += loss(u.Jitter, u.Lost, u.Packets, label)
	case row.TCP != nil:
		line += fmt.Sprintf("  %3d   %ss       %s", *row.Retransmits, units.Iperf3Amount(float64(row.TCP.Cwnd), 'A'), label)
	case row.Retransmits != nil:
		line += retransSum(*row.Retransmits, label)
	default:
		line += plain(label)
	}
	r.printf("%s\n", line)
}

func plain(label string) string { return "                  " + label }

func retransSum(n int64, label string) string {
	return fmt.Sprintf("  %3d             %s", n, label)
}

// loss is the tail of rows with datagrams. Its ratio is C's %.2g, so 99.5 % and more
// read 1e+02.
func loss(jitter float64, lost, total int64, label string) string {
	percent := 0.0
	if total > 0 {
		percent = 100 * float64(lost) / float64(total)
	}
	return fmt.Sprintf("  %5.3f ms  %d/%d (%.2g%%)  %s", jitter*1000, lost, total, percent, label)
}

// summary prints the closing report.
func (r *Renderer) summary() {
	groups := iperf3view.Summary(r.run)
	r.printf(separator)
	if r.o.Verbose {
		r.printf("Test Complete. Summary Results:\n")
	}
	r.header(summaryHead(r.run, groups))
	for i := range groups {
		g := &groups[i]
		for j := range g.Streams {
			r.total(&g.Streams[j], g)
		}
		if r.run.Test.Streams > 1 {
			r.total(&g.Sum, g)
		}
		if r.o.Verbose {
			r.cost(g)
		}
	}
}

func summaryHead(run *result.Run, groups []iperf3view.Group) string {
	if iperf3view.Datagrams(run) {
		return headLoss
	}
	for i := range groups {
		if groups[i].Sum.Retransmits != nil {
			return headRetrans
		}
	}
	return headPlain
}

// total prints a stream's two rows, or a sum's. A server has only the one that it
// measured: in iperf3 it reports before the results are exchanged. So has a client whose
// test broke off.
func (r *Renderer) total(t *iperf3view.Total, g *iperf3view.Group) {
	sum := t.Socket == 0
	alone := r.server() || r.broken
	if alone && !g.Sends {
		r.unavailable(t, "sender")
	} else {
		r.printf("%s\n", r.row(t.Socket, g.Direction, 0, t.Sent.End, t.Sent.Bytes, t.Sent.Rate)+r.senderTail(t))
	}
	if u := t.UDP; u != nil && u.OutOfOrder > 0 && !sum {
		r.printf("[SUM]%s %4.1f-%4.1f sec  %d datagrams received out-of-order\n", r.role(g.Direction), 0.0, t.Sent.End, u.OutOfOrder)
	}
	if d := t.Disk; d != nil {
		done, percent := t.Received.Bytes, d.PercentReceived
		if g.Sends {
			done, percent = t.Sent.Bytes, d.PercentSent
		}
		r.printf("        Sent %s / %s (%d%%) of %s\n",
			units.Iperf3Amount(float64(done), 'A'), units.Iperf3Amount(float64(d.Size), 'A'), percent, clean(d.Name))
	}
	if alone && g.Sends {
		r.unavailable(t, "receiver")
		return
	}
	tail := plain("receiver")
	if t.UDP != nil {
		tail = loss(t.UDP.Jitter, t.UDP.Lost, t.UDP.Packets, "receiver")
	}
	r.printf("%s\n", r.row(t.Socket, g.Direction, 0, t.Received.End, t.Received.Bytes, t.Received.Rate)+tail)
}

func (r *Renderer) senderTail(t *iperf3view.Total) string {
	switch {
	case t.UDP != nil:
		return loss(0, 0, t.SenderPackets, "sender")
	case t.Retransmits == nil:
		return plain("sender")
	case t.Socket == 0 || r.o.Release.Old(): // one blank less since 3.18
		return retransSum(*t.Retransmits, "sender")
	}
	return fmt.Sprintf("  %3d            sender", *t.Retransmits)
}

func (r *Renderer) unavailable(t *iperf3view.Total, side string) {
	switch {
	case !r.o.Verbose:
	case t.Socket == 0:
		r.printf("[SUM] (%s statistics not available)\n", side)
	default:
		r.printf("[%3d] (%s statistics not available)\n", t.Socket, side)
	}
}

// cost prints the processor time and the congestion control of one direction.
func (r *Renderer) cost(g *iperf3view.Group) {
	own, other := iperf3view.CPU(r.run)
	if g.Sends {
		r.cpu("sender", "receiver", own, other)
		if iperf3view.Bidirectional(r.run) {
			r.cpu("receiver", "sender", own, other)
		}
	}
	snd, rcv := iperf3view.Congestion(r.run, g.Direction)
	if snd != "" {
		r.printf("snd_tcp_congestion %s\n", clean(snd))
	}
	if rcv != "" {
		r.printf("rcv_tcp_congestion %s\n", clean(rcv))
	}
}

func (r *Renderer) cpu(local, remote string, own, other result.CPU) {
	r.printf("CPU Utilization: local/%s %.1f%% (%.1f%%u/%.1f%%s), remote/%s %.1f%% (%.1f%%u/%.1f%%s)\n",
		local, own.Total, own.User, own.System, remote, other.Total, other.User, other.System)
}

// serverOutput prints what --get-server-output brought.
func (r *Renderer) serverOutput() {
	w := r.run.Wire
	switch {
	case w == nil:
	case len(w.ServerJSON) > 0:
		v, err := cjson.Parse(w.ServerJSON)
		if err == nil {
			r.printf("\nServer JSON output:\n%s\n", clean(string(cjson.AppendPretty(nil, v))))
		}
	case w.ServerText != nil:
		r.printf("\nServer output:\n%s\n", clean(*w.ServerText))
	}
}
