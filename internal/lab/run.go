package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// RunOptions are what playing a scenario needs from its surroundings.
type RunOptions struct {
	// Fullbore is the path of the fullbore program: the one under test, and the one
	// whose hidden command is the link process.
	Fullbore string
	// Replays is how often a void play is repeated at most; 0 means MaxReplays.
	Replays int
	// Log, when set, is told of each play as it ends.
	Log func(Play)
}

// RunFile plays the scenario in a file and prints each play and the outcome to out.
// An error means that it could not be played, not that it was wrong.
func RunFile(ctx context.Context, path string, o RunOptions, out io.Writer) (Outcome, error) {
	s, err := LoadScenario(path)
	if err != nil {
		return Outcome{}, err
	}
	n := 0
	log := o.Log
	o.Log = func(p Play) {
		n++
		_, _ = fmt.Fprintf(out, "%s: play %d: %s\n", s.Name, n, p)
		if log != nil {
			log(p)
		}
	}
	outcome, err := Run(ctx, s, o)
	if err != nil {
		return outcome, err
	}
	_, err = fmt.Fprintf(out, "%s: %s\n", s.Name, outcome.Verdict)
	for _, r := range outcome.Reasons {
		_, err = fmt.Fprintf(out, "  %s\n", r)
	}
	if err != nil {
		return outcome, fmt.Errorf("lab: print the outcome: %w", err)
	}
	return outcome, nil
}

// Run plays a scenario until a play counts, at most 1 + o.Replays times. An error
// means that it could not be played.
func Run(ctx context.Context, s *Scenario, o RunOptions) (Outcome, error) {
	out, err := s.decide(o, func() (Play, error) { return play(ctx, s, o) })
	if c := (*CannotError)(nil); errors.As(err, &c) {
		out.Verdict, out.Reasons = Cannot, []string{c.Error()}
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("lab: %s: %w", s.Name, err)
	}
	return out, nil
}

// decide plays until a play counts and judges that one.
func (s *Scenario) decide(o RunOptions, play func() (Play, error)) (Outcome, error) {
	var out Outcome
	if o.Replays == 0 {
		o.Replays = MaxReplays
	}
	for range 1 + o.Replays {
		p, err := play()
		if err != nil {
			return out, err
		}
		out.Plays = append(out.Plays, p)
		if o.Log != nil {
			o.Log(p)
		}
		if len(p.Void) > 0 {
			continue
		}
		out.Verdict, out.Reasons = Right, s.Expect.judge(&p)
		if len(out.Reasons) > 0 {
			out.Verdict = Wrong
		}
		return out, nil
	}
	out.Verdict = Unfit
	return out, nil
}
