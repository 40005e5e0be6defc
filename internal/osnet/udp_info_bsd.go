//go:build darwin || freebsd

package osnet

import "unsafe"

// Neither stamps nor coalescing are asked for here (setStamps, setCoalesce), so nothing
// tells of them.
func isStamp(int32) bool                { return false }
func isSegment(_, _ int32) bool         { return false }
func stampOf(unsafe.Pointer, int) int64 { return 0 }
