package soak

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// path is a path and a peer with a known fate, in the bubble's time.
type path struct {
	began time.Time
	out   [][2]float64 // times in which nothing gets through, s
	down  [][2]float64 // times in which the peer's program does not run
	bps   func(t float64) float64
	ext   bool
	udp   bool
	tests int
}

func within(list [][2]float64, t float64) bool {
	for _, o := range list {
		if t >= o[0] && t < o[1] {
			return true
		}
	}
	return false
}

func (p *path) t() float64 { return time.Since(p.began).Seconds() }

func (p *path) reach(ctx context.Context) error {
	for within(p.out, p.t()) { // a SYN is sent again after a second
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
	time.Sleep(5 * time.Millisecond)
	if within(p.down, p.t()) {
		return fmt.Errorf("connect: %w", syscall.ECONNREFUSED)
	}
	return nil
}

// flows reports that TCP carries payload at time t: after an outage it waits for its next
// retransmission, whose distances double; connections that are newer know nothing of it.
func (p *path) flows(t, zero float64) bool {
	for _, o := range p.out {
		if t < o[0] || zero > o[1] {
			continue
		}
		next, wait := o[0], 0.2
		for next < o[1] {
			next += wait
			wait *= 2
		}
		if p.udp {
			next = o[1]
		}
		if t < next {
			return false
		}
	}
	return true
}

// run plays one test: reports of both ends each 100 ms. The server's come 5 ms later, and after an
// outage all at once.
func (p *path) run(ctx context.Context, pl plan.Plan, sink result.Sink) (*result.Run, error) {
	p.tests++
	run := &result.Run{}
	if within(p.out, p.t()) || within(p.down, p.t()) {
		return run, &result.Error{Code: "connect", Text: "nobody is there"}
	}
	time.Sleep(20 * time.Millisecond)
	sink.Event(result.Event{Kind: result.KindStart, Head: &result.Run{Wire: &result.Wire{Extension: p.ext}}})
	zero := p.t()
	var acked int64
	var held []result.Event
	index := 0
	for at := 0.0; at < pl.Duration.Seconds()-1e-9; at += 0.1 {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return run, context.Cause(ctx)
		}
		bytes := int64(0)
		for k := range 10 { // in hundredths of a second
			if now := zero + at + float64(k)*0.01; p.flows(now, zero) && !within(p.down, now) {
				bytes += int64(p.bps(now) / 8 / 100)
			}
		}
		now := zero + at + 0.1
		if within(p.down, now) {
			return run, &result.Error{Code: "closed", Text: "the server closed the connection", Remote: true}
		}
		if !p.udp {
			acked += bytes
		}
		sent := acked
		client := &result.Interval{End: result.Client, Index: index, Start: at, Stop: at + 0.1}
		server := &result.Interval{End: result.Server, Index: index, Start: at, Stop: at + 0.1}
		index++
		if pl.Sends(result.Client) {
			row := result.StreamInterval{ID: 1, Sender: true, Bytes: bytes}
			sum := result.IntervalSum{Direction: result.Up, Sender: true, Start: at, Stop: at + 0.1, Bytes: bytes}
			if p.udp {
				sum.Bytes = int64(p.bps(now) / 80)
			} else {
				row.TCP = &result.TCPInfo{BytesAcked: &sent}
				n := int64(1)
				sum.Retransmits = &n
			}
			client.Streams = append(client.Streams, row)
			client.Sums = append(client.Sums, sum)
			server.Sums = append(server.Sums, result.IntervalSum{Direction: result.Up, Start: at, Stop: at + 0.1, Bytes: bytes})
		}
		if pl.Sends(result.Server) {
			client.Sums = append(client.Sums, result.IntervalSum{Direction: result.Down, Start: at, Stop: at + 0.1, Bytes: bytes})
			n := int64(2)
			server.Sums = append(server.Sums, result.IntervalSum{Direction: result.Down, Sender: true, Start: at, Stop: at + 0.1, Bytes: bytes, Retransmits: &n})
		}
		sink.Event(result.Event{Kind: result.KindInterval, End: result.Client, Interval: client})
		if p.ext {
			held = append(held, result.Event{Kind: result.KindInterval, End: result.Server, Interval: server})
			tcp := *p
			tcp.udp = false // the control connection's way of coming back
			if tcp.flows(now, zero) {
				for _, ev := range held {
					sink.Event(ev)
				}
				held = nil
			}
		}
	}
	if !p.flows(p.t(), zero) {
		select {
		case <-time.After(9 * time.Second):
		case <-ctx.Done():
		}
		return run, &result.Error{Code: "silent-peer", Text: "no results came"}
	}
	return run, nil
}

