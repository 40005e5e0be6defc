package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// capacityOptions are the words of `fullbore capacity`.
type capacityOptions struct {
	methodOptions
	udpSteps
	length  time.Duration
	sub     time.Duration
	fast    bool
	bimodal int
	bounded bool // by a word of the user's
}

const capacityLong = `Measure the IP-layer capacity towards HOST and back (M-CAP: RFC 9097, TR-471): the
sender's rate follows the receiver's feedback, 20 times a second, up while little is
lost and queues stay short, down when not. It suits paths that others use, and
wireless ones, where trials at fixed rates (udpmax) do not repeat.

The answer is the greatest rate of a 1-s sub-interval with its loss, and what was
sustained over the last half. --bimodal 3 tells the first three sub-intervals and the
rest apart, for lines that begin with a burst ("turbo").

HOST should be a fullbore. An iperf3 server cannot be steered with: short tests at
doubling rates take the place, and the answer says so.

Traffic: 10 s in each direction at up to the path's rate (1 Gbit/s: about 1 GB).
Bound it with -t, --max-rate and --max-bytes.`

const capacityExample = `  fullbore capacity self --max-rate 200M -t 5
  fullbore capacity 192.0.2.2
  fullbore capacity 192.0.2.2 --down --fast -t 20
  fullbore capacity 192.0.2.2 --bimodal 3 --json
  fullbore capacity 192.0.2.2 --expect '>= 950M'`

func newCapacityCmd(e *env) *cobra.Command {
	o := &capacityOptions{}
	cmd := &cobra.Command{
		Use:     "capacity HOST",
		Short:   "UDP capacity with a rate that follows the receiver's feedback",
		Long:    capacityLong,
		Example: capacityExample,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.runCapacity(cmd.Context(), o, args[0])
		},
	}
	o.methodOptions.addFlags(cmd)
	o.udpSteps.addFlags(cmd)
	f := cmd.Flags()
	f.VarP(durationFlag{&o.length}, "time", "t", "length of each direction, 2 to 60 s; less than 5 s is marked (default 10s)")
	f.Var(durationFlag{&o.sub}, "sub-interval", "length of a sub-interval (default 1s)")
	f.BoolVar(&o.fast, "fast", false, "climb by doubling (type C of the rate search)")
	f.IntVar(&o.bimodal, "bimodal", 0, "tell the maxima of so many first sub-intervals and of the rest apart")
	return cmd
}

func (o *capacityOptions) method(ctx context.Context, host string) (m method.CapacityTest, from string, err error) {
	switch {
	case o.both:
		return m, "", usagef("--both: only one direction can be steered at a time")
	case o.streams > 1:
		return m, "", usagef("-P %d: one stream is steered", o.streams)
	case o.length != 0 && (o.length < 2*time.Second || o.length > time.Minute):
		return m, "", usagef("-t %s: must be 2 s to 60 s", units.FormatDuration(o.length))
	case o.sub != 0 && (o.sub < plan.MinInterval || o.sub > 10*time.Second):
		return m, "", usagef("--sub-interval %s: must be 0.1 s to 10 s", units.FormatDuration(o.sub))
	case o.bimodal < 0:
		return m, "", usagef("--bimodal %d: must not be negative", o.bimodal)
	}
	if err := o.check(host); err != nil {
		return m, "", err
	}
	m = method.CapacityTest{
		Directions: o.directions(), TypeC: o.fast, Duration: o.length, Sub: o.sub, Bimodal: o.bimodal, UDP: o.udpSteps.plan(),
	}
	m.Max, o.bounded, from = o.most(ctx, &o.methodOptions, host)
	return m, from, nil
}

func (e *env) runCapacity(ctx context.Context, o *capacityOptions, host string) error {
	m, from, err := o.method(ctx, host)
	if err != nil {
		return err
	}
	volume := "Traffic: as much as the path carries for " + units.FormatDuration(defaultTo(o.length, 10*time.Second)) + " in each direction."
	if m.Max > 0 {
		volume += fmt.Sprintf(" It never goes above %s of payload (%s).", units.BitRate(m.Max), from)
	}
	return e.runMethod(ctx, &o.methodOptions, methodJob{
		kind: "capacity", host: host, head: fmt.Sprintf("IP-layer capacity to %s, steered by the receiver's feedback", host), volume: volume,
		method: m, possible: m.Possible(), stops: true, ownRate: true,
		fill: func(rep *result.Report, h []method.Done) {
			fillCapacity(rep, m, h)
			rep.Next = o.next(host, m, rep)
			rep.Notices = append(rep.Notices, cutNotice(o.maxBytes, h)...)
		},
		final: finalFindings,
		figures: map[string]figureKind{
			"rate": rateKind, "sustained": rateKind, "loss": shareKind,
		},
		figure:   "rate",
		measured: leastFindings(capacityFigures()),
		excused:  excuse(capacityFigures()),
		answered: func(rep *result.Report) bool { return len(rep.Findings) > 0 },
	})
}

// capacityFigures are the values that --expect's words mean.
func capacityFigures() map[string]string {
	return map[string]string{"rate": "maximum_l3", "sustained": "sustained_l3", "loss": "loss"}
}

