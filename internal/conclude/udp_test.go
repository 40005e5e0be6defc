package conclude_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/conclude/sample"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// udpCases are UDP runs as people meet them.
func udpCases() map[string]sample.Test {
	out := map[string]sample.Test{}
	add := func(name string, t sample.Test, change func(*sample.Test)) {
		if change != nil {
			change(&t)
		}
		out["udp-"+name] = t
	}
	n := func(v int64) *int64 { return &v }
	owners := func(f func(r *result.UDPReceived, l *result.UDPLoss)) func(result.Direction, *result.UDPStream) {
		return func(_ result.Direction, u *result.UDPStream) { f(u.Received, u.Loss) }
	}
	gigabit := func(t *sample.Test) {
		speed := int64(1e9)
		t.Client.NIC = &result.NIC{Name: "eth0", SpeedBPS: &speed, MTU: 1500}
	}
	add("clean", sample.NewUDP(), nil)
	add("clean-4-streams", sample.NewUDP(), func(t *sample.Test) { t.Streams, t.Bitrate = 4, 25e6 })
	add("down-foreign", sample.ForeignUDP("3.12"), func(t *sample.Test) { t.Direction = "down" })
	add("foreign-receiver-loses", sample.ForeignUDP("3.12"), func(t *sample.Test) { t.LossShare = 0.03 })
	add("foreign-tail", sample.ForeignUDP("3.12"), func(t *sample.Test) {
		t.Finishing = func(f *result.Finish, _ **result.Error) { // the receiver saw no gap, and 90 of 100 arrived
			s := &f.Streams[0]
			s.UDP, s.Sender.Packets, s.Receiver.Packets, s.Receiver.Lost = nil, n(100), n(90), n(0)
		}
	})
	add("lost-on-the-way", sample.NewUDP(), func(t *sample.Test) { t.LossShare = 0.01 })
	add("lost-few", sample.NewUDP(), func(t *sample.Test) { t.LossShare = 0.0001 })
	add("lost-at-the-socket", sample.NewUDP(), func(t *sample.Test) {
		t.LossShare = 0.01
		t.Account = owners(func(r *result.UDPReceived, l *result.UDPLoss) {
			r.SocketDrops, l.Socket, l.Network = n(l.Lost-3), n(l.Lost-3), n(3)
		})
	})
	add("lost-all-at-the-socket", sample.NewUDP(), func(t *sample.Test) {
		t.LossShare = 0.01
		t.Account = owners(func(r *result.UDPReceived, l *result.UDPLoss) {
			r.SocketDrops, l.Socket, l.Network = n(l.Lost), n(l.Lost), n(0)
		})
	})
	add("lost-at-the-socket-merged", sample.NewUDP(), func(t *sample.Test) {
		t.LossShare = 0.01
		t.Account = owners(func(r *result.UDPReceived, l *result.UDPLoss) {
			r.Coalesced, r.SocketDrops, l.Socket, l.Network, l.Attribution = true, n(40), n(40), nil, "bounded"
		})
	})
	add("lost-at-the-host", sample.NewUDP(), func(t *sample.Test) {
		t.LossShare = 0.01
		t.Account = owners(func(_ *result.UDPReceived, l *result.UDPLoss) {
			l.Softnet, l.NIC, l.Network, l.Attribution = n(200), n(100), n(l.Lost-300), "bounded"
		})
	})
	add("sender-short", sample.NewUDP(), func(t *sample.Test) {
		t.Bitrate = 200e6
		t.Account = func(_ result.Direction, u *result.UDPStream) {
			u.Sent.Unsent, u.Sent.Refused, u.Sent.LargestBurst = 5000, 12, 90
			u.Sent.Late = sample.Spread(1000, 0.004)
		}
	})
	add("sender-nearly", sample.NewUDP(), func(t *sample.Test) {
		t.Account = func(_ result.Direction, u *result.UDPStream) { u.Sent.Unsent = 3 }
	})
	steady := func(t *sample.Test, rate float64, unsent int64) {
		t.Rates = sample.Flat(rate, 10)
		t.Tune = func(head *result.Run, _ *[]result.Event) { head.Test.Steady = true }
		t.Account = func(_ result.Direction, u *result.UDPStream) { u.Sent.Unsent = unsent }
	}
	add("steady-late", sample.NewUDP(), func(t *sample.Test) { steady(t, 97e6, 2590) })
	add("steady-too-late", sample.NewUDP(), func(t *sample.Test) { steady(t, 94e6, 5180) })
	add("steady-slow", sample.NewUDP(), func(t *sample.Test) { steady(t, 97e6, 100) })
	add("steady-catches-up", sample.NewUDP(), func(t *sample.Test) {
		steady(t, 97e6, 2590)
		t.Tune = func(head *result.Run, _ *[]result.Event) { head.Test.Steady, head.Test.CatchUp = true, 0.02 }
	})
	add("jitter-climbs", sample.NewUDP(), func(t *sample.Test) {
		for i := range t.Rates {
			t.PDV = append(t.PDV, 0.002*float64(i+1))
		}
		t.Account = func(_ result.Direction, u *result.UDPStream) {
			climb := 9.5
			u.Received.Climb, u.Received.PDV, u.Received.Jitter.Mean = &climb, sample.Spread(1000, 0.02), 0.004
		}
	})
	add("uncut-user-stamps", sample.NewUDP(), func(t *sample.Test) {
		t.Tune = func(head *result.Run, _ *[]result.Event) { head.Test.Path.Uncut = true }
		t.Account = func(_ result.Direction, u *result.UDPStream) { u.Received.Stamps = "user" }
	})
	add("above-link", sample.NewUDP(), func(t *sample.Test) {
		gigabit(t)
		t.MSS, t.Bitrate, t.Rates, t.Sent = 1400, 1e9, sample.Flat(953e6, 10), sample.Flat(1e9, 10)
	})
	add("both", sample.NewUDP(), func(t *sample.Test) {
		t.Direction, t.Back, t.LossShare = "both", sample.Flat(99e6, 10), 0.002
	})
	add("flood", sample.NewUDP(), func(t *sample.Test) { t.Bitrate, t.LossShare = 0, 0.2 })
	add("nothing-arrived", sample.NewUDP(), func(t *sample.Test) { t.Rates, t.Sent = []float64{0, 0}, []float64{1e6, 1e6} })
	add("interrupted", sample.ForeignUDP("3.21"), func(t *sample.Test) {
		t.Direction, t.Rates, t.NoPeer, t.LossShare = "down", t.Rates[:3], true, 0.001
		t.Finishing = func(_ *result.Finish, err **result.Error) {
			*err = &result.Error{Code: "interrupted", Text: "interrupted by signal Interrupt(2)", Interrupted: true}
		}
	})
	return out
}

