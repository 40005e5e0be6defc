package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// judge returns everything about a play that is not as expected.
func (e *Expect) judge(p *Play) (reasons []string) {
	if p.Killed {
		reasons = append(reasons, "client: did not end within the scenario's timeout and was killed")
	} else if p.Client.Code != *e.Exit {
		reasons = append(reasons, fmt.Sprintf("client: exit code %d, want %d", p.Client.Code, *e.Exit))
	}
	reasons = append(reasons, p.Missed...)
	reasons = append(reasons, e.Client.judge("client", p.Client)...)
	reasons = append(reasons, e.Server.judge("server", p.Server)...)
	reasons = append(reasons, e.judgeTruth(p)...)
	for i := range e.Goodput {
		if err := e.Goodput[i].judge(p); err != nil {
			reasons = append(reasons, fmt.Sprintf("goodput %s: %v", e.Goodput[i].Direction, err))
		}
	}
	if len(e.Diagnosis) > 0 {
		if doc, err := p.document("client"); err != nil {
			reasons = append(reasons, fmt.Sprintf("diagnosis: %v", err))
		} else {
			reasons = append(reasons, JudgeDiagnosis(e.Diagnosis, doc)...)
		}
	}
	return append(reasons, e.judgeCounts(p)...)
}

// Truth is what the path and the machine themselves say about a play, as a JSON document:
// link, what Network.Link reports; throttle, by host; traffic, in the scenario's order.
func (p *Play) Truth() (any, error) {
	b, err := json.Marshal(struct {
		Link     *LinkReport              `json:"link"`
		Throttle map[string]ThrottleStats `json:"throttle"`
		Traffic  []TrafficStats           `json:"traffic"`
	}{p.Link, p.Throttle, p.Traffic})
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	var doc any
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	return doc, nil
}

// judgeTruth returns what was not true of the path: then the scenario is no scenario of
// what it claims to be about.
func (e *Expect) judgeTruth(p *Play) (reasons []string) {
	if len(e.Truth) == 0 {
		return nil
	}
	doc, err := p.Truth()
	if err != nil {
		return []string{err.Error()}
	}
	for _, a := range e.Truth {
		if why := a.Check(doc); why != "" {
			reasons = append(reasons, "truth: "+why)
		}
	}
	return reasons
}

func (o *OutputExpect) judge(who string, r Result) (reasons []string) {
	add := func(format string, args ...any) { reasons = append(reasons, who+": "+fmt.Sprintf(format, args...)) }
	for _, s := range []struct {
		name, text  string
		want, lacks []string
	}{{"stdout", r.Stdout, o.Stdout, o.StdoutLacks}, {"stderr", r.Stderr, o.Stderr, o.StderrLacks}} {
		for _, w := range s.want {
			if !strings.Contains(s.text, w) {
				add("%s lacks %q; it is %s", s.name, w, excerpt(s.text))
			}
		}
		for _, w := range s.lacks {
			if strings.Contains(s.text, w) {
				add("%s has %q", s.name, w)
			}
		}
	}
	if len(o.JSON) == 0 {
		return reasons
	}
	doc, err := lastDocument(r.Stdout)
	if err != nil {
		add("%v; stdout is %s", err, excerpt(r.Stdout))
		return reasons
	}
	for _, a := range o.JSON {
		if why := a.Check(doc); why != "" {
			add("%s", why)
		}
	}
	return reasons
}

// lastDocument decodes the last of the JSON documents in text: a server prints one a
// test.
func lastDocument(text string) (doc any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	for {
		var next any
		switch err := d.Decode(&next); {
		case errors.Is(err, io.EOF) && doc == nil:
			return nil, errors.New("no JSON document on stdout")
		case errors.Is(err, io.EOF):
			return doc, nil
		case err != nil:
			return nil, fmt.Errorf("stdout is not JSON: %w", err)
		}
		doc = next
	}
}

// excerpt quotes the end of an output, where programs say why they failed.
func excerpt(s string) string {
	const most = 300
	if len(s) > most {
		return fmt.Sprintf("…%q", s[len(s)-most:])
	}
	return fmt.Sprintf("%q", s)
}

// judge compares the claim with the truth.
func (g *GoodputExpect) judge(p *Play) error {
	doc, err := p.document(g.Document)
	if err != nil {
		return err
	}
	var v [4]float64
	for i, path := range []Path{g.Bytes, g.Start, g.End, g.Zero} {
		if v[i], err = path.number(doc); err != nil {
			return fmt.Errorf("%s: %w", g.Document, err)
		}
	}
	claimed := v[0]
	t0, t1 := window(v[1], v[2], v[3])
	if t1 <= t0 {
		return fmt.Errorf("the window from %v to %v s is empty", v[1], v[2])
	}
	d := &p.Link.Directions[0]
	if g.Direction == directionName[1] {
		d = &p.Link.Directions[1]
	}
	left, truth := d.Between(t0, t1), d.InOrderBetween(t0, t1)
	slack := 0.0
	if g.Transport == "udp" {
		truth = d.DatagramsBetween(t0, t1)
		left = truth
	} else {
		// The packet that fills a hole releases all behind it at once. Within what a fit run
		// lets the link and the receiver be late, nobody can say on which side of the bound
		// that was read.
		late := 2 * LatenessLimit(p.Link.RTT)
		for _, t := range []time.Duration{t0, t1} {
			if released := d.InOrderBetween(t-late, t+late); released > d.Between(t-late, t+late) {
				slack += released
			}
		}
	}
	if truth == 0 {
		return fmt.Errorf("claimed %.0f bytes, but nothing left the link in that window", claimed)
	}
	if off := claimed/truth - 1; math.Abs(claimed-truth) > g.Tolerance*truth+slack {
		return fmt.Errorf("claimed %.0f bytes in %.3f s, the receiver can have read %.0f: %+.2f %%, want within %.2f %% (%.0f left the link)",
			claimed, (t1 - t0).Seconds(), truth, 100*off, 100*g.Tolerance, left)
	}
	return nil
}

// window puts bounds in seconds on CLOCK_MONOTONIC.
func window(start, end, zero float64) (t0, t1 time.Duration) {
	return time.Duration(zero + start*1e9), time.Duration(zero + end*1e9)
}
