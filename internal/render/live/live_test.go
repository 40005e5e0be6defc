package live

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/conclude/sample"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/result"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// epoch is when the made-up tests start.
var epoch = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

// fold plays the first n events (all when negative) as they would come in time.
func fold(test sample.Test, n int) state {
	events := test.Events()
	if n < 0 {
		n = len(events)
	}
	var s state
	for _, e := range events[:n] {
		at := epoch
		if e.Interval != nil {
			at = epoch.Add(time.Duration(e.T * float64(time.Second)))
		}
		s.event(e, at)
	}
	return s
}

func ramp(top float64, n int) []float64 {
	out := sample.Flat(top, n)
	for i, f := range []float64{0.08, 0.3, 0.72, 0.95} {
		if i < n {
			out[i] *= f
		}
	}
	return out
}

func busyHosts(e result.End, row int) *result.HostSample {
	if e == result.Server {
		return sample.Cores(64, "4/40/38/18", "3/17/2/78")
	}
	return sample.Cores(31, "4/16/2/78", "2/9/0/89")
}

func TestGolden(t *testing.T) {
	up := sample.New()
	up.Streams, up.Rates, up.LossShare, up.Hosts = 4, ramp(941e6, 30), 2e-6, busyHosts
	up.Tune = func(_ *result.Run, extra *[]result.Event) {
		*extra = append(*extra,
			result.Event{Kind: result.KindNotice, Notice: &result.Notice{Code: "version-differs", Level: result.Info, Text: "10.0.0.1 runs 0.1.0, 10.0.0.2 runs 0.2.0"}},
			result.Event{Kind: result.KindNotice, Notice: &result.Notice{Code: "window-clamped", Level: result.Warn, Text: "asked for a window of 8.00 MiB, got 4.00 MiB: net.core.wmem_max is 4194304, which bounds it"}})
	}
	both := sample.New()
	both.Direction, both.Streams, both.Rates, both.Back, both.Hosts = "both", 64, ramp(9.4e9, 20), ramp(88e6, 20), busyHosts
	foreign := sample.Foreign("3.12")
	foreign.Rates = ramp(941e6, 20)
	down := sample.Foreign("3.12")
	down.Direction, down.Omit, down.Rates = "down", 2, ramp(941e6, 12)
	bytesRun := sample.New()
	bytesRun.Tune = func(head *result.Run, _ *[]result.Event) { head.Test.Duration, head.Test.Bytes = 0, 2e9 }
	endless := sample.New()
	endless.Rates = ramp(941e6, 3000)
	endless.Tune = func(head *result.Run, _ *[]result.Event) { head.Test.Duration = 0 }
	udp := sample.New()
	udp.UDP, udp.Rates, udp.LossShare = true, sample.Flat(100e6, 10), 0.0004
	lost := sample.New()
	lost.Rates, lost.Broken = lost.Rates[:4], true
	lost.Finishing = func(_ *result.Finish, err **result.Error) {
		*err = &result.Error{Code: "peer-closed", Text: "the server closed the control connection", Remote: true}
	}
	for _, c := range []struct {
		name          string
		s             state
		width, height int
		after         time.Duration // since the test began
		stops         int
	}{
		{"nothing-yet", state{}, 80, 24, 0, 0},
		{"agreed", fold(up, 3), 80, 24, 0, 0},
		{"started", fold(up, 4), 80, 24, 300 * time.Millisecond, 0},
		{"up-80x24", fold(up, 4+2*18), 80, 24, 18200 * time.Millisecond, 0},
		{"up-40x10", fold(up, 4+2*18), 40, 10, 18200 * time.Millisecond, 0},
		{"up-120x40", fold(up, 4+2*18), 120, 40, 18200 * time.Millisecond, 0},
		{"both-80x24", fold(both, 2+2*15), 80, 24, 15900 * time.Millisecond, 0},
		{"foreign-up", fold(foreign, 2+7), 80, 24, 7 * time.Second, 0},
		{"foreign-down-warm-up", fold(down, 2+1), 80, 24, 1500 * time.Millisecond, 0},
		{"foreign-down", fold(down, 2+6), 80, 24, 6500 * time.Millisecond, 0},
		{"bytes", fold(bytesRun, 2+2*5), 80, 24, 5 * time.Second, 0},
		{"endless", fold(endless, 2+2*2999), 80, 24, 2999 * time.Second, 0},
		{"udp", fold(udp, 2+2*5), 80, 24, 5 * time.Second, 0},
		{"stopping", fold(foreign, 2+7), 80, 24, 7 * time.Second, 1},
		{"collecting", fold(foreign, -1), 80, 24, 20 * time.Second, 0},
		{"broken", fold(lost, -1), 80, 24, 4 * time.Second, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines := draw(c.s, c.width, c.height, epoch.Add(c.after), c.stops, theme{})
			golden(t, c.name, strings.Join(lines, "\n")+"\n")
		})
	}
}

