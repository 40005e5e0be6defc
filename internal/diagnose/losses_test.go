package diagnose

import (
	"testing"

	"github.com/fullbore-net/fullbore/result"
)

const segment = 1448

// lossy makes a flow of so many packets, of which so many were lost, in as many rows as hit says.
func lossy(name string, streams int, lost, packets, hit int64) flow {
	run := &result.Run{Test: result.Test{Transport: "tcp"}}
	run.Sums = []result.Sum{{Direction: result.Up, Sender: &result.Total{Bytes: (packets - lost) * segment}}}
	for i := int64(0); i < 20; i++ {
		n := int64(0)
		if i < hit {
			n = lost / hit
		}
		run.Rows = append(run.Rows, result.Interval{End: result.Client, Sums: []result.IntervalSum{{Direction: result.Up, Retransmits: &n}}})
	}
	return flow{
		name: name, run: run, dir: result.Up, streams: streams, rate: float64(packets) * segment * 8 / 4, arrived: true,
		retransmits: lost, ratio: float64(lost) / float64(packets), ratioKnown: true, mss: segment, cc: "cubic", load: [2]float64{-1, -1},
	}
}

// legOf puts flows and the UDP stage's account together.
func legOf(c *Case, sent, lost int64, flows ...flow) *leg {
	c.Up = leg{dir: result.Up, case_: c, flows: flows}
	if sent > 0 {
		run := &result.Run{Test: result.Test{Transport: "udp"}}
		run.Sums = []result.Sum{{Direction: result.Up, UDP: &result.UDPStream{Loss: &result.UDPLoss{Sent: sent, Lost: lost, Ratio: float64(lost) / float64(sent)}}}}
		c.Up.udp = &flow{name: "up-udp", run: run, dir: result.Up, rate: float64(sent-lost) * segment * 8 / 2, arrived: true}
	}
	return &c.Up
}

// Errors or congestion: by ratios and their confidence, whatever the rate and the number of
// streams.
func TestLossesCompared(t *testing.T) {
	for _, c := range []struct {
		name           string
		udpSent, udpLo int64
		flows          []flow
		stay, vanish   bool
	}{
		{name: "one percent at any rate", flows: []flow{lossy("up-1", 1, 14, 1100, 8), lossy("up-half", 1, 4, 330, 4)}, stay: true},
		{name: "none at half the rate, and four would have been", flows: []flow{lossy("up-1", 1, 100, 4200, 20), lossy("up-half", 1, 0, 1000, 0)}, vanish: true},
		{name: "none at half the rate, and that is chance", flows: []flow{lossy("up-1", 1, 14, 1100, 8), lossy("up-half", 1, 0, 200, 0)}},
		{name: "one overflow of many packets is one event", flows: []flow{lossy("up-1", 1, 200, 17000, 1), lossy("up-half", 1, 0, 4000, 0)}},
		{name: "two stray losses under a lossy stream", flows: []flow{lossy("up-1", 1, 100, 4200, 20), lossy("up-half", 1, 2, 4000, 2)}, vanish: true},
		{name: "UDP tells where half the rate is too slow", udpSent: 7000, udpLo: 70, flows: []flow{lossy("up-1", 1, 14, 1100, 8), lossy("up-half", 1, 1, 200, 1)}, stay: true},
		{
			// Sixteen paced streams meet in a queue of ten packets; one flow of UDP does not.
			name: "streams that meet", udpSent: 7900,
			flows: []flow{lossy("up-1", 1, 0, 17000, 0), lossy("up-16", 16, 215, 16500, 10), lossy("up-half", 16, 51, 8000, 10)},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := legOf(&Case{}, c.udpSent, c.udpLo, c.flows...)
			f := l.lossy()
			if f == nil {
				t.Fatal("no lossy flow")
			}
			if stay, vanish := l.lossesStay(f), l.lossesVanish(f); stay != c.stay || vanish != c.vanish {
				t.Errorf("stay %v, vanish %v; wanted %v, %v", stay, vanish, c.stay, c.vanish)
			}
		})
	}
	// Half of what many streams carry overflows a queue of a few packets, too, if less often than the
	// stream does: the paced stream decides. Where as many are lost as of the stream's it does not.
	for lost, vanish := range map[int64]bool{10: true, 60: false} {
		l := legOf(&Case{}, 20000, lost, lossy("up-1", 1, 34, 13400, 9), lossy("up-half", 1, 0, 8300, 0))
		l.one().rate = l.udp.rate / 2
		if got := l.lossesVanish(l.one()); got != vanish {
			t.Errorf("%d of the datagrams: vanish %v", lost, got)
		}
	}
	l := legOf(&Case{}, 7900, 0, lossy("up-1", 1, 0, 17000, 0), lossy("up-16", 16, 215, 16500, 10))
	if !l.spared(l.lossy()) {
		t.Error("a single flow was spared, and it is not seen")
	}
}

