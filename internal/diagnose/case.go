package diagnose

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/result"
)

// Case is all that was measured, by stage, and what follows from it for several rules.
type Case struct {
	History []method.Done
	Facts   result.Facts // of the host that diagnoses; all nil where not known
	Up      leg
	Down    leg
	Idle    idle
}

// idle is the path without load.
type idle struct {
	run     *result.Run
	probes  *result.Probes
	rtt     float64 // least round trip, s; 0 = not known
	source  string  // where rtt is from
	lossUp  int64
	lossDn  int64
	sent    int64
	counted bool // losses of each direction are known
}

// leg is one direction.
type leg struct {
	dir   result.Direction
	flows []flow // of TCP under load, in order
	udp   *flow  // rate-limited, half of TCP's rate
	frag  *flow  // the same with datagrams that no packet of the path holds
	case_ *Case
}

// flow is what one run says of one direction.
type flow struct {
	name    string
	run     *result.Run
	err     *result.Error
	dir     result.Direction
	streams int
	rate    float64 // receiver's payload bit/s; the sender's where only that is known
	arrived bool    // rate is what the receiver counted, or acknowledged
	acked   bool    // the latter
	nothing bool    // payload was sent and none, or next to none, arrived

	retransmits int64
	ratio       float64 // retransmitted / sent
	ratioKnown  bool
	cc          string
	mss         float64
	window      float64 // the receiver's, largest, of a stream, bytes; 0 = not known
	rttMean     float64 // of TCP under load, s
	rttMin      float64
	rttMax      float64
	reorder     int64 // events seen by the senders
	dsack       int64
	shares      *result.Shares
	starved     float64 // share of the sender's rows whose TCP had room and no data (tcpi_delivery_rate_app_limited)

	load      [2]float64 // of the busiest worker: sender, receiver; −1 = not known
	throttled [2]float64

	rise   *result.Quantiles // delay above the empty path's in this direction, s; nil = not known
	probes *result.Probes
}

// NewCase sorts a history into stages.
func NewCase(history []method.Done, facts *result.Facts) *Case {
	c := &Case{History: history}
	if facts != nil {
		c.Facts = *facts
	}
	c.Up, c.Down = leg{dir: result.Up, case_: c}, leg{dir: result.Down, case_: c}
	for i := range history {
		d := &history[i]
		if strings.HasPrefix(d.Step.Name, "idle") {
			c.Idle.take(d.Run)
			continue
		}
		for _, l := range []*leg{&c.Up, &c.Down} {
			if !serves(d, l.dir) {
				continue
			}
			f := flowOf(d, l.dir)
			switch {
			case strings.HasSuffix(f.name, "-udp"):
				l.udp = &f
			case strings.HasSuffix(f.name, "-frag"):
				l.frag = &f
			case strings.Contains(f.name, "-police-"):
			default:
				l.flows = append(l.flows, f)
			}
		}
	}
	if c.Idle.rtt == 0 {
		for _, l := range []*leg{&c.Up, &c.Down} {
			for _, f := range l.flows {
				if f.rttMin > 0 && (c.Idle.rtt == 0 || f.rttMin < c.Idle.rtt) {
					c.Idle.rtt, c.Idle.source = f.rttMin, "the least that TCP saw"
				}
			}
		}
	}
	return c
}

// serves reports that a step is about a direction.
func serves(d *method.Done, dir result.Direction) bool {
	name, _, _ := strings.Cut(d.Step.Name, "-")
	return name == string(dir) || name == "both"
}

// measured reports that anything at all is known.
func (c *Case) measured() bool {
	for _, d := range c.History {
		if d.Run != nil && (len(d.Run.Streams) > 0 || len(d.Run.Probes) > 0) {
			return true
		}
	}
	return false
}

func (c *Case) legs() []*leg { return []*leg{&c.Up, &c.Down} }

// take reads a run without load.
func (i *idle) take(run *result.Run) {
	if run == nil {
		return
	}
	for k := range run.Probes {
		p := &run.Probes[k]
		rtt, source := 0.0, ""
		switch {
		case p.RoundTrip != nil:
			rtt, source = p.RoundTrip.Min, "probes"
		case p.TCPMinRTT != nil && *p.TCPMinRTT > 0:
			rtt, source = *p.TCPMinRTT, "the control connection"
		case p.Connect != nil:
			rtt, source = p.Connect.Min, "connecting"
		}
		if rtt > 0 && (i.rtt == 0 || p.RoundTrip != nil) {
			i.rtt, i.source = rtt, source
		}
		if p.LostUp != nil && p.LostDown != nil {
			i.lossUp, i.lossDn, i.sent, i.counted = *p.LostUp, *p.LostDown, p.Sent, true
		}
		i.run, i.probes = run, p
	}
	if i.run == nil {
		i.run = run
	}
}

