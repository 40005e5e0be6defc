package forward

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fakeKernel fills a tap's ring as tpacket_rcv does.
type fakeKernel struct {
	*tap
	head int
}

func newFakeKernel() *fakeKernel {
	return &fakeKernel{tap: &tap{ring: make([]byte, tapFrame*tapFrames)}}
}

// put records a packet; false: the ring is full.
func (k *fakeKernel) put(p []byte, at time.Duration) bool {
	frame := k.ring[k.head*tapFrame : (k.head+1)*tapFrame]
	h := (*unix.Tpacket2Hdr)(unsafe.Pointer(&frame[0]))
	if h.Status != unix.TP_STATUS_KERNEL {
		return false
	}
	const net = 80
	n := copy(frame[net:], p)
	*h = unix.Tpacket2Hdr{
		Status: unix.TP_STATUS_USER, Len: uint32(len(p)), Snaplen: uint32(n), Mac: net, Net: net,
		Sec: uint32(at / time.Second), Nsec: uint32(at % time.Second),
	}
	k.head = (k.head + 1) % tapFrames
	return true
}

// numbered returns a packet that no other number gives.
func numbered(i, size int) []byte {
	p := bytes.Repeat([]byte{0x45}, size)
	binary.BigEndian.PutUint32(p[16:], uint32(i))
	return p
}

func TestTap(t *testing.T) {
	const epoch = 1_800_000_000 * time.Second // the wall clock does not fit 32 bits of ns
	k := newFakeKernel()
	want := func(p []byte, at time.Duration, ok bool) {
		t.Helper()
		if got, gotOK := k.stamp(p); got != at || gotOK != ok {
			t.Fatalf("stamp %d, %v, want %d, %v", got, gotOK, at, ok)
		}
	}
	want(numbered(0, 60), 0, false) // empty
	// Three times around the ring, in step.
	for i := range 3 * tapFrames {
		at := epoch + time.Duration(i)*time.Microsecond
		if !k.put(numbered(i, 20+i%1481), at) {
			t.Fatal("the ring is full although all was read")
		}
		want(numbered(i, 20+i%1481), at, true)
	}
	// Packets that the device dropped are skipped, and make room.
	for i := range 100 {
		k.put(numbered(i, 1500), epoch+time.Duration(i))
	}
	want(numbered(50, 1500), epoch+50, true)
	want(numbered(49, 1500), 0, false) // gone
	want(numbered(51, 1499), 0, false) // another size: not this one
	want(numbered(51, 1500), epoch+51, true)
	want(numbered(99, 1500), epoch+99, true)
	want(numbered(99, 1500), 0, false)
	// A full ring loses what comes next; a packet that it does not have costs a search but
	// no harm, and the rest still matches.
	n := 0
	for k.put(numbered(n, 1500), epoch+time.Duration(n)) {
		n++
	}
	if n != tapFrames {
		t.Fatalf("the ring holds %d frames, want %d", n, tapFrames)
	}
	want(numbered(n, 1500), 0, false)
	want(numbered(0, 1500), epoch, true)
	want(numbered(n-1, 1500), epoch+time.Duration(n-1), true)
	if !k.put(numbered(0, 1500), epoch) {
		t.Error("what was skipped makes no room")
	}
	// Identical packets are told apart by their order.
	want(numbered(0, 1500), epoch, true)
	k.put(numbered(7, 28), epoch+1)
	k.put(numbered(7, 28), epoch+2)
	want(numbered(7, 28), epoch+1, true)
	want(numbered(7, 28), epoch+2, true)
}

// TestTaken: stamps are put on the loop's clock, never go back, and one that cannot be
// true is not believed.
func TestTaken(t *testing.T) {
	c, err := newClock()
	if err != nil {
		t.Fatal(err)
	}
	k := newFakeKernel()
	d := &direction{tap: k.tap}
	wall := time.Duration(time.Now().UnixNano())
	_, fromReal := c.both()
	near := func(got, want time.Duration) bool {
		// The two readings of both clocks differ by what the clocks are adjusted meanwhile.
		return (got - want).Abs() < time.Millisecond
	}
	k.put(numbered(1, 100), wall-20*time.Millisecond)
	k.put(numbered(2, 100), wall-30*time.Millisecond) // before its predecessor
	k.put(numbered(3, 100), wall+time.Hour)
	k.put(numbered(4, 100), wall-time.Hour)
	first := d.taken(&c, numbered(1, 100))
	if !near(first, wall-20*time.Millisecond+fromReal) {
		t.Errorf("taken at %v, want %v", first, wall-20*time.Millisecond+fromReal)
	}
	if second := d.taken(&c, numbered(2, 100)); second != first {
		t.Errorf("time goes back from %v to %v", first, second)
	}
	if d.unstamped != 0 {
		t.Errorf("%d unstamped, want 0", d.unstamped)
	}
	for i, p := range [][]byte{numbered(3, 100), numbered(4, 100), numbered(5, 100)} {
		before := c.now()
		if got := d.taken(&c, p); got < before || got > c.now() || d.unstamped != int64(i+1) {
			t.Errorf("packet %d: taken at %v, read at %v; %d unstamped", i, got, before, d.unstamped)
		}
	}
	// Without a tap nothing is known, and nothing is claimed to be missing.
	bare := &direction{}
	if before := c.now(); bare.taken(&c, numbered(1, 100)) < before || bare.unstamped != 0 {
		t.Error("a direction without a tap")
	}
}
