package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/doctor"
	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/units"
)

type doctorOptions struct {
	rate       int64
	rtt        time.Duration
	streams    int
	ipv4, ipv6 bool
	brief      bool
	json       bool
	fail       bool
	facts      string
}

const doctorLong = `Look at this host and say, line by line, whether it is fit to measure: link speed
and duplex, card and driver, queues and interrupts, offloads, TCP's limits against the
bandwidth-delay product of --rate and --rtt, processor, clock, limits, firewall.

Lines are ok, worth changing (with the command), info (know it) or unknown. Nothing is
sent and nothing is changed. HOST chooses the interface: the one that leads to it.`

const doctorExample = `  fullbore doctor
  fullbore doctor 192.0.2.2 --rate 10G --rtt 10ms
  fullbore doctor --brief                    only what is worth changing
  fullbore doctor --json > web1.json
  fullbore doctor --facts web1.json --rtt 80ms   judge another host's facts`

func newDoctorCmd(e *env) *cobra.Command {
	o := &doctorOptions{}
	cmd := &cobra.Command{
		Use:     "doctor [HOST]",
		Short:   "Is this host fit to measure, and what is worth changing?",
		Long:    doctorLong,
		Example: doctorExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := e.interruptible(cmd.Context())
			defer stop()
			return e.runDoctor(ctx, o, strings.Join(args, ""))
		},
	}
	f := cmd.Flags()
	f.Var(rateFlag{&o.rate}, "rate", "rate to judge for (default: the speed of the link)")
	f.Var(durationFlag{&o.rtt}, "rtt", "round-trip time to judge for (default 10ms)")
	f.IntVarP(&o.streams, "streams", "P", 0, "streams to judge for (default 128)")
	f.BoolVarP(&o.ipv4, "ipv4", "4", false, "HOST's IPv4 address")
	f.BoolVarP(&o.ipv6, "ipv6", "6", false, "HOST's IPv6 address")
	f.BoolVar(&o.brief, "brief", false, "leave out the lines that are ok")
	f.BoolVar(&o.json, "json", false, "print JSON: the goal, the lines and all facts")
	f.BoolVar(&o.fail, "fail", false, "exit code 1 when something is worth changing")
	f.StringVar(&o.facts, "facts", "", "judge recorded facts: a document of doctor --json, or a folder with proc, sys and kernel.json")
	cmd.MarkFlagsMutuallyExclusive("ipv4", "ipv6")
	return cmd
}

// doctorDocument is the JSON form of a report.
type doctorDocument struct {
	Goal      doctorGoal        `json:"goal"`
	Summary   string            `json:"summary"`
	Checks    []doctor.Check    `json:"checks"`
	Inventory *oshost.Inventory `json:"inventory"`
}

type doctorGoal struct {
	RateBPS units.BitRate  `json:"rate_bps"`
	RTT     float64        `json:"rtt_s"`
	Streams int            `json:"streams"`
	BDP     units.ByteSize `json:"bdp_bytes"`
}

func (e *env) runDoctor(ctx context.Context, o *doctorOptions, host string) error {
	if o.streams < 0 {
		return usagef("--streams %d: must not be negative", o.streams)
	}
	peer, err := doctorPeer(ctx, o, host)
	if err != nil {
		return err
	}
	inv, err := doctorFacts(ctx, o, peer)
	if err != nil {
		return err
	}
	goal := doctor.Goal{Rate: units.BitRate(o.rate), RTT: o.rtt, Streams: o.streams}.Filled(inv)
	doc := doctorDocument{
		Goal:      doctorGoal{goal.Rate, goal.RTT.Seconds(), goal.Streams, goal.BDP()},
		Checks:    doctor.Examine(inv, goal),
		Inventory: inv,
	}
	doc.Summary = doctor.Summary(doc.Checks)
	if o.json {
		err = e.printJSON(doc)
	} else {
		_, err = e.Out.Write(doctorText(doc, goal, o.brief, e.Terminal && !e.NoColor))
	}
	if err != nil {
		return err
	}
	if o.fail && anyChange(doc.Checks) {
		return &codeError{code: exitMissed}
	}
	return nil
}

func anyChange(checks []doctor.Check) bool {
	for _, c := range checks {
		if c.Status == doctor.Change {
			return true
		}
	}
	return false
}