// Whatever comes in and however small the screen is, the view fits it and holds no
// control characters but its own colours.
func TestDrawProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		test := sample.New()
		test.Direction = rapid.SampledFrom([]string{"up", "down", "both"}).Draw(t, "direction")
		test.Streams = rapid.IntRange(1, 40).Draw(t, "streams")
		test.UDP, test.Extended = rapid.Bool().Draw(t, "udp"), rapid.Bool().Draw(t, "extended")
		test.Rates = rapid.SliceOfN(rapid.Float64Range(0, 9e11), 0, 30).Draw(t, "rates")
		test.Client.Name = rapid.String().Draw(t, "name")
		test.Hosts = busyHosts
		n := rapid.IntRange(0, 25).Draw(t, "notices")
		test.Tune = func(_ *result.Run, extra *[]result.Event) {
			for range n {
				*extra = append(*extra, result.Event{Kind: result.KindNotice, Notice: &result.Notice{Code: "c", Level: result.Warn, Text: "x\x1b[2Jy\n" + strings.Repeat("long ", 40)}})
			}
		}
		s := fold(test, rapid.IntRange(0, len(test.Events())).Draw(t, "events"))
		w, h := rapid.IntRange(1, 150).Draw(t, "width"), rapid.IntRange(1, 50).Draw(t, "height")
		lines := draw(s, w, h, epoch.Add(time.Hour), 0, theme{})
		if len(lines) != max(h, 2) && len(lines) != h {
			t.Fatalf("%d lines on a screen of %d", len(lines), h)
		}
		for _, l := range lines {
			if screen.Width(l) > w || strings.ContainsAny(l, "\x1b\n\x00") {
				t.Fatalf("on %d columns: %q", w, l)
			}
		}
	})
}

func TestHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h history
		n := rapid.IntRange(1, 20000).Draw(t, "samples")
		var sum float64
		for i := range n {
			v := float64(i % 97)
			h.add(v)
			sum += v
		}
		if len(h.values) >= historyKept || n >= 2*historyKept && len(h.values) < historyKept/2-1 {
			t.Fatalf("%d values of %d samples", len(h.values), n)
		}
		kept := h.sum
		for _, v := range h.values {
			kept += v * float64(h.per)
		}
		if d := kept - sum; d > 1e-6*sum+1e-6 || d < -1e-6*sum-1e-6 {
			t.Fatalf("samples add up to %g, history to %g", sum, kept)
		}
	})
}

// The state that a frame draws must not change under it.
func TestClone(t *testing.T) {
	test := sample.New()
	test.Streams = 4
	events := test.Events()
	var s state
	for _, e := range events[:6] {
		s.event(e, epoch)
	}
	c := s.clone()
	before := strings.Join(draw(c, 80, 24, epoch, 0, theme{}), "\n")
	for _, e := range events[6:] {
		s.event(e, epoch)
	}
	if after := strings.Join(draw(c, 80, 24, epoch, 0, theme{}), "\n"); after != before {
		t.Errorf("a snapshot moved:\n%s", cmp.Diff(before, after))
	}
}

func TestUpdate(t *testing.T) {
	v := New(Options{Now: func() time.Time { return epoch }})
	var calls int
	v.o.Interrupt = func() { calls++ }
	m := tea.Model(newModel(v))
	press := func(text string, mod tea.KeyMod, code rune) tea.Cmd {
		var cmd tea.Cmd
		m, cmd = m.Update(tea.KeyPressMsg{Code: code, Text: text, Mod: mod})
		return cmd
	}
	m, _ = m.Update(tea.WindowSizeMsg{Width: 60, Height: 12})
	if got := strings.Split(m.View().Content, "\n"); len(got) != 12 {
		t.Errorf("%d lines", len(got))
	}
	if !m.View().AltScreen {
		t.Error("draws over the scrollback")
	}
	v.Event(result.Event{Kind: result.KindNotice, Notice: &result.Notice{Code: "steal", Level: result.Warn, Text: "held up"}})
	if strings.Contains(m.View().Content, "held up") {
		t.Error("news before the tick")
	}
	m, cmd := m.Update(tick(epoch))
	if cmd == nil || !strings.Contains(m.View().Content, "held up") {
		t.Error("no news after the tick, or no next tick")
	}
	if cmd := press("x", 0, 'x'); cmd != nil {
		t.Error("x does something")
	}
	if cmd := press("", tea.ModCtrl, 'c'); cmd == nil || cmd() != nil || calls != 1 {
		t.Errorf("Ctrl-C: %d calls", calls)
	}
	if cmd := press("q", 0, 'q'); cmd == nil {
		t.Error("the second press does nothing")
	}
	if m.(model).stops != 2 {
		t.Errorf("%d stops", m.(model).stops)
	}
}

