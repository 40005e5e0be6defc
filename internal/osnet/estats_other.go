//go:build !windows

package osnet

import (
	"errors"

	"github.com/fullbore-net/fullbore/result"
)

func collectEStats(_, _ result.Addr) error { return errors.ErrUnsupported }

func readEStats(_, _ result.Addr) ([]result.EStatsStructure, error) {
	return nil, errors.ErrUnsupported
}
