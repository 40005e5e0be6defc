//go:build !linux && !windows

package osnet

import "errors"

func pathMTU(uintptr, bool) (int, error)      { return 0, errors.ErrUnsupported }
func setSegment(uintptr, int) error           { return errors.ErrUnsupported }
func setCoalesce(uintptr, bool) error         { return errors.ErrUnsupported }
func setStamps(uintptr) error                 { return errors.ErrUnsupported }
func socketDrops(uintptr) (int64, error)      { return 0, errors.ErrUnsupported }
func growReceive(fd uintptr, bytes int) error { return optRcvBuf.set(fd, bytes) }
