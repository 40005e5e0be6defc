package ntttcp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// meet connects to the sync port and asks for the receiver's state. A fullbore is greeted there.
// What says that it is one and does not answer as one gets another connection, and hears nothing
// of the extension on that.
func (r *senderRun) meet(ctx context.Context, addrs []netip.Addr) error {
	state, err := r.askState(ctx, addrs)
	if err != nil || state != StateFullbore || !r.offers() {
		return err
	}
	why := r.greet(ctx)
	if why == nil {
		return r.limited()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.sync.close()
	r.sync = nil
	r.fallBack(why)
	_, err = r.askState(ctx, addrs)
	return err
}

// fallBack says that the extension is not used with a receiver that named it.
func (r *senderRun) fallBack(why error) {
	r.out.notice(result.Notice{
		Code: "extension-fallback", Level: result.Info,
		Text: fmt.Sprintf("the receiver answers as a fullbore does, but does not speak its extension (%v): this run has this end's figures only", why),
	})
}

// offers reports that this end would speak the extension. Words must be tellable from frames,
// and a run has one receiver.
func (r *senderRun) offers() bool {
	if r.c.Extension == "off" || r.c.NoSync {
		return false
	}
	for _, h := range r.hosts {
		if h != r.hosts[0] {
			return false
		}
	}
	return proposal(r.c.cycle()) < maxExtWord
}

var (
	errNoHello  = errors.New("its hello makes no sense")
	errNotHello = errors.New("it said something else")
)

// greet exchanges hellos on r.sync and makes r.link. Nothing but the extension's own peers hear
// of this.
func (r *senderRun) greet(ctx context.Context) error {
	c := r.sync
	l := newLink(result.Client, r.to.Answer, c.write)
	l.streams = r.c.connections()
	l.cut = func() { _ = c.nc.Close() }
	r.stopped = make(chan struct{})
	l.ended = func(o *ext.Results) {
		if o.Err != nil {
			close(r.stopped)
		}
	}
	c.carry(l)
	if err := l.say(ext.FrameHello, r.hello()); err != nil {
		return err
	}
	timer := time.NewTimer(r.to.Hello)
	defer timer.Stop()
	select {
	case h := <-l.hello:
		if h == nil || h.Test == "" { // an echo has none
			return errNoHello
		}
		r.greeted(l, h)
		return nil
	case h, ok := <-c.in:
		switch {
		case !ok:
			return errPeerEnded
		case h.err != nil:
			return h.err
		}
		return errNotHello
	case <-timer.C:
		return errNoAnswer
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hello is this end's.
func (r *senderRun) hello() ext.ClientHello {
	h := ext.ClientHello{
		V: ext.Version, Version: r.s.Tool.Version, Features: r.c.features(), Streams: r.c.connections(),
		Omit: r.c.Warmup.Seconds(), Cooldown: r.c.Cooldown.Seconds(),
		UDP: r.c.Transport == plan.UDP,
	}
	if !r.c.Endless && r.c.Blocks == 0 {
		h.Duration = r.c.Duration.Seconds()
	}
	return h
}

// greeted takes in what the receiver says about itself.
func (r *senderRun) greeted(l *link, h *ext.ServerHello) {
	r.link, r.peer = l, h
	r.head.Wire.Extension, r.head.Wire.PeerVersion = true, h.Version
	r.head.Hosts.Server = h.Host
	if n := ext.VersionNotice(h.Version, r.s.Tool); n != nil {
		r.out.notice(*n)
	}
	if h.Overlap > 0 {
		r.out.notice(overlap(result.Server, "the receiver", h.Overlap))
	}
}

// limited refuses what the receiver would.
func (r *senderRun) limited() error {
	if r.peer == nil || r.peer.Limits == nil {
		return nil
	}
	if most := r.peer.Limits.MaxStreams; most > 0 && r.c.connections() > most {
		return &result.Error{
			Code: "limit", Remote: true, Reported: true,
			Text: fmt.Sprintf("the receiver takes %d connections of one test, this one would make %d: give smaller -P, -n or -l", most, r.c.connections()),
		}
	}
	return nil
}

// introduce tells the receiver what it cannot see: this machine, and which of its connections is
// which of ours.
func (r *senderRun) introduce() error {
	if r.link == nil {
		return nil
	}
	if f := r.s.Facts; f != nil {
		if err := r.link.say(ext.FrameClient, ext.ClientFrame{Facts: f}); err != nil {
			return err
		}
	}
	var list [][2]int
	for i, c := range r.conns {
		list = append(list, [2]int{c.Local().Port, c.Remote().Port})
		if len(list) == listPart || i == len(r.conns)-1 {
			if err := r.link.say(ext.FrameClient, ext.ClientFrame{Streams: list}); err != nil {
				return err
			}
			list = nil
		}
	}
	return nil
}

// listPart is how many connections one frame tells of: 14 bytes each.
const listPart = 8192

// linked begins the live part of the extension with the data phase.
func (r *senderRun) linked(s schedule) {
	if r.link == nil {
		return
	}
	r.link.begin(r.out, r.peer.Has(ext.FeatureEvents))
	if t := r.peer.Times; t != nil && !t.Follow && r.c.Blocks == 0 { // calls have no time
		if n := compareTimes(s, r.scheduleBy(t), "this end", "the receiver", r.second); n != nil {
			r.out.notice(*n)
		}
	}
}

// scheduleBy is what a receiver of these times does in this test.
func (r *senderRun) scheduleBy(t *ext.Times) schedule {
	scale := scaled(r.second)
	if r.c.Windows {
		return schedule{warmup: scale(t.Omit), measured: scale(t.Duration), cooldown: scale(t.Cooldown)}
	}
	return scheduleOf(r.agreed, scale(t.Omit), scale(t.Duration))
}

// outcome is what a data phase came to: what counts, all that moved, the machine's counters.
type outcome struct {
	counts, all traffic.Totals
	machine     *result.HostTotal
}

// conclude ends the extension's part of a test: this end's results against the receiver's, which
// are put into f. It returns the fault of the run, as it is with what the receiver says.
func (r *senderRun) conclude(ctx context.Context, f *result.Finish, why stop, x outcome, fault *result.Error) *result.Error {
	l := r.link
	if l == nil {
		return fault
	}
	own := r.results(x, fault)
	if own.Whole {
		r.eng.Close() // the receiver reads to the end of the connections
	}
	l.stop(why == stopSilent)
	said := l.tell(own)
	within := r.to.Answer
	switch {
	case why == stopRequest:
		within = r.to.Stopping
	case why == stopSilent:
		within = 0
	case fault != nil && fault.Code == "peer-vanished":
		within = r.to.Stopping
	case own.Whole:
		within = max(within, r.to.Silence)
	}
	o, lost := l.await(context.WithoutCancel(ctx), within)
	if o == nil {
		if said != nil {
			lost = said
		}
		r.out.notice(resultsMissing(l, lost))
		return fault
	}
	r.linger = time.Time{} // it needs nothing more
	merge(result.Client, f, r.datagrams(x.all), o)
	if n := ext.DroppedNotice(result.Server, "the receiver's", l.missed()); n != nil {
		r.out.notice(*n)
	}
	if why == stopGone && o.Err == nil && r.c.Windows && fault != nil && fault.Code == "peer-closed" {
		// Nothing is agreed on there: it had a shorter time.
		r.out.notice(result.Notice{
			Code: "receiver-shorter", Level: result.Warn,
			Text: fmt.Sprintf("the receiver ended after %.1f s, this end was set to longer: give both the same times (-t, -wu, -cd)", x.all.Elapsed),
		})
		return nil
	}
	return fault
}

// results are this end's.
func (r *senderRun) results(x outcome, fault *result.Error) ext.Results {
	out := resultsOf(x.counts, r.datagrams(x.all), x.machine, fault)
	out.Whole = r.c.Blocks > 0 && r.c.Transport == plan.TCP && fault == nil
	return out
}

// datagrams is how many this end sent on each connection, in all. Round trips are counted both
// ways, so that what was lost does not follow from them.
func (r *senderRun) datagrams(all traffic.Totals) []int64 {
	if r.c.Transport != plan.UDP || r.c.Message == traffic.RoundTrip {
		return nil
	}
	out := make([]int64, len(all.Flows))
	for i, f := range all.Flows {
		if f.Total.Packets != nil {
			out[i] = *f.Total.Packets
		}
	}
	return out
}

// receiverStopped words why the receiver ended the test before its time.
func (r *senderRun) receiverStopped() *result.Error {
	o, _ := r.link.await(context.Background(), 0)
	e := &result.Error{Code: "peer-closed", Remote: true, Reported: true, Text: "the receiver ended the test early"}
	if o != nil && o.Err != nil && o.Err.Text != "" {
		e.Text += ": " + o.Err.Text
	}
	return e
}

// token is what is sent for connection i's token: one of them asks for a fullbore.
func (r *senderRun) token(i int) byte {
	if i == 0 && r.offers() {
		return TokenFullbore
	}
	return Token
}

// meetTokens greets a receiver that answered as a fullbore, and has it begin. Where that fails the
// test goes on without: all tokens are in.
func (r *senderRun) meetTokens(ctx context.Context) error {
	if r.greeting == nil {
		return nil
	}
	r.sync, r.greeting = newSyncConn(r.greeting.Net()), nil
	if why := r.greet(ctx); why != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.sync.close()
		r.sync = nil
		r.fallBack(why)
		return nil
	}
	if err := r.limited(); err != nil {
		return err
	}
	return r.start(ctx)
}
