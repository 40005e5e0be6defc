// Package sample constructs events and runs for the tests of whatever reads them:
// conclusions and renderers. Its figures are made up but consistent (intervals add up
// to totals, both ends tell the same story); nothing here is ever measured.
package sample

import (
	"fmt"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// Test describes a made-up test. The zero value of each field means what its comment
// says; New fills in a plain one.
type Test struct {
	Direction string    // "up", "down", "both"
	Streams   int       // per direction
	Rates     []float64 // payload bit/s per interval that arrived, all streams
	Sent      []float64 // that was sent; nil = Rates
	Back      []float64 // "both": what arrived downwards; nil = Rates
	Step      float64   // s per interval
	Omit      int       // of the intervals, how many are warm-up
	UDP       bool
	Bitrate   int64                                         // asked for, per stream
	PDV       []float64                                     // UDP: median delay variation per interval, s; nil = always the same
	Account   func(d result.Direction, u *result.UDPStream) // last changes of a UDP stream's account
	Extended  bool                                          // the peer is a fullbore and tells its side
	Recorder  result.End                                    // whose document it is
	Broken    bool                                          // no Finish comes
	NoPeer    bool                                          // Finish comes without the peer's totals
	Client    result.Host                                   // facts; Name "" = known by address only
	Server    result.Host
	LossShare float64 // of the segments: retransmitted (TCP) or lost (UDP)
	RTT       int64   // µs, mean under load
	IdleRTT   int64   // µs
	MSS       int64
	Window    int64   // the receiver's, bytes
	Busy      float64 // shares of the sender's time
	RwndLim   float64
	SndLim    float64
	NoShares  bool // the sender's kernel does not tell
	CC        string
	CPU       [2]float64                                      // client, server, % of a core
	Hosts     func(e result.End, row int) *result.HostSample  // nil = process CPU only
	Tune      func(head *result.Run, events *[]result.Event)  // last changes, before Start
	Finishing func(finish *result.Finish, err **result.Error) // last changes at the end
}

// New returns a quiet 10 s test of 941 Mbit/s on one stream from 10.0.0.1 to 10.0.0.2,
// both ends known.
func New() Test {
	return Test{
		Direction: "up", Streams: 1, Rates: Flat(941e6, 10), Step: 1, Extended: true, Recorder: result.Client,
		Client: result.Host{Tool: &result.Tool{Name: "fullbore", Version: "0.1.0"}, Cores: 4},
		Server: result.Host{Tool: &result.Tool{Name: "fullbore", Version: "0.1.0"}, Cores: 4},
		RTT:    520, IdleRTT: 450, MSS: 1448, Window: 3 << 20, Busy: 0.99, CC: "cubic", CPU: [2]float64{12.4, 21.8},
	}
}

// Foreign is New with an iperf3 of that release at the other end; "" when it does not say.
func Foreign(version string) Test {
	t := New()
	t.Extended = false
	t.Server = result.Host{}
	if version != "" {
		t.Server.Tool = &result.Tool{Name: "iperf3", Version: version}
	}
	return t
}

// Flat returns n intervals of about the same rate: the least unsteady line that is not
// suspiciously straight.
func Flat(bps float64, n int) []float64 {
	wave := []float64{0, 0.001, -0.002, 0.001, 0.002, -0.001}
	out := make([]float64, n)
	for i := range out {
		out[i] = bps * (1 + wave[i%len(wave)])
	}
	return out
}

// Addresses of the two ends.
const (
	ClientAddr = "10.0.0.1"
	ServerAddr = "10.0.0.2"
)

// Run folds the events.
func (t Test) Run() *result.Run { return result.Fold(t.Events()) }

// Events plays the test.
func (t Test) Events() []result.Event {
	seq := map[result.End]int64{}
	var out []result.Event
	add := func(e result.Event) {
		if e.End == "" {
			e.End = t.Recorder
		}
		seq[e.End]++
		e.Seq = seq[e.End]
		out = append(out, e)
	}
	head := t.head()
	if t.Tune != nil {
		var extra []result.Event
		t.Tune(&head, &extra)
		for _, e := range extra {
			add(e)
		}
	}
	connected := head
	connected.Streams = nil
	add(result.Event{Kind: result.KindConnected, Head: &connected})
	add(result.Event{Kind: result.KindStart, Head: &head})
	for i := range t.Rates {
		for _, e := range []result.End{t.Recorder, t.Recorder.Other()} {
			if e != t.Recorder && !t.Extended {
				continue
			}
			row := t.row(e, i, head.Streams)
			add(result.Event{Kind: result.KindInterval, End: e, T: row.Stop, Interval: row})
		}
	}
	var err *result.Error
	finish := t.finish(head)
	if t.Finishing != nil {
		t.Finishing(finish, &err)
	}
	if !t.Broken {
		add(result.Event{Kind: result.KindFinish, Finish: finish})
	}
	if err != nil {
		add(result.Event{Kind: result.KindError, Err: err})
	}
	return out
}

func (t Test) transport() string {
	if t.UDP {
		return "udp"
	}
	return "tcp"
}

func (t Test) head() result.Run {
	r := result.Run{
		Schema: result.Schema, ID: "01JDT3B0000000000000000000", Tool: result.Tool{Name: "fullbore", Version: "0.1.0"},
		End: t.Recorder, Protocol: "iperf3", Started: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC),
		Test: result.Test{
			Transport: t.transport(), Direction: t.Direction, Streams: t.Streams, Target: ServerAddr, Port: 5201,
			Duration: float64(len(t.Rates)-t.Omit) * t.Step, Omit: float64(t.Omit) * t.Step, Interval: t.Step, BlockSize: 131072,
			Path: result.DataPath{Tx: "copy", Rx: "discard", Pacing: "none", Worker: "thread"},
		},
		Wire: &result.Wire{TestStarted: true, Extension: t.Extended, ControlMSS: int(t.MSS)},
	}
	client, server := t.Client, t.Server
	r.Hosts.Client = &client
	if server != (result.Host{}) {
		r.Hosts.Server = &server
	}
	id, socket := 1, 5
	dirs := []result.Direction{result.Direction(t.Direction)}
	if t.Direction == "both" {
		dirs = []result.Direction{result.Up, result.Down}
	}
	r.Test.Bitrate = t.Bitrate
	if t.UDP {
		r.Test.BlockSize = int(t.MSS)
		r.Test.Path.Rx, r.Test.Path.Pacing, r.Test.Path.Batch = "copy", "sleep", "sendmmsg"
	}
	for _, d := range dirs {
		for i := range t.Streams {
			s := result.Stream{
				ID: id, Socket: socket, Direction: d,
				Local: result.Addr{Host: ClientAddr, Port: 40000 + 2*i}, Remote: result.Addr{Host: ServerAddr, Port: 5201},
				Buffers: &result.Buffers{SndGranted: 4 << 20, RcvGranted: 6 << 20, SndUsable: 2 << 20, RcvUsable: 3 << 20, MSS: t.MSS},
			}
			if t.Recorder == result.Server {
				s.Local, s.Remote = s.Remote, s.Local
			}
			r.Streams = append(r.Streams, s)
			socket += 2
			if id++; id == 2 {
				id = 3 // iperf3 skips 2
			}
		}
	}
	return r
}

