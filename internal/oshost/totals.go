package oshost

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// TotalsOptions say what is counted besides the CPUs' time and this program's.
type TotalsOptions struct {
	// Root is the folder that holds proc and sys (Linux); "" = "/".
	Root string
	// Interface is whose packets are counted; "" = none, or the protocol stack's (Stack, and
	// always on Windows).
	Interface string
	// Stack counts the packets of the protocol stack and all interrupts of the machine, as
	// NTTTCP for Windows does; Interface and Interrupts are then not looked at. On Windows
	// it is so unless an interface is named.
	Stack bool
	// UDP and IPv6 choose the stack's counters: datagrams instead of segments; those of
	// IPv6 (Linux keeps one set for TCP over both).
	UDP, IPv6 bool
	// Interrupts is a text: the lines of /proc/interrupts that contain it are counted (Linux);
	// "" = none. Windows tells only all of them, and always.
	Interrupts string
	// Retransmits counts TCP's retransmissions in the network namespace of the calling
	// thread (Linux), or on the machine.
	Retransmits bool
	// IdleCycles takes idle time from the cycles that the idle threads ran instead of from
	// clock ticks (Windows; NTTTCP's -cfi).
	IdleCycles bool
	// Now is the clock; nil = time.Now.
	Now func() time.Time
}

// Totals takes the difference of a machine's counters over a time. It is safe for
// concurrent use: several tests may be measured at once. Whoever makes it closes it.
type Totals struct {
	o   TotalsOptions
	now func() time.Time

	mu      sync.Mutex
	meter   *meter
	missing []string
}

// NewTotals opens what there is to read, and reads it once, so that Missing is known before
// anything is measured. It always returns a Totals that works.
func NewTotals(o TotalsOptions) *Totals {
	t := &Totals{o: o, now: o.Now}
	if t.now == nil {
		t.now = time.Now
	}
	t.meter = openMeter(o, t.miss)
	t.mhz(t.take().firstCPU)
	return t
}

// Begin reads the counters. The function that it returns reads them again and gives the
// differences: over exactly the time between the two, to the few hundred microseconds that a
// reading takes. What is not known, or began anew in between, is nil.
func (t *Totals) Begin() func() *result.HostTotal {
	before := t.take()
	return func() *result.HostTotal {
		after := t.take()
		out := t.difference(before, after)
		out.MHz = t.mhz(after.firstCPU)
		return out
	}
}

// Missing lists the counters that were asked for and that this host does not have, or
// that began anew, each once with the reason. For a notice `counter-missing`.
func (t *Totals) Missing() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.missing)
}

// Close closes the files. Measurements that still run then know nothing.
func (t *Totals) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.meter.close()
}

// miss is called with mu held.
func (t *Totals) miss(what string, err error) {
	text := fmt.Sprintf("%s: %v", what, err)
	if !slices.Contains(t.missing, text) {
		t.missing = append(t.missing, text)
	}
}

// take reads everything. The clock is looked at first and the CPUs right after: each counter
// is read at the same distance from it in both readings.
func (t *Totals) take() *snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &snapshot{at: t.now()}
	t.meter.read(s, t.miss)
	return s
}

// mhz does not hold the lock while it asks: on Linux that can take 20 ms, in which another
// test's reading must not wait.
func (t *Totals) mhz(firstCPU int) *float64 {
	v, err := t.meter.mhz(firstCPU)
	if err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.miss("CPU clock", err)
		return nil
	}
	return &v
}

// snapshot is every counter at one time; nil = unknown.
type snapshot struct {
	at         time.Time
	cores      int
	firstCPU   int // its id
	cpu        *cpuTicks
	idle       *idleCycles
	process    *time.Duration
	tcp        *[len(tcpNames)]counter
	packets    *packetCounters
	interrupts []vectorCount // nil = unknown; empty = nothing to count
	dpcs       []switchCounts
}

func (t *Totals) difference(a, b *snapshot) *result.HostTotal {
	t.mu.Lock()
	defer t.mu.Unlock()
	span := b.at.Sub(a.at)
	out := &result.HostTotal{Seconds: span.Seconds(), Cores: a.cores, CoresAfter: b.cores}
	out.CPU = cpuSince(a.cpu, b.cpu)
	if out.CPU != nil && a.idle != nil && b.idle != nil {
		*out.CPU = withIdle(*out.CPU, b.idle.since(*a.idle), int64(a.cores)*int64(span))
	}
	if a.process != nil && b.process != nil && *b.process >= *a.process {
		ns := int64(*b.process - *a.process)
		out.Process = &ns
	}
	out.TCP = tcpSince(a.tcp, b.tcp, t.miss)
	out.Packets = packetsSince(a.packets, b.packets, t.miss)
	out.Interrupts = interruptsSince(a.interrupts, b.interrupts, t.miss)
	if out.DPCs = dpcsSince(a.dpcs, b.dpcs, span); out.DPCs == nil && a.dpcs != nil && b.dpcs != nil {
		t.miss("DPCs", errNotCounters)
	}
	return out
}

