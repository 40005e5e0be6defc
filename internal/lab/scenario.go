package lab

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/fullbore-net/fullbore/internal/lab/forward"
	"github.com/fullbore-net/fullbore/internal/lab/link"
	"github.com/fullbore-net/fullbore/internal/strictyaml"
	"github.com/fullbore-net/fullbore/internal/units"
)

// The topologies that a scenario can name.
const (
	TopologyPair   = "pair"   // NewPair
	TopologyRouted = "routed" // NewRouted
	TopologyLink   = "link"   // NewLink
	TopologySplit  = "split"  // NewSplit
)

// Scenario is a path, commands and what must be said. internal/lab/README.md describes the file.
type Scenario struct {
	Name     string
	Topology string
	CC       string         // congestion control of both ends; always given
	Path     forward.Config // of TopologyLink
	// Hosts are settings of the ends and the router, by "client", "server", "router".
	Hosts map[string]HostSettings
	// Devices are settings by device name: va, vb, ra, rb; ta, tb of a link.
	Devices map[string]DeviceSettings
	// Server and Client are command lines. A first word "fullbore" is the program under
	// test. $SERVER, $SERVER6, $CLIENT and $CLIENT6 are the ends' addresses. Server may be
	// empty: then there is none.
	Server, Client []string
	// Timeout is how long the client may take; one minute if the file says nothing.
	Timeout time.Duration
	Pauses  []Pause
	Traffic []Traffic
	// Facts is a file or folder with recorded host facts, what a lab cannot make, for
	// $FACTS in the commands: relative to the scenario's file as it is written there, and
	// from where the program runs once the file is loaded. "" = none.
	Facts string
	// Fit are sentences about the client's JSON without which a play does not count: what
	// the program says of the machine, not of the path.
	Fit    []*Assertion
	Expect Expect
}

// Pause stops a program (SIGSTOP) for a while: what it does not read then waits in its
// kernel, or is lost there.
type Pause struct {
	Who     string        // "client" or "server"
	At, For time.Duration // from the client's start
}

// HostSettings are applied before the commands start.
type HostSettings struct {
	Sysctl map[string]string
	NFT    string // rules in nft(8)'s language
	Hosts  []string
	// CPU is how many processors' worth of time its programs get; 0: no limit.
	CPU float64
	// Busy are processors that something else on the host keeps busy.
	Busy []int
}

// DeviceSettings are applied before the commands start. Zero leaves things as they are.
type DeviceSettings struct {
	MTU       int
	TBF       *TBF
	Addresses []string // further ones, with prefix length
}

// TBF is a token bucket filter (tc-tbf(8)). On a sender's own device it pushes back,
// so that the socket waits; on a router it drops.
type TBF struct {
	BitsPerSecond int64
	BurstBytes    int
	// Latency is how long a packet may wait; with the rate and the burst it gives the
	// length of the queue.
	Latency time.Duration
}

// Expect is what must be said. Everything must hold.
type Expect struct {
	Exit    *int // the client's exit code; always given
	Client  OutputExpect
	Server  OutputExpect
	Goodput []GoodputExpect
	UDP     []UDPExpect
	NFT     []NFTExpect
	SNMP    []SNMPExpect
	// Retransmits are claims about TCP, against what came to the link.
	Retransmits []RetransmitExpect
	// Truth is what must be true of the path and the machine themselves, that the scenario
	// is about what it claims to be about: sentences about Play.Truth.
	Truth []*Assertion
	// Diagnosis are claims about the verdicts of the client's document.
	Diagnosis []DiagnosisExpect
}

// OutputExpect is about one program's output.
type OutputExpect struct {
	JSON        []*Assertion // about the last JSON document on stdout
	Stdout      []string     // texts that must be there
	Stderr      []string
	StdoutLacks []string // texts that must not be there
	StderrLacks []string
}

