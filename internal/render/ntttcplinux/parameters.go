package ntttcplinux

import (
	"fmt"

	"github.com/fullbore-net/fullbore/result"
)

// parameter is one setting of the documents, under the names that XML and JSON give it.
// Most are constants that stand in for settings of NTTTCP for Windows.
type parameter struct{ xml, json, value string }

func boolean(on bool) string { return choose(on, "True", "False") }

// parameters are the settings in the documents' order.
func parameters(r *result.Run, o *Options) []parameter {
	n, s := ntttcp(r), o.Settings.fill(r)
	syncPort := boolean(false)
	if o.Release.since(R140) {
		syncPort = fmt.Sprint(n.BasePort - 1)
	}
	return []parameter{
		{"send_socket_buff", "sendSocketBuff", fmt.Sprint(s.SendBuffer)},
		{"recv_socket_buff", "recvSocketBuff", fmt.Sprint(s.RecvBuffer)},
		{"port", "port", fmt.Sprint(n.BasePort)},
		{"sync_port", "syncPort", syncPort},
		{"no_sync", "noSync", boolean(n.NoSync)},
		{"wait_timeout_milliseconds", "waitTimeoutMilliseconds", "0"},
		{"async", "async", boolean(false)},
		{"verbose", "verbose", boolean(o.Verbose)},
		{"wsa", "wsa", boolean(false)},
		{"use_ipv6", "useIpv6", boolean(s.IPv6)},
		{"udp", "udp", boolean(r.Test.Transport == "udp")},
		{"verify_data", "verifyData", boolean(false)},
		{"wait_all", "waitAll", boolean(false)},
		{"run_time", "runTime", fmt.Sprint(r.Test.Duration)},
		{"warmup_time", "warmupTime", fmt.Sprint(r.Test.Omit)},
		{"cooldown_time", "cooldownTime", fmt.Sprint(n.Cooldown)},
		{"dash_n_timeout", "dashNTimeout", "0"},
		{"bind_sender", "bindSender", boolean(false)},
		{"sender_name", "senderName", "NA"},
		{"max_active_threads", "maxActiveThreads", "0"},
		{"tp", "tp", boolean(false)},
		{"no_stdio_buffer", "noStdioBuffer", boolean(false)},
		{"throughput_Bpms", "throughputBpms", "0"},
		{"cpu_burn", "cpuBurn", "0"},
		{"latency_measurement", "latencyMeasurement", boolean(false)},
		{"use_io_compl_ports", "useIOComplPorts", "NA"},
		{"cpu_from_idle_flag", "cpuFromIdleFlag", boolean(false)},
		{"get_estats", "getEstats", boolean(false)},
		{"qos_flag", "qosFlag", boolean(false)},
		{"jitter_measurement", "jitterMeasurement", boolean(false)},
		{"packet_spacing", "packetSpacing", "0"},
	}
}

// root is the name of a document's outermost element.
func (f *figures) root() string { return choose(f.sender, "ntttcps", "ntttcpr") }

// fileVersion is what every release writes into its documents.
const fileVersion = "5.33-linux"

// scale is the documents' arithmetic: since late 1.4.0 KB and MB are powers of 1000;
// before, of 1024, and the total was cut to whole MB first.
type scale struct{ kb, mb, total, mbps float64 }

func (f *figures) scaled(o *Options) scale {
	if o.Release.since(R140) {
		return scale{
			total: float64(f.bytes) / 1e6,
			mb:    result.PerSecond(f.bytes, f.seconds) / 1e6,
			mbps:  f.rate() / 1e6,
		}
	}
	whole := f.bytes >> 20
	mb := result.PerSecond(whole, f.seconds)
	return scale{total: float64(whole), mb: mb, mbps: mb * 8}
}

func (t thread) scaled(o *Options) scale {
	if o.Release.since(R140) {
		return scale{
			kb:   result.PerSecond(t.bytes, t.seconds) / 1e3,
			mb:   result.PerSecond(t.bytes, t.seconds) / 1e6,
			mbps: result.Rate(t.bytes, t.seconds) / 1e6,
		}
	}
	kb := result.PerSecond(t.bytes, t.seconds) / 1024
	return scale{kb: kb, mb: kb / 1024, mbps: kb / 1024 * 8}
}

// counted are the packet and interrupt figures of the documents, 0 when not asked for.
type counted struct {
	sent, received, interrupts, retransmitted int64
	perInterrupt, perSecond                   float64
}

func (f *figures) counted(o *Options) counted {
	var c counted
	if p := f.packets(); p != nil && o.Settings.Interface != "" {
		c.sent, c.received = p.Sent, p.Received
	}
	if n := f.interrupts(); n != nil && o.Settings.Interrupts != "" {
		c.interrupts = *n
		if o.Settings.Interface != "" {
			c.perInterrupt = f.host.PacketsPerInterrupt()
		}
		if o.Release.since(R143) {
			c.perSecond = result.PerSecond(*n, f.seconds)
		}
	}
	if t := f.tcp(); t != nil {
		c.retransmitted = t.RetransSegs
	}
	return c
}

// eachThread reports whether the documents list the threads.
func eachThread(o *Options) bool { return (o.Verbose || !o.Release.since(R140)) && !o.NoThreads }

// showRTT reports whether the documents have the round-trip time.
func (f *figures) showRTT(o *Options) bool {
	return f.rtt != nil && (o.Release.since(R140) && o.Verbose || o.Release == R140Tag)
}
