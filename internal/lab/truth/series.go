package truth

import (
	"net/netip"
	"slices"
	"time"
)

// Series is a cumulative count over time: entry i holds the totals at the end of
// the bucket that began Millis[i] milliseconds after the clock's zero. Buckets in
// which nothing left have no entry.
type Series struct {
	Millis []int64 `json:"ms"`
	// Bytes counts distinct payload bytes that have left the link.
	Bytes []int64 `json:"bytes"`
	// InOrder counts those of them before which nothing is missing: what a receiving
	// application can have been given. TCP only.
	InOrder []int64 `json:"in_order,omitempty"`
}

func (s *Series) append(millis, bytes, inOrder int64) {
	s.Millis = append(s.Millis, millis)
	s.Bytes = append(s.Bytes, bytes)
	s.InOrder = append(s.InOrder, inOrder)
}

// at returns a cumulative column at t, evenly spread within a bucket.
func (s *Series) at(column []int64, t time.Duration) float64 {
	bucket := int64(t / Bucket)
	i, found := slices.BinarySearch(s.Millis, bucket)
	var before float64
	if i > 0 {
		before = float64(column[i-1])
	}
	if !found {
		return before
	}
	part := float64(t-time.Duration(bucket)*Bucket) / float64(Bucket)
	return before + (float64(column[i])-before)*part
}

// Flow is one direction of one TCP connection, as it left the link.
type Flow struct {
	Src   netip.AddrPort `json:"src"`
	Dst   netip.AddrPort `json:"dst"`
	First time.Duration  `json:"first_ns"` // when its first payload byte left
	Last  time.Duration  `json:"last_ns"`  // when its last new byte left
	// Bytes is the distinct payload, Repeated what left again after its first copy had.
	Bytes    int64  `json:"bytes"`
	Repeated int64  `json:"repeated_bytes"`
	Missing  int64  `json:"missing_bytes"` // below the highest byte seen, and not seen
	Series   Series `json:"series"`
}

// Between returns the payload bytes whose first copies left the link from t0 to t1.
func (f *Flow) Between(t0, t1 time.Duration) float64 {
	return f.Series.at(f.Series.Bytes, t1) - f.Series.at(f.Series.Bytes, t0)
}

// InOrderBetween is Between for bytes before which nothing is missing any more.
func (f *Flow) InOrderBetween(t0, t1 time.Duration) float64 {
	return f.Series.at(f.Series.InOrder, t1) - f.Series.at(f.Series.InOrder, t0)
}

// Frozen is a tracker's state at one moment. It may be read while the tracker goes on.
type Frozen struct {
	flows     []frozenFlow
	datagrams []frozenDatagrams
}

type frozenFlow struct {
	flow    Flow // its series without the open bucket
	millis  int64
	inOrder int64
}

// Freeze copies the state of every connection that carried payload and of every flow of
// datagrams. It is cheap, as
// finished buckets are shared and not copied, so a packet loop may call it.
func (t *Tracker) Freeze() Frozen {
	out := make([]frozenFlow, 0, len(t.flows))
	for _, f := range t.flows {
		if f.bytes == 0 {
			continue
		}
		src, dst := f.key.addresses()
		fz := frozenFlow{millis: f.bucket, inOrder: f.inOrder(), flow: Flow{
			Src: src, Dst: dst, First: f.first, Last: f.last, Bytes: f.bytes, Repeated: f.repeated,
			Series: Series{slices.Clip(f.series.Millis), slices.Clip(f.series.Bytes), slices.Clip(f.series.InOrder)},
		}}
		for _, h := range f.holes {
			fz.flow.Missing += h.end - h.start
		}
		out = append(out, fz)
	}
	return Frozen{out, t.freezeDatagrams()}
}

// Flows returns the connections in order of their SYN.
func (z Frozen) Flows() []Flow {
	out := make([]Flow, len(z.flows))
	for i, fz := range z.flows {
		out[i] = fz.flow
		out[i].Series.append(fz.millis, fz.flow.Bytes, fz.inOrder) // clipped: this copies
	}
	return out
}
