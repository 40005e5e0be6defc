package iperf3

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/proto/probe"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// session is one client's test at the server, from its parameters on. Its run is the
// goroutine of the control connection; offer and fail are called by others.
type session struct {
	s      *Server
	peer   netip.Addr
	remote result.Addr
	local  result.Addr
	cookie Cookie
	ctl    *control
	conn   *osnet.Conn // the control connection

	params Params
	plan   plan.Plan
	user   string // logged in
	hello  *ext.ClientHello
	seen   *result.Host // of machine; nil = not looked yet
	// greeted: our hello went out, so frames of the client count.
	greeted atomic.Bool
	number  int

	hooks  TestHooks
	opened bool
	out    *emitter
	folder result.Folder
	foldMu sync.Mutex
	frames *ext.Forwarder
	head   result.Run

	// The slot. turn is closed when t gets one, released when it gave it back; ending
	// says that the client has all it wants. others and since are set with the slot.
	turn     chan struct{}
	released chan struct{}
	ending   atomic.Bool
	others   int
	since    time.Time
	overlap  chan struct{} // another test began meanwhile
	shift    chan struct{} // the queue moved
	consumed bool          // this is the test of a one-off server

	// UDP.
	desk   *desk     // nil = this server has no UDP socket here
	udp    *udpSetup // of a UDP test; nil = none yet
	testID [8]byte   // of the hello
	nonce  [8]byte

	// Probes: what was seen of them, and connections for round trips.
	probed      bool // the server answers them
	probeCounts *probe.Counts
	pings       chan net.Conn
	pinged      atomic.Int64  // signs of life on those
	noPings     chan struct{} // closed: none is wanted any more
	noPingsOnce sync.Once
	swapped     *ext.Swapped // how a test went that this end played as the client; nil = none did
	// notices about its streams, until they can be told.
	notices []result.Notice

	arrivals   chan arrival
	failed     chan *result.Error
	noMore     chan struct{} // closed: no stream is wanted
	noMoreOnce sync.Once

	streams []stream
	senders []*osnet.Conn
	file    *os.File
	size    int64
	eng     *traffic.Engine
	// steerable is eng for the reader's goroutine.
	steerable atomic.Pointer[traffic.Engine]
	steeredAt atomic.Int64 // when the last frame of a client that steers came, wall clock ns; 0 = none did
	quiet     bool         // it is not heard
	totals    *traffic.Totals
	other     *Results
	flowed    bool
	begun     time.Time
	byStop    string // a client's stop frame ended the test
	lost      atomic.Int64
}

// arrival is a stream's connection whose cookie was right.
type arrival struct {
	nc    net.Conn
	order int64 // of acceptance, or its index
}

func newSession(s *Server, nc net.Conn, peer netip.Addr, cookie Cookie) *session {
	conn := osnet.NewConn(nc)
	t := &session{
		s: s, peer: peer, remote: conn.Remote(), local: conn.Local(), cookie: cookie, conn: conn,
		turn: make(chan struct{}), released: make(chan struct{}), overlap: make(chan struct{}, 1), shift: make(chan struct{}, 1),
		arrivals: make(chan arrival), failed: make(chan *result.Error, 1), noMore: make(chan struct{}), begun: time.Now(),
		pings: make(chan net.Conn), noPings: make(chan struct{}),
	}
	t.out = newEmitter(result.Server, result.SinkFunc(t.event))
	return t
}

// name is how the log calls the test.
func (t *session) name() string { return net.JoinHostPort(t.remote.Host, strconv.Itoa(t.remote.Port)) }

// event hands an event to everybody who listens; the emitter calls it one at a time.
func (t *session) event(ev result.Event) {
	t.foldMu.Lock()
	if !t.params.ServerOutput {
		t.folder.Keep = 1 // nothing but its sums is asked for: a test of days must not fill the memory
	}
	t.folder.Event(ev)
	t.foldMu.Unlock()
	if t.hooks.Sink != nil {
		t.hooks.Sink.Event(ev)
	}
	if t.frames != nil && ev.End == result.Server {
		t.frames.Event(ev)
	}
}

