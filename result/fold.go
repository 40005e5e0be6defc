package result

import "sort"

// Fold builds the Run of a sequence of events.
func Fold(events []Event) *Run {
	var f Folder
	for _, e := range events {
		f.Event(e)
	}
	return f.Run()
}

// Folder is Fold, one event at a time. The zero value is ready. It is not safe for
// concurrent use.
type Folder struct {
	// Keep bounds the intervals that the Run holds: between Keep and twice as many of the newest,
	// of both ends together; 0 = all. What is left out is counted in Run.RowsLeft.
	Keep int

	run    Run
	limits []DirectionLimit

	headed, finished bool        // a Head, the Finish has come
	rows             map[End]int // intervals so far
	peaks            map[peakOf]float64
}

// peakOf names the rows that a peak is of.
type peakOf struct {
	end End
	dir Direction
}

// Event implements Sink.
func (f *Folder) Event(e Event) {
	r := &f.run
	switch e.Kind {
	case KindPrepared, KindConnected, KindStart:
		if e.Head != nil {
			f.headed = true
			milestones := r.Milestones
			rows, notices, probes := r.Rows, r.Notices, r.Probes
			left := r.RowsLeft
			hosts := r.Hosts
			*r = *e.Head
			r.Rows = append(rows, e.Head.Rows...)
			r.RowsLeft += left
			r.Probes = append(probes, e.Head.Probes...)
			r.Notices = append(notices, e.Head.Notices...)
			r.Milestones = append(milestones, e.Head.Milestones...)
			if r.Hosts.Client == nil {
				r.Hosts.Client = hosts.Client
			}
			if r.Hosts.Server == nil {
				r.Hosts.Server = hosts.Server
			}
		}
	case KindHost:
		r.Hosts.Set(e.End, e.Host)
	case KindInterval:
		r.Rows = append(r.Rows, *e.Interval)
		if f.rows == nil {
			f.rows = map[End]int{}
		}
		f.rows[e.Interval.End]++
		if f.Keep > 0 {
			f.forget(e.Interval)
		}
	case KindMilestone:
		r.Milestones = append(r.Milestones, f.place(*e.Milestone, e.End))
	case KindNotice:
		r.Notices = append(r.Notices, *e.Notice)
	case KindProbes:
		r.Probes = replaceProbes(r.Probes, *e.Probes)
	case KindFinish:
		r.Streams = e.Finish.Streams
		r.CPU = e.Finish.CPU
		if e.Finish.Wire != nil {
			r.Wire = e.Finish.Wire
		}
		if e.Finish.Path != nil {
			r.Test.Path = *e.Finish.Path
		}
		r.Usage = e.Finish.Usage
		r.Elapsed = e.Finish.Elapsed
		r.Zero = e.Finish.Zero
		if e.Finish.Machines != nil {
			r.Machines = e.Finish.Machines
		}
		f.finished = true
	case KindError:
		r.Err = e.Err
	case KindConclusion:
		r.Summary, r.Flags, r.Next = e.Conclusion.Summary, e.Conclusion.Flags, e.Conclusion.Next
		r.Layers = e.Conclusion.Layers
		f.limits = e.Conclusion.Limits
	}
}

// Run returns the run so far, sums computed. The caller may keep it; later events
// do not change it.
func (f *Folder) Run() *Run {
	r := f.run
	if r.Schema == 0 {
		r.Schema = Schema
	}
	r.Streams = append([]Stream{}, r.Streams...)
	r.Rows = append([]Interval{}, r.Rows...)
	r.Notices = append([]Notice{}, r.Notices...)
	r.Probes = append([]Probes(nil), r.Probes...)
	r.Milestones = append([]Milestone(nil), r.Milestones...)
	r.Sums = sums(&r)
	for i := range r.Sums {
		f.settlePeak(&r.Sums[i])
	}
	for _, l := range f.limits {
		if s := r.Sum(l.Direction); s != nil {
			s.Limit, s.Shares, s.Grades = l.Limit, l.Shares, l.Grades
			if l.Loss != nil && s.UDP != nil {
				s.UDP.Loss = l.Loss
			}
		}
	}
	return &r
}

// forget notes the peaks of a row and lets the oldest rows go.
func (f *Folder) forget(row *Interval) {
	if !row.Omitted && !row.Partial {
		if f.peaks == nil {
			f.peaks = map[peakOf]float64{}
		}
		for _, s := range row.Sums {
			k := peakOf{row.End, s.Direction}
			f.peaks[k] = max(f.peaks[k], s.BPS)
		}
	}
	r := &f.run
	if len(r.Rows) <= 2*f.Keep {
		return
	}
	old := len(r.Rows) - f.Keep
	r.Rows = append([]Interval(nil), r.Rows[old:]...)
	r.RowsLeft += int64(old)
}

