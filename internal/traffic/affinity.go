package traffic

import (
	"fmt"
	"slices"

	"github.com/fullbore-net/fullbore/internal/osnet"
)

// checkAffinity: an error that wraps errors.ErrUnsupported says that this system binds no
// threads.
func checkAffinity(cpus []int) error {
	usable, err := osnet.UsableCPUs()
	if err != nil {
		return fmt.Errorf("traffic: affinity: %w", err)
	}
	for _, c := range cpus {
		if !slices.Contains(usable, c) {
			return fmt.Errorf("traffic: affinity: %w", &osnet.AffinityError{CPU: c, Usable: usable})
		}
	}
	return nil
}
