package iperf3_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/cli/compat/iperf3"
	"github.com/fullbore-net/fullbore/internal/cli/getopt"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite docs/compat/iperf3.md from the option table")

const docFile = "../../../../docs/compat/iperf3.md"

// TestTable: the table is consistent in itself and with the help.
func TestTable(t *testing.T) {
	t.Parallel()
	shown := map[string]int{"no-fq-socket-pacing": 1} // deprecated, not in the help
	for _, s := range iperf3.Sections {
		for _, key := range s.Keys {
			shown[key]++
			if iperf3.Find(key) == nil {
				t.Errorf("the help shows %q, which is not in the table", key)
			}
		}
	}
	names := map[string]bool{}
	for _, o := range iperf3.Options {
		if shown[o.Key] != 1 {
			t.Errorf("--%s: shown %d times in the help", o.Key, shown[o.Key])
		}
		if o.Key != o.Long || o.Since == "" || o.Help == "" || o.Role == "" || o.Status == "" {
			t.Errorf("--%s: incomplete row", o.Key)
		}
		if (o.Why == "") != (o.Status == iperf3.Done) {
			t.Errorf("--%s: a reason is there exactly when it is not simply done", o.Key)
		}
		if (o.Meta == "") != (o.Arg == getopt.None) {
			t.Errorf("--%s: place holder %q", o.Key, o.Meta)
		}
		for _, name := range append([]string{o.Long, string(rune(o.Short))}, o.Aliases...) {
			if name != "\x00" && names[name] {
				t.Errorf("%q means two things", name)
			}
			names[name] = true
		}
	}
}

// TestEverySpelling: each spelling of each option is understood, and the role is
// enforced exactly where the table says so.
func TestEverySpelling(t *testing.T) {
	t.Parallel()
	// A value that is right for each option that takes one.
	values := map[string]string{
		"port": "5201", "format": "m", "interval": "1", "client": "h", "bitrate": "1M", "server-bitrate-limit": "1M",
		"server-max-duration": "5", "time": "1", "bytes": "1M", "blockcount": "1", "length": "1K", "parallel": "1",
		"window": "1M", "bind": "192.0.2.1", "bind-dev": "lo", "cport": "4000", "set-mss": "1200", "tos": "0", "dscp": "ef",
		"extra-data": "x", "flowlabel": "1", "omit": "1", "file": "data.bin", "timestamps": "%H", "affinity": "0", "title": "x",
		"congestion": "reno", "nstreams": "1", "xbind": "lo", "pidfile": "p", "logfile": "l", "username": "u",
		"rsa-public-key-path": "pub.pem", "rsa-private-key-path": "priv.pem", "authorized-users-path": "users.csv",
		"time-skew-threshold": "5", "fq-rate": "1M", "pacing-timer": "1000", "connect-timeout": "1", "idle-timeout": "1",
		"rcv-timeout": "1000", "snd-timeout": "1000", "cntl-ka": "9/2/3", "debug": "1",
	}
	// Options that are a fault alone.
	companions := map[string][]string{
		"rcv-timeout":           {"-R"},
		"username":              {"--rsa-public-key-path=pub.pem"},
		"rsa-public-key-path":   {"--username=u"},
		"rsa-private-key-path":  {"--authorized-users-path=users.csv"},
		"authorized-users-path": {"--rsa-private-key-path=priv.pem"},
	}
	for _, o := range iperf3.Options {
		var forms [][]string
		for _, name := range append([]string{o.Long}, o.Aliases...) {
			switch o.Arg {
			case getopt.None:
				forms = append(forms, []string{"--" + name})
			case getopt.Optional:
				forms = append(forms, []string{"--" + name}, []string{"--" + name + "=" + values[o.Key]})
			case getopt.Required:
				forms = append(forms, []string{"--" + name, values[o.Key]}, []string{"--" + name + "=" + values[o.Key]})
			}
		}
		if o.Short != 0 {
			short := "-" + string(rune(o.Short))
			if o.Arg == getopt.None || o.Bare {
				forms = append(forms, []string{short})
			} else {
				forms = append(forms, []string{short, values[o.Key]}, []string{short + values[o.Key]})
			}
		}
		for _, form := range forms {
			args := slices.Clone(form)
			switch {
			case o.Key == "client", o.Key == "server", o.Key == "version", o.Key == "help":
			case o.Role == iperf3.Server:
				args = append(append([]string{"-s"}, args...), companions[o.Key]...)
			default:
				args = append(append([]string{"-c", "h"}, args...), companions[o.Key]...)
			}
			inv, exit := iperf3.Parse("iperf3", args, world(t))
			if exits := o.Key == "version" || o.Key == "help"; (inv == nil) != exits || exit != nil && exit.Code != 0 {
				t.Errorf("%q: %+v", args, exit)
			}
			if !o.Checked || o.Key == "client" || o.Key == "server" {
				continue
			}
			role, wrong := []string{"-s"}, "some option you are trying to set is client only"
			if o.Role == iperf3.Server {
				role, wrong = []string{"-c", "h"}, "some option you are trying to set is server only"
			}
			_, exit = iperf3.Parse("iperf3", append(role, form...), world(t))
			if exit == nil || exit.Code != 1 || !strings.Contains(exit.Stderr, wrong) {
				t.Errorf("%q %q: %+v, want %q", role, form, exit, wrong)
			}
		}
	}
}

