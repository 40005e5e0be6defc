package ntttcplinux_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/render/goldentest"
	"github.com/fullbore-net/fullbore/internal/render/ntttcplinux"
	"github.com/fullbore-net/fullbore/result"
)

// recording is one recorded console, as events and options from which it can be printed
// again: a test, or several in one process.
type recording struct {
	command
	tests []test
	xml   string
	json  string
	log   string
	text  string
}

type test struct {
	events []result.Event
	stamp  time.Time // of the totals, or of the last line
}

// read decodes the recording of one command line.
func read(t *testing.T, c command) *recording {
	t.Helper()
	r := &recording{command: c}
	for _, g := range goldentest.NTTTCP(t, c.name+".*") {
		switch g.Ext {
		case "txt":
			r.text = string(g.Data)
		case "xml":
			r.xml = string(g.Data)
		case "json":
			r.json = string(g.Data)
		case "log":
			r.log = string(g.Data)
		}
	}
	p := &parser{t: t, r: r, f: newFacts()}
	p.begin()
	text := strings.NewReplacer("\x1b[2K", "", "\r", "\n").Replace(r.text)
	for line := range strings.Lines(text) {
		p.line(strings.TrimSuffix(line, "\n"))
	}
	p.end()
	return r
}

type parser struct {
	t *testing.T
	r *recording
	f *facts

	head    result.Run
	cur     test
	stamp   time.Time
	rows    int
	rulers  int
	started bool
	totals  bool // inside the result
	over    bool // the result has been read
	failed  []string
}

func (p *parser) begin() {
	c := &p.r.command
	p.head = result.Run{Schema: result.Schema, End: c.end, Protocol: "ntttcp", Test: c.test, NTTTCP: &c.nttcp}
	p.head.Hosts.Set(c.end, &result.Host{Name: "testhost", SystemInfo: "Linux testhost 6.1.0-test #1 SMP x86_64 GNU/Linux"})
	p.f = newFacts()
	p.rows, p.started, p.totals, p.over, p.failed = 0, false, false, false, nil
	p.cur = test{}
}

func (p *parser) add(e result.Event) {
	if p.cur.events = append(p.cur.events, e); e.End == "" {
		p.cur.events[len(p.cur.events)-1].End = p.r.end
	}
}

func (p *parser) milestone(m result.Milestone) {
	m.Time = p.stamp
	p.add(result.Event{Kind: result.KindMilestone, Milestone: &m})
}

// end completes a test.
func (p *parser) end() {
	if len(p.failed) > 0 {
		p.add(result.Event{Kind: result.KindError, Err: &result.Error{Code: "some", Text: strings.Join(p.failed, "\n")}})
	}
	if p.cur.stamp.IsZero() {
		p.cur.stamp = p.stamp
	}
	p.r.tests = append(p.r.tests, p.cur)
}

var (
	reStamped = regexp.MustCompile(`^(\d\d:\d\d:\d\d) (INFO|ERR |DBG ): (.*)$`)
	reNumber  = regexp.MustCompile(`\d+`)
	// other are the lines in the tool's own words.
	other = regexp.MustCompile(`^(user limits for maximum|Interface:\[|Warning! '|the UDP send size is too big|running test in continuous mode|` +
		`failed to bind socket|failed to do tcp bind|failed to connect to receiver: \S+ on socket\[|error: cannot read data from socket|error happened on the sync socket)`)
	// early are those of them that come before the settings.
	early = regexp.MustCompile(`^(Warning! '|the UDP send size|running test in continuous mode)`)
)

const rulerLine = "---------------------------------------------------------"