func steady(bps float64) func(float64) float64 { return func(float64) float64 { return bps } }

func head(pl plan.Plan, length float64, steps ...Step) Head {
	if len(steps) == 0 {
		steps = []Step{{Share: 1}}
	}
	return Head{Version: Version, ID: "x", Plan: pl, Asked: length, Steps: steps, Judge: DefaultRules(), Inputs: []string{}}
}

// play plays p in the bubble and gives the record's book, too, read from the file.
func playPath(t *testing.T, p *path, h Head) (*Book, Played) {
	t.Helper()
	p.began = time.Now()
	file := filepath.Join(t.TempDir(), "soak.jsonl")
	rec, err := Create(file, h)
	if err != nil {
		t.Fatal(err)
	}
	memory := int64(20 << 20)
	pl := &Player{
		Book: NewBook(h), Record: rec, Run: p.run, Reach: p.reach, Extension: p.ext,
		Machine: func() Machine { return Machine{Memory: &memory} },
	}
	played := pl.Play(t.Context())
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	r, again, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if a, b := again.Result(), pl.Book.Result(); fmt.Sprintf("%+v", a.Outages) != fmt.Sprintf("%+v", b.Outages) || a.Length != b.Length || *a.Ways[0].Figures.Median != *b.Ways[0].Figures.Median {
		t.Errorf("the file says %+v, the play said %+v", a, b)
	}
	return again, played
}

// TestOutages: three outages, whatever the peer and the direction, are known with start and
// length within 0.2 s; TCP by itself would add up to as much as each lasted.
func TestOutages(t *testing.T) {
	want := [][2]float64{{40.03, 42.03}, {90.57, 95.77}, {150.31, 181.05}}
	for name, c := range map[string]struct {
		plan plan.Plan
		ext  bool
	}{
		"up":              {plan.Plan{Direction: plan.Up}, true},
		"down":            {plan.Plan{Direction: plan.Down}, true},
		"both":            {plan.Plan{Direction: plan.Both}, true},
		"plain up":        {plan.Plan{Direction: plan.Up}, false},
		"plain down":      {plan.Plan{Direction: plan.Down}, false},
		"udp up":          {plan.Plan{Direction: plan.Up, Transport: plan.UDP, Bitrate: 100e6}, true},
		"udp both":        {plan.Plan{Direction: plan.Both, Transport: plan.UDP, Bitrate: 100e6}, true},
		"plain udp, down": {plan.Plan{Direction: plan.Down, Transport: plan.UDP, Bitrate: 100e6}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &path{out: want, bps: steady(100e6), ext: c.ext, udp: c.plan.Transport == plan.UDP}
				b, played := playPath(t, p, head(c.plan, 240))
				if played.Err != nil {
					t.Error(played.Err)
				}
				s := b.Result()
				if len(s.Outages) != len(want) {
					t.Fatalf("%d outages: %+v", len(s.Outages), s.Outages)
				}
				for i, o := range s.Outages {
					if math.Abs(o.Start-want[i][0]) > 0.2 || math.Abs(o.Length-(want[i][1]-want[i][0])) > 0.2 || o.Open {
						t.Errorf("outage %d: %+v, truth %v", i, o, want[i])
					}
				}
				if s.Length < 239 || s.Length > 240.5 {
					t.Errorf("it lasted %v s", s.Length)
				}
				for _, w := range s.Ways {
					if m := *w.Figures.Median; math.Abs(m-100e6) > 0.5e6 {
						t.Errorf("%s: median %v", w.Direction, m)
					}
					a := *w.Figures.Availability
					if a > 1-37.0/240 || a < 1-46.0/240 { // the outages, and what the new tests need to begin
						t.Errorf("%s: availability %v", w.Direction, a)
					}
				}
				for _, i := range b.Judge(s) {
					if (i.ID == "outages" || i.ID == "availability") != (i.Result == result.Fail) {
						t.Errorf("%+v", i)
					}
				}
			})
		})
	}
}

