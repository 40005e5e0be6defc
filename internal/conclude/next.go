package conclude

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// mostDatagram is the largest payload of UDP over IPv4.
const mostDatagram = 65507

// defaultPort needs no -p, nor does ntttcpPort with --via.
const (
	defaultPort = 5201
	ntttcpPort  = 5001
)

// viaWord is what --via of `fullbore test` was, or would be.
func viaWord(n *result.NTTTCP) string {
	switch {
	case n.Dialect == "windows":
		return "ntttcp-windows"
	case n.NoSync:
		return "ntttcp-nosync"
	}
	return "ntttcp"
}

// next is the one command worth typing after this run: what mends a doubt about the
// figure first, then what follows from the limit, then a longer run. It is nil for a run
// that broke off (its message says what to do) and for servers.
func (c *conclusion) next() *result.Step {
	if c.run.End != result.Client || c.run.Err != nil {
		return nil
	}
	for _, n := range c.run.Notices {
		if n.Level == result.Warn && n.Fix != "" {
			return &result.Step{Command: n.Fix, Why: whyFix(n)}
		}
	}
	if madeForProbes(c.run) {
		return c.probesNext()
	}
	for _, d := range c.dirs {
		if s := c.afterLimit(d); s != nil {
			return s
		}
	}
	for _, n := range c.run.Notices {
		if n.Fix != "" {
			return &result.Step{Command: n.Fix, Why: whyFix(n)}
		}
	}
	return nil
}

func whyFix(n result.Notice) string {
	switch n.Code {
	case ShortRun:
		return "a run in which slow start does not count"
	case Unsteady:
		return "does it settle in a longer run?"
	case NothingArrived:
		return "if this works, full-size packets are dropped on the way and nobody says so"
	case "window-clamped":
		return "lets this host grant the window that was asked for"
	case LocalDrops:
		return "rings, queues and backlog of the host that dropped packets"
	}
	switch n.Code {
	case RateAboveLink:
		return "the most that the link carries"
	case LossAtSocket:
		return "does the receiving host keep up with a lower rate?"
	case JitterClimbs:
		return "at a lower rate: if it still climbs, other traffic starves this class"
	}
	return "see the notice " + n.Code
}

// afterLimit is what to try when a direction's limit is known, or which question would
// tell when it is not.
func (c *conclusion) afterLimit(d *direction) *result.Step {
	test := c.run.Test
	if isUDP(c.run) && d.verdict.code != CPUSender && d.verdict.code != CPUReceiver {
		return c.udpNext(d)
	}
	switch d.verdict.code {
	case CPUSender, CPUReceiver:
		why := "is this host fit to measure? (governor, offloads, queues)"
		if d.verdict.host != c.run.End {
			why = "run it on " + EndName(c.run, d.verdict.host) + ": is that host fit to measure?"
		}
		return &result.Step{Command: "fullbore doctor", Why: why}
	case ReceiveWindow, SendBuffer:
		if goal, ok := idealRate(c.run, d); ok {
			if f, ok := flowFacts(c.run, d); ok && goal > d.head.BPS {
				return &result.Step{
					Command: fmt.Sprintf("fullbore bdp %s %s", units.BitRate(linkSpeed(c.run)).Exact(), strings.ReplaceAll(micros(f.meanRTT), " ", "")),
					Why:     "the window that fills this link, and the sysctl lines for it",
				}
			}
		}
		if test.Streams == 1 {
			return &result.Step{Command: again(c.run, "-P", "4"), Why: "four windows instead of one: does the rate follow?"}
		}
	case Loss:
		lower := units.BitRate(roundRate(d.head.BPS * 0.8 / float64(len(d.streams))))
		return &result.Step{Command: again(c.run, "-b", lower.Exact()), Why: "at a lower rate: retransmits that vanish were congestion, ones that stay are errors"}
	case Unknown:
		if test.Streams == 1 && d.head.Basis.Arrived() {
			return &result.Step{Command: again(c.run, "-P", "4"), Why: "four streams: if they carry more, one flow's limit was in the way"}
		}
	}
	return nil
}

// roundRate keeps two significant digits, so that a command reads well.
func roundRate(bps float64) int64 {
	unit := int64(1)
	for v := int64(bps); v >= 100; v /= 10 {
		unit *= 10
	}
	return (int64(bps) + unit/2) / unit * unit
}

// again is the command of this run with other words in place: `fullbore test HOST` and
// whatever of its options bears on the rate. It is "" on a server, which cannot start one.
func again(run *result.Run, words ...string) string {
	t := run.Test
	if run.End != result.Client || t.Target == "" {
		return ""
	}
	out := []string{"fullbore", "test"}
	port := defaultPort
	if run.NTTTCP != nil {
		port = ntttcpPort
	}
	if t.Own {
		out = append(out, "self") // a server of ours on a port of the moment
	} else {
		out = append(out, quote(t.Target))
		if t.Port != 0 && t.Port != port {
			out = append(out, "-p", strconv.Itoa(t.Port))
		}
	}
	if n := run.NTTTCP; n != nil {
		out = append(out, "--via", viaWord(n))
	}
	switch t.Direction {
	case string(result.Down):
		out = append(out, "--down")
	case "both":
		out = append(out, "--both")
	}
	option := func(flag, value string, set bool) {
		for i := 0; i < len(words); i += 2 {
			set = set && words[i] != flag
		}
		if set {
			out = append(out, flag, value)
		}
	}
	if isUDP(run) {
		out = append(out, "-u")
		if m := leastMTU(run); t.BlockSize > 0 && (m == 0 || t.BlockSize != min(m-DatagramBytes(0, 0, family(run))[units.L3], mostDatagram)) {
			option("-l", strconv.Itoa(t.BlockSize), true)
		}
	}
	option("-P", strconv.Itoa(t.Streams), t.Streams > 1)
	option("-w", units.ByteSize(t.Window).Exact(), t.Window > 0)
	option("-C", quote(t.Congestion), t.Congestion != "")
	option("-M", strconv.Itoa(t.MSS), t.MSS > 0)
	option("-b", units.BitRate(t.Bitrate).Exact(), t.Bitrate > 0 && !slices.Contains(words, "--total-bitrate"))
	return strings.Join(append(out, words...), " ")
}

// quote makes s one word of a shell.
func quote(s string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._-:%/@[]", r)
	}
	for _, r := range s {
		if !plain(r) {
			return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
		}
	}
	return s
}
