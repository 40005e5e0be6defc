package ntttcp

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/proto/ext"
)

func hello(n int) []byte {
	doc := append([]byte(`{"v":1}`), bytes.Repeat([]byte{' '}, max(0, n-7))...)
	return ext.Append(nil, ext.FrameHello, doc)
}

func TestTakeItem(t *testing.T) {
	w := func(w Word) []byte { return w.Append(nil) }
	for name, c := range map[string]struct {
		in   []byte
		mode framing
		want item
		n    int
		err  error
	}{
		"nothing":                          {nil, framed, item{}, 0, nil},
		"a word":                           {w(88), wordsOnly, item{w: 88}, 4, nil},
		"a part of a word":                 {w(88)[:3], framed, item{}, 0, nil},
		"a hello before it may be":         {hello(7), wordsOnly, item{w: 0x46000000}, 4, nil},
		"a hello where it may be":          {hello(7), mayGreet, item{frame: ext.FrameHello, doc: []byte(`{"v":1}`)}, 12, nil},
		"the same among frames":            {hello(7), framed, item{frame: ext.FrameHello, doc: []byte(`{"v":1}`)}, 12, nil},
		"a word where a hello may be":      {w(60), mayGreet, item{w: 60}, 4, nil},
		"a negative one":                   {w(-1), mayGreet, item{w: -1}, 4, nil},
		"a time that is no hello":          {w(0x46000100 + maxHello), mayGreet, item{w: 0x46000100 + maxHello}, 4, nil},
		"one that may become one":          {w(0x46000001), mayGreet, item{}, 0, nil},
		"and does not":                     {append(w(0x46000001), 0, 0), mayGreet, item{w: 0x46000001}, 4, nil},
		"a hello that is too long":         {hello(maxHello + 1), mayGreet, item{}, 0, ext.ErrTooLong},
		"the longest":                      {hello(maxHello)[:maxHello], mayGreet, item{}, 0, nil},
		"another frame where hello may be": {ext.Append(nil, ext.FrameClient, []byte("{}")), mayGreet, item{w: 0x49000000}, 4, nil},
		"the last frame":                   {ext.Append(nil, 0x4f, []byte("{}")), framed, item{frame: 0x4f, doc: []byte("{}")}, 7, nil},
		"an empty frame":                   {[]byte{0x47, 0, 0, 0, 0}, framed, item{}, 0, ext.ErrEmpty},
		"one that is announced too long":   {[]byte{0x47, 0, 4, 0, 1}, framed, item{}, 0, ext.ErrTooLong},
		"neither":                          {[]byte{0x45, 0, 0, 0}, framed, item{}, 0, errNoMessage},
		"a negative word among frames":     {w(-1), framed, item{}, 0, errNoMessage},
	} {
		got, n, err := takeItem(c.in, c.mode)
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(item{})); diff != "" || n != c.n || !errors.Is(err, c.err) {
			t.Errorf("%s: %d %v %s", name, n, err, diff)
		}
	}
}

// TestCommandsAreNoFrames: whatever a real tool says on the sync port, and the times that ours
// proposes beside frames, stay words.
func TestCommandsAreNoFrames(t *testing.T) {
	for _, w := range []Word{WordState, WordStart, WordLast, WordWait, WordEnd, StateIdle, StateRunning, StateFinished, StateFullbore, 0, maxExtWord - 1} {
		for _, mode := range []framing{wordsOnly, mayGreet, framed} {
			if it, n, err := takeItem(w.Append(nil), mode); it.w != w || it.frame != 0 || n != WordSize || err != nil {
				t.Errorf("%v, %d: %+v %d %v", w, mode, it, n, err)
			}
		}
	}
}

// TestMixed: words and frames in one stream, in any segments.
func TestMixed(t *testing.T) {
	var stream []byte
	want := []item{
		{w: WordState},
		{frame: ext.FrameHello, doc: []byte(`{"v":1}`)},
		{w: 60},
		{frame: ext.FrameClient, doc: bytes.Repeat([]byte("x"), 5000)},
		{w: WordStart},
		{frame: ext.FrameResults, doc: []byte(`{}`)},
	}
	for _, it := range want {
		if it.frame != 0 {
			stream = ext.Append(stream, it.frame, it.doc)
		} else {
			stream = it.w.Append(stream)
		}
	}
	for name, r := range map[string]io.Reader{
		"whole": bytes.NewReader(stream), "byte by byte": iotest.OneByteReader(bytes.NewReader(stream)), "with the end": iotest.DataErrReader(bytes.NewReader(stream)),
	} {
		m := &mixed{r: r}
		var got []item
		for {
			it, err := m.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(got) == 0 {
				m.set(mayGreet)
			}
			if it.frame == ext.FrameHello {
				m.set(framed)
			}
			got = append(got, it)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(item{})); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	m := &mixed{r: bytes.NewReader(stream[:2])}
	if _, err := m.next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("half a word: %v", err)
	}
	m = &mixed{r: iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(stream)))}
	if _, err := m.next(); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("a reader that fails: %v", err)
	}
}

// FuzzMixed: whatever comes in whatever segments, it is taken as the same messages, and written
// again they are the same bytes.
func FuzzMixed(f *testing.F) {
	f.Add(append(WordState.Append(nil), hello(9)...), uint8(3), uint8(mayGreet))
	f.Add(ext.Append(WordStart.Append(nil), ext.FrameResults, []byte("{}")), uint8(1), uint8(framed))
	f.Add([]byte{0x46, 0, 0, 1, 0, '{', 0x47, 0, 0}, uint8(2), uint8(framed))
	f.Fuzz(func(t *testing.T, in []byte, step, start uint8) {
		read := func(r io.Reader) (out []byte, items []item, err error) {
			m := &mixed{r: r}
			m.set(framing(start % 3))
			for {
				it, err := m.next()
				if err != nil {
					return out, items, err
				}
				items = append(items, it)
				if it.frame == 0 {
					out = it.w.Append(out)
					continue
				}
				if m.set(framed); !it.frame.Valid() || len(it.doc) == 0 || len(it.doc) > ext.MaxFrame {
					t.Fatalf("%v of %d bytes", it.frame, len(it.doc))
				}
				out = ext.Append(out, it.frame, it.doc)
			}
		}
		whole, items, err := read(bytes.NewReader(in))
		if !bytes.HasPrefix(in, whole) {
			t.Fatalf("% x is no beginning of % x", whole, in)
		}
		if errors.Is(err, io.EOF) && len(whole) != len(in) {
			t.Fatalf("%d bytes are taken for the end", len(in)-len(whole))
		}
		_, again, err2 := read(&segments{in, int(step%7) + 1})
		if diff := cmp.Diff(items, again, cmp.AllowUnexported(item{})); diff != "" || (err == nil) != (err2 == nil) {
			t.Fatalf("in segments: %v, %v %s", err, err2, diff)
		}
	})
}

// segments hands out n bytes at a time.
type segments struct {
	b []byte
	n int
}

func (s *segments) Read(p []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.b[:min(s.n, len(s.b))])
	s.b = s.b[n:]
	return n, nil
}
