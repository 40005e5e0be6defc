package cli

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/connrate"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/iperf3"
	"github.com/fullbore-net/fullbore/result"
)

func TestStepTo(t *testing.T) {
	for want, s := range map[string]*result.Step{
		"fullbore load 192.0.2.2":                    stepTo("192.0.2.2", plan.DefaultPort, &peerFlags{}, "why", "load", "HOST"),
		"fullbore load 192.0.2.2 -p 99 -4 --up":      stepTo("192.0.2.2", 99, &peerFlags{ipv4: true}, "why", "load", "HOST", "--up"),
		"fullbore y1564 s.yaml h -6":                 stepTo("h", 0, &peerFlags{ipv6: true}, "why", "y1564", "s.yaml", "HOST"),
		"fullbore connrate self --exchange":          stepTo("self", 40000, &peerFlags{ipv4: true}, "why", "connrate", "HOST", "--exchange"),
		"fullbore doctor":                            fitness(result.Client, "h"),
		"fullbore model h --rate 2500K --rtt 0.05s":  stepTo("h", 0, &peerFlags{}, "why", "model", "HOST", "--rate", "2500K", "--rtt", secondsWord(50e6)),
		"fullbore udpmax h --max-time 1200s --quiet": stepTo("h", 0, &peerFlags{}, "why", "udpmax", "HOST", "--max-time", secondsWord(1200e9), "--quiet"),
	} {
		if s.Command != want || s.Why == "" {
			t.Errorf("%+v, want %q", s, want)
		}
	}
	if s := fitness(result.Server, "192.0.2.2"); !strings.HasPrefix(s.Why, "at 192.0.2.2: ") {
		t.Errorf("%+v", s)
	}
}

// A threshold that is missed by what a host did, or that lies between the bounds, is not missed; one that any
// finding misses without an excuse is.
func TestExcuse(t *testing.T) {
	finding := func(lower, upper float64, flags ...string) result.Finding {
		f := result.Finding{Values: []result.Value{{Name: "lower", Value: lower}}, Flags: flags}
		if upper > 0 {
			f.Values = append(f.Values, result.Value{Name: "upper", Value: upper})
		}
		return f
	}
	atLeast := threshold{figure: "rate", op: ">=", bound: 100}
	for name, c := range map[string]struct {
		found []result.Finding
		want  string
	}{
		"met":                  {[]result.Finding{finding(120, 0)}, ""},
		"missed":               {[]result.Finding{finding(50, 60)}, ""},
		"between the bounds":   {[]result.Finding{finding(99, 101)}, "it lies between"},
		"a host":               {[]result.Finding{finding(50, 60, "host_limited")}, "an end, not the path"},
		"no time":              {[]result.Finding{finding(50, 60, "irregular")}, "the search ended"},
		"the most":             {[]result.Finding{finding(50, 0, "at_max_load")}, "more was not to be tried"},
		"one way is the path":  {[]result.Finding{finding(50, 60, "host_limited"), finding(50, 60)}, ""},
		"one way met, one not": {[]result.Finding{finding(120, 130), finding(50, 60, "host_limited")}, "an end"},
		"nothing is known":     {[]result.Finding{{Name: "x"}}, ""},
	} {
		got := excuse(udpmaxFigures())(&result.Report{Findings: c.found}, atLeast)
		if (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// What connrate says to do next fits what it found.
func TestConnRateNext(t *testing.T) {
	reached := 100.0
	steps := []result.ConnRateStep{{Asked: 100}}
	for name, c := range map[string]struct {
		o    connrateOptions
		a    result.ConnRate
		want string
	}{
		"nothing":            {connrateOptions{}, result.ConnRate{}, ""},
		"this host is busy":  {connrateOptions{}, result.ConnRate{Steps: steps, Reached: &reached, Limit: method.ConnCPU, Where: result.Client}, "fullbore doctor"},
		"ports":              {connrateOptions{}, result.ConnRate{Steps: steps, Reached: &reached, Limit: connrate.LocalPorts, Where: result.Client}, "fullbore connrate h --abort"},
		"refused":            {connrateOptions{}, result.ConnRate{Steps: steps, Limit: connrate.Refused}, "fullbore diagnose h --quick"},
		"only the kernel":    {connrateOptions{most: 100}, result.ConnRate{Steps: steps, Reached: &reached}, "fullbore connrate h --exchange"},
		"more was not tried": {connrateOptions{most: 100, exchange: true}, result.ConnRate{Steps: steps, Reached: &reached}, "fullbore connrate h --most 1000"},
		"no answer":          {connrateOptions{}, result.ConnRate{Steps: steps, Reached: &reached, Limit: connrate.NoAnswer}, "fullbore doctor"},
	} {
		got := ""
		if s := c.o.next("h", &c.a); s != nil {
			got = s.Command
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if !ownLimit(&result.ConnRate{Limit: method.ConnCPU, Where: result.Client}) || ownLimit(&result.ConnRate{Limit: "refused", Where: result.Server}) || ownLimit(&result.ConnRate{}) {
		t.Error("whose limit it is")
	}
}

// A SYN that was sent again is told from the lowest rate at which one was, where nothing failed.
func TestConnRetries(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	slow := &result.Quantiles{N: 10, Max: 1.02}
	steps := []result.ConnRateStep{
		{Asked: 100, SYNAgain: n(0), Connect: &result.Quantiles{Max: 0.001}},
		{Asked: 800, SYNAgain: n(30), Connect: slow},
		{Asked: 400, SYNAgain: n(7), Connect: slow},
		{Asked: 200, SYNAgain: n(3), Connect: slow, Failed: []result.ConnFault{{Code: "no-answer", Count: 1}}},
		{Asked: 300, Connect: slow},
	}
	got := connRetries(&result.ConnRate{Steps: steps})
	if len(got) != 1 || !strings.HasPrefix(got[0].Text, "at 400 a second 7 SYNs") || !strings.Contains(got[0].Text, "1.02 s") {
		t.Errorf("%+v", got)
	}
	if got := connRetries(&result.ConnRate{Steps: steps[:1]}); got != nil {
		t.Errorf("%+v", got)
	}
}

// A server of our own says nothing of its visitors, who are the command that started it, but why it takes no more.
func TestOwnServerIsQuiet(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(ownHandler{boardHandler{slog.NewTextHandler(&b, nil)}})
	log.Warn("visitor", "from", "127.0.0.1", "what", "left without a greeting")
	log.Info("test", "id", 1)
	if b.Len() > 0 {
		t.Errorf("it says %s", b.String())
	}
	log.Warn("visitor", "what", iperf3.OutOfDescriptors)
	log.Error("write", "err", "full")
	if n := strings.Count(b.String(), "\n"); n != 2 {
		t.Errorf("of two faults it says %s", b.String())
	}
}
