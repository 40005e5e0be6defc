package iperf3text_test

import (
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/render/iperf3text"
	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/result"
)

// recording is what one recorded text output says: a test, or the banner of a server
// that got none.
type recording struct {
	banner  int // test number, 0 = no banner
	verbose bool
	release string
	system  string
	run     *result.Run
}

var (
	reRow = regexp.MustCompile(`^\[( *\d+|SUM)\](\[([TR])X-[CS]\])? +(\d+\.\d\d)-(\d+\.\d\d) +sec +([\d.]+) ([KMGT]?)Bytes +([\d.]+) ([KMGT]?)(bit|Byte)s/sec(.*)$`)
	reTCP = regexp.MustCompile(`^  ( *\d+)   ( *[\d.]+) ([KMGT]?)Bytes       (.*)$`)
	reSum = regexp.MustCompile(`^  ( *\d+) {12,13}(.*)$`)
	reUDP = regexp.MustCompile(`^  ([\d.]+) ms  (\d+)/(\d+) \([^)]*\)  (.*)$`)
	rePkt = regexp.MustCompile(`^ +(\d+)  (.*)$`)
	reCPU = regexp.MustCompile(`^CPU Utilization: local/sender ([\d.]+)% \(([\d.]+)%u/([\d.]+)%s\), remote/receiver ([\d.]+)% \(([\d.]+)%u/([\d.]+)%s\)$`)
	reCon = regexp.MustCompile(`^\[ *(\d+)\] local (\S+) port (\d+) connected to (\S+) port (\d+)$`)
	reTst = regexp.MustCompile(`^Starting Test: protocol: (\w+), (\d+) streams, (\d+) byte blocks, omitting (\d+) seconds, (\d+) (second test|bytes to send|blocks to send), tos (\d+)$`)
	reDsk = regexp.MustCompile(`^        Sent ([\d.]+) ([KMGT]?)Byte / ([\d.]+) ([KMGT]?)Byte \((\d+)%\) of (.*)$`)
)

// readText turns the text of one end, and what it wrote to the error stream, into a
// Run with as much as the text says: amounts and times as rounded there.
func readText(t *testing.T, text, stderr string, end result.End) []recording {
	t.Helper()
	var out []recording
	text = regexp.MustCompile(`(?m)^((?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d )?\d\d:\d\d:\d\d(?: \d{4})? )`).ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, "mytest:  ", "")
	const line = "-----------------------------------------------------------\n"
	head, rest, banner := strings.Cut(text, line)
	if !banner {
		out = append(out, readTest(t, text, end))
	} else {
		verbose := head != ""
		for n := 1; ; n++ {
			_, after, ok := strings.Cut(rest, line) // the line "Server listening" goes
			if !ok {
				t.Fatalf("banner: %q", rest)
			}
			var one string
			one, rest, ok = strings.Cut(after, line)
			rec := readTest(t, one, end)
			rec.banner, rec.verbose = n, verbose
			if verbose {
				words := strings.Split(head, "\n")
				rec.release, rec.system = words[0], words[1]
				rec.run.Wire.Version = words[0]
			}
			out = append(out, rec)
			if !ok {
				break
			}
		}
	}
	for line := range strings.Lines(stderr) {
		line = strings.TrimSuffix(line, "\n")
		if s, ok := strings.CutPrefix(line, "iperf3: Total"); ok {
			last := out[len(out)-1].run
			last.Notices = append(last.Notices, result.Notice{Code: iperf3text.RateExceeded, Level: result.Warn, Text: "Total" + s})
		} else if s, ok := strings.CutPrefix(line, "warning: "); ok {
			last := out[len(out)-1].run
			last.Notices = append(last.Notices, result.Notice{Code: "some", Level: result.Warn, Text: s},
				result.Notice{Code: "other", Level: result.Info, Text: "not shown"})
		}
	}
	errs := readErrors(stderr)
	for i := range out[max(0, len(out)-len(errs)):] { // the last tests are those with errors
		out[max(0, len(out)-len(errs))+i].run.Err = errs[i]
	}
	return out
}

