package traffic

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// netLink is a link over a net.Conn, on every system and connection.
type netLink struct {
	s     *stream
	wake  chan struct{} // a kick; capacity 1
	timer *time.Timer
	timed bool // a read deadline is set
}

func newNetLink(s *stream) *netLink { return &netLink{s: s, wake: make(chan struct{}, 1)} }

func (l *netLink) worker() string { return "goroutine" }

func (l *netLink) enter() { l.timer = time.NewTimer(time.Hour) }
func (l *netLink) leave() { l.timer.Stop() }

func (l *netLink) kick() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
	e, nc := l.s.e, l.s.Conn.Net()
	if l.s.Send && e.stopSend.Load() || !l.s.Send && e.stopRecv.Load() {
		nc.SetDeadline(time.Unix(1, 0))
	}
}

func (l *netLink) sleep(until int64) {
	l.timer.Reset(time.Duration(until - l.s.e.now()))
	select {
	case <-l.timer.C:
	case <-l.wake:
		l.timer.Stop()
	}
}

func (l *netLink) send(p []byte) (int, error) {
	n, err := l.s.Conn.Net().Write(p)
	if err == nil || n > 0 {
		return n, nil // what comes next tells the rest
	}
	return linkError(err)
}

func (l *netLink) receive(p []byte, until int64) (int, error) {
	switch {
	case until != 0:
		l.s.Conn.Net().SetReadDeadline(l.s.e.t0.Add(time.Duration(until)))
	case l.timed:
		l.s.Conn.Net().SetReadDeadline(time.Time{})
	}
	l.timed = until != 0
	return l.read(p)
}

func (l *netLink) receiveNow(p []byte) (int, error) {
	if n, err := l.s.Conn.RecvQueue(); err != nil || n == 0 {
		return -1, nil
	}
	return l.receive(p, 0)
}

func (l *netLink) read(p []byte) (int, error) {
	n, err := l.s.Conn.Net().Read(p)
	if err == nil || n > 0 {
		return n, nil
	}
	return linkError(err)
}

// linkError tells a call that was ended early from one that failed.
func linkError(err error) (int, error) {
	var errno syscall.Errno
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return -1, nil
	case isEOF(err):
		return -1, io.EOF
	case errors.As(err, &errno):
		return -1, posix(errno)
	}
	return -1, err
}
