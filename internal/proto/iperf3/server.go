package iperf3

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/result"
)

// ErrIdle is returned by Serve when a one-off server saw no test within its idle timeout.
var ErrIdle = errors.New("no client came within the idle timeout")

// TestHooks connect one test of a server to its surroundings.
type TestHooks struct {
	// Sink gets the test's events; nil = nobody listens.
	Sink result.Sink
	// Output renders what this server shows of the test, for --get-server-output: text, or
	// a JSON document when the server's output is JSON. Called after the test's Finish
	// event, before the client gets the results. nil = there is no output to give.
	Output func(*result.Run) (text string, json []byte)
	// Host samples this machine's counters once per interval of this test; nil = the
	// Server's. Tests run at once, and a sampler belongs to one.
	Host func() *result.HostSample
	// Done is called once when the last event was delivered; nil = not.
	Done func()
}

// Server answers clients. The zero value of every field but Policy works. A Server is
// used for one Serve.
type Server struct {
	Policy plan.Serve
	// Tool is this program; the extension tells it to fullbore clients.
	Tool result.Tool
	// Version is the release of iperf3 shown to people; default DefaultRelease.
	Version string
	// SocketBase is the number shown for the first stream; default 5.
	SocketBase int
	// Host samples this machine's counters once per interval; nil = not.
	Host func() *result.HostSample
	// Facts describe this machine; nil = unknown. Strangers are told a part (Policy.FullFacts).
	Facts *result.Host
	// FactsTo looks at this machine anew, along the route to a client, with its settings
	// (Host.Settings), for clients that may know all of it; nil = they get Facts.
	FactsTo func(client netip.Addr) *result.Host
	// Now is the wall clock of logins; nil = time.Now.
	Now func() time.Time
	// Log gets one line per test and per hostile visitor, those limited in rate; nil = none.
	Log *slog.Logger
	// NewTest is called for every test that begins, and for every client that is refused
	// for its login or its wishes (then Connected without AcceptedFrom, if the wishes make
	// sense, and Error follow); not for clients that are told busy, nor for strangers.
	// nil = no hooks.
	NewTest func(remote result.Addr) TestHooks
	// NoPackets is why a listener has no socket in Packets: clients that want UDP are told.
	NoPackets error
	// OneSocket makes all UDP streams share the wildcard socket, as they do anyway where the
	// system does not tell connected sockets on one port apart (Windows).
	OneSocket bool
	// Plain makes UDP senders count as iperf3 does (traffic.UDPConfig.Iperf3).
	Plain    bool
	Timeouts Timeouts
	// Slots bounds the tests of this server and of whoever shares them; nil = Policy's own.
	Slots *plan.Slots
	// Packets are the wildcard UDP sockets beside the listeners of Serve, in their order and
	// bound to the same address and port; nil = UDP tests are refused there. Serve closes them.
	Packets []*osnet.PacketConn

	// Of a server that a client opened for one test with exchanged roles (clientRun.swapServer): the
	// cookie that alone is let in, and the conversation that it belongs to.
	token  *Cookie
	swapOf string

	listeners []net.Listener
	key       *rsa.PrivateKey
	to        Timeouts
	log       *slog.Logger
	visitors  *visitors
	docs      *budget
	pending   *pending
	probes    *probeServer
	wg        sync.WaitGroup
	accepted  atomic.Int64 // connections; gives plain streams their order
	datagrams atomic.Int64 // that came to no stream's own socket and were dealt with
	cancel    context.CancelCauseFunc

	mu       sync.Mutex
	running  map[*session]struct{} // hold a slot
	creating map[*session]struct{} // those that wait for streams; a subset
	queue    []*session            // wait for a slot, oldest first
	tests    int                   // how many there were
	used     bool                  // one-off: its test has begun
	lastBusy time.Time             // of the last test's end, or of the start
}

// Room for what strangers can make us hold (field cases F26, F31, F52).
const (
	maxPending     = 1024      // connections that have not finished their greeting
	maxLargeMemory = 256 << 20 // all large documents being received
)

