package iperf3

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/result"
)

// openStreams makes the data connections: one after the other, whose order is what
// gives them their ids (spec §7), or many at a time with an index each.
func (r *clientRun) openStreams(ctx context.Context) error {
	dirs := directions(r.p.Direction, r.p.Streams)
	streams := make([]stream, len(dirs))
	at := 1
	indexed := r.hello.has(FeatureIndex)
	if indexed {
		at = min(ParallelOpen, len(dirs))
	}
	ctx, cancel := context.WithCancelCause(ctx)
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
	return nil
}

// openStream connects stream i and sends its greeting.
func (r *clientRun) openStream(ctx context.Context, i int, indexed bool) (*osnet.Conn, []result.Notice, error) {
	o := osnet.Options{
		Family: r.p.Family, BindHost: r.p.BindHost, BindDev: r.p.BindDev, Window: r.p.Window, MSS: r.p.MSS, NoDelay: r.p.NoDelay,
		TOS: r.p.TOS, FlowLabel: r.p.FlowLabel, Congestion: r.p.Congestion, MPTCP: r.p.MPTCP, UserTimeout: r.p.SendTimeout,
		FQRate: r.p.FQRate, Timeout: r.to.Stream,
	}
	if r.p.ClientPort > 0 {
		o.LocalPort = r.p.ClientPort + i
	}
	conn, notices, err := osnet.Dial(ctx, "tcp", r.addr, o)
	if err != nil {
		return nil, nil, err
	}
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
