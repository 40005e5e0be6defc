package suite_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/suite"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// A document says how each item was measured, what defines its figures and who set its limits.
func TestPlansOfRecord(t *testing.T) {
	s := trial()
	for i := range s.Items {
		if it := &s.Items[i]; it.ID == "A2" {
			it.Demands[0] = suite.Demand{Figure: "throughput", Op: ">=", Bound: 90e6}
		}
	}
	m := theMethod(s)
	history := play(t, m, world{rate: 93e6}, 0)
	rep := &result.Report{}
	(&suite.Judge{Method: m, File: "line.yaml", LinkFrom: suite.LinkSuite}).Fill(rep, history)
	a := rep.Acceptance
	if a.LinkFrom != "suite" || len(a.Plans) != 7 {
		t.Fatalf("%q, %d plans", a.LinkFrom, len(a.Plans))
	}
	for i, want := range []string{
		"Round trips of packets of 64 bytes each 10 ms for 3 s without load",
		"One TCP connection for 3 s, 3 times, each behind a warm-up of 1 s that does not count",
		"8 TCP connections at once for 3 s, 3 times",
		"8 TCP connections at once each way, both ways at the same time, for 3 s",
		"Datagrams of 1472 bytes of payload, not to be fragmented, paced to 90.9 Mbit/s of payload (95 % of the link on layer 1) for 3 s, once.",
		"Datagrams of 64 bytes of payload each 1 ms for 3 s, once, with nothing beside them.",
		"beside a load of 8 streams of TCP for 3 s",
	} {
		if !strings.Contains(a.Plans[i].How, want) {
			t.Errorf("%s: %q, want %q", a.Plans[i].ID, a.Plans[i].How, want)
		}
	}
	want := []result.ItemLimit{
		{Text: "throughput ≥ 90.0 Mbit/s", Defined: "payload at the receiver; ideal: RFC 6349 §4.1.1", Source: "suite file line.yaml"},
		{Text: "efficiency ≥ 99.00 %", Defined: "RFC 6349 §4.2, in segments", Source: "M-ACCEPT, profile metro"},
	}
	if diff := cmp.Diff(want, a.Plans[2].Limits); diff != "" {
		t.Error(diff)
	}
	for _, p := range a.Plans {
		for _, l := range p.Limits {
			if p.ID != "A0" && l.Defined == "" {
				t.Errorf("%s: %q is defined by nothing", p.ID, l.Text)
			}
		}
	}
}

// What was carried is told on each layer (M-BASE), with the headers of its packets.
func TestRatesOfRecord(t *testing.T) {
	rep := judged(t, trial(), world{rate: 93e6})
	rates := map[string]result.ItemRate{}
	for _, r := range rep.Acceptance.Rates {
		rates[r.ID] = r
	}
	if len(rates) != 8 {
		t.Fatalf("%d rates", len(rates))
	}
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 1e-4*want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	tcp := rates["A2-up"] // 1448 of payload, 20 + 20 of headers, 18 of Ethernet, 20 of preamble and gap
	near("layer 7", tcp.Layers.L7, 93e6)
	near("layer 4", tcp.Layers.L4, 93e6*1468/1448)
	near("layer 3", tcp.Layers.L3, 93e6*1488/1448)
	near("layer 2", tcp.Layers.L2, 93e6*1506/1448)
	near("layer 1", tcp.Layers.L1, 93e6*1526/1448)
	near("of the link", tcp.Share, 0.93*1526/1448)
	if tcp.Median != 3 || tcp.Packet != 1448 {
		t.Errorf("%+v", tcp)
	}
	if udp := rates["A4-down"]; math.Abs(udp.Share-0.95) > 0.001 || udp.Packet != 1472 {
		t.Errorf("full load: %+v", udp)
	}
}

