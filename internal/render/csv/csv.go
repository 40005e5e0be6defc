// Package csv prints runs as a table: a row per interval and stream while a test runs,
// then the totals, notices and what went wrong. The form is RFC 4180: a header, commas,
// quotes where needed, CR LF. Columns describes it; docs/csv.md is made from that.
//
// A field is empty when its value is unknown or means nothing in the row. Numbers are
// plain decimals in the unit that the column's name ends in; true and false are words.
// Text that a spreadsheet would take for a formula has an apostrophe before it.
package csv

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// Column is a column of the table.
type Column struct {
	Name string
	Doc  string
}

// Columns are the columns from left to right. New ones are added at the end only.
var Columns = slices.Concat(testColumns, probeColumns)

var testColumns = []Column{
	{"record", "what the row is: interval, total, probes, notice or error"},
	{"run", "the run's id"},
	{"end", "client or server: which end measured or says it"},
	{"direction", "up (client to server) or down"},
	{"from", "the sending host"},
	{"to", "the receiving host"},
	{"role", "sender or receiver: what that end does in this direction"},
	{"stream", "the stream's id, or sum for all streams of the direction"},
	{"start_s", "begin, seconds on that end's clock since the measured time began"},
	{"stop_s", "end, same clock"},
	{"omitted", "true for intervals of the warm-up (--omit), which no total contains"},
	{"partial", "true for an interval that the end of the test cut short"},
	{"bytes", "payload bytes"},
	{"bits_per_second", "payload bits per second over stop_s − start_s"},
	{"retransmits", "TCP segments sent again, in this interval or in total; only where the sender's kernel tells"},
	{"cwnd_bytes", "congestion window at the end of the interval; in a total the largest seen"},
	{"rtt_us", "smoothed round-trip time in microseconds at the end of the interval; in a total the mean of the intervals' values"},
	{"rttvar_us", "its variation in microseconds"},
	{"min_rtt_us", "smallest round-trip time so far, as the kernel reports it; in a total the smallest of the intervals' values"},
	{"snd_wnd_bytes", "window that the receiver offers; in a total the largest seen"},
	{"delivery_rate_bps", "the kernel's estimate of the delivered rate in bits per second"},
	{"packets", "UDP datagrams sent (sender), or the growth of the highest sequence number that arrived (receiver)"},
	{"lost", "UDP datagrams that did not arrive, by the receiver's gaps (see lost_of_sent for the account of both ends)"},
	{"out_of_order", "UDP datagrams that arrived after one with a higher number"},
	{"jitter_s", "UDP jitter of RFC 3550 in seconds, as iperf3 computes it"},
	{"code", "code of a notice or an error"},
	{"text", "what the notice or error says"},
	{"distinct", "UDP, totals of the receiver: different datagrams that arrived; with the account of both ends only, as all columns from here on"},
	{"lost_of_sent", "UDP, totals of the receiver: datagrams that the sender says it sent, less those that arrived"},
	{"loss_ratio", "lost_of_sent over what was sent, 0 to 1"},
	{"loss_low_95", "lower end of the 95 % interval of loss_ratio"},
	{"loss_high_95", "upper end of it: with nothing lost, 3 over what was sent"},
	{"lost_socket", "of lost_of_sent: dropped at the receiving program's full socket"},
	{"lost_network", "of lost_of_sent: at most so many by the network"},
	{"attribution", "how sure the owners are: exact, bounded (lost_network is an upper bound) or unknown"},
	{"duplicates", "datagrams that arrived again; also per interval"},
	{"pdv_p50_s", "packet delay variation of RFC 5481 in seconds, median; also per interval, as the following ones"},
	{"pdv_p99_s", "its 99th percentile"},
	{"pdv_max_s", "its largest value"},
	{"late_p99_s", "sender: how long after its due time a burst left, 99th percentile, in seconds"},
	{"unsent", "sender: datagrams that were given up because it was late"},
	{"refused", "sender: datagrams that its kernel refused"},
	{"largest_burst", "sender: most datagrams that left back to back"},
	{"l1_bits_per_second", "receiver, sum: the rate that arrived with all headers, preamble and gaps"},
}

