package recipes

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fullbore-net/fullbore/internal/plan"
)

var program string // the program under test

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	_ = os.Setenv("FULLBORE_HISTORY", "off") // not into the developer's own
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given { // each runs for its time, whatever the machine has to spare
		if err := flag.Set("test.parallel", "6"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	program = os.Getenv("FULLBORE")
	if program == "" {
		dir, err := os.MkdirTemp("", "recipes")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "fullbore")
		if out, err := exec.Command("go", "build", "-o", program, "../../cmd/fullbore").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			return 1
		}
	}
	return m.Run()
}

func own() Tool {
	return Tool{Name: "fullbore", Args: []string{program, "ntttcp"}, Dialect: plan.NTTTCPLinux}
}

// space makes a machine for one test.
func space(t *testing.T) *Space {
	t.Helper()
	if os.Getuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("CI runs as root: namespaces are needed")
		}
		t.Skip("needs root for network namespaces; make test runs as root in CI")
	}
	s, err := NewSpace()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
