package ntttcp

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"
)

// tokenConn is the token connection of one thread of a Windows sender, whose token has come.
type tokenConn struct {
	nc   net.Conn
	port int
	said byte // the token
	at   time.Time
}

// maxTokens bounds what waits at a door; a Windows sender has less than 1000 threads.
const maxTokens = 1024

// handleToken takes a token connection: its byte is read at once, for senders write first. It
// comes when all data connections of its sender are up; over UDP it is the first that is heard of
// a sender.
func (r *Receiver) handleToken(ctx context.Context, nc net.Conn, port int) {
	if !r.arrived.add(nc) {
		_ = nc.Close()
		return
	}
	_ = nc.SetReadDeadline(time.Now().Add(r.to.Header))
	var b [1]byte
	_, err := nc.Read(b[:])
	r.arrived.remove(nc)
	peer := peerOf(nc)
	if port < len(r.lns.Data) { // its data connection is up, but may still wait to be accepted
		r.barrier.pass(ctx, r.lns.Data[port:port+1])
	}
	if err != nil {
		r.orphan(peer, port)
		r.note(peer, "token connection without a token", "err", err)
		_ = nc.Close()
		return
	}
	k := &tokenConn{nc: nc, port: port, said: b[0], at: time.Now()}
	r.mu.Lock()
	d := r.doorOf(peer)
	why, late := "", (*test)(nil)
	switch {
	case ctx.Err() != nil:
		why = "the receiver ends"
	case r.c.Multi || d.windows == nil && r.slots.Full():
		if late = d.lateToken(port); late == nil {
			why = "token connection without a test"
		}
	case len(d.tokens) >= maxTokens:
		why = "too many token connections"
	default:
		if late = d.lateToken(port); late == nil {
			d.tokens = append(d.tokens, k)
			r.attend(ctx, d)
		}
	}
	r.tidy(d)
	r.mu.Unlock()
	switch {
	case late != nil:
		late.answerToken(k)
	case why != "":
		r.note(peer, why)
		_ = nc.Close()
	}
}

// orphan closes the data connection whose token will not come.
func (r *Receiver) orphan(peer netip.Addr, port int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.doors[peer]
	if d == nil {
		return
	}
	for _, a := range d.pool {
		if a.port == port && !a.data && !d.own(a) {
			d.drop(a)
			_ = a.nc.Close()
			d.tell()
			return
		}
	}
	if t := d.windows; t != nil {
		t.lose(port)
	}
}

// lateToken is the running test over UDP at d that a token belongs to: none of its sender's
// threads has begun, for that one waits for its token. r.mu is held.
func (d *door) lateToken(port int) *test {
	for _, t := range d.datagrams {
		if t.kind == kindWindows && !slices.Contains(t.tokened, port) && (t.tally == nil || len(t.tally.senders()) == 0) {
			t.tokened = append(t.tokened, port)
			return t
		}
	}
	return nil
}

// beginTokens has the Windows sender at d set up a test: on its own, or with others.
func (r *Receiver) beginTokens(ctx context.Context, d *door) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.joint
	if t != nil && t.kind == kindWindows {
		d.windows = t
		t.joinDoor(d)
		t.poke()
		return
	}
	if t != nil { // one without synchronisation begins
		return
	}
	t = r.newTest(d)
	t.kind = kindWindows
	d.windows, d.refused = t, 0
	if r.c.Expect > 0 {
		r.joint = t
	}
	r.wg.Go(func() { t.setUpTokens(ctx) })
}

// setUpTokens gathers the connections and tokens of a Windows sender, answers each token, by
// which the sender begins, and runs the test (windows §3.2).
func (t *test) setUpTokens(ctx context.Context) {
	r := t.r
	r.barrier.pass(ctx, r.data)
	switch why := t.gather(ctx); {
	case why == "" && r.begin(t):
	case ctx.Err() == nil && why == "":
		why = "busy"
		fallthrough
	default:
		r.forget(t)
		t.abandon()
		if ctx.Err() == nil {
			r.note(t.peer, why)
		}
		return
	}
	t.start(time.Now())
	k := t.takeGreeting()
	t.answerTokens()
	if k != nil {
		t.meet(ctx, k)
	}
	if t.doubtful && len(t.conns) > 0 {
		t.sortOut(ctx)
	}
	r.forget(t)
	t.run(ctx, false)
}

