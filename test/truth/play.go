package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// player plays scenarios, several at a time if asked to. What they say is printed when a round is
// over, so that rounds do not mix.
type player struct {
	options
	state *state
	save  func() error
	total int
	out   io.Writer

	mu sync.Mutex // held over state, save, out
}

// all plays every scenario of a list as often as asked for; the first error ends it.
func (p *player) all(ctx context.Context, files []file) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next := make(chan int)
	var workers sync.WaitGroup
	var failed error
	for range max(p.jobs, 1) {
		workers.Go(func() { // ends when next is closed
			for i := range next {
				if err := p.scenario(ctx, i, files[i]); err != nil {
					p.mu.Lock()
					failed = errors.Join(failed, err)
					p.mu.Unlock()
					stop(err)
				}
			}
		})
	}
	for i := range files {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	workers.Wait()
	return failed
}

// scenario plays the rounds of one that are missing.
func (p *player) scenario(ctx context.Context, i int, f file) error {
	p.mu.Lock()
	e := p.state.of(f)
	p.mu.Unlock()
	for round := e.rounds() + 1; !e.done(p.plays) && ctx.Err() == nil; round++ {
		var said bytes.Buffer
		began := time.Now()
		outcome, err := lab.RunFile(ctx, f.path, lab.RunOptions{Fullbore: p.fullbore}, &said)
		if ctx.Err() != nil {
			return nil // what was not finished counts for nothing, and is played again
		}
		if err := p.count(i, round, f, e, outcome, time.Since(began), said.Bytes(), err); err != nil {
			return err
		}
	}
	return nil
}

// count puts a round into the state and the table, and says how it went.
func (p *player) count(i, round int, f file, e *entry, outcome lab.Outcome, took time.Duration, said []byte, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, "[%d/%d] %s, round %d of %d\n%s", i+1, p.total, f.key, round, p.plays, said)
	if err != nil {
		return errors.Join(err, p.save())
	}
	e.count(f.scenario, outcome, took)
	return errors.Join(p.save(), keep(p.keep, f.key, e, outcome))
}
