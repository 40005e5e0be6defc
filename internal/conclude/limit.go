package conclude

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/internal/bdp"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// The limits of M-LIMIT as Sum.Limit spells them.
const (
	CPUSender     = "cpu-sender"
	CPUReceiver   = "cpu-receiver"
	Application   = "application"
	SetRate       = "set-rate"
	ReceiveWindow = "receive-window"
	SendBuffer    = "send-buffer"
	Loss          = "loss"
	PathCapacity  = "path-capacity"
	Unknown       = "unknown"
)

// Thresholds of M-LIMIT.
const (
	cpuLoad       = 0.9  // of a worker's time: running or waiting to run
	idleShare     = 0.2  // of the sender's time with nothing to send
	windowShare   = 0.3  // held by the receiver's window, or by the send buffer
	windowConfirm = 0.15 // window·8/RTT against measured
	mathisFactor  = 2.0
	bufferDelay   = 0.5 // (mean RTT − least RTT) / least RTT: a queue stands
	idealShare    = 0.95
	// setRateReached: a paced sender counts as having reached its rate from here on. The rest is
	// the ends of the run, where pacing starts and the last data is on the way.
	setRateReached = 0.97
	// throttledShare of the time held by a CPU quota; less is the tail of a busy period.
	throttledShare = 0.05
	// shortest run that is judged: below a second the counters describe the start.
	shortestJudged = 1.0
	// singleThreaded is the most CPU that a one-threaded peer can have used. More is a
	// count since the peer's own start (esnet/iperf issue 1076), so no evidence.
	singleThreaded = 105.0
)

// lossBased are the congestion controls that Mathis' formula can speak about: those
// whose rate is a function of loss. (BBR and its kin, vegas, dctcp, westwood are not.)
var lossBased = []string{"reno", "newreno", "cubic", "bic", "htcp", "highspeed", "scalable", "hybla", "illinois"}

func isLossBased(name string) bool { return slices.Contains(lossBased, name) }

// verdict is a limit with the words for the closing sentence.
type verdict struct {
	code string
	text string // clause that follows the rate
	// host is the end to look at for CPU limits, "" otherwise.
	host result.End
}

// unknown is the verdict that decides nothing. why may be "" (nothing stands out).
func unknown(why string) verdict {
	if why == "" {
		return verdict{code: Unknown, text: "no single limit stood out"}
	}
	return verdict{code: Unknown, text: "what limited it is not known: " + why}
}

// limit is M-LIMIT for one direction, first match. A reached set rate comes first: the
// rules below it describe what a flow without one would wait for.
func limit(run *result.Run, d *direction) verdict {
	switch {
	case d.head.Basis == None || d.head.Bytes == 0:
		return verdict{}
	case isUDP(run):
		return udpLimit(run, d) // the rest of M-LIMIT is about TCP
	}
	if v := setRate(run, d); v.code != "" {
		return v
	}
	switch {
	case d.head.Seconds < shortestJudged:
		return unknown("the run is too short to tell")
	case overlapped(run):
		return unknown("other tests used the server at the same time")
	}
	if v := cpu(run, d); v.code != "" {
		return v
	}
	if d.shares == nil {
		return unknown(whyNoShares(run, d))
	}
	switch {
	case d.shares.Idle > idleShare && run.Test.File != "":
		return verdict{code: Application, text: fmt.Sprintf("reading or writing the file was the limit: the sockets had nothing to send %s of the time", percent(d.shares.Idle))}
	case d.shares.Idle > idleShare && heat(run, d.dir.Sender()).kind != cool:
		// A program that gets no processor looks like one with nothing to do.
		return unknown(fmt.Sprintf("the sockets of %s had nothing to send %s of the time while one of its cores was full", d.from, percent(d.shares.Idle)))
	case d.shares.Idle > idleShare:
		return verdict{code: Application, text: fmt.Sprintf("the sending program was the limit: its sockets had nothing to send %s of the time", percent(d.shares.Idle))}
	case d.shares.Window > windowShare:
		return verdict{code: ReceiveWindow, text: "the receiver's window was the limit" + windowDetail(run, d)}
	case d.shares.Buffer > windowShare:
		return verdict{code: SendBuffer, text: fmt.Sprintf("the sender's socket buffer was the limit (%s of the time)", percent(d.shares.Buffer))}
	}
	return pathLimit(run, d)
}

