package link_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/lab/link"
)

// offer is one packet of a test's traffic.
type offer struct {
	dir int
	at  time.Duration
	p   link.Packet
}

// got is what became of a packet.
type got struct {
	dir, n int
	due    time.Duration // of one that arrived
	drop   link.Drop
}

// fataler is a *testing.T or a *rapid.T.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// driven is a path under test, with everything that it has said.
type driven struct {
	*link.Path[int]
	out []got
}

func newDriven(t fataler, cfg link.PathConfig) *driven {
	t.Helper()
	d := &driven{}
	p, err := link.NewPath(cfg, func(dir, n int, why link.Drop) { d.out = append(d.out, got{dir: dir, n: n, drop: why}) })
	if err != nil {
		t.Fatal(err)
	}
	d.Path = p
	return d
}

// know tells that everything before now has been offered, and takes what has arrived.
func (d *driven) know(now time.Duration) {
	for dir := range 2 {
		d.Known(dir, now)
	}
	for dir := range 2 {
		for {
			n, due, _, ok := d.Pop(dir, now)
			if !ok {
				break
			}
			d.out = append(d.out, got{dir: dir, n: n, due: due})
		}
	}
}

const forever = 1000 * time.Hour

// drive offers everything, telling the path of the time with each packet if eager, and
// else once at the end.
func drive(t fataler, cfg link.PathConfig, traffic []offer, eager bool) (*driven, []got) {
	t.Helper()
	d := newDriven(t, cfg)
	for n, o := range traffic {
		if eager {
			d.know(o.at)
		}
		d.Offer(o.dir, o.at, o.p, n)
	}
	// Cross traffic never ends, so neither does a path with it.
	last := time.Duration(0)
	if len(traffic) > 0 {
		last = traffic[len(traffic)-1].at
	}
	d.know(last + time.Hour)
	if !endless(cfg) {
		d.know(forever)
	}
	return d, d.out
}

func endless(cfg link.PathConfig) bool {
	return slices.ContainsFunc(cfg.Directions[:], func(c link.Config) bool {
		return len(c.Cross) > 0 || slices.ContainsFunc(c.Members, func(m link.Config) bool { return len(m.Cross) > 0 })
	})
}

// inOrder sorts by packet, then direction and due, so that two ways of driving compare.
func inOrder(gs []got) []got {
	s := slices.Clone(gs)
	slices.SortStableFunc(s, func(a, b got) int { return a.n - b.n })
	return s
}

func drawTraffic(t *rapid.T, most int) []offer {
	n := rapid.IntRange(0, most).Draw(t, "packets")
	scale := rapid.IntRange(0, 24).Draw(t, "magnitude")
	out := make([]offer, n)
	var now time.Duration
	for i := range out {
		now += time.Duration(rapid.Int64Range(0, 1<<scale).Draw(t, "gap"))
		out[i] = offer{rapid.IntRange(0, 1).Draw(t, "dir"), now, link.Packet{
			Size: rapid.IntRange(1, 9000).Draw(t, "size"), DSCP: uint8(rapid.SampledFrom([]int{0, 8, 46}).Draw(t, "dscp")),
			Flow: uint64(rapid.IntRange(0, 3).Draw(t, "flow")), Spared: rapid.Bool().Draw(t, "spared"),
		}}
		out[i].p.Spread = out[i].p.Flow
	}
	return out
}

func drawPlain(t *rapid.T) link.Config {
	return link.Config{
		BitsPerSecond: rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(100_000, 10_000_000_000)).Draw(t, "rate"),
		Delay:         time.Duration(rapid.Int64Range(0, int64(50*time.Millisecond)).Draw(t, "delay")),
		QueueBytes:    rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, 40_000)).Draw(t, "queue bytes"),
		QueuePackets:  rapid.OneOf(rapid.Just(0), rapid.IntRange(1, 12)).Draw(t, "queue packets"),
		Loss:          rapid.SampledFrom([]float64{0, 0.2}).Draw(t, "loss"),
		Seed:          rapid.Uint64().Draw(t, "seed"),
		Faults: link.Faults{
			Jitter:    link.Jitter{Most: time.Duration(rapid.Int64Range(0, int64(ms)).Draw(t, "jitter"))},
			Reorder:   link.Reorder{Share: 0.1, Packets: 2},
			Duplicate: rapid.SampledFrom([]float64{0, 0.2}).Draw(t, "duplicate"),
			Outage:    link.Outage{At: 3 * ms, For: time.Duration(rapid.Int64Range(0, int64(ms)).Draw(t, "outage"))},
			Hole:      rapid.SampledFrom([]int{0, 8000}).Draw(t, "hole"),
		},
	}
}

