package oshost

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// What Windows' counters mean, apart from the calls that fetch them: it is tested on every
// system.

// coreRowSize is that of SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION (NtQuerySystemInformation class
// 8), one for each CPU: idle, kernel, user, DPC and interrupt times as 64-bit numbers of 100 ns, and
// a 32-bit count of interrupts. Kernel time includes the idle, DPC and interrupt times.
const coreRowSize = 48

// decodeCoreRows sums up the CPUs' times and lists their interrupts; nil when all counts are
// 0, as Wine's are.
func decodeCoreRows(b []byte) (*cpuTicks, []vectorCount) {
	c := &cpuTicks{unit: 100}
	var interrupts []vectorCount
	some := false
	for cpu := 0; len(b) >= coreRowSize; cpu++ {
		long := func(at int) int64 { return int64(binary.LittleEndian.Uint64(b[at:])) }
		idle, kernel, dpc, irq := long(0), long(8), long(24), long(32)
		c.idle += idle
		c.user += long(16)
		c.softirq += dpc
		c.irq += irq
		c.system += kernel - idle - dpc - irq
		n := binary.LittleEndian.Uint32(b[40:])
		interrupts = append(interrupts, vectorCount{label: "in all", cpu: cpu, count: uint64(n)})
		some = some || n != 0
		b = b[coreRowSize:]
	}
	if !some {
		return c, nil
	}
	return c, interrupts
}

// switchCounts is the part that is used of SYSTEM_INTERRUPT_INFORMATION
// (NtQuerySystemInformation class 23, 24 bytes for each CPU): both wrap at 32 bits.
type switchCounts struct{ contextSwitches, dpcs uint32 }

const switchCountsSize = 24

// decodeSwitchCounts reads the rows of class 23.
func decodeSwitchCounts(b []byte) []switchCounts {
	var out []switchCounts
	for ; len(b) >= switchCountsSize; b = b[switchCountsSize:] {
		out = append(out, switchCounts{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])})
	}
	return out
}

// A CPU switches threads and runs deferred calls at most so often: several times what the
// fastest were seen to do. The allowance covers the moment between two readings.
const (
	mostSwitchesPerSecond = 5e6
	switchAllowance       = 100_000
)

var errNotCounters = errors.New("what the system answers are no counters")

// dpcsSince is the growth of all CPUs' DPC counts; nil when the rows cannot be counters. Wine
// takes class 23 for a request of random bytes: two readings in a row pass here once
// in 10⁹ times.
func dpcsSince(a, b []switchCounts, span time.Duration) *int64 {
	if len(a) == 0 || len(a) != len(b) {
		return nil
	}
	most := switchAllowance + mostSwitchesPerSecond*max(0, span.Seconds())
	var sum int64
	some := false
	for i := range b {
		dpcs, switches := b[i].dpcs-a[i].dpcs, b[i].contextSwitches-a[i].contextSwitches
		if float64(dpcs) > most || float64(switches) > most {
			return nil
		}
		some = some || b[i].dpcs != 0
		sum += int64(dpcs)
	}
	if !some {
		return nil
	}
	return &sum
}

// idleCycles are the cycles that the CPUs' idle threads ran, summed, and the clock that they
// are counted at.
type idleCycles struct {
	cycles uint64
	mhz    float64
}

// since is the idle time from a to c in ns.
func (c idleCycles) since(a idleCycles) int64 {
	if c.cycles < a.cycles || c.mhz <= 0 {
		return 0
	}
	return int64(math.Round(float64(c.cycles-a.cycles) / c.mhz * 1e3))
}

// withIdle puts another idle time into c, of whole ns of all CPUs together, and divides the
// rest as c divides what is not idle.
func withIdle(c result.CPUTime, idle, whole int64) result.CPUTime {
	idle = min(max(0, idle), whole)
	busy := whole - idle
	was := c.Total() - c.Idle
	out := result.CPUTime{Idle: idle}
	if was <= 0 {
		out.System = busy
		return out
	}
	part := func(v int64) int64 { return int64(float64(v) / float64(was) * float64(busy)) }
	out.User, out.IRQ, out.SoftIRQ = part(c.User), part(c.IRQ), part(c.SoftIRQ)
	out.System = busy - out.User - out.IRQ - out.SoftIRQ
	return out
}

// Sizes of the structures of iphlpapi: MIB_TCPSTATS, MIB_TCPSTATS2, MIB_UDPSTATS, MIB_UDPSTATS2
// (tcpmib.h, udpmib.h). The second ones have 64-bit counts of what went in and out.
const (
	tcpStatsSize  = 60
	tcpStats2Size = 72
	udpStatsSize  = 20
	udpStats2Size = 32
)

func word(b []byte, at int) counter {
	return counter{uint64(binary.LittleEndian.Uint32(b[at:])), 32}
}

func long(b []byte, at int) counter { return counter{binary.LittleEndian.Uint64(b[at:]), 64} }

// decodeTCPStats reads MIB_TCPSTATS. As "failed" NTTTCP shows dwAttemptFails.
func decodeTCPStats(b *[tcpStatsSize]byte) packetCounters {
	return packetCounters{failed: word(b[:], 24), received: word(b[:], 36), sent: word(b[:], 40), retransmitted: word(b[:], 44)}
}

// decodeTCPStats2 reads MIB_TCPSTATS2.
func decodeTCPStats2(b *[tcpStats2Size]byte) packetCounters {
	return packetCounters{failed: word(b[:], 24), received: long(b[:], 40), sent: long(b[:], 48), retransmitted: word(b[:], 56)}
}

// decodeUDPStats reads MIB_UDPSTATS. As "failed" NTTTCP shows dwInErrors.
func decodeUDPStats(b *[udpStatsSize]byte) packetCounters {
	return packetCounters{received: word(b[:], 0), failed: word(b[:], 8), sent: word(b[:], 12)}
}

// decodeUDPStats2 reads MIB_UDPSTATS2.
func decodeUDPStats2(b *[udpStats2Size]byte) packetCounters {
	return packetCounters{received: long(b[:], 0), failed: word(b[:], 12), sent: long(b[:], 16)}
}
