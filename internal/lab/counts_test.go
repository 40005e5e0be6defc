package lab

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/lab/forward"
	"github.com/fullbore-net/fullbore/internal/lab/link"
	"github.com/fullbore-net/fullbore/internal/lab/truth"
)

// udpPlay has two streams up: of ten datagrams each one is lost; in the first, one comes
// twice and one comes two late.
func udpPlay() *Play {
	at := func(from int64) (delay []int64) {
		for i := range int64(10) {
			delay = append(delay, (from+i)*int64(time.Millisecond))
		}
		return delay
	}
	r := &LinkReport{}
	r.Directions[0] = forward.Direction{Datagrams: []truth.Datagrams{
		{In: 10, Lost: 1, Order: []int64{0, 1, 1, 2, 4, 5, 3, 7, 8, 9}, Delay: at(20)},
		{
			In: 10, Lost: 1, Order: []int64{0, 1, 2, 3, 4, 5, 6, 7, 8}, Delay: at(5)[:9],
			Series: truth.Series{Millis: []int64{100, 101}, Bytes: []int64{500, 900}},
		},
	}}
	r.Directions[0].Repeats, r.Directions[1].Repeats = 50, 12
	return &Play{
		Link:   r,
		Client: Result{Stdout: `{"in": 20, "out": 18, "lost": 2, "dup": 1, "late": 1, "extent": 2, "p50": 0.004, "p95": 0.009, "p99": 0.0092, "x": null, "bytes": 900, "s": 0.1, "e": 0.2, "zero": 0}`},
		Server: Result{Stdout: `{"in": 10, "drops": 51}`},
		NFT:    []link.Count{{Packets: 7, Bytes: 7*28 + 12*1400}, {Packets: 3, Bytes: 100}},
		SNMP:   []int64{50, 0, 50},
	}
}

