package forward

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/lab/hist"
	"github.com/fullbore-net/fullbore/internal/lab/link"
	"github.com/fullbore-net/fullbore/internal/lab/truth"
)

// grain is the shortest sleep while packets are due: a wake-up costs a virtual machine
// some 30 µs of processor time (measured), more than the packet that it is for, so
// packets that are due within a grain share one. It bounds what the loop itself adds to
// a packet's lateness, and to the time until a packet is taken.
const grain = 50 * time.Microsecond

// pullBatch is how many packets are read from one device before due packets of the
// other direction get their turn: 32 reads take some 50 µs.
const pullBatch = 32

// lag is how late the standby takes over, see loop.
const lag = 250 * time.Microsecond

// noneDue is loop.next when no packet is on its way.
const noneDue = math.MaxInt64

// loop carries both directions by rounds. A round is made by whoever holds busy.
//
// There are two workers. The leader makes a round whenever something has come or is
// due. But a processor can be beyond its reach for milliseconds, as a kernel without
// preemption lets whatever it does for others, a program's exit or a neighbour's
// packets, run to its end. So the standby, on another processor, looks lag after each
// due time whether the round has been made, and makes it if not.
type loop struct {
	dirs    [2]*direction      // guarded by busy
	path    *link.Path[packet] // nil: each direction has a link; guarded by busy
	clock   clock
	start   time.Duration
	timeout unix.Timespec // of wait, here so that it is not allocated each time

	busy atomic.Bool  // a round is being made
	next atomic.Int64 // when the next packet has to be written (loop.clock, ns), or noneDue
	err  error        // of a round of the standby's; guarded by busy

	wake    int              // eventfd: the leader is wanted
	wanted  atomic.Bool      // there is something in asks, or err is set
	asks    chan chan frozen // closed to stop
	stopped atomic.Bool
	doze    int         // eventfd: the standby is wanted again
	dozing  atomic.Bool // the standby waits for it
	places  places
}

// direction carries packets from src to dst.
type direction struct {
	src, dst int                // descriptors, non-blocking
	link     *link.Link         // its schedule and
	wire     link.Wire[packet]  // what is on its way; or
	path     *link.Path[packet] // both, of both directions
	index    int                // of this one
	back     *direction         // the other one
	dataOnly bool               // spare all but measured datagrams
	spread   *spread            // nil: there is one member
	box      box
	again    bool // what the wire gives out next is the copy of what it gave out last
	pool     pool
	truth    *truth.Tracker // nil: not asked for
	tap      *tap           // of src; nil: packets are taken to be as old as their reading
	last     time.Duration  // the last packet's stamp; stamps never go back

	unstamped int64

	late    hist.Hist
	out     link.Count
	held    link.Count
	failed  map[syscall.Errno]int64
	drained bool // the last read found the device empty
}

// clock reads CLOCK_MONOTONIC through the vDSO: Go's own monotonic reading is that
// clock less a constant (runtime.nanotime), found once.
type clock struct {
	base   time.Time
	offset time.Duration
}

func newClock() (clock, error) {
	var ts unix.Timespec
	best, c := time.Hour, clock{}
	// The shortest bracket of several, in case the thread is interrupted in one.
	for range 20 {
		base := time.Now()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			return c, fmt.Errorf("forward: read CLOCK_MONOTONIC: %w", err)
		}
		if took := time.Since(base); took < best {
			best = took
			c = clock{base: base, offset: time.Duration(ts.Nano()) - took/2}
		}
	}
	return c, nil
}

func (c clock) now() time.Duration { return time.Since(c.base) + c.offset }

// both returns now and what has to be added to CLOCK_REALTIME to get CLOCK_MONOTONIC.
// A step of the wall clock changes it, so it is not kept.
func (c clock) both() (now, fromReal time.Duration) {
	t := time.Now()
	now = t.Sub(c.base) + c.offset
	return now, now - time.Duration(t.UnixNano())
}

