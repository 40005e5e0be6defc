package traffic

import "sync/atomic"

// quota hands out what senders may still send, so that byte and block limits are met
// exactly whatever the number of flows. A claim is finished (settle) when its bytes
// are written or given back. Nothing here is touched when a run has no limit.
type quota struct {
	hold    atomic.Bool // no claims: the base of the limit is being sampled
	limited atomic.Bool // Bytes or Blocks count from now on (end of Omit)
	exact   bool        // file mode: the last claim is cut to the byte
	block   int64
	byBlock bool
	left    atomic.Int64 // bytes (or blocks) not yet claimed; may be negative by less than a block
	open    atomic.Int64 // claims not settled

	budgeted bool
	budget   atomic.Int64 // bytes of MaxBytes left, both directions
}

// on reports whether claims matter at all at the moment.
func (q *quota) on() bool { return q.budgeted || q.limited.Load() || q.hold.Load() }

// arm starts the limit of n bytes, or blocks, and ends the hold.
func (q *quota) arm(n int64, byBlock bool) {
	q.byBlock = byBlock
	q.left.Store(n)
	q.limited.Store(true)
	q.hold.Store(false)
}

// claim asks for one block. 0 bytes = nothing left at the moment. limited tells settle
// whether the claim counts against the limit.
func (q *quota) claim() (n int64, limited bool) {
	if q.hold.Load() {
		return 0, false
	}
	n = q.block
	if q.limited.Load() {
		limited = true
		q.open.Add(1)
		take := q.block
		if q.byBlock {
			take = 1
		}
		before := q.left.Add(-take) + take
		if before <= 0 {
			q.left.Add(take)
			q.open.Add(-1)
			return 0, true
		}
		if q.exact && !q.byBlock && before < n {
			q.left.Add(n - before)
			n = before
		}
	}
	if q.budgeted {
		before := q.budget.Add(-n) + n
		if before < n {
			grant := max(before, 0)
			q.budget.Add(n - grant)
			if grant == 0 && limited {
				q.refund(n)
			}
			n = grant
		}
	}
	return n, limited
}

// settle ends a claim of which rest bytes were not written.
func (q *quota) settle(rest int64, limited bool) {
	if q.budgeted && rest > 0 {
		q.budget.Add(rest)
	}
	if !limited {
		return
	}
	if rest > 0 {
		q.refund(rest)
		return
	}
	q.open.Add(-1)
}

// refund gives a claim of rest bytes back.
func (q *quota) refund(rest int64) {
	if q.byBlock {
		rest = 1
	}
	q.left.Add(rest)
	q.open.Add(-1)
}

// met reports that the limit is reached and every claim written.
func (q *quota) met() bool {
	return q.limited.Load() && q.left.Load() <= 0 && q.open.Load() == 0
}

// spent reports that the budget is used up.
func (q *quota) spent() bool { return q.budgeted && q.budget.Load() <= 0 }

// received takes n received bytes off the budget and reports whether it is used up.
func (q *quota) received(n int) bool {
	return q.budgeted && q.budget.Add(-int64(n)) <= 0
}
