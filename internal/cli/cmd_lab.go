package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/internal/lab/link"
)

// newLabCmd: emulated paths on this machine.
func newLabCmd(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Emulated paths on this machine (Linux, root)",
		Long: `Emulated paths on this machine: network namespaces joined by a link with a known
rate, delay, queue, loss and other faults. Try every command without a second host, or play a
scenario file and see whether what fullbore says is what was built.`,
	}
	cmd.AddCommand(newLabDemoCmd(e), newLabRunCmd(e), newLabShellCmd(e))
	cmd.AddCommand(newLabHelperCmds(e)...)
	return cmd
}

func newLabRunCmd(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "run FILE…",
		Short: "Play scenario files and compare what was said with what was built",
		Long: `Build the path of each scenario file, play its command over it, and compare what was said
with what was built. Needs Linux and root. Nothing outside network namespaces of its own is
touched, and no traffic leaves this machine.

Exit codes: 0 all right, 1 something was said wrongly, 2 this machine was too busy to keep a
path true, 3 usage.`,
		Example: "  sudo fullbore lab run testdata/scenarios/rate-200m-28ms.scenario\n  sudo fullbore lab run testdata/scenarios/diagnose-window-*.scenario",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := e.interruptible(cmd.Context())
			defer stop()
			return e.labRun(ctx, args)
		},
	}
}

func newLabShellCmd(e *env) *cobra.Command {
	o := &lab.ShellOptions{}
	percent, twice := 0.0, 0.0
	keepOrder := false
	cmd := &cobra.Command{
		Use:   "shell",
		Short: "Open a shell at one end of an emulated path, with a server at the other",
		Long: `Open a shell at one end of an emulated path, with "fullbore serve" at the other.
Leaving the shell takes everything down again. Nothing outside the two namespaces
is changed, and no traffic leaves this machine.`,
		Example: "  fullbore lab shell --rate 200M --rtt 28ms\n  fullbore lab shell --rate 1G --rtt 10ms --loss 0.1 --cc cubic\n  fullbore lab shell --rate 10M --jitter 0-4ms --reorder 1%/3 --outage 10s/300ms\n\nand in the shell:\n\n  fullbore test $SERVER",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Loss, o.Faults.Duplicate = percent/100, twice/100
			if keepOrder && o.Faults.Jitter == (link.Jitter{}) {
				return &UsageError{Msg: "--keep-order needs --jitter"}
			}
			o.Faults.Jitter.KeepOrder = keepOrder
			return e.labShell(cmd.Context(), *o)
		},
	}
	f := cmd.Flags()
	f.Var(rateFlag{&o.Rate}, "rate", "rate of the link in each direction (default 100M)")
	f.Var(durationFlag{&o.RTT}, "rtt", "round-trip time without load (default 20ms)")
	f.Var(sizeFlag{&o.Queue}, "queue", "queue before the link, bytes (default: one bandwidth-delay product)")
	f.Float64Var(&percent, "loss", 0, "random loss in each direction, percent")
	f.Var(parsedFlag[link.Jitter]{&o.Faults.Jitter, lab.ParseJitter, "range"}, "jitter", "further delay of each packet, evenly spread: 0-4ms")
	f.BoolVar(&keepOrder, "keep-order", false, "jitter without reordering")
	f.Var(parsedFlag[link.Reorder]{&o.Faults.Reorder, lab.ParseReorder, "share/by"}, "reorder", "share of the packets held back, and for how many others or how long: 1%/3, 1%/5ms")
	f.Float64Var(&twice, "duplicate", 0, "packets that arrive twice, percent")
	f.Var(parsedFlag[link.Bursts]{&o.Faults.Bursts, lab.ParseBursts, "p/r"}, "bursts", "loss in bursts: probability that one begins, and that it ends: 0.1%/30%")
	f.Var(parsedFlag[link.Outage]{&o.Faults.Outage, lab.ParseOutage, "at/for"}, "outage", "loss of everything, from when after the first packet and for how long: 10s/300ms")
	f.IntVar(&o.Faults.Hole, "hole", 0, "largest packet that gets through; larger ones vanish")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of all random faults, to repeat them")
	f.IntVar(&o.MTU, "mtu", 0, "largest packet (default 1500)")
	f.StringVar(&o.CC, "cc", "", "congestion control of both ends (default cubic)")
	return cmd
}

// parsedFlag is a flag whose words the lab reads.
type parsedFlag[T any] struct {
	to    *T
	parse func(string) (T, error)
	kind  string
}

func (f parsedFlag[T]) Set(s string) (err error) {
	*f.to, err = f.parse(s)
	return err
}
func (f parsedFlag[T]) Type() string   { return f.kind }
func (f parsedFlag[T]) String() string { return "" } // no default is shown

// newLabHelperCmds are the programs that the lab itself starts in its namespaces.
func newLabHelperCmds(e *env) []*cobra.Command {
	var cmds []*cobra.Command
	for _, c := range []struct {
		use, short string
		args       int
	}{
		{"link", "Carry packets between two TUN devices (started by the lab)", 0},
		{"busy CPU", "Keep a processor busy (started by the lab)", 1},
		{"proxy PORT", "End connections and open them again (started by the lab)", 1},
	} {
		name, _, _ := strings.Cut(c.use, " ")
		cmds = append(cmds, &cobra.Command{
			Use: c.use, Short: c.short, Hidden: true, Args: cobra.ExactArgs(c.args),
			RunE: func(_ *cobra.Command, args []string) error {
				_, err := lab.Helper(append([]string{name}, args...), e.In, e.Out)
				return err
			},
		})
	}
	return cmds
}

func (e *env) labShell(ctx context.Context, o lab.ShellOptions) error {
	exe, err := e.Executable()
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	o.Fullbore = exe
	o.Server = []string{exe, "serve", "--no-ntttcp", "--quiet"}
	return lab.Shell(ctx, o, lab.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}

func (e *env) labRun(ctx context.Context, files []string) error {
	exe, err := e.Executable()
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	code := exitOK
	for _, f := range files {
		outcome, err := lab.RunFile(ctx, f, lab.RunOptions{Fullbore: exe}, e.Out)
		switch {
		case err != nil:
			return err
		case outcome.Unfit(), outcome.Cannot():
			code = max(code, exitInconclusive)
		case !outcome.Right():
			code = exitMissed
		}
	}
	if code != exitOK {
		return &codeError{code: code}
	}
	return nil
}
