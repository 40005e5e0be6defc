package cli

import (
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/result"
)

// What is said of a black hole is for the end that sends into it: its system, its address family.
func TestHoleFix(t *testing.T) {
	t.Parallel()
	mtu, hole, announced, seen := 1400, true, int64(1460), int64(1360)
	for name, c := range map[string]struct {
		direction result.Direction
		peer      string
		want      []string
		end       result.End
	}{
		"up, IPv4":           {result.Up, "192.0.2.2", []string{"sysctl -w net.ipv4.tcp_mtu_probing=1", "ip route change", "mtu 1400", "MSS to 1360"}, result.Client},
		"up, IPv6":           {result.Up, "2001:db8::2", []string{"tcp_mtu_probing=1", "ip -6 route change", "MSS to 1340"}, result.Client},
		"down, from Windows": {result.Down, "2001:db8::2", []string{"netsh interface ipv6 set subinterface NAME mtu=1400", "MSS to 1340"}, result.Server},
	} {
		run := &result.Run{Streams: []result.Stream{{Remote: result.Addr{Host: c.peer}}}}
		run.Hosts = result.Hosts{Client: &result.Host{OS: "linux"}, Server: &result.Host{OS: "windows"}}
		rep := &result.Report{Runs: []*result.Run{run}, Paths: []result.PathMTU{{Direction: c.direction, MTU: &mtu, Exact: true, BlackHole: &hole, Method: "probe"}}}
		fillMTU(rep)
		if len(rep.Notices) != 1 || rep.Notices[0].Code != "mtu-black-hole" || rep.Notices[0].End != c.end {
			t.Errorf("%s: %+v", name, rep.Notices)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(rep.Notices[0].Fix, w) {
				t.Errorf("%s: no %q in %q", name, w, rep.Notices[0].Fix)
			}
		}
		// A clamp keeps TCP out of the hole: that is the notice then, of who announced.
		rep.Notices, rep.Paths[0].Announced, rep.Paths[0].Seen = nil, &announced, &seen
		fillMTU(rep)
		if len(rep.Notices) != 1 || rep.Notices[0].Code != "mss-clamped" || rep.Notices[0].End != c.end.Other() {
			t.Errorf("%s: %+v", name, rep.Notices)
		}
	}
	none := &result.Report{Paths: []result.PathMTU{{Direction: result.Up, BlackHole: &hole, Method: "probe"}}}
	fillMTU(none)
	if len(none.Notices) > 0 || !strings.Contains(none.Summary, "nothing passed") {
		t.Errorf("%+v, %s", none.Notices, none.Summary)
	}
}
