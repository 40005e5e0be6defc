// Package probe is the small request and answer by which two fullbores measure delay:
// the datagrams (docs/wire-extension.md §11), the Responder that answers them without
// being of use to anybody as an amplifier, and the Prober that sends them, matches the
// answers and makes result.Probes of them (spec methods M-DELAY, M-CLOCK). The same for
// requests over one TCP connection: Echo and RoundTrips.
//
// It opens no sockets: who does hands datagrams to the Responder and a Conn to the
// Prober. Times are ns of a host's monotonic clock (osnet.Monotonic); the two hosts' have
// nothing to do with each other.
package probe

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// The four kinds of datagrams begin with these.
const (
	MagicRequest   = "FBP1" // client: answer me
	MagicAnswer    = "FBA1" // server
	MagicChallenge = "FBC1" // server, to an address that is not the control connection's: echo my token
	MagicProof     = "FBR1" // client: here is the token
)

// Sizes in bytes.
const (
	HeaderSize    = 44 // of a request, an answer and a proof; a datagram may be longer, padded with zeros
	ChallengeSize = 24
	tagSize       = 8
	magicSize     = 4
)

// MaxRate is how many requests a second of one test are answered.
const MaxRate = 1000

// ID names a test in its datagrams; Nonce is the key of its tags. The server's hello
// carries both.
type (
	ID    [8]byte
	Nonce [8]byte
)

// Flags of a request and of an answer.
const (
	FlagShort   = 1 << 0 // request: answer with HeaderSize bytes, however long this is
	FlagSized   = 1 << 1 // request: answer with Wanted bytes that nobody may fragment
	FlagKernel  = 1 << 0 // answer: T2 is a stamp of the kernel, not of the program
	FlagTooLong = 1 << 1 // answer: it could not be sent with as many bytes as were wanted
	// FlagArrivals: in a request, tell what of the test's datagrams has arrived; in an answer, it
	// is told behind the header.
	FlagArrivals = 1 << 2
)

// ArrivalsSize is the least length of a request that asks for Arrivals, and of their answer.
const ArrivalsSize = HeaderSize + 32

// Arrivals are what the answering end's receivers of a test's datagrams have counted since its
// start, all streams together. They only grow.
type Arrivals struct {
	Distinct   int64 // different datagrams
	Passed     int64 // sequence numbers up to the highest of each stream; less Distinct: missing so far
	Reordered  int64
	Duplicates int64
}

func putArrivals(b []byte, a Arrivals) {
	for i, v := range []int64{a.Distinct, a.Passed, a.Reordered, a.Duplicates} {
		binary.BigEndian.PutUint64(b[HeaderSize+8*i:], uint64(v))
	}
}

// ParseArrivals reads what follows an answer's header; false = it does not tell.
func ParseArrivals(b []byte, a Answer) (Arrivals, bool) {
	if a.Flags&FlagArrivals == 0 || len(b) < ArrivalsSize {
		return Arrivals{}, false
	}
	at := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[HeaderSize+8*i:]) & (1<<63 - 1)) }
	return Arrivals{Distinct: at(0), Passed: at(1), Reordered: at(2), Duplicates: at(3)}, true
}

// Request asks for an answer.
type Request struct {
	Test    ID
	Seq     uint32 // from 1; each is answered at most once
	Flags   uint16
	Class   uint8 // traffic class byte that the answer is to have (DSCP × 4; the ECN bits are not heeded)
	Lane    uint8 // which of the test's probe streams this is of; each has its own numbers and counts
	Sent    int64 // T1, ns of the client's clock
	Answers int64 // how many answers have come so far
	// Wanted is the payload of the answer, bytes, with FlagSized; it stands in the place of Answers.
	Wanted int
}

// Answer is the reflector's.
type Answer struct {
	Seq   uint32
	Flags uint16
	// Limited is how many requests were received but not answered, because there were more
	// than MaxRate a second; it stops at 65535.
	Limited  uint16
	Received int64 // T2, ns of the server's clock
	Sent     int64 // T3
	Count    int64 // how many different requests were received so far (RFC 6673)
}

// Signer makes the tags of one test: the first 8 bytes of HMAC-SHA-256, keyed with the
// nonce, over the header without the tag. Whoever sees the control connection can make
// them; whoever does not must guess 64 bits of test id and 64 of tag, one try a datagram,
// and learns nothing from a wrong one. It is not safe for concurrent use.
type Signer struct {
	mac hash.Hash
	sum [sha256.Size]byte
}

// NewSigner returns the signer of a test.
func NewSigner(n Nonce) *Signer { return &Signer{mac: hmac.New(sha256.New, n[:])} }

// tag computes the tag over the parts of a header around it.
func (s *Signer) tag(before, after []byte) []byte {
	s.mac.Reset()
	s.mac.Write(before)
	s.mac.Write(after)
	return s.mac.Sum(s.sum[:0])[:tagSize]
}

// sign puts the tag of header b at offset at.
func (s *Signer) sign(b []byte, at int) { copy(b[at:], s.tag(b[:at], b[at+tagSize:])) }

// valid compares the tag at offset at, in constant time.
func (s *Signer) valid(b []byte, at int) bool {
	return hmac.Equal(b[at:at+tagSize], s.tag(b[:at], b[at+tagSize:]))
}

// Offsets of the tags.
const (
	tagRequest = magicSize + 8 // behind the test id
	tagAnswer  = magicSize
)

