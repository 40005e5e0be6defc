package cli

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// sweepOptions are the words of `fullbore sweep`.
type sweepOptions struct {
	methodOptions
	axis       method.Axis // "" = adaptive
	auto       bool
	up, down   bool
	over, from string
	base       plan.Plan // what is held fixed
	window     string
	affinity   []int
	copyMode   bool
	rate       int64
	seed       int64
	pause      time.Duration
	most       int64
	preset     string
	direction  result.Direction
}

const sweepLong = `Vary one thing, hold the rest, and say what to take.

  sweep streams HOST   how many streams does this path need? (M-KNEE)
  sweep window HOST    which window does a stream need? (M-WSCAN)
  sweep length HOST    does the size of a write matter?
  sweep HOST --auto    streams, then the window at that number, then streams once
                       more; from 20 ms of round trip on window, streams, length

Every setting is measured once a round, in random order, three rounds by default: what
drifts meanwhile meets all alike. While the rate still grows the sweep goes further
(twice at most), then between the neighbours of the best, 12 between 8 and 16, and
below the cheapest setting that does as well: where 16 read highest by chance and 8
carry the same, 6 and 5 are tried, too, so that the answer is the least that fills the
path. That is 7 settings at most, and 2 for going further.

The answer has both knees (Kneedle, and where a doubling gains less than 5 %), the best
setting, the cheapest one within 3 % of it, which is recommended, and the lines that
allow the window on both ends. A knee at which a core is full is the host's, one at
which more than 1 % is sent again is made by losses; neither is the path's, and that is
said. Where other programs had a part in the full core it stays open whose it is.

--over takes 1,2,4,12, or 1..64 (doubling); for windows sizes, shares of the bandwidth-
delay product (50%,100%); the system's own window is always tried, too. --from cores*4
begins at so many streams and goes down while half of them do as well.

Traffic: as much as the path carries for the time of all steps: 15 steps of 11 s where
one stream fills it, 42 at most. On a path of 1 Gbit/s that is 20 to 58 GB; -t 3
--rounds 1 makes it an eighth. --dry-run says what would be done, and at most; bound it
with --max-bytes and --max-rate.`

const sweepExample = `  fullbore sweep streams self -t 1 --rounds 1
  fullbore sweep streams 192.0.2.2
  fullbore sweep streams 192.0.2.2 --down --over 1..64 -w 4M
  fullbore sweep streams 192.0.2.2 --from cores*4
  fullbore sweep window 192.0.2.2 -P 4 --cc bbr
  fullbore sweep window 192.0.2.2 --over 64K..16M,auto --rounds 6
  fullbore sweep 192.0.2.2 --auto --report sweep.html
  fullbore sweep streams 192.0.2.2 --preset wan`

