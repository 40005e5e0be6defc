package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/iperf3"
	"github.com/fullbore-net/fullbore/internal/render/json"
	"github.com/fullbore-net/fullbore/internal/runner"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

type serveOptions struct {
	serve       plan.Serve
	listen      []string
	allow       []string
	key         string
	facts       string
	ipv4, ipv6  bool
	copyMode    bool
	noNTTTCP    bool
	ntttcpBase  int
	ntttcpPorts int
	untilStdin  bool
	quiet, json bool

	openFirewall bool
	service      serviceOptions
}

const serveLong = `Answer iperf3 (3.1 … 3.21), NTTTCP and fullbore clients, many at once, until interrupted (exit code 0).
One line is printed per test.

NTTTCP senders of Linux and of Windows are served without any option: with and
without synchronising (-N, -ns), over TCP and UDP, up to 16 ports (-P 16, -m 16,*,HOST).
NTTTCP has no login, so its ports are closed when one is required.

Nothing is sent to anyone who did not connect first, and streams are taken only
from the address of their control connection. Bound what a client may do with
--allow, --max-tests, --max-streams, --max-rate and --max-time, or require a login.
A fullbore client may ask that this end play the client of a test towards it
(accept does, to compare); within the same bounds, and not with --no-swap.`

const serveExample = `  fullbore serve
  fullbore serve --listen :5201-5210
  fullbore serve --listen 192.0.2.1:5201 --listen [2001:db8::1]:5201
  fullbore serve --allow 10.0.0.0/8 --max-tests 4 --max-rate 2G --max-time 60s
  fullbore serve --ntttcp-ports 64      for NTTTCP senders with up to -P 64
  fullbore serve --exclusive            one test at a time, others are told "busy"
  fullbore serve --rsa-private-key key.pem --authorized-users users.csv`

func newServeCmd(e *env) *cobra.Command {
	o := &serveOptions{}
	s := &o.serve
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Answer iperf3, NTTTCP and fullbore clients, many at once",
		Long:    serveLong,
		Example: serveExample,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return e.serveOrService(cmd, o) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.listen, "listen", nil, "ADDR:PORT or :PORT or :FIRST-LAST; repeatable (default :5201)")
	f.BoolVarP(&o.ipv4, "ipv4", "4", false, "IPv4 only")
	f.BoolVarP(&o.ipv6, "ipv6", "6", false, "IPv6 only")
	f.StringVar(&s.BindDev, "bind-dev", "", "interface to listen on")
	f.BoolVar(&s.Exclusive, "exclusive", false, "one test at a time; others are told busy, as iperf3 -s does")
	f.BoolVar(&s.Queue, "queue", false, "let fullbore clients wait for their turn instead")
	f.BoolVarP(&s.OneOff, "one-off", "1", false, "serve one test, then exit")
	f.Var(durationFlag{&s.IdleTimeout}, "idle-timeout", "with --one-off: exit when nobody came for this long")
	f.StringSliceVar(&o.allow, "allow", nil, "only clients of these networks, e.g. 10.0.0.0/8")
	f.IntVar(&s.MaxTests, "max-tests", 0, "tests at once (default: no limit)")
	f.IntVar(&s.MaxStreams, "max-streams", 0, "streams per test and direction")
	f.Var(rateFlag{&s.MaxRate}, "max-rate", "what this end sends per test is held to this rate, and clients that ask for more are refused")
	f.Var(durationFlag{&s.MaxDuration}, "max-time", "longest test; endless ones are refused")
	f.Var(durationFlag{&s.ReceiveTimeout}, "receive-timeout", "give a client up when nothing arrives for this long (default 2m)")
	f.Var(durationFlag{&s.SendTimeout}, "send-timeout", "give a client up when it takes nothing for this long")
	f.StringVar(&o.key, "rsa-private-key", "", "PEM file; with --authorized-users a login is required")
	f.StringVar(&s.UsersFile, "authorized-users", "", "file of user,sha256 lines")
	f.Var(durationFlag{&s.TimeSkew}, "time-skew", "clock difference that a login may have (default 10s)")
	f.BoolVar(&s.PKCS1, "pkcs1", false, "also accept the padding of iperf3 up to 3.16")
	f.BoolVar(&s.NoSwap, "no-swap", false, "never play a client's test towards that client, with the roles exchanged (accept asks for it)")
	f.StringVar(&o.facts, "facts", "basic", "what strangers may learn of this host: basic (OS, version, cores) or full")
	f.IntSliceVarP(&s.Affinity, "affinity", "A", nil, "CPUs for the workers")
	f.BoolVar(&o.copyMode, "copy", false, "read payload into memory as an application does")
	f.BoolVar(&o.noNTTTCP, "no-ntttcp", false, "do not answer NTTTCP senders")
	f.IntVar(&o.ntttcpBase, "ntttcp-base", plan.NTTTCPPort, "first data port of NTTTCP; the one below and those 1000 above are used too")
	f.IntVar(&o.ntttcpPorts, "ntttcp-ports", plan.NTTTCPPorts, "data ports of NTTTCP: the most that a sender may ask for (-P)")
	f.BoolVar(&o.openFirewall, "open-firewall", false, "let these ports through the packet filter while this runs (see: fullbore firewall)")
	f.BoolVar(&o.json, "json", false, "print one JSON document per test instead of a line")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print no line per test")
	f.BoolVar(&o.untilStdin, "until-stdin-closes", false, "end when standard input closes")
	o.service.addFlags(f)
	cmd.MarkFlagsMutuallyExclusive("ipv4", "ipv6")
	cmd.MarkFlagsMutuallyExclusive("json", "quiet")
	if flag := f.Lookup("until-stdin-closes"); flag != nil {
		flag.Hidden = true
	}
	return cmd
}

