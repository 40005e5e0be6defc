package goldentest

import (
	"regexp"
	"strconv"
	"strings"
)

// Mask reduces iperf3's text output to its layout: each number, address and name that
// differs between runs is replaced by the class of its format, everything else stays
// byte for byte. A number that is not of the class that its place demands (spec
// iperf3-cli §5.3) is left alone, so that the comparison fails on it.
//
// Of JSON documents the values are masked.
//
// The table has one rule for each kind of line; what no rule matches is not changed.
func Mask(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		end := ""
		if strings.HasSuffix(line, "\n") {
			line, end = line[:len(line)-1], "\n"
		}
		stamp := stampRE.FindString(line)
		line = line[len(stamp):]
		if stamp != "" {
			b.WriteString("<stamp> ")
		}
		b.WriteString(maskLine(line))
		b.WriteString(end)
	}
	return b.String()
}

// stampRE is what --timestamps puts before a line, in the two formats recorded.
var stampRE = regexp.MustCompile(`^(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d )?\d\d:\d\d:\d\d(?: \d{4})? `)

// The classes. An amount has three significant digits in at least four places; a fixed
// unit may need more places before the point.
const (
	amount = ` *(?:\d\.\d\d|\d\d\.\d|\d{3,})`
	host   = `[0-9A-Za-z.:%_-]+`
)

type rule struct {
	re *regexp.Regexp
	to string
}

var rules = []rule{
	{regexp.MustCompile(`^((?:.*:  )?\[(?: *\d+|SUM)\](?:\[[TR]X-[CS]\])?) (` + place(6) + `)-(` + place6left + `) sec  (.*)$`), "$1 <start>-<end-> sec  $4"},
	{regexp.MustCompile(`sec  (?:` + amount + `) [KMGT]?Bytes  `), "sec  <amount>s  "},
	{regexp.MustCompile(`<amount>s  (?:` + amount + `) [KMGT]?(bit|Byte)s/sec`), "<amount>s  <rate> ${1}s/sec"},
	{regexp.MustCompile(`/sec  (?:[ \d]{2}\d|\d{4,})   (?:` + amount + `) [KMGT]?Bytes       `), "/sec  <retr>   <amount>s       "},
	{regexp.MustCompile(`/sec  (?:[ \d]{2}\d|\d{4,})( {12,13})`), "/sec  <retr>$1"},
	{regexp.MustCompile(`/sec  \d+\.\d{3} ms  \d+/\d+ \((?:\d+|\d\.\d+|0\.0\d+|\de[+-]\d\d)%\)  `), "/sec  <jitter> ms  <lost>/<total> (<percent>%)  "},
	{regexp.MustCompile(`/sec( {2}| {12})\d+  `), "/sec$1<datagrams>  "},
	{regexp.MustCompile(`(\[(?: *\d+)\] local )` + host + ` port \d+ connected to ` + host + ` port \d+$`), "${1}<host> port <port> connected to <host> port <port>"},
	{regexp.MustCompile(`(Accepted connection from )` + host + `, port \d+$`), "${1}<host>, port <port>"},
	{regexp.MustCompile(`(Connecting to host )` + host + `, port \d+$`), "${1}<host>, port <port>"},
	{regexp.MustCompile(`(Reverse mode, remote host )` + host + ` is sending$`), "${1}<host> is sending"},
	{regexp.MustCompile(`^(Server listening on )\d+ \(test #\d+\)$`), "${1}<port> (test #<n>)"},
	{regexp.MustCompile(`^(      Cookie: )[a-z2-7]{36}$`), "${1}<cookie>"},
	{regexp.MustCompile(`^(      TCP MSS: )\d+`), "${1}<n>"},
	{regexp.MustCompile(`^(      Target Bitrate: )\d+$`), "${1}<n>"},
	{regexp.MustCompile(`^(Control connection MSS |Setting UDP block size to )\d+$`), "${1}<n>"},
	{regexp.MustCompile(`^Time: [A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$`), "Time: <time>"},
	{regexp.MustCompile(`^(Starting Test: protocol: [A-Z]+, )\d+ streams, \d+ byte blocks, omitting \d+ seconds, \d+ (second test|bytes to send|blocks to send), tos \d+$`), "${1}<n> streams, <n> byte blocks, omitting <n> seconds, <n> $2, tos <n>"},
	{regexp.MustCompile(`^(CPU Utilization: local/\w+) \d+\.\d% \(\d+\.\d%u/\d+\.\d%s\), (remote/\w+) \d+\.\d% \(\d+\.\d%u/\d+\.\d%s\)$`), "$1 <cpu>, $2 <cpu>"},
	{regexp.MustCompile(`^((?:snd|rcv)_tcp_congestion )\w+$`), "${1}<name>"},
	{regexp.MustCompile(`^(        Sent )(?:` + amount + `) [KMGT]?Byte / (?:` + amount + `) [KMGT]?Byte \(\d+%\) of .+$`), "${1}<amount> / <amount> (<n>%) of <file>"},
	{regexp.MustCompile(`^(\t+"[a-z_]+":\t)(?:"[^"]*"|[^{\[]*?)(,?)$`), "${1}<value>$2"},
	{regexp.MustCompile(`^iperf 3\.\d+$`), "iperf <release>"},
	{regexp.MustCompile(`^(?:Linux|Windows|Darwin|FreeBSD)\S* \S+ .+$`), "<system>"},
}

