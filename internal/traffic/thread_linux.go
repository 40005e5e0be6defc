package traffic

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
)

// thread moves one flow with blocking calls on a locked thread: with one flow per core
// nothing is cheaper, as the kernel wakes the thread right inside its copy loop.
type thread struct {
	s    *stream
	i    int // number among the workers of its direction
	fd   int
	buf  []byte
	gun  gun
	tid  atomic.Int64 // 0 = not running
	beat int64        // when it last went through the scheduler
	low  lowat
	// fast: many blocks at once are little time, so a call may take several. sent and
	// sentAt are those of the last look.
	fast         bool
	sent, sentAt int64
}

func newThread(s *stream, i int) (*thread, error) {
	fd, err := s.Conn.Detach()
	if err != nil {
		return nil, err
	}
	if err := osnet.SetBlocking(fd, callTimeout); err != nil {
		return nil, err
	}
	t := &thread{s: s, i: i, fd: fd}
	if s.Send {
		t.gun = newGun(s.e)
	} else {
		t.buf = s.e.shared.buffers[i%len(s.e.shared.buffers)]
	}
	t.low = lowat{fd: fd, off: s.e.mustSeeAll(), up: threadLowatUp}
	return t, nil
}

func (t *thread) sends() bool { return t.s.Send }

// kick interrupts the present call. One that comes just before the call begins is
// lost, hence callTimeout; whoever must be sure kicks again.
func (t *thread) kick() {
	if tid := t.tid.Load(); tid != 0 {
		osnet.Interrupt(int(tid))
	}
}

func (t *thread) close() { t.gun.close() }

func (t *thread) run() {
	s := t.s
	defer s.e.pin(t.i, s.e.paced(s.Send))()
	t.tid.Store(int64(osnet.Thread()))
	if s.Send {
		t.send()
		s.release()
	} else {
		t.receive()
	}
	t.tid.Store(0)
	s.ctr.stopped.Store(max(s.e.now(), 1))
}

// breathe goes through Go's scheduler if it is time to, and reports that.
func (t *thread) breathe(now int64) bool {
	if now-t.beat < beat {
		return false
	}
	t.beat = now
	runtime.Gosched()
	return true
}

func (t *thread) send() {
	now := t.s.e.now()
	for more := true; more && !t.s.e.stopSend.Load(); {
		now, more = t.sendOnce(now)
	}
}

// sendOnce makes one call, or one pause, and reports whether there may be more.
func (t *thread) sendOnce(now int64) (int64, bool) {
	s := t.s
	now = s.fresh(now)
	n, wait := s.next(now)
	if n == 0 {
		if wait < 0 {
			return now, false
		}
		osnet.Sleep(min(time.Duration(wait), callTimeout))
		return s.e.now(), true
	}
	s.calling(now)
	m, errno := t.gun.send(t.fd, s.position(n), n, t.fast && s.rate == 0)
	now = s.e.now()
	switch {
	case errno == 0:
		s.wrote(m, now)
	case !passing(errno):
		s.end(sendError(errno))
		return now, false
	}
	if t.breathe(now) {
		bytes := s.ctr.bytes.Load()
		rate := float64(bytes-t.sent) / seconds(now-t.sentAt)
		t.fast = rate > severalUp || t.fast && rate > severalUp/2
		t.sent, t.sentAt = bytes, now
	}
	return now, true
}

func (t *thread) receive() {
	now := t.s.e.now()
	for !t.s.e.stopRecv.Load() {
		var more bool
		if now, more = t.readOnce(now); !more {
			return
		}
	}
	t.low.set(1)
	if t.s.e.drain.Load() {
		t.s.drainFD(t.fd, t.buf)
	}
}

// readOnce makes one call, or one pause, and reports whether there may be more.
func (t *thread) readOnce(now int64) (int64, bool) {
	s := t.s
	now = s.fresh(now)
	want, wait := s.wants(len(t.buf), now)
	if want == 0 {
		osnet.Sleep(min(time.Duration(wait), callTimeout))
		return s.e.now(), true
	}
	s.calling(now)
	n, errno := t.read(want)
	now = s.e.now()
	switch {
	case errno == 0 && n > 0:
		s.read(n, now)
		if !s.verified(t.buf[:n]) {
			return now, false
		}
	case errno == 0:
		s.end(io.EOF)
		return now, false
	case !passing(errno):
		s.end(receiveError(errno))
		return now, false
	}
	if t.breathe(now) {
		t.low.adjust(s.ctr.bytes.Load(), now, beat/2)
	}
	return now, true
}

func (t *thread) read(want int) (int, syscall.Errno) {
	if t.s.e.discard {
		return osnet.Discard(t.fd, t.buf[:want])
	}
	return osnet.Read(t.fd, t.buf[:want])
}

// severalUp is the rate in bytes/s from which a blocking call may take several blocks:
// the most it takes is then 2 ms of data.
const severalUp = copyAtOnce / 0.002

func sendError(errno syscall.Errno) error {
	return fmt.Errorf("traffic: send: %w", os.NewSyscallError("write", errno))
}

func receiveError(errno syscall.Errno) error {
	return fmt.Errorf("traffic: receive: %w", os.NewSyscallError("read", errno))
}
