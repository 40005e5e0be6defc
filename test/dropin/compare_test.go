//go:build linux

package dropin

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/render/goldentest"
)

// deviations are the rows of testdata/deviations, used by tests that run at once.
type deviations struct {
	mu  sync.Mutex
	all *goldentest.Deviations
}

// apply removes what is meant to differ between recordings and us, and between
// recordings and a live run of ours.
func (d *deviations) apply(release, name, want, got string) (string, string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	want, got = d.all.Apply(goldenNamed(release, name), want, got)
	return d.all.Apply(goldenNamed(release, "live/"+name), want, got)
}

func goldenNamed(release, name string) goldentest.Golden {
	return goldentest.Golden{Release: release, Name: name}
}

// comparison compares one end's streams with the recorded ones.
type comparison struct {
	*bench
	dev  *deviations
	name string // of the recording: "tcp.client"
	// want are the recorded streams by ending; nil = those of the files.
	want map[string]string
}

// golden is the recorded stream, "" when nothing was printed.
func (c comparison) golden(ending string) string {
	c.Helper()
	if c.want != nil {
		return c.want[ending]
	}
	return golden(c.T, c.release, c.name+ending)
}

// end compares all that an end left. exit is the recorded exit status.
func (c comparison) end(exit int, got outcome) {
	c.Helper()
	if got.exit != exit {
		c.Errorf("%s: exit %d, recorded %d\n%s", c.name, got.exit, exit, got)
	}
	c.noColour(got.stdout + got.stderr)
	c.stdout(got.stdout)
	c.stderr(got.stderr)
}

// stdout compares with the recording in whatever form that has.
func (c comparison) stdout(got string) {
	c.Helper()
	if want := c.golden(".json"); want != "" {
		c.documents(want, got)
		return
	}
	if want := c.golden(".jsonl"); want != "" {
		c.events(want, got)
		return
	}
	c.text(c.golden(".txt"), got)
}

// stderr is compared word for word.
func (c comparison) stderr(got string) {
	c.Helper()
	want, have := c.dev.apply(c.release, c.name+".stderr", c.golden(".stderr.txt"), got)
	if diff := cmp.Diff(sameWords(want), sameWords(have)); diff != "" {
		c.Errorf("%s: stderr (-recorded +ours):\n%s", c.name, diff)
	}
}

var measuredRE = regexp.MustCompile(`Total throughput of \d+ bps`)

func sameWords(s string) []string {
	return strings.Split(measuredRE.ReplaceAllString(s, "Total throughput of <n> bps"), "\n")
}

func (c comparison) noColour(s string) {
	c.Helper()
	if strings.ContainsAny(s, "\x1b\r\b") {
		c.Errorf("%s: control characters in %q", c.name, s)
	}
}

var overtookRE = regexp.MustCompile(`(?m)^\[SUM\](?:\[[TR]X-[CS]\])? +0\.0- *\d+\.\d sec  \d+ datagrams received out-of-order\n`)

// text compares the layout: each number by its format class, columns byte for byte.
func (c comparison) text(want, got string) {
	c.Helper()
	raw := got
	want, got = c.dev.apply(c.release, c.name, want, got)
	if !overtookRE.MatchString(want) { // on a wire like this the machine's doing
		got = overtookRE.ReplaceAllString(got, "")
	}
	const head, tail = "Server JSON output:\n", "\n}\n"
	if _, rest, found := strings.Cut(want, head); found { // the block of --get-server-output
		doc, _, _ := strings.Cut(rest, tail)
		want = strings.Replace(want, doc+tail, "", 1)
		_, rest, _ = strings.Cut(got, head)
		ours, _, _ := strings.Cut(rest, tail)
		got = strings.Replace(got, ours+tail, "", 1)
		in := c
		in.name = c.name + ".server"
		in.documents(doc+tail, ours+tail)
	}
	if diff := cmp.Diff(layout(want), layout(got)); diff != "" {
		c.Errorf("%s: stdout (-recorded +ours):\n%s\nours:\n%s", c.name, diff, raw)
	}
	for _, fault := range checkRows(got) {
		c.Errorf("%s: %s\n%s", c.name, fault, raw)
	}
}