// TestOutageBehindAStall: payload pauses while the path still answers, as on a host that is held up, and then the
// path goes: it is asked again, so the outage's end is not taken for that of TCP's wait.
func TestOutageBehindAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &path{out: [][2]float64{{40.6, 42.5}}, ext: true, bps: func(at float64) float64 {
			if at >= 40 && at < 40.6 {
				return 0
			}
			return 100e6
		}}
		b, _ := playPath(t, p, head(plan.Plan{Direction: plan.Down}, 60))
		s := b.Result()
		if len(s.Outages) != 1 {
			t.Fatalf("%+v", s.Outages)
		}
		if o := s.Outages[0]; math.Abs(o.Start-40) > 0.2 || math.Abs(o.Length-2.5) > 0.2 || o.Basis != "reach" || o.Why != "silent" || !o.Restarted {
			t.Errorf("%+v", o)
		}
	})
}

// Short outages, of which the first to be answered may be the repetition of one of the first questions.
func TestShortOutages(t *testing.T) {
	for k := range 13 {
		length := 1.1 + 0.05*float64(k)
		synctest.Test(t, func(t *testing.T) {
			p := &path{out: [][2]float64{{40, 40 + length}}, ext: true, bps: steady(100e6)}
			b, _ := playPath(t, p, head(plan.Plan{Direction: plan.Down}, 60))
			s := b.Result()
			if len(s.Outages) != 1 || math.Abs(s.Outages[0].Start-40) > 0.2 || math.Abs(s.Outages[0].Length-length) > 0.2 {
				t.Errorf("of %.2f s: %+v", length, s.Outages)
			}
		})
	}
}

func TestPeerRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &path{down: [][2]float64{{30, 36.5}}, bps: steady(1e9), ext: true}
		b, _ := playPath(t, p, head(plan.Plan{Direction: plan.Both}, 60))
		s := b.Result()
		if len(s.Outages) != 1 || s.Restarts != 1 || s.Tests != 2 {
			t.Fatalf("%+v", s)
		}
		o := s.Outages[0]
		if math.Abs(o.Start-30) > 0.2 || math.Abs(o.Length-6.5) > 0.2 || o.Why != "refused" || !o.Restarted || o.Direction != "both" {
			t.Errorf("%+v", o)
		}
	})
}

// An outage that lasts to the end is told as one that had not ended.
func TestOutageAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &path{out: [][2]float64{{50, 1000}}, bps: steady(1e9), ext: true}
		b, _ := playPath(t, p, head(plan.Plan{Direction: plan.Down}, 60))
		s := b.Result()
		if len(s.Outages) != 1 || !s.Outages[0].Open || math.Abs(s.Outages[0].Start-50) > 0.2 || math.Abs(s.Outages[0].Length-10) > 0.3 {
			t.Fatalf("%+v", s.Outages)
		}
	})
}

// A day towards a fullbore is one test; towards an iperf3 a chain of them, whose changeovers are
// no outages.
func TestChain(t *testing.T) {
	for _, ext := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := &path{bps: steady(1e9), ext: ext}
			b, played := playPath(t, p, head(plan.Plan{Direction: plan.Down}, 2.5*3600))
			s := b.Result()
			want := 3
			if ext {
				want = 1
			}
			if s.Tests != want || s.Restarts != 0 || len(s.Outages) != 0 || len(s.Gaps) != want-1 || played.Err != nil {
				t.Fatalf("extension %v: %d tests, %d restarts, outages %+v, gaps %+v, %v", ext, s.Tests, s.Restarts, s.Outages, s.Gaps, played.Err)
			}
			if len(s.Hours) != 3 || *s.Ways[0].Figures.Availability < 0.9999 {
				t.Errorf("%d hours, availability %v", len(s.Hours), *s.Ways[0].Figures.Availability)
			}
			for _, i := range b.Judge(s) {
				if i.Result != result.Pass {
					t.Errorf("%+v", i)
				}
			}
		})
	}
}

