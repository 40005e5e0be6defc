package iperf3

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/cli/getopt"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/units"
)

// tosNames are the names that --dscp knows, with the whole TOS byte (RFC 2474, RFC
// 2597, RFC 3246, RFC 5865; the last three are the TOS bits of RFC 1349).
var tosNames = map[string]int{
	"af11": 0x28, "af12": 0x30, "af13": 0x38,
	"af21": 0x48, "af22": 0x50, "af23": 0x58,
	"af31": 0x68, "af32": 0x70, "af33": 0x78,
	"af41": 0x88, "af42": 0x90, "af43": 0x98,
	"cs0": 0x00, "cs1": 0x20, "cs2": 0x40, "cs3": 0x60, "cs4": 0x80, "cs5": 0xa0, "cs6": 0xc0, "cs7": 0xe0,
	"ef": 0xb8, "va": 0xb0,
	"lowdelay": 0x10, "throughput": 0x08, "reliability": 0x04,
}

const tosWanted = "give -S 0 to 255, or --dscp 0 to 63 or a name: " +
	"af11 … af43, cs0 … cs7, ef, va, lowdelay, throughput, reliability"

func (p *parser) setTOS(m getopt.Match) *fault {
	n, err := units.ParseBased(m.Value)
	if err != nil || n < 0 || n > 255 {
		return p.bad(textTOS, m, tosWanted)
	}
	p.plan.TOS = int(n)
	p.clientOnly = true
	return nil
}

func (p *parser) setDSCP(m getopt.Match) *fault {
	tos, ok := tosNames[strings.ToLower(m.Value)]
	if !ok {
		n, err := units.ParseBased(m.Value)
		if err != nil || n < 0 || n > 63 {
			return p.bad(textTOS, m, tosWanted)
		}
		tos = int(n) << 2 // the code point is the upper six bits
	}
	p.plan.TOS = tos
	p.clientOnly = true
	return nil
}

// setAffinity reads n or n,m: the CPU of this end and the one asked of the server. n
// may be a set: ranges and single CPUs joined by plus signs (0-3+8), because the comma
// is taken.
func (p *parser) setAffinity(m getopt.Match) *fault {
	local, remote, hasRemote := strings.Cut(m.Value, ",")
	var cpus []int
	for item := range strings.SplitSeq(local, "+") {
		from, to, isRange := strings.Cut(item, "-")
		if from == "" {
			isRange, from = false, item // -1 is a number, not a range
		}
		if !isRange {
			to = from
		}
		lo, why := cpuNumber(from)
		hi, whyTo := cpuNumber(to)
		switch {
		case why == "" && whyTo != "":
			why = whyTo
		case why == "" && lo > hi:
			why = fmt.Sprintf("%s is an empty range", item)
		}
		if why != "" {
			return p.bad(textAffinity, m, why)
		}
		for cpu := lo; cpu <= hi; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	p.plan.Affinity, p.plan.RemoteAffinity = cpus, nil
	if !hasRemote {
		return nil
	}
	cpu, why := cpuNumber(remote)
	if strings.Contains(remote, ",") {
		why = "write a set of CPUs as 0-2 or 0+1+2; the one after the comma is the server's"
	}
	if why != "" {
		return p.bad(textAffinity, m, why)
	}
	p.plan.RemoteAffinity = &cpu
	p.clientOnly = true
	return nil
}

func cpuNumber(s string) (int, string) {
	n, err := units.ParseBased(s)
	if err != nil {
		return 0, fmt.Sprintf("%q is not a CPU number", s)
	}
	if n < 0 || n > plan.MaxAffinity {
		return 0, fmt.Sprintf("CPU %d does not exist; give 0 to %d", n, plan.MaxAffinity)
	}
	return int(n), ""
}
