package iperf3

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/proto/probe"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// DefaultRelease is the release of iperf3 that this package shows to its peers.
const DefaultRelease = "3.21"

// Client runs one test against a server. The zero value of every field but Plan works.
// A Client is used for one Run.
type Client struct {
	Plan plan.Plan
	// Tool is this program; the extension tells it to a fullbore server.
	Tool result.Tool
	// Version is the release of iperf3 shown to the server; default DefaultRelease.
	Version string
	// SocketBase is the number shown for the first stream; default 5.
	SocketBase int
	// Plain leaves what a Plan does not say to iperf3's rules: UDP datagrams are as long as
	// the control connection's segments and may be fragmented. Else they fill one packet of the
	// path, and the don't-fragment bit is set. A UDP sender then also counts as iperf3 does
	// (traffic.UDPConfig.Iperf3).
	Plain bool
	// Host samples this machine's counters once per interval; nil = not.
	Host func() *result.HostSample
	// Facts describe this machine; nil = unknown.
	Facts *result.Host
	// Now is the wall clock of login tokens and of Run.Started; nil = time.Now.
	Now      func() time.Time
	Timeouts Timeouts

	// Steering makes what decides the rate of a steered test (Plan.Steer) of datagrams of block bytes
	// of payload; nil = none is steered.
	Steering func(block int, ipv6 bool, s plan.Steer) Steering
	// Ramping makes what decides how many of streams of each direction send in a ramped test (Plan.Ramp);
	// nil = all do from the start.
	Ramping func(ra plan.Ramp, streams int) Ramping

	streamsFrom string // for tests: streams leave from this address, unlike the control connection

	forgetHost bool // for tests: do not notice that the server is on this machine

	// Of a client that plays another's test (session.swapClient): the cookie that it is to use, whose
	// server must answer, and whether that did.
	token  *Cookie
	swapOf string
	proved bool

	mu  sync.Mutex
	run *clientRun // while a test runs, for Steer
}

// Run runs the test and hands its events to out: Connected when the parameters are on
// their way, Start when all streams exist, an Interval per report of each end that
// tells, and Finish with the totals. When the test breaks off after data flowed,
// Finish holds what is known and Error follows; the error is returned too. When ctx
// ends, its cause is the reason if it is a *result.Error. Run returns when every
// socket is closed and every goroutine gone.
func (c *Client) Run(ctx context.Context, out result.Sink) error {
	r := &clientRun{
		c: c, p: c.Plan.Filled(), to: c.Timeouts.filled(), out: newEmitter(result.Client, out), began: time.Now(),
	}
	if r.ramper = newRamper(r); r.ramper != nil {
		r.out.out = result.Tee(r.out.out, r.ramper)
	}
	if r.p.Swap != nil {
		r.swap = newSwap(out)
		r.out = newEmitter(result.Client, r.swap)
	}
	defer r.close()
	err := r.test(ctx)
	if err == nil {
		return nil
	}
	e := r.asError(ctx, err)
	r.goodbye(e)
	r.partial()
	r.out.Event(result.Event{Kind: result.KindError, Err: e})
	return e
}

// goodbye tells the server that the client gives up, so that it need not find out.
func (r *clientRun) goodbye(e *result.Error) {
	if r.ctl == nil || r.params.Transport == "" || e.Remote || r.said {
		return
	}
	_ = r.ctl.sendState(r.to.Linger, StateClientTerminate) // it may be gone
}

// Steer sets a new rate (payload bit/s per stream, 0 = unlimited) for the running
// test: here, and at a fullbore server for what it sends. Without a running test it
// does nothing.
func (c *Client) Steer(bps int64) {
	c.mu.Lock()
	r := c.run
	c.mu.Unlock()
	if r == nil {
		return
	}
	r.eng.Steer(bps)
	if r.hello.Has(ext.FeatureClient) {
		_ = r.sendFrame(ext.ClientFrame{Steer: &ext.Steer{BPS: bps}}) // a broken connection shows where it is read
	}
}

