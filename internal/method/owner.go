package method

import (
	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Who lost datagrams (M-UDP, "loss in place"): what the receiving host dropped itself is no evidence against
// the path, and where its kernel merged datagrams one drop that it counts is up to mergedMost of them.

// merged reports that the receiver's kernel handed over several datagrams at once.
func merged(s *result.Sum) bool {
	return s != nil && s.UDP != nil && s.UDP.Received != nil && s.UDP.Received.Coalesced
}

// unclear reports that the receiving socket dropped datagrams and nobody knows how many, since they were
// merged: a test whose losses matter is to be made again with offload off.
func unclear(d *Done, dir result.Direction) bool {
	if d.Run == nil {
		return false
	}
	l := conclude.LossOf(d.Run, dir)
	return l != nil && l.Lost > 0 && l.Socket != nil && *l.Socket > 0 && merged(d.Run.Sum(dir)) && d.Step.Plan.Offload != plan.OffloadOff
}

// ownDrops is how many of the lost the receiving host's socket dropped at least, and how many of them are
// surely not a host's own.
func ownDrops(run *result.Run, d result.Direction) (own, path int64) {
	l := conclude.LossOf(run, d)
	switch {
	case l == nil:
		return 0, 0
	case l.Socket == nil || *l.Socket <= 0:
		return 0, l.Lost
	case merged(run.Sum(d)):
		return min(*l.Socket, l.Lost), max(l.Lost-mergedMost**l.Socket, 0)
	case l.Network != nil:
		return min(*l.Socket, l.Lost), *l.Network
	}
	return min(*l.Socket, l.Lost), l.Lost - min(*l.Socket, l.Lost)
}

// senderReached is the share of a rate below which a sender did not reach it (M-UDP).
const senderReached = 0.99

// shortOf reports that the sender of a direction did not reach a rate of payload: what was measured is of a
// lower one.
func shortOf(run *result.Run, d result.Direction, bps float64) bool {
	s := run.Sum(d)
	return s != nil && s.Sender != nil && s.Sender.Rate() < senderReached*bps
}

// broke reports that a step's own test did not come to its end.
func broke(d *Done) bool { return d.Run == nil || d.Err != nil || d.Run.Err != nil }
