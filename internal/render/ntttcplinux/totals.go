package ntttcplinux

import (
	"fmt"

	"github.com/fullbore-net/fullbore/internal/datagram"
	"github.com/fullbore-net/fullbore/result"
)

// totals are the lines of the result, each of which gets a time before it.
func (f *figures) totals(o *Options) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if o.Verbose && !o.NoThreads {
		add("\tThread\tTime(s)\tThroughput")
		add("\t======\t=======\t==========")
		for i, t := range f.threads {
			add("\t%d\t %.2f\t %s", i, t.seconds, rateText(result.Rate(t.bytes, t.seconds)))
		}
	}
	if f.sender {
		add("%d connections tested", f.conns)
	}
	add("#####  Totals:  #####")
	add("test duration\t:%.2f seconds", f.seconds)
	add("total bytes\t:%d", f.bytes)
	add("\t throughput\t:%s", rateText(f.rate()))
	if c := f.tcp(); c != nil && !f.udp && o.Release.since(R140) {
		add("\t retrans segs\t:%d", c.RetransSegs)
	}
	f.counters(o, add)
	f.cpu(add)
	if f.rtt != nil && o.Verbose && o.Release.since(R140Tag) {
		add("tcpi rtt\t\t:%d us", *f.rtt)
	}
	return out
}

// counters are the lines of the three --show options.
func (f *figures) counters(o *Options, add func(string, ...any)) {
	if c := f.tcp(); c != nil && o.Settings.ShowRetransmits {
		add("tcp retransmit:")
		for _, r := range retransmits(c) {
			add("\t %s\t:%.2f", r.console, result.PerSecond(r.count, f.seconds))
		}
	}
	packets, interrupts := f.packets(), f.interrupts()
	if packets != nil && o.Settings.Interface != "" {
		add("total packets:")
		add("\t tx_packets\t:%d", packets.Sent)
		add("\t rx_packets\t:%d", packets.Received)
	}
	if interrupts != nil && o.Settings.Interrupts != "" {
		add("interrupts:")
		add("\t total\t\t:%d", *interrupts)
		if o.Release.since(R143) {
			add("\t interrupts/sec\t:%.3f", result.PerSecond(*interrupts, f.seconds))
		}
	}
	if packets != nil && interrupts != nil && o.Settings.Interface != "" && o.Settings.Interrupts != "" {
		add("\t pkts/interrupt\t:%.2f", f.host.PacketsPerInterrupt())
	}
}

// cpu are the lines about the machine, as far as they are known.
func (f *figures) cpu(add func(string, ...any)) {
	h := f.host
	if h == nil {
		return
	}
	add("cpu cores\t:%d", h.Cores)
	add("\t cpu speed\t:%.3fMHz", f.mhz())
	if h.CPU != nil {
		for _, s := range f.shares() {
			tabs := "\t\t"
			if s.name == "softirq" {
				tabs = "\t"
			}
			add("\t %s%s:%.2f%%", s.name, tabs, s.percent)
		}
	}
	add("\t cycles/byte\t:%.2f", h.CyclesPerByte(f.bytes, f.seconds))
	if h.Process != nil {
		add("cpu busy (all)\t:%.2f%%", h.ProcessPercent(f.seconds))
	}
}

// ours are the lines that the original does not have: the other end's numbers and what
// became of the datagrams, where the other end is a fullbore and told.
func (f *figures) ours() []string {
	var out []string
	r := f.run
	d := result.Up
	if f.sender != (r.End == result.Client) {
		d = result.Down
	}
	sum := r.Sum(d)
	if sum == nil {
		return nil
	}
	name, other := "receiver", sum.Receiver
	if !f.sender {
		name, other = "sender", sum.Sender
	}
	if other != nil {
		line := fmt.Sprintf("%s: %d bytes in %.2f seconds, %s", name, other.Bytes, other.Seconds(), rateText(other.Rate()))
		if h := r.Machines.Of(r.End.Other()); h != nil {
			if h.Process != nil {
				line += fmt.Sprintf(", cpu busy %.2f%%", h.ProcessPercent(other.Seconds()))
			}
			if h.CPU != nil && h.MHz != nil {
				line += fmt.Sprintf(", cycles/byte %.2f", h.CyclesPerByte(other.Bytes, other.Seconds()))
			}
			if h.TCP != nil && !f.udp {
				line += fmt.Sprintf(", retrans segs %d", h.TCP.RetransSegs)
			}
		}
		out = append(out, line)
	}
	if text := loss(sum); text != "" && f.udp {
		out = append(out, text)
	}
	if u := sum.UDP; u != nil && f.udp {
		if text := datagram.Owners(u.Loss); text != "" {
			out = append(out, text)
		} else if text := datagram.Dropped(u); text != "" {
			out = append(out, text)
		}
	}
	return out
}

// loss says what became of the datagrams, "" when one end's count is not known.
func loss(s *result.Sum) string {
	var sent, lost int64
	switch {
	case s.UDP != nil && s.UDP.Loss != nil:
		sent, lost = s.UDP.Loss.Sent, s.UDP.Loss.Lost
	case s.Sender != nil && s.Receiver != nil && s.Sender.Packets != nil && s.Receiver.Packets != nil:
		sent = *s.Sender.Packets
		lost = max(sent-*s.Receiver.Packets, 0)
	default:
		return ""
	}
	ratio := 0.0
	if sent > 0 {
		ratio = float64(lost) / float64(sent) * 100
	}
	return fmt.Sprintf("datagrams: %d sent, %d received, %d lost (%.4g%%)", sent, sent-lost, lost, ratio)
}