// TestPathIsTwoLinks: without anything that needs a path, it does to each packet what a
// link does, at the same nanosecond.
func TestPathIsTwoLinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := link.PathConfig{Directions: [2]link.Config{drawPlain(t), drawPlain(t)}}
		traffic := drawTraffic(t, 150)
		var want []got
		var stats [2]link.Stats
		for dir := range 2 {
			l, err := link.New(cfg.Directions[dir])
			if err != nil {
				t.Fatal(err)
			}
			var w link.Wire[int]
			for n, o := range traffic {
				if n == 0 && o.dir != dir {
					// An outage counts from the path's first packet, whichever way it goes.
					l.First(o.at)
				}
				if o.dir != dir {
					continue
				}
				enqueue := l.Enqueue
				if o.p.Spared {
					enqueue = l.EnqueueSpared
				}
				if d := enqueue(o.at, o.p.Size); d.Drop == link.Delivered {
					w.Add(n, d)
				} else {
					want = append(want, got{dir: dir, n: n, drop: d.Drop})
				}
			}
			for {
				n, due, _, ok := w.Pop(forever)
				if !ok {
					break
				}
				want = append(want, got{dir: dir, n: n, due: due})
			}
			stats[dir] = l.Stats()
		}
		for _, eager := range []bool{false, true} {
			d, gotten := drive(t, cfg, traffic, eager)
			if diff := cmp.Diff(inOrder(want), inOrder(gotten), cmp.AllowUnexported(got{})); diff != "" {
				t.Fatalf("eager %v (-links +path):\n%s", eager, diff)
			}
			for dir := range 2 {
				s := d.Stats(dir)
				if s[0].Stats != stats[dir] {
					t.Fatalf("eager %v: counts %+v, want %+v", eager, s[0].Stats, stats[dir])
				}
			}
		}
	})
}

// drawPath has everything that a path can have.
func drawPath(t *rapid.T) link.PathConfig {
	var cfg link.PathConfig
	cfg.HalfDuplex = rapid.Bool().Draw(t, "half duplex")
	members := rapid.IntRange(0, 3).Draw(t, "members")
	for dir := range 2 {
		var ways []link.Config
		for i := range max(1, members) {
			c := drawPlain(t)
			if c.BitsPerSecond == 0 || cfg.HalfDuplex {
				c.BitsPerSecond = 50_000_000 + int64(i)
			}
			if rapid.Bool().Draw(t, "policer") {
				c.Policer = link.Policer{BitsPerSecond: 20e6, BucketBytes: 12_000, PerFlow: rapid.Bool().Draw(t, "per flow")}
			}
			if rapid.Bool().Draw(t, "shaper") {
				c.Shaper = link.Shaper{BitsPerSecond: 10e6, BucketBytes: 9_500, QueuePackets: 5, PerFlow: rapid.Bool().Draw(t, "per flow")}
			}
			if rapid.Bool().Draw(t, "classes") {
				c.Classes = []link.Class{{Name: "ef", DSCP: []uint8{46}, QueuePackets: 3}, {Name: "rest", QueueBytes: 20_000}}
			}
			if rapid.Bool().Draw(t, "cross") {
				c.Cross = []link.Cross{{BitsPerSecond: 10e6, Size: 1200, DSCP: 46, From: ms, Until: 40 * ms, On: 2 * ms, Off: 3 * ms}}
			}
			ways = append(ways, c)
		}
		cfg.Directions[dir] = ways[0]
		if members > 0 {
			cfg.Directions[dir] = link.Config{Members: ways}
		}
	}
	return cfg
}

