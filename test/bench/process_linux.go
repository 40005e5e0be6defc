package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is one measured child.
type process struct {
	cmd    *exec.Cmd
	out    bytes.Buffer
	err    bytes.Buffer
	peak   atomic.Int64 // VmHWM, bytes
	own    atomic.Int64 // RssAnon at mark, bytes
	mark   time.Time
	exited chan struct{}
	status error
}

// spawn starts argv in a namespace, bound to a CPU (−1 = none). Both are properties of
// the thread that forks. At mark its own memory is noted.
func spawn(ns string, cpu int, mark time.Time, argv []string) (*process, error) {
	p := &process{cmd: exec.Command(argv[0], argv[1:]...), mark: mark, exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Env = append(os.Environ(), "HOME=/nonexistent", "FULLBORE_HISTORY=off")
	err := inside(ns, func() error {
		if cpu >= 0 {
			var set unix.CPUSet
			set.Set(cpu)
			if err := unix.SchedSetaffinity(0, &set); err != nil {
				return os.NewSyscallError("sched_setaffinity", err)
			}
		}
		return p.cmd.Start()
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", argv[0], err)
	}
	go p.watch()
	go func() {
		p.status = p.cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// watch reads the process's own high-water mark until it is gone: the kernel's
// ru_maxrss would start at ours.
func (p *process) watch() {
	name := fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid)
	for {
		if data, err := os.ReadFile(name); err == nil {
			p.peak.Store(max(p.peak.Load(), statusBytes(data, "VmHWM:")))
			if p.own.Load() == 0 && time.Now().After(p.mark) {
				p.own.Store(statusBytes(data, "RssAnon:"))
			}
		}
		select {
		case <-p.exited:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// statusBytes reads a size from /proc/PID/status, 0 when it is not there.
func statusBytes(status []byte, key string) int64 {
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			if f := strings.Fields(rest); len(f) > 0 {
				kb, err := strconv.ParseInt(f[0], 10, 64)
				if err == nil {
					return kb << 10
				}
			}
		}
	}
	return 0
}

// wait waits for the process, at most d; then it is killed, which is an error unless
// it was going to be.
func (p *process) wait(d time.Duration) error {
	select {
	case <-p.exited:
		return p.status
	case <-time.After(d):
		p.kill()
		return fmt.Errorf("%s %w within %v", p.cmd.Path, errHung, d)
	}
}

// errHung: a program had to be killed.
var errHung = errors.New("did not end")

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// cpu is what the ended process used.
func (p *process) cpu() time.Duration {
	if s := p.cmd.ProcessState; s != nil {
		return s.UserTime() + s.SystemTime()
	}
	return 0
}

// softirqd is the time that the kernel's packet threads have run.
func softirqd() time.Duration {
	var total time.Duration
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0
	}
	for _, d := range dirs {
		comm, err := os.ReadFile(d + "/comm")
		if err != nil || !bytes.HasPrefix(comm, []byte("ksoftirqd/")) {
			continue
		}
		stat, err := os.ReadFile(d + "/schedstat")
		if err != nil {
			continue
		}
		if ns, err := strconv.ParseInt(strings.Fields(string(stat))[0], 10, 64); err == nil {
			total += time.Duration(ns)
		}
	}
	return total
}

// ownCPU is what this program used: it watches, and captures where it is asked to.
func ownCPU() time.Duration {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// machineBusy is the time that all processors have worked, and all that passed.
func machineBusy() (busy, all time.Duration) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := strings.Cut(string(data), "\n")
	for i, f := range strings.Fields(line)[1:9] { // user … steal; guest is in user
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, 0
		}
		t := time.Duration(n) * (time.Second / 100) // USER_HZ
		all += t
		if i != 3 && i != 4 { // idle, iowait
			busy += t
		}
	}
	return busy, all
}

// outcome is one run of one command.
type outcome struct {
	bytes               int64 // payload that arrived
	seconds             float64
	cpu                 time.Duration
	peakClient, peakSrv int64 // VmHWM
	ownClient, ownSrv   int64 // RssAnon while the traffic ran
	clientOut           []byte
	foreign             float64 // share of the machine that others used

	// Of UDP.
	dropped   float64 // share of what arrived that no program read
	perPacket float64 // datagrams that a packet held at the receiver's interface; 0 = not known
	seen      *seen   // by a capture, where one was asked for
}

func (r outcome) perGB() float64 { return r.cpu.Seconds() / (float64(r.bytes) / 1e9) }
func (r outcome) gbit() float64  { return float64(r.bytes) * 8 / r.seconds / 1e9 }

// runner runs commands over one network.
type runner struct {
	o     options
	net   *network
	tools toolset
	runs  int
	hung  int // runs that were repeated because a program that is known for it did not end
}

// ends are the processors of the two ends, −1 = left to the scheduler.
func (b *runner) ends() (client, server int) {
	var set unix.CPUSet
	if b.o.unpinned || unix.SchedGetaffinity(0, &set) != nil || set.Count() < 2 {
		return -1, -1
	}
	var cpus []int
	for i := 0; len(cpus) < 2; i++ {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus[1], cpus[0]
}

// run runs one test of c.
func (b *runner) run(c command, streams int, l load) (outcome, error) {
	return b.play(c, params{host: b.net.host, seconds: b.o.seconds, streams: streams, load: l})
}

func (b *runner) play(c command, p params) (outcome, error) {
	r, err := b.try(c, p)
	for again := 0; c.hangs && again < 5 && errors.Is(err, errHung); again++ {
		b.hung++
		r, err = b.try(c, p)
	}
	if err != nil {
		return r, fmt.Errorf("%s with %d streams: %w", c.name, p.streams, err)
	}
	return r, nil
}

func (b *runner) try(c command, p params) (outcome, error) {
	if why := b.tools.missing(c); why != "" {
		return outcome{}, errors.New(why)
	}
	b.runs++
	port := 10000 + b.runs%200*80 // below the ephemeral ports, with room for a port per stream
	before, err := b.net.received()
	if err != nil {
		return outcome{}, err
	}
	cpuClient, cpuServer := b.ends()
	soft, self := softirqd(), ownCPU()
	busy, all := machineBusy()
	path := []string{b.tools.path[c.tool]}
	srv, err := spawn(b.net.server, cpuServer, time.Now().Add(p.during()), join([]string{b.tools.path[c.serving()]}, c.server(port, p)))
	if err != nil {
		return outcome{}, err
	}
	defer srv.kill()
	if err := b.waitListening(srv, c.listens(port), c.udpServer); err != nil {
		return outcome{}, err
	}
	watch, err := b.watch(c, p, port)
	if err != nil {
		return outcome{}, err
	}
	defer watch.end()
	cli, err := spawn(b.net.client, cpuClient, time.Now().Add(p.during()), join(path, c.client(port, p)))
	if err != nil {
		return outcome{}, err
	}
	if err := cli.wait(patience(c, p)); err != nil {
		return outcome{}, fmt.Errorf("client: %w: %s%s", err, tail(&cli.out), tail(&cli.err))
	}
	if c.stays {
		srv.kill()
	} else if err := srv.wait(patience(c, p)); err != nil {
		return outcome{}, fmt.Errorf("server: %w: %s%s", err, tail(&srv.out), tail(&srv.err))
	}
	seen, err := watch.end()
	if err != nil {
		return outcome{}, err
	}
	r := outcome{
		seen: seen, seconds: p.seconds, cpu: cli.cpu() + srv.cpu() + softirqd() - soft, clientOut: cli.out.Bytes(),
		peakClient: cli.peak.Load(), peakSrv: srv.peak.Load(), ownClient: cli.own.Load(), ownSrv: srv.own.Load(),
	}
	after, err := b.net.received()
	if err != nil {
		return outcome{}, err
	}
	r.count(after.since(before), p.load)
	if r.bytes <= 0 {
		return outcome{}, errors.New("nothing arrived")
	}
	busyNow, allNow := machineBusy()
	if all = allNow - all; all > 0 {
		r.foreign = max(0, (busyNow-busy-r.cpu-(ownCPU()-self)).Seconds()/all.Seconds())
	}
	return r, nil
}

// during is a time after the start at which the traffic certainly runs.
func (p params) during() time.Duration { return time.Duration(0.9 * p.seconds * float64(time.Second)) }

// patience is how long a program may take for a test.
func patience(c command, p params) time.Duration {
	d := 4 * time.Duration(p.seconds*float64(time.Second))
	if c.hangs {
		return 8*time.Second + d
	}
	return 30*time.Second + d
}

func tail(b *bytes.Buffer) []byte {
	s := bytes.TrimSpace(b.Bytes())
	return s[max(0, len(s)-500):]
}

func (b *runner) waitListening(p *process, port int, udp bool) error {
	for deadline := time.Now().Add(10 * time.Second); !b.net.listening(port, udp); {
		select {
		case <-p.exited:
			return fmt.Errorf("server: %w: %s%s", p.status, tail(&p.out), tail(&p.err))
		case <-time.After(2 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("server does not listen on port %d", port)
		}
	}
	return nil
}