// rates returns what end e counts in direction d in row i.
func (t Test) rates(d result.Direction, e result.End, i int) float64 {
	arrived, sent := t.Rates, t.Sent
	if d == result.Down && t.Direction == "both" && t.Back != nil {
		arrived, sent = t.Back, nil
	}
	switch {
	case e == d.Sender() && sent != nil:
		return sent[i]
	case e == d.Sender() && t.UDP: // the share is lost on the way
		return arrived[i] / (1 - t.LossShare)
	}
	return arrived[i]
}

// share is stream k's part of n: not all equal, adding up to 1.
func share(k, n int) float64 {
	if n == 1 {
		return 1
	}
	lean := 0.02 * (float64(k)/float64(n-1) - 0.5)
	return (1 + lean) / float64(n)
}

func (t Test) row(e result.End, i int, streams []result.Stream) *result.Interval {
	start, stop := float64(i)*t.Step, float64(i+1)*t.Step
	if i >= t.Omit {
		start, stop = start-float64(t.Omit)*t.Step, stop-float64(t.Omit)*t.Step
	}
	row := &result.Interval{End: e, Index: i, Start: start, Stop: stop, Omitted: i < t.Omit}
	count := map[result.Direction]int{}
	for _, s := range streams {
		k := count[s.Direction]
		count[s.Direction]++
		sender := s.Direction.Sender() == e
		bytes := int64(t.rates(s.Direction, e, i) * t.Step / 8 * share(k, t.Streams))
		x := result.StreamInterval{ID: s.ID, Socket: s.Socket, Sender: sender, Start: start, Stop: stop, Bytes: bytes}
		lost := t.lost(s.Direction, e, i, k)
		switch {
		case t.UDP:
			packets := int64(t.rates(s.Direction, s.Direction.Sender(), i) * t.Step / 8 * share(k, t.Streams) / float64(t.MSS))
			x.Packets, x.Bytes, x.UDP = &packets, packets*t.MSS, t.udpInterval(packets, sender, i)
			if !sender {
				jitter, order := 0.000031, int64(0)
				if t.Sent != nil { // what did not arrive is lost
					lost = packets - bytes/t.MSS
				}
				lost = max(min(lost, packets), 0)
				x.Bytes -= lost * t.MSS
				x.Lost, x.Jitter, x.OutOfOrder = &lost, &jitter, &order
			}
		default:
			if sender {
				x.Retransmits = &lost
			}
			x.TCP = t.info(float64(i+1)*t.Step, sender)
		}
		row.Streams = append(row.Streams, x)
		row.Sums = addTo(row.Sums, s.Direction, x)
	}
	for j := range row.Sums {
		row.Sums[j].BPS = result.Rate(row.Sums[j].Bytes, row.Sums[j].Stop-row.Sums[j].Start)
	}
	if t.Hosts != nil {
		row.Host = t.Hosts(e, i)
	} else {
		row.Host = &result.HostSample{Process: t.cpu(e)}
	}
	return row
}

