package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/method"
)

func TestParseOver(t *testing.T) {
	for _, c := range []struct {
		text   string
		axis   method.Axis
		want   []int64
		shares []float64
		bad    bool
	}{
		{"1,2,4,12", method.Streams, []int64{1, 2, 4, 12}, nil, false},
		{"1..64", method.Streams, []int64{1, 2, 4, 8, 16, 32, 64}, nil, false},
		{"3..20", method.Streams, []int64{3, 6, 12, 20}, nil, false},
		{"4,1,4", method.Streams, []int64{1, 4}, nil, false},
		{"64K..256K,auto", method.Window, []int64{0, 65536, 131072, 262144}, nil, false},
		{"50%,100%", method.Window, nil, []float64{0.5, 1}, false},
		{"8K", method.Length, []int64{8192}, nil, false},
		{"0", method.Streams, nil, nil, true},
		{"4..2", method.Streams, nil, nil, true},
		{"auto", method.Streams, nil, nil, true},
		{"50%,64K", method.Window, nil, nil, true},
		{"2M", method.Length, nil, nil, true},
		{"", method.Streams, nil, nil, true},
	} {
		got, shares, err := parseOver(c.text, c.axis)
		if (err != nil) != c.bad || !c.bad && (!cmp.Equal(got, c.want) || !cmp.Equal(shares, c.shares)) {
			t.Errorf("%q of %s: %v %v %v", c.text, c.axis, got, shares, err)
		}
	}
}

func TestParseFrom(t *testing.T) {
	for text, want := range map[string]int64{"16": 16, "cores": 6, "cores*4": 24, "cores * 2": 12, "x": 0, "0": 0, "cores*": 0, "4*5": 20} {
		got, err := parseFrom(text, 6)
		if (err != nil) != (want == 0) || err == nil && got != want {
			t.Errorf("%q: %d %v, want %d", text, got, err, want)
		}
	}
}

func TestABWords(t *testing.T) {
	for _, c := range []struct{ in, want []string }{
		{[]string{"compare", "--ab", "-P 1", "-P 4", "h", "-t", "1"}, []string{"compare", "--ab=-P 1", "--ab=-P 4", "h", "-t", "1"}},
		{[]string{"compare", "a", "b"}, []string{"compare", "a", "b"}},
		{[]string{"compare", "--ab", "x"}, []string{"compare", "--ab", "x"}},
		{[]string{"test", "--ab", "x", "y"}, []string{"test", "--ab", "x", "y"}},
		{nil, nil},
	} {
		if got := abWords(c.in); !cmp.Equal(got, c.want) {
			t.Errorf("%q: %q", c.in, got)
		}
	}
}

// Every preset can be set: its words are read by the flags that they are for.
func TestPresets(t *testing.T) {
	for _, p := range presets {
		if _, _, err := parseOver(p.overStreams, method.Streams); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
		if _, _, err := parseOver(p.overWindow, method.Window); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
		o := &testOptions{preset: p.name}
		cmd := newTestCmd(&env{})
		if err := o.usePreset(cmd.Flags()); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
		if got := cmd.Flags().Lookup("streams").Value.String(); got != p.streams {
			t.Errorf("%s: streams %s", p.name, got)
		}
	}
}

func TestRoundsFlag(t *testing.T) {
	for text, want := range map[string]roundsFlag{"5": {n: 5}, "auto": {auto: true}, "1": {n: 1}} {
		var f roundsFlag
		if err := f.Set(text); err != nil || f != want || f.String() != text {
			t.Errorf("%q: %+v %v", text, f, err)
		}
	}
	for _, text := range []string{"0", "-1", "many", "1001", ""} {
		var f roundsFlag
		if err := f.Set(text); err == nil {
			t.Errorf("%q was taken: %+v", text, f)
		}
	}
}