// Writer prints runs, one after the other, into one table. It implements result.Sink
// for intervals; Finish prints what is known at a run's end. It is not safe for
// concurrent use.
type Writer struct {
	w      *csv.Writer
	head   result.Folder
	run    *result.Run
	headed bool
	err    error
}

// New returns a Writer that writes to w. Rows are out when Event and Finish return.
func New(w io.Writer) *Writer {
	c := csv.NewWriter(w)
	c.UseCRLF = true
	out := &Writer{w: c}
	out.reset()
	return out
}

func (w *Writer) reset() {
	w.head = result.Folder{}
	w.run = w.head.Run()
}

// Err returns the first error of writing; nothing is written after one.
func (w *Writer) Err() error { return w.err }

// Event implements result.Sink.
func (w *Writer) Event(e result.Event) {
	if e.Kind != result.KindInterval {
		w.head.Event(e)
		w.run = w.head.Run()
		return
	}
	iv := e.Interval
	for i := range iv.Streams {
		s := &iv.Streams[i]
		r := w.row("interval", directionOf(iv.End, s.Sender), iv.End)
		r.set("stream", strconv.Itoa(s.ID))
		r.span(iv, s.Start, s.Stop)
		r.amount(s.Bytes, s.Rate())
		r.counts(s.Retransmits, s.Packets, s.Lost, s.OutOfOrder, s.Jitter)
		r.tcp(s.TCP)
		r.udpInterval(s.UDP)
		w.write(r)
	}
	for i := range iv.Sums {
		s := &iv.Sums[i]
		r := w.row("interval", s.Direction, iv.End)
		r.set("stream", "sum")
		r.span(iv, s.Start, s.Stop)
		r.amount(s.Bytes, s.BPS)
		r.counts(s.Retransmits, s.Packets, s.Lost, s.OutOfOrder, s.Jitter)
		w.write(r)
	}
	w.flush()
}

// Finish prints the totals of run, its notices and its error. The next event belongs
// to another run.
func (w *Writer) Finish(run *result.Run) {
	w.run = run
	for i := range run.Streams {
		s := &run.Streams[i]
		id := strconv.Itoa(s.ID)
		w.total(s.Direction, s.Direction.Sender(), id, s.Sender, s, s.UDP)
		w.total(s.Direction, s.Direction.Receiver(), id, s.Receiver, s, s.UDP)
	}
	for i := range run.Sums {
		s := &run.Sums[i]
		w.total(s.Direction, s.Direction.Sender(), "sum", s.Sender, nil, s.UDP)
		w.total(s.Direction, s.Direction.Receiver(), "sum", s.Receiver, nil, s.UDP)
	}
	w.probes(run)
	for _, n := range run.Notices {
		w.words("notice", n.End, n.Code, n.Text)
	}
	if e := run.Err; e != nil {
		end := run.End
		if e.Remote {
			end = end.Other()
		}
		w.words("error", end, e.Code, e.Text)
	}
	w.flush()
	w.reset()
}

// total prints what end e counted; t is nil when that is not known. s gives the
// kernel's view where e is the recording end, u what both ends told of UDP.
func (w *Writer) total(d result.Direction, e result.End, stream string, t *result.Total, s *result.Stream, u *result.UDPStream) {
	if t == nil {
		return
	}
	r := w.row("total", d, e)
	r.set("stream", stream)
	r.set("start_s", seconds(t.Start))
	r.set("stop_s", seconds(t.End))
	r.amount(t.Bytes, t.Rate())
	r.counts(t.Retransmits, t.Packets, t.Lost, t.OutOfOrder, t.Jitter)
	if s != nil {
		if e == w.run.End {
			r.summary(s.TCP)
		} else {
			r.summary(s.RemoteTCP)
		}
	}
	if u != nil && d.Sender() == e {
		r.udpSent(u.Sent)
	}
	if u != nil && d.Receiver() == e {
		r.udpReceived(u.Received, u.Loss)
	}
	if s == nil && d.Receiver() == e {
		for _, l := range w.run.Layers {
			if l.Direction == d {
				r.set("l1_bits_per_second", strconv.FormatFloat(l.L1, 'f', 0, 64))
			}
		}
	}
	w.write(r)
}

