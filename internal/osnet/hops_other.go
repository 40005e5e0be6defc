//go:build !linux

package osnet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

func hops(context.Context, netip.Addr, time.Duration) ([]Hop, error) {
	return nil, fmt.Errorf("hops: %w", errors.ErrUnsupported)
}
