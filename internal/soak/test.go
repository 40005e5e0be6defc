package soak

import (
	"context"
	"fmt"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// test is one test of a play. The play's lock guards it.
type test struct {
	level   int
	udp     bool
	ext     bool // the peer is a fullbore
	started bool
	over    bool // its reports do not count any more
	zero    float64
	began   time.Time
	ended   time.Time

	progress map[result.Direction]float64 // when payload was last seen to arrive

	// Of the direction in which this end sends: its own count, until the other end's comes.
	own   []Slot
	truth float64          // up to where the other end has told
	told  bool             // it tells
	acked map[int]int64    // by stream
	peer  *float64         // the other end's clock: soak time = its time + peer
	peerT float64          // the last time that it told
	count map[string]int64 // payload bytes that this end counted, by direction
	done  *result.Finish

	cut      chan struct{} // closed: it is given up
	answered bool          // because the path answers, and it stands still
	cancel   context.CancelCauseFunc
}

func (x *test) length() time.Duration {
	if !x.started {
		return 0
	}
	return x.ended.Sub(x.began)
}

type outcome struct {
	run *result.Run
	err error
}

// test makes one test. Its error is the run's, or errCut.
func (t *play) test(ctx context.Context, level int, length time.Duration) (*test, error) {
	p := t.planOf(level, length)
	rctx, cancel := context.WithCancelCause(ctx)
	x := &test{
		level: level, udp: p.Transport == plan.UDP, ext: t.Extension, progress: map[result.Direction]float64{}, acked: map[int]int64{},
		count: map[string]int64{}, cut: make(chan struct{}), cancel: cancel,
	}
	t.locked(func() { t.cur = x })
	done := make(chan outcome, 1)
	t.wg.Go(func() { // ends by itself, at the latest some seconds after rctx
		run, err := t.Run(rctx, p, result.SinkFunc(func(ev result.Event) { t.event(x, ev) }))
		t.locked(func() {
			if run != nil && x.started {
				if t.first == nil {
					t.first = run
				}
				t.last = run
			}
		})
		done <- outcome{run, err}
	})
	late := time.NewTimer(p.Duration + endPatience)
	defer late.Stop()
	var o outcome
	select {
	case o = <-done:
	case <-x.cut:
		cancel(errCut)
		o = t.letGo(done)
	case <-late.C: // it came to no end: the path is out
		cancel(errCut)
		o = t.letGo(done)
	}
	t.locked(func() { t.close(x, o) })
	return x, o.err
}

// letGo waits a moment for a test that was given up; a server that takes one at a time must have
// heard of it.
func (t *play) letGo(done <-chan outcome) outcome {
	timer := time.NewTimer(lettingAlone)
	defer timer.Stop()
	select {
	case o := <-done:
		return outcome{o.run, errCut}
	case <-timer.C:
		return outcome{nil, errCut}
	}
}

// close takes what is left of a test. The caller holds the lock.
func (t *play) close(x *test, o outcome) {
	now := t.now()
	t.handOver(x, now, true)
	x.over, x.ended = true, time.Now()
	t.cur = nil
	for _, n := range x.count {
		t.moved += n
	}
	if !x.started {
		if o.err != nil && !t.broken {
			t.broken, t.from = true, t.gapFrom
		}
		t.asked = false
		return
	}
	why := ""
	if e := result.AsError(o.err); e != nil {
		why = e.Text
	}
	t.add(Line{Test: &Test{From: x.zero, To: now, Extension: x.ext, Restart: t.broken, Err: why}})
	t.totals(x, now)
	t.broken, t.gapFrom = o.err != nil, now
	t.asked = t.broken && x.answered
	if t.broken {
		t.from = now
		for d, p := range x.progress {
			t.from = min(t.from, p)
			if !x.evident(d) {
				t.from = now
			}
		}
	}
}

// evident reports that payload arriving in direction d can be seen while the test runs.
func (x *test) evident(d result.Direction) bool {
	return d == result.Down || !x.udp || x.ext
}

// totals are what only the end of a test tells: of UDP towards a plain iperf3 server its losses.
func (t *play) totals(x *test, now float64) {
	if x.done == nil || !x.udp {
		return
	}
	for d := range t.lanes {
		if d == result.Down || x.told {
			continue // known from the reports
		}
		sum := Total{Direction: d, T: now}
		for _, s := range x.done.Streams {
			if s.Direction != d || s.Receiver == nil {
				continue
			}
			add(&sum.Packets, s.Receiver.Packets)
			add(&sum.Lost, s.Receiver.Lost)
			if s.UDP != nil && s.UDP.Received != nil && s.UDP.Received.PDV != nil && sum.PDV == nil {
				p := partOfQuantiles(s.UDP.Received.PDV)
				sum.PDV = &p
			}
		}
		if sum.Packets != nil || sum.Lost != nil {
			t.add(Line{Total: &sum})
		}
	}
}

// event takes an event of a test.
func (t *play) event(x *test, ev result.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch ev.Kind {
	case result.KindStart:
		if ev.Head != nil && !x.over {
			t.start(x, ev.Head)
		}
	case result.KindInterval:
		if x.started && !x.over {
			t.row(x, ev.Interval)
		}
	case result.KindNotice:
		if ev.Notice.Code != "overlap" || !t.broken { // the other is our own, not yet ended
			t.note(*ev.Notice)
		}
	case result.KindFinish:
		x.done = ev.Finish
	}
}

// start: payload flows from now on.
func (t *play) start(x *test, head *result.Run) {
	now := t.now()
	x.started, x.zero, x.began = true, now, time.Now()
	x.ext = head.Wire != nil && head.Wire.Extension
	t.Extension = x.ext
	if l := head.Test.ServerLimit; l != nil && l.MaxDuration > 0 {
		t.MaxTest = time.Duration(l.MaxDuration * float64(time.Second))
	}
	t.begunOK = true
	if t.broken {
		t.silence()
	} else if now-t.gapFrom > 0 && t.gapFrom > 0 {
		t.add(Line{Gap: &Gap{From: t.gapFrom, To: now, Why: "changeover"}})
	}
	for d, l := range t.lanes {
		x.progress[d] = now
		l.Add(Slot{From: l.at, To: now, Known: Unmeasured})
		l.Level(x.level)
	}
	x.truth = now
	t.reach.reset()
	t.explainTest(x)
}

// explainTest says, once, what this peer and this load make different.
func (t *play) explainTest(x *test) {
	say := func(n result.Notice) {
		if !t.noted[n.Code] {
			n.Level = result.Info
			t.note(n)
		}
	}
	h := &t.Book.Head
	switch left := h.Asked - t.now(); {
	case !x.ext && left > PlainTest.Seconds():
		say(result.Notice{Code: "soak-chained", Text: fmt.Sprintf("the server is no fullbore: the soak is a chain of tests of at most %v, since it keeps all intervals in memory; the moments between them are gaps", PlainTest)})
	case t.MaxTest > 0 && left > t.MaxTest.Seconds():
		say(result.Notice{Code: "soak-chained", Text: fmt.Sprintf("the server ends tests after %v: the soak is a chain of them; the moments between them are gaps", t.MaxTest)})
	case left > plan.MaxDuration.Seconds():
		say(result.Notice{Code: "soak-chained", Text: fmt.Sprintf("a test lasts %v at most: the soak is a chain of them; the moments between them are gaps", plan.MaxDuration)})
	}
	if t.lanes[result.Up] != nil && !x.evident(result.Up) {
		say(result.Notice{Code: "soak-blind", Text: "this server does not tell what it receives while a test runs: outages upwards are not seen, losses are known at the end of each test; use fullbore serve there, or a shorter --segment"})
	}
	if s := h.Steps[x.level]; s.Share != 1 && h.Plan.Bitrate == 0 {
		say(result.Notice{Code: "soak-step-rate", Text: fmt.Sprintf("a step of %s of the load is that share of what the full load was seen to carry, %s", percent(s.Share), units.BitRate(t.fullRate()))})
	}
}

// silence tells the lanes that nothing came until now. The caller holds the lock.
func (t *play) silence() {
	until := min(t.now(), t.Book.Head.Asked)
	for _, l := range t.lanes {
		l.Add(Slot{From: l.at, To: until, Known: Silent})
	}
}

// row takes a report of either end.
func (t *play) row(x *test, r *result.Interval) {
	if r.Omitted {
		return
	}
	if r.End == result.Server {
		t.serverRow(x, r)
		return
	}
	t.machine.add(r.Host)
	for i := range r.Sums {
		s := &r.Sums[i]
		l := t.lanes[s.Direction]
		if l == nil {
			continue
		}
		x.count[string(s.Direction)] += s.Bytes
		slot := Slot{From: x.zero + s.Start, To: x.zero + s.Stop, Bytes: s.Bytes}
		if !s.Sender {
			t.received(x, l, slot, r, s)
			continue
		}
		slot.Retransmits = s.Retransmits
		t.sent(x, l, slot, r)
	}
}

// received takes what an end counted as receiver: that is the truth.
func (t *play) received(x *test, l *Lane, slot Slot, r *result.Interval, s *result.IntervalSum) {
	slot.Basis, slot.Packets, slot.Lost = ByReceiver, s.Packets, s.Lost
	for i := range r.Streams {
		if u := r.Streams[i].UDP; u != nil && u.PDV != nil && !r.Streams[i].Sender {
			slot.PDV = append(slot.PDV, partOfQuantiles(u.PDV))
		}
	}
	if slot.Bytes > 0 {
		x.progress[l.dir] = max(x.progress[l.dir], slot.To)
	}
	t.rate[l.dir] = result.Rate(slot.Bytes, slot.To-slot.From)
	l.Add(slot)
}

// sent takes this end's count of what it sends.
func (t *play) sent(x *test, l *Lane, slot Slot, r *result.Interval) {
	slot.Basis = BySender
	if acked, ok := x.acknowledged(r); ok {
		slot.Bytes, slot.Basis = acked, ByAcknowledged
	}
	if slot.Bytes > 0 && !x.udp {
		x.progress[l.dir] = max(x.progress[l.dir], slot.To)
	}
	if !x.told {
		t.rate[l.dir] = result.Rate(slot.Bytes, slot.To-slot.From)
	}
	if slot.Retransmits != nil && (x.ext || x.udp) { // of the others the slot itself carries them
		l.Retransmits(*slot.Retransmits)
		slot.Retransmits = nil
	}
	if !x.ext {
		l.Add(slot)
		return
	}
	x.own = append(x.own, slot)
	if slot.To-x.truth > ownBehind {
		t.handOver(x, slot.To-ownKept, false)
	}
}

// acknowledged is what the other kernel took since the last report, all streams together; false
// where the system does not tell.
func (x *test) acknowledged(r *result.Interval) (bytes int64, ok bool) {
	for i := range r.Streams {
		s := &r.Streams[i]
		if !s.Sender {
			continue
		}
		if s.TCP == nil || s.TCP.BytesAcked == nil {
			return 0, false
		}
		now := *s.TCP.BytesAcked
		bytes += max(0, now-x.acked[s.ID])
		x.acked[s.ID] = max(now, x.acked[s.ID])
		ok = true
	}
	return bytes, ok
}

// handOver gives this end's own slots up to a time to the lane, where the other end has not told
// of it. Of UDP they say nothing about arrival: it was silent when the path did not answer, else
// nothing is known.
func (t *play) handOver(x *test, until float64, all bool) {
	l := t.lanes[result.Up]
	if l == nil {
		return
	}
	for len(x.own) > 0 && (all || x.own[0].To <= until) {
		s := x.own[0]
		x.own = x.own[1:]
		if s.To <= x.truth {
			continue
		}
		if x.udp {
			s.Bytes, s.Known = 0, Unmeasured
			if l.unreachable(s.To) || t.reach.failing(s.To) {
				s.Known = Silent
			}
		}
		l.Add(s)
	}
}

// serverRow takes a report of the other end. It comes late, after an outage by seconds; its time
// is that end's own.
func (t *play) serverRow(x *test, r *result.Interval) {
	now := t.now()
	at := now - r.Stop
	if x.peer != nil {
		at = min(at, *x.peer+clockDrift*max(0, r.Stop-x.peerT))
	}
	x.peer, x.peerT = &at, r.Stop
	for i := range r.Sums {
		s := &r.Sums[i]
		l := t.lanes[s.Direction]
		switch {
		case l == nil:
		case s.Sender:
			if s.Retransmits != nil {
				l.Retransmits(*s.Retransmits)
			}
		default:
			slot := Slot{From: max(at+s.Start, x.zero), To: at + s.Stop, Bytes: s.Bytes}
			x.told = true
			x.truth = max(x.truth, slot.To)
			for len(x.own) > 0 && x.own[0].To <= x.truth {
				x.own = x.own[1:]
			}
			t.received(x, l, slot, r, s)
		}
	}
}
