// Package datagram is what a UDP test writes into its datagrams and how it counts
// them when they arrive: the header of iperf3 and its extension, the account of one
// stream's receiver (distinct, duplicate, reordered, late; RFC 4737, 5560), the pattern
// of loss (RFC 3357), how sure a loss ratio is, and who lost what (methods M-UDP).
// It is pure: no sockets, no clocks.
package datagram

import (
	"encoding/binary"
	"time"
)

// Sizes of what stands at the start of a datagram. iperf3 sends at least HeaderSize64
// bytes even with 32-bit counters (spec protocol §8).
const (
	HeaderSize   = 12 // seconds, microseconds, 32-bit sequence
	HeaderSize64 = 16 // seconds, microseconds, 64-bit sequence
	ExtSize      = 32 // between two fullbores: send time in ns and nonce in bytes 16–31
)

// PutHeader writes iperf3's header: seconds, microseconds and sequence number, big
// endian. wide is the 64-bit counter. sentMono is in ns of any clock of the sender's
// (iperf3 ≥ 3.7 takes the monotonic one); seconds are cut to 32 bits, as there. b must
// hold HeaderSize or HeaderSize64 bytes.
func PutHeader(b []byte, wide bool, seq uint64, sentMono int64) {
	sec, ns := sentMono/int64(time.Second), sentMono%int64(time.Second)
	binary.BigEndian.PutUint32(b, uint32(sec))
	binary.BigEndian.PutUint32(b[4:], uint32(ns/1000))
	if wide {
		binary.BigEndian.PutUint64(b[8:], seq)
		return
	}
	binary.BigEndian.PutUint32(b[8:], uint32(seq))
}

// Header reads iperf3's header: the sequence number as it is on the wire, to be given
// to Account.Arrive, and the send time in ns of the sender's clock. b must hold
// HeaderSize or HeaderSize64 bytes.
func Header(b []byte, wide bool) (seq uint64, sent int64) {
	sent = int64(binary.BigEndian.Uint32(b))*int64(time.Second) + int64(binary.BigEndian.Uint32(b[4:]))*1000
	if wide {
		return binary.BigEndian.Uint64(b[8:]), sent
	}
	return uint64(binary.BigEndian.Uint32(b[8:])), sent
}

// Plausible reports whether b can start with a header: it is long enough and its
// microseconds are below a second, as every sender's are. A repeated greeting or noise
// of the right size is not: 1 of 4300 random datagrams passes.
func Plausible(b []byte, wide bool) bool {
	size := HeaderSize
	if wide {
		size = HeaderSize64
	}
	return len(b) >= size && binary.BigEndian.Uint32(b[4:]) < 1_000_000
}

// PutExt writes the extension into bytes 16–31: the send time in ns and the run's
// nonce. b is the datagram from its first byte and holds ExtSize bytes.
func PutExt(b []byte, sentMono int64, nonce uint64) {
	binary.BigEndian.PutUint64(b[16:], uint64(sentMono))
	binary.BigEndian.PutUint64(b[24:], nonce)
}

// Ext reads what PutExt wrote. A datagram whose nonce is another is not of this run.
func Ext(b []byte) (sent int64, nonce uint64) {
	return int64(binary.BigEndian.Uint64(b[16:])), binary.BigEndian.Uint64(b[24:])
}
