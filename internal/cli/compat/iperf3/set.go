package iperf3

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/cli/getopt"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/units"
)

// setter takes one option's value over, or says what is wrong with it.
type setter func(p *parser, m getopt.Match) *fault

// setters has one entry per option; -v and -h are handled by Parse.
var setters = map[string]setter{
	"port":                    (*parser).setPort,
	"format":                  (*parser).setFormat,
	"interval":                (*parser).setInterval,
	"daemon":                  onServer(func(p *parser) { p.daemon = true }),
	"one-off":                 onServer(func(p *parser) { p.serve.OneOff = true }),
	"verbose":                 always(func(p *parser) { p.out.Verbose = true }),
	"json":                    always(func(p *parser) { p.out.JSON = true }),
	"json-stream":             always(func(p *parser) { p.out.JSON, p.out.JSONStream = true, true }),
	"json-stream-full-output": always(func(p *parser) { p.out.FullOutput = true }),
	"server":                  (*parser).setServer,
	"client":                  (*parser).setClient,
	"udp":                     onClient(func(p *parser) { p.plan.Transport = plan.UDP }),
	"bitrate":                 (*parser).setBitrate,
	"server-bitrate-limit":    (*parser).setRateLimit,
	"server-max-duration":     (*parser).setMaxDuration,
	"time":                    (*parser).setTime,
	"bytes":                   size(func(p *parser, n int64) { p.plan.Bytes = n }),
	"blockcount":              size(func(p *parser, n int64) { p.plan.Blocks = n }),
	"length":                  (*parser).setLength,
	"parallel":                (*parser).setParallel,
	"reverse":                 (*parser).setReverse,
	"bidir":                   (*parser).setBidir,
	"window":                  (*parser).setWindow,
	"bind":                    (*parser).setBind,
	"bind-dev":                text(func(p *parser, s string) { p.plan.BindDev = s }),
	"cport":                   (*parser).setClientPort,
	"set-mss":                 (*parser).setMSS,
	"no-delay":                onClient(func(p *parser) { p.plan.NoDelay = true }),
	"version4":                always(func(p *parser) { p.plan.Family = 4 }),
	"version6":                always(func(p *parser) { p.plan.Family = 6 }),
	"tos":                     (*parser).setTOS,
	"dscp":                    (*parser).setDSCP,
	"extra-data":              clientText(func(p *parser, s string) { p.plan.ExtraData = s }),
	"flowlabel":               (*parser).setFlowLabel,
	"zerocopy":                onClient(func(p *parser) { p.plan.Send, p.plan.RemoteZeroCopy = plan.SendZeroCopy, true }),
	"omit":                    (*parser).setOmit,
	"file":                    text(func(p *parser, s string) { p.plan.File = s }),
	"repeating-payload":       onClient(func(p *parser) { p.plan.Repeating = true }),
	"timestamps":              (*parser).setTimestamps,
	"affinity":                (*parser).setAffinity,
	"title":                   clientText(func(p *parser, s string) { p.plan.Title = s }),
	"congestion":              clientText(func(p *parser, s string) { p.plan.Congestion = s }),
	"sctp":                    onClient(func(p *parser) { p.plan.Transport = plan.SCTP }),
	"nstreams":                (*parser).setNumStreams,
	"xbind":                   (*parser).setXBind,
	"pidfile":                 text(func(p *parser, s string) { p.pidfile = s }),
	"logfile":                 text(func(p *parser, s string) { p.out.Logfile = s }),
	"forceflush":              always(func(*parser) {}), // every line is written at once anyway
	"get-server-output":       onClient(func(p *parser) { p.plan.GetServerOutput = true }),
	"udp-counters-64bit":      onClient(func(p *parser) { p.plan.Counters64 = true }),
	"no-fq-socket-pacing":     onClient(func(p *parser) { p.deprecatedPacing, p.plan.FQRate = true, 0 }),
	"dont-fragment":           onClient(func(p *parser) { p.plan.DontFragment = true }),
	"skip-rx-copy":            onClient(func(p *parser) { p.plan.Receive, p.plan.RemoteDiscard = plan.Discard, true }),
	"username":                clientText(func(p *parser, s string) { p.user = &s }),
	"rsa-public-key-path":     clientText(func(p *parser, s string) { p.publicKey = &s }),
	"rsa-private-key-path":    serverText(func(p *parser, s string) { p.privateKey = &s }),
	"authorized-users-path":   text(func(p *parser, s string) { p.serve.UsersFile = s }), // its role is checked later
	"time-skew-threshold":     (*parser).setTimeSkew,
	"use-pkcs1-padding":       func(p *parser, m getopt.Match) *fault { p.pkcs1 = &value{Match: m}; return nil },
	"fq-rate":                 (*parser).setFQRate,
	"pacing-timer":            size(func(p *parser, n int64) { p.plan.PacingTimer = n }),
	"connect-timeout":         (*parser).setConnectTimeout,
	"idle-timeout":            (*parser).setIdleTimeout,
	"rcv-timeout":             (*parser).setReceiveTimeout,
	"snd-timeout":             (*parser).setSendTimeout,
	"cntl-ka":                 (*parser).setKeepalive,
	"mptcp":                   always(func(p *parser) { p.plan.Transport, p.plan.MPTCP = plan.TCP, true }),
	"gsro":                    always(func(p *parser) { p.gsro, p.plan.GSRO = true, true }),
	"debug":                   (*parser).setDebug,
}

