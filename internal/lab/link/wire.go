package link

import "time"

// Wire holds what is on its way and gives it out in the order in which it arrives:
// by the time of arrival, and what arrives at the same moment in the order in which it
// was added. A packet that was held back for others comes right behind the last of
// them. It is not safe for concurrent use.
type Wire[T any] struct {
	// What was added in the order of its arrival, which is all without jitter, is in
	// ordered; the rest in others.
	ordered ring[item[T]]
	others  items[T]
	held    ring[item[T]] // held back until others have passed, in the order of release
	passed  int64         // packets that could pass a held one, since the beginning
	added   int64
}

// item is one packet on its way.
type item[T any] struct {
	v       T
	due     time.Duration
	rank    int64 // orders what is due at the same time
	twice   bool
	release int64         // held: when so many have passed
	latest  time.Duration // held: or at this time
}

func (a *item[T]) before(b *item[T]) bool {
	return a.due < b.due || a.due == b.due && a.rank < b.rank
}

// Add puts a delivered packet on the wire. Decisions come in the order in which the
// link made them, so Latest never decreases. It does not allocate once the wire has held its usual number.
func (w *Wire[T]) Add(v T, d Decision) {
	it := item[T]{v: v, due: d.Arrival, twice: d.Twice}
	if d.Behind > 0 {
		it.release, it.latest = w.passed+int64(d.Behind), d.Latest
		w.held.push(it)
		return
	}
	w.put(it)
	if d.Held || d.Spared {
		return
	}
	w.passed++
	for w.held.n > 0 && w.held.front().release <= w.passed {
		h := w.held.pop()
		h.due = min(max(h.due, d.Arrival), h.latest)
		w.put(h)
	}
}

func (w *Wire[T]) put(it item[T]) {
	it.rank = w.added
	w.added++
	if w.ordered.n == 0 || w.ordered.back().due <= it.due {
		w.ordered.push(it)
		return
	}
	w.others.push(it)
}

// Next returns when the next packet arrives; false: there is none.
func (w *Wire[T]) Next() (due time.Duration, ok bool) {
	first := w.first()
	if w.held.n > 0 && (first == nil || w.held.front().latest < first.due) {
		return w.held.front().latest, true
	}
	if first == nil {
		return 0, false
	}
	return first.due, true
}

// Pop takes the next packet that has arrived by now. again says that its copy follows,
// with the next Pop and the same due. ok is false when nothing has arrived.
func (w *Wire[T]) Pop(now time.Duration) (v T, due time.Duration, again, ok bool) {
	due, ok = w.Next()
	if !ok || due > now {
		return v, 0, false, false
	}
	first := w.first()
	if w.held.n > 0 && (first == nil || w.held.front().latest < first.due) {
		h := w.held.pop()
		h.due = h.latest
		w.put(h)
		first = w.first()
	}
	if first.twice {
		first.twice = false
		return first.v, due, true, true
	}
	v = first.v
	if len(w.others) > 0 && first == &w.others[0] {
		w.others.pop()
	} else {
		w.ordered.pop()
	}
	return v, due, false, true
}

// Len returns how many packets are on the wire, copies not counted.
func (w *Wire[T]) Len() int { return w.ordered.n + len(w.others) + w.held.n }

// first is what arrives next of what is not held, nil when there is nothing.
func (w *Wire[T]) first() *item[T] {
	switch {
	case w.ordered.n == 0 && len(w.others) == 0:
		return nil
	case w.ordered.n == 0:
		return &w.others[0]
	case len(w.others) == 0 || w.ordered.front().before(&w.others[0]):
		return w.ordered.front()
	}
	return &w.others[0]
}

// items is a binary heap, the first to arrive at its top.
type items[T any] []item[T]

func (h *items[T]) push(it item[T]) {
	*h = append(*h, it)
	s := *h
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s[i].before(&s[parent]) {
			return
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
}

func (h *items[T]) pop() {
	s := *h
	last := len(s) - 1
	s[0] = s[last]
	s[last] = item[T]{} // lets go of v
	s = s[:last]
	*h = s
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(s) && s[child].before(&s[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
}
