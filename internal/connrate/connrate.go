// Package connrate opens and closes TCP connections at a given rate and counts what came of
// them: how many came about, how long the handshake took, and why others failed.
//
// Run makes one step; which rate comes next is the business of method.ConnRate.
package connrate

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/delay"
	"github.com/fullbore-net/fullbore/internal/pause"
	"github.com/fullbore-net/fullbore/result"
)

// Codes of failures.
const (
	Refused    = "refused"     // nobody listens, or a filter rejects
	Reset      = "reset"       // the other end took it and let it fall
	NoAnswer   = "no-answer"   // no SYN-ACK in time
	LocalPorts = "local-ports" // this host has no port left
	LocalFiles = "local-files" // this program may open no more
	Busy       = "busy"        // the peer answered that it takes no more tests
	Silent     = "silent"      // connected, and no byte came back in time
	Other      = "other"
)

// Options are one step.
type Options struct {
	Network string // "tcp", "tcp4", "tcp6"
	Address string // host and port
	Local   string // address to connect from; "" = the system's choice
	Rate    float64
	Length  time.Duration
	Timeout time.Duration // of one connection; 0 = 3 s
	// Exchange sends what Greeting gives (another one for each connection) and waits for one byte
	// before closing.
	Exchange bool
	Greeting func() []byte
	// Denied is the byte that says no.
	Denied byte
	// Abort closes with a reset, which leaves no port waiting on either end.
	Abort bool
}

// inFlight bounds the connections that are being opened at one time.
const inFlight = 8192

// overdue is how often its length a step may take that this host does not get to begin in time.
const overdue = 2

// Run begins as many connections as o.Rate makes in o.Length, each at its time, waits for the last of
// them, and counts. Those that this host is late for it begins as soon as it can: a step that took
// longer than it should says so by its Seconds, and one that it gave up by Tried. It ends early, with
// what there is, when ctx does. Its goroutines end before it returns.
func Run(ctx context.Context, o Options) result.ConnRateStep {
	if o.Timeout == 0 {
		o.Timeout = 3 * time.Second
	}
	c := &counter{faults: map[string]*result.ConnFault{}}
	asked := max(int64(math.Ceil(o.Rate*o.Length.Seconds()-1e-9)), 1)
	due := func(n int64) time.Duration { return time.Duration(float64(n) / o.Rate * float64(time.Second)) }
	planned := due(asked)
	places := make(chan struct{}, inFlight)
	var wait sync.WaitGroup
	var tried int64
	var held time.Duration
	start := time.Now()
	for tried < asked && ctx.Err() == nil {
		since := time.Since(start)
		if since >= overdue*planned {
			break
		}
		if early := due(tried) - since; early > 0 {
			pause.For(ctx, early)
			continue
		}
		select {
		case places <- struct{}{}:
		default: // a place is free after a connection's timeout at the latest
			since = time.Since(start)
			places <- struct{}{}
			held += time.Since(start) - since
		}
		tried++
		wait.Go(func() { // ends with its connection, which has a timeout
			c.one(ctx, &o)
			<-places
		})
	}
	span := time.Since(start)
	if ctx.Err() == nil && span < planned {
		pause.For(ctx, planned-span)
		span = planned
	}
	wait.Wait()
	return c.step(o.Rate, span, held, tried)
}

// counter is what the connections of a step share.
type counter struct {
	mu     sync.Mutex
	opened int64
	times  delay.Histogram
	faults map[string]*result.ConnFault
}

// one opens a connection, exchanges what is to be exchanged, and closes it.
func (c *counter) one(ctx context.Context, o *Options) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	var d net.Dialer
	if o.Local != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(o.Local)}
	}
	begin := time.Now()
	nc, err := d.DialContext(ctx, o.Network, o.Address)
	took := time.Since(begin)
	if err != nil {
		c.failed(faultOf(err), err)
		return
	}
	defer nc.Close()
	if tcp, ok := nc.(*net.TCPConn); ok && o.Abort {
		_ = tcp.SetLinger(0)
	}
	if o.Exchange {
		code, err := exchange(ctx, nc, o)
		if code != "" {
			c.failed(code, err)
			return
		}
	}
	c.mu.Lock()
	c.opened++
	c.times.Add(took.Nanoseconds())
	c.mu.Unlock()
}

var errDenied = errors.New("the peer takes no more tests at one time")

// exchange sends the greeting and reads one byte.
func exchange(ctx context.Context, nc net.Conn, o *Options) (code string, err error) {
	if at, ok := ctx.Deadline(); ok {
		_ = nc.SetDeadline(at)
	}
	if _, err := nc.Write(o.Greeting()); err != nil {
		return faultOf(err), err
	}
	var answer [1]byte
	if _, err := io.ReadFull(nc, answer[:]); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return Silent, err
		}
		if errors.Is(err, io.EOF) {
			return Reset, err
		}
		return faultOf(err), err
	}
	if answer[0] == o.Denied {
		return Busy, errDenied
	}
	return "", nil
}

func (c *counter) failed(code string, err error) {
	if errors.Is(err, context.Canceled) { // interrupted: it says nothing of the path
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.faults[code]
	if f == nil {
		f = &result.ConnFault{Code: code, Text: err.Error()}
		c.faults[code] = f
	}
	f.Count++
}

func (c *counter) step(rate float64, span, held time.Duration, tried int64) result.ConnRateStep {
	s := result.ConnRateStep{Asked: rate, Seconds: span.Seconds(), Held: held.Seconds(), Tried: tried, Opened: c.opened, Failed: []result.ConnFault{}, Connect: c.times.Quantiles()}
	if span > 0 {
		s.Rate = float64(c.opened) / span.Seconds()
	}
	for _, code := range []string{Refused, Reset, NoAnswer, LocalPorts, LocalFiles, Busy, Silent, Other} {
		if f := c.faults[code]; f != nil {
			s.Failed = append(s.Failed, *f)
		}
	}
	return s
}

// faultOf names what a connection failed by.
func faultOf(err error) string {
	var net net.Error
	switch {
	case is(err, connRefused):
		return Refused
	case is(err, connReset):
		return Reset
	case is(err, noPorts):
		return LocalPorts
	case is(err, noFiles):
		return LocalFiles
	case errors.Is(err, context.DeadlineExceeded), is(err, timedOut), errors.As(err, &net) && net.Timeout():
		return NoAnswer
	}
	return Other
}

func is(err error, list []error) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
