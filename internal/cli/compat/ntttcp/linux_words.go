package ntttcp

import (
	"fmt"
	"time"
)

// Word is a word that one program refuses or garbles, to which an article or the other
// program gives a clear meaning, and what it does here. Each time it is used, a line on
// stderr says so.
type Word struct {
	Word     string
	Meta     string // place holder of its value; "" = none
	Optional bool   // the value may be missing
	Does     string // what it does here
	Else     string // what the original makes of it
}

// LinuxWords are the words of ntttcp.exe that work in the Linux dialect. Only the whole
// word counts: -sync is one, -syn is not.
var LinuxWords = []Word{
	{Word: "-sync", Does: "nothing: synchronising is the default", Else: "-s with address 'ync': refused"},
	{Word: "-ns", Does: "no synchronisation, as -N", Else: "-n s: one thread per port"},
	{Word: "-rb", Meta: "size", Does: "SO_RCVBUF of the data sockets", Else: "-r with address 'b': refused"},
	{Word: "-sb", Meta: "size", Does: "SO_SNDBUF of the data sockets", Else: "-s with address 'b': refused"},
	{Word: "-xml", Meta: "file", Optional: true, Does: "XML result into file, as -x; without one into xml.txt", Else: "-x ml: the file is called 'ml'"},
	{Word: "-wu", Meta: "seconds", Does: "warm-up, as -W", Else: "refused"},
	{Word: "-cd", Meta: "seconds", Does: "cool-down, as -C", Else: "refused"},
	{Word: "-ndl", Does: "TCP_NODELAY, as --no-delay", Else: "-n dl: one thread per port"},
	{Word: "-nic", Meta: "address", Does: "source address of the sender, as -a", Else: "-n ic: one thread per port"},
	{Word: "-to", Meta: "ms", Does: "limit of each wait while the test is set up", Else: "-t o: runs until Ctrl-C"},
	{Word: "-thr", Meta: "KB/s", Does: "rate of each sending thread", Else: "-t hr: runs until Ctrl-C"},
	{Word: "-hpt", Does: "no rows of single threads", Else: "-h: the help text"},
	{Word: "-v", Does: "verbose, as -V", Else: "refused"},
	{Word: "-a", Meta: "n", Optional: true, Does: "without an address: nothing, calls that overlap are Windows' way", Else: "refused: no valid address"},
}

// linuxWordSetters has one entry per row of LinuxWords but -a; the line for stderr comes
// back.
var linuxWordSetters = map[string]func(p *linuxParser, v string, given bool) string{
	"-sync": func(*linuxParser, string, bool) string { return "synchronising is the default" },
	"-ns": func(p *linuxParser, _ string, _ bool) string {
		p.n.NoSync = true
		return "no synchronisation, as -N"
	},
	"-rb": func(p *linuxParser, v string, _ bool) string {
		return p.setSocketBuffer("-rb", v, &p.n.ReceiveSocketBuffer, "SO_RCVBUF")
	},
	"-sb": func(p *linuxParser, v string, _ bool) string {
		return p.setSocketBuffer("-sb", v, &p.n.SendSocketBuffer, "SO_SNDBUF")
	},
	"-xml": func(p *linuxParser, v string, given bool) string {
		p.out.XML = orDefault(v, given, windowsXML)
		return fmt.Sprintf("the XML result goes to %s, as with -x", p.out.XML)
	},
	"-wu": func(p *linuxParser, v string, _ bool) string {
		p.warmUp = p.integer("-wu", v)
		return fmt.Sprintf("warm-up of %d s, as -W", p.warmUp)
	},
	"-cd": func(p *linuxParser, v string, _ bool) string {
		p.coolDown = p.integer("-cd", v)
		return fmt.Sprintf("cool-down of %d s, as -C", p.coolDown)
	},
	"-ndl": func(p *linuxParser, _ string, _ bool) string {
		p.noDelay = true
		return "TCP_NODELAY, as --no-delay"
	},
	"-nic": func(p *linuxParser, v string, _ bool) string {
		p.source, p.sourceSet = v, true
		return "source address " + v + ", as -a"
	},
	"-to": func(p *linuxParser, v string, _ bool) string {
		n := p.integer("-to", v)
		p.n.WaitTimeout, p.n.NoTimeout = time.Duration(max(n, 0))*time.Millisecond, n <= 0
		if n <= 0 {
			return "no limit to the waits in the set-up"
		}
		return fmt.Sprintf("each wait in the set-up is limited to %v", p.n.WaitTimeout)
	},
	"-thr": func(p *linuxParser, v string, _ bool) string {
		p.threadRate = throttle(p.integer("-thr", v))
		return fmt.Sprintf("each thread sends at most %d bit/s", p.threadRate)
	},
	"-hpt": func(p *linuxParser, _ string, _ bool) string {
		p.out.Threads, p.hideThreads = false, true
		return "no rows of single threads"
	},
	"-v": func(p *linuxParser, _ string, _ bool) string {
		p.out.Verbose, p.out.Threads = true, true
		return "verbose, as -V"
	},
}

// throttle is ntttcp.exe's -thr in bit/s: KB/s become whole bytes per millisecond. What
// would vanish in that is kept, as 1.
func throttle(kbs int32) int64 {
	if kbs <= 0 {
		return 0
	}
	return max(1, int64(kbs)*1024/1000) * 1000 * 8
}

func (p *linuxParser) setSocketBuffer(word, v string, to **int64, what string) string {
	n := p.size(word, v, 1024)
	if n < 0 || n > 1<<31-1 {
		*to = nil // negative: the system's own way
		return what + " is left to the system"
	}
	*to = &n
	return fmt.Sprintf("%s is %d bytes", what, n)
}

// foreignWord handles args[0] if it is a word of LinuxWords, and reports how many words
// it took, 0 = none.
func (p *linuxParser) foreignWord(args []string) int {
	word := findWord(LinuxWords, args[0])
	if word == nil {
		return 0
	}
	if word.Word == "-a" {
		return p.overlapped(args)
	}
	value, given, used := "", false, 1
	switch {
	case word.Meta == "":
	case len(args) > 1 && (!word.Optional || args[1] != "" && args[1][0] != '-'):
		value, given, used = args[1], true, 2
	case !word.Optional:
		return 0 // no value: as the original
	}
	p.foreign = true
	spelling := word.Word
	if given {
		spelling += " " + value
	}
	line := linuxWordSetters[word.Word](p, value, given)
	p.note(spelling + ", a word of the Windows dialect: " + line)
	return used
}

// overlapped is -a with a number or nothing behind it, which is no address.
func (p *linuxParser) overlapped(args []string) int {
	used := 1
	if len(args) > 1 && (args[1] == "" || args[1][0] != '-') {
		if _, number := atoi(args[1]); !number {
			return 0
		}
		used = 2
	}
	p.unclear = true
	p.note("-a without an address, an option of the Windows dialect (calls that overlap): no effect here")
	return used
}

func findWord(list []Word, word string) *Word {
	for i := range list {
		if list[i].Word == word {
			return &list[i]
		}
	}
	return nil
}
