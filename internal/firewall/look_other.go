//go:build !linux && !windows && !darwin && !freebsd

package firewall

import (
	"context"
	"errors"
	"fmt"
)

// Privilege says who may change filters here.
const Privilege = "it needs root"

func look(context.Context, System) (*Host, error) {
	return nil, fmt.Errorf("packet filters of this system: %w", errors.ErrUnsupported)
}
