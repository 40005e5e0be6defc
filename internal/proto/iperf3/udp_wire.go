package iperf3

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"slices"
)

// What a UDP stream begins with (spec §7.3; docs/wire-extension.md §3): the client's
// greeting, the server's answer, and between two fullbores cookie, index and token.

// Sizes of the datagrams of a stream's set-up.
const (
	greetingSize  = 4
	extendedSize  = greetingSize + CookieSize + IndexSize // 45
	tokenSize     = 16
	challengeSize = len(challengeMagic) + tokenSize // 20: never longer than what it answers
	provenSize    = extendedSize + tokenSize        // 61
)

// challengeMagic begins the datagram (or, on a TCP stream, the bytes) that carries a token.
const challengeMagic = "FBT1"

// The words of this package; the others are read only.
var (
	udpGreeting = []byte("9876") // 3.12 and later
	udpAnswer   = []byte("6789")
)

// greetings and answers are what any release on any machine sends (spec §7.3).
var (
	greetings = [][]byte{
		udpGreeting, []byte("6789"), // 3.12–3.16 on a big-endian machine swap the two
		{0x15, 0xcd, 0x5b, 0x07}, {0x07, 0x5b, 0xcd, 0x15}, // up to 3.11, either byte order
	}
	answers = [][]byte{
		udpAnswer, []byte("9876"),
		{0xb1, 0x68, 0xde, 0x3a},
		{0x3a, 0xde, 0x68, 0xb1},
	}
)

func isOneOf(b []byte, words [][]byte) bool {
	return len(b) == greetingSize && slices.ContainsFunc(words, func(w []byte) bool { return bytes.Equal(b, w) })
}

// isGreeting reports that b is what a release of iperf3 greets with.
func isGreeting(b []byte) bool { return isOneOf(b, greetings) }

// isAnswer reports that b is what a release of iperf3 answers.
func isAnswer(b []byte) bool { return isOneOf(b, answers) }

// proof is a token: it proves that its sender gets what is sent to its address.
type proof [tokenSize]byte

// greeting is the extended greeting.
type greeting struct {
	cookie Cookie
	index  uint32
	token  *proof // nil = none
}

func (g greeting) append(b []byte) []byte {
	b = append(b, udpGreeting...)
	b = append(b, g.cookie[:]...)
	b = binary.BigEndian.AppendUint32(b, g.index)
	if g.token != nil {
		b = append(b, g.token[:]...)
	}
	return b
}

// decodeGreeting reads an extended greeting; false = b is none.
func decodeGreeting(b []byte) (g greeting, ok bool) {
	if len(b) != extendedSize && len(b) != provenSize || !bytes.HasPrefix(b, udpGreeting) {
		return g, false
	}
	b = b[greetingSize:]
	b = b[copy(g.cookie[:], b):]
	g.index = binary.BigEndian.Uint32(b)
	if b = b[IndexSize:]; len(b) > 0 {
		g.token = new(proof)
		copy(g.token[:], b)
	}
	return g, true
}

// challenge is the datagram that asks for a proof of address.
func (t proof) challenge() []byte { return append([]byte(challengeMagic), t[:]...) }

// decodeChallenge reads a challenge; nil = b is none.
func decodeChallenge(b []byte) *proof {
	if len(b) != challengeSize || !bytes.HasPrefix(b, []byte(challengeMagic)) {
		return nil
	}
	t := new(proof)
	copy(t[:], b[len(challengeMagic):])
	return t
}

// newProof is the token of one address for one stream of the test that secret belongs
// to. It is computed again when it comes back, so that asking for it stores nothing.
func newProof(secret []byte, index uint32, from netip.AddrPort) (t proof) {
	mac := hmac.New(sha256.New, secret)
	mac.Write(binary.BigEndian.AppendUint32(nil, index))
	mac.Write([]byte(from.String()))
	copy(t[:], mac.Sum(nil))
	return t
}

// valid compares in constant time.
func (t proof) valid(o *proof) bool { return o != nil && hmac.Equal(t[:], o[:]) }

// plausibleDatagram reports that b can be the first datagram of a running test's stream:
// len bytes long, with the nonce where there is one, and a small sequence number.
func plausibleDatagram(b []byte, size int, wide bool, nonce uint64) bool {
	if len(b) != size || size < 16 {
		return false
	}
	if nonce != 0 && (size < 32 || binary.BigEndian.Uint64(b[24:]) != nonce) {
		return false
	}
	seq := uint64(binary.BigEndian.Uint32(b[8:]))
	if wide {
		seq = binary.BigEndian.Uint64(b[8:])
	}
	return seq >= 1 && seq < 1<<20
}
