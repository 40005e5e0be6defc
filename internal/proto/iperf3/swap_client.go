package iperf3

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// swap is what a client has whose test the other end plays as the client (Plan.Swap;
// docs/wire-extension.md §13): a server for that one test, open to whoever has the token. The run's
// events are those of that server; of the conversation by which the other end is asked only the
// notices are told. nil = a test like any other.
type swap struct {
	token Cookie
	ln    net.Listener // until the server has it
	port  int
	told  *emitter

	mu       sync.Mutex
	finished bool          // the server's test came to its end
	broke    *result.Error // or did not
}

func newSwap(out result.Sink) *swap {
	return &swap{token: NewCookie(), told: newEmitter(result.Server, out)}
}

// Event implements result.Sink for the conversation. Its client is the server of the test.
func (s *swap) Event(ev result.Event) {
	switch ev.Kind {
	case result.KindNotice:
		n := *ev.Notice
		n.End = n.End.Other()
		ev.Notice = &n
	case result.KindError:
	default:
		return
	}
	ev.End = ev.End.Other()
	s.told.Event(ev)
}

// test connects the one test of the server.
func (s *swap) test(result.Addr) TestHooks {
	return TestHooks{Sink: result.SinkFunc(func(ev result.Event) {
		s.mu.Lock()
		switch ev.Kind {
		case result.KindFinish:
			s.finished = true
		case result.KindError:
			s.broke = ev.Err
		}
		s.mu.Unlock()
		s.told.Event(ev)
	})}
}

// wish is what the other end is asked for; nil for no swap.
func (s *swap) wish(p *plan.Plan) *ext.Swap {
	if s == nil {
		return nil
	}
	return &ext.Swap{Port: s.port, Token: s.token.String(), MaxBytes: p.MaxBytes, MaxRate: p.MaxRate}
}

func (s *swap) close() {
	if s == nil {
		return
	}
	if s.ln != nil {
		_ = s.ln.Close()
	}
	s.told.close()
}

// openSwap listens for the other end, at the address that it sees of this one and at no other.
// What connects waits until the server is there.
func (r *clientRun) openSwap(ctx context.Context) error {
	if r.swap == nil {
		return nil
	}
	local, err := netip.ParseAddrPort(r.conn.Net().LocalAddr().String())
	if err != nil {
		return fmt.Errorf("iperf3: this end's address: %w", err)
	}
	at := netip.AddrPortFrom(local.Addr().Unmap(), uint16(r.p.Swap.Port))
	ln, err := osnet.Listen(ctx, "tcp", at, osnet.Options{Family: r.p.Family, BindDev: r.p.BindDev})
	if err != nil {
		return &result.Error{Code: "port", Number: codeStreamListen, Errno: errno(err), Text: fmt.Sprintf("a port for the other end cannot be opened: %v", err)}
	}
	r.swap.ln = ln
	bound, err := netip.ParseAddrPort(ln.Addr().String())
	if err != nil {
		return fmt.Errorf("iperf3: the port for the other end: %w", err)
	}
	r.swap.port = int(bound.Port())
	return nil
}

// swapServer serves the one test. It lets in nobody but the other end, and nothing beyond what it
// was asked for.
func (r *clientRun) swapServer() *Server {
	p := &r.p
	peer := r.addr.Addr().Unmap().WithZone("")
	pol := plan.Serve{
		OneOff: true, Allow: []netip.Prefix{netip.PrefixFrom(peer, peer.BitLen())},
		MaxStreams: p.Streams, MaxDuration: p.Omit + p.Duration + time.Second, // fractions cross the wire as floats
		Interval: p.Interval, OneRow: p.OneRow, ReceiveTimeout: p.ReceiveTimeout, SendTimeout: p.SendTimeout, Keepalive: p.Keepalive,
		Affinity: p.Affinity, Send: p.Send, Receive: p.Receive,
		FullFacts: true, NoSwap: true, // a server learns the facts of its clients, too
	}
	if p.Bitrate == 0 {
		pol.MaxRate = p.MaxRate // where the streams have rates of their own, a lower limit would refuse them
	}
	return &Server{
		Policy: pol, Tool: r.c.Tool, Version: r.c.Version, SocketBase: r.c.SocketBase, Host: r.c.Host, Facts: r.c.Facts, Now: r.c.Now,
		NewTest: r.swap.test, Timeouts: r.c.Timeouts, token: &r.swap.token, swapOf: r.hello.Test,
	}
}

