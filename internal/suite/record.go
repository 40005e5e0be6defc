package suite

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/bdp"
	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// What a document has to say besides its results before anybody signs it: how each item was measured, what
// defines its figures and who set its limits, what was carried on each layer, what the interfaces counted
// meanwhile, and what all of that does not show.

// Where the link's speed comes from, in the document.
const (
	LinkGiven     = "given"     // the user's word
	LinkSuite     = "suite"     // the suite file's
	LinkInterface = "interface" // that of this host's interface: nobody said what was promised
)

// definedBy is what defines a figure.
var definedBy = map[string]string{
	"throughput":     "payload at the receiver; ideal: RFC 6349 §4.1.1",
	"efficiency":     "RFC 6349 §4.2, in segments",
	"loss":           "RFC 7680",
	"loss_loaded":    "RFC 7680, RFC 6673",
	"duplicates":     "RFC 5560",
	"reordering":     "RFC 4737, type-P-reordered",
	"pdv_p99":        "RFC 5481, PDV",
	"jitter":         "RFC 3550 §6.4.1",
	"rise_p95":       "RFC 2681, of the round trip",
	"loss_free_rate": "RFC 2544 §26.1, searched as MLRsearch does",
	"path_mtu":       "RFC 4821, RFC 8899",
}

// record fills in what a document needs besides its results.
func (j *Judge) record(a *result.Acceptance) {
	a.LinkFrom = j.LinkFrom
	for _, it := range j.Method.Suite.Items {
		p := result.ItemPlan{ID: it.ID, Title: titles[it.Kind], How: j.how(it), Limits: []result.ItemLimit{}}
		for _, d := range it.Demands {
			p.Limits = append(p.Limits, result.ItemLimit{Text: d.Text(), Defined: definedBy[d.Figure], Source: j.setBy(it, d)})
		}
		if it.Kind == Precheck {
			p.Limits = append([]result.ItemLimit{{Text: "no doubt about the ends or the path", Source: j.setBy(it, Demand{})}}, p.Limits...)
		}
		a.Plans = append(a.Plans, p)
	}
	a.Rates = j.rates()
	a.Interfaces = j.interfaces()
	a.Findings = append(a.Findings, damaged(a.Interfaces, j.endName)...)
	from, until := j.times()
	if !until.IsZero() {
		a.Until = &until
	}
	for _, run := range j.overLink() {
		for _, d := range both() {
			if run.Sum(d) != nil {
				a.Moved += max(whole(run, d, d.Sender()), whole(run, d, d.Receiver()))
			}
		}
	}
	a.Scope = j.scope(from, until)
}

// setBy is who set a limit.
func (j *Judge) setBy(it Item, d Demand) string {
	s := &j.Method.Suite
	switch {
	case d == Demand{}, slices.Contains(item(it.Kind, s.Class).Demands, d):
		return "M-ACCEPT, profile " + string(s.Class)
	case j.File != "":
		return "suite file " + j.File
	}
	return "suite " + s.Name
}