func (w *Writer) words(record string, e result.End, code, text string) {
	r := w.row(record, "", e)
	r.set("code", safe(code))
	r.set("text", safe(text))
	w.write(r)
}

// row begins a row about what end e does in direction d.
func (w *Writer) row(record string, d result.Direction, e result.End) row {
	r := row{}
	r.set("record", record)
	r.set("run", w.run.ID)
	r.set("end", string(e))
	if d == "" {
		return r
	}
	r.set("direction", string(d))
	r.set("role", "receiver")
	if d.Sender() == e {
		r.set("role", "sender")
	}
	if s := w.run.Sum(d); s != nil {
		r.set("from", safe(s.From))
		r.set("to", safe(s.To))
	}
	return r
}

func (w *Writer) write(r row) {
	if w.err != nil {
		return
	}
	if !w.headed {
		w.headed = true
		names := make([]string, len(Columns))
		for i, c := range Columns {
			names[i] = c.Name
		}
		w.err = w.w.Write(names)
	}
	if w.err != nil {
		return
	}
	fields := make([]string, len(Columns))
	for i, c := range Columns {
		fields[i] = r[c.Name]
	}
	w.err = w.w.Write(fields)
}

func (w *Writer) flush() {
	w.w.Flush()
	if w.err == nil {
		w.err = w.w.Error()
	}
}

// row holds the fields of a row by column name.
type row map[string]string

func (r row) set(column, value string) { r[column] = value }

func (r row) span(iv *result.Interval, start, stop float64) {
	r.set("start_s", seconds(start))
	r.set("stop_s", seconds(stop))
	r.set("omitted", strconv.FormatBool(iv.Omitted))
	r.set("partial", strconv.FormatBool(iv.Partial))
}

func (r row) amount(bytes int64, rate float64) {
	r.set("bytes", strconv.FormatInt(bytes, 10))
	r.set("bits_per_second", strconv.FormatFloat(rate, 'f', 0, 64))
}

func (r row) counts(retransmits, packets, lost, outOfOrder *int64, jitter *float64) {
	r.count("retransmits", retransmits)
	r.count("packets", packets)
	r.count("lost", lost)
	r.count("out_of_order", outOfOrder)
	if jitter != nil {
		r.set("jitter_s", strconv.FormatFloat(*jitter, 'f', 9, 64))
	}
}

func (r row) count(column string, v *int64) {
	if v != nil {
		r.set(column, strconv.FormatInt(*v, 10))
	}
}

func (r row) tcp(t *result.TCPInfo) {
	if t == nil {
		return
	}
	r.count("cwnd_bytes", &t.Cwnd)
	r.count("rtt_us", &t.RTT)
	r.count("rttvar_us", &t.RTTVar)
	r.count("min_rtt_us", t.MinRTT)
	r.count("snd_wnd_bytes", t.SndWnd)
	r.count("delivery_rate_bps", t.DeliveryRate)
}

func (r row) summary(t *result.TCPSummary) {
	if t == nil {
		return
	}
	r.count("cwnd_bytes", &t.MaxCwnd)
	r.count("rtt_us", &t.MeanRTT)
	r.count("min_rtt_us", &t.MinRTT)
	if t.MaxSndWnd >= 0 { // −1: the kernel does not report it
		r.count("snd_wnd_bytes", &t.MaxSndWnd)
	}
}

func seconds(s float64) string { return strconv.FormatFloat(s, 'f', 6, 64) }

// directionOf is the way a stream flows on which end e sends or does not.
func directionOf(e result.End, sender bool) result.Direction {
	if sender == (e == result.Client) {
		return result.Up
	}
	return result.Down
}

// safe makes text harmless to a spreadsheet, which runs what looks like a formula.
func safe(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}
