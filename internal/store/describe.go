package store

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/fullbore-net/fullbore/internal/alike"
	"github.com/fullbore-net/fullbore/result"
)

// NewID returns an identifier that sorts by time, "" when the system has no randomness.
func NewID(at time.Time) string {
	if at.Before(time.Unix(0, 0)) {
		at = time.Unix(0, 0)
	}
	id, err := ulid.New(ulid.Timestamp(at), rand.Reader)
	if err != nil {
		return ""
	}
	return id.String()
}

// FileID is an identifier of the time and, instead of chance, of a file and the place of the test
// in it: the same file has the same one again.
func FileID(data []byte, n int, at time.Time) string {
	sum := sha256.Sum256(append(fmt.Appendf(nil, "%d\x00", n), data...))
	if at.Before(time.Unix(0, 0)) {
		at = time.Unix(0, 0)
	}
	var id ulid.ULID
	_ = id.SetTime(ulid.Timestamp(at)) // fails in the year 10889
	_ = id.SetEntropy(sum[:10])
	return id.String()
}

// Of makes the entry of a report. One that holds a single run and nothing that was concluded
// from several is kept as it is: what a command says is what is kept.
func Of(rep *result.Report) *Entry {
	e := &Entry{Report: rep}
	r := &e.Record
	r.ID, r.Started, r.Kind = rep.ID, rep.Started, rep.Kind
	r.Label, r.Note, r.Tags = rep.Label, rep.Note, slices.Clone(rep.Tags)
	r.Tool = tool(rep.Tool)
	e.describe()
	if r.Host == "" && len(rep.Inputs) > 0 {
		r.Host = rep.Inputs[0]
	}
	if rep.Summary != "" {
		r.Summary = rep.Summary
	}
	if len(rep.Verdicts) > 0 {
		r.Verdict = rep.Verdicts[0].Code
		if m := rep.Verdicts[0].Measured; m != nil {
			v := result.Value{Name: "measured", Value: *m, Unit: "bit/s"}
			r.Figures = append([]result.Value{v}, r.Figures...)
		}
	}
	r.Outcome = outcome(rep.Err, rep.Items)
	return e
}

// OfRun makes the entry of one run.
func OfRun(run *result.Run) *Entry {
	e := &Entry{Run: run}
	r := &e.Record
	r.ID, r.Started, r.Kind = run.ID, run.Started, "test"
	if run.Test.ProbeOnly {
		r.Kind = "delay"
	}
	r.Label, r.Note = run.Label, run.Note
	r.Tool = tool(run.Tool)
	e.describe()
	r.Summary, r.Outcome = run.Summary, outcome(run.Err, nil)
	if len(run.Verdicts) > 0 {
		r.Verdict = run.Verdicts[0].Code
	}
	return e
}

func tool(t result.Tool) string { return strings.TrimSpace(t.Name + " " + t.Version) }

// describe fills what follows from the runs.
func (e *Entry) describe() {
	r := &e.Record
	r.Source = "fullbore"
	if r.ID == "" {
		r.ID = NewID(r.Started)
	}
	r.Tags = SortTags(r.Tags)
	var directions []string
	var settings, facts []alike.Fact
	for _, run := range e.AllRuns() {
		if run == nil {
			continue
		}
		if run.ID != "" && run.ID != r.ID {
			r.Runs = append(r.Runs, run.ID)
		}
		t := &run.Test
		r.Host = cmp.Or(r.Host, t.Target)
		r.Protocol, r.Transport = cmp.Or(r.Protocol, run.Protocol), cmp.Or(r.Transport, t.Transport)
		r.Streams = max(r.Streams, t.Streams)
		if t.Direction != "" && !slices.Contains(directions, t.Direction) {
			directions = append(directions, t.Direction)
		}
		if run.Imported != nil {
			r.Source = run.Imported.Format
		}
		if hops := alike.HopsOf(run); r.Hops == "" && hops != nil {
			r.Hops = hops[0].Value
		}
		settings = append(settings, alike.SettingsOf(run)...)
		if facts == nil {
			facts = alike.FactsOf(run)
		}
	}
	if e.Report != nil && e.Report.Kind != "test" && e.Report.Kind != "delay" {
		// A method chooses its runs by what it finds: alike is what was asked for.
		settings = asked(e.Report)
	}
	r.Settings, r.Facts = alike.Hash(settings), alike.Hash(facts)
	r.Direction = strings.Join(directions, "+")
	r.Figures = Figures(e.AllRuns())
	if e.Report != nil && e.Report.Kind != "test" && e.Report.Kind != "delay" {
		r.Figures = best(e.Report.Runs)
	}
}

