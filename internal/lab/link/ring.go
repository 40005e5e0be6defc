package link

// ring is a first-in-first-out queue that grows by doubling.
type ring[T any] struct {
	buf  []T // length is a power of two
	head int
	n    int
}

func (r *ring[T]) front() *T { return &r.buf[r.head] }

func (r *ring[T]) back() *T { return &r.buf[(r.head+r.n-1)&(len(r.buf)-1)] }

func (r *ring[T]) pop() T {
	v := r.buf[r.head]
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
	return v
}

func (r *ring[T]) push(v T) {
	if r.n == len(r.buf) {
		bigger := make([]T, max(64, 2*len(r.buf)))
		k := copy(bigger, r.buf[r.head:])
		copy(bigger[k:], r.buf[:r.head])
		r.buf, r.head = bigger, 0
	}
	r.buf[(r.head+r.n)&(len(r.buf)-1)] = v
	r.n++
}