func newSweepCmd(e *env) *cobra.Command {
	o := &sweepOptions{}
	cmd := &cobra.Command{
		Use:     "sweep streams|window|length HOST",
		Short:   "How many streams, which window? Where the knee is, and whose it is",
		Long:    sweepLong,
		Example: sweepExample,
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			host, err := o.words(cmd.Flags(), args)
			if err != nil {
				return err
			}
			return e.runSweep(cmd.Context(), o, host)
		},
	}
	o.methodOptions.addFlags(cmd)
	f := cmd.Flags()
	p := &o.base
	f.BoolVar(&o.auto, "auto", false, "streams and window, one after the other, in the order that the round trip suggests")
	f.BoolVar(&o.up, "up", false, "from here to HOST (default)")
	f.BoolVar(&o.down, "down", false, "from HOST to here")
	f.StringVar(&o.over, "over", "", "settings to try: 1,2,4,12 or 1..64; windows also 50%,100%")
	f.StringVar(&o.from, "from", "", "streams to begin at, e.g. 4 or cores*4; half, twice and four times that are tried, too")
	f.StringVar(&o.preset, "preset", "", "settings and time for a kind of path: "+presetNames())
	f.VarP(durationFlag{&p.Duration}, "time", "t", "length of each step (default 10s)")
	f.VarP(sizeFlag{&p.Bytes}, "bytes", "n", "move so many payload bytes in each step instead of a time")
	f.VarP(durationFlag{&p.Omit}, "omit", "O", "warm-up of each step that is not counted (default 1s with a time)")
	f.Int64Var(&o.most, "most-streams", plan.MaxStreams, "never more streams than this")
	f.Var(rateFlag{&o.rate}, "rate", "what the path carries, for windows (default: measured with 8 streams)")
	f.Int64Var(&o.seed, "seed", 0, "number from which the random order follows (default: drawn, and told)")
	f.Var(durationFlag{&o.pause}, "pause", "silence between steps (default 2s)")
	f.IntVarP(&p.Streams, "streams", "P", 1, "held fixed: streams")
	f.StringVarP(&o.window, "window", "w", "", "held fixed: socket buffers on both ends")
	f.VarP(sizeFlagInt{&p.BlockSize}, "length", "l", "held fixed: bytes per write (default 128K)")
	f.VarP(rateFlag{&p.Bitrate}, "bitrate", "b", "held fixed: rate of each stream")
	f.Var(rateFlag{&p.FQRate}, "fq-rate", "held fixed: let the kernel pace each stream at this rate")
	f.IntVarP(&p.MSS, "mss", "M", 0, "held fixed: maximum segment size")
	f.BoolVarP(&p.NoDelay, "no-delay", "N", false, "held fixed: TCP_NODELAY")
	f.StringVarP(&p.Congestion, "cc", "C", "", "held fixed: congestion control on both ends")
	f.IntVarP(&p.TOS, "tos", "S", 0, "held fixed: TOS byte (DSCP × 4)")
	f.IntVarP(&p.FlowLabel, "flow-label", "L", 0, "held fixed: IPv6 flow label")
	f.BoolVar(&p.MPTCP, "mptcp", false, "held fixed: MPTCP for the streams")
	f.IntSliceVarP(&o.affinity, "affinity", "A", nil, "held fixed: CPUs for the workers of this end")
	f.BoolVar(&o.copyMode, "copy", false, "held fixed: read and write payload as an application does")
	cmd.MarkFlagsMutuallyExclusive("up", "down")
	cmd.MarkFlagsMutuallyExclusive("time", "bytes")
	cmd.MarkFlagsMutuallyExclusive("over", "from")
	return cmd
}

// words reads the axis and the host, and puts the preset's values in.
func (o *sweepOptions) words(f *pflag.FlagSet, args []string) (host string, err error) {
	host = args[len(args)-1]
	switch axis := method.Axis(args[0]); {
	case len(args) == 1 && !o.auto:
		return "", &UsageError{Msg: "sweep: say what is to be varied", Hints: []string{"fullbore sweep streams " + host, "fullbore sweep window " + host, "fullbore sweep " + host + " --auto"}}
	case len(args) == 2 && o.auto:
		return "", usagef("sweep: --auto chooses by itself what is varied")
	case len(args) == 2 && !slices.Contains([]method.Axis{method.Streams, method.Window, method.Length}, axis):
		return "", &UsageError{Msg: fmt.Sprintf("sweep: %q cannot be varied", args[0]), Hints: []string{"there are: streams, window, length"}}
	case len(args) == 2:
		o.axis = axis
	}
	if o.axis != "" && f.Changed(string(o.axis)) {
		return "", usagef("sweep %s: --%[1]s would hold fixed what is varied; --over says what is tried", o.axis)
	}
	if o.auto && (o.over != "" || o.from != "" || f.Changed("streams") || f.Changed("window")) {
		return "", usagef("sweep --auto: it varies streams and windows itself")
	}
	if o.from != "" && o.axis != method.Streams {
		return "", usagef("--from: it is about the number of streams")
	}
	if o.preset != "" {
		p, err := presetNamed(o.preset)
		if err != nil {
			return "", err
		}
		values := map[string]string{"time": p.sweepTime}
		switch o.axis {
		case method.Streams:
			values["window"] = p.window
			if o.from == "" {
				values["over"] = p.overStreams
			}
		case method.Window:
			values["streams"], values["over"] = p.streams, p.overWindow
		case method.Length:
			values["streams"], values["window"] = p.streams, p.window
		}
		if err := usePreset(f, p.name, values); err != nil {
			return "", err
		}
	}
	if o.base.Bytes == 0 && !f.Changed("omit") {
		o.base.Omit = time.Second
	}
	if !f.Changed("pause") {
		o.pause = method.RoundsPause
	}
	return host, nil
}