// best are the highest rates of a method's runs over TCP, which are too unlike for a median; where none
// moved a load, what the probes say.
func best(runs []*result.Run) []result.Value {
	highest := map[result.Direction]float64{}
	for _, run := range runs {
		if run == nil || run.Test.ProbeOnly || run.Test.Transport == "udp" {
			continue
		}
		for i := range run.Sums {
			if rate := rateOf(&run.Sums[i]); rate != nil {
				highest[run.Sums[i].Direction] = max(highest[run.Sums[i].Direction], *rate)
			}
		}
	}
	var out []result.Value
	for _, d := range []result.Direction{result.Up, result.Down} {
		if v, ok := highest[d]; ok {
			out = append(out, result.Value{Name: string(d), Value: v, Unit: "bit/s"})
		}
	}
	if out == nil {
		return Figures(runs)
	}
	return out
}

// asked is what a method's report was asked to do: its kind, and what of its words bears on the measurement.
func asked(rep *result.Report) []alike.Fact {
	l := []alike.Fact{{Name: "kind", Value: rep.Kind}}
	for _, w := range rep.Asked {
		l = append(l, alike.Fact{Name: "word", Value: w})
	}
	if rep.Profile != "" {
		l = append(l, alike.Fact{Name: "profile", Value: rep.Profile})
	}
	return l
}

func outcome(broke *result.Error, items []result.Item) string {
	if broke != nil {
		return cmp.Or(broke.Code, "error")
	}
	out := "done"
	for _, i := range items {
		switch {
		case i.Result == result.Fail:
			return result.Fail
		case i.Result == result.Inconclusive:
			out = result.Inconclusive
		case i.Result == result.Pass && out == "done":
			out = result.Pass
		}
	}
	return out
}

// Figures are what runs say in short: for each direction the median of the rates, of UDP also of
// the loss; of probes the median of the round trip's medians and of the loss. Up comes first.
func Figures(runs []*result.Run) []result.Value {
	values := map[string][]float64{}
	for _, run := range runs {
		if run == nil {
			continue
		}
		for i := range run.Sums {
			s := &run.Sums[i]
			if rate := rateOf(s); rate != nil && !run.Test.ProbeOnly {
				values[string(s.Direction)] = append(values[string(s.Direction)], *rate)
			}
			if s.UDP != nil && s.UDP.Loss != nil && !run.Test.ProbeOnly {
				values["loss "+string(s.Direction)] = append(values["loss "+string(s.Direction)], s.UDP.Loss.Ratio)
			}
		}
		if !run.Test.ProbeOnly {
			continue
		}
		for i := range run.Probes {
			p := &run.Probes[i]
			if p.RoundTrip != nil {
				values["round trip"] = append(values["round trip"], p.RoundTrip.P50)
			}
			if p.Sent > 0 {
				values["loss"] = append(values["loss"], 1-float64(p.Answered)/float64(p.Sent))
			}
		}
	}
	var out []result.Value
	for _, f := range []struct{ name, unit string }{
		{"up", "bit/s"}, {"down", "bit/s"}, {"round trip", "s"}, {"loss up", "ratio"}, {"loss down", "ratio"}, {"loss", "ratio"},
	} {
		if v := values[f.name]; len(v) > 0 {
			out = append(out, result.Value{Name: f.name, Value: median(v), Unit: f.unit})
		}
	}
	return out
}

// rateOf is the rate of one direction: the receiver's, else the sender's; nil when nothing moved or
// nobody knows.
func rateOf(s *result.Sum) *float64 {
	if s.Goodput != nil {
		return s.Goodput
	}
	for _, t := range []*result.Total{s.Receiver, s.Sender} {
		if t != nil && t.Seconds() > 0 {
			r := t.Rate()
			return &r
		}
	}
	return nil
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	if n%2 == 1 {
		return v[n/2]
	}
	return (v[n/2-1] + v[n/2]) / 2
}

// SortTags is tags in order, each once.
func SortTags(tags []string) []string { return slices.Compact(slices.Sorted(slices.Values(tags))) }
