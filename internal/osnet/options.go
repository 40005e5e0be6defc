package osnet

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Options are the socket options of a data or control connection. The zero value
// leaves everything to the system.
type Options struct {
	Family   int    // 4 or 6: refuse addresses of the other family; Listen: no dual stack
	BindHost string // local address, literal or name
	BindDev  string // local interface
	// LocalPort is the local port, 0 = any.
	LocalPort  int
	Window     int64 // bytes, SO_SNDBUF and SO_RCVBUF; 0 = autotuning
	MSS        int   // bytes, TCP_MAXSEG
	NoDelay    bool  // TCP_NODELAY; false means Nagle's algorithm is on, whatever the runtime's default
	TOS        int   // the whole byte, both families
	FlowLabel  int   // IPv6, 1…0xfffff
	Congestion string
	MPTCP      bool // false means plain TCP, whatever the runtime's default
	// UserTimeout is TCP_USER_TIMEOUT: unacknowledged data older than this ends the connection.
	UserTimeout  time.Duration
	Keepalive    *plan.Keepalive // nil = off
	FQRate       int64           // bit/s, SO_MAX_PACING_RATE
	DontFragment bool
	Timeout      time.Duration // for connecting, per address; 0 = the system's
}

// UsableBuffer converts a buffer size that the system reports (Conn.Buffers) to what
// an application can use of it: half on Linux, all elsewhere.
func UsableBuffer(reported int) int { return reported / bufferFactor }

// optionNotice says that an option could not be set and the run goes on without.
func optionNotice(e *OptionError) result.Notice {
	return result.Notice{Code: "option-refused", Level: result.Warn, Text: e.Error() + "; going on without it"}
}

// setBuffers asks for window bytes in both buffers. It never fails for a cap: the
// caller compares with windowNotices.
func setBuffers(fd uintptr, window int64) error {
	if window <= 0 {
		return nil
	}
	for _, o := range []sockopt{optSndBuf, optRcvBuf} {
		if err := o.set(fd, int(window)); err != nil {
			return &OptionError{Option: "window", Value: fmt.Sprint(window), Err: err}
		}
	}
	return nil
}

// setTOS marks both families' headers: an IPv6 socket may carry IPv4.
func setTOS(fd uintptr, tos int) error {
	if isIPv6Socket(fd) {
		if err := optTOS6.set(fd, tos); err != nil {
			return &OptionError{Option: "tos", Value: fmt.Sprint(tos), Err: err}
		}
		// A v6-only socket of some systems refuses the IPv4 option; it will not send IPv4 either.
		_ = optTOS4.set(fd, tos)
		return nil
	}
	if err := optTOS4.set(fd, tos); err != nil {
		return &OptionError{Option: "tos", Value: fmt.Sprint(tos), Err: err}
	}
	return nil
}

// before sets what must be known before the handshake: on a socket that is about to
// connect or listen.
func before(fd uintptr, tcp bool, o Options) ([]result.Notice, error) {
	var notices []result.Notice
	if o.BindDev != "" {
		if err := bindDevice(fd, o.BindDev); err != nil {
			return nil, deviceError(o.BindDev, err)
		}
	}
	if err := setBuffers(fd, o.Window); err != nil {
		return nil, err
	}
	if o.TOS != 0 {
		if err := setTOS(fd, o.TOS); err != nil {
			return nil, err
		}
	}
	if o.FQRate > 0 {
		if err := setPacing(fd, o.FQRate); err != nil {
			notices = append(notices, optionNotice(&OptionError{Option: "fq-rate", Value: fmt.Sprint(o.FQRate), Err: err}))
		}
	}
	if o.DontFragment {
		if err := setDontFragment(fd, isIPv6Socket(fd)); err != nil {
			return nil, &OptionError{Option: "dont-fragment", Err: err}
		}
	}
	if !tcp {
		return notices, nil
	}
	if o.MSS > 0 {
		if err := optMSS.set(fd, o.MSS); err != nil {
			return nil, &OptionError{Option: "mss", Value: fmt.Sprint(o.MSS), Err: err}
		}
	}
	if o.Congestion != "" {
		if err := setCongestion(fd, o.Congestion); err != nil {
			return nil, congestionError(o.Congestion, err)
		}
	}
	if o.UserTimeout > 0 {
		if err := optUserTimeout.set(fd, int(o.UserTimeout/time.Millisecond)); err != nil {
			notices = append(notices, optionNotice(&OptionError{Option: "user-timeout", Value: o.UserTimeout.String(), Err: err}))
		}
	}
	return notices, nil
}

