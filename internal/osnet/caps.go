package osnet

import "sync"

// Caps says what this system can do. It is probed once per process.
type Caps struct {
	TCPInfo     bool // Conn.TCPInfo works
	Retransmits bool // TCPInfo.Retransmits counts segments
	Congestion  bool // the congestion control can be read and chosen
	MPTCP       bool
	Discard     bool // recv with MSG_TRUNC drops TCP payload in the kernel
	Splice      bool // vmsplice + splice
	SendFile    bool // sendfile from a memfd
	ZeroCopy    bool // MSG_ZEROCOPY
	RcvLowat    bool // SO_RCVLOWAT
	SendQueue   bool // Conn.SendQueue works
	Pacing      bool // SO_MAX_PACING_RATE
	FlowLabel   bool
	BindDevice  bool
	UserTimeout bool
	UDPSegment  bool // UDP_SEGMENT (GSO)
	UDPGRO      bool
	Affinity    bool
}

var caps = sync.OnceValue(probe)

// Capabilities returns what this system can do; the first call probes.
func Capabilities() Caps { return caps() }
