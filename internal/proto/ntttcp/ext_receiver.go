package ntttcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// offers reports that m may hear that this is a fullbore. Of several senders in one test (-M)
// there would be no end of ends, and words must be tellable from frames.
func (m *member) offers() bool {
	c := m.r.c
	return c.Extension != "off" && !c.Multi && !m.asked && m.t.own() < maxExtWord
}

// frame takes a frame; false = the connection ends: what says hello is a fullbore, or nonsense.
func (m *member) frame(it item) bool {
	if m.link == nil {
		return it.frame == ext.FrameHello && m.greet(it.doc)
	}
	m.link.frame(it.frame, it.doc)
	return true
}

// mostTime is what a hello may say: longer cycles are agreed on without the extension.
const mostTime = time.Duration(maxExtWord) * time.Second

// greet answers a sender's hello.
func (m *member) greet(doc []byte) bool {
	h := ext.DecodeClientHello(doc, mostTime, mostTime)
	if h == nil {
		return false
	}
	r := m.r
	l := newLink(result.Server, r.to.Answer, m.write)
	l.streams = min(max(h.Streams, 1), maxListed)
	l.cut = func() { _ = m.nc.Close() }
	l.ended = m.t.senderEnded
	m.msgs.set(framed)
	m.link, m.peer = l, h
	return l.say(ext.FrameHello, r.hello(m.t, m.nc.RemoteAddr())) == nil
}

// machine is what the sender at an address may know of this machine.
func (r *Receiver) machine(sender net.Addr) *result.Host {
	if r.FactsTo != nil && r.c.FullFacts {
		if at, err := netip.ParseAddrPort(sender.String()); err == nil {
			return r.FactsTo(at.Addr().Unmap())
		}
	}
	return ext.Facts(r.Facts, r.c.FullFacts)
}

// hello is this end's to the sender of t, which may have begun: a token's sender says hello then.
func (r *Receiver) hello(t *test, sender net.Addr) ext.ServerHello {
	c := r.c
	host := r.machine(sender) // before the clock is read
	r.mu.Lock()
	begun, others := t.number > 0, t.others
	r.mu.Unlock()
	if !begun {
		others = r.slots.Taken()
	}
	h := ext.ServerHello{
		V: ext.Version, Version: r.Tool.Version, Features: c.features(),
		Test: random(), Nonce: random(), Clock: ext.ReadClock(r.now()), Host: host, Overlap: others,
		Limits: ext.Limits{MaxRate: c.MaxRate, MaxDuration: c.MaxDuration.Seconds(), MaxStreams: c.MaxStreams}.OrNil(),
		Times:  &ext.Times{Omit: c.Warmup.Seconds(), Cooldown: c.Cooldown.Seconds(), Follow: c.Follow},
	}
	if !c.Endless {
		h.Times.Duration = c.Duration.Seconds()
	}
	return h
}

// random is 8 random bytes in hexadecimal.
func random() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails (Go 1.24)
	return hex.EncodeToString(b[:])
}

// write writes frames, and ends a connection on which half of one may be under way.
func (m *member) write(b []byte, within time.Duration) error {
	err := writeTo(m.nc, &m.wmu, b, within)
	if err != nil {
		_ = m.nc.Close()
	}
	return err
}

// carry makes m's link the test's: from its start on the test's end is the connection's.
func (t *test) carry(m *member) {
	if m.link == nil {
		return
	}
	t.mu.Lock()
	t.link, t.hello = m.link, m.peer
	t.mu.Unlock()
	t.r.arrived.remove(m.nc) // so that the results of a receiver that is stopped get through
}

// senderEnded takes note that the sender's results came. In the Linux dialect both ends have the
// same cycle, and this end's runs out by itself.
func (t *test) senderEnded(o *ext.Results) {
	switch {
	case o.Err != nil:
		t.stopBySender()
	case t.kind == kindWindows && !o.Whole:
		t.stopOnce.Do(func() { close(t.stop) })
	}
}

// senderParted reports that the sender ended before its time.
func (t *test) senderParted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.parted
}

