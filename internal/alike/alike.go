// Package alike says whether two runs may be compared: it names what a run was set to do
// and what it ran on, and makes a short hash of each, so that like is set beside like.
//
// Settings are what the user or a method chose: transport, direction, streams, length,
// window, rate … Facts are what the ends were: kernel, processor, card, driver, release of
// the program. What differs from run to run by itself (ports, times, addresses of the
// control connection, clock speed of the moment) belongs to neither.
//
// The functions are pure. A hash is the first 48 bits of a SHA-256 over the list, as hex: equal
// lists have equal hashes, and among a million different ones two are equal with a
// probability of about one in 560.
package alike

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// Fact is one thing that bears on a run.
type Fact struct {
	Name  string // stable words, e.g. "streams", "client driver"
	Value string // as text; "" is not in any list: an unknown value has no row
}

// Change is a fact that differs. "" = not known, or not set, on that side.
type Change struct {
	Name     string
	From, To string
}

// Settings is the hash of SettingsOf.
func Settings(r *result.Run) string { return Hash(SettingsOf(r)) }

// Facts is the hash of FactsOf.
func Facts(r *result.Run) string { return Hash(FactsOf(r)) }

// Hash is the short hash of a list, "" for an empty one.
func Hash(list []Fact) string {
	if len(list) == 0 {
		return ""
	}
	h := sha256.New()
	for _, f := range list {
		h.Write([]byte(f.Name + "\x00" + f.Value + "\x01"))
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

type list []Fact

func (l *list) text(name, v string) {
	if v != "" {
		*l = append(*l, Fact{name, v})
	}
}

func (l *list) whole(name string, v int64) {
	if v != 0 {
		l.text(name, strconv.FormatInt(v, 10))
	}
}

func (l *list) float(name string, v float64) {
	if v != 0 {
		l.text(name, strconv.FormatFloat(v, 'g', 6, 64))
	}
}

func (l *list) yes(name string, v bool) {
	if v {
		l.text(name, "yes")
	}
}

// SettingsOf lists what r was set to do. The target is no setting: histories are kept for each
// host apart; nor is the time between reports, which moves no byte.
func SettingsOf(r *result.Run) []Fact {
	if r == nil {
		return nil
	}
	var l list
	t := &r.Test
	l.text("protocol", r.Protocol)
	l.text("end", string(r.End))
	l.text("transport", t.Transport)
	l.yes("mptcp", t.MPTCP)
	l.text("direction", t.Direction)
	l.whole("streams", int64(t.Streams))
	l.float("duration_s", t.Duration)
	l.whole("bytes", t.Bytes)
	l.whole("blocks", t.Blocks)
	l.float("omit_s", t.Omit)
	l.whole("block_bytes", int64(t.BlockSize))
	l.whole("bitrate_bps", t.Bitrate)
	l.whole("burst", int64(t.Burst))
	l.whole("fq_rate_bps", t.FQRate)
	l.whole("window_bytes", int64(t.Window))
	l.whole("mss_bytes", int64(t.MSS))
	l.yes("no_delay", t.NoDelay)
	l.whole("tos", int64(t.TOS))
	l.text("congestion", t.Congestion)
	l.yes("file", t.File != "")
	l.whole("max_bytes", t.MaxBytes)
	l.whole("max_rate_bps", t.MaxRate)
	l.text("tx", t.Path.Tx)
	l.text("rx", t.Path.Rx)
	l.text("pacing", t.Path.Pacing)
	if t.ProbeOnly {
		for i := range r.Probes {
			p := &r.Probes[i]
			l.text("probes", p.Kind+" "+p.Profile+" "+strconv.Itoa(p.Size))
		}
	}
	if n := r.NTTTCP; n != nil {
		l.text("dialect", n.Dialect)
		l.whole("ports", int64(n.Ports))
		l.whole("threads_per_port", int64(n.Threads))
		l.whole("connections_per_thread", int64(n.Connections))
	}
	return l
}

// FactsOf lists what both ends were, as far as it is known, and the algorithms and hops that the
// run met.
func FactsOf(r *result.Run) []Fact {
	if r == nil {
		return nil
	}
	var l list
	for _, end := range []result.End{result.Client, result.Server} {
		h := r.Hosts.Of(end)
		if h == nil {
			continue
		}
		name := func(s string) string { return string(end) + " " + s }
		l.text(name("host"), h.Name)
		if h.Tool != nil {
			l.text(name("program"), strings.TrimSpace(h.Tool.Name+" "+h.Tool.Version))
		}
		l.text(name("system"), h.OS)
		l.text(name("kernel"), h.Release)
		l.whole(name("cores"), int64(h.Cores))
		l.text(name("processor"), h.CPUModel)
		l.text(name("hypervisor"), h.Virtual)
		if n := h.NIC; n != nil {
			l.text(name("interface"), n.Name)
			l.text(name("driver"), n.Driver)
			l.text(name("firmware"), n.Firmware)
			l.text(name("card"), n.Model)
			if n.SpeedBPS != nil {
				l.whole(name("speed_bps"), *n.SpeedBPS)
			}
			l.text(name("duplex"), n.Duplex)
			l.whole(name("mtu"), int64(n.MTU))
			if n.Queues != nil {
				l.whole(name("queues"), int64(*n.Queues))
			}
		}
		if c := r.CPU.Of(end); c != nil {
			l.text(name("congestion control"), c.Congestion)
		}
	}
	return l
}

// HopsOf is the way that r's packets took, as one fact; nil when it is not known. It is apart
// from FactsOf: balancers change a hop without anything else being different.
func HopsOf(r *result.Run) []Fact {
	if r == nil || len(r.Hops) == 0 {
		return nil
	}
	words := make([]string, len(r.Hops))
	for i, h := range r.Hops {
		words[i] = h.Addr
		if h.Addr == "" {
			words[i] = "?"
		}
	}
	return []Fact{{"hops", strings.Join(words, " ")}}
}

// Changes are the facts in which b differs from a, in a's order, then b's. A fact of which one
// side knows nothing counts as a change from or to "".
func Changes(a, b []Fact) []Change {
	var out []Change
	get := func(l []Fact, name string) string {
		var all []string // a name may stand several times (probes)
		for _, f := range l {
			if f.Name == name {
				all = append(all, f.Value)
			}
		}
		return strings.Join(all, "; ")
	}
	var names []string
	for _, f := range append(slices.Clone(a), b...) {
		if !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	for _, n := range names {
		if from, to := get(a, n), get(b, n); from != to {
			out = append(out, Change{n, from, to})
		}
	}
	return out
}
