package plan

import (
	"encoding/json"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func sender(change func(*Plan)) Plan {
	p := Plan{Protocol: ProtocolNTTTCP, Host: "h", NTTTCP: &NTTTCP{Dialect: NTTTCPLinux, Role: NTTTCPSender}}
	change(&p)
	return p
}

func receiver(change func(*Plan)) Plan {
	return sender(func(p *Plan) { p.Host, p.NTTTCP.Role = "", NTTTCPReceiver; change(p) })
}

func windows(p *Plan) { p.NTTTCP.Dialect = NTTTCPWindows }

func TestNTTTCPFilled(t *testing.T) {
	t.Parallel()
	got := func(p Plan) [6]any {
		f := p.Filled()
		return [6]any{f.Port, f.Streams, f.Duration, f.Interval, f.BlockSize, f.NTTTCP.Buffers}
	}
	for name, c := range map[string]struct {
		plan Plan
		want [6]any
	}{
		"sender":          {sender(func(*Plan) {}), [6]any{5001, 16, time.Minute, 500 * time.Millisecond, 128 << 10, int64(0)}},
		"sender, 4 each":  {sender(func(p *Plan) { p.NTTTCP.Threads = 4 }), [6]any{5001, 64, time.Minute, 500 * time.Millisecond, 128 << 10, int64(0)}},
		"sender, udp":     {sender(func(p *Plan) { p.Transport = UDP }), [6]any{5001, 16, time.Minute, 500 * time.Millisecond, 65507, int64(0)}},
		"receiver":        {receiver(func(*Plan) {}), [6]any{5001, 16, time.Minute, 500 * time.Millisecond, 64 << 10, int64(0)}},
		"endless":         {sender(func(p *Plan) { p.Endless = true }), [6]any{5001, 16, time.Duration(0), 500 * time.Millisecond, 128 << 10, int64(0)}},
		"windows":         {sender(func(p *Plan) { windows(p); p.NTTTCP.Mappings = []NTTTCPMapping{{Threads: 3}, {Threads: 2}} }), [6]any{5001, 5, time.Duration(0), time.Second, 64 << 10, int64(20480)}},
		"windows, udp, t": {receiver(func(p *Plan) { windows(p); p.NTTTCP.Ports, p.Transport, p.Duration = 2, UDP, time.Second }), [6]any{5001, 2, time.Second, time.Second, 128, int64(0)}},
	} {
		if diff := cmp.Diff(c.want, got(c.plan)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if err := c.plan.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if once := c.plan.Filled(); cmp.Diff(once, once.Filled()) != "" {
			t.Errorf("%s: filling twice changes it", name)
		}
	}
	p := sender(func(*Plan) {})
	if p.Filled(); p.NTTTCP.Ports != 0 {
		t.Error("Filled wrote into the plan that it was given")
	}
}

func TestNTTTCPRates(t *testing.T) {
	t.Parallel()
	p := sender(func(p *Plan) { p.NTTTCP.Rate, p.NTTTCP.Ports, p.NTTTCP.Threads = 100, 2, 5 })
	if r := p.StreamRate(); r != 10 {
		t.Errorf("a tenth of 100 is %d", r)
	}
	p.NTTTCP.Rate, p.NTTTCP.FQRate = 3, 2
	if r, f := p.StreamRate(), p.StreamFQRate(); r != 1 || f != 1 {
		t.Errorf("a limit vanished: %d, %d", r, f)
	}
	q := Plan{Host: "h", Bitrate: 7, FQRate: 8}
	if q.StreamRate() != 7 || q.StreamFQRate() != 8 {
		t.Error("without NTTTCP the rates are the plan's")
	}
}

func TestNTTTCPFaults(t *testing.T) {
	t.Parallel()
	minus := -1
	big := int64(1 << 31)
	for _, c := range []struct {
		field string
		plan  Plan
	}{
		{"protocol", Plan{Protocol: ProtocolNTTTCP, Host: "h"}},
		{"ntttcp.dialect", sender(func(p *Plan) { p.NTTTCP.Dialect = "mac" })},
		{"ntttcp.role", sender(func(p *Plan) { p.NTTTCP.Role = "both" })},
		{"host", sender(func(p *Plan) { p.Host = "" })},
		{"transport", sender(func(p *Plan) { p.Transport = SCTP })},
		{"family", sender(func(p *Plan) { p.Family = 5 })},
		{"ntttcp.ports", sender(func(p *Plan) { p.NTTTCP.Ports = 513 })},
		{"ntttcp.ports", sender(func(p *Plan) { windows(p); p.NTTTCP.Ports = 1000 })},
		{"ntttcp.ports", sender(func(p *Plan) { windows(p); p.NTTTCP.Ports, p.NTTTCP.Mappings = 2, []NTTTCPMapping{{Threads: 1}} })},
		{"ntttcp.threads_per_port", sender(func(p *Plan) { p.NTTTCP.Threads = 25601 })},
		{"ntttcp.threads_per_port", sender(func(p *Plan) { windows(p); p.NTTTCP.Threads = 2 })},
		{"ntttcp.connections_per_thread", sender(func(p *Plan) { p.NTTTCP.Connections = 1001 })},
		{"streams", sender(func(p *Plan) { p.Streams = 3 })},
		{"streams", receiver(func(p *Plan) { p.Streams = 64 })},
		{"port", sender(func(p *Plan) { p.Port = 1 })},
		{"port", sender(func(p *Plan) { p.Port = 65530 })},
		{"port", sender(func(p *Plan) { windows(p); p.Port = 64600 })},
		{"port", sender(func(p *Plan) { windows(p); p.Port, p.NTTTCP.NoSync, p.NTTTCP.PortSync = 65520, true, true })},
		{"ntttcp.linux_ports", sender(func(p *Plan) { p.NTTTCP.LinuxPorts = 1 })},
		{"ntttcp.mappings", sender(func(p *Plan) { p.NTTTCP.Mappings = []NTTTCPMapping{{Threads: 1}, {Threads: 1}} })},
		{"ntttcp.mappings", sender(func(p *Plan) { p.NTTTCP.Mappings = []NTTTCPMapping{{}} })},
		{"ntttcp.mappings", sender(func(p *Plan) { p.NTTTCP.Mappings = []NTTTCPMapping{{Threads: 1, CPU: &minus}} })},
		{"duration", sender(func(p *Plan) { p.Duration = -1 })},
		{"duration", sender(func(p *Plan) { p.Duration, p.Endless = 1, true })},
		{"duration", sender(func(p *Plan) { windows(p); p.Duration, p.NTTTCP.Buffers = 1, 1 })},
		{"omit", sender(func(p *Plan) { p.Omit = -1 })},
		{"ntttcp.cool_down", sender(func(p *Plan) { p.NTTTCP.CoolDown = -1 })},
		{"bytes", sender(func(p *Plan) { p.Bytes = 1 })},
		{"ntttcp.buffers", sender(func(p *Plan) { p.NTTTCP.Buffers = 1 })},
		{"ntttcp.time_limit", sender(func(p *Plan) { p.NTTTCP.TimeLimit = -1 })},
		{"ntttcp.wait_timeout", sender(func(p *Plan) { p.NTTTCP.WaitTimeout = -1 })},
		{"interval", sender(func(p *Plan) { p.Interval = 1 })},
		{"block_size", sender(func(p *Plan) { p.BlockSize = -1 })},
		{"block_size", sender(func(p *Plan) { p.BlockSize, p.Transport = MaxUDPBlock+1, UDP })},
		{"block_size", sender(func(p *Plan) { p.BlockSize, p.NTTTCP.Jitter = 19, true })},
		{"client_port", sender(func(p *Plan) { p.ClientPort = 65530 })},
		{"bitrate", sender(func(p *Plan) { p.Bitrate, p.NTTTCP.Rate = 1, 1 })},
		{"ntttcp.rate", sender(func(p *Plan) { p.NTTTCP.Rate = -1 })},
		{"ntttcp.fq_rate_total", sender(func(p *Plan) { p.NTTTCP.Rate, p.NTTTCP.FQRate = 1, 1 })},
		{"ntttcp.send_socket_buffer", sender(func(p *Plan) { p.NTTTCP.SendSocketBuffer = &big })},
		{"ntttcp.receive_socket_buffer", sender(func(p *Plan) { p.NTTTCP.ReceiveSocketBuffer = &big })},
		{"ntttcp.window_multiple", sender(func(p *Plan) { p.NTTTCP.WindowMultiple = -1 })},
		{"ntttcp.multi_client", sender(func(p *Plan) { p.NTTTCP.MultiClient = true })},
		{"ntttcp.last", receiver(func(p *Plan) { p.NTTTCP.Last = true })},
		{"ntttcp.port_sync", sender(func(p *Plan) { p.NTTTCP.PortSync = true })},
		{"ntttcp.transmit_packets", receiver(func(p *Plan) { p.NTTTCP.TransmitPackets = 1 })},
		{"ntttcp.transmit_packets", sender(func(p *Plan) { p.NTTTCP.TransmitPackets = -1 })},
		{"ntttcp.segment_size", receiver(func(p *Plan) { p.NTTTCP.SegmentSize, p.Transport = 1, UDP })},
		{"ntttcp.segment_size", sender(func(p *Plan) { p.NTTTCP.SegmentSize, p.Transport = -1, UDP })},
		{"ntttcp.spacing", receiver(func(p *Plan) { p.NTTTCP.Spacing = time.Second })},
		{"ntttcp.spacing", sender(func(p *Plan) { p.NTTTCP.Spacing = time.Millisecond })},
		{"ntttcp.coalesce", sender(func(p *Plan) { p.NTTTCP.Coalesce, p.Transport = true, UDP })},
		{"transport", receiver(func(p *Plan) { p.NTTTCP.Coalesce = true })},
		{"ntttcp.outstanding", sender(func(p *Plan) { p.NTTTCP.Outstanding = -1 })},
		{"ntttcp.numa_node", sender(func(p *Plan) { p.NTTTCP.NUMANode = &minus })},
		{"ntttcp.qos_priority", sender(func(p *Plan) { p.NTTTCP.QOS = &minus })},
		{"ntttcp.round_trip", sender(func(p *Plan) { p.NTTTCP.RoundTrip, p.NTTTCP.Outstanding = true, 1 })},
		{"ntttcp.unconnected", sender(func(p *Plan) { p.NTTTCP.Unconnected = true })},
		{"ntttcp.cpu_burn", sender(func(p *Plan) { p.NTTTCP.CPUBurn = -1 })},
		{"ntttcp.sample", sender(func(p *Plan) { p.NTTTCP.Sample, p.Endless = 1, true })},
		{"tos", sender(func(p *Plan) { p.TOS = 256 })},
		{"affinity", sender(func(p *Plan) { p.Affinity = []int{-1} })},
		{"max_rate", sender(func(p *Plan) { p.MaxRate = -1 })},
	} {
		err := c.plan.Validate()
		found := false
		for _, e := range unjoin(err) {
			var fault *FieldError
			if errors.As(e, &fault) && fault.Field == c.field {
				found = true
			}
		}
		if !found {
			t.Errorf("%s: got %v", c.field, err)
		}
	}
	// The limits of iperf3 are not NTTTCP's.
	p := sender(func(p *Plan) { p.Duration, p.Omit, p.BlockSize = 100*time.Hour, time.Hour, 4<<20 })
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
}

func unjoin(err error) []error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}

func TestServeNTTTCP(t *testing.T) {
	t.Parallel()
	own := receiver(func(*Plan) {})
	s := Serve{Listen: []netip.AddrPort{netip.MustParseAddrPort("0.0.0.0:5001")}, NTTTCP: &own}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	wrong := sender(func(*Plan) {})
	faulty := receiver(func(p *Plan) { p.Port = -1 })
	for name, p := range map[string]*Plan{"a sender": &wrong, "none": {Host: "h"}, "a fault": &faulty} {
		if (Serve{NTTTCP: p}).Validate() == nil {
			t.Errorf("%s: no fault was seen", name)
		}
	}
}

func TestNTTTCPSurvivesJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string) *int { return rapid.SampledFrom([]*int{nil, new(int)}).Draw(t, name) }
		size := func(name string) *int64 { return rapid.SampledFrom([]*int64{nil, new(int64)}).Draw(t, name) }
		yes := func(name string) bool { return rapid.Bool().Draw(t, name) }
		count := func(name string) int { return rapid.IntRange(0, 1<<30).Draw(t, name) }
		span := func(name string) time.Duration { return time.Duration(count(name)) }
		n := NTTTCP{
			Dialect: rapid.SampledFrom([]NTTTCPDialect{NTTTCPLinux, NTTTCPWindows}).Draw(t, "dialect"),
			Role:    rapid.SampledFrom([]NTTTCPRole{NTTTCPSender, NTTTCPReceiver}).Draw(t, "role"),
			Ports:   count("ports"), Threads: count("threads"), Connections: count("connections"), LinuxPorts: count("linux"),
			Mappings: rapid.SampledFrom([][]NTTTCPMapping{nil, {{Threads: 1, Host: "h"}}, {{Threads: 2, CPU: new(int)}, {Threads: 3}}}).Draw(t, "mappings"),
			NoSync:   yes("no sync"), MultiClient: yes("multi"), Last: yes("last"), Epoll: yes("epoll"), CoolDown: span("cool"),
			Rate: int64(count("rate")), FQRate: int64(count("fq")), SendSocketBuffer: size("sb"), ReceiveSocketBuffer: size("rb"),
			WindowMultiple: float64(count("multiple")) / 8, Buffers: int64(count("buffers")), TimeLimit: span("limit"), PortSync: yes("sp"),
			WaitTimeout: span("to"), NoTimeout: yes("to 0"), Outstanding: count("a"), WSA: yes("w"), TransmitPackets: count("x"),
			ActiveThreads: number("icp"), WaitAll: yes("wa"), NUMANode: number("na"), HyperV: yes("hv"), Unconnected: yes("uc"),
			SegmentSize: count("uso"), Coalesce: yes("uro"), QOS: number("qos"), Verify: yes("d"), RoundTrip: yes("rt"), Latency: yes("lm"),
			Jitter: yes("jm"), EStats: yes("es"), CPUBurn: count("brn"), Spacing: span("ps"), Sample: span("sam"),
		}
		p := Plan{Protocol: ProtocolNTTTCP, Host: "h", NTTTCP: &n}
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, back); diff != "" {
			t.Fatal(diff)
		}
	})
}