func TestJudgeUDP(t *testing.T) {
	path := func(s string) Path { return mustPath(t, s) }
	const within = 200 * time.Microsecond
	tests := []struct {
		name   string
		expect UDPExpect
		play   func(p *Play)
		want   []string
	}{
		{"all right", UDPExpect{
			Direction: "up", Document: "client", Stream: -1, Within: within, Sent: path("in"), Received: path("out"), Lost: path("lost"),
			Duplicates: path("dup"), Reordered: path("late"), Extent: path("extent"), PDV50: path("p50"), PDV95: path("p95"), PDV99: path("p99"),
		}, nil, nil},
		{"one stream", UDPExpect{Direction: "up", Document: "server", Stream: 1, Sent: path("in")}, nil, nil},
		{"slack", UDPExpect{Direction: "up", Document: "server", Stream: -1, Sent: path("in"), Slack: 10}, nil, nil},
		{"all wrong", UDPExpect{
			Direction: "up", Document: "client", Stream: -1, Within: within, Slack: 1, Sent: path("lost"), Received: path("in"), Lost: path("in"),
			Duplicates: path("in"), Reordered: path("x"), Extent: path("none"), PDV50: path("p95"), PDV95: path("x"), PDV99: path("p50"),
		}, nil, []string{
			"udp up: claimed 2 sent, the link's count is 20 (± 1)",
			"udp up: claimed 20 received, the link's count is 18 (± 1)",
			"udp up: claimed 20 lost, the link's count is 2 (± 1)",
			"udp up: claimed 20 duplicates, the link's count is 1 (± 1)",
			"udp up: reordered: client: null is no number",
			"udp up: extent: client: there is no none",
			"udp up: claimed delay variation p50 9.000 ms, the link's log has 4.000 ms: off by 5ms, want within 200µs",
			"udp up: delay variation p95: client: null is no number",
			"udp up: claimed delay variation p99 4.000 ms, the link's log has 9.000 ms: off by -5ms, want within 200µs",
		}},
		{"off by one", UDPExpect{Direction: "up", Document: "client", Stream: -1, Lost: path("dup")}, nil, []string{
			"udp up: claimed 1 lost, the link's count is 2",
		}},
		{"the other direction", UDPExpect{Direction: "down", Document: "client", Stream: -1, Lost: path("lost")}, nil, []string{
			"udp down: no datagram was on the link",
		}},
		{"no such stream", UDPExpect{Direction: "up", Document: "client", Stream: 2, Lost: path("lost")}, nil, []string{
			"udp up: stream 2 of 2 on the link",
		}},
		{"fragments", UDPExpect{Direction: "up", Document: "client", Stream: -1, Lost: path("lost")}, func(p *Play) { p.Link.Directions[0].Fragments = 3 }, []string{
			"udp up: 3 fragments of larger datagrams were on the link, which it cannot tell apart",
		}},
		{"on the way", UDPExpect{Direction: "up", Document: "server", Stream: 1, Sent: path("in")}, func(p *Play) { p.Link.Directions[0].Datagrams[1].Lost = 0 }, []string{
			"udp up: 1 datagrams were still on the link when both programs had ended",
		}},
		{"all lost", UDPExpect{Direction: "up", Document: "client", Stream: 0, PDV50: path("p50")}, func(p *Play) {
			p.Link.Directions[0].Datagrams[0] = truth.Datagrams{In: 3, Lost: 3}
		}, []string{"udp up: delay variation p50: nothing left the link"}},
		{"no document", UDPExpect{Direction: "up", Document: "server", Stream: -1, Lost: path("lost")}, func(p *Play) { p.Server.Stdout = "" }, []string{
			"udp up: server: no JSON document on stdout",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := udpPlay()
			if tt.play != nil {
				tt.play(p)
			}
			e := &Expect{UDP: []UDPExpect{tt.expect}}
			if diff := cmp.Diff(tt.want, e.judgeCounts(p)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestJudgeCounters(t *testing.T) {
	path := func(s string) Path { return mustPath(t, s) }
	right := &Expect{
		NFT: []NFTExpect{
			{Host: "server", Counter: "c", Document: "client", Claim: path("bytes"), Payload: 1400, Headers: 28, Slack: 888},
			{Host: "server", Counter: "d", Document: "client", Claim: path("lost"), Slack: 1},
		},
		SNMP: []SNMPExpect{{Host: "server", Counter: "Udp.X", Document: "server", Claim: path("drops"), Tolerance: 0.02, Least: 50}},
		Retransmits: []RetransmitExpect{
			{Direction: "up", Document: "server", Claim: path("drops"), Tolerance: 0.02, Least: 50},
			{Direction: "down", Document: "server", Claim: path("in"), Slack: 2},
		},
	}
	if got := right.judgeCounts(udpPlay()); got != nil {
		t.Errorf("right: %q", got)
	}
	wrong := &Expect{
		NFT: []NFTExpect{
			{Host: "server", Counter: "c", Document: "client", Claim: path("in"), Payload: 1400, Headers: 28},
			{Host: "router", Counter: "d", Document: "client", Claim: path("none")},
		},
		SNMP: []SNMPExpect{
			{Host: "server", Counter: "Udp.X", Document: "server", Claim: path("drops"), Tolerance: 0.01},
			{Host: "client", Counter: "Udp.Y", Document: "server", Claim: path("drops"), Least: 1},
			{Host: "server", Counter: "Udp.X", Document: "server", Claim: path("in"), Tolerance: 0.02, Slack: 2},
		},
		Retransmits: []RetransmitExpect{
			{Direction: "up", Document: "server", Claim: path("drops"), Tolerance: 0.01},
			{Direction: "up", Document: "server", Claim: path("drops"), Tolerance: 0.02, Least: 51},
			{Direction: "down", Document: "server", Claim: path("none")},
			{Direction: "down", Document: "server", Claim: path("in"), Slack: 1},
		},
	}
	want := []string{
		"nft c of the server: claimed 20, the rule counted 12",
		"nft d of the router: client: there is no none",
		"retransmits up: claimed 51, the link counted 50 (want within 1 % + 0)",
		"retransmits up: the link counted 50, which is less than the 51 that there should be",
		"retransmits down: server: there is no none",
		"retransmits down: claimed 10, the link counted 12 (want within 0 % + 1)",
		"Udp.X of the server: claimed 51, it grew by 50 (want within 1 %)",
		"Udp.Y of the client: grew by 0, which is less than the 1 that there should be",
		"Udp.X of the server: claimed 10, it grew by 50 (want within 2 % + 2)",
	}
	if diff := cmp.Diff(want, wrong.judgeCounts(udpPlay())); diff != "" {
		t.Errorf("wrong (-want +got):\n%s", diff)
	}
	odd := &Expect{NFT: []NFTExpect{
		{Host: "server", Counter: "d", Document: "client", Claim: path("lost"), Slack: 5},
		{Host: "server", Counter: "e", Document: "client", Claim: path("in"), Payload: 1400, Headers: 28},
	}}
	want = []string{"nft e of the server: 100 bytes in 3 packets are not headers of 28 bytes and datagrams of 1400"}
	if diff := cmp.Diff(want, odd.judgeCounts(udpPlay())); diff != "" {
		t.Errorf("odd bytes (-want +got):\n%s", diff)
	}
}

// TestJudgeGoodputUDP: what left in the window, whatever TCP did meanwhile.
func TestJudgeGoodputUDP(t *testing.T) {
	g := GoodputExpect{
		Direction: "up", Transport: "udp", Document: "client", Tolerance: 0.005,
		Bytes: mustPath(t, "bytes"), Start: mustPath(t, "s"), End: mustPath(t, "e"), Zero: mustPath(t, "zero"),
	}
	if err := g.judge(udpPlay()); err != nil {
		t.Error(err)
	}
	g.Transport = "tcp"
	if err := g.judge(udpPlay()); err == nil || !strings.Contains(err.Error(), "nothing left the link") {
		t.Errorf("as TCP: %v", err)
	}
}

// TestFaultWords: the short forms of the command line.
func TestFaultWords(t *testing.T) {
	type result struct {
		Value any
		Err   string
	}
	of := func(v any, err error) result {
		if err != nil {
			return result{Err: err.Error()}
		}
		return result{Value: v}
	}
	const ms = time.Millisecond
	tests := []struct {
		parse, text string
		want        result
	}{
		{"jitter", "0-4ms", result{Value: link.Jitter{Most: 4 * ms}}},
		{"jitter", "1.5 - 4 ms", result{Value: link.Jitter{Least: 1500 * time.Microsecond, Most: 4 * ms}}},
		{"jitter", "500us-4ms", result{Value: link.Jitter{Least: 500 * time.Microsecond, Most: 4 * ms}}},
		{"jitter", "4ms-4ms", result{Value: link.Jitter{Least: 4 * ms, Most: 4 * ms}}},
		{"jitter", "0-0ms", result{Err: `"0-0ms" is no range of times like 0-4ms, up to 1m0s`}},
		{"jitter", "-4ms", result{Err: `"-4ms" is no range of times like 0-4ms, up to 1m0s`}},
		{"jitter", "0-2min", result{Err: `"0-2min" is no range of times like 0-4ms, up to 1m0s`}},
		{"jitter", "", result{Err: `"" is no range of times like 0-4ms, up to 1m0s`}},
		{"reorder", "1%/3", result{Value: link.Reorder{Share: 0.01, Packets: 3}}},
		{"reorder", "100% / 5ms", result{Value: link.Reorder{Share: 1, Time: 5 * ms}}},
		{"reorder", "1%/1001", result{Err: `"1%/1001": a packet is held back for 1 to 1000 others`}},
		{"reorder", "1/3", result{Err: `"1" is not a percentage from 0% to 100%`}},
		{"reorder", "1%/0s", result{Err: `"1%/0s" is neither like 1%/3 (packets) nor like 1%/5ms`}},
		{"bursts", "0.1%/30%", result{Value: link.Bursts{GoodToBad: 0.001, BadToGood: 0.3}}},
		{"bursts", "0.1%", result{Err: `"0.1%" is not like 0.1%/30%`}},
		{"outage", "2s/300ms", result{Value: link.Outage{At: 2 * time.Second, For: 300 * ms}}},
		{"outage", "2s", result{Err: `"2s" is not like 2s/300ms`}},
		{"outage", "2s/0s", result{Err: `"2s/0s" is not like 2s/300ms`}},
	}
	for _, tt := range tests {
		var got result
		switch tt.parse {
		case "jitter":
			v, err := ParseJitter(tt.text)
			got = of(v, err)
		case "reorder":
			v, err := ParseReorder(tt.text)
			got = of(v, err)
		case "bursts":
			v, err := ParseBursts(tt.text)
			got = of(v, err)
		case "outage":
			v, err := ParseOutage(tt.text)
			got = of(v, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s %q (-want +got):\n%s", tt.parse, tt.text, diff)
		}
	}
}

// TestDescribeFaults: what a path and its report say about faults.
func TestDescribeFaults(t *testing.T) {
	const ms = time.Millisecond
	f := link.Faults{
		Jitter: link.Jitter{Most: 4 * ms, KeepOrder: true}, Reorder: link.Reorder{Share: 0.01, Packets: 3}, Duplicate: 0.02,
		Bursts: link.Bursts{GoodToBad: 0.001, BadToGood: 0.3}, Outage: link.Outage{At: 2 * time.Second, For: 300 * ms}, Hole: 1400,
	}
	want := ", jitter 0 s to 4 ms in order, 1 % held back for 3 packets, 2 % doubled, bursts of loss (p 0.1 %, r 30 %), an outage of 300 ms after 2 s, a hole above 1400 bytes"
	if diff := cmp.Diff(want, describeFaults(f)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := describeFaults(link.Faults{Reorder: link.Reorder{Share: 0.5, Time: 5 * ms}}); got != ", 50 % held back for 5 ms" {
		t.Errorf("by time: %q", got)
	}
	if got := describeFaults(link.Faults{}); got != "" {
		t.Errorf("none: %q", got)
	}
	counts := func(n int64) link.Count { return link.Count{Packets: n} }
	s := link.Stats{Burst: counts(1), Outage: counts(2), Hole: counts(3), Duplicated: counts(4), Reordered: counts(5)}
	if got := faultCounts(s); got != ", 1 in bursts, 2 in the outage, 3 too large, 4 doubled, 5 held back" {
		t.Errorf("counts: %q", got)
	}
}

// TestJudgeWindow: what came again before and after the claim's time is not in it.
func TestJudgeWindow(t *testing.T) {
	path := func(s string) Path { return mustPath(t, s) }
	ms := func(n ...int) (out []time.Duration) {
		for _, n := range n {
			out = append(out, time.Duration(n)*time.Millisecond)
		}
		return out
	}
	play := func() *Play {
		p := udpPlay()
		p.Client.Stdout = `{"n": 3, "s": 0.1, "e": 0.2, "zero": 1e9}`
		p.Link.Directions[0].Repeats, p.Link.Directions[0].Repeated = 6, ms(1099, 1100, 1150, 1199, 1200, 1500)
		p.Sampled = [][]Sample{{{ms(1080)[0], 10}, {ms(1110)[0], 11}, {ms(1190)[0], 13}, {ms(1210)[0], 40}}}
		return p
	}
	w := Window{Start: path("s"), End: path("e"), Zero: path("zero")}
	e := &Expect{
		Retransmits: []RetransmitExpect{{Direction: "up", Document: "client", Claim: path("n"), Window: w}},
		SNMP:        []SNMPExpect{{Host: "client", Counter: "Tcp.R", Document: "client", Claim: path("n"), Window: w}},
	}
	if got := e.judgeCounts(play()); got != nil {
		t.Errorf("right: %q", got)
	}
	p := play()
	p.Client.Stdout = `{"n": 6, "s": 0.1, "e": 0.2, "zero": 1e9}`
	want := []string{
		"retransmits up: claimed 6, the link counted 3 (want within 0 % + 0)",
		"Tcp.R of the client: claimed 6, it grew by 3 (want within 0 %)",
	}
	if diff := cmp.Diff(want, e.judgeCounts(p)); diff != "" {
		t.Errorf("wrong (-want +got):\n%s", diff)
	}
	p = play()
	p.Link.Directions[0].Repeats, p.Sampled = 7, [][]Sample{nil}
	want = []string{
		"retransmits up: the link counted 7, and knows of 6 when they came",
		"Tcp.R of the client: was not sampled",
	}
	if diff := cmp.Diff(want, e.judgeCounts(p)); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
}
