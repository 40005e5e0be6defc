package ntttcp

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
)

// portGiver tells the threads of Windows senders their data ports (-sp, windows §3.5): each of a
// test has one of its own.
type portGiver struct {
	mu     sync.Mutex
	handed []time.Time // per data port: when it was told to somebody; zero = it is free
	taken  []bool      // its connection came
}

// next hands out the lowest free port; false = none is. One that was told to somebody who did not
// come for so long is free again.
func (g *portGiver) next(now time.Time, patience time.Duration) (port int, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, at := range g.handed {
		if at.IsZero() || !g.is(i) && now.Sub(at) > patience {
			g.handed[i] = now
			return i, true
		}
	}
	return 0, false
}

func (g *portGiver) is(i int) bool { return i < len(g.taken) && g.taken[i] }

// came takes note of a data connection.
func (g *portGiver) came(port int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if port >= len(g.handed) {
		return
	}
	if g.taken == nil {
		g.taken = make([]bool, len(g.handed))
	}
	g.taken[port] = true
}

// reset makes all ports free: a set-up has ended.
func (g *portGiver) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.handed)
	clear(g.taken)
}

// portPause is how often who waits for a free port looks.
const portPause = 20 * time.Millisecond

// handlePort tells the next port, and closes. When all are taken the sender waits until a test
// has begun with them, for as long as a set-up may take.
func (r *Receiver) handlePort(ctx context.Context, nc net.Conn) {
	if !r.arrived.add(nc) {
		_ = nc.Close()
		return
	}
	defer r.arrived.remove(nc)
	defer nc.Close()
	c := osnet.NewConn(nc)
	deadline := time.Now().Add(r.to.Setup)
	for {
		i, ok := r.ports.next(time.Now(), r.to.Turn)
		if ok {
			_ = nc.SetWriteDeadline(time.Now().Add(r.to.Answer))
			_, _ = nc.Write(AppendPort(nil, uint16(r.c.Port+i)))
			return
		}
		if time.Now().After(deadline) || ended(c) {
			r.note(peerOf(nc), "no data port is free")
			return
		}
		timer := time.NewTimer(portPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}
