package method

import (
	"fmt"
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/internal/bdp"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/stats"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// WindowScan is M-WSCAN: one stream with one window after the other, and left to the
// system at the end.
type WindowScan struct {
	Direction result.Direction
	RTT       time.Duration // of the idle path
	Rate      units.BitRate // bottleneck
	Ideal     float64       // payload bit/s of that bottleneck; 0 = Rate
	Windows   []int64       // bytes; nil = Fractions of the bandwidth-delay product
	Fractions []float64     // nil = 0.25, 0.5, 0.75, 1, 1.5, 2
	Rounds    int           // 0 = 3
	Each      time.Duration // 0 = 10 s
	Omit      time.Duration
	Pause     time.Duration
}

// WindowRow is what one window did. Window 0 is the system's own tuning.
type WindowRow struct {
	Window      int64   // asked for, bytes
	Granted     int64   // what the sending or receiving end got at most, bytes; 0 = not known
	Predicted   float64 // min(window·8/RTT, ideal), bit/s; 0 for the system's own
	Measured    float64 // median
	Share       float64 // of the prediction
	Retransmits float64 // ratio, median; −1 = not known
	BufferDelay float64 // (mean RTT − RTT) / RTT (RFC 6349); −1 = not known
}

// WindowAnswer is the scan's result.
type WindowAnswer struct {
	Rows        []WindowRow // ascending windows, the system's own last
	Recommended int64       // least window with 97 % of the best median; 0 = none was measured
	Max         int64       // what the maxima of tcp_rmem and tcp_wmem must be for it, on Linux
}

// Constants of M-WSCAN.
const (
	scanFlat   = 0.02 // two following medians that differ by less …
	scanFull   = 0.95 // … at more than this share of the ideal end the scan
	scanEnough = 0.97
)

func (s WindowScan) filled() WindowScan {
	if s.Fractions == nil {
		s.Fractions = []float64{0.25, 0.5, 0.75, 1, 1.5, 2}
	}
	if s.Windows == nil {
		product := float64(bdp.Product(s.Rate, s.RTT))
		for _, f := range s.Fractions {
			s.Windows = append(s.Windows, max(int64(f*product), 4096))
		}
	}
	s.Windows = slices.Clone(s.Windows)
	slices.Sort(s.Windows)
	s.Windows = slices.Compact(s.Windows)
	if s.Rounds == 0 {
		s.Rounds = LeastRounds
	}
	if s.Each == 0 {
		s.Each = 10 * time.Second
	}
	if s.Ideal == 0 {
		s.Ideal = float64(s.Rate)
	}
	return s
}

// Next plays the windows from small to large, all rounds of one before the next, so that
// the scan can stop where it has become flat; then the system's own.
func (s WindowScan) Next(history []Done) (Step, bool) {
	s = s.filled()
	for i, w := range s.Windows {
		if s.flat(history, i) {
			break
		}
		if s.count(history, w) < s.Rounds {
			return s.step(w), true
		}
	}
	if s.count(history, 0) < s.Rounds {
		return s.step(0), true
	}
	return Step{}, false
}

// flat reports that the two windows before number i told that more changes nothing.
func (s WindowScan) flat(history []Done, i int) bool {
	if i < 2 {
		return false
	}
	a, okA := s.median(history, s.Windows[i-2])
	b, okB := s.median(history, s.Windows[i-1])
	return okA && okB && b > scanFull*s.Ideal && a > scanFull*s.Ideal && (b-a) < scanFlat*b && (a-b) < scanFlat*b
}

func (s WindowScan) count(history []Done, w int64) (n int) {
	for _, d := range history {
		if d.Step.Plan.Window == w {
			n++
		}
	}
	return n
}

func (s WindowScan) rates(history []Done, w int64) (out []float64) {
	for _, d := range history {
		if d.Step.Plan.Window != w {
			continue
		}
		if g, ok := Goodput(d.Run, s.Direction); ok {
			out = append(out, g)
		}
	}
	return out
}

func (s WindowScan) median(history []Done, w int64) (float64, bool) {
	return stats.Median(s.rates(history, w))
}

func (s WindowScan) step(w int64) Step {
	step := Step{
		Name: fmt.Sprintf("%s-window-%d", s.Direction, w), Title: fmt.Sprintf("%s with a window of %s", s.Direction, units.ByteSize(w).IEC()),
		Why: "does the rate follow the window?", Pause: s.Pause,
		Plan: plan.Plan{Direction: plan.Direction(s.Direction), Streams: 1, Window: w, Duration: s.Each, Omit: s.Omit},
	}
	if w == 0 {
		step.Name, step.Title = string(s.Direction)+"-auto", string(s.Direction)+" with the system's own window"
	}
	return step
}

// Answer judges what was measured so far.
func (s WindowScan) Answer(history []Done) WindowAnswer {
	s = s.filled()
	var a WindowAnswer
	best := 0.0
	for _, w := range append(slices.Clone(s.Windows), 0) {
		m, ok := s.median(history, w)
		if !ok {
			continue
		}
		row := WindowRow{Window: w, Measured: m, Retransmits: -1, BufferDelay: -1}
		s.tell(history, &row)
		if w > 0 {
			row.Predicted = min(float64(bdp.WindowRate(units.ByteSize(w), s.RTT)), s.Ideal)
			row.Share = m / row.Predicted
		}
		a.Rows = append(a.Rows, row)
		best = max(best, m)
	}
	for _, row := range a.Rows {
		if row.Window > 0 && row.Measured >= scanEnough*best && (a.Recommended == 0 || row.Window < a.Recommended) {
			a.Recommended = row.Window
		}
	}
	a.Max = 2 * a.Recommended
	return a
}

// tell fills in what the runs of a window know besides their rate.
func (s WindowScan) tell(history []Done, row *WindowRow) {
	var again, delay []float64
	for _, d := range history {
		if d.Step.Plan.Window != row.Window || d.Run == nil {
			continue
		}
		if r, ok := RetransmitRatio(d.Run, s.Direction); ok {
			again = append(again, r)
		}
		for i := range d.Run.Streams {
			st := &d.Run.Streams[i]
			if st.Buffers != nil {
				row.Granted = max(row.Granted, st.Buffers.SndUsable, st.Buffers.RcvUsable)
			}
			t := st.TCP
			if d.Run.End != s.Direction.Sender() {
				t = st.RemoteTCP
			}
			if t != nil && t.MeanRTT > 0 && s.RTT > 0 {
				base := float64(s.RTT.Microseconds())
				delay = append(delay, (float64(t.MeanRTT)-base)/base)
			}
		}
	}
	if m, ok := stats.Median(again); ok {
		row.Retransmits = m
	}
	if m, ok := stats.Median(delay); ok {
		row.BufferDelay = m
	}
}
