package ntttcp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// Sender runs one test against a receiver. The zero value of every field but Config works.
// A Sender is used for one Run.
type Sender struct {
	Config   Config
	Tool     result.Tool
	Host     func() *result.HostSample // samples this machine's counters once per interval; nil = not
	Machine  Machine                   // counts over the measured time; nil = not
	Facts    *result.Host              // nil = unknown
	Now      func() time.Time          // of Run.Started; nil = time.Now
	Timeouts Timeouts

	second time.Duration // for tests: a second of the protocol; 0 = a second
	// dial replaces osnet.Dial, for tests: port is the one meant.
	dial func(ctx context.Context, network string, to netip.AddrPort, o osnet.Options) (*osnet.Conn, []result.Notice, error)
}

// Run runs the test and hands its events to out: Connected when the receiver has agreed, Start
// when it lets this end begin, an Interval per report, and Finish with this end's totals. When
// the test breaks off after data flowed, Finish holds what is known and Error follows; the error
// is returned too. When ctx ends, its cause is the reason if it is a *result.Error, and the
// receiver is told. Run returns when every socket is closed and every goroutine gone.
//
// Error codes: resolve, address, connect (nobody there), busy (a test runs there), refused (the
// receiver does not start this one), ports-refused, protocol, no-answer, peer-closed, stalled,
// peer-vanished, no-data.
func (s *Sender) Run(ctx context.Context, out result.Sink) error {
	r := &senderRun{s: s, c: s.Config.filled(true), to: s.Timeouts.filled(), out: &emitter{out: out, end: result.Client}, began: time.Now(), second: s.second}
	if r.second == 0 {
		r.second = time.Second
	}
	r.tries = 1
	if r.c.Windows {
		r.tries = tokenTries
	}
	defer r.close()
	err := r.test(ctx)
	if err == nil {
		return nil
	}
	e := asError(ctx, err)
	r.out.Event(result.Event{Kind: result.KindError, Err: e})
	return e
}

// senderRun is the state of one Run.
type senderRun struct {
	s      *Sender
	c      Config
	to     Timeouts
	out    *emitter
	began  time.Time
	second time.Duration

	addr   netip.Addr   // of the receiver, the one that answered
	ports  []int        // of the connections where the receiver told them (-sp)
	hosts  []netip.Addr // Windows: of every connection's receiver; nil = addr
	tries  int          // of each connection
	sync   *syncConn    // nil without one
	agreed time.Duration
	conns  []*osnet.Conn // until the engine takes them
	sent   []*osnet.Conn // the engine's, for nudge
	eng    *traffic.Engine
	head   result.Run
	// started is when the receiver's word to begin came: its clock runs since then.
	started time.Time
	linger  time.Time // until then the connections stay open

	greeting *osnet.Conn      // Windows: the token connection that a fullbore answered on
	link     *link            // nil = a plain receiver
	peer     *ext.ServerHello // with link
	stopped  chan struct{}    // with link: closed when the receiver says that it ended early
}

func (r *senderRun) test(ctx context.Context) error {
	if err := r.c.Validate(true); err != nil {
		return &result.Error{Code: "plan", Text: err.Error()}
	}
	notices := r.c.clamp()
	r.agreed = stretched(r.c.cycle(), r.second)
	r.prepare()
	r.out.notices(notices)
	addrs := []netip.Addr{}
	if len(r.c.Hosts) > 0 {
		if err := r.resolveHosts(ctx); err != nil {
			return err
		}
	} else {
		var err error
		if addrs, err = osnet.ResolveOn(ctx, r.c.Host, r.c.Family, r.c.BindDev); err != nil {
			return &result.Error{Code: "resolve", Text: err.Error()}
		}
		r.addr = addrs[0]
	}
	synced := !r.c.NoSync && !r.c.Windows
	if synced {
		if err := r.agree(ctx, addrs); err != nil {
			return err
		}
	}
	r.announce()
	if r.c.PortSync {
		if err := r.askPorts(ctx); err != nil {
			return err
		}
	}
	if err := r.open(ctx); err != nil {
		return err
	}
	var err error
	switch {
	case synced:
		err = r.start(ctx)
	case !r.c.NoSync:
		err = r.swapTokens(ctx)
	}
	if err != nil {
		return err
	}
	if !r.c.NoSync {
		r.started = time.Now()
	}
	return r.measure(ctx)
}

