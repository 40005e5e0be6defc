package forward

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/lab/thread"
	"github.com/fullbore-net/fullbore/internal/lab/truth"
)

// The descriptors that Start hands to the process, after the three standard ones.
const (
	fdA = 3 + iota
	fdB
	fdTapA
	fdTapB
)

// askReport is the line that asks the running process for a report. Standard input
// closed, or the parent dead, ends it.
const askReport = "report\n"

// childConfig is the first line on the process's standard input.
type childConfig struct {
	Config
	Tapped bool `json:"tapped"` // the devices' taps are there
}

// answer is one line on the process's standard output.
type answer struct {
	Ready  bool    `json:"ready,omitempty"`
	Report *Report `json:"report,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// Main is the body of the process that Start starts: it carries packets until in,
// its standard input, ends, and answers on out, its standard output.
func Main(in io.Reader, out io.Writer) error {
	// Garbage is a few kilobytes a report; a collection would hold the loop up.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(2 << 30) // but for a run that never ends
	favourSession()
	// The loop's workers keep a P each.
	runtime.GOMAXPROCS(max(4, runtime.NumCPU()))
	return serve(in, out, fdA, fdB, [2]int{fdTapA, fdTapB})
}

// serve reads a Config from in, carries packets between the devices a and b until in
// ends, and answers on out.
func serve(in io.Reader, out io.Writer, a, b int, taps [2]int) error {
	enc := json.NewEncoder(out)
	lines := bufio.NewReader(in)
	fail := func(err error) error {
		return errors.Join(err, enc.Encode(answer{Error: err.Error()}))
	}
	var cfg childConfig
	first, err := lines.ReadBytes('\n')
	if err != nil {
		return fail(fmt.Errorf("forward: read configuration: %w", err))
	}
	if err := json.Unmarshal(first, &cfg); err != nil {
		return fail(fmt.Errorf("forward: read configuration: %w", err))
	}
	if err := cfg.Validate(); err != nil {
		return fail(err)
	}
	for _, fd := range []int{a, b} {
		if err := unix.SetNonblock(fd, true); err != nil {
			return fail(fmt.Errorf("forward: descriptor %d: %w", fd, err))
		}
	}
	var mapped [2]*tap
	for i, fd := range taps {
		if !cfg.Tapped {
			break
		}
		if mapped[i], err = mapTap(fd); err != nil {
			return fail(err)
		}
	}
	l, err := newLoop(cfg.Config, a, b, mapped)
	if err != nil {
		return fail(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- l.run() }() // ends when stop is called below, or on an error
	if err := enc.Encode(answer{Ready: true}); err != nil {
		return err
	}

	requests := make(chan error)
	go func() { // ends with standard input
		for {
			line, err := lines.ReadString('\n')
			if err == nil && line != askReport {
				err = fmt.Errorf("forward: unknown request %q", line)
			}
			requests <- err
			if err != nil {
				return
			}
		}
	}()
	for {
		select {
		case err := <-ended:
			return fail(err)
		case err := <-requests:
			if err == io.EOF {
				l.stop()
				return <-ended
			}
			if err != nil {
				return fail(err)
			}
			z, err := l.ask(ended)
			if err != nil {
				return fail(err)
			}
			if err := enc.Encode(answer{Report: z.report()}); err != nil {
				return err
			}
		}
	}
}

// frozen is the loop's state, copied on its thread; report, which is slower, is made
// from it on another.
type frozen struct {
	rep   Report
	flows [2]*truth.Frozen
}

// ask has the loop freeze its state. ended is where run's result appears.
func (l *loop) ask(ended <-chan error) (frozen, error) {
	reply := make(chan frozen, 1)
	l.asks <- reply
	l.want()
	select {
	case z := <-reply:
		return z, nil
	case err := <-ended:
		return frozen{}, err
	}
}

// stop ends run.
func (l *loop) stop() {
	close(l.asks)
	l.want()
}

// want makes the leader look into asks.
func (l *loop) want() {
	l.wanted.Store(true)
	poke(l.wake)
}

// poke wakes who waits for an eventfd of ours: the write cannot fail while it is open.
func poke(eventfd int) {
	one := [8]byte{1} // any non-zero number in any byte order
	_, _ = unix.Write(eventfd, one[:])
}

// answer serves requests; false means stop.
func (l *loop) answer() bool {
	l.wanted.Store(false)
	for {
		select {
		case reply, ok := <-l.asks:
			if !ok {
				return false
			}
			reply <- l.freeze()
		default:
			return true
		}
	}
}

func (l *loop) freeze() frozen {
	z := frozen{rep: Report{Start: l.start, Now: l.clock.now()}}
	for i, d := range l.dirs {
		r := &z.rep.Directions[i]
		r.Out, r.Held, r.Taken = d.out, d.held, d.spread.list()
		if d.path == nil {
			r.Link, r.Wait = d.link.Stats(), d.link.Waits()
		} else {
			r.Members, r.Wait = d.path.Stats(i), d.path.Waits(i)
			for _, m := range r.Members {
				r.Link.Add(m.Stats)
			}
		}
		if d.box.active() {
			stats := d.box.stats
			r.Box = &stats
		}
		r.Late, r.Unstamped = d.late.Summary(), d.unstamped
		if len(d.failed) > 0 {
			r.Failed = map[string]int64{}
			for errno, n := range d.failed {
				r.Failed[unix.ErrnoName(errno)] = n
			}
		}
		if d.truth != nil {
			fz := d.truth.Freeze()
			z.flows[i] = &fz
			r.Untracked, r.Fragments, r.Repeats = d.truth.Untracked(), d.truth.Fragments(), d.truth.Repeats()
			r.Repeated = d.truth.Repeated()
		}
	}
	return z
}

func (z frozen) report() *Report {
	for i, f := range z.flows {
		if f != nil {
			z.rep.Directions[i].Flows, z.rep.Directions[i].Datagrams = f.Flows(), f.Datagrams()
		}
	}
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err == nil {
		z.rep.CPU = time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	}
	return &z.rep
}

// favourThread makes the calling thread, and what it starts, wake up on time: no
// timer slack (prctl(2), default 50 µs), the best place in the ordinary scheduling
// class, and a short slice, which since Linux 6.12 lets a task run sooner after it wakes
// (sched(7), SCHED_OTHER sched_runtime). No real-time class is used. All but the first
// are improvements, so a kernel or a container that refuses them is no error: the
// run's lateness shows what that cost.
func favourThread() error {
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forward: set timer slack: %w", err)
	}
	attr := schedAttr{size: uint32(unsafe.Sizeof(schedAttr{})), nice: bestNice, runtime: uint64(sliceLength)}
	_, _, _ = syscall.Syscall(unix.SYS_SCHED_SETATTR, 0, uintptr(unsafe.Pointer(&attr)), 0)
	return nil
}

// favourSession does for the process's session what niceness does for a process:
// where sessions are scheduled as groups (sched(7), "The autogroup feature"), niceness
// counts only within one. Start gives the process a session of its own.
func favourSession() {
	_ = os.WriteFile("/proc/self/autogroup", []byte(strconv.Itoa(bestNice)), 0)
}

const (
	bestNice    = -20
	sliceLength = 100 * time.Microsecond // the shortest that the kernel grants
)

// schedAttr is struct sched_attr of the kernel's uapi/linux/sched/types.h, its first
// version (Linux 3.14).
type schedAttr struct {
	size     uint32
	policy   uint32
	flags    uint64
	nice     int32
	priority uint32
	runtime  uint64
	deadline uint64
	period   uint64
}

// Process is a running forwarder.
type Process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// End is one end of the path.
type End struct {
	Device *os.File // a TUN device
	// Tap is its tap (OpenTap). Without one, a packet's schedule begins when it is read,
	// and how late that is stays unknown.
	Tap *os.File
}

// Start runs argv, which must call Main, between two ends, and waits until it carries
// packets. It closes no file; the process has its own copies, and a device vanishes
// with the last of them. The caller must call Stop.
func Start(argv []string, a, b End, cfg Config) (*Process, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.ExtraFiles = []*os.File{a.Device, b.Device}
	tapped := a.Tap != nil && b.Tap != nil
	if tapped {
		cmd.ExtraFiles = append(cmd.ExtraFiles, a.Tap, b.Tap)
	}
	cmd.Stderr = os.Stderr
	// Its own session: a terminal's Ctrl-C is for the user's program, and the path must
	// stay whole until that has ended. See favourSession for another reason.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("forward: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("forward: %w", err)
	}
	// A process inherits the scheduling of the thread that starts it, for all its threads.
	started := make(chan error)
	thread.Doomed(func() {
		if err := favourThread(); err != nil {
			started <- err
			return
		}
		started <- cmd.Start()
	})
	if err := <-started; err != nil {
		return nil, fmt.Errorf("forward: start the link process: %w", err)
	}
	p := &Process{cmd: cmd, in: in, out: json.NewDecoder(out)}
	doc, err := json.Marshal(childConfig{cfg, tapped})
	if err == nil {
		_, err = in.Write(append(doc, '\n'))
	}
	if err == nil {
		_, err = p.receive()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("forward: start %q: %w", argv, err), p.end())
	}
	return p, nil
}

// Report asks for the state of both directions. It is not safe for concurrent use.
func (p *Process) Report() (*Report, error) {
	if _, err := io.WriteString(p.in, askReport); err != nil {
		return nil, fmt.Errorf("forward: ask for a report: %w", err)
	}
	a, err := p.receive()
	if err != nil {
		return nil, err
	}
	if a.Report == nil {
		return nil, errors.New("forward: the link process answered without a report")
	}
	return a.Report, nil
}

func (p *Process) receive() (answer, error) {
	var a answer
	if err := p.out.Decode(&a); err != nil {
		return a, fmt.Errorf("forward: read the link process's answer: %w", err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// Stop ends the process and with it the devices.
func (p *Process) Stop() error { return p.end() }

func (p *Process) end() error {
	p.in.Close()
	// It ends by itself on the closed pipe; one that hangs must not keep the devices.
	timer := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("forward: link process: %w", err)
	}
	return nil
}
