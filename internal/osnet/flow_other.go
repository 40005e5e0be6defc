//go:build !linux

package osnet

import (
	"errors"
	"fmt"
	"net/netip"
)

func connectLabelled(_ uintptr, _, _ netip.AddrPort, label int) error {
	return &OptionError{Option: "flow-label", Value: fmt.Sprintf("%#x", label), Err: errors.ErrUnsupported}
}

func reflectLabels(uintptr, bool) error { return errors.ErrUnsupported }
