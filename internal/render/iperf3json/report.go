package iperf3json

import (
	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/result"
)

// interval is one element of "intervals".
func interval(r *result.Run, iv *result.Interval, rel iperf3view.Release) *object {
	b := iperf3view.Interval(r, iv)
	streams := array{}
	for i := range b.Streams {
		streams = append(streams, intervalRow(&b.Streams[i], true, rel))
	}
	o := (&object{}).add("streams", streams)
	for i := range b.Sums {
		o.add(sumName("sum", i), intervalRow(&b.Sums[i], false, rel))
	}
	return o
}

// sumName is the name of the i-th direction's sum: the client's own direction has the
// plain one.
func sumName(name string, i int) string {
	if i > 0 {
		return name + "_bidir_reverse"
	}
	return name
}

func intervalRow(row *iperf3view.Row, stream bool, rel iperf3view.Release) *object {
	o := &object{}
	if stream {
		o.add("socket", row.Socket)
	}
	o.add("start", row.Start).add("end", row.End).add("seconds", row.Seconds).
		add("bytes", row.Bytes).add("bits_per_second", row.Rate*8)
	if row.Retransmits != nil {
		o.add("retransmits", *row.Retransmits)
	}
	if row.TCP != nil {
		tcpInfo(o, row.TCP, rel)
	}
	if u := row.UDP; u != nil {
		if row.Sender {
			o.add("packets", u.Packets)
		} else {
			o.add("jitter_ms", u.Jitter*1000).add("lost_packets", u.Lost).
				add("packets", u.Packets).add("lost_percent", u.LostPercent)
		}
	}
	return o.add("omitted", row.Omitted).add("sender", row.Sender)
}

func tcpInfo(o *object, t *result.TCPInfo, rel iperf3view.Release) {
	wnd := int64(-1) // the kernel does not say
	if t.SndWnd != nil {
		wnd = *t.SndWnd
	}
	o.add("snd_cwnd", t.Cwnd).add("snd_wnd", wnd).
		add("rtt", t.RTT).add("rttvar", t.RTTVar).add("pmtu", t.PMTU)
	if !rel.Old() {
		var seen int64
		if t.ReordSeen != nil {
			seen = *t.ReordSeen
		}
		o.add("reorder", seen)
	}
}

// end is the "end" object, empty when the test did not come to one.
func end(r *result.Run, rel iperf3view.Release) *object {
	o := &object{}
	if !iperf3view.Complete(r) {
		return o
	}
	groups := iperf3view.Summary(r)
	udp := iperf3view.Datagrams(r)
	streams := array{}
	for i := range groups {
		g := &groups[i]
		for j := range g.Streams {
			if udp {
				streams = append(streams, udpStream(&g.Streams[j], g.Sends))
			} else {
				streams = append(streams, tcpStream(&g.Streams[j], g.Sends, rel))
			}
		}
	}
	o.add("streams", streams)
	for i := range groups {
		if udp {
			udpSums(o, &groups[i], i)
		} else {
			tcpSums(o, &groups[i], i)
		}
	}
	own, other := iperf3view.CPU(r)
	o.add("cpu_utilization_percent", (&object{}).
		add("host_total", own.Total).add("host_user", own.User).add("host_system", own.System).
		add("remote_total", other.Total).add("remote_user", other.User).add("remote_system", other.System))
	if len(groups) > 0 {
		snd, rcv := iperf3view.Congestion(r, groups[len(groups)-1].Direction)
		if snd != "" {
			o.add("sender_tcp_congestion", snd)
		}
		if rcv != "" {
			o.add("receiver_tcp_congestion", rcv)
		}
	}
	return o
}

// side prints one end's count.
func side(o *object, s iperf3view.Side) *object {
	return o.add("start", 0).add("end", s.End).add("seconds", s.Seconds).
		add("bytes", s.Bytes).add("bits_per_second", s.Rate*8)
}

func tcpStream(t *iperf3view.Total, sends bool, rel iperf3view.Release) *object {
	snd := side((&object{}).add("socket", t.Socket), t.Sent)
	if t.Retransmits != nil {
		snd.add("retransmits", *t.Retransmits)
		if !rel.Old() {
			snd.add("reorder", t.TCP.Reorder)
		}
		snd.add("max_snd_cwnd", t.TCP.MaxCwnd).add("max_snd_wnd", t.TCP.MaxSndWnd).
			add("max_rtt", t.TCP.MaxRTT).add("min_rtt", t.TCP.MinRTT).add("mean_rtt", t.TCP.MeanRTT)
	}
	o := (&object{}).add("sender", snd.add("sender", sends))
	if d := t.Disk; d != nil {
		o.add("diskfile", (&object{}).
			add("sent", t.Sent.Bytes).add("received", t.Received.Bytes).add("size", d.Size).
			add("percent_sent", d.PercentSent).add("percent_received", d.PercentReceived).
			add("filename", d.Name))
	}
	return o.add("receiver", side((&object{}).add("socket", t.Socket), t.Received).add("sender", sends))
}

func tcpSums(o *object, g *iperf3view.Group, i int) {
	sent := side(&object{}, g.Sum.Sent)
	if g.Sum.Retransmits != nil {
		sent.add("retransmits", *g.Sum.Retransmits)
	}
	o.add(sumName("sum_sent", i), sent.add("sender", g.Sends))
	o.add(sumName("sum_received", i), side(&object{}, g.Sum.Received).add("sender", g.Sends))
}

// udpStream is the one object that UDP has for both ends of a stream: the sender's
// bytes and the receiver's loss. The packets are the sender's, the receiver's when
// those are unknown.
func udpStream(t *iperf3view.Total, sends bool) *object {
	packets := t.SenderPackets
	if packets == 0 {
		packets = t.UDP.Packets
	}
	u := side((&object{}).add("socket", t.Socket), t.Sent)
	loss(u, t.UDP.Jitter, t.UDP.Lost, packets, t.UDP.LostPercent)
	return (&object{}).add("udp", u.add("out_of_order", t.UDP.OutOfOrder).add("sender", sends))
}

// udpSums prints the old mixed sum (the receiver's times, the sender's bytes) and the
// two clean ones.
func udpSums(o *object, g *iperf3view.Group, i int) {
	s := &g.Sum
	packets := s.SenderPackets
	if packets == 0 {
		packets = s.UDP.Packets
	}
	mixed := iperf3view.Side{End: s.Received.End, Seconds: s.Received.Seconds, Bytes: s.Sent.Bytes, Rate: s.Sent.Rate}
	o.add(sumName("sum", i), loss(side(&object{}, mixed), s.UDP.Jitter, s.UDP.Lost, packets, s.UDP.LostPercent).add("sender", g.Sends))
	o.add(sumName("sum_sent", i), loss(side(&object{}, s.Sent), 0, 0, s.SenderPackets, 0).add("sender", true))
	o.add(sumName("sum_received", i),
		loss(side(&object{}, s.Received), s.UDP.Jitter, s.UDP.Lost, s.UDP.Packets, s.UDP.LostPercent).add("sender", false))
}

func loss(o *object, jitter float64, lost, packets int64, percent float64) *object {
	return o.add("jitter_ms", jitter*1000).add("lost_packets", lost).
		add("packets", packets).add("lost_percent", percent)
}
