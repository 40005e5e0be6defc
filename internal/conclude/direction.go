package conclude

import (
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// Basis says whose count a headline is.
type Basis int

// From the best to none. The "so far" ones are added up from intervals because no
// final count came: the run was interrupted or its peer lost.
const (
	None          Basis = iota
	Received            // the receiver's total: the result
	ReceivedSoFar       // the receiver's intervals
	Sent                // the sender's total: what was offered, not what arrived
	SentSoFar           // the sender's intervals
)

// Arrived reports whether the figure was counted by the receiver.
func (b Basis) Arrived() bool { return b == Received || b == ReceivedSoFar }

// Headline is the one figure of a direction, with its provenance.
type Headline struct {
	Basis   Basis
	Bytes   int64
	Seconds float64
	BPS     float64
}

// HeadlineOf picks the figure that stands for direction d: what the receiver counted
// wherever it is known, else what was sent, marked as such. An unknown one has Basis None.
func HeadlineOf(run *result.Run, d result.Direction) Headline {
	var sum result.Sum
	if s := run.Sum(d); s != nil {
		sum = *s
	}
	if u := sum.UDP; u != nil && u.Received != nil && sum.Receiver != nil {
		// Of UDP the receiver's total has duplicates, too; what was delivered has not.
		t := *sum.Receiver
		t.Bytes = u.Received.Bytes
		sum.Receiver = &t
	}
	for _, c := range []struct {
		basis Basis
		total *result.Total
	}{
		{Received, sum.Receiver},
		{ReceivedSoFar, SoFar(run, d, d.Receiver())},
		{Sent, sum.Sender},
		{SentSoFar, SoFar(run, d, d.Sender())},
	} {
		if t := c.total; t != nil {
			return Headline{Basis: c.basis, Bytes: t.Bytes, Seconds: t.Seconds(), BPS: t.Rate()}
		}
	}
	return Headline{}
}

// SoFar adds up the counted rows of end e for direction d: what stands in for a total
// that never came. It is nil when there are none.
func SoFar(run *result.Run, d result.Direction, e result.End) *result.Total {
	var t *result.Total
	for _, s := range counted(run, d, e, true) {
		if t == nil {
			t = &result.Total{Start: s.Start, End: s.Stop, Bytes: s.Bytes, Retransmits: s.Retransmits, Packets: s.Packets, Lost: s.Lost, OutOfOrder: s.OutOfOrder, Jitter: s.Jitter}
			continue
		}
		t.End = s.Stop
		t.Bytes += s.Bytes
		t.Retransmits, t.Packets, t.Lost = add(t.Retransmits, s.Retransmits), add(t.Packets, s.Packets), add(t.Lost, s.Lost)
		t.OutOfOrder = add(t.OutOfOrder, s.OutOfOrder)
		t.Jitter = s.Jitter
	}
	return t
}

// add adds two counts; an unknown one makes the sum unknown.
func add(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	v := *a + *b
	return &v
}

// counted returns the sums of direction d in the rows of end e that are not omitted.
func counted(run *result.Run, d result.Direction, e result.End, partial bool) []result.IntervalSum {
	var out []result.IntervalSum
	for _, row := range run.Rows {
		if row.End != e || row.Omitted || row.Partial && !partial {
			continue
		}
		for _, s := range row.Sums {
			if s.Direction == d {
				out = append(out, s)
			}
		}
	}
	return out
}

// direction is what is known about one direction of a run.
type direction struct {
	dir      result.Direction
	from, to string
	streams  []*result.Stream
	sum      *result.Sum
	head     Headline
	sent     int64                // bytes the sender counted, so far or in all; 0 when unknown
	rows     []result.IntervalSum // whole counted rows of rowsEnd
	rowsEnd  result.End           // the receiver where its intervals are known, else the sender
	rates    []float64            // of rows
	planned  float64              // length of a row by the plan, s; 0 = none
	shares   *result.Shares
	loss     *result.UDPLoss // UDP; nil = not known
	verdict  verdict
	unsteady bool
}

func look(run *result.Run, d result.Direction) *direction {
	out := &direction{dir: d, sum: run.Sum(d), head: HeadlineOf(run, d), planned: run.Test.Interval}
	out.from, out.to = Label(run, d)
	if out.sum.Sender != nil {
		out.sent = out.sum.Sender.Bytes
	} else if t := SoFar(run, d, d.Sender()); t != nil {
		out.sent = t.Bytes
	}
	for i := range run.Streams {
		if run.Streams[i].Direction == d {
			out.streams = append(out.streams, &run.Streams[i])
		}
	}
	for _, e := range []result.End{d.Receiver(), d.Sender()} {
		if out.rows = counted(run, d, e, false); len(out.rows) > 0 {
			out.rowsEnd = e
			break
		}
	}
	for _, s := range out.rows {
		out.rates = append(out.rates, s.BPS)
	}
	out.shares = shares(run, out)
	return out
}

// nothing reports whether payload was sent and the receiver knows of none.
func (d *direction) nothing() bool {
	return d.head.Basis.Arrived() && d.head.Bytes == 0 && d.sent > 0
}

// tcp returns the kernel's view of one stream at the end that sends, nil when unknown.
func (d *direction) tcp(run *result.Run, s *result.Stream) *result.TCPSummary {
	if run.End == d.dir.Sender() {
		return s.TCP
	}
	return s.RemoteTCP
}

// telling reports whether the rows show the path's ups and downs. The receiver's do. The
// sender's do only when a row holds several times what its buffers can: writes into a
// buffer come in gulps.
func (d *direction) telling(run *result.Run) bool {
	if d.rowsEnd != d.dir.Sender() {
		return len(d.rows) > 0
	}
	const times = 8
	var buffers, bytes int64
	for _, s := range d.streams {
		switch t := d.tcp(run, s); {
		case t != nil && t.MaxCwnd > 0:
			buffers += 2 * t.MaxCwnd // what autotuning aims at
		case s.Buffers != nil && run.End == d.dir.Sender():
			buffers += s.Buffers.SndGranted
		default:
			return false
		}
	}
	for _, r := range d.rows {
		bytes += r.Bytes
	}
	return bytes/int64(len(d.rows)) >= times*buffers
}

// step is the usual length of a row, s: the planned one where the rows keep to it.
func (d *direction) step() float64 {
	if len(d.rows) == 0 {
		return 0
	}
	s := d.rows[len(d.rows)/2]
	if length := s.Stop - s.Start; d.planned <= 0 || math.Abs(length-d.planned) > 0.1*d.planned {
		return length
	}
	return d.planned
}

// Label names the hosts of direction d as "from" and "to" (see result.Run.EndNames).
func Label(run *result.Run, d result.Direction) (from, to string) {
	return EndName(run, d.Sender()), EndName(run, d.Receiver())
}

// EndName names the host of one end.
func EndName(run *result.Run, e result.End) string { return run.EndName(e) }

// loopback reports whether the test never left this machine.
func loopback(run *result.Run) bool {
	if len(run.Streams) == 0 {
		return false
	}
	a, err := netip.ParseAddr(run.Streams[0].Remote.Host)
	return err == nil && a.IsLoopback()
}

// sharedCores reports whether both ends may well use the same CPUs: over loopback, or
// (network namespaces) under the same name and system. Clones of a machine look alike
// too, so this may only lead to saying less.
func sharedCores(run *result.Run) bool {
	c, s := run.Hosts.Client, run.Hosts.Server
	return loopback(run) || c != nil && s != nil && c.Name != "" && c.Name == s.Name && c.SystemInfo == s.SystemInfo
}

func seconds(s float64) string { return units.FormatDuration(time.Duration(s * 1e9)) }

func rate(bps float64) string { return units.BitRate(bps + 0.5).String() }

func size(bytes int64) string { return units.ByteSize(bytes).String() }

// percent prints a share, 0..1, with as many digits as it deserves.
func percent(share float64) string {
	p := share * 100
	switch {
	case p == 0:
		return "0 %"
	case p < 0.001:
		return "< 0.001 %"
	case p < 0.0995:
		return fmt.Sprintf("%.2g %%", p)
	case p < 9.95:
		return fmt.Sprintf("%.1f %%", p)
	}
	return fmt.Sprintf("%.0f %%", p)
}