func TestUDPNoticesAndFlags(t *testing.T) {
	want := map[string]struct {
		limit          string
		notices, flags []string
	}{
		"udp-clean":                     {"set-rate", nil, nil},
		"udp-clean-4-streams":           {"set-rate", nil, nil},
		"udp-down-foreign":              {"set-rate", []string{"foreign-peer"}, nil},
		"udp-foreign-receiver-loses":    {"unknown", []string{"foreign-peer", "loss-unknown-owner"}, nil},
		"udp-lost-on-the-way":           {"loss", nil, nil},
		"udp-lost-few":                  {"set-rate", nil, nil},
		"udp-lost-at-the-socket":        {"receive-socket", []string{"loss-at-socket"}, []string{"local_drops"}},
		"udp-lost-all-at-the-socket":    {"receive-socket", []string{"loss-at-socket"}, []string{"local_drops"}},
		"udp-lost-at-the-socket-merged": {"receive-socket", []string{"loss-at-socket"}, []string{"local_drops"}},
		"udp-lost-at-the-host":          {"loss", nil, nil},
		"udp-sender-short":              {"sender-limited", []string{"pacing-coarse", "sender-limited"}, []string{"sender_limited"}},
		"udp-sender-nearly":             {"set-rate", []string{"sender-limited"}, []string{"sender_limited"}},
		"udp-steady-late":               {"set-rate", []string{"sender-limited"}, nil},
		"udp-steady-too-late":           {"sender-limited", []string{"sender-limited"}, []string{"sender_limited"}},
		"udp-steady-slow":               {"sender-limited", []string{"sender-limited"}, []string{"sender_limited"}},
		"udp-steady-catches-up":         {"sender-limited", []string{"sender-limited"}, []string{"sender_limited"}}, // all of it was to be offered
		"udp-jitter-climbs":             {"set-rate", []string{"jitter-climbs"}, nil},
		"udp-uncut-user-stamps":         {"set-rate", []string{"offload-uncut", "stamps-user"}, nil},
		"udp-above-link":                {"loss", []string{"rate-above-link"}, nil},
		"udp-nothing-arrived":           {"", []string{"nothing-arrived", "sender-limited"}, []string{"sender_limited"}},
	}
	all := udpCases()
	for name, w := range want {
		run := all[name].Run()
		conclude.Conclude(run)
		var codes []string
		for _, n := range run.Notices {
			codes = append(codes, n.Code)
		}
		slices.Sort(codes)
		if diff := cmp.Diff(w.notices, codes); diff != "" {
			t.Errorf("%s notices -want +got:\n%s", name, diff)
		}
		if diff := cmp.Diff(w.flags, run.Flags); diff != "" {
			t.Errorf("%s flags -want +got:\n%s", name, diff)
		}
		if got := run.Sums[0].Limit; got != w.limit {
			t.Errorf("%s: limit %q, want %q", name, got, w.limit)
		}
	}
}

