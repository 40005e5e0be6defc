package ntttcp_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/cli/compat/ntttcp"
)

var update = flag.Bool("update", false, "rewrite docs/compat/ntttcp.md from the option tables")

const docFile = "../../../../docs/compat/ntttcp.md"

// TestTables: the tables are consistent in themselves.
func TestTables(t *testing.T) {
	t.Parallel()
	for kind, table := range map[string][]ntttcp.Option{"linux": ntttcp.LinuxOptions, "windows": ntttcp.WindowsOptions} {
		names := map[string]bool{}
		for _, o := range table {
			if names[o.Name] || o.Help == "" || o.Role == "" || o.Status == "" || !strings.HasPrefix(o.Name, "-") {
				t.Errorf("%s %s: incomplete, or twice", kind, o.Name)
			}
			names[o.Name] = true
			if (o.Why == "") != (o.Status == ntttcp.Done) {
				t.Errorf("%s %s: a reason is there exactly when it is not simply done", kind, o.Name)
			}
			if o.Optional && o.Meta == "" || o.WindowsOnly && kind == "linux" {
				t.Errorf("%s %s: %+v", kind, o.Name, o)
			}
		}
	}
	if n := len(ntttcp.LinuxOptions); n != 33 {
		t.Errorf("ntttcp-for-linux 1.4.3 has 33 options, not %d", n)
	}
	if n := len(ntttcp.WindowsOptions); n != 43 {
		t.Errorf("ntttcp.exe 5.40 has 43 options, not %d", n)
	}
}

// A value that is right for each option that takes one.
var linuxValues = map[string]string{
	"-r": "10.0.0.5", "-s": "10.0.0.9", "-P": "2", "-a": "10.0.0.5", "-n": "2", "-l": "2", "-p": "6001", "-f": "30000", "-b": "64K", "-B": "1G",
	"-W": "1", "-t": "5", "-C": "1", "-O": "a", "-x": "a", "-j": "a", "-m": "2,*,10.0.0.5", "--show-nic-packets": "lo",
	"--show-dev-interrupts": "eth", "--fq-rate-limit": "1G",
}

var windowsValues = map[string]string{
	"-l": "64K", "-n": "5", "-p": "6001", "-to": "100", "-a": "2", "-rb": "1M", "-sb": "1M", "-t": "5", "-cd": "1", "-wu": "1", "-nic": "10.0.0.5",
	"-xml": "r.xml", "-na": "0", "-uso": "1400", "-x": "2", "-thr": "100", "-brn": "1", "-icp": "1", "-sam": "1", "-qos": "1", "-jm": "j.csv",
	"-ps": "10", "-m": "1,*,10.0.0.5",
}

// TestEveryLinuxOption: each spelling is understood, and what belongs to one role only is
// refused on the other.
func TestEveryLinuxOption(t *testing.T) {
	t.Parallel()
	for _, o := range ntttcp.LinuxOptions {
		var forms [][]string
		v := linuxValues[o.Name]
		if o.Meta == "" || o.Optional {
			forms = append(forms, []string{o.Name})
		}
		switch {
		case o.Meta == "":
		case strings.HasPrefix(o.Name, "--"):
			forms = append(forms, []string{o.Name, v}, []string{o.Name + "=" + v})
		default:
			forms = append(forms, []string{o.Name, v}, []string{o.Name + v})
		}
		for _, form := range forms {
			for role, words := range map[ntttcp.Role][]string{ntttcp.Sender: {"-s"}, ntttcp.Receiver: {"-r"}} {
				if o.Name == "-r" || o.Name == "-s" {
					words = nil
				}
				inv, exit := ntttcp.Parse("ntttcp", append(words, form...), world())
				refused := o.Role == ntttcp.SenderOnly && role == ntttcp.Receiver || o.Role == ntttcp.ReceiverOnly && role == ntttcp.Sender
				switch {
				case o.Name == "-h":
					if exit == nil || exit.Code != 23 {
						t.Errorf("-h: %+v", exit)
					}
				case refused && (exit == nil || exit.Code != 255):
					t.Errorf("%s as %s: %+v", form, role, exit)
				case !refused && inv == nil:
					t.Errorf("%s as %s: %+v", form, role, exit)
				}
			}
		}
	}
}