// resolve turns the words into a plan.Serve.
func (o *serveOptions) resolve() (plan.Serve, error) {
	s := o.serve
	if len(o.listen) == 0 {
		o.listen = []string{":" + strconv.Itoa(plan.DefaultPort)}
	}
	for _, w := range o.listen {
		aps, err := parseListen(w, o.ipv4)
		if err != nil {
			return s, err
		}
		s.Listen = append(s.Listen, aps...)
	}
	switch {
	case o.ipv4:
		s.Family = 4
	case o.ipv6:
		s.Family = 6
	}
	for _, a := range o.allow {
		pre, err := parsePrefix(a)
		if err != nil {
			return s, err
		}
		s.Allow = append(s.Allow, pre)
	}
	switch o.facts {
	case "basic":
	case "full":
		s.FullFacts = true
	default:
		return s, usagef("--facts %q: must be basic or full", o.facts)
	}
	if o.key != "" {
		pem, err := os.ReadFile(o.key)
		if err != nil {
			return s, usagef("--rsa-private-key: %v", err)
		}
		s.PrivateKey = pem
	}
	if !o.copyMode {
		s.Send, s.Receive = plan.SendCheapest, plan.Discard
	}
	p, err := o.ntttcpPlan(s)
	if err != nil {
		return s, err
	}
	s.NTTTCP = p
	if err := s.Validate(); err != nil {
		return s, usagef("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return s, nil
}

// parseListen reads ADDR:PORT, :PORT and ranges ADDR:FIRST-LAST.
func parseListen(word string, v4 bool) ([]netip.AddrPort, error) {
	host, ports, err := net.SplitHostPort(word)
	if err != nil {
		return nil, &UsageError{Msg: fmt.Sprintf("--listen %q: want ADDR:PORT", word), Hints: []string{"for example :5201, 192.0.2.1:5201, [2001:db8::1]:5201, :5201-5210"}}
	}
	addr := netip.IPv6Unspecified()
	if v4 {
		addr = netip.IPv4Unspecified()
	}
	if host != "" {
		if addr, err = netip.ParseAddr(host); err != nil {
			return nil, usagef("--listen %q: %q is not an address of this host (give a number, not a name)", word, host)
		}
	}
	first, last, ranged := strings.Cut(ports, "-")
	lo, err := strconv.ParseUint(first, 10, 16)
	hi := lo
	if err == nil && ranged {
		hi, err = strconv.ParseUint(last, 10, 16)
	}
	if err != nil || hi < lo || ranged && lo == 0 {
		return nil, usagef("--listen %q: port must be 0…65535 or FIRST-LAST", word)
	}
	var out []netip.AddrPort
	for p := lo; p <= hi; p++ {
		out = append(out, netip.AddrPortFrom(addr, uint16(p)))
	}
	return out, nil
}

func parsePrefix(s string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked(), nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Prefix{}, usagef("--allow %q: not a network, e.g. 10.0.0.0/8", s)
	}
	return netip.PrefixFrom(a, a.BitLen()), nil
}

func (e *env) runServe(ctx context.Context, o *serveOptions) error {
	s, err := o.resolve()
	if err != nil {
		return err
	}
	if o.untilStdin && e.IsProcess {
		// Ctrl-C reaches the whole foreground group: the one who started this server needs
		// it until its own test is over, and then closes our input.
		signal.Ignore(os.Interrupt, syscall.SIGHUP)
	} else {
		var stop func()
		ctx, stop = e.interruptible(ctx)
		defer stop()
	}
	log := slog.New(boardHandler{e.logger().Handler()})
	if o.untilStdin {
		log = slog.New(ownHandler{boardHandler{e.logger().Handler()}})
	}
	r := &runner.Runner{Version: Version, Now: e.Now, Log: log, OneSocket: e.oneSocket(), Slots: s.Slots()}
	lns, err := e.listen(ctx, s)
	if err != nil {
		return err
	}
	doors, notes := e.listenNTTTCP(ctx, r, s)
	if o.openFirewall {
		shut, err := e.openFirewall(ctx, listeningOn(s, lns))
		if err != nil {
			closeListeners(lns)
			for _, d := range doors {
				d.ports.Close()
			}
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		defer shut()
	}
	names := make([]string, len(lns))
	for i, ln := range lns {
		names[i] = ln.Addr().String()
	}
	if s.NTTTCP == nil && !o.noNTTTCP {
		notes = append(notes, "NTTTCP senders are not served: a login is required, and NTTTCP has none")
	}
	for _, n := range notes {
		fmt.Fprintln(e.Err, "fullbore:", n)
	}
	if !o.json {
		fmt.Fprintf(e.Out, "fullbore %s %s%s (iperf3 and fullbore clients; Ctrl-C ends)\n", Version, readyPrefix, strings.Join(names, ", "))
		if len(doors) > 0 {
			fmt.Fprintln(e.Out, ntttcpLine(doors))
		}
	}
	e.tellManager(ctx)
	if o.untilStdin {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		go func() { // ends with standard input
			_, _ = io.Copy(io.Discard, e.In)
			cancel()
		}()
	}
	board := &serveBoard{e: e, o: o}
	err = e.serveAll(ctx, doors, board.newTest, r, func(ctx context.Context) error { return r.Serve(ctx, s, lns, board.newTest) })
	if ctx.Err() != nil {
		return nil // a signal is the normal end of a server
	}
	if errors.Is(err, iperf3.ErrIdle) {
		return &codeError{code: exitInconclusive, err: err}
	}
	return err
}

// listen opens all listeners or none.
func (e *env) listen(ctx context.Context, s plan.Serve) ([]net.Listener, error) {
	var lns []net.Listener
	for _, ap := range s.Listen {
		ln, err := osnet.Listen(ctx, "tcp", ap, osnet.Options{Family: s.Family, BindDev: s.BindDev})
		if err != nil {
			closeListeners(lns)
			return nil, &codeError{code: exitConnect, err: fmt.Errorf("serve: listen on %v: %w", ap, err)}
		}
		lns = append(lns, ln)
	}
	return lns, nil
}

func closeListeners(lns []net.Listener) {
	for _, l := range lns {
		_ = l.Close()
	}
}

// boardHandler leaves out the record per test: the board prints its line.
type boardHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h boardHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "test" {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// ownHandler leaves out, besides, who came and was no client: a server that a command started for itself is
// visited by that command, which may open connections only to close them. What keeps it from taking any more
// is told all the same.
type ownHandler struct{ boardHandler }

// Handle implements slog.Handler.
func (h ownHandler) Handle(ctx context.Context, r slog.Record) error {
	visit, ours := r.Message == "visitor", false
	r.Attrs(func(a slog.Attr) bool {
		ours = ours || a.Key == "what" && a.Value.String() == iperf3.OutOfDescriptors
		return !ours
	})
	if visit && !ours {
		return nil
	}
	return h.boardHandler.Handle(ctx, r)
}

// serveBoard prints a line (or a document) per test.
type serveBoard struct {
	e  *env
	o  *serveOptions
	mu sync.Mutex // one line at a time
}

func (b *serveBoard) newTest(remote result.Addr) runner.Hooks {
	l := &serveLine{}
	if !b.o.json {
		l.fold.Keep = 1 // a line tells of sums only
	}
	return runner.Hooks{Sink: l, Done: func() {
		if l.over {
			b.print(remote, l.fold.Run())
		}
	}}
}

// serveLine follows one test, of which a line is printed when its last event was there:
// one that broke off after it had begun ends with two.
type serveLine struct {
	fold result.Folder
	over bool
}

// Event implements result.Sink.
func (l *serveLine) Event(ev result.Event) {
	l.fold.Event(ev)
	l.over = l.over || ev.Kind == result.KindFinish || ev.Kind == result.KindError
}

func (b *serveBoard) print(remote result.Addr, run *result.Run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.o.quiet:
	case b.o.json:
		if err := json.Write(b.e.Out, run); err != nil {
			b.e.logger().Error("write", "err", err)
		}
	default:
		fmt.Fprintln(b.e.Out, testLine(b.e.Now(), remote, run))
	}
}

// clientOf names the program at the other end, "" = it did not say.
func clientOf(run *result.Run) string {
	w, n := run.Wire, run.NTTTCP
	version := ""
	if w != nil {
		version = w.PeerVersion
	}
	switch {
	case w != nil && w.Extension && n != nil:
		return "fullbore " + version + ", NTTTCP"
	case w != nil && w.Extension:
		return "fullbore " + version
	case n != nil && n.NoSync:
		return "NTTTCP, not synchronised"
	case n != nil && n.Dialect == string(plan.NTTTCPWindows):
		return "NTTTCP for Windows"
	case n != nil:
		return "NTTTCP for Linux"
	case version != "":
		return "iperf3 " + version
	}
	return ""
}

// testLine is the one line per test in the server's output.
func testLine(now time.Time, remote result.Addr, run *result.Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", now.Format("2006-01-02 15:04:05"), remote.Host)
	if who := clientOf(run); who != "" {
		fmt.Fprintf(&b, " (%s)", who)
	}
	fmt.Fprintf(&b, " %s", run.Test.Transport)
	if run.Test.ProbeOnly {
		b.WriteString(", probes only")
	}
	if run.End == result.Client {
		b.WriteString(", roles exchanged")
	}
	if n := len(run.Streams); n > 0 {
		fmt.Fprintf(&b, " %d stream", n)
		if n > 1 {
			b.WriteString("s")
		}
	}
	for _, s := range run.Sums {
		t, what := s.Receiver, "received"
		if s.Direction.Sender() == run.End {
			t, what = s.Sender, "sent"
		}
		if t != nil {
			fmt.Fprintf(&b, ", %s %s in %.2f s: %s", what, units.ByteSize(t.Bytes), t.Seconds(), units.BitRate(t.Rate()))
		}
	}
	for _, s := range run.Sums {
		if l := conclude.LossOf(run, s.Direction); l != nil && l.Sent > 0 {
			fmt.Fprintf(&b, ", %d of %d lost", l.Lost, l.Sent)
		}
	}
	if run.Err != nil {
		fmt.Fprintf(&b, ", broke off: %s", run.Err.Text)
	}
	return b.String()
}
