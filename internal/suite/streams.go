package suite

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// How many streams the items with several have: the knee's, else 8 (M-ACCEPT, M-KNEE).

// kneePrefix begins the names of the steps that look for the knee.
const kneePrefix = "knee-"

// The look for the knee: 1, 2, 4, 8, 16 streams, and twice further where the rate still grows.
const (
	kneeFirst = 16
	kneeMost  = 64
)

// Where the number of streams comes from, in the document.
const (
	streamsGiven   = "given"   // the user's word or the suite's
	streamsKnee    = "knee"    // it was found first
	streamsDefault = "default" // 8: there is no knee, or nobody looked for it
)

// kneeTime is how long a look at one number of streams takes: what a connection of that class needs to
// open its window, and then enough to tell rates 5 % apart.
func kneeTime(c Class) (omit, measured time.Duration) {
	switch c {
	case LAN:
		return time.Second, 2 * time.Second
	case WAN:
		return 2 * time.Second, 4 * time.Second
	}
	return time.Second, 3 * time.Second
}

// kneeItem is the item whose number of streams is to be found; nil when all are said.
func (s *Suite) kneeItem() *Item {
	for i := range s.Items {
		if it := &s.Items[i]; (it.Kind == TCPMulti || it.Kind == TCPBoth) && it.Streams == 0 {
			return it
		}
	}
	return nil
}

// open reports that an item leaves its number of streams open.
func (s *Suite) open() bool {
	return slices.ContainsFunc(s.Items, func(it Item) bool { return it.Streams == 0 })
}

// sweep looks at 1, 2, 4 … most streams in a direction.
func (m Method) sweep(it *Item, d result.Direction, most int64) method.Sweep {
	var settings []int64
	for n := int64(1); n <= most; n *= 2 {
		settings = append(settings, n)
	}
	p := m.load(*it, plan.Direction(d))
	p.Omit, p.Duration = kneeTime(m.Suite.Class)
	p.Interval = 500 * time.Millisecond
	return method.Sweep{
		Axis: method.Streams, Direction: d, Base: p, Settings: settings, Rounds: method.LeastRounds,
		Fixed: true, Seed: uint64(m.Suite.Seed), Pause: quickPause, //nolint:gosec // any number is a seed
	}
}

// nextKnee is the next step of the look for the knee.
func (m Method) nextKnee(all []method.Done) (method.Step, bool) {
	it := m.Suite.kneeItem()
	if it == nil {
		return method.Step{}, false
	}
	mine := cut(all, kneePrefix)
	for _, d := range it.Directions {
		if s, more := m.nextKneeWay(it, d, mine); more {
			s.Name = kneePrefix + s.Name
			s.Title = fmt.Sprintf("%s for the knee: %s, %d of %d", it.ID, s.Title, s.Round, method.LeastRounds)
			s.Volume = int64(m.Ideal() / 8 * (s.Plan.Omit + s.Plan.Duration).Seconds())
			return s, true
		}
	}
	return method.Step{}, false
}

func (m Method) nextKneeWay(it *Item, d result.Direction, mine []method.Done) (method.Step, bool) {
	for most := int64(kneeFirst); most <= kneeMost; most *= 2 {
		sweep := m.sweep(it, d, most)
		if s, more := sweep.Next(mine); more {
			return s, true
		}
		if a := sweep.Answer(mine); !a.Known || a.Knee.Reached {
			break
		}
	}
	return method.Step{}, false
}

// parallel is how many streams the items have that leave it open.
type parallel struct {
	streams int
	from    string // streamsGiven, streamsKnee, streamsDefault
	why     string // a sentence; "" when it was given
	pool    int    // fewest streams within 3 % of the best, of the direction that needs more; 0 = nobody looked
}

