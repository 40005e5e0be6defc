package osnet

import (
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls of the hot path: each is one system call on a descriptor that its caller
// owns (Conn.Detach), returns the bare errno and allocates nothing. They use the plain
// syscall.Syscall, so the scheduler knows that the thread may block; what keeps that
// cheap is that the caller goes through the scheduler every few milliseconds (see
// docs/adr/0001-workers.md).

// Write writes p.
func Write(fd int, p []byte) (int, syscall.Errno) {
	n, _, e := syscall.Syscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	return moved(n, e)
}

// Vec is several pieces of memory for one call. It is not copied: the memory must stay.
type Vec struct {
	iov []unix.Iovec
	len int
}

// Repeat makes a Vec of n times p.
func Repeat(p []byte, n int) Vec {
	v := Vec{iov: make([]unix.Iovec, n), len: n * len(p)}
	for i := range v.iov {
		v.iov[i].Base = unsafe.SliceData(p)
		v.iov[i].SetLen(len(p))
	}
	return v
}

// Len is how many bytes the pieces have together.
func (v Vec) Len() int { return v.len }

// WriteVec writes the pieces one after the other.
func WriteVec(fd int, v Vec) (int, syscall.Errno) {
	n, _, e := syscall.Syscall(unix.SYS_WRITEV, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(v.iov))), uintptr(len(v.iov)))
	return moved(n, e)
}

// Read reads into p. 0 and no errno = the peer's end.
func Read(fd int, p []byte) (int, syscall.Errno) {
	return recv(fd, p, 0)
}

// Discard makes the kernel drop up to len(p) bytes of a TCP socket's received data
// (MSG_TRUNC, tcp(7)). p is not written to there, but a kind of socket that does not
// know the flag copies into it, so it must be real memory.
func Discard(fd int, p []byte) (int, syscall.Errno) {
	return recv(fd, p, unix.MSG_TRUNC)
}

// ReadNow and DiscardNow do the same without waiting, whatever the socket's mode.
func ReadNow(fd int, p []byte) (int, syscall.Errno) { return recv(fd, p, unix.MSG_DONTWAIT) }

func DiscardNow(fd int, p []byte) (int, syscall.Errno) {
	return recv(fd, p, unix.MSG_DONTWAIT|unix.MSG_TRUNC)
}

func recv(fd int, p []byte, flags int) (int, syscall.Errno) {
	n, _, e := syscall.Syscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), uintptr(flags), 0, 0)
	return moved(n, e)
}

func moved(n uintptr, e syscall.Errno) (int, syscall.Errno) {
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}

// Payload is what all senders of a test send: read-only memory backed by a memfd, so
// that it can be copied (Bytes), sent by sendfile and moved into pipes.
type Payload struct {
	fd  int
	mem []byte
}

// NewPayload makes a payload of size bytes, filled by fill.
func NewPayload(size int, fill func([]byte)) (*Payload, error) {
	fd, err := unix.MemfdCreate("payload", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("osnet: payload: %w", os.NewSyscallError("memfd_create", err))
	}
	p := &Payload{fd: fd}
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		p.Close()
		return nil, fmt.Errorf("osnet: payload: %w", os.NewSyscallError("ftruncate", err))
	}
	p.mem, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("osnet: payload: %w", os.NewSyscallError("mmap", err))
	}
	fill(p.mem)
	if err := unix.Mprotect(p.mem, unix.PROT_READ); err != nil {
		p.Close()
		return nil, fmt.Errorf("osnet: payload: %w", os.NewSyscallError("mprotect", err))
	}
	return p, nil
}

// Bytes returns the payload. Writing to it is a fault; it is gone after Close.
func (p *Payload) Bytes() []byte { return p.mem }

// SendFile sends n bytes from the payload's start without copying them.
func (p *Payload) SendFile(fd, n int) (int, syscall.Errno) {
	var off int64 // so that the descriptor's own position stays at the start
	m, err := unix.Sendfile(fd, p.fd, &off, n)
	if err != nil {
		e, _ := err.(syscall.Errno)
		return 0, e
	}
	return m, 0
}

// Close gives the memory back. Bytes still in a socket's queue stay alive in the kernel.
func (p *Payload) Close() {
	if p.mem != nil {
		_ = unix.Munmap(p.mem)
		p.mem = nil
	}
	if p.fd >= 0 {
		_ = unix.Close(p.fd)
		p.fd = -1
	}
}

// Pipe carries references to payload pages from user memory to a socket: vmsplice,
// then splice, nothing is copied. What a full socket did not take stays in the pipe
// and is the next to go, to whichever socket. It is not safe for concurrent use.
type Pipe struct {
	r, w int
	held int // bytes in it
}

// NewPipe makes a pipe for writes of up to size bytes.
func NewPipe(size int) (*Pipe, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, fmt.Errorf("osnet: %w", os.NewSyscallError("pipe2", err))
	}
	p := &Pipe{r: fds[0], w: fds[1]}
	if _, err := unix.FcntlInt(uintptr(p.w), unix.F_SETPIPE_SZ, max(size, os.Getpagesize())); err != nil {
		p.Close()
		return nil, fmt.Errorf("osnet: pipe of %d bytes: %w", size, os.NewSyscallError("fcntl", err))
	}
	return p, nil
}

