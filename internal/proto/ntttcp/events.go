package ntttcp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// protocol is the name in every Run.
const protocol = "ntttcp"

// emitter stamps this end's events and hands them on one at a time. It is safe for
// concurrent use.
type emitter struct {
	mu    sync.Mutex
	out   result.Sink
	end   result.End
	seq   int64
	start time.Time      // of this end's clock; zero before the data phase, when T is 0
	done  bool           // no event follows
	peer  *ext.Forwarder // gets them too; nil = a plain peer
}

// begin sets the zero of T.
func (e *emitter) begin() {
	e.mu.Lock()
	e.start = time.Now()
	e.mu.Unlock()
}

// Event implements result.Sink.
func (e *emitter) Event(ev result.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done {
		return
	}
	e.seq++
	ev.End, ev.Seq = e.end, e.seq
	if ev.T == 0 && !e.start.IsZero() {
		ev.T = time.Since(e.start).Seconds()
	}
	if e.out != nil {
		e.out.Event(ev)
	}
	e.peer.Event(ev)
}

// relay hands on an event of the other end, which numbers and times its own.
func (e *emitter) relay(ev result.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.done && e.out != nil {
		e.out.Event(ev)
	}
}

// tee lets the other end have the events from now on.
func (e *emitter) tee(f *ext.Forwarder) {
	e.mu.Lock()
	e.peer = f
	e.mu.Unlock()
}

func (e *emitter) notice(n result.Notice) {
	if n.End == "" {
		n.End = e.end
	}
	e.Event(result.Event{Kind: result.KindNotice, Notice: &n})
}

// notices tells each once: many connections meet the same clamp.
func (e *emitter) notices(ns []result.Notice) {
	seen := map[string]bool{}
	for _, n := range ns {
		if key := n.Code + n.Text; !seen[key] {
			seen[key] = true
			e.notice(n)
		}
	}
}

// tell tells a milestone.
func (e *emitter) tell(m result.Milestone) {
	m.Time = result.Now(time.Now())
	e.Event(result.Event{Kind: result.KindMilestone, Milestone: &m})
}

func (e *emitter) told(code string) { e.tell(result.Milestone{Code: code}) }

// maxConnectionsTold bounds the milestones of single connections.
const maxConnectionsTold = 1024

// connections tells every connection, as the original's -V does.
func (e *emitter) connections(code string, views []result.Stream) {
	for _, v := range views[:min(len(views), maxConnectionsTold)] {
		e.tell(result.Milestone{Code: code, Socket: v.Socket, Local: &v.Local, Remote: &v.Remote})
	}
}

// head hands on a copy, so that h can change.
func (e *emitter) head(k result.Kind, h result.Run) {
	if h.Wire != nil {
		w := *h.Wire
		h.Wire = &w
	}
	if h.NTTTCP != nil {
		n := *h.NTTTCP
		h.NTTTCP = &n
	}
	e.Event(result.Event{Kind: k, Head: &h})
}

func (e *emitter) close() {
	e.mu.Lock()
	e.done = true
	e.mu.Unlock()
}

// flowsOf hands connections over to an engine at end e, and describes them. Payload goes up.
// thread numbers the worker of the original that would serve a connection.
func flowsOf(e result.End, window int64, conns []*osnet.Conn, thread func(i int) int) ([]traffic.Flow, []result.Stream) {
	flows := make([]traffic.Flow, len(conns))
	views := make([]result.Stream, len(conns))
	for i, c := range conns {
		flows[i] = traffic.Flow{ID: i + 1, Socket: i + 1, Direction: result.Up, Conn: c, Send: e == result.Client}
		views[i] = result.Stream{ID: i + 1, Socket: i + 1, Direction: result.Up, Local: c.Local(), Remote: c.Remote(), Thread: new(int)}
		*views[i].Thread = thread(i)
		if b, err := c.BufferFacts(window); err == nil {
			views[i].Buffers = &b
		}
	}
	return flows, views
}

// finishOf makes the Finish of one end. views are its streams; those that came later are
// appended by whoever knows them.
func finishOf(e result.End, views []result.Stream, t traffic.Totals, machine *result.HostTotal, began time.Time) *result.Finish {
	f := &result.Finish{Streams: append([]result.Stream(nil), views...), Usage: t.Usage, Path: &t.Path, Elapsed: time.Since(began).Seconds(), Zero: t.Zero}
	f.CPU.Set(e, t.CPU)
	if machine != nil {
		f.Machines = &result.HostTotals{}
		if e == result.Client {
			f.Machines.Client = machine
		} else {
			f.Machines.Server = machine
		}
	}
	for i := range f.Streams {
		if i >= len(t.Flows) {
			break
		}
		s, fl := &f.Streams[i], &t.Flows[i]
		total := fl.Total
		s.TCP, s.UDP, s.IO = fl.TCP, fl.UDP, fl.IO
		if fl.Send {
			s.Sender = &total
		} else {
			s.Receiver = &total
		}
		if fl.Err != nil {
			s.Ended = &result.Error{Code: "stream-closed", Text: fl.Err.Error(), Remote: true, Errno: osnet.Errno(fl.Err)}
		}
	}
	return f
}

// endedWell: a connection that the other end closed when its time was over did not die.
func endedWell(f *result.Finish) {
	for i := range f.Streams {
		f.Streams[i].Ended = nil
	}
}

// asError makes every error one that a Run can hold.
func asError(ctx context.Context, err error) *result.Error {
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
		err = context.Cause(ctx)
		if e := asResult(err); e != nil {
			return e
		}
		return &result.Error{Code: "interrupted", Interrupted: true, Text: "stopped: " + err.Error()}
	}
	if e := asResult(err); e != nil {
		return e
	}
	return &result.Error{Code: "failed", Text: err.Error(), Errno: osnet.Errno(err)}
}

func asResult(err error) *result.Error {
	var e *result.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &ne) && ne.Timeout()
}

// peerOf is a connection's remote address without port, IPv4-mapped as IPv4.
func peerOf(nc net.Conn) netip.Addr {
	ap, err := netip.ParseAddrPort(nc.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}

// addrOf is a as results show it.
func addrOf(a net.Addr) result.Addr {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return result.Addr{Host: a.String()}
	}
	return result.Addr{Host: ap.Addr().Unmap().String(), Port: int(ap.Port())}
}
