package ntttcp

import (
	"context"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// tally counts received datagrams of one test: NTTTCP's carry nothing but their length
// (linux §3.6), so there is no account of loss, order or delay, and a stream is whoever sends
// from one address to one port. It has an Engine's life, but counts from the beginning, which
// the first datagram is; whoever reads the sockets calls add.
type tally struct {
	warmup, duration time.Duration
	interval         time.Duration
	most             int           // streams; 0 = maxTallied
	maxRate          int64         // bit/s, over which the test ends; 0 = no limit
	idle             time.Duration // so long a silence after the first datagram ends it; 0 = never
	out              result.Sink
	host             func() *result.HostSample
	held             []*result.Interval // of the clock's goroutine: see emit

	t0      time.Time
	running atomic.Bool
	tails   atomic.Bool  // what comes after the end is counted apart, for loss
	way     atomic.Int32 // viaCalls …

	fired    chan struct{}
	fireOnce sync.Once
	reason   traffic.Reason
	halt     chan struct{}
	haltOnce sync.Once
	done     chan struct{} // the clock is gone; nil before Start

	messages  sync.Mutex            // guards the two that follow
	onMessage func(traffic.Message) // nil = not known yet who wants them
	early     []traffic.Message     // came meanwhile

	mu       sync.RWMutex // guards what follows
	flows    map[datagramFlow]*tallied
	list     []*tallied
	drops    socketDrops
	awaited  awaited
	measured bool
	origin   int64 // ns since t0
	nextRow  int64
	index    int
	rowEnd   int64                     // of the last row; ns since t0
	stopped  int64                     // 0 = counting
	closed   bool                      // the last row was made
	refused  map[datagramFlow]struct{} // streams beyond most; a bounded number
	tailed   int64                     // when the last datagram came after the end
	final    *traffic.Totals
}

// datagramFlow tells streams apart.
type datagramFlow struct {
	port int // index of the socket
	from netip.AddrPort
}

// tallied is one stream. The counters are the reader's, the marks the sampler's.
type tallied struct {
	view           result.Stream
	port           int // index of its socket; −1 = unknown
	first          int // bytes of its first datagram
	bytes, packets atomic.Int64
	last           atomic.Int64 // ns since t0
	tail           atomic.Int64 // datagrams after the end
	base, prev     tallyMark
	rounds         rounds // guarded by tally.mu, as wrong
	wrong          error  // bytes that were not sent, the first of them
}

// rounds are the round trips of a stream that answers: each lasts from the answer before it to its
// own, as with a connection of TCP.
type rounds struct {
	last, n, sum, least, most int64 // ns; last since t0, 0 = none
}

// exchanged notes that a datagram of f was answered.
func (t *tally) exchanged(f datagramFlow) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.flows[f]
	if s == nil || t.stopped != 0 {
		return
	}
	now, r := max(t.now(), 1), &s.rounds
	if took := now - r.last; r.last > 0 && r.last >= t.origin && t.measured {
		if r.n++; r.n == 1 || took < r.least {
			r.least = took
		}
		r.sum, r.most = r.sum+took, max(r.most, took)
	}
	r.last = now
}

type tallyMark struct{ at, bytes, packets int64 }

func newTally(s schedule, interval, idle time.Duration, out result.Sink, host func() *result.HostSample) *tally {
	t := &tally{
		warmup: s.warmup, interval: interval, idle: idle, out: out, host: host,
		t0: time.Now(), measured: s.warmup <= 0 && s.measured >= 0, nextRow: int64(interval),
		fired: make(chan struct{}), halt: make(chan struct{}), flows: map[datagramFlow]*tallied{}, refused: map[datagramFlow]struct{}{},
	}
	switch {
	case s.measured < 0:
		t.warmup = math.MaxInt64 / 2
	case s.cooldown == 0:
		t.duration = s.measured
	}
	t.running.Store(true)
	return t
}

func (t *tally) now() int64 { return int64(time.Since(t.t0)) }

// add counts a datagram of n bytes. local is the address it came to.
func (t *tally) add(f datagramFlow, local result.Addr, n int) { t.addRun(f, local, n, 1) }

