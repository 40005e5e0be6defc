package ntttcplinux

import (
	"fmt"
	"io"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// WriteXML writes the document of -x. Unlike the original it escapes the computer's name.
func WriteXML(w io.Writer, r *result.Run, o Options) error {
	_, err := io.WriteString(w, xmlDocument(r, &o))
	return err
}

func xmlDocument(r *result.Run, o *Options) string {
	f, s := figuresOf(r), o.Settings.fill(r)
	x := &xmlWriter{}
	fmt.Fprintf(&x.b, "<%s computername=\"%s\" version=\"%s\">\n", f.root(), escape(s.Computer), fileVersion)
	x.b.WriteString("\t<parameters>\n")
	for _, p := range parameters(r, o) {
		x.element(2, p.xml, "", "%s", p.value)
	}
	x.b.WriteString("\t</parameters>\n")
	if eachThread(o) {
		for i, t := range f.threads {
			v := t.scaled(o)
			fmt.Fprintf(&x.b, "\t<thread index=\"%d\">\n", i)
			x.element(2, "realtime", "s", "%.3f", t.seconds)
			x.element(2, "throughput", "KB/s", "%.3f", v.kb)
			x.element(2, "throughput", "MB/s", "%.3f", v.mb)
			x.element(2, "throughput", "mbps", "%.3f", v.mbps)
			x.element(2, "avg_bytes_per_compl", "B", "0.000")
			x.b.WriteString("\t</thread>\n")
		}
	}
	x.totals(f, o)
	x.machine(f, o)
	x.element(1, "os", "", "%s", s.System)
	fmt.Fprintf(&x.b, "</%s>\n", f.root())
	return x.b.String()
}

type xmlWriter struct{ b strings.Builder }

// element writes one line; metric "" = no attribute.
func (x *xmlWriter) element(depth int, name, metric, format string, args ...any) {
	attribute := ""
	if metric != "" {
		attribute = ` metric="` + metric + `"`
	}
	fmt.Fprintf(&x.b, "%s<%s%s>%s</%s>\n", strings.Repeat("\t", depth), name, attribute, escape(fmt.Sprintf(format, args...)), name)
}

func (x *xmlWriter) totals(f *figures, o *Options) {
	v, c := f.scaled(o), f.counted(o)
	decimal := o.Release.since(R140)
	if f.sender && decimal {
		x.element(1, "conns_tested", "", "%d", f.conns)
	}
	x.element(1, "total_bytes", "MB", "%.6f", v.total)
	x.element(1, "realtime", "s", "%.6f", f.seconds)
	x.element(1, "avg_bytes_per_compl", "B", "0.000")
	x.element(1, "threads_avg_bytes_per_compl", "B", "0.000")
	x.element(1, "avg_frame_size", "B", "0.000")
	x.element(1, "throughput", "MB/s", "%.3f", v.mb)
	x.element(1, "throughput", "mbps", "%.3f", v.mbps)
	if decimal {
		x.element(1, "throughput", "Bps", "%.3f", result.PerSecond(f.bytes, f.seconds))
	}
	x.element(1, "total_buffers", "", "0.000")
	x.element(1, "throughput", "buffers/s", "0.000")
	x.element(1, "avg_packets_per_interrupt", "packets/interrupt", "%.3f", c.perInterrupt)
	x.element(1, "interrupts", "count/sec", "%.3f", c.perSecond)
	if o.Release.since(R143) {
		x.element(1, "total_interrupts", "count", "%d", c.interrupts)
	}
	x.element(1, "dpcs", "count/sec", "0.000")
	x.element(1, "avg_packets_per_dpc", "packets/dpc", "0.000")
	if !decimal {
		x.element(1, "cycles", "cycles/byte", "%.3f", f.host.CyclesPerByte(f.bytes, f.seconds))
	}
	x.element(1, "packets_sent", "", "%d", c.sent)
	x.element(1, "packets_received", "", "%d", c.received)
	x.element(1, "packets_retransmitted", "", "%d", c.retransmitted)
	x.element(1, "errors", "", "0")
	if !decimal {
		x.element(1, "cpu", "%", "%.3f", f.host.ProcessPercent(f.seconds))
	}
	x.element(1, "bufferCount", "", "0")
	x.element(1, "bufferLen", "", "0")
}

func (x *xmlWriter) machine(f *figures, o *Options) {
	if t := f.tcp(); t != nil && o.Settings.ShowRetransmits && o.Release.since(R143) {
		x.element(1, "tcp_retransmits", "retrans_segs", "%d", t.RetransSegs)
		for _, r := range retransmits(t) {
			x.element(1, "tcp_retransmits", r.document, "%.2f", result.PerSecond(r.count, f.seconds))
		}
	}
	if o.Release.since(R140) {
		x.element(1, "cpu_cores", "cpu cores", "%d", f.cores())
		x.element(1, "cpu_speed", "MHz", "%.3f", f.mhz())
		for _, s := range f.shares() {
			x.element(1, s.name, "%", "%.2f", s.percent)
		}
		x.element(1, "cycles_per_byte", "cycles/byte", "%.2f", f.host.CyclesPerByte(f.bytes, f.seconds))
		x.element(1, "cpu_busy_all", "%", "%.2f", f.host.ProcessPercent(f.seconds))
	}
	x.element(1, "io", "", "0")
	if f.showRTT(o) {
		x.element(1, "tcp_average_rtt", "us", "%d", *f.rtt)
	}
}

// escape makes text safe inside an element or an attribute. What XML cannot hold at all,
// control characters, is replaced.
func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(clean(s))
}
