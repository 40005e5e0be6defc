package ntttcp

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/fullbore-net/fullbore/internal/cli/getopt"
	"github.com/fullbore-net/fullbore/internal/plan"
)

// LinuxVersion is the release of ntttcp-for-linux whose behaviour is shown.
const LinuxVersion = "1.4.3"

const ruler = "---------------------------------------------------------\n"

// Default file names of ntttcp-for-linux, and of ntttcp.exe for XML.
const (
	linuxLog   = "ntttcp-for-linux-log.log"
	linuxXML   = "ntttcp-for-linux-log.xml"
	linuxJSON  = "ntttcp-for-linux-log.json"
	windowsXML = "xml.txt"
)

// Levels of log lines, as they stand in the line.
const (
	levelInfo  = "INFO"
	levelError = "ERR "
	levelDebug = "DBG "
)

// linuxParser is a command line of ntttcp-for-linux on its way. Its numbers have the
// original's types: what is negative there wraps there.
type linuxParser struct {
	common
	argv0       string
	role        plan.NTTTCPRole // when no option says one; "" = as the original
	lines       string
	hideThreads bool   // -hpt
	windowsWord string // a word that could be an option of the other dialect
	addressed   bool   // an address was given
	foreign     bool   // a word of LinuxWords was used
	unclear     bool   // something was garbled, clamped, left over

	server, client          bool
	mapping                 string
	mapped                  *plan.NTTTCPMapping
	named                   bool // the address came from -m: a bare name is fine there
	ports, threads, conns   uint32
	address, source         string
	sourceSet               bool
	cpu                     int32
	v6, udp, noDelay        bool
	basePort, sourcePort    uint32
	receiveBlock, sendBlock int64
	blockSet                bool
	rate, fqRate            int64
	threadRate              int64 // -thr: bit/s of a thread
	warmUp, time, coolDown  int32
}

func newLinux(argv0 string, w World) *linuxParser {
	p := &linuxParser{
		argv0: argv0, mapping: "16,*,*", address: "0.0.0.0", source: "0.0.0.0", cpu: -1,
		ports: plan.NTTTCPPorts, threads: plan.NTTTCPThreads, conns: 1, basePort: plan.NTTTCPPort,
		receiveBlock: plan.NTTTCPReceiveBlock, sendBlock: plan.NTTTCPSendBlock, time: 60,
	}
	p.world = w
	p.n.Dialect = plan.NTTTCPLinux
	p.out = Output{Dialect: plan.NTTTCPLinux, Realtime: true, Tables: true}
	return p
}

func linuxBanner() string { return "NTTTCP for Linux " + LinuxVersion + "\n" + ruler }

// log is a line as PRINT_LOG prints it.
func (p *linuxParser) log(level, text string) {
	p.lines += p.world.now().Format("15:04:05") + " " + level + ": " + text + "\n"
}

// clamp is a log line about a value that was changed.
func (p *linuxParser) clamp(text string) {
	p.log(levelInfo, text)
	p.unclear = true
}

// conflict ends with the original's text about arguments, which is followed by the
// settings even without -V; hint is ours, "" = none.
func (p *linuxParser) conflict(text, hint string) *Exit {
	p.log(levelError, text)
	p.log(levelError, textVerify)
	if hint != "" {
		p.note(hint)
	}
	return &Exit{Code: ExitConflict, Stdout: linuxBanner() + p.lines + p.settings(), Stderr: p.stderr + p.windowsWord}
}

func (p *linuxParser) usage(stderr string) *Exit {
	return &Exit{Code: ExitUsage, Stdout: linuxBanner() + p.lines + LinuxHelp(), Stderr: p.stderr + stderr}
}

// parse reads the words one by one, as getopt_long with its permuting order does: what
// is not an option may stand anywhere.
func (p *linuxParser) parse(args []string) (*Invocation, *Exit) {
	table := linuxSpellings()
	var rest []string
	for i := 0; i < len(args); {
		if args[i] == "--" {
			rest = append(rest, args[i+1:]...)
			break
		}
		if used := p.foreignWord(args[i:]); used > 0 {
			i += used
			continue
		}
		r, used := next(table, args[i:])
		if hint := windowsHint(args[i]); hint != "" {
			p.windowsWord = hint
		}
		i += used
		for _, m := range r.Matches {
			if m.Key == "-h" {
				return nil, p.usage("")
			}
			linuxSetters[m.Key](p, m.Value, m.HasValue)
		}
		if r.Err != nil {
			return nil, p.usage(p.argv0 + ": " + r.Err.Error() + "\n" + p.windowsWord)
		}
		if len(r.Rest) > 0 {
			rest = append(rest, r.Rest...)
		} else if unclearForm(args[i-used]) {
			p.unclear = true
		}
	}
	if len(rest) > 0 {
		p.leftOver(rest)
	}
	return p.finish()
}

