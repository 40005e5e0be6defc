package ntttcp

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullbore-net/fullbore/internal/proto/ext"
)

// syncConn is a sender's end of the sync connection. Its reader goroutine hands on one word
// at a time, frames go to the link, and it ends with the connection, or with close.
type syncConn struct {
	nc    net.Conn
	msgs  *mixed
	link  atomic.Pointer[link] // nil = the receiver is plain
	in    chan heard
	quit  chan struct{}
	ended chan struct{} // the reader is gone: the receiver closed it, or this end
	once  sync.Once
	wmu   sync.Mutex // one writer at a time
}

type heard struct {
	w   Word
	err error
}

var (
	errNoAnswer  = errors.New("no answer")
	errPeerEnded = errors.New("the sync connection was closed")
)

func newSyncConn(nc net.Conn) *syncConn {
	c := &syncConn{nc: nc, msgs: &mixed{r: nc}, in: make(chan heard), quit: make(chan struct{}), ended: make(chan struct{})}
	go c.read()
	return c
}

func (c *syncConn) read() {
	defer close(c.ended)
	defer close(c.in)
	for {
		it, err := c.msgs.next()
		if l := c.link.Load(); l != nil {
			if err != nil {
				l.closed()
			} else if it.frame != 0 {
				l.frame(it.frame, it.doc)
				continue
			}
		}
		select {
		case c.in <- heard{it.w, err}:
		case <-c.quit:
			return
		}
		if err != nil {
			return
		}
	}
}

// carry lets frames come, and go with write.
func (c *syncConn) carry(l *link) {
	c.link.Store(l)
	c.msgs.set(framed)
}

// say writes one word in one piece.
func (c *syncConn) say(w Word, within time.Duration) error {
	return writeTo(c.nc, &c.wmu, w.Append(nil), within)
}

// write writes frames, and ends a connection on which half of one may be under way.
func (c *syncConn) write(b []byte, within time.Duration) error {
	err := writeTo(c.nc, &c.wmu, b, within)
	if err != nil {
		_ = c.nc.Close()
	}
	return err
}

// writeTo writes b whole to a connection that several goroutines write to.
func writeTo(nc net.Conn, mu *sync.Mutex, b []byte, within time.Duration) error {
	mu.Lock()
	defer mu.Unlock()
	if err := nc.SetWriteDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	return ext.Write(nc, b)
}

// next returns the next word, waiting for it at most within; 0 = as long as it takes.
func (c *syncConn) next(ctx context.Context, within time.Duration) (Word, error) {
	var timeout <-chan time.Time
	if within > 0 {
		t := time.NewTimer(within)
		defer t.Stop()
		timeout = t.C
	}
	select {
	case h, ok := <-c.in:
		if !ok {
			return 0, errPeerEnded
		}
		return h.w, h.err
	case <-timeout:
		return 0, errNoAnswer
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// wait returns after d, or when the receiver has closed the connection: then it is gone and
// needs nothing. Words that still come are dropped. It may be called on nil.
func (c *syncConn) wait(d time.Duration) {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	var in chan heard
	if c != nil {
		in = c.in
	}
	for {
		select {
		case h, ok := <-in:
			if !ok || h.err != nil {
				return
			}
		case <-t.C:
			return
		}
	}
}

// close ends the connection and waits for the reader. It may be called on nil.
func (c *syncConn) close() {
	if c == nil {
		return
	}
	c.once.Do(func() { close(c.quit) })
	_ = c.nc.Close()
	<-c.ended
}