// Serve answers clients on the listeners until ctx ends, which ends running tests with
// SERVER_TERMINATE; or until the test of a one-off server is over. The listeners stay
// open between tests and are closed when it returns. It returns nil after a one-off
// test, ErrIdle, ctx's cause, or a listener's error; every goroutine is gone then.
func (s *Server) Serve(ctx context.Context, lns []net.Listener) error {
	closeSockets := func() {
		for _, ln := range lns {
			_ = ln.Close()
		}
		for _, pc := range s.Packets {
			if pc != nil {
				_ = pc.Close()
			}
		}
	}
	if err := s.prepare(); err != nil {
		closeSockets()
		return err
	}
	s.listeners = lns
	ctx, cancel := context.WithCancelCause(ctx)
	s.cancel = cancel
	stop := context.AfterFunc(ctx, func() {
		closeSockets()
		s.pending.closeAll()
	})
	defer stop()
	for i, ln := range lns {
		d := s.deskOf(ln, i)
		if d != nil {
			s.wg.Go(func() { d.read(ctx) })
		}
		s.wg.Go(func() { s.accept(ctx, ln, d) })
	}
	changes := make(chan struct{}, 1)
	s.Slots.Watch(changes)
	s.wg.Go(func() { s.watchSlots(ctx, changes) })
	if s.Policy.OneOff && s.Policy.IdleTimeout > 0 {
		s.wg.Go(func() { s.watchIdle(ctx) })
	}
	<-ctx.Done()
	s.wg.Wait()
	err := context.Cause(ctx)
	if errors.Is(err, errServed) {
		return nil
	}
	return err
}

// errServed ends Serve after a one-off test.
var errServed = errors.New("the one test is done")

func (s *Server) prepare() error {
	s.Policy = s.Policy.Filled()
	s.to = s.Timeouts.filled()
	if s.Slots == nil {
		s.Slots = s.Policy.Slots()
	}
	s.mu.Lock()
	s.running, s.creating = map[*session]struct{}{}, map[*session]struct{}{}
	s.lastBusy = time.Now()
	s.mu.Unlock()
	s.pending = newPending(maxPending)
	s.probes = newProbeServer()
	s.docs = newBudget(maxLargeMemory)
	s.log = s.Log
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.visitors = newVisitors(s.log)
	if s.Version == "" {
		s.Version = DefaultRelease
	}
	if s.SocketBase == 0 {
		s.SocketBase = 5
	}
	if len(s.Policy.PrivateKey) > 0 {
		key, err := parsePrivateKey(s.Policy.PrivateKey)
		if err != nil {
			return &result.Error{Code: "plan", Text: "login: " + err.Error(), Number: 23}
		}
		s.key = key
	}
	return nil
}

func (s *Server) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// accept takes connections until the listener is closed. Too few descriptors end the
// test that is being set up, with the reason; the server lives on (field case F45).
func (s *Server) accept(ctx context.Context, ln net.Listener, d *desk) {
	pause := 5 * time.Millisecond
	for {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			pause = 5 * time.Millisecond
			seq := s.accepted.Add(1)
			s.wg.Go(func() { s.handle(ctx, nc, seq, d) })
			continue
		case ctx.Err() != nil:
			return
		case errno(err) == linuxEMFILE || errno(err) == linuxENFILE:
			s.outOfDescriptors(err)
		case errors.Is(err, net.ErrClosed):
			s.cancel(fmt.Errorf("iperf3: accept: %w", err))
			return
		default:
			s.log.Warn("accept", "err", err)
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		pause = min(2*pause, 100*time.Millisecond)
	}
}

const linuxENFILE = 23

// outOfDescriptors gives up one test that waits for streams, the one with most.
func (s *Server) outOfDescriptors(err error) {
	s.mu.Lock()
	var victim *session
	for t := range s.creating {
		if victim == nil || t.plan.Streams > victim.plan.Streams {
			victim = t
		}
	}
	s.mu.Unlock()
	if victim == nil {
		s.visitors.note(netip.Addr{}, OutOfDescriptors, "err", err)
		return
	}
	victim.fail(&result.Error{
		Code: "descriptors", Number: codeStreamAccept, Errno: errno(err),
		Text: fmt.Sprintf("this server has too few file descriptors for the test's %d streams (%v): raise its limit (ulimit -n)", victim.wanted(), err),
	})
}

// deskOf makes the desk of the i-th listener; nil = there is no UDP socket beside it.
func (s *Server) deskOf(ln net.Listener, i int) *desk {
	if i >= len(s.Packets) || s.Packets[i] == nil {
		return nil
	}
	local, err := netip.ParseAddrPort(ln.Addr().String())
	if err != nil {
		return nil
	}
	return newDesk(s, s.Packets[i], local)
}

