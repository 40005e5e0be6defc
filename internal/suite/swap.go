package suite

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// swapTolerance is how far the same way may differ by who was the client (M-ACCEPT).
const swapTolerance = 0.03

// The steps with the roles exchanged.
const (
	swapPrefix = "swap:"          // their names begin with it; no item's id does
	swapTime   = 10 * time.Second // the longest of them
	swapRounds = 3                // of a way whose first round did not agree
)

// Exchange says how the roles are exchanged at the end of an acceptance.
type Exchange struct {
	Port int // of this host, where the other end is to connect; 0 = any free one
}

// swapItem is the item that is measured with the roles exchanged, the link's throughput: of several
// streams, else of one. nil = the suite has neither.
func (m Method) swapItem() *Item {
	if it := m.Suite.find(TCPMulti); it != nil {
		return it
	}
	return m.Suite.find(TCPSingle)
}

// swapStep is a round of a way (d, as seen from this end) with the other end as the client.
func (m Method) swapStep(it Item, d result.Direction, round int) method.Step {
	it.Time, it.Rounds = min(it.Time, swapTime), 1
	p := m.load(it, plan.Direction(other(d))) // what goes up there comes down here
	p.Swap = &plan.Swap{Port: m.Exchange.Port}
	s := m.named(it, d, round, "do the hosts carry as much with client and server exchanged?", p)
	s.Name = fmt.Sprintf("%s%s-%d", swapPrefix, stepName(it, d), round)
	s.Title = fmt.Sprintf("%s %s, roles exchanged", it.ID, d)
	if round > 1 {
		s.Title += fmt.Sprintf(", %d of %d", round, swapRounds)
	}
	s.Volume = m.volume(it)
	return s
}

// swapSteps are those that are made in any case where the other end plays along.
func (m Method) swapSteps() (out []method.Step) {
	it := m.swapItem()
	if m.Exchange == nil || it == nil || m.Suite.Quick {
		return nil
	}
	for _, d := range it.Directions {
		out = append(out, m.swapStep(*it, d, 1))
	}
	return out
}

// nextSwap is the next of them: one round each way, and two more of a way that does not agree, so
// that one bad moment is not held against a host. The first that cannot be made is the last.
func (m Method) nextSwap(all []method.Done) (method.Step, bool) {
	it := m.swapItem()
	if len(m.swapSteps()) == 0 || !extended(all) {
		return method.Step{}, false
	}
	for round := 1; round <= swapRounds; round++ {
		for _, d := range it.Directions {
			s := m.swapStep(*it, d, round)
			if i := slices.IndexFunc(all, func(x method.Done) bool { return x.Step.Name == s.Name }); i >= 0 {
				if all[i].Err != nil {
					return method.Step{}, false
				}
				continue
			}
			x := sidesOf(all, *it, d)
			if round > 1 && len(x.there) == 1 && x.same() {
				continue
			}
			return s, true
		}
	}
	return method.Step{}, false
}

// extended reports that the other end is a fullbore.
func extended(all []method.Done) bool {
	return slices.ContainsFunc(all, func(d method.Done) bool {
		return d.Step.Name != SelfStep && d.Run != nil && d.Run.Wire != nil && d.Run.Wire.Extension
	})
}

// Beside reports that no item depends on a step of this name: the self-check, and those with the roles
// exchanged.
func Beside(name string) bool { return name == SelfStep || strings.HasPrefix(name, swapPrefix) }

// usual leaves out the steps with the roles exchanged: the client of their runs is the other end.
func usual(history []method.Done) (out []method.Done) {
	for _, d := range history {
		if !strings.HasPrefix(d.Step.Name, swapPrefix) {
			out = append(out, d)
		}
	}
	return out
}

// sides are the rates of a way with either end as the client, bit/s, by rounds.
type sides struct{ here, there []float64 }

