//go:build !linux

// Command bench runs on Linux only: it needs network namespaces and scheduler statistics.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench: runs on Linux only: it needs network namespaces and scheduler statistics")
	os.Exit(2)
}