// complete makes the plan that is held fixed, and finds its faults.
func (o *sweepOptions) hold(host string) error {
	p := &o.base
	if o.window != "" {
		w, err := parseWindow(o.window)
		if err != nil {
			return err
		}
		p.Window = w
	}
	p.Affinity = o.affinity
	if !o.copyMode {
		p.Send, p.Receive, p.RemoteDiscard = plan.SendCheapest, plan.Discard, true
	}
	o.direction = result.Up
	if o.down {
		o.direction = result.Down
	}
	check := *p
	check.Host, check.Direction = host, plan.Direction(o.direction)
	o.apply(&check)
	if err := check.Validate(); err != nil {
		return &UsageError{Msg: strings.ReplaceAll(err.Error(), "\n", "; "), Hints: []string{"see: fullbore sweep --help"}}
	}
	if o.most < 1 || o.most > plan.MaxStreamsExt {
		return usagef("--most-streams %d: must be 1…%d", o.most, plan.MaxStreamsExt)
	}
	return nil
}

// settings reads --over, or what --from stands for.
func (o *sweepOptions) settings() (out []int64, fractions []float64, err error) {
	if o.from != "" {
		n, err := parseFrom(o.from, runtime.NumCPU())
		if err != nil {
			return nil, nil, err
		}
		for _, x := range []int64{n / 2, n, 2 * n, 4 * n} {
			if x >= 1 && x <= o.most {
				out = append(out, x)
			}
		}
		return out, nil, nil
	}
	if o.over == "" {
		return nil, nil, nil
	}
	return parseOver(o.over, o.axis)
}

// parseFrom reads 16, cores or cores*4.
func parseFrom(s string, cores int) (int64, error) {
	word, factor, times := strings.Cut(strings.ReplaceAll(s, " ", ""), "*")
	n, err := strconv.ParseInt(word, 10, 64)
	if word == "cores" {
		n, err = int64(cores), nil
	}
	if err == nil && times {
		var k int64
		k, err = strconv.ParseInt(factor, 10, 64)
		n *= k
	}
	if err != nil || n < 1 || n > plan.MaxStreamsExt {
		return 0, &UsageError{Msg: fmt.Sprintf("--from %q: a number of streams", s), Hints: []string{"for example: --from 16, --from cores*4"}}
	}
	return n, nil
}

// parseOver reads a list of settings: 1,2,4,12; 1..64; 64K..16M,auto; 50%,100%.
func parseOver(s string, axis method.Axis) (out []int64, fractions []float64, err error) {
	fail := func(why string) ([]int64, []float64, error) {
		hints := []string{"for example: --over 1,2,4,12 or --over 1..64"}
		if axis != method.Streams {
			hints = []string{"for example: --over 64K,1M,4M or --over 64K..16M,auto or --over 50%,100%,200%"}
		}
		return nil, nil, &UsageError{Msg: fmt.Sprintf("--over %q: %s", s, why), Hints: hints}
	}
	number := func(w string) (int64, error) {
		if axis == method.Streams {
			return strconv.ParseInt(w, 10, 64)
		}
		n, err := units.ParseSize(w)
		return int64(n), err
	}
	const most = 64 // settings
	for word := range strings.SplitSeq(s, ",") {
		word = strings.TrimSpace(word)
		from, to, isRange := strings.Cut(word, "..")
		share, isShare := strings.CutSuffix(word, "%")
		switch {
		case axis == method.Window && word == "auto":
			out = append(out, 0)
		case axis == method.Window && isShare:
			v, err := strconv.ParseFloat(strings.TrimSpace(share), 64)
			if err != nil || v <= 0 || v > 10000 {
				return fail(fmt.Sprintf("%q is no share of the bandwidth-delay product", word))
			}
			fractions = append(fractions, v/100)
		case isRange:
			a, errA := number(from)
			b, errB := number(to)
			if errA != nil || errB != nil || a < 1 || b < a {
				return fail(fmt.Sprintf("%q is no range", word))
			}
			for x := a; x <= b; x *= 2 {
				out = append(out, x)
			}
			if !slices.Contains(out, b) {
				out = append(out, b)
			}
		default:
			x, err := number(word)
			if err != nil || x < 1 {
				return fail(fmt.Sprintf("%q is no setting", word))
			}
			out = append(out, x)
		}
	}
	most64 := int64(plan.MaxStreamsExt)
	if axis == method.Window {
		most64 = plan.MaxWindow
	} else if axis == method.Length {
		most64 = plan.MaxBlockSize
	}
	switch {
	case len(out) > most || len(fractions) > most:
		return fail(fmt.Sprintf("more than %d settings", most))
	case len(fractions) > 0 && slices.ContainsFunc(out, func(x int64) bool { return x > 0 }):
		return fail("shares and sizes do not go together")
	case slices.ContainsFunc(out, func(x int64) bool { return x > most64 }):
		return fail(fmt.Sprintf("at most %d", most64))
	case len(fractions) > 0:
		out = nil // the system's own window is always among them
	}
	slices.Sort(out)
	return slices.Compact(out), fractions, nil
}

