//go:build linux

package fieldcases

import (
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// compatible are the keys that programs read, once each wherever they belong.
var compatible = []string{
	"start.sock_bufsize", "start.sndbuf_actual", "start.rcvbuf_actual", "start.connected", "start.cookie", "start.target_bitrate", "start.fq_rate",
	"start.test_start.protocol", "start.test_start.num_streams", "start.test_start.bidir", "start.test_start.reverse",
	"intervals.0.streams", "intervals.0.sum", "end.streams", "end.sum_sent", "end.sum_received", "end.cpu_utilization_percent",
}

// compatibleUDP are those that are only there with UDP.
var compatibleUDP = []string{
	"end.sum.bytes", "end.sum.bits_per_second", "end.sum.jitter_ms", "end.sum.lost_packets", "end.sum.packets", "end.sum.lost_percent",
	"end.sum.seconds", "end.streams.0.udp.out_of_order",
}

// F46: no key twice, and the names that programs read are there.
func TestDuplicateKeys(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve("-J")
	for i, args := range [][]string{
		{"-P", "2"},
		{"--bidir"},
		{"--bidir", "-P", "2"},
		{"-R", "-P", "2"},
		{"-u", "-P", "2"},
		{"-u", "--bidir"},
		{"-u", "--bidir", "-P", "2"},
		{"-u", "-R", "-P", "2"},
	} {
		d := b.json(append(args, "-b", "1M", "-t", "1")...)
		b.until("the server has printed its document", func() bool { return len(b.documents(srv.Stdout())) > i || ended(srv) })
		keys := compatible
		if args[0] == "-u" {
			keys = slices.Concat(keys, compatibleUDP)
		}
		if slices.Contains(args, "--bidir") {
			keys = append(slices.Clone(keys), "intervals.0.sum_bidir_reverse", "end.sum_sent_bidir_reverse", "end.sum_received_bidir_reverse")
		}
		for who, x := range map[string]doc{"client": d, "server": b.documents(srv.Stdout())[i]} {
			for _, key := range keys {
				if !x.has(key) {
					t.Errorf("%v: the %s's document has no %s", args, who, key)
				}
			}
		}
	}
}

// F47: text that is not UTF-8, from the command line and from the peer.
func TestNotUTF8(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve("-J")
	printed := func(n int) doc { // parse is strict
		t.Helper()
		b.until("the server has printed its document", func() bool { return len(b.documents(srv.Stdout())) >= n || ended(srv) })
		return b.documents(srv.Stdout())[n-1]
	}
	d := b.json("-t", "1", "-b", "1M", "-T", "bad\xff\xfetitle", "--extra-data", "x\xc3(")
	for who, x := range map[string]doc{"client": d, "server": printed(1)} {
		if s := x.at("title").(string); !strings.HasPrefix(s, "bad") || !strings.HasSuffix(s, "title") {
			t.Errorf("%s: title is %q", who, s)
		}
		if s := x.at("extra_data").(string); !strings.HasPrefix(s, "x") || !strings.HasSuffix(s, "(") {
			t.Errorf("%s: extra_data is %q", who, s)
		}
	}
	const odd = "say \"hello\" \\ back\\slash\nsecond line\ttab \u00e9 \U0001f600"
	d = b.json("-n", "64K", "-T", odd, "--extra-data", odd)
	for who, x := range map[string]doc{"client": d, "server": printed(2)} {
		if x.at("title") != odd || x.at("extra_data") != odd {
			t.Errorf("%s: title %q and extra_data %q, want %q", who, x.at("title"), x.at("extra_data"), odd)
		}
	}
	for i, text := range oddTexts {
		b.play(params(`"title":"`+text+`","extra_data":"`+text+`","congestion":"`+text+`"`), figures(`"congestion_used":"`+text+`",`, 100_000, 0))
		if s := printed(3 + i).at("title").(string); !strings.HasPrefix(s, "cu") || !strings.HasSuffix(s, "bic") {
			t.Errorf("title %q became %q", text, s)
		}
	}
}

// oddTexts go between the quotes of a JSON string.
var oddTexts = []string{"cu\xffbic", "cu\x00bic", `cu\u0000bic`, `cu\ud800bic`, `cu\udfffbic`, "cu\xed\xa0\x80bic"}

// F47, the other direction: a server whose answer is not UTF-8.
func TestNotUTF8FromServer(t *testing.T) {
	t.Parallel()
	b := pair(t)
	for _, text := range oddTexts {
		for _, key := range []string{"congestion_used", "server_output_text"} {
			over := b.answer(func(n int64) string { return figures(`"`+key+`":"`+text+`",`, n, -1) })
			d := b.json("-n", "64K", "--get-server-output") // exits 0, and the document is read strictly
			b.check(<-over)
			at := map[string]string{"congestion_used": "end.receiver_tcp_congestion", "server_output_text": "server_output_text"}[key]
			if s := d.at(at).(string); !strings.HasPrefix(s, "cu") || !strings.HasSuffix(s, "bic") {
				t.Errorf("%s %q became %q", key, text, s)
			}
		}
	}
}

// F48: one document on standard output, whatever happens.
func TestOneDocument(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve()
	const hole = "10.77.0.3" // answers ARP, drops the rest
	b.check(b.net.Far.AddAddress("vb", hole+"/24"))
	b.check(b.net.Far.NFT(b.ctx(time.Minute), `table inet hole { chain i { type filter hook input priority 0; ip daddr `+hole+` drop; }; }`))

	failed := func(code int, stdout, stderr string, words ...string) {
		t.Helper()
		d := b.parse(stdout)
		if code != 1 {
			t.Errorf("exit %d", code)
		}
		if !d.has("error") {
			t.Fatalf("no error in %s", stdout)
		}
		b.says(d.at("error").(string), words...)
		if stderr != "" {
			t.Errorf("stderr says %q", stderr)
		}
	}
	r := b.client("-J", "-n", "64K")
	if d := b.parse(r.Stdout); d.has("error") || r.Code != 0 || r.Stderr != "" {
		t.Errorf("normal: exit %d, stderr %q, error %v", r.Code, r.Stderr, d.v["error"])
	}
	r = b.client("-J", "-n", "64K", "-p", "5399")
	failed(r.Code, r.Stdout, r.Stderr, "unable to connect", "refused")
	r = b.clientTo("no-such-host.invalid", time.Minute, "-J", "-n", "64K")
	failed(r.Code, r.Stdout, r.Stderr, "unable to connect")
	begin := time.Now()
	r = b.clientTo(hole, time.Minute, "-J", "-n", "64K", "--connect-timeout", "500")
	failed(r.Code, r.Stdout, r.Stderr, "unable to connect")
	b.within("seconds of --connect-timeout 500", time.Since(begin).Seconds(), 0.5, 2)

	holder := b.start(b.net.Near, "-c", b.addr, "-p", port, "-b", "1M", "-t", "60", "-J")
	rows := srvRows(srv)
	b.until("the server receives", func() bool { return srvRows(srv) > rows || ended(holder) })
	r = b.client("-J", "-n", "64K")
	failed(r.Code, r.Stdout, r.Stderr, "busy")
	b.check(holder.Signal(os.Interrupt))
	code, err := holder.Wait(b.ctx(20 * time.Second))
	b.check(err)
	d := b.parse(holder.Stdout())
	if code != 0 || holder.Stderr() != "" { // 0 since 3.19 on signals
		t.Errorf("SIGINT: exit %d, stderr %q", code, holder.Stderr())
	}
	b.says(d.at("error").(string), "interrupt")
	if !d.has("end.sum_sent.bytes") {
		t.Error("SIGINT: no own totals")
	}

	// Parameter errors go to stderr and leave stdout empty, as they do in iperf3.
	for _, c := range []struct {
		args  []string
		words []string
	}{{[]string{"-t", "86401"}, []string{"86400"}}, {[]string{"--bogus"}, []string{"bogus"}}} {
		r = b.client(append([]string{"-J"}, c.args...)...)
		if r.Code != 1 || r.Stdout != "" {
			t.Errorf("%v: exit %d, stdout %q", c.args, r.Code, r.Stdout)
		}
		b.says(r.Stderr, c.words...)
	}
	for _, args := range [][]string{{"-d"}, {"-V"}, {"--forceflush"}, {"-V", "-d"}} {
		if d := b.json(append(args, "-n", "64K")...); d.has("error") {
			t.Errorf("%v: error %v", args, d.at("error"))
		}
	}

	plain := b.json("-t", "1", "-b", "1M")
	r = b.good("-t", "1", "-b", "1M", "-f", "M", "-J")
	format := b.parse(r.Stdout)
	if got, want := shape(format.v), shape(plain.v); !reflect.DeepEqual(got, want) {
		t.Errorf("-f M changes the document: %v, was %v", got, want)
	}
	b.within("bit/s with -f M", format.num("end.sum_received.bits_per_second"), 0.8e6, 1.3e6)
}

// shape is a document without its values: the sorted paths and kinds.
func shape(v any) []string {
	seen := map[string]bool{}
	var visit func(path string, v any)
	visit = func(path string, v any) {
		switch x := v.(type) {
		case map[string]any:
			for k, v := range x {
				visit(path+"."+k, v)
			}
		case []any:
			for _, v := range x {
				visit(path+"[]", v)
			}
		default:
			seen[fmt.Sprintf("%s %T", path, v)] = true
		}
	}
	visit("", v)
	var all []string
	for s := range seen {
		all = append(all, s)
	}
	slices.Sort(all)
	return all
}

// F49: 128 streams.
func TestManyStreams(t *testing.T) {
	b := pair(t)
	srv := b.serve("-1", "-J")
	d := b.json("-P", "128", "-t", "1", "-b", "100K")
	<-srv.Done()
	for who, x := range map[string]doc{"client": d, "server": b.parse(srv.Stdout())} {
		if n := len(x.list("end.streams")); n != 128 {
			t.Errorf("%s: %d streams", who, n)
		}
		for i := range x.list("end.streams") {
			if x.num("end.streams."+itoa(i)+".receiver.bytes") == 0 {
				t.Errorf("%s: stream %d received nothing", who, i)
			}
		}
	}
}

// F49: the server's output is whole, however long it is.
func TestServerOutput(t *testing.T) {
	for _, c := range []struct {
		name            string
		reverse, asJSON bool
	}{{"text", false, false}, {"text-reverse", true, false}, {"json", false, true}, {"json-reverse", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := pair(t)
			server := []string{"-i", "0.1"}
			if c.asJSON {
				server = append(server, "-J")
			}
			b.serve(server...)
			args := []string{"-P", "32", "-t", "6", "-i", "0.1", "-b", "50K", "--get-server-output"}
			if c.reverse {
				args = append(args, "-R")
			}
			d := b.json(args...)
			starts, ends := d.times("intervals")
			covered(b, "client's document", starts, ends)
			if c.asJSON {
				checkOutputJSON(b, d, c.reverse)
				return
			}
			checkOutputText(b, d.at("server_output_text").(string), c.reverse)
		})
	}
}

