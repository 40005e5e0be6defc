package strictyaml

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/ast"
	"github.com/google/go-cmp/cmp"
)

// file is what the tests read.
type file struct {
	Name   string
	On     bool
	Words  []string
	Sizes  []string
	Server string
	Free   map[string]string
}

func read(r *Reader, text string) (f file) {
	f.Free = map[string]string{}
	r.Document([]byte(text), map[string]Handler{
		"name": r.Text(&f.Name), "on": r.Truth(&f.On), "words": r.Texts(&f.Words),
		"sizes": func(n ast.Node, path string) {
			r.Sequence(n, path, func(n ast.Node, path string) {
				r.Mapping(n, path, map[string]Handler{"size": r.Value(func(s string) error {
					f.Sizes = append(f.Sizes, s)
					return nil
				})})
			})
		},
		"server": r.Value(func(s string) error { return fmt.Errorf("%q is none", s) }),
		"free": func(n ast.Node, path string) {
			r.Pairs(n, path, func(key string, v ast.Node, path string) {
				var s string
				r.Text(&s)(v, path)
				f.Free[key] = s
			})
		},
	})
	return f
}

func TestRead(t *testing.T) {
	r := New("f")
	got := read(r, "name: 010\non: true\nwords: [yes, \"2\", 0x1F, 1e3]\nsizes:\n  - size: 4M\n  - {size: .inf}\nfree: {a.b: c}\n")
	if err := r.Err(); err != nil || r.Failed() || !r.Found() {
		t.Fatal(err)
	}
	want := file{Name: "010", On: true, Words: []string{"yes", "2", "0x1F", "1e3"}, Sizes: []string{"4M", ".inf"}, Free: map[string]string{"a.b": "c"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !r.Given("sizes[1].size") || r.Given("sizes[2]") || r.Given("server") {
		t.Error("what is given is not known")
	}
	for path, line := range map[string]string{"words": ":3", "sizes[0].none": ":5", "sizes[1].size": ":6", "free.x.y": ":7", "none": ":1", "": ":1"} {
		if got := r.place(tokenOf(r.At(path))); got != line {
			t.Errorf("%q stands in line %s, want %s", path, got, line)
		}
	}
}

func TestFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string // all of them, in order
	}{
		"none":          {"# nothing\n", []string{"f: want one YAML document, found 0"}},
		"two documents": {"name: a\n---\nname: b\n", []string{"f: want one YAML document, found 2"}},
		"no mapping":    {"- 1\n", []string{"f:1: want keys with values, found a list"}},
		"a word":        {"word\n", []string{"f:1: want keys with values, found a single value"}},
		"unknown":       {"\ncolour: red\n", []string{"f:2: colour: unknown key; there are: free, name, on, server, sizes, words"}},
		"meant": {"nmae: a\nsever: b\nsizes:\n  - sise: 1\n", []string{
			"f:1: nmae: unknown key; there are: free, name, on, server, sizes, words; did you mean name?",
			"f:2: sever: unknown key; there are: free, name, on, server, sizes, words; did you mean server?",
			"f:4: sizes[0].sise: unknown key; there are: size; did you mean size?",
		}},
		"twice":   {"name: a\non: true\nname: b\n", []string{"f:3: name: given twice"}},
		"empty":   {"name: ''\nwords:\n", []string{"f:1: name: is empty", "f:2: words: want a list, found nothing"}},
		"nothing": {"name:\nserver: ~\n", []string{"f:1: name: want one value, found nothing", "f:2: server: want one value, found nothing"}},
		"truth":   {"on: yes\n", []string{`f:1: on: "yes" is neither true nor false`}},
		"wrong":   {"name: [a]\nserver: x\n", []string{"f:1: name: want one value, found a list", `f:2: server: "x" is none`}},
		"anchor":  {"name: &a b\nwords: *a\n", []string{"f:1: name: want one value, found an anchor, alias or tag", "f:2: words: want a list, found an anchor, alias or tag"}},
		"tag":     {"name: !!str b\n", []string{"f:1: name: want one value, found an anchor, alias or tag"}},
		"merge":   {"<<: {name: a}\n", []string{"f:1: a key must be a word, found an anchor, alias or tag"}},
		"key":     {"[a]: b\n", []string{"f:1: "}},
	} {
		t.Run(name, func(t *testing.T) {
			r := New("f")
			read(r, tt.text)
			if !r.Failed() {
				t.Fatal("no fault")
			}
			got := strings.Split(r.Err().Error(), "\n")
			if len(got) != len(tt.want) {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			for i := range got {
				if got[i] != tt.want[i] && (name != "key" || !strings.HasPrefix(got[i], tt.want[i])) {
					t.Errorf("got %q\nwant %q", got[i], tt.want[i])
				}
			}
		})
	}
}

// With columns a fault stands where the key or value begins that it is about.
func TestColumns(t *testing.T) {
	r := New("f").Columns()
	read(r, "nmae: a\non:   yes\nwords: {a: b}\nsizes:\n  - sise: 1\n  - 7\n")
	var got []string
	for _, l := range strings.Split(r.Err().Error(), "\n") {
		where, _, _ := strings.Cut(l, ": ")
		got = append(got, where)
	}
	if diff := cmp.Diff([]string{"f:1:1", "f:2:7", "f:3:8", "f:5:5", "f:6:5"}, got); diff != "" {
		t.Errorf("%s\n%v", diff, r.Err())
	}
	if b := r.Beside(); !b.fine {
		t.Error("the reader beside it tells no columns")
	}
}

// A fault of the grammar has its line and stays one line.
func TestSyntax(t *testing.T) {
	for _, text := range []string{"name: [", "name: a\n  on: b\n", "\"", "a: b: c\n"} {
		r := New("f")
		read(r, text)
		if err := r.Err(); err == nil || !strings.HasPrefix(err.Error(), "f:") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestBeside(t *testing.T) {
	r := New("f")
	r.Fail(nil, "a", "is wrong")
	b := r.Beside()
	if b.Failed() || b.Given("a") {
		t.Error("it begins with the other's faults")
	}
	b.Fail(nil, "", "is worse")
	r.Add(nil, b.Err())
	if got := r.Err().Error(); got != "f: a: is wrong\nf: is worse" {
		t.Errorf("%q", got)
	}
}

func TestNearest(t *testing.T) {
	names := []string{"bits", "bytes", "cir", "eir", "name", "queue", "rate", "streams"}
	for word, want := range map[string]string{
		"stream": "streams", "sterams": "streams", "nmae": "name", "queu": "queue", "rates": "rate", "Rate": "rate", "cri": "cir",
		"": "", "colour": "", "ir": "", "xir": "", "r": "", strings.Repeat("rate", 100): "",
	} {
		if got := nearest(word, names); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

// Whatever the file holds, it is read or there is a reason, and nothing falls over.
func FuzzRead(f *testing.F) {
	f.Add("name: a\nsizes: [{size: 1}]\n")
	f.Add("name: &a b\nfree: {? x : *a}\n")
	f.Add("services: [{name: a, cir: 1M}]\n")
	f.Add("- 1\n")
	f.Add("<<: *x\n")
	f.Fuzz(func(t *testing.T, text string) {
		r := New("f")
		got := read(r, text)
		if r.Failed() != (r.Err() != nil) {
			t.Error("failed, and no fault")
		}
		if !r.Failed() && !r.Given("name") && got.Name != "" {
			t.Error("a value of a key that is not there")
		}
	})
}
