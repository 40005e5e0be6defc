package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/store"
	"github.com/fullbore-net/fullbore/internal/units"
)

const pruneLong = `Remove kept measurements, the oldest first. Those with the tag "keep" stay. --older and
--max-size hold for the records of soaks, too, each kind for itself; one that is still being
written stays.

By itself the history stays below 256 MiB of documents: when it is full, the oldest go until
nine tenths are left (FULLBORE_HISTORY_MAX=1G is another bound, off none). A test of two
directions takes about 11 kB, a diagnosis of a minute about 40 kB; docs/history.md has the
measured figures.`

func newPruneCmd(e *env) *cobra.Command {
	var older string
	var keep int
	var size int64
	var dry bool
	cmd := &cobra.Command{
		Use:     "prune",
		Short:   "Remove old measurements from the history",
		Long:    pruneLong,
		Example: "  fullbore prune --older 90d\n  fullbore prune --keep 1000\n  fullbore prune --max-size 50M --dry-run",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := store.Bounds{Keep: keep, MaxSize: size, DryRun: dry}
			if older != "" {
				age, err := parseAge(older)
				if err != nil || age <= 0 {
					return usagef("--older %s: want an age such as 90d", older)
				}
				b.Before = e.Now().Add(-age)
			}
			if keep < 0 {
				return usagef("--keep %d: must be at least 1", keep)
			}
			if b.Before.IsZero() && keep == 0 && size == 0 {
				return &UsageError{Msg: "prune: say what goes: --older, --keep or --max-size", Hints: []string{"see: fullbore prune --help"}}
			}
			return e.runPrune(cmd.Context(), b)
		},
	}
	f := cmd.Flags()
	f.StringVar(&older, "older", "", "remove what is older than this, e.g. 90d, 12h")
	f.IntVar(&keep, "keep", 0, "keep only the newest so many")
	f.Var(sizeFlag{&size}, "max-size", "remove the oldest until documents take no more than this, e.g. 50M")
	f.BoolVar(&dry, "dry-run", false, "only say what would be removed")
	return cmd
}

func (e *env) runPrune(ctx context.Context, b store.Bounds) error {
	s, err := e.history(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	gone, err := s.Prune(ctx, b)
	if err != nil {
		return err
	}
	size, err := s.Size(ctx)
	if err != nil {
		return err
	}
	word := "removed"
	if b.DryRun {
		word = "would be removed"
	}
	fmt.Fprintf(e.Out, "%d runs (%s) %s; %d are kept (%s, %s on disk)\n", gone.Runs, units.ByteSize(gone.Bytes), word, size.Runs, units.ByteSize(size.Bytes), units.ByteSize(size.FileBytes))
	records, err := e.pruneRecords(ctx, s, b, "")
	if records.Runs > 0 {
		fmt.Fprintf(e.Out, "%s (%s) %s\n", counted(records.Runs, "record")+" of soaks", units.ByteSize(records.Bytes), word)
	}
	return err
}
