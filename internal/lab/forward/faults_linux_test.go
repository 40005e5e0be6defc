package forward

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/lab/link"
	"github.com/fullbore-net/fullbore/internal/lab/truth"
)

// datagram builds an IPv4 packet with UDP whose payload begins with a number.
func datagram(number uint32, payload int) []byte {
	p := make([]byte, 28+payload)
	p[0], p[9] = 0x45, 17
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	copy(p[12:], []byte{10, 77, 0, 1, 10, 77, 0, 2})
	binary.BigEndian.PutUint16(p[20:], 40000)
	binary.BigEndian.PutUint16(p[22:], 5201)
	binary.BigEndian.PutUint16(p[24:], uint16(8+payload))
	binary.BigEndian.PutUint32(p[28:], number)
	return p
}

func numberOf(p []byte) uint32 { return binary.BigEndian.Uint32(p[28:]) }

// TestFaults: the loop does to packets what the schedule says, in its order, and tells
// the truth about it.
func TestFaults(t *testing.T) {
	const packets = 30 // a datagram socket holds few
	a, b := newDevice(t), newDevice(t)
	cfg := link.Config{Delay: time.Millisecond, Seed: 3, Loss: 0.1, Faults: link.Faults{
		Reorder: link.Reorder{Share: 0.2, Packets: 2}, Duplicate: 0.2, Hole: 500,
	}}
	r := startLoop(t, Config{MTU: 1500, Truth: true, Links: [2]link.Config{cfg}}, a, b)
	model, err := link.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var wire link.Wire[int]
	var lost int64
	for i := range packets {
		payload := 100
		if i == 10 {
			payload = 473 // one byte more than gets through
		}
		p := datagram(uint32(i), payload)
		a.send(t, p)
		if d := model.Enqueue(time.Duration(i), len(p)); d.Drop == link.Delivered {
			wire.Add(i, d)
		} else {
			lost++
		}
	}
	var want []int64
	for {
		n, _, _, ok := wire.Pop(time.Hour)
		if !ok {
			break
		}
		want = append(want, int64(n))
	}
	var got []int64
	for range want {
		got = append(got, int64(numberOf(b.receive(t))))
	}
	// Which packets arrive, and how often, does not depend on how fast the test gets on;
	// their order does, as a packet is not held back for ever.
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))); diff != "" {
		t.Fatalf("received (-want +got):\n%s", diff)
	}
	rep := r.until(t, func(rep *Report) bool { return rep.Directions[0].Out.Packets == int64(len(want)) })
	d := rep.Directions[0]
	if d.Link != model.Stats() || d.Held != (link.Count{}) || d.Late.Packets != int64(len(want)) {
		t.Errorf("direction %+v, want %+v", d, model.Stats())
	}
	if len(d.Datagrams) != 1 {
		t.Fatalf("%d flows", len(d.Datagrams))
	}
	f := &d.Datagrams[0]
	if diff := cmp.Diff(got, f.Order); diff != "" {
		t.Errorf("the truth's order (-received +told):\n%s", diff)
	}
	if f.In != packets || f.Lost != lost || lost == 0 || d.Link.Hole.Packets != 1 {
		t.Errorf("in %d, lost %d, want %d and %d", f.In, f.Lost, packets, lost)
	}
	for i, delay := range f.Delay {
		if delay < int64(time.Millisecond) {
			t.Errorf("the %d-th to leave took %v", i, time.Duration(delay))
		}
	}
	counts := f.Arrivals()
	if counts.Duplicates != d.Link.Duplicated.Packets || counts.Duplicates == 0 || d.Link.Reordered.Packets == 0 || counts.OnTheWay != 0 {
		t.Errorf("counted %+v of %+v", counts, d.Link)
	}
}

// TestDataOnly: what is no datagram of a measurement is spared.
func TestDataOnly(t *testing.T) {
	a, b := newDevice(t), newDevice(t)
	cfg := link.Config{Loss: 1, Faults: link.Faults{Duplicate: 1, Hole: 100}}
	r := startLoop(t, Config{MTU: 1500, DataOnly: [2]bool{true, false}, Links: [2]link.Config{cfg, {Faults: link.Faults{Duplicate: 1}}}}, a, b)
	greeting := datagram(7, 4)
	a.send(t, datagram(1, 1000))
	a.send(t, greeting)
	a.send(t, make([]byte, 1200)) // anything else
	a.send(t, datagram(1, 20))
	for _, want := range []int{len(greeting), 1200} {
		if got := len(b.receive(t)); got != want {
			t.Errorf("received %d bytes, want %d", got, want)
		}
	}
	rep := r.until(t, func(rep *Report) bool { return rep.Directions[0].Link.In.Packets == 4 })
	if s := rep.Directions[0].Link; s.Hole.Packets != 1 || s.Loss.Packets != 1 || s.Delivered.Packets != 2 {
		t.Errorf("up: %+v", s)
	}
	// The other direction spares nothing.
	b.send(t, greeting)
	a.receive(t)
	a.receive(t)
	if d := r.report(t).Directions[1]; d.Link.Duplicated.Packets != 1 || len(d.Datagrams) != 0 {
		t.Errorf("down: %+v", d)
	}
}

// TestOutageFromStart: the outage counts from when the loop began.
func TestOutageFromStart(t *testing.T) {
	a, b := newDevice(t), newDevice(t)
	cfg := link.Config{Faults: link.Faults{Outage: link.Outage{For: time.Hour, FromStart: true}}}
	r := startLoop(t, Config{MTU: 1500, Links: [2]link.Config{cfg, {Faults: link.Faults{Outage: link.Outage{At: time.Hour, For: time.Hour, FromStart: true}}}}}, a, b)
	a.send(t, datagram(0, 100))
	b.send(t, datagram(0, 100))
	a.receive(t)
	rep := r.until(t, func(rep *Report) bool { return rep.Directions[0].Link.In.Packets == 1 })
	if up, down := rep.Directions[0].Link, rep.Directions[1].Link; up.Outage.Packets != 1 || down.Outage.Packets != 0 {
		t.Errorf("up %+v, down %+v", up, down)
	}
}

// TestNoAllocationPerDatagram: with every fault on and the truth kept, the log's growth
// is all that is allocated.
func TestNoAllocationPerDatagram(t *testing.T) {
	a, b := newDevice(t), newDevice(t)
	l, err := newLoop(Config{MTU: 1500, DataOnly: [2]bool{true}, Links: [2]link.Config{{
		Delay: time.Microsecond, Faults: link.Faults{Jitter: link.Jitter{Most: time.Microsecond}, Duplicate: 0.5},
	}}}, a.loop, b.loop, [2]*tap{})
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
		if err := d.pull(&l.clock); err != nil {
			t.Fatal(err)
		}
		for d.wire.Len() > 0 {
			nap(l.nextDue())
			before := d.out.Packets
			d.push(&l.clock)
			for range d.out.Packets - before {
				if _, err := b.read(buf); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for range 5000 { // the log now has room for more than the rest
		step()
	}
	if got := testing.AllocsPerRun(300, step); got != 0 {
		t.Errorf("%v allocations a datagram", got)
	}
}
