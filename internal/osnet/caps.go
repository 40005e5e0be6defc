package osnet

import "sync"

// Caps says what this system can do with sockets. It is probed once per process and
// then only read; what a field promises was tried on a socket, not looked up by version.
type Caps struct {
	IPv6        bool `json:"ipv6"`        // a socket can be bound to ::1
	TCPInfo     bool `json:"tcp_info"`    // Conn.TCPInfo works
	Retransmits bool `json:"retransmits"` // TCPInfo.Retransmits counts segments
	// TCPInfoBytes is how much of struct tcp_info a Linux kernel fills; 0 elsewhere.
	TCPInfoBytes int  `json:"tcp_info_bytes"`
	Congestion   bool `json:"congestion"` // the congestion control can be read and chosen
	MPTCP        bool `json:"mptcp"`
	Discard      bool `json:"discard"`      // recv with MSG_TRUNC drops TCP payload in the kernel
	SendFile     bool `json:"sendfile"`     // from a memfd
	Splice       bool `json:"splice"`       // vmsplice into a pipe
	ZeroCopy     bool `json:"zerocopy"`     // MSG_ZEROCOPY
	RcvLowat     bool `json:"rcv_lowat"`    // SO_RCVLOWAT can be set
	SendQueue    bool `json:"send_queue"`   // Conn.SendQueue works
	Pacing       bool `json:"pacing"`       // SO_MAX_PACING_RATE
	Pacing64     bool `json:"pacing_64bit"` // beyond 34 Gbit/s
	FlowLabel    bool `json:"flow_label"`
	BindDevice   bool `json:"bind_device"`
	UserTimeout  bool `json:"user_timeout"`
	Segment      bool `json:"udp_segment"` // UDP: one call cut into many datagrams (GSO, USO)
	Coalesce     bool `json:"udp_gro"`     // UDP: many datagrams in one message (GRO, URO)
	Batch        bool `json:"udp_batch"`   // sendmmsg, recvmmsg: DatagramSender and DatagramReceiver work
	Stamps       bool `json:"stamps"`      // the kernel says when a datagram came (SO_TIMESTAMPNS)
	Meminfo      bool `json:"meminfo"`     // Conn.SocketDrops works
	Affinity     bool `json:"affinity"`
}

var caps = sync.OnceValue(probe)

// Capabilities returns what this system can do; the first call probes with sockets of
// its own, which takes about half a millisecond (Linux 6.18).
func Capabilities() Caps { return caps() }