func (p *parser) line(l string) {
	m := reStamped.FindStringSubmatch(l)
	switch {
	case m != nil:
		at, err := time.Parse("2006-01-02 15:04:05", "2026-11-30 "+m[1])
		if err != nil {
			p.t.Fatal(err)
		}
		p.stamp = at
		p.stamped(m[2], m[3])
	case strings.HasPrefix(l, "Real-time throughput: "):
		p.start()
		p.row(strings.TrimPrefix(l, "Real-time throughput: "))
	case l == rulerLine:
		p.rulers++
		if p.totals {
			p.finish()
		}
	case strings.HasPrefix(l, "NTTTCP for Linux ") && p.rulers == 0:
	case p.r.o.Verbose && p.rulers == 1: // the settings: they come from the command line
		p.prepare()
	default:
		p.t.Errorf("%s: unknown line %q", p.r.name, l)
	}
}

func (p *parser) prepare() {
	for _, e := range p.cur.events {
		if e.Kind == result.KindPrepared {
			return
		}
	}
	head := p.head
	p.add(result.Event{Kind: result.KindPrepared, Head: &head})
}

func (p *parser) start() {
	if p.started {
		return
	}
	p.started = true
	head := p.head
	head.Streams = p.streams()
	p.add(result.Event{Kind: result.KindStart, Head: &head})
}

// streams are as many as there must have been: for a receiver one for each port.
func (p *parser) streams() []result.Stream {
	n := p.r.nttcp
	count := n.Ports
	per := 1
	if p.r.end == result.Client {
		count, per = n.Ports*n.Threads*n.Connections, n.Connections
	}
	out := make([]result.Stream, count)
	for i := range out {
		thread := i / per
		out[i] = result.Stream{ID: i + 1, Direction: result.Up, Thread: &thread}
	}
	return out
}

func (p *parser) row(rate string) {
	const length = 0.5
	bps := rateOf(rate).mid()
	if rate == "0.00bps" {
		bps = 0
	}
	warming := p.r.test.Omit > 0 && !p.told(result.MilestoneWarmedUp)
	p.add(result.Event{Kind: result.KindInterval, Interval: &result.Interval{
		End: p.r.end, Index: p.rows, Start: float64(p.rows) * length, Stop: float64(p.rows+1) * length, Omitted: warming,
		Sums: []result.IntervalSum{{Direction: result.Up, Sender: p.r.end == result.Client, Bytes: int64(bps * length / 8), BPS: bps}},
	}})
	p.rows++
}

func (p *parser) told(code string) bool {
	for _, e := range p.cur.events {
		if e.Kind == result.KindMilestone && e.Milestone.Code == code {
			return true
		}
	}
	return false
}

func (p *parser) finish() {
	p.totals, p.over = false, true
	for _, ext := range []struct {
		doc  string
		read func(string)
	}{
		{p.r.xml, func(s string) { p.f.xml(s, p.r.o.Release == ntttcplinux.R134 || p.r.o.Release == ntttcplinux.R140Tag) }},
		{p.r.json, func(s string) { p.f.json(p.t, []byte(s)) }},
	} {
		if ext.doc != "" {
			ext.read(ext.doc)
		}
	}
	streams := p.streams()
	if p.f.conns != 0 && p.f.conns != len(streams) {
		p.t.Errorf("%s: %d connections tested, %d streams", p.r.name, p.f.conns, len(streams))
	}
	_, h := p.f.solve(p.t, p.r.end, streams)
	totals := &result.HostTotals{}
	if p.r.end == result.Client {
		totals.Client = h
	} else {
		totals.Server = h
	}
	p.cur.stamp = p.stamp
	p.add(result.Event{Kind: result.KindFinish, Finish: &result.Finish{Streams: streams, Machines: totals}})
}