// gather returns when all tokens of t's sender have come, "", or why they will not.
func (t *test) gather(ctx context.Context) (why string) {
	r := t.r
	present := time.Now() // its connections came before
	asked := present
	for {
		r.mu.Lock()
		t.claim(present)
		done, left, failed := t.gathered(time.Now())
		conns := slices.Clone(t.conns)
		r.mu.Unlock()
		if done || failed != "" {
			return failed
		}
		ends := time.Since(asked) >= lookEvery
		if ends {
			asked = time.Now()
		}
		if why := t.check(look(conns, ends)); why != "" {
			return why
		}
		timer := time.NewTimer(max(time.Millisecond, min(left, lookEvery)))
		select {
		case <-t.came:
			timer.Stop()
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return "the receiver ends"
		}
	}
}

// claim takes what is t's from its doors: of each port the first token, and the connection that it
// is for: one that is not older than the sender. Several of one port are of several senders. r.mu
// is held.
func (t *test) claim(present time.Time) {
	for _, d := range t.doors {
		for _, k := range slices.Clone(d.tokens) {
			if !slices.Contains(t.tokened, k.port) {
				t.tokened = append(t.tokened, k.port)
				t.tokens = append(t.tokens, k)
				d.tokens = slices.DeleteFunc(d.tokens, func(x *tokenConn) bool { return x == k })
				t.lastCame = k.at
			}
		}
		t.doubtful = t.doubtful || len(d.tokens) > 0
		for _, stale := range []bool{false, true} {
			for _, a := range slices.Clone(d.pool) {
				mine := !a.data && !d.own(a) && a.port < len(t.r.lns.Data) && (present.Sub(a.at) > t.r.to.Stale) == stale
				switch {
				case !mine:
				case t.connected(a.port):
					t.doubtful = t.doubtful || !stale
				case t.r.c.Expect > 0 || a.at.Sub(present) <= t.r.to.Settle || slices.Contains(t.tokened, a.port):
					if stale && !slices.Contains(t.tokened, a.port) {
						continue // left by one that hangs
					}
					d.drop(a)
					t.conns = append(t.conns, a)
				}
			}
		}
	}
}

// connected reports that t has a connection of that port.
func (t *test) connected(port int) bool {
	return slices.ContainsFunc(t.conns, func(a *arrival) bool { return a.port == port })
}

// gathered reports that t is complete, how long it may still wait without looking again, and why
// it will never be. r.mu is held.
func (t *test) gathered(now time.Time) (done bool, left time.Duration, why string) {
	r := t.r
	last := t.lastCame
	for _, d := range t.doors {
		if d.last.After(last) {
			last = d.last
		}
	}
	limit := r.to.Setup
	if r.c.Expect > 0 { // other senders may come much later
		if limit = max(limit, r.c.WaitTimeout); r.c.WaitTimeout == 0 {
			limit = time.Duration(1<<63 - 1)
		}
	}
	left = limit - now.Sub(last)
	if left <= 0 {
		return false, 0, "no token for its data connections"
	}
	for _, d := range t.doors {
		for _, a := range d.pool {
			if a.data && !d.own(a) && r.c.Expect == 0 { // who sends unasked is to be out of the way
				return false, pollData, ""
			}
		}
	}
	tokens, conns := len(t.tokens), len(t.conns)
	if conns == 0 || r.c.Transport == "udp" && r.c.Expect > 0 { // over UDP, where nothing says how many there are
		if len(r.lns.Packets) == 0 {
			return false, 0, "token connections without data connections"
		}
		if n := r.c.Expect; n > 0 {
			return tokens >= n, left, ""
		}
		quiet := 5*r.to.Settle - now.Sub(last)
		return quiet <= 0, quiet, ""
	}
	missing := slices.DeleteFunc(slices.Clone(t.conns), func(a *arrival) bool { return slices.Contains(t.tokened, a.port) })
	if n := r.c.Expect; n > 0 {
		return len(missing) == 0 && conns >= n, left, ""
	}
	if len(missing) == 0 { // but who connected may not be seen yet
		quiet := r.to.Settle - now.Sub(last)
		if t.doubtful {
			quiet = doubt*r.to.Settle - now.Sub(last)
		}
		return quiet <= 0, quiet, ""
	}
	patience := r.to.Turn - now.Sub(last)
	if patience <= 0 && tokens > 0 { // those without are of somebody else
		for _, a := range missing {
			t.conns = slices.DeleteFunc(t.conns, func(x *arrival) bool { return x == a })
			_ = a.nc.Close()
		}
		return len(t.conns) > 0, time.Millisecond, ""
	}
	return false, min(left, max(patience, time.Millisecond)), ""
}

// doubt is how many Settles without anything new show that no connection is of a sender that does
// not synchronise: its data would have come.
const doubt = 25

