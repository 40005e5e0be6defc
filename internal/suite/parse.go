package suite

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/strictyaml"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// Known reports that there is a class.
func Known(c Class) bool { return slices.Contains(Classes(), c) }

// Parse reads a suite file. class, when it is not "", wins over the file's profile. All faults
// are reported at once, each with its line and column.
//
//	name: Line 4711
//	profile: metro              # lan, metro or wan: what an item does not say
//	link: 1G                    # as the line counts it; or given on the command line
//	contract: K-2026-17, A to B
//	mtu: 1500
//	seed: 7
//	items:                      # absent = all of M-ACCEPT
//	  - test: tcp-single        # precheck, tcp-single, tcp-multi, tcp-both, udp-full, udp-small, latency, loss-free
//	    id: A1                  # absent = M-ACCEPT's
//	    directions: [up, down]
//	    time: 30s
//	    omit: 1s
//	    rounds: 3                       # or auto: 3 to 10, until the throughput settles
//	    streams: 8                      # of tcp-multi, tcp-both, latency; absent or knee = as many as the knee has
//	    window: 4M
//	    cc: cubic
//	    throughput: ">= 940 Mbit/s"     # or ">= 90 % of ideal", "of link", "of A2"; "report"; "none"
//	  - test: udp-full
//	    rate: 95 %              # of the link, layer 1; or payload: 800M
//	    payload: 1400
//	    loss: "<= 1e-5"
//	  - test: udp-small
//	    spacing: 1ms
//	    pdv_p99: "<= 2 ms"
func Parse(file string, text []byte, class Class) (Suite, error) {
	r := &reader{strictyaml.New(file).Columns()}
	s := Suite{Name: file, Class: class, Seed: DefaultSeed}
	var items ast.Node
	r.Document(text, map[string]handler{
		"name": r.Text(&s.Name),
		"profile": r.Value(func(t string) error {
			if !Known(Class(t)) {
				return fmt.Errorf("there are lan, metro and wan, not %q", t)
			}
			if class == "" {
				s.Class = Class(t)
			}
			return nil
		}),
		"link": r.Value(func(t string) error {
			v, err := units.ParseRate(t)
			s.Link = v
			return err
		}),
		"contract": r.Text(&s.Contract),
		"mtu":      r.Value(integer(&s.MTU, 576, 65535)),
		"seed": r.Value(func(t string) (err error) {
			s.Seed, err = strconv.ParseInt(t, 10, 64)
			return err
		}),
		"items": func(n ast.Node, _ string) { items = n },
	})
	if s.Class == "" {
		s.Class = Metro
	}
	if !Known(s.Class) {
		r.Add(fmt.Errorf("profile %q: there are lan, metro and wan", s.Class))
		s.Class = Metro
	}
	if items == nil {
		s.Items = Default(s.Class, 0).Items
	} else {
		r.Sequence(items, "items", func(n ast.Node, path string) {
			if it, ok := r.item(n, path, s.Class); ok {
				s.Items = append(s.Items, it)
			}
		})
		if len(s.Items) == 0 && !r.Failed() {
			r.Fail(items, "items", "is empty")
		}
	}
	s.ordered()
	r.Add(s.faults(file)...)
	return s, r.Err()
}

// ordered puts the items into the order in which they can be judged: those that others are shares
// of first; the pre-check leads.
func (s *Suite) ordered() {
	slices.SortStableFunc(s.Items, func(a, b Item) int {
		return slices.Index(Kinds(), a.Kind) - slices.Index(Kinds(), b.Kind)
	})
	if s.find(Precheck) == nil {
		s.Items = append([]Item{item(Precheck, s.Class)}, s.Items...)
	}
}

// item reads one entry of items.
func (r *reader) item(n ast.Node, path string, c Class) (Item, bool) {
	var kind Kind
	first := r.Beside() // only for the kind: the other keys depend on it
	ignore := func(ast.Node, string) {}
	fields := map[string]handler{"test": first.Value(func(t string) error {
		kind = Kind(t)
		if !slices.Contains(Kinds(), kind) {
			return fmt.Errorf("there is no test %q; there are: %s", t, kindList())
		}
		return nil
	})}
	for _, k := range itemKeys {
		fields[k] = ignore
	}
	for w := range figures {
		fields[w] = ignore
	}
	first.Mapping(n, path, fields)
	if first.Failed() {
		r.Add(first.Err())
		return Item{}, false
	}
	if !first.Given(path + ".test") {
		r.Fail(n, path, "says no test; there are: %s", kindList())
		return Item{}, false
	}
	it := item(kind, c)
	r.Mapping(n, path, r.itemFields(&it))
	return it, true
}

