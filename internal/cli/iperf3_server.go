package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"

	compat "github.com/fullbore-net/fullbore/internal/cli/compat/iperf3"
	"github.com/fullbore-net/fullbore/internal/cli/process"
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	proto "github.com/fullbore-net/fullbore/internal/proto/iperf3"
	"github.com/fullbore-net/fullbore/internal/render/iperf3json"
	"github.com/fullbore-net/fullbore/internal/render/iperf3text"
	"github.com/fullbore-net/fullbore/internal/runner"
	"github.com/fullbore-net/fullbore/result"
)

// detachedVariable tells a process that it is the background half of -D: its
// listeners are descriptors 3 …, the one after them is written to when it is ready, and
// its pid file is written by the parent.
const detachedVariable = "FULLBORE_DETACHED_LISTENERS"

// oneSocketVariable makes a server keep one UDP socket for all streams, as on systems that
// do not tell connected sockets on one port apart: to see on another system what happens
// there (field case F15).
const oneSocketVariable = "FULLBORE_UDP_ONE_SOCKET"

func (e *env) oneSocket() bool { return e.Getenv(oneSocketVariable) == "1" }

// server is `iperf3 -s`: one test at a time, until interrupted.
func (d *dropin) server(ctx context.Context, inv *compat.Invocation) int {
	s := *inv.Serve
	inherited, err := strconv.Atoi(d.Getenv(detachedVariable))
	detached := err == nil && inherited > 0

	if inv.Pidfile != "" && !detached && !d.pidfileFree(inv.Pidfile) {
		return 1
	}
	log, ok := d.openLog()
	if !ok {
		return 1
	}
	defer log.Close()

	var lns []net.Listener
	if detached {
		lns, err = inheritedListeners(inherited)
	} else {
		lns, err = d.listeners(ctx, inv, s)
	}
	if err != nil {
		d.cannotListen(err)
		return 1
	}
	if inv.Daemon && !detached {
		return d.detach(inv, lns)
	}
	var pid *process.Pidfile
	switch {
	case inv.Pidfile != "" && detached:
		pid = process.AdoptPidfile(inv.Pidfile, os.Getpid())
	case inv.Pidfile != "":
		if pid, err = process.WritePidfile(inv.Pidfile, os.Getpid()); err != nil {
			d.fail("unable to write PID file: %s: %s", inv.Pidfile, proto.Reason(err))
			return 1
		}
	}
	defer pid.Remove()

	ctx, stop := d.interruptible(ctx)
	defer stop()
	if detached {
		ready := os.NewFile(uintptr(3+inherited), "ready")
		_, _ = ready.Write([]byte{1}) // a parent that is gone does not wait
		_ = ready.Close()
	}
	base := 5
	if d.out.Logfile != "" {
		base = 6
	}
	s.JSONOutput = d.out.JSON
	desk := &serverDesk{d: d, port: port(lns, s), oneOff: s.OneOff}
	desk.banner()
	err = d.runner(base).Serve(ctx, s, lns, desk.newTest)
	return desk.finish(ctx, err)
}

// listeners opens what -p, -B, -4 and -6 say.
func (d *dropin) listeners(ctx context.Context, inv *compat.Invocation, s plan.Serve) ([]net.Listener, error) {
	if inv.ListenHost != "" {
		addrs, err := osnet.Resolve(ctx, inv.ListenHost, s.Family)
		if err != nil {
			return nil, err
		}
		for i := range s.Listen {
			s.Listen[i] = netip.AddrPortFrom(addrs[0], s.Listen[i].Port())
		}
	}
	var lns []net.Listener
	for _, ap := range s.Filled().Listen {
		ln, err := osnet.Listen(ctx, "tcp", ap, osnet.Options{Family: s.Family, BindDev: s.BindDev})
		if err != nil {
			for _, l := range lns {
				_ = l.Close()
			}
			return nil, err
		}
		lns = append(lns, ln)
	}
	return lns, nil
}

func (d *dropin) cannotListen(err error) {
	d.fail("unable to start listener for connections: %s", proto.Reason(err))
	if d.release.Old() { // one line says all (field case F44)
		fmt.Fprintf(d.stderr, "%siperf3: exiting\n", d.timestamp())
	}
}

// detach starts the background half and ends this one. Everything that can go wrong
// has been tried before: the caller of -D sees it.
func (d *dropin) detach(inv *compat.Invocation, lns []net.Listener) int {
	var files []*os.File
	for _, ln := range lns {
		t, ok := ln.(interface{ File() (*os.File, error) })
		if !ok {
			d.fail("unable to become a daemon: %T has no descriptor", ln)
			return 1
		}
		f, err := t.File()
		if err != nil {
			d.fail("unable to become a daemon: %s", proto.Reason(err))
			return 1
		}
		defer f.Close()
		files = append(files, f)
	}
	exe, err := d.Executable()
	if err != nil {
		d.fail("unable to become a daemon: %v", err)
		return 1
	}
	ready, w, err := os.Pipe()
	if err != nil {
		d.fail("unable to become a daemon: %s", proto.Reason(err))
		return 1
	}
	defer ready.Close()
	argv := append([]string{"iperf3"}, d.args...) // the personality, whatever this program is called
	pid, err := process.Detach(exe, argv, append(files, w), fmt.Sprintf("%s=%d", detachedVariable, len(files)))
	_ = w.Close()
	if err != nil {
		d.fail("unable to become a daemon: %s", proto.Reason(err))
		return 1
	}
	if inv.Pidfile != "" {
		if _, err := process.WritePidfile(inv.Pidfile, pid); err != nil {
			d.fail("unable to write PID file: %s: %s (the server runs as process %d)", inv.Pidfile, proto.Reason(err), pid)
			return 1
		}
	}
	// Only a server that minds signals is ready: one that a script stops at once would
	// leave its pid file behind.
	if n, _ := ready.Read(make([]byte, 1)); n == 0 {
		d.fail("the server in the background ended at once (process %d)", pid)
		return 1
	}
	return 0
}

