package firewall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// System is the host as this package sees it.
type System struct {
	// Run runs a program and returns what it wrote to its standard output; the error of
	// one that failed holds what it wrote to the other, in its own words (LC_ALL=C).
	Run func(ctx context.Context, args ...string) ([]byte, error)
	// Files is the root of the file system.
	Files fs.FS
	// Alive reports whether a process of this number runs that was there at that time.
	Alive func(pid int, at time.Time) bool
	// Privileged: this process may change filters.
	Privileged bool
	// Zone of firewalld; "" = its default zone.
	Zone string
	// Program is the whole path of this program.
	Program string

	look func(context.Context, System) (*Host, error) // nil = this system's; for tests
}

// Rule is one of ours that was found.
type Rule struct {
	Name string `json:"name"`
	Text string `json:"text"` // as the filter says it
	// Stale: it belongs to a run whose process is gone.
	Stale bool `json:"stale"`
}

// Layer is one packet filter in the way of incoming packets, in the state in which it
// was found. All layers must let a packet through.
type Layer interface {
	// Kind is one of Kinds.
	Kind() string
	// Title says what was found, as half a sentence.
	Title() string
	// Rules are ours.
	Rules() []Rule
	// Judge says whether new packets get through.
	Judge(p Ports) Answer
	// Add and Remove are the commands that let w in, and that take back the rules of a
	// name. Remove of a name that is not there is no command.
	Add(w Wanted) []Command
	Remove(name string) []Command
	// Lasting says for how long a rule of Add stays.
	Lasting() string
}

// Host is what was found on this machine.
type Host struct {
	Layers []Layer
	// Unread: some filter could not be looked at, each with the reason and the remedy.
	Unread []string
	// Notes: what else must be known.
	Notes []string
}

// Look finds the filters that are active. It changes nothing. An error means that the
// host could not be looked at at all.
func Look(ctx context.Context, s System) (*Host, error) {
	from := look
	if s.look != nil {
		from = s.look
	}
	h, err := from(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("firewall: %w", err)
	}
	return h, nil
}

// Worse is the verdict of two filters one behind the other.
func Worse(a, b Verdict) Verdict {
	if rank(b) > rank(a) {
		return b
	}
	return a
}

// Rules are all of ours, with those marked whose run is over.
func (h *Host) Rules(alive func(pid int, at time.Time) bool) []Rule {
	var out []Rule
	for _, l := range h.Layers {
		for _, r := range l.Rules() {
			r.Stale = Stale(r.Name, alive)
			out = append(out, r)
		}
	}
	return out
}

// Stale are the names of rules of runs that are over, each once.
func (h *Host) Stale(alive func(pid int, at time.Time) bool) []string {
	var names []string
	seen := map[string]bool{}
	for _, r := range h.Rules(alive) {
		if r.Stale && !seen[r.Name] {
			names = append(names, r.Name)
			seen[r.Name] = true
		}
	}
	return names
}

// Stale reports whether a rule of this name belongs to a run that is over.
func Stale(name string, alive func(pid int, at time.Time) bool) bool {
	pid, at, run := ParseRunName(name)
	return run && !alive(pid, at)
}

// Change is what is to be done to a layer.
type Change struct {
	Layer    Layer
	Commands []Command
	Why      string
}

// Opening plans to let w in, in each layer that does not do so yet; rules that already
// have this name are replaced. A layer that needs nothing has a Change without commands.
func (h *Host) Opening(w Wanted) []Change {
	var out []Change
	for _, l := range h.Layers {
		shut := 0
		var why string
		for _, p := range w.Ports {
			if a := l.Judge(p); a.Verdict != Open {
				shut++
				why = fmt.Sprintf("%s: %s", p, a.Reason)
			}
		}
		switch {
		case shut == 0:
			out = append(out, Change{Layer: l, Why: "lets all of these ports in already"})
		case shut < len(w.Ports):
			out = append(out, Change{l, append(l.Remove(w.Name), l.Add(w)...), fmt.Sprintf("does not let in %d of %d ranges of ports (%s)", shut, len(w.Ports), why)})
		default:
			out = append(out, Change{l, append(l.Remove(w.Name), l.Add(w)...), fmt.Sprintf("does not let these ports in (%s)", why)})
		}
	}
	return out
}

