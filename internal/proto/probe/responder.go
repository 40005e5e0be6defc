package probe

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"net/netip"
	"sync"
)

// Test is one test whose requests a Responder answers.
type Test struct {
	ID    ID
	Nonce Nonce
	Peer  netip.Addr // of the control connection: requests from elsewhere must prove themselves
	// Arrivals tells what of the test's datagrams has arrived here; false = there are none. nil = it
	// is not told. It must not block.
	Arrivals func() (Arrivals, bool)
}

// Counts are what a Responder saw of a test.
type Counts struct {
	Received   int64 `json:"received"`   // different requests
	Answered   int64 `json:"answered"`   // of them
	Limited    int64 `json:"limited"`    // not answered: more than MaxRate a second
	Duplicates int64 `json:"duplicates"` // requests seen again, or too old to tell; never answered
	// Of a test that looked for the path MTU: what the server's system believes of packets towards
	// the client, and its interface's MTU. 0 = not known.
	PathMTU int `json:"path_mtu,omitempty"`
	LinkMTU int `json:"link_mtu,omitempty"`
}

// Arrival says when a request came: Received is its stamp, Now the time of answering, both
// ns of this host's monotonic clock.
type Arrival struct {
	Received, Now int64
	Kernel        bool // Received is the kernel's stamp
}

// Responder answers the requests of living tests. Nothing that it returns is longer than
// what it was given, but for the few packets by which a client that has proved its address
// looks for the path MTU; and it returns nothing to who is not part of a test. It is safe for
// concurrent use.
type Responder struct {
	secret [32]byte // key of tokens
	mu     sync.RWMutex
	tests  map[ID]*reflector
}

// NewResponder returns a Responder without tests.
func NewResponder() *Responder {
	r := &Responder{tests: map[ID]*reflector{}}
	_, _ = rand.Read(r.secret[:]) // never fails (crypto/rand)
	return r
}

// Add begins to answer t.
func (r *Responder) Add(t Test) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tests[t.ID] = &reflector{
		peer: bare(t.Peer), signer: NewSigner(t.Nonce), arrivals: t.Arrivals,
		answers: bucket{rate: MaxRate * slack, size: burst}, challenges: bucket{rate: challengeRate, size: challengeRate},
		sized: bucket{rate: sizedRate * slack, size: sizedRate}, sizedLeft: sizedBytes,
	}
}

