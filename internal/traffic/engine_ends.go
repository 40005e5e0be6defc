package traffic

import (
	"errors"
	"io"
)

// What ends a run: a quota of bytes or blocks, senders that died, flows that are over.

// noteReceived applies the receivers' rules to n bytes just counted.
func (e *Engine) noteReceived(n int) {
	if e.watchReceived && e.received.Add(int64(n)) >= e.receiveTarget.Load() {
		if e.cfg.Blocks > 0 {
			e.fire(Blocks)
		} else {
			e.fire(Bytes)
		}
	}
	if e.q.received(n) {
		e.fire(Budget)
	}
}

// checkQuota fires when the senders' limit is met, and reports it.
func (e *Engine) checkQuota() bool {
	switch {
	case e.q.met():
		if e.cfg.Blocks > 0 {
			e.fire(Blocks)
		} else {
			e.fire(Bytes)
		}
	case e.q.spent():
		e.fire(Budget)
	default:
		return false
	}
	return true
}

// ended is called by a worker when a flow is over for itself.
func (e *Engine) ended() {
	allOver, readersOver, readers, files, fileEnds := true, true, 0, 0, 0
	for _, s := range e.streams {
		over := s.over.Load()
		allOver = allOver && over
		if !s.Send {
			readers++
			readersOver = readersOver && over
		} else {
			files++
			if s.fileEnd.Load() {
				fileEnds++
			}
		}
	}
	switch {
	case files > 0 && fileEnds > 0 && fileEnds+e.deadSenders() >= files:
		e.fire(FileEnd)
	case readers > 0 && readersOver, allOver:
		e.fire(PeerClosed)
	case e.cfg.BlocksEach:
		e.filled()
	}
}

// filled fires when no sender is left that has blocks of its own to send: it was the end of the run
// if none of them died.
func (e *Engine) filled() {
	whole := true
	for _, s := range e.streams {
		switch {
		case !s.Send, s.full.Load():
		case s.over.Load():
			whole = false
		default:
			return
		}
	}
	if whole {
		e.fire(Blocks)
	} else {
		e.fire(PeerClosed)
	}
}

func (e *Engine) deadSenders() int {
	n := 0
	for _, s := range e.streams {
		if s.Send && s.over.Load() && !s.fileEnd.Load() {
			n++
		}
	}
	return n
}

// isEOF reports the peer's orderly end.
func isEOF(err error) bool { return errors.Is(err, io.EOF) }
