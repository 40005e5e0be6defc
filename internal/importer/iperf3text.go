package importer

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/result"
)

// The lines of iperf3's text (src/iperf_locale.c), releases 3.1 … 3.21.
var (
	reIperf3Row = regexp.MustCompile(`(?m)^\[( *\d+|SUM)\](\[([TR])X-[CS]\])? +(\d+\.\d\d)-(\d+\.\d\d) +sec +([\d.]+) ([KMGT]?)Bytes +([\d.]+) ([KMGT]?)(bit|Byte)s/sec(.*)$`)
	reTCP       = regexp.MustCompile(`^  ( *\d+)   ( *[\d.]+) ([KMGT]?)Bytes       (.*)$`)
	reSum       = regexp.MustCompile(`^  ( *\d+) {12,13}(.*)$`)
	reUDP       = regexp.MustCompile(`^  ([\d.]+) ms  (\d+)/(\d+) \([^)]*\)  (.*)$`)
	rePackets   = regexp.MustCompile(`^ +(\d+)  (.*)$`)
	reCPU       = regexp.MustCompile(`^CPU Utilization: local/(sender|receiver) ([\d.]+)% \(([\d.]+)%u/([\d.]+)%s\), remote/\w+ ([\d.]+)% \(([\d.]+)%u/([\d.]+)%s\)$`)
	reConnected = regexp.MustCompile(`^\[ *(\d+)\] local (\S+) port (\d+) connected to (\S+) port (\d+)$`)
	reTest      = regexp.MustCompile(`^Starting Test: protocol: (\w+), (\d+) streams, (\d+) byte blocks, omitting (\d+) seconds, (\d+) (second test|bytes to send|blocks to send), tos (\d+)`)
	reDisk      = regexp.MustCompile(`^        Sent ([\d.]+) ([KMGT]?)Byte / ([\d.]+) ([KMGT]?)Byte \((\d+)%\) of (.*)$`)
	reReordered = regexp.MustCompile(`^\[SUM\](?:\[[TR]X-[CS]\])? +[\d.]+- *[\d.]+ sec  (\d+) datagrams received out-of-order$`)
	reStamp     = regexp.MustCompile(`(?m)^((?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d )?\d\d:\d\d:\d\d(?: \d{4})? )`)
	reTitle     = regexp.MustCompile(`(?m)^(.+):  Connecting to host `)
	reIs        = regexp.MustCompile(`(?m)^(Connecting to host \S+, port \d+|Accepted connection from \S+, port \d+|Server listening on \d+|iperf3: .*|Starting Test: protocol: .*)`)
)

func isIperf3Text(text string) bool {
	text = reStamp.ReplaceAllString(text, "")
	return reIperf3Row.MatchString(text) || reIs.MatchString(text) || reTitle.MatchString(text)
}

// decodeIperf3Text reads what iperf3 printed: one test of a client, or the tests of a server.
func decodeIperf3Text(text string) ([]Document, error) {
	text = reStamp.ReplaceAllString(text, "")
	title := ""
	if m := reTitle.FindStringSubmatch(text); m != nil {
		title = m[1]
		text = regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(title+":  ")).ReplaceAllString(text, "")
	}
	end := result.Client
	if strings.Contains(text, "\nAccepted connection from ") || strings.HasPrefix(text, "Accepted connection from ") || reServer.MatchString(text) {
		end = result.Server
	}
	if strings.Contains(text, "Connecting to host ") {
		end = result.Client // a server's output may stand in a client's
	}
	parts := []string{text}
	if end == result.Server {
		parts = nil
		head := ""
		for i, part := range strings.Split(text, ruler) {
			switch {
			case i == 0:
				head = part // version and system, with -V
			case strings.HasPrefix(part, "Server listening on "):
			default:
				parts = append(parts, head+part)
			}
		}
		if parts == nil { // no banner
			parts = []string{text}
		}
	}
	var out []Document
	for _, part := range parts {
		if strings.TrimSpace(part) == "" {
			continue
		}
		p := &iperf3Text{run: &result.Run{
			Schema: result.Schema, End: end, Protocol: "iperf3", Tool: result.Tool{Name: "iperf3"},
			Test: result.Test{Transport: "tcp", Direction: "up", Interval: 1, Title: title}, Wire: &result.Wire{},
			Imported: &result.Imported{Rounded: true},
		}, side: map[int]result.Direction{}}
		p.read(part)
		if run := p.finish(); run != nil {
			out = append(out, imported(Iperf3Text, run)...)
		}
	}
	return out, nil
}

