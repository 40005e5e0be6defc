package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/lab/thread"
)

// Command is a program to be started in a namespace.
type Command struct {
	Args []string
	Env  []string // added to this process's environment
	Dir  string   // "" means this process's
	// Stdin is nil for none. Stdout and Stderr, when nil, are captured: see Process.
	Stdin          *os.File
	Stdout, Stderr *os.File
	// Foreground makes the program share this process's terminal and process group, as
	// a shell must. Otherwise it has a group of its own.
	Foreground bool
}

// historyVariable names the file of fullbore's history.
const historyVariable = "FULLBORE_HISTORY"

// Process is a program that was started in a namespace. It dies with this process.
type Process struct {
	cmd            *exec.Cmd
	stdout, stderr *os.File // memory files; nil when not captured
	done           chan struct{}
	err            error // of Wait; valid once done is closed
}

// Start starts a program in the namespace. Besides the network it sees a /sys of its
// own, as `ip netns exec` gives it, and the hosts file that SetHosts asked for. The
// caller must call Wait, or close the Network, which kills it.
func (ns *Namespace) Start(c Command) (*Process, error) { return ns.start(c, ns.group) }

// start is Start in a control group, nil for none of ours.
func (ns *Namespace) start(c Command, group *cgroup) (*Process, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("lab: start: no command")
	}
	p := &Process{done: make(chan struct{})}
	p.cmd = exec.Command(c.Args[0], c.Args[1:]...)
	p.cmd.Env = append(os.Environ(), c.Env...)
	if os.Getenv(historyVariable) == "" { // what a lab plays is no measurement of this host's paths
		p.cmd.Env = append(p.cmd.Env, historyVariable+"=off")
	}
	p.cmd.Dir = c.Dir
	if c.Stdin != nil {
		p.cmd.Stdin = c.Stdin
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL, // when the thread below dies, and it waits for the program
		Setsid:    !c.Foreground,
	}
	var err error
	if p.cmd.Stdout, p.stdout, err = output(c.Stdout, "stdout"); err != nil {
		return nil, err
	}
	if p.cmd.Stderr, p.stderr, err = output(c.Stderr, "stderr"); err != nil {
		return nil, err
	}
	if group != nil && group.v2 {
		dir, err := group.open()
		if err != nil {
			return nil, fmt.Errorf("lab: %s: %w", ns.Role, err)
		}
		defer dir.Close() // the program has been started
		p.cmd.SysProcAttr.UseCgroupFD, p.cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	}
	started := make(chan error, 1)
	thread.Doomed(func() {
		err := ns.settle()
		if err == nil && group != nil && !group.v2 {
			err = group.join()
		}
		if err == nil {
			err = reachable(p.cmd.Start)
		}
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.done)
		}
	})
	if err := <-started; err != nil {
		return nil, fmt.Errorf("lab: %s: start %s: %w", ns.Role, c.Args[0], err)
	}
	return p, nil
}

// starting guards the signals' dispositions, which are the whole process's.
var starting sync.Mutex

// reachable calls start so that SIGINT and SIGHUP end the program that it starts unless that
// one wills otherwise, as at a terminal. A shell without job control has what it runs in the
// background ignore SIGINT, and nohup(1) SIGHUP; what is ignored stays so in every program
// that is started from there, and a shell cannot even trap it (POSIX, 2.11 Signals and Error
// Handling). What is caught does not: so it is, for as long as the start takes. This process goes on
// ignoring what it ignored.
func reachable(start func() error) error {
	starting.Lock()
	defer starting.Unlock()
	caught := make(chan os.Signal, 1) // that nobody reads: what comes meanwhile is ignored, too
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGHUP} {
		if signal.Ignored(s) {
			signal.Notify(caught, s)
			defer signal.Ignore(s) // which also ends the catching
		}
	}
	return start()
}