// fixed are the lines without numbers, by what they tell.
var fixed = map[string]string{
	"Starting sender activity (no sync) ...":          result.MilestoneNoSync,
	"waiting for the last client to join the test":    result.MilestoneWaiting,
	"Network activity progressing...":                 result.MilestoneStarted,
	"Test warmup completed.":                          result.MilestoneWarmedUp,
	"Test run completed.":                             result.MilestoneMeasured,
	"Test cooldown is in progress...":                 result.MilestoneCooling,
	"Test cycle finished.":                            result.MilestoneCycleOver,
	"receiver exited from current test":               result.MilestonePeerDone,
	"test exited because sender side was interrupted": result.MilestonePeerLeft,
	"Interrupted by Ctrl+C":                           result.MilestoneInterrupt,
	"Test was interrupted.":                           result.MilestoneNoResult,
	"main: set cpu affinity":                          result.MilestoneBound,
	"test is negotiated to run with continuous mode":  result.MilestoneCycle,
	"ntttcp server is listening on ":                  result.MilestoneListening,
	"Sync connection: ":                               result.MilestoneSync,
	"New connection: ":                                result.MilestoneConnection,
	"socket closed: ":                                 result.MilestoneClosed,
}

func (p *parser) stamped(level, text string) {
	if p.totals || text == "#####  Totals:  #####" || strings.HasPrefix(text, "\tThread") || reTested.MatchString(text) {
		p.totals = true
		p.f.line(p.t, text)
		return
	}
	if !early.MatchString(text) && !p.over {
		p.prepare()
	}
	if level == "ERR " && !p.over {
		p.failed = append(p.failed, text)
		return
	}
	if code, ok := fixed[text]; ok {
		if code == result.MilestoneStarted {
			p.next()
			p.start()
		}
		p.milestone(result.Milestone{Code: code})
		return
	}
	numbers := reNumber.FindAllString(text, -1)
	count := func(i int) int64 { return int64(num(numbers[i])) }
	switch {
	case strings.HasSuffix(text, " threads created"):
		p.milestone(result.Milestone{Code: result.MilestoneThreads, Count: count(0)})
	case strings.HasSuffix(text, " microseconds"):
		p.milestone(result.Milestone{Code: result.MilestoneConnected, Count: count(0), Micros: count(1)})
	case strings.HasPrefix(text, "Test cycle time negotiated is: "):
		p.milestone(result.Milestone{Code: result.MilestoneCycle, Count: count(0)})
	case strings.HasPrefix(text, "socket closed: "):
		p.milestone(result.Milestone{Code: result.MilestoneClosed, Socket: int(count(0))})
	case strings.HasPrefix(text, "ntttcp server is listening on "):
		p.milestone(result.Milestone{Code: result.MilestoneListening, Local: address(text[30:])})
	case strings.HasPrefix(text, "Sync connection: "), strings.HasPrefix(text, "New connection: "):
		p.connection(text)
	case other.MatchString(text):
		severity := map[string]string{"INFO": "info", "ERR ": "error", "DBG ": "debug"}[level]
		p.milestone(result.Milestone{Code: result.MilestoneLine, Severity: severity, Text: text})
	default:
		p.t.Errorf("%s: unknown line %q", p.r.name, text)
	}
}

// next begins another test of the same process.
func (p *parser) next() {
	if p.over {
		p.end()
		p.begin()
	}
}

var reConnection = regexp.MustCompile(`^(Sync|New) connection: (?:local:(\d+) \[socket:(\d+)\] --> (\S+)|(\S+) --> local:(\d+) \[socket (\d+)\])$`)

func (p *parser) connection(text string) {
	m := reConnection.FindStringSubmatch(text)
	if m == nil {
		p.t.Errorf("%s: unknown line %q", p.r.name, text)
		return
	}
	ms := result.Milestone{Code: result.MilestoneConnection}
	if m[1] == "Sync" {
		ms.Code = result.MilestoneSync
		p.next()
	}
	if m[2] != "" {
		ms.Local, ms.Socket, ms.Remote = &result.Addr{Port: num(m[2])}, num(m[3]), address(m[4])
	} else {
		ms.Remote, ms.Local, ms.Socket = address(m[5]), &result.Addr{Port: num(m[6])}, num(m[7])
	}
	p.milestone(ms)
}

func address(s string) *result.Addr {
	i := strings.LastIndexByte(s, ':')
	return &result.Addr{Host: s[:i], Port: num(s[i+1:])}
}
