package iperf3_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/cli/compat/iperf3"
	"github.com/google/go-cmp/cmp"
)

const deviationsFile = "../../../../testdata/deviations"

// deviation is a row of testdata/deviations.
type deviation struct {
	name, pattern, reason string
	re                    *regexp.Regexp
}

func readDeviations(t *testing.T) []deviation {
	t.Helper()
	data, err := os.ReadFile(deviationsFile)
	if err != nil {
		t.Fatal(err)
	}
	var rows []deviation
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "ntttcp-") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 3 || slices.Contains(fields, "") {
			t.Fatalf("%s:%d: want case<TAB>pattern<TAB>reason", deviationsFile, i+1)
		}
		re, err := regexp.Compile(fields[1])
		if err != nil {
			t.Fatalf("%s:%d: %v", deviationsFile, i+1, err)
		}
		rows = append(rows, deviation{fields[0], fields[1], fields[2], re})
	}
	return rows
}

// without drops the lines that the deviations for a case allow to differ, and counts
// in used which rows did something.
func without(rows []deviation, used map[int]bool, release, name, text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		keep := true
		for i, row := range rows {
			short, _ := path.Match(row.name, name)
			full, _ := path.Match(row.name, release+"/"+name)
			if (short || full) && row.re.MatchString(strings.TrimSuffix(line, "\n")) {
				used[i], keep = true, false
			}
		}
		if keep {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// entry is a line of errors.jsonl: a command line that failed without a server.
type entry struct {
	Case   string
	Argv   []string
	Exit   int
	Stdout string
	Stderr string
}

func readEntries(t *testing.T, release string) []entry {
	t.Helper()
	f, err := os.Open("testdata/" + release + "/errors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var entries []entry
	for in := bufio.NewScanner(f); in.Scan(); {
		var e entry
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	return entries
}

// atRunTime are the entries whose fault is found by running: here only that they are
// accepted, and what is printed before the run.
var atRunTime = []string{
	"refused", "refused_json", "refused_jsonstream", "unknown_host", "unknown_host_json", "connect_timeout",
	"v4_literal_with_6", "P0", "F_missing", "logfile_bad", "json_f", "json_V", "sctp", "bind_dev_bad", "bind_bad",
	"congestion_bad_no_server",
}

func TestErrors(t *testing.T) {
	t.Parallel()
	rows := readDeviations(t)
	used := map[int]bool{}
	for _, release := range []iperf3.Release{iperf3.R321, iperf3.R312} {
		seen := 0
		for _, e := range readEntries(t, string(release)) {
			w := world(t)
			w.Release = release
			inv, exit := iperf3.Parse("iperf3", e.Argv, w)
			accepted := inv != nil
			if accepted == (exit != nil) {
				t.Fatalf("%s %s: both or neither of a plan and an exit", release, e.Case)
			}
			if want := slices.Contains(atRunTime, e.Case); accepted != want {
				t.Errorf("%s %s: accepted %v, want %v (%+v)", release, e.Case, accepted, want, exit)
				continue
			}
			name := "errors/" + e.Case
			if accepted {
				exit = &iperf3.Exit{Code: e.Exit, Stdout: e.Stdout, Stderr: inv.Stderr}
				if inv.Stdout != "" {
					t.Errorf("%s %s: prints %q first", release, e.Case, inv.Stdout)
				}
				// The run's own error is not ours to print.
				e.Stderr = regexp.MustCompile(`(?m)^iperf3: error - .*\n`).ReplaceAllString(e.Stderr, "")
			}
			if exit.Code != e.Exit {
				t.Errorf("%s %s: exit %d, want %d", release, e.Case, exit.Code, e.Exit)
			}
			for _, s := range []struct{ stream, want, got string }{
				{"stdout", e.Stdout, exit.Stdout},
				{"stderr", e.Stderr, exit.Stderr},
			} {
				got := strings.Replace(s.got, iperf3.Usage, "<short usage, 2 lines>\n", 1)
				got = strings.Replace(got, iperf3.Help(), "<long usage text, 6097 bytes>\n", 1)
				want := without(rows, used, string(release), name, s.want)
				if diff := cmp.Diff(want, without(rows, used, string(release), name, got)); diff != "" {
					t.Errorf("%s %s: %q: %s (-want +got):\n%s", release, e.Case, e.Argv, s.stream, diff)
				}
			}
			seen++
		}
		if seen < 60 {
			t.Errorf("%s: only %d entries", release, seen)
		}
	}
	for i, row := range rows {
		if strings.Contains(row.name, "errors/") && !used[i] {
			t.Errorf("deviation %q %q changes nothing", row.name, row.pattern)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	rows := readDeviations(t)
	for _, release := range []iperf3.Release{iperf3.R321, iperf3.R312} {
		want, err := os.ReadFile("testdata/" + string(release) + "/version.client.txt")
		if err != nil {
			t.Fatal(err)
		}
		w := world(t)
		w.Release = release
		_, exit := iperf3.Parse("iperf3", []string{"-v", "--bogus"}, w)
		if exit == nil || exit.Code != 0 || exit.Stderr != "" {
			t.Fatalf("-v: %+v", exit)
		}
		used := map[int]bool{}
		if diff := cmp.Diff(without(rows, used, string(release), "version.client", string(want)), without(rows, used, string(release), "version.client", exit.Stdout)); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", release, diff)
		}
		// The lines that may differ keep the recording's form.
		wantLines, gotLines := strings.Split(string(want), "\n"), strings.Split(exit.Stdout, "\n")
		if len(gotLines) != len(wantLines) {
			t.Fatalf("%s: %d lines, want %d", release, len(gotLines), len(wantLines))
		}
		if want := "iperf " + string(release) + " (fullbore 1.2.3)"; gotLines[0] != want {
			t.Errorf("first line %q, want %q", gotLines[0], want)
		}
		if want := strings.Replace(wantLines[2], "SCTP, ", "", 1); gotLines[2] != want {
			t.Errorf("features %q, want %q", gotLines[2], want)
		}
	}
}

// TestNoPassword: a login without password is iperf3's parameter error.
func TestNoPassword(t *testing.T) {
	t.Parallel()
	for _, release := range []iperf3.Release{iperf3.R321, iperf3.R312} {
		want, err := os.ReadFile("testdata/" + string(release) + "/auth_nopassword_notty.client.stderr.txt")
		if err != nil {
			t.Fatal(err)
		}
		w := world(t)
		w.Release = release
		w.Password = func(string) (string, bool) { return "", false }
		_, exit := iperf3.Parse("iperf3", []string{"-c", "192.0.2.2", "-t", "1", "-b", "10M", "--username", "mario", "--rsa-public-key-path", "pub.pem"}, w)
		if exit == nil || exit.Code != 1 || exit.Stderr != string(want) {
			t.Errorf("%s: %+v, want stderr %q", release, exit, want)
		}
	}
}
