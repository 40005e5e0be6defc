package probe

import (
	"net/netip"
	"testing"
)

func TestAnswersTellArrivals(t *testing.T) {
	from := netip.MustParseAddrPort("192.0.2.1:4000")
	nonce := Nonce{1, 2, 3}
	id := ID{9}
	told := true
	want := Arrivals{Distinct: 1 << 40, Passed: 1<<40 + 7, Reordered: 3, Duplicates: 2}
	r := NewResponder()
	r.Add(Test{ID: id, Nonce: nonce, Peer: from.Addr(), Arrivals: func() (Arrivals, bool) { return want, told }})
	s := NewSigner(nonce)
	seq := uint32(0)
	ask := func(size int, flags uint16) ([]byte, Answer) {
		t.Helper()
		seq++
		b := make([]byte, size)
		PutRequest(b, Request{Test: id, Seq: seq, Flags: flags, Sent: 1}, s)
		out := r.Answer(nil, b, from, Arrival{Received: 1, Now: 2})
		a, ok := ParseAnswer(out, s)
		if !ok || len(out) > size {
			t.Fatalf("%d bytes asked for, %d came, an answer: %v", size, len(out), ok)
		}
		return out, a
	}
	out, a := ask(ArrivalsSize, FlagArrivals)
	if got, ok := ParseArrivals(out, a); !ok || got != want {
		t.Errorf("told %v: %+v", ok, got)
	}
	for _, c := range []struct {
		name  string
		size  int
		flags uint16
	}{{"too short for it", ArrivalsSize - 1, FlagArrivals}, {"not asked", 128, 0}, {"a short answer wanted", 128, FlagArrivals | FlagShort}} {
		out, a := ask(c.size, c.flags)
		if got, ok := ParseArrivals(out, a); ok {
			t.Errorf("%s: told %+v", c.name, got)
		}
	}
	told = false
	if out, a := ask(128, FlagArrivals); a.Flags&FlagArrivals != 0 || len(out) != 128 {
		t.Error("a test without datagrams tells of them")
	}
}