// flowOf reads one direction of a run.
func flowOf(d *method.Done, dir result.Direction) flow {
	f := flow{name: d.Step.Name, run: d.Run, err: d.Err, dir: dir, streams: max(d.Step.Plan.Streams, 1), load: [2]float64{-1, -1}, throttled: [2]float64{-1, -1}}
	run := d.Run
	if run == nil {
		return f
	}
	if f.err == nil {
		f.err = run.Err
	}
	h := conclude.HeadlineOf(run, dir)
	f.rate, f.arrived = h.BPS, h.Basis.Arrived()
	if !f.arrived {
		if bps, ok := acknowledged(run, dir); ok {
			h.BPS, f.rate, f.arrived, f.acked = bps, bps, true, true
		}
	}
	if s := run.Sum(dir); s != nil {
		f.shares = s.Shares
		// Less than a packet a second came through. (What was sent is no sign: when the buffers
		// were full before the measured part began, it is nothing, too.)
		f.nothing = f.arrived && h.BPS < 10e3 && h.Seconds >= 0.5
	}
	f.ratio, f.ratioKnown = method.RetransmitRatio(run, dir)
	f.readStreams(run)
	f.readRows(run)
	if most, known := f.cameIn(); known && f.arrived && f.rate > most*(1+readLate) {
		f.rate = most
	}
	for i, e := range []result.End{dir.Sender(), dir.Receiver()} {
		if v, ok := conclude.WorkerLoad(run, e); ok {
			f.load[i] = v
		}
		if v, ok := conclude.Throttled(run, e); ok {
			f.throttled[i] = v
		}
	}
	f.probes, f.rise = probesBeside(run, dir)
	return f
}

func (f *flow) readStreams(run *result.Run) {
	n := 0.0
	for i := range run.Streams {
		s := &run.Streams[i]
		if s.Direction != f.dir {
			continue
		}
		if s.Sender != nil && s.Sender.Retransmits != nil {
			f.retransmits += *s.Sender.Retransmits
		}
		t := s.TCP
		if run.End != f.dir.Sender() {
			t = s.RemoteTCP
		}
		if t == nil {
			continue
		}
		n++
		f.cc = t.Congestion
		f.mss = float64(t.Last.MSS)
		f.window = max(f.window, float64(t.MaxSndWnd))
		f.rttMean += float64(t.MeanRTT) / 1e6
		f.rttMax = max(f.rttMax, float64(t.MaxRTT)/1e6)
		least := float64(t.MinRTT) / 1e6
		if m := t.Last.MinRTT; m != nil && *m > 1 { // 1 is less than it can tell
			least = min(least, float64(*m)/1e6)
		}
		if f.rttMin == 0 || least < f.rttMin {
			f.rttMin = least
		}
		if t.Last.ReordSeen != nil {
			f.reorder += *t.Last.ReordSeen
		}
		if t.Last.DSACKDups != nil {
			f.dsack += *t.Last.DSACKDups
		}
	}
	if n > 0 {
		f.rttMean /= n
	}
	if f.cc == "" {
		if c := run.CPU.Of(f.dir.Sender()); c != nil {
			f.cc = c.Congestion
		}
	}
	if f.mss == 0 && run.Wire != nil {
		f.mss = float64(run.Wire.ControlMSS)
	}
}

func (f *flow) readRows(run *result.Run) {
	n, starved := 0, 0
	for i := range run.Rows {
		r := &run.Rows[i]
		if r.End != f.dir.Sender() || r.Omitted || r.Partial {
			continue
		}
		for j := range r.Streams {
			if s := &r.Streams[j]; s.Sender && s.TCP != nil {
				n++
				if s.TCP.AppLimited {
					starved++
				}
			}
		}
	}
	if n >= 3 {
		f.starved = float64(starved) / float64(n)
	}
}

