// Command truth plays every lab scenario live until three fit plays counted, and
// writes what came out into a table: what was said against what is true, scenario by
// scenario, with the plays that did not count, the time and the traffic. It can be
// stopped at any moment and goes on where it was; a scenario or a program that changed is
// played again, and nothing else is. Linux, root.
package main

import (
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// wanted is how many fit plays a scenario needs (design §8).
const wanted = 3

// options are the command's.
type options struct {
	fullbore, dir, out, state string
	only                      string // patterns of the scenario files' names, separated by commas
	plays                     int    // fit plays of each
	jobs                      int    // scenarios at the same time
	keep                      string // folder for what the clients of fit plays printed
	judge                     string // folder of kept plays to judge again
	earlier                   string // programs whose plays count, too
	recorded                  string // a table of before, whose rows stand for what is not played again
	table                     bool   // write the table and play nothing
}

func main() {
	var o options
	flag.StringVar(&o.fullbore, "fullbore", "bin/fullbore", "program under test")
	flag.StringVar(&o.dir, "dir", "testdata/scenarios", "folder of scenario files")
	flag.StringVar(&o.out, "out", "docs/verdicts.md", "table to write")
	flag.StringVar(&o.state, "state", "bin/truth.json", "where to go on")
	flag.StringVar(&o.only, "only", "*", "play the scenarios whose name is like one of these (shell patterns, separated by commas)")
	flag.IntVar(&o.plays, "plays", wanted, "fit plays of each; fewer than 3 prove nothing")
	flag.IntVar(&o.jobs, "jobs", 1, "scenarios that are played at the same time: two cores that nobody else uses bear two")
	flag.StringVar(&o.keep, "keep", "", "folder for what the clients printed in fit plays (gzip)")
	flag.StringVar(&o.judge, "judge", "", "folder of kept plays of diagnoses (-keep): judge them by the rules of this tree, instead of playing them again")
	flag.StringVar(&o.earlier, "earlier", "", "earlier programs whose plays in the state count, too: COMMIT=FILE, separated by commas")
	flag.StringVar(&o.recorded, "recorded", "", "a table that was written before: its rows stand for scenarios that are not played again and have not changed")
	flag.BoolVar(&o.table, "table", false, "only write the table from what is known")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "truth:", err)
		os.Exit(1)
	}
}

// run plays what is to be played. The table always has all scenarios of the folder.
func run(ctx context.Context, o options, w io.Writer) error {
	all, err := scenarios(o.dir)
	if err != nil {
		return err
	}
	if o.fullbore, err = filepath.Abs(o.fullbore); err != nil {
		return err
	}
	s, err := openState(o.state, o.fullbore, o.earlier)
	if err != nil {
		return err
	}
	before := maps.Clone(s.entries)
	for _, f := range all {
		if err := s.prepare(f); err != nil {
			return err
		}
	}
	if o.judge != "" {
		if err := s.again(all, o.judge, before); err != nil {
			return err
		}
	}
	if o.recorded != "" {
		if err := s.record(o.recorded, all, unchangedSince); err != nil {
			return err
		}
	}
	where := fmt.Sprintf("Commit %s. %s", commit(o.out), machine())
	save := func() error { return errors.Join(s.save(), writeFile(o.out, []byte(page(all, s, where)))) }
	chosen, err := choose(all, o.only)
	if err != nil {
		return err
	}
	if o.table {
		chosen = nil
	}
	p := player{options: o, state: s, save: save, total: len(chosen), out: w}
	if err := p.all(ctx, chosen); err != nil {
		return err
	}
	if err := save(); err != nil {
		return err
	}
	t := sum(all, s)
	_, _ = fmt.Fprintln(w, t)
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted; run again to go on")
	case t.wrong > 0:
		return fmt.Errorf("%d scenarios are wrong: see %s", t.wrong, o.out)
	}
	return nil
}

// file is a scenario of the folder.
type file struct {
	path, key string // key: its name without ending
	scenario  *lab.Scenario
}

// scenarios reads a folder, in the order of the names.
func scenarios(dir string) ([]file, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.scenario"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no scenarios in %s", dir)
	}
	slices.Sort(paths)
	var out []file
	for _, p := range paths {
		s, err := lab.LoadScenario(p)
		if err != nil {
			return nil, err
		}
		out = append(out, file{path: p, key: strings.TrimSuffix(filepath.Base(p), ".scenario"), scenario: s})
	}
	return out, nil
}

// choose is those whose names are like one of the patterns.
func choose(all []file, patterns string) (out []file, err error) {
	for _, f := range all {
		for p := range strings.SplitSeq(patterns, ",") {
			like, err := filepath.Match(strings.TrimSpace(p), f.key)
			if err != nil {
				return nil, fmt.Errorf("-only %s: %w", p, err)
			}
			if like {
				out = append(out, f)
				break
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("-only %s: no scenario is called so", patterns)
	}
	return out, nil
}

// keep writes what the client of the round's fit play printed, so that rules can be tried
// on it again (`fullbore diagnose --replay`).
func keep(folder, key string, e *entry, o lab.Outcome) error {
	if folder == "" {
		return nil
	}
	for _, p := range o.Plays {
		if len(p.Void) > 0 || p.Client.Stdout == "" {
			continue
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		f, err := os.Create(filepath.Join(folder, fmt.Sprintf("%s-%d.json.gz", key, e.Right+e.Wrong)))
		if err != nil {
			return err
		}
		z := gzip.NewWriter(f)
		_, err = z.Write([]byte(p.Client.Stdout))
		return errors.Join(err, z.Close(), f.Close())
	}
	return nil
}
