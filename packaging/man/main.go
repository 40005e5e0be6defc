// Command man writes the man pages of all native commands into a folder, from the
// same source as --help. It is a program of its own because the page writer's
// libraries would cost every start of fullbore a millisecond and two megabytes.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra/doc"

	"github.com/fullbore-net/fullbore/internal/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: man DIR")
		os.Exit(3)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := cli.Command(cli.OS())
	root.DisableAutoGenTag = true
	date := time.Unix(0, 0).UTC() // pages must not differ from build to build
	return doc.GenManTree(root, &doc.GenManHeader{
		Title: "FULLBORE", Section: "1", Source: "fullbore " + cli.Version, Manual: "fullbore", Date: &date,
	}, dir)
}
