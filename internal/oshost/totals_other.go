//go:build !linux && !windows

package oshost

import (
	"errors"
	"fmt"
	"runtime"
)

// meter counts this process, where the system tells.
type meter struct{}

func openMeter(_ TotalsOptions, miss func(string, error)) *meter {
	miss("CPU time, retransmissions, packets, interrupts", fmt.Errorf("not counted on %s: %w", runtime.GOOS, errors.ErrUnsupported))
	return &meter{}
}

func (m *meter) close() {}

func (m *meter) mhz(int) (float64, error) { return 0, errors.ErrUnsupported }

func (m *meter) read(s *snapshot, miss func(string, error)) {
	s.cores = runtime.NumCPU()
	p, err := processUse()
	if err != nil {
		miss("process times", err)
		return
	}
	sum := p.user + p.system
	s.process = &sum
}
