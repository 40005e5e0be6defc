// Package forward carries packets between two TUN devices by the schedules of two
// link.Link: the live half of the emulated path.
//
// It runs as a process of its own (Start, Main), because its only virtue is
// punctuality: no garbage collection, nothing else that could hold it up, the best
// place in the ordinary scheduling class, and a second worker in reserve for the moments
// in which the first gets no processor. It measures its own faults, so that whoever uses the path knows whether the
// path was what it claims to be: how late each packet was written, what was lost
// unasked, and what really left (package truth).
package forward

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab/hist"
	"github.com/fullbore-net/fullbore/internal/lab/link"
	"github.com/fullbore-net/fullbore/internal/lab/truth"
)

// MinMTU and MaxMTU bound the packets carried: the smallest that IPv6 permits
// (RFC 8200 §5) and the largest IP packet.
const (
	MinMTU = 1280
	MaxMTU = link.MaxPacket
)

// Config is what the process is told on its standard input.
type Config struct {
	// Links holds the schedule from device a to device b, then from b to a.
	Links [2]link.Config `json:"links"`
	// MTU is the devices' MTU, bytes.
	MTU int `json:"mtu"`
	// Truth asks for the series of package truth. They grow with the run, by some 24
	// bytes a flow and millisecond, and 16 bytes a datagram, so an endless run goes without.
	Truth bool `json:"truth"`
	// DataOnly spares, in each direction, all but the datagrams of a measurement
	// (truth.IsData) from faults and random loss, so that neither control connection nor
	// greeting takes part.
	DataOnly [2]bool `json:"data_only"`
	// Boxes are what happens to the content of packets in each direction.
	Boxes [2]Box `json:"boxes"`
	// HalfDuplex: see link.PathConfig.
	HalfDuplex bool `json:"half_duplex"`
	// Hash says how flows are spread over the members of a direction; another HashSeed
	// spreads them otherwise.
	Hash     link.Hash `json:"hash"`
	HashSeed uint64    `json:"hash_seed"`
}

// Plain reports whether two plain links carry out c.
func (c Config) Plain() bool { return c.path().Plain() }

// path is what the schedule needs to know.
func (c Config) path() link.PathConfig {
	return link.PathConfig{Directions: c.Links, HalfDuplex: c.HalfDuplex}
}

// RTT is the round-trip time of the empty path: both delays, of the quickest member each.
func (c Config) RTT() time.Duration {
	var rtt time.Duration
	for _, l := range c.Links {
		delay := l.Delay
		for i, m := range l.Members {
			if i == 0 || m.Delay < delay {
				delay = m.Delay
			}
		}
		rtt += delay
	}
	return rtt
}

// Validate reports every fault of c.
func (c Config) Validate() error {
	var errs []error
	if c.MTU < MinMTU || c.MTU > MaxMTU {
		errs = append(errs, fmt.Errorf("forward: mtu %d is outside %d..%d", c.MTU, MinMTU, MaxMTU))
	}
	if err := c.path().Validate(); err != nil {
		errs = append(errs, fmt.Errorf("forward: %w", err))
	}
	for _, b := range c.Boxes {
		errs = append(errs, b.validate())
	}
	if c.Hash > link.HashAddresses {
		errs = append(errs, fmt.Errorf("forward: unknown hash %d", c.Hash))
	}
	return errors.Join(errs...)
}

// Report is the state of both directions at one moment. Times are CLOCK_MONOTONIC.
type Report struct {
	Start time.Duration `json:"start_ns"` // when the first packet could have been taken
	Now   time.Duration `json:"now_ns"`   // when this report was made
	CPU   time.Duration `json:"cpu_ns"`   // user and system time of the process
	// Directions: from a to b, then from b to a.
	Directions [2]Direction `json:"directions"`
}

// Lateness sums up how much later than planned packets were written.
type Lateness = hist.Summary

// Direction is what one direction has done so far.
type Direction struct {
	Link link.Stats `json:"link"`    // asked: what the schedule took, dropped and lost
	Out  link.Count `json:"out"`     // written into the far device
	Held link.Count `json:"held"`    // in the queue or on the wire now
	Late Lateness   `json:"late_ns"` // of the writes
	// Wait is how long packets waited to be sent: the depth of the queue, a shaper's
	// included. Those that were dropped there do not count.
	Wait hist.Summary `json:"wait_ns"`
	// Members are what the members have done; one entry without members, none when a plain
	// link carried it all. Link has their sum.
	Members []link.PortStats `json:"members,omitempty"`
	// Taken are the flows and their members, when there are several, in order of their
	// first packets.
	Taken []FlowMember `json:"taken,omitempty"`
	// Box is what was done to the content of packets, when there was to be anything.
	Box *BoxStats `json:"box,omitempty"`
	// Failed counts writes that the far device refused, by the name of the error: packets
	// that were lost without having been asked to be.
	Failed map[string]int64 `json:"failed,omitempty"`
	// Unstamped counts packets of which it is not known when the near device got them, so
	// that their schedule began when they were read.
	Unstamped int64 `json:"unstamped,omitempty"`
	// Flows is the TCP payload that left, when Config.Truth asks for it.
	Flows []truth.Flow `json:"flows,omitempty"`
	// Untracked is TCP payload of connections whose start was not seen.
	Untracked int64 `json:"untracked_bytes,omitempty"`
	// Repeats are TCP segments that came although what they carry had come before, when
	// Config.Truth asks for them.
	Repeats int64 `json:"repeated_segments,omitempty"`
	// Repeated is when they came, CLOCK_MONOTONIC, in order; of the first 65536.
	Repeated []time.Duration `json:"repeated_ns,omitempty"`
	// Datagrams are the UDP flows, when Config.Truth asks for them; Fragments, pieces of
	// larger datagrams that are in none of them.
	Datagrams []truth.Datagrams `json:"datagrams,omitempty"`
	Fragments int64             `json:"fragments,omitempty"`
}

// FlowMember is a flow and the member that it took. Without ports these are 0.
type FlowMember struct {
	Src     netip.AddrPort `json:"src"`
	Dst     netip.AddrPort `json:"dst"`
	Proto   uint8          `json:"proto"` // IP protocol number
	Member  int            `json:"member"`
	Offered link.Count     `json:"offered"`
}

// Between returns the TCP payload bytes of all flows that left for the first time
// from t0 to t1, CLOCK_MONOTONIC.
func (d *Direction) Between(t0, t1 time.Duration) (bytes float64) {
	for i := range d.Flows {
		bytes += d.Flows[i].Between(t0, t1)
	}
	return bytes
}

// InOrderBetween is Between for bytes before which nothing is missing any more.
func (d *Direction) InOrderBetween(t0, t1 time.Duration) (bytes float64) {
	for i := range d.Flows {
		bytes += d.Flows[i].InOrderBetween(t0, t1)
	}
	return bytes
}

// DatagramsBetween returns the UDP payload bytes of all flows that left for the first
// time from t0 to t1, CLOCK_MONOTONIC.
func (d *Direction) DatagramsBetween(t0, t1 time.Duration) (bytes float64) {
	for i := range d.Datagrams {
		bytes += d.Datagrams[i].Between(t0, t1)
	}
	return bytes
}