// open calls NewTest, once.
func (t *session) open() {
	if t.opened {
		return
	}
	t.opened = true
	t.s.mu.Lock()
	t.s.tests++
	t.number = t.s.tests
	t.s.mu.Unlock()
	if t.s.NewTest != nil {
		t.hooks = t.s.NewTest(t.remote)
	}
}

// sampler is what counts this machine's load during the test.
func (t *session) sampler() func() *result.HostSample {
	if t.hooks.Host != nil {
		return t.hooks.Host
	}
	return t.s.Host
}

// run is the whole test. doc are the client's parameters. It returns when every socket
// of the test is closed.
func (t *session) run(ctx context.Context, doc []byte) {
	pol := t.s.Policy
	if _, err := osnet.Apply(t.conn, osnet.Options{NoDelay: true, UserTimeout: pol.SendTimeout, Keepalive: pol.Keepalive}); err != nil {
		t.s.log.Warn("options of a control connection", "from", t.name(), "err", err) // the test works without
	}
	t.ctl = newControl(t.conn.Net(), false, 0, t.s.docs, t.frame)
	err := t.guarded(ctx, doc)
	t.finishUp(ctx, err)
}

// guarded is test, of which a fault of this program ends that one test and no other: a
// server must outlive whatever a client brings up.
func (t *session) guarded(ctx context.Context, doc []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			t.s.log.Error("this program's fault, please report it", "test", t.name(), "panic", p, "stack", string(debug.Stack()))
			err = &result.Error{Code: "internal", Number: codeInitTest, Text: fmt.Sprintf("a fault of this program ended the test: %v", p)}
		}
	}()
	return t.test(ctx, doc)
}

// errBusy and errMalformed end a session that never was a test.
var (
	errBusy      = errors.New("busy")
	errMalformed = errors.New("malformed parameters")
)

func (t *session) test(ctx context.Context, doc []byte) error {
	if err := t.understand(doc); err != nil {
		return err
	}
	if err := t.login(); err != nil {
		return err
	}
	if err := t.policy(); err != nil {
		return err
	}
	if err := t.awaitTurn(ctx); err != nil {
		return err
	}
	if err := t.awaitUDPTurn(ctx); err != nil {
		return err
	}
	t.open()
	t.announce()
	disarm := t.armListeners()
	err := t.greet()
	if err == nil && !t.probeOnly() && !t.swapping() {
		err = t.collect(ctx)
	}
	disarm()
	if err != nil {
		return err
	}
	switch {
	case t.swapping():
		return t.swapTest(ctx)
	case t.probeOnly():
		return t.probeTest(ctx)
	}
	if err := t.sayReady(); err != nil {
		return err
	}
	if err := t.build(); err != nil {
		return err
	}
	return t.measure(ctx)
}

// armListeners makes the streams' SYN-ACKs carry what the client asked for (field case
// F38 in reverse), where no other test's connections could be meant. The function it
// returns takes that back.
func (t *session) armListeners() (disarm func()) {
	if !t.s.Policy.Exclusive || t.plan.TOS == 0 && t.plan.MSS == 0 && t.plan.FlowLabel == 0 {
		return func() {}
	}
	var undo []func() error
	for _, ln := range t.s.listeners {
		l, ok := ln.(*osnet.Listener)
		if !ok {
			continue
		}
		back, notices, err := l.Arm(osnet.Options{TOS: t.plan.TOS, MSS: t.plan.MSS, FlowLabel: t.plan.FlowLabel})
		t.out.notices(notices)
		if err != nil {
			t.out.notice(result.Notice{
				Code: "option-refused", End: result.Server, Level: result.Info,
				Text: "the first packet of each stream from here goes without the options asked for: " + err.Error(),
			})
			continue
		}
		undo = append(undo, back)
	}
	return func() {
		for _, back := range undo {
			if err := back(); err != nil {
				t.s.log.Warn("listener options", "err", err)
			}
		}
	}
}

