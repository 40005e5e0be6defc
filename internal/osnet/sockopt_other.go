//go:build !linux && !darwin && !freebsd && !windows

package osnet

import (
	"errors"

	"github.com/fullbore-net/fullbore/result"
)

// Systems that nobody has tried: connections work, options and readings do not.
var (
	optSndBuf, optRcvBuf, optReuseAddr, optMSS, optNoDelay, optTOS4, optTOS6, optUserTimeout,
	optKeepAlive, optKeepIdle, optKeepIntvl, optKeepCount, optLatePort sockopt
)

const (
	bufferFactor  = 1
	sndBufLimit   = ""
	rcvBufLimit   = ""
	tosCaveat     = ""
	portRangeName = ""
	// privilegedPorts is the first port that everybody may listen on.
	privilegedPorts = 1024
)

func getInt(uintptr, int, int) (int, error)     { return 0, errors.ErrUnsupported }
func setInt(uintptr, int, int, int) error       { return errors.ErrUnsupported }
func sysctl(string) string                      { return "" }
func raiseLimits([]string, int64) string        { return "" }
func widenPorts() string                        { return "" }
func portOwner(uint16) string                   { return "" }
func portRange() string                         { return "" }
func tcpInfo(uintptr) (result.TCPInfo, error)   { return result.TCPInfo{}, errors.ErrUnsupported }
func sendQueue(uintptr) (int, error)            { return 0, errors.ErrUnsupported }
func recvQueue(uintptr) (int, error)            { return 0, errors.ErrUnsupported }
func congestion(uintptr) (string, error)        { return "", errors.ErrUnsupported }
func setCongestion(uintptr, string) error       { return errors.ErrUnsupported }
func congestionAvailable() ([]string, error)    { return nil, errors.ErrUnsupported }
func congestionAllowed() []string               { return nil }
func setPacing(uintptr, int64) error            { return errors.ErrUnsupported }
func pacing(uintptr) (int64, error)             { return 0, errors.ErrUnsupported }
func bindDevice(uintptr, string) error          { return errors.ErrUnsupported }
func setDontFragment(uintptr, bool, bool) error { return errors.ErrUnsupported }
func duplicate(uintptr) (int, error)            { return -1, errors.ErrUnsupported }
func closeDescriptor(int) error                 { return errors.ErrUnsupported }
func socketFamily(uintptr) int                  { return 0 }
func isAddrNotAvail(error) bool                 { return false }
func isAddrInUse(error) bool                    { return false }
func isNoPermission(error) bool                 { return false }
func isRefused(error) bool                      { return false }
func isNoFamily(error) bool                     { return false }
func isBufferRefused(error) bool                { return false }
func isOutOfPorts(error) bool                   { return false }
func isNoOption(error) bool                     { return false }
func isInvalid(error) bool                      { return false }
func isTimedOut(error) bool                     { return false }
func isTooManyFiles(error) bool                 { return false }
func probe() Caps                               { return Caps{} }