func kindList() string {
	var out []string
	for _, k := range Kinds() {
		out = append(out, string(k))
	}
	return strings.Join(out, ", ")
}

var itemKeys = []string{"id", "directions", "time", "omit", "rounds", "streams", "window", "cc", "rate", "payload", "spacing"}

// itemFields are the keys of an item of a kind.
func (r *reader) itemFields(it *Item) map[string]handler {
	tcp := slices.Contains([]Kind{TCPSingle, TCPMulti, TCPBoth, Latency}, it.Kind)
	udp := it.Kind == UDPFull || it.Kind == UDPSmall
	only := func(ok bool, h handler) handler {
		if ok {
			return h
		}
		return func(_ ast.Node, path string) { r.Fail(r.At(path), path, "has no meaning for %s", it.Kind) }
	}
	out := map[string]handler{
		"test": func(ast.Node, string) {},
		"id": r.Value(func(t string) error {
			if t == "" || strings.Trim(t, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") != "" {
				return fmt.Errorf("%q: letters and digits only", t)
			}
			it.ID = t
			return nil
		}),
		"directions": only(it.Kind != Precheck, func(n ast.Node, path string) {
			it.Directions = nil
			r.Sequence(n, path, r.Value(func(t string) error {
				d := result.Direction(t)
				if d != result.Up && d != result.Down || slices.Contains(it.Directions, d) {
					return fmt.Errorf("%q: up and down, each once", t)
				}
				it.Directions = append(it.Directions, d)
				return nil
			}))
		}),
		"time":    only(it.Kind != LossFree, r.Value(lasting(&it.Time, time.Second, plan.MaxDuration))),
		"omit":    only(tcp, r.Value(lasting(&it.Omit, 0, plan.MaxOmit))),
		"rounds":  only(it.Kind != Precheck && it.Kind != LossFree, r.Value(it.setRounds)),
		"streams": only(tcp && it.Kind != TCPSingle, r.Value(it.setStreams)),
		"window": only(tcp, r.Value(func(t string) error {
			v, err := units.ParseSize(t)
			it.Window = int64(v)
			return err
		})),
		"cc":      only(tcp, r.Text(&it.Congestion)),
		"rate":    only(it.Kind == UDPFull, r.Value(it.setRate)),
		"payload": only(udp || it.Kind == Latency, r.Value(integer(&it.Payload, plan.MinUDPBlock, plan.MaxUDPBlock))),
		"spacing": only(it.Kind == UDPSmall || it.Kind == Latency, r.Value(lasting(&it.Spacing, plan.MinProbeSpacing, time.Minute))),
	}
	for word := range figures {
		out[word] = only(slices.Contains(figuresOf(it.Kind), word), r.Value(func(t string) error { return it.demand(word, t) }))
	}
	return out
}

// demand sets, replaces or ("none") takes back a demand.
func (it *Item) demand(word, text string) error {
	at := slices.IndexFunc(it.Demands, func(d Demand) bool { return d.Figure == word })
	if strings.TrimSpace(text) == "none" {
		if at >= 0 {
			it.Demands = slices.Delete(it.Demands, at, at+1)
		}
		return nil
	}
	d, err := parseDemand(word, text)
	if err != nil {
		return err
	}
	if at >= 0 {
		it.Demands[at] = d
	} else {
		it.Demands = append(it.Demands, d)
	}
	return nil
}

// setRate reads 95 % (of the link, layer 1) or a payload rate.
func (it *Item) setRate(t string) error {
	if p, ok := strings.CutSuffix(strings.TrimSpace(t), "%"); ok {
		v, err := strconv.ParseFloat(strings.TrimSpace(p), 64)
		if err != nil || !(v > 0 && v <= 200) {
			return fmt.Errorf("%q: a share of the link is a number of per cent above 0", t)
		}
		it.Share, it.Rate = v/100, 0
		return nil
	}
	v, err := units.ParseRate(t)
	if err == nil && v <= 0 {
		err = fmt.Errorf("%q: must be more than 0", t)
	}
	it.Rate = int64(v)
	return err
}