// layout is the masked text with repeated reports folded into one: how many there are
// follows from the machine, and checkRows looks after it.
func layout(text string) []string {
	return fold(strings.Split(goldentest.Layout(text), "\n"), func(l string) bool { return strings.Contains(l, "<start>-<end->") })
}

// fold drops repetitions of a group of lines with at least one of the wanted kind.
func fold(lines []string, wanted func(string) bool) []string {
	const longest = 40
	for n := 1; n <= longest; n++ {
		for i := 0; i+2*n <= len(lines); {
			group := lines[i : i+n]
			if slices.Equal(group, lines[i+n:i+2*n]) && slices.ContainsFunc(group, wanted) {
				lines = slices.Delete(slices.Clone(lines), i, i+n)
			} else {
				i++
			}
		}
	}
	return lines
}

// reportRE reads a report's row: stream, times, label.
var reportRE = regexp.MustCompile(`^(?:.*:  |.*\d )?\[( *\d+|SUM)\](\[[TR]X-[CS]\])? +(\d+\.\d\d)-(\d+\.\d\d) +sec .*?(sender|receiver|\(omitted\)|)$`)

// checkRows checks what the masks hide: the reports of each stream follow each other
// without a gap from 0 on, and closing reports begin at 0.
func checkRows(text string) []string {
	type state struct {
		end     string
		omitted bool
	}
	var faults []string
	seen := map[string]*state{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.Contains(line, "Server listening on") || strings.Contains(line, "Accepted connection from") {
			seen = map[string]*state{}
			continue
		}
		m := reportRE.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		id, start, end, label := m[1]+m[2], m[3], m[4], m[5]
		s := seen[id]
		if label == "sender" || label == "receiver" {
			if start != "0.00" {
				faults = append(faults, fmt.Sprintf("a closing report begins at %s", start))
			}
			continue
		}
		switch {
		case s == nil:
			s = &state{end: "0.00", omitted: label != ""}
			seen[id] = s
		case s.omitted && label == "":
			s.omitted, s.end = false, "0.00"
		}
		if start != s.end {
			faults = append(faults, fmt.Sprintf("stream [%s]: a report begins at %s, the one before ended at %s", id, start, s.end))
		}
		s.end = end
	}
	return faults
}

// TestFold proves the comparison's own parts.
func TestFold(t *testing.T) {
	t.Parallel()
	row := func(l string) bool { return strings.HasPrefix(l, "row") }
	for _, c := range []struct{ in, want string }{
		{"a row row b", "a row b"},
		{"a row1 row2 - row1 row2 - row1 row2 - sum", "a row1 row2 - sum"},
		{"a a row b b", "a a row b b"},
		{"head row head row sum", "head row sum"},
		{"row1 row2 row1 row3", "row1 row2 row1 row3"},
	} {
		if got := strings.Join(fold(strings.Split(c.in, " "), row), " "); got != c.want {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
}

func TestCheckRows(t *testing.T) {
	t.Parallel()
	const tail = " sec  12.0 MBytes   101 Mbits/sec                  "
	for _, c := range []struct {
		text   string
		faults int
	}{
		{"[  5]   0.00-1.00  " + tail + "\n[  5]   1.00-2.00  " + tail + "\n[  5]   0.00-2.00  " + tail + "receiver\n", 0},
		{"[  5]   0.00-1.00  " + tail + "(omitted)\n[  5]   0.00-2.00  " + tail + "\n", 0},
		{"[  5]   0.00-1.00  " + tail + "\n[  7]   0.00-1.00  " + tail + "\n[SUM]   0.00-1.00  " + tail + "\n[  5]   1.00-2.00  " + tail + "\n", 0},
		{"t:  [  5]   0.00-1.00  " + tail + "\nt:  [  5]   1.10-2.00  " + tail + "\n", 1},
		{"[  5]   0.50-1.00  " + tail + "\n", 1},
		{"[  5][TX-C]   0.00-1.00  " + tail + "\n[  5][TX-C]   0.00-1.00  " + tail + "\n", 1},
		{"[  5]   1.00-2.00  " + tail + "sender\n", 1},
	} {
		if got := checkRows(c.text); len(got) != c.faults {
			t.Errorf("%q: %q, want %d", c.text, got, c.faults)
		}
	}
}
