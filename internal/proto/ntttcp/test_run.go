package ntttcp

import (
	"context"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// schedule is what this end does with the agreed cycle, or its own without one.
func (t *test) schedule() schedule {
	c := t.r.c
	scale := func(d time.Duration) time.Duration { return stretched(d, t.r.second) }
	own := scale(c.Duration)
	if c.Endless || c.Follow {
		own = 0
	}
	t.mu.Lock()
	agreed, asked, k, hello := t.agreed, t.asked, t.kind, t.hello
	t.mu.Unlock()
	switch {
	case hello != nil && c.Follow:
		return t.theirSchedule(hello, agreed)
	case k == kindLinux && asked:
		return scheduleOf(time.Duration(agreed)*t.r.second, scale(c.Warmup), own)
	case c.Endless || c.Follow:
		s := schedule{warmup: scale(c.Warmup)}
		if most := scale(c.MaxDuration); most > 0 {
			s = scheduleOf(most, s.warmup, 0)
		}
		return s
	}
	s := schedule{warmup: scale(c.Warmup), measured: own, cooldown: scale(c.Cooldown)}
	if most := scale(c.MaxDuration); most > 0 && s.cycle() > most {
		s = scheduleOf(most, s.warmup, own)
	}
	return s
}

// run is the test from its start to its last event. A fault of this program ends that one test
// and no other.
func (t *test) run(ctx context.Context, alone bool) {
	t.open()
	defer t.r.parted(ctx, t)
	defer t.finished()
	defer t.sayResults() // whoever has them finds the slot free, too
	defer t.r.ended(t)   // before finished: whoever hears of the end finds the slot free
	defer t.abandon()
	defer t.r.forget(t)
	err := t.guarded(ctx, alone)
	if err != nil {
		e := asError(ctx, err)
		t.out.Event(result.Event{Kind: result.KindError, Err: e})
		t.r.log.Warn("test", "test", t.number, "from", t.first.Host, "error", e.Code, "why", e.Text)
	}
}

// open finds out who listens to the test's events.
func (t *test) open() {
	if t.r.NewTest != nil {
		t.hooks = t.r.NewTest(t.first)
	}
	t.out = &emitter{out: t.hooks.Sink, end: result.Server}
}

// finished says that no event follows.
func (t *test) finished() {
	t.out.close()
	if t.hooks.Done != nil {
		t.hooks.Done()
	}
}

// awaitParting waits until the senders have closed their sync connections, for they may still
// have an E to say; not for long.
func (t *test) awaitParting(ctx context.Context) {
	timer := time.NewTimer(t.r.to.Parting)
	defer timer.Stop()
	for {
		t.mu.Lock()
		left := len(t.members) - t.gone
		t.mu.Unlock()
		if left <= 0 {
			return
		}
		select {
		case <-t.came:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (t *test) guarded(ctx context.Context, alone bool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			t.r.log.Error("this program's fault, please report it", "test", t.number, "panic", p, "stack", string(debug.Stack()))
			err = &result.Error{Code: "internal", Text: fmt.Sprintf("a fault of this program ended the test: %v", p)}
		}
	}()
	return t.measure(ctx, alone)
}

// head describes the test.
func (t *test) head(s schedule) result.Run {
	c := t.r.c
	c.Host = ""
	var cycle *time.Duration
	t.mu.Lock()
	if t.kind == kindLinux && t.asked {
		d := time.Duration(t.agreed) * time.Second
		cycle = &d
	}
	facts := c.facts(false, cycle)
	facts.Ports, facts.BasePort = t.portsOf(t.linux)
	facts.NoSync = t.kind == kindUnsynced
	if t.kind == kindWindows {
		facts.Dialect = "windows"
	}
	t.mu.Unlock()
	h := result.Run{
		NTTTCP: facts,
		Schema: result.Schema, Tool: t.r.Tool, End: result.Server, Protocol: protocol, Started: result.Now(t.r.now()),
		Test: c.test(s, 0), Hosts: result.Hosts{Server: t.r.Facts},
		Wire: &result.Wire{AcceptedFrom: &result.Addr{Host: t.first.Host, Port: t.first.Port}, TestStarted: true, TestNumber: t.number},
	}
	if t.hello != nil {
		h.Wire.Extension, h.Wire.PeerVersion = true, ext.Printable(t.hello.Version)
	}
	return h
}

// portsOf is how many ports the set of ports has that the sender uses, and the first. t.mu is held.
func (t *test) portsOf(linux bool) (n, first int) {
	if linux {
		return max(len(t.r.lns.LinuxData), len(t.r.lns.LinuxPackets)), plan.NTTTCPPort
	}
	return t.r.c.Ports, t.r.c.basePort(false)
}

// thread is the number of the original's thread that would serve a port, an index in
// Listeners.data.
func (r *Receiver) thread(port int) int {
	if n := len(r.lns.Data); port >= n {
		return port - n
	}
	return port
}

// announce emits Connected and what is to be known before the data.
func (t *test) announce(head result.Run, s schedule, alone bool) {
	t.out.head(result.KindPrepared, head)
	t.out.head(result.KindConnected, head)
	c := t.r.c
	own := stretched(c.Duration, t.r.second)
	switch {
	case c.Follow || c.Endless || head.NTTTCP.Cycle == nil:
	case s.endless():
		t.out.told(result.MilestoneCycle)
	case s.cycle() > own:
		t.out.tell(result.Milestone{Code: result.MilestoneCycle, Count: int64(s.cycle() / t.r.second)})
	}
	t.tellSync()
	t.out.notices(t.r.clamped)
	if alone && !c.Multi {
		t.out.notice(result.Notice{
			Code: "last-client-alone", Level: result.Info,
			Text: "the sender is started as the last of several (-L), but this receiver does not wait for several (-M): the test runs with that one",
		})
	}
	if t.others > 0 {
		t.noteOverlap(fmt.Sprintf("runs %d other tests", t.others))
	}
	if t.link == nil {
		t.noteTimes(c.Warmup + c.Duration + c.Cooldown)
	}
	t.noteLimit(s)
	if t.merged {
		t.out.notice(result.Notice{
			Code: "senders-merged", Level: result.Warn,
			Text: "several senders at " + t.peer.String() + " began at the same moment and could not be told apart: this is the result of all of them together",
		})
	}
}

// tellSync tells how the senders synchronised: a sync connection each, or a token for each thread.
func (t *test) tellSync() {
	tell := func(nc net.Conn) {
		local, remote := addrOf(nc.LocalAddr()), addrOf(nc.RemoteAddr())
		t.out.tell(result.Milestone{Code: result.MilestoneSync, Local: &local, Remote: &remote})
	}
	t.mu.Lock()
	members := slices.Clone(t.members)
	t.mu.Unlock()
	for _, m := range members {
		tell(m.nc)
	}
	for _, k := range t.answered[:min(len(t.answered), maxConnectionsTold)] {
		tell(k.nc)
	}
}

func (t *test) noteOverlap(what string) {
	t.out.notice(result.Notice{Code: "overlap", Level: result.Warn, Text: "this receiver " + what + " at the same time: the rate is a share"})
}

// noteTimes tells where the ends were given different times, as far as that can be seen: a sender
// proposes its whole cycle. own is this end's.
func (t *test) noteTimes(own time.Duration) {
	c := t.r.c
	t.mu.Lock()
	asked, wanted := t.asked && t.kind == kindLinux, t.wanted
	t.mu.Unlock()
	if !asked || c.Follow || c.Endless && wanted == 0 || !c.Endless && (wanted == proposal(own) || c.Multi && wanted == t.own()) {
		return
	}
	text := func(w Word) string {
		if w <= 0 {
			return "no end"
		}
		return fmt.Sprintf("%d s", int32(w))
	}
	mine := Word(0)
	if !c.Endless {
		mine = proposal(own)
	}
	t.out.notice(timesDiffer(fmt.Sprintf("the sender was given %s (-W, -t and -C together), this end %s", text(wanted), text(mine))))
}

// noteLimit tells that this receiver's policy is what ends the test.
func (t *test) noteLimit(s schedule) {
	most := stretched(t.r.c.MaxDuration, t.r.second)
	t.mu.Lock()
	asked, wanted := t.asked && t.kind == kindLinux, t.wanted
	t.mu.Unlock()
	wants := ""
	switch {
	case most <= 0 || s.cycle() != most:
		return
	case asked && wanted > 0 && Word(t.r.c.MaxDuration/time.Second) >= wanted:
		return
	case asked && wanted > 0:
		wants = fmt.Sprintf("; the sender asked for %d s", int32(wanted))
	}
	t.out.notice(result.Notice{Code: "time-limited", Level: result.Warn, Text: fmt.Sprintf("tests here may take %v (--max-time)%s", t.r.c.MaxDuration, wants)})
}

// timesDiffer says that the ends' times are not the same.
func timesDiffer(how string) result.Notice {
	return result.Notice{Code: "times-differ", Level: result.Info, Text: how + ": give both ends the same times"}
}

// measure waits for the data, counts it and reports.
func (t *test) measure(ctx context.Context, alone bool) error {
	s := t.schedule()
	head := t.head(s)
	t.announce(head, s, alone)
	if s.measured < 0 {
		t.out.notice(tooShort(s))
	}
	t.linked(s)
	if t.late {
		t.showUp(ctx)
	}
	why, err := t.awaitData(ctx, s)
	if why != 0 || err != nil {
		t.abandonPool()
	}
	t.r.forget(t) // a sender's connections are complete; datagrams have none
	if why != 0 || err != nil {
		return t.nothing(ctx, why, err)
	}
	t.mu.Lock()
	tally := t.tally
	t.mu.Unlock()
	if tally != nil {
		return t.count(ctx, head, tally)
	}
	conns := t.takeConns()
	t.mu.Lock()
	head.NTTTCP.Ports, head.NTTTCP.BasePort = t.portsOf(conns[0].port >= len(t.r.lns.Data))
	t.mu.Unlock()
	return t.receive(ctx, s, head, conns)
}

// takeConns takes t's connections: from now on whoever uses them closes them.
func (t *test) takeConns() []*arrival {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	conns := t.conns
	t.conns = nil
	for _, d := range t.doors {
		d.datagramsEnd(t)
	}
	return conns
}

// nothing is a test in which no data came before it ended.
func (t *test) nothing(ctx context.Context, why stop, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	case why == stopPeer:
		return &result.Error{Code: "sender-interrupted", Remote: true, Reported: true, Text: "the sender ended the test before any data came"}
	}
	if why == stopGone {
		return &result.Error{Code: "peer-vanished", Remote: true, Text: "the sender disappeared before any data came"}
	}
	return &result.Error{
		Code: "no-data", Remote: true,
		Text: "the sender began the test, but no data came: do both ends use the same ports and the same transport (TCP or UDP)?",
	}
}

// lateConns is how many Settles without another connection complete those that come after the
// start.
const lateConns = 10

// awaitData waits for the first data connection or datagram of a test that has begun, and for
// the further connections of an old sender, which opens them after its start (linux §3.2).
func (t *test) awaitData(ctx context.Context, s schedule) (stop, error) {
	r, c := t.r, t.r.c
	if t.openTally(len(r.data) == 0 || c.Transport == plan.UDP && len(r.lns.Packets) > 0) {
		return 0, nil
	}
	limit := r.to.Silence
	if !s.endless() {
		limit = min(limit, s.cycle())
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	hold := time.NewTimer(r.to.Turn / 2) // then it is no longer its connections that come
	defer hold.Stop()
	var left <-chan time.Time // its senders have gone, and with them their data
	for {
		t.mu.Lock()
		counting := t.tally != nil
		if left == nil && len(t.members) > 0 && t.gone >= len(t.members) {
			left = time.After(r.to.Stale)
		}
		t.mu.Unlock()
		r.mu.Lock()
		n, waiting := len(t.conns), 0
		for _, d := range t.doors {
			if d.linux == t {
				waiting += len(d.pool)
			}
		}
		r.mu.Unlock()
		switch {
		case counting || n > 0:
			return 0, nil
		case waiting > 0:
			r.quiet(ctx, t, lateConns*r.to.Settle)
			r.mu.Lock()
			for _, d := range t.doors {
				if d.linux == t {
					t.conns = append(t.conns, d.takeShown(true)...)
				}
			}
			n = len(t.conns)
			r.mu.Unlock()
			if n > 0 {
				return 0, nil
			}
		}
		select {
		case <-t.came:
		case <-hold.C:
			r.forget(t)
		case <-left:
			return stopGone, nil
		case <-timer.C:
			return stopDone, nil
		case <-t.stop:
			return stopPeer, nil
		case <-ctx.Done():
			return stopRequest, context.Cause(ctx)
		}
	}
}

// receive runs the data phase over TCP.
func (t *test) receive(ctx context.Context, s schedule, head result.Run, arrived []*arrival) error {
	c := t.r.c
	arrived, ids := t.pair(arrived)
	conns := make([]*osnet.Conn, len(arrived))
	var notices []result.Notice
	for i, a := range arrived {
		conns[i] = a.c
		ns, err := osnet.Apply(conns[i], osnet.Options{NoDelay: c.NoDelay, Window: c.Window})
		if err != nil {
			ns = append(ns, result.Notice{Code: "option-refused", Level: result.Info, Text: "a connection goes without an option that was asked for: " + err.Error()})
		}
		notices = append(notices, ns...)
	}
	t.out.notices(notices)
	// What came since the cycle began waits in the sockets, and will be counted: so that time counts.
	began := t.begun
	if rest := s.late(time.Since(began)); rest.measured < 0 { // nothing is left to measure
		s, began = rest, time.Time{}
	}
	p := newPhase(s, t.r.to.Silence, t.out)
	p.began = began
	flows, views := flowsOf(result.Server, c.Window, conns, func(i int) int { return t.r.thread(arrived[i].port) })
	number(flows, views, ids)
	if c.EStats {
		p.stats = newEStats(flows, t.out)
	}
	head.Streams, head.Test.Streams = views, len(views)
	if b := views[0].Buffers; b != nil {
		head.Wire.SndbufActual, head.Wire.RcvbufActual = int(b.SndGranted), int(b.RcvGranted)
	}
	cfg := traffic.Config{
		End: result.Server, Transport: plan.TCP, BlockSize: c.BlockSize, Interval: c.Interval, Receive: c.Receive,
		Affinity: c.Affinity, MaxRate: c.MaxRate, MaxBytes: c.MaxBytes, Host: t.hooks.Host, Began: began,
	}
	// A sender that nobody agreed with ends by closing, some time after its last byte.
	cfg.Limited = s.endless() && t.kind != kindLinux
	p.apply(&cfg)
	c.calls(&cfg)
	if hand := t.hooks.OnMessage; hand != nil {
		cfg.OnMessage = func(_ int, m traffic.Message) { hand(m) }
	}
	eng, err := traffic.New(cfg, flows)
	if err != nil {
		return &result.Error{Code: "plan", Text: err.Error()}
	}
	defer eng.Close()
	p.m, p.machine = eng, t.hooks.Machine
	t.out.connections(result.MilestoneConnection, views)
	t.begins()
	t.out.head(result.KindStart, head)
	why, err := p.run(ctx, t.stop)
	end := time.Now()
	fault := t.report(ctx, p, why, err, func() []result.Stream { return views })
	if why == stopDone && !p.budget && !s.endless() && t.kind != kindLinux && t.link == nil {
		t.overrun(ctx, conns, end, s.margin())
	}
	return fault
}

// overrun tells when a sender that agreed to no time sends on after this end's: it is given as long
// as two clocks may be apart to end by itself.
func (t *test) overrun(ctx context.Context, conns []*osnet.Conn, end time.Time, margin time.Duration) {
	buf := make([]byte, 256<<10)
	left := slices.Clone(conns)
	var last time.Time // when something still came
	for deadline := end.Add(margin); len(left) > 0; {
		left = slices.DeleteFunc(left, func(c *osnet.Conn) bool {
			n, over := swallow(c, buf)
			if n > 0 && !over {
				last = time.Now()
			}
			return over
		})
		if !time.Now().Before(deadline) {
			break
		}
		timer := time.NewTimer(pollData)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
	if len(left) > 0 && last.Sub(end) > margin/2 {
		t.out.notice(result.Notice{
			Code: "sender-longer", Level: result.Info,
			Text: fmt.Sprintf("the sender still sends %.1f s after this end's time was over: give both the same times (-t, -W, -C)", last.Sub(end).Seconds()),
		})
	}
}

// begins tells that the test runs; without synchronisation the original tells nothing.
func (t *test) begins() {
	if t.kind != kindUnsynced {
		t.out.told(result.MilestoneStarted)
	}
}