// The network is never blamed for what the socket dropped, whatever the counts are.
func TestSocketIsNotTheNetwork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		test := sample.NewUDP()
		test.LossShare = rapid.Float64Range(0.0005, 0.4).Draw(t, "share")
		merged := rapid.Bool().Draw(t, "merged")
		test.Account = func(_ result.Direction, u *result.UDPStream) {
			all := u.Loss.Lost
			u.Loss.Socket, u.Loss.Network, u.Received.SocketDrops = &all, new(int64), &all
			u.Received.Coalesced = merged
		}
		run := test.Run()
		conclude.Conclude(run)
		for _, bad := range []string{"lost on the way", "all on the way"} {
			if strings.Contains(run.Summary, bad) {
				t.Fatalf("%q in %q", bad, run.Summary)
			}
		}
		if run.Sums[0].Limit == conclude.Loss || !slices.Contains(run.Flags, conclude.FlagLocalDrops) {
			t.Fatalf("limit %q, flags %v", run.Sums[0].Limit, run.Flags)
		}
	})
}

// Golden values of spec recipes §3.
func TestLayers(t *testing.T) {
	test := sample.NewUDP()
	test.MSS, test.Bitrate = 1400, 1e9
	test.Rates = []float64{1e9, 1e9}
	run := test.Run()
	conclude.Conclude(run)
	if len(run.Layers) != 1 {
		t.Fatalf("%d layers", len(run.Layers))
	}
	scale := 1e9 / run.Layers[0].L7 // whole datagrams only: a shade less than the rate
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"l7", run.Layers[0].L7, 1000},
		{"l4", run.Layers[0].L4, 1005.71},
		{"l3", run.Layers[0].L3, 1020.00},
		{"l2", run.Layers[0].L2, 1032.86},
		{"l1", run.Layers[0].L1, 1047.14},
	} {
		if got := c.got * scale / 1e6; math.Abs(got-c.want) > 0.005 {
			t.Errorf("%s: %.3f, want %.2f", c.name, got, c.want)
		}
	}
}

