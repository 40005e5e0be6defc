package oshost

import (
	"strings"
	"testing"

	"golang.org/x/sys/windows"
)

// Calls that are not there are named, never made.
func TestTotalsWithoutAnyCall(t *testing.T) {
	none := windows.NewLazySystemDLL("kernel32.dll").NewProc("FullboreHasNoSuchCall")
	m := &meter{
		o: TotalsOptions{Retransmits: true, IdleCycles: true}, calls: &winCalls{
			query: none, queryEx: none, systemTimes: none, groups: none, groupCPUs: none,
			idleCycles: none, idleCyclesEx: none, tcpStats: none, tcpStats2: none, udpStats: none, udpStats2: none,
		},
		cores: newGroupQuery(windows.SystemProcessorPerformanceInformation, coreRowSize),
		dpcs:  newGroupQuery(windows.SystemInterruptInformation, switchCountsSize),
	}
	var s snapshot
	var missing []string
	m.read(&s, missed(&missing))
	if s.cpu != nil || s.interrupts != nil || s.dpcs != nil || s.packets != nil || s.tcp != nil || s.idle != nil {
		t.Errorf("made up: %+v", s)
	}
	if s.cores < 1 || s.process == nil {
		t.Errorf("what needs no lookup: %+v", s)
	}
	all := strings.Join(missing, "\n")
	for _, what := range []string{"CPU time", "interrupts", "packets of the protocol stack", "TCP counters", "cycles of idle CPUs"} {
		if !strings.Contains(all, what) {
			t.Errorf("%s: not in\n%s", what, all)
		}
	}
	if rows, err := m.readDPCs(); err == nil {
		t.Errorf("DPCs: %v", rows)
	}
}

// GetSystemTimes stands in for the query by CPU, and its times agree with it.
func TestSystemTimesStandIn(t *testing.T) {
	whole := NewTotals(TotalsOptions{})
	defer whole.Close()
	alone := NewTotals(TotalsOptions{})
	defer alone.Close()
	alone.meter.calls.query = windows.NewLazySystemDLL("ntdll.dll").NewProc("FullboreHasNoSuchCall")
	alone.meter.calls.queryEx = alone.meter.calls.query
	a, b := whole.take(), alone.take()
	if a.cpu == nil || b.cpu == nil {
		t.Fatalf("%+v, %+v", a, b)
	}
	sum := func(c *cpuTicks) float64 {
		return float64(c.user+c.system+c.softirq+c.irq+c.idle) * c.unit.Seconds()
	}
	if x, y := sum(a.cpu), sum(b.cpu); x <= 0 || y < 0.9*x || y > 1.1*x {
		t.Errorf("%v s by CPU, %v s by GetSystemTimes", x, y)
	}
}
