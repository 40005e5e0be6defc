package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// rfc2544Options are the words of `fullbore rfc2544`.
type rfc2544Options struct {
	methodOptions
	udpSteps
	isolated bool
	quick    bool
	link     int64
	sizes    []int
	sized    bool  // sizes are the user's
	left     []int // of the standard's sizes, those that no datagram of ours fits into
	parts    []string
	verify   int
}

const rfc2544Long = `The tests of RFC 2544 (M-2544) that two hosts can do, for each frame size:
throughput without loss, the loss curve from the full link down, back-to-back bursts
with RFC 9004's buffer times, delay at the throughput, recovery after an overload
(known to 0.2 s, with fullbore serve only).

They flood the path on purpose. RFC 6815 forbids them on networks that others use:
say --isolated to confirm that this one is yours alone.

A host is no tester. Its sender's and receiver's own limits are found out and named
(host-limited), but at small frames they come long before those of a link: read such
rows as the hosts', not the path's. Bursts are paced by software to 50 µs, and stamps
are the kernel's.

Frame sizes count the Ethernet header and check sequence; the share of a link counts
preamble and gap, too. Latency is that of one stream of 120 s at the throughput, with time
stamps in every frame and small packets beside it, in place of 20 streams with one tagged
frame each.

Traffic: with the full times hours at the link's speed (60-s trials, 50 bursts a
size); --quick takes about 1 to 2 minutes a size and direction. Bound it with
--sizes, --parts, --max-bytes.`

const rfc2544Example = `  fullbore rfc2544 192.0.2.2 --isolated --quick
  fullbore rfc2544 192.0.2.2 --isolated --sizes 64,512,1518 --up
  fullbore rfc2544 192.0.2.2 --isolated --parts throughput,loss --link 1G --json
  fullbore rfc2544 self --isolated --quick --sizes 1518 --up --link 50M`

func newRFC2544Cmd(e *env) *cobra.Command {
	o := &rfc2544Options{}
	cmd := &cobra.Command{
		Use:     "rfc2544 HOST --isolated",
		Short:   "Throughput, loss curve, bursts, delay and recovery by frame size",
		Long:    rfc2544Long,
		Example: rfc2544Example,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.sized = cmd.Flags().Changed("sizes")
			return e.runRFC2544(cmd.Context(), o, args[0])
		},
	}
	o.methodOptions.addFlags(cmd)
	o.udpSteps.addFlags(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.isolated, "isolated", false, "the path is nobody else's: these tests flood it (RFC 6815)")
	f.BoolVar(&o.quick, "quick", false, "seconds in place of minutes, 3 bursts in place of 50; marked in the result")
	f.Var(rateFlag{&o.link}, "link", "the link's speed on the wire (default: that of the interface)")
	f.IntSliceVar(&o.sizes, "sizes", method.FrameSizes(), "frame sizes, bytes")
	f.IntVar(&o.verify, "verify", 0, verifyHelp)
	f.StringSliceVar(&o.parts, "parts", nil, "only these: "+strings.Join(method.RFC2544Parts(), ", ")+" (throughput is always done)")
	return cmd
}

