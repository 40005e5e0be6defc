package conclude

import (
	"regexp"
	"strings"
)

// Advice is a line of a verdict's advice, with its commands taken out, so that each can stand on
// a line of its own and be copied whole.
type Advice struct {
	Where    string // "on HOST (Linux)"; "" = anywhere
	Text     string // "" = the commands say it all
	Commands []string
}

const programs = `(?:fullbore|sysctl|netsh|nft|ethtool|tcpdump|ip|tc|iptables|firewall-cmd|cpupower|modprobe|powercfg|numactl|taskset|New-Net\w+|Set-Net\w+|Get-Net\w+|Enable-Net\w+|Disable-Net\w+)`

// A command stands at the begin, after a colon, or in brackets at the end. What a sentence says
// about a setting ("sysctl … must be 1") is none.
var (
	adviceWhere   = regexp.MustCompile(`^(on .+ \((?:if it is )?(?:Linux|Windows)\)): (.*)$`)
	wholeCommand  = regexp.MustCompile(`^` + programs + ` [^ ].*$`)
	afterColon    = regexp.MustCompile(`^(.*: )(` + programs + ` .*)$`)
	inBrackets    = regexp.MustCompile(`^(.*) \((?:or )?(` + programs + ` [^()]*)\)$`)
	sentenceWords = regexp.MustCompile(` (?:must|shows|and see|would) `)
)

// AdviceOf reads a line of advice.
func AdviceOf(line string) Advice {
	where := ""
	if m := adviceWhere.FindStringSubmatch(line); m != nil {
		where, line = m[1], m[2]
	}
	a := adviceText(line)
	a.Where = where
	return a
}

func adviceText(line string) Advice {
	if m := inBrackets.FindStringSubmatch(line); m != nil {
		a := adviceText(m[1])
		a.Commands = append(a.Commands, m[2])
		return a
	}
	if m := afterColon.FindStringSubmatch(line); m != nil {
		return adviceCommands(m[1], m[2])
	}
	if wholeCommand.MatchString(line) && !sentenceWords.MatchString(line) {
		return adviceCommands("", line)
	}
	return Advice{Text: line}
}

// adviceCommands separates what is typed from what is said about it.
func adviceCommands(text, line string) Advice {
	a := Advice{Text: text}
	if command, rest, more := strings.Cut(line, " ("); more {
		a.Commands = []string{command}
		a.Text = "(" + rest
		if text != "" {
			a.Text = strings.TrimSuffix(text, ": ") + " (" + rest
		}
		return a
	}
	if command, rest, more := strings.Cut(line, ", at "); more {
		return Advice{Text: text + "at " + rest + ":", Commands: []string{command}}
	}
	if command, rest, more := strings.Cut(line, ", and "); more {
		a.Commands = []string{command}
		if wholeCommand.MatchString(rest) {
			a.Commands = append(a.Commands, rest)
		} else {
			a.Text = text + "and " + rest + ":"
		}
		return a
	}
	a.Commands = []string{line}
	return a
}
