package result_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/result"
)

func udpStream(id int, bytes int64, u *result.UDPStream) result.Stream {
	packets, lost := bytes/1000, int64(0)
	return result.Stream{
		ID: id, Direction: result.Up, UDP: u,
		Sender:   &result.Total{End: 2, Bytes: bytes, Packets: &packets},
		Receiver: &result.Total{End: 2, Bytes: bytes + 500, Packets: &packets, Lost: &lost}, // a duplicate, as iperf3 counts
	}
}

func sumOf(t *testing.T, streams ...result.Stream) result.Sum {
	t.Helper()
	run := result.Fold([]result.Event{
		{Kind: result.KindStart, Head: &result.Run{End: result.Client, Streams: streams}},
		{Kind: result.KindFinish, Finish: &result.Finish{Streams: streams}},
	})
	if len(run.Sums) != 1 {
		t.Fatalf("%d sums", len(run.Sums))
	}
	return run.Sums[0]
}

// What was delivered is without duplicates, where the receiver tells them apart.
func TestGoodputOfUDP(t *testing.T) {
	known := sumOf(t, udpStream(1, 10000, &result.UDPStream{Received: &result.UDPReceived{Packets: 10, Bytes: 10000}}))
	if known.Goodput == nil || *known.Goodput != 40000 {
		t.Errorf("goodput %v, want 40000", known.Goodput)
	}
	if plain := sumOf(t, udpStream(1, 10000, nil)); plain.Goodput == nil || *plain.Goodput != 42000 || plain.UDP != nil {
		t.Errorf("from totals: %v, %v", plain.Goodput, plain.UDP)
	}
}

// Counters of the streams add up, quantiles are the worst stream's, and what one stream
// does not tell is not known of all.
func TestSumOfUDP(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	a := &result.UDPStream{
		Sent: &result.UDPSent{Packets: 10, Unsent: 1, PlannedBurst: 1, LargestBurst: 4, Late: &result.Quantiles{N: 10, P99: 1}},
		Received: &result.UDPReceived{
			Packets: 8, Bytes: 8000, Duplicates: 1, Jitter: &result.Jitter{N: 1, Mean: 1, Max: 2}, PDV: &result.Quantiles{N: 8, P99: 3},
			SocketDrops: n(2), Periods: &result.LossPeriods{Runs: 1, Longest: 2, MeanLength: 2}, Stamps: "kernel",
		},
		Loss: &result.UDPLoss{Sent: 10, Lost: 2, Ratio: 0.2, Socket: n(2), Network: n(0), Softnet: n(5), NIC: n(0), Attribution: "exact"},
	}
	b := &result.UDPStream{
		Sent: &result.UDPSent{Packets: 30, PlannedBurst: 2, LargestBurst: 3, Late: &result.Quantiles{N: 30, P99: 2}},
		Received: &result.UDPReceived{
			Packets: 24, Bytes: 24000, Jitter: &result.Jitter{N: 3, Mean: 5, Max: 7}, PDV: &result.Quantiles{N: 24, P99: 1},
			SocketDrops: n(1), Periods: &result.LossPeriods{Runs: 3, Longest: 4, MeanLength: 2}, Stamps: "user",
		},
		Loss: &result.UDPLoss{Sent: 30, Lost: 6, Ratio: 0.2, Socket: n(1), Network: n(5), Softnet: n(5), NIC: n(1), Attribution: "bounded"},
	}
	got := sumOf(t, udpStream(1, 10000, a), udpStream(3, 30000, b)).UDP
	want := &result.UDPStream{
		Sent: &result.UDPSent{Packets: 40, Unsent: 1, PlannedBurst: 2, LargestBurst: 4, Late: b.Sent.Late},
		Received: &result.UDPReceived{
			Packets: 32, Bytes: 32000, Duplicates: 1, Jitter: &result.Jitter{N: 4, Mean: 4, Max: 7}, PDV: a.Received.PDV,
			SocketDrops: n(3), Periods: &result.LossPeriods{Runs: 4, Longest: 4, MeanLength: 2}, Stamps: "user",
		},
		Loss: &result.UDPLoss{Sent: 40, Lost: 8, Ratio: 0.2, High: 1, Socket: n(3), Network: n(5), Softnet: n(5), NIC: n(1), Attribution: "bounded"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if a.Loss.Sent != 10 || a.Sent.Packets != 10 || a.Received.Jitter.N != 1 {
		t.Error("adding up changed a stream")
	}
	half := sumOf(t, udpStream(1, 10000, a), udpStream(3, 30000, &result.UDPStream{Sent: b.Sent})).UDP
	if half == nil || half.Sent == nil || half.Received != nil || half.Loss != nil {
		t.Errorf("one stream told half: %+v", half)
	}
}
