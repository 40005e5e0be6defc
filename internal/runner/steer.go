package runner

import (
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/iperf3"
	"github.com/fullbore-net/fullbore/internal/units"
)

// steering is M-CAP's, for a protocol that asks for payload rates.
type steering struct {
	c     method.CapSteering
	state method.CapState
	ratio float64 // payload per bit of the IP layer
	idle  int64
	most  int64
}

// steeringOf makes the steering of a test of datagrams of block bytes.
func steeringOf(block int, ipv6 bool, s plan.Steer) iperf3.Steering {
	packet := units.UDPHeaders(ipv6, 0).Bytes(block, units.L3)
	x := &steering{c: method.CapDefaults(s.Type == "c"), ratio: float64(block) / float64(packet), most: s.Max}
	x.idle = int64(float64(block) * 8 / plan.SteerEvery.Seconds()) // row 0: a datagram each feedback
	return x
}

// Next implements iperf3.Steering.
func (x *steering) Next(f iperf3.Feedback) int64 {
	x.state = x.c.Next(x.state, method.CapFeedback{Lost: f.Lost, Delay: f.Delay})
	if x.most > 0 { // rows above the most would only be climbed down again
		for x.state.Row > 0 && x.c.Table.Rate(x.state.Row-1)*x.ratio >= float64(x.most) {
			x.state.Row--
		}
	}
	return x.rate()
}

// Idle implements iperf3.Steering.
func (x *steering) Idle() int64 {
	x.state = method.CapState{}
	return x.rate()
}

func (x *steering) rate() int64 {
	bps := x.idle
	if x.state.Row > 0 {
		bps = max(bps, int64(x.c.Table.Rate(x.state.Row)*x.ratio))
	}
	if x.most > 0 {
		bps = min(bps, x.most)
	}
	return bps
}

// rampingOf makes the ramp of a test (M-RPM).
func rampingOf(ra plan.Ramp, streams int) iperf3.Ramping { return method.NewRamping(ra, streams) }