func inheritedListeners(n int) ([]net.Listener, error) {
	var lns []net.Listener
	for i := range n {
		f := os.NewFile(uintptr(3+i), "listener")
		ln, err := net.FileListener(f)
		_ = f.Close()
		if err != nil {
			return nil, err
		}
		lns = append(lns, ln)
	}
	return lns, nil
}

func port(lns []net.Listener, s plan.Serve) int {
	if len(lns) > 0 {
		if a, ok := lns[0].Addr().(*net.TCPAddr); ok {
			return a.Port
		}
	}
	return int(s.Filled().Listen[0].Port())
}

// serverDesk keeps the banners and the renderers of a server's tests in order.
type serverDesk struct {
	d      *dropin
	port   int
	oneOff bool

	mu   sync.Mutex
	n    int  // number of the test that is waited for
	said bool // a test's output has told that this server was interrupted
}

// banner announces the next test (text only).
func (s *serverDesk) banner() {
	s.n++
	if s.d.out.JSON {
		return
	}
	t := iperf3text.New(s.d.stdout, s.d.textOptions(result.Server))
	if s.n > 1 {
		o := s.d.textOptions(result.Server)
		o.Verbose = false // version and system are shown once
		t = iperf3text.New(s.d.stdout, o)
	}
	t.Listening(s.port, s.n)
}

// newTest makes the surroundings of one test.
func (s *serverDesk) newTest(result.Addr) runner.Hooks {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.d.newView(result.Server)
	if t, ok := v.view.(*iperf3text.Renderer); ok {
		t.Introduced()
	}
	stays := !s.oneOff
	watch := result.SinkFunc(func(e result.Event) {
		if e.Kind != result.KindError {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case e.Err.Interrupted && !e.Err.Remote:
			s.said = true
		case e.Err.Code == "auth": // a failed login is not the one test
			stays = true
		}
	})
	return runner.Hooks{
		Sink:   result.Tee(watch, v),
		Output: s.d.serverOutput,
		Done: func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if err := v.Close(); lost(err) {
				fmt.Fprintf(s.d.Err, "iperf3: error - %v\n", err)
			}
			if stays && !s.said {
				s.banner()
			}
		},
	}
}

// serverOutput is what --get-server-output hands to the client.
func (d *dropin) serverOutput(run *result.Run) (string, []byte) {
	if d.out.JSON {
		return "", iperf3json.Document(run, d.jsonOptions(result.Server))
	}
	return iperf3text.Text(run, d.textOptions(result.Server)), nil
}

// finish is what a server says at its end, and its exit code.
func (s *serverDesk) finish(ctx context.Context, err error) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var cause *result.Error
	if errors.As(context.Cause(ctx), &cause) && cause.Interrupted {
		if !s.said {
			s.interrupted(cause)
		}
		return s.d.exitStatus(cause)
	}
	if err == nil || errors.Is(err, proto.ErrIdle) { // nobody came to a one-off server: no fault, no word
		return 0
	}
	s.d.fail("%v", err)
	return 1
}

// interrupted is an idle server's last word: a line, or a document of its own.
func (s *serverDesk) interrupted(cause *result.Error) {
	v := s.d.newView(result.Server)
	if t, ok := v.view.(*iperf3text.Renderer); ok {
		t.Introduced()
	}
	v.Event(result.Event{Kind: result.KindError, End: result.Server, Err: cause})
	if err := v.Close(); lost(err) {
		fmt.Fprintf(s.d.Err, "iperf3: error - %v\n", err)
	}
}

// lineHandler prints log records of a drop-in's server as lines in iperf3's manner, so that
// strangers at the port and refused clients are seen: "iperf3: visitor 192.0.2.1: busy
// (holder …)". The line of a test is left out: its renderer has told it.
type lineHandler struct {
	program string // whose lines they are
	out     io.Writer
	stamp   func() string // the time in front of a line; nil = none
	debug   bool          // debug records, too
	attrs   []slog.Attr
}

// Enabled implements slog.Handler: debug records appear with -d.
func (h *lineHandler) Enabled(_ context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn || h.debug
}

// Handle implements slog.Handler.
func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "test" {
		return nil
	}
	var words []string
	var from, what string
	add := func(a slog.Attr) bool {
		switch a.Key {
		case "from":
			from = " " + a.Value.String()
		case "what":
			what = ": " + a.Value.String()
		default:
			words = append(words, a.Key+" "+a.Value.String())
		}
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	text := r.Message + from + what
	if len(words) > 0 {
		text += " (" + strings.Join(words, ", ") + ")"
	}
	stamp := ""
	if h.stamp != nil {
		stamp = h.stamp()
	}
	_, err := fmt.Fprintf(h.out, "%s%s: %s\n", stamp, h.program, text)
	return err
}

// WithAttrs implements slog.Handler.
func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *h
	more.attrs = append(append([]slog.Attr{}, h.attrs...), attrs...)
	return &more
}

// WithGroup implements slog.Handler; groups make no difference in a line.
func (h *lineHandler) WithGroup(string) slog.Handler { return h }