// covered checks rows of 0.1 s: each begins where the one before ended, together they
// fill 6 s, and there are 60 but for those that a busy machine made longer.
func covered(b *bench, what string, starts, ends []float64) {
	b.Helper()
	at := 0.0
	for i := range starts {
		if math.Abs(starts[i]-at) > 0.011 {
			b.Errorf("%s: row %d begins at %v, the one before ended at %v", what, i, starts[i], at)
		}
		at = ends[i]
	}
	b.within(what+": end of the last row", at, 5.99, 6.5)
	b.within(what+": rows", float64(len(starts)), 55, 62)
}

func (d doc) times(path string) (starts, ends []float64) {
	d.b.Helper()
	for i := range d.list(path) {
		row := fmt.Sprintf("%s.%d.sum.", path, i)
		starts, ends = append(starts, d.num(row+"start")), append(ends, d.num(row+"end"))
	}
	return starts, ends
}

func checkOutputJSON(b *bench, d doc, reverse bool) {
	b.Helper()
	if _, ok := d.at("server_output_json").(map[string]any); !ok {
		b.Fatalf("server_output_json is a %T", d.at("server_output_json"))
	}
	own := "end.sum_received.bytes" // the server's figure, also in the client's document
	if reverse {
		own = "end.sum_sent.bytes"
	}
	if got, want := d.num("server_output_json."+own), d.num(own); got != want || got == 0 {
		b.Errorf("the server says %s is %v, the client %v", own, got, want)
	}
	starts, ends := d.times("server_output_json.intervals")
	covered(b, "server's document", starts, ends)
	for i := range starts {
		if n := len(d.list(fmt.Sprintf("server_output_json.intervals.%d.streams", i))); n != 32 {
			b.Errorf("interval %d has %d streams", i, n)
		}
	}
	doc{b, d.at("server_output_json").(map[string]any)}.addUp("server's document", "bytes")
}