func TestEveryWindowsOption(t *testing.T) {
	t.Parallel()
	companions := map[string]string{
		"-w": "-a", "-uso": "-u", "-uro": "-u", "-uc": "-u", "-x": "-a", "-sam": "-t 5", "-icp": "-a", "-cd": "-t 5", "-wu": "-t 5",
	}
	for _, o := range ntttcp.WindowsOptions {
		var forms []string
		switch v := windowsValues[o.Name]; {
		case o.Meta == "":
			forms = []string{o.Name, strings.ToUpper(o.Name)}
		case o.Optional:
			forms = []string{o.Name, o.Name + " " + v, strings.ToUpper(o.Name) + " " + v}
		default:
			forms = []string{o.Name + " " + v, strings.ToUpper(o.Name) + " " + v}
		}
		for _, form := range forms {
			for role, word := range map[ntttcp.Role]string{ntttcp.Sender: "-s", ntttcp.Receiver: "-r"} {
				line := word + " -m 1,*,10.0.0.5 " + companions[o.Name] + " " + form
				if o.Name == "-s" || o.Name == "-r" {
					line = "-m 1,*,10.0.0.5 " + form
				}
				inv, exit := parse(onWindows(), line)
				refused := o.Role == ntttcp.SenderOnly && role == ntttcp.Receiver || o.Role == ntttcp.ReceiverOnly && role == ntttcp.Sender
				if refused != (exit != nil) || exit != nil && exit.Code != 9 {
					t.Errorf("%s: %+v %+v", line, inv, exit)
				}
				if inv != nil && o.Name != "-m" && o.Name != "-p" && inv.Stderr != "" && !strings.Contains(line, "-jm") && !strings.Contains(line, "-JM") && !strings.Contains(inv.Stderr, "-sam without") {
					t.Errorf("%s: on Windows itself it says %q", line, inv.Stderr)
				}
			}
		}
	}
	// On other systems what has no effect is said, and nothing else is.
	for _, o := range ntttcp.WindowsOptions {
		if o.WindowsOnly {
			inv := mustParse(t, "--dialect windows -s -m 1,*,10.0.0.5 "+companions[o.Name]+" "+o.Name+" "+windowsValues[o.Name])
			if !strings.Contains(inv.Stderr, "ntttcp: "+o.Name+" is about Windows' own ways: no effect on this system\n") {
				t.Errorf("%s: stderr %q", o.Name, inv.Stderr)
			}
		}
	}
}

// TestHelp: the layout that users of the originals know.
func TestHelp(t *testing.T) {
	t.Parallel()
	for kind, c := range map[string]struct {
		help  string
		table []ntttcp.Option
		want  []string
	}{
		"linux": {ntttcp.LinuxHelp(), ntttcp.LinuxOptions, []string{
			"ntttcp: [-r|-s|-D|-M|-L|-e|-H|-P|-a|-n|-l|-6|-u|-p|-f|-b|-B|-W|-t|-C|-N|-O|-x|-j|-Q|-V|-h|-m <mapping>]\n" +
				"        [--show-tcp-retrans|--show-nic-packets|--show-dev-interrupts|--fq-rate-limit|--no-delay]\n\n\t-r   ",
			"\n\t-M   [receiver only] ", "\n\t-n   [sender only] ", "\n\n\t--show-tcp-retrans\n", "\n\t--show-nic-packets <interface>\n", "--dialect windows",
		}},
		"windows": {ntttcp.WindowsHelp(), ntttcp.WindowsOptions, []string{
			"\nVersion 5.40\n\nNTttcp: [-s|-r|-l|-n|-p|-sp|-ns|-to|-a|-rb|-sb|", "] -m <mappings>\n\n\t-s   ", "\n\t-l   <size> ", "\n\t-xml [file] ", "\n\t-m   ", "--dialect linux",
		}},
	} {
		for _, want := range c.want {
			if !strings.Contains(c.help, want) {
				t.Errorf("%s: help lacks %q", kind, want)
			}
		}
		for _, o := range c.table {
			if !strings.Contains(c.help, "\n\t"+o.Name) {
				t.Errorf("%s: help lacks %s", kind, o.Name)
			}
		}
		for line := range strings.Lines(c.help) {
			line = strings.TrimSuffix(line, "\n")
			if strings.TrimRight(line, " \t") != line || strings.HasPrefix(line, "\t") && len(line)+7 > 120 {
				t.Errorf("%s: line %q", kind, line)
			}
		}
	}
}

// TestDoc: docs/compat/ntttcp.md says what the tables say.
func TestDoc(t *testing.T) {
	t.Parallel()
	want := doc(deviations(t))
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
		t.Errorf("docs/compat/ntttcp.md is stale; run: go test ./internal/cli/compat/ntttcp -update\n%s", diff)
	}
}

const docHead = `# NTTTCP, option by option

<!-- Generated from the tables of internal/cli/compat/ntttcp and from testdata/deviations:
go test ./internal/cli/compat/ntttcp -update -->

` + "`fullbore ntttcp …`" + `, or the program called as ` + "`ntttcp`" + `, takes the command lines of both programs of that name:
NTTTCP for Linux 1.4.3 (the Linux dialect) and ntttcp.exe 5.40 (the Windows dialect). The dialect is that of the system;
` + "`ntttcp.exe`, `ntttcps` and `ntttcpr`" + ` are always the Windows one, and ` + "`--dialect linux|windows`" + ` as first word decides.
*done*: as the original. *differs*: with the reason.

**The rule for words.** What the original accepts means what it means there. What it refuses or garbles, but to which an article
or the other dialect gives a clear meaning, does that, and says so in one line on stderr. A line in the Windows dialect that only
NTTTCP for Linux understands is read as one of its, if all of it is clear: ` + "`ntttcp -s 10.0.0.9 -P 8`" + ` is one. The dashes that web pages
print in place of the keyboard's (` + "`–m`" + `) are read as those.

`

