package ntttcp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/result"
)

// beat is a second of the protocol in these tests. Much less than a second is too little for a
// machine that does something else as well: threads wait for a core for hundreds of milliseconds.
const beat = time.Second

// quick are timeouts that fit it. Those that only bound a hang stay long.
func quick() Timeouts {
	return Timeouts{
		Connect: 20 * time.Second, Header: 10 * time.Second, Answer: 20 * time.Second, Setup: 20 * time.Second, Turn: 20 * time.Second,
		Settle: 50 * time.Millisecond, Stale: 20 * time.Second, Silence: 5 * time.Second, Linger: 60 * time.Millisecond, Parting: time.Second,
	}
}

// recorder collects the events of one run.
type recorder struct {
	mu     sync.Mutex
	events []result.Event
	done   chan struct{} // closed by hooks.Done
}

func newRecorder() *recorder { return &recorder{done: make(chan struct{})} }

func (r *recorder) Event(e result.Event) {
	r.mu.Lock()
	r.events = append(r.events, e)
	r.mu.Unlock()
}

func (r *recorder) all() []result.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]result.Event(nil), r.events...)
}

func (r *recorder) run() *result.Run {
	run := result.Fold(r.all())
	return run
}

func (r *recorder) has(k result.Kind) bool {
	for _, e := range r.all() {
		if e.Kind == k {
			return true
		}
	}
	return false
}

func (r *recorder) notice(code string) *result.Notice {
	for _, e := range r.all() {
		if e.Notice != nil && e.Notice.Code == code {
			return e.Notice
		}
	}
	return nil
}

// moved reports that a row had bytes.
func (r *recorder) moved() bool {
	for _, e := range r.all() {
		if e.Interval != nil {
			for _, s := range e.Interval.Streams {
				if s.Bytes > 0 {
					return true
				}
			}
		}
	}
	return false
}

// told counts a milestone.
func (r *recorder) told(code string) int {
	n := 0
	for _, e := range r.all() {
		if e.Milestone != nil && e.Milestone.Code == code {
			n++
		}
	}
	return n
}

// until polls a condition.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(40 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: did not happen", what)
		}
	}
}

// fixture is a receiver on free loopback ports.
type fixture struct {
	r      *Receiver
	lns    Listeners
	stop   context.CancelCauseFunc
	served chan error

	mu   sync.Mutex
	runs []*recorder
}

// serve starts a receiver with c. Its sync port and data ports are unrelated numbers; see dial.
func serve(t testing.TB, c Config, change func(*Receiver)) *fixture {
	t.Helper()
	return serveBoth(t, c, c.Transport == "udp", c.Transport != "udp", change)
}

// serveBoth is serve with the data ports of either transport, or both.
func serveBoth(t testing.TB, c Config, udp, tcp bool, change func(*Receiver)) *fixture {
	t.Helper()
	return serveWith(t, c, udp, tcp, change, nil)
}

