package iperf3

import (
	"net/netip"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// finish checks roles and combinations, in iperf3's order, and builds the invocation.
func (p *parser) finish() (*Invocation, *fault) {
	for _, check := range []func() *fault{
		p.checkRole, p.checkLogin, p.checkServerKeys, p.checkTraffic,
	} {
		if f := check(); f != nil {
			return nil, f
		}
	}
	if !p.client && !p.server {
		return nil, p.plain(textNoRole)
	}
	p.remarks()
	inv := &Invocation{Output: p.out, Pidfile: p.pidfile, Daemon: p.daemon, Stdout: p.stdout, Stderr: p.stderr}
	if p.client {
		inv.Plan = &p.plan
		return inv, p.valid(p.plan.Validate())
	}
	inv.Serve = &p.serve
	p.fillServe(inv)
	return inv, p.valid(p.serve.Validate())
}

// valid is the safety net below the checks above: what the plan itself refuses.
func (p *parser) valid(err error) *fault {
	if err != nil {
		return &fault{text: err.Error()}
	}
	return nil
}

func (p *parser) checkRole() *fault {
	switch {
	case p.client && p.serverOnly:
		return p.plain(textServerOnly)
	case p.server && (p.clientOnly || p.gsro):
		return p.plain(textClientOnly)
	}
	return nil
}

// checkLogin completes the client's login.
func (p *parser) checkLogin() *fault {
	if !p.client || p.user == nil && p.publicKey == nil {
		return nil
	}
	if p.user == nil || p.publicKey == nil {
		return p.plain(textClientAuth)
	}
	key, err := p.readKey(*p.publicKey, parsePublicKey)
	if err != nil {
		return &fault{p.release.text(textClientAuth), "--rsa-public-key-path: " + err.Error()}
	}
	auth := &plan.Auth{Username: *p.user, PublicKey: key, PKCS1: p.pkcs1 != nil}
	ok := p.world.Password != nil
	if ok {
		auth.Password, ok = p.world.Password(*p.user)
	}
	if !ok {
		return p.plain(textClientAuth)
	}
	p.plan.Auth = auth
	return nil
}

// checkServerKeys completes the server's login, and rejects what remains of the wrong
// role.
func (p *parser) checkServerKeys() *fault {
	if p.client {
		switch {
		case p.privateKey != nil || p.serve.UsersFile != "":
			return p.plain(textServerOnly)
		case p.receiveTimeout && p.plan.Direction != plan.Down && p.plan.Direction != plan.Both:
			return p.plain(textRcvSender)
		}
		return nil
	}
	if !p.server || p.privateKey == nil && p.serve.UsersFile == "" {
		return nil
	}
	if p.privateKey == nil || p.serve.UsersFile == "" {
		return p.plain(textServerAuth)
	}
	if _, err := p.world.ReadFile(p.serve.UsersFile); err != nil {
		return &fault{p.release.text(textUsersFile), "--authorized-users-path: " + err.Error()}
	}
	key, err := p.readKey(*p.privateKey, parsePrivateKey)
	if err != nil {
		return &fault{p.release.text(textServerAuth), "--rsa-private-key-path: " + err.Error()}
	}
	p.serve.PrivateKey = key
	return nil
}

// checkTraffic checks what is sent and for how long.
func (p *parser) checkTraffic() *fault {
	udp := p.plan.Transport == plan.UDP
	if udp && p.plan.File != "" {
		return p.plain(textUDPFile)
	}
	if f := p.checkBlock(udp); f != nil {
		return f
	}
	if udp && !p.plan.RateSet {
		p.plan.Bitrate = plan.DefaultUDPRate
	}
	if udp && !p.plan.GSRO {
		p.plan.Offload = plan.OffloadOff // as iperf3: each datagram goes through the stack by itself
	}
	ends := 0
	for _, set := range []bool{p.timeSet, p.plan.Bytes != 0, p.plan.Blocks != 0} {
		if set {
			ends++
		}
	}
	if ends > 1 {
		return p.plain(textEnds)
	}
	if ends == 0 && p.client && p.plan.File != "" {
		// The file's size is the end. A file that cannot be found is reported when the
		// streams are made, as iperf3 does.
		if info, err := p.world.Stat(p.plan.File); err == nil && info.Size() > 0 {
			p.plan.Bytes = info.Size()
		} else {
			p.plan.Duration = plan.DefaultDuration
		}
	}
	return nil
}

func (p *parser) checkBlock(udp bool) *fault {
	b := p.block
	if b == nil {
		return nil
	}
	switch text := textBlock; {
	case udp && (b.n < plan.MinUDPBlock || b.n > plan.MaxUDPBlock):
		if text = textUDPBlock; b.n > plan.MaxBlockSize {
			text = textBlock // iperf3 looks at the general limit first
		}
		if b.n < 1 {
			return p.bad(text, b.Match, "must be positive")
		}
		return p.plain(text)
	case b.n == 0:
		return p.bad(textBlockInvalid, b.Match, "must be positive")
	case b.n < 0:
		return p.bad(text, b.Match, "must be positive")
	case b.n > plan.MaxBlockSize:
		return p.plain(text)
	}
	p.plan.BlockSize = int(b.n)
	return nil
}

// remarks are the lines that do not end the run. With -J they all go to stderr, so
// that stdout stays one document.
func (p *parser) remarks() {
	if p.deprecatedPacing {
		const line = "Warning:  --no-fq-socket-pacing is deprecated\n"
		if p.out.JSON {
			p.stderr += line
		} else {
			p.stdout += line
		}
	}
	if p.sctpOption != nil && p.plan.Transport != plan.SCTP {
		p.note(p.sctpOption.Spelling + " is about SCTP: no effect here")
	}
	if p.client && p.pkcs1 != nil {
		p.note(p.pkcs1.Spelling + ": the old padding can be attacked; only for servers up to 3.16")
	}
	if p.out.JSON && p.out.Format != 'a' {
		p.warn("Report format (-f) flag ignored with JSON output (-J)")
	}
	if p.out.JSON && p.out.Verbose {
		p.warn("Verbose output (-v) may interfere with JSON output (-J)")
	}
	if p.out.JSON && p.out.Debug > 0 {
		p.warn("Debug output (-d) may interfere with JSON output (-J)")
	}
}

// fillServe moves what both roles share into the server's settings.
func (p *parser) fillServe(inv *Invocation) {
	c, s := &p.plan, &p.serve
	port := c.Port
	if port == 0 {
		port = plan.DefaultPort
	}
	addr := netip.IPv6Unspecified()
	if c.Family == 4 {
		addr = netip.IPv4Unspecified()
	}
	if c.BindHost != "" {
		if literal, err := netip.ParseAddr(c.BindHost); err == nil {
			addr = literal
		} else {
			inv.ListenHost = c.BindHost
		}
	}
	s.Listen = []netip.AddrPort{netip.AddrPortFrom(addr, uint16(port))}
	s.BindDev, s.Family = c.BindDev, c.Family
	s.Interval, s.OneRow = c.Interval, c.OneRow
	s.Exclusive = true // one test at a time, busy for everybody else
	s.ReceiveTimeout, s.SendTimeout, s.Keepalive = c.ReceiveTimeout, c.SendTimeout, c.Keepalive
	s.Affinity, s.File, s.MPTCP = c.Affinity, c.File, c.MPTCP
	s.PKCS1 = p.pkcs1 != nil
	s.JSONOutput = p.out.JSON
}