func (o *rfc2544Options) method(ctx context.Context, host string) (m method.RFC2544, err error) {
	switch {
	case !o.isolated:
		return m, &UsageError{
			Msg:   "rfc2544 floods the path: say --isolated where nobody else uses it",
			Hints: []string{"on a network in use: fullbore udpmax " + host + ", or fullbore capacity " + host},
		}
	case o.both, o.streams > 1, o.size != 0:
		return m, usagef("rfc2544 has one stream a direction and sizes of frames (--sizes): --both, -P and -l do not go with it")
	}
	if err := checkVerify(o.verify); err != nil {
		return m, err
	}
	for _, p := range o.parts {
		if !slices.Contains(method.RFC2544Parts(), p) {
			return m, usagef("--parts %q: there are %s", p, strings.Join(method.RFC2544Parts(), ", "))
		}
	}
	w := path{family: 4}
	if host != "self" {
		w = pathTo(ctx, host, o.family())
	}
	if o.link == 0 {
		o.link = w.speed
	}
	if o.link <= 0 {
		return m, &UsageError{Msg: "the link's speed is not known", Hints: []string{"give it: --link 1G"}}
	}
	if !o.sized {
		fits := func(frame int) bool { _, ok := method.FramePayload(frame, w.family == 6); return ok }
		o.left = slices.DeleteFunc(slices.Clone(o.sizes), fits)
		o.sizes = slices.DeleteFunc(slices.Clone(o.sizes), func(frame int) bool { return !fits(frame) })
	}
	for _, s := range o.sizes {
		if _, ok := method.FramePayload(s, w.family == 6); !ok || s > 9216 {
			return m, usagef("--sizes %d: a frame of a datagram of ours has %d to 9216 bytes over IPv%d", s, leastFrame(w.family == 6), w.family)
		}
	}
	if err := o.check(host); err != nil {
		return m, err
	}
	m = method.RFC2544{
		Sizes: o.sizes, IPv6: w.family == 6, Directions: o.directions(), Link: float64(o.link), Quick: o.quick, Parts: o.parts, Verify: o.verify, UDP: o.udpSteps.plan(),
	}
	if o.maxRate > 0 && o.maxRate < o.link {
		m.Link = float64(o.maxRate)
	}
	return m, nil
}

func leastFrame(ipv6 bool) int {
	for s := 60; ; s++ {
		if _, ok := method.FramePayload(s, ipv6); ok {
			return s
		}
	}
}

func (e *env) runRFC2544(ctx context.Context, o *rfc2544Options, host string) error {
	m, err := o.method(ctx, host)
	if err != nil {
		return err
	}
	how := "full times: hours"
	if o.quick {
		how = "quick"
	}
	return e.runMethod(ctx, &o.methodOptions, methodJob{
		kind: "rfc2544", host: host,
		head:   fmt.Sprintf("RFC 2544 tests to %s, %d frame sizes, link %s (%s)", host, len(m.Sizes), units.BitRate(m.Link), how),
		volume: fmt.Sprintf("Traffic: up to %s for most of the time. A host is no tester: at small frames its own limits come first, and are named.", units.BitRate(m.Link)),
		method: m, possible: m.Possible(), stops: true, ownRate: true, lasts: o.lasts(m),
		fill: func(rep *result.Report, h []method.Done) {
			fillRFC2544(rep, m, h)
			rep.Next = o.next(host, m, rep)
			if len(o.left) > 0 {
				rep.Notices = append(rep.Notices, result.Notice{
					Code: "sizes-left-out", End: result.Client, Level: result.Info,
					Text: fmt.Sprintf("frames of %v bytes were left out: over IPv6 a datagram of ours does not fit into them", o.left),
				})
			}
			rep.Notices = append(rep.Notices, cutNotice(o.maxBytes, h)...)
		},
		final:    finalRFC2544,
		figures:  map[string]figureKind{"throughput": rateKind},
		figure:   "throughput",
		measured: leastFindings(rfc2544Figures()),
		excused:  excuse(rfc2544Figures()),
		answered: func(rep *result.Report) bool {
			return len(rep.Findings) == len(m.Sizes)*len(m.Directions)
		},
	})
}

// rfc2544Figures are the values that --expect's words mean.
func rfc2544Figures() map[string]string { return map[string]string{"throughput": "throughput_l1"} }

// lasts says how long it takes.
func (o *rfc2544Options) lasts(m method.RFC2544) string {
	n := len(m.Sizes) * len(m.Directions)
	if o.quick {
		return fmt.Sprintf("These come first, for each size. With all that follows on them about 1 to 2 minutes a size and direction, %d to %d minutes in all.", n, 2*n)
	}
	return fmt.Sprintf("These come first, for each size. With all that follows on them about an hour a size and direction, %d of those: --quick, --sizes and --parts make it less.", n)
}

