package ntttcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// A Windows sender tries each connection so often, and no more of them at a time: its receiver
// opens the token ports only when all data connections are there (windows §3.2).
const (
	tokenTries    = 100
	tokenPause    = 100 * time.Millisecond
	tokenParallel = 10
)

// resolveHosts finds the receiver of every connection.
func (r *senderRun) resolveHosts(ctx context.Context) error {
	known := map[string]netip.Addr{}
	for _, h := range r.c.Hosts {
		if _, ok := known[h]; !ok {
			addrs, err := osnet.ResolveOn(ctx, h, r.c.Family, r.c.BindDev)
			if err != nil {
				return &result.Error{Code: "resolve", Text: err.Error()}
			}
			known[h] = addrs[0]
		}
		r.hosts = append(r.hosts, known[h])
	}
	return nil
}

// host is the receiver of connection i.
func (r *senderRun) host(i int) netip.Addr {
	if len(r.hosts) > 0 {
		return r.hosts[i]
	}
	return r.addr
}

// port is the data port of connection i.
func (r *senderRun) port(i int) int {
	if len(r.ports) > 0 {
		return r.ports[i]
	}
	return r.c.portOf(i)
}

// askPorts asks the receiver of every connection for its data port (-sp, windows §3.5).
func (r *senderRun) askPorts(ctx context.Context) error {
	n := r.c.connections()
	r.ports = make([]int, n)
	errs := make([]error, n)
	jobs := make(chan int)
	var wg sync.WaitGroup
	for range min(tokenParallel, n) {
		wg.Go(func() { // ends with jobs
			for i := range jobs {
				r.ports[i], errs[i] = r.askPort(ctx, i)
			}
		})
	}
	for i := range n {
		jobs <- i
	}
	close(jobs)
	wg.Wait()
	for _, err := range errs {
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case osnet.Refused(err):
			return connectError(err, r.c.Port)
		default:
			return &result.Error{Code: "no-answer", Remote: true, Errno: osnet.Errno(err), Text: fmt.Sprintf(
				"port %d of the receiver does not tell a data port (%v): was it started with -sp?", r.c.Port, err)}
		}
	}
	return nil
}

func (r *senderRun) askPort(ctx context.Context, i int) (int, error) {
	o := osnet.Options{Family: r.c.Family, BindHost: r.c.BindHost, BindDev: r.c.BindDev, Timeout: r.to.Connect}
	c, _, err := r.persist(ctx, string(plan.TCP), netip.AddrPortFrom(r.host(i), uint16(r.c.Port)), o)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	var b [PortSize]byte
	if err := r.readToken(ctx, c, b[:]); err != nil {
		return 0, err
	}
	p, err := ParsePort(b[:])
	return int(p), err
}

// persist dials as a Windows sender does: a receiver that is not there yet is tried again. Only
// refusals are.
func (r *senderRun) persist(ctx context.Context, network string, to netip.AddrPort, o osnet.Options) (*osnet.Conn, []result.Notice, error) {
	for try := 1; ; try++ {
		c, notices, err := r.connect(ctx, network, to, o)
		if err == nil || try >= r.tries || !osnet.Refused(err) || ctx.Err() != nil {
			return c, notices, err
		}
		t := time.NewTimer(stretched(tokenPause, r.second))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
}

// swapTokens sends and awaits a token for every data connection, and returns when all are in: then
// the receiver is ready.
func (r *senderRun) swapTokens(ctx context.Context) error {
	n := r.c.connections()
	jobs := make(chan int)
	errs := make([]error, n)
	var waiting sync.WaitGroup // those that have sent theirs wait without a slot
	var dialling sync.WaitGroup
	for range min(tokenParallel, n) {
		dialling.Go(func() { // ends with jobs
			for i := range jobs {
				c, err := r.openToken(ctx, i)
				if err != nil {
					errs[i] = err
					continue
				}
				waiting.Go(func() { errs[i] = r.awaitToken(ctx, i, c) })
			}
		})
	}
	for i := range n {
		jobs <- i
	}
	close(jobs)
	dialling.Wait()
	waiting.Wait()
	for i, err := range errs {
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			port := r.port(i) + TokenOffset
			e := &result.Error{Code: "no-answer", Remote: true, Errno: osnet.Errno(err), Text: fmt.Sprintf(
				"no token from port %d of the receiver (%v): it was started without synchronising (-ns) or with other threads or ports, or a firewall passes the data ports only", port, err)}
			if errors.Is(err, io.EOF) {
				e.Code = "peer-closed"
			}
			return e
		}
	}
	return r.meetTokens(ctx)
}

// openToken connects to the token port of connection i and sends the token.
func (r *senderRun) openToken(ctx context.Context, i int) (*osnet.Conn, error) {
	o := osnet.Options{Family: r.c.Family, BindHost: r.c.BindHost, BindDev: r.c.BindDev, Window: r.c.Window, NoDelay: true, Timeout: r.to.Connect}
	c, _, err := r.persist(ctx, string(plan.TCP), netip.AddrPortFrom(r.host(i), uint16(r.port(i)+TokenOffset)), o)
	if err != nil {
		return nil, err
	}
	_ = c.Net().SetWriteDeadline(time.Now().Add(r.to.Answer))
	if _, err := c.Net().Write([]byte{r.token(i)}); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// awaitToken reads the receiver's token, of whatever value, and closes, unless it is a fullbore's
// greeting. The receiver may be waiting for other senders.
func (r *senderRun) awaitToken(ctx context.Context, i int, c *osnet.Conn) error {
	var b [1]byte
	err := r.readToken(ctx, c, b[:])
	if err == nil && b[0] == TokenFullbore && r.token(i) == TokenFullbore {
		_ = c.Net().SetDeadline(time.Time{})
		r.greeting = c
		return nil
	}
	_ = c.Close()
	return err
}

// readToken fills b, waiting as long as a set-up may take.
func (r *senderRun) readToken(ctx context.Context, c *osnet.Conn, b []byte) error {
	stop := context.AfterFunc(ctx, func() { _ = c.Net().SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if d := r.c.WaitTimeout; d > 0 && ctx.Err() == nil {
		_ = c.Net().SetReadDeadline(time.Now().Add(d))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	_, err := io.ReadFull(c.Net(), b)
	return err
}
