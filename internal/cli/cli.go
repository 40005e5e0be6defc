// Package cli is the command line: it reads words, calls one package per command,
// prints, and chooses the exit code. Nothing below it prints to the user or exits.
//
// A new command is a file cmd_<name>.go with an options struct, a constructor and a
// line in the list of root.go.
package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/fullbore-net/fullbore/internal/cli/process"
	"github.com/fullbore-net/fullbore/internal/firewall"
	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/service"
)

// Version is the release of this program. Builds set it with -ldflags -X.
var Version = "0.1.0-dev" //nolint:gochecknoglobals // set by the linker

// Std is the world as a command sees it. Tests pass their own.
type Std struct {
	In         io.Reader
	Out, Err   io.Writer
	Getenv     func(string) string
	Now        func() time.Time
	Executable func() (string, error)
	Terminal   bool                       // Out is a terminal
	InTerminal bool                       // In is one: passwords can be asked for
	Size       func() (width, height int) // of the terminal; nil = there is none
	NoColor    bool                       // the user wants none (NO_COLOR, TERM=dumb)
	Dumb       bool                       // Out shows control sequences as they are (old Windows consoles): no colours, no live view
	Restore    func()                     // puts the terminal back as it was; nil = it was left alone
	ReadSecret func(prompt string) (string, error)
	Firewall   *firewall.System // the packet filters; nil = this machine's
	Services   *service.Manager // the service manager; nil = this machine's
	IsProcess  bool             // this is the whole process: signals, umask and daemonising are ours to handle
}

// OS returns the real world.
func OS() Std {
	std := Std{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Now: time.Now, Executable: os.Executable,
		Terminal:   term.IsTerminal(int(os.Stdout.Fd())),
		InTerminal: term.IsTerminal(int(os.Stdin.Fd())),
		NoColor:    os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb",
		Size: func() (int, int) {
			w, h, err := term.GetSize(int(os.Stdout.Fd()))
			if err != nil {
				return 0, 0
			}
			return w, h
		},
		IsProcess: true,
	}
	if std.Terminal {
		restore, ok := process.VirtualTerminal(os.Stdout)
		std.Restore, std.Dumb = restore, !ok
		std.NoColor = std.NoColor || !ok
	}
	std.ReadSecret = func(prompt string) (string, error) {
		if _, err := io.WriteString(os.Stderr, prompt); err != nil {
			return "", err
		}
		secret, err := term.ReadPassword(int(os.Stdin.Fd()))
		_, _ = io.WriteString(os.Stderr, "\n")
		return string(secret), err
	}
	return std
}

// env is what commands share.
type env struct {
	Std
	began   bool     // a native command has begun to work
	words   []string // of a native command, after its name
	listens func()   // nil, or to be told when serve listens
}

// Main runs the command line args (args[0] is the program's name) and returns the
// exit code. Called as iperf3, ntttcp, ntttcps or ntttcpr (any path, any .exe) it is that
// program.
func Main(ctx context.Context, args []string, std Std) int {
	if std.Restore != nil {
		defer std.Restore()
	}
	if std.IsProcess {
		oshost.TrimCode()
		if std.Getenv("GOGC") == "" {
			// The heap is small and the hot paths make no garbage: half the slack costs nothing.
			debug.SetGCPercent(50)
		}
	}
	e := &env{Std: std}
	if len(args) == 0 {
		args = []string{"fullbore"}
	}
	switch personality(args[0]) {
	case "iperf3":
		return e.iperf3(ctx, args[0], args[1:])
	case "ntttcp", "ntttcps", "ntttcpr":
		return e.ntttcp(ctx, args[0], args[1:])
	}
	if len(args) > 1 {
		switch args[1] {
		case "iperf3":
			return e.iperf3(ctx, "iperf3", args[2:])
		case "ntttcp":
			return e.ntttcp(ctx, "ntttcp", args[2:])
		}
	}
	return e.native(ctx, args[1:])
}

// personality is the program's name without folder, ending and version suffix.
func personality(argv0 string) string {
	name := strings.ToLower(filepath.Base(strings.ReplaceAll(argv0, `\`, "/")))
	return strings.TrimSuffix(name, ".exe")
}
