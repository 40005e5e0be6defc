package script

import (
	"bytes"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const schemaFile = "../../docs/schema/run-1.json"

// validate checks the last command's standard output against the published schema.
// usage: schema TYPE, where TYPE is Run, Report or Event (one a line)
func validate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: schema Run|Report|Event")
	}
	ref := schemaFile + "#/$defs/" + args[0]
	schema, err := jsonschema.NewCompiler().Compile(ref)
	ts.Check(err)
	text := ts.ReadFile("stdout")
	docs := []string{text}
	if args[0] == "Event" {
		docs = strings.Split(strings.TrimSpace(text), "\n")
	}
	for _, doc := range docs {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(doc)))
		ts.Check(err)
		ts.Check(schema.Validate(v))
	}
}
