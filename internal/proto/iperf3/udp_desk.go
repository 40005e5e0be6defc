package iperf3

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/result"
)

// desk is a server's wildcard UDP socket and what decides about its datagrams (design §5
// "Many tests at once"). It lives as long as the server, so that a stream's first datagram never finds the
// port closed. A stream that is accepted gets a socket of its own, connected to the
// client, which from then on takes the stream's datagrams away; where the system does not
// separate such sockets (Windows), the desk hands them on itself.
//
// One goroutine reads (read); it alone accepts streams. Sessions enter and leave.
type desk struct {
	s      *Server
	pc     *osnet.PacketConn
	local  netip.AddrPort // of the listener; the address may be unspecified
	shared *osnet.Shared  // the reader's; nil = streams have sockets of their own

	mu     sync.Mutex
	setups map[*udpSetup]struct{}       // that want streams
	turns  map[netip.Addr][]*udpSetup   // plain ones of an address; the first may have streams
	live   map[netip.AddrPort]struct{}  // clients' ends of streams that run or are set up
	ended  map[netip.AddrPort]time.Time // and of those that ended lately
	order  []struct {
		at   time.Time
		pair netip.AddrPort
	} // of ended, oldest first
}

// maxEnded bounds what is remembered; then the oldest are forgotten early.
const maxEnded = 1 << 16

func newDesk(s *Server, pc *osnet.PacketConn, local netip.AddrPort) *desk {
	d := &desk{
		s: s, pc: pc, local: netip.AddrPortFrom(local.Addr().Unmap(), local.Port()),
		setups: map[*udpSetup]struct{}{}, turns: map[netip.Addr][]*udpSetup{},
		live: map[netip.AddrPort]struct{}{}, ended: map[netip.AddrPort]time.Time{},
	}
	if s.OneSocket {
		d.shared = osnet.NewShared(pc)
	}
	return d
}

// read takes datagrams until the socket is closed.
func (d *desk) read(ctx context.Context) {
	buf := make([]byte, 64<<10)
	failures := 0
	for {
		n, from, to, at, err := d.pc.Read(buf)
		if err == nil {
			failures = 0
			d.dispatch(ctx, buf[:n], from, to, at)
			d.s.datagrams.Add(1)
			continue
		}
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return
		}
		// Errors that belong to some earlier answer (ICMP, on some systems) mean nothing here;
		// one that stays must not turn this into a busy loop.
		if failures++; failures > 16 {
			if failures == 17 {
				d.s.log.Warn("UDP socket", "err", err)
			}
			t := time.NewTimer(100 * time.Millisecond)
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				return
			}
		}
	}
}

// dispatch gives a datagram to whom it is for. Nobody who is not waited for gets an
// answer, and a datagram's answer is never longer than it; but 4 bytes go to a plain
// client, whose address its control connection has proved, whatever it greets with.
func (d *desk) dispatch(ctx context.Context, b []byte, from netip.AddrPort, to netip.Addr, at int64) {
	from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	to = to.Unmap()
	if !d.s.allowed(from.Addr()) {
		return
	}
	if d.shared != nil && d.shared.Deliver(from, b, at) {
		return
	}
	if d.s.probes.datagram(d.pc, b, from, to, at) {
		return
	}
	if g, ok := decodeGreeting(b); ok {
		d.extended(ctx, g, from, to)
		return
	}
	d.plain(ctx, b, from, to)
}

// extended takes the greeting of a fullbore client.
func (d *desk) extended(ctx context.Context, g greeting, from netip.AddrPort, to netip.Addr) {
	var u *udpSetup
	d.mu.Lock()
	for x := range d.setups { // every one, so that the time tells nothing
		if x.extended && x.t.cookie.Equal(g.cookie) {
			u = x
		}
	}
	d.mu.Unlock()
	if u == nil || g.index >= uint32(u.wanted) {
		return
	}
	if !sameHost(from.Addr(), u.t.peer) {
		want := newProof(u.secret[:], g.index, from)
		if g.token == nil {
			_, _ = d.pc.Write(want.challenge(), from, to) // lost: the client greets again
			return
		}
		if !want.valid(g.token) {
			return
		}
	}
	d.open(ctx, u, g.index, from, to)
}

