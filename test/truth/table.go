package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/internal/units"
)

// families group the table, by the first words of the files' names: the first that fits.
var families = []struct{ name, prefixes string }{
	{"Diagnoses: quick", "diagnose-quick"},
	{"Diagnoses: nothing is wrong", "diagnose-clean,diagnose-innocent,diagnose-plain-clean,diagnose-asymmetric,diagnose-competing-on-path"},
	{"Diagnoses: two limits at once", "diagnose-compound"},
	{"Diagnoses: windows and buffers", "diagnose-window,diagnose-plain-window,diagnose-sendbuf,diagnose-scaling,diagnose-autotuning"},
	{"Diagnoses: loss, order, outages", "diagnose-loss,diagnose-reorder,diagnose-outage,diagnose-control,diagnose-shallow"},
	{"Diagnoses: policers, shapers, queues", "diagnose-policer,diagnose-shaper,diagnose-per-flow,diagnose-bloat,diagnose-class"},
	{"Diagnoses: hosts and tools", "diagnose-receiver,diagnose-sender,diagnose-server,diagnose-rate,diagnose-facts"},
	{"Diagnoses: the path itself", "diagnose"},
	{"Rates and bytes", "rate,bytes,loss,rmem,window,strip,split,hop"},
	{"Limits, classes, ways and hosts", "busy,class,competing,cpu,cross,ecmp,firewall,half,lag,policer,shaper"},
	{"NTTTCP", "ntttcp"},
	{"Datagrams", "udp"},
	{"Acceptance", "accept"},
	{"Sweeps", "sweep"},
	{"Loss-free rates, capacity, models", "ndr,capacity,model,rfc2544"},
	{"Delay under load, packet sizes", "load,mtu"},
	{"Standards", "rfc6349,y1564"},
	{"Soak", "soak"},
}

// others is the family of what fits into none.
const others = "Others"

func family(key string) string {
	for _, f := range families {
		for p := range strings.SplitSeq(f.prefixes, ",") {
			if strings.HasPrefix(key, p) {
				return f.name
			}
		}
	}
	return others
}

// total is the whole table in a line.
type total struct {
	scenarios, right, wrong, known, unfit, open int
	plays, voids, again                         int
	time                                        time.Duration
	bytes                                       int64
}

func sum(all []file, s *state) (t total) {
	for _, f := range all {
		e := s.shown(f)
		t.scenarios++
		switch word := e.verdict(f.key); {
		case strings.HasPrefix(word, "**wrong**"):
			t.wrong++
			if strings.HasSuffix(word, "known") {
				t.known++
			}
		case word == "right":
			t.right++
		case strings.HasPrefix(word, "machine"):
			t.unfit++
		default:
			t.open++
		}
		t.plays += e.Right + e.Wrong
		t.voids += e.Voids
		t.again += e.Again
		t.time += time.Duration(e.Seconds * float64(time.Second))
		t.bytes += e.Bytes
	}
	return t
}

func (t total) String() string {
	return fmt.Sprintf("%d scenarios: %d right, %d wrong (%d of them known), %d that the machine was not fit for, %d not finished; %d plays counted, %d were void; %s; %s over the links",
		t.scenarios, t.right, t.wrong, t.known, t.unfit, t.open, t.plays, t.voids, t.time.Round(time.Minute), units.ByteSize(t.bytes).IEC())
}

// page is what is committed; where says of which commit and machine it is.
func page(all []file, s *state, where string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Verdicts of the lab\n\n")
	fmt.Fprintf(&b, "Written by `make truth`: each scenario of `testdata/scenarios` is played live until three plays counted. A play counts\n")
	fmt.Fprintf(&b, "when the machine let the path be what it claims to be (the link's lateness p99 at most max(1 ms, 3 %% of the RTT), steal at\n")
	fmt.Fprintf(&b, "most 5 %%); others are void, and replayed at most %d times a round. `fullbore lab run FILE` plays one.\n\n", lab.MaxReplays)
	fmt.Fprintf(&b, "%s\n\n**%s.**\n", where, sum(all, s))
	if n := sum(all, s).again; n > 0 {
		fmt.Fprintf(&b, "\nOf them, %d plays of diagnoses were made by an earlier program and judged again by later rules from what they measured: the last column says so.\n", n)
	}
	if n, commits := earlier(all, s); n > 0 {
		fmt.Fprintf(&b, "\nOf them, %d plays were made by programs of earlier commits (%s): the last column names each.\n", n, strings.Join(commits, ", "))
	}
	if n := len(s.recorded); n > 0 {
		b.WriteString("\nWhat was not played again is taken from the table before, where its scenario has not changed; the traffic of those plays is not in the sum.\n")
	}
	b.WriteString(confusion(all, s))
	byFamily := map[string][]file{}
	for _, f := range all {
		byFamily[family(f.key)] = append(byFamily[family(f.key)], f)
	}
	b.WriteString("\n## Scenario by scenario\n\n`s` is how long a round takes, building the path and void plays included; the verdict that a diagnosis must give is in the third column.\n")
	for _, f := range append(slices.Clone(families), struct{ name, prefixes string }{name: others}) {
		b.WriteString(section(f.name, byFamily[f.name], s))
	}
	b.WriteString(faults(all, s))
	return b.String()
}