func TestDatagramBytes(t *testing.T) {
	for _, c := range []struct {
		name                 string
		payload, mtu, family int
		want                 [5]int
	}{
		{"one packet", 1472, 1500, 4, [5]int{1472, 1480, 1500, 1518, 1538}},
		{"unknown MTU", 9000, 0, 4, [5]int{9000, 9008, 9028, 9046, 9066}},
		{"least frame", 16, 1500, 4, [5]int{16, 24, 44, 64, 84}},
		{"IPv6", 1452, 1500, 6, [5]int{1452, 1460, 1500, 1518, 1538}},
		// 8008 bytes of UDP in 5 pieces of 1480 and one of 608, each with its own IP header and frame
		{"six fragments", 8000, 1500, 4, [5]int{8000, 8008, 8008 + 6*20, 8008 + 6*38, 8008 + 6*58}},
		// one byte too many: 1480 + 1, the second in the smallest frame
		{"one byte over", 1473, 1500, 4, [5]int{1473, 1481, 1481 + 40, 1518 + 64, 1538 + 84}},
		// IPv6: 8 bytes of fragment header; 1500 − 48 = 1452, cut to 1448
		{"IPv6 fragments", 1500, 1500, 6, [5]int{1500, 1508, 1508 + 2*48, 1508 + 2*66, 1508 + 2*86}},
	} {
		if got := conclude.DatagramBytes(c.payload, c.mtu, c.family); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if got := conclude.DatagramBytes(1400, 0, 4); got[units.L1] != units.UDPHeaders(false, 0).Bytes(1400, units.L1) {
		t.Errorf("a whole datagram is not what bdp says: %v", got)
	}
}

// The rates of the warning are those of spec recipes §3.
func TestAboveLinkBefore(t *testing.T) {
	test := udpCases()["udp-above-link"]
	head := test.Events()[1].Head
	ns := conclude.Before(head)
	if len(ns) != 1 || ns[0].Code != conclude.RateAboveLink {
		t.Fatalf("notices %v", ns)
	}
	for _, want := range []string{"1000.00 Mbit/s of payload", "1047.14 Mbit/s on the wire", "954.98 Mbit/s of payload fit"} {
		if !strings.Contains(ns[0].Text, want) {
			t.Errorf("no %q in %q", want, ns[0].Text)
		}
	}
	head.Test.Bitrate = 954e6
	if ns := conclude.Before(head); ns != nil {
		t.Errorf("a rate that fits is warned of: %v", ns)
	}
	head.Test.BlockSize = 4000
	if ns := conclude.Before(head); len(ns) != 1 || ns[0].Code != conclude.Fragments || !strings.Contains(ns[0].Text, "each is sent in 3") {
		t.Errorf("fragments: %v", ns)
	}
	head.Test.Transport = "tcp"
	if ns := conclude.Before(head); ns != nil {
		t.Errorf("TCP: %v", ns)
	}
}

func TestGrades(t *testing.T) {
	grade := func(test sample.Test, with conclude.With) []result.Grade {
		run := test.Run()
		with.Conclude(run)
		return run.Sums[0].Grades
	}
	word := func(gs []result.Grade) string {
		var out []string
		for _, g := range gs {
			out = append(out, g.Name+" "+g.Grade)
		}
		return strings.Join(out, ", ")
	}
	pdv := func(p99 float64) func(*sample.Test) {
		return func(t *sample.Test) {
			t.Account = func(_ result.Direction, u *result.UDPStream) { u.Received.PDV = sample.Spread(1000, p99/4) }
		}
	}
	for _, c := range []struct {
		name   string
		change func(*sample.Test)
		want   string
	}{
		{"quiet", func(*sample.Test) {}, "voice good, video good"},
		{"10 ms", pdv(0.010), "voice good, video good"},
		{"20 ms", pdv(0.020), "voice usable, video usable"},
		{"31 ms", pdv(0.031), "voice poor, video poor"},
		{"0.3 % lost", func(t *sample.Test) { t.LossShare = 0.003 }, "voice good, video usable"},
		{"2 % lost", func(t *sample.Test) { t.LossShare = 0.02 }, "voice poor, video poor"},
		{"nothing arrived", func(t *sample.Test) { t.Rates, t.Sent = []float64{0, 0}, []float64{1e6, 1e6} }, "voice poor, video poor"},
	} {
		test := sample.NewUDP()
		c.change(&test)
		if got := word(grade(test, conclude.With{})); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	foreign := sample.ForeignUDP("3.12")
	if gs := grade(foreign, conclude.With{}); len(gs) != 2 || gs[0].Basis != "jitter" {
		t.Errorf("foreign: %v", gs)
	}
	own := []conclude.Profile{{Name: "games", Good: conclude.Bounds{Variation: 1e-6, Loss: 0}, Usable: conclude.Bounds{Variation: 1e-6, Loss: 0}}}
	if got := word(grade(sample.NewUDP(), conclude.With{Profiles: own})); got != "games poor" {
		t.Errorf("own bounds: %q", got)
	}
	if gs := grade(sample.New(), conclude.With{}); gs != nil {
		t.Errorf("TCP is graded: %v", gs)
	}
}