// plain takes any other datagram: the first of a stream, when a plain client at its
// address may open one now.
func (d *desk) plain(ctx context.Context, b []byte, from netip.AddrPort, to netip.Addr) {
	d.mu.Lock()
	var u *udpSetup
	if q := d.turns[hostKey(from.Addr())]; len(q) > 0 && q[0].greeted && sameHost(from.Addr(), q[0].t.peer) {
		u = q[0]
	}
	var index uint32
	known := false
	if u != nil {
		if index = uint32(len(u.streams)); int(index) >= u.wanted {
			u = nil
		} else if s := u.known[from]; s != nil {
			index, known = s.index, true
		}
	}
	// What an ended stream's client still sends is no greeting. A client that binds its port
	// again says so in the words of a release.
	late := d.endedLately(from) && !isGreeting(b)
	d.mu.Unlock()
	if u == nil || late || known && !isGreeting(b) {
		return
	}
	d.open(ctx, u, index, from, to)
}

// open accepts a stream, or answers again.
func (d *desk) open(ctx context.Context, u *udpSetup, index uint32, from netip.AddrPort, to netip.Addr) {
	d.mu.Lock()
	s := u.known[from]
	_, live := d.live[from]
	taken := u.streams[index] != nil
	done := u.closed
	d.mu.Unlock()
	switch {
	case done:
		return
	case s != nil && s.index == index: // caught between two sockets, or the answer was lost
		_, _ = s.conn.Net().Write(udpAnswer)
		return
	case taken, live: // a running stream's datagrams must not be drawn away from it
		return
	}
	conn, stray, notices, err := d.connect(ctx, u, from, to)
	if err != nil {
		d.cannotOpen(u, err)
		return
	}
	s = &udpStream{conn: conn, index: index, from: from, notices: notices}
	d.mu.Lock()
	if u.closed {
		d.mu.Unlock()
		_ = conn.Close()
		return
	}
	u.streams[index], u.known[from] = s, s
	d.live[from] = struct{}{}
	u.tenders.Add(1)
	d.mu.Unlock()
	_, _ = conn.Net().Write(udpAnswer) // before the test can begin
	go u.tend(s)
	u.poke()
	for _, x := range stray {
		d.dispatch(ctx, x.Data, x.From, to, 0)
	}
}

// connect makes the stream's socket: beside the wildcard one, bound to the address that
// the client sent to, so that the answer comes from there (field case F11).
func (d *desk) connect(ctx context.Context, u *udpSetup, from netip.AddrPort, to netip.Addr) (*osnet.Conn, []osnet.Stray, []result.Notice, error) {
	if !to.IsValid() {
		to = d.local.Addr()
	}
	if d.shared == nil {
		conn, stray, notices, err := osnet.ConnectBeside(ctx, netip.AddrPortFrom(to, d.local.Port()), from, u.options)
		if !errors.Is(err, errors.ErrUnsupported) {
			return conn, stray, notices, err
		}
		d.shared = osnet.NewShared(d.pc)
	}
	conn, err := d.shared.Open(to, from)
	if err != nil {
		return nil, nil, nil, err
	}
	return conn, nil, u.unsettable(), nil
}

// cannotOpen ends a test whose stream this host could not make.
func (d *desk) cannotOpen(u *udpSetup, err error) {
	if n := errno(err); n == linuxEMFILE || n == linuxENFILE {
		d.s.outOfDescriptors(err)
		return
	}
	e := optionError(err)
	e.Text = "refused: " + e.Text
	u.t.fail(e)
}

