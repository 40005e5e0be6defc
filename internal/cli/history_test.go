package cli

import (
	"bytes"
	"database/sql"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/render"
	"github.com/fullbore-net/fullbore/internal/render/goldentest"
	"github.com/fullbore-net/fullbore/internal/store"
	"github.com/fullbore-net/fullbore/internal/store/storetest"
	"github.com/fullbore-net/fullbore/result"
)

// historian is an environment with a history of its own.
func historian(history string) (e *env, out, errs *bytes.Buffer) {
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	return &env{Std: Std{
		In: strings.NewReader(""), Out: out, Err: errs, Now: time.Now,
		Getenv: func(name string) string {
			if name == historyVariable {
				return history
			}
			return ""
		},
	}}, out, errs
}

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
	ctx, dir := t.Context(), memoryDir(t)
	files := resultFiles(t)
	if len(files) < 300 {
		t.Errorf("only %d recordings", len(files))
	}
	names := slices.Sorted(maps.Keys(files))
	one, out, errs := historian(filepath.Join(dir, "first.db"))
	play := func(e *env, out *bytes.Buffer, what string, f func() error) string {
		t.Helper()
		out.Reset()
		if err := f(); err != nil || errs.Len() > 0 {
			t.Fatalf("%s: %v, %s", what, err, errs)
		}
		return out.String()
	}
	ids := map[string][]string{}
	imported := play(one, out, "import", func() error { return one.runImport(ctx, &importOptions{label: "golden"}, names) })
	for line := range strings.Lines(imported) {
		name, rest, _ := strings.Cut(line, ": ")
		ids[name] = append(ids[name], rest[:26])
	}
	exported := play(one, out, "export", func() error { return one.runExport(ctx, &filterOptions{}, nil, false) })
	lines := filepath.Join(dir, "history.jsonl")
	if err := os.WriteFile(lines, []byte(exported), 0o600); err != nil {
		t.Fatal(err)
	}
	two, out2, _ := historian(filepath.Join(dir, "second.db"))
	play(two, out2, "import of the export", func() error { return two.runImport(ctx, &importOptions{}, []string{lines}) })
	again := play(two, out2, "second export", func() error { return two.runExport(ctx, &filterOptions{}, nil, false) })
	before, after := withoutBytes(t, exported), withoutBytes(t, again)
	if len(before) != len(after) {
		t.Errorf("%d entries were exported, %d came out again", len(before), len(after))
	}
	for id, line := range before {
		if after[id] != line {
			t.Errorf("the second export of %s differs:\n%s", id, cmp.Diff(line, after[id]))
		}
	}
	s, err := two.history(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(ids[name]) == 0 {
			t.Errorf("%s: nothing was imported", name)
			continue
		}
		var shown bytes.Buffer
		for _, id := range ids[name] {
			entry, err := s.Get(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(entry.Original, data) {
				t.Errorf("%s: the file did not come back", name)
			}
			if err := two.showAs(&shown, files[name], false, loadedOf(entry)); err != nil {
				t.Errorf("%s as %s: %v", name, files[name], err)
			}
		}
		switch {
		case len(ids[name]) == 1:
			if shown.String() != string(data) {
				t.Errorf("%s as %s is not what it was", name, files[name])
			}
		case files[name] == "iperf3": // several tests of a server, printed one by one
			if lost := lostFigures(string(data), shown.String()); lost != nil {
				t.Errorf("%s lost %v", name, lost)
			}
		}
	}
	// Some of them in all other forms.
	for _, name := range []string{"goldens/iperf3/3.21/tcp_P3.client.txt", "goldens/iperf3/3.12/udp_bidir_json.client.json", "goldens/ntttcp-linux/03-tcp-xml-json.sender.xml"} {
		entry, err := s.Get(ctx, ids[filepath.Join(goldentest.Root(t), "testdata", name)][0])
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range render.Outputs {
			var shown bytes.Buffer
			if err := two.showAs(&shown, o.Name, false, loadedOf(entry)); err != nil || shown.Len() == 0 {
				t.Errorf("%s as %s: %v, %d bytes", name, o.Name, err, shown.Len())
			}
		}
	}
}

// memoryDir is a folder in memory, where the system has one: hundreds of entries are each waited for until they are
// on the disk.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "fullbore-test")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// withoutBytes are exported lines by ID, without the size that they take in one store.
func withoutBytes(t *testing.T, lines string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(lines) {
		m := reID.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("a line without an ID: %.80s", line)
		}
		out[m[1]] = reBytes.ReplaceAllString(line, "")
	}
	return out
}