// newLoop makes a loop between the devices a and b. taps are theirs, or nil.
func newLoop(cfg Config, a, b int, taps [2]*tap) (*loop, error) {
	clk, err := newClock()
	if err != nil {
		return nil, err
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("forward: eventfd: %w", err)
	}
	doze, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("forward: eventfd: %w", err)
	}
	l := &loop{clock: clk, wake: wake, doze: doze, asks: make(chan chan frozen, 1)}
	l.next.Store(noneDue)
	if !cfg.path().Plain() {
		if l.path, err = link.NewPath(cfg.path(), l.dropped); err != nil {
			return nil, err
		}
	}
	for i, ends := range [2][2]int{{a, b}, {b, a}} {
		d := &direction{
			src: ends[0], dst: ends[1], dataOnly: cfg.DataOnly[i], path: l.path, index: i,
			pool: pool{size: max(cfg.MTU, maxICMPv6)}, failed: map[syscall.Errno]int64{}, tap: taps[i],
			box: newBox(cfg.Boxes[i], cfg.MTU),
		}
		if l.path == nil {
			if d.link, err = link.New(cfg.Links[i]); err != nil {
				return nil, err
			}
		} else if l.path.Members(i) > 1 {
			d.spread = newSpread(cfg.Hash, cfg.HashSeed)
		}
		if cfg.Truth {
			d.truth = truth.NewTracker()
		}
		l.dirs[i] = d
	}
	l.dirs[0].back, l.dirs[1].back = l.dirs[1], l.dirs[0]
	return l, nil
}

// dropped is told by the path of a packet that does not arrive.
func (l *loop) dropped(dir int, p packet, _ link.Drop) { l.dirs[dir].lose(p) }

// run carries packets until stop is called or a device fails. Its workers do not lock
// their threads: the process's threads are all alike (favourThread), and every 10 ms the
// runtime asks a worker to yield, which a locked goroutine can only do by way of
// another thread, for which there may be no processor.
func (l *loop) run() error {
	l.start = l.clock.now()
	if l.path != nil {
		l.path.Begin(l.start)
	} else {
		for _, d := range l.dirs {
			d.link.Begin(l.start)
		}
	}
	cpus := l.places.find()
	var standby sync.WaitGroup
	if cpus > 1 {
		standby.Go(l.standBy) // ends with stopped
	}
	err := l.lead()
	l.stopped.Store(true)
	poke(l.doze)
	standby.Wait()
	return err
}

// lead is the leader.
func (l *loop) lead() error {
	fds := [3]unix.PollFd{
		{Fd: int32(l.dirs[0].src), Events: unix.POLLIN},
		{Fd: int32(l.dirs[1].src), Events: unix.POLLIN},
		{Fd: int32(l.wake), Events: unix.POLLIN},
	}
	for {
		l.places.take(0)
		if !l.busy.CompareAndSwap(false, true) {
			nap(l.clock.now() + grain)
			continue
		}
		goOn, err := l.round(true)
		l.busy.Store(false)
		if err != nil || !goOn {
			return err
		}
		due := l.next.Load()
		now := l.clock.now()
		if due != noneDue && l.dozing.Load() {
			poke(l.doze)
		}
		if time.Duration(due) < now+grain {
			nap(now + grain)
			continue
		}
		if err := l.wait(fds[:], time.Duration(due)-now, due != noneDue); err != nil {
			return err
		}
	}
}

// round writes what is due and takes what has come, until there is neither, and says
// when the next packet is due. The caller holds busy. Only the leader answers
// requests; goOn is false when one of them was to stop.
func (l *loop) round(leader bool) (goOn bool, err error) {
	for {
		for _, d := range l.dirs {
			d.push(&l.clock)
		}
		for _, d := range l.dirs {
			if err := d.pull(&l.clock); err != nil {
				return false, err
			}
		}
		if leader && l.wanted.Load() {
			if l.err != nil {
				return false, l.err
			}
			if !l.answer() {
				return false, nil
			}
		}
		due := l.nextDue()
		if l.dirs[0].drained && l.dirs[1].drained && due > l.clock.now() {
			l.next.Store(int64(due))
			return true, nil
		}
	}
}

