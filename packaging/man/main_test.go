package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPages(t *testing.T) {
	dir := t.TempDir()
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	for page, word := range map[string]string{
		"fullbore.1": "holds it back", "fullbore-test.1": "max-bytes", "fullbore-serve.1": "max-tests", "fullbore-doctor.1": "rtt", "fullbore-lab-shell.1": "loss",
	} {
		data, err := os.ReadFile(filepath.Join(dir, page))
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(data), word) {
			t.Errorf("%s does not mention %q", page, word)
		}
	}
}