// connect dials through the test's replacement or for real.
func (r *senderRun) connect(ctx context.Context, network string, to netip.AddrPort, o osnet.Options) (*osnet.Conn, []result.Notice, error) {
	if r.s.dial != nil {
		return r.s.dial(ctx, network, to, o)
	}
	return osnet.Dial(ctx, network, to, o)
}

// agree meets the receiver at its sync port and agrees on the cycle.
func (r *senderRun) agree(ctx context.Context, addrs []netip.Addr) error {
	if err := r.meet(ctx, addrs); err != nil {
		return err
	}
	answer, err := r.exchange(ctx, proposal(r.c.cycle()), "to agree on the time")
	if err != nil {
		return err
	}
	if answer < 0 {
		return &result.Error{Code: "refused", Remote: true, Reported: true, Text: fmt.Sprintf("the receiver refuses the time (its answer is %d)", answer)}
	}
	r.agreed = time.Duration(answer) * r.second
	return nil
}

// askState connects to the sync port and asks for the receiver's state: one in which it takes
// tests.
func (r *senderRun) askState(ctx context.Context, addrs []netip.Addr) (Word, error) {
	o := osnet.Options{Family: r.c.Family, BindHost: r.c.BindHost, BindDev: r.c.BindDev, NoDelay: true, Timeout: r.to.Connect}
	port := r.c.Port - 1
	var conn *osnet.Conn
	var notices []result.Notice
	var err error
	if r.s.dial != nil {
		conn, notices, err = r.s.dial(ctx, "tcp", netip.AddrPortFrom(addrs[0], uint16(port)), o)
	} else {
		conn, notices, err = osnet.DialFirst(ctx, "tcp", r.c.Host, addrs, uint16(port), o)
	}
	if err != nil {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return 0, connectError(err, port)
	}
	r.out.notices(notices)
	r.addr = addrs[0]
	if r.s.dial == nil {
		if ap, err := netip.ParseAddrPort(conn.Net().RemoteAddr().String()); err == nil {
			r.addr = ap.Addr().Unmap()
		}
	}
	r.sync = newSyncConn(conn.Net())
	local, remote := conn.Local(), conn.Remote()
	r.out.tell(result.Milestone{Code: result.MilestoneSync, Local: &local, Remote: &remote})
	state, err := r.exchange(ctx, WordState, "to tell its state")
	if err == nil && state == StateRunning {
		err = &result.Error{Code: "busy", Remote: true, Text: "the receiver runs another test: try again when it is over"}
	}
	return state, err
}

// exchange says w and returns the answer.
func (r *senderRun) exchange(ctx context.Context, w Word, what string) (Word, error) {
	if err := r.sync.say(w, r.to.Answer); err != nil {
		return 0, r.syncError(ctx, err, what)
	}
	a, err := r.sync.next(ctx, r.to.Answer)
	if err != nil {
		return 0, r.syncError(ctx, err, what)
	}
	return a, nil
}

// syncError words the loss of the sync connection.
func (r *senderRun) syncError(ctx context.Context, err error, what string) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errNoAnswer):
		return &result.Error{
			Code: "no-answer", Remote: true,
			Text: fmt.Sprintf("the receiver took %v and did not come %s: it is frozen, or what listens on port %d is no NTTTCP", r.to.Answer, what, r.c.Port-1),
		}
	}
	return &result.Error{Code: "peer-closed", Remote: true, Text: "the receiver closed the sync connection before it came " + what, Errno: osnet.Errno(err)}
}

// connectError words why nobody could be reached.
func connectError(err error, port int) *result.Error {
	e := &result.Error{Code: "connect", Errno: osnet.Errno(err), Text: err.Error()}
	var addr *osnet.AddrError
	var conn *osnet.ConnectError
	switch {
	case errors.As(err, &addr):
		e.Code = "address"
	case errors.As(err, &conn) && conn.Timeout():
		e.Text += ": nothing answered; a firewall may drop it, or the host is down"
	case osnet.Refused(err):
		e.Text += fmt.Sprintf(": the host answers, but nothing listens on port %d; start a receiver there (ntttcp -r, or fullbore serve), or use no synchronising (-N) at both ends", port)
	}
	return e
}

