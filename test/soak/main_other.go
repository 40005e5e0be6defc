//go:build !linux

// Command soak runs on Linux only: it needs network namespaces.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "soak: runs on Linux only: it needs network namespaces")
	os.Exit(2)
}
