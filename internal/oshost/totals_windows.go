package oshost

import (
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// meter asks the kernel. Every call is looked up first: Windows releases and Wine lack
// some of them.
type meter struct {
	o         TotalsOptions
	calls     *winCalls
	cores     groupQuery // class 8
	dpcs      groupQuery // class 23
	countDPCs bool
	index     uint32 // of the interface; 0 = none
}

// winCalls are the procedures; those that are not there do not answer to Find.
type winCalls struct {
	query, queryEx                           *windows.LazyProc // NtQuerySystemInformation(Ex)
	systemTimes                              *windows.LazyProc
	groups, groupCPUs                        *windows.LazyProc
	idleCycles, idleCyclesEx                 *windows.LazyProc
	tcpStats, tcpStats2, udpStats, udpStats2 *windows.LazyProc
}

func newWinCalls() *winCalls {
	nt, kernel, ip := windows.NewLazySystemDLL("ntdll.dll"), windows.NewLazySystemDLL("kernel32.dll"), windows.NewLazySystemDLL("iphlpapi.dll")
	return &winCalls{
		query: nt.NewProc("NtQuerySystemInformation"), queryEx: nt.NewProc("NtQuerySystemInformationEx"),
		systemTimes: kernel.NewProc("GetSystemTimes"),
		groups:      kernel.NewProc("GetActiveProcessorGroupCount"), groupCPUs: kernel.NewProc("GetActiveProcessorCount"),
		idleCycles: kernel.NewProc("QueryIdleProcessorCycleTime"), idleCyclesEx: kernel.NewProc("QueryIdleProcessorCycleTimeEx"),
		tcpStats: ip.NewProc("GetTcpStatisticsEx"), tcpStats2: ip.NewProc("GetTcpStatisticsEx2"),
		udpStats: ip.NewProc("GetUdpStatisticsEx"), udpStats2: ip.NewProc("GetUdpStatisticsEx2"),
	}
}

// groupCount is how many processor groups there are; a group has at most 64 CPUs.
func (c *winCalls) groupCount() int {
	if c.groups.Find() != nil {
		return 1
	}
	n, _, _ := c.groups.Call()
	return max(1, int(uint16(n)))
}

// groupQuery fetches rows of so many bytes for each CPU of all processor groups.
type groupQuery struct {
	class uintptr
	size  int
	buf   []uint64 // 64 rows; a group has no more
	all   []byte
}

func newGroupQuery(class uintptr, size int) groupQuery {
	return groupQuery{class: class, size: size, buf: make([]uint64, 64*size/8)}
}

// read returns the rows, good until the next call. Without NtQuerySystemInformationEx
// (Windows 7) they are those of this thread's group.
func (q *groupQuery) read(c *winCalls) ([]byte, error) {
	q.all = q.all[:0]
	var got uint32
	size := uintptr(len(q.buf) * 8)
	keep := func(status uintptr) error {
		if uint32(status) != 0 {
			return windows.NTStatus(uint32(status))
		}
		n := min(int(got), int(size))
		q.all = append(q.all, unsafe.Slice((*byte)(unsafe.Pointer(&q.buf[0])), n)...)
		return nil
	}
	if groups := c.groupCount(); groups > 1 && c.queryEx.Find() == nil {
		for g := range groups {
			group := uint16(g)
			status, _, _ := c.queryEx.Call(q.class, uintptr(unsafe.Pointer(&group)), unsafe.Sizeof(group),
				uintptr(unsafe.Pointer(&q.buf[0])), size, uintptr(unsafe.Pointer(&got)))
			if err := keep(status); err != nil {
				return nil, err
			}
		}
		return q.all, nil
	}
	if err := c.query.Find(); err != nil {
		return nil, err
	}
	status, _, _ := c.query.Call(q.class, uintptr(unsafe.Pointer(&q.buf[0])), size, uintptr(unsafe.Pointer(&got)))
	if err := keep(status); err != nil {
		return nil, err
	}
	return q.all, nil
}

func openMeter(o TotalsOptions, miss func(string, error)) *meter {
	m := &meter{
		o: o, calls: newWinCalls(),
		cores: newGroupQuery(windows.SystemProcessorPerformanceInformation, coreRowSize),
		dpcs:  newGroupQuery(windows.SystemInterruptInformation, switchCountsSize),
	}
	if o.Interface != "" && !o.Stack {
		index, err := indexOf(o.Interface)
		if err != nil {
			miss("packets of "+o.Interface, err)
		}
		m.index = index
	}
	if m.calls.groupCount() > 1 && m.calls.queryEx.Find() != nil {
		miss("CPUs of other processor groups", m.calls.queryEx.Find())
	}
	// Rows that are no counters show in two readings in a row.
	began := time.Now()
	a, err := m.readDPCs()
	b, err2 := m.readDPCs()
	switch err = errors.Join(err, err2); {
	case err != nil:
	case dpcsSince(a, b, time.Since(began)) == nil:
		err = errNotCounters
	default:
		m.countDPCs = true
	}
	if err != nil {
		miss("DPCs", err)
	}
	return m
}

func (m *meter) close() {}

func (m *meter) mhz(int) (float64, error) {
	v, ok := regInt(`HARDWARE\DESCRIPTION\System\CentralProcessor\0`, "~MHz")
	if !ok || v == 0 {
		return 0, errors.New("~MHz is not in the registry")
	}
	return float64(v), nil
}

func (m *meter) read(s *snapshot, miss func(string, error)) {
	m.readCPUs(s, miss)
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user); err != nil {
		miss("process times", err)
	} else {
		sum := ticks(user) + ticks(kernel)
		s.process = &sum
	}
	if m.o.IdleCycles {
		m.readIdle(s, miss)
	}
	if m.countDPCs {
		rows, err := m.readDPCs()
		if err != nil {
			miss("DPCs", err)
		}
		s.dpcs = rows
	}
	m.readPackets(s, miss)
}

