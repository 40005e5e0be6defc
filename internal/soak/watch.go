package soak

import (
	"context"
	"errors"
	"math"
	"sync"
	"syscall"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// reaching is how far asking the path has come, for the stall that goes on.
type reaching struct {
	cancel context.CancelFunc // of the asking; nil = nobody asks
	since  float64            // last sign of payload before it
	tried  int                // without an answer
	back   float64            // when it answered; 0 = not yet
	failed bool               // it did not answer at first
	stood  float64            // since when it has answered, while payload stood still; 0 = it has not
}

func (r *reaching) reset() {
	if r.cancel != nil {
		r.cancel()
	}
	*r = reaching{}
}

// unansweredLeast is how many questions must have stayed without an answer for the path to be out.
const unansweredLeast = 2

// failing reports that the path is known not to answer at time at.
func (r *reaching) failing(at float64) bool {
	return r.cancel != nil && r.tried >= unansweredLeast && r.back == 0 && at > r.since
}

// unreachable reports that the path did not answer at time at, as was found out later.
func (l *Lane) unreachable(at float64) bool {
	for _, r := range l.reach {
		if at > r.from && at <= r.back {
			return true
		}
	}
	return false
}

// tick looks after the running test until ctx ends.
func (t *play) tick(ctx context.Context) {
	ticker := time.NewTicker(tickEach)
	defer ticker.Stop()
	shown, looked := t.began, t.began
	for {
		select {
		case <-ctx.Done():
			t.locked(t.reach.reset)
			return
		case <-ticker.C:
		}
		now := time.Now()
		t.mu.Lock()
		t.lookAtTest(ctx)
		if now.Sub(looked) >= machineEach {
			looked = now
			t.lookAtMachine()
		}
		var show *Status
		if t.Show != nil && now.Sub(shown) >= time.Second {
			shown = now
			s := t.status()
			show = &s
		}
		t.mu.Unlock()
		if show != nil {
			t.Show(*show)
		}
	}
}

func (t *play) status() Status {
	s := Status{T: t.now(), Outages: len(t.Book.outages)}
	for _, d := range directionsOf(t.Book.Head.Plan) {
		w := WayStatus{Direction: d, BPS: t.rate[d]}
		if t.cur == nil || !t.cur.started {
			w.BPS = 0
		}
		s.Ways = append(s.Ways, w)
	}
	switch {
	case t.broken && (t.cur == nil || !t.cur.started):
		s.Down = t.from
	case t.reach.cancel != nil && t.reach.tried >= unansweredLeast:
		s.Down = t.reach.since
	}
	return s
}

// lookAtTest asks the path when a test stands still, and gives the test up when the path is back
// and payload is not. The caller holds the lock.
func (t *play) lookAtTest(ctx context.Context) {
	x := t.cur
	if x == nil || !x.started || x.over {
		if t.broken {
			t.silence()
		}
		return
	}
	now := t.now()
	since, stands := now, false
	for d := range t.lanes {
		if p := x.progress[d]; x.evident(d) && now-p > t.stall {
			stands, since = true, min(since, p)
		}
	}
	r := &t.reach
	switch {
	case !stands:
		if r.cancel != nil && r.back == 0 && r.tried >= unansweredLeast { // payload was faster than the answer
			t.reached(r.since, now, "silent")
		}
		r.reset()
	case t.Reach == nil:
	case r.cancel == nil:
		t.ask(ctx, since)
	case r.back == 0:
	case r.failed && now-r.back > cutAfter.Seconds(), !r.failed && now-r.stood > cutStanding.Seconds():
		t.giveUp(x)
	case !r.failed && now-r.back > t.stall: // it answered; but payload stands still on: does it still answer?
		stood := r.stood
		r.cancel()
		t.ask(ctx, since)
		t.reach.stood = stood
	}
}

// giveUp ends a test that stands still: the next one begins at once.
func (t *play) giveUp(x *test) {
	t.handOver(x, t.now(), true)
	x.over = true
	x.ended = time.Now()
	for _, l := range t.lanes {
		l.Restarted(t.now(), t.reach.failed)
	}
	t.reach.reset()
	x.answered = true
	close(x.cut)
}

func (t *play) reached(from, back float64, why string) {
	for _, l := range t.lanes {
		l.Reached(from, back, why)
	}
}

// ask begins to ask the path until it answers. The caller holds the lock.
func (t *play) ask(ctx context.Context, since float64) {
	actx, cancel := context.WithCancel(ctx)
	t.reach = reaching{cancel: cancel, since: since}
	t.wg.Go(func() { // ends with actx or the first answer
		back, why, tried, ok := t.question(actx, func(tried int) {
			t.mu.Lock()
			defer t.mu.Unlock()
			if actx.Err() == nil {
				t.reach.tried = tried
			}
		})
		t.mu.Lock()
		defer t.mu.Unlock()
		if !ok || actx.Err() != nil {
			return
		}
		t.reach.back, t.reach.failed = back, tried >= unansweredLeast
		if t.reach.failed {
			t.reached(since, back, why)
		} else if t.reach.stood == 0 {
			t.reach.stood = back
		}
	})
}

// awaitReach waits until the peer's port answers, after a test broke off. It returns false when ctx
// ended or the time was over.
func (t *play) awaitReach(ctx context.Context) bool {
	var since float64
	asked := false
	t.locked(func() {
		since, asked = t.from, t.asked
		t.asked = false
	})
	if asked || t.Reach == nil {
		return true
	}
	left := t.Book.Head.Asked - t.now()
	actx, cancel := context.WithTimeout(ctx, time.Duration(max(left, 0)*float64(time.Second)))
	defer cancel()
	back, why, tried, ok := t.question(actx, nil)
	if !ok {
		return false
	}
	t.locked(func() {
		if tried >= unansweredLeast || t.answered != since { // else it has been back since then
			t.reached(since, back, why)
		}
		t.answered = since
		for _, l := range t.lanes {
			l.Restarted(back, true)
		}
	})
	return true
}

// question asks ten times a second until an answer comes, and returns when the question was put
// that was answered first; why says of what kind the others' failure was.
func (t *play) question(ctx context.Context, asked func(unanswered int)) (back float64, why string, tried int, ok bool) {
	ctx, cancel := context.WithCancel(ctx)
	type answer struct {
		at  float64
		n   int
		err error
	}
	answers := make(chan answer)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	why = "silent"
	ticker := time.NewTicker(reachEach)
	defer ticker.Stop()
	for n := 0; ; {
		at, number := t.now(), n
		wg.Go(func() { // ends with its answer, its time or ctx
			one, stop := context.WithTimeout(ctx, reachWait)
			defer stop()
			a := answer{at, number, t.Reach(one)}
			select {
			case answers <- a:
			case <-ctx.Done():
			}
		})
		if asked != nil {
			asked(n)
		}
		n++
	wait:
		for {
			select {
			case a := <-answers:
				if a.err == nil {
					again := repeated(t.now() - a.at)
					if again > 0 { // it was the repetition that was answered: what was put meanwhile was not either
						a.n = n
					}
					return a.at + again, why, a.n, true
				}
				if errors.Is(a.err, syscall.ECONNREFUSED) {
					why = "refused"
				}
			case <-ticker.C:
				break wait
			case <-ctx.Done():
				return 0, why, n, false
			}
		}
	}
}

// repeated is how long after the question its repetition was put that was answered after took s: a
// system sends a SYN again after whole seconds (1, 3, 7 s by RFC 6298; Linux since 6.5 each second at
// first), and when the path comes back that may be sooner than the next question.
func repeated(took float64) float64 {
	const early = 0.02 // timers are not that exact
	return math.Floor(took + early)
}

// hostMeans gathers the host's samples between two lines.
type hostMeans struct {
	cpu, throttled mean
	busiest        *float64
}

func (h *hostMeans) add(s *result.HostSample) {
	if s == nil {
		return
	}
	if s.Process != nil {
		h.cpu.add(&s.Process.Total)
	}
	h.throttled.add(s.Throttled)
	for _, c := range s.Cores {
		busy := math.Round(1000*(1-c.Idle-c.IOWait)) / 1000
		raise(&h.busiest, &busy)
	}
}

// lookAtMachine writes a line about this host. The caller holds the lock.
func (t *play) lookAtMachine() {
	m := Machine{}
	if t.Machine != nil {
		m = t.Machine()
	}
	h := t.machine
	t.machine = hostMeans{}
	m.T, m.CPU, m.Busiest, m.Throttled = round(t.now(), 1e3), rounded(h.cpu.value(), 100), h.busiest, rounded(h.throttled.value(), 1e4)
	t.add(Line{Machine: &m})
}

func rounded(v *float64, per float64) *float64 {
	if v == nil {
		return nil
	}
	r := round(*v, per)
	return &r
}