var (
	reID    = regexp.MustCompile(`^\{"record":\{"id":"([0-9A-Z]{26})"`)
	reBytes = regexp.MustCompile(`,"bytes":\d+`)
)

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
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	rep := storetest.Report(1)
	future, damaged, cut := filepath.Join(dir, "future.db"), filepath.Join(dir, "damaged.db"), filepath.Join(dir, "cut.db")
	for _, path := range []string{future, damaged, cut} {
		if e, _, errs := historian(path); e.keep(t.Context(), &keepOptions{host: "self"}, storetest.Report(2)) != nil || errs.Len() > 0 {
			t.Fatal(errs)
		}
	}
	db, err := sql.Open("sqlite", future)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, 1)"); err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	spoil(t, damaged, func(data []byte) []byte { // its first page, which says what it is, stays
		for i := range data[4096:] {
			data[4096+i] = 0x5a
		}
		return data
	})
	spoil(t, cut, func(data []byte) []byte { return data[:2000] })
	for name, c := range map[string]struct{ path, says string }{
		"of the future":  {future, "schema 9000, this program knows"},
		"damaged":        {damaged, "move it away, and a new one is made"},
		"cut":            {cut, "move it away, and a new one is made"},
		"below a file":   {filepath.Join(file, "history.db"), "not kept in the history"},
		"no database":    {file, "not kept in the history"},
		"switched off":   {"off", ""},
		"no home at all": {"", "not kept in the history: no home folder is known"},
	} {
		e, _, errs := historian(c.path)
		if err := e.keep(t.Context(), &keepOptions{host: "self"}, rep); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c.says == "" && errs.Len() > 0 || !strings.Contains(errs.String(), c.says) || strings.Count(errs.String(), "\n") > 1 {
			t.Errorf("%s: %q", name, errs)
		}
		if _, err := e.history(t.Context()); err == nil {
			t.Errorf("%s: history opens", name)
		}
	}
	none := filepath.Join(dir, "none.db")
	e, _, errs := historian(none)
	if err := e.keep(t.Context(), &keepOptions{host: "self", noStore: true}, rep); err != nil || errs.Len() > 0 {
		t.Errorf("--no-store: %v, %s", err, errs)
	}
	if err := e.keep(t.Context(), &keepOptions{host: "self"}, &result.Report{Kind: "test"}); err != nil || errs.Len() > 0 {
		t.Errorf("nothing measured: %v, %s", err, errs)
	}
	if _, err := os.Stat(none); err == nil {
		t.Error("--no-store made a history")
	}
}

