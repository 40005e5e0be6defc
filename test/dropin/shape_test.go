//go:build linux

package dropin

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/render/cjson"
)

// documents compares -J documents: the keys in their order, the types, the values that
// follow from the command line, and the layout of our bytes.
func (c comparison) documents(want, got string) {
	c.Helper()
	raw := got
	docs, err := readDocuments(got)
	if err != nil {
		c.Errorf("%s: %v\n%s", c.name, err, raw)
		return
	}
	// A name that occurs twice does not survive reading, so this finds it too.
	if diff := cmp.Diff(reprint(docs), got); diff != "" {
		c.Errorf("%s: not the layout of cJSON, or a name twice (-cJSON +ours):\n%s", c.name, diff)
	}
	want, got = c.apply(want, got)
	wantDocs, err := readDocuments(want)
	if err != nil {
		c.Fatalf("%s: recording: %v", c.name, err)
	}
	if docs, err = readDocuments(got); err != nil {
		c.Errorf("%s: after the deviations: %v\n%s", c.name, err, got)
		return
	}
	server := strings.Contains(c.name, ".server")
	if diff := cmp.Diff(shapes(wantDocs, server), shapes(docs, server)); diff != "" {
		c.Errorf("%s: stdout (-recorded +ours):\n%s", c.name, diff)
	}
}

// events compares --json-stream output, which may be followed by the whole document.
func (c comparison) events(want, got string) {
	c.Helper()
	raw := got
	lines, rest, err := readEvents(got)
	if err != nil {
		c.Errorf("%s: %v\n%s", c.name, err, raw)
		return
	}
	var b strings.Builder
	for _, l := range lines {
		b.Write(append(cjson.AppendCompact(nil, l), '\n'))
	}
	if diff := cmp.Diff(b.String()+rest, got); diff != "" {
		c.Errorf("%s: not the layout of cJSON, or a name twice (-cJSON +ours):\n%s", c.name, diff)
	}
	want, got = c.apply(want, got)
	wantLines, wantRest, err := readEvents(want)
	if err != nil {
		c.Fatalf("%s: recording: %v", c.name, err)
	}
	if lines, rest, err = readEvents(got); err != nil {
		c.Errorf("%s: after the deviations: %v\n%s", c.name, err, got)
		return
	}
	server := strings.Contains(c.name, ".server")
	if diff := cmp.Diff(eventShapes(wantLines, server), eventShapes(lines, server)); diff != "" {
		c.Errorf("%s: stdout (-recorded +ours):\n%s", c.name, diff)
	}
	if wantRest != "" || rest != "" {
		c.documents(wantRest, rest)
	}
}

// trailingRE finds the comma that a cut can leave behind the last member.
var trailingRE = regexp.MustCompile(`,(\s*[}\]])`)

// apply removes what is meant to differ.
func (c comparison) apply(want, got string) (string, string) {
	want, got = c.dev.apply(c.release, c.name, want, got)
	return trailingRE.ReplaceAllString(want, "$1"), trailingRE.ReplaceAllString(got, "$1")
}

// readDocuments reads one document after another.
func readDocuments(text string) ([]any, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	var docs []any
	for strings.TrimSpace(text[dec.InputOffset():]) != "" {
		v, err := cjson.Next(dec)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", len(docs)+1, err)
		}
		docs = append(docs, v)
	}
	return docs, nil
}

func reprint(docs []any) string {
	var b []byte
	for _, d := range docs {
		b = append(cjson.AppendPretty(b, d), '\n')
	}
	return string(b)
}

// readEvents reads lines of JSON; rest is what follows the line of the event "end".
func readEvents(text string) (events []any, rest string, err error) {
	for text != "" {
		line, after, found := strings.Cut(text, "\n")
		if !found {
			return nil, "", fmt.Errorf("the last line has no end: %q", line)
		}
		v, err := cjson.Parse([]byte(line))
		if err != nil {
			return nil, "", fmt.Errorf("line %q: %w", line, err)
		}
		events = append(events, v)
		text = after
		if o, ok := v.(*cjson.Object); ok && o.Get("event") == "end" && strings.HasPrefix(text, "{\n") {
			return events, text, nil
		}
	}
	return events, "", nil
}

