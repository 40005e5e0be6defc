package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/soak"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// soakOptions are the words of `fullbore soak`.
type soakOptions struct {
	methodOptions
	length   time.Duration
	up, down bool
	udp      udpOptions
	copyMode bool
	window   string
	steps    string
	stepTime time.Duration
	segment  time.Duration
	record   string
	resume   string
	replay   string
	rules    struct {
		reference    int64
		availability string
		outage       time.Duration
	}
}

const soakLong = `Load the path to HOST for hours or days and tell how steady it is: the rate hour by
hour, every outage with its start and length, availability, slow trends, changes of the
level, patterns that repeat, and limits that begin only after a while (burst credits,
heat, volume quotas). Both directions at once, unless --up or --down.

Each second of each direction is written to a record as it comes, so that nothing is
lost whatever ends the program, and memory stays as it is; --resume goes on with it,
--replay judges it again, also while it is still being written: with --report that is
the page of how it stands. A test that breaks off is begun again as soon as HOST
answers: it is asked ten times a second, so an outage's end is known within 0.2 s.

Outage: at least a second below a tenth of the usual rate. Passed: at least 99.9 % of
the seconds with 90 % of the usual rate, no outage longer than 5 s, no trend of more
than 1 % a day, this program's memory steady. Ctrl-C ends it with the result so far.

Against a fullbore peer a day is one test. An iperf3 server gets a chain of tests of an
hour; of UDP towards it outages upwards cannot be seen while a test runs.

Traffic: as much as the path carries all the time: 1 Gbit/s makes 10.8 TB a day and
direction. Bound it with -b, --max-bytes or --max-rate; --dry-run says how much.
Record: about 11 MB a day and direction; those beside the history stay below its bound
(see fullbore history --help), the oldest going first.

Exit codes: 0 passed, 1 not passed, 2 nothing to judge by, 130 interrupted.`

const soakExample = `  fullbore soak 192.0.2.2                        a day, both directions, TCP
  fullbore soak 192.0.2.2 -t 15m --down -P 4
  fullbore soak 192.0.2.2 -t 72h -b 500M --label "link 7"
  fullbore soak 192.0.2.2 -u -b 90M -t 24h --report soak.html
  fullbore soak 192.0.2.2 --steps 100,50          full and half load in turn, an hour each
  fullbore soak 192.0.2.2 --expect 'availability >= 99.99%, outage <= 2s'
  fullbore soak --resume link7.jsonl             go on after a break of this host
  fullbore soak --replay link7.jsonl --json      judge a record again; nothing is sent
  fullbore soak --replay link7.jsonl --report now.html   how it stands, meanwhile
  fullbore soak self -t 1m                       try it`

