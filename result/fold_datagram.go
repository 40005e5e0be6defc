package result

// replaceProbes puts p in the place of the earlier figures of its kind and profile.
func replaceProbes(list []Probes, p Probes) []Probes {
	out := append([]Probes(nil), list...)
	for i := range out {
		if out[i].Kind == p.Kind && out[i].Profile == p.Profile {
			out[i] = p
			return out
		}
	}
	return append(out, p)
}

// addUDP sums the accounts of direction d's streams; nil when there are none. Counters
// add up. Jitter is the packet-weighted mean, its Max the largest; quantiles of several
// streams cannot be had from theirs, so they are those of the worst stream (by PDV p99,
// by lateness p99), which is said by N.
func addUDP(streams []Stream, d Direction) *UDPStream {
	var out UDPStream
	n, sent, received, losses := 0, 0, 0, 0
	for _, s := range streams {
		if s.Direction != d {
			continue
		}
		n++
		if s.UDP == nil {
			continue
		}
		if s.UDP.Sent != nil {
			out.Sent = addSent(out.Sent, s.UDP.Sent)
			sent++
		}
		if s.UDP.Received != nil {
			out.Received = addReceived(out.Received, s.UDP.Received)
			received++
		}
		if s.UDP.Loss != nil {
			out.Loss = addLoss(out.Loss, s.UDP.Loss)
			losses++
		}
	}
	if sent < n {
		out.Sent = nil
	}
	if received < n {
		out.Received = nil
	}
	if losses < n {
		out.Loss = nil
	}
	if out == (UDPStream{}) {
		return nil
	}
	return &out
}

func addSent(a, b *UDPSent) *UDPSent {
	if a == nil {
		c := *b
		return &c
	}
	a.Packets += b.Packets
	a.Bytes += b.Bytes
	a.Refused += b.Refused
	a.Unsent += b.Unsent
	a.BlockedNS += b.BlockedNS
	a.PlannedBurst = max(a.PlannedBurst, b.PlannedBurst)
	a.LargestBurst = max(a.LargestBurst, b.LargestBurst)
	a.Stalls += b.Stalls
	a.Segment = max(a.Segment, b.Segment)
	a.Late = worse(a.Late, b.Late)
	return a
}

func addReceived(a, b *UDPReceived) *UDPReceived {
	if a == nil {
		c := *b
		if c.Jitter != nil {
			j := *c.Jitter
			c.Jitter = &j
		}
		return &c
	}
	wa, wb := float64(a.Packets), float64(b.Packets)
	a.CompatJitter = weighted(a.CompatJitter, wa, b.CompatJitter, wb)
	switch {
	case a.Jitter == nil || b.Jitter == nil:
		a.Jitter = nil
	default:
		na, nb := float64(a.Jitter.N), float64(b.Jitter.N)
		a.Jitter = &Jitter{
			N: a.Jitter.N + b.Jitter.N, Final: weighted(a.Jitter.Final, na, b.Jitter.Final, nb),
			Mean: weighted(a.Jitter.Mean, na, b.Jitter.Mean, nb), Max: max(a.Jitter.Max, b.Jitter.Max),
		}
	}
	a.Packets += b.Packets
	a.Bytes += b.Bytes
	a.Duplicates += b.Duplicates
	a.Reordered += b.Reordered
	a.MaxExtent = max(a.MaxExtent, b.MaxExtent)
	a.Late += b.Late
	a.Foreign += b.Foreign
	a.Highest += b.Highest
	a.Tail += b.Tail
	a.Early += b.Early
	a.Outliers += b.Outliers
	a.SocketDrops = addPtr(a.SocketDrops, b.SocketDrops)
	a.Coalesced = a.Coalesced || b.Coalesced
	a.LargestRead = max(a.LargestRead, b.LargestRead)
	a.IPDV = worse(a.IPDV, b.IPDV)
	if w := worse(a.PDV, b.PDV); w != a.PDV {
		a.PDV, a.Histogram, a.DriftPPM, a.Climb = w, b.Histogram, b.DriftPPM, b.Climb
	}
	a.Periods = addPeriods(a.Periods, b.Periods)
	if a.Stamps != b.Stamps {
		a.Stamps = "user" // the weaker one
	}
	// Both streams saw the same host-wide counter.
	return a
}

// addPeriods sums the runs; the probabilities are means over runs.
func addPeriods(a, b *LossPeriods) *LossPeriods {
	if a == nil || b == nil {
		if a == nil {
			a = b
		}
		return a
	}
	ra, rb := float64(a.Runs), float64(b.Runs)
	return &LossPeriods{
		Runs: a.Runs + b.Runs, Longest: max(a.Longest, b.Longest), MeanLength: weighted(a.MeanLength, ra, b.MeanLength, rb),
		Conditional: weighted(a.Conditional, ra, b.Conditional, rb), GoodToBad: weighted(a.GoodToBad, ra, b.GoodToBad, rb),
		BadToGood: weighted(a.BadToGood, ra, b.BadToGood, rb),
	}
}

func addLoss(a, b *UDPLoss) *UDPLoss {
	if a == nil {
		c := *b
		return &c
	}
	a.Sent += b.Sent
	a.Lost += b.Lost
	a.Tail += b.Tail
	a.Ratio = 0
	if a.Sent > 0 {
		a.Ratio = float64(a.Lost) / float64(a.Sent)
	}
	a.Low, a.High = 0, 1 // of the sum: for whoever concludes
	a.Socket = addPtr(a.Socket, b.Socket)
	a.Softnet = worst(a.Softnet, b.Softnet) // host-wide: both saw the same
	a.NIC = worst(a.NIC, b.NIC)
	a.Network = addPtr(a.Network, b.Network)
	if a.Attribution != b.Attribution {
		a.Attribution = weaker(a.Attribution, b.Attribution)
	}
	return a
}

// weaker is the less certain of two attributions.
func weaker(a, b string) string {
	for _, s := range []string{"", "unknown", "bounded"} {
		if a == s || b == s {
			return s
		}
	}
	return a
}

func worst(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	w := max(*a, *b)
	return &w
}

func worse(a, b *Quantiles) *Quantiles {
	if a == nil || b != nil && b.P99 > a.P99 {
		return b
	}
	return a
}

func weighted(a, wa, b, wb float64) float64 {
	if wa+wb == 0 {
		return 0
	}
	return (a*wa + b*wb) / (wa + wb)
}
