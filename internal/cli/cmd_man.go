package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newManCmd writes man pages from the same source as --help.
func newManCmd(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the man pages into a folder",
		Example: "  fullbore man /usr/local/share/man/man1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("man: %w", err)
			}
			date := time.Unix(0, 0).UTC() // pages must not differ from build to build
			head := &doc.GenManHeader{Title: "FULLBORE", Section: "1", Source: "fullbore " + Version, Manual: "fullbore", Date: &date}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			if err := doc.GenManTree(root, head, args[0]); err != nil {
				return fmt.Errorf("man: %w", err)
			}
			_, err := fmt.Fprintf(e.Out, "man pages written to %s\n", args[0])
			return err
		},
	}
}
