package ntttcp

import (
	"fmt"
	"strings"
)

// settings is the list that -v prints (PrintFlags): names, order and units of ntttcp.exe.
func (p *windowsParser) settings() string {
	var b strings.Builder
	row := func(name string, value any) {
		if on, is := value.(bool); is {
			value = 0
			if on {
				value = 1
			}
		}
		fmt.Fprintf(&b, "%s: %v\n", name, value)
	}
	n := &p.n
	buffers := p.buffers
	if p.timed || p.endless {
		buffers = 1<<63 - 1
	}
	limit := p.timeLimit
	if limit == 0 {
		limit = 10800000
	}
	wait := n.WaitTimeout.Milliseconds()
	switch {
	case n.NoTimeout:
		wait = -1 // INFINITE, as %d
	case wait == 0:
		wait = 600000
	}
	active := p.threads
	if n.ActiveThreads != nil && *n.ActiveThreads >= 0 {
		active = *n.ActiveThreads
	}
	node := -1
	if n.NUMANode != nil {
		node = *n.NUMANode
	}
	row("buffers_length", p.block)
	row("num_buffers_to_send", buffers)
	row("send_socket_buff", p.sendBuffer)
	row("recv_socket_buff", p.recvBuffer)
	row("port", p.port)
	row("sync_port", n.PortSync)
	row("no_sync", n.NoSync)
	row("wait_timeout_milliseconds", wait)
	row("async_flag", p.async)
	row("verbose_flag", p.verbose)
	row("wsa_flag", n.WSA)
	row("use_ipv6_flag", p.plan.Family == 6)
	row("send_flag", p.send)
	row("udp_flag", p.udp)
	row("udp_unconnected_flag", n.Unconnected)
	row("verify_data_flag", n.Verify)
	row("wait_all_flag", n.WaitAll)
	row("run_time", p.time)
	row("warmup_time", int64(p.warmUp)*1000)
	row("cooldown_time", int64(p.coolDown)*1000)
	row("dash_n_timeout", limit)
	row("bind_sender_flag", p.nic != "")
	row("sender_name", p.nic)
	row("max_active_threads", active)
	row("no_delay", p.plan.NoDelay)
	row("node_affinity", node)
	row("udp_uso_size", n.SegmentSize)
	row("udp_receive_coalescing", n.Coalesce)
	row("tp_flag", p.packets)
	row("use_hvsocket_flag", n.HyperV)
	row("no_stdio_buffer", p.out.Unbuffered)
	row("throughput_Bpms", p.throughput)
	row("cpu_burn", n.CPUBurn)
	row("latency_measurement", n.Latency)
	row("use_io_compl_ports", p.icp)
	row("cpu_from_idle_flag", p.out.CPUFromIdle)
	row("get_estats", n.EStats)
	row("qos_flag", n.QOS != nil)
	row("packet_period", p.spacing)
	row("jitter_measurement", n.Jitter)
	for i, m := range p.mappings {
		cpu := "*"
		if m.CPU != nil {
			cpu = fmt.Sprint(*m.CPU)
		}
		row(fmt.Sprintf("mapping[%d]", i), fmt.Sprintf("%d,%s,%s", m.Threads, cpu, m.Host))
	}
	return b.String()
}
