package suite

import (
	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/result"
)

// reading is one round's figure.
type reading struct {
	value    float64
	peak     float64 // throughput: the best interval; 0 = not known
	lost, of int64   // of a share that was counted
	network  *int64  // of lost: what the hosts cannot have dropped
	exact    bool    // network is no mere bound
	known    bool
	unknown  string // why it is not known, a clause
}

func lossOf(run *result.Run, d result.Direction) *result.UDPLoss {
	if run == nil {
		return nil
	}
	return conclude.LossOf(run, d)
}

func missing(why string) reading { return reading{unknown: why} }

func value(v float64) reading { return reading{value: v, known: true} }

const notTold = "the other end does not tell it (fullbore serve there would)"

// read takes a figure out of a run.
func read(word string, run *result.Run, d result.Direction) reading {
	if run == nil {
		return missing("the test could not begin")
	}
	switch word {
	case "throughput":
		return throughput(run, d)
	case "efficiency":
		if r, ok := method.RetransmitRatio(run, d); ok {
			return value(1 - r)
		}
		return missing("the sending end does not tell its retransmissions")
	case "rise_p95", "loss_loaded":
		return missing("nothing answered small packets beside the load")
	}
	return datagrams(word, run, d)
}

func throughput(run *result.Run, d result.Direction) reading {
	h := conclude.HeadlineOf(run, d)
	if !h.Basis.Arrived() || h.Seconds <= 0 {
		return missing("what arrived is not told")
	}
	r := value(h.BPS)
	if s := run.Sum(d); s != nil {
		if s.Goodput != nil && h.Basis == conclude.Received && run.Test.Transport != "udp" {
			r.value = *s.Goodput
		}
		if s.Peak != nil {
			r.peak = *s.Peak
		}
	}
	return r
}

// datagrams reads the figures of UDP.
func datagrams(word string, run *result.Run, d result.Direction) reading {
	s := run.Sum(d)
	if s == nil {
		return missing("no datagram was counted")
	}
	var got *result.UDPReceived
	if s.UDP != nil {
		got = s.UDP.Received
	}
	switch word {
	case "loss":
		l := lossOf(run, d)
		if l == nil || l.Sent == 0 {
			return missing("the ends' counts of datagrams are not both known")
		}
		return reading{value: l.Ratio, lost: l.Lost, of: l.Sent, network: l.Network, exact: l.Attribution == "exact", known: true}
	case "duplicates":
		if got == nil {
			return missing(notTold)
		}
		return value(float64(got.Duplicates))
	case "reordering":
		switch {
		case got != nil && got.Packets > 0:
			return reading{value: float64(got.Reordered) / float64(got.Packets), lost: got.Reordered, of: got.Packets, known: true}
		case s.Receiver != nil && s.Receiver.OutOfOrder != nil && s.Receiver.Packets != nil && *s.Receiver.Packets > 0:
			n, of := *s.Receiver.OutOfOrder, *s.Receiver.Packets
			return reading{value: float64(n) / float64(of), lost: n, of: of, known: true}
		}
		return missing(notTold)
	case "pdv_p99":
		if got == nil || got.PDV == nil {
			return missing(notTold)
		}
		return value(got.PDV.P99)
	case "jitter":
		switch {
		case got != nil && got.Jitter != nil:
			return value(got.Jitter.Mean)
		case s.Receiver != nil && s.Receiver.Jitter != nil:
			return value(*s.Receiver.Jitter)
		}
		return missing(notTold)
	}
	return missing("nothing tells it")
}

// echo is a run's probe stream; nil when nothing was answered.
func echo(run *result.Run) *result.Probes {
	if run == nil {
		return nil
	}
	for i := range run.Probes {
		if p := &run.Probes[i]; p.Kind == "udp-echo" && p.RoundTrip != nil {
			return p
		}
	}
	return nil
}

// rise is how much longer than on the empty path the slowest twentieth of small packets takes
// beside a load: of the round trip, so that no clock is needed; the load is in one direction, and
// so is the wait. Where nothing answers, TCP's own round trips stand in, if this end sends.
func rise(idle, loaded *result.Run, d result.Direction) (r reading, how string) {
	if loaded == nil {
		return missing("the test could not begin"), ""
	}
	if a, b := echo(idle), echo(loaded); a != nil && b != nil {
		return value(max(b.RoundTrip.P95-a.RoundTrip.P50, 0)), "round trip " + conclude.Time(a.RoundTrip.P50) + " empty (p50), " + conclude.Time(b.RoundTrip.P95) + " beside the load (p95)"
	}
	if d != result.Up {
		return missing("nothing answers small packets there, and the sending end does not tell TCP's round trips"), ""
	}
	var trips []float64
	least := 0.0
	for _, s := range loaded.Streams {
		if s.TCP != nil && s.TCP.MinRTT > 0 && (least == 0 || float64(s.TCP.MinRTT)/1e6 < least) {
			least = float64(s.TCP.MinRTT) / 1e6
		}
		if s.TCP != nil && s.TCP.Last.MinRTT != nil && *s.TCP.Last.MinRTT > 0 && float64(*s.TCP.Last.MinRTT)/1e6 < least {
			least = float64(*s.TCP.Last.MinRTT) / 1e6
		}
	}
	for _, row := range loaded.Rows {
		if row.Omitted || row.End != result.Client {
			continue
		}
		for _, s := range row.Streams {
			if s.Sender && s.TCP != nil && s.TCP.RTT > 0 {
				trips = append(trips, float64(s.TCP.RTT)/1e6)
			}
		}
	}
	p95, ok := quantile(trips, 0.95)
	if !ok || least == 0 {
		return missing("nothing answers small packets there, and TCP's round trips are not known"), ""
	}
	return value(max(p95-least, 0)), "by TCP's own smoothed round trips, since nothing answers small packets there: " + conclude.Time(least) + " least, " + conclude.Time(p95) + " beside the load (p95)"
}

// lossLoaded is the loss of small packets beside a load, on their way in direction d.
func lossLoaded(run *result.Run, d result.Direction) reading {
	p := echo(run)
	if p == nil {
		return missing("nothing answered small packets beside the load")
	}
	lost := p.LostUp
	sent := p.Sent
	if d == result.Down {
		lost = p.LostDown
		if p.LostUp != nil {
			sent -= *p.LostUp
		}
	}
	if lost == nil || sent <= 0 {
		return missing("on which way small packets were lost is not known")
	}
	return reading{value: float64(*lost) / float64(sent), lost: *lost, of: sent, known: true}
}
