package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fullbore-net/fullbore/internal/lab/forward"
	"github.com/fullbore-net/fullbore/internal/lab/link"
)

// everything uses each key once.
const everything = `# a comment
name: all there is
topology: link
cc: cubic
path:
  mtu: 9000
  seed: 18446744073709551614
  up:
    rate: 200M
    delay: 14ms
    queue: 700kB
    loss: 0.5%
    jitter: 0-4ms
    keep_order: true
    reorder: 1%/3
    duplicate: 2%
    bursts: {p: 0.1%, r: 30%}
    outage: {at: 2s, for: 300ms, from: start}
    hole: 1400
    faults_on: datagrams
  down: {rate: 2 Gbit/s, delay: 1.5ms, queue: 100 packets, reorder: 3%/5ms, outage: {at: 1s, for: 1ms, from: first packet}, faults_on: everything}
hosts:
  client:
    sysctl:
      net.ipv4.tcp_rmem: 4096 131072 6291456
    hosts: [10.77.0.2 far, fd77::2 far]
  server:
    nft: |
      add table inet t
devices:
  ta: {mtu: 9000, addresses: [10.77.0.11/24]}
  tb:
    tbf: {rate: 2mbit, burst: 16K, latency: 50ms}
server: [fullbore, serve, -p, 010]
client: fullbore test $SERVER --time 4s
timeout: 30s
pause:
  - {who: server, at: 1s, for: 300ms}
  - {who: client, at: 1500ms, for: 10ms}
fit: [unsent == 0]
expect:
  exit: 1
  json:
    - sums[0].direction == "up"
  stdout: ["a: b"]
  stderr: [yes]
  stdout_lacks: [x]
  stderr_lacks: [y]
  server:
    json: [a exists]
    stdout: [s]
  goodput:
    - {direction: up, document: server, bytes: 'a[0].b', start: s, end: e, zero: z, tolerance: 0.5%}
    - {direction: down, transport: udp, bytes: b, start: s, end: e, zero: z, tolerance: 1%}
  udp:
    - direction: up
      document: server
      stream: 2
      sent: a
      received: b
      lost: c
      duplicates: d
      reordered: e
      extent: f
      slack: 3
      pdv_p50: g
      pdv_p95: h
      pdv_p99: i
      within: 1ms
    - {direction: down, lost: l}
  nft:
    - {host: client, counter: dropped, document: server, claim: c, payload: 1400, headers: 48, slack: 1}
    - {host: server, counter: dropped, claim: c}
  snmp:
    - {host: server, counter: Udp.RcvbufErrors, document: server, claim: c, tolerance: 2%, slack: 3, least: 10}
  retransmits:
    - {direction: up, document: server, claim: c, tolerance: 2%, slack: 2, least: 10}
    - {direction: down, claim: c, start: s, end: e, zero: z}
`

