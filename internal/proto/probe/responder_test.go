package probe

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func addrPort(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

var peer = addrPort("192.0.2.1:40000")

// reflectorOf is a Responder with one test.
func reflectorOf() (*Responder, *Signer) {
	r := NewResponder()
	r.Add(Test{ID: testID, Nonce: testNonce, Peer: peer.Addr()})
	return r, NewSigner(testNonce)
}

// request makes one of size bytes.
func request(s *Signer, size int, q Request) []byte {
	b := make([]byte, size)
	for i := HeaderSize; i < size; i++ {
		b[i] = 0xaa
	}
	if q.Test == (ID{}) {
		q.Test = testID
	}
	PutRequest(b, q, s)
	return b
}

func TestResponderAnswers(t *testing.T) {
	r, s := reflectorOf()
	for name, c := range map[string]struct {
		size, want int
		q          Request
		at         Arrival
		answer     Answer
	}{
		"plain":  {64, 64, Request{Seq: 1, Sent: 77}, Arrival{100, 105, false}, Answer{Seq: 1, Received: 100, Sent: 105}},
		"kernel": {64, 64, Request{Seq: 2}, Arrival{200, 205, true}, Answer{Seq: 2, Flags: FlagKernel, Received: 200, Sent: 205}},
		"least":  {44, 44, Request{Seq: 3}, Arrival{300, 305, false}, Answer{Seq: 3, Received: 300, Sent: 305}},
		"large":  {9000, 9000, Request{Seq: 4}, Arrival{400, 405, false}, Answer{Seq: 4, Received: 400, Sent: 405}},
		"short":  {1400, 44, Request{Seq: 5, Flags: FlagShort}, Arrival{500, 505, false}, Answer{Seq: 5, Received: 500, Sent: 505}},
	} {
		out := r.Answer(nil, request(s, c.size, c.q), peer, c.at)
		if len(out) != c.want {
			t.Errorf("%s: %d bytes, want %d", name, len(out), c.want)
			continue
		}
		a, ok := ParseAnswer(out, s)
		c.answer.Count = a.Count // depends on the order of the map
		if diff := cmp.Diff(c.answer, a); !ok || diff != "" {
			t.Errorf("%s: %v %s", name, ok, diff)
		}
		if slices.ContainsFunc(out[HeaderSize:], func(b byte) bool { return b != 0 }) {
			t.Errorf("%s: the padding of the request came back", name)
		}
	}
	if c := r.Counts(testID); c != (Counts{Received: 5, Answered: 5}) {
		t.Errorf("counts %+v", c)
	}
	if c := r.Remove(testID); c.Received != 5 {
		t.Errorf("counts at the end %+v", c)
	}
	if out := r.Answer(nil, request(s, 64, Request{Seq: 6}), peer, Arrival{}); out != nil {
		t.Error("a test that is over was answered")
	}
	if c := r.Remove(testID); c != (Counts{}) {
		t.Errorf("counts of no test %+v", c)
	}
}

// The room that the caller gives is used; the request is not written to.
func TestResponderUsesRoom(t *testing.T) {
	r, s := reflectorOf()
	room := make([]byte, 0, 128)
	q := request(s, 100, Request{Seq: 1})
	before := slices.Clone(q)
	out := r.Answer(room, q, peer, Arrival{1, 2, false})
	if len(out) != 100 || &out[0] != &room[:1][0] {
		t.Error("the room was not used")
	}
	if !slices.Equal(before, q) {
		t.Error("the request was changed")
	}
}

func TestResponderIgnores(t *testing.T) {
	r, s := reflectorOf()
	good := request(s, 64, Request{Seq: 1})
	wrongTag := slices.Clone(good)
	wrongTag[15] ^= 1
	for name, b := range map[string][]byte{
		"nothing":        nil,
		"four bytes":     []byte("FBP1"),
		"43 bytes":       good[:43],
		"another test":   request(s, 64, Request{Test: ID{9}, Seq: 1}),
		"a wrong tag":    wrongTag,
		"another key":    request(NewSigner(Nonce{1}), 64, Request{Seq: 1}),
		"sequence 0":     request(s, 64, Request{Seq: 0}),
		"another word":   append([]byte("FBP2"), good[4:]...),
		"our own answer": r.Answer(nil, request(s, 64, Request{Seq: 99}), peer, Arrival{1, 2, false}),
	} {
		if out := r.Answer(nil, b, peer, Arrival{1, 2, false}); out != nil {
			t.Errorf("%s was answered with %x", name, out)
		}
	}
	if c := r.Counts(testID); c.Received != 1 || c.Answered != 1 {
		t.Errorf("what is ignored was counted: %+v", c)
	}
}

// A recorded request is good for nothing, in whatever order the recordings come.
func TestResponderReplay(t *testing.T) {
	r, s := reflectorOf()
	now := int64(0)
	ask := func(seq uint32) bool {
		now += int64(time.Second / MaxRate)
		return r.Answer(nil, request(s, 64, Request{Seq: seq}), peer, Arrival{now, now, false}) != nil
	}
	for _, c := range []struct {
		seq  uint32
		want bool
	}{
		{1, true},
		{1, false},
		{3, true},
		{2, true},
		{2, false},
		{3, false},
		{4096, true},
		{1, false},
		{5, true},
		{5, false},
		{4101, true},
		{5, false},
		{6, true}, // 5 is the last that is too old
		{1 << 31, true},
		{1 << 31, false},
		{4101, false},
		{1<<31 - 4095, true},
		{1<<31 - 4096, false},
		{1<<32 - 1, true},
		{1<<32 - 1, false},
		{0, false},
	} {
		if got := ask(c.seq); got != c.want {
			t.Errorf("sequence %d: answered %v, want %v", c.seq, got, c.want)
		}
	}
	if c := r.Counts(testID); c.Received != 10 || c.Duplicates != 10 {
		t.Errorf("counts %+v", c)
	}
}

// At most MaxRate a second are answered, with a burst; what is not is counted and told.
func TestResponderRate(t *testing.T) {
	r, s := reflectorOf()
	seq := uint32(0)
	second := func(start int64, n int) (answered int, last Answer) {
		for i := range n {
			seq++
			now := start + int64(i)*int64(time.Second)/int64(n)
			if out := r.Answer(nil, request(s, 64, Request{Seq: seq}), peer, Arrival{now, now, false}); out != nil {
				answered++
				last, _ = ParseAnswer(out, s)
			}
		}
		return answered, last
	}
	sec := int64(time.Second)
	if n, last := second(0, MaxRate); n != MaxRate || last.Limited != 0 {
		t.Errorf("at the limit %d of %d answered, %d told as left out", n, MaxRate, last.Limited)
	}
	n, last := second(sec, 20*MaxRate)
	if n < MaxRate || n > MaxRate*slack+burst {
		t.Errorf("of %d in a second %d answered", 20*MaxRate, n)
	}
	if left := r.Counts(testID).Limited; left != int64(20*MaxRate-n) || int64(last.Limited) > left || int64(last.Limited) < left-100 {
		t.Errorf("left out %d, counted %d, told %d", 20*MaxRate-n, left, last.Limited)
	}
	if n, _ := second(2*sec, 20*MaxRate); n > MaxRate*slack+1 {
		t.Errorf("in the next second, with no burst left, %d answered", n)
	}
	// A clock that goes back gives nothing away.
	if n, _ := second(0, 5*MaxRate); n > burst {
		t.Errorf("%d answered by a clock that was set back", n)
	}
	c := r.Counts(testID)
	if c.Received != int64(seq) || c.Answered+c.Limited != c.Received {
		t.Errorf("counts %+v of %d", c, seq)
	}
}

// Another address gets a token of 24 bytes, a few a second; only with it, and only from
// there, it is answered.
func TestResponderAddress(t *testing.T) {
	r, s := reflectorOf()
	other, third := addrPort("198.51.100.7:5000"), addrPort("198.51.100.8:5000")
	seq := uint32(0)
	ask := func(from netip.AddrPort, now int64) []byte {
		seq++
		return r.Answer(nil, request(s, 64, Request{Seq: seq}), from, Arrival{now, now, false})
	}
	prove := func(from netip.AddrPort, token Token) {
		b := make([]byte, HeaderSize)
		PutProof(b, testID, token, s)
		if out := r.Answer(nil, b, from, Arrival{1, 1, false}); out != nil {
			t.Errorf("a proof got an answer: %x", out)
		}
	}
	challenge := ask(other, 1)
	token, which, ok := ParseChallenge(challenge, s)
	if !ok || which != 1 || len(challenge) != ChallengeSize {
		t.Fatalf("challenge %x", challenge)
	}
	if c := r.Counts(testID); c != (Counts{}) {
		t.Errorf("counted though nobody proved anything: %+v", c)
	}
	prove(other, Token{1})
	prove(third, token) // the token is of the other address
	for _, from := range []netip.AddrPort{other, third} {
		if _, ok := ParseAnswer(ask(from, 2), s); ok {
			t.Errorf("%v was answered without proof", from)
		}
	}
	prove(other, token)
	if _, ok := ParseAnswer(ask(netip.AddrPortFrom(other.Addr(), 6000), 3), s); !ok {
		t.Error("an address that proved itself was not answered")
	}
	if _, ok := ParseAnswer(ask(peer, 3), s); !ok {
		t.Error("the client's own address was not answered")
	}
	if _, ok := ParseAnswer(ask(addrPort("[::ffff:192.0.2.1]:9"), 3), s); !ok {
		t.Error("the client's own address, mapped, was not answered")
	}
	sent := 0
	for range 1000 {
		if ask(third, 4) != nil {
			sent++
		}
	}
	if sent > challengeRate {
		t.Errorf("%d challenges at once", sent)
	}
	for i := range maxProven + 1 { // the oldest makes room
		a := netip.AddrFrom4([4]byte{203, 0, 113, byte(i)})
		prove(netip.AddrPortFrom(a, 1), Token(r.token(testID, a)))
	}
	if _, ok := ParseAnswer(ask(other, 5), s); ok {
		t.Error("more addresses are kept than maxProven")
	}
}

// What strangers send costs a look-up: no memory, no hash.
func TestResponderStrangersCostNothing(t *testing.T) {
	r, s := reflectorOf()
	alien := request(s, 64, Request{Test: ID{7}, Seq: 1})
	if n := testing.AllocsPerRun(100, func() { r.Answer(nil, alien, peer, Arrival{1, 2, false}) }); n != 0 {
		t.Errorf("%v allocations for a stranger", n)
	}
	room := make([]byte, 0, 64)
	seq, b := uint32(0), make([]byte, 64)
	if n := testing.AllocsPerRun(100, func() {
		seq++
		PutRequest(b, Request{Test: testID, Seq: seq}, s)
		if r.Answer(room, b, peer, Arrival{int64(seq) * 1e6, int64(seq) * 1e6, false}) == nil {
			t.Error("not answered")
		}
	}); n != 0 {
		t.Errorf("%v allocations an answer", n)
	}
}
