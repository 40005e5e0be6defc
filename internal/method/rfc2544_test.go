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
	catches := 0
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
		if c := s.Plan.CatchUp; c > 0 {
			catches++
			if load*(1+c) > path || !s.Plan.Steady {
				t.Errorf("%s: %.4g bit/s, and %.2g %% more where it was late, are above %.4g", s.Name, load, 100*c, path)
			}
		}
		lost := max(sent-int64(room), 0)
		good := float64(sent-lost) * payload / seconds
		run := &result.Run{Test: result.Test{Transport: "udp"}, Sums: []result.Sum{{
			Direction: result.Up, Goodput: &good,
			Sender:   &result.Total{End: seconds, Bytes: sent * payload / 8},
			Receiver: &result.Total{End: seconds, Packets: &sent, Lost: &lost},
		}}}
		run.Wire = &result.Wire{Extension: true}
		none, some := int64(0), int64(7)
		for i := range int(seconds * 10) {
			l := &none
			if len(s.With) > 0 && (i <= 20 || i == 25) { // the overload, and one row half a second after it
				l = &some
			}
			run.Rows = append(run.Rows, result.Interval{End: result.Server, Sums: []result.IntervalSum{{Direction: result.Up, Start: float64(i) / 10, Stop: float64(i+1) / 10, Lost: l}}})
		}
		done := method.Done{Step: s, Run: run}
		for _, p := range s.With {
			if got := float64(s.Plan.Bitrate+p.Bitrate) / path; math.Abs(got-1.1) > 0.02 || p.Duration >= s.Plan.Duration {
				t.Errorf("an overload of %.3f of the path for %v of %v", got, p.Duration, s.Plan.Duration)
			}
			done.With = append(done.With, &result.Run{Test: run.Test, Sums: []result.Sum{{
				Direction: result.Up, Sender: &result.Total{End: p.Duration.Seconds()}, Receiver: &result.Total{Packets: &some, Lost: &some},
			}}})
		}
		history = append(history, done)
		if len(history) > 300 {
			t.Fatal("it does not end")
		}
	}
	got := r.Answer(history)
	if len(got) != 1 || catches == 0 {
		t.Fatalf("%d loads were made up for, %+v", catches, got)
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
	if x.Recovery == nil || math.Abs(*x.Recovery-0.6) > 1e-6 {
		t.Errorf("recovery %v, want 0.6 s: the last row with a loss ends at 2.6", x.Recovery)
	}
	// What a plain peer cannot do at the same time is not asked of it, and not known.
	for i := range history {
		history[i].Run.Wire.Extension = false
	}
	history = history[:len(history)-1]
	if s, more := r.Next(history); more {
		t.Errorf("to a plain peer %q", s.Name)
	}
	if x := r.Answer(history)[0]; x.Recovery != nil {
		t.Errorf("to a plain peer: %v", *x.Recovery)
	}
}

// A load at which the receiver's socket dropped merged datagrams is made again without merging, and counts once;
// what a socket dropped and what a sender did not reach is told with the point.
func TestRFC2544CurveNamesTheHosts(t *testing.T) {
	r := method.RFC2544{Sizes: []int{1518}, Directions: []plan.Direction{plan.Up}, Link: 1e9, Quick: true, Parts: []string{method.PartLoss}}
	const payload = 1472 * 8
	var history []method.Done
	again := 0
	for {
		s, more := r.Next(history)
		if !more {
			break
		}
		load, seconds := float64(s.Plan.Bitrate), s.Plan.Duration.Seconds()
		offered := math.Min(load, 0.88*r.Link) // the sender's own limit
		sent := int64(offered * seconds / payload)
		lost, merged := int64(0), false
		if load > 0.85*0.97*r.Link {
			lost = sent / 10
			merged = s.Plan.Offload != plan.OffloadOff
		}
		if s.Plan.Offload == plan.OffloadOff && lost > 0 {
			again++
		}
		socket, good := lost, float64(sent-lost)*payload/seconds
		if merged {
			socket = max(lost/64, 1)
		}
		history = append(history, method.Done{Step: s, Run: &result.Run{
			Test: result.Test{Transport: "udp"}, Wire: &result.Wire{Extension: true}, Sums: []result.Sum{{
				Direction: result.Up, Goodput: &good, Sender: &result.Total{End: seconds, Bytes: sent * payload / 8},
				Receiver: &result.Total{End: seconds, Packets: &sent, Lost: &lost},
				UDP: &result.UDPStream{
					Received: &result.UDPReceived{Coalesced: merged},
					Loss:     &result.UDPLoss{Sent: sent, Lost: lost, Ratio: float64(lost) / float64(sent), Socket: &socket},
				},
			}},
		}})
		if len(history) > 200 {
			t.Fatal("it does not end")
		}
	}
	got := r.Answer(history)
	if len(got) != 1 || len(got[0].Loss) < 4 || again < 2 {
		t.Fatalf("%d made again: %+v", again, got)
	}
	for i, p := range got[0].Loss {
		if i > 0 && p.Share > got[0].Loss[i-1].Share-0.05 {
			t.Errorf("a load counts twice: %+v", got[0].Loss)
		}
		if p.Short != (p.Share > 0.93) || math.Abs(p.Own-p.Loss) > 1e-9 {
			t.Errorf("%+v", p)
		}
	}
}
