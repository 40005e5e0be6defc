package plain

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/result"
)

// layout fixes the columns of the interval lines when a run starts, so that they never
// move.
type layout struct {
	title  string
	dirs   []result.Direction
	labels map[result.Direction]string
	udp    bool
	many   bool // more than one stream: cwnd is a sum
	digits int  // decimals of the time
	wTime  int
	wLabel int
}

func newLayout(run *result.Run) layout {
	l := layout{labels: map[result.Direction]string{}, udp: run.Test.Transport == "udp", many: run.Test.Streams > 1}
	switch run.Test.Direction {
	case "both":
		l.dirs = []result.Direction{result.Up, result.Down}
	case string(result.Down):
		l.dirs = []result.Direction{result.Down}
	default:
		l.dirs = []result.Direction{result.Up}
	}
	for _, d := range l.dirs {
		from, to := conclude.Label(run, d)
		l.labels[d] = screen.Clean(from + " → " + to)
		l.wLabel = max(l.wLabel, screen.Width(l.labels[d]))
	}
	l.digits = 1
	if tenths := run.Test.Interval * 10; tenths != float64(int64(tenths)) {
		l.digits = 2
	}
	longest := run.Test.Duration + run.Test.Omit
	if longest == 0 {
		longest = 9999 // no time limit
	}
	l.wTime = 2*len(fmt.Sprintf("%.*f", l.digits, longest)) + len("-")
	l.title = screen.Clean(l.titleText(run))
	return l
}

// titleText is the first line: who sends to whom, and what was agreed.
func (l *layout) titleText(run *result.Run) string {
	t := run.Test
	parts := make([]string, 0, 6)
	for _, d := range l.dirs {
		parts = append(parts, l.labels[d])
	}
	text := strings.Join(parts, " and ")
	transport := strings.ToUpper(t.Transport)
	if t.MPTCP {
		transport = "MPTCP"
	}
	text += ", " + transport + ", " + count(max(t.Streams, 1), "stream")
	if len(l.dirs) == 2 {
		text += " each way"
	}
	if t.Bitrate > 0 {
		text += " at " + rate(float64(t.Bitrate))
		if t.Streams > 1 {
			text += " each"
		}
	}
	switch {
	case t.Bytes > 0:
		text += ", " + size(t.Bytes)
	case t.Blocks > 0:
		text += ", " + fmt.Sprintf("%d blocks of %s", t.Blocks, iec(int64(t.BlockSize)))
	case t.Duration > 0:
		text += ", " + duration(t.Duration)
	case t.File != "":
		text += ", the file " + t.File
	default:
		text += ", until interrupted"
	}
	if t.Omit > 0 {
		text += " after a warm-up of " + duration(t.Omit)
	}
	if t.Congestion != "" {
		text += ", " + t.Congestion
	}
	return text
}

// Widths of the figure columns: the longest figure that is not a fault.
const (
	wRate  = len("9.99 Gbit/s")
	wCount = 7
	wRTT   = len("0.023 ms")
	wCwnd  = len("1023 KiB")
	wCPU   = len("CPU snd/rcv")
	wLoss  = len("< 0.001 %")
)

// titles heads the columns.
func (l *layout) titles() string {
	cells := []string{
		screen.Right("seconds", l.wTime), screen.Left("direction", l.wLabel),
		screen.Right("sent", wRate), screen.Right("received", wRate),
	}
	if l.udp {
		cells[2], cells[3] = screen.Right("offered", wRate), screen.Right("delivered", wRate)
		cells = append(cells, screen.Right("lost", wCount), screen.Right("share", wLoss), screen.Right("jitter", wRTT), screen.Right("PDV p99", wRTT))
	} else {
		cwnd := "cwnd"
		if l.many {
			cwnd = "sum cwnd"
		}
		cells = append(cells, screen.Right("retrans", wCount), screen.Right("RTT", wRTT), screen.Right(cwnd, wCwnd))
	}
	return strings.Join(append(cells, screen.Right("CPU snd/rcv", wCPU)), "  ")
}