// senderSays is why it did; otherwise what stands for a sender that does not tell.
func (t *test) senderSays(otherwise string) string {
	if t.link == nil {
		return otherwise
	}
	o, _ := t.link.await(context.Background(), 0)
	if o == nil || o.Err == nil || o.Err.Interrupted || o.Err.Text == "" {
		return otherwise
	}
	return o.Err.Text
}

// linked begins the live part of the extension.
func (t *test) linked(s schedule) {
	if t.link == nil {
		return
	}
	t.link.begin(t.out, t.hello.Has(ext.FeatureEvents))
	if n := ext.VersionNotice(ext.Printable(t.hello.Version), t.r.Tool); n != nil {
		t.out.notice(*n)
	}
	if t.r.c.Follow || t.kind == kindWindows && t.hello.Duration == 0 { // it has none, or counts calls
		return
	}
	t.mu.Lock()
	agreed := t.agreed
	t.mu.Unlock()
	if n := compareTimes(s, t.theirSchedule(t.hello, agreed), "this end", "the sender", t.r.second); n != nil {
		t.out.notice(*n)
	}
}

// theirSchedule is what the sender does in this test by its hello.
func (t *test) theirSchedule(h *ext.ClientHello, agreed Word) schedule {
	scale := scaled(t.r.second)
	if t.kind == kindLinux {
		return scheduleOf(time.Duration(agreed)*t.r.second, scale(h.Omit), scale(h.Duration))
	}
	s := schedule{warmup: scale(h.Omit), measured: scale(h.Duration), cooldown: scale(h.Cooldown)}
	if most := stretched(t.r.c.MaxDuration, t.r.second); most > 0 && (s.endless() || s.cycle() > most) {
		s = scheduleOf(most, s.warmup, s.measured)
	}
	return s
}

// takeListed takes the connections of a sender that told which they are, whatever else waits at its
// door; false = it did not tell, or a box on the way has changed its ports. Receiver.mu is held.
func (t *test) takeListed() bool {
	if t.link == nil {
		return false
	}
	missing := map[[2]int]bool{}
	for _, p := range t.link.listed() {
		missing[p] = true
	}
	type found struct {
		d *door
		a *arrival
	}
	var all []found
	for _, d := range t.doors {
		for _, a := range d.pool {
			if p := [2]int{a.c.Remote().Port, a.c.Local().Port}; d.linux == t && missing[p] {
				delete(missing, p)
				all = append(all, found{d, a})
			}
		}
	}
	if len(missing) > 0 || len(all) == 0 {
		return false
	}
	for _, f := range all {
		f.d.drop(f.a)
		t.conns = append(t.conns, f.a)
	}
	return true
}

// pair puts the connections into the sender's order and returns the streams' numbers there; nil =
// it is not known.
func (t *test) pair(arrived []*arrival) ([]*arrival, []int) {
	if t.link == nil {
		return arrived, nil
	}
	list := t.link.listed()
	if len(list) == 0 {
		return arrived, nil
	}
	ports := make([][2]int, len(arrived))
	for i, a := range arrived {
		ports[i] = [2]int{a.c.Remote().Port, a.c.Local().Port}
	}
	places, guessed := pairUp(list, ports)
	if guessed > 1 {
		t.out.notice(streamsUnpaired(guessed))
	}
	order := make([]int, len(arrived))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(places[a], places[b]) })
	out, ids := make([]*arrival, len(order)), make([]int, len(order))
	for i, o := range order {
		out[i], ids[i] = arrived[o], places[o]+1
	}
	return out, ids
}

// streamsUnpaired says that n streams were matched by their order.
func streamsUnpaired(n int) result.Notice {
	return result.Notice{
		Code: "streams-unpaired", Level: result.Info,
		Text: fmt.Sprintf("ports were changed on the way (address translation): which of %d connections is which at the other end is a guess by their order; sums are right", n),
	}
}

// number gives flows the sender's numbers.
func number(flows []traffic.Flow, views []result.Stream, ids []int) {
	for i, id := range ids {
		flows[i].ID, flows[i].Socket = id, id
		views[i].ID, views[i].Socket = id, id
	}
}