// GoodputExpect compares a claimed number of payload bytes with the truth: those whose
// first copies left the link towards the receiver in the window that is claimed for
// them, and before which nothing was missing. What arrived behind a hole waits in the
// receiver's kernel and cannot have been read; at 500 Mbit/s and 80 ms that can be
// megabytes. Of UDP it is the payload of the datagrams that left for the first time.
type GoodputExpect struct {
	Direction string // "up" or "down"
	Transport string // "tcp" or "udp"
	Document  string // whose JSON: "client" or "server"
	// Paths into that document: the bytes, the window's bounds in seconds, and the
	// CLOCK_MONOTONIC reading in ns at which these seconds begin.
	Bytes, Start, End, Zero Path
	Tolerance               float64 // of the truth, 0.005 = 0.5 %
}

const defaultTimeout = time.Minute

// maxTimeout bounds a scenario, as one that hangs stops all that follow.
const maxTimeout = time.Hour

// LoadScenario reads a scenario file.
func LoadScenario(path string) (*Scenario, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("lab: read scenario: %w", err)
	}
	s, err := ParseScenario(filepath.Base(path), text)
	if err != nil || s.Facts == "" {
		return s, err
	}
	s.Facts = filepath.Join(filepath.Dir(path), s.Facts)
	if _, err := os.Stat(s.Facts); err != nil {
		return nil, fmt.Errorf("lab: %s: facts: %w", filepath.Base(path), err)
	}
	return s, nil
}

// ParseScenario reads a scenario; file names it in errors. Every fault is reported, with
// its line.
func ParseScenario(file string, text []byte) (*Scenario, error) {
	r := &reader{strictyaml.New(file)}
	s := &Scenario{Timeout: defaultTimeout}
	p := &pathText{mtu: 1500}
	r.Document(text, map[string]handler{
		"name":     r.Text(&s.Name),
		"topology": r.oneOf(&s.Topology, TopologyPair, TopologyRouted, TopologyLink, TopologySplit),
		"cc":       r.Text(&s.CC),
		"path":     func(n ast.Node, at string) { p.read(r, n, at) },
		"hosts":    s.readHosts(r),
		"devices":  s.readDevices(r),
		"server":   r.command(&s.Server),
		"client":   r.command(&s.Client),
		"timeout":  r.duration(&s.Timeout, time.Second, maxTimeout),
		"pause":    func(n ast.Node, at string) { r.Sequence(n, at, s.readPause(r)) },
		"traffic":  func(n ast.Node, at string) { r.Sequence(n, at, s.readTraffic(r)) },
		"facts":    r.Text(&s.Facts),
		"fit":      r.assertions(&s.Fit),
		"expect":   func(n ast.Node, at string) { s.Expect.read(r, n, at) },
	})
	if r.Found() {
		s.check(r)
	}
	if r.Given("path") {
		s.Path = p.config(r)
	}
	if r.Failed() {
		return nil, r.Err()
	}
	s.Path.Truth = len(s.Expect.Goodput)+len(s.Expect.UDP)+len(s.Expect.Truth)+len(s.Expect.Retransmits) > 0
	return s, nil
}

