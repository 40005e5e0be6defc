package truth

import (
	"bytes"
	"net/netip"
	"slices"
	"sort"
	"time"
)

// Sizes of the UDP payloads that open a stream of iperf3 (4 bytes) or of fullbore (45
// bytes, docs/wire-extension.md). They are no data, and neither side counts them.
const (
	greeting      = 4
	greetingIndex = 45
)

// probePrefix begins a probe of fullbore's, which belongs to no stream either.
var probePrefix = []byte("FBP1")

func isData(payload []byte) bool {
	return len(payload) != greeting && len(payload) != greetingIndex && !bytes.HasPrefix(payload, probePrefix)
}

// IsData reports whether an IP packet is a UDP datagram of a measurement: whole, and
// neither a greeting nor a probe.
func IsData(packet []byte) bool {
	_, payload, ok := parseUDP(packet)
	return ok && isData(payload)
}

// Ref is one datagram on its way through the link. The zero value is a packet that does
// not count.
type Ref struct {
	flow   *datagramFlow
	number int64
	at     time.Duration
	size   int
}

// Counts reports whether r is a datagram that counts.
func (r Ref) Counts() bool { return r.flow != nil }

// datagramFlow is the state of one flow of datagrams.
type datagramFlow struct {
	key                  flowKey
	first, last          time.Duration
	in, inBytes, lost    int64
	distinct, distinctBy int64 // that left, and their bytes
	order, delay         []int64
	bucket               int64
	series               Series
}

// Enter counts an IP packet that the link is offered at time at, and returns what to
// call the datagram by. The packets of a flow must be offered in the order in which they
// were sent: that is what numbers them.
func (t *Tracker) Enter(at time.Duration, packet []byte) Ref {
	key, payload, ok := parseUDP(packet)
	if !ok {
		if isFragment(packet) {
			t.fragments++
		}
		t.offer(at, packet)
		return Ref{}
	}
	if !isData(payload) {
		return Ref{}
	}
	f := t.datagramsByKey[key]
	if f == nil {
		f = &datagramFlow{key: key}
		t.datagramsByKey[key] = f
		t.datagrams = append(t.datagrams, f)
	}
	r := Ref{f, f.in, at, len(payload)}
	f.in++
	f.inBytes += int64(len(payload))
	return r
}

// Lost says that the link dropped a datagram.
func (t *Tracker) Lost(r Ref) {
	if r.flow != nil {
		r.flow.lost++
	}
}

// Left says that a datagram left the link at now, which must not decrease; again, that
// it is the second copy.
func (t *Tracker) Left(now time.Duration, r Ref, again bool) {
	f := r.flow
	if f == nil {
		return
	}
	f.order = append(f.order, r.number)
	f.delay = append(f.delay, int64(now-r.at))
	if again {
		return
	}
	bucket := int64(now / Bucket)
	if f.distinct == 0 {
		f.first, f.bucket = now, bucket
	} else if bucket != f.bucket {
		f.series.Millis = append(f.series.Millis, f.bucket)
		f.series.Bytes = append(f.series.Bytes, f.distinctBy)
		f.bucket = bucket
	}
	f.distinct++
	f.distinctBy += int64(r.size)
	f.last = now
}

// Fragments is how many fragments of UDP datagrams were offered. The datagrams that they
// belong to are in no count.
func (t *Tracker) Fragments() int64 { return t.fragments }

// Datagrams is one UDP flow, as it entered and left the link.
type Datagrams struct {
	Src     netip.AddrPort `json:"src"`
	Dst     netip.AddrPort `json:"dst"`
	First   time.Duration  `json:"first_ns"` // when the first one left
	Last    time.Duration  `json:"last_ns"`  // when the last one left for the first time
	In      int64          `json:"in"`       // offered to the link
	InBytes int64          `json:"in_bytes"` // their payload
	Lost    int64          `json:"lost"`     // by the link, for whatever reason
	// Order has the numbers of the datagrams, counted from 0 as they were offered, in the
	// order in which they left; a copy has the number of its original.
	Order []int64 `json:"order"`
	// Delay is how long each of Order was on the link, ns: from when the kernel gave it to
	// the near device until it was written into the far one.
	Delay  []int64 `json:"delay_ns"`
	Series Series  `json:"series"` // payload of datagrams that left for the first time
}

type frozenDatagrams struct {
	Datagrams
	millis, bytes int64
}