// readErrors reads the error lines; SERVER ERROR marks the reason as the server's.
func readErrors(stderr string) []*result.Error {
	var out []*result.Error
	reported := strings.Contains(stderr, "SERVER ERROR - ")
	for line := range strings.Lines(stderr) {
		line = strings.TrimSuffix(line, "\n")
		s, ok := strings.CutPrefix(line, "iperf3: ")
		if !ok || s == "exiting" || strings.HasPrefix(s, "Total throughput") || strings.HasPrefix(s, "SERVER ERROR") {
			continue
		}
		e := &result.Error{Text: strings.TrimPrefix(s, "error - "), Reported: reported}
		if rest, ok := strings.CutPrefix(s, "interrupt - "); ok {
			e.Interrupted = true
			e.Text, e.Signal, _ = strings.Cut(rest, " by signal ")
		}
		out = append(out, e)
	}
	return out
}

func readTest(t *testing.T, text string, end result.End) recording {
	t.Helper()
	p := &parser{t: t, rec: recording{}, run: &result.Run{
		Schema: result.Schema, End: end, Protocol: "iperf3",
		Test: result.Test{Transport: "tcp", Direction: "up", Interval: 1},
		Wire: &result.Wire{},
	}}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		switch l := lines[i]; {
		case strings.HasPrefix(l, "iperf 3."):
			p.rec.verbose, p.rec.release = true, l
			p.run.Wire.Version = l
			p.rec.system = lines[i+1]
			p.run.Hosts.Set(end, &result.Host{SystemInfo: lines[i+1]})
			i++
		case l == "Server output:", l == "Server JSON output:":
			i = p.serverOutput(lines, i)
		default:
			p.line(l)
		}
	}
	p.finish()
	p.rec.run = p.run
	return p.rec
}

type parser struct {
	t     *testing.T
	rec   recording
	run   *result.Run
	order []int // sockets in the order of rows
	dir   map[int]result.Direction
}

// serverOutput reads the block of --get-server-output and returns its last line.
func (p *parser) serverOutput(lines []string, i int) int {
	last := len(lines) - 1
	for lines[last] != "iperf Done." {
		last--
	}
	block := strings.Join(lines[i+1:last-1], "\n")
	if lines[i] == "Server JSON output:" {
		p.run.Wire.ServerJSON = json.RawMessage(block)
	} else {
		p.run.Wire.ServerText = &block
	}
	return last
}

func (p *parser) line(l string) {
	w, test := p.run.Wire, &p.run.Test
	after := func(prefix string) (string, bool) { return strings.CutPrefix(l, prefix) }
	switch {
	case reRow.MatchString(l):
		p.row(reRow.FindStringSubmatch(l))
	case reCon.MatchString(l):
		m := reCon.FindStringSubmatch(l)
		p.run.Streams = append(p.run.Streams, result.Stream{
			ID: len(p.run.Streams) + 1, Socket: num(m[1]), Direction: result.Up,
			Local: result.Addr{Host: m[2], Port: num(m[3])}, Remote: result.Addr{Host: m[4], Port: num(m[5])},
		})
		w.TestStarted = true
		if w.Cookie == "" {
			w.Cookie = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		}
	case reTst.MatchString(l):
		m := reTst.FindStringSubmatch(l)
		test.Transport, test.BlockSize, test.Omit = strings.ToLower(m[1]), num(m[3]), float64(num(m[4]))
		switch test.TOS = num(m[7]); m[6] {
		case "second test":
			test.Duration = float64(num(m[5]))
		case "bytes to send":
			test.Bytes = int64(num(m[5]))
		default:
			test.Blocks = int64(num(m[5]))
		}
	case reCPU.MatchString(l):
		m := reCPU.FindStringSubmatch(l)
		set := func(e result.End, m []string) {
			c := p.run.CPU.Of(e)
			if c == nil {
				c = &result.CPU{}
				p.run.CPU.Set(e, c)
			}
			c.Total, c.User, c.System = flt(m[0]), flt(m[1]), flt(m[2])
		}
		set(p.run.End, m[1:4])
		set(p.run.End.Other(), m[4:7])
	case reDsk.MatchString(l):
		m := reDsk.FindStringSubmatch(l)
		for i := range p.run.Streams {
			p.run.Streams[i].Disk = &result.Disk{Size: amountOf(m[3], m[4]), Name: m[6]}
		}
	default:
		p.words(l, after)
	}
}

