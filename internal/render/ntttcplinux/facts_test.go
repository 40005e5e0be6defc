package ntttcplinux_test

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/result"
)

// span is what is known of a number: it lies between lo and hi.
type span struct{ lo, hi float64 }

var anything = span{0, math.Inf(1)}

func (s span) and(o span) span { return span{max(s.lo, o.lo), min(s.hi, o.hi)} }
func (s span) empty() bool     { return s.lo > s.hi }
func (s span) mid() float64    { return (s.lo + s.hi) / 2 }
func (s span) times(f float64) span {
	return span{s.lo * f, s.hi * f}
}

// into is f divided by the span: what f/x says of x.
func (s span) into(f float64) span { return span{f / s.hi, f / s.lo} }

// printed is what a number with so many decimals says of what it was.
func printed(s string) span {
	_, frac, _ := strings.Cut(s, ".")
	half := 0.5 * math.Pow10(-len(frac))
	v := flt(s)
	return span{v - half, v + half}
}

// rateOf reads "35.79Gbps", as bit/s.
func rateOf(s string) span {
	for i, unit := range []string{"Gbps", "Mbps", "Kbps", "bps"} {
		if n, ok := strings.CutSuffix(s, unit); ok {
			return printed(n).times(math.Pow(1000, float64(3-i)))
		}
	}
	return anything
}

// facts are the figures of a recorded run, gathered from its console, XML and JSON. Each
// narrows what the unrounded numbers can have been.
type facts struct {
	any     bool // there are totals
	bytes   int64
	whole   int64 // before late 1.4.0, XML's arithmetic uses whole MiB
	seconds span
	threads []span // bytes of each

	percent map[string]string // of CPU time, as printed
	cycles  []string
	busy    span // percent
	cores   int
	mhz     float64

	retrans    int64
	isRetrans  bool
	perSecond  map[string]span // retransmissions
	packets    *result.PacketCount
	interrupts *int64
	irqRate    span
	rtt        *int64
	conns      int
}

func newFacts() *facts {
	return &facts{seconds: anything, busy: anything, irqRate: anything, percent: map[string]string{}, perSecond: map[string]span{}}
}

var (
	reThread = regexp.MustCompile(`^\t(\d+)\t ([\d.]+)\t (\S+)$`)
	reFigure = regexp.MustCompile(`^(\t )?([^\t:]+)\t+:(.*)$`)
	reTested = regexp.MustCompile(`^(\d+) connections tested$`)
)

// line reads one line of the console's result.
func (f *facts) line(t *testing.T, text string) {
	if m := reThread.FindStringSubmatch(text); m != nil {
		f.seconds = f.seconds.and(printed(m[2]))
		f.threads = append(f.threads, rateOf(m[3])) // bit/s until solved
		return
	}
	if m := reTested.FindStringSubmatch(text); m != nil {
		f.conns = num(m[1])
		return
	}
	m := reFigure.FindStringSubmatch(text)
	if m == nil {
		return
	}
	f.any = true
	switch name, value := m[2], m[3]; name {
	case "test duration":
		f.seconds = f.seconds.and(printed(strings.TrimSuffix(value, " seconds")))
	case "total bytes":
		f.bytes, _ = strconv.ParseInt(value, 10, 64)
	case "throughput":
		f.seconds = f.seconds.and(rateOf(value).into(float64(f.bytes) * 8))
	case "retrans segs":
		f.retrans, f.isRetrans = int64(num(value)), true
	case "tx_packets":
		f.packets = &result.PacketCount{Interface: "lo", Sent: int64(num(value))}
	case "rx_packets":
		f.packets.Received = int64(num(value))
	case "total":
		n := int64(num(value))
		f.interrupts = &n
	case "interrupts/sec":
		f.irqRate = printed(value)
	case "pkts/interrupt":
	case "cpu cores":
		f.cores = num(value)
	case "cpu speed":
		f.mhz = flt(strings.TrimSuffix(value, "MHz"))
	case "user", "system", "idle", "iowait", "softirq":
		f.percent[name] = strings.TrimSuffix(value, "%")
	case "cycles/byte":
		f.cycles = append(f.cycles, value)
	case "cpu busy (all)":
		f.busy = f.busy.and(printed(strings.TrimSuffix(value, "%")))
	case "tcpi rtt":
		n := int64(num(strings.TrimSuffix(value, " us")))
		f.rtt = &n
	default:
		key, ok := strings.CutSuffix(name, "/sec")
		if !ok {
			t.Errorf("unknown figure %q", text)
		}
		f.perSecond[key] = printed(value)
	}
}