// addRun counts so many datagrams of n bytes each.
func (t *tally) addRun(f datagramFlow, local result.Addr, n, times int) {
	if !t.running.Load() {
		t.addTail(f, times)
		return
	}
	t.mu.RLock()
	s := t.flows[f]
	t.mu.RUnlock()
	now := t.now()
	if s == nil {
		s = t.open(f, local, n)
	}
	if s == nil || n == 1 && s.first > 1 { // a sender that is done nudges: see senderRun.nudge
		return
	}
	s.bytes.Add(int64(n) * int64(times))
	s.packets.Add(int64(times))
	s.last.Store(max(now, 1))
}

// through notes how a reader takes datagrams.
func (t *tally) through(in *osnet.PacketReceiver) {
	if !in.Batched() {
		return
	}
	most, bytes := in.Joined()
	way := viaBatches
	switch {
	case most > wholeDatagrams || bytes > wholeBytes:
		way = viaWhole
	case most > 0:
		way = viaJoined
	}
	if way > t.way.Load() {
		t.way.Store(way)
	}
}

// How datagrams came, each way better than the one before it.
const (
	viaCalls   int32 = iota // one by one
	viaBatches              // recvmmsg
	viaJoined               // joined by this host's stack
	viaWhole                // as the sender's super-packets, which nobody cut
)

// More than a card's receive offload is likely to put together was never cut.
const (
	wholeDatagrams = 16
	wholeBytes     = 65535 / 2
)

// path names the way for the record.
func (t *tally) path() result.DataPath {
	p := result.DataPath{Rx: "copy", Worker: "goroutine", Batch: "plain"}
	switch t.way.Load() {
	case viaBatches:
		p.Batch = "recvmmsg"
	case viaJoined:
		p.Batch = "gro"
	case viaWhole:
		p.Batch, p.Uncut = "gro", true
	}
	return p
}

// maxTallied bounds the streams of one test: anybody can send from many ports.
const maxTallied = 32768

// limit is how many streams are counted at most.
func (t *tally) limit() int {
	if t.most > 0 {
		return min(t.most, maxTallied)
	}
	return maxTallied
}

func (t *tally) open(f datagramFlow, local result.Addr, n int) *tallied {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.flows[f]; s != nil || t.stopped != 0 {
		return s
	}
	if s := t.awaited.take(f); s != nil {
		s.view.Local, s.view.Remote.Host, s.view.Remote.Port, s.first = local, f.from.Addr().Unmap().String(), int(f.from.Port()), n
		s.port = f.port
		t.flows[f] = s
		return s
	}
	if len(t.list) >= t.limit() {
		if len(t.refused) < maxTallied {
			t.refused[f] = struct{}{}
		}
		return nil
	}
	id := len(t.list) + 1
	s := &tallied{first: n, port: f.port, view: result.Stream{
		ID: id, Socket: id, Direction: result.Up, Local: local,
		Remote: result.Addr{Host: f.from.Addr().Unmap().String(), Port: int(f.from.Port())},
	}}
	at := int64(0)
	if t.measured {
		at = t.origin
	}
	s.base = tallyMark{at: at}
	s.prev.at = max(at, t.rowEnd) // a row has one time for all
	t.flows[f] = s
	t.list = append(t.list, s)
	return s
}

// has reports that f is one of the streams.
func (t *tally) has(f datagramFlow) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.flows[f] != nil || t.awaited.knows(f)
}

// senders lists where datagrams came from.
func (t *tally) senders() []netip.AddrPort {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]netip.AddrPort, 0, len(t.flows))
	for f := range t.flows {
		out = append(out, f.from)
	}
	return out
}

// views describes the streams so far.
func (t *tally) views() []result.Stream {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]result.Stream, len(t.list))
	for i, s := range t.list {
		out[i] = s.view
	}
	return out
}

// Start begins the rows. The count began when t was made.
func (t *tally) Start() {
	t.done = make(chan struct{})
	go t.clock()
}

func (t *tally) fire(r traffic.Reason) {
	t.fireOnce.Do(func() {
		t.reason = r
		close(t.fired)
	})
}

// clock is the sampling goroutine; it ends when halt is closed.
func (t *tally) clock() {
	defer close(t.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		row, next := t.tick(t.now())
		t.emit(row)
		timer.Reset(time.Duration(next - t.now()))
		select {
		case <-timer.C:
		case <-t.halt:
			return
		}
	}
}

