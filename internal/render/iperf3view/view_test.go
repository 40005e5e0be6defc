package iperf3view_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/result"
)

func ptr(v int64) *int64 { return &v }

func TestStage(t *testing.T) {
	t.Parallel()
	streams := []result.Stream{{ID: 1}}
	for name, c := range map[string]struct {
		run  result.Run
		want iperf3view.Stage
	}{
		"nothing":          {result.Run{}, iperf3view.Nothing},
		"not connected":    {result.Run{End: result.Client, Test: result.Test{Bitrate: 1}, Wire: &result.Wire{}}, iperf3view.Nothing},
		"idle server":      {result.Run{End: result.Server, Wire: &result.Wire{}}, iperf3view.Nothing},
		"offered":          {result.Run{End: result.Client, Wire: &result.Wire{Cookie: "c", TestStarted: true}}, iperf3view.Parameters},
		"refused by us":    {result.Run{End: result.Server, Test: result.Test{Bitrate: 1}, Wire: &result.Wire{}}, iperf3view.Parameters},
		"streams":          {result.Run{Streams: streams, Wire: &result.Wire{Cookie: "c"}}, iperf3view.Streams},
		"started":          {result.Run{Streams: streams, Wire: &result.Wire{Cookie: "c", TestStarted: true}}, iperf3view.Started},
		"nothing of a run": {result.Run{Streams: streams}, iperf3view.Nothing},
	} {
		if got := iperf3view.StageOf(&c.run); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestComplete: a closing report only when nothing went wrong or one end stopped.
func TestComplete(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  *result.Error
		want bool
	}{
		"good":        {nil, true},
		"signal":      {&result.Error{Text: "x", Interrupted: true}, true},
		"told":        {&result.Error{Text: "x", Remote: true, Number: 120}, true},
		"told, words": {&result.Error{Text: iperf3view.ClientTerminated}, true},
		"lost":        {&result.Error{Text: "control socket has closed unexpectedly", Remote: true, Number: 109}, false},
		"own fault":   {&result.Error{Text: "x", Number: 119}, false},
	} {
		r := &result.Run{Streams: []result.Stream{{Sender: &result.Total{}}}, Err: c.err}
		if got := iperf3view.Complete(r); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		r.Streams[0].Sender = nil
		if iperf3view.Complete(r) {
			t.Errorf("%s: complete without totals", name)
		}
	}
}

// TestSecs: times keep their microseconds and are added up in two steps.
func TestSecs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		us := rapid.Int64Range(-1e12, 1e12).Draw(t, "us")
		s := iperf3view.Secs(us)
		if iperf3view.Micros(s) != us {
			t.Fatalf("%d µs is %v s is %d µs", us, s, iperf3view.Micros(s))
		}
	})
	whole, micros := 2.0, 1140.0
	if got := iperf3view.Secs(2_001_140); got != whole+micros/1e6 {
		t.Errorf("%v", got)
	}
}

// TestServerSeesItsOwnHalf: whatever a server learned of its client is not in its report.
func TestServerSeesItsOwnHalf(t *testing.T) {
	t.Parallel()
	r := &result.Run{
		End: result.Server, Test: result.Test{Transport: "tcp", Direction: "both", Streams: 1},
		Wire: &result.Wire{HasRetrans: true, ControlMSS: 1448},
		Streams: []result.Stream{
			{ID: 1, Socket: 5, Direction: result.Up, Sender: &result.Total{End: 9, Bytes: 1, Retransmits: ptr(4)}, Receiver: &result.Total{End: 2, Bytes: 10}, TCP: &result.TCPSummary{MaxCwnd: 1}},
			{ID: 3, Socket: 8, Direction: result.Down, Sender: &result.Total{End: 3, Bytes: 20, Retransmits: ptr(5)}, Receiver: &result.Total{End: 9, Bytes: 2}, TCP: &result.TCPSummary{MaxCwnd: 2}},
		},
		CPU: result.CPUs{Client: &result.CPU{Total: 1, Congestion: "a"}, Server: &result.CPU{Total: 2, Congestion: "b"}},
	}
	side := func(end float64, bytes int64) iperf3view.Side {
		return iperf3view.Side{End: end, Seconds: end, Bytes: bytes, Rate: float64(bytes) / end}
	}
	up := iperf3view.Total{Socket: 5, Sent: side(2, 0), Received: side(2, 10)}
	down := iperf3view.Total{Socket: 8, Sent: side(2, 20), Received: side(2, 0), Retransmits: ptr(5), TCP: result.TCPSummary{MaxCwnd: 2}}
	sumUp, sumDown := up, down
	sumUp.Socket, sumDown.Socket, sumDown.TCP = 0, 0, result.TCPSummary{}
	want := []iperf3view.Group{
		{Direction: result.Up, Streams: []iperf3view.Total{up}, Sum: sumUp},
		{Direction: result.Down, Sends: true, Streams: []iperf3view.Total{down}, Sum: sumDown},
	}
	if diff := cmp.Diff(want, iperf3view.Summary(r)); diff != "" {
		t.Error(diff)
	}
	if own, other := iperf3view.CPU(r); own.Total != 2 || other.Total != 0 {
		t.Errorf("cpu %v %v", own, other)
	}
	for d, want := range map[result.Direction][2]string{result.Up: {"", "b"}, result.Down: {"b", ""}} {
		if snd, rcv := iperf3view.Congestion(r, d); snd != want[0] || rcv != want[1] {
			t.Errorf("%s: %q %q", d, snd, rcv)
		}
	}
	if iperf3view.ControlMSS(r) != 0 {
		t.Error("a server shows its control MSS")
	}
}

// TestNoKernelFigures: where the system has no TCP_INFO there are no such columns.
func TestNoKernelFigures(t *testing.T) {
	t.Parallel()
	r := &result.Run{
		End: result.Client, Test: result.Test{Transport: "tcp", Direction: "up", Streams: 1, Interval: 1}, Wire: &result.Wire{},
		Streams: []result.Stream{{ID: 1, Socket: 5, Direction: result.Up, Sender: &result.Total{End: 1, Bytes: 1}, Receiver: &result.Total{End: 1}}},
	}
	iv := &result.Interval{End: result.Client, Streams: []result.StreamInterval{{ID: 1, Socket: 5, Sender: true, Stop: 1, Bytes: 8}}}
	b := iperf3view.Interval(r, iv)
	if b.Streams[0].Retransmits != nil || b.Streams[0].TCP != nil || b.Sums[0].Retransmits != nil {
		t.Errorf("%+v", b)
	}
	if g := iperf3view.Summary(r); g[0].Streams[0].Retransmits != nil || g[0].Sum.Retransmits != nil {
		t.Errorf("%+v", g)
	}
	if iperf3view.HasRetransmits(r, result.Up) {
		t.Error("it has")
	}
}