// cpuTicks are the kinds of result.CPUTime in the system's unit, summed over the CPUs. The
// differences become nanoseconds, not the counters: those would overflow within a year on a
// machine with 256 CPUs.
type cpuTicks struct {
	user, nice, system, idle, iowait, irq, softirq, steal int64
	unit                                                  time.Duration
}

// cpuSince takes the differences. Linux's idle and iowait are known to step back a little
// (kernel/time/tick-sched.c): that counts 0. Windows' system time is what the others leave
// of a counter that ticks at another time than they do: what it falls short of 0 is taken
// from them, so that the sum stays right.
func cpuSince(a, b *cpuTicks) *result.CPUTime {
	if a == nil || b == nil {
		return nil
	}
	softirq, irq, system := b.softirq-a.softirq, b.irq-a.irq, b.system-a.system
	for _, other := range []*int64{&softirq, &irq} {
		if system < 0 {
			part := min(-system, max(0, *other))
			*other -= part
			system += part
		}
	}
	ns := func(ticks int64) int64 { return max(0, ticks) * int64(b.unit) }
	return &result.CPUTime{
		User: ns(b.user - a.user), Nice: ns(b.nice - a.nice), System: ns(system),
		Idle: ns(b.idle - a.idle), IOWait: ns(b.iowait - a.iowait),
		IRQ: ns(irq), SoftIRQ: ns(softirq), Steal: ns(b.steal - a.steal),
	}
}

// counter only grows; with bits 32 it begins at 0 again after 2³²−1.
type counter struct {
	n    uint64
	bits int
}

var errStepBack = fmt.Errorf("a counter began anew")

// since is the growth from a to b; false when it began anew and is not known.
func (b counter) since(a counter) (int64, bool) {
	switch {
	case b.n >= a.n:
		return int64(b.n - a.n), true
	case b.bits == 32 && a.n <= math.MaxUint32:
		return int64(uint32(b.n) - uint32(a.n)), true
	}
	return 0, false
}

// tcpNames are the counters of result.TCPCounters in its order, as the kernel names them
// (RetransSegs in /proc/net/snmp, the others in TcpExt of /proc/net/netstat).
var tcpNames = [...]string{
	"RetransSegs", "TCPLostRetransmit", "TCPSynRetrans", "TCPFastRetrans", "TCPForwardRetrans", "TCPSlowStartRetrans", "TCPRetransFail",
}

func tcpSince(a, b *[len(tcpNames)]counter, miss func(string, error)) *result.TCPCounters {
	if a == nil || b == nil {
		return nil
	}
	var d [len(tcpNames)]int64
	for i := range d {
		var ok bool
		if d[i], ok = b[i].since(a[i]); !ok {
			miss("TCP counters: "+tcpNames[i], errStepBack)
			return nil
		}
	}
	return &result.TCPCounters{
		RetransSegs: d[0], LostRetransmit: d[1], SynRetrans: d[2], FastRetrans: d[3], ForwardRetrans: d[4], SlowStart: d[5], RetransmitFails: d[6],
	}
}

// packetCounters are those of one interface, or of the stack (no name).
type packetCounters struct {
	name                                  string
	sent, received, retransmitted, failed counter
}

func packetsSince(a, b *packetCounters, miss func(string, error)) *result.PacketCount {
	if a == nil || b == nil {
		return nil
	}
	out := &result.PacketCount{Interface: b.name}
	for _, c := range []struct {
		a, b counter
		to   *int64
	}{
		{a.sent, b.sent, &out.Sent},
		{a.received, b.received, &out.Received},
		{a.retransmitted, b.retransmitted, &out.Retransmitted},
		{a.failed, b.failed, &out.Errors},
	} {
		var ok bool
		if *c.to, ok = c.b.since(c.a); !ok {
			what := "packets of the protocol stack"
			if b.name != "" {
				what = "packets of " + b.name
			}
			miss(what, errStepBack)
			return nil
		}
	}
	return out
}

// vectorCount is how often one interrupt reached one CPU.
type vectorCount struct {
	label string
	cpu   int
	count uint64
}

// interruptsSince adds up the growth of every vector on every CPU. The kernel's counts have
// 32 bits and wrap within hours on a busy card; a vector that was freed and requested again
// begins at 0, and one that came in between had none. Those that are gone count nothing.
func interruptsSince(a, b []vectorCount, miss func(string, error)) *int64 {
	if a == nil || b == nil {
		return nil
	}
	type key struct {
		label string
		cpu   int
	}
	before := make(map[key]uint64, len(a))
	for _, v := range a {
		before[key{v.label, v.cpu}] = v.count
	}
	var sum int64
	for _, v := range b {
		was, n := before[key{v.label, v.cpu}], v.count
		switch wrapped := uint64(uint32(n) - uint32(was)); {
		case n >= was:
			n -= was
		case was <= math.MaxUint32 && wrapped < 1<<31:
			n = wrapped
		default:
			miss("interrupts "+v.label, errStepBack)
		}
		sum += int64(n)
	}
	return &sum
}