// The following build setters of options that cannot be wrong by themselves.

func always(set func(*parser)) setter {
	return func(p *parser, _ getopt.Match) *fault {
		set(p)
		return nil
	}
}

func onClient(set func(*parser)) setter {
	return always(func(p *parser) { set(p); p.clientOnly = true })
}

func onServer(set func(*parser)) setter {
	return always(func(p *parser) { set(p); p.serverOnly = true })
}

func text(set func(*parser, string)) setter {
	return func(p *parser, m getopt.Match) *fault {
		set(p, m.Value)
		return nil
	}
}

func clientText(set func(*parser, string)) setter {
	return text(func(p *parser, s string) { set(p, s); p.clientOnly = true })
}

func serverText(set func(*parser, string)) setter {
	return text(func(p *parser, s string) { set(p, s); p.serverOnly = true })
}

// size is the setter of a client option that takes K, M, G, T of 1024.
func size(set func(*parser, int64)) setter {
	return func(p *parser, m getopt.Match) *fault {
		n, err := units.ParseIperf3Size(m.Value)
		if err != nil {
			return p.unit(m, err)
		}
		set(p, int64(n))
		p.clientOnly = true
		return nil
	}
}

// whole reads a whole number from lo to hi. text is iperf3's for a number out of
// range. A number with a wrong sign or with junk also gets a line that names it.
func (p *parser) whole(m getopt.Match, lo, hi int64, text string) (int64, *fault) {
	n, err := units.ParseWhole(m.Value)
	switch {
	case err != nil:
		return 0, p.malformed(text, m, err)
	case n < 0 && lo >= 0:
		return 0, p.bad(text, m, "must not be negative")
	case n < lo || n > hi:
		return 0, p.plain(text)
	}
	return n, nil
}

// seconds is whole for a time that may have a fraction.
func (p *parser) seconds(m getopt.Match, hi time.Duration, text string) (time.Duration, *fault) {
	d, err := units.ParseSeconds(m.Value)
	switch {
	case err != nil:
		return 0, p.malformed(text, m, err)
	case d < 0:
		return 0, p.bad(text, m, "must not be negative")
	case d > hi:
		return 0, p.plain(text)
	}
	return d, nil
}

func (p *parser) setPort(m getopt.Match) *fault {
	n, f := p.whole(m, 1, 65535, textPort)
	p.plan.Port = int(n)
	return f
}

func (p *parser) setClientPort(m getopt.Match) *fault {
	n, f := p.whole(m, 1, 65535, textPort)
	p.plan.ClientPort = int(n)
	return f
}

