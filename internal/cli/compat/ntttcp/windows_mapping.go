package ntttcp

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// WindowsWords are words of articles and of ntttcp-for-linux that work in the Windows
// dialect.
var WindowsWords = []Word{
	{Word: "-sync", Does: "nothing: synchronising is the default, -ns turns it off", Else: "refused"},
	{Word: "-W", Meta: "n", Does: "both socket buffers are n times the autotuning maximum", Else: "-w, then a word too many: refused"},
	{Word: "-m", Meta: "1", Does: "a line of throughput each second", Else: "refused: no mapping"},
	{Word: "-m", Meta: "8 * host", Does: "as 8,*,host: what PowerShell makes of it when it is not quoted", Else: "refused: no mapping"},
	{Word: "-N", Does: "without a number: no synchronisation, as -ns", Else: "-n without a number: refused"},
	{Word: "-t", Meta: "0", Does: "runs until Ctrl-C", Else: "refused"},
}

// foreignWord handles a word of WindowsWords. -m and -t are dealt with where their
// values are read.
func (p *windowsParser) foreignWord(word string) (*winFault, bool) {
	next, isNumber := "", false
	if p.at < len(p.args) {
		next = p.args[p.at]
		_, err := strconv.ParseFloat(next, 64)
		isNumber = err == nil
	}
	switch {
	case strings.EqualFold(word, "-sync"):
		p.note("-sync: synchronising is the default; -ns turns it off")
	case word == "-N" && !isNumber && !hasSuffix(next):
		p.n.NoSync = true
		p.note("-N, a word of the Linux dialect: no synchronisation, as -ns")
	case strings.EqualFold(word, "-w") && isNumber:
		p.at++
		f, err := strconv.ParseFloat(next, 64)
		if err != nil || !(f > 0 && f <= 1024) {
			return &winFault{text: winUnknown, hint: fmt.Sprintf("%s %s: give a multiple above 0, at most 1024", word, next)}, true
		}
		p.n.WindowMultiple = f
		p.note(fmt.Sprintf("%s %s: socket buffers of %s times the autotuning maximum (-rb and -sb set them in bytes)", word, next, next))
	default:
		if word == "-P" {
			p.upperP = next
		}
		return nil, false
	}
	return nil, true
}

// setMappings takes all the words behind -m that do not look like options.
func (p *windowsParser) setMappings() *winFault {
	from := p.at
	for p.at < len(p.args) && !strings.HasPrefix(p.args[p.at], "-") {
		p.at++
	}
	tuples := p.args[from:p.at]
	if len(tuples) == 1 && tuples[0] == "1" {
		p.progress = true
		p.note("-m 1: a line of throughput each second (-m also takes mappings: threads,cpu,host)")
		return nil
	}
	tuples = p.joined(tuples)
	if p.mapTimes++; p.mapTimes > 1 {
		p.note("-m is given more than once: the mappings are taken together")
	}
	for _, tuple := range tuples {
		if len(p.mappings) >= plan.MaxNTTTCPMappings {
			return &winFault{function: "ProcessArgs", text: winMappings}
		}
		m, f := p.mappingOf(tuple)
		if f != nil {
			return f
		}
		p.mappings = append(p.mappings, m)
	}
	return nil
}

// joined puts mappings together that came apart: PowerShell passes "8,*,host" to a program as
// three words.
func (p *windowsParser) joined(words []string) []string {
	if len(words) == 0 || len(words)%3 != 0 {
		return words
	}
	var out []string
	for i := 0; i < len(words); i += 3 {
		tuple := words[i : i+3]
		if _, err := strconv.ParseUint(tuple[0], 10, 31); err != nil || strings.Contains(strings.Join(tuple, ""), ",") {
			return words
		}
		out = append(out, strings.Join(tuple, ","))
	}
	p.note(fmt.Sprintf("-m %s: read as %s (PowerShell takes it apart: put it into quotes)", strings.Join(words, " "), strings.Join(out, " ")))
	return out
}

// mappingOf is a tuple threads,cpu,host. Empty fields vanish, as with strtok.
func (p *windowsParser) mappingOf(tuple string) (plan.NTTTCPMapping, *winFault) {
	var m plan.NTTTCPMapping
	fault := func(text, hint string) (plan.NTTTCPMapping, *winFault) {
		return m, &winFault{function: "ProcessMappings", text: text, hint: hint}
	}
	fields := strings.FieldsFunc(tuple, func(r rune) bool { return r == ',' })
	for i, field := range fields {
		switch i {
		case 0:
			if m.Threads = int(p.integer("-m", field)); m.Threads <= 0 {
				return fault(winThreads, "")
			}
			if p.threads += m.Threads; p.threads > 1<<31-1 {
				return fault(winThreadsTotal, "")
			}
		case 1:
			if field == "*" {
				continue
			}
			n := int(p.integer("-m", field))
			if n < 0 || p.world.CPUs > 0 && n >= p.world.CPUs || n > plan.MaxAffinity {
				return fault(winProcessor, fmt.Sprintf("-m %s: the second field is a CPU or *", tuple))
			}
			m.CPU = &n
			if m.Threads > 1 {
				p.note(pinned(field, tuple))
			}
		case 2:
			m.Host = field
		default:
			return fault(winState, fmt.Sprintf("-m %s: three fields, threads,cpu,host; several mappings are separated by blanks", tuple))
		}
	}
	if len(fields) != 3 {
		p.foreign = len(fields) > 0
		return fault(winFinal, fmt.Sprintf("-m %s: give three fields, threads,cpu,host", tuple))
	}
	return m, nil
}
