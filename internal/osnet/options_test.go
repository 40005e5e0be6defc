package osnet

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// Whatever the system: options that every system has hold at both ends, and those that
// it lacks are noticed or refused with errors.ErrUnsupported, never dropped.
func TestOptionsAnywhere(t *testing.T) {
	ln := mustListen(t, "127.0.0.1:0", Options{Window: 64 << 10})
	o := Options{Window: 64 << 10, NoDelay: true, TOS: 184}
	c, cn, s, sn := pairNotices(t, ln, "127.0.0.1", o, o)
	for end, x := range map[string]*Conn{"client": c, "server": s} {
		snd, rcv, err := x.Buffers()
		if err != nil || UsableBuffer(snd) != 64<<10 || UsableBuffer(rcv) != 64<<10 {
			t.Errorf("%s: buffers %d and %d, %v; want %d usable", end, snd, rcv, err, 64<<10)
		}
		if v, err := x.int(optNoDelay); err != nil || v == 0 {
			t.Errorf("%s: no-delay %d, %v", end, v, err)
		}
	}
	for end, notices := range map[string][]string{"client": codes(cn), "server": codes(sn)} {
		want := []string(nil)
		if tosCaveat != "" {
			want = []string{"tos-unsure"}
		}
		if !slices.Equal(notices, want) {
			t.Errorf("%s: notices %v, want %v", end, notices, want)
		}
	}
	if n, err := s.RecvQueue(); err != nil || n != 0 {
		t.Errorf("receive queue %d, %v", n, err)
	}

	caps := Capabilities()
	for name, x := range map[string]struct {
		has bool
		f   func() error
	}{
		"TCPInfo":    {caps.TCPInfo, func() error { _, err := c.TCPInfo(); return err }},
		"SendQueue":  {caps.SendQueue, func() error { _, err := c.SendQueue(); return err }},
		"Congestion": {caps.Congestion, func() error { _, err := c.Congestion(); return err }},
		"SetPacing":  {caps.Pacing, func() error { return c.SetPacing(1e9) }},
	} {
		err := x.f()
		if x.has && err != nil {
			t.Errorf("%s: %v, though the system has it", name, err)
		}
		if !x.has && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v, want errors.ErrUnsupported", name, err)
		}
	}

	_, cn, _, _ = pairNotices(t, ln, "127.0.0.1", Options{UserTimeout: 3 * time.Second, FQRate: 1e9}, Options{})
	want := 0
	for _, has := range []bool{caps.UserTimeout, caps.Pacing} {
		if !has {
			want++
		}
	}
	if got := codes(cn); len(got) != want || slices.ContainsFunc(got, func(s string) bool { return s != "option-refused" }) {
		t.Errorf("user timeout and pacing: notices %v, want %d option-refused", got, want)
	}
}