// after sets what the Go runtime would otherwise decide for us.
func after(nc net.Conn, o Options) error {
	tc, ok := nc.(*net.TCPConn)
	if !ok {
		return nil
	}
	if err := tc.SetNoDelay(o.NoDelay); err != nil {
		return &OptionError{Option: "no-delay", Err: err}
	}
	cfg := net.KeepAliveConfig{Enable: o.Keepalive != nil, Idle: -1, Interval: -1, Count: -1}
	if k := o.Keepalive; k != nil {
		if k.Idle > 0 {
			cfg.Idle = k.Idle
		}
		if k.Interval > 0 {
			cfg.Interval = k.Interval
		}
		if k.Count > 0 {
			cfg.Count = k.Count
		}
	}
	if err := tc.SetKeepAliveConfig(cfg); err != nil {
		return &OptionError{Option: "keepalive", Err: err}
	}
	return nil
}

// Apply sets o on an accepted socket (server side): window, TOS in both families,
// congestion control, MSS, no-delay, pacing, user timeout. An unknown congestion
// control is a notice, as with iperf3; what concerns only connecting is ignored.
func Apply(c *Conn, o Options) ([]result.Notice, error) {
	var notices []result.Notice
	err := c.control(func(fd uintptr) error {
		oo := o
		oo.BindDev = ""
		oo.Congestion = ""
		n, err := before(fd, c.isTCP(), oo)
		notices = append(notices, n...)
		if err != nil {
			return err
		}
		if o.Congestion != "" && c.isTCP() {
			if err := setCongestion(fd, o.Congestion); err != nil {
				notices = append(notices, result.Notice{Code: "congestion-unavailable", Level: result.Warn, Text: congestionError(o.Congestion, err).Error()})
			}
		}
		return nil
	})
	if err != nil {
		return notices, err
	}
	notices = append(notices, windowNotices(c, o.Window)...)
	return notices, after(c.nc, o)
}

func windowNotices(c *Conn, asked int64) []result.Notice {
	if asked <= 0 {
		return nil
	}
	snd, rcv, err := c.Buffers()
	if err != nil {
		return nil
	}
	if w := Clamped(asked, snd, rcv); w != nil {
		return []result.Notice{w.Notice()}
	}
	return nil
}

// WindowError says that the system granted smaller buffers than were asked for.
type WindowError struct {
	Asked    int64 // bytes
	Snd, Rcv int   // usable bytes granted
}

// Clamped compares a requested window with what the system reports (Conn.Buffers); nil
// when both buffers are usable to the full.
func Clamped(asked int64, snd, rcv int) *WindowError {
	s, r := UsableBuffer(snd), UsableBuffer(rcv)
	if asked <= 0 || int64(s) >= asked && int64(r) >= asked {
		return nil
	}
	return &WindowError{Asked: asked, Snd: s, Rcv: r}
}

func (e *WindowError) Error() string {
	return fmt.Sprintf("socket buffer of %d bytes asked, usable are %d to send and %d to receive: raise net.core.wmem_max and net.core.rmem_max", e.Asked, e.Snd, e.Rcv)
}

// Notice says the same to the reader of the result.
func (e *WindowError) Notice() result.Notice {
	return result.Notice{
		Code: "window-clamped", Level: result.Warn, Text: e.Error(),
		Fix: fmt.Sprintf("sysctl -w net.core.wmem_max=%d net.core.rmem_max=%d", e.Asked, e.Asked),
	}
}

// CongestionAvailable lists the congestion control algorithms that the kernel has loaded.
func CongestionAvailable() ([]string, error) {
	l, err := congestionAvailable()
	if err != nil {
		return nil, fmt.Errorf("osnet: congestion control: %w", err)
	}
	return l, nil
}

func congestionError(name string, err error) error {
	e := &CongestionError{Name: name, Err: err}
	e.Available, _ = congestionAvailable()
	return e
}

// CongestionError says that an algorithm cannot be used and which can.
type CongestionError struct {
	Name      string
	Available []string
	Err       error
}

func (e *CongestionError) Error() string {
	if errors.Is(e.Err, errors.ErrUnsupported) {
		return fmt.Sprintf("congestion control %s: this system does not let a program choose it", e.Name)
	}
	return fmt.Sprintf("congestion control %s is not available here; available: %s", e.Name, strings.Join(e.Available, " "))
}

// Unwrap returns the system's error.
func (e *CongestionError) Unwrap() error { return e.Err }
