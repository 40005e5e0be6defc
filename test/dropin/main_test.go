//go:build linux

// Package dropin runs `fullbore iperf3 …` with the command lines that were recorded of
// the real program, between two namespaces as those recordings were made, and compares
// what both ends print with what the real ones printed: text by format class, JSON by
// keys, types and layout, errors word for word. What is meant to differ is a row of
// testdata/deviations whose case begins with "live/".
package dropin

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fullbore-net/fullbore/internal/lab"
)

var program string // the program under test

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	_ = os.Setenv("FULLBORE_HISTORY", "off") // not into the developer's own
	// These tests wait most of the time.
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", "10"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	program = os.Getenv("FULLBORE")
	if program == "" {
		dir, err := os.MkdirTemp("", "dropin")
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
	defer wires.close()
	return m.Run()
}

// pool keeps networks for the next test: making one takes longer than many a test.
type pool struct{ idle chan *lab.Network }

var wires = pool{idle: make(chan *lab.Network, 64)}

func (p *pool) get() (*lab.Network, error) {
	select {
	case n := <-p.idle:
		return n, nil
	default:
		return newWire(gigabit)
	}
}

func (p *pool) put(n *lab.Network) { p.idle <- n }

func (p *pool) close() {
	for {
		select {
		case n := <-p.idle:
			if err := n.Close(); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		default:
			return
		}
	}
}