// line is what a flow and our own small packets and events beside it take of the path, bit/s of IP
// packets: as the receiver's interface counts it, where that is no more than those can be.
func (f *flow) line() float64 {
	own := f.wire(f.rate)
	if f.probes != nil {
		own += (probeSize + 28) * 8 / probeSpacing.Seconds()
	}
	if bytes, packets, time, ok := f.interfaceIn(); ok {
		if all := (bytes - 14*packets) * 8 / time; all > own && all-own < max(own/20, 200e3) {
			return all
		}
	}
	return own
}

// interfaceIn is what the receiver's interface took in during the counted rows.
func (f *flow) interfaceIn() (bytes, packets, time float64, known bool) {
	for i := range f.run.Rows {
		r := &f.run.Rows[i]
		if r.End != f.dir.Receiver() || r.Omitted || r.Host == nil || r.Host.NIC == nil {
			continue
		}
		bytes += float64(r.Host.NIC.RxBytes)
		packets += float64(r.Host.NIC.RxPackets)
		time += r.Stop - r.Start
	}
	return bytes, packets, time, time >= 1 && bytes > 0
}

// readLate is by how much reading may be ahead of what the interface took in before it says that
// older bytes were read, too.
const readLate = 0.015

// cameIn is the most payload that the receiver's interface took in during the counted rows, bit/s.
// What a program reads may be more: bytes that came in the warm-up and waited behind a hole.
func (f *flow) cameIn() (bps float64, known bool) {
	if f.run.Test.Transport != "tcp" || f.mss <= 0 {
		return 0, false
	}
	bytes, packets, time, known := f.interfaceIn()
	if bytes -= packets * (f.wire(f.mss) - f.mss + 14); !known || bytes <= 0 {
		return 0, false
	}
	return bytes * 8 / time, true
}

// onTheWay is the bytes that a flow had on the way, of each stream.
func (f *flow) onTheWay(c *Case) float64 {
	return f.rate / 8 * max(f.rttMean, c.Idle.rtt) / float64(f.streams)
}

// queue is the delay above the empty path's, s: typical and largest. Probes beside the load
// tell it for the direction; else TCP's round trips do.
func (f *flow) queue(c *Case) (typical, most float64, known bool) {
	if f.rise != nil && f.rise.N >= 20 {
		return f.rise.P50, f.rise.P99, true
	}
	if f.rttMean > 0 && c.Idle.rtt > 0 {
		return max(f.rttMean-c.Idle.rtt, 0), max(f.rttMean-c.Idle.rtt, 0), true
	}
	return 0, 0, false
}

// find returns the stage of a leg by the end of its name ("1", "4", "half"), nil when it
// was not made or could not begin.
func (l *leg) find(what string) *flow {
	for i := range l.flows {
		if f := &l.flows[i]; f.name == string(l.dir)+"-"+what && f.run != nil {
			return f
		}
	}
	return nil
}

// one is the flow of a single stream, left to itself.
func (l *leg) one() *flow { return l.find("1") }

// plain are the flows of which only the number of streams differs.
func (l *leg) plain() []*flow {
	var out []*flow
	for i := range l.flows {
		f := &l.flows[i]
		if _, n, _ := strings.Cut(f.name, "-"); strings.Trim(n, "0123456789") == "" && f.run != nil && f.usable() {
			if strings.HasPrefix(f.name, "both") {
				continue
			}
			out = append(out, f)
		}
	}
	return out
}

// usable reports that a flow has a rate worth comparing.
func (f *flow) usable() bool { return f.arrived && f.rate > 0 }

// many is the fastest of several streams, nil when none was made.
func (l *leg) many() *flow {
	var best *flow
	for _, f := range l.plain() {
		if f.streams > 1 && (best == nil || f.rate > best.rate) {
			best = f
		}
	}
	return best
}

// wide is the faster of many and scan, which is several streams, too.
func (l *leg) wide() *flow {
	m := l.many()
	if s := l.scan(); s != nil && (m == nil || s.rate > m.rate) {
		return s
	}
	return m
}

// best is the largest rate that the direction reached in any way, and by what. What it carried later,
// when others were gone, is another path's.
func (l *leg) best() *flow {
	var best *flow
	for i := range l.flows {
		f := &l.flows[i]
		if f.usable() && !strings.HasPrefix(f.name, "both") && !strings.HasSuffix(f.name, "-again") && f.run.Test.TOS == 0 && (best == nil || f.rate > best.rate) {
			best = f
		}
	}
	return best
}