func (t *Tracker) freezeDatagrams() []frozenDatagrams {
	out := make([]frozenDatagrams, 0, len(t.datagrams))
	for _, f := range t.datagrams {
		src, dst := f.key.addresses()
		out = append(out, frozenDatagrams{
			Datagrams: Datagrams{
				Src: src, Dst: dst, First: f.first, Last: f.last, In: f.in, InBytes: f.inBytes, Lost: f.lost,
				Order: slices.Clip(f.order), Delay: slices.Clip(f.delay),
				Series: Series{Millis: slices.Clip(f.series.Millis), Bytes: slices.Clip(f.series.Bytes)},
			},
			millis: f.bucket, bytes: f.distinctBy,
		})
	}
	return out
}

// Datagrams returns the UDP flows in order of their first datagram.
func (z Frozen) Datagrams() []Datagrams {
	out := make([]Datagrams, len(z.datagrams))
	for i, fz := range z.datagrams {
		out[i] = fz.Datagrams
		if len(fz.Order) > 0 { // clipped: this copies
			out[i].Series.Millis = append(out[i].Series.Millis, fz.millis)
			out[i].Series.Bytes = append(out[i].Series.Bytes, fz.bytes)
		}
	}
	return out
}

// Between returns the payload bytes that left for the first time from t0 to t1.
func (d *Datagrams) Between(t0, t1 time.Duration) float64 {
	return d.Series.at(d.Series.Bytes, t1) - d.Series.at(d.Series.Bytes, t0)
}

// Arrivals is what a receiver that gets every datagram that left must have counted.
type Arrivals struct {
	Distinct   int64
	Duplicates int64 // RFC 5560
	// Reordered are those whose first copy left after one with a greater number (RFC
	// 4737 §3.3, type-P-reordered); MaxExtent is the greatest extent (§4.2.1), in
	// distinct datagrams.
	Reordered int64
	MaxExtent int64
	// OnTheWay were offered and have neither left nor been lost.
	OnTheWay int64
}

// Arrivals computes the counts from the order of leaving.
func (d *Datagrams) Arrivals() (a Arrivals) {
	seen := make([]bool, d.In)
	type record struct{ number, at int64 } // a number greater than all before, and its place
	var records []record
	for _, n := range d.Order {
		if seen[n] {
			a.Duplicates++
			continue
		}
		seen[n] = true
		if len(records) == 0 || n > records[len(records)-1].number {
			records = append(records, record{n, a.Distinct})
		} else {
			a.Reordered++
			i := sort.Search(len(records), func(i int) bool { return records[i].number > n })
			a.MaxExtent = max(a.MaxExtent, a.Distinct-records[i].at)
		}
		a.Distinct++
	}
	a.OnTheWay = d.In - d.Lost - a.Distinct
	return a
}

// PDV is the variation of the delay of flows (RFC 5481 §4.2): what each datagram's first
// copy took longer than the quickest of its flow. Ascending.
func PDV(flows []Datagrams) []time.Duration {
	var out []time.Duration
	for i := range flows {
		d := &flows[i]
		if len(d.Delay) == 0 {
			continue
		}
		least, seen := slices.Min(d.Delay), make([]bool, d.In)
		for k, n := range d.Order {
			if !seen[n] {
				seen[n] = true
				out = append(out, time.Duration(d.Delay[k]-least))
			}
		}
	}
	slices.Sort(out)
	return out
}

// Quantile returns the q-quantile, 0 to 1, of ascending times: the smallest that at
// least q of them do not exceed. There must be one.
func Quantile(ascending []time.Duration, q float64) time.Duration {
	i := int(q * float64(len(ascending)))
	if float64(i) == q*float64(len(ascending)) && i > 0 {
		i--
	}
	return ascending[min(i, len(ascending)-1)]
}

// isFragment reports whether an IP packet is a fragment of a UDP datagram (RFC 791
// §3.1; RFC 8200 §4.5, for a fragment header that comes first).
func isFragment(p []byte) bool {
	const protoFragment = 44
	switch {
	case len(p) >= 20 && p[0]>>4 == 4:
		return p[9] == protoUDP && p[6]&0x3f|p[7] != 0
	case len(p) >= 48 && p[0]>>4 == 6:
		return p[6] == protoFragment && p[40] == protoUDP
	}
	return false
}
