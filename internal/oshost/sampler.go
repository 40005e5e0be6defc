package oshost

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// SamplerOptions say what to count.
type SamplerOptions struct {
	// Root is the folder that holds proc and sys (Linux); "" = "/". The counters of the
	// interface are those of the network namespace that sysfs was mounted in.
	Root string
	// Interface is counted; "" = none. See InterfaceTo.
	Interface string
	// Now is the clock that intervals are measured with; nil = time.Now.
	Now func() time.Time
}

// Sampler turns the host's growing counters into differences per interval. It is not
// safe for concurrent use. Whoever makes it closes it.
type Sampler struct {
	now     func() time.Time
	src     *source
	last    reading
	next    reading // the buffers of the reading before the last
	clocked time.Time
	missing []string
}

// clockEvery is the least time between two looks at a clock frequency: some drivers ask the
// other core for it, which disturbs what is measured.
const clockEvery = 900 * time.Millisecond

// NewSampler opens what there is to read and takes the first reading. It always
// returns a Sampler that works; what it cannot count is in Missing.
func NewSampler(o SamplerOptions) *Sampler {
	s := &Sampler{now: o.Now}
	if s.now == nil {
		s.now = time.Now
	}
	s.src = openSource(o, s.miss)
	s.src.read(&s.last, s.miss)
	s.last.at = s.now()
	return s
}

// Sample returns the differences since the sample before, or since NewSampler. To begin
// afresh call it and drop the result. It returns nil when less than a millisecond has
// passed, and then leaves the beginning of the interval where it was.
//
// Shares of a core come from counters in steps of 10 ms (Linux) or 15.6 ms (Windows): over
// 100 ms they are exact to a tenth. A core that counted nothing in the interval is absent.
func (s *Sampler) Sample() *result.HostSample {
	now := s.now()
	wall := now.Sub(s.last.at)
	if wall < time.Millisecond {
		return nil
	}
	s.src.read(&s.next, s.miss)
	s.next.at = now
	out := difference(&s.last, &s.next, wall)
	s.last, s.next = s.next, s.last
	if core := busiest(out.Cores); core >= 0 && now.Sub(s.clocked) >= clockEvery {
		out.MHz, s.clocked = s.src.clock(core), now
	}
	return out
}

// busiest is the number of the core that worked most, −1 without any.
func busiest(cores []result.CoreShare) int {
	at, most := -1, -1.0
	for i := range cores {
		if b := 1 - cores[i].Idle - cores[i].IOWait; b > most {
			at, most = cores[i].CPU, b
		}
	}
	return at
}

// Missing lists the counters that this host does not have or stopped to have, each
// once with the reason. For a notice `counter-missing`.
func (s *Sampler) Missing() []string { return slices.Clone(s.missing) }

// Close closes the files.
func (s *Sampler) Close() { s.src.close() }

func (s *Sampler) miss(what string, err error) {
	text := fmt.Sprintf("%s: %v", what, err)
	if !slices.Contains(s.missing, text) {
		s.missing = append(s.missing, text)
	}
}

// reading is every counter at one time. Slices keep their memory from one use to the next.
type reading struct {
	at      time.Time
	cores   []coreTimes // ascending by id; empty = unknown
	process *processTimes
	nic     *nicCounters
	softnet *softnetCounters
	threads []threadTimes // ascending by id; empty = unknown
	// throttled is how long CPU quotas have held this process, summed over the CPUs.
	throttled *time.Duration
}

// coreTimes are one core's counters in any unit; they only ever grow (nearly: Linux's
// iowait and idle are known to step back).
type coreTimes struct {
	id                                              int
	user, system, softirq, irq, steal, iowait, idle uint64
}

type processTimes struct{ user, system time.Duration }

type nicCounters struct {
	name string
	// In the order of nicFiles.
	rxBytes, txBytes, rxPackets, txPackets, rxErrors, txErrors, rxDropped, txDropped, rxMissed int64
}

// softnetCounters are sums over the CPUs; each addend wraps at 32 bits, so the
// differences are taken per CPU.
type softnetCounters struct{ rows [][3]uint32 }

type threadTimes struct {
	id        int
	run, wait time.Duration
}