// sweepMethod is what is played, with its parts as far as a history tells them.
type sweepMethod interface {
	method.Method
	parts(history []method.Done) []method.Sweep
	possible() []method.Step
	follows() int // settings that may come after those, at most
}

type oneSweep struct{ method.Sweep }

func (s oneSweep) parts([]method.Done) []method.Sweep { return []method.Sweep{s.Sweep} }
func (s oneSweep) possible() []method.Step            { return s.Possible() }
func (s oneSweep) follows() int                       { return s.Follows() }

type bothSweeps struct{ method.Adaptive }

func (s bothSweeps) parts(history []method.Done) []method.Sweep { return s.Parts(history) }
func (s bothSweeps) possible() []method.Step {
	out := method.Sweep{Axis: method.Streams, Direction: s.Direction, Base: s.Base}.Possible()
	return append(out, method.Sweep{Axis: method.Window, Direction: s.Direction, Base: s.Base}.Possible()...)
}

// follows counts the third part whole: after a long round trip it is the length of a write.
func (s bothSweeps) follows() (n int) {
	for _, axis := range []method.Axis{method.Streams, method.Window, method.Length} {
		n += method.Sweep{Axis: axis, Direction: s.Direction, Base: s.Base, Most: s.most(axis)}.Follows()
	}
	return n + len(method.Sweep{Axis: method.Length, Direction: s.Direction, Base: s.Base}.Possible())
}

// most is the bound of an axis, 0 = its own.
func (s bothSweeps) most(axis method.Axis) int64 {
	if axis == method.Streams {
		return s.Most
	}
	return 0
}

func (o *sweepOptions) method(seed int64) (sweepMethod, error) {
	s := method.Sweep{
		Axis: o.axis, Direction: o.direction, Base: o.base, Rounds: o.rounds.n, Auto: o.rounds.auto,
		Seed: uint64(seed), Pause: o.pause, Rate: float64(o.rate), //nolint:gosec // any bits will do
	}
	if o.auto {
		return bothSweeps{method.Adaptive{
			Direction: s.Direction, Base: s.Base, Rounds: s.Rounds, Auto: s.Auto, Seed: s.Seed, Pause: s.Pause, Most: o.most, Rate: s.Rate,
		}}, nil
	}
	var err error
	if s.Settings, s.Fractions, err = o.settings(); err != nil {
		return nil, err
	}
	if s.Axis == method.Streams {
		s.Most = o.most
		if n := len(s.Settings); n > 0 {
			s.Most = max(s.Most, slices.Max(s.Settings))
		}
	}
	return oneSweep{s}, nil
}

// sweepHead names what is varied.
var sweepHead = map[method.Axis]string{
	"": "Sweeping streams and window", method.Streams: "Sweeping the number of streams", method.Window: "Sweeping the window", method.Length: "Sweeping the length of a write",
}

