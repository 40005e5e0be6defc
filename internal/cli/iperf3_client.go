package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	compat "github.com/fullbore-net/fullbore/internal/cli/compat/iperf3"
	"github.com/fullbore-net/fullbore/internal/cli/process"
	proto "github.com/fullbore-net/fullbore/internal/proto/iperf3"
	"github.com/fullbore-net/fullbore/internal/render/iperf3text"
	"github.com/fullbore-net/fullbore/internal/runner"
	"github.com/fullbore-net/fullbore/result"
)

// client runs one test as `iperf3 -c` does.
func (d *dropin) client(ctx context.Context, inv *compat.Invocation) int {
	log, ok := d.openLog()
	if !ok {
		return 1
	}
	defer log.Close()
	pid, ok := d.pidfile(inv.Pidfile)
	if !ok {
		return 1
	}
	defer pid.Remove()

	ctx, stop := d.interruptible(ctx)
	defer stop()
	base := 5
	if d.out.Logfile != "" {
		base = 6
	}
	r := d.runner(base)
	v := d.newView(result.Client)
	if t, ok := v.view.(*iperf3text.Renderer); ok {
		t.Introduce()
	}
	_, err := r.Run(ctx, *inv.Plan, v)
	if cerr := v.Close(); lost(cerr) {
		fmt.Fprintf(d.Err, "iperf3: error - %v\n", cerr)
		return 1
	}
	return d.exitStatus(err)
}

// lost reports whether output is missing that somebody wanted. A reader that went away
// (| head -1) wanted no more, and like iperf3 the test goes on without it.
func lost(err error) bool { return err != nil && !errors.Is(err, syscall.EPIPE) }

// runner makes what runs tests as the chosen release would. base is the number of the
// first stream.
func (d *dropin) runner(base int) *runner.Runner {
	return &runner.Runner{
		Version: Version, Release: d.release.String(), Now: d.Now, Log: slog.New(d.logLines()), SocketBase: base, Plain: true,
		OneSocket: d.oneSocket(),
	}
}

// logLines prints what the server notes.
func (d *dropin) logLines() slog.Handler {
	return &lineHandler{program: "iperf3", out: d.stderr, stamp: d.timestamp, debug: d.out.Debug > 0}
}

// exitStatus is iperf3's: 0 after a test, and since 3.19 after a signal; 1 after a
// failure, but 0 with -J from 3.10 to 3.13, unless a signal ended it (spec iperf3-cli §4.4).
func (d *dropin) exitStatus(err error) int {
	var broke *result.Error
	ok := false
	switch {
	case err == nil:
		ok = true
	case errors.As(err, &broke) && broke.Interrupted && !broke.Remote:
		ok = !d.release.Old()
	default:
		ok = d.out.JSON && d.release.Old()
	}
	if ok {
		return 0
	}
	return 1
}

// pidfile checks and writes -I.
func (d *dropin) pidfile(path string) (*process.Pidfile, bool) {
	if path == "" {
		return nil, true
	}
	if !d.pidfileFree(path) {
		return nil, false
	}
	p, err := process.WritePidfile(path, os.Getpid())
	if err != nil {
		d.fail("unable to write PID file: %s: %s", path, proto.Reason(err))
		return nil, false
	}
	return p, true
}

func (d *dropin) pidfileFree(path string) bool {
	name := strings.TrimSuffix(filepath.Base(d.argv0), ".exe")
	err := process.CheckPidfile(path, "iperf3", "fullbore", name)
	switch {
	case errors.Is(err, process.ErrRunning):
		fmt.Fprintf(d.Err, "iperf3: Another instance of iperf3 appears to be running\n")
		return false
	case err != nil:
		d.fail("unable to write PID file: %s: %s", path, proto.Reason(err))
		return false
	}
	return true
}
