package link

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Key is what routers tell flows apart by: the 5-tuple. Without ports (ICMP, fragments)
// these are 0.
type Key struct {
	Src, Dst         [16]byte // IPv4 addresses mapped
	SrcPort, DstPort uint16
	Proto            uint8
}

// Hash is a way to spread flows over members.
type Hash uint8

// The ways to spread flows.
const (
	HashFlow      Hash = iota // by the 5-tuple: each direction of a connection for itself
	HashSymmetric             // by the 5-tuple, both directions of a connection alike
	HashAddresses             // by the two addresses: all flows of two hosts alike
)

var hashNames = [...]string{"flow", "symmetric", "addresses"}

// String returns the name that scenarios use.
func (h Hash) String() string {
	if int(h) < len(hashNames) {
		return hashNames[h]
	}
	return fmt.Sprintf("hash(%d)", uint8(h))
}

// ParseHash reads what String prints.
func ParseHash(s string) (Hash, error) {
	for i, name := range hashNames {
		if s == name {
			return Hash(i), nil
		}
	}
	return 0, fmt.Errorf("%q is none of: flow, symmetric, addresses", s)
}

// Flow is a number that tells flows apart, but for a chance of 2^-64 each two.
func (k Key) Flow() uint64 { return k.hash(0) }

// Spread is the number that chooses a flow's member. Another seed spreads otherwise.
func (k Key) Spread(by Hash, seed uint64) uint64 {
	if by == HashAddresses {
		k.SrcPort, k.DstPort, k.Proto = 0, 0, 0
	}
	if by != HashFlow {
		if c := bytes.Compare(k.Src[:], k.Dst[:]); c > 0 || c == 0 && k.SrcPort > k.DstPort {
			k.Src, k.Dst, k.SrcPort, k.DstPort = k.Dst, k.Src, k.DstPort, k.SrcPort
		}
	}
	return k.hash(mix(seed + 1))
}

func (k *Key) hash(h uint64) uint64 {
	for _, a := range [2]*[16]byte{&k.Src, &k.Dst} {
		h = mix(h ^ binary.BigEndian.Uint64(a[:8]))
		h = mix(h ^ binary.BigEndian.Uint64(a[8:]))
	}
	return mix(h ^ (uint64(k.SrcPort)<<24 | uint64(k.DstPort)<<8 | uint64(k.Proto)))
}

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014), a bijection in which each
// bit depends on each.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
