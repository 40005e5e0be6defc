//go:build !linux

package oshost

import "errors"

func clockSync() (synced bool, maxError, estError float64, err error) {
	return false, 0, 0, errors.ErrUnsupported
}
