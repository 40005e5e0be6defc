package plan

import "sync"

// Slots counts the tests that run at one server, of all its protocols together, and holds them
// to its policy. It is safe for concurrent use.
type Slots struct {
	mu    sync.Mutex
	max   int  // at once; 0 = no limit
	once  bool // one test, ever
	taken int
	begun int64 // tests that ever began
	watch []chan<- struct{}
}

// Slots returns the slots that s asks for: one for an exclusive or one-off server, MaxTests
// otherwise.
func (s Serve) Slots() *Slots {
	k := &Slots{max: s.MaxTests, once: s.OneOff}
	if s.Exclusive || s.OneOff {
		k.max = 1
	}
	return k
}

// Take takes a slot, if there is one. others is how many are taken beside it; begun, which test
// of the server this is, from 1.
func (k *Slots) Take() (others int, begun int64, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.full() {
		return k.taken, 0, false
	}
	k.taken++
	k.begun++
	k.tell()
	return k.taken - 1, k.begun, true
}

// Release gives a slot back.
func (k *Slots) Release() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.taken--
	k.tell()
}

// Full reports that no test may begin.
func (k *Slots) Full() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.full()
}

// Spent reports that no test may ever begin again.
func (k *Slots) Spent() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.once && k.begun > 0
}

// Begun is how many tests have begun: more than what Take said to one that runs means that others
// began while it ran.
func (k *Slots) Begun() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.begun
}

// Taken is how many tests run.
func (k *Slots) Taken() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.taken
}

// Watch has c told of each change, as far as it has room.
func (k *Slots) Watch(c chan<- struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watch = append(k.watch, c)
}

func (k *Slots) full() bool {
	return k.max > 0 && k.taken >= k.max || k.once && k.begun > 0
}

func (k *Slots) tell() {
	for _, c := range k.watch {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
