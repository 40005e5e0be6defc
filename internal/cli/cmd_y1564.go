package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/activation"
	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// activateOptions are the words of `fullbore y1564`.
type activateOptions struct {
	methodOptions
	quick, check, goOn bool
}

const activateLong = `Service activation test by ITU-T Y.1564. FILE names the services:

  profile: y1564            # or mef (MEF 48): ftd is the mean delay, fdv the change from frame
                            # to frame, and fd: 15ms limits the delay's 99.9th percentile
  step: 10s                 # of each step, 1s … 60s
  phase2: 15m               # all services together; 2h, 24h
  margin: 1%                # above CIR + EIR in the policing step
  services:
    - name: voice
      cir: 2M               # information rates: Ethernet frames with check
      eir: 1M
      frame: 200            # bytes of a frame, 90 (IPv6 110) … 9018 (default 1518); or
                            # emix: bbeg, by letters of Y.1564, or 128 128 1024 1518
      cbs: 30kB             # burst sizes, tested where they are given
      ebs: 20kB
      dscp: ef
      policing: true
      direction: both       # up, down
      limits: {flr: 0.1%, ftd: 10ms, fdv: 2ms, avail: 99.99%}

Phase 1, each service alone: 25, 50, 75 and 100 % of CIR, then CIR + EIR, then the policing
step above that; the first failed step ends it for the service (--go-on). Bursts go at the
host's line rate, half as often as CIR (and EIR) would fill their buckets: of CBS nothing may
be lost beyond FLR, of CBS + EBS not the committed part. An EMIX is a stream for each size,
all at the same time, not a sequence in one stream. Phase 2: all services together at CIR,
judged by loss, delay, variation and availability (a second is severely errored above 50 %
loss; ten in a row begin unavailability, ten others end it).

The steps are those of colour-blind services: frames are sent with the one DSCP that the
file names, and what the network marks is not judged. Which mark is yellow (DSCP, or the
DEI bit of a VLAN tag, which a host's network card keeps to itself) is a matter of each
contract, and the excess is judged by how much of it arrives all the same.

What the receiving host's own socket dropped fails no service: such a step is inconclusive,
unless what the path lost for sure is too much by itself.

FLR is lost over sent frames. FDV is the 99.9th percentile of delay less the least. FTD is
one-way where the clocks can be related closely enough, else half of the round trip of small
packets in the service's class; which, is said. Time stamps are made in software.

HOST runs "fullbore serve"; with an iperf3 server delay is not known (those limits make a
step inconclusive), and phase 2 needs one service only, of one frame size. HOST may be "self".

Traffic: what the services' rates make: --dry-run says how much. --quick: steps of half a
second and phase 2 of 2 s (marked in the report). Exit codes: 0 passed, 1 failed, 2 inconclusive.`

const activateExample = `  fullbore y1564 services.yaml 192.0.2.2
  fullbore y1564 services.yaml --check-config
  fullbore y1564 services.yaml self --quick
  fullbore y1564 services.yaml 192.0.2.2 --json > activation.json`

func newY1564Cmd(e *env) *cobra.Command {
	o := &activateOptions{}
	cmd := &cobra.Command{
		Use:     "y1564 FILE HOST",
		Short:   "Service activation by ITU-T Y.1564: CIR, EIR, policing, all together",
		Long:    activateLong,
		Example: activateExample,
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) != o.check {
				return usagef("y1564: name the file and the host (or the file and --check-config)")
			}
			return e.runY1564(cmd.Context(), o, args)
		},
	}
	f := cmd.Flags()
	o.addFlags(cmd)
	f.BoolVar(&o.quick, "quick", false, "steps of half a second, phase 2 of 2 s")
	f.BoolVar(&o.check, "check-config", false, "only read the file: exit code 0, or 3 with its faults")
	f.BoolVar(&o.goOn, "go-on", false, "go on with a service's steps after one failed")
	return cmd
}

func (e *env) runY1564(ctx context.Context, o *activateOptions, args []string) error {
	data, err := os.ReadFile(args[0])
	if err != nil {
		return usagef("y1564: %v", err)
	}
	a, err := activation.Parse(filepath.Base(args[0]), data)
	if err != nil {
		lines := strings.Split(err.Error(), "\n")
		return &UsageError{Msg: lines[0], Hints: lines[1:]}
	}
	if o.check {
		fmt.Fprintf(e.Out, "%s: %d services, no faults\n", filepath.Base(args[0]), len(a.Services))
		return nil
	}
	a.GoOn = a.GoOn || o.goOn
	if err := o.fit(ctx, &a, args[1]); err != nil {
		return err
	}
	if o.quick {
		a.Step, a.Phase2, a.Short = 500*time.Millisecond, 2*time.Second, true
	}
	steps, moves := a.All()
	failed := false
	err = e.runMethod(ctx, &o.methodOptions, methodJob{
		kind: "y1564", host: args[1], method: a, possible: steps, stops: true,
		head:     fmt.Sprintf("Activation of %d services to %s by Y.1564", len(a.Services), args[1]),
		volume:   fmt.Sprintf("Traffic: %s in all.", units.ByteSize(moves)),
		complete: func(p plan.Plan) plan.Plan { return p },
		fill: func(rep *result.Report, history []method.Done) {
			rep.Activation = a.Answer(history)
			for i := range history {
				for _, run := range history[i].With {
					if run != nil {
						rep.Runs = append(rep.Runs, run)
					}
				}
			}
			failed = fillActivation(rep, &a)
			rep.Notices = append(rep.Notices, ownerNotice(history)...)
			rep.Next = o.next(args[0], args[1], rep, failed)
		},
		final:    func(v *stageView, rep *result.Report) { v.activationTable(rep.Activation) },
		answered: judgedItems,
	})
	if err == nil && failed {
		return &codeError{code: exitMissed}
	}
	return err
}

