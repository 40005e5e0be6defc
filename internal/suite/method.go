package suite

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/bdp"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Path is what is known of the way before anything is sent.
type Path struct {
	Family int // 4 or 6
	MTU    int // of this end's interface; 0 = not known
}

// Method says what to measure next.
type Method struct {
	Suite Suite
	Path  Path
	// Earlier is what was measured before a break, by the same settings.
	Earlier []method.Done
}

var _ method.Method = Method{}

// Pauses between the steps (M-ROUNDS).
const (
	pause      = 2 * time.Second
	quickPause = 300 * time.Millisecond
)

// idleStep is the name of the step without load.
const idleStep = "A0"

// Next implements method.Method.
func (m Method) Next(history []method.Done) (method.Step, bool) {
	all := append(slices.Clone(m.Earlier), history...)
	if hopeless(history) {
		return method.Step{}, false
	}
	for _, s := range m.Steps() {
		if !made(all, s.Name) {
			return s, true
		}
		if again, worth := m.repeat(s, all); worth {
			return again, true
		}
	}
	for _, it := range m.Suite.Items {
		if it.Kind != LossFree {
			continue
		}
		for _, d := range it.Directions {
			prefix := stepName(it, d) + "-"
			if s, more := m.search(it, d).Next(cut(all, prefix)); more {
				s.Name = prefix + s.Name
				s.Title = it.ID + " " + s.Title
				return s, true
			}
		}
	}
	return method.Step{}, false
}

// search is that for the highest loss-free rate (M-NDR), up to the whole link.
func (m Method) search(it Item, d result.Direction) method.NDR {
	name := "default"
	if m.Suite.Quick {
		name = "quick"
	}
	preset, _ := method.RatePresetOf(name) // both are there
	return method.NDR{
		Preset: preset, Directions: []plan.Direction{plan.Direction(d)}, Told: true,
		Max: bdp.UDP(m.family()).Convert(float64(m.Suite.Link), m.payload(it), bdp.L1, bdp.L7),
		UDP: plan.Plan{BlockSize: m.payload(it), DontFragment: true},
	}
}

// hopeless: the first step could not begin, or two in a row did not.
func hopeless(history []method.Done) bool {
	n := len(history)
	return n == 1 && failed(&history[0]) || n > 1 && failed(&history[n-1]) && failed(&history[n-2])
}

func failed(d *method.Done) bool {
	return d.Run == nil || d.Err != nil && len(d.Run.Streams) == 0 && len(d.Run.Probes) == 0
}

func made(all []method.Done, name string) bool {
	return slices.ContainsFunc(all, func(d method.Done) bool { return d.Step.Name == name })
}

// cut is the part of a history whose names begin with prefix, without it.
func cut(all []method.Done, prefix string) (out []method.Done) {
	for _, d := range all {
		if rest, ok := strings.CutPrefix(d.Step.Name, prefix); ok {
			d.Step.Name = rest
			out = append(out, d)
		}
	}
	return out
}

func stepName(it Item, d result.Direction) string {
	if d == "" {
		return it.ID
	}
	return it.ID + "-" + string(d)
}

// Steps are those that are made whatever is found, in order: the empty path; then the rounds of
// TCP, each in a random order; then UDP, small packets and latency.
func (m Method) Steps() (out []method.Step) {
	var tcp, rest []func(round int) method.Step
	rounds := map[int]int{} // of tcp's entries
	for _, it := range m.Suite.Items {
		switch it.Kind {
		case Precheck:
			out = append(out, m.idle(it))
		case TCPSingle, TCPMulti:
			for _, d := range it.Directions {
				rounds[len(tcp)] = it.Rounds
				tcp = append(tcp, func(r int) method.Step { return m.tcp(it, d, plan.Direction(d), r) })
			}
		case TCPBoth:
			rounds[len(tcp)] = it.Rounds
			tcp = append(tcp, func(r int) method.Step { return m.tcp(it, "", plan.Both, r) })
		case UDPFull, UDPSmall, Latency:
			for _, d := range it.Directions {
				for r := 1; r <= it.Rounds; r++ {
					rest = append(rest, func(int) method.Step {
						switch it.Kind {
						case UDPFull:
							return m.full(it, d, r)
						case UDPSmall:
							return m.small(it, d, r)
						}
						return m.latency(it, d, r)
					})
				}
			}
		}
	}
	for r := 1; r <= m.Suite.rounds(); r++ {
		for _, i := range method.Order(uint64(m.Suite.Seed), r, len(tcp)) {
			if r <= rounds[i] {
				out = append(out, tcp[i](r))
			}
		}
	}
	for _, f := range rest {
		out = append(out, f(0))
	}
	return out
}

// named fills in what every step has.
func (m Method) named(it Item, d result.Direction, round int, why string, p plan.Plan) method.Step {
	s := method.Step{Name: fmt.Sprintf("%s-%d", stepName(it, d), round), Why: why, Pause: pause, Plan: p}
	s.Title = it.ID + " " + titles[it.Kind]
	if d != "" {
		s.Title += " " + string(d)
	}
	if it.Rounds > 1 {
		s.Title += fmt.Sprintf(", %d of %d", round, it.Rounds)
	}
	s.Plan.Omit, s.Plan.Duration = it.Omit, it.Time
	s.Plan.Interval = time.Second
	if m.Suite.Quick {
		s.Pause, s.Plan.Interval = quickPause, 250*time.Millisecond
	}
	return s
}

