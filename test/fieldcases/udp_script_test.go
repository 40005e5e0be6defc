//go:build linux

package fieldcases

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// SCRIPT over UDP: datagrams with sequence numbers and times that no real sender makes.

// udpParams are the parameters of a test of one UDP stream with 32-bit counters.
func udpParams(size int) string {
	return fmt.Sprintf(`{"udp":true,"omit":0,"time":10,"num":0,"blockcount":0,"parallel":1,"len":%d,"bandwidth":1000000,"pacing_timer":1000,"client_version":"3.12"}`, size)
}

// udpFigures are the results of a client that sent so many datagrams.
func udpFigures(packets, bytes int64) string {
	return fmt.Sprintf(`{"cpu_util_total":1,"cpu_util_user":0.5,"cpu_util_system":0.5,"sender_has_retransmits":0,"streams":[`+
		`{"id":1,"bytes":%d,"retransmits":-1,"jitter":0,"errors":0,"omitted_errors":0,"packets":%d,"omitted_packets":0,"start_time":0,"end_time":1}]}`,
		bytes, packets)
}

// script is a UDP test whose client this test plays.
type script struct {
	b      *bench
	wire   wire
	stream net.Conn
	size   int
}

// begin gets a test of one stream to the point where data may flow.
func (b *bench) begin(size int) *script {
	b.Helper()
	s := &script{b: b, wire: b.hello(""), size: size}
	b.check(s.wire.sendDoc(udpParams(size)))
	b.check(s.wire.expect(createStreams))
	b.check(b.net.Near.Do(func() (err error) {
		s.stream, err = net.Dial("udp", net.JoinHostPort(b.addr, port))
		return err
	}))
	b.Cleanup(func() { _ = s.stream.Close() })
	_, err := io.WriteString(s.stream, "9876")
	b.check(err)
	b.check(s.stream.SetReadDeadline(time.Now().Add(10 * time.Second)))
	var answer [64]byte
	n, err := s.stream.Read(answer[:])
	b.check(err)
	if string(answer[:n]) != "6789" {
		b.Fatalf("the greeting is answered by % x", answer[:n])
	}
	b.check(s.wire.expect(testStart, testRunning))
	return s
}

// send sends a datagram with a sequence number and a time.
func (s *script) send(seq uint32, at time.Duration) {
	s.b.Helper()
	d := make([]byte, s.size)
	binary.BigEndian.PutUint32(d, uint32(at/time.Second))
	binary.BigEndian.PutUint32(d[4:], uint32(at%time.Second/time.Microsecond))
	binary.BigEndian.PutUint32(d[8:], seq)
	_, err := s.stream.Write(d)
	s.b.check(err)
}

// answer is what the server tells of its stream.
type told struct {
	Packets    int64
	Errors     int64
	Bytes      int64
	Jitter     float64
	OutOfOrder int64
}

// end exchanges results.
func (s *script) end(results string) told {
	b, w := s.b, s.wire
	b.Helper()
	b.check(w.send(testEnd))
	b.check(w.expect(exchangeResults))
	b.check(w.sendDoc(results))
	doc, err := w.readDoc()
	b.check(err)
	b.check(w.expect(displayResults))
	b.check(w.send(iperfDone))
	var r struct{ Streams []told }
	b.check(json.Unmarshal(doc, &r))
	if len(r.Streams) != 1 {
		b.Fatalf("results of %d streams: %s", len(r.Streams), doc)
	}
	return r.Streams[0]
}

// F02, by hand: 100 were sent, the last ten never arrived.
func TestLostTail(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve("-J")
	s := b.begin(1000)
	begin := time.Now()
	for seq := range uint32(90) {
		s.send(seq+1, time.Since(begin))
	}
	got := s.end(udpFigures(100, 100_000))
	if got.Errors != 10 || got.Packets != 100 || got.Bytes != 90_000 {
		t.Errorf("the server tells %+v, want 10 lost of 100", got)
	}
	d := b.printed(srv, 1)
	d.sane("server")
	for _, sum := range []string{"end.sum", "end.sum_received", "end.streams.0.udp"} {
		if lost, of := d.num(sum+".lost_packets"), d.num(sum+".packets"); lost != 10 || of != 100 {
			t.Errorf("%s: %v of %v lost, want 10 of 100", sum, lost, of)
		}
	}
}

