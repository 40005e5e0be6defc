// Package runner turns a Plan into a Run: it picks the protocol, gives it the host's
// facts and counters, folds the events and concludes. Everything that measures
// (command line, methods, schedule, fleet) comes through here.
package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// Runner runs Plans and listeners on this host. It is safe for concurrent use.
type Runner struct {
	Version string           // of this program
	Release string           // of iperf3 that peers and outputs are shown; "" = the newest known
	Now     func() time.Time // wall clock; nil = time.Now
	Log     *slog.Logger     // nil = silent
	// SocketBase shifts the stream numbers that iperf3's outputs show (5 by default;
	// an open log file makes it 6). Drop-in only.
	SocketBase int
	// Plain leaves the protocol's own words alone: no conclusions, no notices of ours.
	Plain bool
	// OneSocket makes servers keep one UDP socket for all streams (iperf3.Server.OneSocket).
	OneSocket bool
	// Slots bounds what runs at all servers of this Runner together; nil = each for itself.
	Slots *plan.Slots
	// Notices are said at the start of each run: what its caller decided for it.
	Notices []result.Notice
	// KeepRows bounds the intervals that a Run holds (result.Folder.Keep): of a very long test the
	// sink has them all, the Run the newest. 0 = all.
	KeepRows int
	// Totals is what else of this host an NTTTCP test counts over its measured time. Transport,
	// family and retransmissions are the test's to say.
	Totals oshost.TotalsOptions
	// Profiles are the uses that UDP runs are graded for; nil = conclude.Profiles().
	Profiles []conclude.Profile
}

// Run runs one test. Every event goes to sink (nil = nobody) as it happens. The Run
// holds whatever was measured, also with an error; the error is Run.Err or, when the
// Plan is wrong, that of Validate. It returns when the test is over or ctx ends.
func (r *Runner) Run(ctx context.Context, p plan.Plan, sink result.Sink) (*result.Run, error) {
	if err := p.Validate(); err != nil {
		return nil, &result.Error{Code: "plan", Text: err.Error()}
	}
	p = p.Filled()
	proto, err := protocolOf(p.Protocol)
	if err != nil {
		return nil, err
	}
	rec := &recorder{sink: sink, id: r.newID(), tool: r.tool(), started: result.Now(r.now())}
	rec.folder.Keep = r.KeepRows
	if !r.Plain {
		rec.before = func(run *result.Run) []result.Notice {
			return append(append([]result.Notice(nil), r.Notices...), conclude.Before(run)...)
		}
	}
	host := newHostView(ctx, p.Host, p.Family)
	defer host.close()
	tool := r.tool()
	host.facts.Tool = &tool
	err = proto.run(ctx, r, p, host, rec)
	if !r.Plain {
		end := result.Client
		if p.Swap != nil {
			end = result.Server
		}
		for _, n := range host.notices(end) {
			rec.Event(result.Event{Kind: result.KindNotice, End: end, Notice: &n})
		}
	}
	run := rec.run()
	if run.Test.Transport == "" { // it broke before anything was agreed
		run.Test, run.End, run.Protocol = p.Test(), result.Client, p.Protocol
		run.Hosts.Client = host.facts
	}
	var broke *result.Error
	switch {
	case run.Err != nil:
		broke = run.Err
	case errors.As(err, &broke):
		run.Err = broke
	case err != nil:
		broke = &result.Error{Code: "failed", Text: err.Error()}
		run.Err = broke
	}
	if !r.Plain {
		for _, e := range (conclude.With{Profiles: r.Profiles}).Events(run) {
			if sink != nil {
				sink.Event(e)
			}
		}
	}
	if broke != nil {
		return run, broke
	}
	return run, nil
}

// Hooks connect one test of a server to its surroundings.
type Hooks struct {
	Sink result.Sink // nil = nobody listens
	// Output renders what this server shows of the run, for --get-server-output.
	Output func(*result.Run) (text string, json []byte)
	// OnMessage gets the number and times of each message of an NTTTCP test that numbers them;
	// several may come at once. nil = nobody wants them.
	OnMessage func(traffic.Message)
	// Done is called when the test is over and its last event was delivered; nil = not.
	Done func()
}

// Serve answers clients on the listeners until ctx ends or a one-off test is done.
// newTest is called for each accepted test. It closes the listeners.
func (r *Runner) Serve(ctx context.Context, s plan.Serve, ln []net.Listener, newTest func(remote result.Addr) Hooks) error {
	if err := s.Validate(); err != nil {
		return &result.Error{Code: "plan", Text: err.Error()}
	}
	return serveIperf3(ctx, r, s.Filled(), ln, newTest)
}

func (r *Runner) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}

func (r *Runner) tool() result.Tool { return result.Tool{Name: "fullbore", Version: r.Version} }

func (r *Runner) newID() string {
	id, err := ulid.New(ulid.Timestamp(r.now()), rand.Reader)
	if err != nil { // the system has no randomness: an id is not worth a failed test
		return ""
	}
	return id.String()
}

// recorder folds events while it hands them on, stamping the head with what only
// the runner knows. Events of both ends arrive one at a time but from two goroutines.
type recorder struct {
	mu      sync.Mutex
	folder  result.Folder
	sink    result.Sink
	id      string
	tool    result.Tool
	started time.Time
	// before gives the notices that follow a run's start; nil = none.
	before func(*result.Run) []result.Notice
}

// Event implements result.Sink.
func (c *recorder) Event(e result.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Head != nil {
		head := *e.Head
		head.Schema, head.ID, head.Tool, head.Started = result.Schema, c.id, c.tool, c.started
		e.Head = &head
	}
	c.hand(e)
	if e.Kind == result.KindStart && c.before != nil {
		for _, n := range c.before(c.folder.Run()) {
			c.hand(result.Event{Kind: result.KindNotice, End: n.End, Notice: &n})
		}
		c.before = nil
	}
}

// hand folds an event and hands it on. The caller holds the lock.
func (c *recorder) hand(e result.Event) {
	c.folder.Event(e)
	if c.sink != nil {
		c.sink.Event(e)
	}
}

func (c *recorder) run() *result.Run {
	c.mu.Lock()
	defer c.mu.Unlock()
	run := c.folder.Run()
	run.ID, run.Tool, run.Started = c.id, c.tool, c.started
	return run
}

// protocolOf finds a protocol by name.
func protocolOf(name string) (protocol, error) {
	for _, p := range protocols {
		if p.name == name {
			return p, nil
		}
	}
	return protocol{}, &result.Error{Code: "plan", Text: fmt.Sprintf("no protocol is called %q", name)}
}