// Send moves up to len(src) bytes to fd. It refills the pipe from src when it is empty.
func (p *Pipe) Send(fd int, src []byte) (int, syscall.Errno) {
	if p.held == 0 {
		iov := unix.Iovec{Base: unsafe.SliceData(src)}
		iov.SetLen(len(src))
		if e := p.fill(&iov, 1); e != 0 {
			return 0, e
		}
	}
	return p.empty(fd, len(src))
}

// SendVec does the same with the pieces of v.
func (p *Pipe) SendVec(fd int, v Vec) (int, syscall.Errno) {
	if p.held == 0 {
		if e := p.fill(unsafe.SliceData(v.iov), len(v.iov)); e != 0 {
			return 0, e
		}
	}
	return p.empty(fd, v.len)
}

func (p *Pipe) fill(iov *unix.Iovec, pieces int) syscall.Errno {
	n, _, e := syscall.Syscall6(unix.SYS_VMSPLICE, uintptr(p.w), uintptr(unsafe.Pointer(iov)), uintptr(pieces), 0, 0, 0)
	if e == 0 {
		p.held = int(n)
	}
	return e
}

func (p *Pipe) empty(fd, most int) (int, syscall.Errno) {
	n, _, e := syscall.Syscall6(unix.SYS_SPLICE, uintptr(p.r), 0, uintptr(fd), 0, uintptr(min(p.held, most)), 0)
	if e != 0 {
		return 0, e
	}
	p.held -= int(n)
	return int(n), 0
}

// Close closes both ends.
func (p *Pipe) Close() {
	_ = unix.Close(p.r)
	_ = unix.Close(p.w)
}

// ReserveBuffer returns size bytes of memory that cost nothing until they are written to.
func ReserveBuffer(size int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("osnet: buffer of %d bytes: %w", size, os.NewSyscallError("mmap", err))
	}
	return b, nil
}

// ReleaseBuffer gives it back.
func ReleaseBuffer(b []byte) { _ = unix.Munmap(b) }

// SetBlocking makes calls on fd wait, each for at most timeout (SO_RCVTIMEO,
// SO_SNDTIMEO): no call outlives it, whatever the peer does, and a signal ends one
// early with EINTR (signal(7): calls with a timeout are never restarted).
func SetBlocking(fd int, timeout time.Duration) error {
	if err := unix.SetNonblock(fd, false); err != nil {
		return fmt.Errorf("osnet: make blocking: %w", err)
	}
	tv := unix.NsecToTimeval(int64(timeout))
	for _, opt := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, opt, &tv); err != nil {
			return fmt.Errorf("osnet: set timeout: %w", err)
		}
	}
	return nil
}

// SetRcvLowat sets how many bytes must be there before a receive call returns or the
// socket counts as readable; the kernel caps it at half the receive buffer.
func SetRcvLowat(fd, n int) error {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, n)
}

// Thread returns the calling thread's id, for Interrupt.
func Thread() int { return unix.Gettid() }

// Interrupt makes a blocking call of the thread return early. The signal is the one
// with which Go's scheduler interrupts threads itself; its handler does nothing when
// nothing is to be done.
func Interrupt(thread int) {
	_ = unix.Tgkill(unix.Getpid(), thread, unix.SIGURG)
}

// SetTimerSlack makes the calling thread's sleeps end within slack of their due time
// (PR_SET_TIMERSLACK; 0 is the thread's default, mostly 50 µs).
func SetTimerSlack(slack time.Duration) error {
	return unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0)
}

// SetSlice asks the scheduler to let the calling thread work for at most slice at a time, and so to
// let it begin the sooner after a sleep on a busy processor; 0 = the system's slice again. Its share of
// the processor stays the same, so no privilege is needed. Kernels before 6.12 ignore it (EEVDF,
// sched_attr.sched_runtime of SCHED_OTHER, 0.1 to 100 ms).
func SetSlice(slice time.Duration) error {
	a, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return err
	}
	if a.Policy != unix.SCHED_NORMAL && a.Policy != unix.SCHED_BATCH {
		return nil // of another class: somebody chose it
	}
	a.Runtime = uint64(slice)
	return unix.SchedSetAttr(0, a, 0)
}

// Sleep blocks the calling thread for d, or until it is interrupted.
func Sleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_, _, _ = syscall.Syscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// Poller waits for readiness of many sockets, edge-triggered: a socket is reported
// once when it becomes ready and again only after a call on it found it not ready.
type Poller struct {
	ep, wake int
	events   [128]unix.EpollEvent
	ready    [128]int32
}

