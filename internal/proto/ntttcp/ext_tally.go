package ntttcp

import (
	"net/netip"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// awaited are the streams of datagrams that a fullbore sender has told of, and of which none has
// come yet.
type awaited struct {
	peer  netip.Addr
	by    map[datagramKey]*tallied
	free  []*tallied // in the sender's order
	exact bool       // one was known by its ports: no box changes them
	guess int        // that took a place by their order
}

// datagramKey is a stream by its ports: ours as index of the socket.
type datagramKey struct{ port, from int }

// knows reports that f is in the sender's list.
func (a *awaited) knows(f datagramFlow) bool {
	return f.from.Addr().Unmap() == a.peer && a.by[datagramKey{f.port, int(f.from.Port())}] != nil
}

// take returns the stream that f is; nil = none of those that are awaited.
func (a *awaited) take(f datagramFlow) *tallied {
	if len(a.free) == 0 || f.from.Addr().Unmap() != a.peer {
		return nil
	}
	k := datagramKey{f.port, int(f.from.Port())}
	s := a.by[k]
	switch {
	case s != nil:
		a.exact = true
		delete(a.by, k)
	case a.exact:
		return nil // somebody else's
	default:
		s = a.free[0]
		a.guess++
		for k, x := range a.by {
			if x == s {
				delete(a.by, k)
			}
		}
	}
	for i, x := range a.free {
		if x == s {
			a.free = append(a.free[:i:i], a.free[i+1:]...)
			break
		}
	}
	return s
}

// expect makes the streams of the sender's list, in its order; ports are the sockets by their
// ports. It is called before anything is counted, and has what comes after the end counted apart.
func (t *tally) expect(list [][2]int, ports map[int]int, peer netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tails.Store(true)
	t.awaited = awaited{peer: peer, by: map[datagramKey]*tallied{}}
	for i, p := range list[:min(len(list), maxTallied)] {
		s := &tallied{port: -1, view: result.Stream{
			ID: i + 1, Socket: i + 1, Direction: result.Up,
			Local: result.Addr{Port: p[1]}, Remote: result.Addr{Host: peer.String(), Port: p[0]},
		}}
		t.list = append(t.list, s)
		t.awaited.free = append(t.awaited.free, s)
		if at, ok := ports[p[1]]; ok {
			t.awaited.by[datagramKey{at, p[0]}] = s
			s.port = at
		}
	}
}

// wants reports that datagrams still count for something.
func (t *tally) wants() bool { return t.running.Load() || t.tails.Load() }

// addTail counts datagrams that came after the end.
func (t *tally) addTail(f datagramFlow, times int) {
	if !t.tails.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.flows[f]
	if s == nil {
		if s = t.awaited.take(f); s == nil {
			return
		}
		t.flows[f] = s
	}
	s.tail.Add(int64(times))
	t.tailed = t.now()
}

// awaitTail returns when nothing has come for so long, or all that was sent has; at the latest
// tailMost after the end. From then on nothing counts.
func (t *tally) awaitTail(sent []int64, quiet time.Duration) {
	defer t.tails.Store(false)
	var want int64
	for _, n := range sent {
		want += n
	}
	for {
		var got int64
		for _, n := range t.arrived() {
			got += n
		}
		t.mu.RLock()
		stopped, last := t.stopped, max(t.stopped, t.tailed)
		t.mu.RUnlock()
		now := t.now()
		left := min(int64(quiet)-(now-last), int64(tailMost)-(now-stopped))
		if left <= 0 || sent != nil && got >= want {
			return
		}
		time.Sleep(min(time.Duration(left), 5*time.Millisecond))
	}
}

// tailMost is how long after the end datagrams count at most (design §5 "The end").
const tailMost = 2 * time.Second

// arrived is how many datagrams came of each stream, from the first to the last.
func (t *tally) arrived() []int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]int64, len(t.list))
	for i, s := range t.list {
		out[i] = s.packets.Load() + s.tail.Load()
	}
	return out
}

// guessed is how many streams took a place in the sender's list by their order.
func (t *tally) guessed() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.awaited.guess
}
