package osnet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResolveLiterals(t *testing.T) {
	for _, tt := range []struct {
		host   string
		family int
		want   string // an address, or what the error says
	}{
		{"10.77.0.2", 0, "10.77.0.2"},
		{"10.77.0.2", 4, "10.77.0.2"},
		{"10.77.0.2", 6, "10.77.0.2 is not an IPv6 address"},
		{"fd77::2", 0, "fd77::2"},
		{"fd77::2", 6, "fd77::2"},
		{"fd77::2", 4, "fd77::2 is not an IPv4 address"},
		{"[fd77::2]", 0, "fd77::2"},
		{"::ffff:10.77.0.2", 0, "10.77.0.2"},
		{"::ffff:10.77.0.2", 6, "::ffff:10.77.0.2 is not an IPv6 address"},
		{"", 0, "no host given"},
		// Zones are kept where they mean something and refused where they cannot.
		{"fe80::1%nosuch0", 0, "there is no interface nosuch0"},
		{"fe80::1%999999", 0, "there is no interface 999999"},
		{"fe80::1", 0, "is a link-local address"},
		{"ff02::1", 0, "is a link-local address"},
		{"fe80::1", 4, "fe80::1 is not an IPv4 address"},
	} {
		as, err := Resolve(context.Background(), tt.host, tt.family)
		got := ""
		switch {
		case err != nil:
			got = err.Error()
			if !strings.Contains(got, tt.want) {
				t.Errorf("%q, family %d: error %q, want %q", tt.host, tt.family, got, tt.want)
			}
			continue
		case len(as) == 1:
			got = as[0].String()
		}
		if got != tt.want {
			t.Errorf("%q, family %d: %v, want %s", tt.host, tt.family, as, tt.want)
		}
	}
}

// Link-local addresses of IPv4 have no zone and need none.
func TestResolveIPv4LinkLocal(t *testing.T) {
	as, err := Resolve(context.Background(), "169.254.1.1", 0)
	if err != nil || len(as) != 1 || as[0].String() != "169.254.1.1" {
		t.Errorf("%v, %v", as, err)
	}
}

func TestLookupError(t *testing.T) {
	ctx := context.Background()
	gone, cancel := context.WithCancelCause(ctx)
	cause := errors.New("interrupted by the user")
	cancel(cause)
	notFound := &net.DNSError{Err: "no such host", Name: "nosuch", IsNotFound: true}
	for _, tt := range []struct {
		name string
		ctx  context.Context
		err  error
		want string
	}{
		{"unknown", ctx, notFound, "h is not a known host name or address"},
		{"silent server", ctx, &net.DNSError{Err: "i/o timeout", IsTimeout: true}, "h could not be looked up: the name server did not answer"},
		{"broken server", ctx, &net.DNSError{Err: "server misbehaving", Name: "h"}, "h could not be looked up: lookup h: server misbehaving"},
		{"cancelled", gone, context.Canceled, "h was not found in time"},
	} {
		err := lookupError(tt.ctx, "h", 0, tt.err)
		if err.Error() != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, err, tt.want)
		}
		if tt.ctx == gone && !errors.Is(err, cause) {
			t.Errorf("%s: the cause is lost", tt.name)
		}
	}
	e := &ResolveError{Host: "dualhost", Family: 6, Reason: "has no IPv6 address", Have: []netip.Addr{netip.MustParseAddr("10.77.0.2")}}
	if got, want := e.Error(), "dualhost has no IPv6 address, only 10.77.0.2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// hostsFile is what TestResolveNames puts in the place of /etc/hosts.
const hostsFile = "10.77.0.2 fourhost dualhost\nfd77::2 sixhost dualhost\n10.77.0.3 dualhost\n"

// The names are looked up by the test program itself, run again where /etc/hosts is
// another file: the resolver reads it on a thread of its own, so that a namespace of
// this thread would not do.
func TestResolveNames(t *testing.T) {
	if os.Getenv("OSNET_TEST_HOSTS") != "" {
		lookUpNames(t)
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("another file is mounted over /etc/hosts, which is Linux's way")
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil || os.Geteuid() != 0 {
		cannot(t, "another /etc/hosts needs root and unshare")
	}
	hosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hosts, []byte(hostsFile), 0o644); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, resolver := range []string{"go", "cgo"} {
		cmd := exec.Command(unshare, "-m", "sh", "-c", `mount --bind "$1" /etc/hosts && exec "$0" -test.run '^TestResolveNames$' -test.v`, self, hosts)
		cmd.Env = append(os.Environ(), "OSNET_TEST_HOSTS=1", "GODEBUG=netdns="+resolver)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestResolveNames") {
			t.Errorf("resolver %s: %v\n%s", resolver, err, out)
		}
	}
}

func lookUpNames(t *testing.T) {
	four, three, six := netip.MustParseAddr("10.77.0.2"), netip.MustParseAddr("10.77.0.3"), netip.MustParseAddr("fd77::2")
	for _, tt := range []struct {
		host   string
		family int
		want   []netip.Addr
		err    string
	}{
		{"fourhost", 0, []netip.Addr{four}, ""},
		{"fourhost", 4, []netip.Addr{four}, ""},
		{"fourhost", 6, nil, "fourhost has no IPv6 address, only 10.77.0.2"},
		{"sixhost", 6, []netip.Addr{six}, ""},
		{"sixhost", 4, nil, "sixhost has no IPv4 address, only fd77::2"},
		{"dualhost", 4, []netip.Addr{four, three}, ""},
		{"dualhost", 6, []netip.Addr{six}, ""},
	} {
		got, err := Resolve(context.Background(), tt.host, tt.family)
		if d := cmp.Diff(tt.want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
			t.Errorf("%s, family %d (-want +got):\n%s", tt.host, tt.family, d)
		}
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || err.Error() != tt.err) {
			t.Errorf("%s, family %d: %v, want %q", tt.host, tt.family, err, tt.err)
		}
	}
	// Which family comes first is the system's choice; all addresses must be there, none twice.
	got, err := Resolve(context.Background(), "dualhost", 0)
	if err != nil || len(got) != 3 {
		t.Errorf("dualhost: %v, %v; want three addresses", got, err)
	}
	// A name as source address.
	ln := mustListen(t, "127.0.0.1:0", Options{})
	_, _, err = Dial(context.Background(), "tcp", loopback(portOf(ln)), Options{BindHost: "sixhost"})
	if err == nil || err.Error() != "bind address: sixhost has no IPv4 address, only fd77::2" {
		t.Errorf("source address of the other family: %v", err)
	}
}
