package lab

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// reader decodes a YAML document field by field and collects every fault with its line,
// so that a scenario's author sees all of them at once. It is strict: an unknown key,
// a key given twice, an anchor or a tag is a fault. Scalars are taken as they are
// written: 010 and yes are no numbers and no truth values here but words for a field's
// own parser.
type reader struct {
	file  string
	errs  []error
	given map[string]bool // paths of the keys that are there; nil: no document was found
}

// handler reads the value of one key. path is the key's place in the document.
type handler func(n ast.Node, path string)

func (r *reader) fail(n ast.Node, path, format string, args ...any) {
	where := r.file
	if n != nil && n.GetToken() != nil && n.GetToken().Position != nil {
		where = fmt.Sprintf("%s:%d", r.file, n.GetToken().Position.Line)
	}
	if path != "" {
		where += ": " + path
	}
	r.errs = append(r.errs, fmt.Errorf("%s: "+format, append([]any{where}, args...)...))
}

// document parses text and reads its one document, which must be a mapping.
func (r *reader) document(text []byte, fields map[string]handler) {
	// The parser would stop at the first double key; the mapping below finds all.
	f, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("%s: %w", r.file, err))
		return
	}
	var bodies []ast.Node
	for _, d := range f.Docs {
		if d.Body != nil {
			bodies = append(bodies, d.Body)
		}
	}
	if len(bodies) != 1 {
		r.fail(nil, "", "want one YAML document, found %d", len(bodies))
		return
	}
	r.given = map[string]bool{}
	r.mapping(bodies[0], "", fields)
}

// mapping reads keys and values; each key at most once and each known.
func (r *reader) mapping(n ast.Node, path string, fields map[string]handler) {
	r.pairs(n, path, func(key string, value ast.Node, path string) {
		h, ok := fields[key]
		if !ok {
			known := make([]string, 0, len(fields))
			for k := range fields {
				known = append(known, k)
			}
			slices.Sort(known)
			r.fail(value, path, "unknown key; there are: %s", strings.Join(known, ", "))
			return
		}
		h(value, path)
	})
}

// pairs reads a mapping whose keys are names chosen by the author.
func (r *reader) pairs(n ast.Node, path string, each func(key string, value ast.Node, path string)) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		r.fail(n, path, "want keys with values, found %s", kind(n))
		return
	}
	seen := map[string]bool{}
	for _, v := range values {
		key, ok := scalar(v.Key)
		if !ok {
			r.fail(v, path, "a key must be a word, found %s", kind(v.Key))
			continue
		}
		at := key
		if path != "" {
			at = path + "." + key
		}
		if seen[key] {
			r.fail(v.Key, at, "given twice")
			continue
		}
		seen[key] = true
		r.given[at] = true
		each(key, v.Value, at)
	}
}

// sequence reads a list.
func (r *reader) sequence(n ast.Node, path string, each handler) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		r.fail(n, path, "want a list, found %s", kind(n))
		return
	}
	for i, v := range s.Values {
		each(v, fmt.Sprintf("%s[%d]", path, i))
	}
}

// value hands a scalar's text to set; its error becomes a fault.
func (r *reader) value(set func(text string) error) handler {
	return func(n ast.Node, path string) {
		text, ok := scalar(n)
		if !ok {
			r.fail(n, path, "want one value, found %s", kind(n))
			return
		}
		if err := set(text); err != nil {
			r.fail(n, path, "%w", err)
		}
	}
}

// text is value for a plain, non-empty text.
func (r *reader) text(to *string) handler {
	return r.value(func(s string) error {
		if s == "" {
			return errors.New("is empty")
		}
		*to = s
		return nil
	})
}

// texts reads a list of texts.
func (r *reader) texts(to *[]string) handler {
	return func(n ast.Node, path string) {
		r.sequence(n, path, r.value(func(s string) error {
			*to = append(*to, s)
			return nil
		}))
	}
}

// scalar returns the text of a scalar as it was written, without its quotes. null is
// none.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

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
