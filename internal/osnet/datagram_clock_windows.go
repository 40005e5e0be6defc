package osnet

import (
	"math/bits"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// The runtime's clocks on Windows step in units of the system's timer (0.5 to 15.6 ms);
// the performance counter and the precise system time do not.
var (
	queryCounter = kernel32.NewProc("QueryPerformanceCounter")
	queryFreq    = kernel32.NewProc("QueryPerformanceFrequency")
)

// newEpoch keeps the counter's frequency in mono: 10 MHz on every system since 2016,
// fixed at boot. Neither call fails since Windows XP.
func newEpoch() epoch {
	var hz int64
	_, _, _ = queryFreq.Call(uintptr(unsafe.Pointer(&hz)))
	return epoch{mono: max(hz, 1)}
}

func monotonic() int64 {
	var n int64
	_, _, _ = queryCounter.Call(uintptr(unsafe.Pointer(&n)))
	hi, lo := bits.Mul64(uint64(n), 1e9)
	ns, _ := bits.Div64(hi, lo, uint64(clockEpoch().mono))
	return int64(ns)
}

func realtime() int64 {
	if windows.LoadGetSystemTimePreciseAsFileTime() != nil {
		return time.Now().UnixNano() // before Windows 8
	}
	var ft windows.Filetime
	windows.GetSystemTimePreciseAsFileTime(&ft)
	return ft.Nanoseconds()
}
