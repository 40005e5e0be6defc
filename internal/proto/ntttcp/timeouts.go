package ntttcp

import "time"

// Timeouts bound every phase, so that no peer, alive, frozen or gone, holds this end for
// longer. The zero value of a field means its default.
type Timeouts struct {
	// Connect: how long one connection may take. 10 s.
	Connect time.Duration
	// Header: a visitor of the sync port must have said something sensible within it. 4 s.
	Header time.Duration
	// Answer: what a peer answers at once must be there within it. 12 s, more
	// than a receiver's Turn. A sender that was
	// told to wait for the last one waits without limit.
	Answer time.Duration
	// Hello: how long a receiver that says that it is a fullbore may take for its hello. 4 s.
	Hello time.Duration
	// Stopping: how long an end that is stopped, or from whose peer nothing has come for long,
	// waits for the peer's figures. 2 s.
	Stopping time.Duration
	// Setup: the longest pause while a sender opens its connections. 60 s (the original
	// sender gives up after 1200 s).
	Setup time.Duration
	// Turn: how long a second set-up from one address waits for the first. 10 s.
	Turn time.Duration
	// Settle: when no connection came for so long, the sender's connections are complete.
	// 20 ms; ten times as much for those that come after the start.
	Settle time.Duration
	// Stale: data connections that came so long ago and neither sent data nor tokens are of no
	// sender that is at work. 1 s.
	Stale time.Duration
	// Silence: a test whose end is not in sight breaks off when nothing moves for so long. 30 s.
	Silence time.Duration
	// Linger: how long a sender's connections stay open after the cycle, so that a real
	// receiver's threads notice its end (linux §8.1). 600 ms.
	Linger time.Duration
	// Parting: how long a receiver still answers on sync connections after the cycle. 1 s.
	Parting time.Duration
}

func (t Timeouts) filled() Timeouts {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&t.Connect, 10*time.Second)
	def(&t.Header, 4*time.Second)
	def(&t.Answer, 12*time.Second)
	def(&t.Hello, 4*time.Second)
	def(&t.Stopping, 2*time.Second)
	def(&t.Setup, 60*time.Second)
	def(&t.Turn, 10*time.Second)
	def(&t.Settle, 20*time.Millisecond)
	def(&t.Stale, time.Second)
	def(&t.Silence, 30*time.Second)
	def(&t.Linger, 600*time.Millisecond)
	def(&t.Parting, time.Second)
	return t
}
