// Package traffic is the engine: it moves payload over a set of flows, counts and
// times it, and stops by rule. It knows no protocol: whoever agreed on the test
// hands in connected sockets and a Config, calls Start, waits for a stop rule, and
// takes Totals.
//
// The life of an Engine:
//
//	e, err := New(cfg, flows)     // takes the sockets over
//	e.Start()                     // t0; workers run, intervals begin
//	reason, err := e.Wait(ctx)    // the first stop rule
//	e.StopSend()                  // no write is under way any more
//	e.Drain(ctx)                  // optional: all sent bytes are acknowledged
//	e.StopReceive(true)           // what the kernel holds is counted
//	totals := e.Finish()          // the last row; no event follows
//	e.Close()
//
// # Counting
//
// A flow's counter only grows and has one writer. Rows, the omitted part and totals
// are differences between samples of it, so the bytes of the counted rows add up to
// the total exactly, per stream.
//
// # What Total.Start and Total.End mean
//
// Start is 0: the instant of Start, or of the sample that ended the omitted part.
// All flows of one direction share one End, so that their sum is taken over one
// window. It is
//
//   - for a sender that was stopped (duration, cancel): when its last write had
//     returned;
//   - for a sender that ended by itself (bytes, blocks, end of file): when the last
//     byte was acknowledged, if Drain saw that, else when the last write returned;
//   - for a receiver of a limited run (Config.Limited): when the last byte was read,
//     so that the way of the peer's goodbye does not lower the rate;
//   - for any other receiver: when StopReceive took effect.
//
// A flow that died early shares the End of the others: it moved its bytes in that time. With
// Config.BlocksEach a flow ends with its own last write.
//
// # Datagrams
//
// A UDP sender numbers what the kernel took, from 1 on; what it refused has no number and
// is not loss. Datagram k is due at t0 + k·L/r. What is due within one quantum (50 µs;
// frugal 500 µs; precise none) leaves as one planned burst, in one call and where possible
// one super-packet. A sender that was late catches up at 1.25 times the rate, and what is
// more than 100 ms late is given up (UDPSent.Unsent).
//
// A UDP receiver accounts by sequence number (package datagram) and measures delays by the
// kernel's stamps (package delay). Total.Bytes and Packets are what iperf3 counts: bytes of
// every arrival within the measured time; the highest number, the omitted part included.
// UDPReceived counts distinct datagrams of the measured part. What comes after StopReceive
// counts as arrived but has no part in bytes and times (UDPReceived.Tail).
//
// Bare datagrams (UDPConfig.Bare) have no header: each that arrives within the measured time
// counts with its bytes, and of loss, order and delay nothing is known.
//
// # Messages
//
// Config.Message and Spacing make a worker per flow move one whole block at a time, by calls
// that block: what it waits for is then what is measured (messenger). Both ends of a flow
// must be told the same mode.
package traffic

import (
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/result"
)

// Flow is one connected socket with payload going one way. The engine owns Conn
// from New on.
type Flow struct {
	ID        int              // the protocol's stream id
	Socket    int              // the number shown to people (result.Stream.Socket)
	Direction result.Direction // which way payload goes
	Conn      *osnet.Conn
	Send      bool // this end sends
}

// Reason says which stop rule ended a run.
type Reason int

// The reasons. PeerClosed: all receiving flows ended, or all flows are dead.
const (
	Duration Reason = iota + 1
	Bytes
	Blocks
	Budget
	FileEnd
	PeerClosed
	ReceiveTimeout
	Cancelled
)

var reasonNames = [...]string{"none", "duration", "bytes", "blocks", "budget", "file-end", "peer-closed", "receive-timeout", "cancelled"}

// String returns a stable word.
func (r Reason) String() string {
	if r < 0 || int(r) >= len(reasonNames) {
		return "unknown"
	}
	return reasonNames[r]
}

// Totals is what a run moved. Times are seconds since the end of the omitted part.
type Totals struct {
	Flows []FlowTotal // in the order given to New
	Path  result.DataPath
	// Usage and CPU are this process's cost over the measured time (from the end of Omit);
	// nil where the system does not tell. In a server with several tests at once they
	// cover all of them.
	Usage *result.ProcessCost
	CPU   *result.CPU // percent of one core
	// Elapsed is the measured time: end of Omit to the latest End of a flow.
	Elapsed float64
	// Zero is the end of Omit on the machine's monotonic clock, ns (Linux: CLOCK_MONOTONIC);
	// nil where Go does not show it, or when the measured time never began.
	Zero *int64
}

// FlowTotal is one flow's share. TCP is nil where the system does not tell, and above
// 128 flows for all but the 16 slowest (notice "details-thinned"). Err is what ended it early: a write or read error,
// or that of Source or Sink. A receiver that saw the peer's FIN has EOF set and no Err.
type FlowTotal struct {
	ID           int
	Send         bool
	Total        result.Total
	LastByte     float64 // when the last byte was written or read; 0 with no bytes
	Drained      float64 // sender: when Drain saw everything acknowledged; 0 = not seen
	TCP          *result.TCPSummary
	Err          error
	EOF          bool
	Blocks       int64 // whole blocks since the end of Omit; in the round-trip mode exchanges
	OmittedBytes int64
	IO           *result.IOCount // nil without Config.CountCalls
	// UDP has Sent or Received, of the measured time; nil for TCP, and above 128 flows for
	// all but the 16 slowest. Loss is for whoever knows both ends.
	UDP *result.UDPStream
}
