package ntttcp

import (
	"fmt"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// WindowsVersion is the release of ntttcp.exe whose behaviour is shown.
const WindowsVersion = "5.40"

// windowsParser is a command line of ntttcp.exe on its way.
type windowsParser struct {
	common
	send    bool
	foreign bool // the fault is a word that is not Windows', or a missing -m: it may be Linux'

	args []string
	at   int // the next word

	mappings    []plan.NTTTCPMapping
	mapTimes    int
	threads     int
	port        int32
	upperP      string // the value of -P in capitals
	block       int64
	blockSet    bool
	udp         bool
	buffers     int64
	buffersSet  bool
	time        int64 // ms
	timed       bool
	timeLimit   int64 // ms; 0 = default
	endless     bool
	warmUp      int32
	coolDown    int32
	sendBuffer  int64
	recvBuffer  int64
	sendSet     bool
	async       bool
	outstanding int32
	packets     bool
	packetCount int32
	icp         bool
	throughput  int64 // bytes per ms
	spacing     int32
	nic         string
	verbose     bool
	progress    bool // -m 1
}

func newWindows(argv0 string, w World) *windowsParser {
	p := &windowsParser{
		port: plan.NTTTCPPort, block: plan.NTTTCPWindowsBlock, buffers: plan.NTTTCPBuffers,
		sendBuffer: -1, recvBuffer: -1, outstanding: 2, packetCount: 1,
		send: roleOf(argv0) == plan.NTTTCPSender,
	}
	p.world = w
	p.n.Dialect = plan.NTTTCPWindows
	p.out = Output{Dialect: plan.NTTTCPWindows, Tables: true, Threads: true}
	return p
}

func windowsBanner() string { return "Copyright Version " + WindowsVersion + "\n" }

// winFault is a fault as ntttcp.exe reports it: "ERROR: <function> failed: <text>", or a
// text alone when function is "".
type winFault struct {
	function, text string
	hint           string // ours; "" = none
}

func option(name string) *winFault {
	return &winFault{function: "ProcessArgs", text: fmt.Sprintf(winOption, name)}
}

// stamp is the time in front of a message, with -v.
func (p *windowsParser) stamp() string {
	if !p.verbose {
		return ""
	}
	t := p.world.now()
	return fmt.Sprintf("%d/%d/%d %d:%d:%d ", t.Month(), t.Day(), t.Year(), t.Hour(), t.Minute(), t.Second())
}

// exit ends with f, if any, the usage text and exit code 9.
func (p *windowsParser) exit(f *winFault) *Exit {
	out := windowsBanner()
	if f != nil {
		if f.function != "" {
			out += p.stamp() + "ERROR: " + f.function + " failed: " + f.text + "\n"
		} else {
			out += p.stamp() + f.text
		}
		if f.hint != "" {
			p.note(f.hint)
		}
	}
	out += WindowsHelp() + p.stamp() + "ERROR: main failed: " + winParameters + "\n"
	return &Exit{Code: ExitWindowsParameters, Stdout: out, Stderr: p.stderr}
}

// parse matches the words by hand, as ProcessArgs does: without regard to case, each
// option a word, its value the next one.
func (p *windowsParser) parse(args []string) (*Invocation, *Exit) {
	if len(args) < 2 {
		p.foreign = true
		return nil, p.exit(nil)
	}
	p.args = args
	for p.at < len(args) {
		word := args[p.at]
		p.at++
		f, known := p.word(word)
		if !known {
			p.foreign = true
			f = &winFault{text: winUnknown, hint: fmt.Sprintf("'%s' is no option of this dialect%s", word, p.guess(word))}
		}
		if f != nil {
			return nil, p.exit(f)
		}
	}
	return p.finish()
}

// guess says what an unknown word may have been meant for.
func (p *windowsParser) guess(word string) string {
	if o := findLinux(word); o != nil {
		return "; it is one of the Linux dialect: " + dialectWord + " linux"
	}
	return ""
}

// word handles one option with its value. known = there is such a word.
func (p *windowsParser) word(word string) (f *winFault, known bool) {
	if f, ok := p.foreignWord(word); ok {
		return f, true
	}
	o := findWindows(strings.ToLower(word))
	if o == nil {
		return nil, false
	}
	value, given := "", false
	switch {
	case o.Meta == "" || o.Name == "-m":
	case o.Optional:
		value, given = p.optional()
	case p.at >= len(p.args):
		return option(o.Name), true
	default:
		value, given = p.args[p.at], true
		p.at++
	}
	if o.WindowsOnly && !p.world.Windows {
		p.note(o.Name + " is about Windows' own ways: no effect on this system")
	}
	return windowsSetters[o.Name](p, value, given), true
}

// optional takes the next word unless it looks like an option.
func (p *windowsParser) optional() (string, bool) {
	if p.at >= len(p.args) || strings.HasPrefix(p.args[p.at], "-") {
		return "", false
	}
	p.at++
	return p.args[p.at-1], true
}

// integer is a number as atoi reads it; one with junk is said.
func (p *windowsParser) integer(name, value string) int32 {
	n, exact := atoi(value)
	if !exact {
		p.note(fmt.Sprintf("%s '%s' is read as %d, as the original does", name, value, n))
	}
	return n
}

// memory is a size; what the original would compute wrongly, in 32 bits, is a fault.
func (p *windowsParser) memory(name, value string) (int64, *winFault) {
	n, exact, ok := memory(value)
	if !ok {
		f := option(name)
		f.hint = fmt.Sprintf("%s '%s': more than 2147483647", name, value)
		return 0, f
	}
	if !exact {
		p.note(fmt.Sprintf("%s '%s' is read as %d, as the original does", name, value, n))
	}
	return n, nil
}

// millis is a time in seconds, which has to fit the original's 32 bits as milliseconds.
func (p *windowsParser) millis(name string, n int64) (int64, *winFault) {
	if n > (1<<31-1)/1000 {
		f := option(name)
		f.hint = fmt.Sprintf("%s: at most %d seconds", name, (1<<31-1)/1000)
		return 0, f
	}
	return n * 1000, nil
}

type windowsSetter func(p *windowsParser, value string, given bool) *winFault

// windowsSetters has one entry per row of WindowsOptions.
var windowsSetters = map[string]windowsSetter{
	"-s":   windowsFlag(func(p *windowsParser) { p.send = true }),
	"-r":   windowsFlag(func(p *windowsParser) { p.send = false }),
	"-l":   (*windowsParser).setLength,
	"-n":   (*windowsParser).setBuffers,
	"-p":   (*windowsParser).setPort,
	"-sp":  windowsFlag(func(p *windowsParser) { p.n.PortSync = true }),
	"-ns":  windowsFlag(func(p *windowsParser) { p.n.NoSync = true }),
	"-to":  (*windowsParser).setTimeout,
	"-a":   (*windowsParser).setAsync,
	"-rb":  (*windowsParser).setReceiveBuffer,
	"-sb":  (*windowsParser).setSendBuffer,
	"-u":   windowsFlag(func(p *windowsParser) { p.setUDP() }),
	"-w":   windowsFlag(func(p *windowsParser) { p.n.WSA = true }),
	"-d":   windowsFlag(func(p *windowsParser) { p.n.Verify = true }),
	"-t":   (*windowsParser).setTime,
	"-cd":  windowsSeconds("-cd", func(p *windowsParser, n int32) { p.coolDown = n }),
	"-wu":  windowsSeconds("-wu", func(p *windowsParser, n int32) { p.warmUp = n }),
	"-v":   windowsFlag(func(p *windowsParser) { p.verbose, p.out.Verbose = true, true }),
	"-6":   windowsFlag(func(p *windowsParser) { p.plan.Family = 6 }),
	"-wa":  windowsFlag(func(p *windowsParser) { p.n.WaitAll = true }),
	"-nic": func(p *windowsParser, v string, _ bool) *winFault { p.nic = v; return nil },
	"-xml": func(p *windowsParser, v string, given bool) *winFault {
		p.out.XML, p.out.Tables = orDefault(v, given, windowsXML), false
		return nil
	},
	"-ndl": windowsFlag(func(p *windowsParser) { p.plan.NoDelay = true }),
	"-na":  (*windowsParser).setNode,
	"-hpt": windowsFlag(func(p *windowsParser) { p.out.Threads = false }),
	"-uso": (*windowsParser).setSegment,
	"-uro": windowsFlag(func(p *windowsParser) { p.n.Coalesce = true }),
	"-uc":  windowsFlag(func(p *windowsParser) { p.n.Unconnected = true }),
	"-x":   (*windowsParser).setPackets,
	"-hv":  windowsFlag(func(p *windowsParser) { p.n.HyperV = true }),
	"-nsb": windowsFlag(func(p *windowsParser) { p.out.Unbuffered = true }),
	"-thr": func(p *windowsParser, v string, _ bool) *winFault {
		p.throughput = throttle(p.integer("-thr", v)) / 8000
		return nil
	},
	"-brn": func(p *windowsParser, v string, _ bool) *winFault {
		p.n.CPUBurn = int(max(0, p.integer("-brn", v)))
		return nil
	},
	"-lm": windowsFlag(func(p *windowsParser) { p.n.Latency = true }),
	"-rt": windowsFlag(func(p *windowsParser) { p.n.RoundTrip, p.n.Latency = true, true }),
	"-icp": func(p *windowsParser, v string, _ bool) *winFault {
		n := int(p.integer("-icp", v))
		p.icp, p.n.ActiveThreads = true, &n
		return nil
	},
	"-cfi": windowsFlag(func(p *windowsParser) { p.out.CPUFromIdle = true }),
	"-es":  windowsFlag(func(p *windowsParser) { p.n.EStats = true }),
	"-sam": (*windowsParser).setSample,
	"-qos": (*windowsParser).setQOS,
	"-jm":  func(p *windowsParser, v string, _ bool) *winFault { p.n.Jitter, p.out.JitterFile = true, v; return nil },
	"-ps":  (*windowsParser).setSpacing,
	"-m":   func(p *windowsParser, _ string, _ bool) *winFault { return p.setMappings() },
}

func windowsFlag(set func(*windowsParser)) windowsSetter {
	return func(p *windowsParser, _ string, _ bool) *winFault {
		set(p)
		return nil
	}
}

// windowsSeconds is the setter of a time that the original does not check: a negative
// one has no meaning.
func windowsSeconds(name string, set func(*windowsParser, int32)) windowsSetter {
	return func(p *windowsParser, v string, _ bool) *winFault {
		n := p.integer(name, v)
		if _, f := p.millis(name, int64(n)); f != nil || n < 0 {
			return option(name)
		}
		set(p, n)
		return nil
	}
}

func (p *windowsParser) setLength(v string, _ bool) *winFault {
	n, f := p.memory("-l", v)
	switch {
	case f != nil:
		return f
	case n <= 0:
		return option("-l")
	}
	p.block, p.blockSet = n, true
	return nil
}

func (p *windowsParser) setBuffers(v string, _ bool) *winFault {
	n, f := p.memory("-n", v)
	switch {
	case f != nil:
		return f
	case n <= 0:
		return option("-n")
	}
	if p.timed || p.endless { // an earlier -t is now the limit
		p.timeLimit, p.timed, p.endless = p.time, false, false
	}
	p.buffers, p.buffersSet = n, true
	return nil
}

func (p *windowsParser) setPort(v string, _ bool) *winFault {
	if p.port = p.integer("-p", v); p.port <= 0 {
		return option("-p")
	}
	return nil
}

func (p *windowsParser) setTimeout(v string, _ bool) *winFault {
	n := p.integer("-to", v)
	p.n.WaitTimeout, p.n.NoTimeout = time.Duration(max(n, 0))*time.Millisecond, n <= 0
	return nil
}

func (p *windowsParser) setAsync(v string, given bool) *winFault {
	p.async = true
	if !given {
		return nil
	}
	if p.outstanding = p.integer("-a", v); p.outstanding <= 0 {
		return option("-a")
	}
	if p.world.Windows && !p.sendSet {
		p.sendBuffer = 0
	}
	return nil
}

func (p *windowsParser) setReceiveBuffer(v string, _ bool) (f *winFault) {
	p.recvBuffer, f = p.memory("-rb", v)
	return f
}

func (p *windowsParser) setSendBuffer(v string, _ bool) (f *winFault) {
	p.sendBuffer, f = p.memory("-sb", v)
	p.sendSet = true
	return f
}

func (p *windowsParser) setUDP() {
	p.udp = true
	if !p.blockSet {
		p.block = plan.NTTTCPWindowsUDP
	}
}

// setTime: behind -n it is a limit, and a size; else the length of the test.
func (p *windowsParser) setTime(v string, _ bool) *winFault {
	if p.buffersSet {
		n, f := p.memory("-t", v)
		if f == nil {
			p.timeLimit, f = p.millis("-t", n)
		}
		if f == nil && p.timeLimit <= 0 {
			f = &winFault{function: "ProcessArgs", text: winTimeN}
		}
		return f
	}
	n, exact := atoi(v)
	if exact && n == 0 {
		p.endless, p.timed, p.time = true, false, 0
		p.note("-t 0, as in the Linux dialect: until Ctrl-C")
		return nil
	}
	p.integer("-t", v)
	ms, f := p.millis("-t", int64(n))
	switch {
	case f != nil:
		return f
	case n <= 0:
		return option("-t")
	}
	p.time, p.timed, p.endless = ms, true, false
	return nil
}

func (p *windowsParser) setNode(v string, _ bool) *winFault {
	n := int(p.integer("-na", v))
	if n < 0 {
		return option("-na")
	}
	p.n.NUMANode = &n
	return nil
}

func (p *windowsParser) setSegment(v string, _ bool) *winFault {
	if p.n.SegmentSize = int(p.integer("-uso", v)); p.n.SegmentSize < 0 {
		return option("-uso")
	}
	return nil
}

func (p *windowsParser) setPackets(v string, given bool) *winFault {
	p.packets = true
	if !given {
		return nil
	}
	if p.packetCount = p.integer("-x", v); p.packetCount <= 0 {
		return option("-x")
	}
	return nil
}

func (p *windowsParser) setSample(v string, _ bool) *winFault {
	n := p.integer("-sam", v)
	ms, f := p.millis("-sam", int64(n))
	switch {
	case f != nil:
		return f
	case ms <= 0:
		return option("-sam")
	}
	p.n.Sample = time.Duration(ms) * time.Millisecond
	return nil
}

// qosPoints are the code points of qWAVE's traffic types 0 … 5.
var qosPoints = [...]int{0, 0x08, 0x28, 0x28, 0x38, 0x38}

func (p *windowsParser) setQOS(v string, _ bool) *winFault {
	n := int(p.integer("-qos", v))
	if n < 0 || n >= len(qosPoints) {
		return option("-qos")
	}
	p.n.QOS, p.plan.TOS = &n, qosPoints[n]<<2
	return nil
}

func (p *windowsParser) setSpacing(v string, _ bool) *winFault {
	if p.spacing = p.integer("-ps", v); p.spacing < 5 || p.spacing > 1000 {
		return option("-ps")
	}
	p.n.Spacing = time.Duration(p.spacing) * time.Millisecond
	return nil
}
