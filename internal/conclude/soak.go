package conclude

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// SoakHost says what is known of this host over a soak: "31 % of a core, 1800 to 3600 MHz, 67 °C,
// slowed for heat 2 times, memory 31.0 MB to 32.0 MB"; "" = nothing is.
func SoakHost(m *result.SoakMachine) string {
	if m == nil {
		return ""
	}
	parts := machineParts(m.CPU, m.MinMHz, m.MaxMHz, m.MaxCelsius, m.Throttles)
	switch {
	case m.FirstMemory != nil && m.LastMemory != nil:
		parts = append(parts, fmt.Sprintf("memory %s to %s", units.ByteSize(*m.FirstMemory), units.ByteSize(*m.LastMemory)))
	case m.LastMemory != nil:
		parts = append(parts, "memory "+units.ByteSize(*m.LastMemory).String())
	}
	return strings.Join(parts, ", ")
}

// SoakHourHost is SoakHost of one hour: "30 % of a core, 2400 MHz, 61 °C, 31.0 MB".
func SoakHourHost(h *result.SoakHour) string {
	parts := machineParts(h.CPU, h.MinMHz, nil, h.MaxCelsius, h.Throttles)
	if h.Memory != nil {
		parts = append(parts, units.ByteSize(*h.Memory).String())
	}
	return strings.Join(parts, ", ")
}

// machineParts are the clauses that both have.
func machineParts(cpu *float64, low, high *int, warm *float64, slowed *int64) (parts []string) {
	if cpu != nil {
		parts = append(parts, fmt.Sprintf("%.0f %% of a core", *cpu))
	}
	switch {
	case low != nil && high != nil && *low != *high:
		parts = append(parts, fmt.Sprintf("%d to %d MHz", *low, *high))
	case low != nil:
		parts = append(parts, fmt.Sprintf("%d MHz", *low))
	}
	if warm != nil {
		parts = append(parts, fmt.Sprintf("%.0f °C", *warm))
	}
	if slowed != nil && *slowed > 0 {
		word := "times"
		if *slowed == 1 {
			word = "time"
		}
		parts = append(parts, fmt.Sprintf("slowed for heat %d %s", *slowed, word))
	}
	return parts
}
