package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// light are measuring commands that move too little to need a budget, with the reason.
var light = map[string]string{
	"mtu":      "single packets",
	"compare":  "stored runs; --ab is bounded by its flags",
	"connrate": "half a kilobyte for each connection: --max-connections is the budget",
}

// TestCommandsAreDocumented: who looks for a command finds it in the README or in docs/methods.md,
// with an example and what it costs in its help; and what the page of methods names exists.
func TestCommandsAreDocumented(t *testing.T) {
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	readme, methods := read("README.md"), read("docs/methods.md")
	named := func(page, cmd string) bool { return strings.Contains(page, "`fullbore "+cmd) }
	there := map[string]*cobra.Command{}
	for _, c := range Command(Std{}).Commands() {
		name := c.Name()
		there[name] = c
		if c.Hidden || name == "help" || name == "completion" || name == "version" {
			continue
		}
		if !named(readme, name) && !named(methods, name) {
			t.Errorf("fullbore %s has no row in README.md or docs/methods.md", name)
		}
		if c.Example == "" && len(c.Commands()) == 0 && !c.DisableFlagParsing {
			t.Errorf("fullbore %s --help has no example", name)
		}
	}
	for _, m := range regexp.MustCompile("`fullbore ([a-z0-9]+)").FindAllStringSubmatch(methods, -1) {
		if there[m[1]] == nil {
			t.Errorf("docs/methods.md speaks of fullbore %s, which does not exist", m[1])
		}
	}
	// The table's first column is of questions; what stands there with HOST sends something.
	for _, m := range regexp.MustCompile("(?m)^\\|[^|]*\\| `fullbore ([a-z0-9]+)[^`]*HOST").FindAllStringSubmatch(methods, -1) {
		c := there[m[1]]
		if c == nil {
			continue
		}
		help := c.Long
		for _, sub := range c.Commands() {
			help += sub.Long
		}
		if !strings.Contains(help, "raffic") {
			t.Errorf("fullbore %s --help does not say how much traffic it makes", m[1])
		}
		budget := c.Flags().Lookup("max-bytes") != nil || c.PersistentFlags().Lookup("max-bytes") != nil
		for _, sub := range c.Commands() {
			budget = budget || sub.Flags().Lookup("max-bytes") != nil
		}
		if !budget && light[m[1]] == "" {
			t.Errorf("fullbore %s has no --max-bytes", m[1])
		}
	}
}