// prepare emits Prepared.
func (r *senderRun) prepare() {
	now := time.Now
	if r.s.Now != nil {
		now = r.s.Now
	}
	r.head = result.Run{
		Schema: result.Schema, Tool: r.s.Tool, End: result.Client, Protocol: protocol, Started: result.Now(now()),
		Test: r.c.test(r.schedule(), r.c.connections()), NTTTCP: r.c.facts(true, nil), Hosts: result.Hosts{Client: r.s.Facts},
		Wire: &result.Wire{ConnectingTo: &result.Addr{Host: r.c.Host, Port: r.c.Port}},
	}
	r.out.head(result.KindPrepared, r.head)
}

// announce emits Connected.
func (r *senderRun) announce() {
	var cycle *time.Duration
	if r.sync != nil {
		d := r.agreed * time.Second / r.second
		cycle = &d
	}
	r.head.Test, r.head.NTTTCP = r.c.test(r.schedule(), r.c.connections()), r.c.facts(true, cycle)
	r.head.Wire.TestStarted = true
	r.out.head(result.KindConnected, r.head)
	own := stretched(r.c.Duration, r.second) // 0 when endless
	if r.sync != nil && r.agreed != own {
		r.out.tell(result.Milestone{Code: result.MilestoneCycle, Count: int64(r.agreed / r.second)})
	}
	if r.c.NoSync {
		r.out.told(result.MilestoneNoSync)
	}
	r.out.tell(result.Milestone{Code: result.MilestoneThreads, Count: int64(r.c.Ports * r.c.Threads)})
}

// schedule is what this end does within the agreed cycle.
func (r *senderRun) schedule() schedule {
	own := time.Duration(0)
	if !r.c.Endless {
		own = stretched(r.c.Duration, r.second)
	}
	s := scheduleOf(r.agreed, stretched(r.c.Warmup, r.second), own)
	if r.c.Brief {
		s.cooldown = min(s.cooldown, stretched(r.c.Cooldown, r.second))
	}
	return s
}

// opened is one connection, or why it could not be made.
type opened struct {
	conn    *osnet.Conn
	notices []result.Notice
	err     error
}

// parallel is how many connections are opened at a time.
const parallel = 64

// open makes the data connections. All are tried, so that every port that is refused can be
// named (field case F59).
func (r *senderRun) open(ctx context.Context) error {
	began := time.Now()
	n := r.c.connections()
	got := make([]opened, n)
	jobs := make(chan int)
	var wg sync.WaitGroup
	at := parallel
	if r.c.Windows {
		at = tokenParallel
	}
	for range min(at, n) {
		wg.Go(func() { // ends with jobs
			for i := range jobs {
				got[i] = r.openOne(ctx, i)
			}
		})
	}
	for i := range n {
		jobs <- i
	}
	close(jobs)
	wg.Wait()
	var notices []result.Notice
	var first error
	refused := map[int]bool{}
	for i, g := range got {
		notices = append(notices, g.notices...)
		switch {
		case g.err == nil:
			r.conns = append(r.conns, g.conn)
		case osnet.Refused(g.err):
			refused[r.port(i)] = true
			fallthrough
		case first == nil:
			first = g.err
		}
	}
	r.out.notices(notices)
	r.tellConnections()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(refused) > 0 && len(r.conns) > 0:
		return &result.Error{
			Code: "ports-refused", Remote: true, Errno: osnet.Errno(first),
			Text: fmt.Sprintf("nothing listens on port %s of the receiver: both ends must be given the same number of ports (-P)", portList(refused)),
		}
	case len(refused) > 0:
		return connectError(first, r.c.Port)
	case first != nil:
		e := connectError(first, r.c.Port)
		if first := r.c.Windows || r.c.NoSync; e.Code == "connect" && (!first || len(r.conns) > 0) { // somebody was there
			e.Code = "stream"
		}
		return e
	}
	r.out.tell(result.Milestone{Code: result.MilestoneConnected, Count: int64(n), Micros: time.Since(began).Microseconds()})
	return nil
}