// Steps of the load alternate, and each is judged by its own usual rate.
func TestSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		share := 1.0
		p := &path{ext: true, bps: func(float64) float64 { return 1e9 * share }}
		inner := p.run
		h := head(plan.Plan{Direction: plan.Both, Bitrate: 1e9}, 300, Step{1, time.Minute}, Step{0.5, time.Minute})
		p.began = time.Now()
		pl := &Player{Book: NewBook(h), Reach: p.reach, Extension: true, Run: func(ctx context.Context, x plan.Plan, sink result.Sink) (*result.Run, error) {
			share = float64(x.Bitrate) / 1e9
			return inner(ctx, x, sink)
		}}
		pl.Play(t.Context())
		s := pl.Book.Result()
		w := s.Ways[0]
		if len(w.Levels) != 2 || math.Abs(w.Levels[0].Reference-1e9) > 1e6 || math.Abs(w.Levels[1].Reference-0.5e9) > 1e6 {
			t.Fatalf("%+v", w.Levels)
		}
		if *w.Figures.Availability < 0.98 || len(s.Outages) != 0 || s.Tests != 5 || len(w.Shifts) != 0 {
			t.Errorf("availability %v, %d tests, outages %+v, shifts %+v", *w.Figures.Availability, s.Tests, s.Outages, w.Shifts)
		}
	})
}

// What an interrupt leaves is a whole result, and going on with the file counts the time away as
// away.
func TestInterruptAndResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &path{bps: steady(1e9), ext: true, began: time.Now()}
		file := filepath.Join(t.TempDir(), "soak.jsonl")
		h := head(plan.Plan{Direction: plan.Both}, 120)
		rec, err := Create(file, h)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancelCause(t.Context())
		go func() {
			time.Sleep(40 * time.Second)
			stop(&result.Error{Code: "interrupted", Interrupted: true})
		}()
		pl := &Player{Book: NewBook(h), Record: rec, Run: p.run, Reach: p.reach, Extension: true}
		if played := pl.Play(ctx); played.Err == nil || !played.Err.Interrupted {
			t.Errorf("%+v", played.Err)
		}
		_ = rec.Close()
		time.Sleep(20 * time.Second)
		rec, b, err := Open(file)
		if err != nil {
			t.Fatal(err)
		}
		if b.Ended == nil || math.Abs(b.At-40) > 0.2 {
			t.Fatalf("ended %+v at %v", b.Ended, b.At)
		}
		pl = &Player{Book: b, Record: rec, Run: p.run, Reach: p.reach, Extension: true, Offset: p.t()}
		if played := pl.Play(t.Context()); played.Err != nil {
			t.Error(played.Err)
		}
		_ = rec.Close()
		s := b.Result()
		if len(s.Gaps) != 1 || s.Gaps[0].Why != "away" || math.Abs(s.Gaps[0].Length-20) > 0.2 || len(s.Outages) != 0 || math.Abs(s.Length-120) > 0.2 {
			t.Errorf("gaps %+v, outages %+v, length %v", s.Gaps, s.Outages, s.Length)
		}
		if m := s.Ways[0].Figures.Measured; math.Abs(m-100) > 1 {
			t.Errorf("measured %v s", m)
		}
	})
}

func TestFirstConnectFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &path{down: [][2]float64{{0, 100}}, bps: steady(1e9), began: time.Now()}
		h := head(plan.Plan{Direction: plan.Up}, 60)
		pl := &Player{Book: NewBook(h), Run: p.run, Reach: p.reach}
		if played := pl.Play(t.Context()); played.Err == nil || played.Err.Code != "connect" || p.tests != 1 {
			t.Errorf("%+v after %d tests", played.Err, p.tests)
		}
	})
}

func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &path{bps: steady(8e6), ext: true, began: time.Now()}
		h := head(plan.Plan{Direction: plan.Up}, 60, Step{1, 5 * time.Second}, Step{1, 5 * time.Second})
		pl := &Player{Book: NewBook(h), Run: p.run, Reach: p.reach, Extension: true, MaxBytes: 9e6}
		pl.Play(t.Context())
		s := pl.Book.Result()
		if s.Tests != 2 || s.Length > 11 || len(pl.Book.Notices(s)) != 1 {
			t.Errorf("%d tests, %v s, %+v", s.Tests, s.Length, pl.Book.Notices(s))
		}
	})
}
