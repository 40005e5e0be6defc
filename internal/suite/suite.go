// Package suite is the acceptance of a link (M-ACCEPT): which items are measured, what each must
// show, what the counters of both ends say of the same bytes, and what follows from it all.
//
// It is pure. Method says what to measure next, from the history; Judge says what the runs mean.
// Neither sends anything nor reads a clock, so a stored report is judged again as it was.
package suite

import (
	"fmt"
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// Class is the kind of a link; it fixes the default limits.
type Class string

// The classes of M-ACCEPT.
const (
	LAN   Class = "lan"
	Metro Class = "metro"
	WAN   Class = "wan"
)

// Classes lists them.
func Classes() []Class { return []Class{LAN, Metro, WAN} }

// Kind is what an item measures.
type Kind string

// The kinds, in the order of M-ACCEPT.
const (
	Precheck  Kind = "precheck"
	TCPSingle Kind = "tcp-single"
	TCPMulti  Kind = "tcp-multi"
	TCPBoth   Kind = "tcp-both"
	UDPFull   Kind = "udp-full"
	UDPSmall  Kind = "udp-small"
	Latency   Kind = "latency"
	LossFree  Kind = "loss-free"
)

// Kinds lists them.
func Kinds() []Kind {
	return []Kind{Precheck, TCPSingle, TCPMulti, TCPBoth, UDPFull, UDPSmall, Latency, LossFree}
}

var titles = map[Kind]string{
	Precheck: "pre-check", TCPSingle: "TCP, one stream", TCPMulti: "TCP, several streams", TCPBoth: "TCP, both ways at once",
	UDPFull: "UDP, full load", UDPSmall: "UDP, small packets", Latency: "latency under load", LossFree: "highest loss-free rate",
}

// Item is one thing that is measured and judged, in each of its directions.
type Item struct {
	ID         string             `json:"id"` // "A1"; stable, letters and digits
	Kind       Kind               `json:"kind"`
	Directions []result.Direction `json:"directions"`
	Streams    int                `json:"streams"` // 0 = the knee's, which is looked for first; else 8
	Time       time.Duration      `json:"time"`
	Omit       time.Duration      `json:"omit"`
	Rounds     int                `json:"rounds"`
	Auto       bool               `json:"rounds_auto,omitempty"` // rounds until the throughput settles; Rounds is not read then
	Window     int64              `json:"window,omitempty"`      // bytes; 0 = the system's own
	Congestion string             `json:"congestion,omitempty"`  // "" = the systems' own
	Share      float64            `json:"share,omitempty"`       // UDP: of the link, layer 1
	Rate       int64              `json:"rate,omitempty"`        // UDP: payload bit/s instead of a share
	Payload    int                `json:"payload,omitempty"`     // UDP, probes: bytes; 0 = what fills a packet
	Spacing    time.Duration      `json:"spacing,omitempty"`     // of small packets and of probes beside a load
	Demands    []Demand           `json:"demands"`
}

// Suite is what is to be accepted.
type Suite struct {
	Name     string        `json:"name"`
	Class    Class         `json:"class"`
	Link     units.BitRate `json:"link"` // declared speed, layer 1
	Contract string        `json:"contract,omitempty"`
	MTU      int           `json:"mtu,omitempty"` // that the path must carry; 0 = the interfaces' smaller one
	Quick    bool          `json:"quick"`
	// Assumed: a trial does not look for the knee, so items that leave the streams open have 8.
	Assumed bool   `json:"assumed_streams,omitempty"`
	Seed    int64  `json:"seed"`
	Items   []Item `json:"items"`
}

// DefaultSeed orders the items within a round when the user gave none.
const DefaultSeed = 1

// limits are M-ACCEPT's defaults of a class.
type limits struct {
	efficiency, loss, pdv, rise float64
}

var defaults = map[Class]limits{
	LAN:   {0.999, 1e-5, 0.2e-3, 5e-3},
	Metro: {0.99, 1e-4, 2e-3, 20e-3},
	WAN:   {0.99, 1e-3, 10e-3, 100e-3},
}

const (
	defaultStreams = 8
	defaultRounds  = 3
	defaultShare   = 0.95
	smallPayload   = 64
	smallSpacing   = time.Millisecond
)

// both is the two directions.
func both() []result.Direction { return []result.Direction{result.Up, result.Down} }

// item is M-ACCEPT's item of a kind, for a class.
func item(k Kind, c Class) Item {
	l := defaults[c]
	it := Item{ID: fmt.Sprint("A", slices.Index(Kinds(), k)), Kind: k, Directions: both(), Streams: 1, Rounds: 1, Omit: time.Second}
	switch k {
	case Precheck:
		it.Directions, it.Time, it.Omit = nil, 5*time.Second, 0
	case TCPSingle:
		it.Time, it.Rounds = 30*time.Second, defaultRounds
		it.Demands = []Demand{{Figure: "throughput", Op: ">=", Bound: 0.90, Of: "ideal"}}
	case TCPMulti:
		it.Time, it.Rounds, it.Streams = 30*time.Second, defaultRounds, 0
		it.Demands = []Demand{{Figure: "throughput", Op: ">=", Bound: 0.95, Of: "ideal"}, {Figure: "efficiency", Op: ">=", Bound: l.efficiency}}
	case TCPBoth:
		it.Time, it.Rounds, it.Streams = 30*time.Second, defaultRounds, 0
		it.Demands = []Demand{{Figure: "throughput", Op: ">=", Bound: 0.85, Of: "A2"}}
	case UDPFull:
		it.Time, it.Share = 60*time.Second, defaultShare
		it.Demands = []Demand{{Figure: "loss", Op: "<=", Bound: l.loss}, {Figure: "duplicates", Op: "<=", Bound: 0}, {Figure: "reordering", Op: "<=", Bound: 1e-4}}
	case UDPSmall:
		it.Time, it.Payload, it.Spacing = 60*time.Second, smallPayload, smallSpacing
		it.Demands = []Demand{{Figure: "pdv_p99", Op: "<=", Bound: l.pdv}, {Figure: "loss", Op: "<=", Bound: l.loss}, {Figure: "loss_loaded", Op: "<=", Bound: l.loss}}
	case Latency:
		it.Time, it.Streams, it.Payload, it.Spacing = 30*time.Second, 0, smallPayload, smallSpacing
		it.Demands = []Demand{{Figure: "rise_p95", Op: "<=", Bound: l.rise}}
	case LossFree:
		it.Time = 2 * time.Second
		it.Demands = []Demand{{Figure: "loss_free_rate"}}
	}
	return it
}

// Default is M-ACCEPT for a class: every item, both directions.
func Default(c Class, link units.BitRate) Suite {
	s := Suite{Name: "M-ACCEPT " + string(c), Class: c, Link: link, Seed: DefaultSeed}
	for _, k := range Kinds() {
		s.Items = append(s.Items, item(k, c))
	}
	return s
}

// Shortened is the suite as a trial: 3 s, one round, no search for the number of streams.
func (s Suite) Shortened() Suite {
	s.Quick = true
	s.Items = slices.Clone(s.Items)
	for i := range s.Items {
		it := &s.Items[i]
		it.Rounds, it.Auto = 1, false
		if it.Streams == 0 {
			it.Streams, s.Assumed = defaultStreams, true
		}
		it.Time = min(it.Time, 3*time.Second)
		if it.Kind == Precheck {
			it.Time = time.Second
		}
	}
	return s
}

// Only keeps the items with these ids; the pre-check stays. An id that there is not is an error.
func (s Suite) Only(ids []string) (Suite, error) {
	for _, id := range ids {
		if s.Item(id) == nil {
			return s, fmt.Errorf("there is no item %q; there are: %s", id, s.ids())
		}
	}
	var out []Item
	for _, it := range s.Items {
		if it.Kind == Precheck || slices.Contains(ids, it.ID) {
			out = append(out, it)
		}
	}
	s.Items = out
	return s, nil
}

// Item finds an item by its id; nil when there is none.
func (s *Suite) Item(id string) *Item {
	for i := range s.Items {
		if s.Items[i].ID == id {
			return &s.Items[i]
		}
	}
	return nil
}

// find is the first item of a kind.
func (s *Suite) find(k Kind) *Item {
	for i := range s.Items {
		if s.Items[i].Kind == k {
			return &s.Items[i]
		}
	}
	return nil
}

func (s *Suite) ids() (text string) {
	for i, it := range s.Items {
		if i > 0 {
			text += ", "
		}
		text += it.ID
	}
	return text
}

// least is how many rounds an item has at any rate.
func (it *Item) least() int {
	if it.Auto {
		return method.LeastRounds
	}
	return it.Rounds
}

// most is how many it has at most.
func (it *Item) most() int {
	if it.Auto {
		return method.MostRounds
	}
	return it.Rounds
}

// rounds is the largest number of rounds that an item can have; auto: some are made until they settle.
func (s *Suite) rounds() (most int, auto bool) {
	for i := range s.Items {
		most, auto = max(most, s.Items[i].most()), auto || s.Items[i].Auto
	}
	return most, auto
}
