package iperf3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullbore-net/fullbore/internal/proto/ext"
)

// control is one end of a control connection. Its reader goroutine takes messages off
// the socket and hands them on one at a time; it ends with the connection, or with
// close. Frames of events go to onFrame, on that goroutine, so that they never wait
// for whoever reads states.
type control struct {
	nc      net.Conn
	client  bool // this end is the client
	onFrame func(message)

	in     chan inbound // closed after the last
	quit   chan struct{}
	ended  chan struct{} // the reader is gone
	docs   *budget       // room for large documents; nil = unlimited
	maxDoc atomic.Int64  // longest document acceptable now

	lastRead atomic.Int64 // UnixNano of the last byte, for progress
	// framed: the peer may send frames. A client allows them with its parameters: what
	// looks like one before is another protocol ('H' is a frame's number).
	framed atomic.Bool

	mu    sync.Mutex
	first []byte // the first bytes received, to name a peer that is none of ours
	cause error  // why this end closed the connection by itself

	wmu      sync.Mutex
	broken   atomic.Bool // breakWrite was called
	stopOnce sync.Once
}

// inbound is a message, or why none follows.
type inbound struct {
	m   message
	err error
}

const firstBytes = 64

// Errors of a control connection. errTimeout is an answer that did not come.
var (
	errPeerClosed = errors.New("the control connection was closed")
	errTimeout    = errors.New("no answer")
	errEarlyFrame = errors.New("a frame before the parameters")
)

// newControl takes over nc and starts reading it. maxDoc bounds documents.
func newControl(nc net.Conn, client bool, maxDoc int, docs *budget, onFrame func(message)) *control {
	c := &control{
		nc: nc, client: client, onFrame: onFrame, docs: docs,
		in: make(chan inbound), quit: make(chan struct{}), ended: make(chan struct{}),
	}
	c.maxDoc.Store(int64(maxDoc))
	c.framed.Store(!client)
	go c.read()
	return c
}

// read is the reader goroutine: it ends when the connection does or is closed.
func (c *control) read() {
	defer close(c.ended)
	defer close(c.in)
	var buf []byte
	var held int64
	defer func() { c.docs.give(held) }()
	chunk := make([]byte, 4096)
	for {
		n, err := c.nc.Read(chunk)
		if n > 0 {
			c.lastRead.Store(time.Now().UnixNano())
			c.remember(chunk[:n])
			buf = append(buf, chunk[:n]...)
			if n == len(chunk) && len(chunk) < 64<<10 {
				chunk = make([]byte, 2*len(chunk)) // a large document is coming
			}
		}
		var ok bool
		if buf, ok = c.take(buf, err != nil); !ok {
			return
		}
		if err != nil {
			c.put(inbound{err: c.closeError(err, len(buf) > 0)})
			return
		}
		// What is buffered beyond a small message is room that all connections share.
		if want := int64(len(buf)) - freeDocument; want > held {
			if !c.docs.take(want - held) {
				c.put(inbound{err: errors.New("too many large messages at once")})
				return
			}
			held = want
		} else if len(buf) == 0 {
			c.docs.give(held)
			held = 0
		}
	}
}

// take hands on every complete message in buf and returns the rest; false = stop.
func (c *control) take(buf []byte, eof bool) ([]byte, bool) {
	for {
		if len(buf) > 0 && State(buf[0]).Frame() && !c.framed.Load() {
			c.put(inbound{err: errEarlyFrame})
			return nil, false
		}
		m, n, err := decodeMessage(buf, limits{int(c.maxDoc.Load()), MaxFrame}, c.client, eof)
		if err != nil {
			c.put(inbound{err: err})
			return nil, false
		}
		if n == 0 {
			return buf, true
		}
		m.Doc = bytes.Clone(m.Doc)
		buf = buf[n:]
		if len(buf) == 0 {
			buf = nil
		}
		switch {
		case m.State == FrameHello || m.State == FrameQueue || m.State == FrameReady && c.client || !m.State.Frame():
			if !c.put(inbound{m: m}) {
				return nil, false
			}
		case c.onFrame != nil:
			c.onFrame(m)
		}
	}
}

func (c *control) put(i inbound) bool {
	select {
	case c.in <- i:
		return true
	case <-c.quit:
		return false
	}
}

func (c *control) closeError(err error, partial bool) error {
	c.mu.Lock()
	cause := c.cause
	c.mu.Unlock()
	switch {
	case cause != nil:
		return cause
	case errors.Is(err, io.EOF) && partial:
		return fmt.Errorf("%w in the middle of a message", errPeerClosed)
	case errors.Is(err, io.EOF):
		return errPeerClosed
	}
	return fmt.Errorf("%w: %w", errPeerClosed, err)
}

