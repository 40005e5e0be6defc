// Package service makes a receiver a service of this machine: what it is in values, the
// text or the calls that the system's service manager wants, and, on Windows, the main
// loop that the manager talks to. systemd and launchd get files; only systemd's are
// installed from here.
package service

import (
	"context"
	"errors"
	"io"
)

// Name is the service's name in every manager that takes one word.
const Name = "fullbore"

// Spec says what is to run.
type Spec struct {
	Description string
	Program     string // whole path
	Args        []Arg  // after the program
	// LowPorts: it listens on ports below 1024, which takes a capability on Linux.
	LowPorts bool
	// Log is the file that Main was told to write to; "" = the system's log.
	Log string
}

// Managed: the manager of this system talks to the process that it starts, which then
// must call Main.
const Managed = managed

// Arg is one word of the command line. With File, Value is the path of a file that the
// service must be able to read, and the word is Text followed by that path.
type Arg struct {
	Text string
	File string
}

// Words are the arguments as a shell would pass them.
func (s Spec) Words() []string {
	out := make([]string, len(s.Args))
	for i, a := range s.Args {
		out[i] = a.Text + a.File
	}
	return out
}

// ErrPrint: the service cannot be installed from here, but its text can be printed.
var ErrPrint = errors.New("it is not installed from here")

// LocationError: the service's account could not run the program where it lies.
type LocationError struct {
	Program, Where, Instead string
}

func (e *LocationError) Error() string {
	return "service: " + e.Program + " lies in " + e.Where + ", where a service cannot rely on it; copy it to " + e.Instead + " and install from there"
}

// Manager is the machine's service manager.
type Manager struct {
	// Root is put before the paths of files, for tests.
	Root string
	// Run runs a program of the manager.
	Run func(ctx context.Context, args ...string) error
	// Privileged: this process may install services.
	Privileged bool
}

// Text is the service as its manager wants it in a file, with the steps by which a person
// installs and removes it. It fails with errors.ErrUnsupported where no manager is known.
func Text(s Spec) (file, contents string, steps []string, err error) { return text(s) }

// Install installs the service and starts it; one that is there already gets the new
// command line. It returns what was done, a sentence each. ErrPrint: print Text instead.
func (m Manager) Install(ctx context.Context, s Spec) ([]string, error) { return m.install(ctx, s) }

// Uninstall stops the service and removes it. What was not there is no error, but said.
func (m Manager) Uninstall(ctx context.Context) ([]string, error) { return m.uninstall(ctx) }

// Main runs serve under the service manager, which must have started this process: until
// the manager asks to stop, or serve ends by itself. serve gets a context that is done
// when it must end, and where to write; ready reports that it has begun to do its work.
// Lines go to the system's log, or are appended to logFile. The result is serve's.
func Main(logFile string, serve func(ctx context.Context, out, errs io.Writer, ready func()) int) (int, error) {
	return run(logFile, serve)
}
