package iperf3

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// The UDP half of a client: how large datagrams are, how wide their counters, and how
// streams are opened (spec §6, §7.3; docs/wire-extension.md §3).

// defaultUDPBlock is iperf3's where the control connection's MSS is of no use (spec §6).
const defaultUDPBlock = 1460

// fitDatagrams settles what the Plan leaves open before the parameters go out.
func (r *clientRun) fitDatagrams(ctx context.Context) error {
	if r.p.Transport != plan.UDP {
		return nil
	}
	usable := r.usableDatagram(ctx)
	if r.p.BlockSize == 0 {
		r.p.BlockSize = r.defaultDatagram(usable)
	}
	if !r.c.Plain && !r.p.AllowFragments {
		r.p.DontFragment = true
	}
	if usable > 0 && r.p.BlockSize > usable {
		if r.p.DontFragment && r.p.Sends(result.Client) {
			return tooLong(&traffic.TooLongError{Size: r.p.BlockSize, Usable: usable})
		}
		if !r.p.DontFragment {
			r.out.notice(result.Notice{
				Code: "fragments", Level: result.Warn,
				Text: fmt.Sprintf("datagrams of %d bytes travel as fragments: one packet of the path takes %d bytes of payload; one lost fragment loses the whole datagram", r.p.BlockSize, usable),
			})
		}
	}
	if !r.p.Counters64 && mayWrap(r.p) {
		r.p.Counters64, r.chose64 = true, true
	}
	return nil
}

const (
	linuxEMSGSIZE   = 90
	linuxECONNRESET = 104
)

// tooLong words that datagrams do not fit the path (field case F07); nil when err says
// something else.
func tooLong(err error) *result.Error {
	var long *traffic.TooLongError
	if !errors.As(err, &long) {
		return nil
	}
	e := &result.Error{
		Code: "datagram-too-long", Number: codeStreamWrite, Errno: linuxEMSGSIZE,
		Text: fmt.Sprintf("a block size of %d bytes does not fit one packet of the path, and fragmenting is off", long.Size),
	}
	if long.Usable > 0 {
		e.Text = fmt.Sprintf("a block size of %d bytes does not fit one packet of the path, which takes %d bytes of payload, and fragmenting is off", long.Size, long.Usable)
	}
	return e
}

// defaultDatagram is the size where none was asked for: what fits one packet of the
// path; in the manner of iperf3 the segment size of the control connection.
func (r *clientRun) defaultDatagram(usable int) int {
	mss := 0
	if r.head.Wire != nil {
		mss = r.head.Wire.ControlMSS
	}
	switch {
	case !r.c.Plain && usable >= plan.MinUDPBlock:
		return min(usable, plan.MaxUDPBlock)
	case mss >= 1 && mss <= plan.MaxUDPBlock:
		return max(mss, plan.MinUDPBlock)
	}
	return defaultUDPBlock
}

// usableDatagram is the payload of one packet on the way to the server, 0 = not known.
func (r *clientRun) usableDatagram(ctx context.Context) int {
	o := r.streamOptions(0)
	o.LocalPort, o.Window, o.FQRate = 0, 0, 0
	conn, _, err := osnet.Dial(ctx, "udp", r.addr, o)
	if err != nil {
		return 0 // what is wrong is said when the streams are opened
	}
	defer conn.Close()
	n, err := conn.UsableDatagram()
	if err != nil || n < plan.MinUDPBlock {
		return 0
	}
	return min(n, plan.MaxUDPBlock)
}

// The most datagrams a second that an unlimited sender is taken to manage, and how long
// a test without a limit is taken to last.
const (
	fastestSender  = 20e6
	endlessSeconds = 10 * 86400
)

// mayWrap reports that a stream's datagrams could be more than 2^31: a 32-bit counter is
// in doubt from there on (field case F03).
func mayWrap(p plan.Plan) bool {
	const half = 1 << 31
	size := float64(max(p.BlockSize, 1))
	switch {
	case p.Blocks > 0:
		return p.Blocks >= half
	case p.Bytes > 0:
		return float64(p.Bytes)/size >= half
	}
	rate := fastestSender
	for _, bps := range []int64{p.Bitrate, p.FQRate, p.MaxRate} {
		if bps > 0 {
			rate = min(rate, float64(bps)/8/size)
		}
	}
	length := (p.Duration + p.Omit).Seconds()
	if p.Duration == 0 {
		length = endlessSeconds
	}
	return rate*length >= half
}

// note64 tells that the client chose 64-bit counters, where the other end is not known
// to do the same by itself.
func (r *clientRun) note64() {
	if r.chose64 && !r.extendedUDP() {
		r.out.notice(result.Notice{
			Code: "udp-64bit-chosen", Level: result.Info,
			Text: "the test may send more datagrams than 32-bit counters can tell apart, so 64-bit ones were asked for (--udp-counters-64bit); iperf3 before 3.1 does not know them",
		})
	}
}

// extendedUDP reports that the UDP part of the extension is in use.
func (r *clientRun) extendedUDP() bool {
	return r.p.Transport == plan.UDP && r.hello.Has(ext.FeatureUDP)
}