// TestPathLazy: whatever is configured, it does not matter when the path is told of the
// time; each packet has one fate and the counts add up.
func TestPathLazy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg, traffic := drawPath(t), drawTraffic(t, 120)
		eager, a := drive(t, cfg, traffic, true)
		lazy, b := drive(t, cfg, traffic, false)
		if diff := cmp.Diff(inOrder(a), inOrder(b), cmp.AllowUnexported(got{})); diff != "" {
			t.Fatalf("(-eager +lazy):\n%s", diff)
		}
		seen := map[int]int{}
		for _, g := range a {
			seen[g.n]++
			if g.dir != traffic[g.n].dir || g.drop == link.Delivered && g.due < traffic[g.n].at {
				t.Fatalf("packet %d, offered %+v: %+v", g.n, traffic[g.n], g)
			}
		}
		if len(seen) != len(traffic) {
			t.Fatalf("%d of %d packets have a fate", len(seen), len(traffic))
		}
		for dir := range 2 {
			for i, s := range eager.Stats(dir) {
				if diff := cmp.Diff(s, lazy.Stats(dir)[i]); diff != "" {
					t.Fatalf("counts (-eager +lazy):\n%s", diff)
				}
				if sum := s.Delivered.Packets + s.Policer.Packets + s.Shaper.Packets + s.Queue.Packets + s.Loss.Packets +
					s.Burst.Packets + s.Outage.Packets + s.Hole.Packets; sum != s.In.Packets {
					t.Fatalf("counts do not add up: %+v", s)
				}
				for _, x := range s.Cross {
					if x.In.Packets != x.Delivered.Packets+x.Dropped.Packets {
						t.Fatalf("cross traffic does not add up: %+v", x)
					}
				}
			}
		}
		if _, ok := eager.Next(); ok && !endless(cfg) {
			t.Fatal("something is left underway")
		}
	})
}

// TestPathPunctual: who looks at the path only when it says so, and when a packet comes,
// misses nothing.
func TestPathPunctual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg, traffic := drawPath(t), drawTraffic(t, 120)
		d := newDriven(t, cfg)
		left, n := 0, 0
		for n < len(traffic) || left > 0 {
			next, ok := d.Next()
			now := next
			if n < len(traffic) && (!ok || traffic[n].at <= next) {
				now = traffic[n].at
			} else if !ok {
				t.Fatalf("%d packets are underway, and the path wants nothing", left)
			}
			before := len(d.out)
			for dir := range 2 {
				d.Known(dir, now+1) // what comes now, came
			}
			left -= len(d.out) - before
			for dir := range 2 {
				for {
					k, due, again, ok := d.Pop(dir, now)
					if !ok {
						break
					}
					if due != now {
						t.Fatalf("packet %d was due at %d, %v before %d", k, due, now-due, now)
					}
					if !again {
						left--
					}
				}
			}
			if n < len(traffic) && now == traffic[n].at {
				d.Offer(traffic[n].dir, now, traffic[n].p, n)
				left++
				n++
			}
		}
	})
}

