package cli

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/result"
)

// mtuOptions are the words of `fullbore mtu`.
type mtuOptions struct {
	methodOptions
}

const mtuLong = `Find the largest packet that passes whole, to the byte, in each direction apart, and what
happens to larger ones: a router says so (ICMP "too big"), or they vanish without a word (a
black hole, in which connections hang). And what is made of TCP's largest segment on the way.

Single UDP packets that nobody may fragment: a size passed when one was answered, it did not
after three without an answer; the result is confirmed three times, and one byte more refused
three times. Sizes are of whole IP packets: Ethernet has 1500.

HOST runs "fullbore serve"; then it sends packets of its own for the way back. With an iperf3
server (3.10 or later) the way up is searched by short UDP tests, one a size; the way back is
not known then. HOST may be "self".

Traffic: about 30 packets each way, less than 100 kB (jumbo frames 300 kB); 3 to 20 s.`

const mtuExample = `  fullbore mtu self
  fullbore mtu 192.0.2.2
  fullbore mtu 2001:db8::2 -6
  fullbore mtu 192.0.2.2 --json > mtu.json
  fullbore mtu 192.0.2.2 --expect 'up >= 1500, down >= 1500'   exit code 1 when it is less`

func newMTUCmd(e *env) *cobra.Command {
	o := &mtuOptions{}
	cmd := &cobra.Command{
		Use:     "mtu HOST",
		Short:   "The largest packet that passes, each way, and who says so",
		Long:    mtuLong,
		Example: mtuExample,
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return e.runMTU(cmd.Context(), o, args[0]) },
	}
	o.addFlags(cmd)
	o.expectExample(cmd, "'>= 1500', bytes upwards, or 'down >= 1400'")
	return cmd
}

func (e *env) runMTU(ctx context.Context, o *mtuOptions, host string) error {
	m := method.MTURuns{}
	first, _ := m.Next(nil)
	return e.runMethod(ctx, &o.methodOptions, methodJob{
		kind: "mtu", host: host, method: m,
		head:     fmt.Sprintf("Path MTU to %s", host),
		volume:   "Traffic: about 30 packets each way, less than 300 kB in all.",
		possible: []method.Step{first, {Title: "single packets, both ways", Why: "which sizes pass whole? (towards an iperf3: a short UDP test a size, up)"}},
		row:      mtuRow,
		fill: func(rep *result.Report, history []method.Done) {
			rep.Paths = m.Answer(history).Paths
			fillMTU(rep)
		},
		final:   func(v *stageView, rep *result.Report) { v.mtuLines(rep.Paths) },
		figures: map[string]figureKind{"up": packetKind, "down": packetKind}, figure: "up",
		measured: func(rep *result.Report) map[string]*float64 {
			out := map[string]*float64{"up": nil, "down": nil}
			for i := range rep.Paths {
				if p := &rep.Paths[i]; p.MTU != nil {
					v := float64(*p.MTU)
					out[string(p.Direction)] = &v
				}
			}
			return out
		},
		answered: func(rep *result.Report) bool {
			for i := range rep.Paths {
				if rep.Paths[i].MTU == nil {
					return false
				}
			}
			return len(rep.Paths) > 0
		},
	})
}

// mtuRow is the line of a finished step.
func mtuRow(v *stageView, d *method.Done) {
	text := "made"
	switch {
	case d.Err != nil && (d.Run == nil || d.Step.Name != "size"):
		text = d.Err.Text
	case d.Run != nil && d.Step.Name == "size":
		text = "arrived"
		if d.Err != nil {
			text = "a router refused them"
		} else if s := d.Run.Sum(result.Up); s == nil || s.Receiver == nil || s.Receiver.Packets == nil || *s.Receiver.Packets == 0 {
			text = "nothing arrived"
		}
	case d.Run != nil && len(d.Run.Probes) > 0:
		text = fmt.Sprintf("%d packets, %d answered", d.Run.Probes[0].Sent, d.Run.Probes[0].Answered)
	}
	v.line(fmt.Sprintf("  %-36s ", d.Step.Title), text)
}