const ruler = "-----------------------------------------------------------\n"

var reServer = regexp.MustCompile(`(?m)^Server listening on \d+`)

// iperf3Text reads one test.
type iperf3Text struct {
	run   *result.Run
	side  map[int]result.Direction // by socket
	order []int                    // sockets in the order of rows
	rows  []*textReport
	ends  []*textRow // the closing report
	any   bool       // something of a test was said
}

// textReport is one interval report; textRow one of its lines.
type textReport struct {
	omitted bool
	rows    []*textRow
	sums    []*textRow
}

type textRow struct {
	socket               int // 0 = a sum
	direction            result.Direction
	start, stop          float64
	bytes, perSecond     span
	retransmits, packets *int64
	lost                 *int64
	jitter               *float64
	cwnd                 *int64
	sender               bool // its tail is a sender's
	label                string
}

func (p *iperf3Text) read(text string) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		l := lines[i]
		switch {
		case strings.HasPrefix(l, "iperf 3.") && i+1 < len(lines):
			_, p.run.Tool.Version, _ = strings.Cut(l, " ")
			p.run.Wire.Version = l
			host := &result.Host{Tool: &p.run.Tool, SystemInfo: lines[i+1]}
			if words := strings.Fields(lines[i+1]); len(words) >= 3 {
				host.OS, host.Name, host.Release = strings.ToLower(words[0]), words[1], words[2]
			}
			p.run.Hosts.Set(p.run.End, host)
			i++
		case l == "Server output:", l == "Server JSON output:":
			i = p.serverOutput(lines, i)
		default:
			p.line(l)
		}
	}
}

// serverOutput takes the block of --get-server-output and returns its last line.
func (p *iperf3Text) serverOutput(lines []string, i int) int {
	last := len(lines) - 1
	for last > i && lines[last] != "iperf Done." {
		last--
	}
	if last == i {
		last = len(lines) + 1
	}
	block := strings.Join(lines[i+1:max(last-1, i+1)], "\n")
	if lines[i] == "Server JSON output:" && json.Valid([]byte(block)) {
		p.run.Wire.ServerJSON = json.RawMessage(block)
	} else {
		p.run.Wire.ServerText = &block
	}
	return last
}

func (p *iperf3Text) line(l string) {
	w, test := p.run.Wire, &p.run.Test
	if m := reIperf3Row.FindStringSubmatch(l); m != nil {
		p.row(m)
	} else if m := reConnected.FindStringSubmatch(l); m != nil {
		p.run.Streams = append(p.run.Streams, result.Stream{
			ID: streamID(len(p.run.Streams)), Socket: num(m[1]), Direction: result.Up,
			Local: result.Addr{Host: m[2], Port: num(m[3])}, Remote: result.Addr{Host: m[4], Port: num(m[5])},
		})
		w.TestStarted, p.any = true, true
		p.agreed()
	} else if m := reTest.FindStringSubmatch(l); m != nil {
		test.Transport, test.BlockSize, test.Omit, test.TOS = strings.ToLower(m[1]), num(m[3]), flt(m[4]), num(m[7])
		switch m[6] {
		case "second test":
			test.Duration = flt(m[5])
		case "bytes to send":
			test.Bytes = num64(m[5])
		default:
			test.Blocks = num64(m[5])
		}
	} else if m := reCPU.FindStringSubmatch(l); m != nil {
		p.cpu(p.run.End, m[2:5])
		p.cpu(p.run.End.Other(), m[5:8])
	} else if m := reDisk.FindStringSubmatch(l); m != nil {
		for i := range p.run.Streams {
			p.run.Streams[i].Disk = &result.Disk{
				Transferred: int64(math.Round(amount(m[1], m[2], 1024).mid())), Size: int64(math.Round(amount(m[3], m[4], 1024).mid())),
				Percent: num(m[5]), Name: m[6], Sending: true,
			}
		}
	} else if m := reReordered.FindStringSubmatch(l); m != nil && len(p.ends) > 0 {
		n := num64(m[1])
		for i := range p.run.Streams {
			if s := &p.run.Streams[i]; s.Socket == p.ends[len(p.ends)-1].socket {
				if s.Receiver == nil {
					s.Receiver = &result.Total{}
				}
				s.Receiver.OutOfOrder = &n
			}
		}
	} else {
		p.words(l)
	}
}

