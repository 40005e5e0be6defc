package forward

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/lab/link"
	"github.com/fullbore-net/fullbore/internal/lab/truth"
)

// of makes a datagram of a flow and a class.
func of(number uint32, port uint16, dscp byte, size int) []byte {
	p := datagram(number, size-28)
	p[1] = dscp << 2
	binary.BigEndian.PutUint16(p[20:], port)
	return p
}

// TestPathDrops: what a policer drops is counted as such, in the books and in the truth,
// and the rest arrives.
func TestPathDrops(t *testing.T) {
	a, b := newDevice(t), newDevice(t)
	// 8 bit/s fill nothing while the test lasts.
	slow := link.Policer{BitsPerSecond: 8, BucketBytes: 3000}
	r := startLoop(t, Config{MTU: 1500, Truth: true, Links: [2]link.Config{
		{Delay: time.Millisecond, Policer: slow},
		{Shaper: link.Shaper{BitsPerSecond: 8, BucketBytes: 1500, QueuePackets: 2}},
	}}, a, b)
	for i := range 5 {
		a.send(t, of(uint32(i), 40000, 0, 1000))
		b.send(t, of(uint32(i), 40000, 0, 1500))
	}
	for i := range 3 {
		if got := numberOf(b.receive(t)); got != uint32(i) {
			t.Errorf("packet %d arrived as number %d", got, i)
		}
	}
	a.receive(t)
	rep := r.until(t, func(rep *Report) bool {
		return rep.Directions[0].Link.In.Packets == 5 && rep.Directions[1].Link.In.Packets == 5 && rep.Directions[0].Out.Packets == 3
	})
	up, down := rep.Directions[0], rep.Directions[1]
	if up.Link.Policer.Packets != 2 || up.Held.Packets != 0 || up.Datagrams[0].Lost != 2 || len(up.Members) != 1 || up.Taken != nil {
		t.Errorf("up %+v", up)
	}
	if down.Link.Shaper.Packets != 2 || down.Held.Packets != 2 || down.Out.Packets != 1 || down.Members[0].ShaperQueue.Packets != 2 {
		t.Errorf("down %+v", down)
	}
	if rep.Directions[0].Late.Packets != 3 {
		t.Errorf("late %+v", up.Late)
	}
}

// TestPathMembers: a flow's packets all take the member that its hash says, which the
// report tells.
func TestPathMembers(t *testing.T) {
	a, b := newDevice(t), newDevice(t)
	lossy := link.Config{Loss: 1}
	cfg := Config{MTU: 1500, HashSeed: 4, Links: [2]link.Config{{Members: []link.Config{{}, lossy}}}}
	r := startLoop(t, cfg, a, b)
	const flows = 12
	through := map[uint16]bool{}
	for port := uint16(1); port <= flows; port++ {
		h, _ := parseHeader(of(0, port, 0, 100))
		through[port] = h.key.Spread(link.HashFlow, 4)%2 == 0
		for range 2 {
			a.send(t, of(0, port, 0, 100))
		}
	}
	rep := r.until(t, func(rep *Report) bool { return rep.Directions[0].Link.In.Packets == 2*flows })
	d := rep.Directions[0]
	if len(d.Taken) != flows || len(d.Members) != 2 || d.Members[1].Loss != d.Members[1].In || d.Members[0].Delivered != d.Members[0].In ||
		d.Members[1].In.Packets == 0 || d.Members[0].In.Packets == 0 {
		t.Fatalf("%+v", d)
	}
	for _, f := range d.Taken {
		if (f.Member == 0) != through[f.Src.Port()] || f.Offered != (link.Count{Packets: 2, Bytes: 200}) || f.Proto != protoUDP || f.Dst.Port() != 5201 {
			t.Errorf("%+v, want through %v", f, through[f.Src.Port()])
		}
	}
	for range d.Members[0].In.Packets {
		if p := b.receive(t); !through[binary.BigEndian.Uint16(p[20:])] {
			t.Error("a packet of a lossy flow arrived")
		}
	}
}

// TestPathShared: a medium that both directions share carries them in turns, and classes
// are told apart by their code points.
func TestPathShared(t *testing.T) {
	a, b := newDevice(t), newDevice(t)
	one := link.Config{BitsPerSecond: 12e6, Classes: []link.Class{{Name: "ef", DSCP: []uint8{46}}, {Name: "be"}}}
	r := startLoop(t, Config{MTU: 1500, HalfDuplex: true, Links: [2]link.Config{one, one}}, a, b)
	for i := range 4 {
		a.send(t, of(uint32(i), 1, 0, 1500))
		a.send(t, of(uint32(i), 1, 46, 1500))
		b.send(t, of(uint32(i), 1, 0, 1500))
	}
	for range 8 {
		b.receive(t)
	}
	for range 4 {
		a.receive(t)
	}
	rep := r.until(t, func(rep *Report) bool {
		return rep.Directions[0].Out.Packets == 8 && rep.Directions[1].Out.Packets == 4
	})
	up := rep.Directions[0].Members[0]
	if up.Classes[0].In.Packets != 4 || up.Classes[1].In.Packets != 4 || up.Classes[0].MaxWait >= up.Classes[1].MaxWait {
		t.Errorf("classes %+v", up.Classes)
	}
	// Twelve packets of 1 ms each, all of them from one medium.
	if took := rep.Now - rep.Start; took < 12*time.Millisecond {
		t.Errorf("12 packets in %v, want 12 ms or more", took)
	}
}

