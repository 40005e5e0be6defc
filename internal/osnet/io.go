package osnet

// TCPBrief is the part of TCP_INFO that is wanted of every flow of a large test at
// every interval. Reading it allocates nothing. −1 = this kernel does not report it.
type TCPBrief struct {
	Retransmits            int64 // segments, since the connection's start
	Cwnd, SndWnd           int64 // bytes
	RTT                    int64 // µs
	ReordSeen              int64
	BusyUS, RwndUS, SndbUS int64
}

// Brief reads TCP_INFO into b. Where the system has none the error wraps
// errors.ErrUnsupported.
func (c *Conn) Brief(b *TCPBrief) error { return c.brief(b) }