// streamID is iperf3's number of the i-th stream: there is no 2.
func streamID(i int) int {
	if i == 0 {
		return 1
	}
	return i + 2
}

// agreed notes that parameters were exchanged: then there was a cookie, shown or not.
func (p *iperf3Text) agreed() {
	if p.run.Wire.Cookie == "" {
		p.run.Wire.Cookie = "?"
	}
}

func (p *iperf3Text) cpu(e result.End, m []string) {
	c := p.run.CPU.Of(e)
	if c == nil {
		c = &result.CPU{}
		p.run.CPU.Set(e, c)
	}
	c.Total, c.User, c.System = flt(m[0]), flt(m[1]), flt(m[2])
}

func (p *iperf3Text) words(l string) {
	w, test := p.run.Wire, &p.run.Test
	rest := ""
	after := func(prefix string) bool {
		var ok bool
		rest, ok = strings.CutPrefix(l, prefix)
		return ok
	}
	addr := func() *result.Addr {
		h, port, _ := strings.Cut(rest, ", port ")
		p.any = true
		p.agreed()
		return &result.Addr{Host: h, Port: num(port)}
	}
	switch {
	case after("Connecting to host "):
		w.ConnectingTo = addr()
		test.Target, test.Port = w.ConnectingTo.Host, w.ConnectingTo.Port
	case after("Accepted connection from "):
		w.AcceptedFrom = addr()
	case after("Reverse mode, "):
		test.Direction = "down"
	case after("Control connection MSS "):
		w.ControlMSS = num(rest)
	case after("      TCP MSS: "):
		if n, ok := strings.CutSuffix(rest, " (default)"); !ok {
			test.MSS = num(rest)
		} else if p.run.End == result.Client {
			w.ControlMSS = num(n)
		}
	case after("      Cookie: "):
		w.Cookie = rest
	case after("      Target Bitrate: "):
		test.Bitrate = num64(rest)
	case after("Time: "):
		if at, err := time.Parse(time.RFC1123, rest); err == nil {
			p.run.Started = at.UTC()
		}
	case after("snd_tcp_congestion "):
		p.congestion(true, rest)
	case after("rcv_tcp_congestion "):
		p.congestion(false, rest)
	case after("warning: "):
		p.run.Notices = append(p.run.Notices, result.Notice{Code: "iperf3-warning", Level: result.Warn, Text: rest, End: p.run.End})
	case after("iperf3: "):
		p.fault(rest)
	case strings.Contains(l, "Datagrams"):
		test.Transport = "udp"
	case l == "Finished omit period, starting real test":
		test.Interval = 0
	}
}

// fault reads a line about an error.
func (p *iperf3Text) fault(s string) {
	if s == "exiting" || strings.HasPrefix(s, "SERVER ERROR") || p.run.Err != nil {
		return
	}
	p.any = true
	e := &result.Error{Code: "iperf3", Text: strings.TrimPrefix(s, "error - ")}
	if rest, ok := strings.CutPrefix(s, "interrupt - "); ok {
		e.Code, e.Interrupted = "interrupted", true
		e.Text, e.Signal, _ = strings.Cut(rest, " by signal ")
	}
	switch e.Text {
	case iperf3view.ClientTerminated, iperf3view.ServerTerminated:
		e.Code, e.Remote = "peer-stopped", true
	case iperf3view.ClientClosed, "control socket has closed unexpectedly":
		e.Code, e.Remote = "peer-closed", true
	}
	p.run.Err = e
}

