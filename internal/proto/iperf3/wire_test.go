package iperf3

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCookie(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		c := NewCookie()
		s := c.String()
		if len(s) != CookieSize-1 || c[CookieSize-1] != 0 || strings.Trim(s, cookieAlphabet) != "" || !c.plausible() {
			t.Fatalf("cookie %q", c[:])
		}
		if seen[s] {
			t.Fatal("a cookie came twice")
		}
		seen[s] = true
	}
	a := NewCookie()
	for name, tc := range map[string]struct {
		change func(*Cookie)
		want   bool
	}{
		"same":                          {func(*Cookie) {}, true},
		"other first character":         {func(c *Cookie) { c[0] ^= 1 }, false},
		"other last character":          {func(c *Cookie) { c[35] ^= 1 }, false},
		"no NUL at the end":             {func(c *Cookie) { c[36] = 'x' }, false},
		"cut short":                     {func(c *Cookie) { c[10] = 0 }, false},
		"a NUL where the other has one": {func(c *Cookie) { c[36] = 0 }, true},
	} {
		b := a
		tc.change(&b)
		if got := a.Equal(b); got != tc.want {
			t.Errorf("%s: equal = %v", name, got)
		}
	}
	// Bytes after an embedded NUL do not count (spec §2).
	x, y := Cookie{'a', 0, 'b'}, Cookie{'a', 0, 'c', 'd'}
	if !x.Equal(y) || x.String() != "a" || x.plausible() {
		t.Error("embedded NUL: not compared as a C string")
	}
}

// Every recorded conversation comes apart without a rest, and in the order of spec §4.
func TestRecordingsComeApart(t *testing.T) {
	for _, r := range recordings(t) {
		cookie, up := r.messages(t, "C>S")
		_, down := r.messages(t, "S>C")
		if !cookie.plausible() {
			t.Errorf("%s: cookie %q", r.name, cookie[:])
		}
		if len(down) == 0 || down[0].State != StateParamExchange {
			t.Errorf("%s: the server began with %+v", r.name, down)
			continue
		}
		if len(up) == 0 || up[0].State != 0 || up[0].Doc == nil {
			t.Errorf("%s: the client began with %+v", r.name, up)
		}
		for _, m := range append(up, down...) {
			if _, known := stateNames[m.State]; m.State != 0 && !known {
				t.Errorf("%s: %v", r.name, m.State)
			}
		}
	}
}

func TestDecodeMessage(t *testing.T) {
	lim := limits{doc: 16, frame: 32}
	doc := []byte(`{"a":1}`)
	type want struct {
		m       message
		n       int
		wantErr string
	}
	for name, tc := range map[string]struct {
		b           []byte
		client, eof bool
		want        want
	}{
		"nothing":               {nil, true, false, want{}},
		"state":                 {[]byte{1, 2}, true, false, want{m: message{State: StateTestStart}, n: 1}},
		"denied":                {[]byte{0xff}, true, false, want{m: message{State: StateAccessDenied}, n: 1}},
		"document":              {AppendDocument(nil, doc), true, false, want{m: message{Doc: doc}, n: 11}},
		"document in part":      {AppendDocument(nil, doc)[:9], true, false, want{}},
		"length in part":        {[]byte{0, 0}, true, false, want{}},
		"empty document":        {[]byte{0, 0, 0, 0}, true, false, want{wantErr: "empty"}},
		"long document":         {[]byte{0, 0, 0, 17}, true, false, want{wantErr: "too long"}},
		"huge document":         {[]byte{0, 0xff, 0xff, 0xff}, true, false, want{wantErr: "too long"}},
		"frame":                 {AppendFrame(nil, FrameEvent, doc), true, false, want{m: message{State: FrameEvent, Doc: doc}, n: 12}},
		"unknown frame":         {AppendFrame(nil, 0x4f, doc), true, false, want{m: message{State: 0x4f, Doc: doc}, n: 12}},
		"frame in part":         {[]byte{0x47}, true, false, want{}},
		"long frame":            {[]byte{0x47, 0, 0, 0, 33}, true, false, want{wantErr: "too long"}},
		"negative frame length": {[]byte{0x47, 0xff, 0xff, 0xff, 0xff}, true, false, want{wantErr: "too long"}},
		"error": {
			AppendError(nil, WireError{202, 93}), true, false,
			want{m: message{State: StateServerError, Err: &WireError{202, 93}}, n: 9},
		},
		"error before the rest came": {AppendError(nil, WireError{202, 93})[:5], true, false, want{}},
		"error of old servers, cut by the end": {
			AppendError(nil, WireError{142, 0})[:5], true, true,
			want{m: message{State: StateServerError, Err: &WireError{142, 0}}, n: 5},
		},
		"bare error": {[]byte{0xfe}, true, true, want{m: message{State: StateServerError, Err: &WireError{}}, n: 1}},
		"error twice": {
			AppendError(AppendError(nil, WireError{27, 0}), WireError{27, 0}), true, false,
			want{m: message{State: StateServerError, Err: &WireError{27, 0}}, n: 9},
		},
		"a server knows no SERVER_ERROR": {[]byte{0xfe}, false, false, want{m: message{State: StateServerError}, n: 1}},
	} {
		m, n, err := decodeMessage(tc.b, lim, tc.client, tc.eof)
		if tc.want.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), tc.want.wantErr) {
				t.Errorf("%s: error %v, want %q", name, err, tc.want.wantErr)
			}
			continue
		}
		if err != nil || n != tc.want.n {
			t.Errorf("%s: n = %d, err = %v; want %d", name, n, err, tc.want.n)
		}
		if diff := cmp.Diff(tc.want.m, m); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// FuzzDecodeMessage: whatever comes, a message is inside its buffer and its limits, and
// more input never changes what a complete message was.
func FuzzDecodeMessage(f *testing.F) {
	for _, r := range recordings(f) {
		f.Add(r.control("C>S")[CookieSize:], false, true)
		f.Add(r.control("S>C"), true, true)
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, false, true)
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), true, false)
	f.Fuzz(func(t *testing.T, b []byte, client, eof bool) {
		lim := limits{doc: MaxParams, frame: MaxFrame}
		whole := bytes.Clone(b)
		for len(b) > 0 {
			m, n, err := decodeMessage(b, lim, client, eof)
			if n < 0 || n > len(b) || err != nil && n != 0 {
				t.Fatalf("n = %d of %d, %v", n, len(b), err)
			}
			if n == 0 {
				break
			}
			if len(m.Doc) > MaxFrame || m.State == 0 && len(m.Doc) > MaxParams {
				t.Fatalf("document of %d bytes", len(m.Doc))
			}
			if eof && m.State == StateServerError && n < 9 {
				break // the end completed it; with more input it would be another
			}
			again, n2, _ := decodeMessage(append(bytes.Clone(b[:n]), "more"...), lim, client, false)
			if n2 != n || again.State != m.State || !bytes.Equal(again.Doc, m.Doc) {
				t.Fatalf("with more input: %v %d, before %v %d", again.State, n2, m.State, n)
			}
			b = b[n:]
		}
		if !bytes.HasSuffix(whole, b) {
			t.Fatal("the decoder wrote into its input")
		}
	})
}
