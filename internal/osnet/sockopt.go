package osnet

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// sockopt is an integer socket option of this system. The zero value is one that the
// system does not have; using it gives errors.ErrUnsupported.
type sockopt struct {
	level, name int
	exists      bool
}

func (o sockopt) get(fd uintptr) (int, error) {
	if !o.exists {
		return 0, errors.ErrUnsupported
	}
	v, err := getInt(fd, o.level, o.name)
	return v, known(err)
}

func (o sockopt) set(fd uintptr, v int) error {
	if !o.exists {
		return errors.ErrUnsupported
	}
	return known(setInt(fd, o.level, o.name, v))
}

// known tells an option that this kernel does not know from one that it refuses.
func known(err error) error {
	if err != nil && isNoOption(err) {
		return fmt.Errorf("%w (%w)", errors.ErrUnsupported, err)
	}
	return err
}

func (o sockopt) setBool(fd uintptr, on bool) error {
	if on {
		return o.set(fd, 1)
	}
	return o.set(fd, 0)
}

func socketBuffers(fd uintptr) (snd, rcv int, err error) {
	if snd, err = optSndBuf.get(fd); err != nil {
		return 0, 0, err
	}
	rcv, err = optRcvBuf.get(fd)
	return snd, rcv, err
}

// isIPv6Socket reports whether the socket's family is IPv6, which it also is for the
// IPv4 peers of a dual-stack listener.
func isIPv6Socket(fd uintptr) bool { return socketFamily(fd) == 6 }

// sysctlCommand is the command that raises each of names to bytes.
func sysctlCommand(names []string, bytes int64) string {
	if len(names) == 0 {
		return ""
	}
	set := make([]string, len(names))
	for i, n := range names {
		set[i] = fmt.Sprintf("%s=%d", n, bytes)
	}
	return "sysctl -w " + strings.Join(set, " ")
}

func itoa(port uint16) string { return strconv.Itoa(int(port)) }
