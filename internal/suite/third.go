package suite

import (
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/fullbore-net/fullbore/internal/capture"
	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/result"
)

// captureTolerance is how far the payload that a third point saw may lie outside of what the ends
// counted.
const captureTolerance = 0.01

// ThirdPoint sets what a capture holds of the runs beside what the ends counted: it fills the
// acceptance's capture check. name is the file's, for the report.
func ThirdPoint(rep *result.Report, name string, file io.Reader) error {
	if rep.Acceptance == nil {
		return errors.New("it is no acceptance")
	}
	var want []capture.Flow
	for _, run := range rep.Runs {
		for i := range run.Streams {
			if f, ok := flowOf(run, &run.Streams[i]); ok {
				want = append(want, f)
			}
		}
	}
	s, err := capture.Read(file, want)
	if err != nil {
		return err
	}
	c := &result.CaptureCheck{File: name, Packets: s.Packets, Skipped: s.Unread, Cut: s.Cut, Flows: []result.CaptureFlow{}, Missing: []string{}}
	for i, run := range rep.Runs {
		for _, d := range both() {
			if run.Sum(d) == nil {
				continue
			}
			f := seen(rep, i, run, d, s)
			if f.Packets == 0 {
				c.Missing = append(c.Missing, f.Run+" "+f.Direction)
				continue
			}
			c.Flows = append(c.Flows, f)
		}
	}
	rep.Acceptance.Capture = c
	rep.Items = without(rep.Items, "capture")
	item := result.Item{ID: "capture", Title: "third point", Result: result.Pass}
	for _, f := range c.Flows {
		item.Result = worse(item.Result, f.Result)
		if f.Result != result.Pass {
			item.Reasons = append(item.Reasons, f.Reason)
		}
	}
	switch {
	case len(c.Flows) == 0:
		item.Result, item.Reasons = result.Inconclusive, []string{fmt.Sprintf("The capture (%s packets) has nothing of the runs: another place, or another time.", conclude.Grouped(s.Packets))}
	case item.Result == result.Pass:
		item.Reasons = []string{fmt.Sprintf("What a third point saw agrees with both ends' counts (%d of %d directions of runs).", len(c.Flows), len(c.Flows)+len(c.Missing))}
	}
	rep.Items = append(rep.Items, item)
	return nil
}

func without(items []result.Item, id string) (out []result.Item) {
	for _, i := range items {
		if i.ID != id {
			out = append(out, i)
		}
	}
	return out
}

// flowOf is the flow of a stream's payload.
func flowOf(run *result.Run, s *result.Stream) (f capture.Flow, ok bool) {
	a, err1 := netip.ParseAddr(s.Local.Host)
	b, err2 := netip.ParseAddr(s.Remote.Host)
	if err1 != nil || err2 != nil || s.Local.Port <= 0 || s.Remote.Port <= 0 {
		return f, false
	}
	f.Proto = capture.TCP
	if run.Test.Transport == "udp" {
		f.Proto = capture.UDP
	}
	f.Src = netip.AddrPortFrom(a.Unmap().WithZone(""), uint16(s.Local.Port))
	f.Dst = netip.AddrPortFrom(b.Unmap().WithZone(""), uint16(s.Remote.Port))
	if run.End != s.Direction.Sender() {
		f.Src, f.Dst = f.Dst, f.Src
	}
	return f, true
}

// seen sums up a run's direction.
func seen(rep *result.Report, at int, run *result.Run, d result.Direction, s *capture.Summary) result.CaptureFlow {
	out := result.CaptureFlow{Run: run.Label, Direction: string(d)}
	if out.Run == "" {
		out.Run = fmt.Sprint("run ", at+1)
	}
	for i := range run.Streams {
		st := &run.Streams[i]
		f, ok := flowOf(run, st)
		if st.Direction != d || !ok || s.Flows[f] == nil {
			continue
		}
		c := s.Flows[f]
		out.Packets += c.Packets
		out.Payload += c.Payload
		out.Unique += c.Unique
		out.Again += c.Again
		out.Gaps += c.Missing
	}
	sent, got := whole(run, d, d.Sender()), whole(run, d, d.Receiver())
	out.Claimed = sent
	if sent > 0 {
		out.Differs = float64(out.Unique-sent) / float64(sent)
	}
	head := fmt.Sprintf("%s %s: %s bytes passed the third point", out.Run, d, conclude.Grouped(out.Unique))
	switch {
	case sent == 0 && got == 0:
		out.Result, out.Reason = result.Inconclusive, head+"; the ends do not tell theirs."
	case sent > 0 && float64(out.Unique) > float64(sent)*(1+captureTolerance)+64<<10:
		out.Result, out.Reason = result.Fail, fmt.Sprintf("%s, more than the %s that were sent: a counter is wrong.", head, conclude.Grouped(sent))
	case float64(out.Unique) < float64(got)*(1-captureTolerance):
		out.Result, out.Reason = result.Inconclusive, fmt.Sprintf("%s, fewer than the %s that arrived: the capture is not whole (a mirror port drops what it cannot carry).", head, conclude.Grouped(got))
	case sent > 0 && out.Unique > sent:
		out.Result, out.Reason = result.Pass, fmt.Sprintf("%s: the %s that were sent, and what opens the streams.", head, conclude.Grouped(sent))
	default:
		out.Result, out.Reason = result.Pass, fmt.Sprintf("%s, between the %s sent and the %s received", head, conclude.Grouped(sent), conclude.Grouped(got))
		out.Reason += place(run, d, &out, sent, got) + "."
	}
	return out
}

// place says on which side of the third point something was lost.
func place(run *result.Run, d result.Direction, f *result.CaptureFlow, sent, got int64) string {
	if run.Test.Transport == "udp" {
		size := int64(max(run.Test.BlockSize, 1))
		before, behind := max(sent-f.Unique, 0)/size, max(f.Unique-got, 0)/size
		if before+behind == 0 {
			return ""
		}
		return fmt.Sprintf("; %s datagrams were lost before it, %s behind it", conclude.Grouped(before), conclude.Grouped(behind))
	}
	s := run.Sum(d)
	if s == nil || s.Sender == nil || s.Sender.Retransmits == nil || *s.Sender.Retransmits == 0 && f.Again == 0 {
		return ""
	}
	return fmt.Sprintf("; of %s segments sent again (in the measured part) %s passed twice and so were lost behind it", conclude.Grouped(*s.Sender.Retransmits), conclude.Grouped(f.Again))
}

// whole is what an end counted in a direction, the warm-up included.
func whole(run *result.Run, d result.Direction, e result.End) (n int64) {
	for i := range run.Rows {
		if run.Rows[i].End != e {
			continue
		}
		for _, s := range run.Rows[i].Sums {
			if s.Direction == d && s.Sender == (e == d.Sender()) {
				n += s.Bytes
			}
		}
	}
	if n > 0 {
		return n
	}
	s := run.Sum(d)
	t := s.Sender
	if e == d.Receiver() {
		t = s.Receiver
	}
	if t == nil {
		return 0
	}
	return t.Bytes
}