// pathLimit holds rules 5 and 6: loss, or the path's capacity. A standing queue
// together with losses is what a full bottleneck of unknown rate looks like as well as a
// lossy one, and at the ideal rate of a known link losses are its overflow: neither is
// called loss.
func pathLimit(run *result.Run, d *direction) verdict {
	flow, ok := flowFacts(run, d)
	if !ok {
		return unknown("")
	}
	ideal, rated := idealRate(run, d)
	atIdeal := rated && d.head.BPS >= idealShare*ideal
	queue := flow.minRTT > 0 && float64(flow.meanRTT-flow.minRTT)/float64(flow.minRTT) > bufferDelay
	if flow.lossRatio > 0 && !atIdeal && isLossBased(flow.congestion) {
		predicted := float64(len(d.streams)) * Mathis(flow.mss, flow.meanRTT, flow.lossRatio)
		match := d.head.BPS <= predicted*mathisFactor && d.head.BPS*mathisFactor >= predicted
		switch {
		case match && queue:
			return verdict{code: Unknown, text: fmt.Sprintf("no single limit stood out: %s was retransmitted while a queue stood (RTT %s → %s), as at a full bottleneck",
				percent(flow.lossRatio), micros(flow.minRTT), micros(flow.meanRTT))}
		case match:
			return verdict{code: Loss, text: fmt.Sprintf("packet loss was the limit (%s retransmitted, with which %s reaches about %s)",
				percent(flow.lossRatio), flow.congestion, rate(predicted))}
		}
	}
	if queue && atIdeal {
		return verdict{code: PathCapacity, text: fmt.Sprintf("the path is full (%s of what its slowest interface can carry, and a queue stands)", percent(d.head.BPS/ideal))}
	}
	return unknown("")
}

// setRate answers whether the flow reached a rate that somebody set.
func setRate(run *result.Run, d *direction) verdict {
	n := int64(max(len(d.streams), 1))
	type cap struct {
		bps int64
		who string
	}
	caps := []cap{{run.Test.Bitrate * n, "the rate that was asked for"}, {run.Test.FQRate * n, "the rate that was asked for"}, {run.Test.MaxRate, "the rate budget"}}
	if l := run.Test.ServerLimit; l != nil {
		caps = append(caps, cap{l.BitrateBPS, "the server's rate limit"})
	}
	var least cap
	for _, c := range caps {
		if c.bps > 0 && (least.bps == 0 || c.bps < least.bps) {
			least = c
		}
	}
	if least.bps > 0 && d.head.BPS >= setRateReached*float64(least.bps) {
		return verdict{code: SetRate, text: fmt.Sprintf("that is %s (%s)", least.who, rate(float64(least.bps)))}
	}
	return verdict{}
}

// cpu is rule 1: the busier end whose workers ran, or waited to run, 90 % of the time.
func cpu(run *result.Run, d *direction) verdict {
	type busy struct {
		code, who string
		end       result.End
	}
	var worst verdict
	most := 0.0
	for _, b := range []busy{
		{CPUSender, "the sending host's CPU", d.dir.Sender()},
		{CPUReceiver, "the receiving host's CPU", d.dir.Receiver()},
	} {
		if t, known := throttled(run, b.end); known && t >= throttledShare && 1+t > most {
			most = 1 + t
			worst = verdict{b.code, fmt.Sprintf("%s was the limit (a CPU quota held %s for %s of the time)", b.who, EndName(run, b.end), percent(t)), b.end}
		}
		if load, known := workerLoad(run, b.end); known && load >= cpuLoad && load > most {
			most = load
			worst = verdict{b.code, fmt.Sprintf("%s was the limit (a worker on %s ran or waited for a core %s of the time)", b.who, EndName(run, b.end), percent(min(load, 1))), b.end}
		}
	}
	return worst
}

// workerLoad is the share of the measured time that the busiest worker of end e ran or
// waited to run. Where the system does not tell, the process's CPU time spread over the
// workers stands in: it misses the waiting, so it is known only from the threshold up.
func workerLoad(run *result.Run, e result.End) (load float64, known bool) {
	if load, known = weighted(run, e, func(h *result.HostSample) *float64 { return h.WorkerLoad }); known {
		return load, true
	}
	workers := workers(run, e)
	process, known := weighted(run, e, func(h *result.HostSample) *float64 {
		if h.Process == nil {
			return nil
		}
		return &h.Process.Total
	})
	if !known {
		c := run.CPU.Of(e)
		if c == nil || workers == 1 && c.Total > singleThreaded {
			return 0, false
		}
		process = c.Total
	}
	load = process / 100 / float64(workers)
	return load, load >= cpuLoad
}

// workers is how many threads of end e moved payload: a stream has at most one, a core
// runs at most one, and iperf3 before 3.16 had one in all.
func workers(run *result.Run, e result.End) int {
	if v, ok := iperf3Release(run, e); ok && v < 316 {
		return 1
	}
	n := max(len(run.Streams), 1)
	if h := run.Hosts.Of(e); h != nil && h.Cores > 0 {
		n = min(n, h.Cores)
	}
	return n
}