// lost spreads LossShare over the rows so that the running total is right to a segment.
func (t Test) lost(d result.Direction, e result.End, i, k int) int64 {
	if t.LossShare == 0 {
		return 0
	}
	upTo := func(n int) int64 {
		var segments float64
		for j := range n {
			if t.UDP {
				e = d.Sender()
			}
			segments += t.rates(d, e, j) * t.Step / 8 * share(k, t.Streams) / float64(t.MSS)
		}
		return int64(segments*t.LossShare + 0.5)
	}
	return upTo(i+1) - upTo(i)
}

func addTo(sums []result.IntervalSum, d result.Direction, x result.StreamInterval) []result.IntervalSum {
	for j := range sums {
		if s := &sums[j]; s.Direction == d {
			s.Bytes += x.Bytes
			s.Retransmits = add(s.Retransmits, x.Retransmits)
			s.Packets = add(s.Packets, x.Packets)
			s.Lost = add(s.Lost, x.Lost)
			s.OutOfOrder = add(s.OutOfOrder, x.OutOfOrder)
			return sums
		}
	}
	return append(sums, result.IntervalSum{
		Direction: d, Sender: x.Sender, Start: x.Start, Stop: x.Stop, Bytes: x.Bytes,
		Retransmits: x.Retransmits, Packets: x.Packets, Lost: x.Lost, OutOfOrder: x.OutOfOrder, Jitter: x.Jitter,
	})
}

func add(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	v := *a + *b
	return &v
}

// info is a TCP_INFO after elapsed s.
func (t Test) info(elapsed float64, sender bool) *result.TCPInfo {
	idle, window, us := t.IdleRTT, t.Window, func(share float64) *int64 { v := int64(share * elapsed * 1e6); return &v }
	i := &result.TCPInfo{
		MSS: t.MSS, PMTU: t.MSS + 52, Cwnd: 1024 * t.MSS, SndWnd: &window, RTT: t.RTT, RTTVar: t.RTT / 8, MinRTT: &idle,
		Reordering: 3, SACK: true, Timestamps: true, WScale: [2]uint8{7, 7},
	}
	if sender && !t.NoShares {
		i.BusyUS, i.RwndLimitedUS, i.SndbufLimUS = us(t.Busy), us(t.RwndLim), us(t.SndLim)
	}
	return i
}

