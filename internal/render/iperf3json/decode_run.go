package iperf3json

import (
	"math"
	"reflect"

	"github.com/fullbore-net/fullbore/internal/render/cjson"
	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/result"
)

// connections reads start.connected. The ids are iperf3's: 1, 3, 4, …
func (d *decoder) connections() {
	for i, v := range d.list(d.start, "connected") {
		o, ok := v.(*cjson.Object)
		if !ok {
			d.wrong("connected", v)
			continue
		}
		d.run.Streams = append(d.run.Streams, result.Stream{
			ID: streamID(i), Socket: int(d.integer(o, "socket")),
			Local:  result.Addr{Host: d.text(o, "local_host"), Port: int(d.integer(o, "local_port"))},
			Remote: result.Addr{Host: d.text(o, "remote_host"), Port: int(d.integer(o, "remote_port"))},
		})
	}
	n := d.run.Test.Streams
	for i := range d.run.Streams {
		s := &d.run.Streams[i]
		s.Direction = result.Up
		if d.run.Test.Direction == "down" || d.run.Test.Direction == "both" && i >= n {
			s.Direction = result.Down
		}
		d.streams[s.Socket] = s
	}
	if len(d.run.Streams) > 0 {
		w := d.run.Wire
		d.run.Streams[0].Buffers = &result.Buffers{
			RequestedBytes: int64(d.run.Test.Window),
			SndGranted:     int64(w.SndbufActual), RcvGranted: int64(w.RcvbufActual),
			SndUsable: int64(w.SndbufActual) / 2, RcvUsable: int64(w.RcvbufActual) / 2,
			MSS: int64(w.ControlMSS),
		}
	}
}

// streamID is iperf3's id of the i-th stream: there is no 2 (src/iperf_api.c,
// iperf_add_stream).
func streamID(i int) int {
	if i == 0 {
		return 1
	}
	return i + 2
}

// rows reads "intervals".
func (d *decoder) rows() {
	r := d.run
	for _, v := range d.list(d.doc, "intervals") {
		o, ok := v.(*cjson.Object)
		if !ok {
			d.wrong("intervals", v)
			return
		}
		row := result.Interval{End: r.End, Index: len(r.Rows)}
		for _, v := range d.list(o, "streams") {
			s, ok := v.(*cjson.Object)
			if !ok {
				d.wrong("streams", v)
				return
			}
			row.Omitted = d.flag(s, "omitted")
			row.Streams = append(row.Streams, d.streamRow(s))
		}
		if len(row.Streams) > 0 {
			row.Start, row.Stop = row.Streams[0].Start, row.Streams[0].Stop
		}
		for i, dir := range iperf3view.Directions(r) {
			if s := d.object(o, sumName("sum", i)); s != nil {
				row.Sums = append(row.Sums, d.sumRow(s, dir))
			}
		}
		if n := len(r.Rows); n > 0 && reflect.DeepEqual(r.Rows[n-1].Streams, row.Streams) {
			continue // printed twice after the peer was lost; no two intervals are at the same time
		}
		r.Rows = append(r.Rows, row)
	}
	if n := len(r.Rows); n > 0 {
		if d.test != nil && d.test.Get("interval") == nil { // before 3.17: what the first row was
			r.Test.Interval = math.Round((r.Rows[0].Stop-r.Rows[0].Start)*10) / 10
		}
		last := &r.Rows[n-1]
		last.Partial = last.Stop-last.Start < 0.95*r.Test.Interval
	}
}

// span reads a row's times. iperf3 prints distances from the start of the measured
// time, so a row that began before the omit period was over has a start that must be
// negative to agree with its length.
func (d *decoder) span(o *cjson.Object) (start, stop float64) {
	start, stop = d.number(o, "start"), d.number(o, "end")
	length := d.number(o, "seconds")
	if start > 0 && math.Abs(stop+start-length) < math.Abs(stop-start-length) {
		start = -start
	}
	return start, stop
}