// pairUp finds the place of each connection in the sender's list by its two ports. What does not
// match, because a box on the way changed it, takes the free places in order: guessed is how many.
// More than there are free come after the list.
func pairUp(list, ports [][2]int) (places []int, guessed int) {
	where := map[[2]int][]int{}
	for i, p := range list {
		where[p] = append(where[p], i)
	}
	taken := make([]bool, len(list))
	places = make([]int, len(ports))
	for i, p := range ports {
		places[i] = -1
		if w := where[p]; len(w) > 0 {
			places[i], where[p] = w[0], w[1:]
			taken[w[0]] = true
		}
	}
	next := 0
	for i := range places {
		if places[i] >= 0 {
			continue
		}
		for next < len(list) && taken[next] {
			next++
		}
		if next < len(list) {
			guessed++
		}
		places[i] = next
		next++
	}
	return places, guessed
}

// swapResults waits for the sender's results and for the last of its datagrams. Where this end
// ended early the sender must hear of it first. nil = a plain sender, or they did not come, which
// is told. In the end the sender gets this end's: see sayResults. silent: nothing has come for long,
// so that its results are not worth a long wait.
func (t *test) swapResults(ctx context.Context, why stop, cause error, complete, silent bool, x outcome) *ext.Results {
	l := t.link
	if l == nil {
		return nil
	}
	l.stop(why == stopSilent)
	own := resultsOf(x.counts, nil, x.machine, nil)
	within := t.r.to.Answer
	switch {
	case why == stopRequest:
		own.Err = asError(ctx, cause)
		within = t.r.to.Stopping
	case why == stopSilent:
		own.Err = &result.Error{Code: "peer-vanished", Text: "nothing came any more"}
		within = 0
	case why == stopDone && !complete:
		own.Err = &result.Error{Code: "limit", Text: "its limit for one test was reached"}
	case silent:
		within = t.r.to.Stopping
	}
	t.figures = &own
	if own.Err != nil {
		t.tellResults() // where datagrams are counted they are not needed any more
	}
	o, lost := l.await(context.WithoutCancel(ctx), within)
	if t.tally != nil {
		var sent []int64
		if o != nil {
			for _, s := range o.Streams {
				if s.Datagrams != nil {
					sent = append(sent, *s.Datagrams)
				}
			}
		}
		t.tally.awaitTail(sent, t.drain())
		if n := t.tally.guessed(); n > 1 {
			t.out.notice(streamsUnpaired(n))
		}
	}
	if o == nil {
		t.out.notice(resultsMissing(l, lost))
		return nil
	}
	if n := ext.DroppedNotice(result.Client, "the sender's", l.missed()); n != nil {
		t.out.notice(*n)
	}
	return o
}

// drain is how much silence ends the count of what was under way: four round trips, at least 200 ms
// (design §5 "The end").
func (t *test) drain() time.Duration {
	quiet := 200 * time.Millisecond
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.members {
		quiet = max(quiet, 4*m.rtt())
	}
	return quiet
}

// mergeResults puts the sender's results into f.
func (t *test) mergeResults(f *result.Finish, o *ext.Results) {
	var all []int64
	if t.tally != nil {
		all = t.tally.arrived()
		var lost []int64
		if o != nil {
			lost = lostOf(all, o)
		}
		for i, r := range t.tally.account(lost, !t.shares()) {
			if t.r.c.Message == traffic.RoundTrip { // its counts are of both ways
				r = &result.UDPReceived{SocketDrops: r.SocketDrops, Coalesced: r.Coalesced}
			}
			if i < len(f.Streams) {
				f.Streams[i].UDP = &result.UDPStream{Received: r}
			}
			if t.figures != nil && i < len(t.figures.Streams) {
				t.figures.Streams[i].Datagrams = &all[i]
				t.figures.Streams[i].UDP = &result.UDPStream{Received: r}
			}
		}
	}
	if o != nil {
		merge(result.Server, f, all, o)
	}
}

