//go:build !linux && !darwin && !freebsd

package osnet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/fullbore-net/fullbore/result"
)

func shareable(uintptr) error { return nil }

func connectBeside(_ context.Context, local, remote netip.AddrPort, _ Options, _ func()) (*Conn, []Stray, []result.Notice, error) {
	if _, _, err := besideAddrs(local, remote); err != nil {
		return nil, nil, nil, err
	}
	return nil, nil, nil, fmt.Errorf("osnet: several UDP sockets on one port: %w", errors.ErrUnsupported)
}
