//go:build !linux && !darwin && !freebsd && !windows

package osnet

import (
	"errors"
	"net/netip"
)

func isMessageCut(error) bool                { return false }
func setPacketInfo(uintptr, bool) error      { return errors.ErrUnsupported }
func packetInfo([]uint64, int) arrival       { return arrival{} }
func sourceControl([]uint64, netip.Addr) int { return 0 }
