package link_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/lab/link"
)

// TestPolicer gives cases that can be checked by hand: 12 Mbit/s fill 1500 bytes each ms.
func TestPolicer(t *testing.T) {
	cfg := link.Config{Delay: 5 * ms, Policer: link.Policer{BitsPerSecond: 12e6, BucketBytes: 3000}}
	at := func(now time.Duration, size int, flow uint64) offer {
		return offer{0, now, link.Packet{Size: size, Flow: flow}}
	}
	for _, tt := range []struct {
		name    string
		perFlow bool
		in      []offer
		dropped []int
	}{
		{"the bucket, then the rate", false, []offer{
			at(0, 1500, 1), at(0, 1500, 1), at(0, 1, 1), at(ms, 1500, 1), at(2*ms-1, 1500, 1), at(2*ms, 1500, 1), at(2*ms, 1, 2),
		}, []int{2, 4, 6}},
		{"it holds no more than it holds", false, []offer{at(0, 3000, 1), at(time.Hour, 3000, 1), at(time.Hour, 1, 1)}, []int{2}},
		{"a packet larger than the bucket", false, []offer{at(0, 3001, 1), at(time.Hour, 3001, 1), at(time.Hour, 3000, 1)}, []int{0, 1}},
		{"a bucket for each flow", true, []offer{at(0, 3000, 1), at(0, 3000, 2), at(0, 1, 1), at(ms, 1500, 2), at(ms, 1501, 1)}, []int{2, 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := cfg
			c.Policer.PerFlow = tt.perFlow
			_, out := drive(t, link.PathConfig{Directions: [2]link.Config{c}}, tt.in, true)
			var dropped []int
			for _, g := range out {
				if g.drop == link.DropPolicer {
					dropped = append(dropped, g.n)
				} else if g.drop != link.Delivered || g.due != tt.in[g.n].at+5*ms {
					t.Errorf("packet %d: %+v: a policer delays nothing", g.n, g)
				}
			}
			if diff := cmp.Diff(tt.dropped, dropped); diff != "" {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPolicerRate: what passes in the long run is the bucket and the rate, to the byte,
// at rates that no nanosecond divides.
func TestPolicerRate(t *testing.T) {
	for _, rate := range []int64{9_600, 56_789_123, 999_999_937} {
		d := newDriven(t, link.PathConfig{Directions: [2]link.Config{{Policer: link.Policer{BitsPerSecond: rate, BucketBytes: 10_000}}}})
		const seconds = 10
		step := time.Duration(8e9 * 50 / rate) // twice the rate in packets of 100 bytes
		if step == 0 {
			step = 1
		}
		var last time.Duration
		for now := time.Duration(0); now <= seconds*time.Second && now/step < 200_000; now += step {
			d.Offer(0, now, link.Packet{Size: 100}, 0)
			last = now
			d.Known(0, now)
			d.out = d.out[:0]
			for {
				if _, _, _, ok := d.Pop(0, now); !ok {
					break
				}
			}
		}
		d.Known(0, last+1)
		s := d.Stats(0)[0]
		want := 10_000 + float64(rate)/8*last.Seconds()
		if got := float64(s.Delivered.Bytes); got > want || got < want-100 {
			t.Errorf("%d bit/s: %.0f bytes passed in %v, want %.0f", rate, got, last, want)
		}
		if s.Policer.Packets == 0 || s.Wait.Max != 0 {
			t.Errorf("%d bit/s: %+v", rate, s)
		}
	}
}

// TestShaper: a burst as large as the bucket goes at once, the rest at the rate; what the
// queue does not hold is dropped.
func TestShaper(t *testing.T) {
	at := func(now time.Duration, size int, flow uint64) offer {
		return offer{0, now, link.Packet{Size: size, Flow: flow}}
	}
	six := []offer{at(0, 1500, 1), at(0, 1500, 1), at(0, 1500, 1), at(0, 1500, 1), at(0, 1500, 2), at(0, 1500, 2)}
	base := link.Shaper{BitsPerSecond: 12e6, BucketBytes: 3000, QueuePackets: 2}
	for _, tt := range []struct {
		name string
		cfg  link.Config
		in   []offer
		want []got
	}{
		{
			"bucket, queue, drop",
			link.Config{Shaper: base},
			six,
			[]got{{n: 0}, {n: 1}, {n: 2, due: ms}, {n: 3, due: 2 * ms}, {n: 4, drop: link.DropShaper}, {n: 5, drop: link.DropShaper}},
		},
		{
			"each flow",
			link.Config{Shaper: link.Shaper{BitsPerSecond: 12e6, BucketBytes: 3000, QueuePackets: 1, PerFlow: true}},
			six,
			[]got{{n: 0}, {n: 1}, {n: 2, due: ms}, {n: 3, drop: link.DropShaper}, {n: 4}, {n: 5}},
		},
		{
			// 24 Mbit/s: the burst itself takes half a millisecond a packet.
			"the line behind it",
			link.Config{Shaper: base, BitsPerSecond: 24e6, QueuePackets: 9},
			six[:4],
			[]got{{n: 0, due: ms / 2}, {n: 1, due: ms}, {n: 2, due: ms + ms/2}, {n: 3, due: 2*ms + ms/2}},
		},
		{
			"larger than the bucket",
			link.Config{Shaper: base},
			[]offer{at(0, 3001, 1), at(0, 3000, 1)},
			[]got{{n: 0, drop: link.DropShaper}, {n: 1}},
		},
		{
			"nobody overtakes",
			link.Config{Shaper: base},
			[]offer{at(0, 2000, 1), at(0, 1500, 1), at(0, 100, 1), at(2*ms, 100, 1)},
			[]got{{n: 0}, {n: 1, due: 333334}, {n: 2, due: 400000}, {n: 3, due: 2 * ms}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, out := drive(t, link.PathConfig{Directions: [2]link.Config{tt.cfg}}, tt.in, true)
			if diff := cmp.Diff(tt.want, inOrder(out), cmp.AllowUnexported(got{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if s := d.Stats(0)[0]; s.ShaperQueue.Packets > int64(tt.cfg.Shaper.QueuePackets) || s.Queue.Packets != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestShaperDepth: the peak of its queue and the longest wait are known.
func TestShaperDepth(t *testing.T) {
	d := newDriven(t, link.PathConfig{Directions: [2]link.Config{
		{Shaper: link.Shaper{BitsPerSecond: 8e6, BucketBytes: 1000, QueueBytes: 50_000}},
	}})
	for n := range 100 {
		d.Offer(0, 0, link.Packet{Size: 1000}, n)
	}
	d.know(forever)
	s := d.Stats(0)[0]
	if want := (link.Count{Packets: 50, Bytes: 50_000}); s.ShaperQueue != want || s.Wait.Max != 50*ms || s.Shaper.Packets != 49 {
		t.Errorf("%+v", s)
	}
}

// TestClasses: the first class is served whenever it has something, the packet being sent
// goes on, and the second starves.
func TestClasses(t *testing.T) {
	cfg := link.PathConfig{Directions: [2]link.Config{{
		BitsPerSecond: 12e6, Delay: ms,
		Classes: []link.Class{{Name: "voice", DSCP: []uint8{46, 40}, QueuePackets: 2}, {Name: "rest", QueuePackets: 2}},
	}}}
	at := func(now time.Duration, dscp uint8) offer { return offer{0, now, link.Packet{Size: 1500, DSCP: dscp}} }
	_, out := drive(t, cfg, []offer{
		at(0, 0), at(0, 0), at(0, 8), // one is sent, two wait
		at(us, 0),              // no room in its class
		at(us, 46), at(us, 40), // overtake those that wait
		at(us, 46),   // no room in its class
		at(2*ms, 46), // the first voice packet has just been sent
	}, true)
	want := []got{
		{n: 0, due: 2 * ms},
		{n: 1, due: 6 * ms},
		{n: 2, due: 7 * ms},
		{n: 3, drop: link.DropQueue},
		{n: 4, due: 3 * ms},
		{n: 5, due: 4 * ms},
		{n: 6, drop: link.DropQueue},
		{n: 7, due: 5 * ms},
	}
	if diff := cmp.Diff(want, inOrder(out), cmp.AllowUnexported(got{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// Traffic of others in the first class at the whole rate: the second gets nothing.
	cfg.Directions[0].Cross = []link.Cross{{BitsPerSecond: 12e6, Size: 1500, DSCP: 46}}
	d := newDriven(t, cfg)
	for n := range 1000 {
		d.Offer(0, time.Duration(n)*10*ms, link.Packet{Size: 1500}, n)
	}
	d.Known(0, 10*time.Second)
	s := d.Stats(0)[0]
	if s.Delivered.Packets != 1 || s.Queue.Packets != 997 || s.Classes[1].Dropped.Packets != 997 || s.Classes[0].In.Packets != 0 {
		t.Errorf("%+v", s) // one slipped in before the second packet of the others came
	}
	if x := s.Cross[0]; x.Delivered.Packets != 9999 || x.Dropped.Packets != 0 {
		t.Errorf("cross traffic %+v", x)
	}
}

// TestHalfDuplex: both directions together have the rate of one, in turns.
func TestHalfDuplex(t *testing.T) {
	one := link.Config{BitsPerSecond: 12e6, Delay: ms, QueuePackets: 100}
	cfg := link.PathConfig{Directions: [2]link.Config{one, one}, HalfDuplex: true}
	var in []offer
	for range 3 {
		in = append(in, offer{0, 0, link.Packet{Size: 1500}})
	}
	in = append(in, offer{1, us, link.Packet{Size: 750}}, offer{1, us, link.Packet{Size: 1500}})
	_, out := drive(t, cfg, in, true)
	want := []got{
		{0, 0, 2 * ms, 0}, {0, 1, 3*ms + ms/2, 0}, {0, 2, 5*ms + ms/2, 0}, {1, 3, 2*ms + ms/2, 0}, {1, 4, 4*ms + ms/2, 0},
	}
	if diff := cmp.Diff(want, inOrder(out), cmp.AllowUnexported(got{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// In the long run each gets half while both want more; and alone, all of it.
	share := func(up, down bool) [2]int64 {
		d := newDriven(t, cfg)
		for i := range 20_000 {
			for dir, on := range [2]bool{up, down} {
				if on {
					d.Offer(dir, time.Duration(i)*ms/2, link.Packet{Size: 1500}, i)
				}
			}
			d.know(time.Duration(i) * ms / 2)
		}
		return [2]int64{d.Stats(0)[0].Delivered.Packets, d.Stats(1)[0].Delivered.Packets}
	}
	if got := share(true, true); got[0]+got[1] != 10_000 || max(got[0]-got[1], got[1]-got[0]) > 1 {
		t.Errorf("both: %v, want 5000 each", got)
	}
	if got := share(true, false); got != [2]int64{10_000, 0} {
		t.Errorf("up alone: %v, want 10000", got)
	}
}

// TestMembers: each flow has its member, its rate and its delay.
func TestMembers(t *testing.T) {
	cfg := link.PathConfig{Directions: [2]link.Config{{Members: []link.Config{
		{BitsPerSecond: 12e6, QueuePackets: 9, Delay: ms}, {BitsPerSecond: 6e6, QueuePackets: 9, Delay: 3 * ms}, {Loss: 1},
	}}}}
	var in []offer
	for i := range uint64(6) {
		in = append(in, offer{0, 0, link.Packet{Size: 1500, Spread: i}})
	}
	d, out := drive(t, cfg, in, true)
	want := []got{
		{n: 0, due: 2 * ms},
		{n: 1, due: 5 * ms},
		{n: 2, drop: link.DropLoss},
		{n: 3, due: 3 * ms},
		{n: 4, due: 7 * ms},
		{n: 5, drop: link.DropLoss},
	}
	if diff := cmp.Diff(want, inOrder(out), cmp.AllowUnexported(got{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i, s := range d.Stats(0) {
		if s.In.Packets != 2 {
			t.Errorf("member %d: %+v", i, s)
		}
	}
	if d.Members(0) != 3 || d.Members(1) != 1 {
		t.Errorf("%d and %d members", d.Members(0), d.Members(1))
	}
}

// TestCross: traffic of others comes when it is said to, to the packet, and takes its
// share.
func TestCross(t *testing.T) {
	for _, tt := range []struct {
		name  string
		cross link.Cross
		until time.Duration
		want  int64
	}{
		{"constant", link.Cross{BitsPerSecond: 8e6, Size: 1000}, time.Second, 1000},
		{"an odd rate", link.Cross{BitsPerSecond: 7_777_777, Size: 1000}, time.Second, 973}, // 972.2, and the one at 0
		{"later", link.Cross{BitsPerSecond: 8e6, Size: 1000, From: 100 * ms, Until: 300 * ms}, time.Second, 200},
		{"on and off", link.Cross{BitsPerSecond: 8e6, Size: 1000, On: 10 * ms, Off: 30 * ms}, time.Second, 250},
		{"on for less than a packet", link.Cross{BitsPerSecond: 8e6, Size: 1000, On: us, Off: 10*ms - us}, time.Second, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := link.Config{Cross: []link.Cross{tt.cross}}
			d := newDriven(t, link.PathConfig{Directions: [2]link.Config{c}})
			if _, ok := d.Next(); ok {
				t.Error("there is traffic before the first packet")
			}
			const origin = 77 * ms
			d.Offer(1, origin, link.Packet{Size: 1}, 0)
			d.know(origin + tt.until)
			s := d.Stats(0)[0]
			if s.Cross[0].Delivered.Packets != tt.want || s.In.Packets != 0 || s.MaxQueue.Packets != 0 {
				t.Errorf("%+v, want %d", s, tt.want)
			}
		})
	}

	// 12 Mbit/s, half of it taken: a source at the whole rate loses half, and so does the
	// other one.
	d := newDriven(t, link.PathConfig{Directions: [2]link.Config{{
		BitsPerSecond: 12e6, QueuePackets: 10, Cross: []link.Cross{{BitsPerSecond: 12e6, Size: 1500, From: ms / 2}},
	}}})
	for n := range 10_000 {
		d.Offer(0, time.Duration(n)*ms, link.Packet{Size: 1500}, n)
	}
	d.Known(0, 10*time.Second)
	s := d.Stats(0)[0]
	if sum := s.Delivered.Packets + s.Cross[0].Delivered.Packets; sum < 9_999 || sum > 10_001 {
		t.Errorf("%d packets were sent, want 10000: %+v", sum, s)
	}
	if s.MaxQueue.Packets != 10 || s.Wait.Max < 9*ms {
		t.Errorf("%+v", s)
	}
}

// TestKeys: flows are told apart and spread evenly; directions alike when asked.
func TestKeys(t *testing.T) {
	key := func(port uint16, back bool) link.Key {
		k := link.Key{SrcPort: port, DstPort: 5201, Proto: 6}
		k.Src[15], k.Dst[15] = 1, 2
		if back {
			k.Src, k.Dst, k.SrcPort, k.DstPort = k.Dst, k.Src, k.DstPort, k.SrcPort
		}
		return k
	}
	flows := map[uint64]bool{}
	var count [4]int
	differ := 0
	for port := uint16(32768); port < 32768+10_000; port++ {
		k, back := key(port, false), key(port, true)
		flows[k.Flow()], flows[back.Flow()] = true, true
		count[k.Spread(link.HashFlow, 7)%4]++
		if k.Spread(link.HashSymmetric, 7) != back.Spread(link.HashSymmetric, 7) ||
			k.Spread(link.HashAddresses, 7) != back.Spread(link.HashAddresses, 7) ||
			k.Spread(link.HashAddresses, 7) != key(1, false).Spread(link.HashAddresses, 7) {
			t.Fatalf("port %d: not alike", port)
		}
		if k.Spread(link.HashFlow, 7)%4 != k.Spread(link.HashFlow, 8)%4 {
			differ++
		}
	}
	if len(flows) != 20_000 {
		t.Errorf("%d flows, want 20000", len(flows))
	}
	for i, n := range count {
		if n < 2300 || n > 2700 { // five standard deviations
			t.Errorf("member %d has %d of 10000", i, n)
		}
	}
	if differ < 7000 {
		t.Errorf("another seed spreads only %d of 10000 otherwise", differ)
	}
	for _, h := range []link.Hash{link.HashFlow, link.HashSymmetric, link.HashAddresses} {
		if got, err := link.ParseHash(h.String()); got != h || err != nil {
			t.Errorf("%v: read as %v, %v", h, got, err)
		}
	}
	if _, err := link.ParseHash("x"); err == nil || fmt.Sprint(link.Hash(9)) != "hash(9)" {
		t.Errorf("%v, %v", err, link.Hash(9))
	}
}
