//go:build !linux && !windows && !freebsd

package osnet

import "errors"

func usableCPUs() ([]int, error) { return nil, errors.ErrUnsupported }
func setAffinity([]int) error    { return errors.ErrUnsupported }
