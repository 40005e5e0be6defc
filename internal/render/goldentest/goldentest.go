// Package goldentest helps tests to compare outputs with the recorded ones of the real
// iperf3 in testdata/goldens: it finds the recordings, applies the intended differences
// of testdata/deviations, and reduces text to its layout (Mask) where two runs cannot
// have the same numbers.
package goldentest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Golden is one recorded stream of one program.
type Golden struct {
	Release string // "3.21"
	Name    string // case and role without ending: "tcp_json.client", "sigint_client.server.stderr"
	Ext     string // "json", "jsonl", "txt"
	Data    []byte
}

// Server reports whether the server wrote it.
func (g Golden) Server() bool {
	return strings.Contains(g.Name, ".server") || strings.Contains(g.Name, ".sv.") || strings.HasPrefix(g.Name, "daemon")
}

// ID names g in messages.
func (g Golden) ID() string { return g.Release + "/" + g.Name + "." + g.Ext }

// Root returns the directory of the module.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test's directory")
		}
		dir = up
	}
}

// Iperf3 returns the recordings of both releases whose file name matches pattern
// (path.Match, with ending), sorted by release and name.
func Iperf3(t testing.TB, pattern string) []Golden {
	t.Helper()
	dir := filepath.Join(Root(t), "testdata", "goldens", "iperf3")
	files, err := filepath.Glob(filepath.Join(dir, "*", pattern))
	if err != nil {
		t.Fatal(err)
	}
	var out []Golden
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		ext := strings.TrimPrefix(filepath.Ext(f), ".")
		out = append(out, Golden{
			Release: filepath.Base(filepath.Dir(f)), Ext: ext, Data: data,
			Name: strings.TrimSuffix(filepath.Base(f), "."+ext),
		})
	}
	if len(out) == 0 {
		t.Fatalf("no recording matches %q", pattern)
	}
	return out
}

// One returns a single recording: One(t, "3.21", "tcp_json.client.json").
func One(t testing.TB, release, file string) Golden {
	t.Helper()
	for _, g := range Iperf3(t, file) {
		if g.Release == release {
			return g
		}
	}
	t.Fatalf("no recording %s/%s", release, file)
	return Golden{}
}

// Deviation is a row of testdata/deviations: a part in which our output differs from
// the recording on purpose.
type Deviation struct {
	Case, Pattern, Reason string

	re      *regexp.Regexp
	visited bool // some compared recording has its name
	used    bool
}

// Deviations are all rows.
type Deviations struct{ rows []*Deviation }

// ReadDeviations reads testdata/deviations.
func ReadDeviations(t testing.TB) *Deviations {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(Root(t), "testdata", "deviations"))
	if err != nil {
		t.Fatal(err)
	}
	d := &Deviations{}
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 3 || slices.Contains(f, "") {
			t.Fatalf("deviations:%d: want case<TAB>pattern<TAB>reason", i+1)
		}
		re, err := regexp.Compile(f[1])
		if err != nil {
			t.Fatalf("deviations:%d: %v", i+1, err)
		}
		d.rows = append(d.rows, &Deviation{Case: f[0], Pattern: f[1], Reason: f[2], re: re})
	}
	return d
}

// Apply removes from want, the recording g, and from got what is allowed to differ.
//
// A pattern is matched line by line, and the lines that match go. A pattern that
// contains \n is matched against the whole text; what its first group matches goes,
// or all of the match when it has no group.
func (d *Deviations) Apply(g Golden, want, got string) (string, string) {
	for _, row := range d.rows {
		short, _ := path.Match(row.Case, g.Name)
		full, _ := path.Match(row.Case, g.Release+"/"+g.Name)
		if !short && !full {
			continue
		}
		row.visited = true
		want, got = row.cut(want), row.cut(got)
	}
	return want, got
}

func (d *Deviation) cut(text string) string {
	if strings.Contains(d.Pattern, `\n`) {
		return d.cutParts(text)
	}
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if d.re.MatchString(strings.TrimSuffix(line, "\n")) {
			d.used = true
		} else {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

func (d *Deviation) cutParts(text string) string {
	var kept strings.Builder
	at := 0
	for _, m := range d.re.FindAllStringSubmatchIndex(text, -1) {
		from, to := m[0], m[1]
		if len(m) > 2 && m[2] >= 0 {
			from, to = m[2], m[3]
		}
		d.used = true
		kept.WriteString(text[at:from])
		at = to
	}
	kept.WriteString(text[at:])
	return kept.String()
}

// JSON reports whether the row is about JSON output; the other rows are about text.
func (d Deviation) JSON() bool {
	return strings.Contains(d.Pattern, `"`) || strings.Contains(d.Case, "json")
}

// Family is the folder of the recordings that the row is about.
func (d Deviation) Family() string {
	if strings.HasPrefix(d.Case, "ntttcp-linux/") {
		return "ntttcp-linux"
	}
	return "iperf3"
}

// Live reports whether the row is about runs of the program (test/dropin), not about
// the recordings alone.
func (d Deviation) Live() bool { return path.Base(path.Dir(d.Case)) == "live" }

// CheckLive fails t for each row about live runs of one family of recordings (the folder below
// goldens) that changed nothing.
func (d *Deviations) CheckLive(t testing.TB, family string) {
	t.Helper()
	for _, row := range d.rows {
		if row.Live() && row.Family() == family && !row.used {
			t.Errorf("deviation %q %q changes nothing", row.Case, row.Pattern)
		}
	}
}

// CheckUsed fails t for each row that is about JSON, or that is not, whose recording
// was compared but that changed nothing.
func (d *Deviations) CheckUsed(t testing.TB, json bool) {
	t.Helper()
	for _, row := range d.rows {
		if row.visited && !row.used && row.JSON() == json {
			t.Errorf("deviation %q %q changes nothing", row.Case, row.Pattern)
		}
	}
}

// NTTTCP returns the recordings of ntttcp-for-linux whose file name matches pattern
// (path.Match, with ending), sorted by name. Their Release is "ntttcp-linux", so that
// deviations name them ntttcp-linux/CASE.ROLE.
func NTTTCP(t testing.TB, pattern string) []Golden {
	t.Helper()
	const family = "ntttcp-linux"
	files, err := filepath.Glob(filepath.Join(Root(t), "testdata", "goldens", family, pattern))
	if err != nil {
		t.Fatal(err)
	}
	var out []Golden
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		ext := strings.TrimPrefix(filepath.Ext(f), ".")
		out = append(out, Golden{Release: family, Ext: ext, Data: data, Name: strings.TrimSuffix(filepath.Base(f), "."+ext)})
	}
	if len(out) == 0 {
		t.Fatalf("no recording matches %q", pattern)
	}
	return out
}
