package cli

import (
	"context"
	"fmt"
	"time"

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
	cmd.AddCommand(newLabRunCmd(e), newLabShellCmd(e))
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

type labShellOptions struct {
	rate  int64
	rtt   time.Duration
	queue int64
	loss  float64
	cc    string
}

func newLabShellCmd(e *env) *cobra.Command {
	o := &labShellOptions{}
	cmd := &cobra.Command{
		Use:     "shell",
		Short:   "Open a shell at one end of an emulated path, with a server at the other",
		Example: "  fullbore lab shell --rate 200M --rtt 28ms\n  fullbore lab shell --rate 1G --rtt 10ms --loss 0.1 --cc cubic",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.labShell(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.Var(rateFlag{&o.rate}, "rate", "rate of the link in each direction (default 100M)")
	f.Var(durationFlag{&o.rtt}, "rtt", "round-trip time without load (default 20ms)")
	f.Var(sizeFlag{&o.queue}, "queue", "queue before the link, bytes (default: one bandwidth-delay product)")
	f.Float64Var(&o.loss, "loss", 0, "random loss in each direction, percent")
	f.StringVar(&o.cc, "cc", "cubic", "congestion control of both ends")
	return cmd
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