// clientRun is the state of one Run.
type clientRun struct {
	c     *Client
	p     plan.Plan
	to    Timeouts
	out   *emitter
	began time.Time

	conn    *osnet.Conn // the control connection
	file    *os.File    // -F
	size    int64
	addr    netip.AddrPort // of the server, the one that answered
	ctl     *control
	cookie  Cookie
	params  Params
	hello   *ext.ServerHello // nil: plain iperf3
	head    result.Run
	streams []stream // until the engine takes them
	eng     *traffic.Engine
	senders []*osnet.Conn  // the engine's, to look at their queues
	frames  *ext.Forwarder // our events to a fullbore server
	totals  *traffic.Totals
	other   *Results // the server's, once known
	ended   bool     // Finish was emitted
	agreed  bool     // the server accepted the parameters
	early   []int64  // datagrams per flow that came before the engine took it
	begun   bool     // TEST_RUNNING came while the streams were opened
	chose64 bool     // 64-bit counters without being asked for
	flowed  bool     // data flowed
	done    bool     // the conversation ended as it should
	ramper  *ramper  // of a ramped test
	said    bool     // the server knows that we end

	lost     int64           // events that the server dropped
	beside   *beside         // probes beside the load; nil = none
	steerer  *steerer        // of a steered test; nil = it is none
	swap     *swap           // of a test that the other end plays; nil = it is none
	connects *probe.Connects // how long connecting took, where that is asked for
}

func (c *Client) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// test is the whole conversation.
func (r *clientRun) test(ctx context.Context) error {
	if err := r.prepare(); err != nil {
		return err
	}
	if err := r.connect(ctx); err != nil {
		return err
	}
	if err := r.agree(ctx); err != nil {
		return err
	}
	if r.swap != nil {
		return r.swapTest(ctx)
	}
	if r.probing() {
		return r.probeTest(ctx)
	}
	open := r.openStreams
	if r.p.Transport == plan.UDP {
		open = r.openDatagrams
	}
	if err := open(ctx); err != nil {
		return err
	}
	if err := r.awaitStart(ctx); err != nil {
		return err
	}
	return r.measure(ctx)
}

// prepare does what can fail before anybody is bothered (field case F23: a missing file).
func (r *clientRun) prepare() error {
	if r.p.Transport != plan.TCP && r.p.Transport != plan.UDP {
		return &result.Error{
			Code: "unsupported", Number: codeStreamListen, Errno: linuxEPROTONOSUPPORT,
			Text: fmt.Sprintf("%s: this build carries only TCP and UDP", r.p.Transport),
		}
	}
	if r.p.File == "" {
		return nil
	}
	if !r.sendsFile() && r.p.Duration == 0 && !r.p.Endless && r.p.Bytes == 0 && r.p.Blocks == 0 {
		r.p.Duration = plan.DefaultDuration // the sender's file ends the test, or else this
	}
	f, size, err := openFile(r.p.File, r.sendsFile())
	if err != nil {
		return err
	}
	r.file, r.size = f, size
	return nil
}

// sendsFile reports that the payload is a file of ours.
func (r *clientRun) sendsFile() bool { return r.p.File != "" && r.p.Sends(result.Client) }

// openFile opens the file of -F: to read when this end sends, else to write (created
// with mode 0600, as iperf3 does).
func openFile(name string, send bool) (*os.File, int64, error) {
	fail := func(err error) (*os.File, int64, error) {
		return nil, 0, &result.Error{Code: "file", Text: fmt.Sprintf("file: %v", err), Number: codeFile, Errno: errno(err)}
	}
	if !send {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return fail(err)
		}
		return f, 0, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return fail(err)
	}
	st, err := f.Stat()
	if err == nil && st.IsDir() {
		err = &os.PathError{Op: "read", Path: name, Err: errors.New("is a directory")}
	}
	if err != nil {
		_ = f.Close()
		return fail(err)
	}
	return f, st.Size(), nil
}

const linuxEAGAIN = 11

// answer is how long to wait for the server's next word. A connect or receive timeout
// that the user set shorter counts here too (field case F27).
func (r *clientRun) answer() time.Duration {
	d := r.to.Answer
	if t := r.p.ConnectTimeout; t > 0 {
		d = min(d, 2*t)
	}
	return min(d, r.p.ReceiveTimeout)
}

// agree says who we are and what we want, and waits for the server's consent.
func (r *clientRun) agree(ctx context.Context) error {
	r.cookie = NewCookie()
	if r.c.token != nil {
		r.cookie = *r.c.token
	}
	if err := r.ctl.send(r.cookie[:], r.to.Answer); err != nil {
		return &result.Error{Code: "closed", Remote: true, Text: "the server closed the connection at once: " + err.Error(), Number: codeSendCookie, Errno: errno(err)}
	}
	// Read here, as iperf3 does: on loopback the answer to the cookie widens it.
	if mss, err := r.conn.MSS(); err == nil {
		r.head.Wire = &result.Wire{ControlMSS: mss}
	}
	m, err := r.next(ctx, r.answer())
	if err != nil {
		return r.greetingError(err)
	}
	if err := r.refused(m); err != nil {
		return err
	}
	if m.State != StateParamExchange {
		return r.notIperf3()
	}
	if err := r.fitDatagrams(ctx); err != nil {
		return err
	}
	if err := r.openSwap(ctx); err != nil {
		return err
	}
	if err := r.buildParams(); err != nil {
		return err
	}
	r.ctl.framed.Store(true)
	if err := r.ctl.send(AppendDocument(nil, r.params.Encode()), r.to.Answer); err != nil {
		return &result.Error{Code: "closed", Remote: true, Text: "send parameters: " + err.Error(), Number: codeSendParams, Errno: errno(err)}
	}
	r.announce()
	return r.consent(ctx)
}