// next takes one option word, or one that is none, with its value if that is the next
// word, and reports how many words that were. Beyond getopt, as ntttcp does it: an
// optional value may be the next word too, unless that is empty or begins with a dash.
func next(table []getopt.Option, args []string) (getopt.Result, int) {
	if len(args) == 1 {
		return getopt.ParseGNU(table, args), 1
	}
	// A second word that cannot be an option shows whether it would be taken as a value.
	r := getopt.ParseGNU(table, []string{args[0], "word"})
	if n := len(r.Rest); n > 0 {
		r.Rest = r.Rest[:n-1]
	} else if r.Err == nil {
		r.Matches[len(r.Matches)-1].Value = args[1]
		return r, 2
	}
	if n := len(r.Matches); n > 0 && r.Err == nil {
		m := &r.Matches[n-1]
		if o := findLinux(m.Key); o.Optional && !m.HasValue && args[1] != "" && args[1][0] != '-' {
			m.Value, m.HasValue = args[1], true
			return r, 2
		}
	}
	return r, 1
}

// unclearForm: word is a bundle of short options, or has a value glued to it that is no
// address. Only lines without such are read as Linux's when the dialect is another: the
// options of Windows' program look like that.
func unclearForm(word string) bool {
	if len(word) <= 2 || strings.HasPrefix(word, "--") {
		return false
	}
	_, err := netip.ParseAddr(word[2:])
	return err != nil
}

// leftOver tells about words that the original ignores without saying so.
func (p *linuxParser) leftOver(words []string) {
	p.unclear = true
	for _, word := range words {
		if strings.Count(word, ",") == 2 && p.mapped != nil {
			p.note(fmt.Sprintf("'%s' is ignored: one mapping is all that this dialect takes; several receivers: %s windows", word, dialectWord))
			return
		}
	}
	p.note("ignored, as the original does: '" + strings.Join(words, "' '") + "'")
}

// windowsHint: word may be meant for the other program.
func windowsHint(word string) string {
	if o := findWindows(strings.ToLower(word)); o != nil && len(word) > 2 {
		return fmt.Sprintf("ntttcp: %s is an option of the Windows dialect: %s windows\n", o.Name, dialectWord)
	}
	return ""
}

// integer is a number as atoi reads it; one with junk is said.
func (p *linuxParser) integer(name, value string) int32 {
	n, exact := atoi(value)
	if !exact {
		p.unclear = true
		p.note(fmt.Sprintf("%s '%s' is read as %d, as the original does", name, value, n))
	}
	return n
}

// size is a number with k, m, g. What cannot be read, which leaves the original with an
// undefined value, is -1 and refused later.
func (p *linuxParser) size(name, value string, k float64) int64 {
	n, exact, ok := unit(value, k)
	if !ok {
		return -1
	}
	if !exact {
		p.unclear = true
		p.note(fmt.Sprintf("%s '%s' is read as %d, as the original does", name, value, n))
	}
	return n
}

// linuxSetter takes an option's value over. given = there is one.
type linuxSetter func(p *linuxParser, value string, given bool)