// tellConnections tells of the data connections that could be made, with the numbers that the
// streams will have.
func (r *senderRun) tellConnections() {
	views := make([]result.Stream, len(r.conns))
	for i, c := range r.conns {
		views[i] = result.Stream{Socket: i + 1, Local: c.Local(), Remote: c.Remote()}
	}
	r.out.connections(result.MilestoneConnection, views)
}

// portList is "5003, 5004".
func portList(ports map[int]bool) string {
	var out []string
	for p := range 65536 {
		if ports[p] {
			out = append(out, strconv.Itoa(p))
		}
	}
	return strings.Join(out, ", ")
}

func (r *senderRun) openOne(ctx context.Context, i int) opened {
	if ctx.Err() != nil {
		return opened{err: context.Cause(ctx)}
	}
	o := osnet.Options{
		Family: r.c.Family, BindHost: r.c.BindHost, BindDev: r.c.BindDev, Window: r.c.Window, NoDelay: r.c.NoDelay, TOS: r.c.TOS,
		FQRate: r.c.each(r.c.FQRate, r.c.connections()), Timeout: r.to.Connect,
	}
	if r.c.SourcePort > 0 {
		o.LocalPort = r.c.SourcePort + i
	}
	conn, notices, err := r.persist(ctx, string(r.c.Transport), netip.AddrPortFrom(r.host(i), uint16(r.port(i))), o)
	return opened{conn, notices, err}
}

// start says that the connections are up, and waits for the receiver's word.
func (r *senderRun) start(ctx context.Context) error {
	w := WordStart
	if r.c.Last {
		w = WordLast
	}
	if err := r.introduce(); err != nil {
		return r.syncError(ctx, err, "to start the test")
	}
	answer, err := r.exchange(ctx, w, "to start the test")
	if err != nil {
		return err
	}
	if answer == WordWait {
		r.out.told(result.MilestoneWaiting)
		if answer, err = r.sync.next(ctx, 0); err != nil {
			return r.syncError(ctx, err, "to start the test")
		}
	}
	if answer == WordStart {
		return nil
	}
	e := &result.Error{Code: "refused", Remote: true, Reported: true, Text: fmt.Sprintf("the receiver does not start this test (its answer is %v)", answer)}
	switch {
	case answer == WordEnd:
		e.Text += ": it has too many senders, or another test has begun there"
	case r.c.Last:
		e.Text += ": it does not wait for several senders; start it with -M, or leave out -L"
	}
	return e
}