// Remove ends a test and returns what was seen of it.
func (r *Responder) Remove(id ID) Counts {
	r.mu.Lock()
	t := r.tests[id]
	delete(r.tests, id)
	r.mu.Unlock()
	if t == nil {
		return Counts{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lanes[0].counts
}

// Counts is what was seen of a test so far.
func (r *Responder) Counts(id ID) Counts {
	r.mu.RLock()
	t := r.tests[id]
	r.mu.RUnlock()
	if t == nil {
		return Counts{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lanes[0].counts
}

// Answer returns what to send to from for the datagram req, nil = nothing. The answer is
// written into dst when it has room for len(req) bytes; req is only read. The test is
// looked up, and its address compared, before anything is hashed.
func (r *Responder) Answer(dst, req []byte, from netip.AddrPort, at Arrival) []byte {
	id, ok := testOf(req)
	if !ok {
		return nil
	}
	r.mu.RLock()
	t := r.tests[id]
	r.mu.RUnlock()
	if t == nil {
		return nil
	}
	if cap(dst) < len(req) {
		dst = make([]byte, len(req))
	}
	addr := bare(from.Addr())
	t.mu.Lock()
	defer t.mu.Unlock()
	if string(req[:magicSize]) == MagicProof {
		if token, ok := parseProof(req, t.signer); ok && hmac.Equal(token[:], r.token(id, addr)) {
			t.prove(addr)
		}
		return nil
	}
	q, ok := ParseRequest(req, t.signer)
	if !ok {
		return nil
	}
	if !t.knows(addr) {
		if !t.challenges.take(at.Now) {
			return nil
		}
		dst = dst[:ChallengeSize]
		putChallenge(dst, q.Seq, Token(r.token(id, addr)), t.signer)
		return dst
	}
	return t.answer(dst, q, len(req), at)
}

// token is what somebody at addr must echo.
func (r *Responder) token(id ID, addr netip.Addr) []byte {
	mac := hmac.New(sha256.New, r.secret[:])
	a := addr.As16()
	mac.Write(id[:])
	mac.Write(a[:])
	return mac.Sum(nil)[:len(Token{})]
}

// bare is an address without what differs between sockets.
func bare(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// reflector is one test at the Responder.
type reflector struct {
	mu         sync.Mutex
	peer       netip.Addr
	proven     []netip.Addr // others that echoed a token; at most maxProven
	signer     *Signer
	lanes      [Lanes]lane
	answers    bucket
	challenges bucket
	sized      bucket // of answers that may be longer than their requests
	sizedLeft  int64  // bytes of them that may yet be sent
	arrivals   func() (Arrivals, bool)
}

// lane is one of a test's probe streams. The first is the one whose counts the results tell.
type lane struct {
	seen   window
	counts Counts
}

// maxProven is how many further addresses one test may use; the oldest makes room.
const maxProven = 4

func (t *reflector) knows(a netip.Addr) bool {
	if a == t.peer {
		return true
	}
	for _, p := range t.proven {
		if p == a {
			return true
		}
	}
	return false
}

func (t *reflector) prove(a netip.Addr) {
	if t.knows(a) {
		return
	}
	if len(t.proven) == maxProven {
		t.proven = t.proven[1:]
	}
	t.proven = append(t.proven, a)
}

// answer counts request q of size bytes and answers it.
func (t *reflector) answer(dst []byte, q Request, size int, at Arrival) []byte {
	if q.Seq == 0 || q.Lane >= Lanes {
		return nil
	}
	l := &t.lanes[q.Lane]
	if !l.seen.first(q.Seq) {
		l.counts.Duplicates++
		return nil
	}
	l.counts.Received++
	if !t.answers.take(at.Now) {
		l.counts.Limited++
		return nil
	}
	l.counts.Answered++
	switch {
	case q.Flags&FlagSized != 0:
		size = max(q.Wanted, HeaderSize)
		if t.sizedLeft < int64(size) || !t.sized.take(at.Now) {
			l.counts.Answered--
			l.counts.Limited++
			return nil
		}
		t.sizedLeft -= int64(size)
	case q.Flags&FlagShort != 0:
		size = HeaderSize
	}
	if cap(dst) < size {
		dst = make([]byte, size)
	}
	dst = dst[:size]
	clear(dst[HeaderSize:])
	a := Answer{
		Seq: q.Seq, Limited: uint16(min(l.counts.Limited, math.MaxUint16)), Received: at.Received, Sent: at.Now, Count: l.counts.Received,
	}
	if at.Kernel {
		a.Flags = FlagKernel
	}
	if q.Flags&FlagArrivals != 0 && size >= ArrivalsSize && t.arrivals != nil {
		if x, ok := t.arrivals(); ok {
			a.Flags |= FlagArrivals
			putArrivals(dst, x)
		}
	}
	PutAnswer(dst, a, t.signer)
	return dst
}

// TooLong makes the answer to req, which Answer has answered, say in HeaderSize bytes that the
// system refused to send it: it is longer than a packet may be there. b is that answer. It returns
// nil when the test is over.
func (r *Responder) TooLong(b, req []byte) []byte {
	id, ok := testOf(req)
	if !ok || len(b) < HeaderSize {
		return nil
	}
	r.mu.RLock()
	t := r.tests[id]
	r.mu.RUnlock()
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	b = b[:HeaderSize]
	binary.BigEndian.PutUint16(b[16:], binary.BigEndian.Uint16(b[16:])|FlagTooLong)
	t.signer.sign(b, tagAnswer)
	return b
}

// window remembers which sequence numbers were seen: the newest windowSize of them. Older
// ones count as seen, so that a recorded request is good for nothing (as RFC 4303 §3.4.3).
type window struct {
	highest uint32
	bits    [windowSize / 64]uint64
}

// windowSize is four seconds of requests at MaxRate.
const windowSize = 4096

// first reports that seq, from 1, was not seen before, and remembers it.
func (w *window) first(seq uint32) bool {
	switch {
	case seq > w.highest:
		if seq-w.highest >= windowSize {
			w.bits = [windowSize / 64]uint64{}
		} else {
			for s := w.highest + 1; s != seq; s++ {
				w.bits[s%windowSize/64] &^= 1 << (s % 64)
			}
		}
		w.highest = seq
	case w.highest-seq >= windowSize:
		return false
	case w.bits[seq%windowSize/64]&(1<<(seq%64)) != 0:
		return false
	}
	w.bits[seq%windowSize/64] |= 1 << (seq % 64)
	return true
}

// The limits of a Responder, per test.
const (
	// slack lets a client whose clock is faster than ours have its MaxRate, too.
	slack = 1.01
	// burst is how many requests may come at once: a path that held them back for 100 ms.
	burst = 100
	// challengeRate bounds what is sent to addresses that nobody has proven, a second.
	challengeRate = 10
	// sizedRate and sizedBytes bound the answers that may be longer than their requests: those a
	// second, and bytes in a whole test. Their receiver has shown that it takes part.
	sizedRate  = 20
	sizedBytes = 8 << 20
)

// bucket is a token bucket of size tokens, full at first and filled at rate a second.
type bucket struct {
	rate, size float64
	spent      float64
	last       int64
	used       bool
}

// take takes a token at now, ns; false = there is none.
func (b *bucket) take(now int64) bool {
	if b.used && now > b.last {
		b.spent = max(0, b.spent-float64(now-b.last)/1e9*b.rate)
	}
	if !b.used || now > b.last {
		b.last, b.used = now, true
	}
	if b.spent+1 > b.size {
		return false
	}
	b.spent++
	return true
}
