package ntttcplinux

import (
	"fmt"

	"github.com/fullbore-net/fullbore/result"
)

// figures are the numbers that the outputs share, of the recording end.
type figures struct {
	run     *result.Run
	sender  bool // NTTTCP's sender
	udp     bool
	known   bool // there are totals
	conns   int
	bytes   int64
	seconds float64
	threads []thread
	host    *result.HostTotal // nil = not known
	rtt     *int64            // µs, of a TCP sender
}

// thread is one worker's part. All share one time, as in the original.
type thread struct {
	bytes   int64
	seconds float64
	conns   int
	rtt     int64 // sum over its connections
	rtts    int   // how many of them told
}

// figuresOf reads r. A run that is not NTTTCP's is read as far as it goes, in the
// direction of its first stream.
func figuresOf(r *result.Run) *figures {
	f := &figures{run: r, udp: r.Test.Transport == "udp", host: r.Machines.Of(r.End)}
	d := result.Up
	if len(r.Streams) > 0 {
		d = r.Streams[0].Direction
	}
	f.sender = d.Sender() == r.End
	var start, end float64
	first := true
	for i := range r.Streams {
		s := &r.Streams[i]
		if s.Direction != d {
			continue
		}
		f.conns++
		own := f.own(s)
		if own == nil {
			continue
		}
		if first || own.Start < start {
			start = own.Start
		}
		if first || own.End > end {
			end = own.End
		}
		first = false
		f.known = true
		f.bytes += own.Bytes
		f.count(f.threadOf(s), s, own)
	}
	f.seconds = end - start
	if n := f.expected(); f.known && len(f.threads) < n {
		f.threads = append(f.threads, make([]thread, n-len(f.threads))...)
	}
	for i := range f.threads { // a worker that began half a millisecond later was not faster for it
		f.threads[i].seconds = f.seconds
	}
	f.rtt = f.meanRTT()
	return f
}

// own is what the recording end counted for s.
func (f *figures) own(s *result.Stream) *result.Total {
	if f.sender {
		return s.Sender
	}
	return s.Receiver
}

// mostThreads bounds the table of threads: a stored run may say anything.
const mostThreads = 1 << 16

// expected is how many threads the settings name; 0 = they do not.
func (f *figures) expected() int {
	n := f.run.NTTTCP
	if n == nil || n.Ports < 0 || n.Ports > mostThreads {
		return 0
	}
	if !f.sender {
		return n.Ports
	}
	if n.Threads < 0 || n.Threads > mostThreads/max(n.Ports, 1) {
		return 0
	}
	return n.Ports * n.Threads
}

// threadOf is the number of the worker of s: what the run says, else as NTTTCP deals
// connections out. The receiver's threads are its ports.
func (f *figures) threadOf(s *result.Stream) int {
	n := f.run.NTTTCP
	switch {
	case s.Thread != nil && *s.Thread >= 0 && *s.Thread < mostThreads:
		return *s.Thread
	case f.sender && n != nil && n.Connections > 0:
		return (f.conns - 1) / n.Connections
	case !f.sender && n != nil && s.Local.Port >= n.BasePort && s.Local.Port < n.BasePort+min(n.Ports, mostThreads):
		return s.Local.Port - n.BasePort
	}
	return f.conns - 1
}

func (f *figures) count(i int, s *result.Stream, own *result.Total) {
	if i >= len(f.threads) {
		f.threads = append(f.threads, make([]thread, i+1-len(f.threads))...)
	}
	t := &f.threads[i]
	t.conns++
	t.bytes += own.Bytes
	if s.TCP != nil && s.TCP.Last.RTT > 0 {
		t.rtt += s.TCP.Last.RTT
		t.rtts++
	}
}

// meanRTT is NTTTCP's: the integer mean over the threads of the integer means over their
// connections. nil = nobody told.
func (f *figures) meanRTT() *int64 {
	if !f.sender || f.udp {
		return nil
	}
	var sum, n int64
	for _, t := range f.threads {
		if t.rtts > 0 {
			sum += t.rtt / int64(t.rtts)
			n++
		}
	}
	if n == 0 {
		return nil
	}
	sum /= n
	return &sum
}

// rate is bit/s over the whole run.
func (f *figures) rate() float64 { return result.Rate(f.bytes, f.seconds) }

// tcp returns TCP's counters of the machine, nil when not known.
func (f *figures) tcp() *result.TCPCounters {
	if f.host == nil {
		return nil
	}
	return f.host.TCP
}

// retransmits are the names of the retransmission rates, as the console and as the
// documents spell them, with their counts.
func retransmits(c *result.TCPCounters) []retransmit {
	return []retransmit{
		{"retrans_segments/sec", "retrans_segments_per_sec", c.RetransSegs},
		{"lost_retrans/sec", "lost_retrans_per_sec", c.LostRetransmit},
		{"syn_retrans/sec", "syn_retrans_per_sec", c.SynRetrans},
		{"fast_retrans/sec", "fast_retrans_per_sec", c.FastRetrans},
		{"forward_retrans/sec", "forward_retrans_per_sec", c.ForwardRetrans},
		{"slowStart_retrans/sec", "slowStart_retrans_per_sec", c.SlowStart},
		{"retrans_fail/sec", "retrans_fail_per_sec", c.RetransmitFails},
	}
}

type retransmit struct {
	console, document string
	count             int64
}

// share is a kind of CPU time that the outputs show.
type share struct {
	name    string
	percent float64
}

// shares splits the machine's CPU time. They need not add up to 100: what was spent in
// interrupts, at low priority or by other guests is not shown.
func (f *figures) shares() []share {
	var c result.CPUTime
	if f.host != nil && f.host.CPU != nil {
		c = *f.host.CPU
	}
	return []share{
		{"user", c.Percent(c.User)},
		{"system", c.Percent(c.System)},
		{"idle", c.Percent(c.Idle)},
		{"iowait", c.Percent(c.IOWait)},
		{"softirq", c.Percent(c.SoftIRQ)},
	}
}

func (f *figures) mhz() float64 {
	if f.host == nil || f.host.MHz == nil {
		return 0
	}
	return *f.host.MHz
}

func (f *figures) cores() int {
	if f.host == nil {
		return 0
	}
	return f.host.Cores
}

// packets are those of the interface that was asked for, nil when none was.
func (f *figures) packets() *result.PacketCount {
	if f.host == nil {
		return nil
	}
	return f.host.Packets
}

func (f *figures) interrupts() *int64 {
	if f.host == nil {
		return nil
	}
	return f.host.Interrupts
}

var units = []string{"bps", "Kbps", "Mbps", "Gbps"}

// rateText is bit/s as NTTTCP prints it: powers of 1000, two decimals, no unit above G.
func rateText(bps float64) string {
	i := 0
	for ; bps > 1000 && i < len(units)-1; i++ {
		bps /= 1000
	}
	return fmt.Sprintf("%.2f%s", bps, units[i])
}

// rowRate is the bit/s of one report of the recording end, over all its streams.
func rowRate(iv *result.Interval) float64 {
	var bytes int64
	if len(iv.Sums) > 0 {
		for _, s := range iv.Sums {
			bytes += s.Bytes
		}
	} else {
		for _, s := range iv.Streams {
			bytes += s.Bytes
		}
	}
	return result.Rate(bytes, iv.Stop-iv.Start)
}
