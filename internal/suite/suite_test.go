package suite_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/suite"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

func theMethod(s suite.Suite) suite.Method {
	return suite.Method{Suite: s, Path: suite.Path{Family: 4, MTU: 1500}}
}

// The limits of M-ACCEPT, class by class.
func TestDefaultLimits(t *testing.T) {
	for class, want := range map[suite.Class][]string{
		suite.LAN: {
			"throughput ≥ 90 % of ideal", "throughput ≥ 95 % of ideal", "efficiency ≥ 99.90 %", "throughput ≥ 85 % of A2",
			"loss ≤ 1e-5", "duplicates ≤ 0", "reordering ≤ 0.0001",
			"delay variation (p99) ≤ 200 µs", "loss ≤ 1e-5", "loss of small packets beside the load ≤ 1e-5", "rise of the delay (p95) ≤ 5.00 ms", "loss-free rate: reported",
		},
		suite.Metro: {
			"throughput ≥ 90 % of ideal", "throughput ≥ 95 % of ideal", "efficiency ≥ 99.00 %", "throughput ≥ 85 % of A2",
			"loss ≤ 0.0001", "duplicates ≤ 0", "reordering ≤ 0.0001",
			"delay variation (p99) ≤ 2.00 ms", "loss ≤ 0.0001", "loss of small packets beside the load ≤ 0.0001", "rise of the delay (p95) ≤ 20.0 ms", "loss-free rate: reported",
		},
		suite.WAN: {
			"throughput ≥ 90 % of ideal", "throughput ≥ 95 % of ideal", "efficiency ≥ 99.00 %", "throughput ≥ 85 % of A2",
			"loss ≤ 0.1 %", "duplicates ≤ 0", "reordering ≤ 0.0001",
			"delay variation (p99) ≤ 10.0 ms", "loss ≤ 0.1 %", "loss of small packets beside the load ≤ 0.1 %", "rise of the delay (p95) ≤ 100 ms", "loss-free rate: reported",
		},
	} {
		var got []string
		for _, it := range suite.Default(class, units.GbitPerSec).Items {
			for _, d := range it.Demands {
				got = append(got, d.Text())
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", class, diff)
		}
	}
}

// What is sent: golden values of RFC 6349 and of the layers.
func TestPlans(t *testing.T) {
	m := theMethod(suite.Default(suite.Metro, units.GbitPerSec))
	if got := m.Ideal() / 1e6; got < 941.47 || got > 941.49 {
		t.Errorf("ideal %v Mbit/s, want 941.48", got)
	}
	byName := map[string]method.Step{}
	for _, s := range m.Steps() {
		if _, twice := byName[s.Name]; twice {
			t.Errorf("%s comes twice", s.Name)
		}
		byName[s.Name] = s
		p := s.Plan
		p.Host = "h"
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	if n := len(byName); n != 1+6+6+3+2+2+2 {
		t.Errorf("%d steps", n)
	}
	full := byName["A4-up-1"].Plan
	// 95 % of 1 Gbit/s on layer 1, of which 1472 of 1538 bytes are payload.
	if full.BlockSize != 1472 || full.Bitrate != 909232769 || full.Transport != plan.UDP || full.Duration != time.Minute {
		t.Errorf("full load: %d bytes at %d bit/s for %v", full.BlockSize, full.Bitrate, full.Duration)
	}
	small := byName["A5-down-1"].Plan
	if small.BlockSize != 64 || small.Bitrate != 512000 || small.Direction != plan.Down {
		t.Errorf("small packets: %+v", small)
	}
	if p := byName["A6-up-1"].Plan.Probe; p == nil || p.Spacing != time.Millisecond || p.Idle {
		t.Errorf("latency's probes: %+v", p)
	}
	if a3 := byName["A3-2"].Plan; a3.Direction != plan.Both || a3.Streams != 8 {
		t.Errorf("both ways: %+v", a3)
	}
	quick := theMethod(suite.Default(suite.Metro, units.GbitPerSec).Shortened())
	if l, most := quick.Length(); l > 75*time.Second || most != l {
		t.Errorf("a trial takes %v to %v", l, most)
	}
}

// The order within a round follows from the seed alone, and every round has every item once.
func TestOrder(t *testing.T) {
	names := func(seed int64) (out []string) {
		s := suite.Default(suite.LAN, units.GbitPerSec)
		s.Seed = seed
		for _, st := range theMethod(s).Steps() {
			out = append(out, st.Name)
		}
		return out
	}
	if diff := cmp.Diff(names(1), names(1)); diff != "" {
		t.Error(diff)
	}
	if slices.Equal(names(1), names(2)) {
		t.Error("another seed, the same order")
	}
	for r, want := 0, []string{"A1-down", "A1-up", "A2-down", "A2-up", "A3"}; r < 3; r++ {
		var got []string
		for _, n := range names(1)[1+5*r : 6+5*r] {
			base, round, _ := strings.Cut(n[strings.LastIndex(n, "-"):], "-")
			if round != string(rune('1'+r)) {
				t.Errorf("round %d has %s", r+1, n)
			}
			_ = base
			got = append(got, n[:strings.LastIndex(n, "-")])
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("round %d: %s", r+1, diff)
		}
	}
}

func TestOnlyAndOverride(t *testing.T) {
	s := suite.Default(suite.Metro, units.GbitPerSec)
	s.Override(4, 1<<20, "cubic")
	s.SetRounds(5, false)
	if a1, a2 := s.Item("A1"), s.Item("A2"); a1.Streams != 1 || a2.Streams != 4 || a1.Window != 1<<20 || a2.Congestion != "cubic" || a2.Rounds != 5 {
		t.Errorf("%+v %+v", a1, a2)
	}
	few, err := s.Only([]string{"A4"})
	if err != nil || len(few.Items) != 2 || few.Items[0].Kind != suite.Precheck || few.Items[1].ID != "A4" {
		t.Errorf("only A4: %+v, %v", few.Items, err)
	}
	if _, err := s.Only([]string{"A9"}); err == nil || !strings.Contains(err.Error(), "A0, A1") {
		t.Errorf("an item that there is not: %v", err)
	}
}

// Two acceptances are gone on with only when everything that is measured and demanded is the same.
func TestHash(t *testing.T) {
	base := theMethod(suite.Default(suite.Metro, units.GbitPerSec))
	h := base.Hash("a", 5201)
	for what, m := range map[string]suite.Method{
		"link":  theMethod(suite.Default(suite.Metro, 2*units.GbitPerSec)),
		"class": theMethod(suite.Default(suite.LAN, units.GbitPerSec)),
		"quick": theMethod(suite.Default(suite.Metro, units.GbitPerSec).Shortened()),
		"mtu":   {Suite: base.Suite, Path: suite.Path{Family: 4, MTU: 9000}},
	} {
		if m.Hash("a", 5201) == h {
			t.Errorf("another %s, the same hash", what)
		}
	}
	if base.Hash("b", 5201) == h || base.Hash("a", 1) == h || len(h) != 64 {
		t.Errorf("host or port do not count in %s", h)
	}
	if base.Hash("a", 5201) != h {
		t.Error("the same settings, another hash")
	}
}

// What was made before a break is not made again; what broke off is.
func TestResume(t *testing.T) {
	s := suite.Default(suite.Metro, units.GbitPerSec)
	s.Override(8, 0, "") // no knee is looked for
	m := theMethod(s)
	all := m.Steps()
	var earlier []method.Done
	for _, st := range all[:4] {
		earlier = append(earlier, method.Done{Step: st, Run: &result.Run{}})
	}
	earlier[3].Run.Err = &result.Error{Code: "peer-closed"}
	earlier[3].Err = earlier[3].Run.Err
	m.Earlier = suite.Kept(earlier)
	if len(m.Earlier) != 3 {
		t.Fatalf("%d are kept, want 3", len(m.Earlier))
	}
	next, more := m.Next(nil)
	if !more || next.Name != all[3].Name {
		t.Errorf("goes on with %q, want %q", next.Name, all[3].Name)
	}
}

// A step that a budget cut short is made again, one that is short by nature is not.
func TestCutShort(t *testing.T) {
	total := func(s float64) []result.Sum {
		return []result.Sum{{Direction: result.Up, Sender: &result.Total{End: s, Bytes: 1}}}
	}
	ten := method.Step{Name: "A1-up-1", Plan: plan.Plan{Duration: 10 * time.Second}}
	kept := suite.Kept([]method.Done{
		{Step: ten, Run: &result.Run{Sums: total(4)}},
		{Step: ten, Run: &result.Run{Sums: total(10)}},
		{Step: method.Step{Name: "A0-mtu-syn"}, Run: &result.Run{Sums: total(0.01)}},
		{Step: method.Step{Name: "A0-mtu-probe", Plan: plan.Plan{Duration: time.Minute}}, Run: &result.Run{Sums: total(2), Test: result.Test{ProbeOnly: true}}},
	})
	if len(kept) != 3 || kept[0].Run.Sums[0].Sender.End != 10 {
		t.Errorf("kept: %+v", kept)
	}
}

// Where nobody answers nothing more is tried; where a server went away neither.
func TestHopeless(t *testing.T) {
	m := theMethod(suite.Default(suite.Metro, units.GbitPerSec))
	lost := func(s method.Step) method.Done {
		return method.Done{Step: s, Err: &result.Error{Code: "connect", Text: "nobody there"}}
	}
	first, _ := m.Next(nil)
	if _, more := m.Next([]method.Done{lost(first)}); more {
		t.Error("nobody there, and on it goes")
	}
	ok := method.Done{Step: first, Run: &result.Run{Probes: []result.Probes{{}}}}
	second, _ := m.Next([]method.Done{ok})
	third, more := m.Next([]method.Done{ok, lost(second)})
	if !more {
		t.Fatal("one step that failed ends all")
	}
	if _, more := m.Next([]method.Done{ok, lost(second), lost(third)}); more {
		t.Error("two in a row, and on it goes")
	}
}
