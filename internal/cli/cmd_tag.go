package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/store"
)

const tagLong = `Give a kept measurement words to find it by, or take them away. Without a word its
tags are printed. A run with the tag "keep" is never pruned.

ID: see fullbore show --help.`

func newTagCmd(e *env) *cobra.Command {
	var remove []string
	cmd := &cobra.Command{
		Use:     "tag ID [TAG…]",
		Short:   "Give a kept measurement words to find it by",
		Long:    tagLong,
		Example: "  fullbore tag last baseline keep\n  fullbore tag 01KB7Q --remove baseline\n  fullbore history --tag baseline",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, t := range append(args[1:], remove...) {
				if err := checkTag(t); err != nil {
					return err
				}
			}
			return e.onKept(cmd.Context(), args[0], func(s store.Store, id string) error {
				if len(args) > 1 || len(remove) > 0 {
					return s.Tag(cmd.Context(), id, args[1:], remove)
				}
				entry, err := s.Get(cmd.Context(), id)
				if err == nil {
					fmt.Fprintln(e.Out, screen.Clean(strings.Join(entry.Record.Tags, " ")))
				}
				return err
			})
		},
	}
	cmd.Flags().StringArrayVar(&remove, "remove", nil, "take this tag away (repeatable)")
	return cmd
}
