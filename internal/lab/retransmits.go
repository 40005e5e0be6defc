package lab

import (
	"fmt"
	"math"
	"slices"

	"github.com/goccy/go-yaml/ast"
)

// RetransmitExpect compares a claimed number of TCP retransmissions with the segments that came to
// the link although what they carry had come before.
type RetransmitExpect struct {
	Direction string // of the data: "up" or "down"
	Document  string // whose JSON: "client" or "server"
	Claim     Path
	Tolerance float64 // of the truth, 0.02 = 2 %
	Slack     int64   // and by so many it may be off besides
	Least     int64   // the truth itself must be at least so much
	Window    Window  // of the claim
}

func readRetransmitExpect(r *reader, n ast.Node, at string) RetransmitExpect {
	e := RetransmitExpect{Document: "client"}
	slack, least := 0, 0
	fields := map[string]handler{
		"direction": r.oneOf(&e.Direction, directionName[:]...),
		"document":  r.oneOf(&e.Document, "client", "server"),
		"claim":     parsed(r, &e.Claim, ParsePath),
		"tolerance": r.percent(&e.Tolerance),
		"slack":     r.integer(&slack, 0, math.MaxInt32),
		"least":     r.integer(&least, 0, math.MaxInt32),
	}
	e.Window.fields(r, fields)
	r.Mapping(n, at, fields)
	e.Window.check(r, n, at)
	r.require(n, at, "direction", "claim")
	e.Slack, e.Least = int64(slack), int64(least)
	return e
}

func (e *RetransmitExpect) judge(p *Play) error {
	d := &p.Link.Directions[slices.Index(directionName[:], e.Direction)]
	real := d.Repeats
	if e.Window.given() {
		t0, t1, err := e.Window.of(p, e.Document)
		if err != nil {
			return err
		}
		if int64(len(d.Repeated)) < d.Repeats {
			return fmt.Errorf("the link counted %d, and knows of %d when they came", d.Repeats, len(d.Repeated))
		}
		first, _ := slices.BinarySearch(d.Repeated, t0)
		past, _ := slices.BinarySearch(d.Repeated, t1)
		real = int64(past - first)
	}
	if real < e.Least {
		return fmt.Errorf("the link counted %d, which is less than the %d that there should be", real, e.Least)
	}
	claim, err := claimed(p, e.Document, e.Claim)
	if err != nil {
		return err
	}
	if most := e.Tolerance*float64(real) + float64(e.Slack); math.Abs(claim-float64(real)) > most {
		return fmt.Errorf("claimed %.0f, the link counted %d (want within %g %% + %d)", claim, real, 100*e.Tolerance, e.Slack)
	}
	return nil
}