// next is what is worth typing then.
func (o *rfc2544Options) next(host string, m method.RFC2544, rep *result.Report) *result.Step {
	for i := range rep.Findings {
		f := &rep.Findings[i]
		d := result.Direction(f.Direction)
		switch {
		case slices.Contains(f.Flags, "local_drops"), figureIn(f, "curve_dropped_by_host") != nil, slices.Contains(f.Flags, "host_limited") && !slices.Contains(f.Flags, "sender_limited"):
			return fitness(d.Receiver(), host)
		case slices.Contains(f.Flags, "host_limited"), slices.Contains(f.Flags, "curve_host_limited"):
			return fitness(d.Sender(), host)
		}
	}
	switch {
	case len(rep.Findings) < len(m.Sizes)*len(m.Directions):
		return nil
	case m.Quick:
		return o.step(host, "the times and repeats that RFC 2544 and RFC 9004 ask for: figures for a record", "rfc2544", "HOST", "--isolated", "--link", units.BitRate(m.Link).Exact())
	}
	return nil
}

// fillRFC2544 makes the report.
func fillRFC2544(rep *result.Report, m method.RFC2544, history []method.Done) {
	var sentences []string
	for _, x := range m.Answer(history) {
		rep.Findings = append(rep.Findings, sizeFinding(m, x))
		for _, l := range x.Loss {
			rep.Curve = append(rep.Curve, result.Point{X: l.Share, Y: (1 - l.Loss) * l.Share * m.Link, Label: fmt.Sprintf("share of the link, %d bytes %s", x.Frame, x.Direction)})
		}
	}
	for _, d := range m.Directions {
		least, most, n := 1.0, 0.0, 0
		for _, x := range m.Answer(history) {
			if x.Direction == d && x.Rate.Lower > 0 {
				share := x.Throughput / x.Most
				least, most, n = min(least, share), max(most, share), n+1
			}
		}
		if n > 0 {
			sentences = append(sentences, fmt.Sprintf("%s: throughput %.3g to %.3g %% of the link over %d frame sizes.", titleCase(string(d)), 100*least, 100*most, n))
		}
	}
	rep.Summary = strings.Join(sentences, " ")
	if rep.Summary == "" {
		rep.Summary = "The test ended before a rate was decided for any frame size."
	}
	if m.Quick {
		rep.Notices = append(rep.Notices, result.Notice{
			Code: "shortened", End: result.Client, Level: result.Warn,
			Text: "--quick: trials of seconds and 3 bursts; RFC 2544 asks for 60-s trials and RFC 9004 for 50 bursts, so these are no figures for a record",
		})
	}
	for i := range history { // what overloaded beside a step
		for _, run := range history[i].With {
			if run != nil {
				rep.Runs = append(rep.Runs, run)
			}
		}
	}
	owner := ownerNotice(history)
	if len(owner) > 0 && m.Does(method.PartRecovery) {
		rep.Notices = append(rep.Notices, result.Notice{
			Code: "recovery-unknown", End: result.Server, Level: result.Warn,
			Text: "recovery was not measured: its overload ends while other frames go on, which takes two tests at the same time, and the other end takes one",
		})
	}
	rep.Notices = append(rep.Notices, owner...)
}

