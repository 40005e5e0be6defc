// Package oshost reads what a host knows about itself: its counters, ten times a
// second if need be (Sampler), and its facts, once per test (Facts) or in full for
// `fullbore doctor` (Take).
//
// Unknown is nil, never 0: a counter that the system does not have is absent from the
// sample, and the reason is in Missing. On Linux everything but a few kernel calls is
// read from files below one root, so a recorded tree of another machine is read by the
// same code (Recorded).
package oshost

import (
	"context"
	"net/netip"

	"github.com/fullbore-net/fullbore/result"
)

// Facts returns what a test's record says about this host. peer chooses the interface:
// the one that the route to it leaves by; an invalid address means the default route.
// It reads files and asks the kernel, sends nothing, and returns within milliseconds.
func Facts(ctx context.Context, peer netip.Addr) *result.Host {
	return facts(ctx, peer)
}

// FactsInFull are Facts with the host's settings (Host.Settings): sysctls, queues, rings,
// quotas. It costs some hundred small files more than Facts, and on Windows asks no WMI,
// so that a server can look anew for each test.
func FactsInFull(ctx context.Context, peer netip.Addr) *result.Host {
	inv := brief(ctx, peer)
	h := inv.Host
	h.Settings = Settings(inv)
	return &h
}

// Take returns everything that the doctor's rules look at. It reads a few hundred
// files (the command names of all processes among them) and never fails as a whole:
// what could not be read is nil and listed in Missing.
func Take(ctx context.Context, peer netip.Addr) *Inventory {
	return take(ctx, peer)
}

// InterfaceTo returns the name of the interface by which packets to peer leave, by
// asking the routing table; an invalid address means the default route. Elsewhere than
// on Linux and Windows it wraps errors.ErrUnsupported.
func InterfaceTo(peer netip.Addr) (string, error) { return interfaceTo(peer) }

// AutotuneMax returns the largest socket buffer in bytes that the system's autotuning
// gives a TCP connection: on Linux the larger of the third numbers of
// net.ipv4.tcp_rmem and tcp_wmem, on Windows the window of auto-tuning level "normal".
// Elsewhere it wraps errors.ErrUnsupported.
func AutotuneMax() (int64, error) { return autotuneMax() }