// iperf3Release returns the release of an iperf3 at end e as major·100 + minor.
func iperf3Release(run *result.Run, e result.End) (int, bool) {
	name, version := program(run, e)
	if !strings.HasPrefix(name, "iperf") {
		return 0, false
	}
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n != 2 {
		return 0, false
	}
	return major*100 + minor, true
}

func throttled(run *result.Run, e result.End) (share float64, known bool) {
	return weighted(run, e, func(h *result.HostSample) *float64 { return h.Throttled })
}

// weighted is the mean of a host figure over the counted rows of end e, weighted by
// their length; rows that lack it are left out.
func weighted(run *result.Run, e result.End, figure func(*result.HostSample) *float64) (mean float64, known bool) {
	var sum, time float64
	for _, row := range run.Rows {
		if row.End != e || row.Omitted || row.Host == nil {
			continue
		}
		if v := figure(row.Host); v != nil && row.Stop > row.Start {
			sum += *v * (row.Stop - row.Start)
			time += row.Stop - row.Start
		}
	}
	if time == 0 {
		return 0, false
	}
	return sum / time, true
}

func overlapped(run *result.Run) bool {
	return slices.Contains(run.Flags, "overlap") || has(run, "overlap")
}

// shares averages the sender's time over the streams; nil unless every stream tells.
func shares(run *result.Run, d *direction) *result.Shares {
	if len(d.streams) == 0 {
		return nil
	}
	var out result.Shares
	for _, s := range d.streams {
		busy, window, buffer, ok := streamShares(run, d, s)
		if !ok {
			return nil
		}
		// The kernel counts the two within the busy time; readings a moment apart may not.
		window = min(window, busy)
		buffer = min(buffer, busy-window)
		out.Idle += 1 - busy
		out.Window += window
		out.Buffer += buffer
		out.Network += busy - window - buffer
	}
	n := float64(len(d.streams))
	return &result.Shares{Idle: out.Idle / n, Window: out.Window / n, Buffer: out.Buffer / n, Network: out.Network / n}
}

// streamShares takes a stream's summary, or, when the run broke off before one was made,
// the cumulative times in its intervals: from the last omitted row (else the start of
// the connection) to the last row.
func streamShares(run *result.Run, d *direction, s *result.Stream) (busy, window, buffer float64, ok bool) {
	if t := d.tcp(run, s); t != nil {
		if t.BusyShare == nil || t.RwndShare == nil || t.SndbufShare == nil {
			return 0, 0, 0, false
		}
		return clamp(*t.BusyShare), clamp(*t.RwndShare), clamp(*t.SndbufShare), true
	}
	var first, last *result.TCPInfo
	var end float64
	for i := range run.Rows {
		row := &run.Rows[i]
		if row.End != d.dir.Sender() {
			continue
		}
		for j := range row.Streams {
			x := &row.Streams[j]
			if x.ID != s.ID || !x.Sender || x.TCP == nil {
				continue
			}
			if row.Omitted {
				first = x.TCP
			} else {
				last, end = x.TCP, x.Stop
			}
		}
	}
	if last == nil || last.BusyUS == nil || last.RwndLimitedUS == nil || last.SndbufLimUS == nil || end <= 0 {
		return 0, 0, 0, false
	}
	zero := int64(0)
	base := result.TCPInfo{BusyUS: &zero, RwndLimitedUS: &zero, SndbufLimUS: &zero}
	if first != nil && first.BusyUS != nil && first.RwndLimitedUS != nil && first.SndbufLimUS != nil {
		base = *first
	}
	part := func(a, b *int64) float64 { return clamp(float64(*b-*a) / 1e6 / end) }
	return part(base.BusyUS, last.BusyUS), part(base.RwndLimitedUS, last.RwndLimitedUS), part(base.SndbufLimUS, last.SndbufLimUS), true
}

// clamp keeps a reading of a share between 0 and 1.
func clamp(share float64) float64 { return min(max(share, 0), 1) }

// whyNoShares says why the sender's time is not known.
func whyNoShares(run *result.Run, d *direction) string {
	e := d.dir.Sender()
	if e != run.End && !extended(run) {
		return fmt.Sprintf("%s on %s does not report its kernel's counters", programText(run, e), EndName(run, e))
	}
	return fmt.Sprintf("the system of %s does not report what its sockets waited for", EndName(run, e))
}

// flow is what rules 5 and 6 look at, averaged over the streams of a direction.
type flow struct {
	mss, meanRTT, minRTT int64 // bytes, µs
	lossRatio            float64
	congestion           string
}

