package explain

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// source is one package's files and the string constants it declares.
type source struct {
	path   string // below the module's root
	files  []*ast.File
	consts map[string]string
}

// sources are all of the module but this package's. Nobody changes them.
func sources(t *testing.T) map[string]*source {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// parsed parses every program file, once.
var parsed = sync.OnceValues(func() (map[string]*source, error) {
	const root = "../.."
	out := map[string]*source{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if name == "testdata" || name == "explain" || name != ".." && strings.HasPrefix(name, ".") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(fset, p, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(p))
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		if out[dir] == nil {
			out[dir] = &source{path: dir, consts: map[string]string{}}
		}
		out[dir].files = append(out[dir].files, f)
		return nil
	})
	for _, s := range out {
		s.collect()
	}
	return out, err
})

func (s *source) collect() {
	for _, f := range s.files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				for i, name := range v.Names {
					if i < len(v.Values) {
						if text, ok := literal(v.Values[i]); ok {
							s.consts[name.Name] = text
						}
					}
				}
			}
		}
	}
}

func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// value is the string that an expression stands for: a literal, a constant of the
// package, or one of another package whose folder has the qualifier's name.
func (s *source) value(e ast.Expr, all map[string]*source) (string, bool) {
	switch x := e.(type) {
	case *ast.BasicLit:
		return literal(x)
	case *ast.Ident:
		v, ok := s.consts[x.Name]
		return v, ok
	case *ast.SelectorExpr:
		if pkg, ok := x.X.(*ast.Ident); ok {
			for path, other := range all {
				if path == pkg.Name || strings.HasSuffix(path, "/"+pkg.Name) {
					if v, ok := other.consts[x.Sel.Name]; ok {
						return v, true
					}
				}
			}
		}
	}
	return "", false
}

// typeName is "Notice" or "Error" for package result's types, "" for others.
func typeName(e ast.Expr, inResult bool) string {
	switch x := e.(type) {
	case *ast.SelectorExpr:
		if pkg, ok := x.X.(*ast.Ident); ok && pkg.Name == "result" {
			return x.Sel.Name
		}
	case *ast.Ident:
		if inResult {
			return x.Name
		}
	case *ast.ArrayType:
		return typeName(x.Elt, inResult)
	case *ast.StarExpr:
		return typeName(x.X, inResult)
	}
	return ""
}

// codesIn calls found for every code of a Notice or Error that the package makes: in
// literals, in lists of literals, by assignment to a field called Code, and by calls of
// functions that put one of their parameters there.
func (s *source) codesIn(all map[string]*source, found func(kind, code string)) {
	makers := s.makers()
	for _, f := range s.files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.CompositeLit:
				s.literals(x, func(kind string, code ast.Expr) {
					if v, ok := s.value(code, all); ok {
						found(kind, v)
					}
				})
			case *ast.AssignStmt:
				for i, l := range x.Lhs {
					if sel, ok := l.(*ast.SelectorExpr); ok && sel.Sel.Name == "Code" && len(x.Lhs) == len(x.Rhs) {
						if v, ok := s.value(x.Rhs[i], all); ok {
							found("either", v)
						}
					}
				}
			case *ast.CallExpr:
				if m, ok := makers[calledName(x)]; ok && m.arg < len(x.Args) {
					if v, ok := s.value(x.Args[m.arg], all); ok {
						found(m.kind, v)
					}
				}
			}
			return true
		})
	}
}

// literals calls f with the expression of Code in every Notice or Error of a literal.
func (s *source) literals(lit *ast.CompositeLit, f func(kind string, code ast.Expr)) {
	kind := typeName(lit.Type, s.path == "result")
	if kind != "Notice" && kind != "Error" {
		return
	}
	list := []*ast.CompositeLit{lit}
	for _, elt := range lit.Elts {
		if inner, ok := elt.(*ast.CompositeLit); ok && inner.Type == nil {
			list = append(list, inner)
		}
	}
	for _, l := range list {
		for _, elt := range l.Elts {
			kv, ok := elt.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Code" {
				f(kind, kv.Value)
			}
		}
	}
}

