package ntttcp

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// mover moves or counts a test's bytes: a traffic.Engine, or a tally of datagrams.
type mover interface {
	Start()
	Wait(context.Context) (traffic.Reason, error)
	StopSend()
	StopReceive(drain bool)
	Snapshot() traffic.Totals
	Finish() traffic.Totals
	Close()
}

// phase is the data phase of one end: it keeps to the schedule and decides what counts.
type phase struct {
	s       schedule
	silence time.Duration // nothing moved for so long: the peer, or the path, has stopped
	out     *emitter
	m       mover // set before it starts
	// machine begins to count what this machine does; what it returns ends that. nil = nobody
	// wants it.
	machine Machine
	// stats is what the system keeps of each connection; nil = nobody wants it.
	stats *estats

	began  time.Time     // of the cycle; set by run where nobody did
	budget bool          // what may move has moved; set by run
	silent chan struct{} // closed when silence was met
	counts bool          // the warm-up is over; the sampling goroutine's, after run's beginning

	mu      sync.Mutex
	moved   time.Time                // when a row last had bytes
	quiet   bool                     // silent is closed
	sums    map[int]*counted         // per stream, of the counted rows
	span    func() *result.HostTotal // of the measured time, while it runs
	total   *result.HostTotal
	reading bool            // the measured time runs
	frozen  *traffic.Totals // at the end of the measured time, when a cool-down follows
}

// Machine reads this machine's counters when the measured time begins; the function that it
// returns is called once, when that ends, and gives the difference.
type Machine func() func() *result.HostTotal

type counted struct {
	start, stop float64
	bytes       int64
	packets     *int64
	retransmits *int64
}

func newPhase(s schedule, silence time.Duration, out *emitter) *phase {
	return &phase{s: s, silence: silence, out: out, silent: make(chan struct{}), sums: map[int]*counted{}}
}

// apply puts the schedule into an engine's settings. Only a measured time that nothing
// follows is the engine's own rule: in a cool-down its senders must go on.
func (p *phase) apply(cfg *traffic.Config) {
	cfg.Omit, cfg.Out = p.s.warmup, p
	switch {
	case p.s.measured < 0:
		cfg.Omit = math.MaxInt64 / 2 // nothing counts
	case p.s.cooldown == 0:
		cfg.Duration = p.s.measured
	}
}

// Event implements result.Sink for the mover's events: rows and notices.
func (p *phase) Event(ev result.Event) {
	iv := ev.Interval
	if ev.Kind != result.KindInterval || iv == nil {
		p.out.Event(ev)
		return
	}
	warm := iv.Omitted && !p.counts && p.s.measured >= 0 && iv.Stop >= p.s.warmup.Seconds()-0.001
	froze := p.row(iv)
	p.out.Event(ev)
	if warm {
		p.counts = true
		p.begin()
		p.out.told(result.MilestoneWarmedUp)
	}
	if froze {
		p.end()
		p.out.told(result.MilestoneMeasured)
		p.out.told(result.MilestoneCooling)
	}
}

// begin and end are the bounds of the measured time.
func (p *phase) begin() {
	if p.machine != nil {
		p.span = p.machine()
	}
	p.stats.read("Measurement_Begin")
	p.reading = true
}

func (p *phase) end() {
	if p.reading {
		p.reading = false
		p.stats.read("Measurement_End")
	}
	if p.span != nil {
		p.total = p.span()
		p.span = nil
	}
}

// row counts a row, or marks it as one of the cool-down. The measured time ends with the first
// row that reaches it, so that totals are the sum of the counted rows; the original's ends
// with its tick, too (linux §4.3). It reports that this was that row.
func (p *phase) row(iv *result.Interval) (froze bool) {
	var bytes int64
	for _, s := range iv.Streams {
		bytes += s.Bytes
	}
	p.mu.Lock()
	now := time.Now()
	if bytes > 0 || p.moved.IsZero() {
		p.moved = now
	}
	if p.silence > 0 && !p.quiet && now.Sub(p.moved) >= p.silence {
		p.quiet = true
		close(p.silent)
	}
	over := p.frozen != nil
	p.mu.Unlock()
	if over {
		iv.Omitted = true
		return false
	}
	if iv.Omitted || p.s.cooldown == 0 {
		return false
	}
	p.add(iv)
	if iv.Stop < p.s.measured.Seconds()-0.001 {
		return false
	}
	t := p.sum(p.m.Snapshot())
	p.mu.Lock()
	p.frozen = &t
	p.mu.Unlock()
	return true
}

// add counts a row of the measured time. Only the mover's sampling goroutine calls it.
func (p *phase) add(iv *result.Interval) {
	for _, s := range iv.Streams {
		c := p.sums[s.ID]
		if c == nil {
			c = &counted{start: s.Start}
			p.sums[s.ID] = c
		}
		c.bytes += s.Bytes
		c.stop = s.Stop
		c.packets, c.retransmits = plus(c.packets, s.Packets), plus(c.retransmits, s.Retransmits)
	}
}

func plus(a, b *int64) *int64 {
	if b == nil {
		return a
	}
	n := *b
	if a != nil {
		n += *a
	}
	return &n
}

// sum is t with the counted rows' figures.
func (p *phase) sum(t traffic.Totals) traffic.Totals {
	flows := append([]traffic.FlowTotal(nil), t.Flows...)
	t.Elapsed = 0
	for i := range flows {
		f := &flows[i]
		c := p.sums[f.ID]
		if c == nil { // it came with the cool-down
			c = &counted{}
		}
		f.Total.Start, f.Total.End, f.Total.Bytes, f.Total.Retransmits = c.start, c.stop, c.bytes, c.retransmits
		if c.packets != nil {
			f.Total.Packets = c.packets
		}
		t.Elapsed = max(t.Elapsed, c.stop)
	}
	t.Flows = flows
	return t
}

