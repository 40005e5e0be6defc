package cli

import (
	"fmt"

	"github.com/fullbore-net/fullbore/result"
)

// udpWarnings are what an iperf3 client says on stderr about the sizes of a UDP test
// (3.1.5 … 3.21: src/iperf_client_api.c, iperf_connect; src/iperf_udp.c,
// iperf_udp_buffercheck). They end nothing and never touch the document of -J.
func udpWarnings(e result.Event) (lines []string) {
	if e.Head == nil || e.Head.Test.Transport != "udp" {
		return nil
	}
	size := e.Head.Test.BlockSize
	switch e.Kind {
	case result.KindConnected:
		if w := e.Head.Wire; w != nil && w.ControlMSS > 0 && size > w.ControlMSS {
			lines = append(lines, fmt.Sprintf("UDP block size %d exceeds TCP MSS %d, may result in fragmentation / drops", size, w.ControlMSS))
		}
	case result.KindStart:
		for _, s := range e.Head.Streams {
			b := s.Buffers
			if b == nil {
				continue
			}
			if b.SndGranted > 0 && int64(size) > b.SndGranted {
				lines = append(lines, fmt.Sprintf("Block size %d > sending socket buffer size %d", size, b.SndGranted))
			}
			if b.RcvGranted > 0 && int64(size) > b.RcvGranted {
				lines = append(lines, fmt.Sprintf("Block size %d > receiving socket buffer size %d", size, b.RcvGranted))
			}
		}
	}
	return lines
}

// senderWarnings say what this end was to send and did not: iperf3's columns have no
// place for it, and its silence is what they read as loss, or as a rate that was kept.
func senderWarnings(e result.Event, end result.End) (lines []string) {
	if e.Kind != result.KindFinish {
		return nil
	}
	var refused, unsent int64
	for _, s := range e.Finish.Streams {
		if s.UDP == nil || s.UDP.Sent == nil || s.Direction.Sender() != end {
			continue
		}
		refused += s.UDP.Sent.Refused
		unsent += s.UDP.Sent.Unsent
	}
	if refused > 0 {
		lines = append(lines, fmt.Sprintf("%d datagrams did not get past this host (its queue was full, or its firewall dropped them) or came back refused", refused))
	}
	if unsent > 0 {
		lines = append(lines, fmt.Sprintf("%d datagrams were due and not sent: this host was late by more than 100 ms", unsent))
	}
	return lines
}

// arrivalWarnings say at a client that a direction delivered nothing (field case F02): the
// figures say so, too, but who only looks at the rate that was sent does not see it.
func arrivalWarnings(e result.Event) (lines []string) {
	if e.Kind != result.KindFinish {
		return nil
	}
	for _, d := range []result.Direction{result.Up, result.Down} {
		var sent, arrived int64
		for _, s := range e.Finish.Streams {
			if s.Direction != d || s.UDP == nil || s.Sender == nil || s.Receiver == nil || s.Sender.Packets == nil {
				continue
			}
			sent += *s.Sender.Packets
			arrived += s.Receiver.Bytes
		}
		if sent > 0 && arrived == 0 {
			lines = append(lines, fmt.Sprintf("nothing arrived: all %d datagrams that were sent are lost", sent))
		}
	}
	return lines
}