const docLinux = `## Linux dialect

The grammar is getopt_long's: short options bundle (` + "`-uNV`" + `), long names may be abbreviated (` + "`--fq 1G`" + `), the last of several
wins, left-over words are ignored (and named). A value that may be missing is glued on (` + "`-r10.0.0.5`" + `) or is the next word, unless that
begins with a dash. A number is read up to the first character that is no digit, none is 0: ` + "`-t abc`" + ` runs until Ctrl-C, as in the
original, and a line says so. Sizes and rates may have a fraction and one letter of kKmMgG, of 1024 for ` + "`-b`" + `, of 1000 for rates.

`

const docWindows = `## Windows dialect

Options are words, upper or lower case (` + "`-P` is `-p`" + `), each value the next word. Sizes are whole numbers with k or m; ` + "`1.5M`" + ` is
1 MiB and ` + "`4G`" + ` is 4, as in the original, and a line says so. A fault prints an ERROR line and the usage on stdout; exit code 9.

`

// doc is the whole of docs/compat/ntttcp.md.
func doc(rows []string) string {
	var b strings.Builder
	b.WriteString(docHead)
	b.WriteString(docLinux)
	options(&b, ntttcp.LinuxOptions)
	wordTable(&b, "Words of the other dialect and of articles", ntttcp.LinuxWords)
	exitTable(&b, ntttcp.LinuxExits)
	b.WriteString(docWindows)
	options(&b, ntttcp.WindowsOptions)
	wordTable(&b, "Words of the other dialect and of articles", ntttcp.WindowsWords)
	exitTable(&b, ntttcp.WindowsExits)
	b.WriteString("A receiver that is given `-P n`, n below 1024, means base port n to the original; it also listens as Linux' `-P n` does, at 5001 to 5000+n.\n\n")
	b.WriteString("## Differences from recorded outputs\n\nWhat is meant to differ from what NTTTCP for Linux 1.4.3 printed in our recordings " +
		"(testdata/deviations has the very lines); `live/…` is about the program's own runs of the recorded command lines.\n\n| recording | difference and reason |\n|---|---|\n")
	for _, row := range rows {
		b.WriteString(row)
	}
	return b.String()
}

// deviations are the rows of testdata/deviations about NTTTCP, as a table has them.
func deviations(t *testing.T) (rows []string) {
	t.Helper()
	data, err := os.ReadFile("../../../../testdata/deviations")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if name, ok := strings.CutPrefix(f[0], "ntttcp-linux/"); ok && len(f) == 3 {
			rows = append(rows, fmt.Sprintf("| `%s` | %s |\n", name, f[2]))
		}
	}
	if len(rows) == 0 {
		t.Fatal("no row is about NTTTCP")
	}
	return slices.Compact(rows)
}

func exitTable(b *strings.Builder, table []ntttcp.ExitCode) {
	b.WriteString("| exit code | when | in the original, where that differs |\n|---|---|---|\n")
	for _, e := range table {
		fmt.Fprintf(b, "| %d | %s | %s |\n", e.Code, e.When, e.Original)
	}
	b.WriteString("\n")
}

func options(b *strings.Builder, table []ntttcp.Option) {
	b.WriteString("| option | value | role | meaning | status |\n|---|---|---|---|---|\n")
	counts := map[ntttcp.Status]int{}
	for _, o := range table {
		counts[o.Status]++
		value := ""
		if o.Meta != "" {
			value = "`" + o.Meta + "`"
			if o.Optional {
				value = "`[" + o.Meta + "]`"
			}
		}
		meaning := o.Help
		if o.Limits != "" {
			meaning += "; " + o.Limits
		}
		if o.Since != "" {
			meaning += " (since " + o.Since + ")"
		}
		status := string(o.Status)
		if o.Why != "" {
			status = "**" + status + "**: " + o.Why
		}
		row(b, "`"+o.Name+"`", value, string(o.Role), meaning, status)
	}
	fmt.Fprintf(b, "\n%d options: %d done, %d differ.\n\n", len(table), counts[ntttcp.Done], counts[ntttcp.Differs])
}

func wordTable(b *strings.Builder, title string, list []ntttcp.Word) {
	fmt.Fprintf(b, "### %s\n\n| word | does here | in the original |\n|---|---|---|\n", title)
	for _, w := range list {
		word := w.Word
		switch {
		case w.Optional:
			word += " [" + w.Meta + "]"
		case w.Meta != "":
			word += " " + w.Meta
		}
		row(b, "`"+word+"`", w.Does, w.Else)
	}
	b.WriteString("\n")
}

func row(b *strings.Builder, cells ...string) {
	for i := range cells {
		cells[i] = strings.ReplaceAll(cells[i], "|", "\\|")
	}
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}