// tick does what is due and returns when to be called next.
func (t *tally) tick(now int64) (row *result.Interval, next int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped != 0 {
		return nil, math.MaxInt64
	}
	end := int64(math.MaxInt64)
	if t.measured && t.duration > 0 {
		if end = t.origin + int64(t.duration); now >= end {
			t.stop(now)
			t.fire(traffic.Duration)
			return nil, math.MaxInt64
		}
	}
	switch {
	case !t.measured && now >= int64(t.warmup):
		row = t.row(now, false)
		t.measured, t.origin, t.nextRow = true, now, now+int64(t.interval)
		for _, s := range t.list {
			s.base = s.prev
		}
	case now >= t.nextRow && (end == math.MaxInt64 || t.nextRow < end-int64(t.interval)/100):
		row = t.row(now, false)
	}
	for t.nextRow <= now {
		t.nextRow += int64(t.interval)
	}
	next = min(t.nextRow, end)
	if !t.measured {
		next = min(next, int64(t.warmup))
	}
	if t.maxRate > 0 {
		var bytes int64
		for _, s := range t.list {
			bytes += s.bytes.Load()
		}
		if float64(bytes)*8 > float64(t.maxRate)*(seconds(now)+1) {
			t.fire(traffic.Budget)
		}
		next = min(next, now+int64(policeEvery))
	}
	if t.idle > 0 {
		if last := t.lastByte(); last > 0 {
			if idle := int64(t.patience()); now >= last+idle {
				t.fire(traffic.PeerClosed)
			} else {
				next = min(next, last+idle)
			}
		}
	}
	return row, max(next, now+int64(time.Millisecond))
}

// policeEvery is how often what came is compared with maxRate.
const policeEvery = 100 * time.Millisecond

// dense is how many datagrams a second a sender sends at least whose silence ends its test early.
const dense = 20

// patience is how long a silence ends the test: the slower the sender the longer.
func (t *tally) patience() time.Duration {
	var packets int64
	for _, s := range t.list {
		packets += s.packets.Load()
	}
	if float64(packets) > dense*seconds(t.lastByte()) && packets > dense {
		return min(t.idle, time.Second)
	}
	return t.idle
}

func (t *tally) lastByte() int64 {
	var last int64
	for _, s := range t.list {
		last = max(last, s.last.Load())
	}
	return last
}

// stop ends the count at now. t.mu is held.
func (t *tally) stop(now int64) {
	if t.stopped != 0 {
		return
	}
	t.running.Store(false)
	t.stopped = max(now, 1)
}

// emit hands a row on. Where silence ends the test, rows of silence wait until there is one that
// is none: those at the end are no part of it.
func (t *tally) emit(row *result.Interval) {
	if row == nil || t.out == nil {
		return
	}
	if t.host != nil {
		row.Host = t.host()
	}
	if t.idle > 0 && *row.Sums[0].Packets == 0 {
		t.held = append(t.held, row)
		if len(t.held) > maxHeld { // nothing came yet at all
			t.held = t.held[1:]
		}
		return
	}
	for _, h := range t.held {
		t.hand(h)
	}
	t.held = nil
	t.hand(row)
}

// maxHeld bounds the rows of silence that are kept.
const maxHeld = 1024

func (t *tally) hand(row *result.Interval) {
	t.out.Event(result.Event{Kind: result.KindInterval, End: result.Server, T: seconds(t.now()), Interval: row})
}

// row makes the interval from the previous marks to now. t.mu is held.
func (t *tally) row(now int64, last bool) *result.Interval {
	origin := int64(0)
	if t.measured {
		origin = t.origin
	}
	iv := &result.Interval{End: result.Server, Index: t.index, Omitted: !t.measured, Streams: make([]result.StreamInterval, len(t.list))}
	t.index++
	sum := result.IntervalSum{Direction: result.Up, Stop: seconds(now - origin)}
	var packets int64
	for i, s := range t.list {
		m := tallyMark{at: now, bytes: s.bytes.Load(), packets: s.packets.Load()}
		n := m.packets - s.prev.packets
		iv.Streams[i] = result.StreamInterval{
			ID: s.view.ID, Socket: s.view.Socket, Start: seconds(s.prev.at - origin), Stop: seconds(now - origin),
			Bytes: m.bytes - s.prev.bytes, Packets: &n,
		}
		packets += n
		sum.Bytes += m.bytes - s.prev.bytes
		s.prev = m
	}
	start := max(t.rowEnd, origin)
	t.rowEnd = now
	if len(iv.Streams) > 0 {
		iv.Start, sum.Start = iv.Streams[0].Start, iv.Streams[0].Start
	} else {
		iv.Start, sum.Start = seconds(start-origin), seconds(start-origin)
	}
	iv.Stop = seconds(now - origin)
	sum.Packets, sum.BPS = &packets, result.Rate(sum.Bytes, sum.Stop-sum.Start)
	iv.Sums = []result.IntervalSum{sum}
	iv.Partial = last && iv.Stop-iv.Start < 0.99*t.interval.Seconds()
	return iv
}

