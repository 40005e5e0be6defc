package importer

import (
	"math"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// ntttcp gathers the figures of one document of NTTTCP, of whatever form: all forms have the same
// figures, under names that are nearly the same. The names here are those of the XML.
type ntttcp struct {
	sender, windows bool
	version, name   string
	os              string
	figures         []result.Figure // as they stand there
	params          map[string]string

	seconds       span
	bytes         span // of all threads
	rate          span // bytes/s
	threads       []ntThread
	conns         int
	perCompletion span
	cores         int
	mhz           *float64
	share         map[string]span // percent of the CPU's time
	busy          *span           // Linux: percent of a core that the program took; Windows: of all cores, by all
	cycles        *span
	packets       result.PacketCount
	isPackets     bool
	interrupts    *int64
	interruptRate *span
	dpcRate       *span
	tcp           map[string]span // per second
	retransmits   *int64
	rtt           *int64
	failed        string
	reports       []float64 // bit/s of the reports while it ran
	kb, mb        float64   // bytes in a KB and MB of this document
	known         bool      // totals were there
	bufferLen     int
	interrupted   bool
	perThreadTime bool // rates of threads are over their own times (Windows console)
}

type ntThread struct{ seconds, rate, perCompletion span }

func newNTTTCP() *ntttcp {
	return &ntttcp{
		seconds: anything(), bytes: anything(), rate: anything(), perCompletion: anything(),
		share: map[string]span{}, tcp: map[string]span{}, params: map[string]string{}, kb: 1000, mb: 1e6,
	}
}

// thread returns the i-th thread's figures.
func (f *ntttcp) thread(i int) *ntThread {
	for len(f.threads) <= i && i < 1<<16 {
		f.threads = append(f.threads, ntThread{anything(), anything(), anything()})
	}
	return &f.threads[min(i, len(f.threads)-1)]
}

// keep notes a figure as it stands in the document.
func (f *ntttcp) keep(name, metric, value string) {
	if metric != "" {
		name += " " + metric
	}
	f.figures = append(f.figures, result.Figure{Name: name, Value: value})
}

// set takes a figure of thread i, or of the whole with i = -1.
func (f *ntttcp) set(i int, name, metric, value string) {
	if i >= 0 {
		f.keep("thread["+strconv.Itoa(i)+"]."+name, metric, value)
		t := f.thread(i)
		value = strings.TrimSuffix(value, " bps")
		switch name {
		case "realtime":
			t.seconds = t.seconds.and(printed(value))
		case "throughput":
			t.rate = t.rate.and(printed(value).times(f.unit(metric)))
		case "avg_bytes_per_compl":
			t.perCompletion = printed(value)
		}
		return
	}
	f.keep(name, metric, value)
	count := func() *int64 { n := num64(value); return &n }
	is := func() *span { s := printed(value); return &s }
	switch name {
	case "conns_tested":
		f.conns = num(value)
	case "total_bytes":
		f.known = true
		f.bytes = f.bytes.and(f.total(value))
	case "realtime":
		f.seconds = f.seconds.and(printed(value))
	case "throughput":
		if u := f.unit(metric); u > 0 {
			f.rate = f.rate.and(printed(value).times(u))
		}
	case "avg_bytes_per_compl":
		f.perCompletion = printed(value)
	case "interrupts":
		f.interruptRate = is()
	case "total_interrupts":
		f.interrupts = count()
	case "dpcs":
		f.dpcRate = is()
	case "packets_sent":
		f.packets.Sent, f.isPackets = num64(value), true
	case "packets_received":
		f.packets.Received, f.isPackets = num64(value), true
	case "packets_retransmitted":
		f.retransmits = count()
	case "errors":
		f.packets.Errors = num64(value)
	case "tcp_retransmits":
		if metric == "retrans_segs" {
			f.retransmits = count()
		} else {
			f.tcp[strings.TrimSuffix(metric, "_per_sec")] = printed(value)
		}
	case "cpu_cores", "num_processors":
		f.cores = num(value)
	case "cpu_speed":
		v := flt(value)
		f.mhz = &v
	case "user", "system", "idle", "iowait", "softirq":
		f.share[name] = printed(value)
	case "cycles", "cycles_per_byte":
		f.cycles = both(f.cycles, is())
	case "cpu", "cpu_busy_all":
		f.busy = both(f.busy, is())
	case "tcp_average_rtt":
		n := num64(strings.TrimSuffix(value, " us"))
		f.rtt = &n
	case "bufferLen":
		f.bufferLen = num(value)
	}
}

// both narrows a by b.
func both(a, b *span) *span {
	if a == nil {
		return b
	}
	if s := a.and(*b); !s.empty() {
		return &s
	}
	return a
}

// unit is how many bytes/s a throughput's metric counts, 0 = it is none.
func (f *ntttcp) unit(metric string) float64 {
	switch metric {
	case "KB/s":
		return f.kb
	case "MB/s":
		return f.mb
	case "mbps":
		if f.windows {
			return 1e6 / 8
		}
		return f.mb / 8
	case "Bps":
		return 1
	}
	return 0
}

// total reads the document's MB. Before late 1.4.0 the Linux program cut to whole MiB.
func (f *ntttcp) total(value string) span {
	if !f.windows && f.mb != 1e6 {
		n := flt(value)
		return span{n * f.mb, (n+1)*f.mb - 1}
	}
	return printed(value).times(f.mb)
}

// run makes a run of the figures.
func (f *ntttcp) run() *result.Run {
	end := result.Server
	if f.sender {
		end = result.Client
	}
	r := &result.Run{
		Schema: result.Schema, End: end, Protocol: "ntttcp",
		Tool:     result.Tool{Name: "ntttcp", Version: f.version},
		Test:     result.Test{Transport: "tcp", Direction: "up"},
		NTTTCP:   &result.NTTTCP{Dialect: "linux"},
		Imported: &result.Imported{Figures: f.figures},
	}
	if f.windows {
		r.NTTTCP.Dialect = "windows"
	}
	host := &result.Host{Name: f.name, Tool: &r.Tool, SystemInfo: f.os, Cores: f.cores, OS: r.NTTTCP.Dialect}
	if words := strings.Fields(f.os); len(words) >= 3 && !f.windows {
		host.Release = words[2]
	}
	r.Hosts.Set(end, host)
	f.settings(r)
	seconds := f.streams(r)
	n := int64(max(r.Test.Streams, 1)) // its limits are of all connections together
	r.Test.Bitrate, r.Test.FQRate = num64(f.params["bandwidth limit (bits/sec)"])/n, num64(f.params["fq rate limit (bits/sec)"])/n
	f.machine(r, seconds)
	for i, bps := range f.reports {
		const length = 0.5 // of the real-time lines
		r.Rows = append(r.Rows, result.Interval{
			End: end, Index: i, Start: float64(i) * length, Stop: float64(i+1) * length,
			Sums: []result.IntervalSum{{Direction: result.Up, Sender: f.sender, Start: float64(i) * length, Stop: float64(i+1) * length, Bytes: int64(bps * length / 8), BPS: bps}},
		})
	}
	if f.failed != "" {
		r.Err = &result.Error{Code: "ntttcp", Text: f.failed, Interrupted: f.interrupted}
	}
	return result.Fold(result.Unfold(r))
}

// settings reads the parameters.
func (f *ntttcp) settings(r *result.Run) {
	p := f.params
	scale := 1.0
	if f.windows {
		scale = 1e-3 // its times are ms
	}
	r.Test.Duration, r.Test.Omit = flt(p["run_time"])*scale, flt(p["warmup_time"])*scale
	r.NTTTCP.Cooldown = flt(p["cooldown_time"]) * scale
	r.NTTTCP.NoSync = p["no_sync"] == "True"
	if p["udp"] == "True" {
		r.Test.Transport = "udp"
	}
	r.Test.Port = num(p["port"])
	r.NTTTCP.BasePort = r.Test.Port
	block := p["recv_socket_buff"]
	if f.sender {
		block = p["send_socket_buff"]
	}
	r.Test.BlockSize = num(block)
	if f.windows {
		r.Test.BlockSize = f.bufferLen
		r.NTTTCP.BasePort -= len(f.threads) // it is counted up for each thread
	}
	r.Test.Target = p["server_address"]
	r.Test.NoDelay = p["tcp nodelay"] == "yes"
	r.NTTTCP.MultiClient, r.NTTTCP.LastClient = p["multiple clients"] == "yes", p["last client"] == "yes"
}

// streams makes a stream of each thread, with amounts that agree with all figures, and returns the
// time.
func (f *ntttcp) streams(r *result.Run) float64 {
	if !f.known {
		r.Test.Streams = max(len(f.threads), f.conns, 1)
		return 0
	}
	n := max(len(f.threads), 1)
	if f.seconds.hi == math.Inf(1) {
		f.seconds = span{0, 0}
	}
	g := group{nominal: f.seconds.mid(), slack: (f.seconds.hi - f.seconds.lo) / 2}
	if len(f.threads) == 0 {
		g.amounts, g.rates = []span{f.bytes}, []span{f.rate}
	} else {
		for _, t := range f.threads {
			rate := t.rate
			if t.seconds.hi < math.Inf(1) && f.perThreadTime && rate.hi < math.Inf(1) {
				// the console divides by each thread's own time
				rate = span{rate.lo * t.seconds.lo / f.seconds.hi, rate.hi * t.seconds.hi / f.seconds.lo}
			}
			g.amounts, g.rates = append(g.amounts, span{0, f.bytes.hi}), append(g.rates, rate)
		}
		g.sum, g.sumRate = &f.bytes, &f.rate
	}
	seconds, bytes, ok := g.solve()
	if !ok { // threads whose figures do not add up: shares of the whole
		total := int64(math.Round(f.bytes.mid()))
		for i := range bytes {
			bytes[i] = total / int64(n)
		}
		bytes[0] += total - total/int64(n)*int64(n)
	}
	r.Test.Streams = n
	r.NTTTCP.Ports, r.NTTTCP.Threads, r.NTTTCP.Connections = n, 1, 1
	if f.conns > n && f.conns%n == 0 {
		r.Test.Streams, r.NTTTCP.Connections = f.conns, f.conns/n
	}
	for i := range n {
		thread := i
		total := &result.Total{End: seconds, Bytes: bytes[i]}
		s := result.Stream{ID: i + 1, Direction: result.Up, Thread: &thread}
		if len(f.threads) > 0 {
			t := f.threads[i]
			if f.windows && t.seconds.hi < math.Inf(1) && t.seconds.mid() > 0 {
				total.End = t.seconds.mid()
			}
			if t.perCompletion.hi < math.Inf(1) && t.perCompletion.mid() > 1 {
				s.IO = &result.IOCount{Completions: int64(math.Round(float64(bytes[i]) / t.perCompletion.mid()))}
			}
		}
		if f.sender {
			s.Sender = total
		} else {
			s.Receiver = total
		}
		if f.rtt != nil {
			s.TCP = &result.TCPSummary{MeanRTT: *f.rtt, Last: result.TCPInfo{RTT: *f.rtt}}
		}
		r.Streams = append(r.Streams, s)
	}
	return seconds
}

// machine fills the counters of the host, chosen so that they give the figures that were printed.
func (f *ntttcp) machine(r *result.Run, seconds float64) {
	if !f.known || seconds <= 0 {
		return
	}
	h := &result.HostTotal{Seconds: seconds, Cores: f.cores, CoresAfter: f.cores, MHz: f.mhz, Interrupts: f.interrupts}
	if h.Interrupts == nil && f.interruptRate != nil {
		h.Interrupts = counted(f.interruptRate, seconds)
	}
	if f.dpcRate != nil && f.windows {
		h.DPCs = counted(f.dpcRate, seconds)
	}
	if f.isPackets {
		p := f.packets
		p.Interface = f.params["show packets for"]
		if f.windows && f.retransmits != nil {
			p.Retransmitted = *f.retransmits
		}
		h.Packets = &p
	}
	if f.retransmits != nil && !f.windows {
		h.TCP = &result.TCPCounters{RetransSegs: *f.retransmits}
		for name, to := range map[string]*int64{
			"lost_retrans": &h.TCP.LostRetransmit, "syn_retrans": &h.TCP.SynRetrans, "fast_retrans": &h.TCP.FastRetrans,
			"forward_retrans": &h.TCP.ForwardRetrans, "slowStart_retrans": &h.TCP.SlowStart, "retrans_fail": &h.TCP.RetransmitFails,
		} {
			if s, ok := f.tcp[name]; ok {
				*to = *counted(&s, seconds)
			}
		}
	}
	f.cpu(r, h, seconds)
	totals := &result.HostTotals{}
	if f.sender {
		totals.Client = h
	} else {
		totals.Server = h
	}
	r.Machines = totals
}

// counted is the count that a rate over so many seconds was made of.
func counted(rate *span, seconds float64) *int64 {
	n := int64(math.Round(rate.mid() * seconds))
	return &n
}

// cpu fills the processor's times.
func (f *ntttcp) cpu(r *result.Run, h *result.HostTotal, seconds float64) {
	all := float64(max(f.cores, 1)) * seconds * 1e9
	var bytes int64
	for i := range r.Streams {
		for _, t := range []*result.Total{r.Streams[i].Sender, r.Streams[i].Receiver} {
			if t != nil {
				bytes += t.Bytes
			}
		}
	}
	switch {
	case f.windows && f.busy != nil && f.cores > 0:
		busy := *f.busy
		h.CPU = &result.CPUTime{System: int64(busy.mid() / 100 * all)}
		h.CPU.Idle = int64(all) - h.CPU.System
		if f.cycles != nil && f.mhz == nil && busy.mid() > 0 { // the clock follows from the other figures
			mhz := f.cycles.mid() * float64(bytes) / seconds / (busy.mid() / 100 * float64(f.cores)) / 1e6
			h.MHz = &mhz
		}
	case len(f.share) > 0:
		idle := f.share["idle"]
		if f.cycles != nil && f.mhz != nil && bytes > 0 { // cycles/byte says more exactly what was not idle
			full := *f.mhz * 1e6 * seconds * float64(max(f.cores, 1)) / float64(bytes) / 100 // cycles/byte for each percent
			if s := idle.and(span{100 - f.cycles.hi/full, 100 - f.cycles.lo/full}); full > 0 && !s.empty() {
				idle = s
			}
		}
		part := func(s span) int64 { return int64(s.mid() / 100 * all) }
		h.CPU = &result.CPUTime{User: part(f.share["user"]), System: part(f.share["system"]), Idle: part(idle), IOWait: part(f.share["iowait"]), SoftIRQ: part(f.share["softirq"])}
		h.CPU.Nice = max(int64(all)-h.CPU.Total(), 0)
	}
	if f.busy != nil && !f.windows {
		ns := int64(math.Round(f.busy.mid() / 100 * seconds * 1e9))
		h.Process = &ns
	}
}
