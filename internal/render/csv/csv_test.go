package csv_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	render "github.com/fullbore-net/fullbore/internal/render/csv"
	"github.com/fullbore-net/fullbore/internal/render/goldentest"
	"github.com/fullbore-net/fullbore/internal/render/iperf3json"
	"github.com/fullbore-net/fullbore/result"
)

var update = flag.Bool("update", false, "write docs/csv.md anew")

func print(t *testing.T, runs ...*result.Run) string {
	t.Helper()
	var b bytes.Buffer
	w := render.New(&b)
	for _, r := range runs {
		for _, e := range result.Unfold(r) {
			w.Event(e)
		}
		w.Finish(r)
	}
	if err := w.Err(); err != nil {
		t.Error(err)
	}
	return b.String()
}

// table reads what was printed, as any reader of RFC 4180 would.
func table(t *testing.T, text string) []map[string]string {
	t.Helper()
	if strings.Count(text, "\n") != strings.Count(text, "\r\n") {
		t.Errorf("lines do not all end in CR LF:\n%q", text)
	}
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(records) == 0 || len(records[0]) != len(render.Columns) {
		t.Fatalf("no header: %q", text)
	}
	var out []map[string]string
	for _, r := range records[1:] {
		m := map[string]string{}
		for i, v := range r {
			if v != "" {
				m[records[0][i]] = v
			}
		}
		out = append(out, m)
	}
	return out
}

func sample() *result.Run {
	n := func(v int64) *int64 { return &v }
	jitter := 0.0000123
	tcp := &result.TCPInfo{Cwnd: 100000, RTT: 1500, RTTVar: 20, MinRTT: n(1400), SndWnd: n(65536), DeliveryRate: n(9e8)}
	r := &result.Run{
		Schema: 1, ID: "01ABC", End: result.Client, Test: result.Test{Transport: "tcp", Direction: "up", Streams: 1, Interval: 1},
		Hosts: result.Hosts{Client: &result.Host{Name: "=cmd()"}, Server: &result.Host{Name: `a "b", c`}},
		Streams: []result.Stream{{
			ID: 1, Socket: 5, Direction: result.Up,
			Sender:   &result.Total{End: 1.5, Bytes: 1000, Retransmits: n(3)},
			Receiver: &result.Total{End: 2, Bytes: 900, Packets: n(10), Lost: n(1), OutOfOrder: n(2), Jitter: &jitter},
			TCP:      &result.TCPSummary{MaxCwnd: 120000, MaxSndWnd: -1, MeanRTT: 1450, MinRTT: 1400},
		}},
		Rows: []result.Interval{{
			End: result.Client, Omitted: true,
			Streams: []result.StreamInterval{{ID: 1, Sender: true, Start: -0.00002, Stop: 1, Bytes: 500, Retransmits: n(1), TCP: tcp}},
			Sums:    []result.IntervalSum{{Direction: result.Up, Sender: true, Stop: 1, Bytes: 500, BPS: 4000, Retransmits: n(1)}},
		}},
		Notices: []result.Notice{{Code: "window-clamped", End: result.Server, Level: result.Warn, Text: "two\nlines, \"quoted\""}},
		Err:     &result.Error{Code: "peer-closed", Text: "-gone", Remote: true},
	}
	return result.Fold(result.Unfold(r))
}

