// Package strictyaml reads a YAML file key by key, so that its author sees every fault at once, each
// with its line and the key it is about. It is strict: an unknown key, a key given twice, a second
// document, an anchor, an alias or a tag is a fault. Scalars are taken as they are written: 010 and
// yes are no numbers and no truth values here but words for a field's own parser.
package strictyaml

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Reader collects the faults of one file, and where its keys stand.
type Reader struct {
	file string
	fine bool // faults tell the column, too
	errs []error
	keys map[string]ast.Node // by path; "" = the whole document
}

// Handler reads the value of one key. path is the key's place in the document: "path.up.rate", "items[2].time".
type Handler func(n ast.Node, path string)

// New makes a reader; file is what the faults call it.
func New(file string) *Reader { return &Reader{file: file, keys: map[string]ast.Node{}} }

// Columns makes the faults tell the column, too: "FILE:LINE:COLUMN: PATH: TEXT".
func (r *Reader) Columns() *Reader {
	r.fine = true
	return r
}

// Beside makes a reader of the same file with no faults yet, to look ahead with.
func (r *Reader) Beside() *Reader {
	other := New(r.file)
	other.fine = r.fine
	return other
}

// Fail notes a fault: "FILE:LINE: PATH: TEXT". Without a node there is no line, and without a path none is said.
func (r *Reader) Fail(n ast.Node, path, format string, args ...any) {
	where := r.file + r.place(tokenOf(n))
	if path != "" {
		where += ": " + path
	}
	r.errs = append(r.errs, fmt.Errorf("%s: "+format, append([]any{where}, args...)...))
}

// place is ":LINE", or ":LINE:COLUMN", of a token, from 1; "" = not known.
func (r *Reader) place(t *token.Token) string {
	switch {
	case t == nil || t.Position == nil || t.Position.Line <= 0:
		return ""
	case r.fine && t.Position.Column > 0:
		return fmt.Sprintf(":%d:%d", t.Position.Line, t.Position.Column)
	}
	return fmt.Sprintf(":%d", t.Position.Line)
}

// tokenOf is where a node begins: keys with values where their first key does, not at its colon.
func tokenOf(n ast.Node) *token.Token {
	switch m := n.(type) {
	case nil:
		return nil
	case *ast.MappingValueNode:
		if m.Key != nil {
			return m.Key.GetToken()
		}
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			return tokenOf(m.Values[0])
		}
	}
	return n.GetToken()
}

// Add notes faults that were found elsewhere.
func (r *Reader) Add(errs ...error) {
	for _, err := range errs {
		if err != nil {
			r.errs = append(r.errs, err)
		}
	}
}

// Failed reports that there are faults.
func (r *Reader) Failed() bool { return len(r.errs) > 0 }

// Err is all faults, joined; nil = none.
func (r *Reader) Err() error { return errors.Join(r.errs...) }

// Found reports that the text holds a document, whatever is wrong with it.
func (r *Reader) Found() bool { return r.Given("") }

// Given reports that a key is there.
func (r *Reader) Given(path string) bool { return r.keys[path] != nil }

// At is the key at path, or the nearest one above it that is written, at last the whole document;
// nil = there is none.
func (r *Reader) At(path string) ast.Node {
	for path != "" && r.keys[path] == nil {
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return r.keys[path]
}

// Document parses text and reads its one document, which must be a mapping.
func (r *Reader) Document(text []byte, fields map[string]Handler) {
	// The parser would stop at the first double key; Pairs finds all.
	f, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		r.errs = append(r.errs, r.syntax(err))
		return
	}
	var bodies []ast.Node
	for _, d := range f.Docs {
		if d.Body != nil {
			bodies = append(bodies, d.Body)
		}
	}
	if len(bodies) != 1 {
		r.Fail(nil, "", "want one YAML document, found %d", len(bodies))
		return
	}
	r.keys[""] = bodies[0]
	r.Mapping(bodies[0], "", fields)
}

// syntax tells the parser's fault in one line.
func (r *Reader) syntax(err error) error {
	var e yaml.Error
	if errors.As(err, &e) && e.GetToken() != nil && e.GetToken().Position != nil {
		return fmt.Errorf("%s%s: %s", r.file, r.place(e.GetToken()), strings.TrimSpace(e.GetMessage()))
	}
	return fmt.Errorf("%s: %w", r.file, err)
}

