package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/pause"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Times of a play.
const (
	// SlotLength is the interval of reports: what an outage's ends are known by.
	SlotLength = 100 * time.Millisecond
	// PlainTest is the longest test towards a server that is no fullbore: it keeps every interval in
	// memory, and tells of what it received only at the end.
	PlainTest = time.Hour

	tickEach     = 50 * time.Millisecond
	stallAfter   = 300 * time.Millisecond // without progress the path is asked
	reachEach    = 100 * time.Millisecond // how often
	reachWait    = 3 * time.Second        // for one answer
	cutAfter     = 300 * time.Millisecond // after the path is back, when payload does not come again by itself
	cutStanding  = 10 * time.Second       // after the path answered all the time
	retryFirst   = 100 * time.Millisecond
	retryMost    = time.Second
	leastTest    = time.Second // shorter ones are not worth beginning
	endPatience  = 15 * time.Second
	machineEach  = 10 * time.Second
	ownBehind    = 60.0 // s that the other end's reports may be late before this end's count takes their place
	ownKept      = 30.0 // s of them that are kept then
	clockDrift   = 2e-4 // most by which two clocks part
	lettingAlone = 500 * time.Millisecond
)

// Player plays a soak: one test after the other until its time is over, recording what comes. It
// does not know how a test is made.
type Player struct {
	Book   *Book
	Record *Record // nil = none is kept
	// Run makes one test (runner.Runner.Run). Its interval events come about every SlotLength.
	Run func(ctx context.Context, p plan.Plan, sink result.Sink) (*result.Run, error)
	// Reach finds out whether the peer's port answers; nil = it cannot be asked. Several may run at once.
	Reach func(ctx context.Context) error
	// Machine looks at this host; nil = not.
	Machine func() Machine
	// Show is called about once a second; nil = nobody looks.
	Show func(Status)
	// Offset is at what time since the soak's start this play begins: 0, or of one that goes on later.
	Offset float64
	// Extension: the peer is a fullbore; MaxTest bounds the length of one test (a server's policy; 0 = not).
	Extension bool
	MaxTest   time.Duration
	MaxBytes  int64 // budget of payload; 0 = none
}

// Status is the state of a play for people.
type Status struct {
	T       float64 // s since the start
	Ways    []WayStatus
	Outages int
	Down    float64 // since when nothing comes, s since the start; 0 = it comes
}

// WayStatus is one direction's last report.
type WayStatus struct {
	Direction result.Direction
	BPS       float64
}

// Played is what is left of a play beside its Book.
type Played struct {
	First, Last *result.Run // nil = no test began; the same where there was one
	Err         *result.Error
}

// play is a Player at work.
type play struct {
	*Player
	began time.Time

	mu          sync.Mutex
	lanes       map[result.Direction]*Lane
	cur         *test // nil between tests
	broken      bool  // the last test broke off: what passes until the next is an outage
	from        float64
	gapFrom     float64 // of a changeover
	rate        map[result.Direction]float64
	noted       map[string]bool
	machine     hostMeans
	failed      error // of the record
	moved       int64
	reach       reaching
	first, last *result.Run
	begunOK     bool    // a test began, ever
	stall       float64 // s without progress after which the path is asked
	asked       bool    // the path has answered since the last test broke off
	answered    float64 // the break (from) after which it has answered

	wg sync.WaitGroup
}

// errCut is the cause with which a test is given up that stands still.
var errCut = &result.Error{Code: "stalled", Text: "the path answers again, but the test stood still: it was begun anew", Interrupted: true}

// Play plays until the time is over, ctx ends or an error ends it. What was measured is in the Book
// and the Record in any case. All its goroutines have ended when it returns.
func (p *Player) Play(ctx context.Context) Played {
	t := &play{Player: p, began: time.Now(), lanes: map[result.Direction]*Lane{}, rate: map[result.Direction]float64{}, noted: map[string]bool{}, answered: -1}
	t.stall = max(stallAfter.Seconds(), 3*spacing(p.Book.Head.Plan))
	for _, n := range p.Book.notes {
		t.noted[n.Notice.Code] = true
	}
	for _, d := range directionsOf(p.Book.Head.Plan) {
		t.lanes[d] = newLane(d, p.Offset, spacing(p.Book.Head.Plan), func(level int) (float64, bool) { return p.Book.Usual(d, level) }, t.add)
	}
	if p.Offset > p.Book.At {
		t.locked(func() { t.add(Line{Gap: &Gap{From: p.Book.At, To: p.Offset, Why: "away"}}) })
	}
	tctx, stop := context.WithCancel(ctx)
	ticks := make(chan struct{})
	go func() { // ends with tctx
		defer close(ticks)
		t.tick(tctx)
	}()
	out := t.tests(ctx)
	stop()
	<-ticks
	t.wg.Wait()
	out.First, out.Last = t.first, t.last
	t.locked(func() {
		for _, d := range directionsOf(p.Book.Head.Plan) {
			t.lanes[d].Finish()
		}
		t.lookAtMachine()
		t.add(Line{End: &End{T: min(t.now(), max(p.Book.Head.Asked, p.Book.At)), Err: out.Err}})
	})
	return out
}

func directionsOf(p plan.Plan) []result.Direction {
	switch p.Direction {
	case plan.Both:
		return []result.Direction{result.Up, result.Down}
	case plan.Down:
		return []result.Direction{result.Down}
	}
	return []result.Direction{result.Up}
}

