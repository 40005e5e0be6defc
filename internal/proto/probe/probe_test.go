package probe

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	testID    = ID{1, 2, 3, 4, 5, 6, 7, 8}
	testNonce = Nonce{0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7}
)

// unhex reads hexadecimal with blanks.
func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The bytes of docs/wire-extension.md §11, the tag made by hand.
func TestLayout(t *testing.T) {
	s := NewSigner(testNonce)
	tag := func(parts ...string) []byte {
		mac := hmac.New(sha256.New, testNonce[:])
		for _, p := range parts {
			mac.Write(unhex(t, p))
		}
		return mac.Sum(nil)[:8]
	}
	request := make([]byte, 50)
	PutRequest(request, Request{Test: testID, Seq: 0x01020304, Flags: FlagShort, Sent: 0x1122334455667788, Answers: 9}, s)
	head, rest := "46425031 0102030405060708", "01020304 0001 0000 1122334455667788 0000000000000009"
	want := append(append(append(unhex(t, head), tag(head, rest)...), unhex(t, rest)...), make([]byte, 6)...)
	if diff := cmp.Diff(want, request); diff != "" {
		t.Errorf("request: -want +have\n%s", diff)
	}
	answer := make([]byte, HeaderSize)
	PutAnswer(answer, Answer{Seq: 7, Flags: FlagKernel, Limited: 3, Received: 0x0102030405060708, Sent: 0x1112131415161718, Count: 5}, s)
	head, rest = "46424131", "00000007 0001 0003 0102030405060708 1112131415161718 0000000000000005"
	want = append(append(unhex(t, head), tag(head, rest)...), unhex(t, rest)...)
	if diff := cmp.Diff(want, answer); diff != "" {
		t.Errorf("answer: -want +have\n%s", diff)
	}
	challenge := make([]byte, ChallengeSize)
	putChallenge(challenge, 7, Token{1, 1, 1, 1, 2, 2, 2, 2}, s)
	head, rest = "46424331", "00000007 0101010102020202"
	want = append(append(unhex(t, head), tag(head, rest)...), unhex(t, rest)...)
	if diff := cmp.Diff(want, challenge); diff != "" {
		t.Errorf("challenge: -want +have\n%s", diff)
	}
	proof := bytes.Repeat([]byte{0xee}, HeaderSize)
	PutProof(proof, testID, Token{1, 1, 1, 1, 2, 2, 2, 2}, s)
	head, rest = "46425231 0102030405060708", "0101010102020202 00000000000000000000000000000000"
	want = append(append(unhex(t, head), tag(head, rest)...), unhex(t, rest)...)
	if diff := cmp.Diff(want, proof); diff != "" {
		t.Errorf("proof: -want +have\n%s", diff)
	}
}

func TestRoundTripOfCodecs(t *testing.T) {
	s := NewSigner(testNonce)
	b := make([]byte, HeaderSize)
	q := Request{Test: testID, Seq: 1<<32 - 1, Flags: 0xffff &^ FlagSized, Sent: -1, Answers: 1 << 40}
	PutRequest(b, q, s)
	if got, ok := ParseRequest(b, s); !ok || got != q {
		t.Errorf("request %+v, %v", got, ok)
	}
	a := Answer{Seq: 1, Flags: 1, Limited: 65535, Received: -5, Sent: 6, Count: 7}
	PutAnswer(b, a, s)
	if got, ok := ParseAnswer(b, s); !ok || got != a {
		t.Errorf("answer %+v, %v", got, ok)
	}
	token := Token{9, 8, 7, 6, 5, 4, 3, 2}
	PutProof(b, testID, token, s)
	if got, ok := parseProof(b, s); !ok || got != token {
		t.Errorf("proof %v, %v", got, ok)
	}
	putChallenge(b[:ChallengeSize], 3, token, s)
	if got, seq, ok := ParseChallenge(b[:ChallengeSize], s); !ok || got != token || seq != 3 {
		t.Errorf("challenge %v, %v", got, ok)
	}
}