func (p *iperf3Text) congestion(sender bool, name string) {
	d := result.Up // which rows came before decides it; all names are equal
	if n := len(p.order); n > 0 {
		d = p.side[p.order[n-1]]
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

// amount is a number with its unit's letter; base is 1024 of bytes, 1000 of bits.
func amount(s, letter string, base float64) span {
	scale := map[string]float64{"": 0, "K": 1, "M": 2, "G": 3, "T": 4}[letter]
	v := printed(s)
	if s = strings.TrimSpace(s); s == "10.0" || s == "100" { // what is smaller has one decimal more
		v.lo += (flt(s) - v.lo) * 0.9
	}
	return v.times(math.Pow(base, scale))
}

func (p *iperf3Text) row(m []string) {
	p.any = true
	tail := m[11]
	r := &textRow{start: flt(m[4]), stop: flt(m[5]), bytes: amount(m[6], m[7], 1024)}
	if m[1] != "SUM" {
		r.socket = num(m[1])
	}
	if m[10] == "bit" {
		r.perSecond = amount(m[8], m[9], 1000).times(1.0 / 8)
	} else {
		r.perSecond = amount(m[8], m[9], 1024)
	}
	if m[3] != "" {
		p.run.Test.Direction = "both"
	} else if p.run.End == result.Server && r.socket != 0 && (reTCP.MatchString(tail) || rePackets.MatchString(tail)) {
		p.run.Test.Direction = "down" // a server does not say in words that it sends
	}
	r.direction = result.Up
	if p.run.Test.Direction == "down" || m[3] != "" && (m[3] == "T") == (p.run.End == result.Server) {
		r.direction = result.Down
	}
	count := func(s string) *int64 { n := num64(s); return &n }
	switch {
	case reTCP.MatchString(tail):
		m := reTCP.FindStringSubmatch(tail)
		cwnd := int64(math.Round(amount(strings.TrimSpace(m[2]), m[3], 1024).mid()))
		r.retransmits, r.cwnd, r.sender, r.label = count(m[1]), &cwnd, true, m[4]
	case reSum.MatchString(tail):
		m := reSum.FindStringSubmatch(tail)
		r.retransmits, r.label = count(m[1]), m[2]
	case reUDP.MatchString(tail):
		m := reUDP.FindStringSubmatch(tail)
		j := flt(m[1]) / 1000
		r.jitter, r.lost, r.packets, r.label = &j, count(m[2]), count(m[3]), m[4]
	case rePackets.MatchString(tail):
		m := rePackets.FindStringSubmatch(tail)
		r.packets, r.sender, r.label = count(m[1]), true, m[2]
	default:
		r.label = strings.TrimSpace(tail)
	}
	if r.label == "sender" || r.label == "receiver" {
		p.ends = append(p.ends, r)
		if r.socket != 0 {
			p.see(r)
		}
		return
	}
	p.report(r)
}

func (p *iperf3Text) see(r *textRow) {
	p.side[r.socket] = r.direction
	p.order = append(p.order, r.socket)
}

// report puts a line into the interval report that it belongs to.
func (p *iperf3Text) report(r *textRow) {
	omitted := r.label == "(omitted)"
	n := len(p.rows)
	if r.socket == 0 {
		if n > 0 {
			p.rows[n-1].sums = append(p.rows[n-1].sums, r)
		}
		return
	}
	p.see(r)
	fresh := n == 0 || p.rows[n-1].omitted != omitted
	if !fresh {
		for _, have := range p.rows[n-1].rows {
			if have.socket == r.socket {
				if have.start == r.start && have.stop == r.stop {
					return // iperf3 printed it twice
				}
				fresh = true
			}
		}
	}
	if fresh {
		p.rows = append(p.rows, &textReport{omitted: omitted})
		n++
	}
	p.rows[n-1].rows = append(p.rows[n-1].rows, r)
}
