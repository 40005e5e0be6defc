package ntttcp

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
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
	msgs  *mixed
	wmu   sync.Mutex // one writer at a time
	link  *link      // nil = a real tool, or one that does not say what it is
	peer  *ext.ClientHello
	begun chan struct{} // of a Windows sender: closed by its R; nil = of a Linux one
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
	m := &member{r: r, nc: nc, linux: linux, over: make(chan struct{}), msgs: &mixed{r: nc}}
	defer m.leave()
	m.serve(ctx)
}

// serve hears and answers until the connection ends, or is to end.
func (m *member) serve(ctx context.Context) {
	for {
		m.limit()
		it, err := m.msgs.next()
		if err != nil {
			m.gone(err)
			return
		}
		if it.frame != 0 {
			if !m.frame(it) {
				m.r.note(peerOf(m.nc), "sent a hello that makes no sense")
				return
			}
			continue
		}
		ask, err := m.d.hear(it.w)
		if err != nil {
			m.r.note(peerOf(m.nc), "sent something that is no NTTTCP")
			m.gone(err)
			return
		}
		if m.link == nil && ask != askState {
			m.msgs.set(wordsOnly) // what follows X told that it is no fullbore
		}
		if !m.answer(ctx, ask, it.w) {
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
	over := m.t.done
	if m.link != nil {
		over = m.t.told
	}
	m.r.wg.Go(func() {
		select {
		case <-over:
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
	state := m.r.state()
	if m.link == nil && m.offers() {
		m.msgs.set(mayGreet)
		state = StateFullbore
	}
	return m.say(state)
}

// start answers R and L.
func (m *member) start(ctx context.Context, last bool) bool {
	if m.asked {
		return m.say(WordStart) // it is running, or was
	}
	if m.begun != nil { // its tokens have come: who waits for this answers
		m.asked = true
		close(m.begun)
		m.watch()
		return true
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
	return writeTo(m.nc, &m.wmu, w.Append(nil), m.r.to.Answer) == nil
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
	m.link.closed()
	if m.t != nil {
		m.t.left(m)
	}
}
