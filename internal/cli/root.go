package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// commands is the list of native commands, in the order of the help text. Each
// constructor lives in the cmd_ file of its name.
var commands = []func(*env) *cobra.Command{
	newDiagnoseCmd,
	newTestCmd,
	newSweepCmd,
	newCompareCmd,
	newConnRateCmd,
	newDelayCmd,
	newMTUCmd,
	newLoadCmd,
	newAcceptCmd,
	newRFC6349Cmd,
	newY1564Cmd,
	newServeCmd,
	newDoctorCmd,
	newFirewallCmd,
	newHistoryCmd,
	newShowCmd,
	newNoteCmd,
	newTagCmd,
	newExportCmd,
	newImportCmd,
	newPruneCmd,
	newBDPCmd,
	newExplainCmd,
	newLabCmd,
	newUDPMaxCmd,
	newSoakCmd,
	newCapacityCmd,
	newModelCmd,
	newRFC2544Cmd,
	newIperf3Cmd,
	newNTTTCPCmd,
	newVersionCmd,
}

const rootLong = `fullbore fills a network path, says how fast it really is, and names what
holds it back, with proof from both ends. The other end may be an iperf3
(3.1 … 3.21) or a fullbore; "self" stands for a server that fullbore starts
on this machine, so that everything can be tried without a second host.

Called as "iperf3" or "ntttcp" (or as "fullbore iperf3 …", "fullbore ntttcp …") it
is a drop-in for that program.`

const rootExample = `  fullbore diagnose self             try it on this machine
  fullbore serve                     answer iperf3, NTTTCP and fullbore clients
  fullbore diagnose HOST             what limits this path? (fullbore HOST: in 15 s)
  fullbore test HOST                 up, then down, 10 s each
  fullbore test HOST --down -P 8     eight streams from HOST to here
  fullbore delay HOST                round trip, jitter, loss of small packets
  fullbore bdp 10G 10ms              window, BDP and the sysctl lines
  fullbore doctor                    is this host fit to measure?
  fullbore iperf3 -c HOST -R -J      exactly as iperf3
  fullbore ntttcp -s HOST -t 30      exactly as ntttcp`

const rootExit = `Exit codes: 0 done and passed, 1 a limit was missed, 2 inconclusive, 3 usage,
4 cannot connect, 5 refused or busy, 6 broke off (partial result printed),
130 interrupted. The drop-ins use their originals' codes.`

// native runs one native command.
func (e *env) native(ctx context.Context, args []string) int {
	root := e.root()
	root.SetArgs(abWords(args))
	if len(args) > 0 {
		e.words = args[1:]
	}
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var usage *UsageError
	if !e.began && !errors.As(err, &usage) { // cobra found it: groups of options, say
		err = &UsageError{Msg: err.Error(), Hints: []string{"see: fullbore --help"}}
	}
	e.printError(err)
	return exitCode(err)
}

// Command returns the tree of native commands, from which man pages are made.
func Command(std Std) *cobra.Command { return (&env{Std: std}).root() }

// root builds the command tree; completion and man pages come from it too.
func (e *env) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "fullbore",
		Short:         "How fast is this network path really, and what holds it back?",
		Long:          rootLong + "\n\n" + rootExit,
		Example:       rootExample,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       Version,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			if len(args) == 1 && isHost(cmd.Context(), args[0]) {
				return e.runDiagnose(cmd.Context(), &diagnoseOptions{quick: true, most: 64, plan: plan.Plan{Port: plan.DefaultPort}}, args[0])
			}
			u := usagef("unknown command %q", args[0])
			for _, s := range cmd.SuggestionsFor(args[0]) {
				u.Hints = append(u.Hints, "did you mean: fullbore "+s)
			}
			if len(u.Hints) == 0 {
				u.Hints = append(u.Hints, "to measure towards a host: fullbore test "+args[0])
			}
			return u
		},
	}
	root.SuggestionsMinimumDistance = 2
	root.SetIn(e.In)
	root.SetOut(e.Out)
	root.SetErr(e.Err)
	root.SetVersionTemplate("fullbore {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &UsageError{Msg: err.Error(), Hints: []string{"see: " + cmd.CommandPath() + " --help"}}
	})
	for _, build := range commands {
		cmd := build(e)
		e.wrap(cmd)
		root.AddCommand(cmd)
	}
	return root
}

// wrap turns cobra's complaints about positional words into usage errors, and notes
// when a command begins to work: errors before that are all about the command line.
func (e *env) wrap(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			var usage *UsageError
			if err == nil || errors.As(err, &usage) {
				return err
			}
			return &UsageError{Msg: cmd.CommandPath() + ": " + err.Error(), Hints: []string{"see: " + cmd.CommandPath() + " --help"}}
		}
	}
	if work := cmd.RunE; work != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			e.began = true
			return work(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		e.wrap(sub)
	}
}

func newVersionCmd(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(e.Out, "fullbore %s\n", Version)
			return err
		},
	}
}