// fit tells the services by which protocol HOST is reached: frames are what the file says, whatever their headers take.
func (o *activateOptions) fit(ctx context.Context, a *method.Activation, host string) error {
	if host == "self" || pathTo(ctx, host, o.family()).family != 6 {
		return nil
	}
	for i := range a.Services {
		s := &a.Services[i]
		s.IPv6 = true
		if least := slices.Min(append(slices.Clone(s.Mix), s.Frame)); least < method.LeastFrame(true) {
			return usagef("y1564: service %s: frames of %d bytes: over IPv6 they have at least %d (the datagrams carry 44 bytes of figures)", s.Name, least, method.LeastFrame(true))
		}
	}
	return nil
}

// next is what is worth typing then.
func (o *activateOptions) next(file, host string, rep *result.Report, failed bool) *result.Step {
	steps := rep.Activation.Steps
	dropped := slices.IndexFunc(steps, func(t result.ActivateStep) bool { return t.Dropped != nil && t.Conformed != result.Pass })
	short := slices.IndexFunc(steps, func(t result.ActivateStep) bool { return method.HostTested(&t) })
	switch {
	case len(steps) == 0:
		return nil
	case dropped >= 0:
		return fitness(steps[dropped].Way.Receiver(), host)
	case failed:
		return o.step(host, "what does the path carry without loss, whatever the contract says?", "udpmax", "HOST", "--preset", "quick")
	case short >= 0:
		return fitness(steps[short].Way.Sender(), host)
	case rep.Activation.Basis == "" && !judgedItems(rep):
		return &result.Step{Command: "fullbore serve", Why: "at " + host + ", in place of the iperf3 there: then delay is known, and several services go at the same time"}
	case o.quick:
		return o.step(host, "the file's own times: figures for a record", "y1564", file, "HOST")
	}
	return nil
}

// fillActivation makes an item of each service and the sentence; failed = one did not pass.
func fillActivation(rep *result.Report, a *method.Activation) (failed bool) {
	var parts []string
	for _, s := range a.Services {
		item := result.Item{ID: s.Name, Result: result.Inconclusive, Reasons: []string{}}
		last := 0
		for i := range rep.Activation.Steps {
			t := &rep.Activation.Steps[i]
			if t.Service != s.Name {
				continue
			}
			if last == 0 {
				item.Result = result.Pass
			}
			last = t.Phase
			if t.Conformed == result.Fail || t.Conformed == result.Inconclusive && item.Result == result.Pass {
				item.Result = t.Conformed
			}
			for _, why := range t.Why {
				item.Reasons = append(item.Reasons, fmt.Sprintf("%s, %s: %s", t.Step, t.Way, why))
			}
		}
		if last == 1 && item.Result == result.Pass {
			item.Result = result.Inconclusive
			item.Reasons = append(item.Reasons, "phase 2 was not made")
		}
		failed = failed || item.Result == result.Fail
		rep.Items = append(rep.Items, item)
		parts = append(parts, s.Name+" "+strings.ToUpper(item.Result))
	}
	rep.Summary = "Service activation (Y.1564): " + strings.Join(parts, ", ") + "."
	switch rep.Activation.Basis {
	case "half-round-trip":
		rep.Notices = append(rep.Notices, result.Notice{Code: "ftd-by-round-trip", Level: result.Info, Text: "frame transfer delay is half of the round trip of small packets in the service's class: the clocks could not be related closely enough"})
	case "":
		rep.Notices = append(rep.Notices, result.Notice{Code: "ftd-unknown", End: result.Server, Level: result.Warn, Text: "frame transfer delay is not known: the other end answers no probes (fullbore serve there would)"})
	}
	if rep.Activation.Short {
		rep.Notices = append(rep.Notices, result.Notice{Code: "short-tests", Level: result.Info, Text: "a trial: steps of half a second and a second phase of 2 s are no service activation"})
	}
	return failed
}

// activationTable prints a line for each step and direction.
func (v *stageView) activationTable(a *result.Activation) {
	row := func(cells ...string) {
		text := "  " + screen.Left(cells[0], 24)
		for _, c := range cells[1:] {
			text += screen.Right(c, 13)
		}
		fmt.Fprintln(v.e.Out, strings.TrimRight(text, " "))
	}
	row("", "offered", "received", "FLR", "FTD", "FDV", "")
	for i := range a.Steps {
		t := &a.Steps[i]
		cells := []string{fmt.Sprintf("%s %s %s", t.Service, t.Step, t.Way), units.BitRate(t.Offered).String(), screen.Unknown, screen.Unknown, screen.Unknown, screen.Unknown, t.Conformed}
		if t.IR != nil {
			cells[2] = units.BitRate(*t.IR).String()
		}
		if t.FLR != nil {
			cells[3] = fmt.Sprintf("%.3g %%", 100**t.FLR)
		}
		if t.FTD != nil {
			cells[4] = conclude.Time(*t.FTD)
		}
		if t.FDV != nil {
			cells[5] = conclude.Time(*t.FDV)
		}
		row(cells...)
		for _, why := range t.Why {
			v.line("      ", why)
		}
	}
	v.line("  ", "Rates are information rates: Ethernet frames with check, without preamble and gap.")
	if a.Floor != nil {
		v.line("  ", fmt.Sprintf("Time stamps are made in software. The senders kept to their times within %s (99.9 %%): variation that is not above that may be the hosts' own.", conclude.Time(*a.Floor)))
	}
}
