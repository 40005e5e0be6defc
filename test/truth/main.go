// Command truth plays every lab scenario live until three fit plays counted, and
// writes what came out into a table. It can be stopped and goes on where it was; a
// scenario file or a program that changed is played again. Linux, root.
package main

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// wanted is how many fit plays a scenario needs (design §8).
const wanted = 3

// options are the command's.
type options struct {
	fullbore, dir, out, state string
	only                      string // pattern of the scenario files' names
	plays                     int    // fit plays of each
	keep                      string // folder for what the clients of fit plays printed
}

// entry is what is known of one scenario.
type entry struct {
	Name    string   `json:"name"`
	Hash    string   `json:"hash"` // of the scenario file and the program
	Right   int      `json:"right"`
	Wrong   int      `json:"wrong"`
	Unfit   int      `json:"unfit"` // rounds in which no play counted
	Voids   int      `json:"voids"`
	Reasons []string `json:"reasons,omitempty"`
	Date    string   `json:"date"`
}

func (e *entry) done(plays int) bool { return e.Right+e.Wrong+e.Unfit >= plays }

func (e *entry) verdict() string {
	switch {
	case e.Wrong > 0:
		return "**wrong**"
	case e.Right >= wanted:
		return "right"
	case e.Unfit > 0:
		return "machine unfit"
	}
	return "not finished"
}

func main() {
	var o options
	flag.StringVar(&o.fullbore, "fullbore", "bin/fullbore", "program under test")
	flag.StringVar(&o.dir, "dir", "testdata/scenarios", "folder of scenario files")
	flag.StringVar(&o.out, "out", "docs/verdicts.md", "table to write")
	flag.StringVar(&o.state, "state", "bin/truth.json", "where to go on")
	flag.StringVar(&o.only, "only", "*", "play the scenarios whose name is like this (shell pattern)")
	flag.IntVar(&o.plays, "plays", wanted, "fit plays of each; fewer than 3 prove nothing")
	flag.StringVar(&o.keep, "keep", "", "folder for what the clients printed in fit plays (gzip)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "truth:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	files, err := filepath.Glob(filepath.Join(o.dir, o.only+".scenario"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no scenarios in %s (%w)", o.dir, err)
	}
	if o.fullbore, err = filepath.Abs(o.fullbore); err != nil {
		return err
	}
	known := map[string]*entry{}
	if data, err := os.ReadFile(o.state); err == nil {
		if err := json.Unmarshal(data, &known); err != nil {
			return fmt.Errorf("%s: %w (delete it to begin anew)", o.state, err)
		}
	}
	save := func() error {
		data, err := json.MarshalIndent(known, "", " ")
		if err != nil {
			return err
		}
		return errors.Join(os.WriteFile(o.state, data, 0o644), os.WriteFile(o.out, []byte(table(files, known)), 0o644))
	}
	wrong := 0
	for _, f := range files {
		e, err := prepare(known, f, o.fullbore)
		if err != nil {
			return err
		}
		for !e.done(o.plays) && ctx.Err() == nil {
			outcome, err := lab.RunFile(ctx, f, lab.RunOptions{Fullbore: o.fullbore}, os.Stdout)
			if err != nil {
				return errors.Join(err, save())
			}
			e.count(outcome)
			if err := errors.Join(save(), keep(o.keep, f, e, outcome)); err != nil {
				return err
			}
		}
		if e.Wrong > 0 {
			wrong++
		}
	}
	if err := save(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted; run again to go on")
	}
	if wrong > 0 {
		return fmt.Errorf("%d scenarios are wrong: see %s", wrong, o.out)
	}
	return nil
}

// keep writes what the client of the round's fit play printed, so that rules can be tried
// on it again (`fullbore diagnose --replay`).
func keep(folder, file string, e *entry, o lab.Outcome) error {
	if folder == "" {
		return nil
	}
	for _, p := range o.Plays {
		if len(p.Void) > 0 || p.Client.Stdout == "" {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(file), ".scenario")
		f, err := os.Create(filepath.Join(folder, fmt.Sprintf("%s-%d.json.gz", name, e.Right+e.Wrong)))
		if err != nil {
			return err
		}
		z := gzip.NewWriter(f)
		_, err = z.Write([]byte(p.Client.Stdout))
		return errors.Join(err, z.Close(), f.Close())
	}
	return nil
}

// prepare finds a scenario's entry, or makes a new one when file or program changed.
func prepare(known map[string]*entry, file, fullbore string) (*entry, error) {
	s, err := lab.LoadScenario(file)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	for _, name := range []string{file, fullbore} {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		h.Write(data)
	}
	hash := hex.EncodeToString(h.Sum(nil))[:16]
	key := filepath.Base(file)
	if e := known[key]; e != nil && e.Hash == hash {
		return e, nil
	}
	known[key] = &entry{Name: s.Name, Hash: hash}
	return known[key], nil
}

func (e *entry) count(o lab.Outcome) {
	switch {
	case o.Unfit(), o.Cannot():
		e.Unfit++
	case o.Right():
		e.Right++
	default:
		e.Wrong++
		e.Reasons = append(e.Reasons, o.Reasons...)
	}
	for _, p := range o.Plays {
		if len(p.Void) > 0 {
			e.Voids++
		}
	}
	e.Date = time.Now().UTC().Format("2006-01-02")
}

// table is the page that is committed.
func table(files []string, known map[string]*entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Verdicts of the lab\n\n")
	fmt.Fprintf(&b, "Written by `make truth`: each scenario of `testdata/scenarios` is played live until three plays counted. A play counts\n")
	fmt.Fprintf(&b, "when the machine let the path be what it claims to be (the link's lateness p99 at most max(1 ms, 3 %% of the RTT), steal at\n")
	fmt.Fprintf(&b, "most 5 %%); others are void, and replayed at most %d times a round.\n\n", lab.MaxReplays)
	fmt.Fprintf(&b, "Commit %s, %s/%s, %d cores, %s.\n\n", commit(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), kernel())
	fmt.Fprintf(&b, "| scenario | verdict | right | wrong | unfit rounds | voids | date |\n|---|---|---|---|---|---|---|\n")
	var reasons []string
	sort.Strings(files)
	for _, f := range files {
		e := known[filepath.Base(f)]
		if e == nil {
			fmt.Fprintf(&b, "| %s | not played | | | | | |\n", filepath.Base(f))
			continue
		}
		fmt.Fprintf(&b, "| [%s](../%s) | %s | %d | %d | %d | %d | %s |\n", e.Name, f, e.verdict(), e.Right, e.Wrong, e.Unfit, e.Voids, e.Date)
		for _, r := range e.Reasons {
			reasons = append(reasons, fmt.Sprintf("- %s: %s", e.Name, r))
		}
	}
	if len(reasons) > 0 {
		fmt.Fprintf(&b, "\n## What was wrong\n\n%s\n", strings.Join(reasons, "\n"))
	}
	return b.String()
}

func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func kernel() string {
	data, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown kernel"
	}
	return "kernel " + strings.TrimSpace(string(data))
}
