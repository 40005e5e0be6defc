package method

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// Differences names the facts in which the runs of two sides differ: the settings of the test,
// which make the figures incomparable, and the hosts' facts and the path, which may be why they
// differ. A fact that a side does not know is not compared; one that changes within a side is
// shown with all its values.
func Differences(a, b []*result.Run) []result.Difference {
	out := []result.Difference{}
	add := func(what string, end result.End, setting bool, of func(*result.Run) string) {
		x, y := distinct(a, of), distinct(b, of)
		if x == "" && !setting || y == "" && !setting || x == y {
			return
		}
		out = append(out, result.Difference{What: what, End: end, A: orNone(x), B: orNone(y), Setting: setting})
	}
	for _, s := range testFacts {
		add(s.what, "", true, func(r *result.Run) string { return s.of(&r.Test) })
	}
	add("protocol", "", true, func(r *result.Run) string { return r.Protocol })
	for _, e := range []result.End{result.Client, result.Server} {
		for _, f := range hostFacts {
			add(f.what, e, false, func(r *result.Run) string {
				h := r.Hosts.Of(e)
				if h == nil {
					return ""
				}
				return f.of(h)
			})
		}
		add("congestion", e, false, func(r *result.Run) string {
			if c := r.CPU.Of(e); c != nil {
				return c.Congestion
			}
			return ""
		})
	}
	return out
}

func orNone(s string) string {
	if s == "" {
		return "not set"
	}
	return s
}

// distinct are the values that the runs of a side have, in order.
func distinct(runs []*result.Run, of func(*result.Run) string) string {
	var out []string
	for _, r := range runs {
		if v := of(r); v != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// testFacts are the settings that bear on the figures. Direction is not one: each is compared
// by itself.
var testFacts = []struct {
	what string
	of   func(*result.Test) string
}{
	{"transport", func(t *result.Test) string { return t.Transport }},
	{"streams", func(t *result.Test) string { return number(int64(t.Streams)) }},
	{"both-ways", func(t *result.Test) string {
		if t.Direction == "both" {
			return "yes"
		}
		return ""
	}},
	{"length", func(t *result.Test) string { return seconds(t.Duration) }},
	{"bytes", func(t *result.Test) string { return size(t.Bytes) }},
	{"blocks", func(t *result.Test) string { return number(t.Blocks) }},
	{"warm-up", func(t *result.Test) string { return seconds(t.Omit) }},
	{"window", func(t *result.Test) string { return size(int64(t.Window)) }},
	{"block", func(t *result.Test) string { return size(int64(t.BlockSize)) }},
	{"bitrate", func(t *result.Test) string { return bitrate(t.Bitrate) }},
	{"fq-rate", func(t *result.Test) string { return bitrate(t.FQRate) }},
	{"max-rate", func(t *result.Test) string { return bitrate(t.MaxRate) }},
	{"mss", func(t *result.Test) string { return number(int64(t.MSS)) }},
	{"congestion-asked", func(t *result.Test) string { return t.Congestion }},
	{"tos", func(t *result.Test) string { return number(int64(t.TOS)) }},
	{"no-delay", func(t *result.Test) string { return yes(t.NoDelay) }},
	{"zero-copy", func(t *result.Test) string { return yes(t.ZeroCopy) }},
	{"skip-rx-copy", func(t *result.Test) string { return yes(t.SkipRxCopy) }},
	{"mptcp", func(t *result.Test) string { return yes(t.MPTCP) }},
}

// hostFacts are what may have changed at an end.
var hostFacts = []struct {
	what string
	of   func(*result.Host) string
}{
	{"host", func(h *result.Host) string { return h.Name }},
	{"tool", func(h *result.Host) string {
		if h.Tool == nil {
			return ""
		}
		return strings.TrimSpace(h.Tool.Name + " " + h.Tool.Version)
	}},
	{"os", func(h *result.Host) string { return strings.TrimSpace(h.OS + " " + h.Release) }},
	{"cpu", func(h *result.Host) string { return h.CPUModel }},
	{"cores", func(h *result.Host) string { return number(int64(h.Cores)) }},
	{"virtual", func(h *result.Host) string { return h.Virtual }},
	{"nic", nicFact(func(n *result.NIC) string { return n.Name })},
	{"driver", nicFact(func(n *result.NIC) string { return strings.TrimSpace(n.Driver + " " + n.Firmware) })},
	{"link-speed", nicFact(func(n *result.NIC) string {
		if n.SpeedBPS == nil {
			return ""
		}
		return bitrate(*n.SpeedBPS)
	})},
	{"duplex", nicFact(func(n *result.NIC) string { return n.Duplex })},
	{"mtu", nicFact(func(n *result.NIC) string { return number(int64(n.MTU)) })},
	{"queues", nicFact(func(n *result.NIC) string {
		if n.Queues == nil {
			return ""
		}
		return number(int64(*n.Queues))
	})},
}

func nicFact(of func(*result.NIC) string) func(*result.Host) string {
	return func(h *result.Host) string {
		if h.NIC == nil {
			return ""
		}
		return of(h.NIC)
	}
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func seconds(s float64) string {
	if s == 0 {
		return ""
	}
	return fmt.Sprintf("%g s", s)
}

func size(n int64) string {
	if n == 0 {
		return ""
	}
	return units.ByteSize(n).IEC()
}

func bitrate(n int64) string {
	if n == 0 {
		return ""
	}
	return units.BitRate(n).String()
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}
