package lab

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fullbore-net/fullbore/internal/lab/forward"
	"github.com/fullbore-net/fullbore/internal/lab/link"
)

// ways uses each key of a path once that the scenario of TestParseScenario does not.
const ways = `
name: all that a path can have
topology: split
cc: cubic
path:
  rtt: 20ms
  seed: 5
  duplex: full
  hash: symmetric
  up:
    policer: {rate: 50M, bucket: 64kB, per: flow}
    shaper: {rate: 20M, bucket: 10kB, queue: 1 bdp, per: flow}
    rate: 100M
    classes:
      - {name: voice, dscp: [ef, 40, cs4, af41, va], queue: 20 packets}
      - {name: rest, queue: 0.5 bdp}
    cross:
      - {rate: 10M}
      - {rate: 30M, size: 800, dscp: ef, from: 1s, until: 5s, on: 100ms, off: 400ms}
    syn: {strip: [window scale, sack, timestamps], mss: 1200}
    hop: {mtu: 1400}
  down:
    rate: 100M
    queue: 1 bdp
    delay: 10ms
    hop: {mtu: 1300, silent: true}
    members:
      - {}
      - {rate: 10M, delay: 15ms, loss: 1%, policer: {rate: 5M, bucket: 9000, per: all}}
hosts:
  client: {cpu: 20%, busy: [0, 1]}
traffic:
  - {from: server, rate: 10M, size: 500, dscp: cs1, at: 1s, for: 2s, on: 10ms, off: 20ms}
  - {from: client, rate: 1M}
client: x
expect:
  exit: 0
  truth: [link.directions == 1]
`

