package process

import (
	"os"
	"path/filepath"
	"testing"
)

// TestVirtualTerminalNeedsAConsole: a file is none, and stays as it is.
func TestVirtualTerminalNeedsAConsole(t *testing.T) {
	f, err := os.OpenFile(filepath.Join(os.Getenv("SystemRoot"), "win.ini"), os.O_RDONLY, 0)
	if err != nil {
		f = os.Stdin // the tests' own, which is a pipe or nothing
	} else {
		defer f.Close() //nolint:errcheck // read only
	}
	restore, ok := VirtualTerminal(f)
	if ok {
		t.Error("a file was taken for a console")
	}
	restore()
}
