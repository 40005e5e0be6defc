package osnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Resolve returns the addresses of host, a literal (with zone, brackets allowed) or a
// name, in the order in which the system prefers them; nothing is tried. family 4 or 6
// restricts it, 0 does not. IPv4-mapped addresses come as IPv4. Errors are
// *ResolveError and *ZoneError.
func Resolve(ctx context.Context, host string, family int) ([]netip.Addr, error) {
	return ResolveOn(ctx, host, family, "")
}

// ResolveOn is Resolve for a peer that is reached by interface dev: it becomes the zone
// of a link-local address that has none.
func ResolveOn(ctx context.Context, host string, family int, dev string) ([]netip.Addr, error) {
	if host == "" {
		return nil, &ResolveError{Host: host, Reason: "no host given"}
	}
	if a, ok := literal(host); ok {
		if !inFamily(a, family) {
			return nil, &ResolveError{Host: host, Family: family, Reason: fmt.Sprintf("is not an %s address", familyNumber(family))}
		}
		a, err := withZone(a, dev)
		if err != nil {
			return nil, err
		}
		return []netip.Addr{a}, nil
	}
	network := "ip"
	if family != 0 {
		network += strconv.Itoa(family)
	}
	as, err := net.DefaultResolver.LookupNetIP(ctx, network, host)
	if err != nil {
		return nil, lookupError(ctx, host, family, err)
	}
	for i := range as {
		if as[i], err = withZone(as[i].Unmap(), dev); err != nil {
			return nil, err
		}
	}
	return as, nil
}

// literal parses a numeric address as people write it.
func literal(host string) (netip.Addr, bool) {
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	a, err := netip.ParseAddr(host)
	return a.Unmap(), err == nil
}

func inFamily(a netip.Addr, family int) bool {
	return family == 0 || (family == 4) == a.Is4()
}

func familyName(a netip.Addr) string {
	if a.Is4() {
		return "IPv4"
	}
	return "IPv6"
}

func familyNumber(f int) string { return "IPv" + strconv.Itoa(f) }

// lookupError says what is wrong with a name; one that exists only in the other family
// is told apart from one that does not exist.
func lookupError(ctx context.Context, host string, family int, err error) error {
	if ctx.Err() != nil {
		return &ResolveError{Host: host, Family: family, Reason: "was not found in time", Err: context.Cause(ctx)}
	}
	e := &ResolveError{Host: host, Family: family, Err: err}
	var de *net.DNSError
	var ae *net.AddrError
	switch {
	// The system's resolver calls it "no suitable address", the name servers "not found".
	case family != 0 && (errors.As(err, &ae) || errors.As(err, &de) && de.IsNotFound):
		if other, oerr := net.DefaultResolver.LookupNetIP(ctx, "ip", host); oerr == nil && len(other) > 0 {
			e.Reason = fmt.Sprintf("has no %s address", familyNumber(family))
			for _, a := range other {
				e.Have = append(e.Have, a.Unmap())
			}
			return e
		}
		e.Reason = "is not a known host name or address"
	case errors.As(err, &de) && de.IsNotFound:
		e.Reason = "is not a known host name or address"
	case errors.As(err, &de) && de.IsTimeout:
		e.Reason = "could not be looked up: the name server did not answer"
	default:
		e.Reason = "could not be looked up: " + err.Error()
	}
	return e
}

// ResolveError says why a host has no usable address.
type ResolveError struct {
	Host   string
	Family int // that was asked for, 0 = any
	Reason string
	Have   []netip.Addr // its addresses of the other family
	Err    error        // the resolver's, nil for literals
}

func (e *ResolveError) Error() string {
	if e.Host == "" {
		return e.Reason
	}
	s := e.Host + " " + e.Reason
	if len(e.Have) > 0 {
		var have []string
		for _, a := range e.Have {
			have = append(have, a.String())
		}
		s += ", only " + strings.Join(have, ", ")
	}
	return s
}

// Unwrap returns the resolver's error.
func (e *ResolveError) Unwrap() error { return e.Err }

// ZoneError says that an IPv6 link-local address lacks its interface, or names one
// that does not exist. Such addresses are the same on every link, so that the system
// cannot choose (RFC 4007 §6).
type ZoneError struct {
	Addr       netip.Addr
	Candidates []string // interfaces that could be meant
}

func (e *ZoneError) Error() string {
	bare := e.Addr.WithZone("")
	var s string
	if e.Addr.Zone() == "" {
		like := "eth0"
		if len(e.Candidates) > 0 {
			like = e.Candidates[0]
		}
		s = fmt.Sprintf("%s is a link-local address: add the %%interface by which it is reached, as in %s%%%s", bare, bare, like)
	} else {
		s = fmt.Sprintf("%s: there is no interface %s", e.Addr, e.Addr.Zone())
	}
	if len(e.Candidates) == 0 {
		return s + "; no interface here has IPv6"
	}
	return s + "; candidates: " + strings.Join(e.Candidates, ", ")
}

// withZone returns a with dev as its zone if it needs one, and checks the zone.
func withZone(a netip.Addr, dev string) (netip.Addr, error) {
	if !a.Is6() || !a.IsLinkLocalUnicast() && !a.IsLinkLocalMulticast() && !a.IsInterfaceLocalMulticast() {
		return a, nil
	}
	if a.Zone() == "" && dev != "" {
		a = a.WithZone(dev)
	}
	if a.Zone() != "" && zoneExists(a.Zone()) {
		return a, nil
	}
	return a, &ZoneError{Addr: a, Candidates: interfaceNames(func(i net.Interface) bool {
		return i.Flags&net.FlagUp != 0 && i.Flags&net.FlagLoopback == 0 && hasLinkLocal(i)
	})}
}

// zoneExists accepts a name or an index, as getaddrinfo does.
func zoneExists(zone string) bool {
	if _, err := net.InterfaceByName(zone); err == nil {
		return true
	}
	n, err := strconv.Atoi(zone)
	if err != nil {
		return false
	}
	_, err = net.InterfaceByIndex(n)
	return err == nil
}

func hasLinkLocal(i net.Interface) bool {
	as, err := i.Addrs()
	if err != nil {
		return false
	}
	for _, x := range as {
		if p, err := netip.ParsePrefix(x.String()); err == nil && p.Addr().Is6() && p.Addr().IsLinkLocalUnicast() {
			return true
		}
	}
	return false
}
