package explain

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/result"
)

// fieldsOf lists each JSON name in package result with the types that have it.
func fieldsOf() map[string][]string {
	out := map[string][]string{}
	for _, root := range []reflect.Type{reflect.TypeFor[result.Run](), reflect.TypeFor[result.Event](), reflect.TypeFor[result.Report]()} {
		visit(root, func(in reflect.Type, path string) {
			name := path[strings.LastIndex(path, ".")+1:]
			if !slices.Contains(out[name], in.Name()) {
				out[name] = append(out[name], in.Name())
			}
		})
	}
	for _, types := range out {
		slices.Sort(types)
	}
	return out
}

// A field that nobody explained must not be shipped; nor a known name with a new
// meaning in another type: In makes whoever adds one look at the text.
func TestEveryFieldHasATopic(t *testing.T) {
	have := fieldsOf()
	if len(have) < 200 {
		t.Fatalf("only %d fields found in package result", len(have))
	}
	explained := map[string]bool{}
	for _, topic := range All() {
		if topic.Kind != Field {
			continue
		}
		explained[topic.Word] = true
		in := slices.Clone(topic.In)
		slices.Sort(in)
		if diff := cmp.Diff(have[topic.Word], in); diff != "" {
			t.Errorf("field %s: the types that have it (-) and those its topic speaks of (+) differ:\n%s", topic.Word, diff)
		}
	}
	for name, types := range have {
		if !explained[name] {
			t.Errorf("field %q of %s has no topic: write one in fields_*.go", name, strings.Join(types, ", "))
		}
	}
}

func TestTopicsAreWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for _, topic := range All() {
		key := string(topic.Kind) + " " + topic.Word
		if seen[key] {
			t.Errorf("%s is explained twice", key)
		}
		seen[key] = true
		if topic.Text == "" || !strings.HasSuffix(topic.Text, ".") {
			t.Errorf("%s: the text must be whole sentences: %q", key, topic.Text)
		}
		if topic.Kind == Field != (topic.In != nil) {
			t.Errorf("%s: In is for fields, and for each", key)
		}
		if topic.Kind == Field && len(topic.Paths()) == 0 {
			t.Errorf("%s stands nowhere", key)
		}
		for _, see := range topic.See {
			if len(Lookup(see)) == 0 {
				t.Errorf("%s points to %q, which has no topic", key, see)
			}
			if normal(see) == normal(topic.Word) && len(Lookup(see)) == 1 {
				t.Errorf("%s points to itself", key)
			}
		}
	}
	if len(seen) < 300 {
		t.Errorf("only %d topics", len(seen))
	}
}

// Whoever reads a verdict wants to know how it was found, what would prove it, what to do, and
// what it is not.
func TestVerdictsAreWhole(t *testing.T) {
	n := 0
	for _, topic := range All() {
		whole := map[string]string{"found": topic.Found, "proof": topic.Proof, "not": topic.Not}
		if topic.Kind != Verdict {
			for what, text := range whole {
				if text != "" {
					t.Errorf("%s %s: %s is for verdicts", topic.Kind, topic.Word, what)
				}
			}
			continue
		}
		n++
		whole["do"] = topic.Do
		for what, text := range whole {
			if !strings.HasSuffix(text, ".") {
				t.Errorf("verdict %s: %s must be whole sentences: %q", topic.Word, what, text)
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d verdicts", n)
	}
}

func words(topics []Topic) []string {
	var out []string
	for _, t := range topics {
		out = append(out, string(t.Kind)+" "+t.Word)
	}
	return out
}

func TestLookup(t *testing.T) {
	for word, want := range map[string][]string{
		"goodput_bps":                  {"field goodput_bps"},
		"window-clamped":               {"notice window-clamped", "flag window_clamped"},
		"WINDOW CLAMPED":               {"notice window-clamped", "flag window_clamped"},
		"steal":                        {"field steal", "notice steal", "flag steal", "check steal"},
		"streams[].sender.goodput_bps": {"field goodput_bps"},
		"intervals[].streams[].tcp":    {"field tcp"},
		" rtt_us ":                     {"field rtt_us"},
		"cpu-receiver":                 {"limit cpu-receiver"},
		"no such word":                 nil,
		"":                             nil,
		"streams[]":                    nil,
	} {
		if got := words(Lookup(word)); !cmp.Equal(got, want) {
			t.Errorf("Lookup(%q) = %v, want %v", word, got, want)
		}
	}
}

func TestSearch(t *testing.T) {
	got := words(Search("jitter"))
	if len(got) == 0 || got[0] != "field jitter" || !slices.Contains(got, "field jitter_s") {
		t.Errorf("Search(jitter) = %v", got)
	}
	if got := Search("congestion window"); len(got) == 0 {
		t.Error("a phrase in a text is not found")
	}
	if got := words(Search("fq_codel")); !slices.Contains(got, "term bufferbloat") {
		t.Errorf("a word in an advice is not found: %v", got)
	}
	if got := Search(""); got != nil {
		t.Errorf("an empty search finds %d topics", len(got))
	}
}

func TestNear(t *testing.T) {
	for typo, want := range map[string]string{"goodput_bp": "goodput_bps", "shortrn": "short-run", "steel": "steal", "retransmitts": "retransmits", "winodw-clamped": "window-clamped"} {
		if got := Near(typo); !slices.Contains(got, want) {
			t.Errorf("Near(%q) = %v, want %q among them", typo, got, want)
		}
	}
	if got := Near("completely-different-word"); got != nil {
		t.Errorf("Near of nothing alike = %v", got)
	}
}

func TestPaths(t *testing.T) {
	for word, want := range map[string][]string{
		"goodput_bps": {"sums[].goodput_bps"},
		"jain":        {"sums[].jain"},
		"softirq":     {"intervals[].host.cores[].softirq"},
		"seq":         {"event: seq"},
		"retransmits": nil, // in many places: only that there are some
	} {
		topics := Lookup(word)
		if len(topics) != 1 {
			t.Fatalf("%s: %d topics", word, len(topics))
		}
		got := topics[0].Paths()
		if want == nil && len(got) < 5 || want != nil && !cmp.Equal(got, want) {
			t.Errorf("paths of %s = %v, want %v", word, got, want)
		}
	}
	if got := Lookup("short-run")[0].Paths(); got != nil {
		t.Errorf("a notice stands in no field: %v", got)
	}
}
