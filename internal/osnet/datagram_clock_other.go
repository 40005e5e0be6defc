//go:build !linux && !windows

package osnet

import "time"

// Here the clock counts from the program's first look at it.
func newEpoch() epoch { return epoch{at: time.Now()} }

func monotonic() int64 { return int64(time.Since(clockEpoch().at)) }

func realtime() int64 { return time.Now().UnixNano() }
