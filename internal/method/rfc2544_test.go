package method_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Spec methods §8: the frame rates of 1 Gbit/s.
func TestFrameRateGolden(t *testing.T) {
	want := []float64{1488095, 844594, 452898, 234962, 119731, 96153, 81274}
	for i, frame := range method.FrameSizes() {
		if got := math.Floor(method.FrameRate(1e9, frame)); got != want[i] {
			t.Errorf("%d bytes: %v, want %v", frame, got, want[i])
		}
	}
	if p, ok := method.FramePayload(64, false); p != 18 || !ok {
		t.Errorf("a frame of 64 carries %d", p)
	}
	if p, ok := method.FramePayload(64, true); ok {
		t.Errorf("over IPv6 it has no room for a datagram of ours: %d", p)
	}
	if p, _ := method.FramePayload(1518, false); p != 1472 {
		t.Errorf("a frame of 1518 carries %d", p)
	}
}

// Spec methods §8: 26 000 frames, 1 488 095 and 1 200 000 frames/s.
func TestBackToBackGolden(t *testing.T) {
	b, ok := method.BackToBackOf([]float64{26000, 25000, 27000}, 1488095, 1200000)
	if !ok || math.Abs(b.Implied-17.472e-3) > 5e-7 || math.Abs(b.Corrected-3.383e-3) > 5e-7 {
		t.Errorf("implied %v, corrected %v", b.Implied, b.Corrected)
	}
	if b.Mean != 26000 || b.Min != 25000 || b.Max != 27000 || b.Dev != 1000 {
		t.Errorf("%+v", b)
	}
	if _, ok := method.BackToBackOf(nil, 1488095, 0); ok {
		t.Error("of no repeats there is no figure")
	}
}

// A whole procedure on a path of 40 % of the link with a buffer of 2000 frames.
func TestRFC2544(t *testing.T) {
	r := method.RFC2544{Sizes: []int{1518}, Directions: []plan.Direction{plan.Up}, Link: 1e9, Quick: true}
	const payload = 1472 * 8
	path, buffer := 400e6, 2000.0 // payload bit/s, frames
	rng := rand.New(rand.NewPCG(1, 1))
	var history []method.Done
	for {
		s, more := r.Next(history)
		if !more {
			break
		}
		load, seconds := float64(s.Plan.Bitrate), s.Plan.Duration.Seconds()
		sent := int64(load * seconds / payload)
		if s.Plan.Blocks > 0 {
			sent = s.Plan.Blocks
			seconds = float64(sent) * payload / load
		}
		room := path*seconds/payload + buffer*(0.95+0.1*rng.Float64())
		if s.Plan.Blocks == 0 {
			room = path * seconds / payload
		}
		lost := max(sent-int64(room), 0)
		good := float64(sent-lost) * payload / seconds
		run := &result.Run{Test: result.Test{Transport: "udp"}, Sums: []result.Sum{{
			Direction: result.Up, Goodput: &good,
			Sender:   &result.Total{End: seconds, Bytes: sent * payload / 8},
			Receiver: &result.Total{End: seconds, Packets: &sent, Lost: &lost},
		}}}
		rest := int64(0)
		for i := range 5 {
			l := &rest
			if i < 2 {
				l = &lost
			}
			run.Rows = append(run.Rows, result.Interval{End: result.Server, Sums: []result.IntervalSum{{Direction: result.Up, Start: float64(i) / 10, Stop: float64(i+1) / 10, Lost: l}}})
		}
		history = append(history, method.Done{Step: s, Run: run})
		if len(history) > 300 {
			t.Fatal("it does not end")
		}
	}
	got := r.Answer(history)
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	x := got[0]
	if want := path / payload; x.Throughput > want*1.001 || x.Throughput < want*0.98 {
		t.Errorf("throughput %v of %v frames/s", x.Throughput, want)
	}
	if n := len(x.Loss); n < 8 || x.Loss[0].Share < 0.999 || math.Abs(x.Loss[0].Loss-(1-400/970.)) > 0.03 || x.Loss[n-1].Loss != 0 || x.Loss[n-2].Loss != 0 || x.Loss[n-3].Loss == 0 {
		t.Errorf("loss curve %+v", x.Loss)
	}
	// A burst at the link's rate fills the buffer by what the path does not take meanwhile.
	full := buffer / (1 - 400e6/(method.FrameRate(1e9, 1518)*payload))
	if b := x.Bursts; b == nil || len(b.Bursts) != 3 || b.Mean < 0.88*full || b.Mean > 1.06*full || b.Endless {
		t.Errorf("bursts %+v, want about %v", b, full)
	}
	if x.Recovery == nil || *x.Recovery != 0 {
		t.Errorf("recovery %v: nothing was lost at half the rate", x.Recovery)
	}
}
