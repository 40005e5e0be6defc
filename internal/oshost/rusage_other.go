//go:build !unix && !windows

package oshost

import "errors"

func processUse() (processTimes, error) { return processTimes{}, errors.ErrUnsupported }
