package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/lab/forward"
	"github.com/fullbore-net/fullbore/internal/lab/truth"
)

// TestReplays: void plays are repeated, the first fit one counts, and a machine that is
// never fit gives no verdict about the product.
func TestReplays(t *testing.T) {
	zero, one := 0, 1
	void, fit := Play{Void: []string{"late"}}, Play{}
	broken := errors.New("broken")
	tests := []struct {
		name  string
		exit  *int
		plays []Play
		err   error
		want  Verdict
		used  int
	}{
		{"right at once", &zero, []Play{fit}, nil, Right, 1},
		{"wrong at once: a fit run is not repeated until it pleases", &one, []Play{fit, fit}, nil, Wrong, 1},
		{"right after two voids", &zero, []Play{void, void, fit}, nil, Right, 3},
		{"right at the last", &zero, []Play{void, void, void, void, void, fit}, nil, Right, 6},
		{"never fit", &zero, []Play{void, void, void, void, void, void, fit}, nil, Unfit, 6},
		{"never fit is not wrong", &one, []Play{void, void, void, void, void, void}, nil, Unfit, 6},
		{"cannot be played", &zero, []Play{void}, broken, "", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &Scenario{Expect: Expect{Exit: tt.exit}}
			logged, next := 0, 0
			got, err := s.decide(RunOptions{Log: func(Play) { logged++ }}, func() (Play, error) {
				if next == len(tt.plays) {
					return Play{}, broken
				}
				next++
				return tt.plays[next-1], nil
			})
			if !errors.Is(err, tt.err) || got.Verdict != tt.want || len(got.Plays) != tt.used || logged != tt.used {
				t.Errorf("verdict %q after %d plays, %d logged, error %v; want %q after %d, %v",
					got.Verdict, len(got.Plays), logged, err, tt.want, tt.used, tt.err)
			}
			if got.Right() != (tt.want == Right) || got.Unfit() != (tt.want == Unfit) || (len(got.Reasons) > 0) != (tt.want == Wrong) {
				t.Errorf("outcome %+v does not fit its verdict", got)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	// 1000 bytes left the link in each of the milliseconds 100 to 199.
	flow := truth.Flow{Src: netip.AddrPortFrom(netip.IPv4Unspecified(), 1)}
	for i := range int64(100) {
		flow.Series.Millis = append(flow.Series.Millis, 100+i)
		flow.Series.Bytes = append(flow.Series.Bytes, 1000*(i+1))
		// From millisecond 165 on one byte is missing: what follows cannot be read.
		flow.Series.InOrder = append(flow.Series.InOrder, min(1000*(i+1), 65_000))
	}
	link := &LinkReport{}
	link.Directions[0] = forward.Direction{Flows: []truth.Flow{flow}}
	play := &Play{
		Link:   link,
		Client: Result{Code: 0, Stdout: `{"a": 1}` + "\n" + `{"bytes": 45200, "start": 0.02, "end": 0.07, "zero": 100e6, "x": "y"}`, Stderr: "warn\n"},
		Server: Result{Stdout: "not json"},
	}
	zero, three := 0, 3
	goodput := func(direction, document string, tolerance float64, bytes, start string) GoodputExpect {
		return GoodputExpect{
			Direction: direction, Document: document, Tolerance: tolerance,
			Bytes: mustPath(t, bytes), Start: mustPath(t, start), End: mustPath(t, "end"), Zero: mustPath(t, "zero"),
		}
	}
	tests := []struct {
		name   string
		expect Expect
		play   *Play
		want   []string
	}{
		{"all right", Expect{
			Exit: &zero,
			Client: OutputExpect{
				JSON: []*Assertion{mustAssertion(t, "bytes == 45200"), mustAssertion(t, "a missing")}, Stdout: []string{`"a"`},
				Stderr: []string{"warn"}, StdoutLacks: []string{"warn"}, StderrLacks: []string{"error"},
			},
			Server:  OutputExpect{Stdout: []string{"not"}},
			Goodput: []GoodputExpect{goodput("up", "client", 0.005, "bytes", "start")},
		}, play, nil},
		{"all wrong", Expect{
			Exit: &three,
			Client: OutputExpect{
				JSON: []*Assertion{mustAssertion(t, "bytes == 1")}, Stdout: []string{"nope"}, Stderr: []string{"nope"},
				StdoutLacks: []string{"bytes"}, StderrLacks: []string{"warn"},
			},
			Server: OutputExpect{JSON: []*Assertion{mustAssertion(t, "a exists")}},
			Goodput: []GoodputExpect{
				goodput("up", "client", 0.003, "bytes", "start"),
				goodput("down", "client", 0.005, "bytes", "start"),
				goodput("up", "server", 0.005, "bytes", "start"),
				goodput("up", "client", 0.005, "none", "start"),
				goodput("up", "client", 0.005, "x", "start"),
				goodput("up", "client", 0.005, "bytes", "bytes"),
			},
		}, play, []string{
			"client: exit code 0, want 3",
			`client: stdout lacks "nope"; it is "{\"a\": 1}\n{\"bytes\": 45200, \"start\": 0.02, \"end\": 0.07, \"zero\": 100e6, \"x\": \"y\"}"`,
			`client: stdout has "bytes"`,
			`client: stderr lacks "nope"; it is "warn\n"`,
			`client: stderr has "warn"`,
			"client: bytes == 1: found 45200",
			`server: stdout is not JSON: invalid character 'o' in literal null (expecting 'u'); stdout is "not json"`,
			"goodput up: claimed 45200 bytes in 0.050 s, the receiver can have read 45000: +0.44 %, want within 0.30 % (50000 left the link)",
			"goodput down: claimed 45200 bytes, but nothing left the link in that window",
			"goodput up: server: stdout is not JSON: invalid character 'o' in literal null (expecting 'u')",
			"goodput up: client: there is no none",
			`goodput up: client: "y" is no number`,
			"goodput up: the window from 45200 to 0.07 s is empty",
		}},
		{
			"killed",
			Expect{Exit: &zero, Client: OutputExpect{JSON: []*Assertion{mustAssertion(t, "a exists")}}},
			&Play{Killed: true, Client: Result{Code: 137}},
			[]string{
				"client: did not end within the scenario's timeout and was killed",
				`client: no JSON document on stdout; stdout is ""`,
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.expect.judge(tt.play)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestGoodputAtAHole: what a filled hole released near a bound may be counted on either side
// of it, and only that.
func TestGoodputAtAHole(t *testing.T) {
	// 1000 bytes in each millisecond from 100 to 199; from 160 on one is missing, which comes
	// at 180.
	flow := truth.Flow{Src: netip.AddrPortFrom(netip.IPv4Unspecified(), 1)}
	for i := range int64(100) {
		flow.Series.Millis = append(flow.Series.Millis, 100+i)
		flow.Series.Bytes = append(flow.Series.Bytes, 1000*(i+1))
		inOrder := 1000 * (i + 1)
		if i >= 60 && i < 80 {
			inOrder = 60_000
		}
		flow.Series.InOrder = append(flow.Series.InOrder, inOrder)
	}
	link := &LinkReport{RTT: 10 * time.Millisecond}
	link.Directions[0] = forward.Direction{Flows: []truth.Flow{flow}}
	for _, tt := range []struct {
		name       string
		start, end float64
		claim      int
		ok         bool
	}{
		{"read just before the bound", 0.02, 0.080, 60_000, true},
		{"read just behind it", 0.02, 0.080, 40_000, true},
		{"more than the hole held", 0.02, 0.080, 64_000, false},
		{"at the other bound", 0.081, 0.099, 38_000, true},
		{"far from the hole", 0.02, 0.050, 32_000, false},
		{"in the hole", 0.02, 0.070, 50_000, false},
	} {
		g := GoodputExpect{
			Direction: "up", Document: "client", Tolerance: 0.005,
			Bytes: mustPath(t, "bytes"), Start: mustPath(t, "start"), End: mustPath(t, "end"), Zero: mustPath(t, "zero"),
		}
		doc := fmt.Sprintf(`{"bytes": %d, "start": %g, "end": %g, "zero": 100e6}`, tt.claim, tt.start, tt.end)
		err := g.judge(&Play{Link: link, Client: Result{Stdout: doc}})
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestPlayString(t *testing.T) {
	p := Play{Steal: 0.0123, Void: []string{"late", "stolen"}, Link: &LinkReport{Unasked: [2]int64{0, 4}}}
	p.Link.Directions[0].Out.Packets = 10
	p.Link.Directions[0].Late = forward.Lateness{P50: 45*time.Microsecond + 1, P99: 1200 * time.Microsecond, Max: 3 * time.Millisecond}
	p.Link.Directions[0].Link.Queue.Packets = 2
	p.Link.Directions[1].Link.Loss.Packets = 3
	want := "void: late; stolen (up: 10 packets, late p50 45µs p99 1.2ms max 3ms, dropped 2 queue 0 loss 0 unasked; " +
		"down: 0 packets, late p50 0s p99 0s max 0s, dropped 0 queue 3 loss 4 unasked; steal 1.2 %)"
	if diff := cmp.Diff(want, p.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (Play{}).String(); got != "fit (steal 0.0 %)" {
		t.Errorf("without a link: %q", got)
	}
}