// nextDue returns when the next packet has to be written, or noneDue.
func (l *loop) nextDue() time.Duration {
	due := time.Duration(noneDue)
	if l.path != nil {
		if next, ok := l.path.Next(); ok {
			due = next
		}
		return due
	}
	for _, d := range l.dirs {
		if next, ok := d.wire.Next(); ok {
			due = min(due, next)
		}
	}
	return due
}

// standBy is the standby.
func (l *loop) standBy() {
	const (
		// A packet that has just come may be due before the one that next tells of.
		longest = time.Millisecond
		// Without packets for so long, it waits until the leader has one.
		patience = 20 * time.Millisecond
	)
	lastDue := l.clock.now()
	for !l.stopped.Load() {
		l.places.take(1)
		due, now := l.next.Load(), l.clock.now()
		switch {
		case due == noneDue && now > lastDue+patience:
			l.dozing.Store(true)
			if l.next.Load() == noneDue && !l.stopped.Load() {
				var count [8]byte
				_, _ = unix.Read(l.doze, count[:]) // EINTR: looks again
			}
			l.dozing.Store(false)
			lastDue = l.clock.now()
			continue
		case due == noneDue:
			nap(now + longest)
			continue
		}
		lastDue = now
		if now < time.Duration(due)+lag {
			nap(min(time.Duration(due)+lag, now+longest))
			continue
		}
		if !l.busy.CompareAndSwap(false, true) {
			nap(now + lag)
			continue
		}
		if _, err := l.round(false); err != nil {
			l.err = err
			l.busy.Store(false)
			l.want()
			return
		}
		l.busy.Store(false)
	}
}

// wait sleeps until a device has a packet, somebody asks for something or, if limited,
// timeout has passed.
func (l *loop) wait(fds []unix.PollFd, timeout time.Duration, limited bool) error {
	var ts *unix.Timespec
	if limited {
		l.timeout = unix.NsecToTimespec(int64(timeout))
		ts = &l.timeout
	}
	for i := range fds {
		fds[i].Revents = 0 // left alone when the call is interrupted
	}
	if _, err := unix.Ppoll(fds, ts, nil); err != nil && err != unix.EINTR { // the runtime's own signals
		return fmt.Errorf("forward: ppoll: %w", err)
	}
	if fds[2].Revents != 0 {
		var count [8]byte
		_, _ = unix.Read(l.wake, count[:]) // resets it
	}
	return nil
}

// pull reads what the near device holds, at most a batch, and schedules it.
func (d *direction) pull(c *clock) error {
	if d.path == nil {
		return d.read(c)
	}
	// What had come before the first read is read when one finds nothing.
	began := c.now()
	err := d.read(c)
	if d.drained {
		d.path.Known(d.index, began)
	} else {
		d.path.Known(d.index, d.last)
	}
	return err
}

func (d *direction) read(c *clock) error {
	d.drained = false
	for range pullBatch {
		buf := d.pool.get()
		n, err := read(d.src, buf)
		if err != 0 {
			d.pool.put(buf)
			if err == unix.EAGAIN {
				d.drained = true
				return nil
			}
			if err == unix.EINTR {
				continue
			}
			return fmt.Errorf("forward: read from the device: %w", err)
		}
		at := d.taken(c, buf[:n])
		p := packet{buf: buf, size: n}
		if d.box.edits {
			d.box.edit(buf[:n])
		}
		if d.truth != nil {
			p.ref = d.truth.Enter(at, buf[:n])
		}
		d.schedule(at, p, d.dataOnly && !truth.IsData(buf[:n]))
	}
	return nil
}

