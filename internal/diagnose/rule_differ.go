package diagnose

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// differ compares the two ends: addresses, MTU, speed, cores, releases, congestion control.
// Each difference is a note of its own: none of them is wrong by itself.
func differ(c *Case) (out []result.Verdict) {
	run := c.first()
	if run == nil {
		return nil
	}
	out = append(out, c.translated(run)...)
	a, b := run.Hosts.Client, run.Hosts.Server
	if a != nil && b != nil {
		na, nb := c.nicOf(run, result.Client), c.nicOf(run, result.Server)
		if na != nil && nb != nil {
			out = append(out, c.interfacesDiffer(na, nb)...)
		}
		out = append(out, c.coresDiffer(a, b)...)
		out = append(out, c.versionsDiffer(a, b)...)
	}
	return append(out, c.controlsDiffer()...)
}

func difference(code string) result.Verdict {
	v := draft(code, Likely, nil)
	v.Note = true
	return v
}

// translated: the address that an end uses is not the one that the other end sees.
func (c *Case) translated(run *result.Run) (out []result.Verdict) {
	w := run.Wire
	if w == nil || len(run.Streams) == 0 {
		return nil
	}
	local, dialled := run.Streams[0].Local.Host, run.Streams[0].Remote.Host
	if run.End == result.Server {
		return nil
	}
	if w.SeenAs != nil && local != "" && w.SeenAs.Host != local {
		v := difference(Translated)
		v.Host = result.Client
		say(&v, "%s sends from %s; the other end sees %s", c.host(result.Client), local, w.SeenAs.Host)
		advise(&v, "nothing to mend: but a translator keeps a table of connections (its size, its time-outs) and its processor sees each packet; the other end cannot begin a connection to here")
		v.Summary = fmt.Sprintf("Addresses are translated on the way (NAT): %s is seen as %s.", local, w.SeenAs.Host)
		out = append(out, v)
	}
	if w.PeerLocal != nil && dialled != "" && w.PeerLocal.Host != dialled {
		v := difference(Translated)
		v.Host = result.Server
		say(&v, "%s was dialled; the server answers at %s", dialled, w.PeerLocal.Host)
		advise(&v, "several servers may stand behind that address, and each test may meet another one: compare with a test to "+w.PeerLocal.Host)
		v.Summary = fmt.Sprintf("A translator or balancer stands before the server: %s was dialled, the server's own address is %s.", dialled, w.PeerLocal.Host)
		out = append(out, v)
	}
	return out
}

// jumbo is from which MTU on frames are jumbo frames.
const jumbo = 4000

func (c *Case) interfacesDiffer(a, b *result.NIC) (out []result.Verdict) {
	if a.MTU > 0 && b.MTU > 0 && a.MTU != b.MTU {
		v := difference(MTUDiffers)
		put(&v, "mtu_client", float64(a.MTU), "bytes")
		put(&v, "mtu_server", float64(b.MTU), "bytes")
		say(&v, "%s on %s: MTU %d; %s on %s: MTU %d%s", a.Name, c.host(result.Client), a.MTU, b.Name, c.host(result.Server), b.MTU, replayed(&c.Facts))
		what := "TCP agrees on the smaller one; UDP and whatever does not ask may send packets that the other end's network drops"
		if max(a.MTU, b.MTU) >= jumbo && min(a.MTU, b.MTU) < jumbo {
			what = "jumbo frames on one side only: " + what
		}
		advise(&v, "the same MTU at both ends, on every switch port between them and on their gateways", "fullbore mtu "+c.target())
		v.Summary = fmt.Sprintf("The ends' MTU differs (%s %d, %s %d): %s.", c.host(result.Client), a.MTU, c.host(result.Server), b.MTU, what)
		out = append(out, v)
	}
	if a.SpeedBPS != nil && b.SpeedBPS != nil && *a.SpeedBPS != *b.SpeedBPS {
		v := difference(SpeedDiffers)
		put(&v, "speed_client", float64(*a.SpeedBPS), "bit/s")
		put(&v, "speed_server", float64(*b.SpeedBPS), "bit/s")
		say(&v, "%s on %s: %s; %s on %s: %s%s", a.Name, c.host(result.Client), rate(float64(*a.SpeedBPS)), b.Name, c.host(result.Server), rate(float64(*b.SpeedBPS)), replayed(&c.Facts))
		fast := result.Client
		if *b.SpeedBPS > *a.SpeedBPS {
			fast = result.Server
		}
		v.Summary = fmt.Sprintf("The ends' links differ (%s %s, %s %s): the slower one sets the pace, and bursts of %s queue before it.",
			c.host(result.Client), rate(float64(*a.SpeedBPS)), c.host(result.Server), rate(float64(*b.SpeedBPS)), c.host(fast))
		advise(&v, "compare rates with the slower one")
		out = append(out, v)
	}
	return out
}

// coresTimes is by how many times the numbers of cores must differ to matter.
const coresTimes = 4

func (c *Case) coresDiffer(a, b *result.Host) []result.Verdict {
	if a.Cores <= 0 || b.Cores <= 0 || max(a.Cores, b.Cores) < coresTimes*min(a.Cores, b.Cores) {
		return nil
	}
	v := difference(CoresDiffer)
	put(&v, "cores_client", float64(a.Cores), "")
	put(&v, "cores_server", float64(b.Cores), "")
	weak := result.Client
	if b.Cores < a.Cores {
		weak = result.Server
	}
	v.Host = weak
	say(&v, "%s: %d cores, %s: %d", c.host(result.Client), a.Cores, c.host(result.Server), b.Cores)
	v.Summary = fmt.Sprintf("The ends are unlike: %d cores on %s, %d on %s: many streams meet the limit of %s first.", a.Cores, c.host(result.Client), b.Cores, c.host(result.Server), c.host(weak))
	advise(&v, fmt.Sprintf("no more streams than cores of %s", c.host(weak)))
	return []result.Verdict{v}
}

func (c *Case) versionsDiffer(a, b *result.Host) []result.Verdict {
	if a.Tool == nil || b.Tool == nil || a.Tool.Name != b.Tool.Name || a.Tool.Version == "" || b.Tool.Version == "" || a.Tool.Version == b.Tool.Version {
		return nil
	}
	v := difference(VersionsDiffer)
	say(&v, "%s %s on %s, %s on %s", a.Tool.Name, a.Tool.Version, c.host(result.Client), b.Tool.Version, c.host(result.Server))
	v.Summary = fmt.Sprintf("The ends run different releases of %s (%s and %s): the same one on both before results are compared.", a.Tool.Name, a.Tool.Version, b.Tool.Version)
	advise(&v, "install the same release at both ends")
	return []result.Verdict{v}
}

// controlsDiffer: each direction's sender has its own congestion control, where none was asked for.
func (c *Case) controlsDiffer() []result.Verdict {
	up, down := c.Up.one(), c.Down.one()
	if up == nil || down == nil || up.cc == "" || down.cc == "" || strings.EqualFold(up.cc, down.cc) || up.run.Test.Congestion != "" || down.run.Test.Congestion != "" {
		return nil
	}
	v := difference(ControlDiffers)
	v.Stages = []string{up.name, down.name}
	say(&v, "%s sends with %s, %s with %s", c.host(result.Client), up.cc, c.host(result.Server), down.cc)
	v.Summary = fmt.Sprintf("The ends use different congestion controls (%s up, %s down): the directions answer to loss and queues in different ways.", up.cc, down.cc)
	advise(&v, "to compare directions: the same one for both, fullbore diagnose "+c.target()+" -C "+down.cc)
	return []result.Verdict{v}
}
