package ntttcpwin

import (
	"fmt"

	"github.com/fullbore-net/fullbore/internal/datagram"
	"github.com/fullbore-net/fullbore/result"
)

// figures are the numbers that console and XML share, of the recording end. What divides
// by zero is 0.
type figures struct {
	run    *result.Run
	sender bool
	known  bool
	bytes  int64
	ios    int64
	real   float64 // s, the window with the taking of the statistics
	length int64   // of a buffer
	thread []thread
	host   *result.HostTotal // nil = not known
	late   latency
}

type thread struct {
	seconds float64 // of its own: that of 5.39, which 5.40 shows as 0
	bytes   int64
	ios     int64
	late    latency
	estats  []result.EStats
}

// latency is of calls, ns.
type latency struct{ sum, least, most, calls int64 }

func (l *latency) add(o latency) {
	if o.calls == 0 {
		return
	}
	if l.calls == 0 || o.least < l.least {
		l.least = o.least
	}
	l.most = max(l.most, o.most)
	l.sum += o.sum
	l.calls += o.calls
}

// mean is the sum over calls/parts calls: of a round trip the XML counts the two calls as one.
func (l latency) mean(parts int64) float64 { return ratio(float64(l.sum), float64(l.calls/parts)) }

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// mostThreads bounds the table of threads: a stored run may say anything.
const mostThreads = 1 << 16

func figuresOf(r *result.Run, s Settings) *figures {
	f := &figures{run: r, host: r.Machines.Of(r.End), length: s.BufferLength}
	d := result.Up
	if len(r.Streams) > 0 {
		d = r.Streams[0].Direction
	}
	f.sender = d.Sender() == r.End
	var start, end float64
	next := 0
	for i := range r.Streams {
		st := &r.Streams[i]
		own := st.Receiver
		if f.sender {
			own = st.Sender
		}
		if st.Direction != d || own == nil {
			continue
		}
		if !f.known || own.Start < start {
			start = own.Start
		}
		if !f.known || own.End > end {
			end = own.End
		}
		f.known = true
		n := next
		if st.Thread != nil && *st.Thread >= 0 && *st.Thread < mostThreads {
			n = *st.Thread
		}
		next = n + 1
		f.count(n, st, own)
	}
	if n := min(s.threads(r), mostThreads); f.known && len(f.thread) < n {
		f.thread = append(f.thread, make([]thread, n-len(f.thread))...)
	}
	f.real = end - start
	if f.host != nil && f.host.Seconds > 0 {
		f.real = f.host.Seconds
	}
	return f
}

func (f *figures) count(n int, st *result.Stream, own *result.Total) {
	if n >= len(f.thread) {
		f.thread = append(f.thread, make([]thread, n+1-len(f.thread))...)
	}
	t := &f.thread[n]
	t.seconds = max(t.seconds, own.Seconds())
	t.estats = append(t.estats, st.EStats...)
	t.bytes += own.Bytes
	f.bytes += own.Bytes
	if st.IO == nil {
		return
	}
	t.ios += st.IO.Completions
	f.ios += st.IO.Completions
	if l := st.IO.Latency; l != nil {
		one := latency{l.Sum, l.Min, l.Max, st.IO.Completions}
		t.late.add(one)
		f.late.add(one)
	}
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

func (f *figures) perSecond(n int64) float64 { return result.PerSecond(n, f.real) }

// buffers is the bytes in units of -l: not the number of calls, and with a fraction.
func (f *figures) buffers() float64 { return ratio(float64(f.bytes), float64(f.length)) }

func (f *figures) packets() result.PacketCount {
	if f.host == nil || f.host.Packets == nil {
		return result.PacketCount{}
	}
	return *f.host.Packets
}

// frame is bytes per packet of the whole machine, sent by a sender, received by a receiver.
func (f *figures) frame() float64 {
	p := f.packets()
	if f.sender {
		return ratio(float64(f.bytes), float64(p.Sent))
	}
	return ratio(float64(f.bytes), float64(p.Received))
}

func (f *figures) interrupts() int64 {
	if f.host == nil || f.host.Interrupts == nil {
		return 0
	}
	return *f.host.Interrupts
}

func (f *figures) dpcs() int64 {
	if f.host == nil || f.host.DPCs == nil {
		return 0
	}
	return *f.host.DPCs
}

// perInterrupt and perDPC divide the packets received, on both roles.
func (f *figures) perInterrupt() float64 {
	return ratio(float64(f.packets().Received), float64(f.interrupts()))
}

func (f *figures) perDPC() float64 { return ratio(float64(f.packets().Received), float64(f.dpcs())) }

func (f *figures) cpu() float64 { return f.host.BusyPercent(f.real) }

// cycles is the clock cycles of all CPUs for each byte.
func (f *figures) cycles() float64 {
	if f.host == nil || f.host.MHz == nil {
		return 0
	}
	return ratio(f.cpu()/100*float64(f.host.Cores)**f.host.MHz*1e6, f.perSecond(f.bytes))
}

// tooShort reports that the CPU clock saw less work than none.
func (f *figures) tooShort() bool { return f.host != nil && f.host.CPU != nil && f.cpu() <= 0 }

// ours are the lines that the original does not have: the other end's numbers and what
// became of the datagrams, where the other end is a fullbore and told.
func (f *figures) ours() []string {
	var out []string
	d := result.Up
	if f.sender != (f.run.End == result.Client) {
		d = result.Down
	}
	sum := f.run.Sum(d)
	if sum == nil {
		return nil
	}
	name, other := "receiver", sum.Receiver
	if !f.sender {
		name, other = "sender", sum.Sender
	}
	if other != nil {
		out = append(out, fmt.Sprintf("%s: %.6f MB in %.3f s, %.3f MB/s", name, float64(other.Bytes)/mib, other.Seconds(), other.Rate()/8/mib))
	}
	if f.run.Test.Transport != "udp" {
		return out
	}
	var sent, lost int64
	switch {
	case sum.UDP != nil && sum.UDP.Loss != nil:
		sent, lost = sum.UDP.Loss.Sent, sum.UDP.Loss.Lost
	case sum.Sender != nil && sum.Receiver != nil && sum.Sender.Packets != nil && sum.Receiver.Packets != nil:
		sent = *sum.Sender.Packets
		lost = max(sent-*sum.Receiver.Packets, 0)
	default:
		if text := datagram.Dropped(sum.UDP); text != "" {
			out = append(out, text)
		}
		return out
	}
	out = append(out, fmt.Sprintf("datagrams: %d sent, %d received, %d lost (%.4g%%)", sent, sent-lost, lost, 100*ratio(float64(lost), float64(sent))))
	if sum.UDP != nil {
		if text := datagram.Owners(sum.UDP.Loss); text != "" {
			out = append(out, text)
		}
	}
	return out
}