// What the interfaces counted over all, the times, and what all of it does not show.
func TestConditionsOfRecord(t *testing.T) {
	begun := time.Date(2026, 12, 1, 5, 0, 0, 0, time.UTC)
	rep := judged(t, trial(), world{rate: 93e6, plant: func(name string, d result.Direction, run *result.Run) {
		run.Started, run.Elapsed = begun, 60
		if name == "A1-up-1" && d == result.Up {
			run.Rows[1].Host.NIC.RxErrors = 3
		}
	}})
	a := rep.Acceptance
	if len(a.Interfaces) != 2 || a.Interfaces[1].End != result.Server || a.Interfaces[1].Counters.RxErrors != 3 || a.Interfaces[0].Counters.TxBytes < 100e6 {
		t.Errorf("%+v", a.Interfaces)
	}
	if a.Until == nil || !a.Until.Equal(begun.Add(time.Minute)) || a.Moved < 400e6 {
		t.Errorf("until %v, %d bytes", a.Until, a.Moved)
	}
	if text := strings.Join(a.Findings, "\n"); !strings.Contains(text, "eth0 of server-host counted 3 damaged frames received") {
		t.Errorf("findings:\n%s", text)
	}
	text := strings.Join(a.Scope, "\n")
	for _, want := range []string{
		"from 2026-12-01 05:00:00 to 2026-12-01 05:01:00 (UTC)", "A loss of less than 0.00013 could not be told from none: 23", "Left out of M-ACCEPT: highest loss-free rate.",
		"packets of one size were sent, 1472 bytes of payload", "Delays are stamped by the hosts' systems",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "trial") {
		t.Errorf("it was none:\n%s", text)
	}
}

// A flag on the empty path doubts the pre-check.
func TestFlagOnEmptyPath(t *testing.T) {
	m := theMethod(trial())
	history := play(t, m, world{rate: 93e6}, 0)
	for flag, want := range map[string]string{"steal": result.Inconclusive, "counter_missing": result.Inconclusive, "clock_unsynced": result.Pass} {
		history[0].Run.Flags = []string{flag}
		rep := &result.Report{}
		self := 8e9
		(&suite.Judge{Method: m, Self: &self}).Fill(rep, history)
		if i := find(t, rep, "A0"); i.Result != want {
			t.Errorf("%s: %s %q", flag, i.Result, i.Reasons)
		}
	}
}

// A loss-free rate is held against the interval that the search left.
func TestLossFreeLimit(t *testing.T) {
	judge := func(most, limit float64) result.Item {
		s, err := suite.Default(suite.Metro, 100*units.MbitPerSec).Only([]string{"A7"})
		if err != nil {
			t.Fatal(err)
		}
		it := s.Item("A7")
		it.Directions = []result.Direction{result.Up}
		it.Demands = []suite.Demand{{Figure: "loss_free_rate", Op: ">=", Bound: limit}}
		return find(t, judged(t, s, world{rate: 93e6, plant: func(name string, d result.Direction, run *result.Run) {
			if !strings.HasPrefix(name, "A7-") {
				return
			}
			u, got := run.Sums[0].UDP, run.Sums[0].Sender.Rate()
			if got > most {
				lost := u.Sent.Packets / 10
				u.Received.Packets -= lost
				u.Loss.Lost, u.Loss.Network, u.Loss.Ratio = lost, &lost, 0.1
				got *= 0.9
			}
			run.Sums[0].Goodput = &got
		}}), "A7-up")
	}
	i := judge(60e6, 50e6)
	if i.Result != result.Pass || len(i.Criteria) != 1 || i.Criteria[0].High == nil {
		t.Fatalf("%s %q", i.Result, i.Reasons)
	}
	low, high := *i.Criteria[0].Low, *i.Criteria[0].High
	if low > 60e6 || high < 60e6*0.999 || high-low > 0.02*high {
		t.Fatalf("%v to %v", low, high)
	}
	for _, c := range []struct {
		most, limit  float64
		result, says string
	}{
		{60e6, (low + high) / 2, result.Inconclusive, "neither met nor missed"},
		{60e6, high * 1.001, result.Fail, "That misses at least"},
		{1e9, 96e6, result.Inconclusive, "that is the whole link"},
		{1e9, 90e6, result.Pass, "Demanded: at least 90.0 Mbit/s"},
	} {
		if i := judge(c.most, c.limit); i.Result != c.result || !strings.Contains(fmt.Sprint(i.Reasons), c.says) {
			t.Errorf("%v of %v: %s %q", c.limit, c.most, i.Result, i.Reasons)
		}
	}
}