func (p *parser) words(l string, after func(string) (string, bool)) {
	w, test := p.run.Wire, &p.run.Test
	if s, ok := after("Connecting to host "); ok {
		h, port, _ := strings.Cut(s, ", port ")
		w.ConnectingTo = &result.Addr{Host: h, Port: num(port)}
		w.Cookie = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	} else if s, ok := after("Accepted connection from "); ok {
		h, port, _ := strings.Cut(s, ", port ")
		w.AcceptedFrom = &result.Addr{Host: h, Port: num(port)}
		w.Cookie = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	} else if _, ok := after("Reverse mode, "); ok {
		test.Direction = "down"
	} else if s, ok := after("Control connection MSS "); ok {
		w.ControlMSS = num(s)
	} else if s, ok := after("      TCP MSS: "); ok && !strings.HasSuffix(s, "(default)") {
		test.MSS = num(s)
	} else if ok {
		if p.run.End == result.Client {
			w.ControlMSS = num(strings.TrimSuffix(s, " (default)"))
		}
	} else if s, ok := after("      Cookie: "); ok {
		w.Cookie = s
	} else if s, ok := after("      Target Bitrate: "); ok {
		test.Bitrate = int64(num(s))
	} else if s, ok := after("Time: "); ok {
		at, err := time.Parse(time.RFC1123, s)
		if err != nil {
			p.t.Fatal(err)
		}
		p.run.Started = at
	} else if s, ok := after("snd_tcp_congestion "); ok {
		p.congestion(true, s)
	} else if s, ok := after("rcv_tcp_congestion "); ok {
		p.congestion(false, s)
	} else if strings.Contains(l, "Datagrams") {
		test.Transport = "udp"
	} else if l == "Finished omit period, starting real test" {
		test.Interval = 0
	}
}

func (p *parser) congestion(sender bool, name string) {
	d := result.Up // which rows came before decides the direction; all names are equal
	if n := len(p.order); n > 0 {
		d = p.dir[p.order[n-1]]
	}
	e := d.Receiver()
	if sender {
		e = d.Sender()
	}
	c := p.run.CPU.Of(e)
	if c == nil {
		c = &result.CPU{}
		p.run.CPU.Set(e, c)
	}
	c.Congestion = name
}