func newSoakCmd(e *env) *cobra.Command {
	o := &soakOptions{}
	cmd := &cobra.Command{
		Use:     "soak HOST",
		Short:   "Load a path for hours or days: outages, availability, trends, late limits",
		Long:    soakLong,
		Example: soakExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			n := len(args)
			for _, f := range []string{o.resume, o.replay} {
				if f != "" {
					n++
				}
			}
			if n != 1 {
				return usagef("soak: name one host, or a record with --resume or --replay")
			}
			return e.runSoak(cmd.Context(), o, strings.Join(args, ""), cmd.Flags().Changed)
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *soakOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	p := &o.plan
	o.methodOptions.addFlags(cmd)
	_ = f.MarkHidden("rounds") // hours are not played several times
	f.BoolVar(&o.up, "up", false, "only from here to HOST")
	f.BoolVar(&o.down, "down", false, "only from HOST to here")
	f.VarP(durationFlag{&o.length}, "time", "t", "how long it lasts (default 24h)")
	f.IntVarP(&p.Streams, "streams", "P", 1, "streams per direction")
	f.BoolVarP(&o.udp.udp, "udp", "u", false, "UDP instead of TCP; needs a rate")
	f.VarP(rateSpecFlag{&o.udp.rate}, "bitrate", "b", "payload rate per stream, e.g. 100M; UDP also 1G@l1, 95%")
	f.Var(rateSpecFlag{&o.udp.total}, "total-bitrate", "rate of all streams together, as -b")
	f.Float64Var(&o.udp.pps, "pps", 0, "UDP: datagrams per second and stream, instead of a bit rate")
	f.VarP(sizeFlagInt{&p.BlockSize}, "length", "l", "bytes per write (default 128K, less when paced); UDP: payload of a datagram")
	f.StringVarP(&o.window, "window", "w", "", "socket buffers on both ends, e.g. 8M; 2x = twice the system's autotuning maximum")
	f.StringVarP(&p.Congestion, "cc", "C", "", "congestion control on both ends, e.g. cubic, bbr")
	f.IntVarP(&p.TOS, "tos", "S", 0, "TOS byte (DSCP × 4)")
	f.IntVar(&p.ClientPort, "cport", 0, "first local data port")
	f.BoolVar(&o.copyMode, "copy", false, "read and write payload as an application does, instead of the cheapest honest path")
	f.StringVar(&o.steps, "steps", "", "load in turn, in percent of the full load, e.g. 100,50")
	f.Var(durationFlag{&o.stepTime}, "step-time", "length of each step (default 1h)")
	f.Var(durationFlag{&o.segment}, "segment", "longest single test (default: 24h, an iperf3 server's 1h)")
	f.StringVar(&o.record, "record", "", "write the record to this file (default: soak/… beside the history; none with --no-store)")
	f.StringVar(&o.resume, "resume", "", "go on with this record; its own settings count")
	f.StringVar(&o.replay, "replay", "", "judge this record again; nothing is sent")
	f.Var(rateFlag{&o.rules.reference}, "reference", "rate by which availability is judged, per direction (default: the median)")
	f.StringVar(&o.rules.availability, "availability", "", "share of the seconds that must carry 90 % of it (default 99.9%)")
	f.Var(durationFlag{&o.rules.outage}, "longest-outage", "longest outage that is allowed (default 5s)")
	cmd.MarkFlagsMutuallyExclusive("up", "down")
	cmd.MarkFlagsMutuallyExclusive("resume", "replay")
	cmd.MarkFlagsMutuallyExclusive("resume", "record")
}

// soakFigures are what --expect can ask of a soak; of two directions the worse counts.
var soakFigures = map[string]figureKind{
	"rate": rateKind, "p1": rateKind, "p5": rateKind, "availability": shareKind, "outage": timeKind, "outages": numberKind, "loss": shareKind, "pdv": timeKind,
}

func soakMeasured(rep *result.Report) map[string]*float64 {
	out := map[string]*float64{}
	s := rep.Soak
	if s == nil {
		return out
	}
	worse := func(name string, v *float64, less bool) {
		old, seen := out[name]
		switch {
		case !seen:
			out[name] = v
		case old == nil || v == nil:
			out[name] = nil
		case less == (*v < *old):
			out[name] = v
		}
	}
	for i := range s.Ways {
		f := &s.Ways[i].Figures
		worse("rate", f.Median, true)
		worse("p1", f.P1, true)
		worse("p5", f.P5, true)
		worse("availability", f.Availability, true)
		worse("pdv", f.PDV, false)
		var loss *float64
		if f.Lost != nil && f.Packets != nil && *f.Packets > 0 {
			l := float64(*f.Lost) / float64(*f.Packets)
			loss = &l
		}
		worse("loss", loss, false)
	}
	longest, n := 0.0, float64(len(s.Outages))
	for _, x := range s.Outages {
		longest = max(longest, x.Length)
	}
	out["outage"], out["outages"] = &longest, &n
	return out
}

// parts reads --steps.
func (o *soakOptions) parts() ([]soak.Step, error) {
	if o.steps == "" {
		if o.stepTime > 0 {
			return nil, usagef("--step-time: there are no --steps")
		}
		return []soak.Step{{Share: 1}}, nil
	}
	length := o.stepTime
	if length == 0 {
		length = time.Hour
	}
	if length < 2*time.Second {
		return nil, usagef("--step-time %v: at least 2s", length)
	}
	var out []soak.Step
	for word := range strings.SplitSeq(o.steps, ",") {
		v, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(word), "%"), 64)
		if err != nil || !(v > 0 && v <= 100) {
			return nil, &UsageError{Msg: fmt.Sprintf("--steps %q: %q is no percentage above 0", o.steps, word), Hints: []string{"for example: --steps 100,50"}}
		}
		out = append(out, soak.Step{Share: v / 100, Length: length})
	}
	switch {
	case len(out) < 2 || len(out) > 16:
		return nil, usagef("--steps %q: two to sixteen steps", o.steps)
	case out[0].Share != 1 && !o.udp.spec().given():
		return nil, usagef("--steps %q: begin with 100, or name the full load with -b: a share of what is not known cannot be sent", o.steps)
	}
	return out, nil
}