const place6left = `\d\.\d\d  |\d\d\.\d\d |\d{3,}\.\d\d`

// place is a number with two decimals, right-aligned in n columns.
func place(n int) string {
	var alt []string
	for digits := 1; digits <= n-3; digits++ {
		alt = append(alt, strings.Repeat(" ", n-3-digits)+`\d{`+strconv.Itoa(digits)+`}\.\d\d`)
	}
	alt = append(alt, `\d{`+strconv.Itoa(n-2)+`,}\.\d\d`)
	return strings.Join(alt, "|")
}

func maskLine(line string) string {
	for _, r := range rules {
		line = r.re.ReplaceAllString(line, r.to)
	}
	return line
}

// intervalRE finds a row of an interval report (its label is empty or "(omitted)"), with
// its stream and times.
var intervalRE = regexp.MustCompile(`^(?:.*:  )?\[( *\d+|SUM)\](\[[TR]X-[CS]\])? +(\d+\.\d\d)-(\d+\.\d\d) +sec .*(?: |\(omitted\))$`)

const separator = "- - - - - - - - - - - - - - - - - - - - - - - - -"

// DropShort removes the last interval report of each test in text if it is shorter
// than half of the one before it: whether an end prints such a rest depends on
// microseconds. The streams of a report may end at different times.
func DropShort(text string) string {
	lines := strings.SplitAfter(text, "\n")
	var out []string
	var block []string         // rows of the last report
	in := map[string]bool{}    // its streams
	var length, before float64 // of the last report and the one before it; 0 = none
	flush := func(last bool) {
		if last && before > 0 && length < before/2 {
			if n := len(out) - 1; n >= 0 && strings.TrimSpace(out[n]) == separator {
				out = out[:n]
			}
			block = nil
		}
		out = append(out, block...)
		block, in = nil, map[string]bool{}
		before, length = length, 0
		if last {
			before = 0
		}
	}
	for i, line := range lines {
		m := intervalRE.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			more := i+1 < len(lines) && intervalRE.MatchString(strings.TrimSuffix(lines[i+1], "\n"))
			if len(block) > 0 || !more {
				flush(!more)
			}
			out = append(out, line)
			continue
		}
		if in[m[1]+m[2]] { // the stream's next report
			flush(false)
		}
		in[m[1]+m[2]] = true
		length = max(length, seconds(m[3], m[4]))
		block = append(block, line)
	}
	flush(true)
	return strings.Join(out, "")
}

func seconds(from, to string) float64 {
	a, err1 := strconv.ParseFloat(from, 64)
	b, err2 := strconv.ParseFloat(to, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return b - a
}

// Layout is Mask after DropShort: what two runs of the same command must share.
func Layout(text string) string { return Mask(DropShort(text)) }