// setFormat looks at the first letter only, so -f mbits works.
func (p *parser) setFormat(m getopt.Match) *fault {
	if m.Value == "" || !strings.ContainsRune("kmgtKMGT", rune(m.Value[0])) {
		return p.plain(textFormat)
	}
	p.out.Format = m.Value[0]
	return nil
}

func (p *parser) setInterval(m getopt.Match) *fault {
	d, f := p.seconds(m, plan.MaxInterval, textInterval)
	if f != nil {
		return f
	}
	if d != 0 && d < plan.MinInterval {
		return p.plain(textInterval)
	}
	p.plan.Interval, p.plan.OneRow = d, d == 0
	return nil
}

func (p *parser) setServer(getopt.Match) *fault {
	if p.client {
		return p.plain(textBothRoles)
	}
	p.server = true
	return nil
}

func (p *parser) setClient(m getopt.Match) *fault {
	if p.server {
		return p.plain(textBothRoles)
	}
	p.client = true
	host, dev := splitDevice(m.Value)
	p.plan.Host = host
	if dev != "" {
		p.plan.BindDev = dev
	}
	return nil
}

func (p *parser) setBind(m getopt.Match) *fault {
	host, dev := splitDevice(m.Value)
	p.plan.BindHost = host
	if dev != "" {
		p.plan.BindDev = dev
	}
	return nil
}

// splitDevice takes host%dev apart. What follows an IPv6 link-local literal is its
// scope, not a device to bind to, and stays.
func splitDevice(s string) (host, dev string) {
	host, dev, found := strings.Cut(s, "%")
	addr, err := netip.ParseAddr(host)
	if !found || host == "" || dev == "" || err == nil && addr.Is6() && addr.IsLinkLocalUnicast() {
		return s, ""
	}
	dev, _, _ = strings.Cut(dev, "%")
	return host, dev
}

// setBitrate reads RATE or RATE/BURST. (10M/s is a rate, not a burst called s.)
func (p *parser) setBitrate(m getopt.Match) *fault {
	rate, burst, hasBurst := strings.Cut(m.Value, "/")
	if _, err := units.ParseIperf3Rate(m.Value); err == nil {
		rate, hasBurst = m.Value, false
	}
	n := int64(0)
	if hasBurst {
		var err error
		if n, err = units.ParseWhole(burst); err != nil {
			return p.malformed(textBurst, m, err)
		}
		if n < 1 || n > plan.MaxBurst {
			return p.plain(textBurst)
		}
	}
	bps, f := p.rate(m, rate)
	if f != nil {
		return f
	}
	if hasBurst {
		p.plan.Burst = int(n) // a later -b without one does not take it back, as in iperf3
	}
	p.plan.Bitrate, p.plan.RateSet = bps, true
	p.clientOnly = true
	return nil
}

// rate reads the part of m's value that is a rate; the fault names that part.
func (p *parser) rate(m getopt.Match, s string) (int64, *fault) {
	bps, err := units.ParseIperf3Rate(s)
	if err != nil {
		f := p.unit(getopt.Match{Spelling: m.Spelling, Value: s}, err)
		return 0, f
	}
	return int64(bps), nil
}

func (p *parser) setFQRate(m getopt.Match) *fault {
	bps, f := p.rate(m, m.Value)
	p.plan.FQRate = bps
	p.clientOnly = true
	return f
}

// setRateLimit reads RATE or RATE/SECONDS; 0 seconds is the default of 5.
func (p *parser) setRateLimit(m getopt.Match) *fault {
	rate, window, hasWindow := strings.Cut(m.Value, "/")
	if _, err := units.ParseIperf3Rate(m.Value); err == nil {
		rate, hasWindow = m.Value, false
	}
	if hasWindow {
		d, err := units.ParseSeconds(window)
		switch {
		case err != nil:
			return p.malformed(textLimitInterval, m, err)
		case d < 0:
			return p.bad(textLimitInterval, m, "must not be negative")
		case d != 0 && (d < plan.MinInterval || d > plan.MaxInterval):
			return p.plain(textLimitInterval)
		}
		p.serve.RateLimitWindow = d
	}
	bps, f := p.rate(m, rate)
	p.serve.RateLimit = bps
	p.serverOnly = true
	return f
}