func (d *decoder) streamRow(o *cjson.Object) result.StreamInterval {
	s := result.StreamInterval{Socket: int(d.integer(o, "socket")), Bytes: d.integer(o, "bytes")}
	s.Start, s.Stop = d.span(o)
	s.Sender = d.sender(o, s.Socket)
	if known := d.streams[s.Socket]; known != nil {
		s.ID = known.ID
		known.Direction = directionOf(d.run.End, s.Sender)
	}
	if d.run.Test.Transport == "udp" {
		s.Packets, s.Lost, s.Jitter = d.optional(o, "packets"), d.optional(o, "lost_packets"), d.jitter(o)
		return s
	}
	s.Retransmits = d.optional(o, "retransmits")
	if o.Get("snd_cwnd") != nil {
		d.run.Wire.HasRetrans = true
		s.TCP = &result.TCPInfo{
			Cwnd: d.integer(o, "snd_cwnd"), RTT: d.integer(o, "rtt"), RTTVar: d.integer(o, "rttvar"),
			PMTU: d.integer(o, "pmtu"), ReordSeen: d.optional(o, "reorder"), SndWnd: d.optional(o, "snd_wnd"),
		}
		if s.TCP.SndWnd != nil && *s.TCP.SndWnd < 0 {
			s.TCP.SndWnd = nil
		}
	}
	return s
}

// sender reports whether this end sends the stream on socket: releases before 3.7 do
// not say so in the row.
func (d *decoder) sender(o *cjson.Object, socket int) bool {
	if o.Get("sender") != nil {
		return d.flag(o, "sender")
	}
	if s := d.streams[socket]; s != nil {
		return iperf3view.Sends(d.run, s.Direction)
	}
	return (d.run.Test.Direction == "up") == (d.run.End == result.Client)
}

func directionOf(e result.End, sender bool) result.Direction {
	if sender == (e == result.Client) {
		return result.Up
	}
	return result.Down
}

func (d *decoder) sumRow(o *cjson.Object, dir result.Direction) result.IntervalSum {
	s := result.IntervalSum{
		Direction: dir, Sender: iperf3view.Sends(d.run, dir), Bytes: d.integer(o, "bytes"),
		Retransmits: d.optional(o, "retransmits"), Packets: d.optional(o, "packets"),
		Lost: d.optional(o, "lost_packets"), Jitter: d.jitter(o),
	}
	s.Start, s.Stop = d.span(o)
	s.BPS = result.Rate(s.Bytes, s.Stop-s.Start)
	return s
}

// jitter reads jitter_ms as seconds: the number of seconds that, as milliseconds, is
// the one in the document, to the last bit.
func (d *decoder) jitter(o *cjson.Object) *float64 {
	if o.Get("jitter_ms") == nil {
		return nil
	}
	ms := d.number(o, "jitter_ms")
	s := ms / 1000
	for _, near := range []float64{s, math.Nextafter(s, 0), math.Nextafter(s, 1)} {
		if near*1000 == ms {
			s = near
			break
		}
	}
	return &s
}

// totals reads "end".
func (d *decoder) totals() {
	r := d.run
	if d.end == nil || len(d.end.Members) == 0 {
		return
	}
	for _, v := range d.list(d.end, "streams") {
		o, ok := v.(*cjson.Object)
		if !ok {
			d.wrong("streams", v)
			return
		}
		if r.Test.Transport == "udp" {
			d.udpTotal(d.object(o, "udp"))
		} else {
			d.tcpTotal(o)
		}
	}
	d.cpu()
}

// known reports whether the other end's figures were exchanged: a server's report never
// has them, and after an interrupt iperf3 prints zeros. Both ends' CPU time is the mark:
// a run without an error has been through the exchange.
func (d *decoder) known() bool {
	return d.run.End == result.Client && d.run.Err == nil
}