// measure runs the data phase and what follows it.
func (r *senderRun) measure(ctx context.Context) error {
	s := r.schedule()
	p := newPhase(s, r.to.Silence, r.out)
	p.machine, p.began = r.s.Machine, r.started
	flows, views := flowsOf(result.Client, r.c.Window, r.conns, func(i int) int { return i / r.c.Conns })
	if r.c.EStats {
		p.stats = newEStats(flows, r.out)
	}
	r.sent, r.conns = r.conns, nil // the engine owns the sockets now
	r.head.Streams = views
	if b := views[0].Buffers; b != nil {
		r.head.Wire.SndbufActual, r.head.Wire.RcvbufActual = int(b.SndGranted), int(b.RcvGranted)
	}
	_, infoErr := flows[0].Conn.TCPInfo()
	r.head.Wire.HasRetrans = infoErr == nil
	cfg := traffic.Config{
		End: result.Client, Transport: r.c.Transport, BlockSize: r.c.BlockSize, Bitrate: r.c.each(r.c.Bitrate, len(flows)),
		MaxRate: r.c.MaxRate, MaxBytes: r.c.MaxBytes, Interval: r.c.Interval, Send: r.c.Send, Affinity: r.c.Affinity,
		Host: r.s.Host, Fill: r.c.payload(), Blocks: r.c.Blocks, BlocksEach: r.c.Blocks > 0,
		UDP: traffic.UDPConfig{Bare: r.c.Transport == plan.UDP, GoneAfter: goneAfter},
	}
	p.apply(&cfg)
	r.c.calls(&cfg)
	eng, err := traffic.New(cfg, flows)
	if err != nil {
		return &result.Error{Code: "plan", Text: err.Error()}
	}
	r.eng, p.m = eng, eng
	if !r.c.NoSync {
		r.out.told(result.MilestoneStarted)
	}
	r.out.head(result.KindStart, r.head)
	r.linked(s)
	why, err := p.run(ctx, r.stopped)
	early := why == stopPeer
	if early { // the receiver's word, not an end that ours asked for
		why = stopGone
	}
	whole := why == stopDone || why == stopGone && p.complete()
	totals, all := p.finish(why, false)
	if r.linger = time.Now(); r.c.Blocks == 0 { // a receiver that counts has its end by ours
		r.linger = r.linger.Add(r.to.Linger)
	}
	var fault *result.Error
	switch {
	case why == stopRequest:
		fault = asError(ctx, err)
	case early:
		fault = r.receiverStopped()
	case why == stopSilent:
		fault = &result.Error{Code: "stalled", Remote: true, Text: fmt.Sprintf("nothing could be sent for %v: the receiver, or the path to it, has stopped", r.to.Silence)}
	case !whole:
		fault = r.left(all, err)
	default:
		fault = p.vanished(all, "the receiver")
	}
	if ports := deaf(views, all); len(ports) > 0 && why == stopDone {
		r.out.notice(result.Notice{
			Code: "icmp-refused", End: result.Client, Level: result.Warn,
			Text: fmt.Sprintf("nobody listens on UDP port %s of the receiver, whose connections ended: both ends must be given the same number of ports (-P)", portList(ports)),
		})
	}
	if s.measured < 0 {
		r.out.notice(tooShort(s))
	}
	if r.saysEnd(whole, why, s) {
		r.settle(why)
		r.sayEnd()
	}
	f := finishOf(result.Client, views, totals, p.total, r.began)
	p.stats.put(f.Streams)
	if whole {
		endedWell(f)
	}
	fault = r.conclude(ctx, f, why, outcome{totals, all, p.total}, fault)
	r.out.Event(result.Event{Kind: result.KindFinish, Finish: f})
	if fault != nil {
		return fault
	}
	return nil
}

// tooShort says that a cycle left nothing to measure.
func tooShort(s schedule) result.Notice {
	return result.Notice{
		Code: "nothing-measured", Level: result.Warn,
		Text: fmt.Sprintf("the warm-up takes the whole cycle of %v: give both ends the same -W and -t", s.cycle()),
	}
}

// saysEnd reports whether this end says that it is done: as the original does, wherever the cycle
// was longer than what it measured (linux §3.5). The Windows dialect has no such word; there it is
// said to a fullbore when the test was cut short.
func (r *senderRun) saysEnd(whole bool, why stop, s schedule) bool {
	switch {
	case r.sync == nil:
		return false
	case r.c.Windows:
		return why == stopRequest || why == stopSilent
	}
	return !whole || s.warmup > 0 || s.cooldown > 0 || r.agreed > s.cycle()
}

// sayEnd says it. A receiver that is gone already needs no word.
func (r *senderRun) sayEnd() {
	if r.sync.say(WordEnd, r.to.Answer) != nil {
		return
	}
	for {
		a, err := r.sync.next(context.Background(), min(r.to.Answer, 2*time.Second))
		switch {
		case err != nil: // it closed the connection with the end of its cycle, or does not read
			return
		case a == StateFinished:
			r.out.told(result.MilestonePeerDone)
			return
		case a == WordStart: // the original says it twice to the last sender
			continue
		}
		r.out.tell(result.Milestone{Code: result.MilestoneLine, Severity: "error", Text: "receiver is not able to handle this interrupt"})
		return
	}
}

// close frees everything, after the time that a real receiver needs: its threads notice the
// end of a test only by what happens on their connections, so these must end later than that
// (linux §8.1); data first, then sync.
func (r *senderRun) close() {
	r.out.close()
	r.link.stop(true) // of a test that broke off before its end
	if r.eng != nil && !r.linger.IsZero() {
		stop := r.nudge()
		r.sync.wait(time.Until(r.linger))
		stop()
	}
	for _, c := range r.conns {
		_ = c.Close()
	}
	if r.eng != nil {
		r.eng.Close()
	}
	if r.greeting != nil { // a set-up that failed
		_ = r.greeting.Close()
	}
	r.sync.close()
}
