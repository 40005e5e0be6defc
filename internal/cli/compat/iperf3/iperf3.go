// Package iperf3 turns iperf3's command line into a plan: argv → Invocation{Plan or
// Serve, Output}, or the text and exit code that iperf3 would end with. Options are a
// table (Options); the help text and docs/compat/iperf3.md are printed from it.
//
// It behaves as release 3.21 (FULLBORE_IPERF3_COMPAT=3.12: as that release where they
// differ), except for what testdata/deviations lists: numbers with junk, wrong signs
// and unknown units are refused with the option and the value named.
//
// Nothing here opens a socket or prints. Errors of the run itself (cannot connect,
// cannot open the log file) belong to the protocol and the caller.
package iperf3

import (
	"io/fs"

	"github.com/fullbore-net/fullbore/internal/cli/getopt"
	"github.com/fullbore-net/fullbore/internal/plan"
)

// Invocation is a command line that can be run. Exactly one of Plan and Serve is set.
type Invocation struct {
	Plan  *plan.Plan  // client
	Serve *plan.Serve // server

	// ListenHost is the server's -B when it is a name; the caller resolves it into
	// Serve.Listen, whose port is already right. "" otherwise.
	ListenHost string

	Output  Output
	Pidfile string // -I; "" = none
	Daemon  bool   // -D

	// Stdout and Stderr are lines to print before the run: deprecations, warnings,
	// notes. Complete lines or empty.
	Stdout, Stderr string
}

// Output is what changes only the text.
type Output struct {
	Release    Release
	JSON       bool   // -J or --json-stream
	JSONStream bool   // --json-stream
	FullOutput bool   // --json-stream-full-output; means nothing without JSONStream
	Format     byte   // -f: one of kmgtKMGT, 'a' = by size
	Verbose    bool   // -V
	Debug      int    // -d: 0 = off, 1 … 4
	Timestamps string // --timestamps: strftime format before each line; "" = none
	Logfile    string // "" = stdout
}

// Exit is a command line that ends at once, as -v, -h or a fault do.
type Exit struct {
	Code           int
	Stdout, Stderr string
}

// World is what Parse needs to know from outside. Zero fields are allowed where
// stated.
type World struct {
	Release Release // "" = R321

	// Password returns the password for the login of a user, from IPERF3_PASSWORD or
	// the terminal; false when there is none. nil = never one.
	Password func(user string) (string, bool)
	ReadFile func(name string) ([]byte, error)      // keys, users file; required
	Stat     func(name string) (fs.FileInfo, error) // -F; required

	// Timestamp prints the time now in a strftime format; nil = parameter errors carry
	// no time even with --timestamps.
	Timestamp func(format string) string

	Build    string        // release of fullbore, for -v
	System   func() string // like `uname -snrvm`, for -v; nil = ""
	Features []Feature     // what this build and system can do, for -v
}

// Parse reads a command line. argv0 is the program's name as typed, args the rest.
// Exactly one result is non-nil.
//
// Like iperf3, it checks each value when it comes to it, then roles and combinations,
// so of several faults the same one is reported; and -v and -h act when they are read.
func Parse(argv0 string, args []string, w World) (*Invocation, *Exit) {
	if w.Release == "" {
		w.Release = R321
	}
	p := &parser{world: w, release: w.Release}
	p.out = Output{Release: w.Release, Format: 'a'}
	p.plan.Options = append([]string(nil), args...)
	line := getopt.ParseGNU(spellings(), args)
	for _, m := range line.Matches {
		switch m.Key {
		case "version":
			return nil, &Exit{Stdout: p.stdout + versionText(w), Stderr: p.stderr}
		case "help":
			return nil, &Exit{Stdout: p.stdout + Help(), Stderr: p.stderr}
		}
		if f := setters[m.Key](p, m); f != nil {
			return nil, p.exit(f)
		}
	}
	if line.Err != nil {
		return nil, p.getoptExit(argv0, line.Err)
	}
	inv, f := p.finish()
	if f != nil {
		return nil, p.exit(f)
	}
	return inv, nil
}

// parser collects what the options say.
type parser struct {
	world   World
	release Release
	plan    plan.Plan  // the client's; also holds what both roles share
	serve   plan.Serve // what only a server has
	out     Output
	stdout  string
	stderr  string

	server, client         bool // -s, -c
	serverOnly, clientOnly bool // an option of that role was given
	gsro                   bool
	receiveTimeout         bool
	timeSet                bool
	block                  *value // -l, checked at the end because its range depends on -u
	user, publicKey        *string
	privateKey             *string
	pkcs1                  *value
	sctpOption             *value // the last of --nstreams, -X
	pidfile                string
	daemon                 bool
	deprecatedPacing       bool
}

// value is an option's number together with how it was given.
type value struct {
	getopt.Match
	n int64
}

func (p *parser) warn(text string) { p.stderr += "warning: " + text + "\n" }

func (p *parser) note(text string) { p.stderr += "iperf3: " + text + "\n" }

// exit is the end by a parameter error. JSON output makes no difference: stdout stays
// empty (spec iperf3-cli §4.2).
func (p *parser) exit(f *fault) *Exit {
	e := &Exit{Code: 1, Stdout: p.stdout, Stderr: p.stderr}
	if p.out.Timestamps != "" && p.world.Timestamp != nil {
		e.Stderr += p.world.Timestamp(p.out.Timestamps)
	}
	e.Stderr += "iperf3: parameter error - " + f.text + "\n"
	if f.hint != "" {
		e.Stderr += "iperf3: " + f.hint + "\n"
	}
	e.Stderr += "\n"
	if p.release.longUsage() {
		e.Stdout += Help()
	} else {
		e.Stderr += Usage
	}
	return e
}

// getoptExit is the end by a fault that the C library finds; its line carries the
// program's name as typed.
func (p *parser) getoptExit(argv0 string, err *getopt.Error) *Exit {
	e := &Exit{Code: 1, Stdout: p.stdout, Stderr: p.stderr + argv0 + ": " + err.Error() + "\n"}
	if p.release.longUsage() {
		e.Stderr += Help()
	} else {
		e.Stderr += "\n" + Usage
	}
	return e
}
