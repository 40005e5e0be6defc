package lab

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/fullbore-net/fullbore/internal/lab/truth"
)

// UDPExpect compares claims about datagrams with what the link did to them. A path that
// is nil claims nothing.
type UDPExpect struct {
	Direction string // "up" or "down"
	Document  string // whose JSON: "client" or "server"
	Stream    int    // one flow, from 0 in order of the first datagram; −1: all of them
	// Datagrams offered to the link, left it (copies not counted), were lost by it, left
	// it again, left it after a later one; and the greatest extent of that.
	Sent, Received, Lost, Duplicates, Reordered, Extent Path
	Slack                                               int64 // by how much these may be off
	// Delay variation in seconds, and by how much it may be off.
	PDV50, PDV95, PDV99 Path
	Within              time.Duration
}

// defaultWithin is UDPExpect.Within of a file that says nothing.
const defaultWithin = 200 * time.Microsecond

// NFTExpect compares a claim with the counter of a rule.
type NFTExpect struct {
	Host     string // "client", "server" or "router"
	Counter  string // its name, or the comment of its rule
	Document string
	Claim    Path
	// Payload, when not 0, is that of each datagram: as many are counted as fit into the
	// counter's bytes less Headers a packet. With segmentation or coalescing one packet of
	// nft's is many datagrams.
	Payload, Headers int
	Slack            int64
}

// SNMPExpect compares a claim with by how much a counter of the kernel's grew during the
// play, in the host's namespace.
type SNMPExpect struct {
	Host      string
	Counter   string // as Namespace.Counters has it: Udp.RcvbufErrors
	Document  string
	Claim     Path
	Tolerance float64 // of the truth, 0.02 = 2 %
	Slack     int64   // and by so many it may be off besides
	Least     int64   // the truth itself must be at least so much
	Window    Window  // of the claim
}

// Window is the time that a claim is about, where it is not the whole play: Start and End are in
// seconds from Zero, a time of CLOCK_MONOTONIC in ns; all three are in the claim's document. Without
// one (nil) the truth is that of the whole play. A sender of NTTTCP counts until the end of its
// time, when the last of its bytes are not through yet.
type Window struct{ Start, End, Zero Path }

func (w *Window) given() bool { return w.Start != nil }

func (w *Window) fields(r *reader, to map[string]handler) {
	to["start"], to["end"], to["zero"] = parsed(r, &w.Start, ParsePath), parsed(r, &w.End, ParsePath), parsed(r, &w.Zero, ParsePath)
}

// check finds a window that is not whole.
func (w *Window) check(r *reader, n ast.Node, at string) {
	if w.Start != nil || w.End != nil || w.Zero != nil {
		r.require(n, at, "start", "end", "zero")
	}
}

// of puts w on CLOCK_MONOTONIC.
func (w *Window) of(p *Play, document string) (t0, t1 time.Duration, err error) {
	var v [3]float64
	for i, path := range []Path{w.Start, w.End, w.Zero} {
		if v[i], err = claimed(p, document, path); err != nil {
			return 0, 0, err
		}
	}
	t0, t1 = window(v[0], v[1], v[2])
	if t1 <= t0 {
		return 0, 0, fmt.Errorf("the window from %v to %v s is empty", v[0], v[1])
	}
	return t0, t1, nil
}

// Sample is a counter of the kernel's at a time of CLOCK_MONOTONIC.
type Sample struct {
	At    time.Duration
	Value int64
}

// grownBetween is by how much a counter grew from t0 to t1, as far as its samples are close.
func grownBetween(samples []Sample, t0, t1 time.Duration) int64 {
	at := func(t time.Duration) int64 {
		i, found := slices.BinarySearchFunc(samples, t, func(s Sample, t time.Duration) int { return cmp.Compare(s.At, t) })
		if !found && i > 0 {
			i--
		}
		return samples[i].Value
	}
	return at(t1) - at(t0)
}

func (r *reader) hostName(to *string) handler { return r.oneOf(to, "client", "server", "router") }

func readUDPExpect(r *reader, n ast.Node, at string) UDPExpect {
	u := UDPExpect{Document: "client", Stream: -1, Within: defaultWithin}
	slack := 0
	claims := map[string]handler{
		"sent":       parsed(r, &u.Sent, ParsePath),
		"received":   parsed(r, &u.Received, ParsePath),
		"lost":       parsed(r, &u.Lost, ParsePath),
		"duplicates": parsed(r, &u.Duplicates, ParsePath),
		"reordered":  parsed(r, &u.Reordered, ParsePath),
		"extent":     parsed(r, &u.Extent, ParsePath),
		"pdv_p50":    parsed(r, &u.PDV50, ParsePath),
		"pdv_p95":    parsed(r, &u.PDV95, ParsePath),
		"pdv_p99":    parsed(r, &u.PDV99, ParsePath),
	}
	fields := map[string]handler{
		"direction": r.oneOf(&u.Direction, directionName[:]...),
		"document":  r.oneOf(&u.Document, "client", "server"),
		"stream":    r.integer(&u.Stream, 0, math.MaxInt32),
		"slack":     r.integer(&slack, 0, math.MaxInt32),
		"within":    r.duration(&u.Within, 0, time.Second),
	}
	claimed := false
	for k, h := range claims {
		fields[k] = func(n ast.Node, at string) {
			claimed = true
			h(n, at)
		}
	}
	r.Mapping(n, at, fields)
	r.require(n, at, "direction")
	if !claimed {
		r.Fail(n, at, "claims nothing")
	}
	u.Slack = int64(slack)
	return u
}

