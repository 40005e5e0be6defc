package importer

import (
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
	share         map[string]span   // percent of the CPU's time
	shown         map[string]string // the same, as it stands there
	counted       *result.CPUTime   // ticks that give all of them
	busy          *span             // Linux: percent of a core that the program took; Windows: of all cores, by all
	cycles        *span
	packets       result.PacketCount
	isPackets     bool
	interrupts    *int64
	interruptRate *span
	perInterrupt  *span // packets both ways for each (Linux)
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

	text                      bool    // a console's, which shows only what was asked for
	buffers                   span    // Windows: bytes in units of a buffer
	bufferRate                span    // per second
	whole                     float64 // whole MB, where the document cut the total before it divided
	cut                       []span  // rates of them, MB/s
	milestones                []result.Milestone
	warm                      int      // reports before the warm-up was over
	cycle                     *float64 // s that the ends agreed on
	ports, perPort, perThread int      // as the settings say; 0 = they do not
}

type ntThread struct {
	seconds, rate, perCompletion span
	latency                      map[string]span
	estats                       []result.EStats
}

func newNTTTCP() *ntttcp {
	return &ntttcp{
		seconds: anything(), bytes: anything(), rate: anything(), perCompletion: anything(),
		buffers: anything(), bufferRate: anything(),
		share: map[string]span{}, shown: map[string]string{}, tcp: map[string]span{}, params: map[string]string{}, kb: 1000, mb: 1e6,
	}
}

// thread returns the i-th thread's figures.
func (f *ntttcp) thread(i int) *ntThread {
	for len(f.threads) <= i && i < 1<<16 {
		f.threads = append(f.threads, ntThread{seconds: anything(), rate: anything(), perCompletion: anything(), latency: map[string]span{}})
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
			if u := f.unit(metric); u > 0 {
				t.rate = t.rate.and(printed(value).times(u))
			}
		case "avg_bytes_per_compl":
			t.perCompletion = printed(value)
		case "avg_latency", "min_latency", "max_latency":
			t.latency[name] = printed(value)
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
		switch u := f.unit(metric); {
		case metric == "buffers/s":
			f.bufferRate = printed(value)
		case u > 0 && f.whole > 0:
			f.cut = append(f.cut, printed(value).times(u/f.mb))
		case u > 0:
			f.rate = f.rate.and(printed(value).times(u))
		}
	case "total_buffers":
		f.buffers = printed(value)
	case "avg_bytes_per_compl":
		f.perCompletion = printed(value)
	case "interrupts":
		f.interruptRate = is()
	case "avg_packets_per_interrupt":
		f.perInterrupt = is()
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
		f.share[name], f.shown[name] = printed(value), value
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
		f.whole = flt(value)
		return span{f.whole * f.mb, (f.whole+1)*f.mb - 1}
	}
	return printed(value).times(f.mb)
}