// setRounds reads a number, or auto.
func (it *Item) setRounds(t string) error {
	if t != "auto" {
		it.Auto = false
		return integer(&it.Rounds, 1, 100)(t)
	}
	if !it.repeats() {
		return fmt.Errorf("auto: only TCP's throughput is measured until it settles; %s wants a number", it.Kind)
	}
	it.Auto = true
	return nil
}

// setStreams reads a number, or knee.
func (it *Item) setStreams(t string) error {
	if t == "knee" {
		it.Streams = 0
		return nil
	}
	return integer(&it.Streams, 1, plan.MaxStreams)(t)
}

// repeats reports that the item is TCP's throughput, of whose rounds the median counts.
func (it *Item) repeats() bool {
	return slices.Contains([]Kind{TCPSingle, TCPMulti, TCPBoth}, it.Kind)
}

func integer(to *int, least, most int) func(string) error {
	return func(t string) error {
		v, err := strconv.Atoi(t)
		if err != nil || v < least || v > most {
			return fmt.Errorf("%q: must be a whole number, %d to %d", t, least, most)
		}
		*to = v
		return nil
	}
}

func lasting(to *time.Duration, least, most time.Duration) func(string) error {
	return func(t string) error {
		v, err := units.ParseDuration(t)
		if err == nil && (v < least || v > most) {
			err = fmt.Errorf("%q: must be %s to %s", t, units.FormatDuration(least), units.FormatDuration(most))
		}
		*to = v
		return err
	}
}

// faults are those of the whole: what several items say together.
func (s *Suite) faults(where string) (errs []error) {
	seen := map[string]bool{}
	for i := range s.Items {
		it := &s.Items[i]
		if seen[it.ID] {
			errs = append(errs, fmt.Errorf("%s: item %s is there twice: give one of them an id of its own", where, it.ID))
		}
		for _, d := range it.Demands {
			switch {
			case d.Of == "" || d.Of == "ideal" || d.Of == "link":
			case !seen[d.Of]:
				if it.Kind == TCPBoth && d.Of == "A2" && s.find(TCPMulti) == nil {
					errs = append(errs, fmt.Errorf("%s: item %s is a share of A2, which is not measured: add tcp-multi, or give a limit of its own", where, it.ID))
					break
				}
				errs = append(errs, fmt.Errorf("%s: item %s, %s: there is no item %q before it, nor is it \"ideal\" or \"link\"", where, it.ID, d.Figure, d.Of))
			}
		}
		seen[it.ID] = true
	}
	return errs
}

// Validate reports every fault of a suite that is to be measured.
func (s *Suite) Validate() error {
	errs := s.faults("suite")
	if s.Link <= 0 {
		errs = append(errs, errors.New("the link's speed is not known: the interface does not tell one, and none was given"))
	} else if s.Link < 64000 {
		errs = append(errs, fmt.Errorf("link: %s: must be at least 64 kbit/s", s.Link))
	}
	if s.MTU != 0 && (s.MTU < 576 || s.MTU > 65535) {
		errs = append(errs, fmt.Errorf("mtu: %d: must be 576 to 65535", s.MTU))
	}
	return errors.Join(errs...)
}

// Override puts options of the command line into the TCP items; 0 and "" leave the suite's.
func (s *Suite) Override(streams int, window int64, cc string) {
	for i := range s.Items {
		it := &s.Items[i]
		if !slices.Contains([]Kind{TCPSingle, TCPMulti, TCPBoth, Latency}, it.Kind) {
			continue
		}
		if streams > 0 && it.Kind != TCPSingle {
			it.Streams = streams
		}
		if window > 0 {
			it.Window = window
		}
		if cc != "" {
			it.Congestion = cc
		}
	}
}

// SetRounds gives the TCP items so many rounds, or (auto) as many as their throughput takes to settle;
// 0 leaves the suite's.
func (s *Suite) SetRounds(n int, auto bool) {
	for i := range s.Items {
		if it := &s.Items[i]; (n > 0 || auto) && it.repeats() {
			it.Rounds, it.Auto = max(n, 1), auto
		}
	}
}

// Searches reports that the suite searches for a loss-free rate.
func (s *Suite) Searches() bool { return s.find(LossFree) != nil }

// Spell prints a figure with its unit, as the reasons do.
func Spell(unit string, v float64) string { return spell(unit, v) }
