package datagram

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/result"
)

func TestLoss(t *testing.T) {
	for name, c := range map[string]struct {
		sent int64
		c    Counts
		want result.UDPLoss // without bounds
	}{
		"nothing lost":         {4_877_000, Counts{First: 4_877_000, Highest: 4_877_000}, result.UDPLoss{}},
		"nothing arrived":      {100, Counts{}, result.UDPLoss{Lost: 100, Ratio: 1, Tail: 100}},
		"the tail":             {100, Counts{First: 90, Highest: 90}, result.UDPLoss{Lost: 10, Ratio: .1, Tail: 10}},
		"in the middle":        {100, Counts{First: 75, Highest: 100, CompatLost: 25}, result.UDPLoss{Lost: 25, Ratio: .25}},
		"both":                 {100, Counts{First: 75, Highest: 95}, result.UDPLoss{Lost: 25, Ratio: .25, Tail: 5}},
		"duplicates":           {4, Counts{First: 2, Duplicates: 7, Highest: 3}, result.UDPLoss{Lost: 2, Ratio: .5, Tail: 1}},
		"more than were sent":  {10, Counts{First: 12, Highest: 12}, result.UDPLoss{}},
		"nothing sent":         {0, Counts{}, result.UDPLoss{}},
		"after an omit period": {50, Counts{First: 40, Base: 1000, Highest: 1045}, result.UDPLoss{Lost: 10, Ratio: .2, Tail: 5}},
	} {
		got := Loss(c.sent, c.c)
		low, high := got.Low, got.High
		got.Low, got.High = 0, 0
		c.want.Sent = c.sent
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if !(low <= got.Ratio && got.Ratio <= high && high <= 1) {
			t.Errorf("%s: %v…%v", name, low, high)
		}
	}
	if got := fmt.Sprintf("%.1e", Loss(4_877_000, Counts{First: 4_877_000, Highest: 4_877_000}).High); got != "6.2e-07" {
		t.Errorf("0 of 4877000: at most %s, want 6.2e-07", got)
	}
	if l := Loss(0, Counts{}); l.Low != 0 || l.High != 1 {
		t.Errorf("nothing sent says %v…%v", l.Low, l.High)
	}
	if l := Loss(100, Counts{First: 90, Highest: 100}); math.Abs(l.Low-0.0490047) > 1e-7 || math.Abs(l.High-0.1762226) > 1e-7 {
		t.Errorf("10 of 100: %v…%v", l.Low, l.High)
	}
}

// show prints a count or "-".
func show(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

func TestAttribute(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	for _, c := range []struct {
		name                 string
		lost                 int64
		socket               *int64
		coalesced            bool
		softnet, nic         *int64
		wantSocket, wantRest string // rest: softnet nic network attribution
	}{
		{"network alone", 100, n(0), false, n(0), n(0), "0", "0 0 100 exact"},
		{"socket alone (F09)", 100, n(100), false, n(0), n(0), "100", "0 0 0 exact"},
		{"both", 100, n(30), false, n(0), n(0), "30", "0 0 70 exact"},
		{"more drops than lost", 100, n(300), false, n(7), n(0), "100", "0 0 0 exact"},
		{"softnet dropped", 100, n(30), false, n(20), n(0), "30", "20 0 50 bounded"},
		{"NIC dropped others', too", 100, n(0), false, n(0), n(5000), "0", "0 100 0 bounded"},
		{"softnet not known", 100, n(30), false, nil, n(0), "30", "- 0 70 bounded"},
		{"nothing left to attribute", 100, n(100), false, nil, nil, "100", "- - 0 exact"},
		{"socket not known", 100, nil, false, n(0), n(0), "-", "0 0 - unknown"},
		{"socket not known, coalesced", 100, nil, true, n(0), n(0), "-", "0 0 - unknown"},
		{"coalesced drops", 8624, n(196), true, n(0), n(0), "196", "0 0 - bounded"},
		{"coalesced, none dropped", 100, n(0), true, n(0), n(0), "0", "0 0 100 exact"},
		{"coalesced, all dropped", 100, n(100), true, n(0), n(0), "100", "0 0 0 exact"},
		{"nothing lost", 0, n(0), false, n(0), n(0), "0", "0 0 0 exact"},
		{"nothing lost, nothing known", 0, nil, true, nil, nil, "-", "- - 0 exact"},
		{"a counter that went back", 100, n(-5), false, n(0), n(0), "0", "0 0 100 exact"},
	} {
		l := result.UDPLoss{Sent: 10_000, Lost: c.lost}
		Attribute(&l, c.socket, c.coalesced, c.softnet, c.nic)
		rest := fmt.Sprint(show(l.Softnet), " ", show(l.NIC), " ", show(l.Network), " ", l.Attribution)
		if show(l.Socket) != c.wantSocket || rest != c.wantRest {
			t.Errorf("%s: socket %s, %s; want %s, %s", c.name, show(l.Socket), rest, c.wantSocket, c.wantRest)
		}
	}
}

// No owner gets more than was lost, together or alone, and the network is blamed for
// nothing when a coalescing socket dropped or its drops are unknown.
func TestAttributeNeverExceeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := func(what string) *int64 {
			if rapid.Bool().Draw(t, what+" known") {
				return nil
			}
			v := rapid.Int64Range(0, 200).Draw(t, what)
			return &v
		}
		l := result.UDPLoss{Lost: rapid.Int64Range(0, 150).Draw(t, "lost")}
		socket, softnet, nic := count("socket"), count("softnet"), count("nic")
		coalesced := rapid.Bool().Draw(t, "coalesced")
		Attribute(&l, socket, coalesced, softnet, nic)
		sum := int64(0)
		for _, o := range []*int64{l.Socket, l.Softnet, l.NIC, l.Network} {
			if o != nil {
				sum += *o
				if *o < 0 {
					t.Fatalf("negative: %+v", l)
				}
			}
		}
		if sum > l.Lost || l.Network != nil && sum != l.Lost {
			t.Fatalf("%d attributed of %d", sum, l.Lost)
		}
		if l.Network != nil && *l.Network > 0 && (socket == nil || coalesced && *socket > 0) {
			t.Fatalf("the network is blamed: %+v", l)
		}
		if (l.Network == nil) && l.Attribution == Exact {
			t.Fatalf("exact without a network share")
		}
	})
}
