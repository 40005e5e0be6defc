package osnet

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Options are the socket options of a data or control connection. The zero value
// leaves everything to the system, except where noted.
type Options struct {
	Family    int    // 4 or 6: refuse addresses of the other family; Listen: no dual stack
	BindHost  string // local address of Dial, literal or name
	BindDev   string // local interface
	LocalPort int    // local port of Dial; 0 = any
	Window    int64  // bytes, SO_SNDBUF and SO_RCVBUF; 0 = autotuning
	MSS       int    // bytes, TCP_MAXSEG
	NoDelay   bool   // TCP_NODELAY; false turns Nagle's algorithm on, against the Go runtime's default
	TOS       int    // the whole byte, both families
	FlowLabel int    // IPv6, 1…0xfffff

	Congestion string
	MPTCP      bool // false is plain TCP, against the Go runtime's default for listeners
	// UserTimeout is TCP_USER_TIMEOUT: data unacknowledged for so long ends the connection.
	UserTimeout  time.Duration
	Keepalive    *plan.Keepalive // nil turns it off, against the Go runtime's default
	FQRate       int64           // bit/s, SO_MAX_PACING_RATE
	DontFragment bool            // UDP
	Timeout      time.Duration   // for connecting, per address; 0 = the system's
}

// before sets what must be known before the handshake, on a socket that is about to
// connect or listen. What the system does not have, or caps, and the run can do
// without is a notice; a refusal is an *OptionError or *CongestionError.
func before(fd uintptr, tcp bool, o Options) ([]result.Notice, error) {
	if o.BindDev != "" {
		if err := bindDevice(fd, o.BindDev); err != nil {
			return nil, deviceError(o.BindDev, err)
		}
	}
	notices, err := common(fd, o)
	if err != nil {
		return nil, err
	}
	if o.DontFragment {
		if err := setDontFragment(fd, isIPv6Socket(fd), true); err != nil {
			return nil, &OptionError{Option: "dont-fragment", Err: err}
		}
	}
	if !tcp {
		return notices, nil
	}
	if err := setMSS(fd, o.MSS); err != nil {
		return nil, err
	}
	if o.Congestion != "" {
		if err := setCongestion(fd, o.Congestion); err != nil {
			return nil, congestionError(o.Congestion, err)
		}
	}
	n, err := tcpTimers(fd, o)
	return append(notices, n...), err
}

// common sets what TCP and UDP share and what may be set at any time.
func common(fd uintptr, o Options) ([]result.Notice, error) {
	var notices []result.Notice
	if err := setBuffers(fd, o.Window); err != nil {
		return nil, err
	}
	n, err := setTOS(fd, o.TOS)
	if err != nil {
		return nil, err
	}
	notices = append(notices, n...)
	if o.FQRate > 0 {
		notices = append(notices, setFQRate(fd, o.FQRate)...)
	}
	return notices, nil
}

func setMSS(fd uintptr, mss int) error {
	if mss <= 0 {
		return nil
	}
	if err := optMSS.set(fd, mss); err != nil {
		e := &OptionError{Option: "mss", Value: strconv.Itoa(mss), Err: err}
		if isInvalid(err) {
			e.Hint = fmt.Sprintf("the system takes %d to %d", plan.MinMSS, plan.MaxMSS)
		}
		return e
	}
	return nil
}

// tcpTimers sets the options about time. No-delay and keepalive are always set: the Go
// runtime turns both on for every connection.
func tcpTimers(fd uintptr, o Options) ([]result.Notice, error) {
	var notices []result.Notice
	if o.UserTimeout > 0 {
		if err := optUserTimeout.set(fd, int(o.UserTimeout/time.Millisecond)); err != nil {
			e := &OptionError{Option: "user-timeout", Value: o.UserTimeout.String(), Err: err}
			if !errors.Is(err, errors.ErrUnsupported) {
				return nil, e
			}
			notices = append(notices, refused(e))
		}
	}
	if optNoDelay.exists {
		if err := optNoDelay.setBool(fd, o.NoDelay); err != nil {
			return nil, &OptionError{Option: "no-delay", Err: err}
		}
	}
	if err := setKeepalive(fd, o.Keepalive); err != nil {
		return nil, err
	}
	return notices, nil
}

func setKeepalive(fd uintptr, k *plan.Keepalive) error {
	if !optKeepAlive.exists && k == nil {
		return nil
	}
	fail := func(err error) error { return &OptionError{Option: "keepalive", Err: err} }
	if err := optKeepAlive.setBool(fd, k != nil); err != nil {
		return fail(err)
	}
	if k == nil {
		return nil
	}
	for _, x := range []struct {
		opt sockopt
		v   int
	}{
		{optKeepIdle, int((k.Idle + time.Second - 1) / time.Second)},
		{optKeepIntvl, int((k.Interval + time.Second - 1) / time.Second)},
		{optKeepCount, k.Count},
	} {
		if x.v <= 0 {
			continue
		}
		if err := x.opt.set(fd, x.v); err != nil {
			return fail(err)
		}
	}
	return nil
}

