package ntttcp

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// report ends the data phase and emits the totals.
func (t *test) report(ctx context.Context, p *phase, why stop, err error, views func() []result.Stream) error {
	complete := p.complete()
	if why == stopPeer && !t.senderParted() { // it only told that its time is over
		why = stopGone
	}
	if t.others == 0 && t.shares() {
		t.noteOverlap("has run other tests")
	}
	totals, all := p.finish(why, true)
	t.r.c.countDatagrams(&totals)
	silent := why == stopSilent || p.vanished(all, "") != nil
	theirs := t.swapResults(ctx, why, err, complete, silent, outcome{totals, all, p.total})
	t.doneOnce.Do(func() { close(t.done) })
	fault := t.fault(ctx, p, ending{why, err, complete, t.link != nil && theirs == nil, all})
	if wrong := corrupt(all); wrong != nil && why != stopRequest {
		fault = wrong
	}
	if p.budget {
		t.out.notice(result.Notice{Code: "budget-reached", Level: result.Warn, Text: "the test was ended here: no more may come (--max-rate, --max-bytes)"})
	}
	if y := t.tally; y != nil {
		y.mu.RLock()
		n := len(y.refused)
		y.mu.RUnlock()
		if n > 0 {
			t.out.notice(result.Notice{Code: "streams-refused", Level: result.Warn, Text: fmt.Sprintf("%d further streams were not counted: a test has %d at most here", n, y.limit())})
		}
	}
	f := finishOf(result.Server, views(), totals, p.total, t.begun)
	p.stats.put(f.Streams)
	t.mergeResults(f, theirs)
	t.out.Event(result.Event{Kind: result.KindFinish, Finish: f})
	t.logTest(totals, fault)
	if fault != nil {
		return fault
	}
	return nil
}

// ending is how a data phase ended.
type ending struct {
	why      stop
	err      error
	complete bool
	// mute: a fullbore has not told what it counted: it was killed.
	mute bool
	all  traffic.Totals
}

// fault says what was wrong with the end of a data phase; nil = nothing.
func (t *test) fault(ctx context.Context, p *phase, x ending) *result.Error {
	why, err, complete, all := x.why, x.err, x.complete, x.all
	t.mu.Lock()
	parted, synced, left := t.parted, t.kind == kindLinux, len(t.members) > 0 && t.gone >= len(t.members)
	t.mu.Unlock()
	switch why {
	case stopRequest:
		return asError(ctx, err)
	case stopPeer:
		if complete {
			return nil
		}
		return &result.Error{Code: "sender-interrupted", Remote: true, Reported: true, Text: "the sender ended the test early: " + t.senderSays("it was interrupted")}
	case stopSilent:
		return &result.Error{Code: "peer-vanished", Remote: true, Text: fmt.Sprintf("nothing came for %v: the sender, or the path from it, has stopped", t.r.to.Silence)}
	case stopGone:
		if complete || parted {
			return nil
		}
		return t.senderLeft(p, x, left)
	}
	gone := p.vanished(all, "the sender")
	if gone == nil || gone.Code != "peer-vanished" || synced || t.tally == nil || x.mute {
		return gone
	}
	// Nothing but its word tells a sender of datagrams that has ended from one that disappeared.
	if t.kind == kindWindows && t.link == nil {
		gone.Text += "; if it ended there, " + sameTimes(t.kind)
		return gone
	}
	t.out.notice(result.Notice{Code: "sender-shorter", Level: result.Warn, Text: gone.Text + "; if it ended there, " + sameTimes(t.kind)})
	return nil
}

// sameTimes is the advice of a test whose ends had different times.
func sameTimes(k kind) string {
	if k == kindWindows {
		return "give both the same times (-t, -wu, -cd)"
	}
	return "give both the same times (-t, -W, -C)"
}

// senderLeft judges a sender whose connections all ended before its time was over. left: its sync
// connection ended too. A fullbore tells its results, and one that did not was killed; an original of
// the Windows dialect ends with its own time without a word (windows §3.6), which from here is as if
// it were killed: a test that was to last longer has broken off.
func (t *test) senderLeft(p *phase, x ending, left bool) *result.Error {
	synced := t.kind == kindLinux
	orderly := allOrderly(x.all)
	lasted := withoutParting(x.all).Elapsed + p.s.warmup.Seconds()
	e := &result.Error{Code: "peer-vanished", Remote: true, Text: "the sender disappeared: all its connections ended before the test was over", Errno: osnet.Errno(x.err)}
	switch {
	case x.mute:
	case p.s.endless() && !synced && (orderly || t.r.c.Message == traffic.RoundTrip): // its end is the test's
		return p.vanished(x.all, "the sender")
	case p.s.endless() && orderly:
		return nil // an original that runs until interrupted says no more than this
	case t.link != nil && orderly && !synced, t.kind == kindUnsynced && orderly:
		t.out.notice(result.Notice{Code: "sender-shorter", Level: result.Warn, Text: fmt.Sprintf(
			"the sender ended after %.1f s, this end was set to %.1f s: %s", lasted, p.s.cycle().Seconds(), t.shorter())})
		return nil
	case !synced && orderly:
		e.Text = fmt.Sprintf("the sender ended after %.1f s, this end was set to %.1f s: it was stopped, or had a shorter time; %s", lasted, p.s.cycle().Seconds(), sameTimes(t.kind))
	}
	if !left && synced {
		e.Text += ", while its sync connection is still open"
	}
	return e
}

// shorter is the advice about a sender that ended in good order before this end's time was over: one
// that counts its calls (-n) has no time.
func (t *test) shorter() string {
	if t.kind == kindWindows && t.hello != nil && t.hello.Duration == 0 {
		return "it counts its calls (-n); leave -t out here to end with it"
	}
	return sameTimes(t.kind)
}

// allOrderly: every connection ended as a program ends one.
func allOrderly(t traffic.Totals) bool {
	for _, f := range t.Flows {
		if f.Err != nil {
			return false
		}
	}
	return true
}

// logTest writes the one line of a test.
func (t *test) logTest(totals traffic.Totals, fault *result.Error) {
	if fault != nil {
		return // run logs it
	}
	var bytes int64
	for _, f := range totals.Flows {
		bytes += f.Total.Bytes
	}
	t.r.log.Log(context.Background(), slog.LevelInfo, "test", "test", t.number, "from", t.first.Host, "streams", len(totals.Flows),
		"up_bytes", bytes, "up_bps", int64(result.Rate(bytes, totals.Elapsed)), "seconds", fmt.Sprintf("%.2f", totals.Elapsed))
}