// What a UDP flow loses above a limit of each flow is the limit's, not errors'.
func TestDatagramsAboveAFlowLimit(t *testing.T) {
	l := legOf(&Case{}, 8000, 6000, lossy("up-1", 1, 4, 4000, 4))
	l.udp.rate = l.one().rate
	if n := l.datagramLosses(); n.packets != 0 {
		t.Errorf("%+v", n)
	}
}

func TestClustered(t *testing.T) {
	together, alone, few := lossy("up-1", 1, 40, 13700, 4), lossy("up-1", 1, 40, 13700, 17), lossy("up-1", 1, 4, 13700, 1)
	if m := together.clustered(); m != 10 {
		t.Errorf("forty in four rows: %v", m)
	}
	if m := alone.clustered(); m != 1 {
		t.Errorf("forty in seventeen rows: %v", m)
	}
	if m := few.clustered(); m != 1 {
		t.Errorf("four are too few: %v", m)
	}
}

// rowsOf makes the receiver's rows of 200 ms, Mbit/s; nic nil = its interface does not tell.
func rowsOf(read, nic []float64) *flow {
	f := &flow{run: &result.Run{Test: result.Test{Transport: "tcp"}}, dir: result.Up, mss: segment}
	for i, r := range read {
		start := 0.2 * float64(i)
		row := result.Interval{End: result.Server, Start: start, Stop: start + 0.2, Sums: []result.IntervalSum{{Direction: result.Up, Start: start, Stop: start + 0.2, BPS: r * 1e6}}}
		if nic != nil {
			bytes := nic[i] * 1e6 * 0.2 / 8
			packets := int64(bytes / segment)
			row.Host = &result.HostSample{NIC: &result.NICDelta{RxBytes: int64(bytes) + packets*66, RxPackets: packets}}
		}
		f.run.Rows = append(f.run.Rows, row)
	}
	return f
}

// A bucket is what came above the plateau. What was read in a lump when a hole was filled is
// none, with the interface's counters and without.
func TestBurst(t *testing.T) {
	flat := []float64{20, 20, 20, 20, 20, 20, 20, 20}
	hole := append([]float64{10, 30.4, 20, 20}, flat...)
	bucket := append([]float64{60, 40, 20, 20}, flat...)
	late := append([]float64{5, 60, 40, 20}, flat...) // slow start first
	for _, c := range []struct {
		name      string
		read, nic []float64
		least     float64
		most      float64
	}{
		{"a plain line", append(flat, flat...), nil, 0, 0},
		{"a hole that was filled", hole, nil, 0, 0},
		{"the same, and the interface tells", hole, append([]float64{20, 20, 20, 20}, flat...), 0, 0},
		{"a bucket", bucket, nil, 1.4e6, 1.6e6},
		{"the same, and the interface tells", bucket, bucket, 1.4e6, 1.6e6},
		{"a bucket after slow start", late, late, 1.4e6, 1.6e6},
	} {
		f := rowsOf(c.read, c.nic)
		if got, _ := burst(f, f.rates(), 20e6); got < c.least || got > c.most {
			t.Errorf("%s: %.0f bytes", c.name, got)
		}
	}
}

// What a program reads may have come before: the interface bounds it.
func TestCameIn(t *testing.T) {
	f := rowsOf([]float64{9, 9, 9, 9, 9, 9}, []float64{8, 8, 8, 8, 8, 8})
	if most, known := f.cameIn(); !known || most < 7.9e6 || most > 8.1e6 {
		t.Errorf("%v %v", most, known)
	}
	if _, known := rowsOf([]float64{9, 9, 9, 9, 9, 9}, nil).cameIn(); known {
		t.Error("no counters, and it knows")
	}
}

// under is a flow with that typical and largest delay beside it.
func under(name string, rate, p50, p95, p99 float64) flow {
	f := lossy(name, 1, 0, 10000, 0)
	f.rate, f.rise = rate, &result.Quantiles{N: 300, P50: p50, P95: p95, P99: p99}
	return f
}