// maker is a function that puts its argument number arg into a code.
type maker struct {
	kind string
	arg  int
}

// makers finds them by the name of the function.
func (s *source) makers() map[string]maker {
	out := map[string]maker{}
	for _, f := range s.files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			params := map[string]int{}
			for _, field := range fn.Type.Params.List {
				for _, name := range field.Names {
					params[name.Name] = len(params)
				}
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if lit, ok := n.(*ast.CompositeLit); ok {
					s.literals(lit, func(kind string, code ast.Expr) {
						if id, ok := code.(*ast.Ident); ok {
							if i, ok := params[id.Name]; ok {
								out[fn.Name.Name] = maker{kind, i}
							}
						}
					})
				}
				return true
			})
		}
	}
	return out
}

func calledName(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

func explained(word string, kinds ...Kind) bool {
	for _, t := range Lookup(word) {
		for _, k := range kinds {
			if t.Kind == k && t.Word == word {
				return true
			}
		}
	}
	return false
}

// Every code that the program can put into a notice or an error has its text, and no
// text is for a code that was dropped.
func TestEveryCodeHasATopic(t *testing.T) {
	all := sources(t)
	used := map[string]bool{}
	for _, s := range all {
		s.codesIn(all, func(kind, code string) {
			used[code] = true
			ok := false
			switch kind {
			case "Notice":
				ok = explained(code, Notice)
			case "Error":
				ok = explained(code, Error)
			default:
				ok = explained(code, Notice, Error, Verdict)
			}
			if !ok {
				t.Errorf("%s makes a %s with the code %q, which has no topic: write one in notices.go or errors.go", s.path, kind, code)
			}
		})
	}
	if len(used) < 50 {
		t.Errorf("only %d codes found in the sources: the search is broken", len(used))
	}
	for _, topic := range All() {
		if (topic.Kind == Notice || topic.Kind == Error) && !used[topic.Word] {
			t.Errorf("%s %q is explained, but nothing makes it", topic.Kind, topic.Word)
		}
	}
}

// The constants of package conclude: validity flags, limits, notices.
func TestEveryConclusionHasATopic(t *testing.T) {
	s := sources(t)["internal/conclude"]
	if s == nil {
		t.Fatal("package conclude is gone: where are limits and flags made now?")
	}
	n := 0
	for name, v := range s.consts {
		switch {
		case !ast.IsExported(name) || strings.ContainsAny(v, " %"):
		case strings.HasPrefix(name, "Flag"):
			n++
			if !explained(v, Flag) {
				t.Errorf("flag %q has no topic", v)
			}
		default:
			n++
			if !explained(v, Limit, Notice) {
				t.Errorf("%s = %q is neither an explained limit nor a notice", name, v)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d constants found", n)
	}
}

// Every line of the doctor names a word that is explained: the third string of each rule.
func TestEveryCheckHasATopic(t *testing.T) {
	s := sources(t)["internal/doctor"]
	if s == nil {
		t.Fatal("package doctor is gone")
	}
	seen := map[string]bool{"doctor": true}
	for _, f := range s.files {
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || lit.Type != nil || len(lit.Elts) != 4 {
				return true
			}
			if docs, ok := literal(lit.Elts[2]); ok {
				if _, isRule := lit.Elts[3].(*ast.Ident); isRule {
					seen[docs] = true
					if !explained(docs, Check) {
						t.Errorf("the doctor's check %q has no topic: write one in checks.go", docs)
					}
				}
			}
			return true
		})
	}
	if len(seen) < 40 {
		t.Errorf("only %d checks found: the search is broken", len(seen))
	}
	for _, topic := range checks {
		if !seen[topic.Word] {
			t.Errorf("check %q is explained, but the doctor does not have it", topic.Word)
		}
	}
}