func TestUsable(t *testing.T) {
	for _, c := range []struct {
		term string
		w, h int
		want bool
	}{{"xterm", 80, 24, true}, {"", 0, 0, true}, {"dumb", 80, 24, false}, {"xterm", 39, 24, false}, {"xterm", 80, 7, false}} {
		if got := Usable(c.term, c.w, c.h); got != c.want {
			t.Errorf("Usable(%q, %d, %d) = %v", c.term, c.w, c.h, got)
		}
	}
}

func TestKeys(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "input"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	var none *os.File
	for name, in := range map[string]io.Reader{"null": null, "file": file, "pipe": r, "none": nil, "typed nil": none} {
		if got := keys(in); got != nil {
			t.Errorf("%s would be read for keys", name)
		}
	}
	if in := strings.NewReader(""); keys(in) != in {
		t.Error("a reader that stands for a keyboard is dropped")
	}
}

// terminal collects what is drawn; safe for the renderer's goroutine and the test's.
type terminal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.Write(p)
}

func (t *terminal) contains(s string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Contains(t.buf.String(), s)
}

// wait polls until ok or the test's time is over.
func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for !ok() {
		select {
		case <-t.Context().Done():
			t.Fatalf("never: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

const (
	enterAlt = "\x1b[?1049h"
	leaveAlt = "\x1b[?1049l"
)

// A run from the first event to the caller's Close, with events from several goroutines.
func TestRun(t *testing.T) {
	term := &terminal{}
	v := New(Options{Out: term, Environ: []string{"TERM=xterm-256color"}, width: 80, height: 24})
	done := make(chan error, 1)
	go func() { done <- v.Run(context.Background()) }()
	test := sample.New()
	test.Streams, test.Rates = 3, sample.Flat(123e6, 200)
	events := test.Events()
	v.Event(events[0])
	v.Event(events[1])
	var senders sync.WaitGroup
	for k := range 2 {
		senders.Go(func() {
			for i := 2 + k; i < len(events); i += 2 {
				v.Event(events[i])
			}
		})
	}
	senders.Wait()
	wait(t, "the rate is drawn", func() bool { return term.contains("123 Mbit/s") })
	v.Close()
	v.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !term.contains(enterAlt) || !term.contains(leaveAlt) {
		t.Error("the alternate screen was not entered or not left")
	}
	v.Event(events[0]) // late events are harmless
}

func TestRunEndsWithContext(t *testing.T) {
	term := &terminal{}
	v := New(Options{Out: term, Environ: []string{"TERM=xterm"}, width: 80, height: 24})
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx) }()
	wait(t, "the view is up", func() bool { return term.contains(enterAlt) })
	cancel(errors.New("interrupted"))
	if err := <-done; err != nil {
		t.Errorf("an end that was asked for is an error: %v", err)
	}
	if !term.contains(leaveAlt) {
		t.Error("the alternate screen was not left")
	}
	// One that ended before it began leaves nothing behind.
	early := New(Options{Out: &terminal{}, Environ: []string{"TERM=xterm"}, width: 80, height: 24})
	early.Close()
	if err := early.Run(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestInterruptKeys(t *testing.T) {
	term := &terminal{}
	keys, typist := io.Pipe()
	defer typist.Close()
	var calls atomic.Int32
	v := New(Options{In: keys, Out: term, Interrupt: func() { calls.Add(1) }, Environ: []string{"TERM=xterm"}, width: 80, height: 24})
	done := make(chan error, 1)
	go func() { done <- v.Run(context.Background()) }()
	wait(t, "the view is up", func() bool { return term.contains(enterAlt) })
	if _, err := typist.Write([]byte{3}); err != nil { // Ctrl-C in raw mode
		t.Fatal(err)
	}
	wait(t, "the caller hears of it", func() bool { return calls.Load() == 1 })
	select {
	case err := <-done:
		t.Fatalf("left after the first press: %v", err)
	default:
	}
	if _, err := typist.Write([]byte("q")); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if calls.Load() != 2 || !term.contains(leaveAlt) {
		t.Errorf("%d calls", calls.Load())
	}
}

// Event must be cheap even for very many streams: it runs on the sampler's goroutine.
func BenchmarkEvent(b *testing.B) {
	test := sample.New()
	test.Streams, test.Rates = 1000, sample.Flat(1e9, 1)
	events := test.Events()
	v := New(Options{})
	v.Event(events[0])
	v.Event(events[1])
	for b.Loop() {
		v.Event(events[2])
	}
}
