package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/cli"
	"github.com/fullbore-net/fullbore/internal/render/goldentest"
)

// run plays a command line with a history of its own.
func runCommand(t *testing.T, history string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Main(context.Background(), append([]string{"fullbore"}, args...), cli.Std{
		In: strings.NewReader(""), Out: &out, Err: &errs, Now: time.Now, Executable: os.Executable,
		Getenv: func(name string) string {
			if name == "FULLBORE_HISTORY" {
				return history
			}
			return ""
		},
	})
	return code, out.String(), errs.String()
}

var reImported = regexp.MustCompile(`(?m)^(\S+): ([0-9A-Z]{26})  (.*)$`)

// resultFiles are all recordings that hold a result, with the form in which they are shown again.
func resultFiles(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	add := func(dir string, goldens []goldentest.Golden, form func(g goldentest.Golden) string) {
		for _, g := range goldens {
			if f := form(g); f != "" {
				folder := dir
				if folder == "iperf3" {
					folder = filepath.Join(dir, g.Release)
				}
				out[filepath.Join(goldentest.Root(t), "testdata", "goldens", folder, g.Name+"."+g.Ext)] = f
			}
		}
	}
	add("iperf3", append(append(goldentest.Iperf3(t, "*.json"), goldentest.Iperf3(t, "*.jsonl")...), goldentest.Iperf3(t, "*.txt")...), func(g goldentest.Golden) string {
		name, _, _ := strings.Cut(g.Name, ".")
		switch {
		case slices.Contains([]string{"version", "debug1", "auth_nopassword_notty", "errors", "pidfile_running"}, name): // no results
			return ""
		case g.Ext == "txt" && !regexp.MustCompile(`Connecting to host|Accepted connection|iperf3: [^e]|iperf3: error|sec +[\d.]+ .?Bytes`).Match(g.Data):
			return "" // nothing happened: a server's banner
		}
		return map[string]string{"json": "iperf3-json", "jsonl": "iperf3-stream", "txt": "iperf3"}[g.Ext]
	})
	add("ntttcp-linux", goldentest.NTTTCP(t, "*.*"), func(g goldentest.Golden) string {
		if !bytes.Contains(g.Data, []byte("throughput")) {
			return ""
		}
		return map[string]string{"xml": "ntttcp-xml", "json": "ntttcp-json", "txt": "ntttcp", "log": "ntttcp"}[g.Ext]
	})
	for file, form := range map[string]string{"composed.txt": "ntttcp-windows", "composed.xml": "ntttcp-windows-xml"} {
		out[filepath.Join(goldentest.Root(t), "internal/render/ntttcpwin/testdata", file)] = form
	}
	return out
}

