package main

import (
	"errors"
	"fmt"
	"sync"

	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/test/pacing"
)

// seen is what was noted beside a run, by no program of the run.
type seen struct {
	arrivals []pacing.Arrival
	machine  pacing.Machine
}

// heldMost is how long the machine may hold up a thread, once. A sender makes up for 100 ms
// (M-UDP) and gives up what is beyond: then its rate is the machine's.
const heldMost = 0.1

// void says why the run does not count: the lab's rule, fixed beforehand and blind to the
// outcome. A run that nothing is said against is fit.
func (s *seen) void() string {
	limit := lab.LatenessLimit(0)
	switch m := s.machine; {
	case m.Steal > lab.MaxSteal:
		return fmt.Sprintf("steal %.1f %%", 100*m.Steal)
	case m.Late.P99 > limit.Seconds():
		return fmt.Sprintf("a sleeping thread was late by %.1f ms (p99)", 1e3*m.Late.P99)
	case m.Late.Most > heldMost:
		return fmt.Sprintf("a sleeping thread was late by %.0f ms (most)", 1e3*m.Late.Most)
	}
	return ""
}

// watch is a capture at the receiver and an observer on the sender's processor.
type watch struct {
	capture *pacing.Capture
	machine *pacing.Observer
	once    sync.Once
	seen    *seen
	err     error
}

// watch starts them where p asks for it; nil = not.
func (b *runner) watch(c command, p params, port int) (*watch, error) {
	if !p.capture {
		return nil, nil
	}
	client, server := b.ends()
	w := &watch{}
	s := pacing.Stream{Port: port, Size: p.load.size, Wide: c.wide, Extended: c.extended}
	err := inside(b.net.server, func() (err error) {
		w.capture, err = pacing.Watch(s, server)
		return err
	})
	if err != nil {
		return nil, err
	}
	w.machine = pacing.Observe(client)
	return w, nil
}

// end stops them, once, and returns what they saw.
func (w *watch) end() (*seen, error) {
	if w == nil {
		return nil, nil
	}
	w.once.Do(func() {
		arrivals, err := w.capture.Stop()
		m, err2 := w.machine.Stop()
		w.seen, w.err = &seen{arrivals, m}, errors.Join(err, err2)
	})
	return w.seen, w.err
}
