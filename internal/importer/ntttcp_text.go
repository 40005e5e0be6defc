package importer

import (
	"regexp"
	"strconv"
	"strings"
)

// The lines of ntttcp-for-linux (console and -O log), and the tables of ntttcp.exe.
var (
	reNTLine    = regexp.MustCompile(`^(?:(\d\d:\d\d:\d\d) )?(INFO|ERR |DBG ): (.*)$`)
	reNTThread  = regexp.MustCompile(`^\t(\d+)\t ([\d.]+)\t (\S+)$`)
	reNTFigure  = regexp.MustCompile(`^(\t )?([^\t:]+)\t+:(.*)$`)
	reNTTested  = regexp.MustCompile(`^(\d+) connections tested$`)
	reNTRate    = regexp.MustCompile(`Real-time throughput: ([\d.]+)([KMG]?)bps`)
	reNTSetting = regexp.MustCompile(`^([a-z][^\t:]*):+\t+ (.*)$`)
	reNTNext    = regexp.MustCompile(`: (Network activity progressing|Sync connection: |Test cycle time negotiated |test is negotiated )`) // another test of the same process
	reNTIs      = regexp.MustCompile(`(?m)^NTTTCP for Linux |^\d\d:\d\d:\d\d (?:INFO|ERR |DBG ): `)
	reWinIs     = regexp.MustCompile(`(?m)^(?:Copyright Version 5\.|#####  Totals:  #####)`)
)

func isNTTTCPText(text string) bool { return reNTIs.MatchString(text) }

func isWindowsText(text string) bool { return reWinIs.MatchString(text) && !isNTTTCPText(text) }

// bpsOf reads "35.79Gbps" as bit/s.
func bpsOf(s string) span {
	for i, unit := range []string{"Gbps", "Mbps", "Kbps", "bps"} {
		if n, ok := strings.CutSuffix(s, unit); ok {
			scale := 1.0
			for range 3 - i {
				scale *= 1000
			}
			return printed(n).times(scale)
		}
	}
	return anything()
}

// decodeNTTTCPText reads what ntttcp-for-linux printed: one test, or the tests of a receiver that
// went on (-H, a daemon's log).
func decodeNTTTCPText(text string) ([]Document, error) {
	text = strings.NewReplacer("\x1b[2K", "", "\r", "\n").Replace(text)
	var out []Document
	p := &ntText{}
	p.begin()
	flush := func() {
		if p.f.known || p.f.failed != "" || len(p.f.reports) > 0 {
			run := p.f.run()
			run.Imported.Rounded = true
			out = append(out, imported(NTTTCPText, run)...)
		}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if p.f.known && reNTNext.MatchString(line) {
			flush()
			p.begin()
		}
		p.line(line)
	}
	flush()
	return out, nil
}

type ntText struct {
	f        *ntttcp
	settings map[string]string // of -V: they stand once
	sender   bool
	version  string
	begun    bool // the arguments have been checked
}

func (p *ntText) begin() {
	p.f = newNTTTCP()
	p.f.text, p.f.sender, p.f.version = true, p.sender, p.version
	for k, v := range p.settings {
		p.setting(k, v)
	}
}

