// Package cjson prints JSON in the spelling of the C library cJSON, which iperf3 uses,
// and reads JSON keeping the order of members. Scripts that grep iperf3's documents
// depend on this layout.
package cjson

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A value is *Object, Array, string, float64, int, int64, bool or nil.
type (
	// Object keeps the order of its members. The nil Object has none.
	Object struct{ Members []Member }

	// Member is a name and its value.
	Member struct {
		Key   string
		Value any
	}

	// Array is a list of values.
	Array []any
)

// Add appends a member and returns o, so that objects in code read like documents.
func (o *Object) Add(key string, value any) *Object {
	o.Members = append(o.Members, Member{key, value})
	return o
}

// Get returns the value of the last member named key, nil when there is none.
func (o *Object) Get(key string) any {
	if o == nil {
		return nil
	}
	for i := len(o.Members) - 1; i >= 0; i-- {
		if o.Members[i].Key == key {
			return o.Members[i].Value
		}
	}
	return nil
}

// AppendPretty appends v in the layout of cJSON 1.7 (cJSON_Print): members on lines of
// their own, indented by tabs, a tab after the colon, the elements of an array joined
// by a comma and a blank.
func AppendPretty(dst []byte, v any) []byte {
	p := printer{dst: dst, pretty: true}
	p.value(v, 0)
	return p.dst
}

// AppendCompact appends v without any white space (cJSON_PrintUnformatted).
func AppendCompact(dst []byte, v any) []byte {
	p := printer{dst: dst}
	p.value(v, 0)
	return p.dst
}

type printer struct {
	dst    []byte
	pretty bool
}

func (p *printer) value(v any, depth int) {
	switch v := v.(type) {
	case nil:
		p.dst = append(p.dst, "null"...)
	case bool:
		p.dst = strconv.AppendBool(p.dst, v)
	case string:
		p.dst = appendString(p.dst, v)
	case int:
		p.dst = appendNumber(p.dst, float64(v))
	case int64:
		p.dst = appendNumber(p.dst, float64(v))
	case float64:
		p.dst = appendNumber(p.dst, v)
	case Array:
		p.array(v, depth)
	case *Object:
		p.object(v, depth)
	}
}

func (p *printer) array(a Array, depth int) {
	p.dst = append(p.dst, '[')
	for i, v := range a {
		if i > 0 {
			p.dst = append(p.dst, ',')
			if p.pretty {
				p.dst = append(p.dst, ' ')
			}
		}
		p.value(v, depth+1)
	}
	p.dst = append(p.dst, ']')
}

func (p *printer) object(o *Object, depth int) {
	p.dst = append(p.dst, '{')
	if p.pretty {
		p.dst = append(p.dst, '\n')
	}
	for i, m := range o.Members {
		if p.pretty {
			p.tabs(depth + 1)
		}
		p.dst = appendString(p.dst, m.Key)
		p.dst = append(p.dst, ':')
		if p.pretty {
			p.dst = append(p.dst, '\t')
		}
		p.value(m.Value, depth+1)
		if i < len(o.Members)-1 {
			p.dst = append(p.dst, ',')
		}
		if p.pretty {
			p.dst = append(p.dst, '\n')
		}
	}
	if p.pretty {
		p.tabs(depth)
	}
	p.dst = append(p.dst, '}')
}

func (p *printer) tabs(n int) {
	for range n {
		p.dst = append(p.dst, '\t')
	}
}

// appendNumber prints d as cJSON's print_number does: null when it is no number, an
// integer when it fits C's int, else 15 significant digits, or 17 when 15 do not give
// the same number back, in C's %g. "The same" allows for one relative epsilon, so the
// 15 digits may stand for a neighbour (compare_double).
func appendNumber(dst []byte, d float64) []byte {
	if math.IsNaN(d) || math.IsInf(d, 0) {
		return append(dst, "null"...)
	}
	if d == math.Trunc(d) && math.Abs(d) <= math.MaxInt32 {
		return strconv.AppendInt(dst, int64(d), 10)
	}
	short := strconv.AppendFloat(nil, d, 'g', 15, 64)
	if back, err := strconv.ParseFloat(string(short), 64); err == nil && sameNumber(back, d) {
		return append(dst, short...)
	}
	return strconv.AppendFloat(dst, d, 'g', 17, 64)
}

func sameNumber(a, b float64) bool {
	const epsilon = 0x1p-52 // DBL_EPSILON
	return math.Abs(a-b) <= max(math.Abs(a), math.Abs(b))*epsilon
}

// appendString quotes s as cJSON does: only what must be escaped is. Unlike cJSON it
// writes valid UTF-8 in any case: bytes that are none become U+FFFD.
func appendString(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			if c < ' ' {
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			} else {
				dst = append(dst, c)
			}
		}
	}
	return append(dst, '"')
}