func TestParseScenario(t *testing.T) {
	got, err := ParseScenario("all.scenario", []byte(everything))
	if err != nil {
		t.Fatal(err)
	}
	one := 1
	want := &Scenario{
		Name: "all there is", Topology: TopologyLink, CC: "cubic",
		Path: forward.Config{MTU: 9000, Truth: true, DataOnly: [2]bool{true, false}, Links: [2]link.Config{
			{
				BitsPerSecond: 200e6, Delay: 14 * time.Millisecond, QueueBytes: 700_000, Loss: 0.005, Seed: 1<<64 - 2,
				Faults: link.Faults{
					Jitter:  link.Jitter{Most: 4 * time.Millisecond, KeepOrder: true},
					Reorder: link.Reorder{Share: 0.01, Packets: 3}, Duplicate: 0.02,
					Bursts: link.Bursts{GoodToBad: 0.001, BadToGood: 0.3},
					Outage: link.Outage{At: 2 * time.Second, For: 300 * time.Millisecond, FromStart: true}, Hole: 1400,
				},
			},
			{
				BitsPerSecond: 2e9, Delay: 1500 * time.Microsecond, QueuePackets: 100, Seed: 1<<64 - 1,
				Faults: link.Faults{
					Reorder: link.Reorder{Share: 0.03, Time: 5 * time.Millisecond},
					Outage:  link.Outage{At: time.Second, For: time.Millisecond},
				},
			},
		}},
		Hosts: map[string]HostSettings{
			"client": {Sysctl: map[string]string{"net.ipv4.tcp_rmem": "4096 131072 6291456"}, Hosts: []string{"10.77.0.2 far", "fd77::2 far"}},
			"server": {Sysctl: map[string]string{}, NFT: "add table inet t\n"},
		},
		Devices: map[string]DeviceSettings{
			"ta": {MTU: 9000, Addresses: []string{"10.77.0.11/24"}},
			"tb": {TBF: &TBF{BitsPerSecond: 2e6, BurstBytes: 16384, Latency: 50 * time.Millisecond}},
		},
		Server:  []string{"fullbore", "serve", "-p", "010"},
		Client:  []string{"fullbore", "test", "$SERVER", "--time", "4s"},
		Timeout: 30 * time.Second,
		Pauses: []Pause{
			{"server", time.Second, 300 * time.Millisecond},
			{"client", 1500 * time.Millisecond, 10 * time.Millisecond},
		},
		Fit: []*Assertion{mustAssertion(t, "unsent == 0")},
		Expect: Expect{
			Exit: &one,
			Client: OutputExpect{
				JSON:   []*Assertion{mustAssertion(t, `sums[0].direction == "up"`)},
				Stdout: []string{"a: b"}, Stderr: []string{"yes"}, StdoutLacks: []string{"x"}, StderrLacks: []string{"y"},
			},
			Server: OutputExpect{JSON: []*Assertion{mustAssertion(t, "a exists")}, Stdout: []string{"s"}},
			Goodput: []GoodputExpect{{
				Direction: "up", Transport: "tcp", Document: "server", Bytes: mustPath(t, "a[0].b"), Start: mustPath(t, "s"),
				End: mustPath(t, "e"), Zero: mustPath(t, "z"), Tolerance: 0.005,
			}, {
				Direction: "down", Transport: "udp", Document: "client", Bytes: mustPath(t, "b"), Start: mustPath(t, "s"),
				End: mustPath(t, "e"), Zero: mustPath(t, "z"), Tolerance: 0.01,
			}},
			UDP: []UDPExpect{{
				Direction: "up", Document: "server", Stream: 2, Sent: mustPath(t, "a"), Received: mustPath(t, "b"),
				Lost: mustPath(t, "c"), Duplicates: mustPath(t, "d"), Reordered: mustPath(t, "e"), Extent: mustPath(t, "f"), Slack: 3,
				PDV50: mustPath(t, "g"), PDV95: mustPath(t, "h"), PDV99: mustPath(t, "i"), Within: time.Millisecond,
			}, {
				Direction: "down", Document: "client", Stream: -1, Lost: mustPath(t, "l"), Within: 200 * time.Microsecond,
			}},
			NFT: []NFTExpect{
				{Host: "client", Counter: "dropped", Document: "server", Claim: mustPath(t, "c"), Payload: 1400, Headers: 48, Slack: 1},
				{Host: "server", Counter: "dropped", Document: "client", Claim: mustPath(t, "c"), Headers: 28},
			},
			SNMP: []SNMPExpect{
				{Host: "server", Counter: "Udp.RcvbufErrors", Document: "server", Claim: mustPath(t, "c"), Tolerance: 0.02, Slack: 3, Least: 10},
			},
			Retransmits: []RetransmitExpect{
				{Direction: "up", Document: "server", Claim: mustPath(t, "c"), Tolerance: 0.02, Slack: 2, Least: 10},
				{Direction: "down", Document: "client", Claim: mustPath(t, "c"), Window: Window{mustPath(t, "s"), mustPath(t, "e"), mustPath(t, "z")}},
			},
		},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Assertion{}, step{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPathShorthand: both, rtt and queues in bandwidth-delay products.
func TestPathShorthand(t *testing.T) {
	s, err := ParseScenario("x", []byte(`{name: x, topology: link, cc: bbr, client: x, expect: {exit: 0},
		path: {rtt: 28ms, seed: 3, both: {rate: 200M, queue: 1.5 bdp}}}`))
	if err != nil {
		t.Fatal(err)
	}
	one := link.Config{BitsPerSecond: 200e6, Delay: 14 * time.Millisecond, QueueBytes: 1_050_000, Seed: 3}
	other := one
	other.Seed = 4 // else both directions would lose the same packets
	if diff := cmp.Diff(forward.Config{MTU: 1500, Links: [2]link.Config{one, other}}, s.Path); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.Timeout != time.Minute || len(s.Server) != 0 {
		t.Errorf("defaults: timeout %v, server %q", s.Timeout, s.Server)
	}
}

func mustAssertion(t *testing.T, text string) *Assertion {
	t.Helper()
	a, err := ParseAssertion(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func mustPath(t *testing.T, text string) Path {
	t.Helper()
	p, err := ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The least that a scenario has, which lacks a path when it is of a link.
const (
	minimal     = "name: x\ntopology: pair\ncc: reno\nclient: x\nexpect: {exit: 0}\n"
	minimalLink = "name: x\ntopology: link\ncc: reno\nclient: x\nexpect: {exit: 0}\n"
)

// TestScenarioFaults: each file shows one kind of fault and all that follow from it; the
// messages are the users'.
func TestScenarioFaults(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"empty", "", []string{"f: want one YAML document, found 0"}},
		{"two documents", minimal + "---\na: b\n", []string{"f: want one YAML document, found 2"}},
		{"a list", "- a\n", []string{
			"f:1: want keys with values, found a list",
			"f: name: is missing", "f: topology: is missing", "f: client: is missing", "f: expect: is missing",
			"f: cc: is missing: the system's default congestion control may hide loss and queues, so a scenario fixes it",
		}},
		{"everything wrong at once", `name: ""
topology: star
cc: cubic
cc: bbr
path: {rtt: 28ms, both: {rate: 0, queue: 1 bdp, loss: 5}}
host: {}
server: [serve, $NOWHERE]
client: [test, "$SERVER:$"]
timeout: 2h
fit: [b]
expect:
  exit: maybe
  json: [a, a = 1]
  stdout: text
`, []string{
			"f:1: name: is empty",
			`f:2: topology: "star" is none of: pair, routed, link, split`,
			"f:4: cc: given twice",
			"f:5: path.both.rate: rate 0 is outside 1..1000000000000 bit/s",
			`f:5: path.both.loss: "5" is not a percentage from 0% to 100%`,
			"f:6: host: unknown key; there are: cc, client, devices, expect, facts, fit, hosts, name, path, pause, server, timeout, topology, traffic; did you mean hosts?",
			"f:7: server: unknown placeholder $NOWHERE; there are: $SERVER, $SERVER6, $CLIENT, $CLIENT6, $FACTS",
			"f:9: timeout: 2h is outside 1s..1h0m0s",
			`f:10: fit[0]: assertion "b": no operator after the path`,
			`f:12: expect.exit: "maybe" is not a whole number from 0 to 255`,
			`f:13: expect.json[0]: assertion "a": no operator after the path`,
			`f:13: expect.json[1]: assertion "a = 1": unknown operator "="; there are: == != < <= > >= contains exists missing`,
			"f:14: expect.stdout: want a list, found a single value",
			"f:5: path.both.queue: needs a rate: an infinitely fast link has no queue",
		}},
		{"facts that nobody reads", minimal + "facts: x.json\n", []string{
			"f: facts: facts and $FACTS go together: the one names the file, the other hands it to a program",
		}},
		{"facts that are not there", strings.Replace(minimal, "client: ", "client: fullbore diagnose --facts $FACTS ", 1), []string{
			"f: facts: facts and $FACTS go together: the one names the file, the other hands it to a program",
		}},
		{"no congestion control", strings.Replace(minimal, "cc: reno\n", "", 1), []string{
			"f: cc: is missing: the system's default congestion control may hide loss and queues, so a scenario fixes it",
		}},
		{"congestion control behind its back", minimal + "hosts: {server: {sysctl: {net.ipv4.tcp_congestion_control: bbr}}}\n", []string{
			"f:6: hosts.server.sysctl.net.ipv4.tcp_congestion_control: is what cc is for",
		}},
		{"nothing given", "name:\ntopology: pair\ncc: reno\nclient: []\nexpect: {}\n", []string{
			"f:1: name: want one value, found nothing", "f:4: client: is empty", "f: expect.exit: is missing",
		}},
		{"aliases", "name: &a x\ntopology: pair\ncc: reno\nclient: *a\nexpect: {exit: 0}\n", []string{
			"f:1: name: want one value, found an anchor, alias or tag",
			"f:4: client: want a list, found an anchor, alias or tag",
			"f:4: client: is empty",
		}},
		{"path without link", minimal + "path: {both: {delay: 1ms}}\n", []string{"f: path: belongs to topologies link and split only"}},
		{"link without path", minimalLink, []string{"f: path: is missing: an emulated link needs it"}},
		{"one direction only", minimalLink + "path: {up: {delay: 1ms}}\n", []string{"f:6: path: give either both, or up and down"}},
		{"both and one", minimalLink + "path: {both: {delay: 1ms}, up: {delay: 1ms}}\n", []string{"f:6: path: give either both, or up and down"}},
		{"no delay", minimalLink + "path: {both: {}}\n", []string{"f:6: path: give either rtt or the delay of each direction"}},
		{"two delays", minimalLink + "path: {rtt: 1ms, both: {delay: 1ms}}\n", []string{"f:6: path: give either rtt or the delay of each direction"}},
		{"no queue", minimalLink + "path: {rtt: 1ms, both: {rate: 1M}}\n", []string{"f:6: path.both.queue: is missing: a link with a rate has one"}},
		{"queue too small", minimalLink + "path: {rtt: 1ms, up: {rate: 1M, queue: 1 bdp}, down: {rate: 1M, queue: 1499}}\n", []string{
			`f:6: path.up.queue: "1 bdp" is 125 bytes, less than one packet of 1500`,
			`f:6: path.down.queue: "1499" is 1499 bytes, less than one packet of 1500`,
		}},
		{"queue nonsense", minimalLink + "path: {rtt: 1ms, up: {rate: 1M, queue: 0 packets}, down: {rate: 1M, queue: x bdp}}\n", []string{
			`f:6: path.up.queue: "0 packets" is not a number of packets from 1`,
			`f:6: path.down.queue: "x bdp" is not a number of bandwidth-delay products, above 0 and at most 1000`,
		}},
		{"limits", minimalLink + "path: {mtu: 1000, seed: -1, up: {delay: 2min}, down: {delay: 1}}\n", []string{
			`f:6: path.mtu: "1000" is not a whole number from 1280 to 65535`,
			`f:6: path.seed: "-1" is not a whole number from 0 to 2^64-1`,
			"f:6: path.up.delay: 2min is outside 0s..1m0s",
		}},
		{"faults", minimalLink + `path:
  rtt: 1ms
  up:
    jitter: 4ms
    keep_order: yes
    reorder: 1%/0
    duplicate: "2"
    bursts: {p: 1%}
    outage: {at: 1s, from: now}
    hole: 0
    faults_on: tcp
  down: {jitter: 4-1ms, keep_order: true, reorder: 1%, bursts: {p: 1, r: 2%}, outage: {at: -1s, for: 0s}, faults_on: datagrams}
`, []string{
			`f:9: path.up.jitter: "4ms" is no range of times like 0-4ms, up to 1m0s`,
			`f:10: path.up.keep_order: "yes" is neither true nor false`,
			`f:11: path.up.reorder: "1%/0": a packet is held back for 1 to 1000 others`,
			`f:12: path.up.duplicate: "2" is not a percentage from 0% to 100%`,
			`f:13: path.up.bursts.r: is missing`,
			`f:14: path.up.outage.from: "now" is none of: first packet, start`,
			`f:14: path.up.outage.for: is missing`,
			`f:15: path.up.hole: "0" is not a whole number from 1 to 65535`,
			`f:16: path.up.faults_on: "tcp" is none of: everything, datagrams`,
			`f:17: path.down.jitter: "4-1ms" is no range of times like 0-4ms, up to 1m0s`,
			`f:17: path.down.reorder: "1%" is neither like 1%/3 (packets) nor like 1%/5ms`,
			`f:17: path.down.bursts.p: "1" is not a percentage from 0% to 100%`,
			`f:17: path.down.outage.at: duration "-1s": must not be negative`,
			"f:17: path.down.outage.for: 0s is outside 1ns..1h0m0s",
			"f:17: path.down.keep_order: needs jitter",
		}},
		{"nothing to spare from", minimalLink + "path: {rtt: 1ms, both: {faults_on: datagrams}}\n", []string{
			"f:6: path.both.faults_on: there are no faults",
		}},
		{"pauses", minimal + "pause: [{who: router, at: 1}, {who: server, at: 1s, for: 0s}]\n", []string{
			`f:6: pause[0].who: "router" is none of: client, server`,
			"f:6: pause[0].for: is missing",
			"f:6: pause[1].for: 0s is outside 1ms..1h0m0s",
			"f: pause: there is no server",
		}},
		{"counts", strings.Replace(minimal, "{exit: 0}", `
  exit: 0
  udp: [{direction: up}, {stream: -1, lost: "", within: 2s}]
  nft: [{claim: a, payload: 0}]
  snmp: [{host: router, counter: x, claim: a, start: b}]`, 1), []string{
			"f:7: expect.udp[0]: claims nothing",
			`f:7: expect.udp[1].stream: "-1" is not a whole number from 0 to 2147483647`,
			"f:7: expect.udp[1].lost: no path",
			"f:7: expect.udp[1].within: 2s is outside 0s..1s",
			"f:7: expect.udp[1].direction: is missing",
			`f:8: expect.nft[0].payload: "0" is not a whole number from 1 to 65507`,
			"f:8: expect.nft[0].host: is missing", "f:8: expect.nft[0].counter: is missing",
			"f:9: expect.snmp[0].end: is missing", "f:9: expect.snmp[0].zero: is missing",
			"f:9: expect.snmp[0].tolerance: is missing",
			"f: expect.udp: belongs to topologies link and split only: nothing else knows the truth",
			"f: expect: topology pair has no router whose counters could be read",
		}},
		{"a router that is not there", minimal + "hosts: {router: {}}\ndevices: {rb: {mtu: 1300}, vz: {}}\n", []string{
			"f: hosts.router: topology pair has no router",
			"f: devices.rb: topology pair has no such device; there are: va, vb",
			"f: devices.vz: topology pair has no such device; there are: va, vb",
		}},
		{"half a token bucket", minimal + "devices: {va: {tbf: {rate: 1M}}}\n", []string{
			"f:6: devices.va.tbf.burst: is missing", "f:6: devices.va.tbf.latency: is missing",
		}},
		{"truth without a link", strings.Replace(minimal, "{exit: 0}", "{exit: 0, goodput: [{direction: up}], server: {stdout: [x]}}", 1), []string{
			"f:5: expect.goodput[0].bytes: is missing", "f:5: expect.goodput[0].start: is missing",
			"f:5: expect.goodput[0].end: is missing", "f:5: expect.goodput[0].zero: is missing",
			"f:5: expect.goodput[0].tolerance: is missing",
			"f: expect.server: there is no server",
			"f: expect.goodput: belongs to topologies link and split only: nothing else knows the truth",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseScenario("f", []byte(tt.text))
			if err == nil {
				t.Fatal("accepted")
			}
			if diff := cmp.Diff(tt.want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := ParseScenario("f", []byte("a: [1")); err == nil || !strings.HasPrefix(err.Error(), "f:1: ") {
		t.Errorf("bad YAML: %v", err)
	}
	if _, err := LoadScenario(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestFacts: a scenario's facts lie beside its file, whatever the folder it is played from.
func TestFacts(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.scenario")
	text := "name: a\ntopology: pair\ncc: reno\nfacts: host.json\nclient: fullbore diagnose self --facts $FACTS\nexpect: {exit: 0}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadScenario(file); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "a.scenario: facts: ") {
		t.Errorf("facts that are not there: %v", err)
	}
	want := filepath.Join(dir, "host.json")
	if err := os.WriteFile(want, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := LoadScenario(file)
	if err != nil || s.Facts != want {
		t.Errorf("facts %+v, error %v; want %s", s, err, want)
	}
}

// FuzzParseScenario: whatever the file holds, it is a scenario or there is a reason.
func FuzzParseScenario(f *testing.F) {
	f.Add(everything)
	f.Add("{name: x, topology: link, cc: bbr, client: x, expect: {exit: 0}, path: {rtt: 1ms, both: {rate: 1M, queue: 2 bdp}}}")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseScenario("f", []byte(text))
		if (s == nil) == (err == nil) {
			t.Errorf("scenario %v, error %v", s, err)
		}
		if s != nil && s.Topology == TopologyLink {
			if err := s.Path.Validate(); err != nil {
				t.Errorf("accepted a path that is none: %v", err)
			}
		}
	})
}

// TestScenarioFiles: the scenarios that are shipped can be played.
func TestScenarioFiles(t *testing.T) {
	files, err := filepath.Glob("../../testdata/scenarios/*.scenario")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	slow, err := filepath.Glob("../../testdata/scenarios/slow/*.scenario")
	if err != nil || len(slow) == 0 {
		t.Fatalf("no slow scenarios: %v", err)
	}
	names := map[string]string{}
	for _, f := range append(files, slow...) {
		s, err := LoadScenario(f)
		if err != nil {
			t.Error(err)
			continue
		}
		if other, ok := names[s.Name]; ok {
			t.Errorf("%s and %s have the same name %q", f, other, s.Name)
		}
		names[s.Name] = f
	}
}

// TestReadmeExamples: the scenarios in the README, which together have each key once, are
// scenarios.
func TestReadmeExamples(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []*Scenario
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		example, _, ok := strings.Cut(block, "```\n")
		if !ok {
			t.Fatal("an example without end")
		}
		s, err := ParseScenario("README.md", []byte(example))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if len(all) != 5 {
		t.Fatalf("%d examples, want 5", len(all))
	}
	if s := all[0]; s.Path.Links[0].QueueBytes != 700_000 || len(s.Expect.Client.JSON) != 3 || len(s.Expect.Goodput) != 1 || len(s.Expect.Retransmits) != 1 {
		t.Errorf("read as %+v", s)
	}
	f := all[1].Path.Links[0].Faults
	if f.Jitter.Most == 0 || f.Reorder.Packets == 0 || f.Duplicate == 0 || f.Bursts.BadToGood == 0 || f.Outage.For == 0 || f.Hole == 0 || len(all[1].Expect.UDP) != 1 {
		t.Errorf("read as %+v", all[1])
	}
	if len(all[2].Expect.Diagnosis) != 2 {
		t.Errorf("read as %+v", all[2])
	}
	if s := all[4]; s.Path.Plain() || s.Path.Boxes[0].MTU == 0 || s.Hosts["server"].CPU == 0 || len(s.Traffic) != 1 || len(s.Expect.Truth) != 4 {
		t.Errorf("read as %+v", s)
	}
	if s := all[3]; len(s.Pauses) != 1 || len(s.Expect.NFT) != 1 || len(s.Expect.SNMP) != 1 {
		t.Errorf("read as %+v", s)
	}
}