func sidesOf(all []method.Done, it Item, d result.Direction) sides {
	rates := func(prefix string, d result.Direction) (out []float64) {
		for i := range all {
			x := &all[i]
			round, ok := strings.CutPrefix(x.Step.Name, prefix)
			if _, err := strconv.Atoi(round); !ok || err != nil || x.Err != nil || x.Run == nil {
				continue
			}
			if r := throughput(x.Run, d); r.known {
				out = append(out, r.value)
			}
		}
		return out
	}
	return sides{rates(stepName(it, d)+"-", d), rates(swapPrefix+stepName(it, d)+"-", other(d))}
}

// medians are the two rates; false = one is not known.
func (x sides) medians() (here, there float64, known bool) {
	here, ok1 := quantile(x.here, 0.5)
	there, ok2 := quantile(x.there, 0.5)
	return here, there, ok1 && ok2 && max(here, there) > 0
}

// same: within the tolerance, or within what the rounds of this end differ among themselves.
func (x sides) same() bool {
	here, there, known := x.medians()
	return known && (apart(here, there) <= swapTolerance || there >= slices.Min(x.here) && there <= slices.Max(x.here))
}

func apart(a, b float64) float64 { return math.Abs(a-b) / max(a, b) }

// swapRow compares a way of an item. clients are the names of this end and of the other; blame
// names who was the limit in the slower runs, a clause with the host's name; "" = not known.
func swapRow(x sides, item, way string, clients [2]string, blame func(slowThere bool) (why, host string)) (result.Swap, bool) {
	here, there, known := x.medians()
	if !known {
		return result.Swap{}, false
	}
	s := result.Swap{Way: way, Item: item, Here: here, There: there, Differs: apart(here, there), Result: result.Pass}
	s.Reason = fmt.Sprintf("%s, %s: %s with %s as the client, %s with %s, %s apart", item, way, spell("bit/s", here), clients[0], spell("bit/s", there), clients[1], shareText(s.Differs))
	switch {
	case s.Differs <= swapTolerance:
		s.Reason += "."
	case x.same():
		s.Reason += fmt.Sprintf(", no more than the %d rounds with %s differ among themselves.", len(x.here), clients[0])
	default:
		s.Result = result.Inconclusive
		slower := clients[0]
		if there < here {
			slower = clients[1]
		}
		s.Reason += fmt.Sprintf(", more than %s: slower with %s as the client", percent(swapTolerance), slower)
		if why, host := blame(there < here); host != "" {
			s.Reason += ", when " + why
			slower = host
		}
		s.Reason += fmt.Sprintf(". So it is %s that differs, not the direction.", slower)
	}
	return s, true
}

// setSwapped puts the comparison into a report: rows, and the item that follows from them.
func setSwapped(rep *result.Report, rows []result.Swap) {
	item := result.Item{ID: "swapped", Title: "roles exchanged", Result: result.Pass}
	words := ""
	for _, s := range rows {
		item.Result = worse(item.Result, s.Result)
		item.Checks = append(item.Checks, result.Check{Check: "roles-exchanged", Result: s.Result, Text: s.Reason})
		if s.Differs > swapTolerance {
			words = ", or within what the rounds differ among themselves"
		}
		if s.Result != result.Pass {
			item.Reasons = append(item.Reasons, s.Reason)
		}
	}
	switch {
	case len(rows) == 0:
		item.Result, item.Reasons = result.Inconclusive, []string{"The other end's document has no throughput of the same items."}
	case item.Result == result.Pass:
		item.Reasons = []string{fmt.Sprintf("With client and server exchanged the throughputs agree within %s%s (%d compared).", percent(swapTolerance), words, len(rows))}
	}
	rep.Acceptance.Swapped = rows
	rep.Items = append(without(rep.Items, item.ID), item)
}