// how says what is sent for an item, how long and how often.
func (j *Judge) how(it Item) string {
	m := &j.Method
	text := ""
	rounds := "once"
	switch {
	case it.Auto:
		rounds = fmt.Sprintf("%d to %d times, until the throughput settles", method.LeastRounds, method.MostRounds)
	case it.Rounds > 1:
		rounds = fmt.Sprintf("%d times", it.Rounds)
	}
	lasts, each := units.FormatDuration(it.Time), units.FormatDuration(it.Spacing)
	switch it.Kind {
	case Precheck:
		text = fmt.Sprintf("Round trips of packets of %d bytes each 10 ms for %s without load; single packets of several sizes each way, which nobody may fragment (M-PMTU); what both ends tell of interface, offloads, processors and clock; this machine alone over its loopback (M-SELF).", smallPayload, lasts)
	case TCPSingle, TCPMulti, TCPBoth:
		what := "One TCP connection"
		if it.Streams > 1 {
			what = fmt.Sprintf("%d TCP connections at once", it.Streams)
		}
		if it.Kind == TCPBoth {
			what += " each way, both ways at the same time,"
		}
		text = fmt.Sprintf("%s for %s, %s, each behind a warm-up of %s that does not count and in random order among the other TCP items; the median of the payload rates that the receiver counted.", what, lasts, rounds, units.FormatDuration(it.Omit))
	case UDPFull:
		rate, size := m.fullRate(it), m.payload(it)
		onWire := float64(rate) * onLayer(size, m, units.L1)
		text = fmt.Sprintf("Datagrams of %d bytes of payload, not to be fragmented, paced to %s of payload (%s of the link on layer 1) for %s, %s. Each is known by its number: arrived, lost, twice, late, out of order; and where it was lost, as far as the receiving host counts its own.", size, spell("bit/s", float64(rate)), percent(onWire/float64(m.Suite.Link)), lasts, rounds)
		if more := m.catchUp(it); more > 0 {
			text += fmt.Sprintf(" What its host did not let a sender send in time it makes up, up to %s faster: below the link's rate, and yet all of the load. Where it sends less than 99 %% of it all the same, nothing is said.", percent(more))
		}
	case UDPSmall:
		text = fmt.Sprintf("Datagrams of %d bytes of payload each %s for %s, %s, with nothing beside them. Their delay variation is told over the fastest of them, so it needs no clock in common.", it.Payload, each, lasts, rounds)
		if m.Suite.find(Latency) != nil {
			text += fmt.Sprintf(" Beside a load the packets of %s take their part.", m.Suite.find(Latency).ID)
		}
	case Latency:
		text = fmt.Sprintf("Packets of %d bytes each %s, which the other end answers, beside a load of %s for %s, %s: the 95th percentile of their round trips less the median on the empty path.", it.Payload, each, streamCount(it.Streams)+" of TCP", lasts, rounds)
	case LossFree:
		text = "Trials with datagrams that fill a packet, at rates up to the whole link (M-NDR): the highest rate of payload at which none was lost."
	}
	if it.Window > 0 {
		text += fmt.Sprintf(" Socket buffers of %s.", units.ByteSize(it.Window).IEC())
	}
	if it.Congestion != "" {
		text += " Congestion control: " + it.Congestion + "."
	}
	if len(it.Directions) == 1 {
		text += fmt.Sprintf(" Only %s.", it.Directions[0])
	}
	return text
}

// onLayer is how many bytes on a layer a byte of a datagram's payload takes.
func onLayer(size int, m *Method, l units.Layer) float64 {
	n := conclude.DatagramBytes(size, m.MTU(), m.family())
	return float64(n[l]) / float64(max(n[units.L7], 1))
}

// overLink are the runs of the items and of what goes before them, by the link itself.
func (j *Judge) overLink() (out []*result.Run) {
	for _, d := range j.history {
		if d.Run != nil && d.Step.Name != SelfStep {
			out = append(out, d.Run)
		}
	}
	return out
}

// times are when the first run began and the last one ended, by this host's wall clock.
func (j *Judge) times() (from, until time.Time) {
	for _, run := range j.overLink() {
		if run.Started.IsZero() {
			continue
		}
		if from.IsZero() || run.Started.Before(from) {
			from = run.Started
		}
		if end := run.Started.Add(seconds(run.Elapsed)); end.After(until) {
			until = result.Now(end)
		}
	}
	return from, until
}

// rates are what the items carried, on each layer (M-BASE).
func (j *Judge) rates() (out []result.ItemRate) {
	for _, it := range j.Method.Suite.Items {
		for _, d := range it.Directions {
			if r, ok := j.rate(it, d); ok {
				out = append(out, r)
			}
		}
	}
	return out
}

func (j *Judge) rate(it Item, d result.Direction) (result.ItemRate, bool) {
	if !it.repeats() && it.Kind != UDPFull {
		return result.ItemRate{}, false
	}
	var x []float64
	size, stamps, names := 0, true, j.names(it, d)
	for _, n := range names {
		run := j.runs[n]
		if run == nil {
			continue
		}
		if r := throughput(run, d); r.known {
			x = append(x, r.value)
		}
		if it.Kind == UDPFull {
			size = run.Test.BlockSize
			continue
		}
		for i := range run.Streams {
			if t := senderTCP(run, &run.Streams[i]); run.Streams[i].Direction == d && t != nil && t.Last.MSS > 0 {
				size, stamps = int(t.Last.MSS), t.Last.Timestamps // the kernel's MSS is without what options take
			}
		}
	}
	v, known := quantile(x, 0.5)
	if !known {
		return result.ItemRate{}, false
	}
	m := &j.Method
	h := bdp.TCP(m.family())
	if !stamps {
		h = bdp.PlainTCP(m.family())
	}
	if size <= 0 {
		size = m.MTU() - h.Bytes(0, bdp.L3)
	}
	at := func(l units.Layer) float64 {
		if it.Kind == UDPFull {
			return v * onLayer(size, m, l)
		}
		return h.Convert(v, size, bdp.L7, l)
	}
	r := result.ItemRate{ID: stepName(it, d), Packet: size, Median: len(x)}
	r.Layers = result.LayerRate{Direction: d, L7: v, L4: at(units.L4), L3: at(units.L3), L2: at(units.L2), L1: at(units.L1)}
	r.Share = r.Layers.L1 / float64(max(m.Suite.Link, 1))
	return r, true
}

