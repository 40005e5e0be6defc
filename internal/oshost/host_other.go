//go:build !linux && !windows

package oshost

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"

	"github.com/fullbore-net/fullbore/result"
)

// facts fills what Go itself and a few sysctls know.
func facts(context.Context, netip.Addr) *result.Host {
	h := &result.Host{OS: runtime.GOOS, Cores: runtime.NumCPU()}
	h.Name, _ = os.Hostname() // "" = unknown
	hardware(h)
	return h
}

func take(ctx context.Context, peer netip.Addr) *Inventory {
	inv := &Inventory{Host: *facts(ctx, peer)}
	if peer.IsValid() {
		inv.Peer = peer.String()
	}
	inv.Missing = []string{fmt.Sprintf("network interface, TCP settings, clock: not read on %s: %v", runtime.GOOS, errors.ErrUnsupported)}
	return inv
}

func brief(ctx context.Context, peer netip.Addr) *Inventory { return take(ctx, peer) }

func interfaceTo(netip.Addr) (string, error) {
	return "", fmt.Errorf("oshost: interface to a peer on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func autotuneMax() (int64, error) {
	return 0, fmt.Errorf("oshost: autotuning maximum on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