func (p *ntText) line(l string) {
	f := p.f
	if v, ok := strings.CutPrefix(l, "NTTTCP for Linux "); ok {
		f.version, p.version = v, v
		return
	}
	if m := reNTRate.FindStringSubmatch(l); m != nil {
		f.keep("Real-time throughput", "", m[1]+m[2]+"bps")
		bps := bpsOf(m[1] + m[2] + "bps")
		if bps.lo == 0 { // 0.00bps
			bps.hi = 0
		}
		f.reports = append(f.reports, bps.mid())
		return
	}
	m := reNTLine.FindStringSubmatch(l)
	if m == nil {
		if m := reNTSetting.FindStringSubmatch(l); m != nil {
			if p.settings == nil {
				p.settings = map[string]string{}
			}
			p.settings[m[1]] = m[2]
			p.setting(m[1], m[2])
			f.keep("setting."+m[1], "", m[2])
			p.begun = true
		}
		switch l {
		case "*** sender role":
			f.sender, p.sender = true, true
		case "*** no sender/receiver synch":
			f.params["no_sync"] = "True"
		}
		return
	}
	clock, level, text := m[1], m[2], m[3]
	if level == "ERR " && !f.known { // it ends the test
		if f.failed != "" {
			f.failed += "\n"
		}
		f.failed += text
		f.keep("ERR", "", text)
		if reNTSender.MatchString(text) {
			f.sender, p.sender = true, true
		}
		return
	}
	if m := reNTThread.FindStringSubmatch(text); m != nil {
		i := num(m[1])
		t := f.thread(i)
		t.seconds, t.rate = printed(m[2]), bpsOf(m[3]).times(1.0/8)
		f.keep("thread["+strconv.Itoa(i)+"].Time(s)", "", m[2])
		f.keep("thread["+strconv.Itoa(i)+"].Throughput", "", m[3])
		return
	}
	if m := reNTTested.FindStringSubmatch(text); m != nil {
		f.sender, p.sender = true, true
		f.set(-1, "conns_tested", "", m[1])
		return
	}
	if m := reNTFigure.FindStringSubmatch(text); m != nil {
		p.figure(m[2], m[3])
		return
	}
	if strings.ContainsAny(text, "0123456789") { // connections, threads, negotiated times
		f.keep("line", "", text)
	}
	if strings.HasPrefix(text, "the UDP send size") || strings.HasPrefix(text, "UDP") || strings.HasPrefix(text, "Running UDP stream") {
		f.params["udp"] = "True"
	}
	if !heading(text) {
		p.tell(clock, level, text)
	}
}

// heading reports that a line only heads the figures below it.
func heading(text string) bool {
	switch text {
	case "#####  Totals:  #####", "tcp retransmit:", "total packets:", "interrupts:":
		return true
	}
	return strings.HasPrefix(text, "\t")
}

func (p *ntText) setting(name, value string) {
	f := p.f
	switch name {
	case "connections":
		if n := strings.Split(value, " X "); len(n) == 3 {
			f.ports, f.perPort, f.perThread = num(n[0]), num(n[1]), num(n[2])
		}
	case "ports":
		f.ports = num(value)
	case "server address":
		f.params["server_address"] = value
	case "protocol":
		if value == "UDP" {
			f.params["udp"] = "True"
		}
	case "server port starting at":
		f.params["port"] = value
	case "sender socket buffer (bytes)":
		f.params["send_socket_buff"] = value
	case "receiver socket buffer (bytes)":
		f.params["recv_socket_buff"] = value
	case "test warm-up (sec)":
		f.params["warmup_time"] = value
	case "test duration (sec)":
		f.params["run_time"] = value
	case "test cool-down (sec)":
		f.params["cooldown_time"] = value
	case "bandwidth limit (bits/sec)", "fq rate limit (bits/sec)", "tcp nodelay", "multiple clients", "last client", "show packets for":
		f.params[name] = value // as the text names them; its documents have no such parameters
	}
}

// figure reads a line of the result.
func (p *ntText) figure(name, value string) {
	f := p.f
	is := func(xml, metric, v string) { f.set(-1, xml, metric, v) }
	switch name {
	case "test duration":
		is("realtime", "", strings.TrimSuffix(value, " seconds"))
	case "total bytes":
		f.keep("total bytes", "", value)
		n := flt(value)
		f.bytes, f.known = span{n, n}, true
	case "throughput":
		f.keep("throughput", "", value)
		f.rate = f.rate.and(bpsOf(value).times(1.0 / 8))
	case "retrans segs":
		is("packets_retransmitted", "", value)
	case "tx_packets":
		is("packets_sent", "", value)
	case "rx_packets":
		is("packets_received", "", value)
	case "total":
		is("total_interrupts", "", value)
	case "interrupts/sec":
		is("interrupts", "count/sec", value)
	case "pkts/interrupt":
		is("avg_packets_per_interrupt", "", value)
	case "cpu cores":
		is("cpu_cores", "", value)
	case "cpu speed":
		is("cpu_speed", "", strings.TrimSuffix(value, "MHz"))
	case "user", "system", "idle", "iowait", "softirq":
		is(name, "%", strings.TrimSuffix(value, "%"))
	case "cycles/byte":
		is("cycles_per_byte", "", value)
	case "cpu busy (all)":
		is("cpu_busy_all", "%", strings.TrimSuffix(value, "%"))
	case "tcpi rtt":
		is("tcp_average_rtt", "us", strings.TrimSuffix(value, " us"))
	default:
		if key, ok := strings.CutSuffix(name, "/sec"); ok {
			is("tcp_retransmits", key+"_per_sec", value)
			return
		}
		f.keep(name, "", value)
	}
}