// buildParams makes the parameter document.
func (r *clientRun) buildParams() error {
	version := r.c.Version
	if version == "" {
		version = DefaultRelease
	}
	p := r.p
	if r.sendsFile() && p.Duration == 0 && p.Bytes == 0 && p.Blocks == 0 {
		p.Bytes = r.size // as 3.11 and later: the server learns when to expect the end
	}
	r.params = ParamsOf(p, version)
	if r.p.Extension != "off" {
		h := &ext.ClientHello{
			V: ext.Version, Version: r.c.Tool.Version, Features: features(), Queue: r.p.Queue, ProbeOnly: r.wantsOnlyProbes(),
			Offload: r.p.Offload, Pacing: r.p.Pacing, Steady: r.p.Steady, CatchUp: r.p.CatchUp, Swap: r.swap.wish(&r.p),
		}
		if r.p.Probe == nil { // a server answers probes only of those who want some
			h.Features = slices.DeleteFunc(h.Features, func(f string) bool { return f == ext.FeatureProbe || f == ext.FeaturePing || f == ext.FeatureMTU })
		}
		if r.ramper != nil {
			h.Open = r.p.Ramp.First
		} else {
			h.Features = slices.DeleteFunc(h.Features, func(f string) bool { return f == ext.FeatureRamp })
		}
		if r.swap == nil {
			h.Features = slices.DeleteFunc(h.Features, func(f string) bool { return f == ext.FeatureSwap })
		}
		if r.quiet() {
			h.Features = slices.DeleteFunc(h.Features, func(f string) bool { return f == ext.FeatureEvents })
		}
		if r.p.Streams > plan.MaxStreams {
			h.Streams = r.p.Streams
		}
		if r.p.Duration%time.Second != 0 {
			h.Duration = r.p.Duration.Seconds()
		}
		if r.p.Omit%time.Second != 0 {
			h.Omit = r.p.Omit.Seconds()
		}
		if !r.p.OneRow && r.p.Interval > 0 && r.p.Interval < time.Second {
			h.Interval = r.p.Interval.Seconds()
		}
		r.params.Hello = h
	}
	if a := r.p.Auth; a != nil {
		tok, err := NewToken(*a, r.c.now())
		if err != nil {
			return &result.Error{Code: "plan", Text: err.Error(), Number: codeAuth}
		}
		r.params.AuthToken = tok
	}
	if n := len(r.params.Encode()); n > MaxParams {
		return &result.Error{
			Code: "plan", Number: codeSendParams,
			Text: fmt.Sprintf("the parameters take %d bytes, servers accept %d: shorten title or extra data", n, MaxParams),
		}
	}
	return nil
}

// quiet: neither end sends events. They share the test's path with its data, so where
// nobody looks at them they are not worth the room that they take in a full queue.
func (r *clientRun) quiet() bool { return r.p.Extension == "quiet" }

// announce emits Connected: the conversation has begun.
func (r *clientRun) announce() {
	w := r.head.Wire
	if w == nil {
		w = &result.Wire{}
	}
	w.Cookie, w.Version, w.TestStarted = r.cookie.String(), "iperf "+r.params.ClientVersion, true
	w.ConnectingTo = &result.Addr{Host: r.p.Host, Port: r.p.Port}
	r.head = result.Run{
		Schema: result.Schema, Tool: r.c.Tool, End: result.Client, Protocol: "iperf3", Started: result.Now(r.c.now()),
		Test: r.p.Test(), Hosts: result.Hosts{Client: r.c.Facts}, Wire: w,
	}
	r.emitHead(result.KindConnected)
}

// emitHead hands on a copy of the head, so that it can change here.
func (r *clientRun) emitHead(k result.Kind) {
	head := r.head
	wire := *r.head.Wire
	head.Wire = &wire
	r.out.Event(result.Event{Kind: k, Head: &head})
}

