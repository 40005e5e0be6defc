package ntttcp

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// barrier makes sure that every connection that the kernel has completed is known here: when a
// sender says R its connections are, but they may still wait to be accepted. It connects to each
// data port itself; a listener hands connections out in the order of their coming, so those of the
// sender have been taken when ours is.
type barrier struct {
	mu    sync.RWMutex // held for writing while a marker connects: its port is known only then
	marks map[netip.AddrPort]chan struct{}
	deaf  atomic.Bool // this host does not reach itself
}

const (
	// reachSelf bounds the connecting, where a firewall drops what a host sends to itself: there
	// are no barriers then.
	reachSelf = 2 * time.Second
	// acceptSelf bounds the wait for a connection that the kernel has completed: only a machine
	// that does not let this program run needs so long.
	acceptSelf = 10 * time.Second
)

// pass returns when everything completed before the call was accepted.
func (b *barrier) pass(ctx context.Context, lns []net.Listener) {
	ctx, cancel := context.WithTimeout(ctx, acceptSelf)
	defer cancel()
	jobs := make(chan net.Listener)
	var wg sync.WaitGroup
	for range min(8, len(lns)) {
		wg.Go(func() { // ends with jobs
			for ln := range jobs {
				b.mark(ctx, ln)
			}
		})
	}
	for _, ln := range lns {
		jobs <- ln
	}
	close(jobs)
	wg.Wait()
}

func (b *barrier) mark(ctx context.Context, ln net.Listener) {
	nc, came := b.connect(ctx, ln)
	if nc == nil {
		return
	}
	defer nc.Close()
	select {
	case <-came:
	case <-ctx.Done():
	}
}

func (b *barrier) connect(ctx context.Context, ln net.Listener) (net.Conn, chan struct{}) {
	at, err := netip.ParseAddrPort(ln.Addr().String())
	if err != nil {
		return nil, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	d := net.Dialer{Timeout: reachSelf}
	for _, a := range ownAddrs(at.Addr()) {
		if b.deaf.Load() {
			return nil, nil
		}
		nc, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(a, at.Port()).String())
		if err != nil {
			if isTimeout(err) {
				b.deaf.Store(true)
			}
			continue
		}
		local, err := netip.ParseAddrPort(nc.LocalAddr().String())
		if err != nil {
			_ = nc.Close()
			continue
		}
		came := make(chan struct{})
		if b.marks == nil {
			b.marks = map[netip.AddrPort]chan struct{}{}
		}
		b.marks[plain(local)] = came
		return nc, came
	}
	return nil, nil
}

// ownAddrs is where a listener on a can be reached from its own host.
func ownAddrs(a netip.Addr) []netip.Addr {
	switch {
	case !a.IsUnspecified():
		return []netip.Addr{a}
	case a.Is4():
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	}
	return []netip.Addr{netip.IPv6Loopback(), netip.AddrFrom4([4]byte{127, 0, 0, 1})}
}

func plain(ap netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// marker reports that an accepted connection is one of ours, and takes it.
func (b *barrier) marker(nc net.Conn) bool {
	remote, err := netip.ParseAddrPort(nc.RemoteAddr().String())
	if err != nil {
		return false
	}
	remote = plain(remote)
	b.mu.RLock()
	came := b.marks[remote]
	b.mu.RUnlock()
	if came == nil {
		return false
	}
	b.mu.Lock()
	delete(b.marks, remote)
	b.mu.Unlock()
	close(came)
	_ = nc.Close()
	return true
}
