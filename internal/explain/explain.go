// Package explain knows every word that fullbore's outputs use: the fields of the
// JSON document, the codes of notices, errors, limits and verdicts, the validity flags, the
// doctor's checks and the terms of the trade. Each text says what the word means, its
// unit, where the value comes from and what to do about it.
//
// The package's tests fail when a field, code or check exists without a text here.
package explain

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// Kind says what a word is. One word may be several things ("steal" is a field, a notice,
// a flag and a check).
type Kind string

// The kinds.
const (
	Field  Kind = "field"
	Notice Kind = "notice"
	Error  Kind = "error"
	Limit  Kind = "limit" // a value of the field "limit"
	Flag   Kind = "flag"  // a value of the field "flags"
	Check  Kind = "check" // a line of fullbore doctor
	// Verdict is the code of a verdict of fullbore diagnose.
	Verdict Kind = "verdict"
	Term    Kind = "term"
)

// Topic is one meaning of one word.
type Topic struct {
	Word   string   `json:"word"`
	Kind   Kind     `json:"kind"`
	Text   string   `json:"text"`             // what it is; whole sentences
	Unit   string   `json:"unit,omitempty"`   // of a field's value
	Source string   `json:"source,omitempty"` // where the value comes from: kernel field, RFC, method
	Do     string   `json:"do,omitempty"`     // what to do about it, or how to read it
	See    []string `json:"see,omitempty"`    // related words
	// Of a verdict: how it is found, what proves it, the commands for a system where they
	// differ, and what it is often taken for and is not.
	Found   string `json:"found,omitempty"`
	Proof   string `json:"proof,omitempty"`
	Linux   string `json:"linux,omitempty"`
	Windows string `json:"windows,omitempty"`
	Not     string `json:"not,omitempty"`
	// In names the types of package result that have this field, for kind Field.
	In []string `json:"-"`
}

// Lookup returns every meaning of a word, nil when it has none. Case and the difference
// between "-", "_" and blank do not matter; of a path like streams[].sender.bytes the last
// part counts.
func Lookup(word string) []Topic {
	word = normal(word)
	if i := strings.LastIndexAny(word, ".]"); i >= 0 && i+1 < len(word) {
		word = word[i+1:]
	}
	var out []Topic
	for _, t := range All() {
		if normal(t.Word) == word {
			out = append(out, t)
		}
	}
	return out
}

// Search returns the topics that speak of a text, best first: those whose word it is, those
// whose word contains it, then those whose text, advice or source does.
func Search(text string) []Topic {
	text = normal(text)
	if text == "" {
		return nil
	}
	var word, inWord, inText []Topic
	for _, t := range All() {
		switch {
		case normal(t.Word) == text:
			word = append(word, t)
		case strings.Contains(normal(t.Word), text):
			inWord = append(inWord, t)
		case strings.Contains(normal(strings.Join([]string{t.Text, t.Do, t.Source, t.Found, t.Proof, t.Linux, t.Windows, t.Not}, " ")), text):
			inText = append(inText, t)
		}
	}
	return append(append(word, inWord...), inText...)
}

// Near returns the words that differ from a mistyped one by little, best first, at
// most three.
func Near(word string) []string {
	squash := func(s string) string { return strings.ReplaceAll(normal(s), "-", "") }
	word = squash(word)
	type guess struct {
		word string
		d    int
	}
	var guesses []guess
	for _, t := range All() {
		if d := distance(word, squash(t.Word)); d <= max(1, len(word)/4) {
			guesses = append(guesses, guess{t.Word, d})
		}
	}
	slices.SortStableFunc(guesses, func(a, b guess) int { return cmp.Compare(a.d, b.d) })
	var out []string
	for _, g := range guesses {
		if !slices.Contains(out, g.word) && len(out) < 3 {
			out = append(out, g.word)
		}
	}
	return out
}

func normal(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "-", " ", "-").Replace(strings.TrimSpace(s)))
}

// distance is Levenshtein's: insertions, deletions and changes of a letter.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := last
			if a[i] != b[j] {
				change++
			}
			last = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// All returns every topic: fields first, each kind in alphabetical order.
func All() []Topic {
	var out []Topic
	for _, part := range []struct {
		kind   Kind
		tables [][]Topic
	}{
		{Field, [][]Topic{reportFields, historyFields, diagnoseFields, findingFields, roundsFields, runFields, planFields, streamFields, tcpFields, udpFields, probeFields, hostFields, ntttcpFields, eventFields, pathFields, soakFields}},
		{Notice, [][]Topic{notices, udpNotices, ntttcpNotices, rateNotices, pathNotices, soakNotices, roundsNotices, importNotices}},
		{Field, [][]Topic{acceptFields}},
		{Error, [][]Topic{errorCodes, ntttcpErrors}},
		{Limit, [][]Topic{limits}},
		{Flag, [][]Topic{flags, rateFlags}},
		{Check, [][]Topic{checks}},
		{Verdict, [][]Topic{causes, pathVerdicts, hostVerdicts}},
		{Term, [][]Topic{terms, practice}},
	} {
		from := len(out)
		for _, table := range part.tables {
			for _, t := range table {
				t.Kind = part.kind
				out = append(out, t)
			}
		}
		slices.SortStableFunc(out[from:], func(a, b Topic) int { return cmp.Compare(a.Word, b.Word) })
	}
	return out
}

// Paths lists where a field stands in a run's document ("streams[].sender.bytes") and, with
// "event: " before it, in the lines of --json-stream where that differs, or with
// "report: " in a document of several runs. nil for other kinds.
func (t Topic) Paths() []string {
	if t.Kind != Field {
		return nil
	}
	var out []string
	add := func(prefix string, root reflect.Type) {
		visit(root, func(in reflect.Type, path string) {
			if path == t.Word || strings.HasSuffix(path, "."+t.Word) {
				out = append(out, prefix+path)
			}
		})
	}
	add("", reflect.TypeFor[result.Run]())
	if len(out) == 0 {
		add("event: ", reflect.TypeFor[result.Event]())
	}
	if len(out) == 0 {
		add("report: ", reflect.TypeFor[result.Report]())
	}
	return out
}

// visit calls f for every field below root that has a JSON name, with the type it is in
// and its path. A type within itself is entered once.
func visit(root reflect.Type, f func(in reflect.Type, path string)) {
	var walk func(t reflect.Type, path string, above []reflect.Type)
	walk = func(t reflect.Type, path string, above []reflect.Type) {
		for {
			switch t.Kind() {
			case reflect.Slice, reflect.Array:
				path += "[]"
				t = t.Elem()
				continue
			case reflect.Pointer:
				t = t.Elem()
				continue
			}
			break
		}
		if t.Kind() != reflect.Struct || t.PkgPath() != root.PkgPath() || slices.Contains(above, t) {
			return
		}
		above = append(slices.Clone(above), t)
		for i := range t.NumField() {
			field := t.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" || name == "-" {
				continue
			}
			p := name
			if path != "" {
				p = path + "." + name
			}
			f(t, p)
			walk(field.Type, p, above)
		}
	}
	walk(root, "", nil)
}
