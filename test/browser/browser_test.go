package browser

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/conclude/sample"
	"github.com/fullbore-net/fullbore/result"
)

// axe is the release of axe-core, the accessibility checker, that the pages are held to.
const axe = "axe-core@4.14.1"

var (
	program string // the program under test
	shots   string // where pictures are kept; git ignores it
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	_ = os.Setenv("FULLBORE_HISTORY", "off") // not into the developer's own
	program = os.Getenv("FULLBORE")
	dir, err := os.MkdirTemp("", "browser")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // best effort
	if program == "" {
		program = filepath.Join(dir, "fullbore")
		if out, err := exec.Command("go", "build", "-o", program, "../../cmd/fullbore").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			return 1
		}
	}
	if shots, err = filepath.Abs("../../dist/browser"); err == nil {
		err = os.MkdirAll(shots, 0o755)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// need fails in CI and skips elsewhere: the real program is not there.
func need(t *testing.T, err error) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("CI needs it (test/peers.sh): %v", err)
	}
	t.Skip(err)
}

// checker fetches axe-core with the machine's npm, into a folder of this test.
func checker(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		need(t, err)
	}
	dir := t.TempDir()
	cmd := exec.Command("npm", "pack", "--silent", axe)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		need(t, fmt.Errorf("npm pack %s: %w\n%s", axe, err, out))
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(files) != 1 {
		t.Fatalf("npm pack made %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatalf("axe.min.js in the package: %v", err)
		}
		if h.Name == "package/axe.min.js" {
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
}

// recording is a file with a recorded report; change may be nil.
func recording(t *testing.T, name string, change func(string) string) string {
	t.Helper()
	dir := "../../internal/diagnose/testdata/runs/"
	switch kind, _, more := strings.Cut(name, "-"); {
	case kind == "accept":
		dir = "../../internal/render/html/testdata/"
	case !more:
		dir = "testdata/"
	}
	f, err := os.Open(dir + name + ".json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	rep, err := result.ReadReport(f)
	if err != nil {
		t.Fatal(err)
	}
	return document(t, name, rep, change)
}

// document writes a report to a file of its own.
func document(t *testing.T, name string, rep *result.Report, change func(string) string) string {
	t.Helper()
	data, err := json.Marshal(rep)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if change != nil {
		text = change(text)
	}
	file := filepath.Join(t.TempDir(), name+".json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// fullbore runs the program; a diagnosis may exit with 2 (nothing conclusive).
func fullbore(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 2) {
		t.Fatalf("fullbore %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

const (
	evil  = `<script>window.owned=1</script><img src=x onerror="window.owned=1">"'&` + "\u202e" + `{{.}}`
	wide  = 1280
	small = 400
)

// hostile puts markup wherever a document has text from elsewhere.
func hostile(text string) string {
	var doc map[string]any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		return text
	}
	doc["inputs"] = []string{evil}
	if c, ok := doc["comparison"].(map[string]any); ok {
		doc["inputs"] = []string{evil, "--x"}
		c["a"].(map[string]any)["side"], c["b"].(map[string]any)["side"] = evil, evil
		c["differences"] = []map[string]any{{"what": evil, "a": evil, "b": evil}}
		for _, m := range c["metrics"].([]any) {
			m.(map[string]any)["verdict"] = evil
		}
	}
	doc["notices"] = []map[string]any{{"code": evil, "level": "warn", "text": evil, "fix": evil, "end": "client"}}
	for _, r := range doc["runs"].([]any) {
		run := r.(map[string]any)
		run["notices"] = []map[string]any{{"code": evil, "level": "warn", "text": "of a run " + evil, "fix": evil}}
		run["test"].(map[string]any)["target"] = evil
		for _, h := range run["hosts"].(map[string]any) {
			if host, ok := h.(map[string]any); ok {
				host["name"], host["cpu_model"], host["os"] = evil, evil, evil
			}
		}
		if s, ok := run["streams"].([]any); ok {
			for _, x := range s {
				x.(map[string]any)["remote"] = map[string]any{"host": evil, "port": 1}
			}
		}
	}
	for _, s := range doc["stages"].([]any) {
		s.(map[string]any)["title"], s.(map[string]any)["why"] = evil, evil
	}
	out, err := json.Marshal(doc)
	if err != nil {
		return text
	}
	return string(out)
}

// TestReports opens pages of several kinds. One browser serves all of them.
func TestReports(t *testing.T) {
	b, err := Start()
	if err != nil {
		need(t, err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	axe := checker(t)
	dir := t.TempDir()
	page := func(name string) string { return filepath.Join(dir, name+".html") }
	for _, c := range []struct {
		name, from string
		change     func(string) string
		all        bool // every picture
	}{
		{"window", "diagnose-window-server", nil, true},
		{"bursty", "diagnose-loss-bursty", nil, false},
		{"asymmetric", "diagnose-asymmetric", nil, false},
		{"hostile", "diagnose-window-server", hostile, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			fullbore(t, "diagnose", "--quiet", "--replay", recording(t, c.from, c.change), "--report", page(c.name))
			look(t, b, axe, page(c.name), c.name, c.all)
		})
	}
	t.Run("accept", func(t *testing.T) {
		for name, change := range map[string]func(string) string{"accept": nil, "accept-hostile": hostile} {
			fullbore(t, "accept", "--quiet", "--no-store", "--replay", recording(t, "accept-foreign", change), "--report", page(name))
			look(t, b, axe, page(name), name, change == nil)
		}
	})
	for _, name := range []string{"sweep", "rounds", "compare", "connrate"} {
		t.Run(name, func(t *testing.T) {
			fullbore(t, "show", recording(t, name, nil), "--report", page(name))
			look(t, b, axe, page(name), name, name == "compare")
		})
	}
	t.Run("compare-hostile", func(t *testing.T) {
		fullbore(t, "show", recording(t, "compare", hostile), "--report", page("compare-hostile"))
		look(t, b, axe, page("compare-hostile"), "compare-hostile", false)
	})
	t.Run("soak", func(t *testing.T) {
		fullbore(t, "show", document(t, "soak", sample.SoakOfADay(), nil), "--report", page("soak"))
		look(t, b, axe, page("soak"), "soak", false)
	})
	t.Run("test", func(t *testing.T) {
		fullbore(t, "test", "self", "-t", "1", "-P", "2", "--quiet", "--no-store", "--report", page("test"))
		look(t, b, axe, page("test"), "test", false)
	})
}

// look opens a page in light, dark and print, wide and narrow.
func look(t *testing.T, b *Browser, axe, file, name string, all bool) {
	t.Helper()
	st, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if st.Size() > 1<<20 {
		t.Errorf("%d bytes: more than 1 MiB", st.Size())
	}
	p, err := b.Open("file://" + file)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range []struct {
		media, scheme string
		width         int
		always        bool // the picture is made of every page
	}{
		{"screen", "light", wide, true},
		{"screen", "dark", small, true},
		{"screen", "dark", wide, false},
		{"screen", "light", small, false},
		{"print", "dark", 703, true}, // what an A4 page has beside its margins; printed light, whatever the screen is
	} {
		if !v.always && !all {
			continue
		}
		if err := p.Media(v.media, v.scheme, v.width); err != nil {
			t.Fatal(err)
		}
		at := fmt.Sprintf("%s-%s-%s-%d", name, v.media, v.scheme, v.width)
		layout(t, p, at)
		if i < 2 {
			accessible(t, p, axe, at)
		}
		png, err := p.Screenshot()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(png, []byte("\x89PNG")) || len(png) < 20000 {
			t.Errorf("%s: the picture has %d bytes", at, len(png))
		}
		keep(t, at+".png", png)
	}
	pdf, pages, err := p.PDF()
	if err != nil {
		t.Fatal(err)
	}
	most := 12
	switch {
	case strings.HasPrefix(name, "accept"), name == "sweep":
		most = 20 // every item of both directions, and every measurement
	}
	if pages < 1 || pages > most {
		t.Errorf("%s: %d pages on paper", name, pages)
	}
	keep(t, name+".pdf", pdf)
	var owned bool
	if err := p.Eval("!!window.owned || document.scripts.length > 0", &owned); err != nil {
		t.Fatal(err)
	}
	if owned {
		t.Error("text from elsewhere became markup, or the page has a script")
	}
	if c := p.Console(); len(c) > 0 {
		t.Errorf("console: %q", c)
	}
	if r := p.Requests(); len(r) > 0 {
		t.Errorf("the page asks for %q", r)
	}
	t.Logf("%s: %d bytes, %d pages; pictures in %s", name, st.Size(), pages, shots)
}

func keep(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(shots, name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// faults lists what sticks out of the page or of a drawing, texts of drawings that lie over
// one another, and ids that are there twice.
const faults = `(() => {
	const out = [];
	if (document.documentElement.scrollWidth > innerWidth) out.push('the page is ' + document.documentElement.scrollWidth + ' wide');
	if (matchMedia('print').matches) for (const w of document.querySelectorAll('.wide'))
		if (w.scrollWidth > w.clientWidth + 1) out.push('cut off on paper: ' + w.innerText.slice(0, 40) + ', ' + w.scrollWidth + ' of ' + w.clientWidth);
	const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
	for (const id of new Set(ids)) if (ids.filter(x => x === id).length > 1) out.push('id twice: ' + id);
	for (const a of document.querySelectorAll('a[href^="#"]')) if (!document.getElementById(a.getAttribute('href').slice(1))) out.push('no target: ' + a.getAttribute('href'));
	const svgs = [...document.querySelectorAll('svg')];
	if (svgs.length === 0) out.push('no plot');
	for (const s of svgs) {
		const name = s.querySelector('title').textContent, box = s.viewBox.baseVal;
		const ts = [...s.querySelectorAll('text')].map(t => ({t: t.textContent, b: t.getBBox()}));
		for (const x of ts) if (x.b.x < -1 || x.b.y < -1 || x.b.x + x.b.width > box.width + 1 || x.b.y + x.b.height > box.height + 1) out.push(name + ': sticks out: ' + x.t);
		for (let i = 0; i < ts.length; i++) for (let j = 0; j < i; j++) {
			const a = ts[i].b, b = ts[j].b, eps = 1.5;
			if (a.x + eps < b.x + b.width && b.x + eps < a.x + a.width && a.y + 3 < b.y + b.height && b.y + 3 < a.y + a.height) out.push(name + ': "' + ts[j].t + '" and "' + ts[i].t + '" overlap');
		}
	}
	return out;
})()`

func layout(t *testing.T, p *Page, at string) {
	t.Helper()
	var found []string
	if err := p.Eval(faults, &found); err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Errorf("%s: %s", at, f)
	}
}

// accessible runs axe-core; serious and critical faults fail.
func accessible(t *testing.T, p *Page, axe, at string) {
	t.Helper()
	if err := p.Eval(axe+";typeof window.axe", nil); err != nil {
		t.Fatal(err)
	}
	var found struct {
		Passes int
		Faults []struct {
			ID, Impact, Help string
			Nodes            []string
		}
	}
	err := p.Eval(`axe.run(document).then(r => ({passes: r.passes.length, faults: r.violations.map(v => ({id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + ' ' + n.failureSummary)}))}))`, &found)
	if err != nil {
		t.Fatal(err)
	}
	if found.Passes < 10 {
		t.Errorf("%s: axe looked at next to nothing: %d rules passed", at, found.Passes)
	}
	for _, f := range found.Faults {
		if f.Impact == "serious" || f.Impact == "critical" {
			t.Errorf("%s: %s (%s): %s %q", at, f.ID, f.Impact, f.Help, f.Nodes)
		} else {
			t.Logf("%s: %s (%s): %s %q", at, f.ID, f.Impact, f.Help, f.Nodes)
		}
	}
}