// parallel reads the knee from the history.
func (m Method) parallel(all []method.Done) parallel {
	it := m.Suite.kneeItem()
	out := parallel{streams: defaultStreams, from: streamsDefault}
	switch {
	case it == nil && m.Suite.Assumed:
		out.why = fmt.Sprintf("The items with several streams have %d: a trial does not look for the knee (--streams N says another number).", defaultStreams)
		return out
	case it == nil && m.Suite.open():
		out.why = fmt.Sprintf("The load beside which small packets are measured has %d streams: the suite has no item of several streams whose knee could be looked for.", defaultStreams)
		return out
	case it == nil:
		return parallel{from: streamsGiven}
	}
	if _, more := m.nextKnee(all); more {
		out.why = fmt.Sprintf("The items with several streams have %d: the look for the knee did not come to its end.", defaultStreams)
		return out
	}
	mine := cut(all, kneePrefix)
	var yes, no []string
	most := 0
	for _, d := range it.Directions {
		a := m.sweep(it, d, kneeMost).Answer(mine)
		if !a.Known {
			no = append(no, fmt.Sprintf("%s was not looked at", d))
			continue
		}
		f := kneeOf(a)
		if !f.hosts {
			out.pool = max(out.pool, int(a.Knee.Cheapest))
		}
		if text := fmt.Sprintf("%s %s", d, f.text); f.streams == 0 {
			no = append(no, text)
		} else {
			most, yes = max(most, f.streams), append(yes, text)
		}
	}
	if most == 0 {
		out.why = fmt.Sprintf("The items with several streams have %d, since no knee was found: %s.", defaultStreams, strings.Join(no, "; "))
		return out
	}
	out.streams, out.from = most, streamsKnee
	out.why = fmt.Sprintf("The items with several streams have %d, by the knee: %s.", most, strings.Join(append(yes, no...), "; "))
	return out
}

// What M-KNEE takes for the hosts' doing.
const (
	kneeFullCore    = 0.95
	kneeRetransmits = 0.01
)

// found is what the look for the knee showed in a direction.
type found struct {
	streams int    // behind which more gain little, the larger of M-KNEE's two answers; 0 = none
	text    string // why, a clause
	hosts   bool   // the curve is the hosts', not the link's
}

func kneeOf(a method.SweepAnswer) found {
	k := a.Knee
	least := a.Points[0].X
	at := map[float64]method.KneePoint{}
	for _, p := range a.Points {
		least, at[p.X] = min(least, p.X), p
	}
	knee := max(k.Knee, k.Marginal)
	rate := func(x float64) string { return spell("bit/s", at[x].Y) }
	switch p := at[knee]; {
	case k.Cheapest == least:
		return found{text: fmt.Sprintf("%s carried as much as more did (%s)", streamCount(int(least)), rate(least))}
	case !k.Reached:
		return found{streams: int(k.Best), text: fmt.Sprintf("%d, the most that was tried: the rate still grew there (%s)", int(k.Best), rate(k.Best))}
	case knee <= least:
		return found{text: fmt.Sprintf("no doubling gains 5 %% (%s with %d, the best)", rate(k.Best), int(k.Best))}
	case p.HotCore >= kneeFullCore && p.Foreign: // not ours: a note, never the verdict (M-LIMIT)
		return found{streams: int(knee), text: fmt.Sprintf("%d (%s; the best, with %d, is %s; other programs kept a core full meanwhile, without them it may be another)", int(knee), rate(knee), int(k.Best), rate(k.Best))}
	case p.HotCore >= kneeFullCore:
		return found{hosts: true, text: fmt.Sprintf("the knee at %d is not the link's: a core was %.0f %% busy there", int(knee), 100*p.HotCore)}
	case p.Retransmits > kneeRetransmits:
		return found{hosts: true, text: fmt.Sprintf("the knee at %d does not count: %s of the segments were sent again there", int(knee), shareText(p.Retransmits))}
	}
	return found{streams: int(knee), text: fmt.Sprintf("%d (%s; the best, with %d, is %s)", int(knee), rate(knee), int(k.Best), rate(k.Best))}
}

func streamCount(n int) string {
	if n == 1 {
		return "1 stream"
	}
	return fmt.Sprintf("%d streams", n)
}

// resolved is the method with the number of streams that the history shows put in where the suite leaves
// it open.
func (m Method) resolved(all []method.Done) Method {
	n := m.parallel(all).streams
	m.Suite.Items = slices.Clone(m.Suite.Items)
	for i := range m.Suite.Items {
		if it := &m.Suite.Items[i]; it.Streams == 0 {
			it.Streams = n
		}
	}
	return m
}