// output returns where a stream goes and, if it is captured, the file to read it from:
// a memory file, which unlike a pipe needs no reader and cannot be held open by a
// daemon that the program leaves behind.
func output(given *os.File, name string) (to, captured *os.File, err error) {
	if given != nil {
		return given, nil, nil
	}
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, nil, fmt.Errorf("lab: capture %s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	return f, f, nil
}

// settle moves the calling thread, for good, into the namespace and into a mount
// namespace in which /sys and /etc/hosts fit it.
func (ns *Namespace) settle() error {
	if err := netns.Set(ns.h); err != nil {
		return fmt.Errorf("enter namespace: %w", err)
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare mounts: %w", err)
	}
	// What is mounted outside later still appears here, but nothing from here outside.
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := ns.mountSys(); err != nil {
		return err
	}
	if len(ns.hosts) == 0 {
		return nil
	}
	f, err := os.CreateTemp("", "fullbore-lab-hosts-")
	if err != nil {
		return fmt.Errorf("write hosts file: %w", err)
	}
	defer os.Remove(f.Name()) // the mount keeps it alive
	_, err = f.WriteString(strings.Join(ns.hosts, "\n") + "\n")
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return fmt.Errorf("write hosts file: %w", err)
	}
	if err := unix.Mount(f.Name(), "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount hosts file: %w", err)
	}
	return nil
}

// mountSys mounts a sysfs, which shows the devices of the namespace in which it was
// mounted. The control groups are mounted within the machine's, and are taken over: what a
// program may use of the processors is no secret to it.
func (ns *Namespace) mountSys() error {
	const groups = "/sys/fs/cgroup"
	tree, err := unix.OpenTree(unix.AT_FDCWD, groups, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err == nil {
		defer unix.Close(tree)
	} else if err != unix.ENOENT && err != unix.ENOSYS && err != unix.EINVAL {
		return fmt.Errorf("take %s over: %w", groups, err)
	}
	if err := unix.Mount(ns.Role, "/sys", "sysfs", 0, ""); err != nil {
		return fmt.Errorf("mount /sys: %w", err)
	}
	if err != nil {
		return nil // there are none, or the kernel is older than 5.2
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, groups, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount %s: %w", groups, err)
	}
	return nil
}

// Pid is the program's process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal to the program alone.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits until the program has ended and returns its exit code: 128 + n for one
// that signal n ended, as a shell has it. When ctx ends first, the program is killed
// and ctx's error returned.
func (p *Process) Wait(ctx context.Context) (code int, err error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		_ = p.Signal(os.Kill) // it may have ended meanwhile
		<-p.done
		return 0, fmt.Errorf("lab: %s: %w", p.cmd.Args[0], context.Cause(ctx))
	}
	return p.code()
}

func (p *Process) code() (int, error) {
	var exit *exec.ExitError
	switch {
	case p.err == nil:
		return 0, nil
	case !errors.As(p.err, &exit):
		return 0, fmt.Errorf("lab: %s: %w", p.cmd.Args[0], p.err)
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return exit.ExitCode(), nil
}

// Stdout and Stderr return what the program has written so far, also while it runs;
// "" when the stream is not captured.
func (p *Process) Stdout() string { return contents(p.stdout) }

// Stderr is like Stdout.
func (p *Process) Stderr() string { return contents(p.stderr) }

func contents(f *os.File) string {
	if f == nil {
		return ""
	}
	fi, err := f.Stat()
	if err != nil {
		return ""
	}
	b, err := io.ReadAll(io.NewSectionReader(f, 0, fi.Size()))
	if err != nil {
		return ""
	}
	return string(b)
}

// Run starts a program and waits for it. A non-zero exit code is no error.
func (ns *Namespace) Run(ctx context.Context, args ...string) (Result, error) {
	p, err := ns.Start(Command{Args: args})
	if err != nil {
		return Result{}, err
	}
	code, err := p.Wait(ctx)
	return Result{Code: code, Stdout: p.Stdout(), Stderr: p.Stderr()}, err
}

// must is Run for a tool that has to succeed; stdin may be "".
func (ns *Namespace) must(ctx context.Context, stdin string, args ...string) (string, error) {
	c := Command{Args: args}
	if stdin != "" {
		_, f, err := output(nil, "stdin")
		if err != nil {
			return "", err
		}
		defer f.Close()
		if _, err := f.WriteAt([]byte(stdin), 0); err != nil {
			return "", fmt.Errorf("lab: %s: %w", args[0], err)
		}
		c.Stdin = f
	}
	p, err := ns.Start(c)
	if err != nil {
		return "", err
	}
	code, err := p.Wait(ctx)
	if err == nil && code != 0 {
		err = fmt.Errorf("lab: %s: %s: exit code %d: %s", ns.Role, strings.Join(args, " "), code, strings.TrimSpace(p.Stderr()))
	}
	return p.Stdout(), err
}
