package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// Something on the way that takes part in TCP: it ends connections and opens others (a proxy, an
// accelerator), or changes what the ends tell each other in the SYN.

// splitShare is how short TCP's least round trip must be beside the probes' for the two not to
// have gone the same way: both are least times over hundreds of packets, and a queue or a slow
// host only makes TCP's longer.
const (
	splitShare = 0.6
	splitLeast = 0.002 // s of probes: below it scheduling counts
)

// tcpSplit: what acknowledges TCP's data is nearer than the host that answers the probes.
func tcpSplit(c *Case) []result.Verdict {
	if c.Idle.probes == nil || c.Idle.probes.RoundTrip == nil || c.Idle.rtt < splitLeast {
		return nil
	}
	var v *result.Verdict
	for _, l := range c.legs() {
		one := l.one()
		if one == nil || !one.usable() || one.rttMin <= 0 || one.rttMin >= splitShare*c.Idle.rtt {
			continue
		}
		if v == nil {
			d := draft(TCPSplit, Likely, nil)
			d.Note = true
			put(&d, "rtt", c.Idle.rtt, "s")
			say(&d, "UDP probes to %s and back: %s at least", c.host(result.Server), ms(c.Idle.rtt))
			v = &d
		}
		v.Stages = append(v.Stages, one.name)
		put(v, map[result.Direction]string{result.Up: "rtt_tcp_client", result.Down: "rtt_tcp_server"}[l.dir], one.rttMin, "s")
		say(v, "%s: TCP's data was acknowledged %s after it was sent: %s of that, so not by %s", one.name, ms(one.rttMin), percent(one.rttMin/c.Idle.rtt), c.host(l.dir.Receiver()))
		if ahead, ok := acknowledgedAhead(one); ok {
			put(v, "ahead", ahead, "bytes")
			say(v, "%s: acknowledged and not yet read there at the end: %s", one.name, size(ahead))
		}
	}
	if v == nil {
		return nil
	}
	v.Direction = "both"
	advise(v,
		"what is said of window, retransmissions and round trip holds for the part of the path between each end and that device, not for the whole",
		"look for a proxy, a WAN accelerator, a load balancer or a firewall that inspects: have it let this port pass, and repeat; UDP figures are of the whole path")
	v.Summary = fmt.Sprintf("TCP is split on the way: its data is acknowledged by something nearer than %s (a proxy, an accelerator, a balancer).", c.host(result.Server))
	return []result.Verdict{*v}
}

// acknowledgedAhead is how much of a stream was acknowledged to its sender, and not read at the
// receiver when both stopped counting; false where less than a packet's worth, or not known. It
// counts the connection from its start, as the receiver's kernel does.
func acknowledgedAhead(f *flow) (bytes float64, known bool) {
	for i := range f.run.Streams {
		s := &f.run.Streams[i]
		from, to := s.TCP, s.RemoteTCP
		if f.run.End != f.dir.Sender() {
			from, to = to, from
		}
		if s.Direction != f.dir || from == nil || to == nil || from.Last.BytesAcked == nil || to.Last.BytesReceived == nil {
			return 0, false
		}
		bytes += float64(*from.Last.BytesAcked - *to.Last.BytesReceived)
	}
	return bytes, bytes > 64<<10
}

// altered is one thing that arrived otherwise than it was sent.
type altered struct {
	what string // for people
	name string // of its value
	from result.End
	sent float64
	got  float64
}

// optionsAltered: what one end put into its SYN, or SYN-ACK, is not what the other end got.
// Where selective acknowledgements are among it and a stream that loses packets stays below what
// several carry, it is the cause: without them a sender repairs one hole a round trip (RFC 6582), so
// that each full queue costs it as many round trips as it dropped packets.
func optionsAltered(c *Case) (out []result.Verdict) {
	var first *flow
	var list []altered
	for _, l := range c.legs() {
		one, of := l.one(), c.alteredOf(l)
		if len(of) == 0 {
			continue
		}
		if first == nil {
			first, list = one, of
		}
		if !c.repairsSlowly(l) {
			continue
		}
		v := c.alteredVerdict(one, of)
		m, r := l.many(), one.rate
		v.Note, v.Direction, v.Measured = false, string(l.dir), &r
		v.Stages = append(v.Stages, m.name)
		say(&v, "1 stream: %s, %s retransmitted: without SACK one lost packet is repaired a round trip (%s)", rate(one.rate), percent(one.ratio), ms(c.Idle.rtt))
		if half := l.find("half"); half != nil && half.usable() {
			say(&v, "changed: half the rate (%s): %s retransmitted", rate(half.rate), percent(half.ratio))
		}
		say(&v, "changed: %s, %.1f times as much", streamsText(m), m.rate/one.rate)
		reach(&v, m.rate)
		advise(&v, fmt.Sprintf("until then several streams (%s)", c.again(l.dir, "-P 4")))
		v.Summary += fmt.Sprintf(" Without SACK one stream repairs its losses slowly: %s of at least %s.", rate(one.rate), rate(m.rate))
		out = append(out, v)
	}
	if len(out) == 0 && first != nil {
		return []result.Verdict{c.alteredVerdict(first, list)}
	}
	return out
}