// F03: 32-bit counters go on after 2^32.
func TestCounterWraps(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve("--json-stream", "--json-stream-full-output")
	s := b.begin(16)
	begin := time.Now()
	rows := func() int { return strings.Count(srv.Stdout(), `"event":"interval"`) }
	s.send(1, time.Since(begin))
	for seq := uint64(0xffffffce); seq <= 0xffffffff; seq++ {
		s.send(uint32(seq), time.Since(begin))
	}
	b.until("the first interval is over", func() bool { return rows() >= 1 || ended(srv) })
	for seq := range uint32(50) {
		s.send(seq, time.Since(begin))
	}
	b.until("the second interval is over", func() bool { return rows() >= 2 || ended(srv) })
	const total = 1<<32 + 49
	got := s.end(udpFigures(total, 101*16))
	if got.Packets != total {
		t.Errorf("the server tells %d datagrams, want %d", got.Packets, int64(total))
	}
	b.until("the server has printed its document", func() bool { return strings.Contains(srv.Stdout(), "\n}\n") || ended(srv) })
	_, full, _ := strings.Cut(srv.Stdout(), `{"event":"end"`)
	_, full, _ = strings.Cut(full, "\n")
	d := b.parse(full)
	d.sane("server")
	for path, want := range map[string]float64{
		"intervals.1.sum.lost_packets": 0, "intervals.1.sum.packets": 50, "intervals.1.sum.lost_percent": 0,
		"end.streams.0.udp.out_of_order": 0, "end.streams.0.udp.packets": total, "end.sum_received.packets": total,
	} {
		if v := d.num(path); v != want {
			t.Errorf("%s is %v, want %v", path, v, want)
		}
	}
}

// F03: a test that could send more than 32 bits count asks for 64.
func TestWideCounters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"-l", "16", "-b", "0", "-t", "0"}, true},
		{[]string{"-l", "16", "-b", "10M", "-t", "86400"}, true},
		{[]string{"-l", "1400", "-b", "10M", "-t", "10"}, false},
		{[]string{"-l", "1400", "-b", "10M", "-t", "10", "--udp-counters-64bit"}, true},
	} {
		b := pair(t)
		var ln net.Listener
		b.check(b.net.Far.Do(func() (err error) {
			ln, err = net.Listen("tcp", net.JoinHostPort(b.addr, port))
			return err
		}))
		t.Cleanup(func() { _ = ln.Close() })
		p := b.start(b.net.Near, append([]string{"-c", b.addr, "-p", port, "-u"}, c.args...)...)
		w, err := accept(ln)
		b.check(err)
		b.check(w.send(paramExchange))
		doc, err := w.readDoc()
		b.check(err)
		var params map[string]any
		b.check(json.Unmarshal(doc, &params))
		if _, got := params["udp_counters_64bit"]; got != c.want {
			t.Errorf("%v: asks for 64-bit counters: %v, want %v", c.args, got, c.want)
		}
		b.check(w.Close())
		_, err = p.Wait(b.ctx(time.Minute))
		b.check(err)
	}
}

// F04: a clock that is set during the test, and one that began elsewhere, leave the
// jitter alone.
func TestClockStep(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			t.Parallel()
			b := pair(t)
			srv := b.serve("-J")
			s := b.begin(1000)
			begin := time.Now()
			at := 100_000 * time.Second
			for seq := range uint32(100) {
				if seq == 50 {
					at += step
				}
				s.send(seq+1, at+time.Since(begin))
			}
			got := s.end(udpFigures(100, 100_000))
			b.within("jitter told, ms", 1000*got.Jitter, 0, 10)
			d := b.printed(srv, 1)
			d.sane("server")
			seen := 0
			every(d.v, "jitter_ms", func(ms float64) {
				seen++
				b.within("jitter, ms", ms, 0, 10)
			})
			if seen < 3 {
				t.Errorf("%d figures of jitter", seen)
			}
		})
	}
}

// F04: ends whose monotonic clocks began at different times.
func TestDifferentEpochs(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve("-J")
	for i, args := range [][]string{{}, {"-R"}, {"--bidir"}} {
		words := append([]string{"unshare", "-T", "--monotonic", "500000", "--fork", "--kill-child", program, "iperf3", "-c", b.addr, "-p", port, "-u", "-b", "2M", "-t", "1", "-J"}, args...)
		r, err := b.net.Near.Run(b.ctx(time.Minute), words...)
		b.check(err)
		if r.Code != 0 {
			t.Fatalf("%v: exit %d: %s%s", args, r.Code, r.Stdout, r.Stderr)
		}
		for who, d := range map[string]doc{"client": b.parse(r.Stdout), "server": b.printed(srv, i+1)} {
			every(d.v, "jitter_ms", func(ms float64) { b.within(fmt.Sprintf("%v: jitter of the %s, ms", args, who), ms, 0, 10) })
			every(d.v, "lost_packets", func(n float64) { b.within(fmt.Sprintf("%v: lost, says the %s", args, who), n, 0, 0) })
		}
	}
}