// understand decodes the parameters. A key of the wrong kind ends the conversation: a
// test that quietly ran with a default instead would be another than the one asked for
// (field case F51).
func (t *session) understand(doc []byte) error {
	p, err := DecodeParams(doc)
	if err != nil {
		t.s.visitors.note(t.peer, "sent no valid parameters", "err", err)
		return errMalformed
	}
	if len(p.Notes) > 0 {
		t.s.visitors.note(t.peer, "sent malformed parameters", "err", p.Notes[0].String())
		return errMalformed
	}
	t.params = p
	if t.s.Policy.Extension != "off" {
		t.hello = p.Hello
	} else {
		t.params.Hello = nil
	}
	return nil
}

// login checks the client's token where a login is required. Its failure says no
// reason to the client; the log has it, without the password.
func (t *session) login() error {
	if t.s.key == nil {
		return nil
	}
	refuse := func(why error) error {
		return &result.Error{Code: "auth", Number: codeAuth, Text: "login refused: " + why.Error()}
	}
	if _, has := t.params.present["authtoken"]; !has {
		return refuse(errors.New("the client gave no login"))
	}
	users, err := os.Open(t.s.Policy.UsersFile) // read anew for every test
	if err != nil {
		return refuse(fmt.Errorf("the users file cannot be read: %w", err))
	}
	defer users.Close()
	user, err := checkLogin(t.s.key, t.params.AuthToken, t.s.Policy.PKCS1, users, t.s.now(), t.s.Policy.TimeSkew)
	if err != nil {
		return refuse(err)
	}
	t.user = user
	return nil
}

// policy compares what the client wants with what this server allows.
func (t *session) policy() error {
	pol := t.s.Policy
	maxStreams := int64(plan.MaxStreams)
	if t.hello != nil {
		maxStreams = plan.MaxStreamsExt
	}
	if bad := t.params.check(maxStreams); bad != nil {
		return &result.Error{Code: "refused", Number: int(bad.Code), Errno: int(bad.Errno), Text: "refused: " + bad.Text}
	}
	t.plan = t.params.Plan()
	p := t.plan
	limit := func(code int, format string, args ...any) error {
		return &result.Error{Code: "limit", Number: code, Text: "refused: " + fmt.Sprintf(format, args...)}
	}
	flows := int64(p.Streams)
	if p.Direction == plan.Both {
		flows *= 2
	}
	switch {
	case p.Transport == plan.UDP && pol.File != "":
		return &result.Error{Code: "refused", Number: codeUDPFile, Text: "refused: this server transfers a file, which UDP cannot"}
	case p.Transport == plan.UDP && t.desk == nil && t.s.NoPackets != nil:
		return &result.Error{
			Code: "unsupported", Number: codeStreamListen, Errno: errnoOr(t.s.NoPackets, linuxEPROTONOSUPPORT),
			Text: fmt.Sprintf("refused: this server has no UDP socket: %v", t.s.NoPackets),
		}
	case p.Transport != plan.TCP && (p.Transport != plan.UDP || t.desk == nil):
		return &result.Error{
			Code: "unsupported", Number: codeStreamListen, Errno: linuxEPROTONOSUPPORT,
			Text: fmt.Sprintf("refused: this server carries no %s", p.Transport),
		}
	case pol.MaxStreams > 0 && p.Streams > pol.MaxStreams:
		return limit(codeNumStreams, "%d streams asked for, allowed are %d", p.Streams, pol.MaxStreams)
	case pol.MaxDuration > 0 && p.Duration == 0:
		return limit(codeMaxDuration, "a test without time limit asked for, allowed are %v", pol.MaxDuration)
	case pol.MaxDuration > 0 && p.Duration+p.Omit > pol.MaxDuration:
		return limit(codeMaxDuration, "%v asked for, allowed are %v", p.Duration+p.Omit, pol.MaxDuration)
	}
	if each, most := max(p.Bitrate, p.FQRate), lowest(pol.RateLimit, pol.MaxRate); most > 0 && flows*each > most {
		return limit(codeTotalRate, "%d bit/s asked for (streams: %d of %d bit/s), allowed are %d bit/s together", flows*each, flows, each, most)
	}
	if pol.Send != plan.SendCopy && p.Send == plan.SendCopy {
		t.plan.Send = pol.Send
	}
	if pol.Receive != plan.Copy {
		t.plan.Receive = pol.Receive
	}
	if len(p.Affinity) == 0 {
		t.plan.Affinity = pol.Affinity
	}
	t.plan.Interval, t.plan.OneRow, t.plan.File = pol.Interval, pol.OneRow, pol.File
	if h := t.hello; h != nil && !t.s.Plain && h.Interval >= plan.MinInterval.Seconds() && h.Interval < pol.Interval.Seconds() {
		t.plan.Interval, t.plan.OneRow = time.Duration(h.Interval*float64(time.Second)), false
	}
	t.plan.ReceiveTimeout, t.plan.SendTimeout = pol.ReceiveTimeout, pol.SendTimeout
	t.plan.Port = t.local.Port
	t.planDatagrams()
	return t.checkSwap()
}