// PutRequest writes r into b, which must hold at least HeaderSize bytes; what lies behind
// the header is the caller's padding.
func PutRequest(b []byte, r Request, s *Signer) {
	copy(b, MagicRequest)
	copy(b[4:], r.Test[:])
	binary.BigEndian.PutUint32(b[20:], r.Seq)
	binary.BigEndian.PutUint16(b[24:], r.Flags)
	b[26], b[27] = r.Class, r.Lane
	binary.BigEndian.PutUint64(b[28:], uint64(r.Sent))
	last := r.Answers
	if r.Flags&FlagSized != 0 {
		last = int64(r.Wanted)
	}
	binary.BigEndian.PutUint64(b[36:], uint64(last))
	s.sign(b[:HeaderSize], tagRequest)
}

// AnswerClass is the traffic class byte of the answer to req, which a Responder has answered.
func AnswerClass(req []byte) uint8 {
	if len(req) < HeaderSize {
		return 0
	}
	return req[26] &^ 3
}

// Sized reports that req asks for an answer of its own length, which nobody may fragment.
func Sized(req []byte) bool {
	return len(req) >= HeaderSize && string(req[:magicSize]) == MagicRequest && binary.BigEndian.Uint16(req[24:])&FlagSized != 0
}

// maxPayload is the most that UDP carries over IPv6; over IPv4 it is 20 less.
const maxPayload = 65535 - 8

// Lanes is how many probe streams a test may have at once.
const Lanes = 4

// IsRequest reports that b is for a Responder: a request or a proof.
func IsRequest(b []byte) bool {
	return len(b) >= magicSize && (string(b[:magicSize]) == MagicRequest || string(b[:magicSize]) == MagicProof)
}

// testOf is the test id of a request or a proof of sufficient length.
func testOf(b []byte) (ID, bool) {
	if len(b) < HeaderSize || !IsRequest(b) {
		return ID{}, false
	}
	return ID(b[4:12]), true
}

// ParseRequest reads a request; false = it is none of this test. What is reserved is
// ignored.
func ParseRequest(b []byte, s *Signer) (Request, bool) {
	if len(b) < HeaderSize || string(b[:magicSize]) != MagicRequest || !s.valid(b[:HeaderSize], tagRequest) {
		return Request{}, false
	}
	r := Request{
		Test: ID(b[4:12]), Seq: binary.BigEndian.Uint32(b[20:]), Flags: binary.BigEndian.Uint16(b[24:]),
		Class: b[26] &^ 3, Lane: b[27], Sent: int64(binary.BigEndian.Uint64(b[28:])), Answers: int64(binary.BigEndian.Uint64(b[36:])),
	}
	if r.Flags&FlagSized != 0 {
		r.Wanted, r.Answers = int(min(uint64(r.Answers), maxPayload)), 0
	}
	return r, true
}

// PutAnswer writes a into the first HeaderSize bytes of b.
func PutAnswer(b []byte, a Answer, s *Signer) {
	copy(b, MagicAnswer)
	binary.BigEndian.PutUint32(b[12:], a.Seq)
	binary.BigEndian.PutUint16(b[16:], a.Flags)
	binary.BigEndian.PutUint16(b[18:], a.Limited)
	binary.BigEndian.PutUint64(b[20:], uint64(a.Received))
	binary.BigEndian.PutUint64(b[28:], uint64(a.Sent))
	binary.BigEndian.PutUint64(b[36:], uint64(a.Count))
	s.sign(b[:HeaderSize], tagAnswer)
}

// ParseAnswer reads an answer; false = it is none of this test.
func ParseAnswer(b []byte, s *Signer) (Answer, bool) {
	if len(b) < HeaderSize || string(b[:magicSize]) != MagicAnswer || !s.valid(b[:HeaderSize], tagAnswer) {
		return Answer{}, false
	}
	return Answer{
		Seq: binary.BigEndian.Uint32(b[12:]), Flags: binary.BigEndian.Uint16(b[16:]), Limited: binary.BigEndian.Uint16(b[18:]),
		Received: int64(binary.BigEndian.Uint64(b[20:])), Sent: int64(binary.BigEndian.Uint64(b[28:])), Count: int64(binary.BigEndian.Uint64(b[36:])),
	}, true
}

// Token proves that somebody receives at an address.
type Token [8]byte

// putChallenge writes the ChallengeSize bytes that ask for an echo.
func putChallenge(b []byte, seq uint32, t Token, s *Signer) {
	copy(b, MagicChallenge)
	binary.BigEndian.PutUint32(b[12:], seq)
	copy(b[16:], t[:])
	s.sign(b[:ChallengeSize], tagAnswer)
}

// ParseChallenge reads the token that is to be echoed, and which request it is in place of
// an answer to; false = b is no challenge of this test.
func ParseChallenge(b []byte, s *Signer) (t Token, seq uint32, ok bool) {
	if len(b) < ChallengeSize || string(b[:magicSize]) != MagicChallenge || !s.valid(b[:ChallengeSize], tagAnswer) {
		return Token{}, 0, false
	}
	return Token(b[16:24]), binary.BigEndian.Uint32(b[12:]), true
}

// PutProof writes the echo of a token into the first HeaderSize bytes of b.
func PutProof(b []byte, test ID, t Token, s *Signer) {
	clear(b[:HeaderSize])
	copy(b, MagicProof)
	copy(b[4:], test[:])
	copy(b[20:], t[:])
	s.sign(b[:HeaderSize], tagRequest)
}

// parseProof reads the token of a proof.
func parseProof(b []byte, s *Signer) (Token, bool) {
	if len(b) < HeaderSize || string(b[:magicSize]) != MagicProof || !s.valid(b[:HeaderSize], tagRequest) {
		return Token{}, false
	}
	return Token(b[20:28]), true
}
