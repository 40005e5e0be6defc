//go:build linux

package dropin

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/render/goldentest"
)

// command is a recorded command line.
type command struct {
	env   []string // NAME=value before the program
	words []string // after the program's name
	exit  int
}

// recording is one recorded case: what both ends ran and where it ended.
type recording struct {
	release, name  string
	client, server *command // nil when that end was not recorded
}

// rowRE is a row of the table of cases in the README of the goldens.
var rowRE = regexp.MustCompile("^\\| (\\S+) \\| (client|server) \\| `(.*)`(?: - [^|]*)? \\| (-?\\d+) \\| .* \\|$")

// recordings reads the README of the goldens.
func recordings(t *testing.T) []*recording {
	t.Helper()
	file := filepath.Join(goldentest.Root(t), "testdata", "goldens", "iperf3", "README.md")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []*recording
	byName := map[string]*recording{}
	release := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "## 3."); ok {
			release = "3." + rest
		}
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| case ") || strings.HasPrefix(line, "| errors ") {
			continue
		}
		m := rowRE.FindStringSubmatch(line)
		if m == nil || release == "" {
			t.Fatalf("README: cannot read %q", line)
		}
		id := release + "/" + m[1]
		r := byName[id]
		if r == nil {
			r = &recording{release: release, name: m[1]}
			byName[id] = r
			all = append(all, r)
		}
		c := readCommand(t, m[3])
		if c.exit, err = strconv.Atoi(m[4]); err != nil {
			t.Fatal(err)
		}
		if m[2] == "client" {
			r.client = c
		} else {
			r.server = c
		}
	}
	if len(all) < 170 {
		t.Fatalf("README: only %d cases", len(all))
	}
	return all
}

// readCommand splits a command line at blanks; single quotes keep them.
func readCommand(t *testing.T, line string) *command {
	t.Helper()
	var words []string
	word, quoted, open := "", false, false
	for _, c := range line + " " {
		switch {
		case c == '\'':
			open, quoted = !open, true
		case c == ' ' && !open:
			if word != "" || quoted {
				words = append(words, word)
			}
			word, quoted = "", false
		default:
			word += string(c)
		}
	}
	c := &command{}
	for i, w := range words {
		if w == "iperf3" {
			c.words = words[i+1:]
			return c
		}
		c.env = append(c.env, w)
	}
	t.Fatalf("README: %q does not run iperf3", line)
	return nil
}

// has reports whether one of the words is w.
func (c *command) has(w string) bool {
	if c == nil {
		return false
	}
	for _, x := range c.words {
		if x == w {
			return true
		}
	}
	return false
}

// golden is a recorded stream, "" when nothing was printed.
func golden(t *testing.T, release, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(goldentest.Root(t), "testdata", "goldens", "iperf3", release, file))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(data)
}