// TestPathHop: what is too big for the hop behind the link is cut, or its sender told.
func TestPathHop(t *testing.T) {
	for _, shaped := range []bool{false, true} { // on a plain link, and on a path
		a, b := newDevice(t), newDevice(t)
		cfg := Config{MTU: 1500, Truth: true, Boxes: [2]Box{{MTU: 1300}, {MTU: 1400, Silent: true}}}
		if shaped {
			cfg.Links[0].Shaper = link.Shaper{BitsPerSecond: 1e9, BucketBytes: 1e6}
		}
		r := startLoop(t, cfg, a, b)
		a.send(t, of(1, 1, 0, 1500))
		var pieces [][]byte
		for range 2 {
			pieces = append(pieces, b.receive(t))
		}
		if got := reassemble(t, pieces, 1300); len(got) != 1480 {
			t.Errorf("%d bytes", len(got))
		}
		whole := of(2, 1, 0, 1500)
		whole[6] = 0x40 // don't fragment
		a.send(t, whole)
		if got := a.receive(t); got[20] != 3 || got[21] != 4 || binary.BigEndian.Uint16(got[26:]) != 1300 {
			t.Errorf("answer % x", got)
		}
		small := of(3, 1, 0, 1300)
		small[6] = 0x40
		a.send(t, small)
		if got := numberOf(b.receive(t)); got != 3 {
			t.Errorf("received number %d", got)
		}
		b.send(t, whole) // vanishes, as nobody says anything
		b.send(t, of(4, 1, 0, 1400))
		if got := numberOf(a.receive(t)); got != 4 {
			t.Errorf("received number %d", got)
		}
		rep := r.until(t, func(rep *Report) bool {
			return rep.Directions[0].Out.Packets == 3 && rep.Directions[1].Out.Packets == 2
		})
		up, down := rep.Directions[0], rep.Directions[1]
		want := &BoxStats{TooBig: link.Count{Packets: 1, Bytes: 1500}, Told: 1, Fragmented: link.Count{Packets: 1, Bytes: 1500}, Fragments: 2}
		if diff := cmp.Diff(want, up.Box); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if down.Box.Told != 0 || down.Box.TooBig.Packets != 1 || up.Held.Packets != 0 || down.Held.Packets != 0 {
			t.Errorf("up %+v\ndown %+v, %+v", up, down, down.Box)
		}
		if f := up.Datagrams[0]; f.In != 3 || f.Lost != 1 || f.Arrivals().Distinct != 2 {
			t.Errorf("truth %+v", f)
		}
	}
}

// TestPathEdit: SYNs leave without what is stripped.
func TestPathEdit(t *testing.T) {
	a, b := newDevice(t), newDevice(t)
	r := startLoop(t, Config{MTU: 1500, Boxes: [2]Box{{WindowScale: true}}}, a, b)
	p := sealed(packet4(protoTCP, 0, syn(flagSYN, linuxOptions...)))
	a.send(t, p)
	if got := b.receive(t); got[len(got)-4] != optNop || !valid(got) {
		t.Errorf("% x", got)
	}
	b.send(t, p)
	if diff := cmp.Diff(p, a.receive(t)); diff != "" {
		t.Errorf("the other direction was edited (-want +got):\n%s", diff)
	}
	rep := r.report(t)
	if rep.Directions[0].Box.Edited.Packets != 1 || rep.Directions[1].Box != nil {
		t.Errorf("%+v, %+v", rep.Directions[0].Box, rep.Directions[1].Box)
	}
}

// TestPathNoAllocation: as TestNoAllocation, on a path with everything.
func TestPathNoAllocation(t *testing.T) {
	a, b := newDevice(t), newDevice(t)
	one := link.Config{
		BitsPerSecond: 10e9, Delay: time.Microsecond, Policer: link.Policer{BitsPerSecond: 100e9, BucketBytes: 1e6, PerFlow: true},
		Classes: []link.Class{{Name: "all"}}, Cross: []link.Cross{{BitsPerSecond: 1e6, Size: 1000}},
	}
	l, err := newLoop(Config{MTU: 1500, HalfDuplex: true, Boxes: [2]Box{{MSS: 1000, MTU: 1400}}, Links: [2]link.Config{
		{Members: []link.Config{one, one}}, {Members: []link.Config{one, one}},
	}}, a.loop, b.loop, [2]*tap{})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(l.wake)
	defer unix.Close(l.doze)
	d := l.dirs[0]
	d.truth = truth.NewTracker()
	p, buf := datagram(0, 1000), make([]byte, 2000)
	step := func() {
		if err := a.write(p); err != nil {
			t.Fatal(err)
		}
		for before := d.out.Packets; d.out.Packets == before; {
			for _, d := range l.dirs {
				if err := d.pull(&l.clock); err != nil {
					t.Fatal(err)
				}
			}
			d.push(&l.clock)
		}
		if _, err := b.read(buf); err != nil {
			t.Fatal(err)
		}
	}
	for range 5000 {
		step()
	}
	if got := testing.AllocsPerRun(300, step); got != 0 {
		t.Errorf("%v allocations a packet", got)
	}
}