func (d *decoder) tcpTotal(o *cjson.Object) {
	snd, rcv := d.object(o, "sender"), d.object(o, "receiver")
	s := d.streams[int(d.integer(snd, "socket"))]
	if s == nil {
		return
	}
	sends := d.sender(snd, s.Socket)
	s.Direction = directionOf(d.run.End, sends)
	// The receiver's "seconds" are this end's time; the other time is the other end's,
	// which iperf3 prints at the receiver in a bidirectional run whatever the direction.
	own := d.number(rcv, "seconds")
	other := d.number(rcv, "end")
	if d.run.Test.Direction == "down" {
		other = d.number(snd, "end")
	}
	s.Sender = &result.Total{End: other, Bytes: d.integer(snd, "bytes"), Retransmits: d.optional(snd, "retransmits")}
	s.Receiver = &result.Total{End: own, Bytes: d.integer(rcv, "bytes")}
	if sends {
		s.Sender.End, s.Receiver.End = own, other
	}
	d.forget(s, sends)
	if s.Sender != nil && s.Sender.Retransmits != nil {
		d.run.Wire.HasRetrans = true
	}
	if snd.Get("max_snd_cwnd") != nil && (sends || d.run.Test.Direction == "both") {
		s.TCP = &result.TCPSummary{
			MaxCwnd: d.integer(snd, "max_snd_cwnd"), MaxSndWnd: d.integer(snd, "max_snd_wnd"),
			MaxRTT: d.integer(snd, "max_rtt"), MinRTT: d.integer(snd, "min_rtt"), MeanRTT: d.integer(snd, "mean_rtt"),
			Reorder: d.integer(snd, "reorder"),
		}
	}
	if f := d.object(o, "diskfile"); f != nil {
		s.Disk = &result.Disk{
			Size: d.integer(f, "size"), Name: d.text(f, "filename"), Sending: sends,
			Transferred: d.integer(f, "received"), Percent: int(d.integer(f, "percent_received")),
		}
		if sends {
			s.Disk.Transferred, s.Disk.Percent = d.integer(f, "sent"), int(d.integer(f, "percent_sent"))
		}
	}
}

// forget removes the half that this end cannot know.
func (d *decoder) forget(s *result.Stream, sends bool) {
	switch {
	case d.known():
	case sends:
		s.Receiver = nil
	default:
		s.Sender = nil
	}
}

// udpTotal reads the one object that holds both ends of a UDP stream. Where several
// streams were received, the document has only their sum; each stream's share is what
// its packets say.
func (d *decoder) udpTotal(o *cjson.Object) {
	s := d.streams[int(d.integer(o, "socket"))]
	if s == nil {
		return
	}
	sends := d.sender(o, s.Socket)
	s.Direction = directionOf(d.run.End, sends)
	i := 0
	if d.run.Test.Direction == "both" && s.Direction == result.Down {
		i = 1
	}
	received := d.object(d.end, sumName("sum_received", i))
	sent := d.object(d.end, sumName("sum_sent", i))
	packets, lost := d.integer(o, "packets"), d.integer(o, "lost_packets")
	outOfOrder := d.integer(o, "out_of_order")
	s.Sender = &result.Total{End: d.number(sent, "end"), Bytes: d.integer(o, "bytes"), Packets: &packets}
	s.Receiver = &result.Total{
		End: d.number(received, "end"), Lost: &lost, OutOfOrder: &outOfOrder, Jitter: d.jitter(o),
	}
	if d.run.Test.Direction == "both" && s.Direction == result.Down { // the two times are swapped there
		s.Sender.End, s.Receiver.End = s.Receiver.End, s.Sender.End
	}
	if d.run.Test.Streams == 1 {
		n := d.integer(received, "packets")
		s.Receiver.Packets, s.Receiver.Bytes = &n, d.integer(received, "bytes")
	} else {
		s.Receiver.Packets = &packets
		s.Receiver.Bytes = (packets - lost) * int64(d.run.Test.BlockSize)
	}
	d.forget(s, sends)
}

// cpu reads the processor's share and the congestion control of both ends.
func (d *decoder) cpu() {
	r := d.run
	if o := d.object(d.end, "cpu_utilization_percent"); o != nil {
		r.CPU.Set(r.End, &result.CPU{
			Total: d.number(o, "host_total"), User: d.number(o, "host_user"), System: d.number(o, "host_system"),
		})
		if d.known() {
			r.CPU.Set(r.End.Other(), &result.CPU{
				Total: d.number(o, "remote_total"), User: d.number(o, "remote_user"), System: d.number(o, "remote_system"),
			})
		}
	}
	if len(r.Streams) == 0 {
		return
	}
	// The names are those of the last direction's ends (package iperf3view, Congestion).
	last := r.Streams[len(r.Streams)-1].Direction
	d.congestion(last.Sender(), d.text(d.end, "sender_tcp_congestion"))
	d.congestion(last.Receiver(), d.text(d.end, "receiver_tcp_congestion"))
}

func (d *decoder) congestion(e result.End, name string) {
	if name == "" {
		return
	}
	c := d.run.CPU.Of(e)
	if c == nil {
		c = &result.CPU{}
		d.run.CPU.Set(e, c)
	}
	c.Congestion = name
}
