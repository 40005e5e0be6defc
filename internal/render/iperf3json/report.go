package iperf3json

import (
	"github.com/fullbore-net/fullbore/internal/render/cjson"
	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/result"
)

// interval is one element of "intervals".
func interval(r *result.Run, iv *result.Interval, rel iperf3view.Release) *cjson.Object {
	b := iperf3view.Interval(r, iv)
	streams := cjson.Array{}
	for i := range b.Streams {
		streams = append(streams, intervalRow(&b.Streams[i], true, rel))
	}
	o := (&cjson.Object{}).Add("streams", streams)
	for i := range b.Sums {
		o.Add(sumName("sum", i), intervalRow(&b.Sums[i], false, rel))
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

func intervalRow(row *iperf3view.Row, stream bool, rel iperf3view.Release) *cjson.Object {
	o := &cjson.Object{}
	if stream {
		o.Add("socket", row.Socket)
	}
	o.Add("start", row.Start).Add("end", row.End).Add("seconds", row.Seconds).
		Add("bytes", row.Bytes).Add("bits_per_second", row.Rate*8)
	if row.Retransmits != nil {
		o.Add("retransmits", *row.Retransmits)
	}
	if row.TCP != nil {
		tcpInfo(o, row.TCP, rel)
	}
	if u := row.UDP; u != nil {
		if row.Sender {
			o.Add("packets", u.Packets)
		} else {
			o.Add("jitter_ms", u.Jitter*1000).Add("lost_packets", u.Lost).
				Add("packets", u.Packets).Add("lost_percent", u.LostPercent)
		}
	}
	return o.Add("omitted", row.Omitted).Add("sender", row.Sender)
}

func tcpInfo(o *cjson.Object, t *result.TCPInfo, rel iperf3view.Release) {
	wnd := int64(-1) // the kernel does not say
	if t.SndWnd != nil {
		wnd = *t.SndWnd
	}
	o.Add("snd_cwnd", t.Cwnd).Add("snd_wnd", wnd).
		Add("rtt", t.RTT).Add("rttvar", t.RTTVar).Add("pmtu", t.PMTU)
	if !rel.Old() {
		var seen int64
		if t.ReordSeen != nil {
			seen = *t.ReordSeen
		}
		o.Add("reorder", seen)
	}
}

// end is the "end" object, empty when the test did not come to one.
func end(r *result.Run, rel iperf3view.Release) *cjson.Object {
	o := &cjson.Object{}
	if !iperf3view.Complete(r) {
		return o
	}
	groups := iperf3view.Summary(r)
	udp := iperf3view.Datagrams(r)
	streams := cjson.Array{}
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
	o.Add("streams", streams)
	for i := range groups {
		if udp {
			udpSums(o, &groups[i], i)
		} else {
			tcpSums(o, &groups[i], i)
		}
	}
	own, other := iperf3view.CPU(r)
	o.Add("cpu_utilization_percent", (&cjson.Object{}).
		Add("host_total", own.Total).Add("host_user", own.User).Add("host_system", own.System).
		Add("remote_total", other.Total).Add("remote_user", other.User).Add("remote_system", other.System))
	if len(groups) > 0 {
		snd, rcv := iperf3view.Congestion(r, groups[len(groups)-1].Direction)
		if snd != "" {
			o.Add("sender_tcp_congestion", snd)
		}
		if rcv != "" {
			o.Add("receiver_tcp_congestion", rcv)
		}
	}
	return o
}

// side prints one end's count.
func side(o *cjson.Object, s iperf3view.Side) *cjson.Object {
	return o.Add("start", 0).Add("end", s.End).Add("seconds", s.Seconds).
		Add("bytes", s.Bytes).Add("bits_per_second", s.Rate*8)
}

func tcpStream(t *iperf3view.Total, sends bool, rel iperf3view.Release) *cjson.Object {
	snd := side((&cjson.Object{}).Add("socket", t.Socket), t.Sent)
	if t.Retransmits != nil {
		snd.Add("retransmits", *t.Retransmits)
		if !rel.Old() {
			snd.Add("reorder", t.TCP.Reorder)
		}
		snd.Add("max_snd_cwnd", t.TCP.MaxCwnd).Add("max_snd_wnd", t.TCP.MaxSndWnd).
			Add("max_rtt", t.TCP.MaxRTT).Add("min_rtt", t.TCP.MinRTT).Add("mean_rtt", t.TCP.MeanRTT)
	}
	o := (&cjson.Object{}).Add("sender", snd.Add("sender", sends))
	if d := t.Disk; d != nil {
		o.Add("diskfile", (&cjson.Object{}).
			Add("sent", t.Sent.Bytes).Add("received", t.Received.Bytes).Add("size", d.Size).
			Add("percent_sent", d.PercentSent).Add("percent_received", d.PercentReceived).
			Add("filename", d.Name))
	}
	return o.Add("receiver", side((&cjson.Object{}).Add("socket", t.Socket), t.Received).Add("sender", sends))
}

func tcpSums(o *cjson.Object, g *iperf3view.Group, i int) {
	sent := side(&cjson.Object{}, g.Sum.Sent)
	if g.Sum.Retransmits != nil {
		sent.Add("retransmits", *g.Sum.Retransmits)
	}
	o.Add(sumName("sum_sent", i), sent.Add("sender", g.Sends))
	o.Add(sumName("sum_received", i), side(&cjson.Object{}, g.Sum.Received).Add("sender", g.Sends))
}

// udpStream is the one object that UDP has for both ends of a stream: the sender's
// bytes and the receiver's loss. The packets are the sender's, the receiver's when
// those are unknown.
func udpStream(t *iperf3view.Total, sends bool) *cjson.Object {
	packets := t.SenderPackets
	if packets == 0 {
		packets = t.UDP.Packets
	}
	u := side((&cjson.Object{}).Add("socket", t.Socket), t.Sent)
	loss(u, t.UDP.Jitter, t.UDP.Lost, packets, t.UDP.LostPercent)
	return (&cjson.Object{}).Add("udp", u.Add("out_of_order", t.UDP.OutOfOrder).Add("sender", sends))
}

// udpSums prints the old mixed sum (the receiver's times, the sender's bytes) and the
// two clean ones.
func udpSums(o *cjson.Object, g *iperf3view.Group, i int) {
	s := &g.Sum
	packets := s.SenderPackets
	if packets == 0 {
		packets = s.UDP.Packets
	}
	mixed := iperf3view.Side{End: s.Received.End, Seconds: s.Received.Seconds, Bytes: s.Sent.Bytes, Rate: s.Sent.Rate}
	o.Add(sumName("sum", i), loss(side(&cjson.Object{}, mixed), s.UDP.Jitter, s.UDP.Lost, packets, s.UDP.LostPercent).Add("sender", g.Sends))
	o.Add(sumName("sum_sent", i), loss(side(&cjson.Object{}, s.Sent), 0, 0, s.SenderPackets, 0).Add("sender", true))
	o.Add(sumName("sum_received", i),
		loss(side(&cjson.Object{}, s.Received), s.UDP.Jitter, s.UDP.Lost, s.UDP.Packets, s.UDP.LostPercent).Add("sender", false))
}

func loss(o *cjson.Object, jitter float64, lost, packets int64, percent float64) *cjson.Object {
	return o.Add("jitter_ms", jitter*1000).Add("lost_packets", lost).
		Add("packets", packets).Add("lost_percent", percent)
}
