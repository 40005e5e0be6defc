package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// sameSignal is how long a repetition counts as the same signal: timeout(1) sends its
// signal to the process and then to its group, a terminal and a supervisor may do both.
const sameSignal = 500 * time.Millisecond

// interruptible returns a context that the first SIGINT, SIGTERM or SIGHUP cancels
// with a *result.Error as its cause; a second one, later than sameSignal, ends the
// process at once. stop gives the signals back. Outside a whole process (tests) no
// signal is touched.
//
// A SIGHUP that was ignored when the process began stays so: nohup(1) was asked for, and a test
// of days must outlive the terminal that began it. SIGINT is heard all the same, as iperf3 does: a
// script has what it runs in the background ignore it, and ends it by kill -INT.
//
// Its goroutine ends when stop is called.
func (e *env) interruptible(ctx context.Context) (context.Context, func()) {
	return e.interruptibleAs(ctx, exitInterrupted)
}

// interruptible is the same with iperf3's exit codes: what the second signal cuts off
// has not said all it should.
func (d *dropin) interruptible(ctx context.Context) (context.Context, func()) {
	return d.interruptibleAs(ctx, 1)
}

// interruptibleAs is interruptible with the exit code of a second signal.
func (e *env) interruptibleAs(ctx context.Context, code int) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if !e.IsProcess {
		return ctx, func() { cancel(nil) }
	}
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(ch, syscall.SIGHUP)
	}
	done := make(chan struct{})
	go func() {
		var first time.Time
		for {
			select {
			case s := <-ch:
				switch {
				case first.IsZero():
					first = time.Now()
					cancel(interrupted(s))
				case time.Since(first) > sameSignal:
					os.Exit(code)
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(ch)
		close(done)
		cancel(nil)
	}
}

// interrupted is the cause of a signal, worded as iperf3 names signals.
func interrupted(s os.Signal) *result.Error {
	name := s.String()
	if n, ok := s.(syscall.Signal); ok {
		word := map[syscall.Signal]string{syscall.SIGINT: "Interrupt", syscall.SIGTERM: "Terminated", syscall.SIGHUP: "Hangup"}[n]
		if word != "" {
			name = fmt.Sprintf("%s(%d)", word, int(n))
		}
	}
	return &result.Error{Code: "interrupted", Text: "interrupted by signal " + name, Interrupted: true, Signal: name}
}
