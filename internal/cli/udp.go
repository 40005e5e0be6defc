package cli

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// udpOptions are the words of `fullbore test` that only -u knows, and its rates.
type udpOptions struct {
	udp     bool
	rate    rateSpec // -b, per stream
	total   rateSpec // --total-bitrate, all streams
	pps     float64  // --pps, per stream
	pacing  string
	offload string
	frag    bool
	grades  []string
}

// needRate is the answer to -u without a rate.
func needRate(host string) error {
	if host == "" {
		host = "HOST"
	}
	return &UsageError{
		Msg: "a UDP test needs a rate: UDP does not find one by itself, and a default would only hide that (iperf3's is 1 Mbit/s, which any link carries without loss)",
		Hints: []string{
			"fullbore test " + host + " -u -b 100M              100 Mbit/s of payload per stream",
			"fullbore test " + host + " -u -b 1G@l1             1 Gbit/s on the wire, with all headers and gaps",
			"fullbore test " + host + " -u -b 95%               of the link's speed",
			"fullbore test " + host + " -u --pps 1000 -l 200    small packets",
			"fullbore test " + host + " -u -b auto              find a rate first",
		},
	}
}

// check finds words that do not go together. tcpOnly are the options given that mean
// nothing for UDP.
func (o *udpOptions) check(host string, tcpOnly []string) error {
	n := 0
	for _, given := range []bool{o.rate.given(), o.total.given(), o.pps != 0} {
		if given {
			n++
		}
	}
	if !o.udp {
		return o.checkTCP()
	}
	switch {
	case n == 0:
		return needRate(host)
	case n > 1:
		return usagef("give only one of -b, --total-bitrate and --pps")
	case o.pps < 0:
		return usagef("--pps %v: must be more than 0", o.pps)
	case len(tcpOnly) > 0:
		return usagef("%s: has no meaning for UDP (-u)", strings.Join(tcpOnly, ", "))
	}
	return nil
}

// checkTCP refuses the words that need -u.
func (o *udpOptions) checkTCP() error {
	var words []string
	for word, given := range map[string]bool{
		"--pps": o.pps != 0, "--pacing": o.pacing != "", "--offload": o.offload != "",
		"--allow-fragments": o.frag, "--grade": len(o.grades) > 0,
		"-b " + o.rate.text: o.rate.auto || o.rate.layered && o.rate.layer != units.L7 || o.rate.share > 0,
	} {
		if given {
			words = append(words, word)
		}
	}
	if len(words) > 0 {
		return &UsageError{Msg: strings.Join(sorted(words), ", ") + ": only for UDP", Hints: []string{"add -u for a UDP test"}}
	}
	return nil
}

// apply puts into p what needs no knowledge of the path.
func (o *udpOptions) apply(p *plan.Plan) error {
	if !o.udp {
		switch {
		case o.rate.given():
			p.Bitrate = o.rate.bps
		case o.total.given():
			p.Bitrate = perStream(float64(o.total.bps), p.Streams)
		}
		return nil
	}
	p.Transport, p.RateSet = plan.UDP, true
	p.Pacing, p.Offload, p.AllowFragments = plan.Pacing(o.pacing), plan.Offload(o.offload), o.frag
	p.DontFragment = !o.frag
	if s := o.spec(); s.bps > 0 && s.layer == units.L7 && s.share == 0 {
		p.Bitrate = perStream(float64(s.bps), o.over(p))
	}
	if o.pps > 0 && p.BlockSize > 0 {
		p.Bitrate = ppsRate(o.pps, p.BlockSize)
	}
	return nil
}

// spec is the rate that was given, by whichever option.
func (o *udpOptions) spec() rateSpec {
	if o.total.given() {
		return o.total
	}
	return o.rate
}

// over is how many streams share the rate that was given.
func (o *udpOptions) over(p *plan.Plan) int {
	if o.total.given() {
		return max(p.Streams, 1)
	}
	return 1
}

func perStream(total float64, streams int) int64 {
	return max(int64(total/float64(max(streams, 1))+0.5), 1)
}