// watchIdle ends a one-off server that nobody uses.
func (s *Server) watchIdle(ctx context.Context) {
	for {
		s.mu.Lock()
		left := s.Policy.IdleTimeout - time.Since(s.lastBusy)
		busy := s.used || s.Slots.Taken() > 0
		s.mu.Unlock()
		if busy {
			return // the test's own timeouts count from here
		}
		if left <= 0 {
			s.cancel(ErrIdle)
			return
		}
		t := time.NewTimer(left)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// peerOf is a connection's remote address without port, IPv4-mapped as IPv4.
func peerOf(nc net.Conn) netip.Addr {
	ap, err := netip.ParseAddrPort(nc.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}

func (s *Server) allowed(a netip.Addr) bool { return plan.Allowed(s.Policy.Allow, a) }

// handle serves one connection from its first byte: a stream of a test that waits for
// it, or the control connection of a new test. It closes nc, or hands it on. seq counts
// accepted connections; d takes the datagrams of tests that come this way, nil = nobody does.
func (s *Server) handle(ctx context.Context, nc net.Conn, seq int64, d *desk) {
	peer := peerOf(nc)
	if !s.allowed(peer) {
		s.visitors.note(peer, "not allowed")
		if s.token != nil {
			_ = nc.Close()
			return
		}
		// Test authorization failed: the one of iperf3's words that fits.
		s.farewell(nc, AppendError(nil, WireError{Code: codeAuth}))
		return
	}
	if s.token == nil && s.sayBusyAtOnce() { // a stranger is not even told that
		s.busy(nc, peer)
		return
	}
	entry := s.pending.add(nc)
	defer s.pending.remove(entry)
	_ = nc.SetDeadline(time.Now().Add(s.to.Header))
	var cookie Cookie
	if n, err := io.ReadFull(nc, cookie[:]); err != nil {
		s.visitors.stranger(peer, cookie[:n], err)
		_ = nc.Close()
		return
	}
	if s.token != nil && !s.token.Equal(cookie) {
		s.visitors.note(peer, "has not the token")
		_ = nc.Close()
		return
	}
	if what := foreignClient(cookie[:]); what != "" {
		s.visitors.note(peer, what)
		_ = nc.Close()
		return
	}
	if t, foreign := s.expecting(cookie, peer); t != nil {
		if foreign && !t.proves() {
			s.visitors.note(peer, "stream from another address than its control connection", "test", t.name())
			s.farewell(nc, []byte{byte(0xff)})
			return
		}
		t.offer(arrival{nc: nc, order: seq}, foreign)
		return
	}
	if s.sayBusyAtOnce() || s.exclusiveAndTaken() {
		s.busy(nc, peer)
		return
	}
	s.greet(ctx, nc, peer, cookie, entry, d)
}

// greet runs a new test from the server's first word on.
func (s *Server) greet(ctx context.Context, nc net.Conn, peer netip.Addr, cookie Cookie, entry *pendingEntry, d *desk) {
	_ = nc.SetDeadline(time.Now().Add(s.to.Header))
	if _, err := nc.Write([]byte{byte(StateParamExchange)}); err != nil {
		s.visitors.stranger(peer, nil, err)
		_ = nc.Close()
		return
	}
	doc, err := readParams(nc)
	if err != nil {
		s.visitors.stranger(peer, cookie[:], err)
		if errors.Is(err, ext.ErrTooLong) && cookie.plausible() || errors.Is(err, ext.ErrEmpty) {
			s.farewell(nc, AppendError(nil, WireError{Code: codeRecvParams}))
			return
		}
		_ = nc.Close()
		return
	}
	s.pending.remove(entry)
	_ = nc.SetDeadline(time.Time{})
	t := newSession(s, nc, peer, cookie)
	t.desk = d
	t.run(ctx, doc)
}

// readParams reads the length and the document, and not a byte more than they are.
func readParams(r io.Reader) ([]byte, error) {
	var head [ext.LengthSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := uint32(head[0])<<24 | uint32(head[1])<<16 | uint32(head[2])<<8 | uint32(head[3])
	switch {
	case n == 0:
		return nil, ext.ErrEmpty
	case n > MaxParams:
		return nil, fmt.Errorf("%w: parameters of %d bytes, at most %d are allowed", ext.ErrTooLong, n, MaxParams)
	}
	doc := make([]byte, n)
	_, err := io.ReadFull(r, doc)
	return doc, err
}

// farewell writes last words and closes so that they can be read.
func (s *Server) farewell(nc net.Conn, b []byte) {
	_ = nc.SetDeadline(time.Now().Add(s.to.Linger))
	if _, err := nc.Write(b); err == nil {
		if h, ok := nc.(interface{ CloseWrite() error }); ok {
			_ = h.CloseWrite()
		}
		_, _ = io.CopyN(io.Discard, nc, maxLinger)
	}
	_ = nc.Close()
}
