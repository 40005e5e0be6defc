// Package ntttcp turns the command lines of the two programs called ntttcp into a plan:
// argv → Invocation{Plan, Serve, Output}, or the text and exit code that the original
// would end with. Linux is ntttcp-for-linux 1.4.3, Windows is ntttcp.exe 5.40. Options
// are tables (LinuxOptions, WindowsOptions); the help texts and docs/compat/ntttcp.md
// are printed from them.
//
// The rule for words: a command line that the real program accepts means what it means
// there. One that it refuses or garbles, but to which an article or the other dialect
// gives a clear meaning, does that, with one line on stderr (LinuxWords, WindowsWords).
// A line that only ntttcp-for-linux understands is read as its, whatever the dialect.
//
// Nothing here opens a socket or a file, or prints. Faults of the run itself (no
// receiver, a busy one, a port that is taken, a file that cannot be written) belong to
// the protocol and the caller. Lines end in "\n"; the caller makes CRLF of it where the
// original prints that.
package ntttcp

import (
	"slices"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// Invocation is a command line that can be run.
type Invocation struct {
	Plan  plan.Plan   // this end's settings; Plan.NTTTCP is set, its Role says which end
	Serve *plan.Serve // receiver: the listener; Serve.NTTTCP is Plan. nil = sender

	// ListenHosts are the receiver's addresses that are names, by mapping; the caller
	// resolves them into Serve.Listen, whose entries and ports are already right.
	// Indices are those of Serve.Listen.
	ListenHosts map[int]string

	Output Output
	Daemon bool // -D

	// What the original prints before anything happens: Banner, then the log lines of
	// its checks of the arguments (never part of the -O file), then the settings (only
	// when Output.Verbose). Complete lines or empty.
	Banner, Lines, Settings string
	// Stderr is ours: notes, one a line.
	Stderr string
}

// Stdout is what stands on stdout before the run.
func (i *Invocation) Stdout() string {
	if i.Output.Verbose {
		return i.Banner + i.Lines + i.Settings
	}
	return i.Banner + i.Lines
}

// Output is what changes only what is shown, not what is sent.
type Output struct {
	Dialect plan.NTTTCPDialect
	Verbose bool // -V, -v
	// Realtime: a line of throughput while the test runs, each Plan.Interval (Linux
	// unless -Q; Windows -m 1).
	Realtime bool
	// Tables: the result is on stdout (not with Windows -xml).
	Tables bool
	// Threads: the result has a row for each thread (Linux -V; Windows unless -hpt).
	Threads bool

	Log  string // -O: file of the log lines; "" = none
	XML  string // -x, -xml; "" = none
	JSON string // -j; "" = none
	// JitterFile: the receiver of -jm appends the arrival times as CSV; "" = none.
	JitterFile string

	// What else of the host is sampled and shown.
	TCPRetransmits bool   // --show-tcp-retrans
	Interface      string // --show-nic-packets; "" = none
	Interrupts     string // --show-dev-interrupts; "" = none
	CPUFromIdle    bool   // -cfi
	Unbuffered     bool   // -nsb; every line is written at once anyway
}

// Exit is a command line that ends at once.
type Exit struct {
	Code           int
	Stdout, Stderr string
}

// World is what Parse needs to know from outside. Zero fields mean "not known": what
// would be checked against them is left to the run.
type World struct {
	Windows bool             // the system is Windows; decides the default dialect
	Now     func() time.Time // for the times of log lines, local; nil = midnight
	CPUs    int              // how many this process may be pinned to
	Admin   bool             // Windows: an administrator runs this
	// SoftFiles is how many files may be open (RLIMIT_NOFILE), HardFiles the most that
	// could be asked for.
	SoftFiles, HardFiles uint64
	// Local reports whether host is an address of this machine, or a name of one.
	Local func(host string) bool
}

func (w World) now() time.Time {
	if w.Now == nil {
		return time.Time{}
	}
	return w.Now()
}

// notLocal: host is known not to be of this machine.
func (w World) notLocal(host string) bool { return w.Local != nil && !w.Local(host) }

const dialectWord = "--dialect"

// Choose says in which dialect a command line is read, and what is left of it without
// the word that said so: "--dialect linux|windows" in front; else the program's name
// (ntttcp.exe, ntttcps, ntttcpr are Windows' names); else the system.
func Choose(argv0 string, args []string, windows bool) (plan.NTTTCPDialect, []string, bool) {
	if len(args) > 0 {
		name, value, attached := strings.Cut(args[0], "=")
		if name == dialectWord {
			rest := args[1:]
			if !attached && len(rest) > 0 {
				value, rest = rest[0], rest[1:]
			}
			switch d := plan.NTTTCPDialect(strings.ToLower(value)); d {
			case plan.NTTTCPLinux, plan.NTTTCPWindows:
				return d, rest, true
			}
			return "", nil, false
		}
	}
	switch name := base(argv0); {
	case windows, strings.HasSuffix(name, ".exe"), name == "ntttcps", name == "ntttcpr":
		return plan.NTTTCPWindows, args, true
	}
	return plan.NTTTCPLinux, args, true
}

// base is the program's name, in lower case, whichever way its path is written.
func base(argv0 string) string {
	return strings.ToLower(argv0[strings.LastIndexAny(argv0, `/\`)+1:])
}

// roleOf is the role that the program's name gives, "" = none.
func roleOf(argv0 string) plan.NTTTCPRole {
	switch strings.TrimSuffix(base(argv0), ".exe") {
	case "ntttcps":
		return plan.NTTTCPSender
	case "ntttcpr":
		return plan.NTTTCPReceiver
	}
	return ""
}

// Parse reads a command line. argv0 is the program's name as typed, args the rest.
// Exactly one result is non-nil.
func Parse(argv0 string, args []string, w World) (*Invocation, *Exit) {
	words, notes := plainDashes(args)
	inv, exit := parseWords(argv0, words, w)
	if exit != nil {
		exit.Stderr = notes + exit.Stderr
		return nil, exit
	}
	inv.Stderr = notes + inv.Stderr
	inv.Plan.Options = slices.Clone(args) // as typed
	if inv.Serve != nil {
		inv.Serve.NTTTCP.Options = inv.Plan.Options
	}
	return inv, nil
}

// plainDashes undoes what web pages and word processors make of the dashes in front of options:
// Azure's page printed "ntttcp -s –m 8,*,10.0.0.4" for years, which the originals refuse.
func plainDashes(args []string) (words []string, notes string) {
	for i, word := range args {
		rest := strings.TrimLeft(word, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212")
		if rest == word || rest == "" || !isLetter(rest[0]) {
			continue
		}
		if words == nil {
			words = append(words, args...)
		}
		dash := "-"
		if strings.HasPrefix(word, "\u2014") || len(word)-len(rest) > len("\u2013") { // a long one was two
			dash = "--"
		}
		words[i] = dash + rest
		notes += "ntttcp: " + word + ": read as " + words[i] + " (the dash is not the one of the keyboard)\n"
	}
	if words == nil {
		words = args
	}
	return words, notes
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func parseWords(argv0 string, args []string, w World) (*Invocation, *Exit) {
	dialect, words, ok := Choose(argv0, args, w.Windows)
	if !ok {
		return nil, &Exit{Code: ExitUsage, Stderr: "ntttcp: --dialect: give linux or windows\n"}
	}
	if dialect == plan.NTTTCPLinux {
		p := newLinux(argv0, w)
		inv, exit := p.parse(words)
		return p.done(inv), exit
	}
	p := newWindows(argv0, w)
	inv, exit := p.parse(words)
	if exit != nil && p.foreign {
		if l, inv := readAsLinux(argv0, words, w); inv != nil {
			return l.done(inv), nil
		}
	}
	return p.done(inv), exit
}

// readAsLinux is a line that the Windows program refuses, if it is a clear one of the
// Linux program: nothing left over, garbled, clamped or refused; nor a line of the Windows
// program that lacks its mapping.
func readAsLinux(argv0 string, words []string, w World) (*linuxParser, *Invocation) {
	if len(words) == 0 {
		return nil, nil
	}
	p := newLinux(argv0, w)
	p.role = roleOf(argv0)
	p.note("ntttcp.exe refuses this line; it is read as one of NTTTCP for Linux (" + dialectWord + " linux)")
	inv, exit := p.parse(words)
	if exit != nil || p.unclear || p.foreign && !p.addressed {
		return nil, nil
	}
	return p, inv
}

// common is what both parsers collect.
type common struct {
	world  World
	plan   plan.Plan
	n      plan.NTTTCP
	out    Output
	stderr string
	said   map[string]bool // lines of stderr
	daemon bool
	hold   bool
}

// note is a line of ours on stderr, once each.
func (c *common) note(text string) {
	line := "ntttcp: " + text + "\n"
	if c.said[line] {
		return
	}
	if c.said == nil {
		c.said = map[string]bool{}
	}
	c.said[line] = true
	c.stderr += line
}

// done completes what both dialects do in the same way.
func (c *common) done(inv *Invocation) *Invocation {
	if inv == nil {
		return nil
	}
	if inv.Serve != nil {
		own := inv.Plan
		inv.Serve.NTTTCP = &own
	}
	inv.Stderr = c.stderr
	return inv
}
