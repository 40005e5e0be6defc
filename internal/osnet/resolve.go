package osnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Resolve returns the addresses of host, a literal (with zone) or a name, in the order
// in which the system prefers them. family 4 or 6 restricts it. IPv4-mapped addresses come as IPv4.
func Resolve(ctx context.Context, host string, family int) ([]netip.Addr, error) {
	if host == "" {
		return nil, errors.New("resolve: no host given")
	}
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		a = a.Unmap()
		if err := checkFamily(host, a, family); err != nil {
			return nil, err
		}
		if err := checkZone(a); err != nil {
			return nil, err
		}
		return []netip.Addr{a}, nil
	}
	network := "ip"
	if family != 0 {
		network = fmt.Sprintf("ip%d", family)
	}
	as, err := net.DefaultResolver.LookupNetIP(ctx, network, host)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", host, err)
	}
	for i := range as {
		as[i] = as[i].Unmap()
	}
	return as, nil
}

func checkFamily(host string, a netip.Addr, family int) error {
	if family == 4 && !a.Is4() || family == 6 && !a.Is6() {
		return fmt.Errorf("%s is not an IPv%d address", host, family)
	}
	return nil
}

func checkZone(a netip.Addr) error {
	if !a.IsLinkLocalUnicast() || !a.Is6() || a.Zone() != "" {
		return nil
	}
	return fmt.Errorf("%s is a link-local address: add %%interface", a)
}