// shares reports that other tests ran beside this one, whose datagrams the same sockets may have
// dropped.
func (t *test) shares() bool { return t.others > 0 || t.r.slots.Begun() > t.begunAs }

// lostOf is what each stream lost by both ends' counts; nil = the sender's are not all there.
func lostOf(arrived []int64, o *ext.Results) []int64 {
	sent := make(map[int]*int64, len(o.Streams))
	for i := range o.Streams {
		sent[o.Streams[i].ID] = o.Streams[i].Datagrams
	}
	out := make([]int64, len(arrived))
	for i, n := range arrived {
		s := sent[i+1]
		if s == nil {
			return nil
		}
		out[i] = *s - n
	}
	return out
}

// sayResults sends this end's results, once: when the test is over here, so that whoever has them
// finds the receiver ready for the next. fault is why there are none.
func (t *test) sayResults() {
	if t.link == nil {
		return
	}
	t.link.stop(true)
	if t.figures == nil {
		t.figures = &ext.Results{Err: &result.Error{Code: "no-data", Text: "it counted nothing"}}
	}
	t.tellResults()
	close(t.told)
}

func (t *test) tellResults() {
	if !t.said {
		t.said = true
		_ = t.link.tell(*t.figures) // a sender that is gone needs none
	}
}

// takeGreeting takes the first token by which a fullbore showed, if there is one and this end
// speaks the extension: one sender, one link.
func (t *test) takeGreeting() *tokenConn {
	if t.r.c.Extension == "off" || t.merged || t.r.c.Expect > 0 && len(t.doors) > 1 {
		return nil
	}
	for i, k := range t.tokens {
		if k.said == TokenFullbore {
			t.tokens = append(t.tokens[:i:i], t.tokens[i+1:]...)
			return k
		}
	}
	return nil
}

// meet answers a fullbore's token and keeps its connection, for hellos, the sender's list and its
// R, which it waits for: then the test has a link. What only sent the same byte has sent nothing
// more in a while, and is served as a real sender.
func (t *test) meet(ctx context.Context, k *tokenConn) {
	r := t.r
	_ = k.nc.SetWriteDeadline(time.Now().Add(r.to.Answer))
	if _, err := k.nc.Write([]byte{TokenFullbore}); err != nil {
		_ = k.nc.Close()
		return
	}
	if tc, ok := k.nc.(interface{ SetNoDelay(bool) error }); ok {
		_ = tc.SetNoDelay(true)
	}
	m := &member{r: r, nc: k.nc, t: t, over: make(chan struct{}), msgs: &mixed{r: k.nc}, d: dialog{at: atStart}, begun: make(chan struct{})}
	m.msgs.set(framed)
	t.join(m)
	r.wg.Go(func() { // ends with the connection: at the end of the test, or below
		defer m.nc.Close()
		defer m.leave()
		m.serve(ctx)
	})
	timer := time.NewTimer(r.to.Header)
	defer timer.Stop()
	select {
	case <-m.begun:
		if m.link != nil {
			t.carry(m)
			t.mu.Lock()
			t.begun = time.Now()
			t.mu.Unlock()
			m.say(WordStart)
			return
		}
	case <-m.over:
	case <-timer.C:
	case <-ctx.Done():
	}
	_ = m.nc.Close()
	<-m.over
	t.part(m)
}

// part forgets a member that is none.
func (t *test) part(m *member) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, x := range t.members {
		if x == m {
			t.members = append(t.members[:i:i], t.members[i+1:]...)
			t.gone--
			return
		}
	}
}

// expect prepares the count of the datagrams of the sender's list. Receiver.mu is held.
func (t *test) expect() {
	if t.link == nil {
		return
	}
	ports := map[int]int{}
	for i, pc := range t.r.lns.packets() {
		ports[int(pc.LocalAddr().Port())] = i
	}
	t.tally.expect(t.link.listed(), ports, t.peer)
}

// listed are the sender's connections, as far as it has told.
func (l *link) listed() [][2]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list
}