func TestParseWays(t *testing.T) {
	text := strings.Replace(ways, "  rtt: 20ms\n", "", 1)
	text = strings.Replace(text, "  up:\n", "  up:\n    delay: 10ms\n", 1)
	got, err := ParseScenario("ways", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	down := link.Config{BitsPerSecond: 100e6, QueueBytes: 250_000, Delay: 10 * time.Millisecond, Seed: 6}
	slow := link.Config{
		BitsPerSecond: 10e6, QueueBytes: 25_000, Delay: 15 * time.Millisecond, Loss: 0.01, Seed: 8,
		Policer: link.Policer{BitsPerSecond: 5e6, BucketBytes: 9000},
	}
	want := forward.Config{
		MTU: 1500, Hash: link.HashSymmetric, HashSeed: 5, Truth: true,
		Links: [2]link.Config{
			{
				BitsPerSecond: 100e6, Delay: 10 * time.Millisecond, Seed: 5,
				Policer: link.Policer{BitsPerSecond: 50e6, BucketBytes: 64_000, PerFlow: true},
				Shaper:  link.Shaper{BitsPerSecond: 20e6, BucketBytes: 10_000, QueueBytes: 50_000, PerFlow: true},
				Classes: []link.Class{
					{Name: "voice", DSCP: []uint8{46, 40, 32, 34, 44}, QueuePackets: 20},
					{Name: "rest", QueueBytes: 125_000},
				},
				Cross: []link.Cross{
					{BitsPerSecond: 10e6, Size: 1200},
					{BitsPerSecond: 30e6, Size: 800, DSCP: 46, From: time.Second, Until: 5 * time.Second, On: 100 * time.Millisecond, Off: 400 * time.Millisecond},
				},
			},
			{Seed: 6, Members: []link.Config{down, slow}},
		},
		Boxes: [2]forward.Box{{WindowScale: true, SACK: true, Timestamps: true, MSS: 1200, MTU: 1400}, {MTU: 1300, Silent: true}},
	}
	if diff := cmp.Diff(want, got.Path, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if rtt := got.Path.RTT(); rtt != 20*time.Millisecond {
		t.Errorf("round trip %v", rtt)
	}
	if h := got.Hosts["client"]; h.CPU != 0.2 || !cmp.Equal(h.Busy, []int{0, 1}) {
		t.Errorf("%+v", h)
	}
	traffic := []Traffic{
		{From: "server", BitsPerSecond: 10e6, Size: 500, DSCP: 8, At: time.Second, For: 2 * time.Second, On: 10 * time.Millisecond, Off: 20 * time.Millisecond},
		{From: "client", BitsPerSecond: 1e6, Size: 1200},
	}
	if diff := cmp.Diff(traffic, got.Traffic); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(got.Expect.Truth) != 1 {
		t.Errorf("%+v", got.Expect)
	}

	// With rtt, and both directions alike but for their seeds.
	s, err := ParseScenario("x", []byte(`{name: x, topology: link, cc: bbr, client: x, expect: {exit: 0},
		path: {rtt: 28ms, duplex: half, hash: addresses, both: {rate: 10M, queue: 9 packets, members: [{}, {delay: 1ms}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	member := func(seed uint64, delay time.Duration) link.Config {
		return link.Config{BitsPerSecond: 10e6, QueuePackets: 9, Delay: delay, Seed: seed}
	}
	half := forward.Config{MTU: 1500, HalfDuplex: true, Hash: link.HashAddresses, Links: [2]link.Config{
		{Members: []link.Config{member(0, 14*time.Millisecond), member(2, time.Millisecond)}},
		{Seed: 1, Members: []link.Config{member(1, 14*time.Millisecond), member(3, time.Millisecond)}},
	}}
	if diff := cmp.Diff(half, s.Path, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWayFaults(t *testing.T) {
	tests := []struct {
		name, path string
		want       []string
	}{
		{"policer", "{rtt: 1ms, up: {policer: {rate: 1M, per: host}}, down: {policer: {rate: 1M, bucket: 1499}}}", []string{
			`f:6: path.up.policer.per: "host" is neither flow nor all`,
			"f:6: path.up.policer.bucket: is missing",
			"f:6: path.down.policer.bucket: of 1499 bytes is less than one packet of 1500",
		}},
		{"shaper", "{rtt: 1ms, up: {shaper: {rate: 1M, bucket: 2G}}, down: {shaper: {rate: 1M, bucket: 1500, queue: 1 bdp}}}", []string{
			"f:6: path.up.shaper.bucket: bucket 2G is outside 1..1073741824 bytes",
			"f:6: path.up.shaper.queue: is missing",
			`f:6: path.down.shaper.queue: "1 bdp" is 125 bytes, less than one packet of 1500`,
		}},
		{"classes", "{rtt: 1ms, up: {rate: 1M, queue: 9 packets, classes: [{name: a, dscp: [64, xy], queue: 1 packets}, {queue: 0 packets}]}, down: {classes: [{name: a, queue: 2 packets}]}}", []string{
			`f:6: path.up.classes[0].dscp[0]: "64" is no code point: 0 to 63, cs0 to cs7, af11 to af43, ef, va`,
			`f:6: path.up.classes[0].dscp[1]: "xy" is no code point: 0 to 63, cs0 to cs7, af11 to af43, ef, va`,
			"f:6: path.up.classes[1].name: is missing",
			"f:6: path.up.queue: each class has its own",
			`f:6: path.up.classes[1].queue: "0 packets" is not a number of packets from 1`,
			`f:6: path.up: link: class "a": DSCP 0 belongs to another class`,
			"f:6: path.down: link: classes need a rate: an infinitely fast link has no queue",
		}},
		{"cross", "{rtt: 1ms, up: {cross: [{size: 0, from: 2s, until: 1s}]}, down: {cross: [{rate: 1M, on: 1s}]}}", []string{
			`f:6: path.up.cross[0].size: "0" is not a whole number from 1 to 65535`,
			"f:6: path.up.cross[0].rate: is missing",
			"f:6: path.up: link: cross traffic 0: rate 0 bit/s is outside 1..1000000000000; link: cross traffic 0: from 2s until 1s is no time",
			"f:6: path.down: link: cross traffic 0: on for 1s and off for 0s: give both, or neither",
		}},
		{"boxes", "{rtt: 1ms, up: {syn: {strip: [ecn], mss: 1}}, down: {hop: {silent: maybe}}}", []string{
			`f:6: path.up.syn.strip[0]: "ecn" is none of: window scale, sack, timestamps`,
			`f:6: path.up.syn.mss: "1" is not a whole number from 48 to 65535`,
			`f:6: path.down.hop.silent: "maybe" is neither true nor false`,
			"f:6: path.down.hop.mtu: is missing",
		}},
		{"members", "{rtt: 1ms, up: {members: []}, down: {members: [{rate: 1M, hop: {mtu: 1400}}]}}", []string{
			"f:6: path.up.members: 0 of them are not from 1 to 64",
			"f:6: path.down.members[0].hop: unknown key; there are: bursts, classes, cross, delay, duplicate, hole, jitter, keep_order, loss, outage, policer, queue, rate, reorder, shaper",
			"f:6: path.down.members[0].queue: is missing: a link with a rate has one",
		}},
		{"hash", "{rtt: 1ms, hash: port, both: {}}", []string{
			`f:6: path.hash: "port" is none of: flow, symmetric, addresses`,
		}},
		{"hash of nothing", "{rtt: 1ms, hash: flow, both: {}}", []string{
			"f:6: path.hash: there are no members to choose from",
		}},
		{"duplex", "{rtt: 1ms, duplex: half, up: {rate: 1M, queue: 9 packets}, down: {rate: 2M, queue: 9 packets}}", []string{
			"f:6: path.duplex: link: directions that share a medium have one rate, not 1000000 and 2000000 bit/s",
		}},
		{"no duplex", "{rtt: 1ms, duplex: simplex, both: {}}", []string{`f:6: path.duplex: "simplex" is neither half nor full`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseScenario("f", []byte(minimalLink+"path: "+tt.path+"\n"))
			if err == nil {
				t.Fatal("accepted")
			}
			if diff := cmp.Diff(tt.want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
	_, err := ParseScenario("f", []byte(minimal+`hosts: {client: {cpu: 0.5%, busy: [-1]}, router: {}}
traffic: [{from: router, rate: 2G, on: 1s}, {size: 20}]
`))
	want := []string{
		`f:6: hosts.client.cpu: "0.5%" is not a share of a processor from 1% to 10000%`,
		`f:6: hosts.client.busy[0]: "-1" is not a whole number from 0 to 1023`,
		`f:7: traffic[0].from: "router" is none of: client, server`,
		"f:7: traffic[0].rate: is more than the lab itself can send: 1000000000 bit/s",
		"f:7: traffic[0]: on and off need each other",
		`f:7: traffic[1].size: "20" is not a whole number from 28 to 9000`,
		"f:7: traffic[1].from: is missing", "f:7: traffic[1].rate: is missing",
		"f: hosts.router: topology pair has no router",
	}
	if err == nil {
		t.Fatal("accepted")
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// TestTrafficTimes: so many packets are due by each time.
func TestTrafficTimes(t *testing.T) {
	count := func(f Traffic, until time.Duration) (n int) {
		for at := f.At; at < until; at = f.after(at) {
			n++
		}
		return n
	}
	for _, tt := range []struct {
		f    Traffic
		want int
	}{
		{Traffic{BitsPerSecond: 8e6, Size: 1000}, 1000},
		{Traffic{BitsPerSecond: 8e6, Size: 1000, At: 900 * time.Millisecond}, 100},
		{Traffic{BitsPerSecond: 8e6, Size: 1000, On: 10 * time.Millisecond, Off: 30 * time.Millisecond}, 250},
		{Traffic{BitsPerSecond: 8e6, Size: 1000, On: time.Microsecond, Off: 10*time.Millisecond - time.Microsecond, At: 500 * time.Millisecond}, 50},
	} {
		if got := count(tt.f, time.Second); got != tt.want {
			t.Errorf("%+v: %d packets, want %d", tt.f, got, tt.want)
		}
	}
}