// NewPoller makes one. Wait belongs to one goroutine; Wake may be called by any until Close.
func NewPoller() (*Poller, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("osnet: %w", os.NewSyscallError("epoll_create1", err))
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(ep)
		return nil, fmt.Errorf("osnet: %w", os.NewSyscallError("eventfd", err))
	}
	p := &Poller{ep: ep, wake: wake}
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: -1}
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, wake, &ev); err != nil {
		p.Close()
		return nil, fmt.Errorf("osnet: %w", os.NewSyscallError("epoll_ctl", err))
	}
	return p, nil
}

// Add watches fd for room to write (or for data) and reports it as key, 0 ≤ key < 2³⁰.
func (p *Poller) Add(fd int, key int32, write bool) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET&0xffffffff, Fd: key}
	if write {
		ev.Events = unix.EPOLLOUT | unix.EPOLLET&0xffffffff
	}
	if err := unix.EpollCtl(p.ep, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("osnet: %w", os.NewSyscallError("epoll_ctl", err))
	}
	return nil
}

// Wait waits up to timeout (rounded up to µs; 0 = not at all) and returns the keys of
// the sockets that became ready, in a slice that the next call overwrites: key<<1, plus
// 1 when the peer ended the connection or it broke (the socket stays ready then, and
// is not reported again). A Wake ends the wait.
func (p *Poller) Wait(timeout time.Duration) []int32 {
	var n uintptr
	var e syscall.Errno
	if timeout <= 0 || timeout >= 10*time.Millisecond {
		n, _, e = syscall.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.ep), uintptr(unsafe.Pointer(&p.events)), uintptr(len(p.events)), uintptr(timeout/time.Millisecond), 0, 0)
	} else {
		n, e = p.waitFine(timeout)
	}
	if e != 0 {
		return nil
	}
	k := 0
	for i := range p.events[:n] {
		ev := &p.events[i]
		if ev.Fd < 0 {
			continue
		}
		p.ready[k] = ev.Fd << 1
		if ev.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
			p.ready[k]++
		}
		k++
	}
	return p.ready[:k]
}

// waitFine waits with ns resolution: epoll_pwait2 is Linux 5.11, so ppoll on the epoll
// descriptor does the waiting.
func (p *Poller) waitFine(timeout time.Duration) (uintptr, syscall.Errno) {
	ts := unix.NsecToTimespec(int64(timeout))
	pfd := unix.PollFd{Fd: int32(p.ep), Events: unix.POLLIN}
	n, _, e := syscall.Syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&pfd)), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	if e != 0 || n == 0 {
		return 0, e
	}
	n, _, e = syscall.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.ep), uintptr(unsafe.Pointer(&p.events)), uintptr(len(p.events)), 0, 0, 0)
	return n, e
}

// Wake ends the present or the next Wait.
func (p *Poller) Wake() {
	one := [8]byte{1}
	_, _ = unix.Write(p.wake, one[:])
}

// Close closes the poller.
func (p *Poller) Close() {
	_ = unix.Close(p.ep)
	_ = unix.Close(p.wake)
}

func (c *Conn) brief(b *TCPBrief) error {
	c.mu.RLock()
	if !c.detached || c.closed {
		c.mu.RUnlock()
		return c.briefOfInfo(b)
	}
	defer c.mu.RUnlock()
	var ti unix.TCPInfo
	n := uint32(unsafe.Sizeof(ti))
	_, _, e := syscall.Syscall6(unix.SYS_GETSOCKOPT, uintptr(c.fd), unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&ti)), uintptr(unsafe.Pointer(&n)), 0)
	if e != 0 {
		return e
	}
	has := func(end uintptr, v int64) int64 {
		if uintptr(n) < end {
			return -1
		}
		return v
	}
	*b = TCPBrief{
		Retransmits: int64(ti.Total_retrans), Cwnd: int64(ti.Snd_cwnd) * int64(ti.Snd_mss), RTT: int64(ti.Rtt),
		SndWnd:    has(unsafe.Offsetof(ti.Snd_wnd)+4, int64(ti.Snd_wnd)),
		ReordSeen: has(unsafe.Offsetof(ti.Reord_seen)+4, int64(ti.Reord_seen)),
		BusyUS:    has(unsafe.Offsetof(ti.Busy_time)+8, int64(ti.Busy_time)),
		RwndUS:    has(unsafe.Offsetof(ti.Rwnd_limited)+8, int64(ti.Rwnd_limited)),
		SndbUS:    has(unsafe.Offsetof(ti.Sndbuf_limited)+8, int64(ti.Sndbuf_limited)),
	}
	return nil
}

// briefOfInfo is for sockets still in the runtime's hands, which the engine's are not.
func (c *Conn) briefOfInfo(b *TCPBrief) error {
	i, err := c.TCPInfo()
	if err != nil {
		return err
	}
	or := func(p *int64) int64 {
		if p == nil {
			return -1
		}
		return *p
	}
	*b = TCPBrief{
		Retransmits: i.Retransmits, Cwnd: i.Cwnd, SndWnd: or(i.SndWnd), RTT: i.RTT,
		ReordSeen: or(i.ReordSeen), BusyUS: or(i.BusyUS), RwndUS: or(i.RwndLimitedUS), SndbUS: or(i.SndbufLimUS),
	}
	return nil
}
