package cli

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/explain"
	"github.com/fullbore-net/fullbore/internal/render/screen"
)

type explainOptions struct {
	search bool
	json   bool
}

const explainLong = `Say what a word of fullbore's outputs means: a verdict of a diagnosis, the code of a
notice, an error or a limit, a validity flag, a field of the JSON document, a line of
the doctor, a term of the trade. Without a word: the list of all. Nothing is sent.

Of a verdict: what it means, how it is found, what proves it, what to do (on Linux, on
Windows), and what it is often taken for and is not.`

const explainExample = `  fullbore explain receive-window
  fullbore explain window-clamped
  fullbore explain sums[].goodput_bps
  fullbore explain --search 'congestion window'
  fullbore explain rules                       rules of thumb for measuring
  fullbore explain`

// explainWidth keeps lines readable on any terminal.
const explainWidth = 80

func newExplainCmd(e *env) *cobra.Command {
	o := &explainOptions{}
	cmd := &cobra.Command{
		Use:     "explain [WORD…]",
		Short:   "What a verdict, notice, error, field or check means and what to do",
		Long:    explainLong,
		Example: explainExample,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return explainWords(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error { return e.runExplain(o, args) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.search, "search", false, "find texts that speak of the words")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

// explainWords is every word once.
func explainWords() []string {
	var out []string
	seen := map[string]bool{}
	for _, t := range explain.All() {
		if !seen[t.Word] {
			seen[t.Word] = true
			out = append(out, t.Word)
		}
	}
	return out
}

func (e *env) runExplain(o *explainOptions, args []string) error {
	topics := explain.All()
	switch {
	case len(args) == 0 && o.search:
		return usagef("--search: name what to look for")
	case len(args) == 0 && !o.json:
		_, err := e.Out.Write(explainList())
		return err
	case o.search:
		topics = explain.Search(strings.Join(args, " "))
		if len(topics) == 0 {
			return unknownWord(strings.Join(args, " "))
		}
	case len(args) > 0:
		topics = nil
		for _, a := range args {
			found := explain.Lookup(a)
			if found == nil {
				return unknownWord(a)
			}
			topics = append(topics, found...)
		}
	}
	if o.json {
		return e.printJSON(explainDocument(topics))
	}
	var b bytes.Buffer
	for i, t := range topics {
		if i > 0 {
			b.WriteByte('\n')
		}
		explainText(&b, t)
	}
	_, err := e.Out.Write(b.Bytes())
	return err
}

// explained is a topic with the places where a field stands.
type explained struct {
	explain.Topic
	Paths []string `json:"paths,omitempty"`
}

func explainDocument(topics []explain.Topic) []explained {
	out := make([]explained, 0, len(topics))
	for _, t := range topics {
		out = append(out, explained{t, t.Paths()})
	}
	return out
}

// unknownWord is the error for a word without a text, with what may have been meant.
func unknownWord(word string) error {
	u := usagef("explain: %q is not known", word)
	for _, near := range explain.Near(word) {
		u.Hints = append(u.Hints, "did you mean: fullbore explain "+near)
	}
	if len(u.Hints) > 0 {
		return u
	}
	var found []string
	for _, t := range explain.Search(word) {
		found = append(found, t.Word)
	}
	switch {
	case len(found) > 8:
		u.Hints = append(u.Hints, fmt.Sprintf("%d texts speak of it: fullbore explain --search '%s'", len(found), word))
	case len(found) > 0:
		u.Hints = append(u.Hints, "these speak of it: "+strings.Join(found, ", "))
	default:
		u.Hints = append(u.Hints, "fullbore explain lists every word")
	}
	return u
}

func explainText(b *bytes.Buffer, t explain.Topic) {
	head := t.Word + " (" + string(t.Kind)
	if t.Unit != "" {
		head += ", " + t.Unit
	}
	fmt.Fprintf(b, "%s)\n", head)
	para := func(label, text string) {
		if text == "" {
			return
		}
		for i, line := range screen.Wrap(label+text, explainWidth-2) {
			if i > 0 && label != "" {
				line = "  " + line
			}
			fmt.Fprintf(b, "  %s\n", line)
		}
	}
	para("", t.Text)
	para("Found: ", t.Found)
	para("Proof: ", t.Proof)
	para("Do: ", t.Do)
	para("Linux: ", t.Linux)
	para("Windows: ", t.Windows)
	para("Beware: ", t.Not)
	para("Source: ", t.Source)
	para("In: ", strings.Join(t.Paths(), ", "))
	para("See: ", strings.Join(t.See, ", "))
}

// explainList is every word, by kind.
func explainList() []byte {
	names := map[explain.Kind]string{
		explain.Field: "Fields of the JSON documents", explain.Notice: "Notices", explain.Error: "Errors",
		explain.Limit: "Limits", explain.Flag: "Validity flags", explain.Check: "Checks of fullbore doctor", explain.Verdict: "Verdicts of fullbore diagnose", explain.Term: "Terms",
	}
	var b bytes.Buffer
	fmt.Fprintln(&b, "fullbore explain WORD says what it means, where it comes from and what to do.")
	var kind explain.Kind
	var words []string
	flush := func() {
		for _, line := range screen.Wrap(strings.Join(words, " "), explainWidth-2) {
			fmt.Fprintf(&b, "  %s\n", line)
		}
		words = nil
	}
	for _, t := range explain.All() {
		if t.Kind != kind {
			flush()
			kind = t.Kind
			fmt.Fprintf(&b, "\n%s\n", names[kind])
		}
		words = append(words, t.Word)
	}
	flush()
	return b.Bytes()
}