func TestPathValidate(t *testing.T) {
	rated := link.Config{BitsPerSecond: 1e6}
	for _, tt := range []struct {
		name string
		cfg  link.PathConfig
		want string
	}{
		{"policer", link.PathConfig{Directions: [2]link.Config{{Policer: link.Policer{BitsPerSecond: -1}}}}, "link 0: link: policer's rate -1 bit/s is outside 0..1000000000000"},
		{"no bucket", link.PathConfig{Directions: [2]link.Config{{}, {Shaper: link.Shaper{BitsPerSecond: 1}}}}, "link 1: link: shaper's bucket of 0 bytes is outside 1..1073741824"},
		{"shaper's queue", link.PathConfig{Directions: [2]link.Config{{Shaper: link.Shaper{BitsPerSecond: 1, BucketBytes: 1, QueueBytes: -1, QueuePackets: -1}}}}, "link 0: link: shaper's queue of -1 bytes is negative\nlink: shaper's queue of -1 packets is negative"},
		{"classes without rate", link.PathConfig{Directions: [2]link.Config{{Classes: []link.Class{{}}}}}, "link 0: link: classes need a rate: an infinitely fast link has no queue"},
		{
			"classes",
			link.PathConfig{Directions: [2]link.Config{{BitsPerSecond: 1, Classes: []link.Class{{Name: "a", DSCP: []uint8{64, 1}}, {Name: "b", DSCP: []uint8{1}, QueueBytes: -1}}}}},
			"link 0: link: class \"a\": DSCP 64 is outside 0..63\nlink: class \"b\": queue of -1 bytes, 0 packets is negative\nlink: class \"b\": DSCP 1 belongs to another class\nlink: 0 classes take the code points of no other; want one",
		},
		{
			"cross",
			link.PathConfig{Directions: [2]link.Config{{Cross: []link.Cross{{DSCP: 64, From: 2, Until: 1, On: 1}, {BitsPerSecond: 1e12, Size: 1}}}}},
			"link 0: link: cross traffic 0: rate 0 bit/s is outside 1..1000000000000\nlink: cross traffic 0: packets of 0 bytes are outside 1..65535\nlink: cross traffic 0: DSCP 64 is outside 0..63\nlink: cross traffic 0: from 2ns until 1ns is no time\nlink: cross traffic 0: on for 1ns and off for 0s: give both, or neither\nlink: cross traffic 1: more than 1000000 packets a second",
		},
		{"members of members", link.PathConfig{Directions: [2]link.Config{{Members: []link.Config{{Loss: 2}, {Members: []link.Config{{}}}}}}}, "link 0: link: member 0: link: loss 2 is outside 0..1\nlink: member 1 has members"},
		{"half duplex without rate", link.PathConfig{HalfDuplex: true}, "link: directions that share a medium have one rate, not 0 and 0 bit/s"},
		{"half duplex, uneven", link.PathConfig{HalfDuplex: true, Directions: [2]link.Config{rated, {Members: []link.Config{rated, rated}}}}, "link: directions with 1 and 2 members cannot share them"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := link.NewPath(tt.cfg, func(int, int, link.Drop) {})
			if err == nil {
				t.Fatal("accepted")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tt.cfg.Plain() {
				t.Error("is plain")
			}
		})
	}
	if _, err := link.New(link.Config{Cross: []link.Cross{{BitsPerSecond: 1, Size: 1}}}); err == nil {
		t.Error("a link took what needs a path")
	}
}

// TestPathNoAllocation: once its queues have their usual length.
func TestPathNoAllocation(t *testing.T) {
	one := link.Config{
		BitsPerSecond: 12e6, Delay: ms, Policer: link.Policer{BitsPerSecond: 24e6, BucketBytes: 1e5, PerFlow: true},
		Shaper:  link.Shaper{BitsPerSecond: 20e6, BucketBytes: 1e4, QueuePackets: 100},
		Classes: []link.Class{{DSCP: []uint8{46}, QueuePackets: 50}, {QueuePackets: 50}},
		Cross:   []link.Cross{{BitsPerSecond: 1e6, Size: 500}},
	}
	p, err := link.NewPath(link.PathConfig{Directions: [2]link.Config{one, one}, HalfDuplex: true}, func(int, int, link.Drop) {})
	if err != nil {
		t.Fatal(err)
	}
	var now time.Duration
	step := func() {
		now += 900 * us
		for dir := range 2 {
			p.Offer(dir, now, link.Packet{Size: 1500, DSCP: 46 * uint8(dir), Flow: 3}, 0)
		}
		for dir := range 2 {
			p.Known(dir, now+1)
		}
		p.Next()
		for dir := range 2 {
			for {
				if _, _, _, ok := p.Pop(dir, now); !ok {
					break
				}
			}
		}
	}
	for range 5000 {
		step()
	}
	if got := testing.AllocsPerRun(5000, step); got != 0 {
		t.Errorf("%v allocations a packet", got)
	}
}

func BenchmarkPath(b *testing.B) {
	one := link.Config{BitsPerSecond: 500e6, QueueBytes: 5e6, Loss: 0.001, Delay: 40 * ms}
	p, err := link.NewPath(link.PathConfig{Directions: [2]link.Config{one, one}}, func(int, int, link.Drop) {})
	if err != nil {
		b.Fatal(err)
	}
	var now time.Duration
	for b.Loop() {
		now += 20 * us
		p.Offer(0, now, link.Packet{Size: 1500}, 0)
		p.Known(0, now)
		p.Pop(0, now)
	}
}
