package screen

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain":               "plain",
		"10.0.0.1 → b":        "10.0.0.1 → b",
		"a\x1b[2Jb":           "a\uFFFD[2Jb",
		"two\nlines\tand":     "two lines and",
		"\x9b31m":             "\uFFFD31m",
		"bad \xff byte":       "bad \uFFFD byte",
		"\u202egnp.exe":       "\uFFFDgnp.exe",
		"sep\u2028arator":     "sep\uFFFDarator",
		"del\x7f":             "del\uFFFD",
		"c1 \u009b0m":         "c1 \uFFFD0m",
		"":                    "",
		"zero\u200bwidth ü é": "zero\uFFFDwidth ü é",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestCleanProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Clean(string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")))
		if !utf8.ValidString(s) || strings.ContainsAny(s, "\x1b\n\r\t\x00\x7f") || Clean(s) != s {
			t.Fatalf("%q", s)
		}
	})
}

func TestColumns(t *testing.T) {
	if got := Left("a→b", 5) + "|" + Right("é", 3) + "|" + Left("longer", 3); got != "a→b  |  é|longer" {
		t.Errorf("%q", got)
	}
	for n, want := range map[int]string{0: "", 1: "…", 3: "ho…", 4: "host", 9: "host"} {
		if got := Cut("host", n); got != want {
			t.Errorf("Cut(%d) = %q, want %q", n, got, want)
		}
	}
	if diff := cmp.Diff([]string{"one two", "three", "verylongword", "x"}, Wrap("one two  three verylongword x", 8)); diff != "" {
		t.Error(diff)
	}
}

func TestSpark(t *testing.T) {
	for _, c := range []struct {
		values []float64
		width  int
		top    float64
		want   string
	}{
		{nil, 10, 0, ""},
		{[]float64{1}, 0, 0, ""},
		{[]float64{0, 0}, 10, 0, "▁▁"},
		{[]float64{0, 1, 2, 3, 4, 5, 6, 7, 8}, 10, 0, "▁▂▃▄▅▆▇██"},
		{[]float64{5, 5}, 10, 10, "▅▅"},
		{[]float64{20, -1}, 10, 10, "█▁"},
		{[]float64{1, 1, 3, 3, 8, 8}, 3, 0, "▂▄█"},
	} {
		if got := Spark(c.values, c.width, c.top); got != c.want {
			t.Errorf("Spark(%v, %d, %g) = %q, want %q", c.values, c.width, c.top, got, c.want)
		}
	}
}

func TestChart(t *testing.T) {
	got := Chart([]float64{0, 1, 4, 5, 8}, 10, 2, 8)
	if diff := cmp.Diff([]string{"  ▁▃█", "▁▃███"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, none := range [][]string{Chart([]float64{1}, 0, 2, 0), Chart([]float64{1}, 3, 0, 0)} {
		if none != nil {
			t.Errorf("a chart without room: %q", none)
		}
	}
	if diff := cmp.Diff([]string{"  ", "▁▁"}, Chart([]float64{0, -1}, 9, 2, 0)); diff != "" {
		t.Errorf("nothing moved: -want +got:\n%s", diff)
	}
}

func TestChartProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(rapid.Float64Range(-1, 2e12), 0, 100).Draw(t, "values")
		w, h := rapid.IntRange(1, 80).Draw(t, "w"), rapid.IntRange(1, 9).Draw(t, "h")
		lines := Chart(in, w, h, rapid.Float64Range(-1, 2e12).Draw(t, "top"))
		if len(lines) != h {
			t.Fatalf("%d lines of %d", len(lines), h)
		}
		for _, l := range lines {
			if Width(l) != min(len(in), w) {
				t.Fatalf("%q is %d wide", l, Width(l))
			}
		}
	})
}

func TestShrinkProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(rapid.Float64Range(0, 100), 1, 200).Draw(t, "values")
		n := rapid.IntRange(1, 50).Draw(t, "n")
		out := Shrink(in, n)
		if len(out) != min(n, len(in)) {
			t.Fatalf("%d values", len(out))
		}
		for _, v := range out {
			if v < 0 || v > 100+1e-9 {
				t.Fatalf("mean %g", v)
			}
		}
	})
}

func TestBar(t *testing.T) {
	for share, want := range map[float64]string{-1: "────", 0: "────", 0.5: "━━──", 1: "━━━━", 7: "━━━━"} {
		if got := Bar(share, 4); got != want {
			t.Errorf("Bar(%g) = %q, want %q", share, got, want)
		}
	}
	if Bar(0.5, -1) != "" {
		t.Error("a bar without room")
	}
}