// readCPUs sums up the CPUs' times and interrupts (SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION),
// else takes the sums alone from GetSystemTimes.
func (m *meter) readCPUs(s *snapshot, miss func(string, error)) {
	rows, err := m.cores.read(m.calls)
	if err == nil && len(rows) < coreRowSize {
		err = errors.New("no CPU in it")
	}
	if err == nil {
		s.cpu, s.interrupts = decodeCoreRows(rows)
		s.cores = len(rows) / coreRowSize
		if s.interrupts == nil {
			miss("interrupts", errors.New("the system counts none"))
		}
		return
	}
	miss("interrupts and CPU time by kind", err)
	s.cores = runtime.NumCPU()
	if m.calls.groupCPUs.Find() == nil {
		if n, _, _ := m.calls.groupCPUs.Call(windows.ALL_PROCESSOR_GROUPS); n > 0 {
			s.cores = int(uint32(n))
		}
	}
	if err := m.calls.systemTimes.Find(); err != nil {
		miss("CPU time", err)
		return
	}
	var idle, kernel, user windows.Filetime
	if ok, _, err := m.calls.systemTimes.Call(uintptr(unsafe.Pointer(&idle)), uintptr(unsafe.Pointer(&kernel)), uintptr(unsafe.Pointer(&user))); ok == 0 {
		miss("CPU time", err)
		return
	}
	// Durations of 100 ns, not dates: Filetime.Nanoseconds would take 1601 off them.
	i := ticks(idle)
	s.cpu = &cpuTicks{user: int64(ticks(user)), system: int64(ticks(kernel) - i), idle: int64(i), unit: 1}
}

// readIdle sums up the cycles of the idle threads of all groups.
func (m *meter) readIdle(s *snapshot, miss func(string, error)) {
	const what = "cycles of idle CPUs"
	mhz, err := m.mhz(0)
	if err != nil {
		miss(what, err)
		return
	}
	sum := uint64(0)
	for g := range m.calls.groupCount() {
		var cycles [64]uint64
		length := uint32(len(cycles) * 8)
		var ok uintptr
		switch {
		case m.calls.idleCyclesEx.Find() == nil:
			ok, _, err = m.calls.idleCyclesEx.Call(uintptr(g), uintptr(unsafe.Pointer(&length)), uintptr(unsafe.Pointer(&cycles[0])))
		case g == 0 && m.calls.idleCycles.Find() == nil:
			ok, _, err = m.calls.idleCycles.Call(uintptr(unsafe.Pointer(&length)), uintptr(unsafe.Pointer(&cycles[0])))
		default:
			err = m.calls.idleCyclesEx.Find()
		}
		if ok == 0 {
			miss(what, err)
			return
		}
		for _, c := range cycles[:min(int(length)/8, len(cycles))] {
			sum += c
		}
	}
	s.idle = &idleCycles{sum, mhz}
}

func (m *meter) readDPCs() ([]switchCounts, error) {
	rows, err := m.dpcs.read(m.calls)
	if err != nil {
		return nil, err
	}
	return decodeSwitchCounts(rows), nil
}

// readPackets reads the interface's counters, or the stack's.
func (m *meter) readPackets(s *snapshot, miss func(string, error)) {
	if m.o.Interface == "" || m.o.Stack {
		p, err := m.stack(m.o.UDP)
		if err != nil {
			miss("packets of the protocol stack", err)
		}
		s.packets = p
	} else if m.index != 0 {
		row, err := ifRow(m.index)
		if err != nil {
			miss("packets of "+m.o.Interface, err)
		} else {
			s.packets = &packetCounters{
				name: m.o.Interface, received: counter{row.InUcastPkts + row.InNUcastPkts, 64}, sent: counter{row.OutUcastPkts + row.OutNUcastPkts, 64},
			}
		}
	}
	if m.o.Retransmits {
		if p, err := m.stack(false); err != nil {
			miss("TCP counters", err)
		} else {
			s.tcp = &[len(tcpNames)]counter{p.retransmitted}
		}
	}
}

// stack reads the protocol's statistics of the address family, in 64 bits where this
// Windows has them (10 version 1709).
func (m *meter) stack(udp bool) (*packetCounters, error) {
	family := uintptr(windows.AF_INET)
	if m.o.IPv6 {
		family = windows.AF_INET6
	}
	c := m.calls
	var buf [9]uint64 // aligned for the 64-bit fields
	try := func(p *windows.LazyProc) error {
		if err := p.Find(); err != nil {
			return err
		}
		if code, _, _ := p.Call(uintptr(unsafe.Pointer(&buf[0])), family); uint32(code) != 0 {
			return fmt.Errorf("%s: %w", p.Name, windows.Errno(uint32(code)))
		}
		return nil
	}
	var out packetCounters
	if udp {
		if try(c.udpStats2) == nil {
			out = decodeUDPStats2((*[udpStats2Size]byte)(unsafe.Pointer(&buf)))
			return &out, nil
		}
		if err := try(c.udpStats); err != nil {
			return nil, err
		}
		out = decodeUDPStats((*[udpStatsSize]byte)(unsafe.Pointer(&buf)))
		return &out, nil
	}
	if try(c.tcpStats2) == nil {
		out = decodeTCPStats2((*[tcpStats2Size]byte)(unsafe.Pointer(&buf)))
		return &out, nil
	}
	if err := try(c.tcpStats); err != nil {
		return nil, err
	}
	out = decodeTCPStats((*[tcpStatsSize]byte)(unsafe.Pointer(&buf)))
	return &out, nil
}
