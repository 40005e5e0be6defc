package ntttcp

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/fullbore-net/fullbore/internal/proto/ext"
)

// How two fullbores know each other (docs/wire-extension.md §12). Real tools take any state but
// 12 for "go on", and any token for a token (linux §3.1, windows §3.2).
const (
	// StateFullbore is a fullbore receiver's answer to X in place of StateIdle and StateFinished:
	// frames of the extension may come on this connection.
	StateFullbore Word = Word(ext.FrameHello)
	// TokenFullbore is what a fullbore sender sends for a token on one connection, and hears there
	// from a fullbore receiver: that connection stays, and carries words and frames from then on.
	TokenFullbore = byte(ext.FrameHello)
)

const (
	// maxHello is the longest hello that is waited for. Words that look like the beginning of
	// one stand for 37 years.
	maxHello = 8 << 10
	// maxExtWord bounds words beside frames, which are told apart by their first byte: a cycle of
	// 194 days or more is agreed on without the extension.
	maxExtWord = Word(1 << 24)
)

// item is a message of a connection: a word, or a frame where frame is not 0.
type item struct {
	w     Word
	frame ext.Frame
	doc   []byte
}

// framing says what beside words may come.
type framing int32

const (
	wordsOnly framing = iota
	mayGreet          // a receiver has answered StateFullbore: a hello may come instead of a time
	framed            // both ends are fullbores: words begin with 0, frames with 0x46 … 0x4f
)

var errNoMessage = errors.New("ntttcp: neither a word nor a frame")

// takeItem takes the first message off b; n = 0: it is not whole yet. The doc aliases b.
func takeItem(b []byte, f framing) (it item, n int, err error) {
	switch {
	case len(b) == 0:
		return item{}, 0, nil
	case f == mayGreet:
		isHello, sure := greeting(b)
		if !sure {
			return item{}, 0, nil
		}
		if isHello {
			return takeFrame(b, maxHello)
		}
	case f == framed && ext.Frame(b[0]).Valid():
		return takeFrame(b, ext.MaxFrame)
	case f == framed && b[0] != 0:
		return item{}, 0, fmt.Errorf("%w: it begins with %#x", errNoMessage, b[0])
	}
	w, n := ParseWord(b)
	return item{w: w}, n, nil
}

func takeFrame(b []byte, limit int) (item, int, error) {
	f, doc, n, err := ext.Decode(b, limit)
	return item{frame: f, doc: doc}, n, err
}

// greeting tells whether b begins with a hello: its byte, a length that one can have, and a
// document. sure is false while that is open.
func greeting(b []byte) (is, sure bool) {
	want := [...]func(byte) bool{
		func(c byte) bool { return ext.Frame(c) == ext.FrameHello },
		func(c byte) bool { return c == 0 },
		func(c byte) bool { return c == 0 },
		func(c byte) bool { return int(c) <= maxHello>>8 },
		func(byte) bool { return true },
		func(c byte) bool { return c == '{' },
	}
	for i, ok := range want {
		if i == len(b) {
			return false, false
		}
		if !ok(b[i]) {
			return false, true
		}
	}
	return true, true
}

// mixed reads messages off a connection. One goroutine reads; mode may be changed by another,
// before the peer can know of it.
type mixed struct {
	r    io.Reader
	mode atomic.Int32 // a framing
	buf  []byte
}

func (m *mixed) set(f framing) { m.mode.Store(int32(f)) }

// next returns the next message, however many segments it came in: the original receiver takes a
// part for the whole (linux §3.1). io.EOF = none began.
func (m *mixed) next() (item, error) {
	var chunk [1024]byte
	for {
		it, n, err := takeItem(m.buf, framing(m.mode.Load()))
		if err != nil {
			return item{}, err
		}
		if n > 0 {
			if m.buf = m.buf[n:]; len(m.buf) == 0 {
				m.buf = nil // what was handed out stays as it is
			}
			return it, nil
		}
		got, err := m.r.Read(chunk[:])
		m.buf = append(m.buf, chunk[:got]...)
		switch {
		case got > 0: // an error comes again
		case err == nil:
		case isTimeout(err) && framing(m.mode.Load()) == mayGreet && len(m.buf) == WordSize:
			// It looked like a hello, and did not go on: a very long time.
			w, _ := ParseWord(m.buf)
			m.buf = nil
			return item{w: w}, nil
		case errors.Is(err, io.EOF) && len(m.buf) > 0:
			return item{}, io.ErrUnexpectedEOF
		default:
			return item{}, err
		}
	}
}
