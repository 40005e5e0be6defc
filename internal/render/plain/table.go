package plain

import (
	"fmt"
	"io"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/result"
)

// Table prints runs towards several hosts as one table, a line per host in the order in
// which they were first measured, after one sentence about all of them. Runs of the
// same host (up, then down) share its line. It returns the writer's error.
func Table(w io.Writer, runs []*result.Run, o Options) error {
	p := newPrinter(w, o)
	var hosts []*hostLine
	byName := map[string]*hostLine{}
	for _, run := range runs {
		name := run.Test.Target
		if p := run.Test.Port; p != 0 && p != 5201 {
			name = fmt.Sprintf("%s port %d", name, p)
		}
		h := byName[name]
		if h == nil {
			h = &hostLine{name: screen.Clean(name), limits: map[string]result.Direction{}}
			byName[name] = h
			hosts = append(hosts, h)
		}
		h.add(run)
	}
	p.line("")
	p.prose("", bold, across(hosts))
	if len(hosts) == 0 {
		return p.err
	}
	p.line("")
	t := table{left: map[int]bool{0: true, 5: true}}
	udp := false
	for _, run := range runs {
		udp = udp || run.Test.Transport == "udp"
	}
	if udp {
		t.add("host", "here → host", "host → here", "lost", "PDV p99", "remarks")
	} else {
		t.add("host", "here → host", "host → here", "retrans", "RTT", "remarks")
	}
	for _, h := range hosts {
		third, fourth := optional(h.retrans, whole), positive(h.rtt, millis)
		if udp {
			third, fourth = screen.Unknown, optional(h.pdv, secondsText)
			if h.sent > 0 {
				third = fmt.Sprintf("%d (%s)", h.lost, share(h.lost, h.sent))
			}
		}
		t.add(h.name, h.cell(result.Up), h.cell(result.Down), third, fourth, strings.Join(h.remarks, "; "))
	}
	for i, l := range t.lines() {
		switch {
		case i == 0:
			l = p.paint(dim, l)
		case hosts[i-1].failed:
			l = p.paint(red, l)
		}
		p.line(l)
	}
	return p.err
}

// hostLine gathers the runs towards one host.
type hostLine struct {
	name    string
	heads   map[result.Direction]conclude.Headline
	retrans *int64 // all directions; nil while none is known
	rtt     int64  // µs, the largest mean
	// UDP, all directions: lost of sent, and the worst delay variation (p99, s).
	lost, sent int64
	pdv        *float64
	remarks    []string
	limits     map[string]result.Direction // which direction has been said to have this limit
	failed     bool
}

func (h *hostLine) add(run *result.Run) {
	if h.heads == nil {
		h.heads = map[result.Direction]conclude.Headline{}
	}
	for _, s := range run.Sums {
		if head := conclude.HeadlineOf(run, s.Direction); head.Basis != conclude.None {
			h.heads[s.Direction] = head
		}
		if s.Sender != nil && s.Sender.Retransmits != nil {
			n := *s.Sender.Retransmits
			if h.retrans != nil {
				n += *h.retrans
			}
			h.retrans = &n
		}
		if l := conclude.LossOf(run, s.Direction); l != nil {
			h.lost, h.sent = h.lost+l.Lost, h.sent+l.Sent
		}
		if u := s.UDP; u != nil && u.Received != nil && u.Received.PDV != nil && (h.pdv == nil || u.Received.PDV.P99 > *h.pdv) {
			h.pdv = &u.Received.PDV.P99
		}
		for i := range run.Streams {
			if x := &run.Streams[i]; x.Direction == s.Direction {
				if t := senderTCP(run, x); t != nil {
					h.rtt = max(h.rtt, t.MeanRTT)
				}
			}
		}
		if w := conclude.LimitWord(s.Limit); w != "" {
			h.limit(s.Direction, w)
		}
	}
	for _, n := range run.Notices {
		if n.Level == result.Warn {
			h.remark(n.Code)
		}
	}
	if run.Err != nil {
		h.failed = true
		h.remark(run.Err.Text)
	}
}

// limit notes what held a direction back; the same words for both make one remark.
func (h *hostLine) limit(d result.Direction, words string) {
	way := map[result.Direction]string{result.Up: "to it ", result.Down: "from it "}
	if other, said := h.limits[words]; said && other != d {
		for i, r := range h.remarks {
			if r == way[other]+words {
				h.remarks[i] = "both ways " + words
			}
		}
		return
	}
	h.limits[words] = d
	h.remark(way[d] + words)
}

func (h *hostLine) remark(text string) {
	text = screen.Clean(text)
	for _, old := range h.remarks {
		if old == text {
			return
		}
	}
	h.remarks = append(h.remarks, text)
}

// cell shows a direction's figure. What was only sent is no result: it is marked.
func (h *hostLine) cell(d result.Direction) string {
	head, ok := h.heads[d]
	switch {
	case !ok:
		return screen.Unknown
	case !head.Basis.Arrived():
		return "sent " + rate(head.BPS)
	}
	return rate(head.BPS)
}

// across is the sentence over all hosts.
func across(hosts []*hostLine) string {
	if len(hosts) == 0 {
		return "No host was measured."
	}
	failed := 0
	for _, h := range hosts {
		if h.failed {
			failed++
		}
	}
	text := count(len(hosts), "host") + " measured"
	if failed > 0 {
		text = fmt.Sprintf("%d of %s measured, %d failed", len(hosts)-failed, count(len(hosts), "host"), failed)
	}
	for _, d := range []result.Direction{result.Up, result.Down} {
		var slow, fast *hostLine
		n := 0
		for _, h := range hosts {
			head, ok := h.heads[d]
			if !ok || !head.Basis.Arrived() {
				continue
			}
			n++
			if slow == nil || head.BPS < slow.heads[d].BPS {
				slow = h
			}
			if fast == nil || head.BPS > fast.heads[d].BPS {
				fast = h
			}
		}
		way := "to"
		if d == result.Down {
			way = "from"
		}
		switch {
		case n == 1:
			text += fmt.Sprintf("; %s %s %s", way, slow.name, rate(slow.heads[d].BPS))
		case n > 1:
			text += fmt.Sprintf("; slowest %s %s %s, fastest %s %s %s", way, slow.name, rate(slow.heads[d].BPS), way, fast.name, rate(fast.heads[d].BPS))
		}
	}
	return text + "."
}
