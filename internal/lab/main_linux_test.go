package lab_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// TestMain lets the test binary be the fullbore of the tests: it knows the hidden
// command of the link process.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "lab" && os.Args[2] == "link" {
		if err := lab.LinkMain(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