// Any bit of a header that is changed, a header that is cut, another key, and another
// kind's parser: each makes it nothing.
func TestForgeries(t *testing.T) {
	s, other := NewSigner(testNonce), NewSigner(Nonce{})
	kinds := map[string]struct {
		make  func([]byte)
		parse func([]byte, *Signer) bool
		size  int
	}{
		"request": {
			func(b []byte) { PutRequest(b, Request{Test: testID, Seq: 1}, s) },
			func(b []byte, s *Signer) bool { _, ok := ParseRequest(b, s); return ok }, HeaderSize,
		},
		"answer": {
			func(b []byte) { PutAnswer(b, Answer{Seq: 1}, s) },
			func(b []byte, s *Signer) bool { _, ok := ParseAnswer(b, s); return ok }, HeaderSize,
		},
		"challenge": {
			func(b []byte) { putChallenge(b, 1, Token{1}, s) },
			func(b []byte, s *Signer) bool { _, _, ok := ParseChallenge(b, s); return ok }, ChallengeSize,
		},
		"proof": {
			func(b []byte) { PutProof(b, testID, Token{1}, s) },
			func(b []byte, s *Signer) bool { _, ok := parseProof(b, s); return ok }, HeaderSize,
		},
	}
	for name, k := range kinds {
		b := make([]byte, HeaderSize)
		k.make(b)
		if !k.parse(b[:k.size], s) {
			t.Errorf("%s: refused", name)
		}
		if k.parse(b[:k.size-1], s) || k.parse(nil, s) {
			t.Errorf("%s: taken though it is cut", name)
		}
		if k.parse(b, other) {
			t.Errorf("%s: taken with another key", name)
		}
		for i := range k.size * 8 {
			b[i/8] ^= 1 << (i % 8)
			if k.parse(b, s) {
				t.Errorf("%s: taken with bit %d changed", name, i)
			}
			b[i/8] ^= 1 << (i % 8)
		}
		for twin, o := range kinds {
			if twin != name && o.parse(b, s) {
				t.Errorf("a %s was taken for a %s", name, twin)
			}
		}
	}
}

func TestHostMark(t *testing.T) {
	a, b := HostMark(testNonce), HostMark(testNonce)
	if a != b {
		t.Errorf("the same test has two marks: %q, %q", a, b)
	}
	if a != "" && a == HostMark(Nonce{}) {
		t.Errorf("two tests have one mark: it would name the host")
	}
	if hostIdentity() != "" && len(a) != 16 {
		t.Errorf("mark %q", a)
	}
}

// FuzzProbe: whatever comes in, nothing that goes out is longer, and nothing goes out for
// what has not the tag of a living test.
func FuzzProbe(f *testing.F) {
	s := NewSigner(testNonce)
	b := make([]byte, 64)
	PutRequest(b, Request{Test: testID, Seq: 1, Sent: 5}, s)
	f.Add(append([]byte{}, b...))
	PutRequest(b, Request{Test: testID, Seq: 2, Flags: FlagShort}, s)
	f.Add(append([]byte{}, b[:HeaderSize]...))
	PutProof(b, testID, Token{1}, s)
	f.Add(append([]byte{}, b...))
	PutAnswer(b, Answer{Seq: 1}, s)
	f.Add(append([]byte{}, b...))
	f.Add([]byte("FBP1"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, in []byte) {
		signer := NewSigner(testNonce)
		r := NewResponder()
		r.Add(Test{ID: testID, Nonce: testNonce, Peer: peer.Addr()})
		before := append([]byte{}, in...)
		_, valid := ParseRequest(in, signer)
		for range 2 {
			for _, from := range []string{"192.0.2.1:1000", "192.0.2.9:1000"} {
				out := r.Answer(nil, in, addrPort(from), Arrival{Received: 1, Now: 2})
				if len(out) > len(in) {
					t.Fatalf("%d bytes for %d", len(out), len(in))
				}
				if out != nil && !valid {
					t.Fatalf("an answer to %x", in)
				}
			}
		}
		if !bytes.Equal(before, in) {
			t.Fatal("the datagram was changed")
		}
		if q, ok := ParseRequest(in, signer); ok {
			again := make([]byte, HeaderSize)
			PutRequest(again, q, signer)
			if p, ok := ParseRequest(again, signer); !ok || p != q {
				t.Fatalf("%+v became %+v", q, p)
			}
		}
		_, _ = ParseAnswer(in, signer)
		_, _, _ = ParseChallenge(in, signer)
	})
}