// Wait is Engine.Wait.
func (t *tally) Wait(ctx context.Context) (traffic.Reason, error) {
	select {
	case <-t.fired:
		return t.reason, nil
	case <-ctx.Done():
		return traffic.Cancelled, context.Cause(ctx)
	}
}

// StopSend has nothing to stop.
func (t *tally) StopSend() {}

// StopReceive ends the count. Datagrams carry no number, so what comes later cannot be told
// from what is late.
func (t *tally) StopReceive(bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done == nil {
		return
	}
	now := t.now()
	select {
	case <-t.fired:
		if t.reason == traffic.PeerClosed { // the silence that told so is no part of the test
			now = max(t.lastByte(), t.origin)
		}
	default:
	}
	t.stop(now)
}

// prevEnd is the end of the last row, or the beginning of the count.
func (t *tally) prevEnd() int64 {
	return max(t.origin, t.rowEnd)
}

// Snapshot returns the totals so far.
func (t *tally) Snapshot() traffic.Totals {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.totals(t.now())
}

// totals makes Totals of the counters now, or, once stopped and closed by a row, of its marks.
func (t *tally) totals(now int64) traffic.Totals {
	if t.final != nil {
		return *t.final
	}
	if t.stopped != 0 {
		now = t.stopped
	}
	out := traffic.Totals{Path: t.path(), Flows: make([]traffic.FlowTotal, len(t.list))}
	origin := t.origin
	if !t.measured {
		origin = now
	}
	for i, s := range t.list {
		m := tallyMark{bytes: s.bytes.Load(), packets: s.packets.Load()}
		if t.closed { // what a reader still had in hand is in no row
			m = s.prev
		}
		base := s.base
		if !t.measured {
			base = m
		}
		packets := m.packets - base.packets
		out.Flows[i] = traffic.FlowTotal{
			ID: s.view.ID, LastByte: seconds(s.last.Load() - origin), OmittedBytes: base.bytes,
			Total: result.Total{End: seconds(now - origin), Bytes: m.bytes - base.bytes, Packets: &packets},
		}
		out.Flows[i].Err = s.wrong
		if r := &s.rounds; r.n > 0 {
			out.Flows[i].IO = &result.IOCount{Completions: packets, Latency: &result.CallLatency{Sum: r.sum, Min: r.least, Max: r.most}}
		}
	}
	out.Elapsed = seconds(now - origin)
	return out
}

// Finish stops the count, emits the last row and returns the totals.
func (t *tally) Finish() traffic.Totals {
	if t.done == nil {
		return traffic.Totals{}
	}
	t.StopReceive(false)
	t.haltOnce.Do(func() { close(t.halt) })
	<-t.done
	t.mu.Lock()
	if t.final != nil {
		defer t.mu.Unlock()
		return *t.final
	}
	var row *result.Interval
	if moved := t.stopped > t.prevEnd(); moved || t.rest() {
		row = t.row(max(t.stopped, t.prevEnd()), true)
	}
	t.closed = true
	f := t.totals(t.stopped)
	t.final = &f
	t.mu.Unlock()
	t.emit(row)
	return f
}

// rest reports that something came since the last row.
func (t *tally) rest() bool {
	for _, s := range t.list {
		if s.packets.Load() != s.prev.packets {
			return true
		}
	}
	return false
}

// Close ends everything.
func (t *tally) Close() { t.Finish() }

func seconds(ns int64) float64 { return float64(ns) / float64(time.Second) }
