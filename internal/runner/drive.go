package runner

import (
	"context"
	"fmt"
	"sync"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/pause"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// Drive plays a method: one step after the other, each with what came of those before.
type Drive struct {
	Method method.Method
	// Complete puts in what a method does not know: host, port, options of the user.
	Complete func(plan.Plan) plan.Plan
	// MaxBytes bounds the payload of all steps together, MaxRate the rate of each; 0 = not.
	MaxBytes, MaxRate int64

	Begin  func(method.Step)  // a step begins, before its pause; nil = nobody listens
	Events result.Sink        // events of the steps; nil = nobody listens
	End    func(*method.Done) // a step is over; nil = nobody listens
}

// Outcome is what a driven method left.
type Outcome struct {
	History []method.Done
	Moved   int64           // payload bytes that senders counted
	Notices []result.Notice // about the whole
	Err     *result.Error   // why it did not come to its end; nil = it did
}

// Drive plays d until its method has no more steps, its budget is used up, or ctx ends. It
// keeps what was measured in any case. The goroutines of tests that run at the same time are gone
// when it returns.
func (r *Runner) Drive(ctx context.Context, d Drive) Outcome {
	var out Outcome
	for {
		step, more := d.Method.Next(out.History)
		if !more {
			return out
		}
		budget := plan.Budget{Most: d.MaxBytes, Moved: out.Moved}
		if budget.Used() {
			out.Notices = append(out.Notices, result.Notice{
				Code: "budget-used", End: result.Client, Level: result.Warn,
				Text: fmt.Sprintf("the budget of %s is used up: stages from %q on were left out", units.ByteSize(d.MaxBytes), step.Name),
			})
			return out
		}
		if d.Begin != nil {
			d.Begin(step)
		}
		wait := step.Pause
		if n := len(out.History); n > 0 && !extendedRun(out.History[n-1].Run) {
			wait = max(wait, plan.PlainPause)
		}
		if !pause.For(ctx, wait) {
			out.Err = causeOf(ctx)
			return out
		}
		tests := 1 + len(step.With)
		complete := func(p plan.Plan) plan.Plan {
			p = d.Complete(p)
			if share := budget.Share(tests); share > 0 {
				p.MaxBytes = share
			}
			if d.MaxRate > 0 {
				p.MaxRate = d.MaxRate / int64(tests)
			}
			return p
		}
		others := r.beside(ctx, step, complete)
		run, err := r.Run(ctx, complete(step.Plan), d.Events)
		done := method.Done{Step: step, Run: run, Err: result.AsError(err), With: others()}
		for _, w := range done.With {
			if w != nil {
				w.Label = step.Name
				out.Moved += Moved(w)
			}
		}
		if run != nil {
			run.Label = step.Name
			out.Moved += Moved(run)
		}
		out.History = append(out.History, done)
		if d.End != nil {
			d.End(&out.History[len(out.History)-1])
		}
		if ctx.Err() != nil {
			out.Err = causeOf(ctx)
			return out
		}
	}
}

// beside runs the further tests of a step; wait returns what came of them when they are over.
func (r *Runner) beside(ctx context.Context, step method.Step, complete func(plan.Plan) plan.Plan) (wait func() []*result.Run) {
	if len(step.With) == 0 {
		return func() []*result.Run { return nil }
	}
	runs := make([]*result.Run, len(step.With))
	var all sync.WaitGroup
	for i, p := range step.With {
		all.Go(func() { runs[i], _ = r.Run(ctx, complete(p), nil) }) // ends with its plan or ctx; what it met is in the Run
	}
	return func() []*result.Run {
		all.Wait()
		return runs
	}
}

func extendedRun(run *result.Run) bool { return run != nil && run.Wire != nil && run.Wire.Extension }

// Moved is the payload of a run with its warm-up, in each direction as its sender counted it, or
// its receiver where that is all that is known. The sums are of the measured part alone, the rows
// of everything. Of a run that is made of probes it is theirs and their answers'.
func Moved(run *result.Run) (bytes int64) {
	if run.Test.ProbeOnly && len(run.Sums) == 0 {
		for i := range run.Probes {
			bytes += probed(&run.Probes[i])
		}
		return bytes
	}
	for _, s := range run.Sums {
		measured := int64(0)
		if s.Sender != nil {
			measured = s.Sender.Bytes
		} else if s.Receiver != nil {
			measured = s.Receiver.Bytes
		}
		var rows [2]int64
		for i := range run.Rows {
			r := &run.Rows[i]
			for _, row := range r.Sums {
				switch {
				case row.Direction != s.Direction:
				case r.End == s.Direction.Sender():
					rows[0] += row.Bytes
				default:
					rows[1] += row.Bytes
				}
			}
		}
		bytes += max(measured, rows[0], rows[1])
	}
	return bytes
}

// probed is what probes of one kind moved.
func probed(p *result.Probes) (bytes int64) {
	if len(p.MTU) == 0 {
		return int64(p.Size) * (p.Sent + p.Answered)
	}
	for i := range p.MTU {
		for _, t := range p.MTU[i].Trials {
			bytes += int64(t.Size)
		}
	}
	return bytes
}

func causeOf(ctx context.Context) *result.Error { return result.AsError(context.Cause(ctx)) }