// earlier counts the plays of earlier programs, and names their commits.
func earlier(all []file, s *state) (plays int, commits []string) {
	for _, f := range all {
		if e := s.shown(f); e.earlier != "" && e.rounds() > 0 {
			plays += e.Right + e.Wrong
			if !slices.Contains(commits, e.earlier) {
				commits = append(commits, e.earlier)
			}
		}
	}
	slices.Sort(commits)
	return plays, commits
}

// section is the table of a family.
func section(name string, files []file, s *state) string {
	if len(files) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s\n\n| scenario | | verdict | right | wrong | unfit | void | s | date | program |\n|---|---|---|--:|--:|--:|--:|--:|---|---|\n", name)
	for _, f := range files {
		e := s.shown(f)
		code, _ := expected(f.scenario)
		link := fmt.Sprintf("[%s](../%s)", strings.TrimPrefix(f.scenario.Name, "diagnose, "), f.path)
		if e.rounds() == 0 {
			fmt.Fprintf(&b, "| %s | not played | %s | | | | | | | |\n", link, code)
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %d | %d | %.0f | %s | %s |\n",
			link, e.verdict(f.key), code, e.Right, e.Wrong, e.Unfit, e.Voids, e.Seconds/float64(e.rounds()), e.Date, e.program())
	}
	return b.String()
}

// program names the one that was played, where it is not that of the table's head.
func (e *entry) program() string {
	if e.Again > 0 {
		return strings.TrimPrefix(e.earlier+", judged again", ", ")
	}
	return e.earlier
}

// faults are what was wrong, and what is known of that.
func faults(all []file, s *state) string {
	var b strings.Builder
	for _, f := range all {
		for _, r := range s.shown(f).Reasons {
			fmt.Fprintf(&b, "- %s: %s\n", f.key, r)
		}
		if why, known := knownWrong[f.key]; known && s.shown(f).Wrong > 0 {
			fmt.Fprintf(&b, "- %s is known: %s\n", f.key, why)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n## What was wrong\n\n" + b.String()
}

// confusion is expected × said, of the plays that counted.
func confusion(all []file, s *state) string {
	counts := map[string]map[string]int{}
	columns := map[string]bool{}
	for _, f := range all {
		code, _ := expected(f.scenario)
		if code == "" {
			continue
		}
		for _, x := range s.shown(f).Said {
			if counts[code] == nil {
				counts[code] = map[string]int{}
			}
			counts[code][x]++
			columns[code], columns[x] = true, true
		}
	}
	if len(counts) == 0 {
		return ""
	}
	codes := slices.Sorted(maps.Keys(columns))
	var b strings.Builder
	b.WriteString("\n## Expected × said\n\nDiagnoses whose plays counted. A row is what is true, a column (by the row's number) what was said: the verdict that the\n")
	b.WriteString("scenario asks for where it was given the place that it must have, else the first one. Off the diagonal is a wrong answer.\n\n|  | expected |")
	for i := range codes {
		fmt.Fprintf(&b, " %d |", i+1)
	}
	b.WriteString("\n|--:|---|" + strings.Repeat("--:|", len(codes)) + "\n")
	for i, row := range codes {
		fmt.Fprintf(&b, "| %d | %s |", i+1, row)
		for j, col := range codes {
			switch n := counts[row][col]; {
			case n == 0:
				b.WriteString(" |")
			case i == j:
				fmt.Fprintf(&b, " %d |", n)
			default:
				fmt.Fprintf(&b, " **%d** |", n)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// commit is what was played; the table itself, which changes while it is written, does not
// make a tree dirty.
func commit(out string) string {
	head, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	text := strings.TrimSpace(string(head))
	if changed, err := exec.Command("git", "status", "--porcelain", "--", ".", ":!"+out).Output(); err != nil || len(changed) > 0 {
		text += "-dirty"
	}
	return text
}

// machine is a sentence about where it was played.
func machine() string {
	var parts []string
	if text := first("/proc/cpuinfo", "model name"); text != "" {
		parts = append(parts, text)
	}
	parts = append(parts, fmt.Sprintf("%d cores", runtime.NumCPU()))
	var kb int64
	if _, err := fmt.Sscanf(first("/proc/meminfo", "MemTotal"), "%d", &kb); err == nil {
		parts = append(parts, units.ByteSize(kb<<10).IEC()+" of memory")
	}
	if strings.Contains(first("/proc/cpuinfo", "flags"), "hypervisor") {
		parts = append(parts, "a virtual machine")
	}
	if data, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		parts = append(parts, "kernel "+strings.TrimSpace(string(data)))
	}
	return fmt.Sprintf("Played on %s, %s/%s.", strings.Join(parts, ", "), runtime.GOOS, runtime.GOARCH)
}

// first is the value of the first "key: value" line of a file, "" without.
func first(file, key string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
