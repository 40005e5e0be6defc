// Command soak plays `fullbore soak` over a router of its own whose forwarding stops three times,
// and holds the outages that are reported against the times at which it did so: start and length
// must be right within 0.2 s. It must be root. Exit code 1 when one is not.
//
// Words after the flags go to fullbore soak: go run ./test/soak -time 15m -- --down -b 50M
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/result"
)

// tolerance is by how much a start or a length may be wrong, s.
const tolerance = 0.2

func main() {
	fullbore := flag.String("fullbore", "bin/fullbore", "the program")
	length := flag.Duration("time", 15*time.Minute, "how long, at least 1m")
	flag.Parse()
	right, err := play(*fullbore, *length, flag.Args())
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	case !right:
		os.Exit(1)
	}
}

// fate is an outage as it was made.
type fate struct{ start, length float64 } // start in s since the epoch

// outages are those that are made: when, as a share of the whole, and how long.
func outages(length time.Duration) []struct{ at, long time.Duration } {
	return []struct{ at, long time.Duration }{
		{length * 21 / 100, 1700 * time.Millisecond},
		{length * 43 / 100, 6350 * time.Millisecond},
		{length * 68 / 100, max(length/30, 2500*time.Millisecond)},
	}
}

func play(fullbore string, length time.Duration, words []string) (right bool, err error) {
	if err := lab.Check(); err != nil {
		return false, err
	}
	n, err := lab.NewRouted("cubic")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	ctx, cancel := context.WithTimeout(context.Background(), length+time.Minute)
	defer cancel()
	if _, err := n.Far.Start(lab.Command{Args: []string{fullbore, "serve", "--listen", lab.RoutedFarIPv4 + ":5201", "--no-ntttcp", "--quiet"}}); err != nil {
		return false, err
	}
	if err := listens(ctx, n); err != nil {
		return false, err
	}
	args := append([]string{fullbore, "soak", lab.RoutedFarIPv4, "-t", length.String(), "--json", "--no-store"}, words...)
	fmt.Println(strings.Join(args, " "))
	p, err := n.Near.Start(lab.Command{Args: args})
	if err != nil {
		return false, err
	}
	began := time.Now()
	var truth []fate
	for _, o := range outages(length) {
		if !wait(ctx, p, time.Until(began.Add(o.at))) {
			break
		}
		from, err := forward(n, "0")
		if err != nil {
			return false, err
		}
		wait(ctx, p, o.long)
		to, err := forward(n, "1")
		if err != nil {
			return false, err
		}
		truth = append(truth, fate{from, to - from})
	}
	code, err := p.Wait(ctx)
	if err != nil {
		return false, fmt.Errorf("%w\n%s", err, p.Stderr())
	}
	rep := &result.Report{}
	if err := json.Unmarshal([]byte(p.Stdout()), rep); err != nil || rep.Soak == nil {
		return false, fmt.Errorf("exit code %d and no document: %w\n%s", code, err, p.Stderr())
	}
	fmt.Println(rep.Summary)
	return compare(rep, truth), nil
}

// forward sets the router's forwarding and says when.
func forward(n *lab.Network, value string) (at float64, err error) {
	before := time.Now()
	err = n.Router.SetSysctl("net.ipv4.ip_forward", value)
	return float64(before.Add(time.Since(before)/2).UnixNano()) / 1e9, err
}

// wait waits; false when the program or ctx ended first.
func wait(ctx context.Context, p *lab.Process, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-p.Done():
	case <-ctx.Done():
	}
	return false
}

// listens waits until the server answers.
func listens(ctx context.Context, n *lab.Network) error {
	for {
		r, err := n.Far.Run(ctx, "ss", "-Hltn", "sport = :5201")
		if err != nil {
			return err
		}
		if strings.Contains(r.Stdout, ":5201") {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// compare prints truth and report side by side, as tables for docs/benchmarks.md.
func compare(rep *result.Report, truth []fate) bool {
	zero := float64(rep.Started.UnixNano()) / 1e9
	right := len(rep.Soak.Outages) == len(truth)
	fmt.Print("\n| outage | start, planted | reported | off | length, planted | reported | off | payload again after | direction | why |\n")
	fmt.Print("|---|---|---|---|---|---|---|---|---|---|\n")
	for i, o := range rep.Soak.Outages {
		if i >= len(truth) {
			fmt.Printf("| %d, **never planted** | | %.3f s | | | %.3f s | | %.3f s | %s | %s |\n", i+1, o.Start, o.Length, o.Stalled, o.Direction, o.Why)
			continue
		}
		t := truth[i]
		ds, dl := o.Start-(t.start-zero), o.Length-t.length
		ok := math.Abs(ds) <= tolerance && math.Abs(dl) <= tolerance && !o.Open
		right = right && ok
		word := ""
		if !ok {
			word = ", **wrong**"
		}
		fmt.Printf("| %d%s | %.3f s | %.3f s | %+.3f s | %.3f s | %.3f s | %+.3f s | %.3f s | %s | %s |\n",
			i+1, word, t.start-zero, o.Start, ds, t.length, o.Length, dl, o.Stalled, o.Direction, o.Why)
	}
	for i := len(rep.Soak.Outages); i < len(truth); i++ {
		fmt.Printf("| %d, **not reported** | %.3f s | | | %.3f s | | | | | |\n", i+1, truth[i].start-zero, truth[i].length)
	}
	fmt.Print("\n| direction | median | availability | shifts |\n|---|---|---|---|\n")
	for _, w := range rep.Soak.Ways {
		fmt.Printf("| %s | %s | %s | %d |\n", w.Direction, orUnknown(w.Figures.Median, "%.0f bit/s", 1), orUnknown(w.Figures.Availability, "%.2f %%", 100), len(w.Shifts))
	}
	if m := rep.Soak.Machine; m != nil {
		fmt.Printf("\nMemory of the program: %s over the run. Processor: %s of a core", orUnknown(m.Growth, "%+.1f %%", 100), orUnknown(m.CPU, "%.1f %%", 1))
		if m.MinMHz != nil && m.MaxMHz != nil {
			fmt.Printf(", clock %d to %d MHz", *m.MinMHz, *m.MaxMHz)
		}
		if m.MaxCelsius != nil {
			fmt.Printf(", at most %.0f °C", *m.MaxCelsius)
		}
		fmt.Println(".")
	}
	return right
}

// orUnknown prints v times by, or that it is not known.
func orUnknown(v *float64, format string, by float64) string {
	if v == nil {
		return "not known"
	}
	return fmt.Sprintf(format, *v*by)
}