var reElement = regexp.MustCompile(`<(\w+)(?: metric="([^"]*)")?>([^<]*)</`)

// xml reads a document of -x.
func (f *facts) xml(doc string, old bool) {
	thread := -1
	for line := range strings.Lines(doc) {
		if strings.Contains(line, "<thread ") {
			thread++
			continue
		} else if strings.Contains(line, "</thread>") || strings.Contains(line, "<total_bytes") {
			if strings.Contains(line, "</thread>") {
				continue
			}
			thread = -1
		}
		m := reElement.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		inside := strings.HasPrefix(line, "\t\t")
		f.element(m[1], m[2], m[3], thread, inside, old)
	}
}

func (f *facts) element(name, metric, value string, thread int, inside, old bool) {
	switch {
	case name == "realtime":
		f.seconds = f.seconds.and(printed(value))
	case name == "throughput" && inside && thread >= 0:
		f.part(thread, metric, value, old)
	case name == "throughput" && metric != "buffers/s" && !inside:
		v := printed(value)
		switch {
		case old && metric == "MB/s":
			f.seconds = f.seconds.and(v.into(float64(f.whole)))
		case old:
			f.seconds = f.seconds.and(v.into(float64(f.whole) * 8))
		default:
			f.seconds = f.seconds.and(v.times(map[string]float64{"MB/s": 1e6, "mbps": 1e6 / 8, "Bps": 1}[metric]).into(float64(f.bytes)))
		}
	case name == "total_bytes":
		f.whole = f.bytes >> 20
	case name == "packets_retransmitted":
		f.retrans = int64(num(value))
		f.isRetrans = true
	case name == "cycles" || name == "cycles_per_byte":
		f.cycles = append(f.cycles, value)
	case name == "cpu" || name == "cpu_busy_all":
		f.busy = f.busy.and(printed(value))
	case name == "tcp_average_rtt":
		n := int64(num(value))
		f.rtt = &n
	case name == "interrupts" && value != "0.000":
		f.irqRate = f.irqRate.and(printed(value))
	}
}

// part reads a thread's throughput; the console's comes first and has it in bit/s.
func (f *facts) part(i int, metric, value string, old bool) {
	kb, mb := 1e3*8, 1e6*8
	if old {
		kb, mb = 1024*8, 1024*1024*8
	}
	unit := map[string]float64{"KB/s": kb, "MB/s": mb, "mbps": mb / 8}[metric]
	for len(f.threads) <= i {
		f.threads = append(f.threads, anything)
	}
	f.threads[i] = f.threads[i].and(printed(value).times(unit))
}

// json reads a document of -j.
func (f *facts) json(t *testing.T, doc []byte) {
	type pair struct{ Metric, Value string }
	var outer map[string]struct {
		RealTime    pair
		Throughputs []pair
		Cycles, CPU pair
		Threads     []struct{ Throughputs []pair }
	}
	if err := json.Unmarshal(doc, &outer); err != nil {
		t.Fatal(err)
	}
	for _, d := range outer {
		f.element("realtime", "", d.RealTime.Value, -1, false, false)
		for _, p := range d.Throughputs {
			if p.Metric != "buffer/s" {
				f.element("throughput", p.Metric, p.Value, -1, false, false)
			}
		}
		for i, th := range d.Threads {
			for _, p := range th.Throughputs {
				f.part(i, p.Metric, strings.TrimSuffix(p.Value, " bps"), false)
			}
		}
		f.element("cycles", "", d.Cycles.Value, -1, false, false)
		f.element("cpu", "", d.CPU.Value, -1, false, false)
	}
}