// spoil changes what a file holds.
func spoil(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The automatic bound: the oldest go, what is protected stays, and it is said.
func TestHistoryBound(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.db")
	e, _, errs := historian(path)
	known := e.Getenv
	e.Getenv = func(name string) string {
		if name == historyLimitVariable {
			return "8K"
		}
		return known(name)
	}
	for n := range 20 {
		o := &keepOptions{host: "self"}
		if n == 0 {
			o.tags = []string{store.KeepTag}
		}
		if err := e.keepRun(t.Context(), o, storetest.Run(n)); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(errs.String(), "the history is full (8.00 KiB): its oldest") {
		t.Errorf("it is not said: %s", errs)
	}
	s, err := e.history(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all, err := s.List(t.Context(), store.Filter{})
	if err != nil || len(all) < 3 || len(all) > 15 || all[0].ID != storetest.ID(0) || all[len(all)-1].ID != storetest.ID(19) {
		t.Errorf("%d are left, %v", len(all), err)
	}
}

// Files of --out never replace others.
func TestOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, _, errs := historian("off")
	for range 3 {
		if err := e.keepRun(t.Context(), &keepOptions{host: "self", label: "a/b c", out: dir}, storetest.Run(1)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"20261130T120100Z_a-b-c_test", "20261130T120100Z_a-b-c_test-2", "20261130T120100Z_a-b-c_test-3"} {
		for _, ending := range []string{".json", ".txt"} {
			if st, err := os.Stat(filepath.Join(dir, name+ending)); err != nil || st.Size() == 0 {
				t.Errorf("%s%s: %v", name, ending, err)
			}
		}
		for end, other := range map[string]string{"client": "server", "server": "client"} { // each end's own count
			data, err := os.ReadFile(filepath.Join(dir, name+"_"+end+".csv"))
			if err != nil || !strings.Contains(string(data), ","+end+",") || strings.Contains(string(data), ","+other+",") {
				t.Errorf("%s, %s: %v\n%s", name, end, err, data)
			}
		}
	}
	if n := strings.Count(errs.String(), "written to"); n != 3 {
		t.Errorf("said %d times: %s", n, errs)
	}
	if err := (&keepOptions{out: filepath.Join(dir, "nowhere")}).check(); err == nil {
		t.Error("a folder that is not there")
	}
}

// Whatever a label holds, the file's name is one that a system takes.
func TestFileBase(t *testing.T) {
	t.Parallel()
	for label, want := range map[string]string{
		"Büro Süd":               "Büro-Süd",
		"../../etc/passwd":       "etc-passwd",
		`a\b:c*d?"<>|`:           "a-b-c-d",
		"x\u202ey\x00z\u00a0":    "x-y-z",
		"":                       "host-a",
		strings.Repeat("ü", 300): strings.Repeat("ü", 50),
	} {
		r := store.OfRun(storetest.Run(1)).Record
		r.Label = label
		if got := fileBase(&r); got != "20261130T120100Z_"+want+"_test" {
			t.Errorf("%q: %q, want …_%s_test", label, got, want)
		}
	}
}

// What a method was asked for does not hang on the order of the flags, nor on those that only print or keep.
func TestAskedFor(t *testing.T) {
	t.Parallel()
	asked := func(words ...string) string {
		o := &loadOptions{}
		cmd := &cobra.Command{Use: "load"}
		o.addFlags(cmd)
		cmd.Flags().VarP(durationFlag{&o.Time}, "time", "t", "")
		if err := cmd.ParseFlags(words); err != nil {
			t.Fatal(err)
		}
		rep := &result.Report{Kind: "load"}
		o.keep.mark(rep)
		return strings.Join(rep.Asked, " ")
	}
	want := asked("192.0.2.2", "-t", "5", "--max-rate", "20M")
	if want != "--max-rate=20M --time=5s" {
		t.Errorf("%q", want)
	}
	for _, words := range [][]string{
		{"--max-rate", "20M", "-t5", "192.0.2.2"},
		{"--label", "x", "--note", "y z", "--json", "-t", "5s", "--expect", "rise <= 1ms", "192.0.2.9", "-p", "9", "--max-rate=20M", "--out", "/tmp"},
	} {
		if got := asked(words...); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
	if got := asked("192.0.2.2", "-t5", "--max-rate", "20.004M"); got != "--max-rate=20004K --time=5s" {
		t.Errorf("another rate that is rounded alike: %q", got)
	}
	if got := asked("services.yaml", "192.0.2.2"); got != "services.yaml" {
		t.Errorf("a file: %q", got)
	}
	if got := askedFor(nil); got != nil {
		t.Errorf("no flags: %q", got)
	}
}

// A document from elsewhere cannot paint on the reader's terminal.
func TestHostileReport(t *testing.T) {
	t.Parallel()
	const bad = "a\x1b[31mb\u202e"
	rep := storetest.Report(1)
	rep.Summary, rep.Label, rep.Note, rep.Kind = bad, bad, bad, bad
	rep.Runs[0].Summary, rep.Runs[0].Test.Target = bad, bad
	rep.Verdicts = []result.Verdict{{Code: bad, Certainty: bad, Summary: bad, Evidence: []string{bad}, Advice: []string{bad}}}
	rep.Items = []result.Item{{ID: bad, Result: bad, Reasons: []string{bad}}}
	rep.Notices = []result.Notice{{Code: bad, Text: bad}}
	rep.Err = &result.Error{Code: bad, Text: bad}
	rep.Stages = []result.Stage{{Name: bad, Title: bad, Run: new(int)}}
	e, out, _ := historian(filepath.Join(t.TempDir(), "history.db"))
	if err := e.keep(t.Context(), &keepOptions{host: bad, label: bad, note: bad}, rep); err != nil {
		t.Fatal(err)
	}
	l, err := e.load(t.Context(), "last")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.showPlain(l); err != nil {
		t.Fatal(err)
	}
	if err := e.runHistory(t.Context(), &filterOptions{}, false, false); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if strings.ContainsAny(line, "\x1b\u202e") {
			t.Errorf("%q", line)
		}
	}
}