// wideCounters: between two fullbores always.
func (r *clientRun) wideCounters() bool { return r.p.Counters64 || r.extendedUDP() }

// nonceOf is the mark of a test's datagrams, 0 = they carry none: there is no room, or
// one end does not know it.
func nonceOf(extended bool, nonce [8]byte, size int) uint64 {
	if !extended || size < datagramExtSize {
		return 0
	}
	return binary.BigEndian.Uint64(nonce[:])
}

// datagramExtSize is the least len that has room for send time and nonce.
const datagramExtSize = 32

func (r *clientRun) nonce() uint64 {
	if !r.extendedUDP() {
		return 0
	}
	var n [8]byte
	if b, err := hex.DecodeString(r.hello.Nonce); err == nil && len(b) == len(n) {
		copy(n[:], b)
	}
	return nonceOf(true, n, r.p.BlockSize)
}

// streamOptions are the socket options of stream i.
func (r *clientRun) streamOptions(i int) osnet.Options {
	o := osnet.Options{
		Family: r.p.Family, BindHost: r.p.BindHost, BindDev: r.p.BindDev, Window: r.p.Window, MSS: r.p.MSS, NoDelay: r.p.NoDelay,
		TOS: r.p.TOS, FlowLabel: r.p.FlowLabel, Congestion: r.p.Congestion, MPTCP: r.p.MPTCP, UserTimeout: r.p.SendTimeout,
		FQRate: r.p.FQRate, Timeout: r.to.Stream,
	}
	if r.p.Transport == plan.UDP {
		o.MSS, o.NoDelay, o.Congestion, o.MPTCP, o.UserTimeout = 0, false, "", false, 0
		o.DontFragment = r.p.DontFragment
	}
	if r.c.streamsFrom != "" {
		o.BindHost = r.c.streamsFrom
	}
	if r.p.ClientPort > 0 {
		o.LocalPort = r.p.ClientPort + i
	}
	return o
}

// errTaken ends the wait for answers: the server says that it has all streams, or has begun
// the test, whatever became of its answers.
var errTaken = errors.New("the server has all streams")