// solve fills streams and counters with numbers that agree with every figure.
func (f *facts) solve(t *testing.T, end result.End, streams []result.Stream) (seconds float64, h *result.HostTotal) {
	t.Helper()
	if f.interrupts != nil && !math.IsInf(f.irqRate.hi, 1) {
		f.seconds = f.seconds.and(f.irqRate.into(float64(*f.interrupts)))
	}
	if len(f.threads) == threadCount(streams) {
		var all span
		for _, th := range f.threads {
			all.lo, all.hi = all.lo+th.lo, all.hi+th.hi
		}
		f.seconds = f.seconds.and(all.into(float64(f.bytes) * 8))
	}
	counts := map[string]int64{}
	for name, rate := range f.perSecond {
		n := int64(math.Round(rate.mid() * f.seconds.mid()))
		if counts[name] = n; n > 0 {
			f.seconds = f.seconds.and(rate.into(float64(n)))
		}
	}
	h = &result.HostTotal{Cores: f.cores, CoresAfter: f.cores, MHz: &f.mhz, Interrupts: f.interrupts, Packets: f.packets}
	h.CPU = f.ticks(t)
	seconds = f.seconds.mid()
	if f.seconds.empty() {
		t.Errorf("no time agrees with the figures: %v", f.seconds)
	}
	h.Seconds = seconds
	process := int64(f.busy.mid() / 100 * seconds * 1e9)
	h.Process = &process
	if f.isRetrans {
		h.TCP = &result.TCPCounters{
			RetransSegs: f.retrans, LostRetransmit: counts["lost_retrans"], SynRetrans: counts["syn_retrans"],
			FastRetrans: counts["fast_retrans"], ForwardRetrans: counts["forward_retrans"],
			SlowStart: counts["slowStart_retrans"], RetransmitFails: counts["retrans_fail"],
		}
	}
	f.deal(t, end, streams, seconds)
	return seconds, h
}

func threadCount(streams []result.Stream) int {
	n := 0
	for _, s := range streams {
		n = max(n, *s.Thread+1)
	}
	return n
}

// ticks finds the counts of 10 ms that give the printed shares and cycles, near to the
// number there must have been, and narrows the time by the cycles.
func (f *facts) ticks(t *testing.T) *result.CPUTime {
	near := int(math.Round(f.seconds.mid() * 100 * float64(f.cores)))
	for off := range 400 {
		for _, n := range []int{near - off, near + off} {
			if n <= 0 {
				continue
			}
			k, ok := f.split(n)
			if !ok {
				continue
			}
			c := &result.CPUTime{User: k["user"], System: k["system"], Idle: k["idle"], IOWait: k["iowait"], SoftIRQ: k["softirq"]}
			if c.Nice = int64(n)*1e7 - c.Total(); c.Nice < 0 {
				continue
			}
			s := f.seconds
			h := &result.HostTotal{Cores: f.cores, MHz: &f.mhz, CPU: c}
			for _, p := range f.cycles {
				if one := h.CyclesPerByte(f.bytes, 1); one > 0 {
					s = s.and(printed(p).times(1 / one))
				}
			}
			if !s.empty() {
				f.seconds = s
				return c
			}
		}
	}
	t.Errorf("no ticks give %v", f.percent)
	return &result.CPUTime{}
}

func (f *facts) split(n int) (map[string]int64, bool) {
	out := map[string]int64{}
	for name, p := range f.percent {
		k := math.Round(flt(p) * float64(n) / 100)
		if fmt.Sprintf("%.2f", k/float64(n)*100) != p {
			return nil, false
		}
		out[name] = int64(k) * 1e7
	}
	return out, true
}

// deal gives the bytes to the threads and their connections.
func (f *facts) deal(t *testing.T, end result.End, streams []result.Stream, seconds float64) {
	t.Helper()
	threads := threadCount(streams)
	per := map[int]int64{}
	for _, s := range streams {
		per[*s.Thread]++
	}
	bytes := make([]int64, threads)
	left := f.bytes
	for i := range bytes {
		if len(f.threads) == threads {
			bytes[i] = int64(f.threads[i].times(seconds / 8).mid())
		} else {
			bytes[i] = f.bytes / int64(threads)
		}
		left -= bytes[i]
	}
	for i := range bytes { // what rounding left over goes where there is room
		room := span{-float64(f.bytes), float64(f.bytes)}
		if len(f.threads) == threads {
			room = f.threads[i].times(seconds / 8)
			room = span{math.Ceil(room.lo) - float64(bytes[i]), math.Floor(room.hi) - float64(bytes[i])}
		}
		d := int64(min(max(float64(left), room.lo), room.hi))
		bytes[i] += d
		left -= d
	}
	if left != 0 {
		t.Errorf("%d bytes of %d do not fit into the threads", left, f.bytes)
	}
	done := map[int]int64{}
	for i := range streams {
		s := &streams[i]
		th := *s.Thread
		part := bytes[th] / per[th]
		if done[th]++; done[th] == per[th] {
			part = bytes[th] - part*(per[th]-1)
		}
		total := &result.Total{End: seconds, Bytes: part}
		if end == result.Client {
			s.Sender = total
		} else {
			s.Receiver = total
		}
		if f.rtt != nil {
			s.TCP = &result.TCPSummary{Last: result.TCPInfo{RTT: *f.rtt}}
		}
	}
}
