// Command fullbore fills a network path, says how fast it really is, and names what
// holds it back. Called as iperf3 it is a drop-in for that program.
package main

import (
	"context"
	"os"

	"github.com/fullbore-net/fullbore/internal/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), os.Args, cli.OS()))
}
