package iperf3

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/result"
)

// openStreams makes the data connections: one after the other, whose order is what
// gives them their ids (spec §7), or many at a time with an index each.
func (r *clientRun) openStreams(ctx context.Context) error {
	dirs := directions(r.p.Direction, r.p.Streams)
	streams := make([]stream, len(dirs))
	at := 1
	indexed := r.hello.Has(ext.FeatureIndex)
	if indexed {
		at = min(ParallelOpen, len(dirs))
	}
	parent := ctx
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		notices []result.Notice
		next    int
	)
	for range at {
		wg.Add(1)
		go func() { // ends when no stream is left, or with ctx
			defer wg.Done()
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= len(dirs) || ctx.Err() != nil {
					return
				}
				conn, ns, err := r.openStream(ctx, i, indexed)
				if err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				streams[i] = stream{conn: conn, dir: dirs[i], id: streamID(i)}
				notices = append(notices, ns...)
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	for _, s := range streams {
		if s.conn != nil {
			r.streams = append(r.streams, s)
		}
	}
	r.out.notices(notices)
	if ctx.Err() != nil {
		return r.streamError(context.Cause(ctx))
	}
	if indexed && r.hello.Has(ext.FeatureToken) {
		return r.awaitReady(parent)
	}
	return nil
}

// awaitReady waits until the server has all streams, and meanwhile proves those that seem
// to come from another address (design §5 "Who may").
func (r *clientRun) awaitReady(ctx context.Context) error {
	wait := r.answer() + time.Duration(len(r.streams))*2*time.Millisecond
	for {
		m, err := r.next(ctx, wait)
		if err != nil {
			return r.waitError(err, fmt.Sprintf("to take the %d streams", len(r.streams)))
		}
		switch m.State {
		case FrameReady:
			var f ext.ReadyFrame
			if json.Unmarshal(m.Doc, &f) != nil {
				continue
			}
			for _, i := range f.Prove {
				if err := r.prove(i); err != nil {
					return r.streamError(err)
				}
			}
			if f.Ready {
				return nil
			}
		case StateTestStart:
		case StateTestRunning:
			r.begun = true
			return nil
		default:
			if err := r.refused(m); err != nil {
				return err
			}
			return r.unknown(m)
		}
	}
}

// prove sends back the token that the server has put on stream i, where nothing else
// travels yet.
func (r *clientRun) prove(i int) error {
	if i < 0 || i >= len(r.streams) {
		return &result.Error{Code: "protocol", Remote: true, Number: codeMessage, Text: fmt.Sprintf("the server wants stream %d to be proved, which does not exist", i)}
	}
	nc := r.streams[i].conn.Net()
	_ = nc.SetDeadline(time.Now().Add(r.to.Answer))
	defer func() { _ = nc.SetDeadline(time.Time{}) }()
	var b [challengeSize]byte
	if _, err := io.ReadFull(nc, b[:]); err != nil {
		return fmt.Errorf("read the token of stream %d: %w", i, err)
	}
	t := decodeChallenge(b[:])
	if t == nil {
		return &result.Error{Code: "protocol", Remote: true, Number: codeMessage, Text: fmt.Sprintf("stream %d carries no token", i)}
	}
	if _, err := nc.Write(t[:]); err != nil {
		return fmt.Errorf("send back the token of stream %d: %w", i, err)
	}
	return nil
}

// openStream connects stream i and sends its greeting.
func (r *clientRun) openStream(ctx context.Context, i int, indexed bool) (*osnet.Conn, []result.Notice, error) {
	began := time.Now()
	conn, notices, err := osnet.Dial(ctx, "tcp", r.addr, r.streamOptions(i))
	if err != nil {
		return nil, nil, err
	}
	r.noteConnect(began)
	if err := r.granted(conn); err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	greeting := r.cookie[:]
	if indexed {
		greeting = binary.BigEndian.AppendUint32(append([]byte{}, greeting...), uint32(i))
	}
	_ = conn.Net().SetWriteDeadline(time.Now().Add(r.to.Answer))
	if _, err := conn.Net().Write(greeting); err != nil {
		_ = conn.Close()
		return nil, nil, fmt.Errorf("send cookie on a stream: %w", err)
	}
	_ = conn.Net().SetWriteDeadline(time.Time{})
	return conn, notices, nil
}

// granted is the fault of a stream whose buffers are smaller than they must be (iperf3:
// IESETBUF2, iperf_tcp.c, iperf_tcp_connect).
func (r *clientRun) granted(c *osnet.Conn) error {
	if !r.p.StrictWindow {
		return nil
	}
	snd, rcv, err := c.Buffers()
	if err != nil {
		return nil //nolint:nilerr // what cannot be read cannot be held against the system
	}
	if w := osnet.Clamped(r.p.Window, snd, rcv); w != nil && w.BelowReported() {
		return &result.Error{Code: "option", Number: codeBufferMismatch, Text: w.Error()}
	}
	return nil
}

// streamError prefers what the server says on the control connection to what the
// socket said: a server that gives up closes everything.
func (r *clientRun) streamError(err error) error {
	var told *result.Error
	if errors.As(err, &told) {
		return told
	}
	if !isOptionError(err) {
		ctx, cancel := context.WithTimeout(context.Background(), r.to.Reason)
		defer cancel()
		if m, merr := r.next(ctx, r.to.Reason); merr == nil {
			if e := r.refused(m); e != nil {
				return e
			}
		}
	}
	return optionError(err)
}

// isOptionError reports that this end could not make the socket as asked.
func isOptionError(err error) bool {
	var opt *osnet.OptionError
	var cc *osnet.CongestionError
	var addr *osnet.AddrError
	return errors.As(err, &opt) || errors.As(err, &cc) || errors.As(err, &addr)
}

// optionCodes are iperf3's numbers for the socket options of osnet.OptionError.
var optionCodes = map[string]int{
	"window": codeSetBuf, "mss": codeSetMSS, "no-delay": 122, "tos": codeSetTOS, "flow-label": codeSetFlow,
	"bind-dev": codeBindDev, "user-timeout": codeUserTimeout, "keepalive": 155, "fq-rate": codeSetPacing, "dont-fragment": codeDontFragment,
}

// optionError words why a stream could not be made.
func optionError(err error) *result.Error {
	e := &result.Error{Code: "stream", Text: "open a stream: " + err.Error(), Number: codeStreamConnect, Errno: errno(err)}
	var opt *osnet.OptionError
	var cc *osnet.CongestionError
	var addr *osnet.AddrError
	switch {
	case errors.As(err, &cc):
		e.Code, e.Number, e.Text = "option", codeCongestion, cc.Error()
	case errors.As(err, &opt):
		e.Code, e.Text = "option", opt.Error()
		if n, ok := optionCodes[opt.Option]; ok {
			e.Number = n
		}
	case errors.As(err, &addr):
		e.Code = "address"
	}
	return e
}
