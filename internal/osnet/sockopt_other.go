//go:build !linux

package osnet

import (
	"errors"

	"github.com/fullbore-net/fullbore/result"
)

func tcpInfo(uintptr) (result.TCPInfo, error) { return result.TCPInfo{}, errors.ErrUnsupported }
func sendQueue(uintptr) (int, error)          { return 0, errors.ErrUnsupported }
func recvQueue(uintptr) (int, error)          { return 0, errors.ErrUnsupported }
func congestion(uintptr) (string, error)      { return "", errors.ErrUnsupported }
func setCongestion(uintptr, string) error     { return errors.ErrUnsupported }
func congestionAvailable() ([]string, error)  { return nil, errors.ErrUnsupported }
func setPacing(uintptr, int64) error          { return errors.ErrUnsupported }
func pacing(uintptr) (int64, error)           { return 0, errors.ErrUnsupported }
func bindDevice(uintptr, string) error        { return errors.ErrUnsupported }
func setDontFragment(uintptr, bool) error     { return errors.ErrUnsupported }
func probe() Caps                             { return Caps{} }

const bufferFactor = 1