func (c *control) remember(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if room := firstBytes - len(c.first); room > 0 {
		c.first = append(c.first, b[:min(room, len(b))]...)
	}
}

func (c *control) firstBytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.first)
}

// next returns the next message. It gives up with errTimeout when nothing at all
// arrived for idle, or the message is not whole after ten times idle; and with ctx's
// cause when ctx ends.
func (c *control) next(ctx context.Context, idle time.Duration) (message, error) {
	start := time.Now()
	limit := start.Add(10 * idle)
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		select {
		case i, ok := <-c.in:
			if !ok {
				return message{}, errPeerClosed
			}
			return i.m, i.err
		case <-ctx.Done():
			return message{}, context.Cause(ctx)
		case now := <-timer.C:
			last := time.Unix(0, c.lastRead.Load())
			if last.Before(start) {
				last = start
			}
			left := min(idle-now.Sub(last), limit.Sub(now))
			if left <= 0 {
				return message{}, errTimeout
			}
			timer.Reset(left)
		}
	}
}

// send writes b whole within the given time. Frames and states share the connection,
// so a writer waits for the one before it.
func (c *control) send(b []byte, within time.Duration) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if err := c.nc.SetWriteDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	return ext.Write(c.nc, b)
}

// sendFrame sends a frame beside the conversation. When it cannot be sent whole nothing
// can follow it, so the connection is closed; readers of states are told that the peer
// does not read.
func (c *control) sendFrame(b []byte, within time.Duration) error {
	err := c.sendPatiently(b, within)
	if err != nil {
		c.mu.Lock()
		if c.cause == nil && isNetTimeout(err) {
			c.cause = errTimeout
		}
		c.mu.Unlock()
		_ = c.nc.Close()
	}
	return err
}

// sendPatiently writes b whole. A peer that itself was heard within the given time is not
// gone: a load of our own that fills the path (a policer drops what is above its rate, this
// connection's segments too) may hold a frame up for longer. Ten times as long is enough.
func (c *control) sendPatiently(b []byte, within time.Duration) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	for start := time.Now(); ; {
		now := time.Now()
		if err := c.nc.SetWriteDeadline(now.Add(within)); err != nil {
			return err
		}
		if c.broken.Load() {
			c.breakWrite()
		}
		n, err := ext.WriteSome(c.nc, b)
		if err == nil {
			return nil
		}
		b = b[n:]
		heard := time.Unix(0, c.lastRead.Load())
		if !isNetTimeout(err) || c.broken.Load() || time.Since(heard) >= within || time.Since(start) >= 10*within {
			return err
		}
	}
}

// breakWrite makes a write that is under way fail, and frames after it.
func (c *control) breakWrite() {
	c.broken.Store(true)
	_ = c.nc.SetWriteDeadline(time.Unix(1, 0))
}

func (c *control) sendState(within time.Duration, states ...State) error {
	b := make([]byte, len(states))
	for i, s := range states {
		b[i] = byte(s)
	}
	return c.send(b, within)
}

// closeWrite ends our half of the connection.
func (c *control) closeWrite() {
	if h, ok := c.nc.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite() // the peer may be gone already
	}
}

// linger closes so that the peer can read our last words: end of our half, then read
// until its end, at most for d. A close with unread input would reset the connection
// and destroy them (spec §18).
func (c *control) linger(d time.Duration) {
	if d > 0 {
		c.closeWrite()
		_ = c.nc.SetReadDeadline(time.Now().Add(d))
		c.stop()
		<-c.ended                                    // the reader may have taken a part
		_, _ = io.CopyN(io.Discard, c.nc, maxLinger) // a peer that keeps talking is cut off
	}
	c.close()
}

// maxLinger is how much a peer may still send after our last words.
const maxLinger = 1 << 20

// stop makes the reader leave at its next message.
func (c *control) stop() { c.stopOnce.Do(func() { close(c.quit) }) }

// close ends the connection at once and waits for the reader.
func (c *control) close() {
	c.stop()
	_ = c.nc.Close()
	<-c.ended
}

// freeDocument is the size up to which a message needs no room from the budget.
const freeDocument = 256 << 10

// budget bounds the memory that large documents of all connections take together. A nil
// budget has no bound.
type budget struct{ left atomic.Int64 }

func newBudget(n int64) *budget {
	b := &budget{}
	b.left.Store(n)
	return b
}

// take reports whether n more bytes may be used, and counts them if so.
func (b *budget) take(n int64) bool {
	if b == nil || n <= 0 {
		return true
	}
	if b.left.Add(-n) < 0 {
		b.left.Add(n)
		return false
	}
	return true
}

func (b *budget) give(n int64) {
	if b != nil && n > 0 {
		b.left.Add(n)
	}
}
