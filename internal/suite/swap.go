package suite

import (
	"fmt"
	"math"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// swapTolerance is how far the same way may differ by who was the client (M-ACCEPT).
const swapTolerance = 0.03

// Swapped compares the throughput items of an acceptance with those that the other end made as the
// client: here's "up" is there's "down". The wire lets only a client open a test, so the other
// document has to be made there. It adds an item to the report.
func Swapped(here, there *result.Report) error {
	if here.Acceptance == nil || there.Acceptance == nil {
		return fmt.Errorf("it is no document of accept --json")
	}
	if a, b := here.Acceptance, there.Acceptance; a.Link != b.Link {
		return fmt.Errorf("it is about a link of %d bit/s, this one is about %d", b.Link, a.Link)
	}
	item := result.Item{ID: "swapped", Title: "roles exchanged", Result: result.Pass}
	names := []string{"the client", "the server"}
	if len(here.Runs) > 0 {
		c, s := here.Runs[0].EndNames()
		names = []string{c, s}
	}
	for i := range here.Items {
		a := &here.Items[i]
		x := throughputOf(a)
		if x == nil {
			continue
		}
		way, rest := result.Down, names[0]+" → "+names[1]
		if a.Direction == string(result.Down) {
			way, rest = result.Up, names[1]+" → "+names[0]
		}
		base := strings.TrimSuffix(a.ID, "-"+a.Direction)
		for k := range there.Items {
			b := &there.Items[k]
			y := throughputOf(b)
			if y == nil || strings.TrimSuffix(b.ID, "-"+b.Direction) != base || b.Direction != string(way) {
				continue
			}
			s := result.Swap{Way: rest, Item: base, Here: *x, There: *y, Differs: math.Abs(*x-*y) / max(*x, *y), Result: result.Pass}
			s.Reason = fmt.Sprintf("%s, %s: %s from this end, %s from the other, %s apart.", base, rest, spell("bit/s", *x), spell("bit/s", *y), shareText(s.Differs))
			if s.Differs > swapTolerance {
				slower := "when this end is the client"
				if *y < *x {
					slower = "when the other end is the client"
				}
				s.Result = result.Inconclusive
				s.Reason = strings.TrimSuffix(s.Reason, ".") + ", more than 3 %: slower " + slower + ", so it is the hosts' parts that differ, not the direction."
			}
			here.Acceptance.Swapped = append(here.Acceptance.Swapped, s)
			item.Result = worse(item.Result, s.Result)
			if s.Result != result.Pass {
				item.Reasons = append(item.Reasons, s.Reason)
			}
		}
	}
	switch {
	case len(here.Acceptance.Swapped) == 0:
		item.Result, item.Reasons = result.Inconclusive, []string{"The other end's document has no throughput of the same items."}
	case item.Result == result.Pass:
		item.Reasons = []string{fmt.Sprintf("With client and server exchanged the throughputs agree within 3 %% (%d compared).", len(here.Acceptance.Swapped))}
	}
	here.Items = append(here.Items, item)
	return nil
}

func throughputOf(i *result.Item) *float64 {
	for k := range i.Criteria {
		if i.Criteria[k].Figure == "throughput" {
			return i.Criteria[k].Value
		}
	}
	return nil
}