// serveWith is serveBoth with further listeners.
func serveWith(t testing.TB, c Config, udp, tcp bool, change func(*Receiver), more func(*Listeners)) *fixture {
	t.Helper()
	c.Ports = max(c.Ports, 1)
	c.Interval = beat / 4
	f := &fixture{r: &Receiver{Config: c, Timeouts: quick(), second: beat}, served: make(chan error, 1)}
	f.r.NewTest = func(result.Addr) TestHooks {
		rec := newRecorder()
		f.mu.Lock()
		f.runs = append(f.runs, rec)
		f.mu.Unlock()
		return TestHooks{Sink: rec, Done: func() { close(rec.done) }}
	}
	if change != nil {
		change(f.r)
	}
	if os.Getenv("NTTTCP_LOG") != "" {
		f.r.Log = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("test", t.Name())
	}
	host := "127.0.0.1:0"
	if c.Family == 6 {
		host = "[::1]:0"
	}
	listen := func() net.Listener {
		ln, err := net.Listen("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		return ln
	}
	if !c.NoSync {
		f.lns.Sync = listen()
	}
	for range c.Ports {
		if udp {
			f.lns.Packets = append(f.lns.Packets, listenUDP(t, host))
		}
		if tcp {
			f.lns.Data = append(f.lns.Data, listen())
		}
		f.lns.Tokens = append(f.lns.Tokens, listen())
	}
	if c.PortSync {
		f.lns.PortSync = listen()
	}
	if more != nil {
		more(&f.lns)
	}
	ctx, stop := context.WithCancelCause(context.Background())
	f.stop = stop
	go func() { f.served <- f.r.Serve(ctx, f.lns) }()
	until(t, "the receiver to begin", func() bool {
		f.r.mu.Lock()
		defer f.r.mu.Unlock()
		return f.r.running != nil || len(f.served) > 0
	})
	t.Cleanup(func() {
		stop(errors.New("the test is over"))
		select {
		case <-f.r.stopped(f.served):
		case <-time.After(40 * time.Second):
			t.Error("the receiver did not end")
		}
	})
	return f
}

// stopped is served, left readable for whoever asks again.
func (r *Receiver) stopped(served chan error) <-chan error {
	err := <-served
	served <- err
	return served
}

func listenUDP(t testing.TB, host string) *osnet.PacketConn {
	t.Helper()
	ap := netip.MustParseAddrPort(host)
	u, _, err := osnet.ListenUDP(context.Background(), ap, osnet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pc, err := osnet.NewPacketConn(u)
	if err != nil {
		t.Fatal(err)
	}
	return pc
}

// at returns where the meant port is: DefaultPort-1 is the sync port.
func (f *fixture) at(port int) netip.AddrPort {
	i := port - DefaultPort
	switch {
	case i < 0 && f.lns.Sync != nil:
		return netip.MustParseAddrPort(f.lns.Sync.Addr().String())
	case i < 0:
		return netip.AddrPort{}
	case i >= TokenOffset && i-TokenOffset < len(f.lns.Tokens):
		return netip.MustParseAddrPort(f.lns.Tokens[i-TokenOffset].Addr().String())
	case i < len(f.lns.Data):
		return netip.MustParseAddrPort(f.lns.Data[i].Addr().String())
	case i < len(f.lns.Packets):
		return f.lns.Packets[i].LocalAddr()
	}
	return netip.AddrPort{}
}

// tests returns the runs so far.
func (f *fixture) tests() []*recorder {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*recorder(nil), f.runs...)
}

// finished waits for the n-th run's end and returns it.
func (f *fixture) finished(t testing.TB, n int) *result.Run {
	t.Helper()
	until(t, "a run", func() bool { return len(f.tests()) > n })
	rec := f.tests()[n]
	select {
	case <-rec.done:
	case <-time.After(40 * time.Second):
		t.Fatalf("run %d does not end; events: %v", n, kinds(rec.all()))
	}
	return rec.run()
}

func kinds(events []result.Event) []result.Kind {
	var out []result.Kind
	for _, e := range events {
		out = append(out, e.Kind)
	}
	return out
}

type dialer = func(context.Context, string, netip.AddrPort, osnet.Options) (*osnet.Conn, []result.Notice, error)

// dialFrom makes a Sender's dial that goes to the ports of at, from the local address.
func dialFrom(local string, at func(port int) netip.AddrPort) dialer {
	return func(ctx context.Context, network string, to netip.AddrPort, o osnet.Options) (*osnet.Conn, []result.Notice, error) {
		there := at(int(to.Port()))
		if !there.IsValid() {
			there = netip.AddrPortFrom(to.Addr(), 1) // nobody listens on tcpmux
		}
		if local != "" {
			o.BindHost = local
		}
		return osnet.Dial(ctx, network, there, o)
	}
}

// sending is a Sender that runs.
type sending struct {
	rec  *recorder
	stop context.CancelCauseFunc
	err  chan error
}

var errInterrupt = &result.Error{Code: "interrupted", Interrupted: true, Text: "interrupted"}

func send(t testing.TB, c Config, dial dialer) *sending {
	t.Helper()
	c.Interval = beat / 4
	return sendAs(t, &Sender{Config: c, Timeouts: quick(), second: beat, dial: dial})
}

// sendAs runs s.
func sendAs(t testing.TB, s *Sender) *sending {
	t.Helper()
	ctx, stop := context.WithCancelCause(context.Background())
	x := &sending{rec: newRecorder(), stop: stop, err: make(chan error, 1)}
	over := make(chan struct{})
	go func() {
		defer close(over)
		x.err <- s.Run(ctx, x.rec)
	}()
	t.Cleanup(func() {
		stop(errInterrupt)
		select {
		case <-over:
		case <-time.After(40 * time.Second):
			t.Error("the sender did not end")
		}
	})
	return x
}

// wait returns the code of the sender's error, "" = none.
func (s *sending) wait(t testing.TB) string {
	t.Helper()
	select {
	case err := <-s.err:
		return code(err)
	case <-time.After(40 * time.Second):
		t.Fatalf("the sender does not end; events: %v", kinds(s.rec.all()))
	}
	return ""
}

func code(err error) string {
	var e *result.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Code
	}
	return err.Error()
}

// bytesOf is what one end counted.
func bytesOf(run *result.Run, e result.End) int64 {
	var n int64
	for _, s := range run.Streams {
		for end, total := range map[result.End]*result.Total{result.Client: s.Sender, result.Server: s.Receiver} {
			if end == e && total != nil {
				n += total.Bytes
			}
		}
	}
	return n
}

// checkRows: the counted rows add up to the totals, and the run has its parts in order.
func checkRows(t testing.TB, run *result.Run, e result.End) {
	t.Helper()
	var rows int64
	for _, iv := range run.Rows {
		if iv.Omitted || iv.End != e {
			continue
		}
		for _, s := range iv.Streams {
			rows += s.Bytes
		}
	}
	if total := bytesOf(run, e); total != rows {
		t.Errorf("counted rows have %d bytes, totals %d", rows, total)
	}
	if run.Protocol != protocol || run.End != e {
		t.Errorf("the run is of %s at the %s", run.Protocol, run.End)
	}
}

// readWord reads one word, and not a byte more.
func readWord(r io.Reader) (Word, error) {
	var b [WordSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, err
	}
	w, _ := ParseWord(b[:])
	return w, nil
}