// swapTest lets the other end play the test, against a server that lives for it.
func (r *clientRun) swapTest(ctx context.Context) error {
	if !r.hello.Has(ext.FeatureSwap) {
		text := "the other end plays no client's test: it is an older fullbore, or was told not to (serve --no-swap)"
		if r.hello == nil {
			text = "the other end is no fullbore: it cannot play the client"
		}
		return &result.Error{Code: "swap-unavailable", Number: codeMessage, Text: text}
	}
	sctx, stop := context.WithCancelCause(ctx)
	served := make(chan struct{})
	srv, ln := r.swapServer(), r.swap.ln
	r.swap.ln = nil // the server closes it
	go func() {     // ends with sctx at the latest
		defer close(served)
		_ = srv.Serve(sctx, []net.Listener{ln}) // what happens to its test is told by that
	}()
	err := r.swapTalk(ctx)
	if err == nil { // the other end has its last word there
		err = r.swapOutcome()
		t := time.NewTimer(r.to.Answer)
		defer t.Stop()
		select {
		case <-served:
		case <-t.C:
		}
	}
	stop(err)
	<-served
	return err
}

// swapTalk is the rest of the conversation: the server says when it is done.
func (r *clientRun) swapTalk(ctx context.Context) error {
	if err := r.awaitRunning(ctx); err != nil {
		return err
	}
	r.totals, r.flowed = &traffic.Totals{}, true
	over := time.NewTimer(r.p.Omit + r.p.Duration + swapDial + r.to.Grace)
	defer over.Stop()
	for {
		select {
		case in, ok := <-r.ctl.in:
			end, err, done := r.word(in, ok)
			if !done {
				continue
			}
			if err == nil {
				err = r.exchange(ctx, end)
			}
			if err != nil {
				return err
			}
			r.said = true
			r.done = r.ctl.sendState(r.to.Answer, StateDone) == nil // both ends have all results: a lost goodbye changes nothing
			return nil
		case <-over.C:
			return &result.Error{
				Code: "no-answer", Number: codeRecvMessage, Errno: linuxETIMEDOUT,
				Text: "the server did not say how the test went that it was to play as the client: it is frozen, or the path is cut",
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// swapWords say why the other end did not get through to this one's port.
var swapWords = map[string]string{
	ext.SwapRefused:  "the connection was refused: a packet filter here or on the way turns it away",
	ext.SwapNoAnswer: "nothing answered: a firewall or an address translator on the way drops it",
	ext.SwapNoRoute:  "it has no way back, or a firewall says so",
	ext.SwapStranger: "something else answers there: an address translator leads it to another host",
}

// swapOutcome is how it went, by what both ends say.
func (r *clientRun) swapOutcome() error {
	x := r.other.Ext
	if x == nil || x.Swap == nil {
		return &result.Error{Code: "protocol", Remote: true, Number: codeRecvResults, Text: "the server does not say how the test went that it was to play as the client"}
	}
	r.swap.mu.Lock()
	finished, broke := r.swap.finished, r.swap.broke
	r.swap.mu.Unlock()
	words, known := swapWords[x.Swap.Why]
	switch {
	case broke != nil:
		return broke
	case finished && x.Swap.Why == "":
		return nil
	case known && !finished:
		return &result.Error{
			Code: "swap-unreached", Remote: true, Number: codeStreamConnect,
			Text: fmt.Sprintf("the other end cannot reach port %d of this one (%s)", r.swap.port, words),
		}
	}
	return &result.Error{Code: "swap-broke", Remote: true, Number: codeStreamClose, Text: "the test broke off that the other end played as the client"}
}
