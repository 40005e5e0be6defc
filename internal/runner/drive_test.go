package runner

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// list is a method of so many steps of a mebibyte each.
type list int

func (n list) Next(history []method.Done) (method.Step, bool) {
	if len(history) >= int(n) {
		return method.Step{}, false
	}
	return method.Step{Name: fmt.Sprintf("step-%d", len(history)), Plan: plan.Plan{Direction: plan.Up, Bytes: 1 << 20}}, true
}

func TestDrive(t *testing.T) {
	port, _ := server(t, plan.Serve{})
	complete := func(p plan.Plan) plan.Plan {
		p.Host, p.Port = "127.0.0.1", port
		return p
	}
	var began, ended []string
	mine := &log{}
	d := Drive{
		Method: list(3), Complete: complete, Events: mine,
		Begin: func(s method.Step) { began = append(began, s.Name) },
		End:   func(d *method.Done) { ended = append(ended, d.Step.Name) },
	}
	out := (&Runner{}).Drive(t.Context(), d)
	if out.Err != nil || len(out.History) != 3 || out.Moved < 3<<20 || len(out.Notices) != 0 {
		t.Fatalf("%+v", out)
	}
	if fmt.Sprint(began) != "[step-0 step-1 step-2]" || fmt.Sprint(ended) != fmt.Sprint(began) || len(mine.events) == 0 {
		t.Errorf("began %v, ended %v, %d events", began, ended, len(mine.events))
	}
	for i, h := range out.History {
		if h.Err != nil || h.Run == nil || h.Run.Label != h.Step.Name {
			t.Errorf("step %d: %+v", i, h)
		}
	}

	// A budget is over all steps: the engine stops at it, and what is left out is told.
	d.MaxBytes = 3 << 19
	out = (&Runner{}).Drive(t.Context(), d)
	if out.Moved > 3<<19 || len(out.History) != 2 || len(out.Notices) != 1 || out.Notices[0].Code != "budget-used" {
		t.Errorf("moved %d of %d in %d steps, notices %v", out.Moved, d.MaxBytes, len(out.History), out.Notices)
	}

	// An interrupt keeps what is there.
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	d.MaxBytes = 0
	d.End = func(*method.Done) { cancel(&result.Error{Code: "interrupted", Interrupted: true}) }
	out = (&Runner{}).Drive(ctx, d)
	if out.Err == nil || !out.Err.Interrupted || len(out.History) != 1 || out.History[0].Run == nil {
		t.Errorf("%+v", out)
	}
}

// A step that cannot begin is in the history with its reason; what follows is the
// method's to decide.
func TestDriveKeepsFailures(t *testing.T) {
	d := Drive{Method: list(2), Complete: func(p plan.Plan) plan.Plan { return p }} // no host
	out := (&Runner{}).Drive(t.Context(), d)
	if out.Err != nil || len(out.History) != 2 {
		t.Fatalf("%+v", out)
	}
	e := out.History[0].Err
	if e == nil || e.Code != "plan" || out.History[0].Run != nil || errors.Is(e, context.Canceled) {
		t.Errorf("%+v", out.History[0])
	}
}