// doctorPeer resolves HOST; no HOST is the default route, self is loopback.
func doctorPeer(ctx context.Context, o *doctorOptions, host string) (netip.Addr, error) {
	family := 0
	switch {
	case host == "":
		return netip.Addr{}, nil
	case host == "self":
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	case o.ipv4:
		family = 4
	case o.ipv6:
		family = 6
	}
	addrs, err := osnet.Resolve(ctx, host, family)
	if err != nil {
		return netip.Addr{}, &codeError{code: exitConnect, err: err}
	}
	return addrs[0], nil
}

// doctorFacts takes the inventory of this host, or reads a recorded one.
func doctorFacts(ctx context.Context, o *doctorOptions, peer netip.Addr) (*oshost.Inventory, error) {
	if o.facts == "" {
		return oshost.Take(ctx, peer), nil
	}
	info, err := os.Stat(o.facts)
	if err != nil {
		return nil, usagef("--facts: %v", err)
	}
	if info.IsDir() {
		inv, err := oshost.Recorded(ctx, o.facts, peer)
		if err != nil {
			return nil, usagef("--facts: %v", err)
		}
		return inv, nil
	}
	data, err := os.ReadFile(o.facts)
	if err != nil {
		return nil, usagef("--facts: %v", err)
	}
	inv, err := decodeFacts(data)
	if err != nil {
		return nil, usagef("--facts %s: %v", o.facts, err)
	}
	return inv, nil
}

// decodeFacts reads a document of doctor --json, or an inventory alone.
func decodeFacts(data []byte) (*oshost.Inventory, error) {
	var doc doctorDocument
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	inv := doc.Inventory
	if inv == nil {
		inv = &oshost.Inventory{}
		if err := json.Unmarshal(data, inv); err != nil {
			return nil, err
		}
	}
	if inv.Host.OS == "" {
		return nil, errors.New("no facts about a host in it")
	}
	inv.Recorded = true
	return inv, nil
}

// doctorText is the report: the host, the lines by topic, the closing sentence.
func doctorText(doc doctorDocument, goal doctor.Goal, brief, color bool) []byte {
	var b bytes.Buffer
	h := &doc.Inventory.Host
	about := []string{h.Name, strings.TrimSpace(h.OS + " " + h.Release)}
	if h.NIC != nil {
		about = append(about, "leaving by "+h.NIC.Name)
	}
	if doc.Inventory.Recorded {
		about = append(about, "from recorded facts")
	}
	fmt.Fprintf(&b, "%s\n", screen.Clean(strings.Join(about, ", ")))
	fmt.Fprintf(&b, "Judged for %s over %s (BDP %s) and %d streams.\n", goal.Rate, units.FormatDuration(goal.RTT), doc.Goal.BDP, goal.Streams)
	topic := ""
	for _, c := range doc.Checks {
		if brief && c.Status == doctor.OK {
			continue
		}
		if c.Topic != topic {
			topic = c.Topic
			fmt.Fprintf(&b, "\n%s\n", topic)
		}
		doctorLine(&b, c, color)
	}
	for _, m := range doc.Inventory.Missing {
		if !brief {
			fmt.Fprintf(&b, "\nnot read: %s", screen.Clean(m))
		}
	}
	if len(doc.Inventory.Missing) > 0 && !brief {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "\n%s\n", screen.Clean(doc.Summary))
	for _, c := range doc.Checks {
		if c.Rank == 1 {
			if c.Fix != "" {
				fmt.Fprintf(&b, "Next: %s\n", screen.Clean(c.Fix))
			}
			fmt.Fprintf(&b, "More: fullbore explain %s\n", c.Docs)
		}
	}
	return b.Bytes()
}

// Words and colours of the outcomes, all of one width.
var doctorMarks = map[doctor.Status]struct{ word, color string }{
	doctor.OK:      {"ok     ", "\x1b[32m"},
	doctor.Change:  {"change ", "\x1b[33m"},
	doctor.Info:    {"info   ", "\x1b[36m"},
	doctor.Unknown: {"unknown", "\x1b[35m"},
}

func doctorLine(b *bytes.Buffer, c doctor.Check, color bool) {
	mark := doctorMarks[c.Status]
	word := mark.word
	if color {
		word = mark.color + word + "\x1b[0m"
	}
	fmt.Fprintf(b, "  %s %s: %s\n", word, c.Name, screen.Clean(c.Found))
	for _, line := range screen.Wrap(screen.Clean(c.Why), explainWidth-10) {
		fmt.Fprintf(b, "          %s\n", line)
	}
	if c.Fix != "" {
		fmt.Fprintf(b, "          → %s\n", screen.Clean(c.Fix))
	}
	if c.Look != "" {
		fmt.Fprintf(b, "          shown by: %s\n", screen.Clean(c.Look))
	}
}
