package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/delay"
	"github.com/fullbore-net/fullbore/result"
)

// Conn carries the datagrams of a Prober: a socket connected to the Responder's.
type Conn interface {
	// Send sends one datagram.
	Send(b []byte) error
	// Receive reads one datagram into b. at is when it arrived, ns of this host's monotonic
	// clock; kernel says that it is the kernel's stamp. After Close it returns an error; any
	// other error is the path's (a refusal) and does not end the probing.
	Receive(b []byte) (n int, at int64, kernel bool, err error)
	Close() error
}

// What a Conn says, wrapped or not: Receive after Close; Send and Receive when the other
// host refused an earlier datagram (ICMP: nobody listens, or forbidden).
var (
	ErrClosed  = errors.New("probe: closed")
	ErrRefused = errors.New("probe: refused by the other host")
)

// Config is what a Prober needs. Conn, Size, Spacing and Now must be set.
type Config struct {
	Conn    Conn // closed by Run
	Test    ID
	Nonce   Nonce
	Profile string        // name shown
	Spacing time.Duration // between requests; at least 1 s / MaxRate
	Size    int           // of a request, bytes; at least HeaderSize
	Kind    string        // of the figures; "" = "udp-echo"
	Class   uint8         // traffic class byte that the answers are to have
	Lane    uint8         // which of the test's probe streams this is, from 0; below Lanes
	// Duration ends the requests; 0 = Stop or ctx does.
	Duration time.Duration
	// Most ends them, too: the payload that requests and their answers may take together, bytes; 0 = as much
	// as it likes.
	Most int64
	// Now is this host's monotonic clock, ns: the one of Conn's stamps.
	Now func() int64
	// SameHost: both ends read the same clock.
	SameHost bool
	// Kept is what time services make of the two clocks; nil = one end's is not kept, or not told.
	Kept *Kept
	// Heard gets the round trip of each answer, ns, and, where the other end tells, what of the
	// test's datagrams has arrived there (told). It is called by the receiver: it must not block.
	// nil = nobody, and the other end is not asked.
	Heard func(trip int64, a Arrivals, told bool)
	// Report gets the figures so far once a second, from Run's goroutine; nil = nobody.
	Report func(*result.Probes)
}

// Prober sends requests at even times and makes figures of the answers.
type Prober struct {
	c      Config
	signer *Signer // of requests; the receiver has its own
	over   chan struct{}
	once   sync.Once // closes over

	mu   sync.Mutex // guards what follows: written by Run and by the receiver
	f    *figures
	ring []outgoing // requests that may yet be answered, by sequence number

	sent     uint32 // sequence number of the last request
	skipped  int64  // requests that were due while this host was late
	refused  int64  // not sent: the system said no
	icmp     int64  // the other host said that nobody listens
	foreign  int64  // datagrams that are no answers of this test
	unproven int64  // requests that got a challenge in place of an answer; they count nowhere
	lastSent int64
	maxTrip  int64           // longest round trip so far
	spent    bool            // Most ended the requests
	late     delay.Histogram // of requests, behind their due times
	step     int64           // of the clock, the least that was seen, ns; 0 = none was
}

// outgoing is a request on its way.
type outgoing struct {
	seq      uint32
	answered bool
	sent     int64
}

// Bounds of a Prober.
const (
	maxOutstanding = 1 << 16 // 65 s at MaxRate
	drainLeast     = 200 * time.Millisecond
	drainMost      = 2 * time.Second
	reportEvery    = time.Second
	idleRead       = 10 * time.Millisecond // pause after an error of Receive that is not the end
)

// New checks c.
func New(c Config) (*Prober, error) {
	switch {
	case c.Spacing < time.Second/MaxRate:
		return nil, fmt.Errorf("probe: spacing %v: at most %d requests a second are answered", c.Spacing, MaxRate)
	case c.Size < HeaderSize:
		return nil, fmt.Errorf("probe: size %d: a request takes %d bytes", c.Size, HeaderSize)
	case c.Lane >= Lanes:
		return nil, fmt.Errorf("probe: stream %d: a test has at most %d", c.Lane, Lanes)
	case c.Conn == nil || c.Now == nil:
		return nil, errors.New("probe: no connection, or no clock")
	}
	room := 1
	want := maxOutstanding
	if c.Duration > 0 {
		want = int(min(int64(c.Duration/c.Spacing)+1, maxOutstanding))
	}
	for room < want {
		room *= 2
	}
	return &Prober{c: c, signer: NewSigner(c.Nonce), over: make(chan struct{}), f: newFigures(c.SameHost, c.Kept), ring: make([]outgoing, room)}, nil
}

// Stop ends the requests as if Duration were over. It may be called by any goroutine.
func (p *Prober) Stop() { p.once.Do(func() { close(p.over) }) }