// check finds what no single key can show.
func (s *Scenario) check(r *reader) {
	r.require(nil, "", "name", "topology", "client", "expect")
	if r.Given("expect") {
		r.require(nil, "expect", "exit")
	}
	if !r.Given("cc") {
		r.Fail(nil, "cc", "is missing: the system's default congestion control may hide loss and queues, so a scenario fixes it")
	}
	if used := slices.ContainsFunc(slices.Concat(s.Server, s.Client), func(w string) bool { return strings.Contains(w, "$FACTS") }); used != (s.Facts != "") {
		r.Fail(nil, "facts", "facts and $FACTS go together: the one names the file, the other hands it to a program")
	}
	if len(s.Server) == 0 && !r.Given("server") && s.Expect.Server.any() {
		r.Fail(nil, "expect.server", "there is no server")
	}
	names, known := deviceNames[s.Topology]
	if !known {
		return // what follows depends on it
	}
	switch isLink := s.emulated(); {
	case isLink && !r.Given("path"):
		r.Fail(nil, "path", "is missing: an emulated link needs it")
	case !isLink && r.Given("path"):
		r.Fail(nil, "path", "belongs to topologies link and split only")
	case !isLink && r.Given("expect.goodput"):
		r.Fail(nil, "expect.goodput", "belongs to topologies link and split only: nothing else knows the truth")
	case !isLink && r.Given("expect.retransmits"):
		r.Fail(nil, "expect.retransmits", "belongs to topologies link and split only: nothing else knows the truth")
	case !isLink && r.Given("expect.udp"):
		r.Fail(nil, "expect.udp", "belongs to topologies link and split only: nothing else knows the truth")
	}
	s.checkHosts(r)
	if len(s.Server) == 0 && slices.ContainsFunc(s.Pauses, func(p Pause) bool { return p.Who == "server" }) {
		r.Fail(nil, "pause", "there is no server")
	}
	if r.Given("hosts.router") && !s.hasRouter() {
		r.Fail(nil, "hosts.router", "topology %s has no router", s.Topology)
	}
	for _, d := range slices.Sorted(maps.Keys(s.Devices)) {
		if !slices.Contains(names, d) {
			r.Fail(nil, "devices."+d, "topology %s has no such device; there are: %s", s.Topology, strings.Join(names, ", "))
		}
	}
}

// emulated reports whether the path has an emulated link.
func (s *Scenario) emulated() bool { return s.Topology == TopologyLink || s.Topology == TopologySplit }

// hasRouter reports whether there is a host between the ends.
func (s *Scenario) hasRouter() bool {
	return s.Topology == TopologyRouted || s.Topology == TopologySplit
}

// require reports each key that is not in the mapping at a path.
func (r *reader) require(n ast.Node, at string, keys ...string) {
	for _, k := range keys {
		if at != "" {
			k = at + "." + k
		}
		if !r.Given(k) {
			r.Fail(n, k, "is missing")
		}
	}
}

var deviceNames = map[string][]string{
	TopologyPair:   {"va", "vb"},
	TopologyRouted: {"va", "ra", "rb", "vb"},
	TopologyLink:   {"ta", "tb"},
	TopologySplit:  {"va", "vm", "ta", "tb"},
}

// placeholders may stand in commands.
var placeholders = []string{"$SERVER", "$SERVER6", "$CLIENT", "$CLIENT6", "$FACTS"}

// command reads a command line: a list of words, or one text that is split at blanks.
func (r *reader) command(to *[]string) handler {
	return func(n ast.Node, at string) {
		if text, ok := strictyaml.Scalar(n); ok {
			*to = strings.Fields(text)
		} else {
			r.Texts(to)(n, at)
		}
		if len(*to) == 0 {
			r.Fail(n, at, "is empty")
		}
		for _, w := range *to {
			os.Expand(w, func(name string) string {
				if !slices.Contains(placeholders, "$"+name) {
					r.Fail(n, at, "unknown placeholder $%s; there are: %s", name, strings.Join(placeholders, ", "))
				}
				return ""
			})
		}
	}
}

func (r *reader) oneOf(to *string, words ...string) handler {
	return r.Value(func(s string) error {
		if !slices.Contains(words, s) {
			return fmt.Errorf("%q is none of: %s", s, strings.Join(words, ", "))
		}
		*to = s
		return nil
	})
}

func (r *reader) duration(to *time.Duration, least, most time.Duration) handler {
	return r.Value(func(s string) error {
		d, err := units.ParseDuration(s)
		if err != nil {
			return err
		}
		if d < least || d > most {
			return fmt.Errorf("%s is outside %v..%v", s, least, most)
		}
		*to = d
		return nil
	})
}