// consent waits for CREATE_STREAMS, through the queue if need be.
func (r *clientRun) consent(ctx context.Context) error {
	wait := r.answer()
	for {
		m, err := r.next(ctx, wait)
		if err != nil {
			return r.consentError(err)
		}
		switch m.State {
		case StateCreateStreams:
			if err := r.rightServer(); err != nil {
				return err
			}
			r.agreed = true
			return r.adapt()
		case FrameHello:
			if h := ext.DecodeServerHello(m.Doc); h != nil {
				r.greeted(h)
			}
		case FrameQueue:
			var q ext.QueueFrame
			if json.Unmarshal(m.Doc, &q) == nil {
				r.queued(q)
			}
			wait = max(wait, 3*queueBeat) // a server that queues says so again and again
		default:
			if err := r.refused(m); err != nil {
				return err
			}
			return r.unknown(m)
		}
	}
}

// greeted takes in what a fullbore server says about itself.
func (r *clientRun) greeted(h *ext.ServerHello) {
	r.hello = h
	w := r.head.Wire
	w.Extension, w.PeerVersion = true, h.Version
	if h.SeenAs != "" {
		w.SeenAs = &result.Addr{Host: h.SeenAs}
	}
	if h.Local != "" {
		w.PeerLocal = &result.Addr{Host: h.Local}
	}
	if l := r.limits(); l.MaxRate > 0 || l.MaxDuration > 0 {
		r.head.Test.ServerLimit = &result.Limit{BitrateBPS: l.MaxRate, MaxDuration: l.MaxDuration}
	}
	if h.Host != nil {
		r.head.Hosts.Server = h.Host
		r.out.Event(result.Event{Kind: result.KindHost, End: result.Server, Host: h.Host})
	}
	if n := ext.VersionNotice(h.Version, r.c.Tool); n != nil {
		r.out.notice(*n)
	}
	if h.Overlap > 0 {
		r.out.notice(result.Notice{
			Code: "overlap", End: result.Server, Level: result.Warn,
			Text: fmt.Sprintf("the server runs %d other tests at the same time: the rate is a share", h.Overlap),
		})
	}
}

func (r *clientRun) queued(q ext.QueueFrame) {
	text := fmt.Sprintf("the server is busy; waiting at position %d", q.Position)
	if q.Estimate != nil {
		text += fmt.Sprintf(", about %.0f s", *q.Estimate)
	}
	r.out.notice(result.Notice{Code: "queued", End: result.Server, Level: result.Info, Text: text})
}

// adapt fits the plan to a server that does not know the extension.
func (r *clientRun) adapt() error {
	r.note64()
	r.plainSteer()
	if r.hello != nil {
		return nil
	}
	r.plainProbes()
	if r.p.Streams > plan.MaxStreams {
		return &result.Error{
			Code: "plan", Number: codeNumStreams,
			Text: fmt.Sprintf("%d streams need a fullbore server at the other end (fullbore serve); to this one %d are possible", r.p.Streams, plan.MaxStreams),
		}
	}
	if r.p.Omit%time.Second != 0 {
		r.p.Omit = seconds(ceilSeconds(r.p.Omit)) // both ends must leave out the same time
		r.head.Test.Omit = r.p.Omit.Seconds()
		r.out.notice(result.Notice{
			Code: "omit-rounded", Level: result.Info,
			Text: fmt.Sprintf("this server knows whole seconds only: %v are omitted", r.p.Omit),
		})
	}
	return nil
}

// next returns the next message of the control connection.
func (r *clientRun) next(ctx context.Context, idle time.Duration) (message, error) {
	return r.ctl.next(ctx, idle)
}

// frame takes a frame of the server's events, on the reader's goroutine.
func (r *clientRun) frame(m message) {
	if m.State != FrameEvent {
		return
	}
	var f ext.EventFrame
	if json.Unmarshal(m.Doc, &f) != nil {
		return
	}
	r.c.mu.Lock()
	r.lost = max(r.lost, f.Dropped)
	r.c.mu.Unlock()
	if ev, ok := ext.FromWire(f.Event, result.Server); ok {
		r.out.Event(ev)
	}
}

func (r *clientRun) sendFrame(f ext.ClientFrame) error {
	doc, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return r.ctl.send(AppendFrame(nil, FrameClient, doc), r.to.Answer)
}

// close frees everything. It runs at the end of every test, good or bad.
func (r *clientRun) close() {
	r.c.mu.Lock()
	r.c.run = nil
	r.c.mu.Unlock()
	r.frames.Stop()
	r.beside.abort()
	for _, s := range r.streams {
		_ = s.conn.Close()
	}
	if r.eng != nil {
		r.eng.Close()
	}
	if r.ctl != nil {
		if r.done {
			r.ctl.linger(min(r.to.Linger, time.Second)) // real servers close at once after our last word
		} else {
			r.ctl.close()
		}
	}
	if r.file != nil {
		_ = r.file.Close()
	}
	r.out.close()
	r.swap.close()
}