func TestWriter(t *testing.T) {
	t.Parallel()
	base := func(m map[string]string, more ...string) map[string]string {
		out := map[string]string{"run": "01ABC"}
		for k, v := range m {
			out[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	up := map[string]string{"direction": "up", "from": "'=cmd()", "to": `a "b", c`}
	snd := base(up, "end", "client", "role", "sender")
	rcv := base(up, "end", "server", "role", "receiver")
	row := base(snd, "record", "interval", "start_s", "-0.000020", "stop_s", "1.000000", "omitted", "true", "partial", "false", "bytes", "500", "bits_per_second", "4000", "retransmits", "1")
	total := base(rcv, "record", "total", "start_s", "0.000000", "stop_s", "2.000000", "bytes", "900", "bits_per_second", "3600",
		"packets", "10", "lost", "1", "out_of_order", "2", "jitter_s", "0.000012300")
	sent := base(snd, "record", "total", "start_s", "0.000000", "stop_s", "1.500000", "bytes", "1000", "bits_per_second", "5333", "retransmits", "3")
	want := []map[string]string{
		base(row, "stream", "1", "cwnd_bytes", "100000", "rtt_us", "1500", "rttvar_us", "20", "min_rtt_us", "1400", "snd_wnd_bytes", "65536", "delivery_rate_bps", "900000000"),
		base(row, "stream", "sum", "start_s", "0.000000"),
		base(sent, "stream", "1", "cwnd_bytes", "120000", "rtt_us", "1450", "min_rtt_us", "1400"),
		base(total, "stream", "1"),
		base(sent, "stream", "sum"),
		base(total, "stream", "sum"),
		{"record": "notice", "run": "01ABC", "end": "server", "code": "window-clamped", "text": "two\nlines, \"quoted\""},
		{"record": "error", "run": "01ABC", "end": "server", "code": "peer-closed", "text": "'-gone"},
	}
	if diff := cmp.Diff(want, table(t, print(t, sample()))); diff != "" {
		t.Error(diff)
	}
}

// TestGoldenRuns: each recorded run is one table whose bytes are the run's.
func TestGoldenRuns(t *testing.T) {
	t.Parallel()
	for _, g := range goldentest.Iperf3(t, "*.json") {
		runs, err := iperf3json.DecodeAll(g.Data)
		if err != nil {
			t.Fatal(g.ID(), err)
		}
		rows := table(t, print(t, runs...))
		got := map[string]int64{}
		for _, r := range rows {
			bytes, _ := strconv.ParseInt(r["bytes"], 10, 64)
			got[r["record"]] += bytes
		}
		want := map[string]int64{}
		for _, r := range runs {
			for _, iv := range r.Rows {
				for _, s := range iv.Streams {
					want["interval"] += 2 * s.Bytes // the stream's row and its share of the sum
				}
			}
			for _, s := range r.Streams {
				for _, t := range []*result.Total{s.Sender, s.Receiver} {
					if t != nil {
						want["total"] += 2 * t.Bytes
					}
				}
			}
			if r.Err != nil {
				want["error"] = 0
			}
		}
		for k := range want {
			if _, ok := got[k]; !ok {
				t.Errorf("%s: no %s", g.ID(), k)
			}
		}
		for k, v := range got {
			if want[k] != v {
				t.Errorf("%s: %d bytes in %s rows, want %d", g.ID(), v, k, want[k])
			}
		}
	}
}

// TestSeveralRuns: one header; a row is out when its event is.
func TestSeveralRuns(t *testing.T) {
	t.Parallel()
	second := *sample()
	second.ID = "01DEF"
	text := print(t, sample(), &second)
	if n := strings.Count(text, "record,run,end"); n != 1 || !strings.HasPrefix(text, "record,run,end,") {
		t.Errorf("%d headers", n)
	}
	rows := table(t, text)
	if n := len(rows); n != 16 || rows[7]["run"] != "01ABC" || rows[8]["run"] != "01DEF" {
		t.Errorf("%d rows: %v", n, rows)
	}
	var b bytes.Buffer
	w := render.New(&b)
	for _, e := range result.Unfold(sample()) {
		before := b.Len()
		w.Event(e)
		if (b.Len() > before) != (e.Kind == result.KindInterval) {
			t.Errorf("%s: %d bytes", e.Kind, b.Len()-before)
		}
	}
}

type broken struct{ n int }

func (b *broken) Write(p []byte) (int, error) {
	b.n++
	return 0, errors.New("no space")
}

func TestWriteError(t *testing.T) {
	t.Parallel()
	b := &broken{}
	w := render.New(b)
	for range 3 {
		for _, e := range result.Unfold(sample()) {
			w.Event(e)
		}
		w.Finish(sample())
	}
	if w.Err() == nil || b.n != 1 {
		t.Errorf("%v after %d writes", w.Err(), b.n)
	}
}

// TestDocs: docs/csv.md lists the columns.
func TestDocs(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`# Output with --csv

One table in the form of RFC 4180 (a header, commas, quotes where needed, lines end in CR LF), also over several hosts.
A row per interval and stream comes while the test runs; totals, notices and an error follow at its end.
A field is empty when its value is unknown or means nothing in the row. Numbers are plain decimals in the unit that the
column's name ends in. Text that a spreadsheet would take for a formula has an apostrophe before it.
New columns are added at the end only: read by name or by position.

| column | meaning |
|---|---|
`)
	for _, c := range render.Columns {
		fmt.Fprintf(&b, "| `%s` | %s |\n", c.Name, c.Doc)
	}
	b.WriteString(`
The delivered rate of a run: ` + "`record` = `total`, `role` = `receiver`, `stream` = `sum`" + `.
`)
	file := filepath.Join(goldentest.Root(t), "docs", "csv.md")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(have)); diff != "" {
		t.Errorf("docs/csv.md is old (-update writes it):\n%s", diff)
	}
}
