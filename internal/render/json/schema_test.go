package json_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/render/goldentest"
	"github.com/fullbore-net/fullbore/result"
)

var update = flag.Bool("update", false, "bring docs/schema/run-1.json in line with package result")

// enums are the values of the named string types.
var enums = map[string][]string{
	"End":       {string(result.Client), string(result.Server)},
	"Direction": {string(result.Up), string(result.Down)},
	"Level":     {string(result.Info), string(result.Warn)},
	"Kind": {
		string(result.KindPrepared), string(result.KindConnected), string(result.KindStart), string(result.KindHost), string(result.KindInterval),
		string(result.KindNotice), string(result.KindProbes), string(result.KindMilestone), string(result.KindFinish), string(result.KindError), string(result.KindConclusion),
	},
}

func schemaFile(t *testing.T) string {
	return filepath.Join(goldentest.Root(t), "docs", "schema", "run-1.json")
}

// TestSchema holds docs/schema/run-1.json against package result: every field of every
// type that a Run or an Event contains is there, of the right type, required exactly if
// it is always printed, null exactly if it may be, with a description; and nothing else.
//
// The shape is generated; the descriptions are the file's own. With -update the file
// gets the fields that it lacks, described by their Go comments.
func TestSchema(t *testing.T) {
	file := schemaFile(t)
	old := map[string]any{}
	if data, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(data, &old); err != nil {
			t.Fatal(err)
		}
	} else if !*update {
		t.Fatal(err)
	}
	g := &generator{t: t, old: old, comments: comments(t), defs: map[string]any{}}
	g.def(reflect.TypeFor[result.Run]())
	g.def(reflect.TypeFor[result.Event]())
	g.def(reflect.TypeFor[result.Report]())
	want := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"$id":     "https://github.com/fullbore-net/fullbore/docs/schema/run-1.json",
		"title":   "Run, Report and Event of fullbore, schema 1",
		"description": "One test (Run), several (Report), both documents of --json, and the events that a Run is the fold of (Event, a line of --json-stream: validate against #/$defs/Event). " +
			"Fields are added, never removed and never given another meaning; readers must ignore fields they do not know. " +
			"Times are seconds on the clock of the end they belong to, counted from the start of the measured part unless a field says otherwise. " +
			"Rates are payload bits per second, sizes are bytes. What is unknown is null or absent, never 0.",
		"oneOf": []any{map[string]any{"$ref": "#/$defs/Run"}, map[string]any{"$ref": "#/$defs/Report"}},
		"$defs": g.defs,
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(want); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(have)); diff != "" {
		t.Errorf("the schema is not what package result is (-result +schema); go test ./internal/render/json -update writes it:\n%s", diff)
	}
	// All that the package exports as data is in it.
	for name := range g.comments {
		if name, field, _ := strings.Cut(name, "."); field != "" && g.defs[name] == nil && token.IsExported(name) {
			t.Errorf("type %s is in no Run, Report or Event", name)
		}
	}
}

// generator makes $defs of Go types.
type generator struct {
	t        *testing.T
	old      map[string]any
	comments map[string]string
	defs     map[string]any
}

// def adds the definition of struct type s.
func (g *generator) def(s reflect.Type) {
	if g.defs[s.Name()] != nil {
		return
	}
	d := map[string]any{"type": "object", "description": g.describe(s.Name(), "description")}
	g.defs[s.Name()] = d
	properties := map[string]any{}
	required := []string{}
	for i := range s.NumField() {
		f := s.Field(i)
		tag, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "-" || !f.IsExported() {
			continue
		}
		if tag == "" {
			g.t.Errorf("%s.%s has no JSON name", s.Name(), f.Name)
			continue
		}
		optional := strings.Contains(opts, "omitempty")
		p := g.value(f.Type, !optional)
		p["description"] = g.describe(s.Name()+"."+f.Name, "properties", tag, "description")
		properties[tag] = p
		if !optional {
			required = append(required, tag)
		}
	}
	d["properties"] = properties
	sort.Strings(required)
	if len(required) > 0 {
		d["required"] = required
	}
}

// describe returns the text that the file has for a type or field, else the Go comment.
func (g *generator) describe(name string, path ...string) string {
	typ, _, _ := strings.Cut(name, ".")
	var at any = g.old
	for _, p := range append([]string{"$defs", typ}, path...) {
		m, _ := at.(map[string]any)
		at = m[p]
	}
	if s, ok := at.(string); ok && s != "" {
		return s
	}
	s := g.comments[name]
	if s == "" {
		g.t.Errorf("%s has no description: write one into the schema, or a comment in package result and use -update", name)
	}
	return s
}

// value is the schema of type t. printed: the field is there even when it is nil.
func (g *generator) value(t reflect.Type, printed bool) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage]():
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		v := g.value(t.Elem(), false)
		switch {
		case !printed:
			return v
		case v["type"] != nil:
			v["type"] = []any{v["type"], "null"}
			return v
		}
		return map[string]any{"anyOf": []any{v, map[string]any{"type": "null"}}}
	case reflect.Slice:
		// A list of pointers to plain values has nulls among them; one of pointers to structs has none.
		elem := t.Elem()
		nulls := elem.Kind() == reflect.Pointer && elem.Elem().Kind() != reflect.Struct
		v := map[string]any{"type": "array", "items": g.value(elem, nulls)}
		if printed {
			v["type"] = []any{"array", "null"}
		}
		return v
	case reflect.Array:
		return map[string]any{"type": "array", "items": g.value(t.Elem(), false), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Struct:
		g.def(t)
		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	case reflect.String:
		v := map[string]any{"type": "string"}
		if e := enums[t.Name()]; e != nil {
			v["enum"] = e
		} else if t.Name() != "string" {
			g.t.Errorf("the values of type %s are not listed in enums", t.Name())
		}
		return v
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Int, reflect.Int64, reflect.Uint8:
		return map[string]any{"type": "integer"}
	}
	g.t.Errorf("no schema for %s", t)
	return map[string]any{}
}

// comments reads the comments of package result: types by name, fields as Type.Field.
// A comment above a group of fields counts for the first of them.
func comments(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := filepath.Glob(filepath.Join(goldentest.Root(t), "result", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range gen.Specs {
				typ, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				s, ok := typ.Type.(*ast.StructType)
				if !ok {
					continue
				}
				out[typ.Name.Name] = oneLine(gen.Doc.Text())
				for _, field := range s.Fields.List {
					if field.Tag == nil {
						continue
					}
					text := oneLine(field.Doc.Text() + " " + field.Comment.Text())
					for _, n := range field.Names {
						out[typ.Name.Name+"."+n.Name] = text
					}
				}
			}
		}
	}
	return out
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
