package iperf3

import "time"

// Timeouts bound every phase of a conversation, so that no peer, alive, frozen or
// gone, holds this end for longer. The zero value of a field means its default.
type Timeouts struct {
	// Header: a new connection must have sent its cookie within it, and then its
	// parameters within as long again. 9 s, so that it is over before 10.
	Header time.Duration
	// Answer: what answers a message at once (states, documents) must begin to arrive
	// within it. 9 s, so that a test whose path was cut ends within 10 s of its time.
	Answer time.Duration
	// Stream: the longest pause between two streams while they are set up. 30 s.
	Stream time.Duration
	// UDPAnswer: a UDP stream's greeting must be answered within it. 9 s.
	UDPAnswer time.Duration
	// Turn: how long a plain UDP test waits while another client at its address sets up its
	// streams; then it is told busy. 8 s, so that the client still listens.
	Turn time.Duration
	// Ended: for so long a UDP stream's late datagrams are known for what they are. 30 s.
	Ended time.Duration
	// Drain: how long a send queue may stand still before the end of a limited test
	// stops waiting for it. 10 s.
	Drain time.Duration
	// Grace: a server ends a test so long after its nominal end, as iperf3 does. 40 s.
	Grace time.Duration
	// Reason: how long to wait for the control connection to say why all streams ended. 2 s.
	Reason time.Duration
	// Linger: how long to wait for the peer to read our last words. 2 s.
	Linger time.Duration
	// Stopping: how long an interrupted client waits for the other end's figures. 2 s.
	Stopping time.Duration
}

func (t Timeouts) filled() Timeouts {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&t.Header, 9*time.Second)
	def(&t.Answer, 9*time.Second)
	def(&t.Stream, 30*time.Second)
	def(&t.UDPAnswer, 9*time.Second)
	def(&t.Turn, 8*time.Second)
	def(&t.Ended, 30*time.Second)
	def(&t.Drain, 10*time.Second)
	def(&t.Grace, 40*time.Second)
	def(&t.Reason, 2*time.Second)
	def(&t.Linger, 2*time.Second)
	def(&t.Stopping, 2*time.Second)
	return t
}