// masker replaces values that differ between runs by their class.
type masker struct {
	server bool
	broken bool // the document has an error: what the far end counted may be unknown
}

func shapes(docs []any, server bool) []string {
	var lines []string
	for _, d := range docs {
		o, _ := d.(*cjson.Object)
		m := masker{server: server, broken: o.Get("error") != nil}
		lines = append(lines, strings.Split(string(cjson.AppendPretty(nil, m.value(nil, d))), "\n")...)
	}
	return lines
}

func eventShapes(events []any, server bool) []string {
	m := masker{server: server}
	for _, e := range events {
		if o, _ := e.(*cjson.Object); o.Get("event") == "error" {
			m.broken = true
		}
	}
	where := map[any][]string{"start": {"start"}, "interval": {"intervals"}, "end": {"end"}}
	var reports, out []any
	flush := func() {
		for _, r := range m.reports(reports) {
			out = append(out, (&cjson.Object{}).Add("event", "interval").Add("data", r))
		}
		reports = nil
	}
	for _, e := range events {
		o, _ := e.(*cjson.Object)
		if o.Get("event") == "interval" {
			reports = append(reports, o.Get("data"))
			continue
		}
		flush()
		path, known := where[o.Get("event")]
		if !known {
			name, _ := o.Get("event").(string)
			path = []string{name}
		}
		masked := &cjson.Object{}
		for _, mem := range o.Members {
			if mem.Key == "data" {
				mem.Value = m.value(path, mem.Value)
			}
			masked.Members = append(masked.Members, mem)
		}
		out = append(out, masked)
	}
	flush()
	var lines []string
	for _, o := range out {
		lines = append(lines, strings.Split(string(cjson.AppendPretty(nil, o)), "\n")...)
	}
	return lines
}

// value masks v, which stands at path (names only).
func (m masker) value(path []string, v any) any {
	key := ""
	if len(path) > 0 {
		key = path[len(path)-1]
	}
	switch v := v.(type) {
	case *cjson.Object:
		if key == "server_output_json" && len(path) == 1 {
			return masker{server: true}.value(nil, v)
		}
		out := &cjson.Object{}
		for _, mem := range v.Members {
			out.Add(mem.Key, m.value(append(slices.Clone(path), mem.Key), mem.Value))
		}
		return out
	case cjson.Array:
		if key == "intervals" {
			return cjson.Array(m.reports(v))
		}
		out := cjson.Array{}
		for _, e := range v {
			out = append(out, m.value(path, e))
		}
		return out
	case string:
		return text(key, v)
	case float64:
		return m.number(path, key, v)
	}
	return v
}

// reports masks the list of intervals: the last one goes if it is short, as whether
// there is such a rest depends on microseconds, and equal ones are folded.
func (m masker) reports(list []any) []any {
	if n := len(list); n >= 2 && length(list[n-1]) < length(list[n-2])/2 {
		list = list[:n-1]
	}
	var out []any
	last := ""
	for _, r := range list {
		masked := m.value([]string{"intervals"}, r)
		s := string(cjson.AppendCompact(nil, masked))
		if s != last {
			out = append(out, masked)
		}
		last = s
	}
	return out
}

func length(report any) float64 {
	o, _ := report.(*cjson.Object)
	sum, _ := o.Get("sum").(*cjson.Object)
	s, _ := sum.Get("seconds").(float64)
	return s
}

var (
	httpDateRE = regexp.MustCompile(`^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$`)
	cookieRE   = regexp.MustCompile(`^[a-z2-7]{36}$`)
	wordRE     = regexp.MustCompile(`^\w+$`)
)

