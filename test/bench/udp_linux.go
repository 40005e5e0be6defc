package main

import (
	"fmt"
	"strconv"
)

// load is what a UDP run sends.
type load struct {
	udp  bool
	size int   // payload bytes of a datagram; 0 = what the program takes by itself
	rate int64 // payload bit/s; 0 = as much as it can
}

func (l load) gbit() float64 { return float64(l.rate) / 1e9 }

// flags are those of iperf3's dialect, which is ours and iperf's too. Unlimited is a word
// of each program's own.
func (l load) flags(unlimited string) []string {
	rate := unlimited
	if l.rate > 0 {
		rate = strconv.FormatInt(l.rate, 10)
	}
	f := []string{"-u", "-b", rate}
	if l.size > 0 {
		f = append(f, "-l", strconv.Itoa(l.size))
	}
	return f
}

// nativeUDP is the native pair.
func nativeUDP(name string, flags ...string) command {
	c := native()
	client := c.client
	c.name, c.wide, c.extended = name, true, true
	c.client = func(port int, p params) []string {
		return join(client(port, p), p.load.flags("0"), flags)
	}
	return c
}

// nativeTo is the native client with the server of another program that speaks iperf3.
func nativeTo(name string, other command) command {
	c := nativeUDP(name)
	c.server, c.server2, c.stays = other.server, other.tool, other.stays
	return c
}

func iperf3UDP(name string, flags ...string) command {
	c := iperf3(name, flags...)
	client := c.client
	c.client = func(port int, p params) []string { return join(client(port, p), p.load.flags("0")) }
	return c
}

func iperf2UDP() command {
	c := iperf2()
	server, client := c.server, c.client
	c.name, c.udpServer = "iperf -u", true
	c.server = func(port int, p params) []string { return append(server(port, p), "-u") }
	c.client = func(port int, p params) []string { return join(client(port, p), p.load.flags("100G")) }
	return c
}

func nuttcpUDP() command {
	c := nuttcp()
	client := c.client
	c.name = "nuttcp -u"
	c.client = func(port int, p params) []string {
		f := []string{"-u", "-Ru"}
		if p.load.rate > 0 {
			f[1] = fmt.Sprintf("-R%dK", p.load.rate/1000)
		}
		if p.load.size > 0 {
			f = append(f, "-l"+strconv.Itoa(p.load.size))
		}
		return join(f, client(port, p))
	}
	return c
}

// mtu is the size of most rows: with 28 bytes of headers and 24 spare for options it fits
// a packet of 1500.
const mtuSize = 1448

// udpRows are the targets of the UDP engine, then what is only reported.
func udpRows() []row {
	best, plain, gsro := nativeUDP("fullbore test -u"), iperf3UDP("iperf3 -u"), iperf3UDP("iperf3 -u --gsro", "--gsro")
	full := load{udp: true, size: mtuSize}
	small := load{udp: true, size: 64}
	out := []row{
		{id: "U1", title: "1448 bytes at full speed: received rate", ours: best, peer: plain, gate: 8, goal: 12, must: true, load: full, by: rate},
		{id: "U2", title: "same: cost", ours: best, peer: gsro, gate: 1.05, goal: 1.3, load: full},
		{id: "U3", title: "64 bytes at full speed: received datagrams", ours: best, peer: plain, gate: 20, goal: 40, load: small, by: rate},
		{id: "U3g", title: "same", ours: best, peer: gsro, gate: 1.05, goal: 1.3, load: small, by: rate},
		{id: "U4", title: "1448 bytes at full speed to a receiver without GRO (iperf3): received rate", ours: nativeTo("fullbore test -u → iperf3 -s", plain), peer: plain, gate: 2, goal: 3, load: full, by: rate},
	}
	for _, g := range []int64{1, 5, 10} {
		l := load{udp: true, size: mtuSize, rate: g * 1e9}
		out = append(out,
			row{
				id: fmt.Sprintf("U5/%d", g), title: fmt.Sprintf("paced at %d Gbit/s, 1448 bytes: cost", g), ours: nativeUDP("fullbore test -u --pacing frugal", "--pacing", "frugal"),
				peer: plain, more: []command{gsro}, gate: 2, goal: 3, must: true, load: l,
			},
			row{id: fmt.Sprintf("U5d/%d", g), title: "same, default pacing", ours: best, peer: plain, more: []command{gsro}, load: l})
	}
	any := load{udp: true}
	out = append(out,
		row{id: "Ud", title: "default datagram at full speed: cost", ours: best, peer: plain, load: any},
		row{id: "Udg", title: "same", ours: best, peer: gsro, load: any})
	for _, p := range []command{iperf2UDP(), nuttcpUDP()} {
		out = append(out,
			row{id: "PU-" + p.tool, title: "1448 bytes at full speed: received rate", ours: best, peer: p, load: full, by: rate},
			row{id: "PUd-" + p.tool, title: "default datagram at full speed: cost", ours: best, peer: p, load: any})
	}
	for i := range out {
		out[i].streams = 1
	}
	return out
}
