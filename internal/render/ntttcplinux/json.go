package ntttcplinux

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// WriteJSON writes the document of -j, which releases before late 1.4.0 did not have. All
// values are strings. Kept as they are: the " bps" behind a thread's MB/s, the key
// "tcpAverageRtt metric". Unlike the original it escapes what JSON must have escaped.
func WriteJSON(w io.Writer, r *result.Run, o Options) error {
	_, err := io.WriteString(w, jsonDocument(r, &o))
	return err
}

// member is a key and its value: a string, a members (object) or a list of values.
type member struct {
	key   string
	value any
}

type members []member

func metric(name, format string, args ...any) members {
	return members{{"metric", name}, {"value", fmt.Sprintf(format, args...)}}
}

func jsonDocument(r *result.Run, o *Options) string {
	f, s := figuresOf(r), o.Settings.fill(r)
	v, c := f.scaled(o), f.counted(o)
	var settings members
	for _, p := range parameters(r, o) {
		settings = append(settings, member{p.json, p.value})
	}
	doc := members{{"computername", s.Computer}, {"version", fileVersion}, {"parameters", settings}}
	add := func(key string, value any) { doc = append(doc, member{key, value}) }
	if eachThread(o) {
		add("threads", f.jsonThreads(o))
	}
	add("totalBytes", metric("MB", "%.6f", v.total))
	add("realTime", metric("s", "%.6f", f.seconds))
	add("avgBytesPerCompl", metric("B", "0.000"))
	add("threadsAvgBytesPerCompl", metric("B", "0.000"))
	add("avgFrameSize", metric("B", "0.000"))
	add("throughputs", []any{
		metric("MB/s", "%.3f", v.mb), metric("mbps", "%.3f", v.mbps),
		metric("Bps", "%.3f", result.PerSecond(f.bytes, f.seconds)), metric("buffer/s", "0.000"),
	})
	add("totalBuffers", "0.000")
	add("avgPacketsPerInterrupt", metric("packets/interrupt", "%.3f", c.perInterrupt))
	add("interrupt", metric("count/sec", "%.3f", c.perSecond))
	if o.Release.since(R143) {
		add("interruptTotal", metric("count", "%d", c.interrupts))
	}
	add("dpcs", metric("count/sec", "0.000"))
	add("avgPacketsPerDpc", metric("packets/dpc", "0.000"))
	add("cycles", metric("cycles/byte", "%.3f", f.host.CyclesPerByte(f.bytes, f.seconds)))
	add("packetsSent", fmt.Sprint(c.sent))
	add("packetsReceived", fmt.Sprint(c.received))
	add("packets_retransmitted", fmt.Sprint(c.retransmitted))
	add("errors", "0")
	add("cpu", metric("%", "%.3f", f.host.ProcessPercent(f.seconds)))
	add("bufferCount", "0")
	add("bufferLen", "0")
	add("io", "0")
	if t := f.tcp(); t != nil && o.Settings.ShowRetransmits && o.Release.since(R143) {
		list := []any{metric("retrans_segs", "%d", t.RetransSegs)}
		for _, r := range retransmits(t) {
			list = append(list, metric(r.document, "%.2f", result.PerSecond(r.count, f.seconds)))
		}
		add("tcp_retransmits", list)
	}
	if f.showRTT(o) {
		add("tcpAverageRtt metric", fmt.Sprintf("%d us", *f.rtt))
	}
	add("os", strings.ReplaceAll(s.System, "\n", ""))
	var b strings.Builder
	writeJSON(&b, members{{f.root(), doc}}, 0)
	b.WriteString("\n")
	return b.String()
}

func (f *figures) jsonThreads(o *Options) []any {
	var out []any
	for i, t := range f.threads {
		v := t.scaled(o)
		out = append(out, members{
			{"index", fmt.Sprint(i)},
			{"realTime", metric("s", "%.3f", t.seconds)},
			{"throughputs", []any{
				metric("KB/s", "%.3f", v.kb), metric("MB/s", "%.3f bps", v.mb), metric("mbps", "%.3f", v.mbps),
			}},
			{"avgBytesPerCompl", metric("B", "0.000")},
		})
	}
	return out
}

// writeJSON writes a value in the original's layout: four blanks for each level, a blank on
// both sides of the colon.
func writeJSON(b *strings.Builder, value any, depth int) {
	in := strings.Repeat("    ", depth+1)
	end := "\n" + strings.Repeat("    ", depth)
	switch v := value.(type) {
	case members:
		b.WriteString("{\n")
		for i, m := range v {
			if i > 0 {
				b.WriteString(",\n")
			}
			b.WriteString(in + quote(m.key) + " : ")
			writeJSON(b, m.value, depth+1)
		}
		b.WriteString(end + "}")
	case []any:
		b.WriteString("[\n")
		for i, m := range v {
			if i > 0 {
				b.WriteString(",\n")
			}
			b.WriteString(in)
			writeJSON(b, m, depth+1)
		}
		b.WriteString(end + "]")
	case string:
		b.WriteString(quote(v))
	}
}

func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string and a Builder: cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}
