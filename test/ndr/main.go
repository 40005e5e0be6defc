// Command ndr plays `fullbore udpmax` over emulated paths that a seed draws, and writes for each
// what was found against what is true: does the search find a link's and a token bucket's rate
// within its width, and is a host's own limit told apart from a path's? The seed is the path's:
// rate, round trip, queue or bucket, datagrams' size and the greatest load tried are drawn from
// it, so that a search begins elsewhere and halves at other loads each time; the search itself
// has nothing random. Linux, root, and a machine that nobody else uses.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/result"
)

// options are the command's.
type options struct {
	fullbore, out, kinds string
	first, seeds         int
}

func main() {
	var o options
	flag.StringVar(&o.fullbore, "fullbore", "bin/fullbore", "program under test")
	flag.StringVar(&o.out, "out", "", "page to write when all was played (default: only print it)")
	flag.StringVar(&o.kinds, "kinds", strings.Join(kinds(), ","), "kinds of paths, separated by commas")
	flag.IntVar(&o.first, "first", 1, "first seed")
	flag.IntVar(&o.seeds, "seeds", 10, "how many seeds of each kind")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ndr:", err)
		os.Exit(1)
	}
}

// run plays the cases, one at a time.
func run(ctx context.Context, o options, w io.Writer) error {
	program, err := filepath.Abs(o.fullbore)
	if err != nil {
		return err
	}
	var cases []pathCase
	for kind := range strings.SplitSeq(o.kinds, ",") {
		for i := range o.seeds {
			c, err := draw(strings.TrimSpace(kind), uint64(o.first+i))
			if err != nil {
				return err
			}
			cases = append(cases, c)
		}
	}
	dir, err := os.MkdirTemp("", "fullbore-ndr")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	began := time.Now()
	var rows []row
	for i, c := range cases {
		r := play(ctx, program, dir, c)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		rows = append(rows, r)
		if _, err := fmt.Fprintf(w, "[%d/%d] %s\n", i+1, len(cases), r.line()); err != nil {
			return err
		}
	}
	text := page(rows, time.Since(began), where())
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	if o.out != "" {
		if err := os.WriteFile(o.out, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if n := misses(rows); n > 0 {
		return fmt.Errorf("%d of %d searches were wrong", n, len(rows))
	}
	return nil
}

// play plays a case and reads what was said.
func play(ctx context.Context, program, dir string, c pathCase) row {
	r := row{pathCase: c}
	file := filepath.Join(dir, fmt.Sprintf("%s-%d.scenario", c.kind, c.seed))
	if err := os.WriteFile(file, []byte(c.scenario()), 0o600); err != nil {
		r.why = err.Error()
		return r
	}
	outcome, err := lab.RunFile(ctx, file, lab.RunOptions{Fullbore: program, Replays: replays}, io.Discard)
	switch {
	case err != nil:
		r.why = err.Error()
		return r
	case outcome.Unfit() || outcome.Cannot() || len(outcome.Plays) == 0:
		r.unfit, r.why = true, strings.Join(outcome.Reasons, "; ")
		return r
	}
	r.voids = len(outcome.Plays) - 1
	r.read(outcome.Plays[len(outcome.Plays)-1].Client.Stdout)
	return r
}

// replays is how often a play that did not count is repeated.
const replays = 3

// read takes the client's document.
func (r *row) read(stdout string) {
	var doc struct {
		Findings []result.Finding `json:"findings"`
	}
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil || len(doc.Findings) != 1 {
		r.why = fmt.Sprintf("one finding was expected, %d are there (%v)", len(doc.Findings), err)
		return
	}
	f := doc.Findings[0]
	r.flags = f.Flags
	for _, v := range f.Values {
		switch v.Name {
		case "lower":
			r.lower = v.Value
		case "upper":
			r.upper = v.Value
		case "load":
			r.load = v.Value
		case "width":
			r.width = v.Value
		case "trials":
			r.trials = int(v.Value)
		case "time":
			r.seconds = v.Value
		}
	}
	r.why = r.fault()
}

// where says what was played, and on what.
func where() string {
	commit := "unknown"
	if head, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output(); err == nil {
		commit = strings.TrimSpace(string(head))
	}
	release := ""
	if data, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		release = ", kernel " + strings.TrimSpace(string(data))
	}
	return fmt.Sprintf("Commit %s, %s/%s, %d processors%s, %s.", commit, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), release, time.Now().UTC().Format(time.DateOnly))
}
