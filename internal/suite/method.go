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
	// Exchange is how the roles are exchanged at the end; nil = they are not.
	Exchange *Exchange
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
	if it := m.Suite.find(Precheck); it != nil && !metBefore(all) {
		return m.idleAgain(*it, all), true
	}
	s, more := m.next(all)
	if !more {
		return s, false
	}
	return m.within(s, all), true
}

// next is the next step behind the look at the empty path, as long as the suite wants it.
func (m Method) next(all []method.Done) (method.Step, bool) {
	if s, more := m.nextMTU(all); more {
		return s, true
	}
	if s, more := m.nextKnee(all); more {
		return s, true
	}
	m = m.resolved(all)
	for _, s := range m.steps(all) {
		if now := m.within(s, all); !madeWhole(all, &now) {
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
	return m.nextSwap(all)
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
	if n == 1 && tooLongRefused(&history[0]) {
		return false
	}
	return n == 1 && failed(&history[0]) || n > 1 && failed(&history[n-1]) && failed(&history[n-2])
}

func failed(d *method.Done) bool {
	return d.Run == nil || d.Err != nil && len(d.Run.Streams) == 0 && len(d.Run.Probes) == 0
}

// Refused reports that a step could not begin: nothing of it was measured.
func Refused(d *method.Done) bool { return d.Err != nil && !begun(d.Run) }

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

// repeated is what is measured in rounds: an item in a direction, or ("") in both at once.
type repeated struct {
	item Item
	way  result.Direction
}

func (r repeated) name() string { return stepName(r.item, r.way) }

// ways are the directions whose throughput a round tells.
func (r repeated) ways() []result.Direction {
	if r.way == "" {
		return both()
	}
	return []result.Direction{r.way}
}

// settled reports that the throughput of the first n rounds needs no more of them (M-ROUNDS).
func (r repeated) settled(all []method.Done, n int) bool {
	for _, d := range r.ways() {
		var x []float64
		for k := 1; k <= n; k++ {
			if v := throughputIn(all, fmt.Sprintf("%s-%d", r.name(), k), d); v.known {
				x = append(x, v.value)
			}
		}
		if enough, _ := method.EnoughRounds(x); !enough {
			return false
		}
	}
	return true
}

func throughputIn(all []method.Done, name string, d result.Direction) reading {
	for i := len(all) - 1; i >= 0; i-- { // what was made again counts
		if all[i].Step.Name == name && all[i].Run != nil && all[i].Err == nil {
			return throughput(all[i].Run, d)
		}
	}
	return missing("it was not measured")
}

// Steps are those that are made whatever is found, in order, at most: the empty path; then the rounds
// of TCP, each in a random order; then UDP, small packets and latency.
func (m Method) Steps() (out []method.Step) {
	if it := m.Suite.find(Precheck); it != nil {
		out = append(out, m.idle(*it))
	}
	m = m.resolved(m.Earlier)
	swaps := m.swapSteps()
	if made(m.Earlier, idleStep) && !extended(m.Earlier) {
		swaps = nil // the other end cannot
	}
	return slices.Concat(out, m.steps(nil), swaps)
}

// steps are those behind the pre-check and the look for the knee; all says which rounds have settled.
func (m Method) steps(all []method.Done) (out []method.Step) {
	var tcp []repeated
	var rest []method.Step
	for _, it := range m.Suite.Items {
		switch it.Kind {
		case TCPSingle, TCPMulti:
			for _, d := range it.Directions {
				tcp = append(tcp, repeated{it, d})
			}
		case TCPBoth:
			tcp = append(tcp, repeated{it, ""})
		case UDPFull, UDPSmall, Latency:
			for _, d := range it.Directions {
				for r := 1; r <= it.Rounds; r++ {
					rest = append(rest, m.datagrams(it, d, r))
				}
			}
		}
	}
	most, _ := m.Suite.rounds()
	for r := 1; r <= most; r++ {
		for _, i := range method.Order(uint64(m.Suite.Seed), r, len(tcp)) { //nolint:gosec // any number is a seed
			if e := tcp[i]; r <= e.item.least() || r <= e.item.most() && !e.settled(all, r-1) {
				out = append(out, m.tcp(e.item, e.way, r))
			}
		}
	}
	return append(out, rest...)
}

// datagrams is a step of the items that are not TCP's throughput.
func (m Method) datagrams(it Item, d result.Direction, round int) method.Step {
	switch it.Kind {
	case UDPFull:
		return m.full(it, d, round)
	case UDPSmall:
		return m.small(it, d, round)
	}
	return m.latency(it, d, round)
}

// named fills in what every step has.
func (m Method) named(it Item, d result.Direction, round int, why string, p plan.Plan) method.Step {
	s := method.Step{Name: fmt.Sprintf("%s-%d", stepName(it, d), round), Why: why, Pause: pause, Plan: p}
	s.Title = it.ID + " " + titles[it.Kind]
	if d != "" {
		s.Title += " " + string(d)
	}
	switch {
	case it.Auto:
		s.Title += fmt.Sprintf(", round %d", round)
	case it.Rounds > 1:
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

// tcp is a round of TCP in direction d, or ("") in both at once.
func (m Method) tcp(it Item, d result.Direction, round int) method.Step {
	way := plan.Direction(d)
	if d == "" {
		way = plan.Both
	}
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
	p.Bitrate, p.Steady, p.CatchUp = m.fullRate(it), true, m.catchUp(it)
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

// belowLink is how much of the link a sender that makes up for what was late may take; mostCatchUp is by which share
// of its rate it does so at most.
const (
	belowLink   = 0.99
	mostCatchUp = 0.04
)

// catchUp is by which share of the full rate its sender may go faster when it was late: it stays below the link's
// rate, so that nothing queues for that, and yet sends all that the item is about.
func (m Method) catchUp(it Item) float64 {
	share := it.Share
	if it.Rate > 0 {
		share = float64(it.Rate) / max(bdp.UDP(m.family()).Convert(float64(m.Suite.Link), m.payload(it), bdp.L1, bdp.L7), 1)
	}
	return min(max(belowLink/max(share, belowLink/2)-1, 0), mostCatchUp)
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
	again := s
	again.Name = name
	if again = m.within(again, all); madeWhole(all, &again) {
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

// announced are steps that stand for several in an announcement.
func (m Method) announced() (out []method.Step) {
	met := made(m.Earlier, idleStep)
	_, sizes := m.nextMTU(m.Earlier)
	if it := m.Suite.find(Precheck); it != nil && (sizes || !met) {
		out = append(out, method.Step{
			Title: it.ID + " the path's packet size, both ways", Why: "which sizes pass whole? (towards a fullbore)",
			Plan: plan.Plan{Duration: 5 * time.Second}, Volume: 200_000,
		})
	}
	it := m.Suite.kneeItem()
	if _, more := m.nextKnee(m.Earlier); it == nil || !more {
		return out
	}
	for _, d := range it.Directions {
		s := method.Step{Title: fmt.Sprintf("%s for the knee: 1 to %d streams %s", it.ID, kneeFirst, d), Why: "how many streams fill the link? (3 rounds each; more where it still grows)"}
		for _, one := range m.sweep(it, d, kneeFirst).Possible() {
			n := time.Duration(method.LeastRounds)
			s.Plan.Duration += n * one.Length()
			s.Volume += int64(n) * int64(m.Ideal()/8*(one.Plan.Omit+one.Plan.Duration).Seconds())
		}
		out = append(out, s)
	}
	return out
}

// Possible are the steps for an announcement that were not made yet, those of the look for the packet size
// and of that for the knee folded into one each; of rounds that go on until they settle all there can be.
func (m Method) Possible() (out []method.Step) {
	steps := m.Steps()
	at := min(1, len(steps)) // behind the empty path
	for _, s := range slices.Insert(steps, at, m.announced()...) {
		if s.Name == "" {
			out = append(out, s)
			continue
		}
		over := s.Name == idleStep && metBefore(m.Earlier)
		if s = m.within(s, m.Earlier); !over && !madeWhole(m.Earlier, &s) {
			out = append(out, s)
		}
	}
	return out
}

// Length is about how long those take: at least, and where rounds do not settle.
func (m Method) Length() (least, most time.Duration) {
	for _, s := range m.Possible() {
		most += s.Length()
	}
	quick := m
	quick.Suite.Items = slices.Clone(m.Suite.Items)
	for i := range quick.Suite.Items {
		if it := &quick.Suite.Items[i]; it.Auto {
			it.Auto, it.Rounds = false, it.least()
		}
	}
	for _, s := range quick.Possible() {
		least += s.Length()
	}
	return least, most
}

// Volume is about how many payload bytes they move at most.
func (m Method) Volume() (n int64) {
	for _, s := range m.Possible() {
		n += s.Volume
	}
	return n
}