// Run probes until Duration is over, Stop is called, or ctx ends, waits for the answers that may still
// come (max(200 ms, 4 round trips), at most 2 s; not when ctx ended), and closes Conn.
// Every goroutine is gone when it returns. The error is ctx's cause.
func (p *Prober) Run(ctx context.Context) error {
	var receiver sync.WaitGroup
	p.step = clockStep(p.c.Now)
	receiver.Go(p.receive) // ends with Conn
	defer receiver.Wait()
	defer p.c.Conn.Close() //nolint:errcheck // nothing is lost with it
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	err := p.send(ctx, tick)
	if err == nil {
		err = p.drain(ctx, tick)
	}
	return err
}

// send sends requests at start + k·spacing. One whose time passed by more than a spacing
// is left out: a burst to make up for it would measure itself.
func (p *Prober) send(ctx context.Context, tick *time.Ticker) error {
	b := make([]byte, p.c.Size)
	start := p.c.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for k := int64(0); ; k++ {
		due := start + k*int64(p.c.Spacing)
		now := p.c.Now()
		if late := (now - due) / int64(p.c.Spacing); late > 0 {
			p.mu.Lock()
			p.skipped += late
			p.mu.Unlock()
			k += late
			due += late * int64(p.c.Spacing)
		}
		if p.c.Duration > 0 && due-start >= int64(p.c.Duration) {
			return nil
		}
		for wait := due - now; wait > 0; wait = due - p.c.Now() {
			timer.Reset(time.Duration(wait))
			select {
			case <-timer.C:
			case <-tick.C:
				p.report()
			case <-p.over:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if p.exhausted() {
			return nil
		}
		p.request(b, due)
	}
}

// clockStep is the least step of a clock between two readings, ns; 0 = it stood still.
func clockStep(now func() int64) (least int64) {
	for last, n := now(), 0; n < 1000; n++ {
		at := now()
		if d := at - last; d > 0 && (least == 0 || d < least) {
			least = d
		}
		last = at
	}
	return least
}

// exhausted reports, and notes, that the budget holds no further request with its answer.
func (p *Prober) exhausted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent = p.c.Most > 0 && 2*(int64(p.sent)+1)*int64(p.c.Size) > p.c.Most
	return p.spent
}

// request sends the next request, which was due at that time.
func (p *Prober) request(b []byte, due int64) {
	p.mu.Lock()
	seq := p.sent + 1
	answers := p.f.answered
	now := p.c.Now()
	p.sent, p.lastSent = seq, now
	p.late.Add(now - due)
	p.ring[int(seq)%len(p.ring)] = outgoing{seq: seq, sent: now}
	p.mu.Unlock()
	q := Request{Test: p.c.Test, Seq: seq, Class: p.c.Class, Lane: p.c.Lane, Sent: now, Answers: answers}
	if p.c.Heard != nil && p.c.Size >= ArrivalsSize {
		q.Flags |= FlagArrivals
	}
	PutRequest(b, q, p.signer)
	err := p.c.Conn.Send(b)
	if err == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(err, ErrRefused) { // the word about an earlier one came in place of sending
		p.icmp++
		err = p.c.Conn.Send(b)
	}
	if err != nil {
		p.refused++
		p.sent-- // it was none
	}
}

// receive reads until Conn is closed.
func (p *Prober) receive() {
	signer := NewSigner(p.c.Nonce)
	b := make([]byte, max(p.c.Size, HeaderSize)+1)
	proof := make([]byte, HeaderSize)
	for {
		n, at, kernel, err := p.c.Conn.Receive(b)
		switch {
		case errors.Is(err, ErrClosed):
			return
		case err != nil:
			if errors.Is(err, ErrRefused) {
				p.mu.Lock()
				p.icmp++
				p.mu.Unlock()
			}
			time.Sleep(idleRead) // a socket that only fails must not take the core
			continue
		}
		if a, ok := ParseAnswer(b[:n], signer); ok {
			if trip, ok := p.arrived(a, at, kernel); ok && p.c.Heard != nil {
				got, told := ParseArrivals(b[:n], a)
				p.c.Heard(trip, got, told)
			}
			continue
		}
		if token, seq, ok := ParseChallenge(b[:n], signer); ok {
			p.challenged(seq)
			PutProof(proof, p.c.Test, token, signer)
			_ = p.c.Conn.Send(proof) // lost: the next request is challenged again
			continue
		}
		p.mu.Lock()
		p.foreign++
		p.mu.Unlock()
	}
}

// arrived takes an answer and tells its round trip, ns; false = it is none to a request that
// waits for one.
func (p *Prober) arrived(a Answer, at int64, kernel bool) (trip int64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := &p.ring[int(a.Seq)%len(p.ring)]
	switch {
	case a.Seq == 0 || q.seq != a.Seq:
		p.f.late++ // forgotten, or never asked
		return 0, false
	case q.answered:
		p.f.duplicates++
		return 0, false
	}
	q.answered = true
	p.maxTrip = max(p.maxTrip, at-q.sent)
	p.f.add(a, q.sent, at, kernel)
	trip = at - q.sent
	if held := a.Sent - a.Received; held > 0 && held < trip {
		trip -= held
	}
	return trip, true
}

// challenged takes a request out of the count: it was no measurement.
func (p *Prober) challenged(seq uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := &p.ring[int(seq)%len(p.ring)]; seq != 0 && q.seq == seq && !q.answered {
		q.answered = true
		p.unproven++
	}
}

// drain waits for answers to what was sent.
func (p *Prober) drain(ctx context.Context, tick *time.Ticker) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		p.mu.Lock()
		wait := min(max(drainLeast, 4*time.Duration(p.maxTrip)), drainMost)
		left := p.lastSent + int64(wait) - p.c.Now()
		done := p.f.answered+p.unproven == int64(p.sent)
		p.mu.Unlock()
		if done || left <= 0 {
			return nil
		}
		timer.Reset(time.Duration(min(left, int64(drainStep))))
		select {
		case <-timer.C:
		case <-tick.C:
			p.report()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// drainStep is how often drain looks whether all is there.
const drainStep = 5 * time.Millisecond

func (p *Prober) report() {
	if p.c.Report == nil {
		return
	}
	p.c.Report(p.figures(nil, false))
}

// Result returns the figures. remote is what the responder counted over the whole test,
// nil when it could not be asked: then losses are split only as far as the answers tell.
// It may be called when Run has returned.
func (p *Prober) Result(remote *Counts) *result.Probes { return p.figures(remote, true) }

func (p *Prober) figures(remote *Counts, final bool) *result.Probes {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := &result.Probes{
		Kind: cmp.Or(p.c.Kind, "udp-echo"), TOS: int(p.c.Class), Profile: p.c.Profile, Spacing: p.c.Spacing.Seconds(), Size: p.c.Size,
		Sent: int64(p.sent) - p.unproven, Answered: p.f.answered,
	}
	out.LostUp, out.LostDown = p.split(remote)
	p.f.fill(out, final)
	if final {
		out.WakeUp = p.late.Quantiles()
		if p.step > 0 {
			step := float64(p.step) / 1e9
			out.ClockStep = &step
		}
	}
	return out
}

// split says on which way the requests that were not answered were lost (RFC 6673).
func (p *Prober) split(remote *Counts) (up, down *int64) {
	if remote != nil {
		u, d := max(0, int64(p.sent)-p.unproven-remote.Received), max(0, remote.Answered-p.f.answered)
		return &u, &d
	}
	// Up to the newest answered request its answer tells; beyond, nobody knows.
	u := max(0, int64(p.f.highest)-p.unproven-p.f.count)
	d := max(0, p.f.count-int64(p.f.limited)-p.f.answered)
	return &u, &d
}

// budgetUsed says that a budget of payload bytes ended the probing before its time.
func budgetUsed(most int64) result.Notice {
	return result.Notice{Code: "budget-used", End: result.Client, Level: result.Warn, Text: fmt.Sprintf("the budget of %d bytes is used up: what was to come was left out", most)}
}

// Notices say what is to be known beside the figures. remote as in Result.
func (p *Prober) Notices(remote *Counts) []result.Notice {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []result.Notice
	limited := int64(p.f.limited)
	if remote != nil {
		limited = remote.Limited
	}
	if limited > 0 {
		out = append(out, result.Notice{
			Code: "probes-limited", End: result.Server, Level: result.Warn,
			Text: fmt.Sprintf("the other end left %d of %d requests unanswered, because they came faster than %d a second: they count neither as lost nor as answered", limited, p.sent, MaxRate),
		})
	}
	if p.skipped > 0 && p.skipped*100 > int64(p.sent) {
		out = append(out, result.Notice{
			Code: "sender-limited", Level: result.Warn,
			Text: fmt.Sprintf("this host was late: %d requests that were due were left out, %d were sent", p.skipped, p.sent),
		})
	}
	if p.spent {
		out = append(out, budgetUsed(p.c.Most))
	}
	if p.refused > 0 {
		out = append(out, result.Notice{
			Code: "sender-limited", Level: result.Warn,
			Text: fmt.Sprintf("this host's system refused to send %d requests; they are not counted as lost", p.refused),
		})
	}
	if p.icmp > 0 {
		out = append(out, result.Notice{
			Code: "icmp-refused", Level: result.Warn,
			Text: fmt.Sprintf("%d times the other host said that nobody takes its datagrams: a firewall, or the server went away", p.icmp),
		})
	}
	return out
}