// openDatagrams opens the UDP streams: one after the other, or many at a time with an
// index each. Meanwhile it listens to the server.
func (r *clientRun) openDatagrams(ctx context.Context) error {
	dirs := directions(r.p.Direction, r.p.Streams)
	at := 1
	if r.extendedUDP() {
		at = min(ParallelOpen, len(dirs))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	streams := make([]stream, len(dirs))
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		notices []result.Notice
		next    int
	)
	taken, take := context.WithCancelCause(ctx)
	defer take(nil)
	for range at {
		wg.Go(func() { // ends when no stream is left, or with ctx
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= len(dirs) || ctx.Err() != nil {
					return
				}
				s := stream{dir: dirs[i], id: streamID(i)}
				ns, err := r.openDatagram(taken, i, &s)
				mu.Lock()
				streams[i] = s
				notices = append(notices, ns...)
				mu.Unlock()
				if err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	opened := make(chan struct{})
	go func() { // ends with the workers
		wg.Wait()
		close(opened)
	}()
	r.listenWhile(opened, func(err error) {
		if errors.Is(err, errTaken) {
			take(err)
		} else {
			cancel(err)
		}
	})
	for _, s := range streams {
		if s.conn != nil {
			r.streams = append(r.streams, s)
		}
	}
	r.out.notices(notices)
	if ctx.Err() != nil {
		return r.streamError(context.Cause(ctx))
	}
	return nil
}

// listenWhile takes the server's words until done: what ends the set-up goes to end.
func (r *clientRun) listenWhile(done <-chan struct{}, end func(error)) {
	in := r.ctl.in
	for {
		select {
		case <-done:
			return
		case x, ok := <-in:
			if !ok {
				x.err = errPeerClosed
			}
			switch {
			case x.err != nil:
				end(r.closedError(x.err))
				in = nil
			case x.m.State == StateTestRunning:
				r.begun = true
				end(errTaken)
				in = nil // what follows belongs to the test
			case x.m.State == FrameReady:
				var f ext.ReadyFrame
				if json.Unmarshal(x.m.Doc, &f) == nil && f.Ready {
					end(errTaken)
				}
			case x.m.State == StateTestStart, x.m.State.Frame():
			default:
				if e := r.refused(x.m); e != nil {
					end(e)
				} else {
					end(r.unknown(x.m))
				}
				in = nil
			}
		}
	}
}

// openDatagram makes the socket of stream i and gets it accepted; ctx ends the wait.
func (r *clientRun) openDatagram(ctx context.Context, i int, s *stream) ([]result.Notice, error) {
	conn, notices, err := osnet.Dial(ctx, "udp", r.addr, r.streamOptions(i))
	if err != nil {
		if errors.Is(context.Cause(ctx), errTaken) { // nonsense: this stream did not exist yet
			err = &result.Error{Code: "protocol", Remote: true, Number: codeMessage, Text: "the server began the test before its streams were there"}
		}
		return nil, err
	}
	s.conn = conn
	if err := r.granted(conn); err != nil {
		return notices, err
	}
	return notices, r.greetStream(ctx, i, s)
}

// How often a greeting is repeated.
const (
	repeatExtended = 250 * time.Millisecond
	repeatPlain    = time.Second
)

// greeter gets one UDP stream accepted.
type greeter struct {
	r     *clientRun
	s     *stream
	nc    net.Conn
	g     greeting
	words []byte        // as they are sent
	every time.Duration // between two of them
	buf   []byte
	wake  chan struct{} // closed when the end of ctx has interrupted the reading
}

// greetStream greets and waits for the answer. An extended greeting is repeated until it
// is answered. A plain one is repeated only on a stream that the server sends on: there
// nobody reads, while a server that receives would take a second greeting for data
// (spec §7.3).
func (r *clientRun) greetStream(ctx context.Context, i int, s *stream) error {
	x := &greeter{
		r: r, s: s, nc: s.conn.Net(), g: greeting{cookie: r.cookie, index: uint32(i)}, words: udpGreeting,
		every: r.to.UDPAnswer, buf: make([]byte, plan.MaxUDPBlock+1), wake: make(chan struct{}),
	}
	// Never before an answer can have come: a second one would lie among the data.
	switch {
	case r.extendedUDP():
		x.words, x.every = x.g.append(nil), max(repeatExtended, roundTrips(r.conn, 2))
	case s.dir == result.Down:
		x.every = max(repeatPlain, roundTrips(r.conn, 2))
	}
	stop := context.AfterFunc(ctx, func() {
		defer close(x.wake)
		_ = x.nc.SetReadDeadline(time.Unix(1, 0))
	})
	defer func() {
		if !stop() {
			<-x.wake
		}
		_ = x.nc.SetReadDeadline(time.Time{})
	}()
	for limit := time.Now().Add(r.to.UDPAnswer); ; {
		if _, err := x.nc.Write(x.words); err != nil {
			return r.greetingRefused(err)
		}
		if done, err := x.listen(ctx, earlier(time.Now().Add(x.every), limit)); done {
			return err
		}
		if !time.Now().Before(limit) {
			return r.noUDPAnswer()
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// listen waits for the answer until the greeting is to be repeated; done = it came, or
// never will.
func (x *greeter) listen(ctx context.Context, until time.Time) (done bool, err error) {
	for {
		_ = x.nc.SetReadDeadline(until)
		if ctx.Err() != nil {
			return true, x.taken(ctx)
		}
		n, err := x.nc.Read(x.buf)
		switch {
		case err == nil && x.answered(x.buf[:n]):
			return true, nil
		case err == nil:
			if t := decodeChallenge(x.buf[:n]); t != nil && x.g.token == nil && x.r.extendedUDP() {
				x.g.token = t
				x.words = x.g.append(nil)
				return false, nil // at once
			}
		case ctx.Err() != nil:
			return true, x.taken(ctx)
		case isNetTimeout(err):
			return false, nil
		default:
			return true, x.r.greetingRefused(err)
		}
	}
}

// answered reports that b says that the server has the stream.
func (x *greeter) answered(b []byte) bool {
	if isAnswer(b) {
		return true
	}
	if x.s.dir != result.Down || !plausibleDatagram(b, x.r.p.BlockSize, x.r.wideCounters(), x.r.nonce()) {
		return false
	}
	x.s.early++ // the test's data has overtaken the answer; it is as good as one
	return true
}

// taken says what the end of ctx means. When the server has the stream, its answer is
// read if it is there: it would lie among the data.
func (x *greeter) taken(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, errTaken) {
		return err
	}
	<-x.wake
	_ = x.nc.SetReadDeadline(time.Now().Add(time.Millisecond))
	for {
		if n, err := x.nc.Read(x.buf); err != nil || x.answered(x.buf[:n]) {
			return nil
		}
	}
}

// noUDPAnswer words silence (field case F08).
func (r *clientRun) noUDPAnswer() error {
	return &result.Error{
		Code: "udp-no-answer", Number: codeStreamConnect, Errno: linuxETIMEDOUT,
		Text: fmt.Sprintf("no UDP answer from port %d of %s for %v while TCP works: a firewall?", r.addr.Port(), r.addr.Addr(), r.to.UDPAnswer.Round(time.Millisecond)),
	}
}

// greetingRefused words an error of a socket whose greeting is not answered.
func (r *clientRun) greetingRefused(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return err
	}
	n := errno(err)
	e := &result.Error{
		Code: "udp-refused", Number: codeStreamConnect, Errno: n,
		Text: fmt.Sprintf("UDP to port %d of %s fails while TCP works: %s", r.addr.Port(), r.addr.Addr(), reason(err)),
	}
	if n == linuxECONNREFUSED || n == linuxECONNRESET { // Windows says reset
		e.Errno = linuxECONNREFUSED
		e.Text = fmt.Sprintf("UDP port %d of %s is refused (ICMP) while TCP works: nothing takes UDP there, or a firewall rejects it", r.addr.Port(), r.addr.Addr())
	}
	return e
}
