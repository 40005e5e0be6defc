package osnet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// UsableBuffer converts a buffer size that the system reports (Conn.Buffers) to what
// an application can use of it: half on Linux, all elsewhere.
func UsableBuffer(reported int) int { return reported / bufferFactor }

// WindowError says that the system granted smaller socket buffers than were asked for,
// or (BSD) refused the size; then it is within an *OptionError. Linux caps silently, so
// there it is found by Clamped.
type WindowError struct {
	Asked    int64 // bytes, of each buffer
	Snd, Rcv int   // bytes, as the system reports them (Conn.Buffers)
	Err      error // the refusal, nil when the system only capped
}

// Clamped compares a requested window with what the system reports (Conn.Buffers). It
// returns nil when both buffers are usable to the full, or nothing was asked.
func Clamped(asked int64, snd, rcv int) *WindowError {
	if asked <= 0 || int64(UsableBuffer(snd)) >= asked && int64(UsableBuffer(rcv)) >= asked {
		return nil
	}
	return &WindowError{Asked: asked, Snd: snd, Rcv: rcv}
}

// BelowReported reports whether even the reported sizes are below what was asked: the
// condition on which iperf3 gives up (IESETBUF2; iperf_tcp.c, iperf_tcp_connect). Linux
// reports twice the usable size, so iperf3 lets a request of up to twice the limit pass.
func (e *WindowError) BelowReported() bool {
	return e.Err != nil || int64(e.Snd) < e.Asked || int64(e.Rcv) < e.Asked
}

// limits names the settings that cap the buffers that fell short.
func (e *WindowError) limits() []string {
	var names []string
	if int64(UsableBuffer(e.Snd)) < e.Asked && sndBufLimit != "" {
		names = append(names, sndBufLimit)
	}
	if int64(UsableBuffer(e.Rcv)) < e.Asked && rcvBufLimit != "" {
		names = append(names, rcvBufLimit)
	}
	return slices.Compact(names)
}

func (e *WindowError) Error() string {
	s := fmt.Sprintf("socket buffers of %d bytes were asked for, usable are %d to send and %d to receive",
		e.Asked, UsableBuffer(e.Snd), UsableBuffer(e.Rcv))
	if bufferFactor != 1 {
		s += fmt.Sprintf(" (the system reports %d and %d)", e.Snd, e.Rcv)
	}
	if names := e.limits(); len(names) > 0 {
		var with []string
		for _, n := range names {
			if v := sysctl(n); v != "" {
				n += " = " + v
			}
			with = append(with, n)
		}
		s += "; raise " + strings.Join(with, " and ")
	}
	return s
}

// Unwrap returns the system's error, nil when it only capped.
func (e *WindowError) Unwrap() error { return e.Err }

// Notice says the same to the reader of the result.
func (e *WindowError) Notice() result.Notice {
	return result.Notice{
		Code: "window-clamped", Level: result.Warn, Text: e.Error(), Fix: raiseLimits(e.limits(), e.Asked),
	}
}

// setBuffers asks for window bytes in both buffers. Linux caps without a word; see
// windowNotices for the comparison.
func setBuffers(fd uintptr, window int64) error {
	if window <= 0 {
		return nil
	}
	for _, o := range []sockopt{optSndBuf, optRcvBuf} {
		err := o.set(fd, int(window))
		if err == nil {
			continue
		}
		if isBufferRefused(err) {
			if snd, rcv, gerr := socketBuffers(fd); gerr == nil {
				return &OptionError{Option: "window", Err: &WindowError{Asked: window, Snd: snd, Rcv: rcv, Err: err}}
			}
		}
		return &OptionError{Option: "window", Value: fmt.Sprint(window), Err: err}
	}
	return nil
}

// windowNotices says when the granted buffers are not what was asked: less because of
// the system's limit, or more because of its minimum.
func windowNotices(c *Conn, asked int64) []result.Notice {
	if asked <= 0 {
		return nil
	}
	snd, rcv, err := c.Buffers()
	if err != nil {
		return []result.Notice{refused(&OptionError{Option: "window", Value: fmt.Sprint(asked), Err: err})}
	}
	if w := Clamped(asked, snd, rcv); w != nil {
		return []result.Notice{w.Notice()}
	}
	if int64(UsableBuffer(snd)) > asked || int64(UsableBuffer(rcv)) > asked {
		return []result.Notice{{Code: "window-raised", Level: result.Info, Text: fmt.Sprintf(
			"socket buffers of %d bytes were asked for, the system's least is %d to send and %d to receive",
			asked, UsableBuffer(snd), UsableBuffer(rcv))}}
	}
	return nil
}

// BufferFacts returns the buffers and MSS of c for the record of a stream; asked is
// Options.Window.
func (c *Conn) BufferFacts(asked int64) (result.Buffers, error) {
	snd, rcv, err := c.Buffers()
	if err != nil {
		return result.Buffers{}, err
	}
	b := result.Buffers{
		RequestedBytes: asked, SndGranted: int64(snd), RcvGranted: int64(rcv),
		SndUsable: int64(UsableBuffer(snd)), RcvUsable: int64(UsableBuffer(rcv)),
	}
	if c.isTCP() {
		mss, err := c.MSS()
		if err != nil {
			return b, err
		}
		b.MSS = int64(mss)
	}
	return b, nil
}
