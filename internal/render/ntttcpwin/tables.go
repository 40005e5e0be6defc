package ntttcpwin

import (
	"fmt"
	"io"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// tables are the console's lines of the result. Two blank lines stand before each table,
// one before those with latency.
func (f *figures) tables(s Settings, noThreads bool) []string {
	t := &tableWriter{}
	if !noThreads {
		f.threadTable(t, s)
	}
	t.add("", "", "#####  Totals:  #####", "", "")
	t.add(
		"   Bytes(MEG)    realtime(s) Avg Frame Size Throughput(MB/s)",
		"================ =========== ============== ================",
	)
	t.row("%16.6f %11.3f %14.3f %16.3f", float64(f.bytes)/mib, f.real, f.frame(), f.perSecond(f.bytes)/mib)
	if s.Latency {
		t.add(
			"",
			"Latency(ns)",
			"       Avg        Min        Max",
			"========== ========== ==========",
		)
		t.row("%10.0f %10.0f %10.0f", f.late.mean(1), float64(f.late.least), float64(f.late.most))
	}
	t.add(
		"", "",
		"Throughput(Buffers/s) Cycles/Byte       Buffers",
		"===================== =========== =============",
	)
	t.row("%21.3f %11.3f %13.3f", ratio(f.buffers(), f.real), f.cycles(), f.buffers())
	t.add(
		"", "",
		"DPCs(count/s) Pkts(num/DPC)   Intr(count/s) Pkts(num/intr)",
		"============= ============= =============== ==============",
	)
	t.row("%13.3f %13.3f   %13.3f  %13.3f", f.perSecond(f.dpcs()), f.perDPC(), f.perSecond(f.interrupts()), f.perInterrupt())
	t.add(
		"", "",
		"Packets Sent Packets Received Retransmits Errors Avg. CPU %",
		"============ ================ =========== ====== ==========",
	)
	p := f.packets()
	t.row("%12d %16d %11d %6d %10.3f", p.Sent, p.Received, p.Retransmitted, p.Errors, f.cpu())
	return t.lines
}

func (f *figures) threadTable(t *tableWriter, s Settings) {
	const (
		head = "Thread  Time(s) Throughput(KB/s) Avg B / Compl"
		line = "======  ======= ================ ============="
	)
	if s.Latency {
		t.add("", strings.Repeat(" ", 47)+"Latency(ns)", head+"        Avg        Min        Max", line+" ========== ========== ==========")
	} else {
		t.add("", "", head, line)
	}
	for i, th := range f.thread {
		row := fmt.Sprintf("%6d %8.3f %16.3f %13.3f", i, th.seconds, ratio(float64(th.bytes), th.seconds)/kib, ratio(float64(th.bytes), float64(th.ios)))
		if s.Latency {
			row += fmt.Sprintf(" %10.0f %10.0f %10.0f", th.late.mean(1), float64(th.late.least), float64(th.late.most))
		}
		t.add(row)
	}
}

type tableWriter struct{ lines []string }

func (t *tableWriter) add(lines ...string) { t.lines = append(t.lines, lines...) }

func (t *tableWriter) row(format string, args ...any) { t.add(fmt.Sprintf(format, args...)) }

// WriteTables writes the tables of a run alone: of a sample (-sam) where no document was asked for.
func WriteTables(w io.Writer, r *result.Run, o Options) error {
	s := o.Settings.fill(r)
	var b strings.Builder
	for _, l := range figuresOf(r, s).tables(s, o.NoThreads) {
		b.WriteString(l + newline(o.CRLF))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
