package oshost

import (
	"errors"
	"net"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// source asks the kernel anew each time. There is no softnet, no per-thread waiting
// time and no job-object throttling count here: those stay unknown.
type source struct {
	name  string
	index uint32 // 0 = none
	times []processorTimes
}

// processorTimes is SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION (winternl.h): 100-ns units;
// kernel includes idle, DPC and interrupt time.
type processorTimes struct {
	idle, kernel, user, dpc, interrupt int64
	interrupts                         uint32
	_                                  uint32
}

func openSource(o SamplerOptions, miss func(string, error)) *source {
	s := &source{name: o.Interface, times: make([]processorTimes, max(64, runtime.NumCPU()))}
	if o.Interface != "" {
		index, err := indexOf(o.Interface)
		if err != nil {
			miss("counters of "+o.Interface, err)
		}
		s.index = index
	}
	miss("softnet, waiting threads, CPU quota", errors.ErrUnsupported)
	return s
}

func indexOf(name string) (uint32, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return 0, err
	}
	return uint32(i.Index), nil
}

func (s *source) close() {}

// clock is not known: what Windows tells of a processor's clock is its nominal one.
func (s *source) clock(int) *int { return nil }

func (s *source) read(r *reading, miss func(string, error)) {
	r.cores = s.readCores(r.cores[:0], miss)
	r.process = nil
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user); err != nil {
		miss("process times", err)
	} else {
		r.process = &processTimes{user: ticks(user), system: ticks(kernel)}
	}
	r.nic = nil
	if s.index == 0 {
		return
	}
	row, err := ifRow(s.index)
	if err != nil {
		miss("counters of "+s.name, err)
		return
	}
	r.nic = &nicCounters{
		name: s.name, rxBytes: int64(row.InOctets), txBytes: int64(row.OutOctets),
		rxPackets: int64(row.InUcastPkts + row.InNUcastPkts), txPackets: int64(row.OutUcastPkts + row.OutNUcastPkts),
		rxErrors: int64(row.InErrors), txErrors: int64(row.OutErrors),
		rxDropped: int64(row.InDiscards), txDropped: int64(row.OutDiscards),
	}
}

// readCores reads the cores of this process's processor group (at most 64).
func (s *source) readCores(out []coreTimes, miss func(string, error)) []coreTimes {
	size := uint32(len(s.times)) * uint32(unsafe.Sizeof(s.times[0]))
	var got uint32
	err := windows.NtQuerySystemInformation(windows.SystemProcessorPerformanceInformation, unsafe.Pointer(&s.times[0]), size, &got)
	if err != nil {
		miss("core times", err)
		return out
	}
	for i, t := range s.times[:got/uint32(unsafe.Sizeof(s.times[0]))] {
		out = append(out, coreTimes{
			id: i, user: uint64(t.user), system: uint64(max(0, t.kernel-t.idle-t.dpc-t.interrupt)),
			softirq: uint64(t.dpc), irq: uint64(t.interrupt), idle: uint64(t.idle),
		})
	}
	return out
}

// ticks turns a time in 100-ns units into a Duration (Filetime.Nanoseconds counts from 1970).
func ticks(f windows.Filetime) time.Duration {
	return time.Duration(int64(f.HighDateTime)<<32|int64(f.LowDateTime)) * 100
}
