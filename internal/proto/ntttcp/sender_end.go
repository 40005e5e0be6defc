package ntttcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// goneAfter is how many ICMP answers end a connection over UDP: routers and hosts send a few at
// once, and then one a second. The original of Windows ends with the first (10054, windows §3.6);
// one may be about a datagram that came before the receiver was ready.
const goneAfter = 3

// left words why all connections ended before their time.
func (r *senderRun) left(all traffic.Totals, err error) *result.Error {
	e := &result.Error{Code: "peer-closed", Remote: true, Text: "the receiver ended all connections before the test was over", Errno: osnet.Errno(err)}
	why := "it was stopped, or was given a shorter time (-t, -W, -C)"
	if errors.Is(err, traffic.ErrGone) {
		e.Text = fmt.Sprintf("the receiver has gone after %.1f s: its host answers that nobody listens there any more (ICMP port unreachable)", all.Elapsed)
		if all.Elapsed < deafAtOnce {
			e.Text, why = "the receiver's host answers that nobody listens there (ICMP port unreachable)", "start it first, with -u and the same ports (-P, -p)"
		}
	}
	if r.sync == nil || all.Elapsed < deafAtOnce {
		e.Text += ": " + why
	}
	return e
}

// settleMost is how long an interrupted sender waits until what it sent has arrived.
const settleMost = 100 * time.Millisecond

// settle waits, for a moment, until the receiver's system has all that was sent: the word that a test
// was interrupted goes another way, may overtake that, and ends the receiver's count.
func (r *senderRun) settle(why stop) {
	if why != stopRequest || r.c.Transport != plan.TCP {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleMost)
	defer cancel()
	_ = r.eng.Drain(ctx) // what is late is missing there
}

// deafAtOnce is how soon (s) a test over UDP ends of which nobody ever heard.
const deafAtOnce = 0.3

// deaf are the receiver's ports where ICMP answered that nobody listens, well before the end: it may
// end a moment before this end does.
func deaf(views []result.Stream, all traffic.Totals) map[int]bool {
	ports := map[int]bool{}
	for i, f := range all.Flows {
		if errors.Is(f.Err, traffic.ErrGone) && f.LastByte < all.Elapsed-deafAtOnce {
			ports[views[i].Remote.Port] = true
		}
	}
	return ports
}

// nudge sends a datagram of one byte on each connection now and then, until the function that it
// returns is called: a real receiver's threads wait for a datagram after the end, and for 30 s when
// none comes (linux §8.1). The original's count is over then; ours knows them (tally.add).
func (r *senderRun) nudge() (stop func()) {
	if r.c.Transport != plan.UDP || r.c.Windows {
		return func() {}
	}
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() { // ends with quit
		defer close(gone)
		for {
			t := time.NewTimer(r.to.Linger / 8)
			select {
			case <-t.C:
			case <-quit:
				t.Stop()
				return
			}
			for _, c := range r.sent {
				write(c, []byte{'B'})
			}
		}
	}()
	return func() {
		close(quit)
		<-gone
	}
}
