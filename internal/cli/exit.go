package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// Exit codes of the native commands (design §3). The drop-ins use their originals'.
const (
	exitOK           = 0
	exitMissed       = 1   // a limit or threshold was missed
	exitInconclusive = 2   // measured, but no answer
	exitUsage        = 3   // the command line is wrong
	exitConnect      = 4   // nobody answered
	exitRefused      = 5   // the peer refused or is busy
	exitBroken       = 6   // broke off after it had begun; the partial result is printed
	exitInterrupted  = 130 // a signal ended it
)

// UsageError is a mistake in the command line. Hints say what would be right.
type UsageError struct {
	Msg   string
	Hints []string
}

func (e *UsageError) Error() string { return e.Msg }

func usagef(format string, args ...any) *UsageError {
	return &UsageError{Msg: fmt.Sprintf(format, args...)}
}

// codeError carries an exit code with an error that was not (or already) printed.
type codeError struct {
	code int
	err  error // nil: everything was said already
}

func (e *codeError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *codeError) Unwrap() error { return e.err }

// exitCode maps an error to the native exit codes.
func exitCode(err error) int {
	var usage *UsageError
	var coded *codeError
	var run *result.Error
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &run):
		return runExit(run)
	}
	return exitBroken
}

// runExit maps what ended a run to an exit code. The code words are those of
// result.Error: see explain.
func runExit(e *result.Error) int {
	switch {
	case e == nil:
		return exitOK
	case e.Interrupted && !e.Remote:
		return exitInterrupted
	}
	switch e.Code {
	case "usage", "plan":
		return exitUsage
	case "connect", "resolve", "address", "not-iperf3", "silent-peer", "udp-no-answer", "udp-refused", "port", "ports-refused":
		return exitConnect
	case "busy", "refused", "denied", "auth", "limit":
		return exitRefused
	}
	return exitBroken
}

// printError says what went wrong on stderr: one line, then hints.
func (e *env) printError(err error) {
	var coded *codeError
	if errors.As(err, &coded) && coded.err == nil {
		return
	}
	msg := strings.TrimSpace(err.Error())
	fmt.Fprintf(e.Err, "fullbore: %s\n", msg)
	var usage *UsageError
	if errors.As(err, &usage) {
		for _, h := range usage.Hints {
			fmt.Fprintf(e.Err, "  %s\n", h)
		}
	}
}