// TestHelp: the layout that users of iperf3 know, in at most 100 columns.
func TestHelp(t *testing.T) {
	t.Parallel()
	help := iperf3.Help()
	for line := range strings.Lines(help) {
		line = strings.TrimSuffix(line, "\n")
		if len(line) > 100 || strings.TrimRight(line, " ") != line {
			t.Errorf("line %q", line)
		}
		if rest, ok := strings.CutPrefix(line, "                            "); ok && (rest == "" || rest[0] == ' ') {
			t.Errorf("line %q is not in the column of descriptions", line)
		}
	}
	for _, want := range []string{
		"Usage: iperf3 [-s|-c host] [options]\n       iperf3 [-h|--help] [-v|--version]\n\nServer or Client:\n  -p, --port #              ",
		"\nServer specific:\n  -s, --server              ",
		"\nClient specific:\n  -c, --client <host>[%<dev>]\n                            ",
		"\n  --json-stream             ",
		"\n  -d, --debug[=#]           ",
		"\n  --cntl-ka[=#/#/#]         ",
	} {
		if !strings.Contains(help, want) {
			t.Errorf("help lacks %q", want)
		}
	}
}

// TestDoc: docs/compat/iperf3.md says what the table and testdata/deviations say.
func TestDoc(t *testing.T) {
	t.Parallel()
	want := doc(readDeviations(t))
	if *update {
		if err := os.WriteFile(docFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/compat/iperf3.md is stale; run: go test ./internal/cli/compat/iperf3 -update\n%s", diff)
	}
}

const docHead = `# iperf3, option by option

<!-- Generated from the option table of internal/cli/compat/iperf3 and from
testdata/deviations: go test ./internal/cli/compat/iperf3 -update -->

` + "`fullbore iperf3 …`" + `, or the program called as ` + "`iperf3`" + `, takes the command lines of iperf3 3.21 and prints
what 3.21 prints. ` + "`FULLBORE_IPERF3_COMPAT=3.12`" + ` gives the layout, limits and texts of 3.12 where they
differ; options that are newer stay usable. *done*: as iperf3. *differs*: with the reason.

The grammar is getopt_long's: short options bundle (` + "`-uRP3`" + `), values may be attached, long names may be
abbreviated (` + "`--bitr 1M`" + `), options may follow other words, the last of several wins. Left-over words are ignored.

## Values

Wherever a number is wanted, iperf3 reads as far as it understands and ignores the rest. Here it is an error,
with the option and the value named, if a number is followed by junk (` + "`-t 1x`, `-p 5301abc`" + `), has a wrong sign
(` + "`-b -5M`" + `), is a fraction where only whole ones make sense (` + "`-P 2.5`" + `), has an unknown unit (` + "`-b 1Q`" + `) or would
be cut to 0 and so mean "no limit" (` + "`-b 0.5`" + `). Fractions of seconds count. ` + "`5.0`" + ` is 5. K, M, G, T may be
followed by a spelling of the unit (` + "`10Mbps`, `10MB`, `10M/s`" + `), which changes nothing, as in iperf3: 1000-based for
rates in bit/s, 1024-based for sizes and counts.

`

// doc is the whole of docs/compat/iperf3.md.
func doc(rows []deviation) string {
	var b strings.Builder
	b.WriteString(docHead)
	sections := append(slices.Clone(iperf3.Sections), iperf3.Section{Title: "Not in the help", Keys: []string{"no-fq-socket-pacing"}})
	counts := map[iperf3.Status]int{}
	for _, s := range sections {
		fmt.Fprintf(&b, "## %s\n\n| option | value | since | meaning | status |\n|---|---|---|---|---|\n", s.Title)
		for _, key := range s.Keys {
			o := iperf3.Find(key)
			counts[o.Status]++
			name := "`--" + o.Long + "`"
			if o.Short != 0 {
				name = fmt.Sprintf("`-%c` %s", o.Short, name)
			}
			for _, alias := range o.Aliases {
				name += ", `--" + alias + "`"
			}
			value := ""
			if o.Meta != "" {
				value = "`" + o.Meta + "`"
				if o.Arg == getopt.Optional {
					value = "`[=" + o.Meta + "]`"
				}
			}
			meaning := o.Help
			if o.Limits != "" {
				meaning += "; " + o.Limits
			}
			status := string(o.Status)
			if o.Why != "" {
				status = "**" + status + "**: " + o.Why
			}
			cells := []string{name, value, o.Since, meaning, status}
			for i := range cells {
				cells[i] = strings.ReplaceAll(cells[i], "|", "\\|")
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%d options: %d done, %d differ.\n\n", len(iperf3.Options), counts[iperf3.Done], counts[iperf3.Differs])
	b.WriteString("## Differences from recorded outputs\n\nWhat is meant to differ from what iperf3 3.12 and 3.21 printed in our recordings " +
		"(testdata/deviations has the very lines). `live/…` is about the program's own runs of the recorded command lines, `live/error_…` about those that fail without a server.\n\n| recording | difference and reason |\n|---|---|\n")
	var lines []string
	for _, row := range rows {
		if line := fmt.Sprintf("| `%s` | %s |\n", row.name, row.reason); !slices.Contains(lines, line) {
			lines = append(lines, line)
			b.WriteString(line)
		}
	}
	return b.String()
}
