package ntttcp

import (
	"context"
	"net"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
)

// member is one sender of a test, as its sync connection shows it.
type member struct {
	r     *Receiver
	nc    net.Conn
	linux bool // at the second set of ports
	d     dialog
	t     *test         // nil before it may set up
	asked bool          // it said R or L, and was not refused
	over  chan struct{} // closed with the connection
}

// handleSync serves one sync connection from its first byte to its end. It returns when the
// connection is closed. linux: it is at the second set of ports.
func (r *Receiver) handleSync(ctx context.Context, nc net.Conn, linux bool) {
	if !r.arrived.add(nc) {
		_ = nc.Close()
		return
	}
	defer r.arrived.remove(nc)
	defer nc.Close()
	if tc, ok := nc.(interface{ SetNoDelay(bool) error }); ok {
		_ = tc.SetNoDelay(true)
	}
	m := &member{r: r, nc: nc, linux: linux, over: make(chan struct{})}
	defer m.leave()
	for {
		m.limit()
		w, err := readWord(nc)
		if err != nil {
			m.gone(err)
			return
		}
		ask, err := m.d.hear(w)
		if err != nil {
			r.note(peerOf(nc), "sent something that is no NTTTCP")
			m.gone(err)
			return
		}
		if !m.answer(ctx, ask, w) {
			return
		}
	}
}

// limit says when the next word must be there. Once R or L was said there is no limit but the
// end of the test: see watch.
func (m *member) limit() {
	switch {
	case m.asked:
	case m.t == nil || m.d.at == atTime:
		_ = m.nc.SetReadDeadline(time.Now().Add(m.r.to.Header))
	default:
		_ = m.nc.SetReadDeadline(time.Now().Add(m.r.to.Setup))
	}
}

// watch lets the connection live until the end of the test and a moment longer. Its goroutine
// ends then, or with the connection.
func (m *member) watch() {
	_ = m.nc.SetReadDeadline(time.Time{})
	m.r.wg.Go(func() {
		select {
		case <-m.t.done:
			_ = m.nc.SetReadDeadline(time.Now().Add(m.r.to.Parting))
		case <-m.over:
		}
	})
}

// answer does what the sender asks; false = the connection ends.
func (m *member) answer(ctx context.Context, what ask, w Word) bool {
	switch what {
	case askState:
		return m.hello(ctx)
	case askTime:
		return m.say(m.t.propose(w))
	case askEnd:
		return m.end()
	}
	return m.start(ctx, what == askLast)
}

// hello answers X.
func (m *member) hello(ctx context.Context) bool {
	if m.asked { // any state is answered
		select {
		case <-m.t.done:
			return m.say(StateFinished)
		default:
			return m.say(StateRunning)
		}
	}
	if m.t == nil {
		if m.t = m.r.enter(ctx, peerOf(m.nc)); m.t == nil {
			m.r.note(peerOf(m.nc), "busy")
			m.d.busy()
			return m.say(StateRunning)
		}
		m.t.join(m)
	}
	return m.say(m.r.state())
}

// start answers R and L.
func (m *member) start(ctx context.Context, last bool) bool {
	if m.asked {
		return m.say(WordStart) // it is running, or was
	}
	if m.t == nil { // neither a state nor a time was asked for
		if m.t = m.r.enter(ctx, peerOf(m.nc)); m.t == nil {
			return m.say(WordEnd)
		}
		m.t.join(m)
	}
	if !m.t.request(ctx, m, last) {
		return false
	}
	m.watch()
	return true
}

// end answers E.
func (m *member) end() bool {
	if m.t == nil || !m.asked {
		return m.say(m.r.state())
	}
	m.t.stopBySender()
	return m.say(StateFinished)
}

// rtt is the round trip to the sender, 0 = unknown.
func (m *member) rtt() time.Duration {
	ti, err := osnet.NewConn(m.nc).TCPInfo()
	if err != nil {
		return 0
	}
	return min(time.Duration(ti.RTT)*time.Microsecond, time.Second)
}

func (m *member) say(w Word) bool {
	_ = m.nc.SetWriteDeadline(time.Now().Add(m.r.to.Answer))
	_, err := m.nc.Write(w.Append(nil))
	return err == nil
}

// gone takes note of a visitor that says nothing.
func (m *member) gone(err error) {
	if m.t == nil && isTimeout(err) {
		m.r.note(peerOf(m.nc), "silent or too slow on the sync port")
	}
}

// leave is the end of the sync connection. Before the start that ends the set-up; in a running
// test it changes nothing by itself (linux §3.1).
func (m *member) leave() {
	close(m.over)
	if m.t != nil {
		m.t.left(m)
	}
}
