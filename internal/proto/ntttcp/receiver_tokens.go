package ntttcp

import (
	"context"
	"net"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// tokenConn is the token connection of one thread of a Windows sender.
type tokenConn struct {
	nc   net.Conn
	port int
}

// handleToken takes a token connection. It comes when all data connections of its sender are
// up; over UDP it is the first that is heard of a sender.
func (r *Receiver) handleToken(ctx context.Context, nc net.Conn, port int) {
	if port < len(r.lns.Data) { // its data connection is up, but may still wait to be accepted
		r.barrier.pass(ctx, r.lns.Data[port:port+1])
	}
	peer := peerOf(nc)
	r.mu.Lock()
	t := r.setups[peer]
	fresh := t == nil
	if fresh {
		if r.full() || r.c.Multi || len(r.lns.Packets) == 0 {
			r.mu.Unlock()
			r.note(peer, "token connection without data connections")
			_ = nc.Close()
			return
		}
		t = r.newTest(peer)
		t.kind = kindWindows
		r.setups[peer] = t
	}
	ok := t.offerToken(&tokenConn{nc, port})
	r.mu.Unlock()
	if !ok {
		_ = nc.Close()
		return
	}
	if fresh {
		r.wg.Go(func() { t.runTokens(ctx) })
	}
}

// offerToken takes a token connection; false = none is wanted: the test began, or is a Linux
// sender's.
func (t *test) offerToken(k *tokenConn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kind == kindLinux || t.started || t.closed {
		return false
	}
	t.kind = kindWindows
	t.tokens = append(t.tokens, k)
	t.lastCame = time.Now()
	t.poke()
	return true
}

// runTokens exchanges tokens with a Windows sender, one per data connection, and runs the test
// (windows §3.2). The stream count is that of the data connections present at the first token;
// over UDP tokens are counted by their coming to an end.
func (t *test) runTokens(ctx context.Context) {
	t.r.barrier.pass(ctx, t.r.lns.Data)
	if !t.exchangeTokens(ctx) || !t.r.begin(t) {
		t.r.forget(t)
		t.abandon()
		if ctx.Err() == nil {
			t.r.note(t.peers[0], "left while tokens were exchanged, or busy")
		}
		return
	}
	t.mu.Lock()
	t.started = true
	switch {
	case len(t.conns) > 0:
		t.first = addrOf(t.conns[0].nc.RemoteAddr())
	case len(t.tokens) > 0:
		t.first = addrOf(t.tokens[0].nc.RemoteAddr())
	}
	t.begun = time.Now()
	t.mu.Unlock()
	t.closeTokens()
	t.run(ctx, false)
}

// exchangeTokens answers each token connection in the order of its coming: its byte is read, ours
// sent. Senders write first. false = one ended without a byte, or did not come.
func (t *test) exchangeTokens(ctx context.Context) bool {
	served := 0
	for {
		t.mu.Lock()
		want, tokens := len(t.conns), t.tokens
		expect := t.r.c.Expect
		t.mu.Unlock()
		want = max(want, expect)
		for ; served < len(tokens) && (expect == 0 || t.dataCame(expect)); served++ {
			if !t.swap(tokens[served].nc) {
				return false
			}
		}
		if want > 0 && served >= want {
			return true
		}
		wait := t.r.to.Setup
		if want == 0 { // UDP
			wait = 5 * t.r.to.Settle
		}
		timer := time.NewTimer(wait)
		select {
		case <-t.came:
			timer.Stop()
		case <-timer.C:
			return want == 0
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

// dataCame reports that all data connections that this receiver waits for are there.
func (t *test) dataCame(n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.conns) >= n || t.r.c.Transport == plan.UDP
}

// swap reads the sender's token and sends ours. Its value is not checked by anybody.
func (t *test) swap(nc net.Conn) bool {
	_ = nc.SetDeadline(time.Now().Add(t.r.to.Answer))
	var b [1]byte
	if _, err := nc.Read(b[:]); err != nil {
		return false
	}
	_, err := nc.Write([]byte{Token})
	return err == nil
}

func (t *test) closeTokens() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.tokens {
		_ = k.nc.Close()
	}
	t.tokens = nil
}