func readNFTExpect(r *reader, n ast.Node, at string) NFTExpect {
	e := NFTExpect{Document: "client", Headers: 28}
	slack := 0
	r.Mapping(n, at, map[string]handler{
		"host":     r.hostName(&e.Host),
		"counter":  r.Text(&e.Counter),
		"document": r.oneOf(&e.Document, "client", "server"),
		"claim":    parsed(r, &e.Claim, ParsePath),
		"payload":  r.integer(&e.Payload, 1, 65507),
		"headers":  r.integer(&e.Headers, 28, 200),
		"slack":    r.integer(&slack, 0, math.MaxInt32),
	})
	r.require(n, at, "host", "counter", "claim")
	e.Slack = int64(slack)
	return e
}

func readSNMPExpect(r *reader, n ast.Node, at string) SNMPExpect {
	e := SNMPExpect{Document: "client"}
	slack, least := 0, 0
	fields := map[string]handler{
		"host":      r.hostName(&e.Host),
		"counter":   r.Text(&e.Counter),
		"document":  r.oneOf(&e.Document, "client", "server"),
		"claim":     parsed(r, &e.Claim, ParsePath),
		"tolerance": r.percent(&e.Tolerance),
		"slack":     r.integer(&slack, 0, math.MaxInt32),
		"least":     r.integer(&least, 0, math.MaxInt32),
	}
	e.Window.fields(r, fields)
	r.Mapping(n, at, fields)
	e.Window.check(r, n, at)
	r.require(n, at, "host", "counter", "claim", "tolerance")
	e.Slack, e.Least = int64(slack), int64(least)
	return e
}

// checkHosts finds counters of hosts that are not there.
func (s *Scenario) checkHosts(r *reader) {
	var hosts []string
	for _, e := range s.Expect.NFT {
		hosts = append(hosts, e.Host)
	}
	for _, e := range s.Expect.SNMP {
		hosts = append(hosts, e.Host)
	}
	if slices.Contains(hosts, "router") && !s.hasRouter() {
		r.Fail(nil, "expect", "topology %s has no router whose counters could be read", s.Topology)
	}
}

// document returns the last JSON document of the client or the server.
func (p *Play) document(who string) (any, error) {
	text := p.Client.Stdout
	if who == "server" {
		text = p.Server.Stdout
	}
	doc, err := lastDocument(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", who, err)
	}
	return doc, nil
}

// judgeCounts returns what is not as expected of datagrams and counters.
func (e *Expect) judgeCounts(p *Play) (reasons []string) {
	for i := range e.UDP {
		for _, why := range e.UDP[i].judge(p) {
			reasons = append(reasons, fmt.Sprintf("udp %s: %s", e.UDP[i].Direction, why))
		}
	}
	for i := range e.NFT {
		if err := e.NFT[i].judge(p, i); err != nil {
			reasons = append(reasons, fmt.Sprintf("nft %s of the %s: %v", e.NFT[i].Counter, e.NFT[i].Host, err))
		}
	}
	for i := range e.Retransmits {
		if err := e.Retransmits[i].judge(p); err != nil {
			reasons = append(reasons, fmt.Sprintf("retransmits %s: %v", e.Retransmits[i].Direction, err))
		}
	}
	for i := range e.SNMP {
		if err := e.SNMP[i].judge(p, i); err != nil {
			reasons = append(reasons, fmt.Sprintf("%s of the %s: %v", e.SNMP[i].Counter, e.SNMP[i].Host, err))
		}
	}
	return reasons
}

// flows returns the flows that u is about.
func (u *UDPExpect) flows(p *Play) ([]truth.Datagrams, error) {
	d := &p.Link.Directions[slices.Index(directionName[:], u.Direction)]
	flows := d.Datagrams
	switch {
	case d.Fragments > 0:
		return nil, fmt.Errorf("%d fragments of larger datagrams were on the link, which it cannot tell apart", d.Fragments)
	case u.Stream >= len(flows):
		return nil, fmt.Errorf("stream %d of %d on the link", u.Stream, len(flows))
	case len(flows) == 0:
		return nil, errors.New("no datagram was on the link")
	case u.Stream >= 0:
		flows = flows[u.Stream : u.Stream+1]
	}
	return flows, nil
}

