package method

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// MTURuns is M-PMTU as tests: a TCP connection of a few bytes, whose SYNs show what is made of the
// largest segment; then, towards a fullbore, a test of single packets each way (Plan.Probe.MTU), or,
// towards a plain iperf3, one short UDP test a size, up only: it tells how many datagrams came, and
// that is all.
type MTURuns struct{}

// Names of its steps.
const (
	mtuSYN   = "syn"
	mtuProbe = "probe"
	mtuSize  = "size"
	mtuTold  = "told"
)

// mtuDatagrams is how many datagrams a size is tried with where nothing answers: with one of three
// lost on the way, a size that passes is taken for bad once in 700.
const mtuDatagrams = 6

// Next implements Method.
func (MTURuns) Next(history []Done) (Step, bool) {
	if len(history) == 0 {
		return Step{
			Name: mtuSYN, Title: "one connection, 128 bytes", Why: "which segments do the ends agree on?", Volume: 128,
			Plan: plan.Plan{Transport: plan.TCP, Direction: plan.Up, Streams: 1, Bytes: 128, BlockSize: 128},
		}, true
	}
	first := history[0].Run
	if first == nil || first.Err != nil && len(first.Streams) == 0 {
		return Step{}, false
	}
	if first.Wire != nil && first.Wire.Extension {
		if len(history) > 1 {
			return Step{}, false
		}
		return Step{
			Name: mtuProbe, Title: "single packets, both ways", Why: "which sizes pass whole?", Volume: 200_000,
			Plan: plan.Plan{
				Transport: plan.UDP, Direction: plan.Up, Streams: 1, BlockSize: 64, Duration: time.Minute, Bitrate: 64 * 8 * 50, RateSet: true,
				Probe: &plan.Probe{Idle: true, MTU: true, Spacing: 20 * time.Millisecond, Size: 64},
			},
		}, true
	}
	search, overhead := plainMTU(first)
	trials, ask := mtuTrials(history, overhead)
	size, more := search.Next(trials)
	if !more || len(history) > 40 {
		return Step{}, false
	}
	s := Step{
		Name: mtuSize, Title: fmt.Sprintf("packets of %d bytes up", size), Why: "do they arrive?", Volume: int64(mtuDatagrams * size),
		Plan: plan.Plan{
			Transport: plan.UDP, Direction: plan.Up, Streams: 1, BlockSize: size - overhead, Blocks: mtuDatagrams, DontFragment: true,
			Bitrate: int64(size-overhead) * 8 * 20, RateSet: true, Offload: plan.OffloadOff, // one each 50 ms
		},
	}
	if ask { // the system was told what passes, and an open block size becomes that
		s.Name, s.Title, s.Why, s.Plan.BlockSize, s.Plan.Bitrate = mtuTold, "packets as long as a router allowed", "what did it allow?", 0, 1500*8*20
	}
	return s, true
}

// plainMTU is the search towards an iperf3, and what IP and UDP add to a payload.
func plainMTU(first *result.Run) (PathMTU, int) {
	overhead := 28
	for _, s := range first.Streams {
		if a, err := netip.ParseAddr(s.Remote.Host); err == nil && a.Unmap().Is6() {
			overhead = 48
		}
	}
	upper := 1500
	if c := first.Hosts.Client; c != nil && c.NIC != nil && c.NIC.MTU > 0 {
		upper = min(c.NIC.MTU, 65535)
	}
	return PathMTU{Least: overhead + 64, Upper: upper}, overhead
}

// mtuTrials reads the tests of sizes. ask: the last one was refused by this host's own system,
// which therefore has been told what passes.
func mtuTrials(history []Done, overhead int) (trials []result.MTUTrial, ask bool) {
	told := 0
	for _, d := range history[1:] {
		t := result.MTUTrial{Size: d.Step.Plan.BlockSize + overhead, Told: told}
		ask = d.Err != nil && d.Err.Code == "datagram-too-long" && told == 0
		if d.Step.Name == mtuTold && d.Run != nil {
			told = d.Run.Test.BlockSize + overhead
			t.Size, t.Told, ask = told, told, false
		}
		if d.Run != nil && d.Err == nil {
			if s := d.Run.Sum(result.Up); s != nil && s.Receiver != nil && s.Receiver.Packets != nil {
				lost := int64(0)
				if s.Receiver.Lost != nil {
					lost = *s.Receiver.Lost
				}
				t.Passed = *s.Receiver.Packets-lost > 0
			}
		}
		trials = append(trials, t)
	}
	return trials, ask
}