// settlePeak puts in the peak over all rows where some were left out.
func (f *Folder) settlePeak(s *Sum) {
	if f.run.RowsLeft == 0 {
		return
	}
	for _, e := range []End{s.Direction.Receiver(), s.Direction.Sender()} {
		if v, ok := f.peaks[peakOf{e, s.Direction}]; ok {
			s.Peak = &v
			return
		}
	}
}

// place fills in where among the other events a milestone stands.
func (f *Folder) place(m Milestone, e End) Milestone {
	if m.End == "" {
		m.End = e
	}
	m.Stage, m.Rows = "before", 0
	switch {
	case f.finished:
		m.Stage = "after"
	case f.headed:
		m.Stage, m.Rows = "run", f.rows[m.End]
	}
	return m
}

// Conclusion returns the conclusions that r holds, nil when none were drawn.
func (r *Run) Conclusion() *Conclusion {
	if r.Summary == "" {
		return nil
	}
	c := &Conclusion{Summary: r.Summary, Flags: r.Flags, Next: r.Next, Layers: r.Layers}
	for _, s := range r.Sums {
		l := DirectionLimit{Direction: s.Direction, Limit: s.Limit, Shares: s.Shares, Grades: s.Grades}
		if s.UDP != nil {
			l.Loss = s.UDP.Loss
		}
		c.Limits = append(c.Limits, l)
	}
	return c
}

// Unfold returns events whose Fold is r: the way to replay a stored run through a
// renderer that works live.
func Unfold(r *Run) []Event {
	head := *r
	head.Rows, head.Notices, head.Sums, head.Err = nil, nil, nil, nil
	head.Summary, head.Flags, head.Next, head.Probes, head.Layers = "", nil, nil, nil, nil
	head.Milestones = nil
	var out []Event
	seq := map[End]int64{}
	add := func(e Event) {
		if e.End == "" {
			e.End = r.End
		}
		seq[e.End]++
		e.Seq = seq[e.End]
		out = append(out, e)
	}
	tell := func(m *Milestone) { add(Event{Kind: KindMilestone, End: m.End, Milestone: m}) }
	for i := range r.Milestones {
		if m := &r.Milestones[i]; m.Stage == "before" {
			tell(m)
		}
	}
	if r.NTTTCP != nil {
		before := head
		before.Streams = nil
		add(Event{Kind: KindPrepared, Head: &before})
	}
	if len(r.Streams) > 0 || r.Wire != nil && r.Wire.TestStarted {
		before := head
		before.Streams = nil
		add(Event{Kind: KindConnected, Head: &before})
	}
	add(Event{Kind: KindStart, Head: &head})
	next, told := 0, map[End]int{}
	row := func() {
		w := &r.Rows[next]
		add(Event{Kind: KindInterval, End: w.End, T: w.Stop, Interval: w})
		told[w.End]++
		next++
	}
	for i := range r.Milestones {
		if m := &r.Milestones[i]; m.Stage == "run" {
			for next < len(r.Rows) && told[m.End] < m.Rows {
				row()
			}
			tell(m)
		}
	}
	for next < len(r.Rows) {
		row()
	}
	for i := range r.Probes {
		add(Event{Kind: KindProbes, Probes: &r.Probes[i]})
	}
	for i := range r.Notices {
		add(Event{Kind: KindNotice, Notice: &r.Notices[i]})
	}
	if r.Finished() {
		add(Event{Kind: KindFinish, Finish: &Finish{
			Streams: r.Streams, CPU: r.CPU, Wire: r.Wire, Path: &r.Test.Path, Usage: r.Usage, Elapsed: r.Elapsed, Zero: r.Zero,
			Machines: r.Machines,
		}})
	}
	for i := range r.Milestones {
		if m := &r.Milestones[i]; m.Stage == "after" {
			tell(m)
		}
	}
	if r.Err != nil {
		add(Event{Kind: KindError, Err: r.Err})
	}
	if c := r.Conclusion(); c != nil {
		add(Event{Kind: KindConclusion, Conclusion: c})
	}
	return out
}

// Finished reports whether totals exist (of at least one end).
func (r *Run) Finished() bool {
	for _, s := range r.Streams {
		if s.Sender != nil || s.Receiver != nil {
			return true
		}
	}
	return false
}

// Intervals returns the rows of one end, omitted ones included, in order.
func (r *Run) Intervals(e End) []Interval {
	var out []Interval
	for _, row := range r.Rows {
		if row.End == e {
			out = append(out, row)
		}
	}
	return out
}

// Sum returns the sum of one direction, nil when there is none.
func (r *Run) Sum(d Direction) *Sum {
	for i := range r.Sums {
		if r.Sums[i].Direction == d {
			return &r.Sums[i]
		}
	}
	return nil
}

