package suite

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// reader decodes a suite file key by key and collects every fault with its line, so that its author
// sees all of them at once. It is strict: an unknown key, a key given twice, an anchor, an alias
// or a tag is a fault. Scalars are taken as they are written.
type reader struct {
	file string
	errs []error
}

// handler reads the value of one key.
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

// document reads the one mapping of a text.
func (r *reader) document(text []byte, fields map[string]handler) {
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
	r.mapping(bodies[0], "", fields)
}

// mapping reads keys, each known and at most once. It returns where each stood.
func (r *reader) mapping(n ast.Node, path string, fields map[string]handler) map[string]ast.Node {
	given := map[string]ast.Node{}
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		r.fail(n, path, "want keys with values")
		return given
	}
	for _, v := range values {
		key, ok := scalar(v.Key)
		if !ok {
			r.fail(v, path, "a key must be a word")
			continue
		}
		at := strings.TrimPrefix(path+"."+key, ".")
		if given[key] != nil {
			r.fail(v.Key, at, "given twice")
			continue
		}
		given[key] = v.Key
		h, known := fields[key]
		if !known {
			names := make([]string, 0, len(fields))
			for k := range fields {
				names = append(names, k)
			}
			slices.Sort(names)
			r.fail(v.Key, at, "unknown key; there are: %s", strings.Join(names, ", "))
			continue
		}
		h(v.Value, at)
	}
	return given
}

// sequence reads a list.
func (r *reader) sequence(n ast.Node, path string, each handler) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		r.fail(n, path, "want a list")
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
			r.fail(n, path, "want one value")
			return
		}
		if err := set(text); err != nil {
			r.fail(n, path, "%w", err)
		}
	}
}

func (r *reader) text(to *string) handler {
	return r.value(func(s string) error {
		if s == "" {
			return errors.New("is empty")
		}
		*to = s
		return nil
	})
}

// scalar is the text of a plain or quoted value as it is written; false for anything else.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
		if n.GetToken() == nil {
			return "", false
		}
		return n.GetToken().Value, true
	}
	return "", false
}