// mtuLines prints what was found of each direction.
func (v *stageView) mtuLines(paths []result.PathMTU) {
	for i := range paths {
		v.line(fmt.Sprintf("  %-6s", paths[i].Direction), conclude.MTUText(&paths[i]))
	}
	v.line("  TCP   ", mssText(paths))
}

// mssText says what TCP makes of it.
func mssText(paths []result.PathMTU) string {
	var parts []string
	for i := range paths {
		if p := &paths[i]; p.Announced != nil && p.Seen != nil {
			parts = append(parts, fmt.Sprintf("on the way the %s's largest segment (MSS) was rewritten from %d to %d: a clamp, which keeps TCP below a small MTU", p.Direction.Receiver(), *p.Announced, *p.Seen))
		}
	}
	for i := range paths {
		if p := &paths[i]; p.Segment != nil {
			parts = append(parts, fmt.Sprintf("segments of the %s: at most %d bytes", p.Direction.Sender(), *p.Segment))
		}
	}
	if len(parts) == 0 {
		return "the ends' segment sizes are not known"
	}
	return strings.Join(parts, "; ")
}

// fillMTU makes sentence, notices and values of what was found of the directions.
func fillMTU(rep *result.Report) {
	var parts []string
	down, clamped := false, false
	for i := range rep.Paths {
		p := &rep.Paths[i]
		parts = append(parts, conclude.MTUText(p))
		down = down || p.Direction == result.Down
		clamped = clamped || p.Seen != nil
	}
	if len(parts) == 0 {
		rep.Summary = "Path MTU: not known; no packet of any size was answered."
		return
	}
	rep.Summary = "Path MTU: " + strings.Join(parts, "; ") + "."
	for i := range rep.Paths {
		if p := &rep.Paths[i]; p.Announced != nil && p.Seen != nil {
			from := p.Direction.Receiver()
			rep.Notices = append(rep.Notices, result.Notice{
				Code: "mss-clamped", End: from, Level: result.Info,
				Text: fmt.Sprintf("the %s announced segments of %d bytes, and %d arrived: something on the way clamps them", from, *p.Announced, *p.Seen),
			})
		}
	}
	if !down && rep.Paths[0].Method == "udp-test" {
		rep.Notices = append(rep.Notices, result.Notice{
			Code: "mtu-one-way", End: result.Server, Level: result.Warn,
			Text: "the other end is an iperf3, which answers no probes: the way up was searched with UDP tests, and the way down is not known (fullbore serve there would tell)",
		})
	}
	for i := range rep.Paths {
		if p := &rep.Paths[i]; p.BlackHole != nil && *p.BlackHole && p.MTU != nil && !clamped {
			rep.Notices = append(rep.Notices, result.Notice{
				Code: "mtu-black-hole", End: p.Direction.Sender(), Level: result.Warn,
				Text: fmt.Sprintf("%s, packets above %d bytes vanish: connections hang with the first full segment, unless their ends probe", p.Direction, *p.MTU),
				Fix:  holeFix(rep, p),
			})
		}
	}
}

// holeFix is what the sending end of a direction can do about a black hole.
func holeFix(rep *result.Report, p *result.PathMTU) string {
	six, windows := false, false
	for _, run := range rep.Runs {
		for i := range run.Streams {
			a, err := netip.ParseAddr(run.Streams[i].Remote.Host)
			six = six || err == nil && a.Unmap().Is6()
		}
		if h := run.Hosts.Of(p.Direction.Sender()); h != nil {
			windows = windows || strings.EqualFold(h.OS, "windows")
		}
	}
	family, ip, headers := "ipv4", "ip", 40
	if six {
		family, ip, headers = "ipv6", "ip -6", 60
	}
	clamp := fmt.Sprintf("or a clamp of the MSS to %d on a router", *p.MTU-headers)
	if windows {
		return fmt.Sprintf("netsh interface %s set subinterface NAME mtu=%d store=persistent   # %s", family, *p.MTU, clamp)
	}
	return fmt.Sprintf("sysctl -w net.ipv4.tcp_mtu_probing=1   # or: %s route change … mtu %d, %s", ip, *p.MTU, clamp)
}
