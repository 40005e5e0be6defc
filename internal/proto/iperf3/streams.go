package iperf3

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// streamID is the id of the i-th stream in creation order: 1, 3, 4, 5, … (spec §7.1).
func streamID(i int) int {
	if i == 0 {
		return 1
	}
	return i + 2
}

// directions lists the direction of every stream in creation order: the client opens
// those it sends on first (spec §7.1).
func directions(d plan.Direction, streams int) []result.Direction {
	var out []result.Direction
	if d != plan.Down {
		out = append(out, slices.Repeat([]result.Direction{result.Up}, streams)...)
	}
	if d != plan.Up {
		out = append(out, slices.Repeat([]result.Direction{result.Down}, streams)...)
	}
	return out
}

// socketNumber is the number by which iperf3's outputs show the i-th stream: its
// descriptor, which with a plain start is 5, 7, 9, … at a client and 5, 8, 10, 12, … at
// a server, there 5, 6, 9, 11, … with UDP, where the socket that waits for the next
// stream takes a number ahead (spec iperf3-cli §5.6; goldens udp_bidir_P2.server).
func socketNumber(e result.End, tr plan.Transport, base, i int) int {
	switch {
	case e == result.Client:
		return base + 2*i
	case i == 0:
		return base
	case tr == plan.UDP && i == 1:
		return base + 1
	case tr == plan.UDP:
		return base + 2*i
	}
	return base + 1 + 2*i
}

// stream is a data connection before the engine takes it.
type stream struct {
	conn *osnet.Conn
	dir  result.Direction
	id   int
	// early is how many datagrams of the test a UDP stream had before the engine took it:
	// at most the one that overtook the answer to its greeting.
	early int64
}

// flowsOf hands streams over to an engine at end e, and describes them.
func flowsOf(e result.End, tr plan.Transport, base int, window int64, streams []stream) ([]traffic.Flow, []result.Stream) {
	var flows []traffic.Flow
	var views []result.Stream
	for i, s := range streams {
		socket := socketNumber(e, tr, base, i)
		flows = append(flows, traffic.Flow{ID: s.id, Socket: socket, Direction: s.dir, Conn: s.conn, Send: s.dir.Sender() == e})
		views = append(views, result.Stream{
			ID: s.id, Socket: socket, Direction: s.dir, Local: s.conn.Local(), Remote: s.conn.Remote(), Buffers: buffersOf(s.conn, window),
		})
	}
	return flows, views
}

// mptcpNotices says when streams that should be MPTCP are plain TCP.
func mptcpNotices(flows []traffic.Flow) []result.Notice {
	fell := 0
	for _, f := range flows {
		c, ok := f.Conn.Net().(interface{ MultipathTCP() (bool, error) })
		if !ok {
			continue
		}
		if mp, err := c.MultipathTCP(); err == nil && !mp {
			fell++
		}
	}
	if fell == 0 {
		return nil
	}
	return []result.Notice{{
		Code: "mptcp-fallback", Level: result.Warn,
		Text: fmt.Sprintf("%d of %d streams run over plain TCP: the other end, or a box in between, does not do MPTCP", fell, len(flows)),
	}}
}

// buffersOf reads a socket's buffers and segment size; nil where the system does not tell.
func buffersOf(c *osnet.Conn, window int64) *result.Buffers {
	snd, rcv, err := c.Buffers()
	if err != nil {
		return nil
	}
	b := &result.Buffers{
		RequestedBytes: window, SndGranted: int64(snd), RcvGranted: int64(rcv),
		SndUsable: int64(osnet.UsableBuffer(snd)), RcvUsable: int64(osnet.UsableBuffer(rcv)),
	}
	if mss, err := c.MSS(); err == nil {
		b.MSS = int64(mss)
	}
	return b
}

// engineError words why there is no engine for a plan.
func engineError(code string, err error) *result.Error {
	var cpu *osnet.AffinityError
	if errors.As(err, &cpu) { // the other end must hear of its CPU (field case F37)
		return &result.Error{Code: "option", Text: cpu.Error(), Number: codeAffinity, Errno: linuxEINVAL}
	}
	return &result.Error{Code: code, Text: err.Error(), Number: codeInitTest}
}

// resultsOf is what end e tells the other about its totals.
func resultsOf(e result.End, t traffic.Totals) Results {
	r := Results{HasRetransmit: -1}
	if t.CPU != nil {
		r.CPU = *t.CPU
	}
	x := &ResultsExt{Usage: t.Usage}
	if t.Path != (result.DataPath{}) {
		x.Path = &t.Path
	}
	for _, f := range t.Flows {
		s := StreamResult{ID: f.ID, Bytes: f.Total.Bytes, Retransmits: -1, End: micro(f.Total.End)}
		if f.Send {
			if f.Total.Retransmits != nil {
				s.Retransmits = *f.Total.Retransmits
				r.HasRetransmit = 1
			} else {
				r.HasRetransmit = max(r.HasRetransmit, 0)
			}
		}
		datagramResult(&s, f)
		r.Streams = append(r.Streams, s)
		x.Streams = append(x.Streams, StreamExt{ID: f.ID, TCP: f.TCP, UDP: f.UDP, OutOfOrder: f.Total.OutOfOrder})
	}
	r.Ext = x
	return r
}