func ppsRate(pps float64, size int) int64 { return max(int64(pps*float64(size)*8+0.5), 1) }

// path is what is known of the way to a host before anything is sent.
type path struct {
	family int // 4 or 6
	mtu    int // of this end's interface; 0 = not known
	speed  int64
	nic    string
}

// pathTo looks at the interface by which packets to host leave. A name is resolved as the
// test itself will resolve it; when that fails the test's own error is the better one, so
// the path is simply not known.
func pathTo(ctx context.Context, host string, family int) path {
	out := path{family: 4}
	network := map[int]string{4: "ip4", 6: "ip6"}[family]
	if network == "" {
		network = "ip"
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		addrs, err := net.DefaultResolver.LookupNetIP(ctx, network, host)
		if err != nil || len(addrs) == 0 {
			if family == 6 {
				out.family = 6
			}
			return out
		}
		addr = addrs[0]
	}
	addr = addr.Unmap()
	if addr.Is6() {
		out.family = 6
	}
	if h := oshost.Facts(ctx, addr); h != nil && h.NIC != nil {
		out.mtu, out.nic = h.NIC.MTU, h.NIC.Name
		if h.NIC.SpeedBPS != nil {
			out.speed = *h.NIC.SpeedBPS
		}
	}
	return out
}

// payload is the size of a datagram that fills a packet of the path.
func (w path) payload() int {
	mtu := w.mtu
	if mtu <= 0 {
		mtu = 1500
	}
	return min(mtu-units.UDPHeaders(w.family == 6, 0).Bytes(0, units.L3), plan.MaxUDPBlock)
}

// resolve turns a rate that needs the path into the payload rate of the plan, and fixes the
// size that it was reckoned with. known are runs of this command to the same host: they
// know the other end's interface. It does nothing to a plan whose rate is settled.
func (o *udpOptions) resolve(ctx context.Context, p *plan.Plan, known []*result.Run) error {
	s := o.spec()
	if !o.udp || s.auto || o.pps == 0 && s.share == 0 && s.layer == units.L7 {
		return nil
	}
	w := pathTo(ctx, p.Host, p.Family)
	if p.BlockSize == 0 {
		p.BlockSize = w.payload()
	}
	if o.pps > 0 {
		p.Bitrate = ppsRate(o.pps, p.BlockSize)
		return nil
	}
	bps := float64(s.bps)
	if s.share > 0 {
		speed := slowest(w.speed, known)
		if speed <= 0 {
			where := "the interface to " + p.Host
			if w.nic != "" {
				where = w.nic
			}
			return &UsageError{
				Msg:   fmt.Sprintf("-b %s: the link's speed is not known (%s does not tell one)", s.text, where),
				Hints: []string{"give a rate, e.g. -b 950M or -b 1G@l1"},
			}
		}
		bps = s.share * float64(speed)
	}
	n := w.bytes(p)
	p.Bitrate = perStream(bps*float64(n[units.L7])/float64(n[s.layer]), o.over(p))
	return nil
}

// bytes is what a datagram of the plan takes on each layer.
func (w path) bytes(p *plan.Plan) [5]int {
	mtu := 0
	if p.AllowFragments {
		mtu = w.mtu
	}
	return conclude.DatagramBytes(p.BlockSize, mtu, w.family)
}

// slowest is the slower one of the interfaces that are known.
func slowest(speed int64, known []*result.Run) int64 {
	for _, run := range known {
		for _, e := range []result.End{result.Client, result.Server} {
			if h := run.Hosts.Of(e); h != nil && h.NIC != nil && h.NIC.SpeedBPS != nil && *h.NIC.SpeedBPS > 0 && (speed == 0 || *h.NIC.SpeedBPS < speed) {
				speed = *h.NIC.SpeedBPS
			}
		}
	}
	return speed
}

// rateWords names a plan's rate as people say it: "4 × 25.0 Mbit/s".
func rateWords(p *plan.Plan, total float64) string {
	if n := max(p.Streams, 1); n > 1 {
		return strconv.Itoa(n) + " × " + units.BitRate(total/float64(n)).String()
	}
	return units.BitRate(total).String()
}