// A queue is more than the packet that is being sent and the hosts' noise.
func TestQueued(t *testing.T) {
	for _, c := range []struct {
		name               string
		rtt, rate          float64
		p50, p95, p99      float64
		noise              float64
		queued, unqueued   bool
		delayless, hasHalf bool
	}{
		{name: "one BDP at 20 ms", rtt: 0.02, rate: 48e6, p50: 0.0136, p95: 0.019, p99: 0.0196, queued: true},
		{name: "one BDP at 2 ms", rtt: 0.002, rate: 48e6, p50: 0.0009, p95: 0.0018, p99: 0.0019, queued: true},
		{name: "two packets on a slow line are no queue", rtt: 0.01, rate: 2e6, p50: 0.005, p95: 0.011, p99: 0.012, unqueued: true},
		{name: "a policer", rtt: 0.03, rate: 7.6e6, p50: 0.00008, p95: 0.0005, p99: 0.0008, unqueued: true, delayless: true},
		{name: "ten packets", rtt: 0.02, rate: 92e6, p50: 0.0006, p95: 0.0011, p99: 0.0013, unqueued: true},
		{name: "a noisy host: neither", rtt: 0.005, rate: 90e6, p50: 0.002, p95: 0.008, p99: 0.012, noise: 0.008, hasHalf: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			flows := []flow{under("up-1", c.rate, c.p50, c.p95, c.p99)}
			if c.hasHalf {
				flows = append(flows, under("up-half", c.rate/2, c.noise/4, c.noise, 2*c.noise))
			}
			k := &Case{Idle: idle{rtt: c.rtt}}
			l := legOf(k, 0, 0, flows...)
			one := l.one()
			if q, u, d := queued(k, one), unqueued(k, one), delayless(k, one, false); q != c.queued || u != c.unqueued || d != c.delayless {
				t.Errorf("queued %v unqueued %v delayless %v", q, u, d)
			}
		})
	}
}

// The interval of a ratio widens with what is lost together.
func TestSpread(t *testing.T) {
	if low, high := spread(0.004, 0.006, 0.005, 1); low != 0.004 || high != 0.006 {
		t.Errorf("one by one: %v %v", low, high)
	}
	if low, high := spread(0.004, 0.006, 0.005, 5); low > 0.0021 || high < 0.0079 {
		t.Errorf("by five: %v %v", low, high)
	}
}

// A slow stream's half takes as long as its losses need to show.
func TestHalfIsLongEnough(t *testing.T) {
	slow := lossy("up-1", 1, 14, 1100, 8)
	p := Planner{Budget: Default()}
	l := legOf(&Case{}, 0, 0, slow)
	s := p.half(l, l.one())
	if s == nil || s.Plan.Duration < 3*p.Budget.Short/2 || s.Plan.Duration > 5*p.Budget.Short/2 {
		t.Errorf("%+v", s)
	}
	none := lossy("up-1", 1, 0, 17000, 0)
	if s := p.half(l, &none); s.Plan.Duration != p.Budget.Short {
		t.Errorf("%v", s.Plan.Duration)
	}
}

// Others' traffic is what the interface carried and the test did not send, once more than what can
// wait in buffers and behind holes.
func TestForeignTraffic(t *testing.T) {
	row := []float64{18, 18, 18, 18, 18, 18, 18, 18, 18, 18}
	nic := []float64{20, 20, 20, 20, 20, 20, 20, 20, 20, 20}
	for _, c := range []struct {
		name string
		rtt  float64
		want float64
	}{
		{"a short path", 0.01, 2e6},
		{"a long one: it was on the way", 0.5, 0},
	} {
		f := rowsOf(row, nic)
		for i := range f.run.Rows {
			f.run.Rows[i].Sums[0].Bytes = int64(row[i] * 1e6 * 0.2 / 8)
		}
		f.rttMean = c.rtt
		_, foreign, known := foreignTraffic(f, result.Server)
		if !known || foreign < 0.9*c.want || foreign > 1.2*c.want {
			t.Errorf("%s: %v %v", c.name, foreign, known)
		}
	}
}

func TestInRuns(t *testing.T) {
	for _, c := range []struct {
		name       string
		sent, lost int64
		runs       int64
		want       bool
	}{
		{"one by one", 2777, 144, 136, false},
		{"short ones, and many of them", 2777, 144, 97, true},
		{"two long ones", 3208, 13, 2, true},
		{"two of two", 3208, 4, 2, false},
		{"chance at a high loss", 3000, 1000, 667, false},
	} {
		u := &result.UDPLoss{Sent: c.sent, Lost: c.lost, Ratio: float64(c.lost) / float64(c.sent)}
		p := &result.LossPeriods{Runs: c.runs, MeanLength: float64(c.lost) / float64(c.runs), Conditional: float64(c.lost-c.runs) / float64(c.lost)}
		if got := inRuns(p, u); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
