package method

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/result"
)

// walk plays a search against a path.
func walk(p PathMTU, trial func(n, size int) result.MTUTrial) (history []result.MTUTrial) {
	for len(history) < 400 {
		size, more := p.Next(history)
		if !more {
			break
		}
		history = append(history, trial(len(history), size))
	}
	return history
}

// hole is a path that swallows what is longer.
func hole(mtu int) func(int, int) result.MTUTrial {
	return func(_, size int) result.MTUTrial { return result.MTUTrial{Size: size, Passed: size <= mtu} }
}

func sizes(h []result.MTUTrial) (out []int) {
	for _, t := range h {
		out = append(out, t.Size)
	}
	return out
}

// Golden orders of packets.
func TestPathMTUOrder(t *testing.T) {
	sure := PathMTU{Least: 72, Upper: 1500, Sure: true}
	told := func(mtu int) func(int, int) result.MTUTrial {
		last := 0
		return func(_, size int) result.MTUTrial {
			if size > mtu {
				last = mtu
			}
			return result.MTUTrial{Size: size, Passed: size <= mtu, Told: last}
		}
	}
	for name, c := range map[string]struct {
		p     PathMTU
		trial func(int, int) result.MTUTrial
		want  []int
	}{
		"Ethernet":         {sure, hole(1500), []int{1200, 1500, 1500, 1500}},
		"a hole of 1400":   {sure, hole(1400), []int{1200, 1500, 1500, 1500, 1452, 1452, 1452, 1420, 1420, 1420, 1400, 1401, 1401, 1401, 1400, 1400}},
		"1400, and told":   {sure, told(1400), []int{1200, 1500, 1500, 1500, 1400, 1401, 1401, 1401, 1400, 1400}},
		"PPPoE, told":      {sure, told(1492), []int{1200, 1500, 1500, 1500, 1492, 1493, 1493, 1493, 1492, 1492}},
		"576 by a hole":    {sure, hole(576), []int{1200, 1200, 1200, 576, 888, 888, 888, 732, 732, 732, 654, 654, 654, 615, 615, 615, 595, 595, 595, 585, 585, 585, 580, 580, 580, 578, 578, 578, 577, 577, 577, 576, 576}},
		"nothing answers":  {sure, hole(10), []int{1200, 1200, 1200, 576, 576, 576, 72, 72, 72}},
		"runs, not probes": {PathMTU{Least: 72, Upper: 1500}, hole(1492), []int{1200, 1500, 1452, 1472, 1492, 1493}},
		"a small link":     {PathMTU{Least: 72, Upper: 1000, Sure: true}, hole(9000), []int{1000, 1000, 1000}},
	} {
		if diff := cmp.Diff(c.want, sizes(walk(c.p, c.trial))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestPathMTUAnswer(t *testing.T) {
	p := PathMTU{Least: 72, Upper: 1500, Sure: true}
	a := p.Answer(walk(p, hole(1400)))
	if a.MTU == nil || *a.MTU != 1400 || !a.Exact || a.AtLink || a.Told != nil || a.BlackHole == nil || !*a.BlackHole {
		t.Errorf("hole: %+v", a)
	}
	a = p.Answer(walk(p, hole(9000)))
	if *a.MTU != 1500 || !a.Exact || !a.AtLink || *a.BlackHole {
		t.Errorf("Ethernet: %+v", a)
	}
	// The other end's interface is the smaller one: its system refuses.
	asked := PathMTU{Least: 72, Upper: 9000, Sure: true, Asking: true}
	a = asked.Answer(walk(asked, func(_, size int) result.MTUTrial {
		return result.MTUTrial{Size: size, Passed: size <= 1500, TooLong: size > 1500}
	}))
	if *a.MTU != 1500 || !a.Exact || !a.AtLink || a.BlackHole != nil {
		t.Errorf("a smaller interface there: %+v", a)
	}
	if a = p.Answer(nil); a.MTU != nil || a.Exact {
		t.Errorf("nothing: %+v", a)
	}
	// A step back: the byte more passes after all.
	n := 0
	a = p.Answer(walk(p, func(_, size int) result.MTUTrial {
		if size == 1401 {
			n++
		}
		return result.MTUTrial{Size: size, Passed: size <= 1400 || size == 1401 && n == 3}
	}))
	if *a.MTU != 1401 {
		t.Errorf("a byte more passed: %+v", a)
	}
}

// Whatever the path's MTU, and though up to one of three packets is lost, the answer is exact to
// the byte, or says that it is not.
func TestPathMTUExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		upper := rapid.SampledFrom([]int{1280, 1492, 1500, 9000, 65535}).Draw(t, "upper")
		mtu := rapid.IntRange(72, upper).Draw(t, "mtu")
		lossy := rapid.Bool().Draw(t, "lossy")
		tells := rapid.Bool().Draw(t, "tells")
		p := PathMTU{Least: 72, Upper: upper, Sure: rapid.Bool().Draw(t, "sure")}
		told := 0
		h := walk(p, func(n, size int) result.MTUTrial {
			if tells && size > mtu {
				told = mtu
			}
			lost := lossy && p.Sure && n%3 == 1
			return result.MTUTrial{Size: size, Passed: size <= mtu && !lost, Told: told}
		})
		if len(h) > 90 {
			t.Fatalf("%d packets", len(h))
		}
		a := p.Answer(h)
		if a.MTU == nil || *a.MTU != mtu || !a.Exact {
			t.Fatalf("%+v after %v, want %d", a, sizes(h), mtu)
		}
	})
}

// A clamp on the way of the client's announcement bounds what the server sends, so it is told of the way down.
func TestMTURunsSegments(t *testing.T) {
	mtu := 1400
	history := []Done{
		{Step: Step{Name: mtuSYN}, Run: &result.Run{Streams: []result.Stream{{
			Remote:    result.Addr{Host: "192.0.2.2"},
			TCP:       &result.TCPSummary{Last: result.TCPInfo{MSS: 1448, AdvMSS: 1448, Timestamps: true}},
			RemoteTCP: &result.TCPSummary{Last: result.TCPInfo{MSS: 1348, AdvMSS: 1448, Timestamps: true}, SYN: &result.SYN{MSS: 1360}},
		}}}},
		{Step: Step{Name: mtuProbe}, Run: &result.Run{Probes: []result.Probes{{Kind: "udp-mtu", MTU: []result.PathMTU{
			{Direction: result.Up, MTU: &mtu}, {Direction: result.Down, MTU: &mtu},
		}}}}},
	}
	a := MTURuns{}.Answer(history)
	if diff := cmp.Diff([]MSSClamp{{result.Client, 1460, 1360}}, a.Clamps); diff != "" {
		t.Fatal(diff)
	}
	up, down := a.Paths[0], a.Paths[1]
	if up.Segment == nil || *up.Segment != 1460 || up.Announced != nil || up.Seen != nil {
		t.Errorf("up: %+v", up)
	}
	if down.Segment == nil || *down.Segment != 1360 || down.Announced == nil || *down.Announced != 1460 || *down.Seen != 1360 {
		t.Errorf("down: %+v", down)
	}
	if of := history[1].Run.Probes[0].MTU[1]; of.Segment != nil {
		t.Error("the run's own figures were changed")
	}
}
