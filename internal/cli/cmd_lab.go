package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// newLabCmd: emulated paths on this machine.
func newLabCmd(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Emulated paths on this machine (Linux, root)",
		Long: `Emulated paths on this machine: network namespaces joined by a link with a known
rate, delay, queue and loss. Try every command without a second host, or play a
scenario file and see whether what fullbore says is what was built.`,
	}
	cmd.AddCommand(newLabRunCmd(e), newLabShellCmd(e), newLabLinkCmd(e))
	return cmd
}

func newLabRunCmd(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "run FILE…",
		Short:   "Play scenario files and compare what was said with what was built",
		Example: "  fullbore lab run testdata/scenarios/rate-200m-28ms.scenario",
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
	percent := 0.0
	cmd := &cobra.Command{
		Use:   "shell",
		Short: "Open a shell at one end of an emulated path, with a server at the other",
		Long: `Open a shell at one end of an emulated path, with "fullbore serve" at the other.
Leaving the shell takes everything down again. Nothing outside the two namespaces
is changed, and no traffic leaves this machine.`,
		Example: "  fullbore lab shell --rate 200M --rtt 28ms\n  fullbore lab shell --rate 1G --rtt 10ms --loss 0.1 --cc cubic\n\nand in the shell:\n\n  fullbore test $SERVER",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Loss = percent / 100
			return e.labShell(cmd.Context(), *o)
		},
	}
	f := cmd.Flags()
	f.Var(rateFlag{&o.Rate}, "rate", "rate of the link in each direction (default 100M)")
	f.Var(durationFlag{&o.RTT}, "rtt", "round-trip time without load (default 20ms)")
	f.Var(sizeFlag{&o.Queue}, "queue", "queue before the link, bytes (default: one bandwidth-delay product)")
	f.Float64Var(&percent, "loss", 0, "random loss in each direction, percent")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of the loss, to repeat it")
	f.IntVar(&o.MTU, "mtu", 0, "largest packet (default 1500)")
	f.StringVar(&o.CC, "cc", "", "congestion control of both ends (default cubic)")
	return cmd
}

// newLabLinkCmd is the process that carries packets between the two ends; the lab
// starts it.
func newLabLinkCmd(e *env) *cobra.Command {
	return &cobra.Command{
		Use:    "link",
		Short:  "Carry packets between two TUN devices (started by the lab)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(*cobra.Command, []string) error { return lab.LinkMain(e.In, e.Out) },
	}
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
		case outcome.Unfit():
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