// linuxSetters has one entry per row of LinuxOptions, but -h.
var linuxSetters = map[string]linuxSetter{
	"-r": func(p *linuxParser, v string, given bool) { p.server = true; p.setAddress(v, given) },
	"-s": func(p *linuxParser, v string, given bool) { p.client = true; p.setAddress(v, given) },
	"-D": linuxFlag(func(p *linuxParser) { p.daemon = true }),
	"-M": linuxFlag(func(p *linuxParser) { p.n.MultiClient = true }),
	"-L": linuxFlag(func(p *linuxParser) { p.n.Last = true }),
	"-e": linuxFlag(func(p *linuxParser) { p.n.Epoll = true }),
	"-H": linuxFlag(func(p *linuxParser) { p.hold = true }),
	"-P": linuxInt("-P", func(p *linuxParser, n int32) { p.ports = uint32(n) }),
	"-a": func(p *linuxParser, v string, _ bool) { p.source, p.sourceSet = v, true },
	"-n": linuxInt("-n", func(p *linuxParser, n int32) { p.threads = uint32(n) }),
	"-l": (*linuxParser).setConnections,
	"-6": linuxFlag(func(p *linuxParser) { p.v6 = true }),
	"-u": linuxFlag(func(p *linuxParser) { p.udp = true }),
	"-p": linuxInt("-p", func(p *linuxParser, n int32) { p.basePort = uint32(n) }),
	"-f": func(p *linuxParser, v string, given bool) {
		p.sourcePort = linuxSourcePort
		if given {
			p.sourcePort = uint32(p.integer("-f", v))
		}
	},
	"-b": func(p *linuxParser, v string, _ bool) { p.setBlock(p.size("-b", v, 1024)) },
	"-B": func(p *linuxParser, v string, _ bool) { p.rate = p.size("-B", v, 1000) },
	"-W": linuxInt("-W", func(p *linuxParser, n int32) { p.warmUp = n }),
	"-t": linuxInt("-t", func(p *linuxParser, n int32) { p.time = n }),
	"-C": linuxInt("-C", func(p *linuxParser, n int32) { p.coolDown = n }),
	"-N": linuxFlag(func(p *linuxParser) { p.n.NoSync = true }),
	"-O": func(p *linuxParser, v string, given bool) { p.out.Log = orDefault(v, given, linuxLog) },
	"-x": func(p *linuxParser, v string, given bool) { p.out.XML = orDefault(v, given, linuxXML) },
	"-j": func(p *linuxParser, v string, given bool) { p.out.JSON = orDefault(v, given, linuxJSON) },
	"-Q": linuxFlag(func(p *linuxParser) { p.out.Realtime = false }),
	"-V": linuxFlag(func(p *linuxParser) { p.out.Verbose, p.out.Threads = true, true }),
	"-m": func(p *linuxParser, v string, _ bool) { p.setMapping(v) },

	"--show-tcp-retrans":    linuxFlag(func(p *linuxParser) { p.out.TCPRetransmits = true }),
	"--show-nic-packets":    func(p *linuxParser, v string, _ bool) { p.out.Interface = v },
	"--show-dev-interrupts": func(p *linuxParser, v string, _ bool) { p.out.Interrupts = v },
	"--fq-rate-limit":       func(p *linuxParser, v string, _ bool) { p.fqRate = p.size("--fq-rate-limit", v, 1000) },
	"--no-delay":            linuxFlag(func(p *linuxParser) { p.noDelay = true }),
}

// linuxSourcePort is what a bare -f, and one up to 1024, means.
const linuxSourcePort = 25001

func linuxFlag(set func(*linuxParser)) linuxSetter {
	return func(p *linuxParser, _ string, _ bool) { set(p) }
}

func linuxInt(name string, set func(*linuxParser, int32)) linuxSetter {
	return func(p *linuxParser, v string, _ bool) { set(p, p.integer(name, v)) }
}

func orDefault(v string, given bool, def string) string {
	if given {
		return v
	}
	return def
}

func (p *linuxParser) setAddress(v string, given bool) {
	if given {
		p.address, p.named, p.addressed = v, false, true
	}
}

func (p *linuxParser) setBlock(n int64) { p.receiveBlock, p.sendBlock, p.blockSet = n, n, true }

// setConnections: -l is connections per thread, which has no unit. With one it is the
// length of the Windows dialect, of which the original would keep the digits.
func (p *linuxParser) setConnections(v string, _ bool) {
	if hasSuffix(v) {
		n := p.size("-l", v, 1024)
		p.setBlock(n)
		p.note(fmt.Sprintf("-l %s: a length is Windows' -l; here it is -b: %d bytes per call", v, n))
		return
	}
	p.conns = uint32(p.integer("-l", v))
}

// setMapping is process_mappings: fields are taken over up to the first that is wrong.
func (p *linuxParser) setMapping(v string) {
	p.mapping = v
	m := &plan.NTTTCPMapping{}
	for i, field := range strings.Split(v, ",") {
		switch i {
		case 0:
			n := p.integer("-m", field)
			if n < 1 {
				p.unclear = true
				return
			}
			p.ports, p.threads = uint32(n), 1
			m.Threads = int(n)
			p.mapped = m
		case 1:
			if field == "*" {
				continue
			}
			n := p.integer("-m", field)
			if n < -1 || p.world.CPUs > 0 && int(n) >= p.world.CPUs || n > plan.MaxAffinity {
				p.log(levelError, textMappingCPU)
				p.unclear = true
				return
			}
			p.cpu = n
		case 2:
			p.address, p.named, p.addressed = field, true, true
		default:
			p.log(levelError, textMappingFields)
			p.unclear = true
			return
		}
	}
}