func (r *reader) rate(to *int64) handler {
	return r.Value(func(s string) error {
		v, err := units.ParseRate(s)
		if err != nil {
			return err
		}
		if v <= 0 || int64(v) > link.MaxBitsPerSecond {
			return fmt.Errorf("rate %s is outside 1..%d bit/s", s, int64(link.MaxBitsPerSecond))
		}
		*to = int64(v)
		return nil
	})
}

func (r *reader) size(to *int) handler {
	return r.Value(func(s string) error {
		v, err := units.ParseSize(s)
		if err == nil && (v <= 0 || v > 1<<30) {
			err = fmt.Errorf("size %s is outside 1..%d bytes", s, 1<<30)
		}
		*to = int(v)
		return err
	})
}

func (r *reader) integer(to *int, least, most int) handler {
	return r.Value(func(s string) error {
		v, err := strconv.Atoi(s)
		if err != nil || v < least || v > most {
			return fmt.Errorf("%q is not a whole number from %d to %d", s, least, most)
		}
		*to = v
		return nil
	})
}

// percent reads "0.5%" as 0.005.
func (r *reader) percent(to *float64) handler { return parsed(r, to, parsePercent) }

// percentOf reads a share of a processor, "250%" as 2.5, from 1 % to most processors.
func (r *reader) percentOf(to *float64, most float64) handler {
	return r.Value(func(s string) error {
		number, ok := strings.CutSuffix(strings.TrimSpace(s), "%")
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if !ok || err != nil || !(v >= 1 && v <= 100*most) {
			return fmt.Errorf("%q is not a share of a processor from 1%% to %g%%", s, 100*most)
		}
		*to = v / 100
		return nil
	})
}

func (s *Scenario) readPause(r *reader) handler {
	return func(n ast.Node, at string) {
		var p Pause
		r.Mapping(n, at, map[string]handler{
			"who": r.oneOf(&p.Who, "client", "server"),
			"at":  r.duration(&p.At, 0, maxTimeout),
			"for": r.duration(&p.For, time.Millisecond, maxTimeout),
		})
		r.require(n, at, "who", "at", "for")
		s.Pauses = append(s.Pauses, p)
	}
}

func (s *Scenario) readHosts(r *reader) handler {
	one := func(role string) handler {
		return func(n ast.Node, at string) {
			h := HostSettings{Sysctl: map[string]string{}}
			r.Mapping(n, at, map[string]handler{
				"sysctl": func(n ast.Node, at string) {
					r.Pairs(n, at, func(key string, v ast.Node, at string) {
						var value string
						r.Text(&value)(v, at)
						if key == "net.ipv4.tcp_congestion_control" {
							r.Fail(v, at, "is what cc is for")
						}
						h.Sysctl[key] = value
					})
				},
				"nft":   r.Text(&h.NFT),
				"hosts": r.Texts(&h.Hosts),
				"cpu":   r.percentOf(&h.CPU, 100),
				"busy": func(n ast.Node, at string) {
					r.Sequence(n, at, func(n ast.Node, at string) {
						cpu := 0
						r.integer(&cpu, 0, 1023)(n, at)
						h.Busy = append(h.Busy, cpu)
					})
				},
			})
			if s.Hosts == nil {
				s.Hosts = map[string]HostSettings{}
			}
			s.Hosts[role] = h
		}
	}
	return func(n ast.Node, at string) {
		r.Mapping(n, at, map[string]handler{"client": one("client"), "server": one("server"), "router": one("router")})
	}
}

func (s *Scenario) readDevices(r *reader) handler {
	return func(n ast.Node, at string) {
		s.Devices = map[string]DeviceSettings{}
		r.Pairs(n, at, func(key string, v ast.Node, at string) {
			var d DeviceSettings
			r.Mapping(v, at, map[string]handler{
				"mtu":       r.integer(&d.MTU, 68, link.MaxPacket),
				"addresses": r.Texts(&d.Addresses),
				"tbf": func(n ast.Node, at string) {
					d.TBF = &TBF{}
					r.Mapping(n, at, map[string]handler{
						"rate":    r.rate(&d.TBF.BitsPerSecond),
						"burst":   r.size(&d.TBF.BurstBytes),
						"latency": r.duration(&d.TBF.Latency, 0, time.Minute),
					})
					r.require(n, at, "rate", "burst", "latency")
				},
			})
			s.Devices[key] = d
		})
	}
}