// stop says why a data phase ended.
type stop int

const (
	stopDone    stop = iota + 1 // at its time, or a budget
	stopPeer                    // the peer asked for it
	stopGone                    // all connections ended
	stopSilent                  // nothing moved
	stopRequest                 // ctx ended
)

// run starts the mover and waits for the end of the cycle, or what comes before it. peer is
// closed when the other end wants to stop; nil = it cannot. The mover still runs at return.
func (p *phase) run(ctx context.Context, peer <-chan struct{}) (stop, error) {
	if p.began.IsZero() {
		p.began = time.Now()
	}
	p.out.begin()
	if p.s.warmup == 0 && p.s.measured >= 0 {
		p.counts = true
		p.begin()
	}
	p.m.Start()
	wctx, cancel := context.WithCancel(ctx)
	type waited struct {
		reason traffic.Reason
		err    error
	}
	wait := make(chan waited, 1)
	go func() { // ends with wctx at the latest
		reason, err := p.m.Wait(wctx)
		wait <- waited{reason, err}
	}()
	ended := false
	defer func() {
		cancel()
		if !ended {
			<-wait
		}
	}()
	var cycle <-chan time.Time
	if p.ownTimer() {
		t := time.NewTimer(p.s.cycle() - time.Since(p.began))
		defer t.Stop()
		cycle = t.C
	}
	for {
		select {
		case w := <-wait:
			ended = true
			switch w.reason {
			case traffic.Cancelled:
				return stopRequest, context.Cause(ctx)
			case traffic.PeerClosed:
				return stopGone, w.err
			case traffic.Budget:
				p.budget = true
			}
			return stopDone, nil
		case <-cycle:
			return stopDone, nil
		case <-peer:
			return stopPeer, nil
		case <-p.silent:
			return stopSilent, nil
		case <-ctx.Done():
			return stopRequest, context.Cause(ctx)
		}
	}
}

// ownTimer reports that no rule of the engine ends the cycle.
func (p *phase) ownTimer() bool {
	return !p.s.endless() && (p.s.cooldown > 0 || p.s.measured < 0)
}

// finish ends the mover, tells so, and returns what counts, and what moved in all. why was the
// reason.
func (p *phase) finish(why stop, drain bool) (counts, all traffic.Totals) {
	switch why {
	case stopRequest:
		p.out.told(result.MilestoneInterrupt)
	case stopPeer:
		if !p.nearEnd() { // both ends' clocks differ a little; the original tells no more than this
			p.out.told(result.MilestonePeerLeft)
		}
	}
	p.m.StopSend()
	p.m.StopReceive(drain)
	all = p.m.Finish() // its sampling goroutine is gone
	p.mu.Lock()
	frozen := p.frozen
	p.mu.Unlock()
	switch {
	case frozen != nil:
		p.out.told(result.MilestoneCycleOver)
		return *frozen, all
	case p.counts:
		p.end()
		p.out.told(result.MilestoneMeasured)
		p.out.told(result.MilestoneCycleOver)
	default:
		p.out.told(result.MilestoneNoResult)
	}
	if why == stopGone {
		return withoutParting(all), all
	}
	return all, all
}

// partingMost is how long a sender that is done may keep its connections open, so that receivers
// of ntttcp-for-linux end (linux §8.1): that is no time of the test.
const partingMost = 1.0 // s

// withoutParting is t with its time ending with its last byte, where all connections ended soon
// after that.
func withoutParting(t traffic.Totals) traffic.Totals {
	last := 0.0
	for _, f := range t.Flows {
		last = max(last, f.LastByte)
	}
	if last <= 0 || last >= t.Elapsed || t.Elapsed-last > partingMost {
		return t
	}
	t.Flows = append([]traffic.FlowTotal(nil), t.Flows...)
	for i := range t.Flows {
		f := &t.Flows[i]
		f.Total.End = min(f.Total.End, max(last, f.Total.Start))
	}
	t.Elapsed = last
	return t
}

// nearEnd reports that the cycle is over, or nearly.
func (p *phase) nearEnd() bool {
	return !p.s.endless() && time.Since(p.began) >= p.s.cycle()-p.s.margin()
}

// complete reports that all that was to be measured has been, or nearly: the peer may go.
func (p *phase) complete() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frozen != nil || !p.s.endless() && time.Since(p.began) >= p.s.cycle()-p.s.cooldown-p.s.margin()
}

// vanished words a peer that fell silent well before the end of the cycle, although nothing
// told so: nil = it did not.
func (p *phase) vanished(all traffic.Totals, who string) *result.Error {
	if p.s.measured < 0 {
		return nil
	}
	last, some := math.Inf(-1), false
	for _, f := range all.Flows {
		if f.Total.Bytes > 0 || f.OmittedBytes > 0 {
			some = true
			last = max(last, f.LastByte)
		}
	}
	if !some {
		return &result.Error{Code: "no-data", Remote: true, Text: "no data came through: " + who + ", or a firewall on the way, let none pass"}
	}
	if still := all.Elapsed - last; still >= max(2, all.Elapsed/4) {
		return &result.Error{
			Code: "peer-vanished", Remote: true,
			Text: fmt.Sprintf("nothing moved in the last %.1f of %.1f s: %s, or the path, has stopped", still, all.Elapsed, who),
		}
	}
	return nil
}