// figures is what one line says about one direction.
type figures struct {
	dir            result.Direction
	start, stop    float64
	sent, received *result.IntervalSum
	rtt, cwnd      int64       // µs, bytes; 0 = not known
	pdv            *float64    // s, p99 of the receiver's worst stream
	cpu            [2]*float64 // of the sending and the receiving program
}

// gather puts together what both ends say about direction d. Round trip and congestion
// window are the sender's: mean and sum over its streams.
func gather(d result.Direction, local, remote *result.Interval, head *result.Run) figures {
	f := figures{dir: d, start: local.Start, stop: local.Stop}
	for _, row := range []*result.Interval{local, remote} {
		if row == nil {
			continue
		}
		sends := row.End == d.Sender()
		for i := range row.Sums {
			if s := &row.Sums[i]; s.Direction == d {
				if sends {
					f.sent = s
				} else {
					f.received = s
				}
			}
		}
		if sends {
			f.rtt, f.cwnd = sender(row, head)
		} else {
			f.pdv = worstPDV(row)
		}
		if row.Host != nil && row.Host.Process != nil {
			if sends {
				f.cpu[0] = &row.Host.Process.Total
			} else {
				f.cpu[1] = &row.Host.Process.Total
			}
		}
	}
	return f
}

// sender returns the mean round trip and the sum of the congestion windows of the
// sending streams, 0 unless every one of them is in the row: a peer with very many
// streams reports only its worst ones.
func sender(row *result.Interval, head *result.Run) (rtt, cwnd int64) {
	n := 0
	for _, s := range row.Streams {
		if !s.Sender || s.TCP == nil {
			continue
		}
		rtt += s.TCP.RTT
		cwnd += s.TCP.Cwnd
		n++
	}
	if n == 0 || n < head.Test.Streams {
		return 0, 0
	}
	return rtt / int64(n), cwnd
}

func (l *layout) row(f figures) string {
	bps := func(s result.IntervalSum) string { return rate(s.BPS) }
	times := fmt.Sprintf("%.*f-%.*f", l.digits, f.start, l.digits, f.stop)
	cells := []string{
		screen.Right(times, l.wTime), screen.Left(l.labels[f.dir], l.wLabel),
		screen.Right(optional(f.sent, bps), wRate), screen.Right(optional(f.received, bps), wRate),
	}
	if l.udp {
		var lost, packets *int64
		var jitter *float64
		if f.received != nil {
			lost, packets, jitter = f.received.Lost, f.received.Packets, f.received.Jitter
		}
		part := screen.Unknown
		if lost != nil && packets != nil {
			part = share(*lost, *packets)
		}
		cells = append(cells, screen.Right(optional(lost, whole), wCount), screen.Right(part, wLoss),
			screen.Right(optional(jitter, secondsText), wRTT), screen.Right(optional(f.pdv, secondsText), wRTT))
	} else {
		var retrans *int64
		if f.sent != nil {
			retrans = f.sent.Retransmits
		}
		cells = append(cells, screen.Right(optional(retrans, whole), wCount),
			screen.Right(positive(f.rtt, millis), wRTT), screen.Right(positive(f.cwnd, iec), wCwnd))
	}
	return strings.Join(append(cells, screen.Right(cpuText(f.cpu), wCPU)), "  ")
}

func positive(v int64, format func(int64) string) string {
	if v <= 0 {
		return screen.Unknown
	}
	return format(v)
}

// cpuText prints both programs' CPU, sender first, in per cent of a core.
func cpuText(c [2]*float64) string {
	pct := func(v float64) string { return fmt.Sprintf("%.0f", v) }
	if c[0] == nil && c[1] == nil {
		return screen.Unknown
	}
	return optional(c[0], pct) + "/" + optional(c[1], pct) + " %"
}