func (p *parser) setMaxDuration(m getopt.Match) *fault {
	d, f := p.seconds(m, plan.MaxDuration, textDuration)
	p.serve.MaxDuration = d
	p.serverOnly = true
	return f
}

func (p *parser) setTime(m getopt.Match) *fault {
	d, f := p.seconds(m, plan.MaxDuration, textDuration)
	p.plan.Duration, p.plan.Endless = d, d == 0
	p.timeSet, p.clientOnly = true, true
	return f
}

func (p *parser) setOmit(m getopt.Match) *fault {
	d, f := p.seconds(m, time.Duration(p.release.maxOmit())*time.Second, textOmit)
	p.plan.Omit = d
	p.clientOnly = true
	return f
}

// setLength keeps the number: whether it is in range depends on -u, wherever that is.
func (p *parser) setLength(m getopt.Match) *fault {
	n, err := units.ParseIperf3Size(m.Value)
	if err != nil && isNegative(m.Value) {
		n, err = -1, nil
	}
	if err != nil {
		return p.unit(m, err)
	}
	p.block = &value{m, int64(n)}
	p.clientOnly = true
	return nil
}

func isNegative(s string) bool {
	return strings.HasPrefix(strings.TrimLeft(s, " \t\n\v\f\r"), "-")
}

func (p *parser) setParallel(m getopt.Match) *fault {
	n, err := units.ParseWhole(m.Value)
	switch {
	case err != nil:
		return p.malformed(textStreamsInvalid, m, err)
	case n < 0:
		return p.bad(textStreamsInvalid, m, "must not be negative")
	case n > plan.MaxStreams:
		return p.plain(textStreams)
	case n == 0:
		p.note(m.Spelling + " 0 means one stream")
		n = 1
	}
	p.plan.Streams = int(n)
	p.clientOnly = true
	return nil
}

func (p *parser) setReverse(getopt.Match) *fault {
	if p.plan.Direction == plan.Both {
		return p.plain(textReverseBidir)
	}
	p.plan.Direction = plan.Down
	p.clientOnly = true
	return nil
}

func (p *parser) setBidir(getopt.Match) *fault {
	if p.plan.Direction == plan.Down {
		return p.plain(textReverseBidir)
	}
	p.plan.Direction = plan.Both
	p.clientOnly = true
	return nil
}

func (p *parser) setWindow(m getopt.Match) *fault {
	n, err := units.ParseIperf3Size(m.Value)
	switch {
	case err != nil && isNegative(m.Value):
		return p.malformed(textWindowInvalid, m, err)
	case err != nil:
		return p.unit(m, err)
	case n > plan.MaxWindow:
		return p.plain(textWindow)
	}
	p.plan.Window, p.plan.StrictWindow = int64(n), n > 0
	p.clientOnly = true
	return nil
}

func (p *parser) setMSS(m getopt.Match) *fault {
	most := p.release.maxMSS()
	invalid := fmt.Sprintf(textMSSInvalid, most)
	n, err := units.ParseWhole(m.Value)
	switch {
	case err != nil:
		return p.malformed(invalid, m, err)
	case n > most:
		return p.bad(textMSS, m, fmt.Sprintf("give %d to %d bytes, or 0 for the system's own", plan.MinMSS, most))
	case n != 0 && n < plan.MinMSS:
		return p.bad(invalid, m, fmt.Sprintf("give %d to %d bytes, or 0 for the system's own", plan.MinMSS, most))
	}
	p.plan.MSS = int(n)
	p.clientOnly = true
	return nil
}

func (p *parser) setFlowLabel(m getopt.Match) *fault {
	n, err := units.ParseBased(m.Value)
	switch {
	case err != nil:
		return p.malformed(textFlowLabel, m, err)
	case n < 1 || n > plan.MaxFlowLabel:
		return p.plain(textFlowLabel)
	}
	p.plan.FlowLabel = int(n)
	p.clientOnly = true
	return nil
}