// micro rounds to microseconds, iperf3's resolution of end_time.
func micro(s float64) float64 { return math.Round(s*1e6) / 1e6 }

// checkIDs returns the first id of r that no stream has, 0 when all are known: iperf3
// ends the test for one (spec §10.3).
func checkIDs(r Results, streams []result.Stream) int {
	known := make(map[int]bool, len(streams))
	for _, s := range streams {
		known[s.ID] = true
	}
	for _, s := range r.Streams {
		if !known[s.ID] {
			return s.ID
		}
	}
	return 0
}

// merge fills the totals of both ends into the streams as end e knows them. other is
// nil when the exchange did not happen: then the other end's totals stay nil.
func merge(e result.End, streams []result.Stream, own traffic.Totals, other *Results) []result.Stream {
	out := slices.Clone(streams)
	remote := map[int]StreamResult{}
	remoteTCP := map[int]*result.TCPSummary{}
	if other != nil {
		for _, s := range other.Streams {
			remote[s.ID] = s
		}
		if other.Ext != nil {
			for _, s := range other.Ext.Streams {
				remoteTCP[s.ID] = s.TCP
			}
		}
	}
	for i := range out {
		s := &out[i]
		var mine, theirs *result.Total
		if i < len(own.Flows) {
			f := own.Flows[i]
			t := f.Total
			mine, s.TCP = &t, f.TCP
			if f.Err != nil {
				s.Ended = streamError(f)
			}
		}
		if r, ok := remote[s.ID]; ok {
			theirs = &result.Total{Bytes: r.Bytes, End: r.End}
			if !r.HasTimes && mine != nil { // before 3.2: its window is taken to be ours
				theirs.End = mine.End
			}
			if s.Direction.Sender() != e && r.Retransmits >= 0 {
				theirs.Retransmits = &r.Retransmits
			}
			s.RemoteTCP = remoteTCP[s.ID]
		}
		s.Sender, s.Receiver = mine, theirs
		if s.Direction.Sender() != e {
			s.Sender, s.Receiver = theirs, mine
		}
	}
	return out
}

// own is end e's total of a stream.
func own(s *result.Stream, e result.End) *result.Total {
	if s.Direction.Sender() == e {
		return s.Sender
	}
	return s.Receiver
}

// noteDisk reports the file of -F at end e, which every stream transfers whole; size is
// that of a file that is sent.
func noteDisk(streams []result.Stream, e result.End, name string, size int64) {
	for i := range streams {
		s := &streams[i]
		d := &result.Disk{Name: name, Size: size, Percent: 100, Sending: s.Direction.Sender() == e}
		if t := own(s, e); t != nil {
			d.Transferred = t.Bytes
		}
		if !d.Sending {
			d.Size = d.Transferred
		}
		if d.Size > 0 {
			d.Percent = int(min(100, d.Transferred*100/d.Size))
		}
		s.Disk = d
	}
}

// streamError says why a flow ended early.
func streamError(f traffic.FlowTotal) *result.Error {
	if long := tooLong(f.Err); long != nil {
		return long
	}
	e := &result.Error{Code: "stream-closed", Text: reason(f.Err), Errno: errno(f.Err), Number: codeStreamRead}
	if f.Send {
		e.Number = codeStreamWrite
	}
	return e
}

// emitter stamps events and hands them on one at a time. It is safe for concurrent use.
type emitter struct {
	mu    sync.Mutex
	out   result.Sink
	end   result.End // this end
	seq   map[result.End]int64
	start time.Time                // of this end's clock; zero before the data phase, when T is 0
	done  bool                     // no event follows
	drops map[result.End]hostDrops // that the rows have told
}

func newEmitter(end result.End, out result.Sink) *emitter {
	return &emitter{out: out, end: end, seq: map[result.End]int64{}, drops: map[result.End]hostDrops{}}
}

// begin sets the zero of T.
func (e *emitter) begin() {
	e.mu.Lock()
	e.start = time.Now()
	e.mu.Unlock()
}

// Event implements result.Sink for this end's events.
func (e *emitter) Event(ev result.Event) {
	if ev.End == "" {
		ev.End = e.end
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done || e.out == nil {
		return
	}
	if ev.End == e.end { // the other end numbers and times its own
		e.seq[ev.End]++
		ev.Seq = e.seq[ev.End]
		if ev.T == 0 && !e.start.IsZero() {
			ev.T = time.Since(e.start).Seconds()
		}
	}
	if ev.Kind == result.KindInterval && ev.Interval != nil && !ev.Interval.Omitted {
		e.addDrops(ev.End, ev.Interval.Host)
	}
	e.out.Event(ev)
}

func (e *emitter) notice(n result.Notice) {
	if n.End == "" {
		n.End = e.end
	}
	e.Event(result.Event{Kind: result.KindNotice, Notice: &n})
}

func (e *emitter) notices(ns []result.Notice) {
	seen := map[string]bool{}
	for _, n := range ns { // many streams meet the same clamp
		if key := n.Code + n.Text; !seen[key] {
			seen[key] = true
			e.notice(n)
		}
	}
}

func (e *emitter) close() {
	e.mu.Lock()
	e.done = true
	e.mu.Unlock()
}
