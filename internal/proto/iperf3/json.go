package iperf3

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// iperf3's JSON is what its C library makes of it, so this reader is wider than
// encoding/json's: keys match in any case, the first of several equal keys wins,
// bytes after the first value are ignored, numbers come in any notation and saturate
// (spec §5).

// kind is the kind of a JSON value.
type kind byte

const (
	kindAbsent kind = iota
	kindNull
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

var kindNames = [...]string{"nothing", "null", "a boolean", "a number", "a string", "an array", "an object"}

func (k kind) String() string { return kindNames[k] }

func kindOf(raw []byte) kind {
	if len(raw) == 0 {
		return kindAbsent
	}
	switch raw[0] {
	case 'n':
		return kindNull
	case 't', 'f':
		return kindBool
	case '"':
		return kindString
	case '[':
		return kindArray
	case '{':
		return kindObject
	}
	return kindNumber
}

// object is a JSON object with its keys folded to lower case.
type object map[string]json.RawMessage

// maxKeys bounds the memory that a long document of tiny keys would take.
const maxKeys = 1000

var errManyKeys = errors.New("too many keys")

// errNotObject is returned for a document of another kind; iperf3 takes such a
// document for an object without keys.
var errNotObject = errors.New("not an object")

// decodeObject reads the first JSON value of data. The values alias data or copies of it.
func decodeObject(data []byte) (object, error) {
	data = escapeControls(bytes.TrimPrefix(data, []byte("\ufeff")))
	dec := json.NewDecoder(bytes.NewReader(data))
	tok, err := dec.Token()
	if err != nil {
		return nil, jsonError(err)
	}
	if d, ok := tok.(json.Delim); !ok || d != '{' {
		return nil, errNotObject
	}
	obj := object{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, jsonError(err)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, jsonError(err)
		}
		name := strings.ToLower(key.(string)) // inside an object the decoder yields only string keys here
		if _, ok := obj[name]; !ok {
			if len(obj) == maxKeys {
				return nil, errManyKeys
			}
			obj[name] = raw
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, jsonError(err)
	}
	return obj, nil
}

// escapeControls makes control characters inside strings proper JSON: iperf3's library
// reads and writes them as they are, and a name with one must not end a test (field case
// F47). Line ends and tabs survive, others become U+FFFD.
func escapeControls(data []byte) []byte {
	var out []byte
	inside, done := false, 0
	for i := 0; i < len(data); i++ {
		c := data[i]
		switch {
		case c == '"':
			inside = !inside
		case inside && c == '\\':
			i++ // what it escapes
		case inside && c < ' ':
			out = append(out, data[done:i]...)
			switch c {
			case '\n':
				out = append(out, '\\', 'n')
			case '\r':
				out = append(out, '\\', 'r')
			case '\t':
				out = append(out, '\\', 't')
			default:
				out = append(out, `\ufffd`...)
			}
			done = i + 1
		}
	}
	if done == 0 {
		return data
	}
	return append(out, data[done:]...)
}

func jsonError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("JSON is cut short")
	}
	return fmt.Errorf("not JSON: %w", err)
}

// kind returns the kind of a key's value.
func (o object) kind(key string) kind { return kindOf(o[strings.ToLower(key)]) }

// int64 returns a number as iperf3 would hold it: see parseInt.
func (o object) int64(key string) (int64, bool) {
	raw := o[strings.ToLower(key)]
	if kindOf(raw) != kindNumber {
		return 0, false
	}
	return parseInt(string(raw)), true
}

func (o object) float(key string) (float64, bool) {
	raw := o[strings.ToLower(key)]
	if kindOf(raw) != kindNumber {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return min(max(f, -math.MaxFloat64), math.MaxFloat64), true
}

func (o object) string(key string) (string, bool) {
	raw := o[strings.ToLower(key)]
	var s string
	if kindOf(raw) != kindString || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// parseInt reads an integer in any JSON notation: fractions are cut, and what is 2^63
// or more is −1, because 3.12 and 3.13 print −1 as 18446744073709551615 (spec §5).
func parseInt(s string) int64 {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	f, _ := strconv.ParseFloat(s, 64) // out of range gives ±Inf, which saturates below
	switch {
	case math.IsNaN(f):
		return 0
	case f >= 1<<63:
		return -1
	case f <= -1<<63:
		return math.MinInt64
	}
	return int64(f)
}

// appendString appends s as iperf3's JSON writer does: control characters, quote and
// backslash escaped, everything else (the slash of base64 too) as it is. Bytes that
// are not UTF-8 become U+FFFD, so that what we send is always JSON (field case F47).
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range strings.ToValidUTF8(s, string(utf8.RuneError)) {
		switch r {
		case '"', '\\':
			b = append(b, '\\', byte(r))
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			if r < 0x20 {
				b = fmt.Appendf(b, `\u%04x`, r)
			} else {
				b = utf8.AppendRune(b, r)
			}
		}
	}
	return append(b, '"')
}

// appendNumber appends a finite number as iperf3 prints it: integral values plain,
// others with 15 significant digits, or 17 if those do not read back the same.
func appendNumber(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return append(b, '0') // our own figures are finite; a null would fail the peer's whole test
	case f == math.Trunc(f) && math.Abs(f) < 1e15:
		return strconv.AppendInt(b, int64(f), 10)
	}
	s := strconv.FormatFloat(f, 'g', 15, 64)
	if v, _ := strconv.ParseFloat(s, 64); v != f {
		s = strconv.FormatFloat(f, 'g', 17, 64)
	}
	return append(b, s...)
}

// writer builds one compact JSON object in key order.
type writer struct {
	b     []byte
	first bool
}

func newWriter() *writer { return &writer{b: []byte{'{'}, first: true} }

func (w *writer) key(k string) {
	if !w.first {
		w.b = append(w.b, ',')
	}
	w.first = false
	w.b = appendString(w.b, k)
	w.b = append(w.b, ':')
}

func (w *writer) int(k string, v int64) {
	w.key(k)
	w.b = strconv.AppendInt(w.b, v, 10)
}

// intSet writes v unless it is 0.
func (w *writer) intSet(k string, v int64) {
	if v != 0 {
		w.int(k, v)
	}
}

// trueSet writes a true. A false is never written: peers go by the key's presence
// (spec §6).
func (w *writer) trueSet(k string, v bool) {
	if v {
		w.key(k)
		w.b = append(w.b, "true"...)
	}
}

func (w *writer) flagSet(k string, v bool) {
	if v {
		w.int(k, 1)
	}
}

func (w *writer) str(k, v string) {
	w.key(k)
	w.b = appendString(w.b, v)
}

func (w *writer) strSet(k, v string) {
	if v != "" {
		w.str(k, v)
	}
}

func (w *writer) num(k string, v float64) {
	w.key(k)
	w.b = appendNumber(w.b, v)
}

func (w *writer) raw(k string, doc []byte) {
	w.key(k)
	w.b = append(w.b, doc...)
}

func (w *writer) done() []byte { return append(w.b, '}') }