// Mapping reads keys with values; each key at most once and each known.
func (r *Reader) Mapping(n ast.Node, path string, fields map[string]Handler) {
	r.pairs(n, path, func(key, value ast.Node, word, at string) {
		h, ok := fields[word]
		if ok {
			h(value, at)
			return
		}
		names := slices.Sorted(maps.Keys(fields))
		hint := ""
		if near := nearest(word, names); near != "" {
			hint = "; did you mean " + near + "?"
		}
		r.Fail(key, at, "unknown key; there are: %s%s", strings.Join(names, ", "), hint)
	})
}

// Pairs reads a mapping whose keys are names chosen by the author.
func (r *Reader) Pairs(n ast.Node, path string, each func(key string, value ast.Node, path string)) {
	r.pairs(n, path, func(_, value ast.Node, word, at string) { each(word, value, at) })
}

func (r *Reader) pairs(n ast.Node, path string, each func(key, value ast.Node, word, at string)) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		r.Fail(n, path, "want keys with values, found %s", kind(n))
		return
	}
	seen := map[string]bool{}
	for _, v := range values {
		key, ok := Scalar(v.Key)
		if !ok {
			r.Fail(v, path, "a key must be a word, found %s", kind(v.Key))
			continue
		}
		at := strings.TrimPrefix(path+"."+key, ".")
		if seen[key] {
			r.Fail(v.Key, at, "given twice")
			continue
		}
		seen[key] = true
		r.keys[at] = v.Key
		each(v.Key, v.Value, key, at)
	}
}

// Sequence reads a list.
func (r *Reader) Sequence(n ast.Node, path string, each Handler) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		r.Fail(n, path, "want a list, found %s", kind(n))
		return
	}
	for i, v := range s.Values {
		at := fmt.Sprintf("%s[%d]", path, i)
		if v != nil {
			r.keys[at] = v
		}
		each(v, at)
	}
}

// Value hands a scalar's text to set; its error becomes a fault.
func (r *Reader) Value(set func(text string) error) Handler {
	return func(n ast.Node, path string) {
		text, ok := Scalar(n)
		if !ok {
			r.Fail(n, path, "want one value, found %s", kind(n))
			return
		}
		if err := set(text); err != nil {
			r.Fail(n, path, "%w", err)
		}
	}
}

// Text is Value for a plain text that is not empty.
func (r *Reader) Text(to *string) Handler {
	return r.Value(func(s string) error {
		if s == "" {
			return errors.New("is empty")
		}
		*to = s
		return nil
	})
}

// Texts reads a list of texts.
func (r *Reader) Texts(to *[]string) Handler {
	return func(n ast.Node, path string) {
		r.Sequence(n, path, r.Value(func(s string) error {
			*to = append(*to, s)
			return nil
		}))
	}
}

// Truth reads true or false, and nothing else that means it elsewhere.
func (r *Reader) Truth(to *bool) Handler {
	return r.Value(func(s string) error {
		if s != "true" && s != "false" {
			return fmt.Errorf("%q is neither true nor false", s)
		}
		*to = s == "true"
		return nil
	})
}

// Scalar is the text of a plain or quoted value as it was written, without its quotes; false for
// anything else, nothing included.
func Scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		if t := n.GetToken(); t != nil {
			return t.Value, true
		}
	}
	return "", false
}

// kind says what a node is, for people.
func kind(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "keys with values"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode, nil:
		return "nothing"
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		return "an anchor, alias or tag"
	}
	return "a single value"
}

// nearest is the name that word was meant to be: at most two slips of a finger away, and fewer than
// half of its letters; "" = none, or two are as near.
func nearest(word string, names []string) string {
	best, at := "", 3
	for _, name := range names {
		d := slips(word, name)
		switch {
		case 2*d >= len(name) || d > at:
		case d == at:
			best = ""
		default:
			best, at = name, d
		}
	}
	if at > 2 {
		return ""
	}
	return best
}

// slips is how many letters must be put in, left out, changed or swapped with their neighbour to make b of a.
func slips(a, b string) int {
	if len(a) > 64 { // no key of ours; the table below would only cost time
		return len(a)
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
