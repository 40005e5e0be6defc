package ntttcp

import "fmt"

// dialog is a receiver's side of one sync connection, as far as it follows from what the
// sender said: where in the conversation it is. Words are told apart by position, not by
// value, so that a proposed time of 69, 76, 82 or 88 is a time.
type dialog struct{ at place }

type place int

const (
	atHello   place = iota // nothing was said
	atTime                 // the state was asked for: a time follows
	atStart                // a time is agreed: R or L follows, when the connections are up
	atRunning              // R or L was said
)

// ask is what a sender wants.
type ask int

const (
	askState ask = iota + 1 // tell the state
	askTime                 // agree on the cycle
	askStart                // start, or wait for the last one
	askLast                 // start everybody
	askEnd                  // end the test
)

// strangerError says that a peer is no NTTTCP sender; it gets no answer.
type strangerError struct{ w Word }

func (e *strangerError) Error() string {
	return fmt.Sprintf("ntttcp: %08x is no message of an NTTTCP sender here", uint32(e.w))
}

// hear takes the next word. Real senders say X, a time, R or L, perhaps E; more was seen to
// work with the original and works here: R without a time, X again, a second time, R again.
func (d *dialog) hear(w Word) (ask, error) {
	switch d.at {
	case atHello:
		switch w {
		case WordState:
			d.at = atTime
			return askState, nil
		case WordStart, WordLast: // the receiver's own time holds
			return d.start(w), nil
		}
		return 0, &strangerError{w}
	case atTime: // whatever it is, also a command's number
		d.at = atStart
		return askTime, nil
	case atStart:
		switch w {
		case WordState:
			d.at = atTime
			return askState, nil
		case WordStart, WordLast:
			return d.start(w), nil
		case WordEnd:
			return askEnd, nil
		}
		return askTime, nil
	}
	switch w {
	case WordState:
		return askState, nil
	case WordStart, WordLast:
		return d.start(w), nil
	case WordEnd:
		return askEnd, nil
	}
	return 0, &strangerError{w}
}

func (d *dialog) start(w Word) ask {
	d.at = atRunning
	if w == WordLast {
		return askLast
	}
	return askStart
}

// busy takes a refused hello back: the sender may ask again.
func (d *dialog) busy() { d.at = atHello }
