package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
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
			ctx := cmd.Context()
			s, err := e.history(ctx)
			if err != nil {
				return err
			}
			defer s.Close()
			id, err := findID(ctx, s, args[0])
			if err != nil {
				return err
			}
			if len(args) > 1 || len(remove) > 0 {
				return s.Tag(ctx, id, args[1:], remove)
			}
			entry, err := s.Get(ctx, id)
			if err != nil {
				return err
			}
			fmt.Fprintln(e.Out, strings.Join(entry.Record.Tags, " "))
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&remove, "remove", nil, "take this tag away (repeatable)")
	return cmd
}
