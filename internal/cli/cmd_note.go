package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/store"
)

func newNoteCmd(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "note ID TEXT",
		Short:   "Put a remark on a kept measurement",
		Long:    "Put a remark on a kept measurement. It replaces an earlier one; an empty text (\"\") removes it.\n\nID: see fullbore show --help.",
		Example: "  fullbore note last \"after the new cable\"",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.onKept(cmd.Context(), args[0], func(s store.Store, id string) error {
				return s.Note(cmd.Context(), id, strings.Join(args[1:], " "))
			})
		},
	}
}
