package traffic

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

const (
	// callTimeout bounds every blocking call, so that a lost interrupt costs little.
	callTimeout = 200 * time.Millisecond
	// beat is how often a worker goes through Go's scheduler. A goroutine that has not for
	// 10 ms has its processor taken away in each system call, and the monitor thread then
	// polls every 20 µs (runtime/proc.go, retake): measured at a third of all CPU time
	// (docs/adr/0001-workers.md).
	beat = int64(4 * time.Millisecond)
	// zeroCopyBlock is the smallest block for which moving pages beats copying.
	zeroCopyBlock = 32 << 10
	// A thread's flow reads what its low-water mark collects; many flows share a buffer
	// that should stay in the cache.
	threadBuffer  = 512 << 10
	copyBuffer    = 128 << 10
	discardBuffer = 1 << 20
)

// shared is what all workers of one engine share.
type shared struct {
	payload *osnet.Payload
	// buffers are read into by all receivers and looked at by nobody: one per worker that
	// can run at the same time keeps them in that core's cache. With Verify, one per worker.
	buffers [][]byte
	procs   func() // gives GOMAXPROCS back
}

// buildFast makes movers for the flows that the system calls of this file can serve,
// and returns the others.
func (e *Engine) buildFast(flows []*stream) (rest []*stream, err error) {
	var tx, rx []*stream
	for _, s := range flows {
		if s.Send && e.cfg.Source == nil && e.shared.payload == nil {
			p, err := osnet.NewPayload(e.cfg.BlockSize, e.cfg.fill)
			if err != nil {
				return flows, nil // no memfd: nothing is lost but speed
			}
			e.shared.payload = p
			e.chooseTx()
		}
		if s.Send && e.cfg.Source != nil || !s.Send && e.cfg.Sink != nil {
			rest = append(rest, s)
			continue
		}
		switch _, err := s.Conn.Detach(); {
		case errors.Is(err, errors.ErrUnsupported):
			rest = append(rest, s)
		case err != nil:
			return nil, fmt.Errorf("traffic: %w", err)
		case s.Send:
			tx = append(tx, s)
		default:
			rx = append(rx, s)
		}
	}
	if len(rx) > 0 {
		if err := e.reserve(len(rx)); err != nil {
			return nil, err
		}
	}
	for _, group := range [][]*stream{tx, rx} {
		if err := e.addWorkers(group); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// reserve makes the receivers' buffers.
func (e *Engine) reserve(receivers int) error {
	e.discard = e.cfg.Receive == plan.Discard && !e.cfg.Verify && osnet.Capabilities().Discard
	size := copyBuffer
	if receivers <= e.threadsAtMost() {
		size = threadBuffer
	}
	if e.discard {
		size = discardBuffer
	}
	if e.cfg.CountCalls {
		size = e.cfg.BlockSize
	}
	buffers := min(receivers, e.parallel())
	if e.cfg.Verify && receivers <= e.threadsAtMost() {
		buffers = receivers
	}
	for range buffers {
		b, err := osnet.ReserveBuffer(size)
		if err != nil {
			return err
		}
		e.shared.buffers = append(e.shared.buffers, b)
	}
	return nil
}

// parallel is how many workers of one direction can run at once.
func (e *Engine) parallel() int {
	if n := len(e.cfg.Affinity); n > 0 {
		return n
	}
	return runtime.NumCPU()
}

// threadsAtMost is up to how many flows each gets a thread of its own: two per core, and
// four in any case.
func (e *Engine) threadsAtMost() int { return max(2*e.parallel(), 4) }

// addWorkers gives each of a few flows a blocking thread of its own, and shares many out
// to one epoll worker per core (docs/adr/0001-workers.md).
func (e *Engine) addWorkers(group []*stream) error {
	n := e.parallel()
	if len(group) == 0 {
		return nil
	}
	if len(group) <= e.threadsAtMost() {
		for i, s := range group {
			t, err := newThread(s, i)
			if err != nil {
				return err
			}
			e.movers = append(e.movers, t)
		}
		e.path.Worker = "thread"
		return nil
	}
	e.path.Worker = "epoll"
	for w := range n {
		var part []*stream
		for i := w; i < len(group); i += n {
			part = append(part, group[i])
		}
		set, err := newEpollSet(part, w)
		if err != nil {
			return err
		}
		e.movers = append(e.movers, set)
	}
	return nil
}

// The ways to send, from the cheapest to the one that always works. A worker that
// finds its way refused takes the next for the whole engine.
const (
	txCopy int32 = iota
	txSendFile
	txSplice
)

func (e *Engine) chooseTx() {
	way := txCopy
	caps := osnet.Capabilities()
	if e.cfg.Send == plan.SendZeroCopy || e.cfg.Send == plan.SendCheapest && e.cfg.BlockSize >= zeroCopyBlock {
		switch {
		case caps.Splice:
			way = txSplice
		case caps.SendFile:
			way = txSendFile
		}
	}
	e.tx.Store(way)
}

// txPath names the way in use.
func (e *Engine) txPath() string {
	switch e.tx.Load() {
	case txSplice:
		return "vmsplice"
	case txSendFile:
		return "sendfile"
	}
	return "copy"
}

// gun sends payload into sockets, by the engine's way. One per worker.
type gun struct {
	e       *Engine
	payload *osnet.Payload
	pipe    *osnet.Pipe
	vecs    [2]osnet.Vec // several blocks for one call: copied, spliced
}

// Several blocks go into one call where nothing depends on single ones: fewer wake-ups
// and calls, the same bytes. What is copied stays one block in the cache; a pipe of more
// than 512 KiB gave nothing.
const (
	copyAtOnce   = 1 << 20
	spliceAtOnce = 512 << 10
)

func newGun(e *Engine) gun {
	g := gun{e: e, payload: e.shared.payload}
	// A small block is meant: its cost is what somebody wants to see.
	if e.cfg.BlockSize >= zeroCopyBlock && !e.mustSeeAll() && !e.q.budgeted {
		for i, size := range []int{copyAtOnce, spliceAtOnce} {
			if n := size / e.cfg.BlockSize; n > 1 {
				g.vecs[i] = osnet.Repeat(g.payload.Bytes(), n)
			}
		}
	}
	return g
}

// send makes one call for n bytes from offset off of the block, or for several whole
// blocks when several is set and this is the start of one.
func (g *gun) send(fd, off, n int, several bool) (int, syscall.Errno) {
	several = several && n == g.e.cfg.BlockSize
	switch g.e.tx.Load() {
	case txSplice:
		if g.pipe == nil && !g.newPipe() {
			return 0, unix.EINTR // try again, in another way
		}
		var m int
		var errno syscall.Errno
		if v := g.vecs[1]; several && v.Len() > 0 {
			m, errno = g.pipe.SendVec(fd, v)
		} else {
			m, errno = g.pipe.Send(fd, g.payload.Bytes()[off:off+n])
		}
		return m, g.refused(txSplice, txSendFile, errno)
	case txSendFile:
		m, errno := g.payload.SendFile(fd, n)
		return m, g.refused(txSendFile, txCopy, errno)
	}
	if v := g.vecs[0]; several && v.Len() > 0 {
		return osnet.WriteVec(fd, v)
	}
	return osnet.Write(fd, g.payload.Bytes()[off:off+n])
}

// newPipe makes the pipe. A size that is not granted (fs.pipe-max-size, the pages of
// all pipes of a user) means one block at a time; that not granted either, no pipe.
func (g *gun) newPipe() bool {
	p, err := osnet.NewPipe(max(g.e.cfg.BlockSize, g.vecs[1].Len()))
	if err != nil {
		g.vecs[1] = osnet.Vec{}
		p, err = osnet.NewPipe(g.e.cfg.BlockSize)
	}
	if err != nil {
		g.e.tx.CompareAndSwap(txSplice, txSendFile)
		return false
	}
	g.pipe = p
	return true
}

// refused falls back when the kernel does not have the way at all. Another socket
// error passes through.
func (g *gun) refused(from, to int32, errno syscall.Errno) syscall.Errno {
	switch errno {
	case unix.EINVAL, unix.ENOSYS, unix.EPERM, unix.EOPNOTSUPP:
		g.e.tx.CompareAndSwap(from, to)
		return unix.EINTR // try again
	}
	return errno
}

func (g *gun) close() {
	if g.pipe != nil {
		g.pipe.Close()
	}
}

// passing reports errnos after which the call is simply made again.
func passing(errno syscall.Errno) bool {
	return errno == unix.EAGAIN || errno == unix.EINTR
}

// drainFD reads what the socket holds now.
func (s *stream) drainFD(fd int, buf []byte) {
	left, err := s.Conn.RecvQueue()
	if err != nil {
		return
	}
	for left > 0 {
		chunk := buf[:min(left, len(buf)-s.part)]
		var n int
		var errno syscall.Errno
		if s.e.discard {
			n, errno = osnet.DiscardNow(fd, chunk)
		} else {
			n, errno = osnet.ReadNow(fd, chunk)
		}
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 || n == 0 {
			return
		}
		s.read(n, s.e.now())
		if !s.verified(chunk[:n]) {
			return
		}
		left -= n
	}
}

// kernelPacingMin is the rate from which the kernel's pacing is exact enough: what it
// lets into the send buffer ahead of the schedule is then little time.
const kernelPacingMin = 500_000_000

// paceInKernel hands the rate over to the kernel where that is asked for, possible and
// not in the way of a pacing rate that was set before.
func (e *Engine) paceInKernel(bps int64) bool {
	if !e.cfg.KernelPacing || bps < kernelPacingMin || e.cfg.Burst > 0 || !osnet.Capabilities().Pacing {
		return false
	}
	for _, s := range e.streams {
		if !s.Send {
			continue
		}
		if !e.kernelPaced {
			if have, err := s.Conn.Pacing(); err != nil || have != 0 {
				return false
			}
		}
		if err := s.Conn.SetPacing(bps); err != nil {
			return false
		}
	}
	return true
}

// pacedSlice is how long a paced sender works at a time: the least that Linux grants, since it
// sleeps nearly always and is to be on time.
const pacedSlice = 100 * time.Microsecond

// pin binds the calling goroutine's thread to the CPU of worker i and, for paced
// flows, makes its sleeps exact. It returns what undoes that at the end. A thread that
// cannot be given back as it was ends with its goroutine; the process's first thread
// never ends, and would keep the pin.
func (e *Engine) pin(i int, paced bool) (unpin func()) {
	runtime.LockOSThread()
	if cpus := e.cfg.Affinity; len(cpus) > 0 {
		_ = osnet.SetAffinity(cpus[i%len(cpus) : i%len(cpus)+1]) // checked in New
	}
	if paced {
		_ = osnet.SetTimerSlack(1)
		_ = osnet.SetSlice(pacedSlice)
	}
	return func() {
		if len(e.cfg.Affinity) > 0 && osnet.SetAffinity(nil) != nil {
			return
		}
		if paced && (osnet.SetTimerSlack(0) != nil || osnet.SetSlice(0) != nil) {
			return
		}
		runtime.UnlockOSThread()
	}
}

func (e *Engine) fallbackNotice() *result.Notice {
	if e.cfg.Send != plan.SendZeroCopy || !e.fastTx || e.tx.Load() != txCopy {
		return nil
	}
	n := &result.Notice{
		Code: "zerocopy-unavailable", End: e.cfg.End, Level: result.Info,
		Text: "payload is copied into the kernel: neither vmsplice nor sendfile is allowed here",
	}
	if e.cfg.usesMessages() {
		n.Text = "payload is copied into the kernel: messages are sent one at a time"
	}
	return n
}

func (sh *shared) acquire(workers int) { sh.procs = raiseProcs(workers) }

func (sh *shared) release() {
	if sh.procs != nil {
		sh.procs()
	}
	if sh.payload != nil {
		sh.payload.Close()
	}
	for _, b := range sh.buffers {
		osnet.ReleaseBuffer(b)
	}
}