func (e *Expect) read(r *reader, n ast.Node, at string) {
	fields := e.Client.fields(r)
	fields["exit"] = func(n ast.Node, at string) {
		e.Exit = new(int)
		r.integer(e.Exit, 0, 255)(n, at)
	}
	fields["server"] = func(n ast.Node, at string) { r.Mapping(n, at, e.Server.fields(r)) }
	fields["goodput"] = func(n ast.Node, at string) {
		r.Sequence(n, at, func(n ast.Node, at string) { e.Goodput = append(e.Goodput, readGoodput(r, n, at)) })
	}
	fields["udp"] = func(n ast.Node, at string) {
		r.Sequence(n, at, func(n ast.Node, at string) { e.UDP = append(e.UDP, readUDPExpect(r, n, at)) })
	}
	fields["nft"] = func(n ast.Node, at string) {
		r.Sequence(n, at, func(n ast.Node, at string) { e.NFT = append(e.NFT, readNFTExpect(r, n, at)) })
	}
	fields["diagnosis"] = func(n ast.Node, at string) {
		r.Sequence(n, at, func(n ast.Node, at string) { e.Diagnosis = append(e.Diagnosis, readDiagnosis(r, n, at)) })
	}
	fields["retransmits"] = func(n ast.Node, at string) {
		r.Sequence(n, at, func(n ast.Node, at string) { e.Retransmits = append(e.Retransmits, readRetransmitExpect(r, n, at)) })
	}
	fields["snmp"] = func(n ast.Node, at string) {
		r.Sequence(n, at, func(n ast.Node, at string) { e.SNMP = append(e.SNMP, readSNMPExpect(r, n, at)) })
	}
	fields["truth"] = r.assertions(&e.Truth)
	r.Mapping(n, at, fields)
}

func (o *OutputExpect) fields(r *reader) map[string]handler {
	return map[string]handler{
		"json":         r.assertions(&o.JSON),
		"stdout":       r.Texts(&o.Stdout),
		"stderr":       r.Texts(&o.Stderr),
		"stdout_lacks": r.Texts(&o.StdoutLacks),
		"stderr_lacks": r.Texts(&o.StderrLacks),
	}
}

func (r *reader) assertions(to *[]*Assertion) handler {
	return func(n ast.Node, at string) {
		r.Sequence(n, at, r.Value(func(s string) error {
			a, err := ParseAssertion(s)
			*to = append(*to, a)
			return err
		}))
	}
}

func (o *OutputExpect) any() bool {
	return len(o.JSON)+len(o.Stdout)+len(o.Stderr)+len(o.StdoutLacks)+len(o.StderrLacks) > 0
}

func readGoodput(r *reader, n ast.Node, at string) GoodputExpect {
	g := GoodputExpect{Document: "client", Transport: "tcp"}
	r.Mapping(n, at, map[string]handler{
		"direction": r.oneOf(&g.Direction, directionName[:]...),
		"transport": r.oneOf(&g.Transport, "tcp", "udp"),
		"document":  r.oneOf(&g.Document, "client", "server"),
		"bytes":     parsed(r, &g.Bytes, ParsePath),
		"start":     parsed(r, &g.Start, ParsePath),
		"end":       parsed(r, &g.End, ParsePath),
		"zero":      parsed(r, &g.Zero, ParsePath),
		"tolerance": r.percent(&g.Tolerance),
	})
	r.require(n, at, "direction", "bytes", "start", "end", "zero", "tolerance")
	return g
}
