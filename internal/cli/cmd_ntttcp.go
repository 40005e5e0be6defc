package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os/signal"
	"runtime"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	compat "github.com/fullbore-net/fullbore/internal/cli/compat/ntttcp"
	"github.com/fullbore-net/fullbore/internal/cli/process"
	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// newNTTTCPCmd is only the entry in the native help: Main hands the words over before
// cobra could look at them.
func newNTTTCPCmd(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "ntttcp …",
		Short: "Be NTTTCP, of Linux or of Windows: its options, its tables, its files",
		Long: "Be ntttcp-for-linux 1.4.3, or ntttcp.exe 5.40 (--dialect windows as first word; the default on Windows): the same options, tables and files.\n" +
			"A receiver serves senders of both, whether they synchronise or not. See: fullbore ntttcp -h",
		Example:            "  fullbore ntttcp -r\n  fullbore ntttcp -s HOST -P 8 -t 30\n  fullbore ntttcp -s -m 8,*,HOST -t 60",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return &codeError{code: e.ntttcp(cmd.Context(), "ntttcp", args)}
		},
	}
}

// ntttcpRun is one run of the drop-in.
type ntttcpRun struct {
	*env
	argv0    string
	args     []string
	inv      *compat.Invocation
	out      compat.Output
	windows  bool      // the dialect
	stdout   io.Writer // with the ends of lines that the original has
	log      io.Writer // -O; nil = none
	host     *result.Host
	letIn    bool        // through this machine's packet filter, while it runs
	detached *parentPipe // this is the background half of -D; nil = it is not
}

// openFirewallWord is an option of ours, which the originals refuse: a receiver lets its senders
// through this machine's packet filter while it runs.
const openFirewallWord = "--open-firewall"

// ntttcp is the drop-in. It returns the exit code.
func (e *env) ntttcp(ctx context.Context, argv0 string, args []string) int {
	if e.IsProcess {
		signal.Ignore(syscall.SIGPIPE) // a test outlives the reader of its output
	}
	stdout := e.Out
	if dialect, _, _ := compat.Choose(argv0, args, process.Windows()); dialect == plan.NTTTCPWindows && process.Windows() {
		stdout = &crlfWriter{w: e.Out}
	}
	words := slices.DeleteFunc(slices.Clone(args), func(w string) bool { return w == openFirewallWord })
	inv, exit := compat.Parse(argv0, words, e.ntttcpWorld(ctx))
	if exit != nil {
		_, _ = io.WriteString(stdout, exit.Stdout)
		_, _ = io.WriteString(e.Err, exit.Stderr)
		return exit.Code
	}
	n := &ntttcpRun{
		env: e, argv0: argv0, args: args, inv: inv, out: inv.Output, windows: inv.Output.Dialect == plan.NTTTCPWindows,
		stdout: stdout, host: oshost.Facts(ctx, netip.Addr{}), detached: e.parent(), letIn: len(words) < len(args),
	}
	if err := n.prepare(); err != nil {
		fmt.Fprintf(e.Err, "ntttcp: %v\n", err)
		return n.usageCode()
	}
	log := n.introduce()
	defer log.Close()
	if !n.filesWritable() {
		return n.usageCode()
	}
	if inv.Daemon && n.detached == nil {
		return n.detach()
	}
	process.RaiseFiles(math.MaxUint64)
	ctx, stop := n.interruptibleAs(ctx, n.cutOffCode())
	defer stop()
	if inv.Serve != nil {
		return n.receive(ctx)
	}
	n.detached.ready()
	return n.send(ctx)
}

// usageCode is the exit code of a command line that cannot be carried out.
func (n *ntttcpRun) usageCode() int {
	if n.windows {
		return compat.ExitWindowsParameters
	}
	return compat.ExitUsage
}

// ntttcpWorld is what the command line is checked against.
func (e *env) ntttcpWorld(ctx context.Context) compat.World {
	_, hard := process.Files() // the lower limit is raised to it
	return compat.World{
		Windows: process.Windows(), Now: e.Now, CPUs: cpuCount(), Admin: process.Admin(),
		SoftFiles: hard, HardFiles: hard, Local: func(host string) bool { return isLocal(ctx, host) },
	}
}

// cpuCount is how many CPUs the machine has, as far as this process may know: their numbers are
// below it.
func cpuCount() int {
	n := runtime.NumCPU()
	if cpus, err := osnet.UsableCPUs(); err == nil && len(cpus) > 0 {
		n = max(n, slices.Max(cpus)+1)
	}
	return n
}

// isLocal reports whether host, an address or a name, is one of this machine.
func isLocal(ctx context.Context, host string) bool {
	addrs, err := osnet.Resolve(ctx, host, 0)
	if err != nil {
		return false
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return true // it shows when the ports are opened
	}
	for _, a := range addrs {
		if a.IsUnspecified() || a.IsLoopback() {
			return true
		}
		for _, o := range own {
			if p, ok := o.(*net.IPNet); ok && p.IP.Equal(net.IP(a.WithZone("").AsSlice())) {
				return true
			}
		}
	}
	return false
}

// crlfWriter ends lines as programs on Windows do.
type crlfWriter struct {
	w io.Writer
}

// Write implements io.Writer.
func (c *crlfWriter) Write(p []byte) (int, error) {
	out := make([]byte, 0, len(p)+8)
	for i, b := range p {
		if b == '\n' && (i == 0 || p[i-1] != '\r') {
			out = append(out, '\r')
		}
		out = append(out, b)
	}
	if _, err := c.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}
