package ntttcpwin

import (
	"fmt"
	"math"
	"strings"

	"github.com/fullbore-net/fullbore/result"
)

// Settings are what the command line said and a run does not hold, for -v's list and for
// the parameters of the XML. The zero value is the program's default.
type Settings struct {
	BufferLength     int64  // -l; 0 = 65536, for UDP 128
	BufferCount      int64  // -n; 0 = no such limit
	SendBuffer       *int64 // -sb; nil = -1, left to the system
	RecvBuffer       *int64 // -rb; nil = -1
	SyncPort         bool   // -sp
	Timeout          *int64 // -to, ms; nil = 600000
	Async            int    // -a; 0 = synchronous
	WSA              bool   // -w
	UDPUnconnected   bool   // -uc
	Verify           bool   // -d
	WaitAll          bool   // -wa
	SenderName       string // -nic; "" = none
	CompletionPorts  bool   // -icp
	MaxActive        int    // of -icp
	TransmitPackets  bool   // -x
	HyperV           bool   // -hv
	NoStdioBuffer    bool   // -nsb
	Throttle         int64  // -thr, bytes per ms
	Burn             int    // -brn
	Latency          bool   // -lm; -rt has it too
	RoundTrip        bool   // -rt
	CPUFromIdle      bool   // -cfi
	EStats           bool   // -es
	QoS              bool   // -qos
	Jitter           bool   // -jm
	PacketPeriod     int    // -ps, ms
	SegmentOffload   int    // -uso, bytes
	ReceiveCoalesces bool   // -uro
	Node             *int   // -na; nil = -1
	IPv6             bool   // -6
	Mappings         []Mapping
	Computer         string // NetBIOS name of this computer; "" = the host's name in capitals, at most 15 letters
}

// Mapping is one tuple of -m.
type Mapping struct {
	Threads int
	CPU     int // -1 = "*"
	Host    string
}

// fill takes over from r what the command line did not say.
func (s Settings) fill(r *result.Run) Settings {
	if s.BufferLength == 0 {
		s.BufferLength = int64(r.Test.BlockSize)
	}
	if s.BufferLength == 0 {
		s.BufferLength = 64 << 10
		if r.Test.Transport == "udp" {
			s.BufferLength = 128
		}
	}
	if s.BufferCount == 0 {
		s.BufferCount = r.Test.Blocks
	}
	if s.BufferCount == 0 {
		s.BufferCount = math.MaxInt64
	}
	s.SendBuffer = orElse(s.SendBuffer, -1)
	s.RecvBuffer = orElse(s.RecvBuffer, -1)
	s.Timeout = orElse(s.Timeout, 600000)
	s.Latency = s.Latency || s.RoundTrip
	for _, m := range s.Mappings {
		s.IPv6 = s.IPv6 || strings.Contains(m.Host, ":")
	}
	if h := r.Hosts.Of(r.End); s.Computer == "" && h != nil {
		name, _, _ := strings.Cut(h.Name, ".")
		name = strings.ToUpper(name)
		s.Computer = name[:min(len(name), 15)]
	}
	return s
}

func orElse[T any](p *T, v T) *T {
	if p == nil {
		return &v
	}
	return p
}

// threads is how many the settings name, else how many streams the run has.
func (s Settings) threads(r *result.Run) int {
	n := 0
	for _, m := range s.Mappings {
		n += m.Threads
	}
	if n == 0 && r.NTTTCP != nil {
		n = r.NTTTCP.Ports
	}
	if n == 0 {
		n = max(len(r.Streams), r.Test.Streams)
	}
	return n
}

// advanced is the port as the XML has it: the program counts its base port up for each
// thread that it makes.
func (s Settings) advanced(r *result.Run) int {
	base := basePort(r)
	switch {
	case s.SyncPort && r.End == result.Client:
		return base
	case s.SyncPort:
		return base + s.threads(r) + 1
	}
	return base + s.threads(r)
}

func basePort(r *result.Run) int {
	if r.NTTTCP != nil {
		return r.NTTTCP.BasePort
	}
	return r.Test.Port
}

// times are run, warm-up and cool-down in ms.
func times(r *result.Run) (run, warmup, cooldown int64) {
	ms := func(s float64) int64 { return int64(math.Round(s * 1000)) }
	if r.NTTTCP != nil {
		cooldown = ms(r.NTTTCP.Cooldown)
	}
	return ms(r.Test.Duration), ms(r.Test.Omit), cooldown
}

// countTimeout is the limit of a test that counts buffers, ms: 3 hours.
const countTimeout = 10800000

func noSync(r *result.Run) bool { return r.NTTTCP != nil && r.NTTTCP.NoSync }

// list is what -v prints first: one setting a line, booleans as 0 and 1.
func (s Settings) list(r *result.Run) []string {
	s = s.fill(r)
	run, warmup, cooldown := times(r)
	var out []string
	add := func(name string, value any) {
		if on, ok := value.(bool); ok {
			value = 0
			if on {
				value = 1
			}
		}
		out = append(out, fmt.Sprintf("%s: %v", name, value))
	}
	add("buffers_length", s.BufferLength)
	add("num_buffers_to_send", s.BufferCount)
	add("send_socket_buff", *s.SendBuffer)
	add("recv_socket_buff", *s.RecvBuffer)
	add("port", basePort(r))
	add("sync_port", s.SyncPort)
	add("no_sync", noSync(r))
	add("wait_timeout_milliseconds", *s.Timeout)
	add("async_flag", s.Async > 0)
	add("verbose_flag", true)
	add("wsa_flag", s.WSA)
	add("use_ipv6_flag", s.IPv6)
	add("send_flag", r.End == result.Client)
	add("udp_flag", r.Test.Transport == "udp")
	add("udp_unconnected_flag", s.UDPUnconnected)
	add("verify_data_flag", s.Verify)
	add("wait_all_flag", s.WaitAll)
	add("run_time", run)
	add("warmup_time", warmup)
	add("cooldown_time", cooldown)
	add("dash_n_timeout", countTimeout)
	add("bind_sender_flag", s.SenderName != "")
	add("sender_name", s.SenderName)
	add("max_active_threads", s.active(r))
	add("no_delay", r.Test.NoDelay)
	add("node_affinity", *orElse(s.Node, -1))
	add("udp_uso_size", s.SegmentOffload)
	add("udp_receive_coalescing", s.ReceiveCoalesces)
	add("tp_flag", s.TransmitPackets)
	add("use_hvsocket_flag", s.HyperV)
	add("no_stdio_buffer", s.NoStdioBuffer)
	add("throughput_Bpms", s.Throttle)
	add("cpu_burn", s.Burn)
	add("latency_measurement", s.Latency)
	add("use_io_compl_ports", s.CompletionPorts)
	add("cpu_from_idle_flag", s.CPUFromIdle)
	add("get_estats", s.EStats)
	add("qos_flag", s.QoS)
	add("packet_period", s.PacketPeriod)
	add("jitter_measurement", s.Jitter)
	for i, m := range s.Mappings {
		add(fmt.Sprintf("mapping[%d]", i), fmt.Sprintf("%d,%s,%s", m.Threads, m.cpu(), clean(m.Host)))
	}
	return out
}

func (m Mapping) cpu() string {
	if m.CPU < 0 {
		return "*"
	}
	return fmt.Sprint(m.CPU)
}

func (s Settings) active(r *result.Run) int {
	if s.CompletionPorts {
		return s.MaxActive
	}
	return s.threads(r)
}