// endedLately reports a pair whose stream ended within Timeouts.Ended. d.mu is held.
func (d *desk) endedLately(pair netip.AddrPort) bool {
	at, ok := d.ended[pair]
	return ok && time.Since(at) < d.s.to.Ended
}

// end remembers that a pair's stream is over. d.mu is held.
func (d *desk) end(pair netip.AddrPort) {
	now := time.Now()
	delete(d.live, pair)
	for len(d.order) > 0 && (len(d.order) >= maxEnded || now.Sub(d.order[0].at) >= d.s.to.Ended) {
		if old := d.order[0]; d.ended[old.pair].Equal(old.at) { // else it ended again since
			delete(d.ended, old.pair)
		}
		d.order = d.order[1:]
	}
	d.ended[pair] = now
	d.order = append(d.order, struct {
		at   time.Time
		pair netip.AddrPort
	}{now, pair})
}

// hostKey is what plain set-ups take turns by.
func hostKey(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// sameHost compares two addresses; a zone counts where both have one.
func sameHost(a, b netip.Addr) bool {
	if a.Zone() == "" || b.Zone() == "" {
		a, b = a.WithZone(""), b.WithZone("")
	}
	return a.Unmap() == b.Unmap()
}

// udpSetup is a UDP test that gets its streams. What is not said otherwise is guarded
// by the desk's mutex.
type udpSetup struct {
	t        *session
	d        *desk
	wanted   int
	extended bool
	secret   [16]byte      // of tokens
	options  osnet.Options // of the streams' sockets
	turn     chan struct{} // closed when a plain set-up may have streams
	wake     chan struct{} // a stream came

	greeted bool                  // CREATE_STREAMS is on its way
	closed  bool                  // no stream is wanted any more
	over    bool                  // the streams' ends were remembered
	streams map[uint32]*udpStream // by index; plain: in order of arrival
	known   map[netip.AddrPort]*udpStream
	tenders sync.WaitGroup
}

// udpStream is an accepted stream.
type udpStream struct {
	conn    *osnet.Conn
	index   uint32
	from    netip.AddrPort
	notices []result.Notice
}

// enter registers a test that will want streams.
func (d *desk) enter(t *session) *udpSetup {
	p := t.plan
	u := &udpSetup{
		t: t, d: d, wanted: t.wanted(), extended: t.hello.Has(ext.FeatureUDP),
		options: osnet.Options{Window: p.Window, TOS: p.TOS, FQRate: p.FQRate, DontFragment: p.DontFragment},
		turn:    make(chan struct{}), wake: make(chan struct{}, 1),
		streams: map[uint32]*udpStream{}, known: map[netip.AddrPort]*udpStream{},
	}
	_, _ = rand.Read(u.secret[:])
	d.mu.Lock()
	defer d.mu.Unlock()
	d.setups[u] = struct{}{}
	if u.extended {
		close(u.turn)
		return u
	}
	key := hostKey(t.peer)
	d.turns[key] = append(d.turns[key], u)
	if len(d.turns[key]) == 1 {
		close(u.turn)
	}
	return u
}

// greet allows streams from now on.
func (u *udpSetup) greet() {
	if u == nil {
		return
	}
	u.d.mu.Lock()
	u.greeted = true
	u.d.mu.Unlock()
}

// close wants no further streams and gives the turn to the next set-up of the same
// address. It may be called more than once, and on nil.
func (u *udpSetup) close() {
	if u == nil {
		return
	}
	d := u.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if u.closed {
		return
	}
	u.closed = true
	delete(d.setups, u)
	if u.extended {
		return
	}
	key := hostKey(u.t.peer)
	q := d.turns[key]
	for i, x := range q {
		if x != u {
			continue
		}
		q = append(q[:i:i], q[i+1:]...)
		if i == 0 && len(q) > 0 {
			close(q[0].turn)
		}
		break
	}
	if len(q) == 0 {
		delete(d.turns, key)
	} else {
		d.turns[key] = q
	}
}

// complete returns the streams in order once all are there, else nil and how many there are.
func (u *udpSetup) complete() ([]*udpStream, int) {
	u.d.mu.Lock()
	defer u.d.mu.Unlock()
	if len(u.streams) < u.wanted {
		return nil, len(u.streams)
	}
	out := make([]*udpStream, u.wanted)
	for i, s := range u.streams {
		out[i] = s
	}
	return out, u.wanted
}

// untend ends the answering of repeated greetings: the sockets are the caller's then.
func (u *udpSetup) untend() {
	u.close()
	for _, s := range u.streams { // closed: it does not change any more
		_ = s.conn.Net().SetReadDeadline(time.Unix(1, 0))
	}
	u.tenders.Wait()
	for _, s := range u.streams {
		_ = s.conn.Net().SetReadDeadline(time.Time{})
	}
}

// end remembers the streams' ends, before their sockets are closed: what comes then is
// late. It may be called more than once, and on nil.
func (u *udpSetup) end() {
	if u == nil {
		return
	}
	u.close()
	u.d.mu.Lock()
	defer u.d.mu.Unlock()
	if u.over {
		return
	}
	u.over = true
	for pair := range u.known {
		u.d.end(pair)
	}
}

// abandon closes everything of a set-up that came to nothing.
func (u *udpSetup) abandon() {
	u.end()
	u.untend()
	for _, s := range u.streams {
		_ = s.conn.Close()
	}
}

func (u *udpSetup) poke() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// tend answers a stream's repeated greetings: the first answer may have been lost. It
// ends with untend.
func (u *udpSetup) tend(s *udpStream) {
	defer u.tenders.Done()
	b := make([]byte, 2048)
	for failures := 0; failures < 100; {
		n, err := s.conn.Net().Read(b)
		switch {
		case err == nil:
			if u.repeats(s, b[:n]) {
				_, _ = s.conn.Net().Write(udpAnswer)
			}
		case errors.Is(err, net.ErrClosed), isNetTimeout(err):
			return
		default: // an ICMP answer to our answer
			failures++
		}
	}
}

func (u *udpSetup) repeats(s *udpStream, b []byte) bool {
	if !u.extended {
		return isGreeting(b)
	}
	g, ok := decodeGreeting(b)
	return ok && g.index == s.index && subtle.ConstantTimeCompare(g.cookie[:], u.t.cookie[:]) == 1
}

// unsettable tells which of the options asked for a shared socket cannot have (field
// case F15).
func (u *udpSetup) unsettable() []result.Notice {
	var out []result.Notice
	for _, x := range []struct {
		set  bool
		what string
	}{
		{u.options.TOS != 0, "the TOS byte"},
		{u.options.Window != 0, "the buffer size"},
		{u.options.FQRate != 0, "kernel pacing"},
		{u.options.DontFragment, "don't fragment"},
	} {
		if x.set {
			out = append(out, result.Notice{
				Code: "option-refused", End: result.Server, Level: result.Warn,
				Text: x.what + " cannot be set: all UDP streams of this server share one socket; the run goes on without it",
			})
		}
	}
	return out
}

// awaitUDPTurn lets the plain UDP set-ups of one address come one after the other,
// because nothing but the order of their datagrams tells their streams apart. Who waits too
// long is told busy.
func (t *session) awaitUDPTurn(ctx context.Context) error {
	if t.plan.Transport != plan.UDP || t.probeOnly() {
		return nil
	}
	t.udp = t.desk.enter(t)
	timer := time.NewTimer(t.s.to.Turn)
	defer timer.Stop()
	for {
		select {
		case <-t.udp.turn:
			return nil
		case in, ok := <-t.ctl.in:
			if err := t.early(in, ok); err != nil {
				return err
			}
		case <-timer.C:
			return errBusy
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