// repairsSlowly reports that selective acknowledgements were taken out on the way, and that a
// single stream, which loses packets where it meets its bottleneck, is slower than several.
func (c *Case) repairsSlowly(l *leg) bool {
	one, m := l.one(), l.many()
	if one == nil || m == nil || !one.usable() || !lossMatters(one) || m.rate < (1+same)*one.rate || l.lossesStay(one) || atTheEnds(c, l, one) || policed(c, l) {
		return false
	}
	return slices.ContainsFunc(c.alteredOf(l), func(a altered) bool { return a.what == selective })
}

// alteredOf is what of the options of a direction's single stream arrived otherwise than it was sent.
func (c *Case) alteredOf(l *leg) []altered {
	one := l.one()
	if one == nil || one.run == nil || c.loopback() || one.run.End != result.Client || one.run.Test.MSS > 0 {
		return nil
	}
	for i := range one.run.Streams {
		s := &one.run.Streams[i]
		if s.TCP == nil || s.RemoteTCP == nil {
			continue
		}
		if list := c.compareSYN(s); len(list) > 0 {
			return list
		}
	}
	return nil
}

const selective = "selective acknowledgements (SACK)"

// compareSYN lays what both ends know of a connection's beginning side by side.
func (c *Case) compareSYN(s *result.Stream) (out []altered) {
	mine, theirs := &s.TCP.Last, &s.RemoteTCP.Last
	if syn := s.RemoteTCP.SYN; syn != nil {
		if sent := announced(mine); sent > 0 && syn.MSS > 0 && int64(syn.MSS) != sent {
			out = append(out, altered{"the largest segment (MSS)", "mss", result.Client, float64(sent), float64(syn.MSS)})
		}
		for _, o := range []struct {
			what string
			on   *bool
			got  bool
		}{
			{"window scaling", c.Facts.Scaling, syn.WindowScale},
			{selective, c.Facts.SACK, syn.SACK},
			{"timestamps", c.Facts.Timestamps, syn.Timestamps},
		} {
			if o.on != nil && *o.on && !o.got {
				out = append(out, altered{what: o.what, from: result.Client})
			}
		}
	}
	// The server answers only to what it got, so what it agreed to and the client did not hear of was
	// taken out of its answer.
	for _, o := range []struct {
		what       string
		here, away bool
	}{
		{"window scaling", mine.WScale != [2]uint8{}, theirs.WScale != [2]uint8{}},
		{selective, mine.SACK, theirs.SACK},
		{"timestamps", mine.Timestamps, theirs.Timestamps},
	} {
		if o.away && !o.here {
			out = append(out, altered{what: o.what, from: result.Server})
		}
	}
	room := mine.PMTU - 40
	if strings.Contains(s.Remote.Host, ":") {
		room -= 20
	}
	got := mine.MSS
	if mine.Timestamps {
		got += timestampBytes
	}
	if sent := announced(theirs); got > 0 && got < sent && got < room && s.TCP.MaxSndWnd > 4*got {
		out = append(out, altered{"the largest segment (MSS)", "mss", result.Server, float64(sent), float64(got)})
	}
	return out
}

// timestampBytes is what the option takes of each segment; Linux takes it off tcpi_advmss and
// tcpi_snd_mss when it was agreed on (net/ipv4/tcp_output.c, tcp_connect_init).
const timestampBytes = 12

// announced is the largest segment that an end put into its SYN or SYN-ACK; 0 = not known.
func announced(t *result.TCPInfo) int64 {
	if t.AdvMSS > 0 && t.Timestamps {
		return t.AdvMSS + timestampBytes
	}
	return t.AdvMSS
}

func (c *Case) alteredVerdict(one *flow, list []altered) result.Verdict {
	v := draft(OptionsAltered, Likely, nil, one)
	v.Note, v.Direction = true, "both"
	var words []string
	for _, a := range list {
		to := a.from.Other()
		if a.sent > 0 {
			put(&v, a.name+"_"+string(a.from), a.got, "bytes")
			put(&v, a.name+"_"+string(a.from)+"_sent", a.sent, "bytes")
			say(&v, "%s: %s announced %.0f bytes, %s got %.0f", a.what, c.host(a.from), a.sent, c.host(to), a.got)
			words = append(words, fmt.Sprintf("segments of %s are clamped to %.0f bytes", c.host(a.from), a.got))
			continue
		}
		say(&v, "%s: offered by %s, and missing in what %s got", a.what, c.host(a.from), c.host(to))
		words = append(words, "no "+a.what)
	}
	put(&v, "options", float64(len(list)), "")
	advise(&v,
		"clamped segments are what a tunnel or PPPoE needs; options that are taken out come from an old firewall or balancer: have it leave TCP options alone (\"TCP normalisation\")",
		"compare a capture of the SYN at both ends: tcpdump -ni DEV 'tcp[tcpflags] & tcp-syn != 0' -v")
	v.Summary = fmt.Sprintf("Something on the way changes TCP's options between %s and %s: %s.", c.host(result.Client), c.host(result.Server), strings.Join(words, "; "))
	return v
}
