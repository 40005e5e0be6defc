package traffic

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/osnet"
)

// fdLink is a link with blocking calls on a locked thread: the kernel wakes it by itself,
// which is what a round trip should consist of.
type fdLink struct {
	s   *stream
	fd  int
	tid atomic.Int64 // 0 = not running
	ts  unix.Timespec
}

// newLink makes the best link that the connection can have.
func newLink(s *stream) (link, error) {
	fd, err := s.Conn.Detach()
	if errors.Is(err, errors.ErrUnsupported) {
		return newNetLink(s), nil
	}
	if err == nil {
		err = osnet.SetBlocking(fd, callTimeout)
	}
	if err != nil {
		return nil, fmt.Errorf("traffic: %w", err)
	}
	return &fdLink{s: s, fd: fd}, nil
}

func (l *fdLink) worker() string { return "thread" }

func (l *fdLink) enter() { l.tid.Store(int64(osnet.Thread())) }
func (l *fdLink) leave() { l.tid.Store(0) }

func (l *fdLink) kick() {
	if tid := l.tid.Load(); tid != 0 {
		osnet.Interrupt(int(tid))
	}
}

func (l *fdLink) sleep(until int64) {
	e := l.s.e
	l.ts = unix.NsecToTimespec(e.monoAt(min(until, e.now()+int64(callTimeout))))
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &l.ts, nil)
}

func (l *fdLink) send(p []byte) (int, error) {
	n, errno := osnet.Write(l.fd, p)
	if errno != 0 {
		return linkErrno(errno)
	}
	return n, nil
}

func (l *fdLink) receive(p []byte, _ int64) (int, error) {
	n, errno := osnet.Read(l.fd, p)
	return l.received(n, errno)
}

func (l *fdLink) receiveNow(p []byte) (int, error) {
	n, errno := osnet.ReadNow(l.fd, p)
	return l.received(n, errno)
}

func (l *fdLink) received(n int, errno syscall.Errno) (int, error) {
	switch {
	case errno != 0:
		return linkErrno(errno)
	case n == 0 && !l.s.e.udp():
		return -1, io.EOF
	}
	return n, nil
}

func linkErrno(errno syscall.Errno) (int, error) {
	if passing(errno) {
		return -1, nil
	}
	return -1, errno
}
