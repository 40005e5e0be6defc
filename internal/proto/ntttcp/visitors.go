package ntttcp

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// visitors are connections that belong to no test yet, and how often their addresses were
// logged. Beyond maxVisitors the newest is turned away: those that are here leave by their
// timeouts.
type visitors struct {
	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
	lines  map[netip.Addr]int
	since  time.Time
}

const (
	maxVisitors  = 4096
	visitorLines = 8
	visitorPause = 10 * time.Second
)

func (v *visitors) add(nc net.Conn) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed || len(v.conns) >= maxVisitors {
		return false
	}
	v.conns[nc] = struct{}{}
	return true
}

func (v *visitors) remove(nc net.Conn) {
	v.mu.Lock()
	delete(v.conns, nc)
	v.mu.Unlock()
}

func (v *visitors) closeAll() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	for nc := range v.conns {
		_ = nc.Close()
	}
}

func (v *visitors) mayLog(a netip.Addr) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if now.Sub(v.since) >= visitorPause || v.lines == nil {
		v.since, v.lines = now, map[netip.Addr]int{}
	}
	if len(v.lines) >= 256 || v.lines[a] >= visitorLines {
		return false
	}
	v.lines[a]++
	return true
}