func (p *parser) setTimestamps(m getopt.Match) *fault {
	p.out.Timestamps = "%c "
	if m.HasValue {
		p.out.Timestamps = m.Value
	}
	return nil
}

// setNumStreams only checks the value: it is about SCTP alone.
func (p *parser) setNumStreams(m getopt.Match) *fault {
	n, err := units.ParseIperf3Size(m.Value)
	if err != nil {
		return p.unit(m, err)
	}
	p.sctpOption = &value{m, int64(n)}
	p.clientOnly = true
	return nil
}

func (p *parser) setXBind(m getopt.Match) *fault {
	p.sctpOption = &value{Match: m}
	return nil
}

func (p *parser) setTimeSkew(m getopt.Match) *fault {
	d, err := units.ParseSeconds(m.Value)
	switch {
	case err != nil:
		return p.malformed(textSkew, m, err)
	case d < 0:
		return p.bad(textSkew, m, "must not be negative")
	case d == 0:
		return p.plain(textSkew)
	}
	p.serve.TimeSkew = d
	p.serverOnly = true
	return nil
}

func (p *parser) setConnectTimeout(m getopt.Match) *fault {
	n, err := units.ParseIperf3Size(m.Value)
	switch {
	case err != nil:
		return p.unit(m, err)
	case int64(n) > int64(plan.MaxDuration/time.Millisecond):
		return p.bad(fmt.Sprintf(textUnit, m.Value), m, "more than a day")
	}
	p.plan.ConnectTimeout = time.Duration(n) * time.Millisecond
	p.clientOnly = true
	return nil
}

func (p *parser) setIdleTimeout(m getopt.Match) *fault {
	n, f := p.whole(m, 1, int64(plan.MaxDuration/time.Second), textIdle)
	p.serve.IdleTimeout = time.Duration(n) * time.Second
	p.serverOnly = true
	return f
}

func (p *parser) setReceiveTimeout(m getopt.Match) *fault {
	n, f := p.whole(m, 100, int64(plan.MaxDuration/time.Millisecond), textRcvTimeout)
	p.plan.ReceiveTimeout = time.Duration(n) * time.Millisecond
	p.receiveTimeout = true
	return f
}

func (p *parser) setSendTimeout(m getopt.Match) *fault {
	n, f := p.whole(m, 0, int64(plan.MaxDuration/time.Millisecond), textSndTimeout)
	p.plan.SendTimeout = time.Duration(n) * time.Millisecond
	return f
}

// setKeepalive reads idle/interval/count, each of which may be empty or left out.
func (p *parser) setKeepalive(m getopt.Match) *fault {
	k := &plan.Keepalive{}
	p.plan.Keepalive = k
	if m.Value == "" {
		return nil
	}
	fields := strings.Split(m.Value, "/")
	if len(fields) > 3 {
		return p.bad(textKeepaliveInvalid, m, "three values at most")
	}
	var n [3]int64
	for i, s := range fields {
		if s == "" {
			continue
		}
		v, f := p.whole(getopt.Match{Spelling: m.Spelling, Value: s}, 0, int64(plan.MaxDuration/time.Second), textKeepaliveInvalid)
		if f != nil {
			return f
		}
		n[i] = v
	}
	if n[0] != 0 && n[0] <= n[1]*n[2] {
		return p.plain(textKeepalive)
	}
	k.Idle, k.Interval, k.Count = time.Duration(n[0])*time.Second, time.Duration(n[1])*time.Second, int(n[2])
	return nil
}

func (p *parser) setDebug(m getopt.Match) *fault {
	const most = 4
	p.out.Debug = most
	if !m.HasValue {
		return nil
	}
	n, f := p.whole(m, 0, 1<<31-1, textDebugInvalid)
	if f != nil {
		return f
	}
	p.out.Debug = int(min(max(n, 1), most)) // 0 still switches it on, more than 4 shows no more
	return nil
}