// decodeWindowsText reads the tables of ntttcp.exe. They do not say whether it sent: a sender's
// frames are its packets sent, so the side is the one whose packets give the frame size.
func decodeWindowsText(text string) ([]Document, error) {
	f := newNTTTCP()
	f.windows, f.perThreadTime, f.kb, f.mb = true, true, 1<<10, 1<<20
	var out []Document
	flush := func() {
		if f.known {
			run := f.run()
			run.Imported.Rounded = true
			out = append(out, imported(WindowsText, run)...)
		}
	}
	head := ""
	var frame span
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		cells := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "Copyright Version "):
			f.version = strings.TrimPrefix(line, "Copyright Version ")
		case strings.HasPrefix(line, "Thread  Time(s)"):
			if f.known { // the next sample
				flush()
				v := f.version
				f = newNTTTCP()
				f.windows, f.perThreadTime, f.kb, f.mb, f.version = true, true, 1<<10, 1<<20, v
			}
			head = "thread"
		case strings.HasPrefix(strings.TrimSpace(line), "Bytes(MEG)"):
			head = "bytes"
		case strings.HasPrefix(line, "Throughput(Buffers/s)"):
			head = "buffers"
		case strings.HasPrefix(line, "DPCs(count/s)"):
			head = "dpcs"
		case strings.HasPrefix(line, "Packets Sent"):
			head = "packets"
		case strings.HasPrefix(strings.TrimSpace(line), "Avg        Min        Max"):
			if head != "thread" {
				head = "latency"
			}
		case len(cells) == 0:
			if head != "thread" || len(f.threads) > 0 {
				head = ""
			}
		case head != "" && numbers(cells):
			f.windowsRow(head, cells, &frame)
		}
	}
	flush()
	return out, nil
}

// numbers reports that all cells are.
func numbers(cells []string) bool {
	for _, c := range cells {
		if _, err := strconv.ParseFloat(c, 64); err != nil {
			return false
		}
	}
	return true
}

// windowsNames are the columns of each table, by the XML's names.
var windowsNames = map[string][][2]string{
	"bytes":   {{"total_bytes", "MB"}, {"realtime", "s"}, {"avg_frame_size", "B"}, {"throughput", "MB/s"}},
	"buffers": {{"throughput", "buffers/s"}, {"cycles", "cycles/byte"}, {"total_buffers", ""}},
	"dpcs":    {{"dpcs", "count/sec"}, {"avg_packets_per_dpc", "packets/dpc"}, {"interrupts", "count/sec"}, {"avg_packets_per_interrupt", "packets/interrupt"}},
	"packets": {{"packets_sent", ""}, {"packets_received", ""}, {"packets_retransmitted", ""}, {"errors", ""}, {"cpu", "%"}},
	"latency": {{"avg_latency", "ns"}, {"min_latency", "ns"}, {"max_latency", "ns"}},
}

func (f *ntttcp) windowsRow(head string, cells []string, frame *span) {
	if head == "thread" {
		if i := num(cells[0]); len(cells) >= 4 && i < 1<<16 {
			f.set(i, "realtime", "s", cells[1])
			f.set(i, "throughput", "KB/s", cells[2])
			f.set(i, "avg_bytes_per_compl", "B", cells[3])
			for j, name := range []string{"avg_latency", "min_latency", "max_latency"} {
				if len(cells) > 4+j {
					f.set(i, name, "ns", cells[4+j])
				}
			}
		}
		return
	}
	names := windowsNames[head]
	for i, c := range cells {
		if i < len(names) {
			f.set(-1, names[i][0], names[i][1], c)
		}
	}
	switch head {
	case "bytes":
		if len(cells) > 2 {
			*frame = printed(cells[2])
		}
	case "buffers":
		if b := flt(cells[len(cells)-1]); b > 0 {
			f.bufferLen = int(f.bytes.mid()/b + 0.5)
		}
	case "packets":
		f.sender = f.packets.Sent > 0 && frame.lo <= f.bytes.hi/float64(f.packets.Sent) && frame.hi >= f.bytes.lo/float64(f.packets.Sent)
	}
}
