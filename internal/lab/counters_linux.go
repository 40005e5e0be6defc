package lab

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Counters reads the protocol counters of the namespace: /proc/net/snmp and
// /proc/net/netstat as "Udp.RcvbufErrors", "TcpExt.TCPLostRetransmit", and
// /proc/net/snmp6 as "Udp6RcvbufErrors".
func (ns *Namespace) Counters() (map[string]int64, error) {
	all := map[string]int64{}
	err := ns.Do(func() error {
		for _, name := range []string{"snmp", "netstat"} {
			b, err := os.ReadFile("/proc/thread-self/net/" + name)
			if err != nil {
				return err
			}
			if err := parseTables(string(b), all); err != nil {
				return fmt.Errorf("/proc/net/%s: %w", name, err)
			}
		}
		b, err := os.ReadFile("/proc/thread-self/net/snmp6")
		if os.IsNotExist(err) {
			return nil // a kernel without IPv6
		}
		if err != nil {
			return err
		}
		return parsePairs(string(b), all)
	})
	if err != nil {
		return nil, fmt.Errorf("lab: read counters: %w", err)
	}
	return all, nil
}

// parseTables reads pairs of lines, "Udp: InDatagrams …" and "Udp: 17 …".
func parseTables(text string, into map[string]int64) error {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines)%2 != 0 {
		return fmt.Errorf("%d lines, which are not pairs", len(lines))
	}
	for i := 0; i < len(lines); i += 2 {
		names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
		if len(names) == 0 || len(names) != len(values) || names[0] != values[0] {
			return fmt.Errorf("line %d does not match the next", i+1)
		}
		for k, name := range names[1:] {
			v, err := strconv.ParseInt(values[k+1], 10, 64)
			if err != nil {
				return fmt.Errorf("line %d: %w", i+2, err)
			}
			into[strings.TrimSuffix(names[0], ":")+"."+name] = v
		}
	}
	return nil
}

// parsePairs reads lines of a name and a number.
func parsePairs(text string, into map[string]int64) error {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) != 2 {
			return fmt.Errorf("line %q is not a name and a number", line)
		}
		v, err := strconv.ParseInt(words[1], 10, 64)
		if err != nil {
			return err
		}
		into[words[0]] = v
	}
	return nil
}

// Listening tells whether any TCP socket of the namespace listens on more than
// 127.0.0.0/8: there programs also try what their system can do, for a moment, before
// they listen for others.
func (ns *Namespace) Listening() (listening bool, err error) {
	err = ns.Do(func() error {
		for _, name := range []string{"tcp", "tcp6"} {
			b, err := os.ReadFile("/proc/thread-self/net/" + name)
			if os.IsNotExist(err) {
				continue
			}
			if err != nil {
				return err
			}
			listening = listening || hasListener(string(b))
		}
		return nil
	})
	return listening, err
}

// hasListener looks for state 0A (TCP_LISTEN) in the table of /proc/net/tcp.
func hasListener(table string) bool {
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if len(words) <= 3 || words[3] != "0A" {
			continue
		}
		// The address is in the byte order of the machine, which is little here.
		if addr, _, _ := strings.Cut(words[1], ":"); len(addr) != 8 || !strings.HasSuffix(addr, "7F") {
			return true
		}
	}
	return false
}
