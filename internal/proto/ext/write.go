package ext

import (
	"io"
	"time"
)

// piece is how much of a message is handed to the system at once. Without Nagle's
// algorithm each piece is a packet, so that documents pass where full-size packets
// vanish without a word and only small ones get through (field case F10): 1280 bytes,
// IPv6's least MTU, less the headers.
const piece = 1200

// Write writes b whole, in pieces that pass everywhere.
func Write(w io.Writer, b []byte) error {
	_, err := WriteSome(w, b)
	return err
}

// WriteSome is Write that says how many bytes went before an error.
func WriteSome(w io.Writer, b []byte) (n int, err error) {
	for {
		k, err := w.Write(b[n:min(n+piece, len(b))])
		n += k
		if err != nil || n >= len(b) {
			return n, err
		}
	}
}

// Gate bounds how many of the other end's events are taken in: well above what a Forwarder sends,
// far below what would fill this end's memory. The zero value is ready; it is not safe for
// concurrent use.
type Gate struct {
	room float64
	last time.Time
}

// A Gate's bounds: those of a Forwarder with room for its clock, and for the notices of a start.
const (
	gateRate  = 2 * framesPerSecond
	gateBurst = 2 * maxUrgent
)

// Pass reports whether one more event may come in at now.
func (g *Gate) Pass(now time.Time) bool {
	if g.last.IsZero() {
		g.room = gateBurst
	} else {
		g.room = min(gateBurst, g.room+max(0, now.Sub(g.last).Seconds())*gateRate)
	}
	g.last = now
	if g.room < 1 {
		return false
	}
	g.room--
	return true
}