// TestEveryGolden imports all recordings, exports the history, imports that into another one, and shows each
// from there in its own form, and the file itself: no figure is lost, and the second export is the first.
func TestEveryGolden(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first.db"), filepath.Join(dir, "second.db")
	files := resultFiles(t)
	if len(files) < 300 {
		t.Errorf("only %d recordings", len(files))
	}
	args := []string{"import", "--label", "golden"}
	for name := range files {
		args = append(args, name)
	}
	slices.Sort(args[3:])
	code, imported, stderr := runCommand(t, first, args...)
	if code != 0 || stderr != "" {
		t.Fatalf("import: %d, %s", code, stderr)
	}
	code, exported, stderr := runCommand(t, first, "export")
	if code != 0 || stderr != "" {
		t.Fatalf("export: %d, %s", code, stderr)
	}
	lines := filepath.Join(dir, "history.jsonl")
	if err := os.WriteFile(lines, []byte(exported), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := runCommand(t, second, "import", lines); code != 0 || stderr != "" {
		t.Fatalf("import of the export: %d, %s", code, stderr)
	}
	_, again, _ := runCommand(t, second, "export")
	if diff := cmp.Diff(withoutBytes(t, exported), withoutBytes(t, again)); diff != "" {
		t.Errorf("the second export differs:\n%s", diff)
	}
	ids := map[string][]string{}
	for _, m := range reImported.FindAllStringSubmatch(imported, -1) {
		ids[m[1]] = append(ids[m[1]], m[2])
	}
	for name, form := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(ids[name]) == 0 {
			t.Errorf("%s: nothing was imported", name)
			continue
		}
		_, original, _ := runCommand(t, second, "show", ids[name][0], "--original")
		if original != string(data) {
			t.Errorf("%s: the file did not come back", name)
		}
		shown := ""
		for _, id := range ids[name] {
			code, text, stderr := runCommand(t, second, "show", id, "--"+form)
			if code != 0 {
				t.Errorf("%s as %s: %d, %s", name, form, code, stderr)
			}
			shown += text
		}
		if len(ids[name]) == 1 && shown != string(data) {
			t.Errorf("%s as %s is not what it was", name, form)
		}
		if len(ids[name]) > 1 && !strings.Contains(name, "ntttcp") { // several tests: printed one by one
			if lost := lostFigures(string(data), shown); lost != nil {
				t.Errorf("%s as %s lost %v", name, form, lost)
			}
		}
	}
	// Every one of them in the other forms.
	for _, id := range []string{ids[filepath.Join(goldentest.Root(t), "testdata/goldens/iperf3/3.21/tcp_P3.client.txt")][0], ids[filepath.Join(goldentest.Root(t), "testdata/goldens/ntttcp-linux/03-tcp-xml-json.sender.xml")][0]} {
		for _, form := range []string{"plain", "json", "json-stream", "csv", "iperf3", "iperf3-json", "iperf3-stream", "ntttcp", "ntttcp-xml", "ntttcp-json", "ntttcp-windows", "ntttcp-windows-xml", "record"} {
			if code, text, stderr := runCommand(t, second, "show", id, "--"+form); code != 0 || text == "" {
				t.Errorf("%s as %s: %d, %s", id, form, code, stderr)
			}
		}
	}
}

// withoutBytes are exported lines by ID, without the size that they take in one store.
func withoutBytes(t *testing.T, lines string) map[string]any {
	t.Helper()
	out := map[string]any{}
	dec := json.NewDecoder(strings.NewReader(lines))
	for {
		var v map[string]any
		if err := dec.Decode(&v); err == io.EOF {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		rec := v["record"].(map[string]any)
		delete(rec, "bytes")
		out[rec["id"].(string)] = v
	}
}

var reFigure = regexp.MustCompile(`\d+(?:\.\d+)?`)

// lostFigures are the rows' numbers of want that got does not have as often.
func lostFigures(want, got string) (lost []string) {
	have := map[string]int{}
	for _, n := range reFigure.FindAllString(got, -1) {
		have[n]++
	}
	seen := map[string]bool{}
	for line := range strings.Lines(want) {
		if !strings.HasPrefix(line, "[") || seen[line] { // some releases print the last row twice
			continue
		}
		seen[line] = true
		for _, n := range reFigure.FindAllString(line, -1) {
			if have[n]--; have[n] < 0 {
				lost = append(lost, n)
			}
		}
	}
	return lost
}

// What is wrong with the history is a line, never a failed measurement.
func TestHistoryCannot(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "foreign.db")
	if err := os.WriteFile(foreign, []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"below a file": filepath.Join(file, "history.db"), "no database": foreign, "a device that is full": "/dev/full"} {
		if _, err := os.Stat("/dev/full"); err != nil && path == "/dev/full" {
			continue // not this system's
		}
		code, out, stderr := runCommand(t, path, "test", "self", "-n", "64K", "--up", "-q")
		if code != 0 || out == "" || !strings.Contains(stderr, "not kept in the history") {
			t.Errorf("%s: %d, %q, %q", name, code, out, stderr)
		}
		if code, _, stderr := runCommand(t, path, "history"); code == 0 || stderr == "" {
			t.Errorf("%s: history: %d, %q", name, code, stderr)
		}
	}
	if code, _, stderr := runCommand(t, "off", "test", "self", "-n", "64K", "--up", "-q"); code != 0 || stderr != "" {
		t.Errorf("switched off: %d, %q", code, stderr)
	}
	if code, _, stderr := runCommand(t, filepath.Join(dir, "none.db"), "test", "self", "-n", "64K", "--up", "-q", "--no-store"); code != 0 || stderr != "" {
		t.Errorf("--no-store: %d, %q", code, stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "none.db")); err == nil {
		t.Error("--no-store made a history")
	}
}
