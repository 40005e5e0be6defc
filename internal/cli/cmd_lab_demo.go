package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

const demoLong = `A tour for newcomers: five paths, each with one thing wrong with it or none, are built
on this machine one after another and diagnosed as if they were real. You see what the
path is, what its users would complain of, what fullbore says, how near that is to the
truth, and what there is to learn.

Nothing outside network namespaces of its own is touched, and no traffic leaves this
machine. All five take a bit more than a minute; Ctrl-C ends the tour and takes
everything down. Needs Linux and root.

Exit codes: 0 every path was named right, 1 one was not, 2 this machine was too busy to
keep a path true, 3 there is no such stop, 130 Ctrl-C.`

func newLabDemoCmd(e *env) *cobra.Command {
	list := false
	cmd := &cobra.Command{
		Use:     "demo [NAME…]",
		Short:   "A tour: five paths, what is wrong with them, and what fullbore says",
		Long:    demoLong,
		Example: "  sudo fullbore lab demo\n  sudo fullbore lab demo window hole\n  fullbore lab demo --list",
		RunE: func(cmd *cobra.Command, args []string) error {
			stops, err := lab.Demos(args...)
			if err != nil {
				return &UsageError{Msg: err.Error()}
			}
			if list {
				for _, d := range stops {
					fmt.Fprintf(e.Out, "%-8s %s\n", d.Name, d.Title)
				}
				return nil
			}
			ctx, stop := e.interruptible(cmd.Context())
			defer stop()
			return e.labDemo(ctx, stops)
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "only say which stops there are")
	return cmd
}

// demoView prints the tour: plain lines, with bold heads and a clock on a terminal.
type demoView struct {
	e     *env
	color bool
	width int
}

const (
	demoWidth  = 92
	demoIndent = "               " // of the words behind a label
)

func (e *env) newDemoView() *demoView {
	v := &demoView{e: e, color: e.Terminal && !e.NoColor, width: demoWidth}
	if e.Terminal && e.Size != nil {
		if w, _ := e.Size(); w > 50 {
			v.width = min(w, demoWidth)
		}
	}
	return v
}

func (v *demoView) paint(code, s string) string {
	if !v.color {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// row prints words behind a label, as many lines as they need.
func (v *demoView) row(label, text string) {
	lines := screen.Wrap(screen.Clean(text), v.width-len(demoIndent))
	for i, l := range lines {
		head := demoIndent
		if i == 0 {
			head = v.paint("2", fmt.Sprintf("  %-*s", len(demoIndent)-2, label))
		}
		fmt.Fprintf(v.e.Out, "%s%s\n", head, l)
	}
}

// labDemo plays the stops in their order.
func (e *env) labDemo(ctx context.Context, stops []lab.Demo) error {
	if err := lab.Check(); err != nil {
		return err
	}
	exe, err := e.Executable()
	if err != nil {
		return fmt.Errorf("lab demo: %w", err)
	}
	v := e.newDemoView()
	fmt.Fprintf(e.Out, "%s\n\n", v.paint("1", "fullbore lab demo: paths whose truth is known, and what a diagnosis says of them"))
	right, void := 0, 0
	for i, d := range stops {
		fmt.Fprintln(e.Out, v.paint("1", fmt.Sprintf("%d of %d  %s: %s", i+1, len(stops), d.Name, d.Title)))
		v.row("the path", d.Path)
		v.row("how it feels", d.Feels)
		p, wrong, err := v.play(ctx, d, exe)
		if err != nil {
			return err
		}
		v.said(d, &p)
		switch {
		case len(p.Void) > 0:
			void++
			v.row("but", "this machine was too busy to keep the path true ("+strings.Join(p.Void, "; ")+"): what was said counts for little.")
		case len(wrong) > 0:
			v.row("✗ wrong", strings.Join(wrong, "; "))
		default:
			right++
			v.row("✓ right", "this is what was built.")
		}
		v.row("learn", d.Learn)
		v.row("go on with", d.Try)
		fmt.Fprintln(e.Out)
	}
	fmt.Fprintf(e.Out, "%s\n", v.paint("1", fmt.Sprintf("%d of %d were named right.", right, len(stops))))
	fmt.Fprintln(e.Out, "Your own path: fullbore serve on the other machine, then fullbore diagnose HOST here.")
	switch {
	case right == len(stops):
		return nil
	case right+void == len(stops):
		return &codeError{code: exitInconclusive}
	}
	return &codeError{code: exitMissed}
}

// play diagnoses a stop's path; on a terminal a clock runs meanwhile.
func (v *demoView) play(ctx context.Context, d lab.Demo, exe string) (p lab.Play, wrong []string, err error) {
	command := slices.DeleteFunc(slices.Clone(d.Client), func(w string) bool { return w == "--json" || w == "--no-store" })
	v.row("measuring", strings.ReplaceAll(strings.Join(command, " "), "$SERVER", lab.FarIPv4))
	done := make(chan struct{})
	clock := make(chan struct{})
	began := time.Now()
	go func() { // ends when done is closed
		defer close(clock)
		if !v.e.Terminal || v.e.Dumb {
			<-done
			return
		}
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				fmt.Fprint(v.e.Out, "\r\x1b[K")
				return
			case <-tick.C:
				fmt.Fprintf(v.e.Out, "\r\x1b[K%s%s", demoIndent, v.paint("2", fmt.Sprintf("%.0f s …", time.Since(began).Seconds())))
			}
		}
	}()
	p, wrong, err = lab.Once(ctx, d.Scenario, lab.RunOptions{Fullbore: exe})
	close(done)
	<-clock
	var cut *result.Error
	if cause := context.Cause(ctx); err != nil && errors.As(cause, &cut) {
		err = cut // one line, and everything is taken down
	}
	return p, wrong, err
}

// said prints what the diagnosis said, and its figures beside those of the path.
func (v *demoView) said(d lab.Demo, p *lab.Play) {
	rep := &result.Report{}
	if err := json.Unmarshal([]byte(p.Client.Stdout), rep); err != nil || len(rep.Verdicts) == 0 {
		v.row("it says", fmt.Sprintf("nothing (exit code %d): %s", p.Client.Code, strings.TrimSpace(p.Client.Stderr)))
		return
	}
	v.row("it says", rep.Summary)
	const most = 4 // lines of evidence: the rest is in the diagnosis
	first := rep.Verdicts[0]
	for i, line := range first.Evidence {
		if i == most {
			break
		}
		v.row("", "· "+line)
	}
	for _, x := range rep.Verdicts[1:] {
		if slices.ContainsFunc(d.Expect.Diagnosis, func(e lab.DiagnosisExpect) bool { return e.Code == x.Code }) {
			v.row("and", x.Summary)
		}
	}
	for _, t := range d.Truth {
		if found, ok := valueOf(rep.Verdicts, t); ok {
			v.row("the truth", fmt.Sprintf("%s: %s; found: %s", t.What, quantity(t.Is, t.Unit), quantity(found, t.Unit)))
		}
	}
}

// valueOf finds a truth's counterpart among the verdicts.
func valueOf(vs []result.Verdict, t lab.DemoTruth) (float64, bool) {
	for _, x := range vs {
		if x.Code != t.Code {
			continue
		}
		for _, y := range x.Values {
			if y.Name == t.Value {
				return y.Value, true
			}
		}
	}
	return 0, false
}

// quantity spells a value with its unit.
func quantity(x float64, unit string) string {
	switch unit {
	case "bit/s":
		return units.BitRate(x + 0.5).String()
	case "s":
		return conclude.Time(x)
	case "bytes":
		return fmt.Sprintf("%.0f bytes", x)
	}
	return fmt.Sprintf("%.3g %s", x, unit)
}