// Adding plans the rules of w in all layers, whatever they let in already.
func (h *Host) Adding(w Wanted) []Change {
	var out []Change
	for _, l := range h.Layers {
		out = append(out, Change{Layer: l, Commands: l.Add(w)})
	}
	return out
}

// Closing plans to take back the rules of the given names.
func (h *Host) Closing(names ...string) []Change {
	var out []Change
	for _, l := range h.Layers {
		c := Change{Layer: l}
		for _, n := range names {
			c.Commands = append(c.Commands, l.Remove(n)...)
		}
		out = append(out, c)
	}
	return out
}

// ErrByHand: a step that fullbore does not take itself.
var ErrByHand = errors.New("this is not done by fullbore itself: run the printed lines")

// PrivilegeError: the system wants an administrator for it.
type PrivilegeError struct{ Err error }

func (e *PrivilegeError) Error() string { return e.Err.Error() + " (" + Privilege + ")" }

// Unwrap returns the system's own error.
func (e *PrivilegeError) Unwrap() error { return e.Err }

// commandTime bounds a command that changes a filter. It is not killed before that, when
// the caller is interrupted for example: half a change may break the filter's own files.
const commandTime = time.Minute

// Apply runs the commands of all changes, none more once ctx is done. The first that
// fails ends it; what was done under the name undo until then is taken back (""= nothing).
func Apply(ctx context.Context, s System, changes []Change, undo string) error {
	for _, c := range changes {
		for _, cmd := range c.Commands {
			if cmd.Args == nil {
				return fmt.Errorf("firewall: %s: %w", c.Layer.Title(), ErrByHand)
			}
		}
	}
	for _, c := range changes {
		for _, cmd := range c.Commands {
			err := ctx.Err()
			if err == nil {
				err = s.change(ctx, cmd)
			}
			if err != nil && undo != "" {
				err = errors.Join(err, retract(context.WithoutCancel(ctx), s, undo))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (s System) change(ctx context.Context, cmd Command) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandTime)
	defer cancel()
	if _, err := s.Run(ctx, cmd.Args...); err != nil {
		err = fmt.Errorf("firewall: %s: %w", cmd.Line, err)
		if !s.Privileged {
			err = &PrivilegeError{err}
		}
		return err
	}
	return nil
}

// retract removes all rules of a name, looking for them anew.
func retract(ctx context.Context, s System, names ...string) error {
	h, err := Look(ctx, s)
	if err != nil {
		return err
	}
	return Apply(ctx, s, h.Closing(names...), "")
}

// Run is a rule that lives for one run of a receiver.
type Run struct {
	s    System
	name string
	// Changes are what was done.
	Changes []Change
	// Removed are the names of rules that killed runs had left.
	Removed []string
	// Host is what was found before.
	Host *Host
}

// OpenForRun lets w in until Close. w.Name is the run's (RunName). Rules that killed runs
// left are removed. On an error nothing of this run is left.
func OpenForRun(ctx context.Context, s System, w Wanted) (*Run, error) {
	h, err := Look(ctx, s)
	if err != nil {
		return nil, err
	}
	r := &Run{s: s, name: w.Name}
	if r.Removed = h.Stale(s.Alive); len(r.Removed) > 0 {
		if err := Apply(ctx, s, h.Closing(r.Removed...), ""); err != nil {
			return nil, err
		}
		if h, err = Look(ctx, s); err != nil { // handles and line numbers have moved
			return nil, err
		}
	}
	r.Host, r.Changes = h, h.Opening(w)
	if len(h.Unread) > 0 && !r.opens() {
		return nil, &PrivilegeError{fmt.Errorf("firewall: %s", strings.Join(h.Unread, "; "))}
	}
	if err := Apply(ctx, s, r.Changes, w.Name); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Run) opens() bool {
	for _, c := range r.Changes {
		if len(c.Commands) > 0 {
			return true
		}
	}
	return false
}

// Close takes the run's rules back. It needs a context that is not yet done.
func (r *Run) Close(ctx context.Context) error {
	if !r.opens() {
		return nil
	}
	return retract(ctx, r.s, r.name)
}
