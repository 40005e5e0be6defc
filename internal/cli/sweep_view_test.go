package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/result"
)

// swept is the report of a sweep of streams and one of windows.
func swept() *result.Report {
	v := func(x float64) *float64 { return &x }
	rep := &result.Report{Kind: "sweep", Sweep: &result.Sweep{
		Streams: 8, Window: 1 << 20, Needs: 1 << 20, Linux: []string{"net.core.rmem_max = 2097152"}, Windows: []string{"netsh int tcp set global autotuninglevel=normal"},
		Parts: []result.SweepPart{
			{Series: "streams", Axis: "streams", Direction: "up", Knee: 8, Marginal: 8, Best: 16, Cheapest: 8, Recommended: 8, Reached: true},
			{Series: "window", Axis: "window", Direction: "up", Best: 1 << 20, Cheapest: 1 << 20, Recommended: 1 << 20, HostKnee: "a core was 99 % busy there"},
		},
	}}
	granted := int64(1 << 20)
	add := func(series string, axis method.Axis, x, y float64) {
		rep.Curve = append(rep.Curve, result.Point{
			X: x, Y: y, Series: series, Direction: "up", Setting: settingText(axis, x), Values: []float64{y * 0.9, y * 1.1}, Low: v(y * 0.9), High: v(y * 1.1),
			Peak: v(y * 1.2), Retransmits: v(0.0123), CPU: v(1.25), HotCore: v(0.5), Gain: v(0.99), Predicted: v(y), Granted: &granted, BufferDelay: v(0.25),
		})
	}
	for i, x := range []float64{1, 2, 4, 8, 16, 32, 64} {
		add("streams", method.Streams, x, []float64{1.2e9, 2.3e9, 4.5e9, 9.1e9, 9.4e9, 9.3e9, 9.2e9}[i])
	}
	for _, x := range []float64{64 << 10, 256 << 10, 1 << 20, 0} {
		add("window", method.Window, x, 1e9+x)
	}
	return rep
}

// No line is wider than the terminal, what decides stays, and the plot stands where there is room.
// What is piped is as wide as ever and has no colours.
func TestSweepWidths(t *testing.T) {
	for _, c := range []struct {
		columns        int // of the terminal; 0 = piped
		has, lacks     []string
		plots, colours bool
	}{
		{0, []string{"median", "range", "peak", "gain", "sent again", "CPU", "hot core", "granted predicted of it", "delay", "1.00 MiB 1.00 Gbit/s", "Of the knee: a core was 99 % busy there."}, nil, true, false},
		{100, []string{"median", "range", "peak", "gain", "sent again", "CPU", "hot core"}, nil, true, true},
		{60, []string{"median", "sent again", "range"}, []string{"hot core"}, true, true},
		{40, []string{"median"}, []string{"range", "peak", "CPU"}, false, true},
	} {
		var out bytes.Buffer
		e := &env{Std: Std{Out: &out, Terminal: c.columns > 0, Size: func() (int, int) { return c.columns, 30 }}}
		v := e.newStageView(true, true)
		sweepFinal(v, swept())
		text := out.String()
		if colours := strings.Contains(text, "\x1b["); colours != c.colours {
			t.Errorf("%d columns: colours %v", c.columns, colours)
		}
		plain := strings.NewReplacer("\x1b[1m", "", "\x1b[2m", "", "\x1b[0m", "").Replace(text)
		most := c.columns
		if most == 0 {
			most = diagnoseWidth
		}
		for line := range strings.Lines(plain) {
			line = strings.TrimRight(line, "\n")
			if w := screen.Width(line); w > most && !strings.Contains(line, "net.core") { // a command is not broken
				t.Errorf("%d columns: a line of %d: %q", c.columns, w, line)
			}
		}
		for _, want := range append(c.has, "knee (Kneedle) 8 streams", "what to do", "rmem_max = 2097152", "←") {
			if !strings.Contains(strings.Join(strings.Fields(plain), " "), want) {
				t.Errorf("%d columns: no %q in\n%s", c.columns, want, plain)
			}
		}
		for _, bad := range c.lacks {
			if strings.Contains(plain, bad) {
				t.Errorf("%d columns: %q in\n%s", c.columns, bad, plain)
			}
		}
		if plot := strings.Contains(plain, "┤"); plot != c.plots {
			t.Errorf("%d columns: a plot: %v", c.columns, plot)
		}
	}
}
