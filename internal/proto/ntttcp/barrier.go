package ntttcp

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
)

// barrier makes sure that every connection that the kernel has completed is known here: when a
// sender says R its connections are, but they may still wait to be accepted. It connects to each
// data port itself; a listener hands connections out in the order of their coming, so those of the
// sender have been taken when ours is.
type barrier struct {
	mu    sync.RWMutex // held for writing while a marker connects: its port is known only then
	marks map[mark]chan struct{}
	deaf  atomic.Bool // this host does not reach itself
}

// mark is a marker as its acceptor sees it: another connection may come from the same port to
// another one at the same time.
type mark struct{ from, to netip.AddrPort }

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
				b.send(ctx, ln)
			}
		})
	}
	for _, ln := range lns {
		jobs <- ln
	}
	close(jobs)
	wg.Wait()
}

func (b *barrier) send(ctx context.Context, ln net.Listener) {
	nc, m, came := b.connect(ctx, ln)
	if nc == nil {
		return
	}
	defer nc.Close()
	select {
	case <-came:
	case <-ctx.Done():
		b.mu.Lock()
		delete(b.marks, m)
		b.mu.Unlock()
	}
}

func (b *barrier) connect(ctx context.Context, ln net.Listener) (net.Conn, mark, chan struct{}) {
	at, err := netip.ParseAddrPort(ln.Addr().String())
	if err != nil {
		return nil, mark{}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	d := net.Dialer{Timeout: reachSelf}
	for _, a := range ownAddrs(at.Addr()) {
		if b.deaf.Load() {
			break
		}
		nc, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(a, at.Port()).String())
		if err != nil {
			if isTimeout(err) {
				b.deaf.Store(true)
			}
			continue
		}
		m, err := markOf(nc.LocalAddr(), nc.RemoteAddr())
		if err != nil {
			_ = nc.Close()
			continue
		}
		came := make(chan struct{})
		if b.marks == nil {
			b.marks = map[mark]chan struct{}{}
		}
		b.marks[m] = came
		return nc, m, came
	}
	return nil, mark{}, nil
}

func markOf(from, to net.Addr) (mark, error) {
	f, err := netip.ParseAddrPort(from.String())
	if err != nil {
		return mark{}, err
	}
	t, err := netip.ParseAddrPort(to.String())
	return mark{plain(f), plain(t)}, err
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
	m, err := markOf(nc.RemoteAddr(), nc.LocalAddr())
	if err != nil {
		return false
	}
	b.mu.RLock()
	came := b.marks[m]
	b.mu.RUnlock()
	if came == nil {
		return false
	}
	b.mu.Lock()
	delete(b.marks, m)
	b.mu.Unlock()
	close(came)
	_ = nc.Close()
	return true
}

// passDatagrams returns when every datagram that this host had at the call was counted: it sends
// one to each of its own ports, which come out in order.
func (r *Receiver) passDatagrams(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, reachSelf)
	defer cancel()
	for _, pc := range r.lns.packets() {
		r.markDatagrams(ctx, pc)
	}
}

func (r *Receiver) markDatagrams(ctx context.Context, pc *osnet.PacketConn) {
	at := pc.LocalAddr()
	for _, a := range ownAddrs(at.Addr()) {
		nc, err := (&net.Dialer{}).DialContext(ctx, "udp", netip.AddrPortFrom(a, at.Port()).String())
		if err != nil {
			continue
		}
		local, err := netip.ParseAddrPort(nc.LocalAddr().String())
		if err != nil {
			_ = nc.Close()
			continue
		}
		came := make(chan struct{})
		r.mu.Lock()
		r.marks[plain(local)] = came
		r.mu.Unlock()
		if _, err = nc.Write([]byte{PayloadByte}); err == nil {
			select {
			case <-came:
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		_ = nc.Close()
		r.mu.Lock()
		delete(r.marks, plain(local))
		r.mu.Unlock()
		if err == nil {
			return
		}
	}
}
