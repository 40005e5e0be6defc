package iperf3

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"fmt"

	"github.com/fullbore-net/fullbore/internal/proto/ext"
)

// State is one signed byte of the control connection (spec §3).
type State int8

// The states that are ever on the wire, and the extension's frame bytes.
const (
	StateTestStart       State = 1
	StateTestRunning     State = 2
	StateTestEnd         State = 4
	StateParamExchange   State = 9
	StateCreateStreams   State = 10
	StateServerTerminate State = 11
	StateClientTerminate State = 12
	StateExchangeResults State = 13
	StateDisplayResults  State = 14
	StateDone            State = 16
	StateAccessDenied    State = -1
	StateServerError     State = -2

	// FrameHello … FrameReady carry a length and a JSON document; see State.Frame.
	FrameHello  = State(ext.FrameHello)
	FrameEvent  = State(ext.FrameEvent)
	FrameQueue  = State(ext.FrameQueue)
	FrameClient = State(ext.FrameClient)
	FrameReady  = State(ext.FrameReady)
)

var stateNames = map[State]string{
	StateTestStart: "TEST_START", StateTestRunning: "TEST_RUNNING", StateTestEnd: "TEST_END",
	StateParamExchange: "PARAM_EXCHANGE", StateCreateStreams: "CREATE_STREAMS",
	StateServerTerminate: "SERVER_TERMINATE", StateClientTerminate: "CLIENT_TERMINATE",
	StateExchangeResults: "EXCHANGE_RESULTS", StateDisplayResults: "DISPLAY_RESULTS",
	StateDone: "IPERF_DONE", StateAccessDenied: "ACCESS_DENIED", StateServerError: "SERVER_ERROR",
}

// String names s as the protocol does.
func (s State) String() string {
	if n, ok := stateNames[s]; ok {
		return n
	}
	if s >= FrameHello && s <= FrameReady {
		return ext.Frame(s).String()
	}
	return fmt.Sprintf("state %d", int8(s))
}

// Frame reports whether s introduces a frame of the extension, known or not.
func (s State) Frame() bool { return ext.Frame(s).Valid() }

// Sizes of the wire (spec §2, §5, §11; docs/wire-extension.md).
const (
	CookieSize     = 37        // 36 characters and a NUL
	IndexSize      = 4         // follows the cookie on an indexed stream
	MaxParams      = 8192      // parameters, as servers ≥ 3.18 limit them
	MaxResults     = 1<<24 - 1 // results: the length prefix then always begins with a zero byte
	MaxFrame       = ext.MaxFrame
	errorBodySize  = 8
	cookieAlphabet = "abcdefghijklmnopqrstuvwxyz234567"
)

// Cookie names a test on all its connections. Its content is opaque: releases up to
// 3.1.7 put host name and time in it.
type Cookie [CookieSize]byte

// NewCookie makes a random cookie as releases since 3.2 do: 176 bits. The first character
// is 2 or 3 because an iperf 2 server takes it for its flags, and with those two answers
// at once, so that it can be named (seen with 2.1.8; other characters leave it silent for
// 8 s or make it close).
func NewCookie() Cookie {
	var c Cookie
	_, _ = rand.Read(c[:CookieSize-1]) // crypto/rand.Read never fails (Go 1.24)
	first := c[0] & 1
	for i := range c[:CookieSize-1] {
		c[i] = cookieAlphabet[c[i]&31]
	}
	c[0] = '2' + first
	return c
}

// String returns the characters before the first NUL.
func (c Cookie) String() string {
	if i := bytes.IndexByte(c[:], 0); i >= 0 {
		return string(c[:i])
	}
	return string(c[:])
}

// Equal compares as a C string of at most 37 bytes, like iperf3 (spec §2), but in
// constant time: the cookie is all that binds a stream to its test.
func (c Cookie) Equal(o Cookie) bool {
	a, b := c.cut(), o.cut()
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// cut zeroes everything after the first NUL.
func (c Cookie) cut() Cookie {
	var seen byte // 0xff once a NUL went by
	for i, b := range c {
		c[i] = b &^ seen
		seen |= byte(int8(subtle.ConstantTimeByteEq(b, 0)) << 7 >> 7)
	}
	return c
}

// plausible reports whether c could have been sent by an iperf3: printable characters
// without blanks, then a NUL. Implausible cookies are accepted all the same, but their
// senders get no error message (field case F31: a scanner gets at most one byte).
func (c Cookie) plausible() bool {
	for _, b := range c[:CookieSize-1] {
		if b <= ' ' || b > '~' {
			return false
		}
	}
	return c[CookieSize-1] == 0
}

// WireError is the body of SERVER_ERROR: iperf3's own code and the server's errno.
type WireError struct {
	Code  int32
	Errno int32 // Linux numbering on Linux servers; 0 = none
}

// AppendError appends a complete SERVER_ERROR: always nine bytes (spec §11).
func AppendError(b []byte, e WireError) []byte {
	b = append(b, byte(0xfe)) // StateServerError
	b = binary.BigEndian.AppendUint32(b, uint32(e.Code))
	return binary.BigEndian.AppendUint32(b, uint32(e.Errno))
}

// decodeErrorBody reads what came of the body: real servers send 0, 4 or 8 bytes
// before they close (spec §11). Missing parts are 0.
func decodeErrorBody(b []byte) WireError {
	var e WireError
	if len(b) >= 4 {
		e.Code = int32(binary.BigEndian.Uint32(b))
	}
	if len(b) >= errorBodySize {
		e.Errno = int32(binary.BigEndian.Uint32(b[4:]))
	}
	return e
}

// AppendDocument appends a length and a JSON document.
func AppendDocument(b, doc []byte) []byte { return ext.AppendDocument(b, doc) }

// AppendFrame appends a frame of the extension.
func AppendFrame(b []byte, s State, doc []byte) []byte { return ext.Append(b, ext.Frame(s), doc) }

// message is one item of the control stream: a state, a frame, or (State 0) a bare
// document, which can be told from the others by its first byte because no length
// reaches 2^24 and no state is 0.
type message struct {
	State State
	Doc   []byte     // frame or document; nil for a state
	Err   *WireError // with StateServerError
}

// limits say how long what may come next may be.
type limits struct {
	doc   int
	frame int
}

// decodeMessage takes the first message off b. n is its length; 0 means that b does
// not hold a whole message yet. eof says that nothing follows b, which completes a
// SERVER_ERROR that was cut short. clientSide readers understand SERVER_ERROR; for a
// server the byte is just an unknown state. The returned Doc aliases b.
func decodeMessage(b []byte, lim limits, clientSide, eof bool) (m message, n int, err error) {
	if len(b) == 0 {
		return message{}, 0, nil
	}
	s := State(b[0])
	switch {
	case s == 0:
		doc, n, err := ext.Document(b, lim.doc)
		return message{Doc: doc}, n, err
	case s.Frame():
		_, doc, n, err := ext.Decode(b, lim.frame)
		if n > 0 {
			m = message{State: s, Doc: doc}
		}
		return m, n, err
	case s == StateServerError && clientSide:
		body := b[1:]
		if len(body) < errorBodySize && !eof {
			return message{}, 0, nil
		}
		body = body[:min(len(body), errorBodySize)]
		e := decodeErrorBody(body)
		return message{State: s, Err: &e}, 1 + len(body), nil
	}
	return message{State: s}, 1, nil
}