// head makes the record's head of the words.
func (o *soakOptions) head(ctx context.Context, e *env, host string, given func(string) bool) (*soak.Head, error) {
	var tcpOnly []string
	for _, flag := range []string{"copy", "cc"} {
		if given(flag) {
			tcpOnly = append(tcpOnly, "--"+flag)
		}
	}
	if err := o.udp.check(host, tcpOnly); err != nil {
		return nil, err
	}
	if o.udp.spec().auto {
		return nil, usagef("-b auto: a soak needs a rate that stays; find one with fullbore udpmax %s", host)
	}
	p := o.complete(o.plan)
	p.Host, p.Direction, p.MaxRate = host, plan.Both, o.maxRate
	switch {
	case o.up:
		p.Direction = plan.Up
	case o.down:
		p.Direction = plan.Down
	}
	p.Streams, p.BlockSize, p.Congestion, p.TOS, p.ClientPort = o.plan.Streams, o.plan.BlockSize, o.plan.Congestion, o.plan.TOS, o.plan.ClientPort
	if p.Streams < 1 {
		return nil, usagef("streams: %d: must be at least 1", p.Streams)
	}
	if !o.copyMode && !o.udp.udp {
		p.Send, p.Receive, p.RemoteDiscard = plan.SendCheapest, plan.Discard, true
	}
	if o.window != "" {
		w, err := parseWindow(o.window)
		if err != nil {
			return nil, err
		}
		p.Window = w
	}
	if err := o.udp.apply(&p); err != nil {
		return nil, err
	}
	if err := o.udp.resolve(ctx, &p, nil); err != nil {
		return nil, err
	}
	if rate := p.Bitrate; rate > 0 && p.BlockSize == 0 && p.Transport != plan.UDP {
		// Blocks at most 20 ms apart, so that a tenth of a second shows whether payload comes.
		p.BlockSize = int(min(max(rate/8/50, 1448), plan.DefaultTCPBlock))
	}
	steps, err := o.parts()
	if err != nil {
		return nil, err
	}
	h := &soak.Head{
		Version: soak.Version, Tool: result.Tool{Name: "fullbore", Version: Version}, Started: result.Now(e.Now()), Inputs: e.words,
		Plan: p, Self: host == "self", Asked: o.length.Seconds(), Steps: steps, Judge: soak.DefaultRules(), Segment: o.segment,
	}
	if o.length == 0 {
		h.Asked = 86400
	}
	check := p
	check.Duration = min(time.Duration(h.Asked*float64(time.Second)), plan.MaxDuration)
	if err := check.Validate(); err != nil {
		return nil, &UsageError{Msg: strings.ReplaceAll(err.Error(), "\n", "; "), Hints: []string{"see: fullbore soak --help"}}
	}
	if h.Asked < 5 || h.Asked > 366*86400 {
		return nil, usagef("--time %v: a soak lasts 5 s to a year", o.length)
	}
	if o.segment != 0 && o.segment < 2*time.Second {
		return nil, usagef("--segment %v: at least 2s", o.segment)
	}
	return h, o.judge(&h.Judge)
}

// judge puts the user's rules in.
func (o *soakOptions) judge(r *soak.Rules) error {
	r.Reference = float64(o.rules.reference)
	if o.rules.outage > 0 {
		r.Outage = o.rules.outage.Seconds()
	}
	if o.rules.availability != "" {
		v, err := parseShare(o.rules.availability)
		if err != nil {
			return usagef("--availability: %v", err)
		}
		r.Availability = v
	}
	return nil
}

// soakVolume says how much a soak moves.
func soakVolume(ctx context.Context, h *soak.Head, maxBytes int64) string {
	ways := 1.0
	if h.Plan.Direction == plan.Both {
		ways = 2
	}
	share, length := 0.0, 0.0
	for _, s := range h.Steps {
		l := max(s.Length.Seconds(), 1)
		share, length = share+s.Share*l, length+l
	}
	speed, what := 0.0, ""
	switch {
	case h.Plan.Bitrate > 0:
		speed, what = float64(h.Plan.Bitrate)*float64(max(h.Plan.Streams, 1)), "at the rate that was asked for"
	case h.Plan.MaxRate > 0:
		speed, what = float64(h.Plan.MaxRate)/ways, "at --max-rate"
	case !h.Self:
		if v := pathTo(ctx, h.Plan.Host, h.Plan.Family).speed; v > 0 {
			speed, what = float64(v), "at the speed of this host's link"
		}
	}
	if speed == 0 {
		speed, what = 1e9, "on a path of 1 Gbit/s"
	}
	v := int64(speed / 8 * h.Asked * ways * share / length)
	if maxBytes > 0 {
		v = min(v, maxBytes)
	}
	return fmt.Sprintf("Traffic %s: up to %s in all.", what, units.ByteSize(v))
}