func (e *env) runSweep(ctx context.Context, o *sweepOptions, host string) error {
	if err := o.hold(host); err != nil {
		return err
	}
	seed := drawSeed(o.seed)
	m, err := o.method(seed)
	if err != nil {
		return err
	}
	rounds := o.rounds
	if rounds.n == 0 && !rounds.auto {
		rounds.n = method.LeastRounds
	}
	var possible []method.Step
	var long, each time.Duration
	for _, s := range m.possible() {
		if s.Name != "idle" {
			s.Pause = o.pause
		}
		possible = append(possible, s)
		long += s.Length() * time.Duration(rounds.most())
		each = max(each, s.Length())
	}
	further := m.follows() * rounds.most() // steps
	most := long + time.Duration(further)*each
	job := methodJob{
		kind: "sweep", host: host, method: m, possible: possible, times: rounds.most(), ownRounds: true, row: sweepRow,
		head:   fmt.Sprintf("%s %s, %s, %s in random order (seed %d), about %s, at most %s", sweepHead[o.axis], o.direction, hostWords(host), rounds.words(), seed, units.FormatDuration(long.Round(time.Second)), units.FormatDuration(most.Round(time.Second))),
		volume: sweepVolume(pathTo(ctx, hostOf(host), o.family()).speed, o, long, len(possible)*rounds.most(), each, further),
		fill: func(rep *result.Report, history []method.Done) {
			rep.Seed = &seed
			fillSweep(rep, m, history)
		},
		final: sweepFinal, figure: "rate",
		figures: map[string]figureKind{"rate": rateKind, "streams": numberKind, "window": sizeKind},
		measured: func(rep *result.Report) map[string]*float64 {
			out := map[string]*float64{"rate": nil, "streams": nil, "window": nil}
			if s := rep.Sweep; s != nil {
				out["rate"] = s.Carries
				for name, v := range map[string]float64{"streams": float64(s.Streams), "window": float64(s.Window)} {
					if v > 0 {
						out[name] = &v
					}
				}
			}
			return out
		},
		answered: func(rep *result.Report) bool { return rep.Sweep != nil && rep.Sweep.Carries != nil },
	}
	return e.runMethod(ctx, &o.methodOptions, job)
}

func hostWords(host string) string {
	if host == "self" {
		return "on this machine"
	}
	return "to " + host
}

// hostOf is the address that "self" stands for.
func hostOf(host string) string {
	if host == "self" {
		return "127.0.0.1"
	}
	return host
}

// sweepVolume says how much the first settings move, steps of them in the time long, and how much
// what may follow moves at most: further steps of the length each.
func sweepVolume(speed int64, o *sweepOptions, long time.Duration, steps int, each time.Duration, further int) string {
	const more = " more (beyond the last while the rate grows, beside the best, below the cheapest that does as well). Bound it with --max-bytes or --max-rate."
	if o.base.Bytes > 0 {
		return fmt.Sprintf("Traffic: %s for the first settings, and up to %s%s", units.ByteSize(o.base.Bytes*int64(steps)), units.ByteSize(o.base.Bytes*int64(further)), more)
	}
	bps, at := 1e9, "as much as the path carries; a path of 1 Gbit/s: about "
	if o.maxRate > 0 {
		bps, at = float64(o.maxRate), "at --max-rate: about "
	} else if speed > 0 {
		bps, at = float64(speed), fmt.Sprintf("at the speed of this host's link (%s): up to ", units.BitRate(speed))
	}
	moved := func(span time.Duration, steps int) string {
		span -= time.Duration(steps) * (o.pause + 300*time.Millisecond) // what is no traffic of a step
		return units.ByteSize(bps / 8 * span.Seconds()).String()
	}
	return "Traffic: " + at + moved(long, steps) + " for the first settings, and up to " + moved(each*time.Duration(further), further) + more
}

// sizeKind is of figures in bytes.
var sizeKind = figureKind{
	parse: func(s string) (float64, error) {
		n, err := units.ParseSize(s)
		return float64(n), err
	},
	print: func(v float64) string { return units.ByteSize(v).IEC() },
	unit:  "bytes",
}
