package ntttcp

import (
	"fmt"
	"time"

	"github.com/fullbore-net/fullbore/internal/datagram"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/result"
)

// merge puts the other end's figures into end e's Finish. all are the datagrams that e sent or got
// per stream, from the first to the last; nil for TCP.
func merge(e result.End, f *result.Finish, all []int64, o *ext.Results) {
	theirs := make(map[int]*ext.StreamResult, len(o.Streams))
	for i := range o.Streams {
		theirs[o.Streams[i].ID] = &o.Streams[i]
	}
	for i := range f.Streams {
		s := &f.Streams[i]
		t := theirs[s.ID]
		if t == nil {
			continue
		}
		total := t.Total
		if e == s.Direction.Sender() {
			s.Receiver = &total
		} else {
			s.Sender = &total
		}
		s.RemoteTCP = t.TCP
		if i < len(all) {
			mergeDatagrams(e, s, all[i], t)
		}
	}
	f.CPU.Set(e.Other(), o.CPU)
	if o.Machine != nil {
		both := result.HostTotals{}
		if f.Machines != nil {
			both = *f.Machines
		}
		if e == result.Client {
			both.Server = o.Machine
		} else {
			both.Client = o.Machine
		}
		f.Machines = &both
	}
}

// mergeDatagrams adds what both ends' counts of a stream say together: the difference is the loss,
// of the whole test, since NTTTCP's datagrams do not tell of which time they are.
func mergeDatagrams(e result.End, s *result.Stream, own int64, t *ext.StreamResult) {
	if t.Datagrams == nil {
		return
	}
	u := result.UDPStream{}
	if s.UDP != nil {
		u = *s.UDP
	}
	sent, got := own, *t.Datagrams
	if e == s.Direction.Sender() {
		if t.UDP != nil {
			u.Received = t.UDP.Received
		}
	} else {
		sent, got = got, own
		if t.UDP != nil {
			u.Sent = t.UDP.Sent
		}
	}
	l := datagram.Loss(sent, datagram.Counts{First: got, Highest: sent})
	if r := u.Received; r != nil {
		datagram.Attribute(&l, r.SocketDrops, r.Coalesced, nil, nil)
	} else {
		datagram.Attribute(&l, nil, false, nil, nil)
	}
	u.Loss = &l
	s.UDP = &u
}

// resultsMissing says that the other end's figures did not come.
func resultsMissing(l *link, why error) result.Notice {
	return result.Notice{
		Code: "results-missing", End: l.end.Other(), Level: result.Warn,
		Text: fmt.Sprintf("%s's figures are missing (%v): this run has this end's only", l.other(), why),
	}
}

// overlap says that other tests run at end e.
func overlap(e result.End, who string, n int) result.Notice {
	return result.Notice{
		Code: "overlap", End: e, Level: result.Warn,
		Text: fmt.Sprintf("%s runs %d other tests at the same time: the rate is a share", who, n),
	}
}

// compareTimes says that the ends measure different times; nil = they measure the same.
func compareTimes(own, theirs schedule, here, there string, second time.Duration) *result.Notice {
	if own.warmup == theirs.warmup && own.measured == theirs.measured {
		return nil
	}
	text := func(s schedule) string {
		in := func(d time.Duration) string { return fmt.Sprintf("%.4g s", float64(d)/float64(second)) }
		switch {
		case s.measured < 0:
			return "nothing"
		case s.endless():
			return fmt.Sprintf("until it is stopped, after a warm-up of %s", in(s.warmup))
		}
		return fmt.Sprintf("%s after a warm-up of %s", in(s.measured), in(s.warmup))
	}
	n := timesDiffer(fmt.Sprintf("%s measures %s, %s %s, so their rates are of different times", here, text(own), there, text(theirs)))
	return &n
}

// scaled makes durations of seconds of the protocol.
func scaled(second time.Duration) func(s float64) time.Duration {
	return func(s float64) time.Duration { return time.Duration(s * float64(second)) }
}
