package suite

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// The longest test that a server takes (--max-time). It tells it when it is first met; what would be
// longer is asked for as long as it may be, and the judge says that it was not as long as agreed.

const (
	briefIdle   = time.Second            // of a second look at the empty path, where the first was too long
	lengthSlack = 50 * time.Millisecond  // a stored length is no exact number
	tinyTest    = time.Second            // of a step that has no length of its own, but a number of bytes
	tinyRate    = 10 * 8 * 128           // bit/s of it: ten blocks
	leastTime   = 500 * time.Millisecond // of a test that shall show anything
)

// allowed is the longest test that the other end takes; 0 = it told of no bound, or was not met yet.
func allowed(all []method.Done) time.Duration {
	for i := len(all) - 1; i >= 0; i-- { // gone on with after a break, it may allow more than before
		d := &all[i]
		if d.Step.Name != idleStep || d.Run == nil || d.Err != nil {
			continue
		}
		if l := d.Run.Test.ServerLimit; l != nil && l.MaxDuration > 0 {
			return seconds(l.MaxDuration)
		}
		return 0
	}
	return 0
}

// within holds a step to the longest test that the other end takes.
func (m Method) within(s method.Step, all []method.Done) method.Step {
	most := allowed(all)
	p := &s.Plan
	switch {
	case most <= 0:
	case p.Duration == 0: // it would be refused for having no end in time
		p.Bytes, p.Blocks = 0, 0
		p.Duration, p.Bitrate, p.RateSet = min(tinyTest, most), tinyRate, true
	case p.Omit+p.Duration > most:
		whole := p.Omit + p.Duration
		if p.Omit > most-leastTime {
			p.Omit = 0
		}
		p.Duration = most - p.Omit
		s.Volume = int64(float64(s.Volume) * float64(most) / float64(whole))
	}
	return s
}

// madeWhole reports that a step was made, and not shorter than it would be made now.
func madeWhole(all []method.Done, s *method.Step) bool {
	return slices.ContainsFunc(all, func(d method.Done) bool {
		was := d.Step.Plan.Duration
		return d.Step.Name == s.Name && (was == 0 || d.Run == nil || d.Err != nil || was >= s.Plan.Duration-lengthSlack)
	})
}

// metBefore reports that the empty path was looked at. A look that was refused for its length alone is made
// once more, shorter.
func metBefore(all []method.Done) bool {
	n := 0
	for i := range all {
		if d := &all[i]; d.Step.Name == idleStep {
			if !tooLongRefused(d) {
				return true
			}
			n++
		}
	}
	return n > 1
}

func tooLongRefused(d *method.Done) bool {
	return d.Err != nil && d.Err.Code == "limit" && Refused(d) && d.Step.Plan.Duration > briefIdle
}

// idleAgain is the look at the empty path, as short as can be where the first was refused for its length.
func (m Method) idleAgain(it Item, all []method.Done) method.Step {
	s := m.idle(it)
	if slices.ContainsFunc(all, func(d method.Done) bool { return d.Step.Name == idleStep && tooLongRefused(&d) }) {
		s.Volume = int64(float64(s.Volume) * briefIdle.Seconds() / max(s.Plan.Duration.Seconds(), 1))
		s.Plan.Duration = briefIdle
	}
	return s
}

// needs is the longest test that an item makes.
func (it *Item) needs() time.Duration {
	switch it.Kind {
	case UDPFull, UDPSmall:
		return it.Time
	case TCPSingle, TCPMulti, TCPBoth, Latency:
		return it.Omit + it.Time
	}
	return 0 // as long as the other end likes
}

// Cramped are the items whose tests are longer than the other end takes, as it told in a history; most is
// what it takes, needs what the longest of them would be.
func (m Method) Cramped(history []method.Done) (ids []string, most, needs time.Duration) {
	most = allowed(slices.Concat(m.Earlier, history))
	if most <= 0 {
		return nil, 0, 0
	}
	for i := range m.Suite.Items {
		it := &m.Suite.Items[i]
		if n := it.needs(); n > most {
			ids, needs = append(ids, it.ID), max(needs, n)
		}
	}
	return ids, most, needs
}

// shorter says that an item's runs are not as long as agreed; "" = they are.
func (j *Judge) shorter(it Item, names []string) string {
	most := allowed(j.history)
	if most <= 0 || it.needs() <= most {
		return ""
	}
	for i := range j.history {
		d := &j.history[i]
		if p := d.Step.Plan; slices.Contains(names, d.Step.Name) && p.Duration > 0 && p.Duration < it.Time-lengthSlack {
			return fmt.Sprintf("%s takes tests of %s at most (--max-time there), so this one was %s long, not the %s that were agreed",
				j.endName(result.Server), units.FormatDuration(most), units.FormatDuration(p.Duration), units.FormatDuration(it.Time))
		}
	}
	return ""
}

// lengths is whether the other end takes tests as long as the items are.
func (j *Judge) lengths() (out []result.Check) {
	m := j.Method
	m.Earlier = nil // the history has it
	ids, most, needs := m.Cramped(j.history)
	if most <= 0 {
		return nil
	}
	c := result.Check{Check: "longest-test", End: result.Server, Result: result.Pass}
	c.Text = fmt.Sprintf("%s takes tests of %s at most, longer than any of these.", j.endName(result.Server), units.FormatDuration(most))
	if len(ids) > 0 {
		c.Result = result.Inconclusive
		c.Text = fmt.Sprintf("%s takes tests of %s at most (--max-time there), and %s would be up to %s long: they are shorter than agreed. Let it take %s, or agree on shorter ones (time: in a suite file).",
			j.endName(result.Server), units.FormatDuration(most), strings.Join(ids, ", "), units.FormatDuration(needs), units.FormatDuration(needs))
	}
	return []result.Check{c}
}