// MTUAnswer is what a history of MTURuns shows: up first, and down where it is known.
type MTUAnswer struct {
	Paths []result.PathMTU
	// Clamps are segment sizes that were changed on the way.
	Clamps []MSSClamp
	// MSS is the largest segment of each sender, without what options take: of the client, of the
	// server; 0 = not known.
	MSS [2]int64
}

// MSSClamp is a segment size that something on the way wrote into a SYN or its answer.
type MSSClamp struct {
	From      result.End // who announced
	Announced int64      // bytes
	Seen      int64      // what arrived
}

// Answer reads the history.
func (m MTURuns) Answer(history []Done) (a MTUAnswer) {
	if len(history) == 0 || history[0].Run == nil {
		return a
	}
	a.readSYN(history[0].Run)
	a.Paths = m.paths(history)
	for i := range a.Paths {
		a.fill(&a.Paths[i])
	}
	return a
}

// paths are the directions that packets were sent in.
func (MTURuns) paths(history []Done) (out []result.PathMTU) {
	if len(history) < 2 {
		return nil
	}
	if history[1].Step.Name == mtuProbe {
		if run := history[1].Run; run != nil {
			for i := range run.Probes {
				out = append(out, run.Probes[i].MTU...)
			}
		}
		return out
	}
	search, overhead := plainMTU(history[0].Run)
	trials, _ := mtuTrials(history, overhead)
	up := search.Answer(trials)
	up.Direction, up.Method = result.Up, "udp-test"
	link := search.Upper
	up.Link = &link
	return []result.PathMTU{up}
}

// fill puts what the SYNs showed into a direction: its sender's segments, and what became of its receiver's
// announcement.
func (a *MTUAnswer) fill(p *result.PathMTU) {
	segment := a.MSS[0]
	if p.Direction == result.Down {
		segment = a.MSS[1]
	}
	if segment > 0 {
		p.Segment = &segment
	}
	for _, c := range a.Clamps {
		if c.From == p.Direction.Receiver() {
			announced, seen := c.Announced, c.Seen
			p.Announced, p.Seen = &announced, &seen
		}
	}
}

// timestampOption is what TCP timestamps take of each segment; Linux takes it off tcpi_advmss and
// tcpi_snd_mss when they were agreed on.
const timestampOption = 12

// readSYN compares what the ends announced with what arrived.
func (a *MTUAnswer) readSYN(run *result.Run) {
	for i := range run.Streams {
		s := &run.Streams[i]
		if s.TCP == nil {
			continue
		}
		mine := &s.TCP.Last
		option := int64(0)
		if mine.Timestamps {
			option = timestampOption
		}
		header := int64(40)
		if addr, err := netip.ParseAddr(s.Remote.Host); err == nil && addr.Unmap().Is6() {
			header = 60
		}
		if mine.MSS > 0 {
			a.MSS[0] = mine.MSS + option
		}
		t := s.RemoteTCP
		if t == nil {
			return
		}
		theirs := &t.Last
		if theirs.MSS > 0 {
			a.MSS[1] = theirs.MSS + option
		}
		if sent := mine.AdvMSS + option; t.SYN != nil && mine.AdvMSS > 0 && t.SYN.MSS > 0 && int64(t.SYN.MSS) != sent {
			a.Clamps = append(a.Clamps, MSSClamp{result.Client, sent, int64(t.SYN.MSS)})
		}
		// What the answer to the SYN said is not kept; this end's segments are the less of that and of
		// what its own system believes of the path, and at most half of the largest window.
		if sent, got := theirs.AdvMSS+option, mine.MSS+option; theirs.AdvMSS > 0 && mine.MSS > 0 && mine.PMTU > 0 && got < sent && got < mine.PMTU-header && s.TCP.MaxSndWnd > 4*got {
			a.Clamps = append(a.Clamps, MSSClamp{result.Server, sent, got})
		}
		return
	}
}

var _ Method = MTURuns{}
