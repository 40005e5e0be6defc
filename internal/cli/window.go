package cli

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/units"
)

// parseWindow reads a socket buffer size: 8M, or 2x for twice the system's
// autotuning maximum (twice the default would only pin a small buffer).
func parseWindow(s string) (int64, error) {
	if n, ok := strings.CutSuffix(strings.ToLower(strings.TrimSpace(s)), "x"); ok {
		factor, err := units.ParseWhole(n)
		if err != nil || factor < 1 || factor > 64 {
			return 0, usagef("--window %q: the factor must be 1…64", s)
		}
		most, err := oshost.AutotuneMax()
		if err != nil {
			return 0, fmt.Errorf("--window %s: %w", s, err)
		}
		return factor * most, nil
	}
	w, err := units.ParseSize(s)
	if err != nil {
		return 0, usagef("--window: %v", err)
	}
	return int64(w), nil
}
