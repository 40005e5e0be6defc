// Package live shows a run on a terminal while it goes on: the rate now and its history,
// how evenly the streams share, retransmits, round trip, both ends' CPU, the time left
// and what must be known. It uses the alternate screen and leaves it clean; the lasting
// output (the plain end block) is printed by the caller afterwards.
//
// It is the only package that draws, so the only one that imports terminal libraries.
package live

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fullbore-net/fullbore/result"
)

// frame is how often the view looks for something new. Ten times a second is smooth for
// a progress bar and costs under a per cent of a core.
const frame = 100 * time.Millisecond

// Least size that holds the view.
const (
	MinWidth  = 40
	MinHeight = 8
)

// Usable reports whether a terminal of this type (TERM) and size can show the view. Else
// plain lines are the better answer. A size of 0 is unknown and counts as enough.
func Usable(term string, width, height int) bool {
	return term != "dumb" && (width <= 0 || width >= MinWidth) && (height <= 0 || height >= MinHeight)
}

// Options are the view's surroundings.
type Options struct {
	// Out is the terminal. An *os.File is asked for its size and followed when it changes.
	Out io.Writer
	// In gives the keys. It is left alone (nil, or a file that is no terminal): what is
	// piped into the program is not meant for us, and Ctrl-C then is a signal.
	In io.Reader
	// Interrupt is called, on a goroutine of its own, when the user presses q or Ctrl-C. It
	// should end the test. A second press leaves the view at once and calls it again.
	Interrupt func()
	// Environ is the terminal's environment (TERM, NO_COLOR, …); nil = this process's.
	Environ []string
	Now     func() time.Time // nil = time.Now

	// width and height fix the size, for tests.
	width, height int
}

// View is the live view of one run. It is a result.Sink for any goroutine; Event never
// waits for the terminal: what comes between two frames is folded into the next one.
type View struct {
	o      Options
	closed chan struct{}
	once   sync.Once

	mu    sync.Mutex
	state state // guarded by mu
	news  bool  // guarded by mu: state changed since the last snapshot
}

// New returns a view. It draws nothing until Run.
func New(o Options) *View {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &View{o: o, closed: make(chan struct{}), news: true}
}

// Event implements result.Sink.
func (v *View) Event(e result.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.state.event(e, v.o.Now())
	v.news = true
}

// snapshot returns a copy of the state when it changed.
func (v *View) snapshot() (state, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.news {
		return state{}, false
	}
	v.news = false
	return v.state.clone(), true
}

// Run shows the view until ctx ends, Close is called or the user leaves it with a second
// Ctrl-C. When it returns, the terminal is as it was before. Its error is the
// terminal's; the test is not affected by it.
func (v *View) Run(ctx context.Context) error {
	opts := []tea.ProgramOption{
		tea.WithOutput(v.o.Out),
		tea.WithInput(keys(v.o.In)),
		tea.WithoutSignalHandler(), // signals are the caller's
		tea.WithFPS(int(time.Second / frame)),
	}
	if v.o.Environ != nil {
		opts = append(opts, tea.WithEnvironment(v.o.Environ))
	}
	if v.o.width > 0 {
		opts = append(opts, tea.WithWindowSize(v.o.width, v.o.height))
	}
	p := tea.NewProgram(newModel(v), opts...)
	done := make(chan struct{})
	defer close(done)
	go func() { // ends with Run
		select {
		case <-ctx.Done():
		case <-v.closed:
		case <-done:
			return
		}
		p.Quit()
	}()
	if _, err := p.Run(); err != nil {
		return fmt.Errorf("live view: %w", err)
	}
	return nil
}

// Close ends Run. It may be called more than once, before, during and after Run.
func (v *View) Close() { v.once.Do(func() { close(v.closed) }) }

// keys returns the reader for keys, nil when there is no keyboard behind it.
func keys(in io.Reader) io.Reader {
	f, ok := in.(*os.File)
	if !ok {
		return in
	}
	if f == nil {
		return nil
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 || f.Name() == os.DevNull {
		return nil
	}
	return in
}