func text(key, v string) string {
	switch key {
	case "time":
		if httpDateRE.MatchString(v) {
			return "<date>"
		}
	case "cookie":
		if cookieRE.MatchString(v) {
			return "<cookie>"
		}
	case "system_info":
		if len(strings.Fields(v)) >= 5 {
			return "<system>"
		}
	case "sender_tcp_congestion", "receiver_tcp_congestion":
		if wordRE.MatchString(v) {
			return "<name>"
		}
	case "server_output_text":
		return strings.Join(layout(v), "\n")
	}
	return v
}

// The numbers. Those that are in none of these are whole and follow from the run.
var (
	// given follow from the command line.
	given = []string{
		"socket", "tcp_mss", "target_bitrate", "fq_rate", "sock_bufsize", "num_streams", "blksize", "omit", "duration", "blocks",
		"reverse", "tos", "bidir", "fqrate", "interval", "gso", "gro", "size", "percent_sent",
	}
	// real may have a fraction.
	real = []string{
		"start", "end", "seconds", "bits_per_second", "jitter_ms", "lost_percent",
		"host_total", "host_user", "host_system", "remote_total", "remote_user", "remote_system",
	}
	// measured are 0 only where nobody could know them.
	measured = []string{
		"bytes", "bits_per_second", "max_snd_cwnd", "max_snd_wnd", "max_rtt", "min_rtt", "mean_rtt",
		"snd_cwnd", "snd_wnd", "rtt", "pmtu", "sndbuf_actual", "rcvbuf_actual", "timesecs", "timemillisecs",
	}
)

func (m masker) number(path []string, key string, v float64) any {
	in := func(name string) bool { return slices.Contains(path, name) }
	switch {
	case slices.Contains(given, key), key == "bytes" && in("test_start"), key == "start" && in("end"):
		return v
	case key == "port" && in("connecting_to"), strings.HasSuffix(key, "_port") && v == 5201:
		return v
	case m.server && in("cpu_utilization_percent") && strings.HasPrefix(key, "remote_"):
		return v
	case !slices.Contains(real, key) && v != math.Trunc(v):
		return fmt.Sprintf("<not whole: %v>", v)
	case v < 0:
		return "<negative>"
	case v == 0 && slices.Contains(measured, key) && in("end") && !m.broken:
		return v
	case v == 0 && slices.Contains(measured, key) && !in("end") && key != "bytes" && key != "bits_per_second":
		return v
	}
	if slices.Contains(real, key) {
		return "<number>"
	}
	return "<whole>"
}

func TestShapes(t *testing.T) {
	t.Parallel()
	const doc = `{"start":{"version":"iperf 3.21","timestamp":{"time":"Mon, 30 Nov 2026 07:09:39 GMT","timesecs":1796022579}},
"intervals":[{"sum":{"start":0,"seconds":1,"bytes":5,"omitted":false}},{"sum":{"start":1,"seconds":1.01,"bytes":0,"omitted":false}},{"sum":{"start":2,"seconds":0.01,"bytes":1,"omitted":true}}],
"end":{"sum_sent":{"start":0,"bytes":0,"seconds":2},"sum_received":{"bytes":7,"retransmits":1.5}}}`
	docs, err := readDocuments(doc)
	if err != nil {
		t.Fatal(err)
	}
	want := `{
	"start":	{
		"version":	"iperf 3.21",
		"timestamp":	{
			"time":	"<date>",
			"timesecs":	"<whole>"
		}
	},
	"intervals":	[{
			"sum":	{
				"start":	"<number>",
				"seconds":	"<number>",
				"bytes":	"<whole>",
				"omitted":	false
			}
		}],
	"end":	{
		"sum_sent":	{
			"start":	0,
			"bytes":	0,
			"seconds":	"<number>"
		},
		"sum_received":	{
			"bytes":	"<whole>",
			"retransmits":	"<not whole: 1.5>"
		}
	}
}`
	if diff := cmp.Diff(strings.Split(want, "\n"), shapes(docs, false)); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{`{"a":1`, `{"a":}`, "{}\n]"} {
		if docs, err := readDocuments(bad); err == nil {
			t.Errorf("%q: %v", bad, docs)
		}
	}
}