// judge compares the claims with the truth.
func (u *UDPExpect) judge(p *Play) (reasons []string) {
	flows, err := u.flows(p)
	if err != nil {
		return []string{err.Error()}
	}
	doc, err := p.document(u.Document)
	if err != nil {
		return []string{err.Error()}
	}
	var in, lost int64
	var a truth.Arrivals
	for i := range flows {
		one := flows[i].Arrivals()
		in, lost = in+flows[i].In, lost+flows[i].Lost
		a.Distinct += one.Distinct
		a.Duplicates += one.Duplicates
		a.Reordered += one.Reordered
		a.OnTheWay += one.OnTheWay
		a.MaxExtent = max(a.MaxExtent, one.MaxExtent)
	}
	if a.OnTheWay > 0 {
		reasons = append(reasons, fmt.Sprintf("%d datagrams were still on the link when both programs had ended", a.OnTheWay))
	}
	for _, c := range []struct {
		name  string
		path  Path
		truth int64
	}{
		{"sent", u.Sent, in},
		{"received", u.Received, a.Distinct},
		{"lost", u.Lost, lost},
		{"duplicates", u.Duplicates, a.Duplicates},
		{"reordered", u.Reordered, a.Reordered},
		{"extent", u.Extent, a.MaxExtent},
	} {
		if c.path == nil {
			continue
		}
		claim, err := c.path.number(doc)
		if err != nil {
			reasons = append(reasons, fmt.Sprintf("%s: %s: %v", c.name, u.Document, err))
		} else if math.Abs(claim-float64(c.truth)) > float64(u.Slack) {
			reasons = append(reasons, fmt.Sprintf("claimed %.0f %s, the link's count is %d%s", claim, c.name, c.truth, tolerated(u.Slack)))
		}
	}
	return append(reasons, u.judgePDV(doc, truth.PDV(flows))...)
}

func tolerated(slack int64) string {
	if slack == 0 {
		return ""
	}
	return fmt.Sprintf(" (± %d)", slack)
}

func (u *UDPExpect) judgePDV(doc any, pdv []time.Duration) (reasons []string) {
	for _, c := range []struct {
		name string
		path Path
		q    float64
	}{{"p50", u.PDV50, 0.50}, {"p95", u.PDV95, 0.95}, {"p99", u.PDV99, 0.99}} {
		if c.path == nil {
			continue
		}
		claim, err := c.path.number(doc)
		switch {
		case err != nil:
			reasons = append(reasons, fmt.Sprintf("delay variation %s: %s: %v", c.name, u.Document, err))
		case len(pdv) == 0:
			reasons = append(reasons, fmt.Sprintf("delay variation %s: nothing left the link", c.name))
		default:
			real := truth.Quantile(pdv, c.q)
			if off := time.Duration(claim*1e9) - real; off.Abs() > u.Within {
				reasons = append(reasons, fmt.Sprintf("claimed delay variation %s %.3f ms, the link's log has %.3f ms: off by %v, want within %v",
					c.name, claim*1e3, real.Seconds()*1e3, off.Round(time.Microsecond), u.Within))
			}
		}
	}
	return reasons
}

// datagrams is what the rule counted.
func (e *NFTExpect) datagrams(packets, bytes int64) (int64, error) {
	if e.Payload == 0 {
		return packets, nil
	}
	payload := bytes - packets*int64(e.Headers)
	if payload%int64(e.Payload) != 0 {
		return 0, fmt.Errorf("%d bytes in %d packets are not headers of %d bytes and datagrams of %d", bytes, packets, e.Headers, e.Payload)
	}
	return payload / int64(e.Payload), nil
}

func (e *NFTExpect) judge(p *Play, i int) error {
	counted, err := e.datagrams(p.NFT[i].Packets, p.NFT[i].Bytes)
	if err != nil {
		return err
	}
	claim, err := claimed(p, e.Document, e.Claim)
	if err != nil {
		return err
	}
	if math.Abs(claim-float64(counted)) > float64(e.Slack) {
		return fmt.Errorf("claimed %.0f, the rule counted %d%s", claim, counted, tolerated(e.Slack))
	}
	return nil
}

func (e *SNMPExpect) judge(p *Play, i int) error {
	real := p.SNMP[i]
	if e.Window.given() {
		t0, t1, err := e.Window.of(p, e.Document)
		if err != nil {
			return err
		}
		if len(p.Sampled[i]) == 0 {
			return errors.New("was not sampled")
		}
		real = grownBetween(p.Sampled[i], t0, t1)
	}
	if real < e.Least {
		return fmt.Errorf("grew by %d, which is less than the %d that there should be", real, e.Least)
	}
	claim, err := claimed(p, e.Document, e.Claim)
	if err != nil {
		return err
	}
	if math.Abs(claim-float64(real)) > e.Tolerance*float64(real)+float64(e.Slack) {
		return fmt.Errorf("claimed %.0f, it grew by %d (want within %g %%%s)", claim, real, 100*e.Tolerance, more(e.Slack))
	}
	return nil
}

func more(slack int64) string {
	if slack == 0 {
		return ""
	}
	return fmt.Sprintf(" + %d", slack)
}

func claimed(p *Play, document string, path Path) (float64, error) {
	doc, err := p.document(document)
	if err != nil {
		return 0, err
	}
	v, err := path.number(doc)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", document, err)
	}
	return v, nil
}