// check gives back what shows to be of a sender that does not synchronise, and ends the set-up
// of one whose connection has ended.
func (t *test) check(s seen) (why string) {
	r := t.r
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range s.data {
		a.data = true
		t.giveBack(a)
	}
	for _, a := range s.ended {
		t.lose(a.port)
	}
	if t.lost && r.c.Expect == 0 {
		return "left while tokens were exchanged"
	}
	return ""
}

// giveBack puts a connection that sends unasked back to its door; one that is not t's stays where it
// is. r.mu is held.
func (t *test) giveBack(a *arrival) {
	i := slices.Index(t.conns, a)
	if i < 0 {
		return
	}
	t.conns = slices.Delete(t.conns, i, i+1)
	t.lastCame = time.Now()
	d := t.r.doorOf(peerOf(a.nc))
	d.pool = append(d.pool, a)
	d.tell()
}

// lose drops the connection and the token of one thread, which has ended. r.mu is held.
func (t *test) lose(port int) {
	t.lost = true
	t.tokened = slices.DeleteFunc(t.tokened, func(p int) bool { return p == port })
	t.conns = slices.DeleteFunc(t.conns, func(a *arrival) bool {
		if a.port == port {
			_ = a.nc.Close()
		}
		return a.port == port
	})
	t.tokens = slices.DeleteFunc(t.tokens, func(k *tokenConn) bool {
		if k.port == port {
			_ = k.nc.Close()
		}
		return k.port == port
	})
	t.poke()
}

// answerTokens sends our tokens, all at once: the sender begins with the last.
func (t *test) answerTokens() {
	t.r.mu.Lock()
	t.answered, t.tokens = t.tokens, nil
	for _, d := range t.doors {
		d.sorting = t.doubtful
	}
	t.r.mu.Unlock()
	for _, k := range t.answered {
		t.answerToken(k)
	}
}

// answerToken sends our token, whose value nobody checks, and ends its connection.
func (t *test) answerToken(k *tokenConn) {
	defer k.nc.Close()
	_ = k.nc.SetWriteDeadline(time.Now().Add(t.r.to.Answer))
	_, _ = k.nc.Write([]byte{Token}) // one that is gone has its data connection gone, too
}

// sortOut waits until the data of t's sender shows which of several connections of one port are
// its own. Where none comes, tokens of several senders were mixed up and none of them could begin:
// then they all do, as one test.
func (t *test) sortOut(ctx context.Context) {
	r := t.r
	deadline := time.Now().Add(sortOutFor)
	for {
		r.mu.Lock()
		var all []*arrival
		for _, d := range t.doors {
			for _, a := range d.pool {
				if !d.own(a) && t.connected(a.port) {
					all = append(all, a)
				}
			}
		}
		own := slices.Clone(t.conns)
		r.mu.Unlock()
		all = append(own, all...)
		s := look(all, false)
		ports := map[int]*arrival{}
		for _, a := range s.data {
			ports[a.port] = a
		}
		switch {
		case len(ports) == len(own):
			t.settleOn(ports, own)
			return
		case ctx.Err() != nil:
			return
		case time.Now().After(deadline):
			if len(ports) == 0 {
				t.mergeAll()
			}
			return
		}
		timer := time.NewTimer(pollData)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// sortOutFor bounds sortOut: a sender sends when its last token is answered.
const sortOutFor = time.Second

// settleOn makes those of ports t's connections; the others go back.
func (t *test) settleOn(ports map[int]*arrival, own []*arrival) {
	r := t.r
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, a := range own {
		b := ports[a.port]
		if a == b {
			continue
		}
		d := r.doorOf(peerOf(a.nc))
		if d.drop(b) {
			t.conns[i] = b
			d.pool = append(d.pool, a)
			d.tell()
		}
	}
}

// mergeAll makes one test of all senders at t's doors.
func (t *test) mergeAll() {
	r := t.r
	r.mu.Lock()
	var tokens []*tokenConn
	for _, d := range t.doors {
		for _, k := range d.tokens {
			for _, a := range d.silent() {
				if a.port == k.port && !d.own(a) {
					d.drop(a)
					t.conns = append(t.conns, a)
					tokens = append(tokens, k)
					break
				}
			}
		}
		d.tokens = slices.DeleteFunc(d.tokens, func(k *tokenConn) bool { return slices.Contains(tokens, k) })
	}
	t.merged = len(tokens) > 0
	r.mu.Unlock()
	for _, k := range tokens {
		t.answerToken(k)
	}
}
