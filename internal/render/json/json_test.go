package json_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/fullbore-net/fullbore/internal/render/goldentest"
	"github.com/fullbore-net/fullbore/internal/render/iperf3json"
	render "github.com/fullbore-net/fullbore/internal/render/json"
	"github.com/fullbore-net/fullbore/internal/render/jsonstream"
	"github.com/fullbore-net/fullbore/result"
)

// schemas returns the schema of Run and of Event, strict ones: what they do not list
// is an error here, though readers must ignore it.
func schemas(t *testing.T) (run, event *jsonschema.Schema) {
	t.Helper()
	data, err := os.ReadFile(schemaFile(t))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for _, def := range doc.(map[string]any)["$defs"].(map[string]any) {
		def.(map[string]any)["additionalProperties"] = false
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("run-1.json", doc); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile("run-1.json"), c.MustCompile("run-1.json#/$defs/Event")
}

func valid(t *testing.T, s *jsonschema.Schema, doc []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// everything is a run in which each field of each type is set.
func everything(t *testing.T) *result.Run {
	t.Helper()
	r := &result.Run{}
	fill(t, r)
	r.Rows[0].End, r.Test.Transport = result.Client, "tcp"
	return r
}

// TestSchemaFitsRuns validates what is printed of each recorded run, as a document and
// as events, and of a run with everything set.
func TestSchemaFitsRuns(t *testing.T) {
	t.Parallel()
	run, event := schemas(t)
	check := func(id string, r *result.Run) {
		var doc, lines bytes.Buffer
		if err := render.Write(&doc, r); err != nil {
			t.Errorf("%s: %v", id, err)
			return
		}
		if err := valid(t, run, doc.Bytes()); err != nil {
			t.Errorf("%s: %v\n%s", id, err, doc.Bytes())
		}
		s := jsonstream.New(&lines)
		for _, e := range result.Unfold(r) {
			s.Event(e)
		}
		if err := s.Err(); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		var events []result.Event
		for line := range strings.Lines(lines.String()) {
			if err := valid(t, event, []byte(line)); err != nil {
				t.Errorf("%s: %v\n%s", id, err, line)
			}
			var e result.Event
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Errorf("%s: %v", id, err)
			}
			events = append(events, e)
		}
		// Live is replayed: the fold of the lines is the document.
		var back bytes.Buffer
		if err := render.Write(&back, result.Fold(events)); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if diff := cmp.Diff(doc.String(), back.String()); diff != "" {
			t.Errorf("%s (-document +fold of the lines):\n%s", id, diff)
		}
	}
	n := 0
	for _, g := range goldentest.Iperf3(t, "*.json") {
		runs, err := iperf3json.DecodeAll(g.Data)
		if err != nil {
			t.Fatal(g.ID(), err)
		}
		for i, r := range runs {
			check(fmt.Sprintf("%s#%d", g.ID(), i), r)
			n++
		}
	}
	check("empty", result.Fold([]result.Event{{Kind: result.KindStart, Head: &result.Run{End: result.Client}}}))
	if n < 90 {
		t.Errorf("only %d runs", n)
	}
}

// TestSchemaFitsEverything: no field is printed in a form that the schema does not have.
func TestSchemaFitsEverything(t *testing.T) {
	t.Parallel()
	run, event := schemas(t)
	var doc bytes.Buffer
	if err := render.Write(&doc, everything(t)); err != nil {
		t.Fatal(err)
	}
	if err := valid(t, run, doc.Bytes()); err != nil {
		t.Errorf("%v\n%s", err, doc.Bytes())
	}
	e := &result.Event{}
	fill(t, e)
	var line bytes.Buffer
	s := jsonstream.New(&line)
	s.Event(*e)
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	if err := valid(t, event, line.Bytes()); err != nil {
		t.Errorf("%v\n%s", err, line.Bytes())
	}
}

// TestSchemaRefuses: the schema is no rubber stamp.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	run, event := schemas(t)
	var good bytes.Buffer
	if err := render.Write(&good, everything(t)); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(map[string]any){
		"missing":    func(m map[string]any) { delete(m, "streams") },
		"wrong type": func(m map[string]any) { m["schema"] = "1" },
		"null":       func(m map[string]any) { m["end"] = nil },
		"unknown":    func(m map[string]any) { m["speed"] = 1 },
		"wrong word": func(m map[string]any) { m["end"] = "middle" },
		"wrong time": func(m map[string]any) { m["started"] = "yesterday" },
		"deep":       func(m map[string]any) { m["streams"].([]any)[0].(map[string]any)["socket"] = 1.5 },
	} {
		var m map[string]any
		if err := json.Unmarshal(good.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		change(m)
		bad, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if valid(t, run, bad) == nil {
			t.Errorf("%s passes", name)
		}
	}
	if valid(t, event, good.Bytes()) == nil {
		t.Error("a run passes as an event")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestWrite(t *testing.T) {
	t.Parallel()
	r := &result.Run{Label: "a <b> & \xff", End: result.Client, Started: time.Unix(0, 0).UTC()}
	var b bytes.Buffer
	if err := render.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	if want := "\n  \"label\": \"a <b> & \\ufffd\",\n"; !strings.Contains(b.String(), want) || !strings.HasSuffix(b.String(), "\n}\n") {
		t.Errorf("%s", b.String())
	}
	if err := render.Write(broken{}, r); err == nil {
		t.Error("a full disk is no error")
	}
	r.Elapsed = math.NaN()
	b.Reset()
	if err := render.Write(&b, r); err == nil || b.Len() > 0 {
		t.Errorf("%v %q", err, b.String())
	}
}
