package ext

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/fullbore-net/fullbore/result"
)

// Results is what an end counted: the document of frame 0x4b, for protocols that have no results
// of their own. Streams that one frame cannot hold go on in the next; the rest is in the last.
type Results struct {
	Streams []StreamResult `json:"streams,omitempty"`
	More    bool           `json:"more,omitempty"` // another frame follows

	CPU     *result.CPU       `json:"cpu,omitempty"`            // of the process
	Machine *result.HostTotal `json:"host_total,omitempty"`     // of the whole machine, over the measured time
	Dropped int64             `json:"events_dropped,omitempty"` // events that were not sent
	// Err is why this end ended before its time; nil = it did not.
	Err *result.Error `json:"error,omitempty"`
	// Whole: not a time but a count ended the client, so all that it sent is to be counted.
	Whole bool `json:"whole,omitempty"`
}

// StreamResult is one end's count of a stream.
type StreamResult struct {
	ID    int                `json:"id"`
	Total result.Total       `json:"total"`
	TCP   *result.TCPSummary `json:"tcp,omitempty"`
	UDP   *result.UDPStream  `json:"udp,omitempty"` // its own half: Sent or Received
	// Datagrams are all that were sent or arrived, also before and after the measured time.
	Datagrams *int64 `json:"datagrams,omitempty"`
}

// frameRoom is how much of a frame streams may fill; the rest of a document is far smaller.
const frameRoom = MaxFrame * 3 / 4

// Frames is r as frames, in order.
func (r Results) Frames() ([][]byte, error) {
	streams := slices.Clone(r.Streams)
	var out [][]byte
	for {
		part := r
		n, size := 0, 0
		for n < len(streams) {
			one, err := json.Marshal(streams[n])
			if err != nil { // an infinite number in a summary must not cost the rest
				s := streams[n]
				s.TCP, s.UDP = nil, nil
				if one, err = json.Marshal(s); err != nil {
					return nil, fmt.Errorf("ext: encode stream %d: %w", s.ID, err)
				}
				streams[n] = s
			}
			if n > 0 && size+len(one) > frameRoom {
				break
			}
			size += len(one) + 1
			n++
		}
		part.Streams, streams = streams[:n], streams[n:]
		if part.More = len(streams) > 0; part.More {
			part = Results{Streams: part.Streams, More: true}
		}
		doc, err := json.Marshal(part)
		if err != nil {
			return nil, fmt.Errorf("ext: encode results: %w", err)
		}
		if len(doc) > MaxFrame {
			return nil, fmt.Errorf("ext: results: %w: %d bytes", ErrTooLong, len(doc))
		}
		out = append(out, Append(nil, FrameResults, doc))
		if !part.More {
			return out, nil
		}
	}
}

// errNonsense is a figure that cannot be one.
var errNonsense = errors.New("ext: results that make no sense")

// Add takes in the other end's next frame and makes it safe to keep. most is how many streams
// there can be. done = it was the last. After an error r is of no use.
func (r *Results) Add(doc []byte, most int) (done bool, err error) {
	var part Results
	if err := json.Unmarshal(doc, &part); err != nil {
		return false, fmt.Errorf("ext: results: %w", err)
	}
	if len(r.Streams)+len(part.Streams) > most || part.More && len(part.Streams) == 0 {
		return false, fmt.Errorf("%w: more streams than the test has", errNonsense)
	}
	for i := range part.Streams {
		if !part.Streams[i].sane() {
			return false, fmt.Errorf("%w: stream %d", errNonsense, part.Streams[i].ID)
		}
	}
	streams := append(r.Streams, part.Streams...)
	*r = part
	r.Streams = streams
	if part.More {
		return false, nil
	}
	r.Dropped = max(0, r.Dropped)
	if e := r.Err; e != nil {
		e.Code, e.Text, e.Signal = Printable(e.Code), Printable(e.Text), Printable(e.Signal)
	}
	if r.CPU != nil {
		r.CPU.Congestion = Printable(r.CPU.Congestion)
	}
	if m := r.Machine; m != nil {
		if m.Cores < 0 || m.Seconds < 0 || math.IsInf(m.Seconds, 0) {
			r.Machine = nil
		} else if m.Packets != nil {
			m.Packets.Interface = Printable(m.Packets.Interface)
		}
	}
	return true, nil
}

// longest is more seconds than any test takes.
const longest = 1 << 31

// sane reports that the figures can be true, and makes the texts printable.
func (s *StreamResult) sane() bool {
	t := &s.Total
	if t.Bytes < 0 || !(t.Start >= 0 && t.End >= t.Start && t.End < longest) {
		return false
	}
	for _, n := range []*int64{t.Retransmits, t.Packets, t.Lost, t.OutOfOrder, t.OmittedPackets, t.OmittedLost, s.Datagrams} {
		if n != nil && *n < 0 {
			return false
		}
	}
	if t.Jitter != nil && !(*t.Jitter >= 0) {
		return false
	}
	if s.TCP != nil {
		s.TCP.Congestion = Printable(s.TCP.Congestion)
	}
	if u := s.UDP; u != nil {
		u.Loss = nil // follows from both ends' figures
		if x := u.Sent; x != nil && min(x.Packets, x.Bytes, x.Refused, x.Unsent) < 0 {
			return false
		}
		if x := u.Received; x != nil {
			if min(x.Packets, x.Bytes, x.Duplicates, x.Reordered, x.Late, x.Highest, x.Tail, x.Early) < 0 {
				return false
			}
			x.Stamps = Printable(x.Stamps)
		}
	}
	return true
}
