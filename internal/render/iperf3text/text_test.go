package iperf3text_test

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/render/goldentest"
	"github.com/fullbore-net/fullbore/internal/render/iperf3json"
	"github.com/fullbore-net/fullbore/internal/render/iperf3text"
	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/result"
)

// decode returns the run of a recorded document.
func decode(t *testing.T, file string) *result.Run {
	t.Helper()
	r, err := iperf3json.Decode(goldentest.One(t, "3.21", file).Data)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// play replays r and returns what was printed, and where errors go.
func play(t *testing.T, r *result.Run, o iperf3text.Options) (string, string) {
	t.Helper()
	var out, errs bytes.Buffer
	o.Err = &errs
	p := iperf3text.New(&out, o)
	for _, e := range result.Unfold(r) {
		p.Event(e)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	return out.String(), errs.String()
}

// lines counts Writes and checks that each is whole lines.
type lines struct {
	t *testing.T
	n int
}

func (l *lines) Write(p []byte) (int, error) {
	l.n++
	if !bytes.HasSuffix(p, []byte("\n")) {
		l.t.Errorf("half a line: %q", p)
	}
	return len(p), nil
}

// TestLive: each event's lines are out when the event is; the rows of the other end,
// which only a fullbore peer sends, are not iperf3's.
func TestLive(t *testing.T) {
	t.Parallel()
	run := decode(t, "tcp_P3_json.client.json")
	w := &lines{t: t}
	r := iperf3text.New(w, iperf3text.Options{})
	var counts []int
	for _, e := range result.Unfold(run) {
		if e.Kind == result.KindFinish {
			foreign := run.Rows[0]
			foreign.End = result.Server
			r.Event(result.Event{Kind: result.KindInterval, End: result.Server, Interval: &foreign})
		}
		r.Event(e)
		counts = append(counts, w.n)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	counts = append(counts, w.n)
	// connecting; three streams; header, three rows and a sum; nothing; separator,
	// header, eight rows, blank, farewell.
	if diff := cmp.Diff([]int{1, 4, 9, 9, 21}, counts); diff != "" {
		t.Errorf("lines written after each event: %s", diff)
	}
}

// TestTimes: ids of three digits, long runs, and a start before the omit period's end.
func TestTimes(t *testing.T) {
	t.Parallel()
	run := decode(t, "tcp_O1_json.client.json")
	run.Streams[0].Socket = 123
	for i := range run.Rows {
		run.Rows[i].Streams[0].Socket = 123
	}
	last := &run.Rows[1].Streams[0]
	last.Start, last.Stop, last.Bytes = 86399.004, 86400.0049, 1<<40
	n := int64(1234)
	last.Retransmits = &n
	out, _ := play(t, run, iperf3text.Options{})
	for _, want := range []string{
		"[123] local 192.0.2.1 port ",
		"       (omitted)\n",
		"[123] 86399.00-86400.00 sec  1.00 TBytes  8.79 Tbits/sec  1234    393 KBytes       \n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestOneRow: with -i 0 the omitted part has no row, only -V tells its end.
func TestOneRow(t *testing.T) {
	t.Parallel()
	run := decode(t, "tcp_O1_json.client.json")
	run.Test.Interval = 0
	quiet, _ := play(t, run, iperf3text.Options{})
	if strings.Contains(quiet, "omitted") || strings.Contains(quiet, "Finished") {
		t.Error(quiet)
	}
	for _, rows := range [][]result.Interval{run.Rows, run.Rows[1:]} {
		c := *run
		c.Rows = rows
		verbose, _ := play(t, &c, iperf3text.Options{Verbose: true})
		if strings.Count(verbose, "\nFinished omit period, starting real test\n[ ID] ") != 1 || strings.Contains(verbose, "(omitted)") {
			t.Error(verbose)
		}
	}
}

// TestShortRows: an empty rest is dropped, one with data stays.
func TestShortRows(t *testing.T) {
	t.Parallel()
	run := decode(t, "tcp_json.server.json")
	rest := result.Interval{End: result.Server, Index: 2, Start: 2.00038, Stop: 2.01, Partial: true, Streams: []result.StreamInterval{{Socket: 5, Start: 2.00038, Stop: 2.01}}}
	plain, _ := play(t, run, iperf3text.Options{})
	run.Rows = append(run.Rows, rest)
	if dropped, _ := play(t, run, iperf3text.Options{}); dropped != plain {
		t.Error(cmp.Diff(plain, dropped))
	}
	run.Rows[2].Streams[0].Bytes = 1
	kept, _ := play(t, run, iperf3text.Options{})
	if want := "[  5]   2.00-2.01   sec  1.00 Bytes   832 bits/sec                  \n"; !strings.Contains(kept, want) {
		t.Error(kept)
	}
}

func TestOutOfOrder(t *testing.T) {
	t.Parallel()
	run := decode(t, "udp_bidir_json.client.json")
	n := int64(7)
	run.Streams[1].Receiver.OutOfOrder = &n
	out, _ := play(t, run, iperf3text.Options{})
	want := "sender\n[SUM][RX-C]  0.0- 1.0 sec  7 datagrams received out-of-order\n[  7][RX-C] "
	if strings.Count(out, "out-of-order") != 1 || !strings.Contains(out, want) {
		t.Error(out)
	}
}

// TestBlocks: the test's limit in words.
func TestBlocks(t *testing.T) {
	t.Parallel()
	run := decode(t, "tcp_json.client.json")
	for want, set := range map[string]func(*result.Test){
		"omitting 0 seconds, 2 second test, tos 0\n":       func(*result.Test) {},
		"omitting 0 seconds, 3000 bytes to send, tos 0\n":  func(t *result.Test) { t.Duration, t.Bytes = 0, 3000 },
		"omitting 1.5 seconds, 50 blocks to send, tos 8\n": func(t *result.Test) { t.Duration, t.Blocks, t.Omit, t.TOS = 0, 50, 1.5, 8 },
	} {
		c := *run
		set(&c.Test)
		out, _ := play(t, &c, iperf3text.Options{Verbose: true})
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestHostileText: what the other end sends cannot move the terminal's cursor or break
// lines where there are none.
func TestHostileText(t *testing.T) {
	t.Parallel()
	run := decode(t, "gso_json_clientJ_servertext.client.json")
	text := "one\x1b[2Jtwo\r\n\x00three\xff\u009b4m\n"
	run.Wire.ServerText = &text
	run.CPU.Server.Congestion = "b\abr"
	out, _ := play(t, run, iperf3text.Options{Verbose: true})
	if want := "\nServer output:\none\uFFFD[2Jtwo\uFFFD\n\uFFFDthree\uFFFD\uFFFD4m\n\n\niperf Done.\n"; !strings.HasSuffix(out, want) {
		t.Errorf("%q", out[len(out)-120:])
	}
	if !strings.Contains(out, "rcv_tcp_congestion b\uFFFDbr\n") {
		t.Error(out)
	}
}

// TestErrors: prefixes by end, kind and release.
func TestErrors(t *testing.T) {
	t.Parallel()
	interrupt := &result.Error{Code: "interrupted", Text: "stopped at the keyboard", Interrupted: true, Signal: "Hangup(1)"}
	for _, c := range []struct {
		end  result.End
		rel  iperf3view.Release
		err  *result.Error
		want string
	}{
		{result.Client, "", interrupt, "iperf3: interrupt - the client has terminated by signal Hangup(1)\n"},
		{result.Client, "3.12", interrupt, "iperf3: interrupt - the client has terminated\n"},
		{result.Server, "", interrupt, "iperf3: interrupt - the server has terminated by signal Hangup(1)\n"},
		{result.Client, "", &result.Error{Text: "no", Remote: true, Reported: true}, "iperf3: SERVER ERROR - no\niperf3: error - no\n"},
		{result.Client, "3.12", &result.Error{Text: "no", Remote: true, Reported: true}, "iperf3: error - no\n"},
		{result.Server, "", &result.Error{Text: "no", Remote: true, Reported: true}, "iperf3: error - no\n"},
		{result.Server, "", &result.Error{Text: "gone", Remote: true, Number: 119}, "iperf3: gone\n"},
		{result.Client, "", &result.Error{Text: "gone", Remote: true, Number: 120}, "iperf3: error - gone\n"},
	} {
		out, errs := play(t, &result.Run{Err: c.err}, iperf3text.Options{Release: c.rel, End: c.end})
		if errs != c.want || out != "" {
			t.Errorf("%s %s %+v: %q %q, want %q", c.end, c.rel, c.err, errs, out, c.want)
		}
	}
	_, errs := play(t, &result.Run{Err: interrupt}, iperf3text.Options{
		Timestamps: "[%Y] ",
		ErrorLines: func(_ *result.Error, end result.End, release string) []string {
			return []string{string(end) + " " + release, "two"}
		},
	})
	if !regexp.MustCompile(`^\[20\d\d\] iperf3: client 3\.21\n\[20\d\d\] iperf3: two\n$`).MatchString(errs) {
		t.Errorf("%q", errs)
	}
}

// broken is a full disk.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestWriteError(t *testing.T) {
	t.Parallel()
	r := iperf3text.New(broken{}, iperf3text.Options{})
	for _, e := range result.Unfold(decode(t, "tcp_json.client.json")) {
		r.Event(e)
	}
	if err := r.Close(); err == nil || err.Error() != "no space" {
		t.Error(err)
	}
}