func flowFacts(run *result.Run, d *direction) (flow, bool) {
	var f flow
	var retransmits, segments float64
	n := int64(len(d.streams))
	for _, s := range d.streams {
		t := d.tcp(run, s)
		if t == nil || t.MeanRTT <= 0 || t.Last.MSS <= 0 || s.Sender == nil || s.Sender.Retransmits == nil {
			return flow{}, false
		}
		f.mss += t.Last.MSS
		f.meanRTT += t.MeanRTT
		f.minRTT += leastRTT(t)
		if f.congestion != "" && f.congestion != t.Congestion {
			return flow{}, false
		}
		f.congestion = t.Congestion
		retransmits += float64(*s.Sender.Retransmits)
		segments += float64(s.Sender.Bytes) / float64(t.Last.MSS)
	}
	if n == 0 || segments <= 0 {
		return flow{}, false
	}
	f.mss, f.meanRTT, f.minRTT = f.mss/n, f.meanRTT/n, f.minRTT/n
	f.lossRatio = retransmits / (segments + retransmits)
	return f, true
}

// leastRTT prefers the kernel's own minimum, which saw the handshake, to that of the
// samples, which all come from a loaded path.
func leastRTT(t *result.TCPSummary) int64 {
	least := t.MinRTT
	if m := t.Last.MinRTT; m != nil && *m > 0 && (least <= 0 || *m < least) {
		least = *m
	}
	return least
}

// Mathis is the rate that a loss-based TCP flow settles at (Mathis, Semke, Mahdavi and
// Ott 1997): 1.22·MSS·8/(RTT·√p) bit/s for segments of mss bytes, a round trip in µs and
// a loss ratio p. It is +Inf without loss.
func Mathis(mss, rttMicros int64, p float64) float64 {
	return 1.22 * float64(mss) * 8 / (float64(rttMicros) / 1e6 * math.Sqrt(p))
}

// windowDetail shows the arithmetic of a window limit when it confirms the measurement.
func windowDetail(run *result.Run, d *direction) string {
	var window, rtt, predicted float64
	for _, s := range d.streams {
		t := d.tcp(run, s)
		if t == nil || t.MaxSndWnd <= 0 || t.MeanRTT <= 0 {
			return fmt.Sprintf(" (%s of the time)", percent(d.shares.Window))
		}
		window += float64(t.MaxSndWnd)
		rtt += float64(t.MeanRTT)
		predicted += float64(t.MaxSndWnd) * 8 / (float64(t.MeanRTT) / 1e6)
	}
	if math.Abs(predicted-d.head.BPS) > windowConfirm*d.head.BPS {
		return fmt.Sprintf(" (%s of the time)", percent(d.shares.Window))
	}
	n := float64(len(d.streams))
	each := ""
	if n > 1 {
		each = " each"
	}
	return fmt.Sprintf(" (%s%s per round trip of %s carry %s)", units.ByteSize(window/n).IEC(), each, micros(int64(rtt/n)), rate(predicted))
}

// linkSpeed is the slower of the two interfaces, bit/s, 0 when neither is known. One
// unknown speed leaves the other as the bound.
func linkSpeed(run *result.Run) int64 {
	var speed int64
	for _, e := range []result.End{result.Client, result.Server} {
		if h := run.Hosts.Of(e); h != nil && h.NIC != nil && h.NIC.SpeedBPS != nil {
			if s := *h.NIC.SpeedBPS; s > 0 && (speed == 0 || s < speed) {
				speed = s
			}
		}
	}
	return speed
}

// idealRate is M-6349's ideal throughput of the slower interface; false when no speed or
// no MTU is known.
func idealRate(run *result.Run, d *direction) (float64, bool) {
	speed := linkSpeed(run)
	mtu := 0
	for _, e := range []result.End{result.Client, result.Server} {
		if h := run.Hosts.Of(e); h != nil && h.NIC != nil && h.NIC.MTU > 0 && (mtu == 0 || h.NIC.MTU < mtu) {
			mtu = h.NIC.MTU
		}
	}
	stamps, v6 := false, false
	for _, s := range d.streams {
		if t := d.tcp(run, s); t != nil {
			stamps = stamps || t.Last.Timestamps
			if p := int(t.Last.PMTU); p > 0 && (mtu == 0 || p < mtu) {
				mtu = p
			}
		}
		a, err := netip.ParseAddr(s.Remote.Host)
		v6 = v6 || err == nil && a.Is6() && !a.Is4In6()
	}
	if speed == 0 || mtu == 0 || loopback(run) {
		return 0, false
	}
	family := 4
	if v6 {
		family = 6
	}
	headers := bdp.PlainTCP(family)
	if stamps {
		headers = bdp.TCP(family)
	}
	return headers.Ideal(units.BitRate(speed), mtu), true
}

func micros(us int64) string { return seconds(float64(us) / 1e6) }
