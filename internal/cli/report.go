package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fullbore-net/fullbore/internal/render/html"
	"github.com/fullbore-net/fullbore/result"
)

// checkReport finds out before anything is sent whether the file of --report can be written,
// and what it is called.
func checkReport(file string) error {
	if file == "" {
		return nil
	}
	switch strings.ToLower(filepath.Ext(file)) {
	case ".html", ".htm":
	default:
		return &UsageError{Msg: fmt.Sprintf("--report %s: it is a page: FILE.html", file), Hints: []string{"for programs there is --json"}}
	}
	return checkTarget("--report", file)
}

// checkTarget finds out whether a file can be written that an option names: its folder is there and takes new
// files (a whole file takes the place of one that is there already).
func checkTarget(flag, file string) error {
	dir := filepath.Dir(file)
	if st, err := os.Stat(dir); err != nil {
		return usagef("%s: %v", flag, err)
	} else if !st.IsDir() {
		return usagef("%s %s: %s is no folder", flag, file, dir)
	}
	if st, err := os.Stat(file); err == nil && st.IsDir() {
		return usagef("%s %s: it is a folder", flag, file)
	}
	probe, err := os.CreateTemp(dir, ".fullbore-*")
	if err != nil {
		return usagef("%s %s: nothing can be written to its folder: %v", flag, file, err)
	}
	_ = probe.Close()
	_ = os.Remove(probe.Name())
	return nil
}

// writeReport writes the page of --report and says where it is. A page that is there already
// is replaced only by a whole one.
func (e *env) writeReport(file string, rep *result.Report) error {
	if file == "" {
		return nil
	}
	var b bytes.Buffer
	if err := html.WriteReport(&b, rep); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	part, err := os.CreateTemp(filepath.Dir(file), ".fullbore-*.html")
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	_, err = part.Write(b.Bytes())
	if cerr := part.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Chmod(part.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(part.Name(), file)
	}
	if err != nil {
		_ = os.Remove(part.Name())
		return fmt.Errorf("--report: %w", err)
	}
	fmt.Fprintf(e.Err, "fullbore: report written to %s\n", file)
	return nil
}