// schedule decides what becomes of a packet that came at time at, or lets the path do so.
func (d *direction) schedule(at time.Duration, p packet, spared bool) {
	d.held.Packets++
	d.held.Bytes += int64(p.size)
	if d.path != nil {
		d.offer(at, p, spared)
		return
	}
	var decision link.Decision
	if spared {
		decision = d.link.EnqueueSpared(at, p.size)
	} else {
		decision = d.link.Enqueue(at, p.size)
	}
	if decision.Drop != link.Delivered {
		d.lose(p)
		return
	}
	d.wire.Add(p, decision)
}

// lose lets go of a packet that does not arrive.
func (d *direction) lose(p packet) {
	if d.truth != nil {
		d.truth.Lost(p.ref)
	}
	d.release(p)
}

// release takes the books and the buffer of a packet back.
func (d *direction) release(p packet) {
	d.held.Packets--
	d.held.Bytes -= int64(p.size)
	d.pool.put(p.buf)
}

// taken returns when the kernel gave a packet just read to the near device.
func (d *direction) taken(c *clock, packet []byte) time.Duration {
	now, fromReal := c.both()
	at := now
	if d.tap != nil {
		stamp, ok := d.tap.stamp(packet)
		if stamp += fromReal; ok && stamp <= now && stamp > now-tapStaleness {
			at = stamp
		} else {
			d.unstamped++
		}
	}
	d.last = max(d.last, at)
	return d.last
}

// push writes what is due into the far device.
func (d *direction) push(c *clock) {
	for {
		now := c.now()
		p, due, again, ok := d.pop(now)
		if !ok {
			return
		}
		d.late.Add(now - due)
		if d.box.mtu > 0 && p.size > d.box.mtu {
			d.narrow(now, due, p, again)
			continue
		}
		if d.truth != nil {
			d.truth.Observe(now, p.buf[:p.size])
			d.truth.Left(now, p.ref, d.again)
		}
		d.again = again
		d.write(p.buf[:p.size])
		if !again {
			d.release(p)
		}
	}
}

// pop takes the next packet that is due by now, see link.Wire.Pop.
func (d *direction) pop(now time.Duration) (p packet, due time.Duration, again, ok bool) {
	if d.path != nil {
		return d.path.Pop(d.index, now)
	}
	return d.wire.Pop(now)
}

// write writes a packet into the far device.
func (d *direction) write(p []byte) {
	err := write(d.dst, p)
	for err == unix.EINTR {
		err = write(d.dst, p)
	}
	if err != 0 {
		d.failed[err]++
		return
	}
	d.out.Packets++
	d.out.Bytes += int64(len(p))
}

// The calls of every round go past Go's scheduler: in a system call that it knows of,
// its monitor thread takes the loop's P away every 10 ms and, having had something to
// do, polls every 20 µs; that was a sixth of the process's time. So that a
// collection can stop the loop all the same, none of them blocks for longer than a
// grain, and each round calls functions whose prologue lets it be preempted (pull,
// push); what blocks for long, wait, is an ordinary call.

func read(fd int, p []byte) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	return int(n), e
}

func write(fd int, p []byte) syscall.Errno {
	_, _, e := syscall.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	return e
}

// nap sleeps until the clock shows until, or a signal comes; the caller looks at the
// clock in both cases.
func nap(until time.Duration) {
	ts := unix.NsecToTimespec(int64(until))
	_, _, _ = syscall.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME,
		uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
}

// packet is a packet on its way.
type packet struct {
	buf  []byte
	size int
	ref  truth.Ref
}

// pool hands out buffers for one packet each, last in first out, so that a busy
// path uses few and warm ones. It grows by about a megabyte at a time.
type pool struct {
	size int
	free [][]byte
}

func (p *pool) get() []byte {
	if len(p.free) == 0 {
		n := max(8, 1<<20/p.size)
		all := make([]byte, n*p.size)
		for i := range n {
			p.free = append(p.free, all[i*p.size:(i+1)*p.size:(i+1)*p.size])
		}
	}
	last := len(p.free) - 1
	b := p.free[last]
	p.free = p.free[:last]
	return b
}

func (p *pool) put(b []byte) { p.free = append(p.free, b) }
