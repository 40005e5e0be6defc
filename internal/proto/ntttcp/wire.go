package ntttcp

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Word is a message of the sync connection: four bytes, big-endian, signed (linux §3.1).
// Nothing frames it or tells what it is: a number of seconds and a command may have the same
// value, so what a Word means depends on its place in the conversation.
type Word int32

// The commands, and the states that answer them.
const (
	WordState Word = 'X' // sender: what is your state?
	WordStart Word = 'R' // sender: my connections are up, start. Receiver: run now
	WordLast  Word = 'L' // sender: the same, and I am the last one
	WordWait  Word = 'W' // receiver: wait for the last one, then WordStart follows by itself
	WordEnd   Word = 'E' // sender: I am done. Receiver: refused

	StateIdle     Word = 11 // no test yet
	StateRunning  Word = 12 // a test runs: come back later
	StateFinished Word = 13 // a test has finished
)

// WordSize is the length of a message.
const WordSize = 4

// Append appends w as it is on the wire.
func (w Word) Append(b []byte) []byte { return binary.BigEndian.AppendUint32(b, uint32(w)) }

// ParseWord takes the first message off b. n is 0 when it is not whole yet.
func ParseWord(b []byte) (w Word, n int) {
	if len(b) < WordSize {
		return 0, 0
	}
	return Word(binary.BigEndian.Uint32(b)), WordSize
}

// String names w as a log does, where its place is not known.
func (w Word) String() string {
	switch w {
	case WordState, WordStart, WordLast, WordWait, WordEnd:
		return fmt.Sprintf("%q", rune(w))
	}
	return fmt.Sprintf("%d", int32(w))
}

// command reports whether a receiver of the original takes a proposed time for a command.
func (w Word) command() bool {
	return w == WordState || w == WordStart || w == WordLast || w == WordEnd
}

// maxCycle is the longest cycle that a message can hold.
const maxCycle = Word(1<<31 - 1)

// proposal is the cycle time that a sender proposes for a test of d, in whole seconds
// (rounded up); 0 = until interrupted. A time that is a command to the original is proposed
// one second longer: it takes the longer of both times anyway, and the sender's own time runs
// inside it (linux §9).
func proposal(d time.Duration) Word {
	w := Word(min(int64(d/time.Second), int64(maxCycle)))
	if d%time.Second != 0 && w < maxCycle {
		w++
	}
	if w.command() {
		w++
	}
	return w
}

// agreement is a receiver's answer to the proposed cycle p: 0 = until interrupted. own is the
// receiver's -t. A multi-client receiver has all run for its own time, whatever they propose
// (linux §3.3).
func agreement(own, p Word, multi bool) Word {
	switch {
	case multi || p < 0:
		return own
	case p == 0 || own == 0:
		return 0
	}
	return max(own, p)
}