// next is what is worth typing then.
func (o *capacityOptions) next(host string, m method.CapacityTest, rep *result.Report) *result.Step {
	plain, top := false, false
	for i := range rep.Findings {
		f := &rep.Findings[i]
		d := result.Direction(f.Direction)
		switch {
		case slices.Contains(f.Flags, "sender_limited"):
			return fitness(d.Sender(), host)
		case slices.Contains(f.Flags, "host_limited"):
			return fitness(d.Receiver(), host)
		}
		plain, top = plain || slices.Contains(f.Flags, "not_steered"), top || slices.Contains(f.Flags, "at_max_load")
	}
	switch {
	case len(rep.Findings) == 0:
		return nil
	case top && m.Max > 0 && o.bounded:
		return o.step(host, "all that was to be tried went through: where does the path give?", "capacity", "HOST", "--max-rate", units.BitRate(2*m.Max).Exact())
	case plain && host != "self":
		return &result.Step{Command: "fullbore serve", Why: "at " + host + ", in place of the iperf3 there: then the rate follows the path, and who lost is known"}
	}
	return o.step(host, "that is how much: what does a load do to delay?", "load", "HOST")
}

func defaultTo(d, or time.Duration) time.Duration {
	if d == 0 {
		return or
	}
	return d
}

// fillCapacity makes the report.
func fillCapacity(rep *result.Report, m method.CapacityTest, history []method.Done) {
	var sentences []string
	plain := false
	for _, c := range m.Answer(history) {
		for _, s := range c.Subs {
			rep.Curve = append(rep.Curve, result.Point{X: s.Start, Y: s.L3, Label: "s, " + string(c.Direction)})
		}
		f := capacityFinding(c, m.Max)
		rep.Findings = append(rep.Findings, f)
		sentences = append(sentences, f.Summary)
		plain = plain || !c.Steered
	}
	if m.Duration > 0 && m.Duration < capacityLeast && !plain {
		rep.Notices = append(rep.Notices, result.Notice{
			Code: "shortened", End: result.Client, Level: result.Info,
			Text: fmt.Sprintf("a test of %s: the standard asks for 5 s at least, since the rate has to climb first", units.FormatDuration(m.Duration)),
		})
	}
	if plain {
		rep.Notices = append(rep.Notices, result.Notice{
			Code: "not-steered", End: result.Server, Level: result.Warn,
			Text: "the other end cannot be steered with (it is no fullbore, or an older one): short tests at doubling rates stand in for the method, so the maximum is that of a second at a fixed rate",
		})
	}
	rep.Notices = append(rep.Notices, ownerNotice(history)...)
	rep.Summary = strings.Join(sentences, " ")
	if rep.Summary == "" {
		rep.Summary = "The test ended before anything was measured."
	}
}

// capacityLeast is the shortest test of RFC 9097's practice (TR-471).
const capacityLeast = 5 * time.Second

// nearMost is the share of the greatest rate from which on that, not the path, was the limit.
const nearMost = 0.97

// capacityFinding words one direction; most is the greatest payload rate that was allowed, 0 = none.
func capacityFinding(c method.CapacityFound, most float64) result.Finding {
	f := result.Finding{Name: "capacity", Direction: string(c.Direction), Values: []result.Value{}}
	add := func(name string, v float64, unit string) {
		f.Values = append(f.Values, result.Value{Name: name, Value: v, Unit: unit})
	}
	best := c.Max
	add("maximum_l3", best.L3, "bit/s")
	add("sustained_l3", c.Sustained, "bit/s")
	add("loss", best.Ratio(), "ratio")
	add("maximum_l7", best.L3*c.L7, "bit/s")
	add("maximum_l2", best.L3*c.L2, "bit/s")
	add("maximum_l1", best.L3*c.L1, "bit/s")
	add("maximum_at", best.Start, "s")
	add("sub_interval", best.Stop-best.Start, "s")
	text := fmt.Sprintf("%s: %s at the IP layer in the best %s (%.2g %% lost), %s sustained.", titleCase(string(c.Direction)),
		units.BitRate(best.L3), secondsText(best.Stop-best.Start), 100*best.Ratio(), units.BitRate(c.Sustained))
	if best.Variation != nil {
		add("delay_variation_max", *best.Variation, "s")
	}
	if q := best.Delay; q != nil {
		add("delay_variation_min", q.Min, "s")
		add("delay_variation_mean", q.Mean, "s")
		add("reordered_then", float64(best.Reordered), "")
		add("duplicates_then", float64(best.Duplicates), "")
	}
	if c.Run != nil {
		for _, p := range c.Run.Probes {
			if p.Kind == "udp-echo" && p.RoundTrip != nil {
				add("round_trip_min", p.RoundTrip.Min, "s")
				add("round_trip_mean", p.RoundTrip.Mean, "s")
				add("round_trip_max", p.RoundTrip.Max, "s")
			}
		}
		if s := c.Run.Sum(result.Direction(c.Direction)); s != nil && s.UDP != nil && s.UDP.Received != nil {
			add("reordered", float64(s.UDP.Received.Reordered), "")
			add("duplicates", float64(s.UDP.Received.Duplicates), "")
		}
	}
	if c.First != nil {
		add("first_l3", c.First.L3, "bit/s")
		add("rest_l3", c.Rest.L3, "bit/s")
		text += fmt.Sprintf(" Of the first sub-intervals the best had %s, of the rest %s.", units.BitRate(c.First.L3), units.BitRate(c.Rest.L3))
	}
	switch {
	case c.HostLimited && c.Sender:
		f.Flags = append(f.Flags, "host_limited", "sender_limited")
		text += " The sending end was the limit, it did not send as fast as it should: the path may carry more."
	case c.HostLimited:
		f.Flags = append(f.Flags, "host_limited")
		text += " The receiving end was the limit, its socket dropped what arrived: the path may carry more."
	}
	if most > 0 && best.L3*c.L7 >= nearMost*most {
		f.Flags = append(f.Flags, "at_max_load")
		text += " That is the most that was to be tried: the path may carry more."
	}
	if !c.Steered {
		f.Flags = append(f.Flags, "not_steered")
	}
	f.Summary = text
	return f
}

func secondsText(s float64) string {
	return units.FormatDuration(time.Duration(s * float64(time.Second)).Round(10 * time.Millisecond))
}