// spacing is how far apart the blocks of a paced load are, s; 0 = it is not paced.
func spacing(p plan.Plan) float64 {
	rate := float64(p.Bitrate)
	size := float64(p.BlockSize)
	if p.MaxRate > 0 && (rate == 0 || float64(p.MaxRate) < rate) {
		rate = float64(p.MaxRate) / float64(max(p.Streams, 1))
	}
	switch {
	case rate <= 0:
		return 0
	case size == 0 && p.Transport == plan.UDP:
		size = 1448
	case size == 0:
		size = plan.DefaultTCPBlock
	}
	return size * 8 / rate / float64(max(p.Streams, 1))
}

func (t *play) now() float64 { return t.Offset + time.Since(t.began).Seconds() }

func (t *play) locked(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}

// add keeps a line. The caller holds the lock.
func (t *play) add(l Line) {
	t.Book.Add(l)
	if err := t.Record.Append(l); err != nil && t.failed == nil {
		t.failed = err
	}
}

// note keeps the first notice of each code.
func (t *play) note(n result.Notice) {
	if !t.noted[n.Code] || len(t.Book.notes) < 1000 {
		t.noted[n.Code] = true
		t.add(Line{Note: &Note{T: t.now(), Notice: n}})
	}
}

// tests makes one test after the other.
func (t *play) tests(ctx context.Context) (out Played) {
	retry := retryFirst
	for {
		_, left := t.step()
		if t.broken && left < leastTest { // nothing to begin any more, but the outage lasts to the end
			pause.For(ctx, left)
			t.locked(t.silence)
			return out
		}
		if left < leastTest {
			return out
		}
		if t.budget().Used() {
			t.locked(func() {
				t.note(result.Notice{Code: "budget-used", Level: result.Warn, Text: fmt.Sprintf("the budget of %d bytes is used up after %s", t.MaxBytes, seconds(t.now()))})
			})
			return out
		}
		if t.broken && !t.awaitReach(ctx) {
			if ctx.Err() != nil {
				out.Err = result.AsError(context.Cause(ctx))
				return out
			}
			continue // the time is over, or another step has begun
		}
		level, left := t.step() // asking took its time
		if left < leastTest {
			continue
		}
		x, err := t.test(ctx, level, left)
		switch {
		case ctx.Err() != nil:
			out.Err = result.AsError(context.Cause(ctx))
			return out
		case t.broke() != nil:
			out.Err = result.AsError(t.broke())
			return out
		case err == nil || errors.Is(err, errCut):
			if x.length() > time.Second {
				retry = retryFirst
			}
		case !t.begunOK && t.Offset == 0 || lasting(err):
			out.Err = result.AsError(err)
			return out
		}
		if x.length() <= time.Second { // it did not come to anything
			if !pause.For(ctx, retry) {
				out.Err = result.AsError(context.Cause(ctx))
				return out
			}
			retry = min(2*retry, retryMost)
		} else if !t.Extension {
			pause.For(ctx, plan.PlainPause)
		}
	}
}

// broke is why the record cannot be written any more; nil = it can.
func (t *play) broke() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

// lasting errors come again however often one tries.
func lasting(err error) bool {
	e := result.AsError(err)
	return slices.Contains([]string{"plan", "auth", "denied", "unsupported", "usage", "limit", "not-iperf3"}, e.Code)
}

// step is the step of the load now and how long it, or the longest test, still lasts.
func (t *play) step() (level int, left time.Duration) {
	now, h := t.now(), &t.Book.Head
	end := h.Asked
	at := 0.0
	cycle := 0.0
	for _, s := range h.Steps {
		cycle += s.Length.Seconds()
	}
	if len(h.Steps) > 1 && cycle > 0 {
		at = now - cycle*float64(int64(now/cycle))
		from := now - at
		for i, s := range h.Steps {
			from += s.Length.Seconds()
			level = i
			if from > now+1e-3 {
				break
			}
		}
		end = min(end, from)
	}
	left = time.Duration((end - now) * float64(time.Second))
	// The rest of a step that is too short for a test of its own belongs to the next.
	if end < h.Asked && left < leastTest {
		level = (level + 1) % len(h.Steps)
		left += h.Steps[level].Length
	}
	most := plan.MaxDuration
	if !t.Extension {
		most = PlainTest
	}
	if h.Segment > 0 {
		most = min(most, h.Segment)
	}
	if t.MaxTest > 0 {
		most = min(most, t.MaxTest)
	}
	return level, min(left, most)
}

// planOf is the plan of one test.
func (t *play) planOf(level int, length time.Duration) plan.Plan {
	p := t.Book.Head.Plan
	p.Duration = length.Truncate(time.Millisecond)
	if !t.Extension {
		p.Duration = max(length.Truncate(time.Second), time.Second)
	}
	p.Interval = SlotLength
	share := t.Book.Head.Steps[level].Share
	if share != 1 {
		full := float64(p.Bitrate)
		if full == 0 {
			full = t.fullRate() / float64(max(p.Streams, 1))
		}
		p.Bitrate = int64(full * share)
		p.RateSet = p.Bitrate > 0
	}
	if share := t.budget().Share(1); share > 0 {
		p.MaxBytes = share
	}
	return p
}

func (t *play) budget() plan.Budget { return plan.Budget{Most: t.MaxBytes, Moved: t.moved} }

// fullRate is what the full load carried, the slower direction's.
func (t *play) fullRate() (least float64) {
	for d := range t.lanes {
		for i, s := range t.Book.Head.Steps {
			if s.Share != 1 {
				continue
			}
			if v, ok := t.Book.Usual(d, i); ok && (least == 0 || v < least) {
				least = v
			}
			break
		}
	}
	return least
}