// lowest is the lower of two limits of which 0 is none.
func lowest(a, b int64) int64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// announce emits Connected.
func (t *session) announce() {
	t.describe()
	if t.swapping() {
		t.head.Hosts, t.head.End = result.Hosts{}, t.role() // what else there is that client tells itself
	}
	t.emitHead(result.KindConnected)
	if t.others > 0 {
		t.noteOverlap(t.others)
	}
}

// announceRefused emits Connected for a test that will not be, so that those who listen
// learn what was asked for: with no accepted connection, as iperf3 announces none.
func (t *session) announceRefused() {
	if t.params.check(plan.MaxStreamsExt) != nil {
		return // wishes that make no plan
	}
	if t.plan.Transport == "" {
		t.plan = t.params.Plan()
	}
	t.describe()
	t.head.Wire.AcceptedFrom = nil
	t.emitHead(result.KindConnected)
}

// describe fills the head with what the client wants.
func (t *session) describe() {
	test := t.plan.Test()
	test.Target, test.ProbeOnly = "", t.probeOnly()
	if l := (result.Limit{BitrateBPS: t.s.Policy.RateLimit, MaxDuration: t.s.Policy.MaxDuration.Seconds()}); l != (result.Limit{}) {
		test.ServerLimit = &l
	}
	test.MaxRate = t.s.Policy.MaxRate
	w := &result.Wire{
		Cookie: t.cookie.String(), Version: "iperf " + t.s.Version, PeerVersion: ext.Printable(t.params.ClientVersion),
		AcceptedFrom: &result.Addr{Host: t.remote.Host, Port: t.remote.Port}, TestStarted: true, TestNumber: t.number,
		Extension: t.hello != nil,
	}
	if t.hello != nil {
		w.PeerVersion = ext.Printable(t.hello.Version)
	}
	if mss, err := t.conn.MSS(); err == nil {
		w.ControlMSS = mss
	}
	t.head = result.Run{
		Schema: result.Schema, Tool: t.s.Tool, End: result.Server, Protocol: "iperf3", Started: result.Now(t.s.now()),
		Test: test, Hosts: result.Hosts{Server: t.machine()}, Wire: w,
	}
}

func (t *session) emitHead(k result.Kind) {
	head := t.head
	wire := *t.head.Wire
	head.Wire = &wire
	t.out.Event(result.Event{Kind: k, Head: &head})
}

func (t *session) noteOverlap(n int) {
	t.out.notice(result.Notice{
		Code: "overlap", End: t.role(), Level: result.Warn,
		Text: fmt.Sprintf("this server runs %d other tests at the same time: the rate is a share", n),
	})
}

// facts are what this client may know about the machine (design §5 "Hello").
func (t *session) facts() *result.Host {
	return ext.Facts(t.machine(), t.trusts())
}