func sums(r *Run) []Sum {
	var out []Sum
	for _, d := range []Direction{Up, Down} {
		var snd, rcv []Total
		var n int
		for _, s := range r.Streams {
			if s.Direction != d {
				continue
			}
			n++
			if s.Sender != nil {
				snd = append(snd, *s.Sender)
			}
			if s.Receiver != nil {
				rcv = append(rcv, *s.Receiver)
			}
		}
		if n == 0 {
			continue
		}
		sum := Sum{Direction: d, From: r.EndName(d.Sender()), To: r.EndName(d.Receiver()), UDP: addUDP(r.Streams, d)}
		if len(snd) == n {
			sum.Sender = addTotals(snd)
		}
		if len(rcv) == n {
			sum.Receiver = addTotals(rcv)
			g := sum.Receiver.Rate()
			if sum.UDP != nil && sum.UDP.Received != nil { // without duplicates and what came after the time
				g = Rate(sum.UDP.Received.Bytes, sum.Receiver.Seconds())
			}
			sum.Goodput = &g
			sum.Fair = jain(rcv)
		}
		sum.Peak = peak(r, d)
		out = append(out, sum)
	}
	return out
}

// addTotals sums counters; the time is the common window [max start, min end] when
// it is not empty (M-TCP), else the span.
func addTotals(ts []Total) *Total {
	out := ts[0]
	for _, t := range ts[1:] {
		out.Bytes += t.Bytes
		out.Start = max(out.Start, t.Start)
		out.End = min(out.End, t.End)
		out.Retransmits = addPtr(out.Retransmits, t.Retransmits)
		out.Packets = addPtr(out.Packets, t.Packets)
		out.Lost = addPtr(out.Lost, t.Lost)
		out.OutOfOrder = addPtr(out.OutOfOrder, t.OutOfOrder)
		out.OmittedPackets = addPtr(out.OmittedPackets, t.OmittedPackets)
		out.OmittedLost = addPtr(out.OmittedLost, t.OmittedLost)
	}
	if len(ts) > 1 && out.Jitter != nil {
		var sum float64
		for _, t := range ts {
			if t.Jitter == nil {
				sum = 0
				out.Jitter = nil
				break
			}
			sum += *t.Jitter
		}
		if out.Jitter != nil {
			mean := sum / float64(len(ts))
			out.Jitter = &mean
		}
	}
	if out.End <= out.Start {
		for _, t := range ts {
			out.Start = min(out.Start, t.Start)
			out.End = max(out.End, t.End)
		}
	}
	return &out
}

// addPtr adds two counts; an unknown one makes the sum unknown.
func addPtr(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	s := *a + *b
	return &s
}

// jain is Jain's fairness index (Σx)²/(n·Σx²) over the receivers' rates; nil for
// one stream or no traffic.
func jain(ts []Total) *float64 {
	if len(ts) < 2 {
		return nil
	}
	var s, q float64
	for _, t := range ts {
		x := t.Rate()
		s += x
		q += x * x
	}
	if q == 0 {
		return nil
	}
	v := s * s / (float64(len(ts)) * q)
	return &v
}

func peak(r *Run, d Direction) *float64 {
	for _, e := range []End{d.Receiver(), d.Sender()} {
		var rates []float64
		for _, row := range r.Rows {
			if row.End != e || row.Omitted || row.Partial {
				continue
			}
			for _, s := range row.Sums {
				if s.Direction == d {
					rates = append(rates, s.BPS)
				}
			}
		}
		if len(rates) > 0 {
			sort.Float64s(rates)
			return &rates[len(rates)-1]
		}
	}
	return nil
}

// EndNames says what to call the two hosts in text: the names they gave themselves when
// both did and they differ; else their addresses, or what the user typed where no stream
// tells. Two that are still equal (one machine) get their role added, so that "a → b"
// always says which way.
func (r *Run) EndNames() (client, server string) {
	c, s := r.Hosts.Client, r.Hosts.Server
	if c != nil && s != nil && c.Name != "" && s.Name != "" && c.Name != s.Name {
		return c.Name, s.Name
	}
	client, server = r.address(Client), r.address(Server)
	if client == server {
		client += " (client)"
		server += " (server)"
	}
	return client, server
}

// EndName is EndNames for one end.
func (r *Run) EndName(e End) string {
	client, server := r.EndNames()
	if e == Server {
		return server
	}
	return client
}

// address is where end e is, as text.
func (r *Run) address(e End) string {
	if len(r.Streams) > 0 {
		a := r.Streams[0].Remote
		if e == r.End {
			a = r.Streams[0].Local
		}
		if a.Host != "" {
			return a.Host
		}
	}
	w := r.Wire
	switch {
	case e == Client && w != nil && w.AcceptedFrom != nil && w.AcceptedFrom.Host != "":
		return w.AcceptedFrom.Host
	case e == Server && r.Test.Target != "":
		return r.Test.Target
	}
	if h := r.Hosts.Of(e); h != nil && h.Name != "" {
		return h.Name
	}
	return string(e)
}
