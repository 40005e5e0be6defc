package probe

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/pause"
	"github.com/fullbore-net/fullbore/result"
)

// ErrTooLong is what a Conn says of a datagram that its system does not send whole; Receive says
// it when a router did (ICMP "too big").
var ErrTooLong = errors.New("probe: longer than a packet may be")

// MTUSearch chooses the sizes of packets (method.PathMTU).
type MTUSearch interface {
	Next(history []result.MTUTrial) (size int, more bool)
}

// MTUConfig is what an MTUProber needs; all of it must be set, but where said.
type MTUConfig struct {
	Conn  Conn // must not fragment what it sends; closed by Close
	Test  ID
	Nonce Nonce
	// Overhead is what IP and UDP add to a payload: 28 or 48 bytes.
	Overhead int
	Now      func() int64 // ns, monotonic
	// Most is how many bytes of packets both ends together may send; 0 = as many as it takes.
	Most int64
	// Told is the MTU that this host's system has learned for the path, 0 = none; nil = it does not
	// tell.
	Told func() int
}

// Times of an MTUProber.
const (
	mtuWaitLeast = 100 * time.Millisecond // for an answer (M-PMTU)
	mtuWaitFirst = time.Second            // while the round trip is not known
	mtuSpacing   = 1250 * time.Millisecond / sizedRate
)

// MTUProber sends single packets and waits for their answers: small ones back for large ones there,
// or large ones back for small ones there. It is for one goroutine; its own ends with Close.
type MTUProber struct {
	c        MTUConfig
	signer   *Signer
	answers  chan mtuAnswer
	receiver sync.WaitGroup
	seq      uint32
	trip     time.Duration // longest round trip so far
	sent     int64
	answered int64
	moved    int64 // bytes of packets
	spent    bool  // Most ended a search
}

// mtuAnswer is one datagram that came back.
type mtuAnswer struct {
	Answer
	size int // payload bytes
	at   int64
}

// NewMTUProber starts to listen.
func NewMTUProber(c MTUConfig) *MTUProber {
	p := &MTUProber{c: c, signer: NewSigner(c.Nonce), answers: make(chan mtuAnswer, 64)}
	p.receiver.Go(p.receive) // ends with Conn
	return p
}

// Close ends it.
func (p *MTUProber) Close() {
	_ = p.c.Conn.Close()
	p.receiver.Wait()
}

// Counts returns how many packets were sent, and how many answered.
func (p *MTUProber) Counts() (sent, answered int64) { return p.sent, p.answered }

func (p *MTUProber) receive() {
	signer := NewSigner(p.c.Nonce)
	b := make([]byte, maxPayload+1)
	proof := make([]byte, HeaderSize)
	for {
		n, at, _, err := p.c.Conn.Receive(b)
		switch {
		case errors.Is(err, ErrClosed):
			return
		case err != nil:
			time.Sleep(idleRead) // a socket that only fails must not take the core
			continue
		}
		if a, ok := ParseAnswer(b[:n], signer); ok {
			select {
			case p.answers <- mtuAnswer{Answer: a, size: n, at: at}:
			default: // nobody asked for so many
			}
			continue
		}
		if token, _, ok := ParseChallenge(b[:n], signer); ok {
			PutProof(proof, p.c.Test, token, signer)
			_ = p.c.Conn.Send(proof)
		}
	}
}

// Reach sends small packets until one is answered, at most five: it proves the address and learns
// the round trip. The error is ctx's cause; false = nothing came back.
func (p *MTUProber) Reach(ctx context.Context) (bool, error) {
	for range 5 {
		t, err := p.try(ctx, HeaderSize+p.c.Overhead, false, nil)
		if err != nil || t.Passed {
			return t.Passed, err
		}
	}
	return false, nil
}

// Notices say what is to be known beside what was found.
func (p *MTUProber) Notices() []result.Notice {
	if !p.spent {
		return nil
	}
	return []result.Notice{budgetUsed(p.c.Most)}
}

// Search plays s: packets up, or with down those that the other end sends. It returns what was
// tried, also with an error, which is ctx's cause, or where Most ended it.
func (p *MTUProber) Search(ctx context.Context, s MTUSearch, down bool) ([]result.MTUTrial, error) {
	var history []result.MTUTrial
	sizes := map[uint32]int{} // which of history a number is
	for {
		size, more := s.Next(history)
		if !more {
			return history, nil
		}
		if p.c.Most > 0 && p.moved+int64(size) > p.c.Most {
			p.spent = true
			return history, nil
		}
		p.moved += int64(size)
		sizes[p.seq+1] = len(history)
		history = append(history, result.MTUTrial{Size: size})
		t, err := p.try(ctx, size, down, func(seq uint32) { // an answer that was given up comes late
			if i, ok := sizes[seq]; ok {
				history[i].Passed = true
			}
		})
		history[len(history)-1] = t
		if err != nil {
			return history[:len(history)-1], err
		}
	}
}

// try sends one packet of size bytes, or asks for one, and waits.
func (p *MTUProber) try(ctx context.Context, size int, down bool, late func(seq uint32)) (result.MTUTrial, error) {
	t := result.MTUTrial{Size: size}
	payload := max(size-p.c.Overhead, HeaderSize)
	b := make([]byte, HeaderSize)
	r := Request{Test: p.c.Test, Flags: FlagShort}
	if down {
		r.Flags, r.Wanted = FlagSized, payload
	} else {
		b = make([]byte, payload)
	}
	p.seq++
	seq := p.seq
	r.Seq, r.Sent = seq, p.c.Now()
	PutRequest(b, r, p.signer)
	err := p.c.Conn.Send(b)
	for range 2 { // the word about an earlier one came in place of sending
		if errors.Is(err, ErrTooLong) || errors.Is(err, ErrRefused) {
			err = p.c.Conn.Send(b)
		}
	}
	p.sent++
	if errors.Is(err, ErrTooLong) {
		t.TooLong = true
		t.Told = p.told()
		return t, p.rest(ctx, 0)
	}
	wait := max(mtuWaitLeast, 2*p.trip)
	if p.trip == 0 {
		wait = mtuWaitFirst
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case a := <-p.answers:
			whole := !down || a.size == payload
			switch {
			case a.Seq != seq:
				if late != nil && a.Flags&FlagTooLong == 0 {
					late(a.Seq)
				}
				continue
			case a.Flags&FlagTooLong != 0:
				t.TooLong = true
			case whole:
				t.Passed = true
				p.answered++
				p.trip = max(p.trip, time.Duration(a.at-r.Sent))
			}
			t.Told = p.told()
			if down {
				return t, p.rest(ctx, mtuSpacing-time.Duration(p.c.Now()-r.Sent))
			}
			return t, p.rest(ctx, 0)
		case <-timer.C:
			t.Told = p.told()
			return t, nil
		case <-ctx.Done():
			return t, context.Cause(ctx)
		}
	}
}

func (p *MTUProber) told() int {
	if p.c.Told == nil {
		return 0
	}
	return p.c.Told()
}

// rest waits, so that the server's limit of large answers is kept to.
func (p *MTUProber) rest(ctx context.Context, d time.Duration) error {
	if pause.For(ctx, d) {
		return nil
	}
	return context.Cause(ctx)
}
