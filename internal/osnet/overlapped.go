package osnet

import (
	"errors"
	"fmt"
)

// Overlapped keeps several sends, or several receives, of one TCP connection under way at
// once, as Windows programs do (WSASend and WSARecv with an OVERLAPPED). Calls end in the
// order in which they began: that is TCP's. On other systems NewOverlapped refuses.
//
// It belongs to one goroutine; Wake may be called by any until Close. Nobody else may use
// the connection in that direction between the first Begin and the end of the last call.
// It does not own the connection, which must stay open until Close has returned.
type Overlapped struct{ overlapped }

// MaxOverlapped is how many calls may be under way: what Windows waits for at once (63, and
// Wake's event) bounds ntttcp's -a, and nobody gains from more.
const MaxOverlapped = 63

// ErrWoken: Wait was ended by Wake, or by its time, and the oldest call is still under way.
var ErrWoken = errors.New("osnet: no overlapped call has ended yet")

// NewOverlapped prepares up to depth calls of up to size bytes each. With alike all calls use
// one buffer: for payload that is sent over and over, or looked at by nobody. fill, if not
// nil, is given each buffer once.
func NewOverlapped(c *Conn, send bool, depth, size int, alike bool, fill func([]byte)) (*Overlapped, error) {
	if depth < 1 || depth > MaxOverlapped || size < 1 {
		return nil, fmt.Errorf("osnet: %d overlapped calls of %d bytes: 1 to %d calls are possible", depth, size, MaxOverlapped)
	}
	if !c.isTCP() {
		return nil, fmt.Errorf("osnet: overlapped calls on %T: %w", c.nc, errors.ErrUnsupported)
	}
	o := &Overlapped{}
	if err := o.open(c, send, depth, size, alike, fill); err != nil {
		return nil, fmt.Errorf("osnet: overlapped calls: %w", err)
	}
	return o, nil
}

// Begin begins a call of n bytes; fewer than depth must be under way. With an error it has
// not begun.
func (o *Overlapped) Begin(n int) error { return o.begin(n) }

// Pending is how many calls are under way, or have ended and were not waited for.
func (o *Overlapped) Pending() int { return o.pending() }

// Wait waits until the oldest call has ended, ns at most (negative: without limit), and
// returns what it moved: data is what was received, valid until the next Begin; a receive of
// 0 bytes without an error is the peer's end. A call that Cancel ended before it moved
// anything returns 0 bytes and an error for which IsCancelled holds. After ErrWoken it is
// still under way.
func (o *Overlapped) Wait(ns int64) (n int, data []byte, err error) { return o.wait(ns) }

// Wake ends a Wait under way, or the next one.
func (o *Overlapped) Wake() { o.wake() }

// Cancel ends the calls under way. Each must be waited for: it may have moved bytes. A send
// that is cancelled half done ends its connection for all that is known.
func (o *Overlapped) Cancel() { o.cancel() }

// Close gives everything back. It cancels what is under way and waits until the system has
// let go of its memory.
func (o *Overlapped) Close() { o.close() }

// IsCancelled reports that a call ended because of Cancel.
func IsCancelled(err error) bool { return isCancelled(err) }