var outputRow = regexp.MustCompile(`^\[ *(\d+|SUM)\] +([\d.]+)-([\d.]+) +sec .*bits/sec(.*)$`)

func checkOutputText(b *bench, text string, reverse bool) {
	b.Helper()
	end := "receiver"
	if reverse {
		end = "sender"
	}
	var starts, ends []float64
	streams, summary := 0, 0
	for line := range strings.Lines(text) {
		m := outputRow.FindStringSubmatch(strings.TrimRight(line, "\n"))
		switch {
		case m == nil:
		case strings.HasSuffix(strings.TrimSpace(m[4]), end):
			summary++
		case m[1] == "SUM":
			if streams != 32 {
				b.Errorf("the interval up to %s has %d lines, want 32", m[3], streams)
			}
			streams = 0
			from, ferr := strconv.ParseFloat(m[2], 64)
			to, terr := strconv.ParseFloat(m[3], 64)
			b.check(errors.Join(ferr, terr))
			starts, ends = append(starts, from), append(ends, to)
		default:
			streams++
		}
	}
	covered(b, "server's text", starts, ends)
	if summary != 33 {
		b.Errorf("the summary has %d lines, want 33:\n%s", summary, text[max(0, len(text)-4000):])
	}
	b.says(text, "Accepted connection from", "- - - -")
}

// F49: documents of nearly 16 MB from a peer whose test is running.
func TestLargeDocuments(t *testing.T) {
	t.Parallel()
	const size = 16<<20 - 4096
	b := pair(t)
	over := b.answer(func(n int64) string {
		return figures(`"server_output_text":"`+strings.Repeat("0123456789abcde\\n", size/17)+`",`, n, -1)
	})
	d := b.json("-n", "64K", "--get-server-output")
	b.check(<-over)
	if n := len(d.at("server_output_text").(string)); n != size/17*16 {
		t.Errorf("%d bytes of the server's output, want %d", n, size/17*16)
	}
	srv := b.serve()
	b.play(params(""), figures(`"padding":"`+strings.Repeat("x", size)+`",`, 100_000, 0))
	b.good("-n", "64K")
	if ended(srv) {
		t.Error("the server is gone")
	}
}