// machine is this machine: as seen along the route to the client where it may know all of it.
func (t *session) machine() *result.Host {
	if t.s.FactsTo == nil || !t.trusts() {
		return t.s.Facts
	}
	if t.seen == nil {
		t.seen = t.s.FactsTo(t.peer)
	}
	return t.seen
}

// trusts reports that this client may know all of them.
func (t *session) trusts() bool { return t.s.Policy.FullFacts || t.user != "" }

// greet answers a fullbore client's hello and says CREATE_STREAMS.
func (t *session) greet() error {
	t.s.mu.Lock()
	t.s.creating[t] = struct{}{} // streams may come from now on
	t.s.mu.Unlock()
	t.udp.greet()
	b, err := t.answerHello()
	if err != nil {
		return err
	}
	t.admitProbes()
	t.greeted.Store(len(b) > 0)
	b = append(b, byte(StateCreateStreams))
	if err := t.ctl.send(b, t.s.to.Answer); err != nil {
		return t.closedError(err)
	}
	return nil
}

// answerHello is the hello frame for a client that offered the extension, else nothing.
func (t *session) answerHello() ([]byte, error) {
	if t.hello == nil {
		return nil, nil
	}
	_, _ = rand.Read(t.testID[:])
	for t.nonce == [8]byte{} { // 0 is no nonce
		_, _ = rand.Read(t.nonce[:])
	}
	host := t.facts() // may take milliseconds, and the clock is to be read last
	h := ext.ServerHello{
		V: ext.Version, Version: t.s.Tool.Version, Features: t.features(), Test: hex.EncodeToString(t.testID[:]), Nonce: hex.EncodeToString(t.nonce[:]),
		Clock: syncedClock(t.s.now()), Host: host, Overlap: t.others,
		SameHost: probe.HostMark(t.nonce), SeenAs: ext.Address(t.ctl.nc.RemoteAddr()), Swap: t.s.swapOf,
	}
	if t.trusts() {
		h.Local = ext.Address(t.ctl.nc.LocalAddr())
	}
	pol := t.s.Policy
	h.Limits = ext.Limits{MaxRate: lowest(pol.RateLimit, pol.MaxRate), MaxDuration: pol.MaxDuration.Seconds(), MaxStreams: pol.MaxStreams}.OrNil()
	doc, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("iperf3: encode hello: %w", err)
	}
	return AppendFrame(nil, FrameHello, doc), nil
}

// fail ends the test from outside.
func (t *session) fail(e *result.Error) {
	select {
	case t.failed <- e:
	default:
	}
}

// logTest writes the one line of a test.
func (t *session) logTest(e *result.Error) {
	t.foldMu.Lock()
	run := t.folder.Run()
	t.foldMu.Unlock()
	attrs := []any{"test", t.number, "from", t.name()}
	if t.user != "" {
		attrs = append(attrs, "user", ext.Printable(t.user))
	}
	if t.plan.Transport != "" {
		attrs = append(attrs, "transport", string(t.plan.Transport), "direction", string(t.plan.Direction), "streams", t.plan.Streams)
	}
	for _, sum := range run.Sums {
		for _, v := range []struct {
			end   result.End
			total *result.Total
		}{{sum.Direction.Sender(), sum.Sender}, {sum.Direction.Receiver(), sum.Receiver}} {
			if v.end == t.role() && v.total != nil {
				attrs = append(attrs, string(sum.Direction)+"_bytes", v.total.Bytes, string(sum.Direction)+"_bps", int64(v.total.Rate()), "seconds", fmt.Sprintf("%.2f", v.total.Seconds()))
			}
		}
	}
	if t.swapping() {
		attrs = append(attrs, "roles", "exchanged", "back_to", t.hello.Swap.Port)
	}
	attrs = append(attrs, t.probeWords()...)
	level := slog.LevelInfo
	if e != nil {
		attrs = append(attrs, "error", e.Code, "why", e.Text)
		level = slog.LevelWarn
	}
	t.s.log.Log(context.Background(), level, "test", attrs...)
}
