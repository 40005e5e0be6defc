package ntttcp

import (
	"github.com/fullbore-net/fullbore/internal/plan"
)

// ConfigOf is the part of an NTTTCP plan that this package carries out. What only an output
// shows, and what only an engine on Windows could do, is not in it.
func ConfigOf(p plan.Plan) Config {
	p = p.Filled()
	n := p.NTTTCP
	c := Config{
		Port: p.Port, Ports: n.Ports, Threads: n.Threads, Conns: n.Connections, Transport: p.Transport,
		Warmup: p.Omit, Duration: p.Duration, Cooldown: n.CoolDown, Endless: p.Endless,
		NoSync: n.NoSync, Last: n.Last, Multi: n.MultiClient,
		Host: p.Host, Family: p.Family, BindHost: p.BindHost, BindDev: p.BindDev, SourcePort: p.ClientPort,
		BlockSize: p.BlockSize, Bitrate: n.Rate, FQRate: n.FQRate, NoDelay: p.NoDelay, Window: p.Window,
		Interval: p.Interval, Send: p.Send, Receive: p.Receive, Affinity: p.Affinity, MaxRate: p.MaxRate, MaxBytes: p.MaxBytes,
		TOS: p.TOS, Extension: p.Extension, Options: p.Options,
	}
	if c.Bitrate == 0 {
		c.Bitrate = p.Bitrate * int64(p.Streams)
	}
	if c.FQRate == 0 {
		c.FQRate = p.FQRate * int64(p.Streams)
	}
	size := n.ReceiveSocketBuffer
	if n.Sends() {
		size = n.SendSocketBuffer
	}
	if size != nil {
		// To osnet 0 is the system's own way. No buffering at all, which 0 means to Windows, is the
		// smallest that a system grants.
		c.Window = max(1, *size)
	}
	if n.SegmentSize > 0 { // the engine puts many of them into a call by itself
		c.BlockSize = n.SegmentSize
	}
	if n.Dialect == plan.NTTTCPWindows {
		c.Windows, c.PortSync = true, n.PortSync
		c.callsOf(n)
		if n.PortSync && !n.Sends() { // the port itself only tells the others
			c.Port++
		}
		if !n.NoTimeout {
			c.WaitTimeout = n.WaitTimeout
		}
		if n.Sends() {
			c.sendsWindows(n, p.Streams, p.BlockSize)
		} else {
			c.Expect = n.Ports
			c.Follow = n.Buffers > 0 // the sender's end is this end's
		}
	}
	return c
}

func (c *Config) sendsWindows(n *plan.NTTTCP, streams, length int) {
	for _, m := range n.Mappings {
		for range m.Threads {
			c.Hosts = append(c.Hosts, m.Host)
		}
	}
	if n.Buffers > 0 {
		c.Blocks, c.Duration = n.Buffers, n.TimeLimit
		if n.SegmentSize > 0 { // each of its calls is so many datagrams
			c.Blocks *= int64((length + n.SegmentSize - 1) / n.SegmentSize)
		}
		c.Warmup, c.Cooldown = 0, 0 // they have no effect there (windows §2.2, -t)
	}
}

// ReceiverConfigOf is the receiver of a listener's policy; s.NTTTCP is its own side.
func ReceiverConfigOf(s plan.Serve) Config {
	c := ConfigOf(*s.NTTTCP)
	c.Exclusive, c.OneOff, c.Allow = s.Exclusive, s.OneOff, s.Allow
	c.MaxTests, c.MaxStreams, c.MaxDuration = s.MaxTests, s.MaxStreams, s.MaxDuration
	c.FullFacts = s.FullFacts
	if s.Extension != "" {
		c.Extension = s.Extension
	}
	if s.MaxRate > 0 && (c.MaxRate == 0 || s.MaxRate < c.MaxRate) {
		c.MaxRate = s.MaxRate
	}
	if many := !s.Exclusive && !s.OneOff; many || s.NTTTCP.NTTTCP.Public { // each for the time that it wants
		c.Follow, c.Duration = true, 0
	}
	if s.Interval > 0 {
		c.Interval = s.Interval
	}
	if len(s.Affinity) > 0 {
		c.Affinity = s.Affinity
	}
	return c
}