func (m Method) idle(it Item) method.Step {
	spacing := 10 * time.Millisecond
	s := method.Step{Name: idleStep, Title: it.ID + " the empty path", Why: "round trip and loss without load; what both ends say of themselves"}
	s.Plan = plan.Plan{
		Transport: plan.UDP, Direction: plan.Up, Streams: 1, BlockSize: smallPayload, RateSet: true, Bitrate: int64(smallPayload * 8 / spacing.Seconds()),
		Duration: it.Time, Probe: &plan.Probe{Spacing: spacing, Size: smallPayload, Profile: "idle", Idle: true},
	}
	s.Volume = int64(2 * smallPayload * it.Time / spacing)
	return s
}

// load is a TCP load as the native commands make it.
func (m Method) load(it Item, d plan.Direction) plan.Plan {
	return plan.Plan{
		Direction: d, Streams: it.Streams, Window: it.Window, Congestion: it.Congestion,
		Send: plan.SendCheapest, Receive: plan.Discard, RemoteDiscard: true,
	}
}

func (m Method) tcp(it Item, d result.Direction, way plan.Direction, round int) method.Step {
	why := map[Kind]string{
		TCPSingle: "what one connection carries", TCPMulti: "what the link carries",
		TCPBoth: "does either way suffer from the other?",
	}[it.Kind]
	s := m.named(it, d, round, why, m.load(it, way))
	s.Volume = m.volume(it)
	if way == plan.Both {
		s.Volume *= 2
	}
	return s
}

// volume is what a full link carries in a step.
func (m Method) volume(it Item) int64 {
	return int64(m.Ideal() / 8 * (it.Omit + it.Time).Seconds())
}

// full sends datagrams at a share of the link, counted on the wire. Coalescing is off: then the
// counts of who lost them are exact.
func (m Method) full(it Item, d result.Direction, round int) method.Step {
	p := plan.Plan{Transport: plan.UDP, Direction: plan.Direction(d), Streams: 1, RateSet: true, BlockSize: m.payload(it), DontFragment: true}
	p.Bitrate = m.fullRate(it)
	s := m.named(it, d, round, "loss, duplicates and order of a full link", p)
	s.Plan.Omit = 0 // each datagram counts
	s.Volume = int64(float64(p.Bitrate) / 8 * it.Time.Seconds())
	return s
}

// fullRate is the payload rate of an item of UDP.
func (m Method) fullRate(it Item) int64 {
	if it.Rate > 0 {
		return it.Rate
	}
	return int64(bdp.UDP(m.family()).Convert(it.Share*float64(m.Suite.Link), m.payload(it), bdp.L1, bdp.L7))
}

// payload is what fills a packet, unless the item says how much.
func (m Method) payload(it Item) int {
	if it.Payload > 0 {
		return it.Payload
	}
	return min(m.MTU()-bdp.UDP(m.family()).Bytes(0, bdp.L3), plan.MaxUDPBlock)
}

func (m Method) small(it Item, d result.Direction, round int) method.Step {
	p := plan.Plan{Transport: plan.UDP, Direction: plan.Direction(d), Streams: 1, RateSet: true, BlockSize: it.Payload, DontFragment: true, Offload: plan.OffloadOff}
	p.Bitrate = int64(float64(it.Payload) * 8 / it.Spacing.Seconds())
	s := m.named(it, d, round, "how evenly small packets arrive", p)
	s.Plan.Omit = 0
	s.Volume = int64(float64(p.Bitrate) / 8 * it.Time.Seconds())
	return s
}

func (m Method) latency(it Item, d result.Direction, round int) method.Step {
	p := m.load(it, plan.Direction(d))
	p.Probe = &plan.Probe{Spacing: it.Spacing, Size: it.Payload, Profile: "loaded"}
	s := m.named(it, d, round, "how long small packets wait behind a full load", p)
	s.Volume = m.volume(it) + int64(2*float64(it.Payload)*it.Time.Seconds()/it.Spacing.Seconds())
	return s
}

// repeat measures a lossy step of UDP once more without coalescing at this end, where the count of
// who lost the datagrams is only a bound (M-UDP): before the network is blamed.
func (m Method) repeat(s method.Step, all []method.Done) (method.Step, bool) {
	if s.Plan.Transport != plan.UDP || s.Plan.Probe != nil || s.Plan.Offload == plan.OffloadOff {
		return s, false
	}
	name := s.Name + "-again"
	if made(all, name) {
		return s, false
	}
	for i := range all {
		if all[i].Step.Name != s.Name {
			continue
		}
		if l := lossOf(all[i].Run, result.Direction(s.Plan.Direction)); l != nil && l.Lost > 0 && l.Attribution == "bounded" {
			s.Name, s.Title = name, s.Title+", exact"
			s.Why = "once more without coalescing: who lost the datagrams is then counted exactly"
			s.Plan.Offload = plan.OffloadOff
			return s, true
		}
	}
	return s, false
}

func (m Method) family() int {
	if m.Path.Family == 6 {
		return 6
	}
	return 4
}

// mostIP is the largest IP packet.
const mostIP = 65535

// MTU is the packet size that the link is held to, bytes.
func (m Method) MTU() int {
	switch {
	case m.Suite.MTU > 0:
		return m.Suite.MTU
	case m.Path.MTU > 0:
		return min(m.Path.MTU, mostIP) // a loopback's interface says one more
	}
	return 1500
}

// Ideal is the payload that TCP with timestamps could carry on the link (M-6349), bit/s.
func (m Method) Ideal() float64 { return bdp.TCP(m.family()).Ideal(m.Suite.Link, m.MTU()) }

// Length is about how long the steps take that are made in any case.
func (m Method) Length() (d time.Duration) {
	for _, s := range m.Steps() {
		d += s.Length()
	}
	return d
}

// Volume is about how many payload bytes those steps move.
func (m Method) Volume() (n int64) {
	for _, s := range m.Steps() {
		n += s.Volume
	}
	return n
}