func (t Test) cpu(e result.End) *result.CPU {
	total := t.CPU[0]
	if e == result.Server {
		total = t.CPU[1]
	}
	return &result.CPU{Total: total, User: total / 8, System: total * 7 / 8, Congestion: t.CC}
}

func (t Test) finish(head result.Run) *result.Finish {
	f := &result.Finish{Streams: append([]result.Stream{}, head.Streams...), Wire: head.Wire, Path: &head.Test.Path, Elapsed: float64(len(t.Rates))*t.Step + 0.02}
	f.CPU.Set(t.Recorder, t.cpu(t.Recorder))
	if !t.NoPeer {
		f.CPU.Set(t.Recorder.Other(), t.cpu(t.Recorder.Other()))
	}
	rows := map[result.End][]*result.Interval{}
	for _, e := range []result.End{result.Client, result.Server} {
		for i := t.Omit; i < len(t.Rates); i++ {
			rows[e] = append(rows[e], t.row(e, i, head.Streams))
		}
	}
	for i := range f.Streams {
		s := &f.Streams[i]
		for _, e := range []result.End{result.Client, result.Server} {
			if e != t.Recorder && t.NoPeer {
				continue
			}
			total := total(rows[e], i)
			if s.Direction.Sender() == e {
				s.Sender = total
			} else {
				s.Receiver = total
			}
		}
		if t.UDP {
			t.account(s)
			continue
		}
		s.TCP = t.summary(s.Direction.Sender() == t.Recorder)
		if t.Extended && !t.NoPeer {
			s.RemoteTCP = t.summary(s.Direction.Sender() != t.Recorder)
		}
	}
	return f
}

// total adds up stream k of the rows.
func total(rows []*result.Interval, k int) *result.Total {
	out := &result.Total{}
	for i, row := range rows {
		x := row.Streams[k]
		out.Bytes += x.Bytes
		out.End = x.Stop
		out.Retransmits = sum(i == 0, out.Retransmits, x.Retransmits)
		out.Packets = sum(i == 0, out.Packets, x.Packets)
		out.Lost = sum(i == 0, out.Lost, x.Lost)
		out.OutOfOrder = sum(i == 0, out.OutOfOrder, x.OutOfOrder)
		out.Jitter = x.Jitter
	}
	return out
}

func sum(first bool, a, b *int64) *int64 {
	if first {
		return b
	}
	return add(a, b)
}

func (t Test) summary(sender bool) *result.TCPSummary {
	info := t.info(float64(len(t.Rates))*t.Step, sender)
	out := &result.TCPSummary{
		MaxCwnd: info.Cwnd, MaxSndWnd: t.Window, MaxRTT: t.RTT * 3 / 2, MinRTT: t.RTT * 9 / 10, MeanRTT: t.RTT,
		Congestion: t.CC, Last: *info,
	}
	if sender && !t.NoShares {
		busy, rwnd, snd := t.Busy, t.RwndLim, t.SndLim
		out.BusyShare, out.RwndShare, out.SndbufShare = &busy, &rwnd, &snd
	}
	return out
}

// Cores returns a host sample with those cores, "user/system/softirq/idle" shares of each
// in per cent; the rest of a core is steal.
func Cores(process float64, cores ...string) *result.HostSample {
	h := &result.HostSample{Process: &result.CPU{Total: process, User: process / 8, System: process * 7 / 8}}
	for i, text := range cores {
		var u, s, q, idle float64
		if _, err := fmt.Sscanf(text, "%f/%f/%f/%f", &u, &s, &q, &idle); err != nil {
			panic(fmt.Sprintf("sample: cores: %q: %v", text, err))
		}
		c := result.CoreShare{CPU: i, User: u / 100, System: s / 100, SoftIRQ: q / 100, Idle: idle / 100}
		c.Steal = max(0, 1-c.User-c.System-c.SoftIRQ-c.Idle)
		if c.Steal < 1e-9 {
			c.Steal = 0
		}
		h.StealMax = max(h.StealMax, c.Steal)
		h.Cores = append(h.Cores, c)
	}
	return h
}
