package cjson_test

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/render/cjson"
)

// TestNumbers: C's and cJSON's spelling.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    float64
		want string
	}{
		{0, "0"},
		{math.Copysign(0, -1), "0"},
		{-1, "-1"},
		{2147483647, "2147483647"},
		{2147483648, "2147483648"},
		{-2147483649, "-2147483649"},
		{1796022215696, "1796022215696"},
		{999999999999999, "999999999999999"},
		{1e15, "1e+15"},
		{1234567890123456, "1234567890123456"},
		{18446744073709551615, "1.8446744073709552e+19"},
		{1e300, "1e+300"},
		{0.1, "0.1"},
		{0.1 + 0.2, "0.3"}, // within an epsilon
		{2.1e-05, "2.1e-05"},
		{0.0001, "0.0001"},
		{1.0 / 3, "0.33333333333333331"},
		{float64(float32(1.00058)), "1.0005799531936646"},
		{5e-324, "4.94065645841247e-324"},
		{math.NaN(), "null"},
		{math.Inf(1), "null"},
		{math.Inf(-1), "null"},
	} {
		if got := string(cjson.AppendCompact(nil, c.v)); got != c.want {
			t.Errorf("%v: %s, want %s", c.v, got, c.want)
		}
	}
}

func TestLayout(t *testing.T) {
	t.Parallel()
	v := (&cjson.Object{}).
		Add("a", nil).
		Add("list", cjson.Array{1, (&cjson.Object{}).Add("x", true), (&cjson.Object{}).Add("y", int64(2)).Add("z", false), cjson.Array{}}).
		Add("empty", &cjson.Object{}).
		Add("quo\"ted\\", "\b\f\n\r\t\x01\x1f\x7f/é\xff")
	const pretty = "{\n\t\"a\":\tnull,\n\t\"list\":\t[1, {\n\t\t\t\"x\":\ttrue\n\t\t}, {\n\t\t\t\"y\":\t2,\n\t\t\t\"z\":\tfalse\n\t\t}, []],\n" +
		"\t\"empty\":\t{\n\t},\n\t\"quo\\\"ted\\\\\":\t\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f/é\uFFFD\"\n}"
	if got := string(cjson.AppendPretty(nil, v)); got != pretty {
		t.Errorf("%q\nwant\n%q", got, pretty)
	}
	const compact = "{\"a\":null,\"list\":[1,{\"x\":true},{\"y\":2,\"z\":false},[]],\"empty\":{},\"quo\\\"ted\\\\\":\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f/é\uFFFD\"}"
	if got := string(cjson.AppendCompact(nil, v)); got != compact {
		t.Errorf("%q\nwant\n%q", got, compact)
	}
}

// TestParse: order is kept, of equal names the last one.
func TestParse(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"b":1,"a":[1,{"c":null}],"b":{"b":2,"x":1,"b":3}}`: `{"a":[1,{"c":null}],"b":{"x":1,"b":3}}`,
		` [ true , "\u00e9\ud800" , -1.50 ] `:                "[true,\"é\uFFFD\",-1.5]",
		`"x"`:                                                `"x"`,
	} {
		v, err := cjson.Parse([]byte(in))
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got := string(cjson.AppendCompact(nil, v)); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	for _, in := range []string{``, `{`, `[1`, `{"a"`, `{"a":`, `{"a":1`, `{1:2}`, `{} {}`, `nul`, strings.Repeat("[", 1001) + strings.Repeat("]", 1001)} {
		if v, err := cjson.Parse([]byte(in)); err == nil {
			t.Errorf("%.20s: %v", in, v)
		}
	}
	if _, err := cjson.Parse([]byte(`{"a":[`)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a cut document: %v", err)
	}
	dec := json.NewDecoder(strings.NewReader(`{"a":1} {"b":2}`))
	for _, want := range []string{`{"a":1}`, `{"b":2}`} {
		v, err := cjson.Next(dec)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(cjson.AppendCompact(nil, v)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	var none *cjson.Object
	if none.Get("a") != nil {
		t.Error("the nil object has members")
	}
}

// FuzzParse: what is read can be printed and read again, the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5e-7,{"b":null,"b":true}],"c":"\u0000\ud800"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := cjson.Parse(data)
		if err != nil {
			return
		}
		for _, doc := range [][]byte{cjson.AppendPretty(nil, v), cjson.AppendCompact(nil, v)} {
			if !json.Valid(doc) {
				t.Fatalf("%q", doc)
			}
			back, err := cjson.Parse(doc)
			if err != nil {
				t.Fatalf("%v: %q", err, doc)
			}
			if a, b := string(cjson.AppendCompact(nil, v)), string(cjson.AppendCompact(nil, back)); a != b {
				t.Fatalf("%q becomes %q", a, b)
			}
		}
	})
}