func sizeFinding(m method.RFC2544, x method.SizeResult) result.Finding {
	f := result.Finding{Name: fmt.Sprintf("frame-%d", x.Frame), Direction: string(x.Direction), Values: []result.Value{}, Flags: rateFlags(x.Rate)}
	add := func(name string, v float64, unit string) {
		f.Values = append(f.Values, result.Value{Name: name, Value: v, Unit: unit})
	}
	share := x.Throughput / x.Most
	add("frame", float64(x.Frame), "bytes")
	text := fmt.Sprintf("%d-byte frames %s: the search ended before a rate was decided.", x.Frame, x.Direction)
	switch {
	case x.Rate.Lower > 0:
		add("throughput_frames", x.Throughput, "frames/s")
		add("throughput_l1", share*m.Link, "bit/s")
		add("throughput_share", share, "ratio")
		text = fmt.Sprintf("%d-byte frames %s: %.0f frames/s without loss, %.3g %% of the link.", x.Frame, x.Direction, x.Throughput, 100*share)
	case x.Rate.Upper > 0:
		text = fmt.Sprintf("%d-byte frames %s: no rate was carried without loss, down to %s of payload.", x.Frame, x.Direction, units.BitRate(x.Rate.Upper))
	}
	add("maximum_frames", x.Most, "frames/s")
	own, short := 0.0, false
	for _, l := range x.Loss {
		add(fmt.Sprintf("loss_at_%.0f", 100*l.Share), l.Loss, "ratio")
		own, short = max(own, l.Own), short || l.Short
	}
	if short || own > 0 {
		f.Flags = append(f.Flags, "curve_host_limited")
	}
	if short {
		text += " The sender did not reach the upper loads of the loss curve."
	}
	if own > 0 {
		text += fmt.Sprintf(" Of its loss curve up to %.3g %% were dropped by the receiving host's socket, not by the path.", 100*own)
	}
	if b := x.Bursts; b != nil {
		add("burst_mean", b.Mean, "frames")
		add("burst_min", b.Min, "frames")
		add("burst_max", b.Max, "frames")
		add("burst_stdev", b.Dev, "frames")
		add("burst_repeats", float64(len(b.Bursts)), "")
		if b.Endless {
			f.Flags = append(f.Flags, "burst_unlimited")
		} else {
			add("implied_buffer_time", b.Implied, "s")
			add("corrected_buffer_time", b.Corrected, "s")
			text += fmt.Sprintf(" Bursts of %.0f frames: a buffer of %.3g ms.", b.Mean, 1000*b.Corrected)
		}
		if b.Host {
			text += " The receiving host's socket dropped of the bursts, so that buffer may be its own."
			f.Flags = append(f.Flags, "local_drops")
		}
	}
	if q := x.Latency; q != nil {
		add("round_trip_mean", q.Mean, "s")
		add("round_trip_p99", q.P99, "s")
		add("round_trip_max", q.Max, "s")
		add("round_trip_p50", q.P50, "s")
	}
	if q := x.Variation; q != nil {
		add("variation_p50", q.P50, "s")
		add("variation_p99", q.P99, "s")
		add("variation_max", q.Max, "s")
	}
	if x.Recovery != nil {
		add("recovery", *x.Recovery, "s")
	}
	if own > 0 {
		add("curve_dropped_by_host", own, "ratio")
	}
	if x.Rate.HostLimited > 0 {
		text += " Host-limited: it says nothing about the path."
	}
	f.Summary = text
	return f
}

// finalRFC2544 prints the table of sizes.
func finalRFC2544(v *stageView, rep *result.Report) {
	get := func(f *result.Finding, name string) string {
		for _, x := range f.Values {
			if x.Name == name {
				return valueText(x)
			}
		}
		return "–"
	}
	fmt.Fprintf(v.e.Out, "  %-5s %6s %14s %8s %12s %12s %10s %10s  %s\n", "way", "frame", "throughput", "of link", "burst mean", "buffer", "trip p99", "recovery", "flags")
	for i := range rep.Findings {
		f := &rep.Findings[i]
		fmt.Fprintf(v.e.Out, "  %-5s %6s %14s %8s %12s %12s %10s %10s  %s\n", f.Direction, strings.TrimPrefix(f.Name, "frame-"),
			get(f, "throughput_l1"), get(f, "throughput_share"), strings.TrimSuffix(get(f, "burst_mean"), " frames"), get(f, "corrected_buffer_time"),
			get(f, "round_trip_p99"), get(f, "recovery"), strings.Join(f.Flags, ", "))
	}
}