// setTOS marks the headers of both families, since an IPv6 socket may carry IPv4, and
// says where the system sends something else than was asked.
func setTOS(fd uintptr, tos int) ([]result.Notice, error) {
	if tos == 0 {
		return nil, nil
	}
	fail := func(err error) error { return &OptionError{Option: "tos", Value: strconv.Itoa(tos), Err: err} }
	main := optTOS4
	if isIPv6Socket(fd) {
		main = optTOS6
		// A socket that is bound to IPv6 alone may refuse this; it sends no IPv4 either.
		_ = optTOS4.set(fd, tos)
	}
	if err := main.set(fd, tos); err != nil {
		return nil, fail(err)
	}
	if tosCaveat != "" {
		return []result.Notice{{Code: "tos-unsure", Level: result.Warn, Text: fmt.Sprintf("TOS %#02x: %s", tos, tosCaveat)}}, nil
	}
	got, err := main.get(fd)
	if err != nil {
		return nil, fail(err)
	}
	if got != tos {
		// net/ipv4/ip_sockglue.c, __ip_sock_set_tos: the two ECN bits of a TCP socket are the kernel's.
		return []result.Notice{{Code: "tos-altered", Level: result.Warn, Text: fmt.Sprintf(
			"TOS %#02x was asked for, the system sends %#02x: the lowest two bits of a TCP header belong to ECN", tos, got)}}, nil
	}
	return nil, nil
}

// setFQRate never fails: a run without kernel pacing is still a run, but not what was asked.
func setFQRate(fd uintptr, bps int64) []result.Notice {
	e := &OptionError{Option: "fq-rate", Value: fmt.Sprintf("%d bit/s", bps)}
	if e.Err = setPacing(fd, bps); e.Err != nil {
		return []result.Notice{refused(e)}
	}
	got, err := pacing(fd)
	if err == nil && got/8 != bps/8 && bps >= 8 {
		return []result.Notice{{Code: "fq-rate-clamped", Level: result.Warn, Text: fmt.Sprintf(
			"a pacing rate of %d bit/s was asked for, the kernel took %d", bps, got)}}
	}
	return nil
}

// refused says that the run goes on without an option.
func refused(e *OptionError) result.Notice {
	return result.Notice{Code: "option-refused", Level: result.Warn, Text: e.Error() + "; the run goes on without it"}
}

// Apply sets o on an accepted socket (server side): window, TOS in both families,
// no-delay, pacing, user timeout, keepalive, congestion control and MSS. What concerns
// only connecting is ignored. An unknown congestion control is a notice, as with
// iperf3, and so is an MSS that came too late: after the handshake Linux keeps what
// was agreed, which the client's own MSS option bounds in both directions (see
// Listener.Arm for the server's half).
func Apply(c *Conn, o Options) ([]result.Notice, error) {
	if c.shared != nil {
		return c.shared.apply(o)
	}
	var notices []result.Notice
	err := c.control(func(fd uintptr) error {
		n, err := common(fd, o)
		notices = append(notices, n...)
		if err != nil || !c.isTCP() {
			return err
		}
		if err := setMSS(fd, o.MSS); err != nil {
			return err
		}
		if o.MSS > 0 {
			if got, err := optMSS.get(fd); err == nil && got > o.MSS {
				notices = append(notices, result.Notice{Code: "mss-ignored", Level: result.Warn, Text: fmt.Sprintf(
					"an MSS of %d bytes was asked for, but this end's segments carry up to %d: it was agreed before the option could be set", o.MSS, got)})
			}
		}
		if o.Congestion != "" {
			if err := setCongestion(fd, o.Congestion); err != nil {
				e := congestionError(o.Congestion, err)
				text := e.Error()
				if used, uerr := congestion(fd); uerr == nil {
					text += "; using " + used
				}
				notices = append(notices, result.Notice{Code: "congestion-unavailable", Level: result.Warn, Text: text})
			}
		}
		n, err = tcpTimers(fd, o)
		notices = append(notices, n...)
		return err
	})
	if err != nil {
		return notices, err
	}
	return append(notices, windowNotices(c, o.Window)...), nil
}

// CongestionAvailable lists the congestion control algorithms that the kernel has loaded.
func CongestionAvailable() ([]string, error) {
	l, err := congestionAvailable()
	if err != nil {
		return nil, fmt.Errorf("osnet: congestion control: %w", err)
	}
	return l, nil
}
