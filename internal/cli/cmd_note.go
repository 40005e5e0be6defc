package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

func newNoteCmd(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "note ID TEXT",
		Short:   "Put a remark on a kept measurement",
		Long:    "Put a remark on a kept measurement. It replaces an earlier one; an empty text (\"\") removes it.\n\nID: see fullbore show --help.",
		Example: "  fullbore note last \"after the new cable\"",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
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
			return s.Note(ctx, id, strings.Join(args[1:], " "))
		},
	}
}