func difference(a, b *reading, wall time.Duration) *result.HostSample {
	out := &result.HostSample{Cores: coreShares(a.cores, b.cores)}
	for _, c := range out.Cores {
		out.StealMax = max(out.StealMax, c.Steal)
	}
	if a.process != nil && b.process != nil {
		percent := func(d time.Duration) float64 { return max(0, 100*d.Seconds()/wall.Seconds()) }
		user, system := percent(b.process.user-a.process.user), percent(b.process.system-a.process.system)
		out.Process = &result.CPU{Total: user + system, User: user, System: system}
	}
	out.NIC = nicDelta(a.nic, b.nic)
	out.Softnet = softnetDelta(a.softnet, b.softnet)
	out.WorkerLoad = workerLoad(a.threads, b.threads, wall)
	if a.throttled != nil && b.throttled != nil {
		share := min(1, max(0, (*b.throttled-*a.throttled).Seconds()/wall.Seconds()))
		out.Throttled = &share
	}
	return out
}

// coreShares divides each core's time. Cores that came or went in between are left out.
func coreShares(a, b []coreTimes) []result.CoreShare {
	var out []result.CoreShare
	for i := range b {
		// Both are in ascending order and mostly equal, so try the same place first.
		j := i
		if j >= len(a) || a[j].id != b[i].id {
			var found bool
			j, found = slices.BinarySearchFunc(a, b[i].id, func(c coreTimes, id int) int { return cmp.Compare(c.id, id) })
			if !found {
				continue
			}
		}
		p, q := &a[j], &b[i]
		d := [...]float64{
			grown(p.user, q.user), grown(p.system, q.system), grown(p.softirq, q.softirq), grown(p.irq, q.irq),
			grown(p.steal, q.steal), grown(p.iowait, q.iowait), grown(p.idle, q.idle),
		}
		total := 0.0
		for _, v := range d {
			total += v
		}
		if total == 0 {
			continue
		}
		if out == nil {
			out = make([]result.CoreShare, 0, len(b))
		}
		out = append(out, result.CoreShare{
			CPU: q.id, User: d[0] / total, System: d[1] / total, SoftIRQ: d[2] / total, IRQ: d[3] / total,
			Steal: d[4] / total, IOWait: d[5] / total, Idle: d[6] / total,
		})
	}
	return out
}

// grown is b − a, 0 when the counter stepped back.
func grown(a, b uint64) float64 {
	if b < a {
		return 0
	}
	return float64(b - a)
}

// nicDelta is nil when a counter shrank: the interface was reset, and what it moved in
// between is not known.
func nicDelta(a, b *nicCounters) *result.NICDelta {
	if a == nil || b == nil {
		return nil
	}
	d := &result.NICDelta{
		Name:    b.name,
		RxBytes: b.rxBytes - a.rxBytes, TxBytes: b.txBytes - a.txBytes,
		RxPackets: b.rxPackets - a.rxPackets, TxPackets: b.txPackets - a.txPackets,
		RxErrors: b.rxErrors - a.rxErrors, TxErrors: b.txErrors - a.txErrors,
		RxDropped: b.rxDropped - a.rxDropped, TxDropped: b.txDropped - a.txDropped,
		RxMissed: b.rxMissed - a.rxMissed,
	}
	if min(d.RxBytes, d.TxBytes, d.RxPackets, d.TxPackets, d.RxErrors, d.TxErrors, d.RxDropped, d.TxDropped, d.RxMissed) < 0 {
		return nil
	}
	return d
}

func softnetDelta(a, b *softnetCounters) *result.Softnet {
	if a == nil || b == nil || len(a.rows) != len(b.rows) {
		return nil
	}
	var d result.Softnet
	for i := range b.rows {
		d.Processed += int64(b.rows[i][0] - a.rows[i][0])
		d.Dropped += int64(b.rows[i][1] - a.rows[i][1])
		d.Squeezed += int64(b.rows[i][2] - a.rows[i][2])
	}
	return &d
}

// workerLoad is the largest (running + waiting)/wall of a thread, at most 1; nil when
// threads are not known.
func workerLoad(a, b []threadTimes, wall time.Duration) *float64 {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	best := 0.0
	for _, t := range b {
		var before threadTimes // a thread that is new had run nothing before
		if i, ok := slices.BinarySearchFunc(a, t.id, func(x threadTimes, id int) int { return cmp.Compare(x.id, id) }); ok {
			before = a[i]
		}
		busy := t.run - before.run + t.wait - before.wait
		best = max(best, busy.Seconds()/wall.Seconds())
	}
	best = min(1, best)
	return &best
}
