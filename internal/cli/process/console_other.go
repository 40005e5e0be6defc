//go:build !windows

package process

import "os"

// VirtualTerminal reports that terminals understand control sequences: here they do, and
// those that do not say so in TERM.
func VirtualTerminal(*os.File) (restore func(), ok bool) { return func() {}, true }
