package recipes

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/cli"
	"github.com/fullbore-net/fullbore/internal/plan"
)

const page = "../../docs/from-ntttcp.md"

// pageCommand is a command that the page prints.
type pageCommand struct {
	line    int
	words   string
	block   bool               // it stands in a block; else within the text
	dialect plan.NTTTCPDialect // that its block is for; "" = either
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// pageCommands reads the page.
func pageCommands(t *testing.T) (out []pageCommand) {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	in := ""
	for i, l := range strings.Split(string(data), "\n") {
		if fence, ok := strings.CutPrefix(l, "```"); ok {
			if in != "" {
				fence = ""
			} else if fence != "sh" && fence != "bat" {
				t.Errorf("line %d: a block must be sh or bat, so that one knows whose words it has", i+1)
			}
			in = fence
			continue
		}
		c := pageCommand{line: i + 1}
		if in != "" {
			c.words, c.block, c.dialect = strings.TrimSpace(l), true, plan.NTTTCPLinux
			if in == "bat" {
				c.dialect = plan.NTTTCPWindows
			}
			out = append(out, c)
			continue
		}
		for _, m := range codeSpan.FindAllStringSubmatch(l, -1) {
			c.words = m[1]
			out = append(out, c)
		}
	}
	return out
}

// TestPage: what the page prints in blocks for NTTTCP is played by TestRecipes, what stands in the
// text is understood, and the native commands are commands. Each recipe has its place there.
func TestPage(t *testing.T) {
	t.Parallel()
	played := map[Line][]string{}
	for _, r := range All() {
		for _, l := range []Line{r.Receiver, r.Sender} {
			played[l] = append(played[l], r.ID)
		}
	}
	seen := map[string]bool{}
	blocks, spans := 0, 0
	for _, c := range pageCommands(t) {
		program, words, _ := strings.Cut(c.words, " ")
		where := fmt.Sprintf("line %d: %s", c.line, c.words)
		switch {
		case strings.Contains(c.words, "…"):
		case program == "fullbore":
			if err := native(strings.Fields(words)); err != nil {
				t.Errorf("%s: %v", where, err)
			}
		case program == "ntttcp" && c.block:
			blocks++
			ids := played[Line{c.dialect, words}]
			if ids == nil {
				t.Errorf("%s: no recipe plays it for %s", where, c.dialect)
			}
			for _, id := range ids {
				seen[id] = true
			}
		case (program == "ntttcp" || program == "ntttcp.exe") && words != "":
			spans++
			if err := understood(program, words); err != nil {
				t.Errorf("%s: %v", where, err)
			}
		}
	}
	if blocks < 20 || spans < 5 {
		t.Errorf("only %d commands in blocks and %d in the text", blocks, spans)
	}
	for _, r := range All() {
		if r.ID != "N11" && !seen[r.ID] {
			t.Errorf("recipe %s is not on the page", r.ID)
		}
	}
}

// understood reads a command within the text in the dialect of its program, or the one it names.
func understood(program, words string) error {
	// --open-firewall is taken off before the words are read.
	w := slices.DeleteFunc(strings.Fields(words), func(w string) bool { return w == "--open-firewall" })
	l := Line{plan.NTTTCPLinux, strings.Join(w, " ")}
	switch {
	case w[0] == "--dialect" && len(w) > 1:
		l = Line{plan.NTTTCPDialect(w[1]), strings.Join(w[2:], " ")}
	case program == "ntttcp.exe":
		l.Dialect = plan.NTTTCPWindows
	}
	_, err := l.Plan()
	return err
}

// native reports what is wrong with a command line of fullbore.
func native(words []string) error {
	root := cli.Command(cli.Std{})
	cmd, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	if cmd == root {
		return fmt.Errorf("no command")
	}
	if cmd.DisableFlagParsing {
		return nil
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if err := cmd.ValidateFlagGroups(); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// TestShort: what is cut is the time alone.
func TestShort(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line Line
		want string
	}{
		{linux("-r"), "-r -t 2"},
		{linux("-s -m 4,*,h -t 300"), "-s -m 4,*,h -t 2"},
		{linux("-s h -t 1 -W 2"), "-s h -t 1 -W 2"},
		{linux("-s 10.0.0.5 -n 4"), "-s 10.0.0.5 -n 4 -t 2"},
		{windows("-r"), "-r -t 2"},
		{windows("-r -m 4,*,10.0.0.5"), "-r -m 4,*,10.0.0.5"},
		{windows("-s -m 4,*,h -n 300 -l 64K"), "-s -m 4,*,h -n 300 -l 64K"},
		{windows("-s -m 4,*,h -T 60 -ns"), "-s -m 4,*,h -T 2 -ns"},
	} {
		if got := c.line.Short(2); got.Words != c.want || got.Dialect != c.line.Dialect {
			t.Errorf("%s: %q, want %q", c.line.Words, got.Words, c.want)
		}
	}
}

// TestRows: every row of the table is there, and none twice.
func TestRows(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	var ids []string
	for _, r := range All() {
		if names[r.Name()] {
			t.Errorf("%s stands twice", r.Name())
		}
		names[r.Name()] = true
		ids = append(ids, r.ID)
		for _, l := range []Line{r.Receiver, r.Sender} {
			if _, err := l.Plan(); err != nil {
				t.Error(err)
			}
		}
	}
	for i := 1; i <= 11; i++ {
		if !slices.Contains(ids, fmt.Sprintf("N%d", i)) {
			t.Errorf("N%d is missing", i)
		}
	}
}