// swapped compares what was measured with the roles exchanged. What could not be is said, and held
// against nobody.
func (j *Judge) swapped(rep *result.Report, history []method.Done) {
	it := j.Method.swapItem()
	why, tried := "", false
	for i := range history {
		if d := &history[i]; strings.HasPrefix(d.Step.Name, swapPrefix) {
			tried = true
			if d.Err != nil && why == "" {
				why = strings.TrimSuffix(d.Err.Text, ".")
			}
		}
	}
	if it == nil || !tried {
		return
	}
	clients := [2]string{j.endName(result.Client), j.endName(result.Server)}
	var rows []result.Swap
	for _, d := range it.Directions {
		way := j.endName(d.Sender()) + " → " + j.endName(d.Receiver())
		s, ok := swapRow(sidesOf(history, *it, d), it.ID, way, clients, func(slowThere bool) (string, string) {
			prefix := stepName(*it, d) + "-"
			if slowThere {
				prefix = swapPrefix + prefix
			}
			return j.limiting(history, prefix, d)
		})
		switch {
		case ok:
			rows = append(rows, s)
		case why == "":
			why = "what arrived is not told"
		}
	}
	if why != "" {
		rep.Unseen = append(rep.Unseen, "Roles not swapped: "+why+".")
	}
	if len(rows) == 0 {
		return
	}
	setSwapped(rep, rows)
	if item := &rep.Items[len(rep.Items)-1]; item.Result == result.Pass {
		rep.Acceptance.Findings = append(rep.Acceptance.Findings, item.Reasons...)
	}
}

// limiting is the host whose processor was the limit in the runs of a way (d, as seen from this
// end, whoever was the client), as a clause; "" = none was.
func (j *Judge) limiting(history []method.Done, prefix string, d result.Direction) (why, host string) {
	for i := range history {
		x := &history[i]
		if !strings.HasPrefix(x.Step.Name, prefix) || x.Run == nil {
			continue
		}
		for _, f := range x.Run.Flags {
			switch f {
			case conclude.FlagSenderCPU:
				host = j.endName(d.Sender())
			case conclude.FlagReceiverCPU:
				host = j.endName(d.Receiver())
			default:
				continue
			}
			return "the processor of " + host + " was the limit", host
		}
	}
	return "", ""
}

// Swapped compares the throughput items of an acceptance with those that the other end made as the
// client: here's "up" is there's "down". It adds an item to the report, in the place of an earlier one.
func Swapped(here, there *result.Report) error {
	if here.Acceptance == nil || there.Acceptance == nil {
		return errors.New("it is no document of accept --json")
	}
	if a, b := here.Acceptance, there.Acceptance; a.Link != b.Link {
		return fmt.Errorf("it is about a link of %d bit/s, this one is about %d", b.Link, a.Link)
	}
	names := [2]string{"this end", "the other end"}
	if len(here.Runs) > 0 {
		names[0], names[1] = here.Runs[0].EndNames()
	}
	var rows []result.Swap
	for i := range here.Items {
		a := &here.Items[i]
		x := throughputOf(a)
		if len(x) == 0 {
			continue
		}
		way, words := result.Down, names[0]+" → "+names[1]
		if a.Direction == string(result.Down) {
			way, words = result.Up, names[1]+" → "+names[0]
		}
		base := strings.TrimSuffix(a.ID, "-"+a.Direction)
		for k := range there.Items {
			b := &there.Items[k]
			y := throughputOf(b)
			if strings.TrimSuffix(b.ID, "-"+b.Direction) != base || b.Direction != string(way) {
				continue
			}
			s, ok := swapRow(sides{x, y}, base, words, names, func(bool) (string, string) { return "", "" })
			if ok {
				rows = append(rows, s)
			}
		}
	}
	setSwapped(here, rows)
	return nil
}

// throughputOf are the rates of an item's rounds, bit/s; none where they are not known.
func throughputOf(i *result.Item) []float64 {
	for k := range i.Criteria {
		c := &i.Criteria[k]
		switch {
		case c.Figure != "throughput":
		case len(c.Rounds) > 0:
			return c.Rounds
		case c.Value != nil:
			return []float64{*c.Value}
		}
	}
	return nil
}
