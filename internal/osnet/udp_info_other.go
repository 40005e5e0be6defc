//go:build !linux && !darwin && !freebsd && !windows

package osnet

import (
	"errors"
	"net/netip"
)

func isMessageCut(error) bool                      { return false }
func setPacketInfo(uintptr, bool) error            { return errors.ErrUnsupported }
func packetInfo([]uint64, int) (netip.Addr, int64) { return netip.Addr{}, 0 }
func sourceControl([]uint64, netip.Addr) int       { return 0 }