// windows are the flows with a window that was asked for.
func (l *leg) windows() []*flow {
	var out []*flow
	for i := range l.flows {
		if f := &l.flows[i]; strings.Contains(f.name, "-window-") && f.usable() {
			out = append(out, f)
		}
	}
	return out
}

// wire turns payload bit/s into that of whole IP packets (layer l3).
func (f *flow) wire(bps float64) float64 {
	if f.mss <= 0 {
		return bps
	}
	header := 40.0
	if f.timestamps() {
		header += 12
	}
	if f.ipv6() {
		header += 20
	}
	return bps * (f.mss + header) / f.mss
}

func (f *flow) timestamps() bool {
	for i := range f.run.Streams {
		for _, t := range []*result.TCPSummary{f.run.Streams[i].TCP, f.run.Streams[i].RemoteTCP} {
			if t != nil {
				return t.Last.Timestamps
			}
		}
	}
	return true
}

func (f *flow) ipv6() bool {
	if f.run == nil || len(f.run.Streams) == 0 {
		return false
	}
	a, err := netip.ParseAddr(f.run.Streams[0].Remote.Host)
	return err == nil && a.Is6() && !a.Is4In6()
}

// rates are the whole rows of the receiver (else the sender), warm-up included: bit/s with
// their times.
func (f *flow) rates() []result.IntervalSum {
	rows, _ := f.rows()
	return rows
}

// rows is rates, with whether the receiver counted them.
func (f *flow) rows() (rows []result.IntervalSum, counted bool) {
	if f.run == nil {
		return nil, false
	}
	for _, e := range []result.End{f.dir.Receiver(), f.dir.Sender()} {
		for i := range f.run.Rows {
			r := &f.run.Rows[i]
			if r.End != e || r.Partial {
				continue
			}
			for _, s := range r.Sums {
				if s.Direction == f.dir {
					rows = append(rows, s)
				}
			}
		}
		if len(rows) > 0 {
			return rows, e == f.dir.Receiver()
		}
	}
	return nil, false
}

// extended reports that the peer is a fullbore.
func (c *Case) extended() bool {
	return slices.ContainsFunc(c.History, func(d method.Done) bool { return d.Run != nil && d.Run.Wire != nil && d.Run.Wire.Extension })
}

// first is a run that got as far as to know both ends.
func (c *Case) first() *result.Run {
	for _, d := range c.History {
		if d.Run != nil && len(d.Run.Streams) > 0 {
			return d.Run
		}
	}
	for _, d := range c.History {
		if d.Run != nil {
			return d.Run
		}
	}
	return nil
}

// cpuBound reports that a worker of an end was busy all the time (M-LIMIT rule 1).
func (f *flow) cpuBound() (end result.End, load float64, bound bool) {
	for i, e := range []result.End{f.dir.Sender(), f.dir.Receiver()} {
		if f.throttled[i] >= throttledShare && 1+f.throttled[i] > load {
			end, load, bound = e, 1+f.throttled[i], true
		}
		if f.load[i] >= busyWorker && f.load[i] > load {
			end, load, bound = e, f.load[i], true
		}
	}
	return end, load, bound
}

// windowBound reports that the receiver's window held the sender (M-LIMIT rule 3), buffer
// that its own buffer did (rule 4).
func (f *flow) windowBound() bool { return f.shares != nil && f.shares.Window > heldShare }

// bufferBound: besides the kernel's count (tcpi_sndbuf_limited), which only runs while
// nothing at all is queued, TCP marks its own rate samples: it had room in the congestion
// and the receiver's window and no data. A program that always has some and is not without
// a processor is not to blame; then the buffer is.
func (f *flow) bufferBound() bool {
	if f.shares == nil || f.shares.Window > heldShare || f.shares.Idle > idleShare {
		return false
	}
	return f.shares.Buffer > heldShare || f.starved >= starvedShare && f.load[0] < starvedLoad && f.run.Test.Bitrate == 0
}

// Of the sender's rows with a starved TCP, and of its worker's time.
const (
	starvedShare = 0.8
	starvedLoad  = 0.6
)

// Thresholds of M-LIMIT and of the rules.
const (
	busyWorker     = 0.9
	throttledShare = 0.05
	heldShare      = 0.3
	idleShare      = 0.2
	// moved is the least change of a rate that proves that an intervention did something:
	// twice what two runs of the same thing differ by on a quiet path.
	moved = 0.15
	// same is the most that rates may differ by which are called the same.
	same = 0.08
)
