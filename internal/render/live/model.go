package live

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// tick asks the model to look for news.
type tick time.Time

// model is the view as bubbletea sees it: a value, changed by Update only.
type model struct {
	snapshot  func() (state, bool)
	interrupt func()
	now       func() time.Time

	state         state
	width, height int
	stops         int // how often the user asked to stop
	theme         theme
}

func newModel(v *View) model {
	s, _ := v.snapshot()
	return model{snapshot: v.snapshot, interrupt: v.o.Interrupt, now: v.o.Now, state: s, theme: colors()}
}

// Init implements tea.Model.
func (m model) Init() tea.Cmd { return next() }

func next() tea.Cmd { return tea.Tick(frame, func(t time.Time) tea.Msg { return tick(t) }) }

// Update implements tea.Model.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tick:
		if s, ok := m.snapshot(); ok {
			m.state = s
		}
		return m, next()
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		switch msg.String() {
		case "q", "Q", "ctrl+c":
			return m.stop()
		}
	}
	return m, nil
}

// stop passes the wish to stop on; the second time it does not wait for the test's end.
func (m model) stop() (tea.Model, tea.Cmd) {
	m.stops++
	call := func() tea.Msg {
		if m.interrupt != nil {
			m.interrupt()
		}
		return nil
	}
	if m.stops > 1 {
		return m, tea.Sequence(call, tea.Quit)
	}
	return m, call
}

// View implements tea.Model.
func (m model) View() tea.View {
	v := tea.NewView(strings.Join(draw(m.state, m.width, m.height, m.now(), m.stops, m.theme), "\n"))
	v.AltScreen = true
	return v
}
