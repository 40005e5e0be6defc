package ntttcpwin

import (
	"fmt"
	"io"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// WriteXML writes the document of -xml. Unlike the original it escapes names.
func WriteXML(w io.Writer, r *result.Run, o Options) error {
	x := &xmlWriter{end: newline(o.CRLF)}
	x.document(r, &o)
	_, err := io.WriteString(w, x.b.String())
	return err
}

// WriteSamples writes the document of -sam: one for each sample of a test.
func WriteSamples(w io.Writer, samples []*result.Run, o Options) error {
	x := &xmlWriter{end: newline(o.CRLF)}
	x.raw("<samples>")
	for _, r := range samples {
		x.document(r, &o)
	}
	x.raw("</samples>")
	_, err := io.WriteString(w, x.b.String())
	return err
}

type xmlWriter struct {
	b   strings.Builder
	end string
}

func (x *xmlWriter) raw(format string, args ...any) {
	fmt.Fprintf(&x.b, format, args...)
	x.b.WriteString(x.end)
}

// element writes one line; metric "" = no attribute.
func (x *xmlWriter) element(depth int, name, metric, format string, args ...any) {
	attribute := ""
	if metric != "" {
		attribute = ` metric="` + metric + `"`
	}
	x.raw("%s<%s%s>%s</%s>", strings.Repeat("\t", depth), name, attribute, escape(fmt.Sprintf(format, args...)), name)
}

func (x *xmlWriter) document(r *result.Run, o *Options) {
	s := o.Settings.fill(r)
	f := figuresOf(r, s)
	root := "ntttcpr"
	if f.sender {
		root = "ntttcps"
	}
	x.raw(`<%s computername="%s" version="%s">`, root, escape(s.Computer), Version)
	x.parameters(r, o, s)
	if !o.NoThreads {
		for i, t := range f.thread {
			x.thread(f, s, i, t)
		}
	}
	x.totals(f, s)
	x.raw("</%s>", root)
}

func (x *xmlWriter) parameters(r *result.Run, o *Options, s Settings) {
	run, warmup, cooldown := times(r)
	x.raw("\t<parameters>")
	for _, p := range []struct {
		name  string
		value any
	}{
		{"send_socket_buff", *s.SendBuffer},
		{"recv_socket_buff", *s.RecvBuffer},
		{"port", s.advanced(r)},
		{"sync_port", s.SyncPort},
		{"no_sync", noSync(r)},
		{"wait_timeout_milliseconds", *s.Timeout},
		{"async", s.Async > 0},
		{"verbose", o.Verbose},
		{"wsa", s.WSA},
		{"use_ipv6", s.IPv6},
		{"udp", r.Test.Transport == "udp"},
		{"udp_unconnected", s.UDPUnconnected},
		{"verify_data", s.Verify},
		{"wait_all", s.WaitAll},
		{"run_time", run},
		{"warmup_time", warmup},
		{"cooldown_time", cooldown},
		{"dash_n_timeout", countTimeout},
		{"bind_sender", s.SenderName != ""},
		{"sender_name", s.SenderName},
		{"max_active_threads", s.active(r)},
		{"udp_uso_size", s.SegmentOffload},
		{"udp_receive_coalescing", number(s.ReceiveCoalesces)},
		{"tp", s.TransmitPackets},
		{"use_hvsocket_flag", s.HyperV},
		{"no_stdio_buffer", s.NoStdioBuffer},
		{"throughput_Bpms", s.Throttle},
		{"cpu_burn", s.Burn},
		{"latency_measurement", s.Latency},
		{"use_io_compl_ports", s.CompletionPorts},
		{"cpu_from_idle_flag", s.CPUFromIdle},
		{"get_estats", s.EStats},
		{"qos_flag", s.QoS},
		{"jitter_measurement", s.Jitter},
		{"packet_spacing", s.PacketPeriod},
	} {
		value := fmt.Sprint(p.value)
		if on, ok := p.value.(bool); ok {
			value = "False"
			if on {
				value = "True"
			}
		}
		x.element(2, p.name, "", "%s", value)
	}
	x.raw("\t</parameters>")
}

func number(on bool) int {
	if on {
		return 1
	}
	return 0
}

// thread divides by the test's time, not by the thread's: so does the original here.
func (x *xmlWriter) thread(f *figures, s Settings, i int, t thread) {
	x.raw("\t<thread index=\"%d\">", i)
	x.element(2, "realtime", "s", "%.3f", t.seconds)
	rate := f.perSecond(t.bytes)
	x.element(2, "throughput", "KB/s", "%.3f", rate/kib)
	x.element(2, "throughput", "MB/s", "%.3f", rate/mib)
	x.element(2, "throughput", "mbps", "%.3f", rate*8/1e6)
	x.element(2, "throughput", "Bps", "%.1f", rate)
	x.element(2, "avg_bytes_per_compl", "B", "%.3f", ratio(float64(t.bytes), float64(t.ios)))
	x.latency(2, s, t.late)
	for _, e := range t.estats {
		x.estats(e)
	}
	x.raw("\t</thread>")
}

// estats writes what -es read of a thread's connection at one moment.
func (x *xmlWriter) estats(e result.EStats) {
	x.raw(`		<estats type="%s">`, escape(e.Moment))
	for _, s := range e.Structures {
		x.raw(`			<structure name="%s">`, escape(s.Name))
		for _, p := range s.Properties {
			x.raw(`				<property name="%s" value="%s"/>`, escape(p.Name), escape(p.Value))
		}
		x.raw("\t\t\t</structure>")
	}
	x.raw("\t\t</estats>")
}

func (x *xmlWriter) latency(depth int, s Settings, l latency) {
	if !s.Latency {
		return
	}
	parts := int64(1)
	if s.RoundTrip {
		parts = 2
	}
	x.element(depth, "avg_latency", "ns", "%.0f", l.mean(parts))
	x.element(depth, "min_latency", "ns", "%.0f", float64(l.least))
	x.element(depth, "max_latency", "ns", "%.0f", float64(l.most))
}

func (x *xmlWriter) totals(f *figures, s Settings) {
	var means float64 // of the threads' averages
	for _, t := range f.thread {
		means += ratio(float64(t.bytes), float64(t.ios))
	}
	rate, p := f.perSecond(f.bytes), f.packets()
	x.element(1, "total_bytes", "MB", "%.6f", float64(f.bytes)/mib)
	x.element(1, "realtime", "s", "%.6f", f.real)
	x.element(1, "avg_bytes_per_compl", "B", "%.3f", ratio(float64(f.bytes), float64(f.ios)))
	x.element(1, "threads_avg_bytes_per_compl", "B", "%.3f", ratio(means, float64(len(f.thread))))
	x.element(1, "avg_frame_size", "B", "%.3f", f.frame())
	x.element(1, "throughput", "MB/s", "%.3f", rate/mib)
	x.element(1, "throughput", "mbps", "%.3f", rate*8/1e6)
	x.element(1, "throughput", "Bps", "%.1f", rate)
	x.element(1, "total_buffers", "", "%.3f", f.buffers())
	x.element(1, "throughput", "buffers/s", "%.3f", ratio(f.buffers(), f.real))
	x.latency(1, s, f.late)
	x.element(1, "avg_packets_per_interrupt", "packets/interrupt", "%.3f", f.perInterrupt())
	x.element(1, "interrupts", "count/sec", "%.3f", f.perSecond(f.interrupts()))
	x.element(1, "dpcs", "count/sec", "%.3f", f.perSecond(f.dpcs()))
	x.element(1, "avg_packets_per_dpc", "packets/dpc", "%.3f", f.perDPC())
	x.element(1, "cycles", "cycles/byte", "%.3f", f.cycles())
	x.element(1, "packets_sent", "", "%d", p.Sent)
	x.element(1, "packets_received", "", "%d", p.Received)
	x.element(1, "packets_retransmitted", "", "%d", p.Retransmitted)
	x.element(1, "errors", "", "%d", p.Errors)
	x.element(1, "cpu", "%", "%.3f", f.cpu())
	cores := 0
	if f.host != nil {
		cores = f.host.Cores
	}
	x.element(1, "num_processors", "", "%d", cores)
	x.element(1, "bufferCount", "", "%d", s.BufferCount)
	x.element(1, "bufferLen", "", "%d", s.BufferLength)
	io := s.Async
	if io == 0 {
		io = 2
	}
	x.element(1, "io", "", "%d", io)
}

// escape makes text safe inside an element or an attribute. What XML cannot hold at all,
// control characters, is replaced.
func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(clean(s))
}