func (p *parser) row(m []string) {
	tail := m[11]
	d := result.Up
	if m[3] != "" {
		p.run.Test.Direction = "both"
	} else if p.run.End == result.Server && (reTCP.MatchString(tail) || rePkt.MatchString(tail)) {
		p.run.Test.Direction = "down" // a server does not say in words that it sends
	}
	if p.run.Test.Direction == "down" || m[3] != "" && (m[3] == "T") == (p.run.End == result.Server) {
		d = result.Down
	}
	label := ""
	s := result.StreamInterval{Socket: num(m[1]), Start: flt(m[4]), Stop: flt(m[5]), Bytes: amountOf(m[6], m[7])}
	var jitter *float64
	var lost, packets *int64
	switch {
	case reTCP.MatchString(tail):
		m := reTCP.FindStringSubmatch(tail)
		n := int64(num(m[1]))
		s.Retransmits, s.TCP, s.Sender, label = &n, &result.TCPInfo{Cwnd: amountOf(m[2], m[3])}, true, m[4]
	case reSum.MatchString(tail):
		m := reSum.FindStringSubmatch(tail)
		n := int64(num(m[1]))
		s.Retransmits, label = &n, m[2]
	case reUDP.MatchString(tail):
		m := reUDP.FindStringSubmatch(tail)
		j, l, n := flt(m[1])/1000, int64(num(m[2])), int64(num(m[3]))
		jitter, lost, packets, label = &j, &l, &n, m[4]
	case rePkt.MatchString(tail):
		m := rePkt.FindStringSubmatch(tail)
		n := int64(num(m[1]))
		packets, s.Sender, label = &n, true, m[2]
	default:
		label = strings.TrimSpace(tail)
	}
	s.Jitter, s.Lost, s.Packets = jitter, lost, packets
	if m[1] == "SUM" {
		return
	}
	if p.dir == nil {
		p.dir = map[int]result.Direction{}
	}
	p.dir[s.Socket] = d
	p.order = append(p.order, s.Socket)
	if label == "sender" || label == "receiver" {
		p.total(&s, label)
		return
	}
	p.interval(s, label == "(omitted)")
}

func (p *parser) interval(s result.StreamInterval, omitted bool) {
	rows := &p.run.Rows
	n := len(*rows)
	fresh := n == 0 || (*rows)[n-1].Omitted != omitted
	if !fresh {
		for _, have := range (*rows)[n-1].Streams {
			if have.Socket == s.Socket {
				if have.Start == s.Start && have.Stop == s.Stop {
					return // iperf3 printed it twice
				}
				fresh = true
			}
		}
	}
	if fresh {
		*rows = append(*rows, result.Interval{End: p.run.End, Index: n, Start: s.Start, Stop: s.Stop, Omitted: omitted})
		n++
	}
	if s.TCP != nil {
		p.run.Wire.HasRetrans = true
	}
	row := &(*rows)[n-1]
	row.Streams = append(row.Streams, s)
}

func (p *parser) total(s *result.StreamInterval, label string) {
	for i := range p.run.Streams {
		st := &p.run.Streams[i]
		if st.Socket != s.Socket {
			continue
		}
		tot := &result.Total{End: s.Stop, Bytes: s.Bytes, Retransmits: s.Retransmits, Packets: s.Packets, Lost: s.Lost, Jitter: s.Jitter}
		if label == "sender" {
			st.Sender = tot
		} else {
			st.Receiver = tot
		}
	}
}

// finish fills what only the whole text shows.
func (p *parser) finish() {
	r := p.run
	perDirection := map[result.Direction]int{}
	for i := range r.Streams {
		s := &r.Streams[i]
		if d, ok := p.dir[s.Socket]; ok {
			s.Direction = d
		} else if r.Test.Direction == "down" {
			s.Direction = result.Down
		}
		perDirection[s.Direction]++
	}
	r.Test.Streams = max(perDirection[result.Up], perDirection[result.Down], len(r.Streams)/2, 1)
	if r.Test.Direction != "both" {
		r.Test.Streams = max(len(r.Streams), 1)
	}
	if len(r.Rows) > 0 && r.Test.Interval > 0 {
		first := r.Rows[0]
		if d := first.Stop - first.Start; d < 0.75 {
			r.Test.Interval = math.Round(d*10) / 10
		}
	}
	for i := range r.Rows {
		for j := range r.Rows[i].Streams {
			s := &r.Rows[i].Streams[j]
			s.Sender = iperf3view.Sends(r, r.Streams[index(r, s.Socket)].Direction)
		}
	}
}

func index(r *result.Run, socket int) int {
	for i := range r.Streams {
		if r.Streams[i].Socket == socket {
			return i
		}
	}
	return 0
}

func num(s string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(s))
	return n
}

func flt(s string) float64 {
	f, _ := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return f
}

func amountOf(s, unit string) int64 {
	scale := map[string]float64{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}[unit]
	return int64(math.Round(flt(s) * scale))
}