// interfaces add up what the ends' interfaces counted in the runs over the link.
func (j *Judge) interfaces() (out []result.InterfaceTotal) {
	if j.loopback() {
		return nil // it carries both directions, and everything else of that host
	}
	for _, e := range []result.End{result.Client, result.Server} {
		t := result.InterfaceTotal{End: e}
		for _, run := range j.overLink() {
			for i := range run.Rows {
				row := &run.Rows[i]
				if row.End != e || row.Host == nil || row.Host.NIC == nil {
					continue
				}
				n, c := row.Host.NIC, &t.Counters
				t.Counted += row.Stop - row.Start
				c.Name = n.Name
				c.RxBytes, c.TxBytes = c.RxBytes+n.RxBytes, c.TxBytes+n.TxBytes
				c.RxPackets, c.TxPackets = c.RxPackets+n.RxPackets, c.TxPackets+n.TxPackets
				c.RxErrors, c.TxErrors = c.RxErrors+n.RxErrors, c.TxErrors+n.TxErrors
				c.RxDropped, c.TxDropped = c.RxDropped+n.RxDropped, c.TxDropped+n.TxDropped
				c.RxMissed += n.RxMissed
			}
		}
		if t.Counters.Name != "" {
			out = append(out, t)
		}
	}
	return out
}

// damaged are findings about frames that an interface could not read or send: the medium's fault, or that of
// what it is plugged into.
func damaged(totals []result.InterfaceTotal, name func(result.End) string) (out []string) {
	for _, t := range totals {
		if c := &t.Counters; c.RxErrors+c.TxErrors > 0 {
			out = append(out, fmt.Sprintf("%s of %s counted %s damaged frames received and %s that could not be sent, meanwhile: cable, optics, connectors or duplex.", c.Name, name(t.End), conclude.Grouped(c.RxErrors), conclude.Grouped(c.TxErrors)))
		}
	}
	return out
}

// scope says for what the figures hold, and what they do not show.
func (j *Judge) scope(from, until time.Time) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	s := &j.Method.Suite
	when := ""
	if !until.IsZero() {
		const layout = "2006-01-02 15:04:05"
		when = fmt.Sprintf(", from %s to %s (UTC)", from.UTC().Format(layout), until.UTC().Format(layout))
	}
	say("The figures hold for the way between these two hosts, with all that lies on it and in them%s. Other hours and days they do not show: fullbore soak, and the tests advised for later, do.", when)
	if s.Quick {
		say("It was a trial: a few seconds an item, one round. What comes and goes, and small shares of loss, it cannot show.")
	}
	if n := j.datagramsOf(UDPFull); n > 0 {
		_, least := bounds(0, n)
		say("A loss of less than %s could not be told from none: %s datagrams were sent each way at full load (with none lost, the 95 %% bound is 3 in so many).", shareText(least), conclude.Grouped(n))
	}
	if it := s.find(UDPFull); it != nil {
		say("At full load packets of one size were sent, %d bytes of payload: what another mix of sizes would meet they do not show (fullbore rfc2544 does, on an isolated link).", j.Method.payload(*it))
	}
	if s.find(UDPSmall) != nil || s.find(Latency) != nil {
		say("Delays are stamped by the hosts' systems, not by their network cards: the shortest tell of the hosts as much as of the link. Delay variation and rise are differences, which need no clock in common; delays of one way were not judged.")
	}
	var single []string
	for _, it := range s.Items {
		if len(it.Directions) == 1 {
			single = append(single, fmt.Sprintf("%s (only %s)", it.ID, it.Directions[0]))
		}
	}
	if len(single) > 0 {
		say("Not both ways were measured by %s.", strings.Join(single, ", "))
	}
	var missing []string
	for _, k := range Kinds() {
		if s.find(k) == nil {
			missing = append(missing, titles[k])
		}
	}
	if len(missing) > 0 {
		say("Left out of M-ACCEPT: %s.", strings.Join(missing, ", "))
	}
	return out
}

// datagramsOf is how many datagrams an item of UDP sent, of its ways the fewer; 0 = not known.
func (j *Judge) datagramsOf(k Kind) (least int64) {
	it := j.Method.Suite.find(k)
	if it == nil {
		return 0
	}
	for _, d := range it.Directions {
		n := int64(0)
		for _, name := range j.names(*it, d) {
			if l := lossOf(j.runs[name], d); l != nil {
				n += l.Sent
			}
		}
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}
