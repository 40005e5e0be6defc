package plan

import "time"

// PlainPause is how long an iperf3 server needs after a test before it listens again.
const PlainPause = 300 * time.Millisecond

// Budget is the payload that several tests, one after the other, may move together; bytes.
type Budget struct {
	Most  int64 // 0 = as much as they like
	Moved int64
}

// Used reports that nothing is left.
func (b Budget) Used() bool { return b.Most > 0 && b.Moved >= b.Most }

// Share is what each of so many tests at a time may move of what is left, for Plan.MaxBytes; 0 = as
// much as it likes.
func (b Budget) Share(tests int) int64 {
	if b.Most <= 0 {
		return 0
	}
	return max((b.Most-b.Moved)/int64(max(tests, 1)), 1)
}
