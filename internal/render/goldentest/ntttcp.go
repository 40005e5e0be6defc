package goldentest

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	ntttcpStamp = regexp.MustCompile(`^\d\d:\d\d:\d\d ((?:INFO|ERR |DBG ): )`)
	ntttcpRate  = regexp.MustCompile(`\d+\.\d\d[KMG]?bps\b`)
	ntttcpHost  = regexp.MustCompile(`\b\d+\.\d+\.\d+\.\d+\b`)
	ntttcpFloat = regexp.MustCompile(`\d+\.\d+`)
	ntttcpWhole = regexp.MustCompile(`\d+`)
	ntttcpOver  = regexp.MustCompile(`\r([^\n])`) // a report that the next line overwrites
)

// MaskNTTTCP reduces an output of NTTTCP (console, log, XML, JSON) to its layout: times,
// addresses and numbers are replaced by the class of their format ("<.2>" is a number with
// two decimals), everything else stays byte for byte, escapes and tabs too. A rate of
// another form than two decimals and a unit is left as a number, so that comparisons fail.
//
// Lines that are equal then are given once: how many reports, connections or threads there
// are is not layout.
func MaskNTTTCP(text string) string {
	var b strings.Builder
	before := ""
	text = ntttcpOver.ReplaceAllString(text, "\r\n$1")
	for line := range strings.Lines(text) {
		masked := maskNTTTCP(line)
		if masked != before {
			b.WriteString(masked)
		}
		before = masked
	}
	return b.String()
}

func maskNTTTCP(line string) string {
	if strings.HasPrefix(line, "NTTTCP for Linux ") || strings.HasPrefix(line, "Copyright Version ") ||
		strings.HasPrefix(line, "<ntttcp") || strings.Contains(line, `"version"`) {
		return line
	}
	stamp := ""
	if m := ntttcpStamp.FindStringSubmatch(line); m != nil {
		stamp, line = "<time> "+m[1], line[len(m[0]):]
	}
	escape := ""
	if rest, ok := strings.CutPrefix(line, "\x1b[2K"); ok {
		escape, line = "\x1b[2K", rest
	}
	line = ntttcpRate.ReplaceAllString(line, "<rate>")
	line = ntttcpHost.ReplaceAllString(line, "<host>")
	var floats []string
	line = ntttcpFloat.ReplaceAllStringFunc(line, func(s string) string {
		_, frac, _ := strings.Cut(s, ".")
		floats = append(floats, "<."+strconv.Itoa(len(frac))+">")
		return "\x00"
	})
	line = ntttcpWhole.ReplaceAllString(line, "<n>")
	for _, f := range floats {
		line = strings.Replace(line, "\x00", f, 1)
	}
	return stamp + escape + line
}
